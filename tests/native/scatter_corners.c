// SPDX-License-Identifier: GPL-2.0
/*
 * FLEXMEM_POLICY_SCATTER on the card of domain_corners.c: if no block is large
 * enough for an allocation, the allocation gets several blocks. The last test
 * counts the searches for an aligned block.
 */
#include "shim/internal.h"

#include "block.h"
#include "corners.h"

/* The small domain has one region of this size. */
#define TCM BIT(2)
#define TCM_SIZE (SZ_1M - SZ_128K)

static void scatter(struct run *r, u64 length, u32 most, int error,
		    struct flexmem_alloc *reply)
{
	alloc_by(r, CMD(alloc, .length = length, .domains = TCM,
			       .policy = FLEXMEM_POLICY_SCATTER,
			       .max_chunks = most), error, reply);
}

static void free_handle(struct run *r, u32 handle)
{
	CALL(r, FREE, &CMD(free, .handle = handle));
}

/*
 * Fills the small domain and makes holes of 128, 256 and 64 KiB, at 0, 256 and
 * 640 KiB.
 */
static void prepare_holes(struct run *r)
{
	static const u32 size[] = { SZ_128K, SZ_128K, SZ_256K, SZ_128K, SZ_64K,
				    SZ_128K + SZ_64K };
	struct flexmem_alloc reply;
	u32 handle[ARRAY_SIZE(size)];
	unsigned int i;

	open_file(r, 0);
	for (i = 0; i < ARRAY_SIZE(size); i++) {
		scatter(r, size[i], 2, 0, &reply);
		must(r, reply.out_chunks == 1, "an allocation that fits");
		handle[i] = reply.out_handle;
	}
	for (i = 0; i < ARRAY_SIZE(size); i += 2)
		free_handle(r, handle[i]);
	r->handle[0][0] = handle[1];
	r->handle[0][1] = handle[3];
	r->handle[0][2] = handle[5];
	r->nr[0] = 3;
}

static void must_be_free(struct run *r, u64 free, u64 largest)
{
	struct flexmem_domain_info is = CMD(domain_info, .domain = 2);

	CALL(r, DOMAIN, &is);
	must(r, is.out_free == free && is.out_largest_free == largest,
	     "bytes that are free");
}

/* The largest free block comes first. The last chunk has what remains. */
static void run_scatter(struct run *r)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;

	scatter(r, SZ_256K + SZ_128K + 100, 3, 0, &reply);
	must(r, reply.out_chunks == 3 && reply.out_size == 3 * SZ_128K + 128 &&
	     !reply.out_reason, "reply");
	must(r, chunks(r, entry) == 3, "number of chunks");
	must(r, entry[0].address.offset == SZ_256K &&
	     entry[0].length == SZ_256K && !entry[1].address.offset &&
	     entry[1].length == SZ_128K &&
	     entry[2].address.offset == SZ_512K + SZ_128K &&
	     entry[2].length == 128, "chunks");
	must_be_free(r, SZ_64K - 128, SZ_64K - 128);
	FAILS(r, RESIZE, &CMD(resize, .handle = reply.out_handle,
			      .length = SZ_64K), EOPNOTSUPP);
}

/* A hole that is large enough is one chunk. */
static void run_scatter_one(struct run *r)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;

	scatter(r, SZ_256K, 2, 0, &reply);
	must(r, reply.out_chunks == 1 && chunks(r, entry) == 1 &&
	     entry[0].address.offset == SZ_256K, "one chunk");
	CALL(r, RESIZE, &CMD(resize, .handle = reply.out_handle,
			     .length = SZ_128K));
}

static void run_scatter_full(struct run *r)
{
	struct flexmem_alloc reply;

	scatter(r, SZ_256K + SZ_128K + 128, 2, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_FRAGMENTATION &&
	     reply.out_region_reason == FLEXMEM_REASON_CAPACITY &&
	     reply.out_total_free == 7 * SZ_64K &&
	     reply.out_largest_free == SZ_256K && !reply.out_chunks,
	     "answer if the chunks do not suffice");
	must_be_free(r, 7 * SZ_64K, SZ_256K);
	scatter(r, 7 * SZ_64K + 128, 64, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_CAPACITY,
	     "answer if the bytes do not suffice");
	scatter(r, TCM_SIZE + 128, 64, ENOMEM, &reply);
	must(r, reply.out_reason == FLEXMEM_REASON_REGION_SIZE,
	     "answer for more than the domain has");
	scatter(r, 7 * SZ_64K, 3, 0, &reply);
	must(r, reply.out_chunks == 3, "all that is free");
	must_be_free(r, 0, 0);
}

/* Each chunk is aligned, and its length is a multiple of the alignment. */
static void run_scatter_aligned(struct run *r)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;

	alloc_by(r, CMD(alloc, .length = SZ_256K + SZ_64K, .alignment = SZ_64K,
			       .domains = TCM, .max_chunks = 2,
			       .policy = FLEXMEM_POLICY_SCATTER), 0, &reply);
	must(r, chunks(r, entry) == 2, "number of chunks");
	must(r, entry[0].address.offset == SZ_256K &&
	     entry[0].length == SZ_256K &&
	     !entry[1].address.offset && entry[1].length == SZ_64K,
	     "aligned chunks");
}

