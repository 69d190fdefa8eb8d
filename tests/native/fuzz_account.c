// SPDX-License-Identifier: GPL-2.0
/* The model's accounts. It adds up all allocations and keeps no counter. */
#include "shim/internal.h"

#include "fuzz.h"

static bool exceeds(u64 used, u64 more, u64 limit)
{
	return used > limit || more > limit - used;
}

struct fuzz_allocation *fuzz_add(struct fuzz *f,
				 const struct fuzz_allocation *allocation)
{
	f->allocation[f->nr] = *allocation;
	f->allocation[f->nr].serial = ++f->last_serial;
	return &f->allocation[f->nr++];
}

void fuzz_drop(struct fuzz *f, struct fuzz_allocation *allocation)
{
	*allocation = f->allocation[--f->nr];
}

/* Adds the slots of reserved regions. */
static void count_reserved(const struct fuzz *f, u64 *slots)
{
	const struct model_region *region = f->model->region;
	unsigned int slot, i;

	for (slot = 0; slot < f->model->slots; slot++)
		if (region[slot].there && region[slot].reserved_for)
			for (i = region[slot].reserved_for; i >= FUZZ_FILES; i--)
				slots[i] |= BIT_ULL(slot);
}

/* For each owner a bit mask of the slots that are charged to it. */
static void count_slots(const struct fuzz *f, u64 *slots)
{
	const struct fuzz_allocation *a;
	unsigned int i;

	memset(slots, 0, FUZZ_OWNERS * sizeof(*slots));
	for (a = f->allocation; a < f->allocation + f->nr; a++) {
		if (a->lost)
			continue;
		for_each_account(i, a->file)
			slots[i] |= BIT_ULL(a->slot);
	}
	count_reserved(f, slots);
}

static void count_allocation(const struct fuzz *f,
			     const struct fuzz_allocation *a,
			     struct fuzz_use *use)
{
	use->used[HANDLES] += !a->index;
	if (a->lost)
		return;
	use->used[BYTES] += a->size;
	use->orphaned += a->handle ? 0 : a->size;
	if (a->flags & FLEXMEM_ALLOC_PROGRAM)
		use->program += a->size;
}

/**
 * fuzz_count - count what each owner uses
 * @f: input
 * @count: receives the sums
 */
void fuzz_count(const struct fuzz *f, struct fuzz_count *count)
{
	const struct fuzz_allocation *a;
	u64 slots[FUZZ_OWNERS];
	unsigned int i, file;

	*count = (struct fuzz_count) {};
	for (a = f->allocation; a < f->allocation + f->nr; a++)
		for_each_account(i, a->file)
			count_allocation(f, a, &count->of[i]);
	for (file = 0; file < FUZZ_FILES; file++)
		if (f->owner[file].there)
			for_each_account(i, file)
				count->of[i].used[FILES]++;
	count_slots(f, slots);
	for (i = 0; i < FUZZ_OWNERS; i++)
		count->of[i].used[SLOTS] = hweight64(slots[i]);
}

void fuzz_new_owner(struct fuzz *f, unsigned int owner)
{
	unsigned int i;

	f->owner[owner] = (struct fuzz_owner) {
		.there = true,
		.id = owner < FUZZ_FILES ? ++f->last_id : 0,
	};
	for (i = 0; i < FLEXMEM_NR_RESOURCES; i++)
		f->owner[owner].limit[i] = FLEXMEM_NO_LIMIT;
}

/*
 * Makes the missing accounts of a cgroup and of its ancestors. A cgroup has an
 * account from its first file, limit or reservation on.
 */
void fuzz_need_cgroup(struct fuzz *f, unsigned int leaf)
{
	for (; leaf >= FUZZ_FILES; leaf--)
		if (!f->owner[leaf].there)
			fuzz_new_owner(f, leaf);
}

