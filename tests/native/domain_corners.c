// SPDX-License-Identifier: GPL-2.0
/*
 * A card with several memories (domains): what the command DOMAIN reports, and
 * from which memory allocations come.
 */
#include "shim/internal.h"

#include "corners.h"

#define NR_DOMAINS 4
#define TCM 2

static void prepare_file(struct run *r)
{
	open_file(r, 0);
}

static struct flexmem_domain_info domain(struct run *r, u32 id)
{
	struct flexmem_domain_info cmd = CMD(domain_info, .domain = id,
					     .out_flags = 7, .out_regions = 7,
					     .out_free = 7);

	CALL(r, DOMAIN, &cmd);
	return cmd;
}

/*
 * DOMAIN reports what the card's driver says about each memory, and its size.
 */
static void run_describe(struct run *r)
{
	static const struct {
		u64 granule, capacity, set_aside, size;
	} want[NR_DOMAINS] = {
		{ SZ_2M, SZ_16M, SZ_2M, SZ_8M },
		{ SZ_2M, SZ_16M, SZ_2M, SZ_8M },
		{ SZ_64K, SZ_1M - SZ_128K, SZ_128K, SZ_1M - SZ_128K },
		{ SZ_2M, SZ_4M, 0, SZ_4M },
	};
	static const enum flexmem_domain_type types[NR_DOMAINS] = {
		FLEXMEM_DOMAIN_DEVICE, FLEXMEM_DOMAIN_DEVICE,
		FLEXMEM_DOMAIN_ON_CHIP, FLEXMEM_DOMAIN_HOST_VISIBLE,
	};
	struct flexmem_domain_info is;
	u32 i;

	for (i = 0; i < NR_DOMAINS; i++) {
		is = domain(r, i);
		must(r, is.domain == i && !is.out_flags &&
		     is.out_nr_domains == NR_DOMAINS && is.out_type == types[i],
		     "identity of a domain");
		must(r, is.out_nr_sizes == 1 && is.out_sizes[0] == want[i].size &&
		     !is.out_sizes[1] && is.out_max_region == want[i].size,
		     "region sizes of a domain");
		must(r, is.out_granule == want[i].granule &&
		     is.out_capacity == want[i].capacity &&
		     is.out_set_aside == want[i].set_aside,
		     "capacity of a domain");
		must(r, !is.out_regions && !is.out_total && !is.out_free &&
		     !is.out_largest_free, "a domain without a region");
	}
}

static void run_wrong_domain(struct run *r)
{
	FAILS(r, DOMAIN, &CMD(domain_info, .domain = NR_DOMAINS), EINVAL);
	FAILS(r, DOMAIN, &CMD(domain_info, .domain = FLEXMEM_DOMAIN_ALL - 1),
	      EINVAL);
	FAILS(r, DOMAIN, &CMD(domain_info, .flags = 1), EOPNOTSUPP);
}

static void must_be_used(struct run *r, u32 id, u32 regions, u64 total,
			 u64 free, u64 largest, u32 flags)
{
	struct flexmem_domain_info is = domain(r, id);

	must(r, is.out_regions == regions, "number of regions of a domain");
	must(r, is.out_total == total && is.out_free == free &&
	     is.out_largest_free == largest, "bytes of a domain");
	must(r, is.out_flags == flags, "flags of a domain");
}

