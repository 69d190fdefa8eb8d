// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the smallest example of the driver guide, Documentation/examples/ram.c:
 * a tenant allocates, writes, copies, maps and frees memory; the next tenant
 * must find none of its bytes; a reset and a removal must leave nothing behind.
 */
#include "shim/internal.h"

#include "ioctl.h"

struct device *root_device_register(const char *name);
static void root_device_unregister(struct device *dev);
#undef module_init
#undef module_exit
#define module_init(function) \
	static int (*const start)(void) = (function)
#define module_exit(function) \
	static void (*const stop)(void) = (function)
/*
 * The example's device memory comes from vzalloc(). Here it is not zeroed, as
 * if it held an earlier user's bytes. So a missing scrub is noticed.
 */
#undef vzalloc
#define vzalloc(size) memset(aligned_alloc(PAGE_SIZE, size), 0xa5, size)
#undef vfree
#define vfree(bytes) free(bytes)
#define vmalloc_to_pfn(bytes) ((uintptr_t)(bytes) >> PAGE_SHIFT)

#include "../../Documentation/examples/ram.c"

static struct device parent;

struct device *root_device_register(const char *name)
{
	device_initialize(&parent);
	return &parent;
}

static void root_device_unregister(struct device *dev)
{
	WARN_ON(dev != &parent);
}

#define CMD(name, ...) \
	((struct flexmem_##name) { .size = sizeof(struct flexmem_##name), \
				   ##__VA_ARGS__ })
#define LENGTH SZ_64K

static struct file *open_device(void)
{
	struct file *file = native_open(MINOR(ram_device->dev.devt), O_RDWR);

	WARN_ON(IS_ERR(file));
	return file;
}

static u32 allocate(struct file *file)
{
	struct flexmem_alloc alloc = CMD(alloc, .length = LENGTH,
		.flags = FLEXMEM_ALLOC_MAPPABLE | FLEXMEM_ALLOC_ZEROED);

	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &alloc));
	return alloc.out_handle;
}

static void read_back(struct file *file, u32 handle, u8 *bytes)
{
	struct flexmem_rw copy = CMD(rw, .handle = handle,
		.length = LENGTH, .data = (uintptr_t)bytes);

	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_READ, &copy));
}

/*
 * Maps an allocation. The mapped page must be the frame that the device uses.
 */
static void map(struct file *file, u32 handle, const u8 *bytes)
{
	u8 byte = bytes[LENGTH - 1];
	struct flexmem_lookup map = CMD(lookup, .handle = handle);
	struct vm_area_struct *vma;
	u8 *frame;

	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_LOOKUP, &map));
	vma = native_mmap(file, map.out_map_offset, map.out_size,
			  VM_SHARED | VM_READ | VM_WRITE);
	WARN_ON(IS_ERR(vma));
	WARN_ON(native_touch(vma, LENGTH - 1, &byte, false));
	frame = (u8 *)(vma->pfn[(LENGTH - 1) >> PAGE_SHIFT] << PAGE_SHIFT);
	WARN_ON(frame[PAGE_SIZE - 1] != byte);
	native_munmap(vma);
}

static void use_memory(void)
{
	static u8 bytes[LENGTH], back[LENGTH];
	struct rnd_state random;
	struct file *file = open_device();
	u32 from = allocate(file), to = allocate(file);
	struct flexmem_rw write = CMD(rw, .handle = from,
		.length = LENGTH, .data = (uintptr_t)bytes);
	struct flexmem_copy copy = CMD(copy, .from = from, .to = to,
					     .length = LENGTH);

	prandom_seed_state(&random, from);
	read_back(file, from, back);
	WARN(memchr_inv(back, 0, LENGTH), "bytes of before are in it");
	prandom_bytes_state(&random, bytes, LENGTH);
	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_WRITE, &write));
	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_COPY, &copy));
	read_back(file, to, back);
	WARN_ON(memcmp(back, bytes, LENGTH));
	map(file, to, bytes);
	native_close(file);
}

static bool holds_memory(void)
{
	return memchr_inv(ram_id, 0, sizeof(ram_id));
}

static void give_back(void)
{
	struct file *file = open_device();
	struct flexmem_trim trim = CMD(trim);

	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_TRIM, &trim));
	native_close(file);
	WARN(holds_memory(), "TRIM left memory acquired");
}

int main(void)
{
	long live;

	native_shim_init();
	live = native_live();
	WARN_ON(native_param_set("fallback_sizes", "16M"));
	WARN_ON(native_param_set("order", "fill_first"));
	WARN_ON(native_module_init());
	WARN_ON(start());
	use_memory();
	use_memory();
	give_back();
	use_memory();
	WARN_ON(flexmem_device_reset(ram_device));
	WARN_ON(holds_memory());
	use_memory();
	stop();
	WARN_ON(holds_memory());
	native_module_exit();
	WARN_ON(native_live() != live);
	puts("ok 1 - the smallest example driver\n1..1");
	return 0;
}
