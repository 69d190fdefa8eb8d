/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libflexmem - device memory of AI accelerators, through the flexmem driver.
 */
#ifndef FLEXMEM_H
#define FLEXMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: Conventions
 *
 * Errors: a function that can fail returns 0 or a negative errno. The library
 * keeps no global error state, and the caller must not read errno. A failed
 * call changes nothing and writes nothing to its out-pointers, unless its
 * description says otherwise. Every call that reaches the device can also
 * return:
 *
 *  - -ENODEV: the device was removed; the object can only be closed.
 *  - -ETIMEDOUT: the firmware did not answer in time; call again.
 *  - -EIO: the firmware failed the request or could not be reached; or the
 *    allocation was lost in a reset of the device (FLEXMEM_LOST).
 *  - -EINTR: the process is being killed. Only a fatal signal ends a wait in
 *    the driver, so the library does not repeat the call.
 *  - -ENOMEM: host memory is exhausted.
 *  - -ENOTTY, -EOPNOTSUPP, -E2BIG: the driver is older than this library and
 *    does not know the call.
 *
 * Structs grow: each pointer to a struct (or to an array of them) comes with
 * the size that the caller compiled with; pass ``sizeof(*pointer)``. The
 * library touches no byte beyond that size. If the caller's struct is longer
 * than the library's, the library zeroes the rest of a result; the rest of an
 * argument must be zero (-E2BIG). A size below that of the first version is
 * -EINVAL. &struct flexmem_virtual_address never changes and needs no size.
 *
 * Threads: several threads may use a device object at the same time. No thread
 * may use it during or after its close. After fork() parent and child share the
 * open file, and therefore the allocations. The driver frees the allocations
 * when both processes have closed the file.
 *
 * Sizes, offsets and alignments are bytes. A pointer may be NULL only where its
 * description says so. Otherwise the call returns -EINVAL if it notices the
 * NULL.
 *
 * The library prints only warnings about settings of a cache without a log
 * callback. All other messages go to flexmem_device_set_log(). The library
 * never ends the process.
 */

#if defined(__GNUC__)
#define FLEXMEM_API __attribute__((visibility("default")))
#else
#define FLEXMEM_API
#endif

/*
 * struct flexmem_device - an open device with its allocations
 */
struct flexmem_device;

/**
 * struct flexmem_virtual_address - VirtualAddress: where a chunk begins
 * @region_id: VF: slot of the region. PF: physical address of the region's
 *             first byte.
 * @offset: bytes from the start of the region, a multiple of 128
 */
struct flexmem_virtual_address {
	uint64_t region_id;
	uint64_t offset;
};

/** enum flexmem_function - whether a node is that of a PF or of a VF */
enum flexmem_function {
	FLEXMEM_PF = 0,
	FLEXMEM_VF = 1,
};

/** enum flexmem_strategy - which free block of a region is taken */
enum flexmem_strategy {
	FLEXMEM_FIRST_FIT = 0,
	FLEXMEM_BEST_FIT = 1,
};

/** enum flexmem_region_order - in which order regions are tried */
enum flexmem_region_order {
	FLEXMEM_LOAD_BALANCE = 1,
	FLEXMEM_FILL_FIRST = 2,
};

/** enum flexmem_acquisition - when regions are acquired from the device */
enum flexmem_acquisition {
	FLEXMEM_LAZY = 0,
	FLEXMEM_PREALLOC = 1,
};

/**
 * enum flexmem_limit - why an allocation failed
 * @FLEXMEM_LIMIT_NONE: the call did not fail, or not for lack of device memory
 * @FLEXMEM_LIMIT_CAPACITY: the device has no memory left for a region that is
 *	large enough
 * @FLEXMEM_LIMIT_SLOTS: the firmware's table has no slot left
 * @FLEXMEM_LIMIT_MAX_REGIONS: the driver's own limit of regions is reached
 * @FLEXMEM_LIMIT_FRAGMENTATION: enough bytes are free, but not in one block
 * @FLEXMEM_LIMIT_REGION_SIZE: the request is larger than the largest possible
 *	region
 * @FLEXMEM_LIMIT_HANDLES: the device object has max_handles live allocations
 * @FLEXMEM_LIMIT_CGROUP_REGIONS: the opener's cgroup, or one above it, would
 *	exceed its limit of regions
 * @FLEXMEM_LIMIT_CGROUP: the opener's cgroup, or one above it, would exceed its
 *	limit of bytes or allocations
 * @FLEXMEM_LIMIT_ALIGNMENT: like FLEXMEM_LIMIT_FRAGMENTATION, but for a large
 *	alignment. The driver tries only a limited number of blocks, so a block
 *	that it has not tried may fit
 * @FLEXMEM_LIMIT_RESERVED: a region with room is reserved for other cgroups
 * @FLEXMEM_LIMIT_NO_LENGTH: -EINVAL: the length is 0
 * @FLEXMEM_LIMIT_ALIGNMENT_POWER: -EINVAL: the alignment, in
 *	&flexmem_failure.asked, is not a power of two
 * @FLEXMEM_LIMIT_ALIGNMENT_MAX: -EINVAL: the alignment is above
 *	&flexmem_properties.max_alignment
 * @FLEXMEM_LIMIT_DOMAINS: -EINVAL: the domains, in &flexmem_failure.asked, do
 *	not suit the placement
 *
 * Values up to 99 are the driver's. Later versions may add values. Treat an
 * unknown value like any other lack of memory.
 */
enum flexmem_limit {
	FLEXMEM_LIMIT_NONE = 0,
	FLEXMEM_LIMIT_CAPACITY = 1,
	FLEXMEM_LIMIT_SLOTS = 2,
	FLEXMEM_LIMIT_MAX_REGIONS = 3,
	FLEXMEM_LIMIT_FRAGMENTATION = 4,
	FLEXMEM_LIMIT_REGION_SIZE = 5,
	FLEXMEM_LIMIT_HANDLES = 6,
	FLEXMEM_LIMIT_CGROUP_REGIONS = 7,
	FLEXMEM_LIMIT_CGROUP = 8,
	FLEXMEM_LIMIT_ALIGNMENT = 9,
	FLEXMEM_LIMIT_RESERVED = 10,
	FLEXMEM_LIMIT_NO_LENGTH = 100,
	FLEXMEM_LIMIT_ALIGNMENT_POWER = 101,
	FLEXMEM_LIMIT_ALIGNMENT_MAX = 102,
	FLEXMEM_LIMIT_DOMAINS = 103,
};

/**
 * FLEXMEM_PROGRAM - flag of allocations, regions and segments: device programs
 *
 * An allocation with this flag comes from the slots that are set aside for
 * programs, if there are any. A region or segment with this flag is in one of
 * these slots.
 */
#define FLEXMEM_PROGRAM (UINT32_C(1) << 0)

/**
 * FLEXMEM_MAPPABLE - flag of allocations: flexmem_device_map() works
 *
 * Start and length are multiples of 4096. Needs FLEXMEM_CAN_MAP.
 */
#define FLEXMEM_MAPPABLE (UINT32_C(1) << 1)

/**
 * FLEXMEM_ZEROED - flag of allocations: all bytes are zero at first
 *
 * Without the flag they are zero, or bytes that the same owner left there.
 * Needs FLEXMEM_CAN_SCRUB.
 */
#define FLEXMEM_ZEROED (UINT32_C(1) << 2)

/**
 * FLEXMEM_GROWABLE - flag of allocations that flexmem_device_resize() extends
 *
 * The driver places the allocation where the most free bytes follow: at the
 * start of an empty region, or in the middle of the largest free block.
 */
#define FLEXMEM_GROWABLE (UINT32_C(1) << 3)

/**
 * FLEXMEM_HIDDEN - flag of regions and statistics: figures are hidden from the
 * caller
 *
 * Only the administrator sees the figures of one region. If the region is
 * reserved for a cgroup, that cgroup and the cgroups below it see them too.
 * Every caller gets the sums of a domain from flexmem_device_domain(), and the
 * sums of the device from flexmem_device_statistics(). What counts as free in
 * them depends on the caller: memory that is reserved for other cgroups does
 * not.
 */
#define FLEXMEM_HIDDEN (UINT32_C(1) << 4)

/**
 * FLEXMEM_LOST - flag of a look-up: the allocation was lost in a reset
 *
 * The bytes are gone. The allocation can only be looked up, and freed by its
 * handle.
 */
#define FLEXMEM_LOST (UINT32_C(1) << 31)

/** FLEXMEM_CAN_SCRUB - capability: no owner sees bytes of another */
#define FLEXMEM_CAN_SCRUB (UINT64_C(1) << 0)

/** FLEXMEM_CAN_MAP - capability: FLEXMEM_MAPPABLE and flexmem_device_map() */
#define FLEXMEM_CAN_MAP (UINT64_C(1) << 1)

/** FLEXMEM_CAN_RW - capability: flexmem_device_read() and _write() */
#define FLEXMEM_CAN_RW (UINT64_C(1) << 2)

/** FLEXMEM_CAN_COPY - capability: flexmem_device_copy() */
#define FLEXMEM_CAN_COPY (UINT64_C(1) << 3)

/**
 * FLEXMEM_CAN_PAGE_TABLES - capability: device-virtual addresses
 * (flexmem_device_space_reserve())
 */
#define FLEXMEM_CAN_PAGE_TABLES (UINT64_C(1) << 4)

/** FLEXMEM_EXHAUSTED - flag of statistics: no further region is acquired */
#define FLEXMEM_EXHAUSTED (UINT32_C(1) << 0)

/**
 * FLEXMEM_PROGRAM_EXHAUSTED - flag of statistics: no further region is acquired
 * for the slots that are set aside for programs
 */
#define FLEXMEM_PROGRAM_EXHAUSTED (UINT32_C(1) << 1)

/**
 * FLEXMEM_LIMITED - flag of a domain's state: the cgroup that opened the device,
 * or one above it, has a limit of bytes
 */
#define FLEXMEM_LIMITED (UINT32_C(1) << 2)

#define FLEXMEM_FALLBACK_SIZES 8

