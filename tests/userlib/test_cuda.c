// SPDX-License-Identifier: GPL-2.0
/* The library for NVIDIA GPUs, over a stand-in for CUDA's driver. */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"
#include "fake_cuda.h"

#define PAGE FLEXMEM_CUDA_PAGE
#define OTHER 999
#define OUT_OF_MEMORY 2
#define ILLEGAL_ADDRESS 700

static int setup_cuda(void **state)
{
	(void)state;
	fake_cuda_reset(GIB);
	return 0;
}

/* Everything that a test has used is with the driver again. */
static int teardown_cuda(void **state)
{
	int i;

	(void)state;
	fake_cuda_fail(0, 0);
	for (i = 0; i < FAKE_CUDA_DEVICES; i++) {
		fake_cuda_crash(i, 0);
		flexmem_cuda_set_limit(i, UINT64_MAX);
		flexmem_cuda_set_setting(i, "expandable_segments", "False");
	}
	assert_int_equal(flexmem_cuda_empty(), 0);
	for (i = 0; i < FAKE_CUDA_DEVICES; i++)
		assert_int_equal(fake_cuda_used(i), 0);
	assert_int_equal(fake_cuda_events(), 0);
	assert_true(fake_cuda_balanced());
	return 0;
}

static void *take(uint64_t bytes, int device, void *stream)
{
	void *pointer = NULL;

	assert_int_equal(flexmem_cuda_alloc(bytes, device, stream, &pointer),
			 0);
	return pointer;
}

static void give(void *pointer, int device)
{
	assert_int_equal(flexmem_cuda_free(pointer, 0, device, NULL), 0);
}

static void expect_text(const char *part)
{
	char text[1024];

	assert_int_equal(flexmem_cuda_error_text(text, sizeof(text)), 0);
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void grows(int device)
{
	assert_int_equal(flexmem_cuda_set_setting(device, "expandable_segments",
						  "True"), 0);
}

#define GROWING "expandable_segments:True"

/* A cache of one's own over the provider. */
static struct flexmem_cache *own_cache(const char *configuration)
{
	const struct flexmem_cache_profile profile = {
		.granule = 512,
		.growing_step = PAGE,
	};
	struct flexmem_cache_provider provider;
	struct flexmem_cache_events events;
	const struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.events = &events,
		.events_size = sizeof(events),
		.profile = &profile,
		.profile_size = sizeof(profile),
		.configuration = configuration,
	};
	struct flexmem_cache *cache;

	assert_int_equal(flexmem_cuda_provider(0, &provider, sizeof(provider),
					       &events, sizeof(events)), 0);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	return cache;
}

