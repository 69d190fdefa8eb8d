// SPDX-License-Identifier: GPL-2.0
/*
 * Several processes ask at the same moment for what a neighbour's cache keeps
 * idle. Each process is a thread with a cache of its own. The clock moves only
 * when all threads sleep, and then to the time of the next thing that happens.
 * So one thread runs at a time, and each run is like the others.
 */
#include "cache_mock.h"

#include <pthread.h>
#include <time.h>

#include "cache/cache.h"

#define MS 1000000
#define NEVER INT64_MAX
#define PROCESSES 10
#define CAPACITY (64 * GIB)
#define PIECE (256 * MIB)
#define PIECES 256
#define HANDLES 1024
#define NOWHERE UINT64_MAX

/*
 * As in the driver: an event at most each 100 ms, for the sum of the wishes; of
 * each process only the largest counts, and none once an ALLOC has succeeded.
 */
#define EVENT_MS 100
#define LOOK_MS 100

/*
 * @own: the bytes of the process
 * @wakes: when its thread goes on; NEVER: the thread has ended
 * @runs: whether it is the thread that runs now
 * @wish, @wish_at: its last wish, and the number of the event that tells it
 * @read_at: the number of the last event of which it knows all but @unread
 */
struct process {
	struct flexmem_cache *cache;
	uint64_t own;
	pthread_t thread;
	int64_t wakes;
	bool runs;
	uint64_t bytes;
	int result;
	uint64_t wish;
	uint64_t wish_at;
	uint64_t read_at;
	uint64_t unread;
};

struct extent {
	uint64_t begin;
	uint64_t end;
};

/*
 * @regions: how many regions of equal size the memory has; 0: an allocation can
 * be in pieces
 * @extents: what is allocated, by address
 * @answer_ms: how long after an event the caches answer
 * @answer_at: when they answer next, or NEVER
 */
static struct {
	struct process processes[PROCESSES];
	size_t count;
	uint64_t regions;
	struct extent extents[HANDLES];
	size_t extent_count;
	uint64_t used;
	int64_t answer_ms;
	int64_t answer_at;
	/* There is to be an event; its wishes, and those of the last one. */
	bool wanted;
	uint64_t next;
	uint64_t told;
	int64_t last_event;
	uint64_t sequence;
} device;

static int64_t now_ns;
static pthread_mutex_t baton = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static bool scheduler_runs = true;
static _Thread_local struct process *self;

int __real_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, time);
	time->tv_sec = now_ns / 1000 / MS;
	time->tv_nsec = now_ns % (1000 * (int64_t)MS);
	return 0;
}

static void wait_for(const bool *runs)
{
	while (!*runs)
		pthread_cond_wait(&passed, &baton);
}

/* The thread of a process sleeps until @time, or ends with NEVER. */
static void sleep_until(int64_t time)
{
	pthread_mutex_lock(&baton);
	self->wakes = time;
	self->runs = false;
	scheduler_runs = true;
	pthread_cond_broadcast(&passed);
	if (time != NEVER)
		wait_for(&self->runs);
	pthread_mutex_unlock(&baton);
}

int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *until, struct timespec *left)
{
	(void)clock;
	(void)flags;
	(void)left;
	sleep_until(until->tv_sec * 1000 * (int64_t)MS + until->tv_nsec);
	return 0;
}

/* What a process has not read yet of the wishes of others. */
static uint64_t unread(const struct process *process)
{
	if (process->read_at == device.sequence)
		return process->unread;
	return device.told -
	       (process->wish_at == device.sequence ? process->wish : 0);
}

static void wish(struct process *by, uint64_t bytes)
{
	by->unread = unread(by);
	by->read_at = device.sequence;
	if (by->wish_at == device.sequence + 1) {
		device.next -= by->wish;
		bytes = bytes > by->wish ? bytes : by->wish;
	}
	by->wish_at = device.sequence + 1;
	by->wish = bytes;
	device.next += bytes;
	device.wanted = true;
}

/* An ALLOC has succeeded, so the process lacks no such memory any more. */
static void withdraw(struct process *by, uint64_t bytes)
{
	if (by->wish_at <= device.sequence || bytes < by->wish)
		return;
	device.next -= by->wish;
	by->wish = 0;
	by->wish_at = 0;
}

static uint64_t region_size(void)
{
	return device.regions ? CAPACITY / device.regions : NOWHERE;
}

/*
 * The smallest hole of a region with at least @bytes, and the free bytes of the
 * region.
 */
