// SPDX-License-Identifier: GPL-2.0
/*
 * Who may have how much, by sums over all allocations: no counter is kept.
 */
#include "internal.h"

#include "fuzz.h"

static u64 shortfall(u64 wanted, u64 there)
{
	return wanted > there ? wanted - there : 0;
}

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

/* Whether owners share what is in a slot. */
static bool is_shared(const struct fuzz *f, unsigned int slot)
{
	return f->keeper[slot] == NO_KEEPER &&
	       slot < f->model->tensors.end;
}

/* In which slots somebody has bytes, a bit each. */
static void count_slots(const struct fuzz *f, u64 *slots)
{
	const struct fuzz_allocation *a;

	memset(slots, 0, FUZZ_OWNERS * sizeof(*slots));
	for (a = f->allocation; a < f->allocation + f->nr; a++) {
		if (a->lost)
			continue;
		slots[a->file] |= BIT_ULL(a->slot);
		slots[fuzz_user_of(a->file)] |= BIT_ULL(a->slot);
	}
}

static void count_allocation(const struct fuzz *f,
			     const struct fuzz_allocation *a,
			     struct fuzz_use *use)
{
	use->used[HANDLES] += a->handle != 0;
	if (a->lost)
		return;
	use->used[BYTES] += a->size;
	use->orphaned += a->handle ? 0 : a->size;
	if (a->flags & FLEXMEM_ALLOC_PROGRAM)
		use->program += a->size;
}

static u64 quarantined_in(const struct model_region *region)
{
	unsigned int i;
	u64 bytes = 0;

	for (i = 0; region->there && i < region->nr; i++)
		if (region->block[i].quarantined)
			bytes += region->block[i].size;
	return bytes;
}

/* What is guaranteed to files, and what they have of it. */
static void count_promises_of_files(const struct fuzz *f,
				    struct fuzz_count *count)
{
	unsigned int i;

	for (i = 0; i < FUZZ_FILES; i++) {
		const u64 *guarantee = f->owner[i].guarantee;
		struct fuzz_use *user = &count->of[fuzz_user_of(i)];
		struct fuzz_use *use = &count->of[i];

		if (!f->owner[i].there)
			continue;
		user->promised[BYTES] += shortfall(guarantee[BYTES],
						   use->shared);
		user->promised[SLOTS] += shortfall(guarantee[SLOTS],
						   use->reserved_used);
		user->promised[HANDLES] += shortfall(guarantee[HANDLES],
						     use->used[HANDLES]);
		user->shared += shortfall(use->shared, guarantee[BYTES]);
	}
}

static void count_promises(const struct fuzz *f, struct fuzz_count *count)
{
	unsigned int i;

	count_promises_of_files(f, count);
	for (i = 0; i < FUZZ_OWNERS; i++) {
		const u64 *guarantee = f->owner[i].guarantee;

		if (!f->owner[i].there)
			continue;
		count->promised += shortfall(guarantee[BYTES],
					     count->of[i].shared);
		count->promised_slots += shortfall(guarantee[SLOTS],
						   count->of[i].reserved);
	}
}

/**
 * fuzz_count - count everything
 * @f: input
 * @count: receives it
 */
void fuzz_count(const struct fuzz *f, struct fuzz_count *count)
{
	const struct fuzz_allocation *a;
	unsigned int i, slot;
	u64 slots[FUZZ_OWNERS];

	*count = (struct fuzz_count) {};
	for (a = f->allocation; a < f->allocation + f->nr; a++) {
		count_allocation(f, a, &count->of[a->file]);
		count_allocation(f, a, &count->of[fuzz_user_of(a->file)]);
		if (a->lost || !is_shared(f, a->slot))
			continue;
		count->of[a->file].shared += a->size;
		count->shared_used += a->size;
	}
	count_slots(f, slots);
	for (i = 0; i < FUZZ_OWNERS; i++)
		count->of[i].used[SLOTS] = hweight64(slots[i]);
	for (slot = 0; slot < f->model->slots; slot++) {
		i = f->keeper[slot];
		if (is_shared(f, slot))
			count->shared_used +=
				quarantined_in(&f->model->region[slot]);
		if (i == NO_KEEPER)
			continue;
		count->of[i].reserved++;
		count->of[i].reserved_used += slots[i] >> slot & 1;
	}
	count_promises(f, count);
}

