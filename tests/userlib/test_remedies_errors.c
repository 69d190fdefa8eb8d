// SPDX-License-Identifier: GPL-2.0
/*
 * Errors other than a lack of memory, and their remedies: each test causes an
 * error, compares its text, does what Documentation/tasks/out-of-memory.rst
 * advises, and repeats the call with success.
 */
#include "cache_mock.h"

#include <sys/wait.h>
#include <unistd.h>

static void text_is(int error, const char *expected)
{
	char text[256];

	assert_int_equal(flexmem_error_text(error, NULL, 0, text,
					    sizeof(text)), 0);
	assert_string_equal(text, expected);
}

static void cache_text_is(int error, const char *expected)
{
	char text[256];

	assert_int_equal(flexmem_cache_error_text(error, NULL, 0, text,
						  sizeof(text)), 0);
	assert_string_equal(text, expected);
}

/* Errors of a device. */

static int get(struct flexmem_device *device, uint32_t flags,
	       struct flexmem_allocated *a)
{
	return flexmem_device_alloc(device, 1000, 0, flags, a, sizeof(*a));
}

static void a_handle_that_is_there(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	assert_int_equal(get(device, 0, &a), 0);
	assert_int_equal(flexmem_device_free(device, a.handle + 1), -ENOENT);
	text_is(-ENOENT, "no such allocation, range or binding of this open file");
	assert_int_equal(flexmem_device_free(device, a.handle), 0);
	flexmem_device_close(device);
}

static void a_value_in_its_range(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	assert_int_equal(get(device, 0, &a), 0);
	assert_int_equal(flexmem_device_resize(device, a.handle, 0, NULL, 0),
			 -EINVAL);
	text_is(-EINVAL, "an argument is out of its range");
	assert_int_equal(flexmem_device_resize(device, a.handle, 1, NULL, 0),
			 0);
	flexmem_device_close(device);
}

static void a_driver_that_is_loaded(void **state)
{
	struct flexmem_device *device;

	(void)state;
	fake.nodes[0].exists = false;
	assert_int_equal(flexmem_device_open(&device, NULL), -ENODEV);
	text_is(-ENODEV, "no such device (is its driver loaded?), or it is gone");
	fake.nodes[0].exists = true;
	assert_int_equal(flexmem_device_open(&device, NULL), 0);
	flexmem_device_close(device);
}

static void another_node(void **state)
{
	struct flexmem_device *device;

	(void)state;
	fake_node(1, 1, FLEXMEM_MODE_VF);
	fake.nodes[0].info_error = ENOTTY;
	assert_int_equal(flexmem_device_open(&device, "/dev/flexmem0"), -ENOTTY);
	text_is(-ENOTTY, "not a flexmem device, or its driver is too old");
	assert_int_equal(flexmem_device_open(&device, "/dev/flexmem1"), 0);
	flexmem_device_close(device);
}

static void what_the_device_can_do(void **state)
{
	struct flexmem_properties properties;
	struct flexmem_device *device;
	struct flexmem_allocated a;

	(void)state;
	fake.capabilities = 0;
	device = open_device();
	assert_int_equal(get(device, FLEXMEM_MAPPABLE, &a), -EOPNOTSUPP);
	text_is(-EOPNOTSUPP, "the device cannot do this, or its driver does not know it");
	assert_int_equal(flexmem_device_properties(device, &properties,
						   sizeof(properties)), 0);
	assert_false(properties.capabilities & FLEXMEM_CAN_MAP);
	assert_int_equal(get(device, 0, &a), 0);
	flexmem_device_close(device);
}

