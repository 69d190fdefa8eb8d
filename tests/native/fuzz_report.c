// SPDX-License-Identifier: GPL-2.0
/*
 * Commands that report, and commands about limits: every member of the reply is
 * compared.
 */
#include "shim/internal.h"

#include "fuzz.h"
#include "parts/snapshot.h"
#include "world.h"

/* The offset of output lists in the window, behind the structs. */
#define LIST_OFFSET SZ_64K

/* A list that the caller passes, and the error that it must cause. */
struct list {
	u32 entry_size;
	u32 count;
	u8 *entries;
	int rc;
};

/* A list of @nr entries of @size bytes each. */
static struct list draw_list(struct fuzz *f, unsigned int nr, unsigned int size)
{
	struct list list = {
		.entry_size = size,
		.count = nr,
		.entries = (u8 *)native_user() + LIST_OFFSET,
	};
	u8 kind = fuzz_take(f);

	memset(list.entries, 0xee, SZ_64K);
	if (kind & 1)
		list.count = kind >> 3;
	if (list.count < nr)
		list.rc = -EMSGSIZE;
	if (kind & 2)
		list.entry_size += fuzz_take(f) * 8 % 512;
	if (kind == 9 || kind == 7)
		list.entry_size = kind == 9 ? size - 1 : 4097;
	if (kind == 6)
		list.entries = NULL;
	if (!list.rc && nr && !list.entries)
		list.rc = -EFAULT;
	if (list.entry_size < size || list.entry_size > 4096)
		list.rc = -EINVAL;
	return list;
}

/*
 * Returns the n-th entry, and checks that the bytes beyond the known members
 * are zero.
 */
static const void *entry_of(struct fuzz *f, const struct list *list,
			    unsigned int n, size_t size)
{
	const u8 *entry = list->entries + n * (size_t)list->entry_size;

	if (memchr_inv(entry + size, 0, list->entry_size - size))
		fuzz_wrong(f, "entry %u is not zero at its end", n);
	return entry;
}

static unsigned int nr_regions(const struct fuzz *f)
{
	unsigned int slot, nr = 0;

	for (slot = 0; slot < f->model->slots; slot++)
		nr += f->model->region[slot].there;
	return nr;
}

static void check_regions(struct fuzz *f, const struct list *list, bool all)
{
	const size_t size = sizeof(struct flexmem_region_entry);
	unsigned int slot, nr = 0;
	bool hidden;

	for (slot = 0; slot < f->model->slots; slot++) {
		if (!f->model->region[slot].there)
			continue;
		hidden = !all && !model_is_reserved(f->model, slot, f->who);
		fuzz_check_region(f, slot, hidden,
				  entry_of(f, list, nr++, size));
	}
}

/* Whether SEGMENTS lists the slot. */
static bool is_shown(const struct fuzz *f, unsigned int slot)
{
	return f->model->region[slot].there;
}

static unsigned int nr_shown(const struct fuzz *f)
{
	unsigned int slot, nr = 0;

	for (slot = 0; slot < f->model->slots; slot++)
		nr += is_shown(f, slot);
	return nr;
}

void fuzz_segments(struct fuzz *f)
{
	const size_t size = sizeof(struct flexmem_segment_entry);
	unsigned int nr = nr_shown(f), slot, i = 0;
	struct list list = draw_list(f, nr, size);
	struct flexmem_segments cmd = CMD(segments,
		.entry_size = list.entry_size, .count = list.count,
		.entries = (uintptr_t)list.entries);
	const struct flexmem_segment_entry *is;
	long rc;

	if (!fuzz_call(f, FLEXMEM_CMD_SEGMENTS, &cmd, sizeof(cmd), &rc))
		return;
	if (list.rc == -EINVAL) {
		SAME(f, rc, list.rc);
		return;
	}
	fuzz_answer(f, rc, list.rc);
	if (!f->late && list.rc != -EFAULT) {
		SAME(f, cmd.out_count, nr);
		SAME(f, cmd.out_generation, f->model->generation);
	}
	for (slot = 0; slot < f->model->slots && !list.rc; slot++) {
		if (!is_shown(f, slot))
			continue;
		is = entry_of(f, &list, i++, size);
		SAME(f, is->slot, slot);
		SAME(f, is->flags, slot < f->model->tensors.end ? 0 :
				   FLEXMEM_REGION_PROGRAM);
		SAME(f, is->region_id, fuzz_region_id(f, slot));
		SAME(f, is->length, f->model->region[slot].total);
	}
}

