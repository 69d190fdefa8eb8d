// SPDX-License-Identifier: GPL-2.0
/*
 * Pressure: how full a PF or VF is, and the events for its open files.
 *
 * The level depends only on the bytes in use. It has a hysteresis, so an owner
 * that allocates and frees around a threshold causes only one event. Each
 * charge compares the bytes in use with the two thresholds of the present
 * level. A new level is computed only when the bytes in use have passed one of
 * them.
 *
 * Events are not queued. A file has an event while the gauge's published state
 * differs from the state that the file has read. A worker updates the published
 * state, at most once in FLEXMEM_EVENT_MS, and wakes the readers. So an ALLOC
 * or a FREE never spends time on the readers of other files.
 *
 * There are three kinds of events. The first kind tells every file that the level
 * has changed, even if the level has changed back by then: if a cache freed
 * memory and another process took that memory, the cache must free more. The
 * second kind is for a file whose last ALLOC failed: since that ALLOC began,
 * memory was freed. So the gauge counts the frees, and the file remembers the
 * count at the begin of the ALLOC. The third kind tells the other files that an
 * ALLOC has failed, and how many bytes it lacks: a *wish*. A wish for room is in
 * the gauge, one that a limit has refused in the account that has the limit.
 * Each file finds the wishes that concern it on the way from its own account to
 * the root. So neither an ALLOC nor the worker walks over files. But the worker
 * wakes all readers, and those whom a wish does not concern find no event.
 */

#include <linux/jiffies.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>

#include "account.h"
#include "compat.h"
#include "pressure.h"

/* &flexmem_listener.failed_at of a file without a failed ALLOC */
#define NOT_FAILED U64_MAX

/*
 * @percent of @memory, rounded up; at least 1, so that a PF or VF without
 * memory is never full.
 */
static u64 percent_of(u64 memory, unsigned int percent)
{
	u64 hundredths;
	u32 rest;

	hundredths = div_u64_rem(memory, 100, &rest);
	return max_t(u64, 1, hundredths * percent +
			     DIV_ROUND_UP(rest * percent, 100));
}

/*
 * Whether @in_use bytes mean @level. A level begins at @enter percent and ends
 * below @leave percent.
 */
static bool is_level(const struct flexmem_gauge *gauge, u64 in_use,
		     enum flexmem_pressure level, unsigned int enter,
		     unsigned int leave)
{
	return in_use >= percent_of(gauge->memory,
				    gauge->level >= level ? leave : enter);
}

/*
 * Computes the level. If the level changes, that is an event, which
 * flexmem_pressure_tell() delivers. Under &flexmem_accounts.lock.
 */
void flexmem_gauge_settle(struct flexmem_gauge *gauge, u64 in_use)
{
	enum flexmem_pressure level = FLEXMEM_PRESSURE_NONE;
	u64 memory = gauge->memory;

	if (is_level(gauge, in_use, FLEXMEM_PRESSURE_CRITICAL,
		     FLEXMEM_CRITICAL_ENTER, FLEXMEM_CRITICAL_LEAVE)) {
		level = FLEXMEM_PRESSURE_CRITICAL;
		gauge->down = percent_of(memory, FLEXMEM_CRITICAL_LEAVE);
		gauge->up = U64_MAX;
	} else if (is_level(gauge, in_use, FLEXMEM_PRESSURE_MODERATE,
			    FLEXMEM_MODERATE_ENTER, FLEXMEM_MODERATE_LEAVE)) {
		level = FLEXMEM_PRESSURE_MODERATE;
		gauge->down = percent_of(memory, FLEXMEM_MODERATE_LEAVE);
		gauge->up = percent_of(memory, FLEXMEM_CRITICAL_ENTER);
	} else {
		gauge->down = 0;
		gauge->up = percent_of(memory, FLEXMEM_MODERATE_ENTER);
	}
	if (level == gauge->level)
		return;
	gauge->level = level;
	WRITE_ONCE(gauge->moved, true);
}

/* Whether a file waits for a free. */
static bool is_hungry(const struct flexmem_gauge *gauge)
{
	return READ_ONCE(gauge->hungry) >= READ_ONCE(gauge->told_frees);
}

/*
 * Makes a new event if the level has changed, if memory was freed and a file
 * with a failed ALLOC waits for a free, or if there is a wish.
 */
