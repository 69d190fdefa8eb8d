// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls. Every answer of the driver is compared with the model in
 * model.c, for each block strategy combined with each region order. A short run
 * checks everything after each operation. A long run compares the addresses of
 * all allocations, and checks everything else only now and then.
 *
 * To repeat a run: insmod flexmem_kunit.ko seed=N, with the printed N.
 */

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "alloc/placement.h"
#include "block/spare.h"
#include "checks.h"
#include "fake_device.h"
#include "model.h"
#include "parts/snapshot.h"
#include "region/table.h"

#define PLENTY (1024 * GIB)
#define MAX_LIVE 256
#define SAMPLE 512
/*
 * With this many operations each reason for a failure occurs, whatever the
 * seed.
 */
#define ENOUGH_OPS 20000

static unsigned int ops = 20000;
module_param(ops, uint, 0444);
MODULE_PARM_DESC(ops, "Random operations with everything checked after each (default 20000)");

static unsigned int sampled_ops = 200000;
module_param(sampled_ops, uint, 0444);
MODULE_PARM_DESC(sampled_ops, "Random operations with checks now and then (default 200000)");

/*
 * A device and its settings. Each scenario runs the same number of operations.
 */
struct scenario {
	enum flexmem_mode mode;
	enum flexmem_acquire acquire;
	unsigned int hw_slots;
	unsigned int max_regions;
	unsigned int program_slots;
	u64 capacity;
	u64 refused_slots;
	unsigned int nr_sizes;
	u64 sizes[4];
};

#define DEFAULT_SIZES .nr_sizes = 3, .sizes = { 12 * GIB, 8 * GIB, 4 * GIB }

static const struct scenario scenarios[] = {
	{
		.mode = FLEXMEM_MODE_VF,
		.hw_slots = 6,
		.max_regions = 12,
		.capacity = PLENTY,
		DEFAULT_SIZES,
	}, {
		.mode = FLEXMEM_MODE_PF,
		.max_regions = 5,
		.capacity = PLENTY,
		DEFAULT_SIZES,
	}, {
		.mode = FLEXMEM_MODE_VF,
		.hw_slots = 12,
		.max_regions = 12,
		.capacity = 44 * GIB,
		DEFAULT_SIZES,
	}, {
		.mode = FLEXMEM_MODE_PF,
		.max_regions = 12,
		.program_slots = 2,
		.capacity = 33 * GIB,
		DEFAULT_SIZES,
	}, {
		.mode = FLEXMEM_MODE_VF,
		.hw_slots = 10,
		.max_regions = 6,
		.program_slots = 1,
		.capacity = PLENTY,
		.refused_slots = BIT(1) | BIT(4),
		DEFAULT_SIZES,
	}, {
		.mode = FLEXMEM_MODE_PF,
		.acquire = FLEXMEM_ACQUIRE_PREALLOC,
		.max_regions = 8,
		.program_slots = 1,
		.capacity = 29 * GIB,
		.nr_sizes = 2,
		.sizes = { 8 * GIB, 2 * GIB },
	}, {
		.mode = FLEXMEM_MODE_VF,
		.acquire = FLEXMEM_ACQUIRE_PREALLOC,
		.hw_slots = 4,
		.max_regions = 8,
		.capacity = PLENTY,
		.nr_sizes = 2,
		.sizes = { 4 * GIB, 8 * GIB },
	}, {
		.mode = FLEXMEM_MODE_PF,
		.max_regions = 4,
		.capacity = PLENTY,
		.nr_sizes = 3,
		.sizes = { 64 * SZ_1M, 16 * SZ_1M, 2 * SZ_1M },
	},
};

/* A live allocation. A struct fake_block would be larger and slower. */
struct live {
	struct flexmem_region *region;
	struct flexmem_block *block;
	unsigned int owner;
	bool orphaned;
};

struct run {
	struct kunit *test;
	const struct scenario *scenario;
	unsigned int sample;
	struct rnd_state rnd;
	struct fake_device *fake;
	struct flexmem_table *table;
	struct model *model;
	u64 max_size;
	struct flexmem_spare spare;
	struct live live[MAX_LIVE];
	unsigned int nr_live;
	unsigned int most_live;
	unsigned int done;
	unsigned int phase_end;
	unsigned int alloc_percent;
	bool only_large;
	u64 reached[FLEXMEM_REASON_ALIGNMENT + 1];
	u64 errors;
	u64 trims;
	u64 orphans;
	u64 quarantines;
	u64 grown;
	u64 shrunk;
	struct flexmem_account *account[MODEL_OWNERS];
	struct flexmem_owner_entry owner[FLEXMEM_VIEW_OWNERS];
	struct flexmem_view snapshot;
};

