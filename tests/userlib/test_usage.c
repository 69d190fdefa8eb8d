// SPDX-License-Identifier: GPL-2.0
/* Memory by owner: usage, limits, and failures that limits cause. */
#include "test.h"

static struct flexmem_allocated get(struct flexmem_device *device,
				    uint64_t length)
{
	struct flexmem_allocated a;

	flexmem_device_alloc(device, length, 0, 0, &a, sizeof(a));
	return a;
}

static struct flexmem_device *open_as(uint32_t uid)
{
	fake.uid = uid;
	return open_device();
}

static void set_limit(struct flexmem_device *device, uint64_t cgroup,
		      uint32_t charge, uint64_t limit)
{
	assert_int_equal(flexmem_device_set_limit(device, FLEXMEM_FOR_CGROUP,
						  cgroup, charge, limit, NULL,
						  0), 0);
}

static int ask(struct flexmem_device *device, struct flexmem_usage *usage,
	       struct flexmem_account_state **accounts)
{
	return flexmem_device_usage(device, usage, sizeof(*usage), NULL, 0,
				    accounts, sizeof(**accounts));
}

static void usage_sums(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_usage usage;

	(void)state;
	fake.orphaned = 4096;
	fake.quarantined = MIB;
	fake.scrubbed = 7 * GIB;
	get(device, 12 * GIB);
	get(device, GIB);
	memset(&usage, 0xff, sizeof(usage));
	assert_int_equal(flexmem_device_usage(device, &usage, sizeof(usage),
					      NULL, 0, NULL, 0), 0);
	assert_int_equal(usage.regions, 2);
	assert_int_equal(usage.accounts, 2);
	assert_int_equal(usage.capacity, 64 * GIB);
	assert_int_equal(usage.total, 24 * GIB);
	assert_int_equal(usage.free, 11 * GIB - 4096 - MIB);
	assert_int_equal(usage.owned, 13 * GIB);
	assert_int_equal(usage.orphaned, 4096);
	assert_int_equal(usage.reserved, 0);
	assert_int_equal(usage.quarantined, MIB);
	assert_int_equal(usage.scrubbed, 7 * GIB);
	assert_int_equal(usage.clients, 1);
	assert_int_equal(usage.resets, 3);
	assert_int_equal(usage.timeouts, 7);
	assert_int_equal(usage.generation, 3);
	/* A snapshot of sums without lists needs one call. */
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 1);
	flexmem_device_close(device);
}

static void usage_lists(void **state)
{
	struct flexmem_device *first = open_as(1000);
	struct flexmem_device *second = open_as(500);
	struct flexmem_account_state *accounts;
	struct flexmem_region_state *regions;
	struct flexmem_usage usage;

	(void)state;
	get(first, 12 * GIB);
	get(second, 1000);
	get(second, 1000);
	fake.removed = 1000;
	fake.leaving = 4096;
	fake.waits_ms = 1500;
	set_limit(first, 500, FLEXMEM_CHARGE_REGIONS, 5);
	assert_int_equal(flexmem_device_usage(first, &usage, sizeof(usage),
					      &regions, sizeof(*regions),
					      &accounts, sizeof(*accounts)), 0);
	assert_int_equal(usage.regions, 2);
	assert_int_equal(regions[1].slot, 1);
	assert_int_equal(regions[1].free, 12 * GIB - 2048);
	assert_int_equal(usage.accounts, 4);
	assert_int_equal(accounts[0].kind, FLEXMEM_ACCOUNT_CGROUP);
	assert_int_equal(accounts[0].id, 500);
	assert_int_equal(accounts[0].uid, 0);
	assert_int_equal(accounts[0].pid, 0);
	assert_int_equal(accounts[1].id, 1000);
	assert_int_equal(accounts[1].bytes, 12 * GIB);
	assert_int_equal(accounts[2].leaving, 4096);
	assert_int_equal(accounts[2].waits_ms, 1500);
	assert_int_equal(accounts[3].leaving, 0);
	assert_int_equal(accounts[3].kind, FLEXMEM_ACCOUNT_CLIENT);
	assert_int_equal(accounts[0].removed, 0);
	assert_int_equal(accounts[1].removed, 1);
	assert_int_equal(accounts[3].removed, 0);
	assert_int_equal(accounts[1].files, 1);
	assert_int_equal(accounts[3].files, 1);
	assert_int_equal(accounts[3].id, 2);
	assert_int_equal(accounts[3].uid, 500);
	assert_int_equal(accounts[3].pid, 5000000);
	assert_int_equal(accounts[3].bytes, 2048);
	assert_int_equal(accounts[3].peak, 2048);
	assert_int_equal(accounts[3].slots, 1);
	assert_int_equal(accounts[3].handles, 2);
	assert_true(accounts[0].limit[FLEXMEM_CHARGE_BYTES] ==
		    FLEXMEM_UNLIMITED);
	assert_int_equal(accounts[0].limit[FLEXMEM_CHARGE_REGIONS], 5);
	assert_true(accounts[3].limit[FLEXMEM_CHARGE_REGIONS] ==
		    FLEXMEM_UNLIMITED);
	flexmem_regions_free(regions);
	flexmem_accounts_free(accounts);
	flexmem_accounts_free(NULL);
	flexmem_device_close(first);
	flexmem_device_close(second);
}

