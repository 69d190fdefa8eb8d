// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Replays a trace on a cache, over a device or a flat address space. */
#include "replay.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An allocation of the trace that is live. */
struct live {
	void *token;
	uint64_t size;
};

struct target {
	const struct replay_provider *provider;
	struct replay_cache *result;
	struct flexmem_cache *cache;
	struct live *live;
	struct flexmem_cache_allocation made;
};

static int cache_alloc(void *user, const struct trace_event *event)
{
	struct target *target = user;
	const struct flexmem_cache_request request = {
		.bytes = event->bytes,
		.stream = event->stream,
	};

	return flexmem_cache_alloc_request(target->cache, &request,
					   sizeof(request), &target->made,
					   sizeof(target->made));
}

static int cache_free(void *user, const struct trace_event *event)
{
	struct target *target = user;

	return flexmem_cache_free(target->cache,
				  target->live[event->allocation].token);
}

static uint64_t cache_count(void *user, const struct trace_event *event)
{
	struct target *target = user;
	struct live *live = &target->live[event->allocation];

	if (target->provider->note)
		target->provider->note(target->provider->user, event,
				       event->is_free ? NULL : &target->made);
	if (!event->is_free) {
		live->token = target->made.token;
		live->size = target->made.size;
	}
	return live->size;
}

static void cache_explain(void *user, struct flexmem_cache_failure *details)
{
	struct target *target = user;

	*details = target->made.failure;
}

static int cache_look(void *user)
{
	struct target *target = user;

	return flexmem_cache_statistics(target->cache, &target->result->at_look,
					sizeof(target->result->at_look));
}

static int read_settings(struct flexmem_cache *cache,
			 struct replay_cache *result)
{
	struct flexmem_cache_setting setting;
	int err;

	for (;;) {
		err = flexmem_cache_setting(cache, result->setting_count,
					    &setting, sizeof(setting));
		if (err)
			return err == -ENOENT ? 0 : err;
		result->settings = grow(result->settings,
					result->setting_count + 1,
					sizeof(*result->settings));
		result->settings[result->setting_count++] = setting;
	}
}

/*
 * Prints messages of the cache. In a message about a setting, "caller" means
 * that the setting was passed by the program that made the cache. Here that is
 * the option --config, so the message names --config.
 */
static void print_log(enum flexmem_log_level level, const char *text,
		      void *user)
{
	static const char ours[] = "caller: ";
	bool config = !strncmp(text, ours, strlen(ours));

	(void)level;
	(void)user;
	fprintf(stderr, "flexmem: %s%s\n", config ? "--config: " : "",
		text + (config ? strlen(ours) : 0));
}

static int run(struct replay *replay, struct target *user,
	       const struct trace *trace, bool keep_going,
	       struct progress *progress)
{
	const struct replay_target target = {
		.alloc = cache_alloc,
		.free = cache_free,
		.count = cache_count,
		.explain = cache_explain,
		.look = cache_look,
		.user = user,
	};
	int err;

	user->live = grow(NULL, trace->allocations, sizeof(*user->live));
	err = replay_run(replay, &target, trace, keep_going, progress);
	free(user->live);
	if (err)
		return err;
	return flexmem_cache_statistics(user->cache, &user->result->at_end,
					sizeof(user->result->at_end));
}

int replay_cache(struct replay *replay, struct replay_cache *result,
		 const struct replay_provider *provider,
		 const char *configuration, const struct trace *trace,
		 bool keep_going, struct progress *progress)
{
	struct target user = { .provider = provider, .result = result };
	struct flexmem_cache_options options = {
		.configuration = configuration,
		.log = print_log,
		.level = FLEXMEM_LOG_WARNING,
	};
	struct flexmem_cache_provider source;
	struct flexmem_cache_flat *flat = NULL;
	int err = 0;

	memset(result, 0, sizeof(*result));
	if (provider->flat_bytes) {
		err = flexmem_cache_flat_create(&flat, provider->flat_bytes,
						&source, sizeof(source));
		options.provider = &source;
		options.provider_size = sizeof(source);
	} else {
		options.device = provider->device;
	}
	if (!err)
		err = flexmem_cache_create(&user.cache, &options,
					   sizeof(options));
	if (!err)
		err = read_settings(user.cache, result);
	if (!err)
		err = run(replay, &user, trace, keep_going, progress);
	flexmem_cache_destroy(user.cache);
	flexmem_cache_flat_destroy(flat);
	return err;
}

double replay_cache_ratio(const struct replay *replay,
			  const struct replay_cache *result)
{
	uint64_t peak = result->at_end.reserved_bytes[FLEXMEM_CACHE_ALL].peak;

	return replay->peak_bytes ?
	       (double)peak / (double)replay->peak_bytes : 0.0;
}

double replay_cache_unused(const struct replay_cache *result)
{
	const struct flexmem_cache_statistics *then = &result->at_look;
	uint64_t reserved = then->reserved_bytes[FLEXMEM_CACHE_ALL].current;
	uint64_t live = then->allocated_bytes[FLEXMEM_CACHE_ALL].current;

	return reserved ? 1.0 - (double)live / (double)reserved : 0.0;
}

double replay_cache_hit_rate(const struct replay_cache *result)
{
	uint64_t hits = result->at_end.num_hits;
	uint64_t all = hits + result->at_end.num_misses;

	return all ? (double)hits / (double)all : 0.0;
}

void replay_cache_free(struct replay_cache *result)
{
	free(result->settings);
	result->settings = NULL;
}