/*
 * A long run is several test cases, because the kernel takes a long test case
 * for a hang.
 */
#define NR_PARTS 5

struct param {
	enum flexmem_fit fit;
	enum flexmem_order order;
	unsigned int part;
};

static struct param pairs[] = {
	{ FLEXMEM_FIT_FIRST, FLEXMEM_ORDER_LOAD_BALANCE },
	{ FLEXMEM_FIT_FIRST, FLEXMEM_ORDER_FILL_FIRST },
	{ FLEXMEM_FIT_BEST, FLEXMEM_ORDER_LOAD_BALANCE },
	{ FLEXMEM_FIT_BEST, FLEXMEM_ORDER_FILL_FIRST },
};

static struct param parts[ARRAY_SIZE(pairs) * NR_PARTS];

static void param_desc(struct param *param, char *desc)
{
	int at = snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s, %s",
			  fake_fit_name(param->fit),
			  fake_order_name(param->order));

	if (param->part)
		snprintf(desc + at, KUNIT_PARAM_DESC_SIZE - at,
			 ", part %u of %u", param->part, NR_PARTS);
}

KUNIT_ARRAY_PARAM(pair, pairs, param_desc);
KUNIT_ARRAY_PARAM(part, parts, param_desc);

static u32 below(struct run *run, u32 limit)
{
	return prandom_u32_state(&run->rnd) % limit;
}

static bool percent(struct run *run, u32 chance)
{
	return below(run, 100) < chance;
}

/*
 * A random size with a uniform logarithm, from one unit to somewhat above the
 * largest region.
 */
static u64 random_size(struct run *run)
{
	unsigned int bits = ilog2(run->max_size) + 1, least = 7;
	u64 base, size;

	if (run->only_large)
		least = bits - 6;
	base = BIT_ULL(least + below(run, bits - least));
	size = base + (((u64)prandom_u32_state(&run->rnd) << 32 |
			prandom_u32_state(&run->rnd)) & (base - 1));
	return ALIGN(size, FLEXMEM_ALIGN);
}

static u64 random_alignment(struct run *run)
{
	return percent(run, 70) ? FLEXMEM_ALIGN : BIT_ULL(7 + below(run, 24));
}

/* checkpatch: MACRO_ARG_REUSE - run is always the name of a pointer */
#define ASSERT_SAME(run, a, b)						\
	KUNIT_ASSERT_EQ_MSG((run)->test, a, b, "operation %u, scenario %zu", \
			    (run)->done, (run)->scenario - scenarios)

/* The owner entry of a client in the snapshot. */
static const struct flexmem_owner_entry *entry_of(struct run *run,
						  unsigned int owner)
{
	unsigned int i;

	for (i = 0; i < run->snapshot.sum.out_owner_count; i++)
		if (run->owner[i].kind == FLEXMEM_OWNER_CLIENT &&
		    run->owner[i].id == run->account[owner]->id)
			return &run->owner[i];
	return NULL;
}

static void check_sums(struct run *run)
{
	const struct flexmem_snapshot *is = &run->snapshot.sum;
	const struct flexmem_owner_entry *entry;
	struct model_sums want;
	unsigned int i;

	model_sum(run->model, &want);
	ASSERT_SAME(run, is->out_total, want.total);
	ASSERT_SAME(run, is->out_free, want.free);
	ASSERT_SAME(run, is->out_owned, want.owned);
	ASSERT_SAME(run, is->out_orphaned, want.orphaned);
	ASSERT_SAME(run, is->out_quarantined, want.quarantined);
	ASSERT_SAME(run, is->out_free + is->out_owned + is->out_orphaned +
			 is->out_quarantined, is->out_total);
	for (i = 0; i < MODEL_OWNERS; i++) {
		entry = entry_of(run, i);
		KUNIT_ASSERT_NOT_NULL(run->test, entry);
		ASSERT_SAME(run, entry->bytes, want.bytes[i]);
		ASSERT_SAME(run, entry->orphaned, want.orphaned_of[i]);
		ASSERT_SAME(run, entry->slots, want.slots[i]);
	}
}

