// SPDX-License-Identifier: GPL-2.0
/*
 * Guarantees hold whatever others do (B1, D18): random calls of several clients
 * and users, among them changes of limits and guarantees, checked after each.
 *
 *  - What is promised can be given after each operation if it could before.
 *  - Whoever has not got what is guaranteed to it is never refused in favour of
 *    others.
 *  - At the end of each round everybody asks for all that is guaranteed to it
 *    and gets it.
 *
 * No device: the test keeps the regions, like a device that gives whatever its
 * capacity allows.
 *
 * To repeat a run: insmod flexmem_kunit.ko seed=N.
 */

#include <kunit/test.h>
#include <linux/minmax.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "account.h"
#include "block.h"
#include "fake_device.h"
#include "owner.h"

#define ROUNDS 300
#define ROUND_OPS 120
#define SLOTS 5
#define NR_CLIENTS 6
#define NR_USERS 3
#define MAX_LIVE 64
#define UNIT FLEXMEM_ALIGN

/* A charge. */
struct live {
	struct flexmem_account *client;
	unsigned int slot;
	u64 size;
	bool orphaned;
	bool quarantined;
};

/* What the accounts are compared with. */
struct promises {
	bool bytes_kept;
	bool slots_kept;
};

struct round {
	struct kunit *test;
	struct rnd_state rnd;
	struct flexmem_accounts accounts;
	struct flexmem_account *client[NR_CLIENTS];
	bool is_open[NR_CLIENTS];
	u64 capacity;
	u64 acquired;
	bool full;
	bool limits;
	const u64 *sizes;
	u64 used[SLOTS];
	struct live live[MAX_LIVE];
	unsigned int nr_live;
	unsigned int nr;
	unsigned int op;
};

/* What has been reached, so that it is no test of nothing. */
struct reached {
	u64 reason[FLEXMEM_REASON_GUARANTEE + 1];
	u64 granted;
	u64 denied;
	u64 kept_regions;
	u64 own_bytes;
	u64 own_slots;
};

static struct reached reached;

#define SMALLEST (4 * GIB)

/* They are tried in the order in which they are listed, whatever that is. */
static const u64 sizes[][3] = {
	{ 12 * GIB, 8 * GIB, SMALLEST },
	{ SMALLEST, 8 * GIB, 12 * GIB },
	{ 8 * GIB, SMALLEST, 12 * GIB },
};

static u32 below(struct round *round, u32 limit)
{
	return prandom_u32_state(&round->rnd) % limit;
}

/* checkpatch: MACRO_ARG_REUSE - round is always the name of a pointer */
#define ASSERT_ROUND(round, is, want)					\
	KUNIT_ASSERT_EQ_MSG((round)->test, is, want,			\
			    "round %u, operation %u", (round)->nr, (round)->op)

static void tell_device(struct round *round)
{
	flexmem_accounts_set_device(&round->accounts, round->capacity,
				    round->acquired, 0, round->full);
}

static struct flexmem_account *random_client(struct round *round)
{
	unsigned int i, from = below(round, NR_CLIENTS);

	for (i = 0; i < NR_CLIENTS; i++)
		if (round->is_open[(from + i) % NR_CLIENTS])
			return round->client[(from + i) % NR_CLIENTS];
	return NULL;
}

static u64 room_in(const struct round *round, unsigned int slot)
{
	return round->accounts.slot[slot].size - round->used[slot];
}

/* Operations. */

static void do_charge(struct round *round)
{
	struct flexmem_account *client = random_client(round);
	unsigned int slot = below(round, SLOTS);
	u64 room = room_in(round, slot), size;
	enum flexmem_reason reason;

	if (!client || room < UNIT || round->nr_live == MAX_LIVE)
		return;
	size = min(room, (1 + below(round, 48)) * (GIB / 8));
	reason = flexmem_charge(&round->accounts, client, slot, size);
	reached.reason[reason]++;
	if (reason)
		return;
	round->used[slot] += size;
	round->live[round->nr_live++] = (struct live) {
		.client = client,
		.slot = slot,
		.size = size,
	};
}