/*
 * Lists all owners, or those of the file only, in the order of the snapshot.
 * Returns their number.
 */
static unsigned int visible(const struct fuzz *f, unsigned int *owner, bool all)
{
	unsigned int i, nr = 0, at;

	if (!all) {
		owner[0] = fuzz_leaf_of(f->who);
		owner[1] = f->who;
		return 2;
	}
	for (i = FUZZ_FILES; i < FUZZ_OWNERS; i++)
		if (f->owner[i].there)
			owner[nr++] = i;
	for (i = 0; i < FUZZ_FILES; i++) {
		if (!f->owner[i].there)
			continue;
		for (at = nr++; at && owner[at - 1] < FUZZ_FILES &&
		     f->owner[owner[at - 1]].id > f->owner[i].id; at--)
			owner[at] = owner[at - 1];
		owner[at] = i;
	}
	return nr;
}

/* Checks the flags which say that the domains have no further region. */
static void check_exhausted(struct fuzz *f, u32 flags, u64 domains)
{
	const struct model *model = f->model;
	const struct model_range *programs = model->program_slots ?
		&model->programs : &model->tensors;

	SAME(f, !!(flags & FLEXMEM_REPORT_EXHAUSTED),
	     !!model_exhausted(model, &model->tensors, domains, 0));
	SAME(f, !!(flags & FLEXMEM_REPORT_PROGRAM_EXHAUSTED),
	     !!model_exhausted(model, programs, domains, 0));
}

/* Checks the figures of calls, which are hidden from users. */
static void check_counts(struct fuzz *f, const struct flexmem_snapshot *is)
{
	const struct model *model = f->model;
	struct flexmem_region_entry region;
	bool admin = fuzz_is_admin(f->who);
	u64 allocated = 0;
	unsigned int i;

	for (i = 0; i < model->slots; i++) {
		model_region_entry(f->model, i, &region);
		allocated += region.nr_allocated;
	}
	SAME(f, !!(is->out_flags & FLEXMEM_REPORT_HIDDEN), !admin);
	SAME(f, is->out_allocated, admin ? allocated : 0);
	SAME(f, is->out_allocs, admin ? f->allocs : 0);
	SAME(f, is->out_frees, admin ? f->allocs - allocated : 0);
	SAME(f, is->out_failures, admin ? f->failures : 0);
}

static void check_snapshot(struct fuzz *f, const struct flexmem_snapshot *is,
			   unsigned int owners, bool all)
{
	u64 reserved = fuzz_held_back(f, all), program = 0;
	struct fuzz_count count;
	struct model_sums want;
	unsigned int i;

	fuzz_count(f, &count);
	for (i = 0; i < FUZZ_FILES; i++)
		program += count.of[i].program;
	model_sum(f->model, &want);
	SAME(f, is->out_region_count, nr_regions(f));
	SAME(f, is->out_owner_count, owners);
	SAME(f, is->out_capacity, fuzz_capacity_of_all(f));
	SAME(f, is->out_total, want.total);
	SAME(f, is->out_free, want.free - reserved);
	SAME(f, is->out_reserved, reserved);
	SAME(f, is->out_owned, want.owned);
	SAME(f, is->out_orphaned, want.orphaned);
	SAME(f, is->out_quarantined, want.quarantined);
	SAME(f, is->out_scrubbed, f->fake->scrubbed);
	SAME(f, is->out_resets, f->resets);
	SAME(f, is->out_generation, f->model->generation);
	SAME(f, is->out_used_program, program);
	check_exhausted(f, is->out_flags, f->model->default_domains);
	check_counts(f, is);
}

