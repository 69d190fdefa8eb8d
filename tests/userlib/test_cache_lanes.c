// SPDX-License-Identifier: GPL-2.0
/*
 * Threads with streams of their own on one cache. The blocks of a thread must
 * not depend on other threads. So each thread has a model of its own, and all
 * figures of the cache must be sums of the figures of the models. Built with
 * TSan as well.
 */
#include "cache_model.h"
#include "cache_viewer.h"
#include "cache/cache.h"
#include "test.h"

#include <flexmem_cache.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS 4
#define ROUNDS 3000
#define LIVE 96
#define SEGMENTS 512
#define CAPACITY (UINT64_C(4) << 40)
/* More than the shared segments have, and the least size of a block. */
#define SHARED_BYTES GIB
#define UNIT 128

/*
 * @base: for each segment of the model, its offset on the device minus its
 * offset in the model's world. Set when the segment gets its first block.
 */
struct worker {
	struct flexmem_cache *cache;
	struct model model;
	struct world world;
	uint64_t stream;
	uint32_t seed;
	void *tokens[LIVE];
	uint64_t places[LIVE];
	uint64_t sizes[LIVE];
	uint64_t base[SEGMENTS];
	bool known[SEGMENTS];
	const char *failed;
	pthread_t thread;
};

static atomic_bool over;

/*
 * The bytes of shared segments: 1 if a block has them. They are not atomic, so
 * TSan sees whether two threads use the same bytes.
 */
static unsigned char in_use[SHARED_BYTES / UNIT];

static uint32_t next(struct worker *worker)
{
	worker->seed = worker->seed * UINT32_C(1664525) + UINT32_C(1013904223);
	return worker->seed >> 8;
}

static void expect(struct worker *worker, bool good, const char *what)
{
	if (!good && !worker->failed)
		worker->failed = what;
}

static size_t segment_of(const struct model *model, uint64_t address)
{
	size_t i = 0;

	while (i < model->count &&
	       address - model->segments[i]->address >=
	       model->segments[i]->size)
		i++;
	return i;
}

/* Uses the bytes of a block in a shared segment, or ends that. */
static void use_bytes(struct worker *worker, size_t id, bool begin)
{
	uint64_t i = worker->places[id] / UNIT;
	uint64_t end = i + worker->sizes[id] / UNIT;

	expect(worker, end <= sizeof(in_use), "a place far away");
	for (; i < end && !worker->failed; i++) {
		expect(worker, in_use[i] != begin, "the bytes of another block");
		in_use[i] = begin;
	}
}

static void compare_place(struct worker *worker, size_t id,
			  const struct model_result *expected)
{
	void *token = worker->tokens[id];
	size_t i = segment_of(&worker->model, expected->address);
	struct flexmem_cache_allocation found;
	uint64_t base;

	if (i >= SEGMENTS ||
	    flexmem_cache_lookup(worker->cache, token, &found, sizeof(found),
				 NULL)) {
		expect(worker, false, "no such allocation");
		return;
	}
	expect(worker, found.stream == worker->stream, "another stream");
	expect(worker, found.size == expected->size, "another size");
	/* In shared segments other threads decide where memory is free. */
	if (worker->model.setup->reuse) {
		worker->places[id] = found.address.offset;
		worker->sizes[id] = found.size;
		use_bytes(worker, id, true);
		return;
	}
	base = found.address.offset - expected->address;
	if (!worker->known[i])
		worker->base[i] = base;
	worker->known[i] = true;
	expect(worker, base == worker->base[i], "another place");
}

static void alloc_one(struct worker *worker, size_t id)
{
	struct model_request request = {
		.bytes = next(worker) % 8 ? next(worker) % (64 * KIB) + 1 :
			 next(worker) % (12 * MIB) + 1,
		.stream = worker->stream,
		.simple = true,
	};
	struct model_result expected;
	int err;

	err = model_alloc(&worker->model, &request, id, &expected);
	expect(worker, !err, "the model has no memory");
	err = flexmem_cache_alloc(worker->cache, request.bytes,
				  worker->stream, &worker->tokens[id]);
	expect(worker, !err, "the cache has no memory");
	if (!err)
		compare_place(worker, id, &expected);
}

static void free_one(struct worker *worker, size_t id)
{
	void *token = worker->tokens[id];

	worker->tokens[id] = NULL;
	if (worker->model.setup->reuse)
		use_bytes(worker, id, false);
	expect(worker, !model_free(&worker->model, id), "the model's free");
	expect(worker, !flexmem_cache_free(worker->cache, token), "a free");
	expect(worker, flexmem_cache_free(worker->cache, token) == -EINVAL,
	       "a double free");
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	size_t id;
	int i;

	for (i = 0; i < ROUNDS && !worker->failed; i++) {
		id = next(worker) % LIVE;
		if (worker->tokens[id])
			free_one(worker, id);
		else
			alloc_one(worker, id);
	}
	return NULL;
}