/* The small domain has two holes of 128 KiB, at 0 and at 256 KiB. */
static void run_scatter_equal(struct run *r)
{
	static const u32 size[] = { SZ_128K, SZ_128K, SZ_128K, SZ_512K };
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;
	u32 *handle = r->handle[0];
	unsigned int i;

	open_file(r, 0);
	for (i = 0; i < ARRAY_SIZE(size); i++)
		scatter(r, size[i], 2, 0, &reply);
	free_handle(r, handle[2]);
	free_handle(r, handle[0]);
	handle[0] = handle[3];
	r->nr[0] = 2;
	scatter(r, SZ_256K, 2, 0, &reply);
	must(r, chunks(r, entry) == 2 && !entry[0].address.offset &&
	     entry[1].address.offset == SZ_256K, "the lower one of equal blocks");
}

/* Allocates two equal blocks of domain 0. Receives their regions. */
static void scatter_regions(struct run *r, u64 length, u64 region[2])
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;

	alloc_by(r, CMD(alloc, .length = length, .domains = BIT(0),
			       .max_chunks = 2,
			       .policy = FLEXMEM_POLICY_SCATTER), 0, &reply);
	must(r, chunks(r, entry) == 2 && entry[0].length == length / 2,
	     "two equal blocks");
	region[0] = entry[0].address.region_id;
	region[1] = entry[1].address.region_id;
}

/*
 * The largest hole of each region has 2 MiB. The first region has a hole of
 * 1 MiB too, so the strategy fill_first begins with the second one.
 */
static void run_scatter_equal_regions(struct run *r)
{
	static const u32 size[] = { SZ_2M, SZ_1M, SZ_1M, SZ_4M,
				    SZ_2M, SZ_1M, SZ_4M + SZ_1M };
	u32 *handle = r->handle[0];
	struct flexmem_alloc reply;
	u64 first[2], second[2];
	unsigned int i;

	open_file(r, 0);
	for (i = 0; i < ARRAY_SIZE(size); i++)
		alloc_by(r, CMD(alloc, .length = size[i], .domains = BIT(0),
				       .policy = FLEXMEM_POLICY_BIND), 0, &reply);
	for (i = 0; i <= 4; i += 2)
		free_handle(r, handle[i]);
	handle[0] = handle[6];
	handle[2] = handle[5];
	r->nr[0] = 4;
	scatter_regions(r, SZ_4M, first);
	/* Now both regions have 1 MiB, so the lower slot comes first. */
	free_handle(r, handle[2]);
	handle[2] = handle[--r->nr[0]];
	scatter_regions(r, SZ_2M, second);
	must(r, first[0] != first[1] && second[0] == first[1] &&
	     second[1] == first[0], "order of regions with equal blocks");
}

/*
 * Each of two regions has a hole that begins and ends unaligned. The hole is
 * larger than the first request, but has no aligned block of that size.
 */
static void run_scatter_unaligned(struct run *r)
{
	static const u64 size[] = { 128, SZ_8M - 256, 128 };
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;
	u32 *handle = r->handle[0];
	unsigned int i;

	open_file(r, 0);
	for (i = 0; i < 6; i++)
		alloc_by(r, CMD(alloc, .length = size[i % 3], .domains = BIT(0),
				       .policy = FLEXMEM_POLICY_BIND), 0, &reply);
	free_handle(r, handle[1]);
	free_handle(r, handle[4]);
	handle[1] = handle[2];
	handle[2] = handle[3];
	handle[3] = handle[5];
	r->nr[0] = 4;
	alloc_by(r, CMD(alloc, .length = SZ_4M, .alignment = SZ_4M,
			       .domains = BIT(0), .max_chunks = 2,
			       .policy = FLEXMEM_POLICY_SCATTER), ENOMEM, &reply);
	alloc_by(r, CMD(alloc, .length = SZ_8M, .alignment = SZ_64K,
			       .domains = BIT(0), .max_chunks = 2,
			       .policy = FLEXMEM_POLICY_SCATTER), 0, &reply);
	must(r, chunks(r, entry) == 2 && entry[0].length == SZ_8M - SZ_128K &&
	     entry[1].length == SZ_128K, "aligned chunks in unaligned holes");
}