void fuzz_new_owner(struct fuzz *f, unsigned int owner)
{
	unsigned int i;

	f->owner[owner] = (struct fuzz_owner) {
		.there = true,
		.id = ++f->last_id,
	};
	for (i = 0; i < FLEXMEM_NR_RESOURCES; i++)
		f->owner[owner].limit[i] = FLEXMEM_NO_LIMIT;
}

/* What was charged a moment ago. */
void fuzz_note_peak(struct fuzz *f, unsigned int file)
{
	struct fuzz_owner *user = &f->owner[fuzz_user_of(file)];
	struct fuzz_owner *client = &f->owner[file];
	struct fuzz_count count;

	fuzz_count(f, &count);
	client->peak = max(client->peak, count.of[file].used[BYTES]);
	user->peak = max(user->peak,
			 count.of[fuzz_user_of(file)].used[BYTES]);
}

/* What the device still gives. */

static unsigned int free_slots(const struct fuzz *f)
{
	const struct model_region *region = f->model->region;
	unsigned int slot, nr = 0;

	for (slot = 0; slot < f->model->tensors.end; slot++)
		nr += !region[slot].there && !region[slot].refused;
	return nr;
}

static u64 spare_capacity(const struct fuzz *f)
{
	return shortfall(f->model->capacity, f->model->taken);
}

static u64 smallest_size(const struct fuzz *f)
{
	u64 least = f->settings.sizes[0];
	unsigned int i;

	for (i = 0; i < f->settings.nr_sizes; i++)
		least = min(least, f->settings.sizes[i]);
	return least;
}

/* The largest size below @below that can be had, or 0. */
static u64 next_size(const struct fuzz *f, u64 below)
{
	unsigned int i;
	u64 size = 0;

	for (i = 0; i < f->settings.nr_sizes; i++)
		if (f->settings.sizes[i] < below &&
		    f->settings.sizes[i] < f->model->too_large)
			size = max(size, f->settings.sizes[i]);
	return size;
}

/* One region after the other, the largest that still can be had. */
static u64 acquirable(const struct fuzz *f, unsigned int slots, u64 capacity)
{
	u64 size = next_size(f, ~0ULL), bytes = 0;

	if (f->model->tensors.exhausted)
		return 0;
	while (slots && size) {
		if (size > capacity) {
			size = next_size(f, size);
			continue;
		}
		slots--;
		capacity -= size;
		bytes += size;
	}
	return bytes;
}

static u64 reach(const struct fuzz *f, unsigned int slots, u64 capacity)
{
	u64 bytes = acquirable(f, slots, capacity);
	unsigned int slot;

	for (slot = 0; slot < f->model->tensors.end; slot++)
		if (f->model->region[slot].there && is_shared(f, slot))
			bytes += f->model->region[slot].total;
	return bytes;
}

static u64 reach_now(const struct fuzz *f, const struct fuzz_count *count)
{
	u64 kept = count->promised_slots * smallest_size(f);

	return reach(f, shortfall(free_slots(f), count->promised_slots),
		     shortfall(spare_capacity(f), kept));
}

/* What the pressure depends on. */
u64 fuzz_in_use(const struct fuzz *f)
{
	struct model_sums sums;

	model_sum(f->model, &sums);
	return sums.total - sums.free;
}

u64 fuzz_memory(const struct fuzz *f)
{
	return f->model->taken +
	       acquirable(f, free_slots(f), spare_capacity(f));
}

/* What the file whose turn it is could free; what was lost is charged no more. */
u64 fuzz_client_used(const struct fuzz *f)
{
	struct fuzz_count count;
	u64 bytes = 0;
	unsigned int i;

	fuzz_count(f, &count);
	for (i = 0; i < f->nr; i++)
		if (f->allocation[i].file == f->who && f->allocation[i].named &&
		    f->allocation[i].handle)
			bytes += f->allocation[i].size;
	return min(bytes, count.of[f->who].used[BYTES] -
			  count.of[f->who].orphaned);
}

/* Limits, and what others are guaranteed. */