/* The number of regions that should be reserved for an owner. */
unsigned int fuzz_reservation(const struct fuzz *f, unsigned int owner)
{
	const struct model *model = f->model;
	unsigned int i;

	for (i = 0; i < model->nr_reservations; i++)
		if (model->reservation[i].holder == owner)
			return model->reservation[i].count;
	return 0;
}

static bool is_needed(const struct fuzz *f, unsigned int cgroup)
{
	unsigned int i;

	for (i = 0; i < FLEXMEM_NR_RESOURCES; i++)
		if (f->owner[cgroup].limit[i] != FLEXMEM_NO_LIMIT)
			return true;
	for (i = 0; i < FUZZ_FILES; i++)
		if (f->owner[i].there && fuzz_leaf_of(i) == cgroup)
			return true;
	return fuzz_reservation(f, cgroup);
}

/*
 * Forgets each cgroup without a file, a limit and a reservation, if all cgroups
 * below it are forgotten, too.
 */
void fuzz_forget_cgroups(struct fuzz *f)
{
	unsigned int i;

	for (i = FUZZ_OWNERS - 1; i >= FUZZ_FILES; i--) {
		if (f->owner[i].there && is_needed(f, i))
			break;
		f->owner[i].there = false;
	}
}

/* Raises the peaks after a charge. */
void fuzz_note_peak(struct fuzz *f, unsigned int file)
{
	struct fuzz_count count;
	unsigned int i;

	fuzz_count(f, &count);
	for_each_account(i, file)
		f->owner[i].peak = max(f->owner[i].peak,
				       count.of[i].used[BYTES]);
}

static unsigned int free_slots(const struct fuzz *f)
{
	const struct model_region *region = f->model->region;
	unsigned int slot, nr = 0;

	for (slot = 0; slot < f->model->tensors.end; slot++)
		nr += !region[slot].there && !region[slot].refused;
	return nr;
}

static u64 spare_capacity(const struct model_domain *domain)
{
	return domain->capacity > domain->taken ?
		domain->capacity - domain->taken : 0;
}

/* The largest size below @below that the device has not refused, or 0. */
static u64 next_size(const struct model_domain *domain, u64 below)
{
	unsigned int i;
	u64 size = 0;

	for (i = 0; i < domain->nr_sizes; i++)
		if (domain->sizes[i] < below &&
		    domain->sizes[i] < domain->too_large)
			size = max(size, domain->sizes[i]);
	return size;
}

/*
 * How many bytes the device would still grant, in one region after the other.
 */
static u64 acquirable(const struct model_domain *domain, unsigned int *slots)
{
	u64 size = next_size(domain, ~0ULL), bytes = 0;
	u64 capacity = spare_capacity(domain);

	while (*slots && size) {
		if (size > capacity) {
			size = next_size(domain, size);
			continue;
		}
		--*slots;
		capacity -= size;
		bytes += size;
	}
	if (*slots && capacity && capacity < model_most(domain) &&
	    capacity < domain->too_large) {
		--*slots;
		bytes += capacity;
	}
	return bytes;
}

/* The bytes in use, which decide the memory pressure. */
u64 fuzz_in_use(const struct fuzz *f)
{
	struct model_sums sums;

	model_sum(f->model, &sums);
	return sums.total - sums.free;
}

u64 fuzz_memory(const struct fuzz *f)
{
	const struct model *model = f->model;
	unsigned int slots = model->tensors.no_slot ? 0 : free_slots(f);
	const struct model_pending *pending = model->pending;
	u64 memory = 0;
	unsigned int i;

	for (i = 0; i < model->nr_domains; i++)
		memory += model->domain[i].taken +
			  acquirable(&model->domain[i], &slots);
	for (; pending < model->pending + MODEL_MAX_PENDING; pending++)
		if (pending->stamp && pending->piece >= 0 && !model->broken)
			memory -= model->piece_size[pending->piece];
	return memory;
}

/*
 * The bytes that the current file could free. Lost allocations are not charged.
 */
