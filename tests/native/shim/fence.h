/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interrupts, wound/wait locks, and files without a node. The kernel's
 * dma-fence.c, dma-resv.c and sync_file.c, which are compiled unchanged, need
 * these.
 */
#ifndef _NATIVE_FENCE_H
#define _NATIVE_FENCE_H

/**
 * struct irq_work - work for an interrupt handler
 * @work: work of the worker that plays the interrupt
 * @func: called in atomic context, as in an interrupt
 */
struct irq_work {
	struct work_struct work;
	void (*func)(struct irq_work *work);
};

void init_irq_work(struct irq_work *work, void (*func)(struct irq_work *work));
bool irq_work_queue(struct irq_work *work);
#define irq_work_sync(irq_work) ((void)flush_work(&(irq_work)->work))

/* Reservation locks. No caller holds two of them, so there is no lock order. */
struct ww_class {
	int unused;
};

struct ww_acquire_ctx {
	int unused;
};

struct ww_mutex {
	struct mutex base;
	struct ww_acquire_ctx *ctx;
};

#define DEFINE_WD_CLASS(name) struct ww_class name
#define ww_mutex_init(lock, class) mutex_init(&(lock)->base)
#define ww_mutex_destroy(lock) mutex_destroy(&(lock)->base)
#define ww_mutex_lock(lock, ctx) ((void)(ctx), mutex_lock(&(lock)->base), 0)
#define ww_mutex_lock_interruptible(lock, ctx) \
	((void)(ctx), mutex_lock_killable(&(lock)->base))
#define ww_mutex_lock_slow(lock, ctx) ((void)ww_mutex_lock(lock, ctx))
#define ww_mutex_lock_slow_interruptible(lock, ctx) \
	ww_mutex_lock_interruptible(lock, ctx)
#define ww_mutex_trylock(lock, ctx) ((void)(ctx), mutex_trylock(&(lock)->base))
#define ww_mutex_is_locked(lock) mutex_is_locked(&(lock)->base)
#define ww_mutex_unlock(lock) mutex_unlock(&(lock)->base)

#define sort(array, n, size, compare, swap) qsort(array, n, size, compare)
#define kmalloc_size_roundup(size) (size)
#define rcu_replace_pointer(p, value, condition) ({ \
	typeof(p) __old = rcu_dereference_protected(p, condition); \
	rcu_assign_pointer(p, value); \
	__old; \
})
#define rcu_pointer_handoff(p) (p)
#define unrcu_pointer(p) (p)
#define krealloc_array(old, n, size, gfp) \
	((void)(n), shim_bug("no caller needs an array of fences"), (old))
#define atomic64_fetch_add(n, v) \
	__atomic_fetch_add(&(v)->counter, n, __ATOMIC_SEQ_CST)
#define atomic_read_acquire(v) __atomic_load_n(&(v)->counter, __ATOMIC_ACQUIRE)
#define __counted_by(member)

#define ktime_after(a, b) ((a) > (b))
#define ns_to_ktime(ns) ((ktime_t)(ns))
#define ktime_to_ns(time) ((s64)(time))
#define ktime_set(s, ns) ((ktime_t)((s) * 1000000000LL + (ns)))

#define TASK_NORMAL (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)
#define wake_up_state(task, state) wake_up_process(task)

/* ---- descriptors ---- */

#define O_CLOEXEC 02000000
struct file *anon_inode_getfile(const char *name,
				const struct file_operations *ops, void *data,
				int flags);
struct file *fget(unsigned int fd);
struct file *get_file(struct file *file);
void fput(struct file *file);
int get_unused_fd_flags(unsigned int flags);
void put_unused_fd(unsigned int fd);
void fd_install(unsigned int fd, struct file *file);

#include <linux/kref.h>
#include <linux/dma-fence.h>

#endif /* _NATIVE_FENCE_H */