/*
 * Makes calls that take all locks. The figures that they return must be
 * consistent.
 */
static void *observe(void *argument)
{
	struct worker *worker = argument;
	struct flexmem_cache_statistics f;
	char *text;

	while (!atomic_load(&over)) {
		expect(worker, !flexmem_cache_statistics(worker->cache, &f,
							 sizeof(f)),
		       "no statistics");
		expect(worker, f.allocated_bytes[0].current ==
		       f.allocated_bytes[0].allocated -
		       f.allocated_bytes[0].freed, "sums do not fit");
		expect(worker, f.allocated_bytes[0].current +
		       f.inactive_split_bytes[0].current <=
		       f.reserved_bytes[0].current, "more than there is");
		expect(worker, f.allocated_bytes[0].current <=
		       f.allocated_bytes[0].peak, "no peak");
		expect(worker, !flexmem_cache_snapshot(worker->cache, 0, &text,
						       NULL), "no snapshot");
		expect(worker, !viewer_refuses_text(text), "a bad snapshot");
		flexmem_cache_text_free(text);
		sched_yield();
	}
	return NULL;
}

static void add_up(struct flexmem_cache_figure *sum,
		   const struct flexmem_cache_figure *part)
{
	sum->current += part->current;
	sum->peak += part->peak;
	sum->allocated += part->allocated;
	sum->freed += part->freed;
}

/* The peak of a sum lies between the present sum and the sum of all peaks. */
static void compare_figure(const struct worker *workers,
			   const struct flexmem_cache_statistics *found,
			   const struct flexmem_cache_figure *figure)
{
	size_t offset = (size_t)((const char *)figure - (const char *)found);
	struct flexmem_cache_figure sum = { 0 };
	int i;

	for (i = 0; i < THREADS; i++)
		add_up(&sum, (const struct flexmem_cache_figure *)
			     ((const char *)&workers[i].model.figures +
			      offset));
	assert_int_equal(figure->current, sum.current);
	assert_int_equal(figure->allocated, sum.allocated);
	assert_int_equal(figure->freed, sum.freed);
	assert_in_range(figure->peak, sum.current, sum.peak);
}

static void compare_figures(const struct worker *workers)
{
	struct flexmem_cache_statistics f;
	uint64_t hits = 0;
	uint64_t misses = 0;
	int kind;
	int i;

	assert_int_equal(flexmem_cache_statistics(workers->cache, &f,
						  sizeof(f)), 0);
	for (kind = 0; kind < FLEXMEM_CACHE_POOL_KINDS; kind++) {
		compare_figure(workers, &f, &f.allocation[kind]);
		compare_figure(workers, &f, &f.active[kind]);
		compare_figure(workers, &f, &f.allocated_bytes[kind]);
		compare_figure(workers, &f, &f.active_bytes[kind]);
		compare_figure(workers, &f, &f.requested_bytes[kind]);
		if (workers->model.setup->reuse)
			continue;
		compare_figure(workers, &f, &f.segment[kind]);
		compare_figure(workers, &f, &f.inactive_split[kind]);
		compare_figure(workers, &f, &f.reserved_bytes[kind]);
		compare_figure(workers, &f, &f.inactive_split_bytes[kind]);
	}
	if (workers->model.setup->reuse)
		return;
	for (i = 0; i < THREADS; i++) {
		hits += workers[i].model.figures.num_hits;
		misses += workers[i].model.figures.num_misses;
	}
	assert_int_equal(f.num_hits, hits);
	assert_int_equal(f.num_misses, misses);
}

static void start(struct worker *worker, const struct model_setup *setup,
		  struct flexmem_cache *cache, uint64_t stream)
{
	worker->cache = cache;
	worker->stream = stream;
	worker->seed = (uint32_t)stream + 1;
	world_start(&worker->world, CAPACITY);
	model_start(&worker->model, setup, &worker->world);
}

