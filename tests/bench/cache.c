// SPDX-License-Identifier: GPL-2.0
/* Measures the cache with the flat provider, whose calls are cheap. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"
#include "flexmem_cache.h"

#define FLAT_BYTES (UINT64_C(64) << 30)
/* Thread i uses the streams from i << STREAM_SHIFT on. */
#define STREAM_SHIFT 32
#define THREADS_MAX 8
/* This many operations make the time to start a thread irrelevant. */
#define THREAD_OPERATIONS 1000000

struct target {
	struct flexmem_cache_flat *flat;
	struct flexmem_cache *cache;
};

/*
 * A thread that replays the trace @rounds times. @ns: the time from @begin to
 * @end.
 */
struct player {
	struct flexmem_cache *cache;
	const struct work *work;
	uint64_t first_stream;
	size_t rounds;
	uint64_t ns;
	uint64_t begin;
	uint64_t end;
	pthread_barrier_t *barrier;
	pthread_t thread;
};

/* Events on this stream never happen, all others at once. */
#define STUCK UINT64_MAX

static int event_record(void *user, uint64_t stream, uint64_t *event)
{
	(void)user;
	*event = stream;
	return 0;
}

static int event_query(void *user, uint64_t event)
{
	(void)user;
	return event == STUCK ? -EAGAIN : 0;
}

static int event_wait(void *user, uint64_t event)
{
	(void)user;
	(void)event;
	return 0;
}

static void event_destroy(void *user, uint64_t event)
{
	(void)user;
	(void)event;
}

static int device_is_done(void *user)
{
	(void)user;
	return 0;
}

static int event_await(void *user, uint64_t stream, uint64_t event)
{
	(void)user;
	(void)stream;
	(void)event;
	return 0;
}

static const struct flexmem_cache_events events = {
	.record = event_record,
	.query = event_query,
	.synchronize = event_wait,
	.destroy = event_destroy,
	.synchronize_device = device_is_done,
	.wait = event_await,
};

static void open_target(struct target *target, const char *configuration,
			uint64_t bytes)
{
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = configuration,
		.events = &events,
		.events_size = sizeof(events),
	};
	int err;

	err = flexmem_cache_flat_create(&target->flat, bytes, &provider,
					sizeof(provider));
	if (!err)
		err = flexmem_cache_create(&target->cache, &options,
					   sizeof(options));
	if (err)
		give_up("flexmem_cache_create", err);
}

static void close_target(struct target *target)
{
	flexmem_cache_destroy(target->cache);
	flexmem_cache_flat_destroy(target->flat);
}

static COUNTED void counted_cache(const struct player *player, void **tokens)
{
	const struct operation *operation = player->work->operations;
	const struct operation *end = operation + player->work->count;
	int err = 0;

	for (; operation < end && !err; operation++) {
		void **token = &tokens[operation->slot];

		if (operation->bytes) {
			err = flexmem_cache_alloc(player->cache,
						  operation->bytes,
						  operation->stream +
						  player->first_stream, token);
		} else {
			err = flexmem_cache_free(player->cache, *token);
			*token = NULL;
		}
	}
	if (err)
		give_up("replay on the cache", err);
}

/*
 * Replays several rounds. Allocations that are live at the end of a round are
 * freed before the next one.
 */
static void play_rounds(const struct player *player, void **tokens)
{
	size_t round, i;

	count_begin();
	counted_cache(player, tokens);
	count_end();
	for (round = 1; round < player->rounds; round++) {
		for (i = 0; i < player->work->slots; i++) {
			flexmem_cache_free(player->cache, tokens[i]);
			tokens[i] = NULL;
		}
		counted_cache(player, tokens);
	}
}

static void *run(void *argument)
{
	struct player *player = argument;
	void **tokens;

	tokens = need(calloc(player->work->slots, sizeof(*tokens)));
	pthread_barrier_wait(player->barrier);
	player->begin = wall_ns();
	player->ns = thread_ns();
	play_rounds(player, tokens);
	player->ns = thread_ns() - player->ns;
	player->end = wall_ns();
	free(tokens);
	return NULL;
}

/*
 * Even a single player runs in a thread of its own, because in a process with
 * only one thread locks would be cheaper.
 */
