// SPDX-License-Identifier: GPL-2.0
/*
 * Device-virtual addresses, on the card of domain_corners.c. The card has a page
 * table, so the tests see what its programs would reach.
 */
#include "shim/internal.h"

#include "corners.h"
#include "parts/space.h"

#define PAGE SIM_VM_PAGE
#define ALL (FLEXMEM_VA_READ | FLEXMEM_VA_WRITE | FLEXMEM_VA_EXECUTE)

/* Reserves addresses, which must begin at page @want of the space. */
static struct flexmem_va_reserve reserve(struct run *r, unsigned int f,
					 u64 length, unsigned int want)
{
	struct flexmem_va_reserve cmd = CMD(va_reserve, .length = length);

	if (BY(r, f, VA_RESERVE, &cmd, 0))
		must(r, cmd.out_address == SIM_VM_START + want * PAGE &&
		     cmd.out_largest_free, "reserved addresses");
	return cmd;
}

/* The number that the card's driver gets for a dispatch. */
static u64 space_of(struct run *r, unsigned int f)
{
	struct flexmem_file *file = r->file[f]->private_data;

	return flexmem_client_space(&file->client);
}

static u64 base_of_slot(u32 slot)
{
	struct sim_piece piece = {};

	while (sim_firmware_next_piece(world.card.fw, 1, &piece))
		if (piece.slot == slot)
			return piece.base;
	return 0;
}

static bool reaches(u64 space, u64 address, u64 *physical)
{
	return world_translate(1, space, address, FLEXMEM_VM_WRITE, physical);
}

/* Compares the card's page table, and both look-ups, with the chunks. */
static void check_chunks(struct run *r, u64 space, u64 address, u32 handle)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	u32 i, nr = chunks(r, entry);
	u64 byte, physical, at = 0;

	for (i = 0; i < nr; at += entry[i++].length) {
		for (byte = 0; byte < entry[i].length; byte += PAGE / 2) {
			struct flexmem_va_lookup there = CMD(va_lookup,
				.address = address + at + byte);
			struct flexmem_va_lookup back = CMD(va_lookup,
				.handle = handle, .offset = at + byte);

			must(r, reaches(space, there.address, &physical) &&
			     physical == base_of_slot(entry[i].address.region_id) +
			     entry[i].address.offset + byte, "page table");
			CALL(r, VA_LOOKUP, &there);
			must(r, there.out_handle == handle &&
			     there.out_offset == at + byte &&
			     there.out_chunk == i && there.out_access == ALL,
			     "byte at an address");
			CALL(r, VA_LOOKUP, &back);
			must(r, back.out_address == there.address &&
			     back.out_handle == handle, "address of a byte");
		}
	}
	must(r, !reaches(space, address - 1, &physical) &&
	     !reaches(space, address + at, &physical), "other addresses");
}

static void run_bind(struct run *r)
{
	struct flexmem_va_reserve range;
	struct flexmem_alloc reply;
	u64 physical, space;

	open_file(r, 0);
	must(r, !space_of(r, 0), "no space yet");
	alloc_by(r, CMD(alloc, .length = 5 * PAGE, .alignment = PAGE,
			       .domains = 7,
			       .policy = FLEXMEM_POLICY_INTERLEAVE), 0, &reply);
	must(r, reply.out_chunks == 3, "three chunks");
	reserve(r, 0, 1, 0);
	range = reserve(r, 0, 5 * PAGE - 1, 1);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = reply.out_handle,
			      .access = ALL, .address = range.out_address,
			      .length = 5 * PAGE));
	space = space_of(r, 0);
	check_chunks(r, space, range.out_address, reply.out_handle);
	FAILS(r, VA_FREE, &CMD(va_free, .address = range.out_address), EBUSY);
	FAILS(r, RESIZE, &CMD(resize, .handle = reply.out_handle,
			      .length = PAGE), EBUSY);
	/* FREE does not unmap the memory, because the binding still uses it. */
	CALL(r, FREE, &CMD(free, .handle = reply.out_handle));
	r->nr[0]--;
	must(r, reaches(space, range.out_address, &physical),
	     "memory after FREE");
	CALL(r, VA_UNBIND, &CMD(va_unbind, .address = range.out_address));
	must(r, !reaches(space, range.out_address, &physical),
	     "memory after VA_UNBIND");
	CALL(r, VA_FREE, &CMD(va_free, .address = range.out_address));
	reserve(r, 0, 9 * PAGE, 1);
}

