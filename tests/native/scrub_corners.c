// SPDX-License-Identifier: GPL-2.0
/* How much the background scrub does in one run. Time is virtual. */
#include "corners.h"

/* Free blocks, more than one run checks. */
#define NR 2100
/* The delay between two runs, and a bit. */
#define RUN_MS 120

static u64 scrubbed(void)
{
	return atomic64_read(&world_function(1)->fdev->table.function.scrubbed);
}

static void later(unsigned int ms)
{
	msleep(ms);
	native_settle_work();
}

/* Makes free blocks with the bytes of an open file, which is file 0. */
static bool make_holes(struct run *r, u32 *handle)
{
	unsigned int i;

	for (i = 0; i < 2 * NR; i++) {
		struct flexmem_alloc cmd = CMD(alloc, .length = 128);

		if (!CALL(r, ALLOC, &cmd))
			return false;
		handle[i] = cmd.out_handle;
	}
	for (i = 0; i < 2 * NR; i += 2)
		CALL(r, FREE, &CMD(free, .handle = handle[i]));
	return true;
}

/*
 * A file is closed whose block comes behind many others. One run checks a part
 * of the blocks, and the next run finds this block. When all were checked there
 * is no further run.
 */
static void run_many(struct run *r)
{
	static u32 handle[2 * NR];
	unsigned int i;
	u64 before;

	/* Otherwise the holes are in several regions. */
	if (world_function(1)->fdev->table.settings.order !=
	    FLEXMEM_ORDER_FILL_FIRST)
		return;
	/* These are more calls than walk() allows for. */
	current->fail_at = 0;
	open_file(r, 1);
	if (!r->file[1] || !make_holes(r, handle))
		return;
	alloc(r, 1, 20480, 0);
	native_settle_work();
	before = scrubbed();
	native_close(r->file[1]);
	r->file[1] = NULL;
	r->nr[1] = 0;
	later(RUN_MS);
	must(r, scrubbed() == before, "the first run does not get so far");
	later(RUN_MS);
	must(r, scrubbed() == before + 20480, "the second run finds the block");
	later(10 * RUN_MS);
	must(r, !delayed_work_pending(&world_function(1)->fdev->table.scrub_work),
	     "then all blocks were checked");
	for (i = 1; i < 2 * NR; i += 2)
		CALL(r, FREE, &CMD(free, .handle = handle[i]));
}

const struct sequence scrub_corners[] = {
	{ "background scrub of many blocks", prepare, run_many },
	{}
};
