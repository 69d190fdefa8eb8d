// SPDX-License-Identifier: GPL-2.0
/*
 * Example: the part of a driver that gives flexmem the memory of an imagined
 * accelerator's VF. Documentation/driver-guide.rst walks through it.
 */

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
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <flexmem/device_ops.h>

/* [registers] */
/* The mailbox, in BAR 0. Replies come in the order of the requests. */
#define NPU_COMMAND	0x00
#define NPU_SLOT	0x04
#define NPU_ARGUMENT	0x08	/* 64 bits */
#define NPU_SEND	0x10	/* number of the request; writing it sends it */
#define NPU_DONE	0x14	/* number of the latest request with a reply */
#define NPU_STATUS	0x18
#define NPU_RESULT	0x20	/* 64 bits */
#define NPU_EVENT	0x28	/* what the interrupt is about; reading clears */
#define NPU_EVENT_MASK	0x2c
#define NPU_SLOTS	0x30	/* entries of this function's table */
#define NPU_RESET	0x34	/* forgets all there is of this function */
#define NPU_OFFSET	0x38	/* 64 bits: range within the memory ... */
#define NPU_LENGTH	0x40	/* 64 bits: ... to scrub, read or write */
#define NPU_BUFFER	0x48	/* 64 bits: of the host, to read to or write from */
#define NPU_STOP	0x50	/* moves no more data; reads 0 once it is idle */

/* BAR 2 is a window on the device's memory, from its address 0 on. */
#define NPU_WINDOW	2

enum {
	NPU_ACQUIRE, NPU_RELEASE, NPU_SET, NPU_CLEAR, NPU_HALT, NPU_CAPACITY,
	NPU_CANCEL, NPU_SCRUB, NPU_READ, NPU_WRITE
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
	void __iomem *regs;
	struct flexmem_device *fdev;
	struct work_struct capacity_work;
	struct work_struct dead_work;
	struct mutex turn;	/* held by the operation that uses the mailbox */
	struct completion reply;
	void *buffer;		/* FLEXMEM_COPY_MAX bytes, for reads and writes */
	dma_addr_t buffer_dma;
	u32 seq;	/* of the latest request */
	u32 doubt;	/* request whose outcome is unknown, or 0 */
};

/* [call] */
struct npu_request {
	u32 command;
	u32 slot;
	u64 argument;
	u64 offset;
	u64 length;
};

/* Sends one request and waits for its reply: killable, and at most 1 s. */
static int npu_call(struct npu *npu, const struct npu_request *req)
{
	long left;

	reinit_completion(&npu->reply);
	writel(req->command, npu->regs + NPU_COMMAND);
	writel(req->slot, npu->regs + NPU_SLOT);
	writeq(req->argument, npu->regs + NPU_ARGUMENT);
	writeq(req->offset, npu->regs + NPU_OFFSET);
	writeq(req->length, npu->regs + NPU_LENGTH);
	WRITE_ONCE(npu->seq, npu->seq + 1);
	writel(npu->seq, npu->regs + NPU_SEND);

	left = wait_for_completion_killable_timeout(&npu->reply, HZ);
	if (left <= 0)
		return left ? -EINTR : -ETIMEDOUT;

	switch (readl(npu->regs + NPU_STATUS)) {
	case NPU_OK:
		return 0;
	case NPU_NO_MEMORY:
	case NPU_NO_SLOT:
		return -ENOSPC;
	default:
		return -EIO;
	}
}

/* Takes the mailbox, once it is certain that the last request came to an end. */
static int npu_begin(struct npu *npu)
{
	struct npu_request cancel = { .command = NPU_CANCEL };
	int rc = 0;

	if (mutex_lock_killable(&npu->turn))
		return -EINTR;
	if (npu->doubt) {
		cancel.argument = npu->doubt;
		rc = npu_call(npu, &cancel);
	}
	if (rc)
		mutex_unlock(&npu->turn);
	else
		npu->doubt = 0;
	return rc;
}

static int npu_run(struct npu *npu, const struct npu_request *req)
{
	int rc = npu_call(npu, req);
	u32 busy;

	if (rc == -ETIMEDOUT || rc == -EINTR) {
		npu->doubt = npu->seq;
		/* Whoever gets the range next must not find it changing. */
		writel(1, npu->regs + NPU_STOP);
		if (readl_poll_timeout(npu->regs + NPU_STOP, busy, !busy, 10,
				       1000))
			dev_err(&npu->pdev->dev, "the copy engine hangs\n");
	}
	return rc;
}

