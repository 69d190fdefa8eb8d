// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The threads' own stores of small blocks. What a thread puts there is parked:
 * free for the callers, live for the rest of the cache. A hit takes no lock;
 * the word of the name decides between threads that free the same token.
 *
 * A store belongs to its thread. Its tally is written by that thread and read
 * by others; everything else in it only the thread touches, except @cache,
 * which the destruction of the cache clears, with its lock. A thread that ends
 * keeps the cache from being freed before it has seen that.
 */
#include "cache.h"

#include <stdlib.h>

struct fmlib_store {
	_Atomic(struct flexmem_cache *) cache;
	struct fmlib_store *next_of_thread;
	struct fmlib_store *next_of_cache;
	struct fmlib_tally tally;
	uint64_t recall;
	size_t bin_count;
	struct fmlib_name *bins[];
};

static _Thread_local struct fmlib_store *own_stores;
/* Nobody might clear up after this thread again: it keeps nothing any more. */
static _Thread_local bool ends;
static pthread_key_t key;

void fmlib_threads_allow(struct flexmem_cache *cache)
{
	atomic_store(&cache->fast, cache->config.threads &&
		     !cache->history.room &&
		     !fmlib_cache_logs(cache, FLEXMEM_LOG_DEBUG));
}

static uint64_t get(const _Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

/* Only one thread writes it. Who sees it sees what was written before. */
static void add(_Atomic uint64_t *value, uint64_t more)
{
	atomic_store_explicit(value, get(value) + more, memory_order_release);
}

static void count_parked(struct fmlib_tally *tally,
			 const struct fmlib_block *block)
{
	add(&tally->parked, 1);
	add(&tally->parked_bytes, block->size);
	add(&tally->parked_requested, block->requested);
}

static void count_hit(struct fmlib_tally *tally,
		      const struct fmlib_block *block)
{
	add(&tally->hits, 1);
	add(&tally->hit_bytes, block->size);
	add(&tally->hit_requested, block->requested);
}

static void count_shed(struct fmlib_tally *tally,
		       const struct fmlib_block *block)
{
	add(&tally->shed, 1);
	add(&tally->shed_bytes, block->size);
	add(&tally->shed_requested, block->requested);
}

/* By its own thread, or when that does nothing any more. */
static uint64_t held_bytes(const struct fmlib_tally *tally)
{
	return get(&tally->parked_bytes) - get(&tally->hit_bytes) -
	       get(&tally->shed_bytes);
}

/* Who parked it may have it from a hit of another's: that is to be seen then. */
static uint64_t get_first(const _Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_acquire);
}

static void sum_parked(const struct fmlib_tally *tally, struct fmlib_kept *sum)
{
	sum->held += get_first(&tally->parked);
	sum->held_bytes += get_first(&tally->parked_bytes);
	sum->held_requested += get_first(&tally->parked_requested);
}

static void sum_gone(const struct fmlib_tally *tally, struct fmlib_kept *hits,
		     struct fmlib_kept *shed)
{
	hits->hits += get(&tally->hits);
	hits->hit_bytes += get(&tally->hit_bytes);
	hits->hit_requested += get(&tally->hit_requested);
	shed->held += get(&tally->shed);
	shed->held_bytes += get(&tally->shed_bytes);
	shed->held_requested += get(&tally->shed_requested);
}

static uint64_t less(uint64_t parked, uint64_t gone)
{
	return parked > gone ? parked - gone : 0;
}

/*
 * Threads go on meanwhile: one may allocate what it kept, and another free that.
 * Were one store looked at after the other, it could be seen in both, and more
 * would be kept than is live. So first all is read that was parked, and then
 * all that is gone again. At the moment between the two no less had been parked
 * than was read, and no more was gone: no more is said to be kept than was kept
 * then. It may be less, by what has come and gone while this was read.
 */
struct fmlib_kept fmlib_threads_sum(const struct flexmem_cache *cache)
{
	const struct fmlib_store *store;
	struct fmlib_kept gone = { 0 };
	struct fmlib_kept sum = { 0 };

