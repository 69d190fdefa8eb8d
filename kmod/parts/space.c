// SPDX-License-Identifier: GPL-2.0
/*
 * Device-virtual address spaces.
 *
 * A client has one space, from its first VA_RESERVE on. Ranges of addresses are
 * reserved like blocks of a region. Each binding of bytes to reserved addresses
 * holds a reference to its allocation. So memory that is freed while it is bound
 * becomes leaving, as mapped memory does.
 *
 * The worker carries out VA_BIND and VA_UNBIND (job.c). While its job runs,
 * look-ups do not find the binding, but its addresses and its bytes are taken.
 * The same holds afterwards if it is not known whether the bytes are mapped.
 * VA_UNBIND or close() ends such a binding like any other.
 */

#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "alloc/allocation.h"
#include "block/spare.h"
#include "parts/space.h"
#include "region/table.h"

static_assert(FLEXMEM_VA_READ == (int)FLEXMEM_VM_READ);
static_assert(FLEXMEM_VA_WRITE == (int)FLEXMEM_VM_WRITE);
static_assert(FLEXMEM_VA_EXECUTE == (int)FLEXMEM_VM_EXECUTE);

#define ALL_ACCESS (FLEXMEM_VA_READ | FLEXMEM_VA_WRITE | FLEXMEM_VA_EXECUTE)

/* The number of the last space. No number is used again. */
static atomic64_t last_space;

static struct flexmem_function *function_of(struct flexmem_space *space)
{
	return &space->table->function;
}

static struct flexmem_block *to_range(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_block, node);
}

static bool range_less(struct rb_node *a, const struct rb_node *b)
{
	return to_range(a)->start < to_range(b)->start;
}

/* The range with the highest address that is not above @start, or NULL. */
static struct flexmem_block *find_range(const struct flexmem_space *space,
					u64 start)
{
	struct rb_node *node = space->ranges.rb_node;
	struct flexmem_block *found = NULL;

	lockdep_assert_held(&space->lock);
	while (node) {
		if (start < to_range(node)->start) {
			node = node->rb_left;
		} else {
			found = to_range(node);
			node = node->rb_right;
		}
	}
	return found;
}

static struct flexmem_span *to_span(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_span, node);
}

static bool is_before(const void *of, u64 at, const struct flexmem_span *span)
{
	return of != span->of ? of < span->of : at < span->start;
}

static bool span_less(struct rb_node *a, const struct rb_node *b)
{
	return is_before(to_span(a)->of, to_span(a)->start, to_span(b));
}

/* A span that overlaps the @size bytes from @start on, or NULL. */
static struct flexmem_span *find_span(const struct rb_root *root,
				      const void *of, u64 start, u64 size)
{
	struct rb_node *node = root->rb_node;
	struct flexmem_span *found = NULL;

	while (node) {
		if (is_before(of, start + size - 1, to_span(node))) {
			node = node->rb_left;
		} else {
			found = to_span(node);
			node = node->rb_right;
		}
	}
	return found && found->of == of && found->start + found->size > start ?
		found : NULL;
}

static struct flexmem_binding *
find_address(const struct flexmem_space *space, u64 start, u64 size)
{
	struct flexmem_span *span = find_span(&space->by_address, space, start,
					      size);

	lockdep_assert_held(&space->lock);
	return span ? container_of(span, struct flexmem_binding, addresses) :
		      NULL;
}

static struct flexmem_binding *
find_bytes(const struct flexmem_space *space,
	   const struct flexmem_allocation *allocation, u64 start, u64 size)
{
	struct flexmem_span *span = find_span(&space->by_bytes, allocation,
					      start, size);

	lockdep_assert_held(&space->lock);
	return span ? container_of(span, struct flexmem_binding, bytes) : NULL;
}

/* Whether a client may have no further ranges and bindings. */
static bool is_full(const struct flexmem_space *space)
{
	lockdep_assert_held(&space->lock);
	return space->blocks.nr_used + space->nr_bindings >=
	       FLEXMEM_MAX_HANDLES;
}

static void free_binding(struct flexmem_binding *binding)
{
	flexmem_allocation_put(binding->allocation);
	kfree(binding);
}

static void close_space(struct work_struct *work)
{
	struct flexmem_space *space =
		container_of(work, struct flexmem_space, closing);
	struct flexmem_table *table = space->table;
	bool unmapped;

	mutex_lock(&table->acquire_lock);
	unmapped = flexmem_function_vm_close(&table->function, &space->vm);
	mutex_unlock(&table->acquire_lock);
	if (unmapped)
		flexmem_space_put(space);
}

