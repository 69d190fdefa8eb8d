// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: an allocation needs a region, and a block in that region.
 *
 * The policy of a request chooses its domains (policy.c). Existing regions of
 * all these domains are tried in one order. A new region comes from the domain
 * with the lowest id that can give one. Preferred domains come first in both, but
 * an existing region of another domain comes before a new one.
 *
 * The module parameter "order" says which of two regions is tried first, and
 * whether a region is acquired before the existing ones are tried (load_balance)
 * or only after they have failed (fill_first).
 *
 * Files of a cgroup for which a region is reserved try this region first, and
 * other files do not try it at all.
 *
 * A request is charged before it is placed. Checks of limits for regions only
 * save work: the charge when a block is taken decides.
 *
 * The address of an allocation depends only on the calls before it: equal
 * regions are ordered by slot, and background work has no influence.
 */

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "alloc/placement.h"
#include "alloc/request.h"
#include "block/spare.h"
#include "part.h"
#include "region/job.h"
#include "region/table.h"
#include "tenant/owner.h"

/*
 * A region that a request may use, with figures that may be stale.
 * @rank: its largest free block if the request is growable, otherwise 0; with the
 * highest bit set if the region is reserved for the account.
 * @order: its free bytes, or their complement if the fullest region comes first.
 */
struct candidate {
	struct flexmem_region *region;
	u64 rank;
	u64 order;
};

static bool comes_before(const struct candidate *a, const struct candidate *b)
{
	return a->rank != b->rank ? a->rank > b->rank : a->order > b->order;
}

/* Programs use slots for tensors unless slots are set aside for programs. */
static enum flexmem_kind kind_of(const struct flexmem_request *request)
{
	return flexmem_table_kind(request->table,
				  request->flags & FLEXMEM_ALLOC_PROGRAM ?
				  FLEXMEM_KIND_PROGRAM : FLEXMEM_KIND_TENSOR);
}

static u64 slots_of(const struct flexmem_request *request, u64 domains)
{
	enum flexmem_kind kind = kind_of(request);
	const struct flexmem_domain *domain;
	u64 slots = 0;

	flexmem_for_each_domain(domain, request->table, domains)
		slots |= READ_ONCE(domain->filled[kind]);
	return slots;
}

/*
 * Finds the slots of the regions of @domains that have enough free bytes. @list:
 * receives the candidates, by slot, unless it is NULL. @first: receives the one that
 * comes first. Return: bit mask of these slots.
 *
 * A scan of the few regions costs less than keeping them sorted at each
 * allocation and free. The figures may be stale, because the region's lock is
 * not held until the block is taken. The search under the lock decides.
 */
static u64 list_candidates(const struct flexmem_request *request, u64 domains,
			   struct candidate *list, struct candidate *first)
{
	const struct flexmem_table *table = request->table;
	bool fill_first = table->settings.order == FLEXMEM_ORDER_FILL_FIRST;
	bool growable = flexmem_request_is_growable(request);
	const struct flexmem_account *reserved_for;
	u64 left = slots_of(request, domains), found = 0, free;
	struct flexmem_region *region;
	struct candidate next;
	unsigned int slot;

	for (; left; left &= left - 1) {
		slot = __ffs64(left);
		region = rcu_dereference(table->region[slot]);
		/* The slot may have got a region of another domain meanwhile. */
		if (!region || !(domains & BIT_ULL(region->mem.domain)))
			continue;
		free = READ_ONCE(region->blocks.free);
		if (free < request->part)
			continue;
		reserved_for = READ_ONCE(region->reserved_for);
		if (flexmem_is_closed_by(reserved_for, request->account))
			continue;
		next = (struct candidate) {
			.region = region,
			.rank = (growable ? flexmem_region_room(region) : 0) |
				(reserved_for ? BIT_ULL(63) : 0),
			.order = fill_first ? ~free : free,
		};
		if (!found || comes_before(&next, first))
			*first = next;
		found |= BIT_ULL(slot);
		if (list)
			list[slot] = next;
	}
	return found;
}

/*
 * Tries the candidates but for the one in the slot @tried. Not inline: @list is large,
 * and many kernels clear it.
 */
static noinline bool try_others(struct flexmem_request *request, u64 domains,
				unsigned int tried)
{
	struct candidate list[FLEXMEM_MAX_SLOTS], any, *first, *next;
	u64 left = list_candidates(request, domains, list, &any), rest;

	for (left &= ~BIT_ULL(tried); left; left &= ~BIT_ULL(first - list)) {
		first = &list[__ffs64(left)];
		for (rest = left & (left - 1); rest; rest &= rest - 1) {
			next = &list[__ffs64(rest)];
			if (comes_before(next, first))
				first = next;
		}
		if (flexmem_region_alloc(first->region, request))
			return true;
	}
	return false;
}

