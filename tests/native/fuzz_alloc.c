// SPDX-License-Identifier: GPL-2.0
/* ALLOC, FREE, LOOKUP and RESIZE. */
#include "shim/internal.h"

#include "fuzz.h"
#include "world.h"

/* ---- arguments ---- */

/* Draws a random length of any order of magnitude, or a special value. */
static u64 draw_length(struct fuzz *f)
{
	const u64 odd[] = {
		0, ~0ULL, ~0ULL - 127, 1ULL << 40, f->settings.sizes[0],
		f->settings.sizes[f->settings.nr_sizes - 1],
		f->settings.sizes[0] - 128, f->settings.sizes[0] + 1,
	};
	u8 kind = fuzz_take(f), n = fuzz_take(f);

	switch (kind & 7) {
	case 0 ... 2:
		return 128 * (1 + n) - (kind >> 3);
	case 3:
		return 4096 * (n + 1) + (kind >> 3);
	case 4:
		return SZ_64K * (n + 1ULL);
	case 5:
		return SZ_256K * (n + 1ULL) + (kind >> 3);
	case 6:
		return SZ_1M * (1ULL + n % 70);
	default:
		return odd[n % ARRAY_SIZE(odd)];
	}
}

static u64 draw_alignment(struct fuzz *f, unsigned int kind)
{
	switch (kind) {
	case 4:
		return 1ULL << (7 + fuzz_take(f) % 16);
	case 5:
		return 1ULL << fuzz_take(f) % 64;
	case 6:
		return fuzz_take(f) * 3;
	case 7:
		return 64;
	default:
		return 0;
	}
}

void fuzz_draw_alloc(struct fuzz *f, struct flexmem_alloc *cmd)
{
	static const enum flexmem_policy policies[] = {
		FLEXMEM_POLICY_BIND, FLEXMEM_POLICY_PREFERRED,
		FLEXMEM_POLICY_INTERLEAVE,
	};
	u8 kind = fuzz_take(f);

	*cmd = CMD(alloc, .flags = kind & 15);
	cmd->length = draw_length(f);
	cmd->alignment = draw_alignment(f, kind >> 5);
	kind = kind & 16 ? fuzz_take(f) : 0;
	if (kind == 1)
		cmd->policy = FLEXMEM_POLICY_INTERLEAVE + 1;
	if (kind == 2)
		cmd->flags |= 1 << 4;
	if (kind == 3)
		cmd->domains = 1;
	if (kind < 16)
		return;
	cmd->policy = policies[(kind >> 3) % ARRAY_SIZE(policies)];
	if (cmd->policy == FLEXMEM_POLICY_INTERLEAVE && kind & 4)
		return;
	/*
	 * Names an existing domain, or now and then other domains.
	 */
	cmd->domains = kind < 240 ? 1 << (kind & (f->model->nr_domains - 1)) :
				    kind & 7;
	if (cmd->policy == FLEXMEM_POLICY_INTERLEAVE && kind & 2)
		cmd->domains = model_all_domains(f->model);
}

/*
 * Whether this is the first chunk of an allocation for which the current file
 * has a handle. An orphan has no handle.
 */
static bool is_own(const struct fuzz *f, const struct fuzz_allocation *a)
{
	return a->file == f->who && a->handle && !a->index;
}

/* The n-th allocation of the current file, or NULL if it has none. */
static struct fuzz_allocation *nth_allocation(struct fuzz *f, unsigned int n)
{
	struct fuzz_allocation *a;
	unsigned int i, nr = 0;

	for (i = 0; i < f->nr; i++)
		nr += is_own(f, &f->allocation[i]);
	if (!nr)
		return NULL;
	n %= nr;
	for (a = f->allocation; !is_own(f, a) || n; a++)
		n -= is_own(f, a);
	return a;
}

