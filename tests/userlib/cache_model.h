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
struct model_setup {
	const char *name;
	const char *configuration;
	bool direct;
	bool growing;
	bool events;
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
 * @id: the caller's number of a live block. @used: bit mask of other streams
 * that use it. @waits: bit mask of streams for which a freed block waits.
 * @lost: bit mask of the streams in @waits without an event. @stream: stream of
 * a live block.
 */
struct model_block {
	enum model_state state;
	uint64_t offset;
	uint64_t size;
	uint64_t requested;
	size_t id;
	size_t tag;
	unsigned int used;
	unsigned int waits;
	unsigned int lost;
	uint64_t stream;
	uint64_t event[WORLD_STREAMS];
	uint64_t stamp;
};

/*
 * @stuck: the segment could not be shrunk, and has not grown since. @lost: it
 * was found to be lost. @releases: number of frees in it. @quiet: number of
 * these frees after which all work is known to be done; if it equals @releases,
 * no other stream uses free memory of the segment.
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
	uint64_t releases;
	uint64_t quiet;
	struct model_block *blocks;
	size_t count;
};

/* The state of the model. Segments are sorted by age, oldest first. */
struct model {
	const struct model_setup *setup;
	struct flexmem_cache_profile profile;
	struct world *world;
	struct model_segment **segments;
	size_t count;
	bool pool_open[MODEL_POOLS];
	uint64_t last_pool;
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
 * @simple: the call was flexmem_cache_alloc(). @tag: number of its tag, or 0.
 */
struct model_request {
	uint64_t bytes;
	uint64_t stream;
	uint64_t pool;
	size_t tag;
	bool simple;
};

/* @kind: kind of the pool that served the request. */
struct model_result {
	uint64_t address;
	uint64_t size;
	enum flexmem_cache_pool_kind kind;
	struct flexmem_cache_failure failure;
};

void model_start(struct model *model, const struct model_setup *setup,
		 struct world *world);
void model_end(struct model *model);

/*
 * Each function returns what the cache's function of the same name must return.
 */
int model_alloc(struct model *model, const struct model_request *request,
		size_t id, struct model_result *result);
/*
 * If several free blocks are equally large, the cache may report any of them.
 * The model then reports the one in @found, if it is one of them.
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
int model_pool_create(struct model *model, uint64_t *pool);
int model_pool_release(struct model *model, uint64_t pool);
void model_reset_peaks(struct model *model);
void model_reset_accumulated(struct model *model);

/* cache_model_ladder.c: the steps of the model if no block serves a request. */
struct model_want {
	uint64_t bytes;
	uint64_t size;
	enum flexmem_cache_pool_kind kind;
	const struct model_request *request;
	struct flexmem_cache_failure *failure;
};

/* Where a block is; @segment is NULL if there is none. */
struct model_place {
	struct model_segment *segment;
	size_t index;
};

int model_ladder(struct model *model, struct model_want *want,
		 struct model_place *place);
uint64_t model_reclaim(struct model *model, uint64_t bytes, int *error);
/* The bytes that the segment could return now. */
uint64_t model_excess(const struct model *model,
		      const struct model_segment *segment);
/* Finds out whether the segment is lost, as the cache would. */
bool model_is_lost(const struct model *model, struct model_segment *segment);
/* Returns the segment to the provider. False: the provider refused. */
bool model_give_back(struct model *model, struct model_segment *segment);

/* In cache_model_figures.c, for the other two files of the model. */
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

/* In cache_model.c, for cache_model_ladder.c. */
uint64_t model_round(uint64_t size, uint64_t unit);
struct model_block *model_last(const struct model_segment *segment);
struct model_block *model_insert(struct model_segment *segment, size_t index);
struct model_place model_find(const struct model *model,
			      const struct model_want *want);
void model_poll(struct model *model);
/* All waiting blocks become free, unless the wait for the device fails. */
void model_wait_for_device(struct model *model);

#endif /* CACHE_MODEL_H */
