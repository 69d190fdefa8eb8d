// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the example of the driver guide, Documentation/examples/npu.c, on a few
 * simulated registers. The simulated firmware often answers around the driver's
 * timeout: just before, just after, or at the same moment. Tasks take turns,
 * and a seed decides which one comes first. In some runs the firmware reports
 * that it is dead while the device is registered, suspended or removed, the
 * copy engine hangs, or the PCI core resets the device. The device sleeps
 * whenever the driver permits it. The test fails if the driver takes a reply
 * for the reply to another request, uses a device that sleeps, does not reset a
 * dead device, or if firmware and flexmem disagree in the end.
 * usage: npu [-s SEED] [-n RUNS]
 */
#include "internal.h"

#include <unistd.h>

#include "ioctl.h"

/* Parts of the kernel that the example needs but flexmem does not. */
struct pci_dev {
	struct device dev;
	unsigned int irq;
	void *objects[2];
	unsigned int nr;
};

struct pci_device_id {
	unsigned int vendor, device;
};

typedef enum {
	pci_channel_io_normal,
	pci_channel_io_frozen,
	pci_channel_io_perm_failure,
} pci_channel_state_t;
typedef enum {
	PCI_ERS_RESULT_DISCONNECT,
	PCI_ERS_RESULT_NEED_RESET,
	PCI_ERS_RESULT_RECOVERED,
} pci_ers_result_t;

struct pci_error_handlers {
	pci_ers_result_t (*error_detected)(struct pci_dev *pdev,
					   pci_channel_state_t state);
	pci_ers_result_t (*slot_reset)(struct pci_dev *pdev);
	void (*resume)(struct pci_dev *pdev);
	void (*reset_prepare)(struct pci_dev *pdev);
	void (*reset_done)(struct pci_dev *pdev);
};

struct dev_pm_ops {
	int (*suspend)(struct device *dev);
	int (*resume)(struct device *dev);
	int (*runtime_suspend)(struct device *dev);
	int (*runtime_resume)(struct device *dev);
};

struct pci_driver {
	const char *name;
	const struct pci_device_id *id_table;
	int (*probe)(struct pci_dev *pdev, const struct pci_device_id *id);
	void (*remove)(struct pci_dev *pdev);
	void (*shutdown)(struct pci_dev *pdev);
	const struct pci_error_handlers *err_handler;
	struct {
		const struct dev_pm_ops *pm;
	} driver;
};

typedef u64 dma_addr_t;
typedef int irqreturn_t;
enum { IRQ_NONE, IRQ_HANDLED };
#define IRQF_SHARED 0
#define PCI_DEVICE(v, d) .vendor = (v), .device = (d)
#define PCI_VENDOR_ID_REDHAT_QUMRANET 0x1af4
#define MODULE_DEVICE_TABLE(bus, ids)
#define module_pci_driver(driver) \
	static struct pci_driver *const the_driver = &(driver)
#define SYSTEM_SLEEP_PM_OPS(suspend_op, resume_op) \
	.suspend = suspend_op, .resume = resume_op,
#define RUNTIME_PM_OPS(suspend_op, resume_op, idle_op) \
	.runtime_suspend = suspend_op, .runtime_resume = resume_op,
