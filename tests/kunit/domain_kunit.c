// SPDX-License-Identifier: GPL-2.0
/*
 * Several memories (domains) in one device: their descriptions, and the choice
 * of the domain for regions and allocations.
 */

#include "parts/pressure.h"
#include "parts/snapshot.h"
#include "placements.h"

/* The domains of the device: two HBM stacks, on-chip memory, and a window. */
#define HBM_0 BIT_ULL(0)
#define HBM_1 BIT_ULL(1)
#define ON_CHIP BIT_ULL(2)
#define WINDOW BIT_ULL(3)

#define ON_CHIP_GRANULE SZ_64K
#define ON_CHIP_SIZE ((u64)SZ_16M - SZ_64K)

static struct ctx *make_domains(struct kunit *test, unsigned int slots,
				const struct flexmem_settings *settings)
{
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, slots, 24 * GIB);
	fake_device_add_domain(ctx->fake, FLEXMEM_DOMAIN_DEVICE, 20 * GIB);
	/* A size that is not a multiple of the granule. */
	fake_device_add_domain(ctx->fake, FLEXMEM_DOMAIN_ON_CHIP,
			       SZ_16M - SZ_4K);
	ctx->fake->domains[2].granule = ON_CHIP_GRANULE;
	fake_device_add_domain(ctx->fake, FLEXMEM_DOMAIN_HOST_VISIBLE,
			       3 * GIB);
	ctx->fake->domains[3].nr_sizes = 2;
	ctx->fake->domains[3].sizes[0] = 2 * GIB;
	ctx->fake->domains[3].sizes[1] = GIB;
	ctx->table = fake_table_create(test, ctx->fake, settings);
	return ctx;
}

static struct ctx *make_ordered(struct kunit *test, enum flexmem_order order,
				unsigned int slots)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = order;
	return make_domains(test, slots, &settings);
}

static struct ctx *make_lazily(struct kunit *test, unsigned int slots)
{
	return make_ordered(test, FLEXMEM_ORDER_FILL_FIRST, slots);
}

static struct fake_block *from(struct ctx *ctx, u64 domains, u64 size)
{
	return fake_alloc_from(ctx->table, domains, domains, size, &ctx->request);
}

static void expect_in(struct kunit *test, struct ctx *ctx,
		      const struct fake_block *block, unsigned int domain)
{
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	KUNIT_EXPECT_EQ(test, block->region->mem.domain, domain);
	KUNIT_EXPECT_PTR_EQ(test, block->region->domain,
			    &ctx->table->domain[domain]);
}

static void expect_from(struct kunit *test, struct ctx *ctx, u64 domains,
			u64 size, unsigned int domain)
{
	expect_in(test, ctx, from(ctx, domains, size), domain);
}

/* Allows HBM and @preferred, and expects that @domain serves the request. */
static void expect_preferred(struct kunit *test, struct ctx *ctx, u64 preferred,
			     u64 size, unsigned int domain)
{
	expect_in(test, ctx,
		  fake_alloc_from(ctx->table, HBM_0 | HBM_1 | preferred,
				  preferred, size, &ctx->request), domain);
}

/*
 * Expects that the domains have no room, and that the reported figures are
 * about these domains only.
 */
static void expect_full(struct kunit *test, struct ctx *ctx, u64 domains,
			u64 size, enum flexmem_reason reason, u64 total_free,
			u64 max_region)
{
	KUNIT_EXPECT_EQ(test, PTR_ERR(from(ctx, domains, size)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, reason);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, total_free);
	KUNIT_EXPECT_EQ(test, ctx->request.max_region, max_region);
}

static void one_domain_by_default(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8, PLENTY);

	KUNIT_EXPECT_EQ(test, ctx->table->function.nr_domains, 1);
	KUNIT_EXPECT_EQ(test, ctx->table->default_domains, 1);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[0].desc->type,
			FLEXMEM_DOMAIN_DEVICE);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[0].desc->granule, SZ_2M);
}

