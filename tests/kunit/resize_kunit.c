// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that are extended or shortened in place. Until the change is made,
 * the bytes that a block gains are a block of their own behind it, its tail.
 * Also what other tasks see during the change, and blocks with room to grow.
 *
 * Layouts are written as in blocks.h.
 */

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/slab.h>

#include "alloc/client.h"
#include "checks.h"
#include "fake_device.h"
#include "parts/resize.h"
#include "parts/snapshot.h"
#include "region/table.h"

#define UNIT FLEXMEM_ALIGN
#define MIB ((u64)SZ_1M)
#define OWNER 7ULL
#define OTHER 8ULL
#define LAYOUT_SIZE 256

/* ---- blocks ---- */

struct blocks_ctx {
	struct flexmem_blocks blocks;
	struct flexmem_spare spare;
	char layout[LAYOUT_SIZE];
};

static const enum flexmem_fit fits[] = {
	FLEXMEM_FIT_FIRST,
	FLEXMEM_FIT_BEST,
};

static void fit_desc(const enum flexmem_fit *fit, char *desc)
{
	strscpy(desc, fake_fit_name(*fit), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fit, fits, fit_desc);

static struct flexmem_block *new_node(struct kunit *test)
{
	struct flexmem_block *block;

	block = kunit_kmalloc(test, sizeof(*block), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, block);
	/* Fills the memory, because reused memory has old contents too. */
	memset(block, 0xa5, sizeof(*block));
	return block;
}

static struct blocks_ctx *make_blocks(struct kunit *test, u64 bytes)
{
	const enum flexmem_fit *fit = test->param_value;
	struct blocks_ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	flexmem_blocks_init(&ctx->blocks, bytes, *fit, new_node(test));
	return ctx;
}

static void check_blocks(struct kunit *test, struct blocks_ctx *ctx)
{
	const char *wrong = flexmem_blocks_check(&ctx->blocks);

	KUNIT_ASSERT_NULL_MSG(test, wrong, "%s", wrong);
}

static void fill(struct kunit *test, struct blocks_ctx *ctx, unsigned int nr)
{
	ctx->spare = (struct flexmem_spare) {};
	while (nr--)
		ctx->spare.block[nr] = new_node(test);
}

static struct flexmem_block *take(struct kunit *test, struct blocks_ctx *ctx,
				  u64 bytes)
{
	struct flexmem_block *block;
	struct flexmem_found found = {};

	fill(test, ctx, 1);
	KUNIT_ASSERT_TRUE(test, flexmem_blocks_find(&ctx->blocks, bytes, UNIT,
						    false, &found));
	block = flexmem_blocks_take(&ctx->blocks, &found, bytes, &ctx->spare);
	check_blocks(test, ctx);
	return block;
}

static void give(struct kunit *test, struct blocks_ctx *ctx,
		 struct flexmem_block *block)
{
	struct flexmem_spare unused;

	flexmem_blocks_free(&ctx->blocks, block, &unused);
	check_blocks(test, ctx);
}

static struct flexmem_block *extend(struct kunit *test, struct blocks_ctx *ctx,
				    struct flexmem_block *block, u64 bytes)
{
	const struct flexmem_found found = {
		.block = list_next_entry(block, link),
		.start = flexmem_block_end(block),
	};
	struct flexmem_block *tail;

	fill(test, ctx, 1);
	tail = flexmem_blocks_take(&ctx->blocks, &found, bytes, &ctx->spare);
	check_blocks(test, ctx);
	return tail;
}

static struct flexmem_block *split(struct kunit *test, struct blocks_ctx *ctx,
				   struct flexmem_block *block, u64 bytes)
{
	struct flexmem_block *tail;

	fill(test, ctx, 1);
	tail = flexmem_blocks_split(&ctx->blocks, block, bytes, &ctx->spare);
	check_blocks(test, ctx);
	return tail;
}

static void join(struct kunit *test, struct blocks_ctx *ctx,
		 struct flexmem_block *block, struct flexmem_block *tail)
{
	flexmem_blocks_join(&ctx->blocks, block, tail);
	check_blocks(test, ctx);
}

static const char *layout(struct blocks_ctx *ctx)
{
	struct flexmem_block *block;
	size_t at = 0;

	list_for_each_entry(block, &ctx->blocks.all, link)
		at += scnprintf(ctx->layout + at, LAYOUT_SIZE - at, "%s%c%llu",
				at ? " " : "",
				flexmem_block_is_free(block) ? 'f' : 'u',
				block->size / UNIT);
	return ctx->layout;
}

static void tail_is_taken_from_the_neighbour(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 10 * UNIT);
	struct flexmem_block *block = take(test, ctx, 3 * UNIT), *tail;

	KUNIT_EXPECT_EQ(test, flexmem_blocks_room(&ctx->blocks, block),
			7 * UNIT);
	tail = extend(test, ctx, block, 2 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u3 u2 f5");
	KUNIT_EXPECT_NULL(test, ctx->spare.block[0]);
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 2);
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, 5 * UNIT);
	join(test, ctx, block, tail);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u5 f5");
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 1);

	tail = extend(test, ctx, block, 5 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u5 u5");
	KUNIT_EXPECT_NOT_NULL(test, ctx->spare.block[0]);
	join(test, ctx, block, tail);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u10");
	give(test, ctx, block);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "f10");
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 0);
}

