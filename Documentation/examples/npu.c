// SPDX-License-Identifier: GPL-2.0
/*
 * Example: the part of a driver that gives flexmem the memory of an imagined
 * accelerator's PF and VFs. Documentation/driver-guide.rst walks through it.
 */

#include <linux/aer.h>
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/iopoll.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/pm_runtime.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <flexmem/device_ops.h>

/* [registers] */
/* The mailbox, in BAR 0. Replies come in the order of the requests. */
#define NPU_COMMAND	0x00
#define NPU_SLOT	0x04
#define NPU_MEMORY	0x08	/* 64 bits: id of the memory, from the host */
#define NPU_SEND	0x10	/* number of the request; a write sends it */
#define NPU_DONE	0x14	/* number of the latest request with a reply */
#define NPU_STATUS	0x18
#define NPU_RESULT	0x20	/* 64 bits */
#define NPU_EVENT	0x28	/* causes of the interrupt; a read clears them */
#define NPU_EVENT_MASK	0x2c
#define NPU_SLOTS	0x30	/* number of entries of the VF's table */
#define NPU_RESET	0x34	/* the VF forgets everything */
#define NPU_OFFSET	0x38	/* 64 bits: range within the memory ... */
#define NPU_LENGTH	0x40	/* 64 bits: ... and its length; size to acquire */
#define NPU_BUFFER	0x48	/* 64 bits: host buffer of a read or write */
#define NPU_STOP	0x50	/* ends data moves; reads 0 when none is left */
#define NPU_HELD	0x58	/* pieces of memory that the VF has */

/* BAR 2 is a window on the device's memory, from its address 0 on. */
#define NPU_WINDOW	2

enum {
	NPU_ACQUIRE, NPU_RELEASE, NPU_SET, NPU_CLEAR, NPU_HALT, NPU_CAPACITY,
	NPU_SCRUB, NPU_READ, NPU_WRITE
};

enum { NPU_OK, NPU_NO_MEMORY, NPU_NO_SLOT, NPU_FAILED };
enum {
	NPU_EVENT_REPLY = BIT(0),
	NPU_EVENT_CAPACITY = BIT(1),
	NPU_EVENT_DEAD = BIT(2),
	NPU_EVENT_NEWS = NPU_EVENT_CAPACITY | NPU_EVENT_DEAD
};

struct npu {
	struct pci_dev *pdev;
	struct pci_saved_state *state;	/* for npu_slot_reset() */
	void __iomem *regs;
	struct flexmem_dev *fdev;
	struct work_struct capacity_work;
	struct work_struct dead_work;
	struct mutex turn;	/* held by the operation that uses the mailbox */
	void *buffer;		/* FLEXMEM_RW_MAX bytes, for reads and writes */
	dma_addr_t buffer_dma;
	struct completion reply;
	bool lost;		/* no access until a reset from outside */
	spinlock_t lock;	/* protects the members below */
	u32 seq;		/* number of the latest request */
	bool awaited;		/* a caller waits for its reply */
	u32 status;		/* status in the latest reply */
	u64 result;
	u32 news;		/* events that flexmem was not told about yet */
	bool tells;		/* events may be passed on to flexmem */
};

/* [call] */
struct npu_request {
	u32 command;
	u32 slot;
	u64 memory;
	u64 offset;
	u64 length;
};

static void npu_send(struct npu *npu, const struct npu_request *req)
{
	reinit_completion(&npu->reply);
	writel(req->command, npu->regs + NPU_COMMAND);
	writel(req->slot, npu->regs + NPU_SLOT);
	writeq(req->memory, npu->regs + NPU_MEMORY);
	writeq(req->offset, npu->regs + NPU_OFFSET);
	writeq(req->length, npu->regs + NPU_LENGTH);

	spin_lock_irq(&npu->lock);
	npu->seq++;
	npu->awaited = true;
	writel(npu->seq, npu->regs + NPU_SEND);
	spin_unlock_irq(&npu->lock);
}

