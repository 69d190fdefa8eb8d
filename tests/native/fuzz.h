/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzer: it turns the bytes of an input into a PF or VF with its settings,
 * and a sequence of commands. A second, naive implementation predicts each
 * answer. The model of tests/kunit predicts addresses. For owners and limits
 * the fuzzer adds up the list of all allocations after each command.
 */
#ifndef _NATIVE_FUZZ_H
#define _NATIVE_FUZZ_H

#include "ioctl.h"
#include "fake_device.h"
#include "model.h"

#define FUZZ_FILES 6
/* Cgroup 0 is the root. Cgroup n is a child of cgroup n - 1. */
#define FUZZ_CGROUPS 3
#define FUZZ_OWNERS (FUZZ_FILES + FUZZ_CGROUPS)
#define FUZZ_ALLOCATIONS 200
/* The most chunks of one ALLOC or ALLOC_BATCH. */
#define FUZZ_ROOM 40
#define FUZZ_COMMANDS 600
#define FUZZ_UID 1000

#define BYTES FLEXMEM_RESOURCE_BYTES
#define SLOTS FLEXMEM_RESOURCE_REGIONS
#define HANDLES FLEXMEM_RESOURCE_HANDLES
#define FILES FLEXMEM_RESOURCE_FILES

/**
 * struct fuzz_allocation - a chunk of an allocation, which may be freed but still
 *	in use
 * @serial: number of the chunk, from 1 on
 * @head: number of the allocation's first chunk
 * @index: number among the allocation's chunks, from 0 on
 * @chunks: first chunk: number of chunks
 * @whole: bytes of the allocation
 * @file: number of its file
 * @handle: its handle; 0: freed, but still in use
 * @flags: flags that it was allocated with
 * @unit: its size is a multiple of this
 * @size: bytes of the chunk
 * @slot: slot of its region
 * @offset: offset in the region
 * @region_id: region_id of its address
 * @domain: domain of its region
 * @lost: its memory was lost in a reset
 * @maps: number of mappings of the chunk
 * @jobs: first chunk: number of programs that use the allocation
 */
struct fuzz_allocation {
	u64 serial;
	u64 head;
	unsigned int index;
	unsigned int chunks;
	u64 whole;
	unsigned int file;
	u32 handle;
	u32 flags;
	u64 unit;
	u64 size;
	unsigned int slot;
	u64 offset;
	u64 region_id;
	u32 domain;
	bool lost;
	unsigned int maps;
	unsigned int jobs;
};

/**
 * struct fuzz_owner - an open file, or a cgroup
 * @there: whether it exists
 * @id: its id in the ABI
 * @limit: limits of its own, by resource
 * @peak: largest number of bytes charged so far
 */
struct fuzz_owner {
	bool there;
	u64 id;
	u64 limit[FLEXMEM_NR_RESOURCES];
	u64 peak;
};

#define FUZZ_VM_START BIT_ULL(32)
#define FUZZ_PAGES 40

/**
 * struct fuzz_binding - pages that are bound, or an unused entry
 * @head: number of the allocation's first chunk
 * @page: first page of the space
 * @pages: number of pages; 0: unused entry
 * @offset: first byte in the allocation
 * @access: of enum flexmem_va_access
 * @known: it is known that all pages are mapped
 */
struct fuzz_binding {
	u64 head;
	unsigned int page;
	unsigned int pages;
	u64 offset;
	u32 access;
	bool known;
};

/**
 * struct fuzz_space - the device-virtual addresses of a file
 * @there: the file has a space
 * @listed: something may be mapped, as far as the driver knows
 * @last_range: number of the newest range
 * @range: for each page the number of its range; 0: free
 * @binding: the bindings
 */
struct fuzz_space {
	bool there;
	bool listed;
	unsigned int last_range;
	unsigned int range[FUZZ_PAGES];
	struct fuzz_binding binding[FUZZ_PAGES];
};

/**
 * struct fuzz_file - an open file
 * @file: the file
 * @next_handle: handle that its next allocation gets
 * @freed: a handle that was freed
 * @space: its device-virtual addresses
 */
struct fuzz_file {
	struct file *file;
	u32 next_handle;
	u32 freed;
	struct fuzz_space space;
};