static uint64_t run_players(struct player *players, unsigned int count)
{
	uint64_t begin = UINT64_MAX;
	pthread_barrier_t barrier;
	uint64_t end = 0;
	unsigned int i;

	pthread_barrier_init(&barrier, NULL, count);
	for (i = 0; i < count; i++) {
		players[i].barrier = &barrier;
		if (pthread_create(&players[i].thread, NULL, run, &players[i]))
			give_up("pthread_create", 0);
	}
	for (i = 0; i < count; i++) {
		pthread_join(players[i].thread, NULL);
		if (players[i].begin < begin)
			begin = players[i].begin;
		if (players[i].end > end)
			end = players[i].end;
	}
	pthread_barrier_destroy(&barrier);
	return end - begin;
}

uint64_t cache_replay(const struct work *work, const char *configuration,
		      uint64_t *reserved)
{
	struct flexmem_cache_statistics statistics;
	struct player player = { .work = work, .rounds = 1 };
	struct target target;
	int err;

	open_target(&target, configuration, FLAT_BYTES);
	player.cache = target.cache;
	run_players(&player, 1);
	err = flexmem_cache_statistics(target.cache, &statistics,
				       sizeof(statistics));
	if (err)
		give_up("flexmem_cache_statistics", err);
	*reserved = statistics.reserved_bytes[FLEXMEM_CACHE_ALL].peak;
	close_target(&target);
	return player.ns;
}

/*
 * The number of operations that a stream makes before the next stream follows.
 */
#define TURN 3000

uint64_t cache_failures(const struct work *work, const char *configuration,
			uint64_t bytes, unsigned int streams)
{
	const struct operation *operation;
	uint64_t failures = 0;
	struct target target;
	void **tokens;
	size_t i;
	int err;

	tokens = need(calloc(work->slots, sizeof(*tokens)));
	open_target(&target, configuration, bytes);
	for (i = 0; i < work->count; i++) {
		operation = &work->operations[i];
		if (operation->bytes) {
			err = flexmem_cache_alloc(target.cache,
						  operation->bytes,
						  i / TURN % streams,
						  &tokens[operation->slot]);
			failures += err == -ENOMEM;
		} else {
			err = flexmem_cache_free(target.cache,
						 tokens[operation->slot]);
			tokens[operation->slot] = NULL;
		}
		if (err && err != -ENOMEM)
			give_up("replay in limited memory", err);
	}
	close_target(&target);
	free(tokens);
	return failures;
}

static COUNTED void counted_pairs(struct flexmem_cache *cache,
				  const struct flexmem_cache_request *request,
				  bool used)
{
	struct flexmem_cache_allocation made;
	size_t i;
	int err = 0;

	for (i = 0; i < PAIRS && !err; i++) {
		if (request->pool)
			err = flexmem_cache_alloc_request(cache, request,
							  sizeof(*request),
							  &made, sizeof(made));
		else
			err = flexmem_cache_alloc(cache, request->bytes,
						  request->stream, &made.token);
		if (!err && used)
			err = flexmem_cache_record_stream(cache, made.token,
							  request->stream + 1);
		if (!err)
			err = flexmem_cache_free(cache, made.token);
	}
	if (err)
		give_up("pairs", err);
}

void cache_pairs(unsigned int streams, unsigned int pools, bool used)
{
	struct flexmem_cache_request request = { .bytes = 1000 };
	struct flexmem_cache_allocation made;
	struct target target;
	uint64_t pool;
	unsigned int i;
	int err;

	open_target(&target, "", FLAT_BYTES);
	for (i = 0; i < pools; i++) {
		err = flexmem_cache_pool_create(target.cache, &pool);
		if (err)
			give_up("flexmem_cache_pool_create", err);
		request.pool = i ? request.pool : pool;
	}
	for (i = 0; i < streams; i++) {
		request.stream = i;
		err = flexmem_cache_alloc_request(target.cache, &request,
						  sizeof(request), &made,
						  sizeof(made));
		if (!err && used)
			err = flexmem_cache_record_stream(target.cache,
							  made.token, i + 1);
		/*
		 * Frees every second allocation, so that the cache then has
		 * live and freed blocks that a second stream has used.
		 */
		if (!err && used && i % 2)
			err = flexmem_cache_free(target.cache, made.token);
		if (err)
			give_up("flexmem_cache_alloc_request", err);
	}
	count_begin();
	counted_pairs(target.cache, &request, used);
	count_end();
	close_target(&target);
}

static COUNTED void counted_requests(struct flexmem_cache *cache, bool streams)
{
	void *token;
	uint64_t i;
	int err = 0;

	for (i = 0; i < REFUSED && !err; i++)
		err = flexmem_cache_alloc(cache, UINT64_C(20) << 20,
					  streams ? 2 + i : 1, &token);
	if (err)
		give_up("requests on a full device", err);
}