#define pm_ptr(ptr) (ptr)
#define pm_runtime_get_noresume(dev) ((void)(dev), board.users++)
#define pm_runtime_mark_last_busy(dev)
#define pm_runtime_set_autosuspend_delay(dev, ms)
#define pm_runtime_use_autosuspend(dev)
#define pm_runtime_dont_use_autosuspend(dev)
#define pci_physfn(pdev) (pdev)
#define pci_save_state(pdev) ((void)(pdev), board.saved = true)
#define pci_restore_state(pdev) WARN_ON(!board.saved)
#define pci_clear_master(pdev) ((void)(pdev), board.master = false)
#define schedule_work(work) queue_work(system_wq, work)
#define cancel_work_sync(work) flush_work(work)
#define dev_get_drvdata(dev) ((dev)->driver_data)
#define pci_get_drvdata(pdev) dev_get_drvdata(&(pdev)->dev)
#define pci_set_drvdata(pdev, data) ((pdev)->dev.driver_data = (data))
#define pci_name(pdev) "npu"
#define pci_resource_len(pdev, bar) ((void)(pdev), 64ull << 30)
#define pci_resource_start(pdev, bar) ((void)(pdev), 1ull << 40)
#define pci_set_master(pdev) ((void)(pdev), board.master = true)
#define devm_arch_io_reserve_memtype_wc(dev, start, size) ((void)(start), 0)
#define pcim_enable_device(pdev) 0
#define pcim_iomap_regions(pdev, bars, name) 0
#define pcim_iomap_table(pdev) bars
#define devm_request_irq(dev, irq, handler, flags, name, data) request_irq(dev)
#define synchronize_irq(irq) wait_for_interrupt()
#define PHYS_PFN(address) ((address) >> PAGE_SHIFT)
#define readl_poll_timeout(address, value, condition, sleep, timeout) \
	((value) = readl(address), (condition) ? 0 : -ETIMEDOUT)
#define reinit_completion(completion) ({		\
	spin_lock(&(completion)->wait.lock);		\
	(completion)->done = 0;				\
	spin_unlock(&(completion)->wait.lock);		\
})
#define wait_for_completion_killable_timeout(completion, timeout) ({	\
	long __rest = wait_event_killable_timeout((completion)->wait,	\
				completion_done(completion), timeout);	\
	if (__rest > 0)							\
		wait_for_completion(completion);			\
	__rest;								\
})

static void *devm_kzalloc(struct device *dev, size_t size, gfp_t gfp)
{
	struct pci_dev *pdev = container_of(dev, struct pci_dev, dev);

	return pdev->objects[pdev->nr++] = kzalloc(size, gfp);
}

static void wait_for_interrupt(void);
static int request_irq(struct device *dev);
static int pm_runtime_resume_and_get(struct device *dev);
static void pm_runtime_put_autosuspend(struct device *dev);

#define dmam_alloc_coherent(dev, size, dma, gfp) \
	(*(dma) = 0, devm_kzalloc(dev, size, gfp))

/* The board. One task runs at a time, so the board needs no locks. */
#define PIECES 16
#define SLOTS 8

/* A request, as the registers hold it. */
struct request {
	u32 command, slot;
	u64 memory, length;
};

static struct board {
	struct request queue[PIECES];
	u32 numbers[PIECES];
	unsigned int head, tail;
	u32 sent, done, status, event;
	u64 result;
	/* The name of the piece that begins at i GiB, or 0 if there is none. */
	u64 name[PIECES];
	u64 slot[SLOTS];
	bool quiet;
	/* References of runtime PM, and what a sleeping device has forgotten. */
	unsigned int users;
	bool asleep, saved, master, has_buffer;
	u32 mask;
	/* A write may not have reached the device yet. A read waits for it. */
	bool posted;
	/* The latest answer about memory. */
	unsigned int held;
	/* The bus is down: reads return ones, and writes are lost. */
	bool down;
	/* No task may access the device, or only this task may not. */
	bool closed;
	struct task_struct *barred;
	/* The device fails again during its next reset. */
	bool fails_again;
	/* The copy engine does not stop; the device may fail. */
	bool hangs, fails;
	/* The device sends its "dead" interrupt even if it is masked. */
	bool dying;
	unsigned int resets;
	u64 random;
	/*
	 * The device whose interrupt handler is installed, and whether the
	 * handler is running.
	 */
	struct pci_dev *pdev;
	bool busy;
	wait_queue_head_t doorbell;
} board;

static u8 registers[0x100];
static void *const bars[] = { registers };
static u32 readl(const void *address);
static u64 readq(const void *address);
static void writel(u32 value, void *address);
static void writeq(u64 value, void *address);

/* How often the driver has reported news about the capacity. */
static unsigned long told;