static void usage_of_an_empty_device(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *regions = (void *)1;
	struct flexmem_usage usage;

	(void)state;
	assert_int_equal(flexmem_device_usage(device, &usage, sizeof(usage),
					      &regions, sizeof(*regions), NULL,
					      0), 0);
	assert_int_equal(usage.regions, 0);
	assert_int_equal(usage.total, 0);
	assert_null(regions);
	flexmem_device_close(device);
}

static void strangers_are_not_shown(void **state)
{
	struct flexmem_device *first = open_as(1000);
	struct flexmem_device *second = open_as(500);
	struct flexmem_account_state *accounts;
	struct flexmem_usage usage;

	(void)state;
	fake.admin = false;
	assert_int_equal(ask(second, &usage, &accounts), 0);
	assert_int_equal(usage.accounts, 2);
	assert_int_equal(usage.clients, 2);
	assert_int_equal(accounts[0].id, 500);
	assert_int_equal(accounts[1].id, 2);
	flexmem_accounts_free(accounts);
	flexmem_device_close(first);
	flexmem_device_close(second);
}

/* Regions and users that appear between two calls are listed too. */
static void usage_grows(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_account_state *accounts;
	struct flexmem_region_state *regions;
	struct flexmem_usage usage;

	(void)state;
	get(device, 1);
	fake.grow = 3;
	fake.grow_users = 2;
	assert_int_equal(flexmem_device_usage(device, &usage, sizeof(usage),
					      &regions, sizeof(*regions),
					      &accounts, sizeof(*accounts)), 0);
	assert_int_equal(usage.regions, 4);
	assert_int_equal(regions[3].total, 4 * GIB);
	assert_int_equal(usage.accounts, 4);
	assert_int_equal(accounts[2].id, 2002);
	assert_int_equal(accounts[3].kind, FLEXMEM_ACCOUNT_CLIENT);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 5);
	flexmem_regions_free(regions);
	flexmem_accounts_free(accounts);
	flexmem_device_close(device);
}

static void usage_grows_for_ever(void **state)
{
	struct flexmem_account_state *accounts = (void *)1;
	struct flexmem_device *device = open_device();
	struct flexmem_usage usage = { .total = 7 };

	(void)state;
	fake.always_too_small = true;
	assert_int_equal(ask(device, &usage, &accounts), -EAGAIN);
	assert_ptr_equal(accounts, (void *)1);
	assert_int_equal(usage.total, 7);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 16);
	flexmem_device_close(device);
}

/* If a later call fails, nothing leaks and the outputs stay unchanged. */
static void usage_fails(void **state)
{
	struct flexmem_account_state *accounts = (void *)1;
	struct flexmem_device *device = open_device();
	struct flexmem_usage usage = { .total = 7 };

	(void)state;
	get(device, 1);
	inject(FLEXMEM_CMD_SNAPSHOT, 2, ENODEV);
	assert_int_equal(ask(device, &usage, &accounts), -ENODEV);
	assert_ptr_equal(accounts, (void *)1);
	assert_int_equal(usage.total, 7);
	flexmem_device_close(device);
}

