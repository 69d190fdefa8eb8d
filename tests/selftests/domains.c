// SPDX-License-Identifier: GPL-2.0
/*
 * A device with several memories: how the command DOMAIN describes them, and in
 * which of them regions and allocations are.
 */
#include "flexmem_test.h"

#define SIM "domains=hbm*2:64M,tcm*2:16M:reserved=1M num_vfs=1"
#define LAZY "order=fill_first acquire=lazy fallback_sizes=32M max_regions=12"
#define PREALLOC "order=fill_first acquire=prealloc fallback_sizes=32M max_regions=12"

/* The card puts each memory at a multiple of 1 GiB. */
static const struct expected {
	__u32 type;
	__u64 base, granule, capacity, set_aside, region;
} want[] = {
	{ FLEXMEM_DOMAIN_DEVICE, 0 * GiB, 2 * MiB, 64 * MiB, 0, 32 * MiB },
	{ FLEXMEM_DOMAIN_DEVICE, 1 * GiB, 2 * MiB, 64 * MiB, 0, 32 * MiB },
	{ FLEXMEM_DOMAIN_ON_CHIP, 2 * GiB, 64 * KiB, 15 * MiB, MiB, 15 * MiB },
	{ FLEXMEM_DOMAIN_ON_CHIP, 3 * GiB, 64 * KiB, 15 * MiB, MiB, 15 * MiB },
};
#define NR_DOMAINS ARRAY_SIZE(want)

FIXTURE(domains) {
	int fd;
};

FIXTURE_VARIANT(domains) {
	int mode;
};

FIXTURE_VARIANT_ADD(domains, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(domains, vf) { .mode = FM_VF };

FIXTURE_SETUP(domains)
{
	self->fd = -1;
}

FIXTURE_TEARDOWN(domains)
{
	EXPECT_STREQ("", fm_sums(self->fd, false));
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

#define START(params) do {						\
	RELOAD(params, SIM);						\
	self->fd = fm_open(variant->mode);				\
	ASSERT_LE(0, self->fd);						\
} while (0)

static struct flexmem_domain_info domain(int fd, __u32 id)
{
	struct flexmem_domain_info info = CMD(domain_info, .domain = id);

	if (raw_domain(fd, &info))
		memset(&info, 0xff, sizeof(info));
	return info;
}

TEST_F(domains, are_described)
{
	struct flexmem_domain_info is;
	__u64 capacity = 0;
	__u32 i;

	START(LAZY);
	for (i = 0; i < NR_DOMAINS; i++) {
		is = domain(self->fd, i);
		EXPECT_EQ(i, is.domain);
		EXPECT_EQ(NR_DOMAINS, is.out_nr_domains);
		EXPECT_EQ(want[i].type, is.out_type);
		EXPECT_EQ(want[i].granule, is.out_granule);
		EXPECT_EQ(want[i].capacity, is.out_capacity);
		EXPECT_EQ(want[i].set_aside, is.out_set_aside);
		EXPECT_EQ(1, is.out_nr_sizes);
		EXPECT_EQ(want[i].region, is.out_sizes[0]);
		EXPECT_EQ(want[i].region, is.out_max_region);
		capacity += is.out_capacity;
	}
	EXPECT_EQ(capacity, fm_info(self->fd).out_capacity);
	EXPECT_EQ(32 * MiB, fm_info(self->fd).out_max_region);
	EXPECT_EQ(EINVAL, raw_domain(self->fd, &CMD(domain_info,
						    .domain = NR_DOMAINS)));
}

/*
 * The last region takes what the others leave. TRIM gives it back, and it can be
 * acquired again.
 */
TEST_F(domains, last_region_takes_the_rest)
{
	static const __u64 sizes[] = { 32 * MiB, 32 * MiB, 8 * MiB };
	struct flexmem_domain_info is;
	struct flexmem_alloc a;
	unsigned int i, round;

	RELOAD(LAZY, "domains=hbm:72M num_vfs=1");
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	is = domain(self->fd, 0);
	EXPECT_EQ(1, is.out_nr_sizes);
	EXPECT_EQ(32 * MiB, is.out_sizes[0]);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		ASSERT_EQ(0, fm_alloc(self->fd, sizes[i], &a));
	for (round = 0; round < 2; round++) {
		is = domain(self->fd, 0);
		EXPECT_EQ(3, is.out_regions);
		EXPECT_EQ(72 * MiB, is.out_total);
		ASSERT_EQ(0, fm_free(self->fd, a.out_handle));
		ASSERT_EQ(0, fm_trim(self->fd));
		EXPECT_EQ(64 * MiB, domain(self->fd, 0).out_total);
		ASSERT_EQ(0, fm_alloc(self->fd, 8 * MiB, &a));
	}
}

/* If device memory is full, ALLOC fails, and takes no on-chip memory. */
TEST_F(domains, allocations_go_to_device_memory)
{
	struct flexmem_domain_info is;
	struct flexmem_alloc last;
	__u32 i;

	START(LAZY);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, fm_alloc(self->fd, 32 * MiB, &last));
	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 128, &last));
	EXPECT_EQ(FLEXMEM_REASON_CAPACITY, last.out_reason);
	EXPECT_TRUE(fm_exhausted(self->fd));
	for (i = 0; i < NR_DOMAINS; i++) {
		is = domain(self->fd, i);
		EXPECT_EQ(i < 2 ? 2 : 0, is.out_regions);
		EXPECT_EQ(i < 2 ? want[i].capacity : 0, is.out_total);
		EXPECT_EQ(0, is.out_free);
		EXPECT_EQ(i < 2, !!(is.out_flags & FLEXMEM_REPORT_EXHAUSTED));
	}
}

