// SPDX-License-Identifier: GPL-2.0
/* Checkpoints of private pools. */
#include "cache_mock.h"

#define BLOCKS 40
/* More than half of the spare pieces that a lane keeps. */
#define MANY 5000

static struct flexmem_cache *cache;
static struct flexmem_cache_checkpoint *checkpoint;
static uint64_t pool;

static struct flexmem_cache_allocation take_tagged(uint64_t bytes,
						   const char *tag)
{
	const struct flexmem_cache_request request = {
		.bytes = bytes, .pool = pool, .tag = tag,
	};
	struct flexmem_cache_allocation made;

	assert_int_equal(flexmem_cache_alloc_request(cache, &request,
						     sizeof(request), &made,
						     sizeof(made)), 0);
	return made;
}

static void *take_in(uint64_t bytes)
{
	return take_tagged(bytes, NULL).token;
}

static void start(const char *configuration)
{
	cache = mock_cache_events(configuration);
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
}

static void note(void)
{
	assert_int_equal(flexmem_cache_pool_checkpoint(cache, pool,
						       &checkpoint), 0);
}

static void restore(void)
{
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint), 0);
}

static void end(void)
{
	flexmem_cache_checkpoint_free(checkpoint);
	flexmem_cache_destroy(cache);
}

static struct flexmem_cache_allocation entry(size_t index)
{
	return lookup(cache, flexmem_cache_checkpoint_token(checkpoint, index));
}

static bool is_live(void *token)
{
	struct flexmem_virtual_address address;

	return !flexmem_cache_address(cache, token, &address);
}

/*
 * A restore keeps the allocations of the checkpoint that are live, frees newer
 * allocations, and makes the freed allocations of the checkpoint again.
 */
static void the_same_again(const char *configuration)
{
	struct flexmem_cache_allocation before[3];
	struct flexmem_cache_statistics was;
	void *later[2];
	void *kept;
	int i;

	start(configuration);
	before[0] = take_tagged(1000, "weights");
	before[1] = take_tagged(3 * MIB, NULL);
	before[2] = take_tagged(5000, NULL);
	kept = before[2].token;
	note();
	was = figures(cache);
	give(cache, before[0].token);
	give(cache, before[1].token);
	later[0] = take_in(2000);
	later[1] = take_in(2 * MIB);
	take(cache, 1000, 0);
	restore();
	assert_false(is_live(later[0]));
	assert_false(is_live(later[1]));
	assert_true(is_live(kept));
	assert_null(flexmem_cache_checkpoint_token(checkpoint, 3));
	for (i = 0; i < 3; i++) {
		struct flexmem_cache_allocation now = entry((size_t)i);
		int j = 0;

		/*
		 * The entries of the checkpoint are in the order of the
		 * segments, so this loop looks for the entry of @now.
		 */
		while (before[j].address.offset != now.address.offset)
			assert_true(++j < 3);
		assert_int_equal(now.size, before[j].size);
		assert_int_equal(now.requested, before[j].requested);
		assert_int_equal(now.pool, pool);
		assert_string_equal(now.tag, before[j].tag);
		if (j == 2)
			assert_ptr_equal(now.token, kept);
		else
			assert_ptr_not_equal(now.token, before[j].token);
	}
	/* The test has made one allocation outside of pools. */
	assert_int_equal(figures(cache).allocation[0].current,
			 was.allocation[0].current + 1);
	assert_int_equal(figures(cache).allocated_bytes[0].current,
			 was.allocated_bytes[0].current + 1024);
	/* Restores again, after all allocations were freed. */
	for (i = 0; i < 3; i++)
		give(cache, entry((size_t)i).token);
	restore();
	for (i = 0; i < 3; i++)
		give(cache, entry((size_t)i).token);
	end();
}

static void allocations_come_back(void **state)
{
	(void)state;
	the_same_again("");
	mock_teardown(state);
	mock_setup(state);
	the_same_again("expandable_segments:True");
}

/*
 * The restore frees an allocation that is newer than the checkpoint, even if
 * its address and size are those of an allocation of the checkpoint.
 */
