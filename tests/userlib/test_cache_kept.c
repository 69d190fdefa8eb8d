// SPDX-License-Identifier: GPL-2.0
/*
 * What a stream keeps of its freed memory, while several streams share growing
 * segments (kept.c): it serves the stream at once, and all others in time.
 */
#include "cache_mock.h"
#include "cache/kept.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED "expandable_segments:True,reuse:wait"
#define BLOCKS 28

/*
 * Stream 1 has blocks of @bytes side by side, and stream 2 one at the end of the
 * full device.
 */
static struct flexmem_cache *two_streams(struct flexmem_cache *cache,
					 uint64_t bytes, void **tokens)
{
	int i;

	for (i = 0; i < BLOCKS; i++)
		tokens[i] = take(cache, bytes, 1);
	take(cache, mock.capacity - BLOCKS * bytes, 2);
	return cache;
}

static struct flexmem_cache *full_cache(void **tokens)
{
	mock.capacity = 32 * MIB;
	return two_streams(mock_cache(SHARED), MIB, tokens);
}

/* The same, but nothing is full, so that the segment could grow. */
static struct flexmem_cache *room_left(struct flexmem_cache *cache, void **tokens)
{
	int i;

	for (i = 0; i < BLOCKS; i++)
		tokens[i] = take(cache, MIB, 1);
	take(cache, MIB, 2);
	mock.grows = 0;
	return cache;
}

/* How many blocks stream 1 keeps. */
static uint32_t kept(const struct flexmem_cache *cache)
{
	return fmlib_kept_count(&fmlib_lane_find(cache, 1)->kept);
}

/* The last block of the size comes first, and not the lowest. */
static void a_stream_gets_its_last_block(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = full_cache(tokens);

	(void)state;
	give(cache, tokens[0]);
	give(cache, tokens[3]);
	give(cache, tokens[2]);
	assert_int_equal(kept(cache), 3);
	assert_int_equal(place(cache, take(cache, MIB, 1)), 2 * MIB);
	assert_int_equal(place(cache, take(cache, MIB, 1)), 3 * MIB);
	assert_int_equal(place(cache, take(cache, MIB, 1)), 0);
	assert_int_equal(kept(cache), 0);
	assert_int_equal(figures(cache).allocation[0].current, BLOCKS + 1);
	flexmem_cache_destroy(cache);
}

/* The same for a request in a struct, which may ask for an alignment. */
static void requests_in_a_struct(void **state)
{
	struct flexmem_cache_request request = { .bytes = 4096, .stream = 1 };
	struct flexmem_cache_allocation a;
	void *tokens[BLOCKS];
	struct flexmem_cache *cache;

	(void)state;
	mock.capacity = 32 * MIB;
	cache = two_streams(mock_cache(SHARED), 4096, tokens);
	give(cache, tokens[4]);
	give(cache, tokens[5]);
	give(cache, tokens[3]);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(a.address.offset, 3 * 4096);
	request.alignment = 4 * 4096;
	assert_int_equal(kept(cache), 2);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(a.address.offset, 4 * 4096);
	flexmem_cache_destroy(cache);
}

/* A request of another stream takes back what is kept, before it fails. */
static void another_stream_gets_all(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = full_cache(tokens);
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		give(cache, tokens[i]);
	assert_int_equal(kept(cache), 8);
	assert_int_equal(place(cache, take(cache, 8 * MIB, 2)), 0);
	assert_int_equal(kept(cache), 0);
	expect_counters(cache, 0, 0, 0);
	flexmem_cache_destroy(cache);
}

/* The same before the segment grows. */
static void no_segment_grows(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = room_left(mock_cache(SHARED), tokens);
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		give(cache, tokens[i]);
	assert_int_equal(kept(cache), 8);
	assert_int_equal(place(cache, take(cache, 8 * MIB, 2)), 0);
	assert_int_equal(mock.grows, 0);
	flexmem_cache_destroy(cache);
}

