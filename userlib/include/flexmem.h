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
 * Errors: a function that can fail returns 0 or a negative errno; nothing is
 * kept in global state and errno itself means nothing afterwards. A failed
 * call has changed nothing, and leaves what its out-pointers point to as it
 * was, unless its description says otherwise. Every call that reaches the
 * device can also return:
 *
 *  - -ENODEV: the device is gone; the object can only be closed.
 *  - -ETIMEDOUT: the firmware did not answer in time; call again.
 *  - -EIO: the firmware failed the request or could not be reached.
 *  - -EINTR: the process is being killed. It is not retried, since only a
 *    fatal signal ends a wait in the driver.
 *  - -ENOMEM: host memory is exhausted.
 *  - -ENOTTY, -EOPNOTSUPP, -E2BIG: the driver is older than this library and
 *    lacks what was asked for.
 *
 * Structs grow: each pointer to a struct (or to an array of them) comes with
 * the size that the caller compiled with; pass sizeof(*pointer). The library
 * touches no byte beyond it. What a struct that it fills has in excess of
 * what it knows is zeroed; what a struct that it reads has in excess must be
 * zero (-E2BIG). A size below that of the first version is -EINVAL.
 * &struct flexmem_virtual_address is two numbers for ever and has no size.
 *
 * Threads: any thread may use a device object at any time, also several at
 * once, except that nothing may run during or after its close. After fork()
 * parent and child share one open file, hence the allocations; they go back
 * when both have closed it.
 *
 * Sizes, offsets and alignments are bytes. Pointers must not be NULL where it
 * is not allowed explicitly; a NULL that is seen gives -EINVAL.
 *
 * The library prints nothing (see flexmem_device_set_log()) and never ends the
 * process.
 */

#if defined(__GNUC__)
#define FLEXMEM_API __attribute__((visibility("default")))
#else
#define FLEXMEM_API
#endif

/*
 * struct flexmem_device - an open device, and what was allocated through it
 */
struct flexmem_device;

/**
 * struct flexmem_virtual_address - VirtualAddress: the name of a place
 * @region_id: VF: index in the firmware's table. PF: physical address of the
 *             region's first byte.
 * @offset: bytes from the start of the region, a multiple of 128
 */
struct flexmem_virtual_address {
	uint64_t region_id;
	uint64_t offset;
};

/** enum flexmem_function - which kind of function of the device a node is */
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
	FLEXMEM_LOAD_BALANCE = 0,
	FLEXMEM_FILL_FIRST = 1,
};

/** enum flexmem_acquisition - when regions are taken from the device */
enum flexmem_acquisition {
	FLEXMEM_LAZY = 0,
	FLEXMEM_PREALLOC = 1,
};

/**
 * enum flexmem_limit - what stopped an allocation
 * @FLEXMEM_LIMIT_NONE: nothing, or it was not a limit of device memory
 * @FLEXMEM_LIMIT_CAPACITY: the device has no memory left for another region
 * @FLEXMEM_LIMIT_SLOTS: the firmware's table has no slot left
 * @FLEXMEM_LIMIT_MAX_REGIONS: the driver's own limit of regions is reached
 * @FLEXMEM_LIMIT_FRAGMENTATION: enough bytes are free, but not in one piece
 * @FLEXMEM_LIMIT_REGION_SIZE: no region could ever be as large as the request
 * @FLEXMEM_LIMIT_HANDLES: the device object has as many live allocations as it
 *	may
 *
 * There will be more; treat an unknown one like another kind of "full".
 */
enum flexmem_limit {
	FLEXMEM_LIMIT_NONE = 0,
	FLEXMEM_LIMIT_CAPACITY = 1,
	FLEXMEM_LIMIT_SLOTS = 2,
	FLEXMEM_LIMIT_MAX_REGIONS = 3,
	FLEXMEM_LIMIT_FRAGMENTATION = 4,
	FLEXMEM_LIMIT_REGION_SIZE = 5,
	FLEXMEM_LIMIT_HANDLES = 6,
};

/**
 * FLEXMEM_PROGRAM - flag of allocations, regions and segments: device programs
 *
 * An allocation with it comes from the slots set aside for programs, if there
 * are any; a region or segment with it is in one of them.
 */
#define FLEXMEM_PROGRAM (UINT32_C(1) << 0)

/** FLEXMEM_LOCKED - flag of statistics: no further region is tried for */
#define FLEXMEM_LOCKED (UINT32_C(1) << 0)

