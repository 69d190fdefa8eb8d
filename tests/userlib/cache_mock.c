// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "cache_mock.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

struct mock mock;

/*
 * Protects the mock, because the cache may make a segment while another thread
 * makes any other call.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Counts a call of the provider. Returns true if the call must fail. */
static bool counts(unsigned int *calls, unsigned int *left)
{
	bool fails;

	pthread_mutex_lock(&lock);
	++*calls;
	fails = *left;
	*left -= fails;
	pthread_mutex_unlock(&lock);
	return fails;
}

/* Counts down the calls that must still fail. Returns true if this one must. */
static bool fails(unsigned int *left)
{
	if (!*left)
		return false;
	--*left;
	return true;
}

/* Returns NULL for a segment that is not tracked. The caller holds the lock. */
static struct mock_segment *segment_of(uint64_t handle)
{
	size_t i;

	for (i = 0; i < MOCK_SEGMENTS; i++) {
		if (mock.segments[i].there &&
		    mock.segments[i].handle == handle)
			return &mock.segments[i];
	}
	return NULL;
}

static void segment_comes(uint64_t handle)
{
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < MOCK_SEGMENTS && mock.segments[i].there)
		i++;
	if (i < MOCK_SEGMENTS)
		mock.segments[i] = (struct mock_segment){
			.handle = handle,
			.there = true,
		};
	pthread_mutex_unlock(&lock);
}

static void segment_goes(uint64_t handle)
{
	struct mock_segment *segment;

	pthread_mutex_lock(&lock);
	segment = segment_of(handle);
	if (segment)
		segment->there = false;
	pthread_mutex_unlock(&lock);
}

static bool is_lost(uint64_t handle)
{
	const struct mock_segment *segment;
	bool lost;

	pthread_mutex_lock(&lock);
	segment = segment_of(handle);
	lost = segment && segment->lost;
	pthread_mutex_unlock(&lock);
	return lost;
}

static bool is_mapped(uint64_t handle)
{
	const struct mock_segment *segment;
	bool mapped;

	pthread_mutex_lock(&lock);
	segment = segment_of(handle);
	mapped = segment && segment->mapped;
	pthread_mutex_unlock(&lock);
	return mapped;
}

void mock_map(uint64_t handle, bool mapped)
{
	struct mock_segment *segment;

	pthread_mutex_lock(&lock);
	segment = segment_of(handle);
	assert_non_null(segment);
	segment->mapped = mapped;
	pthread_mutex_unlock(&lock);
}

void mock_lose(void)
{
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MOCK_SEGMENTS; i++)
		mock.segments[i].lost = mock.segments[i].there;
	pthread_mutex_unlock(&lock);
}

static int mock_lost(void *user, uint64_t handle)
{
	assert_ptr_equal(user, &mock);
	return mock.cannot_tell ? -ENODEV : is_lost(handle);
}

/*
 * The cache must pass a zeroed struct for the reason of a failure. Counts
 * structs that are not zeroed.
 */
static void look_at_reason(const struct flexmem_failure *failure)
{
	static const struct flexmem_failure none;
	unsigned int no = 0;

	if (memcmp(failure, &none, sizeof(none)))
		counts(&mock.stale_reasons, &no);
}

static int below_alloc(uint64_t bytes, uint64_t alignment, uint32_t flags,
		       struct flexmem_cache_memory *memory,
		       struct flexmem_failure *failure)
{
	int err = mock.below.alloc(mock.below.user, bytes, alignment, flags,
				   memory, failure);

	if (!err)
		segment_comes(memory->handle);
	return err;
}

static int mock_alloc(void *user, uint64_t bytes, uint64_t alignment,
		      uint32_t flags, struct flexmem_cache_memory *memory,
		      struct flexmem_failure *failure)
{
	assert_ptr_equal(user, &mock);
	assert_true(bytes && !(bytes % 128) && !(alignment % 128));
	pthread_mutex_lock(&lock);
	mock.last_alloc = bytes;
	mock.last_alignment = alignment;
	mock.last_flags = flags;
	pthread_mutex_unlock(&lock);
	look_at_reason(failure);
	if (mock.on_alloc)
		mock.on_alloc();
	if (counts(&mock.allocs, &mock.fail_allocs)) {
		*failure = mock.reason;
		return mock.error;
	}
	return below_alloc(bytes, alignment, flags, memory, failure);
}

static int mock_pressure(void *user, struct flexmem_pressure_event *event)
{
	int err = atomic_exchange(&mock.pressure_error, 0);
	ssize_t length;

	assert_ptr_equal(user, &mock);
	if (err)
		return err;
	length = read(mock.pipe[0], event, sizeof(*event));
	if (length < 0)
		return -errno;
	return length ? 0 : -ENODEV;
}

static int mock_pressure_fd(void *user)
{
	assert_ptr_equal(user, &mock);
	return mock.pipe[0];
}

