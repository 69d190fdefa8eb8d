/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Shared by the files of libflexmem. The driver's structs stay inside the
 * library: each file that sends a command converts them itself.
 *
 * Names that are not public begin with fmlib_, because a static library cannot
 * hide them.
 */
#ifndef FMLIB_INTERNAL_H
#define FMLIB_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/flexmem.h>

#include "flexmem.h"

/*
 * The size of a struct up to and including @member, which was its last member
 * in an earlier version.
 */
#define FMLIB_SIZE_TO(type, member) \
	(offsetof(type, member) + sizeof(((type *)0)->member))

#define FMLIB_ACCOUNT_MIN FMLIB_SIZE_TO(struct flexmem_account_state, limit)
#define FMLIB_ALLOCATION_MIN \
	FMLIB_SIZE_TO(struct flexmem_allocated, failure.max_region)
#define FMLIB_ALLOWANCE_MIN FMLIB_SIZE_TO(struct flexmem_allowance, used)
#define FMLIB_DOMAIN_MIN FMLIB_SIZE_TO(struct flexmem_domain_state, sizes)
#define FMLIB_FAILURE_MIN FMLIB_SIZE_TO(struct flexmem_failure, max_region)
#define FMLIB_IDENTITY_MIN FMLIB_SIZE_TO(struct flexmem_identity, function)
#define FMLIB_PRESSURE_MIN \
	FMLIB_SIZE_TO(struct flexmem_pressure_event, sequence)
#define FMLIB_PROPERTIES_MIN FMLIB_SIZE_TO(struct flexmem_properties, name)
#define FMLIB_REGION_MIN FMLIB_SIZE_TO(struct flexmem_region_state, sequence)
#define FMLIB_REQUEST_MIN FMLIB_SIZE_TO(struct flexmem_alloc_request, placement)
#define FMLIB_RESIZED_MIN \
	FMLIB_SIZE_TO(struct flexmem_resized, failure.quota_used)
#define FMLIB_SEGMENT_MIN FMLIB_SIZE_TO(struct flexmem_segment, length)
#define FMLIB_SPACE_BYTES_MIN FMLIB_SIZE_TO(struct flexmem_space_bytes, length)
#define FMLIB_SPACE_RANGE_MIN \
	FMLIB_SIZE_TO(struct flexmem_space_range, largest_free)
#define FMLIB_STATISTICS_MIN \
	FMLIB_SIZE_TO(struct flexmem_statistics, own_handles)
#define FMLIB_USAGE_MIN FMLIB_SIZE_TO(struct flexmem_usage, generation)

/*
 * fd, adopted, path and info never change after open. log_lock protects log and
 * log_user, and is held while the log callback runs. It also protects writes of
 * log_level; readers without the lock may see a stale value, which does no
 * harm.
 *
 * debug_lock serialises allocations and frees at FLEXMEM_LOG_DEBUG, so that a
 * change of the region table can be attributed to one call. Order: debug_lock,
 * log_lock.
 */
struct flexmem_device {
	int fd;
	bool adopted;
	char *path;
	struct flexmem_info info;
	pthread_mutex_t debug_lock;
	pthread_mutex_t log_lock;
	atomic_int log_level;
	flexmem_log_fn log;
	void *log_user;
};

/* device.c: sends one command; returns 0 or -errno. */
int fmlib_ioctl(const struct flexmem_device *device, unsigned long command,
		void *argument);

/*
 * device.c: the free and total bytes of the whole device, without regions that
 * only programs can use.
 */
void fmlib_tensor_memory(const struct flexmem_domain_state *all, uint64_t *free,
			 uint64_t *total);
/* device.c: what this process can have of it, and can still get. */
void fmlib_own_memory(const struct flexmem_domain_state *all, uint64_t *free,
		      uint64_t *total);

#define FMLIB_AVAILABLE_MIN FMLIB_SIZE_TO(struct flexmem_available, largest)

#define FMLIB_SECOND UINT64_C(1000000000)
#define FMLIB_MS UINT64_C(1000000)

/*
 * event.c: the time of a clock that only runs on, in nanoseconds; and a sleep
 * until this time, whatever signals arrive.
 */
uint64_t fmlib_now(void);
void fmlib_sleep_until(uint64_t time);

/*
 * Fills a struct of the caller, whose size may differ from the library's. The
 * first version of the struct has @min bytes.
 */
int fmlib_copy_out(void *to, size_t to_size, size_t min, const void *from,
		   size_t from_size);

