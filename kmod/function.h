/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function of a device, PF or VF, as its driver describes it: the only
 * place that calls the driver. No answer is trusted unchecked.
 */
#ifndef _FLEXMEM_FUNCTION_H
#define _FLEXMEM_FUNCTION_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/mm_types.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/flexmem.h>
#include <flexmem/device_ops.h>

struct device;
struct mutex;

#define FLEXMEM_MAX_SLOTS 64

/*
 * Pieces that a function can hold: one a slot, and what it has not taken back
 * yet.
 */
#define FLEXMEM_MAX_PIECES (2 * FLEXMEM_MAX_SLOTS)

/* So many commands in a row that time out make a function unresponsive (D28). */
#define FLEXMEM_TIMEOUTS 2

/* When the worker begins after a timeout, and how often that is doubled. */
#define FLEXMEM_WORK_MS 1000
#define FLEXMEM_WORK_DOUBLINGS 6U
/* No more than that while callers wait for the worker's probe. */
#define FLEXMEM_PROBE_DOUBLINGS 3U

/* No slot names a piece. */
#define FLEXMEM_NO_SLOT (-1)

/* So often callers try what fails to go back; then it waits for TRIM. */
#define FLEXMEM_RELEASE_TRIES 4

/**
 * enum flexmem_piece_state - what is to become of a piece of memory
 * @FLEXMEM_PIECE_HELD: it stays
 * @FLEXMEM_PIECE_ASKED_FOR: it goes back, by its id: its acquisition was not answered
 * @FLEXMEM_PIECE_STRANDED: it goes back
 * @FLEXMEM_PIECE_LEAVING: likewise, and may have: a release was not answered
 */
enum flexmem_piece_state {
	FLEXMEM_PIECE_HELD,
	FLEXMEM_PIECE_ASKED_FOR,
	FLEXMEM_PIECE_STRANDED,
	FLEXMEM_PIECE_LEAVING,
};

/**
 * struct flexmem_piece - memory that the device gave, and what is to be undone
 * @mem: what it gave; @base is 0 if it was only asked for
 * @state: what is to become of it
 * @slot: the slot that names it, or may; cleared before it goes back
 * @range: where it may be mapped, because a command failed: unmapped first, in any
 *	state. @size is 0 if it is not
 * @tries: to undo it, in vain
 */
struct flexmem_piece {
	struct flexmem_memory mem;
	enum flexmem_piece_state state;
	int slot;
	struct flexmem_vm_range range;
	unsigned int tries;
};

/**
 * enum flexmem_state - what a function can be asked for
 * @FLEXMEM_UP: every command
 * @FLEXMEM_UNRESPONSIVE: a probe now and then, since FLEXMEM_TIMEOUTS commands in a
 *	row timed out; callers wait for the result of one (D28)
 * @FLEXMEM_SUSPENDED: nothing until it is resumed; callers wait for that
 * @FLEXMEM_WEDGED: a reset and nothing else, until one succeeds: one is under way,
 *	or has failed
 * @FLEXMEM_GONE: nothing: its driver goes
 * @FLEXMEM_NR_STATES: how many there are
 *
 * The state changes before the locks are taken under which the driver is called.
 * A task that holds one of them finishes the operation under way, and asks
 * flexmem_function_error() before the next one. So suspend, reset and removal
 * wait for one operation of each lock.
 */
enum flexmem_state {
	FLEXMEM_UP,
	FLEXMEM_UNRESPONSIVE,
	FLEXMEM_SUSPENDED,
	FLEXMEM_WEDGED,
	FLEXMEM_GONE,
	FLEXMEM_NR_STATES,
};

/**
 * struct flexmem_function - a PF or VF and its driver's operations
 * @dev: for messages; may be NULL
 * @mode: PF or VF
 * @slots: entries of the firmware's table; 0 on a PF
 * @granule: sizes of pieces are multiples of this
 * @vm_page: page size of its device-virtual spaces; 0: it has none
 * @vm_start: first address that can be mapped in them
 * @vm_end: the one after the last
 * @caching: of maps for the CPU
 * @clears: the device clears what it takes back
 * @ops: the device's operations: which of them there are is asked at any time,
 *	also when the driver's module is gone, so they are a copy
 * @priv: their argument
 * @nr_pieces: how many of @piece there are
 * @piece: memory that the device gave and has not taken back, for all we know, and
 *	all that has to be undone or repeated; in the order of acquisition
 * @distrusted: an answer was wrong, and that has been reported
 * @timeouts: commands that timed out since the last one that succeeded, or was
 *	refused for want of room. Changes without a lock
 * @worker: what does the jobs of its callers and @work; NULL before there is one
 * @work: sends a probe, and settles what no caller asks about
 * @work_ms: how long after a timeout @work runs; then twice as long each time.
 *	FLEXMEM_WORK_MS; only unit tests have more patience
 * @work_tries: runs of @work in vain; by that alone
 * @state_lock: protects the changes of the members below; a leaf
 * @state: what it can be asked for; read without a lock
 * @failures: that the driver has reported; a reset mends only those before it
 * @resumes_as: the state that a function that is suspended has next
 * @probes: probes so far, so that callers see the end of one
 * @changed: woken up when @state has changed
 *
 * What follows @priv changes under the lock that lets one operation run at a
 * time, unless it says otherwise; what is above never changes, but for @dev,
 * which goes when the driver does.
 */
