// SPDX-License-Identifier: GPL-2.0
/*
 * Acquisition of regions: fallback sizes, exhaustion, prealloc.
 */

#include "regions.h"

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

/* ---- setting up ---- */

static int init_table(struct kunit *test, struct fake_device *fake,
		      const struct flexmem_settings *settings)
{
	struct flexmem_device_desc desc = fake_device_desc(fake);
	struct flexmem_table *table;
	int rc;

	table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, table);
	rc = flexmem_table_init(table, NULL, &desc, settings);
	if (!rc) {
		flexmem_table_remove(table);
		flexmem_table_fini(table);
	}
	return rc;
}

static void program_slots_must_be_fewer_than_slots(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, PLENTY);
	settings.program_slots = 8;
	KUNIT_EXPECT_EQ(test, init_table(test, fake, &settings), -EINVAL);
	settings.program_slots = 7;
	KUNIT_EXPECT_EQ(test, init_table(test, fake, &settings), 0);
}

static void sizes_must_suit_the_granule(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, PLENTY);
	settings.sizes[2] += fake->granule / 2;
	KUNIT_EXPECT_EQ(test, init_table(test, fake, &settings), -EINVAL);
}

static void setting_up_needs_the_capacity(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, PLENTY);
	fake_device_fail(fake, FAKE_CAPACITY, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, init_table(test, fake, &settings), -ETIMEDOUT);
}

/*
 * An earlier driver may have left memory acquired, so the first operation is a
 * reset, which releases it.
 */
static void setting_up_begins_with_a_reset(struct kunit *test)
{
	struct flexmem_memory mem = { .id = 1, .size = 12 * GIB };
	struct flexmem_settings settings = fake_settings();
	const struct flexmem_device_ops *ops;
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 12 * GIB);
	ops = fake_device_ops(fake);
	KUNIT_ASSERT_EQ(test, ops->acquire(fake, mem.size, &mem), 0);
	KUNIT_ASSERT_EQ(test, ops->slot_set(fake, 0, &mem), 0);
	fake_device_forget(fake);
	KUNIT_EXPECT_EQ(test, init_table(test, fake, &settings), 0);
	KUNIT_EXPECT_STREQ(test, fake_device_log(fake), "reset, capacity");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(fake));
}

static void setting_up_needs_that_reset(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, PLENTY);
	fake_device_fail(fake, FAKE_RESET, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, init_table(test, fake, &settings), -EIO);
	KUNIT_EXPECT_EQ(test, fake->calls[FAKE_CAPACITY], 0);
}

static void table_is_no_longer_than_the_firmwares(struct kunit *test)
{
	struct ctx *ctx = make(test, 3, PLENTY);

	KUNIT_EXPECT_EQ(test, ctx->table->slots.nr, 3);
	KUNIT_EXPECT_EQ(test, ctx->table->hw_slots, 3);
	ctx = make(test, 16, PLENTY);
	KUNIT_EXPECT_EQ(test, ctx->table->slots.nr, 12);
	KUNIT_EXPECT_EQ(test, ctx->table->hw_slots, 16);
}

/* ---- acquisition ---- */

static void asks_for_the_first_size_first(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_region *region = acquire(ctx, 0);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, region);
	KUNIT_EXPECT_EQ(test, region->blocks.total, 12 * GIB);
	KUNIT_EXPECT_EQ(test, region->blocks.free, 12 * GIB);
	KUNIT_EXPECT_EQ(test, region->blocks.nr_free, 1);
	expect_log(test, ctx, "acquire 12G, set 0");
	expect_open(test, ctx);
}

static void falls_back_12_8_4_then_exhausted(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 25 * GIB);

	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 12G, set 1");
	acquire(ctx, 0);
	expect_log(test, ctx,
		   "acquire 12G ENOSPC, acquire 8G ENOSPC, acquire 4G ENOSPC, acquire 1G, set 2");
	expect_exhausted(test, ctx, FLEXMEM_REASON_CAPACITY);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENOSPC);
	expect_log(test, ctx, "");
}