/**
 * enum flexmem_condition - whether a device works
 * @FLEXMEM_USABLE: it works
 * @FLEXMEM_UNRESPONSIVE: its firmware does not answer; the driver asks it again
 *	now and then
 * @FLEXMEM_SUSPENDED: it sleeps; calls wait until it wakes up
 * @FLEXMEM_WEDGED: it has failed, and nothing but a reset works
 * @FLEXMEM_REMOVED: its driver is being removed
 */
enum flexmem_condition {
	FLEXMEM_USABLE = 0,
	FLEXMEM_UNRESPONSIVE = 1,
	FLEXMEM_SUSPENDED = 2,
	FLEXMEM_WEDGED = 3,
	FLEXMEM_REMOVED = 4,
};

/**
 * struct flexmem_properties - properties and settings of a device
 * @function: enum flexmem_function
 * @strategy: enum flexmem_strategy
 * @order: enum flexmem_region_order
 * @acquisition: enum flexmem_acquisition
 * @slots: entries of the segment table
 * @max_regions: most regions that may be acquired, never more than @slots
 * @program_slots: number of slots that only FLEXMEM_PROGRAM uses; 0: all slots
 *	are shared
 * @max_handles: most live allocations of one device object
 * @max_batch: most entries of one call to the driver; batches of the library
 *             may be longer
 * @condition: enum flexmem_condition
 * @alignment: every offset and size is a multiple of this (128)
 * @fallback_count: number of used entries of @fallback_sizes
 * @max_alignment: largest alignment of an allocation
 * @granule: sizes of regions of domain 0 are multiples of this
 * @capacity: bytes that may be acquired from the device, in all domains
 * @max_region: size of the largest possible region in the domains that
 *              allocations come from by default; no such allocation can be
 *              larger
 * @capabilities: abilities of this PF or VF: bits of FLEXMEM_CAN_SCRUB,
 *                FLEXMEM_CAN_MAP, FLEXMEM_CAN_RW, FLEXMEM_CAN_COPY,
 *                FLEXMEM_CAN_PAGE_TABLES
 * @fallback_sizes: sizes of regions of domain 0 in the order in which they are
 *                  tried
 * @name: name of the device behind this PF or VF, NUL-terminated
 * @space_page: page size of device-virtual addresses, a power of two from 4096
 *	on; 0 without FLEXMEM_CAN_PAGE_TABLES
 * @space_start: the lowest device-virtual address
 * @space_length: the number of device-virtual addresses
 *
 * Only @condition, @capacity and @max_region can change while the device is
 * open.
 */
struct flexmem_properties {
	uint32_t function;
	uint32_t strategy;
	uint32_t order;
	uint32_t acquisition;
	uint32_t slots;
	uint32_t max_regions;
	uint32_t program_slots;
	uint32_t max_handles;
	uint32_t max_batch;
	uint32_t condition;
	uint32_t alignment;
	uint32_t fallback_count;
	uint64_t max_alignment;
	uint64_t granule;
	uint64_t capacity;
	uint64_t max_region;
	uint64_t capabilities;
	uint64_t fallback_sizes[FLEXMEM_FALLBACK_SIZES];
	char name[32];
	uint64_t space_page;
	uint64_t space_start;
	uint64_t space_length;
};

#define FLEXMEM_DOMAINS 32

/* In place of the number of a domain: all domains of the device. */
#define FLEXMEM_WHOLE_DEVICE 0xffffffffu

/**
 * enum flexmem_memory_type - the kind of memory of a domain
 * @FLEXMEM_MEMORY_DEVICE: the device's main memory, such as an HBM stack
 * @FLEXMEM_MEMORY_ON_CHIP: small and fast memory beside the cores
 * @FLEXMEM_MEMORY_HOST_VISIBLE: memory that the CPU reaches through a window
 */
enum flexmem_memory_type {
	FLEXMEM_MEMORY_DEVICE = 0,
	FLEXMEM_MEMORY_ON_CHIP = 1,
	FLEXMEM_MEMORY_HOST_VISIBLE = 2,
};

/**
 * struct flexmem_domain_state - one of a device's memories
 * @id: number of the domain, from 0 on
 * @count: number of domains of the device, 1 to FLEXMEM_DOMAINS
 * @memory: enum flexmem_memory_type
 * @flags: bits of FLEXMEM_EXHAUSTED and FLEXMEM_PROGRAM_EXHAUSTED, about
 *	regions of this domain, and FLEXMEM_LIMITED
 * @regions: number of regions acquired
 * @size_count: number of used entries of @sizes
 * @granule: sizes of regions are multiples of this
 * @capacity: bytes that may be acquired
 * @set_aside: bytes that the device keeps for itself; not in @capacity
 * @max_region: size of the largest possible region
 * @total: bytes in the acquired regions
 * @free: bytes in the acquired regions that are free and not reserved for other
 *	cgroups
 * @largest_free: bytes of the largest block of these
 * @sizes: sizes of regions in the order in which they are tried
 * @program_total: the part of @total in regions of slots that are set aside for
 *	programs. The rest is for tensors. 0: programs and tensors share regions
 * @program_free: the part of @free in these regions
 * @program_largest: bytes of the largest free block in these regions
 * @tensor_largest: bytes of the largest free block in the other regions, without
 *	those that are reserved for other cgroups; 0 also if the driver is older
 *	than this member
 * @reserved: free bytes in regions that are reserved for other cgroups; not in
 *	@free. These regions are for tensors. So @total - @free - @reserved are
 *	in use, or cannot be handed out. 0 also if the driver is older than this
 *	member
 * @reserved_total: bytes of these regions, free or not; 0 also if the driver is
 *	older than this member
 * @limit: with FLEXMEM_LIMITED in @flags, the least that the limits of the cgroup
 *	that opened the device, and of those above it, let it have for tensors. A
 *	limit of bytes counts without what the cgroup has in regions of slots that
 *	are set aside for programs. A limit of regions counts as the regions that
 *	the cgroup is in, and as many of the largest as it may have besides; only
 *	domains that allocations come from by default count. Else 0
 * @limit_left: with FLEXMEM_LIMITED, the least that these limits still allow.
 *	Else 0
 * @freed: a number that grows whenever memory was freed since this device object
 *	last asked or failed, by any program and in any domain; 0: the driver is
 *	older than this member
 * @memory_total: for the whole device: bytes that it has or could acquire with the
 *	slots that are left, without slots that are set aside for programs. It is
 *	less than @capacity if the slots cannot take it. 0 for one domain, or if
 *	the driver is older than this member
 * @next_region: bytes of the largest further region for tensors that the driver
 *	would acquire now; 0: none, or the driver is older than this member
 */
struct flexmem_domain_state {
	uint32_t id;
	uint32_t count;
	uint32_t memory;
	uint32_t flags;
	uint32_t regions;
	uint32_t size_count;
	uint64_t granule;
	uint64_t capacity;
	uint64_t set_aside;
	uint64_t max_region;
	uint64_t total;
	uint64_t free;
	uint64_t largest_free;
	uint64_t sizes[FLEXMEM_FALLBACK_SIZES];
	uint64_t program_total;
	uint64_t program_free;
	uint64_t program_largest;
	uint64_t tensor_largest;
	uint64_t reserved;
	uint64_t reserved_total;
	uint64_t limit;
	uint64_t limit_left;
	uint64_t freed;
	uint64_t memory_total;
	uint64_t next_region;
};

/**
 * enum flexmem_account_kind - kind of an account
 * @FLEXMEM_ACCOUNT_CLIENT: one open file, that is one device object
 * @FLEXMEM_ACCOUNT_CGROUP: all files that were opened in one cgroup (version 2)
 *	or in a cgroup below it
 */
enum flexmem_account_kind {
	FLEXMEM_ACCOUNT_CLIENT = 0,
	FLEXMEM_ACCOUNT_CGROUP = 1,
};

/**
 * enum flexmem_charge - resource that is charged to accounts and can be limited
 * @FLEXMEM_CHARGE_BYTES: device memory
 * @FLEXMEM_CHARGE_REGIONS: slots: one for each region in which the account has
 *	bytes
 * @FLEXMEM_CHARGE_HANDLES: live allocations
 * @FLEXMEM_CHARGE_FILES: open files
 */
enum flexmem_charge {
	FLEXMEM_CHARGE_BYTES = 0,
	FLEXMEM_CHARGE_REGIONS = 1,
	FLEXMEM_CHARGE_HANDLES = 2,
	FLEXMEM_CHARGE_FILES = 3,
};

/** FLEXMEM_CHARGES - number of members of enum flexmem_charge */
#define FLEXMEM_CHARGES 4

/**
 * enum flexmem_limit_for - what a limit is for
 * @FLEXMEM_FOR_CGROUP: one cgroup, together with all cgroups below it
 * @FLEXMEM_FOR_DEFAULT: each cgroup at the depth of the driver's parameter
 *	``default_depth``, if the cgroup has no limit of its own. At first this
 *	limit is 1,048,576 handles and 4,096 open files
 * @FLEXMEM_FOR_ALL_FUNCTIONS: a bit that is added to one of the others: for each
 *	function of each device, also for those that appear later. Each function
 *	counts for itself
 */
enum flexmem_limit_for {
	FLEXMEM_FOR_CGROUP = 0,
	FLEXMEM_FOR_DEFAULT = 2,
	FLEXMEM_FOR_ALL_FUNCTIONS = 0x100,
};

/** FLEXMEM_UNLIMITED - no limit */
#define FLEXMEM_UNLIMITED UINT64_MAX

/**
 * enum flexmem_quota_flags - more about the limit of a cgroup
 * @FLEXMEM_QUOTA_SHARED: another open file is charged to the limit, so another
 *	program may be able to help. It may do so by freeing memory; with
 *	FLEXMEM_CHARGE_REGIONS also in regions in which this device object has
 *	memory, too
 * @FLEXMEM_QUOTA_ALONE: the driver has asked no other program for memory, since
 *	none could help, whatever @limit is
 */
enum flexmem_quota_flags {
	FLEXMEM_QUOTA_SHARED = 1 << 0,
	FLEXMEM_QUOTA_ALONE = 1 << 1,
};

