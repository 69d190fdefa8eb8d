/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of the caching allocator: it does what flexmem_cache.h describes,
 * with lists that are searched from end to end. It shares no code with the
 * library.
 */
#ifndef CACHE_MODEL_H
#define CACHE_MODEL_H

#include "cache_world.h"

#define MODEL_TAGS 4
#define MODEL_POOLS 512
/* The most allocations of a checkpoint. */
#define MODEL_ENTRIES 256

/*
 * A rule of rounding: from @from MiB on, sizes are rounded up to one of @steps
 * steps between two powers of two.
 */
struct model_rounding {
	uint64_t from;
	unsigned int steps;
};

/*
 * The settings of a cache, as the model needs them. @max_split and @slack are
 * in MiB. @threshold and @fraction are 0 if not set. @rounding ends with a
 * @steps of 0. @profile: sizes that are not 0 replace the defaults.
 */
/* When a stream uses free memory of others; 0 is the default. */
enum model_reuse {
	MODEL_REUSE_OWN,
	MODEL_REUSE_DONE,
	MODEL_REUSE_WAIT,
};

struct model_setup {
	const char *name;
	const char *configuration;
	bool direct;
	bool growing;
	bool events;
	enum model_reuse reuse;
	double threshold;
	double fraction;
	uint64_t max_split;
	uint64_t slack;
	struct model_rounding rounding[4];
	struct flexmem_cache_profile profile;
};

enum model_state {
	MODEL_FREE,
	MODEL_LIVE,
	MODEL_WAITING,
};

/*
 * @birth: number of an allocation. @id: the caller's number of a live block.
 * @used: bit mask of other streams that use the block. @waits: bit mask of the
 * streams for which a freed block waits. @lost: bit mask of the streams in
 * @waits without an event. @stream: stream of a live block.
 * @deferred: 0, or the number of a free in a capture that has not ended.
 */
struct model_block {
	enum model_state state;
	uint64_t offset;
	uint64_t size;
	uint64_t requested;
	uint64_t birth;
	size_t id;
	size_t tag;
	unsigned int used;
	unsigned int waits;
	unsigned int lost;
	uint64_t stream;
	uint64_t event[WORLD_STREAMS];
	uint64_t deferred;
	uint64_t stamp;
};

/*
 * @stuck: the segment could not be shrunk, and has not grown since. @lost: the
 * segment was found to be lost. @releases: number of frees in the segment.
 * @quiet: value of @releases when all work was last known to be done. If
 * @releases has the same value now, no other stream uses free memory of the
 * segment. @shared: all streams share the segment.
 */
struct model_segment {
	bool stuck;
	bool lost;
	uint64_t handle;
	uint64_t address;
	uint64_t size;
	enum flexmem_cache_pool_kind kind;
	uint64_t stream;
	uint64_t pool;
	bool growing;
	bool shared;
	uint64_t releases;
	uint64_t quiet;
	struct model_block *blocks;
	size_t count;
};

/*
 * A private pool. @own: the pool has a provider of its own. @streams: bit mask
 * of streams whose requests go to the pool. @begun: number of the call of
 * model_pool_begin() that sent them there, or 0. @captures: work is captured
 * until then. @stays: the pool has captured, has served a request during a
 * capture, or has a checkpoint.
 */
struct model_pool {
	bool open;
	bool own;
	uint64_t uses;
	uint32_t flags;
	uint64_t begun;
	bool captures;
	bool stays;
	unsigned int streams;
};

/* Free memory from @from to @to that work of a stream may still use. */
struct model_part {
	struct model_segment *segment;
	uint64_t from;
	uint64_t to;
	uint64_t epoch;
};

/* An event of a stream ends all its epochs up to @epoch. */
struct model_event {
	uint64_t event;
	uint64_t epoch;
};

struct model_stream {
	struct model_part *parts;
	size_t part_count;
	struct model_event *events;
	size_t event_count;
	unsigned int frees;
};

/*
 * The growing segments of the common pool, which all streams share.
 * @tracks: more than one stream has used them. @sole: the first stream.
 * @maker: the stream that they have in snapshots. @is_done: blocks are freed
 * whose work is done.
 */
struct model_share {
	bool tracks;
	bool is_done;
	uint64_t sole;
	uint64_t maker;
	uint64_t epoch;
	uint64_t peak;
	struct model_stream streams[WORLD_STREAMS];
};

