// SPDX-License-Identifier: GPL-2.0
/*
 * Many accounts. The first part counts the steps of each operation that takes
 * the accounts' lock, with few open files and with many. The steps may grow
 * only with the logarithm of the number of files (steps.c does the same for
 * blocks). The second part uses many cgroups, at once or one after the other.
 * Prints TAP.
 */
#include "shim/internal.h"

#include "count.h"
#include "tenant/account.h"
#include "tenant/owner.h"

#define FEW 100			/* open files, each in its own cgroup */
#define MANY 10000
#define TIMES 3			/* most growth; steps.c explains it */

/* how many accounts each charge of a file below a tenant changes */
#define LEVELS 4
#define TENANTS 1000
#define PASSING 100000

#define UNIT SZ_4K
#define BYTES FLEXMEM_RESOURCE_BYTES
#define FILES FLEXMEM_RESOURCE_FILES

static struct flexmem_accounts accounts;
static struct cgroup *tenant, *below[MANY];
static struct flexmem_account *file[MANY];
static unsigned int results, failures;

static void must(bool is, const char *what)
{
	if (is)
		return;
	printf("# not so: %s\n", what);
	failures++;
}

#define MUST(is) must(is, #is)

static void result(unsigned int before, const char *what)
{
	printf("%s %u - %s\n", failures > before ? "not ok" : "ok", ++results,
	       what);
}

static void set(struct cgroup *cgroup, enum flexmem_limit_scope scope,
		enum flexmem_resource resource, u64 limit)
{
	struct flexmem_resource_limit cmd = {
		.scope = scope,
		.resource = resource,
		.cgroup = cgroup ? cgroup_id(cgroup) : 0,
		.limit = limit,
	};
	struct flexmem_account *account = flexmem_limit_find(&accounts, &cmd);

	MUST(!IS_ERR(account));
	flexmem_limit_set(&accounts, account, &cmd);
	if (account)
		flexmem_owner_put(account);
}

/*
 * Makes the cgroup @tenant at depth 2, where cgroups have the default limit.
 * The tests make cgroups in it, at depth 3.
 */
static void begin(void)
{
	struct cgroup *above = native_cgroup_make(native_cgroup_root);

	flexmem_accounts_init(&accounts, 2);
	/* The crowd has more files than the default limit allows. */
	set(NULL, FLEXMEM_SCOPE_DEFAULT, FILES, FLEXMEM_NO_LIMIT);
	tenant = native_cgroup_make(above);
	native_cgroup_remove(above);
}

static void end(void)
{
	flexmem_accounts_fini(&accounts);
	native_cgroup_remove(tenant);
}

static struct flexmem_account *open_in(struct cgroup *cgroup, unsigned int uid)
{
	return flexmem_owner_open(&accounts, KUIDT_INIT(uid), cgroup, NULL);
}

static enum flexmem_reason charge(struct flexmem_account *client,
				  unsigned int slot)
{
	enum flexmem_reason reason;

	reason = flexmem_charge(client, UNIT, 0, NULL);
	if (reason)
		return reason;
	reason = flexmem_account_take(client, slot, UNIT, NULL);
	if (reason)
		flexmem_uncharge(client, UNIT, 0);
	return reason;
}

static void uncharge(struct flexmem_account *client, unsigned int slot)
{
	flexmem_account_move(&accounts, client, slot, UNIT,
			     FLEXMEM_USE_OWNED, FLEXMEM_USE_FREE, 0);
}

static u64 used(struct flexmem_account *account, enum flexmem_resource r)
{
	u64 amount;

	spin_lock(&accounts.lock);
	flexmem_account_settle(account);
	amount = account->used[r];
	spin_unlock(&accounts.lock);
	return amount;
}

/*
 * Operations on accounts. For each of them the test keeps the largest number of
 * steps.
 */
enum operation {
	OPEN, OPEN_FIRST, CLOSE, CHARGE, UNCHARGE, SET_LIMIT, CHARGE_LIMITED,
	FORGET_LIMITS, IS_OPEN, LOSE_REGION, CHARGE_LOST,
	NR_OPERATIONS
};

