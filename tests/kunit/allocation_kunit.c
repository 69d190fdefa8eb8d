// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations of several chunks, made by calls of the core. Each chunk may lie
 * in any region, so one region may hold several chunks.
 */

#include <linux/sizes.h>

#include "checks.h"
#include "owners.h"
#include "parts/resize.h"

/* Returns a prepared allocation, which look-ups do not find yet. */
static struct flexmem_allocation *try_chunks(struct kunit *test,
					     struct flexmem_client *client,
					     u64 size, u64 alignment,
					     unsigned int chunks)
{
	struct ctx *ctx = test->priv;

	ctx->request = (struct flexmem_request) {
		.size = size,
		.alignment = alignment,
		.flags = alignment == PAGE_SIZE ? FLEXMEM_ALLOC_MAPPABLE : 0,
		.domains = client->table->default_domains,
		.first = client->table->default_domains,
		.chunks = chunks,
	};
	return flexmem_client_prepare(client, &ctx->request);
}

static struct flexmem_allocation *alloc_chunks(struct kunit *test,
					       struct flexmem_client *client,
					       u64 size, u64 alignment,
					       unsigned int chunks)
{
	struct flexmem_allocation *allocation;

	allocation = try_chunks(test, client, size, alignment, chunks);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_EQ(test, allocation->size, size);
	flexmem_client_publish(client, allocation);
	KUNIT_EXPECT_NULL(test, checks_of_client(client));
	return allocation;
}

static void release(struct kunit *test, struct flexmem_client *client,
		    struct flexmem_allocation *allocation)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, fake_client_free(client, allocation->handle), 0);
	KUNIT_EXPECT_NULL(test, checks_of_client(client));
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 0);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
}

/* ---- sizes ---- */

#define MOST 4

static const struct {
	u64 size;
	u64 alignment;
	unsigned int chunks;
	u64 sizes[MOST];
} shapes[] = {
	{ 128, 128, 1, { 128 } },
	{ 128, 128, 3, { 128 } },
	{ 128 * 3, 128, 3, { 128, 128, 128 } },
	{ 128 * 4, 128, 3, { 256, 256 } },
	{ 128 * 5, 128, 3, { 256, 256, 128 } },
	{ 128 * 5, 128, 4, { 256, 256, 128 } },
	{ 128 * 7, 128, 4, { 256, 256, 256, 128 } },
	{ 4096 * 3 + 128, 4096, 2, { 8192, 4096 + 128 } },
	{ 128, 4096, 2, { 128 } },
	{ 4096 * 3, SZ_1M, 3, { 4096 * 3 } },
	{ 4096 * 3, SZ_1M, 1, { 4096 * 3 } },
};

static void chunks_are_equal_but_for_the_last(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	const struct flexmem_block *chunk;
	struct flexmem_allocation *first;
	unsigned int i, j;

	/* Shifts the next block, so that it is not aligned merely by chance. */
	first = alloc_chunks(test, client, 128, 128, 1);
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		allocation = alloc_chunks(test, client, shapes[i].size,
					  shapes[i].alignment,
					  shapes[i].chunks);
		for (j = 0; j < allocation->nr_chunks; j++) {
			chunk = allocation->chunks[j];
			KUNIT_ASSERT_TRUE(test, j < MOST);
			KUNIT_EXPECT_EQ(test, chunk->size, shapes[i].sizes[j]);
			KUNIT_EXPECT_TRUE(test,
					  IS_ALIGNED(chunk->start,
						     shapes[i].alignment));
		}
		KUNIT_EXPECT_TRUE(test, j == MOST || !shapes[i].sizes[j]);
		KUNIT_EXPECT_EQ(test, 0,
				fake_client_free(client, allocation->handle));
	}
	release(test, client, first);
}

/*
 * Each chunk fits into a region, but no region has room for all of them
 * together.
 */