/* DOMAIN reports separate figures for each domain. */
static void run_figures(struct run *r)
{
	struct flexmem_free hole;
	u32 handle;

	alloc(r, 0, SZ_4M, 0);
	handle = alloc(r, 0, SZ_2M, 0);
	alloc(r, 0, SZ_1M, 0);
	must_be_used(r, 0, 1, SZ_8M, SZ_1M, SZ_1M, 0);
	hole = CMD(free, .handle = handle);
	if (CALL(r, FREE, &hole))
		r->handle[0][1] = r->handle[0][--r->nr[0]];
	must_be_used(r, 0, 1, SZ_8M, 3 * SZ_1M, SZ_2M, 0);
	must_be_used(r, 1, 0, 0, 0, 0, 0);
	alloc(r, 0, SZ_8M, 0);
	alloc(r, 0, SZ_8M, 0);
	must_be_used(r, 0, 2, SZ_16M, 3 * SZ_1M, SZ_2M,
		     FLEXMEM_REPORT_EXHAUSTED | FLEXMEM_REPORT_PROGRAM_EXHAUSTED);
	must_be_used(r, 1, 1, SZ_8M, 0, 0, 0);
	must_be_used(r, TCM, 0, 0, 0, 0, 0);
	must_be_used(r, FLEXMEM_DOMAIN_ALL, 3, SZ_16M + SZ_8M, 3 * SZ_1M, SZ_2M,
		     0);
}

/* Each region in a snapshot names its domain. */
static void run_regions(struct run *r)
{
	struct flexmem_region_entry region[8];
	struct flexmem_snapshot cmd = CMD(snapshot, .region_count = 8,
		.region_entry_size = sizeof(region[0]),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));
	static const u32 want[] = { 0, 0, 1, 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(want); i++)
		alloc(r, 0, SZ_8M, 0);
	CALL(r, SNAPSHOT, &cmd);
	must(r, cmd.out_region_count == ARRAY_SIZE(want), "number of regions");
	for (i = 0; i < ARRAY_SIZE(want); i++)
		must(r, region[i].domain == want[i] && !region[i].__reserved,
		     "domain of a region");
}

/*
 * If device memory is full, an ALLOC without a choice of domains fails,
 * although other memories have room.
 */
static void run_full(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 128);
	struct flexmem_region_entry region[4];
	struct flexmem_snapshot snapshot = CMD(snapshot, .region_count = 4,
		.region_entry_size = sizeof(region[0]),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));
	unsigned int i;

	for (i = 0; i < 4; i++)
		alloc(r, 0, SZ_8M, 0);
	FAILS(r, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_reason == FLEXMEM_REASON_CAPACITY &&
	     cmd.out_regions == 4, "reason of a full device memory");
	CALL(r, SNAPSHOT, &snapshot);
	must(r, snapshot.out_flags & FLEXMEM_REPORT_EXHAUSTED,
	     "a device memory that is full is exhausted");
	must_be_used(r, TCM, 0, 0, 0, 0, 0);
	must_be_used(r, TCM + 1, 0, 0, 0, 0, 0);
}

static void bind(struct run *r, u32 domains, u64 length, int error,
		 struct flexmem_alloc *reply)
{
	alloc_by(r, CMD(alloc, .length = length, .domains = domains,
			       .policy = FLEXMEM_POLICY_BIND), error, reply);
}

static void prefer(struct run *r, u32 domains, u64 length, int error,
		   struct flexmem_alloc *reply)
{
	alloc_by(r, CMD(alloc, .length = length, .domains = domains,
			       .policy = FLEXMEM_POLICY_PREFERRED), error, reply);
}

/* Allocations that are bound to a domain use no other domain. */
static void run_bind(struct run *r)
{
	struct flexmem_alloc reply;

	bind(r, BIT(TCM), 128, 0, &reply);
	must_be_used(r, TCM, 1, SZ_1M - SZ_128K, SZ_1M - SZ_128K - 128,
		     SZ_1M - SZ_128K - 128, 0);
	bind(r, BIT(1), SZ_8M, 0, &reply);
	bind(r, BIT(1), SZ_8M, 0, &reply);
	must_be_used(r, 0, 0, 0, 0, 0, 0);
	/* The domain is full, so ALLOC fails although domain 0 has room. */
	bind(r, BIT(1), 128, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_CAPACITY &&
	     !reply.out_total_free && !reply.out_largest_free &&
	     reply.out_max_region == SZ_8M && reply.out_regions == 3,
	     "answer for a full domain");
	/* An allocation bound to two domains comes from the one with room. */
	bind(r, BIT(0) | BIT(1), SZ_4M, 0, &reply);
	must_be_used(r, 0, 1, SZ_8M, SZ_4M, SZ_4M, 0);
	/*
	 * Room in an existing region of a higher domain is used before a new
	 * region is acquired.
	 */
	bind(r, BIT(TCM) | BIT(TCM + 1), 256, 0, &reply);
	must_be_used(r, TCM, 1, SZ_1M - SZ_128K, SZ_1M - SZ_128K - 384,
		     SZ_1M - SZ_128K - 384, 0);
	must_be_used(r, TCM + 1, 0, 0, 0, 0, 0);
}

