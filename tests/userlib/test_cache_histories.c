// SPDX-License-Identifier: GPL-2.0
/*
 * Random histories of a cache, up to the first request that fails. Then no
 * place may exist that the rules allow. Each remedy is tried on a copy, the same
 * history on a new cache. If a call helps, the text must name one. What a cache
 * can do by itself must not help.
 *
 * HISTORIES: how many there are in all. CACHE_SEED: the number of the first.
 * VERBOSE: prints the texts of all failures where the remedies that are named
 * differ from those that help.
 */
#include "test.h"
#include "flexmem_cache.h"

#include <stdlib.h>

#define HISTORIES 10000
#define LENGTH 80
#define BLOCKS LENGTH
#define SEGMENTS (LENGTH * 2)
#define STREAMS 4
#define POOLS 2
#define STEP (2 * MIB)

enum action { ALLOC, FREE, RECORD, HAPPEN, CAPTURE };

struct operation {
	enum action action;
	uint64_t bytes;
	/* Of the address; 0: any. */
	uint64_t alignment;
	uint64_t stream;
	size_t pool;
	size_t target;
};

struct setup {
	const char *name;
	const char *configuration;
	/* With the other kind of segment. */
	const char *other;
	bool grows;
	bool shares;
	bool events;
	double fraction;
};

/* @freed: its bytes wait for the streams in @users. @seen: by the test. */
struct block {
	void *token;
	uint64_t handle;
	uint64_t start;
	uint64_t size;
	unsigned int users;
	bool freed;
};

struct segment {
	uint64_t handle;
	uint64_t start;
	uint64_t size;
	bool grows;
	bool seen;
	uint64_t stream;
	uint64_t pool;
	bool small;
};

/* A history on a cache. @end: number of its operations so far. */
struct play {
	const struct setup *setup;
	uint64_t capacity;
	struct flexmem_cache_flat *flat;
	struct flexmem_cache_provider below;
	struct flexmem_cache *cache;
	uint64_t pools[POOLS + 1];
	/* A graph may use the segments of the pool. */
	bool stays[POOLS + 1];
	bool captures;
	uint64_t recorded[STREAMS];
	uint64_t happened[STREAMS];
	struct block blocks[BLOCKS];
	size_t count;
	struct segment segments[SEGMENTS];
	size_t segment_count;
};

static uint64_t random_state;

static uint64_t below(uint64_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % bound;
}

/* ---- the device ---- */

static int device_alloc(void *user, uint64_t bytes, uint64_t alignment,
			uint32_t flags, struct flexmem_cache_memory *memory,
			struct flexmem_failure *failure)
{
	struct play *play = user;
	int err = play->below.alloc(play->below.user, bytes, alignment, flags,
				    memory, failure);

	if (err)
		return err;
	assert_true(play->segment_count < SEGMENTS);
	play->segments[play->segment_count++] = (struct segment){
		.handle = memory->handle,
		.start = memory->address.offset,
		.size = bytes,
		.grows = flags & FLEXMEM_CACHE_GROWABLE,
	};
	return 0;
}

static struct segment *segment_of(struct play *play, uint64_t handle)
{
	size_t i = 0;

	while (play->segments[i].handle != handle)
		i++;
	assert_true(i < play->segment_count);
	return &play->segments[i];
}

static int device_free(void *user, uint64_t handle)
{
	struct play *play = user;
	struct segment *segment = segment_of(play, handle);

	*segment = play->segments[--play->segment_count];
	return play->below.free(play->below.user, handle);
}

static int device_grow(void *user, uint64_t handle, uint64_t old_bytes,
		       uint64_t bytes, struct flexmem_failure *failure)
{
	struct play *play = user;
	int err = play->below.grow(play->below.user, handle, old_bytes, bytes,
				   failure);

	if (!err)
		segment_of(play, handle)->size = bytes;
	return err;
}

