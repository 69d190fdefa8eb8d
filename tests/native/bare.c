// SPDX-License-Identifier: GPL-2.0
/*
 * The module without any part (kmod/part.h; make core): which commands it has, and
 * what it says that a device can do that could do everything. Prints TAP.
 */
#include "shim/internal.h"

#include "ioctl.h"
#include "world.h"

static int acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	mem->base = SZ_2M;
	mem->size = size;
	return 0;
}

static int release(void *priv, const struct flexmem_memory *mem)
{
	return 0;
}

static int quiesce(void *priv)
{
	return 0;
}

static int capacity(void *priv, unsigned int domain, u64 *bytes)
{
	*bytes = SZ_2M;
	return 0;
}

static int scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		 u64 size)
{
	return 0;
}

static int fault(void *priv, const struct flexmem_memory *mem, u64 offset,
		 struct flexmem_frames *frames)
{
	return -EIO;
}

static int copy(void *priv, const struct flexmem_memory *to, u64 to_offset,
		const struct flexmem_memory *from, u64 from_offset, u64 size)
{
	return -EIO;
}

static int read_bytes(void *priv, const struct flexmem_memory *mem, u64 offset,
		      u64 size, void *buffer)
{
	return -EIO;
}

static int write_bytes(void *priv, const struct flexmem_memory *mem, u64 offset,
		       u64 size, const void *buffer)
{
	return -EIO;
}

static int vm_map(void *priv, const struct flexmem_vm_range *range,
		  const struct flexmem_memory *mem, u64 offset,
		  unsigned int access)
{
	return -EIO;
}

static int vm_unmap(void *priv, const struct flexmem_vm_range *range)
{
	return -EIO;
}

static const struct flexmem_device_ops ops = {
	.acquire = acquire,
	.release = release,
	.quiesce = quiesce,
	.capacity = capacity,
	.scrub = scrub,
	.fault = fault,
	.read = read_bytes,
	.write = write_bytes,
	.copy = copy,
	.vm_map = vm_map,
	.vm_unmap = vm_unmap,
};

static unsigned int results, failures;

static void result(bool ok, const char *what)
{
	failures += !ok;
	printf("%s %u - %s\n", ok ? "ok" : "not ok", ++results, what);
}

/* A command that there is reads the caller's struct, and finds none. */
static void has_its_commands(struct file *file)
{
	const u64 core = BIT_ULL(FLEXMEM_CMD_INFO) | BIT_ULL(FLEXMEM_CMD_ALLOC) |
			 BIT_ULL(FLEXMEM_CMD_FREE) |
			 BIT_ULL(FLEXMEM_CMD_ALLOC_BATCH) |
			 BIT_ULL(FLEXMEM_CMD_FREE_BATCH) |
			 BIT_ULL(FLEXMEM_CMD_LOOKUP) |
			 BIT_ULL(FLEXMEM_CMD_SEGMENTS) |
			 BIT_ULL(FLEXMEM_CMD_TRIM) |
			 BIT_ULL(FLEXMEM_CMD_SET_LIMIT);
	char command[16];
	unsigned int nr;
	long rc;

	for (nr = 0; nr < 64; nr++) {
		rc = native_ioctl(file, _IO(FLEXMEM_TYPE, nr), NULL);
		snprintf(command, sizeof(command), "command %u", nr);
		result(rc == (core & BIT_ULL(nr) ? -EFAULT : -ENOTTY), command);
	}
}

static void works(struct file *file)
{
	struct flexmem_info info = CMD(info);
	struct flexmem_alloc alloc = CMD(alloc, .length = SZ_4K);
	struct flexmem_lookup lookup = CMD(lookup);

	result(!native_ioctl(file, FLEXMEM_IOCTL_INFO, &info) &&
	       info.out_capabilities == FLEXMEM_CAP_SCRUB,
	       "it can only scrub");
	result(!info.out_va_page && !info.out_va_start && !info.out_va_length,
	       "no address can be mapped");
	alloc.flags = FLEXMEM_ALLOC_MAPPABLE;
	result(native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &alloc) == -EOPNOTSUPP,
	       "no memory is mappable");
	alloc.flags = 0;
	result(!native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &alloc), "ALLOC");
	lookup.handle = alloc.out_handle;
	result(!native_ioctl(file, FLEXMEM_IOCTL_LOOKUP, &lookup) &&
	       lookup.out_size == SZ_4K, "LOOKUP");
	alloc.length = SZ_4M;
	result(native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &alloc) == -ENOMEM,
	       "ALLOC that is too large");
	result(!native_ioctl(file, FLEXMEM_IOCTL_FREE,
			     &CMD(free, .handle = lookup.handle)),
	       "FREE");
	result(!file->f_op->read && !file->f_op->poll, "no events");
}

int main(void)
{
	const struct flexmem_device_desc desc = {
		.name = "bare",
		.mode = FLEXMEM_MODE_PF,
		.granule = SZ_2M,
		.vm_page = SZ_4K,
		.vm_start = SZ_4K,
		.vm_end = SZ_2M,
		.ops = &ops,
	};
	struct device parent = {};
	struct flexmem_dev *fdev;
	struct file *file;

	native_shim_init();
	device_initialize(&parent);
	WARN_ON(dev_set_name(&parent, "parent"));
	if (native_param_set("fallback_sizes", "2M") || native_module_init())
		return 2;
	fdev = flexmem_device_register(&parent, &desc);
	if (IS_ERR(fdev))
		return 2;
	file = native_open(MINOR(fdev->dev.devt), O_RDWR);
	if (IS_ERR(file))
		return 2;
	has_its_commands(file);
	works(file);
	native_close(file);
	flexmem_device_unregister(fdev);
	native_module_exit();
	printf("1..%u\n", results);
	return failures ? 1 : 0;
}
