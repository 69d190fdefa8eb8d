// SPDX-License-Identifier: GPL-2.0
/*
 * A failure is a proof: if an ALLOC fails for lack of room, no placement existed
 * under the rules. Random histories of allocations, limits, reservations,
 * removed cgroups and capacities run. After each failure the test searches all
 * holes of all regions, and all regions that the device could still grant, in
 * the simplest way.
 */

#include <kunit/test.h>
#include <linux/align.h>
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

#include "client.h"
#include "fake_device.h"
#include "owner.h"
#include "placement.h"
#include "reservation.h"
#include "table.h"

static unsigned int histories = 40;
module_param(histories, uint, 0444);
MODULE_PARM_DESC(histories, "Random histories after whose failures every placement is tried (default 40)");

/* Steps of a history, and the most live allocations in it. */
#define STEPS 60
#define MAX_LIVE 32

#define NR_FILES 3

/* The cgroups of the files. 12 is below 1. */
static const unsigned int cgroups[NR_FILES] = { 1, 12, 2 };

struct scenario {
	enum flexmem_order order;
	enum flexmem_fit fit;
	enum flexmem_acquire acquire;
	unsigned int max_regions;
	unsigned int nr_sizes;
	u64 sizes[3];
};

static const struct scenario scenarios[] = {
	{
		.order = FLEXMEM_ORDER_LOAD_BALANCE,
		.fit = FLEXMEM_FIT_FIRST,
		.max_regions = 12,
		.nr_sizes = 3,
		.sizes = { 12 * GIB, 8 * GIB, 4 * GIB },
	}, {
		.order = FLEXMEM_ORDER_FILL_FIRST,
		.fit = FLEXMEM_FIT_BEST,
		.max_regions = 4,
		.nr_sizes = 2,
		.sizes = { 5 * GIB, 12 * GIB },
	}, {
		.order = FLEXMEM_ORDER_FILL_FIRST,
		.fit = FLEXMEM_FIT_FIRST,
		.max_regions = 12,
		.nr_sizes = 2,
		.sizes = { 8 * GIB, 5 * GIB },
	}, {
		.order = FLEXMEM_ORDER_LOAD_BALANCE,
		.fit = FLEXMEM_FIT_BEST,
		.acquire = FLEXMEM_ACQUIRE_PREALLOC,
		.max_regions = 6,
		.nr_sizes = 1,
		.sizes = { 6 * GIB },
	},
};

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_client *file[NR_FILES];
	struct {
		struct flexmem_client *file;
		struct flexmem_allocation *allocation;
	} live[MAX_LIVE];
	unsigned int nr;
	unsigned int failures;
	bool wrong;
	struct rnd_state random;
};

static u32 draw(struct ctx *ctx, u32 below)
{
	return prandom_u32_state(&ctx->random) % below;
}

static bool is_full(const struct flexmem_account *account,
		    enum flexmem_resource r, u64 more)
{
	return account->used[r] + more > account->limit[r] && more;
}

/* Whether the limits of the file's cgroups allow the bytes and the handle. */
static bool may_have(struct flexmem_account *file, u64 size)
{
	struct flexmem_account *account;
	bool may = true;

	spin_lock(&file->accounts->lock);
	for (account = file->parent; account; account = account->parent) {
		flexmem_account_settle(account);
		may &= !is_full(account, FLEXMEM_RESOURCE_BYTES, size) &&
		       !is_full(account, FLEXMEM_RESOURCE_HANDLES, 1);
	}
	spin_unlock(&file->accounts->lock);
	return may;
}

/* Whether they allow a block in a slot; @slot -1: in a new region. */
static bool may_enter(struct flexmem_account *file, int slot)
{
	struct flexmem_account *account;

	for (account = file->parent; account; account = account->parent)
		if ((slot < 0 ||
		     !flexmem_charges_region(&account->in[slot])) &&
		    is_full(account, FLEXMEM_RESOURCE_REGIONS, 1))
			return false;
	return true;
}

