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
 * is a character device /dev/flexmemN. Every command takes one struct. Its
 * first member, @size, is the size that the caller was compiled with. Members
 * named ``out_`` are written by the kernel, all others by the caller. Every
 * struct can grow at its end: a kernel that is older than its caller accepts a
 * longer struct as long as the bytes it does not know are zero; a newer kernel
 * takes the bytes that an older caller did not send as zero, and writes back no
 * more than @size bytes.
 *
 * Until version 1.0 of flexmem is tagged all of this can still change, and what
 * is here is the first version of each struct.
 *
 * Errors, returned as -1 and errno; they mean the same for all commands:
 *
 *  - ENOTTY: no such command.
 *  - EFAULT: a pointer could not be read or written, and nothing has changed.
 *    One exception: READ, WRITE and COPY, which count in their reply what they
 *    have done, keep what they did before.
 *  - EBADF: the file is open for reading only, and the command changes something:
 *    all but INFO, LOOKUP, REGIONS, SEGMENTS, STATS, MAP, READ, SNAPSHOT and GET_LIMIT.
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
 *  - EBUSY: a lease forbids the change, or live allocations do; a lease has been
 *    held for as long as it can be; or a RESIZE of the allocation is under way in
 *    another thread.
 *  - EAGAIN: an allocation cannot be extended where it is; or there is no event
 *    to read.
 *  - EPERM: the command is the administrator's (CAP_SYS_ADMIN in the initial
 *    user namespace). So is open() of a PF, whatever the mode of its node,
 *    unless flexmem.ko was loaded with pf_open=mode.
 *  - ENODEV: the device is gone; the file can only be closed.
 *  - ETIMEDOUT: the firmware did not answer in time; the call can be repeated.
 *  - EIO: the firmware failed the request or could not be reached; or the
 *    allocation was lost when the device was reset: it can be looked up and
 *    freed, nothing else.
 *  - EINTR: the caller was killed while it waited.
 *
 * A failed command leaves every allocation as it was, but for bytes that WRITE
 * and COPY were to change. (A region that was acquired for it stays, and
 * counters of changes may have moved.) Replies are written on failure too where
 * a struct says so. A struct gets no reply if its size, flags or reserved
 * members are refused, except that ALLOC and FREE reply to wrong flags and
 * reserved members. An allocation belongs to the open file that made it. The
 * driver frees it when the last descriptor of that file is closed.
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
 * @FLEXMEM_CMD_MAP: &struct flexmem_map
 * @FLEXMEM_CMD_READ: &struct flexmem_rw
 * @FLEXMEM_CMD_WRITE: &struct flexmem_rw
 * @FLEXMEM_CMD_SNAPSHOT: &struct flexmem_snapshot
 * @FLEXMEM_CMD_GET_LIMIT: &struct flexmem_resource_limit
 * @FLEXMEM_CMD_SET_LIMIT: &struct flexmem_resource_limit
 * @FLEXMEM_CMD_STRICT: &struct flexmem_strict
 * @FLEXMEM_CMD_RESIZE: &struct flexmem_resize
 * @FLEXMEM_CMD_COPY: &struct flexmem_copy
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
	FLEXMEM_CMD_MAP = 0x0b,
	FLEXMEM_CMD_READ = 0x0c,
	FLEXMEM_CMD_WRITE = 0x0d,
	FLEXMEM_CMD_SNAPSHOT = 0x0e,
	FLEXMEM_CMD_GET_LIMIT = 0x0f,
	FLEXMEM_CMD_SET_LIMIT = 0x10,
	FLEXMEM_CMD_STRICT = 0x11,
	FLEXMEM_CMD_RESIZE = 0x12,
	FLEXMEM_CMD_COPY = 0x13,
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
	FLEXMEM_ORDER_LOAD_BALANCE = 1,
	FLEXMEM_ORDER_FILL_FIRST = 2,
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
 * enum flexmem_capabilities - what this function can do
 * @FLEXMEM_CAP_SCRUB: bytes of one owner are never seen by another, and
 *	FLEXMEM_ALLOC_ZEROED works
 * @FLEXMEM_CAP_MAP: FLEXMEM_ALLOC_MAPPABLE and MAP work
 * @FLEXMEM_CAP_RW: READ and WRITE work
 * @FLEXMEM_CAP_COPY: COPY works
 * @FLEXMEM_CAP_PAGE_TABLES: device programs can have address spaces of their
 *	own; no command makes one yet
 */
