// SPDX-License-Identifier: GPL-2.0
/* Clients and their handles. */

#include <linux/limits.h>

#include "checks.h"
#include "clients.h"
#include "parts/snapshot.h"

static int lookup(struct flexmem_client *client, u32 handle)
{
	struct flexmem_lookup out = {};

	return flexmem_client_lookup(client, handle, &out);
}

/* ---- handles ---- */

static void handles_begin_with_one(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 1);
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 2);
}

static void freed_handle_is_not_the_next(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 1);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 1), 0);
	KUNIT_EXPECT_EQ(test, alloc(test, ctx->client, 128), 2);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), -ENOENT);
}

static u32 add(struct kunit *test, struct flexmem_handles *handles,
	       struct flexmem_allocation *allocation)
{
	int rc;

	spin_lock(&handles->lock);
	rc = flexmem_handles_add(handles, allocation);
	spin_unlock(&handles->lock);
	KUNIT_ASSERT_EQ(test, rc, 0);
	KUNIT_EXPECT_NE(test, allocation->handle, 0);
	KUNIT_EXPECT_LE(test, allocation->handle, INT_MAX);
	KUNIT_ASSERT_PTR_EQ(test, allocation,
			    flexmem_handles_find(handles, allocation->handle));
	return allocation->handle;
}

#define HANDLES 5000
#define GENERATIONS BIT(31 - FLEXMEM_HANDLE_INDEX_BITS)

static void handles_are_found_in_any_number(struct kunit *test)
{
	struct flexmem_allocation *allocation, *found;
	struct flexmem_handles handles;
	u32 i, index = 0;

	allocation = kunit_kcalloc(test, HANDLES, sizeof(*allocation),
				   GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, allocation);
	flexmem_handles_init(&handles);
	for (i = 0; i < HANDLES; i++)
		KUNIT_ASSERT_EQ(test, i + 1,
				add(test, &handles, &allocation[i]));
	for (i = 0; i < HANDLES; i++) {
		found = flexmem_handles_find(&handles, i + 1);
		KUNIT_ASSERT_PTR_EQ(test, found, &allocation[i]);
	}
	KUNIT_EXPECT_NULL(test, flexmem_handles_find(&handles, HANDLES + 1));
	for (i = 0; i < HANDLES; i += 2)
		flexmem_handles_remove(&handles, i + 1);
	for (i = 1; i < HANDLES; i += 2) {
		found = flexmem_handles_next(&handles, &index);
		KUNIT_ASSERT_PTR_EQ(test, found, &allocation[i]);
	}
	KUNIT_EXPECT_NULL(test, flexmem_handles_next(&handles, &index));
	flexmem_handles_fini(&handles);
}

static void freed_handles_come_back_in_another_generation(struct kunit *test)
{
	const u32 cycle = FLEXMEM_HANDLE_KEPT * GENERATIONS;
	struct flexmem_allocation live = {}, allocation = {};
	struct flexmem_handles handles;
	u32 i, index, handle;

	flexmem_handles_init(&handles);
	add(test, &handles, &live);
	for (i = 0; i < cycle; i++) {
		handle = add(test, &handles, &allocation);
		index = 2 + i % FLEXMEM_HANDLE_KEPT;
		KUNIT_ASSERT_EQ(test, handle, index +
				(i / FLEXMEM_HANDLE_KEPT <<
				 FLEXMEM_HANDLE_INDEX_BITS));
		flexmem_handles_remove(&handles, handle);
		KUNIT_ASSERT_NULL(test, flexmem_handles_find(&handles, handle));
		KUNIT_ASSERT_PTR_EQ(test, &live,
				    flexmem_handles_find(&handles, 1));
	}
	KUNIT_EXPECT_EQ(test, add(test, &handles, &allocation), 2);
	KUNIT_EXPECT_NULL(test, flexmem_handles_find(&handles, handle));
	/*
	 * A handle with the same index as an existing one, but another
	 * generation.
	 */
	handle = 2 + (1 << FLEXMEM_HANDLE_INDEX_BITS);
	KUNIT_EXPECT_NULL(test, flexmem_handles_find(&handles, handle));
	KUNIT_EXPECT_NULL(test, flexmem_handles_find(&handles, 0));
	flexmem_handles_fini(&handles);
}

