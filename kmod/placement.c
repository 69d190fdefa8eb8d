// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: an allocation needs a region, and a block in that region.
 *
 * The policy of a request chooses the domains that the request may use
 * (policy.c). Existing regions of all these domains are tried in one order. A
 * new region comes from the domain with the lowest id that can give one.
 * Domains that the policy prefers come first, among existing regions and for a
 * new one. An existing region of another domain still comes before a new one.
 *
 * The module parameter "order" says which of two regions is tried first. It
 * also says when a new region is acquired: before the existing ones are tried
 * (load_balance), or only after all existing ones have failed (fill_first).
 *
 * A region may be reserved for a cgroup. Files of that cgroup and of the
 * cgroups below it try this region first, and other files do not try it at all.
 *
 * The caller has charged the bytes. A region in which the account may not have
 * a block is skipped like a full one. If the account may not have a block in a
 * further region, no region is acquired. These checks only save work: the
 * charge when a block is taken decides.
 *
 * The address of an allocation depends only on the calls before it: equal
 * regions are ordered by slot, and background work has no influence.
 */

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "job.h"
#include "owner.h"
#include "placement.h"
#include "reservation.h"
#include "spare.h"
#include "table.h"

/**
 * struct flexmem_order_ops - a region strategy
 * @acquire_first: acquire a region before each allocation, as long as that is
 *	possible
 * @before: whether a region with @free free bytes comes before one with @other
 */
struct flexmem_order_ops {
	bool acquire_first;
	bool (*before)(u64 free, u64 other);
};

static bool most_free_first(u64 free, u64 other)
{
	return free > other;
}

static bool least_free_first(u64 free, u64 other)
{
	return free < other;
}

static const struct flexmem_order_ops orders[] = {
	[FLEXMEM_ORDER_LOAD_BALANCE] = {
		.acquire_first = true,
		.before = most_free_first,
	},
	[FLEXMEM_ORDER_FILL_FIRST] = {
		.before = least_free_first,
	},
};

/*
 * A region, with figures that placement has read. They may be stale.
 * @room: its largest free block if the request is growable; otherwise 0.
 * @free: all its free bytes.
 */
struct candidate {
	struct flexmem_region *region;
	const struct flexmem_account *reserved_for;
	u64 room;
	u64 free;
};

static bool comes_before(const struct flexmem_order_ops *order,
			 const struct candidate *a, const struct candidate *b)
{
	if (!b->region)
		return true;
	if (!a->reserved_for != !b->reserved_for)
		return a->reserved_for;
	if (a->room != b->room)
		return a->room > b->room;
	return order->before(a->free, b->free);
}

/* Returns a bit mask of the slots with regions that a request may use. */
static u64 candidates(const struct flexmem_table *table,
		      enum flexmem_kind kind, u64 domains)
{
	const struct flexmem_domain *domain;
	u64 slots = 0;

	flexmem_for_each_domain(domain, table, domains)
		slots |= READ_ONCE(domain->filled[kind]);
	return slots;
}

/*
 * Looks at the regions of @domains in the slots @left that have enough free
 * bytes. Returns a reserved region first, and otherwise the first region in the order of the
 * strategy. For a growable request the size of the largest free block counts
 * more than the order.
 *
 * A scan of the few regions costs less than keeping them sorted at each
 * allocation and free. The figures may be stale, because the region's lock is
 * not held until the block is taken. The search under the lock decides.
 */
static struct flexmem_region *next_region(struct flexmem_table *table,
					  const struct flexmem_request *request,
					  u64 domains, u64 left)
{
	const struct flexmem_order_ops *order = &orders[table->settings.order];
	struct candidate first = {}, next;
	u64 unused;

	for (; left; left &= left - 1) {
		next.region = rcu_dereference(table->region[__ffs64(left)]);
		/*
		 * The slot may have got a region of another domain since the
		 * mask was read.
		 */
		if (!next.region ||
		    !(domains & BIT_ULL(next.region->mem.domain)))
			continue;
		next.free = READ_ONCE(next.region->blocks.free);
		if (next.free < request->size)
			continue;
		next.reserved_for = READ_ONCE(next.region->reserved_for);
		if (flexmem_is_closed_by(next.reserved_for, request->account))
			continue;
		next.room = request->growable ?
			flexmem_region_room(next.region, &unused) : 0;
		if (comes_before(order, &next, &first))
			first = next;
	}
	return first.region;
}

static bool place_in(struct flexmem_region *region,
		     const struct flexmem_request *request,
		     struct flexmem_spare *spare, struct flexmem_place *place)
{
	place->block = flexmem_region_alloc(region, request, spare,
					    &place->reason, &place->gave_up);
	return place->block;
}