static void check_table(struct run *run)
{
	const char *wrong = checks_of_table(run->table);
	unsigned int slot, nr = 0;

	KUNIT_ASSERT_NULL_MSG(run->test, wrong, "operation %u: %s", run->done,
			      wrong);
	run->snapshot.owner = run->owner;
	flexmem_table_snapshot(run->table, NULL, &run->snapshot);
	for (slot = 0; slot < run->table->slots.nr; slot++) {
		struct flexmem_region_entry want, *is;

		model_region_entry(run->model, slot, &want);
		if (!want.total)
			continue;
		ASSERT_SAME(run, nr < run->snapshot.nr, true);
		is = &run->snapshot.region[nr++];
		if (run->scenario->mode == FLEXMEM_MODE_PF)
			want.region_id =
				fake_table_region(run->table, slot)->mem.base;
		ASSERT_SAME(run, is->slot, want.slot);
		ASSERT_SAME(run, is->region_id, want.region_id);
		ASSERT_SAME(run, is->flags, want.flags);
		ASSERT_SAME(run, is->total, want.total);
		ASSERT_SAME(run, is->free, want.free);
		ASSERT_SAME(run, is->largest_free, want.largest_free);
		ASSERT_SAME(run, is->nr_allocated, want.nr_allocated);
		ASSERT_SAME(run, is->nr_free, want.nr_free);
		ASSERT_SAME(run, is->sequence, want.sequence);
	}
	ASSERT_SAME(run, nr, run->snapshot.nr);
	ASSERT_SAME(run, flexmem_slots_generation(&run->table->slots),
		    run->model->generation);
	ASSERT_SAME(run, run->fake->taken - fake_device_lost(run->fake),
		    run->model->domain[0].taken);
	check_sums(run);
}

static void compare_failure(struct run *run, int rc,
			    const struct flexmem_request *is,
			    const struct model_answer *want)
{
	ASSERT_SAME(run, rc, want->rc);
	ASSERT_SAME(run, is->reason, want->reason);
	ASSERT_SAME(run, is->region_reason, want->region_reason);
	ASSERT_SAME(run, is->regions, want->regions);
	ASSERT_SAME(run, is->sum.free, want->total_free);
	ASSERT_SAME(run, is->sum.largest, want->largest_free);
	ASSERT_SAME(run, is->max_region, want->max_region);
	ASSERT_SAME(run, is->room, want->room);
	ASSERT_SAME(run, is->leaving, want->leaving);
	if (rc == -ENOMEM)
		run->reached[want->reason]++;
	else
		run->errors++;
}

static int place(struct run *run, const struct model_request *wanted,
		 unsigned int owner, struct flexmem_request *request)
{
	*request = (struct flexmem_request) {
		.size = wanted->size,
		.alignment = wanted->alignment,
		.flags = (wanted->program ? FLEXMEM_ALLOC_PROGRAM : 0) |
			 (wanted->growable ? FLEXMEM_ALLOC_GROWABLE : 0),
		.domains = run->table->default_domains,
		.first = run->table->default_domains,
		.chunks = 1,
		.table = run->table,
		.account = run->account[owner],
	};
	return fake_place(request, NULL);
}