static void each_size_of_the_fallback_is_used(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 24 * GIB);

	acquire_regions(test, ctx, 1);
	ctx->fake->refused_size[0] = 12 * GIB;
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 12G ENOSPC, acquire 8G, set 1");
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 8G ENOSPC, acquire 4G, set 2");
	expect_open(test, ctx);
}

static void sizes_are_tried_in_listed_order(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.sizes[0] = 8 * GIB;
	settings.sizes[1] = 4 * GIB;
	settings.sizes[2] = 12 * GIB;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, PLENTY, &settings);
	ctx->fake->refused_size[0] = 8 * GIB;
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 8G ENOSPC, acquire 4G, set 0");
}

static void size_above_a_refused_one_is_not_requested(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.sizes[0] = 8 * GIB;
	settings.sizes[1] = 12 * GIB;
	settings.sizes[2] = 4 * GIB;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, 7 * GIB, &settings);
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 8G ENOSPC, acquire 4G, set 0");
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 5 * GIB)), -ENOSPC);
	expect_log(test, ctx, "");
	acquire(ctx, 3 * GIB);
	expect_log(test, ctx, "acquire 4G ENOSPC, acquire 3G, set 1");
}

static void memory_that_goes_back_may_be_asked_for(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 20 * GIB);
	unsigned int nr;
	u64 bytes;

	acquire(ctx, 0);
	acquire(ctx, 0);
	expect_log(test, ctx,
		   "acquire 12G, set 0, acquire 12G ENOSPC, acquire 8G, set 1");
	occupy(test, ctx, 1, 128);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	fake_device_forget(ctx->fake);
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
}

static void exhausted_table_asks_no_more(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 4 * GIB);

	ctx->fake->capacity = 3 * GIB;
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENOSPC);
	fake_device_forget(ctx->fake);
	ctx->fake->capacity = PLENTY;
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENOSPC);
	expect_log(test, ctx, "");
}

static void too_small_sizes_are_skipped(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 6 * GIB);

	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 6 * GIB + 128)), -ENOSPC);
	expect_log(test, ctx, "acquire 12G ENOSPC, acquire 8G ENOSPC");
	expect_open(test, ctx);
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, acquire(ctx, 4 * GIB));
	expect_log(test, ctx, "acquire 4G, set 0");
}

static void larger_than_every_size_asks_nothing(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 12 * GIB + 128)), -ENOSPC);
	expect_log(test, ctx, "");
	expect_open(test, ctx);
}

static void firmware_error_never_exhausts(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 4 * GIB);
	int error = param_error(test);
	unsigned int nth;

	for (nth = 1; nth <= 3; nth++) {
		fake_device_fail(ctx->fake, FAKE_ACQUIRE, nth, 1, error);
		KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), error);
		KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_ACQUIRE], nth);
		expect_open(test, ctx);
		KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
		flexmem_table_new_capacity(ctx->table);
		fake_device_forget(ctx->fake);
	}
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, acquire(ctx, 0));
}

static void region_takes_the_lowest_slot(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 3);
	occupy(test, ctx, 0, 128);
	occupy(test, ctx, 2, 128);
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, acquire_slot(ctx), 1);
	KUNIT_EXPECT_EQ(test, acquire_slot(ctx), 3);
}

static void refused_slot_is_passed_over(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_region *region;

	ctx->fake->refused_slots = BIT(0) | BIT(1);
	region = acquire(ctx, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, region);
	KUNIT_EXPECT_EQ(test, region->slot, 2);
	KUNIT_EXPECT_EQ(test, region->id, 2);
	expect_log(test, ctx, "acquire 12G, set 0 ENOSPC, set 1 ENOSPC, set 2");
	expect_open(test, ctx);
	/* The refused slots are not tried again. */
	acquire(ctx, 0);
	expect_log(test, ctx, "acquire 12G, set 3");
}