void press(uint32_t level, uint64_t in_use, uint64_t memory)
{
	press_wanted(level, in_use, memory, 0);
}

void press_wanted(uint32_t level, uint64_t in_use, uint64_t memory,
		  uint64_t wanted)
{
	const struct flexmem_pressure_event event = {
		.level = level,
		.flags = mock.event_flags,
		.in_use = in_use,
		.memory = memory,
		.sequence = mock.sequence,
		.wanted = wanted,
	};

	assert_int_equal(write(mock.pipe[1], &event, sizeof(event)),
			 sizeof(event));
}

static int mock_free(void *user, uint64_t handle)
{
	int err;

	assert_ptr_equal(user, &mock);
	if (mock.on_free)
		mock.on_free();
	if (counts(&mock.frees, &mock.fail_frees))
		return mock.error;
	segment_goes(handle);
	err = mock.below.free(mock.below.user, handle);
	assert_int_equal(err, 0);
	return err;
}

static int mock_grow(void *user, uint64_t handle, uint64_t old_bytes,
		     uint64_t bytes, struct flexmem_failure *failure)
{
	assert_ptr_equal(user, &mock);
	assert_true(bytes > old_bytes);
	__atomic_store_n(&mock.grown_from, old_bytes, __ATOMIC_RELAXED);
	look_at_reason(failure);
	if (counts(&mock.grows, &mock.fail_grows)) {
		failure->limit = FLEXMEM_LIMIT_FRAGMENTATION;
		return mock.error;
	}
	if (is_lost(handle))
		return -EIO;
	return mock.below.grow(mock.below.user, handle, old_bytes, bytes,
			       failure);
}

static int mock_shrink(void *user, uint64_t handle, uint64_t old_bytes,
		       uint64_t bytes)
{
	assert_ptr_equal(user, &mock);
	assert_true(bytes && bytes < old_bytes);
	if (counts(&mock.shrinks, &mock.fail_frees))
		return mock.error;
	if (is_mapped(handle))
		return -EBUSY;
	if (is_lost(handle))
		return -EIO;
	return mock.below.shrink(mock.below.user, handle, old_bytes, bytes);
}

static int mock_info(void *user, uint64_t *free_bytes, uint64_t *total)
{
	uint64_t used;
	int err;

	assert_ptr_equal(user, &mock);
	atomic_fetch_add(&mock.infos, 1);
	if (mock.no_info)
		return -EOPNOTSUPP;
	err = mock.below.memory_info(mock.below.user, free_bytes, total);
	used = *total - *free_bytes;
	/*
	 * mock.total replaces the size of the provider's device. If mock.total
	 * is larger than that size, other processes use the additional bytes.
	 */
	if (mock.total && mock.total < *total)
		*free_bytes = mock.total > used ? mock.total - used : 0;
	if (mock.total)
		*total = mock.total;
	return err;
}

static int event_record(void *user, uint64_t stream, uint64_t *event)
{
	(void)user;
	if (fails(&mock.fail_records))
		return -EIO;
	assert_true(mock.events < MOCK_EVENTS);
	mock.streams[mock.events] = stream;
	*event = mock.events++;
	return 0;
}

static int event_query(void *user, uint64_t event)
{
	(void)user;
	assert_false(mock.destroyed[event]);
	mock.queries++;
	return mock.happened[event] ? 0 : -EAGAIN;
}

static int event_synchronize(void *user, uint64_t event)
{
	(void)user;
	assert_false(mock.destroyed[event]);
	mock.waits++;
	if (mock.on_wait)
		mock.on_wait();
	if (fails(&mock.fail_waits))
		return -EIO;
	mock.happened[event] = true;
	return 0;
}

static void event_destroy(void *user, uint64_t event)
{
	(void)user;
	assert_false(mock.destroyed[event]);
	mock.destroyed[event] = true;
	mock.destroys++;
}

static int device_synchronize(void *user)
{
	unsigned int i;

	(void)user;
	mock.device_waits++;
	if (mock.on_wait)
		mock.on_wait();
	if (fails(&mock.fail_waits))
		return -EIO;
	for (i = 0; i < mock.events; i++)
		mock.happened[i] = true;
	return 0;
}

const struct flexmem_cache_events mock_events = {
	.record = event_record,
	.query = event_query,
	.synchronize = event_synchronize,
	.destroy = event_destroy,
	.synchronize_device = device_synchronize,
};

static int event_wait(void *user, uint64_t stream, uint64_t event)
{
	(void)user;
	mock.stream_waits++;
	mock.waiting_stream = stream;
	mock.waited_event = event;
	return 0;
}

static void keep_log(enum flexmem_log_level level, const char *text, void *user)
{
	size_t length = strlen(mock.log);

	(void)user;
	if (level == FLEXMEM_LOG_WARNING)
		mock.warnings++;
	snprintf(mock.log + length, sizeof(mock.log) - length, "%s\n", text);
}

