// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a table (removal), and what observes a table: snapshots, and the
 * check of debug builds.
 */

#include <linux/completion.h>
#include <linux/kthread.h>

#include "checks.h"
#include "regions.h"

/* ---- removal of a function ---- */

static void removal_gives_everything_back(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 2);
	fake_table_remove(ctx->table);
	expect_log(test, ctx,
		   "quiesce, clear 0, release 12G, clear 1, release 12G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
}

/* The removal stops a PF's programs first, so no access is in flight. */
static void removal_of_a_pf_does_not_drain(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx = make_mode(test, FLEXMEM_MODE_PF, 0, PLENTY, &settings);

	acquire_regions(test, ctx, 1);
	fake_table_remove(ctx->table);
	expect_log(test, ctx, "quiesce, release 12G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void blocks_can_be_freed_after_removal(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct fake_block *block[3];
	unsigned int i;

	acquire_regions(test, ctx, 1);
	for (i = 0; i < 3; i++)
		block[i] = occupy(test, ctx, 0, GIB);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	/*
	 * Freeing the last block must free its region. KASAN and kmemleak
	 * would notice an error.
	 */
	for (i = 0; i < 3; i++)
		fake_free(block[i]);
}

static void nothing_is_allocated_after_removal(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_region *region;

	acquire_regions(test, ctx, 1);
	occupy(test, ctx, 0, GIB);
	region = fake_table_region(ctx->table, 0);
	KUNIT_ASSERT_NOT_NULL(test, region);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			PTR_ERR(fake_alloc_in(ctx->table, region, 128,
					      false)));
}

static void removal_ends_holds(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_hold hold;

	acquire_regions(test, ctx, 1);
	hold = fake_hold(&ctx->table->slots, BIT_ULL(0));
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_FALSE(test, flexmem_slots_are_held(&ctx->table->slots, 0));
	flexmem_slots_unhold(&ctx->table->slots, &hold);
}

static void removal_tries_stranded_memory_once_more(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -EIO);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	acquire(ctx, 0);
	fake_device_forget(ctx->fake);
	fake_table_remove(ctx->table);
	expect_log(test, ctx, "quiesce, release 12G");
}

static void removal_goes_on_after_errors(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct fake_block *block;

	acquire_regions(test, ctx, 3);
	block = occupy(test, ctx, 0, GIB);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	fake_table_remove(ctx->table);
	expect_log(test, ctx,
		   "quiesce, clear 0 EIO, clear 1, release 12G EIO, clear 2, release 12G");
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
	fake_free(block);
	fake_device_reset(ctx->fake);
}

static void removal_asks_a_dead_firmware_only_once(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 3);
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 2, 99, -ETIMEDOUT);
	fake_table_remove(ctx->table);
	expect_log(test, ctx, "quiesce, clear 0, release 12G, clear 1 ETIMEDOUT");
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
	fake_device_reset(ctx->fake);
}

/* No other function may get memory in which bytes may still move. */
static void removal_stops_if_bytes_may_still_move(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 3);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -ENOTRECOVERABLE);
	fake_table_remove(ctx->table);
	expect_log(test, ctx, "quiesce, clear 0, release 12G ENOTRECOVERABLE");
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
	fake_device_reset(ctx->fake);
}

static void close_table(void *table)
{
	flexmem_function_enter(&((struct flexmem_table *)table)->function,
			       FLEXMEM_STATE_GONE);
}

/*
 * Called in the middle of an operation: the removal begins, and then the device
 * fails.
 */
static void fail_and_close_table(void *table)
{
	close_table(table);
	flexmem_function_fail(&((struct flexmem_table *)table)->function);
}

static void removal_learns_late_that_the_device_has_failed(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 1);
	ctx->fake->during_scrub = fail_and_close_table;
	ctx->fake->during_scrub_arg = ctx->table;
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -ENODEV);
	expect_log(test, ctx, "acquire 12G");
	fake_table_remove(ctx->table);
	expect_log(test, ctx, "");
	fake_device_reset(ctx->fake);
}

/* Acquires memory. The device answers that its scrub may still go on. */
static void acquire_late_bytes(struct kunit *test, struct ctx *ctx)
{
	fake_device_fail(ctx->fake, FAKE_SCRUB, 1, 1, -ENOTRECOVERABLE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -EIO);
	expect_log(test, ctx, "acquire 12G");
	ctx->fake->during_scrub = NULL;
	flexmem_table_resume(ctx->table);
	KUNIT_EXPECT_EQ(test, PTR_ERR(acquire(ctx, 0)), -EIO);
	expect_log(test, ctx, "");
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_reset(ctx->table));
	expect_log(test, ctx, "quiesce, reset");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void suspend_table(void *table)
{
	flexmem_function_suspend(&((struct flexmem_table *)table)->function);
}