/* Tries the existing regions of some domains. */
static bool try_regions(struct flexmem_request *request, u64 domains)
{
	struct candidate first;
	u64 found = list_candidates(request, domains, NULL, &first);

	return found && (flexmem_region_alloc(first.region, request) ||
			 (found & (found - 1) &&
			  try_others(request, domains, first.region->slot)));
}

/* How often something has happened that can let a search succeed, plus 1. */
static u64 nr_chances(const struct flexmem_request *request)
{
	return flexmem_gauge_frees(&request->table->accounts.gauge) + 1;
}

/* Tries the existing regions, those of preferred domains first. */
static bool place_in_existing(struct flexmem_request *request)
{
	u64 others = request->domains & ~request->first;
	bool placed;

	request->searched = nr_chances(request);
	/* The figures of regions are read between this number and the next one. */
	smp_rmb();
	request->gave_up = false;
	request->tries = 0;
	/* RCU keeps the regions until a block is taken, which keeps its region. */
	rcu_read_lock();
	placed = try_regions(request, request->first) ||
		 (others && try_regions(request, others));
	rcu_read_unlock();
	return placed;
}

/* Under acquire_lock the existing regions are searched at most this many times. */
#define MOST_SEARCHES 4

/*
 * As place_in_existing(), but searches again if memory was freed since the last
 * search began, also one of place_in_existing().
 * The regions are looked at one after the other. So if one task frees a block in a
 * region that the search has left, and then another task takes the hole ahead of
 * it, the search finds none, although there was a hole at each moment.
 * If nothing was freed, and no region has come or was opened, the holes have only
 * shrunk, and the search is exact. Under acquire_lock, so that no TRIM hides a
 * region.
 *
 * The number of searches is bounded, because others may free memory all the time.
 * For a caller that fails after the last search, these frees are an event.
 */
static bool search_existing(struct flexmem_request *request)
{
	/* What an earlier search met may be gone. A failed acquisition is not. */
	enum flexmem_reason reason = request->searched ? FLEXMEM_REASON_NONE :
							 request->reason;
	unsigned int i;

	lockdep_assert_held(&request->table->acquire_lock);
	for (i = 0; i < MOST_SEARCHES; i++) {
		/* As in place_in_existing(). */
		smp_rmb();
		if (request->searched == nr_chances(request))
			return false;
		request->reason = reason;
		if (place_in_existing(request))
			return true;
	}
	return false;
}

/**
 * struct growth - a request for which a region may be acquired
 * @job: job of the worker
 * @request: copy of the caller's request
 * @acquire_first: acquire a region before the existing ones are tried
 * @fresh: region object to be filled; NULL once it is used
 */
struct growth {
	struct flexmem_job job;
	struct flexmem_request request;
	bool acquire_first;
	struct flexmem_region *fresh;
};

/* Acquires a region, of a preferred domain if one can give it. */
static struct flexmem_region *acquire(struct growth *growth)
{
	const struct flexmem_request *request = &growth->request;
	u64 others = request->domains & ~request->first;
	enum flexmem_kind kind = kind_of(request);
	struct flexmem_region *region;

	region = flexmem_region_acquire(request->table, kind, request->first,
					request->part, U64_MAX, &growth->fresh);
	if (region != ERR_PTR(-ENOSPC) || !others)
		return region;
	return flexmem_region_acquire(request->table, kind, others,
				      request->part, U64_MAX, &growth->fresh);
}

/* Allocates the request's block in a new region before others see the region. */
static int place_in_new(struct growth *growth)
{
	struct flexmem_request *request = &growth->request;
	struct flexmem_table *table = request->table;
	struct flexmem_region *region;
	bool placed;
	int rc = flexmem_table_refresh(table);

	if (rc)
		return rc;
	if (flexmem_account_refuses_region(request->account,
					   &request->refused)) {
		request->reason = FLEXMEM_REASON_REGION_LIMIT;
		return -ENOSPC;
	}
	region = acquire(growth);
	if (IS_ERR(region))
		return PTR_ERR(region);
	/*
	 * The region is one free block, no smaller than the request. Only a
	 * limit that was set or used up since the check can refuse the block.
	 * The lock ensures that a snapshot never sees a charge without the
	 * region, or the region without the charge.
	 */
	mutex_lock(&table->snapshot_lock);
	placed = !flexmem_job_is_abandoned(&growth->job) &&
		 flexmem_region_alloc(region, request);
	flexmem_region_publish(table, region);
	mutex_unlock(&table->snapshot_lock);
	return placed ? 0 : -ENOSPC;
}