static int device_shrink(void *user, uint64_t handle, uint64_t old_bytes,
			 uint64_t bytes)
{
	struct play *play = user;

	segment_of(play, handle)->size = bytes;
	return play->below.shrink(play->below.user, handle, old_bytes, bytes);
}

static int device_info(void *user, uint64_t *free_bytes, uint64_t *total)
{
	struct play *play = user;

	return play->below.memory_info(play->below.user, free_bytes, total);
}

#define SHIFT 32

static int event_record(void *user, uint64_t stream, uint64_t *event)
{
	struct play *play = user;

	assert_false(play->captures);
	*event = stream << SHIFT | ++play->recorded[stream];
	return 0;
}

static bool has_happened(const struct play *play, uint64_t event)
{
	return (event & UINT32_MAX) <= play->happened[event >> SHIFT];
}

static int event_query(void *user, uint64_t event)
{
	return has_happened(user, event) ? 0 : -EAGAIN;
}

static int event_synchronize(void *user, uint64_t event)
{
	struct play *play = user;

	if (!has_happened(play, event))
		play->happened[event >> SHIFT] = event & UINT32_MAX;
	return 0;
}

static void event_destroy(void *user, uint64_t event)
{
	(void)user;
	(void)event;
}

static int device_synchronize(void *user)
{
	struct play *play = user;

	memcpy(play->happened, play->recorded, sizeof(play->happened));
	return 0;
}

static int event_wait(void *user, uint64_t stream, uint64_t event)
{
	(void)user;
	(void)stream;
	(void)event;
	return 0;
}

/* ---- histories ---- */

static int every_stream(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 0;
}

static void start(struct play *play, const struct setup *setup,
		  const char *configuration, uint64_t capacity)
{
	struct flexmem_cache_provider provider = {
		.alloc = device_alloc,
		.free = device_free,
		.grow = device_grow,
		.shrink = device_shrink,
		.memory_info = device_info,
		.user = play,
	};
	struct flexmem_cache_events events = {
		.record = event_record,
		.query = event_query,
		.synchronize = event_synchronize,
		.destroy = event_destroy,
		.synchronize_device = device_synchronize,
		.wait = event_wait,
		.user = play,
	};
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.events = setup->events ? &events : NULL,
		.events_size = sizeof(events),
		.configuration = configuration,
		.flags = FLEXMEM_CACHE_STRICT,
	};
	size_t i;

	memset(play, 0, sizeof(*play));
	play->setup = setup;
	play->capacity = capacity;
	assert_int_equal(flexmem_cache_flat_create(&play->flat, capacity,
						   &play->below,
						   sizeof(play->below)), 0);
	assert_int_equal(flexmem_cache_create(&play->cache, &options,
					      sizeof(options)), 0);
	for (i = 1; i <= POOLS; i++)
		assert_int_equal(flexmem_cache_pool_create(play->cache,
							   &play->pools[i]),
				 0);
}

static void finish(struct play *play)
{
	play->captures = false;
	flexmem_cache_destroy(play->cache);
	assert_int_equal(play->segment_count, 0);
	flexmem_cache_flat_destroy(play->flat);
}

static bool is_small(const struct play *play, uint64_t size)
{
	(void)play;
	return size <= MIB;
}

static int ask(struct play *play, const struct operation *operation,
	       struct flexmem_cache_failure *failure)
{
	const struct flexmem_cache_request request = {
		.bytes = operation->bytes,
		.alignment = operation->alignment,
		.stream = operation->stream,
		.pool = play->pools[operation->pool],
	};
	struct flexmem_cache_allocation made;
	struct segment *segment;
	int err;

	if (play->captures)
		play->stays[operation->pool] = true;
	err = flexmem_cache_alloc_request(play->cache, &request,
					  sizeof(request), &made, sizeof(made));
	assert_true(!err || err == -ENOMEM);
	if (err) {
		*failure = made.failure;
		return err;
	}
	if (operation->alignment)
		assert_int_equal(made.address.offset % operation->alignment, 0);
	play->blocks[play->count++] = (struct block){
		.token = made.token,
		.handle = made.handle,
		.start = made.address.offset,
		.size = made.size,
	};
	segment = segment_of(play, made.handle);
	if (!segment->seen) {
		segment->seen = true;
		segment->stream = operation->stream;
		segment->pool = request.pool;
		segment->small = is_small(play, made.size);
	}
	return 0;
}