/* Called by npu_interrupt(). Discards a reply that no caller waits for. */
static void npu_take_reply(struct npu *npu)
{
	spin_lock(&npu->lock);
	if (npu->awaited && readl(npu->regs + NPU_DONE) == npu->seq) {
		npu->status = readl(npu->regs + NPU_STATUS);
		npu->result = readq(npu->regs + NPU_RESULT);
		npu->awaited = false;
		complete(&npu->reply);
	}
	spin_unlock(&npu->lock);
}

/* Emulated firmware on a busy host is slower than the real one. */
static unsigned int reply_ms = 1000;
module_param(reply_ms, uint, 0644);
MODULE_PARM_DESC(reply_ms, "How long a reply of the firmware may take");

/* Waits at most reply_ms, killably. If the reply has come, it decides the result. */
static int npu_wait(struct npu *npu)
{
	unsigned long limit = msecs_to_jiffies(READ_ONCE(reply_ms));
	long left = wait_for_completion_killable_timeout(&npu->reply, limit);
	bool answered;

	spin_lock_irq(&npu->lock);
	answered = !npu->awaited;
	npu->awaited = false;
	spin_unlock_irq(&npu->lock);

	if (!answered)
		return left < 0 ? -EINTR : -ETIMEDOUT;
	switch (npu->status) {
	case NPU_OK:
		return 0;
	case NPU_NO_MEMORY:
	case NPU_NO_SLOT:
		return -ENOSPC;
	default:
		return -EIO;
	}
}

static bool npu_is_lost(const struct npu *npu)
{
	return READ_ONCE(npu->lost);
}

/* Takes the mailbox, and wakes the device up. */
static int npu_begin(struct npu *npu)
{
	if (mutex_lock_killable(&npu->turn))
		return -EINTR;
	if (!npu_is_lost(npu) && !pm_runtime_resume_and_get(&npu->pdev->dev))
		return 0;
	mutex_unlock(&npu->turn);
	return -EIO;
}

static void npu_end(struct npu *npu)
{
	pm_runtime_mark_last_busy(&npu->pdev->dev);
	pm_runtime_put_autosuspend(&npu->pdev->dev);
	mutex_unlock(&npu->turn);
}

static int npu_command(struct npu *npu, const struct npu_request *req,
		       u64 *result)
{
	int rc = npu_begin(npu);

	if (rc)
		return rc;
	npu_send(npu, req);
	rc = npu_wait(npu);
	if (!rc && result)
		*result = npu->result;
	npu_end(npu);
	return rc;
}

/* [news] */
/*
 * Tells flexmem about events, or keeps the events while npu->tells is false.
 * npu->fdev is not set before the VF is registered.
 */
static void npu_tell(struct npu *npu, u32 news)
{
	unsigned long flags;

	spin_lock_irqsave(&npu->lock, flags);
	npu->news |= news;
	news = npu->tells ? npu->news : 0;
	npu->news &= ~news;
	/*
	 * Work items handle both events, because neither an interrupt handler
	 * nor an operation can wait for another operation. They are queued
	 * under the lock, so npu_hush() finds each of them.
	 */
	if (news & NPU_EVENT_CAPACITY)
		schedule_work(&npu->capacity_work);
	if (news & NPU_EVENT_DEAD) {
		flexmem_device_failed(npu->fdev);
		schedule_work(&npu->dead_work);
	}
	spin_unlock_irqrestore(&npu->lock, flags);
}

/* [ops] */
static int npu_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	const struct npu_request req = {
		.command = NPU_ACQUIRE,
		.memory = mem->id,
		.length = size,
	};

	return npu_command(priv, &req, &mem->base);
}

static int npu_release(void *priv, const struct flexmem_memory *mem)
{
	const struct npu_request req = {
		.command = NPU_RELEASE,
		.memory = mem->id,
	};

	return npu_command(priv, &req, NULL);
}

