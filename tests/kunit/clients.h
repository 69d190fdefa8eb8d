/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client of a region table and a fake device, for the tests of clients.
 * Unless a test says otherwise, allocations fill one region before the next one
 * is acquired, and a client has at most 5 handles.
 */
#ifndef _FLEXMEM_TEST_CLIENTS_H
#define _FLEXMEM_TEST_CLIENTS_H

#include <kunit/test.h>
#include <linux/err.h>

#include "alloc/client.h"
#include "checks.h"
#include "fake_device.h"
#include "parts/snapshot.h"
#include "region/table.h"

#define PLENTY (1024 * GIB)

struct ctx {
	struct fake_device *fake;
	struct flexmem_table *table;
	struct flexmem_client *client;
	struct flexmem_request request;
	struct flexmem_view snapshot;
};

static inline struct ctx *make(struct kunit *test, enum flexmem_mode mode,
			       const struct flexmem_settings *settings)
{
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, mode, 8, PLENTY);
	ctx->table = fake_table_create(test, ctx->fake, settings);
	ctx->client = fake_client_open(test, ctx->table, 1);
	return ctx;
}

static inline int client_test_init(struct kunit *test)
{
	struct flexmem_settings settings = fake_settings();

	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	test->priv = make(test, FLEXMEM_MODE_VF, &settings);
	return 0;
}

static inline u64 nr_handles(const struct flexmem_client *client)
{
	return client->account->used[FLEXMEM_RESOURCE_HANDLES];
}

static inline void check(struct kunit *test, struct flexmem_client *client)
{
	const char *wrong = checks_of_client(client);

	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
}

static inline struct flexmem_allocation *try(struct flexmem_client *client,
					     u64 size,
					     struct flexmem_request *request)
{
	return fake_client_prepare(client, size, FLEXMEM_ALIGN, 0, request);
}

static inline struct flexmem_allocation *prepare(struct kunit *test,
						 struct flexmem_client *client,
						 u64 size)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation = try(client, size, &ctx->request);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	check(test, client);
	return allocation;
}

static inline u32 alloc(struct kunit *test, struct flexmem_client *client,
			u64 size)
{
	struct flexmem_allocation *allocation = prepare(test, client, size);

	flexmem_client_publish(client, allocation);
	check(test, client);
	return allocation->handle;
}

static inline int free_address(struct flexmem_client *client, u64 region_id,
			       u64 offset)
{
	const struct flexmem_address address = {
		.region_id = region_id,
		.offset = offset,
	};
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_detach_address(client, &address);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	flexmem_client_release(client, allocation);
	return 0;
}

static inline u64 used_bytes(struct ctx *ctx)
{
	u64 used = 0;
	unsigned int i;

	flexmem_table_snapshot(ctx->table, NULL, &ctx->snapshot);
	for (i = 0; i < ctx->snapshot.nr; i++)
		used += ctx->snapshot.region[i].total -
			ctx->snapshot.region[i].free;
	return used;
}

#endif /* _FLEXMEM_TEST_CLIENTS_H */