void fuzz_snapshot(struct fuzz *f)
{
	const size_t size = sizeof(struct flexmem_owner_entry);
	u32 flags = fuzz_take(f) & FLEXMEM_SNAPSHOT_OWN;
	bool all = fuzz_is_admin(f->who) && !flags;
	unsigned int owner[FUZZ_OWNERS], nr = visible(f, owner, all), i;
	struct list regions = draw_list(f, nr_regions(f),
					sizeof(struct flexmem_region_entry));
	struct list owners = draw_list(f, nr, size);
	struct flexmem_snapshot cmd = CMD(snapshot,
		.flags = flags,
		.region_entry_size = regions.entry_size,
		.region_count = regions.count,
		.regions = (uintptr_t)regions.entries,
		.owner_entry_size = owners.entry_size,
		.owner_count = owners.count);
	struct fuzz_count count;
	int want = regions.rc;
	long rc;

	if (owners.entries)
		owners.entries += SZ_64K;
	cmd.owners = (uintptr_t)owners.entries;
	if (!fuzz_call(f, FLEXMEM_CMD_SNAPSHOT, &cmd, sizeof(cmd), &rc))
		return;
	if (regions.rc == -EINVAL || owners.rc == -EINVAL) {
		SAME(f, rc, -EINVAL);
		return;
	}
	/* Without room for owners the caller wants no list of them. */
	if (!owners.count)
		owners.rc = 0;
	/*
	 * If the array for regions or the array for owners is too small, the
	 * driver writes neither list.
	 */
	if (owners.rc == -EMSGSIZE || !want)
		want = owners.rc;
	fuzz_answer(f, rc, want);
	if (!f->late && want != -EFAULT)
		check_snapshot(f, &cmd, nr, all);
	if (want)
		return;
	check_regions(f, &regions, all);
	fuzz_count(f, &count);
	for (i = 0; owners.count && i < nr; i++)
		fuzz_check_owner(f, &count, owner[i],
				 entry_of(f, &owners, i, size));
}

void fuzz_info(struct fuzz *f)
{
	const struct flexmem_settings *s = &f->settings;
	struct flexmem_info cmd = CMD(info);
	unsigned int i;
	long rc;

	if (!fuzz_call(f, FLEXMEM_CMD_INFO, &cmd, sizeof(cmd), &rc))
		return;
	fuzz_answer(f, rc, 0);
	if (f->late)
		return;
	SAME(f, cmd.out_mode, f->model->mode);
	SAME(f, cmd.out_slots, f->model->mode == FLEXMEM_MODE_VF ?
				f->model->hw_slots : s->max_regions);
	SAME(f, cmd.out_max_regions, f->model->slots);
	SAME(f, cmd.out_program_slots, s->program_slots);
	SAME(f, cmd.out_acquire, s->acquire);
	SAME(f, cmd.out_order, s->order);
	SAME(f, cmd.out_fit, s->fit);
	SAME(f, cmd.out_max_handles, FLEXMEM_MAX_HANDLES);
	SAME(f, cmd.out_alignment, 128);
	SAME(f, cmd.out_max_alignment, SZ_1G);
	SAME(f, cmd.out_granule, SZ_2M);
	SAME(f, cmd.out_capacity, fuzz_capacity_of_all(f));
	SAME(f, cmd.out_max_region,
	     model_max_region(f->model, f->model->default_domains));
	SAME(f, cmd.out_capabilities, f->bare ? FLEXMEM_CAP_SCRUB : 0x1f);
	SAME(f, cmd.out_va_page, f->bare ? 0 : f->vm_page);
	SAME(f, cmd.out_va_start, f->bare ? 0 : FUZZ_VM_START);
	SAME(f, cmd.out_va_length, f->bare ? 0 : FUZZ_PAGES * f->vm_page);
	SAME(f, cmd.out_nr_fallback_sizes, s->nr_sizes);
	for (i = 0; i < FLEXMEM_MAX_FALLBACK_SIZES; i++)
		SAME(f, cmd.out_fallback_sizes[i], s->sizes[i]);
	SAME(f, strcmp(cmd.out_name, "fake"), 0);
}

