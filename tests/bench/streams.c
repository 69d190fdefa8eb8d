// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how much several streams reserve that share a cache. An event
 * happens 256 operations after it was recorded.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench.h"
#include "flexmem_cache.h"

#define FLAT_BYTES (UINT64_C(1) << 40)
#define LAG 256
/* The number of operations after which the next stream has its turn. */
#define TURN 3000

/* @now: number of operations so far. @waits: number of waits of a stream. */
struct device {
	uint64_t now;
	uint64_t waits;
};

static int event_record(void *user, uint64_t stream, uint64_t *event)
{
	const struct device *device = user;

	(void)stream;
	*event = device->now;
	return 0;
}

static int event_query(void *user, uint64_t event)
{
	const struct device *device = user;

	return event + LAG <= device->now ? 0 : -EAGAIN;
}

static int event_synchronize(void *user, uint64_t event)
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

static int event_wait(void *user, uint64_t stream, uint64_t event)
{
	struct device *device = user;

	(void)stream;
	(void)event;
	device->waits++;
	return 0;
}

static uint64_t stream_of(const struct operation *operation, size_t i,
			  size_t allocations, enum bench_streams streams)
{
	if (streams == BENCH_OWN_STREAMS)
		return operation->stream;
	return (streams == BENCH_IN_TURNS ? i / TURN : allocations) % 4;
}

static void play(struct flexmem_cache *cache, struct device *device,
		 const struct work *work, enum bench_streams streams)
{
	void **tokens = need(calloc(work->slots, sizeof(*tokens)));
	const struct operation *operation = work->operations;
	size_t allocations = 0;
	int err = 0;
	size_t i;

	for (i = 0; i < work->count && !err; i++, operation++) {
		device->now++;
		if (operation->bytes)
			err = flexmem_cache_alloc(cache, operation->bytes,
						  stream_of(operation, i,
							    allocations++,
							    streams),
						  &tokens[operation->slot]);
		else
			err = flexmem_cache_free(cache,
						 tokens[operation->slot]);
	}
	if (err)
		give_up("replay on four streams", err);
	free(tokens);
}

double streams_ratio(const struct work *work, const char *configuration,
		     enum bench_streams streams, double *waits)
{
	struct device device = { 0 };
	const struct flexmem_cache_events events = {
		.record = event_record,
		.query = event_query,
		.synchronize = event_synchronize,
		.destroy = event_destroy,
		.synchronize_device = device_is_done,
		.user = &device,
		.wait = event_wait,
	};
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.configuration = configuration,
		.events = &events,
		.events_size = sizeof(events),
	};
	struct flexmem_cache_statistics s;
	struct flexmem_cache_flat *flat;
	struct flexmem_cache *cache;
	int err;

	err = flexmem_cache_flat_create(&flat, FLAT_BYTES, &provider,
					sizeof(provider));
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (err)
		give_up("flexmem_cache_create", err);
	play(cache, &device, work, streams);
	err = flexmem_cache_statistics(cache, &s, sizeof(s));
	if (err)
		give_up("flexmem_cache_statistics", err);
	*waits = 100.0 * (double)device.waits /
		 (double)s.allocation[FLEXMEM_CACHE_ALL].allocated;
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
	return (double)s.reserved_bytes[FLEXMEM_CACHE_ALL].peak /
	       (double)work->live_peak;
}
