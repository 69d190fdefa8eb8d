// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The threads' own stores of small blocks. What a thread puts there is parked:
 * free for the callers, live for the rest of the cache. A hit takes no lock;
 * the word of the name decides between threads that free the same token.
 *
 * A store belongs to its thread. Its tally is written by that thread and read
 * by others; everything else in it only the thread touches, except @cache,
 * which the destruction of the cache clears. The end of the thread and that of
 * the cache exclude each other by the registry's lock.
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

/* Only one thread writes it. */
static void change(_Atomic uint64_t *value, uint64_t by)
{
	atomic_store_explicit(value, get(value) + by, memory_order_relaxed);
}

static void count_held(struct fmlib_tally *tally,
		       const struct fmlib_block *block, uint64_t sign)
{
	change(&tally->held, sign);
	change(&tally->held_bytes, sign * block->size);
	change(&tally->held_requested, sign * block->requested);
}

static void add_tally(struct fmlib_tally *sum, const struct fmlib_tally *tally)
{
	change(&sum->held, get(&tally->held));
	change(&sum->held_bytes, get(&tally->held_bytes));
	change(&sum->held_requested, get(&tally->held_requested));
	change(&sum->hits, get(&tally->hits));
	change(&sum->hit_bytes, get(&tally->hit_bytes));
	change(&sum->hit_requested, get(&tally->hit_requested));
}

void fmlib_threads_sum(const struct flexmem_cache *cache,
		       struct fmlib_tally *sum)
{
	const struct fmlib_store *store;

	*sum = (struct fmlib_tally){ 0 };
	add_tally(sum, &cache->retired);
	for (store = cache->stores; store; store = store->next_of_cache)
		add_tally(sum, &store->tally);
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
		count_held(&store->tally, name->block, -UINT64_C(1));
		fmlib_cache_unpark(cache, name->block);
	}
}

/* With the cache's lock; the largest go first, until @bytes are left. */
static void shed(struct flexmem_cache *cache, struct fmlib_store *store,
		 uint64_t bytes)
{
	size_t bin = store->bin_count;

	while (bin && get(&store->tally.held_bytes) > bytes)
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
	count_held(&store->tally, block, -UINT64_C(1));
	change(&store->tally.hits, 1);
	change(&store->tally.hit_bytes, size);
	change(&store->tally.hit_requested, bytes);
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
	count_held(&store->tally, name->block, 1);
	limit = cache->profile.thread_bytes;
	/* What a reset has lost is not kept for anybody. */
	if (fmlib_segment_leaves(name->block->segment))
		shed_unlocked(cache, store, 0);
	else if (get(&store->tally.held_bytes) > limit)
		shed_unlocked(cache, store, limit / 2);
	return true;
}

void fmlib_threads_recall(struct flexmem_cache *cache)
{
	struct fmlib_store *store = find_store(cache);

	if (!cache->stores)
		return;
	change(&cache->recall, 1);
	if (!store)
		return;
	store->recall = get(&cache->recall);
	shed(cache, store, 0);
}

static void unlink_store(struct flexmem_cache *cache, struct fmlib_store *store)
{
	struct fmlib_store **link = &cache->stores;

	while (*link != store)
		link = &(*link)->next_of_cache;
	*link = store->next_of_cache;
	cache->store_count--;
}

/* The end of a thread. What it kept goes back to its caches. */
static void thread_ends(void *unused)
{
	struct flexmem_cache *cache;
	struct fmlib_store *store;

	(void)unused;
	fmlib_registry_lock();
	while ((store = own_stores)) {
		own_stores = store->next_of_thread;
		cache = atomic_load(&store->cache);
		if (cache && !fmlib_cache_check(cache)) {
			fmlib_lock(cache);
			shed(cache, store, 0);
			add_tally(&cache->retired, &store->tally);
			unlink_store(cache, store);
			fmlib_figures_commit(cache, &cache->account);
			fmlib_unlock(cache);
		}
		free(store);
	}
	fmlib_registry_unlock();
}

int fmlib_threads_start(void)
{
	return -pthread_key_create(&key, thread_ends);
}

void fmlib_threads_detach(struct flexmem_cache *cache)
{
	struct fmlib_store *store;

	fmlib_registry_lock();
	while ((store = cache->stores)) {
		cache->stores = store->next_of_cache;
		atomic_store(&store->cache, NULL);
	}
	fmlib_registry_unlock();
}