/* Forgets the blocks whose bytes wait no longer. */
static void settle(struct play *play)
{
	size_t i;

	for (i = 0; i < play->count; i++) {
		if (play->blocks[i].freed && !play->captures)
			play->blocks[i--] = play->blocks[--play->count];
	}
}

/* The block to which an operation refers, or NULL. */
static struct block *block_of(struct play *play, size_t target)
{
	struct block *block;

	if (!play->count)
		return NULL;
	block = &play->blocks[target % play->count];
	return block->freed ? NULL : block;
}

static void release(struct play *play, struct block *block)
{
	assert_int_equal(flexmem_cache_free(play->cache, block->token), 0);
	block->freed = true;
	if (!block->users)
		*block = play->blocks[--play->count];
}

static void capture(struct play *play, size_t pool, bool begin)
{
	uint64_t id = play->pools[pool];

	if (begin) {
		assert_int_equal(flexmem_cache_pool_begin(play->cache, id,
							  every_stream, NULL),
				 0);
		assert_int_equal(flexmem_cache_pool_capture(play->cache, id),
				 0);
		play->captures = true;
		play->stays[pool] = true;
	} else {
		play->captures = false;
		assert_int_equal(flexmem_cache_pool_end(play->cache, id), 0);
	}
}

static int carry_out(struct play *play, const struct operation *operation,
		     struct flexmem_cache_failure *failure)
{
	struct block *block = block_of(play, operation->target);

	switch (operation->action) {
	case ALLOC:
		return ask(play, operation, failure);
	case FREE:
		if (block)
			release(play, block);
		break;
	case RECORD:
		if (!block)
			break;
		assert_int_equal(flexmem_cache_record_stream(
					 play->cache, block->token,
					 operation->stream), 0);
		if (play->setup->events)
			block->users |= 1u << operation->stream;
		break;
	case HAPPEN:
		play->happened[operation->stream] =
			play->recorded[operation->stream];
		break;
	case CAPTURE:
		/* The first pool captures now and then. */
		capture(play, 1, !play->captures);
		break;
	}
	return 0;
}

static uint64_t draw_bytes(void)
{
	switch (below(4)) {
	case 0:
		return 1 + below(MIB);
	case 1:
		return MIB + below(9 * MIB);
	default:
		return 10 * MIB + below(30 * MIB);
	}
}

/* Up to 16 MiB. */
static uint64_t draw_alignment(void)
{
	return below(4) ? 0 : UINT64_C(1) << below(25);
}

static void draw(const struct setup *setup, struct operation *operations)
{
	uint64_t streams = 1 + below(STREAMS);
	uint64_t pools = below(2) ? 1 : 1 + POOLS;
	bool captures = setup->events && !below(3);
	bool aligns = below(2);
	uint64_t choice;
	size_t i;

	for (i = 0; i < LENGTH; i++) {
		choice = below(20);
		operations[i] = (struct operation){
			.action = choice < 11 ? ALLOC : choice < 17 ? FREE :
				  choice < 19 || !captures ?
				  (choice % 2 ? RECORD : HAPPEN) : CAPTURE,
			.bytes = draw_bytes(),
			.alignment = aligns ? draw_alignment() : 0,
			.stream = below(streams),
			.pool = below(3) ? 0 : below(pools),
			.target = below(BLOCKS),
		};
	}
}

/* Carries out operations up to the first that fails. Returns how many did not. */
static size_t run(struct play *play, const struct operation *operations,
		  size_t count, struct flexmem_cache_failure *failure)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (carry_out(play, &operations[i], failure))
			break;
	}
	return i;
}

/* ---- places ---- */

struct interval {
	uint64_t from;
	uint64_t to;
};