static void every_slot_refused_exhausts(struct kunit *test)
{
	struct ctx *ctx = make(test, 2, PLENTY);

	ctx->fake->refused_slots = BIT(0) | BIT(1);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENOSPC);
	expect_log(test, ctx,
		   "acquire 12G, set 0 ENOSPC, set 1 ENOSPC, release 12G");
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
}

/*
 * Acts as if the device had answered a command, so that flexmem sends commands
 * again.
 */
static void answer(struct ctx *ctx)
{
	flexmem_function_note(&ctx->table->function, 0);
}

/* flexmem releases the memory only after it has cleared the slot. */
static void failed_slot_gives_the_memory_back(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	int error = param_error(test);

	fake_device_fail(ctx->fake, FAKE_SLOT_SET, 1, 1, error);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), error);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB);
	expect_open(test, ctx);
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ETIMEDOUT);
	expect_log(test, ctx, "clear 0 ETIMEDOUT");
	answer(ctx);
	acquire(ctx, 0);
	expect_log(test, ctx, "clear 0, release 12G, acquire 12G, set 0");
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB);
}

/* slot_set has filled the slot, although it returns an error. */
static void memory_in_a_slot_is_never_given_back(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	int error = param_error(test);

	ctx->fake->sets_and_fails = error;
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), error);
	KUNIT_EXPECT_NE(test, ctx->fake->slot_base[0], 0);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 99, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ETIMEDOUT);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	fake_device_reset(ctx->fake);
}

static void memory_that_could_not_be_released_is_retried(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 2, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -EIO);
	expect_log(test, ctx, "acquire 12G, release 12G ETIMEDOUT");
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ETIMEDOUT);
	expect_log(test, ctx, "release 12G ETIMEDOUT");
	expect_open(test, ctx);
	answer(ctx);
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, acquire(ctx, 0));
	expect_log(test, ctx, "release 12G, acquire 12G, set 0");
}

/*
 * Each allocation first retries the refused release once. A refusal makes no
 * allocation fail.
 */
static void refused_release_keeps_no_other_region(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr;
	u64 bytes;

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -ENOMEM);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 99, -EIO);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENOMEM);
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, acquire(ctx, 0));
	expect_log(test, ctx, "release 12G EIO, acquire 12G, set 0");
	/* TRIM still tries to release the other region, which is empty. */
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_log(test, ctx, "release 12G EIO, clear 0, release 12G EIO");
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_log(test, ctx, "release 12G EIO, release 12G");
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB);
}

/*
 * The number of tries is small, because each try makes an allocation wait for a
 * timeout and fail.
 */
static void unanswered_release_is_given_up(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr, i;
	u64 bytes;

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -ENOMEM);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 99, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENOMEM);
	for (i = 1; i < FLEXMEM_RELEASE_TRIES; i++) {
		fake_device_forget(ctx->fake);
		answer(ctx);
		KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ETIMEDOUT);
		expect_log(test, ctx, "release 12G ETIMEDOUT");
	}
	answer(ctx);
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, acquire(ctx, 0));
	expect_log(test, ctx, "acquire 12G, set 0");
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_log(test, ctx, "release 12G, clear 0, release 12G");
}

/* ---- region ids and addresses ---- */

static void id_is_address_or_index(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	enum flexmem_mode mode = param_mode(test);
	struct ctx *ctx = make_mode(test, mode, 8, PLENTY, &settings);
	unsigned int slot;

	acquire_regions(test, ctx, 3);
	for (slot = 0; slot < 3; slot++) {
		struct flexmem_region *region =
			fake_table_region(ctx->table, slot);

		KUNIT_ASSERT_NOT_NULL(test, region);
		KUNIT_EXPECT_EQ(test, region->slot, slot);
		KUNIT_EXPECT_EQ(test, region->id, mode == FLEXMEM_MODE_PF ?
				ctx->fake->piece[slot].base : slot);
	}
}