static void later_structs(void **state)
{
	struct later {
		struct flexmem_account_state now;
		uint64_t later;
	} *list;
	struct {
		struct flexmem_usage now;
		uint64_t later;
	} sums;
	struct flexmem_device *device = open_device();
	struct flexmem_account_state *accounts;

	(void)state;
	memset(&sums, 0xff, sizeof(sums));
	assert_int_equal(flexmem_device_usage(device, &sums.now, sizeof(sums),
					      NULL, 0, &accounts,
					      sizeof(struct later)), 0);
	list = (struct later *)accounts;
	assert_int_equal(sums.later, 0);
	assert_int_equal(list[1].now.id, 1);
	assert_int_equal(list[1].later, 0);
	flexmem_accounts_free(accounts);
	flexmem_device_close(device);
}

static void own_limits(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other = open_as(2000);
	struct flexmem_allowance a;

	(void)state;
	fake.orphaned = 4096;
	get(device, 1000);
	set_limit(device, 1000, FLEXMEM_CHARGE_BYTES, 8 * GIB);
	set_limit(device, 1000, FLEXMEM_CHARGE_FILES, 3);
	assert_int_equal(flexmem_device_get_limit(device, FLEXMEM_CHARGE_BYTES,
						  &a, sizeof(a)), 0);
	assert_int_equal(a.limit, 8 * GIB);
	assert_int_equal(a.used, 1024 + 4096);
	assert_int_equal(flexmem_device_get_limit(device, FLEXMEM_CHARGE_FILES,
						  &a, sizeof(a)), 0);
	assert_int_equal(a.limit, 3);
	assert_int_equal(a.used, 1);
	assert_int_equal(flexmem_device_get_limit(device,
						  FLEXMEM_CHARGE_HANDLES, &a,
						  sizeof(a)), 0);
	assert_true(a.limit == FLEXMEM_UNLIMITED);
	assert_int_equal(flexmem_device_get_limit(device, FLEXMEM_CHARGES, &a,
						  sizeof(a)), -EINVAL);
	flexmem_device_close(device);
	flexmem_device_close(other);
}

/* Zero and "no limit" are valid limits. */
static void sets_limits(void **state)
{
	const uint64_t limits[] = { 8 * GIB, FLEXMEM_UNLIMITED, 0 };
	struct flexmem_device *device = open_device();
	struct flexmem_allowance a;
	size_t i;

	(void)state;
	get(device, 1000);
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		assert_int_equal(flexmem_device_set_limit(device,
							  FLEXMEM_FOR_CGROUP,
							  1000,
							  FLEXMEM_CHARGE_BYTES,
							  limits[i], &a,
							  sizeof(a)), 0);
		assert_true(a.limit == limits[i]);
		assert_int_equal(a.used, 1024);
	}
	assert_int_equal(flexmem_device_set_limit(device, FLEXMEM_FOR_DEFAULT,
						  0, FLEXMEM_CHARGE_BYTES, 6,
						  &a, sizeof(a)), 0);
	assert_int_equal(fake.default_limit, 6);
	assert_int_equal(a.used, 0);
	fake.limit_for_all = true;
	assert_int_equal(flexmem_device_set_limit(device,
						  FLEXMEM_FOR_DEFAULT |
						  FLEXMEM_FOR_ALL_FUNCTIONS,
						  0, FLEXMEM_CHARGE_BYTES, 7,
						  NULL, 0), 0);
	assert_int_equal(fake.default_limit, 7);
	flexmem_device_close(device);
}

static void set_limit_refused(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allowance a = { .used = 7 };

	(void)state;
	assert_int_equal(flexmem_device_set_limit(device, FLEXMEM_FOR_CGROUP,
						  77, FLEXMEM_CHARGES, 5, &a,
						  sizeof(a)), -EINVAL);
	assert_int_equal(flexmem_device_set_limit(device, 3, 77,
						  FLEXMEM_CHARGE_BYTES, 5, &a,
						  sizeof(a)), -EINVAL);
	assert_int_equal(flexmem_device_set_limit(device, FLEXMEM_FOR_CGROUP,
						  99, FLEXMEM_CHARGE_REGIONS, 5,
						  &a, sizeof(a)), -ENOENT);
	fake.admin = false;
	assert_int_equal(flexmem_device_set_limit(device, FLEXMEM_FOR_CGROUP,
						  77, FLEXMEM_CHARGE_BYTES, 5,
						  &a, sizeof(a)), -EPERM);
	assert_int_equal(a.used, 7);
	flexmem_device_close(device);
}

