/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * flexmem - device memory of AI accelerators.
 *
 * The interface between the driver and user space.
 */
#ifndef _UAPI_LINUX_FLEXMEM_H
#define _UAPI_LINUX_FLEXMEM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every function of a device has a character device /dev/flexmemN: the physical
 * function (PF) and each virtual function (VF). Every command takes one struct.
 * Its first member, @size, is the size that the caller was compiled with. The
 * kernel writes the members named ``out_``, the caller writes all others. Every
 * struct can grow at its end. An older kernel accepts a longer struct if the
 * bytes that it does not know are zero. A newer kernel treats the missing bytes
 * of a shorter struct as zero, and writes back no more than @size bytes.
 *
 * Before version 1.0 of flexmem is tagged, all of this can still change. The
 * structs below are the first version.
 *
 * A command that fails returns -1 and sets errno. Each error means the same for
 * all commands:
 *
 *  - ENOTTY: no such command.
 *  - EFAULT: a pointer could not be read or written, and nothing has changed.
 *    Exception: READ, WRITE and COPY do not undo bytes that they have copied;
 *    their reply counts these bytes.
 *  - EBADF: the file is open for reading only, and the command changes something:
 *    all but INFO, LOOKUP, SEGMENTS, READ, SNAPSHOT, DOMAIN and VA_LOOKUP.
 *    Or the file is open for writing only, and the command is READ.
 *  - EINVAL: @size is shorter than the first version of the struct, or a
 *    value is out of its documented range.
 *  - E2BIG: a byte that this kernel does not know is not zero, or the struct is
 *    longer than 4096 bytes.
 *  - EOPNOTSUPP: an unknown flag is set, or a reserved member is not zero.
 *  - ENOENT: the open file has no allocation of this handle or address, or has
 *    reserved or bound nothing at this device-virtual address.
 *  - ENOMEM: no device memory. The reply says why (enum flexmem_reason).
 *    FLEXMEM_REASON_NONE means that the kernel itself had no memory.
 *  - EMSGSIZE: the array is too small; ``out_count`` is the length that is
 *    needed.
 *  - EBUSY: a live allocation, or the sleep of the function, forbids the
 *    change; or another thread is resizing the allocation.
 *  - ENOSPC, EMFILE, ENXIO, EEXIST: for device-virtual addresses, see
 *    &struct flexmem_va_reserve and &struct flexmem_va_bind.
 *  - EAGAIN: an allocation cannot be extended in place; or there is no event to
 *    read.
 *  - EPERM: the command requires CAP_SYS_ADMIN in the initial user namespace.
 *    open() of a PF requires it too, whatever the mode of the node, unless
 *    flexmem.ko was loaded with pf_open=mode.
 *  - ENODEV: the device was removed; the file can only be closed.
 *  - ETIMEDOUT: the firmware did not answer in time; the call can be repeated.
 *  - EIO: the firmware failed the request or could not be reached; or the
 *    allocation was lost in a reset of the device. A lost allocation can only
 *    be looked up and freed.
 *  - EINTR: the caller was killed while it waited.
 *
 * A failed command leaves every allocation as it was, except that WRITE and
 * COPY may have changed bytes. A region that was acquired for the command
 * stays, and counters of changes may have grown. Where the description of a
 * struct says so, the reply is written even on failure. If the size, flags or
 * reserved members are refused, there is no reply. Only ALLOC and FREE reply to
 * wrong flags, and ALLOC to an unknown policy. An allocation belongs to the
 * open file that made it. The driver frees it when the last descriptor of that
 * file is closed.
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
 * @FLEXMEM_CMD_SEGMENTS: &struct flexmem_segments
 * @FLEXMEM_CMD_TRIM: &struct flexmem_trim
 * @FLEXMEM_CMD_READ: &struct flexmem_rw
 * @FLEXMEM_CMD_WRITE: &struct flexmem_rw
 * @FLEXMEM_CMD_SNAPSHOT: &struct flexmem_snapshot
 * @FLEXMEM_CMD_SET_LIMIT: &struct flexmem_resource_limit
 * @FLEXMEM_CMD_RESIZE: &struct flexmem_resize
 * @FLEXMEM_CMD_COPY: &struct flexmem_copy
 * @FLEXMEM_CMD_DOMAIN: &struct flexmem_domain_info
 * @FLEXMEM_CMD_RESERVE: &struct flexmem_reserve
 * @FLEXMEM_CMD_VA_RESERVE: &struct flexmem_va_reserve
 * @FLEXMEM_CMD_VA_FREE: &struct flexmem_va_free
 * @FLEXMEM_CMD_VA_BIND: &struct flexmem_va_bind
 * @FLEXMEM_CMD_VA_UNBIND: &struct flexmem_va_unbind
 * @FLEXMEM_CMD_VA_LOOKUP: &struct flexmem_va_lookup
 */
enum flexmem_cmd {
	FLEXMEM_CMD_INFO = 0x00,
	FLEXMEM_CMD_ALLOC = 0x01,
	FLEXMEM_CMD_FREE = 0x02,
	FLEXMEM_CMD_ALLOC_BATCH = 0x03,
	FLEXMEM_CMD_FREE_BATCH = 0x04,
	FLEXMEM_CMD_LOOKUP = 0x05,
	FLEXMEM_CMD_SEGMENTS = 0x07,
	FLEXMEM_CMD_TRIM = 0x0a,
	FLEXMEM_CMD_READ = 0x0c,
	FLEXMEM_CMD_WRITE = 0x0d,
	FLEXMEM_CMD_SNAPSHOT = 0x0e,
	FLEXMEM_CMD_SET_LIMIT = 0x10,
	FLEXMEM_CMD_RESIZE = 0x12,
	FLEXMEM_CMD_COPY = 0x13,
	FLEXMEM_CMD_DOMAIN = 0x14,
	FLEXMEM_CMD_RESERVE = 0x15,
	FLEXMEM_CMD_VA_RESERVE = 0x16,
	FLEXMEM_CMD_VA_FREE = 0x17,
	FLEXMEM_CMD_VA_BIND = 0x18,
	FLEXMEM_CMD_VA_UNBIND = 0x19,
	FLEXMEM_CMD_VA_LOOKUP = 0x1a,
};

/**
 * struct flexmem_address - VirtualAddress: where a chunk begins
 * @region_id: VF: index in the firmware's table. PF: physical address of the
 *             region's first byte.
 * @offset: bytes from the start of the region, a multiple of 128.
 *
 * Programs use addresses of PFs and VFs in the same way. An address has no
 * length.
 */
struct flexmem_address {
	__aligned_u64 region_id;
	__aligned_u64 offset;
};

/**
 * enum flexmem_mode - kind of function behind a node
 * @FLEXMEM_MODE_PF: the physical function: the region_id of a region is its
 *	physical address
 * @FLEXMEM_MODE_VF: a virtual function: the region_id of a region is its slot
 */
enum flexmem_mode {
	FLEXMEM_MODE_PF = 0,
	FLEXMEM_MODE_VF = 1,
};

/**
 * enum flexmem_fit - which free block of a region an allocation takes
 * @FLEXMEM_FIT_FIRST: the lowest block that is large enough
 * @FLEXMEM_FIT_BEST: the smallest block that is large enough; of equal ones,
 *	the lowest
 */
enum flexmem_fit {
	FLEXMEM_FIT_FIRST = 0,
	FLEXMEM_FIT_BEST = 1,
};

/**
 * enum flexmem_order - in which order regions are tried
 * @FLEXMEM_ORDER_LOAD_BALANCE: the region with the most free bytes first. With
 *	@FLEXMEM_ACQUIRE_LAZY a new region is acquired before each allocation,
 *	as long as that is possible
 * @FLEXMEM_ORDER_FILL_FIRST: the region with the fewest free bytes first. A
 *	region is acquired only if no existing region has room
 *
 * Regions with the same number of free bytes are tried in the order of their
 * slots.
 */
enum flexmem_order {
	FLEXMEM_ORDER_LOAD_BALANCE = 1,
	FLEXMEM_ORDER_FILL_FIRST = 2,
};

