// SPDX-License-Identifier: GPL-2.0
/* Single allocations: ALLOC, FREE, LOOKUP, and which file owns them. */
#include "flexmem_test.h"

FIXTURE(alloc) {
	int fd;
	int other;		/* a second open file of the same node */
};

FIXTURE_VARIANT(alloc) {
	int mode;
};

FIXTURE_VARIANT_ADD(alloc, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(alloc, vf) { .mode = FM_VF };

FIXTURE_SETUP(alloc)
{
	/* the PF and a VF can both be filled */
	LOAD(NULL, "memory=512G");
	self->fd = fm_open(variant->mode);
	self->other = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->other);
}

FIXTURE_TEARDOWN(alloc)
{
	EXPECT_STREQ("", fm_sums(self->other, false));
	close(self->fd);
	close(self->other);
	EXPECT_EMPTY(variant->mode);
}

#define used(fd) (fm_stats(fd).out_used)

TEST_F(alloc, info_is_sane)
{
	struct flexmem_info info = fm_info(self->fd);

	EXPECT_EQ(variant->mode, (int)info.out_mode);
	EXPECT_EQ(128, info.out_alignment);
	EXPECT_EQ(GiB, info.out_max_alignment);
	EXPECT_LE(1, info.out_max_regions);
	EXPECT_GE(info.out_slots, info.out_max_regions);
	EXPECT_LE(info.out_program_slots, info.out_max_regions);
	EXPECT_LE(1, info.out_max_batch);
	EXPECT_EQ(1 << 20, info.out_max_handles);
	EXPECT_LE(1, info.out_nr_fallback_sizes);
	EXPECT_GE(FLEXMEM_MAX_FALLBACK_SIZES, info.out_nr_fallback_sizes);
	EXPECT_EQ(FLEXMEM_CAP_SCRUB | FLEXMEM_CAP_MAP | FLEXMEM_CAP_RW |
		  FLEXMEM_CAP_COPY | FLEXMEM_CAP_PAGE_TABLES,
		  info.out_capabilities);
	EXPECT_EQ(0, info.out_granule & (info.out_granule - 1));
	EXPECT_EQ(0, info.out_max_region % info.out_granule);
	EXPECT_LE(info.out_max_region, info.out_capacity);
	EXPECT_NE(0, info.out_max_region);
	EXPECT_NE(NULL, memchr(info.out_name, 0, sizeof(info.out_name)));
	EXPECT_NE(0, info.out_name[0]);
	if (variant->mode == FM_PF)
		EXPECT_EQ(info.out_slots, info.out_max_regions);
}

TEST_F(alloc, length_is_rounded_up_to_128)
{
	static const struct { __u64 length, size; } cases[] = {
		{ 1, 128 }, { 127, 128 }, { 128, 128 }, { 129, 256 },
		{ 255, 256 }, { 256, 256 }, { 4095, 4096 }, { 4097, 4224 },
		{ MiB + 1, MiB + 128 }, { GiB - 1, GiB },
	};
	struct flexmem_alloc reply;
	unsigned int i;
	__u64 before;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		before = used(self->fd);
		ASSERT_EQ(0, fm_alloc(self->fd, cases[i].length, &reply));
		EXPECT_EQ(cases[i].size, reply.out_size);
		EXPECT_EQ(before + cases[i].size, used(self->fd));
		EXPECT_EQ(0, reply.out_address.offset % 128);
		EXPECT_EQ(0, reply.out_error);
		EXPECT_EQ(FLEXMEM_REASON_NONE, reply.out_reason);
		EXPECT_NE(0, reply.out_handle);
		EXPECT_EQ(cases[i].length, reply.length);
	}
}

/*
 * In the following tests each call has one wrong value. The snapshots before
 * and after the call must be equal.
 */