static void room_ends_at_what_is_occupied(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 10 * UNIT);
	struct flexmem_block *a = take(test, ctx, 3 * UNIT);
	struct flexmem_block *gap = take(test, ctx, 2 * UNIT);
	struct flexmem_block *b = take(test, ctx, 5 * UNIT);

	KUNIT_EXPECT_EQ(test, flexmem_blocks_room(&ctx->blocks, a), 0);
	KUNIT_EXPECT_EQ(test, flexmem_blocks_room(&ctx->blocks, b), 0);
	give(test, ctx, gap);
	KUNIT_EXPECT_EQ(test, flexmem_blocks_room(&ctx->blocks, a), 2 * UNIT);
	KUNIT_EXPECT_EQ(test, flexmem_blocks_room(&ctx->blocks, b), 0);
	extend(test, ctx, a, 2 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u3 u2 u5");
}

static void tail_can_be_given_back(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 10 * UNIT);
	struct flexmem_block *block = take(test, ctx, 3 * UNIT);

	give(test, ctx, extend(test, ctx, block, 2 * UNIT));
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u3 f7");
	give(test, ctx, extend(test, ctx, block, 7 * UNIT));
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u3 f7");
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 1);
	/* The bytes that were cut off are free for any allocation. */
	take(test, ctx, 7 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u3 u7");
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 2);
}

static void tail_outlives_its_block(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 10 * UNIT);
	struct flexmem_block *block = take(test, ctx, 3 * UNIT), *tail;

	tail = extend(test, ctx, block, 2 * UNIT);
	give(test, ctx, block);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "f3 u2 f5");
	give(test, ctx, tail);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "f10");
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 0);
}

static void end_can_be_cut_off(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 10 * UNIT);
	struct flexmem_block *a = take(test, ctx, 6 * UNIT);
	struct flexmem_block *b = take(test, ctx, 2 * UNIT), *tail;

	tail = split(test, ctx, a, 4 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u4 u2 u2 f2");
	KUNIT_EXPECT_EQ(test, ctx->blocks.nr_used, 3);
	KUNIT_EXPECT_EQ(test, ctx->blocks.free, 2 * UNIT);
	give(test, ctx, tail);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u4 f2 u2 f2");
	give(test, ctx, split(test, ctx, a, UNIT));
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u1 f5 u2 f2");
	give(test, ctx, split(test, ctx, b, UNIT));
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u1 f5 u1 f3");
}

