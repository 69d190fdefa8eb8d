// SPDX-License-Identifier: GPL-2.0
/* TRIM releases empty regions. */

#include <linux/delay.h>

#include "regions.h"

static void trim_gives_empty_regions_back(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 3);
	occupy(test, ctx, 1, 128);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 2);
	KUNIT_EXPECT_EQ(test, bytes, 24 * GIB);
	expect_log(test, ctx, "clear 0, release 12G, clear 2, release 12G");
	KUNIT_ASSERT_EQ(test, nr_regions(ctx), 1);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.region[0].slot, 1);
}

static void trim_reopens(struct kunit *test)
{
	struct ctx *ctx = make(test, 2, PLENTY);
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 2);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_open(test, ctx);
	fake_device_forget(ctx->fake);
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
}

static void trim_lets_refused_slots_be_tried_again(struct kunit *test)
{
	struct ctx *ctx = make(test, 2, PLENTY);
	unsigned int nr;
	u64 bytes;

	ctx->fake->refused_slots = BIT(0);
	acquire_regions(test, ctx, 1);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	fake_device_forget(ctx->fake);
	ctx->fake->refused_slots = 0;
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
}

/*
 * Looks twice: the first call notes that the regions are empty. At the second
 * call they have been empty for long enough.
 */
static void release_idle(struct ctx *ctx, unsigned int after_s)
{
	struct flexmem_region *region;
	unsigned int slot;

	mutex_lock(&ctx->table->acquire_lock);
	flexmem_table_release_idle(ctx->table);
	for (slot = 0; slot < ctx->table->slots.nr; slot++) {
		region = flexmem_region_at(ctx->table, slot);
		if (region)
			region->idle_since -= after_s * HZ;
	}
	flexmem_table_release_idle(ctx->table);
	mutex_unlock(&ctx->table->acquire_lock);
}

static struct ctx *make_releasing(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, PLENTY, &settings);
	/*
	 * Set only after the table was made, so that no worker releases idle
	 * regions. The tests call flexmem_table_release_idle() themselves.
	 */
	ctx->table->settings.release_after_s = 60;
	return ctx;
}

static void idle_regions_are_released_but_for_one(struct kunit *test)
{
	struct ctx *ctx = make_releasing(test);

	acquire_regions(test, ctx, 4);
	occupy(test, ctx, 1, 128);
	release_idle(ctx, 59);
	expect_log(test, ctx, "");
	release_idle(ctx, 60);
	expect_log(test, ctx, "clear 3, release 12G");
	release_idle(ctx, 60);
	expect_log(test, ctx, "clear 2, release 12G");
	release_idle(ctx, 60);
	expect_log(test, ctx, "");
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 2);
}

static void released_regions_can_be_acquired_again(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	ctx = make_mode(test, FLEXMEM_MODE_VF, 2, PLENTY, &settings);
	ctx->table->settings.release_after_s = 60;
	acquire_regions(test, ctx, 2);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	release_idle(ctx, 60);
	expect_open(test, ctx);
}

static void used_regions_are_not_idle(struct kunit *test)
{
	struct ctx *ctx = make_releasing(test);
	struct fake_block *block;

	acquire_regions(test, ctx, 2);
	mutex_lock(&ctx->table->acquire_lock);
	flexmem_table_release_idle(ctx->table);
	mutex_unlock(&ctx->table->acquire_lock);
	block = occupy(test, ctx, 1, 128);
	fake_free(block);
	fake_table_region(ctx->table, 0)->idle_since -= 10 * HZ;
	fake_table_region(ctx->table, 1)->idle_since -= 60 * HZ;
	mutex_lock(&ctx->table->acquire_lock);
	flexmem_table_release_idle(ctx->table);
	mutex_unlock(&ctx->table->acquire_lock);
	expect_log(test, ctx, "");
}

/*
 * Makes an empty region dirty, as if owners had just freed their memory and the
 * background scrub had not run yet.
 */
static void dirty_empty_region(struct ctx *ctx, unsigned int slot)
{
	struct flexmem_region *region = fake_table_region(ctx->table, slot);
	struct flexmem_block *block;

	spin_lock(&region->lock);
	block = list_first_entry(&region->blocks.all, struct flexmem_block,
				 link);
	flexmem_block_mark_dirty(block, FLEXMEM_MIXED);
	list_add(&block->residue.link,
		 &region->blocks.residues.dirty);
	spin_unlock(&region->lock);
}