TEST_F(alloc, zero_length_is_einval)
{
	struct flexmem_alloc reply;
	struct snapshot before;

	SNAP(self->fd, &before);
	reply = CMD(alloc, .out_handle = 77);
	must_fail(EINVAL, alloc, self->fd, &reply);
	EXPECT_EQ(0, reply.out_handle);
	EXPECT_EQ(EINVAL, reply.out_error);
	EXPECT_EQ(FLEXMEM_REASON_NONE, reply.out_reason);
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(alloc, bad_alignment_is_einval)
{
	static const __u64 bad[] = {
		3, 96, 127, 129, 192, 4095, 3 * GiB, 2 * GiB, GiB + 1,
		1ULL << 32, 1ULL << 63, ~0ULL
	};
	struct flexmem_alloc reply;
	struct snapshot before;
	unsigned int i;

	SNAP(self->fd, &before);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		reply = CMD(alloc, .length = 128, .alignment = bad[i]);
		must_fail(EINVAL, alloc, self->fd, &reply)
			TH_LOG("alignment %llu", bad[i]);
		EXPECT_EQ(0, reply.out_handle);
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(alloc, good_alignments_align_the_offset)
{
	static const __u64 good[] = {
		0, 1, 2, 64, 128, 256, 4 * KiB, 64 * KiB, 2 * MiB, GiB / 2, GiB
	};
	struct flexmem_alloc reply;
	unsigned int i, j;

	for (j = 0; j < 2; j++)
		for (i = 0; i < ARRAY_SIZE(good); i++) {
			reply = CMD(alloc, .length = 128, .alignment = good[i]);
			ASSERT_EQ(0, raw_alloc(self->fd, &reply))
				TH_LOG("alignment %llu", good[i]);
			EXPECT_EQ(0, reply.out_address.offset % (good[i] ?: 128));
			EXPECT_EQ(0, reply.out_address.offset % 128);
			/* Above a page it is charged, too. */
			EXPECT_EQ(good[i] > (__u64)getpagesize() ? good[i] : 128,
				  reply.out_size);
			ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
		}
}

/* Lengths that would overflow when they are rounded up or added. */
TEST_F(alloc, enormous_length_is_region_size)
{
	static const __u64 lengths[] = {
		1ULL << 40, 1ULL << 63, (1ULL << 63) + 1, ~0ULL - 4096,
		~0ULL - 128, ~0ULL - 127, ~0ULL - 126, ~0ULL
	};
	static const __u64 alignments[] = { 0, 4096, GiB };
	struct flexmem_alloc reply;
	struct snapshot before;
	unsigned int i, a;

	SNAP(self->fd, &before);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (a = 0; a < ARRAY_SIZE(alignments); a++) {
			reply = CMD(alloc, .length = lengths[i],
				    .alignment = alignments[a]);
			must_fail(ENOMEM, alloc, self->fd, &reply)
				TH_LOG("length %llu", lengths[i]);
			EXPECT_EQ(FLEXMEM_REASON_REGION_SIZE, reply.out_reason);
			EXPECT_EQ(ENOMEM, reply.out_error);
			EXPECT_EQ(0, reply.out_handle);
			EXPECT_EQ(fm_info(self->fd).out_max_region,
				  reply.out_max_region);
			if (lengths[i] <= ~0ULL - 127 && alignments[a] != GiB)
				EXPECT_EQ((lengths[i] + 127) & ~127ULL,
					  reply.out_size);
		}
	EXPECT_UNCHANGED(self->fd, &before);
}

/* The live allocations in the order of their addresses, to find overlaps. */
struct interval {
	struct flexmem_address at;
	__u64 size;
	__u32 handle;
};

struct intervals {
	unsigned int nr;
	struct interval v[4096];
};

/* Returns false if the new interval overlaps another one. */
static bool insert(struct intervals *set, struct interval new)
{
	unsigned int low = 0, high = set->nr, mid;

	while (low < high) {
		const struct interval *i = &set->v[mid = (low + high) / 2];

		if (i->at.region_id < new.at.region_id ||
		    (i->at.region_id == new.at.region_id &&
		     i->at.offset < new.at.offset))
			low = mid + 1;
		else
			high = mid;
	}
	if (low && set->v[low - 1].at.region_id == new.at.region_id &&
	    set->v[low - 1].at.offset + set->v[low - 1].size > new.at.offset)
		return false;
	if (low < set->nr && set->v[low].at.region_id == new.at.region_id &&
	    new.at.offset + new.size > set->v[low].at.offset)
		return false;
	memmove(&set->v[low + 1], &set->v[low],
		(set->nr++ - low) * sizeof(set->v[0]));
	set->v[low] = new;
	return true;
}

TEST_F(alloc, thousands_live_never_overlap)
{
	struct intervals *set = calloc(1, sizeof(*set));
	unsigned int seed = atoi(fm_env("FLEXMEM_SEED")) ?: (int)time(NULL);
	__u64 bytes = 0;
	struct flexmem_alloc reply;
	unsigned int i, victim;

	ASSERT_NE(NULL, set);
	TH_LOG("FLEXMEM_SEED=%u", seed);
	srandom(seed);
	for (i = 0; i < 6000; i++) {
		if (set->nr >= 3000 || (set->nr && random() % 8 == 0)) {
			victim = random() % set->nr;
			ASSERT_EQ(0, fm_free(self->fd, set->v[victim].handle));
			bytes -= set->v[victim].size;
			memmove(&set->v[victim], &set->v[victim + 1],
				(--set->nr - victim) * sizeof(set->v[0]));
			continue;
		}
		reply = CMD(alloc, .length = 1 + random() % (1U << (random() % 21)),
			    .alignment = 1ULL << random() % 17);
		ASSERT_EQ(0, raw_alloc(self->fd, &reply));
		ASSERT_EQ(0, reply.out_address.offset % reply.alignment);
		ASSERT_TRUE(insert(set, (struct interval) {
			reply.out_address, reply.out_size, reply.out_handle }));
		bytes += reply.out_size;
	}
	EXPECT_EQ(bytes, fm_stats(self->fd).out_client_used);
	EXPECT_EQ(set->nr, fm_stats(self->fd).out_client_handles);
	EXPECT_STREQ("", fm_sums(self->fd, false));
	for (i = 0; i < set->nr; i++) {
		ASSERT_EQ(0, i & 1 ? fm_free(self->fd, set->v[i].handle) :
			  fm_free_address(self->fd, set->v[i].at));
	}
	EXPECT_EQ(0, used(self->fd));
	EXPECT_STREQ("", fm_sums(self->fd, true));
}

TEST_F(alloc, free_by_handle)
{
	__u64 before = used(self->fd);
	__u32 handle = fm_take(self->fd, KiB);

	ASSERT_NE(0, handle);
	EXPECT_EQ(before + KiB, used(self->fd));
	EXPECT_EQ(0, fm_free(self->fd, handle));
	EXPECT_EQ(before, used(self->fd));
}

TEST_F(alloc, free_by_address)
{
	struct flexmem_alloc reply;

	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply));
	EXPECT_EQ(0, fm_free_address(self->fd, reply.out_address));
	EXPECT_EQ(0, used(self->fd));
	EXPECT_EQ(ENOENT, fm_free(self->fd, reply.out_handle));
}