/*
 * flexmem does not release new memory while the scrub of that memory may still
 * go on.
 */
static void late_scrub_keeps_new_memory(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_late_bytes(test, ctx);
	/* The state of a suspended function does not show the failure. */
	ctx->fake->during_scrub = suspend_table;
	ctx->fake->during_scrub_arg = ctx->table;
	acquire_late_bytes(test, ctx);
}

static void removal_with_stranded_memory_and_a_dead_firmware(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 2);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 99, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	fake_device_forget(ctx->fake);
	fake_table_remove(ctx->table);
	expect_log(test, ctx, "quiesce, release 12G ETIMEDOUT");
	fake_device_reset(ctx->fake);
}

/* Removal waits for the command under way. Then TRIM sends no other command. */
static void removal_ends_a_trim(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 4);
	ctx->fake->during_clear = close_table;
	ctx->fake->during_clear_arg = ctx->table;
	KUNIT_EXPECT_EQ(test, -ENODEV,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	expect_log(test, ctx, "clear 0, release 12G");
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_EQ(test, bytes, 12 * GIB);
}

/*
 * Memory is not released while programs may run, because they could write to
 * memory that another tenant has got.
 */
static void removal_gives_nothing_back_while_programs_may_run(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 2);
	fake_device_fail(ctx->fake, FAKE_SLOT_SET, 1, 1, -EIO);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	acquire(ctx, 0);
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_QUIESCE, 1, 1, param_error(test));
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_QUIESCE], 1);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_SLOT_CLEAR], 0);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_RELEASE], 0);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
	fake_device_reset(ctx->fake);
}

static void removal_without_memory_sends_no_command(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	fake_device_forget(ctx->fake);
	fake_table_remove(ctx->table);
	expect_log(test, ctx, "");
}

static void trim_after_removal_does_nothing(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr = 99;
	u64 bytes = 99;

	acquire_regions(test, ctx, 1);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, -ENODEV,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_EQ(test, bytes, 0);
}

struct remover {
	struct flexmem_table *table;
	struct completion done;
};

static int remove_table(void *data)
{
	struct remover *remover = data;

	fake_table_remove(remover->table);
	complete_all(&remover->done);
	return 0;
}

/*
 * A snapshot reads the blocks of all regions, so no region may be destroyed
 * during it. The test holds the lock that a snapshot holds.
 */
static void removal_waits_for_a_snapshot(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct remover remover = { .table = ctx->table };
	struct task_struct *task;
	bool there = false;

	acquire_regions(test, ctx, 2);
	init_completion(&remover.done);
	mutex_lock(&ctx->table->snapshot_lock);
	task = kthread_run(remove_table, &remover, "flexmem_kunit");
	if (!IS_ERR(task)) {
		wait_for_completion_timeout(&remover.done, HZ / 5);
		there = fake_table_region(ctx->table, 0);
	}
	mutex_unlock(&ctx->table->snapshot_lock);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&remover.done);
	KUNIT_EXPECT_TRUE(test, there);
	KUNIT_EXPECT_EQ(test, nr_regions(ctx), 0);
}

/* ---- figures ---- */

static void snapshot_shows_each_region(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_region_entry *entry;
	struct fake_block *block;

	acquire_regions(test, ctx, 2);
	occupy(test, ctx, 1, GIB);
	block = occupy(test, ctx, 1, 2 * GIB);
	occupy(test, ctx, 1, GIB);
	fake_free(block);
	KUNIT_ASSERT_EQ(test, nr_regions(ctx), 2);

	entry = &ctx->snapshot.region[0];
	KUNIT_EXPECT_EQ(test, entry->slot, 0);
	KUNIT_EXPECT_EQ(test, entry->free, 12 * GIB);
	KUNIT_EXPECT_EQ(test, entry->nr_allocated, 0);
	KUNIT_EXPECT_EQ(test, entry->sequence, 0);

	entry = &ctx->snapshot.region[1];
	KUNIT_EXPECT_EQ(test, entry->slot, 1);
	KUNIT_EXPECT_EQ(test, entry->region_id, 1);
	KUNIT_EXPECT_EQ(test, entry->flags, 0);
	KUNIT_EXPECT_EQ(test, entry->total, 12 * GIB);
	KUNIT_EXPECT_EQ(test, entry->free, 10 * GIB);
	KUNIT_EXPECT_EQ(test, entry->largest_free, 8 * GIB);
	KUNIT_EXPECT_EQ(test, entry->nr_allocated, 2);
	KUNIT_EXPECT_EQ(test, entry->nr_free, 2);
	KUNIT_EXPECT_EQ(test, entry->sequence, 4);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_allocs, 3);
}