/* Each file has its own addresses. */
static void run_two_files(struct run *r)
{
	struct flexmem_va_reserve mine, other;
	u64 physical;
	u32 handle;

	open_file(r, 0);
	open_file(r, 1);
	mine = reserve(r, 0, PAGE, 0);
	other = reserve(r, 1, PAGE, 0);
	must(r, space_of(r, 0) && space_of(r, 1) &&
	     space_of(r, 0) != space_of(r, 1), "two spaces");
	must(r, mine.out_address == other.out_address, "the same address");
	handle = alloc(r, 0, PAGE, 0);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = handle, .access = ALL,
			      .address = mine.out_address, .length = PAGE));
	must(r, !reaches(space_of(r, 1), mine.out_address, &physical),
	     "another file's space");
	BY(r, 1, VA_UNBIND, &CMD(va_unbind, .address = mine.out_address),
	   ENOENT);
	BY(r, 1, VA_LOOKUP, &CMD(va_lookup, .address = mine.out_address),
	   ENOENT);
}

/*
 * Binds a part of an allocation that reaches over the end of a chunk. Programs
 * may only read this part.
 */
static void run_part(struct run *r)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_va_reserve range;
	struct flexmem_alloc reply;
	u64 physical, space;

	open_file(r, 0);
	alloc_by(r, CMD(alloc, .length = 5 * PAGE, .alignment = PAGE,
			       .domains = 7,
			       .policy = FLEXMEM_POLICY_INTERLEAVE), 0, &reply);
	range = reserve(r, 0, 3 * PAGE, 0);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = reply.out_handle,
			      .access = FLEXMEM_VA_READ,
			      .address = range.out_address, .offset = PAGE,
			      .length = 3 * PAGE));
	space = space_of(r, 0);
	chunks(r, entry);
	must(r, entry[0].length == 2 * PAGE, "first chunk");
	must(r, world_translate(1, space, range.out_address, FLEXMEM_VM_READ,
				&physical) &&
	     physical == base_of_slot(entry[0].address.region_id) +
			 entry[0].address.offset + PAGE, "second page");
	must(r, world_translate(1, space, range.out_address + PAGE,
				FLEXMEM_VM_READ, &physical) &&
	     physical == base_of_slot(entry[1].address.region_id) +
			 entry[1].address.offset, "second chunk");
	must(r, !reaches(space, range.out_address, &physical), "access");
}

/* Calls the commands on a file that has no space. */
static void run_no_space(struct run *r)
{
	u32 handle;

	open_file(r, 0);
	handle = alloc(r, 0, PAGE, 0);
	FAILS(r, VA_FREE, &CMD(va_free, .address = SIM_VM_START), ENOENT);
	FAILS(r, VA_UNBIND, &CMD(va_unbind, .address = SIM_VM_START), ENOENT);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup, .address = SIM_VM_START), ENOENT);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup, .handle = handle), ENOENT);
	FAILS(r, VA_BIND, &CMD(va_bind, .handle = handle, .access = ALL,
			       .address = SIM_VM_START, .length = PAGE), ENXIO);
	must(r, !space_of(r, 0), "no space");
}

static void run_read_only(struct run *r)
{
	struct file *file = native_open(world_minor(1), O_RDONLY);

	if (!run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		return;
	r->file[0] = file;
	FAILS(r, VA_RESERVE, &CMD(va_reserve, .length = PAGE), EBADF);
	FAILS(r, VA_FREE, &CMD(va_free), EBADF);
	FAILS(r, VA_BIND, &CMD(va_bind), EBADF);
	FAILS(r, VA_UNBIND, &CMD(va_unbind), EBADF);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup), ENOENT);
}

/*
 * If the caller cannot learn the addresses, because the reply of VA_RESERVE
 * cannot be written, they are free again.
 */
static void run_lost_reply(struct run *r)
{
	const struct flexmem_va_reserve cmd = CMD(va_reserve, .length = PAGE);
	void *user = native_user() + NATIVE_USER_READ_ONLY;

	open_file(r, 0);
	memcpy(user, &cmd, sizeof(cmd));
	FAILS(r, VA_RESERVE, user, EFAULT);
	reserve(r, 0, PAGE, 0);
}

static void run_info(struct run *r)
{
	struct flexmem_info info = CMD(info);

	open_file(r, 0);
	CALL(r, INFO, &info);
	must(r, info.out_capabilities & FLEXMEM_CAP_PAGE_TABLES &&
	     info.out_va_page == PAGE && info.out_va_start == SIM_VM_START &&
	     info.out_va_length == SIM_VM_END - SIM_VM_START, "addresses");
}