enum flexmem_capabilities {
	FLEXMEM_CAP_SCRUB = 1 << 0,
	FLEXMEM_CAP_MAP = 1 << 1,
	FLEXMEM_CAP_RW = 1 << 2,
	FLEXMEM_CAP_COPY = 1 << 3,
	FLEXMEM_CAP_PAGE_TABLES = 1 << 4,
};

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
 * @out_capabilities: of enum flexmem_capabilities
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
 * @FLEXMEM_REASON_REGION_LIMIT: the opener's cgroup, or one above, may not have
 *	bytes in a further region
 * @FLEXMEM_REASON_CGROUP_LIMIT: the limit of bytes or handles of the opener's
 *	cgroup, or of one above
 * @FLEXMEM_REASON_ALIGNMENT: as FRAGMENTATION, but of the free blocks that are
 *	large enough only so many were looked at for an alignment above 128;
 *	another of them may suit
 */
enum flexmem_reason {
	FLEXMEM_REASON_NONE = 0,
	FLEXMEM_REASON_CAPACITY = 1,
	FLEXMEM_REASON_SLOTS = 2,
	FLEXMEM_REASON_MAX_REGIONS = 3,
	FLEXMEM_REASON_FRAGMENTATION = 4,
	FLEXMEM_REASON_REGION_SIZE = 5,
	FLEXMEM_REASON_HANDLES = 6,
	FLEXMEM_REASON_REGION_LIMIT = 7,
	FLEXMEM_REASON_CGROUP_LIMIT = 8,
	FLEXMEM_REASON_ALIGNMENT = 9,
};

/**
 * enum flexmem_alloc_flags - what kind of memory
 * @FLEXMEM_ALLOC_PROGRAM: holds a device program; comes from the slots set
 *	aside for programs, if there are any
 * @FLEXMEM_ALLOC_MAPPABLE: can be mapped for the CPU: start and length are
 *	rounded up to 4096, so that no page is shared with a neighbour.
 *	EOPNOTSUPP without FLEXMEM_CAP_MAP
 * @FLEXMEM_ALLOC_ZEROED: all bytes are zero at first; otherwise they are zero
 *	or what the same owner left there. EOPNOTSUPP without FLEXMEM_CAP_SCRUB
 * @FLEXMEM_ALLOC_GROWABLE: will be extended by RESIZE: goes where the most room
 *	follows, instead of where the strategy would put it: to the start of an
 *	empty region, otherwise to the middle of the largest free block, so that
 *	what lies before it can grow as well, or to its start if only that fits;
 *	and, if its alignment keeps it out of that one, where the strategy does
 */
enum flexmem_alloc_flags {
	FLEXMEM_ALLOC_PROGRAM = 1 << 0,
	FLEXMEM_ALLOC_MAPPABLE = 1 << 1,
	FLEXMEM_ALLOC_ZEROED = 1 << 2,
	FLEXMEM_ALLOC_GROWABLE = 1 << 3,
};

