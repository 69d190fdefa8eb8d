// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Creates and destroys caches. */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXTS_MIN FMLIB_SIZE_TO(struct flexmem_cache_contexts, user)
#define EVENTS_MIN FMLIB_SIZE_TO(struct flexmem_cache_events, user)
#define OPTIONS_MIN FMLIB_SIZE_TO(struct flexmem_cache_options, device_index)
#define PROFILE_MIN FMLIB_SIZE_TO(struct flexmem_cache_profile, growing_step)

#define MIB (UINT64_C(1) << 20)

static const struct flexmem_cache_profile default_profile = {
	.granule = 128,
	.small_limit = MIB,
	.small_segment = 2 * MIB,
	.large_limit = 10 * MIB,
	.large_segment = 20 * MIB,
	.large_round = 2 * MIB,
	.large_remainder = MIB,
	.oversize_slack = MIB,
	.growing_step = 2 * MIB,
};

/* The largest size in a profile. Sums of sizes must not overflow. */
#define PROFILE_MAX (UINT64_C(1) << 42)

#define FLAGS                                             \
	(FLEXMEM_CACHE_STRICT | FLEXMEM_CACHE_MAPPABLE | \
	 FLEXMEM_CACHE_MAPPED)

/*
 * The largest device number. It limits the size of a snapshot, which has an
 * entry for each lower number.
 */
#define DEVICE_MAX 65535

/* Logs why the cache cannot be created. Returns the error. */
static int refuse(struct flexmem_cache *cache, const char *why)
{
	fmlib_cache_complain(cache, "%s", why);
	return -EINVAL;
}

static int read_provider(struct flexmem_cache *cache,
			 const struct flexmem_cache_options *options)
{
	struct flexmem_cache_provider *provider = &cache->provider;
	int err;

	if (!options->device == !options->provider)
		return refuse(cache, options->device ?
			      "there is both a device and a provider" :
			      "there is neither a device nor a provider");
	if (options->device && options->device->adopted) {
		refuse(cache, "the device was adopted: open one for the cache");
		return -EOPNOTSUPP;
	}
	if (options->device) {
		fmlib_provider_device(options->device, provider);
		return options->flags & FLEXMEM_CACHE_MAPPABLE &&
		       !(options->device->info.out_capabilities &
			 FLEXMEM_CAP_MAP) ? -EOPNOTSUPP : 0;
	}
	err = fmlib_copy_in(provider, sizeof(*provider), options->provider,
			    options->provider_size, FMLIB_PROVIDER_MIN);
	if (err)
		return err;
	return provider->alloc && provider->free ? 0 :
	       refuse(cache, "the provider lacks 'alloc' or 'free'");
}

static int prepare_maps(struct flexmem_cache *cache)
{
	struct flexmem_cache_provider *provider = &cache->provider;

	if (!(cache->flags & FLEXMEM_CACHE_MAPPED))
		return 0;
	if (!provider->map || !provider->unmap)
		return -EOPNOTSUPP;
	cache->flags |= FLEXMEM_CACHE_MAPPABLE;
	/* A mapped segment cannot be resized. */
	provider->grow = NULL;
	provider->shrink = NULL;
	cache->pointers = fmlib_pointers_make();
	return cache->pointers ? 0 : -ENOMEM;
}

static int read_events(struct flexmem_cache *cache,
		       const struct flexmem_cache_options *options)
{
	struct flexmem_cache_events *events = &cache->events;
	int err;

	if (!options->events)
		return 0;
	err = fmlib_copy_in(events, sizeof(*events), options->events,
			    options->events_size, EVENTS_MIN);
	if (err)
		return err;
	if (!events->record || !events->query || !events->synchronize ||
	    !events->destroy || !events->synchronize_device)
		return refuse(cache, "a callback of the events is missing");
	cache->has_events = true;
	return 0;
}

static bool is_consistent(const struct flexmem_cache_profile *p)
{
	uint64_t granule = p->granule;

	if (granule < 128 || granule & (granule - 1))
		return false;
	if (p->small_segment % granule || p->large_segment % granule ||
	    p->large_round % granule || p->growing_step % granule)
		return false;
	/* The largest request of a kind must fit into a segment. */
	return p->small_limit / granule <= p->small_segment / granule &&
	       p->large_limit <= p->large_segment &&
	       p->small_limit <= p->large_limit;
}

static int read_contexts(struct flexmem_cache *cache,
			 const struct flexmem_cache_options *options)
{
	if (!options->contexts)
		return 0;
	return fmlib_copy_in(&cache->contexts, sizeof(cache->contexts),
			     options->contexts, options->contexts_size,
			     CONTEXTS_MIN);
}