/* Compares the figures of a domain's regions with the model's. */
static void check_domain(struct fuzz *f, const struct flexmem_domain_info *is)
{
	/* Figures of tensors, and of programs. */
	u64 total[2] = {}, free[2] = {}, largest[2] = {};
	u64 reserved = 0, reserved_total = 0;
	struct flexmem_region_entry region;
	unsigned int i, of, nr = 0;

	for (i = 0; i < f->model->slots; i++) {
		model_region_entry(f->model, i, &region);
		if (!region.total || (is->domain != FLEXMEM_DOMAIN_ALL &&
				      region.domain != is->domain))
			continue;
		nr++;
		of = !!(region.flags & FLEXMEM_REGION_PROGRAM);
		total[of] += region.total;
		if (model_is_closed(f->model, i, f->who)) {
			reserved += region.free;
			reserved_total += region.total;
			continue;
		}
		free[of] += region.free;
		largest[of] = max(largest[of], region.largest_free);
	}
	SAME(f, is->out_regions, nr);
	SAME(f, is->out_total, total[0] + total[1]);
	SAME(f, is->out_free, free[0] + free[1]);
	SAME(f, is->out_largest_free, max(largest[0], largest[1]));
	SAME(f, is->out_program_total, total[1]);
	SAME(f, is->out_program_free, free[1]);
	SAME(f, is->out_program_largest, largest[1]);
	SAME(f, is->out_tensor_largest, largest[0]);
	SAME(f, is->out_reserved, reserved);
	SAME(f, is->out_reserved_total, reserved_total);
}

static void check_limits(struct fuzz *f, const struct flexmem_domain_info *is)
{
	u64 left, limit = fuzz_bytes_limit(f, f->who, &left);
	bool limited = limit != FLEXMEM_NO_LIMIT;

	SAME(f, !!(is->out_flags & FLEXMEM_REPORT_LIMITED), limited);
	SAME(f, is->out_limit, limited ? limit : 0);
	SAME(f, is->out_limit_left, limited ? left : 0);
	/* Memory may be freed meanwhile. */
	if (!is->out_freed)
		fuzz_wrong(f, "no number of frees");
	SAME(f, is->out_memory,
	     is->domain == FLEXMEM_DOMAIN_ALL ? fuzz_memory(f) : 0);
}

/* Checks the members that only one domain has. */
static void check_description(struct fuzz *f,
			      const struct flexmem_domain_info *is)
{
	static const struct model_domain none;
	const struct model *model = f->model;
	bool all = is->domain == FLEXMEM_DOMAIN_ALL;
	const struct model_domain *want =
		all ? &none : &model->domain[is->domain];
	bool device = all || model->default_domains >> is->domain & 1;
	unsigned int i;

	SAME(f, is->out_type, device ? FLEXMEM_DOMAIN_DEVICE :
				       FLEXMEM_DOMAIN_ON_CHIP);
	SAME(f, is->out_granule, all ? 0 : SZ_2M);
	SAME(f, is->out_nr_sizes, want->nr_sizes);
	for (i = 0; i < FLEXMEM_MAX_FALLBACK_SIZES; i++)
		SAME(f, is->out_sizes[i], want->sizes[i]);
}

void fuzz_domain(struct fuzz *f)
{
	u8 id = fuzz_take(f);
	struct flexmem_domain_info cmd = CMD(domain_info,
		.domain = id < 96 ? 0 : id < 192 ? 1 :
			  id < 224 ? FLEXMEM_DOMAIN_ALL : id - 222);
	const struct model *model = f->model;
	u64 domains, next, capacity = 0;
	unsigned int i;
	long rc;

	if (!fuzz_call(f, FLEXMEM_CMD_DOMAIN, &cmd, sizeof(cmd), &rc))
		return;
	if (cmd.domain >= model->nr_domains &&
	    cmd.domain != FLEXMEM_DOMAIN_ALL) {
		SAME(f, rc, -EINVAL);
		return;
	}
	fuzz_answer(f, rc, 0);
	if (f->late)
		return;
	domains = cmd.domain == FLEXMEM_DOMAIN_ALL ?
			BIT_ULL(model->nr_domains) - 1 : BIT_ULL(cmd.domain);
	for (i = 0; i < model->nr_domains; i++)
		if (domains >> i & 1)
			capacity += model->domain[i].capacity;
	check_exhausted(f, cmd.out_flags, domains);
	SAME(f, cmd.out_nr_domains, model->nr_domains);
	SAME(f, cmd.out_capacity, capacity);
	SAME(f, cmd.out_set_aside, 0);
	SAME(f, cmd.out_max_region, model_max_region(model, domains));
	next = model_next_region(model, &model->tensors, domains);
	if (next != U64_MAX)
		SAME(f, cmd.out_next, next);
	check_description(f, &cmd);
	check_domain(f, &cmd);
	check_limits(f, &cmd);
}