static bool has_hole(const struct flexmem_region *region, u64 size,
		     u64 alignment)
{
	const struct flexmem_block *block;

	list_for_each_entry(block, &region->blocks.all, link)
		if (block->use == FLEXMEM_USE_FREE &&
		    ALIGN(block->start, alignment) + size <=
		    block->start + block->size)
			return true;
	return false;
}

static bool is_open(const struct flexmem_region *region,
		    const struct flexmem_account *file)
{
	return !region->reserved_for ||
	       flexmem_account_is_removed(region->reserved_for) ||
	       flexmem_account_is_below(file, region->reserved_for);
}

/* Whether the device would grant a region of at least @size bytes. */
static bool may_acquire(struct ctx *ctx, u64 size)
{
	const struct flexmem_settings *settings = &ctx->table->settings;
	u64 left = 0, most = 0;
	unsigned int i;
	bool fits = false;

	if (ctx->fake->capacity > ctx->fake->taken)
		left = round_down(ctx->fake->capacity - ctx->fake->taken, SZ_2M);
	for (i = 0; i < settings->nr_sizes; i++) {
		most = max(most, settings->sizes[i]);
		fits |= size <= settings->sizes[i] &&
			settings->sizes[i] <= left;
	}
	return fits || (size <= left && left <= most);
}

/* Searches for a placement. Returns a description of it, or NULL. */
static const char *placement(struct ctx *ctx, struct flexmem_account *file,
			     u64 size, u64 alignment)
{
	struct flexmem_region *region;
	bool has_slot = false;
	unsigned int slot;

	if (!may_have(file, size))
		return NULL;
	for (slot = 0; slot < ctx->table->slots.nr; slot++) {
		region = fake_table_region(ctx->table, slot);
		if (!region)
			has_slot = true;
		else if (is_open(region, file) && may_enter(file, slot) &&
			 has_hole(region, size, alignment))
			return "a hole in a region";
	}
	return has_slot && may_enter(file, -1) && may_acquire(ctx, size) ?
		"a new region" : NULL;
}

static u64 draw_size(struct ctx *ctx)
{
	u64 size = (u64)draw(ctx, 1 << 20) << draw(ctx, 15);

	if (!draw(ctx, 4))
		size = (u64)(1 + draw(ctx, 12)) * GIB;
	return ALIGN(size + 1, FLEXMEM_ALIGN);
}

static void alloc(struct kunit *test, struct ctx *ctx)
{
	struct flexmem_client *file = ctx->file[draw(ctx, NR_FILES)];
	u64 alignment = FLEXMEM_ALIGN << (draw(ctx, 3) ? 0 : draw(ctx, 20));
	struct flexmem_allocation *allocation;
	u64 size = draw_size(ctx);
	struct flexmem_request request;
	const char *found;

	if (ctx->nr == MAX_LIVE)
		return;
	allocation = fake_client_prepare(file, size, alignment, 0, &request);
	if (!IS_ERR(allocation)) {
		flexmem_client_publish(file, allocation);
		ctx->live[ctx->nr].file = file;
		ctx->live[ctx->nr++].allocation = allocation;
		return;
	}
	KUNIT_ASSERT_EQ(test, PTR_ERR(allocation), -ENOMEM);
	ctx->failures++;
	found = placement(ctx, file->account, size, alignment);
	ctx->wrong |= !!found;
	KUNIT_EXPECT_NULL_MSG(test, found,
			      "%llu bytes failed for reason %u, but there is %s",
			      size, request.reason, found);
}

static void free_one(struct ctx *ctx)
{
	unsigned int i;

	if (!ctx->nr)
		return;
	i = draw(ctx, ctx->nr);
	flexmem_client_detach(ctx->live[i].file,
			      ctx->live[i].allocation->handle);
	flexmem_client_release(ctx->live[i].file, ctx->live[i].allocation);
	ctx->live[i] = ctx->live[--ctx->nr];
}

