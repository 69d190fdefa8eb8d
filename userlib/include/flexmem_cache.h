/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libflexmem - the caching allocator, between the tensors of a framework and
 * the driver.
 */
#ifndef FLEXMEM_CACHE_H
#define FLEXMEM_CACHE_H

#include <flexmem.h>

#ifdef __cplusplus
extern "C" {
/*
 * g++ warns about a function that has the name of a struct, as some here have.
 */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#endif

/**
 * DOC: Conventions of the cache
 *
 * A cache takes **segments** from a provider and divides them into **blocks**.
 * The provider is a device, unless the caller passes another one. A freed block
 * stays in the cache and serves a later request. One cache serves one device. A
 * process may have any number of caches.
 *
 * The rules of flexmem.h about errors, sizes of structs and NULL apply here,
 * too. Every call with a cache can also return:
 *
 *  - -ECHILD: the cache belongs to the process that forked this one. The call
 *    did nothing. This process can only destroy the object; the memory stays
 *    with the parent.
 *  - -ENOMEM: host memory is exhausted.
 *
 * Tokens: a token names an allocation. It is a number in the form of a pointer,
 * and must not be dereferenced. Each byte of a live allocation has a token: the
 * token of the first byte plus the offset. The tokens of different live
 * allocations of a cache differ, including the token one byte past the end. An
 * allocation of zero bytes has the token NULL; no other token is NULL.
 *
 * A call that expects an allocation accepts only the token of the first byte of
 * a live allocation. For any other token it returns -EINVAL, and changes
 * nothing. A token consists of a *name* and the number of its uses. A freed
 * token stays invalid until its name was used 255 times more. A name is not
 * reused before 1024 other names of its stream were freed, unless names or host
 * memory run out. The number of live allocations is limited:
 * FLEXMEM_CACHE_ALLOCATIONS below 4 GiB, and FLEXMEM_CACHE_HUGE_ALLOCATIONS of
 * 4 GiB and more, after rounding. Beyond that a request fails with -ENOMEM and
 * FLEXMEM_CACHE_LIMIT_ALLOCATIONS, and num_limit_errors counts it. A stream
 * gets names in groups of 1024 and keeps them. All streams share the names of
 * allocations of 4 GiB and more.
 *
 * Streams are opaque numbers. A freed block can be reused on its own stream at
 * once, because work on one stream runs in order. If the provider has refused
 * memory, another stream may get the block. This requires that the segment is
 * expandable, and that the work of the block's stream is done. With the setting
 * ``reuse:done`` or ``reuse:wait``, all streams share expandable segments, except
 * those of private pools, and get each other's memory before the cache asks the
 * provider. If another stream uses an allocation, the caller says so with
 * flexmem_cache_record_stream(). The freed block can then be reused when the
 * events recorded on those streams have happened.
 *
 * Threads: several threads may use a cache at the same time, and free
 * allocations of other threads. No thread may use it during or after its
 * destruction. No function may be called in a signal handler. The number of
 * threads and streams is not limited. Threads that use different streams wait
 * for each other
 *
 *  - while the cache has no block for a request and calls the provider;
 *  - for requests with a pool or a tag, of 4 GiB and more, or of max_split_size_mb
 *    and above, and for the frees of these;
 *  - while there is a history, or a log of debug messages;
 *  - with ``reuse:done`` or ``reuse:wait``: for requests in expandable segments, and
 *    for their frees. But a stream keeps the last 16 to 24 blocks of at most 1
 *    MiB that it has freed. To allocate one of these again it waits for no other
 *    stream, and at most an eighth of the frees that keep a block wait;
 *  - if their streams share a lock. There are 16 locks. The number of a stream
 *    selects four of them, and the stream keeps the first of these that no
 *    other stream has. So the first four streams have a lock each, most of the
 *    first sixteen do, and further streams share locks.
 *
 * Callbacks: the description of each callback says whether it runs with the
 * cache locked. A callback that runs with the cache locked must not use, create
 * or destroy any cache, nor fork: it would wait for itself. Other callbacks may
 * do so. No exception, longjmp() or pthread_exit() may leave a callback. A
 * child that is forked in a callback without the lock may return from the
 * callback; its call then fails with -ECHILD. If a thread is cancelled in a
 * call, it ends before the cache is locked or after the call. So a callback
 * must not enable cancellation.
 *
 * C++: flexmem_cache_setting(), flexmem_cache_profile() and
 * flexmem_cache_statistics() have the names of the structs that they fill. For
 * the structs write ``struct flexmem_cache_statistics``, as in C.
 *
 * Reset: a cache notices a reset of the device only when it grows or shrinks a
 * segment. Until then it would use free blocks of lost segments. After a reset
 * the program calls flexmem_cache_drop_lost(), and frees its earlier
 * allocations.
 */

/*
 * struct flexmem_cache - a cache
 */
struct flexmem_cache;

/**
 * FLEXMEM_CACHE_GROWABLE - flag of &flexmem_cache_provider.alloc: the segment
 * will grow, so it should begin where most room follows
 */
#define FLEXMEM_CACHE_GROWABLE (UINT32_C(1) << 0)

/**
 * FLEXMEM_CACHE_MAPPABLE - flag of &flexmem_cache_options.flags, and of
 * &flexmem_cache_provider.alloc: segments can be mapped by the CPU
 *
 * The segments of a device are allocated with FLEXMEM_MAPPABLE, and
 * flexmem_device_map() works on them.
 */
#define FLEXMEM_CACHE_MAPPABLE (UINT32_C(1) << 1)

/**
 * FLEXMEM_CACHE_MAPPED - flag of &flexmem_cache_options.flags: the cache maps
 * each of its segments, and every allocation has a pointer
 *
 * Implies FLEXMEM_CACHE_MAPPABLE. The provider needs
 * &flexmem_cache_provider.map; a device with FLEXMEM_CAN_MAP has it. A mapped
 * segment neither grows nor shrinks, so expandable_segments has no effect, and
 * the cache logs a warning.
 */
#define FLEXMEM_CACHE_MAPPED (UINT32_C(1) << 2)

/**
 * struct flexmem_cache_memory - a segment that a provider has made
 * @handle: the provider's number of the segment
 * @address: where it starts, a multiple of the requested alignment
 */
struct flexmem_cache_memory {
	uint64_t handle;
	struct flexmem_virtual_address address;
};

/**
 * struct flexmem_cache_provider - where segments come from
 * @alloc: makes a segment of ``bytes``, a multiple of the cache's granule, and
 *	of ``alignment`` if that is above 4096. ``alignment`` is the granule, or
 *	what a request asks for, if that is more. ``flags`` is of FLEXMEM_CACHE_GROWABLE and FLEXMEM_CACHE_MAPPABLE.
 *	Returns 0 and fills ``memory``; -ENOMEM if there is no device memory, with the reason
 *	in the zeroed ``failure``, if it is known; or another negative errno.
 * @free: frees a segment. If that fails, the cache keeps the segment and tries
 *	again later. Work that was queued on the segment's stream before may
 *	still use the bytes. So the provider must not reuse them before this
 *	work is done.
 * @grow: extends a segment in place. Returns -EAGAIN if the memory behind it is
 *	in use; otherwise what @alloc returns. After -EAGAIN and -ENOMEM the
 *	cache asks for another segment. NULL: no segment can grow.
 * @shrink: frees the end of a segment, with the rule of @free about queued
 *	work. After -EIO the cache does not call it
 *	again for that segment until the segment has grown. -EBUSY: a use of the
 *	segment, such as a mapping, forbids it; the cache calls it again later
 *	and logs nothing. NULL: no segment can shrink.
 * @memory_info: how many bytes this process can have, and how many of them it
 *	can still get. NULL: not known.
 * @user: passed to each callback
 * @pressure: fills ``event`` with the next event and returns 0; -EAGAIN: there
 *	is none; it does not wait. An event with a smaller ``sequence`` than an
 *	earlier event is out of date, and ignored. NULL: there are no events.
 * @pressure_fd: a descriptor that poll() finds readable when there is an event,
 *	the same each time. NULL: there is none.
 * @lost: whether the bytes of a segment are lost, for example in a reset of the
 *	device. Returns 1 if they are: the segment can then only be freed.
 *	Returns 0 or a negative errno if they are not. The cache calls it after
 *	@grow or @shrink has returned -EIO, and in flexmem_cache_drop_lost().
 *	NULL: no segment is ever lost.
 * @map: maps all ``bytes`` of a segment for the CPU, for reading and writing.
 *	Returns 0 and stores the address of the first byte in ``pointer``; or a
 *	negative errno, with which the allocation fails. The cache calls it once
 *	for each segment, with FLEXMEM_CACHE_MAPPED only. NULL: segments cannot
 *	be mapped.
 * @unmap: ends the mapping. The cache calls it before @free; if @free then
 *	fails, the cache calls @map again. NULL if @map is NULL.
 * @device_info: the free and total bytes of the whole device, whatever this
 *	process can have. The cache decides with them how much it gives back
 *	under pressure, so total less free is what @pressure tells as
 *	&flexmem_pressure_event.in_use. NULL: @memory_info tells that.
 * @largest: stores in ``bytes`` how many bytes one segment can have now, as
 *	&struct flexmem_available.largest. NULL: that is not known.
 *
 * The cache checks the results. It treats a positive result and -ECHILD like
 * -EIO. It frees memory from @alloc or @grow that is misaligned, extends beyond
 * the last address, or overlaps another segment; the request then fails with
 * -EIO, and a warning is logged. If @memory_info returns more free than total
 * bytes, the cache treats that like -EIO.
 *
 * The callbacks run with the cache locked, one at a time. The exceptions are
 * @pressure and @pressure_fd, and @alloc if ``release_lock_on_device_malloc``
 * is set: they run without the lock, possibly at the same time as other
 * callbacks. Each event is read once. So if caches share a provider or a
 * device, only one of them should serve its events. Alternatively the program
 * reads the events itself, and calls flexmem_cache_trim() for each cache.
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
	int (*device_info)(void *user, uint64_t *free, uint64_t *total);
	int (*largest)(void *user, uint64_t *bytes);
};

/**
 * flexmem_cache_device_provider() - fill in the provider for a device
 * @device: a device; it must outlive each cache that uses the provider
 * @provider: to be filled; its ``user`` is @device
 * @size: sizeof(*@provider)
 *
 * For a caller that wraps some of the callbacks, for example to count or limit
 * memory. Callbacks that this device does not support are NULL.
 *
 * Return: 0; -EINVAL: @device or @provider is NULL, or @size too small;
 * -EOPNOTSUPP: @device is from flexmem_device_adopt().
 */
FLEXMEM_API int
flexmem_cache_device_provider(struct flexmem_device *device,
			      struct flexmem_cache_provider *provider,
			      size_t size);

/**
 * struct flexmem_cache_events - how the cache waits for streams
 * @record: makes an event that happens when all work that was put on the stream
 *	before is done. If that fails, the blocks wait for the next
 *	@synchronize_device. The cache calls it for any stream that has used the
 *	cache, also for one that the program has destroyed: then @record fails.
 * @query: returns 0 if the event has happened, -EAGAIN if not. The cache logs
 *	any other errno, and treats it like -EAGAIN
 * @synchronize: waits until the event has happened
 * @destroy: frees an event, whether it has happened or not
 * @synchronize_device: waits until all work on all streams is done
 * @user: passed to each callback
 * @wait: lets all later work of the stream wait on the device until the event
 *	has happened, like cudaStreamWaitEvent(). The host does not wait. NULL:
 *	a stream never waits for another one. Returns 0 or an errno
 *
 * @synchronize and @synchronize_device run without any lock of the cache. The
 * others run with a lock of the cache, so they must not call it. Several threads
 * may run them at the same time, for different events. None but @wait may be
 * NULL. Without this struct the cache assumes that all work is done at once, as
 * on a device without queues.
 */
struct flexmem_cache_events {
	int (*record)(void *user, uint64_t stream, uint64_t *event);
	int (*query)(void *user, uint64_t event);
	int (*synchronize)(void *user, uint64_t event);
	void (*destroy)(void *user, uint64_t event);
	int (*synchronize_device)(void *user);
	void *user;
	int (*wait)(void *user, uint64_t stream, uint64_t event);
};

/**
 * struct flexmem_cache_contexts - callbacks for the contexts of requests
 * @print: describes a context: writes at most ``length`` bytes to ``text``,
 *	with a NUL, as snprintf() does. Returns the length of the whole text,
 *	even if it is cut off. Each line is a frame of a snapshot:
 *	FILE:LINE:NAME, or just a name. NULL: no description.
 * @hold: the cache begins to use a context. The context must be valid until
 *	@release. Runs in flexmem_cache_alloc_request(). NULL: each context must
 *	be valid until the cache is destroyed.
 * @release: the cache does not use the context any more. NULL: each context
 *	must be valid until the cache is destroyed.
 * @user: passed to each callback
 *
 * The cache uses the context of a request while the allocation lives, while the
 * history has an event of the request, and while a snapshot is being written.
 * @release runs once for each @hold. A failed request holds its context during
 * the call, or while its event is in the history.
 *
 * These callbacks run without any lock of the cache, on any thread that uses
 * the cache, possibly several at the same time. They may use the cache.
 */
struct flexmem_cache_contexts {
	size_t (*print)(void *user, void *context, char *text, size_t length);
	void (*hold)(void *user, void *context);
	void (*release)(void *user, void *context);
	void *user;
};

/**
 * struct flexmem_cache_profile - sizes of blocks and segments of a cache
 * @granule: sizes of blocks are multiples of it; a power of two from 128
 * @small_limit: requests up to this size go to the small pool
 * @small_segment: size of the segments of the small pool
 * @large_limit: requests above @small_limit and below @large_limit get a
 *	segment of @large_segment bytes
 * @large_segment: bytes of a segment for these requests
 * @large_round: other segments of the large pool are multiples of this size
 * @large_remainder: a block of the large pool is split only if more than this
 *	remains
 * @oversize_slack: a block of max_split_size_mb and above may be at most this
 *	much larger than its request. The configuration key
 *	max_non_split_rounding_mb overrides it
 * @growing_step: the size of a growing segment is a multiple of this
 *
 * A field of 0 means the default: 128, 1 MiB, 2 MiB, 10 MiB, 20 MiB, 2 MiB, 1
 * MiB, 1 MiB, 2 MiB, in this order. With expandable_segments there is no small
 * pool: small and large requests share segments, and count as large.
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
 * FLEXMEM_CACHE_STRICT - flag of &flexmem_cache_options.flags: an invalid
 * setting is an error
 */
#define FLEXMEM_CACHE_STRICT (UINT32_C(1) << 16)

/**
 * struct flexmem_cache_options - options of a new cache
 * @device: source of the memory; must outlive the cache. NULL if @provider is
 *	not NULL.
 * @provider: another source of memory, copied; NULL: @device
 * @provider_size: sizeof(*@provider)
 * @events: callbacks for streams, copied; NULL: all work counts as done at once
 * @events_size: sizeof(*@events)
 * @profile: sizes, copied; NULL: the defaults
 * @profile_size: sizeof(*@profile)
 * @configuration: settings like "max_split_size_mb:64"; NULL: those of the
 *	environment variable FLEXMEM_ALLOC_CONF; if it is not set,
 *	MINDTORCH_NPU_ALLOC_CONF; if that is not set, PYTORCH_ALLOC_CONF; if
 *	that is not set, its older name PYTORCH_CUDA_ALLOC_CONF
 * @log: receives warnings, and more if @level says so. NULL: only warnings
 *	about settings go to stderr (not with FLEXMEM_CACHE_STRICT); with
 *	FLEXMEM_DEBUG=1 or TORCH_SPYRE_ALLOC_DEBUG=1 in the environment all
 *	messages do. It may run with the cache locked, and on several threads at
 *	once.
 * @log_user: passed to @log
 * @level: highest enum flexmem_log_level to log; FLEXMEM_LOG_NONE means
 *	FLEXMEM_LOG_WARNING
 * @device_index: the number of the device in snapshots, at most 65535
 * @flags: of FLEXMEM_CACHE_STRICT, FLEXMEM_CACHE_MAPPABLE, FLEXMEM_CACHE_MAPPED
 * @reserved: 0
 * @problem: if flexmem_cache_create() returns -EINVAL, it writes the cause
 *	here, NUL-terminated, unless its ``cache`` is NULL or its ``size`` too
 *	small. Otherwise it writes nothing. May be NULL
 * @problem_length: size of @problem in bytes; 512 hold any text
 * @contexts: callbacks for the contexts of requests, copied; NULL: none
 * @contexts_size: sizeof(*@contexts)
 *
 * Settings are separated by commas, key and value by ':' or '='. Spaces around
 * them do not matter. An empty variable counts as set. The cache ignores an
 * unknown key or an invalid value, with a warning. With FLEXMEM_CACHE_STRICT
 * flexmem_cache_create() fails instead (-EINVAL), also for settings from the
 * environment. If a key occurs twice, its last value counts.
 *
 * ============================= ===============================================
 * backend                       native (default); direct: no cache: each call
 *                               goes to the provider. Only memory that is freed
 *                               in a private pool stays in that pool
 * expandable_segments           True or False (default): segments grow in place
 * garbage_collection_threshold  0.0 (default: off) to 1.0: share of what the
 *                               cache can have that may be reserved before free
 *                               segments go back, the oldest first
 * history_entries               how many of the last events a snapshot shows; 0
 *                               (default): none
 * large_segment_size_mb         large_segment of the profile
 * max_non_split_rounding_mb     oversize_slack of the profile
 * max_split_size_mb             blocks of this size and above are not split
 * per_process_memory_fraction   above 0.0, up to 1.0 (default): share of what the
 *                               process can have that may be reserved at all
 * release_lock_on_device_malloc True or False (default): the provider makes
 *                               segments with the cache unlocked. PyTorch's
 *                               release_lock_on_cudamalloc is accepted, too
 * reuse                         when a stream gets memory that another stream
 *                               has freed in an expandable segment: own
 *                               (default): when the provider has refused more
 *                               memory; done: when an event tells that the work
 *                               is done; wait: also before, and the stream
 *                               waits on the device
 *                               (&flexmem_cache_events.wait)
 * roundup_power2_divisions      sizes are rounded up to one of that many steps
 *                               between powers of two: a power of two up to
 *                               64; or a list like [256:1,512:2,>:4], by
 *                               powers of two in MiB, each up to the next in
 *                               the list; 0 and 1 in the list round nothing
 * ============================= ===============================================
 *
 * max_split_size_mb does not apply to segments that grow. If the provider
 * cannot grow segments, expandable_segments has no effect, and the cache logs a
 * warning. With backend direct it has no effect either.
 *
 * With FLEXMEM_CACHE_MAPPABLE and backend direct the granule is at least 4096,
 * the granule of mappable segments.
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
 * @options: options of the cache
 * @size: sizeof(*@options)
 *
 * The call takes no device memory yet.
 *
 * Return: 0; -EINVAL: @options has both or none of ``device`` and ``provider``;
 * a callback is missing; a number is too large; the sizes of the profile
 * contradict each other; or, with FLEXMEM_CACHE_STRICT, a setting is invalid.
 * @options->problem and the log name the cause. -EINVAL without a text: @cache
 * or @options is NULL, or @size too small; -EOPNOTSUPP: unknown bits in
 * @options->flags, or FLEXMEM_CACHE_MAPPABLE and a device without
 * FLEXMEM_CAN_MAP, or FLEXMEM_CACHE_MAPPED and a provider without ``map`` and
 * ``unmap``, or a device from flexmem_device_adopt().
 */
FLEXMEM_API int flexmem_cache_create(struct flexmem_cache **cache,
				     const struct flexmem_cache_options *options,
				     size_t size);

/**
 * flexmem_cache_destroy() - free all segments and the cache
 * @cache: object to free, or NULL
 *
 * The call first waits for the device if blocks still wait for events. It frees
 * live allocations too. If the provider fails to free a segment, the cache logs
 * that and gives up the segment.
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
 * struct flexmem_cache_setting - one setting that is in effect
 * @source: enum flexmem_cache_source
 * @reserved: 0
 * @key: name of the setting
 * @value: its value as configured, or the default, which is "off" for some keys
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
 * Return: 0; -ENOENT: @index is too large.
 */
FLEXMEM_API int flexmem_cache_setting(const struct flexmem_cache *cache,
				      size_t index,
				      struct flexmem_cache_setting *setting,
				      size_t size);

/**
 * flexmem_cache_set_setting() - change a setting of a cache that is in use
 * @cache: a cache
 * @key: any but ``backend``, ``release_lock_on_device_malloc`` and
 *	``roundup_power2_divisions``
 * @value: the value, in the form in which it would be configured
 *
 * flexmem_cache_setting() then shows the new value, with the caller as its
 * source. ``history_entries`` and ``max_split_size_mb`` take effect at once. The
 * others take effect with the next request that needs memory from the provider.
 * No memory is freed before that. A refused setting has no effect.
 *
 * With ``expandable_segments`` a framework can choose how its next segments are
 * made, for example while it loads weights. Existing segments keep their kind and
 * still serve requests; growing ones grow only while the setting is True. The
 * value with which the cache was made decides whether small requests count
 * separately. A cache that was made with False takes a longer path for its
 * growing segments.
 *
 * Return: 0; -ENOENT: there is no such key; -EPERM: the key can only be set
 * when the cache is made; -EINVAL: the value is invalid.
 */
FLEXMEM_API int flexmem_cache_set_setting(struct flexmem_cache *cache,
					  const char *key, const char *value);

/**
 * flexmem_cache_set_memory_fraction() - limit the bytes in segments
 * @cache: a cache
 * @fraction: above 0.0, up to 1.0: the cache may have this share of what the
 *	process can have (flexmem_cache_memory_info()) in segments; 17 digits of
 *	it count
 *
 * Sets ``per_process_memory_fraction``, as flexmem_cache_set_setting() does.
 *
 * Return: 0; -EINVAL: @fraction is out of range.
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
 * flexmem_cache_profile() - read the sizes of a cache's blocks and segments
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
 * @bytes: size; 0 gives the token NULL
 * @stream: stream on which the allocation is used
 * @pool: number of a private pool; 0: none, or the pool that
 *	flexmem_cache_pool_begin() selects
 * @tag: name for the sums of flexmem_cache_tags(), copied; shorter than
 *	FLEXMEM_CACHE_TAG; or NULL
 * @context: the caller's data about the request, such as a stack trace, see
 *	&struct flexmem_cache_contexts; or NULL
 * @alignment: a power of two, in bytes, of which the offset of the address is a
 *	multiple; 0: the cache's own, @granule of &struct flexmem_cache_profile.
 *	In a cache with FLEXMEM_CACHE_MAPPED the pointer is a multiple of it, too,
 *	up to the size of a page
 */
struct flexmem_cache_request {
	uint64_t bytes;
	uint64_t stream;
	uint64_t pool;
	const char *tag;
	void *context;
	uint64_t alignment;
};

/**
 * FLEXMEM_CACHE_ALLOCATIONS - most live allocations below 4 GiB of one cache
 */
#define FLEXMEM_CACHE_ALLOCATIONS 4194304

/**
 * FLEXMEM_CACHE_HUGE_ALLOCATIONS - most live allocations of 4 GiB and more of
 * one cache
 */
#define FLEXMEM_CACHE_HUGE_ALLOCATIONS 1024

/** FLEXMEM_CACHE_ALLOCATION_BYTES - the most bytes of one allocation */
#define FLEXMEM_CACHE_ALLOCATION_BYTES (UINT64_C(1) << 43)

/**
 * enum flexmem_cache_limit - limit of the cache that stopped an allocation
 * @FLEXMEM_CACHE_LIMIT_NONE: none: the provider had no memory
 * @FLEXMEM_CACHE_LIMIT_ALLOCATIONS: the cache has no free name for this stream.
 *	A name is the part of a token that tells live allocations apart: see
 *	FLEXMEM_CACHE_ALLOCATIONS and FLEXMEM_CACHE_HUGE_ALLOCATIONS.
 *	Returning memory to the provider does not help. Freeing allocations
 *	below 4 GiB on other streams does not help either: names stay with their
 *	stream. Free allocations of this stream, or allocate on a stream that
 *	holds names.
 * @FLEXMEM_CACHE_LIMIT_SIZE: the request is above
 *	FLEXMEM_CACHE_ALLOCATION_BYTES; the cache did not ask the provider
 */
enum flexmem_cache_limit {
	FLEXMEM_CACHE_LIMIT_NONE = 0,
	FLEXMEM_CACHE_LIMIT_ALLOCATIONS = 1,
	FLEXMEM_CACHE_LIMIT_SIZE = 2,
};

/**
 * enum flexmem_cache_obstacle - why a free block could not serve a request
 * @FLEXMEM_CACHE_OBSTACLE_SIZE: the block is too small, or there is none
 * @FLEXMEM_CACHE_OBSTACLE_STREAM: the block belongs to another stream
 * @FLEXMEM_CACHE_OBSTACLE_POOL: the block and the request are not for the same
 *	private pool, or one of them is for none
 * @FLEXMEM_CACHE_OBSTACLE_KIND: the block is in the pool of small requests and
 *	the request is large, or the other way round
 * @FLEXMEM_CACHE_OBSTACLE_SPLIT: because of max_split_size_mb only larger
 *	requests may get the block
 * @FLEXMEM_CACHE_OBSTACLE_ALIGNMENT: the block has too few bytes from the next
 *	multiple of the request's alignment on
 */
enum flexmem_cache_obstacle {
	FLEXMEM_CACHE_OBSTACLE_SIZE = 0,
	FLEXMEM_CACHE_OBSTACLE_STREAM = 1,
	FLEXMEM_CACHE_OBSTACLE_POOL = 2,
	FLEXMEM_CACHE_OBSTACLE_KIND = 3,
	FLEXMEM_CACHE_OBSTACLE_SPLIT = 4,
	FLEXMEM_CACHE_OBSTACLE_ALIGNMENT = 5,
};

/**
 * FLEXMEM_CACHE_HINT_FRACTION - flag of &flexmem_cache_failure.hints: only
 * per_process_memory_fraction was in the way
 *
 * The provider has as many free bytes as the request needs, or does not tell.
 */
#define FLEXMEM_CACHE_HINT_FRACTION (UINT32_C(1) << 0)

/**
 * FLEXMEM_CACHE_HINT_CAPTURE - flag of &flexmem_cache_failure.hints: freed
 * memory waits for other streams until the capture of work ends
 */
#define FLEXMEM_CACHE_HINT_CAPTURE (UINT32_C(1) << 1)

/**
 * FLEXMEM_CACHE_HINT_ELSEWHERE - flag of &flexmem_cache_failure.hints: some of
 * @reserved_bytes are memory of a pool with a provider of its own
 *
 * So @device_total without @device_free and @reserved_bytes is not what others use.
 */
#define FLEXMEM_CACHE_HINT_ELSEWHERE (UINT32_C(1) << 2)

/*
 * Spare words behind &flexmem_cache_failure.device and behind
 * &flexmem_cache_allocation.failure, so that these structs can grow.
 */
#define FLEXMEM_CACHE_DEVICE_ROOM 3
#define FLEXMEM_CACHE_ROOM 1

/**
 * struct flexmem_cache_failure - details of a failed allocation
 * @error: last error of the provider; 0: the provider was not asked, because of
 *	@allowed_bytes or @limit
 * @limit: enum flexmem_cache_limit
 * @asked: bytes of the request, rounded up if that is possible
 * @segment: bytes that the cache requested from the provider
 * @allocated_bytes: bytes in live allocations
 * @reserved_bytes: bytes in segments
 * @largest_free: bytes of the largest free block of the cache
 * @allowed_bytes: limit of bytes by per_process_memory_fraction; 0: no limit
 * @device_free: what the cache could still get, as flexmem_cache_memory_info()
 *	tells. If this and @device_total are 0, it is not known
 * @device_total: what the cache can have in all
 * @device: the provider's reason, for an @error of -ENOMEM
 * @device_room: 0; for @device to grow
 * @obstacle: enum flexmem_cache_obstacle: why the largest free block could not
 *	be used
 * @largest_kind: enum flexmem_cache_pool_kind: pool of the largest free block
 * @largest_stream: stream of the largest free block
 * @largest_pool: private pool of the largest free block, or 0
 * @pool: private pool of the request, or 0
 * @last_pool: number of the newest private pool of the cache, or 0
 * @context: as in the request
 * @print: as in &flexmem_cache_options.contexts, for
 *	flexmem_cache_error_text(), which must be called while the context is
 *	valid
 * @print_user: what to pass to @print
 * @expandable: 1: segments of the cache grow; 0: they have fixed sizes
 * @hints: FLEXMEM_CACHE_HINT_*: what could help, and what the figures count
 * @kept_pool: of the private pools for which flexmem_cache_pool_empty() could
 *	help, the one with the most bytes in free segments; or 0
 *
 * After -ENOENT only @pool and @last_pool are set. All members are 0 if host
 * memory is exhausted, or if the provider returned another error than -ENOMEM.
 * If @limit is not FLEXMEM_CACHE_LIMIT_NONE, only @limit, @asked,
 * @allocated_bytes and @reserved_bytes are set.
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
	uint32_t hints;
	uint64_t kept_pool;
};

/**
 * struct flexmem_cache_allocation - an allocation, or the cause of its failure
 * @token: token of its first byte
 * @size: bytes of the allocation: @requested, rounded up
 * @requested: bytes of the request
 * @address: where it starts on the device
 * @stream: as in the request
 * @pool: the private pool that it is in, or 0
 * @tag: the tag of the request, or ""
 * @failure: details, if the call returned -ENOMEM or -ENOENT
 * @failure_room: 0; for @failure to grow
 * @handle: the provider's handle of the segment. With a device: the handle for
 *	flexmem_device_write() and flexmem_device_map()
 * @offset: where it starts in that segment
 * @context: as in the request; valid as long as the allocation lives
 * @pointer: with FLEXMEM_CACHE_MAPPED: its first byte for the CPU, valid until
 *	the allocation is freed. Otherwise NULL
 *
 * The allocation consists of @size bytes of the segment @handle, from @offset
 * on. For these bytes:
 *
 *  - flexmem_device_read() and flexmem_device_write() can always access them.
 *    While the segment grows or shrinks, they and flexmem_device_map() return
 *    -EBUSY. A segment grows for a request of any thread. It shrinks in
 *    flexmem_cache_empty() and flexmem_cache_trim(), under pressure, and on the
 *    thread of flexmem_cache_start_helper() at any moment. After -EBUSY repeat
 *    the call, for a copy from the byte ``done`` on.
 *  - flexmem_device_map() can map them if the cache has FLEXMEM_CACHE_MAPPABLE.
 *    Mappings begin at pages, but blocks at multiples of the granule. Unless
 *    the granule is a page, a mapping of a block contains bytes of its
 *    neighbours at both ends. While a part of a segment is mapped, the segment
 *    neither grows nor shrinks: requests that need more memory get another
 *    segment, and flexmem_cache_empty() and flexmem_cache_trim() leave its free
 *    end and return -EBUSY. Unmap a block before you free it, because another
 *    request may get its memory at once. A segment that is freed while it is
 *    mapped stays charged until it is unmapped.
 *
 * @handle and @offset do not change while the allocation lives.
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
 * flexmem_cache_alloc() - allocate
 * @cache: a cache
 * @bytes: bytes; 0 gives NULL
 * @stream: stream on which the allocation is used
 * @token: where to put the token
 *
 * flexmem_cache_free() frees the allocation. If the cache has no block for the
 * request, it takes these steps:
 *
 *  1. while garbage_collection_threshold is exceeded, it returns free segments
 *     to the provider, the oldest first;
 *  2. it asks the provider for a segment (num_first_failures counts a refusal);
 *  3. with ``reuse:wait`` it takes free memory in an expandable segment that
 *     work of other streams may still use, and lets the stream wait for this
 *     work on the device. With ``reuse:own``, and in private pools, it takes a
 *     hole in an expandable segment of another stream, if the work of that
 *     stream is done. Otherwise it runs the callbacks of
 *     flexmem_cache_add_oom_callback(). If they freed memory, it searches its
 *     blocks and asks the provider again;
 *  4. with a threshold, it repeats step 1. Then it returns free segments that
 *     are large enough, and asks the provider again;
 *  5. it returns all free segments, and asks the provider again. A request for a
 *     private pool returns those of that pool too, unless a graph may use
 *     them: the pool ever captured, had a checkpoint, or served a request
 *     while any pool captured;
 *  6. it synchronizes the device, so that waiting blocks become free, and
 *     searches its blocks, with expandable segments of all streams. If that
 *     does not help, it returns free segments as in step 5, and asks again.
 *     Under ``release_lock_on_device_malloc`` it then searches once more, for
 *     blocks that other threads have freed;
 *  7. it searches the free blocks of private pools with
 *     FLEXMEM_CACHE_POOL_USE_ON_OOM, unless the request is for a private pool.
 *     Only blocks and segments of the request's own stream serve it;
 *  8. it asks for a segment of just the size of the request, which does not
 *     grow;
 *  9. if the provider has pressure events, and other programs could help, the
 *     cache gives these programs time to free memory: it asks the provider
 *     15 times in 1.27 seconds, whatever signals arrive. In between the cache is
 *     unlocked. Others cannot help if they have too little memory of the
 *     device, if per_process_memory_fraction is in the way, if the segment is
 *     larger than the largest region, or if a limit of the cgroup is, to which
 *     no other open file is charged.
 *
 * Steps 4 and 5 ask the provider only if they have returned a segment. An error
 * other than -ENOMEM ends the request at once. num_alloc_retries counts
 * successes in steps 3 to 9, num_ooms requests that fail in all steps.
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
 * @allocation: to be filled, even on failure
 * @allocation_size: sizeof(*@allocation)
 *
 * Like flexmem_cache_alloc(), with a pool, a tag, a context, and details in the
 * reply.
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
 * @cache: cache of the allocation
 * @token: token of its first byte, or NULL
 *
 * Return: 0; -EINVAL: @token is not the token of a live allocation of this
 * cache.
 */
FLEXMEM_API int flexmem_cache_free(struct flexmem_cache *cache, void *token);

/**
 * flexmem_cache_alloc_pointer() - allocate memory that is freed by its pointer
 * @cache: a cache with FLEXMEM_CACHE_MAPPED
 * @request: as for flexmem_cache_alloc_request()
 * @request_size: sizeof(*@request)
 * @allocation: to be filled, even on failure. Its ``pointer`` names the
 *	allocation; NULL for zero bytes.
 * @allocation_size: sizeof(*@allocation)
 *
 * For a framework that knows only a pointer when it frees. Either
 * flexmem_cache_free_pointer() or flexmem_cache_free() frees the allocation;
 * then both its pointer and its token are invalid. The other functions take its
 * token. An allocation that flexmem_cache_pool_restore() makes again has a new
 * token, which alone frees it.
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
 * @cache: cache of the allocation
 * @pointer: from flexmem_cache_alloc_pointer(), or NULL
 *
 * Return: 0; -EINVAL: no live allocation of flexmem_cache_alloc_pointer()
 * begins at @pointer; -EOPNOTSUPP: the cache does not map its segments.
 */
FLEXMEM_API int flexmem_cache_free_pointer(struct flexmem_cache *cache,
					   void *pointer);

/**
 * flexmem_cache_lookup_pointer() - find the allocation that begins at a pointer
 * @cache: cache of the allocation
 * @pointer: from flexmem_cache_alloc_pointer(), not NULL
 * @allocation: to be filled
 * @size: sizeof(*@allocation)
 *
 * Return: 0; -EINVAL: no live allocation of flexmem_cache_alloc_pointer()
 * begins at @pointer; -EOPNOTSUPP: the cache does not map its segments.
 */
FLEXMEM_API int
flexmem_cache_lookup_pointer(struct flexmem_cache *cache, const void *pointer,
			     struct flexmem_cache_allocation *allocation,
			     size_t size);

/**
 * flexmem_cache_record_stream() - say that another stream uses an allocation
 * @cache: cache of the allocation
 * @token: token of its first byte. With NULL nothing is done
 * @stream: stream that uses the allocation
 *
 * Call this function after the work was put on the stream, and before the
 * allocation is freed.
 *
 * Return: 0; -EINVAL: @token is not the token of a live allocation of this
 * cache.
 */
FLEXMEM_API int flexmem_cache_record_stream(struct flexmem_cache *cache,
					    void *token, uint64_t stream);

/**
 * flexmem_cache_lookup() - find the allocation that a byte belongs to
 * @cache: cache of the allocation
 * @token: token of any byte of the allocation
 * @allocation: to be filled
 * @size: sizeof(*@allocation)
 * @offset: where to put the offset of the byte within the allocation, or NULL
 *
 * Return: 0; -EINVAL: @token names no byte of a live allocation of this cache.
 */
FLEXMEM_API int flexmem_cache_lookup(struct flexmem_cache *cache,
				     const void *token,
				     struct flexmem_cache_allocation *allocation,
				     size_t size, uint64_t *offset);

/**
 * flexmem_cache_address() - find the device address of a byte
 * @cache: cache of the allocation
 * @token: token of any byte of the allocation
 * @address: where to put the device address of the byte
 *
 * For a framework that passes addresses to each kernel that it starts. The call
 * takes no lock. An allocation keeps its address as long as it lives.
 *
 * Return: 0; -EINVAL: @token names no byte of a live allocation of this cache.
 */
FLEXMEM_API int
flexmem_cache_address(const struct flexmem_cache *cache, const void *token,
		      struct flexmem_virtual_address *address);

/**
 * flexmem_cache_memory_info() - read how much memory the cache can have
 * @cache: a cache
 * @free: where to put the bytes that the cache can still get
 * @total: where to put the bytes that the cache can have in all
 *
 * @total is the smallest of what the device has outside the reservations of
 * other cgroups, and of each limit of bytes of the process's cgroups, times
 * per_process_memory_fraction. @free is the smallest of what is left of each.
 * Other processes may take the same bytes. A cgroup's limit of regions counts as
 * for flexmem_device_memory_info(). Free blocks of the cache do not count as free
 * here. If slots of the device are set aside for programs, the regions in these slots count neither as
 * free nor as total. So the total falls when the driver acquires the first of
 * these regions, and again with each further one.
 * flexmem_device_domain() has the figures of the whole device.
 *
 * Return: 0; -EOPNOTSUPP: the provider does not know; or the provider's error.
 */
FLEXMEM_API int flexmem_cache_memory_info(struct flexmem_cache *cache,
					  uint64_t *free, uint64_t *total);

/**
 * flexmem_cache_available() - the same, and how large a segment can be
 * @cache: a cache
 * @available: to be filled: ``largest`` is what one segment can have. The size
 *	of a segment is that of the request that needs it, rounded up
 * @size: sizeof(*@available)
 *
 * Free blocks of the cache do not count in ``largest`` either: they serve a
 * request without a new segment. The provider tells ``largest`` a moment later
 * than the other two.
 *
 * Return: 0; -EINVAL: @available is NULL or @size is too small; -EOPNOTSUPP: the
 * provider does not know; or the provider's error.
 */
FLEXMEM_API int flexmem_cache_available(struct flexmem_cache *cache,
					struct flexmem_available *available,
					size_t size);

/**
 * flexmem_cache_empty() - return all free segments to the provider
 * @cache: a cache
 * @released: where to put the number of bytes returned, or NULL; written even
 *	on failure
 *
 * It first waits for the events of freed blocks. It also returns free ends of
 * growing segments. Segments of private pools stay until the pool is released.
 * With backend direct it returns memory that waited for events, and memory that
 * the provider failed to free. @released counts all bytes that are returned
 * during the call, including those that another thread returns.
 *
 * Return: 0; or the error of a callback that could not wait or free; then the
 * call has done everything else.
 */
FLEXMEM_API int flexmem_cache_empty(struct flexmem_cache *cache,
				    uint64_t *released);

/**
 * flexmem_cache_trim() - return some memory, because other programs need it
 * @cache: a cache
 * @bytes: least number of bytes to return
 * @released: where to put the number of bytes returned, or NULL; written even
 *	on failure
 *
 * It returns free segments and free ends of growing segments, the oldest first,
 * until @bytes have been returned. It never waits for a stream.
 *
 * Return: 0, even if less was free; or the provider's error.
 */
FLEXMEM_API int flexmem_cache_trim(struct flexmem_cache *cache,
				      uint64_t bytes, uint64_t *released);

/**
 * flexmem_cache_drop_lost() - stop using segments that a reset has lost
 * @cache: a cache
 * @live: where to put the bytes of live allocations in lost segments, or NULL;
 *	written on success only
 *
 * Call it after a reset of the device. The cache itself notices a reset only
 * when it grows or shrinks a segment. From then on no request gets memory of a
 * lost segment, not even in a private pool. The segment is returned to the
 * provider when its last allocation is freed. A live allocation in it keeps its
 * token, and is freed as usual. The call does not wait.
 *
 * Return: 0; -EOPNOTSUPP: &flexmem_cache_options.provider has no ``lost``; or
 * the provider's error when it freed a segment. The cache frees that segment
 * again later.
 */
FLEXMEM_API int flexmem_cache_drop_lost(struct flexmem_cache *cache,
					uint64_t *live);

/**
 * flexmem_cache_serve_pressure() - return memory after an event of the device
 * @cache: a cache
 * @released: where to put the number of bytes returned, or NULL; written even
 *	on failure, except after -EINVAL and -ECHILD
 *
 * Reads the next event of the device (flexmem_device_pressure()) and returns
 * memory. A framework with a loop calls it when poll() finds
 * flexmem_device_fd() readable. It waits for no stream and no event, only for
 * the cache's lock. Live allocations stay. It returns, the oldest first:
 *
 *  - FLEXMEM_LEVEL_MODERATE: at least half of the free memory; nothing if the
 *    level has fallen to this one.
 *  - FLEXMEM_LEVEL_CRITICAL: at least half of the free memory, and enough to
 *    have less than 90 percent of the device in use.
 *  - FLEXMEM_LEVEL_NONE: nothing.
 *  - At any level, if an allocation of another process has failed that could
 *    succeed if this one freed memory: that many bytes, and not more than one
 *    segment too many; adjacent segments if it has enough of them, because the
 *    other process needs one piece. Nothing if it did so less than a second ago
 *    and others have taken none of that; if they have taken a part, only what
 *    the rest does not suffice for. The next event after that second counts for
 *    what was asked for in it, too.
 *
 * Free memory is what flexmem_cache_trim() could return: free segments, and the
 * free ends of growing ones, each as a whole.
 *
 * The device sends no event for memory that the program frees after the level
 * has become FLEXMEM_LEVEL_CRITICAL. Only the thread of
 * flexmem_cache_start_helper() looks for such memory. A framework that calls
 * this function from its own loop must call flexmem_cache_trim() or
 * flexmem_cache_empty() when it is idle.
 *
 * Return: 0; -EAGAIN: there is no event; -EOPNOTSUPP: the provider has no
 * events; or the provider's error.
 */
FLEXMEM_API int flexmem_cache_serve_pressure(struct flexmem_cache *cache,
					     uint64_t *released);

/**
 * flexmem_cache_start_helper() - serve pressure on a thread of its own
 * @cache: a cache
 *
 * For a framework without a loop. The thread waits for events and serves them
 * like flexmem_cache_serve_pressure(). What another process lacked and the
 * program still used is returned when the program has allocated nothing for a
 * tenth of a second, for as long as a cache of that process waits. What was
 * asked for in the second after a return in vain is returned after it, also
 * without a further event. The device sends no event for memory that the program
 * frees after the level has become FLEXMEM_LEVEL_CRITICAL. So while that level
 * lasts, the thread looks once a second. If the program has allocated nothing
 * since the last look, the thread returns free memory as after an event of that
 * level. The thread ends with
 * flexmem_cache_stop_helper(), with the destruction of the cache, or when the
 * device is removed; then it can be started again. It blocks all signals. It
 * runs callbacks of the provider, of the events and of the log, like any other
 * thread that uses the cache. While it runs, it has a pipe, which a child
 * process does not inherit. If the program closes the pipe, the thread ends
 * with a warning; if it closes the descriptor of the provider, at the next
 * event.
 *
 * Return: 0; -EEXIST: the thread runs already; -EOPNOTSUPP: the provider has no
 * events; -EAGAIN: the process may not have a further thread; -EMFILE or
 * -ENFILE: the process or the system may not have another open file.
 */
FLEXMEM_API int flexmem_cache_start_helper(struct flexmem_cache *cache);

/**
 * flexmem_cache_stop_helper() - end the thread that serves pressure
 * @cache: a cache
 *
 * When this returns, the thread has ended. So a callback must not call this
 * function.
 *
 * Return: 0; -ENOENT: it was not started.
 */
FLEXMEM_API int flexmem_cache_stop_helper(struct flexmem_cache *cache);

/**
 * typedef flexmem_cache_oom_fn - asks the framework to free memory
 * @user: what was registered with the callback
 * @bytes: size of the segment that was refused
 *
 * Runs on the thread that allocates, without any lock of the cache. It may
 * allocate and free. An allocation inside the callback runs no callback.
 */
typedef void (*flexmem_cache_oom_fn)(void *user, uint64_t bytes);

/**
 * flexmem_cache_add_oom_callback() - register a callback
 * @cache: a cache
 * @callback: callback for the case that the provider refuses memory
 * @user: passed to @callback
 *
 * Callbacks run in the order of their registration. If several threads are out
 * of memory, each of these threads runs the callbacks, at the same time.
 *
 * Return: 0; -EEXIST: the pair of @callback and @user is registered already.
 */
FLEXMEM_API int flexmem_cache_add_oom_callback(struct flexmem_cache *cache,
					       flexmem_cache_oom_fn callback,
					       void *user);

/**
 * flexmem_cache_remove_oom_callback() - remove a callback
 * @cache: a cache
 * @callback: the callback that was registered
 * @user: the pointer that was registered with it
 *
 * When this returns, the callback is not running any more. So a callback must
 * not call this function.
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
 * @pool: where to put the number of the pool, which is never 0 and never reused
 *
 * The segments of a private pool serve only requests for this pool. Free
 * segments stay in the pool until flexmem_cache_pool_empty() returns them, or
 * until a request for the pool would fail without their bytes. After
 * flexmem_cache_pool_capture() or flexmem_cache_pool_checkpoint() only
 * flexmem_cache_pool_empty() returns them, because a graph may use their
 * addresses. The caller gets one hold of the pool.
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_cache_pool_create(struct flexmem_cache *cache,
					  uint64_t *pool);

/**
 * flexmem_cache_pool_create_on() - make a private pool with a provider of its own
 * @cache: a cache
 * @provider: source of the segments of the pool, copied; the source must
 *	outlive the cache. NULL: the call is flexmem_cache_pool_create()
 * @provider_size: sizeof(*@provider); ignored with NULL
 * @pool: where to put the number of the pool
 *
 * All providers of a cache share one address space: equal region_ids mean the
 * same region. Two providers may use the same handle; the pool of an allocation
 * tells which provider it comes from. The segments of the pool grow if
 * @provider and the provider of the cache can both grow segments. Figures of
 * the device and pressure events come only from the provider of the cache.
 * per_process_memory_fraction counts all segments.
 *
 * Return: 0; -EINVAL: @provider lacks ``alloc`` or ``free``, or @provider_size
 * is wrong; -EOPNOTSUPP: the cache maps its segments, and @provider cannot.
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
 * flexmem_cache_pool_release() ends the hold. &flexmem_cache_usage.uses counts
 * holds.
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cache_pool_hold(struct flexmem_cache *cache,
					uint64_t pool);

/**
 * flexmem_cache_pool_release() - end one hold of a private pool
 * @cache: a cache
 * @pool: its number
 *
 * When its last hold ends, the pool ends and takes no further requests. A live
 * allocation in it stays until it is freed. Each segment is returned to the
 * provider when its last allocation is freed.
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cache_pool_release(struct flexmem_cache *cache,
					   uint64_t pool);

/**
 * FLEXMEM_CACHE_POOL_USE_ON_OOM - flag of a private pool: its free memory
 * serves requests without a pool that would otherwise fail
 *
 * Step 7 of flexmem_cache_alloc() says which.
 */
#define FLEXMEM_CACHE_POOL_USE_ON_OOM (UINT32_C(1) << 0)

/**
 * FLEXMEM_CACHE_POOL_NO_SPLIT - flag of a private pool: each allocation gets a
 * segment of its own, which is not split and does not grow
 *
 * The allocation gets all bytes of its segment. For a request of 1,000 bytes
 * that is 2 MiB. A free segment also serves smaller requests.
 * Can be set and cleared only while the pool has no segment.
 */
#define FLEXMEM_CACHE_POOL_NO_SPLIT (UINT32_C(1) << 1)

/**
 * flexmem_cache_pool_set_flags() - set the flags of a private pool
 * @cache: a cache
 * @pool: its number
 * @flags: of FLEXMEM_CACHE_POOL_USE_ON_OOM, FLEXMEM_CACHE_POOL_NO_SPLIT. A new
 *	pool has none.
 *
 * Return: 0; -ENOENT: no such pool; -EOPNOTSUPP: unknown bits; -EBUSY:
 * FLEXMEM_CACHE_POOL_NO_SPLIT would change, and the pool has segments, or the
 * cache is making one for it.
 */
FLEXMEM_API int flexmem_cache_pool_set_flags(struct flexmem_cache *cache,
					     uint64_t pool, uint32_t flags);

/**
 * flexmem_cache_pool_empty() - return free memory of a private pool
 * @cache: a cache
 * @pool: its number
 * @released: where to put the bytes that the cache returned, or NULL; written
 *	even on failure, except after -EINVAL, -ENOENT and -ECHILD
 *
 * Like flexmem_cache_empty(), for one pool: it waits for the events of freed
 * blocks, and then returns free segments, and free ends of growing ones.
 *
 * Return: 0; -ENOENT: no such pool; or the error of a provider or of an event.
 */
FLEXMEM_API int flexmem_cache_pool_empty(struct flexmem_cache *cache,
					 uint64_t pool, uint64_t *released);

/**
 * typedef flexmem_cache_filter_fn - decides whether requests of a stream go to
 * a pool
 * @user: what was passed to flexmem_cache_pool_begin()
 * @stream: the stream of a request that names no pool
 *
 * Runs with the cache locked, once for each such request. Returns a value other
 * than 0 if the request goes to the pool.
 */
typedef int (*flexmem_cache_filter_fn)(void *user, uint64_t stream);

/**
 * flexmem_cache_pool_begin() - send requests to a private pool
 * @cache: a cache
 * @pool: number of the pool
 * @filter: decides which streams use the pool
 * @user: passed to @filter
 *
 * Until flexmem_cache_pool_end() a request without a pool goes to this pool if
 * @filter accepts its stream. If several pools accept the stream, the pool that
 * began last gets the request. All requests and frees take the cache's lock.
 *
 * Return: 0; -EINVAL: @filter is NULL; -ENOENT: no such pool; -EEXIST: the pool
 * has begun already.
 */
FLEXMEM_API int flexmem_cache_pool_begin(struct flexmem_cache *cache,
					 uint64_t pool,
					 flexmem_cache_filter_fn filter,
					 void *user);

/**
 * flexmem_cache_pool_capture() - say that the framework captures work
 * @cache: a cache
 * @pool: number of a pool that has begun, even if the pool was released
 *
 * A framework calls this after flexmem_cache_pool_begin(), and before it begins
 * to capture a graph. The capture ends with flexmem_cache_pool_end(). A pool
 * that only collects allocations of work that runs normally needs no such call.
 *
 * Callbacks of the events would break a capture. So the cache calls none of
 * them while any pool captures, for any pool: freed blocks that other streams
 * use wait at least until the end of the last capture, the cache does not
 * synchronize the device, and no stream gets memory of another one. The one
 * exception: a thread that already waits for an event or for the device ends
 * this wait, and destroys the events that have happened.
 *
 * Return: 0, also for a pool that captures already; -ENOENT:
 * flexmem_cache_pool_begin() was not called for the pool.
 */
FLEXMEM_API int flexmem_cache_pool_capture(struct flexmem_cache *cache,
					   uint64_t pool);

/**
 * flexmem_cache_pool_end() - end flexmem_cache_pool_begin()
 * @cache: a cache
 * @pool: number of the pool, even if the pool was released
 *
 * If the pool was the last one that captures, the cache then records the events
 * of the blocks that were freed during the captures.
 *
 * Return: 0; -ENOENT: flexmem_cache_pool_begin() was not called for the pool.
 */
FLEXMEM_API int flexmem_cache_pool_end(struct flexmem_cache *cache,
				       uint64_t pool);

/*
 * struct flexmem_cache_checkpoint - allocations of a private pool at one moment
 */
struct flexmem_cache_checkpoint;

/**
 * flexmem_cache_pool_checkpoint() - record the live allocations of a private
 * pool
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
 * flexmem_cache_pool_restore() - restore the allocations of a checkpoint
 * @cache: the cache of the checkpoint
 * @checkpoint: a checkpoint
 *
 * Afterwards the live allocations of the pool are those of the checkpoint, with
 * the same addresses and sizes. An allocation of the checkpoint that is still
 * live keeps its token and its bytes. An allocation that was freed is made
 * again, with a new token, the same tag, no context, on the stream of its
 * segment; flexmem_cache_checkpoint_token() returns the new token. All other
 * live allocations of the pool are freed, as with flexmem_cache_free(); so are
 * those of requests without a pool that FLEXMEM_CACHE_POOL_USE_ON_OOM has put
 * there. A checkpoint can be restored any number of times. A failure changes
 * nothing. No other thread may use the checkpoint during the call.
 *
 * Return: 0; -ENOENT: no such pool; -EBUSY: memory of the checkpoint is in a
 * block that waits for events, or in an allocation that would have to wait when
 * it is freed; -ENXIO: flexmem_cache_pool_empty() has returned memory of the
 * checkpoint, or it was lost; -ENOMEM: host memory or names are used up.
 */
FLEXMEM_API int
flexmem_cache_pool_restore(struct flexmem_cache *cache,
			   struct flexmem_cache_checkpoint *checkpoint);

/**
 * flexmem_cache_checkpoint_token() - token of an allocation of a checkpoint
 * @checkpoint: a checkpoint
 * @index: number of the allocation, from 0 on; the order does not change
 *
 * Return: the token that the last restore gave the allocation, or its token at
 * the checkpoint if there was no restore; NULL: @index is too large.
 */
FLEXMEM_API void *flexmem_cache_checkpoint_token(
	const struct flexmem_cache_checkpoint *checkpoint, size_t index);

/**
 * flexmem_cache_checkpoint_free() - free a checkpoint
 * @checkpoint: object to free, or NULL; may be freed after its cache
 */
FLEXMEM_API void
flexmem_cache_checkpoint_free(struct flexmem_cache_checkpoint *checkpoint);

/**
 * struct flexmem_cache_usage - sums of one pool, or of one stream of it
 * @uses: number of holds of the pool; 0 for memory in no private pool
 * @segments: number of segments
 * @reserved_bytes: bytes in segments
 * @active_bytes: bytes in blocks that are allocated or wait for events
 * @allocations: number of live allocations
 * @allocated_bytes: bytes in them
 * @requested_bytes: bytes in them before rounding
 *
 * An allocation counts for the pool and stream of its segment. A segment that
 * all streams share counts for no stream, and its allocations for their own.
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
 * flexmem_cache_pool_usage() - read the sums of one pool, or of one stream of
 * it
 * @cache: a cache
 * @pool: number of a private pool; 0: memory in no private pool
 * @stream: pointer to the number of a stream; NULL: all streams
 * @usage: written on success only
 * @size: sizeof(*@usage)
 *
 * Visits each segment and each block with the cache locked.
 *
 * Return: 0; -ENOENT: no such pool.
 */
FLEXMEM_API int flexmem_cache_pool_usage(struct flexmem_cache *cache, uint64_t pool,
				    const uint64_t *stream,
				    struct flexmem_cache_usage *usage,
				    size_t size);

/** enum flexmem_cache_pool_kind - the pools that a figure counts */
enum flexmem_cache_pool_kind {
	FLEXMEM_CACHE_ALL = 0,
	FLEXMEM_CACHE_SMALL = 1,
	FLEXMEM_CACHE_LARGE = 2,
};

#define FLEXMEM_CACHE_POOL_KINDS 3

/**
 * struct flexmem_cache_figure - one figure over time
 * @current: the present value
 * @peak: largest value since flexmem_cache_reset_peaks()
 * @allocated: sum of all increases since flexmem_cache_reset_accumulated()
 * @freed: sum of all decreases since flexmem_cache_reset_accumulated()
 */
struct flexmem_cache_figure {
	uint64_t current;
	uint64_t peak;
	uint64_t allocated;
	uint64_t freed;
};

/**
 * struct flexmem_cache_statistics - figures of a cache, with PyTorch's names
 * and meanings
 * @allocation: number of live allocations
 * @segment: number of segments
 * @active: number of blocks that are allocated or wait for events
 * @inactive_split: number of free blocks that share their segment with others
 * @allocated_bytes: bytes in live allocations
 * @reserved_bytes: bytes in segments
 * @active_bytes: bytes in active blocks
 * @inactive_split_bytes: bytes in inactive split blocks
 * @requested_bytes: bytes in active blocks before rounding
 * @oversize_allocations: live allocations of max_split_size_mb and above
 * @oversize_segments: segments of max_split_size_mb and above
 * @max_split_size: in bytes; UINT64_MAX: no limit
 * @num_ooms: number of allocations that failed for lack of memory, or because
 *	they were above FLEXMEM_CACHE_ALLOCATION_BYTES
 * @num_alloc_retries: number of allocations that succeeded after a first
 *	failure. PyTorch also counts those that failed again.
 * @num_first_failures: number of allocations that got no memory at the first
 *	attempt: the provider refused, or per_process_memory_fraction left no
 *	room. Each counts once. It also counts in @num_alloc_retries if memory
 *	was found later, and in @num_ooms if it failed for lack of memory.
 * @num_sync_all_streams: number of times that the device was synchronized
 * @num_device_alloc: number of segments made
 * @num_device_free: number of segments returned to the provider
 * @num_device_grow: number of times that a segment grew
 * @num_device_shrink: number of times that a segment shrank
 * @num_hits: number of allocations that the cache served without the provider
 * @num_misses: number of allocations that needed more memory from the provider
 * @num_collections: number of times that segments were returned because of
 *	garbage_collection_threshold
 * @num_pressure_events: number of pressure events that were served
 * @pressure_bytes: bytes returned because of pressure events
 * @num_limit_errors: number of allocations that failed with
 *	FLEXMEM_CACHE_LIMIT_ALLOCATIONS; no other counter of failures includes
 *	them
 * @num_stream_waits: number of calls of &flexmem_cache_events.wait
 *
 * The index of the arrays is enum flexmem_cache_pool_kind.
 *
 * All values are exact, except some peaks. Peaks of segments and tags are
 * exact. The other peaks are exact if only one thread, or only one stream, was
 * used since flexmem_cache_reset_peaks(). Otherwise the peaks of @allocation,
 * @active, @inactive_split, of their bytes, of @requested_bytes and of
 * allocations without a tag can differ by the changes of the last 64 operations
 * of each other stream.
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
	uint64_t num_stream_waits;
};

/**
 * flexmem_cache_statistics() - read the present figures
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
 * The sums are ``allocated`` and ``freed`` of each &struct
 * flexmem_cache_figure. The counters are ``pressure_bytes`` and all members of
 * &struct flexmem_cache_statistics with names that begin with ``num_``.
 *
 * Return: 0 or a negative errno.
 */
FLEXMEM_API int flexmem_cache_reset_accumulated(struct flexmem_cache *cache);

/**
 * struct flexmem_cache_tag - sums of one tag
 * @tag: the tag; "" for allocations without one
 * @allocations: number of live allocations
 * @allocated_bytes: bytes in them
 * @requested_bytes: bytes in them before rounding
 * @peak_bytes: largest value of @allocated_bytes since
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
 * flexmem_cache_tags() - read the sums of all tags
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
 * @entries: number of events, below 2^32; 0: none. The history begins empty.
 *	Its memory grows as it fills. If there is no host memory for more, it
 *	keeps as many as it has
 *
 * Sets ``history_entries``, as flexmem_cache_set_setting() does.
 *
 * Return: 0; -EINVAL: @entries is 2^32 or more.
 */
FLEXMEM_API int flexmem_cache_set_history(struct flexmem_cache *cache,
					  size_t entries);

/** FLEXMEM_CACHE_EVERY_POOL - for flexmem_cache_snapshot(): all pools */
#define FLEXMEM_CACHE_EVERY_POOL UINT64_MAX

/**
 * flexmem_cache_snapshot() - describe segments, blocks and history as JSON
 * @cache: a cache
 * @pool: number of a private pool; 0: memory in no private pool; or
 *	FLEXMEM_CACHE_EVERY_POOL
 * @text: where to put the text, NUL-terminated; flexmem_cache_text_free()
 *	frees it
 * @length: where to put its length without the NUL, or NULL
 *
 * The text has the fields of PyTorch's memory snapshot (segments,
 * device_traces, allocator_settings). PyTorch's viewer shows the text after the
 * program has pickled it, with protocol 4 at most. The cache numbers regions
 * from 1 on, in the order in which it first used them. An address in the text
 * is this number times 2^44, plus the offset; region_id, offset and token are
 * given too. The snapshot of one pool has only that pool's history. As in
 * PyTorch, segments that grow are mapped and unmapped, and others are allocated
 * and freed. Each event of the history has its number, from 1 on, and the bytes
 * that were requested; 'flexmem record' makes a trace of them that 'flexmem
 * replay --exact' compares with another run.
 *
 * The frames of an allocation are its tag, and each line that
 * &flexmem_cache_contexts.print writes about its context. In both a byte
 * that is no UTF-8, and each byte of a control character, becomes \xNN, and a
 * backslash becomes two, so different tags stay different.
 *
 * The cache is locked while the records are copied, but not while the text is
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
 * flexmem_cache_error_text() - describe an error in words
 * @error: negative errno from the cache
 * @failure: details of a failed allocation, or NULL
 * @size: sizeof(*@failure); ignored with NULL
 * @text: where to write; always NUL-terminated, unless @length is 0; then it
 *	may be NULL
 * @length: size of @text in bytes; 1024 hold any text
 *
 * Return: 0; -EMSGSIZE: the text is cut off; -EINVAL: @error is positive, @size
 * is too small, or @text is NULL and @length is not 0.
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
 * flexmem_cache_flat_create() - make an address space without memory, for tests
 * @flat: where to put the object; flexmem_cache_flat_destroy() frees it
 * @bytes: length of the address space; a multiple of 128
 * @provider: to be filled; allocates from this address space, and segments can
 *	grow. Several caches may use it, on any threads.
 * @size: sizeof(*@provider)
 *
 * Return: 0; -EINVAL: @bytes is 0 or no multiple of 128.
 */
FLEXMEM_API int
flexmem_cache_flat_create(struct flexmem_cache_flat **flat, uint64_t bytes,
			  struct flexmem_cache_provider *provider, size_t size);

/**
 * flexmem_cache_flat_destroy() - free a flat address space
 * @flat: object to free, or NULL; no cache may use it any more
 */
FLEXMEM_API void flexmem_cache_flat_destroy(struct flexmem_cache_flat *flat);

#ifdef __cplusplus
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
}
#endif

#endif /* FLEXMEM_CACHE_H */