/* Runs in a child, because the driver is loaded once. */
static int without_driver(void)
{
	char text[1024];
	void *pointer;

	setenv("FLEXMEM_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
	if (flexmem_cuda_alloc(1, 0, NULL, &pointer) != -ENODEV ||
	    flexmem_cuda_malloc(1, 0, NULL) ||
	    flexmem_cuda_error_text(text, sizeof(text)))
		return 1;
	return !strstr(text, "/nonexistent/libcuda.so.1");
}

static int status_of(int (*function)(void))
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(function());
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* Must be the first test: the others load the stand-in. */
static void no_driver(void **state)
{
	(void)state;
	assert_int_equal(status_of(without_driver), 0);
}

static void no_device(void **state)
{
	void *pointer;

	(void)state;
	assert_int_equal(flexmem_cuda_alloc(1, -1, NULL, &pointer), -ENODEV);
	assert_int_equal(flexmem_cuda_alloc(1, 64, NULL, &pointer), -ENODEV);
	assert_int_equal(flexmem_cuda_alloc(1, 2, NULL, &pointer), -ENODEV);
	expect_text("cuDeviceGet");
	assert_null(flexmem_cuda_malloc(1, 2, NULL));
	assert_int_equal(flexmem_cuda_free((void *)512, 0, 5, NULL), -EINVAL);
}

static void bytes_of_fixed_segments(void **state)
{
	unsigned char *a, *b;

	(void)state;
	a = take(1000, 0, NULL);
	b = take(3 * MIB, 0, NULL);
	assert_int_equal((uintptr_t)a % 512, 0);
	memset(a, 1, 1000);
	memset(b, 2, 3 * MIB);
	assert_int_equal(a[999], 1);
	assert_int_equal(fake_cuda_used(0), 2 * MIB + 20 * MIB);
	assert_null(take(0, 0, NULL));
	give(NULL, 0);
	give(a, 0);
	give(b, 0);
	assert_ptr_equal(take(1000, 0, NULL), a);
	give(a, 0);
}

static void growing_segments_grow_and_shrink(void **state)
{
	struct flexmem_cuda_calls calls;
	unsigned char *a, *b, *c;

	(void)state;
	grows(0);
	a = take(10 * MIB, 0, NULL);
	assert_int_equal(fake_cuda_used(0), PAGE);
	b = take(30 * MIB, 0, NULL);
	assert_int_equal(fake_cuda_used(0), 2 * PAGE);
	assert_ptr_equal(b, a + 10 * MIB);
	c = take(100 * MIB, 0, NULL);
	assert_int_equal(fake_cuda_used(0), 7 * PAGE);
	memset(a, 1, 140 * MIB);
	give(c, 0);
	assert_int_equal(flexmem_cuda_empty(), 0);
	assert_int_equal(fake_cuda_used(0), 2 * PAGE);
	assert_int_equal(a[40 * MIB - 1], 1);
	assert_int_equal(flexmem_cuda_driver_calls(0, &calls, sizeof(calls)), 0);
	assert_true(calls.pages >= 7 && calls.nanoseconds >= calls.longest);
	give(a, 0);
	give(b, 0);
}

static void wrong_pointers(void **state)
{
	unsigned char *a = take(1000, 0, NULL);
	void *b = take(1000, 1, NULL);

	(void)state;
	assert_int_equal(flexmem_cuda_free(a + 512, 0, 0, NULL), -EINVAL);
	assert_int_equal(flexmem_cuda_free(a + 1, 0, 0, NULL), -EINVAL);
	assert_int_equal(flexmem_cuda_free((void *)-512, 0, 0, NULL), -EINVAL);
	/* Both caches give the same token. */
	assert_int_equal(flexmem_cuda_free(a, 0, 1, NULL), -EINVAL);
	expect_text("no allocation of device 1");
	assert_int_equal(flexmem_cuda_record_stream(a + 512, NULL), -EINVAL);
	assert_int_equal(flexmem_cuda_record_stream(NULL, NULL), 0);
	give(a, 0);
	assert_int_equal(flexmem_cuda_free(a, 0, 0, NULL), -EINVAL);
	give(b, 1);
}

/* Memory that another stream uses is free when the work there is done. */
static void streams_of_two_devices(void **state)
{
	int device;

	(void)state;
	for (device = 0; device < FAKE_CUDA_DEVICES; device++) {
		void *own = fake_cuda_stream(device);
		void *other = fake_cuda_stream(device);
		unsigned char *a = take(4 * MIB, device, own);
		void *rest[2] = { take(16 * MIB, device, own) };
		void *b;

		fake_cuda_fill(other, a, 4 * MIB, 7);
		assert_int_equal(flexmem_cuda_record_stream(a, other), 0);
		give(a, device);
		assert_int_equal(fake_cuda_events(), 1);
		/* The segment of 20 MiB is full, so the cache asks for the event. */
		b = take(4 * MIB, device, own);
		assert_int_equal(fake_cuda_used(device), 40 * MIB);
		fake_cuda_run(other);
		assert_int_equal(a[0], 7);
		rest[1] = take(16 * MIB, device, own);
		assert_ptr_equal(take(4 * MIB, device, own), a);
		assert_int_equal(fake_cuda_used(device), 40 * MIB);
		give(a, device);
		give(b, device);
		give(rest[0], device);
		give(rest[1], device);
		assert_int_equal(flexmem_cuda_empty(), 0);
		assert_int_equal(fake_cuda_used(device), 0);
		assert_int_equal(fake_cuda_events(), 0);
	}
}

/* A stream waits on the GPU for the stream whose memory it gets. */
static void a_stream_waits_for_another(void **state)
{
	struct flexmem_cache *cache = own_cache(GROWING ",reuse:wait");
	void *streams[2] = { fake_cuda_stream(0), fake_cuda_stream(0) };
	struct flexmem_virtual_address places[2];
	unsigned char *bytes;
	void *token;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(flexmem_cache_alloc(cache, 40 * MIB,
						     (uintptr_t)streams[i],
						     &token), 0);
		assert_int_equal(flexmem_cache_address(cache, token,
						       &places[i]), 0);
		bytes = (unsigned char *)(uintptr_t)places[i].offset;
		fake_cuda_fill(streams[i], bytes, 40 * MIB, i + 1);
		assert_int_equal(flexmem_cache_free(cache, token), 0);
	}
	assert_int_equal(places[0].offset, places[1].offset);
	/* The work of the first stream runs first, and the host did not wait. */
	fake_cuda_run(streams[1]);
	fake_cuda_run(streams[0]);
	assert_int_equal(bytes[0], 2);
	assert_int_equal(fake_cuda_waits(), 0);
	flexmem_cache_destroy(cache);
	assert_int_equal(fake_cuda_events(), 0);
}

