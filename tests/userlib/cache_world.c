// SPDX-License-Identifier: GPL-2.0
#include "cache_world.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/*
 * The space behind a growing segment. The space is small, so that growing soon
 * fails.
 */
#define GROWING_GAP (UINT64_C(24) << 20)

#define STREAM_SHIFT 32

void world_start(struct world *world, uint64_t capacity)
{
	memset(world, 0, sizeof(*world));
	world->capacity = capacity;
	world_heal(world);
}

void world_heal(struct world *world)
{
	world->refuse_allocs = 0;
	world->alloc_error = 0;
	world->grow_error = 0;
	world->refuse_frees = false;
	world->refuse_record = WORLD_NEVER;
	world->refuse_wait = WORLD_NEVER;
	world->refuse_stream_wait = WORLD_NEVER;
	world->refuse_device_wait = false;
}

void world_lose(struct world *world)
{
	size_t i;

	for (i = 0; i < world->count; i++)
		world->pieces[i].lost = true;
}

/*
 * An event of a stream happens after all events that the stream had waited for.
 */
static void reach(struct world *world, uint64_t stream, uint64_t done)
{
	uint64_t other;

	while (world->done[stream] < done) {
		const uint64_t *clock =
			world->clocks[stream][world->done[stream]++ %
					      WORLD_EVENTS];

		for (other = 0; other < WORLD_STREAMS; other++)
			reach(world, other, clock[other]);
	}
}

void world_progress(struct world *world, uint64_t stream, uint64_t count)
{
	uint64_t left = world->recorded[stream] - world->done[stream];

	reach(world, stream, world->done[stream] + (count < left ? count : left));
}

const struct world_piece *world_find(const struct world *world,
				     uint64_t address)
{
	const struct world_piece *piece;
	size_t i;

	for (i = 0; i < world->count; i++) {
		piece = &world->pieces[i];
		if (address >= piece->start &&
		    address - piece->start < piece->size)
			return piece;
	}
	return NULL;
}

static struct world_piece *by_handle(struct world *world, uint64_t handle)
{
	size_t i = 0;

	while (i < world->count && world->pieces[i].birth != handle)
		i++;
	assert(i < world->count);
	return &world->pieces[i];
}

static int no_memory(const struct world *world, uint64_t bytes,
		     struct flexmem_failure *failure)
{
	failure->limit = FLEXMEM_LIMIT_CAPACITY;
	failure->asked = bytes;
	failure->total_free = world->capacity - world->used;
	return -ENOMEM;
}

/* Takes the first hole that is large enough. The last hole always is. */
static int world_alloc(void *user, uint64_t bytes, uint64_t alignment,
		       uint32_t flags, struct flexmem_cache_memory *memory,
		       struct flexmem_failure *failure)
{
	uint64_t gap = flags & FLEXMEM_CACHE_GROWABLE ? GROWING_GAP : 0;
	struct world *world = user;
	struct world_piece *piece;
	uint64_t start = 0;
	size_t i;

	assert(bytes && bytes % alignment == 0);
	if (world->refuse_allocs) {
		world->refuse_allocs--;
		return world->alloc_error;
	}
	if (bytes > world->capacity - world->used)
		return no_memory(world, bytes, failure);
	for (i = 0; i < world->count; i++) {
		if (world->pieces[i].start >= start + bytes + gap)
			break;
		start = world->pieces[i].start + world->pieces[i].size;
	}
	assert(world->count < WORLD_PIECES);
	memmove(&world->pieces[i + 1], &world->pieces[i],
		(world->count - i) * sizeof(world->pieces[0]));
	world->count++;
	world->used += bytes;
	piece = &world->pieces[i];
	piece->lost = false;
	piece->birth = ++world->births;
	piece->start = start;
	piece->size = bytes;
	memory->handle = piece->birth;
	memory->address.region_id = 5;
	memory->address.offset = start;
	return 0;
}

static int world_free(void *user, uint64_t handle)
{
	struct world *world = user;
	struct world_piece *piece = by_handle(world, handle);

	if (world->refuse_frees)
		return -EIO;
	world->used -= piece->size;
	world->count--;
	memmove(piece, piece + 1,
		(size_t)(&world->pieces[world->count] - piece) *
		sizeof(*piece));
	return 0;
}

static int world_grow(void *user, uint64_t handle, uint64_t old_bytes,
		      uint64_t bytes, struct flexmem_failure *failure)
{
	struct world *world = user;
	struct world_piece *piece = by_handle(world, handle);

	assert(piece->size == old_bytes && bytes > old_bytes);
	if (world->grow_error)
		return world->grow_error;
	if (piece->lost)
		return -EIO;
	if (piece + 1 < &world->pieces[world->count] &&
	    piece[1].start < piece->start + bytes)
		return -EAGAIN;
	if (bytes - old_bytes > world->capacity - world->used)
		return no_memory(world, bytes - old_bytes, failure);
	world->used += bytes - old_bytes;
	piece->size = bytes;
	return 0;
}