void fuzz_fdinfo(struct fuzz *f)
{
	struct mutex *lock = &f->fdev->table.snapshot_lock;
	const struct fuzz_use *use;
	struct fuzz_count count;
	struct seq_file m;
	char want[512];

	fuzz_count(f, &count);
	use = &count.of[f->who];
	scnprintf(want, sizeof(want),
		  "flexmem-driver:\tflexmem\n"
		  "flexmem-device:\t%s\n"
		  "flexmem-client-id:\t%llu\n"
		  "flexmem-total-memory:\t%llu KiB\n"
		  "flexmem-orphaned-memory:\t%llu KiB\n"
		  "flexmem-slots:\t%llu\n"
		  "flexmem-handles:\t%llu\n",
		  dev_name(&f->fdev->dev), f->owner[f->who].id,
		  (use->used[BYTES] + 1023) / 1024,
		  (use->orphaned + 1023) / 1024, use->used[SLOTS],
		  use->used[HANDLES]);
	/* fdinfo does not wait for a snapshot. */
	mutex_lock(lock);
	native_fdinfo(f->files[f->who].file, &m);
	mutex_unlock(lock);
	if (strcmp(m.text, want))
		fuzz_wrong(f, "%s, must be %s", m.text, want);
}

/* ---- limits ---- */

static u64 draw_amount(struct fuzz *f, unsigned int resource)
{
	u8 n = fuzz_take(f);

	if (n >= 248)
		return n & 1 ? FLEXMEM_NO_LIMIT : ~0ULL / (2 + (n & 7));
	if (resource != BYTES)
		return n % 10;
	return n & 1 ? n * 64ULL * SZ_1K : n / 2 * (u64)SZ_1M;
}

/*
 * Draws the scope and the cgroup of a limit. Returns the cgroup's index in
 * f->owner: 0 for the default limit, FUZZ_OWNERS for a cgroup that does not
 * exist.
 */
static unsigned int draw_owner(struct fuzz *f,
			       struct flexmem_resource_limit *cmd)
{
	u8 n = fuzz_take(f);
	unsigned int i = FUZZ_FILES + n % (FUZZ_OWNERS - FUZZ_FILES);

	cmd->scope = (n >> 4 & 3) % 3;
	if (cmd->scope == FLEXMEM_SCOPE_DEFAULT)
		return 0;
	if (n >= 250) {
		cmd->cgroup = n & 1 ? 1ULL << 32 | n : 1000000 + n;
		return FUZZ_OWNERS;
	}
	cmd->cgroup = cgroup_id(fuzz_cgroup[i - FUZZ_FILES]);
	return i;
}

static int check_set_limit(struct fuzz *f,
			   const struct flexmem_resource_limit *cmd)
{
	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->resource >= FLEXMEM_NR_RESOURCES ||
	    (cmd->scope != FLEXMEM_SCOPE_CGROUP &&
	     cmd->scope != FLEXMEM_SCOPE_DEFAULT))
		return -EINVAL;
	if (!fuzz_is_admin(f->who))
		return -EPERM;
	return 0;
}

static void note_limit(struct fuzz *f, unsigned int owner,
		       const struct flexmem_resource_limit *cmd)
{
	if (!owner) {
		f->default_limit[cmd->resource] = cmd->limit;
		return;
	}
	fuzz_need_cgroup(f, owner);
	f->owner[owner].limit[cmd->resource] = cmd->limit;
}

