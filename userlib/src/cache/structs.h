/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The structs of a cache. cache.h explains them, and what each lock protects.
 */
#ifndef FMLIB_STRUCTS_H
#define FMLIB_STRUCTS_H

#include "../internal.h"
#include "flexmem_cache.h"
#include "lock.h"
#include "origin.h"
#include "range.h"
#include "tokens.h"
#include "tree.h"

#include <sys/stat.h>

/*
 * For C functions of the shortest path. The compiler by itself does not inline
 * a function with two callers.
 */
#define FMLIB_INLINE static inline __attribute__((always_inline))

#define FMLIB_NO_LIMIT UINT64_MAX

/* config.c: the settings, sorted by name. */
enum fmlib_key {
	FMLIB_KEY_BACKEND,
	FMLIB_KEY_EXPANDABLE,
	FMLIB_KEY_THRESHOLD,
	FMLIB_KEY_HISTORY,
	FMLIB_KEY_LARGE,
	FMLIB_KEY_SLACK,
	FMLIB_KEY_MAX_SPLIT,
	FMLIB_KEY_FRACTION,
	FMLIB_KEY_RELEASE_LOCK,
	FMLIB_KEY_REUSE,
	FMLIB_KEY_DIVISIONS,
	FMLIB_KEYS,
};

/*
 * Number of entries: one for each power of two from 2 MiB on, and one for all
 * larger sizes.
 */
#define FMLIB_DIVISIONS 17

/*
 * When a stream uses free memory of another stream. FMLIB_REUSE_OWN: if the
 * provider has refused more memory (borrow.c). The other values: whenever that
 * work is done, or also before that (share.c).
 */
enum fmlib_reuse {
	FMLIB_REUSE_OWN,
	FMLIB_REUSE_DONE,
	FMLIB_REUSE_WAIT,
};

/*
 * The settings of a cache.
 * @threshold: 0 if it is off.
 * @large: bytes of a segment for large requests below large_limit of the profile.
 * @max_split: FMLIB_NO_LIMIT if it was not given.
 * @divides: whether @divisions was given.
 * @expandable, @threshold, @fraction, @history, @large, @max_split, @slack and
 * their texts in @shown change only while the whole cache is locked. The other members
 * are constant.
 */
struct fmlib_config {
	bool direct;
	bool expandable;
	bool release_lock;
	bool divides;
	enum fmlib_reuse reuse;
	double threshold;
	double fraction;
	uint64_t history;
	uint64_t large;
	uint64_t max_split;
	uint64_t slack;
	uint32_t divisions[FMLIB_DIVISIONS];
	struct {
		enum flexmem_cache_source source;
		char value[sizeof(((struct flexmem_cache_setting *)0)->value)];
	} shown[FMLIB_KEYS];
};

/* fit.c: the free pieces, sorted by size. */
struct fmlib_fit {
	struct fmlib_piece *root;
};

/*
 * A part of a fixed segment. Pieces tile the segment, and no two neighbours are
 * both free. The members from @left to @priority are only for free pieces.
 * @stamp is the cache's clock when the piece became free. @next of a spare
 * piece points at the next spare piece.
 */
struct fmlib_piece {
	struct fmlib_segment *segment;
	uint64_t offset;
	uint64_t size;
	struct fmlib_piece *previous;
	struct fmlib_piece *next;
	struct fmlib_piece *left;
	struct fmlib_piece *right;
	uint64_t stamp;
	uint32_t priority;
	bool is_free;
};

/*
 * Only expandable segments use @range and @stamp.
 * @stamp: the cache's clock when the end of the segment became free.
 * @quiet: @range.releases at the last moment when no queued work used free
 * memory of the segment. While the two are equal, that is still so (borrow.c).
 * @noted: @range.releases when the present synchronization of the device began,
 * or QUIET (streams.c).
 * @shared: all streams share the segment (share.c). Constant.
 * @tracks: the segment is shared, and several streams have used it. Changed
 * while the whole cache is locked.
 * @quick: the segment grows, one stream uses it, and all requests of the cache
 * count as large. So the short path of a free (hit.c) serves it.
 * @pending: the free parts that work of streams may still use, by offset.
 * Only fixed segments use @first and @last.
 * @stuck: the provider could not shrink the segment, so the segment is only
 * returned as a whole.
 * @lost: the segment was lost in a reset. It serves no request, and is returned
 * as a whole as soon as possible.
 * @leaving: the segment is lost, or its pool was released.
 * @spare: node in the set of its lane while @is_spare: the segment is fixed and
 * can be returned (spares.c). @place: node among all segments, by address.
 * @previous_grown, @next_grown: the list of all growing segments, the oldest
 * first.
 * @leaving and @address can be read without a lock.
 * @address is the last member, because a spare segment keeps it.
 */