/* Tries the existing regions, those of preferred domains first. */
static bool place_in_existing(struct flexmem_table *table,
			      enum flexmem_kind kind,
			      const struct flexmem_request *request,
			      struct flexmem_spare *spare,
			      struct flexmem_place *place)
{
	u64 left = candidates(table, kind, request->first);
	u64 asked = request->first;
	struct flexmem_region *region;
	bool placed = false;

	static_assert(BITS_PER_TYPE(left) >= FLEXMEM_MAX_SLOTS);

	/*
	 * RCU keeps the region until a block of the region is taken. Then the
	 * block keeps the region, because a region with a block in use is not
	 * destroyed.
	 */
	place->gave_up = false;
	rcu_read_lock();
	while (!placed) {
		region = next_region(table, request, asked, left);
		if (region) {
			left &= ~BIT_ULL(region->slot);
			placed = place_in(region, request, spare, place);
			continue;
		}
		if (asked == request->domains)
			break;
		left = candidates(table, kind, request->domains & ~asked);
		asked = request->domains;
	}
	rcu_read_unlock();
	if (placed)
		place->reason = FLEXMEM_REASON_NONE;
	return placed;
}

/**
 * struct growth - an allocation for which a region may be acquired
 * @job: job of the worker
 * @request: request; holds a reference to its account
 * @kind: kind of slots that the allocation may use
 * @acquire_first: acquire a region before the existing ones are tried
 * @spare: block nodes for the split; unused ones are freed at the end
 * @fresh: region object to be filled; NULL once it is used
 * @place: result; @place->block is NULL if none was found or the caller took it
 */
struct growth {
	struct flexmem_job job;
	struct flexmem_request request;
	enum flexmem_kind kind;
	bool acquire_first;
	struct flexmem_spare spare;
	struct flexmem_region *fresh;
	struct flexmem_place place;
};

/* Acquires a region, of a preferred domain if one can give it. */
static struct flexmem_region *acquire(struct growth *growth)
{
	const struct flexmem_request *request = &growth->request;
	u64 others = request->domains & ~request->first;
	struct flexmem_region *region;

	region = flexmem_region_acquire(growth->job.table, growth->kind,
					request->first, request->size, U64_MAX,
					&growth->fresh);
	if (region != ERR_PTR(-ENOSPC) || !others)
		return region;
	return flexmem_region_acquire(growth->job.table, growth->kind, others,
				      request->size, U64_MAX, &growth->fresh);
}

/*
 * Acquires a region, and allocates the request's block in it before other
 * callers see the region.
 */