/*
 * Called under acquire_lock. The regions may have changed while the job waited
 * for the lock or for a resume, so the existing ones are tried once more.
 */
static int grow(struct flexmem_job *job)
{
	struct growth *growth = container_of(job, struct growth, job);
	int rc = -ENOSPC;

	lockdep_assert_held(&job->table->acquire_lock);
	flexmem_parts_call(trim, job->table);
	if (growth->acquire_first)
		rc = place_in_new(growth);
	if (growth->acquire_first && (!rc || rc == -EAGAIN))
		return rc;
	if (search_existing(&growth->request))
		return 0;
	if (!growth->acquire_first)
		rc = place_in_new(growth);
	return rc;
}

static void free_growth(struct growth *growth)
{
	flexmem_region_destroy(growth->fresh);
	kfree(growth);
}

/* Ends the request of a killed caller. */
static void end_growth(struct flexmem_job *job)
{
	struct growth *growth = container_of(job, struct growth, job);

	if (growth->request.block)
		flexmem_region_free(growth->request.block, 0, NULL);
	flexmem_spare_drop(&growth->request.spare, NULL);
	flexmem_place_fail(&growth->request, -EINTR);
	free_growth(growth);
}

static struct growth *make_growth(const struct flexmem_request *request,
				  bool acquire_first)
{
	struct growth *growth = kmalloc(sizeof(*growth), GFP_KERNEL_ACCOUNT);

	if (!growth)
		return NULL;
	*growth = (struct growth) {
		.request = *request,
		.acquire_first = acquire_first,
		.fresh = flexmem_region_create(request->table),
	};
	if (!growth->fresh) {
		kfree(growth);
		return NULL;
	}
	flexmem_job_init(&growth->job, request->table, grow, end_growth);
	return growth;
}

static bool is_unsure(const struct flexmem_table *table, u64 domains)
{
	const struct flexmem_domain *domain;

	flexmem_for_each_domain(domain, table, domains)
		if (READ_ONCE(domain->capacity_is_old))
			return true;
	return false;
}

static bool may_acquire(const struct flexmem_request *request)
{
	return !flexmem_table_exhausted(request->table, kind_of(request),
					request->domains, request->part);
}

/*
 * Whether to acquire a region before the existing ones are tried. Not while the
 * firmware may be dead.
 */
static bool wants_new(const struct flexmem_request *request)
{
	const struct flexmem_table *table = request->table;

	return table->settings.order == FLEXMEM_ORDER_LOAD_BALANCE &&
	       !request->reuses &&
	       !flexmem_function_is_unresponsive(&table->function) &&
	       table->settings.acquire == FLEXMEM_ACQUIRE_LAZY &&
	       (is_unsure(table, request->domains) || may_acquire(request)) &&
	       !flexmem_account_has_regions(request->account) &&
	       !flexmem_account_refuses_region(request->account, NULL);
}

/* Whether @size is larger than any region of these domains can ever be. */
static bool exceeds_sizes(const struct flexmem_table *table, u64 domains,
			  u64 size)
{
	const struct flexmem_domain *domain;

	flexmem_for_each_domain(domain, table, domains)
		if (size <= flexmem_domain_most(domain))
			return false;
	return true;
}

/* While a capacity may have changed, only the sizes of regions are compared. */
static bool is_impossible(const struct flexmem_request *request)
{
	struct flexmem_table *table = request->table;
	u64 domains = request->domains;

	return exceeds_sizes(table, domains, request->part) ||
	       (request->part > flexmem_table_max_region(table, domains) &&
		!is_unsure(table, domains));
}

/*
 * A number for the places of a request, the same for all requests that fit into
 * the same places if they are no larger.
 */
static u64 where_of(const struct flexmem_request *request)
{
	u64 where = request->domains * FLEXMEM_NR_KINDS + kind_of(request);

	where = where * 2 + (request->chunks > 1);
	return where * BITS_PER_TYPE(request->alignment) +
	       ilog2(request->alignment);
}

/*
 * Charges a request, and takes a reference to its account.
 * Context: the caller holds no region's lock. Return: 0, or -ENOSPC with the
 * reason in @request. After an error the caller calls flexmem_place_fail().
 */