/* A region that is held is not idle. Another region is released instead. */
static void a_hold_keeps_an_idle_region(struct kunit *test)
{
	struct ctx *ctx = make_releasing(test);
	struct flexmem_hold hold;

	acquire_regions(test, ctx, 2);
	dirty_empty_region(ctx, 1);
	ctx->fake->scrubbed = 0;
	hold = fake_hold(&ctx->table->slots, BIT_ULL(0) | BIT_ULL(1));
	release_idle(ctx, 60);
	/* No region is released, so no region is scrubbed for a release. */
	KUNIT_EXPECT_EQ(test, ctx->fake->scrubbed, 0);
	expect_log(test, ctx, "");
	flexmem_slots_unhold(&ctx->table->slots, &hold);
	hold = fake_hold(&ctx->table->slots, BIT_ULL(1));
	release_idle(ctx, 60);
	expect_log(test, ctx, "clear 0, release 12G");
	flexmem_slots_unhold(&ctx->table->slots, &hold);
}

/* The worker looks for idle regions by a timer, which the test waits for. */
static void worker_releases_idle_regions(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;
	unsigned int i;

	settings.release_after_s = 2;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, PLENTY, &settings);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, acquire(ctx, 0));
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, acquire(ctx, 0));
	for (i = 0; i < 1000 && nr_regions(ctx) > 1; i++)
		msleep(100);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 1);
}

static void trim_of_nothing_leaves_the_lock(struct kunit *test)
{
	struct ctx *ctx = make(test, 1, PLENTY);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 1);
	occupy(test, ctx, 0, 128);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, bytes, 0);
	expect_log(test, ctx, "");
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
}

/* Exhaustion ends only for the kind of memory that got a slot back. */
static void trim_leaves_full_kinds_exhausted(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_region *region;
	struct ctx *ctx;
	unsigned int nr;
	u64 bytes;

	settings.program_slots = 1;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 4, PLENTY, &settings);
	region = fake_table_acquire(ctx->table, true, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, region);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, fake_alloc_in(ctx->table, region,
							 128, true));
	acquire_regions(test, ctx, 1);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_TRUE(test,
			  fake_exhausted(ctx->table, FLEXMEM_KIND_PROGRAM));
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			PTR_ERR(fake_table_acquire(ctx->table, true, 0)));
	expect_log(test, ctx, "");
}

static void trim_leaves_held_regions_out(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_hold hold;
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 3);
	occupy(test, ctx, 0, 128);
	hold = fake_hold(&ctx->table->slots, BIT_ULL(0) | BIT_ULL(1));
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_EQ(test, bytes, 12 * GIB);
	expect_log(test, ctx, "clear 2, release 12G");
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 2);
	/* A region that stays can be used at once. */
	occupy(test, ctx, 1, 128);
	flexmem_slots_unhold(&ctx->table->slots, &hold);
}

/* A TRIM that releases nothing is no failure. */
static void trim_may_find_held_regions_only(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_hold hold;
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 1);
	hold = fake_hold(&ctx->table->slots, BIT_ULL(0));
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, bytes, 0);
	/* The region was never retired, so no scrub has left it out. */
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&ctx->table->scrub_work));
	flexmem_slots_unhold(&ctx->table->slots, &hold);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	expect_log(test, ctx, "clear 0, release 12G");
}

/*
 * The background scrub leaves a retired region out. If the region stays, the
 * scrub looks at it again.
 */
static void scrub_finds_a_region_that_trim_leaves(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 1);
	dirty_empty_region(ctx, 0);
	ctx->fake->scrubbed = 0;
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	flush_delayed_work(&ctx->table->scrub_work);
	KUNIT_EXPECT_EQ(test, ctx->fake->scrubbed, 12 * GIB);
}

/* An ALLOC has missed the region while it was retired, so it searches again. */
static void search_learns_that_a_region_stays(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_gauge *gauge = &ctx->table->accounts.gauge;
	unsigned int nr;
	u64 bytes, before;

	acquire_regions(test, ctx, 1);
	before = flexmem_gauge_frees(gauge);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_NE(test, flexmem_gauge_frees(gauge), before);
}

static void retry(struct kunit *test, struct ctx *ctx)
{
	mutex_lock(&ctx->table->acquire_lock);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_retry(ctx->table, false));
	mutex_unlock(&ctx->table->acquire_lock);
}

static void trim_fails_in_the_middle(struct kunit *test)
{
	struct ctx *ctx = make(test, 3, PLENTY);
	int error = param_error(test);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 3);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 2, 1, error);
	KUNIT_EXPECT_EQ(test, error,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_EQ(test, bytes, 12 * GIB);
	expect_open(test, ctx);
	/*
	 * After -EIO the region stays in its slot. After a timeout the region
	 * leaves its slot.
	 */
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), error == -EIO ? 2 : 1);
	retry(test, ctx);
	KUNIT_EXPECT_EQ(test, ctx->fake->taken,
			(error == -EIO ? 2 : 1) * 12 * GIB);
	occupy(test, ctx, error == -EIO ? 1 : 2, 12 * GIB);
}

/*
 * Until the slot is certainly empty, neither the slot nor the memory is used
 * again.
 */