/* The library sends 64 requests at a time. The second call fails. */
static void the_rest_of_a_batch(void **state)
{
	enum { COUNT = 130 };
	static struct flexmem_alloc_request requests[COUNT];
	static struct flexmem_allocated results[COUNT];
	struct flexmem_device *device = open_device();
	size_t done = 0;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT; i++)
		requests[i].length = 1000;
	inject(FLEXMEM_CMD_ALLOC_BATCH, 2, EIO);
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]), results,
						    sizeof(results[0]), COUNT),
			 -EIO);
	while (!results[done].error)
		done++;
	assert_int_equal(results[done].error, -ECANCELED);
	text_is(-ECANCELED, "the batch ended before its turn");
	assert_int_equal(flexmem_device_alloc_batch(device, requests + done,
						    sizeof(requests[0]),
						    results + done,
						    sizeof(results[0]),
						    COUNT - done), 0);
	for (i = 0; i < COUNT; i++)
		assert_true(!results[i].error && results[i].handle);
	flexmem_device_close(device);
}

/* Errors of a cache. */

static void the_struct_of_the_request(void **state)
{
	const struct flexmem_cache_request request = { .bytes = 30 * MIB };
	struct flexmem_cache_allocation a;
	struct flexmem_cache *cache;
	char text[512];

	(void)state;
	mock.capacity = 20 * MIB;
	cache = mock_cache("");
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	cache_text_is(-ENOMEM, "out of memory, the device's or the host's, or a limit of the cache's own: struct flexmem_cache_failure tells which");
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	assert_non_null(strstr(text, "out of device memory: tried to allocate 30.0 MiB"));
	flexmem_cache_destroy(cache);
}

/* Returns 0 if a new cache serves a request in the child. */
static int in_the_child(struct flexmem_cache *inherited)
{
	struct flexmem_cache *own;
	void *token;

	if (flexmem_cache_alloc(inherited, 1000, 0, &token) != -ECHILD)
		return 1;
	own = mock_cache("");
	return flexmem_cache_alloc(own, 1000, 0, &token) ? 2 : 0;
}

static void a_cache_of_the_child(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	int status;
	pid_t child;

	(void)state;
	cache_text_is(-ECHILD, "the cache belongs to the process that this one was forked from");
	child = fork();
	if (!child)
		_exit(in_the_child(cache));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	flexmem_cache_destroy(cache);
}

static int error_inside;

static void removes_itself(void *user, uint64_t bytes)
{
	(void)bytes;
	error_inside = flexmem_cache_remove_oom_callback(user, removes_itself,
							 user);
}

static void a_callback_is_removed_later(void **state)
{
	struct flexmem_cache *cache = mock_cache("");

	(void)state;
	assert_int_equal(flexmem_cache_add_oom_callback(cache, removes_itself,
							cache), 0);
	mock.fail_allocs = 9;
	assert_int_equal(try_alloc(cache, 30 * MIB), -ENOMEM);
	mock.fail_allocs = 0;
	cache_text_is(error_inside, "a callback cannot remove a callback");
	assert_int_equal(flexmem_cache_remove_oom_callback(cache, removes_itself,
							   cache), 0);
	flexmem_cache_destroy(cache);
}

static void another_checkpoint(void **state)
{
	struct flexmem_cache *cache = mock_cache_events("expandable_segments:True");
	struct flexmem_cache_request request = { .bytes = 6 * MIB };
	struct flexmem_cache_checkpoint *checkpoint;
	struct flexmem_cache_allocation a;

	(void)state;
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(flexmem_cache_pool_checkpoint(cache, request.pool,
						       &checkpoint), 0);
	give(cache, a.token);
	assert_int_equal(flexmem_cache_pool_empty(cache, request.pool, NULL), 0);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint), -ENXIO);
	cache_text_is(-ENXIO, "memory of the checkpoint was returned to the device, or lost");
	flexmem_cache_checkpoint_free(checkpoint);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(flexmem_cache_pool_checkpoint(cache, request.pool,
						       &checkpoint), 0);
	give(cache, a.token);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint), 0);
	flexmem_cache_checkpoint_free(checkpoint);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_handle_that_is_there),
		TEST(a_value_in_its_range),
		TEST(a_driver_that_is_loaded),
		TEST(another_node),
		TEST(what_the_device_can_do),
		TEST(the_rest_of_a_batch),
		CACHE_TEST(the_struct_of_the_request),
		CACHE_TEST(a_cache_of_the_child),
		CACHE_TEST(a_callback_is_removed_later),
		CACHE_TEST(another_checkpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