/**
 * enum flexmem_acquire - when regions are acquired from the device
 * @FLEXMEM_ACQUIRE_LAZY: on demand
 * @FLEXMEM_ACQUIRE_PREALLOC: all of them when the device is registered
 */
enum flexmem_acquire {
	FLEXMEM_ACQUIRE_LAZY = 0,
	FLEXMEM_ACQUIRE_PREALLOC = 1,
};

#define FLEXMEM_MAX_FALLBACK_SIZES 8

#define FLEXMEM_MAX_DOMAINS 32

/* The most chunks that an allocation can have. */
#define FLEXMEM_MAX_CHUNKS FLEXMEM_MAX_DOMAINS

/**
 * enum flexmem_domain_type - the kind of memory of a domain
 * @FLEXMEM_DOMAIN_DEVICE: the device's main memory, such as an HBM stack
 * @FLEXMEM_DOMAIN_ON_CHIP: small and fast memory beside the cores
 * @FLEXMEM_DOMAIN_HOST_VISIBLE: memory that the CPU reaches through a window
 *
 * A domain is one of a device's memories, with a capacity of its own. A region
 * lies in one domain. An allocation comes from the domains of type
 * FLEXMEM_DOMAIN_DEVICE, unless it chooses others (enum flexmem_policy).
 */
enum flexmem_domain_type {
	FLEXMEM_DOMAIN_DEVICE = 0,
	FLEXMEM_DOMAIN_ON_CHIP = 1,
	FLEXMEM_DOMAIN_HOST_VISIBLE = 2,
};

/**
 * enum flexmem_capabilities - what this function can do
 * @FLEXMEM_CAP_SCRUB: always set: no open file sees bytes of another one, and
 *	FLEXMEM_ALLOC_ZEROED works
 * @FLEXMEM_CAP_MAP: FLEXMEM_ALLOC_MAPPABLE and mmap() work
 * @FLEXMEM_CAP_RW: READ and WRITE work
 * @FLEXMEM_CAP_COPY: COPY works
 * @FLEXMEM_CAP_PAGE_TABLES: an open file can have a device-virtual address
 *	space, and VA_RESERVE and the other commands about it work
 */
enum flexmem_capabilities {
	FLEXMEM_CAP_SCRUB = 1 << 0,
	FLEXMEM_CAP_MAP = 1 << 1,
	FLEXMEM_CAP_RW = 1 << 2,
	FLEXMEM_CAP_COPY = 1 << 3,
	FLEXMEM_CAP_PAGE_TABLES = 1 << 4,
};

/**
 * enum flexmem_state - which commands the function's firmware gets
 * @FLEXMEM_STATE_UP: all
 * @FLEXMEM_STATE_UNRESPONSIVE: only a probe now and then, because the last
 *	commands timed out. Callers wait for the result of the probe
 * @FLEXMEM_STATE_SUSPENDED: none; callers wait for the resume
 * @FLEXMEM_STATE_WEDGED: only a reset, until a reset succeeds. The device has
 *	failed, or a reset is running or has failed
 * @FLEXMEM_STATE_GONE: none, because the device's driver is being removed
 */
enum flexmem_state {
	FLEXMEM_STATE_UP = 0,
	FLEXMEM_STATE_UNRESPONSIVE = 1,
	FLEXMEM_STATE_SUSPENDED = 2,
	FLEXMEM_STATE_WEDGED = 3,
	FLEXMEM_STATE_GONE = 4,
};

/**
 * struct flexmem_info - ioctl(FLEXMEM_IOCTL_INFO)
 * @size: sizeof(struct flexmem_info)
 * @flags: must be 0
 * @out_mode: enum flexmem_mode
 * @out_slots: entries of the segment table. VF: the entries of the firmware's
 *             table. PF: @out_max_regions
 * @out_max_regions: most regions that may be acquired; never more than
 *	@out_slots
 * @out_program_slots: number of slots that only FLEXMEM_ALLOC_PROGRAM uses; 0:
 *                     programs and tensors share all slots
 * @out_acquire: enum flexmem_acquire
 * @out_order: enum flexmem_order
 * @out_fit: enum flexmem_fit
 * @out_max_handles: most allocations of one open file, live or still in use
 * @out_max_batch: most entries of one batch, at least 1
 * @out_state: enum flexmem_state
 * @out_alignment: every offset and size is a multiple of this, in bytes (128)
 * @out_nr_fallback_sizes: number of used entries of @out_fallback_sizes
 * @out_max_alignment: largest alignment that ALLOC accepts, in bytes
 * @out_granule: region sizes of domain 0 are multiples of this, in bytes
 * @out_capacity: bytes that this function may acquire from the device, in all
 *	domains; of each domain a multiple of its granule
 * @out_max_region: bytes of the largest possible region in the domains that
 *                  allocations come from by default; no such allocation can be
 *                  larger
 * @out_capabilities: bits of enum flexmem_capabilities
 * @out_fallback_sizes: region sizes of domain 0 in the order in which they are
 *	tried, in bytes. After them a shorter region is tried, which takes the
 *	rest of the capacity
 * @out_name: name of the device behind this function, NUL-terminated
 * @out_va_page: page size of device-virtual address spaces, in bytes; a power
 *	of two from 4 KiB on. 0 without FLEXMEM_CAP_PAGE_TABLES
 * @out_va_start: the lowest address in them
 * @out_va_length: the number of addresses in them
 *
 * Returns the properties and settings of the function. Only @out_state,
 * @out_capacity and @out_max_region can change while the file is open.
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
	__u32 out_state;
	__u32 out_alignment;
	__u32 out_nr_fallback_sizes;
	__aligned_u64 out_max_alignment;
	__aligned_u64 out_granule;
	__aligned_u64 out_capacity;
	__aligned_u64 out_max_region;
	__aligned_u64 out_capabilities;
	__aligned_u64 out_fallback_sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	char out_name[32];
	__aligned_u64 out_va_page;
	__aligned_u64 out_va_start;
	__aligned_u64 out_va_length;
};

#define FLEXMEM_IOCTL_INFO _IO(FLEXMEM_TYPE, FLEXMEM_CMD_INFO)

/* In &flexmem_domain_info.domain: all domains of the function together. */
#define FLEXMEM_DOMAIN_ALL 0xffffffffU

/**
 * enum flexmem_report_flags - what DOMAIN and SNAPSHOT say of all regions
 * @FLEXMEM_REPORT_EXHAUSTED: the driver acquires no further region for tensors
 * @FLEXMEM_REPORT_PROGRAM_EXHAUSTED: the driver acquires no further region for
 *	programs. Equal to the bit above if no slots are set aside for programs
 * @FLEXMEM_REPORT_HIDDEN: SNAPSHOT: the caller is not the administrator, so
 *	@out_allocated to @out_failures of &struct flexmem_snapshot are 0
 * @FLEXMEM_REPORT_LIMITED: DOMAIN: the opener's cgroup, or one above it, has a
 *	limit of bytes
 */
enum flexmem_report_flags {
	FLEXMEM_REPORT_EXHAUSTED = 1 << 0,
	FLEXMEM_REPORT_PROGRAM_EXHAUSTED = 1 << 1,
	FLEXMEM_REPORT_HIDDEN = 1 << 2,
	FLEXMEM_REPORT_LIMITED = 1 << 3,
};