static void domains_have_their_own_sizes(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);

	KUNIT_EXPECT_EQ(test, ctx->table->function.nr_domains, 4);
	KUNIT_EXPECT_EQ(test, ctx->table->default_domains, HBM_0 | HBM_1);
	/* A part of a granule cannot be acquired, so it is no capacity. */
	KUNIT_EXPECT_EQ(test, flexmem_table_capacity(ctx->table),
			47 * GIB + ON_CHIP_SIZE);
	expect_from(test, ctx, HBM_1, 128, 1);
	expect_log(test, ctx, "acquire 12G (1), set 0");
	/*
	 * The on-chip memory is smaller than the smallest size of a region, so
	 * all of it is one region.
	 */
	expect_from(test, ctx, ON_CHIP, ON_CHIP_SIZE, 2);
	expect_from(test, ctx, WINDOW, 128, 3);
	expect_log(test, ctx, "acquire 0G (2), set 1, acquire 2G (3), set 2");
	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, HBM_0),
			12 * GIB);
	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, ON_CHIP),
			ON_CHIP_SIZE);
	KUNIT_EXPECT_EQ(test,
			flexmem_table_max_region(ctx->table, ON_CHIP | WINDOW),
			2 * GIB);
}

/* A device with one domain whose sizes are @first and @second GiB. */
static struct ctx *make_odd(struct kunit *test, u64 capacity, u64 first,
			    u64 second)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.nr_sizes = 2;
	settings.sizes[0] = first * GIB;
	settings.sizes[1] = second * GIB;
	return make(test, FLEXMEM_MODE_VF, 16, capacity, &settings);
}

/* Takes memory in pieces of 2 MiB until there is none; returns the bytes. */
static u64 take_all(struct kunit *test, struct ctx *ctx)
{
	u64 bytes = 0, size;

	for (size = GIB; size >= SZ_2M; size /= 2)
		while (!IS_ERR(try(ctx, size, false)))
			bytes += size;
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_CAPACITY);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, 0);
	return bytes;
}

/* All of a device can be allocated, in granules, whatever its size is. */
static void the_last_region_takes_the_rest(struct kunit *test)
{
	static const u64 sizes[] = {
		10 * GIB, 31 * GIB, 33 * GIB, 27 * GIB, 3 * GIB + SZ_2M,
		13 * GIB + 3 * SZ_2M, 8 * GIB, 26 * GIB + SZ_2M + SZ_1M,
	};
	static const u8 list[][2] = { { 8, 5 }, { 5, 12 }, { 12, 4 }, { 64, 4 } };
	unsigned int i, j;
	struct ctx *ctx;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 most = round_down(sizes[i], SZ_2M);

		for (j = 0; j < ARRAY_SIZE(list); j++) {
			ctx = make_odd(test, sizes[i], list[j][0], list[j][1]);
			KUNIT_EXPECT_EQ(test, most,
					flexmem_table_capacity(ctx->table));
			KUNIT_EXPECT_EQ(test, most,
					ctx->table->accounts.gauge.memory);
			KUNIT_EXPECT_EQ(test, most, take_all(test, ctx));
			KUNIT_EXPECT_EQ(test, most,
					ctx->table->accounts.gauge.memory);
		}
	}
}

/* The rest is tried last, with the bytes that the capacity has left. */
static void the_rest_comes_last(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8,
				    11 * GIB + SZ_4M);
	struct fake_block *block;
	unsigned int nr;
	u64 bytes;

	expect_tensor(test, ctx, 8 * GIB, 0, 0);
	expect_log(test, ctx, "acquire 12G ENOSPC, acquire 8G, set 0");
	block = try(ctx, GIB, false);
	expect_in(test, ctx, block, 0);
	KUNIT_EXPECT_EQ(test, block->region->mem.size, 3 * GIB + SZ_4M);
	expect_log(test, ctx,
		   "acquire 8G ENOSPC, acquire 4G ENOSPC, acquire 3G, set 1");
	/* No command is sent if nothing is left. */
	expect_reason(test, ctx, 3 * GIB, false, FLEXMEM_REASON_CAPACITY,
		      2 * GIB + SZ_4M,
		      2 * GIB + SZ_4M, 8 * GIB);
	expect_log(test, ctx, "");
	/* Once the region is released, its bytes are the rest again. */
	fake_free(block);
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, nr, 1);
	expect_tensor(test, ctx, 3 * GIB + SZ_4M, 1, 0);
}