static void handles_are_limited(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;
	u64 used;

	fake_client_limit(ctx->client, FLEXMEM_RESOURCE_HANDLES, 5);
	for (i = 0; i < 5; i++)
		alloc(test, ctx->client, 128);
	used = used_bytes(ctx);
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try(ctx->client, 128, &ctx->request)));
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_CGROUP_LIMIT);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, 12 * GIB - used);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.largest, 12 * GIB - used);
	KUNIT_EXPECT_EQ(test, ctx->request.max_region, 12 * GIB);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), used);
	check(test, ctx->client);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 3), 0);
	alloc(test, ctx->client, 128);
}

static void reserved_handles_count_too(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation[5];
	unsigned int i;

	fake_client_limit(ctx->client, FLEXMEM_RESOURCE_HANDLES, 5);
	for (i = 0; i < 5; i++)
		allocation[i] = prepare(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(try(ctx->client, 128, &ctx->request)));
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_CGROUP_LIMIT);
	for (i = 0; i < 5; i++)
		flexmem_client_release(ctx->client, allocation[i]);
	alloc(test, ctx->client, 128);
}

static void failed_placement_gives_the_handle_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, -ENOMEM,
				PTR_ERR(try(ctx->client, 13 * GIB,
					    &ctx->request)));
		KUNIT_EXPECT_EQ(test, ctx->request.reason,
				FLEXMEM_REASON_REGION_SIZE);
	}
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 0);
	check(test, ctx->client);
}

static void firmware_error_is_passed_on(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			PTR_ERR(try(ctx->client, 128, &ctx->request)));
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 0);
	flexmem_table_snapshot(ctx->table, NULL, &ctx->snapshot);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_timeouts, 1);
	check(test, ctx->client);
}

static void prepared_cannot_be_named(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = prepare(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, allocation->handle),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, allocation->handle),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, flexmem_client_used(ctx->client), 128);
	flexmem_client_release(ctx->client, allocation);
}

static void released_leaves_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	flexmem_client_release(ctx->client, prepare(test, ctx->client, GIB));
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 0);
	check(test, ctx->client);
}

static void published_is_found(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_lookup out = {};
	u32 handle;

	alloc(test, ctx->client, 128);
	handle = alloc(test, ctx->client, GIB);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_client_lookup(ctx->client, handle, &out));
	KUNIT_EXPECT_EQ(test, out.out_address.region_id, 0);
	KUNIT_EXPECT_EQ(test, out.out_address.offset, 128);
	/* LOOKUP returns the address of the block that was allocated. */
	KUNIT_EXPECT_EQ(test, ctx->request.block->start, 128);
	KUNIT_EXPECT_EQ(test, out.out_size, GIB);
	KUNIT_EXPECT_EQ(test, out.out_flags, 0);
}

static void flags_are_kept(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	struct flexmem_lookup out = {};

	allocation = fake_client_prepare(ctx->client, 128, FLEXMEM_ALIGN,
					 FLEXMEM_ALLOC_PROGRAM, &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(ctx->client, allocation);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_client_lookup(ctx->client, allocation->handle,
					      &out));
	KUNIT_EXPECT_EQ(test, out.out_flags, FLEXMEM_ALLOC_PROGRAM);
	used_bytes(ctx);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_used_program, 128);
	KUNIT_EXPECT_EQ(test, 0, fake_client_free(ctx->client, 1));
	used_bytes(ctx);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_used_program, 0);
}

static void detached_cannot_be_named(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, ctx->client, 128);

	allocation = flexmem_client_detach(ctx->client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, handle), -ENOENT);
	KUNIT_EXPECT_EQ(test,
			PTR_ERR(flexmem_client_detach(ctx->client, handle)),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 128);
	check(test, ctx->client);
	flexmem_client_release(ctx->client, allocation);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
}