static int npu_slot_set(void *priv, unsigned int slot,
			const struct flexmem_memory *mem)
{
	const struct npu_request req = {
		.command = NPU_SET,
		.slot = slot,
		.memory = mem->id,
	};

	return npu_command(priv, &req, NULL);
}

static int npu_slot_clear(void *priv, unsigned int slot)
{
	const struct npu_request req = { .command = NPU_CLEAR, .slot = slot };

	return npu_command(priv, &req, NULL);
}

/* Ends all device programs. None starts until a reset. */
static int npu_quiesce(void *priv)
{
	const struct npu_request req = { .command = NPU_HALT };

	return npu_command(priv, &req, NULL);
}

static int npu_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	const struct npu_request req = { .command = NPU_CAPACITY };

	return npu_command(priv, &req, bytes);
}

/* [data] */
/* Waits for a request that moves data, or stops it. */
static int npu_wait_or_stop(struct npu *npu)
{
	int rc = npu_wait(npu);
	u32 busy;

	if (rc != -ETIMEDOUT && rc != -EINTR)
		return rc;
	writel(1, npu->regs + NPU_STOP);
	if (!readl_poll_timeout(npu->regs + NPU_STOP, busy, !busy, 10, 1000))
		return rc;
	npu_tell(npu, NPU_EVENT_DEAD);
	return -ENOTRECOVERABLE;
}

/*
 * Sends a request that moves data. When this returns, no byte moves any more,
 * or the VF has failed.
 */
static int npu_move(struct npu *npu, u32 command,
		    const struct flexmem_memory *mem, u64 offset, u64 size,
		    void *to, const void *from)
{
	const struct npu_request req = {
		.command = command,
		.memory = mem->id,
		.offset = offset,
		.length = size,
	};
	int rc = npu_begin(npu);

	if (rc)
		return rc;
	if (from)
		memcpy(npu->buffer, from, size);
	npu_send(npu, &req);
	rc = npu_wait_or_stop(npu);
	if (!rc && to)
		memcpy(to, npu->buffer, size);
	npu_end(npu);
	return rc;
}

static int npu_scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size)
{
	return npu_move(priv, NPU_SCRUB, mem, offset, size, NULL, NULL);
}

static int npu_read(void *priv, const struct flexmem_memory *mem, u64 offset,
		    u64 size, void *to)
{
	return npu_move(priv, NPU_READ, mem, offset, size, to, NULL);
}

static int npu_write(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size, const void *from)
{
	return npu_move(priv, NPU_WRITE, mem, offset, size, NULL, from);
}

/* The whole window is contiguous, so any part of it can be mapped. */
static int npu_fault(void *priv, const struct flexmem_memory *mem, u64 offset,
		     struct flexmem_frames *frames)
{
	struct npu *npu = priv;
	u64 address = mem->base + frames->offset;

	if (address + frames->size > pci_resource_len(npu->pdev, NPU_WINDOW))
		return -EIO;
	frames->pfn = PHYS_PFN(pci_resource_start(npu->pdev, NPU_WINDOW) +
			       address);
	return 0;
}

/*
 * Resets the function in any state of the firmware. The read ends after the
 * write has reached the device: then nothing moves any more. If the function is
 * not on the bus, a read of a register may return anything, but a read of
 * configuration space returns ones.
 */
static int npu_write_reset(struct npu *npu)
{
	u32 answer;

	if (npu_is_lost(npu) || !pci_device_is_present(npu->pdev))
		return -EIO;
	writel(1, npu->regs + NPU_RESET);
	answer = readl(npu->regs + NPU_RESET);
	return answer == ~0U ? -EIO : 0;
}

static int npu_reset(void *priv)
{
	struct npu *npu = priv;
	int rc = npu_begin(npu);

	if (rc)
		return rc;
	rc = npu_write_reset(npu);
	npu_end(npu);
	return rc;
}