/* A rest counts for requests that it can hold. */
static void a_rest_has_a_size(struct kunit *test)
{
	struct ctx *ctx = make_odd(test, 8 * GIB + SZ_4M, 8, 5);
	struct flexmem_table *table = ctx->table;

	expect_tensor(test, ctx, 8 * GIB, 0, 0);
	expect_reason(test, ctx, 5 * GIB, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      8 * GIB);
	KUNIT_EXPECT_EQ(test,
			flexmem_table_exhausted(table, FLEXMEM_KIND_TENSOR, 1,
						SZ_4M + 128),
			FLEXMEM_REASON_CAPACITY);
	KUNIT_EXPECT_EQ(test,
			flexmem_table_exhausted(table, FLEXMEM_KIND_TENSOR, 1,
						SZ_4M),
			FLEXMEM_REASON_NONE);
	expect_tensor(test, ctx, SZ_4M, 1, 0);
}

/* A request that only the rest can hold gets it, although a size would fit. */
static void a_large_request_gets_the_rest(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8,
				    10 * GIB);

	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, 1),
			10 * GIB);
	expect_tensor(test, ctx, 9 * GIB, 0, 0);
	expect_log(test, ctx, "acquire 12G ENOSPC, acquire 10G, set 0");
	expect_tensor(test, ctx, GIB, 0, 9 * GIB);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      10 * GIB);
	/* With other regions there is no such rest. */
	ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8, 10 * GIB);
	expect_tensor(test, ctx, GIB, 0, 0);
	fake_device_forget(ctx->fake);
	expect_reason(test, ctx, 9 * GIB, false, FLEXMEM_REASON_REGION_SIZE,
		      7 * GIB, 7 * GIB, 8 * GIB);
	expect_log(test, ctx, "");
	/* A region is never longer than the largest size. */
	ctx = make_odd(test, 10 * GIB, 2, 4);
	expect_reason(test, ctx, 5 * GIB, false, FLEXMEM_REASON_REGION_SIZE, 0,
		      0, 4 * GIB);
}

/* The device has less than it said, and refuses the rest. */
static void a_refused_rest_is_not_tried_again(struct kunit *test)
{
	struct ctx *ctx = make_lazy(test, FLEXMEM_ORDER_FILL_FIRST, 8, 9 * GIB);

	ctx->fake->capacity = 8 * GIB;
	expect_tensor(test, ctx, 8 * GIB, 0, 0);
	fake_device_forget(ctx->fake);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      8 * GIB);
	expect_log(test, ctx,
		   "acquire 8G ENOSPC, acquire 4G ENOSPC, acquire 1G ENOSPC");
	KUNIT_EXPECT_EQ(test, 8 * GIB, ctx->table->accounts.gauge.memory);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      8 * GIB);
	expect_log(test, ctx, "");
}

/* A program gets the smallest usual region first, and then the rest. */
static void programs_get_the_rest_last(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct fake_block *block;
	struct ctx *ctx;

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	settings.program_slots = 2;
	ctx = make(test, FLEXMEM_MODE_VF, 8, 5 * GIB, &settings);
	block = try(ctx, 4 * GIB - 128, true);
	expect_in(test, ctx, block, 0);
	KUNIT_EXPECT_EQ(test, block->region->mem.size, 4 * GIB);
	block = try(ctx, GIB, true);
	expect_in(test, ctx, block, 0);
	KUNIT_EXPECT_EQ(test, block->region->mem.size, GIB);
}