/* Makes a block of six units. Units [1, 4) of it are dirty. */
static struct flexmem_block *take_dirty(struct kunit *test,
					struct blocks_ctx *ctx)
{
	struct flexmem_block *block = take(test, ctx, 6 * UNIT);

	block->residue.bytes_of = OWNER;
	block->residue.start = UNIT;
	block->residue.end = 4 * UNIT;
	return block;
}

/* checkpatch: MACRO_ARG_REUSE - test is always the name of a pointer */
#define EXPECT_DIRTY(test, block, whose, from, to) do {			\
	const struct flexmem_block *__b = block;			\
									\
	KUNIT_EXPECT_EQ(test, __b->residue.bytes_of, whose);			\
	KUNIT_EXPECT_EQ(test, __b->residue.start, (from) * UNIT);		\
	KUNIT_EXPECT_EQ(test, __b->residue.end, (to) * UNIT);		\
} while (0)

static void split_block_keeps_its_dirty_range(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 10 * UNIT);
	struct flexmem_block *block = take_dirty(test, ctx), *tail;

	tail = split(test, ctx, block, 5 * UNIT);
	KUNIT_EXPECT_EQ(test, tail->residue.bytes_of, FLEXMEM_CLEAN);
	EXPECT_DIRTY(test, block, OWNER, 1, 4);
	give(test, ctx, tail);
	tail = split(test, ctx, block, 2 * UNIT);
	EXPECT_DIRTY(test, block, OWNER, 1, 2);
	EXPECT_DIRTY(test, tail, OWNER, 2, 4);
	give(test, ctx, tail);
	tail = split(test, ctx, block, UNIT);
	KUNIT_EXPECT_EQ(test, block->residue.bytes_of, FLEXMEM_CLEAN);
	EXPECT_DIRTY(test, tail, OWNER, 1, 2);
	give(test, ctx, tail);
	/* The units [1, 4) of the free bytes behind the block are dirty. */
	EXPECT_DIRTY(test, list_next_entry(block, link), OWNER, 1, 4);
	tail = extend(test, ctx, block, 2 * UNIT);
	EXPECT_DIRTY(test, tail, OWNER, 1, 3);
}

static void joined_block_has_both_dirty_ranges(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 10 * UNIT);
	struct flexmem_block *block = take_dirty(test, ctx), *tail;

	tail = split(test, ctx, block, 2 * UNIT);
	join(test, ctx, block, tail);
	EXPECT_DIRTY(test, block, OWNER, 1, 4);
	tail = extend(test, ctx, block, 2 * UNIT);
	KUNIT_EXPECT_EQ(test, tail->residue.bytes_of, FLEXMEM_CLEAN);
	join(test, ctx, block, tail);
	EXPECT_DIRTY(test, block, OWNER, 1, 4);
	tail = extend(test, ctx, block, UNIT);
	flexmem_block_mark_dirty(tail, OWNER);
	join(test, ctx, block, tail);
	EXPECT_DIRTY(test, block, OWNER, 1, 9);
	tail = extend(test, ctx, block, UNIT);
	flexmem_block_mark_dirty(tail, OTHER);
	join(test, ctx, block, tail);
	EXPECT_DIRTY(test, block, FLEXMEM_MIXED, 1, 10);
}

/* ---- room to grow ---- */

/* Allocates with room to grow. Returns the offset, or ~0ULL. */
static u64 take_growable(struct kunit *test, struct blocks_ctx *ctx, u64 bytes,
			 u64 alignment)
{
	struct flexmem_block *block;
	struct flexmem_found found = {};

	fill(test, ctx, FLEXMEM_GROWABLE_SPARES);
	if (!flexmem_blocks_find(&ctx->blocks, bytes, alignment, true, &found))
		return ~0ULL;
	block = flexmem_blocks_take(&ctx->blocks, &found, bytes, &ctx->spare);
	check_blocks(test, ctx);
	KUNIT_EXPECT_EQ(test, block->size, bytes);
	return block->start;
}

