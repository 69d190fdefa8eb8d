// SPDX-License-Identifier: GPL-2.0
/*
 * Copies within the device: which bytes they change, into which commands they
 * are split, and which errors end them.
 */

#include <linux/limits.h>

#include "clients.h"
#include "parts/mapping.h"
#include "parts/resize.h"

#define MIB ((u64)SZ_1M)
#define PIECE FLEXMEM_COPY_MAX

struct at {
	struct flexmem_allocation *allocation;
	u64 offset;
};

#define AT(allocation, offset) ((struct at) { allocation, offset })

/* Fills a range, which must lie in one chunk. */
static void fill(struct kunit *test, struct at at, u64 size, u8 value)
{
	struct ctx *ctx = test->priv;
	const struct flexmem_block *chunk =
		flexmem_allocation_chunk(at.allocation, &at.offset);

	fake_data_fill(ctx->fake, &chunk->region->mem,
		       chunk->start + at.offset, size, value);
}

static struct flexmem_allocation *make_filled(struct kunit *test, u64 size,
					      u8 value)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = prepare(test, ctx->client, size);
	flexmem_client_publish(ctx->client, allocation);
	fill(test, AT(allocation, 0), size, value);
	return allocation;
}

static bool is_all(struct kunit *test, struct at at, u64 size, u8 value)
{
	struct ctx *ctx = test->priv;
	const struct flexmem_block *chunk =
		flexmem_allocation_chunk(at.allocation, &at.offset);

	return fake_data_is(ctx->fake, &chunk->region->mem,
			    chunk->start + at.offset, size, value);
}

static int copy(struct kunit *test, struct at to, struct at from, u64 length,
		u64 *done)
{
	struct ctx *ctx = test->priv;
	struct flexmem_copy range = {
		.to = to.allocation->handle,
		.from = from.allocation->handle,
		.to_offset = to.offset,
		.from_offset = from.offset,
		.length = length,
	};
	int rc;

	rc = flexmem_data_copy(ctx->client, &range);
	*done = range.out_done;
	return rc;
}

static void copies_a_range_and_nothing_else(struct kunit *test)
{
	struct flexmem_allocation *from = make_filled(test, MIB, 7);
	struct flexmem_allocation *to = make_filled(test, MIB, 3);
	u64 done;

	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(to, 1024), AT(from, MIB - 256),
				      256, &done));
	KUNIT_EXPECT_EQ(test, done, 256);
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, 0), 1024, 3));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, 1024), 256, 7));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, 1280), MIB - 1280, 3));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(from, 0), MIB, 7));
}

static void copies_between_regions_in_pieces(struct kunit *test)
{
	struct flexmem_allocation *from = make_filled(test, 8 * GIB, 7);
	struct flexmem_allocation *to = make_filled(test, 8 * GIB, 3);
	const u64 length = 2 * PIECE + 128;
	struct ctx *ctx = test->priv;
	u64 done;

	KUNIT_ASSERT_TRUE(test, from->chunks[0]->region != to->chunks[0]->region);
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(to, GIB), AT(from, 128), length,
				      &done));
	KUNIT_EXPECT_EQ(test, done, length);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_COPY], 3);
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, 0), GIB, 3));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, GIB), length, 7));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, GIB + length), GIB, 3));
}

static void copies_within_an_allocation(struct kunit *test)
{
	struct flexmem_allocation *both = make_filled(test, MIB, 3);
	u64 done;

	fill(test, AT(both, 0), 1024, 7);
	/* Copies to the adjacent range above, then to the one below. */
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(both, 1024), AT(both, 0), 1024,
				      &done));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(both, 0), 2048, 7));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(both, 2048), 1024, 3));
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(both, 1024), AT(both, 2048),
				      1024, &done));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(both, 1024), 1024, 3));
}