static struct extent best_hole(uint64_t region, uint64_t bytes,
			       uint64_t *free_bytes)
{
	const uint64_t size = region_size();
	const struct extent *end = device.extents + device.extent_count;
	const struct extent *next = device.extents;
	struct extent hole = { .begin = region * size };
	struct extent best = { NOWHERE, NOWHERE };

	*free_bytes = 0;
	while (next < end && next->begin < hole.begin)
		next++;
	for (;; hole.begin = next++->end) {
		hole.end = next < end && next->begin < (region + 1) * size ?
			   next->begin : (region + 1) * size;
		*free_bytes += hole.end - hole.begin;
		if (hole.end - hole.begin >= bytes &&
		    (best.begin == NOWHERE ||
		     hole.end - hole.begin < best.end - best.begin))
			best = hole;
		if (hole.end == (region + 1) * size)
			return best;
	}
}

/* As in the driver: the region with the most free bytes, there the best hole. */
static uint64_t find_place(uint64_t bytes)
{
	uint64_t found = NOWHERE;
	struct extent hole;
	uint64_t most = 0;
	uint64_t left;
	uint64_t i;

	if (!device.regions && bytes <= CAPACITY - device.used)
		return device.extent_count ?
		       device.extents[device.extent_count - 1].end : 0;
	for (i = 0; i < device.regions; i++) {
		hole = best_hole(i, bytes, &left);
		if (hole.begin != NOWHERE && left > most) {
			most = left;
			found = hole.begin;
		}
	}
	return found;
}

/* The first extent that begins at @begin or above. */
static struct extent *extent_from(uint64_t begin)
{
	struct extent *extent = device.extents;

	while (extent < device.extents + device.extent_count &&
	       extent->begin < begin)
		extent++;
	return extent;
}

static void occupy(uint64_t begin, uint64_t bytes)
{
	struct extent *extent = extent_from(begin);

	assert_true(device.extent_count < HANDLES);
	memmove(extent + 1, extent,
		(size_t)(device.extents + device.extent_count++ - extent) *
		sizeof(*extent));
	*extent = (struct extent){ begin, begin + bytes };
	device.used += bytes;
}

static enum flexmem_limit reason(uint64_t bytes)
{
	if (bytes > region_size())
		return FLEXMEM_LIMIT_REGION_SIZE;
	return bytes > CAPACITY - device.used ? FLEXMEM_LIMIT_CAPACITY :
						FLEXMEM_LIMIT_FRAGMENTATION;
}

static int alloc(void *user, uint64_t bytes, uint64_t alignment, uint32_t flags,
		 struct flexmem_cache_memory *memory,
		 struct flexmem_failure *failure)
{
	struct process *process = user;
	uint64_t begin = find_place(bytes);

	(void)alignment;
	(void)flags;
	if (begin == NOWHERE) {
		*failure = (struct flexmem_failure){
			.limit = reason(bytes),
			.own_used = process->own,
			.quota = FLEXMEM_UNLIMITED,
			.quota_left = FLEXMEM_UNLIMITED,
		};
		if (failure->limit != FLEXMEM_LIMIT_REGION_SIZE)
			wish(process, bytes);
		return -ENOMEM;
	}
	withdraw(process, bytes);
	occupy(begin, bytes);
	process->own += bytes;
	memory->handle = begin;
	memory->address.region_id = begin / region_size() + 1;
	memory->address.offset = begin % region_size();
	return 0;
}

static int release(void *user, uint64_t handle)
{
	struct process *process = user;
	struct extent *extent = extent_from(handle);
	uint64_t bytes = extent->end - extent->begin;

	device.used -= bytes;
	process->own -= bytes;
	memmove(extent, extent + 1,
		(size_t)(device.extents + device.extent_count-- - extent - 1) *
		sizeof(*extent));
	return 0;
}

static int info(void *user, uint64_t *free_bytes, uint64_t *total)
{
	(void)user;
	*free_bytes = CAPACITY - device.used;
	*total = CAPACITY;
	return 0;
}

static int read_event(void *user, struct flexmem_pressure_event *event)
{
	struct process *process = user;
	uint64_t wanted = unread(process);

	process->unread = 0;
	process->read_at = device.sequence;
	*event = (struct flexmem_pressure_event){
		.in_use = device.used,
		.memory = CAPACITY,
		.sequence = device.sequence,
		.wanted = wanted < CAPACITY ? wanted : CAPACITY,
		.flags = FLEXMEM_TELLS_WANTED,
	};
	return wanted ? 0 : -EAGAIN;
}

static int no_descriptor(void *user)
{
	(void)user;
	return -1;
}

static struct process *begin(void)
{
	struct process *process = &device.processes[device.count++];
	const struct flexmem_cache_provider provider = {
		.alloc = alloc,
		.free = release,
		.memory_info = info,
		.user = process,
		.pressure = read_event,
		.pressure_fd = no_descriptor,
	};
	const struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = "",
	};

	process->wakes = NEVER;
	assert_int_equal(flexmem_cache_create(&process->cache, &options,
					      sizeof(options)), 0);
	return process;
}