/*
 * A request is too large if it exceeds the largest region of its domains, even
 * if another domain has a larger region.
 */
static void run_bind_size(struct run *r)
{
	struct flexmem_alloc reply;

	bind(r, BIT(TCM), SZ_1M, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_REGION_SIZE &&
	     reply.out_max_region == SZ_1M - SZ_128K && !reply.out_regions,
	     "more than a domain has");
	bind(r, BIT(TCM) | BIT(TCM + 1), SZ_2M, 0, &reply);
	must_be_used(r, TCM + 1, 1, SZ_4M, SZ_2M, SZ_2M, 0);
}

/*
 * A request that is larger than any region of its domain is refused before
 * anything is charged.
 */
static void run_bind_charge(struct run *r)
{
	struct flexmem_resource_limit limit = CMD(resource_limit,
		.cgroup = cgroup_id(native_cgroup_root), .limit = SZ_64K);
	struct flexmem_alloc reply;

	CALL(r, SET_LIMIT, &limit);
	bind(r, BIT(TCM), SZ_1M, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_REGION_SIZE,
	     "more than a domain has, with a limit");
	/* The region of another domain has free bytes. */
	alloc_by(r, CMD(alloc, .length = 128), 0, &reply);
	bind(r, BIT(TCM), SZ_128K, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_CGROUP_LIMIT &&
	     !reply.out_total_free &&
	     reply.out_max_region == SZ_1M - SZ_128K, "limit");
}

static void run_bind_wrong(struct run *r)
{
	struct flexmem_alloc reply;

	bind(r, 0, 128, EINVAL, &reply);
	bind(r, BIT(NR_DOMAINS), 128, EINVAL, &reply);
	bind(r, BIT(0) | BIT(31), 128, EINVAL, &reply);
	must(r, reply.out_error == EINVAL && !reply.out_handle &&
	     !reply.out_reason && reply.out_size == 128, "answer for EINVAL");
	FAILS(r, ALLOC, &CMD(alloc, .length = 128, .domains = 1), EINVAL);
	FAILS(r, ALLOC, &CMD(alloc, .length = 128, .policy = 77, .domains = 1),
	      EOPNOTSUPP);
}

/* Each entry of a batch has a policy of its own. */
static void run_bind_batch(struct run *r)
{
	struct flexmem_alloc entry[] = {
		CMD(alloc, .length = 128, .policy = FLEXMEM_POLICY_BIND,
			   .domains = BIT(TCM)),
		CMD(alloc, .length = 128),
		CMD(alloc, .length = 128, .policy = FLEXMEM_POLICY_BIND),
	};
	struct flexmem_batch cmd = CMD(batch, .entry_size = sizeof(entry[0]),
				       .count = ARRAY_SIZE(entry),
				       .entries = (uintptr_t)entry);

	CALL(r, ALLOC_BATCH, &cmd);
	must(r, cmd.out_done == 3 && !entry[0].out_error &&
	     !entry[1].out_error && entry[2].out_error == EINVAL,
	     "results of a batch");
	r->handle[0][r->nr[0]++] = entry[0].out_handle;
	r->handle[0][r->nr[0]++] = entry[1].out_handle;
	must(r, domain(r, TCM).out_regions == 1 &&
	     domain(r, 0).out_regions == 1, "domains of a batch");
}

