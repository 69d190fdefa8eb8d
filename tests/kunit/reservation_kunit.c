// SPDX-License-Identifier: GPL-2.0
/* Reservations: regions that are set aside for a cgroup and those below it. */

#include <linux/cgroup.h>
#include <linux/workqueue.h>

#include "parts/reservation.h"
#include "parts/snapshot.h"
#include "placements.h"
#include "tenant/owner.h"

#define EXPECT(test, value, expected) KUNIT_EXPECT_EQ(test, value, expected)

/*
 * Makes a VF with room for 3 regions. The cgroups of the tests are: 0, the
 * root; 1 to 11, directly below the root; 12 below 1; 13 below 12; and 14 below
 * 13.
 */
static struct ctx *make_for(struct kunit *test, enum flexmem_order order)
{
	return make_lazy(test, order, 4, 36 * GIB);
}

static struct flexmem_account *cgroup_account(struct kunit *test,
					      struct ctx *ctx, unsigned int n)
{
	struct flexmem_account *account;

	account = flexmem_owner_of_cgroup(&ctx->table->accounts,
					  fake_cgroup(n));
	KUNIT_ASSERT_NOT_NULL(test, account);
	return account;
}

static int reserve(struct kunit *test, struct ctx *ctx, unsigned int cgroup,
		   u64 size, unsigned int count)
{
	struct flexmem_account *account = cgroup_account(test, ctx, cgroup);
	int rc;

	rc = flexmem_reservation_set(ctx->table, account, size, count,
				     &ctx->request.reason);
	flexmem_owner_put(account);
	return rc;
}

/* The slots whose regions are reserved for a cgroup. */
static u64 reserved_for(struct kunit *test, struct ctx *ctx,
			unsigned int cgroup)
{
	struct flexmem_account *account = cgroup_account(test, ctx, cgroup);
	struct flexmem_region *region;
	unsigned int slot;
	u64 slots = 0;

	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++) {
		region = fake_table_region(ctx->table, slot);
		if (region && region->reserved_for == account)
			slots |= BIT_ULL(slot);
	}
	flexmem_owner_put(account);
	return slots;
}

static void expect_slot(struct kunit *test, struct ctx *ctx,
			struct flexmem_account *client, u64 size,
			unsigned int slot)
{
	struct fake_block *block;

	block = fake_alloc_for(ctx->table, client, size, &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	EXPECT(test, block->region->slot, slot);
}

static void expect_refused(struct kunit *test, struct ctx *ctx,
			   struct flexmem_account *client, u64 size,
			   enum flexmem_reason reason)
{
	struct fake_block *block;

	block = fake_alloc_for(ctx->table, client, size, &ctx->request);
	EXPECT(test, PTR_ERR(block), -ENOMEM);
	EXPECT(test, ctx->request.reason, reason);
}

/*
 * Only the cgroup and the cgroups below it may use a reserved region, and they
 * use it before other regions.
 */
static void others_do_not_enter(struct kunit *test)
{
	struct ctx *ctx = make_for(test, param_order(test));
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2),
			       *above = fake_account_open(test, ctx->table, 1),
			       *own = fake_account_open(test, ctx->table, 12),
			       *below = fake_account_open(test, ctx->table, 14);

	expect_slot(test, ctx, other, GIB, 0);
	EXPECT(test, reserve(test, ctx, 12, 12 * GIB, 1), 0);
	EXPECT(test, reserved_for(test, ctx, 12), BIT(1));
	expect_slot(test, ctx, below, GIB, 1);
	expect_slot(test, ctx, own, 11 * GIB, 1);
	expect_slot(test, ctx, above, 11 * GIB,
		    param_order(test) == FLEXMEM_ORDER_FILL_FIRST ? 0 : 2);
}

/*
 * A reserved region stays available for its cgroup, whatever other cgroups do.
 */