/* Pages that queued work uses are not unmapped before it is done. */
static void empty_waits_for_the_device(void **state)
{
	void *stream = fake_cuda_stream(0);
	unsigned char *a;

	(void)state;
	grows(0);
	a = take(50 * MIB, 0, stream);
	fake_cuda_fill(stream, a, 50 * MIB, 1);
	give(a, 0);
	assert_int_equal(flexmem_cuda_empty(), 0);
	assert_int_equal(fake_cuda_used(0), 0);
	assert_true(fake_cuda_waits() > 0);
}

static void out_of_memory_at_each_size(void **state)
{
	void *taken[64];
	uint64_t total;
	int growing;
	int n;

	(void)state;
	/* The library asks for the device's size when it first uses it. */
	give(take(1, 0, NULL), 0);
	assert_int_equal(flexmem_cuda_empty(), 0);
	for (growing = 0; growing < 2; growing++) {
		if (growing)
			grows(0);
		for (total = 2 * MIB; total < 200 * MIB; total += 7 * MIB) {
			void *pointer;
			int err = 0;

			fake_cuda_reset(total);
			for (n = 0; !err; n += !err)
				err = flexmem_cuda_alloc(9 * MIB, 0, NULL,
							 &taken[n]);
			assert_int_equal(err, -ENOMEM);
			expect_text("out of device memory");
			/*
			 * Two in each segment of 20 MiB, or all in one segment;
			 * and one in what is left, of which it takes 10 MiB.
			 */
			assert_int_equal(n, (growing ? total / PAGE * PAGE / (9 * MIB) :
						       total / PAGE * 2) +
					    (total % PAGE >= 10 * MIB));
			assert_true(fake_cuda_peak(0) <= total);
			while (n)
				give(taken[--n], 0);
			assert_int_equal(flexmem_cuda_alloc(total + 1, 0, NULL,
							    &pointer), -ENOMEM);
			assert_int_equal(flexmem_cuda_empty(), 0);
			assert_int_equal(fake_cuda_used(0), 0);
		}
	}
}

static void a_limit_in_bytes(void **state)
{
	void *pointer;
	void *a;

	(void)state;
	grows(0);
	assert_int_equal(flexmem_cuda_set_limit(0, 0), -EINVAL);
	assert_int_equal(flexmem_cuda_set_limit(0, 3 * PAGE), 0);
	a = take(3 * PAGE, 0, NULL);
	assert_int_equal(flexmem_cuda_alloc(1, 0, NULL, &pointer), -ENOMEM);
	expect_text("60.0 MiB");
	give(a, 0);
	assert_int_equal(flexmem_cuda_set_limit(0, 3 * PAGE - 1), 0);
	assert_int_equal(flexmem_cuda_empty(), 0);
	assert_int_equal(flexmem_cuda_alloc(3 * PAGE, 0, NULL, &pointer),
			 -ENOMEM);
	assert_int_equal(flexmem_cuda_set_memory_fraction(1.5, 0), -EINVAL);
	assert_int_equal(flexmem_cuda_set_memory_fraction(1.0, 0), 0);
	give(take(3 * PAGE, 0, NULL), 0);
}

/*
 * Work that takes each kind of call of the driver: segments that are made, grow,
 * shrink and go, and memory that waits for an event.
 */
static void use_everything(struct flexmem_cache *cache)
{
	void *stream = fake_cuda_stream(0);
	void *tokens[4] = { NULL };
	int i;

	for (i = 0; i < 4; i++)
		flexmem_cache_alloc(cache, 30 * MIB, 0, &tokens[i]);
	flexmem_cache_record_stream(cache, tokens[3], (uintptr_t)stream);
	for (i = 3; i > 0; i--)
		flexmem_cache_free(cache, tokens[i]);
	flexmem_cache_empty(cache, NULL);
	flexmem_cache_alloc(cache, 100 * MIB, (uintptr_t)stream, &tokens[1]);
	flexmem_cache_free(cache, tokens[1]);
	flexmem_cache_free(cache, tokens[0]);
	flexmem_cache_empty(cache, NULL);
}