/* All domains share the slots. */
static void run_bind_slots(struct run *r)
{
	struct flexmem_alloc reply;
	unsigned int i;

	for (i = 0; i < 4; i++)
		alloc(r, 0, SZ_8M, 0);
	bind(r, BIT(TCM + 1), 128, 0, &reply);
	bind(r, BIT(TCM), 128, 0, &reply);
	bind(r, BIT(TCM), SZ_1M - SZ_128K, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_MAX_REGIONS,
	     "reason of a full table");
}

/*
 * If its preferred domains are full, a request gets device memory. Host memory
 * serves only requests that name its domain.
 */
static void run_prefer(struct run *r)
{
	struct flexmem_alloc reply;
	unsigned int i;

	prefer(r, BIT(TCM), SZ_1M - SZ_128K - 128, 0, &reply);
	prefer(r, BIT(TCM), 128, 0, &reply);
	must_be_used(r, TCM, 1, SZ_1M - SZ_128K, 0, 0, 0);
	prefer(r, BIT(1), SZ_4M, 0, &reply);
	must_be_used(r, 1, 1, SZ_8M, SZ_4M, SZ_4M, 0);
	prefer(r, BIT(TCM), SZ_4M, 0, &reply);
	must_be_used(r, 1, 1, SZ_8M, 0, 0, 0);
	must_be_used(r, 0, 0, 0, 0, 0, 0);
	for (i = 0; i < 3; i++)
		prefer(r, BIT(TCM) | BIT(1), SZ_8M, 0, &reply);
	must_be_used(r, 0, 2, SZ_16M, 0, 0, 0);
	prefer(r, BIT(TCM), 128, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_CAPACITY &&
	     !reply.out_total_free && reply.out_max_region == SZ_8M &&
	     reply.out_regions == 5, "answer for full domains");
	/* This request takes the last slot. */
	prefer(r, BIT(TCM) | BIT(TCM + 1), 128, 0, &reply);
	must_be_used(r, TCM + 1, 1, SZ_4M, SZ_4M - 128, SZ_4M - 128,
		     FLEXMEM_REPORT_EXHAUSTED | FLEXMEM_REPORT_PROGRAM_EXHAUSTED);
}

static void run_prefer_wrong(struct run *r)
{
	struct flexmem_alloc reply;

	prefer(r, 0, 128, EINVAL, &reply);
	prefer(r, BIT(0) | BIT(NR_DOMAINS), 128, EINVAL, &reply);
}

static void interleave(struct run *r, u32 domains, u64 length, int error,
		       struct flexmem_alloc *reply)
{
	alloc_by(r, CMD(alloc, .length = length, .domains = domains,
			       .policy = FLEXMEM_POLICY_INTERLEAVE), error, reply);
}

/*
 * The chunks are in the order of the domains. All but the last have one size.
 */
static void run_interleave(struct run *r)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;

	interleave(r, BIT(TCM) | BIT(0) | BIT(1), 896, 0, &reply);
	must(r, reply.out_chunks == 3 && chunks(r, entry) == 3,
	     "number of chunks");
	must(r, entry[0].domain == 0 && entry[1].domain == 1 &&
	     entry[2].domain == TCM && entry[0].length == 384 &&
	     entry[1].length == 384 && entry[2].length == 128 &&
	     !entry[0].map_offset && !entry[2].map_offset, "chunks");
	/*
	 * A request that names no domain gets a chunk in each domain of device
	 * memory.
	 */
	interleave(r, 0, SZ_2M, 0, &reply);
	must(r, chunks(r, entry) == 2 && entry[0].domain == 0 &&
	     entry[1].domain == 1 && entry[1].length == SZ_1M &&
	     entry[1].address.offset == 384, "chunks in device memory");
	must_be_used(r, 0, 1, SZ_8M, SZ_8M - SZ_1M - 384, SZ_8M - SZ_1M - 384, 0);
	must_be_used(r, 1, 1, SZ_8M, SZ_8M - SZ_1M - 384, SZ_8M - SZ_1M - 384, 0);
	/* A small allocation has fewer chunks. */
	interleave(r, 0, 128, 0, &reply);
	must(r, chunks(r, entry) == 1 && entry[0].domain == 0, "one chunk");
	CALL(r, RESIZE, &CMD(resize, .handle = reply.out_handle,
			     .length = 256));
	interleave(r, 0, 256, 0, &reply);
	FAILS(r, RESIZE, &CMD(resize, .handle = reply.out_handle,
			      .length = 512), EOPNOTSUPP);
	must(r, chunks(r, entry) == 2 && entry[1].length == 128, "two chunks");
	FAILS(r, FREE, &CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS,
			    .address = entry[1].address), ENOENT);
	if (CALL(r, FREE, &CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS,
			       .address = entry[0].address)))
		r->nr[0]--;
}