/**
 * struct flexmem_alloc - ioctl(FLEXMEM_IOCTL_ALLOC), and entry of a batch
 * @size: sizeof(struct flexmem_alloc)
 * @flags: of enum flexmem_alloc_flags
 * @length: bytes wanted, at least 1; rounded up to a multiple of 128
 * @alignment: of the offset, in bytes; a power of two up to 1 GiB; anything
 *             below 128, and 0, means 128
 * @out_handle: names the allocation in this open file; never 0 on success, at
 *              most 2^31 - 1, and not soon that of an allocation that was freed
 * @out_error: 0, or the error as a positive errno
 * @out_address: where it starts
 * @out_size: @length as rounded; the bytes that are this allocation's
 * @out_reason: enum flexmem_reason
 * @out_region_reason: with FRAGMENTATION and ALIGNMENT: why there was no further
 *                     region for it, either: CAPACITY, SLOTS or MAX_REGIONS.
 *                     Else 0
 * @out_total_free: on ENOMEM: free bytes in all regions it could have gone to
 * @out_largest_free: on ENOMEM: largest free block among them, in bytes
 * @out_max_region: on ENOMEM: bytes of the largest region there could be
 * @out_client_used: on ENOMEM: bytes allocated by this open file
 * @out_regions: on ENOMEM: regions acquired
 * @__reserved: must be 0
 *
 * Allocate device memory. The reply is written on failure too: then
 * @out_handle is 0, @out_size tells the rounded request, and the other members
 * which limit stopped it. Never a smaller block than asked for.
 *
 * Memory that another owner has used is scrubbed before it is handed out; the
 * caller waits for that, killably. The owner of bytes is the user who opened
 * the file, in the opener's cgroup (see &struct flexmem_strict). EIO,
 * ETIMEDOUT: the firmware could not scrub; the range is quarantined, and the
 * call can be repeated.
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
	__u32 out_region_reason;
	__aligned_u64 out_total_free;
	__aligned_u64 out_largest_free;
	__aligned_u64 out_max_region;
	__aligned_u64 out_client_used;
	__u32 out_regions;
	__u32 __reserved;
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
 * does not choose is not zero. An allocation that is still mapped, or that a
 * program of the device uses, keeps its memory, charged to its owner, until it
 * is unmapped and the program has ended. An allocation that was lost when the
 * device was reset can be freed by handle only.
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

#define FLEXMEM_LOOKUP_LOST 0x80000000U

/**
 * struct flexmem_lookup - ioctl(FLEXMEM_IOCTL_LOOKUP)
 * @size: sizeof(struct flexmem_lookup)
 * @flags: must be 0
 * @handle: of a live allocation of this open file
 * @out_flags: the flags it was allocated with; and FLEXMEM_LOOKUP_LOST if its
 *             bytes were lost when the device was reset
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
 * returned: call with @count 0 to learn how many there are. An entry may be
 * longer than the kernel's struct; the rest is filled with zeroes.
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
 * @flags: FLEXMEM_REGION_PROGRAM or 0
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
 * @out_count: filled slots there are, but for those that the firmware may have
 *             emptied
 * @__reserved: must be 0
 * @out_generation: grows whenever a slot is filled or emptied, or may have been
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
 * @FLEXMEM_LEASE_TAKE: take it, or start its time again; EBUSY when it has been
 *	held for as long as the administrator allows (lease_total_ms); EIO while
 *	the device is reset, and once a reset has failed until one succeeds
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
 * While any open file holds a lease, filled slots stay as they are: a call that
 * would change one fails with EBUSY. Empty slots may be filled. A lease ends
 * when it is dropped, when its time is over, when the file is closed, when the
 * device is reset or removed, and when the administrator breaks it (TRIM). A
 * lease that cannot be taken again (EBUSY) stays until its time is over. Then a
 * new one can be taken.
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
 * @FLEXMEM_STATS_EXHAUSTED: no further region is tried for, for tensors
 * @FLEXMEM_STATS_PROGRAM_EXHAUSTED: the same for programs; equals the bit above
 *	when no slots are set aside
 */
