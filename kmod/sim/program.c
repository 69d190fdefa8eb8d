// SPDX-License-Identifier: GPL-2.0
/*
 * How the card carries out a job (queue.c): one operation, or those of a binary
 * that was loaded into its memory.
 */

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <flexmem/dispatch.h>

#include "card.h"
#include "program.h"

/*
 * Finds the physical address of an operand. @size: bytes; receives how many of
 * them are adjacent.
 */
static int locate(const struct sim_operation *op, u64 address, u32 access,
		  u64 *size, u64 *physical)
{
	struct sim_function *fn = op->fn;
	u64 page = fn->card->space.page;

	*physical = address;
	if (!op->is_virtual)
		return 0;
	*size = min(*size, page - (address & (page - 1)));
	return sim_firmware_translate(fn->card->fw, fn->index, op->space,
				      address, access, physical) ? 0 : -EFAULT;
}

static int locate_operands(const struct sim_operation *op, u64 done, u64 *size,
			   u64 *to, u64 *from)
{
	u32 access = FLEXMEM_VM_WRITE;
	int ret = 0;

	if (op->program == SIM_PROGRAM_ADD)
		access |= FLEXMEM_VM_READ;
	if (op->program != SIM_PROGRAM_FILL)
		ret = locate(op, op->from + done, FLEXMEM_VM_READ, size, from);
	return ret ?: locate(op, op->to + done, access, size, to);
}

static void compute(struct sim_memory *memory, struct sim_operation *op, u64 to,
		    u64 from, u64 size)
{
	u8 *a = op->buffer[0], *b = op->buffer[1];
	unsigned int i;

	if (op->program == SIM_PROGRAM_FILL) {
		memset(a, op->value, size);
		return;
	}
	sim_memory_read(memory, from, size, a);
	if (op->program == SIM_PROGRAM_COPY)
		return;
	sim_memory_read(memory, to, size, b);
	for (i = 0; i < size; i++)
		a[i] += b[i];
}

static int run_operation(struct sim_operation *op)
{
	struct sim_memory *memory = &op->fn->card->memory;
	u64 done, size, to, from = 0;
	int ret = 0;

	for (done = 0; !ret && done < op->size; done += size) {
		/* A job may be as large as the card's memory. */
		if (READ_ONCE(op->cancelled))
			return -ECANCELED;
		size = min_t(u64, op->size - done, sizeof(op->buffer[0]));
		ret = locate_operands(op, done, &size, &to, &from) ?:
		      sim_memory_populate(memory, to, size);
		if (ret)
			break;
		compute(memory, op, to, from, size);
		ret = sim_memory_write(memory, to, size, op->buffer[0]);
		cond_resched();
	}
	return ret;
}

static int locate_segment(const struct sim_operation *op,
			  const struct flexmem_address *address, u64 size,
			  u64 *physical)
{
	struct sim_function *fn = op->fn;

	return sim_firmware_segment(fn->card->fw, fn->index, address, size,
				    physical) ? 0 : -EFAULT;
}

/* Makes @op the operation of a record. */
static int decode(struct sim_operation *op, const struct sim_record *record)
{
	int ret = 0;

	if (record->program >= SIM_PROGRAM_LOADED || record->value > U8_MAX ||
	    !record->size)
		return -EINVAL;
	op->program = record->program;
	op->size = record->size;
	op->value = record->value;
	if (op->program != SIM_PROGRAM_FILL)
		ret = locate_segment(op, &record->from, op->size, &op->from);
	return ret ?: locate_segment(op, &record->to, op->size, &op->to);
}

static int run_binary(struct sim_operation *op)
{
	struct flexmem_address at = op->binary;
	struct sim_record record;
	u64 left, physical;
	int ret = 0;

	for (left = op->size; !ret && left; left -= sizeof(record)) {
		ret = locate_segment(op, &at, sizeof(record), &physical);
		if (ret)
			break;
		sim_memory_read(&op->fn->card->memory, physical, sizeof(record),
				&record);
		ret = decode(op, &record) ?: run_operation(op);
		at.offset += sizeof(record);
	}
	return ret;
}

/**
 * sim_program_run - carry out a job
 * @program: the job's &struct sim_operation, which is changed
 *
 * Context: may sleep; in sim_firmware_run().
 *
 * Return: 0; -EFAULT if memory is not the function's, or not mapped; -EINVAL if
 * a record is not valid; -ECANCELED if the job was cancelled; or -ENOMEM.
 */
int sim_program_run(void *program)
{
	struct sim_operation *op = program;

	return op->program == SIM_PROGRAM_LOADED ? run_binary(op) :
						   run_operation(op);
}
