// SPDX-License-Identifier: GPL-2.0
/*
 * Policies of a tenant's allocations, on a card with several memories. Before
 * an ALLOC a tenant draws a policy. Afterwards it checks the chunks: their
 * number, their memories, and their bytes. A card with one memory has no
 * policies to draw, so the same seed makes the same calls there as before.
 */
#include "shim/internal.h"

#include "torture.h"

#define ALL_MEMORIES (BIT(TORTURE_MEMORIES) - 1)
/* The ABI's default: an allocation that names no domain comes from these. */
#define DEVICE_MEMORIES (BIT(0) | BIT(1))
#define MOST_CHUNKS 8

/**
 * tenant_draw_policy - choose a policy, if the card has several memories
 * @t: tenant, run by the current task
 * @cmd: a request without a policy
 */
void tenant_draw_policy(struct tenant *t, struct flexmem_alloc *cmd)
{
	static const u32 policies[] = {
		FLEXMEM_POLICY_DEFAULT, FLEXMEM_POLICY_BIND,
		FLEXMEM_POLICY_PREFERRED, FLEXMEM_POLICY_INTERLEAVE,
	};

	if (!torture_memories)
		return;
	cmd->policy = policies[draw(t, ARRAY_SIZE(policies))];
	if (cmd->policy == FLEXMEM_POLICY_INTERLEAVE)
		cmd->domains = ALL_MEMORIES & ~BIT(draw(t, TORTURE_MEMORIES + 1));
	else if (cmd->policy != FLEXMEM_POLICY_DEFAULT)
		cmd->domains = 1 + draw(t, ALL_MEMORIES);
}

/* The memories that a request may get chunks in. */
static u32 allowed(const struct flexmem_alloc *cmd)
{
	switch (cmd->policy) {
	case FLEXMEM_POLICY_DEFAULT:
		return DEVICE_MEMORIES;
	case FLEXMEM_POLICY_PREFERRED:
		return cmd->domains | DEVICE_MEMORIES;
	default:
		return cmd->domains ?: DEVICE_MEMORIES;
	}
}

static u32 most_chunks(const struct flexmem_alloc *cmd)
{
	return cmd->policy == FLEXMEM_POLICY_INTERLEAVE ?
	       hweight32(cmd->domains) : 1;
}

static void check_places(struct tenant *t, const struct flexmem_alloc *cmd,
			 const struct flexmem_chunk_entry *entry)
{
	bool in_order = cmd->policy == FLEXMEM_POLICY_INTERLEAVE;
	u32 left = allowed(cmd), i;
	u64 size = 0;

	for (i = 0; i < cmd->out_chunks; i++) {
		if (!((in_order ? left & -left : left) & BIT(entry[i].domain)))
			shim_bug("tenant %u: policy %u: chunk %u is in memory %u",
				 t->number, cmd->policy, i, entry[i].domain);
		if (in_order)
			left &= left - 1;
		size += entry[i].length;
	}
	if (size != cmd->out_size)
		shim_bug("tenant %u: the chunks have other bytes than the allocation",
			 t->number);
}

/*
 * Accesses the bytes around the end of the first chunk. No other task writes
 * them.
 */
static void check_border(struct tenant *t, u32 handle, u64 border)
{
	u8 *data = native_user();
	struct flexmem_rw cmd = CMD(rw, .handle = handle, .length = 128,
				      .offset = border - 64,
				      .data = (uintptr_t)data);

	if (!CALL(t, READ, &cmd))
		tenant_check_bytes(t, data, cmd.length);
	memset(data, t->file->tag, cmd.length);
	if (CALL(t, WRITE, &cmd))
		return;
	memset(data, 0, cmd.length);
	if (!CALL(t, READ, &cmd) &&
	    memchr_inv(data, t->file->tag, cmd.length))
		shim_bug("tenant %u: READ of other bytes than WRITE at the end of a chunk",
			 t->number);
}

/**
 * tenant_check_chunks - check a new allocation, if the card has several memories
 * @t: tenant, run by the current task
 * @cmd: request and answer; no other task knows the handle yet
 */
void tenant_check_chunks(struct tenant *t, const struct flexmem_alloc *cmd)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_lookup lookup = CMD(lookup, .handle = cmd->out_handle,
					   .entry_size = sizeof(entry[0]),
					   .count = MOST_CHUNKS,
					   .entries = (uintptr_t)entry);
	long rc;

	if (!torture_memories)
		return;
	if (!cmd->out_chunks || cmd->out_chunks > most_chunks(cmd))
		shim_bug("tenant %u: policy %u: %u chunks", t->number,
			 cmd->policy, cmd->out_chunks);
	rc = CALL(t, LOOKUP, &lookup);
	ANSWER(t, "LOOKUP", rc, tenant_gone_by_address(t));
	if (rc)
		return;
	if (lookup.out_count != cmd->out_chunks)
		shim_bug("ALLOC and LOOKUP return different numbers of chunks");
	check_places(t, cmd, entry);
	if (cmd->out_chunks > 1)
		check_border(t, cmd->out_handle, entry[0].length);
}