/**
 * struct flexmem_failure - details of a failed allocation
 * @limit: enum flexmem_limit; FLEXMEM_LIMIT_NONE: the other members are not
 *	valid
 * @regions: number of regions that the device had
 * @slots: as in &struct flexmem_properties
 * @program_slots: as in &struct flexmem_properties
 * @max_regions: as in &struct flexmem_properties
 * @max_handles: as in &struct flexmem_properties; 0: the provider of a cache
 *	that is not a device has failed
 * @flags: flags of the request
 * @charge: with FLEXMEM_LIMIT_CGROUP and _CGROUP_REGIONS: enum flexmem_charge,
 *	the resource that @quota limits
 * @asked: bytes of the request, rounded up; of a resize: to a multiple of 128,
 *	although the driver may round more; for -EINVAL see @limit
 * @total_free: free bytes in all regions for this kind of memory
 * @largest_free: the largest free block in these regions
 * @max_region: size of the largest possible region
 * @own_used: bytes in allocations of this device object, which the program
 *	could free
 * @quota: with FLEXMEM_LIMIT_CGROUP and _CGROUP_REGIONS: the limit, which may be
 *	that of a cgroup above the opener's; FLEXMEM_UNLIMITED: not known, because
 *	the cgroup is outside the caller's cgroup namespace
 * @quota_used: with @quota: the charge when the limit refused the request
 * @region_limit: with FLEXMEM_LIMIT_FRAGMENTATION and _ALIGNMENT: enum
 *                flexmem_limit: why the driver could not acquire a further
 *                region: _CAPACITY, _SLOTS or _MAX_REGIONS. Otherwise 0
 * @quota_flags: flags of enum flexmem_quota_flags: _ALONE with each limit, _SHARED
 *	with FLEXMEM_LIMIT_CGROUP and _CGROUP_REGIONS, also if @quota is not known.
 *	An older driver does not tell them
 * @leaving: bytes that any program has freed, but that are still mapped or used
 *	by a program of the device. The bytes become free when that use ends. 0
 *	for a failed resize
 * @quota_own: the part of the charge to the limit that is this device object's
 * @event: &flexmem_domain_state.freed when the allocation began, for
 *	flexmem_device_wait(); 0: memory that becomes free cannot help, or the
 *	driver is older than this member, or a resize failed
 * @quota_cgroup: with @quota: number of the cgroup that has the limit
 * @quota_left: with FLEXMEM_LIMIT_CGROUP and _CGROUP_REGIONS: what was left of the
 *	limit; FLEXMEM_UNLIMITED: not known, because the driver is older
 */
struct flexmem_failure {
	uint32_t limit;
	uint32_t regions;
	uint32_t slots;
	uint32_t program_slots;
	uint32_t max_regions;
	uint32_t max_handles;
	uint32_t flags;
	uint32_t charge;
	uint64_t asked;
	uint64_t total_free;
	uint64_t largest_free;
	uint64_t max_region;
	uint64_t own_used;
	uint64_t quota;
	uint64_t quota_used;
	uint32_t region_limit;
	uint32_t quota_flags;
	uint64_t leaving;
	uint64_t quota_own;
	uint64_t event;
	uint64_t quota_cgroup;
	uint64_t quota_left;
};

/**
 * struct flexmem_allocated - an allocation, or the reason why there is none
 * @handle: number of the allocation in its device object; 0: there is no
 *	allocation
 * @flags: of FLEXMEM_PROGRAM, FLEXMEM_MAPPABLE, FLEXMEM_ZEROED,
 *         FLEXMEM_GROWABLE, FLEXMEM_LOST
 * @error: 0, or a negative errno. -ECANCELED: the batch ended before this entry
 * @chunks: number of chunks; see flexmem_device_chunks()
 * @address: start of the allocation: the address of the first chunk
 * @size: bytes of the allocation: the request, rounded up to a multiple of 128,
 *        or of 4096 with FLEXMEM_MAPPABLE, or of an alignment above 4096
 * @failure: details, if @error is -ENOMEM
 */
struct flexmem_allocated {
	uint32_t handle;
	uint32_t flags;
	int32_t error;
	uint32_t chunks;
	struct flexmem_virtual_address address;
	uint64_t size;
	struct flexmem_failure failure;
};

/**
 * enum flexmem_placement - which domains an allocation may come from
 * @FLEXMEM_PLACE_DEFAULT: all domains of FLEXMEM_MEMORY_DEVICE
 * @FLEXMEM_PLACE_BIND: only the domains that the request names
 * @FLEXMEM_PLACE_PREFERRED: in this order: existing regions of the named
 *	domains, existing regions of FLEXMEM_MEMORY_DEVICE, a new region of the
 *	named domains, a new region of FLEXMEM_MEMORY_DEVICE
 * @FLEXMEM_PLACE_INTERLEAVE: one chunk in each of the named domains; if the
 *	request names none, in each domain of FLEXMEM_MEMORY_DEVICE. There
 *	must be at least two domains. The address is that of the first chunk,
 *	the size is the sum of all chunks
 */
enum flexmem_placement {
	FLEXMEM_PLACE_DEFAULT = 0,
	FLEXMEM_PLACE_BIND = 1,
	FLEXMEM_PLACE_PREFERRED = 2,
	FLEXMEM_PLACE_INTERLEAVE = 3,
};

/* The most chunks that an allocation can have. */
#define FLEXMEM_CHUNKS FLEXMEM_DOMAINS

/**
 * struct flexmem_alloc_request - what to allocate
 * @length: bytes, at least 1; rounded up as &struct flexmem_allocated says
 * @alignment: alignment of the offset: a power of two up to max_alignment of
 *             &struct flexmem_properties. 0, and any power of two below 128,
 *             means 128
 * @flags: of FLEXMEM_PROGRAM, FLEXMEM_MAPPABLE, FLEXMEM_ZEROED,
 *         FLEXMEM_GROWABLE
 * @placement: enum flexmem_placement; the call returns -EOPNOTSUPP if the
 *	driver does not know the value
 * @domains: bit mask of at least one domain; bit 0 is domain 0. With
 *           FLEXMEM_PLACE_DEFAULT: 0. With FLEXMEM_PLACE_INTERLEAVE: at least
 *           two domains, or 0
 */
struct flexmem_alloc_request {
	uint64_t length;
	uint64_t alignment;
	uint32_t flags;
	uint32_t placement;
	uint32_t domains;
};

/**
 * struct flexmem_resized - result of a resize
 * @bytes: present length, also after a failure; 0: there is no such allocation,
 *         or the length is not known
 * @most: on -EAGAIN: the largest length that was possible at that moment
 * @failure: on -ENOMEM: details; @failure.asked is the number of bytes to add
 */
struct flexmem_resized {
	uint64_t bytes;
	uint64_t most;
	struct flexmem_failure failure;
};

/**
 * enum flexmem_pressure_level - how full a PF or VF is
 * @FLEXMEM_LEVEL_NONE: none of the levels below
 * @FLEXMEM_LEVEL_MODERATE: begins when 80 percent of the PF's or VF's memory
 *	are in use, and ends when less than 70 percent are in use
 * @FLEXMEM_LEVEL_CRITICAL: begins when 95 percent are in use, and ends when
 *	less than 90 percent are in use
 *
 * The memory of a PF or VF is what it has acquired plus what it could still
 * acquire. Bytes are in use if they are allocated by any open file, freed but
 * still mapped, or quarantined.
 */
enum flexmem_pressure_level {
	FLEXMEM_LEVEL_NONE = 0,
	FLEXMEM_LEVEL_MODERATE = 1,
	FLEXMEM_LEVEL_CRITICAL = 2,
};

/**
 * enum flexmem_pressure_flags - what an event tells
 * @FLEXMEM_TELLS_LEVEL: the level has changed, even if it has changed back
 * @FLEXMEM_TELLS_FREED: memory was freed since an allocation of this device
 *	object has failed
 * @FLEXMEM_TELLS_WANTED: an allocation of another device object has failed
 */
enum flexmem_pressure_flags {
	FLEXMEM_TELLS_LEVEL = 1 << 0,
	FLEXMEM_TELLS_FREED = 1 << 1,
	FLEXMEM_TELLS_WANTED = 1 << 2,
};

/**
 * struct flexmem_pressure_event - how full a PF or VF is now
 * @level: enum flexmem_pressure_level
 * @flags: bits of enum flexmem_pressure_flags; 0: the driver does not say
 * @in_use: bytes in use
 * @memory: bytes that the PF or VF has acquired or could still acquire
 * @sequence: number of the event among those that this device object has read,
 *	from 1 on
 * @wanted: bytes of allocations that have failed for other device objects, and
 *	could succeed if this one freed memory: the sum, but of each device
 *	object only the largest; 0: there is none, or the driver does not say
 *
 * @in_use and @memory are the values at the moment of the read.
 */
struct flexmem_pressure_event {
	uint32_t level;
	uint32_t flags;
	uint64_t in_use;
	uint64_t memory;
	uint64_t sequence;
	uint64_t wanted;
};

/**
 * struct flexmem_region_state - one region
 * @region_id: as in &struct flexmem_virtual_address
 * @slot: index of the region's slot in the segment table
 * @flags: of FLEXMEM_PROGRAM, FLEXMEM_HIDDEN. With FLEXMEM_HIDDEN @free to
 *	@sequence are 0
 * @total: bytes of the region
 * @free: bytes in free blocks
 * @largest_free: bytes of the largest free block
 * @allocated_blocks: number of blocks in use, by all open files
 * @free_blocks: number of free blocks
 * @sequence: number of allocations and frees so far
 * @domain: number of the region's domain
 * @reserved: 0
 */
struct flexmem_region_state {
	uint64_t region_id;
	uint32_t slot;
	uint32_t flags;
	uint64_t total;
	uint64_t free;
	uint64_t largest_free;
	uint64_t allocated_blocks;
	uint64_t free_blocks;
	uint64_t sequence;
	uint32_t domain;
	uint32_t reserved;
};

