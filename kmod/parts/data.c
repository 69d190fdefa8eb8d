// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes and maps; mapping.c has the maps. READ, WRITE and COPY move the bytes of
 * allocations. READ and WRITE are for memory that the CPU cannot map. The device
 * carries out COPY, because a copy by the CPU would move each byte across the bus
 * twice.
 *
 * All three move bytes in parts, so that data_lock is never held for long, and
 * a killed caller need not wait for the end. READ and WRITE go through a buffer
 * of the kernel, because no lock may be held while user memory is touched.
 *
 * A held reference keeps other tasks from resizing, freeing or scrubbing the
 * allocation.
 */

#include <linux/align.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ioctl.h"
#include "parts/mapping.h"

/**
 * struct transfer - bytes to move
 * @to: allocation that receives the bytes; NULL: user memory receives them
 * @from: allocation that the bytes come from; NULL: they come from user memory
 * @to_offset: first byte in @to
 * @from_offset: first byte in @from
 * @user: the user memory
 * @buffer: buffer of the kernel for a part; NULL for COPY. Becomes NULL
 *	after a failure if the device may still use the buffer
 * @max: most bytes of a part
 */
struct transfer {
	struct flexmem_allocation *to;
	struct flexmem_allocation *from;
	u64 to_offset;
	u64 from_offset;
	void __user *user;
	void *buffer;
	u64 max;
};

/**
 * struct place - position of a byte on the device
 * @region: region, which stays as long as the allocation. NULL: the byte is not
 *	on the device
 * @offset: offset in the region
 * @room: bytes from @offset to the end of the chunk
 */
struct place {
	struct flexmem_region *region;
	u64 offset;
	u64 room;
};

static struct place place_of(struct flexmem_allocation *allocation, u64 offset)
{
	const struct flexmem_block *chunk;

	if (!allocation)
		return (struct place) { .room = U64_MAX };
	chunk = flexmem_allocation_chunk(allocation, &offset);
	return (struct place) {
		.region = chunk->region,
		.offset = chunk->start + offset,
		.room = chunk->size - offset,
	};
}

static int lost_error(const struct place *place)
{
	return place->region ? flexmem_region_error(place->region) : 0;
}

static int move_part(const struct place *to, const struct place *from,
		     void **buffer, u64 size)
{
	struct flexmem_region *region = to->region ?: from->region;
	struct flexmem_function *function = &region->table->function;
	int rc = flexmem_function_lock_data(function);

	if (rc)
		return rc;
	rc = lost_error(to) ?: lost_error(from);
	if (rc)
		goto unlock;
	if (to->region && from->region)
		rc = flexmem_function_copy(function, &region->mem, to->offset,
					   &from->region->mem, from->offset,
					   size);
	else
		rc = flexmem_function_rw(function, &region->mem,
					 to->region ? to->offset : from->offset,
					 size, buffer, to->region);
unlock:
	mutex_unlock(&function->data_lock);
	return rc;
}

/* Adds the number of moved bytes to @done, also on failure. */
static int move(struct transfer *t, u64 length, u64 *done)
{
	struct place to, from;
	u64 size;
	int rc;

	for (; *done < length; *done += size) {
		to = place_of(t->to, t->to_offset + *done);
		from = place_of(t->from, t->from_offset + *done);
		size = min3(length - *done, to.room, from.room);
		size = min(size, t->max);
		if (fatal_signal_pending(current))
			return -EINTR;
		if (!t->from && copy_from_user(t->buffer, t->user + *done, size))
			return -EFAULT;
		rc = move_part(&to, &from, &t->buffer, size);
		if (rc)
			return rc;
		if (!t->to && copy_to_user(t->user + *done, t->buffer, size))
			return -EFAULT;
		cond_resched();
	}
	return 0;
}

static bool has_range(const struct flexmem_allocation *allocation, u64 offset,
		      u64 length)
{
	return length && length <= allocation->size &&
	       offset <= allocation->size - length;
}

/*
 * A driver may map the buffer for DMA, so the buffer is not from vmalloc. The
 * buffer is zeroed: if the driver returns too few bytes, the user must not get
 * kernel memory. If memory is fragmented, a single page is enough.
 */
static void *alloc_buffer(u64 length, u64 *room)
{
	void *buffer;

	*room = min_t(u64, length, FLEXMEM_RW_MAX);
	if (*room > PAGE_SIZE) {
		buffer = kzalloc(*room, GFP_KERNEL_ACCOUNT | __GFP_NOWARN |
				 __GFP_NORETRY);
		if (buffer)
			return buffer;
		*room = PAGE_SIZE;
	}
	return kzalloc(*room, GFP_KERNEL_ACCOUNT);
}

