// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated card below its driver: requests that it refuses and that
 * flexmem never makes, and its page tables.
 * These tests use a VF that flexmem is not bound to.
 */
#include "faults.h"

#define RW (FLEXMEM_VM_READ | FLEXMEM_VM_WRITE)

/*
 * Most mappings of these tests are in address space SPACE, from address AT on.
 */
#define SPACE 7
#define AT (1ull << 40)

static const struct flexmem_device_desc desc = {
	.name = "card",
	.mode = FLEXMEM_MODE_VF,
	.slots = 8,
	.granule = SIM_GRANULE,
	.vm_page = SIM_VM_PAGE,
	.vm_start = SIM_VM_START,
	.vm_end = SIM_VM_END,
	.ops = &sim_vf_ops,
};

static struct flexmem_function function;
static struct flexmem_memory mem;

static bool begin(struct run *r)
{
	struct flexmem_device_desc it = desc;

	world_unbind(2);
	it.priv = world_function(2);
	if (run_good(r, "init", flexmem_function_init(&function, NULL, &it),
		     0) &&
	    run_good(r, "acquire",
		     flexmem_function_acquire(&function, 0, SZ_4M, &mem), 0))
		return true;
	run_good(r, "bind", world_bind(2), 0);
	return false;
}

static void end(struct run *r)
{
	run_good(r, "reset", flexmem_function_reset(&function), 0);
	run_good(r, "bind", world_bind(2), 0);
}

static bool is_at(u64 address, u32 access, u64 physical)
{
	u64 found;

	return world_translate(2, SPACE, address, access, &found) &&
	       found == physical;
}

static bool is_nowhere(u64 space, u64 address)
{
	u64 found;

	return !world_translate(2, space, address, 0, &found);
}

static void map_in(struct run *r, u64 space, u64 address, u64 size, u64 offset,
		   int error)
{
	const struct flexmem_vm_range range = { space, address, size };

	run_good(r, "vm_map",
		 flexmem_function_vm_map(&function, &range, &mem, offset, RW),
		 error);
}

static void map(struct run *r, u64 address, u64 size, u64 offset, int error)
{
	map_in(r, SPACE, address, size, offset, error);
}

static void unmap(struct run *r, u64 address, u64 size)
{
	const struct flexmem_vm_range range = { SPACE, address, size };

	run_good(r, "vm_unmap", flexmem_function_vm_unmap(&function, &range),
		 0);
}

static void run_page_table(struct run *r)
{
	if (!begin(r))
		return;
	map(r, AT, SIM_VM_PAGE, SZ_1M, 0);
	must(r, is_at(AT + 5, RW, mem.base + SZ_1M + 5), "mapping");
	must(r, !is_at(AT, FLEXMEM_VM_EXECUTE, mem.base + SZ_1M) &&
	     is_nowhere(SPACE + 1, AT) && is_nowhere(SPACE, AT + SIM_VM_PAGE),
	     "access");
	run_good(r, "release", sim_vf_ops.release(world_function(2), &mem),
		 EIO);
	/*
	 * Maps the same bytes of memory a second time, and then the bytes next
	 * to them.
	 */
	map(r, SIM_VM_START, SIM_VM_PAGE, SZ_1M, 0);
	map(r, SIM_VM_END - 2 * SIM_VM_PAGE, 2 * SIM_VM_PAGE, 0, 0);
	must(r, is_at(SIM_VM_START, RW, mem.base + SZ_1M) &&
	     is_at(SIM_VM_END - 1, RW, mem.base + 2 * SIM_VM_PAGE - 1),
	     "first and last addresses");
	unmap(r, AT, SIM_VM_PAGE);
	unmap(r, AT, SIM_VM_PAGE);
	must(r, is_nowhere(SPACE, AT) && !is_nowhere(SPACE, SIM_VM_START),
	     "rest");
	/* Unmapping a part of a mapping removes the whole mapping. */
	unmap(r, SIM_VM_END - SIM_VM_PAGE, SIM_VM_PAGE);
	must(r, is_nowhere(SPACE, SIM_VM_END - 2 * SIM_VM_PAGE), "part");
	unmap(r, SIM_VM_START, SIM_VM_PAGE);
	run_good(r, "release", flexmem_function_release(&function, &mem), 0);
	end(r);
}