u64 fuzz_client_used(const struct fuzz *f)
{
	struct fuzz_count count;

	fuzz_count(f, &count);
	return count.of[f->who].used[BYTES] - count.of[f->who].orphaned;
}

/* ---- limits ---- */

/**
 * fuzz_limit - the limit that is in effect for an account
 * @f: input
 * @owner: number of a file, which has no limit, or of a cgroup
 * @r: resource
 *
 * Return: the account's own limit; without one, the default.
 */
u64 fuzz_limit(const struct fuzz *f, unsigned int owner, unsigned int r)
{
	if (owner < FUZZ_FILES)
		return FLEXMEM_NO_LIMIT;
	if (f->owner[owner].there &&
	    f->owner[owner].limit[r] != FLEXMEM_NO_LIMIT)
		return f->owner[owner].limit[r];
	return owner - FUZZ_FILES == f->settings.default_depth ?
	       f->default_limit[r] : FLEXMEM_NO_LIMIT;
}

/* The same for a limit of regions. @slots: those that are charged to the owner. */
static u64 regions_limit(const struct fuzz *f, unsigned int file,
			 unsigned int owner, u64 slots, u64 *left)
{
	const struct model *model = f->model;
	u64 further = model_max_region(model, model->default_domains);
	u64 more = fuzz_limit(f, owner, SLOTS), bytes = 0;
	struct flexmem_region_entry region;

	*left = FLEXMEM_NO_LIMIT;
	if (more >= FLEXMEM_MAX_SLOTS)
		return FLEXMEM_NO_LIMIT;
	*left = 0;
	for (; slots; slots &= slots - 1) {
		more -= !!more;
		model_region_entry(model, __ffs64(slots), &region);
		if (region.flags & FLEXMEM_REGION_PROGRAM ||
		    !(model->default_domains >> region.domain & 1) ||
		    model_is_closed(model, __ffs64(slots), file))
			continue;
		bytes += region.total;
		*left += region.free;
	}
	*left += more * further;
	return bytes + more * further;
}

/**
 * fuzz_bytes_limit - what the limits of bytes and regions let a file have
 * @f: input
 * @file: number of the file
 * @left: receives what they still allow
 *
 * Return: the least that a limit lets it have for tensors.
 */
u64 fuzz_bytes_limit(const struct fuzz *f, unsigned int file, u64 *left)
{
	u64 limit, regions, free, programs, smallest = FLEXMEM_NO_LIMIT;
	u64 slots[FUZZ_OWNERS];
	struct fuzz_count count;
	unsigned int i;

	*left = FLEXMEM_NO_LIMIT;
	fuzz_count(f, &count);
	count_slots(f, slots);
	for_each_account(i, file) {
		regions = regions_limit(f, file, i, slots[i], &free);
		smallest = min(smallest, regions);
		*left = min(*left, free);
		limit = fuzz_limit(f, i, BYTES);
		if (limit == FLEXMEM_NO_LIMIT)
			continue;
		programs = f->model->program_slots ? count.of[i].program : 0;
		*left = min(*left, limit - min(limit, count.of[i].used[BYTES]));
		smallest = min(smallest, limit - min(limit, programs));
	}
	return smallest;
}

static enum flexmem_reason refuses(const struct fuzz *f,
				   const struct fuzz_count *count,
				   unsigned int owner, u64 size, u64 slots)
{
	const struct fuzz_use *use = &count->of[owner];

	if (exceeds(use->used[BYTES], size, fuzz_limit(f, owner, BYTES)))
		return FLEXMEM_REASON_CGROUP_LIMIT;
	if (slots &&
	    exceeds(use->used[SLOTS], slots, fuzz_limit(f, owner, SLOTS)))
		return FLEXMEM_REASON_REGION_LIMIT;
	return FLEXMEM_REASON_NONE;
}