/* Draws the handle of one of the file's allocations, or an invalid one. */
u32 fuzz_draw_handle(struct fuzz *f)
{
	const struct fuzz_file *file = &f->files[f->who];
	u8 n = fuzz_take(f);
	const u32 others[] = {
		0, 1, file->freed, file->freed, file->next_handle, INT_MAX,
		~0u, f->nr ? f->allocation[0].handle : 7,
	};
	struct fuzz_allocation *a;

	if (n >= 256 - ARRAY_SIZE(others))
		return others[255 - n];
	a = nth_allocation(f, n);
	return a ? a->handle : n;
}

struct fuzz_allocation *fuzz_find(struct fuzz *f, u32 handle)
{
	struct fuzz_allocation *a;

	for (a = f->allocation; a < f->allocation + f->nr; a++)
		if (handle && is_own(f, a) && a->handle == handle)
			return a;
	return NULL;
}

struct fuzz_allocation *fuzz_of_serial(struct fuzz *f, u64 serial)
{
	struct fuzz_allocation *a = f->allocation;

	while (a->serial != serial)
		a++;
	return a;
}

/* ---- bytes ---- */

/* The byte that a file fills its memory with. */
u8 fuzz_tag(const struct fuzz *f)
{
	return 1 + f->owner[f->who].id % 239;
}

/*
 * Checks that a new chunk holds zeroes or its owner's bytes. Then the owner
 * writes all of it.
 */
static void check_chunk(struct fuzz *f, const struct fuzz_allocation *a,
			u64 from)
{
	const struct model_region *region = &f->model->region[a->slot];
	const struct flexmem_memory *mem = &f->fake->piece[region->piece];
	bool zeroed = a->flags & FLEXMEM_ALLOC_ZEROED;

	if (f->bare)
		return;
	if (!(zeroed ? fake_data_is : fake_data_is_own)
			(f->fake, mem, a->offset + from, a->size - from,
			 zeroed ? 0 : fuzz_tag(f)))
		fuzz_wrong(f, "bytes of others");
	fake_data_fill(f->fake, mem, a->offset + from, a->size - from,
		       fuzz_tag(f));
}

/* ---- ALLOC ---- */

static bool is_named_right(u32 policy, u64 domains)
{
	switch (policy) {
	case FLEXMEM_POLICY_DEFAULT:
		return !domains;
	case FLEXMEM_POLICY_BIND:
	case FLEXMEM_POLICY_PREFERRED:
		return domains;
	default:
		return true;
	}
}

static int check_alloc(const struct fuzz *f,
		       const struct flexmem_alloc *cmd)
{
	u64 alignment = cmd->alignment;

	if (cmd->flags >> 4)
		return -EOPNOTSUPP;
	if (f->bare && cmd->flags & FLEXMEM_ALLOC_MAPPABLE)
		return -EOPNOTSUPP;
	if (cmd->policy > FLEXMEM_POLICY_INTERLEAVE)
		return -EOPNOTSUPP;
	if (cmd->domains & ~model_all_domains(f->model) ||
	    !is_named_right(cmd->policy, cmd->domains))
		return -EINVAL;
	if (cmd->policy == FLEXMEM_POLICY_INTERLEAVE &&
	    hweight64(cmd->domains ?: f->model->default_domains) < 2)
		return -EINVAL;
	if (!cmd->length || alignment > SZ_1G || alignment & (alignment - 1))
		return -EINVAL;
	return 0;
}

static u64 unit_of(const struct flexmem_alloc *cmd)
{
	u64 alignment = cmd->alignment;

	if (alignment > 4096 && !(alignment & (alignment - 1)))
		return alignment;
	return cmd->flags & FLEXMEM_ALLOC_MAPPABLE ? 4096 : 128;
}

static u64 rounded(u64 unit, u64 length)
{
	if (length > ~0ULL - unit + 1)
		return ~0ULL - unit + 1;
	return (length + unit - 1) / unit * unit;
}