static void end_live(struct round *round, unsigned int i)
{
	struct live live = round->live[i];

	round->live[i] = round->live[--round->nr_live];
	round->used[live.slot] -= live.size;
	if (live.quarantined)
		flexmem_charge_quarantine(&round->accounts, live.slot,
					  -live.size);
	else
		flexmem_uncharge(&round->accounts, live.client, live.slot,
				 live.size, live.orphaned);
}

static void do_uncharge(struct round *round)
{
	if (round->nr_live)
		end_live(round, below(round, round->nr_live));
}

static void do_orphan(struct round *round)
{
	struct live *live = &round->live[below(round, MAX_LIVE)];

	if (live >= &round->live[round->nr_live] || live->orphaned ||
	    live->quarantined)
		return;
	flexmem_charge_orphan(&round->accounts, live->client, live->slot,
			      live->size);
	live->orphaned = true;
}

/* Memory that fails: the only thing that breaks a promise, with capacity. */
static void do_quarantine(struct round *round)
{
	struct live *live = &round->live[below(round, MAX_LIVE)];

	if (live >= &round->live[round->nr_live] || live->orphaned ||
	    live->quarantined)
		return;
	flexmem_uncharge(&round->accounts, live->client, live->slot,
			 live->size, false);
	flexmem_charge_quarantine(&round->accounts, live->slot, live->size);
	live->quarantined = true;
}

static int empty_slot(const struct round *round)
{
	unsigned int slot;

	for (slot = 0; slot < SLOTS; slot++)
		if (!round->accounts.slot[slot].size)
			return slot;
	return -1;
}

/* As acquire_memory() does it: its slot, or -1 with the reason. */
static int acquire(struct round *round, struct flexmem_account *client,
		   u64 request, enum flexmem_reason *reason)
{
	int slot = empty_slot(round);
	bool skipped = false;
	unsigned int i;

	*reason = FLEXMEM_REASON_NONE;
	for (i = 0; i < ARRAY_SIZE(sizes[0]) && slot >= 0 && !round->full; i++) {
		enum flexmem_reason refusal;

		if (round->sizes[i] < request) {
			skipped = true;
			continue;
		}
		refusal = flexmem_account_refuses_region(&round->accounts,
							 client,
							 FLEXMEM_KIND_TENSOR,
							 round->sizes[i], request);
		if (refusal) {
			*reason = refusal;
			skipped = true;
			continue;
		}
		if (round->acquired + round->sizes[i] > round->capacity) {
			flexmem_accounts_too_large(&round->accounts,
						   round->sizes[i]);
			continue;
		}
		flexmem_accounts_add_region(&round->accounts, slot, round->sizes[i],
					    FLEXMEM_KIND_TENSOR, client);
		round->acquired += round->sizes[i];
		round->used[slot] = 0;
		round->full = empty_slot(round) < 0;
		tell_device(round);
		*reason = FLEXMEM_REASON_NONE;
		if (round->accounts.slot[slot].keeper)
			reached.kept_regions++;
		return slot;
	}
	if (!skipped && slot >= 0)
		round->full = true;
	/* A region that was expected does not come. */
	tell_device(round);
	return -1;
}

static void do_acquire(struct round *round)
{
	u64 request = (1 + below(round, 12)) * GIB;
	enum flexmem_reason reason;

	acquire(round, below(round, 5) ? random_client(round) : NULL, request,
		&reason);
	reached.reason[reason]++;
}

static void drop_region(struct round *round, unsigned int slot)
{
	round->acquired -= round->accounts.slot[slot].size;
	flexmem_accounts_remove_region(&round->accounts, slot);
	round->used[slot] = 0;
	round->full = false;
	flexmem_accounts_too_large(&round->accounts, U64_MAX);
	tell_device(round);
}

static void do_release(struct round *round)
{
	unsigned int slot = below(round, SLOTS);

	if (round->accounts.slot[slot].size && !round->used[slot])
		drop_region(round, slot);
}

/* With everything that is in it. */
static void do_lose(struct round *round)
{
	unsigned int slot = below(round, SLOTS), i = 0;

	if (!round->accounts.slot[slot].size)
		return;
	while (i < round->nr_live) {
		if (round->live[i].slot == slot)
			round->live[i] = round->live[--round->nr_live];
		else
			i++;
	}
	drop_region(round, slot);
}

