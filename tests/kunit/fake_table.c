// SPDX-License-Identifier: GPL-2.0
/* Tables on the fake device. The end of a test frees them. */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "block/spare.h"
#include "checks.h"
#include "fake_device.h"
#include "parts/snapshot.h"
#include "tenant/owner.h"

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of the random tests; 0 (default): another one each time");

/**
 * fake_seed - the seed of all random tests
 *
 * Return: the seed, the same until the module is unloaded.
 */
u32 fake_seed(void)
{
	if (!seed)
		seed = get_random_u32();
	return seed;
}

/**
 * fake_uid - uid of a test user
 * @n: number of the user
 *
 * Return: its uid.
 */
kuid_t fake_uid(unsigned int n)
{
	return KUIDT_INIT(1000 + n);
}

/*
 * The parent of each cgroup. A cgroup without an entry here is a child of the
 * root, 0.
 */
static const u8 fake_parents[FAKE_CGROUPS] = { [12] = 1, [13] = 12, [14] = 13 };

/**
 * fake_cgroup - a test cgroup, without a directory
 * @n: number of the cgroup, less than FAKE_CGROUPS. 0 is the root. 12 is below
 *	1, 13 below 12, and 14 below 13. All others are below the root
 *
 * Return: the cgroup, which is always there; NULL in a kernel without cgroups.
 */
struct cgroup *fake_cgroup(unsigned int n)
{
#ifdef CONFIG_CGROUPS
	static union {
		struct cgroup cgroup;
		u8 room[sizeof(struct cgroup) + 5 * sizeof(struct cgroup *)];
	} cgroups[FAKE_CGROUPS];
	static struct kernfs_node nodes[FAKE_CGROUPS];
	struct cgroup *cgroup = &cgroups[n].cgroup;
	unsigned int at = n;
	int level;

	cgroup->self.flags = CSS_NO_REF | CSS_ONLINE;
	cgroup->kn = &nodes[n];
	cgroup->kn->id = 1 + n;
	for (cgroup->level = 0; at; at = fake_parents[at])
		cgroup->level++;
	for (level = cgroup->level, at = n; level >= 0; level--) {
		cgroup->ancestors[level] = &cgroups[at].cgroup;
		if (at != n)
			fake_cgroup(at);
		at = fake_parents[at];
	}
	return cgroup;
#else
	return NULL;
#endif
}

/**
 * fake_settings - default settings
 *
 * Return: the settings.
 */
struct flexmem_settings fake_settings(void)
{
	return (struct flexmem_settings) {
		.fit = FLEXMEM_FIT_FIRST,
		.order = FLEXMEM_ORDER_LOAD_BALANCE,
		.acquire = FLEXMEM_ACQUIRE_LAZY,
		.max_regions = 12,
		.nr_sizes = 3,
		.sizes = { 12 * GIB, 8 * GIB, 4 * GIB },
	};
}

/* A table, and what the teardown needs to free the table. */
struct fake_table {
	struct flexmem_table table;
	struct fake_device *fake;
	struct flexmem_account *account;
	struct flexmem_view view;
	struct list_head blocks;
	bool removed;
};

static struct fake_table *to_fake_table(struct flexmem_table *table)
{
	return container_of(table, struct fake_table, table);
}

static void table_teardown(void *data)
{
	struct fake_table *ft = data;
	struct kunit *test = kunit_get_current_test();
	struct fake_block *block, *next;
	const char *wrong;

	wrong = fake_table_check(&ft->table);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
	list_for_each_entry_safe(block, next, &ft->blocks, link)
		fake_free(block);
	if (!ft->removed) {
		ft->fake->asleep = false;
		memset(ft->fake->failure, 0, sizeof(ft->fake->failure));
		fake_table_remove(&ft->table);
	}
	KUNIT_EXPECT_TRUE_MSG(test, fake_device_is_untouched(ft->fake),
			      "the device has not got everything back");
	wrong = fake_table_check(&ft->table);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
	KUNIT_EXPECT_EQ(test, ft->view.sum.out_total, 0);
	flexmem_owner_close(ft->account);
	flexmem_table_fini(&ft->table);
}