/** FLEXMEM_PROGRAM_LOCKED - likewise, in the slots set aside for programs */
#define FLEXMEM_PROGRAM_LOCKED (UINT32_C(1) << 1)

#define FLEXMEM_FALLBACK_SIZES 8

/**
 * struct flexmem_properties - what a device is and how it was set up
 * @function: enum flexmem_function
 * @strategy: enum flexmem_strategy
 * @order: enum flexmem_region_order
 * @acquisition: enum flexmem_acquisition
 * @slots: entries of the segment table
 * @max_regions: at most this many regions are acquired, never above @slots
 * @program_slots: of these, how many only FLEXMEM_PROGRAM uses; 0: all shared
 * @max_handles: live allocations that one device object may have
 * @max_batch: entries that reach the device at once; batches of the library
 *             may be longer
 * @lease_ms: how long a lease lasts, in milliseconds
 * @alignment: every offset and size is a multiple of this (128)
 * @fallback_count: how many of @fallback_sizes are used
 * @max_alignment: largest alignment that can be asked for
 * @granule: sizes of regions are multiples of this
 * @capacity: bytes that may be acquired from the device
 * @max_region: the largest region there could be: no allocation is larger
 * @capabilities: what the driver can do beyond its first version; 0 for now
 * @fallback_sizes: sizes of regions in the order they are tried
 * @name: name of the device behind this function, NUL-terminated
 *
 * Only @capacity and @max_region can change while the device is open.
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
	uint32_t lease_ms;
	uint32_t alignment;
	uint32_t fallback_count;
	uint64_t max_alignment;
	uint64_t granule;
	uint64_t capacity;
	uint64_t max_region;
	uint64_t capabilities;
	uint64_t fallback_sizes[FLEXMEM_FALLBACK_SIZES];
	char name[32];
};

/**
 * struct flexmem_failure - why there was no device memory
 * @limit: enum flexmem_limit; FLEXMEM_LIMIT_NONE: the rest says nothing
 * @regions: regions that the device had just after the failure
 * @slots: as in &struct flexmem_properties
 * @program_slots: likewise
 * @max_regions: likewise
 * @max_handles: likewise
 * @flags: the flags that were asked for
 * @reserved: 0
 * @asked: bytes asked for, rounded up
 * @total_free: free bytes in all regions it could have gone to
 * @largest_free: the largest free block among them
 * @max_region: the largest region there could be
 */
struct flexmem_failure {
	uint32_t limit;
	uint32_t regions;
	uint32_t slots;
	uint32_t program_slots;
	uint32_t max_regions;
	uint32_t max_handles;
	uint32_t flags;
	uint32_t reserved;
	uint64_t asked;
	uint64_t total_free;
	uint64_t largest_free;
	uint64_t max_region;
};

/**
 * struct flexmem_allocation - an allocation, or why there is none
 * @handle: names it in its device object; never 0, unless there is none
 * @flags: FLEXMEM_PROGRAM or 0
 * @error: 0, or a negative errno. -ECANCELED: entry of a batch that ended
 *         before its turn
 * @reserved: 0
 * @address: where it starts
 * @size: its bytes: what was asked for, rounded up to a multiple of 128
 * @failure: details, when @error is -ENOMEM
 */
struct flexmem_allocation {
	uint32_t handle;
	uint32_t flags;
	int32_t error;
	uint32_t reserved;
	struct flexmem_virtual_address address;
	uint64_t size;
	struct flexmem_failure failure;
};

/**
 * struct flexmem_request - entry of a batch: what to allocate
 * @length: bytes, at least 1
 * @alignment: of the offset: a power of two up to max_alignment of &struct
 *             flexmem_properties; anything below 128, and 0, means 128
 * @flags: FLEXMEM_PROGRAM or 0
 * @reserved: must be 0
 */
struct flexmem_request {
	uint64_t length;
	uint64_t alignment;
	uint32_t flags;
	uint32_t reserved;
};

/**
 * struct flexmem_region - one region
 * @region_id: as in &struct flexmem_virtual_address
 * @slot: its index in the segment table
 * @flags: FLEXMEM_PROGRAM or 0
 * @total: its bytes
 * @free: bytes in free blocks
 * @largest_free: bytes of the largest free block
 * @allocated_blocks: blocks in use, by anybody
 * @free_blocks: free blocks
 * @sequence: number of changes (allocations and frees) so far
 */
