/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Blocks and tokens. tokens.c describes them. */
#ifndef FMLIB_TOKENS_H
#define FMLIB_TOKENS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flexmem_cache;
struct fmlib_lane;
struct fmlib_origin;
struct fmlib_owner;
struct fmlib_piece;
struct fmlib_segment;
struct fmlib_use;

/* The bytes of a processor's cache line. */
#define FMLIB_LINE 64

/*
 * An allocation, in one cache line: its token, and its interval of a segment. A
 * block is live, or freed and waiting for events on other streams, or idle. An
 * idle block has size 0.
 * @word: the token of the first byte, plus FMLIB_LIVE if the block is live.
 * @piece: the piece of the block in a fixed segment.
 * @owner: the stream of the block in a shared segment.
 * @next: the next idle block.
 * @uses: the uses of a live block.
 * @waits: number of events that a freed block waits for.
 */
struct fmlib_block {
	_Alignas(FMLIB_LINE) _Atomic uint64_t word;
	struct fmlib_segment *segment;
	uint64_t offset;
	uint64_t size;
	uint64_t requested;
	struct fmlib_origin *origin;
	union {
		struct fmlib_piece *piece;
		struct fmlib_owner *owner;
		struct fmlib_block *next;
	};
	union {
		struct fmlib_use *uses;
		size_t waits;
	};
};

_Static_assert(sizeof(struct fmlib_block) == FMLIB_LINE ||
	       sizeof(void *) != 8, "a block takes one line");

#define FMLIB_LIVE UINT64_C(1)

/*
 * @lane: lane that has these blocks; NULL for wide tokens, which no lane has.
 *	Constant.
 */
struct fmlib_chunk {
	_Atomic(struct fmlib_block *) blocks;
	struct fmlib_lane *lane;
};

/* All blocks. Protected by the cache's lock. */
struct fmlib_tokens {
	struct fmlib_chunk *chunks;
	uint32_t count;
};

/*
 * At least this many blocks rest before the oldest is reused, so that a freed
 * token stays invalid for a long time.
 */
#define FMLIB_RESTING 1024

/*
 * The idle blocks of a lane.
 * @fresh: the first of @fresh_count blocks that were never used, in the last
 * chunk of the lane.
 * @resting: length of the list from the oldest to the newest.
 */
struct fmlib_idle {
	struct fmlib_block *fresh;
	uint32_t fresh_count;
	uint32_t resting;
	struct fmlib_block *oldest;
	struct fmlib_block *newest;
};

/*
 * Whether there is an idle block that can be used, because it has rested or is
 * fresh.
 */
static inline bool fmlib_block_ready(const struct fmlib_idle *idle)
{
	return idle->resting > FMLIB_RESTING || idle->fresh_count;
}

/* Takes the block that has rested longest. There must be one. */
static inline struct fmlib_block *fmlib_block_oldest(struct fmlib_idle *idle)
{
	struct fmlib_block *block = idle->oldest;

	idle->oldest = block->next;
	idle->resting--;
	return block;
}

/* Takes an idle block. fmlib_block_ready() must be true. */
static inline struct fmlib_block *fmlib_block_pop(struct fmlib_idle *idle)
{
	if (idle->resting > FMLIB_RESTING)
		return fmlib_block_oldest(idle);
	idle->fresh_count--;
	return idle->fresh++;
}

/*
 * Sets the segment, offset and size of a block. flexmem_cache_address() reads
 * them without a lock, and then reads @block->word again. A reader that sees
 * one of the new values also sees that the former token was retired.
 */
static inline void fmlib_block_put(struct fmlib_block *block,
				   struct fmlib_segment *segment,
				   uint64_t offset, uint64_t size)
{
	__atomic_store_n(&block->segment, segment, __ATOMIC_RELEASE);
	__atomic_store_n(&block->offset, offset, __ATOMIC_RELEASE);
	__atomic_store_n(&block->size, size, __ATOMIC_RELEASE);
}

/* Lets an unused block rest before it gets a new token. */
static inline void fmlib_block_rest(struct fmlib_idle *idle,
				    struct fmlib_block *block)
{
	__atomic_store_n(&block->size, 0, __ATOMIC_RELEASE);
	if (idle->resting++)
		idle->newest->next = block;
	else
		idle->oldest = block;
	idle->newest = block;
}

/* Whether all tokens for blocks of @size bytes are in use. */
bool fmlib_tokens_are_used_up(const struct flexmem_cache *cache, uint64_t size);
/*
 * Returns a block, or NULL if there is none. If the lane has an idle block, the
 * lane's lock is enough.
 */
struct fmlib_block *fmlib_block_take(struct flexmem_cache *cache,
				     struct fmlib_lane *lane, uint64_t size);