static void run_refused(struct run *r)
{
	struct flexmem_va_reserve all = CMD(va_reserve,
		.length = SIM_VM_END - SIM_VM_START + 1);
	struct flexmem_va_reserve range;
	u32 handle;

	open_file(r, 0);
	FAILS(r, VA_RESERVE, &CMD(va_reserve), EINVAL);
	FAILS(r, VA_RESERVE, &CMD(va_reserve, .flags = 1, .length = 1),
	      EOPNOTSUPP);
	FAILS(r, VA_RESERVE, &all, ENOSPC);
	must(r, all.out_largest_free == SIM_VM_END - SIM_VM_START &&
	     !all.out_address, "largest free range");
	FAILS(r, VA_FREE, &CMD(va_free, .flags = 1), EOPNOTSUPP);
	FAILS(r, VA_UNBIND, &CMD(va_unbind, .flags = 1), EOPNOTSUPP);
	FAILS(r, VA_UNBIND, &CMD(va_unbind), ENOENT);
	FAILS(r, VA_BIND, &CMD(va_bind, .flags = 1), EOPNOTSUPP);
	FAILS(r, VA_BIND, &CMD(va_bind, .handle = 5), ENOENT);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup, .flags = 1), EOPNOTSUPP);
	reserve(r, 0, 1, 0);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup, .offset = 1), EINVAL);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup, .handle = 1, .address = 1), EINVAL);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup, .handle = 5), ENOENT);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup), ENOENT);
	range = reserve(r, 0, 1, 1);
	handle = alloc(r, 0, 128, 0);
	FAILS(r, VA_BIND, &CMD(va_bind, .handle = handle, .access = ALL,
			       .address = range.out_address, .length = PAGE),
	      EINVAL);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup, .handle = handle), ENOENT);
}

/* Makes one more binding than the card's page table has room for. */
static void run_full_table(struct run *r)
{
	struct flexmem_va_reserve range;
	unsigned int i;
	u32 handle;

	open_file(r, 0);
	handle = alloc(r, 0, (SIM_MAX_MAPPINGS + 1) * PAGE, 0);
	range = reserve(r, 0, (SIM_MAX_MAPPINGS + 1) * PAGE, 0);
	for (i = 0; i <= SIM_MAX_MAPPINGS; i++)
		FAILS(r, VA_BIND,
		      &CMD(va_bind, .handle = handle, .access = ALL,
			   .address = range.out_address + i * PAGE,
			   .offset = i * PAGE, .length = PAGE),
		      i < SIM_MAX_MAPPINGS ? 0 : ENOSPC);
}

/* Runs a program in the space of a file, which must end with @error. */
static void run_in_space(struct run *r, unsigned int f, struct sim_run run,
			 int error)
{
	struct dma_fence *fence;
	int status;

	run.fd = WORLD_FD;
	run.flags = SIM_RUN_VIRTUAL;
	if (!run_good(r, "run", world_run(r->file[f], &run, &fence), 0))
		return;
	dma_fence_wait(fence, false);
	status = dma_fence_get_status(fence);
	must(r, status == (error ? -error : 1) || status == -ENOMEM,
	     "the program's result");
	dma_fence_put(fence);
}

static void fill(struct run *r, unsigned int f, u64 address, u64 size, u8 value,
		 int error)
{
	run_in_space(r, f, (struct sim_run) {
		.program = SIM_PROGRAM_FILL,
		.to_offset = address,
		.size = size,
		.value = value,
	}, error);
}

/* Checks the bytes at both ends of a page boundary. */
static void must_hold(struct run *r, u32 handle, u64 offset, u8 before,
		      u8 after)
{
	u8 *data = native_user();
	struct flexmem_rw cmd = CMD(rw, .handle = handle, .offset = offset - 1,
				    .length = 2, .data = (uintptr_t)data);

	if (CALL(r, READ, &cmd))
		must(r, data[0] == before && data[1] == after, "bytes");
}

/*
 * A program reaches what is bound in its client's space, chunk by chunk, and
 * faults everywhere else.
 */