static void holds_against_others(struct kunit *test)
{
	struct ctx *ctx = make_for(test, param_order(test));
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2),
			       *own = fake_account_open(test, ctx->table, 3);

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 2), 0);
	expect_slot(test, ctx, other, 12 * GIB, 2);
	expect_refused(test, ctx, other, GIB, FLEXMEM_REASON_RESERVED);
	EXPECT(test, ctx->request.sum.free, 0);
	EXPECT(test, ctx->request.sum.largest, 0);
	expect_refused(test, ctx, other, 13 * GIB, FLEXMEM_REASON_REGION_SIZE);
	expect_slot(test, ctx, own, 12 * GIB, 0);
	expect_slot(test, ctx, own, 12 * GIB, 1);
	/*
	 * All regions are full, so the reason is not the reservation but the
	 * capacity.
	 */
	expect_refused(test, ctx, other, GIB, FLEXMEM_REASON_CAPACITY);
	expect_refused(test, ctx, own, GIB, FLEXMEM_REASON_CAPACITY);
}

/* The administrator makes a reservation smaller, and ends it. */
static void ends_on_request(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 4, 24 * GIB);
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2);

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 2), 0);
	expect_refused(test, ctx, other, GIB, FLEXMEM_REASON_RESERVED);
	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 1), 0);
	expect_slot(test, ctx, other, 12 * GIB, 1);
	expect_refused(test, ctx, other, GIB, FLEXMEM_REASON_RESERVED);
	EXPECT(test, reserve(test, ctx, 3, 0, 0), 0);
	expect_slot(test, ctx, other, 12 * GIB, 0);
}

/* A caller may have chosen the region before it was reserved. */
static void holds_against_a_caller_that_looked_before(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2);
	enum flexmem_reason reason;

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 1), 0);
	KUNIT_EXPECT_TRUE(test,
			  IS_ERR(fake_alloc_in_for(ctx->table,
						   region_in(test, ctx, 0),
						   other, GIB, &reason)));
	EXPECT(test, reason, FLEXMEM_REASON_RESERVED);
}

/*
 * Existing empty regions are reserved first. A region that is in use or has
 * another size is not reserved.
 */
static void takes_empty_regions_first(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2);

	fake_table_acquire(ctx->table, false, 0);
	fake_table_acquire(ctx->table, false, 0);
	fake_table_acquire(ctx->table, false, 9 * GIB);
	occupy(test, ctx, 0, GIB);
	fake_device_forget(ctx->fake);
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 1), 0);
	expect_log(test, ctx, "");
	EXPECT(test, reserved_for(test, ctx, 2), BIT(1));
	/* The same reservation again changes nothing. */
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 1), 0);
	EXPECT(test, reserved_for(test, ctx, 2), BIT(1));
	/* A cgroup cannot reserve a region that another cgroup has reserved. */
	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 2), -ENOMEM);
	EXPECT(test, ctx->request.reason, FLEXMEM_REASON_CAPACITY);
	EXPECT(test, reserved_for(test, ctx, 3), 0);
	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 1), 0);
	EXPECT(test, reserved_for(test, ctx, 3), BIT(2));
	expect_slot(test, ctx, other, GIB, 1);
}

/*
 * A cgroup keeps its reserved regions when it reserves again, even if another
 * region has become empty. It does not get more regions than it asked for.
 */
static void keeps_its_regions(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct fake_block *block;

	fake_table_acquire(ctx->table, false, 0);
	block = occupy(test, ctx, 0, GIB);
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 1), 0);
	EXPECT(test, reserved_for(test, ctx, 2), BIT(1));
	fake_free(block);
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 1), 0);
	EXPECT(test, reserved_for(test, ctx, 2), BIT(1));
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 2), 0);
	EXPECT(test, reserved_for(test, ctx, 2), BIT(0) | BIT(1));
}

/*
 * Either all requested regions are reserved, or none. They have exactly the
 * requested size.
 */