void fmlib_block_give(struct flexmem_cache *cache, struct fmlib_lane *lane,
		      struct fmlib_block *block);
/* Finds the block of a live token, without a lock. */
struct fmlib_block *fmlib_block_find(const struct flexmem_cache *cache,
				     const void *token, uint64_t *word,
				     uint64_t *offset);

/* From this size on a block has a wide token. */
#define FMLIB_NARROW (UINT64_C(1) << FMLIB_NARROW_SHIFT)

/* tokens.c describes the fields of a token. */
#define FMLIB_NARROW_SHIFT 32
#define FMLIB_NARROW_BITS 22
#define FMLIB_CHUNK_BITS 10
#define FMLIB_CHUNK (UINT32_C(1) << FMLIB_CHUNK_BITS)
#define FMLIB_GENERATION_SHIFT 54
#define FMLIB_GENERATION_MASK UINT64_C(0xff)
#define FMLIB_WIDE (UINT64_C(1) << 62)

/*
 * The chunk of a narrow token. @blocks of the chunk is NULL if there are none.
 */
static inline const struct fmlib_chunk *
fmlib_token_place(const struct fmlib_tokens *narrow, const void *token)
{
	uint64_t index = (uintptr_t)token >> FMLIB_NARROW_SHIFT &
			 ((UINT32_C(1) << FMLIB_NARROW_BITS) - 1);

	return &narrow->chunks[index >> FMLIB_CHUNK_BITS];
}

/*
 * Returns the chunk with the block of a narrow token, live or not. Returns NULL
 * if there is no such block. Needs no lock.
 */
static inline const struct fmlib_chunk *
fmlib_token_chunk(const struct fmlib_tokens *narrow, const void *token)
{
	const struct fmlib_chunk *chunk = fmlib_token_place(narrow, token);

	if ((uintptr_t)token & FMLIB_WIDE ||
	    !atomic_load_explicit(&chunk->blocks, memory_order_acquire))
		return NULL;
	return chunk;
}

/*
 * Returns the block at the index in the token. The block may have another token
 * now.
 */
static inline struct fmlib_block *fmlib_block_in(struct fmlib_block *blocks,
						 const void *token)
{
	return &blocks[(uintptr_t)token >> FMLIB_NARROW_SHIFT &
		       (FMLIB_CHUNK - 1)];
}

/*
 * Returns the block of a token if the token is live and names the first byte;
 * otherwise NULL.
 */
static inline struct fmlib_block *
fmlib_token_first(const struct fmlib_chunk *chunk, const void *token)
{
	struct fmlib_block *block =
		fmlib_block_in(atomic_load_explicit(&chunk->blocks,
						    memory_order_relaxed),
			       token);

	return atomic_load_explicit(&block->word, memory_order_acquire) ==
	       (uintptr_t)token + FMLIB_LIVE ? block : NULL;
}

static inline uint64_t fmlib_block_word(const struct fmlib_block *block)
{
	return atomic_load_explicit(&block->word, memory_order_relaxed);
}

static inline bool fmlib_block_is_live(const struct fmlib_block *block)
{
	return fmlib_block_word(block) & FMLIB_LIVE;
}

static inline void *fmlib_block_token(const struct fmlib_block *block)
{
	return (void *)(uintptr_t)(fmlib_block_word(block) & ~FMLIB_LIVE);
}

/* Makes the block live. Returns its token. */
static inline void *fmlib_block_begin(struct fmlib_block *block)
{
	uint64_t word = fmlib_block_word(block);

	atomic_store_explicit(&block->word, word + FMLIB_LIVE,
			      memory_order_release);
	return (void *)(uintptr_t)word;
}

/* Advances the generation of a live block, which makes its token invalid. */
static inline void fmlib_block_retire(struct fmlib_block *block, uint64_t word)
{
	const uint64_t mask = FMLIB_GENERATION_MASK << FMLIB_GENERATION_SHIFT;

	/* The generation skips 0. */
	if ((word & mask) == mask)
		word &= ~mask;
	word += (UINT64_C(1) << FMLIB_GENERATION_SHIFT) - FMLIB_LIVE;
	atomic_store_explicit(&block->word, word, memory_order_release);
}

/*
 * For iterating over all blocks: their number, and the i-th block, or NULL if
 * it is idle.
 */
uint32_t fmlib_blocks_count(const struct flexmem_cache *cache);
struct fmlib_block *fmlib_block_at(const struct flexmem_cache *cache,
				   uint32_t i);
int fmlib_tokens_start(struct fmlib_tokens *tokens, bool wide);
void fmlib_tokens_free(struct fmlib_tokens *tokens);

#endif /* FMLIB_TOKENS_H */
