// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: which region, when a new one, and why not (A4, A22, A25 to A27,
 * A31, A33, D2, D4, D5, D9, D25).
 *
 * Regions are of 12 GiB, unless said otherwise.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "client.h"
#include "fake_device.h"
#include "placement.h"
#include "table.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_place place;
};

static const enum flexmem_mode modes[] = {
	FLEXMEM_MODE_PF,
	FLEXMEM_MODE_VF,
};

static void mode_desc(const enum flexmem_mode *mode, char *desc)
{
	strscpy(desc, fake_mode_name(*mode), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mode, modes, mode_desc);

static enum flexmem_mode param_mode(struct kunit *test)
{
	return *(const enum flexmem_mode *)test->param_value;
}

static const enum flexmem_order orders[] = {
	FLEXMEM_ORDER_LOAD_BALANCE,
	FLEXMEM_ORDER_FILL_FIRST,
};

static void order_desc(const enum flexmem_order *order, char *desc)
{
	strscpy(desc, fake_order_name(*order), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(order, orders, order_desc);

static enum flexmem_order param_order(struct kunit *test)
{
	return *(const enum flexmem_order *)test->param_value;
}

struct pair {
	enum flexmem_fit fit;
	enum flexmem_order order;
};

static const struct pair pairs[] = {
	{ FLEXMEM_FIT_FIRST, FLEXMEM_ORDER_LOAD_BALANCE },
	{ FLEXMEM_FIT_FIRST, FLEXMEM_ORDER_FILL_FIRST },
	{ FLEXMEM_FIT_BEST, FLEXMEM_ORDER_LOAD_BALANCE },
	{ FLEXMEM_FIT_BEST, FLEXMEM_ORDER_FILL_FIRST },
};

static void pair_desc(const struct pair *pair, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s, %s",
		 fake_fit_name(pair->fit), fake_order_name(pair->order));
}

KUNIT_ARRAY_PARAM(pair, pairs, pair_desc);

static struct ctx *make(struct kunit *test, enum flexmem_mode mode,
			unsigned int slots, u64 capacity,
			const struct flexmem_settings *settings)
{
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, mode, slots, capacity);
	ctx->table = fake_table_create(test, ctx->fake, settings);
	return ctx;
}

/* A VF that acquires on demand. */
static struct ctx *make_lazy(struct kunit *test, enum flexmem_order order,
			     unsigned int slots, u64 capacity)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = order;
	return make(test, FLEXMEM_MODE_VF, slots, capacity, &settings);
}

/* A VF that has so many regions already and cannot get another. */
static struct ctx *make_preallocated(struct kunit *test,
				     enum flexmem_order order, unsigned int nr)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.order = order;
	settings.acquire = FLEXMEM_ACQUIRE_PREALLOC;
	ctx = make(test, FLEXMEM_MODE_VF, nr, PLENTY, &settings);
	KUNIT_ASSERT_EQ(test, 0, fake_table_prealloc(ctx->table));
	fake_device_forget(ctx->fake);
	return ctx;
}

static struct flexmem_region *region_in(struct kunit *test, struct ctx *ctx,
					unsigned int slot)
{
	struct flexmem_region *region = fake_table_region(ctx->table, slot);

	KUNIT_ASSERT_NOT_NULL(test, region);
	return region;
}

/* Takes bytes of a region, past placement. */
static struct fake_block *occupy(struct kunit *test, struct ctx *ctx,
				 unsigned int slot, u64 size)
{
	struct flexmem_region *region = region_in(test, ctx, slot);
	struct fake_block *block;

	block = fake_alloc_in(ctx->table, region, size, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	return block;
}

static struct fake_block *try(struct ctx *ctx, u64 size, bool program)
{
	return fake_alloc(ctx->table, size, FLEXMEM_ALIGN, program,
			  &ctx->place);
}

/* Allocates and expects the slot and offset it went to. */
static struct fake_block *expect_at(struct kunit *test, struct ctx *ctx,
				    u64 size, bool program, unsigned int slot,
				    u64 offset)
{
	struct fake_block *block = try(ctx, size, program);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	KUNIT_EXPECT_EQ(test, block->region->slot, slot);
	KUNIT_EXPECT_EQ(test, block->block->start, offset);
	KUNIT_EXPECT_EQ(test, block->block->size, size);
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_NONE);
	return block;
}

static void expect_tensor(struct kunit *test, struct ctx *ctx, u64 size,
			  unsigned int slot, u64 offset)
{
	expect_at(test, ctx, size, false, slot, offset);
}

static void expect_reason(struct kunit *test, struct ctx *ctx, u64 size,
			  bool program, enum flexmem_reason reason,
			  u64 total_free, u64 largest_free, u64 max_region)
{
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, size, program)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->place.reason, reason);
	KUNIT_EXPECT_EQ(test, ctx->place.total_free, total_free);
	KUNIT_EXPECT_EQ(test, ctx->place.largest_free, largest_free);
	KUNIT_EXPECT_EQ(test, ctx->place.max_region, max_region);
	KUNIT_EXPECT_NULL(test, ctx->place.block);
}

/* Expects what the device was asked since the last time. */
static void expect_log(struct kunit *test, struct ctx *ctx, const char *log)
{
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), log);
	fake_device_forget(ctx->fake);
}

/* Order. */

