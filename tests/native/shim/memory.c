// SPDX-License-Identifier: GPL-2.0
/*
 * The shim's kernel memory, page frames and user memory. Each kernel object is
 * an allocation of the C library, so that ASan can check accesses.
 */
#include "internal.h"

#include <linux/xarray.h>

/* The number of live objects of all kinds. */
static long live;

/*
 * The number of live objects, after all queued work has run and freed its
 * objects.
 */
long native_live(void)
{
	native_settle_work();
	return __atomic_load_n(&live, RELAXED);
}

static void *take(size_t size)
{
	void *p = malloc(size ?: 1);

	if (!p)
		abort();
	__atomic_fetch_add(&live, 1, RELAXED);
	return p;
}

static void *alloc(size_t size, gfp_t gfp)
{
	void *p;

	if (gfpflags_allow_blocking(gfp))
		might_sleep();
	if (native_should_fail(NATIVE_ALLOC))
		return NULL;
	p = take(size);
	/*
	 * Memory that is not zeroed on request is filled with 0x5a, because the
	 * driver must not rely on its contents.
	 */
	memset(p, gfp & __GFP_ZERO ? 0 : 0x5a, size);
	return p;
}

static void release(void *p)
{
	__atomic_fetch_sub(&live, 1, RELAXED);
	free(p);
}

void *native_alloc(size_t size, gfp_t gfp)
{
	return alloc(size, gfp);
}

void native_free(const void *p)
{
	if (p)
		release((void *)p);
}

/* Not zeroed, so that a member that nobody sets is noticed. */
void *kmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	size_t bytes;

	if (check_mul_overflow(n, size, &bytes))
		return NULL;
	return alloc(bytes, gfp);
}

void *kcalloc(size_t n, size_t size, gfp_t gfp)
{
	return kmalloc_array(n, size, gfp | __GFP_ZERO);
}

char *kstrdup(const char *text, gfp_t gfp)
{
	char *copy = alloc(strlen(text) + 1, gfp);

	return copy ? strcpy(copy, text) : NULL;
}

/* kmem caches. An object must be freed into the cache that made it. */
struct kmem_cache {
	const char *name;
	size_t size;
	void (*construct)(void *object);
	long live;
};

struct kmem_cache *kmem_cache_create(const char *name, unsigned int size,
				     unsigned int align, unsigned int flags,
				     void (*construct)(void *object))
{
	struct kmem_cache *cache = kzalloc(sizeof(*cache), GFP_KERNEL);

	if (!cache)
		return NULL;
	cache->name = name;
	cache->size = size;
	cache->construct = construct;
	return cache;
}

void kmem_cache_destroy(struct kmem_cache *cache)
{
	if (!cache)
		return;
	if (__atomic_load_n(&cache->live, RELAXED))
		shim_bug("cache %s has %ld objects left", cache->name,
			 cache->live);
	kfree(cache);
}

void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t gfp)
{
	void *object = alloc(cache->size, gfp);

	if (!object)
		return NULL;
	__atomic_fetch_add(&cache->live, 1, RELAXED);
	if (cache->construct)
		cache->construct(object);
	return object;
}

void kmem_cache_free(struct kmem_cache *cache, void *object)
{
	if (!object)
		return;
	if (__atomic_fetch_sub(&cache->live, 1, RELAXED) <= 0)
		shim_bug("cache %s gets back what is not its own",
			 cache->name);
	release(object);
}

/* The parts of lib/radix-tree.c that lib/xarray.c needs. */
struct kmem_cache *radix_tree_node_cachep;
void radix_tree_node_rcu_free(struct rcu_head *head);

static void construct_node(void *object)
{
	struct xa_node *node = object;

	memset(node, 0, sizeof(*node));
	INIT_LIST_HEAD(&node->private_list);
}

void radix_tree_node_rcu_free(struct rcu_head *head)
{
	kmem_cache_free(radix_tree_node_cachep,
			container_of(head, struct xa_node, rcu_head));
}

static struct kmem_cache nodes = {
	.name = "xa_node",
	.size = sizeof(struct xa_node),
	.construct = construct_node,
};

static void __attribute__((constructor)) init_nodes(void)
{
	radix_tree_node_cachep = &nodes;
}

/*
 * Page frames. No frame number is reused, so an access after a free is noticed.
 * The array does not grow: TSan sees realloc(), but not raw_lock().
 */
static unsigned int pages_lock;
#define MOST_PAGES (1ul << 24)
static struct page *pages[MOST_PAGES];
static unsigned long nr_pages = 1;

/* Reserves @nr frame numbers; the first is a multiple of @nr. */
static unsigned long number_pages(unsigned long nr)
{
	unsigned long first = round_up(nr_pages, nr);

	nr_pages = first + nr;
	if (nr_pages > MOST_PAGES)
		abort();
	return first;
}

struct page *native_alloc_pages(gfp_t gfp, unsigned int order)
{
	struct page *page = alloc(sizeof(*page), gfp), *first = page;
	unsigned long pfn, nr = 1ul << order;

	if (!page)
		return NULL;
	raw_lock(&pages_lock);
	pfn = number_pages(nr);
	for (; nr; nr--) {
		page = page ?: take(sizeof(*page));
		page->data = calloc(1, PAGE_SIZE);
		if (!page->data)
			abort();
		page->pfn = pfn;
		pages[pfn++] = page;
		page = NULL;
	}
	raw_unlock(&pages_lock);
	return first;
}