/* flexmem splits a copy wherever a chunk of either allocation ends. */
static void copies_across_the_ends_of_chunks(struct kunit *test)
{
	struct flexmem_allocation *whole = make_filled(test, MIB, 7), *chunked;
	struct ctx *ctx = test->priv;
	u64 done;

	ctx->request = (struct flexmem_request) {
		.size = 30 * GIB,
		.alignment = FLEXMEM_ALIGN,
		.domains = 1,
		.first = 1,
		.chunks = 3,
	};
	chunked = flexmem_client_prepare(ctx->client, &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, chunked);
	KUNIT_ASSERT_EQ(test, chunked->chunks[0]->size, 10 * GIB);
	flexmem_client_publish(ctx->client, chunked);
	fill(test, AT(chunked, 0), 10 * GIB, 3);
	fill(test, AT(chunked, 10 * GIB), 10 * GIB, 4);
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(chunked, 10 * GIB - 1024),
				      AT(whole, 0), 4096, &done));
	KUNIT_EXPECT_EQ(test, done, 4096);
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_COPY], 2);
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(chunked, 0), 10 * GIB - 1024,
				       3));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(chunked, 10 * GIB - 1024), 1024,
				       7));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(chunked, 10 * GIB), 3072, 7));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(chunked, 10 * GIB + 3072),
				       GIB, 4));
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(whole, 0),
				      AT(chunked, 10 * GIB + 2048), 2048,
				      &done));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(whole, 0), 1024, 7));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(whole, 1024), 1024, 4));
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(whole, 2048),
				      AT(chunked, 10 * GIB - 2048), 4096,
				      &done));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(whole, 2048), 1024, 3));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(whole, 3072), 3072, 7));
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_COPY], 5);
}

static void refuses_ranges_that_overlap(struct kunit *test)
{
	struct flexmem_allocation *both = make_filled(test, MIB, 3);
	static const u64 places[] = { 0, 128, 896, 1024, 1152, 1920 };
	struct ctx *ctx = test->priv;
	unsigned int i;
	u64 done;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		KUNIT_EXPECT_EQ_MSG(test, i ? -EINVAL : 0,
				    copy(test, AT(both, places[i]),
					 AT(both, 1024), 1024, &done),
				    "to %llu", places[i]);
		KUNIT_EXPECT_EQ(test, done, i ? 0 : 1024);
	}
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_COPY], 1);
}

static void refuses_ranges_outside_or_unaligned(struct kunit *test)
{
	struct flexmem_allocation *large = make_filled(test, MIB, 7);
	struct flexmem_allocation *small = make_filled(test, 1024, 3);
	static const struct {
		u64 to, from, length;
	} bad[] = {
		{ 0, 0, 0 }, { 1024, 0, 0 }, { 0, 0, 1152 }, { 128, 0, 1024 },
		{ 1024, 0, 128 }, { 0, MIB - 128, 256 }, { 0, MIB, 128 },
		{ 0, 0, 64 }, { 64, 0, 128 }, { 0, 64, 128 }, { 0, 0, 1 },
		{ 0, 0, U64_MAX - 127 }, { U64_MAX - 127, 0, 128 },
		{ 0, U64_MAX - 127, 128 }, { U64_MAX - 127, 0, 256 },
		{ 128, 0, U64_MAX - 127 }, { 0, 128, U64_MAX - 127 },
	};
	struct ctx *ctx = test->priv;
	unsigned int i;
	u64 done;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    copy(test, AT(small, bad[i].to),
					 AT(large, bad[i].from), bad[i].length,
					 &done), "%u", i);
		KUNIT_EXPECT_EQ(test, done, 0);
	}
	KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_COPY], 0);
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(small, 0), AT(large, MIB - 1024),
				      1024, &done));
}

static void failed_copy_tells_the_bytes_done(struct kunit *test)
{
	struct flexmem_allocation *from = make_filled(test, GIB, 7);
	struct flexmem_allocation *to = make_filled(test, GIB, 3);
	struct ctx *ctx = test->priv;
	u64 done;

	fake_device_fail(ctx->fake, FAKE_COPY, 3, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO,
			copy(test, AT(to, 0), AT(from, 0), GIB, &done));
	KUNIT_EXPECT_EQ(test, done, 2 * PIECE);
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, 0), 2 * PIECE, 7));
	fake_device_fail(ctx->fake, FAKE_COPY, 1, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			copy(test, AT(to, 0), AT(from, 0), GIB, &done));
	KUNIT_EXPECT_EQ(test, done, 0);
	/* After a lost reply the next caller succeeds. */
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(to, 0), AT(from, 0), GIB, &done));
	KUNIT_EXPECT_TRUE(test, is_all(test, AT(to, 0), GIB, 7));
}

