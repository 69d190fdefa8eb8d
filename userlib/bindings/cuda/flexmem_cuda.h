/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libflexmem_cuda - flexmem's cache over the memory of NVIDIA GPUs, without
 * flexmem's kernel driver.
 */
#ifndef FLEXMEM_CUDA_H
#define FLEXMEM_CUDA_H

#include <flexmem_cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: Conventions
 *
 * The library loads CUDA's driver, libcuda.so.1, with the first call that needs
 * it. FLEXMEM_CUDA_DRIVER in the environment names another file. A device is
 * the driver's number of a GPU, as CUDA_VISIBLE_DEVICES orders them. A stream is
 * a CUstream or cudaStream_t; NULL is the default stream.
 *
 * Each GPU has one cache, which the first call for that GPU creates. Its
 * memory belongs to the primary context of the GPU, which the CUDA runtime and
 * PyTorch use, too. FLEXMEM_ALLOC_CONF has the settings, see &struct
 * flexmem_cache_options: with expandable_segments:True segments grow in pages of
 * FLEXMEM_CUDA_PAGE bytes; otherwise each segment is an allocation of the
 * driver. The caches live until the process ends, and the library calls nothing
 * at that moment.
 *
 * Functions return 0 or a negative errno. flexmem_cuda_error_text() has the
 * reason of the last error of the thread in words, with the name and the text
 * of the driver's error. Every call can return:
 *
 *  - -ENODEV: there is no driver or no such device.
 *  - -EIO: the driver failed, for example because a kernel has crashed.
 *  - -ECHILD: the process that forked this one has used the device. CUDA does
 *    not work in such a child.
 *  - -ENOMEM: host memory is exhausted.
 *
 * Any thread may call any function at any time, but none from a callback of the
 * cache.
 */

/** FLEXMEM_CUDA_PAGE - growing segments are multiples of this number of bytes */
#define FLEXMEM_CUDA_PAGE (UINT64_C(20) << 20)

/** FLEXMEM_CUDA_DEVICES - the library uses devices below this number */
#define FLEXMEM_CUDA_DEVICES 64

/**
 * flexmem_cuda_alloc() - allocate memory of a GPU
 * @bytes: bytes; 0 gives NULL
 * @device: number of the GPU
 * @stream: stream on which the memory is used
 * @pointer: where to put the address on the device, a multiple of 512
 *
 * Return: 0; -ENOMEM: no device memory.
 */
FLEXMEM_API int flexmem_cuda_alloc(uint64_t bytes, int device, void *stream,
				   void **pointer);

/**
 * flexmem_cuda_malloc() - allocate memory of a GPU, in the form that PyTorch's
 * CUDAPluggableAllocator needs
 * @bytes: bytes; 0 gives NULL
 * @device: number of the GPU
 * @stream: stream on which the memory is used
 *
 * Return: the address on the device, or NULL. If PyTorch is in the process, the
 * function throws c10::OutOfMemoryError in place of NULL, or
 * std::runtime_error for an error other than -ENOMEM.
 */
FLEXMEM_API void *flexmem_cuda_malloc(ptrdiff_t bytes, int device,
				      void *stream);

/**
 * flexmem_cuda_free() - free memory
 * @pointer: from flexmem_cuda_alloc() or flexmem_cuda_malloc(), or NULL
 * @bytes: ignored, because the cache knows the size
 * @device: number of the GPU
 * @stream: ignored, because the cache knows the stream
 *
 * Return: 0; -EINVAL: no live allocation of this GPU begins at @pointer. PyTorch
 * does not read the result.
 */
FLEXMEM_API int flexmem_cuda_free(void *pointer, ptrdiff_t bytes, int device,
				  void *stream);

/**
 * flexmem_cuda_record_stream() - say that another stream uses an allocation
 * @pointer: address of a live allocation, or NULL
 * @stream: stream that uses it
 *
 * See flexmem_cache_record_stream(). The stream must exist until the allocation
 * is freed.
 *
 * Return: 0; -EINVAL: no live allocation begins at @pointer. PyTorch does not
 * read the result.
 */
FLEXMEM_API int flexmem_cuda_record_stream(void *pointer, void *stream);

/**
 * flexmem_cuda_empty() - return the free memory of all GPUs to the driver
 *
 * Return: 0, or the first error of flexmem_cache_empty(). PyTorch does not read
 * the result.
 */
FLEXMEM_API int flexmem_cuda_empty(void);

/**
 * flexmem_cuda_set_memory_fraction() - limit the bytes in segments
 * @fraction: above 0.0, up to 1.0: share of the GPU's memory
 * @device: number of the GPU
 *
 * Return: 0; -EINVAL: @fraction is out of range.
 */
FLEXMEM_API int flexmem_cuda_set_memory_fraction(double fraction, int device);

/**
 * flexmem_cuda_set_limit() - limit the bytes in segments
 * @device: number of the GPU
 * @bytes: the limit, at least 1; a limit above the GPU's memory limits nothing
 *
 * Return: 0; -EINVAL: @bytes is 0.
 */
FLEXMEM_API int flexmem_cuda_set_limit(int device, uint64_t bytes);

