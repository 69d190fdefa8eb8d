// SPDX-License-Identifier: GPL-2.0
/*
 * Example: the smallest driver with which all of flexmem works. Its device is
 * memory of this machine, with a table of slots that no program uses, so it can
 * be loaded on any kernel. Start a driver of your own from it: replace one
 * operation after the other by a request to the device.
 */

#include <linux/device.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <flexmem/device_ops.h>

/* The device has pieces of this size, and each region is one piece. */
#define RAM_PIECE SZ_16M
#define RAM_PIECES 4

static u8 *ram;			/* bytes of the device, from address 0 */
static u64 ram_id[RAM_PIECES];	/* id of the memory in each piece, or 0 */

static u8 *ram_bytes(const struct flexmem_memory *mem, u64 offset)
{
	return ram + mem->base + offset;
}

/* Need not clear the memory, because flexmem scrubs it. */
static int ram_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	unsigned int i;

	for (i = 0; size == RAM_PIECE && i < RAM_PIECES; i++) {
		if (ram_id[i])
			continue;
		ram_id[i] = mem->id;
		mem->base = (u64)i * RAM_PIECE;
		return 0;
	}
	return -ENOSPC;
}

static int ram_release(void *priv, const struct flexmem_memory *mem)
{
	unsigned int i;

	for (i = 0; i < RAM_PIECES; i++)
		if (ram_id[i] == mem->id)
			ram_id[i] = 0;
	return 0;
}

static int ram_slot_set(void *priv, unsigned int slot,
			const struct flexmem_memory *mem)
{
	return 0;
}

/* The device runs no programs, so no access is in flight. */
static int ram_slot_clear(void *priv, unsigned int slot)
{
	return 0;
}

static int ram_quiesce(void *priv)
{
	return 0;
}

static int ram_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	*bytes = (u64)RAM_PIECES * RAM_PIECE;
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
	frames->offset = offset;
	frames->size = PAGE_SIZE;
	frames->pfn = vmalloc_to_pfn(ram_bytes(mem, offset));
	return 0;
}

static int ram_reset(void *priv)
{
	memset(ram_id, 0, sizeof(ram_id));
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

static const struct flexmem_device_desc ram_desc = {
	.name = KBUILD_MODNAME,
	.mode = FLEXMEM_MODE_VF,
	.slots = RAM_PIECES,
	.granule = RAM_PIECE,
	.caching = FLEXMEM_CACHED,
	.nr_sizes = 1,
	.sizes = { RAM_PIECE },
	.ops = &ram_ops,
};

/* [module] */
static struct device *ram_parent;
static struct flexmem_dev *ram_device;

static int __init ram_init(void)
{
	ram = vzalloc(RAM_PIECES * RAM_PIECE);
	if (!ram)
		return -ENOMEM;
	ram_parent = root_device_register(KBUILD_MODNAME);
	ram_device = IS_ERR(ram_parent) ? ERR_CAST(ram_parent) :
		     flexmem_device_register(ram_parent, &ram_desc);
	if (!IS_ERR(ram_device))
		return 0;
	if (!IS_ERR(ram_parent))
		root_device_unregister(ram_parent);
	vfree(ram);
	return PTR_ERR(ram_device);
}
module_init(ram_init);

static void __exit ram_exit(void)
{
	flexmem_device_unregister(ram_device);
	root_device_unregister(ram_parent);
	vfree(ram);
}
module_exit(ram_exit);

MODULE_DESCRIPTION("Memory of this machine as a device of flexmem");
MODULE_LICENSE("GPL");