static void *ask(void *argument)
{
	void *token;

	self = argument;
	pthread_mutex_lock(&baton);
	wait_for(&self->runs);
	pthread_mutex_unlock(&baton);
	self->result = flexmem_cache_alloc(self->cache, self->bytes, 0, &token);
	sleep_until(NEVER);
	return NULL;
}

/* Begins a thread that asks for @bytes, @ms from now. */
static void will_ask(struct process *process, uint64_t bytes, int64_t ms)
{
	process->bytes = bytes;
	process->wakes = now_ns + ms * MS;
	assert_int_equal(pthread_create(&process->thread, NULL, ask, process),
			 0);
}

static void let_run(struct process *process)
{
	pthread_mutex_lock(&baton);
	scheduler_runs = false;
	process->runs = true;
	pthread_cond_broadcast(&passed);
	wait_for(&scheduler_runs);
	pthread_mutex_unlock(&baton);
}

static void answer(void)
{
	size_t i;

	device.answer_at = NEVER;
	for (i = 0; i < device.count; i++)
		flexmem_cache_serve_pressure(device.processes[i].cache, NULL);
}

static void send_event(void)
{
	device.told = device.next;
	device.next = 0;
	device.wanted = false;
	device.last_event = now_ns;
	device.sequence++;
	device.answer_at = now_ns + device.answer_ms * MS;
}

/* What the helper threads do while somebody lacks memory. */
static void look_again(void)
{
	size_t i;

	for (i = 0; i < device.count; i++)
		fmlib_pressure_again(device.processes[i].cache);
}

static struct process *next_process(void)
{
	struct process *next = NULL;
	size_t i;

	for (i = 0; i < device.count; i++) {
		if (device.processes[i].wakes != NEVER &&
		    (!next || device.processes[i].wakes < next->wakes))
			next = &device.processes[i];
	}
	return next;
}

/* Runs all threads until they have ended, and time goes on to @until. */
static void run_until(int64_t until)
{
	struct process *process;
	int64_t look = now_ns + LOOK_MS * MS;
	int64_t event;
	int64_t time;

	while ((process = next_process()) || now_ns < until) {
		event = device.wanted ?
			device.last_event + EVENT_MS * MS : NEVER;
		time = process && process->wakes < look ? process->wakes : look;
		time = event < time ? event : time;
		time = device.answer_at < time ? device.answer_at : time;
		now_ns = time > now_ns ? time : now_ns;
		if (device.answer_at == time) {
			answer();
		} else if (event == time) {
			send_event();
		} else if (look == time) {
			look_again();
			look += LOOK_MS * MS;
		} else {
			let_run(process);
		}
	}
}

static void run(void)
{
	run_until(now_ns);
}

/*
 * A process fills @fill percent of a memory of @regions regions, and keeps a
 * quarter of that in use.
 */
static struct process *begin_hog(uint64_t fill, uint64_t regions)
{
	struct process *hog;
	uint64_t bytes = CAPACITY / 100 * fill / (2 * MIB) * (2 * MIB);
	uint64_t live = bytes / 4 / (2 * MIB) * (2 * MIB);
	void *tokens[PIECES];
	size_t count = 0;

	memset(&device, 0, sizeof(device));
	device.regions = regions;
	device.answer_at = NEVER;
	now_ns = 1000 * (int64_t)MS;
	hog = begin();
	take(hog->cache, live, 0);
	for (bytes -= live; bytes >= PIECE; bytes -= PIECE)
		tokens[count++] = take(hog->cache, PIECE, 0);
	while (count)
		give(hog->cache, tokens[--count]);
	return hog;
}

static uint64_t idle(const struct process *process)
{
	struct flexmem_cache_statistics f = figures(process->cache);

	return f.reserved_bytes[FLEXMEM_CACHE_ALL].current -
	       f.allocated_bytes[FLEXMEM_CACHE_ALL].current;
}

static void end(void)
{
	size_t i;

	for (i = 0; i < device.count; i++) {
		if (device.processes[i].bytes)
			pthread_join(device.processes[i].thread, NULL);
	}
	for (i = 0; i < device.count; i++)
		flexmem_cache_destroy(device.processes[i].cache);
	assert_int_equal(device.used, 0);
}

/*
 * @count processes ask, each @apart ms after the one before, for their shares of
 * what is free and half of what the hog keeps idle.
 */
static void let_ask(const struct process *hog, const unsigned int *shares,
		    size_t count, int64_t apart)
{
	uint64_t bytes = CAPACITY - device.used + idle(hog) / 2;
	unsigned int sum = 0;
	size_t i;

	for (i = 0; i < count; i++)
		sum += shares[i];
	for (i = 0; i < count; i++)
		will_ask(begin(), bytes * shares[i] / sum / (2 * MIB) *
				  (2 * MIB), (int64_t)i * apart);
	run();
}