static u64 counted(const struct fuzz_count *count, unsigned int owner,
		   unsigned int resource)
{
	return count->of[owner].used[resource] +
	       count->of[owner].promised[resource];
}

static bool user_refuses(const struct fuzz *f, const struct fuzz_count *before,
			 const struct fuzz_count *after, unsigned int user,
			 unsigned int resource)
{
	u64 now = counted(after, user, resource);

	return now > counted(before, user, resource) &&
	       now > f->owner[user].limit[resource];
}

static enum flexmem_reason client_refuses(const struct fuzz *f,
					  const struct fuzz_count *count,
					  unsigned int file, u64 size,
					  u64 slots)
{
	const struct fuzz_use *use = &count->of[file];
	const u64 *limit = f->owner[file].limit;

	if (exceeds(use->used[BYTES], size, limit[BYTES]))
		return FLEXMEM_REASON_CLIENT_LIMIT;
	if (slots && exceeds(use->used[SLOTS], slots, limit[SLOTS]))
		return FLEXMEM_REASON_CLIENT_LIMIT;
	return FLEXMEM_REASON_NONE;
}

/* As it would be with an allocation more. */
static void count_with(struct fuzz *f, const struct fuzz_allocation *more,
		       struct fuzz_count *count)
{
	struct fuzz_allocation *a = fuzz_add(f, more);

	fuzz_count(f, count);
	fuzz_drop(f, a);
}

/**
 * fuzz_charge - may a file have bytes in a slot
 * @f: input
 * @file: its number
 * @slot: where
 * @size: bytes
 *
 * Return: FLEXMEM_REASON_NONE or what forbids it.
 */
enum flexmem_reason fuzz_charge(struct fuzz *f, unsigned int file,
				unsigned int slot, u64 size)
{
	const struct fuzz_allocation more = {
		.file = file,
		.slot = slot,
		.size = size,
	};
	unsigned int user = fuzz_user_of(file), keeper = f->keeper[slot];
	struct fuzz_count before, after;
	enum flexmem_reason reason;

	fuzz_count(f, &before);
	count_with(f, &more, &after);
	reason = client_refuses(f, &before, file, size,
				after.of[file].used[SLOTS] -
				before.of[file].used[SLOTS]);
	if (reason)
		return reason;
	if (keeper != NO_KEEPER && keeper != file && keeper != user)
		return FLEXMEM_REASON_GUARANTEE;
	if (user_refuses(f, &before, &after, user, BYTES) ||
	    user_refuses(f, &before, &after, user, SLOTS))
		return FLEXMEM_REASON_USER_LIMIT;
	if (after.promised &&
	    after.shared_used + after.promised >
			before.shared_used + before.promised &&
	    after.shared_used + after.promised > reach_now(f, &after))
		return FLEXMEM_REASON_GUARANTEE;
	return FLEXMEM_REASON_NONE;
}

/* Likewise, one more handle. */
enum flexmem_reason fuzz_charge_handle(struct fuzz *f, unsigned int file)
{
	const struct fuzz_allocation more = {
		.file = file,
		.handle = 1,
		.lost = true,
	};
	struct fuzz_count before, after;

	fuzz_count(f, &before);
	count_with(f, &more, &after);
	if (exceeds(before.of[file].used[HANDLES], 1,
		    f->owner[file].limit[HANDLES]))
		return FLEXMEM_REASON_CLIENT_LIMIT;
	if (user_refuses(f, &before, &after, fuzz_user_of(file), HANDLES))
		return FLEXMEM_REASON_USER_LIMIT;
	return FLEXMEM_REASON_NONE;
}

/* Whose a region would be that is acquired now. */
static unsigned int next_keeper(const struct fuzz *f,
				const struct fuzz_count *count,
				unsigned int file)
{
	unsigned int user = fuzz_user_of(file);

	if (f->owner[file].guarantee[SLOTS] > count->of[file].reserved)
		return file;
	if (f->owner[user].guarantee[SLOTS] > count->of[user].reserved)
		return user;
	return NO_KEEPER;
}