static int alloc_by(int fd, __u32 policy, __u64 domains, __u64 length,
		    struct flexmem_alloc *reply)
{
	*reply = CMD(alloc, .length = length, .policy = policy,
		     .domains = domains);
	return raw_alloc(fd, reply);
}

static int bind_to(int fd, __u64 domains, __u64 length,
		   struct flexmem_alloc *reply)
{
	return alloc_by(fd, FLEXMEM_POLICY_BIND, domains, length, reply);
}

static int prefer(int fd, __u64 domains, __u64 length,
		  struct flexmem_alloc *reply)
{
	return alloc_by(fd, FLEXMEM_POLICY_PREFERRED, domains, length, reply);
}

/* torch-spyre #1128: on-chip memory is full. ALLOC takes no other memory. */
TEST_F(domains, bind_uses_no_other_domain)
{
	struct flexmem_alloc last;

	START(LAZY);
	ASSERT_EQ(0, bind_to(self->fd, 1 << 3, 15 * MiB, &last));
	EXPECT_EQ(1, domain(self->fd, 3).out_regions);
	EXPECT_EQ(0, domain(self->fd, 3).out_free);
	EXPECT_EQ(ENOMEM, bind_to(self->fd, 1 << 3, 128, &last));
	EXPECT_EQ(FLEXMEM_REASON_CAPACITY, last.out_reason);
	EXPECT_EQ(15 * MiB, last.out_max_region);
	EXPECT_EQ(ENOMEM, bind_to(self->fd, 1 << 2, 16 * MiB, &last));
	EXPECT_EQ(FLEXMEM_REASON_REGION_SIZE, last.out_reason);
	ASSERT_EQ(0, bind_to(self->fd, 1 << 2 | 1 << 3, 128, &last));
	EXPECT_EQ(1, domain(self->fd, 2).out_regions);
	EXPECT_EQ(0, domain(self->fd, 0).out_regions);
	EXPECT_EQ(0, domain(self->fd, 1).out_regions);
	EXPECT_EQ(EINVAL, bind_to(self->fd, 0, 128, &last));
	EXPECT_EQ(EINVAL, bind_to(self->fd, 1 << NR_DOMAINS, 128, &last));
}

/*
 * torch-spyre #1129: memory comes from the first of these that has room: a
 * region of the preferred memory, an existing region of other memory, a new
 * region of the preferred memory, a new region of other memory.
 */
TEST_F(domains, preferred_ones_come_first)
{
	struct flexmem_alloc last;

	START(LAZY);
	/* The preferred on-chip memory is used until it is full. */
	ASSERT_EQ(0, prefer(self->fd, 1 << 3, 15 * MiB - 128, &last));
	ASSERT_EQ(0, prefer(self->fd, 1 << 3, 128, &last));
	EXPECT_EQ(0, domain(self->fd, 3).out_free);
	EXPECT_EQ(0, domain(self->fd, 0).out_regions);
	/*
	 * When domain 3 is full, requests get device memory. On-chip memory
	 * that they do not name stays unused.
	 */
	ASSERT_EQ(0, prefer(self->fd, 1 << 3, 31 * MiB, &last));
	EXPECT_EQ(1, domain(self->fd, 0).out_regions);
	EXPECT_EQ(0, domain(self->fd, 2).out_regions);
	/* An existing region of device memory is tried before a new region. */
	ASSERT_EQ(0, prefer(self->fd, 1 << 1, MiB, &last));
	EXPECT_EQ(0, domain(self->fd, 0).out_free);
	EXPECT_EQ(0, domain(self->fd, 1).out_regions);
	ASSERT_EQ(0, prefer(self->fd, 1 << 1, 128, &last));
	EXPECT_EQ(1, domain(self->fd, 1).out_regions);
	ASSERT_EQ(0, bind_to(self->fd, 1 << 0 | 1 << 1, 32 * MiB, &last));
	EXPECT_EQ(2, domain(self->fd, 0).out_regions);
	ASSERT_EQ(0, prefer(self->fd, 1 << 3, 32 * MiB, &last));
	EXPECT_EQ(2, domain(self->fd, 1).out_regions);
	EXPECT_EQ(ENOMEM, prefer(self->fd, 1 << 3, 32 * MiB, &last));
	EXPECT_EQ(FLEXMEM_REASON_CAPACITY, last.out_reason);
	EXPECT_EQ(32 * MiB - 128, last.out_total_free);
	EXPECT_EQ(32 * MiB, last.out_max_region);
	EXPECT_EQ(EINVAL, prefer(self->fd, 0, 128, &last));
}

