// SPDX-License-Identifier: GPL-2.0
/*
 * flexmem_sim: a simulated accelerator for flexmem, written like a driver for a
 * real accelerator.
 *
 * The module makes one card: it switches the firmware on, and makes a platform
 * device for each function, PF first. After that the driver of each function is
 * bound and unbound through sysfs, as with any device. A write to num_vfs adds
 * VFs behind the last one, or removes the last ones.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/pm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "card.h"
#include "compat.h"
#include "debugfs.h"
#include "size_param.h"
#include "version.h"

#define SIM_DEFAULT_MEMORY (128ULL * SZ_1G)
#define SIM_DEFAULT_VF_CAPACITY (64ULL * SZ_1G)

/**
 * struct range_param - module parameter that is a whole number in a range
 * @value: its value
 * @min: least value
 * @max: largest value
 */
struct range_param {
	unsigned int value;
	unsigned int min;
	unsigned int max;
};

static struct range_param num_vfs = { .value = 1, .max = SIM_MAX_VFS };

static struct range_param slots = {
	.value = SIM_MAX_SLOTS,
	.min = SIM_MIN_SLOTS,
	.max = SIM_MAX_SLOTS,
};

static struct range_param timeout_ms = {
	.value = 1000,
	.min = 1,
	.max = SIM_MAX_TIMEOUT_MS,
};

/* By default a job that takes SIM_MAX_RUN_MS ends by itself. */
static struct range_param job_timeout_ms = {
	.value = 2 * SIM_MAX_RUN_MS,
	.min = 1,
	.max = 24 * 3600 * 1000,
};

static struct sim_domains domains;
static char domains_text[256];
static struct sim_space space = SIM_DEFAULT_SPACE;
static u64 memory;
static u64 vf_capacity;

/*
 * Protects the variables below, because num_vfs can be written before the
 * module's init and during its exit. Outermost of all locks.
 */
static DEFINE_MUTEX(sim_lock);
static struct sim_card *sim_card;
/* The devices of the PF and the VFs, PF first; a driver may be bound or not. */
static struct platform_device *sim_pdevs[SIM_MAX_FUNCTIONS];
static unsigned int sim_nr;

static int sim_resize(struct sim_card *card, unsigned int nr);

static int range_parse(const char *text, const struct kernel_param *kp,
		       unsigned int *value)
{
	const struct range_param *range = kp->arg;

	if (kstrtouint(text, 0, value) || *value < range->min ||
	    *value > range->max) {
		/* Cuts off the newline of a value written to sysfs. */
		pr_err("%s=%.*s: must be a number from %u to %u\n", kp->name,
		       (int)strcspn(text, "\n"), text, range->min, range->max);
		return -EINVAL;
	}
	return 0;
}

static int range_set(const char *text, const struct kernel_param *kp)
{
	struct range_param *range = kp->arg;
	unsigned int value;
	int ret;

	ret = range_parse(text, kp, &value);
	if (!ret)
		range->value = value;
	return ret;
}

static int range_get(char *buffer, const struct kernel_param *kp)
{
	const struct range_param *range = kp->arg;

	return sysfs_emit(buffer, "%u\n", range->value);
}

static const struct kernel_param_ops range_ops = {
	.set = range_set,
	.get = range_get,
};

static int num_vfs_set(const char *text, const struct kernel_param *kp)
{
	unsigned int value;
	int ret;

	ret = range_parse(text, kp, &value);
	if (ret)
		return ret;
	if (mutex_lock_killable(&sim_lock))
		return -EINTR;
	if (sim_card) {
		ret = sim_resize(sim_card, 1 + value);
		/*
		 * After a failed change, num_vfs is the number of VFs that
		 * there are.
		 */
		value = sim_nr - 1;
	}
	num_vfs.value = value;
	mutex_unlock(&sim_lock);
	return ret;
}

static const struct kernel_param_ops num_vfs_ops = {
	.set = num_vfs_set,
	.get = range_get,
};

static int bytes_set(const char *text, const struct kernel_param *kp)
{
	u64 *value = kp->arg;
	u64 bytes;

	if (flexmem_parse_size(text, &bytes) || !bytes || bytes > SIM_MAX_MEMORY ||
	    !IS_ALIGNED(bytes, SIM_GRANULE)) {
		pr_err("%s=%s: must be a size such as 128G, a multiple of 2M, at most 64T\n",
		       kp->name, text);
		return -EINVAL;
	}
	*value = bytes;
	return 0;
}

static int bytes_get(char *buffer, const struct kernel_param *kp)
{
	static const char suffixes[] = "MGT";
	u64 value = *(u64 *)kp->arg / SZ_1M;
	unsigned int s = 0;

	while (suffixes[s + 1] && value && IS_ALIGNED(value, SZ_1K)) {
		value /= SZ_1K;
		s++;
	}
	return sysfs_emit(buffer, "%llu%c\n", value, suffixes[s]);
}