static void all_are_served(const struct process *hog,
			   const unsigned int *shares, size_t count,
			   int64_t apart)
{
	size_t first = device.count;
	size_t i;

	let_ask(hog, shares, count, apart);
	for (i = first; i < device.count; i++)
		assert_int_equal(device.processes[i].result, 0);
}

static const uint64_t fills[] = { 50, 80, 90, 94, 96, 99 };
static const int64_t gaps[] = { 0, 7, 40 };
static const unsigned int equal[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
static const unsigned int different[][8] = {
	{ 1, 2, 3, 4, 5, 6, 7, 8 },
	{ 8, 7, 6, 5, 4, 3, 2, 1 },
	{ 1, 1, 1, 1, 1, 1, 1, 10 },
	{ 20, 1, 20, 1, 20, 1, 20, 1 },
};

static void all_at_once(void **state)
{
	static const size_t counts[] = { 1, 3, 8 };
	size_t i;

	(void)state;
	for (i = 0; i < 6 * 3 * 3; i++) {
		all_are_served(begin_hog(fills[i / 9], 0), equal,
			       counts[i / 3 % 3], gaps[i % 3]);
		end();
	}
}

/* What was given for the largest request is taken by several smaller ones. */
static void of_different_sizes(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 6 * 3 * 4; i++) {
		all_are_served(begin_hog(fills[i / 12], 0), different[i / 3 % 4], 8,
			       gaps[i % 3]);
		end();
	}
}

/*
 * One process asks, fails, and is served before the next event. So the event asks
 * nothing for it, and the hog does not give the same bytes a second time.
 */
static void a_served_wish_is_over(void **state)
{
	struct process *hog;
	uint64_t before;
	uint64_t given;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(fills) / sizeof(*fills); i++) {
		hog = begin_hog(fills[i], 0);
		device.answer_ms = 12;
		before = hog->own;
		all_are_served(hog, equal, 1, 0);
		run_until(now_ns + 3 * EVENT_MS * MS);
		given = before - hog->own;
		assert_true(given < device.processes[1].bytes + PIECE);
		end();
	}
}

/* One process asks and gives up. Those that ask after it are served. */
static void after_one_that_gave_up(void **state)
{
	struct flexmem_cache_memory memory;
	struct flexmem_failure failure;
	struct process *hog;
	int64_t gap;

	(void)state;
	for (gap = 0; gap <= 1000; gap += 125) {
		hog = begin_hog(90, 0);
		begin();
		assert_int_equal(alloc(&device.processes[1],
				       CAPACITY - device.used + PIECE, 0, 0,
				       &memory, &failure), -ENOMEM);
		send_event();
		answer();
		now_ns += gap * MS;
		all_are_served(hog, equal, 1, 0);
		end();
	}
}

/*
 * What is free is in pieces, so it need not be enough, and what the hog has given
 * neither. Nobody fails while the rest of the idle memory would be. Returns how
 * many are served.
 */
static size_t served_in_pieces(struct process *hog, const unsigned int *shares,
			       size_t count, int64_t apart)
{
	size_t served = 0;
	size_t i;

	device.answer_ms = 3;
	let_ask(hog, shares, count, apart);
	assert_int_equal(flexmem_cache_empty(hog->cache, NULL), 0);
	for (i = 1; i < device.count; i++) {
		if (!device.processes[i].result)
			served++;
		else
			assert_int_equal(find_place(device.processes[i].bytes),
					 NOWHERE);
	}
	end();
	return served;
}

static void in_several_regions(void **state)
{
	static const size_t counts[] = { 5, 6, 7, 8 };
	size_t served = 0;
	size_t asked = 0;
	size_t i;

	(void)state;
	for (i = 0; i < 6 * 4 * 3; i++) {
		served += served_in_pieces(begin_hog(fills[i / 12], 4), equal,
					   counts[i / 3 % 4], gaps[i % 3]);
		asked += counts[i / 3 % 4];
	}
	assert_true(served >= asked / 10 * 9);
}

static void of_different_sizes_in_regions(void **state)
{
	size_t regions, i;
	size_t served;

	(void)state;
	for (regions = 1; regions <= 4; regions += 3) {
		served = 0;
		for (i = 0; i < 6 * 4 * 3; i++)
			served += served_in_pieces(begin_hog(fills[i / 12],
							     regions),
						   different[i / 3 % 4], 8,
						   gaps[i % 3]);
		assert_true(served >= 6 * 4 * 3 * 8 / 10 * 9);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(all_at_once),
		CACHE_TEST(of_different_sizes),
		CACHE_TEST(a_served_wish_is_over),
		CACHE_TEST(after_one_that_gave_up),
		CACHE_TEST(in_several_regions),
		CACHE_TEST(of_different_sizes_in_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
