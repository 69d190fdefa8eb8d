/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function of a device, PF or VF. Only the files function*.c call the
 * driver. They check every answer.
 */
#ifndef _FLEXMEM_FUNCTION_H
#define _FLEXMEM_FUNCTION_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/flexmem.h>
#include <flexmem/device_ops.h>

#define FLEXMEM_MAX_SLOTS 64

/* Memory in each slot, and as much again that the device has not taken back. */
#define FLEXMEM_MAX_PIECES (2 * FLEXMEM_MAX_SLOTS)

/* After this many timeouts in a row a function is unresponsive. */
#define FLEXMEM_TIMEOUTS 2

/* Delay of the worker after a timeout, and how often it can be doubled. */
#define FLEXMEM_WORK_MS 1000
#define FLEXMEM_WORK_DOUBLINGS 6U
/* How often it can be doubled while callers wait for the worker's probe. */
#define FLEXMEM_PROBE_DOUBLINGS 3U

#define FLEXMEM_NO_SLOT (-1)

/* Callers and the worker retry a failed command so often, then only TRIM. */
#define FLEXMEM_RELEASE_TRIES 4

/**
 * enum flexmem_piece_state - what happens next to a piece of memory
 * @FLEXMEM_PIECE_HELD: nothing, because the piece is in use
 * @FLEXMEM_PIECE_ASKED_FOR: release by its id: the acquisition was not answered
 * @FLEXMEM_PIECE_STRANDED: release
 * @FLEXMEM_PIECE_LEAVING: release again: the first one was not answered
 */
enum flexmem_piece_state {
	FLEXMEM_PIECE_HELD,
	FLEXMEM_PIECE_ASKED_FOR,
	FLEXMEM_PIECE_STRANDED,
	FLEXMEM_PIECE_LEAVING,
};

/**
 * struct flexmem_piece - memory that one @acquire granted, and pending commands
 * @mem: the memory; its base is 0 if the acquisition was not answered
 * @state: what happens next to the piece
 * @slot: the slot that may point at the memory; cleared before the release
 * @exclusive: no other function of the device may have the memory. False while
 *	a release or a reset may have been carried out, and if the acquisition
 *	was not answered. Changes under the lock of function_peers.c
 * @tries: failed retries of the pending command
 * @dirty_start: offset of the first byte that must be zeroed before the release
 * @dirty_end: end of these bytes; not above @dirty_start if there are none
 */
struct flexmem_piece {
	struct flexmem_memory mem;
	enum flexmem_piece_state state;
	int slot;
	bool exclusive;
	unsigned int tries;
	u64 dirty_start;
	u64 dirty_end;
};

/**
 * struct flexmem_vm - a device-virtual space, as the device knows it
 * @link: in &flexmem_function.vms; empty if nothing is mapped
 * @space: number of the space; never changes
 * @nr_mapped: number of bindings that may be mapped
 * @closed: the owner of the space does not use it any more
 * @unmapped: the worker runs this when nothing is mapped in a closed space
 *
 * The members change under &flexmem_table.acquire_lock.
 */
struct flexmem_vm {
	struct list_head link;
	u64 space;
	unsigned int nr_mapped;
	bool closed;
	struct work_struct unmapped;
};