TEST_F(alloc, double_free_is_enoent)
{
	struct flexmem_alloc reply;
	struct snapshot before;

	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply));
	ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
	SNAP(self->fd, &before);
	EXPECT_EQ(ENOENT, fm_free(self->fd, reply.out_handle));
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, reply.out_address));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(alloc, only_the_exact_start_is_freed)
{
	static const __s64 off[] = {
		128, 256, KiB - 128, KiB, KiB + 128, 1, 64, -1, -128, 1LL << 40,
		LLONG_MIN
	};
	struct flexmem_alloc reply[3];
	struct flexmem_address at;
	struct snapshot before;
	unsigned int i;

	/*
	 * the neighbours belong to another file, so that no offset in off[] is
	 * the start of an allocation of this file
	 */
	ASSERT_EQ(0, fm_alloc(self->other, KiB, &reply[0]));
	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply[1]));
	ASSERT_EQ(0, fm_alloc(self->other, KiB, &reply[2]));
	SNAP(self->fd, &before);
	for (i = 0; i < ARRAY_SIZE(off); i++) {
		at = reply[1].out_address;
		at.offset += off[i];
		EXPECT_EQ(ENOENT, fm_free_address(self->fd, at))
			TH_LOG("%lld bytes off", off[i]);
	}
	at = reply[1].out_address;
	at.region_id ^= 1;
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, at));
	at.region_id = ~0ULL;
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, at));
	at.region_id = reply[1].out_address.region_id + (1ULL << 32);
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, at));
	EXPECT_UNCHANGED(self->fd, &before);
	EXPECT_EQ(0, fm_free_address(self->fd, reply[1].out_address));
}

TEST_F(alloc, name_that_flags_do_not_choose_is_einval)
{
	struct flexmem_alloc reply;
	struct flexmem_free arg;
	struct snapshot before;

	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply));
	SNAP(self->fd, &before);
	arg = CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS,
		  .handle = reply.out_handle, .address = reply.out_address);
	must_fail(EINVAL, free, self->fd, &arg);
	arg = CMD(free, .handle = reply.out_handle, .address.offset = 128);
	must_fail(EINVAL, free, self->fd, &arg);
	arg = CMD(free, .handle = reply.out_handle, .address.region_id = 1);
	must_fail(EINVAL, free, self->fd, &arg);
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(alloc, names_of_another_file_are_enoent)
{
	struct flexmem_alloc reply;
	struct snapshot before;

	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &reply));
	SNAP(self->other, &before);
	EXPECT_EQ(ENOENT, fm_free(self->other, reply.out_handle));
	EXPECT_EQ(ENOENT, fm_free_address(self->other, reply.out_address));
	must_fail(ENOENT, lookup, self->other,
		  &CMD(lookup, .handle = reply.out_handle));
	EXPECT_UNCHANGED(self->other, &before);
	EXPECT_EQ(0, fm_free(self->fd, reply.out_handle));
}