static void segment_table_mirrors_the_regions(struct kunit *test)
{
	struct flexmem_segment_entry entries[FLEXMEM_MAX_SLOTS];
	struct flexmem_settings settings = fake_settings();
	struct flexmem_region *region;
	struct ctx *ctx;
	u64 gen;

	settings.program_slots = 1;
	ctx = make_mode(test, param_mode(test), 12, PLENTY, &settings);
	acquire_regions(test, ctx, 1);
	region = fake_table_acquire(ctx->table, true, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, region);
	KUNIT_ASSERT_EQ(test, 2, flexmem_slots_read(&ctx->table->slots,
						    entries, &gen));
	KUNIT_EXPECT_EQ(test, gen, 2);
	KUNIT_EXPECT_EQ(test, entries[0].flags, 0);
	KUNIT_EXPECT_EQ(test, entries[0].length, 12 * GIB);
	KUNIT_EXPECT_EQ(test, entries[1].slot, 11);
	KUNIT_EXPECT_EQ(test, entries[1].flags, FLEXMEM_REGION_PROGRAM);
	KUNIT_EXPECT_EQ(test, entries[1].length, 4 * GIB);
	KUNIT_EXPECT_EQ(test, entries[1].region_id, region->id);
}

/* ---- exhaustion ---- */

static void exhausted_at_max_regions(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.max_regions = 2;
	ctx = make_mode(test, param_mode(test), 8, PLENTY, &settings);
	acquire_regions(test, ctx, 1);
	expect_open(test, ctx);
	acquire_regions(test, ctx, 1);
	expect_exhausted(test, ctx, FLEXMEM_REASON_MAX_REGIONS);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENOSPC);
	expect_log(test, ctx, "");
}

static void default_cap_is_twelve(struct kunit *test)
{
	struct ctx *ctx = make(test, 16, PLENTY);

	acquire_regions(test, ctx, 12);
	expect_exhausted(test, ctx, FLEXMEM_REASON_MAX_REGIONS);
}

static void exhausted_at_the_last_slot(struct kunit *test)
{
	struct ctx *ctx = make(test, 3, PLENTY);

	acquire_regions(test, ctx, 2);
	expect_open(test, ctx);
	acquire_regions(test, ctx, 1);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
}

static void as_many_slots_as_max_regions_are_slots(struct kunit *test)
{
	struct ctx *ctx = make(test, 12, PLENTY);

	acquire_regions(test, ctx, 12);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
}

static void refused_slots_are_the_reason(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.max_regions = 2;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, PLENTY, &settings);
	ctx->fake->refused_slots = BIT(0);
	acquire_regions(test, ctx, 1);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
}

static void refused_slots_are_the_reason_of_their_kind(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.max_regions = 3;
	settings.program_slots = 1;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, PLENTY, &settings);
	ctx->fake->refused_slots = BIT(0);
	acquire_regions(test, ctx, 1);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test,
				     fake_table_acquire(ctx->table, true, 0));
	KUNIT_EXPECT_EQ(test, fake_exhausted(ctx->table, FLEXMEM_KIND_PROGRAM),
			FLEXMEM_REASON_MAX_REGIONS);
}

static void kinds_are_exhausted_apart(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.program_slots = 1;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, PLENTY, &settings);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test,
				     fake_table_acquire(ctx->table, true, 0));
	KUNIT_EXPECT_TRUE(test,
			  fake_exhausted(ctx->table, FLEXMEM_KIND_PROGRAM));
	expect_open(test, ctx);
	acquire_regions(test, ctx, 7);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
}

static void programs_share_when_no_slots_are_set_aside(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	KUNIT_EXPECT_EQ(test, FLEXMEM_KIND_TENSOR,
			flexmem_table_kind(ctx->table, FLEXMEM_KIND_PROGRAM));
}

