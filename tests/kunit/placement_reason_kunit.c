// SPDX-License-Identifier: GPL-2.0
/* The reasons that a failed allocation reports. */

#include "placements.h"

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

static void reason_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 17 * GIB);

	expect_tensor(test, ctx, 11 * GIB, 0, 0);
	expect_tensor(test, ctx, 4 * GIB, 1, 0);
	expect_reason(test, ctx, 2 * GIB, false, FLEXMEM_REASON_CAPACITY,
		      1 * GIB, 1 * GIB, 12 * GIB);
	/* The last GiB is too small for this request, but not for all. */
	KUNIT_EXPECT_FALSE(test,
			   fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, try(ctx, GIB, false));
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, try(ctx, GIB, false));
	KUNIT_EXPECT_TRUE(test,
			  fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
}

/*
 * A large request fails for lack of capacity. Smaller regions were not tried,
 * so a smaller request may still succeed.
 */
static void reason_capacity_of_a_large_request(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8,
				    17 * GIB);

	expect_tensor(test, ctx, 11 * GIB, 0, 0);
	expect_reason(test, ctx, 6 * GIB, false, FLEXMEM_REASON_CAPACITY,
		      1 * GIB, 1 * GIB, 12 * GIB);
	KUNIT_EXPECT_FALSE(test,
			   fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
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

/*
 * An owner at its slot limit may not use a new region, so the driver acquires
 * no region.
 */
static void limit_of_slots_acquires_nothing(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);
	struct flexmem_client *client = fake_client_open(test, ctx->table, 7);
	struct flexmem_account *account = client->account;
	struct fake_block *first, *block;

	account->parent->limit[FLEXMEM_RESOURCE_REGIONS] = 1;
	first = fake_alloc_for(ctx->table, account, 8 * GIB, &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, first);
	fake_device_forget(ctx->fake);
	block = fake_alloc_for(ctx->table, account, 8 * GIB, &ctx->request);
	KUNIT_EXPECT_EQ(test, PTR_ERR(block), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_REGION_LIMIT);
	expect_log(test, ctx, "");
	/*
	 * A further block in a region in which the owner has bytes does not
	 * count against the limit.
	 */
	block = fake_alloc_for(ctx->table, account, 4 * GIB, &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	expect_log(test, ctx, "");
	fake_free(block);
	fake_free(first);
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
					   &ctx->request)));
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_FRAGMENTATION);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.largest, GIB - 128);
}

/* The memory is fragmented, and the device has no further memory. */
static void fragmentation_does_not_hide_exhaustion(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 12 * GIB);
	struct fake_block *first;

	first = expect_at(test, ctx, 4 * GIB, false, 0, 0);
	expect_tensor(test, ctx, 4 * GIB, 0, 4 * GIB);
	fake_free(first);
	expect_reason(test, ctx, 8 * GIB, false, FLEXMEM_REASON_FRAGMENTATION,
		      8 * GIB, 4 * GIB, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->request.region_reason,
			FLEXMEM_REASON_CAPACITY);
	KUNIT_EXPECT_EQ(test, ctx->request.regions, 1);
	/*
	 * A request for more than all free bytes has only the reason CAPACITY.
	 */
	expect_reason(test, ctx, 9 * GIB, false, FLEXMEM_REASON_CAPACITY,
		      8 * GIB, 4 * GIB, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->request.region_reason, FLEXMEM_REASON_NONE);
}

static void expect_in_pieces(struct kunit *test, struct ctx *ctx,
			     enum flexmem_reason reason)
{
	struct fake_block *block;

	block = fake_alloc(ctx->table, 256, 256, false, &ctx->request);
	KUNIT_EXPECT_EQ(test, PTR_ERR(block), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, reason);
	KUNIT_EXPECT_EQ(test, ctx->request.region_reason, FLEXMEM_REASON_SLOTS);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.largest, 256);
}

/* The bounded search ends one hole before the hole that would fit. */
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
	/* The search has tried all holes, and none suits the alignment. */
	expect_in_pieces(test, ctx, FLEXMEM_REASON_FRAGMENTATION);
	fake_free(last);
	expect_in_pieces(test, ctx, FLEXMEM_REASON_ALIGNMENT);
	/* A smaller alignment helps. */
	last = fake_alloc(ctx->table, 256, 128, false, &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, last);
	fake_free(last);
	expect_in_pieces(test, ctx, FLEXMEM_REASON_ALIGNMENT);
	/*
	 * Fills one of the holes in front of the hole that fits. Then the
	 * search reaches the hole that fits.
	 */
	occupy(test, ctx, 0, 256);
	KUNIT_EXPECT_EQ(test, 0,
			PTR_ERR_OR_ZERO(fake_alloc(ctx->table, 256, 256, false,
						   &ctx->request)));
}

static void reason_region_size_acquires_nothing(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, PLENTY);

	expect_reason(test, ctx, 12 * GIB + 128, false,
		      FLEXMEM_REASON_REGION_SIZE, 0, 0, 12 * GIB);
	expect_log(test, ctx, "");
	KUNIT_EXPECT_FALSE(test,
			   fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
}

static void reason_region_size_goes_by_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 11 * GIB);

	expect_reason(test, ctx, 11 * GIB + 128, false,
		      FLEXMEM_REASON_REGION_SIZE, 0, 0, 11 * GIB);
	expect_log(test, ctx, "");
	expect_tensor(test, ctx, 11 * GIB, 0, 0);
}

static void reason_region_size_has_the_figures(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 2);

	split(test, ctx, 0, 2 * GIB);
	expect_reason(test, ctx, 1ULL << 62, false,
		      FLEXMEM_REASON_REGION_SIZE, 22 * GIB, 12 * GIB,
		      12 * GIB);
}

static void reason_is_of_the_kind_that_is_asked(struct kunit *test)
{
	struct ctx *ctx = make_program_slots(test, param_order(test));

	expect_at(test, ctx, 128, true, 1, 0);
	expect_at(test, ctx, 1 * GIB, false, 0, 0);
	expect_reason(test, ctx, 5 * GIB, true, FLEXMEM_REASON_SLOTS,
		      4 * GIB - 128, 4 * GIB - 128, 12 * GIB);
	expect_reason(test, ctx, 12 * GIB, false, FLEXMEM_REASON_SLOTS,
		      11 * GIB, 11 * GIB, 12 * GIB);
}

#define MODE_CASE(name) KUNIT_CASE_PARAM(name, mode_gen_params)

static struct kunit_case placement_reason_cases[] = {
	ORDER_CASE(reason_capacity),
	KUNIT_CASE(reason_capacity_of_a_large_request),
	ORDER_CASE(reason_slots),
	ORDER_CASE(reason_slots_when_the_firmware_refuses),
	ORDER_CASE(limit_of_slots_acquires_nothing),
	MODE_CASE(reason_max_regions),
	ORDER_CASE(reason_fragmentation),
	ORDER_CASE(reason_fragmentation_of_the_last_byte),
	ORDER_CASE(reason_fragmentation_by_alignment),
	ORDER_CASE(fragmentation_does_not_hide_exhaustion),
	ORDER_CASE(reason_alignment_if_the_search_gives_up),
	ORDER_CASE(reason_region_size_acquires_nothing),
	ORDER_CASE(reason_region_size_goes_by_capacity),
	ORDER_CASE(reason_region_size_has_the_figures),
	ORDER_CASE(reason_is_of_the_kind_that_is_asked),
	{}
};

static struct kunit_suite placement_reason_suite = {
	.name = "flexmem_placement_reason",
	.test_cases = placement_reason_cases,
};

kunit_test_suite(placement_reason_suite);