/*
 * Uses each of the streams once, so that no lock of a stream is made later: the
 * host's aligned_alloc() searches what was freed.
 */
static void use_streams(struct flexmem_cache *cache)
{
	void *token;
	uint64_t i;
	int err = 0;

	for (i = 0; i < REFUSED && !err; i++) {
		err = flexmem_cache_alloc(cache, 1000, 2 + i, &token);
		if (!err)
			err = flexmem_cache_free(cache, token);
	}
	if (!err)
		err = flexmem_cache_empty(cache, NULL);
	if (err)
		give_up("streams", err);
}

void cache_returns(unsigned int segments, bool streams)
{
	void **tokens = need(calloc(2 * segments, sizeof(*tokens)));
	struct target target;
	unsigned int i;
	int err = 0;

	open_target(&target, "", (uint64_t)segments << 21);
	use_streams(target.cache);
	for (i = 0; i < 2 * segments && !err; i++)
		err = flexmem_cache_alloc(target.cache, 1 << 20, 1, &tokens[i]);
	for (i = 0; i < 2 * segments && !err; i++)
		err = flexmem_cache_free(target.cache, tokens[i]);
	/*
	 * A first request, because malloc() then joins once what was freed: three
	 * million instructions after 80,000 frees.
	 */
	if (!err)
		err = flexmem_cache_alloc(target.cache, UINT64_C(20) << 20, 1,
					  &tokens[0]);
	if (err)
		give_up("a full device", err);
	count_begin();
	counted_requests(target.cache, streams);
	count_end();
	close_target(&target);
	free(tokens);
}

#define ADDRESSES 64

typedef int (*address_fn)(const struct flexmem_cache *cache, const void *token,
			  struct flexmem_virtual_address *address);

static COUNTED void counted_addresses(const struct flexmem_cache *cache,
				      void *const *tokens, address_fn call)
{
	struct flexmem_virtual_address address;
	size_t i;

	for (i = 0; i < ADDRESS_CALLS; i++) {
		if (call(cache, tokens[i % ADDRESSES], &address))
			give_up("flexmem_cache_address", 0);
	}
}

static int no_address(const struct flexmem_cache *cache, const void *token,
		      struct flexmem_virtual_address *address)
{
	(void)cache;
	(void)token;
	(void)address;
	return 0;
}

void cache_addresses(bool nothing)
{
	void *tokens[ADDRESSES];
	struct target target;
	size_t i;
	int err;

	open_target(&target, "expandable_segments:True", FLAT_BYTES);
	for (i = 0; i < ADDRESSES; i++) {
		err = flexmem_cache_alloc(target.cache, 1000, 0, &tokens[i]);
		if (err)
			give_up("flexmem_cache_alloc", err);
	}
	count_begin();
	counted_addresses(target.cache, tokens,
			  nothing ? no_address : flexmem_cache_address);
	count_end();
	close_target(&target);
}

/* Frees a block that waits for stream STUCK until the cache is destroyed. */
static void make_wait(struct flexmem_cache *cache)
{
	void *token;
	int err = flexmem_cache_alloc(cache, 1000, 0, &token);

	if (!err)
		err = flexmem_cache_record_stream(cache, token, STUCK);
	if (!err)
		err = flexmem_cache_free(cache, token);
	if (err)
		give_up("a block that waits", err);
}

struct spent cache_replay_threads(const struct work *work,
				  const char *configuration,
				  unsigned int threads, unsigned int caches,
				  bool waiting)
{
	struct player players[THREADS_MAX] = { 0 };
	struct target targets[THREADS_MAX];
	struct spent spent = { 0 };
	unsigned int i;

	/* Each segment has room to grow to the end of the space. */
	for (i = 0; i < caches; i++)
		open_target(&targets[i], configuration,
			    4 * threads * FLAT_BYTES);
	for (i = 0; i < caches && waiting; i++)
		make_wait(targets[i].cache);
	for (i = 0; i < threads; i++) {
		players[i].work = work;
		players[i].rounds = THREAD_OPERATIONS / work->count + 1;
		players[i].cache = targets[i % caches].cache;
		players[i].first_stream = (uint64_t)i << STREAM_SHIFT;
	}
	spent.wall = run_players(players, threads);
	for (i = 0; i < threads; i++)
		spent.cpu += players[i].ns / threads;
	for (i = 0; i < caches; i++)
		close_target(&targets[i]);
	return spent;
}