/*
 * Reads a struct of the caller, whose size may differ from the library's.
 * Members that the caller's struct lacks become zero. Returns -E2BIG if a byte
 * that the library does not know is not zero.
 */
int fmlib_copy_in(void *to, size_t to_size, const void *from, size_t from_size,
		  size_t min);

/*
 * error.c: prints only the limit that the driver has reported, without other
 * figures.
 */
#define FMLIB_LIMIT_TEXT 320
void fmlib_limit_text(const struct flexmem_failure *failure,
		      char text[FMLIB_LIMIT_TEXT]);

/* open.c: opens the node that @path or the environment chooses. */
int fmlib_open(struct flexmem_device *device, const char *path);
/* open.c: takes over a descriptor of a node. On failure it stays open. */
int fmlib_adopt(struct flexmem_device *device, int fd);

/*
 * alloc.c: converts a request to the driver's struct. Passes unknown flags on;
 * the driver refuses them.
 */
struct flexmem_alloc
fmlib_request_to_uapi(const struct flexmem_alloc_request *request);
/* Converts the reply to an ALLOC of @request that returned @error. */
void fmlib_allocation_from_uapi(const struct flexmem_device *device, int error,
				const struct flexmem_alloc_request *request,
				const struct flexmem_alloc *reply,
				struct flexmem_allocated *allocation);
/*
 * usage.c: the figures of a device and of the caller's own.
 * @sums: reply of SNAPSHOT, without its lists
 * @cgroup: the opener's cgroup
 * @file: this open file
 */
struct fmlib_own {
	struct flexmem_snapshot sums;
	struct flexmem_owner_entry cgroup;
	struct flexmem_owner_entry file;
};

int fmlib_own(const struct flexmem_device *device, struct fmlib_own *own);

/*
 * usage.c: limits, and what is charged to them, by enum flexmem_charge.
 * @cgroup: of the opener's cgroup
 * @file: of this open file, which has no limits of its own
 */
struct fmlib_charges {
	struct flexmem_allowance cgroup[FLEXMEM_CHARGES];
	struct flexmem_allowance file[FLEXMEM_CHARGES];
};

int fmlib_own_charges(const struct flexmem_device *device,
		      struct fmlib_charges *charges);

/* alloc.c: converts the limit that has refused a request. */
void fmlib_refusal_from_uapi(const struct flexmem_refusal *from,
			     struct flexmem_failure *failure);

/* tables.c: copies a region entry of the driver to an entry of @size bytes. */
void fmlib_region_from_uapi(const void *from, void *to, size_t size);

/* log.c: returns a function that prints, or NULL if no variable asks for it. */
flexmem_log_fn fmlib_log_of_environment(bool cache);
/* Returns the function for warnings about settings without a log callback. */
flexmem_log_fn fmlib_log_of_settings(void);
void fmlib_log_from_environment(struct flexmem_device *device);
bool fmlib_log_wants(const struct flexmem_device *device,
		     enum flexmem_log_level level);
void fmlib_log(struct flexmem_device *device, enum flexmem_log_level level,
	       const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * debug.c: the region tables before and after a command, to be compared. If
 * @on, the device's debug_lock is held from fmlib_debug_begin() to
 * fmlib_debug_end().
 */
struct fmlib_debug {
	bool on;
	struct flexmem_region_state *before;
	size_t before_count;
	struct flexmem_region_state *after;
	size_t after_count;
};

void fmlib_debug_begin(struct flexmem_device *device,
		       struct fmlib_debug *debug);
/* Called after the command: reads the region table, and logs new regions. */
void fmlib_debug_done(struct flexmem_device *device, struct fmlib_debug *debug);
void fmlib_debug_alloc(struct flexmem_device *device,
		       const struct fmlib_debug *debug,
		       const struct flexmem_alloc_request *request,
		       const struct flexmem_allocated *allocation);
/*
 * Logs a free. @handle is 0 if it was freed by address; @size is 0 if it is not
 * known.
 */
void fmlib_debug_free(struct flexmem_device *device,
		      const struct fmlib_debug *debug, int error,
		      uint32_t handle,
		      const struct flexmem_virtual_address *address,
		      uint64_t size);
void fmlib_debug_resize(struct flexmem_device *device,
			const struct fmlib_debug *debug, int error,
			uint32_t handle, uint64_t length,
			const struct flexmem_resized *resized);
/* Logs the free space of changed regions, and drops debug_lock. */
void fmlib_debug_end(struct flexmem_device *device, struct fmlib_debug *debug);

#endif /* FMLIB_INTERNAL_H */