static void all_or_nothing(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 4,
				    28 * GIB);
	unsigned int slot;

	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 3), -ENOMEM);
	EXPECT(test, ctx->request.reason, FLEXMEM_REASON_CAPACITY);
	EXPECT(test, reserved_for(test, ctx, 2), 0);
	EXPECT(test, reserve(test, ctx, 2, 4 * GIB, 1), 0);
	slot = __ffs64(reserved_for(test, ctx, 2));
	EXPECT(test, region_in(test, ctx, slot)->mem.size, 4 * GIB);
	/* If a new reservation fails, the old one stays. */
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 3), -ENOMEM);
	EXPECT(test, reserved_for(test, ctx, 2), BIT(slot));
	EXPECT(test, reserve(test, ctx, 2, 4 * GIB, 3), -ENOMEM);
	EXPECT(test, ctx->request.reason, FLEXMEM_REASON_CAPACITY);
	EXPECT(test, reserved_for(test, ctx, 2), BIT(slot));
	/* A reservation with another size replaces the old one. */
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 2), 0);
	EXPECT(test, reserved_for(test, ctx, 2), 3);
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 1), 0);
	EXPECT(test, reserved_for(test, ctx, 2), 1);
	EXPECT(test, reserve(test, ctx, 2, 0, 0), 0);
	EXPECT(test, reserved_for(test, ctx, 2), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&ctx->table->reservations));
	KUNIT_EXPECT_FALSE(test, flexmem_reservation_is_valid(ctx->table,
							      5 * GIB));
	KUNIT_EXPECT_TRUE(test, flexmem_reservation_is_valid(ctx->table,
							     8 * GIB));
}

/*
 * A new region has exactly the requested size, even if a larger one could be
 * acquired.
 */
static void new_regions_have_the_size(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);

	EXPECT(test, reserve(test, ctx, 2, 4 * GIB, 2), 0);
	expect_log(test, ctx, "acquire 4G, set 0, acquire 4G, set 1");
	EXPECT(test, reserved_for(test, ctx, 2), 3);
}

/*
 * If a region cannot be acquired, the regions that this call has reserved
 * before are free for all cgroups again.
 */
static void failure_gives_back(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);

	fake_table_acquire(ctx->table, false, 0);
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 2, 1, -EIO);
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 3), -EIO);
	EXPECT(test, ctx->request.reason, FLEXMEM_REASON_NONE);
	EXPECT(test, reserved_for(test, ctx, 2), 0);
	/* The region that was acquired stays, and all cgroups may use it. */
	EXPECT(test, ctx->table->domain[0].filled[FLEXMEM_KIND_TENSOR], 3);
	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 3), 0);
	EXPECT(test, reserved_for(test, ctx, 2), 7);
}

static u64 used_regions(struct kunit *test, struct ctx *ctx, unsigned int cgroup)
{
	struct flexmem_account *account = cgroup_account(test, ctx, cgroup);
	u64 used;

	spin_lock(&ctx->table->accounts.lock);
	flexmem_account_settle(account);
	used = account->used[FLEXMEM_RESOURCE_REGIONS];
	spin_unlock(&ctx->table->accounts.lock);
	flexmem_owner_put(account);
	return used;
}

static void limit_regions(struct kunit *test, struct ctx *ctx,
			  unsigned int cgroup, u64 limit)
{
	struct flexmem_resource_limit cmd = {
		.scope = FLEXMEM_SCOPE_CGROUP,
		.resource = FLEXMEM_RESOURCE_REGIONS,
		.cgroup = 1 + cgroup,
		.limit = limit,
	};
	struct flexmem_account *account = cgroup_account(test, ctx, cgroup);

	flexmem_limit_set(&ctx->table->accounts, account, &cmd);
	flexmem_owner_put(account);
}

/*
 * A region is charged when it is reserved: once to the cgroup, and once to each
 * ancestor.
 */
