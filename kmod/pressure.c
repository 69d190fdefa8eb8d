// SPDX-License-Identifier: GPL-2.0
/*
 * Pressure: how full a function is, who wants to know, and who waits for memory.
 *
 * The level has a hysteresis, so that an owner who allocates and frees at a
 * threshold does not make everybody look all the time. Each charge compares what
 * is in use with the two thresholds at which the present level ends, and does no
 * more until one is passed.
 *
 * An event is a number that has moved on: nothing is queued, and whoever has been
 * away gets one event with the figures of the moment.
 *
 * Who waits for memory is in the queue before it looks for memory once more, and
 * whoever frees some looks at the queue afterwards: one of them sees the other.
 */

#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "account.h"
#include "compat.h"
#include "pressure.h"

/* The least number of bytes that are so many percent. Nothing is never full. */
static u64 percent_of(u64 memory, unsigned int percent)
{
	u64 hundredths;
	u32 rest;

	hundredths = div_u64_rem(memory, 100, &rest);
	return max_t(u64, 1, hundredths * percent +
			     DIV_ROUND_UP(rest * percent, 100));
}

static enum flexmem_pressure level_of(const struct flexmem_gauge *gauge)
{
	return gauge->waiters ? FLEXMEM_PRESSURE_CRITICAL : gauge->base;
}

/* An event, if the level is another than @before. */
static void note_change(struct flexmem_gauge *gauge,
			enum flexmem_pressure before)
{
	if (level_of(gauge) == before)
		return;
	gauge->sequence++;
	WRITE_ONCE(gauge->news, true);
}

/* Whether so much in use is a level, which ends later than it begins. */
static bool is_level(const struct flexmem_gauge *gauge, u64 in_use,
		     enum flexmem_pressure level, unsigned int enter,
		     unsigned int leave)
{
	return in_use >= percent_of(gauge->memory,
				    gauge->base >= level ? leave : enter);
}

/**
 * flexmem_gauge_settle - find the level of what is in use
 * @gauge: gauge
 * @in_use: bytes
 *
 * If that is another one it is an event, for flexmem_pressure_tell().
 *
 * Context: under &flexmem_accounts.lock.
 */
void flexmem_gauge_settle(struct flexmem_gauge *gauge, u64 in_use)
{
	enum flexmem_pressure before = level_of(gauge);
	u64 memory = gauge->memory;

	if (is_level(gauge, in_use, FLEXMEM_PRESSURE_CRITICAL,
		     FLEXMEM_CRITICAL_ENTER, FLEXMEM_CRITICAL_LEAVE)) {
		gauge->base = FLEXMEM_PRESSURE_CRITICAL;
		gauge->down = percent_of(memory, FLEXMEM_CRITICAL_LEAVE);
		gauge->up = U64_MAX;
	} else if (is_level(gauge, in_use, FLEXMEM_PRESSURE_MODERATE,
			    FLEXMEM_MODERATE_ENTER, FLEXMEM_MODERATE_LEAVE)) {
		gauge->base = FLEXMEM_PRESSURE_MODERATE;
		gauge->down = percent_of(memory, FLEXMEM_MODERATE_LEAVE);
		gauge->up = percent_of(memory, FLEXMEM_CRITICAL_ENTER);
	} else {
		gauge->base = FLEXMEM_PRESSURE_NONE;
		gauge->down = 0;
		gauge->up = percent_of(memory, FLEXMEM_MODERATE_ENTER);
	}
	note_change(gauge, before);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_gauge_settle);

/**
 * flexmem_gauge_set_memory - there is more memory than before, or less
 * @gauge: gauge
 * @memory: bytes there are or could be
 * @in_use: bytes in use
 *
 * Context: under &flexmem_accounts.lock.
 */
void flexmem_gauge_set_memory(struct flexmem_gauge *gauge, u64 memory,
			      u64 in_use)
{
	gauge->memory = memory;
	flexmem_gauge_settle(gauge, in_use);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_gauge_set_memory);

/**
 * flexmem_gauge_init - no memory, and nothing in use
 * @gauge: to initialise
 */
void flexmem_gauge_init(struct flexmem_gauge *gauge)
{
	*gauge = (struct flexmem_gauge) { .sequence = 1 };
	init_waitqueue_head(&gauge->readers);
	init_waitqueue_head(&gauge->starved);
	flexmem_gauge_settle(gauge, 0);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_gauge_init);

/**
 * flexmem_pressure_tell - wake up who waits for an event, if there is one
 * @accounts: accounts of the function
 *
 * How long it takes is in the hands of those who wait: anybody can poll a file
 * from any number of places.
 *
 * Context: any, but under no spinlock of ours.
 */
void flexmem_pressure_tell(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;

	/* All of them: an event is one of each open file, not of the device. */
	if (READ_ONCE(gauge->news) && xchg(&gauge->news, false))
		wake_up_interruptible_all(&gauge->readers);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_tell);

