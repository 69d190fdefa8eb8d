/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A region table, a fake device and the results of placement, for the tests of
 * addresses. Regions have 12 GiB, unless a test says otherwise.
 */
#ifndef _FLEXMEM_TEST_PLACEMENTS_H
#define _FLEXMEM_TEST_PLACEMENTS_H

#include <kunit/test.h>
#include <linux/err.h>

#include "alloc/client.h"
#include "alloc/placement.h"
#include "fake_device.h"
#include "region/table.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_request request;
};

static const enum flexmem_order orders[] = {
	FLEXMEM_ORDER_LOAD_BALANCE,
	FLEXMEM_ORDER_FILL_FIRST,
};

static inline void order_desc(const enum flexmem_order *order, char *desc)
{
	strscpy(desc, fake_order_name(*order), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(order, orders, order_desc);

static inline enum flexmem_order param_order(struct kunit *test)
{
	return *(const enum flexmem_order *)test->param_value;
}

static inline struct ctx *make(struct kunit *test, enum flexmem_mode mode,
			       unsigned int slots, u64 capacity,
			       const struct flexmem_settings *settings)
{
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, mode, slots, capacity);
	ctx->table = fake_table_create(test, ctx->fake, settings);
	return ctx;
}

/* A VF that acquires regions on demand. */
static inline struct ctx *make_lazy(struct kunit *test,
				    enum flexmem_order order,
				    unsigned int slots, u64 capacity)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = order;
	return make(test, FLEXMEM_MODE_VF, slots, capacity, &settings);
}

/* A VF that has acquired all regions at its registration. */
static inline struct ctx *make_preallocated(struct kunit *test,
					    enum flexmem_order order,
					    unsigned int nr)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	settings.order = order;
	settings.acquire = FLEXMEM_ACQUIRE_PREALLOC;
	ctx = make(test, FLEXMEM_MODE_VF, nr, PLENTY, &settings);
	KUNIT_ASSERT_EQ(test, 0, fake_table_prealloc(ctx->table));
	fake_device_forget(ctx->fake);
	return ctx;
}

static inline struct flexmem_region *region_in(struct kunit *test,
					       struct ctx *ctx,
					       unsigned int slot)
{
	struct flexmem_region *region = fake_table_region(ctx->table, slot);

	KUNIT_ASSERT_NOT_NULL(test, region);
	return region;
}

/* Occupies bytes of a region, whatever the placement would choose. */
static inline struct fake_block *occupy(struct kunit *test, struct ctx *ctx,
					unsigned int slot, u64 size)
{
	struct flexmem_region *region = region_in(test, ctx, slot);
	struct fake_block *block;

	block = fake_alloc_in(ctx->table, region, size, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	return block;
}

static inline struct fake_block *try(struct ctx *ctx, u64 size, bool program)
{
	return fake_alloc(ctx->table, size, FLEXMEM_ALIGN, program,
			  &ctx->request);
}

/* Allocates, and expects the given slot and offset. */
static inline struct fake_block *expect_at(struct kunit *test, struct ctx *ctx,
					   u64 size, bool program,
					   unsigned int slot, u64 offset)
{
	struct fake_block *block = try(ctx, size, program);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	KUNIT_EXPECT_EQ(test, block->region->slot, slot);
	KUNIT_EXPECT_EQ(test, block->block->start, offset);
	KUNIT_EXPECT_EQ(test, block->block->size, size);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, FLEXMEM_REASON_NONE);
	return block;
}

static inline void expect_tensor(struct kunit *test, struct ctx *ctx, u64 size,
				 unsigned int slot, u64 offset)
{
	expect_at(test, ctx, size, false, slot, offset);
}

static inline void expect_reason(struct kunit *test, struct ctx *ctx, u64 size,
				 bool program, enum flexmem_reason reason,
				 u64 total_free, u64 largest_free,
				 u64 max_region)
{
	KUNIT_EXPECT_EQ(test, PTR_ERR(try(ctx, size, program)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ctx->request.reason, reason);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.free, total_free);
	KUNIT_EXPECT_EQ(test, ctx->request.sum.largest, largest_free);
	KUNIT_EXPECT_EQ(test, ctx->request.max_region, max_region);
	KUNIT_EXPECT_NULL(test, ctx->request.block);
}

/* Expects exactly these calls to the device since the last check. */
static inline void expect_log(struct kunit *test, struct ctx *ctx,
			      const char *log)
{
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), log);
	fake_device_forget(ctx->fake);
}

/*
 * Allocates a block in the middle of a region's free bytes, which leaves two
 * equal parts.
 */
static inline void split(struct kunit *test, struct ctx *ctx, unsigned int slot,
			 u64 middle)
{
	struct fake_block *front;

	front = occupy(test, ctx, slot, (12 * GIB - middle) / 2);
	occupy(test, ctx, slot, middle);
	fake_free(front);
}

static inline struct ctx *make_program_slots(struct kunit *test,
					     enum flexmem_order order)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = order;
	settings.program_slots = 1;
	return make(test, FLEXMEM_MODE_VF, 2, PLENTY, &settings);
}

#define ORDER_CASE(name) KUNIT_CASE_PARAM(name, order_gen_params)

#endif /* _FLEXMEM_TEST_PLACEMENTS_H */