struct fmlib_segment {
	struct fmlib_segment *previous;
	struct fmlib_segment *next;
	struct fmlib_segment *next_growing;
	struct fmlib_segment *next_victim;
	struct fmlib_segment *previous_grown;
	struct fmlib_segment *next_grown;
	struct fmlib_node spare;
	struct fmlib_node place;
	struct fmlib_arena *arena;
	uint64_t serial;
	uint64_t handle;
	void *pointer;
	uint32_t region;
	bool growing;
	bool shared;
	bool tracks;
	bool quick;
	bool stuck;
	bool lost;
	bool is_spare;
	atomic_bool leaving;
	uint64_t size;
	struct fmlib_piece *first;
	struct fmlib_piece *last;
	struct fmlib_range range;
	struct fmlib_pending *pending;
	uint64_t stamp;
	uint64_t quiet;
	uint64_t noted;
	struct flexmem_virtual_address address;
};

/*
 * share.c: an event on a stream. It ends the epochs of the stream up to
 * @number.
 */
struct fmlib_epoch {
	struct fmlib_epoch *next;
	uint64_t event;
	uint64_t number;
	bool complained;
};

/*
 * share.c: a stream that uses the shared segments.
 * @blocks: number of its blocks in tracking segments, plus its requests under
 * way. @first_part, @last_part: its pending parts, by epoch. The owner exists
 * while it has blocks or parts.
 * @frees: number of frees since the last event was recorded.
 * @waited: the request with the number @request waits for all epochs up to this
 * one.
 * @first, @last: the events that have not happened yet, the oldest first.
 * @next: next owner in the hash chain. @previous_pending, @next_pending: the
 * list of owners with pending parts.
 */
struct fmlib_owner {
	struct fmlib_owner *next;
	struct fmlib_owner *previous_pending;
	struct fmlib_owner *next_pending;
	struct fmlib_lane *lane;
	uint64_t stream;
	size_t blocks;
	struct fmlib_pending *first_part;
	struct fmlib_pending *last_part;
	unsigned int frees;
	uint64_t waited;
	uint64_t request;
	struct fmlib_epoch *first;
	struct fmlib_epoch *last;
};

/*
 * share.c: a free part of a shared segment that work of @owner may still use,
 * until @epoch is done. @left and @right: the tree of the segment. @previous and
 * @next: the list of the owner. @left of a spare part points at the next spare part.
 */
struct fmlib_pending {
	struct fmlib_pending *left;
	struct fmlib_pending *right;
	struct fmlib_pending *previous;
	struct fmlib_pending *next;
	struct fmlib_segment *segment;
	struct fmlib_owner *owner;
	uint64_t offset;
	uint64_t size;
	uint64_t epoch;
	uint32_t priority;
};

#define FMLIB_OWNER_CHAINS 256

/*
 * share.c: the growing segments of the common pool, which all streams share.
 * @arena: has these segments; NULL if there are none. @sole: the only stream
 * that has used the segments so far. While there is one, its lane's lock
 * protects the segments, and no part is pending. Both change while the whole
 * cache is locked.
 * @lock protects everything else, and the segments if @sole is NULL. A thread
 * takes it last.
 * @live: number of blocks in tracking segments. There are as many spare parts.
 * @peak: the most bytes so far in blocks, also in those that streams keep.
 * @epoch: the present epoch.
 * @request: number of requests whose streams were to wait.
 * @is_done: blocks are being freed whose streams have done their work. Changed
 * while the whole cache is locked.
 */
struct fmlib_share {
	struct fmlib_arena *arena;
	struct fmlib_owner *sole;
	bool is_done;
	struct fmlib_lock lock;
	struct fmlib_owner *owners[FMLIB_OWNER_CHAINS];
	struct fmlib_owner *pending;
	struct fmlib_pending *spare;
	size_t spare_count;
	size_t live;
	uint64_t peak;
	uint64_t epoch;
	uint64_t request;
	uint32_t random;
};