/**
 * flexmem_pressure_first - what a new file has seen
 * @accounts: accounts of the function
 *
 * Return: a number that flexmem_pressure_take() compares: there is an event for
 * it at once, unless the level is FLEXMEM_PRESSURE_NONE.
 */
u64 flexmem_pressure_first(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;
	u64 seen;

	spin_lock(&accounts->lock);
	seen = gauge->sequence - (level_of(gauge) != FLEXMEM_PRESSURE_NONE);
	spin_unlock(&accounts->lock);
	return seen;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_first);

/**
 * flexmem_pressure_is_new - is there an event
 * @accounts: accounts of the function
 * @seen: what the file has seen
 *
 * Return: true if there is.
 */
bool flexmem_pressure_is_new(struct flexmem_accounts *accounts, const u64 *seen)
{
	bool is_new;

	spin_lock(&accounts->lock);
	is_new = *seen != accounts->gauge.sequence;
	spin_unlock(&accounts->lock);
	return is_new;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_is_new);

/**
 * flexmem_pressure_take - the event there is
 * @accounts: accounts of the function
 * @seen: what the file has seen; only one of several takes an event
 * @event: receives it
 *
 * Return: true if there was one.
 */
bool flexmem_pressure_take(struct flexmem_accounts *accounts, u64 *seen,
			   struct flexmem_event *event)
{
	const struct flexmem_gauge *gauge = &accounts->gauge;
	bool is_new;

	spin_lock(&accounts->lock);
	is_new = *seen != gauge->sequence;
	*seen = gauge->sequence;
	*event = (struct flexmem_event) {
		.size = sizeof(*event),
		.level = level_of(gauge),
		.wanted = gauge->wanted,
		.in_use = flexmem_accounts_in_use(accounts),
		.memory = gauge->memory,
		.sequence = gauge->sequence,
	};
	spin_unlock(&accounts->lock);
	return is_new;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_take);

/**
 * flexmem_pressure_untake - an event could not be delivered
 * @accounts: accounts of the function
 * @seen: as for flexmem_pressure_take()
 * @event: as it was taken
 *
 * It is there again, unless there is a later one anyway.
 */
void flexmem_pressure_untake(struct flexmem_accounts *accounts, u64 *seen,
			     const struct flexmem_event *event)
{
	spin_lock(&accounts->lock);
	if (*seen == event->sequence)
		--*seen;
	WRITE_ONCE(accounts->gauge.news, true);
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_untake);

/**
 * flexmem_pressure_wait_begin - an allocation begins to wait for memory
 * @accounts: accounts of the function
 * @size: its bytes
 */
void flexmem_pressure_wait_begin(struct flexmem_accounts *accounts, u64 size)
{
	struct flexmem_gauge *gauge = &accounts->gauge;

	spin_lock(&accounts->lock);
	gauge->waiters++;
	gauge->wanted += size;
	gauge->sequence++;
	WRITE_ONCE(gauge->news, true);
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_wait_begin);

/**
 * flexmem_pressure_wait_end - it has got its memory, or gives up
 * @accounts: accounts of the function
 * @size: its bytes
 */
void flexmem_pressure_wait_end(struct flexmem_accounts *accounts, u64 size)
{
	struct flexmem_gauge *gauge = &accounts->gauge;
	enum flexmem_pressure before;

	spin_lock(&accounts->lock);
	before = level_of(gauge);
	gauge->waiters--;
	gauge->wanted -= size;
	note_change(gauge, before);
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_wait_end);

/**
 * flexmem_pressure_freed - who waits for memory may find some now
 * @accounts: accounts of the function
 *
 * In the regions there are. Called when it can be found already; also tells of
 * events, as flexmem_pressure_tell().
 *
 * Context: any, but under no spinlock of ours.
 */
void flexmem_pressure_freed(struct flexmem_accounts *accounts)
{
	flexmem_pressure_tell(accounts);
	/* Its barrier pairs with the one in wait_and_place(). */
	if (wq_has_sleeper(&accounts->gauge.starved))
		wake_up_all(&accounts->gauge.starved);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_freed);

/**
 * flexmem_pressure_supplied - who waits for memory may get a region now
 * @accounts: accounts of the function
 *
 * Context: as flexmem_pressure_freed().
 */
void flexmem_pressure_supplied(struct flexmem_accounts *accounts)
{
	atomic_inc(&accounts->gauge.supply);
	flexmem_pressure_freed(accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_supplied);

/**
 * flexmem_pressure_close - the device goes: nobody waits any more
 * @accounts: accounts of the function, which is closing
 */
void flexmem_pressure_close(struct flexmem_accounts *accounts)
{
	wake_up_all(&accounts->gauge.readers);
	flexmem_pressure_freed(accounts);
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_pressure_close);