static void regions_are_charged(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct flexmem_account *below = fake_account_open(test, ctx->table, 13);

	limit_regions(test, ctx, 1, 2);
	EXPECT(test, reserve(test, ctx, 12, 12 * GIB, 3), -ENOMEM);
	EXPECT(test, ctx->request.reason, FLEXMEM_REASON_REGION_LIMIT);
	EXPECT(test, used_regions(test, ctx, 1), 0);
	/* flexmem did not ask the device for the third region. */
	expect_log(test, ctx, "acquire 12G, set 0, acquire 12G, set 1");
	/* The limit counts regions that exist already, too. */
	limit_regions(test, ctx, 1, 1);
	EXPECT(test, reserve(test, ctx, 12, 12 * GIB, 2), -ENOMEM);
	EXPECT(test, used_regions(test, ctx, 1), 0);
	/* A limit of cgroup 12 holds like a limit of its parent, cgroup 1. */
	limit_regions(test, ctx, 1, FLEXMEM_NO_LIMIT);
	limit_regions(test, ctx, 12, 2);
	EXPECT(test, reserve(test, ctx, 12, 12 * GIB, 3), -ENOMEM);
	expect_log(test, ctx, "");
	limit_regions(test, ctx, 12, FLEXMEM_NO_LIMIT);
	limit_regions(test, ctx, 1, 2);
	EXPECT(test, reserve(test, ctx, 12, 12 * GIB, 2), 0);
	EXPECT(test, used_regions(test, ctx, 0), 2);
	EXPECT(test, used_regions(test, ctx, 1), 2);
	EXPECT(test, used_regions(test, ctx, 12), 2);
	EXPECT(test, used_regions(test, ctx, 13), 0);
	/* A block in a reserved region does not charge the region again. */
	expect_slot(test, ctx, below, 12 * GIB, 0);
	expect_slot(test, ctx, below, 12 * GIB, 1);
	expect_refused(test, ctx, below, GIB, FLEXMEM_REASON_REGION_LIMIT);
	EXPECT(test, used_regions(test, ctx, 1), 2);
	EXPECT(test, used_regions(test, ctx, 13), 2);
	/* The blocks keep the regions charged when the reservation ends. */
	EXPECT(test, reserve(test, ctx, 12, 0, 0), 0);
	EXPECT(test, used_regions(test, ctx, 12), 2);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
}

/*
 * A file that may have no further region gets its memory without the worker,
 * which would ask the device for the capacity.
 */
static void limited_file_needs_no_worker(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_LOAD_BALANCE);
	struct flexmem_account *own = fake_account_open(test, ctx->table, 2);

	limit_regions(test, ctx, 2, 1);
	expect_slot(test, ctx, own, GIB, 0);
	flexmem_table_outdate(ctx->table);
	expect_slot(test, ctx, own, GIB, 0);
	KUNIT_EXPECT_TRUE(test, ctx->table->domain[0].capacity_is_old);
	limit_regions(test, ctx, 2, FLEXMEM_NO_LIMIT);
	expect_slot(test, ctx, own, GIB, 1);
	KUNIT_EXPECT_FALSE(test, ctx->table->domain[0].capacity_is_old);
}

/* TRIM does not release a reserved region. */
static void trim_leaves_them(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	unsigned int regions;
	u64 bytes;

	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 1), 0);
	fake_table_acquire(ctx->table, false, 0);
	EXPECT(test, flexmem_table_trim(ctx->table, &regions, &bytes), 0);
	EXPECT(test, regions, 1);
	EXPECT(test, reserved_for(test, ctx, 2), BIT(0));
	EXPECT(test, reserve(test, ctx, 2, 0, 0), 0);
	EXPECT(test, flexmem_table_trim(ctx->table, &regions, &bytes), 0);
	EXPECT(test, regions, 1);
	KUNIT_EXPECT_NULL(test, fake_table_region(ctx->table, 0));
}

/*
 * One of two empty regions is reserved. The other one is not released either,
 * because one empty region stays for the next allocation.
 */
static void idle_release_leaves_them(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	unsigned int n;

	EXPECT(test, reserve(test, ctx, 2, 12 * GIB, 1), 0);
	fake_table_acquire(ctx->table, false, 0);
	mutex_lock(&ctx->table->acquire_lock);
	for (n = 0; n < 3; n++)
		flexmem_table_release_idle(ctx->table);
	mutex_unlock(&ctx->table->acquire_lock);
	KUNIT_EXPECT_NOT_NULL(test, fake_table_region(ctx->table, 0));
	KUNIT_EXPECT_NOT_NULL(test, fake_table_region(ctx->table, 1));
}

static struct flexmem_view *look(struct kunit *test, struct ctx *ctx,
				 struct flexmem_account *only,
				 struct flexmem_owner_entry *owner)
{
	struct flexmem_view *view;

	view = kunit_kzalloc(test, sizeof(*view), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, view);
	view->owner = owner;
	flexmem_table_snapshot(ctx->table, only, view);
	return view;
}

static const struct flexmem_snapshot *sums(struct kunit *test, struct ctx *ctx,
					   struct flexmem_account *only,
					   struct flexmem_owner_entry *owner)
{
	return &look(test, ctx, only, owner)->sum;
}

/*
 * A snapshot shows the free bytes of a reserved region as free only to callers
 * that may use the region.
 */
