// SPDX-License-Identifier: GPL-2.0
/*
 * A PF or VF is removed while a program of the device uses memory that its
 * owner has freed. The fence of the program signals after flexmem has ended.
 */
#include "corners.h"

static void removed_after(struct run *r, void (*end)(unsigned int index),
			  u32 flags)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = WORLD_FD,
		.size = 20000,
		.latency_ms = 1000,
		.flags = flags,
	};
	struct dma_fence *fence;

	prepare(r);
	run.to = r->handle[0][0];
	if (!run_good(r, "run", world_run(r->file[0], &run, &fence), 0))
		return;
	native_close(r->file[0]);
	r->file[0] = NULL;
	r->nr[0] = 0;
	native_settle_work();
	must(r, !dma_fence_is_signaled(fence), "the program runs");
	if (end)
		end(1);
	run_good(r, "unbind", world_unbind(1), 0);
	must(r, dma_fence_is_signaled(fence), "the removal ends the program");
	native_settle_work();
	dma_fence_put(fence);
	run_good(r, "bind", world_bind(1), 0);
}

static void run_up(struct run *r)
{
	removed_after(r, NULL, 0);
}

static void run_wedged(struct run *r)
{
	removed_after(r, world_fail, 0);
}

static void sleep_first(unsigned int index)
{
	WARN_ON(world_suspend(index));
}

/* The end of a job that holds slots uses the device. */
static void run_wedged_hold(struct run *r)
{
	removed_after(r, world_fail, SIM_RUN_HOLDS);
}

static void run_asleep(struct run *r)
{
	removed_after(r, sleep_first, 0);
}

static void run_asleep_hold(struct run *r)
{
	removed_after(r, sleep_first, SIM_RUN_HOLDS);
}

static void die_first(unsigned int index)
{
	sim_mailbox_set_dead(&world.card.mbox, true);
}

static void run_dead(struct run *r)
{
	removed_after(r, die_first, 0);
}

const struct sequence removal_corners[] = {
	{ "program while the function is removed", NULL, run_up },
	{ "program while a wedged function is removed", NULL, run_wedged },
	{ "program while a sleeping function is removed", NULL, run_asleep },
	{ "program that holds slots of a wedged function", NULL,
	  run_wedged_hold },
	{ "program that holds slots of a sleeping function", NULL,
	  run_asleep_hold },
	{ "program while the firmware of a function is dead", NULL, run_dead },
	{}
};