static void unanswered_clear_keeps_slot_and_memory(struct kunit *test)
{
	struct ctx *ctx = make(test, 2, PLENTY);
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, acquire_slot(ctx), 1);
	expect_log(test, ctx,
		   "clear 0 ETIMEDOUT, clear 0 EIO, acquire 12G, set 1");
	retry(test, ctx);
	KUNIT_EXPECT_EQ(test, acquire_slot(ctx), 0);
	expect_log(test, ctx, "clear 0, release 12G, acquire 12G, set 0");
}

/* An ALLOC repeats the pending clear, although the slots count as exhausted. */
static void unanswered_clear_is_repeated_by_a_caller(struct kunit *test)
{
	struct ctx *ctx = make(test, 1, PLENTY);
	struct fake_block *block;
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	block = fake_alloc(ctx->table, 128, FLEXMEM_ALIGN, false, NULL);
	KUNIT_EXPECT_FALSE(test, IS_ERR(block));
	expect_log(test, ctx,
		   "clear 0 ETIMEDOUT, clear 0, release 12G, acquire 12G, set 0");
}

static void reset_and_removal_forget_what_was_unanswered(struct kunit *test)
{
	struct ctx *ctx = make(test, 2, PLENTY);
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_reset(ctx->table));
	KUNIT_EXPECT_EQ(test, ctx->table->function.nr_pieces, 0);
	acquire_regions(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, ctx->table->function.nr_pieces, 0);
}

static void trim_that_fails_at_once_changes_nothing(struct kunit *test)
{
	struct ctx *ctx = make(test, 2, PLENTY);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 2);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, bytes, 0);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 2);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	expect_log(test, ctx, "clear 0 EIO");
}

static void trim_keeps_memory_that_is_not_taken_back(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 2);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_log(test, ctx, "clear 0, release 12G EIO");
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, bytes, 0);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 1);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_log(test, ctx, "release 12G, clear 1, release 12G");
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_EQ(test, bytes, 12 * GIB);
}

/*
 * Memory that was stranded and is released later no longer counts as acquired.
 */
static void trim_of_stranded_memory_makes_room(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 12 * GIB);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 1);
	KUNIT_EXPECT_EQ(test, ctx->table->accounts.gauge.memory, 12 * GIB);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB);
	/* It is neither free nor can it be acquired. */
	KUNIT_EXPECT_EQ(test, ctx->table->accounts.gauge.memory, 0);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 0);
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			0);
	KUNIT_EXPECT_EQ(test, ctx->table->accounts.gauge.memory, 12 * GIB);
}

static void trim_of_stranded_memory_reopens(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 12 * GIB);
	struct fake_block *block;
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 1);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 2, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	/* The firmware refuses the release again, so no memory is available. */
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(fake_alloc(ctx->table, 128, FLEXMEM_ALIGN,
					   false, NULL)));
	/* From now on the release works. */
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 0);
	block = fake_alloc(ctx->table, 128, FLEXMEM_ALIGN, false, NULL);
	KUNIT_EXPECT_FALSE(test, IS_ERR(block));
	KUNIT_EXPECT_FALSE(test,
			   fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
}

static struct kunit_case table_trim_cases[] = {
	KUNIT_CASE(trim_gives_empty_regions_back),
	KUNIT_CASE(trim_reopens),
	KUNIT_CASE(trim_lets_refused_slots_be_tried_again),
	KUNIT_CASE(idle_regions_are_released_but_for_one),
	KUNIT_CASE(released_regions_can_be_acquired_again),
	KUNIT_CASE(used_regions_are_not_idle),
	KUNIT_CASE(a_hold_keeps_an_idle_region),
	KUNIT_CASE(worker_releases_idle_regions),
	KUNIT_CASE(trim_of_nothing_leaves_the_lock),
	KUNIT_CASE(trim_leaves_full_kinds_exhausted),
	KUNIT_CASE(trim_leaves_held_regions_out),
	KUNIT_CASE(trim_may_find_held_regions_only),
	KUNIT_CASE(scrub_finds_a_region_that_trim_leaves),
	KUNIT_CASE(search_learns_that_a_region_stays),
	ERROR_CASE(trim_fails_in_the_middle),
	KUNIT_CASE(trim_that_fails_at_once_changes_nothing),
	KUNIT_CASE(unanswered_clear_keeps_slot_and_memory),
	KUNIT_CASE(unanswered_clear_is_repeated_by_a_caller),
	KUNIT_CASE(reset_and_removal_forget_what_was_unanswered),
	KUNIT_CASE(trim_keeps_memory_that_is_not_taken_back),
	KUNIT_CASE(trim_of_stranded_memory_makes_room),
	KUNIT_CASE(trim_of_stranded_memory_reopens),
	{}
};

static struct kunit_suite table_trim_suite = {
	.name = "flexmem_table_trim",
	.test_cases = table_trim_cases,
};

kunit_test_suite(table_trim_suite);