/*
 * Without a choice of domains, regions come from domain 0, then from domain 1,
 * and never from a domain of another type.
 */
static void default_is_device_memory_in_order(struct kunit *test)
{
	struct ctx *ctx = make_ordered(test, param_order(test), 8);
	unsigned int i;

	for (i = 0; i < 3; i++)
		expect_tensor(test, ctx, 12 * GIB, i, 0);
	expect_log(test, ctx,
		   "acquire 12G, set 0, acquire 12G, set 1, acquire 12G ENOSPC, acquire 12G (1), set 2");
	expect_tensor(test, ctx, 8 * GIB, 3, 0);
	expect_reason(test, ctx, 128, false, FLEXMEM_REASON_CAPACITY, 0, 0,
		      12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 44 * GIB);
}

/* An existing region of any domain is tried before a new region of domain 0. */
static void existing_regions_come_first(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);

	expect_from(test, ctx, HBM_1, GIB, 1);
	expect_from(test, ctx, HBM_0 | HBM_1, GIB, 1);
	expect_from(test, ctx, HBM_0 | HBM_1, 11 * GIB, 0);
	/*
	 * The domains have regions with 10 GiB and with 1 GiB free. The fullest
	 * region is tried first.
	 */
	expect_from(test, ctx, HBM_0 | HBM_1, 128, 0);
}

/*
 * A slot can get a region of another domain after placement has read the mask of
 * a domain's slots. Here the mask has such a slot.
 */
static void slot_of_another_domain_is_left_out(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);
	u64 *filled = ctx->table->domain[0].filled;

	expect_from(test, ctx, HBM_1, 128, 1);
	filled[FLEXMEM_KIND_TENSOR] |= BIT_ULL(0);
	expect_from(test, ctx, HBM_0, 128, 0);
	filled[FLEXMEM_KIND_TENSOR] &= ~BIT_ULL(0);
	expect_log(test, ctx, "acquire 12G (1), set 0, acquire 12G, set 1");
}

static void on_chip_memory_is_not_taken_unasked(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);

	expect_from(test, ctx, ON_CHIP, 128, 2);
	expect_tensor(test, ctx, 128, 1, 0);
	expect_log(test, ctx, "acquire 0G (2), set 0, acquire 12G, set 1");
}

/*
 * With every strategy memory comes from the first of these that has room:
 * existing regions of the preferred domains, existing regions of other domains,
 * a new region of a preferred domain, a new region of another domain.
 */
static void preferred_domains_come_first(struct kunit *test)
{
	struct ctx *ctx = make_ordered(test, param_order(test), 8);

	expect_from(test, ctx, HBM_0, GIB, 0);
	expect_preferred(test, ctx, HBM_0, 128, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
	/*
	 * The other domains have no room: a new region of the preferred domain
	 * is acquired.
	 */
	expect_preferred(test, ctx, HBM_1, 12 * GIB - 256, 1);
	expect_log(test, ctx, "acquire 12G (1), set 1");
	expect_preferred(test, ctx, HBM_1, 128, 1);
	expect_preferred(test, ctx, HBM_1, 256, 0);
	expect_preferred(test, ctx, HBM_1, 128, 1);
	expect_preferred(test, ctx, HBM_1, 11 * GIB - 384, 0);
	expect_log(test, ctx, "");
	expect_preferred(test, ctx, HBM_1, 8 * GIB, 1);
	expect_log(test, ctx,
		   "acquire 12G ENOSPC (1), acquire 8G (1), set 2");
	expect_preferred(test, ctx, HBM_1, 128, 0);
	expect_log(test, ctx,
		   "acquire 8G ENOSPC (1), acquire 4G ENOSPC (1), acquire 12G, set 3");
}

static void preferred_domain_may_be_too_small(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);
	struct fake_block *block;

	expect_preferred(test, ctx, ON_CHIP, GIB, 0);
	expect_log(test, ctx, "acquire 12G, set 0");
	block = fake_alloc_from(ctx->table, HBM_0 | ON_CHIP, ON_CHIP, 13 * GIB,
				&ctx->request);
	KUNIT_EXPECT_EQ(test, PTR_ERR(block), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_REGION_SIZE);
	KUNIT_EXPECT_EQ(test, ctx->request.max_region, 12 * GIB);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, 11 * GIB);
}

