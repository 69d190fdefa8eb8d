// SPDX-License-Identifier: GPL-2.0
/*
 * What finds segments and holes without a walk over all of them: the sorted set,
 * the flat provider, and the segments that a cache returns.
 */
#include "cache_mock.h"
#include "cache/tree.h"

#include <stdlib.h>

static uint64_t state = 1;

static uint64_t below(uint64_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % bound;
}

/* ---- the sorted set ---- */

#define NUMBERS 200

struct number {
	struct fmlib_node node;
	unsigned int value;
};

static struct number *number_of(struct fmlib_node *node)
{
	return node ? FMLIB_OF_NODE(node, struct number, node) : NULL;
}

static bool is_less(const struct fmlib_node *a, const struct fmlib_node *b)
{
	return FMLIB_OF_NODE(a, const struct number, node)->value <
	       FMLIB_OF_NODE(b, const struct number, node)->value;
}

static bool is_at_least(const struct fmlib_node *node, const void *value)
{
	return FMLIB_OF_NODE(node, const struct number, node)->value >=
	       *(const unsigned int *)value;
}

/* The highest priority is at the top, so the tree is not deep. */
static size_t check_priorities(const struct fmlib_node *node, uint32_t above)
{
	if (!node)
		return 0;
	assert_true(node->priority <= above);
	return 1 + check_priorities(node->left, node->priority) +
	       check_priorities(node->right, node->priority);
}

static void a_sorted_set(void **unused)
{
	struct number numbers[NUMBERS];
	bool there[NUMBERS] = { false };
	struct fmlib_node *root = NULL;
	const struct number *found;
	unsigned int i, j, k;
	size_t count = 0;

	(void)unused;
	for (i = 0; i < 20000; i++) {
		j = (unsigned int)below(NUMBERS);
		numbers[j].value = j;
		if (there[j])
			fmlib_tree_remove(&root, &numbers[j].node, is_less);
		else
			fmlib_tree_insert(&root, &numbers[j].node, is_less,
					  (uint32_t)below(4));
		there[j] = !there[j];
		count += there[j] ? 1 : (size_t)-1;
		j = (unsigned int)below(NUMBERS + 1);
		for (k = j; k < NUMBERS && !there[k]; k++)
			;
		found = number_of(fmlib_tree_from(root, is_at_least, &j));
		assert_ptr_equal(found, k < NUMBERS ? &numbers[k] : NULL);
		for (k = j; k && !there[k - 1]; k--)
			;
		found = number_of(fmlib_tree_below(root, is_at_least, &j));
		assert_ptr_equal(found, k ? &numbers[k - 1] : NULL);
		if (!(i % 100))
			assert_int_equal(check_priorities(root, UINT32_MAX),
					 count);
	}
}

/* ---- the flat provider ---- */

#define SPACE (64 * MIB)
#define PIECES 64

struct segment {
	uint64_t start;
	uint64_t size;
};

struct space {
	struct flexmem_cache_provider provider;
	struct segment segments[PIECES];
	size_t count;
};