/* An address belongs to different mappings in different address spaces. */
static void run_spaces(struct run *r)
{
	if (!begin(r))
		return;
	map(r, AT, SIM_VM_PAGE, 0, 0);
	map_in(r, SPACE + 1, AT, SIM_VM_PAGE, SZ_1M, 0);
	must(r, is_at(AT, RW, mem.base), "mapping beside another space's");
	unmap(r, AT, SIM_VM_PAGE);
	must(r, is_nowhere(SPACE, AT) && !is_nowhere(SPACE + 1, AT),
	     "mapping of another space");
	end(r);
}

/* A request over an existing mapping, which flexmem never makes, removes it. */
static void run_mapped_twice(struct run *r)
{
	if (!begin(r))
		return;
	map(r, AT, 2 * SIM_VM_PAGE, 0, 0);
	map(r, AT + SIM_VM_PAGE, SIM_VM_PAGE, 0, EIO);
	unmap(r, AT + SIM_VM_PAGE, SIM_VM_PAGE);
	must(r, is_nowhere(SPACE, AT) && is_nowhere(SPACE, AT + SIM_VM_PAGE),
	     "mapped twice");
	end(r);
}

/*
 * The reply to the map command is lost, but the card has carried the command
 * out.
 */
static void run_lost_map(struct run *r)
{
	if (!begin(r))
		return;
	world_faults(SIM_DROP_REPLIES, 1);
	map(r, AT, SIM_VM_PAGE, 0, ETIMEDOUT);
	must(r, is_at(AT, RW, mem.base), "mapping that was not answered");
	unmap(r, AT, SIM_VM_PAGE);
	must(r, is_nowhere(SPACE, AT), "mapping that is undone");
	end(r);
}

/* A VF whose programs were stopped can only unmap. */
static void run_quiet(struct run *r)
{
	const struct flexmem_vm_range range = { SPACE, 2 * AT, SIM_VM_PAGE };

	if (!begin(r))
		return;
	map(r, AT, SIM_VM_PAGE, 0, 0);
	run_good(r, "quiesce", flexmem_function_quiesce(&function), 0);
	map(r, AT + SIM_VM_PAGE, SIM_VM_PAGE, 0, EIO);
	run_good(r, "vm_map", sim_vf_ops.vm_map(world_function(2), &range, &mem,
						0, RW), EIO);
	must(r, !is_nowhere(SPACE, AT), "mapping of stopped programs");
	unmap(r, AT, SIM_VM_PAGE);
	must(r, is_nowhere(SPACE, AT), "everything");
	end(r);
}

/* A reset removes all mappings. Another VF may get the memory then. */
static void run_reset(struct run *r)
{
	if (!begin(r))
		return;
	map(r, AT, SIM_VM_PAGE, 0, 0);
	run_good(r, "reset", flexmem_function_reset(&function), 0);
	run_good(r, "acquire",
		 flexmem_function_acquire(&function, 0, SZ_4M, &mem), 0);
	must(r, is_nowhere(SPACE, AT), "mapping after a reset");
	map(r, AT, SIM_VM_PAGE, SZ_1M, 0);
	must(r, is_at(AT, RW, mem.base + SZ_1M), "mapping anew");
	end(r);
}

static void run_many_maps(struct run *r)
{
	u64 i;

	if (!begin(r))
		return;
	for (i = 0; i < SIM_MAX_MAPPINGS; i++)
		map(r, AT + i * SIM_VM_PAGE, SIM_VM_PAGE, 0, 0);
	map(r, AT + i * SIM_VM_PAGE, SIM_VM_PAGE, 0, ENOSPC);
	must(r, flexmem_function_is_settled(&function), "full page table");
	unmap(r, AT, SIM_MAX_MAPPINGS * SIM_VM_PAGE);
	must(r, is_nowhere(SPACE, AT) &&
	     is_nowhere(SPACE, AT + (i - 1) * SIM_VM_PAGE), "all unmapped");
	map(r, AT + i * SIM_VM_PAGE, SIM_VM_PAGE, 0, 0);
	end(r);
}

/* A request about a range, and the answer that the card must give. */
struct vm_case {
	struct flexmem_vm_range range;
	u64 offset;
	unsigned int access;
	int map;
	int unmap;
};