static void do_handle(struct round *round)
{
	struct flexmem_account *client = random_client(round);
	const unsigned int r = FLEXMEM_RESOURCE_HANDLES;

	if (!client)
		return;
	if (client->used[r] && below(round, 2))
		flexmem_uncharge_handle(&round->accounts, client);
	else
		reached.reason[flexmem_charge_handle(&round->accounts,
						     client, UINT_MAX)]++;
}

static void open_client(struct round *round, unsigned int i)
{
	round->client[i] = flexmem_owner_open(&round->accounts,
					      fake_uid(i % NR_USERS), NULL);
	ASSERT_ROUND(round, true, !!round->client[i]);
	round->is_open[i] = true;
}

static void close_client(struct round *round, unsigned int i)
{
	struct flexmem_account *client = round->client[i];
	unsigned int at = 0;

	while (at < round->nr_live) {
		if (round->live[at].client == client &&
		    !round->live[at].quarantined)
			end_live(round, at);
		else
			at++;
	}
	while (client->used[FLEXMEM_RESOURCE_HANDLES])
		flexmem_uncharge_handle(&round->accounts, client);
	round->is_open[i] = false;
	flexmem_owner_close(client);
}

static void do_open_or_close(struct round *round)
{
	unsigned int i = below(round, NR_CLIENTS);

	if (!round->is_open[i])
		open_client(round, i);
	else if (!below(round, 3))
		close_client(round, i);
}

/* Small enough to be kept now and then, large enough to be refused as well. */
static u64 random_amount(struct round *round, enum flexmem_resource resource)
{
	if (!below(round, 3))
		return 0;
	if (resource == FLEXMEM_RESOURCE_BYTES)
		return below(round, 100) * (GIB / 4);
	return below(round, resource == FLEXMEM_RESOURCE_SLOTS ? 4 : 8);
}

static void do_quota(struct round *round)
{
	struct flexmem_account *client = random_client(round);
	struct flexmem_quota quota = {
		.kind = below(round, 2),
		.resource = below(round, FLEXMEM_NR_RESOURCES),
		.flags = FLEXMEM_QUOTA_GUARANTEE,
	};
	struct flexmem_account *account;
	u64 limit, guarantee;
	int rc;

	if (!client)
		return;
	quota.id = client->id;
	quota.guarantee = random_amount(round, quota.resource);
	quota.limit = quota.guarantee + random_amount(round, quota.resource);
	if (round->limits && below(round, 2))
		quota.flags = below(round, 2) ? FLEXMEM_QUOTA_LIMIT :
			FLEXMEM_QUOTA_LIMIT | FLEXMEM_QUOTA_GUARANTEE;
	account = quota.kind == FLEXMEM_OWNER_USER ? client->user : client;
	limit = account->limit[quota.resource];
	guarantee = account->guarantee[quota.resource];

	rc = flexmem_quota_set(&round->accounts, &quota, client->uid);
	if (rc) {
		ASSERT_ROUND(round, account->limit[quota.resource], limit);
		ASSERT_ROUND(round, account->guarantee[quota.resource],
			     guarantee);
		reached.denied++;
	} else {
		reached.granted++;
	}
	/* What is lowered, and no limit forbids, is never refused. */
	if (quota.flags == FLEXMEM_QUOTA_GUARANTEE &&
	    quota.guarantee <= guarantee)
		ASSERT_ROUND(round, rc, 0);
}

/* What must be true. */

static bool bytes_are_kept(const struct flexmem_accounts *accounts)
{
	return !accounts->promised ||
	       accounts->shared_used + accounts->promised <= accounts->reach;
}

static bool slots_are_kept(const struct round *round)
{
	u32 promised = round->accounts.promised_slots;
	unsigned int slot, empty = 0;

	for (slot = 0; slot < SLOTS; slot++)
		empty += !round->accounts.slot[slot].size;
	return promised <= empty &&
	       promised * SMALLEST <= round->capacity - round->acquired;
}

static u64 missing_bytes(const struct flexmem_account *account)
{
	u64 guaranteed = account->guarantee[FLEXMEM_RESOURCE_BYTES];

	return guaranteed > account->shared ? guaranteed - account->shared : 0;
}

/*
 * Charges up to @size bytes where owners share, as far as there is room: none
 * of it may be refused in favour of others. Returns what was charged.
 */
