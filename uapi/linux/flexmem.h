/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * flexmem - device memory of AI accelerators.
 *
 * The only header that the driver and its users share.
 */
#ifndef _UAPI_LINUX_FLEXMEM_H
#define _UAPI_LINUX_FLEXMEM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every function of a device (the physical one, PF, and each virtual one, VF)
 * is a character device /dev/flexmemN. Every command takes one struct whose
 * first member, @size, is the size the caller compiled with. Members named
 * ``out_`` are written by the kernel, all others by the caller. Every struct
 * can grow at its end: a kernel that is older than its caller accepts a longer
 * struct as long as the bytes it does not know are zero; a kernel that is newer
 * takes the bytes that an older caller did not send as zero, and writes back no
 * more than @size bytes.
 *
 * What is returned (as -1 and errno), for all commands alike:
 *
 *  - ENOTTY: no such command.
 *  - EFAULT: a pointer could not be read or written; nothing has changed.
 *  - EINVAL: @size is shorter than the first version of the struct, or a
 *    value is out of its documented range.
 *  - E2BIG: there are non-zero bytes beyond what this kernel knows, or the
 *    struct is longer than 4096 bytes.
 *  - EOPNOTSUPP: an unknown flag is set, or a reserved member is not zero.
 *  - ENOENT: no such handle or address, or it is of another open file.
 *  - ENOMEM: no device memory, with the reason in the reply (enum
 *    flexmem_reason); FLEXMEM_REASON_NONE there means that the kernel itself
 *    had no memory.
 *  - EMSGSIZE: the array is too small; ``out_count`` says what is needed.
 *  - EBUSY: a lease forbids the change.
 *  - EPERM: the command is the administrator's (CAP_SYS_ADMIN in the initial
 *    user namespace).
 *  - ENODEV: the device is gone; the file can only be closed.
 *  - ETIMEDOUT: the firmware did not answer in time; the call can be repeated.
 *  - EIO: the firmware failed the request or could not be reached.
 *  - EINTR: the caller was killed while it waited.
 *
 * A failed command leaves every allocation as it was. (A region that was
 * acquired for it stays, and counters of changes may have moved.) Replies are
 * written on failure too where a struct says so. An allocation belongs to the open file that made
 * it and goes back when the last descriptor of that file is closed.
 */

#define FLEXMEM_TYPE 0xE7

/**
 * enum flexmem_cmd - numbers of the commands
 * @FLEXMEM_CMD_INFO: &struct flexmem_info
 * @FLEXMEM_CMD_ALLOC: &struct flexmem_alloc
 * @FLEXMEM_CMD_FREE: &struct flexmem_free
 * @FLEXMEM_CMD_ALLOC_BATCH: &struct flexmem_batch of &struct flexmem_alloc
 * @FLEXMEM_CMD_FREE_BATCH: &struct flexmem_batch of &struct flexmem_free
 * @FLEXMEM_CMD_LOOKUP: &struct flexmem_lookup
 * @FLEXMEM_CMD_REGIONS: &struct flexmem_regions
 * @FLEXMEM_CMD_SEGMENTS: &struct flexmem_segments
 * @FLEXMEM_CMD_LEASE: &struct flexmem_lease
 * @FLEXMEM_CMD_STATS: &struct flexmem_stats
 * @FLEXMEM_CMD_TRIM: &struct flexmem_trim
 */
enum flexmem_cmd {
	FLEXMEM_CMD_INFO = 0x00,
	FLEXMEM_CMD_ALLOC = 0x01,
	FLEXMEM_CMD_FREE = 0x02,
	FLEXMEM_CMD_ALLOC_BATCH = 0x03,
	FLEXMEM_CMD_FREE_BATCH = 0x04,
	FLEXMEM_CMD_LOOKUP = 0x05,
	FLEXMEM_CMD_REGIONS = 0x06,
	FLEXMEM_CMD_SEGMENTS = 0x07,
	FLEXMEM_CMD_LEASE = 0x08,
	FLEXMEM_CMD_STATS = 0x09,
	FLEXMEM_CMD_TRIM = 0x0a,
};