/*
 * @pins: number of segments of the arena, plus allocations under way. The arena
 * is freed when @pins becomes 0.
 * @next: next arena in the hash chain.
 */
struct fmlib_arena {
	struct fmlib_arena *next;
	struct fmlib_pool *pool;
	struct fmlib_lane *lane;
	enum flexmem_cache_pool_kind kind;
	uint64_t stream;
	size_t pins;
	struct fmlib_fit free;
	struct fmlib_segment *growing;
};

#define FMLIB_LANES 16

/* How many freed blocks a stream keeps at most, and how many go then. */
#define FMLIB_KEPT 24
#define FMLIB_KEPT_GO 8

/* After this many frees of a stream an event is recorded on it (share.c). */
#define FMLIB_FREES 24

/*
 * kept.c: blocks that the stream of a lane has freed and keeps for itself, the
 * oldest first. @owner has all of them. @count is read without a lock, too.
 * @hits: the number of requests served that the owner's @frees do not count yet.
 */
struct fmlib_kept {
	_Atomic uint32_t count;
	uint32_t hits;
	struct fmlib_owner *owner;
	uint32_t sizes[FMLIB_KEPT];
	struct {
		struct fmlib_segment *segment;
		uint64_t offset;
	} places[FMLIB_KEPT];
};

/*
 * @pins: number of arenas, selections, and calls under way.
 * @uses: number of holds by callers; 0 for the common pool.
 * @askers: number of calls that are making a segment for it.
 * @stays: a graph or a checkpoint may use its memory, so its segments stay.
 * @kept: its free bytes, for fmlib_pools_keeper().
 * @provider: the provider of the cache, or @own; constant.
 * @next: next pool in the hash chain.
 */
struct fmlib_pool {
	struct fmlib_pool *next;
	uint64_t id;
	bool released;
	bool stays;
	uint32_t flags;
	uint32_t askers;
	size_t pins;
	uint64_t uses;
	uint64_t kept;
	const struct flexmem_cache_provider *provider;
	struct flexmem_cache_provider own;
};

/*
 * @pool serves the requests of streams that @filter accepts. The list has the
 * pool first that began last.
 * @captures: work is captured until the selection ends.
 */
struct fmlib_selection {
	struct fmlib_selection *next;
	struct fmlib_pool *pool;
	flexmem_cache_filter_fn filter;
	void *user;
	bool captures;
};

/* Number of hash chains for pools, for arenas, and for queues. */
#define FMLIB_CHAINS 4096

/*
 * streams.c: a use of a block on another stream.
 * @pins: number of threads that wait for the event without the lock.
 * @block becomes NULL when the block does not wait any more.
 * @owns: the block was allocated for the stream of the use, in a segment of
 * another stream.
 * @next_deferred: next in the list of deferred uses, which has the first use of
 * each block freed during a capture.
 */
struct fmlib_use {
	struct fmlib_use *next;
	struct fmlib_use *next_deferred;
	struct fmlib_block *block;
	struct fmlib_queue *queue;
	uint64_t event;
	uint64_t serial;
	unsigned int pins;
	bool complained;
	bool owns;
};

/*
 * Events of one stream, in the order in which they happen.
 * @uses: number of uses that refer to the queue, including uses of live blocks.
 * The queue exists while it has such uses, or is @busy.
 * @next: next queue in the hash chain.
 * @next_busy: next in the list of queues with events.
 */
struct fmlib_queue {
	struct fmlib_queue *next;
	struct fmlib_queue *next_busy;
	bool busy;
	size_t uses;
	uint64_t stream;
	struct fmlib_use *first;
	struct fmlib_use *last;
};

/* @origin: origin of requests with this tag and without a context. */
struct fmlib_tag {
	struct fmlib_tag *next;
	struct fmlib_tag *chain;
	struct flexmem_cache_tag sums;
	struct fmlib_origin origin;
};

#define FMLIB_TAG_CHAINS 64

enum fmlib_action {
	FMLIB_ALLOC,
	FMLIB_FREE_REQUESTED,
	FMLIB_FREE_COMPLETED,
	FMLIB_SEGMENT_ALLOC,
	FMLIB_SEGMENT_FREE,
	FMLIB_SEGMENT_MAP,
	FMLIB_SEGMENT_UNMAP,
	FMLIB_OOM,
};