/* The stream waits on the device for what another one kept, and nothing grows. */
static void a_stream_waits_for_what_was_kept(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = room_left(mock_cache_waits(SHARED),
						tokens);
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		give(cache, tokens[i]);
	assert_int_equal(kept(cache), 8);
	assert_int_equal(mock.events, 0);
	assert_int_equal(place(cache, take(cache, 8 * MIB, 2)), 0);
	assert_int_equal(mock.stream_waits, 1);
	assert_int_equal(mock.waiting_stream, 2);
	assert_int_equal(mock.streams[mock.waited_event], 1);
	assert_int_equal(mock.grows, 0);
	assert_int_equal(mock.device_waits, 0);
	flexmem_cache_destroy(cache);
}

/* Kept blocks leave a request no less than a limit of the cache allows. */
static void a_limit(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache;
	void *token;
	int i;

	(void)state;
	mock.capacity = 64 * MIB;
	cache = mock_cache(SHARED ",per_process_memory_fraction:0.5");
	room_left(cache, tokens);
	for (i = 0; i < 3; i++)
		take(cache, MIB, 2);
	assert_int_equal(flexmem_cache_alloc(cache, 4 * MIB, 2, &token),
			 -ENOMEM);
	expect_counters(cache, 1, 0, 1);
	for (i = 8; i < 12; i++)
		give(cache, tokens[i]);
	assert_int_equal(kept(cache), 4);
	assert_int_equal(place(cache, take(cache, 4 * MIB, 2)), 8 * MIB);
	expect_counters(cache, 1, 0, 1);
	flexmem_cache_destroy(cache);
}

/* The same for a request that locks the whole cache at once. */
static void a_request_with_a_tag(void **state)
{
	struct flexmem_cache_request request = {
		.bytes = 2 * MIB, .stream = 2, .tag = "weights",
	};
	struct flexmem_cache_allocation a;
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = full_cache(tokens);

	(void)state;
	give(cache, tokens[4]);
	give(cache, tokens[5]);
	assert_int_equal(kept(cache), 2);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	assert_int_equal(a.address.offset, 4 * MIB);
	expect_counters(cache, 0, 0, 0);
	flexmem_cache_destroy(cache);
}

struct freeing {
	struct flexmem_cache *cache;
	void *token;
};

static void free_token(void *user, uint64_t bytes)
{
	struct freeing *freeing = user;

	(void)bytes;
	if (freeing->token)
		give(freeing->cache, freeing->token);
	freeing->token = NULL;
}

/* What a callback frees is kept, but serves the request that called it. */
static void a_callback_frees(void **state)
{
	void *tokens[BLOCKS];
	struct freeing freeing;

	(void)state;
	freeing.cache = full_cache(tokens);
	freeing.token = tokens[9];
	assert_int_equal(flexmem_cache_add_oom_callback(freeing.cache,
							free_token, &freeing),
			 0);
	assert_int_equal(place(freeing.cache, take(freeing.cache, MIB, 2)),
			 9 * MIB);
	expect_counters(freeing.cache, 1, 1, 0);
	flexmem_cache_destroy(freeing.cache);
}

/* A request of the stream itself, of another size. */
static void another_size(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = full_cache(tokens);

	(void)state;
	give(cache, tokens[4]);
	give(cache, tokens[5]);
	assert_int_equal(place(cache, take(cache, 2 * MIB, 1)), 4 * MIB);
	expect_counters(cache, 0, 0, 0);
	/* A smaller request leaves the rest of the block. */
	give(cache, tokens[7]);
	assert_int_equal(place(cache, take(cache, MIB / 2, 1)), 7 * MIB);
	assert_int_equal(place(cache, take(cache, MIB / 2, 1)), 15 * MIB / 2);
	flexmem_cache_destroy(cache);
}

/* After 24 blocks the oldest eight are everybody's. */
static void the_oldest_go(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = full_cache(tokens);
	int i;

	(void)state;
	for (i = 0; i < FMLIB_KEPT; i++)
		give(cache, tokens[BLOCKS - 1 - i]);
	assert_int_equal(kept(cache), FMLIB_KEPT);
	give(cache, tokens[0]);
	assert_int_equal(kept(cache), FMLIB_KEPT - FMLIB_KEPT_GO + 1);
	/* Without taking back the others. */
	assert_int_equal(place(cache, take(cache, 2 * MIB, 2)), 20 * MIB);
	assert_int_equal(kept(cache), FMLIB_KEPT - FMLIB_KEPT_GO + 1);
	assert_int_equal(place(cache, take(cache, MIB, 1)), 0);
	flexmem_cache_destroy(cache);
}