static void load_balance_tries_the_emptiest_first(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, FLEXMEM_ORDER_LOAD_BALANCE,
					    3);

	occupy(test, ctx, 0, 3 * GIB);
	occupy(test, ctx, 1, 1 * GIB);
	occupy(test, ctx, 2, 5 * GIB);
	expect_tensor(test, ctx, GIB, 1, 1 * GIB);
	expect_tensor(test, ctx, GIB, 1, 2 * GIB);
	/* Slots 0 and 1 have 9 GiB free each. */
	expect_tensor(test, ctx, GIB, 0, 3 * GIB);
	expect_tensor(test, ctx, GIB, 1, 3 * GIB);
	expect_log(test, ctx, "");
}

static void fill_first_tries_the_fullest_first(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, FLEXMEM_ORDER_FILL_FIRST, 3);

	occupy(test, ctx, 0, 3 * GIB);
	occupy(test, ctx, 1, 1 * GIB);
	occupy(test, ctx, 2, 5 * GIB);
	expect_tensor(test, ctx, GIB, 2, 5 * GIB);
	/* Does not fit there; the next fullest that it fits in. */
	expect_tensor(test, ctx, 8 * GIB, 0, 3 * GIB);
	expect_tensor(test, ctx, GIB, 0, 11 * GIB);
	expect_tensor(test, ctx, GIB, 2, 6 * GIB);
	expect_log(test, ctx, "");
}

static void equal_regions_go_by_slot(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 4);

	occupy(test, ctx, 0, 12 * GIB);
	occupy(test, ctx, 2, 1 * GIB);
	occupy(test, ctx, 1, 1 * GIB);
	occupy(test, ctx, 3, 1 * GIB);
	expect_tensor(test, ctx, 11 * GIB, 1, GIB);
	expect_tensor(test, ctx, 11 * GIB, 2, GIB);
	expect_tensor(test, ctx, 11 * GIB, 3, GIB);
}

/* Makes a region's free bytes two equal pieces around a block in the middle. */
static void split(struct kunit *test, struct ctx *ctx, unsigned int slot,
		  u64 middle)
{
	struct fake_block *front;

	front = occupy(test, ctx, slot, (12 * GIB - middle) / 2);
	occupy(test, ctx, slot, middle);
	fake_free(front);
}

static void fragmented_region_is_passed_over(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 3);
	unsigned int first, last;

	/* Free bytes: 10, 8 and 6 GiB; but of the first in the order, halves. */
	first = param_order(test) == FLEXMEM_ORDER_LOAD_BALANCE ? 0 : 2;
	last = 2 - first;
	split(test, ctx, first, first ? 6 * GIB : 2 * GIB);
	occupy(test, ctx, 1, 4 * GIB);
	occupy(test, ctx, last, last ? 6 * GIB : 2 * GIB);
	expect_tensor(test, ctx, 6 * GIB, 1, 4 * GIB);
	KUNIT_EXPECT_EQ(test, region_in(test, ctx, first)->sequence, 3);
}

static void tries_every_region(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 4);

	split(test, ctx, 0, 2 * GIB);
	split(test, ctx, 1, 2 * GIB);
	split(test, ctx, 2, 2 * GIB);
	occupy(test, ctx, 3, 2 * GIB);
	expect_tensor(test, ctx, 10 * GIB, 3, 2 * GIB);
	expect_tensor(test, ctx, 5 * GIB, 0, 0);
}

static void alignment_is_of_the_offset(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);
	struct fake_block *block;

	occupy(test, ctx, 0, 128);
	block = fake_alloc(ctx->table, 128, GIB, false, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	KUNIT_EXPECT_EQ(test, block->block->start, GIB);
}

/* Acquisition. */

static void load_balance_acquires_until_exhausted(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 3,
				    PLENTY);

	expect_tensor(test, ctx, 128, 0, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
	expect_tensor(test, ctx, 128, 1, 0);
	expect_log(test, ctx, "acquire 12G, set 1");
	expect_tensor(test, ctx, 128, 2, 0);
	expect_log(test, ctx, "acquire 12G, set 2");
	expect_tensor(test, ctx, 128, 0, 128);
	expect_tensor(test, ctx, 128, 1, 128);
	expect_log(test, ctx, "");
}

/* A26: the new region is tried first, even if it is not the emptiest. */
static void load_balance_allocates_from_the_new_region(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);

	expect_tensor(test, ctx, 128, 0, 0);
	ctx->fake->refused_size[0] = 12 * GIB;
	ctx->fake->refused_size[1] = 8 * GIB;
	expect_tensor(test, ctx, 128, 1, 0);
	KUNIT_EXPECT_EQ(test, region_in(test, ctx, 1)->mem.size, 4 * GIB);
}

static void load_balance_without_capacity_uses_what_is_there(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    16 * GIB);

	expect_tensor(test, ctx, 128, 0, 0);
	expect_tensor(test, ctx, 128, 1, 0);
	fake_device_forget(ctx->fake);
	/* Locks, and takes the emptier one. */
	expect_tensor(test, ctx, 128, 0, 128);
	expect_log(test, ctx,
		   "acquire 12G ENOSPC, acquire 8G ENOSPC, acquire 4G ENOSPC");
	expect_tensor(test, ctx, 128, 0, 256);
	expect_log(test, ctx, "");
}