	sum_parked(&cache->retired, &sum);
	for (store = cache->stores; store; store = store->next_of_cache)
		sum_parked(&store->tally, &sum);
	sum_gone(&cache->retired, &sum, &gone);
	for (store = cache->stores; store; store = store->next_of_cache)
		sum_gone(&store->tally, &sum, &gone);
	sum.held = less(sum.held, gone.held + sum.hits);
	sum.held_bytes = less(sum.held_bytes, gone.held_bytes + sum.hit_bytes);
	sum.held_requested = less(sum.held_requested,
				  gone.held_requested + sum.hit_requested);
	return sum;
}

static struct fmlib_store *find_store(const struct flexmem_cache *cache)
{
	struct fmlib_store *store = own_stores;

	while (store && atomic_load_explicit(&store->cache,
					     memory_order_relaxed) != cache)
		store = store->next_of_thread;
	return store;
}

/* With the cache's lock. */
static void empty_bin(struct flexmem_cache *cache, struct fmlib_store *store,
		      size_t bin)
{
	struct fmlib_name *name;

	while ((name = store->bins[bin])) {
		store->bins[bin] = name->next;
		fmlib_name_set(name, FMLIB_NAME_FREE);
		count_shed(&store->tally, name->block);
		fmlib_cache_unpark(cache, name->block);
	}
}

/* With the cache's lock; the largest go first, until @bytes are left. */
static void shed(struct flexmem_cache *cache, struct fmlib_store *store,
		 uint64_t bytes)
{
	size_t bin = store->bin_count;

	while (bin && held_bytes(&store->tally) > bytes)
		empty_bin(cache, store, --bin);
}

static void shed_unlocked(struct flexmem_cache *cache,
			  struct fmlib_store *store, uint64_t bytes)
{
	fmlib_lock(cache);
	store->recall = get(&cache->recall);
	shed(cache, store, bytes);
	fmlib_figures_commit(cache, &cache->account);
	fmlib_unlock(cache);
}

/* Stores of caches that are gone. */
static void sweep(void)
{
	struct fmlib_store **link = &own_stores;
	struct fmlib_store *store;

	while ((store = *link)) {
		if (atomic_load(&store->cache)) {
			link = &store->next_of_thread;
			continue;
		}
		*link = store->next_of_thread;
		free(store);
	}
}

static struct fmlib_store *make_store(struct flexmem_cache *cache)
{
	size_t bins = cache->profile.thread_limit / cache->profile.granule + 1;
	struct fmlib_store *store;

	if (ends)
		return NULL;
	sweep();
	store = calloc(1, sizeof(*store) + bins * sizeof(store->bins[0]));
	if (!store)
		return NULL;
	/* Any value but NULL: it is there to have the destructor called. */
	if (pthread_setspecific(key, &key)) {
		free(store);
		return NULL;
	}
	store->bin_count = bins;
	atomic_init(&store->cache, cache);
	store->next_of_thread = own_stores;
	own_stores = store;
	fmlib_lock(cache);
	store->recall = get(&cache->recall);
	store->next_of_cache = cache->stores;
	cache->stores = store;
	cache->store_count++;
	if (cache->store_count > cache->store_peak)
		cache->store_peak = cache->store_count;
	fmlib_unlock(cache);
	return store;
}

/* The store, after what was asked of it; NULL: none, and none was made. */
static struct fmlib_store *usable_store(struct flexmem_cache *cache, bool make)
{
	struct fmlib_store *store = find_store(cache);

	if (store && store->recall != get(&cache->recall))
		shed_unlocked(cache, store, 0);
	/* Also while they are closed it was asked, and had to answer. */
	if (!atomic_load_explicit(&cache->fast, memory_order_relaxed))
		return NULL;
	return store || !make ? store : make_store(cache);
}

void fmlib_threads_answer(struct flexmem_cache *cache)
{
	usable_store(cache, false);
}

