// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the example of the driver guide, Documentation/examples/npu.c, on a few
 * simulated registers. The simulated firmware often answers around the driver's
 * timeout: just before, just after, or at the same moment. Tasks take turns,
 * and a seed decides which one comes first. In some runs the firmware reports
 * that it is dead while the device is registered, suspended or removed, the
 * copy engine hangs, or the PCI core resets the device. The device is a PF or a
 * VF, and its BAR 2 may have no address. It sleeps whenever the driver permits
 * it. The test fails if the driver takes a reply
 * for the reply to another request, uses a device that sleeps, does not reset a
 * dead device, or if firmware and flexmem disagree in the end.
 * usage: npu [-s SEED] [-n RUNS]
 */
#include "shim/internal.h"

#include <unistd.h>

#include "ioctl.h"

#include "npu_board.h"

/* A user that makes random calls, and frees everything at the end. */
#define CMD(name, ...) \
	((struct flexmem_##name) { .size = sizeof(struct flexmem_##name), \
				   ##__VA_ARGS__ })

/*
 * Maps an allocation and touches it. The example's memory lies behind a PCI
 * BAR. A reset may lose the allocation.
 */
static void map_memory(struct file *file, u32 handle)
{
	struct flexmem_lookup map = CMD(lookup, .handle = handle);
	struct vm_area_struct *vma;
	long rc;

	rc = native_ioctl(file, FLEXMEM_IOCTL_LOOKUP, &map);
	if (rc == -EIO && board.fails)
		return;
	WARN_ON(rc);
	vma = native_mmap(file, map.out_map_offset, map.out_size,
			  VM_SHARED | VM_READ | VM_WRITE);
	if (IS_ERR(vma) && board.fails)
		return;
	WARN_ON(IS_ERR(vma));
	WARN_ON(pgprot_val(vma->vm_page_prot) !=
		pgprot_val(pgprot_writecombine(__pgprot(0))));
	native_munmap(vma);
}

static unsigned long timeouts;

static long call(struct file *file, unsigned int cmd, void *arg)
{
	long rc = native_ioctl(file, cmd, arg);

	timeouts += rc == -ETIMEDOUT;
	return rc;
}

static void use_memory(unsigned int minor)
{
	struct file *file = native_open(minor, O_RDWR);
	unsigned int i, at;
	u32 handle[4] = {};

	WARN_ON(IS_ERR(file));
	for (i = 0; i < 24; i++) {
		struct flexmem_alloc alloc = CMD(alloc, .length = SZ_16M,
			.flags = FLEXMEM_ALLOC_MAPPABLE);
		struct flexmem_trim trim = CMD(trim);

		at = draw(4);
		if (!draw(4)) {
			call(file, FLEXMEM_IOCTL_TRIM, &trim);
		} else if (handle[at]) {
			struct flexmem_free put = CMD(free,
						      .handle = handle[at]);

			WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_FREE, &put));
			handle[at] = 0;
		} else if (!call(file, FLEXMEM_IOCTL_ALLOC, &alloc)) {
			handle[at] = alloc.out_handle;
			map_memory(file, handle[at]);
		}
	}
	native_close(file);
}

/*
 * Releases everything. When TRIM has returned, the firmware may hold no memory
 * that flexmem does not know of.
 */
static void trim_all(unsigned int minor)
{
	struct file *file = native_open(minor, O_RDWR);
	struct flexmem_trim trim = CMD(trim);
	long rc;

	WARN_ON(IS_ERR(file));
	do {
		rc = call(file, FLEXMEM_IOCTL_TRIM, &trim);
	} while (rc == -ETIMEDOUT || rc == -EIO);
	WARN(rc, "TRIM: %ld", rc);
	native_close(file);
	WARN(memchr_inv(board.name, 0, sizeof(board.name)),
	     "the board has memory that nobody knows of");
	WARN(memchr_inv(board.slot, 0, sizeof(board.slot)),
	     "a slot of the board is filled");
}

/*
 * Frees what devm would free after remove() or a failed probe(). A device that
 * may still use the buffer must have been reset before, unless the bus is down.
 */