/**
 * struct flexmem_segment - one filled entry of the segment table
 * @slot: index of the entry
 * @flags: FLEXMEM_PROGRAM or 0
 * @region_id: as in &struct flexmem_virtual_address
 * @length: bytes of the region that the entry points at
 */
struct flexmem_segment {
	uint32_t slot;
	uint32_t flags;
	uint64_t region_id;
	uint64_t length;
};

/**
 * struct flexmem_statistics - figures of a device at one moment
 * @flags: bits of FLEXMEM_EXHAUSTED, FLEXMEM_PROGRAM_EXHAUSTED and
 *	FLEXMEM_HIDDEN. With FLEXMEM_HIDDEN @allocated to @failures are 0: only
 *	an administrator sees them
 * @regions: number of regions acquired
 * @total: bytes in all regions
 * @free: bytes that are free and not reserved for other cgroups
 * @used: all other bytes: allocated, quarantined, or reserved
 * @used_program: the part of @used that was allocated with FLEXMEM_PROGRAM
 * @allocated: number of chunks in use, of all open files
 * @allocs: number of chunks allocated since the device was registered
 * @frees: number of chunks since then that are no longer in use
 * @failures: number of allocations since then that failed for lack of device
 *	memory
 * @generation: generation of the segment table
 * @own_used: bytes allocated through this device object
 * @own_peak: largest value so far of @own_used and of the bytes that were freed
 *	but still in use, together
 * @own_handles: number of live allocations of this device object
 */
struct flexmem_statistics {
	uint32_t flags;
	uint32_t regions;
	uint64_t total;
	uint64_t free;
	uint64_t used;
	uint64_t used_program;
	uint64_t allocated;
	uint64_t allocs;
	uint64_t frees;
	uint64_t failures;
	uint64_t generation;
	uint64_t own_used;
	uint64_t own_peak;
	uint64_t own_handles;
};

/**
 * struct flexmem_usage - memory by owner: the sums over all owners
 * @regions: number of regions acquired
 * @accounts: number of accounts that this caller may see
 * @capacity: bytes that may be acquired from the device
 * @total: bytes in all regions
 * @free: free bytes in regions that this caller may use
 * @owned: bytes in live allocations
 * @orphaned: bytes freed but still mapped, or used by a device program
 * @reserved: free bytes in regions that are reserved for other cgroups; for the
 *	administrator: for any cgroup
 * @quarantined: bytes that are not scrubbed because the firmware failed; no
 *	allocation gets them
 * @scrubbed: bytes scrubbed since the device was registered
 * @clients: number of open files
 * @resets: number of resets of the device
 * @generation: generation of the segment table
 * @used_program: bytes allocated with FLEXMEM_PROGRAM, live or orphaned
 * @allocs: number of chunks allocated since the device was registered; 0 if the
 *	caller is not an administrator
 * @failures: number of allocations since then that failed, for lack of memory or
 *	because of a limit; 0 if the caller is not an administrator
 * @timeouts: number of commands that the firmware has not answered in time
 *
 * @free + @owned + @orphaned + @reserved + @quarantined = @total.
 */
struct flexmem_usage {
	uint32_t regions;
	uint32_t accounts;
	uint64_t capacity;
	uint64_t total;
	uint64_t free;
	uint64_t owned;
	uint64_t orphaned;
	uint64_t reserved;
	uint64_t quarantined;
	uint64_t scrubbed;
	uint64_t clients;
	uint64_t resets;
	uint64_t generation;
	uint64_t used_program;
	uint64_t allocs;
	uint64_t failures;
	uint64_t timeouts;
};

/**
 * FLEXMEM_REASONS - number of members of &flexmem_account_state.failures; not all have
 * an enum flexmem_limit
 */
#define FLEXMEM_REASONS 15

/**
 * struct flexmem_account_state - charges and limits of a client or cgroup
 * @kind: enum flexmem_account_kind
 * @removed: FLEXMEM_ACCOUNT_CGROUP: 1 if the cgroup was removed. Its limits and
 *	charges stay as long as a file of it is open or has memory. Otherwise 0
 * @id: FLEXMEM_ACCOUNT_CLIENT: number of the open file, never used twice on the
 *      node. FLEXMEM_ACCOUNT_CGROUP: inode number of the cgroup's directory
 * @uid: uid of the opener
 * @pid: FLEXMEM_ACCOUNT_CLIENT: process that opened the file; 0: not visible
 * @bytes: bytes of live allocations
 * @orphaned: bytes freed but still mapped, or used by a device program; they are
 *	charged too
 * @peak: largest value of @bytes + @orphaned so far
 * @slots: number of regions in which the account has bytes
 * @handles: number of live allocations
 * @files: number of open files
 * @limit: the limits, by enum flexmem_charge; FLEXMEM_UNLIMITED: there is none
 * @reservation: FLEXMEM_ACCOUNT_CGROUP: number of regions that should be
 *	reserved for the cgroup; 0: no reservation
 * @reserved: FLEXMEM_ACCOUNT_CGROUP: number of regions that are reserved for
 *	the cgroup now; less than @reservation if the device has not granted all
 *	regions again after a reset
 * @leaving: FLEXMEM_ACCOUNT_CLIENT: the part of @orphaned that device programs
 *	still use
 * @waits_ms: FLEXMEM_ACCOUNT_CLIENT: for how long nothing but device programs has
 *	used the oldest allocation in @leaving, in milliseconds; 0: none waits
 * @parent: id of the cgroup to which everything of this account is charged, too:
 *	of a client the opener's, of a cgroup the one above it. 0: there is none, or
 *	the caller is not an administrator
 * @failures: allocations that failed, by enum flexmem_limit; FLEXMEM_LIMIT_NONE: the
 *	kernel had no memory. FLEXMEM_ACCOUNT_CGROUP: 0 if the caller is not an
 *	administrator; begins at 0 again once the cgroup has had neither a file, a
 *	charge nor a limit
 */
struct flexmem_account_state {
	uint32_t kind;
	uint32_t removed;
	uint64_t id;
	uint32_t uid;
	uint32_t pid;
	uint64_t bytes;
	uint64_t orphaned;
	uint64_t peak;
	uint64_t slots;
	uint64_t handles;
	uint64_t files;
	uint64_t limit[FLEXMEM_CHARGES];
	uint32_t reservation;
	uint32_t reserved;
	uint64_t leaving;
	uint64_t waits_ms;
	uint64_t parent;
	uint64_t failures[FLEXMEM_REASONS];
};

/**
 * struct flexmem_allowance - a limit of an account, and its charge
 * @limit: the limit; FLEXMEM_UNLIMITED: there is none
 * @used: present charge
 */
struct flexmem_allowance {
	uint64_t limit;
	uint64_t used;
};

/**
 * enum flexmem_log_level - which messages the log callback gets
 * @FLEXMEM_LOG_NONE: nothing
 * @FLEXMEM_LOG_WARNING: a problem that needs attention; only caches report such
 *	problems (flexmem_cache.h)
 * @FLEXMEM_LOG_DEBUG: first the node that is used, then each allocation and
 *	free, each acquired region, and the free space of the region. At this
 *	level the library runs allocations and frees one at a time and reads the
 *	region table before and after each, which is slow. Changes by other
 *	processes may appear in the log
 */
enum flexmem_log_level {
	FLEXMEM_LOG_NONE = 0,
	FLEXMEM_LOG_WARNING = 1,
	FLEXMEM_LOG_DEBUG = 2,
};

/**
 * typedef flexmem_log_fn - receives one line of the log
 * @level: level of the line
 * @text: the line, with no newline at its end; valid during the call
 * @user: what was passed to flexmem_device_set_log()
 *
 * The callback runs on the thread that made the logged call, one call at a time
 * for each device object. The callback must not use the device object.
 */
typedef void (*flexmem_log_fn)(enum flexmem_log_level level, const char *text,
			       void *user);

/**
 * flexmem_library_version() - version of the library that runs
 *
 * Return: a constant string like "0.3.0".
 */
FLEXMEM_API const char *flexmem_library_version(void);

/**
 * flexmem_device_open() - open a device
 * @device: where to put the object; flexmem_device_close() frees it
 * @path: "PF" or "VF", in upper or lower case: the first function of that kind
 *        that can be opened, in the order of flexmem_device_count(). Any other
 *        text is the path of a node. NULL: the environment variable FLEX_DEVICE
 *        decides: "PF", "VF" or a path that begins with '/'. If it is not set,
 *        or empty: the first VF that can be opened, else the first PF.
 *        flexmem_device_path() says which one was opened.
 *
 * If the environment has FLEXMEM_DEBUG=1 or TORCH_SPYRE_ALLOC_DEBUG=1, the
 * object begins with a log callback at FLEXMEM_LOG_DEBUG that writes to stderr.
 * exec() closes the descriptor.
 *
 * Return: 0; -ENODEV: there is no such node, or none of that kind; -EACCES: no
 * node could be opened, at least one of them because of its permissions;
 * -EPERM: only the administrator may open this PF; -EINVAL: FLEX_DEVICE is none
 * of the above; -ENOTTY: @path is not a flexmem device; or what open()
 * returned.
 */
FLEXMEM_API int flexmem_device_open(struct flexmem_device **device,
				    const char *path);

/**
 * flexmem_device_count() - number of functions that this process sees
 * @count: where to put the number
 *
 * A function is seen if its node /dev/flexmemN exists. VFs come first, then
 * PFs, each in the order of the addresses of their devices. So the order stays
 * the same when a driver is unbound and bound, and after a reboot. The
 * environment variable FLEXMEM_VISIBLE_DEVICES chooses and renumbers: a list
 * of indices in this order, or of ids, with commas. The list ends at the first
 * entry that names no function, or one that an entry before has named; if the
 * variable is empty there is no function. The variable is no boundary between
 * users: whoever may open a node can open it by its path.
 *
 * Functions come and go. Each call reads /dev and sysfs anew, so an index means
 * the same function only as long as none comes or goes.
 *
 * Return: 0; -EINVAL: @count is NULL; -ENOMEM; or what opendir() returned.
 */
