// SPDX-License-Identifier: GPL-2.0
/*
 * Pressure: how full a PF or VF is, and the events for its open files.
 *
 * The level depends only on the bytes in use, with a hysteresis. Each charge
 * compares the bytes in use with the two thresholds of the present level. A new
 * level is computed only when they have passed one of them.
 *
 * Events are not queued. A file has an event while the gauge's published state
 * differs from the state that the file has read. A worker updates the published
 * state, at most once in FLEXMEM_EVENT_MS, and wakes the readers of files with an
 * event. So an ALLOC or a FREE never spends time on the readers of other files.
 *
 * There are three kinds of events. The first kind tells every file that the level
 * has changed, even if it has changed back by then: if a cache freed memory and
 * another process took it, the cache must free more. The second kind is for a
 * file whose last ALLOC failed: since that ALLOC began, memory was freed. The
 * third kind tells the other files that an ALLOC has failed, and how many bytes it
 * lacks: a *wish*. A wish for room is in the gauge, one that a limit has refused
 * in the account that has the limit. Each file finds the wishes that concern it
 * on the way from its own account to the root, so an ALLOC walks over no files.
 */

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "ioctl.h"

/* &flexmem_listener.failed_at of a file without a failed ALLOC */
#define NOT_FAILED U64_MAX

/* At least 1, so that a PF or VF without memory is never full. */
static u64 percent_of(u64 memory, unsigned int percent)
{
	u32 rest;
	u64 hundredths = div_u64_rem(memory, 100, &rest);

	return max_t(u64, 1, hundredths * percent +
			     DIV_ROUND_UP(rest * percent, 100));
}

/* A level begins at @enter percent and ends below @leave percent. */
static bool is_level(const struct flexmem_gauge *gauge, u64 in_use,
		     enum flexmem_pressure level, unsigned int enter,
		     unsigned int leave)
{
	return in_use >= percent_of(gauge->memory,
				    gauge->level >= level ? leave : enter);
}

/* Computes the level, for flexmem_pressure_tell(). Under the accounts' lock. */
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
	gauge->moved = true;
	WRITE_ONCE(gauge->due, true);
}

static bool is_hungry(const struct flexmem_gauge *gauge)
{
	return READ_ONCE(gauge->hungry) >= READ_ONCE(gauge->told_frees);
}

/* Makes a new event if there is a reason for one. */
static bool make_event(struct flexmem_gauge *gauge)
{
	u64 frees = flexmem_gauge_frees(gauge);
	bool relief = is_hungry(gauge) && frees != gauge->told_frees;
	bool wanted = gauge->nr_wishes;
	/* A level that fell and rose again counts: memory is needed again. */
	bool changed = gauge->moved && (gauge->level != FLEXMEM_PRESSURE_NONE ||
					gauge->told != FLEXMEM_PRESSURE_NONE);

	gauge->moved = false;
	gauge->nr_wishes = 0;
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

/* In jiffies. If more than FLEXMEM_EVENT_MS seem to be left, it is long due. */
static unsigned long time_left(const struct flexmem_gauge *gauge)
{
	unsigned long left = READ_ONCE(gauge->next) - jiffies;

	return left <= msecs_to_jiffies(FLEXMEM_EVENT_MS) ? left : 0;
}

static void deliver_soon(struct flexmem_gauge *gauge)
{
	queue_delayed_work(system_dfl_wq, &gauge->deliver, time_left(gauge));
}

/* Whether a read() does not wait: it finds an event, or that the device is gone. */
bool flexmem_pressure_has_news(struct flexmem_accounts *accounts,
			       const struct flexmem_listener *listener)
{
	struct flexmem_reading reading;

	return flexmem_function_is_gone(accounts->function) ||
	       flexmem_pressure_look(accounts, listener, &reading);
}

/*
 * Wakes the readers of files with news. May sleep. One queue for all files would be
 * woken with interrupts off. Between two files other tasks run, and open or close
 * files. Calls at the same time share the files that are left.
 */
void flexmem_pressure_wake(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;
	struct flexmem_listener *listener;
	LIST_HEAD(left);

	mutex_lock(&gauge->files_lock);
	list_splice_init(&gauge->files, &left);
	while (!list_empty(&left)) {
		listener = list_first_entry(&left, struct flexmem_listener, link);
		list_move_tail(&listener->link, &gauge->files);
		if (flexmem_pressure_has_news(accounts, listener))
			wake_up_interruptible_all(&listener->readers);
		mutex_unlock(&gauge->files_lock);
		cond_resched();
		mutex_lock(&gauge->files_lock);
	}
	mutex_unlock(&gauge->files_lock);
}

static void deliver(struct work_struct *work)
{
	struct flexmem_gauge *gauge =
		container_of(to_delayed_work(work), struct flexmem_gauge,
			     deliver);
	struct flexmem_accounts *accounts =
		container_of(gauge, struct flexmem_accounts, gauge);
	bool news;

	if (time_left(gauge)) {
		deliver_soon(gauge);
		return;
	}
	spin_lock(&accounts->lock);
	news = make_event(gauge);
	spin_unlock(&accounts->lock);
	if (news)
		flexmem_pressure_wake(accounts);
}

void flexmem_gauge_init(struct flexmem_gauge *gauge)
{
	*gauge = (struct flexmem_gauge) {
		.sequence = 1,
		.frees = ATOMIC64_INIT(1),
		.told_frees = 1,
		.next = jiffies,
	};
	INIT_DELAYED_WORK(&gauge->deliver, deliver);
	mutex_init(&gauge->files_lock);
	INIT_LIST_HEAD(&gauge->files);
	flexmem_gauge_settle(gauge, 0);
}

/*
 * Delivers an event if the level has changed, or if there is a wish, unless another
 * caller does. Not under the accounts' lock.
 */
void flexmem_pressure_tell(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;

	if (unlikely(READ_ONCE(gauge->due))) {
		/* Before the work is queued, which looks under the lock. */
		WRITE_ONCE(gauge->due, false);
		deliver_soon(gauge);
	}
}

/*
 * Delivers an event about memory that was counted if a file waits for it, and does
 * the same as flexmem_pressure_tell(). Not under &flexmem_accounts.lock.
 */
void flexmem_pressure_tell_free(struct flexmem_accounts *accounts)
{
	struct flexmem_gauge *gauge = &accounts->gauge;

	if (is_hungry(gauge))
		deliver_soon(gauge);
	else
		flexmem_pressure_tell(accounts);
}

/*
 * How often the file has found that memory was freed. The numbers are the file's
 * own, so they tell nothing of what others do between two calls.
 */
static u64 number_of_frees(const struct flexmem_gauge *gauge,
			   struct flexmem_listener *listener)
{
	u64 frees = flexmem_gauge_frees(gauge);

	listener->freed += frees != listener->counted;
	listener->counted = frees;
	return listener->freed;
}

/* A number that grows, from 1 on, when memory was freed since the last call. */
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
	/* Sets @hungry before it reads @frees. Pairs with the count of a free. */
	smp_mb();
	/* The event about the free may have been delivered: counts one more. */
	if (flexmem_gauge_frees(gauge) != began)
		flexmem_accounts_freed(accounts);
	return number;
}