static void drop_objects(struct pci_dev *pdev)
{
	WARN_ON(board.posted && !board.down);
	board.pdev = NULL;
	wait_for_interrupt();
	while (pdev->nr)
		kfree(pdev->objects[--pdev->nr]);
}

/*
 * If the device fails before it is registered, the driver handles that after
 * the registration.
 */
static void end_dying(struct npu *npu)
{
	board.dying = false;
	wait_for_interrupt();
	flush_work(&npu->dead_work);
	WARN_ON(!board.resets);
}

/* The driver ignores the interrupt while the device is suspended. */
static void die_asleep(struct pci_dev *pdev)
{
	const struct dev_pm_ops *pm = the_driver->driver.pm;
	struct npu *npu = pci_get_drvdata(pdev);

	pm_runtime_resume_and_get(&pdev->dev);
	board.resets = 0;
	pm->suspend(&pdev->dev);
	forget();
	raise_event(NPU_EVENT_DEAD);
	WARN_ON(board.resets);
	pm->resume(&pdev->dev);
	flush_work(&npu->dead_work);
	WARN_ON(board.resets != 1);
	pm_runtime_put_autosuspend(&pdev->dev);
}

/* The copy engine may not stop. Then the driver resets the device. */
static void use_hanging(struct npu *npu, unsigned int minor)
{
	board.hangs = !draw(2);
	board.fails = true;
	use_memory(minor);
	board.hangs = false;
	flush_work(&npu->dead_work);
	board.fails = false;
}

static void expect_failed(unsigned int minor)
{
	struct file *file = native_open(minor, O_RDWR);
	struct flexmem_trim trim = CMD(trim);

	WARN_ON(IS_ERR(file));
	WARN_ON(call(file, FLEXMEM_IOCTL_TRIM, &trim) != -EIO);
	native_close(file);
}

/* The driver must not access a device that may not answer. */
static pci_ers_result_t report_error(struct pci_dev *pdev,
				     pci_channel_state_t state)
{
	pci_ers_result_t result;

	board.down = state != pci_channel_io_normal;
	board.barred = current;
	result = the_driver->err_handler->error_detected(pdev, state);
	board.barred = NULL;
	return result;
}

/* A FLR is requested through sysfs, which wakes the device. */
static void begin_reset(struct pci_dev *pdev)
{
	pm_runtime_resume_and_get(&pdev->dev);
	the_driver->err_handler->reset_prepare(pdev);
	raise_event(NPU_EVENT_DEAD);
}

static void begin_error(struct pci_dev *pdev, bool fatal)
{
	errors_asleep += board.asleep;
	WARN_ON(report_error(pdev, fatal ? pci_channel_io_frozen :
			     pci_channel_io_normal) !=
		PCI_ERS_RESULT_NEED_RESET);
}

static void reset_slot(struct pci_dev *pdev)
{
	WARN_ON(the_driver->err_handler->slot_reset(pdev) !=
		PCI_ERS_RESULT_RECOVERED);
}

/*
 * If another driver on the bus does not recover, the error ends without
 * resume().
 */
static void end_error(struct pci_dev *pdev, bool fatal)
{
	reset_slot(pdev);
	if (draw(2)) {
		begin_error(pdev, fatal);
		board.down = false;
		reset_slot(pdev);
	}
	the_driver->err_handler->resume(pdev);
}

/*
 * A FLR, or a reset of the bus after a fatal error. After other errors nothing
 * is reset.
 */
static void reset_from_outside(struct pci_dev *pdev, unsigned int minor,
			       bool after_error, bool fatal)
{
	struct npu *npu = pci_get_drvdata(pdev);
	u64 resets;

	if (after_error)
		begin_error(pdev, fatal);
	else
		begin_reset(pdev);
	board.closed = true;
	resets = npu->fdev->table.resets;
	/*
	 * The watchdog of a driver resets a device at such a moment if a job has
	 * run too long.
	 */
	WARN_ON(flexmem_device_reset(npu->fdev) != -EIO);
	expect_failed(minor);
	/*
	 * A process that reads the device's configuration space wakes it like
	 * this.
	 */
	if (draw(2)) {
		pm_runtime_resume_and_get(&pdev->dev);
		pm_runtime_put_autosuspend(&pdev->dev);
	}
	if (!after_error || fatal) {
		reset_board();
		forget();
	}
	board.closed = false;
	board.down = false;
	board.fails_again = !draw(2);
	if (after_error)
		end_error(pdev, fatal);
	else
		the_driver->err_handler->reset_done(pdev);
	flush_work(&npu->dead_work);
	WARN_ON(npu->fdev->table.resets != resets + 1);
	if (!after_error)
		pm_runtime_put_autosuspend(&pdev->dev);
}