/**
 * struct flexmem_address - VirtualAddress, the name of a place
 * @region_id: VF: index in the firmware's table. PF: physical address of the
 *             region's first byte.
 * @offset: bytes from the start of the region, a multiple of 128.
 *
 * Means the same to everything above the driver on a PF and on a VF. It names
 * a place only; how long the allocation is, is kept beside it.
 */
struct flexmem_address {
	__aligned_u64 region_id;
	__aligned_u64 offset;
};

/**
 * enum flexmem_mode - kind of function behind a node
 * @FLEXMEM_MODE_PF: the physical function: memory is named by address
 * @FLEXMEM_MODE_VF: a virtual function: memory is named by table index
 */
enum flexmem_mode {
	FLEXMEM_MODE_PF = 0,
	FLEXMEM_MODE_VF = 1,
};

/**
 * enum flexmem_fit - which free block of a region an allocation takes
 * @FLEXMEM_FIT_FIRST: the one with the lowest offset that fits
 * @FLEXMEM_FIT_BEST: the smallest that fits; of equal ones, the lowest
 */
enum flexmem_fit {
	FLEXMEM_FIT_FIRST = 0,
	FLEXMEM_FIT_BEST = 1,
};

/**
 * enum flexmem_order - in which order regions are tried
 * @FLEXMEM_ORDER_LOAD_BALANCE: most free bytes first; with @FLEXMEM_ACQUIRE_LAZY
 *	a new region is acquired first, as long as there can be one
 * @FLEXMEM_ORDER_FILL_FIRST: fewest free bytes first; a region is acquired only
 *	when nothing fits
 *
 * Regions with equally many free bytes are tried in the order of their slots.
 */
enum flexmem_order {
	FLEXMEM_ORDER_LOAD_BALANCE = 0,
	FLEXMEM_ORDER_FILL_FIRST = 1,
};

/**
 * enum flexmem_acquire - when regions are taken from the device
 * @FLEXMEM_ACQUIRE_LAZY: on demand
 * @FLEXMEM_ACQUIRE_PREALLOC: all of them when the device is registered
 */
enum flexmem_acquire {
	FLEXMEM_ACQUIRE_LAZY = 0,
	FLEXMEM_ACQUIRE_PREALLOC = 1,
};

#define FLEXMEM_MAX_FALLBACK_SIZES 8

/**
 * struct flexmem_info - ioctl(FLEXMEM_IOCTL_INFO)
 * @size: sizeof(struct flexmem_info)
 * @flags: must be 0
 * @out_mode: enum flexmem_mode
 * @out_slots: entries of the segment table: a VF's firmware table, a PF's
 *             @out_max_regions
 * @out_max_regions: at most this many regions are acquired; never more than
 *                   @out_slots
 * @out_program_slots: of these, how many only FLEXMEM_ALLOC_PROGRAM may use;
 *                     0: all are shared
 * @out_acquire: enum flexmem_acquire
 * @out_order: enum flexmem_order
 * @out_fit: enum flexmem_fit
 * @out_max_handles: live allocations one open file may have
 * @out_max_batch: entries one batch may have, at least 1
 * @out_lease_ms: how long a lease lasts, in milliseconds
 * @out_alignment: every offset and size is a multiple of this, in bytes (128)
 * @out_nr_fallback_sizes: how many of @out_fallback_sizes are used
 * @out_max_alignment: largest alignment ALLOC takes, in bytes
 * @out_granule: region sizes are multiples of this, in bytes
 * @out_capacity: bytes this function may acquire from the device
 * @out_max_region: bytes of the largest region there could be: no allocation
 *                  can be larger
 * @out_capabilities: 0; later versions set a bit for each capability added
 * @out_fallback_sizes: region sizes in the order they are tried, in bytes
 * @out_name: name of the device behind this function, NUL-terminated
 *
 * What the function is and how it was set up. Only @out_capacity and
 * @out_max_region can change while the file is open.
 */