static void npu_end(struct npu *npu)
{
	mutex_unlock(&npu->turn);
}

/* A request that moves no data of the host's. */
static int npu_command(struct npu *npu, const struct npu_request *req,
		       u64 *result)
{
	int rc = npu_begin(npu);

	if (rc)
		return rc;
	rc = npu_run(npu, req);
	if (!rc && result)
		*result = readq(npu->regs + NPU_RESULT);
	npu_end(npu);
	return rc;
}

/* [ops] */
static int npu_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	const struct npu_request req = {
		.command = NPU_ACQUIRE,
		.argument = size,
	};

	mem->size = size;
	return npu_command(priv, &req, &mem->base);
}

static int npu_release(void *priv, const struct flexmem_memory *mem)
{
	const struct npu_request req = {
		.command = NPU_RELEASE,
		.argument = mem->base,
	};

	return npu_command(priv, &req, NULL);
}

static int npu_slot_set(void *priv, unsigned int slot,
			const struct flexmem_memory *mem)
{
	const struct npu_request req = {
		.command = NPU_SET,
		.slot = slot,
		.argument = mem->base,
	};

	return npu_command(priv, &req, NULL);
}

static int npu_slot_clear(void *priv, unsigned int slot)
{
	const struct npu_request req = { .command = NPU_CLEAR, .slot = slot };

	return npu_command(priv, &req, NULL);
}

/* All that was dispatched ends, and nothing is until a reset. */
static int npu_quiesce(void *priv)
{
	const struct npu_request req = { .command = NPU_HALT };

	return npu_command(priv, &req, NULL);
}

static int npu_capacity(void *priv, u64 *bytes)
{
	const struct npu_request req = { .command = NPU_CAPACITY };

	return npu_command(priv, &req, bytes);
}

/* [data] */
static int npu_scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size)
{
	const struct npu_request req = {
		.command = NPU_SCRUB,
		.argument = mem->base,
		.offset = offset,
		.length = size,
	};

	return npu_command(priv, &req, NULL);
}

static int npu_read(void *priv, const struct flexmem_memory *mem, u64 offset,
		    u64 size, void *to)
{
	const struct npu_request req = {
		.command = NPU_READ,
		.argument = mem->base,
		.offset = offset,
		.length = size,
	};
	struct npu *npu = priv;
	int rc = npu_begin(npu);

	if (rc)
		return rc;
	rc = npu_run(npu, &req);
	if (!rc)
		memcpy(to, npu->buffer, size);
	npu_end(npu);
	return rc;
}

static int npu_write(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size, const void *from)
{
	const struct npu_request req = {
		.command = NPU_WRITE,
		.argument = mem->base,
		.offset = offset,
		.length = size,
	};
	struct npu *npu = priv;
	int rc = npu_begin(npu);

	if (rc)
		return rc;
	memcpy(npu->buffer, from, size);
	rc = npu_run(npu, &req);
	npu_end(npu);
	return rc;
}

static int npu_page(void *priv, const struct flexmem_memory *mem, u64 offset,
		    unsigned long *pfn)
{
	struct npu *npu = priv;
	u64 address = mem->base + offset;

	if (address >= pci_resource_len(npu->pdev, NPU_WINDOW))
		return -EIO;
	*pfn = PHYS_PFN(pci_resource_start(npu->pdev, NPU_WINDOW) + address);
	return 0;
}

/* A register: it is done when the write is, whatever state the firmware is in. */
static void npu_reset(struct npu *npu)
{
	writel(1, npu->regs + NPU_RESET);
	npu->doubt = 0;
}

static int npu_op_reset(void *priv)
{
	struct npu *npu = priv;

	if (mutex_lock_killable(&npu->turn))
		return -EINTR;
	npu_reset(npu);
	mutex_unlock(&npu->turn);
	return 0;
}

static const struct flexmem_device_ops npu_ops = {
	.acquire = npu_acquire,
	.release = npu_release,
	.slot_set = npu_slot_set,
	.slot_clear = npu_slot_clear,
	.quiesce = npu_quiesce,
	.capacity = npu_capacity,
	.scrub = npu_scrub,
	.read = npu_read,
	.write = npu_write,
	.page = npu_page,
	.reset = npu_op_reset,
};

/* [events] */
static void npu_capacity_work(struct work_struct *work)
{
	struct npu *npu = container_of(work, struct npu, capacity_work);

	flexmem_device_capacity_changed(npu->fdev);
}