static const char * const operation_name[NR_OPERATIONS] = {
	[OPEN] = "open in a cgroup that has an account",
	[OPEN_FIRST] = "open in a new cgroup",
	[CLOSE] = "close",
	[CHARGE] = "charge",
	[UNCHARGE] = "uncharge",
	[SET_LIMIT] = "set the default limit",
	[CHARGE_LIMITED] = "charge after a limit was set",
	[FORGET_LIMITS] = "forget limits of removed cgroups",
	[IS_OPEN] = "ask whether a file is open",
	[LOSE_REGION] = "lose a region in which each has charges",
	[CHARGE_LOST] = "charge after a region was lost",
};

static unsigned long worst[NR_OPERATIONS];

static void count_in(struct cgroup *cgroup, enum operation opening)
{
	struct flexmem_account *client;

	COUNT(worst[opening], client = open_in(cgroup, 1));
	COUNT(worst[CHARGE], charge(client, 1));
	COUNT(worst[UNCHARGE], uncharge(client, 1));
	/* SET_LIMIT causes an event, which starts a worker. */
	COUNT_UNLESS_STARTING(worst[SET_LIMIT],
			      set(NULL, FLEXMEM_SCOPE_DEFAULT, BYTES,
				  2ULL * MANY * UNIT));
	COUNT(worst[CHARGE_LIMITED], charge(client, 1));
	uncharge(client, 1);
	COUNT(worst[FORGET_LIMITS], flexmem_owner_forget(&accounts));
	COUNT(worst[IS_OPEN], flexmem_owner_is_open(&accounts, client->id));
	COUNT(worst[CLOSE], flexmem_owner_close(client));
}

static void count_among(unsigned int nr, unsigned long *counted)
{
	struct cgroup *empty;
	unsigned int i, points;

	begin();
	empty = native_cgroup_make(tenant);
	memset(worst, 0, sizeof(worst));
	for (i = 0; i < nr; i++) {
		below[i] = native_cgroup_make(tenant);
		file[i] = open_in(below[i], 1 + i % 7);
		charge(file[i], 0);
	}
	for (i = 0; i < nr; i += nr / 20) {
		count_in(below[i], OPEN);
		count_in(empty, OPEN_FIRST);
	}
	/* open() allocates the file's account and nothing else. */
	points = current->points;
	flexmem_owner_close(open_in(below[0], 1));
	MUST(current->points - points == 1);
	COUNT(worst[LOSE_REGION], flexmem_accounts_remove_region(&accounts, 0));
	MUST(!accounts.bytes[FLEXMEM_USE_OWNED]);
	for (i = 0; i < nr; i++) {
		COUNT_ONE_IN(nr / 20, i);
		COUNT(worst[CHARGE_LOST], charge(file[i], 1));
		MUST(used(file[i], BYTES) == UNIT);
		uncharge(file[i], 1);
		flexmem_owner_close(file[i]);
		native_cgroup_remove(below[i]);
	}
	count_nothing = false;
	memcpy(counted, worst, sizeof(worst));
	native_cgroup_remove(empty);
	end();
}

static void steps_grow_with_the_logarithm(void)
{
	static unsigned long few[NR_OPERATIONS], many[NR_OPERATIONS];
	unsigned int i, before = failures;
	char what[200];

	count_among(FEW, few);
	count_among(MANY, many);
	result(before, "the counted operations do what they should");
	for (i = 0; i < NR_OPERATIONS; i++) {
		before = failures;
		if (!few[i] || many[i] > TIMES * few[i])
			failures++;
		snprintf(what, sizeof(what),
			 "%s: %lu " STEP_NAME " among %u files, %lu among %u",
			 operation_name[i], few[i], FEW, many[i], MANY);
		result(before, what);
	}
	before = failures;
	MUST(many[CHARGE_LIMITED] - many[CHARGE] <
	     LEVELS * FLEXMEM_MAX_SLOTS * STEPS_OF_A_BRANCH);
	result(before, "an account that follows a limit looks at no region");
}