static bool make_event(struct flexmem_gauge *gauge)
{
	u64 frees = flexmem_gauge_frees(gauge);
	bool relief = is_hungry(gauge) && frees != gauge->told_frees;
	bool wanted = gauge->wanted;
	/*
	 * If the level fell and rose again since the last event, that counts as
	 * a change, because memory is needed again.
	 */
	bool changed = gauge->moved && (gauge->level != FLEXMEM_PRESSURE_NONE ||
					gauge->told != FLEXMEM_PRESSURE_NONE);

	WRITE_ONCE(gauge->moved, false);
	WRITE_ONCE(gauge->wanted, false);
	if (!changed && !relief && !wanted)
		return false;
	gauge->sequence++;
	if (changed)
		gauge->told_at = gauge->sequence;
	WRITE_ONCE(gauge->told, gauge->level);
	WRITE_ONCE(gauge->told_frees, frees);
	WRITE_ONCE(gauge->next, jiffies + msecs_to_jiffies(FLEXMEM_EVENT_MS));
	return true;
}

/*
 * How long the next event must still wait, in jiffies. That is never longer than
 * FLEXMEM_EVENT_MS: if more seems to be left, the event was due long ago.
 */
static unsigned long time_left(const struct flexmem_gauge *gauge)
{
	unsigned long left = READ_ONCE(gauge->next) - jiffies;

	return left <= msecs_to_jiffies(FLEXMEM_EVENT_MS) ? left : 0;
}

/* Makes the worker run when the next event is due. */
static void deliver_soon(struct flexmem_gauge *gauge)
{
	queue_delayed_work(system_dfl_wq, &gauge->deliver, time_left(gauge));
}

static void deliver(struct work_struct *work)
{
	struct flexmem_gauge *gauge =
		container_of(to_delayed_work(work), struct flexmem_gauge,
			     deliver);
	struct flexmem_accounts *accounts =
		container_of(gauge, struct flexmem_accounts, gauge);
	bool news;

	/* There was an event since the worker was queued. */
	if (time_left(gauge)) {
		deliver_soon(gauge);
		return;
	}
	spin_lock(&accounts->lock);
	news = make_event(gauge);
	spin_unlock(&accounts->lock);
	/* Wakes all readers, because each open file reads its own events. */
	if (news)
		wake_up_interruptible_all(&gauge->readers);
}

/* Initialises a gauge without memory. */
void flexmem_gauge_init(struct flexmem_gauge *gauge)
{
	*gauge = (struct flexmem_gauge) {
		.sequence = 1,
		.frees = ATOMIC64_INIT(1),
		.told_frees = 1,
		.next = jiffies,
	};
	INIT_DELAYED_WORK(&gauge->deliver, deliver);
	init_waitqueue_head(&gauge->readers);
	flexmem_gauge_settle(gauge, 0);
}

/*
 * Delivers an event if the level has changed. Not under &flexmem_accounts.lock.
 */
void flexmem_pressure_tell(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;

	if (READ_ONCE(gauge->moved))
		deliver_soon(gauge);
}

/*
 * Sets the number of bytes that the PF or VF has or could have. Not under
 * &flexmem_accounts.lock.
 */
void flexmem_pressure_set_memory(struct flexmem_accounts *accounts, u64 memory)
{
	spin_lock(&accounts->lock);
	accounts->gauge.memory = memory;
	flexmem_gauge_settle(&accounts->gauge,
			     flexmem_accounts_in_use(accounts));
	spin_unlock(&accounts->lock);
	flexmem_pressure_tell(accounts);
}

/*
 * Notes that an ALLOC that failed may succeed now. Called after memory has
 * become free. Also delivers an event if the level has changed.
 * Context: any, but not under &flexmem_accounts.lock.
 */
void flexmem_pressure_freed(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;

	atomic64_inc(&gauge->frees);
	/*
	 * The free must be counted before @hungry is read. Pairs with the
	 * barrier in flexmem_pressure_failed().
	 */
	smp_mb__after_atomic();
	if (is_hungry(gauge))
		deliver_soon(gauge);
	else
		flexmem_pressure_tell(accounts);
}

/*
 * Numbers the times at which the file has found that memory was freed. Under
 * &flexmem_accounts.lock. The numbers are the file's own, so they tell nothing of
 * what others do between two calls.
 */
static u64 number_of_frees(const struct flexmem_gauge *gauge,
			   struct flexmem_listener *listener)
{
	u64 frees = flexmem_gauge_frees(gauge);

	listener->freed += frees != listener->counted;
	listener->counted = frees;
	return listener->freed;
}

/*
 * The number that grows, from 1 on, whenever the file calls this and memory was
 * freed since the last time.
 */
u64 flexmem_pressure_number(struct flexmem_accounts *accounts,
			    struct flexmem_listener *listener)
{
	u64 number;

	spin_lock(&accounts->lock);
	number = number_of_frees(&accounts->gauge, listener);
	spin_unlock(&accounts->lock);
	return number;
}