#define flexmem_device_capacity_changed(fdev) \
	(told++, (flexmem_device_capacity_changed)(fdev))

#include "../../Documentation/examples/npu.c"

static void wait_for_interrupt(void)
{
	while (board.busy)
		schedule_timeout(1);
}

static u64 draw(u64 below)
{
	board.random = board.random * 6364136223846793005ull +
		       1442695040888963407ull;
	return (board.random >> 33) % below;
}

static int request_irq(struct device *dev)
{
	board.pdev = container_of(dev, struct pci_dev, dev);
	return 0;
}

/* How often the copy engine did not stop, and how often the device slept. */
static unsigned long hung, sleeps;

/* Whether an access reaches the device. The driver must have woken it up. */
static bool is_there(unsigned int offset)
{
	native_point();
	if (board.asleep && offset != NPU_EVENT && offset != NPU_EVENT_MASK)
		shim_bug("access to register %#x of a device that sleeps",
			 offset);
	if (offset != NPU_EVENT && (board.closed || board.barred == current))
		shim_bug("access to register %#x before a reset from outside",
			 offset);
	return !board.asleep && !board.down;
}

static unsigned int count_pieces(void)
{
	unsigned int i, nr = 0;

	for (i = 0; i < PIECES; i++)
		nr += board.name[i] != 0;
	return nr;
}

/* Drops what the device loses in a sleep, or in a reset from outside. */
static void forget(void)
{
	board.tail = board.head;
	board.has_buffer = false;
	board.master = false;
	board.mask = 0;
}

static DEFINE_MUTEX(power_lock);

static int pm_runtime_resume_and_get(struct device *dev)
{
	mutex_lock(&power_lock);
	board.users++;
	if (board.asleep) {
		board.asleep = false;
		WARN_ON(the_driver->driver.pm->runtime_resume(dev));
	}
	mutex_unlock(&power_lock);
	return 0;
}

/* The PCI core saves the device's state in a sleep, and uses it up afterwards. */
static void pm_runtime_put_autosuspend(struct device *dev)
{
	mutex_lock(&power_lock);
	board.held = 1;
	if (!--board.users && !draw(2) &&
	    !the_driver->driver.pm->runtime_suspend(dev)) {
		if (board.held)
			shim_bug("a device with memory falls asleep");
		board.asleep = true;
		board.saved = false;
		forget();
		sleeps++;
	}
	mutex_unlock(&power_lock);
}

static u32 readl(const void *address)
{
	const unsigned int offset = (const u8 *)address - registers;
	u32 value;

	if (!is_there(offset))
		return ~0U;
	board.posted = false;
	switch (offset) {
	case NPU_DONE:
		value = board.done;
		/*
		 * The driver may read this register long after the request has
		 * ended.
		 */
		native_point();
		return value;
	case NPU_STATUS:
		if (board.done != board.sent)
			shim_bug("reply %u is taken for that of %u",
				 board.done, board.sent);
		return board.status;
	case NPU_EVENT:
		value = board.event;
		board.event = 0;
		return value;
	case NPU_SLOTS:
		return SLOTS;
	case NPU_HELD:
		return board.held = count_pieces();
	case NPU_STOP:
		hung += board.hangs;
		return board.hangs;
	default:
		return 0;
	}
}

static u64 readq(const void *address)
{
	return is_there(NPU_RESULT) ? board.result : ~0ULL;
}

static void reset_board(void)
{
	board.tail = board.head;
	memset(board.name, 0, sizeof(board.name));
	memset(board.slot, 0, sizeof(board.slot));
	board.quiet = false;
	board.hangs = false;
}

static void fail_again(void)
{
	struct npu *npu = pci_get_drvdata(board.pdev);

	board.fails_again = false;
	flexmem_device_failed(npu->fdev);
}