/**
 * struct flexmem_domain_info - ioctl(FLEXMEM_IOCTL_DOMAIN)
 * @size: sizeof(struct flexmem_domain_info)
 * @flags: must be 0
 * @domain: number of the domain, from 0 on; or FLEXMEM_DOMAIN_ALL
 * @out_flags: bits of enum flexmem_report_flags, about regions of this domain
 * @out_nr_domains: number of domains of the function, at least 1
 * @out_type: enum flexmem_domain_type
 * @out_nr_sizes: number of used entries of @out_sizes
 * @out_regions: number of regions acquired
 * @out_granule: region sizes are multiples of this, in bytes
 * @out_capacity: bytes that this function may acquire
 * @out_set_aside: bytes that the device keeps for itself; not in @out_capacity
 * @out_max_region: bytes of the largest possible region
 * @out_total: bytes in the acquired regions
 * @out_free: bytes in them that are free and not reserved for other cgroups
 * @out_largest_free: bytes of the largest block of these
 * @out_sizes: region sizes in the order in which they are tried, in bytes; after
 *	them a shorter region is tried, which takes the rest of the capacity
 * @out_program_total: the part of @out_total in regions of the slots that are
 *	set aside for programs. The rest is for tensors
 * @out_program_free: the part of @out_free in these regions
 * @out_program_largest: bytes of the largest free block in these regions
 * @out_tensor_largest: bytes of the largest free block in the other regions,
 *	without those that are reserved for other cgroups
 * @out_reserved: free bytes in regions that are reserved for other cgroups; not
 *	in @out_free. These regions are for tensors
 * @out_reserved_total: bytes of these regions, free or not
 * @out_limit: the least that the limits of the opener's cgroup and those above it
 *	let it have for tensors. A limit of bytes counts without what the cgroup has
 *	in regions of slots for programs. A limit of regions counts as the regions
 *	that the cgroup is in, and as many of the largest as it may have besides;
 *	only domains that allocations come from by default count
 * @out_limit_left: the least that these limits still allow
 * @out_freed: a number, at least 1, which grows whenever memory was freed since
 *	this file last asked or failed, by any file and in any domain
 * @out_memory: for all domains: bytes of the function's memory, see
 *	enum flexmem_pressure: what it has acquired and what the empty slots could
 *	take. 0 for one domain
 * @out_next: bytes of the largest further region for tensors that the driver would
 *	acquire now; 0 if there is none
 *
 * Describes one of the function's memories, or all of them. The figures of the
 * regions are from the same moment. What is neither free nor reserved is in use,
 * or cannot be handed out: @out_total - @out_free - @out_reserved. For all
 * domains, the members that only one domain has are 0: @out_type, @out_nr_sizes,
 * @out_granule and @out_sizes. If no slots are set aside for programs, programs
 * and tensors share regions, and the figures of programs are 0. @out_limit and
 * @out_limit_left are about all domains; they are 0 without
 * FLEXMEM_REPORT_LIMITED. After a failed ALLOC, a larger @out_freed than its
 * out_event says that memory was freed since that ALLOC began. EINVAL: there
 * is no such domain. An older kernel does not write the last eleven members.
 */
struct flexmem_domain_info {
	__u32 size;
	__u32 flags;
	__u32 domain;
	__u32 out_flags;
	__u32 out_nr_domains;
	__u32 out_type;
	__u32 out_nr_sizes;
	__u32 out_regions;
	__aligned_u64 out_granule;
	__aligned_u64 out_capacity;
	__aligned_u64 out_set_aside;
	__aligned_u64 out_max_region;
	__aligned_u64 out_total;
	__aligned_u64 out_free;
	__aligned_u64 out_largest_free;
	__aligned_u64 out_sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	__aligned_u64 out_program_total;
	__aligned_u64 out_program_free;
	__aligned_u64 out_program_largest;
	__aligned_u64 out_tensor_largest;
	__aligned_u64 out_reserved;
	__aligned_u64 out_reserved_total;
	__aligned_u64 out_limit;
	__aligned_u64 out_limit_left;
	__aligned_u64 out_freed;
	__aligned_u64 out_memory;
	__aligned_u64 out_next;
};

#define FLEXMEM_IOCTL_DOMAIN _IO(FLEXMEM_TYPE, FLEXMEM_CMD_DOMAIN)

/**
 * enum flexmem_reason - which limit stopped an allocation
 * @FLEXMEM_REASON_NONE: none (success, or the error is not about device memory)
 * @FLEXMEM_REASON_CAPACITY: the device has no memory left for a region that is
 *	large enough
 * @FLEXMEM_REASON_SLOTS: the firmware's table has no entry left
 * @FLEXMEM_REASON_MAX_REGIONS: the driver's own limit ``max_regions`` is reached
 * @FLEXMEM_REASON_FRAGMENTATION: enough bytes are free, but not in one block
 * @FLEXMEM_REASON_REGION_SIZE: the request is larger than the largest possible
 *	region
 * @FLEXMEM_REASON_HANDLES: this open file has out_max_handles allocations, live
 *	ones and freed ones that are still in use
 * @FLEXMEM_REASON_REGION_LIMIT: the opener's cgroup, or one above it, would
 *	exceed its limit of regions
 * @FLEXMEM_REASON_CGROUP_LIMIT: the opener's cgroup, or one above it, would
 *	exceed its limit of bytes or handles
 * @FLEXMEM_REASON_ALIGNMENT: like FRAGMENTATION, but for an alignment above
 *	128. The driver tries only a limited number of blocks, so a block that
 *	it has not tried may fit
 * @FLEXMEM_REASON_RESERVED: a region with room is reserved for other cgroups
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
	FLEXMEM_REASON_RESERVED = 10,
};

/* Each enum flexmem_reason is less, in later versions, too. */
#define FLEXMEM_MAX_REASONS 15

/**
 * enum flexmem_alloc_flags - what kind of memory
 * @FLEXMEM_ALLOC_PROGRAM: for a device program. It comes from the slots that
 *	are set aside for programs, if there are any
 * @FLEXMEM_ALLOC_MAPPABLE: can be mapped for the CPU. Start and length are
 *	multiples of 4096, so that no page holds bytes of two allocations.
 *	EOPNOTSUPP without FLEXMEM_CAP_MAP
 * @FLEXMEM_ALLOC_ZEROED: all bytes are zero at first. Without the flag they are
 *	zero, or bytes that the same open file left there
 * @FLEXMEM_ALLOC_GROWABLE: RESIZE will extend it, so the driver does not place
 *	it by the strategy, but where the most free bytes follow. In an empty
 *	region that is the start. Otherwise it is the middle of the largest free
 *	block, so that the allocation before it can grow as well; or the start
 *	of that block if there is too little room in the middle. If the
 *	allocation does not fit into that block because of its alignment, the
 *	strategy decides
 */
enum flexmem_alloc_flags {
	FLEXMEM_ALLOC_PROGRAM = 1 << 0,
	FLEXMEM_ALLOC_MAPPABLE = 1 << 1,
	FLEXMEM_ALLOC_ZEROED = 1 << 2,
	FLEXMEM_ALLOC_GROWABLE = 1 << 3,
};

/**
 * enum flexmem_policy - which domains an allocation may come from
 * @FLEXMEM_POLICY_DEFAULT: all domains of FLEXMEM_DOMAIN_DEVICE. @domains is 0
 * @FLEXMEM_POLICY_BIND: only the domains in @domains
 * @FLEXMEM_POLICY_PREFERRED: the domains in @domains first, then those of
 *	FLEXMEM_DOMAIN_DEVICE
 * @FLEXMEM_POLICY_INTERLEAVE: one chunk in each of the domains in @domains; if
 *	@domains is 0, in each domain of FLEXMEM_DOMAIN_DEVICE. There must be at
 *	least two domains. LOOKUP lists the chunks
 *
 * The driver tries the existing regions of all these domains first, in the
 * order of its strategy. A new region comes from the domain with the lowest
 * number that can give one. FLEXMEM_POLICY_PREFERRED tries existing regions of
 * @domains, existing regions of the others, a new region of @domains, and a new
 * region of the others, in this order and whatever the strategy.
 *
 * The chunks of FLEXMEM_POLICY_INTERLEAVE are in the order of the domains. Each
 * has the same size: the length, divided by the number of domains, and rounded
 * up to the alignment. The last chunk may be smaller, and a small allocation
 * has fewer chunks. If a domain has no room for its chunk, nothing is
 * allocated, and the reason and the figures are about this domain.
 *
 * An allocation with several chunks cannot be resized.
 */
enum flexmem_policy {
	FLEXMEM_POLICY_DEFAULT = 0,
	FLEXMEM_POLICY_BIND = 1,
	FLEXMEM_POLICY_PREFERRED = 2,
	FLEXMEM_POLICY_INTERLEAVE = 3,
};