/* If a chunk fails, the chunks before it are freed. */
static void run_interleave_full(struct run *r)
{
	struct flexmem_alloc reply;

	bind(r, BIT(TCM), SZ_1M - SZ_128K - 128, 0, &reply);
	bind(r, BIT(1), 128, 0, &reply);
	interleave(r, BIT(1) | BIT(TCM), 512, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_CAPACITY &&
	     reply.out_total_free == 128 && reply.out_largest_free == 128 &&
	     reply.out_max_region == SZ_1M - SZ_128K && reply.out_size == 512,
	     "answer for the chunk that failed");
	must_be_used(r, 1, 1, SZ_8M, SZ_8M - 128, SZ_8M - 128, 0);
	interleave(r, BIT(1) | BIT(TCM), 256, 0, &reply);
	must_be_used(r, TCM, 1, SZ_1M - SZ_128K, 0, 0,
		     FLEXMEM_REPORT_EXHAUSTED | FLEXMEM_REPORT_PROGRAM_EXHAUSTED);
}

static const char *name(struct dma_fence *fence)
{
	return "domains";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = name,
	.get_timeline_name = name,
};

static bool is_queued(struct flexmem_leaving *leaving)
{
	unsigned long flags;
	bool queued;

	spin_lock_irqsave(&leaving->lock, flags);
	queued = !list_empty(&leaving->queue);
	spin_unlock_irqrestore(&leaving->lock, flags);
	return queued;
}

/*
 * The worker ends what a file has freed in the file's turn.
 * @leaving: of the file's function
 * @account: of the file
 * @taken: the file's turn is taken
 * @met: the worker waits for the turn
 * @over: the ALLOC has ended
 */
struct turn {
	struct flexmem_leaving *leaving;
	struct flexmem_account *account;
	struct completion taken;
	bool met;
	bool over;
};

/* Takes the turn of a file until an ALLOC waits for the worker. */
static int keep_turn(void *data)
{
	struct turn *turn = data;

	mutex_lock(&turn->account->turn);
	complete(&turn->taken);
	while (!READ_ONCE(turn->over) &&
	       !(READ_ONCE(turn->met) && is_queued(turn->leaving)))
		msleep(20);
	mutex_unlock(&turn->account->turn);
	complete(&turn->taken);
	return 0;
}

/* File 1 frees all memory of a domain, and a program that uses it ends. */
static void leave(struct run *r, u32 id, struct turn *turn)
{
	struct flexmem_alloc all = CMD(alloc, .domains = BIT(id),
				       .length = domain(r, id).out_max_region,
				       .policy = FLEXMEM_POLICY_BIND);
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	struct flexmem_file *private = r->file[1]->private_data;
	struct flexmem_allocation *allocation;
	static DEFINE_SPINLOCK(lock);

	dma_fence_init(fence, &fence_ops, &lock, dma_fence_context_alloc(1), 1);
	BY(r, 1, ALLOC, &all, 0);
	allocation = flexmem_client_allocation(&private->client, all.out_handle);
	must(r, !flexmem_allocation_add_fence(allocation, fence), "fence");
	flexmem_allocation_put(allocation);
	BY(r, 1, FREE, &CMD(free, .handle = all.out_handle), 0);
	native_kthread_run(keep_turn, turn, "turn");
	wait_for_completion(&turn->taken);
	dma_fence_signal(fence);
	dma_fence_put(fence);
	/* The worker takes the file from the queue, and waits for its turn. */
	while (is_queued(turn->leaving))
		msleep(20);
	WRITE_ONCE(turn->met, true);
}