static int world_shrink(void *user, uint64_t handle, uint64_t old_bytes,
			uint64_t bytes)
{
	struct world *world = user;
	struct world_piece *piece = by_handle(world, handle);

	assert(piece->size == old_bytes && bytes && bytes < old_bytes);
	if (world->refuse_frees || piece->lost)
		return -EIO;
	world->used -= old_bytes - bytes;
	world->shrunk_from[world->shrinks % WORLD_SHRINKS] =
		piece->start + bytes;
	world->shrunk_to[world->shrinks++ % WORLD_SHRINKS] =
		piece->start + old_bytes;
	piece->size = bytes;
	return 0;
}

static int world_info(void *user, uint64_t *free_bytes, uint64_t *total)
{
	const struct world *world = user;

	*free_bytes = world->capacity - world->used;
	*total = world->capacity;
	return 0;
}

static int world_lost(void *user, uint64_t handle)
{
	return by_handle(user, handle)->lost;
}

const struct flexmem_cache_provider world_provider = {
	.alloc = world_alloc,
	.free = world_free,
	.grow = world_grow,
	.shrink = world_shrink,
	.memory_info = world_info,
	.lost = world_lost,
};

static void *count_own(void *user)
{
	struct world *world = user;

	world->own_calls++;
	return world;
}

static int own_alloc(void *user, uint64_t bytes, uint64_t alignment,
		     uint32_t flags, struct flexmem_cache_memory *memory,
		     struct flexmem_failure *failure)
{
	return world_alloc(count_own(user), bytes, alignment, flags, memory,
			   failure);
}

static int own_free(void *user, uint64_t handle)
{
	return world_free(count_own(user), handle);
}

static int own_grow(void *user, uint64_t handle, uint64_t old_bytes,
		    uint64_t bytes, struct flexmem_failure *failure)
{
	return world_grow(count_own(user), handle, old_bytes, bytes, failure);
}

static int own_shrink(void *user, uint64_t handle, uint64_t old_bytes,
		      uint64_t bytes)
{
	return world_shrink(count_own(user), handle, old_bytes, bytes);
}

const struct flexmem_cache_provider world_own_provider = {
	.alloc = own_alloc,
	.free = own_free,
	.grow = own_grow,
	.shrink = own_shrink,
	.lost = world_lost,
};

/* An event is a stream and the number of the event on this stream. */
static int event_record(void *user, uint64_t stream, uint64_t *event)
{
	struct world *world = user;

	if (stream == world->refuse_record)
		return -EIO;
	memcpy(world->clocks[stream][world->recorded[stream] % WORLD_EVENTS],
	       world->clock[stream], sizeof(world->clock[stream]));
	*event = stream << STREAM_SHIFT | world->recorded[stream]++;
	return 0;
}

static uint64_t number_of(uint64_t event)
{
	return event & ((UINT64_C(1) << STREAM_SHIFT) - 1);
}

static int event_query(void *user, uint64_t event)
{
	const struct world *world = user;

	return number_of(event) < world->done[event >> STREAM_SHIFT] ?
	       0 : -EAGAIN;
}

static int event_synchronize(void *user, uint64_t event)
{
	uint64_t stream = event >> STREAM_SHIFT;
	struct world *world = user;

	if (stream == world->refuse_wait)
		return -EIO;
	reach(world, stream, number_of(event) + 1);
	return 0;
}

static void event_destroy(void *user, uint64_t event)
{
	struct world *world = user;

	(void)event;
	world->destroyed++;
}

static int device_synchronize(void *user)
{
	struct world *world = user;

	if (world->refuse_device_wait)
		return -EIO;
	memcpy(world->done, world->recorded, sizeof(world->done));
	world->device_waits++;
	return 0;
}

static int event_wait(void *user, uint64_t stream, uint64_t event)
{
	uint64_t other = event >> STREAM_SHIFT;
	struct world *world = user;
	uint64_t *own = world->clock[stream];
	const uint64_t *clock =
		world->clocks[other][number_of(event) % WORLD_EVENTS];
	uint64_t s;

	if (stream == world->refuse_stream_wait)
		return -EIO;
	for (s = 0; s < WORLD_STREAMS; s++)
		own[s] = clock[s] > own[s] ? clock[s] : own[s];
	if (own[other] <= number_of(event))
		own[other] = number_of(event) + 1;
	return 0;
}

const struct flexmem_cache_events world_events = {
	.record = event_record,
	.query = event_query,
	.synchronize = event_synchronize,
	.destroy = event_destroy,
	.synchronize_device = device_synchronize,
	.wait = event_wait,
};
