// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the cache over a device of 2 GiB in regions of 1 GiB. Natively the
 * program runs on the fake kernel. Built with ON_DEVICE it runs on the driver
 * in a virtual machine, and FLEX_DEVICE names the PF or VF.
 */
#include "test.h"
#include "flexmem_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define KEPT 12
#ifdef ON_DEVICE
#define ROUNDS 300
#else
#define ROUNDS 1000
#endif

static struct flexmem_device *device;
static struct flexmem_cache *cache;
static atomic_int warnings;

static void count_warnings(enum flexmem_log_level level, const char *text,
			   void *user)
{
	(void)user;
	if (level == FLEXMEM_LOG_WARNING)
		atomic_fetch_add(&warnings, 1);
	fprintf(stderr, "%s\n", text);
}

static int begin(void **state)
{
	struct flexmem_properties properties;

#ifndef ON_DEVICE
	assert_int_equal(setup(state), 0);
	fake.capacity = 2 * GIB;
	fake.nr_fallback = 1;
	fake.fallback[0] = GIB;
#endif
	(void)state;
	atomic_store(&warnings, 0);
	assert_int_equal(flexmem_device_open(&device, NULL), 0);
	assert_int_equal(flexmem_device_properties(device, &properties,
						   sizeof(properties)), 0);
	assert_int_equal(properties.capacity, 2 * GIB);
	return 0;
}

static struct flexmem_statistics on_device(void)
{
	struct flexmem_statistics statistics;

	assert_int_equal(flexmem_device_statistics(device, &statistics,
						   sizeof(statistics)), 0);
	return statistics;
}

/*
 * Destroys the cache, which must free all memory. No test may have caused a
 * warning.
 */
static int end(void **state)
{
	flexmem_cache_destroy(cache);
	cache = NULL;
	assert_int_equal(on_device().own_used, 0);
	assert_int_equal(on_device().own_handles, 0);
	flexmem_device_close(device);
	assert_int_equal(atomic_load(&warnings), 0);
#ifndef ON_DEVICE
	return teardown(state);
#else
	(void)state;
	return 0;
#endif
}

static void create_with(const char *configuration, uint32_t flags)
{
	const struct flexmem_cache_options options = {
		.device = device,
		.configuration = configuration,
		.log = count_warnings,
		.level = FLEXMEM_LOG_WARNING,
		.flags = flags,
	};

	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
}

static void create(const char *configuration)
{
	create_with(configuration, 0);
}

static void *take(uint64_t bytes, uint64_t stream)
{
	void *token = NULL;

	assert_int_equal(flexmem_cache_alloc(cache, bytes, stream, &token), 0);
	return token;
}

static void give(void *token)
{
	assert_int_equal(flexmem_cache_free(cache, token), 0);
}

static struct flexmem_cache_statistics figures(void)
{
	struct flexmem_cache_statistics statistics;

	assert_int_equal(flexmem_cache_statistics(cache, &statistics,
						  sizeof(statistics)), 0);
	return statistics;
}

static struct flexmem_virtual_address place(const void *token)
{
	struct flexmem_cache_allocation a;

	assert_int_equal(flexmem_cache_lookup(cache, token, &a, sizeof(a),
					      NULL), 0);
	return a.address;
}

static void fixed_segments(void **state)
{
	void *a;

	(void)state;
	create("");
	a = take(30 * MIB, 0);
	take(MIB, 0);
	assert_int_equal(on_device().own_used, 32 * MIB);
	assert_int_equal(on_device().own_handles, 2);
	give(a);
	assert_int_equal(on_device().own_used, 32 * MIB);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(on_device().own_used, 2 * MIB);
	assert_int_equal(figures().num_device_grow, 0);
}