static int compare(const void *a, const void *b)
{
	const struct segment *one = a;
	const struct segment *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

/* Where a segment has to begin; SPACE: nowhere. */
static uint64_t expected_start(struct space *space, uint64_t size, bool grows)
{
	uint64_t best = 0;
	uint64_t start = SPACE;
	uint64_t end = 0;
	uint64_t hole;
	uint64_t room;
	size_t i;

	qsort(space->segments, space->count, sizeof(space->segments[0]),
	      compare);
	for (i = 0; i <= space->count; i++) {
		hole = (i < space->count ? space->segments[i].start : SPACE) -
		       end;
		if (hole >= size &&
		    (start == SPACE || (grows ? hole > best : hole < best))) {
			best = hole;
			room = grows && end ? (hole - size) / 2 : 0;
			start = end + (room + 127) / 128 * 128;
			/* The first half is rounded down. */
			if (room % 128)
				start -= 128;
		}
		if (i < space->count)
			end = space->segments[i].start +
			      space->segments[i].size;
	}
	return start;
}

static void make_one(struct space *space)
{
	struct flexmem_failure failure = { 0 };
	struct flexmem_cache_memory memory;
	bool grows = below(2);
	uint64_t size = (1 + below(below(8) ? 4096 : 65536)) * 128;
	uint64_t start = expected_start(space, size, grows);
	int err = space->provider.alloc(space->provider.user, size, 128,
					grows ? FLEXMEM_CACHE_GROWABLE : 0,
					&memory, &failure);

	assert_int_equal(err, start == SPACE ? -ENOMEM : 0);
	if (err)
		return;
	assert_int_equal(memory.address.offset, start);
	assert_int_equal(memory.handle, start);
	space->segments[space->count++] = (struct segment){
		.start = start,
		.size = size,
	};
}

static void resize_one(struct space *space, struct segment *segment)
{
	uint64_t size = (1 + below(8192)) * 128;
	struct flexmem_failure failure = { 0 };
	uint64_t limit = SPACE;
	size_t i;
	int err;

	for (i = 0; i < space->count; i++) {
		if (space->segments[i].start > segment->start &&
		    space->segments[i].start < limit)
			limit = space->segments[i].start;
	}
	err = space->provider.grow(space->provider.user, segment->start,
				   segment->size, size, &failure);
	assert_int_equal(err, size <= limit - segment->start ? 0 : -EAGAIN);
	if (!err)
		segment->size = size;
}

static void a_flat_space(void **unused)
{
	struct space space = { .count = 0 };
	struct flexmem_cache_flat *flat;
	struct segment *segment;
	uint64_t free_bytes;
	uint64_t total;
	uint64_t used;
	size_t i, j;

	(void)unused;
	assert_int_equal(flexmem_cache_flat_create(&flat, SPACE,
						   &space.provider,
						   sizeof(space.provider)), 0);
	for (i = 0; i < 5000; i++) {
		segment = &space.segments[below(space.count + 1)];
		if (space.count < PIECES && below(2)) {
			make_one(&space);
		} else if (segment < &space.segments[space.count]) {
			if (below(3)) {
				resize_one(&space, segment);
				continue;
			}
			assert_int_equal(space.provider.free(
						space.provider.user,
						segment->start), 0);
			*segment = space.segments[--space.count];
		}
		for (j = 0, used = 0; j < space.count; j++)
			used += space.segments[j].size;
		assert_int_equal(space.provider.memory_info(
					space.provider.user, &free_bytes,
					&total), 0);
		assert_int_equal(total - free_bytes, used);
	}
	assert_int_equal(space.provider.free(space.provider.user, 1), -ENOENT);
	flexmem_cache_flat_destroy(flat);
}

/* A hole that begins at no multiple of the alignment is passed over. */
static void holes_are_aligned(void **unused)
{
	struct flexmem_cache_provider p;
	struct flexmem_failure failure = { 0 };
	struct flexmem_cache_memory memory;
	struct flexmem_cache_flat *flat;

	(void)unused;
	assert_int_equal(flexmem_cache_flat_create(&flat, MIB, &p, sizeof(p)),
			 0);
	/* Holes of 4,096 bytes from 128 on, and from 8,192 on. */
	assert_int_equal(p.alloc(p.user, 128, 128, 0, &memory, &failure), 0);
	assert_int_equal(p.alloc(p.user, 4096, 128, 0, &memory, &failure), 0);
	assert_int_equal(p.alloc(p.user, 8192 - 4224, 128, 0, &memory,
				 &failure), 0);
	assert_int_equal(p.alloc(p.user, 4096, 4096, 0, &memory, &failure), 0);
	assert_int_equal(memory.handle, 8192);
	assert_int_equal(p.alloc(p.user, 4096, 4096, 0, &memory, &failure), 0);
	assert_int_equal(p.free(p.user, 128), 0);
	assert_int_equal(p.free(p.user, 8192), 0);
	assert_int_equal(p.alloc(p.user, 4096, 4096, 0, &memory, &failure), 0);
	assert_int_equal(memory.handle, 8192);
	assert_int_equal(p.alloc(p.user, 4096, 128, 0, &memory, &failure), 0);
	assert_int_equal(memory.handle, 128);
	flexmem_cache_flat_destroy(flat);
}

/* ---- segments that a cache returns ---- */

#define FULL 500

/*
 * JuliaGPU/CUDA.jl#1540: a full device of small segments that are free, and
 * requests that each need several of them.
 */
static void a_full_device(void **unused)
{
	struct flexmem_cache *cache;
	void *tokens[2 * FULL];
	size_t i;

	(void)unused;
	mock.capacity = FULL * 2 * MIB;
	cache = mock_cache("");
	for (i = 0; i < 2 * FULL; i++)
		tokens[i] = take(cache, MIB, 1);
	for (i = 0; i < 2 * FULL; i++)
		give(cache, tokens[i]);
	for (i = 0; i < FULL / 10; i++) {
		take(cache, 20 * MIB, 1);
		/* Ten small segments went, and no more. */
		assert_int_equal(figures(cache).num_device_free, 10 * (i + 1));
	}
	assert_int_equal(try_alloc(cache, MIB), -ENOMEM);
	flexmem_cache_destroy(cache);
}

/* Each request is on a stream of its own. */
static void streams_of_a_full_device(void **unused)
{
	struct flexmem_cache *cache;
	uint64_t i;

	(void)unused;
	mock.capacity = 100 * MIB;
	cache = mock_cache("");
	for (i = 0; i < 40; i++) {
		give(cache, take(cache, 20 * MIB, i));
		assert_int_equal(figures(cache).num_device_free,
				 i < 5 ? 0 : i - 4);
	}
	flexmem_cache_destroy(cache);
}

/*
 * The smallest segment that is large enough goes, whatever the lane. A used one
 * stays.
 */
static void the_smallest_goes(void **unused)
{
	struct flexmem_cache *cache;
	void *tokens[4];
	uint64_t i;

	(void)unused;
	mock.capacity = 160 * MIB;
	cache = mock_cache("");
	for (i = 0; i < 4; i++)
		tokens[i] = take(cache, (i + 1) * 16 * MIB, i);
	give(cache, tokens[3]);
	give(cache, tokens[2]);
	give(cache, tokens[0]);
	take(cache, 40 * MIB, 9);
	assert_int_equal(figures(cache).num_device_free, 1);
	assert_int_equal(figures(cache).reserved_bytes[0].current,
			 152 * MIB);
	/* It is found no longer, and the one in use never was. */
	take(cache, 60 * MIB, 9);
	assert_int_equal(figures(cache).num_device_free, 2);
	assert_int_equal(try_alloc(cache, 30 * MIB), -ENOMEM);
	give(cache, tokens[1]);
	assert_int_equal(try_alloc(cache, 30 * MIB), 0);
	flexmem_cache_destroy(cache);
}

/* Segments of a pool are found from the moment at which it is released. */
static void a_pool_that_ends(void **unused)
{
	struct flexmem_cache_request request = { .bytes = 30 * MIB };
	struct flexmem_cache_allocation a;
	struct flexmem_cache *cache;

	(void)unused;
	mock.capacity = 60 * MIB;
	cache = mock_cache("");
	assert_int_equal(flexmem_cache_pool_create(cache, &request.pool), 0);
	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &a,
						     sizeof(a)), 0);
	give(cache, a.token);
	assert_int_equal(try_alloc(cache, 40 * MIB), -ENOMEM);
	/* The provider does not take the segment back at first. */
	mock.fail_frees = 1;
	assert_int_equal(flexmem_cache_pool_release(cache, request.pool), 0);
	assert_int_equal(figures(cache).num_device_free, 0);
	assert_int_equal(try_alloc(cache, 40 * MIB), 0);
	assert_int_equal(figures(cache).num_device_free, 1);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sorted_set),
		cmocka_unit_test(a_flat_space),
		cmocka_unit_test(holes_are_aligned),
		CACHE_TEST(a_full_device),
		CACHE_TEST(streams_of_a_full_device),
		CACHE_TEST(the_smallest_goes),
		CACHE_TEST(a_pool_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