/**
 * enum flexmem_refusal_flags - how much a caller may know of a limit
 * @FLEXMEM_REFUSAL_HIDDEN: the limit is that of a cgroup outside the caller's
 *	cgroup namespace
 * @FLEXMEM_REFUSAL_SHARED: another open file is charged to the limit, so the
 *	request may succeed when that file frees what it has. A limit of regions:
 *	another file has bytes in a region that is charged to it. Without the flag
 *	no other program can help. HIDDEN: told as well
 * @FLEXMEM_REFUSAL_ALONE: no other open file has an event because of this ALLOC
 *	(&struct flexmem_event says when), none has freed memory during it, and
 *	what the caller's file has freed and is still in use would not make
 *	room. So no other program can help. With the reason REGION_LIMIT and
 *	without SHARED, files of other cgroups could, but nobody asks them. Told
 *	with each reason but NONE, and only by ALLOC
 */
enum flexmem_refusal_flags {
	FLEXMEM_REFUSAL_HIDDEN = 1 << 0,
	FLEXMEM_REFUSAL_SHARED = 1 << 1,
	FLEXMEM_REFUSAL_ALONE = 1 << 2,
};

/**
 * struct flexmem_refusal - the limit of a cgroup that refused a request
 * @resource: enum flexmem_resource: what the limit is of
 * @flags: bits of enum flexmem_refusal_flags
 * @cgroup: id of the cgroup, as in &struct flexmem_owner_entry: the opener's
 *	cgroup, or one above it. HIDDEN: 0
 * @limit: the limit. HIDDEN: what was left of it
 * @used: what was charged to it. HIDDEN: 0
 * @own: the part of it that was charged to this open file
 *
 * The figures are those with which the driver compared, at that moment. @used
 * counts the bytes of requests that are under way, too. The administrator gets
 * all figures, also of a cgroup outside its cgroup namespace; and each caller
 * gets those of the opener's cgroup.
 */
struct flexmem_refusal {
	__u32 resource;
	__u32 flags;
	__aligned_u64 cgroup;
	__aligned_u64 limit;
	__aligned_u64 used;
	__aligned_u64 own;
};

/**
 * struct flexmem_alloc - ioctl(FLEXMEM_IOCTL_ALLOC), and entry of a batch
 * @size: sizeof(struct flexmem_alloc)
 * @flags: of enum flexmem_alloc_flags
 * @length: bytes wanted, at least 1; rounded up to a multiple of 128, and of
 *          @alignment if that is above the page size
 * @alignment: of the offset, in bytes; a power of two up to 1 GiB; anything
 *             below 128, and 0, means 128. The region itself is aligned to 1
 *             GiB, or to its domain's out_granule if it is smaller than 1 GiB
 * @out_handle: number of the allocation in this open file, from 1 to 2^31 - 1;
 *              0 on failure. The driver does not soon reuse the handle of a
 *              freed allocation
 * @out_error: 0, or the error as a positive errno
 * @out_address: where it starts
 * @out_size: bytes of the allocation: @length, rounded up
 * @out_reason: enum flexmem_reason
 * @out_region_reason: with FRAGMENTATION and ALIGNMENT: why the driver could
 *                     not acquire a further region: CAPACITY, SLOTS or
 *                     MAX_REGIONS. Else 0
 * @out_total_free: on ENOMEM: free bytes in all regions for this kind of
 *	memory, in the domains that it may come from, without those that are
 *	reserved for other cgroups
 * @out_largest_free: on ENOMEM: bytes of the largest free block in these
 *	regions
 * @out_max_region: on ENOMEM: bytes of the largest possible region in these
 *	domains
 * @out_client_used: on ENOMEM: bytes allocated by this open file, also by
 *	earlier entries of the same batch
 * @out_regions: on ENOMEM: number of acquired regions, of all domains
 * @policy: enum flexmem_policy; EOPNOTSUPP: the driver does not know it
 * @domains: bit mask of the domains that @policy is about
 * @out_chunks: number of chunks of the allocation; 0 on failure
 * @out_leaving: on ENOMEM: bytes that any open file has freed, but that are
 *	still mapped or used by a program of the device. They become free when
 *	the mapping or the program ends
 * @out_event: on ENOMEM: &struct flexmem_domain_info.out_freed as it was when the
 *	ALLOC began; 0 if no FREE can let it succeed:
 *	with the reasons NONE and REGION_SIZE, and if each region that the file
 *	may use, and each that could be acquired now, is too small
 * @out_refusal: with the reasons REGION_LIMIT and CGROUP_LIMIT: the limit. Else
 *	all members are 0, but @flags may have FLEXMEM_REFUSAL_ALONE
 *
 * Allocates device memory, never less than @length. The reply is also written
 * on failure: @out_handle is 0, @out_size is the rounded request, and the other
 * members describe the limit that stopped the call.
 *
 * The driver scrubs memory that another open file has used. The caller waits
 * for the scrub, and can be killed. A file that is passed on or inherited is
 * the same file. EIO, ETIMEDOUT: the firmware could not scrub the block. The
 * block is quarantined, and the call can be repeated.
 *
 * EINVAL: @length is 0; @alignment is not a power of two or above 1 GiB;
 * @domains does not suit @policy: it names a domain that does not exist, it is
 * 0 although the policy needs a domain, it is not 0 although the policy names
 * none, or INTERLEAVE has fewer than two domains.
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
	__u32 policy;
	__u32 domains;
	__u32 out_chunks;
	__aligned_u64 out_leaving;
	__aligned_u64 out_event;
	struct flexmem_refusal out_refusal;
};

#define FLEXMEM_IOCTL_ALLOC _IO(FLEXMEM_TYPE, FLEXMEM_CMD_ALLOC)

/**
 * enum flexmem_free_flags - how the allocation is named
 * @FLEXMEM_FREE_BY_ADDRESS: by @address; @handle must be 0. Without the flag:
 *	by @handle; @address must be zero
 */
enum flexmem_free_flags {
	FLEXMEM_FREE_BY_ADDRESS = 1 << 0,
};

/**
 * struct flexmem_free - ioctl(FLEXMEM_IOCTL_FREE), and entry of a batch
 * @size: sizeof(struct flexmem_free)
 * @flags: of enum flexmem_free_flags
 * @handle: of the allocation, or 0
 * @out_error: 0, or the error as a positive errno
 * @address: exact start of the allocation, or zero
 *
 * Frees a live allocation of this open file. ENOENT: there is none with that
 * handle or exact address. EINVAL: a member that @flags does not choose is not
 * zero. If the allocation is still mapped, or a device program uses it, its
 * memory stays charged until it is unmapped and the program has ended. A lost
 * allocation can be freed by handle only.
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
 * @entry_size: bytes from one entry to the next, at most 4096; the @size of
 *              each entry must equal it
 * @count: number of entries, from 1 to &struct flexmem_info.out_max_batch
 * @entries: pointer to @count &struct flexmem_alloc, or &struct flexmem_free
 * @out_done: number of entries that were carried out
 * @__reserved: must be 0
 *
 * The driver carries out the entries in order, each like the single command.
 * The result of each entry is in its ``out_error``. The ioctl succeeds even if
 * every entry failed. A malformed entry fails by itself.
 *
 * If entries cannot be read or results cannot be written (EFAULT), the driver
 * undoes the whole batch: nothing is allocated or freed, and the results and
 * @out_done are invalid. A fatal signal ends the batch early (EINTR). In that
 * case the first @out_done entries have been carried out, and have results.
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
 * struct flexmem_chunk_entry - a part of an allocation with one address
 * @address: where it starts
 * @length: its bytes
 * @map_offset: offset for mmap() of a FLEXMEM_ALLOC_MAPPABLE allocation;
 *	otherwise 0
 * @domain: number of its domain
 * @__reserved: 0
 */
struct flexmem_chunk_entry {
	struct flexmem_address address;
	__aligned_u64 length;
	__aligned_u64 map_offset;
	__u32 domain;
	__u32 __reserved;
};