/* READ, or WRITE if @write. Tells how many bytes were copied, also on failure. */
static int do_rw(struct flexmem_call *call, bool write)
{
	struct flexmem_rw *cmd = call->cmd;
	struct flexmem_allocation *allocation;
	struct transfer t = {
		.to_offset = cmd->offset,
		.from_offset = cmd->offset,
		.user = u64_to_user_ptr(cmd->data),
	};
	int rc, reply_rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	cmd->out_done = 0;
	allocation = flexmem_client_allocation(call->client, cmd->handle);
	rc = PTR_ERR_OR_ZERO(allocation);
	if (rc)
		goto reply;
	*(write ? &t.to : &t.from) = allocation;
	rc = flexmem_allocation_error(allocation);
	if (!rc && !has_range(allocation, cmd->offset, cmd->length))
		rc = -EINVAL;
	if (!rc) {
		t.buffer = alloc_buffer(cmd->length, &t.max);
		rc = t.buffer ? move(&t, cmd->length, &cmd->out_done) : -ENOMEM;
		kfree(t.buffer);
	}
	flexmem_allocation_put(allocation);
reply:
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc ?: reply_rc;
}

static int cmd_read(struct flexmem_call *call)
{
	return do_rw(call, false);
}

static int cmd_write(struct flexmem_call *call)
{
	return do_rw(call, true);
}

static bool can_copy(const struct flexmem_allocation *to,
		     const struct flexmem_allocation *from,
		     const struct flexmem_copy *copy)
{
	u64 length = copy->length;

	if (!IS_ALIGNED(copy->to_offset | copy->from_offset | length,
			FLEXMEM_ALIGN) ||
	    !has_range(to, copy->to_offset, length) ||
	    !has_range(from, copy->from_offset, length))
		return false;
	/* The sums cannot overflow: both ranges lie in the allocation. */
	return to != from || copy->to_offset + length <= copy->from_offset ||
	       copy->from_offset + length <= copy->to_offset;
}

/*
 * Copies from one allocation of a client to another, or within one.
 * @cmd: @cmd->out_done is 0 before, and receives the number of bytes copied, also
 * on failure.
 * Context: may sleep. Return: 0; an error of flexmem_client_allocation(); -EIO if
 * an allocation is lost; -EINVAL if a range is not aligned or lies outside of its
 * allocation, or if the ranges overlap; -EINTR; -ENODEV; or an error of the
 * firmware.
 */
int flexmem_data_copy(struct flexmem_client *client, struct flexmem_copy *cmd)
{
	struct transfer t = {
		.to_offset = cmd->to_offset,
		.from_offset = cmd->from_offset,
		.max = FLEXMEM_COPY_MAX,
	};
	int rc;

	t.to = flexmem_client_allocation(client, cmd->to);
	if (IS_ERR(t.to))
		return PTR_ERR(t.to);
	t.from = flexmem_client_allocation(client, cmd->from);
	rc = PTR_ERR_OR_ZERO(t.from);
	if (rc)
		goto put;
	rc = flexmem_allocation_error(t.to) ?: flexmem_allocation_error(t.from);
	if (!rc && !can_copy(t.to, t.from, cmd))
		rc = -EINVAL;
	rc = rc ?: move(&t, cmd->length, &cmd->out_done);
	flexmem_allocation_put(t.from);
put:
	flexmem_allocation_put(t.to);
	return rc;
}

static int cmd_copy(struct flexmem_call *call)
{
	struct flexmem_copy *cmd = call->cmd;
	int rc, reply_rc;

	cmd->out_done = 0;
	rc = flexmem_data_copy(call->client, cmd);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc ?: reply_rc;
}

const struct flexmem_part_ops flexmem_part_bytes = {
	.commands = (const struct flexmem_command[]) {
		COMMAND(FLEXMEM_CMD_READ, flexmem_rw, out_done, READS,
			FLEXMEM_CAP_RW, cmd_read),
		COMMAND(FLEXMEM_CMD_WRITE, flexmem_rw, out_done, CHANGES,
			FLEXMEM_CAP_RW, cmd_write),
		COMMAND(FLEXMEM_CMD_COPY, flexmem_copy, out_done, CHANGES,
			FLEXMEM_CAP_COPY, cmd_copy),
		{}
	},
	.capabilities = FLEXMEM_CAP_MAP | FLEXMEM_CAP_RW | FLEXMEM_CAP_COPY,
};
