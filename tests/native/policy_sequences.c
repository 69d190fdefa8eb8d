// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences of calls for the tests with faults and with interference, on a card
 * with several memories: allocations whose policy names memories. sequences.c
 * describes how a sequence goes on after a failure.
 */
#include "shim/internal.h"

#include "faults.h"

#define TCM 2
#define TCM_SIZE (SZ_1M - SZ_128K)
#define DEVICE_MEMORIES (BIT(0) | BIT(1))

#define CALL(r, NAME, cmd, error)					\
	run_good(r, #NAME, run_call(r, 0, #NAME, FLEXMEM_IOCTL_##NAME,	\
				    cmd), error)

static u8 data[3 * SZ_1K], copy[3 * SZ_1K];

static void prepare_open(struct run *r)
{
	struct file *file = native_open(world_minor(1), O_RDWR | O_NONBLOCK);

	if (run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		r->file[0] = file;
}

static void keep(struct run *r, u32 handle)
{
	r->handle[0][r->nr[0]++] = handle;
}

static u32 last(struct run *r)
{
	return r->handle[0][r->nr[0] - 1];
}

/* All chunks of the last allocation must be in @memories. */
static void must_be_in(struct run *r, u32 memories)
{
	struct flexmem_chunk_entry entry[TCM + 1];
	struct flexmem_lookup lookup = CMD(lookup, .handle = last(r),
					   .entry_size = sizeof(entry[0]),
					   .count = ARRAY_SIZE(entry),
					   .entries = (uintptr_t)entry);
	unsigned int i;

	if (!CALL(r, LOOKUP, &lookup, 0))
		return;
	for (i = 0; i < lookup.out_count; i++)
		must(r, BIT(entry[i].domain) & memories, "memory of a chunk");
}

/* Makes an allocation whose chunks are all in @memories. */
static bool place(struct run *r, u32 memories, struct flexmem_alloc cmd)
{
	if (!CALL(r, ALLOC, &cmd, 0))
		return false;
	keep(r, cmd.out_handle);
	must_be_in(r, memories);
	return true;
}

/* The memory is full, so ALLOC fails unless another task frees memory. */
static void refuse(struct run *r, struct flexmem_alloc cmd)
{
	if (!CALL(r, ALLOC, &cmd, ENOMEM) && cmd.out_handle)
		keep(r, cmd.out_handle);
}

static bool free_last(struct run *r)
{
	struct flexmem_free cmd = CMD(free, .handle = last(r));
	bool done = CALL(r, FREE, &cmd, 0);

	if (done)
		r->nr[0]--;
	return done;
}

static struct flexmem_alloc policy(u32 policy, u32 domains, u64 length)
{
	return CMD(alloc, .policy = policy, .domains = domains,
			  .length = length);
}

static void run_bind(struct run *r)
{
	if (!place(r, BIT(TCM), policy(FLEXMEM_POLICY_BIND, BIT(TCM), 1000)) ||
	    !place(r, BIT(TCM), policy(FLEXMEM_POLICY_BIND, BIT(TCM),
				       TCM_SIZE - SZ_1K)))
		return;
	refuse(r, policy(FLEXMEM_POLICY_BIND, BIT(TCM), 1000));
	if (free_last(r))
		place(r, BIT(TCM) | BIT(1), policy(FLEXMEM_POLICY_BIND,
						   BIT(TCM) | BIT(1), SZ_1M));
}

/* The small memory is full after the first ALLOC. */
static void run_preferred(struct run *r)
{
	const u32 either = BIT(TCM) | DEVICE_MEMORIES;

	if (place(r, either, policy(FLEXMEM_POLICY_PREFERRED, BIT(TCM),
				    TCM_SIZE)))
		place(r, either, policy(FLEXMEM_POLICY_PREFERRED, BIT(TCM),
					1000));
}

static bool move(struct run *r, bool write, void *bytes)
{
	struct flexmem_rw cmd = CMD(rw, .handle = last(r),
				      .length = sizeof(data),
				      .data = (uintptr_t)bytes);

	return write ? CALL(r, WRITE, &cmd, 0) : CALL(r, READ, &cmd, 0);
}

/* Each of the three chunks has a third of the bytes. */
static void run_interleave(struct run *r)
{
	struct flexmem_alloc cmd = policy(FLEXMEM_POLICY_INTERLEAVE,
					  BIT(TCM) | DEVICE_MEMORIES,
					  sizeof(data));
	unsigned int i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = 1 + i % 251;
	cmd.flags = FLEXMEM_ALLOC_ZEROED;
	if (!place(r, BIT(TCM) | DEVICE_MEMORIES, cmd) || !move(r, true, data))
		return;
	if (move(r, false, copy) && memcmp(data, copy, sizeof(data)))
		run_wrong(r, "READ of other bytes than WRITE", "READ", 0);
	free_last(r);
}

/* Leaves 128 bytes of the small memory. */
static void prepare_small(struct run *r)
{
	prepare_open(r);
	place(r, BIT(TCM), policy(FLEXMEM_POLICY_BIND, BIT(TCM),
				  TCM_SIZE - 128));
}

/* The last chunk finds no room, so the driver frees the two before it. */
static void run_interleave_full(struct run *r)
{
	const u32 all = BIT(TCM) | DEVICE_MEMORIES;

	refuse(r, policy(FLEXMEM_POLICY_INTERLEAVE, all, 6 * 128));
	place(r, all, policy(FLEXMEM_POLICY_INTERLEAVE, all, 3 * 128));
}

const struct sequence policy_sequences[] = {
	{ "policy: bind", prepare_open, run_bind },
	{ "policy: preferred", prepare_open, run_preferred },
	{ "policy: interleave", prepare_open, run_interleave },
	{ "policy: interleave, and the last chunk has no room", prepare_small,
	  run_interleave_full },
	{}
};