/**
 * struct flexmem_lookup - ioctl(FLEXMEM_IOCTL_LOOKUP)
 * @size: sizeof(struct flexmem_lookup)
 * @flags: must be 0
 * @handle: handle of a live allocation of this open file
 * @out_flags: flags of the ALLOC; and FLEXMEM_LOOKUP_LOST if the allocation was
 *             lost in a reset of the device
 * @out_address: where it starts
 * @out_size: bytes of the allocation, in all chunks
 * @entry_size: sizeof(struct flexmem_chunk_entry), if @count is not 0
 * @count: number of entries for which there is room; 0: no list is wanted
 * @entries: address of the caller's array of &struct flexmem_chunk_entry
 * @out_count: number of chunks, at least 1
 * @__reserved: must be 0
 * @out_map_offset: the @map_offset of the first chunk
 *
 * EMSGSIZE: @count is less than @out_count, and not 0. EBUSY: a list is wanted,
 * and the allocation is being resized.
 *
 * The CPU can map a chunk of a FLEXMEM_ALLOC_MAPPABLE allocation: all of its bytes
 * at its offset for mmap() of the same open file, or a part of them that begins
 * at a page. The mapping must be MAP_SHARED. The offset is valid until the
 * allocation is freed. It is below 2^44, so that 32-bit programs can use it,
 * unless a region is larger than 256 GiB. mmap() fails with EINVAL for a private
 * mapping or one that extends beyond the end, with EPERM for an executable
 * mapping, and with ENOENT if this open file has no mappable allocation at that
 * offset, or has lost it. Only fork() passes a mapping on, and its pages cannot be
 * pinned. After a reset or removal of the device every access to a mapping raises
 * SIGBUS.
 */
struct flexmem_lookup {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 out_flags;
	struct flexmem_address out_address;
	__aligned_u64 out_size;
	__u32 entry_size;
	__u32 count;
	__aligned_u64 entries;
	__u32 out_count;
	__u32 __reserved;
	__aligned_u64 out_map_offset;
};

#define FLEXMEM_IOCTL_LOOKUP _IO(FLEXMEM_TYPE, FLEXMEM_CMD_LOOKUP)

/**
 * enum flexmem_region_flags - kind of a region
 * @FLEXMEM_REGION_PROGRAM: the region is in a slot that is set aside for
 *	programs
 * @FLEXMEM_REGION_HIDDEN: the caller may not see how full this region is:
 *	@free, @largest_free, @nr_allocated, @nr_free and @sequence of its
 *	&struct flexmem_region_entry are 0
 *
 * The administrator (CAP_SYS_ADMIN) sees the figures of each region. Others see
 * those of regions that are reserved for their cgroup or for a cgroup above.
 * Every caller gets the sums of a domain by DOMAIN, and those of the PF or VF.
 */
enum flexmem_region_flags {
	FLEXMEM_REGION_PROGRAM = 1 << 0,
	FLEXMEM_REGION_HIDDEN = 1 << 1,
};

/**
 * struct flexmem_region_entry - one region
 * @region_id: as in &struct flexmem_address
 * @slot: its index in the segment table
 * @flags: bits of enum flexmem_region_flags
 * @total: bytes of the region
 * @free: bytes in free blocks
 * @largest_free: bytes of the largest free block
 * @nr_allocated: number of blocks in use
 * @nr_free: number of free blocks
 * @sequence: number of allocations and frees so far
 * @domain: number of the domain that it lies in
 * @__reserved: 0
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
	__u32 domain;
	__u32 __reserved;
};

/**
 * struct flexmem_segment_entry - one filled entry of the segment table
 * @slot: index of the entry
 * @flags: FLEXMEM_REGION_PROGRAM or 0
 * @region_id: as in &struct flexmem_address
 * @length: bytes of the region that it points at
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
 * @count: number of entries for which there is room
 * @entries: pointer to the entries; may be 0 if @count is 0
 * @out_count: number of filled slots, without those that the firmware may have
 *             emptied
 * @__reserved: must be 0
 * @out_generation: grows with each change of a slot, even with a change that
 *	may have failed
 *
 * Returns the segment table, for a dispatch. If @count is less than @out_count,
 * the call fails with EMSGSIZE and writes nothing to @entries. A call with @count
 * 0 returns the number. If an entry is longer than the kernel's struct, the kernel
 * fills the rest with zeroes.
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
 * struct flexmem_trim - ioctl(FLEXMEM_IOCTL_TRIM)
 * @size: sizeof(struct flexmem_trim)
 * @flags: must be 0
 * @out_regions: number of released regions
 * @__reserved: must be 0
 * @out_bytes: bytes in them
 *
 * Tries once more to scrub quarantined blocks, and then releases every region
 * without a live allocation to the device. If a region was released, the driver
 * may acquire regions again, even if the device refused one before. Only the
 * administrator may call TRIM (EPERM). A region that the device's driver holds
 * for a job stays. If the firmware fails in the middle, the reply counts
 * the regions released so far. If the reply cannot be written, TRIM does
 * nothing (EFAULT). If only the final reply cannot be written, the call still
 * returns its result.
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
 * struct flexmem_rw - ioctl(FLEXMEM_IOCTL_READ, _WRITE)
 * @size: sizeof(struct flexmem_rw)
 * @flags: must be 0
 * @handle: handle of a live allocation of this open file
 * @__reserved: must be 0
 * @offset: first byte in the allocation
 * @length: number of bytes, at least 1
 * @data: pointer to @length bytes of the caller
 * @out_done: number of bytes copied, from the first on
 *
 * Copies from an allocation to the caller (READ) or from the caller to an
 * allocation (WRITE). The allocation need not be mappable. EINVAL: some of the
 * bytes are outside the allocation. The reply is written even on failure, except
 * EOPNOTSUPP: bytes that were copied before stay copied. If another caller
 * writes during the copy, the copy may mix old and new bytes.
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
 * @to: handle of a live allocation of this open file, to which bytes are copied
 * @from: handle of the live allocation from which they are copied; may equal
 *	@to
 * @to_offset: first byte in the allocation @to
 * @from_offset: first byte in the allocation @from
 * @length: number of bytes, at least 128; @length and both offsets are
 *	multiples of 128
 * @out_done: number of bytes copied, from the first on
 *
 * Lets the device copy bytes. They do not go through the CPU, and the
 * allocations need not be mappable. EOPNOTSUPP without FLEXMEM_CAP_COPY.
 * EINVAL: some of the bytes are outside the allocations; offsets or length are
 * not multiples of 128; or the two ranges overlap. EIO: one of the allocations
 * is lost. The reply is written even on failure, except EOPNOTSUPP: bytes that
 * were copied before stay copied, and the contents of the rest of the destination
 * are unknown. If another caller writes during the copy, the result may mix old
 * and new bytes.
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
 * @FLEXMEM_RESOURCE_REGIONS: regions in which the owner has bytes
 * @FLEXMEM_RESOURCE_HANDLES: live allocations
 * @FLEXMEM_RESOURCE_FILES: open files
 * @FLEXMEM_NR_RESOURCES: number of resources in this version
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
 * @FLEXMEM_SCOPE_CGROUP: one cgroup, together with all cgroups below it
 * @FLEXMEM_SCOPE_DEFAULT: each cgroup at the depth ``default_depth`` that has no
 *	limit of its own. The cgroups below that cgroup share its limit. Cgroups
 *	above that depth have no default limit. Until SET_LIMIT changes it, the
 *	default limit is 1,048,576 handles and 4,096 open files, and no limit of
 *	bytes and regions
 *
 * 1 was the scope of a limit for each child of a cgroup. It fails with EINVAL.
 */
enum flexmem_limit_scope {
	FLEXMEM_SCOPE_CGROUP = 0,
	FLEXMEM_SCOPE_DEFAULT = 2,
};

/**
 * enum flexmem_limit_flags - for which functions a limit is set
 * @FLEXMEM_LIMIT_ALL_FUNCTIONS: for each function that is there now, and for
 *	each that appears while the module is loaded, before anyone can open it.
 *	Each function counts for itself. A later SET_LIMIT without this flag
 *	changes the limit of one function
 */
enum flexmem_limit_flags {
	FLEXMEM_LIMIT_ALL_FUNCTIONS = 1 << 0,
};

/* &flexmem_owner_entry.flags: the cgroup was removed; charges and limits stay */
#define FLEXMEM_OWNER_REMOVED 1