enum flexmem_stats_flags {
	FLEXMEM_STATS_EXHAUSTED = 1 << 0,
	FLEXMEM_STATS_PROGRAM_EXHAUSTED = 1 << 1,
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
 * @out_client_used: bytes allocated by this open file, but those that were lost
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
 * enum flexmem_trim_flags - how to trim
 * @FLEXMEM_TRIM_BREAK_LEASES: end every lease first: a client that renews its
 *	lease could otherwise keep empty regions from the device for ever
 */
enum flexmem_trim_flags {
	FLEXMEM_TRIM_BREAK_LEASES = 1 << 0,
};

/**
 * struct flexmem_trim - ioctl(FLEXMEM_IOCTL_TRIM)
 * @size: sizeof(struct flexmem_trim)
 * @flags: of enum flexmem_trim_flags
 * @out_regions: regions given back
 * @__reserved: must be 0
 * @out_bytes: bytes in them
 *
 * Give every region without a live allocation back to the device, and, if there
 * was one, allow regions to be acquired again. Before that, try once more to
 * scrub what is quarantined. The administrator's: EPERM for anyone else. While
 * there is a lease, nothing is given back (EBUSY), unless leases are broken.
 * Slots with live allocations stay as they are in any case, so a dispatch under
 * a broken lease still finds its memory. When the firmware fails in the middle,
 * or a lease is taken (EBUSY), the reply is written and tells what was given
 * back. If the reply cannot be written, nothing is done (EFAULT). If it can be
 * written at first but not at the end, the call returns as it would have,
 * without a reply.
 */
struct flexmem_trim {
	__u32 size;
	__u32 flags;
	__u32 out_regions;
	__u32 __reserved;
	__aligned_u64 out_bytes;
};

#define FLEXMEM_IOCTL_TRIM _IO(FLEXMEM_TYPE, FLEXMEM_CMD_TRIM)

/**
 * struct flexmem_map - ioctl(FLEXMEM_IOCTL_MAP)
 * @size: sizeof(struct flexmem_map)
 * @flags: must be 0
 * @handle: of a live allocation of this open file
 * @__reserved: must be 0
 * @out_offset: for mmap() of the same open file
 * @out_size: bytes that can be mapped
 *
 * How to map an allocation for the CPU: mmap() with MAP_SHARED from @out_offset
 * on, at most @out_size bytes, any page of it first. The offset is valid until
 * the allocation is freed; below 2^44, so that 32-bit programs can map, unless
 * a region is larger than 256 GiB. EINVAL: it was not allocated with
 * FLEXMEM_ALLOC_MAPPABLE. EIO: it was lost.
 *
 * mmap() fails with EINVAL for a private map or one beyond the end, EPERM for
 * an executable one, ENOENT if no allocation of this open file can be mapped
 * there. A map is not
 * inherited in any other way than by fork(), and cannot be pinned. When the
 * device is reset or goes, every access to a map is SIGBUS.
 */
struct flexmem_map {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
	__aligned_u64 out_offset;
	__aligned_u64 out_size;
};

#define FLEXMEM_IOCTL_MAP _IO(FLEXMEM_TYPE, FLEXMEM_CMD_MAP)

/**
 * struct flexmem_rw - ioctl(FLEXMEM_IOCTL_READ, _WRITE)
 * @size: sizeof(struct flexmem_rw)
 * @flags: must be 0
 * @handle: of a live allocation of this open file
 * @__reserved: must be 0
 * @offset: first byte in the allocation
 * @length: bytes, at least 1
 * @data: pointer to as many bytes of the caller
 * @out_done: bytes copied, from the first on
 *
 * Copy out of an allocation (READ) or into it (WRITE), mappable or not. EINVAL:
 * the bytes are not all in the allocation. The reply is written on failure too:
 * what was copied until then stays copied. If another caller writes at the same
 * time, the copy is not of one moment.
 */
struct flexmem_rw {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 data;
	__aligned_u64 out_done;
};

#define FLEXMEM_IOCTL_READ _IO(FLEXMEM_TYPE, FLEXMEM_CMD_READ)
#define FLEXMEM_IOCTL_WRITE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_WRITE)

/**
 * struct flexmem_copy - ioctl(FLEXMEM_IOCTL_COPY)
 * @size: sizeof(struct flexmem_copy)
 * @flags: must be 0
 * @to: handle of a live allocation of this open file: where to
 * @from: handle of the allocation to copy from; may be the same one
 * @to_offset: first byte in the allocation @to
 * @from_offset: first byte in the allocation @from
 * @length: bytes, at least 128; like the offsets a multiple of that
 * @out_done: bytes copied, from the first on
 *
 * Copy bytes within the device, mappable or not: none of them goes through the
 * CPU. EOPNOTSUPP without FLEXMEM_CAP_COPY. EINVAL: the bytes are not
 * all in the allocations; offsets and length are not multiples of 128; or the
 * two ranges have bytes in common. EIO: either allocation was lost. The reply
 * is written on failure too: what was copied until then stays copied, and the
 * contents of the rest of the range @to are unknown. If another caller writes
 * at the same time, the copy is not of one moment.
 */
struct flexmem_copy {
	__u32 size;
	__u32 flags;
	__u32 to;
	__u32 from;
	__aligned_u64 to_offset;
	__aligned_u64 from_offset;
	__aligned_u64 length;
	__aligned_u64 out_done;
};

#define FLEXMEM_IOCTL_COPY _IO(FLEXMEM_TYPE, FLEXMEM_CMD_COPY)

/**
 * enum flexmem_owner_kind - kind of an account
 * @FLEXMEM_OWNER_CLIENT: one open file
 * @FLEXMEM_OWNER_CGROUP: all files opened in one cgroup (v2), or in one below it
 */
enum flexmem_owner_kind {
	FLEXMEM_OWNER_CLIENT = 0,
	FLEXMEM_OWNER_CGROUP = 1,
};

/**
 * enum flexmem_resource - what is limited
 * @FLEXMEM_RESOURCE_BYTES: device memory
 * @FLEXMEM_RESOURCE_REGIONS: slots: one for each region in which the owner has
 *	bytes
 * @FLEXMEM_RESOURCE_HANDLES: live allocations
 * @FLEXMEM_RESOURCE_FILES: open files
 * @FLEXMEM_NR_RESOURCES: how many there are in this version
 */
enum flexmem_resource {
	FLEXMEM_RESOURCE_BYTES = 0,
	FLEXMEM_RESOURCE_REGIONS = 1,
	FLEXMEM_RESOURCE_HANDLES = 2,
	FLEXMEM_RESOURCE_FILES = 3,
	FLEXMEM_NR_RESOURCES = 4,
};

#define FLEXMEM_NO_LIMIT (~0ULL)

/**
 * enum flexmem_limit_scope - what a limit is for
 * @FLEXMEM_SCOPE_CGROUP: one cgroup and all below it together
 * @FLEXMEM_SCOPE_EACH_CHILD: each child of one cgroup that has no limit of its own
 * @FLEXMEM_SCOPE_DEFAULT: each cgroup at the depth of the parameter
 *	``default_depth`` that has neither a limit of its own nor one from its
 *	parent. Cgroups below share it; files opened above it have no default limit
 */
enum flexmem_limit_scope {
	FLEXMEM_SCOPE_CGROUP = 0,
	FLEXMEM_SCOPE_EACH_CHILD = 1,
	FLEXMEM_SCOPE_DEFAULT = 2,
};

/* &flexmem_owner_entry.flags: the cgroup was removed; its charges have stayed */
#define FLEXMEM_OWNER_REMOVED 1

/**
 * struct flexmem_owner_entry - the account of one owner
 * @kind: enum flexmem_owner_kind
 * @flags: FLEXMEM_OWNER_REMOVED
 * @id: CLIENT: number of the open file, never used twice on this node. CGROUP:
 *      its id, the inode number of its directory; 0 in a kernel without cgroups,
 *      which has one account for all
 * @uid: CLIENT: uid of the opener, as the caller sees it; else 0
 * @pid: CLIENT: process that opened it, as the caller sees it; 0: not visible
 * @bytes: bytes of live allocations
 * @orphaned: bytes freed that are still mapped, or used by a program of the
 *            device; charged as well
 * @peak: the most that @bytes + @orphaned ever was
 * @slots: regions in which it has bytes
 * @handles: live allocations
 * @files: open files
 * @limit: CGROUP: of each enum flexmem_resource, as it holds for the cgroup itself,
 *	whatever its scope; FLEXMEM_NO_LIMIT: none. CLIENT: none
 *
 * Bytes of a region that was lost in a reset are in no account.
 */
struct flexmem_owner_entry {
	__u32 kind;
	__u32 flags;
	__aligned_u64 id;
	__u32 uid;
	__u32 pid;
	__aligned_u64 bytes;
	__aligned_u64 orphaned;
	__aligned_u64 peak;
	__aligned_u64 slots;
	__aligned_u64 handles;
	__aligned_u64 files;
	__aligned_u64 limit[4];
};

/**
 * struct flexmem_snapshot - ioctl(FLEXMEM_IOCTL_SNAPSHOT)
 * @size: sizeof(struct flexmem_snapshot)
 * @flags: must be 0
 * @region_entry_size: bytes from one region to the next, at most 4096 and at
 *                     least sizeof(struct flexmem_region_entry)
 * @region_count: regions there is room for
 * @regions: pointer to &struct flexmem_region_entry; may be 0 when
 *           @region_count is 0
 * @owner_entry_size: bytes from one owner to the next, at most 4096 and at
 *	least sizeof(struct flexmem_owner_entry)
 * @owner_count: owners there is room for
 * @owners: pointer to &struct flexmem_owner_entry; may be 0 when @owner_count
 *          is 0
 * @out_region_count: regions there are
 * @out_owner_count: owners there are for this caller to see
 * @out_capacity: bytes this function may acquire
 * @out_total: bytes of the acquired regions
 * @out_free: of these, free
 * @out_owned: of these, in live allocations
 * @out_orphaned: of these, freed but still mapped, or used by a program of the
 *                device
 * @out_reserved: of these, held back for other reasons; 0 in this version
 * @out_quarantined: of these, could not be scrubbed and are not handed out
 * @out_scrubbed: bytes scrubbed since the device is there
 * @out_clients: open files
 * @out_resets: how often the device was reset
 * @out_generation: of the segment table
 *
 * Device, regions, owners and totals, all of one moment:
 * @out_free + @out_owned + @out_orphaned + @out_reserved + @out_quarantined =
 * @out_total, and the bytes of all clients add up to @out_owned, which are those
 * of the root cgroup. The administrator (CAP_SYS_ADMIN in the initial user
 * namespace) sees all owners: cgroups first, then clients, each by id. Other
 * callers see the opener's cgroup and this open file. The protocol of the lists is
 * that of &struct flexmem_regions: EMSGSIZE, and neither list is written, if either
 * is too small; the other members are written then, too.
 */
struct flexmem_snapshot {
	__u32 size;
	__u32 flags;
	__u32 region_entry_size;
	__u32 region_count;
	__aligned_u64 regions;
	__u32 owner_entry_size;
	__u32 owner_count;
	__aligned_u64 owners;
	__u32 out_region_count;
	__u32 out_owner_count;
	__aligned_u64 out_capacity;
	__aligned_u64 out_total;
	__aligned_u64 out_free;
	__aligned_u64 out_owned;
	__aligned_u64 out_orphaned;
	__aligned_u64 out_reserved;
	__aligned_u64 out_quarantined;
	__aligned_u64 out_scrubbed;
	__aligned_u64 out_clients;
	__aligned_u64 out_resets;
	__aligned_u64 out_generation;
};

#define FLEXMEM_IOCTL_SNAPSHOT _IO(FLEXMEM_TYPE, FLEXMEM_CMD_SNAPSHOT)

/**
 * struct flexmem_resource_limit - ioctl(FLEXMEM_IOCTL_GET_LIMIT, _SET_LIMIT)
 * @size: sizeof(struct flexmem_resource_limit)
 * @flags: must be 0
 * @scope: enum flexmem_limit_scope. GET_LIMIT: must be 0
 * @resource: enum flexmem_resource
 * @cgroup: id of the cgroup, as in &struct flexmem_owner_entry. GET_LIMIT and
 *	DEFAULT: must be 0
 * @limit: SET_LIMIT: at most this much; FLEXMEM_NO_LIMIT removes the limit.
 *	GET_LIMIT: must be 0
 * @out_limit: GET_LIMIT: limit as it is now. SET_LIMIT: @limit
 * @out_used: what is charged to the cgroup now, 0 for DEFAULT; SET_LIMIT: what was
 *	just before
 *
 * GET_LIMIT reads a limit of the opener's cgroup. SET_LIMIT is for the administrator
 * (CAP_SYS_ADMIN in the initial user namespace): EPERM for all other callers. The
 * cgroup must exist where the caller can see it (ENOENT), but need not have an open
 * file. A limit that is removed leaves that of the parent for each child, if there
 * is one, or the default.
 *
 * A charge must be within the limits of the opener's cgroup and of all its
 * ancestors. An open() beyond a limit fails with EMFILE; the root cgroup cannot have
 * a limit of open files (EINVAL), so the administrator can always open one. A limit below what is
 * charged takes nothing away, but new charges fail. A cgroup that is removed loses
 * its limits. The reply is written before the limit is set, and only if it will be.
 */
struct flexmem_resource_limit {
	__u32 size;
	__u32 flags;
	__u32 scope;
	__u32 resource;
	__aligned_u64 cgroup;
	__aligned_u64 limit;
	__aligned_u64 out_limit;
	__aligned_u64 out_used;
};

#define FLEXMEM_IOCTL_GET_LIMIT _IO(FLEXMEM_TYPE, FLEXMEM_CMD_GET_LIMIT)
#define FLEXMEM_IOCTL_SET_LIMIT _IO(FLEXMEM_TYPE, FLEXMEM_CMD_SET_LIMIT)

/**
 * struct flexmem_strict - ioctl(FLEXMEM_IOCTL_STRICT)
 * @size: sizeof(struct flexmem_strict)
 * @flags: must be 0
 *
 * From now on the owner of this open file's bytes is the file alone, not its
 * user: other files of the same user never see them. Cannot be taken back.
 * A file that is passed on or inherited keeps its owner, so a process that opens
 * files for others calls this for each.
 * EBUSY: there are live allocations already, or freed ones that are still mapped.
 */
struct flexmem_strict {
	__u32 size;
	__u32 flags;
};

#define FLEXMEM_IOCTL_STRICT _IO(FLEXMEM_TYPE, FLEXMEM_CMD_STRICT)

/**
 * struct flexmem_resize - ioctl(FLEXMEM_IOCTL_RESIZE)
 * @size: sizeof(struct flexmem_resize)
 * @flags: must be 0
 * @handle: of a live allocation of this open file
 * @out_reason: enum flexmem_reason: on ENOMEM, which limit stopped it
 * @length: bytes it shall have, at least 1; rounded up as by ALLOC
 * @out_size: bytes it has now, whether that changed or not
 * @out_max: on EAGAIN: bytes it could be extended to at this moment
 *
 * Extend an allocation at its end, or shrink it from there. Its start, its
 * handle and the bytes that stay do not change; what is added is as in a new
 * allocation with the same flags. The reply is written on failure too, and
 * then the allocation is as it was.
 *
 * EAGAIN: not enough of what follows it in its region is free. ENOMEM: a limit
 * forbids it. EBUSY: it is mapped, or another call is using it.
 * EIO: it was lost; or, like ETIMEDOUT, the firmware could not scrub what would
 * be added, which is quarantined. EINVAL: @length is 0.
 */
struct flexmem_resize {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 out_reason;
	__aligned_u64 length;
	__aligned_u64 out_size;
	__aligned_u64 out_max;
};

#define FLEXMEM_IOCTL_RESIZE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_RESIZE)

/**
 * enum flexmem_pressure - how full a function is
 * @FLEXMEM_PRESSURE_NONE: neither of the others
 * @FLEXMEM_PRESSURE_MODERATE: from FLEXMEM_MODERATE_ENTER percent of its memory
 *	in use on, until less than FLEXMEM_MODERATE_LEAVE percent are
 * @FLEXMEM_PRESSURE_CRITICAL: from FLEXMEM_CRITICAL_ENTER percent on, until less
 *	than FLEXMEM_CRITICAL_LEAVE percent are
 *
 * Its memory is what it has acquired and could still acquire for anything but
 * programs alone. In use is what is allocated, freed but still mapped, or
 * quarantined.
 */
enum flexmem_pressure {
	FLEXMEM_PRESSURE_NONE = 0,
	FLEXMEM_PRESSURE_MODERATE = 1,
	FLEXMEM_PRESSURE_CRITICAL = 2,
};

#define FLEXMEM_MODERATE_ENTER 80
#define FLEXMEM_MODERATE_LEAVE 70
#define FLEXMEM_CRITICAL_ENTER 95
#define FLEXMEM_CRITICAL_LEAVE 90

/* An event comes no sooner than this after the one before. */
#define FLEXMEM_EVENT_MS 100

/**
 * struct flexmem_event - what read() of a node gives
 * @size: sizeof(struct flexmem_event) of this kernel, or as much of it as there
 *        was room for
 * @level: enum flexmem_pressure
 * @in_use: bytes in use
 * @memory: bytes there are, acquired or not
 * @sequence: number of the event; those that this file has missed are not told
 *            again
 *
 * There is an event for this open file when the level has changed since the event
 * that this file read last, also if it is the same again; and, for a new file, when
 * the level is not FLEXMEM_PRESSURE_NONE. A file that was told NONE hears of the
 * next other level. There is also one when memory has been freed, by any
 * file, since the last ALLOC of this file began and failed with ENOMEM: one for
 * each such ALLOC, unless a later one succeeds, and none for the reasons NONE
 * and REGION_SIZE. Events come at most every FLEXMEM_EVENT_MS.
 *
 * poll() says POLLIN | POLLRDNORM while there is an event, and POLLERR | POLLHUP
 * when the device is gone. read() gives the level as of the latest event, and
 * the bytes of the moment. It waits for an event, interruptibly, unless the file
 * is O_NONBLOCK (EAGAIN). EINVAL: there is room for less than FLEXMEM_EVENT_MIN
 * bytes. EFAULT: the event stays. ENODEV: the device is gone.
 *
 * A program that holds memory which it does not need, the cache of a framework
 * for instance, frees it then, before others run out of memory. A program that
 * wants to wait for memory polls with a time limit, and tries its ALLOC again.
 */
struct flexmem_event {
	__u32 size;
	__u32 level;
	__aligned_u64 in_use;
	__aligned_u64 memory;
	__aligned_u64 sequence;
};

#define FLEXMEM_EVENT_MIN 32

#endif /* _UAPI_LINUX_FLEXMEM_H */