struct flexmem_info {
	__u32 size;
	__u32 flags;
	__u32 out_mode;
	__u32 out_slots;
	__u32 out_max_regions;
	__u32 out_program_slots;
	__u32 out_acquire;
	__u32 out_order;
	__u32 out_fit;
	__u32 out_max_handles;
	__u32 out_max_batch;
	__u32 out_lease_ms;
	__u32 out_alignment;
	__u32 out_nr_fallback_sizes;
	__aligned_u64 out_max_alignment;
	__aligned_u64 out_granule;
	__aligned_u64 out_capacity;
	__aligned_u64 out_max_region;
	__aligned_u64 out_capabilities;
	__aligned_u64 out_fallback_sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	char out_name[32];
};

#define FLEXMEM_IOCTL_INFO _IO(FLEXMEM_TYPE, FLEXMEM_CMD_INFO)

/**
 * enum flexmem_reason - which limit stopped an allocation
 * @FLEXMEM_REASON_NONE: none (success, or the error is not about device memory)
 * @FLEXMEM_REASON_CAPACITY: the device has no memory left for a further region
 * @FLEXMEM_REASON_SLOTS: the firmware's table has no entry left
 * @FLEXMEM_REASON_MAX_REGIONS: the driver's own limit ``max_regions`` is reached
 * @FLEXMEM_REASON_FRAGMENTATION: there are enough free bytes, but not in one piece
 * @FLEXMEM_REASON_REGION_SIZE: no region could ever be as large as the request
 * @FLEXMEM_REASON_HANDLES: this open file has as many live allocations as it may
 */
enum flexmem_reason {
	FLEXMEM_REASON_NONE = 0,
	FLEXMEM_REASON_CAPACITY = 1,
	FLEXMEM_REASON_SLOTS = 2,
	FLEXMEM_REASON_MAX_REGIONS = 3,
	FLEXMEM_REASON_FRAGMENTATION = 4,
	FLEXMEM_REASON_REGION_SIZE = 5,
	FLEXMEM_REASON_HANDLES = 6,
};

/**
 * enum flexmem_alloc_flags - what kind of memory
 * @FLEXMEM_ALLOC_PROGRAM: holds a device program; comes from the slots set
 *	aside for programs, if there are any
 */
enum flexmem_alloc_flags {
	FLEXMEM_ALLOC_PROGRAM = 1 << 0,
};

/**
 * struct flexmem_alloc - ioctl(FLEXMEM_IOCTL_ALLOC), and entry of a batch
 * @size: sizeof(struct flexmem_alloc)
 * @flags: of enum flexmem_alloc_flags
 * @length: bytes wanted, at least 1; rounded up to a multiple of 128
 * @alignment: of the offset, in bytes; a power of two up to 1 GiB; anything
 *             below 128, and 0, means 128
 * @out_handle: names the allocation in this open file; never 0 on success
 * @out_error: 0, or what went wrong as a positive errno
 * @out_address: where it starts
 * @out_size: @length as rounded; the bytes that are this allocation's
 * @out_reason: enum flexmem_reason
 * @__reserved: must be 0
 * @out_total_free: on ENOMEM: free bytes in all regions it could have gone to
 * @out_largest_free: on ENOMEM: largest free block among them, in bytes
 * @out_max_region: on ENOMEM: bytes of the largest region there could be
 *
 * Allocate device memory. The reply is written on failure too: then
 * @out_handle is 0, @out_size tells the rounded request, and the other members
 * which limit stopped it. Never a smaller block than asked for.
 *
 * EINVAL: @length is 0, or @alignment is not a power of two or above 1 GiB.
 */