FLEXMEM_API int flexmem_device_count(unsigned int *count);

/**
 * struct flexmem_identity - where a function is, and its name that stays
 * @path: path of its node
 * @id: name that stays over rebind and reboot. A VF on PCI: "pci-", the address
 *	of its PF, "-vf" and its number there. Others: the bus, '-', and the
 *	address of its device. Without sysfs: the name of the node, which does not
 *	stay
 * @bus: bus of its device, such as "pci"; "" without sysfs
 * @address: address of its device on that bus, such as "0000:03:00.2"; ""
 *	without sysfs
 * @parent: address of the PF of a VF on PCI; otherwise ""
 * @driver: driver of its device; "" if unknown
 * @function: enum flexmem_function; without sysfs FLEXMEM_VF
 */
struct flexmem_identity {
	char path[64];
	char id[128];
	char bus[32];
	char address[32];
	char parent[32];
	char driver[32];
	uint32_t function;
};

/**
 * flexmem_device_identity() - node, id and address of a function
 * @index: 0 to the result of flexmem_device_count() minus 1
 * @identity: where to put them
 * @size: sizeof(*@identity)
 *
 * The function is not opened, so no rights are needed.
 *
 * Return: 0; -ENODEV: there is no function with this index; -EINVAL: @identity
 * is NULL or @size too small; -ENOMEM; or what opendir() returned.
 */
FLEXMEM_API int flexmem_device_identity(unsigned int index,
					struct flexmem_identity *identity,
					size_t size);

/**
 * flexmem_device_open_index() - open a function by its index
 * @device: where to put the object; flexmem_device_close() frees it
 * @index: as in flexmem_device_identity()
 *
 * Return: what flexmem_device_identity() and flexmem_device_open() return.
 */
FLEXMEM_API int flexmem_device_open_index(struct flexmem_device **device,
					  unsigned int index);

/**
 * flexmem_device_adopt() - use a descriptor that another program has passed
 * @device: where to put the object; flexmem_device_close() frees it
 * @fd: a descriptor of an open node, for example from SCM_RIGHTS. On success it
 *	belongs to the object, and exec() closes it; on failure it stays the
 *	caller's
 *
 * A passed descriptor is the same open file. So both programs see, free and map
 * all its allocations, they read one stream of pressure events, and what either
 * allocates is charged to the cgroup of the program that opened the node. Its
 * limits hold, not those of the receiver: do this only if the programs trust
 * each other, and know that it is a way past the receiver's limit. The driver
 * frees the allocations when both programs have closed the file.
 *
 * No cache can be made over such an object, because a cache expects to be alone
 * with its allocations and its events. flexmem_device_path() says what
 * /proc/self/fd says, or "". The node should have been opened with O_NONBLOCK,
 * as flexmem_device_open() does; otherwise flexmem_device_pressure() waits.
 *
 * Return: 0; -EINVAL: @fd is no open descriptor of a node of flexmem, which is
 * a character device with the driver's number in /proc/devices that replies to
 * INFO; -ENODEV: the device was removed; -ENOMEM; or what open() of
 * /proc/devices returned.
 */
FLEXMEM_API int flexmem_device_adopt(struct flexmem_device **device, int fd);

/**
 * flexmem_device_close() - close a device and free all its allocations
 * @device: object to free, or NULL
 *
 * Unmap all mappings first, because mapped bytes stay charged. The allocations
 * of an adopted descriptor stay as long as another one of the same file is open.
 */
FLEXMEM_API void flexmem_device_close(struct flexmem_device *device);

/**
 * flexmem_device_path() - path of the node that was opened or adopted
 * @device: an open device, or NULL
 *
 * Return: a string that lives as long as @device; NULL for NULL.
 */
FLEXMEM_API const char *flexmem_device_path(const struct flexmem_device *device);

/**
 * flexmem_device_fd() - descriptor of the open file
 * @device: an open device
 *
 * The descriptor is for poll() and the like. The caller must not close it.
 * POLLIN: flexmem_device_pressure() can read an event. POLLERR | POLLHUP: the
 * device was removed.
 *
 * Return: the descriptor, or -EINVAL.
 */
FLEXMEM_API int flexmem_device_fd(const struct flexmem_device *device);

/**
 * flexmem_device_set_log() - choose the receiver of the log
 * @device: an open device
 * @level: messages up to this level are passed to @log
 * @log: callback; NULL: no callback, whatever @level says
 * @user: passed to @log
 *
 * Replaces the old callback. When this returns, the old callback is not running
 * and will not be called again.
 *
 * Return: 0 or -EINVAL.
 */
FLEXMEM_API int flexmem_device_set_log(struct flexmem_device *device,
				       enum flexmem_log_level level,
				       flexmem_log_fn log, void *user);

/**
 * flexmem_device_properties() - read properties and settings of the device
 * @device: an open device
 * @properties: to be filled
 * @size: sizeof(*@properties)
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int
flexmem_device_properties(const struct flexmem_device *device,
			  struct flexmem_properties *properties, size_t size);

/**
 * flexmem_device_statistics() - read the present figures of the device
 * @device: an open device
 * @statistics: to be filled
 * @size: sizeof(*@statistics)
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int
flexmem_device_statistics(const struct flexmem_device *device,
			  struct flexmem_statistics *statistics, size_t size);

/**
 * flexmem_device_domain() - read the description and figures of a domain
 * @device: an open device
 * @id: number of the domain. Domain 0 always exists; its ``count`` is the
 *	number of domains. Or FLEXMEM_WHOLE_DEVICE: all domains together; then
 *	the members that only one domain has are 0
 * @domain: to be filled
 * @size: sizeof(*@domain)
 *
 * Return: 0 or a negative errno. -EINVAL: there is no such domain.
 */
FLEXMEM_API int flexmem_device_domain(const struct flexmem_device *device,
				      uint32_t id,
				      struct flexmem_domain_state *domain,
				      size_t size);

/**
 * struct flexmem_available - what a process can have of a device's memory
 * @free: bytes that the process can still get
 * @total: bytes that it can have in all
 * @largest: bytes that one allocation can have: @free, or less if that is not in
 *	one piece
 */
struct flexmem_available {
	uint64_t free;
	uint64_t total;
	uint64_t largest;
};

/**
 * flexmem_device_available() - read how much memory the process can have
 * @device: a device
 * @available: to be filled
 * @size: sizeof(*@available)
 *
 * @free and @total are those of flexmem_device_memory_info(). An allocation has
 * @largest bytes at most if it is one of tensors, with the alignment of the
 * device, and names no domain: the largest free block that is not reserved for
 * another cgroup, or what a further region would have. So a process that
 * allocates all that is free in pieces of at most @largest bytes, and asks again
 * before each of them, gets all of it if nobody else allocates. There are two
 * exceptions. With a limit of regions, @largest may be a block in a region that
 * the limit keeps the process out of, and a further region may be smaller than
 * the largest. With few slots, and if fallback_sizes does not name the largest
 * size first, small pieces may fill the slots with small regions.
 *
 * Return: 0; -EINVAL: an argument is NULL or @size is too small; or an error of
 * the driver, as for flexmem_device_domain().
 */
FLEXMEM_API int flexmem_device_available(const struct flexmem_device *device,
					 struct flexmem_available *available,
					 size_t size);

/**
 * flexmem_device_memory_info() - read how much memory the process can have
 * @device: a device
 * @free: where to put the bytes that the process can still get
 * @total: where to put the bytes that the process can have in all
 *
 * @total is the smallest of what the device has outside the reservations of
 * other cgroups, and of each limit of bytes of the cgroup that opened the
 * device and of those above it. @free is the smallest of what is left of each.
 * If the device has several domains, those count that an allocation may use if
 * it names none: of FLEXMEM_MEMORY_DEVICE; and the figures of each are from a
 * moment of its own. Other processes may take the same bytes, and what is free
 * may be in several pieces. A cgroup's limit of regions counts as the regions
 * that it is in, and as many of the largest as it may have besides. If slots of
 * the device are set aside for programs,
 * the regions in these slots count neither as free nor as total.
 * flexmem_device_domain() has the figures of the whole device.
 *
 * Return: 0; -EINVAL: an argument is NULL; or an error of the driver, as for
 * flexmem_device_domain().
 */
FLEXMEM_API int flexmem_device_memory_info(const struct flexmem_device *device,
					   uint64_t *free, uint64_t *total);

/**
 * flexmem_device_alloc() - allocate device memory
 * @device: an open device
 * @length: bytes, at least 1
 * @alignment: as in &struct flexmem_alloc_request
 * @flags: of FLEXMEM_PROGRAM, FLEXMEM_MAPPABLE, FLEXMEM_ZEROED,
 *         FLEXMEM_GROWABLE
 * @allocation: to be filled, even on failure
 * @size: sizeof(*@allocation)
 *
 * flexmem_device_free(), flexmem_device_free_address() or
 * flexmem_device_close() frees the allocation. Mapped bytes stay charged until
 * they are unmapped.
 *
 * The driver scrubs memory that another owner has used, and the call waits for
 * the scrub. -EIO, -ETIMEDOUT: the scrub failed. The block is quarantined, and
 * the call can be repeated.
 *
 * Return: 0; -ENOMEM: no device memory; @allocation->failure says why
 * (FLEXMEM_LIMIT_NONE: no host memory); -EINVAL: @length is 0 or @alignment is
 * not a power of two or too large; -EOPNOTSUPP: unknown bits in @flags, or the
 * device lacks the ability.
 */
FLEXMEM_API int flexmem_device_alloc(struct flexmem_device *device,
				     uint64_t length, uint64_t alignment,
				     uint32_t flags,
				     struct flexmem_allocated *allocation,
				     size_t size);

/**
 * flexmem_device_free() - free an allocation
 * @device: the device object that made the allocation; NULL if @handle is 0
 * @handle: handle of the allocation; 0: nothing is done
 *
 * Return: 0 or -ENOENT: not a live allocation of this device object.
 */
FLEXMEM_API int flexmem_device_free(struct flexmem_device *device,
				    uint32_t handle);