/*
 * The second chunk has no room until the worker has ended what another file has
 * freed. Then all chunks are tried again, each in its domain.
 */
static void run_interleave_again(struct run *r)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_file *private;
	struct flexmem_alloc reply;
	struct turn turn = {};

	open_file(r, 1);
	private = r->file[1]->private_data;
	turn.leaving = &private->fdev->table.leaving;
	turn.account = private->client.account;
	init_completion(&turn.taken);
	leave(r, TCM, &turn);
	must(r, !domain(r, TCM).out_free, "memory that is leaving");
	interleave(r, BIT(1) | BIT(TCM), 256, 0, &reply);
	WRITE_ONCE(turn.over, true);
	wait_for_completion(&turn.taken);
	must(r, chunks(r, entry) == 2 && entry[0].domain == 1 &&
	     entry[1].domain == TCM, "domains of the chunks");
}

/*
 * A request fails if a chunk would be larger than every region of its domain.
 */
static void run_interleave_small(struct run *r)
{
	struct flexmem_alloc reply;

	interleave(r, BIT(1) | BIT(TCM), SZ_2M, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_REGION_SIZE &&
	     reply.out_max_region == SZ_1M - SZ_128K, "small domain");
	must_be_used(r, 1, 1, SZ_8M, SZ_8M, SZ_8M, 0);
	must_be_used(r, TCM, 0, 0, 0, 0, 0);
}

static void run_interleave_wrong(struct run *r)
{
	struct flexmem_alloc reply;

	interleave(r, BIT(0), 256, EINVAL, &reply);
	interleave(r, BIT(0) | BIT(NR_DOMAINS), 256, EINVAL, &reply);
}

/* READ and WRITE go on in the next chunk. */
static void run_interleave_bytes(struct run *r)
{
	static u8 out[600], in[600];
	struct flexmem_alloc reply;
	unsigned int i;

	for (i = 0; i < sizeof(out); i++)
		out[i] = i % 251;
	interleave(r, BIT(0) | BIT(1) | BIT(TCM), sizeof(out), 0, &reply);
	CALL(r, WRITE, &CMD(rw, .handle = reply.out_handle,
			    .length = sizeof(out), .data = (uintptr_t)out));
	CALL(r, READ, &CMD(rw, .handle = reply.out_handle,
			   .length = sizeof(in), .data = (uintptr_t)in));
	must(r, !memcmp(out, in, sizeof(in)), "bytes of the chunks");
}

static void run_chunk_list(struct run *r)
{
	struct flexmem_chunk_entry entry[2] = {};
	struct flexmem_alloc reply;
	struct flexmem_lookup cmd;

	interleave(r, 0, 256, 0, &reply);
	cmd = CMD(lookup, .handle = reply.out_handle);
	CALL(r, LOOKUP, &cmd);
	must(r, cmd.out_count == 2, "number without a list");
	cmd.entries = (uintptr_t)entry;
	cmd.count = 1;
	FAILS(r, LOOKUP, &cmd, EINVAL);
	cmd.entry_size = sizeof(entry[0]) - 8;
	FAILS(r, LOOKUP, &cmd, EINVAL);
	cmd.entry_size = SZ_4K + 8;
	FAILS(r, LOOKUP, &cmd, EINVAL);
	cmd.entry_size = sizeof(entry[0]);
	cmd.out_count = 0;
	FAILS(r, LOOKUP, &cmd, EMSGSIZE);
	must(r, cmd.out_count == 2 && !entry[0].length, "list that is short");
	cmd.count = 2;
	CALL(r, LOOKUP, &cmd);
	must(r, entry[1].length == 128 && entry[1].domain == 1, "list");
	cmd.entries = 8;
	FAILS(r, LOOKUP, &cmd, EFAULT);
	cmd.handle++;
	FAILS(r, LOOKUP, &cmd, ENOENT);
}

