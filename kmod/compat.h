/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between the supported kernels, 6.1 to 7.3, and nothing else. */
#ifndef _FLEXMEM_COMPAT_H
#define _FLEXMEM_COMPAT_H

#include <linux/device/class.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>

/*
 * Linux 6.12 has this attribute: the compiler does not zero the variable, even
 * if the kernel's options ask for it.
 */
#ifndef __uninitialized
#define __uninitialized
#endif

/* Since Linux 6.2 the callback for a node's name takes a const device. */
/* checkpatch: LINUX_VERSION_CODE - one source for all kernels */
/* checkpatch: CONSTANT_COMPARISON - KERNEL_VERSION() is the constant */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define flexmem_const_since_6_2 const
#else
#define flexmem_const_since_6_2
#endif

/*
 * Since Linux 6.7 the kernel allocates shrinkers. Returns NULL if there is no
 * memory.
 */
/* checkpatch: LINUX_VERSION_CODE - one source for all kernels */
/* checkpatch: CONSTANT_COMPARISON - KERNEL_VERSION() is the constant */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
static inline struct shrinker *flexmem_make_shrinker(void)
{
	return shrinker_alloc(0, "flexmem");
}

static inline int flexmem_register_shrinker(struct shrinker *shrinker)
{
	shrinker_register(shrinker);
	return 0;
}

#define flexmem_free_shrinker shrinker_free
#else
static inline struct shrinker *flexmem_make_shrinker(void)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (shrinker)
		shrinker->seeks = DEFAULT_SEEKS;
	return shrinker;
}

static inline int flexmem_register_shrinker(struct shrinker *shrinker)
{
	return register_shrinker(shrinker, "flexmem");
}

static inline void flexmem_free_shrinker(struct shrinker *shrinker)
{
	if (shrinker)
		unregister_shrinker(shrinker);
	kfree(shrinker);
}
#endif

/*
 * Since Linux 6.3 the flags of a vma are changed by vm_flags_mod() and the
 * like.
 */
/* checkpatch: LINUX_VERSION_CODE - one source for all kernels */
/* checkpatch: CONSTANT_COMPARISON - KERNEL_VERSION() is the constant */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define flexmem_vm_flags_mod vm_flags_mod
#else
static inline void flexmem_vm_flags_mod(struct vm_area_struct *vma,
					unsigned long set, unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* Since Linux 6.11 the callback "remove" of a platform driver returns void. */
/* checkpatch: LINUX_VERSION_CODE - one source for all kernels */
/* checkpatch: CONSTANT_COMPARISON - KERNEL_VERSION() is the constant */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define flexmem_remove remove
#else
#define flexmem_remove remove_new
#endif

/*
 * Since Linux 6.17 vmf_insert_pfn_pmd() takes a plain frame number, and
 * system_unbound_wq has a new name. The kernel reports the first use of the old
 * name in its log.
 */
/* checkpatch: LINUX_VERSION_CODE - one source for all kernels */
/* checkpatch: CONSTANT_COMPARISON - KERNEL_VERSION() is the constant */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define flexmem_insert_pfn_pmd vmf_insert_pfn_pmd
#else
#include <linux/pfn_t.h>
#define flexmem_insert_pfn_pmd(vmf, pfn, write) \
	vmf_insert_pfn_pmd(vmf, __pfn_to_pfn_t(pfn, PFN_DEV), write)
#define system_dfl_wq system_unbound_wq
#endif

/*
 * Since Linux 7.0 sparse needs no help with refcount_dec_and_lock(), and this
 * macro is gone.
 */
/* checkpatch: MACRO_ARG_UNUSED - older kernels need the lock */
#ifndef __cond_lock
#define __cond_lock(lock, held) (held)
#endif

#endif /* _FLEXMEM_COMPAT_H */