static void load_balance_skips_sizes_without_locking(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    16 * GIB);

	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_forget(ctx->fake);
	expect_tensor(test, ctx, 5 * GIB, 0, 128);
	expect_log(test, ctx, "acquire 12G ENOSPC, acquire 8G ENOSPC");
	expect_tensor(test, ctx, 4 * GIB, 1, 0);
}

static void fill_first_acquires_when_nothing_fits(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8, PLENTY);

	expect_tensor(test, ctx, 128, 0, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
	expect_tensor(test, ctx, 128, 0, 128);
	expect_log(test, ctx, "");
	expect_tensor(test, ctx, 12 * GIB, 1, 0);
	expect_log(test, ctx, "acquire 12G, set 1");
	expect_tensor(test, ctx, 128, 0, 256);
	expect_log(test, ctx, "");
}

static void fill_first_acquires_when_fragmented(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8, PLENTY);
	struct fake_block *block;

	block = expect_at(test, ctx, 5 * GIB, false, 0, 0);
	expect_tensor(test, ctx, 2 * GIB, 0, 5 * GIB);
	fake_free(block);
	expect_tensor(test, ctx, 6 * GIB, 1, 0);
}

static void preallocated_asks_for_nothing(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.order = param_order(test);
	settings.acquire = FLEXMEM_ACQUIRE_PREALLOC;
	ctx = make(test, FLEXMEM_MODE_VF, 8, 25 * GIB, &settings);
	KUNIT_ASSERT_EQ(test, 0, fake_table_prealloc(ctx->table));
	fake_device_forget(ctx->fake);
	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	expect_tensor(test, ctx, 12 * GIB, 1, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      12 * GIB);
	expect_log(test, ctx, "");
}

/* Programs. */

static struct ctx *make_program_slots(struct kunit *test,
				      enum flexmem_order order)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = order;
	settings.program_slots = 1;
	return make(test, FLEXMEM_MODE_VF, 2, PLENTY, &settings);
}

static u64 bytes_of_programs(struct kunit *test, struct ctx *ctx,
			     unsigned int slot)
{
	return region_in(test, ctx, slot)->used[FLEXMEM_KIND_PROGRAM];
}

static void programs_have_their_own_slots(struct kunit *test)
{
	struct ctx *ctx = make_program_slots(test, param_order(test));

	expect_at(test, ctx, 128, true, 1, 0);
	expect_at(test, ctx, 128, false, 0, 0);
	expect_at(test, ctx, 128, true, 1, 128);
	expect_at(test, ctx, 128, false, 0, 128);
	KUNIT_EXPECT_EQ(test, bytes_of_programs(test, ctx, 1), 256);
	KUNIT_EXPECT_EQ(test, bytes_of_programs(test, ctx, 0), 0);
}

static void tensors_never_use_program_slots(struct kunit *test)
{
	struct ctx *ctx = make_program_slots(test, param_order(test));

	expect_at(test, ctx, 128, true, 1, 0);
	expect_at(test, ctx, 12 * GIB, false, 0, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_SLOTS, 0, 0,
		      12 * GIB);
}

static void programs_never_use_tensor_slots(struct kunit *test)
{
	struct ctx *ctx = make_program_slots(test, param_order(test));

	expect_at(test, ctx, 128, false, 0, 0);
	expect_at(test, ctx, 4 * GIB, true, 1, 0);
	expect_reason(test, ctx, 128, true, FLEXMEM_REASON_SLOTS, 0, 0,
		      12 * GIB);
}

static void programs_share_without_slots_of_their_own(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 1, PLENTY);

	expect_at(test, ctx, 128, true, 0, 0);
	expect_at(test, ctx, 128, false, 0, 128);
	expect_at(test, ctx, 128, true, 0, 256);
	KUNIT_EXPECT_EQ(test, bytes_of_programs(test, ctx, 0), 256);
}

static void large_program_gets_a_large_region(struct kunit *test)
{
	struct ctx *ctx = make_program_slots(test, param_order(test));

	expect_at(test, ctx, 9 * GIB, true, 1, 0);
	expect_log(test, ctx, "acquire 12G, set 1");
}

/* Reasons. */

static void reason_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 17 * GIB);

	expect_tensor(test, ctx, 11 * GIB, 0, 0);
	expect_tensor(test, ctx, 4 * GIB, 1, 0);
	expect_reason(test, ctx, 2 * GIB, false, FLEXMEM_REASON_CAPACITY,
		      1 * GIB, 1 * GIB, 12 * GIB);
	KUNIT_EXPECT_TRUE(test,
			  ctx->table->domain.exhausted[FLEXMEM_KIND_TENSOR]);
}

/* Not every size was tried, so nothing is exhausted. */
static void reason_capacity_of_a_large_request(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8,
				    17 * GIB);

	expect_tensor(test, ctx, 11 * GIB, 0, 0);
	expect_reason(test, ctx, 6 * GIB, false, FLEXMEM_REASON_CAPACITY,
		      1 * GIB, 1 * GIB, 12 * GIB);
	KUNIT_EXPECT_FALSE(test,
			   ctx->table->domain.exhausted[FLEXMEM_KIND_TENSOR]);
	expect_tensor(test, ctx, 4 * GIB, 1, 0);
}