static void writel(u32 value, void *address)
{
	const unsigned int offset = (u8 *)address - registers;

	if (!is_there(offset))
		return;
	memcpy(address, &value, sizeof(value));
	board.posted = true;
	if (offset == NPU_EVENT_MASK)
		board.mask = value;
	if (offset == NPU_RESET) {
		board.resets++;
		reset_board();
		if (board.fails_again)
			fail_again();
	}
	if (offset != NPU_SEND)
		return;
	board.sent = value;
	if (board.head - board.tail < PIECES) {
		struct request *req = &board.queue[board.head % PIECES];

		memcpy(&req->command, registers + NPU_COMMAND, 4);
		memcpy(&req->slot, registers + NPU_SLOT, 4);
		memcpy(&req->memory, registers + NPU_MEMORY, 8);
		memcpy(&req->length, registers + NPU_LENGTH, 8);
		board.numbers[board.head++ % PIECES] = value;
	}
	wake_up(&board.doorbell);
}

static void writeq(u64 value, void *address)
{
	const unsigned int offset = (u8 *)address - registers;

	if (!is_there(offset))
		return;
	memcpy(address, &value, sizeof(value));
	board.has_buffer |= offset == NPU_BUFFER;
}

static int find_name(u64 name)
{
	int i;

	for (i = 0; i < PIECES; i++)
		if (board.name[i] == name)
			return i;
	return -1;
}

static u32 carry_out(const struct request *req)
{
	int i = find_name(req->memory), free = find_name(0);
	unsigned int slot;

	if (!board.master || !board.has_buffer ||
	    !(board.mask & NPU_EVENT_REPLY))
		shim_bug("command %u before the device is set up",
			 req->command);
	if (board.quiet && req->command != NPU_RELEASE &&
	    req->command != NPU_CLEAR && req->command != NPU_CAPACITY &&
	    req->command != NPU_HALT)
		shim_bug("command %u after its programs were stopped",
			 req->command);
	switch (req->command) {
	case NPU_ACQUIRE:
		i = i < 0 ? free : i;
		if (i < 0)
			return NPU_NO_MEMORY;
		board.name[i] = req->memory;
		board.result = (u64)i << 30;
		return NPU_OK;
	case NPU_RELEASE:
		for (slot = 0; slot < SLOTS; slot++)
			if (i >= 0 && board.slot[slot] == req->memory)
				shim_bug("released while slot %u names it",
					 slot);
		if (i >= 0)
			board.name[i] = 0;
		return NPU_OK;
	case NPU_SET:
		if (i < 0 || (board.slot[req->slot] &&
			      board.slot[req->slot] != req->memory))
			shim_bug("slot %u is set wrongly", req->slot);
		board.slot[req->slot] = req->memory;
		return NPU_OK;
	case NPU_CLEAR:
		board.slot[req->slot] = 0;
		return NPU_OK;
	case NPU_HALT:
		board.quiet = true;
		return NPU_OK;
	case NPU_CAPACITY:
		board.result = PIECES * (u64)SZ_16M;
		return NPU_OK;
	default:
		return i < 0 ? NPU_FAILED : NPU_OK;
	}
}

static bool has_request(void)
{
	return board.head != board.tail || kthread_should_stop();
}

static void raise_event(u32 event)
{
	wait_for_interrupt();
	board.busy = true;
	board.event |= event;
	if (board.pdev)
		npu_interrupt(0, pci_get_drvdata(board.pdev));
	board.busy = false;
}

/*
 * The firmware. A request takes up to a second, as long as the driver's
 * timeout.
 */