TEST_F(alloc, handles_that_never_were_are_enoent)
{
	static const __u32 bad[] = {
		0, 2, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff
	};
	struct snapshot before;
	__u32 handle = fm_take(self->fd, KiB);
	unsigned int i;

	ASSERT_NE(0, handle);
	SNAP(self->fd, &before);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		if (bad[i] == handle)
			continue;
		EXPECT_EQ(ENOENT, fm_free(self->fd, bad[i]))
			TH_LOG("handle %#x", bad[i]);
		must_fail(ENOENT, lookup, self->fd, &CMD(lookup, .handle = bad[i]));
	}
	EXPECT_EQ(ENOENT, fm_free(self->fd, handle + 1));
	EXPECT_EQ(ENOENT, fm_free(self->fd, handle ^ 0x80000000));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(alloc, a_freed_handle_is_not_given_out_at_once)
{
	__u32 seen[256];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		seen[i] = fm_take(self->fd, 128);
		ASSERT_NE(0, seen[i]);
		for (j = 0; j < i; j++)
			ASSERT_NE(seen[j], seen[i]);
		ASSERT_EQ(0, fm_free(self->fd, seen[i]));
	}
}

TEST_F(alloc, lookup_equals_the_reply_of_alloc)
{
	static const __u32 flags[] = { 0, FLEXMEM_ALLOC_PROGRAM };
	struct flexmem_lookup lookup;
	struct flexmem_alloc reply;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		reply = CMD(alloc, .length = 1000, .flags = flags[i]);
		must(alloc, self->fd, &reply);
		lookup = CMD(lookup, .handle = reply.out_handle);
		must(lookup, self->fd, &lookup);
		EXPECT_EQ(flags[i], lookup.out_flags);
		EXPECT_EQ(1024, lookup.out_size);
		EXPECT_EQ(reply.out_address.region_id,
			  lookup.out_address.region_id);
		EXPECT_EQ(reply.out_address.offset, lookup.out_address.offset);
		EXPECT_EQ(0, fm_free(self->fd, reply.out_handle));
		must_fail(ENOENT, lookup, self->fd, &lookup);
	}
}

TEST_F(alloc, stats_follow_every_step)
{
	struct fm_stats old = fm_stats(self->fd), now;
	struct flexmem_alloc a, p = CMD(alloc, .length = 2 * KiB,
					.flags = FLEXMEM_ALLOC_PROGRAM);

	ASSERT_EQ(0, fm_alloc(self->fd, KiB, &a));
	must(alloc, self->fd, &p);
	now = fm_stats(self->fd);
	EXPECT_EQ(old.out_used + 3 * KiB, now.out_used);
	EXPECT_EQ(old.out_used_program + 2 * KiB, now.out_used_program);
	EXPECT_EQ(old.out_allocated + 2, now.out_allocated);
	EXPECT_EQ(old.out_allocs + 2, now.out_allocs);
	EXPECT_EQ(old.out_frees, now.out_frees);
	EXPECT_EQ(3 * KiB, now.out_client_used);
	EXPECT_EQ(2, now.out_client_handles);
	EXPECT_EQ(0, fm_stats(self->other).out_client_used);
	EXPECT_EQ(0, fm_stats(self->other).out_client_handles);

	EXPECT_EQ(0, fm_free(self->fd, p.out_handle));
	EXPECT_EQ(0, fm_free(self->fd, a.out_handle));
	now = fm_stats(self->fd);
	EXPECT_EQ(old.out_used, now.out_used);
	EXPECT_EQ(old.out_used_program, now.out_used_program);
	EXPECT_EQ(old.out_frees + 2, now.out_frees);
	EXPECT_EQ(0, now.out_client_used);
	EXPECT_EQ(0, now.out_client_handles);
	EXPECT_EQ(3 * KiB, now.out_client_peak);

	EXPECT_EQ(ENOMEM, fm_alloc(self->fd, 1ULL << 50, &a));
	EXPECT_EQ(now.out_failures + 1, fm_stats(self->fd).out_failures);
}

TEST_F(alloc, free_blocks_merge_with_both_neighbours)
{
	static const int orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 },
		{ 2, 0, 1 }, { 2, 1, 0 }
	};
	__u32 handles[3];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		for (j = 0; j < 3; j++)
			ASSERT_NE(0, handles[j] = fm_take(self->fd, KiB));
		for (j = 0; j < 3; j++) {
			EXPECT_EQ(0, fm_free(self->fd, handles[orders[i][j]]));
			EXPECT_STREQ("", fm_sums(self->fd, false));
		}
		EXPECT_STREQ("", fm_sums(self->fd, true));
	}
}

