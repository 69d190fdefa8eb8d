/* SPDX-License-Identifier: GPL-2.0 */
/* Pressure: how full a PF or VF is, and the events for its open files. */
#ifndef _FLEXMEM_PRESSURE_H
#define _FLEXMEM_PRESSURE_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/flexmem.h>

struct flexmem_account;
struct flexmem_accounts;

/**
 * struct flexmem_wish - bytes that failed ALLOCs lack
 * @at: number of the event that tells of them; 0: there is no wish
 * @bytes: sum over the files of the most bytes that one ALLOC of the file lacks
 */
struct flexmem_wish {
	u64 at;
	u64 bytes;
};

/* A file that reads late finds the wishes of this many events. */
#define FLEXMEM_OLD_WISHES 4

/**
 * struct flexmem_wishes - wishes that the same files could fulfil
 * @told: the latest wishes that files can read
 * @nr_told: number of wishes that were told so far
 * @next: the wish of the next event, or of the latest one (settle_wishes())
 *
 * &flexmem_accounts.lock protects the members.
 */
struct flexmem_wishes {
	struct flexmem_wish told[FLEXMEM_OLD_WISHES];
	unsigned int nr_told;
	struct flexmem_wish next;
};

/**
 * struct flexmem_gauge - how full a PF or VF is
 * @memory: bytes that the PF or VF has or could acquire
 * @up: the level rises when this many bytes are in use
 * @down: the level falls when fewer bytes are in use
 * @level: level of the bytes in use
 * @moved: @level has changed since the latest event. It may have changed back
 * @due: @moved or @nr_wishes has changed, and nobody has queued @deliver since
 * @told: level in the latest event
 * @told_at: number of the latest event about the level
 * @sequence: number of the latest event of any kind
 * @frees: number of frees, plus 1; changes without the lock
 * @told_frees: value of @frees at the latest event
 * @hungry: value of @frees at the latest failure of an ALLOC, or @told_frees if
 *	that is larger; 0 if no ALLOC has failed. If @hungry is below
 *	@told_frees, every file with a failed ALLOC has had its event
 * @wishes: wishes that all files could fulfil
 * @nr_wishes: files with a wish for the next event, here or in an account
 * @next: earliest time of the next event, in jiffies
 * @deliver: work that delivers the next event
 * @files_lock: protects @files; comes before &flexmem_accounts.lock
 * @files: listeners of the open files, but for those that a walk has still to wake
 *
 * &flexmem_accounts.lock protects all members for which nothing else is said.
 * @told_frees, @hungry and @next are also read without it, and so is @due, which
 * flexmem_pressure_tell() clears without it.
 */
struct flexmem_gauge {
	u64 memory;
	u64 up;
	u64 down;
	enum flexmem_pressure level;
	bool moved;
	bool due;
	enum flexmem_pressure told;
	u64 told_at;
	u64 sequence;
	atomic64_t frees;
	u64 told_frees;
	u64 hungry;
	struct flexmem_wishes wishes;
	unsigned int nr_wishes;
	unsigned long next;
	struct delayed_work deliver;
	struct mutex files_lock; /* protects @files */
	struct list_head files;
};

/**
 * struct flexmem_listener - the state that an open file has read
 * @told: level in the file's last event
 * @told_at: &flexmem_gauge.sequence when the file read it
 * @failed_at: flexmem_gauge_frees() when the file's last ALLOC began, if that
 *	ALLOC failed and the file has not read an event about a free since;
 *	otherwise U64_MAX
 * @account: the file's account; NULL in unit tests. Never changes
 * @wanted_at: number of the latest event whose wishes the file has read
 * @unread: bytes of older wishes that the file has not read yet
 * @in: where the file's own latest wish is; NULL if it has had none
 * @own: the file's part of this wish
 * @wishes: the file may have a wish for the next event; also read without the lock
 * @nr_read: number of events that the file has read
 * @freed: how often the file has found that memory was freed, plus 1
 * @counted: flexmem_gauge_frees() when the file last looked
 * @link: in &flexmem_gauge.files, under its lock
 * @readers: tasks that wait for events of the file; not under the lock
 *
 * &flexmem_accounts.lock protects the other members.
 */
struct flexmem_listener {
	enum flexmem_pressure told;
	u64 told_at;
	u64 failed_at;
	struct flexmem_account *account;
	u64 wanted_at;
	u64 unread;
	struct flexmem_wishes *in;
	struct flexmem_wish own;
	bool wishes;
	u64 nr_read;
	u64 freed;
	u64 counted;
	struct list_head link;
	wait_queue_head_t readers;
};