static int run_firmware(void *unused)
{
	struct request req;
	u32 number;

	while (1) {
		wait_event(board.doorbell, has_request());
		if (kthread_should_stop())
			return 0;
		if (!draw(3))
			msleep(980 + draw(25));
		if (board.head == board.tail)
			continue;
		req = board.queue[board.tail % PIECES];
		number = board.numbers[board.tail++ % PIECES];
		board.status = carry_out(&req);
		board.done = number;
		raise_event(NPU_EVENT_REPLY |
			    (board.dying ? NPU_EVENT_DEAD : 0));
	}
}

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
	struct flexmem_map map = CMD(map, .handle = handle);
	struct vm_area_struct *vma;
	long rc;

	rc = native_ioctl(file, FLEXMEM_IOCTL_MAP, &map);
	if (rc == -EIO && board.fails)
		return;
	WARN_ON(rc);
	vma = native_mmap(file, map.out_offset, map.out_size,
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
 * Frees what devm would free after remove() or a failed probe(). The reset must
 * have reached a device that may use the buffer.
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

/*
 * A FLR, or a reset of the bus after a fatal error. After other errors nothing
 * is reset.
 */
static void reset_from_outside(struct pci_dev *pdev, unsigned int minor,
			       bool after_error, bool fatal)
{
	const struct pci_error_handlers *handlers = the_driver->err_handler;
	struct npu *npu = pci_get_drvdata(pdev);
	u64 resets;

	pm_runtime_resume_and_get(&pdev->dev);
	if (after_error) {
		WARN_ON(report_error(pdev, fatal ? pci_channel_io_frozen :
				     pci_channel_io_normal) !=
			PCI_ERS_RESULT_NEED_RESET);
	} else {
		handlers->reset_prepare(pdev);
		raise_event(NPU_EVENT_DEAD);
	}
	board.closed = true;
	resets = npu->fdev->table.resets;
	/* As flexmem itself does when a job is overdue. */
	WARN_ON(flexmem_device_reset(npu->fdev) != -EIO);
	expect_failed(minor);
	if (!after_error || fatal) {
		reset_board();
		forget();
	}
	board.closed = false;
	board.down = false;
	board.fails_again = !draw(2);
	if (after_error) {
		WARN_ON(handlers->slot_reset(pdev) != PCI_ERS_RESULT_RECOVERED);
		handlers->resume(pdev);
	} else {
		handlers->reset_done(pdev);
	}
	flush_work(&npu->dead_work);
	WARN_ON(npu->fdev->table.resets != resets + 1);
	pm_runtime_put_autosuspend(&pdev->dev);
}

static int run_user(void *minor)
{
	use_memory(*(unsigned int *)minor);
	while (!kthread_should_stop())
		schedule_timeout(1);
	return 0;
}

/* The same while a user makes calls. */
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
 * The device reports no news while it sleeps, so the driver asks for the
 * capacity when the device wakes up, but not when it wakes up for that.
 */
static void sleep_and_wake_up(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);
	unsigned long before;

	flush_work(&npu->capacity_work);
	while (!board.asleep) {
		pm_runtime_resume_and_get(&pdev->dev);
		pm_runtime_put_autosuspend(&pdev->dev);
	}
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

/* Another device has raised the interrupt that the device shares with it. */
static void share_interrupt(struct npu *npu)
{
	unsigned int resets = board.resets;

	raise_event(0);
	flush_work(&npu->dead_work);
	WARN_ON(board.resets != resets);
}

static void run_once(u64 seed)
{
	struct task_struct *firmware;
	struct pci_dev pdev = {};
	struct npu *npu;
	unsigned int minor;

	/* The PCI core has a reference. */
	board = (struct board) { .random = seed, .users = 1 };
	board.dying = !draw(4);
	init_waitqueue_head(&board.doorbell);
	device_initialize(&pdev.dev);
	native_start_schedule(seed, 0, 10000);
	firmware = native_kthread_create(run_firmware, NULL, "firmware");
	native_kthread_start(firmware);
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
	if (draw(4)) {
		trim_all(minor);
		sleep_and_wake_up(&pdev);
		share_interrupt(npu);
	} else {
		end_early(&pdev, minor);
	}
	board.dying = !draw(4);
	pm_runtime_resume_and_get(&pdev.dev);
	the_driver->remove(&pdev);
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
	/* Without these the run proves nothing. */
	WARN_ON(!timeouts || !hung || !sleeps);
	printf("# seed %llu: %lu time-outs, %lu hanging copies, %lu sleeps\nok 1 - the example driver, %lu times\n1..1\n",
	       seed, timeouts, hung, sleeps, runs);
	return 0;
}