/* Runs when nothing is mapped any more in a closed space. */
static void free_space(struct work_struct *work)
{
	flexmem_space_put(container_of(work, struct flexmem_space,
				       vm.unmapped));
}

/* Makes an empty space on a function with page tables, or NULL. May sleep. */
struct flexmem_space *flexmem_space_open(struct flexmem_table *table)
{
	const struct flexmem_function *function = &table->function;
	struct flexmem_spare first;
	struct flexmem_space *space;

	space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	if (!space)
		return NULL;
	if (flexmem_spare_fill(&first, 1, NULL)) {
		kfree(space);
		return NULL;
	}
	refcount_set(&space->refs, 1);
	space->table = table;
	INIT_LIST_HEAD(&space->vm.link);
	space->vm.space = atomic64_inc_return(&last_space);
	INIT_WORK(&space->vm.unmapped, free_space);
	INIT_WORK(&space->closing, close_space);
	spin_lock_init(&space->lock);
	flexmem_blocks_init(&space->blocks, function->vm_end - function->vm_start,
			    FLEXMEM_FIT_FIRST, first.block[0]);
	return space;
}

/* Puts a reference to a space, which this may free. May sleep. */
void flexmem_space_put(struct flexmem_space *space)
{
	struct flexmem_binding *binding, *next_binding;
	struct flexmem_block *block, *next_block;

	if (!refcount_dec_and_test(&space->refs))
		return;
	rbtree_postorder_for_each_entry_safe(binding, next_binding,
					     &space->by_address,
					     addresses.node) {
		free_binding(binding);
		cond_resched();
	}
	list_for_each_entry_safe(block, next_block, &space->blocks.all, link) {
		struct flexmem_spare unused = { .block = { block } };

		flexmem_spare_drop(&unused, NULL);
		cond_resched();
	}
	kfree(space);
}

/*
 * Ends a space that no caller uses any more. Unmaps everything and gives the
 * memory back before this returns, if the device can take the command. Otherwise
 * the memory waits for the device. Programs that still run in the space fault.
 * Context: may sleep; holds no lock that a job takes.
 */
void flexmem_space_close(struct flexmem_space *space)
{
	bool is_empty;

	spin_lock(&space->lock);
	is_empty = !space->nr_bindings;
	spin_unlock(&space->lock);
	if (!is_empty) {
		/* @closing is queued behind the jobs of killed callers. */
		refcount_inc(&space->refs);
		queue_work(function_of(space)->worker, &space->closing);
		flush_work(&space->closing);
	}
	flexmem_space_put(space);
}

static int take_addresses(struct flexmem_space *space, u64 size,
			  struct flexmem_spare *spare,
			  struct flexmem_va_reserve *cmd)
{
	struct flexmem_block *range;
	struct flexmem_found found = {};

	lockdep_assert_held(&space->lock);
	if (is_full(space))
		return -EMFILE;
	if (!flexmem_blocks_find(&space->blocks, size, FLEXMEM_ALIGN, false,
				 &found))
		return -ENOSPC;
	range = flexmem_blocks_take(&space->blocks, &found, size, spare);
	rb_add(&range->node, &space->ranges, range_less);
	cmd->out_address = function_of(space)->vm_start + range->start;
	return 0;
}

/*
 * Reserves addresses. @cmd receives the results, even on failure. May sleep.
 * Return: 0, or an errno that the ABI header lists.
 */
int flexmem_space_reserve(struct flexmem_space *space,
			  struct flexmem_va_reserve *cmd)
{
	struct flexmem_spare spare;
	u64 size;
	int rc;

	if (!cmd->length)
		return -EINVAL;
	/* A length that cannot be rounded up is longer than any space. */
	size = cmd->length > space->blocks.total ?
		U64_MAX : ALIGN(cmd->length, function_of(space)->vm_page);
	if (flexmem_spare_fill(&spare, 1, NULL))
		return -ENOMEM;
	spin_lock(&space->lock);
	rc = take_addresses(space, size, &spare, cmd);
	cmd->out_largest_free = flexmem_blocks_largest(&space->blocks);
	spin_unlock(&space->lock);
	flexmem_spare_drop(&spare, NULL);
	return rc;
}

/* Frees the range that begins at @address (any number). */
int flexmem_space_free(struct flexmem_space *space, u64 address)
{
	u64 start = address - function_of(space)->vm_start;
	struct flexmem_spare unused = {};
	struct flexmem_block *range;
	int rc = 0;

	spin_lock(&space->lock);
	range = find_range(space, start);
	if (!range || range->start != start) {
		rc = -ENOENT;
	} else if (find_address(space, address, range->size)) {
		rc = -EBUSY;
	} else {
		rb_erase(&range->node, &space->ranges);
		flexmem_blocks_free(&space->blocks, range, &unused);
	}
	spin_unlock(&space->lock);
	flexmem_spare_drop(&unused, NULL);
	return rc;
}