static void detached_handle_stays_reserved(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, ctx->client, 128);
	unsigned int i;

	allocation = flexmem_client_detach(ctx->client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	for (i = 0; i <= FLEXMEM_HANDLE_KEPT; i++) {
		u32 other = alloc(test, ctx->client, 128);

		KUNIT_EXPECT_NE(test, other, handle);
		KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, other), 0);
	}
	KUNIT_EXPECT_PTR_EQ(test, allocation,
			    flexmem_handles_find(&ctx->client->handles,
						 handle));
	flexmem_client_release(ctx->client, allocation);
}

static void detached_can_be_published_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, ctx->client, GIB);

	allocation = flexmem_client_detach(ctx->client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(ctx->client, allocation);
	check(test, ctx->client);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, handle), 0);
	KUNIT_EXPECT_EQ(test, flexmem_client_used(ctx->client), GIB);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), 0);
}

static void usage_counts_live_allocations(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, GIB);
	alloc(test, ctx->client, 128);
	fake_client_free(ctx->client, 1);
	KUNIT_EXPECT_EQ(test, flexmem_client_used(ctx->client), 128);
}

/* ---- FREE by address ---- */

static void address_must_be_exact(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, 1024);
	alloc(test, ctx->client, 1024);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 128), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 1023), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 1024 + 127), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 2048), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 1, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, U64_MAX), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, U64_MAX, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 2048);
	check(test, ctx->client);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 1024), 0);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 2), -ENOENT);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
	check(test, ctx->client);
}

static void address_cannot_be_freed_twice(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 1), -ENOENT);
}

static void address_is_found_in_every_region(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx = make(test, FLEXMEM_MODE_PF, &settings);
	unsigned int slot;

	test->priv = ctx;
	/*
	 * With load balance each allocation gets a region of its own. The later
	 * a region is acquired, the lower is its id.
	 */
	for (slot = 0; slot < 5; slot++)
		alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, free_address(ctx->client, 0, 0), -ENOENT);
	for (slot = 0; slot < 5; slot++) {
		u64 id = ctx->fake->piece[slot].base;

		KUNIT_EXPECT_EQ(test, free_address(ctx->client, id, 128),
				-ENOENT);
		KUNIT_EXPECT_EQ(test, free_address(ctx->client, id, 0), 0);
		check(test, ctx->client);
	}
}

/*
 * The regions have blocks at the same offsets. The serial numbers of two
 * regions differ by 144. 144 times the golden ratio is nearly a whole number,
 * so hash_64() puts most addresses of both regions into the same tree.
 */
#define SAME_TREE 144

static void address_is_of_one_region(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_lookup found = {};
	struct ctx *ctx;
	u32 handle, end;
	u64 id = 0;

	ctx = make(test, FLEXMEM_MODE_PF, &settings);
	test->priv = ctx;
	alloc(test, ctx->client, 128);
	ctx->table->last_serial = SAME_TREE;
	for (handle = 2; handle <= 1500; handle++)
		end = alloc(test, ctx->client, 128) + 1;
	for (handle = 1; handle < end; handle++) {
		KUNIT_ASSERT_EQ(test, 0, flexmem_client_lookup(ctx->client,
							       handle, &found));
		id = id ?: found.out_address.region_id;
		if (found.out_address.region_id != id)
			continue;
		KUNIT_ASSERT_EQ(test, 0,
				free_address(ctx->client, id,
					     found.out_address.offset));
		KUNIT_ASSERT_EQ(test, -ENOENT, lookup(ctx->client, handle));
	}
}

/* ---- other clients ---- */

static void names_of_others_are_unknown(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 1);

	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, lookup(other, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(other, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_address(other, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
	/* For the other client, the same handle names another allocation. */
	KUNIT_EXPECT_EQ(test, alloc(test, other, 128), 1);
	KUNIT_EXPECT_EQ(test, fake_client_free(other, 1), 0);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
}

static void unknown_handles_are_refused(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, 2), -ENOENT);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, U32_MAX), -ENOENT);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 128);
}