/**
 * struct flexmem_owner_entry - the account of one owner
 * @kind: enum flexmem_owner_kind
 * @flags: FLEXMEM_OWNER_REMOVED
 * @id: CLIENT: number of the open file, never used twice on this node. CGROUP:
 *      its id, the inode number of its directory; 0 in a kernel without cgroups,
 *      which has one account for all
 * @uid: CLIENT: uid of the opener, as the caller sees it. CGROUP: 0
 * @pid: CLIENT: process that opened the file, as the caller sees it; 0: not
 *	visible, or it has ended
 * @bytes: bytes of live allocations
 * @orphaned: bytes that are freed but still mapped, or used by a device
 *            program; they are charged too
 * @peak: largest value of @bytes + @orphaned so far, with the chunks that an
 *	ALLOC took before it failed
 * @slots: number of regions in which the owner has bytes, or that are reserved
 *	for it
 * @handles: number of allocations, live ones and those in @orphaned
 * @files: number of open files
 * @reservation: CGROUP: number of regions that should be reserved for it; 0: no
 *	reservation
 * @reserved: CGROUP: number of regions that are reserved for it now. It is less
 *	than @reservation if the device has not granted all of them again after
 *	a reset
 * @limit: CGROUP: for each enum flexmem_resource, the limit that is in effect
 *	for the cgroup, whatever its scope; FLEXMEM_NO_LIMIT: there is none.
 *	CLIENT: FLEXMEM_NO_LIMIT
 * @leaving: CLIENT: the part of @orphaned that device programs still use
 * @waits_ms: CLIENT: for how long nothing but device programs has used the
 *	oldest allocation in @leaving, in ms; 0: none waits
 * @parent: id of the cgroup to which everything of this owner is charged, too.
 *	CLIENT: the opener's cgroup. CGROUP: the cgroup above it; 0: there is none,
 *	or the caller is not an administrator
 * @failures: for each enum flexmem_reason, the ALLOCs that ended in ENOMEM for this
 *	reason; NONE: the kernel had no memory. CGROUP: 0 with
 *	SNAPSHOT_OWN, and if the caller is not an administrator; they begin at 0
 *	again when the cgroup has had neither a file, a charge nor a limit
 *
 * Bytes that were lost in a reset are charged to no account.
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
	__u32 reservation;
	__u32 reserved;
	__aligned_u64 limit[4];
	__aligned_u64 leaving;
	__aligned_u64 waits_ms;
	__aligned_u64 parent;
	__aligned_u64 failures[FLEXMEM_MAX_REASONS];
};

/**
 * enum flexmem_snapshot_flags - what a snapshot shows
 * @FLEXMEM_SNAPSHOT_OWN: an administrator, too, gets the snapshot of a caller
 *	that is none: two owners, the opener's cgroup and then this open file
 */
enum flexmem_snapshot_flags {
	FLEXMEM_SNAPSHOT_OWN = 1 << 0,
};

/**
 * struct flexmem_snapshot - ioctl(FLEXMEM_IOCTL_SNAPSHOT)
 * @size: sizeof(struct flexmem_snapshot)
 * @flags: bits of enum flexmem_snapshot_flags
 * @region_entry_size: bytes from one region to the next, at most 4096 and at
 *                     least sizeof(struct flexmem_region_entry)
 * @region_count: number of regions for which there is room
 * @regions: pointer to &struct flexmem_region_entry; may be 0 when
 *           @region_count is 0
 * @owner_entry_size: bytes from one owner to the next, at most 4096 and at
 *	least sizeof(struct flexmem_owner_entry)
 * @owner_count: number of owners for which there is room; 0: the caller wants no
 *	list of owners
 * @owners: pointer to &struct flexmem_owner_entry; may be 0 when @owner_count
 *          is 0
 * @out_region_count: number of regions
 * @out_owner_count: number of owners that this caller may see; with a list, of
 *	those in it
 * @out_capacity: bytes that this function may acquire
 * @out_total: bytes of the acquired regions
 * @out_free: free bytes in regions that are open to the caller. For the
 *	administrator: open to all
 * @out_owned: bytes in live allocations
 * @out_orphaned: bytes freed but still mapped, or used by a device program
 * @out_reserved: free bytes in regions that are reserved for cgroups. Those in
 *	regions that are open to the caller count as @out_free
 * @out_quarantined: bytes that are not scrubbed because the firmware failed; no
 *	allocation gets them
 * @out_scrubbed: bytes scrubbed since the device was registered
 * @out_clients: number of open files
 * @out_resets: number of resets of the device
 * @out_generation: generation of the segment table
 * @out_flags: bits of enum flexmem_report_flags, about the domains that allocations
 *	come from by default
 * @out_used_program: bytes that were allocated with FLEXMEM_ALLOC_PROGRAM, live
 *	or orphaned
 * @out_allocated: number of chunks in use, of all open files
 * @out_allocs: number of chunks allocated since the device was registered
 * @out_frees: number of chunks since then that are no longer in use; the bytes
 *	that a RESIZE is adding count as a chunk in use, so it is one less until
 *	the RESIZE returns
 * @out_failures: number of ALLOCs since then that failed with ENOMEM
 * @out_timeouts: number of commands that the firmware has not answered in time
 *
 * Returns device, regions, owners and sums, all from the same moment: @out_free
 * + @out_owned + @out_orphaned + @out_reserved + @out_quarantined = @out_total.
 * Only @out_flags and @out_failures may be of a later moment, and the owners
 * after the first 64 of the list: those are read in batches of 64.
 * @out_allocated to @out_failures are for the administrator, with
 * FLEXMEM_SNAPSHOT_OWN, too (FLEXMEM_REPORT_HIDDEN).
 * The root cgroup has @out_owned bytes. The bytes of all clients add up to that,
 * if the list has no more than 64 owners. The administrator (CAP_SYS_ADMIN in the initial user
 * namespace) sees all owners: cgroups first, then clients, each by id. Other
 * callers see the opener's cgroup and this open file. The regions are in the
 * order of their slots. If @region_count is less than @out_region_count, or
 * @owner_count is neither 0 nor at least @out_owner_count, the call fails with
 * EMSGSIZE. Then it writes neither list, but all other members. It fails with
 * EMSGSIZE, too, if owners appear while it writes a list of more than 64, and the
 * list has no room for them. Then parts of the lists are written. If an entry is
 * longer than the kernel's struct, the kernel fills the rest with zeroes.
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
	__aligned_u64 out_flags;
	__aligned_u64 out_used_program;
	__aligned_u64 out_allocated;
	__aligned_u64 out_allocs;
	__aligned_u64 out_frees;
	__aligned_u64 out_failures;
	__aligned_u64 out_timeouts;
};

#define FLEXMEM_IOCTL_SNAPSHOT _IO(FLEXMEM_TYPE, FLEXMEM_CMD_SNAPSHOT)

/**
 * struct flexmem_resource_limit - ioctl(FLEXMEM_IOCTL_SET_LIMIT)
 * @size: sizeof(struct flexmem_resource_limit)
 * @flags: bits of enum flexmem_limit_flags
 * @scope: enum flexmem_limit_scope
 * @resource: enum flexmem_resource
 * @cgroup: id of the cgroup, as in &struct flexmem_owner_entry. DEFAULT: must
 *	be 0
 * @limit: the limit; FLEXMEM_NO_LIMIT removes it
 * @out_limit: @limit
 * @out_used: what was charged to the cgroup on this function just before the
 *	limit was set; with DEFAULT 0
 *
 * SNAPSHOT shows the limits that are in effect. SET_LIMIT is for the
 * administrator (CAP_SYS_ADMIN in the initial user namespace): EPERM for all
 * other callers. The caller must be able to see the cgroup (ENOENT). The cgroup
 * need not have an open file. After a limit was removed, the default is in effect
 * if the cgroup is at the depth ``default_depth``.
 *
 * A charge must be within the limits of the opener's cgroup and of all its
 * ancestors. An open() beyond a limit fails with EMFILE; the root cgroup cannot
 * have a limit of open files (EINVAL), so the administrator can always open
 * one. If the limit is below the charge, no memory is taken away, but new
 * charges fail. A cgroup deeper than 32 levels below the root has no limits:
 * SET_LIMIT refuses it (EINVAL). Files that are opened in it are charged to its
 * ancestor at level 32, which SNAPSHOT shows in its place. A cgroup that is removed
 * keeps its limits until each file that was opened in it is closed and has no
 * memory. SET_LIMIT first checks everything, then writes the reply, and then sets
 * the limit. ENOMEM: SET_LIMIT has set no limit, on any function.
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

#define FLEXMEM_IOCTL_SET_LIMIT _IO(FLEXMEM_TYPE, FLEXMEM_CMD_SET_LIMIT)

/**
 * struct flexmem_reserve - ioctl(FLEXMEM_IOCTL_RESERVE)
 * @size: sizeof(struct flexmem_reserve)
 * @flags: must be 0
 * @cgroup: id of the cgroup, as in &struct flexmem_owner_entry
 * @length: bytes of each region, one of the function's region sizes; 0 if
 *	@count is 0
 * @count: number of regions that are reserved for the cgroup afterwards; 0 ends
 *	the reservation
 * @out_reason: on ENOMEM: enum flexmem_reason
 *
 * Reserves regions for a cgroup. Only files that were opened in the cgroup, or
 * in a cgroup below it, allocate in these regions. They do so before they use
 * other regions. The driver reserves empty regions that exist and acquires the
 * others, so that the memory is available whatever other tenants do. Either all
 * regions are reserved, or nothing changes. A cgroup has one reservation; a new
 * one replaces it. If the reservation of a region ends, the allocations in it
 * stay where they are.
 *
 * The regions count against the limit of regions at once. TRIM and
 * release_after_s leave them. After a reset of the device they are acquired
 * before all others. If the device grants fewer regions then, the driver logs
 * that, and tries again when the function resumes or is reset. The reservation
 * of a cgroup ends when the cgroup is removed.
 *
 * For the administrator (CAP_SYS_ADMIN in the initial user namespace): EPERM for
 * all others. ENOENT: the caller sees no such cgroup. EINVAL: the root cgroup, a
 * cgroup deeper than 32 levels below the root, or a size that no region has.
 * ENOMEM: the device has no further region of this size, or a limit of regions
 * forbids it.
 */