/* Large blocks are not kept. */
static void large_blocks_go_at_once(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache;

	(void)state;
	mock.capacity = 64 * MIB;
	cache = two_streams(mock_cache(SHARED), MIB + 128, tokens);
	give(cache, tokens[3]);
	give(cache, tokens[5]);
	assert_int_equal(kept(cache), 0);
	assert_int_equal(place(cache, take(cache, MIB + 128, 1)),
			 3 * (MIB + 128));
	flexmem_cache_destroy(cache);
}

/* Nothing is kept that a second stream has used. */
static void a_block_in_use_waits(void **state)
{
	struct flexmem_cache *cache;
	void *tokens[BLOCKS];

	(void)state;
	mock.capacity = 32 * MIB;
	cache = two_streams(mock_cache_waits("expandable_segments:True,reuse:done"),
			    MIB, tokens);
	give(cache, tokens[1]);
	use(cache, tokens[2], 2);
	give(cache, tokens[2]);
	assert_int_equal(kept(cache), 0);
	flexmem_cache_destroy(cache);
}

/*
 * Memory that was kept is pending like all other free memory of the stream: it
 * moves when an event was recorded after the free, and has happened.
 */
static void kept_memory_is_not_done(void **state)
{
	struct flexmem_cache *cache;
	void *tokens[BLOCKS];
	void *token;

	(void)state;
	mock.capacity = 32 * MIB;
	cache = two_streams(mock_cache_waits("expandable_segments:True,reuse:done"),
			    MIB, tokens);
	give(cache, tokens[7]);
	mock.device_waits = 0;
	assert_int_equal(place(cache, take(cache, MIB, 2)), 7 * MIB);
	assert_int_equal(mock.device_waits, 1);
	give(cache, tokens[8]);
	token = take(cache, MIB, 1);
	assert_int_equal(place(cache, token), 8 * MIB);
	assert_int_equal(mock.device_waits, 1);
	flexmem_cache_destroy(cache);
}

static int no_stream(void *user, uint64_t stream)
{
	(void)user;
	(void)stream;
	return 0;
}

/*
 * While work is captured, nothing is kept. Another stream does not get what was
 * kept before, because no event is recorded.
 */
static void a_capture(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache;
	uint64_t pool;
	void *token;

	(void)state;
	mock.capacity = 32 * MIB;
	cache = two_streams(mock_cache_waits(SHARED), MIB, tokens);
	memset(mock.happened, true, sizeof(mock.happened));
	give(cache, tokens[4]);
	give(cache, tokens[5]);
	assert_int_equal(kept(cache), 2);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	assert_int_equal(flexmem_cache_pool_begin(cache, pool, no_stream, NULL),
			 0);
	assert_int_equal(flexmem_cache_pool_capture(cache, pool), 0);
	assert_int_equal(kept(cache), 0);
	assert_int_equal(flexmem_cache_alloc(cache, MIB, 2, &token), -ENOMEM);
	assert_int_equal(place(cache, take(cache, MIB, 1)), 4 * MIB);
	give(cache, tokens[6]);
	assert_int_equal(kept(cache), 0);
	assert_int_equal(mock.events, 0);
	assert_int_equal(mock.stream_waits, 0);
	assert_int_equal(mock.device_waits, 0);
	assert_int_equal(flexmem_cache_pool_end(cache, pool), 0);
	assert_int_equal(place(cache, take(cache, 2 * MIB, 2)), 5 * MIB);
	assert_int_equal(mock.events, 1);
	flexmem_cache_destroy(cache);
}

/*
 * The program has destroyed stream 1, so no event can be recorded on it. Before a
 * request fails, another stream gets what it kept.
 */
static void a_stream_that_is_gone(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache;
	int i;

	(void)state;
	mock.capacity = 32 * MIB;
	cache = two_streams(mock_cache_waits(SHARED), MIB, tokens);
	for (i = 0; i < 8; i++)
		give(cache, tokens[i]);
	assert_int_equal(kept(cache), 8);
	mock.fail_records = UINT_MAX;
	assert_int_equal(place(cache, take(cache, 8 * MIB, 2)), 0);
	assert_int_equal(mock.device_waits, 1);
	assert_int_equal(mock.stream_waits, 0);
	flexmem_cache_destroy(cache);
}