static u64 domains_of(const struct fuzz *f, const struct flexmem_alloc *cmd)
{
	switch (cmd->policy) {
	case FLEXMEM_POLICY_BIND:
	case FLEXMEM_POLICY_INTERLEAVE:
		return cmd->domains ?: f->model->default_domains;
	case FLEXMEM_POLICY_PREFERRED:
		return cmd->domains | f->model->default_domains;
	default:
		return f->model->default_domains;
	}
}

/**
 * fuzz_predict_alloc - the result that an ALLOC must have had
 * @f: input
 * @cmd: the command as the caller passed it
 * @want: receives the reply
 *
 * Return: 0: the new allocation's last chunk is the last one in the list. Or an
 * error.
 */
int fuzz_predict_alloc(struct fuzz *f, const struct flexmem_alloc *cmd,
		       struct flexmem_alloc *want)
{
	u64 granule = cmd->flags & FLEXMEM_ALLOC_MAPPABLE ? 4096 : 128;
	const struct model_request request = {
		.size = rounded(unit_of(cmd), cmd->length),
		.alignment = max(cmd->alignment, granule),
		.domains = domains_of(f, cmd),
		.preferred = cmd->policy == FLEXMEM_POLICY_PREFERRED ?
			cmd->domains : 0,
		.program = cmd->flags & FLEXMEM_ALLOC_PROGRAM,
		.growable = cmd->flags & FLEXMEM_ALLOC_GROWABLE,
		.owner = f->who,
	};
	struct fuzz_allocation new = {
		.file = f->who,
		.handle = f->files[f->who].next_handle,
		.flags = cmd->flags,
		.unit = unit_of(cmd),
		.whole = request.size,
	};
	struct model_answer answer = {};
	u32 *handle = &f->files[f->who].next_handle;
	int rc;

	*want = *cmd;
	want->out_size = request.size;
	rc = check_alloc(f, cmd);
	if (!rc && cmd->policy == FLEXMEM_POLICY_INTERLEAVE)
		rc = fuzz_spread(f, &request, &new, &answer);
	else if (!rc)
		rc = fuzz_place(f, &request, &new, &answer);
	want->out_error = -rc;
	want->out_handle = rc ? 0 : (*handle)++;
	want->out_reason = answer.reason;
	want->out_region_reason = answer.region_reason;
	want->out_regions = answer.regions;
	want->out_client_used = rc == -ENOMEM ? fuzz_client_used(f) : 0;
	want->out_total_free = answer.total_free;
	want->out_largest_free = answer.largest_free;
	want->out_max_region = answer.max_region;
	want->out_leaving = answer.leaving;
	/* Only whether there is one: see check_event(). */
	want->out_event = rc == -ENOMEM &&
			  answer.reason != FLEXMEM_REASON_NONE &&
			  answer.reason != FLEXMEM_REASON_REGION_SIZE &&
			  answer.asked <= answer.room;
	want->out_chunks = rc ? 0 : new.chunks;
	want->out_address.region_id = rc ? 0 : new.region_id;
	want->out_address.offset = rc ? 0 : new.offset;
	f->failures += rc == -ENOMEM;
	return rc;
}

/* Only a failure that a FREE can end has the number of an event. */
static void check_event(struct fuzz *f, const struct flexmem_alloc *is,
			const struct flexmem_alloc *want)
{
	SAME(f, !!is->out_event, !!want->out_event);
}

void fuzz_compare_alloc(struct fuzz *f, const struct flexmem_alloc *is,
			const struct flexmem_alloc *want)
{
	check_event(f, is, want);
	SAME(f, is->out_error, want->out_error);
	SAME(f, is->out_handle, want->out_handle);
	SAME(f, is->out_address.region_id, want->out_address.region_id);
	SAME(f, is->out_address.offset, want->out_address.offset);
	SAME(f, is->out_size, want->out_size);
	SAME(f, is->out_reason, want->out_reason);
	SAME(f, is->out_region_reason, want->out_region_reason);
	SAME(f, is->out_regions, want->out_regions);
	SAME(f, is->out_client_used, want->out_client_used);
	SAME(f, is->out_total_free, want->out_total_free);
	SAME(f, is->out_largest_free, want->out_largest_free);
	SAME(f, is->out_max_region, want->out_max_region);
	SAME(f, is->out_leaving, want->out_leaving);
	SAME(f, is->out_chunks, want->out_chunks);
}