struct flexmem_alloc {
	__u32 size;
	__u32 flags;
	__aligned_u64 length;
	__aligned_u64 alignment;
	__u32 out_handle;
	__s32 out_error;
	struct flexmem_address out_address;
	__aligned_u64 out_size;
	__u32 out_reason;
	__u32 __reserved;
	__aligned_u64 out_total_free;
	__aligned_u64 out_largest_free;
	__aligned_u64 out_max_region;
};

#define FLEXMEM_IOCTL_ALLOC _IO(FLEXMEM_TYPE, FLEXMEM_CMD_ALLOC)

/**
 * enum flexmem_free_flags - how the allocation is named
 * @FLEXMEM_FREE_BY_ADDRESS: by @address, with @handle 0; otherwise by @handle,
 *	with @address zero
 */
enum flexmem_free_flags {
	FLEXMEM_FREE_BY_ADDRESS = 1 << 0,
};

/**
 * struct flexmem_free - ioctl(FLEXMEM_IOCTL_FREE), and entry of a batch
 * @size: sizeof(struct flexmem_free)
 * @flags: of enum flexmem_free_flags
 * @handle: of the allocation, or 0
 * @out_error: 0, or what went wrong as a positive errno
 * @address: exact start of the allocation, or zero
 *
 * Give an allocation back. It must be a live one of this open file, named
 * exactly: ENOENT otherwise, and nothing changes. EINVAL: the name that @flags
 * does not choose is not zero.
 */
struct flexmem_free {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__s32 out_error;
	struct flexmem_address address;
};

#define FLEXMEM_IOCTL_FREE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_FREE)

/**
 * struct flexmem_batch - ioctl(FLEXMEM_IOCTL_ALLOC_BATCH, _FREE_BATCH)
 * @size: sizeof(struct flexmem_batch)
 * @flags: must be 0
 * @entry_size: bytes from one entry to the next, at most 4096; each entry's
 *              own @size must be the same
 * @count: entries, 1 up to &struct flexmem_info.out_max_batch
 * @entries: pointer to @count &struct flexmem_alloc, or &struct flexmem_free
 * @out_done: entries that were carried out
 * @__reserved: must be 0
 *
 * The entries are carried out in order, each as by its own command, and each
 * has its own result in ``out_error``: the command itself succeeds even if
 * every entry failed. An entry that is malformed fails alone.
 *
 * If entries cannot be read or results cannot be written (EFAULT) the whole
 * batch is undone: nothing has been allocated or freed, and what is in the
 * results and in @out_done means nothing. A fatal signal ends the batch early
 * (EINTR); the first @out_done entries have been carried out, with their
 * results.
 */
struct flexmem_batch {
	__u32 size;
	__u32 flags;
	__u32 entry_size;
	__u32 count;
	__aligned_u64 entries;
	__u32 out_done;
	__u32 __reserved;
};

#define FLEXMEM_IOCTL_ALLOC_BATCH _IO(FLEXMEM_TYPE, FLEXMEM_CMD_ALLOC_BATCH)
#define FLEXMEM_IOCTL_FREE_BATCH _IO(FLEXMEM_TYPE, FLEXMEM_CMD_FREE_BATCH)

/**
 * struct flexmem_lookup - ioctl(FLEXMEM_IOCTL_LOOKUP)
 * @size: sizeof(struct flexmem_lookup)
 * @flags: must be 0
 * @handle: of a live allocation of this open file
 * @out_flags: the flags it was allocated with
 * @out_address: where it starts
 * @out_size: its bytes
 */
struct flexmem_lookup {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 out_flags;
	struct flexmem_address out_address;
	__aligned_u64 out_size;
};

#define FLEXMEM_IOCTL_LOOKUP _IO(FLEXMEM_TYPE, FLEXMEM_CMD_LOOKUP)

/**
 * enum flexmem_region_flags - kind of a region
 * @FLEXMEM_REGION_PROGRAM: in a slot set aside for programs
 */
enum flexmem_region_flags {
	FLEXMEM_REGION_PROGRAM = 1 << 0,
};