/* After an error of the firmware the driver does not try another domain. */
static void error_of_the_preferred_domain_counts(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);
	struct fake_block *block;

	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -EIO);
	block = fake_alloc_from(ctx->table, HBM_0 | HBM_1, HBM_1, 128,
				&ctx->request);
	KUNIT_EXPECT_EQ(test, PTR_ERR(block), -EIO);
	KUNIT_EXPECT_EQ(test, ctx->fake->taken, 0);
}

/* A domain without room is exhausted, even if another domain has room. */
static void one_domain_is_exhausted_alone(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);
	struct flexmem_table *table = ctx->table;

	expect_from(test, ctx, ON_CHIP, ON_CHIP_SIZE - 256, 2);
	expect_full(test, ctx, ON_CHIP, 512, FLEXMEM_REASON_CAPACITY, 256,
		    ON_CHIP_SIZE);
	expect_full(test, ctx, ON_CHIP, ON_CHIP_SIZE + 128,
		    FLEXMEM_REASON_REGION_SIZE, 256, ON_CHIP_SIZE);
	expect_from(test, ctx, ON_CHIP | WINDOW, 512, 3);
	KUNIT_EXPECT_EQ(test,
			flexmem_table_exhausted(table, FLEXMEM_KIND_TENSOR,
						ON_CHIP, 0),
			FLEXMEM_REASON_CAPACITY);
	KUNIT_EXPECT_EQ(test,
			flexmem_table_exhausted(table, FLEXMEM_KIND_TENSOR,
						HBM_0 | ON_CHIP, 0),
			FLEXMEM_REASON_NONE);
	/*
	 * Other domains have regions that are large enough, but the largest
	 * region of WINDOW has 2 GiB.
	 */
	expect_full(test, ctx, WINDOW, 3 * GIB, FLEXMEM_REASON_REGION_SIZE,
		    2 * GIB - 512, 2 * GIB);
	expect_full(test, ctx, WINDOW, 2 * GIB, FLEXMEM_REASON_CAPACITY,
		    2 * GIB - 512, 2 * GIB);
}

static void slots_are_exhausted_for_all(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 2);

	expect_from(test, ctx, HBM_0, 128, 0);
	expect_from(test, ctx, HBM_1, 128, 1);
	expect_full(test, ctx, ON_CHIP, 128, FLEXMEM_REASON_SLOTS, 0,
		    ON_CHIP_SIZE);
	expect_full(test, ctx, HBM_1, 12 * GIB, FLEXMEM_REASON_SLOTS,
		    12 * GIB - 128, 12 * GIB);
}

/* A function with more domains than slots cannot have a chunk in each. */
static void interleave_needs_a_slot_for_each(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 2);
	struct flexmem_client *client = fake_client_open(test, ctx->table, 1);
	struct flexmem_request request = {
		.size = 3 * FLEXMEM_ALIGN,
		.alignment = FLEXMEM_ALIGN,
		.domains = HBM_0 | HBM_1 | WINDOW,
		.first = HBM_0 | HBM_1 | WINDOW,
		.chunks = 3,
	};
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_prepare(client, &request);
	KUNIT_EXPECT_EQ(test, PTR_ERR(allocation), -ENOMEM);
	KUNIT_EXPECT_EQ(test, request.reason, FLEXMEM_REASON_SLOTS);
	KUNIT_EXPECT_EQ(test, request.regions, 2);
	request = (struct flexmem_request) {
		.size = 3 * FLEXMEM_ALIGN,
		.alignment = FLEXMEM_ALIGN,
		.domains = HBM_0 | HBM_1,
		.first = HBM_0 | HBM_1,
		.chunks = 2,
	};
	allocation = flexmem_client_prepare(client, &request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_EQ(test, allocation->nr_chunks, 2);
	flexmem_client_publish(client, allocation);
}

