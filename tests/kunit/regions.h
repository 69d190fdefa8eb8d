/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A region table and a fake device, for the tests of acquisition and release.
 *
 * Tests compare the calls to the device as text, see fake_device_log(). The
 * default device is a VF of 8 slots with plenty of capacity.
 */
#ifndef _FLEXMEM_TEST_REGIONS_H
#define _FLEXMEM_TEST_REGIONS_H

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/slab.h>

#include "fake_device.h"
#include "parts/snapshot.h"
#include "region/table.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_view snapshot;
};

static const int errors[] = { -ETIMEDOUT, -EIO, -EINTR };

static inline void error_desc(const int *error, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "error %d", *error);
}

KUNIT_ARRAY_PARAM(error, errors, error_desc);

static inline int param_error(struct kunit *test)
{
	return *(const int *)test->param_value;
}

static inline struct ctx *make_mode(struct kunit *test, enum flexmem_mode mode,
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

static inline struct ctx *make(struct kunit *test, unsigned int slots,
			       u64 capacity)
{
	struct flexmem_settings settings = fake_settings();

	return make_mode(test, FLEXMEM_MODE_VF, slots, capacity, &settings);
}

static inline struct flexmem_region *acquire(struct ctx *ctx, u64 min_size)
{
	return fake_table_acquire(ctx->table, false, min_size);
}

/* Acquires @nr regions, and empties the device's log. */
static inline void acquire_regions(struct kunit *test, struct ctx *ctx,
				   unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, acquire(ctx, 0));
	fake_device_forget(ctx->fake);
}

/* Acquires a region. Returns its slot or an error. */
static inline int acquire_slot(struct ctx *ctx)
{
	struct flexmem_region *region = acquire(ctx, 0);

	return IS_ERR(region) ? PTR_ERR(region) : region->slot;
}

/* Occupies a block in a region. */
static inline struct fake_block *occupy(struct kunit *test, struct ctx *ctx,
					unsigned int slot, u64 size)
{
	struct flexmem_region *region = fake_table_region(ctx->table, slot);
	struct fake_block *block;

	KUNIT_ASSERT_NOT_NULL(test, region);
	block = fake_alloc_in(ctx->table, region, size, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, block);
	return block;
}

/* Expects exactly these calls to the device since the last check. */
static inline void expect_log(struct kunit *test, struct ctx *ctx,
			      const char *log)
{
	KUNIT_EXPECT_STREQ(test, fake_device_log(ctx->fake), log);
	fake_device_forget(ctx->fake);
}

static inline void expect_exhausted(struct kunit *test, struct ctx *ctx,
				    enum flexmem_reason reason)
{
	KUNIT_EXPECT_EQ(test, fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR),
			reason);
}

static inline void expect_open(struct kunit *test, struct ctx *ctx)
{
	KUNIT_EXPECT_FALSE(test,
			   fake_exhausted(ctx->table, FLEXMEM_KIND_TENSOR));
}

static inline unsigned int nr_regions(struct ctx *ctx)
{
	flexmem_table_snapshot(ctx->table, NULL, &ctx->snapshot);
	return ctx->snapshot.nr;
}

#define ERROR_CASE(name) KUNIT_CASE_PARAM(name, error_gen_params)

#endif /* _FLEXMEM_TEST_REGIONS_H */