static __u32 list_chunks(int fd, __u32 handle,
			 struct flexmem_chunk_entry entry[NR_DOMAINS])
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = handle,
		.entry_size = sizeof(*entry), .count = NR_DOMAINS,
		.entries = (uintptr_t)entry);

	return raw_lookup(fd, &cmd) ? 0 : cmd.out_count;
}

/*
 * torch-spyre #1130: the chunks are equal. If the request names no domain, each
 * domain of device memory gets a chunk.
 */
TEST_F(domains, interleave_makes_a_chunk_in_each)
{
	struct flexmem_chunk_entry entry[NR_DOMAINS];
	struct flexmem_alloc last;

	START(LAZY);
	ASSERT_EQ(0, alloc_by(self->fd, FLEXMEM_POLICY_INTERLEAVE, 0xd,
			      5 * MiB, &last));
	ASSERT_EQ(3, list_chunks(self->fd, last.out_handle, entry));
	EXPECT_EQ(0, entry[0].domain);
	EXPECT_EQ(2, entry[1].domain);
	EXPECT_EQ(3, entry[2].domain);
	EXPECT_EQ(entry[0].length, entry[1].length);
	EXPECT_EQ(5 * MiB, 2 * entry[0].length + entry[2].length);
	EXPECT_GT(entry[0].length, entry[2].length);
	EXPECT_GT(128, entry[0].length - 5 * MiB / 3);
	EXPECT_EQ(last.out_address.region_id, entry[0].address.region_id);
	ASSERT_EQ(0, alloc_by(self->fd, FLEXMEM_POLICY_INTERLEAVE, 0,
			      2 * MiB, &last));
	ASSERT_EQ(2, list_chunks(self->fd, last.out_handle, entry));
	EXPECT_EQ(1, entry[1].domain);
	EXPECT_EQ(MiB, entry[1].length);
	EXPECT_EQ(EINVAL, alloc_by(self->fd, FLEXMEM_POLICY_INTERLEAVE, 1,
				   MiB, &last));
}

/* torch-spyre #805, scenario 3: the second domain is full. */
TEST_F(domains, interleave_is_all_or_nothing)
{
	struct flexmem_alloc last;

	START(LAZY);
	ASSERT_EQ(0, bind_to(self->fd, 1 << 3, 15 * MiB - 128, &last));
	ASSERT_EQ(0, bind_to(self->fd, 1 << 2, 128, &last));
	EXPECT_EQ(ENOMEM, alloc_by(self->fd, FLEXMEM_POLICY_INTERLEAVE, 0xc,
				   512, &last));
	EXPECT_EQ(FLEXMEM_REASON_CAPACITY, last.out_reason);
	EXPECT_EQ(128, last.out_total_free);
	EXPECT_EQ(15 * MiB - 128, domain(self->fd, 2).out_free);
	EXPECT_EQ(0, alloc_by(self->fd, FLEXMEM_POLICY_INTERLEAVE, 0xc, 256,
			      &last));
}

/*
 * Acquires all possible regions. Each region must lie in the memory of its
 * domain, outside of the bytes that the card sets aside.
 */
TEST_F(domains, reserved_bytes_are_in_no_region)
{
	struct flexmem_region_entry *r;
	const struct expected *in;
	struct snapshot s;
	__u32 i;

	START(PREALLOC);
	SNAP(self->fd, &s);
	/*
	 * First comes one region of each memory, and then a second region of
	 * each memory.
	 */
	ASSERT_EQ(variant->mode == FM_PF ? 6 : 0, s.nr_regions);
	for (i = 0; i < s.nr_regions; i++) {
		r = &s.region[i];
		ASSERT_LT(r->domain, NR_DOMAINS);
		EXPECT_EQ(i % NR_DOMAINS, r->domain);
		in = &want[r->domain];
		EXPECT_EQ(in->region, r->total);
		EXPECT_LE(in->base, r->region_id);
		EXPECT_GE(in->base + in->capacity, r->region_id + r->total);
	}
}

TEST_HARNESS_MAIN