static const struct flexmem_account_state *
cgroup_of(const struct flexmem_account_state *accounts, uint32_t count,
	  uint64_t id)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (accounts[i].kind == FLEXMEM_ACCOUNT_CGROUP &&
		    accounts[i].id == id)
			return &accounts[i];
	fail_msg("no account of the cgroup");
	return NULL;
}

static void reserves(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_account_state *accounts;
	struct flexmem_usage usage;
	uint32_t limit = 99;

	(void)state;
	assert_int_equal(flexmem_device_reserve(device, 77, 8 * GIB, 3, &limit),
			 0);
	assert_int_equal(limit, FLEXMEM_LIMIT_NONE);
	assert_int_equal(flexmem_device_usage(device, &usage, sizeof(usage),
					      NULL, 0, &accounts,
					      sizeof(*accounts)), 0);
	assert_int_equal(cgroup_of(accounts, usage.accounts, 77)->reservation,
			 3);
	assert_int_equal(cgroup_of(accounts, usage.accounts, 77)->reserved, 3);
	flexmem_accounts_free(accounts);
	assert_int_equal(flexmem_device_reserve(device, 77, 8 * GIB, 5, &limit),
			 -ENOMEM);
	assert_int_equal(limit, FLEXMEM_LIMIT_CAPACITY);
	assert_int_equal(flexmem_device_reserve(device, 77, 0, 0, NULL), 0);
	assert_int_equal(flexmem_device_reserve(device, 77, 1, 1, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_reserve(device, 99, 8 * GIB, 1, NULL),
			 -ENOENT);
	fake.admin = false;
	assert_int_equal(flexmem_device_reserve(device, 77, 8 * GIB, 1, NULL),
			 -EPERM);
	assert_int_equal(flexmem_device_reserve(NULL, 77, 8 * GIB, 1, NULL),
			 -EINVAL);
	flexmem_device_close(device);
}

static void expect_text(const struct flexmem_allocated *a, const char *part)
{
	char text[512];

	assert_int_equal(flexmem_error_text(a->error, &a->failure,
					    sizeof(a->failure), text,
					    sizeof(text)), 0);
	if (!strstr(text, part))
		fail_msg("no '%s' in '%s'", part, text);
}

static void limit_of_bytes(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	get(device, GIB);
	set_limit(device, 1000, FLEXMEM_CHARGE_BYTES,
		  2 * GIB);
	a = get(device, GIB + 1);
	assert_int_equal(a.error, -ENOMEM);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CGROUP);
	assert_int_equal(a.failure.charge, FLEXMEM_CHARGE_BYTES);
	assert_int_equal(a.failure.quota, 2 * GIB);
	assert_int_equal(a.failure.quota_used, GIB);
	assert_int_equal(a.failure.own_used, GIB);
	assert_int_equal(a.failure.quota_left, GIB);
	assert_int_equal(a.failure.quota_cgroup, 1000);
	expect_text(&a, "cgroup limit (1.0 GiB of 2.0 GiB used: see sudo flexmem owners)");
	expect_text(&a, "largest piece 11.0 GiB; own 1.0 GiB can be freed");
	assert_int_equal(get(device, GIB).error, 0);
	flexmem_device_close(device);
}