/**
 * struct flexmem_reading - an event that is being read
 * @failed_at: &flexmem_listener.failed_at
 * @wanted_at: &flexmem_listener.wanted_at
 * @sequence: &flexmem_gauge.sequence
 * @event: the event
 */
struct flexmem_reading {
	u64 failed_at;
	u64 wanted_at;
	u64 sequence;
	struct flexmem_event event;
};

#ifndef FLEXMEM_CORE
void flexmem_gauge_init(struct flexmem_gauge *gauge);
void flexmem_gauge_wish(struct flexmem_gauge *gauge,
			struct flexmem_listener *listener,
			struct flexmem_wishes *wishes, u64 bytes);
void flexmem_gauge_settle(struct flexmem_gauge *gauge, u64 in_use);
void flexmem_pressure_tell(struct flexmem_accounts *accounts);
void flexmem_pressure_tell_free(struct flexmem_accounts *accounts);
u64 flexmem_pressure_failed(struct flexmem_accounts *accounts,
			    struct flexmem_listener *listener, u64 began);
void flexmem_pressure_succeeded(struct flexmem_accounts *accounts,
				struct flexmem_listener *listener, u64 bytes);
void flexmem_pressure_listen(struct flexmem_accounts *accounts,
			     struct flexmem_listener *listener,
			     struct flexmem_account *account);
ssize_t flexmem_pressure_read(struct file *filp, char __user *to, size_t count,
			      loff_t *pos);
__poll_t flexmem_pressure_poll(struct file *filp,
			       struct poll_table_struct *wait);

static inline void flexmem_gauge_fini(struct flexmem_gauge *gauge)
{
	cancel_delayed_work_sync(&gauge->deliver);
}
#else
static inline void flexmem_gauge_init(struct flexmem_gauge *gauge)
{
	atomic64_set(&gauge->frees, 1);
	gauge->up = U64_MAX;
}

static inline void flexmem_gauge_fini(struct flexmem_gauge *gauge) { }
static inline void flexmem_gauge_wish(struct flexmem_gauge *gauge,
				      struct flexmem_listener *listener,
				      struct flexmem_wishes *wishes, u64 bytes) { }
static inline void flexmem_gauge_settle(struct flexmem_gauge *gauge, u64 in_use) { }
static inline void flexmem_pressure_tell(struct flexmem_accounts *accounts) { }
static inline void flexmem_pressure_tell_free(struct flexmem_accounts *accounts) { }

static inline u64 flexmem_pressure_failed(struct flexmem_accounts *accounts,
					  struct flexmem_listener *listener, u64 began)
{
	return 0;
}

static inline void flexmem_pressure_succeeded(struct flexmem_accounts *accounts,
					      struct flexmem_listener *listener,
					      u64 bytes) { }
static inline void flexmem_pressure_listen(struct flexmem_accounts *accounts,
					   struct flexmem_listener *listener,
					   struct flexmem_account *account) { }
#define flexmem_pressure_read NULL
#define flexmem_pressure_poll NULL
#endif

/* Notes that the bytes in use have changed. Under &flexmem_accounts.lock. */
static inline void flexmem_gauge_move(struct flexmem_gauge *gauge, u64 in_use)
{
	if (unlikely(in_use >= gauge->up || in_use < gauge->down))
		flexmem_gauge_settle(gauge, in_use);
}

static inline u64 flexmem_gauge_frees(const struct flexmem_gauge *gauge)
{
	return atomic64_read(&gauge->frees);
}

u64 flexmem_pressure_number(struct flexmem_accounts *accounts,
			    struct flexmem_listener *listener);
void flexmem_pressure_grew(struct flexmem_accounts *accounts,
			   struct flexmem_listener *listener, u64 bytes);
void flexmem_pressure_unlisten(struct flexmem_accounts *accounts,
			       struct flexmem_listener *listener);
bool flexmem_pressure_has_news(struct flexmem_accounts *accounts,
			       const struct flexmem_listener *listener);
void flexmem_pressure_wake(struct flexmem_accounts *accounts);
bool flexmem_pressure_look(struct flexmem_accounts *accounts,
			   const struct flexmem_listener *listener,
			   struct flexmem_reading *reading);
bool flexmem_pressure_take(struct flexmem_accounts *accounts,
			   struct flexmem_listener *listener,
			   const struct flexmem_reading *reading);

#endif /* _FLEXMEM_PRESSURE_H */