TEST_F(alloc, close_gives_everything_back)
{
	int i;

	for (i = 0; i < 1000; i++)
		ASSERT_NE(0, fm_take(self->fd, 1 + i * 100));
	EXPECT_EQ(1000, fm_stats(self->other).out_allocated);
	close(self->fd);
	EXPECT_STREQ("", fm_sums(self->other, true));
}

TEST_F(alloc, dup_keeps_the_file_open)
{
	__u32 handle = fm_take(self->fd, KiB);
	int copy = dup(self->fd);

	ASSERT_NE(0, handle);
	ASSERT_LE(0, copy);
	close(self->fd);
	EXPECT_EQ(KiB, used(self->other));
	must(lookup, copy, &CMD(lookup, .handle = handle));
	close(copy);
	EXPECT_EQ(0, used(self->other));
}

struct child {
	int fd;
	int pipe[2];
	__u32 handle;
};

/* A child that inherits the open file can use all handles of the file. */
static int child_uses_file(void *arg)
{
	struct child *c = arg;

	if (raw_lookup(c->fd, &CMD(lookup, .handle = c->handle)))
		return 1;
	if (!fm_take(c->fd, 2 * KiB))
		return 2;
	return fm_free(c->fd, c->handle) ? 3 : 0;
}

TEST_F(alloc, fork_shares_the_file)
{
	struct child c = { .fd = self->fd };

	c.handle = fm_take(self->fd, KiB);
	ASSERT_NE(0, c.handle);
	EXPECT_EQ(0, fm_child(child_uses_file, &c));
	/*
	 * the file is still open in this process, so the child's allocation
	 * stays
	 */
	EXPECT_EQ(2 * KiB, fm_stats(self->fd).out_client_used);
	EXPECT_EQ(ENOENT, fm_free(self->fd, c.handle));
	close(self->fd);
	EXPECT_EQ(0, used(self->other));
}

/*
 * Starts a child that allocates, and then waits until it is told to continue or
 * is killed.
 */
static pid_t start_child(struct child *c, int mode)
{
	char byte = 0;
	pid_t pid;
	int i;

	if (pipe(c->pipe))
		return -1;
	pid = fork();
	if (pid) {
		close(c->pipe[1]);
		return pid;
	}
	close(c->pipe[0]);
	if (mode >= 0)
		c->fd = fm_open(mode);
	for (i = 0; i < 200; i++)
		byte |= !fm_take(c->fd, 4096);
	if (write(c->pipe[1], &byte, 1) == 1)
		pause();
	_exit(0);
}

TEST_F(alloc, last_close_of_a_shared_file_counts)
{
	struct child c = { .fd = self->fd };
	pid_t pid = start_child(&c, -1);
	char byte = 1;

	ASSERT_LT(0, pid);
	ASSERT_EQ(1, read(c.pipe[0], &byte, 1));
	EXPECT_EQ(0, byte);
	close(self->fd);
	EXPECT_EQ(200 * 4096, used(self->other));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, used(self->other));
}

TEST_F(alloc, a_killed_process_returns_everything)
{
	struct child c;
	char byte = 1;
	pid_t pid;
	int i;

	for (i = 0; i < 5; i++) {
		pid = start_child(&c, variant->mode);
		ASSERT_LT(0, pid);
		ASSERT_EQ(1, read(c.pipe[0], &byte, 1));
		EXPECT_EQ(0, byte);
		EXPECT_EQ(200 * 4096, used(self->other));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		EXPECT_EQ(0, used(self->other));
		close(c.pipe[0]);
	}
}

TEST_F(alloc, a_process_killed_in_the_middle_returns_everything)
{
	pid_t pid;
	int i, fd;

	for (i = 0; i < 20; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			fd = fm_open(variant->mode);
			for (;;)
				fm_take(fd, 128);
		}
		while (used(self->other) <= i * 4ULL * 128)
			usleep(500);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		/*
		 * If the worker acquires a region for the killed caller, that
		 * region contains a block for a moment.
		 */
		while (used(self->other))
			usleep(500);
	}
	EXPECT_STREQ("", fm_sums(self->other, true));
}

TEST_F(alloc, cloexec_and_other_file_operations)
{
	char buf[16];

	/* read(), write() and mmap() at offset 0 are refused */
	EXPECT_GT(0, read(self->fd, buf, sizeof(buf)));
	EXPECT_GT(0, write(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, 0));
}

TEST_HARNESS_MAIN