static void run_programs(struct run *r)
{
	struct flexmem_va_reserve range;
	struct flexmem_alloc reply;
	struct sim_run run = { .program = SIM_PROGRAM_ADD };
	struct dma_fence *fence;

	open_file(r, 0);
	open_file(r, 1);
	fill(r, 0, SIM_VM_START, 1, 1, EFAULT);
	alloc_by(r, CMD(alloc, .length = 5 * PAGE, .alignment = PAGE,
			       .domains = 7, .flags = FLEXMEM_ALLOC_ZEROED,
			       .policy = FLEXMEM_POLICY_INTERLEAVE), 0, &reply);
	range = reserve(r, 0, 6 * PAGE, 0);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = reply.out_handle,
			      .access = ALL, .address = range.out_address,
			      .length = 5 * PAGE));
	fill(r, 0, range.out_address + 100, 2 * PAGE, 3, 0);
	must_hold(r, reply.out_handle, 100, 0, 3);
	must_hold(r, reply.out_handle, 2 * PAGE, 3, 3);
	must_hold(r, reply.out_handle, 2 * PAGE + 100, 3, 0);
	run.to_offset = range.out_address + 3 * PAGE - 5;
	run.from_offset = range.out_address + PAGE;
	run.size = 10;
	run_in_space(r, 0, run, 0);
	must_hold(r, reply.out_handle, 3 * PAGE, 3, 3);
	must_hold(r, reply.out_handle, 3 * PAGE + 5, 3, 0);
	/* The last page of the range is not bound. */
	fill(r, 0, range.out_address + 5 * PAGE - 1, 2, 4, EFAULT);
	fill(r, 1, range.out_address, 1, 5, EFAULT);
	reserve(r, 1, 6 * PAGE, 0);
	fill(r, 1, range.out_address, 1, 5, EFAULT);
	CALL(r, VA_UNBIND, &CMD(va_unbind, .address = range.out_address));
	fill(r, 0, range.out_address, 1, 6, EFAULT);
	must_hold(r, reply.out_handle, 1, 0, 0);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = reply.out_handle,
			      .access = FLEXMEM_VA_READ,
			      .address = range.out_address,
			      .length = 5 * PAGE));
	run_in_space(r, 0, run, EFAULT);
	run.fd = WORLD_FD;
	run.flags = SIM_RUN_VIRTUAL;
	run.from = reply.out_handle;
	run_good(r, "run", world_run(r->file[0], &run, &fence), EINVAL);
	run.from = 0;
	run.from_offset = U64_MAX;
	run_good(r, "run", world_run(r->file[0], &run, &fence), EINVAL);
}

static void must_be_counted(struct run *r)
{
	struct flexmem_file *private = r->file[0]->private_data;

	must(r, private->client.space->nr_bindings == 1, "binding is counted");
}

/*
 * A binding counts until its memory is freed: as long as one counts, close()
 * waits for the worker, which ends the VA_UNBIND of a killed caller.
 */
static void run_late_count(struct run *r)
{
	struct flexmem_va_reserve range;
	u32 handle;

	open_file(r, 0);
	handle = alloc(r, 0, PAGE, 0);
	range = reserve(r, 0, PAGE, 0);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = handle, .access = ALL,
			      .address = range.out_address, .length = PAGE));
	CALL(r, FREE, &CMD(free, .handle = handle));
	r->nr[0]--;
	run_after_free(r, must_be_counted);
	CALL(r, VA_UNBIND, &CMD(va_unbind, .address = range.out_address));
	must(r, ran_after_free(), "memory is freed");
}

static void refuse_unmap(unsigned int times)
{
	WRITE_ONCE(world.card.mbox.fault_command, times ? SIM_VM_UNMAP : SIM_ANY);
	world_faults(SIM_FAIL_COMMANDS, times);
}

/*
 * Closes a file. The firmware refuses @times times to unmap the file's space.
 * Returns the number of the space, in which the first page is mapped.
 */
static u64 close_in_vain(struct run *r, unsigned int times)
{
	u64 physical, space;
	u32 handle;

	open_file(r, 0);
	handle = alloc(r, 0, PAGE, 0);
	reserve(r, 0, PAGE, 0);
	CALL(r, VA_BIND, &CMD(va_bind, .handle = handle, .access = ALL,
			      .address = SIM_VM_START, .length = PAGE));
	space = space_of(r, 0);
	refuse_unmap(times);
	native_close(r->file[0]);
	r->file[0] = NULL;
	r->nr[0] = 0;
	must(r, reaches(space, SIM_VM_START, &physical), "space that is closed");
	return space;
}

/* The worker tries again until the firmware has unmapped the space. */
static void run_closed(struct run *r)
{
	u64 physical, space = close_in_vain(r, 3);

	msleep(60000);
	native_settle_work();
	must(r, !reaches(space, SIM_VM_START, &physical),
	     "space that was unmapped");
	refuse_unmap(0);
}

static void run_closed_trim(struct run *r)
{
	u64 physical, space = close_in_vain(r, 1);

	open_file(r, 0);
	CALL(r, TRIM, &CMD(trim));
	must(r, !reaches(space, SIM_VM_START, &physical), "space after TRIM");
	refuse_unmap(0);
}

const struct sequence space_corners[] = {
	{ "space: bind", NULL, run_bind },
	{ "space: a part", NULL, run_part },
	{ "space: two files", NULL, run_two_files },
	{ "space: none", NULL, run_no_space },
	{ "space: read only", NULL, run_read_only },
	{ "space: lost reply", NULL, run_lost_reply },
	{ "space: INFO", NULL, run_info },
	{ "space: refused requests", NULL, run_refused },
	{ "space: full page table", NULL, run_full_table },
	{ "space: count of bindings", NULL, run_late_count },
	{ "space: programs", NULL, run_programs },
	{ "space: a closed space", NULL, run_closed },
	{ "space: TRIM after close()", NULL, run_closed_trim },
	{}
};