static void another_in_its_place(void **state)
{
	struct flexmem_cache_allocation before;
	struct flexmem_cache_allocation other;

	(void)state;
	start("");
	before = take_tagged(1000, "weights");
	note();
	give(cache, before.token);
	other = take_tagged(900, "gradients");
	assert_int_equal(other.address.offset, before.address.offset);
	assert_int_equal(other.size, before.size);
	restore();
	assert_false(is_live(other.token));
	assert_int_equal(entry(0).requested, 1000);
	assert_string_equal(entry(0).tag, "weights");
	/* From now on the checkpoint refers to the new allocation. */
	other = entry(0);
	restore();
	assert_ptr_equal(entry(0).token, other.token);
	give(cache, other.token);
	end();
}

/* Restores every second block, into holes of any size. */
static void in_every_hole(const char *configuration)
{
	struct flexmem_cache_allocation before[BLOCKS];
	uint64_t random = 1;
	size_t i;

	start(configuration);
	for (i = 0; i < BLOCKS; i++)
		before[i] = take_tagged((i % 7 + 1) * 1024, NULL);
	for (i = 0; i < BLOCKS; i += 2)
		give(cache, before[i].token);
	note();
	for (i = 1; i < BLOCKS; i += 2) {
		random = random * 6364136223846793005u + 1;
		if (random >> 63)
			give(cache, before[i].token);
	}
	take_in(MIB);
	restore();
	for (i = 0; i < BLOCKS / 2; i++) {
		assert_int_equal(entry(i).address.offset,
				 before[2 * i + 1].address.offset);
		assert_int_equal(entry(i).size, before[2 * i + 1].size);
	}
	assert_null(flexmem_cache_checkpoint_token(checkpoint, i));
	for (i = 0; i < BLOCKS / 2; i++)
		give(cache, entry(i).token);
	end();
}

static void holes_of_any_size(void **state)
{
	(void)state;
	in_every_hole("");
	mock_teardown(state);
	mock_setup(state);
	in_every_hole("expandable_segments:True");
}

/* Each block that is made again needs two pieces. */
static void many_blocks(void **state)
{
	static void *tokens[MANY];
	size_t i;

	(void)state;
	start("");
	for (i = 0; i < MANY; i++)
		tokens[i] = take_in(512);
	note();
	for (i = 0; i < MANY; i++)
		give(cache, tokens[i]);
	restore();
	assert_int_equal(figures(cache).allocation[0].current, MANY);
	for (i = 0; i < MANY; i++)
		give(cache, entry(i).token);
	end();
}

/*
 * Each second block was free at the checkpoint, and all blocks are free at the
 * restore. So each block that is made again leaves a hole behind it.
 */
static void many_gaps(const char *configuration)
{
	static void *tokens[2 * MANY];
	size_t i;

	start(configuration);
	for (i = 0; i < 2 * MANY; i++)
		tokens[i] = take_in(512);
	for (i = 0; i < 2 * MANY; i += 2)
		give(cache, tokens[i]);
	note();
	for (i = 1; i < 2 * MANY; i += 2)
		give(cache, tokens[i]);
	restore();
	assert_int_equal(figures(cache).allocation[0].current, MANY);
	for (i = 0; i < MANY; i++)
		give(cache, entry(i).token);
	end();
}

static void many_blocks_with_gaps(void **state)
{
	(void)state;
	many_gaps("");
	mock_teardown(state);
	mock_setup(state);
	many_gaps("expandable_segments:True");
}

/*
 * If a block of the pool waits for an event, or would have to wait when it is
 * freed, the restore fails and changes nothing.
 */
static void memory_in_use(void **state)
{
	void *before;
	void *after;

	(void)state;
	start("");
	before = take_in(1000);
	note();
	give(cache, before);
	after = take_in(2000);
	assert_int_equal(flexmem_cache_record_stream(cache, after, 1), 0);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint),
			 -EBUSY);
	assert_true(is_live(after));
	give(cache, after);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint),
			 -EBUSY);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	memset(mock.happened, true, sizeof(mock.happened));
	restore();
	assert_int_equal(entry(0).requested, 1000);
	/* A block of another pool may wait for its event. */
	after = take_in(3000);
	assert_int_equal(flexmem_cache_record_stream(cache, after, 1), 0);
	restore();
	assert_false(is_live(after));
	end();
}