/* A segment is one allocation of the driver, which grows and shrinks. */
static void segment_grows_and_shrinks(void **state)
{
	struct flexmem_virtual_address first;
	uint64_t released;
	void *tokens[8];
	int i;

	(void)state;
	create("expandable_segments:True");
	for (i = 0; i < 8; i++)
		tokens[i] = take(100 * MIB, 0);
	first = place(tokens[0]);
	assert_int_equal(on_device().own_handles, 1);
	assert_int_equal(on_device().own_used, 800 * MIB);
	assert_int_equal(figures().num_device_alloc, 1);
	assert_int_equal(figures().num_device_grow, 7);
	for (i = 1; i < 8; i++) {
		assert_int_equal(place(tokens[i]).region_id, first.region_id);
		assert_int_equal(place(tokens[i]).offset,
				 first.offset + (uint64_t)i * 100 * MIB);
	}
	for (i = 3; i < 8; i++)
		give(tokens[i]);
	assert_int_equal(flexmem_cache_trim(cache, 1, &released), 0);
	assert_int_equal(released, 500 * MIB);
	assert_int_equal(on_device().own_used, 300 * MIB);
	assert_int_equal(figures().num_device_shrink, 1);
	assert_int_equal(place(take(50 * MIB, 0)).offset,
			 first.offset + 300 * MIB);
}

/* Each stream has a segment of its own, and each segment has room to grow. */
static void segments_grow_side_by_side(void **state)
{
	uint64_t stream;
	int i;

	(void)state;
	create("expandable_segments:True");
	for (i = 0; i < 10; i++) {
		for (stream = 0; stream < 3; stream++)
			take(20 * MIB, stream);
	}
	assert_int_equal(on_device().own_handles, 3);
	assert_int_equal(figures().num_device_alloc, 3);
	assert_int_equal(figures().num_device_grow, 27);
	assert_int_equal(figures().num_first_failures, 0);
}

/*
 * If other memory stops a segment from growing, the cache makes another
 * segment, until the device is full to the last byte.
 */
static void growing_fills_the_device(void **state)
{
	uint64_t taken = 0;
	void *token;
	int err;

	(void)state;
	create("expandable_segments:True");
	do {
		err = flexmem_cache_alloc(cache, 64 * MIB, 0, &token);
		taken += err ? 0 : 64 * MIB;
	} while (!err);
	assert_int_equal(err, -ENOMEM);
	assert_int_equal(taken, 2 * GIB);
	assert_true(figures().num_device_alloc >= 2);
	assert_int_equal(on_device().own_used, 2 * GIB);
}

static struct flexmem_cache_allocation look(const void *token)
{
	struct flexmem_cache_allocation a;

	assert_int_equal(flexmem_cache_lookup(cache, token, &a, sizeof(a),
					      NULL), 0);
	return a;
}

/* Writes the bytes in one way, and reads them back in another way. */
static void use_bytes(const struct flexmem_cache_allocation *a, char first)
{
	uint64_t before = a->offset % 4096;
	uint32_t handle = (uint32_t)a->handle;
	char bytes[1024];
	size_t length;
	char *start;
	size_t i;

	memset(bytes, first, sizeof(bytes));
	assert_int_equal(flexmem_device_write(device, handle, a->offset, bytes,
					      sizeof(bytes), NULL), 0);
	length = before + sizeof(bytes) > 4096 ? 8192 : 4096;
	assert_int_equal(flexmem_device_map(device, handle, a->offset - before,
					    length, 0, (void **)&start, NULL),
			 0);
	for (i = 0; i < sizeof(bytes); i++)
		assert_int_equal(start[before + i], first);
	start[before + 1023] = (char)(first + 1);
	assert_int_equal(flexmem_device_unmap(device, start, length), 0);
	assert_int_equal(flexmem_device_read(device, handle, a->offset, bytes,
					     sizeof(bytes), NULL), 0);
	assert_int_equal(bytes[1022], first);
	assert_int_equal(bytes[1023], first + 1);
}

