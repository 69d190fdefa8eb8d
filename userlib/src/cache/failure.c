// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Texts of errors. */
#include "cache.h"
#include "../human.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The most bytes of a context in an error text. */
#define CONTEXT_LINE 200

#define FAILURE_MIN \
	FMLIB_SIZE_TO(struct flexmem_cache_failure, device.max_region)

/* Whether @want may not use the free blocks of @pool. */
static bool is_barred(const struct fmlib_pool *pool,
		      const struct fmlib_want *want)
{
	return pool != want->pool &&
	       (want->pool->id || pool->released ||
		!(pool->flags & FLEXMEM_CACHE_POOL_USE_ON_OOM));
}

static enum flexmem_cache_obstacle obstacle(const struct flexmem_cache *cache,
					    const struct fmlib_largest *largest,
					    const struct fmlib_want *want)
{
	const struct fmlib_arena *arena = largest->arena;

	if (largest->size < want->size)
		return FLEXMEM_CACHE_OBSTACLE_SIZE;
	if (is_barred(arena->pool, want))
		return FLEXMEM_CACHE_OBSTACLE_POOL;
	if (arena == cache->share.arena || arena->stream != want->stream)
		return FLEXMEM_CACHE_OBSTACLE_STREAM;
	if (arena->kind != want->kind)
		return FLEXMEM_CACHE_OBSTACLE_KIND;
	/*
	 * A block that is large enough would have served the request, unless
	 * max_split_size_mb or the alignment forbids that.
	 */
	if (largest->size >= cache->config.max_split)
		return FLEXMEM_CACHE_OBSTACLE_SPLIT;
	return want->mask ? FLEXMEM_CACHE_OBSTACLE_ALIGNMENT :
			    FLEXMEM_CACHE_OBSTACLE_SIZE;
}

void fmlib_failure_largest(const struct flexmem_cache *cache,
			   struct fmlib_want *want)
{
	const struct fmlib_largest largest = fmlib_pools_largest(cache);
	struct flexmem_cache_failure *failure = want->failure;

	failure->pool = want->pool->id;
	failure->last_pool = cache->last_pool;
	failure->largest_free = largest.size;
	failure->obstacle = obstacle(cache, &largest, want);
	if (!largest.arena)
		return;
	failure->largest_stream = largest.arena->stream;
	failure->largest_pool = largest.arena->pool->id;
	failure->largest_kind = largest.arena->kind;
}

/*
 * The text so far, and the length that it would have if there were room for
 * everything.
 */
struct out {
	char *text;
	size_t room;
	size_t length;
};

static void say(struct out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct out *out, const char *format, ...)
{
	size_t at = out->length < out->room ? out->length : out->room;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(at < out->room ? out->text + at : NULL,
			   out->room - at, format, arguments);
	va_end(arguments);
	out->length += (size_t)length;
}

static void say_size(struct out *out, const char *before, uint64_t size)
{
	char human[FMLIB_HUMAN_MAX];

	say(out, "%s%s", before, fmlib_human(size, human));
}

static void say_pool(struct out *out, uint64_t pool)
{
	if (pool)
		say(out, "private pool %llu", (unsigned long long)pool);
	else
		say(out, "no private pool");
}

/* Explains why a free block that is large enough cannot be used. */
static void say_obstacle(struct out *out,
			 const struct flexmem_cache_failure *failure)
{
	switch (failure->obstacle) {
	case FLEXMEM_CACHE_OBSTACLE_SIZE:
		break;
	case FLEXMEM_CACHE_OBSTACLE_STREAM:
		say(out, ", which belongs to stream %llu and serves no other",
		    (unsigned long long)failure->largest_stream);
		break;
	case FLEXMEM_CACHE_OBSTACLE_POOL:
		say(out, ", which belongs to ");
		say_pool(out, failure->largest_pool);
		if (failure->pool == failure->largest_pool)
			break;
		say(out, ", and this is for ");
		say_pool(out, failure->pool);
		break;
	case FLEXMEM_CACHE_OBSTACLE_KIND:
		if (failure->largest_kind == FLEXMEM_CACHE_SMALL)
			say(out, ", which is in the pool of small requests, and this is a large one");
		else
			say(out, ", which is in the pool of large requests, and this is a small one");
		break;
	case FLEXMEM_CACHE_OBSTACLE_SPLIT:
		say(out, ", which max_split_size_mb keeps for larger requests");
		break;
	case FLEXMEM_CACHE_OBSTACLE_ALIGNMENT:
		say(out, ", which has too few bytes from the next multiple of the alignment on");
		break;
	default:
		say(out, ", which cannot be used for it");
	}
}