/* Ends an ALLOC that succeeded: the allocation gets its handle. */
void fuzz_publish(struct fuzz *f, u64 serial)
{
	struct fuzz_allocation *a = fuzz_of_serial(f, serial);

	for (; a; a = fuzz_chunk(f, serial, a->index + 1))
		check_chunk(f, a, 0);
}

void fuzz_undo_alloc(struct fuzz *f, u64 serial)
{
	fuzz_give_chunks(f, serial, -1);
}

void fuzz_do_alloc(struct fuzz *f, struct flexmem_alloc *cmd)
{
	const struct flexmem_alloc given = *cmd;
	struct flexmem_alloc want;
	int want_rc;
	long rc;

	if (f->nr > FUZZ_ALLOCATIONS - FUZZ_ROOM ||
	    !fuzz_call(f, FLEXMEM_CMD_ALLOC, cmd, sizeof(*cmd), &rc))
		return;
	want_rc = fuzz_predict_alloc(f, &given, &want);
	fuzz_answer(f, rc, want_rc);
	if (!f->late)
		fuzz_compare_alloc(f, cmd, &want);
	if (want_rc)
		return;
	(f->late ? fuzz_undo_alloc :
		   fuzz_publish)(f, f->allocation[f->nr - 1].head);
}

void fuzz_alloc(struct fuzz *f)
{
	struct flexmem_alloc cmd;

	fuzz_draw_alloc(f, &cmd);
	fuzz_do_alloc(f, &cmd);
}

/* ---- FREE ---- */

static struct fuzz_allocation *
find_address(struct fuzz *f, const struct flexmem_address *address)
{
	struct fuzz_allocation *a;

	for (a = f->allocation; a < f->allocation + f->nr; a++)
		if (is_own(f, a) && !a->lost &&
		    a->region_id == address->region_id &&
		    a->offset == address->offset)
			return a;
	return NULL;
}

void fuzz_draw_free(struct fuzz *f, struct flexmem_free *cmd)
{
	u8 kind = fuzz_take(f);
	struct fuzz_allocation *a;

	*cmd = CMD(free);
	if (kind < 160) {
		cmd->handle = fuzz_draw_handle(f);
		/*
		 * The first three kinds are invalid: a handle together with an
		 * address, or an unknown flag.
		 */
		cmd->address.offset = kind == 0;
		cmd->address.region_id = kind == 1;
		cmd->flags = kind == 2 ? FLEXMEM_FREE_BY_ADDRESS << 1 : 0;
		return;
	}
	a = nth_allocation(f, fuzz_take(f));
	cmd->flags = FLEXMEM_FREE_BY_ADDRESS;
	if (a) {
		cmd->address.region_id = a->region_id;
		cmd->address.offset = a->offset;
	}
	if (kind == 160)
		cmd->handle = 1;
	else if (kind < 170)
		cmd->address.offset += 128;
	else if (kind < 175)
		cmd->address.region_id ^= 1;
}

/*
 * Returns the allocation that the driver must free, or the driver's error as an
 * ERR_PTR().
 */
struct fuzz_allocation *fuzz_predict_free(struct fuzz *f,
					  const struct flexmem_free *cmd)
{
	struct fuzz_allocation *a;

	if (cmd->flags & ~FLEXMEM_FREE_BY_ADDRESS)
		return ERR_PTR(-EOPNOTSUPP);
	if (cmd->flags ? cmd->handle :
			 cmd->address.region_id || cmd->address.offset)
		return ERR_PTR(-EINVAL);
	a = cmd->flags ? find_address(f, &cmd->address) :
			 fuzz_find(f, cmd->handle);
	return a ?: ERR_PTR(-ENOENT);
}

