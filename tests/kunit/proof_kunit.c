// SPDX-License-Identifier: GPL-2.0
/*
 * A failure is a proof: if an ALLOC fails for lack of room, no placement existed
 * under the rules. And what is told as free can be had. Random histories of
 * allocations, limits, reservations, removed cgroups and capacities run, on
 * devices with one memory or several, with slots for programs, and with firmware
 * that refuses sizes and slots. After each failure the test searches all holes
 * of all regions, and all regions that the device could still grant, in the
 * simplest way. Now and then a file asks how much it can have, and takes all of
 * that.
 */

#include <kunit/test.h>
#include <linux/align.h>
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

#include "alloc/client.h"
#include "alloc/placement.h"
#include "fake_device.h"
#include "parts/reservation.h"
#include "parts/snapshot.h"
#include "region/table.h"
#include "tenant/owner.h"

static unsigned int histories = 40;
module_param(histories, uint, 0444);
MODULE_PARM_DESC(histories, "Random histories after whose failures every placement is tried (default 40)");

/* Steps of a history, and the most live allocations in it. */
#define STEPS 60
#define MAX_LIVE 32

/* The most pieces in which a file takes what is free: there are as many holes. */
#define MAX_PIECES 128

#define NR_FILES 3

/* The cgroups of the files. 12 is below 1. */
static const unsigned int cgroups[NR_FILES] = { 1, 12, 2 };

struct scenario {
	enum flexmem_order order;
	enum flexmem_fit fit;
	enum flexmem_acquire acquire;
	unsigned int max_regions;
	unsigned int program_slots;
	bool has_memories;
	bool refuses;
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
	}, {
		.order = FLEXMEM_ORDER_FILL_FIRST,
		.fit = FLEXMEM_FIT_FIRST,
		.max_regions = 8,
		.program_slots = 2,
		.nr_sizes = 3,
		.sizes = { 12 * GIB, 8 * GIB, 4 * GIB },
	}, {
		.order = FLEXMEM_ORDER_LOAD_BALANCE,
		.fit = FLEXMEM_FIT_BEST,
		.max_regions = 6,
		.has_memories = true,
		.nr_sizes = 3,
		.sizes = { 12 * GIB, 8 * GIB, 4 * GIB },
	}, {
		.order = FLEXMEM_ORDER_LOAD_BALANCE,
		.fit = FLEXMEM_FIT_FIRST,
		.max_regions = 8,
		.refuses = true,
		.nr_sizes = 3,
		.sizes = { 12 * GIB, 8 * GIB, 4 * GIB },
	}, {
		.order = FLEXMEM_ORDER_FILL_FIRST,
		.fit = FLEXMEM_FIT_BEST,
		.max_regions = 8,
		.program_slots = 1,
		.has_memories = true,
		.refuses = true,
		.nr_sizes = 2,
		.sizes = { 8 * GIB, 5 * GIB },
	},
};

/**
 * struct ctx - a history
 * @fake: the device
 * @scenario: its device
 * @table: its regions
 * @file: open files
 * @live: allocations
 * @nr: number of them
 * @piece: allocations of a file that takes what is free
 * @failures: number of requests that have failed for lack of room
 * @asked: how often a file has asked what is free
 * @alone: how often all other files have freed what they had
 * @wrong: a request has failed that must not fail
 * @random: state of draw()
 * @view: room for a snapshot
 */