/* A block's bytes are the bytes at its handle and offset. */
static void bytes_of_blocks(void **state)
{
	static const char *const configurations[] = {
		"", "expandable_segments:True", "backend:direct",
	};
	struct flexmem_cache_allocation a;
	char zeros[128];
	void *tokens[3];
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < 3; i++) {
		create_with(configurations[i], FLEXMEM_CACHE_MAPPABLE);
		for (n = 0; n < 3; n++)
			tokens[n] = take(1024, 0);
		a = look(tokens[1]);
		use_bytes(&a, (char)('a' + i));
		/* use_bytes() has not written to the block in front. */
		a = look(tokens[0]);
		assert_int_equal(flexmem_device_read(device, (uint32_t)a.handle,
						     a.offset + 896, zeros,
						     sizeof(zeros), NULL), 0);
		for (n = 0; n < 128; n++)
			assert_int_not_equal(zeros[n], 'a' + i);
		a = look(tokens[2]);
		use_bytes(&a, 'x');
		assert_int_equal(a.size, i == 2 ? 4096 : 1024);
		assert_int_equal(on_device().own_used,
				 figures().reserved_bytes[0].current);
		flexmem_cache_destroy(cache);
	}
	/* These segments are not mappable, but copies work. */
	create("");
	a = look(take(1024, 0));
	assert_int_equal(flexmem_device_write(device, (uint32_t)a.handle,
					      a.offset, zeros, sizeof(zeros),
					      NULL), 0);
	assert_int_equal(flexmem_device_map(device, (uint32_t)a.handle, 0, 0, 0,
					    &tokens[0], NULL), -EINVAL);
}

/*
 * A mapped segment cannot change its size, so the cache uses another segment.
 */
static void mapped_segments_stay(void **state)
{
	struct flexmem_cache_allocation a;
	uint64_t released;
	size_t length;
	void *little;
	void *start;
	void *token;
	void *end;

	(void)state;
	create_with("expandable_segments:True", FLEXMEM_CACHE_MAPPABLE);
	token = take(MIB, 0);
	end = take(20 * MIB, 0);
	a = look(token);
	assert_int_equal(look(end).handle, a.handle);
	assert_int_equal(look(end).offset, a.offset + MIB);
	assert_int_equal(flexmem_device_map(device, (uint32_t)a.handle, 0, 4096,
					    0, &start, &length), 0);
	*(char *)start = 'm';
	/* Small requests fit into the mapped segment. Large requests do not. */
	little = take(MIB, 0);
	assert_int_equal(look(little).handle, a.handle);
	assert_int_equal(figures().num_device_grow, 1);
	assert_int_not_equal(look(take(30 * MIB, 0)).handle, a.handle);
	assert_int_equal(figures().num_device_alloc, 2);
	assert_int_equal(figures().num_first_failures, 0);
	/* The mapped segment does not shrink, and keeps its bytes. */
	give(end);
	give(little);
	assert_int_equal(flexmem_cache_empty(cache, &released), -EBUSY);
	assert_int_equal(released, 0);
	end = take(20 * MIB, 0);
	assert_int_equal(look(end).handle, a.handle);
	assert_int_equal(*(char *)start, 'm');
	/* A segment that is no longer mapped can shrink. */
	assert_int_equal(flexmem_device_unmap(device, start, length), 0);
	give(end);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 20 * MIB);
	assert_int_equal(look(take(40 * MIB, 0)).handle, a.handle);
	assert_int_equal(figures().num_device_grow, 2);
}

/* The figures are those of the device's memory, not of the acquired regions. */
static void memory_is_the_devices(void **state)
{
	uint64_t free_bytes;
	uint64_t total;

	(void)state;
	create("");
	take(30 * MIB, 0);
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, 2 * GIB);
	assert_int_equal(free_bytes, 2 * GIB - 30 * MIB);
}