/**
 * struct flexmem_function - a PF or VF and its driver's operations
 * @dev: for messages; may be NULL
 * @mode: PF or VF
 * @slots: number of entries in the firmware's table; 0 on a PF
 * @nr_domains: number of @domains, at least 1
 * @domains: descriptions of the domains
 * @vm_page: page size of device-virtual spaces; 0: there are no such spaces
 * @vm_start: first address that can be mapped in device-virtual spaces
 * @vm_end: end of the addresses that can be mapped, exclusive
 * @caching: how CPU mappings of device memory are cached
 * @clears: the device clears memory that flexmem releases
 * @device: identifies the device among functions; NULL: not known
 * @scrubbed: bytes scrubbed so far. Changes without a lock
 * @minor: minor number of the node, for traces; -1: there is no node yet
 * @ops: the device's operations. A copy, because flexmem checks which optional
 *	operations exist even after the device driver's module is gone
 * @capabilities: what the function can do (flexmem_parts_capabilities())
 * @priv: argument of the operations
 * @link: in the list of all functions, under the lock of function_peers.c
 * @nr_pieces: number of @piece in use
 * @piece: all memory that the device granted and may not have taken back yet, in
 *	the order of acquisition. The array changes only in function_peers.c
 * @vms: device-virtual spaces in which something may be mapped
 * @distrusted: an answer was wrong, and the log has a message about it
 * @timeouts: timeouts since the last success or -ENOSPC. Changes without a lock
 * @all_timeouts: timeouts so far. Changes without a lock
 * @worker: runs jobs of callers and @work; NULL before it exists
 * @work: sends a probe, and retries pending commands
 * @work_ms: delay of @work after a timeout; doubles each time
 * @work_tries: runs of @work without success; changed by @work only
 * @data_lock: one scrub or copy at a time. May be held while the firmware
 *	works, so user tasks wait killably for this lock
 * @late_buffer: kernel memory that the device may still use after a failed read
 *	or write. A reset frees it, a removal leaks it. Changes under @data_lock
 * @state_lock: protects changes of the members below; a leaf
 * @state: which commands the function can take; read without a lock
 * @failures: number of failures that the driver has reported; read without a
 *	lock
 * @repaired: @failures that the latest reset has repaired; read without a lock
 * @resumes_as: the next state of a suspended function
 * @probes: number of probes so far
 * @changed: woken up when @state has changed
 *
 * The members up to @priv do not change, except @dev (NULL after the removal),
 * @scrubbed and @minor. The members after @priv change under
 * &flexmem_table.acquire_lock, unless their description says otherwise. That
 * lock lets one operation run at a time.
 */
struct flexmem_function {
	struct device *dev;
	enum flexmem_mode mode;
	unsigned int slots;
	unsigned int nr_domains;
	struct flexmem_domain_desc domains[FLEXMEM_MAX_DOMAINS];
	u64 vm_page;
	u64 vm_start;
	u64 vm_end;
	enum flexmem_caching caching;
	bool clears;
	const void *device;
	atomic64_t scrubbed;
	int minor;
	struct flexmem_device_ops ops;
	u32 capabilities;
	void *priv;
	struct list_head link;
	unsigned int nr_pieces;
	struct flexmem_piece piece[FLEXMEM_MAX_PIECES];
	struct list_head vms;
	atomic_t distrusted;
	atomic_t timeouts;
	atomic64_t all_timeouts;
	struct workqueue_struct *worker;
	struct delayed_work work;
	unsigned int work_ms;
	unsigned int work_tries;
	struct mutex data_lock; /* held by a scrub or copy */
	void *late_buffer;
	spinlock_t state_lock; /* protects the members below */
	enum flexmem_state state;
	unsigned int failures;
	unsigned int repaired;
	enum flexmem_state resumes_as;
	unsigned int probes;
	wait_queue_head_t changed;
};

static inline bool
flexmem_function_is_gone(const struct flexmem_function *function)
{
	return READ_ONCE(function->state) == FLEXMEM_STATE_GONE;
}

/*
 * Whether the PF or VF is suspended. If this returns false, the caller also
 * sees everything that happened before flexmem_function_resume().
 */
static inline bool
flexmem_function_is_suspended(const struct flexmem_function *function)
{
	/* Pairs with set_state(). */
	return smp_load_acquire(&function->state) == FLEXMEM_STATE_SUSPENDED;
}

static inline bool
flexmem_function_is_unresponsive(const struct flexmem_function *function)
{
	return READ_ONCE(function->state) == FLEXMEM_STATE_UNRESPONSIVE;
}

/*
 * Whether the device has failed since the last successful reset, so that bytes
 * may still move in its memory, or it may be lost. The state does not tell: a
 * suspended or removed function does not become FLEXMEM_STATE_WEDGED.
 */