/* Opens so many files that the snapshot's list of owners has @nr entries. */
static void fill_list(struct kunit *test, struct ctx *ctx, unsigned int nr)
{
	struct flexmem_accounts *accounts = &ctx->table->accounts;

	while (accounts->nr_cgroups + accounts->nr_clients < nr)
		fake_client_open(test, ctx->table, 2);
	KUNIT_ASSERT_EQ(test, accounts->nr_cgroups + accounts->nr_clients, nr);
}

/*
 * Reads the list of owners to its end, batch by batch, and checks its order and
 * number.
 */
static void check_list(struct kunit *test, struct ctx *ctx, unsigned int nr)
{
	struct flexmem_view *view = &ctx->snapshot;
	const struct flexmem_owner_entry *is, *last;
	struct flexmem_owner_entry before;
	unsigned int seen = 0, i;

	view->owner = kunit_kcalloc(test, FLEXMEM_VIEW_OWNERS,
				    sizeof(*view->owner), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, view->owner);
	flexmem_table_snapshot(ctx->table, NULL, view);
	KUNIT_EXPECT_EQ(test, view->sum.out_owner_count, nr);
	for (last = NULL; view->nr_owners; last = &before) {
		for (i = 0; i < view->nr_owners; i++, seen++, last = is) {
			is = &view->owner[i];
			KUNIT_ASSERT_TRUE(test, !last || last->kind > is->kind ||
					  (last->kind == is->kind &&
					   last->id < is->id));
		}
		before = view->owner[view->nr_owners - 1];
		if (view->nr_owners < FLEXMEM_VIEW_OWNERS)
			break;
		flexmem_table_more_owners(ctx->table, view);
	}
	KUNIT_EXPECT_EQ(test, seen, nr);
	view->owner = NULL;
}

static void owners_come_in_batches(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fill_list(test, ctx, FLEXMEM_VIEW_OWNERS - 1);
	check_list(test, ctx, FLEXMEM_VIEW_OWNERS - 1);
	fill_list(test, ctx, FLEXMEM_VIEW_OWNERS);
	check_list(test, ctx, FLEXMEM_VIEW_OWNERS);
	fill_list(test, ctx, FLEXMEM_VIEW_OWNERS + 1);
	check_list(test, ctx, FLEXMEM_VIEW_OWNERS + 1);
	fill_list(test, ctx, 3 * FLEXMEM_VIEW_OWNERS + 5);
	check_list(test, ctx, 3 * FLEXMEM_VIEW_OWNERS + 5);
}

/* ---- the end of a client ---- */

/* A client that the test closes itself. */
static struct flexmem_client *local_client(struct kunit *test, struct ctx *ctx)
{
	struct flexmem_client *client;

	client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, client);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(client, ctx->table, fake_uid(2),
					    fake_cgroup(2), NULL));
	return client;
}

static void fini_gives_everything_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = local_client(test, ctx);
	unsigned int i;

	alloc(test, ctx->client, 128);
	for (i = 0; i < 5; i++) {
		struct flexmem_allocation *allocation =
			try(client, GIB, &ctx->request);

		if (IS_ERR(allocation))
			break;
		flexmem_client_publish(client, allocation);
	}
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 5 * GIB + 128);
	flexmem_client_fini(client);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 128);
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, 1), 0);
}

/*
 * An allocation that a reference keeps stays charged to its owner until the
 * reference is put.
 */
static void allocation_may_outlive_its_client(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = local_client(test, ctx);
	struct flexmem_allocation *allocation;
	u32 handle = alloc(test, client, GIB);
	struct flexmem_snapshot *sum = &ctx->snapshot.sum;

	allocation = flexmem_client_allocation(client, handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_fini(client);
	memset(client, 0xff, sizeof(*client));
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), GIB);
	KUNIT_EXPECT_EQ(test, sum->out_orphaned, GIB);
	KUNIT_EXPECT_EQ(test, sum->out_owned, 0);
	KUNIT_EXPECT_EQ(test, allocation->owner->parent->orphaned, GIB);
	flexmem_allocation_put(allocation);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, sum->out_orphaned, 0);
}

