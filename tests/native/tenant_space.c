// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of a tenant about device-virtual addresses. Ranges and bindings are
 * not noted: the tasks of a file draw the same few addresses, so they often
 * reserve, free, bind and unbind there at the same time. Between two rounds the
 * card's page table is compared with the bindings (world.c).
 */
#include "shim/internal.h"

#include "torture.h"

#define PAGE ((u64)SIM_VM_PAGE)
/* Ranges and bindings begin in the lowest addresses of a space. */
#define PAGES 12
#define MOST_PAGES 4

static u64 draw_address(struct tenant *t)
{
	return SIM_VM_START + draw(t, PAGES) * PAGE;
}

static void do_reserve(struct tenant *t)
{
	struct flexmem_va_reserve cmd = CMD(va_reserve,
		.length = (1 + draw(t, MOST_PAGES)) * PAGE);
	long rc = CALL(t, VA_RESERVE, &cmd);

	ANSWER(t, "VA_RESERVE", rc, ENOSPC, EMFILE);
	if (!rc && (cmd.out_address < SIM_VM_START || cmd.out_address % PAGE))
		shim_bug("VA_RESERVE returns a wrong address");
}

static void do_free(struct tenant *t)
{
	struct flexmem_va_free cmd = CMD(va_free, .address = draw_address(t));

	ANSWER(t, "VA_FREE", CALL(t, VA_FREE, &cmd), ENOENT, EBUSY);
}

/*
 * Most allocations of a tenant have parts of pages, and cannot be bound. The
 * allocations that are made here have whole pages, also in each chunk.
 */
static void do_alloc(struct tenant *t)
{
	struct flexmem_alloc cmd = CMD(alloc,
		.length = (1 + draw(t, MOST_PAGES)) * PAGE, .alignment = PAGE);
	long rc;

	tenant_draw_policy(t, &cmd);
	rc = CALL(t, ALLOC, &cmd);
	ANSWER(t, "ALLOC", rc, ENOMEM, EIO, ETIMEDOUT);
	if (rc)
		return;
	tenant_check_chunks(t, &cmd);
	tenant_note(t, cmd.out_handle);
}

static void do_bind(struct tenant *t)
{
	struct flexmem_va_bind cmd = CMD(va_bind,
		.handle = tenant_read_note(t), .access = 1 + draw(t, 7),
		.address = draw_address(t),
		.offset = draw(t, MOST_PAGES) * PAGE,
		.length = (1 + draw(t, 2)) * PAGE);

	ANSWER(t, "VA_BIND", CALL(t, VA_BIND, &cmd), EINVAL, ENOENT, ENXIO,
	       EEXIST, EBUSY, EMFILE, ENOSPC, EIO, ETIMEDOUT);
}

static void do_unbind(struct tenant *t)
{
	struct flexmem_va_unbind cmd = CMD(va_unbind,
		.address = draw_address(t));

	ANSWER(t, "VA_UNBIND", CALL(t, VA_UNBIND, &cmd), ENOENT, EBUSY, EIO,
	       ETIMEDOUT);
}

static void do_lookup(struct tenant *t)
{
	bool by_handle = chance(t, 2);
	u64 byte = draw(t, PAGE);
	struct flexmem_va_lookup cmd = CMD(va_lookup,
		.handle = by_handle ? tenant_read_note(t) : 0);
	long rc;

	if (cmd.handle)
		cmd.offset = draw(t, MOST_PAGES) * PAGE + byte;
	else
		cmd.address = draw_address(t) + byte;
	rc = CALL(t, VA_LOOKUP, &cmd);
	ANSWER(t, "VA_LOOKUP", rc, ENOENT, EBUSY);
	if (rc)
		return;
	if (cmd.handle ? cmd.out_offset != cmd.offset :
			 cmd.out_address != cmd.address)
		shim_bug("VA_LOOKUP finds another byte");
	if (cmd.out_address % PAGE != byte || cmd.out_offset % PAGE != byte ||
	    (cmd.out_length + byte) % PAGE || !cmd.out_access)
		shim_bug("VA_LOOKUP finds parts of pages");
}

/* A program in the file's space writes the file's tag only. */
static void do_run(struct tenant *t)
{
	struct sim_run run = {
		.program = chance(t, 2) ? SIM_PROGRAM_COPY : SIM_PROGRAM_FILL,
		.fd = FILES + t->number,
		.to_offset = draw_address(t),
		.from_offset = draw_address(t),
		.size = 1 + draw(t, 2 * PAGE),
		.value = t->file->tag,
		.latency_ms = chance(t, 3) ? draw(t, 100) : 0,
		.flags = SIM_RUN_VIRTUAL,
	};
	struct dma_fence *fence;
	long rc;

	t->bad = false;
	rc = world_run(t->file, &run, &fence);
	/* EINVAL: the function was bound again since the file was opened. */
	ANSWER(t, "run", rc, EBUSY, EINVAL, EIO);
	if (rc)
		return;
	if (chance(t, 4))
		dma_fence_wait(fence, true);
	dma_fence_put(fence);
}

/**
 * tenant_space - one call about device-virtual addresses
 * @t: tenant, run by the current task
 */
void tenant_space(struct tenant *t)
{
	static void (*const calls[])(struct tenant *t) = {
		do_reserve, do_alloc, do_bind, do_bind, do_bind, do_unbind,
		do_unbind, do_free, do_lookup, do_lookup, do_run,
	};

	calls[draw(t, ARRAY_SIZE(calls))](t);
}