/*
 * Notes that an ALLOC of a file has failed for lack of memory. The next free is
 * an event for this file, and so is a free since @began: flexmem_gauge_frees()
 * when the ALLOC began. Return: a number at least 1, below any later
 * flexmem_pressure_number() if memory was freed since the ALLOC began.
 */
u64 flexmem_pressure_failed(struct flexmem_accounts *accounts,
			    struct flexmem_listener *listener, u64 began)
{
	struct flexmem_gauge *gauge = &accounts->gauge;
	u64 number;

	spin_lock(&accounts->lock);
	number = number_of_frees(gauge, listener);
	WRITE_ONCE(listener->failed_at, began);
	WRITE_ONCE(gauge->hungry, max3(gauge->hungry, gauge->told_frees,
				       flexmem_gauge_frees(gauge)));
	spin_unlock(&accounts->lock);
	/*
	 * @hungry must be set before @frees is read. Pairs with
	 * flexmem_pressure_freed().
	 */
	smp_mb();
	/*
	 * Memory was freed since @began, so the file has an event. Counts one
	 * more free, because the event about the first one may have been
	 * delivered already.
	 */
	if (flexmem_gauge_frees(gauge) != began)
		flexmem_pressure_freed(accounts);
	return number;
}

/* Takes back the wish of a file for the next event. */
static void withdraw_wish(const struct flexmem_gauge *gauge,
			  struct flexmem_listener *listener)
{
	if (listener->own.at > gauge->sequence) {
		listener->in->next.bytes -= listener->own.bytes;
		listener->own = (struct flexmem_wish) {};
	}
	WRITE_ONCE(listener->wishes, false);
}

/*
 * Notes that an ALLOC of a file has succeeded, or that the file is closed. From
 * now on a free is no event for the file, and it wishes for nothing.
 */
void flexmem_pressure_succeeded(struct flexmem_accounts *accounts,
				struct flexmem_listener *listener)
{
	if (likely(READ_ONCE(listener->failed_at) == NOT_FAILED &&
		   !READ_ONCE(listener->wishes)))
		return;
	spin_lock(&accounts->lock);
	WRITE_ONCE(listener->failed_at, NOT_FAILED);
	withdraw_wish(&accounts->gauge, listener);
	spin_unlock(&accounts->lock);
}

/* Lets files read the wish of the next event if that event was made since. */
static void settle_wishes(const struct flexmem_gauge *gauge,
			  struct flexmem_wishes *wishes)
{
	if (!wishes->next.at || wishes->next.at > gauge->sequence)
		return;
	wishes->told[wishes->nr_told++ % FLEXMEM_OLD_WISHES] = wishes->next;
	wishes->next = (struct flexmem_wish) {};
}

/*
 * The most bytes of a wish that a file has not read yet and could fulfil. Its own
 * part does not count.
 */
static u64 unread_wish(const struct flexmem_gauge *gauge,
		       struct flexmem_wishes *wishes,
		       const struct flexmem_listener *listener)
{
	const struct flexmem_wish *told = wishes->told;
	u64 most = 0, own;

	settle_wishes(gauge, wishes);
	for (; told < wishes->told + FLEXMEM_OLD_WISHES; told++) {
		own = wishes == listener->in && told->at == listener->own.at ?
			listener->own.bytes : 0;
		if (told->at > listener->wanted_at)
			most = max(most, told->bytes - own);
	}
	return most;
}

/*
 * The largest of the wishes that a file has not read yet and could fulfil, but
 * no more than the memory of the function.
 */
static u64 unread_wishes(struct flexmem_gauge *gauge,
			 const struct flexmem_listener *listener)
{
	struct flexmem_account *account = listener->account;
	u64 most = max(listener->unread,
		       unread_wish(gauge, &gauge->wishes, listener));

	for (; account; account = account->parent)
		most = max(most, unread_wish(gauge, &account->wishes,
					     listener));
	return min(most, gauge->memory);
}

/*
 * Adds a wish of a file to those of the next event, which
 * flexmem_pressure_wanted() delivers. Of each event the file has one wish: the
 * largest, where it was last refused. Under &flexmem_accounts.lock.
 */
void flexmem_gauge_wish(struct flexmem_gauge *gauge,
			struct flexmem_listener *listener,
			struct flexmem_wishes *wishes, u64 bytes)
{
	struct flexmem_wish *own = &listener->own;
	u64 at = gauge->sequence + 1;