/* Counts as if the file had the allocation @more as well. */
static void count_with(struct fuzz *f, const struct fuzz_allocation *more,
		       struct fuzz_count *count)
{
	struct fuzz_allocation *a = fuzz_add(f, more);

	fuzz_count(f, count);
	fuzz_drop(f, a);
}

/**
 * fuzz_charge - check whether a file may have further bytes in a slot
 * @f: input
 * @file: number of the file
 * @slot: slot of the region
 * @size: bytes
 *
 * Return: FLEXMEM_REASON_NONE or the limit that forbids it.
 */
enum flexmem_reason fuzz_charge(struct fuzz *f, unsigned int file,
				unsigned int slot, u64 size)
{
	const struct fuzz_allocation more = {
		.file = file,
		.slot = slot,
		.size = size,
	};
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	struct fuzz_count before, after;
	unsigned int i;

	fuzz_count(f, &before);
	count_with(f, &more, &after);
	for_each_account(i, file)
		reason = reason ?: refuses(f, &before, i, size,
					   after.of[i].used[SLOTS] -
					   before.of[i].used[SLOTS]);
	return reason;
}

bool fuzz_may_open(const struct fuzz *f, unsigned int file)
{
	struct fuzz_count count;
	unsigned int i;

	fuzz_count(f, &count);
	for_each_account(i, file)
		if (exceeds(count.of[i].used[FILES], 1, fuzz_limit(f, i, FILES)))
			return false;
	return true;
}

/*
 * Returns the reason why the file may not have another handle, or
 * FLEXMEM_REASON_NONE.
 */
enum flexmem_reason fuzz_charge_handle(struct fuzz *f, unsigned int file)
{
	struct fuzz_count count;
	unsigned int i;

	fuzz_count(f, &count);
	for_each_account(i, file)
		if (exceeds(count.of[i].used[HANDLES], 1,
			    fuzz_limit(f, i, HANDLES)))
			return FLEXMEM_REASON_CGROUP_LIMIT;
	return FLEXMEM_REASON_NONE;
}

static enum flexmem_reason refuse(const struct fuzz *f, unsigned int file,
				  u64 size, u64 slots)
{
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	struct fuzz_count count;
	unsigned int i;

	fuzz_count(f, &count);
	for_each_account(i, file)
		reason = reason ?: refuses(f, &count, i, size, slots);
	return reason;
}

/* Whether a limit forbids the file further bytes. */
enum flexmem_reason fuzz_charge_bytes(const struct fuzz *f, unsigned int file,
				      u64 size)
{
	return refuse(f, file, size, 0);
}

static enum flexmem_reason refuse_request(struct model *model,
					  const struct model_request *request)
{
	return refuse(model->priv, request->owner, request->size, 0);
}

static enum flexmem_reason refuse_charge(struct model *model,
					 const struct model_request *request,
					 unsigned int slot)
{
	return fuzz_charge(model->priv, request->owner, slot, request->size);
}

/*
 * Whether a limit refuses the request in a new region, which takes one more
 * slot.
 */
static enum flexmem_reason refuse_region(struct model *model,
					 const struct model_request *request)
{
	return refuse(model->priv, request->owner, request->size, 1);
}

static bool is_below(unsigned int file, unsigned int holder)
{
	unsigned int i;

	for_each_account(i, file)
		if (i == holder)
			return true;
	return false;
}

static bool holder_is_full(struct model *model, unsigned int holder)
{
	const struct fuzz *f = model->priv;
	struct fuzz_count count;
	unsigned int i;

	fuzz_count(f, &count);
	for (i = holder; i >= FUZZ_FILES; i--)
		if (exceeds(count.of[i].used[SLOTS], 1, fuzz_limit(f, i, SLOTS)))
			return true;
	return false;
}

const struct model_rules fuzz_rules = {
	.request = refuse_request,
	.charge = refuse_charge,
	.region = refuse_region,
	.is_below = is_below,
	.holder_is_full = holder_is_full,
};
