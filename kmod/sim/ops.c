// SPDX-License-Identifier: GPL-2.0
/*
 * The operations of the device contract, as messages to the card's firmware.
 *
 * Each operation sends one message, and gets one reply or none. This driver
 * does not track messages without a reply, because flexmem repeats or undoes
 * them.
 *
 * flexmem may move data while it calls another operation. The firmware takes
 * one command of a function at a time, so operations take turns. A turn ends
 * after one timeout at the latest.
 */

#include <linux/device.h>
#include <linux/errno.h>
#include <linux/mutex.h>

#include "card.h"

static int sim_errno(struct sim_function *fn, const struct sim_request *req,
		     const struct sim_reply *reply)
{
	dev_dbg(fn->dev, "command %d #%llu slot %u memory %llu bytes %llu: status %d\n",
		req->command, req->seq, req->slot, req->memory, req->bytes,
		reply->status);

	switch (reply->status) {
	case SIM_OK:
		return 0;
	case SIM_NO_SPACE:
	case SIM_OVER_CAPACITY:
	case SIM_SLOT_REFUSED:
		return -ENOSPC;
	case SIM_FAILED:
		return -EIO;
	case SIM_HUNG:
		return -ENOTRECOVERABLE;
	default:
		/* No user can cause this: flexmem or this driver has a bug. */
		dev_err_ratelimited(fn->dev,
				    "firmware refused command %d: status %d\n",
				    req->command, reply->status);
		return -EIO;
	}
}

static int sim_command(struct sim_function *fn, struct sim_request *req,
		       struct sim_reply *reply)
{
	int ret;

	if (mutex_lock_killable(&fn->turn))
		return -EINTR;
	ret = sim_mailbox_call(&fn->card->mbox, fn->index, req, reply);
	mutex_unlock(&fn->turn);
	if (!ret)
		return sim_errno(fn, req, reply);
	dev_dbg(fn->dev, "command %d #%llu: no reply (%d)\n", req->command,
		req->seq, ret);
	return ret;
}

/*
 * The outcome of an acquisition without a reply is unknown. flexmem releases
 * the memory later, but other functions lack the memory until then. So this
 * function sends a release at once, and does not wait for a reply.
 */
static void sim_give_up(struct sim_function *fn, u64 memory)
{
	const struct sim_request req = {
		.command = SIM_RELEASE,
		.memory = memory,
	};

	sim_mailbox_post(&fn->card->mbox, fn->index, &req);
}

static int sim_op_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	struct sim_request req = {
		.command = SIM_ACQUIRE,
		.domain = mem->domain,
		.bytes = size,
		.memory = mem->id,
	};
	struct sim_reply reply;
	int ret;

	ret = sim_command(priv, &req, &reply);
	if (!ret)
		mem->base = reply.base;
	else if (ret == -ETIMEDOUT || ret == -EINTR)
		sim_give_up(priv, mem->id);
	return ret;
}

static int sim_op_release(void *priv, const struct flexmem_memory *mem)
{
	struct sim_request req = {
		.command = SIM_RELEASE,
		.memory = mem->id,
	};
	struct sim_reply reply;

	return sim_command(priv, &req, &reply);
}

static int sim_op_slot_set(void *priv, unsigned int slot,
			   const struct flexmem_memory *mem)
{
	struct sim_request req = {
		.command = SIM_SLOT_SET,
		.slot = slot,
		.memory = mem->id,
	};
	struct sim_reply reply;

	return sim_command(priv, &req, &reply);
}

static int sim_op_slot_clear(void *priv, unsigned int slot)
{
	struct sim_request req = { .command = SIM_SLOT_CLEAR, .slot = slot };
	struct sim_function *fn = priv;
	struct sim_reply reply;
	int ret = sim_command(fn, &req, &reply);

	if (!ret)
		sim_queue_drain(&fn->queue);
	return ret;
}

static int sim_op_drain(void *priv)
{
	struct sim_function *fn = priv;

	sim_queue_drain(&fn->queue);
	return 0;
}

static int sim_op_quiesce(void *priv)
{
	struct sim_request req = { .command = SIM_QUIESCE };
	struct sim_function *fn = priv;
	struct sim_reply reply;
	int ret = sim_command(fn, &req, &reply);

	if (!ret)
		sim_queue_stop(&fn->queue);
	return ret;
}

static void sim_op_client_gone(void *priv, struct flexmem_client *client)
{
	struct sim_function *fn = priv;

	sim_queue_client_gone(&fn->queue, client);
}

static int sim_op_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	struct sim_request req = {
		.command = SIM_CAPACITY,
		.domain = domain,
	};
	struct sim_reply reply;
	int ret;

	ret = sim_command(priv, &req, &reply);
	if (ret)
		return ret;
	*bytes = reply.bytes;
	return 0;
}

static int sim_data(struct sim_function *fn, enum sim_command command,
		    const struct flexmem_memory *mem, u64 offset, u64 size,
		    void *buffer)
{
	struct sim_request req = {
		.command = command,
		.memory = mem->id,
		.offset = offset,
		.bytes = size,
		.buffer = buffer,
	};
	struct sim_reply reply;

	return sim_command(fn, &req, &reply);
}