struct ctx {
	const struct scenario *scenario;
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_client *file[NR_FILES];
	struct {
		struct flexmem_client *file;
		struct flexmem_allocation *allocation;
	} live[MAX_LIVE];
	unsigned int nr;
	struct flexmem_allocation *piece[MAX_PIECES];
	unsigned int failures;
	unsigned int asked;
	unsigned int alone;
	bool wrong;
	struct rnd_state random;
	struct flexmem_view view;
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

static u64 taken(const struct fake_device *fake, unsigned int domain)
{
	unsigned int i;
	u64 bytes = 0;

	for (i = 0; i < ARRAY_SIZE(fake->piece); i++)
		if (fake->piece[i].domain == domain)
			bytes += fake->piece[i].size;
	return bytes;
}

static bool is_granted(const struct fake_device *fake, u64 size)
{
	return !fake->refuses_from || size < fake->refuses_from;
}

/*
 * Whether the device would grant a region of at least @size bytes of a domain:
 * one of the sizes of the domain, or all that is left of it.
 */
static bool may_acquire(struct ctx *ctx, const struct flexmem_domain *domain,
			u64 size)
{
	const struct fake_device *fake = ctx->fake;
	u64 capacity = domain->id ? fake->capacity_of[domain->id] :
				    fake->capacity;
	u64 used = taken(fake, domain->id), left = 0, most = 0;
	unsigned int i;
	bool fits = false;

	if (capacity > used)
		left = round_down(capacity, domain->desc->granule) - used;
	for (i = 0; i < domain->nr_sizes; i++) {
		most = max(most, domain->sizes[i]);
		fits |= size <= domain->sizes[i] && domain->sizes[i] <= left &&
			is_granted(fake, domain->sizes[i]);
	}
	return fits || (size <= left && left <= most && is_granted(fake, left));
}

/* The same for any of the domains of a request. */
static bool may_acquire_any(struct ctx *ctx, u64 domains, u64 size)
{
	const struct flexmem_domain *domain;

	flexmem_for_each_domain(domain, ctx->table, domains)
		if (may_acquire(ctx, domain, size))
			return true;
	return false;
}

/* Searches for a placement. Returns a description of it, or NULL. */
static const char *placement(struct ctx *ctx, struct flexmem_account *file,
			     const struct flexmem_request *request)
{
	bool program = request->flags & FLEXMEM_ALLOC_PROGRAM &&
		       ctx->scenario->program_slots;
	const struct flexmem_slot_range *range =
		&ctx->table->range[fake_kind(program)];
	struct flexmem_region *region;
	bool has_slot = false;
	unsigned int slot;

	if (!may_have(file, request->size))
		return NULL;
	for (slot = range->first; slot < range->end; slot++) {
		region = fake_table_region(ctx->table, slot);
		if (!region)
			has_slot |= !(ctx->fake->refused_slots & BIT_ULL(slot));
		else if (request->domains & BIT_ULL(region->mem.domain) &&
			 is_open(region, file) && may_enter(file, slot) &&
			 has_hole(region, request->size, request->alignment))
			return "a hole in a region";
	}
	return has_slot && may_enter(file, -1) &&
	       may_acquire_any(ctx, request->domains, request->size) ?
		"a new region" : NULL;
}

static u64 draw_size(struct ctx *ctx)
{
	u64 size = (u64)draw(ctx, 1 << 20) << draw(ctx, 15);

	if (!draw(ctx, 4))
		size = (u64)(1 + draw(ctx, 12)) * GIB;
	return ALIGN(size + 1, FLEXMEM_ALIGN);
}

/* Some or all domains, and sometimes some of them come first. */
static void draw_domains(struct ctx *ctx, struct flexmem_request *request)
{
	u64 all = flexmem_table_all(ctx->table);

	request->domains = ctx->table->default_domains;
	if (draw(ctx, 2))
		request->domains = (1 + draw(ctx, all)) & all;
	request->first = request->domains;
	if (!draw(ctx, 3))
		request->first &= 1 + draw(ctx, all);
	request->first = request->first ?: request->domains;
	request->reuses = request->first != request->domains;
}

static void free_at(struct ctx *ctx, unsigned int i)
{
	flexmem_client_detach(ctx->live[i].file,
			      ctx->live[i].allocation->handle);
	flexmem_client_release(ctx->live[i].file, ctx->live[i].allocation);
	ctx->live[i] = ctx->live[--ctx->nr];
}

/*
 * A limit of regions without other files below it. Files of other cgroups may have
 * memory in the regions, but they are not asked, and nobody waits for them.
 */
static bool is_own_limit_of_regions(const struct flexmem_request *request)
{
	return request->reason == FLEXMEM_REASON_REGION_LIMIT &&
	       !(request->refused.figures.flags & FLEXMEM_REFUSAL_SHARED);
}

/*
 * No other file could help: even if all other files free all that they have, the
 * request fails.
 */
static void expect_nobody_helps(struct kunit *test, struct ctx *ctx,
				struct flexmem_client *file,
				const struct flexmem_request *asked)
{
	struct flexmem_request again = {
		.size = asked->size,
		.alignment = asked->alignment,
		.domains = asked->domains,
		.first = asked->first,
		.flags = asked->flags,
		.chunks = asked->chunks,
	};
	struct flexmem_allocation *allocation;
	unsigned int i;

	for (i = ctx->nr; i--;)
		if (ctx->live[i].file != file)
			free_at(ctx, i);
	allocation = flexmem_client_prepare(file, &again);
	ctx->alone++;
	ctx->wrong |= !IS_ERR(allocation);
	KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(allocation), -ENOMEM,
			    "%llu bytes failed for reason %u, and others have helped",
			    asked->size, asked->reason);
	if (!IS_ERR(allocation))
		flexmem_client_release(file, allocation);
}