static void snapshot_shows_them(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2),
			       *own = fake_account_open(test, ctx->table, 3);
	struct flexmem_owner_entry owner[2];
	const struct flexmem_snapshot *sum;

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 2), 0);
	expect_slot(test, ctx, own, GIB, 0);
	fake_table_acquire(ctx->table, false, 0);
	sum = sums(test, ctx, NULL, NULL);
	EXPECT(test, sum->out_reserved, 23 * GIB);
	EXPECT(test, sum->out_free, 12 * GIB);
	sum = sums(test, ctx, other, owner);
	EXPECT(test, sum->out_reserved, 23 * GIB);
	EXPECT(test, owner[0].reservation, 0);
	sum = sums(test, ctx, own, owner);
	EXPECT(test, sum->out_reserved, 0);
	EXPECT(test, sum->out_free, 35 * GIB);
	EXPECT(test, owner[0].reservation, 2);
	EXPECT(test, owner[0].reserved, 2);
	EXPECT(test, owner[0].slots, 2);
	EXPECT(test, owner[1].reserved, 0);
}

/* Returns the entry of a region as the file @only sees it. */
static struct flexmem_region_entry shown(struct kunit *test, struct ctx *ctx,
					 struct flexmem_account *only,
					 unsigned int slot)
{
	struct flexmem_view *view = look(test, ctx, only, NULL);

	flexmem_view_hide(view);
	KUNIT_ASSERT_TRUE(test, slot < view->nr);
	return view->region[slot];
}

/*
 * The administrator sees the figures of all regions. Others see the figures of
 * regions that are reserved for them. region_id and size are never hidden.
 */
static void figures_are_hidden(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2),
			       *below = fake_account_open(test, ctx->table, 13);
	struct flexmem_region_entry is, all;

	EXPECT(test, reserve(test, ctx, 12, 12 * GIB, 1), 0);
	expect_slot(test, ctx, below, GIB, 0);
	expect_slot(test, ctx, other, 3 * GIB, 1);
	all = shown(test, ctx, NULL, 0);
	EXPECT(test, all.flags, 0);
	EXPECT(test, all.free, 11 * GIB);
	is = shown(test, ctx, below, 0);
	EXPECT(test, memcmp(&is, &all, sizeof(is)), 0);
	is = shown(test, ctx, other, 0);
	EXPECT(test, is.flags, FLEXMEM_REGION_HIDDEN);
	EXPECT(test, is.free | is.largest_free | is.nr_allocated | is.nr_free |
		     is.sequence, 0);
	EXPECT(test, is.region_id, all.region_id);
	EXPECT(test, is.total, 12 * GIB);
	/* The figures of an unreserved region are hidden even from its user. */
	is = shown(test, ctx, other, 1);
	EXPECT(test, is.flags, FLEXMEM_REGION_HIDDEN);
	EXPECT(test, is.sequence, 0);
	EXPECT(test, shown(test, ctx, NULL, 1).nr_allocated, 1);
}

static void reset(struct kunit *test, struct ctx *ctx)
{
	EXPECT(test, flexmem_table_reset(ctx->table), 0);
}

/*
 * A reset loses the reserved regions. flexmem acquires them again before any
 * other region.
 */
static void reset_restores_them(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct flexmem_account *own = fake_account_open(test, ctx->table, 3);

	fake_table_acquire(ctx->table, false, 0);
	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 1), 0);
	expect_slot(test, ctx, own, GIB, 0);
	reset(test, ctx);
	EXPECT(test, reserved_for(test, ctx, 3), BIT(0));
	EXPECT(test, used_regions(test, ctx, 3), 1);
	expect_slot(test, ctx, own, GIB, 0);
	KUNIT_EXPECT_NULL(test, fake_table_check(ctx->table));
}

/*
 * After a reset the device may have less memory. Then the worker retries the
 * reservation later.
 */
static void broken_until_there_is_memory(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	struct flexmem_account *own = fake_account_open(test, ctx->table, 3);
	struct flexmem_owner_entry owner[2];

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 2), 0);
	ctx->fake->capacity = 12 * GIB;
	reset(test, ctx);
	sums(test, ctx, own, owner);
	EXPECT(test, owner[0].reservation, 2);
	EXPECT(test, owner[0].reserved, 1);
	ctx->fake->capacity = 36 * GIB;
	EXPECT(test, flexmem_table_new_capacity(ctx->table), 0);
	flexmem_table_work(&ctx->table->function.work.work);
	sums(test, ctx, own, owner);
	EXPECT(test, owner[0].reserved, 2);
}