static const struct flexmem_device_ops npu_vf_ops = {
	.acquire = npu_acquire,
	.release = npu_release,
	.slot_set = npu_slot_set,
	.slot_clear = npu_slot_clear,
	.quiesce = npu_quiesce,
	.capacity = npu_capacity,
	.scrub = npu_scrub,
	.read = npu_read,
	.write = npu_write,
	.fault = npu_fault,
	.reset = npu_reset,
};

/* A PF has no slots. */
static const struct flexmem_device_ops npu_pf_ops = {
	.acquire = npu_acquire,
	.release = npu_release,
	.quiesce = npu_quiesce,
	.capacity = npu_capacity,
	.scrub = npu_scrub,
	.read = npu_read,
	.write = npu_write,
	.fault = npu_fault,
	.reset = npu_reset,
};

/* [events] */
static void npu_capacity_work(struct work_struct *work)
{
	struct npu *npu = container_of(work, struct npu, capacity_work);

	flexmem_device_capacity_changed(npu->fdev);
}

/* The watchdog reports that the firmware has died. All memory is lost. */
static void npu_dead_work(struct work_struct *work)
{
	struct npu *npu = container_of(work, struct npu, dead_work);

	flexmem_device_reset(npu->fdev);
}

static irqreturn_t npu_interrupt(int irq, void *data)
{
	struct npu *npu = data;
	u32 event = readl(npu->regs + NPU_EVENT);

	/* Every bit is 1 if the device sleeps, or has left the bus. */
	if (event == ~0U)
		return IRQ_NONE;
	if (event & NPU_EVENT_REPLY)
		npu_take_reply(npu);
	if (event & NPU_EVENT_NEWS)
		npu_tell(npu, event & NPU_EVENT_NEWS);
	return event ? IRQ_HANDLED : IRQ_NONE;
}

/* From here on flexmem is told about events, including earlier ones. */
static void npu_listen(struct npu *npu)
{
	spin_lock_irq(&npu->lock);
	npu->tells = true;
	spin_unlock_irq(&npu->lock);
	npu_tell(npu, 0);
}

/* From here on events are kept. Does not access the device. */
static void npu_hush(struct npu *npu)
{
	spin_lock_irq(&npu->lock);
	npu->tells = false;
	spin_unlock_irq(&npu->lock);
	cancel_work_sync(&npu->capacity_work);
	cancel_work_sync(&npu->dead_work);
}

/* [probe] */
/* Sets what the device forgets when it sleeps or is reset from outside. */
static void npu_restore(struct npu *npu)
{
	if (npu_is_lost(npu))
		return;
	pci_set_master(npu->pdev);
	writeq(npu->buffer_dma, npu->regs + NPU_BUFFER);
	writel(NPU_EVENT_REPLY | NPU_EVENT_NEWS, npu->regs + NPU_EVENT_MASK);
}

static int npu_start(struct npu *npu)
{
	bool is_vf = npu->pdev->is_virtfn;
	struct flexmem_device_desc desc = {
		.name = pci_name(npu->pdev),
		.mode = is_vf ? FLEXMEM_MODE_VF : FLEXMEM_MODE_PF,
		.slots = is_vf ? readl(npu->regs + NPU_SLOTS) : 0,
		.granule = SZ_2M,
		.caching = FLEXMEM_WRITE_COMBINED,
		.device = pci_physfn(npu->pdev),
		.ops = is_vf ? &npu_vf_ops : &npu_pf_ops,
		.priv = npu,
	};

	npu->fdev = flexmem_device_register(&npu->pdev->dev, &desc);
	if (IS_ERR(npu->fdev)) {
		npu_write_reset(npu);
		return PTR_ERR(npu->fdev);
	}
	npu_listen(npu);
	return 0;
}

/*
 * Claims the window, and makes it write-combining, because npu_start() registers
 * the memory as write-combining. x86 has one memory type for each physical
 * range, so the registers must not be in that range: they have their own BAR.
 */