static void growable_begins_an_empty_region(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, GIB);

	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, MIB, UNIT), 0);
}

static void growable_goes_half_way(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, GIB);

	take(test, ctx, UNIT);
	/*
	 * The middle of the free block is a unit above 512 MiB, and is rounded
	 * up to the next 2 MiB.
	 */
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, MIB, UNIT),
			512 * MIB + 2 * MIB);
	/* Now the free block in front of the allocation is the largest one. */
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, MIB, UNIT),
			258 * MIB);
}

static void growable_keeps_its_alignment(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, GIB);

	take(test, ctx, UNIT);
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, MIB, 256 * MIB),
			768 * MIB);
	/* The middle of the free block is not aligned, but its start is. */
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, MIB, 512 * MIB),
			512 * MIB);
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, MIB, 512 * MIB), ~0ULL);
}

static void growable_is_not_rounded_in_a_small_block(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 12 * UNIT);

	take(test, ctx, 2 * UNIT);
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, 3 * UNIT, UNIT),
			7 * UNIT);
	/* Four units fit at the start of the free block, not in its middle. */
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, 4 * UNIT, UNIT),
			2 * UNIT);
	KUNIT_EXPECT_STREQ(test, layout(ctx), "u2 u4 f1 u3 f2");
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, 3 * UNIT, UNIT), ~0ULL);
}

static void growable_takes_the_lowest_of_the_largest(struct kunit *test)
{
	struct blocks_ctx *ctx = make_blocks(test, 14 * UNIT);
	struct flexmem_block *a, *b;

	take(test, ctx, UNIT);
	a = take(test, ctx, 4 * UNIT);
	take(test, ctx, UNIT);
	b = take(test, ctx, 4 * UNIT);
	take(test, ctx, 4 * UNIT);
	give(test, ctx, b);
	give(test, ctx, a);
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, UNIT, UNIT), 3 * UNIT);
	KUNIT_EXPECT_EQ(test, take_growable(test, ctx, UNIT, UNIT), 8 * UNIT);
}

/* ---- allocations ---- */

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_client *client;
	struct flexmem_client *other;
	struct flexmem_request request;
	struct flexmem_resize cmd;
	struct flexmem_resizing resizing;
	struct flexmem_view view;
	u32 handle;
	int rc;
};

static int resize_test_init(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.max_regions = 1;
	settings.nr_sizes = 1;
	settings.sizes[0] = GIB;
	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 8 * GIB);
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	ctx->client = fake_client_open(test, ctx->table, 1);
	ctx->other = fake_client_open(test, ctx->table, 2);
	test->priv = ctx;
	return 0;
}

static void check_all(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	const struct flexmem_snapshot *sum = &ctx->view.sum;
	const char *wrong = checks_of_table(ctx->table);

	wrong = wrong ?: checks_of_client(ctx->client);
	wrong = wrong ?: checks_of_client(ctx->other);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
	flexmem_table_snapshot(ctx->table, NULL, &ctx->view);
	KUNIT_EXPECT_EQ(test, sum->out_free + sum->out_owned +
			      sum->out_orphaned + sum->out_quarantined,
			sum->out_total);
}

static struct flexmem_allocation *alloc_flags(struct kunit *test,
					      struct flexmem_client *client,
					      u64 size, u32 flags)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = fake_client_prepare(client, size, UNIT, flags,
					 &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(client, allocation);
	return allocation;
}

static struct flexmem_allocation *alloc(struct kunit *test,
					struct flexmem_client *client, u64 size)
{
	return alloc_flags(test, client, size, 0);
}