static void alloc(struct kunit *test, struct ctx *ctx)
{
	struct flexmem_client *file = ctx->file[draw(ctx, NR_FILES)];
	struct flexmem_allocation *allocation;
	struct flexmem_request request = {
		.alignment = FLEXMEM_ALIGN << (draw(ctx, 3) ? 0 : draw(ctx, 20)),
		.size = draw_size(ctx),
		.flags = draw(ctx, 4) ? 0 : FLEXMEM_ALLOC_PROGRAM,
		.chunks = 1,
	};
	const char *found;

	draw_domains(ctx, &request);
	if (ctx->nr == MAX_LIVE)
		return;
	allocation = flexmem_client_prepare(file, &request);
	if (!IS_ERR(allocation)) {
		flexmem_client_publish(file, allocation);
		ctx->live[ctx->nr].file = file;
		ctx->live[ctx->nr++].allocation = allocation;
		return;
	}
	KUNIT_ASSERT_EQ(test, PTR_ERR(allocation), -ENOMEM);
	ctx->failures++;
	found = placement(ctx, file->account, &request);
	ctx->wrong |= !!found;
	KUNIT_EXPECT_NULL_MSG(test, found,
			      "%llu bytes failed for reason %u, but there is %s",
			      request.size, request.reason, found);
	/* Not each time: a history needs files that have memory. */
	if (request.alone && !is_own_limit_of_regions(&request) &&
	    !draw(ctx, 4))
		expect_nobody_helps(test, ctx, file, &request);
}

/* What a process is told that it can have: free bytes, and of one allocation. */
struct told {
	u64 free;
	u64 largest;
};

/* The sums of the domains that allocations come from by default. */
struct defaults {
	u64 capacity;
	u64 total;
	u64 free;
};

static u64 regions_of(const struct flexmem_view *view)
{
	return view->kinds[FLEXMEM_KIND_TENSOR].total +
	       view->kinds[FLEXMEM_KIND_PROGRAM].total;
}

/* @left: bytes of the regions for which there are slots. */
static void add_domain(struct ctx *ctx, struct flexmem_account *file,
		       const struct flexmem_domain *domain, u64 left,
		       struct defaults *sum, struct told *told)
{
	const struct flexmem_sum *tensor = &ctx->view.kinds[FLEXMEM_KIND_TENSOR];
	u64 domains = BIT_ULL(domain->id), total, fresh;

	ctx->view.domains = domains;
	flexmem_table_snapshot(ctx->table, file, &ctx->view);
	total = regions_of(&ctx->view);
	sum->capacity += domain->capacity;
	sum->total += total;
	sum->free += tensor->free;
	fresh = max(domain->capacity, total) - total;
	fresh = min(fresh, flexmem_table_max_region(ctx->table, domains));
	fresh = min(fresh, left);
	if (flexmem_table_exhausted(ctx->table, FLEXMEM_KIND_TENSOR, domains, 0))
		fresh = 0;
	told->largest = max(told->largest, max(fresh, tensor->largest));
}

/* As flexmem_device_available() computes it from the replies of DOMAIN. */
static struct told ask(struct ctx *ctx, struct flexmem_account *file)
{
	u64 all = flexmem_table_all(ctx->table), memory, left, limit;
	const struct flexmem_domain *domain;
	struct defaults sum = {};
	struct told told = {};

	ctx->view.domains = all;
	flexmem_table_snapshot(ctx->table, file, &ctx->view);
	memory = ctx->view.memory;
	limit = ctx->view.limit_left;
	left = memory - min(memory, regions_of(&ctx->view));
	flexmem_for_each_domain(domain, ctx->table, all)
		if (BIT_ULL(domain->id) & ctx->table->default_domains)
			add_domain(ctx, file, domain, left, &sum, &told);
		else
			memory -= min(memory, max(domain->capacity,
						  taken(ctx->fake, domain->id)));
	sum.capacity = ctx->scenario->has_memories ?
		       min(sum.capacity, memory) : memory;
	told.free = sum.free + max(sum.capacity, sum.total) - sum.total;
	told.free = min(told.free, limit);
	told.largest = min(told.largest, told.free);
	return told;
}

/*
 * What a file is told as free can be had, in pieces of what one allocation can
 * have. Limits of regions and handles are lifted: what others have in the same
 * regions may leave less.
 */