/**
 * struct flexmem_region_entry - one region
 * @region_id: as in &struct flexmem_address
 * @slot: its index in the segment table
 * @flags: of enum flexmem_region_flags
 * @total: its bytes
 * @free: bytes in free blocks
 * @largest_free: bytes of the largest free block
 * @nr_allocated: blocks in use
 * @nr_free: free blocks
 * @sequence: number of changes (allocations and frees) so far
 */
struct flexmem_region_entry {
	__aligned_u64 region_id;
	__u32 slot;
	__u32 flags;
	__aligned_u64 total;
	__aligned_u64 free;
	__aligned_u64 largest_free;
	__aligned_u64 nr_allocated;
	__aligned_u64 nr_free;
	__aligned_u64 sequence;
};

/**
 * struct flexmem_regions - ioctl(FLEXMEM_IOCTL_REGIONS)
 * @size: sizeof(struct flexmem_regions)
 * @flags: must be 0
 * @entry_size: bytes from one entry to the next, at most 4096 and at least
 *              sizeof(struct flexmem_region_entry) of the first version
 * @count: entries there is room for
 * @entries: pointer to them; may be 0 when @count is 0
 * @out_count: regions there are
 * @__reserved: must be 0
 *
 * All regions as they were at one moment, in the order of their slots. When
 * @count is less than @out_count, nothing is written to @entries and EMSGSIZE
 * returned: call with @count 0 to learn how many there are. What an entry has
 * beyond the kernel's own size is filled with zeroes.
 */
struct flexmem_regions {
	__u32 size;
	__u32 flags;
	__u32 entry_size;
	__u32 count;
	__aligned_u64 entries;
	__u32 out_count;
	__u32 __reserved;
};

#define FLEXMEM_IOCTL_REGIONS _IO(FLEXMEM_TYPE, FLEXMEM_CMD_REGIONS)

/**
 * struct flexmem_segment_entry - one filled entry of the segment table
 * @slot: its index
 * @flags: of enum flexmem_region_flags
 * @region_id: as in &struct flexmem_address
 * @length: bytes that can be reached through it
 */
struct flexmem_segment_entry {
	__u32 slot;
	__u32 flags;
	__aligned_u64 region_id;
	__aligned_u64 length;
};

/**
 * struct flexmem_segments - ioctl(FLEXMEM_IOCTL_SEGMENTS)
 * @size: sizeof(struct flexmem_segments)
 * @flags: must be 0
 * @entry_size: bytes from one entry to the next, at most 4096 and at least
 *              sizeof(struct flexmem_segment_entry) of the first version
 * @count: entries there is room for
 * @entries: pointer to them; may be 0 when @count is 0
 * @out_count: filled slots there are
 * @__reserved: must be 0
 * @out_generation: changes whenever a slot is filled, emptied or refilled;
 *                  only grows
 *
 * The segment table as a dispatch sees it. The same protocol as
 * &struct flexmem_regions.
 */
struct flexmem_segments {
	__u32 size;
	__u32 flags;
	__u32 entry_size;
	__u32 count;
	__aligned_u64 entries;
	__u32 out_count;
	__u32 __reserved;
	__aligned_u64 out_generation;
};

#define FLEXMEM_IOCTL_SEGMENTS _IO(FLEXMEM_TYPE, FLEXMEM_CMD_SEGMENTS)

/**
 * enum flexmem_lease_op - what to do with the lease
 * @FLEXMEM_LEASE_TAKE: take it, or begin its time anew
 * @FLEXMEM_LEASE_DROP: give it back; EINVAL when there is none, or its time
 *	has run out
 */
enum flexmem_lease_op {
	FLEXMEM_LEASE_TAKE = 0,
	FLEXMEM_LEASE_DROP = 1,
};