/*
 * The state of the model. Segments are sorted by age, oldest first. @births:
 * number of allocations. @begun: number of calls of model_pool_begin() so far.
 * @captures: number of captures that have not ended. @deferred: number of frees
 * in captures.
 */
struct model {
	const struct model_setup *setup;
	struct flexmem_cache_profile profile;
	struct world *world;
	struct model_segment **segments;
	size_t count;
	struct model_pool pools[MODEL_POOLS];
	struct model_share share;
	uint64_t last_pool;
	uint64_t births;
	uint64_t begun;
	size_t captures;
	uint64_t deferred;
	uint64_t clock;
	struct flexmem_cache_statistics figures;
	struct flexmem_cache_tag tags[MODEL_TAGS];
	uint64_t split_count[FLEXMEM_CACHE_POOL_KINDS];
	uint64_t split_bytes[FLEXMEM_CACHE_POOL_KINDS];
	/*
	 * Called before an allocation fails, but not for allocations that
	 * on_oom() itself makes.
	 */
	void (*on_oom)(void *user);
	void *user;
	bool in_callback;
};

/*
 * @simple: the call was flexmem_cache_alloc(). @tag: number of the tag, or 0.
 */
struct model_request {
	uint64_t bytes;
	uint64_t stream;
	uint64_t pool;
	size_t tag;
	bool simple;
};

/* @kind and @pool describe the memory that served the request. */
struct model_result {
	uint64_t pool;
	uint64_t address;
	uint64_t size;
	enum flexmem_cache_pool_kind kind;
	struct flexmem_cache_failure failure;
};

void model_start(struct model *model, const struct model_setup *setup,
		 struct world *world);
void model_end(struct model *model);

/*
 * Each model_ function returns what the function of the cache must return.
 */
int model_alloc(struct model *model, const struct model_request *request,
		size_t id, struct model_result *result);
/*
 * If several free blocks are equally large, the cache may report any of them.
 * The model reports the block in @found if that block is one of them.
 */
void model_explain(const struct model *model,
		   const struct model_request *request,
		   const struct flexmem_cache_failure *found,
		   struct model_result *result);
int model_free(struct model *model, size_t id);
int model_record_stream(struct model *model, size_t id, uint64_t stream);
int model_empty(struct model *model, uint64_t *released);
int model_trim(struct model *model, uint64_t bytes, uint64_t *released);
int model_drop_lost(struct model *model, uint64_t *live);
void model_reset_peaks(struct model *model);
void model_reset_accumulated(struct model *model);

/* cache_model_pools.c: private pools, and checkpoints of them. */
struct model_entry {
	uint64_t handle;
	uint64_t offset;
	uint64_t size;
	uint64_t requested;
	uint64_t birth;
	size_t tag;
	size_t id;
	bool is_live;
};

/* The entries are sorted by segment, and by offset within a segment. */
struct model_checkpoint {
	uint64_t pool;
	size_t count;
	struct model_entry entries[MODEL_ENTRIES];
};

/* Whether the pool exists and takes requests. */
bool model_pool_is_open(const struct model *model, uint64_t pool);
/* The pool that gets the requests of a stream, or 0. */
uint64_t model_selected_pool(const struct model *model, uint64_t stream);
int model_pool_create(struct model *model, bool own, uint64_t *pool);
int model_pool_hold(struct model *model, uint64_t pool);
int model_pool_release(struct model *model, uint64_t pool);
int model_pool_set_flags(struct model *model, uint64_t pool, uint32_t flags);
/* @streams: bit mask of the streams that the filter accepts. */
int model_pool_begin(struct model *model, uint64_t pool, unsigned int streams);
int model_pool_capture(struct model *model, uint64_t pool);
int model_pool_end(struct model *model, uint64_t pool);
int model_pool_empty(struct model *model, uint64_t pool, uint64_t *released);
int model_pool_usage(const struct model *model, uint64_t pool,
		     const uint64_t *stream, struct flexmem_cache_usage *usage);
/* Returns the free memory of a pool to the provider, unless it has to stay. */
uint64_t model_pool_reclaim(struct model *model, uint64_t pool);
int model_pool_checkpoint(struct model *model, uint64_t pool,
			  struct model_checkpoint *checkpoint);
/*
 * @order: the @count live allocations, in the order in which the cache frees.
 * @unused: numbers for the allocations that the restore makes.
 */