static u64 charge_own(struct round *round, struct flexmem_account *client,
		      u64 size, bool keep)
{
	enum flexmem_reason reason;
	unsigned int slot;
	u64 part, done = 0;

	for (slot = 0; slot < SLOTS && done < size; slot++) {
		part = min(size - done, room_in(round, slot));
		if (!part || round->accounts.slot[slot].keeper)
			continue;
		reason = flexmem_charge(&round->accounts, client, slot, part);
		ASSERT_ROUND(round, reason == FLEXMEM_REASON_GUARANTEE, false);
		if (!round->limits)
			ASSERT_ROUND(round, reason, FLEXMEM_REASON_NONE);
		if (reason)
			continue;
		done += part;
		if (keep)
			round->used[slot] += part;
		else
			flexmem_uncharge(&round->accounts, client, slot, part,
					 false);
	}
	reached.own_bytes += !!done;
	return done;
}

/* Each owner could have a part of what is guaranteed to it right now. */
static void check_owners(struct round *round)
{
	struct flexmem_account *client;
	unsigned int i;
	u64 missing;

	for (i = 0; i < NR_CLIENTS; i++) {
		client = round->client[i];
		if (!round->is_open[i])
			continue;
		missing = missing_bytes(client) + missing_bytes(client->user);
		charge_own(round, client, min(missing, GIB / 4), false);
	}
}

static void check(struct round *round, const struct promises *before,
		  bool broken)
{
	const char *wrong = flexmem_accounts_check(&round->accounts);

	KUNIT_ASSERT_NULL_MSG(round->test, wrong, "round %u, operation %u: %s",
			      round->nr, round->op, wrong);
	if (before->bytes_kept && !broken)
		ASSERT_ROUND(round, bytes_are_kept(&round->accounts), true);
	if (before->slots_kept)
		ASSERT_ROUND(round, slots_are_kept(round), true);
	check_owners(round);
}

/* The end of a round: everybody wants what is guaranteed to it. */

static void get_bytes(struct round *round, struct flexmem_account *client,
		      const struct flexmem_account *account)
{
	enum flexmem_reason reason;
	unsigned int tries;
	u64 missing;

	for (tries = 0; tries <= SLOTS; tries++) {
		charge_own(round, client, missing_bytes(account), true);
		missing = missing_bytes(account);
		if (!missing)
			return;
		acquire(round, client, min(missing, SMALLEST), &reason);
		ASSERT_ROUND(round, reason, FLEXMEM_REASON_NONE);
	}
	ASSERT_ROUND(round, missing, 0);
}

static void get_slots(struct round *round, struct flexmem_account *client,
		      const struct flexmem_account *account)
{
	enum flexmem_reason reason;
	int slot;

	while (account->reserved < account->guarantee[FLEXMEM_RESOURCE_SLOTS]) {
		slot = acquire(round, client, UNIT, &reason);
		ASSERT_ROUND(round, reason, FLEXMEM_REASON_NONE);
		ASSERT_ROUND(round, slot >= 0, true);
		ASSERT_ROUND(round,
			     round->accounts.slot[slot].keeper == account,
			     true);
		ASSERT_ROUND(round, flexmem_charge(&round->accounts, client,
						   slot, UNIT),
			     FLEXMEM_REASON_NONE);
		round->used[slot] += UNIT;
		reached.own_slots++;
	}
}

static void get_everything(struct round *round)
{
	void (*get[])(struct round *round, struct flexmem_account *client,
		      const struct flexmem_account *account) = {
		get_bytes, get_slots,
	};
	unsigned int first = below(round, 2), from = below(round, NR_CLIENTS);
	unsigned int pass, i;

	if (round->limits || !bytes_are_kept(&round->accounts) ||
	    !slots_are_kept(round))
		return;
	for (i = 0; i < NR_CLIENTS; i++)
		if (!round->is_open[i])
			open_client(round, i);
	/* Clients before their users: what is theirs comes first. */
	for (pass = 0; pass < 4; pass++) {
		for (i = 0; i < NR_CLIENTS; i++) {
			struct flexmem_account *client;

			client = round->client[(from + i) % NR_CLIENTS];
			get[(first + pass / 2) % 2](round, client, pass % 2 ?
						    client->user : client);
		}
	}
}