/**
 * flexmem_device_free_address() - free an allocation by its address
 * @device: the device object that made the allocation
 * @address: exactly the start of the allocation
 *
 * Return: 0 or -ENOENT: no live allocation of this device object starts there.
 */
FLEXMEM_API int
flexmem_device_free_address(struct flexmem_device *device,
			    struct flexmem_virtual_address address);

/**
 * flexmem_device_lookup() - find an allocation by its handle
 * @device: the device object that made the allocation
 * @handle: handle of the allocation
 * @allocation: to be filled
 * @size: sizeof(*@allocation)
 *
 * Return: 0 or -ENOENT: not a live allocation of this device object.
 */
FLEXMEM_API int flexmem_device_lookup(const struct flexmem_device *device,
				      uint32_t handle,
				      struct flexmem_allocated *allocation,
				      size_t size);

/**
 * struct flexmem_chunk_info - a part of an allocation
 * @address: start of the chunk
 * @size: bytes
 * @domain: number of the chunk's domain
 * @reserved: 0
 */
struct flexmem_chunk_info {
	struct flexmem_virtual_address address;
	uint64_t size;
	uint32_t domain;
	uint32_t reserved;
};

/**
 * flexmem_device_chunks() - list the chunks of an allocation
 * @device: the device object that made the allocation
 * @handle: handle of the allocation
 * @chunks: array to be filled, in the order of the bytes; NULL with @room 0
 * @size: sizeof(*@chunks)
 * @room: number of entries that the array has; FLEXMEM_CHUNKS always suffice
 * @count: where to put the number of chunks, also with -EMSGSIZE
 *
 * Return: 0; -ENOENT: not a live allocation of this device object; -EMSGSIZE:
 * there are more than @room chunks; -EBUSY: the allocation is being resized at
 * this moment.
 */
FLEXMEM_API int flexmem_device_chunks(const struct flexmem_device *device,
				      uint32_t handle,
				      struct flexmem_chunk_info *chunks, size_t size,
				      size_t room, size_t *count);

/**
 * flexmem_device_resize() - extend an allocation at its end, or shorten it
 * @device: the device object that made the allocation
 * @handle: handle of the allocation
 * @length: new length in bytes, at least 1; rounded up as by
 *          flexmem_device_alloc()
 * @resized: to be filled, even on failure; or NULL
 * @size: sizeof(*@resized); ignored with NULL
 *
 * The start, the handle and the remaining bytes do not change. Added bytes are
 * like those of a new allocation with the same flags. Any allocation can be
 * resized. But only an allocation with FLEXMEM_GROWABLE is placed where it has
 * room to grow.
 *
 * Return: 0; -EAGAIN: too few free bytes follow the allocation; @resized->most
 * is the largest possible length; -ENOMEM: a limit forbids @length;
 * @resized->failure says which limit; -EBUSY: the allocation is mapped, or
 * another call is using it; -ENOENT: not a live allocation of this device
 * object; -EINVAL: @length is 0; -EIO: the allocation is lost, or the added
 * bytes could not be scrubbed.
 */
FLEXMEM_API int flexmem_device_resize(struct flexmem_device *device,
				      uint32_t handle, uint64_t length,
				      struct flexmem_resized *resized,
				      size_t size);

/**
 * flexmem_device_pressure() - read the next event, without waiting for one
 * @device: an open device
 * @event: to be filled
 * @size: sizeof(*@event)
 *
 * There is an event
 *
 *  - if the level has changed since the last event, even if it has changed
 *    back;
 *  - if memory was freed after a flexmem_device_alloc() of this device object
 *    failed for lack of memory, in a domain that the allocation could have used;
 *  - if an allocation of another device object has failed, at any level, and
 *    could succeed if this one freed memory;
 *  - if the level is not FLEXMEM_LEVEL_NONE and this device object has read no
 *    event yet.
 *
 * poll() on flexmem_device_fd() reports events, at most ten in a second. After
 * an event a program should free unused memory. A program that waits for memory
 * calls flexmem_device_wait(). If several threads read, one of them gets the
 * event.
 *
 * Return: 0; -EAGAIN: there is no event.
 */
FLEXMEM_API int
flexmem_device_pressure(struct flexmem_device *device,
			struct flexmem_pressure_event *event, size_t size);

/**
 * flexmem_device_wait() - wait until memory has become free
 * @device: the device object whose allocation failed
 * @since: &flexmem_failure.event of the failed allocation
 * @bytes: how many bytes must be free in the end, as flexmem_device_memory_info()
 *	counts them; 0: any number, for example if a handle or memory for
 *	programs was lacking
 * @milliseconds: for how long to wait at most; 0: do not wait
 *
 * Waits until any program has freed memory of the device since the failed
 * allocation began, and @bytes are free. Then the caller tries again. Another
 * program may have taken the memory by then, or it may be in pieces, so a
 * caller tries and waits in turn.
 *
 * The failed allocation has asked the caches of other programs for memory. The
 * wait does not ask again, so wait for a second or two at a time, and then try
 * again.
 *
 * The wait reads no event, so it takes none from another thread that serves
 * pressure, such as the helper of a cache. Signals do not end it early. It can
 * end up to a tenth of a second after the memory has become free.
 *
 * Context: waits; a cancellation point. Any thread; several may wait.
 *
 * Return: 0: memory has become free; -ETIMEDOUT: it has not; -EINVAL: @device is
 * NULL, or @since is 0: there is nothing to wait for; -ENODEV: the device was
 * removed; another negative errno of flexmem_device_domain().
 */
FLEXMEM_API int flexmem_device_wait(const struct flexmem_device *device,
				    uint64_t since, uint64_t bytes,
				    uint32_t milliseconds);

/**
 * flexmem_device_alloc_request() - allocate device memory of chosen domains
 * @device: an open device
 * @request: what to allocate
 * @request_size: sizeof(*@request)
 * @allocation: to be filled, even on failure
 * @allocation_size: sizeof(*@allocation)
 *
 * Like flexmem_device_alloc(), with a choice of domains. The figures of a failure
 * are about the domains that the allocation may come from.
 *
 * Return: 0; an errno of flexmem_device_alloc(); -EINVAL: also if the domains
 * do not suit the placement; -EOPNOTSUPP: also if the driver does not know the
 * placement.
 */
FLEXMEM_API int
flexmem_device_alloc_request(struct flexmem_device *device,
			     const struct flexmem_alloc_request *request,
			     size_t request_size,
			     struct flexmem_allocated *allocation,
			     size_t allocation_size);

/**
 * flexmem_device_alloc_batch() - make several allocations
 * @device: an open device
 * @requests: what to allocate
 * @request_size: sizeof(*@requests)
 * @allocations: array of @count entries to be filled; may be uninitialised
 * @allocation_size: sizeof(*@allocations)
 * @count: number of entries of both arrays; 0 does nothing
 *
 * The requests are carried out in order, as flexmem_device_alloc_request()
 * carries out one. The result of a request is in ``error`` of the same entry of
 * @allocations. More than max_batch requests take several calls to the driver,
 * between which other programs may allocate.
 *
 * Return: 0 if every request was carried out, even if all of them failed.
 * Otherwise the error that ended the batch. Requests that were not reached get
 * -ECANCELED. Allocations that were made before the error stay: the caller owns
 * them.
 */
FLEXMEM_API int
flexmem_device_alloc_batch(struct flexmem_device *device,
			   const struct flexmem_alloc_request *requests,
			   size_t request_size,
			   struct flexmem_allocated *allocations,
			   size_t allocation_size, size_t count);

/**
 * flexmem_device_free_batch() - free several allocations
 * @device: the device object that made the allocations
 * @handles: handles of the allocations; unlike in flexmem_device_free(), a
 *	handle of 0 is -ENOENT
 * @errors: array for the results: 0; -ENOENT; or -ECANCELED if the batch ended
 *	before this entry
 * @count: number of entries of both arrays; 0 does nothing
 *
 * Return: 0 if every free was carried out, even if all of them failed.
 * Otherwise the error that ended the batch.
 */
FLEXMEM_API int flexmem_device_free_batch(struct flexmem_device *device,
					  const uint32_t *handles, int *errors,
					  size_t count);

/**
 * flexmem_device_free_address_batch() - free several allocations by address
 * @device: the device object that made the allocations
 * @addresses: exactly the starts of the allocations
 * @errors: array for the results: 0; -ENOENT; or -ECANCELED if the batch ended
 *	before this entry
 * @count: number of entries of both arrays; 0 does nothing
 *
 * Return: 0 if every free was carried out, even if all of them failed.
 * Otherwise the error that ended the batch.
 */
FLEXMEM_API int
flexmem_device_free_address_batch(struct flexmem_device *device,
				  const struct flexmem_virtual_address *addresses,
				  int *errors, size_t count);

/**
 * flexmem_device_regions() - list all regions of one moment
 * @device: an open device
 * @regions: where to put the array, in the order of slots;
 *           flexmem_regions_free() frees it; NULL if there are none
 * @size: sizeof(**@regions)
 * @count: where to put the number of entries of the array
 *
 * Return: 0; -EAGAIN: regions were acquired faster than they could be listed.
 */
FLEXMEM_API int flexmem_device_regions(const struct flexmem_device *device,
				       struct flexmem_region_state **regions,
				       size_t size, size_t *count);

/**
 * flexmem_regions_free() - free an array of regions
 * @regions: from flexmem_device_regions(), or NULL
 */
FLEXMEM_API void flexmem_regions_free(struct flexmem_region_state *regions);

/**
 * flexmem_device_segments() - read the segment table, for a dispatch
 * @device: an open device
 * @segments: where to put the array of filled slots, in the order of slots;
 *            flexmem_segments_free() frees it; NULL if there are none
 * @size: sizeof(**@segments)
 * @count: where to put the number of entries of the array
 * @generation: where to put the table's generation, or NULL. The generation
 *              grows whenever a slot is filled, emptied or refilled.
 *
 * Return: 0; -EAGAIN: slots were filled faster than they could be listed.
 */
FLEXMEM_API int flexmem_device_segments(const struct flexmem_device *device,
					struct flexmem_segment **segments,
					size_t size, size_t *count,
					uint64_t *generation);