/*
 * A block that waits for an event ends where an allocation of the checkpoint
 * begins, or begins where one ends. Neither is in the way.
 */
static void neighbour_in_use(void **state)
{
	uint64_t freed;

	(void)state;
	for (freed = 0; freed < 2; freed++) {
		void *tokens[2];
		void *waiting;

		start("");
		tokens[0] = take_in(512);
		tokens[1] = take_in(512);
		assert_int_equal(place(cache, tokens[1]),
				 place(cache, tokens[0]) + 512);
		give(cache, tokens[freed]);
		note();
		waiting = take_in(512);
		use(cache, waiting, 1);
		give(cache, waiting);
		restore();
		assert_true(is_live(tokens[!freed]));
		end();
		mock_teardown(state);
		mock_setup(state);
	}
}

/* A reset of the device has lost the memory. A live block keeps the segment. */
static void memory_that_was_lost(const char *configuration)
{
	void *freed;
	void *kept;

	start(configuration);
	freed = take_in(1000);
	kept = take_in(1000);
	note();
	give(cache, freed);
	mock_lose();
	assert_int_equal(flexmem_cache_drop_lost(cache, NULL), 0);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint),
			 -ENXIO);
	assert_true(is_live(kept));
	assert_int_equal(figures(cache).allocation[0].current, 1);
	end();
}

static void memory_lost_in_a_reset(void **state)
{
	(void)state;
	memory_that_was_lost("");
	mock_teardown(state);
	mock_setup(state);
	memory_that_was_lost("expandable_segments:True");
}

static void memory_that_is_gone(void **state)
{
	void *token;

	(void)state;
	start("expandable_segments:True");
	token = take_in(1000);
	take_in(6 * MIB);
	note();
	give(cache, flexmem_cache_checkpoint_token(checkpoint, 1));
	/* The segment is shorter than at the checkpoint. */
	assert_int_equal(flexmem_cache_pool_empty(cache, pool, NULL), 0);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint),
			 -ENXIO);
	assert_true(is_live(token));
	/* The segment is freed. */
	give(cache, token);
	assert_int_equal(flexmem_cache_pool_empty(cache, pool, NULL), 0);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint),
			 -ENXIO);
	assert_int_equal(flexmem_cache_pool_release(cache, pool), 0);
	assert_int_equal(flexmem_cache_pool_restore(cache, checkpoint),
			 -ENOENT);
	end();
}

/* A restore changes no other pool. A checkpoint may be empty. */
static void other_pools(void **state)
{
	struct flexmem_cache_checkpoint *none;
	uint64_t first;
	void *token;

	(void)state;
	start("");
	note();
	token = take_in(1000);
	first = pool;
	assert_int_equal(flexmem_cache_pool_create(cache, &pool), 0);
	take_in(1000);
	take(cache, 1000, 0);
	restore();
	assert_false(is_live(token));
	assert_int_equal(figures(cache).allocation[0].current, 2);
	assert_int_equal(flexmem_cache_pool_release(cache, first), 0);
	assert_int_equal(flexmem_cache_pool_checkpoint(cache, first, &none),
			 -ENOENT);
	assert_int_equal(flexmem_cache_pool_checkpoint(cache, 0, &none),
			 -ENOENT);
	assert_int_equal(flexmem_cache_pool_checkpoint(cache, pool, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_cache_pool_restore(cache, NULL), -EINVAL);
	assert_null(flexmem_cache_checkpoint_token(NULL, 0));
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(allocations_come_back),
		CACHE_TEST(another_in_its_place),
		CACHE_TEST(holes_of_any_size),
		CACHE_TEST(many_blocks),
		CACHE_TEST(many_blocks_with_gaps),
		CACHE_TEST(memory_in_use),
		CACHE_TEST(memory_lost_in_a_reset),
		CACHE_TEST(memory_that_is_gone),
		CACHE_TEST(neighbour_in_use),
		CACHE_TEST(other_pools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