int mock_setup(void **state)
{
	memset(&mock, 0, sizeof(mock));
	mock.capacity = GIB;
	mock.error = -ENOMEM;
	mock.reason.limit = FLEXMEM_LIMIT_SLOTS;
	unsetenv("FLEXMEM_ALLOC_CONF");
	unsetenv("MINDTORCH_NPU_ALLOC_CONF");
	unsetenv("PYTORCH_ALLOC_CONF");
	unsetenv("PYTORCH_CUDA_ALLOC_CONF");
	return setup(state);
}

int mock_teardown(void **state)
{
	uint64_t free_bytes;
	uint64_t total;

	(void)state;
	assert_int_equal(mock.events, mock.destroys);
	assert_int_equal(mock.stale_reasons, 0);
	if (mock.has_pressure) {
		close(mock.pipe[0]);
		if (mock.pipe[1] >= 0)
			close(mock.pipe[1]);
	}
	if (!mock.flat)
		return 0;
	assert_int_equal(mock.below.memory_info(mock.below.user, &free_bytes,
						&total), 0);
	assert_int_equal(free_bytes, total);
	flexmem_cache_flat_destroy(mock.flat);
	return 0;
}

struct flexmem_cache_options mock_options(const char *configuration)
{
	static struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = configuration,
		.log = keep_log,
		.level = FLEXMEM_LOG_WARNING,
	};

	provider = (struct flexmem_cache_provider){
		.alloc = mock_alloc,
		.free = mock_free,
		.grow = mock.no_growth ? NULL : mock_grow,
		.shrink = mock.no_growth ? NULL : mock_shrink,
		.memory_info = mock_info,
		.user = &mock,
		.lost = mock_lost,
	};
	if (mock.has_pressure) {
		provider.pressure = mock_pressure;
		provider.pressure_fd = mock_pressure_fd;
		if (!mock.pipe[1])
			assert_int_equal(pipe2(mock.pipe, O_NONBLOCK), 0);
	}
	if (!mock.flat)
		assert_int_equal(flexmem_cache_flat_create(&mock.flat,
							   mock.capacity,
							   &mock.below,
							   sizeof(mock.below)),
				 0);
	return options;
}

static struct flexmem_cache *create(struct flexmem_cache_options options)
{
	struct flexmem_cache *cache = NULL;

	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	return cache;
}

struct flexmem_cache *mock_cache(const char *configuration)
{
	return create(mock_options(configuration));
}

struct flexmem_cache *mock_cache_events(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);

	options.events = &mock_events;
	options.events_size = sizeof(mock_events);
	return create(options);
}

struct flexmem_cache *mock_cache_waits(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);
	struct flexmem_cache_events events = mock_events;

	events.wait = event_wait;
	options.events = &events;
	options.events_size = sizeof(events);
	return create(options);
}

void *take(struct flexmem_cache *cache, uint64_t bytes, uint64_t stream)
{
	void *token = NULL;

	assert_int_equal(flexmem_cache_alloc(cache, bytes, stream, &token), 0);
	assert_non_null(token);
	return token;
}

void give(struct flexmem_cache *cache, void *token)
{
	assert_int_equal(flexmem_cache_free(cache, token), 0);
}

void use(struct flexmem_cache *cache, void *token, uint64_t stream)
{
	assert_int_equal(flexmem_cache_record_stream(cache, token, stream), 0);
}

struct flexmem_cache_statistics figures(struct flexmem_cache *cache)
{
	struct flexmem_cache_statistics statistics;

	assert_int_equal(flexmem_cache_statistics(cache, &statistics,
						  sizeof(statistics)), 0);
	return statistics;
}

struct flexmem_cache_allocation lookup(struct flexmem_cache *cache,
				       const void *token)
{
	struct flexmem_cache_allocation allocation;

	assert_int_equal(flexmem_cache_lookup(cache, token, &allocation,
					      sizeof(allocation), NULL), 0);
	return allocation;
}

uint64_t place(struct flexmem_cache *cache, const void *token)
{
	return lookup(cache, token).address.offset;
}

int try_alloc(struct flexmem_cache *cache, uint64_t bytes)
{
	void *token = NULL;
	int err = flexmem_cache_alloc(cache, bytes, 0, &token);

	assert_true(err ? !token : token != NULL);
	return err;
}

void expect_counters(struct flexmem_cache *cache, uint64_t first_failures,
		     uint64_t retries, uint64_t ooms)
{
	struct flexmem_cache_statistics f = figures(cache);

	assert_int_equal(f.num_first_failures, first_failures);
	assert_int_equal(f.num_alloc_retries, retries);
	assert_int_equal(f.num_ooms, ooms);
}

void three_free(struct flexmem_cache *cache)
{
	void *tokens[3];
	uint64_t i;

	for (i = 0; i < 3; i++)
		tokens[i] = take(cache, (i + 1) * 20 * MIB, 9);
	for (i = 0; i < 3; i++)
		give(cache, tokens[i]);
	mock.allocs = 0;
}