/* Whether the CPU or the device has maps. @a: the first chunk. */
static bool is_mapped(struct fuzz *f, const struct fuzz_allocation *a)
{
	if (fuzz_binds(f, a))
		return true;
	for (; a; a = fuzz_chunk(f, a->head, a->index + 1))
		if (a->maps)
			return true;
	return false;
}

/* Nothing waits for a program that uses a lost allocation. */
static bool is_in_use(struct fuzz *f, const struct fuzz_allocation *a)
{
	return a->handle || is_mapped(f, a) || (a->jobs && !a->lost);
}

/*
 * Ends a freed allocation, unless a map or a program still uses it. @a: any of
 * its chunks.
 */
void fuzz_end_unused(struct fuzz *f, struct fuzz_allocation *a)
{
	if (!is_in_use(f, fuzz_of_serial(f, a->head)))
		fuzz_give_chunks(f, a->head, -1);
}

/* Frees an allocation. If it is still in use, it stays as an orphan. */
void fuzz_free(struct fuzz *f, struct fuzz_allocation *a)
{
	u64 head = a->head;

	f->files[a->file].freed = a->handle;
	for (a = fuzz_of_serial(f, head); a; a = fuzz_chunk(f, head, a->index + 1))
		a->handle = 0;
	a = fuzz_of_serial(f, head);
	for (; is_in_use(f, fuzz_of_serial(f, head)) && a;
	     a = fuzz_chunk(f, head, a->index + 1))
		if (!a->lost)
			model_orphan(f->model, a->slot, a->offset);
	fuzz_end_unused(f, fuzz_of_serial(f, head));
}

void fuzz_do_free(struct fuzz *f)
{
	struct flexmem_free cmd, given;
	struct fuzz_allocation *a;
	long rc;

	fuzz_draw_free(f, &cmd);
	given = cmd;
	if (!fuzz_call(f, FLEXMEM_CMD_FREE, &cmd, sizeof(cmd), &rc))
		return;
	a = fuzz_predict_free(f, &given);
	fuzz_answer(f, rc, PTR_ERR_OR_ZERO(a));
	if (!f->late)
		SAME(f, cmd.out_error, -PTR_ERR_OR_ZERO(a));
	if (!IS_ERR(a) && !f->late)
		fuzz_free(f, a);
}

/* Compares the list of chunks with the model's. */
static void check_list(struct fuzz *f, const struct fuzz_allocation *a)
{
	struct flexmem_chunk_entry *is = native_user();
	struct flexmem_lookup cmd = CMD(lookup, .handle = a->handle,
		.entry_size = sizeof(*is), .count = a->chunks,
		.entries = (uintptr_t)is);

	SAME(f, native_ioctl(f->files[f->who].file, FLEXMEM_IOCTL_LOOKUP, &cmd),
	     0);
	for (; a; a = fuzz_chunk(f, a->head, a->index + 1), is++) {
		SAME(f, is->address.region_id, a->region_id);
		SAME(f, is->address.offset, a->offset);
		SAME(f, is->length, a->size);
		SAME(f, is->domain, a->domain);
	}
}

void fuzz_lookup(struct fuzz *f)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = fuzz_draw_handle(f));
	const struct fuzz_allocation *a = fuzz_find(f, cmd.handle);
	long rc;

	if (!fuzz_call(f, FLEXMEM_CMD_LOOKUP, &cmd, sizeof(cmd), &rc))
		return;
	if (!a) {
		SAME(f, rc, -ENOENT);
		return;
	}
	fuzz_answer(f, rc, 0);
	if (f->late)
		return;
	SAME(f, cmd.out_flags, a->flags | (a->lost ? FLEXMEM_LOOKUP_LOST : 0));
	SAME(f, cmd.out_address.region_id, a->region_id);
	SAME(f, cmd.out_address.offset, a->offset);
	SAME(f, cmd.out_size, a->whole);
	SAME(f, cmd.out_count, a->chunks);
	SAME(f, cmd.out_map_offset, a->flags & FLEXMEM_ALLOC_MAPPABLE ?
				    (u64)a->slot << MAP_SHIFT | a->offset : 0);
	check_list(f, a);
}