/*
 * An event of the history. @address: the address as in snapshots; for FMLIB_OOM
 * the free bytes of the device. @requested: the bytes that the caller asked for;
 * for a segment its size. @number: counts the events of the history from 1 on,
 * also those that the ring has lost.
 */
struct fmlib_event {
	enum fmlib_action action;
	uint64_t address;
	uint64_t size;
	uint64_t requested;
	uint64_t region_id;
	uint64_t stream;
	uint64_t pool;
	uint64_t time_us;
	uint64_t number;
	struct fmlib_origin *origin;
};

/*
 * figures.c counts allocations, blocks that wait for events, and free blocks
 * that share a segment with other blocks.
 */
enum fmlib_amount {
	FMLIB_COUNT,
	FMLIB_BYTES,
	FMLIB_REQUESTED,
	FMLIB_SPLIT,
	FMLIB_SPLIT_BYTES,
	FMLIB_AMOUNTS,
};

/*
 * The first amounts, those before FMLIB_SPLIT, count allocations. This is how
 * many there are.
 */
#define FMLIB_ACTIVE_AMOUNTS FMLIB_SPLIT

/*
 * Amounts that were added and subtracted, in one pool or in all. A lane may
 * have subtracted more than it has added. A block that waits for events counts
 * as active, but no longer as an allocation. @active_peak is up to date only
 * while a block waits for events.
 */
struct fmlib_flow {
	uint64_t in[FMLIB_AMOUNTS];
	uint64_t out[FMLIB_AMOUNTS];
	int64_t peak[FMLIB_AMOUNTS];
	uint64_t waiting[FMLIB_ACTIVE_AMOUNTS];
	int64_t active_peak[FMLIB_ACTIVE_AMOUNTS];
};

/*
 * Index of the flow of requests without a tag, which is kept only if the cache
 * has tags. The flows before this index are those of the kinds of pools.
 */
#define FMLIB_UNTAGGED FLEXMEM_CACHE_POOL_KINDS
#define FMLIB_FLOWS (FLEXMEM_CACHE_POOL_KINDS + 1)

/*
 * The figures that every allocation and free changes. The cache has one
 * account. Each lane has an account for its latest @operations, which are not
 * added to the cache's account yet. @clock counts allocations. @began: @clock
 * after the last addition to the cache's account. A lane's @clock does not
 * count what other lanes have allocated since then. @split_count and
 * @split_bytes: changes of free memory by the call under way.
 */
struct fmlib_account {
	uint64_t clock;
	uint64_t began;
	unsigned int operations;
	struct fmlib_flow flows[FMLIB_FLOWS];
	int64_t split_count[FLEXMEM_CACHE_POOL_KINDS];
	int64_t split_bytes[FLEXMEM_CACHE_POOL_KINDS];
};

/*
 * An interval of a segment that serves a request. @piece: the piece that has
 * the interval, if the segment is fixed. @owner: the stream that has it, if the
 * segment is shared.
 */
struct fmlib_found {
	struct fmlib_segment *segment;
	uint64_t offset;
	uint64_t size;
	struct fmlib_piece *piece;
	struct fmlib_owner *owner;
};

/*
 * lanes.c: see cache.h.
 * @stream: the stream for which the lane was made. If there are many streams,
 * other streams use the lane too. A lane lives as long as the cache.
 * @current: the growing segment of the common pool in which @stream first tries
 * to allocate; or NULL. Only without it hit.c tries what @stream keeps.
 * @spares: its fixed segments that can be returned.
 */
struct fmlib_lane {
	_Alignas(FMLIB_LINE) struct fmlib_lock lock;
	uint64_t stream;
	struct fmlib_segment *current;
	struct fmlib_idle blocks;
	struct fmlib_piece *spare;
	size_t spare_count;
	struct fmlib_node *spares;
	struct fmlib_kept kept;
	uint32_t random;
	struct fmlib_account account;
};

#define FMLIB_OPERATIONS_APART 64
#define FMLIB_NOBODY UINT64_MAX

/*
 * A ring of events. @room: how many it may have. @size: how many @events has
 * memory for; it grows as the ring fills. @added: how many there were so far.
 */