static void get_all(struct kunit *test, struct ctx *ctx)
{
	struct flexmem_client *file = ctx->file[draw(ctx, NR_FILES)];
	struct told first, told;
	struct flexmem_request request;
	unsigned int i, nr = 0;
	u64 had = 0;

	for (i = 0; i < NR_FILES; i++) {
		fake_client_limit(ctx->file[i], FLEXMEM_RESOURCE_REGIONS,
				  FLEXMEM_NO_LIMIT);
		fake_client_limit(ctx->file[i], FLEXMEM_RESOURCE_HANDLES,
				  FLEXMEM_NO_LIMIT);
	}
	first = ask(ctx, file->account);
	ctx->asked++;
	for (told = first; told.largest && nr < MAX_PIECES;
	     told = ask(ctx, file->account)) {
		ctx->piece[nr] = fake_client_prepare(file, told.largest,
						     FLEXMEM_ALIGN, 0, &request);
		if (IS_ERR(ctx->piece[nr]))
			break;
		flexmem_client_publish(file, ctx->piece[nr++]);
		had += told.largest;
	}
	ctx->wrong |= told.free || had < first.free;
	KUNIT_EXPECT_EQ_MSG(test, told.free, 0,
			    "%llu of %llu bytes were had, then %llu failed",
			    had, first.free, told.largest);
	KUNIT_EXPECT_GE(test, had, first.free);
	while (nr) {
		flexmem_client_detach(file, ctx->piece[--nr]->handle);
		flexmem_client_release(file, ctx->piece[nr]);
	}
}

static void free_one(struct ctx *ctx)
{
	if (ctx->nr)
		free_at(ctx, draw(ctx, ctx->nr));
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

static u64 draw_capacity(struct ctx *ctx)
{
	return GIB * (6 + draw(ctx, 40)) + SZ_2M * draw(ctx, 3) +
	       SZ_4K * draw(ctx, 2);
}

/* With a new capacity the device may refuse other sizes and slots. */
static void set_capacity(struct kunit *test, struct ctx *ctx)
{
	struct fake_device *fake = ctx->fake;
	unsigned int i;

	fake->capacity = draw_capacity(ctx);
	for (i = 1; i < fake->nr_domains; i++)
		fake->capacity_of[i] = draw_capacity(ctx) >> (i > 1 ? 3 : 0);
	if (ctx->scenario->refuses) {
		fake->refuses_from = draw(ctx, 2) ? GIB * (1 + draw(ctx, 12)) : 0;
		fake->refused_slots = draw(ctx, 2) ? draw(ctx, 256) : 0;
	}
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
	else if (what < 99 && !ctx->scenario->refuses)
		get_all(test, ctx);
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
	/* The driver tells what a device has, not what its firmware refuses. */
	if (!ctx->scenario->refuses)
		get_all(test, ctx);
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

/* A second memory of the default type, and two that only some requests use. */
static void add_memories(struct fake_device *fake)
{
	fake_device_add_domain(fake, FLEXMEM_DOMAIN_DEVICE, 20 * GIB);
	fake_device_add_domain(fake, FLEXMEM_DOMAIN_ON_CHIP, GIB);
	fake_device_add_domain(fake, FLEXMEM_DOMAIN_HOST_VISIBLE, 3 * GIB);
	fake->domains[3].nr_sizes = 2;
	fake->domains[3].sizes[0] = 2 * GIB;
	fake->domains[3].sizes[1] = GIB;
}

/* What the histories of all scenarios have shown. */
struct figures {
	unsigned int failures;
	unsigned int asked;
	unsigned int alone;
};

static void run_scenario(struct kunit *test, const struct scenario *scenario,
			 u64 seed, struct figures *figures)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	unsigned int i, nr = histories / ARRAY_SIZE(scenarios);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	settings.order = scenario->order;
	settings.fit = scenario->fit;
	settings.acquire = scenario->acquire;
	settings.max_regions = scenario->max_regions;
	settings.program_slots = scenario->program_slots;
	settings.nr_sizes = scenario->nr_sizes;
	memcpy(settings.sizes, scenario->sizes, sizeof(scenario->sizes));
	ctx->scenario = scenario;
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 24 * GIB);
	if (scenario->has_memories)
		add_memories(ctx->fake);
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	for (i = 0; i < NR_FILES; i++)
		ctx->file[i] = fake_client_open(test, ctx->table, cgroups[i]);
	for (i = 0; i < nr && !ctx->wrong; i++)
		run_history(test, ctx, seed + i);
	/* The test is worth nothing if few requests fail. */
	KUNIT_EXPECT_GE(test, ctx->failures, nr);
	figures->failures += ctx->failures;
	figures->asked += ctx->asked;
	figures->alone += ctx->alone;
}

static void no_failure_with_a_placement(struct kunit *test)
{
	struct figures figures = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(scenarios); i++)
		run_scenario(test, &scenarios[i], 1000000 * i, &figures);
	/* Each of them ends the test. */
	kunit_info(test, "%u histories: %u failures, 0 with a placement; %u times all that was told free, 0 not had; %u times nobody could help",
		   histories, figures.failures, figures.asked, figures.alone);
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