void fuzz_set_limit(struct fuzz *f)
{
	u8 kind = fuzz_take(f);
	struct flexmem_resource_limit cmd = CMD(resource_limit,
						.resource = kind & 7,
						.flags = kind >> 3 == 1 ? 2 : 0);
	unsigned int owner = draw_owner(f, &cmd);
	struct flexmem_resource_limit given;
	struct fuzz_count count;
	int want;
	long rc;

	/* Makes byte limits the most frequent ones. */
	if (kind & 32 && cmd.resource >= FLEXMEM_NR_RESOURCES)
		cmd.resource = BYTES;
	cmd.limit = draw_amount(f, cmd.resource);
	given = cmd;
	fuzz_count(f, &count);
	if (!fuzz_call(f, FLEXMEM_CMD_SET_LIMIT, &cmd, sizeof(cmd), &rc))
		return;
	want = check_set_limit(f, &given);
	if (!want && owner == FUZZ_OWNERS)
		want = -ENOENT;
	if (!want && owner == FUZZ_FILES && given.resource == FILES)
		want = -EINVAL;
	if (!want && f->late)
		want = -EFAULT;
	SAME(f, rc, want);
	if (want)
		return;
	note_limit(f, owner, &given);
	SAME(f, cmd.out_limit, given.limit);
	SAME(f, cmd.out_used,
	     owner ? count.of[owner].used[given.resource] : 0);
	fuzz_forget_cgroups(f);
}

/* Reservations. */

/* Whether a default domain has regions of this size. */
static bool is_region_size(const struct fuzz *f, u64 size)
{
	const struct model *model = f->model;
	unsigned int d, i;

	for (d = 0; d < model->nr_domains; d++)
		for (i = 0; i < model->domain[d].nr_sizes; i++)
			if (model->default_domains >> d & 1 &&
			    model->domain[d].sizes[i] == size)
				return true;
	return false;
}

/* Draws the owner number of a cgroup; FUZZ_OWNERS is an unknown cgroup. */
static unsigned int draw_holder(struct fuzz *f, u64 *cgroup)
{
	u8 n = fuzz_take(f);
	unsigned int i = n < 16 ? FUZZ_FILES : FUZZ_FILES + 1 + (n & 1);

	if (n >= 250) {
		*cgroup = 1000000 + n;
		return FUZZ_OWNERS;
	}
	*cgroup = cgroup_id(fuzz_cgroup[i - FUZZ_FILES]);
	return i;
}

static void draw_reservation(struct fuzz *f, struct flexmem_reserve *cmd)
{
	const struct flexmem_settings *s = &f->settings;
	u8 kind = fuzz_take(f), size = kind >> 2;

	cmd->count = kind & 3;
	if (size >= 60)
		cmd->length = size & 1 ? SZ_1M : SZ_8M;
	else if (cmd->count)
		cmd->length = s->sizes[size % s->nr_sizes];
}

/* Returns the error of a RESERVE that is refused for its arguments, or 0. */
static int check_reserve(struct fuzz *f, const struct flexmem_reserve *cmd,
			 unsigned int holder)
{
	if (cmd->count ? !is_region_size(f, cmd->length) : cmd->length != 0)
		return -EINVAL;
	if (!fuzz_is_admin(f->who))
		return -EPERM;
	if (holder == FUZZ_OWNERS)
		return -ENOENT;
	if (holder == FUZZ_FILES)
		return -EINVAL;
	return f->late ? -EFAULT : 0;
}

void fuzz_reserve(struct fuzz *f)
{
	enum flexmem_reason reason = FLEXMEM_REASON_NONE;
	struct flexmem_reserve cmd = CMD(reserve);
	struct model_reservation wanted;
	int want;
	long rc;

	wanted.holder = draw_holder(f, &cmd.cgroup);
	draw_reservation(f, &cmd);
	wanted.count = cmd.count;
	wanted.size = cmd.length;
	if (!fuzz_call(f, FLEXMEM_CMD_RESERVE, &cmd, sizeof(cmd), &rc))
		return;
	want = check_reserve(f, &cmd, wanted.holder);
	if (!want)
		want = model_reserve(f->model, &wanted, &reason);
	SAME(f, rc, want);
	if (!f->late)
		SAME(f, cmd.out_reason, reason);
	if (!want && wanted.count)
		fuzz_need_cgroup(f, wanted.holder);
	fuzz_forget_cgroups(f);
}