static void snapshot_counts_bytes_of_programs(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_region *region;
	struct fake_block *program;

	acquire_regions(test, ctx, 1);
	region = fake_table_region(ctx->table, 0);
	KUNIT_ASSERT_NOT_NULL(test, region);
	occupy(test, ctx, 0, GIB);
	program = fake_alloc_in(ctx->table, region, 128, true);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, program);
	nr_regions(ctx);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_used_program, 128);
	fake_free(program);
	nr_regions(ctx);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_used_program, 0);
}

static void allocations_of_past_regions_count(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	unsigned int nr;
	u64 bytes;

	acquire_regions(test, ctx, 2);
	fake_free(occupy(test, ctx, 0, 128));
	fake_free(occupy(test, ctx, 0, 128));
	occupy(test, ctx, 1, 128);
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_ASSERT_EQ(test, nr_regions(ctx), 1);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_allocs, 3);
	KUNIT_ASSERT_EQ(test, acquire_slot(ctx), 0);
	fake_free(occupy(test, ctx, 0, 128));
	nr_regions(ctx);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_allocs, 4);
}

/* fake_table_check() must notice each fault that is planted here. */

static void expect_wrong(struct kunit *test, struct ctx *ctx, const char *what)
{
	KUNIT_EXPECT_STREQ(test, checks_of_table(ctx->table) ?: "none",
			   what);
}

static void check_notices_a_slot_without_region(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 1);
	__set_bit(5, ctx->table->slots.filled);
	expect_wrong(test, ctx,
		     "slot filled without a region, or the other way round");
	__clear_bit(5, ctx->table->slots.filled);
}

static void check_notices_a_region_without_slot(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);

	acquire_regions(test, ctx, 1);
	__clear_bit(0, ctx->table->slots.filled);
	expect_wrong(test, ctx,
		     "slot filled without a region, or the other way round");
	__set_bit(0, ctx->table->slots.filled);
}

static void check_notices_a_wrong_entry(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_segment_entry *entry, good;

	acquire_regions(test, ctx, 1);
	entry = &ctx->table->slots.entry[0];
	good = *entry;
	entry->length++;
	expect_wrong(test, ctx, "slot and region do not agree");
	*entry = good;
	entry->region_id++;
	expect_wrong(test, ctx, "slot and region do not agree");
	*entry = good;
	entry->slot++;
	expect_wrong(test, ctx, "slot and region do not agree");
	*entry = good;
}

static void check_notices_wrong_blocks(struct kunit *test)
{
	struct ctx *ctx = make(test, 8, PLENTY);
	struct flexmem_region *region;

	acquire_regions(test, ctx, 1);
	region = fake_table_region(ctx->table, 0);
	KUNIT_ASSERT_NOT_NULL(test, region);
	region->blocks.free -= 128;
	expect_wrong(test, ctx, "free bytes miscounted");
	region->blocks.free += 128;
	region->mem.size += 128;
	ctx->table->slots.entry[0].length += 128;
	expect_wrong(test, ctx, "blocks of another size than the region");
	region->mem.size -= 128;
	ctx->table->slots.entry[0].length -= 128;
}

static struct kunit_case table_life_cases[] = {
	KUNIT_CASE(removal_gives_everything_back),
	KUNIT_CASE(removal_of_a_pf_does_not_drain),
	KUNIT_CASE(blocks_can_be_freed_after_removal),
	KUNIT_CASE(nothing_is_allocated_after_removal),
	KUNIT_CASE(removal_ends_holds),
	KUNIT_CASE(removal_tries_stranded_memory_once_more),
	KUNIT_CASE(removal_goes_on_after_errors),
	KUNIT_CASE(removal_asks_a_dead_firmware_only_once),
	KUNIT_CASE(removal_stops_if_bytes_may_still_move),
	KUNIT_CASE(removal_learns_late_that_the_device_has_failed),
	KUNIT_CASE(late_scrub_keeps_new_memory),
	KUNIT_CASE(removal_with_stranded_memory_and_a_dead_firmware),
	KUNIT_CASE(removal_ends_a_trim),
	ERROR_CASE(removal_gives_nothing_back_while_programs_may_run),
	KUNIT_CASE(removal_without_memory_sends_no_command),
	KUNIT_CASE(trim_after_removal_does_nothing),
	KUNIT_CASE(removal_waits_for_a_snapshot),
	KUNIT_CASE(snapshot_shows_each_region),
	KUNIT_CASE(snapshot_counts_bytes_of_programs),
	KUNIT_CASE(allocations_of_past_regions_count),
	KUNIT_CASE(check_notices_a_slot_without_region),
	KUNIT_CASE(check_notices_a_region_without_slot),
	KUNIT_CASE(check_notices_a_wrong_entry),
	KUNIT_CASE(check_notices_wrong_blocks),
	{}
};

static struct kunit_suite table_life_suite = {
	.name = "flexmem_table_life",
	.test_cases = table_life_cases,
};

kunit_test_suite(table_life_suite);