/* Takes back the wish of a file for the next event. */
static void withdraw_wish(struct flexmem_gauge *gauge,
			  struct flexmem_listener *listener)
{
	if (listener->own.at > gauge->sequence) {
		listener->in->next.bytes -= listener->own.bytes;
		listener->own = (struct flexmem_wish) {};
		gauge->nr_wishes--;
	}
	WRITE_ONCE(listener->wishes, false);
}

/* Ends the wish of a file that has got @bytes. A larger request still lacks memory. */
static void end_wish(struct flexmem_gauge *gauge,
		     struct flexmem_listener *listener, u64 bytes)
{
	if (bytes >= listener->own.bytes || listener->own.at <= gauge->sequence)
		withdraw_wish(gauge, listener);
}

/* Notes that a RESIZE of a file has added @bytes. */
void flexmem_pressure_grew(struct flexmem_accounts *accounts,
			   struct flexmem_listener *listener, u64 bytes)
{
	if (likely(!READ_ONCE(listener->wishes)))
		return;
	spin_lock(&accounts->lock);
	end_wish(&accounts->gauge, listener, bytes);
	spin_unlock(&accounts->lock);
}

/* Not inline, because few files wait. */
static noinline void end_wait(struct flexmem_accounts *accounts,
			      struct flexmem_listener *listener, u64 bytes)
{
	spin_lock(&accounts->lock);
	WRITE_ONCE(listener->failed_at, NOT_FAILED);
	end_wish(&accounts->gauge, listener, bytes);
	spin_unlock(&accounts->lock);
}

/*
 * Notes that an ALLOC of @bytes of a file has succeeded. From now on a free is no
 * event for the file.
 */
void flexmem_pressure_succeeded(struct flexmem_accounts *accounts,
				struct flexmem_listener *listener, u64 bytes)
{
	if (READ_ONCE(listener->failed_at) != NOT_FAILED ||
	    READ_ONCE(listener->wishes))
		end_wait(accounts, listener, bytes);
}

/* Lets files read the wish of the next event if that event was made since. */
static void settle_wishes(const struct flexmem_gauge *gauge,
			  struct flexmem_wishes *wishes)
{
	if (!wishes->next.at || wishes->next.at > gauge->sequence)
		return;
	/* All wishes may have been taken back. */
	if (wishes->next.bytes)
		wishes->told[wishes->nr_told++ % FLEXMEM_OLD_WISHES] =
			wishes->next;
	wishes->next = (struct flexmem_wish) {};
}

/* The most bytes of a wish of others that a file has not read yet. */
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