static void memory_comes_back_to_its_domain(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);
	struct fake_block *block = from(ctx, ON_CHIP, 128);
	unsigned int nr;
	u64 bytes;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	expect_from(test, ctx, HBM_0, 128, 0);
	KUNIT_EXPECT_EQ(test,
			flexmem_function_held_in(&ctx->table->function, 2,
						 false),
			ON_CHIP_SIZE);
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB + ON_CHIP_SIZE);
	fake_free(block);
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_table_trim(ctx->table, &nr, &bytes));
	KUNIT_EXPECT_EQ(test, bytes, ON_CHIP_SIZE);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[2].filled[0], 0);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[0].filled[0], 2);
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->table->function),
			12 * GIB);
	/* Slot 0 is empty now. A region of another domain fills it. */
	expect_from(test, ctx, HBM_1, 128, 1);
	expect_from(test, ctx, ON_CHIP, 128, 2);
}

static void reset_reads_each_capacity(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);

	expect_from(test, ctx, ON_CHIP, 128, 2);
	fake_device_forget(ctx->fake);
	ctx->fake->capacity_of[1] = 4 * GIB;
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_reset(ctx->table));
	expect_log(test, ctx, "quiesce, reset");
	expect_from(test, ctx, HBM_1, 4 * GIB, 1);
	expect_log(test, ctx,
		   "capacity, capacity (1), capacity (2), capacity (3), acquire 12G ENOSPC (1), acquire 8G ENOSPC (1), acquire 4G (1), set 0");
	KUNIT_EXPECT_EQ(test, flexmem_table_max_region(ctx->table, HBM_1),
			4 * GIB);
}

/*
 * The next acquisition reads the capacities that the failed refresh did not
 * read.
 */
static void refresh_that_fails_is_repeated(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);

	fake_device_fail(ctx->fake, FAKE_CAPACITY, 3, 1, -EIO);
	ctx->fake->capacity_of[1] = 28 * GIB;
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_table_new_capacity(ctx->table));
	KUNIT_EXPECT_EQ(test, ctx->table->domain[1].capacity, 28 * GIB);
	expect_log(test, ctx, "capacity, capacity (1), capacity EIO (2)");
	expect_from(test, ctx, HBM_1, 128, 1);
	expect_log(test, ctx,
		   "capacity (2), capacity (3), acquire 12G (1), set 0");
}

/* The device has more memory just after it has answered how much it has. */
static void grow_once(void *arg)
{
	struct ctx *ctx = arg;

	ctx->fake->after_capacity = NULL;
	ctx->fake->capacity = 12 * GIB;
	flexmem_table_outdate(ctx->table);
}

/*
 * The capacity changes while the firmware answers. flexmem may have the old
 * answer for now, but asks again before the next acquisition.
 */
static void capacity_changes_during_the_answer(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);

	ctx->fake->capacity = 4 * GIB;
	ctx->fake->after_capacity = grow_once;
	ctx->fake->after_capacity_arg = ctx;
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_new_capacity(ctx->table));
	expect_from(test, ctx, HBM_0, 12 * GIB, 0);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[0].capacity, 12 * GIB);
}

/* Each domain gets a region in turn, so that no domain takes all slots. */
static void prealloc_takes_turns(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.acquire = FLEXMEM_ACQUIRE_PREALLOC;
	ctx = make_domains(test, 6, &settings);
	KUNIT_ASSERT_EQ(test, 0, fake_table_prealloc(ctx->table));
	KUNIT_EXPECT_EQ(test, ctx->table->domain[0].filled[0], 0x11);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[1].filled[0], 0x22);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[2].filled[0], 0x04);
	KUNIT_EXPECT_EQ(test, ctx->table->domain[3].filled[0], 0x08);
	/*
	 * No region comes from the domains that are used only if a request
	 * names them.
	 */
	expect_tensor(test, ctx, 8 * GIB, 0, 0);
}