/* With reuse:own streams keep nothing of segments that they still share. */
static void the_setting_changes(void **state)
{
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = full_cache(tokens);

	(void)state;
	give(cache, tokens[4]);
	assert_int_equal(kept(cache), 1);
	assert_int_equal(flexmem_cache_set_setting(cache, "reuse", "own"), 0);
	assert_int_equal(kept(cache), 0);
	give(cache, tokens[6]);
	assert_int_equal(kept(cache), 0);
	assert_int_equal(flexmem_cache_set_setting(cache, "reuse", "wait"), 0);
	give(cache, tokens[7]);
	assert_int_equal(kept(cache), 1);
	assert_int_equal(place(cache, take(cache, MIB, 1)), 7 * MIB);
	flexmem_cache_destroy(cache);
}

/* Frees @token and allocates as much, @hits times. No event is recorded. */
static void *hit_often(struct flexmem_cache *cache, void *token, int hits)
{
	unsigned int events = mock.events;
	int i;

	for (i = 0; i < hits; i++) {
		give(cache, token);
		token = take(cache, MIB, 1);
	}
	assert_int_equal(mock.events, events);
	return token;
}

/*
 * A stream records events as often as if it kept nothing, so that other streams
 * get its large blocks in time.
 */
static void hits_count_as_frees(void **state)
{
	struct flexmem_cache *cache;
	void *large;
	void *small;

	(void)state;
	cache = mock_cache_waits("expandable_segments:True,reuse:done");
	large = take(cache, 2 * MIB, 1);
	small = take(cache, MIB, 1);
	take(cache, MIB, 1);
	take(cache, MIB, 2);
	/* As long as the stream has left nothing, there is no event. */
	small = hit_often(cache, small, FMLIB_FREES);
	give(cache, small);
	assert_int_equal(mock.events, 0);
	give(cache, large);
	assert_int_equal(mock.events, 1);
	small = hit_often(cache, take(cache, MIB, 1), FMLIB_FREES - 1);
	give(cache, small);
	assert_int_equal(mock.events, 2);
	flexmem_cache_destroy(cache);
}

/* What is kept is a hole for the figures, and can be returned. */
static void figures_and_returns(void **state)
{
	struct flexmem_cache_statistics f;
	void *tokens[BLOCKS];
	struct flexmem_cache *cache = full_cache(tokens);

	(void)state;
	give(cache, tokens[1]);
	give(cache, tokens[2]);
	give(cache, tokens[4]);
	assert_int_equal(kept(cache), 3);
	f = figures(cache);
	assert_int_equal(f.inactive_split[0].current, 2);
	assert_int_equal(f.inactive_split_bytes[0].current, 3 * MIB);
	assert_int_equal(f.active[0].current, BLOCKS - 2);
	assert_int_equal(kept(cache), 0);
	flexmem_cache_destroy(cache);
}

/* The end of a segment is free, though its last block is kept. */
static void the_end_is_returned(void **state)
{
	struct flexmem_cache *cache = mock_cache(SHARED);
	uint64_t released;
	void *token;

	(void)state;
	take(cache, 2 * MIB, 1);
	take(cache, MIB, 2);
	token = take(cache, MIB, 1);
	give(cache, token);
	token = take(cache, MIB, 1);
	give(cache, token);
	assert_int_equal(kept(cache), 1);
	give(cache, take(cache, 2 * MIB, 1));
	assert_int_equal(flexmem_cache_empty(cache, &released), 0);
	assert_int_equal(released, 2 * MIB);
	flexmem_cache_destroy(cache);
}

/*
 * A segment that a reset has lost serves no request from what is kept. A thread
 * of another stream may find that out while stream 1 keeps a block.
 */