static void reason_slots(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 2, PLENTY);

	expect_tensor(test, ctx, 11 * GIB, 0, 0);
	expect_tensor(test, ctx, 12 * GIB, 1, 0);
	expect_reason(test, ctx, 2 * GIB, false, FLEXMEM_REASON_SLOTS,
		      1 * GIB, 1 * GIB, 12 * GIB);
}

static void reason_slots_when_the_firmware_refuses(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 2, PLENTY);

	ctx->fake->refused_slots = BIT(1);
	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_SLOTS, 0, 0,
		      12 * GIB);
}

/* That a slot is refused shows only while the first region is acquired. */
static void guarantee_knows_of_a_refused_slot(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 2, PLENTY);
	struct flexmem_quota quota = {
		.flags = FLEXMEM_QUOTA_GUARANTEE,
		.kind = FLEXMEM_OWNER_USER,
		.resource = FLEXMEM_RESOURCE_BYTES,
		.guarantee = 2 * GIB,
	};

	ctx->fake->refused_slots = BIT(0);
	KUNIT_EXPECT_EQ(test, 0, flexmem_quota_set(&ctx->table->accounts,
						   &quota, fake_uid(7)));
	expect_reason(test, ctx, 12 * GIB, false, FLEXMEM_REASON_GUARANTEE,
		      12 * GIB, 12 * GIB, 12 * GIB);
	expect_tensor(test, ctx, 10 * GIB, 1, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_GUARANTEE,
		      2 * GIB, 2 * GIB, 12 * GIB);
}

/* There is room, but it is kept for somebody else. */
static void reason_guarantee(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 12 * GIB);
	struct flexmem_client *other = fake_client_open(test, ctx->table, 7);
	enum flexmem_reason refusal = FLEXMEM_REASON_NONE;
	struct flexmem_quota quota = {
		.flags = FLEXMEM_QUOTA_GUARANTEE,
		.kind = FLEXMEM_OWNER_USER,
		.resource = FLEXMEM_RESOURCE_SLOTS,
		.guarantee = 1,
	};
	struct flexmem_region *region;

	KUNIT_ASSERT_EQ(test, 0, flexmem_quota_set(&ctx->table->accounts,
						   &quota, fake_uid(7)));
	region = fake_table_acquire_for(ctx->table, other->account, false, 128,
					&refusal);
	KUNIT_ASSERT_FALSE(test, IS_ERR(region));
	expect_reason(test, ctx, 12 * GIB, false, FLEXMEM_REASON_GUARANTEE, 0,
		      0, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->place.largest_kept, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->place.regions, 1);
}

static void reason_max_regions(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.max_regions = 1;
	ctx = make(test, param_mode(test), 8, PLENTY, &settings);
	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_MAX_REGIONS, 0, 0,
		      12 * GIB);
}

static void reason_fragmentation(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 2);

	split(test, ctx, 0, 4 * GIB);
	split(test, ctx, 1, 6 * GIB);
	expect_reason(test, ctx, 4 * GIB + 128, false,
		      FLEXMEM_REASON_FRAGMENTATION, 14 * GIB, 4 * GIB,
		      12 * GIB);
	expect_reason(test, ctx, 12 * GIB, false, FLEXMEM_REASON_FRAGMENTATION,
		      14 * GIB, 4 * GIB, 12 * GIB);
}

static void reason_fragmentation_of_the_last_byte(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);

	split(test, ctx, 0, 4 * GIB);
	expect_reason(test, ctx, 8 * GIB, false, FLEXMEM_REASON_FRAGMENTATION,
		      8 * GIB, 4 * GIB, 12 * GIB);
	expect_reason(test, ctx, 8 * GIB + 128, false, FLEXMEM_REASON_SLOTS,
		      8 * GIB, 4 * GIB, 12 * GIB);
}

static void reason_fragmentation_by_alignment(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);

	occupy(test, ctx, 0, 11 * GIB + 128);
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(fake_alloc(ctx->table, 128, GIB, false,
					   &ctx->place)));
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_FRAGMENTATION);
	KUNIT_EXPECT_EQ(test, ctx->place.largest_free, GIB - 128);
}

/* Not just in pieces: nor does the device have another piece. */
static void fragmentation_does_not_hide_exhaustion(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 12 * GIB);
	struct fake_block *first;

	first = expect_at(test, ctx, 4 * GIB, false, 0, 0);
	expect_tensor(test, ctx, 4 * GIB, 0, 4 * GIB);
	fake_free(first);
	expect_reason(test, ctx, 8 * GIB, false, FLEXMEM_REASON_FRAGMENTATION,
		      8 * GIB, 4 * GIB, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->place.region_reason,
			FLEXMEM_REASON_CAPACITY);
	KUNIT_EXPECT_EQ(test, ctx->place.regions, 1);
	/* What was too much in any case has the one reason. */
	expect_reason(test, ctx, 9 * GIB, false, FLEXMEM_REASON_CAPACITY,
		      8 * GIB, 4 * GIB, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->place.region_reason, FLEXMEM_REASON_NONE);
}

static void expect_in_pieces(struct kunit *test, struct ctx *ctx,
			     enum flexmem_reason reason)
{
	struct fake_block *block;