static int compare(const void *a, const void *b)
{
	const struct interval *one = a;
	const struct interval *other = b;

	return one->from < other->from ? -1 : one->from > other->from;
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) / unit * unit;
}

/*
 * The longest gap between intervals from @from to @to, where each gap begins at
 * a multiple of the alignment. Sorts the intervals.
 */
static uint64_t longest_gap(struct interval *intervals, size_t count,
			    uint64_t from, uint64_t to, uint64_t alignment)
{
	uint64_t longest = 0;
	uint64_t start;
	size_t i;

	qsort(intervals, count, sizeof(*intervals), compare);
	for (i = 0; i <= count; i++) {
		start = i < count ? intervals[i].from : to;
		if (start > to)
			start = to;
		from = round_up(from, alignment);
		if (start > from && start - from > longest)
			longest = start - from;
		if (i < count && intervals[i].to > from)
			from = intervals[i].to;
	}
	return longest;
}

/* The blocks of a segment. Returns their number. */
static size_t blocks_of(const struct play *play, uint64_t handle,
			struct interval *intervals)
{
	size_t count = 0;
	size_t i;

	for (i = 0; i < play->count; i++) {
		if (play->blocks[i].handle == handle)
			intervals[count++] = (struct interval){
				.from = play->blocks[i].start,
				.to = play->blocks[i].start +
				      play->blocks[i].size,
			};
	}
	return count;
}

/* Whether a request may use free memory of a segment. */
static bool may_use(const struct play *play, const struct segment *segment,
		    const struct operation *operation, uint64_t size)
{
	if (segment->pool != play->pools[operation->pool])
		return false;
	/*
	 * During a capture the cache does not find out which work of other
	 * streams is done.
	 */
	if (segment->grows)
		return !play->captures ||
		       (!play->setup->shares &&
			segment->stream == operation->stream);
	return segment->stream == operation->stream &&
	       (play->setup->grows || segment->small == is_small(play, size));
}

/* Where the part of a segment ends that the cache cannot return. */
static uint64_t kept_end(const struct play *play, const struct segment *segment,
			 size_t pool)
{
	struct interval intervals[BLOCKS];
	size_t count = blocks_of(play, segment->handle, intervals);
	uint64_t end = segment->start;
	bool stays = segment->pool &&
		     (segment->pool != play->pools[pool] || play->stays[pool]);
	size_t i;

	if (stays)
		return segment->start + segment->size;
	for (i = 0; i < count; i++)
		end = intervals[i].to > end ? intervals[i].to : end;
	if (end == segment->start)
		return end;
	return segment->grows ?
	       segment->start + round_up(end - segment->start, STEP) :
	       segment->start + segment->size;
}

/* Whether there is a place for the request that has failed. */
static bool has_place(struct play *play, const struct operation *operation)
{
	uint64_t alignment = operation->alignment > 128 ?
			     operation->alignment : 128;
	uint64_t size = round_up(operation->bytes, 128);
	struct interval intervals[SEGMENTS + BLOCKS];
	const struct segment *segment;
	/* A device gives a multiple of an alignment above a page. */
	uint64_t whole = round_up(size, alignment > 4096 ? alignment : 128);
	uint64_t reserved = 0;
	uint64_t hole;
	uint64_t most;
	size_t i;
	size_t n;

	for (i = 0; i < play->segment_count; i++) {
		segment = &play->segments[i];
		n = blocks_of(play, segment->handle, intervals);
		if (may_use(play, segment, operation, size) &&
		    longest_gap(intervals, n, segment->start,
				segment->start + segment->size,
				alignment) >= size)
			return true;
	}
	for (i = 0; i < play->segment_count; i++) {
		segment = &play->segments[i];
		intervals[i].from = segment->start;
		intervals[i].to = kept_end(play, segment, operation->pool);
		reserved += intervals[i].to - intervals[i].from;
	}
	n = play->segment_count;
	hole = longest_gap(intervals, n, 0, play->capacity, alignment);
	most = play->setup->fraction > 0.0 ?
	       (uint64_t)(play->setup->fraction * (double)play->capacity) :
	       UINT64_MAX;
	return hole >= whole && reserved + whole <= most;
}