static bool sums_add_up(const struct flexmem_snapshot *sum)
{
	return sum->out_free + sum->out_owned + sum->out_orphaned +
	       sum->out_reserved + sum->out_quarantined == sum->out_total;
}

/**
 * fake_table_check - check every invariant, including those of a snapshot
 * @table: table of fake_table_create()
 *
 * Return: NULL, or a text that says what is wrong.
 */
const char *fake_table_check(struct flexmem_table *table)
{
	struct fake_table *ft = to_fake_table(table);
	const char *wrong = checks_of_table(table);

	if (wrong)
		return wrong;
#ifndef FLEXMEM_CORE
	flexmem_table_snapshot(table, NULL, &ft->view);
#endif
	return sums_add_up(&ft->view.sum) ? NULL : "snapshot does not add up";
}

/**
 * fake_table_account - the account that tests charge by default
 * @table: table of fake_table_create()
 *
 * Return: the account that fake_alloc() charges.
 */
struct flexmem_account *fake_table_account(struct flexmem_table *table)
{
	return to_fake_table(table)->account;
}

/*
 * A file that a test has opened. It is closed before the table is freed,
 * because its blocks must be freed first.
 */
struct fake_opened {
	struct flexmem_table *table;
	struct flexmem_account *account;
};

static void account_teardown(void *data)
{
	struct fake_opened *opened = data;
	struct fake_table *ft = to_fake_table(opened->table);
	struct fake_block *block, *next;

	list_for_each_entry_safe(block, next, &ft->blocks, link)
		if (block->account == opened->account)
			fake_free(block);
	flexmem_owner_close(opened->account);
}

/**
 * fake_account_open - open a file
 * @test: at its end the file is closed, and its allocations are freed
 * @table: table of fake_table_create()
 * @uid: number of the file's user and cgroup, for fake_uid() and fake_cgroup()
 *
 * Return: the account of the file.
 */
struct flexmem_account *fake_account_open(struct kunit *test,
					  struct flexmem_table *table,
					  unsigned int uid)
{
	struct fake_opened *opened;

	opened = kunit_kzalloc(test, sizeof(*opened), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, opened);
	opened->table = table;
	opened->account = flexmem_owner_open(&table->accounts, fake_uid(uid),
					     fake_cgroup(uid), NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, opened->account);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, account_teardown,
						  opened));
	return opened->account;
}

/**
 * fake_table_create - make a table for a device
 * @test: at its end the table is checked and freed
 * @fake: device
 * @settings: settings
 *
 * Return: the table.
 */
struct flexmem_table *fake_table_create(struct kunit *test,
					struct fake_device *fake,
					const struct flexmem_settings *settings)
{
	struct flexmem_device_desc desc = fake_device_desc(fake);
	struct fake_table *ft;

	ft = kunit_kzalloc(test, sizeof(*ft), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ft);
	ft->fake = fake;
	INIT_LIST_HEAD(&ft->blocks);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_table_init(&ft->table, NULL, &desc, settings));
	/* Background work runs only if a test starts it. */
	ft->table.function.work_ms = INT_MAX;
	ft->account = flexmem_owner_open(&ft->table.accounts, fake_uid(0),
					 fake_cgroup(0), NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ft->account);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, table_teardown, ft));
	fake_device_forget(fake);
	return &ft->table;
}

/**
 * fake_exhausted - why no region can be acquired
 * @table: table
 * @kind: kind of memory
 *
 * Return: the reason, or FLEXMEM_REASON_NONE.
 */
enum flexmem_reason fake_exhausted(const struct flexmem_table *table,
				   enum flexmem_kind kind)
{
	return flexmem_table_exhausted(table, kind, table->default_domains,
				       0);
}

/**
 * fake_table_remove - remove the device of a table
 * @table: table of fake_table_create(); its blocks can still be freed
 */
void fake_table_remove(struct flexmem_table *table)
{
	struct fake_table *ft = to_fake_table(table);

	ft->fake->leaving = true;
	flexmem_table_remove(table);
	ft->fake->gone = true;
	ft->removed = true;
}

struct flexmem_region *fake_table_region(struct flexmem_table *table,
					 unsigned int slot)
{
	return rcu_access_pointer(table->region[slot]);
}