/**
 * flexmem_segments_free() - free an array of segments
 * @segments: from flexmem_device_segments(), or NULL
 */
FLEXMEM_API void flexmem_segments_free(struct flexmem_segment *segments);

/**
 * flexmem_device_trim() - release regions without allocations to the device
 * @device: an open device
 * @flags: must be 0
 * @regions: where to put the number of released regions, or NULL
 * @bytes: where to put the bytes in them, or NULL
 *
 * @regions and @bytes are written even on failure, because the firmware may
 * have failed in the middle.
 *
 * A region that the device's driver holds for a job is not released.
 *
 * Return: 0; -EPERM: only the administrator may; -EOPNOTSUPP: @flags is not 0;
 * or another negative errno.
 */
FLEXMEM_API int flexmem_device_trim(struct flexmem_device *device,
				    uint32_t flags, uint32_t *regions,
				    uint64_t *bytes);

/**
 * FLEXMEM_READ_ONLY - flag of flexmem_device_map(): a mapping only for reading
 */
#define FLEXMEM_READ_ONLY (UINT32_C(1) << 0)

/**
 * flexmem_device_map() - map an allocation for the CPU
 * @device: the device object that made the allocation
 * @handle: handle of an allocation that was made with FLEXMEM_MAPPABLE
 * @offset: first byte, from the start of the allocation; a multiple of the size
 *          of a page
 * @length: bytes, all in the chunk of the first byte; 0: all from @offset to the
 *	end of that chunk
 * @flags: FLEXMEM_READ_ONLY; or 0: the mapping can be read and written
 * @address: where to put the start of the mapping; flexmem_device_unmap() ends
 *	it
 * @mapped: where to put the number of mapped bytes; may be NULL
 *
 * An allocation with several chunks needs a mapping for each of them;
 * flexmem_device_chunks() lists their sizes.
 *
 * An allocation can be mapped several times, whole and in part. A page is added
 * when it is touched. Neither a free nor flexmem_device_close() ends a mapping:
 * mapped bytes stay charged until they are unmapped. After a close all
 * allocations may stay until the last mapping has ended. A forked child
 * inherits mappings.
 *
 * After a reset or removal of the device every access to a mapping raises
 * SIGBUS. flexmem_device_read() and flexmem_device_write() return an error
 * instead.
 *
 * Return: 0; -ENOENT: no such allocation; -EINVAL: not mappable, @offset is not
 * a multiple of the page size, or the part is not inside one chunk;
 * -EBUSY: the allocation is being resized at this moment; -EOPNOTSUPP: unknown
 * bits in @flags; or what mmap() returned.
 */
FLEXMEM_API int flexmem_device_map(struct flexmem_device *device,
				   uint32_t handle, uint64_t offset,
				   size_t length, uint32_t flags,
				   void **address, size_t *mapped);

/**
 * flexmem_device_unmap() - end a mapping, or a part of it
 * @device: any open device, or NULL
 * @address: from flexmem_device_map(), or a page in that mapping; NULL: nothing
 *           is done
 * @length: bytes, rounded up to whole pages
 *
 * Afterwards no thread may access the unmapped bytes.
 *
 * Return: 0; -EINVAL: @address is not the start of a page, or @length is 0.
 */
FLEXMEM_API int flexmem_device_unmap(struct flexmem_device *device,
				     void *address, size_t length);

/**
 * flexmem_device_read() - copy from an allocation to the caller
 * @device: the device object that made the allocation
 * @handle: handle of the allocation
 * @offset: first byte, from the start of the allocation
 * @data: where to put the bytes
 * @length: number of bytes; 0 does nothing
 * @done: receives the number of bytes copied, counted from the first one; set
 *        even on failure; may be NULL
 *
 * The allocation need not be mappable. If another thread writes at the same
 * time, the copy may mix old and new bytes.
 *
 * Return: 0; -ENOENT: no such allocation; -EINVAL: some of the bytes are
 * outside the allocation; -EBUSY: the allocation is being resized at this
 * moment; -EFAULT: @data is not writable; -EOPNOTSUPP: without FLEXMEM_CAN_RW.
 */
FLEXMEM_API int flexmem_device_read(const struct flexmem_device *device,
				    uint32_t handle, uint64_t offset,
				    void *data, size_t length, size_t *done);

/**
 * flexmem_device_write() - copy from the caller to an allocation
 * @device: the device object that made the allocation
 * @handle: handle of the allocation
 * @offset: first byte, from the start of the allocation
 * @data: the bytes
 * @length: number of bytes; 0 does nothing
 * @done: receives the number of bytes copied, counted from the first one; set
 *        even on failure; may be NULL. Copied bytes stay copied after a
 *        failure.
 *
 * Return: 0; -ENOENT: no such allocation; -EINVAL: some of the bytes are
 * outside the allocation; -EBUSY: the allocation is being resized at this
 * moment; -EFAULT: @data is not readable; -EOPNOTSUPP: without FLEXMEM_CAN_RW.
 */
FLEXMEM_API int flexmem_device_write(struct flexmem_device *device,
				     uint32_t handle, uint64_t offset,
				     const void *data, size_t length,
				     size_t *done);

/**
 * flexmem_device_copy() - copy between allocations
 * @device: the device object that made both allocations
 * @to: handle of the allocation to copy to
 * @to_offset: first byte in @to, from the start of the allocation
 * @from: handle of the allocation to copy from; may be the same
 * @from_offset: first byte in @from, from the start of the allocation
 * @length: number of bytes; 0 does nothing
 * @done: receives the number of bytes copied, counted from the first one; set
 *        even on failure; may be NULL. Copied bytes stay copied after a
 *        failure.
 *
 * With FLEXMEM_CAN_COPY the device copies, and no byte goes through the CPU.
 * Without it the library reads and writes the bytes, which needs
 * FLEXMEM_CAN_RW. Offsets and @length must be multiples of 128, as all sizes
 * from flexmem_device_alloc() are. If another thread writes at the same time,
 * the copy may mix old and new bytes.
 *
 * Return: 0; -ENOENT: no such allocation; -EINVAL: some of the bytes are
 * outside the allocations, offsets or @length are not multiples of 128, or the
 * two ranges overlap; -EBUSY: an allocation is being resized at this moment;
 * -EOPNOTSUPP: without FLEXMEM_CAN_COPY and FLEXMEM_CAN_RW; -ENOMEM: out of
 * host memory.
 */
FLEXMEM_API int flexmem_device_copy(struct flexmem_device *device,
				    uint32_t to, uint64_t to_offset,
				    uint32_t from, uint64_t from_offset,
				    uint64_t length, uint64_t *done);

/**
 * struct flexmem_space_range - reserved device-virtual addresses
 * @address: the lowest address, a multiple of &flexmem_properties.space_page;
 *	0 after a failure
 * @length: the number of addresses: the request, rounded up to whole pages;
 *	UINT64_MAX: no number of 64 bits is large enough
 * @largest_free: addresses in the longest range that is free now
 */
struct flexmem_space_range {
	uint64_t address;
	uint64_t length;
	uint64_t largest_free;
};

/**
 * flexmem_device_space_reserve() - reserve device-virtual addresses
 * @device: an open device
 * @length: the number of addresses, at least 1; rounded up to whole pages
 * @range: to be filled, even on failure
 * @size: sizeof(*@range)
 *
 * Reserves the lowest free addresses. Nothing is mapped there before
 * flexmem_device_space_bind(). Free neighbours merge, so the same calls on
 * another device object return the same addresses.
 *
 * Each device object has one address space, which no other device object can
 * use. flexmem_device_space_free() frees the addresses. Otherwise
 * flexmem_device_close() unmaps the whole space before it frees memory; device
 * programs that still run in the space then fault.
 *
 * Return: 0; -ENOSPC: no free range is long enough; @range->length is the
 * length that is needed, and @range->largest_free is the longest free range;
 * -EMFILE: the device object has as many ranges and bindings together as it may
 * have allocations (&flexmem_properties.max_handles); -EINVAL: @length is 0; -EOPNOTSUPP, as from all functions about
 * device-virtual addresses: without FLEXMEM_CAN_PAGE_TABLES.
 */
FLEXMEM_API int flexmem_device_space_reserve(struct flexmem_device *device,
					     uint64_t length,
					     struct flexmem_space_range *range,
					     size_t size);

/**
 * flexmem_device_space_free() - free reserved addresses
 * @device: the device object that reserved them
 * @address: exactly the lowest address of the range, which is freed as a whole
 *
 * Return: 0; -ENOENT: no range of this device object begins there; -EBUSY:
 * flexmem_device_space_unbind() has not ended every
 * flexmem_device_space_bind() in the range.
 */
FLEXMEM_API int flexmem_device_space_free(struct flexmem_device *device,
					  uint64_t address);

/**
 * enum flexmem_space_access - what device programs may do with bound memory
 * @FLEXMEM_SPACE_READ: read it
 * @FLEXMEM_SPACE_WRITE: write to it
 * @FLEXMEM_SPACE_EXECUTE: run it as code
 *
 * A device that cannot tell two accesses apart may allow both.
 */
enum flexmem_space_access {
	FLEXMEM_SPACE_READ = 1,
	FLEXMEM_SPACE_WRITE = 2,
	FLEXMEM_SPACE_EXECUTE = 4,
};