void native_free_page(struct page *page)
{
	raw_lock(&pages_lock);
	pages[page->pfn] = NULL;
	raw_unlock(&pages_lock);
	free(page->data);
	release(page);
}

/* The page of a frame number, or NULL if the shim did not make it. */
struct page *native_pfn_to_page(unsigned long pfn)
{
	struct page *page;

	raw_lock(&pages_lock);
	page = pfn && pfn < nr_pages ? pages[pfn] : NULL;
	raw_unlock(&pages_lock);
	return page;
}

/* ---- user memory ---- */

#define PARTS 64UL

static u8 *window;
static unsigned int parts_lock;
static bool part_used[PARTS];

static void __attribute__((constructor)) reserve_window(void)
{
	window = os_reserve(PARTS * NATIVE_USER_SIZE);
}

void *native_user_part(void)
{
	unsigned int i;

	raw_lock(&parts_lock);
	for (i = 0; i < PARTS && part_used[i]; i++)
		;
	if (i == PARTS)
		shim_bug("too many tasks with user memory");
	part_used[i] = true;
	raw_unlock(&parts_lock);
	os_acquire(window);
	return window + i * NATIVE_USER_SIZE;
}

void native_user_part_free(void *part)
{
	if (!part)
		return;
	os_release(window);
	raw_lock(&parts_lock);
	part_used[((u8 *)part - window) / NATIVE_USER_SIZE] = false;
	raw_unlock(&parts_lock);
}

/*
 * How many bytes the user may access from @p on. All memory of the program
 * counts as user memory; ASan knows where an object ends.
 */
static unsigned long accessible(const void *p, unsigned long n)
{
	unsigned long offset = (uintptr_t)p - (uintptr_t)window;
	unsigned long end = NATIVE_USER_SIZE - PAGE_SIZE;

	if ((uintptr_t)p < SZ_64K || (uintptr_t)p >= 1UL << 47)
		return 0;
	if (offset >= PARTS * NATIVE_USER_SIZE)
		return current->wild ? 0 : n;
	offset %= NATIVE_USER_SIZE;
	return offset >= end ? 0 : min(n, end - offset);
}

/*
 * Calls the function that stands for another task, if it is due at this access
 * to user memory.
 */
static void let_happen(struct task_struct *task)
{
	void (*meanwhile)(void) = task->meanwhile;

	if (!meanwhile || --task->meanwhile_at)
		return;
	task->meanwhile = NULL;
	meanwhile();
}

/*
 * Checks that no lock is held, because a user can delay a page fault for ever.
 */
static unsigned long user_access(const void *p, unsigned long n)
{
	might_sleep();
	if (current->locks)
		shim_bug("user memory is touched with %d locks held",
			 current->locks);
	let_happen(current);
	/* An access to zero bytes succeeds at any address. */
	if (!n || native_should_fail(NATIVE_USER))
		return 0;
	return accessible(p, n);
}

unsigned long copy_from_user(void *to, const void __user *from, unsigned long n)
{
	unsigned long done = user_access(from, n);

	if (done)
		memcpy(to, from, done);
	/* Zeroes the bytes that were not copied, as the kernel does. */
	memset(to + done, 0, n - done);
	return n - done;
}

static bool is_read_only(const void *p)
{
	unsigned long offset = (uintptr_t)p - (uintptr_t)window;

	return offset < PARTS * NATIVE_USER_SIZE &&
	       offset % NATIVE_USER_SIZE / PAGE_SIZE ==
			NATIVE_USER_READ_ONLY / PAGE_SIZE;
}

unsigned long copy_to_user(void __user *to, const void *from, unsigned long n)
{
	unsigned long done = user_access(to, n);

	if (is_read_only(to))
		done = 0;
	if (done)
		memcpy(to, from, done);
	return n - done;
}

/*
 * Words are copied one by one until native_user_end(). All these copies count
 * as one access.
 */
bool native_user_begin(const void __user *p, unsigned long n)
{
	/* A batch that ends before its first entry writes no entries. */
	return !n || user_access(p, n);
}

bool native_user_word(const void __user *p, bool write)
{
	return accessible(p, sizeof(long)) == sizeof(long) &&
	       !(write && is_read_only(p));
}

unsigned long clear_user(void __user *to, unsigned long n)
{
	unsigned long done = user_access(to, n);

	if (done)
		memset(to, 0, done);
	return n - done;
}

int copy_struct_from_user(void *to, size_t ksize, const void __user *from,
			  size_t usize)
{
	size_t size = min(ksize, usize), i;
	u8 byte;

	for (i = size; i < usize; i += PAGE_SIZE - offset_in_page(from + i)) {
		if (get_user(byte, (const u8 __user *)from + i))
			return -EFAULT;
	}
	for (i = size; i < usize; i++)
		if (((const u8 *)from)[i])
			return -E2BIG;
	memset(to, 0, ksize);
	return copy_from_user(to, from, size) ? -EFAULT : 0;
}

/* ---- random numbers ---- */

static u64 random_seed = 1;

u64 get_random_u64(void)
{
	u64 z = __atomic_add_fetch(&random_seed, 0x9e3779b97f4a7c15ull, RELAXED);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

u32 get_random_u32(void)
{
	return get_random_u64() >> 32;
}

void get_random_bytes(void *to, size_t n)
{
	u8 *byte = to;

	while (n--)
		*byte++ = get_random_u32();
}
