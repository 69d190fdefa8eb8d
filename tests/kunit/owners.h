/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients that own bytes, for the tests of scrubbing. The fake device remembers
 * the contents of its memory. Each allocation is checked when it is made,
 * filled with its owner's value, and checked again when it is freed. Regions
 * have 12 GiB and fill up one after the other.
 */
#ifndef _FLEXMEM_TEST_OWNERS_H
#define _FLEXMEM_TEST_OWNERS_H

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "alloc/client.h"
#include "compat.h"
#include "fake_device.h"
#include "parts/snapshot.h"
#include "region/table.h"
#include "tenant/owner.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_request request;
	struct flexmem_view view;
	struct list_head opened;
};

/* An open file. */
struct opened {
	struct list_head link;
	struct flexmem_client client;
};

static inline struct ctx *make(struct kunit *test, enum flexmem_mode mode)
{
	struct flexmem_settings settings = fake_settings();
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	INIT_LIST_HEAD(&ctx->opened);
	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	ctx->fake = fake_device_create(test, mode, 8, PLENTY);
	ctx->table = fake_table_create(test, ctx->fake, &settings);
	return ctx;
}

static inline int scrub_test_init(struct kunit *test)
{
	test->priv = make(test, FLEXMEM_MODE_VF);
	return 0;
}

/*
 * Closes a client, unless a test has closed it already: then its table is NULL.
 */
static inline void close_client(void *data)
{
	struct flexmem_client *client = data;

	if (!client->table)
		return;
	list_del(&container_of(client, struct opened, client)->link);
	flexmem_client_fini(client);
	client->table = NULL;
}

static inline struct flexmem_client *open(struct kunit *test, unsigned int uid)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client;
	struct opened *opened;

	opened = kunit_kzalloc(test, sizeof(*opened), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, opened);
	client = &opened->client;
	list_add(&opened->link, &ctx->opened);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(client, ctx->table, fake_uid(uid),
					    fake_cgroup(1), NULL));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, close_client, client));
	return client;
}

static inline struct flexmem_client *
client_of(struct ctx *ctx, const struct flexmem_allocation *allocation)
{
	struct opened *opened;

	list_for_each_entry(opened, &ctx->opened, link)
		if (opened->client.account == allocation->owner)
			break;
	return &opened->client;
}

/* The byte that a file fills its memory with. */
static inline u8 value_of(const struct flexmem_client *client)
{
	return 1 + client->account->id % (FAKE_FOREIGN - 1);
}

/* Whether each byte is @value or 0. If @value is 0, each byte must be 0. */
static inline bool holds_own(struct ctx *ctx,
			     const struct flexmem_allocation *allocation,
			     u8 value)
{
	return fake_data_is_own(ctx->fake, &allocation->chunks[0]->region->mem,
				allocation->chunks[0]->start,
				allocation->chunks[0]->size, value);
}

static inline struct flexmem_allocation *try(struct ctx *ctx,
					     struct flexmem_client *client,
					     u64 size, u32 flags)
{
	return fake_client_prepare(client, size, FLEXMEM_ALIGN, flags,
				   &ctx->request);
}

static inline struct flexmem_allocation *
alloc_flags(struct kunit *test, struct flexmem_client *client, u64 size,
	    u32 flags)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;
	u8 value = value_of(client);

	allocation = try(ctx, client, size, flags);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_ASSERT_TRUE(test,
			  holds_own(ctx, allocation,
				    flags & FLEXMEM_ALLOC_ZEROED ? 0 : value));
	flexmem_client_publish(client, allocation);
	fake_data_fill(ctx->fake, &allocation->chunks[0]->region->mem,
		       allocation->chunks[0]->start, size, value);
	return allocation;
}

static inline struct flexmem_allocation *alloc(struct kunit *test,
					       struct flexmem_client *client,
					       u64 size)
{
	return alloc_flags(test, client, size, 0);
}

static inline void give(struct kunit *test,
			struct flexmem_allocation *allocation)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = client_of(ctx, allocation);

	/* The bytes must still be those that this owner wrote. */
	KUNIT_EXPECT_TRUE(test, fake_data_is(ctx->fake,
					     &allocation->chunks[0]->region->mem,
					     allocation->chunks[0]->start,
					     allocation->chunks[0]->size,
					     value_of(client)));
	allocation = flexmem_client_detach(client, allocation->handle);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_release(client, allocation);
}

/*
 * Bytes scrubbed since the last call. Compares the counters of flexmem and of
 * the device.
 */
static inline u64 scrubbed(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u64 bytes = ctx->fake->scrubbed;

	KUNIT_EXPECT_EQ(test, atomic64_read(&ctx->table->function.scrubbed), bytes);
	ctx->fake->scrubbed = 0;
	atomic64_set(&ctx->table->function.scrubbed, 0);
	return bytes;
}

static inline const struct flexmem_snapshot *sums(struct ctx *ctx)
{
	flexmem_table_snapshot(ctx->table, NULL, &ctx->view);
	return &ctx->view.sum;
}

/*
 * Runs the pending background scrub once, even if that run queues another one.
 */
static inline void scrub_background(struct ctx *ctx)
{
	mod_delayed_work(system_dfl_wq, &ctx->table->scrub_work, 0);
	flush_work(&ctx->table->scrub_work.work);
}

/* Makes two owners' blocks at the start of a region and frees the first. */
static inline void make_dirty(struct kunit *test, struct flexmem_client *client,
			      u64 size)
{
	struct flexmem_allocation *allocation = alloc(test, client, size);

	alloc(test, client, 128);
	give(test, allocation);
	scrubbed(test);
}

#endif /* _FLEXMEM_TEST_OWNERS_H */