/*
 * A user that makes calls until the device is gone. The copy engine does not
 * stop, so calls can find the device dead.
 */
static int run_to_the_end(void *minor)
{
	struct file *file = native_open(*(unsigned int *)minor, O_RDWR);
	struct flexmem_alloc alloc = CMD(alloc, .length = SZ_16M);
	struct flexmem_trim trim = CMD(trim);

	WARN_ON(IS_ERR(file));
	while (call(file, FLEXMEM_IOCTL_TRIM, &trim) != -ENODEV) {
		call(file, FLEXMEM_IOCTL_ALLOC, &alloc);
		call(file, FLEXMEM_IOCTL_FREE,
		     &CMD(free, .handle = alloc.out_handle));
		/* The clock stands still while a task can run. */
		schedule_timeout(1);
	}
	native_close(file);
	while (!kthread_should_stop())
		schedule_timeout(1);
	return 0;
}

static int run_user(void *minor)
{
	use_memory(*(unsigned int *)minor);
	while (!kthread_should_stop())
		schedule_timeout(1);
	return 0;
}

/* A device without memory sleeps sooner or later. */
static void fall_asleep(struct pci_dev *pdev)
{
	while (!board.asleep) {
		pm_runtime_resume_and_get(&pdev->dev);
		pm_runtime_put_autosuspend(&pdev->dev);
	}
}

/* The device sleeps when it has an error. Linux 6.1 does not wake it. */
static void fail_asleep(struct pci_dev *pdev, unsigned int minor)
{
	trim_all(minor);
	fall_asleep(pdev);
	reset_from_outside(pdev, minor, true, draw(2));
}

/* The device has left the bus, so a reset does not reach it. */
static void reset_in_vain(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);

	pm_runtime_resume_and_get(&pdev->dev);
	board.down = true;
	WARN_ON(flexmem_device_reset(npu->fdev) != -EIO);
	board.down = false;
	WARN_ON(flexmem_device_reset(npu->fdev));
	pm_runtime_put_autosuspend(&pdev->dev);
}

/* Resets the device from outside while a user makes calls. */
static void reset_in_use(struct pci_dev *pdev, unsigned int minor)
{
	struct task_struct *user;

	board.fails = true;
	user = native_kthread_create(run_user, &minor, "user");
	native_kthread_start(user);
	msleep(draw(2000));
	reset_from_outside(pdev, minor, draw(2), draw(2));
	kthread_stop(user);
	board.fails = false;
}

/* The device is lost, or the machine goes down. No command follows. */
static void end_early(struct pci_dev *pdev, unsigned int minor)
{
	pm_runtime_resume_and_get(&pdev->dev);
	if (draw(2)) {
		WARN_ON(report_error(pdev, pci_channel_io_perm_failure) !=
			PCI_ERS_RESULT_DISCONNECT);
		board.closed = true;
		expect_failed(minor);
	} else {
		the_driver->shutdown(pdev);
		WARN_ON(count_pieces());
		WARN_ON(board.master);
		WARN_ON(board.posted);
	}
	pm_runtime_put_autosuspend(&pdev->dev);
}

/*
 * The device reports no news while it sleeps. So the driver asks for the
 * capacity when the device wakes up. This question wakes the device too, and
 * must not lead to another question.
 */
static void sleep_and_wake_up(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);
	unsigned long before;

	flush_work(&npu->capacity_work);
	fall_asleep(pdev);
	before = told;
	pm_runtime_resume_and_get(&pdev->dev);
	pm_runtime_put_autosuspend(&pdev->dev);
	flush_work(&npu->capacity_work);
	flush_work(&npu->capacity_work);
	WARN_ON(told == before);
	/* A worker may send commands, too, if the firmware did not answer. */
	if (!atomic_read(&npu->fdev->table.function.timeouts))
		WARN_ON(told != before + 1);
}