struct flexmem_region {
	uint64_t region_id;
	uint32_t slot;
	uint32_t flags;
	uint64_t total;
	uint64_t free;
	uint64_t largest_free;
	uint64_t allocated_blocks;
	uint64_t free_blocks;
	uint64_t sequence;
};

/**
 * struct flexmem_segment - one filled entry of the segment table
 * @slot: its index
 * @flags: FLEXMEM_PROGRAM or 0
 * @region_id: as in &struct flexmem_virtual_address
 * @length: bytes that can be reached through it
 */
struct flexmem_segment {
	uint32_t slot;
	uint32_t flags;
	uint64_t region_id;
	uint64_t length;
};

/**
 * struct flexmem_statistics - figures of a device at one moment
 * @flags: of FLEXMEM_LOCKED, FLEXMEM_PROGRAM_LOCKED
 * @regions: regions acquired
 * @leases: leases held, by anybody
 * @reserved: 0
 * @total: bytes in all regions
 * @free: of these, free
 * @used: of these, allocated by anybody
 * @used_program: of @used, allocated with FLEXMEM_PROGRAM
 * @allocated: live allocations of anybody
 * @allocs: allocations made since the device is there
 * @frees: allocations given back since then
 * @failures: allocations since then that found no device memory
 * @generation: of the segment table
 * @own_used: bytes allocated through this device object
 * @own_peak: the most that ever was
 * @own_handles: live allocations of this device object
 */
