// SPDX-License-Identifier: GPL-2.0
/*
 * Example: the part of a driver that gives flexmem the memory of an imagined
 * accelerator's VF. Documentation/driver-guide.rst walks through it.
 */

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#include "device_ops.h"

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

enum { NPU_ACQUIRE, NPU_RELEASE, NPU_SET, NPU_CLEAR, NPU_CAPACITY, NPU_CANCEL };
enum { NPU_OK, NPU_NO_MEMORY, NPU_NO_SLOT, NPU_FAILED };
enum { NPU_EVENT_REPLY = BIT(0), NPU_EVENT_CAPACITY = BIT(1) };

struct npu {
	struct pci_dev *pdev;
	void __iomem *regs;
	struct flexmem_device *fdev;
	struct work_struct capacity_work;
	struct completion reply;
	u32 seq;	/* of the latest request */
	u32 doubt;	/* request whose outcome is unknown, or 0 */
};

/* [call] */
/* Sends one request and waits for its reply: killable, and at most 1 s. */
static int npu_call(struct npu *npu, u32 command, u32 slot, u64 argument)
{
	long left;

	reinit_completion(&npu->reply);
	writel(command, npu->regs + NPU_COMMAND);
	writel(slot, npu->regs + NPU_SLOT);
	writeq(argument, npu->regs + NPU_ARGUMENT);
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

/* As above, once it is certain that the request before it came to an end. */
static int npu_command(struct npu *npu, u32 command, u32 slot, u64 argument)
{
	int rc;

	if (npu->doubt) {
		rc = npu_call(npu, NPU_CANCEL, 0, npu->doubt);
		if (rc)
			return rc;
		npu->doubt = 0;
	}
	rc = npu_call(npu, command, slot, argument);
	if (rc == -ETIMEDOUT || rc == -EINTR)
		npu->doubt = npu->seq;
	return rc;
}

/* [ops] */
static int npu_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	struct npu *npu = priv;
	int rc;

	rc = npu_command(npu, NPU_ACQUIRE, 0, size);
	if (rc)
		return rc;
	mem->base = readq(npu->regs + NPU_RESULT);
	mem->size = size;
	return 0;
}

static int npu_release(void *priv, const struct flexmem_memory *mem)
{
	return npu_command(priv, NPU_RELEASE, 0, mem->base);
}

static int npu_slot_set(void *priv, unsigned int slot,
			const struct flexmem_memory *mem)
{
	return npu_command(priv, NPU_SET, slot, mem->base);
}

static int npu_slot_clear(void *priv, unsigned int slot)
{
	return npu_command(priv, NPU_CLEAR, slot, 0);
}

static int npu_capacity(void *priv, u64 *bytes)
{
	struct npu *npu = priv;
	int rc;

	rc = npu_command(npu, NPU_CAPACITY, 0, 0);
	if (rc)
		return rc;
	*bytes = readq(npu->regs + NPU_RESULT);
	return 0;
}

static const struct flexmem_device_ops npu_ops = {
	.acquire = npu_acquire,
	.release = npu_release,
	.slot_set = npu_slot_set,
	.slot_clear = npu_slot_clear,
	.capacity = npu_capacity,
};

/* [events] */
static void npu_capacity_work(struct work_struct *work)
{
	struct npu *npu = container_of(work, struct npu, capacity_work);

	flexmem_device_capacity_changed(npu->fdev);
}

static irqreturn_t npu_interrupt(int irq, void *data)
{
	struct npu *npu = data;
	u32 event = readl(npu->regs + NPU_EVENT);

	/* A reply that comes too late has a number nobody waits for. */
	if (event & NPU_EVENT_REPLY &&
	    readl(npu->regs + NPU_DONE) == READ_ONCE(npu->seq))
		complete(&npu->reply);
	/* It asks the firmware, so it cannot run here. */
	if (event & NPU_EVENT_CAPACITY)
		schedule_work(&npu->capacity_work);
	return event ? IRQ_HANDLED : IRQ_NONE;
}

/* [probe] */
static void npu_reset(struct npu *npu)
{
	writel(1, npu->regs + NPU_RESET);
	npu->doubt = 0;
}

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
	writel(NPU_EVENT_REPLY | NPU_EVENT_CAPACITY,
	       npu->regs + NPU_EVENT_MASK);
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
	init_completion(&npu->reply);
	INIT_WORK(&npu->capacity_work, npu_capacity_work);
	pci_set_drvdata(pdev, npu);

	rc = pcim_enable_device(pdev);
	if (rc)
		return rc;
	rc = pcim_iomap_regions(pdev, BIT(0), KBUILD_MODNAME);
	if (rc)
		return rc;
	npu->regs = pcim_iomap_table(pdev)[0];
	rc = devm_request_irq(&pdev->dev, pdev->irq, npu_interrupt, IRQF_SHARED,
			      KBUILD_MODNAME, npu);
	if (rc)
		return rc;
	return npu_start(npu);
}

static void npu_remove(struct pci_dev *pdev)
{
	struct npu *npu = pci_get_drvdata(pdev);

	/* No more news; replies are still needed. */
	writel(NPU_EVENT_REPLY, npu->regs + NPU_EVENT_MASK);
	synchronize_irq(pdev->irq);
	cancel_work_sync(&npu->capacity_work);

	flexmem_device_unregister(npu->fdev);
	npu_reset(npu);
}

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
};
module_pci_driver(npu_driver);

MODULE_DESCRIPTION("Example of a driver for flexmem");
MODULE_LICENSE("GPL");