/* ---- remedies ---- */

enum remedy {
	EMPTY,
	TRIM,
	POOL_1,
	POOL_2,
	FRACTION,
	END_CAPTURE,
	EVENTS,
	OTHER_KIND,
	REMEDIES,
};

static const char *const remedy_names[REMEDIES] = {
	"flexmem_cache_empty()", "flexmem_cache_trim()", "pool 1", "pool 2",
	"a larger fraction", "the end of the capture", "events",
	"the other kind of segment",
};

static void apply(struct play *play, enum remedy remedy)
{
	switch (remedy) {
	case EMPTY:
		flexmem_cache_empty(play->cache, NULL);
		break;
	case TRIM:
		flexmem_cache_trim(play->cache, UINT64_MAX, NULL);
		break;
	case POOL_1:
	case POOL_2:
		flexmem_cache_pool_empty(play->cache,
					 play->pools[remedy - POOL_1 + 1],
					 NULL);
		break;
	case FRACTION:
		flexmem_cache_set_memory_fraction(play->cache, 1.0);
		break;
	case END_CAPTURE:
		if (play->captures)
			capture(play, 1, false);
		break;
	case EVENTS:
		device_synchronize(play);
		break;
	default:
		break;
	}
}

/* Whether a remedy helps on a copy of the history. */
static bool helps(const struct setup *setup, const struct operation *operations,
		  size_t count, uint64_t capacity, enum remedy remedy)
{
	struct play *copy = calloc(1, sizeof(*copy));
	struct flexmem_cache_failure failure;
	bool helped = false;

	assert_non_null(copy);
	start(copy, setup, remedy == OTHER_KIND ? setup->other :
	      setup->configuration, capacity);
	if (run(copy, operations, count, &failure) == count) {
		/* The request has failed once, as in the original. */
		if (remedy != OTHER_KIND)
			assert_int_equal(ask(copy, &operations[count],
					     &failure), -ENOMEM);
		apply(copy, remedy);
		helped = !ask(copy, &operations[count], &failure);
	}
	finish(copy);
	free(copy);
	return helped;
}

/* Whether the text names a remedy of this kind. */
static bool is_named(enum remedy remedy, const char *text)
{
	static const char *const words[REMEDIES] = {
		[EMPTY] = "flexmem_cache_empty()",
		[TRIM] = "flexmem_cache_trim()",
		[POOL_1] = "flexmem_cache_pool_empty() may help",
		[POOL_2] = "flexmem_cache_pool_empty() may help",
		[FRACTION] = "a larger fraction may help",
		[END_CAPTURE] = "until the capture ends",
		[EVENTS] = "waits for events",
		[OTHER_KIND] = "expandable_segments:",
	};

	return strstr(text, words[remedy]);
}

/*
 * @silent: failures in which a call would have helped, and the text names none.
 * @vain: how often it names a remedy that does not help. It cannot know all of
 * these: the pieces of the device are the provider's.
 */
struct counts {
	unsigned int failures;
	unsigned int places;
	unsigned int silent;
	unsigned int helped[REMEDIES];
	unsigned int vain[REMEDIES];
};

static bool verbose;

static void judge(const struct setup *setup, const struct operation *operations,
		  size_t count, uint64_t capacity, const char *text,
		  struct counts *counts)
{
	bool named = false;
	bool any = false;
	bool helped;
	bool says;
	int r;

	for (r = 0; r < REMEDIES; r++) {
		helped = helps(setup, operations, count, capacity,
			       (enum remedy)r);
		says = is_named((enum remedy)r, text);
		counts->helped[r] += helped;
		counts->vain[r] += says && !helped;
		any |= helped && r < OTHER_KIND;
		named |= says && r < OTHER_KIND;
		if (verbose && helped != says)
			print_message("# %s %s: %s\n", remedy_names[r],
				      helped ? "helps" : "does not help", text);
	}
	counts->silent += any && !named;
}