/*
 * While the device is suspended, a reset cannot acquire regions. The worker
 * acquires them after the resume.
 */
static void resume_restores_them(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	u64 slots;

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 2), 0);
	flexmem_table_suspend(ctx->table);
	reset(test, ctx);
	flexmem_table_resume(ctx->table);
	flush_delayed_work(&ctx->table->function.work);
	mutex_lock(&ctx->table->acquire_lock);
	slots = reserved_for(test, ctx, 3);
	mutex_unlock(&ctx->table->acquire_lock);
	EXPECT(test, slots, BIT(0) | BIT(1));
}

#ifdef CONFIG_CGROUPS
/* After the removal of a cgroup other cgroups may use its reserved regions. */
static void ends_with_the_cgroup(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 4, 12 * GIB);
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2);
	struct flexmem_account *account = cgroup_account(test, ctx, 3);

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 1), 0);
	expect_refused(test, ctx, other, GIB, FLEXMEM_REASON_RESERVED);
	fake_cgroup(3)->self.flags &= ~CSS_ONLINE;
	expect_slot(test, ctx, other, GIB, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&ctx->table->reservations));
	EXPECT(test, flexmem_reservation_set(ctx->table, account, 12 * GIB, 1,
					     &ctx->request.reason), -ENOENT);
	flexmem_owner_put(account);
	fake_cgroup(3);
}

/*
 * The reservation of a removed cgroup ends when another cgroup needs a region,
 * even if the device has not refused a region before.
 */
static void ends_when_the_device_refuses(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, param_order(test), 4, 12 * GIB);
	struct flexmem_account *other = fake_account_open(test, ctx->table, 2);

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 1), 0);
	fake_cgroup(3)->self.flags &= ~CSS_ONLINE;
	expect_slot(test, ctx, other, GIB, 0);
	fake_cgroup(3);
}

/* TRIM releases regions that were reserved for a removed cgroup. */
static void trim_ends_a_removed_one(struct kunit *test)
{
	struct ctx *ctx = make_for(test, FLEXMEM_ORDER_FILL_FIRST);
	unsigned int regions;
	u64 bytes;

	EXPECT(test, reserve(test, ctx, 3, 12 * GIB, 2), 0);
	fake_cgroup(3)->self.flags &= ~CSS_ONLINE;
	EXPECT(test, flexmem_table_trim(ctx->table, &regions, &bytes), 0);
	EXPECT(test, regions, 2);
	fake_cgroup(3);
	EXPECT(test, ctx->table->accounts.nr_cgroups, 1);
}
#endif

static struct kunit_case reservation_cases[] = {
	ORDER_CASE(others_do_not_enter),
	ORDER_CASE(holds_against_others),
	ORDER_CASE(ends_on_request),
	KUNIT_CASE(holds_against_a_caller_that_looked_before),
	KUNIT_CASE(takes_empty_regions_first),
	KUNIT_CASE(keeps_its_regions),
	KUNIT_CASE(all_or_nothing),
	KUNIT_CASE(new_regions_have_the_size),
	KUNIT_CASE(failure_gives_back),
	KUNIT_CASE(regions_are_charged),
	KUNIT_CASE(limited_file_needs_no_worker),
	KUNIT_CASE(trim_leaves_them),
	KUNIT_CASE(idle_release_leaves_them),
	KUNIT_CASE(snapshot_shows_them),
	KUNIT_CASE(figures_are_hidden),
	KUNIT_CASE(reset_restores_them),
	KUNIT_CASE(resume_restores_them),
	KUNIT_CASE(broken_until_there_is_memory),
#ifdef CONFIG_CGROUPS
	ORDER_CASE(ends_with_the_cgroup),
	ORDER_CASE(ends_when_the_device_refuses),
	KUNIT_CASE(trim_ends_a_removed_one),
#endif
	{}
};

static struct kunit_suite reservation_suite = {
	.name = "flexmem_reservation",
	.test_cases = reservation_cases,
};

kunit_test_suite(reservation_suite);

MODULE_LICENSE("GPL");