static void programs_begin_with_the_last_size(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_region *region;
	struct ctx *ctx;

	settings.program_slots = 2;
	settings.sizes[0] = 4 * GIB;
	settings.sizes[1] = 12 * GIB;
	settings.sizes[2] = 8 * GIB;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, PLENTY, &settings);
	ctx->fake->refused_size[0] = 8 * GIB;
	region = fake_table_acquire(ctx->table, true, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, region);
	KUNIT_EXPECT_EQ(test, region->kind, FLEXMEM_KIND_PROGRAM);
	expect_log(test, ctx, "acquire 8G ENOSPC, acquire 4G, set 6");
}

static void new_capacity_reopens(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 4 * GIB);

	acquire(ctx, 0);
	acquire(ctx, 0);
	expect_exhausted(test, ctx, FLEXMEM_REASON_CAPACITY);
	ctx->fake->capacity = 12 * GIB;
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_open(test, ctx);
	acquire(ctx, 0);
	expect_log(test, ctx,
		   "capacity, acquire 12G ENOSPC, acquire 8G, set 1");
}

static void new_capacity_gives_no_slots(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.program_slots = 1;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 3, PLENTY, &settings);
	acquire_regions(test, ctx, 2);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test,
				     fake_table_acquire(ctx->table, true, 0));
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), 0);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	KUNIT_EXPECT_TRUE(test,
			  fake_exhausted(ctx->table, FLEXMEM_KIND_PROGRAM));
}

static void unknown_new_capacity_changes_nothing(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 4 * GIB);

	acquire(ctx, 0);
	acquire(ctx, 0);
	ctx->fake->capacity = 8 * GIB;
	fake_device_fail(ctx->fake, FAKE_CAPACITY, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, flexmem_table_new_capacity(ctx->table), -EIO);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[0].capacity, 4 * GIB);
	expect_exhausted(test, ctx, FLEXMEM_REASON_CAPACITY);
}

static void largest_region_is_the_largest_size(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, 1), 12 * GIB);
}

static void largest_region_is_bounded_by_capacity(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 11 * GIB);

	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, 1), 11 * GIB);
	ctx->fake->capacity = 3 * GIB + SZ_1M;
	flexmem_table_new_capacity(ctx->table);
	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, 1), 3 * GIB);
	ctx->fake->capacity = SZ_1M;
	flexmem_table_new_capacity(ctx->table);
	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, 1), 0);
}

static void largest_region_may_be_a_present_one(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 1);
	ctx->fake->capacity = 5 * GIB;
	flexmem_table_new_capacity(ctx->table);
	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, 1), 12 * GIB);
}

static void expect_totals(struct kunit *test, struct ctx *ctx,
			  const unsigned int *gib, unsigned int nr)
{
	unsigned int i;

	KUNIT_ASSERT_EQ(test, nr_regions(ctx), nr);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, ctx->snapshot.region[i].total,
				gib[i] * GIB);
}

#define EXPECT_TOTALS(test, ctx, totals...)				\
	expect_totals(test, ctx, (const unsigned int[]){ totals },	\
		      ARRAY_SIZE(((const unsigned int[]){ totals })))

static void prealloc_fills_every_slot(struct kunit *test)
{
	struct ctx *ctx = make(test, 4, PLENTY);

	KUNIT_EXPECT_EQ(test, fake_table_prealloc(ctx->table), 0);
	EXPECT_TOTALS(test, ctx, 12, 12, 12, 12);
	expect_exhausted(test, ctx, FLEXMEM_REASON_SLOTS);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_ACQUIRE], 4);
}

static void expect_memory(struct kunit *test,
			  struct flexmem_domain *domain, u64 held,
			  unsigned int slots, u64 memory)
{
	KUNIT_EXPECT_EQ(test, flexmem_domain_memory(domain, held, &slots),
			memory);
}

