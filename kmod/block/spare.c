// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory for allocations and blocks. A client keeps up to
 * FLEXMEM_STOCK_MOST freed objects of each kind for its next allocations. The
 * slab charges each object to a memory cgroup, which would be a large part of
 * the cost of ALLOC. A shrinker frees kept objects when the kernel is short of
 * memory.
 */

#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "alloc/allocation.h"
#include "block/spare.h"
#include "compat.h"

static struct kmem_cache *cache[FLEXMEM_NR_OBJECTS];
static struct shrinker *stock_shrinker;

/*
 * The stocks that have kept an object since the shrinker last emptied them, under
 * stocks_lock, which is taken before the lock of a stock. The shrinker holds them
 * for one stock at a time, and frees its objects afterwards.
 */
static LIST_HEAD(stocks);
static DEFINE_SPINLOCK(stocks_lock);

/* Number of objects in all stocks, as a sum over the CPUs. */
static DEFINE_PER_CPU(long, nr_kept);

#ifdef FLEXMEM_DEBUG
unsigned int flexmem_stock_most;
#else
#define flexmem_stock_most FLEXMEM_STOCK_MOST
#endif

/* Takes all objects out of a stock. Returns a list of them. */
static void *take_all(struct flexmem_stock *stock, enum flexmem_object kind)
{
	void *first;

	spin_lock(&stock->lock);
	first = stock->kept[kind].first;
	this_cpu_sub(nr_kept, stock->kept[kind].nr);
	stock->kept[kind].first = NULL;
	stock->kept[kind].nr = 0;
	spin_unlock(&stock->lock);
	return first;
}

/* Frees a list of objects. Returns their number. */
static unsigned long free_all(void *object, enum flexmem_object kind)
{
	unsigned long nr = 0;
	void *next;

	for (; object; object = next, nr++) {
		next = *(void **)object;
		kmem_cache_free(cache[kind], object);
	}
	return nr;
}

/* Number of objects in all stocks. O(CPUs). */
unsigned long flexmem_stock_count(void)
{
	unsigned int cpu;
	long nr = 0;

	for_each_possible_cpu(cpu)
		nr += per_cpu(nr_kept, cpu);
	/* The CPUs change their numbers in the meantime. */
	return nr > 0 ? nr : 0;
}

/*
 * Frees kept objects.
 * @wanted: how many objects to free. Whole stocks are emptied until that number
 * is reached.
 * Return: number of objects freed.
 */
unsigned long flexmem_stock_shrink(unsigned long wanted)
{
	void *first[FLEXMEM_NR_OBJECTS];
	struct flexmem_stock *stock;
	enum flexmem_object kind;
	unsigned long nr = 0;

	while (nr < wanted) {
		spin_lock(&stocks_lock);
		stock = list_first_entry_or_null(&stocks, struct flexmem_stock,
						 link);
		if (!stock) {
			spin_unlock(&stocks_lock);
			break;
		}
		list_del_init(&stock->link);
		WRITE_ONCE(stock->is_listed, false);
		for (kind = 0; kind < FLEXMEM_NR_OBJECTS; kind++)
			first[kind] = take_all(stock, kind);
		spin_unlock(&stocks_lock);
		for (kind = 0; kind < FLEXMEM_NR_OBJECTS; kind++)
			nr += free_all(first[kind], kind);
		cond_resched();
	}
	return nr;
}

static unsigned long count_objects(struct shrinker *shrinker,
				   struct shrink_control *control)
{
	return flexmem_stock_count();
}

static unsigned long scan_objects(struct shrinker *shrinker,
				  struct shrink_control *control)
{
	return flexmem_stock_shrink(control->nr_to_scan) ?: SHRINK_STOP;
}

int flexmem_spare_init(void)
{
	cache[FLEXMEM_OBJECT_ALLOCATION] =
		kmem_cache_create("flexmem_allocation",
				  sizeof(struct flexmem_allocation) +
				  sizeof(struct flexmem_block *), 0,
				  SLAB_ACCOUNT, NULL);
	cache[FLEXMEM_OBJECT_BLOCK] =
		kmem_cache_create("flexmem_block",
				  sizeof(struct flexmem_block), 0,
				  SLAB_ACCOUNT, NULL);
	stock_shrinker = flexmem_make_shrinker();
	if (!cache[FLEXMEM_OBJECT_ALLOCATION] || !cache[FLEXMEM_OBJECT_BLOCK] ||
	    !stock_shrinker)
		goto exit;
	stock_shrinker->count_objects = count_objects;
	stock_shrinker->scan_objects = scan_objects;
	if (!flexmem_register_shrinker(stock_shrinker))
		return 0;
exit:
	flexmem_spare_exit();
	return -ENOMEM;
}