/**
 * struct flexmem_lease - ioctl(FLEXMEM_IOCTL_LEASE)
 * @size: sizeof(struct flexmem_lease)
 * @flags: must be 0
 * @op: enum flexmem_lease_op
 * @out_lease_ms: milliseconds until it runs out (TAKE), else 0
 * @out_generation: of the segment table
 *
 * While any open file holds a lease, filled slots stay as they are: whoever
 * would change one gets EBUSY. Empty slots may be filled. A lease ends when it
 * is dropped, when its time is over, when the file is closed, and when the
 * device is reset or removed.
 */
struct flexmem_lease {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 out_lease_ms;
	__aligned_u64 out_generation;
};

#define FLEXMEM_IOCTL_LEASE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_LEASE)

/**
 * enum flexmem_stats_flags - states a device can be in
 * @FLEXMEM_STATS_LOCKED: no further region is tried for, for tensors
 * @FLEXMEM_STATS_PROGRAM_LOCKED: likewise for programs; equals the bit above
 *	when no slots are set aside
 */
enum flexmem_stats_flags {
	FLEXMEM_STATS_LOCKED = 1 << 0,
	FLEXMEM_STATS_PROGRAM_LOCKED = 1 << 1,
};

/**
 * struct flexmem_stats - ioctl(FLEXMEM_IOCTL_STATS)
 * @size: sizeof(struct flexmem_stats)
 * @flags: must be 0
 * @out_flags: of enum flexmem_stats_flags
 * @out_regions: regions acquired, each in a slot of its own
 * @out_leases: leases held
 * @__reserved: must be 0
 * @out_total: bytes in all regions
 * @out_free: of these, free
 * @out_used: of these, allocated by any open file
 * @out_used_program: of @out_used, allocated with FLEXMEM_ALLOC_PROGRAM
 * @out_allocated: live allocations of any open file
 * @out_allocs: allocations made since the device is there
 * @out_frees: allocations given back since then
 * @out_failures: allocations that ended in ENOMEM since then
 * @out_generation: of the segment table
 * @out_client_used: bytes allocated by this open file
 * @out_client_peak: the most that ever was
 * @out_client_handles: live allocations of this open file
 *
 * The figures of all regions (@out_total to @out_frees) are of one moment, and
 * @out_free + @out_used = @out_total holds in each reply.
 */
struct flexmem_stats {
	__u32 size;
	__u32 flags;
	__u32 out_flags;
	__u32 out_regions;
	__u32 out_leases;
	__u32 __reserved;
	__aligned_u64 out_total;
	__aligned_u64 out_free;
	__aligned_u64 out_used;
	__aligned_u64 out_used_program;
	__aligned_u64 out_allocated;
	__aligned_u64 out_allocs;
	__aligned_u64 out_frees;
	__aligned_u64 out_failures;
	__aligned_u64 out_generation;
	__aligned_u64 out_client_used;
	__aligned_u64 out_client_peak;
	__aligned_u64 out_client_handles;
};

#define FLEXMEM_IOCTL_STATS _IO(FLEXMEM_TYPE, FLEXMEM_CMD_STATS)

/**
 * struct flexmem_trim - ioctl(FLEXMEM_IOCTL_TRIM)
 * @size: sizeof(struct flexmem_trim)
 * @flags: must be 0
 * @out_regions: regions given back
 * @__reserved: must be 0
 * @out_bytes: bytes in them
 *
 * Give every region without a live allocation back to the device, and, if there
 * was one, allow regions to be acquired again. The administrator's: EPERM for anyone else.
 * EBUSY, and nothing is given back, while there is a lease. When the firmware
 * fails in the middle the reply is written and tells what was given back.
 */
struct flexmem_trim {
	__u32 size;
	__u32 flags;
	__u32 out_regions;
	__u32 __reserved;
	__aligned_u64 out_bytes;
};

#define FLEXMEM_IOCTL_TRIM _IO(FLEXMEM_TYPE, FLEXMEM_CMD_TRIM)

#endif /* _UAPI_LINUX_FLEXMEM_H */