static void say_limit(struct out *out,
		      const struct flexmem_cache_failure *failure)
{
	say(out, "too many live allocations: one cache can tell %d apart, less what other streams ever had at once, and %d of 4 GiB and more",
	    FLEXMEM_CACHE_ALLOCATIONS, FLEXMEM_CACHE_HUGE_ALLOCATIONS);
	say_size(out, "; tried to allocate ", failure->asked);
	say_size(out, ", have ", failure->allocated_bytes);
}

static void say_too_large(struct out *out,
			  const struct flexmem_cache_failure *failure)
{
	const uint64_t most = FLEXMEM_CACHE_ALLOCATION_BYTES;
	char asked[FMLIB_HUMAN_MAX];
	char human[FMLIB_HUMAN_MAX];

	say(out, "too large: one allocation of a cache has at most %s; tried to allocate ",
	    fmlib_human(most, human));
	/* If both sizes would look equal, prints them in bytes. */
	if (strcmp(fmlib_human(failure->asked, asked), human))
		say(out, "%s", asked);
	else
		say(out, "%llu B", (unsigned long long)failure->asked);
	say_size(out, "; the cache has reserved ", failure->reserved_bytes);
	say_size(out, ", of which ", failure->allocated_bytes);
	say(out, " are allocated");
}

/* Prints the first line of the request's context. */
static void say_context(struct out *out,
			const struct flexmem_cache_failure *failure)
{
	char line[CONTEXT_LINE] = "";

	if (!failure->context || !failure->print)
		return;
	failure->print(failure->print_user, failure->context, line,
		       sizeof(line));
	line[strcspn(line, "\n")] = '\0';
	if (*line)
		say(out, ", requested by %s", line);
}

/* Prints @size; in bytes if @other would look equal. */
static void say_apart(struct out *out, const char *before, uint64_t size,
		      uint64_t other)
{
	char one[FMLIB_HUMAN_MAX];
	char two[FMLIB_HUMAN_MAX];

	if (size == other || strcmp(fmlib_human(size, one),
				    fmlib_human(other, two)))
		say_size(out, before, size);
	else
		say(out, "%s%llu B", before, (unsigned long long)size);
}

static void say_request(struct out *out,
			const struct flexmem_cache_failure *failure)
{
	say_apart(out, "out of device memory: tried to allocate ",
		  failure->asked, failure->largest_free);
	say_context(out, failure);
}

static void say_device(struct out *out,
		       const struct flexmem_cache_failure *failure)
{
	uint64_t known = failure->device_free + failure->reserved_bytes;

	if (!failure->device_total)
		return;
	say_size(out, "; this process can have ", failure->device_total);
	if (failure->device_free == failure->device_total)
		say(out, ", all of it free");
	else
		say_size(out, ", free: ", failure->device_free);
	/* What the cache has of another provider is no part of the total. */
	if (!(failure->hints & FLEXMEM_CACHE_HINT_ELSEWHERE) &&
	    failure->device_total > known)
		say_size(out, ", in use by others: ",
			 failure->device_total - known);
}

static void say_cache(struct out *out,
		      const struct flexmem_cache_failure *failure)
{
	uint64_t unallocated = failure->reserved_bytes -
			       failure->allocated_bytes;

	say_size(out, "; this cache has allocated ", failure->allocated_bytes);
	if (unallocated)
		say_size(out, ", reserved but unallocated: ", unallocated);
	else
		say(out, " and reserved no more");
	if (failure->largest_free && failure->largest_free == unallocated)
		say(out, ", in one block");
	else if (failure->largest_free)
		say_apart(out, ", the largest free block has ", failure->largest_free,
			  failure->asked);
	say_obstacle(out, failure);
	if (failure->allowed_bytes)
		say_size(out, "; per_process_memory_fraction allows ",
			 failure->allowed_bytes);
}

/*
 * Whether segments that grow may serve the request: if the largest free block is
 * in its pool, because free memory of other pools would not serve it either; and
 * if a region can be that large, because such a segment is in one region, too.
 */