void flexmem_spare_exit(void)
{
	flexmem_free_shrinker(stock_shrinker);
	/*
	 * kfree_rcu() may not have freed all regions yet, but such a region
	 * holds no block.
	 */
	kmem_cache_destroy(cache[FLEXMEM_OBJECT_BLOCK]);
	kmem_cache_destroy(cache[FLEXMEM_OBJECT_ALLOCATION]);
}

void flexmem_stock_init(struct flexmem_stock *stock)
{
	*stock = (struct flexmem_stock) {};
	spin_lock_init(&stock->lock);
	INIT_LIST_HEAD(&stock->link);
}

/* Lets the shrinker find a stock. */
static noinline void list_stock(struct flexmem_stock *stock)
{
	spin_lock(&stocks_lock);
	if (!stock->is_listed)
		list_add(&stock->link, &stocks);
	WRITE_ONCE(stock->is_listed, true);
	spin_unlock(&stocks_lock);
}

void flexmem_stock_fini(struct flexmem_stock *stock)
{
	enum flexmem_object kind;

	spin_lock(&stocks_lock);
	list_del(&stock->link);
	spin_unlock(&stocks_lock);
	for (kind = 0; kind < FLEXMEM_NR_OBJECTS; kind++)
		free_all(take_all(stock, kind), kind);
}

/*
 * Gets an object, not initialised: from @stock, if that is not NULL and has
 * one. May sleep. Return: the object, or NULL.
 */
void *flexmem_stock_take(struct flexmem_stock *stock, enum flexmem_object kind)
{
	void *object = NULL;

	if (stock) {
		spin_lock(&stock->lock);
		object = stock->kept[kind].first;
		if (object) {
			stock->kept[kind].first = *(void **)object;
			stock->kept[kind].nr--;
			this_cpu_dec(nr_kept);
		}
		spin_unlock(&stock->lock);
	}
	return object ?: kmem_cache_alloc(cache[kind], GFP_KERNEL);
}

/* Frees an object, or keeps it in @stock, which may be NULL. */
void flexmem_stock_give(struct flexmem_stock *stock, enum flexmem_object kind,
			void *object)
{
	if (stock) {
		spin_lock(&stock->lock);
		if (stock->kept[kind].nr < flexmem_stock_most) {
			*(void **)object = stock->kept[kind].first;
			stock->kept[kind].first = object;
			stock->kept[kind].nr++;
			this_cpu_inc(nr_kept);
			object = NULL;
		}
		spin_unlock(&stock->lock);
		if (unlikely(!READ_ONCE(stock->is_listed)))
			list_stock(stock);
	}
	if (object)
		kmem_cache_free(cache[kind], object);
}

/*
 * Gets @nr nodes for an allocation, before any lock is taken; see
 * flexmem_spares_for(). Takes them from @stock first, unless @stock is NULL.
 * flexmem_spare_drop() frees those that were not used. May sleep. Return: 0 or
 * -ENOMEM; then there is nothing to drop.
 */
int flexmem_spare_fill(struct flexmem_spare *spare, unsigned int nr,
		       struct flexmem_stock *stock)
{
	unsigned int i;

	*spare = (struct flexmem_spare) {};
	for (i = 0; i < nr; i++) {
		spare->block[i] = flexmem_stock_take(stock,
						     FLEXMEM_OBJECT_BLOCK);
		if (!spare->block[i]) {
			flexmem_spare_drop(spare, stock);
			return -ENOMEM;
		}
	}
	return 0;
}

/*
 * Frees the nodes that were not used, if any, or keeps them in @stock, which
 * may be NULL.
 */
void flexmem_spare_drop(struct flexmem_spare *spare,
			struct flexmem_stock *stock)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spare->block); i++)
		if (spare->block[i])
			flexmem_stock_give(stock, FLEXMEM_OBJECT_BLOCK,
					   spare->block[i]);
}