/* One allocation has bytes in two domains. READ and WRITE cover both. */
static void run_scatter_domains(struct run *r)
{
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	static u8 out[600], in[600];
	struct flexmem_alloc reply;
	unsigned int i;

	for (i = 0; i < 4; i++)
		alloc(r, 0, SZ_8M - (i == 1 ? 384 : i == 2 ? 256 : 0), 0);
	for (i = 0; i < sizeof(out); i++)
		out[i] = i % 251;
	alloc_by(r, CMD(alloc, .length = sizeof(out), .max_chunks = 2,
			       .policy = FLEXMEM_POLICY_SCATTER), 0, &reply);
	must(r, chunks(r, entry) == 2 && entry[0].domain == 0 &&
	     entry[0].length == 384 && entry[1].domain == 1 &&
	     entry[1].length == 256, "chunks in two domains");
	CALL(r, WRITE, &CMD(rw, .handle = reply.out_handle,
			    .length = sizeof(out), .data = (uintptr_t)out));
	CALL(r, READ, &CMD(rw, .handle = reply.out_handle,
			   .length = sizeof(in), .data = (uintptr_t)in));
	must(r, !memcmp(out, in, sizeof(in)), "bytes of the chunks");
}

/*
 * The largest free block lies in a region that the cgroup may not use. The
 * other free blocks suffice.
 */
static void run_scatter_limit(struct run *r)
{
	struct cgroup *cgroup = native_cgroup_make(native_cgroup_root);
	struct flexmem_resource_limit limit = CMD(resource_limit,
		.cgroup = cgroup_id(cgroup), .limit = 1,
		.resource = FLEXMEM_RESOURCE_REGIONS);
	struct flexmem_chunk_entry entry[MOST_CHUNKS];
	struct flexmem_alloc reply;

	native_cgroup_move(cgroup);
	open_file(r, 0);
	native_cgroup_move(native_cgroup_root);
	open_file(r, 1);
	BY(r, 1, SET_LIMIT, &limit, 0);
	alloc(r, 0, SZ_2M, 0);
	alloc(r, 0, SZ_1M, 0);
	alloc(r, 0, SZ_2M, 0);
	alloc(r, 0, SZ_2M + SZ_1M, 0);
	alloc(r, 1, SZ_4M + SZ_1M, 0);
	free_handle(r, r->handle[0][0]);
	free_handle(r, r->handle[0][2]);
	r->handle[0][0] = r->handle[0][1];
	r->handle[0][1] = r->handle[0][3];
	r->nr[0] = 2;
	alloc_by(r, CMD(alloc, .length = SZ_4M, .max_chunks = 2,
			       .policy = FLEXMEM_POLICY_SCATTER), 0, &reply);
	must(r, chunks(r, entry) == 2 && entry[0].length == SZ_2M &&
	     entry[0].address.region_id == entry[1].address.region_id,
	     "chunks in the region of the cgroup");
	native_cgroup_remove(cgroup);
	/*
	 * The limit is forgotten with the accounts of the VF. Otherwise it
	 * would look like a leak.
	 */
	WARN_ON(world_unbind(1));
}

static void run_scatter_wrong(struct run *r)
{
	struct flexmem_alloc reply;
	u32 policy;

	scatter(r, 128, 0, EINVAL, &reply);
	scatter(r, 128, 1, EINVAL, &reply);
	scatter(r, 128, FLEXMEM_MAX_CHUNKS + 1, EINVAL, &reply);
	scatter(r, 128, FLEXMEM_MAX_CHUNKS, 0, &reply);
	for (policy = 0; policy < FLEXMEM_POLICY_SCATTER; policy++)
		alloc_by(r, CMD(alloc, .length = 128, .policy = policy,
				       .domains = policy ? 3 : 0,
				       .max_chunks = 2), EINVAL, &reply);
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

/*
 * The small domain has one region. Before a request fails, the region is
 * searched again, under the lock that keeps regions from being released.
 */
static void run_aligned_once(struct run *r)
{
	struct flexmem_alloc reply;

	searches = 0;
	alloc_by(r, CMD(alloc, .length = SZ_64K, .alignment = SZ_256K,
			       .domains = TCM, .policy = FLEXMEM_POLICY_BIND),
		 0, &reply);
	must(r, searches == 1, "searches of a request that is served");
	searches = 0;
	alloc_by(r, CMD(alloc, .length = SZ_256K, .alignment = SZ_512K,
			       .domains = TCM, .policy = FLEXMEM_POLICY_BIND),
		 ENOMEM, &reply);
	must(r, searches == 2, "searches of a request that fails");
}

static void prepare_file(struct run *r)
{
	open_file(r, 0);
}

const struct sequence scatter_corners[] = {
	{ "scatter", prepare_holes, run_scatter },
	{ "scatter: a block is large enough", prepare_holes, run_scatter_one },
	{ "scatter: not enough", prepare_holes, run_scatter_full },
	{ "scatter: alignment", prepare_holes, run_scatter_aligned },
	{ "scatter: equal blocks", NULL, run_scatter_equal },
	{ "scatter: equal blocks in two regions", NULL,
	  run_scatter_equal_regions },
	{ "scatter: no aligned block", NULL, run_scatter_unaligned },
	{ "scatter: two domains", prepare_file, run_scatter_domains },
	{ "scatter: limit", NULL, run_scatter_limit },
	{ "scatter: number of chunks", prepare_file, run_scatter_wrong },
	{ "aligned request", prepare_holes, run_aligned_once },
	{}
};