/* The failure names the limit that was reached. */
static void cgroup_limits(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other = open_device();
	struct flexmem_allocated a;

	(void)state;
	get(device, 12 * GIB);
	get(device, 1000);
	set_limit(device, 1000, FLEXMEM_CHARGE_HANDLES,
		  2);
	/* A limit that was not reached is not reported. */
	set_limit(device, 1000, FLEXMEM_CHARGE_BYTES,
		  20 * GIB);
	a = get(other, 1);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CGROUP);
	assert_int_equal(a.failure.charge, FLEXMEM_CHARGE_HANDLES);
	expect_text(&a, "cgroup limit (2 of 2 allocations used: see sudo flexmem owners)");
	/*
	 * All memory belongs to another file, so the caller itself could free
	 * none.
	 */
	assert_int_equal(a.failure.own_used, 0);

	set_limit(device, 1000, FLEXMEM_CHARGE_HANDLES,
		  FLEXMEM_UNLIMITED);
	set_limit(device, 1000, FLEXMEM_CHARGE_REGIONS, 2);
	a = get(other, 1);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CGROUP_REGIONS);
	assert_int_equal(a.failure.charge, FLEXMEM_CHARGE_REGIONS);
	/* Both regions are another file's, which could free them. */
	assert_int_equal(a.failure.quota_own, 0);
	assert_int_equal(a.failure.quota_flags, FLEXMEM_QUOTA_SHARED);
	expect_text(&a, "(2 of 2 regions used: see sudo flexmem owners)");
	flexmem_device_close(device);
	flexmem_device_close(other);
}

/* What other files are charged is not the caller's, and what it freed is. */
static void charges_of_one_file(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other = open_device();
	struct flexmem_allocated a;

	(void)state;
	get(device, GIB);
	get(other, GIB / 2);
	set_limit(device, 1000, FLEXMEM_CHARGE_BYTES, 2 * GIB);
	a = get(device, GIB);
	assert_int_equal(a.failure.quota_used, GIB + GIB / 2);
	assert_int_equal(a.failure.quota_own, GIB);
	a = get(other, GIB);
	assert_int_equal(a.failure.quota_own, GIB / 2);
	fake.leaving = MIB;
	a = get(device, GIB);
	assert_int_equal(a.failure.quota_own, GIB + MIB);
	flexmem_device_close(device);
	flexmem_device_close(other);
}

/* Of a limit outside the cgroup namespace the text tells what is left. */
static void hidden_limits(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other;
	struct flexmem_allocated a;

	(void)state;
	get(device, GIB);
	set_limit(device, 1000, FLEXMEM_CHARGE_BYTES, 3 * GIB);
	fake.hides_limit = true;
	a = get(device, 4 * GIB);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CGROUP);
	assert_int_equal(a.failure.charge, FLEXMEM_CHARGE_BYTES);
	assert_true(a.failure.quota == FLEXMEM_UNLIMITED);
	assert_int_equal(a.failure.quota_used, 0);
	assert_int_equal(a.failure.quota_cgroup, 0);
	assert_int_equal(a.failure.quota_left, 2 * GIB);
	assert_int_equal(a.failure.quota_own, GIB);
	assert_int_equal(a.failure.quota_flags, 0);
	expect_text(&a, "memory: a limit above this container (2.0 GiB left: see sudo flexmem owners); asked 4.0 GiB");
	set_limit(device, 1000, FLEXMEM_CHARGE_HANDLES, 1);
	a = get(device, GIB);
	assert_int_equal(a.failure.charge, FLEXMEM_CHARGE_HANDLES);
	expect_text(&a, "(0 allocations left: ");
	set_limit(device, 1000, FLEXMEM_CHARGE_HANDLES, 9);
	set_limit(device, 1000, FLEXMEM_CHARGE_REGIONS, 0);
	a = get(device, GIB);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CGROUP_REGIONS);
	expect_text(&a, "(0 regions left: ");
	other = open_device();
	set_limit(device, 1000, FLEXMEM_CHARGE_REGIONS, 1);
	a = get(other, GIB);
	assert_int_equal(a.failure.quota_flags, FLEXMEM_QUOTA_SHARED);
	flexmem_device_close(other);
	flexmem_device_close(device);
}

/* An older driver does not tell which limit it was. */
static void limit_is_not_told(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	set_limit(device, 1000, FLEXMEM_CHARGE_BYTES, 1);
	fake.tells_no_limit = true;
	a = get(device, GIB);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CGROUP);
	assert_true(a.failure.quota == FLEXMEM_UNLIMITED);
	assert_true(a.failure.quota_left == FLEXMEM_UNLIMITED);
	expect_text(&a, "memory: cgroup limit; asked 1.0 GiB");
	flexmem_device_close(device);
}

