// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters of flexmem.ko.
 *
 * The setter of each parameter checks its value when the module is loaded. A
 * bad value makes the load fail, and the kernel log says what is allowed. Each
 * parameter can be read in /sys/module/flexmem/parameters, in the form in which
 * it is set.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <flexmem/device_ops.h>

#include "gate/function.h"
#include "settings.h"
#include "size_param.h"

#define RELEASE_AFTER_S_LIMIT (24U * 3600)
#define REGION_SIZE_LIMIT BIT_ULL(52)

static struct flexmem_settings param = {
	.fit = FLEXMEM_FIT_FIRST,
	.acquire = FLEXMEM_ACQUIRE_LAZY,
	.max_regions = 12,
	.program_slots = 0,
	.default_depth = 2,
	.pf_open = FLEXMEM_PF_OPEN_ADMIN,
};

/* Sizes of regions if neither the administrator nor the device names any. */
static const u64 default_sizes[] = {
	12ULL * SZ_1G, 8ULL * SZ_1G, 4ULL * SZ_1G
};

/* This value leaves the choice to the device's driver. */
#define AUTO "auto"

/**
 * struct choice_param - parameter with a choice of names
 * @value: the value; an enum
 * @names: all names, for a message
 * @name: the name of each value; NULL after the last
 */
struct choice_param {
	unsigned int *value;
	const char *names;
	const char *name[4];
};

static int choice_set(const char *text, const struct kernel_param *kp)
{
	const struct choice_param *choice = kp->arg;
	int i = sysfs_match_string(choice->name, text);

	if (i < 0)
		pr_err("%s=%s: must be %s\n", kp->name, text, choice->names);
	else
		*choice->value = i;
	return i < 0 ? i : 0;
}

static int choice_get(char *buffer, const struct kernel_param *kp)
{
	const struct choice_param *choice = kp->arg;

	return sysfs_emit(buffer, "%s\n", choice->name[*choice->value]);
}

static const struct kernel_param_ops choice_ops = {
	.set = choice_set,
	.get = choice_get,
};

/**
 * struct range_param - parameter with a whole number in a range
 * @value: the value
 * @min: least
 * @max: most
 */
struct range_param {
	unsigned int *value;
	unsigned int min;
	unsigned int max;
};

static int range_set(const char *text, const struct kernel_param *kp)
{
	const struct range_param *range = kp->arg;
	unsigned int value;

	if (kstrtouint(text, 0, &value) || value < range->min ||
	    value > range->max) {
		pr_err("%s=%s: must be a number from %u to %u\n", kp->name,
		       text, range->min, range->max);
		return -EINVAL;
	}
	*range->value = value;
	return 0;
}

static int range_get(char *buffer, const struct kernel_param *kp)
{
	const struct range_param *range = kp->arg;

	return sysfs_emit(buffer, "%u\n", *range->value);
}

static const struct kernel_param_ops range_ops = {
	.set = range_set,
	.get = range_get,
};

static u64 parse_size(const char *text)
{
	u64 size;

	if (flexmem_parse_size(text, &size) || size > REGION_SIZE_LIMIT ||
	    !IS_ALIGNED(size, SZ_4K))
		return 0;
	return size;
}

static int sizes_set(const char *text, const struct kernel_param *kp)
{
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES] = {};
	char *copy, *rest, *word;
	unsigned int nr = 0;

	if (sysfs_streq(text, AUTO)) {
		param.nr_sizes = 0;
		return 0;
	}
	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;

	rest = copy;
	while ((word = strsep(&rest, ","))) {
		u64 size = parse_size(word);

		if (!size || nr == ARRAY_SIZE(sizes)) {
			nr = 0;
			break;
		}
		sizes[nr++] = size;
	}
	kfree(copy);

	if (!nr) {
		pr_err("%s=%s: must be auto, or 1 to %zu sizes such as 12G,8G,4G, each a multiple of 4K and at most 4P\n",
		       kp->name, text, ARRAY_SIZE(sizes));
		return -EINVAL;
	}
	memcpy(param.sizes, sizes, sizeof(sizes));
	param.nr_sizes = nr;
	return 0;
}

/* Prints the sizes in the form in which they are set, with the longest suffixes. */
static int sizes_get(char *buffer, const struct kernel_param *kp)
{
	static const char suffixes[] = "KMGTP";
	unsigned int i, s;
	int at = 0;
	u64 size;

	if (!param.nr_sizes)
		return sysfs_emit(buffer, AUTO "\n");
	for (i = 0; i < param.nr_sizes; i++) {
		size = param.sizes[i] / SZ_1K;
		for (s = 0; suffixes[s + 1] && IS_ALIGNED(size, SZ_1K); s++)
			size /= SZ_1K;
		at += sysfs_emit_at(buffer, at, "%s%llu%c", i ? "," : "", size,
				    suffixes[s]);
	}
	return at + sysfs_emit_at(buffer, at, "\n");
}