/* The cache tries all its steps, then reports the driver's reason. */
static void out_of_memory(void **state)
{
	struct flexmem_cache_request request = { .bytes = 600 * MIB };
	struct flexmem_cache_allocation a;
	char text[512];
	void *tokens[20];
	int i;

	(void)state;
	create("");
	for (i = 0; i < 20; i++)
		tokens[i] = take(100 * MIB, 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(a.failure.error, -ENOMEM);
	assert_int_equal(a.failure.device.limit, FLEXMEM_LIMIT_CAPACITY);
	assert_int_equal(a.failure.device.asked, 600 * MIB);
	assert_int_equal(a.failure.device.own_used, 2000 * MIB);
	assert_int_equal(a.failure.device_total, 2 * GIB);
	assert_int_equal(a.failure.device_free, 48 * MIB);
	assert_int_equal(figures().num_ooms, 1);
	flexmem_cache_error_text(-ENOMEM, &a.failure, sizeof(a.failure), text,
				 sizeof(text));
	assert_non_null(strstr(text, "the device has none left"));
	/* The cache returns its free memory to serve the request. */
	for (i = 0; i < 20; i++)
		give(tokens[i]);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(figures().num_first_failures, 2);
	assert_int_equal(figures().num_alloc_retries, 1);
}

/* The live allocations, which must not overlap. */
struct piece {
	uint64_t region_id;
	uint64_t start;
	uint64_t end;
};

static struct piece pieces[THREADS * KEPT];
static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int mistakes;

static void note(size_t index, void *token)
{
	struct flexmem_cache_allocation a;
	size_t i;

	if (flexmem_cache_lookup(cache, token, &a, sizeof(a), NULL)) {
		atomic_fetch_add(&mistakes, 1);
		return;
	}
	pthread_mutex_lock(&pieces_lock);
	for (i = 0; i < THREADS * KEPT; i++) {
		if (pieces[i].region_id == a.address.region_id &&
		    pieces[i].start < a.address.offset + a.size &&
		    a.address.offset < pieces[i].end)
			atomic_fetch_add(&mistakes, 1);
	}
	pieces[index] = (struct piece){
		.region_id = a.address.region_id,
		.start = a.address.offset,
		.end = a.address.offset + a.size,
	};
	pthread_mutex_unlock(&pieces_lock);
}

static void forget(size_t index)
{
	pthread_mutex_lock(&pieces_lock);
	pieces[index] = (struct piece){ 0 };
	pthread_mutex_unlock(&pieces_lock);
}

static void *allocate(void *argument)
{
	size_t first = (uintptr_t)argument * KEPT;
	uint32_t random = (uint32_t)(uintptr_t)argument + 1;
	void *tokens[KEPT] = { NULL };
	size_t i;
	int n;

	for (n = 0; n < ROUNDS; n++) {
		random = random * UINT32_C(1664525) + UINT32_C(1013904223);
		i = (random >> 8) % KEPT;
		forget(first + i);
		if (flexmem_cache_free(cache, tokens[i]))
			atomic_fetch_add(&mistakes, 1);
		tokens[i] = NULL;
		if (flexmem_cache_alloc(cache, (random >> 12) % (30 * MIB) + 1,
					random % 2, &tokens[i]))
			atomic_fetch_add(&mistakes, 1);
		else
			note(first + i, tokens[i]);
		if (!(n % 64) && flexmem_cache_trim(cache, GIB, NULL))
			atomic_fetch_add(&mistakes, 1);
	}
	for (i = 0; i < KEPT; i++) {
		forget(first + i);
		if (flexmem_cache_free(cache, tokens[i]))
			atomic_fetch_add(&mistakes, 1);
	}
	return NULL;
}

static void run_threads(const char *configuration)
{
	pthread_t threads[THREADS];
	size_t i;

	atomic_store(&mistakes, 0);
	create(configuration);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, allocate,
						(void *)(uintptr_t)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&mistakes), 0);
	assert_int_equal(figures().allocation[0].current, 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(on_device().own_used, 0);
}

static void threads_with_fixed_segments(void **state)
{
	(void)state;
	run_threads("");
}