/* What counts as its user's of bytes more. */
static u64 growth_of_user(const struct fuzz *f, const struct fuzz_count *count,
			  unsigned int file, u64 size)
{
	return shortfall(size, shortfall(f->owner[file].guarantee[BYTES],
					 count->of[file].shared));
}

static bool user_has_no_room(const struct fuzz *f,
			     const struct fuzz_count *count, unsigned int user,
			     unsigned int resource, u64 growth)
{
	return growth && exceeds(counted(count, user, resource), growth,
				 f->owner[user].limit[resource]);
}

static enum flexmem_reason refuse_request(struct model *model,
					  const struct model_request *request)
{
	const struct fuzz *f = model->priv;
	unsigned int file = request->owner;
	enum flexmem_reason reason;
	struct fuzz_count count;

	fuzz_count(f, &count);
	reason = client_refuses(f, &count, file, request->size, 0);
	if (reason)
		return reason;
	if (user_has_no_room(f, &count, fuzz_user_of(file), BYTES,
			     growth_of_user(f, &count, file, request->size)))
		return FLEXMEM_REASON_USER_LIMIT;
	return FLEXMEM_REASON_NONE;
}

static enum flexmem_reason refuse_charge(struct model *model,
					 const struct model_request *request,
					 unsigned int slot)
{
	return fuzz_charge(model->priv, request->owner, slot, request->size);
}

/* The limits, if the file gets something in a new region. */
static enum flexmem_reason refuse_in_new(const struct fuzz *f,
					 const struct fuzz_count *count,
					 const struct model_request *request,
					 bool program)
{
	unsigned int file = request->owner, user = fuzz_user_of(file);
	unsigned int keeper = program ? NO_KEEPER : next_keeper(f, count, file);
	u64 bytes = request->size, slots = 1;
	enum flexmem_reason reason;

	reason = client_refuses(f, count, file, bytes, 1);
	if (reason)
		return reason;
	if (keeper == NO_KEEPER && !program)
		bytes = growth_of_user(f, count, file, bytes);
	if (keeper == file && f->owner[file].guarantee[SLOTS] >
			      count->of[file].reserved_used)
		slots = 0;
	if (user_has_no_room(f, count, user, BYTES, bytes) ||
	    user_has_no_room(f, count, user, SLOTS, slots))
		return FLEXMEM_REASON_USER_LIMIT;
	return FLEXMEM_REASON_NONE;
}

/*
 * Whether what is promised would be harder to keep with a region of that size.
 * If it cannot be kept anyway, that alone is no reason.
 */
static bool breaks_promises(const struct fuzz *f,
			    const struct fuzz_count *count,
			    const struct model_request *request, bool program,
			    u64 size)
{
	bool kept = request && !program &&
		    next_keeper(f, count, request->owner) != NO_KEEPER;
	u64 slots = free_slots(f), slots_then = shortfall(slots, !program);
	u64 spare = spare_capacity(f), spare_then = shortfall(spare, size);
	u64 promised = count->promised_slots, promised_then = promised - kept;
	u64 least = smallest_size(f), wanted, reach_then;
	unsigned int user;
	u64 growth = 0;

	if (!promised && !count->promised)
		return false;
	if (shortfall(promised_then, slots_then) > shortfall(promised, slots) ||
	    shortfall(promised_then * least, spare_then) >
			shortfall(promised * least, spare))
		return true;
	reach_then = reach(f, shortfall(slots_then, promised_then),
			   shortfall(spare_then, promised_then * least));
	if (!kept && !program)
		reach_then += size;
	if (!kept && !program && request) {
		user = fuzz_user_of(request->owner);
		growth = growth_of_user(f, count, request->owner,
					request->size);
		growth = shortfall(growth,
				   shortfall(f->owner[user].guarantee[BYTES],
					     count->of[user].shared));
	}
	wanted = count->shared_used + count->promised;
	return shortfall(wanted + growth, reach_then) >
	       shortfall(wanted, reach_now(f, count));
}

static enum flexmem_reason refuse_region(struct model *model,
					 const struct model_request *request,
					 bool program, u64 size)
{
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	const struct fuzz *f = model->priv;
	struct fuzz_count count;

	fuzz_count(f, &count);
	if (request)
		reason = refuse_in_new(f, &count, request, program);
	if (!reason && breaks_promises(f, &count, request, program, size))
		reason = FLEXMEM_REASON_GUARANTEE;
	return reason;
}

