/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types, attributes, BUG(), messages, and the parts of the C library in use.
 */
#ifndef _NATIVE_BASE_H
#define _NATIVE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <ctype.h>
#include <sys/types.h>
#undef SIZE_MAX
#undef UINTPTR_MAX
#include <asm/errno.h>
#include <asm/ioctl.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u64 __aligned_u64 __attribute__((aligned(8)));
typedef unsigned short umode_t;
typedef unsigned int gfp_t;
typedef unsigned int fmode_t;
typedef unsigned int __poll_t;
typedef unsigned int vm_fault_t;
typedef s64 ktime_t;

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
};

#define callback_head rcu_head

#define __user
#define __iomem
#define __rcu
#define __force
#define __init
#define __exit
#define __ro_after_init
#define __percpu
/* The shim has one CPU. Tasks change its variables at the same time. */
#define DEFINE_PER_CPU(type, name) type name
#define per_cpu(name, cpu) ((void)(cpu), __atomic_load_n(&(name), __ATOMIC_RELAXED))
#define this_cpu_add(name, n) ((void)__atomic_fetch_add(&(name), n, __ATOMIC_RELAXED))
#define this_cpu_sub(name, n) ((void)__atomic_fetch_sub(&(name), n, __ATOMIC_RELAXED))
#define this_cpu_inc(name) this_cpu_add(name, 1)
#define this_cpu_dec(name) this_cpu_sub(name, 1)
#define __bitwise
#define __private
#define __must_check __attribute__((warn_unused_result))
#define __printf(a, b) __attribute__((format(printf, a, b)))
#define __maybe_unused __attribute__((unused))
#define __always_unused __attribute__((unused))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __cold
#define __packed __attribute__((packed))
#define __aligned(n) __attribute__((aligned(n)))
#undef __attribute_const__
#define __attribute_const__ __attribute__((const))
#define __malloc
#define __pure __attribute__((pure))
#define __flatten
#undef __noreturn
#define __noreturn __attribute__((noreturn))
#define noinline __attribute__((noinline))
#define noinline_for_stack
#define fallthrough __attribute__((fallthrough))
#define asmlinkage
#define ____cacheline_aligned_in_smp __aligned(64)
#define __acquires(x)
#define __releases(x)
#define __must_hold(x)
#define __cond_lock(x, c) (c)
#define __acquire(x) ((void)0)
#define __release(x) ((void)0)
#define __compiletime_warning(x)
#define __compiletime_error(x)
#define __no_kcsan
#define notrace

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" : : : "memory")
#define __same_type(a, b) __builtin_types_compatible_p(typeof(a), typeof(b))
#define __must_be_array(a) BUILD_BUG_ON_ZERO(__same_type((a), &(a)[0]))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]) + __must_be_array(a))
#define __is_constexpr(x) \
	(sizeof(int) == sizeof(*(8 ? ((void *)((long)(x) * 0l)) : (int *)8)))
#define is_signed_type(type) (((type)(-1)) < (__force type)1)
#define is_unsigned_type(type) (!is_signed_type(type))
#define ___PASTE(a, b) a##b
#define __PASTE(a, b) ___PASTE(a, b)
#define __UNIQUE_ID(prefix) __PASTE(__PASTE(__UNIQUE_ID_, prefix), __COUNTER__)
#define statically_true(x) (__builtin_constant_p(x) && (x))
#define sizeof_field(type, member) sizeof((((type *)0)->member))
#define offsetofend(type, member) \
	(offsetof(type, member) + sizeof_field(type, member))
/*
 * clang does not regard the conditions of min() as constants. gcc does, and
 * checks them.
 */
#ifdef __clang__
#define compiletime_assert(condition, text) ((void)sizeof(condition))
#else
#define compiletime_assert(condition, text) _Static_assert(condition, text)
#endif
#define CONCATENATE(a, b) __PASTE(a, b)
#define __stringify_1(x...) #x
#define __stringify(x...) __stringify_1(x)
#define lower_32_bits(n) ((u32)(n))
#define upper_32_bits(n) ((u32)((u64)(n) >> 32))
#define swap(a, b) \
	do { typeof(a) __tmp = (a); (a) = (b); (b) = __tmp; } while (0)
#define DEFINE_FREE(args...)
#define small_const_nbits(n) \
	(__builtin_constant_p(n) && (n) <= BITS_PER_LONG && (n) > 0)

/* The configuration: 64 bits, kernel 6.12, KUnit. */
#define BITS_PER_LONG 64
#define BITS_PER_LONG_LONG 64
#define __BITS_PER_LONG 64
#define BITS_PER_BYTE 8
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)
#define CONFIG_64BIT 1
#define CONFIG_SMP 1
#define CONFIG_KUNIT 1
#define CONFIG_XARRAY_MULTI 1
#define CONFIG_BASE_SMALL 0

#ifndef ENOTSUPP
#define ERESTARTSYS 512
#define ENOTSUPP 524
#endif