/**
 * struct fuzz_use - sums of one owner
 * @used: what it uses, by resource
 * @orphaned: bytes that are freed but still in use
 * @program: bytes for programs
 */
struct fuzz_use {
	u64 used[FLEXMEM_NR_RESOURCES];
	u64 orphaned;
	u64 program;
};

/**
 * struct fuzz_count - sums of all owners
 * @of: the sums of each owner
 */
struct fuzz_count {
	struct fuzz_use of[FUZZ_OWNERS];
};

#define FUZZ_MAPS 8

/* The mmap() offset of a slot is its number shifted left by this. */
#define MAP_SHIFT 38

/**
 * struct fuzz_map - a mapping, or an unused entry
 * @vma: the mapping
 * @serial: number of its allocation
 * @offset: offset of its first byte in the region
 */
struct fuzz_map {
	struct vm_area_struct *vma;
	u64 serial;
	u64 offset;
};

#define FUZZ_JOBS 4

/**
 * struct fuzz_job - a program that runs, or an unused entry
 * @fence: signals at the end of the program; NULL: unused
 * @serial: number of the allocation that it uses
 */
struct fuzz_job {
	struct dma_fence *fence;
	u64 serial;
};

#define FUZZ_HOLDS 4

/**
 * struct fuzz_hold - a hold of the driver, or an unused entry
 * @taken: the entry is used
 * @hold: the hold
 * @slots: bit mask of the slots that it keeps; 0 after a reset
 */
struct fuzz_hold {
	bool taken;
	struct flexmem_hold hold;
	u64 slots;
};

/*
 * Mistakes in the struct of a command. A number below SHORT means no mistake.
 */
enum fuzz_spoil {
	SHORT = 24,
	LONG,
	LONG_WITH_MORE,
	HUGE,
	NOWHERE,
	CUT,
	FLAG,
	LATE,
};

/**
 * struct fuzz - an input that is run
 * @at: where the input continues
 * @end: end of the input
 * @command: number of the command
 * @name: name of the command
 * @fake: the fake device
 * @parent: the parent of the node's device
 * @fdev: the registered device
 * @minor: minor number of its node
 * @bare: the device has no optional operations
 * @gone: the device has been removed
 * @ops: its operations
 * @vm_page: page size of its device-virtual spaces
 * @settings: its settings
 * @model: predicts all addresses
 * @files: open files
 * @owner: accounts: files first, then cgroups
 * @last_id: id of the newest owner
 * @nr: number of allocations
 * @allocation: the allocations
 * @last_serial: number of the newest allocation
 * @map: mappings
 * @job: programs
 * @allocs: number of allocations so far
 * @failures: number of allocations that failed with ENOMEM
 * @resets: number of resets
 * @read_error: error of the next read of the device, or 0
 * @write_error: error of the next write to the device, or 0
 * @copy_error: error of the next copy of the device, or 0
 * @map_error: error of the next vm_map of the device, or 0
 * @unmap_error: error of the next vm_unmap of the device, or 0
 * @faulty: a fault was injected for the next command
 * @who: number of the file of the command
 * @spoil: the mistake in the struct of the command
 * @late: the reply of the command cannot be written
 */
struct fuzz {
	const u8 *at;
	const u8 *end;
	unsigned int command;
	const char *name;

	struct fake_device *fake;
	struct device parent;
	struct flexmem_dev *fdev;
	unsigned int minor;
	bool bare;
	bool gone;
	struct flexmem_device_ops ops;
	u64 vm_page;
	struct flexmem_settings settings;

	struct model *model;
	struct fuzz_file files[FUZZ_FILES];
	struct fuzz_owner owner[FUZZ_OWNERS];
	u64 default_limit[FLEXMEM_NR_RESOURCES];
	u64 last_id;
	unsigned int nr;
	struct fuzz_allocation allocation[FUZZ_ALLOCATIONS];
	u64 last_serial;
	struct fuzz_map map[FUZZ_MAPS];
	struct fuzz_job job[FUZZ_JOBS];
	struct fuzz_hold hold[FUZZ_HOLDS];
	u64 allocs;
	u64 failures;
	u64 resets;

	int read_error;
	int write_error;
	int copy_error;
	int map_error;
	int unmap_error;
	bool faulty;

	unsigned int who;
	enum fuzz_spoil spoil;
	bool late;
};