static inline bool
flexmem_function_has_failed(const struct flexmem_function *function)
{
	return READ_ONCE(function->failures) != READ_ONCE(function->repaired);
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
int flexmem_function_wait_awake(struct flexmem_function *function);
int flexmem_function_lock_data(struct flexmem_function *function);
void flexmem_function_work_later(struct flexmem_function *function);

/* From here to flexmem_function_outcome() for function*.c only. */

/* Whether a command that failed may have been carried out. */
static inline bool flexmem_is_unanswered(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR;
}

static inline bool flexmem_overlap(const struct flexmem_memory *a,
				   const struct flexmem_memory *b)
{
	/* The sums cannot overflow: both ranges were checked. */
	return a->base < b->base + b->size && b->base < a->base + a->size;
}

bool flexmem_function_add_piece(struct flexmem_function *function,
				const struct flexmem_piece *piece);
void flexmem_function_forget_piece(struct flexmem_function *function,
				   struct flexmem_piece *piece);
void flexmem_function_forget_pieces(struct flexmem_function *function);
void flexmem_function_set_exclusive(struct flexmem_piece *piece,
				    bool exclusive);
struct flexmem_piece *flexmem_function_piece(struct flexmem_function *function,
					     u64 id);
int flexmem_function_undo(struct flexmem_function *function,
			  struct flexmem_piece *piece);
int flexmem_function_vm_unmap_all(struct flexmem_function *function);
int flexmem_function_note(struct flexmem_function *function, int rc);
int flexmem_function_distrust(struct flexmem_function *function,
			      const char *operation, const char *what,
			      long long value);
int flexmem_function_check(struct flexmem_function *function,
			   const char *operation, int rc, bool may_be_full);
int flexmem_function_outcome(struct flexmem_function *function,
			     const char *operation, int rc, bool may_be_full);

int flexmem_function_init(struct flexmem_function *function,
			  struct device *dev,
			  const struct flexmem_device_desc *desc);
void flexmem_function_join(struct flexmem_function *function);
void flexmem_function_leave(struct flexmem_function *function);
bool flexmem_function_is_settled(const struct flexmem_function *function);
bool flexmem_function_slot_is_known(const struct flexmem_function *function,
				    unsigned int slot);
u64 flexmem_function_held_in(const struct flexmem_function *function,
			     unsigned int domain, bool pending);
u64 flexmem_function_held(const struct flexmem_function *function);
int flexmem_function_retry(struct flexmem_function *function, bool all);
void flexmem_function_release_all(struct flexmem_function *function);
void flexmem_function_probe(struct flexmem_function *function);
int flexmem_function_capacity(struct flexmem_function *function,
			      unsigned int domain, u64 *bytes);
int flexmem_function_acquire(struct flexmem_function *function,
			     unsigned int domain, u64 size,
			     struct flexmem_memory *mem);
void flexmem_function_mark_dirty(struct flexmem_function *function,
				 const struct flexmem_memory *mem, u64 start,
				 u64 end);
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
int flexmem_function_clear(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 *start,
			   u64 end);
int flexmem_function_rw(struct flexmem_function *function,
			const struct flexmem_memory *mem, u64 offset, u64 size,
			void **buffer, bool write);
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
void flexmem_function_vm_begin(struct flexmem_function *function,
			       struct flexmem_vm *vm);
void flexmem_function_vm_end(struct flexmem_vm *vm);
bool flexmem_function_vm_close(struct flexmem_function *function,
			       struct flexmem_vm *vm);
bool flexmem_function_vm_is_pending(const struct flexmem_function *function);
bool flexmem_function_vm_retry(struct flexmem_function *function);
void flexmem_function_vm_forget(struct flexmem_function *function);
int flexmem_function_fault(struct flexmem_function *function,
			   const struct flexmem_memory *mem, u64 offset,
			   struct flexmem_frames *frames);
void flexmem_function_client_gone(struct flexmem_function *function,
				  struct flexmem_client *client);
pgprot_t flexmem_function_protection(const struct flexmem_function *function,
				     pgprot_t protection);

#endif /* _FLEXMEM_FUNCTION_H */
