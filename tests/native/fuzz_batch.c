// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: each entry must have the result that it would have as a command of
 * its own. A reply that cannot be written undoes all entries.
 */
#include "shim/internal.h"

#include "fuzz.h"
#include "ioctl.h"
#include "world.h"

#define MOST 6
#define ENTRIES_OFFSET SZ_256K

/**
 * struct batch - a call of a batch command
 * @cmd: struct of the command
 * @at: entries of the batch
 * @bad: for each entry, the errno if it is malformed
 * @refused: the error of the whole batch, or 0
 */
struct batch {
	struct flexmem_batch cmd;
	u8 *at;
	int bad[MOST];
	int refused;
};

static void draw_batch(struct fuzz *f, struct batch *b, size_t size)
{
	u8 kind = fuzz_take(f);

	*b = (struct batch) { .at = (u8 *)native_user() + ENTRIES_OFFSET };
	memset(b->at, 0, SZ_64K);
	b->cmd = CMD(batch, .entry_size = size, .count = 1 + kind % MOST,
		     .entries = (uintptr_t)b->at);
	switch (kind >> 3) {
	case 0:
		b->cmd.count = kind & 1 ? 0 : 1025;
		b->refused = -EINVAL;
		break;
	case 1:
		b->cmd.entry_size = kind & 1 ? size / 2 : 4097;
		b->refused = -EINVAL;
		break;
	case 2:
		b->cmd.entries = kind & 1 ? 0 : (uintptr_t)native_user() +
				 NATIVE_USER_SIZE - PAGE_SIZE - 16;
		b->refused = -EFAULT;
		break;
	case 3:
		b->cmd.__reserved = 1;
		b->refused = -EOPNOTSUPP;
		break;
	case 4 ... 6:
		b->cmd.entry_size += 8 * (1 + (kind & 7));
		break;
	}
}

/* Writes an entry for the driver. Some entries are malformed. */
static void put_entry(struct fuzz *f, struct batch *b, unsigned int i,
		      void *entry, size_t size)
{
	u8 *at = b->at + i * b->cmd.entry_size;
	u8 kind = fuzz_take(f);

	*(u32 *)entry = b->cmd.entry_size;
	memcpy(at, entry, size);
	if (kind >= 252) {
		*(u32 *)at = b->cmd.entry_size + kind;
		b->bad[i] = -EINVAL;
	} else if (kind >= 248 && b->cmd.entry_size > size) {
		at[size] = 1;
		b->bad[i] = -E2BIG;
	}
}

static void *entry_of(struct batch *b, unsigned int i)
{
	return b->at + i * b->cmd.entry_size;
}

/*
 * Calls a batch. Returns false if the driver had to refuse the whole batch, and
 * has refused it.
 */
static bool call_batch(struct fuzz *f, struct batch *b, unsigned int nr)
{
	struct flexmem_batch cmd = b->cmd;
	long rc;

	if (!fuzz_call(f, nr, &cmd, sizeof(cmd), &rc))
		return false;
	SAME(f, rc, b->refused ?: f->late ? -EFAULT : 0);
	if (b->refused)
		return false;
	if (!f->late)
		SAME(f, cmd.out_done, b->cmd.count);
	return true;
}

static void alloc_entry(struct fuzz *f, struct batch *b, unsigned int i,
			const struct flexmem_alloc *given, u64 *serial)
{
	const struct flexmem_alloc *is = entry_of(b, i);
	struct flexmem_alloc want = {};

	if (b->bad[i]) {
		SAME(f, is->out_error, -b->bad[i]);
		SAME(f, is->out_handle, 0);
		SAME(f, is->out_reason, 0);
		return;
	}
	if (!fuzz_predict_alloc(f, given, &want))
		*serial = f->allocation[f->nr - 1].head;
	fuzz_compare_alloc(f, is, &want);
}

void fuzz_alloc_batch(struct fuzz *f)
{
	struct flexmem_alloc entry[MOST];
	u64 serial[MOST] = {};
	struct batch b;
	unsigned int i;

	if (f->nr > FUZZ_ALLOCATIONS - FUZZ_ROOM)
		return;
	draw_batch(f, &b, sizeof(entry[0]));
	for (i = 0; i < b.cmd.count && !b.refused; i++) {
		fuzz_draw_alloc(f, &entry[i]);
		put_entry(f, &b, i, &entry[i], sizeof(entry[i]));
	}
	if (!call_batch(f, &b, FLEXMEM_CMD_ALLOC_BATCH))
		return;
	for (i = 0; i < b.cmd.count; i++)
		alloc_entry(f, &b, i, &entry[i], &serial[i]);
	for (i = 0; i < b.cmd.count; i++)
		if (serial[i])
			(f->late ? fuzz_undo_alloc :
				   fuzz_publish)(f, serial[i]);
}

void fuzz_free_batch(struct fuzz *f)
{
	struct flexmem_free entry[MOST];
	struct fuzz_allocation *a;
	struct batch b;
	unsigned int i;
	u64 freed[MOST] = {};
	int want;

	draw_batch(f, &b, sizeof(entry[0]));
	for (i = 0; i < b.cmd.count && !b.refused; i++) {
		fuzz_draw_free(f, &entry[i]);
		put_entry(f, &b, i, &entry[i], sizeof(entry[i]));
	}
	if (!call_batch(f, &b, FLEXMEM_CMD_FREE_BATCH))
		return;
	for (i = 0; i < b.cmd.count; i++) {
		const struct flexmem_free *is = entry_of(&b, i);
		unsigned int j;

		a = b.bad[i] ? ERR_PTR(b.bad[i]) :
			       fuzz_predict_free(f, &entry[i]);
		want = PTR_ERR_OR_ZERO(a);
		for (j = 0; j < i && !want; j++)
			if (freed[j] == a->serial)
				want = -ENOENT;
		SAME(f, is->out_error, -want);
		freed[i] = want ? 0 : a->serial;
	}
	for (i = 0; i < b.cmd.count && !f->late; i++)
		if (freed[i])
			fuzz_free(f, fuzz_of_serial(f, freed[i]));
}
