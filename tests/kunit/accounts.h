/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accounts without a device, for the tests of limits. After each call everything
 * is checked.
 */
#ifndef _FLEXMEM_TEST_ACCOUNTS_H
#define _FLEXMEM_TEST_ACCOUNTS_H

#include "block/block.h"
#include "tenant/account.h"

struct kunit;

#define UNIT FLEXMEM_ALIGN
#define BYTES FLEXMEM_RESOURCE_BYTES
#define NR_SLOTS FLEXMEM_RESOURCE_REGIONS
#define HANDLES FLEXMEM_RESOURCE_HANDLES
#define FILES FLEXMEM_RESOURCE_FILES

#define NONE FLEXMEM_REASON_NONE
#define REGION_LIMIT FLEXMEM_REASON_REGION_LIMIT
#define CGROUP_LIMIT FLEXMEM_REASON_CGROUP_LIMIT

/* The state of a test; test->priv points to it. */
struct accounts_ctx {
	struct flexmem_accounts accounts;
};

void accounts_check(struct kunit *test);
struct flexmem_account *accounts_open(struct kunit *test, unsigned int uid);
void accounts_close(struct kunit *test, struct flexmem_account *account);
void accounts_close_unchecked(struct flexmem_account *account);
void accounts_remove_region(struct kunit *test, unsigned int slot);
enum flexmem_reason accounts_charge(struct kunit *test,
				    struct flexmem_account *client,
				    unsigned int slot, u64 size);
void accounts_move(struct kunit *test, struct flexmem_account *client,
		   unsigned int slot, u64 size, enum flexmem_use from,
		   enum flexmem_use to);
void accounts_uncharge(struct kunit *test, struct flexmem_account *client,
		       unsigned int slot, u64 size);
void accounts_set(struct kunit *test, enum flexmem_limit_scope scope,
		  unsigned int n, enum flexmem_resource resource, u64 limit);
void accounts_limit_cgroup(struct kunit *test, unsigned int n,
			   enum flexmem_resource resource, u64 limit);
void accounts_set_limit(struct kunit *test, struct flexmem_account *account,
			enum flexmem_resource resource, u64 limit);
enum flexmem_reason accounts_charge_handle(struct kunit *test,
					   struct flexmem_account *client);
int accounts_test_init(struct kunit *test);

#define EXPECT(test, is, want) KUNIT_EXPECT_EQ(test, is, want)

#endif /* _FLEXMEM_TEST_ACCOUNTS_H */
