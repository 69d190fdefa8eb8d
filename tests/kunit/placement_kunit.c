// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: the choice of the region, and the acquisition of new ones.
 */

#include <linux/prandom.h>

#include "placements.h"

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

/* ---- the order of regions ---- */

static void load_balance_tries_the_emptiest_first(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, FLEXMEM_ORDER_LOAD_BALANCE,
					    3);

	occupy(test, ctx, 0, 3 * GIB);
	occupy(test, ctx, 1, 1 * GIB);
	occupy(test, ctx, 2, 5 * GIB);
	expect_tensor(test, ctx, GIB, 1, 1 * GIB);
	expect_tensor(test, ctx, GIB, 1, 2 * GIB);
	/* Now slots 0 and 1 have 9 GiB free each. */
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
	/*
	 * The request does not fit in the fullest region, so it goes to the
	 * fullest region in which it fits.
	 */
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

static void fragmented_region_is_passed_over(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, param_order(test), 3);
	unsigned int first, last;

	/*
	 * The regions have 10, 8 and 6 GiB free. The free bytes of the first
	 * region are in two halves.
	 */
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

/* Makes holes of 128 bytes that are not aligned to 256, and fills the rest. */
static void make_bad_holes(struct kunit *test, struct ctx *ctx,
			   unsigned int slot, unsigned int nr)
{
	struct fake_block **hole;
	unsigned int i;

	hole = kunit_kcalloc(test, nr, sizeof(*hole), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hole);
	for (i = 0; i < nr; i++) {
		occupy(test, ctx, slot, 128);
		hole[i] = occupy(test, ctx, slot, 128);
	}
	occupy(test, ctx, slot, 12 * GIB - 256 * nr);
	for (i = 0; i < nr; i++)
		fake_free(hole[i]);
}

static void tries_of_an_alignment_are_of_all_regions(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, FLEXMEM_ORDER_LOAD_BALANCE,
					    3);
	struct fake_block *aligned, *block;

	make_bad_holes(test, ctx, 0, FLEXMEM_FIT_TRIES - 100);
	make_bad_holes(test, ctx, 1, FLEXMEM_FIT_TRIES - 100);
	occupy(test, ctx, 2, 128);
	aligned = occupy(test, ctx, 2, 256);
	occupy(test, ctx, 2, 12 * GIB - 384);
	block = fake_alloc(ctx->table, 128, 256, false, &ctx->request);
	KUNIT_EXPECT_EQ(test, PTR_ERR(block), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->request.tries, FLEXMEM_FIT_TRIES);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_ALIGNMENT);
	/* What fits at any misalignment is found in each region. */
	fake_free(aligned);
	block = fake_alloc(ctx->table, 128, 256, false, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	KUNIT_EXPECT_EQ(test, block->region->slot, 2);
	KUNIT_EXPECT_EQ(test, block->block->start, 256);
}

/* ---- acquisition of regions ---- */

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

/* The new region is tried first, even if it is not the emptiest. */
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
	/*
	 * The first ALLOC exhausts the slots. So both allocations go to the
	 * emptier region.
	 */
	expect_tensor(test, ctx, 128, 0, 128);
	expect_log(test, ctx, "acquire 4G ENOSPC");
	expect_tensor(test, ctx, 128, 0, 256);
	expect_log(test, ctx, "");
}

/*
 * The device refuses all sizes except the smallest, so regions can still be
 * acquired. Later requests do not ask for the refused sizes again, whether they
 * succeed or fail.
 */
static void what_was_refused_sends_no_command(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 8, 17 * GIB);
	struct fake_block *block;
	unsigned int i;

	expect_tensor(test, ctx, 128, 0, 0);
	fake_device_forget(ctx->fake);
	for (i = 0; i < 1000; i++) {
		block = try(ctx, 6 * GIB, false);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
		KUNIT_ASSERT_EQ(test, -ENOMEM,
				PTR_ERR(try(ctx, 6 * GIB, false)));
		KUNIT_ASSERT_EQ(test, ctx->request.reason,
				FLEXMEM_REASON_CAPACITY);
		fake_free(block);
	}
	expect_log(test, ctx, "acquire 12G ENOSPC, acquire 8G ENOSPC");
	expect_tensor(test, ctx, 4 * GIB,
		      param_order(test) == FLEXMEM_ORDER_LOAD_BALANCE,
		      param_order(test) == FLEXMEM_ORDER_LOAD_BALANCE ? 0 : 128);
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
	expect_tensor(test, ctx, GIB, 2, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      12 * GIB);
	expect_log(test, ctx, "");
}