/* Each failure of a batch has the figures of its own moment. */
static void limits_in_a_batch(void **state)
{
	enum { MANY = 50 };
	struct flexmem_device *device = open_device();
	struct flexmem_allocated results[MANY];
	struct flexmem_alloc_request requests[MANY];
	int i;

	(void)state;
	memset(requests, 0, sizeof(requests));
	for (i = 0; i < MANY; i++)
		requests[i].length = GIB;
	set_limit(device, 1000, FLEXMEM_CHARGE_BYTES,
		  3 * GIB);
	requests[MANY - 1].length = 0;
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results, sizeof(results[0]),
						    MANY), 0);
	assert_int_equal(results[2].error, 0);
	for (i = 3; i < MANY - 1; i++) {
		assert_int_equal(results[i].failure.limit,
				 FLEXMEM_LIMIT_CGROUP);
		assert_int_equal(results[i].failure.quota, 3 * GIB);
		assert_int_equal(results[i].failure.quota_used, 3 * GIB);
		assert_int_equal(results[i].failure.quota_own, 3 * GIB);
		assert_int_equal(results[i].failure.own_used, 3 * GIB);
	}
	assert_int_equal(results[MANY - 1].error, -EINVAL);
	assert_int_equal(results[MANY - 1].failure.own_used, 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 0);
	flexmem_device_close(device);
}

/*
 * Version 0.1 had a shorter struct. The library must not write beyond its end.
 */
static void older_allocation(void **state)
{
	const size_t old = offsetof(struct flexmem_allocated,
				    failure.own_used);
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	get(device, GIB);
	memset(&a, 0x77, sizeof(a));
	assert_int_equal(flexmem_device_alloc(device, 100 * GIB, 0, 0, &a, old),
			 -ENOMEM);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_REGION_SIZE);
	assert_int_equal(a.failure.max_region, 12 * GIB);
	assert_int_equal(a.failure.own_used, UINT64_C(0x7777777777777777));
	flexmem_device_close(device);
}

static void nulls(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_account_state *accounts;
	struct flexmem_region_state *regions;
	struct flexmem_allowance a;
	struct flexmem_usage u;

	(void)state;
	assert_int_equal(flexmem_device_usage(NULL, &u, sizeof(u), NULL, 0,
					      NULL, 0), -EINVAL);
	assert_int_equal(flexmem_device_usage(device, NULL, sizeof(u), NULL, 0,
					      NULL, 0), -EINVAL);
	/* The struct ended with @generation in the library's first version. */
	assert_int_equal(flexmem_device_usage(device, &u,
					      offsetof(struct flexmem_usage,
						       used_program) - 1,
					      NULL, 0, NULL, 0), -EINVAL);
	assert_int_equal(flexmem_device_usage(device, &u,
					      offsetof(struct flexmem_usage,
						       used_program),
					      NULL, 0, NULL, 0), 0);
	assert_int_equal(flexmem_device_usage(device, &u, sizeof(u), &regions,
					      8, NULL, 0), -EINVAL);
	assert_int_equal(flexmem_device_usage(device, &u, sizeof(u), NULL, 0,
					      &accounts, 8), -EINVAL);
	assert_int_equal(flexmem_device_get_limit(NULL, 0, &a, sizeof(a)),
			 -EINVAL);
	assert_int_equal(flexmem_device_get_limit(device, 0, NULL, sizeof(a)),
			 -EINVAL);
	assert_int_equal(flexmem_device_get_limit(device, 0, &a, 8), -EINVAL);
	assert_int_equal(flexmem_device_set_limit(NULL, 0, 1, 0, 1, NULL, 0),
			 -EINVAL);
	assert_int_equal(flexmem_device_set_limit(device, 0, 1, 0, 1, &a, 8),
			 -EINVAL);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SET_LIMIT], 0);
	flexmem_device_close(device);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(usage_sums),
		TEST(usage_lists),
		TEST(usage_of_an_empty_device),
		TEST(strangers_are_not_shown),
		TEST(usage_grows),
		TEST(usage_grows_for_ever),
		TEST(usage_fails),
		TEST(later_structs),
		TEST(own_limits),
		TEST(sets_limits),
		TEST(set_limit_refused),
		TEST(reserves),
		TEST(limit_of_bytes),
		TEST(cgroup_limits),
		TEST(charges_of_one_file),
		TEST(hidden_limits),
		TEST(limit_is_not_told),
		TEST(limits_in_a_batch),
		TEST(older_allocation),
		TEST(nulls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