	block = fake_alloc(ctx->table, 256, 256, false, &ctx->place);
	KUNIT_EXPECT_EQ(test, PTR_ERR(block), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->place.reason, reason);
	KUNIT_EXPECT_EQ(test, ctx->place.region_reason, FLEXMEM_REASON_SLOTS);
	KUNIT_EXPECT_EQ(test, ctx->place.largest_free, 256);
}

/* D15: the hole that would do is the one too many. */
static void reason_alignment_if_the_search_gives_up(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);
	struct fake_block **hole, *last;
	unsigned int i;

	hole = kunit_kcalloc(test, FLEXMEM_FIT_TRIES, sizeof(*hole),
			     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hole);
	occupy(test, ctx, 0, 128);
	for (i = 0; i < FLEXMEM_FIT_TRIES; i++) {
		hole[i] = occupy(test, ctx, 0, 256);
		occupy(test, ctx, 0, 256);
	}
	occupy(test, ctx, 0, 128);
	last = occupy(test, ctx, 0, 256);
	occupy(test, ctx, 0, region_in(test, ctx, 0)->blocks.free);

	for (i = 0; i < FLEXMEM_FIT_TRIES; i++)
		fake_free(hole[i]);
	/* None of them is aligned, and all were looked at. */
	expect_in_pieces(test, ctx, FLEXMEM_REASON_FRAGMENTATION);
	fake_free(last);
	expect_in_pieces(test, ctx, FLEXMEM_REASON_ALIGNMENT);
	/* It comes to its turn with one less before it. */
	occupy(test, ctx, 0, 256);
	KUNIT_EXPECT_EQ(test, 0,
			PTR_ERR_OR_ZERO(fake_alloc(ctx->table, 256, 256, false,
						   &ctx->place)));
}

static void reason_region_size_acquires_nothing(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);

	expect_reason(test, ctx, 12 * GIB + 128, false,
		      FLEXMEM_REASON_REGION_SIZE, 0, 0, 12 * GIB);
	expect_log(test, ctx, "");
	KUNIT_EXPECT_FALSE(test,
			   ctx->table->domain.exhausted[FLEXMEM_KIND_TENSOR]);
}

static void reason_region_size_goes_by_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 11 * GIB);

	expect_reason(test, ctx, 8 * GIB + 128, false,
		      FLEXMEM_REASON_REGION_SIZE, 0, 0, 8 * GIB);
	expect_log(test, ctx, "");
	expect_tensor(test, ctx, 8 * GIB, 0, 0);
}

static void reason_region_size_has_the_figures(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 2);

	split(test, ctx, 0, 2 * GIB);
	expect_reason(test, ctx, U64_MAX - 127, false,
		      FLEXMEM_REASON_REGION_SIZE, 22 * GIB, 12 * GIB,
		      12 * GIB);
}

static void reason_is_of_the_pool_that_is_asked(struct kunit *test)
{
	struct ctx *ctx = make_program_slots(test, param_order(test));

	expect_at(test, ctx, 128, true, 1, 0);
	expect_at(test, ctx, 1 * GIB, false, 0, 0);
	expect_reason(test, ctx, 5 * GIB, true, FLEXMEM_REASON_SLOTS,
		      4 * GIB - 128, 4 * GIB - 128, 12 * GIB);
	expect_reason(test, ctx, 12 * GIB, false, FLEXMEM_REASON_SLOTS,
		      11 * GIB, 11 * GIB, 12 * GIB);
}

/* Recovery. */

static void recovers_after_a_free(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 1, PLENTY);
	struct fake_block *block;

	expect_tensor(test, ctx, 6 * GIB, 0, 0);
	block = expect_at(test, ctx, 6 * GIB, false, 0, 6 * GIB);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_SLOTS, 0, 0,
		      12 * GIB);
	fake_free(block);
	expect_tensor(test, ctx, 6 * GIB, 0, 6 * GIB);
}

static void recovers_from_fragmentation(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);
	struct fake_block *block[6];
	unsigned int i;

	for (i = 0; i < 6; i++)
		block[i] = expect_at(test, ctx, 2 * GIB, false, 0,
				     i * 2 * GIB);
	for (i = 0; i < 6; i += 2)
		fake_free(block[i]);
	expect_reason(test, ctx, 4 * GIB, false, FLEXMEM_REASON_FRAGMENTATION,
		      6 * GIB, 2 * GIB, 12 * GIB);
	for (i = 1; i < 6; i += 2)
		fake_free(block[i]);
	expect_tensor(test, ctx, 12 * GIB, 0, 0);
}

static void recovers_with_new_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 12 * GIB);

	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      12 * GIB);
	ctx->fake->capacity = 24 * GIB;
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_new_capacity(ctx->table));
	expect_tensor(test, ctx, 12 * GIB, 1, 0);
}

/* Whoever needs a region next asks for a capacity that could not be learnt. */
static void unknown_capacity_is_asked_for_again(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 3 * GIB);

	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_REGION_SIZE, 0, 0,
		      0);
	ctx->fake->capacity = 4 * GIB;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 2, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table),
			-ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 128, false)), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_NONE);
	expect_tensor(test, ctx, 128, 0, 0);
	expect_tensor(test, ctx, 128, 0, 128);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_CAPACITY], 3);
}

/* Also if the table was exhausted when the capacity changed. */
static void unknown_capacity_reopens(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 4 * GIB);

	expect_tensor(test, ctx, 4 * GIB, 0, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      4 * GIB);
	ctx->fake->capacity = 12 * GIB;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	expect_tensor(test, ctx, 8 * GIB, 1, 0);
}

