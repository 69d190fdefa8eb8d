// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the example of the driver guide, Documentation/examples/npu.c, on a few
 * simulated registers. The simulated firmware often answers around the driver's
 * timeout: just before, just after, or at the same moment. Tasks take turns,
 * and a seed decides which one comes first. In some runs the firmware reports
 * that it is dead while the device is registered, suspended or removed. The
 * test fails if the driver takes a reply for the reply to another request, if
 * it does not reset a dead device, or if firmware and flexmem disagree in the
 * end.
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

struct pci_driver {
	const char *name;
	const struct pci_device_id *id_table;
	int (*probe)(struct pci_dev *pdev, const struct pci_device_id *id);
	void (*remove)(struct pci_dev *pdev);
	struct {
		const void *pm;
	} driver;
};

struct dev_pm_ops {
	int (*suspend)(struct device *dev);
	int (*resume)(struct device *dev);
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
#define DEFINE_SIMPLE_DEV_PM_OPS(name, suspend_op, resume_op) \
	const struct dev_pm_ops name = { suspend_op, resume_op }
#define pm_sleep_ptr(ptr) (ptr)
#define schedule_work(work) queue_work(system_wq, work)
#define cancel_work_sync(work) flush_work(work)
#define dev_get_drvdata(dev) ((dev)->driver_data)
#define pci_get_drvdata(pdev) dev_get_drvdata(&(pdev)->dev)
#define pci_set_drvdata(pdev, data) ((pdev)->dev.driver_data = (data))
#define pci_name(pdev) "npu"
#define pci_resource_len(pdev, bar) ((void)(pdev), 64ull << 30)
#define pci_resource_start(pdev, bar) ((void)(pdev), 1ull << 40)
#define pci_set_master(pdev) ((void)(pdev))
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

#define dmam_alloc_coherent(dev, size, dma, gfp) \
	(*(dma) = 0, devm_kzalloc(dev, size, gfp))

static u8 registers[0x100];
static void *const bars[] = { registers };
static u32 readl(const void *address);
static u64 readq(const void *address);
static void writel(u32 value, void *address);
static void writeq(u64 value, void *address);

#include "../../Documentation/examples/npu.c"

/* The board. One task runs at a time, so the board needs no locks. */
#define PIECES 16
#define SLOTS 8

static struct board {
	struct npu_request queue[PIECES];
	u32 numbers[PIECES];
	unsigned int head, tail;
	u32 sent, done, status, event;
	u64 result;
	/* The name of the piece that begins at i GiB, or 0 if there is none. */
	u64 name[PIECES];
	u64 slot[SLOTS];
	bool quiet;
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

static u32 readl(const void *address)
{
	u32 value;

	native_point();
	switch ((const u8 *)address - registers) {
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
	default:
		return 0;
	}
}

static u64 readq(const void *address)
{
	native_point();
	return board.result;
}

static void reset_board(void)
{
	board.tail = board.head;
	memset(board.name, 0, sizeof(board.name));
	memset(board.slot, 0, sizeof(board.slot));
	board.quiet = false;
}

static void writel(u32 value, void *address)
{
	const unsigned int offset = (u8 *)address - registers;

	native_point();
	memcpy(address, &value, sizeof(value));
	if (offset == NPU_RESET) {
		board.resets++;
		reset_board();
	}
	if (offset != NPU_SEND)
		return;
	board.sent = value;
	if (board.head - board.tail < PIECES) {
		struct npu_request *req = &board.queue[board.head % PIECES];

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
	native_point();
	memcpy(address, &value, sizeof(value));
}

static int find_name(u64 name)
{
	int i;

	for (i = 0; i < PIECES; i++)
		if (board.name[i] == name)
			return i;
	return -1;
}

static u32 carry_out(const struct npu_request *req)
{
	int i = find_name(req->memory), free = find_name(0);
	unsigned int slot;

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
	struct npu_request req;
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
 * BAR.
 */
static void map_memory(struct file *file, u32 handle)
{
	struct flexmem_map map = CMD(map, .handle = handle);
	struct vm_area_struct *vma;

	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_MAP, &map));
	vma = native_mmap(file, map.out_offset, map.out_size,
			  VM_SHARED | VM_READ | VM_WRITE);
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

static void use_memory(struct file *file)
{
	unsigned int i, at;
	u32 handle[4] = {};

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

/* Frees what devm would free after remove() or a failed probe(). */
static void drop_objects(struct pci_dev *pdev)
{
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

	board.resets = 0;
	pm->suspend(&pdev->dev);
	raise_event(NPU_EVENT_DEAD);
	WARN_ON(board.resets);
	pm->resume(&pdev->dev);
	flush_work(&npu->dead_work);
	WARN_ON(board.resets != 1);
}

static void run_once(u64 seed)
{
	struct task_struct *firmware;
	struct pci_dev pdev = {};
	struct npu *npu;
	struct file *file;
	unsigned int minor;

	board = (struct board) { .random = seed };
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
	file = native_open(minor, O_RDWR);
	WARN_ON(IS_ERR(file));
	use_memory(file);
	if (!draw(4))
		die_asleep(&pdev);
	trim_all(minor);
	board.dying = !draw(4);
	the_driver->remove(&pdev);
	drop_objects(&pdev);
	kthread_stop(firmware);
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
	/* If no request has timed out, the run proves nothing. */
	WARN_ON(!timeouts);
	printf("# seed %llu: %lu time-outs\nok 1 - the example driver, %lu times\n1..1\n",
	       seed, timeouts, runs);
	return 0;
}