static void limit(struct ctx *ctx)
{
	struct flexmem_client *file = ctx->file[draw(ctx, NR_FILES)];
	enum flexmem_resource r = draw(ctx, FLEXMEM_RESOURCE_FILES);
	u64 limit = r == FLEXMEM_RESOURCE_BYTES ? draw_size(ctx) :
						  draw(ctx, 8);

	fake_client_limit(file, r, draw(ctx, 2) ? limit : FLEXMEM_NO_LIMIT);
}

static void reserve(struct ctx *ctx, unsigned int file, unsigned int count)
{
	const struct flexmem_settings *settings = &ctx->table->settings;
	enum flexmem_reason reason;

	/* It fails if there are too few regions, which changes nothing. */
	flexmem_reservation_set(ctx->table, ctx->file[file]->account->parent,
				settings->sizes[draw(ctx, settings->nr_sizes)],
				count, &reason);
}

static void set_capacity(struct kunit *test, struct ctx *ctx)
{
	ctx->fake->capacity = GIB * (6 + draw(ctx, 40)) + SZ_2M * draw(ctx, 3) +
			      SZ_4K * draw(ctx, 2);
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_new_capacity(ctx->table));
}

static void trim(struct ctx *ctx)
{
	unsigned int nr;
	u64 bytes;

	flexmem_table_trim(ctx->table, &nr, &bytes);
}

static void step(struct kunit *test, struct ctx *ctx)
{
	u32 what = draw(ctx, 100);

	if (what < 60)
		alloc(test, ctx);
	else if (what < 80)
		free_one(ctx);
	else if (what < 88)
		limit(ctx);
	else if (what < 92)
		reserve(ctx, draw(ctx, NR_FILES), draw(ctx, 3));
	else if (what < 94)
		trim(ctx);
	else if (what < 97)
		set_capacity(test, ctx);
	else if (what < 98)
		fake_cgroup(2)->self.flags &= ~CSS_ONLINE;
}

/* One history. It begins and ends without regions, limits and reservations. */
static void run_history(struct kunit *test, struct ctx *ctx, u64 seed)
{
	enum flexmem_resource r;
	unsigned int i;

	prandom_seed_state(&ctx->random, seed);
	set_capacity(test, ctx);
	for (i = 0; i < STEPS; i++)
		step(test, ctx);
	while (ctx->nr)
		free_one(ctx);
	fake_cgroup(2);
	for (i = 0; i < NR_FILES; i++) {
		reserve(ctx, i, 0);
		for (r = 0; r < FLEXMEM_RESOURCE_FILES; r++)
			fake_client_limit(ctx->file[i], r, FLEXMEM_NO_LIMIT);
	}
	trim(ctx);
	KUNIT_ASSERT_EQ(test, ctx->fake->taken, 0);
}

static void run_scenario(struct kunit *test, const struct scenario *scenario,
			 u64 seed)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	unsigned int i, nr = histories / ARRAY_SIZE(scenarios);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	settings.order = scenario->order;
	settings.fit = scenario->fit;
	settings.acquire = scenario->acquire;
	settings.max_regions = scenario->max_regions;
	settings.nr_sizes = scenario->nr_sizes;
	memcpy(settings.sizes, scenario->sizes, sizeof(scenario->sizes));
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 24 * GIB);
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	for (i = 0; i < NR_FILES; i++)
		ctx->file[i] = fake_client_open(test, ctx->table, cgroups[i]);
	for (i = 0; i < nr && !ctx->wrong; i++)
		run_history(test, ctx, seed + i);
	/* The test is worth nothing if few requests fail. */
	KUNIT_EXPECT_GE(test, ctx->failures, nr);
}

static void no_failure_with_a_placement(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(scenarios); i++)
		run_scenario(test, &scenarios[i], 1000000 * i);
}

static struct kunit_case proof_cases[] = {
	KUNIT_CASE(no_failure_with_a_placement),
	{}
};

static struct kunit_suite proof_suite = {
	.name = "flexmem_proof",
	.test_cases = proof_cases,
};

kunit_test_suite(proof_suite);