/**
 * fake_table_prealloc - acquire all possible regions
 * @table: table
 *
 * Return: what flexmem_table_prealloc() returned.
 */
int fake_table_prealloc(struct flexmem_table *table)
{
	int rc;

	mutex_lock(&table->acquire_lock);
	rc = flexmem_table_prealloc(table);
	mutex_unlock(&table->acquire_lock);
	return rc;
}

/**
 * fake_table_acquire - acquire a region and put it in the table
 * @table: table
 * @program: use a slot for programs
 * @min_size: least size of the region in bytes
 *
 * Return: the region or an ERR_PTR().
 */
struct flexmem_region *fake_table_acquire(struct flexmem_table *table,
					  bool program, u64 min_size)
{
	struct flexmem_region *fresh, *region;
	enum flexmem_kind kind;

	kind = flexmem_table_kind(table, fake_kind(program));
	fresh = flexmem_region_create(table);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&table->acquire_lock);
	region = flexmem_region_acquire(table, kind, table->default_domains,
					min_size, U64_MAX, &fresh);
	if (!IS_ERR(region)) {
		mutex_lock(&table->snapshot_lock);
		flexmem_region_publish(table, region);
		mutex_unlock(&table->snapshot_lock);
	}
	mutex_unlock(&table->acquire_lock);
	flexmem_region_destroy(fresh);
	return region;
}

static int take_from(struct flexmem_region *region,
		     struct flexmem_request *request)
{
	bool placed;
	int rc;

	rc = flexmem_spare_fill(&request->spare, FLEXMEM_GROWABLE_SPARES, NULL);
	if (rc)
		return rc;
	placed = flexmem_region_alloc(region, request);
	flexmem_spare_drop(&request->spare, NULL);
	return placed ? 0 : -ENOSPC;
}

/**
 * fake_place - place a request of one chunk, without a handle
 * @request: has its table and its account
 * @region: region to allocate from; NULL: one that the table chooses
 *
 * Return: 0; an error of flexmem_place_fail(); or -ENOSPC if @region has no
 * room.
 */
int fake_place(struct flexmem_request *request, struct flexmem_region *region)
{
	enum flexmem_reason reason;
	int rc;

	request->part = request->size;
	rc = flexmem_place_charge(request);
	if (rc)
		return flexmem_place_fail(request, rc);
	rc = region ? take_from(region, request) : flexmem_place(request);
	if (rc) {
		reason = request->reason;
		if (!region)
			return flexmem_place_fail(request, rc);
		flexmem_place_fail(request, rc);
		request->reason = reason;
		return rc;
	}
	flexmem_uncharge(request->account, 0, 1);
	flexmem_owner_put(request->account);
	/*
	 * If flexmem reports success without a block, the test must fail, not
	 * crash.
	 */
	return request->block ? 0 : -EFAULT;
}

static struct fake_block *new_block(struct flexmem_request *request,
				    struct flexmem_region *region)
{
	struct fake_block *block;
	int rc;

	block = kzalloc(sizeof(*block), GFP_KERNEL);
	if (!block)
		return ERR_PTR(-ENOMEM);
	rc = fake_place(request, region);
	if (rc) {
		kfree(block);
		return ERR_PTR(rc);
	}
	block->region = request->block->region;
	block->block = request->block;
	block->account = request->account;
	list_add_tail(&block->link, &to_fake_table(request->table)->blocks);
	return block;
}

/**
 * fake_alloc - place an allocation
 * @table: table of fake_table_create()
 * @size: bytes
 * @alignment: of the offset
 * @program: whether the memory is for a program
 * @request: receives the address, or the reason on failure; may be NULL
 *
 * Return: the block, for fake_free() (the teardown frees those that are left),
 * or an ERR_PTR() with the error of flexmem_place().
 */
struct fake_block *fake_alloc(struct flexmem_table *table, u64 size,
			      u64 alignment, bool program,
			      struct flexmem_request *request)
{
	struct flexmem_request unseen;

	request = request ?: &unseen;
	*request = (struct flexmem_request) {
		.size = size,
		.alignment = alignment,
		.flags = program ? FLEXMEM_ALLOC_PROGRAM : 0,
		.domains = table->default_domains,
		.first = table->default_domains,
		.chunks = 1,
		.table = table,
		.account = fake_table_account(table),
	};
	return new_block(request, NULL);
}