/* fuzz.c */
u8 fuzz_take(struct fuzz *f);
__noreturn void fuzz_wrong(struct fuzz *f, const char *format, ...)
	__printf(2, 3);
void fuzz_run(const u8 *data, size_t size);

/* The driver's value @is must equal the model's value @want. */
#define SAME(f, is, want)						\
do {									\
	u64 __is = (is), __want = (want);				\
									\
	if (__is != __want)						\
		fuzz_wrong(f, "%s is %lld (%#llx), must be %lld (%#llx)", \
			   #is, __is, __is, __want, __want);		\
} while (0)

/* The number of the cgroup that a file was opened in. */
static inline unsigned int fuzz_leaf_of(unsigned int file)
{
	return FUZZ_FILES + file % FUZZ_CGROUPS;
}

/*
 * A loop over all accounts that a file is charged to, from its own account
 * upwards.
 */
/* checkpatch: MACRO_ARG_REUSE - both are names of variables */
#define for_each_account(owner, file)					\
	for ((owner) = (file); (owner) < FUZZ_OWNERS;			\
	     (owner) = (owner) == (file) ? fuzz_leaf_of(file) :		\
		       (owner) > FUZZ_FILES ? (owner) - 1 : FUZZ_OWNERS)

/*
 * The user of a file. The last file has a user of its own, in the cgroup of
 * another user's file.
 */
static inline unsigned int fuzz_uid_of(unsigned int file)
{
	return FUZZ_UID + (file == FUZZ_FILES - 1);
}

/* fuzz_account.c */
extern const struct model_rules fuzz_rules;
void fuzz_count(const struct fuzz *f, struct fuzz_count *count);
void fuzz_new_owner(struct fuzz *f, unsigned int owner);
void fuzz_forget_cgroups(struct fuzz *f);
void fuzz_need_cgroup(struct fuzz *f, unsigned int leaf);
void fuzz_note_peak(struct fuzz *f, unsigned int file);
unsigned int fuzz_reservation(const struct fuzz *f, unsigned int owner);
struct fuzz_allocation *fuzz_add(struct fuzz *f,
				 const struct fuzz_allocation *allocation);
void fuzz_drop(struct fuzz *f, struct fuzz_allocation *allocation);
enum flexmem_reason fuzz_charge(struct fuzz *f, unsigned int file,
				unsigned int slot, u64 size);
u64 fuzz_limit(const struct fuzz *f, unsigned int owner, unsigned int r);
u64 fuzz_bytes_limit(const struct fuzz *f, unsigned int file, u64 *left);
bool fuzz_may_open(const struct fuzz *f, unsigned int file);
enum flexmem_reason fuzz_charge_handle(struct fuzz *f, unsigned int file);
enum flexmem_reason fuzz_charge_bytes(const struct fuzz *f, unsigned int file,
				      u64 size);
u64 fuzz_in_use(const struct fuzz *f);
u64 fuzz_client_used(const struct fuzz *f);
u64 fuzz_memory(const struct fuzz *f);

/* fuzz_calls.c */
extern struct cgroup *fuzz_cgroup[FUZZ_CGROUPS];
void fuzz_command(struct fuzz *f);
void fuzz_check_weights(void);
bool fuzz_call(struct fuzz *f, unsigned int nr, void *arg, size_t size,
	       long *rc);
void fuzz_answer(struct fuzz *f, long rc, int want);
void fuzz_open(struct fuzz *f, unsigned int file);
void fuzz_close(struct fuzz *f, unsigned int file);

/* Whether the administrator has opened a file: files 0 and 4. */
static inline bool fuzz_is_admin(unsigned int file)
{
	return file == 0 || file == 4;
}

/* fuzz_place.c */
struct fuzz_allocation *fuzz_chunk(struct fuzz *f, u64 head,
				   unsigned int index);
void fuzz_give_chunks(struct fuzz *f, u64 head, int kept);
int fuzz_clean(struct fuzz *f, unsigned int slot, u64 offset, bool zeroed);
int fuzz_place(struct fuzz *f, const struct model_request *request,
	       struct fuzz_allocation *new, struct model_answer *answer);
int fuzz_spread(struct fuzz *f, const struct model_request *request,
		struct fuzz_allocation *new, struct model_answer *answer);

/* fuzz_alloc.c */
u32 fuzz_draw_handle(struct fuzz *f);
struct fuzz_allocation *fuzz_find(struct fuzz *f, u32 handle);
struct fuzz_allocation *fuzz_of_serial(struct fuzz *f, u64 serial);
u8 fuzz_tag(const struct fuzz *f);
void fuzz_draw_alloc(struct fuzz *f, struct flexmem_alloc *cmd);
int fuzz_predict_alloc(struct fuzz *f, const struct flexmem_alloc *cmd,
		       struct flexmem_alloc *want);
void fuzz_compare_alloc(struct fuzz *f, const struct flexmem_alloc *is,
			const struct flexmem_alloc *want);
void fuzz_publish(struct fuzz *f, u64 serial);
void fuzz_undo_alloc(struct fuzz *f, u64 serial);
void fuzz_draw_free(struct fuzz *f, struct flexmem_free *cmd);
struct fuzz_allocation *fuzz_predict_free(struct fuzz *f,
					  const struct flexmem_free *cmd);
void fuzz_free(struct fuzz *f, struct fuzz_allocation *allocation);
void fuzz_end_unused(struct fuzz *f, struct fuzz_allocation *allocation);
void fuzz_do_alloc(struct fuzz *f, struct flexmem_alloc *cmd);
void fuzz_alloc(struct fuzz *f);
void fuzz_do_free(struct fuzz *f);
void fuzz_lookup(struct fuzz *f);
void fuzz_resize(struct fuzz *f);

/* fuzz_batch.c */
void fuzz_alloc_batch(struct fuzz *f);
void fuzz_free_batch(struct fuzz *f);

/* fuzz_bytes.c */
void fuzz_mmap(struct fuzz *f);
void fuzz_use_map(struct fuzz *f);
void fuzz_unmap_all(struct fuzz *f, unsigned int file);
void fuzz_read(struct fuzz *f);
void fuzz_write(struct fuzz *f);
void fuzz_copy_range(struct fuzz *f);
void fuzz_event(struct fuzz *f);

/* fuzz_report.c */
void fuzz_info(struct fuzz *f);
void fuzz_domain(struct fuzz *f);
void fuzz_fdinfo(struct fuzz *f);
void fuzz_segments(struct fuzz *f);
void fuzz_snapshot(struct fuzz *f);
void fuzz_set_limit(struct fuzz *f);
void fuzz_reserve(struct fuzz *f);

/* fuzz_device.c */
void fuzz_fault(struct fuzz *f);
void fuzz_heal(struct fuzz *f);
void fuzz_time(struct fuzz *f);
void fuzz_follow_scrubs(struct fuzz *f);
void fuzz_hold(struct fuzz *f);
u64 fuzz_held(const struct fuzz *f);
void fuzz_lose_holds(struct fuzz *f);
void fuzz_trim(struct fuzz *f);
void fuzz_reset(struct fuzz *f);
void fuzz_capacity(struct fuzz *f);
u64 fuzz_capacity_of_all(const struct fuzz *f);
void fuzz_recover(struct fuzz *f);
void fuzz_unregister(struct fuzz *f);
void fuzz_no_command(struct fuzz *f);

/* fuzz_space.c */
void fuzz_space(struct fuzz *f);
unsigned int fuzz_binds(const struct fuzz *f,
			const struct fuzz_allocation *head);
bool fuzz_can_close_space(struct fuzz *f, unsigned int file);
void fuzz_close_space(struct fuzz *f, unsigned int file);
void fuzz_check_spaces(struct fuzz *f);

/* fuzz_job.c */
void fuzz_job(struct fuzz *f);
void fuzz_end_jobs(struct fuzz *f);
void fuzz_failed(struct fuzz *f);
void fuzz_sleep(struct fuzz *f);

/* fuzz_check.c */
void fuzz_check(struct fuzz *f);
void fuzz_check_region(struct fuzz *f, unsigned int slot, bool hidden,
		       const struct flexmem_region_entry *is);
u64 fuzz_held_back(const struct fuzz *f, bool from_all);
void fuzz_check_owner(struct fuzz *f, const struct fuzz_count *count,
		      unsigned int owner,
		      const struct flexmem_owner_entry *is);
u64 fuzz_region_id(const struct fuzz *f, unsigned int slot);

#endif /* _NATIVE_FUZZ_H */