static void fini_may_come_after_the_device_went(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u32 handle = alloc(test, ctx->client, GIB);

	alloc(test, ctx->client, 128);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_EQ(test, lookup(ctx->client, handle), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(ctx->client, handle), 0);
	/* The teardown frees the remaining allocation. */
}

/* A hold covers the regions in which the client has bytes, and no other. */
static void hold_covers_the_regions_of_the_client(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_slots *slots = &ctx->table->slots;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 1);
	struct flexmem_hold hold;

	KUNIT_EXPECT_EQ(test, flexmem_client_hold(ctx->client).slots, 0);
	alloc(test, other, 12 * GIB);
	alloc(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, flexmem_client_hold(other).slots, BIT_ULL(0));
	hold = flexmem_client_hold(ctx->client);
	KUNIT_EXPECT_EQ(test, hold.slots, BIT_ULL(1));
	KUNIT_EXPECT_TRUE(test, flexmem_slots_are_held(slots, 1));
	flexmem_slots_unhold(slots, &hold);
	KUNIT_EXPECT_FALSE(test, flexmem_slots_are_held(slots, 1));
	KUNIT_EXPECT_TRUE(test, flexmem_slots_are_held(slots, 0));
}

static void closed_client_holds_nothing(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = local_client(test, ctx);

	alloc(test, client, 128);
	flexmem_client_fini(client);
	KUNIT_EXPECT_EQ(test, flexmem_client_hold(client).slots, 0);
}

/*
 * Each owner names the cgroup to which its bytes are charged, too. So the bytes
 * that are a cgroup's alone can be told, and they add up.
 */
static void owners_name_the_cgroup_above(struct kunit *test)
{
	static const u64 above[] = { 0, 1, 2, 13 };
	struct ctx *ctx = test->priv;
	struct flexmem_view *view = &ctx->snapshot;
	struct flexmem_client *client;
	unsigned int i;

	client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, client);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(client, ctx->table, fake_uid(2),
					    fake_cgroup(13), NULL));
	view->owner = kunit_kcalloc(test, FLEXMEM_VIEW_OWNERS,
				    sizeof(*view->owner), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, view->owner);
	flexmem_table_snapshot(ctx->table, NULL, view);
	for (i = 0; i < view->nr_owners; i++) {
		const struct flexmem_owner_entry *owner = &view->owner[i];

		if (owner->kind == FLEXMEM_OWNER_CGROUP)
			KUNIT_EXPECT_EQ(test, owner->parent,
					i < ARRAY_SIZE(above) ? above[i] : 0);
		else
			KUNIT_EXPECT_NE(test, owner->parent, 0);
	}
	KUNIT_EXPECT_EQ(test, view->owner[view->nr_owners - 1].parent, 14);
	flexmem_table_snapshot(ctx->table, client->account, view);
	KUNIT_EXPECT_EQ(test, view->owner[0].parent, 0);
	KUNIT_EXPECT_EQ(test, view->owner[1].parent, 14);
	view->owner = NULL;
	flexmem_client_fini(client);
}

/* The last owner of a batch can be a cgroup, whose number no client has. */
static void clients_follow_the_last_cgroup(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_view *view = &ctx->snapshot;

	view->owner = kunit_kcalloc(test, FLEXMEM_VIEW_OWNERS,
				    sizeof(*view->owner), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, view->owner);
	view->owner[0].kind = FLEXMEM_OWNER_CGROUP;
	view->owner[0].id = U32_MAX;
	view->nr_owners = 1;
	flexmem_table_more_owners(ctx->table, view);
	KUNIT_EXPECT_EQ(test, view->nr_owners, ctx->table->accounts.nr_clients);
	KUNIT_EXPECT_EQ(test, view->owner[0].kind, FLEXMEM_OWNER_CLIENT);
	KUNIT_EXPECT_EQ(test, view->owner[0].id, 1);
	view->owner = NULL;
}