/* For the pressure, regions that can still be acquired count as memory. */
static void memory_counts_regions_to_acquire(struct kunit *test)
{
	struct flexmem_domain domain = {
		.nr_sizes = 3,
		.sizes = { 8 * GIB, 12 * GIB, 4 * GIB },
		.capacity = 23 * GIB,
		.too_large = U64_MAX,
	};

	/* Regions of 12 GiB and 8 GiB fit, and one with the remaining bytes. */
	expect_memory(test, &domain, 0, 4, 23 * GIB);
	expect_memory(test, &domain, 0, 2, 20 * GIB);
	domain.too_large = 3 * GIB;
	expect_memory(test, &domain, 20 * GIB, 4, 20 * GIB);
	domain.too_large = U64_MAX;
	domain.capacity = 24 * GIB;
	expect_memory(test, &domain, 0, 4, 24 * GIB);
	domain.too_large = 12 * GIB;
	expect_memory(test, &domain, 0, 4, 24 * GIB);
	domain.too_large = 8 * GIB;
	expect_memory(test, &domain, 0, 4, 16 * GIB);
	domain.too_large = 4 * GIB;
	expect_memory(test, &domain, 0, 4, 0);
	domain.too_large = U64_MAX;
	expect_memory(test, &domain, 0, 1, 12 * GIB);
	expect_memory(test, &domain, 0, 0, 0);
	/* Existing regions count, even if they exceed the capacity. */
	expect_memory(test, &domain, 12 * GIB, 0, 12 * GIB);
	expect_memory(test, &domain, 16 * GIB, 3, 24 * GIB);
	expect_memory(test, &domain, 36 * GIB, 3, 36 * GIB);
}

/*
 * The pressure's memory counts neither a refused slot nor a slot for programs.
 */
static void memory_counts_slots_for_tensors(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;
	u64 *memory;

	settings.program_slots = 1;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 4, PLENTY, &settings);
	memory = &ctx->table->accounts.gauge.memory;
	KUNIT_EXPECT_EQ(test, *memory, 36 * GIB);
	ctx->fake->refused_slots = BIT(1);
	acquire_regions(test, ctx, 1);
	KUNIT_EXPECT_EQ(test, *memory, 36 * GIB);
	acquire_regions(test, ctx, 1);
	KUNIT_EXPECT_EQ(test, *memory, 24 * GIB);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test,
				     fake_table_acquire(ctx->table, true, 0));
	KUNIT_EXPECT_EQ(test, *memory, 28 * GIB);
}

static void prealloc_takes_all_capacity(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 37 * GIB);

	KUNIT_EXPECT_EQ(test, fake_table_prealloc(ctx->table), 0);
	EXPECT_TOTALS(test, ctx, 12, 12, 12, 1);
	expect_exhausted(test, ctx, FLEXMEM_REASON_CAPACITY);
}

static void prealloc_falls_back(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 35 * GIB);

	KUNIT_EXPECT_EQ(test, fake_table_prealloc(ctx->table), 0);
	EXPECT_TOTALS(test, ctx, 12, 12, 8, 3);
	expect_exhausted(test, ctx, FLEXMEM_REASON_CAPACITY);
}

static void prealloc_sees_to_programs_first(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.program_slots = 2;
	ctx = make_mode(test, FLEXMEM_MODE_VF, 8, 32 * GIB, &settings);
	KUNIT_EXPECT_EQ(test, fake_table_prealloc(ctx->table), 0);
	EXPECT_TOTALS(test, ctx, 12, 12, 4, 4);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.region[1].flags, 0);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.region[2].slot, 6);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.region[2].flags,
			FLEXMEM_REGION_PROGRAM);
	KUNIT_EXPECT_TRUE(test,
			  fake_exhausted(ctx->table, FLEXMEM_KIND_PROGRAM));
	expect_exhausted(test, ctx, FLEXMEM_REASON_CAPACITY);
}

static void prealloc_of_nothing_succeeds(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, 4 * GIB);

	ctx->fake->capacity = 3 * GIB;
	KUNIT_EXPECT_EQ(test, fake_table_prealloc(ctx->table), 0);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
	expect_exhausted(test, ctx, FLEXMEM_REASON_CAPACITY);
}