static int npu_claim_window(struct pci_dev *pdev)
{
	resource_size_t start = pci_resource_start(pdev, NPU_WINDOW);
	resource_size_t len = pci_resource_len(pdev, NPU_WINDOW);

	/* A plugged device gets no address if the port's window is too small. */
	if (!len || pdev->resource[NPU_WINDOW].flags & IORESOURCE_UNSET) {
		dev_err(&pdev->dev, "BAR %d has no address\n", NPU_WINDOW);
		return -ENODEV;
	}
	if (!devm_request_mem_region(&pdev->dev, start, len, KBUILD_MODNAME))
		return -EBUSY;
	return devm_arch_io_reserve_memtype_wc(&pdev->dev, start, len);
}

static int npu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct npu *npu;
	int rc;

	npu = devm_kzalloc(&pdev->dev, sizeof(*npu), GFP_KERNEL);
	if (!npu)
		return -ENOMEM;
	npu->pdev = pdev;
	mutex_init(&npu->turn);
	spin_lock_init(&npu->lock);
	init_completion(&npu->reply);
	INIT_WORK(&npu->capacity_work, npu_capacity_work);
	INIT_WORK(&npu->dead_work, npu_dead_work);
	pci_set_drvdata(pdev, npu);

	rc = pcim_enable_device(pdev);
	if (rc)
		return rc;
	rc = pcim_iomap_regions(pdev, BIT(0), KBUILD_MODNAME);
	if (rc)
		return rc;
	npu->regs = pcim_iomap_table(pdev)[0];
	rc = npu_claim_window(pdev);
	if (rc)
		return rc;
	rc = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (rc)
		return rc;
	npu->buffer = dmam_alloc_coherent(&pdev->dev, FLEXMEM_RW_MAX,
					  &npu->buffer_dma, GFP_KERNEL);
	if (!npu->buffer)
		return -ENOMEM;
	/* A VF has no interrupt pin. */
	rc = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSI | PCI_IRQ_MSIX);
	if (rc < 0)
		return rc;
	rc = devm_request_irq(&pdev->dev, pci_irq_vector(pdev, 0),
			      npu_interrupt, 0, KBUILD_MODNAME, npu);
	if (rc)
		return rc;
	npu_restore(npu);
/* checkpatch: LINUX_VERSION_CODE - later kernels do this for all devices */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	pci_enable_pcie_error_reporting(pdev);
#endif
	pci_save_state(pdev);
	npu->state = pci_store_saved_state(pdev);
	rc = npu->state ? npu_start(npu) : -ENOMEM;
	if (rc) {
		kfree(npu->state);
		return rc;
	}
	/* Gives up the reference of the PCI core, so that the device can sleep. */
	pm_runtime_set_autosuspend_delay(&pdev->dev, 1000);
	pm_runtime_use_autosuspend(&pdev->dev);
	pm_runtime_put_autosuspend(&pdev->dev);
	return 0;
}

static void npu_remove(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);

	pm_runtime_get_noresume(&pdev->dev);
	pm_runtime_dont_use_autosuspend(&pdev->dev);
	npu_hush(npu);
	flexmem_device_unregister(npu->fdev);
	npu_write_reset(npu);
	kfree(npu->state);
}

/* Before another kernel starts, for which nothing may move. */
static void npu_shutdown(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);

	npu_hush(npu);
	flexmem_device_suspend(npu->fdev);
	npu_write_reset(npu);
	pci_clear_master(pdev);
}

/* [errors] */
/*
 * From here on calls fail with EIO, and a process that touches a map gets
 * SIGBUS. The suspend waits for the operations under way, and removes the maps.
 * Then nothing accesses the device, not even a reset that flexmem tries.
 */
static void npu_reset_prepare(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);

	WRITE_ONCE(npu->lost, true);
	npu_hush(npu);
	flexmem_device_failed(npu->fdev);
	flexmem_device_suspend(npu->fdev);
	flexmem_device_resume(npu->fdev);
}