/* ---- RESIZE ---- */

/*
 * Predicts a RESIZE that adds bytes. The added bytes are a separate allocation
 * until they are joined to the old bytes.
 */
static int predict_growth(struct fuzz *f, struct fuzz_allocation *a, u64 size,
			  struct flexmem_resize *want)
{
	u64 room = model_room(f->model, a->slot, a->offset), old = a->size;
	u64 tail;
	int rc;

	if (size - old > room) {
		want->out_max = (old + room) / a->unit * a->unit;
		return -EAGAIN;
	}
	want->out_reason = fuzz_charge(f, f->who, a->slot, size - old);
	if (want->out_reason)
		return -ENOMEM;
	tail = model_extend(f->model, a->slot, a->offset, size - old);
	a->size = size;
	fuzz_note_peak(f, f->who);
	rc = fuzz_clean(f, a->slot, tail, a->flags & FLEXMEM_ALLOC_ZEROED);
	if (!rc && f->late)
		model_free(f->model, a->slot, tail);
	if (rc || f->late) {
		a->size = old;
		return rc;
	}
	model_join(f->model, a->slot, a->offset);
	check_chunk(f, a, old);
	return 0;
}

static int predict_resize(struct fuzz *f, const struct flexmem_resize *cmd,
			  struct flexmem_resize *want)
{
	struct fuzz_allocation *a = fuzz_find(f, cmd->handle);
	u64 size;
	int rc;

	*want = *cmd;
	want->out_size = a ? a->whole : 0;
	if (!cmd->length)
		return -EINVAL;
	if (!a)
		return -ENOENT;
	if (is_mapped(f, a))
		return -EBUSY;
	if (a->chunks > 1)
		return -EOPNOTSUPP;
	if (a->lost)
		return -EIO;
	size = rounded(a->unit, cmd->length);
	if (size < a->size && a->jobs)
		return -EBUSY;
	if (size > a->size) {
		rc = predict_growth(f, a, size, want);
		if (rc)
			return rc;
	} else if (size < a->size && !f->late) {
		model_shrink(f->model, a->slot, a->offset, size);
		a->size = size;
	}
	if (!f->late)
		a->whole = size;
	want->out_size = size;
	return 0;
}

/* Draws a length near the present one, or any length. */
static u64 draw_new_length(struct fuzz *f, u32 handle)
{
	const struct fuzz_allocation *a = fuzz_find(f, handle);
	u8 kind = fuzz_take(f), n = fuzz_take(f);

	if (!a || kind & 4)
		return draw_length(f);
	switch (kind & 3) {
	case 0:
		return a->size + 128 * n;
	case 1:
		return a->size / 256 * n;
	case 2:
		return a->size - 128 + n +
		       (a->lost ? 0 : model_room(f->model, a->slot, a->offset));
	default:
		return a->size + SZ_64K * (u64)n;
	}
}

void fuzz_resize(struct fuzz *f)
{
	struct flexmem_resize cmd = CMD(resize), given, want;
	int want_rc;
	long rc;

	cmd.handle = fuzz_draw_handle(f);
	cmd.length = draw_new_length(f, cmd.handle);
	given = cmd;
	if (!fuzz_call(f, FLEXMEM_CMD_RESIZE, &cmd, sizeof(cmd), &rc))
		return;
	want_rc = predict_resize(f, &given, &want);
	fuzz_answer(f, rc, want_rc);
	if (f->late)
		return;
	SAME(f, cmd.out_reason, want.out_reason);
	SAME(f, cmd.out_size, want.out_size);
	SAME(f, cmd.out_max, want.out_max);
}