int flexmem_place_charge(struct flexmem_request *request)
{
	const struct flexmem_domain *domain = request->table->domain;

	request->refused.where = where_of(request);
	/*
	 * Even a short charge can make another caller with the same limit fail,
	 * so a chunk that is larger than any region is refused without a charge.
	 * Most chunks are no larger than the first size, and skip the full check.
	 */
	if (request->part > domain[__ffs64(request->domains)].sizes[0] &&
	    is_impossible(request))
		request->reason = FLEXMEM_REASON_REGION_SIZE;
	else
		request->reason = flexmem_charge(request->account,
						 request->size, 1,
						 &request->refused);
	if (request->reason)
		return -ENOSPC;
	flexmem_owner_get(request->account);
	request->unplaced = request->size;
	request->charged = true;
	return 0;
}

/*
 * Whether anything in a slot is not the account's, and so may go without it.
 * Under the accounts' lock.
 */
static bool others_have(const struct flexmem_account *account,
			unsigned int slot)
{
	const u64 *bytes = account->accounts->in[slot].bytes;

	return bytes[FLEXMEM_USE_OWNED] + bytes[FLEXMEM_USE_ORPHANED] +
	       bytes[FLEXMEM_USE_QUARANTINED] > account->in[slot].bytes;
}

static bool is_limit(const struct flexmem_request *request)
{
	return request->reason == FLEXMEM_REASON_CGROUP_LIMIT ||
	       request->reason == FLEXMEM_REASON_REGION_LIMIT;
}

/*
 * Computes which regions could serve a request: if all memory were free, if all
 * memory of other files were free, and if what the file itself has freed were no
 * longer in use. Under the accounts' lock and RCU. @slots:
 * those of the request's kind and domains. If a capacity may have changed, a
 * region of any size could come. If a limit is in the way, others can make room
 * below it, and then the request can have a region in which they have nothing.
 */
static noinline void add_rooms(struct flexmem_request *request, u64 slots)
{
	struct flexmem_account *account = request->account;
	struct flexmem_table *table = request->table;
	u64 may_enter = flexmem_account_may_enter(account), size;
	const struct flexmem_charges *in;
	const struct flexmem_domain *domain;
	struct flexmem_region *region;
	unsigned int slot;

	if (!READ_ONCE(table->range[kind_of(request)].no_slot))
		flexmem_for_each_domain(domain, table, request->domains)
			request->room = max(request->room,
					    READ_ONCE(domain->capacity_is_old) ?
					    U64_MAX : flexmem_domain_next(domain));
	if (may_enter == U64_MAX)
		request->room_of_others = request->room;
	for (; slots; slots &= slots - 1) {
		slot = __ffs64(slots);
		region = rcu_dereference(table->region[slot]);
		if (!region || flexmem_region_is_closed(region, account))
			continue;
		in = &account->in[slot];
		size = region->mem.size;
		request->room = max(request->room, size);
		if (!(may_enter & BIT_ULL(slot)))
			continue;
		size -= min(size, in->bytes);
		if (is_limit(request) || others_have(account, slot))
			request->room_of_others = max(request->room_of_others,
						      size);
		if (in->orphaned)
			request->room_of_leaving =
				max(request->room_of_leaving,
				    size + in->orphaned);
	}
}

static void add_stats(struct flexmem_request *request)
{
	u64 slots = slots_of(request, request->domains);
	struct flexmem_table *table = request->table;
	struct flexmem_region *region;
	unsigned int slot;
	bool closed;

	rcu_read_lock();
	/*
	 * Before the loop: a block that is no longer charged now is counted as free
	 * when the loop has had the lock of its region.
	 */
	spin_lock(&table->accounts.lock);
	add_rooms(request, slots);
	request->leaving = table->accounts.bytes[FLEXMEM_USE_ORPHANED];
	spin_unlock(&table->accounts.lock);
	for (slot = 0; slot < table->slots.nr; slot++) {
		region = rcu_dereference(table->region[slot]);
		if (!region)
			continue;
		request->regions++;
		if (!(slots & BIT_ULL(slot)))
			continue;
		closed = flexmem_region_is_closed(region, request->account);
		spin_lock(&region->lock);
		if (!region->dead)
			flexmem_region_add_to(region, closed, &request->sum);
		spin_unlock(&region->lock);
	}
	rcu_read_unlock();
	request->max_region = flexmem_table_max_region(table, request->domains);
}

static enum flexmem_reason why_no_region(const struct flexmem_request *request)
{
	return flexmem_table_exhausted(request->table, kind_of(request),
				       request->domains, 0) ?:
	       FLEXMEM_REASON_CAPACITY;
}