static void do_alloc(struct run *run)
{
	const struct model_request request = {
		.size = random_size(run),
		.alignment = random_alignment(run),
		.domains = 1,
		.program = percent(run, 10),
		.growable = percent(run, 15),
	};
	unsigned int owner = below(run, MODEL_OWNERS);
	struct flexmem_request is;
	struct model_answer want;
	int rc;

	if (!below(run, 8)) {
		run->model->acquire_error = -ETIMEDOUT;
		run->fake->replies_are_lost = percent(run, 50);
		fake_device_fail(run->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	}
	model_alloc(run->model, &request, &want);
	rc = place(run, &request, owner, &is);
	if (!rc) {
		run->live[run->nr_live++] = (struct live) {
			.region = is.block->region,
			.block = is.block,
			.owner = owner,
		};
		run->most_live = max(run->most_live, run->nr_live);
	}
	ASSERT_SAME(run, run->fake->failure[FAKE_ACQUIRE].times,
		    !!run->model->acquire_error);
	run->model->acquire_error = 0;
	fake_device_fail(run->fake, FAKE_ACQUIRE, 1, 0, 0);

	if (rc) {
		compare_failure(run, rc, &is, &want);
		return;
	}
	ASSERT_SAME(run, want.rc, 0);
	ASSERT_SAME(run, is.block->region->slot, want.slot);
	ASSERT_SAME(run, is.block->start, want.offset);
	ASSERT_SAME(run, is.block->size, request.size);
	model_set_owner(run->model, want.slot, want.offset, owner);
	run->reached[FLEXMEM_REASON_NONE]++;
}

static void free_live(struct run *run, unsigned int i)
{
	struct live live = run->live[i];

	run->live[i] = run->live[--run->nr_live];
	flexmem_region_free(live.block, 0, NULL);
}

static void do_free(struct run *run)
{
	unsigned int i = below(run, run->nr_live);

	model_free(run->model, run->live[i].region->slot,
		   run->live[i].block->start);
	free_live(run, i);
}

/* Frees what a failed comparison has left allocated. */
static void free_everything(void *data)
{
	struct run *run = data;

	while (run->nr_live)
		free_live(run, 0);
	flexmem_spare_drop(&run->spare, NULL);
	run->spare = (struct flexmem_spare) {};
}

/* Makes a live block an orphan, or puts it into quarantine. */
static void do_orphan_or_quarantine(struct run *run)
{
	unsigned int i = below(run, run->nr_live);
	struct live *live = &run->live[i];
	unsigned int slot = live->region->slot;

	if (live->orphaned)
		return;
	if (percent(run, 50)) {
		model_orphan(run->model, slot, live->block->start);
		flexmem_region_orphan(live->block);
		live->orphaned = true;
		run->orphans++;
	} else {
		model_quarantine(run->model, slot, live->block->start);
		flexmem_region_quarantine(live->block);
		*live = run->live[--run->nr_live];
		run->quarantines++;
	}
}

/*
 * Ends the growth of an allocation: the added bytes join the allocation, are
 * freed, or go into quarantine.
 */
static void end_growth(struct run *run, const struct live *live,
		       struct flexmem_block *tail)
{
	unsigned int slot = live->region->slot;
	u32 roll = below(run, 10);

	if (roll < 6) {
		model_join(run->model, slot, live->block->start);
		flexmem_region_join(live->block, tail);
		run->grown++;
	} else if (roll < 9) {
		model_free(run->model, slot, tail->start);
		flexmem_region_free(tail, 0, NULL);
	} else {
		model_quarantine(run->model, slot, tail->start);
		flexmem_region_quarantine(tail);
		run->quarantines++;
	}
}

/* Gets one spare node, unless an earlier call has left one. */
static int fill_spare(struct run *run)
{
	return run->spare.block[0] ? 0 :
				     flexmem_spare_fill(&run->spare, 1, NULL);
}

static void grow(struct run *run, const struct live *live, u64 more)
{
	unsigned int slot = live->region->slot;
	struct flexmem_account *account = run->account[live->owner];
	struct flexmem_block *tail;
	u64 room;

	ASSERT_SAME(run, fill_spare(run), 0);
	ASSERT_SAME(run, flexmem_charge(account, more, 0, NULL), 0);
	room = flexmem_region_extend(live->block, more, &run->spare, &tail);
	ASSERT_SAME(run, room,
		    model_room(run->model, slot, live->block->start));
	ASSERT_SAME(run, !!tail, more <= room);
	if (!tail) {
		flexmem_uncharge(account, more, 0);
		return;
	}
	ASSERT_SAME(run, tail->start,
		    model_extend(run->model, slot, live->block->start, more));
	ASSERT_SAME(run, tail->size, more);
	if (percent(run, 10))
		KUNIT_ASSERT_NULL(run->test, checks_of_table(run->table));
	end_growth(run, live, tail);
}

static void do_resize(struct run *run)
{
	const struct live *live = &run->live[below(run, run->nr_live)];
	u64 size = random_size(run), old = live->block->size;

	if (live->orphaned)
		return;
	if (size >= old) {
		grow(run, live, size - old ?: FLEXMEM_ALIGN);
		return;
	}
	model_shrink(run->model, live->region->slot, live->block->start, size);
	ASSERT_SAME(run, fill_spare(run), 0);
	flexmem_region_shrink(live->block, size, &run->spare);
	ASSERT_SAME(run, live->block->size, size);
	run->shrunk++;
}

static void do_trim(struct run *run, bool scrub_fails)
{
	unsigned int regions, want_regions;
	u64 bytes, want_bytes;

	run->model->scrub_error = scrub_fails ? -EIO : 0;
	ASSERT_SAME(run, model_begin_trim(run->model), 0);
	run->model->scrub_error = 0;
	ASSERT_SAME(run, model_trim(run->model, false, &want_regions,
				    &want_bytes), 0);
	fake_device_fail(run->fake, FAKE_SCRUB, 1, scrub_fails, -EIO);
	ASSERT_SAME(run, flexmem_table_trim(run->table, &regions, &bytes), 0);
	fake_device_fail(run->fake, FAKE_SCRUB, 1, 0, 0);
	ASSERT_SAME(run, bytes, want_bytes);
	ASSERT_SAME(run, regions, want_regions);
	run->trims += regions;
}

/* Sometimes shrinks the device's capacity, or restores it. */
static void do_new_capacity(struct run *run)
{
	u64 capacity = run->scenario->capacity;

	if (capacity == run->fake->capacity)
		capacity /= 2;
	run->fake->capacity = capacity;
	model_new_capacity(run->model, 0, capacity);
	ASSERT_SAME(run, flexmem_table_new_capacity(run->table), 0);
}

static void new_phase(struct run *run)
{
	static const unsigned int alloc_percents[] = { 95, 75, 50, 50, 25, 5 };

	run->phase_end = run->done + 20 + below(run, 300);
	run->alloc_percent =
		alloc_percents[below(run, ARRAY_SIZE(alloc_percents))];
	run->only_large = percent(run, 40);
}

static void do_operation(struct run *run)
{
	u32 roll = below(run, 1000);

	if (run->done >= run->phase_end)
		new_phase(run);
	if (roll == 0)
		do_new_capacity(run);
	else if (roll <= 10)
		do_trim(run, percent(run, 30));
	else if (roll <= 30 && run->nr_live)
		do_orphan_or_quarantine(run);
	else if (roll <= 130 && run->nr_live)
		do_resize(run);
	else if (run->nr_live < MAX_LIVE &&
		 (!run->nr_live || percent(run, run->alloc_percent)))
		do_alloc(run);
	else
		do_free(run);
}

static void start(struct run *run, const struct scenario *scenario)
{
	const struct param *pair = run->test->param_value;
	struct flexmem_settings settings = fake_settings();
	struct model *model = run->model;
	unsigned int i;

	settings.fit = pair->fit;
	settings.order = pair->order;
	settings.acquire = scenario->acquire;
	settings.max_regions = scenario->max_regions;
	settings.program_slots = scenario->program_slots;
	settings.nr_sizes = scenario->nr_sizes;
	memcpy(settings.sizes, scenario->sizes, sizeof(scenario->sizes));

	model->mode = scenario->mode;
	model->fit = pair->fit;
	model->order = pair->order;
	model->acquire = scenario->acquire;
	model->hw_slots = scenario->hw_slots;
	model->max_regions = scenario->max_regions;
	model->program_slots = scenario->program_slots;
	model->nr_domains = 1;
	model->default_domains = 1;
	model->domain[0].nr_sizes = scenario->nr_sizes;
	memcpy(model->domain[0].sizes, scenario->sizes,
	       sizeof(scenario->sizes));
	model->domain[0].capacity = scenario->capacity;
	model->refused_slots = scenario->refused_slots;
	model->tries = FLEXMEM_FIT_TRIES;
	model_start(model);

	run->scenario = scenario;
	run->max_size = 0;
	for (i = 0; i < scenario->nr_sizes; i++)
		run->max_size = max(run->max_size, scenario->sizes[i]);
	run->fake = fake_device_create(run->test, scenario->mode,
				       scenario->hw_slots, scenario->capacity);
	run->fake->refused_slots = scenario->refused_slots;
	run->table = fake_table_create(run->test, run->fake, &settings);
	run->account[0] = fake_table_account(run->table);
	run->account[1] = fake_account_open(run->test, run->table, 1);
	run->account[2] = fake_account_open(run->test, run->table, 1);
	KUNIT_ASSERT_EQ(run->test, 0,
			kunit_add_action(run->test, free_everything, run));
	if (scenario->acquire == FLEXMEM_ACQUIRE_PREALLOC) {
		ASSERT_SAME(run, model_prealloc(model), 0);
		ASSERT_SAME(run, fake_table_prealloc(run->table), 0);
	}
	check_table(run);
}

/* Frees everything. Afterwards each region must be one free block. */
static void finish(struct run *run)
{
	while (run->nr_live)
		do_free(run);
	check_table(run);
	do_trim(run, false);
	check_table(run);
	ASSERT_SAME(run, run->snapshot.nr, 0);
	fake_table_remove(run->table);
}

static void run_scenario(struct run *run, const struct scenario *scenario,
			 unsigned int nr)
{
	unsigned int end = run->done + nr;

	start(run, scenario);
	while (run->done < end) {
		do_operation(run);
		run->done++;
		if (run->done % run->sample == 0)
			check_table(run);
		if (run->done % 64 == 0)
			cond_resched();
	}
	finish(run);
}

static void run_all(struct kunit *test, unsigned int nr, unsigned int sample)
{
	const struct param *param = test->param_value;
	ktime_t began = ktime_get();
	struct run *run;
	unsigned int i;

	run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, run);
	run->test = test;
	run->sample = sample;
	run->model = model_create(test);
	prandom_seed_state(&run->rnd, fake_seed() + param->part);
	for (i = 0; i < ARRAY_SIZE(scenarios); i++)
		run_scenario(run, &scenarios[i], nr / ARRAY_SIZE(scenarios));

	kunit_info(test,
		   "seed=%u: %u operations in %lld ms: allocated %llu, at most %u at once, capacity %llu, slots %llu, max_regions %llu, fragmentation %llu, alignment %llu, region_size %llu, firmware errors %llu, regions trimmed %llu, orphaned %llu, quarantined %llu, grown %llu, shrunk %llu",
		   fake_seed(), run->done, ktime_ms_delta(ktime_get(), began),
		   run->reached[FLEXMEM_REASON_NONE], run->most_live,
		   run->reached[FLEXMEM_REASON_CAPACITY],
		   run->reached[FLEXMEM_REASON_SLOTS],
		   run->reached[FLEXMEM_REASON_MAX_REGIONS],
		   run->reached[FLEXMEM_REASON_FRAGMENTATION],
		   run->reached[FLEXMEM_REASON_ALIGNMENT],
		   run->reached[FLEXMEM_REASON_REGION_SIZE], run->errors,
		   run->trims, run->orphans, run->quarantines, run->grown,
		   run->shrunk);
	if (nr < ENOUGH_OPS)
		return;
	for (i = 0; i < FLEXMEM_REASON_HANDLES; i++)
		KUNIT_EXPECT_GT_MSG(test, run->reached[i], 0, "reason %u", i);
	KUNIT_EXPECT_GT(test, run->errors, 0);
	KUNIT_EXPECT_GT(test, run->trims, 0);
	KUNIT_EXPECT_GT(test, run->orphans, 0);
	KUNIT_EXPECT_GT(test, run->quarantines, 0);
	KUNIT_EXPECT_GT(test, run->grown, 0);
	KUNIT_EXPECT_GT(test, run->shrunk, 0);
}

static void equals_model_checked_each_time(struct kunit *test)
{
	run_all(test, ops, 1);
}

static void equals_model_checked_now_and_then(struct kunit *test)
{
	run_all(test, sampled_ops / NR_PARTS, SAMPLE);
}

static struct kunit_case random_cases[] = {
	KUNIT_CASE_PARAM_ATTR(equals_model_checked_each_time, pair_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE_PARAM_ATTR(equals_model_checked_now_and_then,
			      part_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static int random_suite_init(struct kunit_suite *suite)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		parts[i] = pairs[i / NR_PARTS];
		parts[i].part = i % NR_PARTS + 1;
	}
	kunit_info(suite, "seed=%u", fake_seed());
	return 0;
}

static struct kunit_suite random_suite = {
	.name = "flexmem_random",
	.suite_init = random_suite_init,
	.test_cases = random_cases,
};

kunit_test_suite(random_suite);