static int place_in_new(struct growth *growth)
{
	const struct flexmem_request *request = &growth->request;
	struct flexmem_table *table = growth->job.table;
	struct flexmem_place *place = &growth->place;
	struct flexmem_region *region;
	bool placed;
	int rc;

	rc = flexmem_table_refresh(table);
	if (rc)
		return rc;
	if (flexmem_account_refuses_region(request->account)) {
		place->reason = FLEXMEM_REASON_REGION_LIMIT;
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
		 place_in(region, request, &growth->spare, place);
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
	struct flexmem_place *place = &growth->place;
	struct flexmem_table *table = growth->job.table;
	int rc = -ENOSPC;

	lockdep_assert_held(&table->acquire_lock);
	flexmem_reservations_forget(table);
	place->reason = FLEXMEM_REASON_NONE;
	if (growth->acquire_first)
		rc = place_in_new(growth);
	if (growth->acquire_first && (!rc || rc == -EAGAIN))
		return rc;
	if (place_in_existing(table, growth->kind, &growth->request,
			      &growth->spare, place))
		return 0;
	if (!growth->acquire_first)
		rc = place_in_new(growth);
	return rc;
}

/*
 * Frees a job. If the caller was killed in the meantime, frees the block too.
 * If there is no block, uncharges the bytes of the request instead.
 */
static void end_growth(struct flexmem_job *job)
{
	struct growth *growth = container_of(job, struct growth, job);

	if (growth->place.block) {
		flexmem_region_free(growth->place.block, NULL);
	} else if (flexmem_job_is_abandoned(job)) {
		flexmem_uncharge(growth->request.account,
				 growth->request.size, 0);
		flexmem_pressure_freed(growth->request.account->accounts);
	}
	flexmem_spare_drop(&growth->spare, NULL);
	flexmem_region_destroy(growth->fresh);
	flexmem_owner_put(growth->request.account);
	kfree(growth);
}

static struct growth *make_growth(struct flexmem_table *table,
				  const struct flexmem_request *request,
				  struct flexmem_spare *spare)
{
	struct growth *growth;

	growth = kzalloc(sizeof(*growth), GFP_KERNEL_ACCOUNT);
	if (!growth)
		return NULL;
	growth->fresh = flexmem_region_create(table);
	if (!growth->fresh) {
		kfree(growth);
		return NULL;
	}
	flexmem_job_init(&growth->job, table, grow, end_growth);
	growth->request = *request;
	flexmem_owner_get(request->account);
	growth->kind = flexmem_table_kind(table, request->kind);
	growth->spare = *spare;
	*spare = (struct flexmem_spare) {};
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

static bool may_acquire(const struct flexmem_table *table,
			const struct flexmem_request *request)
{
	enum flexmem_kind kind = flexmem_table_kind(table, request->kind);

	return !flexmem_table_exhausted(table, kind, request->domains,
					request->size);
}

/*
 * Whether to acquire a region before the existing ones are tried. Always false
 * while the firmware may be dead, for a cgroup with reserved regions, if the
 * policy prefers some domains, and if a limit forbids a further region.
 */
static bool wants_new(const struct flexmem_table *table,
		      const struct flexmem_request *request)
{
	return orders[table->settings.order].acquire_first &&
	       !request->reuses &&
	       !flexmem_function_is_unresponsive(&table->function) &&
	       table->settings.acquire == FLEXMEM_ACQUIRE_LAZY &&
	       (is_unsure(table, request->domains) ||
		may_acquire(table, request)) &&
	       !flexmem_account_has_regions(request->account) &&
	       !flexmem_account_refuses_region(request->account);
}

/*
 * Whether @size is larger than any region of these domains can be, whatever the
 * capacity is.
 */
static bool exceeds_sizes(const struct flexmem_table *table, u64 domains,
			  u64 size)
{
	const struct flexmem_domain *domain;

	flexmem_for_each_domain(domain, table, domains)
		if (size <= flexmem_domain_largest_of(domain, U64_MAX))
			return false;
	return true;
}

/*
 * Whether a block is larger than any region of these domains (a bit mask) could
 * be. If a capacity may have changed, only the sizes of regions are compared.
 */
bool flexmem_place_is_impossible(struct flexmem_table *table, u64 domains,
				 u64 size)
{
	return exceeds_sizes(table, domains, size) ||
	       (size > flexmem_table_max_region(table, domains) &&
		!is_unsure(table, domains));
}

/*
 * Counts free memory for the report of a failure.
 * @domains: bit mask of the domains that the request could use. @place:
 * receives the present figures of all regions of this kind in these domains.
 */
void flexmem_place_stats(struct flexmem_table *table,
			 const struct flexmem_account *account,
			 enum flexmem_kind kind, u64 domains,
			 struct flexmem_place *place)
{
	u64 slots = candidates(table, flexmem_table_kind(table, kind), domains);
	struct flexmem_region *region;
	unsigned int slot;
	u64 room, free;

	place->total_free = 0;
	place->largest_free = 0;
	place->largest_closed = 0;
	place->regions = 0;
	rcu_read_lock();
	for (slot = 0; slot < table->slots.nr; slot++) {
		region = rcu_dereference(table->region[slot]);
		if (!region)
			continue;
		place->regions++;
		if (!(slots & BIT_ULL(slot)))
			continue;
		room = flexmem_region_room(region, &free);
		if (flexmem_region_is_closed(region, account)) {
			place->largest_closed = max(place->largest_closed,
						    room);
			continue;
		}
		place->total_free += free;
		place->largest_free = max(place->largest_free, room);
	}
	rcu_read_unlock();
	place->max_region = flexmem_table_max_region(table, domains);
	spin_lock(&table->accounts.lock);
	place->leaving = table->accounts.bytes[FLEXMEM_USE_ORPHANED];
	spin_unlock(&table->accounts.lock);
}

/*
 * Whether the reason means that enough bytes are free, but not in a suitable
 * hole.
 */
static bool is_in_pieces(enum flexmem_reason reason)
{
	return reason == FLEXMEM_REASON_FRAGMENTATION ||
	       reason == FLEXMEM_REASON_ALIGNMENT;
}

static enum flexmem_reason why_no_region(const struct flexmem_table *table,
					 const struct flexmem_request *request)
{
	enum flexmem_kind kind = flexmem_table_kind(table, request->kind);

	return flexmem_table_exhausted(table, kind, request->domains, 0) ?:
	       FLEXMEM_REASON_CAPACITY;
}

static int explain(struct flexmem_table *table,
		   const struct flexmem_request *request,
		   struct flexmem_place *place)
{
	enum flexmem_reason refusal = place->reason;

	flexmem_place_stats(table, request->account, request->kind,
			    request->domains, place);
	if (refusal)
		place->reason = refusal;
	else if (request->size > place->max_region)
		place->reason = FLEXMEM_REASON_REGION_SIZE;
	else if (request->size <= place->largest_closed)
		place->reason = FLEXMEM_REASON_RESERVED;
	else if (request->size > place->total_free)
		place->reason = why_no_region(table, request);
	else if (place->gave_up)
		place->reason = FLEXMEM_REASON_ALIGNMENT;
	else
		place->reason = FLEXMEM_REASON_FRAGMENTATION;
	if (is_in_pieces(place->reason))
		place->region_reason = why_no_region(table, request);
	return -ENOMEM;
}

/*
 * Lets the worker send the commands to the firmware. If the caller is killed,
 * the worker uncharges the bytes.
 */
static int place_by_growing(struct flexmem_table *table,
			    const struct flexmem_request *request,
			    struct flexmem_spare *spare,
			    struct flexmem_place *place, bool acquire_first)
{
	struct growth *growth = make_growth(table, request, spare);
	int rc;

	if (!growth)
		return -ENOMEM;
	growth->acquire_first = acquire_first;
	if (!flexmem_job_run(&growth->job)) {
		place->abandoned = true;
		return -EINTR;
	}
	rc = growth->job.rc;
	*place = growth->place;
	*spare = growth->spare;
	growth->place.block = NULL;
	growth->spare = (struct flexmem_spare) {};
	end_growth(&growth->job);
	return rc;
}

/*
 * Tries the existing regions again, because no region can be acquired now.
 * Takes acquire_lock, because a TRIM under way may hide a region that it does
 * not release in the end. Returns -EAGAIN if a region may be acquired now.
 */
static int place_without_growing(struct flexmem_table *table,
				 const struct flexmem_request *request,
				 struct flexmem_spare *spare,
				 struct flexmem_place *place)
{
	enum flexmem_kind kind = flexmem_table_kind(table, request->kind);
	int rc;

	if (mutex_lock_killable(&table->acquire_lock))
		return -EINTR;
	flexmem_reservations_forget(table);
	rc = flexmem_function_fatal(&table->function);
	if (!rc && (may_acquire(table, request) ||
		    !flexmem_function_is_settled(&table->function) ||
		    is_unsure(table, request->domains)))
		rc = -EAGAIN;
	if (!rc && !place_in_existing(table, kind, request, spare, place))
		rc = -ENOSPC;
	mutex_unlock(&table->acquire_lock);
	return rc;
}

static int place_once(struct flexmem_table *table,
		      const struct flexmem_request *request,
		      struct flexmem_spare *spare, struct flexmem_place *place)
{
	enum flexmem_kind kind = flexmem_table_kind(table, request->kind);
	bool acquire_first;
	int rc;

	*place = (struct flexmem_place) {};
	acquire_first = wants_new(table, request);
	if (!acquire_first &&
	    place_in_existing(table, kind, request, spare, place))
		return 0;

	place->reason = FLEXMEM_REASON_NONE;
	if (flexmem_place_is_impossible(table, request->domains, request->size))
		return explain(table, request, place);
	rc = may_acquire(table, request) ?
		-EAGAIN : place_without_growing(table, request, spare, place);
	if (rc == -EAGAIN)
		rc = place_by_growing(table, request, spare, place,
				      acquire_first);
	/*
	 * Tries the existing regions: they may have room, although no region
	 * could be acquired.
	 */
	if ((rc == -ETIMEDOUT || rc == -ENOMEM) && acquire_first &&
	    place_in_existing(table, kind, request, spare, place))
		return 0;
	if (rc == -ENOSPC)
		return explain(table, request, place);
	/* Only -ENOMEM for lack of device memory has a reason. */
	place->reason = FLEXMEM_REASON_NONE;
	return rc;
}

/*
 * Finds room for an allocation.
 * @request: request, whose bytes are charged; after an error they are
 * uncharged. @stock: stock of the client's spare block nodes, or NULL. @place:
 * receives the block; on -ENOMEM, the reason.
 * Context: may sleep: it allocates block nodes, charged to the caller's memory
 * cgroup, and waits for the worker if a region may have to be acquired. Return:
 * 0; -ENOMEM, with the reason in @place (FLEXMEM_REASON_NONE if the kernel has
 * no memory); -EINTR if the caller was killed while it waited; -ENODEV if the
 * device is being removed; or an error of the firmware.
 */
int flexmem_place(struct flexmem_table *table,
		  const struct flexmem_request *request,
		  struct flexmem_stock *stock, struct flexmem_place *place)
{
	struct flexmem_spare spare;
	int rc;

	rc = flexmem_spare_fill(&spare, flexmem_spares_for_request(request),
				stock);
	if (rc) {
		*place = (struct flexmem_place) {};
		goto uncharge;
	}
	rc = place_once(table, request, &spare, place);
	flexmem_spare_drop(&spare, stock);
	if (!rc || place->abandoned)
		return rc;
uncharge:
	flexmem_uncharge(request->account, request->size, 0);
	return rc;
}
