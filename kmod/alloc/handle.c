// SPDX-License-Identifier: GPL-2.0
/*
 * The handles of one client.
 *
 * An entry holds the allocation that has its index. A free entry is a number:
 * the generation for the next handle of its index, and the next index in the
 * queue of free indexes. The lowest bit of this number is set, which tells it
 * from a pointer.
 *
 * A freed handle does not soon name another allocation: its index is reused
 * only after FLEXMEM_HANDLE_KEPT indexes are free, and then with another
 * generation.
 */

#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "alloc/allocation.h"
#include "alloc/handle.h"
#include "settings.h"

#define INDEX_MASK (BIT(FLEXMEM_HANDLE_INDEX_BITS) - 1)
#define GENERATION_MASK (INT_MAX & ~INDEX_MASK)

/*
 * Indexes do not run out: a new one is taken only while fewer than
 * FLEXMEM_HANDLE_KEPT are free.
 */
static_assert(FLEXMEM_MAX_HANDLES + FLEXMEM_HANDLE_KEPT < INDEX_MASK);

void flexmem_handles_init(struct flexmem_handles *handles)
{
	memset(handles, 0, sizeof(*handles));
	spin_lock_init(&handles->lock);
	handles->next = 1;
}

/*
 * Frees the memory of the entries. Afterwards no handle names an allocation,
 * and look-ups find nothing.
 */
void flexmem_handles_fini(struct flexmem_handles *handles)
{
	unsigned int i;

	spin_lock(&handles->lock);
	handles->next = 1;
	spin_unlock(&handles->lock);
	for (i = 0; i < ARRAY_SIZE(handles->segment); i++)
		kvfree(handles->segment[i]);
}

static unsigned int segment_of(u32 index)
{
	return fls(index >> FLEXMEM_HANDLE_FIRST_BITS);
}

static unsigned long *entry_of(const struct flexmem_handles *handles, u32 index)
{
	unsigned int i = segment_of(index);
	u32 first = i ? BIT(i + FLEXMEM_HANDLE_FIRST_BITS - 1) : 0;

	return handles->segment[i] + (index - first);
}

static struct flexmem_allocation *in_use(unsigned long entry)
{
	return entry & 1 ? NULL : (struct flexmem_allocation *)entry;
}

/*
 * Gives an allocation the next handle. Returns false if the index of that
 * handle lies in a segment that is not allocated yet.
 */
static bool give(struct flexmem_handles *handles,
		 struct flexmem_allocation *allocation)
{
	u32 index = handles->next, generation = 0;
	unsigned long *entry;

	if (handles->nr_free >= FLEXMEM_HANDLE_KEPT) {
		index = handles->oldest;
		entry = entry_of(handles, index);
		handles->oldest = *entry >> 1 & INDEX_MASK;
		generation = *entry >> 1 & GENERATION_MASK;
		handles->nr_free--;
	} else if (handles->segment[segment_of(index)]) {
		entry = entry_of(handles, index);
		handles->next++;
	} else {
		return false;
	}
	*entry = (unsigned long)allocation;
	allocation->handle = index | generation;
	return true;
}

/* Adds a segment. Drops the lock while it allocates. Returns 0 or -ENOMEM. */
static int add_segment(struct flexmem_handles *handles)
	__must_hold(&handles->lock)
{
	unsigned int i = segment_of(handles->next);
	size_t nr = BIT(FLEXMEM_HANDLE_FIRST_BITS + (i ? i - 1 : 0));
	unsigned long *segment;
	int rc = 0;

	spin_unlock(&handles->lock);
	segment = kvmalloc_array(nr, sizeof(*segment), GFP_KERNEL_ACCOUNT);
	spin_lock(&handles->lock);
	if (!segment)
		rc = -ENOMEM;
	else if (!handles->segment[i])
		swap(handles->segment[i], segment);
	if (segment) {
		/* Another thread has added the segment in the meantime. */
		spin_unlock(&handles->lock);
		kvfree(segment);
		spin_lock(&handles->lock);
	}
	return rc;
}

/*
 * Gives an allocation a handle. Context: under the lock of the handles, which this
 * drops while it allocates memory: may sleep. Return: 0 or -ENOMEM.
 */
int flexmem_handles_add(struct flexmem_handles *handles,
			struct flexmem_allocation *allocation)
	__must_hold(&handles->lock)
{
	int rc = 0;

	lockdep_assert_held(&handles->lock);
	while (!rc && !give(handles, allocation))
		rc = add_segment(handles);
	return rc;
}

/* Frees the handle of an allocation. Under the lock of the handles. */
void flexmem_handles_remove(struct flexmem_handles *handles, u32 handle)
{
	u32 index = handle & INDEX_MASK;
	u32 generation = (handle | INDEX_MASK) + 1;

	*entry_of(handles, index) = (unsigned long)generation << 1 | 1;
	if (handles->nr_free++)
		*entry_of(handles, handles->newest) |=
			(unsigned long)index << 1;
	else
		handles->oldest = index;
	handles->newest = index;
}

/* The allocation that has a handle, or NULL. Under the lock of the handles. */
struct flexmem_allocation *
flexmem_handles_find(const struct flexmem_handles *handles, u32 handle)
{
	struct flexmem_allocation *allocation;
	u32 index = handle & INDEX_MASK;

	if (!index || index >= handles->next)
		return NULL;
	index = array_index_nospec(index, handles->next);
	allocation = in_use(*entry_of(handles, index));
	return allocation && allocation->handle == handle ? allocation : NULL;
}

/*
 * Iterates over all allocations. @index: 0 before the first call; advanced by
 * each call. Under the lock of the handles, or when no other task uses them.
 * Return: the allocation, or NULL after the last one.
 */
struct flexmem_allocation *
flexmem_handles_next(const struct flexmem_handles *handles, u32 *index)
{
	struct flexmem_allocation *allocation = NULL;

	while (!allocation && ++*index < handles->next)
		allocation = in_use(*entry_of(handles, *index));
	return allocation;
}