/*
 * The provider can do nothing if the driver does not let a context go, or what
 * is not needed any more.
 */
static bool loses(const char *call)
{
	return !strcmp(call, "cuCtxPopCurrent_v2") ||
	       !strcmp(call, "cuThreadExchangeStreamCaptureMode") ||
	       !strcmp(call, "cuMemRelease") ||
	       !strcmp(call, "cuEventDestroy_v2");
}

/* One call of the driver fails. The memory comes back all the same. */
static void each_call_fails(void **state)
{
	static const char *const configurations[] = { "", GROWING,
						      GROWING ",reuse:wait" };
	unsigned int at, last;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (at = 1, last = at; at <= last; at++) {
			struct flexmem_cache *cache =
				own_cache(configurations[i]);
			const char *failed;

			fake_cuda_fail(at, at % 2 ? OTHER : OUT_OF_MEMORY);
			use_everything(cache);
			last = fake_cuda_calls();
			failed = fake_cuda_failed();
			fake_cuda_fail(0, 0);
			flexmem_cache_destroy(cache);
			if (!failed || strcmp(failed, "cuCtxPopCurrent_v2"))
				assert_int_equal(fake_cuda_contexts(), 0);
			if (failed && loses(failed)) {
				fake_cuda_revive();
				continue;
			}
			assert_int_equal(fake_cuda_used(0), 0);
			assert_true(fake_cuda_balanced());
			/* Without a context an event cannot be destroyed. */
			if (failed && !strcmp(failed, "cuCtxPushCurrent_v2"))
				fake_cuda_revive();
			assert_int_equal(fake_cuda_events(), 0);
		}
		assert_true(at > 40);
	}
}

static int accept_all(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 1;
}

static void a_graph_is_captured(void **state)
{
	unsigned char *a, *b;

	(void)state;
	grows(0);
	b = take(50 * MIB, 0, NULL);
	give(b, 0);
	assert_int_equal(flexmem_cuda_pool_end(0, 1, 0), -ENOENT);
	assert_int_equal(flexmem_cuda_pool_release(0, 1, 0), -ENOENT);
	assert_int_equal(flexmem_cuda_pool_begin(0, 1, 0, accept_all, NULL), 0);
	assert_int_equal(flexmem_cuda_pool_begin(0, 1, 0, accept_all, NULL),
			 -EEXIST);
	fake_cuda_capture(true);
	a = take(10 * MIB, 0, NULL);
	assert_ptr_not_equal(a, b);
	give(a, 0);
	/* Memory cannot go back now, and nothing may break the capture. */
	flexmem_cuda_empty();
	fake_cuda_capture(false);
	assert_int_equal(flexmem_cuda_pool_end(0, 1, 0), 0);
	/* The graph may use the memory of its pool until the pool is released. */
	assert_int_equal(flexmem_cuda_empty(), 0);
	assert_int_equal(fake_cuda_used(0), PAGE);
	assert_int_equal(flexmem_cuda_pool_begin(0, 1, 0, accept_all, NULL), 0);
	assert_int_equal(flexmem_cuda_pool_release(0, 1, 0), 0);
	assert_int_equal(flexmem_cuda_pool_release(0, 1, 0), 0);
	assert_int_equal(flexmem_cuda_pool_release(0, 1, 0), -ENOENT);
	assert_int_equal(flexmem_cuda_pool_end(0, 1, 0), 0);
	assert_int_equal(flexmem_cuda_empty(), 0);
	assert_int_equal(fake_cuda_used(0), 0);
}

/* After the crash of a kernel the memory is lost, and every call says so. */
static void a_kernel_crashes(void **state)
{
	struct flexmem_cache *cache;
	uint64_t live;
	void *pointer;
	void *token;
	int growing;

	(void)state;
	for (growing = 0; growing < 2; growing++) {
		cache = own_cache(growing ? GROWING : "");
		assert_int_equal(flexmem_cache_alloc(cache, 50 * MIB, 0,
						     &token), 0);
		fake_cuda_crash(0, ILLEGAL_ADDRESS);
		assert_int_equal(flexmem_cuda_alloc(50 * MIB, 0, NULL,
						    &pointer), -EIO);
		expect_text("cuMem");
		expect_text("(700)");
		assert_int_equal(flexmem_cache_drop_lost(cache, &live), 0);
		assert_int_equal(live, 50 * MIB);
		assert_int_equal(flexmem_cache_free(cache, token), 0);
		flexmem_cache_destroy(cache);
		fake_cuda_revive();
	}
}