static int map_next(struct flexmem_binding *binding)
{
	struct flexmem_function *function = function_of(binding->space);
	struct flexmem_vm *vm = &binding->space->vm;
	u64 offset = binding->bytes.start + binding->mapped;
	const struct flexmem_block *chunk =
		flexmem_allocation_chunk(binding->allocation, &offset);
	const struct flexmem_vm_range range = {
		.space = vm->space,
		.address = binding->addresses.start + binding->mapped,
		.size = min(chunk->size - offset,
			    binding->bytes.size - binding->mapped),
	};
	int rc;

	rc = flexmem_function_vm_map(function, &range, &chunk->region->mem,
				     chunk->start + offset,
				     binding->access);
	if (rc == -ENOSPC)
		return rc;
	if (!binding->mapped)
		flexmem_function_vm_begin(function, vm);
	binding->mapped += range.size;
	return rc;
}

static int unmap(struct flexmem_binding *binding)
{
	struct flexmem_function *function = function_of(binding->space);
	const struct flexmem_vm_range range = {
		.space = binding->space->vm.space,
		.address = binding->addresses.start,
		.size = binding->addresses.size,
	};
	int rc = flexmem_function_vm_unmap(function, &range);

	if (!rc) {
		binding->mapped = 0;
		flexmem_function_vm_end(&binding->space->vm);
	}
	return rc;
}

static struct flexmem_binding *to_binding(struct flexmem_job *job)
{
	return container_of(job, struct flexmem_binding, job);
}

/*
 * Maps the bytes, chunk by chunk. If a suspend comes between, this returns
 * -EAGAIN and is called again after the resume. If the caller is killed while a
 * chunk is being mapped, all chunks are unmapped again. If it is killed during a
 * suspend, close() unmaps them.
 */
static int run_bind(struct flexmem_job *job)
{
	struct flexmem_binding *binding = to_binding(job);
	struct flexmem_function *function = function_of(binding->space);
	int rc = 0;
	int error;

	while (!rc && binding->mapped < binding->bytes.size) {
		rc = flexmem_job_is_abandoned(job) ? -EINTR :
		     flexmem_function_error(function) ?:
		     flexmem_allocation_error(binding->allocation);
		rc = rc ?: map_next(binding);
	}
	if (!rc || rc == -EAGAIN || !binding->mapped)
		return rc;
	error = flexmem_function_error(function) ?: unmap(binding);
	/* -ENOSPC says that nothing is bound, so the unmapping must succeed. */
	return rc == -ENOSPC && error ? error : rc;
}

static int run_unbind(struct flexmem_job *job)
{
	return unmap(to_binding(job));
}

/* Ends a VA_BIND or VA_UNBIND: called by its caller, or the worker for it. */
static void finish(struct flexmem_job *job)
{
	struct flexmem_binding *binding = to_binding(job);
	struct flexmem_space *space = binding->space;
	bool mapped = binding->mapped;

	spin_lock(&space->lock);
	if (mapped) {
		binding->state = job->rc ? FLEXMEM_BINDING_UNKNOWN :
					   FLEXMEM_BINDING_BOUND;
	} else {
		rb_erase(&binding->addresses.node, &space->by_address);
		rb_erase(&binding->bytes.node, &space->by_bytes);
	}
	spin_unlock(&space->lock);
	if (!mapped) {
		free_binding(binding);
		/* Until here close() waits for the worker. */
		spin_lock(&space->lock);
		space->nr_bindings--;
		spin_unlock(&space->lock);
	}
	flexmem_space_put(space);
}

static int run(struct flexmem_binding *binding,
	       int (*command)(struct flexmem_job *job))
{
	struct flexmem_job *job = &binding->job;
	int rc;

	refcount_inc(&binding->space->refs);
	flexmem_job_init(job, binding->space->table, command, finish);
	if (!flexmem_job_run(job))
		return -EINTR;
	rc = job->rc;
	finish(job);
	return rc;
}

/* Whether all bytes are mapped with whole pages that hold no other bytes. */
static bool has_whole_pages(const struct flexmem_allocation *allocation,
			    u64 page)
{
	unsigned int i;

	for (i = 0; i < allocation->nr_chunks; i++)
		if (!IS_ALIGNED(allocation->chunks[i]->start |
				allocation->chunks[i]->size, page))
			return false;
	return true;
}