/* The file that the next batch of owners would follow may be closed by then. */
static void owners_close_between_two_batches(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_view *view = &ctx->snapshot;
	struct flexmem_client *client;
	u64 id;

	fill_list(test, ctx, FLEXMEM_VIEW_OWNERS - 1);
	client = local_client(test, ctx);
	id = client->account->id;
	fill_list(test, ctx, FLEXMEM_VIEW_OWNERS + 9);
	view->owner = kunit_kcalloc(test, FLEXMEM_VIEW_OWNERS,
				    sizeof(*view->owner), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, view->owner);
	flexmem_table_snapshot(ctx->table, NULL, view);
	KUNIT_EXPECT_EQ(test, view->owner[FLEXMEM_VIEW_OWNERS - 1].id, id);
	flexmem_client_fini(client);
	flexmem_table_more_owners(ctx->table, view);
	KUNIT_EXPECT_EQ(test, view->nr_owners, 9);
	KUNIT_EXPECT_EQ(test, view->owner[0].id, id + 1);
	view->owner = NULL;
}

/* checks_of_client() must notice each fault that is planted here. */

static void expect_wrong(struct kunit *test, struct ctx *ctx, const char *what)
{
	KUNIT_EXPECT_STREQ(test, checks_of_client(ctx->client) ?: "none",
			   what);
}

static void check_notices_a_lost_address(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	alloc(test, ctx->client, 128);
	for (i = 0; i < FLEXMEM_ADDRESS_TREES; i++)
		ctx->client->by_address[i] = RB_ROOT;
	expect_wrong(test, ctx, "addresses miscounted");
}

static void check_notices_a_wrong_handle_and_owner(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = prepare(test, ctx->client, 128);
	flexmem_client_publish(ctx->client, allocation);
	allocation->handle++;
	expect_wrong(test, ctx, "allocation under another handle");
	allocation->handle--;
	allocation->chunks[0]->account = NULL;
	expect_wrong(test, ctx, "block of another owner");
	allocation->chunks[0]->account = ctx->client->account;
}

static struct kunit_case client_cases[] = {
	KUNIT_CASE(handles_begin_with_one),
	KUNIT_CASE(freed_handle_is_not_the_next),
	KUNIT_CASE(handles_are_found_in_any_number),
	KUNIT_CASE(freed_handles_come_back_in_another_generation),
	KUNIT_CASE(handles_are_limited),
	KUNIT_CASE(reserved_handles_count_too),
	KUNIT_CASE(failed_placement_gives_the_handle_back),
	KUNIT_CASE(firmware_error_is_passed_on),
	KUNIT_CASE(prepared_cannot_be_named),
	KUNIT_CASE(released_leaves_nothing),
	KUNIT_CASE(published_is_found),
	KUNIT_CASE(flags_are_kept),
	KUNIT_CASE(detached_cannot_be_named),
	KUNIT_CASE(detached_handle_stays_reserved),
	KUNIT_CASE(detached_can_be_published_again),
	KUNIT_CASE(usage_counts_live_allocations),
	KUNIT_CASE(address_must_be_exact),
	KUNIT_CASE(address_cannot_be_freed_twice),
	KUNIT_CASE(address_is_found_in_every_region),
	KUNIT_CASE(address_is_of_one_region),
	KUNIT_CASE(names_of_others_are_unknown),
	KUNIT_CASE(unknown_handles_are_refused),
	KUNIT_CASE(owners_come_in_batches),
	KUNIT_CASE(owners_close_between_two_batches),
	KUNIT_CASE(owners_name_the_cgroup_above),
	KUNIT_CASE(clients_follow_the_last_cgroup),
	KUNIT_CASE(fini_gives_everything_back),
	KUNIT_CASE(allocation_may_outlive_its_client),
	KUNIT_CASE(fini_may_come_after_the_device_went),
	KUNIT_CASE(hold_covers_the_regions_of_the_client),
	KUNIT_CASE(closed_client_holds_nothing),
	KUNIT_CASE(check_notices_a_lost_address),
	KUNIT_CASE(check_notices_a_wrong_handle_and_owner),
	{}
};

static struct kunit_suite client_suite = {
	.name = "flexmem_client",
	.init = client_test_init,
	.test_cases = client_cases,
};

kunit_test_suite(client_suite);