static bool growth_may_help(const struct flexmem_cache_failure *failure)
{
	return !failure->expandable &&
	       (!failure->allowed_bytes || failure->error) &&
	       failure->device.limit != FLEXMEM_LIMIT_REGION_SIZE &&
	       failure->largest_pool == failure->pool &&
	       failure->reserved_bytes - failure->allocated_bytes >=
		       failure->asked;
}

static void say_advice(struct out *out,
		       const struct flexmem_cache_failure *failure)
{
	if (failure->kept_pool)
		say(out, "; private pool %llu keeps free segments: if no graph uses them, flexmem_cache_pool_empty() may help",
		    (unsigned long long)failure->kept_pool);
	if (failure->hints & FLEXMEM_CACHE_HINT_CAPTURE)
		say(out, "; freed memory that other streams use waits until the capture ends");
	if (failure->hints & FLEXMEM_CACHE_HINT_FRACTION)
		say(out, "; a larger fraction may help");
	else if (growth_may_help(failure))
		say(out, "; expandable_segments:True may avoid this fragmentation");
}

static void say_memory(struct out *out,
		       const struct flexmem_cache_failure *failure)
{
	char limit[FMLIB_LIMIT_TEXT];

	say_request(out, failure);
	say_device(out, failure);
	say_cache(out, failure);
	if (failure->device.limit != FLEXMEM_LIMIT_NONE) {
		fmlib_limit_text(&failure->device, limit);
		say(out, "; the device says: %s", limit);
	}
	say_advice(out, failure);
}

static void say_no_pool(struct out *out,
			const struct flexmem_cache_failure *failure)
{
	say_pool(out, failure->pool);
	if (failure->pool <= failure->last_pool)
		say(out, " was released, and nothing can be allocated into it any more");
	else if (failure->last_pool)
		say(out, " was never made: the last one is %llu",
		    (unsigned long long)failure->last_pool);
	else
		say(out, " was never made, nor was another one");
}

static const char *own_text(int error)
{
	switch (error) {
	case -EINVAL:
		return "not a live allocation of this cache, or another bad argument";
	case -ENOENT:
		return "no such private pool, setting or callback, or no helper thread is running";
	case -ECHILD:
		return "the cache belongs to the process that this one was forked from";
	case -EEXIST:
		return "the callback is registered already, or the helper runs already";
	case -EAGAIN:
		return "there is no event, or the process may have no further thread";
	case -EDEADLK:
		return "a callback cannot remove a callback";
	case -EBUSY:
		return "the memory is in use: it is mapped, waits for events, or is in a segment of the pool";
	case -ENXIO:
		return "memory of the checkpoint was returned to the device, or lost";
	default:
		return NULL;
	}
}

int flexmem_cache_error_text(int error,
			     const struct flexmem_cache_failure *failure,
			     size_t size, char *text, size_t length)
{
	struct out out = { .text = text, .room = length };
	struct flexmem_cache_failure known;
	int err;

	if (error > 0 || (!text && length))
		return -EINVAL;
	if (failure) {
		err = fmlib_copy_in(&known, sizeof(known), failure, size,
				    FAILURE_MIN);
		if (err)
			return err;
		/* The struct of an older caller has no member @pool. */
		if (size < FMLIB_SIZE_TO(struct flexmem_cache_failure, pool))
			known.pool = known.largest_pool;
		if (size < FMLIB_SIZE_TO(struct flexmem_cache_failure, hints) &&
		    known.allowed_bytes && !known.error)
			known.hints = FLEXMEM_CACHE_HINT_FRACTION;
	}
	if (error == -ENOMEM && failure &&
	    known.limit == FLEXMEM_CACHE_LIMIT_ALLOCATIONS)
		say_limit(&out, &known);
	else if (error == -ENOMEM && failure &&
		 known.limit == FLEXMEM_CACHE_LIMIT_SIZE)
		say_too_large(&out, &known);
	else if (error == -ENOMEM && failure && known.asked)
		say_memory(&out, &known);
	/*
	 * If @asked is not 0, the struct describes an earlier -ENOMEM, not this
	 * -ENOENT.
	 */
	else if (error == -ENOENT && failure && known.pool && !known.asked)
		say_no_pool(&out, &known);
	else if (error == -ENOMEM && !failure)
		say(&out, "out of memory, the device's or the host's, or a limit of the cache's own: struct flexmem_cache_failure tells which");
	else if (own_text(error))
		say(&out, "%s", own_text(error));
	else
		return flexmem_error_text(error, NULL, 0, text, length);
	return out.length < length ? 0 : -EMSGSIZE;
}