static void several_are_more_than_a_region(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try_chunks(test, client, 30 * GIB, 128, 1)));
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_REGION_SIZE);
	allocation = alloc_chunks(test, client, 30 * GIB, 128, 3);
	KUNIT_EXPECT_EQ(test, allocation->nr_chunks, 3);
	KUNIT_EXPECT_NE(test, allocation->chunks[0]->region->slot,
			allocation->chunks[2]->region->slot);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 30 * GIB);
	release(test, client, allocation);
}

static void expect_nothing(struct kunit *test, struct flexmem_client *client,
			   u64 owned)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, owned);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_orphaned, 0);
	KUNIT_EXPECT_EQ(test, client->account->used[FLEXMEM_RESOURCE_BYTES], 0);
	KUNIT_EXPECT_EQ(test, client->account->used[FLEXMEM_RESOURCE_HANDLES],
			0);
	KUNIT_EXPECT_NULL(test, checks_of_client(client));
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
}

static void chunk_without_room_undoes_all(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;

	/*
	 * Each of the 8 regions has room for one chunk of 10 GiB, so the ninth
	 * chunk finds no room.
	 */
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try_chunks(test, client, 90 * GIB, 128, 9)));
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_FRAGMENTATION);
	KUNIT_EXPECT_EQ(test, ctx->request.region_reason, FLEXMEM_REASON_SLOTS);
	/* The failed ALLOC has freed the chunks that it had got. */
	KUNIT_EXPECT_EQ(test, ctx->request.regions, 8);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, 96 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.largest, 12 * GIB);
	expect_nothing(test, client, 0);
	/*
	 * Of 11 chunks the ninth finds no room, and the last two are not tried.
	 */
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try_chunks(test, client, 110 * GIB, 128, 11)));
	expect_nothing(test, client, 0);
	release(test, client, alloc_chunks(test, client, 80 * GIB, 128, 8));
}

static void limit_counts_all_chunks(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct ctx *ctx = test->priv;

	client->account->parent->limit[FLEXMEM_RESOURCE_BYTES] = 25 * GIB;
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try_chunks(test, client, 30 * GIB, 128, 3)));
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_CGROUP_LIMIT);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_ACQUIRE], 0);
	expect_nothing(test, client, 0);
	release(test, client, alloc_chunks(test, client, 24 * GIB, 128, 3));
}

static void failed_scrub_of_a_chunk_undoes_all(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1), *other = open(test, 2);
	struct ctx *ctx = test->priv;

	make_dirty(test, client, 3 * 4096);
	fake_device_fail(ctx->fake, FAKE_SCRUB, 2, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			PTR_ERR(try_chunks(test, other, 3 * 4096, 128, 3)));
	expect_nothing(test, other, 128);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_quarantined, 4096);
}

/* ---- addresses ---- */

static void only_the_first_gives_the_address(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	struct flexmem_address address;

	allocation = alloc_chunks(test, client, 1024, 128, 2);
	address = flexmem_allocation_address(allocation);
	KUNIT_EXPECT_EQ(test, address.offset,
			allocation->chunks[0]->start);
	address.offset = allocation->chunks[1]->start;
	KUNIT_EXPECT_EQ(test, -ENOENT,
			PTR_ERR(flexmem_client_detach_address(client,
							      &address)));
	address.offset = allocation->chunks[0]->start;
	KUNIT_EXPECT_PTR_EQ(test, allocation,
			    flexmem_client_detach_address(client, &address));
	flexmem_client_release(client, allocation);
	expect_nothing(test, client, 0);
}

static void expect_mapped(struct kunit *test, struct flexmem_client *client,
			  u64 offset, struct flexmem_block *expected)
{
	struct flexmem_block *chunk;

	chunk = flexmem_client_get_mapped(client, offset);
	KUNIT_EXPECT_PTR_EQ(test, chunk, expected);
	if (!IS_ERR(chunk))
		flexmem_allocation_put(chunk->allocation);
}