/*
 * A search finds the region under RCU, which keeps the struct only. The blocks
 * may be freed at once.
 */
static void a_dying_region_has_no_room(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8, PLENTY);
	struct flexmem_region *region;

	fake_free(expect_at(test, ctx, 128, false, 0, 0));
	region = region_in(test, ctx, 0);
	KUNIT_EXPECT_EQ(test, flexmem_region_room(region), 12 * GIB);
	KUNIT_ASSERT_TRUE(test, flexmem_region_retire(region));
	KUNIT_EXPECT_EQ(test, flexmem_region_room(region), 0);
	flexmem_region_revive(region);
	KUNIT_EXPECT_EQ(test, flexmem_region_room(region), 12 * GIB);
}

/* The same for the figures of a failure. */
static void figures_leave_a_dying_region_out(struct kunit *test)
{
	struct ctx *ctx = make_preallocated(test, FLEXMEM_ORDER_FILL_FIRST, 2);
	struct flexmem_region *dying = region_in(test, ctx, 1);

	occupy(test, ctx, 0, GIB);
	KUNIT_ASSERT_TRUE(test, flexmem_region_retire(dying));
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, 12 * GIB, false)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.regions, 1);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.total, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, 11 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.largest, 11 * GIB);
	flexmem_region_revive(dying);
	expect_tensor(test, ctx, 12 * GIB, 1, 0);
}

/* ---- placement of programs ---- */

static u64 bytes_of_programs(struct kunit *test, struct ctx *ctx,
			     unsigned int slot)
{
	return region_in(test, ctx, slot)->used_program;
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

/* The same calls give the same addresses on a PF and on a VF. */

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
		       &twin[0].ctx->request);
	b = fake_alloc(twin[1].ctx->table, size, alignment, program,
		       &twin[1].ctx->request);
	KUNIT_ASSERT_EQ(test, IS_ERR(a), IS_ERR(b));
	if (IS_ERR(a)) {
		KUNIT_EXPECT_EQ(test, PTR_ERR(a), PTR_ERR(b));
		KUNIT_EXPECT_EQ(test, twin[0].ctx->request.sum.free,
				twin[1].ctx->request.sum.free);
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
		twin[i].ctx = make(test,
				   i ? FLEXMEM_MODE_VF : FLEXMEM_MODE_PF, 12,
				   60 * GIB, &settings);

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

static struct kunit_case placement_cases[] = {
	KUNIT_CASE(load_balance_tries_the_emptiest_first),
	KUNIT_CASE(fill_first_tries_the_fullest_first),
	ORDER_CASE(equal_regions_go_by_slot),
	ORDER_CASE(fragmented_region_is_passed_over),
	ORDER_CASE(tries_every_region),
	ORDER_CASE(alignment_is_of_the_offset),
	KUNIT_CASE(tries_of_an_alignment_are_of_all_regions),
	KUNIT_CASE(load_balance_acquires_until_exhausted),
	KUNIT_CASE(load_balance_allocates_from_the_new_region),
	KUNIT_CASE(load_balance_without_capacity_uses_what_is_there),
	ORDER_CASE(what_was_refused_sends_no_command),
	KUNIT_CASE(load_balance_skips_sizes_without_locking),
	KUNIT_CASE(fill_first_acquires_when_nothing_fits),
	KUNIT_CASE(fill_first_acquires_when_fragmented),
	KUNIT_CASE(a_dying_region_has_no_room),
	KUNIT_CASE(figures_leave_a_dying_region_out),
	ORDER_CASE(preallocated_asks_for_nothing),
	ORDER_CASE(programs_have_their_own_slots),
	ORDER_CASE(tensors_never_use_program_slots),
	ORDER_CASE(programs_never_use_tensor_slots),
	ORDER_CASE(programs_share_without_slots_of_their_own),
	ORDER_CASE(large_program_gets_a_large_region),
	KUNIT_CASE_PARAM(pf_and_vf_place_alike, pair_gen_params),
	{}
};

static struct kunit_suite placement_suite = {
	.name = "flexmem_placement",
	.test_cases = placement_cases,
};

kunit_test_suite(placement_suite);