struct flexmem_reserve {
	__u32 size;
	__u32 flags;
	__aligned_u64 cgroup;
	__aligned_u64 length;
	__u32 count;
	__u32 out_reason;
};

#define FLEXMEM_IOCTL_RESERVE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_RESERVE)

/**
 * struct flexmem_resize - ioctl(FLEXMEM_IOCTL_RESIZE)
 * @size: sizeof(struct flexmem_resize)
 * @flags: must be 0
 * @handle: handle of a live allocation of this open file
 * @out_reason: on ENOMEM: enum flexmem_reason
 * @length: new length in bytes, at least 1; rounded up as by ALLOC
 * @out_size: present length in bytes, even after a failure
 * @out_max: on EAGAIN: the largest length that is possible at this moment
 * @out_refusal: with a reason: the limit. Else all members are 0
 *
 * Extends an allocation at its end, or shortens it there. Its start, its handle
 * and the remaining bytes do not change. Added bytes are like those of a new
 * allocation with the same flags. The reply is written even on failure; then
 * the allocation has not changed.
 *
 * EAGAIN: too few free bytes follow the allocation in its region. ENOMEM: a
 * limit forbids the new length. EBUSY: the allocation is mapped or bound, or
 * another call uses it. EIO: the allocation is lost. EIO, ETIMEDOUT: the
 * firmware could not scrub the added bytes, and they are quarantined. EINVAL:
 * @length is 0.
 * EOPNOTSUPP: the allocation has several chunks.
 */
struct flexmem_resize {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 out_reason;
	__aligned_u64 length;
	__aligned_u64 out_size;
	__aligned_u64 out_max;
	struct flexmem_refusal out_refusal;
};

#define FLEXMEM_IOCTL_RESIZE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_RESIZE)

/**
 * struct flexmem_va_reserve - ioctl(FLEXMEM_IOCTL_VA_RESERVE)
 * @size: sizeof(struct flexmem_va_reserve)
 * @flags: must be 0
 * @length: bytes wanted, at least 1; rounded up to a multiple of
 *	&struct flexmem_info.out_va_page
 * @out_address: the lowest reserved address, a multiple of the page size; 0
 *	after a failure
 * @out_largest_free: addresses in the longest range that is free now
 *
 * Reserves device-virtual addresses: the lowest ones that are free. Nothing is
 * mapped there before VA_BIND. An open file has one address space, from its
 * first VA_RESERVE on. Other files cannot use it. close() unmaps everything in
 * it, before it frees memory. If a device program still runs in the space, its
 * accesses fault from then on.
 *
 * ENOSPC: no free range is long enough. EMFILE: the file has as many ranges and
 * bindings together as it may have allocations (&struct
 * flexmem_info.out_max_handles). After these two errors the reply is written.
 * EINVAL: @length is 0. EOPNOTSUPP, as for all commands about device-virtual
 * addresses: the device has no page tables (FLEXMEM_CAP_PAGE_TABLES).
 */
struct flexmem_va_reserve {
	__u32 size;
	__u32 flags;
	__aligned_u64 length;
	__aligned_u64 out_address;
	__aligned_u64 out_largest_free;
};

#define FLEXMEM_IOCTL_VA_RESERVE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_VA_RESERVE)

/**
 * struct flexmem_va_free - ioctl(FLEXMEM_IOCTL_VA_FREE)
 * @size: sizeof(struct flexmem_va_free)
 * @flags: must be 0
 * @address: what VA_RESERVE returned
 *
 * Frees a reserved range as a whole. ENOENT: no range of this open file begins
 * there. EBUSY: VA_UNBIND has not ended every VA_BIND in the range.
 */
struct flexmem_va_free {
	__u32 size;
	__u32 flags;
	__aligned_u64 address;
};

#define FLEXMEM_IOCTL_VA_FREE _IO(FLEXMEM_TYPE, FLEXMEM_CMD_VA_FREE)

/**
 * enum flexmem_va_access - what device programs may do with bound memory
 * @FLEXMEM_VA_READ: read it
 * @FLEXMEM_VA_WRITE: write to it
 * @FLEXMEM_VA_EXECUTE: run it as code
 *
 * A device that cannot tell two accesses apart may allow both.
 */
enum flexmem_va_access {
	FLEXMEM_VA_READ = 1 << 0,
	FLEXMEM_VA_WRITE = 1 << 1,
	FLEXMEM_VA_EXECUTE = 1 << 2,
};

/**
 * struct flexmem_va_bind - ioctl(FLEXMEM_IOCTL_VA_BIND)
 * @size: sizeof(struct flexmem_va_bind)
 * @flags: must be 0
 * @handle: handle of a live allocation of this open file
 * @access: bits of enum flexmem_va_access, at least one
 * @address: address of the first byte, in a reserved range
 * @offset: offset of the first byte in the allocation
 * @length: bytes, at least 1
 *
 * Maps bytes of an allocation for device programs, at adjacent addresses even if
 * the bytes lie in several chunks. @address, @offset and @length are multiples
 * of &struct flexmem_info.out_va_page. Each chunk of the allocation must begin
 * and end at a multiple of the page size, because a page must not show bytes of
 * another allocation: choose @length and @alignment of ALLOC so.
 *
 * EINVAL: one of these rules is broken, @access is 0 or has an unknown bit, or
 * the bytes are not in the allocation. ENXIO: the addresses are not all in one
 * reserved range. EEXIST: one of them is taken by a VA_BIND. EBUSY: one of the
 * bytes is; or the allocation is being resized. EMFILE: as in
 * &struct flexmem_va_reserve. ENOSPC: the device has no room in its page tables,
 * which all files share. After these errors nothing is bound.
 *
 * EIO, ETIMEDOUT, ENOMEM: device programs may reach some of the bytes.
 * VA_LOOKUP does not find them, but addresses and bytes may stay taken.
 * VA_UNBIND frees them; it fails with ENOENT if they are free. EINTR (the caller
 * was killed): the same, or nothing is bound, or all bytes are bound.
 *
 * A bound allocation cannot be resized. FREE of a bound allocation ends its
 * handle, but the memory stays bound and charged until VA_UNBIND or close(), as
 * memory that is mapped. A reset of the device unmaps everything; the
 * binding of a lost allocation stays until VA_UNBIND.
 */
struct flexmem_va_bind {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 access;
	__aligned_u64 address;
	__aligned_u64 offset;
	__aligned_u64 length;
};