/**
 * flexmem_cuda_set_setting() - change a setting of a GPU's cache
 * @device: number of the GPU
 * @key: as for flexmem_cache_set_setting()
 * @value: as for flexmem_cache_set_setting()
 *
 * Return: as flexmem_cache_set_setting().
 */
FLEXMEM_API int flexmem_cuda_set_setting(int device, const char *key,
					 const char *value);

/**
 * flexmem_cuda_pool_begin() - send requests of some streams to a private pool
 * @device: number of the GPU
 * @major: first half of the number of the pool, which the caller chooses
 * @minor: second half
 * @filter: decides which streams use the pool, see flexmem_cache_pool_begin()
 * @user: passed to @filter
 *
 * Makes the pool, or holds it once more if it exists. A graph may be captured
 * until flexmem_cuda_pool_end(): see flexmem_cache_pool_capture().
 *
 * Return: 0; -EEXIST: the pool has begun already.
 */
FLEXMEM_API int flexmem_cuda_pool_begin(int device, uint64_t major,
					uint64_t minor,
					flexmem_cache_filter_fn filter,
					void *user);

/**
 * flexmem_cuda_pool_end() - end flexmem_cuda_pool_begin()
 * @device: number of the GPU
 * @major: first half of the number of the pool
 * @minor: second half
 *
 * Return: 0; -ENOENT: the pool has not begun.
 */
FLEXMEM_API int flexmem_cuda_pool_end(int device, uint64_t major,
				      uint64_t minor);

/**
 * flexmem_cuda_pool_release() - end one hold of a private pool
 * @device: number of the GPU
 * @major: first half of the number of the pool
 * @minor: second half
 *
 * Each flexmem_cuda_pool_begin() is one hold. See flexmem_cache_pool_release().
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cuda_pool_release(int device, uint64_t major,
					  uint64_t minor);

/**
 * flexmem_cuda_statistics() - read the figures of a GPU's cache
 * @device: number of the GPU
 * @statistics: to be filled
 * @size: sizeof(*@statistics)
 *
 * A request that fails counts twice in num_ooms and in num_first_failures,
 * because the library makes it again to find the reason.
 *
 * Return: as flexmem_cache_statistics().
 */
FLEXMEM_API int
flexmem_cuda_statistics(int device,
			struct flexmem_cache_statistics *statistics,
			size_t size);

/**
 * flexmem_cuda_reset_peaks() - set all peaks to the current figures
 * @device: number of the GPU
 *
 * Return: as flexmem_cache_reset_peaks().
 */
FLEXMEM_API int flexmem_cuda_reset_peaks(int device);

/**
 * struct flexmem_cuda_calls - calls of the driver by a GPU's cache
 * @sections: number of times that the cache has called the driver
 * @nanoseconds: duration of all these calls together
 * @longest: nanoseconds of the longest one
 * @pages: number of pages that growing segments have mapped
 */
struct flexmem_cuda_calls {
	uint64_t sections;
	uint64_t nanoseconds;
	uint64_t longest;
	uint64_t pages;
};

/**
 * flexmem_cuda_driver_calls() - read how long the driver took
 * @device: number of the GPU
 * @calls: to be filled
 * @size: sizeof(*@calls)
 *
 * Return: 0; -EINVAL: @calls is NULL, or @size too small.
 */
FLEXMEM_API int
flexmem_cuda_driver_calls(int device, struct flexmem_cuda_calls *calls,
			  size_t size);

/**
 * flexmem_cuda_snapshot() - describe segments, blocks and history as JSON
 * @device: number of the GPU
 * @text: where to put the text; flexmem_cuda_text_free() frees it
 * @length: where to put its length without the NUL, or NULL
 *
 * Return: as flexmem_cache_snapshot().
 */
FLEXMEM_API int flexmem_cuda_snapshot(int device, char **text, size_t *length);

/**
 * flexmem_cuda_text_free() - free a text
 * @text: from flexmem_cuda_snapshot(), or NULL
 */
FLEXMEM_API void flexmem_cuda_text_free(char *text);

/**
 * flexmem_cuda_error_text() - the reason of the last error of this thread
 * @text: where to write; always NUL-terminated, unless @length is 0
 * @length: size of @text in bytes; 1024 hold any text
 *
 * Return: 0; -EMSGSIZE: the text is cut off.
 */
FLEXMEM_API int flexmem_cuda_error_text(char *text, size_t length);

/**
 * flexmem_cuda_provider() - the memory of a GPU, for a cache of one's own
 * @device: number of the GPU
 * @provider: to be filled
 * @provider_size: sizeof(*@provider)
 * @events: to be filled
 * @events_size: sizeof(*@events)
 *
 * The cache should have a &flexmem_cache_profile.granule of 512 and a
 * &flexmem_cache_profile.growing_step that is a multiple of FLEXMEM_CUDA_PAGE.
 * @provider->grow returns -EINVAL for another step. Several caches may use the
 * provider.
 *
 * Return: 0; -EINVAL: @provider or @events is NULL, or a size too small.
 */
FLEXMEM_API int
flexmem_cuda_provider(int device, struct flexmem_cache_provider *provider,
		      size_t provider_size,
		      struct flexmem_cache_events *events, size_t events_size);

#ifdef __cplusplus
}
#endif

#endif /* FLEXMEM_CUDA_H */