static void explain(struct flexmem_request *request)
{
	memset_after(request, 0, refused);
	add_stats(request);
	if (request->reason)
		return;
	if (request->part > request->max_region) {
		request->reason = FLEXMEM_REASON_REGION_SIZE;
	} else if (request->part <= request->sum.closed_largest) {
		request->reason = FLEXMEM_REASON_RESERVED;
	} else if (request->part > request->sum.free) {
		request->reason = why_no_region(request);
	} else {
		request->reason = request->gave_up ?
			FLEXMEM_REASON_ALIGNMENT : FLEXMEM_REASON_FRAGMENTATION;
		request->region_reason = why_no_region(request);
	}
}

/*
 * Ends a request that has failed: uncharges it, and explains the failure.
 * @request: its blocks are free again. @rc: the error; -ENOSPC: the device has no
 * room.
 * Context: may sleep. Return: -ENOMEM for -ENOSPC, otherwise @rc.
 */
int flexmem_place_fail(struct flexmem_request *request, int rc)
{
	struct flexmem_account *account = request->account;
	bool may_succeed;

	if (rc == -ENOSPC)
		explain(request);
	else
		request->reason = FLEXMEM_REASON_NONE;
	if (!request->charged)
		goto out;
	request->charged = false;
	may_succeed = flexmem_uncharge_failed(account, request->unplaced, 1,
					      rc == -ENOSPC ?
					      request->refused.where : U64_MAX);
	/*
	 * Other callers may have failed because of this charge. A caller that
	 * gets ENOMEM may wait for the event itself, so it causes none for
	 * requests that would fail like this one: otherwise two of them could
	 * wake each other for ever.
	 */
	if (may_succeed || (rc != -ENOSPC && rc != -ENOMEM)) {
		flexmem_accounts_freed(account->accounts);
		/* It is no event for the caller. */
		request->began++;
	}
	flexmem_owner_put(account);
out:
	return rc == -ENOSPC ? -ENOMEM : rc;
}

/* If the caller is killed, the worker ends the request. */
static int place_by_growing(struct flexmem_request *request, bool acquire_first)
{
	struct growth *growth = make_growth(request, acquire_first);
	int rc;

	if (!growth)
		return -ENOMEM;
	if (!flexmem_job_run(&growth->job)) {
		request->charged = false;
		request->spare = (struct flexmem_spare) {};
		return -EINTR;
	}
	rc = growth->job.rc;
	*request = growth->request;
	free_growth(growth);
	return rc;
}

/*
 * Tries the existing regions again, under acquire_lock. Returns -EAGAIN if a region
 * may be acquired now.
 */
static int place_without_growing(struct flexmem_request *request)
{
	struct flexmem_table *table = request->table;
	int rc;

	if (mutex_lock_killable(&table->acquire_lock))
		return -EINTR;
	flexmem_parts_call(trim, table);
	rc = flexmem_function_fatal(&table->function);
	if (!rc && (may_acquire(request) ||
		    !flexmem_function_is_settled(&table->function) ||
		    is_unsure(table, request->domains)))
		rc = -EAGAIN;
	if (!rc && !search_existing(request))
		rc = -ENOSPC;
	mutex_unlock(&table->acquire_lock);
	return rc;
}

static int place_once(struct flexmem_request *request)
{
	bool acquire_first = wants_new(request);
	int rc;

	if (!acquire_first && place_in_existing(request))
		return 0;

	if (is_impossible(request))
		return -ENOSPC;
	rc = may_acquire(request) ? -EAGAIN : place_without_growing(request);
	if (rc == -EAGAIN)
		rc = place_by_growing(request, acquire_first);
	/* The existing regions may have room, although none could be acquired. */
	if ((rc == -ETIMEDOUT || rc == -ENOMEM) && acquire_first &&
	    place_in_existing(request))
		return 0;
	return rc;
}

/*
 * Finds room for a chunk of a request.
 * @request: charged; receives the block.
 * Context: may sleep: it allocates block nodes, charged to the caller's memory
 * cgroup, and waits for the worker if a region may have to be acquired. Return:
 * 0; -ENOSPC: the device has no room; -ENOMEM: the kernel has no memory; -EINTR
 * if the caller was killed while it waited; -ENODEV if the device is being
 * removed; or an error of the firmware. After an error the caller frees the
 * other blocks and calls flexmem_place_fail().
 */
int flexmem_place(struct flexmem_request *request)
{
	unsigned int nr = flexmem_request_is_growable(request) ?
			  FLEXMEM_GROWABLE_SPARES :
			  flexmem_spares_for(request->alignment);
	int rc;

	request->block = NULL;
	request->reason = FLEXMEM_REASON_NONE;
	request->searched = 0;
	rc = flexmem_spare_fill(&request->spare, nr, request->stock);
	if (rc)
		return rc;
	rc = place_once(request);
	flexmem_spare_drop(&request->spare, request->stock);
	return rc;
}
