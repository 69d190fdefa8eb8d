/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function of a device, PF or VF, as its driver describes it: the only
 * place that calls the driver. No answer is trusted unchecked.
 */
#ifndef _FLEXMEM_FUNCTION_H
#define _FLEXMEM_FUNCTION_H

#include <linux/atomic.h>
#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/wait.h>
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

/**
 * struct flexmem_lost - a command whose outcome is unknown
 * @undo: what makes it as if it had never been sent; FLEXMEM_UNDO_NOTHING: there
 *	is none
 * @slot: the slot it was about
 * @mem: the memory it was about
 * @range: the device-virtual addresses it was about
 */
struct flexmem_lost {
	enum {
		FLEXMEM_UNDO_NOTHING,
		FLEXMEM_UNDO_ACQUIRE,
		FLEXMEM_UNDO_SET,
		FLEXMEM_UNDO_CLEAR,
		FLEXMEM_UNDO_MAP,
	} undo;
	unsigned int slot;
	struct flexmem_memory mem;
	struct flexmem_vm_range range;
};

/**
 * struct flexmem_piece - memory that the device gave
 * @mem: what it gave
 * @leaving: it was asked to take it back, and has not answered
 */
struct flexmem_piece {
	struct flexmem_memory mem;
	bool leaving;
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
 * @ops: the device's operations: which of them there are is asked at any time,
 *	also when the driver's module is gone, so they are a copy
 * @priv: their argument
 * @nr_pieces: how many of @piece there are
 * @piece: memory that the device gave and has not taken back, for all we know
 * @in_slot: memory that a slot points at, or did last
 * @lost: to be undone before anything else is asked
 * @quiet: its programs were stopped, for its memory goes back
 * @distrusted: an answer was wrong, and that has been reported
 * @doubt: a command timed out and none has succeeded since, nor been refused for
 *	want of room: the firmware may be dead. Changes without a lock
 * @probe_at: while in @doubt: when somebody who could do without it asks the
 *	firmware again, in jiffies. Changes without a lock
 * @timeouts: commands that timed out
 * @sent: commands about memory and slots that were sent
 * @closing: the device goes: its operations are not called any more. Set before
 *	the locks are taken for the last time, so that nobody who waits for one
 *	makes removal wait for the firmware
 * @needs_reset: a reset has failed: the device gives nothing until one succeeds
 * @resetting: who is about to reset it: what takes many commands ends early
 * @suspended: the device sleeps: its operations are not called
 * @resumed: where one waits for it to wake up
 *
 * What follows @priv changes under the lock that lets one operation run at a
 * time, unless it says otherwise; what is above never changes, but for @dev,
 * which goes when the driver does. What begins with @closing changes without it.
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
	struct flexmem_device_ops ops;
	void *priv;
	unsigned int nr_pieces;
	struct flexmem_piece piece[FLEXMEM_MAX_PIECES];
	struct flexmem_memory in_slot[FLEXMEM_MAX_SLOTS];
	struct flexmem_lost lost;
	bool quiet;
	atomic_t distrusted;
	bool doubt;
	unsigned long probe_at;
	atomic_t timeouts;
	unsigned long sent;
	bool closing;
	bool needs_reset;
	atomic_t resetting;
	bool suspended;
	wait_queue_head_t resumed;
};

/* Whether the outcome of every command is known. One operation at a time. */
static inline bool
flexmem_function_is_settled(const struct flexmem_function *function)
{
	return function->lost.undo == FLEXMEM_UNDO_NOTHING;
}

/* 0, or why what takes many commands is to end after the one under way. */
static inline int
flexmem_function_cut_in(const struct flexmem_function *function)
{
	if (READ_ONCE(function->closing))
		return -ENODEV;
	return atomic_read(&function->resetting) ? -EIO : 0;
}

/* Likewise; -EAGAIN: the device is about to sleep, the rest is for later. */
static inline int
flexmem_function_put_off(const struct flexmem_function *function)
{
	return flexmem_function_cut_in(function) ?:
	       READ_ONCE(function->suspended) ? -EAGAIN : 0;
}

/* Whether a command timed out since there were so many, and none succeeded. */
static inline bool
flexmem_function_heard_timeout(const struct flexmem_function *function,
			       int timeouts)
{
	return READ_ONCE(function->doubt) &&
	       atomic_read(&function->timeouts) != timeouts;
}

int flexmem_function_error(const struct flexmem_function *function);
int flexmem_function_wait_awake(struct flexmem_function *function);
int flexmem_function_lock(struct flexmem_function *function, struct mutex *lock);
int flexmem_function_lock_to_move(struct flexmem_function *function,
				  struct mutex *lock, unsigned long *claim);

/* For the files that call the driver. */
int flexmem_function_outcome(struct flexmem_function *function,
			     const char *operation, int rc, bool may_be_full);

int flexmem_function_init(struct flexmem_function *function,
			  struct device *dev,
			  const struct flexmem_device_desc *desc);
bool flexmem_function_may_probe(struct flexmem_function *function);
bool flexmem_function_claim_probe(struct flexmem_function *function,
				  unsigned long *claim);
void flexmem_function_leave_probe(struct flexmem_function *function,
				  unsigned long claim);
int flexmem_function_settle(struct flexmem_function *function);
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
