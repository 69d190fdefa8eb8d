// SPDX-License-Identifier: GPL-2.0
/* Accounts without a device: see accounts.h. */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/err.h>

#include "accounts.h"
#include "checks.h"
#include "fake_device.h"
#include "owner.h"

void accounts_check(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	const char *wrong = checks_of_accounts(&ctx->accounts);

	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
}

/* The last of the actions, so that all files have been closed. */
static void accounts_teardown(void *data)
{
	struct kunit *test = kunit_get_current_test();
	struct accounts_ctx *ctx = data;

	accounts_check(test);
	KUNIT_EXPECT_EQ(test, ctx->accounts.nr_clients, 0);
	KUNIT_EXPECT_EQ(test, ctx->accounts.owned, 0);
	KUNIT_EXPECT_EQ(test, ctx->accounts.orphaned, 0);
	flexmem_accounts_fini(&ctx->accounts);
}

int accounts_test_init(struct kunit *test)
{
	struct accounts_ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return -ENOMEM;
	flexmem_accounts_init(&ctx->accounts);
	test->priv = ctx;
	return kunit_add_action_or_reset(test, accounts_teardown, ctx);
}

static void close_file(void *data)
{
	struct flexmem_account *account = data;
	unsigned int slot;

	/*
	 * Charges that the test has left in the account, also those of other
	 * files.
	 */
	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++)
		if (account->in[slot].blocks)
			flexmem_accounts_remove_region(account->accounts, slot);
	while (account->used[HANDLES])
		flexmem_uncharge_handle(account->accounts, account);
	flexmem_owner_close(account);
}

struct flexmem_account *accounts_open(struct kunit *test, unsigned int uid)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *account;

	account = flexmem_owner_open(&ctx->accounts, fake_uid(uid), 1, NULL);
	KUNIT_ASSERT_NOT_NULL(test, account);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, close_file, account));
	return account;
}

/*
 * For tests that close many accounts: checking everything each time takes long.
 */
void accounts_close_unchecked(struct flexmem_account *account)
{
	kunit_release_action(kunit_get_current_test(), close_file, account);
}

void accounts_close(struct kunit *test, struct flexmem_account *account)
{
	accounts_close_unchecked(account);
	accounts_check(test);
}

void accounts_remove_region(struct kunit *test, unsigned int slot)
{
	struct accounts_ctx *ctx = test->priv;

	flexmem_accounts_remove_region(&ctx->accounts, slot);
	accounts_check(test);
}

enum flexmem_reason accounts_charge(struct kunit *test,
				    struct flexmem_account *client,
				    unsigned int slot, u64 size)
{
	struct accounts_ctx *ctx = test->priv;
	enum flexmem_reason reason;

	reason = flexmem_charge(&ctx->accounts, client, slot, size);
	accounts_check(test);
	return reason;
}

void accounts_uncharge(struct kunit *test, struct flexmem_account *client,
		       unsigned int slot, u64 size)
{
	struct accounts_ctx *ctx = test->priv;

	flexmem_uncharge(&ctx->accounts, client, slot, size, false);
	accounts_check(test);
}

enum flexmem_reason accounts_refuses_region(struct kunit *test,
					    struct flexmem_account *client)
{
	struct accounts_ctx *ctx = test->priv;

	return flexmem_account_refuses(&ctx->accounts, client, UNIT, 1);
}

static int set_limit(struct kunit *test, struct flexmem_quota *quota,
		     kuid_t uid)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *account;

	account = flexmem_quota_find(&ctx->accounts, quota, uid);
	if (!IS_ERR(account)) {
		KUNIT_EXPECT_EQ(test, quota->out_used,
				account->used[quota->resource]);
		KUNIT_EXPECT_EQ(test, quota->out_limit, quota->limit);
		flexmem_quota_set(account, quota);
		flexmem_owner_put(account);
	}
	accounts_check(test);
	return PTR_ERR_OR_ZERO(account);
}

/* Sets a limit of bytes for an owner that need not exist. */
int accounts_limit_absent(struct kunit *test, enum flexmem_owner_kind kind,
			  u64 id, unsigned int uid)
{
	struct flexmem_quota quota = {
		.kind = kind,
		.resource = BYTES,
		.id = id,
		.limit = GIB,
	};

	return set_limit(test, &quota, fake_uid(uid));
}

int accounts_set_limit(struct kunit *test, struct flexmem_account *account,
		       enum flexmem_resource resource, u64 limit)
{
	struct flexmem_quota quota = {
		.kind = account->kind,
		.resource = resource,
		.id = account->kind == FLEXMEM_OWNER_CLIENT ? account->id : 0,
		.limit = limit,
	};

	return set_limit(test, &quota, account->uid);
}

enum flexmem_reason accounts_charge_handle(struct kunit *test,
					   struct flexmem_account *client)
{
	struct accounts_ctx *ctx = test->priv;
	enum flexmem_reason reason;

	reason = flexmem_charge_handle(&ctx->accounts, client, UINT_MAX);
	accounts_check(test);
	return reason;
}