/* The watchdog says that the firmware has died: nothing of ours is left. */
static void npu_dead_work(struct work_struct *work)
{
	struct npu *npu = container_of(work, struct npu, dead_work);
	int rc = flexmem_device_reset(npu->fdev);

	if (rc)
		dev_err(&npu->pdev->dev, "could not be reset: error %d\n", rc);
}

static irqreturn_t npu_interrupt(int irq, void *data)
{
	struct npu *npu = data;
	u32 event = readl(npu->regs + NPU_EVENT);

	/* A reply that comes too late has a number nobody waits for. */
	if (event & NPU_EVENT_REPLY &&
	    readl(npu->regs + NPU_DONE) == READ_ONCE(npu->seq))
		complete(&npu->reply);
	/* They wait for the firmware, so they cannot run here. */
	if (event & NPU_EVENT_CAPACITY)
		schedule_work(&npu->capacity_work);
	if (event & NPU_EVENT_DEAD)
		schedule_work(&npu->dead_work);
	return event ? IRQ_HANDLED : IRQ_NONE;
}

/* [probe] */
static int npu_start(struct npu *npu)
{
	struct flexmem_device_desc desc = {
		.name = pci_name(npu->pdev),
		.mode = FLEXMEM_MODE_VF,
		.slots = readl(npu->regs + NPU_SLOTS),
		.granule = SZ_2M,
		.ops = &npu_ops,
		.priv = npu,
	};

	writel(NPU_EVENT_REPLY, npu->regs + NPU_EVENT_MASK);
	npu->fdev = flexmem_device_register(&npu->pdev->dev, &desc);
	if (IS_ERR(npu->fdev)) {
		npu_reset(npu);
		return PTR_ERR(npu->fdev);
	}
	/* From here on there is somebody to tell. */
	writel(NPU_EVENT_REPLY | NPU_EVENT_NEWS, npu->regs + NPU_EVENT_MASK);
	return 0;
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
	pci_set_master(pdev);
	npu->buffer = dmam_alloc_coherent(&pdev->dev, FLEXMEM_COPY_MAX,
					  &npu->buffer_dma, GFP_KERNEL);
	if (!npu->buffer)
		return -ENOMEM;
	writeq(npu->buffer_dma, npu->regs + NPU_BUFFER);
	rc = devm_request_irq(&pdev->dev, pdev->irq, npu_interrupt, IRQF_SHARED,
			      KBUILD_MODNAME, npu);
	if (rc)
		return rc;
	return npu_start(npu);
}

/* No more news; replies are still needed. */
static void npu_quiet(struct npu *npu)
{
	writel(NPU_EVENT_REPLY, npu->regs + NPU_EVENT_MASK);
	synchronize_irq(npu->pdev->irq);
	cancel_work_sync(&npu->capacity_work);
	cancel_work_sync(&npu->dead_work);
}

static void npu_remove(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);

	npu_quiet(npu);
	flexmem_device_unregister(npu->fdev);
	npu_reset(npu);
}

/* [sleep] */
static int npu_suspend(struct device *dev)
{
	struct npu *npu = dev_get_drvdata(dev);

	npu_quiet(npu);
	flexmem_device_suspend(npu->fdev);
	return 0;
}

/* The memory was kept; what the registers hold was not. */
static int npu_resume(struct device *dev)
{
	struct npu *npu = dev_get_drvdata(dev);

	pci_set_master(npu->pdev);
	writeq(npu->buffer_dma, npu->regs + NPU_BUFFER);
	writel(NPU_EVENT_REPLY | NPU_EVENT_NEWS, npu->regs + NPU_EVENT_MASK);
	flexmem_device_resume(npu->fdev);
	/* News may have come and gone meanwhile. */
	flexmem_device_capacity_changed(npu->fdev);
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(npu_pm_ops, npu_suspend, npu_resume);

/* [module] */
static const struct pci_device_id npu_ids[] = {
	/* one of the numbers that are free for experiments */
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x10ff) },
	{}
};
MODULE_DEVICE_TABLE(pci, npu_ids);

static struct pci_driver npu_driver = {
	.name = KBUILD_MODNAME,
	.id_table = npu_ids,
	.probe = npu_probe,
	.remove = npu_remove,
	.driver.pm = pm_sleep_ptr(&npu_pm_ops),
};
module_pci_driver(npu_driver);

MODULE_DESCRIPTION("Example of a driver for flexmem");
MODULE_LICENSE("GPL");