/* A26: a region may be had again, so one is acquired before the old is used. */
static void unknown_capacity_goes_before_what_fits(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    12 * GIB);

	expect_tensor(test, ctx, 128, 0, 0);
	expect_tensor(test, ctx, 128, 0, 128);
	ctx->fake->capacity = 24 * GIB;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	expect_tensor(test, ctx, 128, 1, 0);
}

/* A firmware at work is not waited for, but not forgotten either. */
static void new_capacity_waits_for_nobody(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 3 * GIB);
	int rc;

	ctx->fake->capacity = 4 * GIB;
	mutex_lock(&ctx->table->acquire_lock);
	rc = flexmem_table_new_capacity(ctx->table);
	mutex_unlock(&ctx->table->acquire_lock);
	KUNIT_EXPECT_EQ(test, rc, 0);
	expect_log(test, ctx, "");
	expect_tensor(test, ctx, 128, 0, 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_CAPACITY], 1);
}

static void what_fits_asks_for_no_capacity(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 1);

	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	fake_device_forget(ctx->fake);
	expect_tensor(test, ctx, 128, 0, 0);
	expect_log(test, ctx, "");
}

static void nothing_is_placed_after_removal(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);

	expect_tensor(test, ctx, 128, 0, 0);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 128, false)), -ENODEV);
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_NONE);
}

/* Firmware. */

static void firmware_error_when_nothing_fits(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);

	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 128, false)), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_NONE);
	KUNIT_EXPECT_EQ(test, ctx->place.total_free, 0);
	expect_tensor(test, ctx, 128, 1, 0);
}

static void firmware_error_does_not_matter_if_it_fits(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);

	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -EIO);
	expect_tensor(test, ctx, 128, 0, 128);
	fake_device_fail(ctx->fake, FAKE_SLOT_SET, 1, 1, -EIO);
	expect_tensor(test, ctx, 128, 0, 256);
	expect_tensor(test, ctx, 128, 1, 0);
}

/* Time is let pass by moving the next probe, not by waiting for it. */
static void let_probe_in(struct ctx *ctx, unsigned long after)
{
	WRITE_ONCE(ctx->table->function.probe_at, jiffies + after);
}

static void dead_firmware_costs_one_timeout(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);
	unsigned int *calls = &ctx->fake->calls[FAKE_ACQUIRE];

	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 99, -ETIMEDOUT);
	expect_tensor(test, ctx, 128, 0, 128);
	KUNIT_EXPECT_EQ(test, *calls, 2);
	/* What is there is enough: nobody asks for more, until it is time. */
	let_probe_in(ctx, 3600 * HZ);
	expect_tensor(test, ctx, 128, 0, 256);
	expect_tensor(test, ctx, 128, 0, 384);
	KUNIT_EXPECT_EQ(test, *calls, 2);
	let_probe_in(ctx, 0);
	expect_tensor(test, ctx, 128, 0, 512);
	KUNIT_EXPECT_EQ(test, *calls, 3);
	/* And who needs it asks at any time. */
	let_probe_in(ctx, 3600 * HZ);
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 12 * GIB, false)), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, *calls, 4);

	/* It answers again: all is as before. */
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 0, 0);
	let_probe_in(ctx, 3600 * HZ);
	expect_tensor(test, ctx, 128, 0, 640);
	let_probe_in(ctx, 0);
	expect_tensor(test, ctx, 128, 1, 0);
	expect_tensor(test, ctx, 128, 2, 0);
}

static void who_is_refused_leaves_the_probe(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);
	struct flexmem_function *function = &ctx->table->function;

	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	expect_tensor(test, ctx, 128, 0, 128);
	let_probe_in(ctx, 0);
	KUNIT_EXPECT_EQ(test, -ENOMEM, PTR_ERR(try(ctx, PLENTY, false)));
	KUNIT_EXPECT_TRUE(test, flexmem_function_may_probe(function));
	let_probe_in(ctx, 0);
	KUNIT_EXPECT_EQ(test, -ENOMEM, PTR_ERR(try(ctx, PLENTY, false)));
	/* Somebody else finds out that it is well. */
	expect_tensor(test, ctx, 128, 1, 0);
	KUNIT_EXPECT_FALSE(test, function->doubt);
}

/* Also who is only found out about when it is to get a region. */
static void who_may_have_no_slot_leaves_the_probe(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);
	struct flexmem_function *function = &ctx->table->function;
	u64 *limit = fake_table_account(ctx->table)->limit, capacity;

	expect_tensor(test, ctx, 128, 0, 0);
	/* Nothing that would have to be undone first. */
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_function_capacity(function, &capacity));
	limit[FLEXMEM_RESOURCE_SLOTS] = 1;
	let_probe_in(ctx, 0);
	expect_tensor(test, ctx, 128, 0, 128);
	KUNIT_EXPECT_TRUE(test, function->doubt);
	limit[FLEXMEM_RESOURCE_SLOTS] = 2;
	expect_tensor(test, ctx, 128, 1, 0);
	KUNIT_EXPECT_FALSE(test, function->doubt);
}

