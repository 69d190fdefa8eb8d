/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Shared by the files of libflexmem_cuda. */
#ifndef CUDA_H
#define CUDA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "flexmem_cuda.h"

/*
 * CUDA's driver. Its header is not needed, and neither is CUDA to build the
 * library. HIP and MUSA have the same functions under another prefix; only CUDA
 * has been tried.
 */
#define FMCUDA_PREFIX "cu"
#define FMCUDA_LIBRARY "libcuda.so.1"

struct fmcuda_location {
	int type;
	int id;
};

struct fmcuda_property {
	int type;
	int handle_types;
	struct fmcuda_location location;
	void *win32;
	unsigned char flags[32];
};

struct fmcuda_access {
	struct fmcuda_location location;
	int flags;
};

/* CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, PROT_READWRITE */
#define FMCUDA_PINNED 1
#define FMCUDA_DEVICE 1
#define FMCUDA_READWRITE 3
/* CU_EVENT_DISABLE_TIMING, CU_STREAM_CAPTURE_MODE_RELAXED */
#define FMCUDA_NO_TIMING 2
#define FMCUDA_RELAXED 2

enum fmcuda_result {
	FMCUDA_SUCCESS = 0,
	FMCUDA_INVALID_VALUE = 1,
	FMCUDA_OUT_OF_MEMORY = 2,
	FMCUDA_NOT_INITIALIZED = 3,
	FMCUDA_DEINITIALIZED = 4,
	FMCUDA_NO_DEVICE = 100,
	FMCUDA_INVALID_DEVICE = 101,
	FMCUDA_INVALID_CONTEXT = 201,
	FMCUDA_ECC = 214,
	FMCUDA_NOT_READY = 600,
	FMCUDA_ILLEGAL_ADDRESS = 700,
	FMCUDA_CONTEXT_IS_DESTROYED = 709,
	FMCUDA_LAUNCH_FAILED = 719,
	FMCUDA_NOT_SUPPORTED = 801,
	FMCUDA_CAPTURE_FIRST = 900,
	FMCUDA_CAPTURE_LAST = 908,
};

/* F(name, suffix, parameters) */
#define FMCUDA_FUNCTIONS(F) \
	F(Init, "", (unsigned int flags)) \
	F(GetErrorName, "", (int error, const char **text)) \
	F(GetErrorString, "", (int error, const char **text)) \
	F(DeviceGet, "", (int *device, int number)) \
	F(DevicePrimaryCtxRetain, "", (void **context, int device)) \
	F(CtxPushCurrent, "_v2", (void *context)) \
	F(CtxPopCurrent, "_v2", (void **context)) \
	F(CtxSynchronize, "", (void)) \
	F(ThreadExchangeStreamCaptureMode, "", (int *mode)) \
	F(MemGetInfo, "_v2", (size_t *free, size_t *total)) \
	F(MemAlloc, "_v2", (uint64_t *address, size_t bytes)) \
	F(MemFree, "_v2", (uint64_t address)) \
	F(MemAddressReserve, "", (uint64_t *address, size_t bytes, \
				  size_t alignment, uint64_t hint, \
				  uint64_t flags)) \
	F(MemAddressFree, "", (uint64_t address, size_t bytes)) \
	F(MemCreate, "", (uint64_t *page, size_t bytes, \
			  const struct fmcuda_property *property, \
			  uint64_t flags)) \
	F(MemRelease, "", (uint64_t page)) \
	F(MemMap, "", (uint64_t address, size_t bytes, size_t offset, \
		       uint64_t page, uint64_t flags)) \
	F(MemUnmap, "", (uint64_t address, size_t bytes)) \
	F(MemSetAccess, "", (uint64_t address, size_t bytes, \
			     const struct fmcuda_access *access, \
			     size_t count)) \
	F(EventCreate, "", (void **event, unsigned int flags)) \
	F(EventRecord, "", (void *event, void *stream)) \
	F(EventQuery, "", (void *event)) \
	F(EventSynchronize, "", (void *event)) \
	F(StreamWaitEvent, "", (void *stream, void *event, \
				unsigned int flags)) \
	F(EventDestroy, "_v2", (void *event))

#define FMCUDA_MEMBER(name, suffix, parameters) int (*name) parameters;
struct fmcuda_driver {
	FMCUDA_FUNCTIONS(FMCUDA_MEMBER)
};

/* Valid after fmcuda_load() has returned 0. */
extern struct fmcuda_driver fmcuda;

/* cuda_driver.c */
int fmcuda_load(void);
/*
 * The errno of a result of the driver. Notes the text of an error for
 * flexmem_cuda_error_text(). @call: the name of the function without prefix.
 */
int fmcuda_errno(const char *call, int result);
/* Whether all memory of the context is lost after this result. */
bool fmcuda_is_lost(int result);
/* Notes the text of an error, and returns @err. */
__attribute__((format(printf, 2, 3))) int fmcuda_fail(int err,
						     const char *format, ...);
/* FMCUDA(name, arguments): calls the driver, and returns an errno. */
#define FMCUDA(name, ...) fmcuda_errno(#name, fmcuda.name(__VA_ARGS__))

/* A GPU that the process uses. */
struct fmcuda_device {
	int number;
	void *context;
	uint64_t total;
	/* Private pools that have begun; any of them may capture a graph. */
	atomic_uint captures;
	/* Calls of the driver, see struct flexmem_cuda_calls. */
	atomic_uint_fast64_t sections;
	atomic_uint_fast64_t nanoseconds;
	atomic_uint_fast64_t longest;
	atomic_uint_fast64_t pages;
	struct flexmem_cache *cache;
};

/* cuda_device.c */
/* Finds a device, and creates its cache at first use. */
int fmcuda_device(int number, struct fmcuda_device **device);
/* The device if it is in use, or NULL. */
struct fmcuda_device *fmcuda_device_in_use(int number);

/* cuda_provider.c */
int fmcuda_open(struct fmcuda_device *device);
void fmcuda_provider(struct fmcuda_device *device,
		     struct flexmem_cache_provider *provider,
		     struct flexmem_cache_events *events);

/*
 * cuda_pointers.c: the token of the last allocation that began at an address; the
 * cache says whether it is still valid. No locks: the caller may not use one
 * address on two threads at the same time.
 */
int fmcuda_pointer_put(uint64_t address, void *token);
/* Returns the token, or NULL. */
void *fmcuda_pointer_get(uint64_t address);

/* Multiples of this can be addresses of allocations. */
#define FMCUDA_GRANULE 512

#endif /* CUDA_H */
