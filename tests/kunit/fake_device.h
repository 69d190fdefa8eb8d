/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device in memory, for tests. It carries out operations, logs them, and
 * notices if the caller breaks the device contract.
 */
#ifndef _FLEXMEM_FAKE_DEVICE_H
#define _FLEXMEM_FAKE_DEVICE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <flexmem/device_ops.h>

#include "alloc/placement.h"
#include "alloc/request.h"
#include "region/slot.h"
#include "region/table.h"
#include "settings.h"
#include "tenant/account.h"

struct kunit;

#define GIB ((u64)SZ_1G)

#define FAKE_LOG_SIZE 1024
#define FAKE_MAX_PIECES FLEXMEM_MAX_SLOTS

enum fake_op {
	FAKE_ACQUIRE,
	FAKE_RELEASE,
	FAKE_SLOT_SET,
	FAKE_SLOT_CLEAR,
	FAKE_QUIESCE,
	FAKE_CAPACITY,
	FAKE_RESET,
	/*
	 * These operations move data. One of them may run at the same time as
	 * one of the operations above.
	 */
	FAKE_SCRUB,
	FAKE_READ,
	FAKE_WRITE,
	FAKE_COPY,
	/*
	 * Only a PF has this operation. It stands behind FAKE_COPY because the
	 * fuzzer counts up to FAKE_COPY.
	 */
	FAKE_DRAIN,
	FAKE_VM_MAP,
	FAKE_VM_UNMAP,
	FAKE_NR_OPS,
};

#define FAKE_MAX_PAGES 32

/**
 * struct fake_page - an entry of the page table
 * @range: addresses; size 0: unused entry
 * @id: id of the memory
 * @offset: first byte in the memory
 * @access: of enum flexmem_vm_access
 */
struct fake_page {
	struct flexmem_vm_range range;
	u64 id;
	u64 offset;
	unsigned int access;
};

/*
 * The value of all bytes of newly acquired memory: the bytes of another tenant.
 */
#define FAKE_FOREIGN 0xff

/**
 * struct fake_failure - planned failures of an operation
 * @after: number of calls that succeed first
 * @times: number of calls that fail after these
 * @rc: the error that they return
 */
struct fake_failure {
	unsigned int after;
	unsigned int times;
	int rc;
};

/**
 * struct fake_device - a device in memory
 * @mode: PF or VF
 * @slots: number of slots
 * @granule: sizes must be multiples of it
 * @capacity: most bytes that it grants; with several domains: of domain 0
 * @nr_domains: number of domains; 0: one, without a description
 * @domains: descriptions of the domains
 * @capacity_of: most bytes that it grants of each domain from domain 1 on
 * @refused_size: sizes that it refuses
 * @refuses_from: it refuses sizes of at least so many bytes; 0: none
 * @refused_slots: bit mask of slots that it refuses
 * @wrong_domain: it gives memory of domain 0, whatever domain the request names
 * @sets_and_fails: error that it returns after it has filled a slot, or 0
 * @bare: it can neither copy data nor be reset
 * @clears: it clears released memory
 * @gone: the driver was removed, so that any call breaks the contract
 * @asleep: the device is suspended, so that any call breaks the contract
 * @leaving: it is being removed: the driver must quiesce it before it releases
 *	memory
 * @quiet: its programs were stopped: the driver may only release memory and
 *	slots
 * @during_scrub: called in the middle of each scrub, if it is not NULL
 * @during_scrub_arg: argument of @during_scrub
 * @after_capacity: called when the answer to each capacity is known, if not NULL
 * @after_capacity_arg: argument of @after_capacity
 * @during_acquire: called in the middle of each acquisition, if not NULL
 * @during_acquire_arg: argument of @during_acquire
 * @during_set: called in the middle of each slot_set, if not NULL
 * @during_set_arg: argument of @during_set
 * @during_clear: called in the middle of each slot_clear, if not NULL
 * @during_clear_arg: argument of @during_clear
 * @during_copy: called in the middle of each copy within the device, if not
 *	NULL
 * @during_copy_arg: argument of @during_copy
 * @during_reset: called at the end of each reset that succeeds
 * @during_reset_arg: argument of @during_reset
 * @taken: bytes that are acquired
 * @calls: number of calls of each operation
 * @lost_id: ids of memory whose acquisition or release has an unknown outcome;
 *	0: unused entry
 * @unheard: acquired bytes of which the driver does not know
 * @lost_slots: bit mask of slots with an unknown state
 * @replies_are_lost: a command that fails with -ETIMEDOUT or -EINTR is carried
 *	out all the same
 * @breach: first breach of the contract, or NULL
 * @failure: planned failures of each operation
 * @piece_lock: protects @piece, because a scrub may run beside a release
 * @piece: acquired memory; size 0: unused entry
 * @max_pages: number of entries that @page may have
 * @page: the page table, of a device that a test has given vm_map and vm_unmap
 * @slot_base: base of the memory in a slot, 0 if it is empty
 * @busy: number of operations under way
 * @data_busy: number of operations under way that move data
 * @scrubbed: bytes that were scrubbed
 * @data_lock: protects @bytes
 * @bytes: contents of each piece of memory, see fake_data.c
 * @log_length: length of @log
 * @log: calls, as fake_device_log() shows them
 */