/* The largest such wish, but no more than the memory of the function. */
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
 * Adds a wish of a file to the next event, for flexmem_pressure_tell(). Of each
 * event the file has one wish: the largest, where it was last refused. Under
 * &flexmem_accounts.lock.
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
	} else {
		gauge->nr_wishes++;
		WRITE_ONCE(gauge->due, true);
	}
	listener->in = wishes;
	*own = (struct flexmem_wish) { .at = at, .bytes = bytes };
	WRITE_ONCE(listener->wishes, true);
	wishes->next.at = at;
	wishes->next.bytes += bytes;
}

/*
 * Initialises the state of a new file, which has an event at once unless the
 * level is FLEXMEM_PRESSURE_NONE. @account: NULL in unit tests. May sleep.
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
			      !!accounts->gauge.nr_wishes;
	spin_unlock(&accounts->lock);
	init_waitqueue_head(&listener->readers);
	mutex_lock(&accounts->gauge.files_lock);
	list_add_tail(&listener->link, &accounts->gauge.files);
	mutex_unlock(&accounts->gauge.files_lock);
}

/* Notes that a file is closed: nobody waits for its events. May sleep. */
void flexmem_pressure_unlisten(struct flexmem_accounts *accounts,
			       struct flexmem_listener *listener)
{
	flexmem_pressure_succeeded(accounts, listener, U64_MAX);
	mutex_lock(&accounts->gauge.files_lock);
	list_del(&listener->link);
	mutex_unlock(&accounts->gauge.files_lock);
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
	/* A level that rose and fell to NONE again before it was read is none. */
	changed = listener->told_at < gauge->told_at &&
		  (listener->told != FLEXMEM_PRESSURE_NONE ||
		   gauge->told != FLEXMEM_PRESSURE_NONE);
	wanted = unread_wishes(gauge, listener);
	reading->failed_at = listener->failed_at;
	reading->wanted_at = listener->wanted_at;
	reading->sequence = gauge->sequence;
	reading->event = (struct flexmem_event) {
		.size = sizeof(reading->event),
		.level = gauge->told,
		.in_use = in_use,
		/* The bytes of a wedged PF or VF stay in use, but are no memory. */
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
	same = listener->nr_read + 1 == reading->event.sequence &&
	       listener->failed_at == reading->failed_at &&
	       listener->wanted_at == reading->wanted_at;
	if (same) {
		listener->nr_read++;
		listener->told = reading->event.level;
		listener->told_at = reading->sequence;
		listener->wanted_at = max(reading->sequence, reading->wanted_at);
		listener->unread = 0;
		if (reading->event.flags & FLEXMEM_EVENT_FREED)
			WRITE_ONCE(listener->failed_at, NOT_FAILED);
	}
	spin_unlock(&accounts->lock);
	return same;
}

__poll_t flexmem_pressure_poll(struct file *filp, poll_table *wait)
{
	struct flexmem_file *file = filp->private_data;
	struct flexmem_listener *listener = &file->client.listener;
	struct flexmem_table *table = &file->fdev->table;

	poll_wait(filp, &listener->readers, wait);
	if (flexmem_function_is_gone(&table->function))
		return EPOLLERR | EPOLLHUP;
	return flexmem_pressure_has_news(&table->accounts, listener) ?
		EPOLLIN | EPOLLRDNORM : 0;
}

/*
 * Takes the event after copying it, so that an event that cannot be copied stays
 * pending. Returns 0 if there is no event.
 */
static int read_event(struct flexmem_file *file, char __user *to, size_t count)
{
	struct flexmem_accounts *accounts = &file->fdev->table.accounts;
	struct flexmem_listener *listener = &file->client.listener;
	struct flexmem_reading reading;

	do {
		if (!flexmem_pressure_look(accounts, listener, &reading))
			return 0;
		reading.event.size = count;
		if (copy_to_user(to, &reading.event, count))
			return -EFAULT;
	} while (!flexmem_pressure_take(accounts, listener, &reading));
	return count;
}

ssize_t flexmem_pressure_read(struct file *filp, char __user *to, size_t count,
			      loff_t *pos)
{
	struct flexmem_file *file = filp->private_data;
	struct flexmem_listener *listener = &file->client.listener;
	struct flexmem_table *table = &file->fdev->table;
	int rc;

	if (count < FLEXMEM_EVENT_MIN)
		return -EINVAL;
	count = min(count, sizeof(struct flexmem_event));
	for (;;) {
		if (flexmem_function_is_gone(&table->function))
			return -ENODEV;
		rc = read_event(file, to, count);
		if (rc)
			return rc;
		if (filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		rc = wait_event_interruptible(listener->readers,
					      flexmem_pressure_has_news(&table->accounts,
									listener));
		if (rc)
			return rc;
	}
}

static void close_file(struct flexmem_client *client)
{
	flexmem_pressure_unlisten(&client->table->accounts, &client->listener);
}

/* A reader of a function that is gone does not wait. */
static void wake_readers(struct flexmem_table *table)
{
	flexmem_pressure_wake(&table->accounts);
}

const struct flexmem_part_ops flexmem_part_pressure = {
	.close = close_file,
	.loss = wake_readers,
};