/* Threads. Each thread writes its number to its memory, and finds it there. */

#define THREADS 4
#define ROUNDS 500
#define KEPT 8

static atomic_uint failures;

static void *work(void *argument)
{
	unsigned char number = (unsigned char)(uintptr_t)argument;
	unsigned int seed = number;
	unsigned char *kept[KEPT] = { NULL };
	size_t bytes[KEPT];
	int device[KEPT];
	int i;

	for (i = 0; i < ROUNDS + KEPT; i++) {
		int at = i % KEPT;

		if (kept[at] && (kept[at][0] != number ||
				 kept[at][bytes[at] - 1] != number ||
				 flexmem_cuda_free(kept[at], 0, device[at],
						   NULL)))
			atomic_fetch_add(&failures, 1);
		kept[at] = NULL;
		if (i >= ROUNDS)
			continue;
		seed = seed * 1664525 + 1013904223;
		bytes[at] = (seed >> 8) % (i % 16 ? 5000 : 3 * MIB) + 1;
		device[at] = (int)(seed >> 4) % FAKE_CUDA_DEVICES;
		kept[at] = flexmem_cuda_malloc((ptrdiff_t)bytes[at], device[at],
					       NULL);
		if (!kept[at]) {
			atomic_fetch_add(&failures, 1);
			continue;
		}
		kept[at][0] = number;
		kept[at][bytes[at] - 1] = number;
	}
	if (!fake_cuda_balanced())
		atomic_fetch_add(&failures, 1);
	return NULL;
}

static void threads_on_two_devices(void **state)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	(void)state;
	grows(0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work,
						(void *)(i + 1)), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(failures, 0);
}

static void *kept;

static int use_in_child(void)
{
	void *pointer;

	return flexmem_cuda_alloc(1000, 0, NULL, &pointer) != -ECHILD ||
	       flexmem_cuda_malloc(1000, 0, NULL) ||
	       flexmem_cuda_empty() != -ECHILD ||
	       flexmem_cuda_free(kept, 0, 0, NULL) == 0;
}

static void a_child_cannot_use_the_memory(void **state)
{
	(void)state;
	kept = take(1000, 0, NULL);
	assert_int_equal(status_of(use_in_child), 0);
	give(kept, 0);
}

static void a_snapshot(void **state)
{
	struct flexmem_cache_statistics s;
	void *a = take(5000, 1, NULL);
	size_t length;
	char *text;

	(void)state;
	assert_int_equal(flexmem_cuda_snapshot(1, &text, &length), 0);
	assert_int_equal(strlen(text), length);
	assert_non_null(strstr(text, "\"segments\""));
	flexmem_cuda_text_free(text);
	assert_int_equal(flexmem_cuda_reset_peaks(1), 0);
	assert_int_equal(flexmem_cuda_statistics(1, &s, sizeof(s)), 0);
	assert_int_equal(s.allocated_bytes[0].peak, 5120);
	assert_int_equal(flexmem_cuda_driver_calls(1, NULL, 0), -EINVAL);
	assert_int_equal(flexmem_cuda_provider(1, NULL, 0, NULL, 0), -EINVAL);
	give(a, 1);
}

#define CUDA_TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup_cuda, teardown_cuda)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_driver),
		CUDA_TEST(no_device),
		CUDA_TEST(bytes_of_fixed_segments),
		CUDA_TEST(growing_segments_grow_and_shrink),
		CUDA_TEST(wrong_pointers),
		CUDA_TEST(streams_of_two_devices),
		CUDA_TEST(a_stream_waits_for_another),
		CUDA_TEST(empty_waits_for_the_device),
		CUDA_TEST(out_of_memory_at_each_size),
		CUDA_TEST(a_limit_in_bytes),
		CUDA_TEST(each_call_fails),
		CUDA_TEST(a_graph_is_captured),
		CUDA_TEST(a_kernel_crashes),
		CUDA_TEST(threads_on_two_devices),
		CUDA_TEST(a_child_cannot_use_the_memory),
		CUDA_TEST(a_snapshot),
	};

	setenv("FLEXMEM_CUDA_DRIVER", FAKE_CUDA, 1);
	unsetenv("FLEXMEM_ALLOC_CONF");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
