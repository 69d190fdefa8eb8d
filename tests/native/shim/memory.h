/* SPDX-License-Identifier: GPL-2.0 */
/* Kernel memory, page frames, and the memory of users. */
#ifndef _NATIVE_MEMORY_H
#define _NATIVE_MEMORY_H

#define GFP_KERNEL 0x1u
#define GFP_ATOMIC 0x2u
#define GFP_NOWAIT 0x4u
#define __GFP_ZERO 0x8u
#define __GFP_ACCOUNT 0x10u
#define __GFP_NOWARN 0x20u
#define __GFP_NORETRY 0u
#define __GFP_BITS_SHIFT 8
#define GFP_KERNEL_ACCOUNT (GFP_KERNEL | __GFP_ACCOUNT)
#define gfpflags_allow_blocking(gfp) ((gfp) & GFP_KERNEL)

#define might_alloc(gfp) \
	(gfpflags_allow_blocking(gfp) ? might_sleep() : (void)0)

void *native_alloc(size_t size, gfp_t gfp);
void native_free(const void *p);
long native_live(void);

#define kmalloc(size, gfp) native_alloc(size, gfp)
#define kzalloc(size, gfp) native_alloc(size, (gfp) | __GFP_ZERO)
#define kvmalloc kmalloc
#define kvzalloc kzalloc
#define vzalloc(size) kzalloc(size, GFP_KERNEL)
#define kfree(p) native_free(p)
#define kvfree(p) native_free(p)
#define vfree(p) native_free(p)
void *kmalloc_array(size_t n, size_t size, gfp_t gfp);
void *kcalloc(size_t n, size_t size, gfp_t gfp);
#define kvcalloc kcalloc
#define kvmalloc_array kmalloc_array
#define kmalloc_array_node(n, size, gfp, node) kmalloc_array(n, size, gfp)
char *kstrdup(const char *text, gfp_t gfp);

struct kmem_cache;
#define SLAB_ACCOUNT 0
#define SLAB_HWCACHE_ALIGN 0
#define SLAB_RECLAIM_ACCOUNT 0
#define SLAB_PANIC 0
struct kmem_cache *kmem_cache_create(const char *name, unsigned int size,
				     unsigned int align, unsigned int flags,
				     void (*construct)(void *object));
void kmem_cache_destroy(struct kmem_cache *cache);
void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t gfp);
#define kmem_cache_zalloc(cache, gfp) kmem_cache_alloc(cache, (gfp) | __GFP_ZERO)
#define kmem_cache_alloc_lru(cache, lru, gfp) \
	((void)(lru), kmem_cache_alloc(cache, gfp))
void kmem_cache_free(struct kmem_cache *cache, void *object);
struct list_lru;

struct shrink_control {
	unsigned long nr_to_scan;
};

#define SHRINK_STOP (~0UL)
struct shrinker {
	unsigned long (*count_objects)(struct shrinker *shrinker,
				       struct shrink_control *control);
	unsigned long (*scan_objects)(struct shrinker *shrinker,
				      struct shrink_control *control);
};

#define shrinker_alloc(flags, name) \
	((struct shrinker *)kzalloc(sizeof(struct shrinker), GFP_KERNEL))
#define shrinker_register(shrinker) ((void)(shrinker)->scan_objects)
#define shrinker_free(shrinker) kfree(shrinker)

#define PAGE_SHIFT 12
#define PAGE_SIZE (1UL << PAGE_SHIFT)
#define offset_in_page(p) ((unsigned long)(p) & (PAGE_SIZE - 1))

/**
 * struct page - a page frame
 * @pfn: its number
 * @data: its bytes, or NULL
 */
struct page {
	unsigned long pfn;
	u8 *data;
};

struct page *native_alloc_pages(gfp_t gfp, unsigned int order);
void native_free_page(struct page *page);
struct page *native_pfn_to_page(unsigned long pfn);
#define alloc_page(gfp) native_alloc_pages(gfp, 0)
/* @size is a power of two. */
#define get_order(size) (__builtin_ctzll(size) - PAGE_SHIFT)
#define alloc_pages(gfp, order) native_alloc_pages(gfp, order)
/* The shim makes pages one by one, so there is nothing to split. */
#define split_page(page, order) ((void)(page), (void)(order))
#define __free_page(page) native_free_page(page)
#define pfn_to_page(pfn) native_pfn_to_page(pfn)
#define page_to_pfn(page) ((page)->pfn)
#define page_address(page) ((void *)(page)->data)

/*
 * User memory: all memory of the program. Each task also has a part of a
 * window. Users cannot access the last page of the part, so an access beyond
 * the page before faults. The third page from the end is read-only for users.
 */
#define NATIVE_USER_SIZE (1UL << 20)
#define NATIVE_USER_READ_ONLY (NATIVE_USER_SIZE - 3 * PAGE_SIZE)
void *native_user(void);
unsigned long copy_from_user(void *to, const void __user *from,
			     unsigned long n);
unsigned long copy_to_user(void __user *to, const void *from, unsigned long n);
unsigned long clear_user(void __user *to, unsigned long n);
int copy_struct_from_user(void *to, size_t ksize, const void __user *from,
			  size_t usize);
#define u64_to_user_ptr(n) ((void __user *)(uintptr_t)(n))
bool native_user_begin(const void __user *p, unsigned long n);
bool native_user_word(const void __user *p, bool write);
/* The kernel injects failures here. native_user_begin() does that instead. */
#define should_fail_usercopy() false
#define user_read_access_begin(p, n) native_user_begin((p), (n))
#define user_write_access_begin(p, n) native_user_begin((p), (n))
#define user_read_access_end() ((void)0)
#define user_write_access_end() ((void)0)
#define unsafe_get_user(x, p, fault) do { \
	if (!native_user_word((p), false)) \
		goto fault; \
	(x) = *(p); \
} while (0)
#define unsafe_put_user(x, p, fault) do { \
	if (!native_user_word((p), true)) \
		goto fault; \
	*(p) = (x); \
} while (0)
#define get_user(x, p) (copy_from_user(&(x), (p), sizeof(*(p))) ? -EFAULT : 0)
#define put_user(x, p) ({ \
	typeof(*(p)) __value = (x); \
	copy_to_user((p), &__value, sizeof(*(p))) ? -EFAULT : 0; \
})

/* Random numbers from a seed. */
u32 get_random_u32(void);
u64 get_random_u64(void);
void get_random_bytes(void *to, size_t n);
#include <linux/prandom.h>
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define per_cpu_ptr(p, cpu) ((void)(cpu), (p))
#define put_unaligned(value, p) ({ \
	typeof(*(p)) __put = (value); \
	memcpy((p), &__put, sizeof(__put)); \
})

#endif /* _NATIVE_MEMORY_H */