static void a_lost_segment(void **state)
{
	struct flexmem_cache *cache = mock_cache(SHARED);
	struct fmlib_segment *segment;
	uint64_t handle;
	uint64_t lost;
	void *token;

	(void)state;
	token = take(cache, MIB, 1);
	handle = lookup(cache, take(cache, MIB, 2)).handle;
	give(cache, token);
	assert_int_equal(kept(cache), 1);
	segment = fmlib_lane_find(cache, 1)->kept.places[0].segment;
	mock_lose();
	assert_true(fmlib_segment_is_lost(cache, segment));
	token = take(cache, MIB, 1);
	assert_int_not_equal(lookup(cache, token).handle, handle);
	assert_int_equal(flexmem_cache_drop_lost(cache, &lost), 0);
	assert_int_equal(lost, MIB);
	flexmem_cache_destroy(cache);
}

/* It is returned with other memory, if all of it was only kept. */
static void a_lost_segment_becomes_empty(void **state)
{
	struct flexmem_cache *cache = mock_cache(SHARED);
	void *tokens[] = { take(cache, MIB, 1), take(cache, MIB, 2) };
	struct fmlib_segment *segment;

	(void)state;
	give(cache, tokens[0]);
	give(cache, tokens[1]);
	segment = fmlib_lane_find(cache, 1)->kept.places[0].segment;
	mock_lose();
	assert_true(fmlib_segment_is_lost(cache, segment));
	take(cache, 2 * MIB, 2);
	assert_int_equal(kept(cache), 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(mock.frees, 1);
	assert_int_equal(figures(cache).segment[0].current, 1);
	flexmem_cache_destroy(cache);
}

/* Streams that have no lane of their own keep nothing. */
static void streams_without_a_lane(void **state)
{
	struct flexmem_cache *cache = mock_cache(SHARED);
	void *tokens[2 * FMLIB_LANES];
	uint64_t places[2 * FMLIB_LANES];
	int i;

	(void)state;
	for (i = 0; i < 2 * FMLIB_LANES; i++) {
		tokens[i] = take(cache, 1000, i);
		places[i] = place(cache, tokens[i]);
	}
	for (i = 0; i < 2 * FMLIB_LANES; i++)
		give(cache, tokens[i]);
	for (i = 0; i < FMLIB_LANES; i++) {
		if (fmlib_lane_at(cache, i))
			assert_true(fmlib_kept_count(
				&fmlib_lane_at(cache, i)->kept) <= 1);
	}
	/* Other streams get what is not kept, from the lowest on. */
	for (i = 2 * FMLIB_LANES; i--;)
		tokens[i] = take(cache, 1000, i);
	assert_int_equal(figures(cache).allocation[0].current,
			 2 * FMLIB_LANES);
	for (i = 0; i < 2 * FMLIB_LANES; i++) {
		if (fmlib_lane_find(cache, i)->stream == (uint64_t)i)
			assert_int_equal(place(cache, tokens[i]), places[i]);
	}
	flexmem_cache_destroy(cache);
}

/*
 * A child that destroys the cache leaves the memory to the parent, though the
 * segment is lost and everything in it is only kept.
 */
static void a_child_destroys(void **state)
{
	struct flexmem_cache *cache = mock_cache(SHARED);
	void *tokens[] = { take(cache, MIB, 1), take(cache, MIB, 2) };
	struct fmlib_segment *segment;
	pid_t child;
	int status;

	(void)state;
	give(cache, tokens[0]);
	give(cache, tokens[1]);
	assert_int_equal(kept(cache), 1);
	segment = fmlib_lane_find(cache, 1)->kept.places[0].segment;
	mock_lose();
	assert_true(fmlib_segment_is_lost(cache, segment));
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		flexmem_cache_destroy(cache);
		_exit((int)mock.frees);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.frees, 1);
}

#define UNIT (64 * KIB)
/* Enough that no request fails: what goes back to the device may be in use. */
#define UNITS 8192
#define STREAMS 3
#define LIVE 200
#define ROUNDS 20000

/*
 * The bytes of a device in units: which stream used a unit last, and how many
 * events there had been before that use ended.
 */
static struct unit {
	bool live;
	bool used;
	uint64_t stream;
	unsigned int events;
} units[UNITS];

static uint64_t random_state;

static uint64_t below(uint64_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) +
		       UINT64_C(1442695040888963407);
	return (random_state >> 33) % bound;
}