struct fake_device {
	enum flexmem_mode mode;
	unsigned int slots;
	u64 granule;
	u64 capacity;
	unsigned int nr_domains;
	struct flexmem_domain_desc domains[FLEXMEM_MAX_DOMAINS];
	u64 capacity_of[FLEXMEM_MAX_DOMAINS];
	u64 refused_size[FLEXMEM_MAX_FALLBACK_SIZES];
	u64 refuses_from;
	u64 refused_slots;
	bool wrong_domain;
	int sets_and_fails;
	bool bare;
	bool clears;
	bool gone;
	bool asleep;
	bool leaving;
	bool quiet;
	void (*during_scrub)(void *arg);
	void *during_scrub_arg;
	void (*after_capacity)(void *arg);
	void *after_capacity_arg;
	void (*during_acquire)(void *arg);
	void *during_acquire_arg;
	void (*during_set)(void *arg);
	void *during_set_arg;
	void (*during_clear)(void *arg);
	void *during_clear_arg;
	void (*during_copy)(void *arg);
	void *during_copy_arg;
	void (*during_reset)(void *arg);
	void *during_reset_arg;

	u64 taken;
	unsigned int calls[FAKE_NR_OPS];
	u64 lost_id[2 * FAKE_MAX_PIECES];
	u64 unheard;
	u64 lost_slots;
	bool replies_are_lost;
	const char *breach;

	struct fake_failure failure[FAKE_NR_OPS];
	spinlock_t piece_lock; /* protects piece */
	struct flexmem_memory piece[FAKE_MAX_PIECES];
	unsigned int max_pages;
	struct fake_page page[FAKE_MAX_PAGES];
	u64 slot_base[FLEXMEM_MAX_SLOTS];
	atomic_t busy;
	atomic_t data_busy;
	u64 scrubbed;
	struct mutex data_lock; /* protects bytes */
	struct list_head bytes[FAKE_MAX_PIECES];
	size_t log_length;
	char log[FAKE_LOG_SIZE];
};

/**
 * struct fake_block - a block that a test has allocated
 * @link: in a list of the table, through which the teardown finds it
 * @region: region of the block
 * @block: the block
 * @account: account that is charged
 */
struct fake_block {
	struct list_head link;
	struct flexmem_region *region;
	struct flexmem_block *block;
	struct flexmem_account *account;
};

/* The kind of slot: for programs or for tensors. */
static inline enum flexmem_kind fake_kind(bool program)
{
	return program ? FLEXMEM_KIND_PROGRAM : FLEXMEM_KIND_TENSOR;
}

struct fake_device *fake_device_create(struct kunit *test,
				       enum flexmem_mode mode,
				       unsigned int slots, u64 capacity);
void fake_device_add_domain(struct fake_device *fake,
			    enum flexmem_domain_type type, u64 capacity);
const struct flexmem_device_ops *fake_device_ops(struct fake_device *fake);
struct flexmem_device_desc fake_device_desc(struct fake_device *fake);
void fake_device_fail(struct fake_device *fake, enum fake_op op,
		      unsigned int nth, unsigned int times, int rc);
const char *fake_device_log(struct fake_device *fake);
void fake_device_forget(struct fake_device *fake);
bool fake_device_is_untouched(struct fake_device *fake);
u64 fake_device_lost(struct fake_device *fake);
void fake_device_reset(struct fake_device *fake);

/* fake_data.c: the contents of the device's memory. */
void fake_data_init(struct fake_device *fake);
bool fake_data_is_dirty(struct fake_device *fake, unsigned int piece);
void fake_data_give(struct fake_device *fake, unsigned int piece);
void fake_data_drop(struct fake_device *fake, unsigned int piece);
void fake_data_drop_all(struct fake_device *fake);
void fake_data_fill(struct fake_device *fake, const struct flexmem_memory *mem,
		    u64 start, u64 size, u8 value);
bool fake_data_is(struct fake_device *fake, const struct flexmem_memory *mem,
		  u64 start, u64 size, u8 value);
bool fake_data_is_own(struct fake_device *fake,
		      const struct flexmem_memory *mem, u64 start, u64 size,
		      u8 value);
int fake_scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
	       u64 size);
int fake_read(void *priv, const struct flexmem_memory *mem, u64 offset,
	      u64 size, void *to);
int fake_write(void *priv, const struct flexmem_memory *mem, u64 offset,
	       u64 size, const void *from);
int fake_copy(void *priv, const struct flexmem_memory *to, u64 to_offset,
	      const struct flexmem_memory *from, u64 from_offset, u64 size);