/*
 * A free slot can take a region of one domain only. So the pressure counts the
 * slot as memory of one domain: the domain of the region that would fill it.
 */
static void pressure_is_about_all_domains(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx = make_domains(test, 8, &settings);

	KUNIT_EXPECT_EQ(test, ctx->table->accounts.gauge.memory,
			47 * GIB + ON_CHIP_SIZE);
	ctx = make_domains(test, 3, &settings);
	KUNIT_EXPECT_EQ(test, ctx->table->accounts.gauge.memory, 36 * GIB);
}

/* Allocates for a client, from the given domains. */
static int try_from(struct flexmem_client *client, u64 domains, u64 size)
{
	struct flexmem_request request = {
		.size = size,
		.alignment = FLEXMEM_ALIGN,
		.domains = domains,
		.first = domains,
		.chunks = 1,
	};
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_prepare(client, &request);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	flexmem_client_publish(client, allocation);
	return 0;
}

/* Reads an event as the client's file does. Returns false if there is none. */
static bool read_event(struct flexmem_client *client)
{
	struct flexmem_accounts *accounts = &client->table->accounts;
	struct flexmem_reading reading;

	fake_events_deliver(accounts);
	return flexmem_pressure_look(accounts, &client->listener, &reading) &&
	       flexmem_pressure_take(accounts, &client->listener, &reading);
}

/*
 * A free is an event for each file whose ALLOC failed, whatever domains the ALLOC
 * could have used: the file tries again.
 */
static void a_free_anywhere_is_an_event(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);
	struct flexmem_client *client = fake_client_open(test, ctx->table, 1);
	struct fake_block *hbm = from(ctx, HBM_0, GIB);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, from(ctx, ON_CHIP, ON_CHIP_SIZE));
	KUNIT_EXPECT_EQ(test, try_from(client, ON_CHIP, 128), -ENOMEM);
	KUNIT_EXPECT_FALSE(test, read_event(client));
	fake_free(hbm);
	KUNIT_EXPECT_TRUE(test, read_event(client));
	KUNIT_EXPECT_EQ(test, try_from(client, HBM_1, 128), 0);
	fake_free(from(ctx, HBM_0, GIB));
	KUNIT_EXPECT_FALSE(test, read_event(client));
}

static void memory_of_another_domain_is_distrusted(struct kunit *test)
{
	struct ctx *ctx = make_lazily(test, 8);

	ctx->fake->wrong_domain = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR(from(ctx, ON_CHIP, 128)), -EIO);
	KUNIT_EXPECT_TRUE(test,
			  atomic_read(&ctx->table->function.distrusted));
	/* Only a reset recovers the memory. */
	KUNIT_EXPECT_EQ(test, 0, flexmem_table_reset(ctx->table));
}

/*
 * A description with one mistake, in its second domain or in the number of
 * domains.
 */
struct bad_domain {
	const char *what;
	void (*spoil)(struct flexmem_device_desc *desc,
		      struct flexmem_domain_desc *domain);
};

#define BAD_DOMAIN(_name, _statement)					\
	static void bad_##_name(struct flexmem_device_desc *desc,	\
				struct flexmem_domain_desc *domain)	\
	{								\
		_statement;						\
	}

BAD_DOMAIN(type, domain->type = FLEXMEM_DOMAIN_HOST_VISIBLE + 1)
BAD_DOMAIN(first_type, domain[-1].type = FLEXMEM_DOMAIN_ON_CHIP)
BAD_DOMAIN(odd_granule, domain->granule = SZ_64K + SZ_4K)
BAD_DOMAIN(small_granule, domain->granule = SZ_2K)
BAD_DOMAIN(large_granule, domain->granule = 2 * GIB)
BAD_DOMAIN(many_sizes, domain->nr_sizes = FLEXMEM_MAX_FALLBACK_SIZES + 1)
BAD_DOMAIN(no_size, domain->nr_sizes = 1)
BAD_DOMAIN(odd_size, domain->nr_sizes = 1; domain->sizes[0] = SZ_2M + SZ_4K)
BAD_DOMAIN(many_domains, desc->nr_domains = FLEXMEM_MAX_DOMAINS + 1)

