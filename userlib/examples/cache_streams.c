// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A buffer that two streams use: its memory is reused only when both are done
 * with it. The device is simulated: its streams advance when the cache waits.
 *
 * cc cache_streams.c $(pkg-config --cflags --libs libflexmem)
 */
#include <errno.h>
#include <flexmem_cache.h>
#include <stdio.h>

#define STREAMS 4

/*
 * For each stream: how many events were recorded, and how many have happened.
 */
struct queues {
	uint64_t given[STREAMS];
	uint64_t over[STREAMS];
};

/* An event consists of its stream and its number on the stream. */
static int record(void *user, uint64_t stream, uint64_t *event)
{
	struct queues *queues = user;

	if (stream >= STREAMS)
		return -EINVAL;
	*event = stream << 32 | ++queues->given[stream];
	return 0;
}

static int query(void *user, uint64_t event)
{
	struct queues *queues = user;

	return queues->over[event >> 32] >= (uint32_t)event ? 0 : -EAGAIN;
}

static int synchronize(void *user, uint64_t event)
{
	struct queues *queues = user;

	if (queues->over[event >> 32] < (uint32_t)event)
		queues->over[event >> 32] = (uint32_t)event;
	return 0;
}

static void destroy(void *user, uint64_t event)
{
	(void)user;
	(void)event;
}

static int synchronize_device(void *user)
{
	struct queues *queues = user;
	int i;

	for (i = 0; i < STREAMS; i++)
		queues->over[i] = queues->given[i];
	return 0;
}

/* Allocates for stream 1, and prints the address. */
static int get(struct flexmem_cache *cache, const char *what, void **token)
{
	struct flexmem_cache_request request = { .bytes = 1 << 20, .stream = 1 };
	struct flexmem_cache_allocation made = { 0 };
	int err;

	err = flexmem_cache_alloc_request(cache, &request, sizeof(request),
					  &made, sizeof(made));
	*token = made.token;
	printf("%s: error %d, at %#lx\n", what, -err,
	       (unsigned long)made.address.offset);
	return err;
}

/* Stream 1 computes. Stream 2 copies the result. */
static int use_two_streams(struct flexmem_cache *cache, struct queues *queues)
{
	void *buffer, *second, *third;
	int err;

	err = get(cache, "a buffer", &buffer);
	/* ... work on stream 1, then a copy on stream 2 ... */
	if (!err)
		err = flexmem_cache_record_stream(cache, buffer, 2);
	if (!err)
		err = flexmem_cache_free(cache, buffer);
	if (!err)
		err = get(cache, "stream 2 is not done, so elsewhere", &second);
	/* The copy has ended. */
	queues->over[2] = queues->given[2];
	if (!err)
		err = get(cache, "stream 2 is done, so there again", &third);
	return err;
}

int main(void)
{
	struct queues queues = { 0 };
	struct flexmem_cache_events events = {
		.record = record,
		.query = query,
		.synchronize = synchronize,
		.destroy = destroy,
		.synchronize_device = synchronize_device,
		.user = &queues,
	};
	struct flexmem_cache_provider provider;
	struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
		.events = &events,
		.events_size = sizeof(events),
	};
	struct flexmem_cache_flat *flat = NULL;
	struct flexmem_cache *cache = NULL;
	int err;

	err = flexmem_cache_flat_create(&flat, 1 << 30, &provider,
					sizeof(provider));
	if (!err)
		err = flexmem_cache_create(&cache, &options, sizeof(options));
	if (!err)
		err = use_two_streams(cache, &queues);
	/* Also frees all allocations. */
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
	return err != 0;
}