static void threads_with_growing_segments(void **state)
{
	(void)state;
	run_threads("expandable_segments:True,release_lock_on_device_malloc:True");
	assert_true(figures().num_device_grow > 0);
	assert_true(figures().num_device_shrink > 0);
}

/* A forked child inherits the device, and must not free the parent's memory. */
static void forked_child_leaves_the_memory(void **state)
{
	uint64_t used;
	void *token;
	int status;
	pid_t pid;

	(void)state;
	create("expandable_segments:True");
	token = take(30 * MIB, 0);
	give(take(10 * MIB, 1));
	used = on_device().own_used;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		status = flexmem_cache_free(cache, token) != -ECHILD ||
			 flexmem_cache_trim(cache, GIB, NULL) != -ECHILD;
		flexmem_cache_destroy(cache);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(on_device().own_used, used);
	give(token);
}

#ifndef ON_DEVICE
/* torch-spyre #4542: the figures are about memory that tensors can have. */
static void memory_is_that_of_tensors(void **state)
{
	struct flexmem_allocated program;
	uint64_t free_bytes;
	uint64_t total;

	(void)state;
	create("");
	take(30 * MIB, 0);
	/* The program does not fit into the first region. */
	fake.region_flags = FLEXMEM_REGION_PROGRAM;
	assert_int_equal(flexmem_device_alloc(device, 1000 * MIB, 0,
					      FLEXMEM_PROGRAM, &program,
					      sizeof(program)), 0);
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, GIB);
	assert_int_equal(free_bytes, GIB - 30 * MIB);
	assert_int_equal(flexmem_device_free(device, program.handle), 0);
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	assert_int_equal(total, GIB);
	assert_int_equal(free_bytes, GIB - 30 * MIB);
}

/* A cache compares what it reads while it waits with what an event has told. */
static void the_device_is_measured_as_by_events(void **state)
{
	struct flexmem_cache_provider provider;
	struct flexmem_pressure_event event;
	struct flexmem_allocated program;
	uint64_t free_bytes;
	uint64_t total;

	(void)state;
	create("");
	/* What others have reserved and do not use is free. */
	fake.region_reserved = true;
	take(30 * MIB, 0);
	fake.region_reserved = false;
	fake.region_flags = FLEXMEM_REGION_PROGRAM;
	assert_int_equal(flexmem_device_alloc(device, 1000 * MIB, 0,
					      FLEXMEM_PROGRAM, &program,
					      sizeof(program)), 0);
	fake.events = 1;
	fake.memory = fake.capacity;
	assert_int_equal(flexmem_device_pressure(device, &event, sizeof(event)),
			 0);
	assert_int_equal(flexmem_cache_device_provider(device, &provider,
						       sizeof(provider)), 0);
	assert_int_equal(provider.device_info(provider.user, &free_bytes,
					      &total), 0);
	assert_int_equal(total, event.memory);
	assert_int_equal(total - free_bytes, event.in_use);
	assert_int_equal(event.in_use, 1030 * MIB);
	/* An older driver does not tell the whole. */
	fake.memory = 0;
	assert_int_equal(provider.device_info(provider.user, &free_bytes,
					      &total), 0);
	assert_int_equal(total, fake.capacity);
	assert_int_equal(flexmem_device_free(device, program.handle), 0);
}

/* Both figures come from one call: other processes allocate too. */
static void memory_is_one_call(void **state)
{
	unsigned int calls[FAKE_COMMANDS];
	unsigned int more = 0;
	uint64_t free_bytes;
	uint64_t total;
	unsigned int i;

	(void)state;
	create("");
	memcpy(calls, fake.calls, sizeof(calls));
	assert_int_equal(flexmem_cache_memory_info(cache, &free_bytes, &total),
			 0);
	for (i = 0; i < FAKE_COMMANDS; i++)
		more += fake.calls[i] - calls[i];
	assert_int_equal(more, 1);
}

/*
 * While a thread copies bytes of a segment, the segment cannot grow, so the
 * cache makes another segment.
 */
