// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What another process lacks: an ALLOC of it has failed, and an event says how
 * many bytes were missing. The cache gives back that much of its free memory,
 * also if the device is far from full.
 *
 * A process can fail on purpose. So if nothing of what the cache gave was taken,
 * it gives nothing for PAUSE_MS. If a part was taken, it gives no more than the
 * rest does not suffice for. But if more is free than is asked for, then it is in
 * pieces, and the rest suffices for nothing. What others ask for in the meantime
 * it gives afterwards. What it could not give at once, because it was in use, it gives
 * when the program is idle. Both ends when the other process waits no longer.
 */
#include "cache.h"

/* How long nothing is given after a gift that nobody took. */
#define PAUSE_MS 1000

/* How long a request of another process counts: a cache waits no longer. */
#define WISH_MS 1300

static uint64_t now_ms(void)
{
	return fmlib_now() / FMLIB_MS;
}

/* The bytes of a wish that counts still. */
static uint64_t alive(const struct fmlib_wish *wish, uint64_t now)
{
	return now < wish->until ? wish->bytes : 0;
}

/* What others have, if @in_use bytes of the device are in use. */
static uint64_t of_others(const struct flexmem_cache *cache, uint64_t in_use)
{
	uint64_t own = fmlib_reserved_on(cache, &cache->provider);

	return in_use > own ? in_use - own : 0;
}

/* By how much others have grown since the first of the last gifts. */
static uint64_t growth(const struct flexmem_cache *cache, uint64_t in_use)
{
	uint64_t others = of_others(cache, in_use);

	return others > cache->wanted.others ?
	       others - cache->wanted.others : 0;
}

/*
 * How many bytes of the last gifts nobody has taken. 0 if others have got what
 * they asked for, or the last gift is too old to count.
 */
static uint64_t untaken(const struct flexmem_cache *cache, uint64_t in_use,
			uint64_t now)
{
	const struct fmlib_wanted *wanted = &cache->wanted;
	uint64_t taken = growth(cache, in_use);

	if (taken >= wanted->due || now - wanted->gave_at >= PAUSE_MS)
		return 0;
	return wanted->given - taken;
}

/* Whether nothing at all of the last gifts was taken. */
static bool is_in_vain(const struct flexmem_cache *cache, uint64_t in_use,
		       uint64_t now)
{
	return untaken(cache, in_use, now) && !growth(cache, in_use);
}

static uint64_t give(struct flexmem_cache *cache, uint64_t in_use, uint64_t now,
		     int *error)
{
	struct fmlib_wanted *wanted = &cache->wanted;
	uint64_t bytes = alive(&wanted->wish, now);
	uint64_t others = of_others(cache, in_use);
	uint64_t released;

	if (!untaken(cache, in_use, now)) {
		wanted->others = others;
		wanted->given = 0;
		wanted->due = 0;
	}
	fmlib_uses_poll(cache);
	released = fmlib_reclaim_wanted(cache, bytes, error);
	if (!released)
		return 0;
	bytes = released < bytes ? released : bytes;
	wanted->wish.bytes -= bytes;
	wanted->given += released;
	wanted->due += bytes;
	wanted->gave_at = now;
	return released;
}

/* Notes the next wish. A smaller one does not take the place of a larger one. */
static void note(struct fmlib_wanted *wanted, uint64_t bytes, uint64_t now)
{
	if (alive(&wanted->next, now) < bytes)
		wanted->next.bytes = bytes;
	wanted->next.until = now + WISH_MS;
}

/*
 * Makes the next wish the present one, if it needs more than what is left of the
 * present one. If others have taken a part of the last gifts, the rest is there
 * for it, unless the device has @free_bytes enough and has refused it even so:
 * then they are in pieces, or below a limit that has no room for the wish.
 * Returns whether it does.
 */
static bool advance(struct flexmem_cache *cache, uint64_t in_use,
		    uint64_t free_bytes, uint64_t now)
{
	struct fmlib_wanted *wanted = &cache->wanted;
	uint64_t next = alive(&wanted->next, now);
	uint64_t rest = free_bytes < next ? untaken(cache, in_use, now) : 0;

	if (is_in_vain(cache, in_use, now) || next <= rest ||
	    next - rest < alive(&wanted->wish, now))
		return false;
	wanted->wish.bytes = next - rest;
	wanted->wish.until = wanted->next.until;
	wanted->next.bytes = 0;
	return true;
}

/*
 * Whether the program has allocated nothing since the last look, and a part of
 * the present wish is open.
 */
static bool may_give_rest(struct flexmem_cache *cache, uint64_t now)
{
	bool is_idle = cache->wanted.looked_at == cache->account.clock;

	cache->wanted.looked_at = cache->account.clock;
	return is_idle && alive(&cache->wanted.wish, now);
}

/*
 * A process that waits fails again and again, so there may be no time to look
 * between two events: an event in the pause is a look, too.
 */
uint64_t fmlib_wanted_answer(struct flexmem_cache *cache,
			     const struct flexmem_pressure_event *event,
			     uint64_t released, int *error)
{
	uint64_t in_use = event->in_use > released ?
			  event->in_use - released : 0;
	uint64_t free_bytes = event->memory > in_use ?
			      event->memory - in_use : 0;
	uint64_t now = now_ms();
	bool gives_rest = may_give_rest(cache, now);

	note(&cache->wanted, event->wanted - released, now);
	advance(cache, in_use, free_bytes, now);
	if ((is_in_vain(cache, in_use, now) && !gives_rest) ||
	    !alive(&cache->wanted.wish, now))
		return 0;
	return give(cache, in_use, now, error);
}

bool fmlib_wanted_lasts(struct flexmem_cache *cache)
{
	const struct fmlib_wanted *wanted = &cache->wanted;
	uint64_t now = now_ms();
	bool lasts;

	fmlib_lock(cache);
	lasts = alive(&wanted->wish, now) || alive(&wanted->next, now);
	fmlib_unlock(cache);
	return lasts;
}

/*
 * Gives what the pause has delayed, also if the program is not idle: the event
 * would have got it at once.
 */
uint64_t fmlib_wanted_look(struct flexmem_cache *cache)
{
	uint64_t now = now_ms();
	bool gives_rest = may_give_rest(cache, now);
	uint64_t free_bytes;
	uint64_t total;
	/* The cache logs a segment that the provider refuses to take back. */
	int err;

	if (!gives_rest && !alive(&cache->wanted.next, now))
		return 0;
	if (fmlib_device_info(cache, &free_bytes, &total))
		return 0;
	if (!advance(cache, total - free_bytes, free_bytes, now) && !gives_rest)
		return 0;
	return give(cache, total - free_bytes, now, &err);
}
