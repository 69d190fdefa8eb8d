// SPDX-License-Identifier: GPL-2.0
/*
 * Example: the smallest driver with which all of flexmem works. Its device is
 * memory of this machine, with a table of slots that no program uses, so it can
 * be loaded on any kernel. Start a driver of your own from it: replace one
 * operation after the other by a request to the device.
 */

#include <linux/device.h>
#include <linux/io.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>
#include <flexmem/device_ops.h>

#define RAM_SLOTS 8

static unsigned int megabytes = 64;
module_param(megabytes, uint, 0444);
MODULE_PARM_DESC(megabytes, "Capacity of the device (default 64)");

/* There is one device. flexmem calls acquire and release one at a time. */
static DEFINE_XARRAY(ram_memory);	/* the bytes of each piece, by its id */
static u64 ram_used;			/* bytes in @ram_memory */
static u64 ram_slot[RAM_SLOTS];		/* id of the memory in each slot, or 0 */
/* a page fault may come during a reset */
static DEFINE_MUTEX(ram_gone);

static u64 ram_capacity_bytes(void)
{
	return (u64)megabytes * SZ_1M;
}

static void *ram_bytes(const struct flexmem_memory *mem, u64 offset)
{
	return (void *)(uintptr_t)(mem->cookie + offset);
}

/*
 * Need not clear the memory, because flexmem scrubs it. flexmem never uses an
 * id twice.
 */
static int ram_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	void *bytes;
	int rc;

	/* A piece has a window of 1 GiB on the device's bus. */
	if (size > SZ_1G || size > ram_capacity_bytes() - ram_used)
		return -ENOSPC;
	bytes = vmalloc(size);
	if (!bytes)
		return -ENOMEM;
	rc = xa_err(xa_store(&ram_memory, mem->id, bytes, GFP_KERNEL));
	if (rc) {
		vfree(bytes);
		return rc;
	}
	ram_used += size;
	mem->base = mem->id * SZ_1G;
	mem->cookie = (uintptr_t)bytes;
	return 0;
}

static int ram_release(void *priv, const struct flexmem_memory *mem)
{
	void *bytes;

	mutex_lock(&ram_gone);
	bytes = xa_erase(&ram_memory, mem->id);
	mutex_unlock(&ram_gone);
	if (bytes)
		ram_used -= mem->size;
	vfree(bytes);
	return 0;
}

static int ram_slot_set(void *priv, unsigned int slot,
			const struct flexmem_memory *mem)
{
	ram_slot[slot] = mem->id;
	return 0;
}

static int ram_slot_clear(void *priv, unsigned int slot)
{
	ram_slot[slot] = 0;
	return 0;
}

/* The device runs no programs. */
static int ram_quiesce(void *priv)
{
	return 0;
}

static int ram_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	*bytes = ram_capacity_bytes();
	return 0;
}

/* [optional] */
static int ram_scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size)
{
	memset(ram_bytes(mem, offset), 0, size);
	return 0;
}

static int ram_read(void *priv, const struct flexmem_memory *mem, u64 offset,
		    u64 size, void *to)
{
	memcpy(to, ram_bytes(mem, offset), size);
	return 0;
}

static int ram_write(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size, const void *from)
{
	memcpy(ram_bytes(mem, offset), from, size);
	return 0;
}

static int ram_copy(void *priv, const struct flexmem_memory *to, u64 to_offset,
		    const struct flexmem_memory *from, u64 from_offset,
		    u64 size)
{
	memcpy(ram_bytes(to, to_offset), ram_bytes(from, from_offset), size);
	return 0;
}

/* vmalloc()'s pages are not contiguous, so one page is mapped at a time. */
static int ram_fault(void *priv, const struct flexmem_memory *mem, u64 offset,
		     struct flexmem_frames *frames)
{
	int rc = -EIO;

	mutex_lock(&ram_gone);
	if (xa_load(&ram_memory, mem->id)) {
		frames->offset = offset;
		frames->size = PAGE_SIZE;
		frames->pfn = vmalloc_to_pfn(ram_bytes(mem, offset));
		rc = 0;
	}
	mutex_unlock(&ram_gone);
	return rc;
}

static int ram_reset(void *priv)
{
	unsigned long id;
	void *bytes;

	mutex_lock(&ram_gone);
	xa_for_each(&ram_memory, id, bytes)
		vfree(xa_erase(&ram_memory, id));
	mutex_unlock(&ram_gone);
	ram_used = 0;
	memset(ram_slot, 0, sizeof(ram_slot));
	return 0;
}

static const struct flexmem_device_ops ram_ops = {
	.acquire = ram_acquire,
	.release = ram_release,
	.slot_set = ram_slot_set,
	.slot_clear = ram_slot_clear,
	.quiesce = ram_quiesce,
	.capacity = ram_capacity,
	.scrub = ram_scrub,
	.read = ram_read,
	.write = ram_write,
	.copy = ram_copy,
	.fault = ram_fault,
	.reset = ram_reset,
};

/* [module] */
static struct device *ram_parent;
static struct flexmem_dev *ram_device;

static int __init ram_init(void)
{
	static const struct flexmem_device_desc desc = {
		.name = KBUILD_MODNAME,
		.mode = FLEXMEM_MODE_VF,
		.slots = RAM_SLOTS,
		.granule = SZ_1M,
		.caching = FLEXMEM_CACHED,
		.nr_sizes = 1,
		.sizes = { SZ_16M },
		.ops = &ram_ops,
	};

	ram_parent = root_device_register(KBUILD_MODNAME);
	if (IS_ERR(ram_parent))
		return PTR_ERR(ram_parent);
	ram_device = flexmem_device_register(ram_parent, &desc);
	if (IS_ERR(ram_device)) {
		ram_reset(NULL);
		root_device_unregister(ram_parent);
		return PTR_ERR(ram_device);
	}
	return 0;
}

static void __exit ram_exit(void)
{
	flexmem_device_unregister(ram_device);
	ram_reset(NULL);
	root_device_unregister(ram_parent);
}

module_init(ram_init);
module_exit(ram_exit);
MODULE_DESCRIPTION("Memory of this machine as a device of flexmem");
MODULE_LICENSE("GPL");