struct fmlib_history {
	struct fmlib_event *events;
	size_t room;
	size_t size;
	size_t count;
	size_t next;
	uint64_t added;
};

struct fmlib_callback {
	struct fmlib_callback *next;
	flexmem_cache_oom_fn call;
	void *user;
	unsigned int running;
	bool removed;
};

/*
 * helper.c: the helper thread. @lock protects all members but @ended. The
 * helper sets @ended when it ends; then the thread must still be joined.
 * @wake: a pipe that makes the helper end; @pipe: the file of both ends. Both
 * are constant while the helper runs.
 */
struct fmlib_helper {
	pthread_mutex_t lock;
	bool runs;
	atomic_bool ended;
	pthread_t thread;
	int wake[2];
	struct stat pipe;
};

/* How many bytes another process lacks, and until when that counts. */
struct fmlib_wish {
	uint64_t bytes;
	uint64_t until;
};

/*
 * What other processes lack (wanted.c). Times are in milliseconds.
 * @wish: what is left of the wish that the cache fulfils
 * @next: a wish that came during the pause, or that is smaller than @wish
 * @looked_at: @account.clock at the last look
 * @gave_at: when the cache gave something last
 * @given: what it has given since others had @others
 * @due: what others had asked for of that
 */
struct fmlib_wanted {
	struct fmlib_wish wish;
	struct fmlib_wish next;
	uint64_t looked_at;
	uint64_t gave_at;
	uint64_t given;
	uint64_t others;
	uint64_t due;
};

/*
 * The members are grouped by the lock that protects them. cache.h describes the
 * locks.
 */
struct flexmem_cache {
	/*
	 * Constant after creation, except the members of @config that struct
	 * fmlib_config lists.
	 * @one_kind: the cache was made with growing segments, so all requests
	 * count as large.
	 * @pointers has its own lock, or is NULL if segments are not mapped.
	 * @problem: buffer for the reason of a failed creation; or NULL.
	 * @take_back: fmlib_take_back_all(). lanes.c calls it by this pointer,
	 * because all files that it needs call lanes.c.
	 */
	struct flexmem_cache_provider provider;
	struct flexmem_cache_events events;
	struct flexmem_cache_contexts contexts;
	struct flexmem_cache_profile profile;
	struct fmlib_config config;
	bool has_events;
	bool one_kind;
	uint32_t device_index;
	uint32_t flags;
	unsigned long generation;
	struct fmlib_pointers *pointers;
	uint32_t log_level;
	flexmem_log_fn log;
	void *log_user;
	char *problem;
	size_t problem_length;
	void (*take_back)(struct flexmem_cache *cache);

	/* Protected by the lock of the registry (fork.c). */
	struct flexmem_cache *previous_cache;
	struct flexmem_cache *next_cache;

	struct fmlib_helper helper;

	/*
	 * Read under any lock of the cache, and changed while the whole cache
	 * is locked.
	 * @served: the thread whose simple allocations and frees lock only a
	 * lane; 0: any thread; FMLIB_NOBODY: none.
	 * @apart: lanes count in accounts of their own.
	 * @sole: the only thread that has allocated or freed so far, or
	 * FMLIB_NOBODY.
	 * @shared: several threads have allocated or freed.
	 * @lanes: see lanes.c.
	 * @captures: number of @selections that capture work.
	 * @waiting: number of blocks that wait for events.
	 * @expandable: new segments grow.
	 * @simple_limit: a smaller block has a narrow token (tokens.c), and is
	 * below @config.max_split.
	 * @hit_limit: a request up to this size is below @simple_limit after
	 * rounding.
	 */
	uint64_t served;
	bool expandable;
	uint64_t simple_limit;
	uint64_t hit_limit;
	bool apart;
	bool tagged;
	bool shared;
	uint64_t sole;
	_Atomic(struct fmlib_lane *) lanes[FMLIB_LANES];
	struct fmlib_pool common;
	struct fmlib_share share;
	struct fmlib_selection *selections;
	size_t captures;
	size_t waiting;

	/*
	 * Protected by @account_lock while @apart is set. Otherwise only one
	 * thread uses @account. While all locks are held, @account includes the
	 * figures of all lanes.
	 */
	pthread_mutex_t account_lock;
	struct fmlib_account account;

