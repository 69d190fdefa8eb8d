// SPDX-License-Identifier: GPL-2.0
/*
 * Bounds: counts the steps of an ALLOC that fails with as many regions and holes
 * as it may look at. Prints TAP.
 */
#include "shim/internal.h"

#include "count.h"
#include "ioctl.h"
#include "world.h"

#define REGIONS 64
#define UNIT SZ_64K		/* alignment of the ALLOC that fails */
/* Of that ALLOC. Native code has a branch in each four or five instructions. */
#define MOST_STEPS (STEPS_OF_A_BRANCH > 1 ? 100000 : 22000)

static unsigned int results, failures;

static void must(bool is, const char *what)
{
	if (is)
		return;
	printf("# not so: %s\n", what);
	failures++;
}

#define MUST(is) must(is, #is)

static void result(unsigned int before, const char *what)
{
	printf("%s %u - %s\n", failures > before ? "not ok" : "ok", ++results,
	       what);
}

/* ---- a device that has as much memory as anyone asks for ---- */

static u64 next_base;

static int give(void *priv, u64 size, struct flexmem_memory *mem)
{
	*mem = (struct flexmem_memory) {
		.id = mem->id, .base = next_base, .size = size,
	};
	next_base += size;
	return 0;
}

static int take_back(void *priv, const struct flexmem_memory *mem)
{
	return 0;
}

static int slot_set(void *priv, unsigned int slot,
		    const struct flexmem_memory *mem)
{
	return 0;
}

static int slot_clear(void *priv, unsigned int slot)
{
	return 0;
}

static int quiesce(void *priv)
{
	return 0;
}

static int say_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	*bytes = 1ull << 50;
	return 0;
}

static int scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		 u64 size)
{
	return 0;
}

static const struct flexmem_device_ops ops = {
	.acquire = give,
	.release = take_back,
	.quiesce = quiesce,
	.slot_set = slot_set,
	.slot_clear = slot_clear,
	.capacity = say_capacity,
	.scrub = scrub,
};

static struct flexmem_dev *fdev;
static struct device parent;

static void begin(const char *sizes)
{
	static const struct flexmem_device_desc desc = {
		.name = "bounds",
		.mode = FLEXMEM_MODE_VF,
		.slots = REGIONS,
		.granule = SZ_2M,
		.ops = &ops,
	};

	next_base = SZ_2M;
	parent = (struct device) {};
	device_initialize(&parent);
	WARN_ON(dev_set_name(&parent, "parent"));
	if (native_param_set("fallback_sizes", sizes) || native_module_init())
		abort();
	fdev = flexmem_device_register(&parent, &desc);
	if (IS_ERR(fdev))
		abort();
}

static void end(void)
{
	flexmem_device_unregister(fdev);
	native_module_exit();
}

static struct file *open_node(void)
{
	struct file *file = native_open(MINOR(fdev->dev.devt), O_RDWR);

	if (IS_ERR(file))
		abort();
	return file;
}

static u32 allocate(struct file *file, u64 length)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = length);

	native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &cmd);
	return cmd.out_handle;
}

static void release(struct file *file, u32 handle)
{
	MUST(!native_ioctl(file, FLEXMEM_IOCTL_FREE,
			   &CMD(free, .handle = handle)));
}

/* ---- an ALLOC that fails after a long search ---- */

/*
 * Fills each region with holes that are longer than @UNIT, but have no place for
 * it at a multiple of it.
 */
static void fill(struct file *file)
{
	static u32 hole[REGIONS * 600];
	unsigned int i, r, nr = 0;

	for (r = 0; r < REGIONS; r++) {
		MUST(allocate(file, 128));
		for (i = 0; i < SZ_64M / (2 * UNIT) - 1; i++) {
			hole[nr++] = allocate(file, 2 * UNIT - 256);
			MUST(allocate(file, 256));
		}
		MUST(allocate(file, 2 * UNIT - 128));
	}
	MUST(!allocate(file, 128));
	for (i = 0; i < nr; i++)
		release(file, hole[i]);
}

static void a_search_that_fails(void)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = UNIT,
				       .alignment = UNIT);
	unsigned int before = failures;
	unsigned long most = 0;
	struct file *file;
	char what[200];

	begin("64M");
	file = open_node();
	fill(file);
	COUNT(most, native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &cmd));
	MUST(cmd.out_error == ENOMEM);
	MUST(cmd.out_reason == FLEXMEM_REASON_ALIGNMENT);
	MUST(cmd.out_regions == REGIONS);
	MUST(most <= MOST_STEPS);
	native_close(file);
	end();
	snprintf(what, sizeof(what),
		 "an aligned ALLOC fails in %u regions: %lu " STEP_NAME,
		 REGIONS, most);
	result(before, what);
}

int main(void)
{
	native_shim_init();
	if (native_param_set("order", "fill_first") ||
	    native_param_set("strategy", "first_fit") ||
	    native_param_set("max_regions", "64"))
		return 2;
	a_search_that_fails();
	printf("1..%u\n", results);
	return failures ? 1 : 0;
}