/*
 * How often a region was searched for a hole. The linker redirects the calls of
 * flexmem_blocks_find() to the function below (--wrap).
 */
static unsigned int searches;
typeof(flexmem_blocks_find) __real_flexmem_blocks_find,
	__wrap_flexmem_blocks_find;

bool __wrap_flexmem_blocks_find(const struct flexmem_blocks *blocks, u64 size,
				u64 alignment, bool growable,
				struct flexmem_found *found)
{
	searches++;
	return __real_flexmem_blocks_find(blocks, size, alignment, growable,
					  found);
}

static void aligned(struct run *r, u64 length, u64 alignment, int error)
{
	struct flexmem_alloc reply;

	searches = 0;
	alloc_by(r, CMD(alloc, .length = length, .alignment = alignment,
			       .domains = BIT(TCM),
			       .policy = FLEXMEM_POLICY_BIND), error, &reply);
}

/*
 * The small domain has one region, with holes of 256 KiB at 128 KiB and at 512 KiB.
 * Only the second one is aligned to 256 KiB. Before a request fails, the region is
 * searched again, under the lock that keeps regions from being released.
 */
static void run_aligned_once(struct run *r)
{
	static const u32 size[] = { SZ_128K, SZ_256K, SZ_128K, SZ_256K };
	struct flexmem_alloc reply;
	u32 *handle = r->handle[0];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(size); i++)
		bind(r, BIT(TCM), size[i], 0, &reply);
	CALL(r, FREE, &CMD(free, .handle = handle[1]));
	CALL(r, FREE, &CMD(free, .handle = handle[3]));
	handle[1] = handle[2];
	r->nr[0] = 2;
	aligned(r, SZ_256K, SZ_256K, 0);
	must(r, searches == 1, "searches of a request that is served");
	aligned(r, SZ_256K, SZ_256K, ENOMEM);
	must(r, searches == 1, "searches of a request that fails");
}

const struct sequence domain_corners[] = {
	{ "domains: description", prepare_file, run_describe },
	{ "domains: there is none", prepare_file, run_wrong_domain },
	{ "domains: figures", prepare_file, run_figures },
	{ "domains: regions", prepare_file, run_regions },
	{ "domains: device memory is full", prepare_file, run_full },
	{ "domains: bind", prepare_file, run_bind },
	{ "domains: bind to a small one", prepare_file, run_bind_size },
	{ "domains: bind and limits", prepare_file, run_bind_charge },
	{ "domains: bind to none", prepare_file, run_bind_wrong },
	{ "domains: bind in a batch", prepare_file, run_bind_batch },
	{ "domains: bind without a slot", prepare_file, run_bind_slots },
	{ "domains: prefer", prepare_file, run_prefer },
	{ "domains: prefer none", prepare_file, run_prefer_wrong },
	{ "domains: interleave", prepare_file, run_interleave },
	{ "domains: interleave, and the last chunk fails", prepare_file,
	  run_interleave_full },
	{ "domains: interleave, and the last chunk has to wait", prepare_file,
	  run_interleave_again },
	{ "domains: interleave, and one is small", prepare_file,
	  run_interleave_small },
	{ "domains: interleave one", prepare_file, run_interleave_wrong },
	{ "domains: bytes of chunks", prepare_file, run_interleave_bytes },
	{ "domains: list of chunks", prepare_file, run_chunk_list },
	{ "domains: aligned request", prepare_file, run_aligned_once },
	{}
};