static const struct kernel_param_ops sizes_ops = {
	.set = sizes_set,
	.get = sizes_get,
};

/* Defines a parameter with the names of the values of an enum. */
#define CHOICE_PARAM(parameter, setting, text, list...)			\
	static const struct choice_param parameter ## _choice = {	\
		.value = (unsigned int *)&param.setting,		\
		.names = text,						\
		.name = { list },					\
	};								\
	module_param_cb(parameter, &choice_ops,				\
			(void *)&parameter ## _choice, 0444)

/* Defines a parameter that sets the member of the same name in the settings. */
/* checkpatch: MACRO_ARG_REUSE - it is a name */
#define RANGE_PARAM(setting, least, most)				\
	static const struct range_param setting ## _range = {		\
		.value = &param.setting,				\
		.min = least,						\
		.max = most,						\
	};								\
	module_param_cb(setting, &range_ops,				\
			(void *)&setting ## _range, 0444)

CHOICE_PARAM(strategy, fit, "first_fit or best_fit",
	     [FLEXMEM_FIT_FIRST] = "first_fit", [FLEXMEM_FIT_BEST] = "best_fit");
MODULE_PARM_DESC(strategy, "Free block to take: first_fit (default) or best_fit");
CHOICE_PARAM(order, order, "auto, load_balance or fill_first", AUTO,
	     [FLEXMEM_ORDER_LOAD_BALANCE] = "load_balance",
	     [FLEXMEM_ORDER_FILL_FIRST] = "fill_first");
MODULE_PARM_DESC(order, "Regions to try first: load_balance, fill_first, or auto (default): as the device chooses, or fill_first on a VF");
CHOICE_PARAM(acquire, acquire, "lazy or prealloc",
	     [FLEXMEM_ACQUIRE_LAZY] = "lazy",
	     [FLEXMEM_ACQUIRE_PREALLOC] = "prealloc");
MODULE_PARM_DESC(acquire, "Acquire regions on demand, lazy (default), or all at once, prealloc");
module_param_cb(fallback_sizes, &sizes_ops, NULL, 0444);
MODULE_PARM_DESC(fallback_sizes, "Region sizes in the order they are tried; auto (default): the device's own, or 12G,8G,4G");
RANGE_PARAM(max_regions, 1, FLEXMEM_MAX_SLOTS);
MODULE_PARM_DESC(max_regions, "Most regions of a function, 1 to 64 (default 12)");
RANGE_PARAM(program_slots, 0, FLEXMEM_MAX_SLOTS - 1);
MODULE_PARM_DESC(program_slots, "Slots set aside for programs (default 0: shared with tensors)");
RANGE_PARAM(default_depth, 1, FLEXMEM_MAX_DEPTH);
MODULE_PARM_DESC(default_depth, "Depth of the cgroups that have the default limits (default 2)");
RANGE_PARAM(release_after_s, 0, RELEASE_AFTER_S_LIMIT);
MODULE_PARM_DESC(release_after_s, "Release a region that has been empty for so many seconds, unless it is the last empty one (default 0: never)");
CHOICE_PARAM(pf_open, pf_open, "admin or mode",
	     [FLEXMEM_PF_OPEN_ADMIN] = "admin",
	     [FLEXMEM_PF_OPEN_MODE] = "mode");
MODULE_PARM_DESC(pf_open, "Who may open a PF: CAP_SYS_ADMIN only, admin (default), or whom its node lets, mode");

/*
 * Checks the parameters against one another. Return: 0, or -EINVAL after a
 * message.
 */
int flexmem_settings_validate(void)
{
	if (param.program_slots >= param.max_regions) {
		pr_err("program_slots=%u: must be less than max_regions=%u\n",
		       param.program_slots, param.max_regions);
		return -EINVAL;
	}
	if (param.release_after_s &&
	    param.acquire == FLEXMEM_ACQUIRE_PREALLOC) {
		pr_err("release_after_s=%u: must be 0 with acquire=prealloc\n",
		       param.release_after_s);
		return -EINVAL;
	}
	return 0;
}

/*
 * Copies the settings for a device, whose driver chooses what the administrator
 * did not set.
 */
void flexmem_settings_get(struct flexmem_settings *settings,
			  const struct flexmem_device_desc *desc)
{
	*settings = param;
	if (!settings->order)
		settings->order = desc->order ?:
				  desc->mode == FLEXMEM_MODE_VF ?
					FLEXMEM_ORDER_FILL_FIRST :
					FLEXMEM_ORDER_LOAD_BALANCE;
	if (!settings->nr_sizes) {
		settings->nr_sizes = desc->nr_sizes;
		memcpy(settings->sizes, desc->sizes, sizeof(desc->sizes));
	}
	if (!settings->nr_sizes) {
		settings->nr_sizes = ARRAY_SIZE(default_sizes);
		memcpy(settings->sizes, default_sizes, sizeof(default_sizes));
	}
}
