// SPDX-License-Identifier: GPL-2.0
/* Accounts without a device: see accounts.h. */

#include <kunit/test-bug.h>
#include <kunit/test.h>

#include "accounts.h"
#include "checks.h"
#include "fake_device.h"
#include "tenant/owner.h"

void accounts_check(struct kunit *test)
{
	struct accounts_ctx *ctx = test->priv;
	const char *wrong = checks_of_accounts(&ctx->accounts);

	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
}

/* Runs as the last cleanup action, when all files have been closed. */
static void accounts_teardown(void *data)
{
	struct kunit *test = kunit_get_current_test();
	struct accounts_ctx *ctx = data;

	accounts_check(test);
	KUNIT_EXPECT_EQ(test, ctx->accounts.nr_clients, 0);
	KUNIT_EXPECT_EQ(test, ctx->accounts.bytes[FLEXMEM_USE_OWNED], 0);
	KUNIT_EXPECT_EQ(test, ctx->accounts.bytes[FLEXMEM_USE_ORPHANED], 0);
	flexmem_accounts_fini(&ctx->accounts);
}

int accounts_test_init(struct kunit *test)
{
	struct accounts_ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return -ENOMEM;
	flexmem_accounts_init(&ctx->accounts, 2);
	test->priv = ctx;
	return kunit_add_action_or_reset(test, accounts_teardown, ctx);
}

static void close_file(void *data)
{
	struct flexmem_account *account = data;
	unsigned int slot;

	/*
	 * The test may have left charges. Removes each region in which this
	 * file has blocks. That also drops other files' charges in the region.
	 */
	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++)
		if (account->in[slot].bytes)
			flexmem_accounts_remove_region(account->accounts, slot);
	while (account->used[HANDLES])
		flexmem_uncharge(account, 0, 1);
	flexmem_owner_close(account);
}

struct flexmem_account *accounts_open(struct kunit *test, unsigned int uid)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *account;

	account = flexmem_owner_open(&ctx->accounts, fake_uid(uid),
				     fake_cgroup(uid % 12), NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, account);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, close_file, account));
	return account;
}

/*
 * Closes an account without a check, for tests that close many: a check of
 * everything after each close takes long.
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
	enum flexmem_reason reason;

	reason = flexmem_charge(client, size, 0, NULL);
	if (!reason) {
		reason = flexmem_account_take(client, slot, size, NULL);
		if (reason)
			flexmem_uncharge(client, size, 0);
	}
	accounts_check(test);
	return reason;
}

void accounts_move(struct kunit *test, struct flexmem_account *client,
		   unsigned int slot, u64 size, enum flexmem_use from,
		   enum flexmem_use to)
{
	flexmem_account_move(client->accounts, client, slot, size, from, to, 0);
	accounts_check(test);
}

void accounts_uncharge(struct kunit *test, struct flexmem_account *client,
		       unsigned int slot, u64 size)
{
	accounts_move(test, client, slot, size,
		      FLEXMEM_USE_OWNED, FLEXMEM_USE_FREE);
}

/*
 * Sets a limit of cgroup @n. The default limit (scope DEFAULT) belongs to no
 * cgroup.
 */
void accounts_set(struct kunit *test, enum flexmem_limit_scope scope,
		  unsigned int n, enum flexmem_resource resource, u64 limit)
{
	struct accounts_ctx *ctx = test->priv;
	struct flexmem_account *account = NULL;
	const struct flexmem_resource_limit cmd = {
		.scope = scope,
		.resource = resource,
		.limit = limit,
	};

	if (scope != FLEXMEM_SCOPE_DEFAULT) {
		account = flexmem_owner_of_cgroup(&ctx->accounts,
						  fake_cgroup(n));
		KUNIT_ASSERT_NOT_NULL(test, account);
	}
	flexmem_limit_set(&ctx->accounts, account, &cmd);
	if (account)
		flexmem_owner_put(account);
	accounts_check(test);
}

/* Sets a limit of cgroup @n, which may have no account yet. */
void accounts_limit_cgroup(struct kunit *test, unsigned int n,
			   enum flexmem_resource resource, u64 limit)
{
	accounts_set(test, FLEXMEM_SCOPE_CGROUP, n, resource, limit);
}

/* Sets a limit of a cgroup. @account: the cgroup's, above that of a client. */
void accounts_set_limit(struct kunit *test, struct flexmem_account *account,
			enum flexmem_resource resource, u64 limit)
{
	const struct flexmem_resource_limit cmd = {
		.resource = resource,
		.limit = limit,
	};

	flexmem_limit_set(account->accounts, account, &cmd);
	accounts_check(test);
}

enum flexmem_reason accounts_charge_handle(struct kunit *test,
					   struct flexmem_account *client)
{
	enum flexmem_reason reason;

	reason = flexmem_charge(client, 0, 1, NULL);
	accounts_check(test);
	return reason;
}
