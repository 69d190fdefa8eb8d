// SPDX-License-Identifier: GPL-2.0
/* A card with several memories: what DOMAIN says, and where allocations go. */
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

/* What the driver of the card says about the memories, and their sizes. */
static void run_describe(struct run *r)
{
	static const struct {
		u64 granule, capacity, set_aside, size, cores;
		u8 distance[NR_DOMAINS];
	} want[NR_DOMAINS] = {
		{ SZ_2M, SZ_16M, SZ_2M, SZ_8M, 1, { 0, 2, 1, 1 } },
		{ SZ_2M, SZ_16M, SZ_2M, SZ_8M, 2, { 2, 0, 1, 1 } },
		{ SZ_64K, SZ_1M - SZ_128K, SZ_128K, SZ_1M - SZ_128K, 0,
		  { 1, 1, 0, 1 } },
		{ SZ_2M, SZ_4M, 0, SZ_4M, 0, { 1, 1, 1, 0 } },
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
		must(r, is.out_cores == want[i].cores &&
		     !memcmp(is.out_distance, want[i].distance, NR_DOMAINS) &&
		     !memchr_inv(is.out_distance + NR_DOMAINS, 0,
				 sizeof(is.out_distance) - NR_DOMAINS),
		     "distances of a domain");
		must(r, !is.out_regions && !is.out_total && !is.out_free &&
		     !is.out_largest_free, "a domain without a region");
	}
}

static void run_wrong_domain(struct run *r)
{
	FAILS(r, DOMAIN, &CMD(domain_info, .domain = NR_DOMAINS), EINVAL);
	FAILS(r, DOMAIN, &CMD(domain_info, .domain = U32_MAX), EINVAL);
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

/* Each domain has figures of its own. */
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
		     FLEXMEM_STATS_EXHAUSTED | FLEXMEM_STATS_PROGRAM_EXHAUSTED);
	must_be_used(r, 1, 1, SZ_8M, 0, 0, 0);
	must_be_used(r, TCM, 0, 0, 0, 0, 0);
}

/* Each region names its domain. */
static void run_regions(struct run *r)
{
	struct flexmem_region_entry region[8];
	struct flexmem_regions cmd = CMD(regions, .count = 8,
					 .entry_size = sizeof(region[0]),
					 .entries = (uintptr_t)region);
	static const u32 want[] = { 0, 0, 1, 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(want); i++)
		alloc(r, 0, SZ_8M, 0);
	CALL(r, REGIONS, &cmd);
	must(r, cmd.out_count == ARRAY_SIZE(want), "number of regions");
	for (i = 0; i < ARRAY_SIZE(want); i++)
		must(r, region[i].domain == want[i] && !region[i].__reserved,
		     "domain of a region");
}

/* A full device memory is full, although other memories have room. */
static void run_full(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 128);
	unsigned int i;

	for (i = 0; i < 4; i++)
		alloc(r, 0, SZ_8M, 0);
	FAILS(r, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_reason == FLEXMEM_REASON_CAPACITY &&
	     cmd.out_regions == 4, "reason of a full device memory");
	must_be_used(r, TCM, 0, 0, 0, 0, 0);
	must_be_used(r, TCM + 1, 0, 0, 0, 0, 0);
}

const struct sequence domain_corners[] = {
	{ "domains: description", prepare_file, run_describe },
	{ "domains: there is none", prepare_file, run_wrong_domain },
	{ "domains: figures", prepare_file, run_figures },
	{ "domains: regions", prepare_file, run_regions },
	{ "domains: device memory is full", prepare_file, run_full },
	{}
};