static void free_handle(struct kunit *test, struct flexmem_client *client,
			u32 handle)
{
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_detach(client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_release(client, allocation);
}

static int prepare(struct kunit *test, u32 handle, u64 length)
{
	struct ctx *ctx = test->priv;

	ctx->cmd = (struct flexmem_resize) {
		.handle = handle,
		.length = length,
	};
	return flexmem_resize_prepare(ctx->client, &ctx->cmd, &ctx->resizing);
}

static int resize(struct kunit *test, u32 handle, u64 length)
{
	struct ctx *ctx = test->priv;
	int rc = prepare(test, handle, length);

	if (!rc)
		flexmem_resize_commit(&ctx->resizing);
	check_all(test);
	return rc;
}

static u64 size_of(struct ctx *ctx, u32 handle)
{
	struct flexmem_lookup out = {};

	return flexmem_client_lookup(ctx->client, handle, &out) ? 0 :
								  out.out_size;
}

#define EXPECT_BUSY(test, call)						\
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(call), -EBUSY)

/*
 * From the first step of a RESIZE to the last, other calls on the allocation
 * get -EBUSY.
 */
static void memory_being_resized_is_busy(struct kunit *test)
{
	static const u64 lengths[] = { 12288, 8192, 4096 };
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a = alloc_flags(test, ctx->client, 8192,
						  FLEXMEM_ALLOC_MAPPABLE);
	const struct flexmem_address address = flexmem_allocation_address(a);
	struct flexmem_resizing second;
	struct flexmem_resize cmd = { .handle = a->handle, .length = 128 };
	u64 offset = flexmem_chunk_map_offset(a->chunks[0]);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		KUNIT_ASSERT_EQ(test, prepare(test, a->handle, lengths[i]), 0);
		KUNIT_EXPECT_EQ(test, ctx->cmd.out_size, lengths[i]);
		EXPECT_BUSY(test, flexmem_client_allocation(ctx->client, a->handle));
		EXPECT_BUSY(test, flexmem_client_get_mapped(ctx->client, offset));
		EXPECT_BUSY(test, flexmem_client_detach(ctx->client, a->handle));
		EXPECT_BUSY(test, flexmem_client_detach_address(ctx->client,
								&address));
		KUNIT_EXPECT_EQ(test,
				flexmem_resize_prepare(ctx->client, &cmd,
						       &second), -EBUSY);
		KUNIT_EXPECT_EQ(test, cmd.out_size, 8192);
		/* Other calls see the old size until the RESIZE succeeds. */
		KUNIT_EXPECT_EQ(test, size_of(ctx, a->handle), 8192);
		check_all(test);
		KUNIT_EXPECT_EQ(test, ctx->view.sum.out_allocs, 1);
		/* The bytes to be added are a block of their own until then. */
		KUNIT_EXPECT_EQ(test, ctx->view.region[0].nr_allocated,
				lengths[i] > 8192 ? 2 : 1);
		flexmem_resize_abort(&ctx->resizing);
		check_all(test);
		KUNIT_EXPECT_EQ(test, size_of(ctx, a->handle), 8192);
		KUNIT_EXPECT_EQ(test, ctx->view.sum.out_owned, 8192);
		KUNIT_EXPECT_PTR_EQ(test, flexmem_client_allocation(ctx->client,
								    a->handle),
				    a);
		flexmem_allocation_put(a);
	}
}

static void used_allocation_is_not_resized(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a = alloc(test, ctx->client, 4096);

	KUNIT_ASSERT_PTR_EQ(test, flexmem_client_allocation(ctx->client, a->handle), a);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), -EBUSY);
	KUNIT_EXPECT_EQ(test, ctx->cmd.out_size, 4096);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 128), -EBUSY);
	flexmem_allocation_put(a);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), 0);
	KUNIT_EXPECT_EQ(test, size_of(ctx, a->handle), 8192);
}