bool fmlib_threads_alloc(struct flexmem_cache *cache, uint64_t bytes,
			 uint64_t stream, void **token)
{
	struct fmlib_store *store = usable_store(cache, false);
	const struct fmlib_block *block;
	struct fmlib_name *name;
	uint64_t size;

	if (!store || !bytes || bytes > cache->profile.thread_limit)
		return false;
	size = fmlib_size_round(cache, bytes);
	if (size > cache->profile.thread_limit)
		return false;
	name = store->bins[size / cache->profile.granule];
	if (!name)
		return false;
	block = name->block;
	if (block->requested != bytes ||
	    block->segment->arena->stream != stream)
		return false;
	store->bins[size / cache->profile.granule] = name->next;
	count_hit(&store->tally, block);
	fmlib_name_set(name, FMLIB_NAME_PLAIN);
	*token = fmlib_name_token(name);
	return true;
}

bool fmlib_threads_free(struct flexmem_cache *cache, void *token)
{
	struct fmlib_store *store = usable_store(cache, true);
	struct fmlib_name *name;
	uint64_t offset;
	uint64_t limit;
	uint64_t word;
	size_t bin;

	if (!store)
		return false;
	name = fmlib_name_find(cache, token, &word, &offset);
	if (!name || offset || fmlib_name_state(word) != FMLIB_NAME_PLAIN ||
	    !fmlib_name_retire(name, word, FMLIB_NAME_PARKED))
		return false;
	bin = name->block->size / cache->profile.granule;
	name->next = store->bins[bin];
	store->bins[bin] = name;
	count_parked(&store->tally, name->block);
	limit = cache->profile.thread_bytes;
	/* What a reset has lost is not kept for anybody. */
	if (fmlib_segment_leaves(name->block->segment))
		shed_unlocked(cache, store, 0);
	else if (held_bytes(&store->tally) > limit)
		shed_unlocked(cache, store, limit / 2);
	return true;
}

void fmlib_threads_recall(struct flexmem_cache *cache)
{
	struct fmlib_store *store = find_store(cache);

	if (!cache->stores)
		return;
	add(&cache->recall, 1);
	if (!store)
		return;
	store->recall = get(&cache->recall);
	shed(cache, store, 0);
}

/* It keeps nothing any more. What it served is still to be known. */
static void retire(struct fmlib_tally *sum, const struct fmlib_tally *tally)
{
	uint64_t hits = get(&tally->hits);
	uint64_t bytes = get(&tally->hit_bytes);
	uint64_t requested = get(&tally->hit_requested);

	add(&sum->parked, hits);
	add(&sum->parked_bytes, bytes);
	add(&sum->parked_requested, requested);
	add(&sum->hits, hits);
	add(&sum->hit_bytes, bytes);
	add(&sum->hit_requested, requested);
}

static void unlink_store(struct flexmem_cache *cache, struct fmlib_store *store)
{
	struct fmlib_store **link = &cache->stores;

	while (*link != store)
		link = &(*link)->next_of_cache;
	*link = store->next_of_cache;
	cache->store_count--;
}

/* What it kept goes back, unless the cache is being destroyed. */
static void give_up(struct flexmem_cache *cache, struct fmlib_store *store)
{
	fmlib_lock(cache);
	if (atomic_load(&store->cache)) {
		/* In a child that is the parent's. */
		if (!fmlib_cache_check(cache))
			shed(cache, store, 0);
		retire(&cache->retired, &store->tally);
		unlink_store(cache, store);
		fmlib_figures_commit(cache, &cache->account);
	}
	fmlib_unlock(cache);
}

/*
 * The end of a thread. The provider and the log may be called meanwhile, so the
 * registry is not locked: others can make caches, and end.
 */
static void thread_ends(void *unused)
{
	struct flexmem_cache *cache;
	struct fmlib_store *store;

	(void)unused;
	ends = true;
	while ((store = own_stores)) {
		own_stores = store->next_of_thread;
		cache = fmlib_registry_hold(&store->cache);
		if (cache) {
			give_up(cache, store);
			fmlib_cache_put(cache);
		}
		free(store);
	}
}

int fmlib_threads_start(void)
{
	return -pthread_key_create(&key, thread_ends);
}

void fmlib_threads_detach(struct flexmem_cache *cache)
{
	struct fmlib_store *store;

	while ((store = cache->stores)) {
		cache->stores = store->next_of_cache;
		/* Its thread may free it at once. */
		atomic_store(&store->cache, NULL);
	}
}