/* Reads the sizes of a profile. 0 means the default. */
static int read_profile(struct flexmem_cache *cache,
			const struct flexmem_cache_options *options)
{
	const uint64_t *initial = (const uint64_t *)&default_profile;
	uint64_t *values = (uint64_t *)&cache->profile;
	size_t i;
	int err;

	if (options->profile) {
		err = fmlib_copy_in(&cache->profile, sizeof(cache->profile),
				    options->profile, options->profile_size,
				    PROFILE_MIN);
		if (err)
			return err;
	}
	for (i = 0; i < sizeof(cache->profile) / sizeof(*values); i++) {
		if (!values[i])
			values[i] = initial[i];
		if (values[i] > PROFILE_MAX)
			return refuse(cache,
				      "a size of the profile is above 4 TiB");
	}
	return is_consistent(&cache->profile) ? 0 :
	       refuse(cache, "the sizes of the profile contradict each other");
}

static void read_log(struct flexmem_cache *cache,
		     const struct flexmem_cache_options *options)
{
	cache->log = options->log;
	cache->log_user = options->log_user;
	cache->log_level = options->level;
	/*
	 * A callback with no valid level gets warnings, so that no error is
	 * lost.
	 */
	if (cache->log_level == FLEXMEM_LOG_NONE ||
	    cache->log_level > FLEXMEM_LOG_DEBUG)
		cache->log_level = FLEXMEM_LOG_WARNING;
	if (cache->log)
		return;
	cache->log = fmlib_log_of_environment(true);
	cache->log_level = FLEXMEM_LOG_DEBUG;
}

static int begin_history(struct flexmem_cache *cache)
{
	struct fmlib_event *events = NULL;

	if (cache->config.history) {
		events = fmlib_history_new(cache->config.history);
		if (!events)
			return -ENOMEM;
	}
	free(fmlib_history_begin(cache, events));
	return 0;
}

static int read_options(struct flexmem_cache *cache,
			const struct flexmem_cache_options *options)
{
	int err;

	read_log(cache, options);
	cache->flags = options->flags;
	if (options->problem && options->problem_length) {
		cache->problem = options->problem;
		cache->problem_length = options->problem_length;
	}
	if (options->level > FLEXMEM_LOG_DEBUG)
		return refuse(cache, "there is no such level of the log");
	if (options->device_index > DEVICE_MAX)
		return refuse(cache, "the number of the device is too large");
	if (options->reserved)
		return refuse(cache, "a reserved field of the options is not 0");
	err = read_provider(cache, options);
	if (!err)
		err = prepare_maps(cache);
	if (!err)
		err = read_events(cache, options);
	if (!err)
		err = read_contexts(cache, options);
	if (!err)
		err = read_profile(cache, options);
	if (!err)
		err = fmlib_registry_start();
	if (!err)
		err = fmlib_tokens_start(&cache->narrow, false);
	if (!err)
		err = fmlib_tokens_start(&cache->wide, true);
	return err;
}

static int read_settings(struct flexmem_cache *cache, const char *configuration)
{
	bool unheard;
	int err;

	/*
	 * Without FLEXMEM_CACHE_STRICT an ignored setting is no failure, so
	 * @problem does not get the warning.
	 */
	if (!(cache->flags & FLEXMEM_CACHE_STRICT))
		cache->problem = NULL;
	/*
	 * Reading the settings may log a warning. If the caller gave no
	 * callback, log.c prints the warning.
	 */
	unheard = !cache->log && !(cache->flags & FLEXMEM_CACHE_STRICT);
	if (unheard) {
		cache->log = fmlib_log_of_settings();
		cache->log_level = FLEXMEM_LOG_WARNING;
	}
	err = fmlib_config_read(cache, configuration);
	if (!err) {
		cache->one_kind = cache->config.expandable &&
				  !cache->config.direct && cache->provider.grow;
		fmlib_config_apply(cache);
	}
	if (unheard)
		cache->log = NULL;
	return err;
}

static int fill(struct flexmem_cache *cache,
		const struct flexmem_cache_options *options)
{
	int err = read_options(cache, options);

	if (!err)
		err = read_settings(cache, options->configuration);
	if (err)
		return err;
	/*
	 * From here on nothing is refused, so @problem is not written any more.
	 */
	cache->problem = NULL;
	cache->device_index = options->device_index;
	cache->sole = FMLIB_NOBODY;
	cache->served = FMLIB_NOBODY;
	cache->untagged.origin.tag = &cache->untagged;
	cache->last_tag = &cache->untagged;
	/*
	 * This pin is never dropped, because the common pool is never released.
	 */
	cache->common.pins = 1;
	cache->common.provider = &cache->provider;
	cache->share.epoch = 1;
	cache->share.random = UINT32_C(0x9e3779b9);
	return begin_history(cache);
}

/*
 * Frees the cache's host memory, without calls of the provider. A forked child
 * has no other threads, so in the child no thread waits for the cache.
 */