static void charges_follow_the_new_size(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a = alloc(test, ctx->client, 4096);
	const struct flexmem_charges *in = ctx->client->account->in;

	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), 0);
	KUNIT_EXPECT_EQ(test, in[0].bytes, 8192);
	KUNIT_EXPECT_EQ(test, flexmem_client_used(ctx->client), 8192);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 129), 0);
	KUNIT_EXPECT_EQ(test, in[0].bytes, 256);
	KUNIT_EXPECT_EQ(test, flexmem_client_used(ctx->client), 256);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_allocs, 1);
	KUNIT_EXPECT_EQ(test, ctx->view.region[0].nr_allocated, 1);
	free_handle(test, ctx->client, a->handle);
	check_all(test);
	KUNIT_EXPECT_EQ(test, in[0].bytes, 0);
	KUNIT_EXPECT_EQ(test, ctx->client->account->used[FLEXMEM_RESOURCE_REGIONS],
			0);
}

static u64 bytes_of_programs(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	check_all(test);
	return ctx->view.sum.out_used_program;
}

static void counts_bytes_of_programs(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a;

	a = alloc_flags(test, ctx->client, 4096, FLEXMEM_ALLOC_PROGRAM);
	KUNIT_EXPECT_EQ(test, bytes_of_programs(test), 4096);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), 0);
	KUNIT_EXPECT_EQ(test, bytes_of_programs(test), 8192);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 1024), 0);
	KUNIT_EXPECT_EQ(test, bytes_of_programs(test), 1024);
	free_handle(test, ctx->client, a->handle);
	KUNIT_EXPECT_EQ(test, bytes_of_programs(test), 0);
}

/* Makes an allocation in front of another owner's bytes. */
static struct flexmem_allocation *beside_dirt(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a = alloc(test, ctx->client, 4096);
	struct flexmem_allocation *b = alloc(test, ctx->other, 4096);

	fake_data_fill(ctx->fake, &b->chunks[0]->region->mem, b->chunks[0]->start, 4096, 0xbb);
	free_handle(test, ctx->other, b->handle);
	return a;
}

static bool added_is(struct ctx *ctx, const struct flexmem_allocation *a,
		     u8 value)
{
	return fake_data_is(ctx->fake, &a->chunks[0]->region->mem, a->chunks[0]->start + 4096,
			    4096, value);
}

static void added_bytes_are_scrubbed_first(struct kunit *test)
{
	struct flexmem_allocation *a = beside_dirt(test);
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_TRUE(test, added_is(ctx, a, 0xbb));
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), 0);
	KUNIT_EXPECT_TRUE(test, added_is(ctx, a, 0));
}

static void failed_scrub_is_quarantined(struct kunit *test)
{
	struct flexmem_allocation *a = beside_dirt(test);
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), -EIO);
	KUNIT_EXPECT_EQ(test, ctx->cmd.out_size, 4096);
	KUNIT_EXPECT_EQ(test, size_of(ctx, a->handle), 4096);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_quarantined, 4096);
	KUNIT_EXPECT_EQ(test, ctx->view.region[0].nr_allocated, 1);
	/* The quarantined block prevents the growth. */
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), -EAGAIN);
	KUNIT_EXPECT_EQ(test, ctx->cmd.out_max, 4096);
}

static void killed_resize_gives_the_bytes_back(struct kunit *test)
{
	struct flexmem_allocation *a = beside_dirt(test);
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EINTR);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), -EINTR);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_quarantined, 0);
	KUNIT_EXPECT_EQ(test, ctx->view.sum.out_owned, 4096);
	KUNIT_EXPECT_TRUE(test, added_is(ctx, a, 0xbb));
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), 0);
	KUNIT_EXPECT_TRUE(test, added_is(ctx, a, 0));
}

static void limits_hold_for_what_is_added(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a = alloc(test, ctx->client, 4096);

	ctx->client->account->parent->limit[FLEXMEM_RESOURCE_BYTES] = 8192;
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8193), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->cmd.out_reason, FLEXMEM_REASON_CGROUP_LIMIT);
	KUNIT_EXPECT_EQ(test, size_of(ctx, a->handle), 4096);
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), 0);
	KUNIT_EXPECT_EQ(test, ctx->cmd.out_reason, FLEXMEM_REASON_NONE);
}

/*
 * The region is lost after the RESIZE was prepared, but before it is committed.
 */