static const struct kernel_param_ops bytes_ops = {
	.set = bytes_set,
	.get = bytes_get,
};

static int domains_set(const char *text, const struct kernel_param *kp)
{
	const char *wrong = "the text is too long";
	size_t at = strnlen(text, sizeof(domains_text));

	if (at < sizeof(domains_text))
		wrong = sim_domains_parse(&domains, text, &at);
	if (wrong) {
		pr_err("%s=%s: at character %zu: %s\n", kp->name, text, at + 1,
		       wrong);
		return -EINVAL;
	}
	strscpy(domains_text, text, sizeof(domains_text));
	return 0;
}

static int domains_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", domains_text);
}

static const struct kernel_param_ops domains_ops = {
	.set = domains_set,
	.get = domains_get,
};

static int space_set(const char *text, const struct kernel_param *kp)
{
	const char *wrong;
	size_t at;

	wrong = sim_space_parse(&space, text, &at);
	if (!wrong)
		return 0;
	pr_err("%s=%s: at character %zu: %s\n", kp->name, text, at + 1, wrong);
	return -EINVAL;
}

static int space_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu:%llu:%llu\n", space.page, space.start,
			  space.end - space.start);
}

static const struct kernel_param_ops space_ops = {
	.set = space_set,
	.get = space_get,
};

module_param_cb(domains, &domains_ops, NULL, 0444);
MODULE_PARM_DESC(domains, "Memories of the card, such as hbm*4:24G,tcm*4:16M:reserved=1M; each function may have all of each (default memory: one of that size)");
module_param_cb(job_timeout_ms, &range_ops, &job_timeout_ms, 0444);
MODULE_PARM_DESC(job_timeout_ms, "How long a job may run before the function is reset, ms (default 120000)");
module_param_cb(memory, &bytes_ops, &memory, 0444);
MODULE_PARM_DESC(memory, "Device memory of the card (default 128G)");
module_param_cb(num_vfs, &num_vfs_ops, &num_vfs, 0644);
MODULE_PARM_DESC(num_vfs, "Virtual functions, 0 to 8 (default 1)");
module_param_cb(vf_capacity, &bytes_ops, &vf_capacity, 0444);
MODULE_PARM_DESC(vf_capacity, "Most memory of a VF (default 64G, or all memory if that is less)");
module_param_cb(slots, &range_ops, &slots, 0444);
MODULE_PARM_DESC(slots, "Entries of each VF's table, 8 to 16 (default 16)");
module_param_cb(space, &space_ops, NULL, 0444);
MODULE_PARM_DESC(space, "Page size, start and size of device-virtual spaces, such as 64K:4G:64G (default 64K, 64K, all below 256T)");
module_param_cb(timeout_ms, &range_ops, &timeout_ms, 0444);
MODULE_PARM_DESC(timeout_ms, "How long the driver waits for the firmware, ms (default 1000)");

/*
 * Returns the simulator's function, which sim_add() has put into the platform
 * data.
 */
static struct sim_function *sim_function_of(struct platform_device *pdev)
{
	struct sim_function **data = dev_get_platdata(&pdev->dev);

	return *data;
}

static const struct platform_device_id sim_ids[] = {
	{ .name = "flexmem_sim_pf" },
	{ .name = "flexmem_sim_vf" },
	{}
};

static int sim_probe(struct platform_device *pdev)
{
	const struct platform_device_id *id = platform_get_device_id(pdev);

	/*
	 * With driver_override any platform device can be bound to this driver.
	 * The id of such a device is not an entry of sim_ids.
	 */
	if (id != &sim_ids[0] && id != &sim_ids[1])
		return -ENODEV;
	return sim_function_bind(sim_function_of(pdev), &pdev->dev,
				 dev_name(&pdev->dev));
}

static void sim_remove(struct platform_device *pdev)
{
	sim_function_unbind(sim_function_of(pdev));
}

static int sim_suspend(struct device *dev)
{
	return sim_function_suspend(sim_function_of(to_platform_device(dev)));
}

static int sim_resume(struct device *dev)
{
	return sim_function_resume(sim_function_of(to_platform_device(dev)));
}

static DEFINE_SIMPLE_DEV_PM_OPS(sim_pm_ops, sim_suspend, sim_resume);

static struct platform_driver sim_driver = {
	.probe = sim_probe,
	.flexmem_remove = sim_remove,
	.id_table = sim_ids,
	.driver = {
		.name = KBUILD_MODNAME,
		.pm = pm_sleep_ptr(&sim_pm_ops),
	},
};

/* Adds a function's device. It stays even if no driver binds to it. */
static int sim_add(struct sim_function *fn)
{
	unsigned int index = fn->index;
	struct platform_device_info info = {
		.name = index ? "flexmem_sim_vf" : "flexmem_sim_pf",
		.id = index ? index - 1 : 0,
		.data = &fn,
		.size_data = sizeof(fn),
	};
	struct platform_device *pdev;

	pdev = platform_device_register_full(&info);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	sim_pdevs[index] = pdev;
	sim_debugfs_add_function(fn);
	return 0;
}