static void run_bad_ranges(struct run *r)
{
	static const u64 page = SIM_VM_PAGE, last = SIM_VM_END - SIM_VM_PAGE;
	const struct vm_case cases[] = {
		{ { SPACE, AT, page }, 0, RW, 0, 0 },
		{ { 0, AT, page }, 0, RW, EIO, EIO },
		{ { SPACE, AT, 0 }, 0, RW, EIO, EIO },
		{ { SPACE, AT + SZ_4K, page }, 0, RW, EIO, EIO },
		{ { SPACE, AT, SZ_4K }, 0, RW, EIO, EIO },
		{ { SPACE, 0, page }, 0, RW, EIO, EIO },
		{ { SPACE, last, page }, 0, RW, 0, 0 },
		{ { SPACE, last, 2 * page }, 0, RW, EIO, EIO },
		{ { SPACE, last + page, page }, 0, RW, EIO, EIO },
		{ { SPACE, 2 * SIM_VM_END, page }, 0, RW, EIO, EIO },
		{ { SPACE, AT, -page }, 0, RW, EIO, EIO },
		{ { SPACE, AT, page }, SZ_4K, RW, EIO, 0 },
		{ { SPACE, AT, page }, SZ_4M - page, RW, 0, 0 },
		{ { SPACE, AT, page }, SZ_4M, RW, EIO, 0 },
		{ { SPACE, AT, 2 * page }, SZ_4M - page, RW, EIO, 0 },
		{ { SPACE, AT, page }, 0, 0, EIO, 0 },
		{ { SPACE, AT, page }, 0, 8, EIO, 0 },
	};
	struct sim_function *fn = world_function(2);
	struct flexmem_memory other;
	unsigned int i;

	if (!begin(r))
		return;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		run_good(r, "vm_map", sim_vf_ops.vm_map(fn, &cases[i].range,
							&mem, cases[i].offset,
							cases[i].access),
			 cases[i].map);
		run_good(r, "vm_unmap",
			 sim_vf_ops.vm_unmap(fn, &cases[i].range),
			 cases[i].unmap);
	}
	other = mem;
	other.id = U64_MAX;
	run_good(r, "vm_map of nothing",
		 sim_vf_ops.vm_map(fn, &cases[0].range, &other, 0, RW), EIO);
	end(r);
}

/* A copy within the card, and the answer that the card must give. */
struct copy_case {
	u64 to_offset;
	u64 from_offset;
	u64 size;
	int same;
	int others;
};

static void run_bad_copies(struct run *r)
{
	static const struct copy_case cases[] = {
		{ 0, 1024, 1024, 0, 0 },
		{ 1024, 0, 1024, 0, 0 },
		{ 0, 1024, 1152, EIO, 0 },
		{ 1024, 0, 1152, EIO, 0 },
		{ 128, 128, 128, EIO, 0 },
		{ 0, 1024, 0, EIO, EIO },
		{ 64, 1024, 128, EIO, EIO },
		{ 0, 1088, 128, EIO, EIO },
		{ 0, 1024, 64, EIO, EIO },
		{ SZ_4M - 128, 0, 128, 0, 0 },
		{ SZ_4M - 128, 0, 256, EIO, EIO },
		{ SZ_4M, 0, 128, EIO, EIO },
		{ 0, SZ_4M - 128, 128, 0, 0 },
		{ 0, SZ_4M - 128, 256, EIO, EIO },
		{ 0, SZ_4M, 128, EIO, EIO },
	};
	struct sim_function *fn = world_function(2);
	struct flexmem_memory other, none;
	const struct copy_case *c;
	unsigned int i;

	if (!begin(r))
		return;
	run_good(r, "acquire",
		 flexmem_function_acquire(&function, 0, SZ_4M, &other), 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		c = &cases[i];
		run_good(r, "copy within",
			 sim_vf_ops.copy(fn, &mem, c->to_offset, &mem,
					 c->from_offset, c->size), c->same);
		run_good(r, "copy between",
			 sim_vf_ops.copy(fn, &other, c->to_offset, &mem,
					 c->from_offset, c->size), c->others);
	}
	none = mem;
	none.id = U64_MAX;
	run_good(r, "copy to nothing",
		 sim_vf_ops.copy(fn, &none, 0, &mem, 128, 128), EIO);
	run_good(r, "copy from nothing",
		 sim_vf_ops.copy(fn, &mem, 0, &none, 128, 128), EIO);
	end(r);
}

const struct sequence card_corners[] = {
	{ "page table", NULL, run_page_table },
	{ "page table: spaces", NULL, run_spaces },
	{ "page table: mapped twice", NULL, run_mapped_twice },
	{ "page table: lost map", NULL, run_lost_map },
	{ "page table: quiet", NULL, run_quiet },
	{ "page table: reset", NULL, run_reset },
	{ "page table: full", NULL, run_many_maps },
	{ "page table: refused requests", NULL, run_bad_ranges },
	{ "copies that are refused", NULL, run_bad_copies },
	{}
};