struct flexmem_function {
	struct device *dev;
	enum flexmem_mode mode;
	unsigned int slots;
	u64 granule;
	u64 vm_page;
	u64 vm_start;
	u64 vm_end;
	enum flexmem_caching caching;
	bool clears;
	struct flexmem_device_ops ops;
	void *priv;
	unsigned int nr_pieces;
	struct flexmem_piece piece[FLEXMEM_MAX_PIECES];
	atomic_t distrusted;
	atomic_t timeouts;
	struct workqueue_struct *worker;
	struct delayed_work work;
	unsigned int work_ms;
	unsigned int work_tries;
	spinlock_t state_lock; /* see above */
	enum flexmem_state state;
	unsigned int failures;
	enum flexmem_state resumes_as;
	unsigned int probes;
	wait_queue_head_t changed;
};

/* Whether the function has been removed. */
static inline bool
flexmem_function_is_gone(const struct flexmem_function *function)
{
	return READ_ONCE(function->state) == FLEXMEM_GONE;
}

/* Whether the commands that were sent last all timed out. */
static inline bool
flexmem_function_is_unresponsive(const struct flexmem_function *function)
{
	return READ_ONCE(function->state) == FLEXMEM_UNRESPONSIVE;
}

void flexmem_function_enter(struct flexmem_function *function,
			    enum flexmem_state state);
void flexmem_function_fail(struct flexmem_function *function);
int flexmem_function_recover(struct flexmem_function *function,
			     unsigned int failures);
void flexmem_function_suspend(struct flexmem_function *function);
void flexmem_function_resume(struct flexmem_function *function);
int flexmem_function_error(const struct flexmem_function *function);
int flexmem_function_fatal(const struct flexmem_function *function);
int flexmem_function_wait(struct flexmem_function *function);
int flexmem_function_lock(struct flexmem_function *function, struct mutex *lock);
void flexmem_function_work_later(struct flexmem_function *function);

/* For the files that call the driver. */

/* Whether a command that failed may have been carried out. */
static inline bool flexmem_is_unanswered(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR;
}

struct flexmem_piece *flexmem_function_piece(struct flexmem_function *function,
					     u64 id);
void flexmem_function_forget_piece(struct flexmem_function *function,
				   struct flexmem_piece *piece);
int flexmem_function_undo(struct flexmem_function *function,
			  struct flexmem_piece *piece);
int flexmem_function_note(struct flexmem_function *function, int rc);
int flexmem_function_outcome(struct flexmem_function *function,
			     const char *operation, int rc, bool may_be_full);

int flexmem_function_init(struct flexmem_function *function,
			  struct device *dev,
			  const struct flexmem_device_desc *desc);
bool flexmem_function_is_settled(const struct flexmem_function *function);
bool flexmem_function_slot_is_known(const struct flexmem_function *function,
				    unsigned int slot);
u64 flexmem_function_held(const struct flexmem_function *function);
int flexmem_function_drain(struct flexmem_function *function, bool all);
void flexmem_function_give_all_back(struct flexmem_function *function);
void flexmem_function_probe(struct flexmem_function *function);
int flexmem_function_capacity(struct flexmem_function *function, u64 *bytes);
int flexmem_function_acquire(struct flexmem_function *function, u64 size,
			     struct flexmem_memory *mem);
int flexmem_function_release(struct flexmem_function *function,
			     const struct flexmem_memory *mem);
int flexmem_function_slot_set(struct flexmem_function *function,
			      unsigned int slot,
			      const struct flexmem_memory *mem);
int flexmem_function_slot_clear(struct flexmem_function *function,
				unsigned int slot);
int flexmem_function_quiesce(struct flexmem_function *function);
int flexmem_function_reset(struct flexmem_function *function);
int flexmem_function_scrub(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 offset,
			   u64 size);
int flexmem_function_read(struct flexmem_function *function,
			  const struct flexmem_memory *mem, u64 offset,
			  u64 size, void *to);
int flexmem_function_write(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 offset,
			   u64 size, const void *from);
int flexmem_function_copy(struct flexmem_function *function,
			  const struct flexmem_memory *to, u64 to_offset,
			  const struct flexmem_memory *from, u64 from_offset,
			  u64 size);
int flexmem_function_vm_map(struct flexmem_function *function,
			    const struct flexmem_vm_range *range,
			    const struct flexmem_memory *mem, u64 offset,
			    unsigned int access);
int flexmem_function_vm_unmap(struct flexmem_function *function,
			      const struct flexmem_vm_range *range);
int flexmem_function_page(struct flexmem_function *function,
			  const struct flexmem_memory *mem, u64 offset,
			  unsigned long *pfn);
pgprot_t flexmem_function_protection(const struct flexmem_function *function,
				     pgprot_t protection);

#endif /* _FLEXMEM_FUNCTION_H */
