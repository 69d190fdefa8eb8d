/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The PCI core and runtime PM, which the example of the driver guide needs but
 * flexmem does not. Included by npu.c only.
 */
#ifndef _NATIVE_NPU_PCI_H
#define _NATIVE_NPU_PCI_H

struct resource {
	unsigned long flags;
};

struct pci_dev {
	struct device dev;
	unsigned int irq;
	bool is_virtfn;
	struct resource resource[6];
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
	int (*sriov_configure)(struct pci_dev *pdev, int numvfs);
	const struct pci_error_handlers *err_handler;
	struct {
		const struct dev_pm_ops *pm;
	} driver;
};

typedef u64 dma_addr_t;
typedef int irqreturn_t;
enum { IRQ_NONE, IRQ_HANDLED };
#define PCI_IRQ_MSI 1
#define PCI_IRQ_MSIX 2
#define IORESOURCE_UNSET 0x20000000
typedef u64 resource_size_t;
#define DMA_BIT_MASK(n) (~0ull)
#define dma_set_mask_and_coherent(dev, mask) 0
/* A read of the configuration space of a device that left the bus returns ones. */
#define pci_device_is_present(pdev) ((void)(pdev), !board.down)
/* The memory types of x86 are only known for ranges that have an address. */
#define devm_request_mem_region(dev, start, len, name) \
	((void)(start), WARN_ON(board.window == WINDOW_LACKS), \
	 board.window != WINDOW_TAKEN)
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
#define pm_runtime_get_sync(dev) pm_runtime_resume_and_get(dev)
#define pm_runtime_mark_last_busy(dev)
#define pm_runtime_set_autosuspend_delay(dev, ms)
#define pm_runtime_use_autosuspend(dev)
#define pm_runtime_dont_use_autosuspend(dev)
#define pci_physfn(pdev) (pdev)
#define pci_save_state(pdev) ((void)(pdev), board.saved = true)
#define pci_store_saved_state(pdev) \
	((struct pci_saved_state *)(board.saved ? kzalloc(1, GFP_KERNEL) : NULL))
#define pci_load_saved_state(pdev, state) (board.saved = (state))
#define pci_restore_state(pdev) (WARN_ON(!board.saved), board.saved = false)
#define pci_clear_master(pdev) ((void)(pdev), board.master = false)
#define schedule_work(work) queue_work(system_wq, work)
#define cancel_work_sync(work) flush_work(work)
#define dev_get_drvdata(dev) ((dev)->driver_data)
#define pci_get_drvdata(pdev) dev_get_drvdata(&(pdev)->dev)
#define pci_set_drvdata(pdev, data) ((pdev)->dev.driver_data = (data))
#define pci_name(pdev) "npu"
#define pci_resource_len(pdev, bar) \
	((void)(pdev), board.window == WINDOW_LACKS ? 0 : 64ull << 30)
#define pci_resource_start(pdev, bar) ((void)(pdev), 1ull << 40)
#define pci_set_master(pdev) ((void)(pdev), board.master = true)
#define devm_arch_io_reserve_memtype_wc(dev, start, size) \
	((void)(start), WARN_ON(board.window != WINDOW_GOOD), 0)
#define pcim_enable_device(pdev) 0
#define pci_alloc_irq_vectors(pdev, min, max, flags) \
	(board.msi = (flags) & PCI_IRQ_MSIX, 1)
#define pcim_iomap_regions(pdev, bars, name) 0
#define pcim_iomap_table(pdev) bars
#define devm_request_irq(dev, irq, handler, flags, name, data) request_irq(dev)
#define pci_irq_vector(pdev, nr) ((void)(pdev), 0)
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

static int pci_sriov_configure_simple(struct pci_dev *pdev, int numvfs)
{
	return numvfs;
}

static void wait_for_interrupt(void);
static int request_irq(struct device *dev);
static int pm_runtime_resume_and_get(struct device *dev);
static void pm_runtime_put_autosuspend(struct device *dev);

#define dmam_alloc_coherent(dev, size, dma, gfp) \
	(*(dma) = 0, devm_kzalloc(dev, size, gfp))

#endif /* _NATIVE_NPU_PCI_H */