static void limit_and_error(struct kunit *test, int rc)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8,
				    PLENTY);
	struct flexmem_memory mem;

	expect_tensor(test, ctx, 12 * GIB, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fake_table_acquire(ctx->table, false,
							   0)));
	fake_table_account(ctx->table)->limit[FLEXMEM_RESOURCE_SLOTS] = 1;
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_function_acquire(&ctx->table->function, GIB,
						 &mem));
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 9, rc);
	KUNIT_EXPECT_EQ(test, rc, PTR_ERR(try(ctx, 128, false)));
	KUNIT_EXPECT_EQ(test, ctx->place.reason, FLEXMEM_REASON_NONE);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 0, 0);
}

static void timeout_has_no_reason(struct kunit *test)
{
	limit_and_error(test, -ETIMEDOUT);
}

static void kernel_memory_has_no_reason(struct kunit *test)
{
	limit_and_error(test, -ENOMEM);
}

static void one_probe_an_interval(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_LOAD_BALANCE, 8,
				    PLENTY);
	struct flexmem_function *function = &ctx->table->function;
	unsigned long begin = jiffies;

	KUNIT_EXPECT_TRUE(test, flexmem_function_may_probe(function));
	KUNIT_EXPECT_TRUE(test, flexmem_function_may_probe(function));
	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	expect_tensor(test, ctx, 128, 0, 128);
	let_probe_in(ctx, 0);
	KUNIT_EXPECT_TRUE(test, flexmem_function_may_probe(function));
	/* The next one an interval later. */
	KUNIT_EXPECT_FALSE(test, time_before(READ_ONCE(function->probe_at),
					     begin + HZ));
	let_probe_in(ctx, 3600 * HZ);
	KUNIT_EXPECT_FALSE(test, flexmem_function_may_probe(function));
}

struct killed {
	struct flexmem_table *table;
	struct completion started;
	struct completion done;
	long rc;
};

static int allocate_until_killed(void *data)
{
	struct killed *killed = data;

	allow_signal(SIGKILL);
	complete(&killed->started);
	killed->rc = PTR_ERR(fake_alloc(killed->table, 128, FLEXMEM_ALIGN,
					false, NULL));
	complete_all(&killed->done);
	return 0;
}

static bool somebody_waits(wait_queue_head_t *queue)
{
	bool waits;

	spin_lock(&queue->lock);
	waits = !list_empty(&queue->head);
	spin_unlock(&queue->lock);
	return waits;
}

/* A command of somebody else times out while it waits its turn. */
static void who_waited_meanwhile_does_not_ask(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);
	struct killed late = { .table = ctx->table };
	struct flexmem_memory mem;
	struct task_struct *task;

	init_completion(&late.started);
	init_completion(&late.done);
	flexmem_table_suspend(ctx->table);
	task = kthread_run(allocate_until_killed, &late, "flexmem_kunit");
	if (!IS_ERR(task)) {
		while (!somebody_waits(&ctx->table->function.resumed))
			msleep(20);
		fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
		KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
				flexmem_function_acquire(&ctx->table->function,
							 GIB, &mem));
		flexmem_table_resume(ctx->table);
		wait_for_completion(&late.done);
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	KUNIT_EXPECT_EQ(test, late.rc, -ETIMEDOUT);
	expect_log(test, ctx, "acquire 1G ETIMEDOUT");
}

static void waiting_ends_when_killed(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);
	struct killed killed = { .table = ctx->table };
	struct task_struct *task;
	bool in_time = false;

	init_completion(&killed.started);
	init_completion(&killed.done);
	mutex_lock(&ctx->table->acquire_lock);
	task = kthread_run(allocate_until_killed, &killed, "flexmem_kunit");
	if (!IS_ERR(task)) {
		wait_for_completion(&killed.started);
		msleep(20);
		send_sig(SIGKILL, task, 1);
		in_time = wait_for_completion_timeout(&killed.done, 60 * HZ);
	}
	mutex_unlock(&ctx->table->acquire_lock);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&killed.done);
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_EQ(test, killed.rc, -EINTR);
	expect_log(test, ctx, "");
}

/* A4: the same calls, the same places, whatever the function. */

#define SAME_OPS 400
#define SAME_LIVE 64

struct twin {
	struct ctx *ctx;
	struct fake_block *live[SAME_LIVE];
};

static u64 random_size(struct rnd_state *rnd)
{
	u64 top = BIT_ULL(7 + prandom_u32_state(rnd) % 27);

	return ALIGN(top + prandom_u32_state(rnd) % top, FLEXMEM_ALIGN);
}

static void same_step(struct kunit *test, struct twin *twin, unsigned int i,
		      u64 size, u64 alignment, bool program)
{
	struct fake_block *a, *b;

	if (twin[0].live[i]) {
		fake_free(twin[0].live[i]);
		fake_free(twin[1].live[i]);
		twin[0].live[i] = NULL;
		return;
	}
	a = fake_alloc(twin[0].ctx->table, size, alignment, program,
		       &twin[0].ctx->place);
	b = fake_alloc(twin[1].ctx->table, size, alignment, program,
		       &twin[1].ctx->place);
	KUNIT_ASSERT_EQ(test, IS_ERR(a), IS_ERR(b));
	if (IS_ERR(a)) {
		KUNIT_EXPECT_EQ(test, PTR_ERR(a), PTR_ERR(b));
		KUNIT_EXPECT_EQ(test, twin[0].ctx->place.total_free,
				twin[1].ctx->place.total_free);
		return;
	}
	twin[0].live[i] = a;
	twin[1].live[i] = b;
	KUNIT_ASSERT_EQ(test, a->region->slot, b->region->slot);
	KUNIT_ASSERT_EQ(test, a->block->start, b->block->start);
}