static void dispose(struct flexmem_cache *cache)
{
	struct fmlib_callback *callback;
	struct fmlib_segment *segment;
	struct fmlib_pool *pool;
	size_t i;

	while ((segment = cache->spare_segment)) {
		cache->spare_segment = segment->next;
		free(segment);
	}
	for (i = 0; i < FMLIB_CHAINS; i++) {
		while ((pool = cache->pools[i])) {
			cache->pools[i] = pool->next;
			free(pool);
		}
	}
	while ((callback = cache->callbacks)) {
		cache->callbacks = callback->next;
		free(callback);
	}
	fmlib_lanes_free(cache);
	fmlib_tags_free(cache);
	fmlib_tokens_free(&cache->narrow);
	fmlib_tokens_free(&cache->wide);
	fmlib_pointers_free(cache->pointers);
	free(cache->regions);
	if (!fmlib_cache_check(cache)) {
		pthread_cond_destroy(&cache->callback_done);
		pthread_mutex_destroy(&cache->helper.lock);
		pthread_mutex_destroy(&cache->account_lock);
		pthread_mutex_destroy(&cache->lock);
	}
	free(cache);
}

int flexmem_cache_create(struct flexmem_cache **cache,
			 const struct flexmem_cache_options *options,
			 size_t size)
{
	struct flexmem_cache_options known;
	struct flexmem_cache *made;
	int err;

	if (!cache || !options)
		return -EINVAL;
	err = fmlib_copy_in(&known, sizeof(known), options, size, OPTIONS_MIN);
	if (err)
		return err;
	if (known.flags & ~FLAGS)
		return -EOPNOTSUPP;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->generation = fmlib_registry_generation();
	made->take_back = fmlib_take_back_all;
	pthread_mutex_init(&made->lock, NULL);
	pthread_mutex_init(&made->account_lock, NULL);
	pthread_mutex_init(&made->helper.lock, NULL);
	pthread_cond_init(&made->callback_done, NULL);
	err = fill(made, &known);
	if (err == -EINVAL && made->problem)
		refuse(made, "a struct has a size that it never had");
	if (err) {
		dispose(made);
		return err;
	}
	fmlib_registry_add(made);
	*cache = made;
	return 0;
}

static void give_back(struct flexmem_cache *cache,
		      struct fmlib_segment *segment)
{
	int err = fmlib_segment_free(segment);

	if (err)
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"the provider did not take %llu bytes back: error %d",
				(unsigned long long)segment->size, -err);
}

static void drop_origins(struct flexmem_cache *cache)
{
	struct fmlib_block *block;
	uint32_t i;

	for (i = 0; i < fmlib_blocks_count(cache); i++) {
		block = fmlib_block_at(cache, i);
		if (block)
			fmlib_origin_drop(cache, block->origin);
	}
}

void flexmem_cache_destroy(struct flexmem_cache *cache)
{
	struct fmlib_selection *selection;
	struct fmlib_event *events;
	bool own;
	int state;

	if (!cache)
		return;
	/*
	 * If the thread were cancelled here, the cache would be left half
	 * destroyed.
	 */
	state = fmlib_cancel_off();
	own = !fmlib_cache_check(cache);
	flexmem_cache_stop_helper(cache);
	fmlib_registry_remove(cache);
	fmlib_lock(cache);
	/* Frees selections that have not ended. */
	while ((selection = cache->selections)) {
		cache->selections = selection->next;
		free(selection);
	}
	cache->captures = 0;
	/*
	 * Blocks with pending events are freed even if the device cannot be
	 * synchronized.
	 */
	if (own && cache->waiting)
		own = fmlib_uses_synchronize_device(cache) != -ECHILD;
	fmlib_uses_forget(cache, own);
	drop_origins(cache);
	while (cache->first_segment) {
		if (own)
			give_back(cache, cache->first_segment);
		fmlib_segment_forget(cache, cache->first_segment);
	}
	fmlib_share_free_all(cache, own);
	events = fmlib_history_end(cache);
	fmlib_unlock(cache);
	free(events);
	dispose(cache);
	fmlib_cancel_as(state);
}

int flexmem_cache_profile(const struct flexmem_cache *cache,
			  struct flexmem_cache_profile *profile, size_t size)
{
	int err = fmlib_cache_check(cache);
	struct flexmem_cache_profile known;

	if (err)
		return err;
	known = cache->profile;
	/* As for flexmem_cache_setting(). */
	pthread_mutex_lock((pthread_mutex_t *)&cache->lock);
	known.large_segment = cache->config.large;
	pthread_mutex_unlock((pthread_mutex_t *)&cache->lock);
	return fmlib_copy_out(profile, size, PROFILE_MIN, &known,
			      sizeof(known));
}