static void prealloc_stops_at_an_error(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 3, 1, -EIO);
	KUNIT_EXPECT_EQ(test, fake_table_prealloc(ctx->table), -EIO);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 2);
}

#define MODE_CASE(name) KUNIT_CASE_PARAM(name, mode_gen_params)

static struct kunit_case region_cases[] = {
	KUNIT_CASE(program_slots_must_be_fewer_than_slots),
	KUNIT_CASE(sizes_must_suit_the_granule),
	KUNIT_CASE(setting_up_needs_the_capacity),
	KUNIT_CASE(setting_up_begins_with_a_reset),
	KUNIT_CASE(setting_up_needs_that_reset),
	KUNIT_CASE(table_is_no_longer_than_the_firmwares),
	KUNIT_CASE(asks_for_the_first_size_first),
	KUNIT_CASE(falls_back_12_8_4_then_exhausted),
	KUNIT_CASE(each_size_of_the_fallback_is_used),
	KUNIT_CASE(sizes_are_tried_in_listed_order),
	KUNIT_CASE(size_above_a_refused_one_is_not_requested),
	KUNIT_CASE(memory_that_goes_back_may_be_asked_for),
	KUNIT_CASE(exhausted_table_asks_no_more),
	KUNIT_CASE(too_small_sizes_are_skipped),
	KUNIT_CASE(larger_than_every_size_asks_nothing),
	ERROR_CASE(firmware_error_never_exhausts),
	KUNIT_CASE(region_takes_the_lowest_slot),
	KUNIT_CASE(refused_slot_is_passed_over),
	KUNIT_CASE(every_slot_refused_exhausts),
	ERROR_CASE(failed_slot_gives_the_memory_back),
	ERROR_CASE(memory_in_a_slot_is_never_given_back),
	KUNIT_CASE(memory_that_could_not_be_released_is_retried),
	KUNIT_CASE(refused_release_keeps_no_other_region),
	KUNIT_CASE(unanswered_release_is_given_up),
	MODE_CASE(id_is_address_or_index),
	MODE_CASE(segment_table_mirrors_the_regions),
	MODE_CASE(exhausted_at_max_regions),
	KUNIT_CASE(default_cap_is_twelve),
	KUNIT_CASE(exhausted_at_the_last_slot),
	KUNIT_CASE(as_many_slots_as_max_regions_are_slots),
	KUNIT_CASE(refused_slots_are_the_reason),
	KUNIT_CASE(refused_slots_are_the_reason_of_their_kind),
	KUNIT_CASE(kinds_are_exhausted_apart),
	KUNIT_CASE(programs_share_when_no_slots_are_set_aside),
	KUNIT_CASE(programs_begin_with_the_last_size),
	KUNIT_CASE(new_capacity_reopens),
	KUNIT_CASE(new_capacity_gives_no_slots),
	KUNIT_CASE(unknown_new_capacity_changes_nothing),
	KUNIT_CASE(largest_region_is_the_largest_size),
	KUNIT_CASE(largest_region_is_bounded_by_capacity),
	KUNIT_CASE(largest_region_may_be_a_present_one),
	KUNIT_CASE(prealloc_fills_every_slot),
	KUNIT_CASE(memory_counts_regions_to_acquire),
	KUNIT_CASE(memory_counts_slots_for_tensors),
	KUNIT_CASE(prealloc_takes_all_capacity),
	KUNIT_CASE(prealloc_falls_back),
	KUNIT_CASE(prealloc_sees_to_programs_first),
	KUNIT_CASE(prealloc_of_nothing_succeeds),
	KUNIT_CASE(prealloc_stops_at_an_error),
	{}
};

static struct kunit_suite region_suite = {
	.name = "flexmem_region",
	.test_cases = region_cases,
};

kunit_test_suite(region_suite);