static void pf_and_vf_place_alike(struct kunit *test)
{
	const struct pair *pair = test->param_value;
	struct flexmem_settings settings = fake_settings();
	struct rnd_state rnd;
	struct twin *twin;
	unsigned int i;

	settings.fit = pair->fit;
	settings.order = pair->order;
	settings.program_slots = 1;
	twin = kunit_kcalloc(test, 2, sizeof(*twin), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, twin);
	for (i = 0; i < 2; i++)
		twin[i].ctx = make(test, modes[i], 12, 60 * GIB, &settings);

	prandom_seed_state(&rnd, 4711);
	for (i = 0; i < SAME_OPS; i++) {
		u64 size = random_size(&rnd);
		u64 alignment = BIT_ULL(7 + prandom_u32_state(&rnd) % 24);
		u32 roll = prandom_u32_state(&rnd);

		same_step(test, twin, roll % SAME_LIVE, size,
			  roll & BIT(20) ? alignment : FLEXMEM_ALIGN,
			  !(roll >> 29));
	}
}

#define MODE_CASE(name) KUNIT_CASE_PARAM(name, mode_gen_params)
#define ORDER_CASE(name) KUNIT_CASE_PARAM(name, order_gen_params)

static struct kunit_case placement_cases[] = {
	KUNIT_CASE(load_balance_tries_the_emptiest_first),
	KUNIT_CASE(fill_first_tries_the_fullest_first),
	ORDER_CASE(equal_regions_go_by_slot),
	ORDER_CASE(fragmented_region_is_passed_over),
	ORDER_CASE(tries_every_region),
	ORDER_CASE(alignment_is_of_the_offset),
	KUNIT_CASE(load_balance_acquires_until_exhausted),
	KUNIT_CASE(load_balance_allocates_from_the_new_region),
	KUNIT_CASE(load_balance_without_capacity_uses_what_is_there),
	KUNIT_CASE(load_balance_skips_sizes_without_locking),
	KUNIT_CASE(fill_first_acquires_when_nothing_fits),
	KUNIT_CASE(fill_first_acquires_when_fragmented),
	ORDER_CASE(preallocated_asks_for_nothing),
	ORDER_CASE(programs_have_their_own_slots),
	ORDER_CASE(tensors_never_use_program_slots),
	ORDER_CASE(programs_never_use_tensor_slots),
	ORDER_CASE(programs_share_without_slots_of_their_own),
	ORDER_CASE(large_program_gets_a_large_region),
	ORDER_CASE(reason_capacity),
	KUNIT_CASE(reason_capacity_of_a_large_request),
	ORDER_CASE(reason_slots),
	ORDER_CASE(reason_slots_when_the_firmware_refuses),
	ORDER_CASE(guarantee_knows_of_a_refused_slot),
	ORDER_CASE(reason_guarantee),
	MODE_CASE(reason_max_regions),
	ORDER_CASE(reason_fragmentation),
	ORDER_CASE(reason_fragmentation_of_the_last_byte),
	ORDER_CASE(reason_fragmentation_by_alignment),
	ORDER_CASE(fragmentation_does_not_hide_exhaustion),
	ORDER_CASE(reason_alignment_if_the_search_gives_up),
	ORDER_CASE(reason_region_size_acquires_nothing),
	ORDER_CASE(reason_region_size_goes_by_capacity),
	ORDER_CASE(reason_region_size_has_the_figures),
	ORDER_CASE(reason_is_of_the_pool_that_is_asked),
	ORDER_CASE(recovers_after_a_free),
	ORDER_CASE(recovers_from_fragmentation),
	ORDER_CASE(recovers_with_new_capacity),
	ORDER_CASE(unknown_capacity_is_asked_for_again),
	ORDER_CASE(unknown_capacity_reopens),
	KUNIT_CASE(unknown_capacity_goes_before_what_fits),
	ORDER_CASE(new_capacity_waits_for_nobody),
	ORDER_CASE(what_fits_asks_for_no_capacity),
	ORDER_CASE(nothing_is_placed_after_removal),
	ORDER_CASE(firmware_error_when_nothing_fits),
	KUNIT_CASE(firmware_error_does_not_matter_if_it_fits),
	KUNIT_CASE(dead_firmware_costs_one_timeout),
	KUNIT_CASE(who_is_refused_leaves_the_probe),
	KUNIT_CASE(who_may_have_no_slot_leaves_the_probe),
	KUNIT_CASE(timeout_has_no_reason),
	KUNIT_CASE(kernel_memory_has_no_reason),
	KUNIT_CASE(one_probe_an_interval),
	ORDER_CASE(who_waited_meanwhile_does_not_ask),
	ORDER_CASE(waiting_ends_when_killed),
	KUNIT_CASE_PARAM(pf_and_vf_place_alike, pair_gen_params),
	{}
};

static struct kunit_suite placement_suite = {
	.name = "flexmem_placement",
	.test_cases = placement_cases,
};

kunit_test_suite(placement_suite);