static void resize_and_copy_keep_apart(struct kunit *test)
{
	struct flexmem_allocation *a = make_filled(test, MIB, 7);
	struct flexmem_allocation *b = make_filled(test, MIB, 3);
	struct flexmem_resize cmd = { .handle = a->handle, .length = 128 };
	struct flexmem_resizing resizing;
	struct ctx *ctx = test->priv;
	u64 done;

	KUNIT_ASSERT_EQ(test, 0,
			flexmem_resize_prepare(ctx->client, &cmd, &resizing));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			PTR_ERR(flexmem_client_allocation(ctx->client,
							  a->handle)));
	flexmem_resize_abort(&resizing);
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(b, 0), AT(a, 0), 128, &done));
	KUNIT_EXPECT_EQ(test, refcount_read(&a->refs), 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&b->refs), 1);
}

/* An action of another task in the middle of the first command of a copy. */
struct meanwhile {
	struct flexmem_client *client;
	struct flexmem_allocation *a;
	struct flexmem_allocation *b;
	bool *lost;
	int resize;
};

static void lose(void *arg)
{
	WRITE_ONCE(*((struct meanwhile *)arg)->lost, true);
}

static void copy_ends_when_a_region_is_lost(struct kunit *test)
{
	struct flexmem_allocation *from = make_filled(test, 8 * GIB, 7);
	struct flexmem_allocation *to = make_filled(test, 8 * GIB, 3);
	bool *lost[] = {
		&from->chunks[0]->region->lost, &to->chunks[0]->region->lost,
	};
	struct ctx *ctx = test->priv;
	struct meanwhile meanwhile = {};
	unsigned int i;
	u64 done;

	ctx->fake->during_copy = lose;
	ctx->fake->during_copy_arg = &meanwhile;
	for (i = 0; i < ARRAY_SIZE(lost); i++) {
		meanwhile.lost = lost[i];
		KUNIT_EXPECT_EQ(test, -EIO, copy(test, AT(to, 0), AT(from, 0),
						 2 * PIECE, &done));
		KUNIT_EXPECT_EQ(test, done, PIECE);
		/*
		 * The region is lost before the first command, so nothing is
		 * copied.
		 */
		KUNIT_EXPECT_EQ(test, -EIO, copy(test, AT(to, 0), AT(from, 0),
						 PIECE, &done));
		KUNIT_EXPECT_EQ(test, done, 0);
		KUNIT_EXPECT_EQ(test, ctx->fake->calls[FAKE_COPY], i + 1);
		WRITE_ONCE(*lost[i], false);
	}
}

static void resize_and_free(void *arg)
{
	struct meanwhile *meanwhile = arg;
	struct flexmem_resize cmd = {
		.handle = meanwhile->a->handle,
		.length = 128,
	};
	struct flexmem_resizing resizing;

	meanwhile->resize = flexmem_resize_prepare(meanwhile->client, &cmd,
						   &resizing);
	fake_client_free(meanwhile->client, meanwhile->a->handle);
	fake_client_free(meanwhile->client, meanwhile->b->handle);
}

static void copy_keeps_its_references(struct kunit *test)
{
	struct flexmem_allocation *from = make_filled(test, 4 * PIECE, 7);
	struct flexmem_allocation *to = make_filled(test, 4 * PIECE, 3);
	struct ctx *ctx = test->priv;
	struct meanwhile meanwhile = {
		.client = ctx->client,
		.a = to,
		.b = from,
	};
	u64 done;

	ctx->fake->during_copy = resize_and_free;
	ctx->fake->during_copy_arg = &meanwhile;
	KUNIT_EXPECT_EQ(test, 0, copy(test, AT(to, 0), AT(from, 0), PIECE,
				      &done));
	KUNIT_EXPECT_EQ(test, meanwhile.resize, -EBUSY);
	KUNIT_EXPECT_EQ(test, done, PIECE);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 0);
}

static struct kunit_case data_test_cases[] = {
	KUNIT_CASE(copies_a_range_and_nothing_else),
	KUNIT_CASE(copies_between_regions_in_pieces),
	KUNIT_CASE(copies_within_an_allocation),
	KUNIT_CASE(copies_across_the_ends_of_chunks),
	KUNIT_CASE(refuses_ranges_that_overlap),
	KUNIT_CASE(refuses_ranges_outside_or_unaligned),
	KUNIT_CASE(failed_copy_tells_the_bytes_done),
	KUNIT_CASE(resize_and_copy_keep_apart),
	KUNIT_CASE(copy_ends_when_a_region_is_lost),
	KUNIT_CASE(copy_keeps_its_references),
	{}
};

static struct kunit_suite data_test_suite = {
	.name = "flexmem_data",
	.init = client_test_init,
	.test_cases = data_test_cases,
};

kunit_test_suite(data_test_suite);