static int sim_op_scrub(void *priv, const struct flexmem_memory *mem,
			u64 offset, u64 size)
{
	return sim_data(priv, SIM_SCRUB, mem, offset, size, NULL);
}

static int sim_op_read(void *priv, const struct flexmem_memory *mem,
		       u64 offset, u64 size, void *to)
{
	return sim_data(priv, SIM_READ, mem, offset, size, to);
}

static int sim_op_write(void *priv, const struct flexmem_memory *mem,
			u64 offset, u64 size, const void *from)
{
	struct sim_function *fn = priv;
	int ret;

	/*
	 * Allocates the pages here, not in the firmware, so that they are
	 * charged to the calling task.
	 */
	ret = sim_memory_populate(&fn->card->memory, mem->base + offset, size);
	if (ret)
		return ret;
	/*
	 * The cast is safe: the firmware only reads the buffer of a SIM_WRITE.
	 */
	return sim_data(fn, SIM_WRITE, mem, offset, size, (void *)from);
}

static int sim_op_copy(void *priv, const struct flexmem_memory *to,
		       u64 to_offset, const struct flexmem_memory *from,
		       u64 from_offset, u64 size)
{
	struct sim_request req = {
		.command = SIM_COPY,
		.memory = to->id,
		.offset = to_offset,
		.from_memory = from->id,
		.from_offset = from_offset,
		.bytes = size,
	};
	struct sim_function *fn = priv;
	struct sim_reply reply;
	int ret;

	ret = sim_memory_populate(&fn->card->memory, to->base + to_offset,
				  size);
	return ret ?: sim_command(fn, &req, &reply);
}

static int sim_op_vm_map(void *priv, const struct flexmem_vm_range *range,
			 const struct flexmem_memory *mem, u64 offset,
			 unsigned int access)
{
	struct sim_request req = {
		.command = SIM_VM_MAP,
		.memory = mem->id,
		.offset = offset,
		.space = range->space,
		.address = range->address,
		.bytes = range->size,
		.access = access,
	};
	struct sim_reply reply;

	return sim_command(priv, &req, &reply);
}

static int sim_op_vm_unmap(void *priv, const struct flexmem_vm_range *range)
{
	struct sim_request req = {
		.command = SIM_VM_UNMAP,
		.space = range->space,
		.address = range->address,
		.bytes = range->size,
	};
	struct sim_reply reply;

	return sim_command(priv, &req, &reply);
}

static int sim_op_fault(void *priv, const struct flexmem_memory *mem,
			u64 offset, struct flexmem_frames *frames)
{
	struct sim_function *fn = priv;
	struct sim_memory *memory = &fn->card->memory;

	if (frames->size == SIM_MEMORY_PIECE &&
	    sim_memory_piece(memory, mem->base + frames->offset, &frames->pfn))
		return 0;
	frames->offset = offset;
	frames->size = PAGE_SIZE;
	return sim_memory_frame(memory, mem->base + offset, &frames->pfn);
}

/*
 * Takes the function's turn, because another operation may be moving data. The
 * reset itself cannot fail: the firmware handles the reset before any further
 * message of this function.
 */
static int sim_op_reset(void *priv)
{
	struct sim_function *fn = priv;

	if (mutex_lock_killable(&fn->turn))
		return -EINTR;
	sim_queue_stop(&fn->queue);
	sim_mailbox_reset(&fn->card->mbox, fn->index);
	sim_queue_restart(&fn->queue);
	mutex_unlock(&fn->turn);
	return 0;
}

const struct flexmem_device_ops sim_pf_ops = {
	.drain = sim_op_drain,
	.acquire = sim_op_acquire,
	.release = sim_op_release,
	.quiesce = sim_op_quiesce,
	.capacity = sim_op_capacity,
	.scrub = sim_op_scrub,
	.read = sim_op_read,
	.write = sim_op_write,
	.copy = sim_op_copy,
	.vm_map = sim_op_vm_map,
	.vm_unmap = sim_op_vm_unmap,
	.fault = sim_op_fault,
	.client_gone = sim_op_client_gone,
	.reset = sim_op_reset,
};

const struct flexmem_device_ops sim_vf_ops = {
	.acquire = sim_op_acquire,
	.release = sim_op_release,
	.slot_set = sim_op_slot_set,
	.slot_clear = sim_op_slot_clear,
	.quiesce = sim_op_quiesce,
	.capacity = sim_op_capacity,
	.scrub = sim_op_scrub,
	.read = sim_op_read,
	.write = sim_op_write,
	.copy = sim_op_copy,
	.vm_map = sim_op_vm_map,
	.vm_unmap = sim_op_vm_unmap,
	.fault = sim_op_fault,
	.client_gone = sim_op_client_gone,
	.reset = sim_op_reset,
};

/**
 * sim_ops_reset - remove everything of a function from the firmware
 * @fn: the function, for which no operation is running
 *
 * Cannot fail: a reset cannot be lost.
 */
void sim_ops_reset(struct sim_function *fn)
{
	mutex_lock(&fn->turn);
	sim_queue_stop(&fn->queue);
	sim_mailbox_reset(&fn->card->mbox, fn->index);
	mutex_unlock(&fn->turn);
}