static void map_offset_finds_its_chunk(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	struct flexmem_block *chunk;
	unsigned int i;
	u64 offset;

	allocation = alloc_chunks(test, client, 3 * 4096, 4096, 3);
	for (i = 0; i < 3; i++) {
		chunk = allocation->chunks[i];
		offset = flexmem_chunk_map_offset(chunk);
		expect_mapped(test, client, offset, chunk);
		expect_mapped(test, client, offset + 4095, chunk);
	}
	release(test, client, allocation);
}

static void byte_is_in_one_chunk(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	u64 byte, offset;

	allocation = alloc_chunks(test, client, 128 * 5, 128, 3);
	for (byte = 0; byte < 128 * 5; byte++) {
		offset = byte;
		KUNIT_EXPECT_PTR_EQ(test, allocation->chunks[byte / 256],
				    flexmem_allocation_chunk(allocation,
							     &offset));
		KUNIT_EXPECT_EQ(test, offset, byte % 256);
	}
	release(test, client, allocation);
}

static void all_are_orphaned(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	struct ctx *ctx = test->priv;

	allocation = alloc_chunks(test, client, 4096, 128, 4);
	flexmem_allocation_get(allocation);
	KUNIT_EXPECT_EQ(test, fake_client_free(client, allocation->handle), 0);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_orphaned, 4096);
	KUNIT_EXPECT_EQ(test, sums(ctx)->out_owned, 0);
	flexmem_allocation_put(allocation);
	expect_nothing(test, client, 0);
}

/* Simulates a reset between the first chunk and the second. */
static void one_lost_chunk_loses_the_allocation(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	struct flexmem_lookup lookup = {};
	struct flexmem_region *region;

	allocation = alloc_chunks(test, client, 20 * GIB, 128, 2);
	region = allocation->chunks[1]->region;
	KUNIT_ASSERT_FALSE(test, allocation->chunks[0]->region == region);
	region->lost = true;
	KUNIT_EXPECT_EQ(test, flexmem_allocation_error(allocation), -EIO);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_client_lookup(client, allocation->handle,
					      &lookup));
	KUNIT_EXPECT_EQ(test, lookup.out_flags, FLEXMEM_LOOKUP_LOST);
	region->lost = false;
	lookup.out_flags = 0;
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_client_lookup(client, allocation->handle,
					      &lookup));
	KUNIT_EXPECT_EQ(test, lookup.out_flags, 0);
	release(test, client, allocation);
}

static void size_stays(struct kunit *test)
{
	struct flexmem_client *client = open(test, 1);
	struct flexmem_allocation *allocation;
	struct flexmem_resize cmd = { .length = 128 };
	struct flexmem_resizing resizing;

	allocation = alloc_chunks(test, client, 4096, 128, 2);
	cmd.handle = allocation->handle;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			flexmem_resize_prepare(client, &cmd, &resizing));
	KUNIT_EXPECT_EQ(test, cmd.out_size, 4096);
	KUNIT_EXPECT_FALSE(test, allocation->resizing);
	KUNIT_EXPECT_NULL(test, checks_of_client(client));
	release(test, client, allocation);
}

static struct kunit_case allocation_cases[] = {
	KUNIT_CASE(chunks_are_equal_but_for_the_last),
	KUNIT_CASE(several_are_more_than_a_region),
	KUNIT_CASE(chunk_without_room_undoes_all),
	KUNIT_CASE(limit_counts_all_chunks),
	KUNIT_CASE(failed_scrub_of_a_chunk_undoes_all),
	KUNIT_CASE(only_the_first_gives_the_address),
	KUNIT_CASE(map_offset_finds_its_chunk),
	KUNIT_CASE(byte_is_in_one_chunk),
	KUNIT_CASE(all_are_orphaned),
	KUNIT_CASE(one_lost_chunk_loses_the_allocation),
	KUNIT_CASE(size_stays),
	{}
};

static struct kunit_suite allocation_suite = {
	.name = "flexmem_allocation",
	.init = scrub_test_init,
	.test_cases = allocation_cases,
};

kunit_test_suite(allocation_suite);