/* Whether the stream of a free unit has done its work there. */
static bool is_done(const struct unit *unit)
{
	unsigned int i = unit->events;

	while (i < mock.events &&
	       !(mock.streams[i] == unit->stream && mock.happened[i]))
		i++;
	return i < mock.events;
}

static void set_units(struct flexmem_cache *cache, void *token, bool live)
{
	struct flexmem_cache_allocation a = lookup(cache, token);
	struct unit *unit = &units[a.address.offset / UNIT];
	struct unit *end = unit + a.size / UNIT;

	assert_int_equal(a.address.offset % UNIT, 0);
	for (; unit < end; unit++) {
		assert_int_not_equal(unit->live, live);
		if (live && unit->used && unit->stream != a.stream)
			assert_true(is_done(unit));
		*unit = (struct unit){
			.live = live,
			.used = true,
			.stream = a.stream,
			.events = mock.events,
		};
	}
}

/* The first event of a stream that has not happened happens. */
static void progress(uint64_t stream)
{
	unsigned int i = 0;

	while (i < mock.events &&
	       (mock.streams[i] != stream || mock.happened[i]))
		i++;
	if (i < mock.events)
		mock.happened[i] = true;
}

/* Counts in @hits if the stream gets what it has kept. */
static void *take_some(struct flexmem_cache *cache, uint64_t stream,
		       unsigned int *hits)
{
	static const uint64_t sizes[] = { 1, 1, 1, 4, 4, 16, 40 };
	struct fmlib_lane *lane = fmlib_lane_find(cache, stream);
	uint32_t before = lane ? fmlib_kept_count(&lane->kept) : 0;
	void *token = take(cache, sizes[below(7)] * UNIT, stream);

	*hits += before > 1 && fmlib_kept_count(&lane->kept) == before - 1;
	set_units(cache, token, true);
	return token;
}

/*
 * Random requests and frees. No stream gets bytes that are in use, or that
 * another stream's work may still use.
 */
static void no_stream_gets_what_another_uses(void **state)
{
	void *tokens[LIVE] = { NULL };
	struct flexmem_cache *cache;
	unsigned int hits = 0;
	size_t at;
	int i;

	(void)state;
	memset(units, 0, sizeof(units));
	random_state = 1;
	mock.capacity = UNITS * UNIT;
	cache = mock_cache_waits("expandable_segments:True,reuse:done");
	for (i = 0; i < ROUNDS && mock.events < MOCK_EVENTS - 100; i++) {
		at = below(LIVE);
		if (tokens[at]) {
			set_units(cache, tokens[at], false);
			give(cache, tokens[at]);
			tokens[at] = NULL;
		} else {
			tokens[at] = take_some(cache, below(STREAMS), &hits);
		}
		if (!below(4))
			progress(below(STREAMS));
	}
	assert_true(hits > 1000);
	assert_int_equal(mock.shrinks, 0);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHE_TEST(a_stream_gets_its_last_block),
		CACHE_TEST(requests_in_a_struct),
		CACHE_TEST(another_stream_gets_all),
		CACHE_TEST(no_segment_grows),
		CACHE_TEST(a_stream_waits_for_what_was_kept),
		CACHE_TEST(a_limit),
		CACHE_TEST(a_request_with_a_tag),
		CACHE_TEST(a_callback_frees),
		CACHE_TEST(another_size),
		CACHE_TEST(the_oldest_go),
		CACHE_TEST(large_blocks_go_at_once),
		CACHE_TEST(a_block_in_use_waits),
		CACHE_TEST(kept_memory_is_not_done),
		CACHE_TEST(a_capture),
		CACHE_TEST(a_stream_that_is_gone),
		CACHE_TEST(the_setting_changes),
		CACHE_TEST(hits_count_as_frees),
		CACHE_TEST(figures_and_returns),
		CACHE_TEST(the_end_is_returned),
		CACHE_TEST(a_lost_segment),
		CACHE_TEST(a_lost_segment_becomes_empty),
		CACHE_TEST(streams_without_a_lane),
		CACHE_TEST(a_child_destroys),
		CACHE_TEST(no_stream_gets_what_another_uses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