	/* Only one wish of the file is known, so it reads the older ones now. */
	listener->unread = unread_wishes(gauge, listener);
	listener->wanted_at = max(listener->wanted_at, gauge->sequence);
	settle_wishes(gauge, wishes);
	if (own->at == at) {
		listener->in->next.bytes -= own->bytes;
		if (listener->in == wishes)
			bytes = max(bytes, own->bytes);
	}
	listener->in = wishes;
	*own = (struct flexmem_wish) { .at = at, .bytes = bytes };
	WRITE_ONCE(listener->wishes, true);
	wishes->next.at = at;
	wishes->next.bytes += bytes;
	WRITE_ONCE(gauge->wanted, true);
}

/* Delivers an event if there is a wish. Not under &flexmem_accounts.lock. */
void flexmem_pressure_wanted(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;

	if (READ_ONCE(gauge->wanted))
		deliver_soon(gauge);
}

/*
 * Initialises the state of a new file. The file has an event at once, unless
 * the level is FLEXMEM_PRESSURE_NONE.
 * @account: the file's account; NULL in unit tests.
 */
void flexmem_pressure_listen(struct flexmem_accounts *accounts,
			     struct flexmem_listener *listener,
			     struct flexmem_account *account)
{
	*listener = (struct flexmem_listener) {
		.told = FLEXMEM_PRESSURE_NONE,
		.failed_at = NOT_FAILED,
		.account = account,
		.freed = 1,
		.counted = flexmem_gauge_frees(&accounts->gauge),
	};
	spin_lock(&accounts->lock);
	/* A wish of the next event may be older than the file, too. */
	listener->wanted_at = accounts->gauge.sequence +
			      accounts->gauge.wanted;
	spin_unlock(&accounts->lock);
}

/* Reads the pending event into @reading. Returns whether there is one. */
bool flexmem_pressure_look(struct flexmem_accounts *accounts,
			   const struct flexmem_listener *listener,
			   struct flexmem_reading *reading)
{
	struct flexmem_gauge *gauge = &accounts->gauge;
	bool freed, changed;
	u64 in_use, wanted;

	spin_lock(&accounts->lock);
	in_use = flexmem_accounts_in_use(accounts);
	/* Whether an event has told of a free that the file waits for. */
	freed = listener->failed_at < gauge->told_frees;
	/*
	 * If the level rose and fell to FLEXMEM_PRESSURE_NONE again before the
	 * file read an event, the file gets no event.
	 */
	changed = listener->told_at != gauge->told_at &&
		  (listener->told != FLEXMEM_PRESSURE_NONE ||
		   gauge->told != FLEXMEM_PRESSURE_NONE);
	wanted = unread_wishes(gauge, listener);
	reading->before = *listener;
	reading->after.told = gauge->told;
	reading->after.told_at = gauge->told_at;
	reading->after.failed_at = freed ? NOT_FAILED : listener->failed_at;
	reading->after.wanted_at = max(gauge->sequence, listener->wanted_at);
	reading->after.unread = 0;
	reading->event = (struct flexmem_event) {
		.size = sizeof(reading->event),
		.level = gauge->told,
		.in_use = in_use,
		/*
		 * When a PF or VF is wedged, @gauge->memory no longer counts
		 * its memory, but the bytes stay in use until the regions are
		 * lost.
		 */
		.memory = max(gauge->memory, in_use),
		.sequence = listener->nr_read + 1,
		.wanted = wanted,
		.flags = (changed ? FLEXMEM_EVENT_LEVEL : 0) |
			 (freed ? FLEXMEM_EVENT_FREED : 0) |
			 (wanted ? FLEXMEM_EVENT_WANTED : 0),
	};
	spin_unlock(&accounts->lock);
	return reading->event.flags;
}

/*
 * Marks the event that flexmem_pressure_look() has read as read. Returns false
 * if another thread was first, or if an ALLOC of the file has failed or succeeded
 * meanwhile. Nothing has changed then.
 */
bool flexmem_pressure_take(struct flexmem_accounts *accounts,
			   struct flexmem_listener *listener,
			   const struct flexmem_reading *reading)
{
	bool same;

	spin_lock(&accounts->lock);
	same = listener->nr_read == reading->before.nr_read &&
	       listener->failed_at == reading->before.failed_at &&
	       listener->wanted_at == reading->before.wanted_at &&
	       listener->unread == reading->before.unread;
	if (same) {
		listener->nr_read++;
		listener->told = reading->after.told;
		listener->told_at = reading->after.told_at;
		listener->wanted_at = reading->after.wanted_at;
		listener->unread = reading->after.unread;
		WRITE_ONCE(listener->failed_at, reading->after.failed_at);
	}
	spin_unlock(&accounts->lock);
	return same;
}