static void lost_in_between(struct kunit *test)
{
	static const u64 lengths[] = { 8192, 1024 };
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *a;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		a = alloc(test, ctx->client, 4096);
		KUNIT_ASSERT_EQ(test, prepare(test, a->handle, lengths[i / 2]),
				0);
		fake_device_reset(ctx->fake);
		KUNIT_ASSERT_EQ(test, flexmem_table_reset(ctx->table), 0);
		if (i % 2)
			flexmem_resize_abort(&ctx->resizing);
		else
			flexmem_resize_commit(&ctx->resizing);
		check_all(test);
		KUNIT_EXPECT_EQ(test, size_of(ctx, a->handle),
				i % 2 ? 4096 : lengths[i / 2]);
		KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), -EIO);
		KUNIT_EXPECT_EQ(test, resize(test, a->handle, 128), -EIO);
		free_handle(test, ctx->client, a->handle);
		check_all(test);
	}
}

/* Called in the middle of the scrub of the added bytes. */
static void look_at_it(void *arg)
{
	struct ctx *ctx = arg;

	ctx->rc = PTR_ERR_OR_ZERO(flexmem_client_allocation(ctx->client, ctx->handle));
	if (size_of(ctx, ctx->handle) != 4096)
		ctx->rc = -EINVAL;
}

static void allocation_is_busy_during_the_scrub(struct kunit *test)
{
	struct flexmem_allocation *a = beside_dirt(test);
	struct ctx *ctx = test->priv;

	ctx->handle = a->handle;
	ctx->fake->during_scrub = look_at_it;
	ctx->fake->during_scrub_arg = ctx;
	KUNIT_EXPECT_EQ(test, resize(test, a->handle, 8192), 0);
	ctx->fake->during_scrub = NULL;
	KUNIT_EXPECT_EQ(test, ctx->rc, -EBUSY);
}

static struct kunit_case resize_cases[] = {
	KUNIT_CASE_PARAM(tail_is_taken_from_the_neighbour, fit_gen_params),
	KUNIT_CASE_PARAM(room_ends_at_what_is_occupied, fit_gen_params),
	KUNIT_CASE_PARAM(tail_can_be_given_back, fit_gen_params),
	KUNIT_CASE_PARAM(tail_outlives_its_block, fit_gen_params),
	KUNIT_CASE_PARAM(end_can_be_cut_off, fit_gen_params),
	KUNIT_CASE_PARAM(split_block_keeps_its_dirty_range, fit_gen_params),
	KUNIT_CASE_PARAM(joined_block_has_both_dirty_ranges, fit_gen_params),
	KUNIT_CASE_PARAM(growable_begins_an_empty_region, fit_gen_params),
	KUNIT_CASE_PARAM(growable_goes_half_way, fit_gen_params),
	KUNIT_CASE_PARAM(growable_keeps_its_alignment, fit_gen_params),
	KUNIT_CASE_PARAM(growable_is_not_rounded_in_a_small_block,
			 fit_gen_params),
	KUNIT_CASE_PARAM(growable_takes_the_lowest_of_the_largest,
			 fit_gen_params),
	KUNIT_CASE(memory_being_resized_is_busy),
	KUNIT_CASE(used_allocation_is_not_resized),
	KUNIT_CASE(charges_follow_the_new_size),
	KUNIT_CASE(counts_bytes_of_programs),
	KUNIT_CASE(added_bytes_are_scrubbed_first),
	KUNIT_CASE(failed_scrub_is_quarantined),
	KUNIT_CASE(killed_resize_gives_the_bytes_back),
	KUNIT_CASE(limits_hold_for_what_is_added),
	KUNIT_CASE(lost_in_between),
	KUNIT_CASE(allocation_is_busy_during_the_scrub),
	{}
};

static struct kunit_suite resize_suite = {
	.name = "flexmem_resize",
	.init = resize_test_init,
	.test_cases = resize_cases,
};

kunit_test_suite(resize_suite);