int fake_fault(void *priv, const struct flexmem_memory *mem, u64 offset,
	       struct flexmem_frames *frames);

/* fake_pages.c: the page table. */
int fake_pages_map(struct fake_device *fake,
		   const struct flexmem_vm_range *range,
		   const struct flexmem_memory *mem, u64 offset,
		   unsigned int access);
void fake_pages_unmap(struct fake_device *fake,
		      const struct flexmem_vm_range *range);
unsigned int fake_pages_nr(const struct fake_device *fake);
bool fake_pages_has(const struct fake_device *fake, u64 id);
int fake_vm_map(void *priv, const struct flexmem_vm_range *range,
		const struct flexmem_memory *mem, u64 offset,
		unsigned int access);
int fake_vm_unmap(void *priv, const struct flexmem_vm_range *range);

/* Shared by the source files of the fake device. */
bool fake_takes_effect(const struct fake_device *fake, int rc);
void fake_breach_if(struct fake_device *fake, bool broken, const char *what);
int fake_device_begin(struct fake_device *fake, enum fake_op op);
int fake_device_end(struct fake_device *fake, enum fake_op op, u64 arg, int rc);
struct flexmem_memory *fake_device_piece(struct fake_device *fake,
					 const struct flexmem_memory *mem);

u32 fake_seed(void);
kuid_t fake_uid(unsigned int n);
#define FAKE_CGROUPS 16
struct cgroup *fake_cgroup(unsigned int n);
struct flexmem_settings fake_settings(void);
struct flexmem_table *fake_table_create(struct kunit *test,
					struct fake_device *fake,
					const struct flexmem_settings *settings);
void fake_table_remove(struct flexmem_table *table);
enum flexmem_reason fake_exhausted(const struct flexmem_table *table,
				   enum flexmem_kind kind);
const char *fake_table_check(struct flexmem_table *table);
struct flexmem_account *fake_table_account(struct flexmem_table *table);
struct flexmem_account *fake_account_open(struct kunit *test,
					  struct flexmem_table *table,
					  unsigned int uid);
void fake_events_deliver(struct flexmem_accounts *accounts);
void fake_events_hold(struct flexmem_accounts *accounts);

/**
 * struct fake_reader - stands for a task that waits for events of a file
 * @entry: in the queue of the file
 * @wakeups: how often it was woken up
 */
struct fake_reader {
	struct wait_queue_entry entry;
	atomic_t wakeups;
};

void fake_reader_add(struct fake_reader *reader,
		     struct flexmem_listener *listener);
int fake_reader_remove(struct fake_reader *reader,
		       struct flexmem_listener *listener);
void fake_client_limit(struct flexmem_client *client,
		       enum flexmem_resource resource, u64 limit);
struct flexmem_client *fake_client_open(struct kunit *test,
					struct flexmem_table *table,
					unsigned int uid);
struct flexmem_allocation *fake_client_prepare(struct flexmem_client *client,
					       u64 size, u64 alignment,
					       u32 flags,
					       struct flexmem_request *request);
int fake_client_free(struct flexmem_client *client, u32 handle);
int fake_table_prealloc(struct flexmem_table *table);
struct flexmem_region *fake_table_region(struct flexmem_table *table,
					 unsigned int slot);
struct flexmem_region *fake_table_acquire(struct flexmem_table *table,
					  bool program, u64 min_size);

int fake_place(struct flexmem_request *request, struct flexmem_region *region);
struct fake_block *fake_alloc(struct flexmem_table *table, u64 size,
			      u64 alignment, bool program,
			      struct flexmem_request *request);
struct fake_block *fake_alloc_from(struct flexmem_table *table, u64 domains,
				   u64 first, u64 size,
				   struct flexmem_request *request);
struct fake_block *fake_alloc_in(struct flexmem_table *table,
				 struct flexmem_region *region, u64 size,
				 bool program);
struct fake_block *fake_alloc_for(struct flexmem_table *table,
				  struct flexmem_account *account, u64 size,
				  struct flexmem_request *request);
struct fake_block *fake_alloc_in_for(struct flexmem_table *table,
				     struct flexmem_region *region,
				     struct flexmem_account *account, u64 size,
				     enum flexmem_reason *refusal);
void fake_free(struct fake_block *block);
void fake_orphan(struct fake_block *block);
void fake_quarantine(struct fake_block *block);

/* Holds the filled ones of these slots (a bit mask). */
static inline struct flexmem_hold fake_hold(struct flexmem_slots *slots,
					    u64 mask)
{
	struct flexmem_hold hold;

	flexmem_slots_hold(slots, flexmem_slots_generation(slots), mask, &hold);
	return hold;
}

const char *fake_fit_name(enum flexmem_fit fit);
const char *fake_order_name(enum flexmem_order order);
const char *fake_mode_name(enum flexmem_mode mode);

#endif /* _FLEXMEM_FAKE_DEVICE_H */