struct flexmem_statistics {
	uint32_t flags;
	uint32_t regions;
	uint32_t leases;
	uint32_t reserved;
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
 * enum flexmem_log_level - how much the log callback is told
 * @FLEXMEM_LOG_NONE: nothing
 * @FLEXMEM_LOG_WARNING: what somebody should look at
 * @FLEXMEM_LOG_DEBUG: every allocation and free, regions acquired, and the free
 *	space of the region concerned. Allocations and frees then run one at a
 *	time and read the region table around each, which is slow; what other
 *	processes do at the same time on the device may appear in it.
 */
enum flexmem_log_level {
	FLEXMEM_LOG_NONE = 0,
	FLEXMEM_LOG_WARNING = 1,
	FLEXMEM_LOG_DEBUG = 2,
};

/**
 * typedef flexmem_log_fn - receives one line of the log
 * @level: of the line
 * @text: the line, with no newline at its end; valid during the call
 * @user: as given to flexmem_device_set_log()
 *
 * Runs on the thread that made the call it is about, one call at a time for
 * each device object. It must not use the device object.
 */
typedef void (*flexmem_log_fn)(enum flexmem_log_level level, const char *text,
			       void *user);

/**
 * flexmem_library_version() - version of the library that runs
 *
 * Return: a constant string like "0.1.0".
 */
FLEXMEM_API const char *flexmem_library_version(void);

/**
 * flexmem_device_open() - open a device
 * @device: where to put the object; flexmem_device_close() frees it
 * @path: "PF" or "VF" in any case: the first /dev/flexmemN of that kind that
 *        can be opened, by ascending N. Otherwise the path of a node. NULL:
 *        what the environment variable FLEX_DEVICE says, "PF", "VF" or a path
 *        that begins with '/'; when that is not set, or empty, the first VF
 *        that can be opened, else the first PF.
 *
 * With FLEXMEM_DEBUG=1 or TORCH_SPYRE_ALLOC_DEBUG=1 in the environment the
 * object begins with a log callback at FLEXMEM_LOG_DEBUG that writes to stderr.
 * The descriptor is closed on exec.
 *
 * Return: 0; -ENODEV: there is no such node, or none of that kind; -EACCES,
 * -EPERM: none could be opened, and at least one for its permissions; -EINVAL:
 * FLEX_DEVICE is none of the above; -ENOTTY: @path is not a flexmem device; or
 * what open() returned.
 */
FLEXMEM_API int flexmem_device_open(struct flexmem_device **device,
				    const char *path);

/**
 * flexmem_device_close() - close a device and give back all its allocations
 * @device: object to free, or NULL
 */
FLEXMEM_API void flexmem_device_close(struct flexmem_device *device);

/**
 * flexmem_device_path() - path of the node that was opened
 * @device: an open device, or NULL
 *
 * Return: a string that lives as long as @device; NULL for NULL.
 */
FLEXMEM_API const char *flexmem_device_path(const struct flexmem_device *device);

/**
 * flexmem_device_fd() - descriptor of the open file
 * @device: an open device
 *
 * For poll() and the like; it remains the library's.
 *
 * Return: the descriptor, or -EINVAL.
 */
FLEXMEM_API int flexmem_device_fd(const struct flexmem_device *device);

/**
 * flexmem_device_set_log() - choose who receives the log
 * @device: an open device
 * @level: the highest level wanted
 * @log: callback; NULL: none, whatever @level says
 * @user: passed to @log
 *
 * Replaces the callback there was. When this returns the old one is not
 * running and will not be called again.
 *
 * Return: 0 or -EINVAL.
 */
FLEXMEM_API int flexmem_device_set_log(struct flexmem_device *device,
				       enum flexmem_log_level level,
				       flexmem_log_fn log, void *user);

/**
 * flexmem_device_properties() - ask what the device is
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
 * flexmem_device_statistics() - ask for the figures of this moment
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
 * flexmem_device_alloc() - allocate device memory
 * @device: an open device
 * @length: bytes, at least 1
 * @alignment: as in &struct flexmem_request
 * @flags: FLEXMEM_PROGRAM or 0
 * @allocation: to be filled, on failure too
 * @size: sizeof(*@allocation)
 *
 * It goes back with flexmem_device_free(), flexmem_device_free_address() or
 * flexmem_device_close().
 *
 * Return: 0; -ENOMEM: no device memory, for the reason in
 * @allocation->failure (FLEXMEM_LIMIT_NONE there: no host memory); -EINVAL:
 * @length is 0 or @alignment is not a power of two or too large;
 * -EOPNOTSUPP: unknown bits in @flags.
 */
FLEXMEM_API int flexmem_device_alloc(struct flexmem_device *device,
				     uint64_t length, uint64_t alignment,
				     uint32_t flags,
				     struct flexmem_allocation *allocation,
				     size_t size);

/**
 * flexmem_device_free() - give an allocation back
 * @device: the device object it was made with; NULL if @handle is 0
 * @handle: of the allocation; 0: nothing is done
 *
 * Return: 0 or -ENOENT: not a live allocation of this device object.
 */
FLEXMEM_API int flexmem_device_free(struct flexmem_device *device,
				    uint32_t handle);

/**
 * flexmem_device_free_address() - give an allocation back, by its address
 * @device: the device object it was made with
 * @address: exactly where it starts
 *
 * Return: 0 or -ENOENT: no live allocation of this device object starts there.
 */
FLEXMEM_API int
flexmem_device_free_address(struct flexmem_device *device,
			    struct flexmem_virtual_address address);

/**
 * flexmem_device_lookup() - find an allocation by its handle
 * @device: the device object it was made with
 * @handle: of the allocation
 * @allocation: to be filled
 * @size: sizeof(*@allocation)
 *
 * Return: 0 or -ENOENT: not a live allocation of this device object.
 */
FLEXMEM_API int flexmem_device_lookup(const struct flexmem_device *device,
				      uint32_t handle,
				      struct flexmem_allocation *allocation,
				      size_t size);

/**
 * flexmem_device_alloc_batch() - allocate many
 * @device: an open device
 * @requests: what to allocate
 * @request_size: sizeof(*@requests)
 * @allocations: array of as many, each is filled; may be uninitialised
 * @allocation_size: sizeof(*@allocations)
 * @count: entries of both; 0 does nothing
 *
 * The requests are carried out in order, each as by flexmem_device_alloc(),
 * with its own result in ``error`` of the same entry of @allocations. More than
 * max_batch of them take several calls to the driver, between which others
 * may allocate.
 *
 * Return: 0 when every request was carried out, even if all of them failed.
 * Otherwise why the batch ended early; entries that were not reached have
 * -ECANCELED then, and the others stay as they are: what was allocated is
 * the caller's.
 */
FLEXMEM_API int
flexmem_device_alloc_batch(struct flexmem_device *device,
			   const struct flexmem_request *requests,
			   size_t request_size,
			   struct flexmem_allocation *allocations,
			   size_t allocation_size, size_t count);

/**
 * flexmem_device_free_batch() - give many back
 * @device: the device object they were made with
 * @handles: of the allocations; unlike in flexmem_device_free() 0 is -ENOENT
 * @errors: array of as many: 0, -ENOENT, or -ECANCELED as above
 * @count: entries of both; 0 does nothing
 *
 * Return: as flexmem_device_alloc_batch().
 */
FLEXMEM_API int flexmem_device_free_batch(struct flexmem_device *device,
					  const uint32_t *handles, int *errors,
					  size_t count);

/**
 * flexmem_device_free_address_batch() - give many back, by their addresses
 * @device: the device object they were made with
 * @addresses: exactly where they start
 * @errors: array of as many: 0, -ENOENT, or -ECANCELED as above
 * @count: entries of both; 0 does nothing
 *
 * Return: as flexmem_device_alloc_batch().
 */
FLEXMEM_API int
flexmem_device_free_address_batch(struct flexmem_device *device,
				  const struct flexmem_virtual_address *addresses,
				  int *errors, size_t count);

/**
 * flexmem_device_regions() - list all regions as they are at one moment
 * @device: an open device
 * @regions: where to put the array, in the order of slots;
 *           flexmem_regions_free() frees it; NULL when there is none
 * @size: sizeof(**@regions)
 * @count: where to put the number of its entries
 *
 * Return: 0; -EAGAIN: regions were acquired faster than they could be listed.
 */
FLEXMEM_API int flexmem_device_regions(const struct flexmem_device *device,
				       struct flexmem_region **regions,
				       size_t size, size_t *count);

/**
 * flexmem_regions_free() - free an array of regions
 * @regions: from flexmem_device_regions(), or NULL
 */
FLEXMEM_API void flexmem_regions_free(struct flexmem_region *regions);

/**
 * flexmem_device_segments() - read the segment table as a dispatch sees it
 * @device: an open device
 * @segments: where to put the array of filled slots, in their order;
 *            flexmem_segments_free() frees it; NULL when there is none
 * @size: sizeof(**@segments)
 * @count: where to put the number of its entries
 * @generation: where to put the table's generation, or NULL. It grows whenever
 *              a slot is filled, emptied or refilled.
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
 * flexmem_device_lease_take() - keep filled slots as they are
 * @device: an open device
 * @milliseconds: where to put how long it lasts from now, or NULL
 * @generation: where to put the generation of the segment table, or NULL
 *
 * A device object has one lease at most; taking it again begins its time anew.
 * It ends when it is dropped, when its time is over, on close, and on reset or
 * removal of the device.
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_device_lease_take(struct flexmem_device *device,
					  uint32_t *milliseconds,
					  uint64_t *generation);

/**
 * flexmem_device_lease_drop() - give the lease back
 * @device: an open device
 *
 * Return: 0; -EINVAL: there is none, or its time has run out.
 */
FLEXMEM_API int flexmem_device_lease_drop(struct flexmem_device *device);

/**
 * flexmem_device_trim() - give regions without allocations back to the device
 * @device: an open device
 * @regions: where to put how many they were, or NULL
 * @bytes: where to put the bytes in them, or NULL
 *
 * @regions and @bytes are written on failure too: the firmware may have failed
 * in the middle.
 *
 * Return: 0; -EPERM: only the administrator may; -EBUSY: somebody has a lease.
 */
FLEXMEM_API int flexmem_device_trim(struct flexmem_device *device,
				    uint32_t *regions, uint64_t *bytes);

/**
 * flexmem_limit_name() - short name of a limit, for logs and reports
 * @limit: enum flexmem_limit
 *
 * Return: a constant string like "slots"; "unknown" for an unknown one.
 */
FLEXMEM_API const char *flexmem_limit_name(uint32_t limit);

/**
 * flexmem_error_text() - say in one sentence what went wrong
 * @error: negative errno from this library
 * @failure: details of a failed allocation, or NULL
 * @size: sizeof(*@failure); ignored with NULL
 * @text: where to write; always NUL-terminated if @length is not 0; may be
 *        NULL if it is
 * @length: bytes there is room for; 256 hold any text
 *
 * For -ENOMEM with details it names the limit, what was asked for and what is
 * free, like "out of device memory: no slot left (8 of 8 used); asked
 * 12.0 GiB, free 3.1 GiB in 8 regions, largest piece 2.0 GiB".
 *
 * Return: 0; -EMSGSIZE: the text is cut off; -EINVAL: as for any struct.
 */
FLEXMEM_API int flexmem_error_text(int error,
				   const struct flexmem_failure *failure,
				   size_t size, char *text, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* FLEXMEM_H */
