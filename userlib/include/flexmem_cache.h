/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libflexmem - the caching allocator: what a framework needs between its
 * tensors and the driver.
 */
#ifndef FLEXMEM_CACHE_H
#define FLEXMEM_CACHE_H

#include <flexmem.h>

#ifdef __cplusplus
extern "C" {
/* A function that fills a struct may have its name: g++ says that it hides it. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#endif

/**
 * DOC: Conventions of the cache
 *
 * A cache takes **segments** from a provider, which is a device unless the
 * caller brings another one, and cuts them into **blocks**. A block that is
 * freed stays in the cache and serves the next request. One cache serves one
 * device; a process may have any number of them.
 *
 * The rules of flexmem.h about errors, sizes of structs and NULL hold here,
 * too. Every call that gets a cache can also return:
 *
 *  - -ECHILD: the cache belongs to the process that this one was forked from.
 *    Nothing was done; the object can only be destroyed, which leaves the
 *    memory to the parent.
 *  - -ENOMEM: host memory is exhausted.
 *
 * Tokens: an allocation is named by a token, a number in the form of a pointer
 * that must never be followed. Each byte of a live allocation has a token of
 * its own: that of the first byte plus its offset. Tokens of different live
 * allocations of one cache differ, also one byte past the end. No token is
 * NULL, except that of zero bytes.
 *
 * A token that is not that of a live allocation's first byte - foreign, freed
 * already, or pointing inside - gives -EINVAL wherever an allocation is
 * expected, and changes nothing. A freed token stays invalid until its name was
 * used 255 times more. A name rests while 1024 others are used. At most FLEXMEM_CACHE_ALLOCATIONS below 4 GiB and
 * FLEXMEM_CACHE_HUGE_ALLOCATIONS of 4 GiB and more, as they are rounded up, live
 * at once: what is above that is -ENOMEM with a reason of its own
 * (FLEXMEM_CACHE_LIMIT_ALLOCATIONS), and counted in num_limit_errors. Names are
 * dealt out to streams 1024 at a time, and stay with them, but for those of 4 GiB
 * and more, which all share.
 *
 * Streams are opaque numbers. A block that was freed is reused on its own
 * stream at once, since work on one stream runs in order. When the provider has
 * refused, another stream may get the memory, if the segment is expandable and the
 * work is done. Use by another
 * stream is told with flexmem_cache_record_stream(); the block then comes back
 * when the events recorded on those streams have happened.
 *
 * Threads: any thread may use a cache at any time, and free what another one
 * allocated, except that nothing may run during or after its destruction. None of
 * the functions may be called in a signal handler. There may be any number of
 * threads and of streams. Threads that use different streams wait for each other
 *
 *  - while the provider is asked: the cache has no block for a request;
 *  - for requests with a pool or a tag, of 4 GiB and more, or of max_split_size_mb
 *    and above, and for the frees of these;
 *  - while there is a history, or a log of debug messages;
 *  - if their streams share a lock. There are 16 of these, and the number of a
 *    stream leads to four of them, of which it takes the first that is free, for
 *    ever. So the first four streams that are used have one each, most of the
 *    first sixteen do, and all others share.
 *
 * Callbacks: which of them runs with the cache locked is said with each. Such a
 * one must not use any cache, create or destroy one, nor fork: that would wait for
 * itself. The others may. Any callback returns as a function does: no exception,
 * longjmp() or pthread_exit() may leave it. A child that is forked in a callback
 * that runs without the lock may return from it, and its call then fails with
 * -ECHILD. A thread that is cancelled in a call ends after it, or before the cache
 * is locked; so do not enable that in a callback.
 *
 * C++: flexmem_cache_setting(), flexmem_cache_profile() and
 * flexmem_cache_statistics() have the names of the structs that they fill. Write
 * ``struct flexmem_cache_statistics`` there, as in C.
 *
 * Reset: a cache is not told when the device is reset, and until then would
 * hand out what is free in segments that were lost. After a reset call
 * flexmem_cache_drop_lost(), and free what was allocated before.
 */

/*
 * struct flexmem_cache - a cache
 */
struct flexmem_cache;

/**
 * FLEXMEM_CACHE_GROWABLE - flag of &flexmem_cache_provider.alloc: the segment
 * will grow, so it should begin where the most room follows
 */
#define FLEXMEM_CACHE_GROWABLE (UINT32_C(1) << 0)

/**
 * FLEXMEM_CACHE_MAPPABLE - flag of &flexmem_cache_options.flags, and of
 * &flexmem_cache_provider.alloc: segments can be mapped by the CPU
 *
 * With a device that is FLEXMEM_MAPPABLE, and flexmem_device_map() works on them.
 */
#define FLEXMEM_CACHE_MAPPABLE (UINT32_C(1) << 1)

/**
 * FLEXMEM_CACHE_MAPPED - flag of &flexmem_cache_options.flags: the cache maps
 * each segment as long as it has it, and every allocation has a pointer
 *
 * Implies FLEXMEM_CACHE_MAPPABLE. Needs &flexmem_cache_provider.map; a device has
 * it with FLEXMEM_CAN_MAP. A mapped segment neither grows nor shrinks, so
 * expandable_segments has no effect, and a warning says so.
 */
#define FLEXMEM_CACHE_MAPPED (UINT32_C(1) << 2)

/**
 * struct flexmem_cache_memory - a segment, as its provider made it
 * @handle: names it to the provider
 * @address: where it starts, a multiple of the alignment asked for
 */
struct flexmem_cache_memory {
	uint64_t handle;
	struct flexmem_virtual_address address;
};

/**
 * struct flexmem_cache_provider - where segments come from
 * @alloc: makes a segment of ``bytes``, which are a multiple of ``alignment``;
 *	``flags`` is of FLEXMEM_CACHE_GROWABLE, FLEXMEM_CACHE_MAPPABLE, the
 *	latter if the caller asked for it. Returns 0 and fills ``memory``;
 *	-ENOMEM when there is no device memory, with the reason in ``failure`` if
 *	it is known (it comes zeroed); or another negative errno.
 * @free: gives a segment back. If it fails the segment remains the cache's,
 *	which tries again later.
 * @grow: makes a segment longer where it is. Returns -EAGAIN when what follows
 *	it is taken; otherwise as @alloc. After -EAGAIN and -ENOMEM the cache
 *	asks for a segment elsewhere. NULL: no segment can grow.
 * @shrink: gives back the end of a segment. After -EIO it is not asked again
 *	for that segment, until the segment has grown. -EBUSY: the segment is in
 *	use in a way that forbids it, as by a map; it is asked again later, and
 *	nothing is logged. NULL: no segment can shrink.
 * @memory_info: the device's free and total bytes. NULL: not known.
 * @user: passed to each
 * @pressure: fills ``event`` with the next event and returns 0; -EAGAIN: there
 *	is none; it does not wait. An event with a smaller ``sequence`` than an
 *	earlier event is out of date, and ignored. NULL: there are no events.
 * @pressure_fd: a descriptor that poll() finds readable when there is an event,
 *	the same each time. NULL: there is none.
 * @lost: whether the bytes of a segment are gone, as after a reset of the
 *	device: 1: they are, and the segment can only be freed; 0: they are not;
 *	or a negative errno, which is taken for "not". It is asked when @grow or
 *	@shrink has returned -EIO, and by flexmem_cache_drop_lost(). NULL: no
 *	segment is ever lost.
 * @map: makes the ``bytes`` of a whole segment visible to the CPU, for reading
 *	and writing. Returns 0 and stores in ``pointer`` where the first byte is;
 *	or a negative errno, with which the allocation that needed the segment
 *	fails. It is called once for each segment, with FLEXMEM_CACHE_MAPPED
 *	only. NULL: segments cannot be mapped.
 * @unmap: ends what @map has made. The cache calls it before @free; if @free then
 *	fails, it calls @map again. NULL if @map is.
 *
 * Their results are checked. A positive result, and -ECHILD, are taken for -EIO.
 * Memory from @alloc or @grow whose offset is no multiple of the alignment, that
 * goes beyond the last address, or that has a byte of another segment is given back,
 * with a warning, and the request fails with -EIO. If @memory_info says that more is
 * free than there is, that is taken for -EIO.
 *
 * All of them run with the cache locked, one at a time, except for these that
 * run without it, and at the same time as any other: @alloc under
 * ``release_lock_on_device_malloc``, @pressure and @pressure_fd. An
 * event is read once: caches that share a provider, or a device, share its
 * events as well, and only one of them should serve them; the program can read
 * them itself instead, and call flexmem_cache_trim() for each.
 */
struct flexmem_cache_provider {
	int (*alloc)(void *user, uint64_t bytes, uint64_t alignment,
		     uint32_t flags, struct flexmem_cache_memory *memory,
		     struct flexmem_failure *failure);
	int (*free)(void *user, uint64_t handle);
	int (*grow)(void *user, uint64_t handle, uint64_t old_bytes,
		    uint64_t bytes, struct flexmem_failure *failure);
	int (*shrink)(void *user, uint64_t handle, uint64_t old_bytes,
		      uint64_t bytes);
	int (*memory_info)(void *user, uint64_t *free, uint64_t *total);
	void *user;
	int (*pressure)(void *user, struct flexmem_pressure_event *event);
	int (*pressure_fd)(void *user);
	int (*lost)(void *user, uint64_t handle);
	int (*map)(void *user, uint64_t handle, uint64_t bytes, void **pointer);
	int (*unmap)(void *user, uint64_t handle, void *pointer,
		     uint64_t bytes);
};

/**
 * flexmem_cache_device_provider() - the provider that a cache has for a device
 * @device: a device; it must outlive each cache that uses the provider
 * @provider: to be filled; its ``user`` is @device
 * @size: sizeof(*@provider)
 *
 * For a caller that wraps some of the callbacks: to count them, to limit them, or
 * to name memory in another way. A callback that this device cannot serve is
 * NULL.
 *
 * Return: 0; -EINVAL: @device or @provider is NULL, or @size too small.
 */
FLEXMEM_API int
flexmem_cache_device_provider(struct flexmem_device *device,
			      struct flexmem_cache_provider *provider,
			      size_t size);

/**
 * struct flexmem_cache_events - how the cache waits for streams
 * @record: makes an event that happens when all that was put on the stream so
 *	far is done. When it fails, the blocks concerned wait for the next
 *	@synchronize_device.
 * @query: 0: it has happened; -EAGAIN: not yet; another errno is taken for
 *	"not yet" and logged
 * @synchronize: waits until the event has happened
 * @destroy: frees an event, whether it has happened or not
 * @synchronize_device: waits until everything on all streams is done
 * @user: passed to each
 *
 * @record, @query and @destroy run with the cache locked; the other two without
 * any lock of the cache's. All must be there. Without these callbacks streams
 * are taken to be done at once, as for a device without queues.
 */
struct flexmem_cache_events {
	int (*record)(void *user, uint64_t stream, uint64_t *event);
	int (*query)(void *user, uint64_t event);
	int (*synchronize)(void *user, uint64_t event);
	void (*destroy)(void *user, uint64_t event);
	int (*synchronize_device)(void *user);
	void *user;
};

/**
 * struct flexmem_cache_contexts - what to do with the contexts of requests
 * @print: writes what is known of a context to ``text``, which has room for
 *	``length`` bytes, and ends it with a NUL, as snprintf() does. Returns the
 *	length of the whole text, also if it is cut off. Each line is a frame of a
 *	snapshot: FILE:LINE:NAME, or just a name. NULL: nothing is written.
 * @hold: the cache begins to use a context, which must be valid until @release.
 *	Runs in flexmem_cache_alloc_request(). NULL: each context is valid until
 *	the cache is destroyed.
 * @release: the cache does not use the context any more. NULL: as for @hold.
 * @user: passed to each
 *
 * A context that is given with a request is used as long as its allocation lives,
 * the history has an event of it, or a snapshot is being written. @release runs
 * once for each @hold. A request that fails holds its context for a moment, or as
 * long as its event is in the history.
 *
 * All of them run without any lock of the cache's, on any thread that uses the
 * cache, and at the same time as any other. They may use the cache.
 */
struct flexmem_cache_contexts {
	size_t (*print)(void *user, void *context, char *text, size_t length);
	void (*hold)(void *user, void *context);
	void (*release)(void *user, void *context);
	void *user;
};

/**
 * struct flexmem_cache_profile - the sizes that the cache works with
 * @granule: sizes of blocks are multiples of it; a power of two from 128
 * @small_limit: requests up to this size go to the small pool
 * @small_segment: size of the segments of the small pool
 * @large_limit: larger requests than @small_limit, but below this, take a
 *	segment of @large_segment
 * @large_segment: see there
 * @large_round: other segments of the large pool are multiples of this
 * @large_remainder: a block of the large pool is split if more than this
 *	remains
 * @oversize_slack: with max_split_size_mb, how much larger a block of that size
 *	and above may be than the request it serves; the configuration key
 *	max_non_split_rounding_mb goes before
 * @growing_step: growing segments have multiples of this
 *
 * 0 in any field means the default: 128, 1 MiB, 2 MiB, 10 MiB, 20 MiB, 2 MiB,
 * 1 MiB, 1 MiB, 2 MiB. With expandable_segments there is no small
 * pool: small requests and large ones share segments, and count as large.
 */
struct flexmem_cache_profile {
	uint64_t granule;
	uint64_t small_limit;
	uint64_t small_segment;
	uint64_t large_limit;
	uint64_t large_segment;
	uint64_t large_round;
	uint64_t large_remainder;
	uint64_t oversize_slack;
	uint64_t growing_step;
};

/**
 * FLEXMEM_CACHE_STRICT - flag of &flexmem_cache_options.flags: a setting that
 * cannot be understood is an error
 */
#define FLEXMEM_CACHE_STRICT (UINT32_C(1) << 16)

/**
 * struct flexmem_cache_options - how a cache is made
 * @device: where its memory comes from; it must outlive the cache. NULL with
 *	@provider.
 * @provider: another source of memory, copied; NULL: @device
 * @provider_size: sizeof(*@provider)
 * @events: how to wait for streams, copied; NULL: streams are done at once
 * @events_size: sizeof(*@events)
 * @profile: sizes, copied; NULL: the defaults
 * @profile_size: sizeof(*@profile)
 * @configuration: settings like "max_split_size_mb:64"; NULL: those of the
 *	environment variable FLEXMEM_ALLOC_CONF; if it is not set,
 *	MINDTORCH_NPU_ALLOC_CONF; if that is not set, PYTORCH_ALLOC_CONF; if
 *	that is not set, its older name PYTORCH_CUDA_ALLOC_CONF
 * @log: receives warnings and, as @level says, more; NULL: warnings about
 *	settings go to stderr (not with FLEXMEM_CACHE_STRICT), and nothing else
 *	does, unless FLEXMEM_DEBUG=1 or TORCH_SPYRE_ALLOC_DEBUG=1 is set.
 *	It may run with the cache locked, and on several threads at once.
 * @log_user: passed to @log
 * @level: the highest enum flexmem_log_level wanted; FLEXMEM_LOG_NONE is taken
 *	for FLEXMEM_LOG_WARNING
 * @device_index: the number of the device in snapshots, at most 65535
 * @flags: of FLEXMEM_CACHE_STRICT, FLEXMEM_CACHE_MAPPABLE, FLEXMEM_CACHE_MAPPED
 * @reserved: 0
 * @problem: where flexmem_cache_create() writes what is wrong when it returns
 *	-EINVAL, always NUL-terminated then, unless its ``cache`` is NULL or its
 *	``size`` too small; otherwise it is left as it was; or NULL
 * @problem_length: bytes there is room for in @problem; 512 hold any text
 * @contexts: what to do with the contexts of requests, copied; NULL: nothing
 * @contexts_size: sizeof(*@contexts)
 *
 * Settings are separated by commas, key and value by ':' or '='. Spaces around
 * them do not matter. A variable that is set to nothing is set. An unknown key,
 * or a value that a key cannot have, is left out with a warning; with
 * FLEXMEM_CACHE_STRICT there is no cache then (-EINVAL), wherever the setting
 * comes from. If a key comes twice the last one counts.
 *
 * ============================= ===============================================
 * backend                       native (default); direct: no cache, each call
 *                               goes to the provider, but for what is freed in
 *                               a private pool, which stays there
 * expandable_segments           True or False (default): segments grow in place
 * garbage_collection_threshold  0.0 (default: off) to 1.0: share of the device
 *                               that may be reserved before free segments go
 *                               back, the oldest first
 * history_entries               how many of the last events a snapshot shows; 0
 *                               (default): none
 * max_non_split_rounding_mb     oversize_slack of the profile
 * max_split_size_mb             blocks of this size and above are not split
 * per_process_memory_fraction   above 0.0, up to 1.0 (default): share of the
 *                               device that may be reserved at all
 * release_lock_on_device_malloc True or False (default): the provider makes
 *                               segments with the cache unlocked. PyTorch's
 *                               release_lock_on_cudamalloc is accepted, too
 * roundup_power2_divisions      sizes are rounded up to one of that many steps
 *                               between powers of two: a power of two up to
 *                               64; or a list like [256:1,512:2,>:4], by
 *                               powers of two in MiB, each up to the next in
 *                               the list; 0 there, as 1, rounds nothing
 * ============================= ===============================================
 *
 * max_split_size_mb does not concern segments that grow. If the provider cannot
 * grow them, expandable_segments has no effect, and a warning says so. With backend direct it has none either.
 *
 * With FLEXMEM_CACHE_MAPPABLE and backend direct the granule is 4096 at least,
 * since that is what a segment takes then.
 */
struct flexmem_cache_options {
	struct flexmem_device *device;
	const struct flexmem_cache_provider *provider;
	size_t provider_size;
	const struct flexmem_cache_events *events;
	size_t events_size;
	const struct flexmem_cache_profile *profile;
	size_t profile_size;
	const char *configuration;
	flexmem_log_fn log;
	void *log_user;
	uint32_t level;
	uint32_t device_index;
	uint32_t flags;
	uint32_t reserved;
	char *problem;
	size_t problem_length;
	const struct flexmem_cache_contexts *contexts;
	size_t contexts_size;
};

/**
 * flexmem_cache_create() - make a cache
 * @cache: where to put the object; flexmem_cache_destroy() frees it
 * @options: how to make it
 * @size: sizeof(*@options)
 *
 * No device memory is taken yet.
 *
 * Return: 0; -EINVAL: there is neither a device nor a provider, or both, or a
 * callback is missing, or a number is too large, or the sizes of the profile
 * contradict each other, or,
 * with FLEXMEM_CACHE_STRICT, a setting cannot be understood: @options->problem
 * has it in words, as has the log; or, with neither of these, @cache or
 * @options is NULL or @size too small; -EOPNOTSUPP: unknown bits in @options->flags,
 * or FLEXMEM_CACHE_MAPPABLE and a device without FLEXMEM_CAN_MAP, or
 * FLEXMEM_CACHE_MAPPED and a provider without ``map`` and ``unmap``.
 */
FLEXMEM_API int flexmem_cache_create(struct flexmem_cache **cache,
				     const struct flexmem_cache_options *options,
				     size_t size);

/**
 * flexmem_cache_destroy() - give everything back and free the cache
 * @cache: object to free, or NULL
 *
 * Waits for the device first when blocks still wait for events. Live
 * allocations go back too. Memory that the provider refuses to take back is
 * logged and forgotten.
 */
FLEXMEM_API void flexmem_cache_destroy(struct flexmem_cache *cache);

/** enum flexmem_cache_source - where the value of a setting comes from */
enum flexmem_cache_source {
	FLEXMEM_CACHE_SOURCE_DEFAULT = 0,
	FLEXMEM_CACHE_SOURCE_CALLER = 1,
	FLEXMEM_CACHE_SOURCE_FLEXMEM_ALLOC_CONF = 2,
	FLEXMEM_CACHE_SOURCE_MINDTORCH_NPU_ALLOC_CONF = 3,
	FLEXMEM_CACHE_SOURCE_PYTORCH_CUDA_ALLOC_CONF = 4,
	FLEXMEM_CACHE_SOURCE_PYTORCH_ALLOC_CONF = 5,
};

/**
 * struct flexmem_cache_setting - one setting, as it is in effect
 * @source: enum flexmem_cache_source
 * @reserved: 0
 * @key: its name
 * @value: its value as it was configured; "off" where that is the default
 */
struct flexmem_cache_setting {
	uint32_t source;
	uint32_t reserved;
	char key[40];
	char value[208];
};

/**
 * flexmem_cache_setting() - read a setting
 * @cache: a cache
 * @index: from 0; settings are in the order of their names
 * @setting: to be filled
 * @size: sizeof(*@setting)
 *
 * Return: 0; -ENOENT: there are not so many.
 */
FLEXMEM_API int flexmem_cache_setting(const struct flexmem_cache *cache,
				      size_t index,
				      struct flexmem_cache_setting *setting,
				      size_t size);

/**
 * flexmem_cache_set_setting() - change a setting of a cache that is in use
 * @cache: a cache
 * @key: ``garbage_collection_threshold``, ``history_entries`` or
 *	``per_process_memory_fraction``
 * @value: as it would be configured
 *
 * flexmem_cache_setting() shows the new value, and the caller as its source. The
 * next request that needs memory from the provider follows it; nothing goes back
 * before. A setting that is refused has no effect.
 *
 * Return: 0; -ENOENT: there is no such key; -EPERM: the key is set when the cache
 * is made only; -EINVAL: it cannot have that value.
 */
FLEXMEM_API int flexmem_cache_set_setting(struct flexmem_cache *cache,
					  const char *key, const char *value);

/**
 * flexmem_cache_set_memory_fraction() - change how much may be reserved
 * @cache: a cache
 * @fraction: above 0.0, up to 1.0: share of the device that may be reserved at
 *	all; 17 digits of it count
 *
 * As flexmem_cache_set_setting() of ``per_process_memory_fraction``.
 *
 * Return: 0; -EINVAL: @fraction is outside of that.
 */
FLEXMEM_API int flexmem_cache_set_memory_fraction(struct flexmem_cache *cache,
						  double fraction);

/**
 * flexmem_cache_source_name() - name of a source of settings
 * @source: enum flexmem_cache_source
 *
 * Return: a constant string: the name of the environment variable, "caller",
 * "default", or "unknown".
 */
FLEXMEM_API const char *flexmem_cache_source_name(uint32_t source);

/**
 * flexmem_cache_profile() - read the sizes that a cache works with
 * @cache: a cache
 * @profile: to be filled; no field is 0
 * @size: sizeof(*@profile)
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_cache_profile(const struct flexmem_cache *cache,
				      struct flexmem_cache_profile *profile,
				      size_t size);

#define FLEXMEM_CACHE_TAG 64

/**
 * struct flexmem_cache_request - what to allocate
 * @bytes: 0 gives the token NULL
 * @stream: on which it is used
 * @pool: a private pool; 0: none, or the one that flexmem_cache_pool_begin() says
 * @tag: a name to sum up by, copied; shorter than FLEXMEM_CACHE_TAG; or NULL
 * @context: what the caller knows about the request, such as a stack trace: see
 *	struct flexmem_cache_contexts; or NULL
 */
struct flexmem_cache_request {
	uint64_t bytes;
	uint64_t stream;
	uint64_t pool;
	const char *tag;
	void *context;
};

/** FLEXMEM_CACHE_ALLOCATIONS - live allocations below 4 GiB of one cache */
#define FLEXMEM_CACHE_ALLOCATIONS 4194304

/** FLEXMEM_CACHE_HUGE_ALLOCATIONS - live ones of 4 GiB and more, rounded up */
#define FLEXMEM_CACHE_HUGE_ALLOCATIONS 1024

/** FLEXMEM_CACHE_ALLOCATION_BYTES - the most bytes of one allocation */
#define FLEXMEM_CACHE_ALLOCATION_BYTES (UINT64_C(1) << 43)

/**
 * enum flexmem_cache_limit - which limit of the cache's own stopped an allocation
 * @FLEXMEM_CACHE_LIMIT_NONE: none: there was no memory
 * @FLEXMEM_CACHE_LIMIT_ALLOCATIONS: as many are live as one cache can tell apart:
 *	FLEXMEM_CACHE_ALLOCATIONS, less the names that other streams hold, or
 *	FLEXMEM_CACHE_HUGE_ALLOCATIONS. No memory that is given back helps, nor
 *	do other streams that free what is below 4 GiB: fewer allocations of
 *	this stream do, or work on one that holds names.
 * @FLEXMEM_CACHE_LIMIT_SIZE: it is more than FLEXMEM_CACHE_ALLOCATION_BYTES, for
 *	which no provider is asked
 */
enum flexmem_cache_limit {
	FLEXMEM_CACHE_LIMIT_NONE = 0,
	FLEXMEM_CACHE_LIMIT_ALLOCATIONS = 1,
	FLEXMEM_CACHE_LIMIT_SIZE = 2,
};

/**
 * enum flexmem_cache_obstacle - why a free block could not serve a request
 * @FLEXMEM_CACHE_OBSTACLE_SIZE: it is too small, or there is none
 * @FLEXMEM_CACHE_OBSTACLE_STREAM: it belongs to another stream
 * @FLEXMEM_CACHE_OBSTACLE_POOL: it belongs to another private pool, or to none and
 *	the request was for one
 * @FLEXMEM_CACHE_OBSTACLE_KIND: it is in the pool of small requests and this is a
 *	large one, or the other way round
 * @FLEXMEM_CACHE_OBSTACLE_SPLIT: max_split_size_mb keeps it for larger requests
 */
enum flexmem_cache_obstacle {
	FLEXMEM_CACHE_OBSTACLE_SIZE = 0,
	FLEXMEM_CACHE_OBSTACLE_STREAM = 1,
	FLEXMEM_CACHE_OBSTACLE_POOL = 2,
	FLEXMEM_CACHE_OBSTACLE_KIND = 3,
	FLEXMEM_CACHE_OBSTACLE_SPLIT = 4,
};

/* How much the struct inside of each of these two can grow. */
#define FLEXMEM_CACHE_DEVICE_ROOM 8
#define FLEXMEM_CACHE_ROOM 2

/**
 * struct flexmem_cache_failure - why there was no memory
 * @error: what the provider returned last; 0: @allowed_bytes left no room to ask
 *	it, or @limit says what it was
 * @limit: enum flexmem_cache_limit
 * @asked: bytes asked for, rounded up if they are not too many for that
 * @segment: bytes that were asked of the provider for it
 * @allocated_bytes: bytes in live allocations
 * @reserved_bytes: bytes in segments
 * @largest_free: the largest free block that the cache has and could not use
 * @allowed_bytes: what per_process_memory_fraction allows; 0: no limit
 * @device_free: what the provider says; both 0: not known
 * @device_total: the same
 * @device: the provider's reason, for an @error of -ENOMEM
 * @device_room: 0; for @device to grow
 * @obstacle: enum flexmem_cache_obstacle: why @largest_free could not be used
 * @largest_kind: enum flexmem_cache_pool_kind: whether it is in the pool of small
 *	or of large requests
 * @largest_stream: the stream that @largest_free belongs to
 * @largest_pool: the private pool that it belongs to, or 0
 * @pool: the private pool that was asked for, or 0
 * @last_pool: the last private pool that the cache has made, or 0
 * @context: as in the request
 * @print: as in &flexmem_cache_options.contexts, for
 *	flexmem_cache_error_text(), which must be called while the context is
 *	valid
 * @print_user: what to pass to @print
 * @expandable: 1: segments of the cache grow; 0: they have fixed sizes
 * @reserved: 0
 *
 * After -ENOENT only @pool and @last_pool say something. All is 0 when it was
 * host memory that was exhausted, or an error of the provider's other than
 * -ENOMEM, as an -ENOENT of its own. The members after @device are 0 when
 * @limit is not FLEXMEM_CACHE_LIMIT_NONE, as are @error, @segment,
 * @largest_free, @allowed_bytes and all that is said of the device.
 */
struct flexmem_cache_failure {
	int32_t error;
	uint32_t limit;
	uint64_t asked;
	uint64_t segment;
	uint64_t allocated_bytes;
	uint64_t reserved_bytes;
	uint64_t largest_free;
	uint64_t allowed_bytes;
	uint64_t device_free;
	uint64_t device_total;
	struct flexmem_failure device;
	uint64_t device_room[FLEXMEM_CACHE_DEVICE_ROOM];
	uint32_t obstacle;
	uint32_t largest_kind;
	uint64_t largest_stream;
	uint64_t largest_pool;
	uint64_t pool;
	uint64_t last_pool;
	void *context;
	size_t (*print)(void *user, void *context, char *text, size_t length);
	void *print_user;
	uint32_t expandable;
	uint32_t reserved;
};

/**
 * struct flexmem_cache_allocation - an allocation, or why there is none
 * @token: of its first byte
 * @size: its bytes: what was asked for, rounded up
 * @requested: what was asked for
 * @address: where it starts on the device
 * @stream: as in the request
 * @pool: the private pool that it is in, or 0
 * @tag: as in the request; "" for NULL
 * @failure: details, when the call returned -ENOMEM, or -ENOENT
 * @failure_room: 0; for @failure to grow
 * @handle: of the segment that it is in, as the provider named it: with a device
 *	what flexmem_device_write() and flexmem_device_map() take
 * @offset: where it starts in that segment
 * @context: as in the request; valid as long as the allocation lives
 * @pointer: where the CPU finds its first byte, with FLEXMEM_CACHE_MAPPED; NULL
 *	without. It is valid until the allocation is freed.
 *
 * Its bytes are those from @offset on, @size of them, of the segment @handle:
 *
 *  - flexmem_device_read() and flexmem_device_write() reach them in any case.
 *    While the segment grows or shrinks they return -EBUSY, as does
 *    flexmem_device_map(): for another thread's request, or because memory goes
 *    back, by flexmem_cache_empty() and flexmem_cache_trim(), for pressure, or
 *    on the thread of flexmem_cache_start_helper() at any moment. Then call
 *    them again, copies for the bytes that ``done`` does not cover.
 *  - flexmem_device_map() does with FLEXMEM_CACHE_MAPPABLE. Maps begin at pages,
 *    blocks at multiples of the granule: unless that is a page, what is mapped
 *    with a block has bytes of its neighbours at both ends. While anything of a
 *    segment is mapped it neither grows nor shrinks: what needs more is put into
 *    another one, and flexmem_cache_empty() and flexmem_cache_trim() leave its
 *    free end and return -EBUSY. End a map before the block is freed: what is
 *    freed may be another's at once, and a segment that goes back while it is
 *    mapped stays charged until it is not.
 *
 * Neither changes while the allocation lives.
 */
struct flexmem_cache_allocation {
	void *token;
	uint64_t size;
	uint64_t requested;
	struct flexmem_virtual_address address;
	uint64_t stream;
	uint64_t pool;
	char tag[FLEXMEM_CACHE_TAG];
	struct flexmem_cache_failure failure;
	uint64_t failure_room[FLEXMEM_CACHE_ROOM];
	uint64_t handle;
	uint64_t offset;
	void *context;
	void *pointer;
};

/**
 * flexmem_cache_alloc() - allocate, the short way
 * @cache: a cache
 * @bytes: how much; 0 gives NULL
 * @stream: on which it is used
 * @token: where to put the token
 *
 * flexmem_cache_free() frees it. The steps when the cache has no block for the
 * request:
 *
 *  1. with a threshold that is exceeded, free segments go back, the oldest
 *     first, until it is not;
 *  2. the provider is asked for a segment (num_first_failures counts its
 *     refusal);
 *  3. a hole in an expandable segment of another stream serves it, if all that was
 *     put on that stream is done; the callbacks of
 *     flexmem_cache_add_oom_callback() run; if anything was
 *     freed, the cache is searched and the provider asked again;
 *  4. with a threshold, step 1 once more; then free segments that are large
 *     enough go back, and the provider is asked again;
 *  5. all free segments go back, and the provider is asked again;
 *  6. the device is synchronized, blocks that waited come back, and the cache
 *     is searched, expandable segments of all streams; if that does not help, all
 *     free segments go back, and the provider is asked one last time. Under ``release_lock_on_device_malloc``
 *     the cache is searched once more, for blocks that other threads have freed
 *     meanwhile;
 *  7. if the provider has pressure events and others have memory of it, they get
 *     time to give it back: the provider is asked seven times in little more than a
 *     second, and the cache is not locked in between.
 *
 * Steps 4 and 5 ask only if something went back. An error other than -ENOMEM
 * ends it at once. num_alloc_retries counts successes in 3 to 7, num_ooms failures
 * of them all.
 *
 * Return: 0; -ENOMEM: no device memory; or what the provider returned.
 */
FLEXMEM_API int flexmem_cache_alloc(struct flexmem_cache *cache, uint64_t bytes,
				    uint64_t stream, void **token);

/**
 * flexmem_cache_alloc_request() - allocate
 * @cache: a cache
 * @request: what to allocate
 * @request_size: sizeof(*@request)
 * @allocation: to be filled, on failure too
 * @allocation_size: sizeof(*@allocation)
 *
 * As flexmem_cache_alloc(), with every detail in the reply.
 *
 * Return: as flexmem_cache_alloc(); -ENOENT: no such pool; -EINVAL: the tag is
 * too long.
 */
FLEXMEM_API int
flexmem_cache_alloc_request(struct flexmem_cache *cache,
			    const struct flexmem_cache_request *request,
			    size_t request_size,
			    struct flexmem_cache_allocation *allocation,
			    size_t allocation_size);

/**
 * flexmem_cache_free() - free an allocation
 * @cache: the cache it was made with
 * @token: of its first byte, or NULL
 *
 * Return: 0; -EINVAL: not a live allocation of this cache.
 */
FLEXMEM_API int flexmem_cache_free(struct flexmem_cache *cache, void *token);

/**
 * flexmem_cache_alloc_pointer() - allocate what is freed by its pointer
 * @cache: a cache with FLEXMEM_CACHE_MAPPED
 * @request: as for flexmem_cache_alloc_request()
 * @request_size: sizeof(*@request)
 * @allocation: to be filled, on failure too; its ``pointer`` names it. Zero bytes
 *	give NULL.
 * @allocation_size: sizeof(*@allocation)
 *
 * For a framework that frees some of its memory by pointer alone. Only
 * flexmem_cache_free_pointer() frees such an allocation; its token serves the
 * other functions.
 *
 * Return: as flexmem_cache_alloc_request(); -EOPNOTSUPP: the cache does not map
 * its segments.
 */
FLEXMEM_API int
flexmem_cache_alloc_pointer(struct flexmem_cache *cache,
			    const struct flexmem_cache_request *request,
			    size_t request_size,
			    struct flexmem_cache_allocation *allocation,
			    size_t allocation_size);

/**
 * flexmem_cache_free_pointer() - free an allocation by its pointer
 * @cache: the cache it was made with
 * @pointer: from flexmem_cache_alloc_pointer(), or NULL
 *
 * Return: 0; -EINVAL: no live allocation that was made by
 * flexmem_cache_alloc_pointer() begins there; -EOPNOTSUPP: the cache does not map
 * its segments.
 */
FLEXMEM_API int flexmem_cache_free_pointer(struct flexmem_cache *cache,
					   void *pointer);

/**
 * flexmem_cache_lookup_pointer() - find the allocation that begins at a pointer
 * @cache: the cache it was made with
 * @pointer: from flexmem_cache_alloc_pointer()
 * @allocation: to be filled
 * @size: sizeof(*@allocation)
 *
 * Return: as flexmem_cache_free_pointer(); NULL is -EINVAL here.
 */
FLEXMEM_API int
flexmem_cache_lookup_pointer(struct flexmem_cache *cache, const void *pointer,
			     struct flexmem_cache_allocation *allocation,
			     size_t size);

/**
 * flexmem_cache_record_stream() - say that another stream uses an allocation
 * @cache: the cache it was made with
 * @token: of its first byte, or NULL: nothing is done
 * @stream: which uses it
 *
 * To be called before the free, after the work was put on the stream.
 *
 * Return: 0; -EINVAL: not a live allocation of this cache.
 */
FLEXMEM_API int flexmem_cache_record_stream(struct flexmem_cache *cache,
					    void *token, uint64_t stream);

/**
 * flexmem_cache_lookup() - find the allocation that a byte belongs to
 * @cache: the cache it was made with
 * @token: of any byte of it
 * @allocation: to be filled
 * @size: sizeof(*@allocation)
 * @offset: where to put the offset of the byte within it, or NULL
 *
 * Return: 0; -EINVAL: no byte of a live allocation of this cache.
 */
FLEXMEM_API int flexmem_cache_lookup(struct flexmem_cache *cache,
				     const void *token,
				     struct flexmem_cache_allocation *allocation,
				     size_t size, uint64_t *offset);

/**
 * flexmem_cache_address() - where a byte of an allocation is on the device
 * @cache: the cache it was made with
 * @token: of any byte of it
 * @address: where to put the address of that byte
 *
 * For a framework that passes addresses to each kernel it starts. It takes no
 * lock, and 40 instructions if the allocation is below 4 GiB. An allocation keeps its address
 * as long as it lives.
 *
 * Return: 0; -EINVAL: no byte of a live allocation of this cache.
 */
FLEXMEM_API int
flexmem_cache_address(const struct flexmem_cache *cache, const void *token,
		      struct flexmem_virtual_address *address);

/**
 * flexmem_cache_memory_info() - ask for the device's free and total memory
 * @cache: a cache
 * @free: where to put the free bytes
 * @total: where to put all bytes
 *
 * What the cache keeps is not free here.
 *
 * Return: 0; -EOPNOTSUPP: the provider does not know; or what it returned.
 */
FLEXMEM_API int flexmem_cache_memory_info(struct flexmem_cache *cache,
					  uint64_t *free, uint64_t *total);

/**
 * flexmem_cache_empty() - give back all that is free
 * @cache: a cache
 * @released: where to put how many bytes that were, or NULL; written on failure
 *	too
 *
 * Waits for events that blocks wait for. Segments of private pools stay, until
 * the pool is released. With backend direct all that was freed has gone back
 * already, but for what waits for events and what the provider has refused: that
 * goes now. @released is what went back while this ran, also what went at once
 * since an event had happened, or another thread freed it.
 *
 * Return: 0; or what a callback returned that could not wait or free; the rest
 * has been done.
 */
FLEXMEM_API int flexmem_cache_empty(struct flexmem_cache *cache,
				    uint64_t *released);

/**
 * flexmem_cache_trim() - give back some memory, since others need it
 * @cache: a cache
 * @bytes: how much should go back
 * @released: where to put how much it was, or NULL; written on failure too
 *
 * For pressure from outside. Blocks whose events have happened come back; then
 * free segments go, the oldest first, until it is at least that much. It never
 * waits for a stream.
 *
 * Return: 0, also when there was less; or what the provider returned.
 */
FLEXMEM_API int flexmem_cache_trim(struct flexmem_cache *cache,
				      uint64_t bytes, uint64_t *released);

/**
 * flexmem_cache_drop_lost() - make no further use of what a reset has lost
 * @cache: a cache
 * @live: where to put how many bytes of it are allocated, or NULL; written on
 *	success only
 *
 * To be called after a reset of the device, which the cache does not notice by
 * itself before it asks for a segment to grow or to shrink. From then on
 * nothing is allocated in a segment that was lost, nor in a private pool's; it
 * goes back as soon as nothing in it lives. A live allocation there keeps its
 * token, and is freed as ever. Waits for nothing.
 *
 * Return: 0; -EOPNOTSUPP: the provider cannot tell what was lost; or what it
 * returned when it was to take a segment back, which is tried again later.
 */
FLEXMEM_API int flexmem_cache_drop_lost(struct flexmem_cache *cache,
					uint64_t *live);

/**
 * flexmem_cache_serve_pressure() - give back what the device's event asks for
 * @cache: a cache
 * @released: where to put how much went back, or NULL; written on failure too,
 *	but for -EINVAL and -ECHILD
 *
 * Reads the next event of the device (flexmem_device_pressure()) and answers
 * it. For the loop of a framework: to be called when poll() finds
 * flexmem_device_fd() readable. It waits for no stream, no event and no memory,
 * only for the cache's lock, as every call does. Live allocations are never
 * touched. Memory goes back, the oldest first:
 *
 *  - FLEXMEM_LEVEL_MODERATE, unless the level has fallen to it: half of what is
 *    free, or more: the free end of a growing segment goes as a whole.
 *  - FLEXMEM_LEVEL_CRITICAL: at least half of what is free, and as much as it
 *    takes to have less than 90 percent of the device in use.
 *  - FLEXMEM_LEVEL_NONE: nothing.
 *
 * Free is here what flexmem_cache_trim() could give back: free segments, and
 * the free ends of growing ones.
 *
 * Return: 0; -EAGAIN: there is no event; -EOPNOTSUPP: the provider has none; or
 * what the provider returned.
 */
FLEXMEM_API int flexmem_cache_serve_pressure(struct flexmem_cache *cache,
					     uint64_t *released);

/**
 * flexmem_cache_start_helper() - serve pressure on a thread of its own
 * @cache: a cache
 *
 * For a framework without a loop. The thread waits for events and does what
 * flexmem_cache_serve_pressure() does, until flexmem_cache_stop_helper() or the
 * destruction of the cache ends it, or the device is gone; then it can be
 * started again. It runs with all signals blocked, and runs callbacks of the
 * provider, of the events and the log's as any other thread that uses the
 * cache. If the program closes the descriptor of the provider, the thread ends
 * with a warning at the next event.
 *
 * Return: 0; -EEXIST: it runs already; -EOPNOTSUPP: the provider has no events;
 * -EAGAIN: the process may have no further thread.
 */
FLEXMEM_API int flexmem_cache_start_helper(struct flexmem_cache *cache);

/**
 * flexmem_cache_stop_helper() - end the thread that serves pressure
 * @cache: a cache
 *
 * When this returns it has ended. So it must not be called from a callback.
 *
 * Return: 0; -ENOENT: it was not started.
 */
FLEXMEM_API int flexmem_cache_stop_helper(struct flexmem_cache *cache);

/**
 * typedef flexmem_cache_oom_fn - asks the framework to free something
 * @user: as it was registered
 * @bytes: the size that was refused: a segment's, not what is missing of it
 *
 * Runs on the thread that allocates, without any lock of the cache's. It may
 * allocate and free; for an allocation inside it no callback runs.
 */
typedef void (*flexmem_cache_oom_fn)(void *user, uint64_t bytes);

/**
 * flexmem_cache_add_oom_callback() - register a callback
 * @cache: a cache
 * @callback: to be called when the provider has refused
 * @user: passed to it
 *
 * They run in the order in which they were registered, on several threads at
 * once if several are out of memory.
 *
 * Return: 0; -EEXIST: this pair is registered already.
 */
FLEXMEM_API int flexmem_cache_add_oom_callback(struct flexmem_cache *cache,
					       flexmem_cache_oom_fn callback,
					       void *user);

/**
 * flexmem_cache_remove_oom_callback() - take a callback out again
 * @cache: a cache
 * @callback: as it was registered
 * @user: likewise
 *
 * When this returns the callback is not running any more. So it must not be
 * called from a callback.
 *
 * Return: 0; -ENOENT: this pair is not registered; -EDEADLK: called from a
 * callback.
 */
FLEXMEM_API int flexmem_cache_remove_oom_callback(struct flexmem_cache *cache,
						  flexmem_cache_oom_fn callback,
						  void *user);

/**
 * flexmem_cache_pool_create() - make a private pool
 * @cache: a cache
 * @pool: where to put its number, never 0 and never used again
 *
 * As graphs use it: its segments serve only requests for it, and stay at their places
 * while it lives, unless flexmem_cache_pool_empty() gives free ones back. The caller
 * holds the pool once.
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_cache_pool_create(struct flexmem_cache *cache,
					  uint64_t *pool);

/**
 * flexmem_cache_pool_create_on() - make a private pool with a provider of its own
 * @cache: a cache
 * @provider: where its segments come from, copied; it must outlive the cache. NULL:
 *	as flexmem_cache_pool_create()
 * @provider_size: sizeof(*@provider); ignored with NULL
 * @pool: where to put its number
 *
 * Addresses of all providers of a cache are of one space: regions with the same
 * region_id are the same. Handles may be alike; the pool of an allocation says whose
 * its handle is. Segments grow if both this provider and that of the cache can grow
 * them. The figures of the device and pressure come from the provider of the cache
 * alone, and per_process_memory_fraction counts all segments.
 *
 * Return: 0; -EINVAL: @provider lacks ``alloc`` or ``free``, or has a size that it
 * never had; -EOPNOTSUPP: the cache maps its segments, and @provider cannot.
 */
FLEXMEM_API int
flexmem_cache_pool_create_on(struct flexmem_cache *cache,
			     const struct flexmem_cache_provider *provider,
			     size_t provider_size, uint64_t *pool);

/**
 * flexmem_cache_pool_hold() - hold a private pool once more
 * @cache: a cache
 * @pool: its number
 *
 * flexmem_cache_pool_release() ends it. &flexmem_cache_usage.uses counts them.
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cache_pool_hold(struct flexmem_cache *cache,
					uint64_t pool);

/**
 * flexmem_cache_pool_release() - hold a private pool once less
 * @cache: a cache
 * @pool: its number
 *
 * With the last release the pool ends. Nothing can be allocated into it any more. A
 * live allocation in it stays until it is freed; each segment goes back as soon as
 * nothing in it lives.
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cache_pool_release(struct flexmem_cache *cache,
					   uint64_t pool);

/**
 * FLEXMEM_CACHE_POOL_USE_ON_OOM - flag of a private pool: its free memory serves
 * requests of no pool, as the last resort before they fail
 */
#define FLEXMEM_CACHE_POOL_USE_ON_OOM (UINT32_C(1) << 0)

/**
 * FLEXMEM_CACHE_POOL_NO_SPLIT - flag of a private pool: each allocation has a segment
 * of its own, of a fixed size
 */
#define FLEXMEM_CACHE_POOL_NO_SPLIT (UINT32_C(1) << 1)

/**
 * flexmem_cache_pool_set_flags() - say how a private pool is used from now on
 * @cache: a cache
 * @pool: its number
 * @flags: of FLEXMEM_CACHE_POOL_USE_ON_OOM, FLEXMEM_CACHE_POOL_NO_SPLIT. A pool has
 *	none at first.
 *
 * Return: 0; -ENOENT: no such pool; -EOPNOTSUPP: unknown bits.
 */
FLEXMEM_API int flexmem_cache_pool_set_flags(struct flexmem_cache *cache,
					     uint64_t pool, uint32_t flags);

/**
 * flexmem_cache_pool_empty() - give free memory of a private pool back
 * @cache: a cache
 * @pool: its number
 * @released: where to put how much of the cache went back, or NULL; written on
 *	failure too, but for -EINVAL, -ENOENT and -ECHILD
 *
 * As flexmem_cache_empty(), for one pool: waits for the events that freed blocks wait
 * for, and then its free segments go back, and free ends of growing ones.
 *
 * Return: 0; -ENOENT: no such pool; or what a provider or the events returned.
 */
FLEXMEM_API int flexmem_cache_pool_empty(struct flexmem_cache *cache,
					 uint64_t pool, uint64_t *released);

/**
 * typedef flexmem_cache_filter_fn - whether requests of a stream go to a pool
 * @user: as it was given
 * @stream: the stream of a request that names no pool
 *
 * Runs with the cache locked, once for each such request. Not 0: they do.
 */
typedef int (*flexmem_cache_filter_fn)(void *user, uint64_t stream);

/**
 * flexmem_cache_pool_begin() - send requests to a private pool, as for a capture
 * @cache: a cache
 * @pool: its number
 * @filter: which streams
 * @user: passed to @filter
 *
 * Until flexmem_cache_pool_end() a request without a pool goes to this one if @filter
 * accepts its stream; if several pools accept it, to the one that began first.
 *
 * While that holds for any pool, work may be captured, and the cache calls none of the
 * callbacks of the events, since they would break it: freed blocks that other streams
 * use wait at least until the end, the device is not synchronized, and no stream gets
 * memory of another one. All requests and frees take the cache's lock.
 *
 * Return: 0; -EINVAL: @filter is NULL; -ENOENT: no such pool; -EEXIST: it has begun
 * already.
 */
FLEXMEM_API int flexmem_cache_pool_begin(struct flexmem_cache *cache,
					 uint64_t pool,
					 flexmem_cache_filter_fn filter,
					 void *user);

/**
 * flexmem_cache_pool_end() - end what flexmem_cache_pool_begin() began
 * @cache: a cache
 * @pool: its number, also if it was released meanwhile
 *
 * Return: 0; -ENOENT: it has not begun.
 */
FLEXMEM_API int flexmem_cache_pool_end(struct flexmem_cache *cache,
				       uint64_t pool);

/*
 * struct flexmem_cache_checkpoint - which allocations a private pool has had
 */
struct flexmem_cache_checkpoint;

/**
 * flexmem_cache_pool_checkpoint() - note the live allocations of a private pool
 * @cache: a cache
 * @pool: its number
 * @checkpoint: where to put the object; flexmem_cache_checkpoint_free() frees it
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int
flexmem_cache_pool_checkpoint(struct flexmem_cache *cache, uint64_t pool,
			      struct flexmem_cache_checkpoint **checkpoint);

/**
 * flexmem_cache_pool_restore() - give a private pool the allocations of a checkpoint
 * @cache: the cache that the checkpoint is of
 * @checkpoint: a checkpoint
 *
 * Afterwards these are the live allocations of the pool, with their addresses and
 * sizes. One that is still live keeps its token and its bytes. Any other live one of
 * the pool is freed, also by its token, as with flexmem_cache_free(). One that was
 * freed is allocated again, with a new token, without a context, on the stream of its
 * segment: flexmem_cache_checkpoint_token() tells the new token. A checkpoint can be
 * restored any number of times. A failure changes nothing.
 *
 * Return: 0; -ENOENT: no such pool; -EBUSY: a block that waits for events has memory
 * of the checkpoint, or an allocation that would have to wait; -ENXIO: memory of the
 * checkpoint went back by flexmem_cache_pool_empty(), or was lost.
 */
FLEXMEM_API int
flexmem_cache_pool_restore(struct flexmem_cache *cache,
			   struct flexmem_cache_checkpoint *checkpoint);

/**
 * flexmem_cache_checkpoint_token() - token of an allocation of a checkpoint
 * @checkpoint: a checkpoint
 * @index: from 0, in an order that stays
 *
 * Return: the token that the allocation had when the checkpoint was made, or has had
 * since the last restore; NULL: there are not so many.
 */
FLEXMEM_API void *flexmem_cache_checkpoint_token(
	const struct flexmem_cache_checkpoint *checkpoint, size_t index);

/**
 * flexmem_cache_checkpoint_free() - free a checkpoint
 * @checkpoint: object to free, or NULL; also after its cache
 */
FLEXMEM_API void
flexmem_cache_checkpoint_free(struct flexmem_cache_checkpoint *checkpoint);

/**
 * struct flexmem_cache_usage - what one pool has, or one stream of it
 * @uses: how often the pool is held; 0: what is in no private pool
 * @segments: segments
 * @reserved_bytes: bytes in segments
 * @active_bytes: bytes in blocks that are allocated or wait for events
 * @allocations: live allocations
 * @allocated_bytes: bytes in them
 * @requested_bytes: bytes in them before rounding
 *
 * An allocation counts where its segment does.
 */
struct flexmem_cache_usage {
	uint64_t uses;
	uint64_t segments;
	uint64_t reserved_bytes;
	uint64_t active_bytes;
	uint64_t allocations;
	uint64_t allocated_bytes;
	uint64_t requested_bytes;
};

/**
 * flexmem_cache_pool_usage() - sum up what one pool has, or one stream of it
 * @cache: a cache
 * @pool: a private pool that was not released, or 0 for what is in none
 * @stream: where the number of the stream is; NULL: all streams
 * @usage: to be filled
 * @size: sizeof(*@usage)
 *
 * Looks at each segment and each block with the cache locked.
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cache_pool_usage(struct flexmem_cache *cache, uint64_t pool,
				    const uint64_t *stream,
				    struct flexmem_cache_usage *usage,
				    size_t size);

/** enum flexmem_cache_pool_kind - which pools a figure is about */
enum flexmem_cache_pool_kind {
	FLEXMEM_CACHE_ALL = 0,
	FLEXMEM_CACHE_SMALL = 1,
	FLEXMEM_CACHE_LARGE = 2,
};

#define FLEXMEM_CACHE_POOL_KINDS 3

/**
 * struct flexmem_cache_figure - one figure over time
 * @current: now
 * @peak: the most there was since flexmem_cache_reset_peaks()
 * @allocated: sum of all increases since flexmem_cache_reset_accumulated()
 * @freed: sum of all decreases since then
 */
struct flexmem_cache_figure {
	uint64_t current;
	uint64_t peak;
	uint64_t allocated;
	uint64_t freed;
};

/**
 * struct flexmem_cache_statistics - figures, with PyTorch's names and meaning
 * @allocation: live allocations
 * @segment: segments
 * @active: blocks that are allocated or wait for events
 * @inactive_split: free blocks that share their segment with others
 * @allocated_bytes: bytes in live allocations
 * @reserved_bytes: bytes in segments
 * @active_bytes: bytes in active blocks
 * @inactive_split_bytes: bytes in inactive split blocks
 * @requested_bytes: bytes in active blocks before rounding
 * @oversize_allocations: live allocations of max_split_size_mb and above
 * @oversize_segments: segments of max_split_size_mb and above
 * @max_split_size: in bytes; UINT64_MAX: no limit
 * @num_ooms: allocations that failed for lack of memory; also those of more than
 *	FLEXMEM_CACHE_ALLOCATION_BYTES
 * @num_alloc_retries: allocations that succeeded after a first failure. PyTorch
 *	counts those that are tried again, also without success.
 * @num_first_failures: allocations for which there was no memory at the first
 *	attempt: the provider refused, or per_process_memory_fraction left no room.
 *	Each counts once, however often it is tried again. With success it is in
 *	@num_alloc_retries as well, and otherwise in @num_ooms.
 * @num_sync_all_streams: how often the device was synchronized
 * @num_device_alloc: segments made
 * @num_device_free: segments given back
 * @num_device_grow: times that a segment was made longer
 * @num_device_shrink: times that a segment was made shorter
 * @num_hits: allocations that the cache served without the provider
 * @num_misses: allocations for which the provider was asked
 * @num_collections: times that the threshold made segments go back
 * @num_pressure_events: events that were served
 * @pressure_bytes: bytes that went back for them
 * @num_limit_errors: allocations that failed since so many were live already
 *	(FLEXMEM_CACHE_LIMIT_ALLOCATIONS); they are in no other counter of failures
 *
 * Of the arrays the index is enum flexmem_cache_pool_kind.
 *
 * Everything is exact but for peaks. These are exact as well if since flexmem_cache_reset_peaks() one thread alone has
 * allocated and freed, or all was on one stream. Otherwise the peaks of
 * @allocation, @active, @inactive_split and of their bytes, of @requested_bytes
 * and of what has no tag can be wrong by what the last 64 operations of each
 * other stream have changed; those of segments and tags are always exact.
 */
struct flexmem_cache_statistics {
	struct flexmem_cache_figure allocation[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure segment[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure active[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure inactive_split[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure allocated_bytes[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure reserved_bytes[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure active_bytes[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure
		inactive_split_bytes[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure requested_bytes[FLEXMEM_CACHE_POOL_KINDS];
	struct flexmem_cache_figure oversize_allocations;
	struct flexmem_cache_figure oversize_segments;
	uint64_t max_split_size;
	uint64_t num_ooms;
	uint64_t num_alloc_retries;
	uint64_t num_first_failures;
	uint64_t num_sync_all_streams;
	uint64_t num_device_alloc;
	uint64_t num_device_free;
	uint64_t num_device_grow;
	uint64_t num_device_shrink;
	uint64_t num_hits;
	uint64_t num_misses;
	uint64_t num_collections;
	uint64_t num_pressure_events;
	uint64_t pressure_bytes;
	uint64_t num_limit_errors;
};

/**
 * flexmem_cache_statistics() - read the figures of this moment
 * @cache: a cache
 * @statistics: to be filled
 * @size: sizeof(*@statistics)
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int
flexmem_cache_statistics(struct flexmem_cache *cache,
			 struct flexmem_cache_statistics *statistics,
			 size_t size);

/**
 * flexmem_cache_reset_peaks() - set all peaks to the current figures
 * @cache: a cache
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_cache_reset_peaks(struct flexmem_cache *cache);

/**
 * flexmem_cache_reset_accumulated() - set sums and counters to 0
 * @cache: a cache
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_cache_reset_accumulated(struct flexmem_cache *cache);

/**
 * struct flexmem_cache_tag - what lives under one tag
 * @tag: the tag; "" for what has none
 * @allocations: live allocations
 * @allocated_bytes: bytes in them
 * @requested_bytes: bytes in them before rounding
 * @peak_bytes: the most that @allocated_bytes was since
 *	flexmem_cache_reset_peaks()
 */
struct flexmem_cache_tag {
	char tag[FLEXMEM_CACHE_TAG];
	uint64_t allocations;
	uint64_t allocated_bytes;
	uint64_t requested_bytes;
	uint64_t peak_bytes;
};

/**
 * flexmem_cache_tags() - sum up by tag
 * @cache: a cache
 * @tags: where to put the array, "" first and the others in the order in which
 *	they were first used; flexmem_cache_tags_free() frees it
 * @size: sizeof(**@tags)
 * @count: where to put the number of its entries
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_cache_tags(struct flexmem_cache *cache,
				   struct flexmem_cache_tag **tags, size_t size,
				   size_t *count);

/**
 * flexmem_cache_tags_free() - free an array of tags
 * @tags: from flexmem_cache_tags(), or NULL
 */
FLEXMEM_API void flexmem_cache_tags_free(struct flexmem_cache_tag *tags);

/**
 * flexmem_cache_set_history() - keep the last events for snapshots
 * @cache: a cache
 * @entries: how many, below 2^32; 0: none. Those there are go.
 *
 * As flexmem_cache_set_setting() of ``history_entries``.
 *
 * Return: 0; -EINVAL: @entries is larger.
 */
FLEXMEM_API int flexmem_cache_set_history(struct flexmem_cache *cache,
					  size_t entries);

/** FLEXMEM_CACHE_EVERY_POOL - for flexmem_cache_snapshot(): all pools */
#define FLEXMEM_CACHE_EVERY_POOL UINT64_MAX

/**
 * flexmem_cache_snapshot() - describe segments, blocks and history as JSON
 * @cache: a cache
 * @pool: a private pool that was not released, 0 for what is in none, or
 *	FLEXMEM_CACHE_EVERY_POOL
 * @text: where to put the text, NUL-terminated; flexmem_cache_text_free()
 *	frees it
 * @length: where to put its length without the NUL, or NULL
 *
 * It has the fields of PyTorch's memory snapshot (segments, device_traces,
 * allocator_settings), so that its viewer shows it once it is pickled, by protocol
 * 4 at most. An
 * address in it is the number of the region, in the order in which this cache
 * met them and from 1, times 2^44, plus the offset. region_id, offset and token
 * are given beside it. Of one pool it has that pool's history only. As in
 * PyTorch, segments that grow are mapped and unmapped, and others are allocated
 * and freed.
 *
 * The frames of an allocation are its tag, and each line of what
 * &flexmem_cache_contexts.print writes of its context. Text in UTF-8 stays as it
 * is; a byte that is none becomes U+FFFD.
 *
 * The cache is locked while the records are copied, and not while the text is
 * written.
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cache_snapshot(struct flexmem_cache *cache,
				       uint64_t pool, char **text,
				       size_t *length);

/**
 * flexmem_cache_text_free() - free a text
 * @text: from flexmem_cache_snapshot(), or NULL
 */
FLEXMEM_API void flexmem_cache_text_free(char *text);

/**
 * flexmem_cache_error_text() - say in words what went wrong
 * @error: negative errno from the cache
 * @failure: details of a failed allocation, or NULL
 * @size: sizeof(*@failure); ignored with NULL
 * @text: where to write; always NUL-terminated if @length is not 0; may be NULL
 *	if it is
 * @length: bytes there is room for; 1024 hold any text
 *
 * Return: 0; -EMSGSIZE: the text is cut off; -EINVAL: as for any struct.
 */
FLEXMEM_API int
flexmem_cache_error_text(int error,
			 const struct flexmem_cache_failure *failure,
			 size_t size, char *text, size_t length);

/*
 * struct flexmem_cache_flat - an address space without memory, as a provider
 */
struct flexmem_cache_flat;

/**
 * flexmem_cache_flat_create() - make a flat address space to try things on
 * @flat: where to put the object; flexmem_cache_flat_destroy() frees it
 * @bytes: how long it is; a multiple of 128
 * @provider: to be filled: allocates from it, with segments that grow. Several
 *	caches may use it, on any threads.
 * @size: sizeof(*@provider)
 *
 * Return: 0; -EINVAL: @bytes is 0 or no multiple of 128.
 */
FLEXMEM_API int
flexmem_cache_flat_create(struct flexmem_cache_flat **flat, uint64_t bytes,
			  struct flexmem_cache_provider *provider, size_t size);

/**
 * flexmem_cache_flat_destroy() - free a flat address space
 * @flat: object to free, or NULL; no cache uses it any more
 */
FLEXMEM_API void flexmem_cache_flat_destroy(struct flexmem_cache_flat *flat);

#ifdef __cplusplus
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
}
#endif

#endif /* FLEXMEM_CACHE_H */