static bool can_bind(const struct flexmem_allocation *allocation, u64 page,
		     const struct flexmem_va_bind *cmd)
{
	return cmd->access && !(cmd->access & ~ALL_ACCESS) && cmd->length &&
	       IS_ALIGNED(cmd->address | cmd->offset | cmd->length, page) &&
	       cmd->length <= allocation->size &&
	       cmd->offset <= allocation->size - cmd->length &&
	       has_whole_pages(allocation, page);
}

static int add_binding(struct flexmem_binding *binding)
{
	struct flexmem_space *space = binding->space;
	const struct flexmem_span *addresses = &binding->addresses;
	const struct flexmem_span *bytes = &binding->bytes;
	u64 start = addresses->start - function_of(space)->vm_start;
	const struct flexmem_block *range = find_range(space, start);

	if (!range || addresses->size > range->size ||
	    start - range->start > range->size - addresses->size)
		return -ENXIO;
	if (find_address(space, addresses->start, addresses->size))
		return -EEXIST;
	if (find_bytes(space, bytes->of, bytes->start, bytes->size))
		return -EBUSY;
	if (is_full(space))
		return -EMFILE;
	rb_add(&binding->addresses.node, &space->by_address, span_less);
	rb_add(&binding->bytes.node, &space->by_bytes, span_less);
	space->nr_bindings++;
	return 0;
}

/*
 * Maps bytes of an allocation, to which the caller has a reference. May sleep.
 * Return: 0, or an errno that the ABI header lists.
 */
int flexmem_space_bind(struct flexmem_space *space,
		       struct flexmem_allocation *allocation,
		       const struct flexmem_va_bind *cmd)
{
	struct flexmem_binding *binding;
	int rc;

	if (!can_bind(allocation, function_of(space)->vm_page, cmd))
		return -EINVAL;
	binding = kzalloc(sizeof(*binding), GFP_KERNEL_ACCOUNT);
	if (!binding)
		return -ENOMEM;
	binding->space = space;
	binding->allocation = allocation;
	binding->addresses.of = space;
	binding->addresses.start = cmd->address;
	binding->addresses.size = cmd->length;
	binding->bytes.of = allocation;
	binding->bytes.start = cmd->offset;
	binding->bytes.size = cmd->length;
	binding->access = cmd->access;
	flexmem_allocation_get(allocation);
	spin_lock(&space->lock);
	rc = add_binding(binding);
	spin_unlock(&space->lock);
	if (rc) {
		free_binding(binding);
		return rc;
	}
	return run(binding, run_bind);
}

/* Ends the binding that begins at @address (any number). May sleep. */
int flexmem_space_unbind(struct flexmem_space *space, u64 address)
{
	struct flexmem_binding *binding;
	int rc = 0;

	spin_lock(&space->lock);
	binding = find_address(space, address, 1);
	if (!binding || binding->addresses.start != address)
		rc = -ENOENT;
	else if (binding->state == FLEXMEM_BINDING_BUSY)
		rc = -EBUSY;
	else
		binding->state = FLEXMEM_BINDING_BUSY;
	spin_unlock(&space->lock);
	return rc ?: run(binding, run_unbind);
}

/*
 * Looks for the byte @cmd->offset of @allocation, or for @cmd->address if that is
 * NULL. @cmd receives all but the handle. Return: a reference, or NULL.
 */
struct flexmem_allocation *
flexmem_space_lookup(struct flexmem_space *space,
		     const struct flexmem_allocation *allocation,
		     struct flexmem_va_lookup *cmd)
{
	struct flexmem_allocation *found = NULL;
	struct flexmem_binding *binding;
	u64 at;

	spin_lock(&space->lock);
	binding = allocation ? find_bytes(space, allocation, cmd->offset, 1) :
			       find_address(space, cmd->address, 1);
	if (binding && binding->state == FLEXMEM_BINDING_BOUND) {
		at = allocation ? cmd->offset - binding->bytes.start :
				  cmd->address - binding->addresses.start;
		found = binding->allocation;
		flexmem_allocation_get(found);
		cmd->out_address = binding->addresses.start + at;
		cmd->out_offset = binding->bytes.start + at;
		cmd->out_length = binding->bytes.size - at;
		cmd->out_access = binding->access;
		/* All chunks but the last have the size of the first. */
		cmd->out_chunk = div64_u64(cmd->out_offset,
					   found->chunks[0]->size);
	}
	spin_unlock(&space->lock);
	return found;
}