/* All cgroups below a tenant's cgroup share its default limit. */
static void sub_cgroups_share_a_default_limit(void)
{
	unsigned int i, before = failures;
	struct flexmem_account *other;
	struct cgroup *neighbour;

	begin();
	neighbour = native_cgroup_make(tenant->ancestors[1]);
	set(NULL, FLEXMEM_SCOPE_DEFAULT, BYTES, TENANTS * UNIT);
	set(NULL, FLEXMEM_SCOPE_DEFAULT, FILES, TENANTS);
	for (i = 0; i < TENANTS; i++) {
		below[i] = native_cgroup_make(tenant);
		file[i] = open_in(below[i], i);
		MUST(!IS_ERR(file[i]));
		MUST(charge(file[i], 0) == FLEXMEM_REASON_NONE);
	}
	MUST(used(file[0]->parent->parent, BYTES) == TENANTS * UNIT);
	for (i = 0; i < TENANTS; i++) {
		MUST(charge(file[i], i % 4) == FLEXMEM_REASON_CGROUP_LIMIT);
		MUST(open_in(below[i], i) == ERR_PTR(-EMFILE));
	}
	other = open_in(neighbour, 0);
	MUST(charge(other, 0) == FLEXMEM_REASON_NONE);
	uncharge(other, 0);
	flexmem_owner_close(other);
	for (i = 0; i < TENANTS; i++) {
		uncharge(file[i], 0);
		flexmem_owner_close(file[i]);
		native_cgroup_remove(below[i]);
	}
	MUST(!accounts.nr_cgroups);
	native_cgroup_remove(neighbour);
	end();
	result(before, "1,000 sub-cgroups of a tenant share one default limit");
}

/*
 * Makes a cgroup, opens a file in it, and removes the cgroup. The file may stay
 * open longer.
 */
static void pass(unsigned int i)
{
	struct cgroup *cgroup = native_cgroup_make(tenant);
	struct flexmem_account *client = open_in(cgroup, i);

	MUST(charge(client, 0) == FLEXMEM_REASON_NONE);
	if (i % 3 == 0)
		set(cgroup, FLEXMEM_SCOPE_CGROUP, BYTES, UNIT);
	if (i % 5 == 0)
		flexmem_accounts_remove_region(&accounts, 0);
	cgroup_get(cgroup);
	if (i % 2)
		native_cgroup_remove(cgroup);
	if (i % 5)
		uncharge(client, 0);
	flexmem_owner_close(client);
	if (i % 2 == 0)
		native_cgroup_remove(cgroup);
	flexmem_owner_forget(&accounts);
	MUST(refcount_read(&cgroup->self.refs) == 1);
	cgroup_put(cgroup);
}

static void memory_of_removed_cgroups_returns(void)
{
	unsigned int i, before = failures;
	long live = native_live();

	begin();
	for (i = 0; i < PASSING; i++)
		pass(i);
	MUST(!accounts.nr_cgroups);
	MUST(!accounts.nr_clients);
	MUST(list_empty(&accounts.limited));
	MUST(native_live() == live);
	end();
	result(before, "100,000 cgroups made, used and removed: memory returns");
}

/*
 * Each open() checks a few of the cgroups with limits. The next open() checks
 * the next few.
 */
static void open_forgets_limits_of_removed_cgroups(void)
{
	unsigned int i, before = failures;

	begin();
	for (i = 0; i < FEW; i++) {
		below[i] = native_cgroup_make(tenant);
		set(below[i], FLEXMEM_SCOPE_CGROUP, BYTES, UNIT);
	}
	for (i = FEW / 2; i < FEW; i++) {
		cgroup_get(below[i]);
		native_cgroup_remove(below[i]);
	}
	for (i = 0; i < FEW; i++)
		flexmem_owner_close(open_in(tenant, 0));
	for (i = FEW / 2; i < FEW; i++) {
		MUST(refcount_read(&below[i]->self.refs) == 1);
		cgroup_put(below[i]);
	}
	for (i = 0; i < FEW / 2; i++) {
		set(below[i], FLEXMEM_SCOPE_CGROUP, BYTES, FLEXMEM_NO_LIMIT);
		native_cgroup_remove(below[i]);
	}
	MUST(!accounts.nr_cgroups);
	end();
	result(before, "open() forgets limits of removed cgroups behind others");
}

int main(void)
{
	native_shim_init();
	steps_grow_with_the_logarithm();
	sub_cgroups_share_a_default_limit();
	memory_of_removed_cgroups_returns();
	open_forgets_limits_of_removed_cgroups();
	printf("1..%u\n", results);
	return failures ? 1 : 0;
}