/**
 * flexmem_device_space_bind() - map bytes of an allocation for device programs
 * @device: the device object that made the allocation
 * @address: address of the first byte, in a reserved range
 * @handle: handle of the allocation
 * @offset: offset of the first byte in the allocation
 * @length: bytes, at least 1
 * @access: bits of enum flexmem_space_access, at least one
 *
 * The bytes get adjacent addresses even if they are in several chunks.
 * @address, @offset and @length are multiples of the page size. Each chunk of
 * the allocation must begin and end at a multiple of the page size, because a
 * page must not show bytes of another allocation. The length and the alignment
 * of flexmem_device_alloc() decide that.
 *
 * A bound allocation cannot be resized. flexmem_device_free() of a bound
 * allocation ends its handle, but the memory stays bound and charged until
 * flexmem_device_space_unbind() or flexmem_device_close(). A reset of the device
 * unmaps everything; the binding of a lost allocation stays until
 * flexmem_device_space_unbind().
 *
 * Return: 0; -EINVAL: not whole pages, wrong @access, or bytes outside the
 * allocation; -ENOENT: no such allocation; -ENXIO: the addresses are not all in
 * one reserved range; -EEXIST: one of them is taken by a binding; -EBUSY: one of
 * the bytes is, or the allocation is being resized at this moment; -EMFILE: as
 * flexmem_device_space_reserve(); -ENOSPC: the device has no room in its page
 * tables, which all device objects share. After these errors nothing is bound.
 * -EIO, -ETIMEDOUT, -ENOMEM: device programs may reach some of the bytes, and
 * addresses and bytes may stay taken; flexmem_device_space_unbind() frees them,
 * or fails with -ENOENT if they are free. -EINTR (the thread was killed): the
 * same, or nothing is bound, or all bytes are bound.
 */
FLEXMEM_API int flexmem_device_space_bind(struct flexmem_device *device,
					  uint64_t address, uint32_t handle,
					  uint64_t offset, uint64_t length,
					  uint32_t access);

/**
 * flexmem_device_space_unbind() - undo one flexmem_device_space_bind()
 * @device: the device object that bound the memory
 * @address: exactly the address that was passed to flexmem_device_space_bind()
 *
 * A device program that still uses the addresses faults.
 *
 * Return: 0; -ENOENT: no binding begins there; -EBUSY: another thread binds or
 * unbinds there; -EIO, -ETIMEDOUT, -ENOMEM: device programs may still reach the
 * bytes, look-ups do not find them, and the addresses stay taken; call again.
 * -EINTR (the thread was killed): the same, or the binding is undone, and
 * another call fails with -ENOENT.
 */
FLEXMEM_API int flexmem_device_space_unbind(struct flexmem_device *device,
					    uint64_t address);

/**
 * struct flexmem_space_bytes - bytes that are bound, from one byte on
 * @handle: handle of the allocation; 0: it was freed
 * @chunk: number of the chunk that holds the byte, from 0 on
 * @access: bits of enum flexmem_space_access
 * @reserved: 0
 * @address: address of the byte
 * @offset: its offset in the allocation
 * @length: bytes that one flexmem_device_space_bind() has bound from there on,
 *	in this chunk and in the chunks behind it
 */
struct flexmem_space_bytes {
	uint32_t handle;
	uint32_t chunk;
	uint32_t access;
	uint32_t reserved;
	uint64_t address;
	uint64_t offset;
	uint64_t length;
};

/**
 * flexmem_device_space_lookup() - find the address of a byte of an allocation
 * @device: the device object that made the allocation
 * @handle: handle of the allocation
 * @offset: offset of the byte in the allocation
 * @bytes: to be filled
 * @size: sizeof(*@bytes)
 *
 * Return: 0; -ENOENT: no such allocation, or the byte is not bound; -EBUSY: the
 * allocation is being resized at this moment.
 */
FLEXMEM_API int
flexmem_device_space_lookup(const struct flexmem_device *device,
			    uint32_t handle, uint64_t offset,
			    struct flexmem_space_bytes *bytes, size_t size);

/**
 * flexmem_device_space_lookup_address() - find the byte at an address
 * @device: the device object that reserved the address
 * @address: any address
 * @bytes: to be filled
 * @size: sizeof(*@bytes)
 *
 * Return: 0; -ENOENT: nothing is bound there.
 */
FLEXMEM_API int
flexmem_device_space_lookup_address(const struct flexmem_device *device,
				    uint64_t address,
				    struct flexmem_space_bytes *bytes,
				    size_t size);

/**
 * flexmem_device_usage() - read the memory of each owner
 * @device: an open device
 * @usage: to be filled with the sums
 * @usage_size: sizeof(*@usage)
 * @regions: where to put the array of ``usage->regions`` regions;
 *           flexmem_regions_free() frees it; NULL: the caller does not want it
 * @region_size: sizeof(**@regions); ignored with NULL
 * @accounts: where to put the array of ``usage->accounts`` accounts: cgroups
 *            first, then clients, each by id; flexmem_accounts_free() frees it;
 *            NULL: the caller does not want it
 * @account_size: sizeof(**@accounts); ignored with NULL
 *
 * The administrator sees all accounts. Other users see only the accounts of the
 * opener's cgroup and of this device object. The bytes of a cgroup include those
 * of all cgroups below it. The sums, the regions and the first 64 accounts are
 * of one moment. If there are no more accounts, the bytes of all clients add up
 * to ``usage->owned``. Other accounts are read a little later.
 *
 * Return: 0; -EAGAIN: regions or accounts grew faster than they could be
 * listed.
 */
FLEXMEM_API int flexmem_device_usage(const struct flexmem_device *device,
				     struct flexmem_usage *usage,
				     size_t usage_size,
				     struct flexmem_region_state **regions,
				     size_t region_size,
				     struct flexmem_account_state **accounts,
				     size_t account_size);

/**
 * flexmem_accounts_free() - free an array of accounts
 * @accounts: from flexmem_device_usage(), or NULL
 */
FLEXMEM_API void flexmem_accounts_free(struct flexmem_account_state *accounts);

/**
 * flexmem_device_get_limit() - read a limit of the cgroup of this device object
 * @device: an open device
 * @charge: the resource: enum flexmem_charge
 * @allowance: to be filled
 * @size: sizeof(*@allowance)
 *
 * Return: 0; -EINVAL: unknown @charge.
 */
FLEXMEM_API int flexmem_device_get_limit(const struct flexmem_device *device,
					 uint32_t charge,
					 struct flexmem_allowance *allowance,
					 size_t size);

/**
 * flexmem_device_set_limit() - set a limit of a cgroup
 * @device: an open device
 * @whose: enum flexmem_limit_for; with FLEXMEM_FOR_ALL_FUNCTIONS the limit is not
 *	only for this function
 * @cgroup: number of the cgroup, as in &struct flexmem_account_state. The
 *	cgroup need not have an open file. FLEXMEM_FOR_DEFAULT: 0
 * @charge: the resource: enum flexmem_charge
 * @limit: the limit; FLEXMEM_UNLIMITED removes it
 * @allowance: to be filled with the new limit and the amount that is charged
 *	now; NULL: the caller does not want them
 * @size: sizeof(*@allowance); ignored with NULL
 *
 * If the limit is below the amount that is charged, no memory is taken away,
 * but nothing more can be charged.
 *
 * Return: 0; -EPERM: only the administrator may; -ENOENT: no such cgroup; -EINVAL:
 * unknown @whose or @charge, or the limit is that of the root cgroup's open
 * files, which are not limited; -EOPNOTSUPP: the driver does not know
 * FLEXMEM_FOR_ALL_FUNCTIONS.
 */
FLEXMEM_API int flexmem_device_set_limit(struct flexmem_device *device,
					 uint32_t whose, uint64_t cgroup,
					 uint32_t charge, uint64_t limit,
					 struct flexmem_allowance *allowance,
					 size_t size);

/**
 * flexmem_device_reserve() - reserve regions for a cgroup
 * @device: an open device
 * @cgroup: number of the cgroup, not the root, as in &struct
 *	flexmem_account_state
 * @size: bytes of each region, one of &flexmem_properties.fallback_sizes; 0 if
 *	@count is 0
 * @count: number of regions that are reserved for the cgroup afterwards; 0 ends
 *	the reservation
 * @limit: where to put the reason (enum flexmem_limit) on -ENOMEM; NULL: the
 *	caller does not want it
 *
 * Only files of the cgroup and of the cgroups below it allocate in these
 * regions, and these files use the reserved regions first. The regions are
 * acquired at once. Either all of them are reserved, or nothing changes. A
 * cgroup has one reservation; a new reservation replaces the old one.
 *
 * Return: 0; -EPERM: only the administrator may; -ENOENT: no such cgroup; -EINVAL:
 * the root cgroup, or a size that no region has; -ENOMEM: the device has no further
 * region, or a limit of regions forbids it.
 */
FLEXMEM_API int flexmem_device_reserve(struct flexmem_device *device,
				       uint64_t cgroup, uint64_t size,
				       uint32_t count, uint32_t *limit);

/**
 * flexmem_limit_name() - short name of a limit, for logs and reports
 * @limit: enum flexmem_limit
 *
 * Return: a constant string like "slots"; "unknown" for an unknown @limit.
 */
FLEXMEM_API const char *flexmem_limit_name(uint32_t limit);

/**
 * flexmem_error_text() - describe an error in one sentence
 * @error: negative errno from this library
 * @failure: details of a failed allocation, or NULL
 * @size: sizeof(*@failure); ignored with NULL
 * @text: where to write the NUL-terminated text; may be NULL if @length is 0
 * @length: size of @text in bytes; 512 hold any text
 *
 * For -ENOMEM with details the text names the limit, the request and the free
 * memory, like "out of device memory: no slot left (8 of 8 used); asked 12.0
 * GiB, free 3.1 GiB in 8 regions, largest piece 2.0 GiB; 3.0 GiB leaving; own
 * 5.0 GiB can be freed". "Leaving" are bytes that were freed but are still in
 * use. "Own" are bytes of this device object. The text leaves out "leaving" or
 * "own" if its figure is 0. A limit of a cgroup has the cgroup's path, if the
 * caller's cgroup is that cgroup or below it: "cgroup limit of /jobs (8.0 GiB of
 * 8.0 GiB used: see sudo flexmem owners)". A cgroup outside the caller's cgroup
 * namespace is "a limit above this container".
 *
 * For -ENOTTY, -E2BIG and -EOPNOTSUPP the text ends with both versions if the
 * module that is loaded is of another one than the library.
 *
 * Return: 0; -EMSGSIZE: the text is cut off; -EINVAL: @size is too small.
 */
FLEXMEM_API int flexmem_error_text(int error,
				   const struct flexmem_failure *failure,
				   size_t size, char *text, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* FLEXMEM_H */