/*
 * After an error that is not fatal (AER) nothing was reset. flexmem resets the
 * VF here in any case, so earlier events do not matter.
 */
static void npu_reset_done(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);
	int rc;

	/* Linux 6.1 reports an error to a VF that is asleep. */
	pm_runtime_get_sync(&pdev->dev);
	/* No operation begins before the registers are restored. */
	mutex_lock(&npu->turn);
	WRITE_ONCE(npu->lost, false);
	spin_lock_irq(&npu->lock);
	npu->news = 0;
	spin_unlock_irq(&npu->lock);
	npu_restore(npu);
	mutex_unlock(&npu->turn);
	rc = flexmem_device_reset(npu->fdev);
	npu_listen(npu);
	/* Resets the VF once more. */
	if (rc)
		npu_tell(npu, NPU_EVENT_DEAD);
	pm_runtime_put_autosuspend(&pdev->dev);
}

static pci_ers_result_t npu_error_detected(struct pci_dev *pdev,
					   pci_channel_state_t state)
{
	npu_reset_prepare(pdev);
	return state == pci_channel_io_perm_failure ?
		PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t npu_slot_reset(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);

	pci_load_saved_state(pdev, npu->state);
	pci_restore_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static const struct pci_error_handlers npu_errors = {
	.error_detected = npu_error_detected,
	.slot_reset = npu_slot_reset,
	.resume = npu_reset_done,
	.reset_prepare = npu_reset_prepare,
	.reset_done = npu_reset_done,
};

/* [sleep] */
static int npu_suspend(struct device *dev)
{
	struct npu *npu = dev_get_drvdata(dev);

	npu_hush(npu);
	flexmem_device_suspend(npu->fdev);
	return 0;
}

/* The device has kept its memory during the suspend, but not its registers. */
static int npu_resume(struct device *dev)
{
	struct npu *npu = dev_get_drvdata(dev);

	npu_restore(npu);
	flexmem_device_resume(npu->fdev);
	npu_listen(npu);
	/* An event about the capacity may have come during the suspend. */
	flexmem_device_capacity_changed(npu->fdev);
	return 0;
}

/* A map or a program may use memory at any time, so a VF with memory is awake. */
static int npu_runtime_suspend(struct device *dev)
{
	struct npu *npu = dev_get_drvdata(dev);

	if (npu_is_lost(npu))
		return -EBUSY;
	return readl(npu->regs + NPU_HELD) ? -EBUSY : 0;
}

static int npu_runtime_resume(struct device *dev)
{
	struct npu *npu = dev_get_drvdata(dev);

	npu_restore(npu);
	/*
	 * A device that slept has reported nothing. If the work item wakes the
	 * device, it asks for the capacity next.
	 */
	if (current_work() != &npu->capacity_work)
		npu_tell(npu, NPU_EVENT_CAPACITY);
	return 0;
}

static const struct dev_pm_ops npu_pm_ops = {
	SYSTEM_SLEEP_PM_OPS(npu_suspend, npu_resume)
	RUNTIME_PM_OPS(npu_runtime_suspend, npu_runtime_resume, NULL)
};

/* [module] */
static const struct pci_device_id npu_ids[] = {
	/* The PF and its VFs, with ids for experiments. */
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x10fe) },
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x10ff) },
	{}
};
MODULE_DEVICE_TABLE(pci, npu_ids);

static struct pci_driver npu_driver = {
	.name = KBUILD_MODNAME,
	.id_table = npu_ids,
	.probe = npu_probe,
	.remove = npu_remove,
	.shutdown = npu_shutdown,
	.sriov_configure = pci_sriov_configure_simple,
	.err_handler = &npu_errors,
	.driver.pm = pm_ptr(&npu_pm_ops),
};
module_pci_driver(npu_driver);

MODULE_DESCRIPTION("Example of a driver for flexmem");
MODULE_LICENSE("GPL");