/* Reports of faults: those of the shim, and WARN_ON() and BUG_ON(). */
__noreturn void native_bug(const char *file, int line, const char *format, ...)
	__printf(3, 4);
#define shim_bug(format...) native_bug(__FILE__, __LINE__, format)

#define WARN(condition, format...) ({ \
	bool __warn = !!(condition); \
	if (unlikely(__warn)) \
		native_bug(__FILE__, __LINE__, "WARNING: " format); \
	__warn; \
})
#define WARN_ON(condition) WARN(condition, "%s", #condition)
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define WARN_ONCE(condition, format...) WARN(condition, format)
#define BUG_ON(condition) ((void)WARN_ON(condition))
#define BUG() native_bug(__FILE__, __LINE__, "BUG")
#define VM_WARN_ON(condition) WARN_ON(condition)

/* Printed only if NATIVE_VERBOSE is set. */
int _printk(const char *format, ...) __printf(1, 2);
#ifndef KBUILD_MODNAME
#define KBUILD_MODNAME "flexmem"
#endif
#define printk(format...) _printk(format)
#define pr_err(format, args...) _printk(pr_fmt(format), ##args)
#define pr_warn pr_err
#define pr_info pr_err
#define pr_debug pr_err

struct device;
unsigned int native_messages(const char *text);
void native_dev_message(const struct device *dev, const char *format, ...)
	__printf(2, 3);
#define dev_err native_dev_message
#define dev_warn native_dev_message
#define dev_info native_dev_message
#define dev_dbg native_dev_message
#define dev_err_ratelimited native_dev_message

/* ---- text ---- */

ssize_t strscpy(char *to, const char *from, size_t size);
int scnprintf(char *to, size_t size, const char *format, ...) __printf(3, 4);
int vscnprintf(char *to, size_t size, const char *format, va_list args);
bool sysfs_streq(const char *a, const char *b);
int __sysfs_match_string(const char *const *array, size_t n, const char *text);
#define sysfs_match_string(array, text) \
	__sysfs_match_string(array, ARRAY_SIZE(array), text)
int kstrtouint(const char *text, unsigned int base, unsigned int *value);
int kstrtou64(const char *text, unsigned int base, u64 *value);
int sysfs_emit(char *to, const char *format, ...) __printf(2, 3);
int sysfs_emit_at(char *to, int at, const char *format, ...) __printf(3, 4);
void *memchr_inv(const void *start, int c, size_t bytes);
void memset64(u64 *to, u64 value, size_t n);
#define memset_after(object, value, member) \
	memset((char *)(object) + offsetofend(typeof(*(object)), member), value, \
	       sizeof(*(object)) - offsetofend(typeof(*(object)), member))
char *strsep(char **rest, const char *delimiters);

#define EXPORT_SYMBOL(symbol)
#define EXPORT_SYMBOL_GPL(symbol)
#define EXPORT_SYMBOL_NS(symbol, space)
#define EXPORT_PER_CPU_SYMBOL(symbol)

struct module;
#define THIS_MODULE ((struct module *)NULL)
#define __module_get(module) ((void)(module))
#define module_put(module) ((void)(module))
#define MODULE_LICENSE(text)
#define MODULE_VERSION(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_AUTHOR(text)
#define MODULE_IMPORT_NS(space)
#define MODULE_PARM_DESC(name, text)
#define module_init(function) \
	int native_module_init(void) { return function(); }
#define module_exit(function) \
	void native_module_exit(void) { function(); }
int native_module_init(void);
void native_module_exit(void);

struct kernel_param_ops;

/**
 * struct kernel_param - a parameter of the module
 * @name: name of the parameter
 * @ops: functions that set and show it
 * @arg: argument of these functions
 * @next: the next parameter
 */
struct kernel_param {
	const char *name;
	const struct kernel_param_ops *ops;
	void *arg;
	struct kernel_param *next;
};

struct kernel_param_ops {
	int (*set)(const char *text, const struct kernel_param *kp);
	int (*get)(char *buffer, const struct kernel_param *kp);
};

extern const struct kernel_param_ops native_param_uint;
#define param_ops_uint native_param_uint

void native_param_add(struct kernel_param *kp);
int native_param_set(const char *name, const char *text);
int native_param_get(const char *name, char *buffer);

#define module_param_cb(param, operations, argument, mode) \
	static struct kernel_param __PASTE(native_kp_, param) = { \
		.name = #param, \
		.ops = operations, \
		.arg = argument, \
	}; \
	static void __attribute__((constructor)) \
	__PASTE(native_add_, param)(void) \
	{ \
		native_param_add(&__PASTE(native_kp_, param)); \
	}
#define module_param(variable, type, mode) \
	module_param_cb(variable, &__PASTE(native_param_, type), &variable, mode)

#include <linux/kconfig.h>

#endif /* _NATIVE_BASE_H */