/* An interrupt without an event is ignored. */
static void interrupt_in_vain(struct npu *npu)
{
	unsigned int resets = board.resets;

	raise_event(0);
	flush_work(&npu->dead_work);
	WARN_ON(board.resets != resets);
}

/* BAR 2 has no address, or another driver has it. The kernel must not warn. */
static void probe_in_vain(struct pci_dev *pdev)
{
	static const int expected[] = {
		[WINDOW_LACKS] = -ENODEV,
		[WINDOW_UNSET] = -ENODEV,
		[WINDOW_TAKEN] = -EBUSY,
	};

	board.window = 1 + draw(3);
	if (board.window == WINDOW_UNSET)
		pdev->resource[NPU_WINDOW].flags = IORESOURCE_UNSET;
	WARN_ON(the_driver->probe(pdev, the_driver->id_table) !=
		expected[board.window]);
	drop_objects(pdev);
	pdev->resource[NPU_WINDOW].flags = 0;
	board.window = WINDOW_GOOD;
}

static void run_once(u64 seed)
{
	struct task_struct *firmware, *user;
	struct pci_dev pdev = {};
	struct npu *npu;
	unsigned int minor;

	/* The PCI core has the first reference. */
	board = (struct board) { .random = seed, .users = 1 };
	board.dying = !draw(4);
	init_waitqueue_head(&board.doorbell);
	device_initialize(&pdev.dev);
	native_start_schedule(seed, 0, 10000);
	firmware = native_kthread_create(run_firmware, NULL, "firmware");
	native_kthread_start(firmware);
	pdev.is_virtfn = draw(4);
	if (!draw(4))
		probe_in_vain(&pdev);
	/* The firmware may fail to answer during registration. */
	while (the_driver->probe(&pdev, the_driver->id_table)) {
		drop_objects(&pdev);
		board.resets = 0;
	}
	npu = pci_get_drvdata(&pdev);
	if (board.dying)
		end_dying(npu);
	minor = MINOR(npu->fdev->dev.devt);
	use_memory(minor);
	if (!draw(4))
		die_asleep(&pdev);
	if (!draw(4))
		use_hanging(npu, minor);
	if (!draw(4))
		reset_in_use(&pdev, minor);
	if (!draw(4))
		fail_asleep(&pdev, minor);
	if (!draw(4))
		reset_in_vain(&pdev);
	if (draw(4)) {
		trim_all(minor);
		sleep_and_wake_up(&pdev);
		interrupt_in_vain(npu);
	} else {
		end_early(&pdev, minor);
	}
	board.dying = !draw(4);
	pm_runtime_resume_and_get(&pdev.dev);
	user = draw(2) ? native_kthread_create(run_to_the_end, &minor, "user") :
		NULL;
	if (user) {
		board.hangs = board.fails = true;
		native_kthread_start(user);
		msleep(draw(2000));
	}
	the_driver->remove(&pdev);
	if (user)
		kthread_stop(user);
	drop_objects(&pdev);
	kthread_stop(firmware);
	WARN_ON(board.users != 2);
}

int main(int argc, char **argv)
{
	unsigned long runs = 300, i;
	u64 seed = 1;
	int option;
	long live;

	while ((option = getopt(argc, argv, "s:n:")) != -1) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			runs = strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	native_shim_init();
	live = native_live();
	WARN_ON(native_param_set("fallback_sizes", "16M"));
	WARN_ON(native_param_set("order", "fill_first"));
	WARN_ON(native_module_init());
	for (i = 0; i < runs; i++)
		run_once(seed + i);
	native_module_exit();
	WARN_ON(native_live() != live);
	/* If one of these events never happened, the run proves nothing. */
	WARN_ON(!timeouts || !hung || !sleeps || !errors_asleep);
	printf("# seed %llu: %lu time-outs, %lu hanging copies, %lu sleeps, %lu errors while asleep\nok 1 - the example driver, %lu times\n1..1\n",
	       seed, timeouts, hung, sleeps, errors_asleep, runs);
	return 0;
}
