// SPDX-License-Identifier: GPL-2.0
/* After each command the whole state of the driver must equal the model's. */
#include "shim/internal.h"

#include "checks.h"
#include "fuzz.h"
#include "parts/snapshot.h"

static struct flexmem_view view;
static struct flexmem_owner_entry owners[FLEXMEM_VIEW_OWNERS];

/* The region's id in the ABI. */
u64 fuzz_region_id(const struct fuzz *f, unsigned int slot)
{
	return f->model->mode == FLEXMEM_MODE_PF ?
		f->fake->piece[f->model->region[slot].piece].base : slot;
}

void fuzz_check_region(struct fuzz *f, unsigned int slot, bool hidden,
		       const struct flexmem_region_entry *is)
{
	struct flexmem_region_entry want;

	model_region_entry(f->model, slot, &want);
	want.region_id = fuzz_region_id(f, slot);
	if (hidden)
		want = (struct flexmem_region_entry) {
			.region_id = want.region_id,
			.slot = want.slot,
			.flags = want.flags | FLEXMEM_REGION_HIDDEN,
			.total = want.total,
			.domain = want.domain,
		};
	SAME(f, is->slot, want.slot);
	SAME(f, is->region_id, want.region_id);
	SAME(f, is->flags, want.flags);
	SAME(f, is->total, want.total);
	SAME(f, is->free, want.free);
	SAME(f, is->largest_free, want.largest_free);
	SAME(f, is->nr_allocated, want.nr_allocated);
	SAME(f, is->nr_free, want.nr_free);
	SAME(f, is->sequence, want.sequence);
	SAME(f, is->domain, want.domain);
}

static void check_regions(struct fuzz *f)
{
	unsigned int slot, nr = 0;

	for (slot = 0; slot < f->model->slots; slot++) {
		if (!f->model->region[slot].there)
			continue;
		if (nr == view.nr)
			fuzz_wrong(f, "slot %u has no region", slot);
		fuzz_check_region(f, slot, false, &view.region[nr++]);
	}
	SAME(f, view.nr, nr);
}

/*
 * Returns the free bytes in reserved regions: those that the current file may
 * not use, or with @from_all those of all reserved regions.
 */
u64 fuzz_held_back(const struct fuzz *f, bool from_all)
{
	const struct model_region *region = f->model->region;
	unsigned int slot;
	u64 bytes = 0;

	for (slot = 0; slot < f->model->slots; slot++)
		if (region[slot].there &&
		    (from_all ? region[slot].reserved_for != 0 :
				model_is_closed(f->model, slot, f->who)))
			bytes += region[slot].free;
	return bytes;
}

/* How many bytes the device has granted in replies that were lost. */
static u64 lost_bytes(const struct fuzz *f)
{
	return fake_device_lost(f->fake);
}

static void check_sums(struct fuzz *f, const struct fuzz_count *count)
{
	const struct flexmem_snapshot *is = &view.sum;
	struct model_sums want;
	u64 program = 0, clients = 0, taken = 0;
	unsigned int i;

	model_sum(f->model, &want);
	for (i = 0; i < FUZZ_FILES; i++) {
		program += count->of[i].program;
		clients += f->owner[i].there;
	}
	SAME(f, is->out_capacity, fuzz_capacity_of_all(f));
	SAME(f, is->out_total, want.total);
	SAME(f, is->out_free, want.free - fuzz_held_back(f, true));
	SAME(f, is->out_owned, want.owned);
	SAME(f, is->out_orphaned, want.orphaned);
	SAME(f, is->out_reserved, fuzz_held_back(f, true));
	SAME(f, is->out_quarantined, want.quarantined);
	SAME(f, is->out_scrubbed, f->model->scrubbed);
	SAME(f, f->fake->scrubbed, f->model->scrubbed);
	SAME(f, is->out_clients, clients);
	SAME(f, is->out_resets, f->resets);
	SAME(f, is->out_generation, f->model->generation);
	SAME(f, is->out_used_program, program);
	SAME(f, is->out_allocs, f->allocs);
	for (i = 0; i < f->model->nr_domains; i++)
		taken += f->model->domain[i].taken;
	if (!f->model->broken)
		SAME(f, f->fake->taken - lost_bytes(f), taken);
	SAME(f, atomic64_read(&f->fdev->failures), f->failures);
}