int model_pool_restore(struct model *model, struct model_checkpoint *checkpoint,
		       const size_t *order, size_t count, const size_t *unused);
const struct flexmem_cache_provider *
model_provider(const struct model *model, const struct model_segment *segment);

/* cache_model_ladder.c: what the model does if no block serves a request. */
struct model_want {
	uint64_t bytes;
	uint64_t size;
	uint64_t pool;
	enum flexmem_cache_pool_kind kind;
	/* A new segment is a fixed one of just @size bytes. */
	bool exact;
	const struct model_request *request;
	struct flexmem_cache_failure *failure;
};

/*
 * Where a block is; @segment is NULL if there is no block. @at: how many bytes
 * of a free block stay free in front of a request.
 */
struct model_place {
	struct model_segment *segment;
	size_t index;
	uint64_t at;
};

/* Defined in cache_model_share.c. */
bool model_shares(const struct model *model, const struct model_want *want);
void model_share_clear(struct model *model, const struct model_segment *segment,
		       uint64_t from, uint64_t to);
bool model_share_poll(struct model *model);
void model_share_synchronized(struct model *model);
void model_share_freed(struct model *model, struct model_segment *segment,
		       const struct model_block *block);
void model_share_enter(struct model *model, uint64_t stream);
void model_share_begin(struct model *model, struct model_segment *segment,
		       uint64_t stream);
void model_share_taken(struct model *model, const struct model_segment *segment,
		       const struct model_block *block);
struct model_place model_share_find_in(const struct model *model,
				       const struct model_want *want,
				       struct model_segment *segment);
struct model_place model_share_find(const struct model *model,
				    const struct model_want *want);
uint64_t model_share_tail(const struct model *model,
			  const struct model_want *want,
			  const struct model_segment *segment);
bool model_share_wait(struct model *model, const struct model_want *want,
		      bool is_short, struct model_place *place);
void model_share_end(struct model *model);

int model_ladder(struct model *model, struct model_want *want,
		 struct model_place *place);
uint64_t model_reclaim(struct model *model, uint64_t bytes, int *error);
/*
 * model_excess(): the bytes that the segment can return to the provider now.
 * model_spare(): the bytes that the segment could return if its pool did not
 * keep them.
 */
uint64_t model_excess(const struct model *model,
		      const struct model_segment *segment);
/* Finds out whether the segment is lost, as the cache would. */
bool model_is_lost(struct model *model, struct model_segment *segment);
uint64_t model_spare(const struct model *model,
		     const struct model_segment *segment);
/*
 * Returns the spare bytes of a segment to the provider. The result is false if
 * there are no spare bytes, or if the provider refused.
 */
bool model_give_back(struct model *model, struct model_segment *segment);

/* Defined in cache_model_figures.c. */
void model_add_one(struct flexmem_cache_figure *figure, uint64_t count);
void model_subtract_one(struct flexmem_cache_figure *figure, uint64_t count);
void model_add(struct flexmem_cache_figure *figures,
	       enum flexmem_cache_pool_kind kind, uint64_t count);
void model_subtract(struct flexmem_cache_figure *figures,
		    enum flexmem_cache_pool_kind kind, uint64_t count);
/*
 * Ends an operation: recomputes the figure about free blocks that share a
 * segment with other blocks.
 */
void model_commit(struct model *model);
void model_count_alloc(struct model *model, const struct model_segment *segment,
		       const struct model_block *block);
void model_count_free(struct model *model, const struct model_segment *segment,
		      const struct model_block *block);

/* Defined in cache_model.c. */
struct model_place model_find_live(const struct model *model, size_t id);
/* Frees a live block. The caller ends the operation with model_commit(). */
void model_free_at(struct model *model, size_t id);
/* Records the events for a block that was freed. */
void model_record(struct model *model, struct model_block *block);
uint64_t model_returned(const struct model *model);
/* Waits for all events, as flexmem_cache_empty() does. */
int model_wait_for_all(struct model *model);
uint64_t model_round(uint64_t size, uint64_t unit);
struct model_block *model_last(const struct model_segment *segment);
struct model_block *model_insert(struct model_segment *segment, size_t index);
struct model_place model_find(const struct model *model,
			      const struct model_want *want);
void model_poll(struct model *model);
/* All waiting blocks become free, unless the wait for the device fails. */
void model_wait_for_device(struct model *model);

#endif /* CACHE_MODEL_H */