#define BAD(_name) { #_name, bad_##_name }
static const struct bad_domain bad_domains[] = {
	BAD(type),
	BAD(first_type),
	BAD(odd_granule),
	BAD(small_granule),
	BAD(large_granule),
	BAD(many_sizes),
	BAD(no_size),
	BAD(odd_size),
	BAD(many_domains),
};

static void bad_domain_name(const struct bad_domain *bad, char *name)
{
	strscpy(name, bad->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_domain, bad_domains, bad_domain_name);

static void refuses_a_bad_domain(struct kunit *test)
{
	const struct bad_domain *bad = test->param_value;
	struct flexmem_device_desc desc;
	struct flexmem_function *function;
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 24 * GIB);
	function = kunit_kzalloc(test, sizeof(*function), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, function);
	fake_device_add_domain(fake, FLEXMEM_DOMAIN_ON_CHIP, SZ_16M);
	desc = fake_device_desc(fake);
	KUNIT_ASSERT_EQ(test, 0, flexmem_function_init(function, NULL, &desc));
	bad->spoil(&desc, &fake->domains[1]);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_function_init(function, NULL, &desc));
}

static void each_domain_needs_room_for_a_region(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_device_desc desc;
	struct flexmem_table *table;
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 24 * GIB);
	fake_device_add_domain(fake, FLEXMEM_DOMAIN_ON_CHIP, SZ_1M);
	table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, table);
	desc = fake_device_desc(fake);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_table_init(table, NULL, &desc, &settings));
}

static struct kunit_case domain_cases[] = {
	KUNIT_CASE(one_domain_by_default),
	KUNIT_CASE(domains_have_their_own_sizes),
	KUNIT_CASE(the_last_region_takes_the_rest),
	KUNIT_CASE(the_rest_comes_last),
	KUNIT_CASE(a_rest_has_a_size),
	KUNIT_CASE(a_large_request_gets_the_rest),
	KUNIT_CASE(a_refused_rest_is_not_tried_again),
	KUNIT_CASE(programs_get_the_rest_last),
	ORDER_CASE(default_is_device_memory_in_order),
	KUNIT_CASE(existing_regions_come_first),
	KUNIT_CASE(slot_of_another_domain_is_left_out),
	KUNIT_CASE(on_chip_memory_is_not_taken_unasked),
	ORDER_CASE(preferred_domains_come_first),
	KUNIT_CASE(preferred_domain_may_be_too_small),
	KUNIT_CASE(error_of_the_preferred_domain_counts),
	KUNIT_CASE(one_domain_is_exhausted_alone),
	KUNIT_CASE(slots_are_exhausted_for_all),
	KUNIT_CASE(interleave_needs_a_slot_for_each),
	KUNIT_CASE(memory_comes_back_to_its_domain),
	KUNIT_CASE(reset_reads_each_capacity),
	KUNIT_CASE(refresh_that_fails_is_repeated),
	KUNIT_CASE(capacity_changes_during_the_answer),
	KUNIT_CASE(prealloc_takes_turns),
	KUNIT_CASE(pressure_is_about_all_domains),
	KUNIT_CASE(a_free_anywhere_is_an_event),
	KUNIT_CASE(memory_of_another_domain_is_distrusted),
	KUNIT_CASE_PARAM(refuses_a_bad_domain, bad_domain_gen_params),
	KUNIT_CASE(each_domain_needs_room_for_a_region),
	{}
};

static struct kunit_suite domain_suite = {
	.name = "flexmem_domain",
	.test_cases = domain_cases,
};

kunit_test_suite(domain_suite);