/**
 * fake_alloc_from - place an allocation in some domains
 * @table: table of fake_table_create()
 * @domains: bit mask of the domains
 * @first: bit mask of the domains to try first
 * @size: bytes
 * @request: receives the address, or the reason on failure
 *
 * Return: as fake_alloc().
 */
struct fake_block *fake_alloc_from(struct flexmem_table *table, u64 domains,
				   u64 first, u64 size,
				   struct flexmem_request *request)
{
	*request = (struct flexmem_request) {
		.size = size,
		.alignment = FLEXMEM_ALIGN,
		.domains = domains,
		.first = first,
		.reuses = first != domains,
		.chunks = 1,
		.table = table,
		.account = fake_table_account(table),
	};
	return new_block(request, NULL);
}

/**
 * fake_alloc_for - place an allocation for another account
 * @table: table of fake_table_create()
 * @account: account
 * @size: bytes
 * @request: receives the address, or the reason on failure
 *
 * Return: as fake_alloc().
 */
struct fake_block *fake_alloc_for(struct flexmem_table *table,
				  struct flexmem_account *account, u64 size,
				  struct flexmem_request *request)
{
	*request = (struct flexmem_request) {
		.size = size,
		.alignment = FLEXMEM_ALIGN,
		.domains = table->default_domains,
		.first = table->default_domains,
		.chunks = 1,
		.table = table,
		.account = account,
	};
	return new_block(request, NULL);
}

/**
 * fake_alloc_in - allocate from one region
 * @table: table of fake_table_create()
 * @region: region of the table
 * @size: bytes
 * @program: whether the memory is for a program
 *
 * Return: as fake_alloc(); -ENOSPC if it does not fit.
 */
struct fake_block *fake_alloc_in(struct flexmem_table *table,
				 struct flexmem_region *region, u64 size,
				 bool program)
{
	struct flexmem_request request = {
		.size = size,
		.alignment = FLEXMEM_ALIGN,
		.flags = program ? FLEXMEM_ALLOC_PROGRAM : 0,
		.chunks = 1,
		.table = table,
		.domains = table->default_domains,
		.first = table->default_domains,
		.account = fake_table_account(table),
	};

	return new_block(&request, region);
}

/**
 * fake_alloc_in_for - place an allocation in a region, for another account
 * @table: table of fake_table_create()
 * @region: region of the table
 * @account: account
 * @size: bytes
 * @refusal: receives the limit that forbids the block
 *
 * Return: as fake_alloc_in().
 */
struct fake_block *fake_alloc_in_for(struct flexmem_table *table,
				     struct flexmem_region *region,
				     struct flexmem_account *account, u64 size,
				     enum flexmem_reason *refusal)
{
	struct flexmem_request request = {
		.size = size,
		.alignment = FLEXMEM_ALIGN,
		.chunks = 1,
		.table = table,
		.domains = table->default_domains,
		.first = table->default_domains,
		.account = account,
	};
	struct fake_block *block;

	block = new_block(&request, region);
	*refusal = request.reason;
	return block;
}

void fake_free(struct fake_block *block)
{
	list_del(&block->link);
	flexmem_region_free(block->block, 0, NULL);
	kfree(block);
}

void fake_orphan(struct fake_block *block)
{
	flexmem_region_orphan(block->block);
}

/*
 * Puts a block into quarantine. From then on the block belongs to the region.
 */
void fake_quarantine(struct fake_block *block)
{
	list_del(&block->link);
	flexmem_region_quarantine(block->block);
	kfree(block);
}

const char *fake_fit_name(enum flexmem_fit fit)
{
	return fit == FLEXMEM_FIT_BEST ? "best_fit" : "first_fit";
}

const char *fake_order_name(enum flexmem_order order)
{
	return order == FLEXMEM_ORDER_FILL_FIRST ? "fill_first" :
						   "load_balance";
}

const char *fake_mode_name(enum flexmem_mode mode)
{
	return mode == FLEXMEM_MODE_VF ? "VF" : "PF";
}
