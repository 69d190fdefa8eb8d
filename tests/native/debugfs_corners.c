// SPDX-License-Identifier: GPL-2.0
/* The files in debugfs: the regions, and the memory with its pending commands. */
#include "corners.h"

/* Whether a file of a PF (index 0) or VF (index 1) has this text. */
static bool shows(unsigned int index, const char *name, const char *text)
{
	struct seq_file m;
	char node[32];

	snprintf(node, sizeof(node), "flexmem%d", world_minor(index));
	return !native_debugfs(node, name, &m) && strstr(m.text, text);
}

static void let_fail(enum sim_fault fault, u32 command, unsigned int times)
{
	WRITE_ONCE(world.card.mbox.fault_command, command);
	world_faults(fault, times);
}

static void free_and_trim(struct run *r, int error)
{
	CALL(r, FREE, &CMD(free, .handle = r->handle[0][0]));
	r->nr[0] = 0;
	FAILS(r, TRIM, &CMD(trim), error);
}

static void run_regions(struct run *r)
{
	must(r, shows(1, "regions", "\nclients 1 generation "),
	     "sums");
	must(r, shows(1, "regions", "slot 0 total ") &&
	     shows(1, "regions", " allocated 1 sequence "), "region");
	must(r, !shows(0, "regions", " allocated 1 "),
	     "region of another function");
	free_and_trim(r, 0);
	must(r, !shows(1, "regions", "slot 0"), "region that was released");
}

/* The reply to slot_clear is lost. The worker tries again later. */
static void run_pending(struct run *r)
{
	must(r, shows(1, "memory", "state up timeouts 0\nmemory ") &&
	     shows(1, "memory", " slot 0\n"), "memory in use");
	let_fail(SIM_DROP_REPLIES, SIM_SLOT_CLEAR, 1);
	free_and_trim(r, ETIMEDOUT);
	must(r, shows(1, "memory", "state up timeouts 1\n"),
	     "state without a reply");
	must(r, shows(1, "memory", " slot 0 pending slot_clear scrub release tries 0\n"),
	     "commands that are pending");
	let_fail(SIM_DROP_REPLIES, SIM_ANY, 0);
	msleep(10000);
	native_settle_work();
	must(r, shows(1, "memory", "state up timeouts 0\n") &&
	     !shows(1, "memory", " pending "), "memory that was released");
}

/* The firmware refuses the release of a PF's memory once. */
static void run_refused(struct run *r)
{
	r->file[0] = native_open(world_minor(0), O_RDWR);
	if (!run_good(r, "open", PTR_ERR_OR_ZERO(r->file[0]), 0)) {
		r->file[0] = NULL;
		return;
	}
	alloc(r, 0, 20000, 0);
	let_fail(SIM_FAIL_COMMANDS, SIM_RELEASE, 1);
	free_and_trim(r, EIO);
	must(r, shows(0, "memory", " pending drain release tries 1\n"),
	     "commands that are pending on a PF");
	let_fail(SIM_FAIL_COMMANDS, SIM_ANY, 0);
	CALL(r, TRIM, &CMD(trim));
	must(r, !shows(0, "memory", "memory "), "memory that was released");
}

/*
 * Closes a file. The firmware refuses @times times to unmap the file's space.
 */
static void close_in_vain(struct run *r, unsigned int times)
{
	struct flexmem_va_reserve range = CMD(va_reserve,
					      .length = SIM_VM_PAGE);
	u32 handle;

	open_file(r, 0);
	handle = alloc(r, 0, SIM_VM_PAGE, 0);
	CALL(r, VA_RESERVE, &range);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = handle,
			      .access = FLEXMEM_VA_READ,
			      .address = range.out_address,
			      .length = SIM_VM_PAGE));
	must(r, !shows(1, "memory", " pending "), "space in use");
	let_fail(SIM_FAIL_COMMANDS, SIM_VM_UNMAP, times);
	native_close(r->file[0]);
	r->file[0] = NULL;
	r->nr[0] = 0;
	must(r, shows(1, "memory", "\nspace ") &&
	     shows(1, "memory", " pending vm_unmap\n"), "space that is closed");
	must(r, shows(1, "regions", " allocated 1 "), "memory of the space");
}

static void run_space(struct run *r)
{
	close_in_vain(r, 3);
	msleep(60000);
	native_settle_work();
	must(r, !shows(1, "memory", "\nspace "), "space that was unmapped");
	let_fail(SIM_FAIL_COMMANDS, SIM_ANY, 0);
}

static void run_space_trim(struct run *r)
{
	close_in_vain(r, 1);
	open_file(r, 0);
	CALL(r, TRIM, &CMD(trim));
	must(r, !shows(1, "memory", "\nspace "), "space after TRIM");
	let_fail(SIM_FAIL_COMMANDS, SIM_ANY, 0);
}

/* A reader does not wait for the task that calls the device. */
static void run_busy(struct run *r)
{
	struct flexmem_file *file = r->file[0]->private_data;

	mutex_lock(&file->fdev->table.acquire_lock);
	must(r, shows(1, "memory", "state up timeouts 0\nbusy\n"), "busy");
	mutex_unlock(&file->fdev->table.acquire_lock);
	must(r, shows(1, "memory", " slot 0\n"), "memory in use");
}

static void run_gone(struct run *r)
{
	char node[32];
	struct seq_file m;

	snprintf(node, sizeof(node), "flexmem%d", world_minor(1));
	world_unbind(1);
	must(r, native_debugfs(node, "memory", &m) == -ENOENT &&
	     native_debugfs(node, "regions", &m) == -ENOENT,
	     "files of a function that was removed");
	r->nr[0] = 0;
	run_good(r, "bind", world_bind(1), 0);
	must(r, shows(1, "memory", "state up"), "files of a new function");
}

const struct sequence debugfs_corners[] = {
	{ "debugfs: regions", prepare, run_regions },
	{ "debugfs: pending commands", prepare, run_pending },
	{ "debugfs: a refused release", NULL, run_refused },
	{ "debugfs: a closed space", NULL, run_space },
	{ "debugfs: TRIM after close()", NULL, run_space_trim },
	{ "debugfs: a command is under way", prepare, run_busy },
	{ "debugfs: the function goes", prepare, run_gone },
	{}
};