static void do_operation(struct round *round)
{
	struct promises before = {
		.bytes_kept = bytes_are_kept(&round->accounts),
		.slots_kept = slots_are_kept(round),
	};
	u32 roll = below(round, 100);

	if (roll < 35)
		do_charge(round);
	else if (roll < 50)
		do_uncharge(round);
	else if (roll < 55)
		do_orphan(round);
	else if (roll < 65)
		do_acquire(round);
	else if (roll < 68)
		do_release(round);
	else if (roll < 69)
		do_lose(round);
	else if (roll < 76)
		do_handle(round);
	else if (roll < 82)
		do_open_or_close(round);
	else if (roll < 99)
		do_quota(round);
	else
		do_quarantine(round);
	check(round, &before, roll == 99);
}

static void end_round(void *data)
{
	struct round *round = data;
	unsigned int i;

	/* What get_everything() has charged is no live[]: it goes with these. */
	round->nr_live = 0;
	for (i = 0; i < SLOTS; i++)
		if (round->accounts.slot[i].size)
			flexmem_accounts_remove_region(&round->accounts, i);
	for (i = 0; i < NR_CLIENTS; i++)
		if (round->is_open[i])
			close_client(round, i);
	flexmem_accounts_fini(&round->accounts);
}

static void run_round(struct kunit *test, struct round *round, unsigned int nr)
{
	memset(round, 0, sizeof(*round));
	round->test = test;
	round->nr = nr;
	round->limits = nr % 2;
	prandom_seed_state(&round->rnd, fake_seed() + nr);
	round->sizes = sizes[nr / 2 % ARRAY_SIZE(sizes)];
	flexmem_accounts_init(&round->accounts, SLOTS, round->sizes,
			      ARRAY_SIZE(sizes[0]));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action(test, end_round, round));
	round->capacity = (16 + 4 * below(round, 9)) * GIB;
	tell_device(round);
	for (; round->op < ROUND_OPS; round->op++)
		do_operation(round);
	get_everything(round);
	kunit_release_action(test, end_round, round);
}

static void guarantees_hold_whatever_others_do(struct kunit *test)
{
	struct round *round;
	unsigned int nr;

	round = kunit_kzalloc(test, sizeof(*round), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, round);
	reached = (struct reached) {};
	for (nr = 0; nr < ROUNDS; nr++) {
		run_round(test, round, nr);
		cond_resched();
	}
	kunit_info(test,
		   "seed=%u: allowed %llu, client limit %llu, user limit %llu, guarantee %llu; quotas set %llu, refused %llu; regions kept %llu; promises taken %llu, slots %llu",
		   fake_seed(), reached.reason[FLEXMEM_REASON_NONE],
		   reached.reason[FLEXMEM_REASON_CLIENT_LIMIT],
		   reached.reason[FLEXMEM_REASON_USER_LIMIT],
		   reached.reason[FLEXMEM_REASON_GUARANTEE], reached.granted,
		   reached.denied, reached.kept_regions, reached.own_bytes,
		   reached.own_slots);
	KUNIT_EXPECT_GT(test, reached.reason[FLEXMEM_REASON_NONE], 0);
	KUNIT_EXPECT_GT(test, reached.reason[FLEXMEM_REASON_CLIENT_LIMIT], 0);
	KUNIT_EXPECT_GT(test, reached.reason[FLEXMEM_REASON_USER_LIMIT], 0);
	KUNIT_EXPECT_GT(test, reached.reason[FLEXMEM_REASON_GUARANTEE], 0);
	KUNIT_EXPECT_GT(test, reached.granted, 0);
	KUNIT_EXPECT_GT(test, reached.denied, 0);
	KUNIT_EXPECT_GT(test, reached.kept_regions, 0);
	KUNIT_EXPECT_GT(test, reached.own_bytes, 0);
	KUNIT_EXPECT_GT(test, reached.own_slots, 0);
}

static struct kunit_case account_random_cases[] = {
	KUNIT_CASE(guarantees_hold_whatever_others_do),
	{}
};

static struct kunit_suite account_random_suite = {
	.name = "flexmem_account_random",
	.test_cases = account_random_cases,
};

kunit_test_suite(account_random_suite);