static void sim_take_away(struct sim_function *fn)
{
	platform_device_unregister(sim_pdevs[fn->index]);
	sim_debugfs_remove_function(fn);
}

/*
 * Adds or removes functions at the end until there are @nr functions, or until
 * a step fails.
 */
static int sim_resize(struct sim_card *card, unsigned int nr)
{
	int ret;

	while (sim_nr < nr) {
		ret = sim_add(&card->functions[sim_nr]);
		if (ret)
			return ret;
		sim_nr++;
	}
	while (sim_nr > nr)
		sim_take_away(&card->functions[--sim_nr]);
	return 0;
}

static void sim_card_remove(struct sim_card *card)
{
	sim_resize(card, 0);
	sim_debugfs_remove_card(card);
	sim_card_destroy(card);
	kfree(card);
}

static struct sim_card *sim_card_add(const struct sim_geometry *geometry)
{
	struct sim_card *card;
	int ret;

	card = kzalloc(sizeof(*card), GFP_KERNEL);
	if (!card)
		return ERR_PTR(-ENOMEM);
	ret = sim_card_init(card, geometry, timeout_ms.value,
			    job_timeout_ms.value);
	if (ret) {
		kfree(card);
		return ERR_PTR(ret);
	}
	sim_debugfs_add_card(card);
	ret = sim_resize(card, 1 + num_vfs.value);
	if (ret) {
		sim_card_remove(card);
		return ERR_PTR(ret);
	}
	return card;
}

/*
 * The PF gets only the capacity that the VFs leave: with acquire=prealloc it
 * acquires all of its capacity at once, and must not take the VFs' share. If
 * the VFs' shares exceed the memory, the PF and all VFs compete for it. The
 * PF's share does not change after the module is loaded: VFs that are added
 * later compete with the PF, and the share of removed VFs stays unused.
 */
static u64 pf_capacity(void)
{
	u64 set_aside = num_vfs.value * vf_capacity;

	return set_aside < memory ? memory - set_aside : memory;
}

/*
 * Builds the card from the parameter "domains". Each function may acquire all
 * of each memory.
 */
static int __init sim_use_domains(struct sim_geometry *geometry)
{
	if (memory || vf_capacity) {
		pr_err("%s=: not together with domains=%s, which says how much memory there is\n",
		       memory ? "memory" : "vf_capacity", domains_text);
		return -EINVAL;
	}
	geometry->pf_capacity = domains.size[0];
	geometry->vf_capacity = domains.size[0];
	return 0;
}

static int __init sim_use_memory(struct sim_geometry *geometry)
{
	if (!memory)
		memory = SIM_DEFAULT_MEMORY;
	if (!vf_capacity)
		vf_capacity = min(SIM_DEFAULT_VF_CAPACITY, memory);
	if (vf_capacity > memory) {
		pr_err("vf_capacity=%llu: must not be above memory=%llu\n",
		       vf_capacity, memory);
		return -EINVAL;
	}
	sim_domains_one(&domains, memory);
	geometry->pf_capacity = pf_capacity();
	geometry->vf_capacity = vf_capacity;
	return 0;
}

/* flexmem would refuse the functions of such a card. */
static bool __init sim_has_large_pages(void)
{
	unsigned int i;

	for (i = 0; i < domains.nr; i++) {
		if (space.page <= domains.desc[i].granule)
			continue;
		pr_err("space=: a page must not be larger than the granule of a memory, %llu bytes\n",
		       domains.desc[i].granule);
		return true;
	}
	return false;
}

static int __init sim_add_card(void)
{
	struct sim_geometry geometry = {
		.domains = &domains,
		.slots = slots.value,
		.space = space,
	};
	struct sim_card *card;
	int ret;

	ret = domains.nr ? sim_use_domains(&geometry) :
			   sim_use_memory(&geometry);
	if (!ret && sim_has_large_pages())
		ret = -EINVAL;
	if (ret)
		return ret;
	card = sim_card_add(&geometry);
	if (IS_ERR(card))
		return PTR_ERR(card);
	sim_card = card;
	return 0;
}

static int __init sim_init(void)
{
	int ret;

	ret = platform_driver_register(&sim_driver);
	if (ret)
		return ret;
	mutex_lock(&sim_lock);
	ret = sim_add_card();
	mutex_unlock(&sim_lock);
	if (ret)
		platform_driver_unregister(&sim_driver);
	return ret;
}
module_init(sim_init);

static void __exit sim_exit(void)
{
	mutex_lock(&sim_lock);
	sim_card_remove(sim_card);
	sim_card = NULL;
	mutex_unlock(&sim_lock);
	platform_driver_unregister(&sim_driver);
}
module_exit(sim_exit);

MODULE_DESCRIPTION("Simulated accelerator for flexmem");
MODULE_AUTHOR("The flexmem authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(FLEXMEM_VERSION);