#define FLEXMEM_IOCTL_VA_BIND _IO(FLEXMEM_TYPE, FLEXMEM_CMD_VA_BIND)

/**
 * struct flexmem_va_unbind - ioctl(FLEXMEM_IOCTL_VA_UNBIND)
 * @size: sizeof(struct flexmem_va_unbind)
 * @flags: must be 0
 * @address: the @address of a VA_BIND
 *
 * Undoes one VA_BIND as a whole. A device program that still uses the addresses
 * faults. ENOENT: no VA_BIND has taken addresses from there on. EBUSY: another
 * thread binds or unbinds there. EIO, ETIMEDOUT, ENOMEM: device programs may
 * still reach the bytes, and the addresses stay taken. VA_LOOKUP does not find
 * them. The call can be repeated. EINTR (the caller was killed): the same, or the
 * VA_BIND is undone, and a repeated call fails with ENOENT.
 */
struct flexmem_va_unbind {
	__u32 size;
	__u32 flags;
	__aligned_u64 address;
};

#define FLEXMEM_IOCTL_VA_UNBIND _IO(FLEXMEM_TYPE, FLEXMEM_CMD_VA_UNBIND)

/**
 * struct flexmem_va_lookup - ioctl(FLEXMEM_IOCTL_VA_LOOKUP)
 * @size: sizeof(struct flexmem_va_lookup)
 * @flags: must be 0
 * @handle: handle of a live allocation of this open file; 0: look up @address
 * @out_handle: handle of the allocation; 0 if it was freed
 * @address: with @handle 0: any address; otherwise 0
 * @offset: with a handle: offset of a byte in the allocation; otherwise 0
 * @out_address: address of the byte
 * @out_offset: its offset in the allocation
 * @out_length: bytes that are bound from there on by the same VA_BIND
 * @out_chunk: number of the chunk that holds it, from 0 on
 * @out_access: bits of enum flexmem_va_access
 *
 * Finds the byte that is bound at an address, or the address at which a byte is
 * bound. ENOENT: nothing is bound there; the byte is not bound; another thread
 * binds or unbinds it; or there is no such handle. After a reset of the device
 * nothing is mapped, but VA_LOOKUP still finds what is bound. EINVAL: a member is not 0
 * that must be. EBUSY: the allocation is being resized.
 */
struct flexmem_va_lookup {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 out_handle;
	__aligned_u64 address;
	__aligned_u64 offset;
	__u32 out_chunk;
	__u32 out_access;
	__aligned_u64 out_address;
	__aligned_u64 out_offset;
	__aligned_u64 out_length;
};

#define FLEXMEM_IOCTL_VA_LOOKUP _IO(FLEXMEM_TYPE, FLEXMEM_CMD_VA_LOOKUP)

/**
 * enum flexmem_pressure - how full a function is
 * @FLEXMEM_PRESSURE_NONE: none of the levels below
 * @FLEXMEM_PRESSURE_MODERATE: begins when FLEXMEM_MODERATE_ENTER percent of the
 *	function's memory are in use, and ends when less than
 *	FLEXMEM_MODERATE_LEAVE percent are in use
 * @FLEXMEM_PRESSURE_CRITICAL: begins when FLEXMEM_CRITICAL_ENTER percent are in
 *	use, and ends when less than FLEXMEM_CRITICAL_LEAVE percent are in use
 *
 * The memory of a function is what it has acquired plus what it could still
 * acquire, not counting slots that only programs use. Bytes are in use if they
 * are allocated, freed but still mapped, or quarantined.
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

/* Least time between two events, in milliseconds. */
#define FLEXMEM_EVENT_MS 100

/**
 * enum flexmem_event_flags - what an event tells
 * @FLEXMEM_EVENT_LEVEL: the level has changed since the last event that the file
 *	read, even if it has changed back
 * @FLEXMEM_EVENT_FREED: memory was freed since the file's last ALLOC, which
 *	failed, so a new try may succeed
 * @FLEXMEM_EVENT_WANTED: another file lacks @wanted bytes
 *
 * An event has at least one of these bits.
 */
enum flexmem_event_flags {
	FLEXMEM_EVENT_LEVEL = 1 << 0,
	FLEXMEM_EVENT_FREED = 1 << 1,
	FLEXMEM_EVENT_WANTED = 1 << 2,
};

/**
 * struct flexmem_event - result of read() of a node
 * @size: sizeof(struct flexmem_event) of this kernel, or the length of the
 *        buffer if that is less
 * @level: enum flexmem_pressure
 * @in_use: bytes in use
 * @memory: bytes of the function's memory, see enum flexmem_pressure; at least
 *          @in_use
 * @sequence: number of the event among those that the file has read, from 1 on
 * @wanted: with FLEXMEM_EVENT_WANTED: bytes that other files lack whose ALLOCs
 *          have failed and could succeed if this file freed memory. Else 0
 * @flags: bits of enum flexmem_event_flags
 * @__reserved: 0
 *
 * An open file has an event if the level has changed since the last event that
 * it read, even if the level has changed back. A new file has an event if the
 * level is not FLEXMEM_PRESSURE_NONE. A file also has an event if its last
 * ALLOC failed with ENOMEM, and any file has freed memory since that ALLOC
 * began, in any domain. An ALLOC that fails with another error than ENOMEM
 * counts as freed memory. What an ALLOC was charged before it failed with
 * ENOMEM is freed memory only if a limit has refused another request meanwhile
 * that is smaller, of another cgroup, or for other places: otherwise two files
 * that fail could wake each other for ever. What a failed RESIZE was charged is
 * freed memory if a limit has refused any request meanwhile. The chunks that an
 * ALLOC of several chunks got before it failed are freed memory for other files.
 * There is one such event for each failed ALLOC, unless a
 * later ALLOC succeeds, and none if the ALLOC failed for the reason NONE or
 * REGION_SIZE. A file gets at most one event in FLEXMEM_EVENT_MS.
 *
 * An ALLOC that fails for lack of room is an event for all other files of the
 * function, whatever the level is. An ALLOC that a limit of a cgroup refuses is
 * an event for the other files that are charged to this limit, and for no
 * others. It is no event if it would fail even if no other file had memory:
 * with the reasons NONE, REGION_SIZE and HANDLES; if the file itself has too
 * much for its limits; if no other file is charged to the limit; or if no region
 * that the file may use is large enough beside what the file has in it. The
 * event has the bytes of the ALLOC. If ALLOCs of several files fail within
 * FLEXMEM_EVENT_MS, it has the sum, but of each file only the largest, and no
 * more than the memory of the function. A file that reads late gets the largest
 * sum of the last four such events. A file gets no such event for an ALLOC of
 * its own, none for an ALLOC that failed before the file was opened, and none for
 * one after which, before the event, the same file has got as many bytes by one
 * ALLOC or RESIZE, or was closed.
 *
 * poll() returns POLLIN | POLLRDNORM while there is an event, and POLLERR |
 * POLLHUP after the removal of the device. read() returns the level of the
 * latest event, and the present bytes. It waits for an event, interruptibly,
 * unless the file is O_NONBLOCK (EAGAIN). EINVAL: the buffer is shorter than
 * FLEXMEM_EVENT_MIN bytes. EFAULT: the event stays. ENODEV: the device was
 * removed. An older kernel writes the first FLEXMEM_EVENT_MIN bytes, and @size
 * says so.
 *
 * After an event a program should free memory that it does not need, before
 * other programs run out of memory. The cache of a framework is an example. A
 * program that waits for memory polls with a time limit, and repeats its ALLOC
 * after an event with FLEXMEM_EVENT_FREED. A thread that waits beside a reader
 * of events compares &struct flexmem_domain_info.out_freed instead, because each
 * event is read once. After an event with
 * FLEXMEM_EVENT_WANTED a program frees memory that it holds but does not use, at
 * most @wanted bytes.
 */
struct flexmem_event {
	__u32 size;
	__u32 level;
	__aligned_u64 in_use;
	__aligned_u64 memory;
	__aligned_u64 sequence;
	__aligned_u64 wanted;
	__u32 flags;
	__u32 __reserved;
};

#define FLEXMEM_EVENT_MIN 32

#endif /* _UAPI_LINUX_FLEXMEM_H */