static void one_history(const struct setup *setup, uint64_t number,
			struct counts *counts)
{
	struct play *play = calloc(1, sizeof(*play));
	struct operation operations[LENGTH];
	struct flexmem_cache_failure failure;
	uint64_t capacity;
	char text[1024];
	size_t count;

	assert_non_null(play);
	random_state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
	below(2);
	capacity = (32 + below(160)) * MIB;
	draw(setup, operations);
	start(play, setup, setup->configuration, capacity);
	count = run(play, operations, LENGTH, &failure);
	if (count < LENGTH) {
		counts->failures++;
		assert_int_equal(flexmem_cache_error_text(-ENOMEM, &failure,
							  sizeof(failure), text,
							  sizeof(text)), 0);
		settle(play);
		if (has_place(play, &operations[count])) {
			counts->places++;
			if (verbose)
				print_message("# a place, history %llu: %s\n",
					      (unsigned long long)number, text);
		}
		judge(setup, operations, count, capacity, text, counts);
	}
	finish(play);
	free(play);
}

#define GROWS "expandable_segments:True"

static struct setup setups[] = {
	{ .name = "fixed", .configuration = "", .other = GROWS },
	{ .name = "fixed_events", .configuration = "", .other = GROWS,
	  .events = true },
	{ .name = "growing", .configuration = GROWS, .other = "",
	  .grows = true },
	{ .name = "growing_events", .configuration = GROWS, .other = "",
	  .grows = true, .events = true },
	{ .name = "growing_done", .configuration = GROWS ",reuse:done",
	  .other = "", .grows = true, .events = true, .shares = true },
	{ .name = "growing_wait", .configuration = GROWS ",reuse:wait",
	  .other = "", .grows = true, .events = true, .shares = true },
	{ .name = "fixed_limit", .fraction = 0.6, .events = true,
	  .configuration = "per_process_memory_fraction:0.6",
	  .other = "per_process_memory_fraction:0.6," GROWS },
	{ .name = "growing_limit", .fraction = 0.6, .events = true,
	  .grows = true,
	  .configuration = "per_process_memory_fraction:0.6," GROWS,
	  .other = "per_process_memory_fraction:0.6" },
};

#define SETUPS (sizeof(setups) / sizeof(setups[0]))

static uint64_t histories = HISTORIES;
static uint64_t first;

static void no_failure_in_vain(void **state)
{
	const struct setup *setup = *state;
	struct counts counts = { 0 };
	uint64_t i;
	int r;

	for (i = 0; i < histories / SETUPS; i++)
		one_history(setup, first + i, &counts);
	print_message("# %s: %u failures, %u with a place, %u silent\n",
		      setup->name, counts.failures, counts.places,
		      counts.silent);
	for (r = 0; r < REMEDIES; r++)
		print_message("#   %s: helps %u, named in vain %u\n",
			      remedy_names[r], counts.helped[r],
			      counts.vain[r]);
	assert_true(counts.failures > histories / SETUPS / 2);
	assert_int_equal(counts.places, 0);
	assert_int_equal(counts.silent, 0);
	/* The cache has done these by itself. */
	assert_int_equal(counts.helped[EMPTY], 0);
	assert_int_equal(counts.helped[TRIM], 0);
	assert_int_equal(counts.helped[EVENTS], 0);
}

int main(void)
{
	const char *count = getenv("HISTORIES");
	const char *seed = getenv("CACHE_SEED");
	struct CMUnitTest tests[SETUPS];
	size_t i;

	verbose = getenv("VERBOSE");
	if (count)
		histories = strtoull(count, NULL, 0);
	if (seed)
		first = strtoull(seed, NULL, 0);
	for (i = 0; i < SETUPS; i++)
		tests[i] = (struct CMUnitTest){
			.name = setups[i].name,
			.test_func = no_failure_in_vain,
			.initial_state = &setups[i],
		};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