static void together(const struct model_setup *setup)
{
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = setup->configuration,
	};
	static struct worker workers[THREADS + 1];
	struct flexmem_cache_flat *flat;
	struct flexmem_cache *cache;
	int i;

	memset(workers, 0, sizeof(workers));
	memset(in_use, 0, sizeof(in_use));
	atomic_store(&over, false);
	assert_int_equal(flexmem_cache_flat_create(&flat, CAPACITY, &provider,
						   sizeof(provider)), 0);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	for (i = 0; i <= THREADS; i++) {
		start(&workers[i], setup, cache, (uint64_t)i);
		assert_int_equal(pthread_create(&workers[i].thread, NULL,
						i < THREADS ? work : observe,
						&workers[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&over, true);
	pthread_join(workers[THREADS].thread, NULL);
	for (i = 0; i <= THREADS; i++) {
		if (workers[i].failed)
			print_error("thread %d: %s\n", i, workers[i].failed);
		assert_null(workers[i].failed);
	}
	compare_figures(workers);
	for (i = 0; i <= THREADS; i++)
		model_end(&workers[i].model);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}

static void fixed(void **state)
{
	const struct model_setup setup = { .configuration = "" };

	(void)state;
	together(&setup);
}

static void growing(void **state)
{
	const struct model_setup setup = {
		.configuration = "expandable_segments:True",
		.growing = true,
	};

	(void)state;
	together(&setup);
}

/* All streams share the segments, whose order the threads decide. */
static void shared(void **state)
{
	const struct model_setup setup = {
		.configuration = "expandable_segments:True,reuse:done",
		.growing = true,
		.reuse = MODEL_REUSE_DONE,
	};

	(void)state;
	together(&setup);
}

/* With one thread peaks are exact, also on many streams. */
static void one_thread(void **state)
{
	const struct model_setup setup = { .configuration = "" };
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = "",
	};
	static struct worker worker;
	struct flexmem_cache_statistics f;
	struct flexmem_cache_flat *flat;
	int i;

	(void)state;
	assert_int_equal(flexmem_cache_flat_create(&flat, CAPACITY, &provider,
						   sizeof(provider)), 0);
	assert_int_equal(flexmem_cache_create(&worker.cache, &options,
					      sizeof(options)), 0);
	start(&worker, &setup, worker.cache, 0);
	/* There are more streams than lanes. */
	for (i = 0; i < 40; i++) {
		worker.stream = (uint64_t)i << (i % 48);
		work(&worker);
		assert_null(worker.failed);
	}
	assert_int_equal(flexmem_cache_statistics(worker.cache, &f,
						  sizeof(f)), 0);
	assert_memory_equal(f.allocated_bytes,
			    worker.model.figures.allocated_bytes,
			    sizeof(f.allocated_bytes));
	assert_memory_equal(f.inactive_split_bytes,
			    worker.model.figures.inactive_split_bytes,
			    sizeof(f.inactive_split_bytes));
	model_end(&worker.model);
	flexmem_cache_destroy(worker.cache);
	flexmem_cache_flat_destroy(flat);
}

#define NAMES (int)FMLIB_CHUNK
static pthread_barrier_t begins;

/* Makes calls that take only the locks of the lane and of the account. */
static void *add_up_meanwhile(void *cache)
{
	void *token;
	int i;

	for (i = 0; i < 400; i++) {
		assert_int_equal(flexmem_cache_alloc(cache, 100, 1, &token),
				 0);
		assert_int_equal(flexmem_cache_free(cache, token), 0);
		/* Between these steps the other thread uses up the tokens. */
		if (i == 100 || i == 101)
			pthread_barrier_wait(&begins);
	}
	return NULL;
}

/*
 * A request that fails because all tokens are used reports the figures of all
 * lanes, while another lane works.
 */
static void names_are_used_up(void **state)
{
	struct flexmem_cache_request request = { .bytes = 100 };
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = "expandable_segments:True",
	};
	struct flexmem_cache_allocation a;
	struct flexmem_cache_flat *flat;
	struct flexmem_cache *cache;
	pthread_t thread;
	uint32_t count;
	void *token;
	int i;

	(void)state;
	assert_int_equal(flexmem_cache_flat_create(&flat, CAPACITY, &provider,
						   sizeof(provider)), 0);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	for (i = 0; i < NAMES; i++)
		assert_int_equal(flexmem_cache_alloc(cache, 100, 0, &token),
				 0);
	pthread_barrier_init(&begins, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, add_up_meanwhile,
					cache), 0);
	/*
	 * Only the other lane has tokens left: the test makes all tokens count
	 * as taken by streams.
	 */
	pthread_barrier_wait(&begins);
	fmlib_lock(cache);
	count = cache->narrow.count;
	cache->narrow.count = FLEXMEM_CACHE_ALLOCATIONS >> FMLIB_CHUNK_BITS;
	fmlib_unlock(cache);
	pthread_barrier_wait(&begins);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), -ENOMEM);
	assert_int_equal(a.failure.limit, FLEXMEM_CACHE_LIMIT_ALLOCATIONS);
	assert_in_range(a.failure.allocated_bytes, NAMES * 128,
			(NAMES + 1) * 128);
	pthread_join(thread, NULL);
	fmlib_lock(cache);
	cache->narrow.count = count;
	fmlib_unlock(cache);
	pthread_barrier_destroy(&begins);
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed),
		cmocka_unit_test(growing),
		cmocka_unit_test(shared),
		cmocka_unit_test(names_are_used_up),
		cmocka_unit_test(one_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