static unsigned int reserved_for(const struct fuzz *f, unsigned int owner)
{
	const struct model_region *region = f->model->region;
	unsigned int slot, nr = 0;

	for (slot = 0; slot < f->model->slots && owner; slot++)
		nr += region[slot].there && region[slot].reserved_for == owner;
	return nr;
}

void fuzz_check_owner(struct fuzz *f, const struct fuzz_count *count,
		      unsigned int i, const struct flexmem_owner_entry *is)
{
	const struct fuzz_owner *owner = &f->owner[i];
	const struct fuzz_use *use = &count->of[i];
	bool cgroup = i >= FUZZ_FILES;
	unsigned int r;

	SAME(f, is->kind, cgroup);
	SAME(f, is->uid, cgroup ? 0 : fuzz_uid_of(i));
	SAME(f, is->id, cgroup ? cgroup_id(fuzz_cgroup[i - FUZZ_FILES]) :
				 owner->id);
	SAME(f, is->bytes, use->used[BYTES] - use->orphaned);
	SAME(f, is->orphaned, use->orphaned);
	SAME(f, is->peak, owner->peak);
	SAME(f, is->slots, use->used[SLOTS]);
	SAME(f, is->handles, use->used[HANDLES]);
	SAME(f, is->files, use->used[FILES]);
	SAME(f, is->reservation, fuzz_reservation(f, i));
	SAME(f, is->reserved, reserved_for(f, i));
	SAME(f, is->flags, 0);
	for (r = 0; r < FLEXMEM_NR_RESOURCES; r++)
		SAME(f, is->limit[r], fuzz_limit(f, i, r));
}

/* The snapshot lists cgroups first, then files, each by ascending number. */
static void check_owners(struct fuzz *f, const struct fuzz_count *count)
{
	unsigned int i, nr = 0;
	u64 id = 0;

	for (i = FUZZ_FILES; i < FUZZ_OWNERS; i++)
		if (f->owner[i].there)
			fuzz_check_owner(f, count, i, &owners[nr++]);
	for (; nr < view.sum.out_owner_count; nr++) {
		for (i = 0; i < FUZZ_FILES; i++)
			if (f->owner[i].there &&
			    f->owner[i].id == owners[nr].id)
				break;
		if (i == FUZZ_FILES || owners[nr].id <= id)
			fuzz_wrong(f, "owner %llu", owners[nr].id);
		id = owners[nr].id;
		fuzz_check_owner(f, count, i, &owners[nr]);
	}
	for (i = 0; i < FUZZ_OWNERS; i++)
		nr -= f->owner[i].there;
	SAME(f, nr, 0);
}

static void check_invariants(struct fuzz *f)
{
	const char *wrong = checks_of_table(&f->fdev->table);
	struct flexmem_file *private;
	unsigned int i;

	for (i = 0; i < FUZZ_FILES && !wrong; i++) {
		if (!f->files[i].file)
			continue;
		private = f->files[i].file->private_data;
		wrong = checks_of_client(&private->client);
	}
	wrong = wrong ?: f->fake->breach;
	if (wrong)
		fuzz_wrong(f, "%s", wrong);
}

/**
 * fuzz_check - compare everything
 * @f: input
 */
void fuzz_check(struct fuzz *f)
{
	struct fuzz_count count;

	if (f->gone)
		return;
	check_invariants(f);
	fuzz_count(f, &count);
	view.owner = owners;
	flexmem_table_snapshot(&f->fdev->table, NULL, &view);
	check_regions(f);
	check_sums(f, &count);
	check_owners(f, &count);
	fuzz_check_spaces(f);
}
