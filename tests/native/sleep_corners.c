// SPDX-License-Identifier: GPL-2.0
/*
 * CPU mappings of a suspended PF or VF. The suspend unmaps all pages. A task
 * that touches mapped memory then waits until the resume, and can be killed.
 */
#include "corners.h"

/**
 * struct access - an access that another task makes
 * @vma: mapping
 * @locked: whether the page fault must keep the process's mmap_lock
 * @fault: the result of a fault that keeps the lock
 * @rc: the result of any other access
 * @done: completed when the access has ended
 */
struct access {
	struct vm_area_struct *vma;
	bool locked;
	vm_fault_t fault;
	int rc;
	struct completion done;
};

static vm_fault_t fault_with(struct vm_area_struct *vma, unsigned int flags)
{
	struct vm_fault vmf = {
		.vma = vma,
		.pgoff = vma->vm_pgoff,
		.address = vma->vm_start,
		.flags = flags,
	};

	return vma->vm_ops->fault(&vmf);
}

static int do_access(void *data)
{
	struct access *access = data;
	u8 byte;

	if (access->locked)
		access->fault = fault_with(access->vma, 0);
	else
		access->rc = native_touch(access->vma, 0, &byte, false);
	complete(&access->done);
	return 0;
}

static struct task_struct *begin(struct run *r, struct access *access,
				 bool locked)
{
	struct task_struct *task;

	*access = (struct access) { .vma = r->vma, .locked = locked };
	init_completion(&access->done);
	task = native_kthread_run(do_access, access, "access");
	/* Lets the access run until it must wait. */
	msleep(10);
	must(r, !completion_done(&access->done),
	     "an access waits while the function sleeps");
	return task;
}

/* Maps an allocation, touches a page, and suspends the device. */
static bool begin_sleep(struct run *r)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = r->handle[0][0]);
	u8 byte;

	if (!CALL(r, LOOKUP, &cmd))
		return false;
	r->vma = native_mmap(r->file[0], cmd.out_map_offset, cmd.out_size,
			     VM_SHARED);
	if (!run_good(r, "mmap", PTR_ERR_OR_ZERO(r->vma), 0)) {
		r->vma = NULL;
		return false;
	}
	must(r, !native_touch(r->vma, 0, &byte, false), "a page of the map");
	world_suspend(1);
	return true;
}

static void run_access(struct run *r)
{
	struct access access, locked;

	if (!begin_sleep(r))
		return;
	begin(r, &access, false);
	begin(r, &locked, true);
	must(r, fault_with(r->vma, FAULT_FLAG_ALLOW_RETRY |
			   FAULT_FLAG_RETRY_NOWAIT) == VM_FAULT_RETRY,
	     "a fault that may not wait does not");
	world_resume(1);
	wait_for_completion(&access.done);
	wait_for_completion(&locked.done);
	must(r, !access.rc, "the access after the resume");
	must(r, locked.fault == VM_FAULT_NOPAGE, "the fault after the resume");
}

static void run_killed(struct run *r)
{
	struct access access, locked;

	if (!begin_sleep(r))
		return;
	send_sig(SIGKILL, begin(r, &access, false), 1);
	send_sig(SIGKILL, begin(r, &locked, true), 1);
	wait_for_completion(&access.done);
	wait_for_completion(&locked.done);
	must(r, access.rc == -EFAULT, "the access of a killed task");
	must(r, locked.fault == VM_FAULT_SIGBUS, "the fault of a killed task");
	world_resume(1);
}

/* An unbind loses the memory, so the access ends with an error. */
static void run_unbound(struct run *r)
{
	struct access access;

	if (!begin_sleep(r))
		return;
	begin(r, &access, false);
	world_unbind(1);
	wait_for_completion(&access.done);
	must(r, access.rc == -EFAULT, "the access after the driver has gone");
	r->nr[0] = 0;
	if (run_good(r, "bind", world_bind(1), 0))
		open_file(r, 1);
}

/* The driver of a device that has failed is not asked for pages. */
static void run_failed(struct run *r)
{
	u8 byte;

	if (!begin_sleep(r))
		return;
	world_fail(1);
	world_resume(1);
	must(r, native_touch(r->vma, 0, &byte, false) == -EFAULT,
	     "the access after the device has failed");
	world_unbind(1);
	r->nr[0] = 0;
	if (run_good(r, "bind", world_bind(1), 0))
		open_file(r, 1);
}

const struct sequence sleep_corners[] = {
	{ "access to a map while the device sleeps", prepare, run_access },
	{ "access of a killed task while the device sleeps", prepare,
	  run_killed },
	{ "access while a sleeping device is unbound", prepare, run_unbound },
	{ "access after a sleeping device has failed", prepare, run_failed },
	{}
};