static void busy_segments(void **state)
{
	(void)state;
	create("expandable_segments:True");
	take(30 * MIB, 0);
	inject(FLEXMEM_CMD_RESIZE, 1, EBUSY);
	take(30 * MIB, 0);
	assert_int_equal(on_device().own_handles, 2);
	/* Any other error is passed to the caller. */
	inject(FLEXMEM_CMD_RESIZE, 1, ETIMEDOUT);
	assert_int_equal(flexmem_cache_alloc(cache, 30 * MIB, 0,
					     &(void *){ NULL }), -ETIMEDOUT);
}

/*
 * Memory that was lost in a reset serves no further requests. The stream gets
 * other memory.
 */
static void lost_segments(void **state)
{
	uint64_t released = UINT64_MAX;
	uint64_t live = UINT64_MAX;
	void *kept;
	void *end;

	(void)state;
	create("expandable_segments:True");
	kept = take(2 * MIB, 0);
	end = take(30 * MIB, 0);
	fake_lose();
	take(40 * MIB, 0);
	assert_int_equal(on_device().own_handles, 2);
	assert_int_equal(figures().num_device_grow, 1);
	/* The cache warns once. */
	assert_int_equal(atomic_exchange(&warnings, 0), 1);
	give(end);
	take(30 * MIB, 0);
	assert_int_equal(on_device().own_handles, 2);
	assert_int_equal(figures().num_device_grow, 2);
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 0);
	fake.level = FLEXMEM_PRESSURE_CRITICAL;
	fake.events = 1;
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released), 0);
	assert_int_equal(released, 0);
	/* A lost segment is freed with its last block. */
	give(kept);
	assert_int_equal(on_device().own_handles, 1);
	/*
	 * Memory is lost again. This time the caller tells the cache about the
	 * loss.
	 */
	fake_lose();
	assert_int_equal(flexmem_cache_drop_lost(cache, &live), 0);
	assert_int_equal(live, 70 * MIB);
	assert_int_equal(atomic_exchange(&warnings, 0), 1);
	take(2 * MIB, 0);
	assert_int_equal(on_device().own_handles, 2);
	/* The segment made after the reset is not lost. */
	assert_int_equal(flexmem_cache_drop_lost(cache, &live), 0);
	assert_int_equal(live, 70 * MIB);
	assert_int_equal(atomic_load(&warnings), 0);
}

/* Events of the device reach the cache. */
static void pressure_of_the_device(void **state)
{
	uint64_t released;

	(void)state;
	create("");
	give(take(30 * MIB, 0));
	fake.level = FLEXMEM_PRESSURE_CRITICAL;
	fake.events = 1;
	assert_int_equal(flexmem_cache_serve_pressure(cache, &released), 0);
	assert_int_equal(released, 30 * MIB);
	assert_int_equal(flexmem_cache_serve_pressure(cache, NULL), -EAGAIN);
}
#endif

#define DEVICE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DEVICE_TEST(fixed_segments),
		DEVICE_TEST(segment_grows_and_shrinks),
		DEVICE_TEST(segments_grow_side_by_side),
		DEVICE_TEST(growing_fills_the_device),
		DEVICE_TEST(bytes_of_blocks),
		DEVICE_TEST(mapped_segments_stay),
		DEVICE_TEST(memory_is_the_devices),
		DEVICE_TEST(out_of_memory),
		DEVICE_TEST(threads_with_fixed_segments),
		DEVICE_TEST(threads_with_growing_segments),
		DEVICE_TEST(forked_child_leaves_the_memory),
#ifndef ON_DEVICE
		DEVICE_TEST(memory_is_that_of_tensors),
		DEVICE_TEST(the_device_is_measured_as_by_events),
		DEVICE_TEST(memory_is_one_call),
		DEVICE_TEST(busy_segments),
		DEVICE_TEST(lost_segments),
		DEVICE_TEST(pressure_of_the_device),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