	/*
	 * Protected by @lock, whether lanes are locked or not.
	 * @alone: the locked lane, if not all are locked.
	 * @cancel_state: the cancel state that the thread with the lock
	 * restores.
	 */
	pthread_mutex_t lock;
	struct fmlib_lane *alone;
	int cancel_state;
	/*
	 * @places: all segments, by address (places.c).
	 * @spare_segment: unused structs for segments, linked by @next.
	 * @asking: bytes of segments that threads are making, whether they hold
	 * the lock or not.
	 * @returned: bytes that were returned to the provider so far.
	 * @elsewhere: bytes of segments of other providers than @provider.
	 */
	struct fmlib_segment *first_segment;
	struct fmlib_segment *last_segment;
	struct fmlib_segment *first_growing;
	struct fmlib_segment *last_growing;
	struct fmlib_node *places;
	struct fmlib_segment *spare_segment;
	uint64_t segment_serial;
	uint64_t asking;
	uint64_t returned;
	uint64_t elsewhere;
	/*
	 * @askers: number of calls that may need one more entry of @regions.
	 * @regions has room for these entries.
	 */
	uint64_t *regions;
	uint32_t region_count;
	uint32_t region_room;
	uint32_t askers;
	struct fmlib_tokens narrow;
	/*
	 * @figures has the counters that @account lacks.
	 * @by_ladder: number of allocations that found no free block before
	 * fmlib_ladder().
	 */
	struct flexmem_cache_statistics figures;
	uint64_t by_ladder;
	struct fmlib_callback *callbacks;
	pthread_cond_t callback_done;
	bool warned_of_memory_info;

	/*
	 * Changed while the whole cache is locked, and read under @lock.
	 * @walks: number of threads that walk through the @busy queues, whether
	 * they hold locks or not.
	 * @lost: uses without an event, because the recording failed.
	 * @deferred: uses that get their event after the capture.
	 * @synchronizing: number of threads that wait for the device.
	 */
	struct fmlib_queue *busy;
	size_t walks;
	struct fmlib_queue lost;
	struct fmlib_use *deferred;
	uint64_t use_serial;
	size_t synchronizing;

	uint64_t last_pool;
	struct fmlib_tokens wide;
	struct fmlib_idle wide_idle;
	struct fmlib_tag *tag_chains[FMLIB_TAG_CHAINS];
	struct fmlib_tag untagged;
	struct fmlib_tag *last_tag;
	/*
	 * @flows_before: the flows when the sums were last reset. Reports
	 * subtract them.
	 * @gone_origins: origins without references. fmlib_unlock() releases
	 * them.
	 */
	struct fmlib_flow flows_before[FLEXMEM_CACHE_POOL_KINDS];
	struct fmlib_history history;
	struct fmlib_origin *gone_origins;
	/*
	 * @level and @answered: level and number of the last pressure event
	 * that the helper served.
	 * @looked_at: @account.clock at the last fmlib_pressure_look().
	 */
	uint32_t level;
	uint64_t answered;
	uint64_t looked_at;
	struct fmlib_wanted wanted;
	struct fmlib_pool *pools[FMLIB_CHAINS];
	struct fmlib_arena *arenas[FMLIB_CHAINS];
	struct fmlib_queue *queues[FMLIB_CHAINS];
};

/*
 * A request under way.
 * @lane: lane of the stream.
 * @no_host_memory: -ENOMEM is for lack of host memory, so device memory would
 * not help.
 * @mask: the alignment less 1; 0: each place is aligned.
 * @exact: a new segment is a fixed one of just the size of the request.
 * @found: the memory that becomes the block.
 * @owner: the stream of the request, if the request may get shared memory. The
 * request counts in its @blocks.
 * @loan: if the block will be in another stream's segment, its first use, on
 * the stream of the request.
 * @failure: receives the reason of a failure.
 */
struct fmlib_want {
	uint64_t bytes;
	uint64_t size;
	uint64_t stream;
	uint64_t mask;
	enum flexmem_cache_pool_kind kind;
	struct fmlib_lane *lane;
	struct fmlib_pool *pool;
	struct fmlib_origin *origin;
	bool no_host_memory;
	bool exact;
	struct fmlib_found found;
	struct fmlib_owner *owner;
	struct fmlib_use *loan;
	struct flexmem_cache_failure *failure;
};

#endif /* FMLIB_STRUCTS_H */