static void note_region(struct model *model,
			const struct model_request *request, unsigned int slot)
{
	struct fuzz *f = model->priv;
	struct fuzz_count count;

	fuzz_count(f, &count);
	f->keeper[slot] = NO_KEEPER;
	if (request && slot < model->tensors.end)
		f->keeper[slot] = next_keeper(f, &count, request->owner);
}

static bool is_open(struct model *model, const struct model_request *request,
		    unsigned int slot, bool *own)
{
	const struct fuzz *f = model->priv;
	unsigned int keeper = f->keeper[slot];

	*own = keeper != NO_KEEPER;
	return !*own || keeper == request->owner ||
	       keeper == fuzz_user_of(request->owner);
}

const struct model_rules fuzz_rules = {
	.request = refuse_request,
	.charge = refuse_charge,
	.region = refuse_region,
	.filled = note_region,
	.is_open = is_open,
};

/* Quotas. */

/* What is kept for an owner beyond its guarantee is shared again. */
static void share_again(struct fuzz *f, unsigned int owner)
{
	unsigned int slot = f->model->tensors.end;
	struct fuzz_count count;

	fuzz_count(f, &count);
	while (count.of[owner].reserved > f->owner[owner].guarantee[SLOTS] &&
	       slot--) {
		if (f->keeper[slot] != owner)
			continue;
		f->keeper[slot] = NO_KEEPER;
		fuzz_count(f, &count);
	}
}

/* Its file is closed. */
void fuzz_forget_guarantees(struct fuzz *f, unsigned int owner)
{
	memset(f->owner[owner].guarantee, 0, sizeof(f->owner[owner].guarantee));
	share_again(f, owner);
}

static bool can_keep(const struct fuzz *f, unsigned int owner,
		     unsigned int resource)
{
	struct fuzz_count count;
	unsigned int user;
	u64 least;

	fuzz_count(f, &count);
	if (owner < FUZZ_FILES) {
		user = fuzz_user_of(owner);
		if (counted(&count, user, resource) >
		    f->owner[user].limit[resource])
			return false;
	}
	if (resource == HANDLES)
		return true;
	least = count.promised_slots * smallest_size(f);
	if (count.promised_slots &&
	    (count.promised_slots > free_slots(f) ||
	     f->model->tensors.exhausted ||
	     least > spare_capacity(f)))
		return false;
	return !count.promised ||
	       count.shared_used + count.promised <= reach_now(f, &count);
}

static int set_guarantee(struct fuzz *f, unsigned int owner,
			 unsigned int resource, u64 guarantee)
{
	const u64 most[] = {
		[BYTES] = f->model->capacity,
		[SLOTS] = f->model->tensors.end,
		[HANDLES] = INT_MAX,
	};
	u64 *value = &f->owner[owner].guarantee[resource], old = *value;

	if (guarantee > most[resource])
		return -ENOSPC;
	*value = guarantee;
	if (guarantee > old && !can_keep(f, owner, resource)) {
		*value = old;
		return -ENOSPC;
	}
	share_again(f, owner);
	return 0;
}

/**
 * fuzz_set_quota - set what may be set
 * @f: input
 * @quota: what
 * @owner: whose
 *
 * Return: 0, -EINVAL or -ENOSPC.
 */
int fuzz_set_quota(struct fuzz *f, const struct flexmem_quota *quota,
		   unsigned int owner)
{
	unsigned int r = quota->resource;
	u64 *limit = &f->owner[owner].limit[r], old = *limit;
	u64 guarantee = f->owner[owner].guarantee[r], new = old;
	int rc = 0;

	if (quota->flags & FLEXMEM_QUOTA_LIMIT)
		new = quota->limit;
	if (quota->flags & FLEXMEM_QUOTA_GUARANTEE)
		guarantee = quota->guarantee;
	if (guarantee > new)
		return -EINVAL;
	*limit = new;
	if (quota->flags & FLEXMEM_QUOTA_GUARANTEE)
		rc = set_guarantee(f, owner, r, guarantee);
	if (rc)
		*limit = old;
	return rc;
}
