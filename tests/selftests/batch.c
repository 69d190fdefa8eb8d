// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC_BATCH and FREE_BATCH: each entry has its own result, and EFAULT undoes
 * the whole batch.
 */
#include "flexmem_test.h"

/* The setup acquires the only possible region, so that no test has to. */
#define PARAMS "max_regions=1 program_slots=0"
/* So many entries of ALLOC_BATCH fit in a page. */
#define N 24

_Static_assert(N * sizeof(struct flexmem_alloc) <= 4096, "entries in a page");

FIXTURE(batch) {
	int fd;
	struct snapshot before;
	struct flexmem_alloc alloc[N];
	struct flexmem_free free[N];
};

FIXTURE_VARIANT(batch) {
	int mode;
};

FIXTURE_VARIANT_ADD(batch, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(batch, vf) { .mode = FM_VF };

FIXTURE_SETUP(batch)
{
	int i;

	LOAD(PARAMS, NULL);
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fm_free(self->fd, fm_take(self->fd, 1)));
	for (i = 0; i < N; i++)
		self->alloc[i] = CMD(alloc, .length = 100 * i + 1);
	SNAP(self->fd, &self->before);
}

FIXTURE_TEARDOWN(batch)
{
	EXPECT_STREQ("", fm_sums(self->fd, false));
	close(self->fd);
	EXPECT_EMPTY(variant->mode);
}

#define ALLOCS(array, n)						\
	CMD(batch, .entry_size = sizeof(struct flexmem_alloc),		\
	    .count = (n), .entries = (uintptr_t)(array))
#define FREES(array, n)							\
	CMD(batch, .entry_size = sizeof(struct flexmem_free),		\
	    .count = (n), .entries = (uintptr_t)(array))

/*
 * Allocates all entries of self->alloc, and writes their handles to self->free.
 */
static int alloc_all(FIXTURE_DATA(batch) *self)
{
	struct flexmem_batch batch = ALLOCS(self->alloc, N);
	int error = raw_alloc_batch(self->fd, &batch), i;

	for (i = 0; i < N; i++)
		self->free[i] = CMD(free, .handle = self->alloc[i].out_handle);
	return error ?: batch.out_done == N ? 0 : -1;
}

TEST_F(batch, every_entry_is_served_and_freed)
{
	struct flexmem_batch frees = FREES(self->free, N);
	struct flexmem_lookup lookup;
	__u64 bytes = 0;
	int i, j;

	ASSERT_EQ(0, alloc_all(self));
	for (i = 0; i < N; i++) {
		EXPECT_EQ(0, self->alloc[i].out_error);
		EXPECT_EQ((100 * i + 128) & ~127, (int)self->alloc[i].out_size);
		for (j = 0; j < i; j++)
			ASSERT_NE(self->alloc[j].out_handle,
				  self->alloc[i].out_handle);
		lookup = CMD(lookup, .handle = self->alloc[i].out_handle);
		must(lookup, self->fd, &lookup);
		EXPECT_EQ(lookup.out_size, self->alloc[i].out_size);
		EXPECT_EQ(lookup.out_address.offset,
			  self->alloc[i].out_address.offset);
		bytes += self->alloc[i].out_size;
	}
	EXPECT_EQ(bytes, fm_stats(self->fd).out_client_used);

	must(free_batch, self->fd, &frees);
	EXPECT_EQ(N, frees.out_done);
	for (i = 0; i < N; i++)
		EXPECT_EQ(0, self->free[i].out_error);
	EXPECT_UNDONE(self->fd, &self->before);
}

TEST_F(batch, same_addresses_as_one_by_one)
{
	struct flexmem_alloc single[N];
	int i;

	for (i = 0; i < N; i++) {
		single[i] = self->alloc[i];
		must(alloc, self->fd, &single[i]);
	}
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, fm_free(self->fd, single[i].out_handle));
	ASSERT_EQ(0, alloc_all(self));
	for (i = 0; i < N; i++) {
		EXPECT_EQ(single[i].out_address.region_id,
			  self->alloc[i].out_address.region_id);
		EXPECT_EQ(single[i].out_address.offset,
			  self->alloc[i].out_address.offset);
	}
}

/*
 * The first and the last entry are valid. Each entry between them has a mistake
 * of its own.
 */
TEST_F(batch, malformed_alloc_fails_alone)
{
	static const struct {
		struct flexmem_alloc arg;
		int error;
	} cases[] = {
		{ { .length = 128 }, 0 },
		{ { .length = 0 }, EINVAL },
		{ { .length = 128, .alignment = 3 }, EINVAL },
		{ { .length = 128, .alignment = 2 * GiB }, EINVAL },
		{ { .length = 128, .flags = 1U << 31 }, EOPNOTSUPP },
		{ { .length = 128, .flags = 1U << 5 }, EOPNOTSUPP },
		{ { .length = 128, .policy = 99 }, EOPNOTSUPP },
		{ { .length = 128, .size = sizeof(struct flexmem_alloc) - 8 }, EINVAL },
		{ { .length = 128, .size = sizeof(struct flexmem_alloc) + 8 }, EINVAL },
		{ { .length = 128, .size = 1 }, EINVAL },
		{ { .length = ~0ULL }, ENOMEM },
		{ { .length = 128 }, 0 },
	};
	struct flexmem_batch batch = ALLOCS(self->alloc, ARRAY_SIZE(cases));
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		self->alloc[i] = cases[i].arg;
		if (!self->alloc[i].size)
			self->alloc[i].size = sizeof(self->alloc[i]);
		self->alloc[i].out_handle = 77;
		self->alloc[i].out_error = 77;
	}
	must(alloc_batch, self->fd, &batch);
	EXPECT_EQ(ARRAY_SIZE(cases), batch.out_done);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(cases[i].error, self->alloc[i].out_error)
			TH_LOG("entry %u", i);
		EXPECT_EQ(!cases[i].error, !!self->alloc[i].out_handle);
	}
	EXPECT_EQ(FLEXMEM_REASON_REGION_SIZE, self->alloc[10].out_reason);
	EXPECT_EQ(2, fm_stats(self->fd).out_client_handles);
}

TEST_F(batch, malformed_free_fails_alone)
{
	struct flexmem_batch batch = FREES(self->free, 8);
	static const int errors[] = {
		0, ENOENT, EINVAL, EINVAL, EOPNOTSUPP, ENOENT, EINVAL, 0
	};
	unsigned int i;

	ASSERT_EQ(0, alloc_all(self));
	self->free[1].handle = 0;
	self->free[2].address.offset = 128;
	self->free[3].flags = FLEXMEM_FREE_BY_ADDRESS;	/* has a handle too */
	self->free[4].flags = 1U << 5;
	self->free[5] = CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS,
			    .address.region_id = ~0ULL);
	self->free[6].size = 4;
	must(free_batch, self->fd, &batch);
	EXPECT_EQ(8, batch.out_done);
	for (i = 0; i < ARRAY_SIZE(errors); i++)
		EXPECT_EQ(errors[i], self->free[i].out_error)
			TH_LOG("entry %u", i);
	EXPECT_EQ(N - 2, fm_stats(self->fd).out_client_handles);
}

/* The command succeeds even if each entry fails. */
TEST_F(batch, all_entries_may_fail)
{
	struct flexmem_batch batch = ALLOCS(self->alloc, N);
	int i;

	for (i = 0; i < N; i++)
		self->alloc[i].length = 0;
	must(alloc_batch, self->fd, &batch);
	for (i = 0; i < N; i++)
		EXPECT_EQ(EINVAL, self->alloc[i].out_error);
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(batch, out_of_memory_in_the_middle_keeps_the_rest)
{
	struct flexmem_batch batch = ALLOCS(self->alloc, 3);
	__u64 max = fm_info(self->fd).out_max_region;

	self->alloc[0].length = max / 2;
	self->alloc[1].length = max;
	self->alloc[2].length = max / 2;
	must(alloc_batch, self->fd, &batch);
	EXPECT_EQ(0, self->alloc[0].out_error);
	EXPECT_EQ(ENOMEM, self->alloc[1].out_error);
	EXPECT_EQ(FLEXMEM_REASON_MAX_REGIONS, self->alloc[1].out_reason);
	EXPECT_EQ(max / 2, self->alloc[1].out_total_free);
	EXPECT_EQ(0, self->alloc[2].out_error);
}

TEST_F(batch, zero_count_is_einval)
{
	struct flexmem_batch batch = ALLOCS(self->alloc, 0);

	must_fail(EINVAL, alloc_batch, self->fd, &batch);
	batch = FREES(self->free, 0);
	must_fail(EINVAL, free_batch, self->fd, &batch);
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(batch, most_is_max_batch)
{
	const __u32 max = fm_info(self->fd).out_max_batch;
	struct flexmem_alloc *alloc = calloc(max + 1, sizeof(*alloc));
	struct flexmem_free *free = calloc(max + 1, sizeof(*free));
	struct flexmem_batch batch = ALLOCS(alloc, max + 1);
	__u32 i;

	ASSERT_NE(NULL, alloc);
	ASSERT_NE(NULL, free);
	for (i = 0; i <= max; i++)
		alloc[i] = CMD(alloc, .length = 1);
	must_fail(EINVAL, alloc_batch, self->fd, &batch);
	batch.count = UINT_MAX;
	must_fail(EINVAL, alloc_batch, self->fd, &batch);
	EXPECT_UNCHANGED(self->fd, &self->before);

	batch.count = max;
	must(alloc_batch, self->fd, &batch);
	EXPECT_EQ(max, batch.out_done);
	EXPECT_EQ(0, alloc[max].out_handle);
	EXPECT_EQ(max, fm_stats(self->fd).out_client_handles);

	for (i = 0; i <= max; i++)
		free[i] = CMD(free, .handle = alloc[i].out_handle);
	batch = FREES(free, max + 1);
	must_fail(EINVAL, free_batch, self->fd, &batch);
	EXPECT_EQ(max, fm_stats(self->fd).out_client_handles);
	batch.count = max;
	must(free_batch, self->fd, &batch);
	EXPECT_EQ(0, fm_stats(self->fd).out_client_handles);
}

TEST_F(batch, short_entry_size_is_einval)
{
	struct flexmem_batch batch = ALLOCS(self->alloc, 1);

	for (batch.entry_size = 0;
	     batch.entry_size < offsetof(struct flexmem_alloc, out_leaving);
	     batch.entry_size += 8)
		ASSERT_EQ(EINVAL, raw_alloc_batch(self->fd, &batch))
			TH_LOG("entry size %u", batch.entry_size);
	batch = FREES(self->free, 1);
	for (batch.entry_size = 0;
	     batch.entry_size < sizeof(struct flexmem_free);
	     batch.entry_size += 8)
		ASSERT_EQ(EINVAL, raw_free_batch(self->fd, &batch))
			TH_LOG("entry size %u", batch.entry_size);
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/* A newer caller's entry is 40 bytes longer than the driver's. */
struct newer_alloc {
	struct flexmem_alloc old;
	__u64 new[5];
};

struct newer_free {
	struct flexmem_free old;
	__u64 new[5];
};

TEST_F(batch, longer_entries_pass_if_zero_and_fail_alone_if_not)
{
	struct newer_alloc alloc[4] = { };
	struct newer_free free[4] = { };
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(alloc[0]),
					 .count = 4, .entries = (uintptr_t)alloc);
	int i;

	for (i = 0; i < 4; i++) {
		alloc[i].old = CMD(alloc, .length = 128);
		alloc[i].old.size = sizeof(alloc[0]);
	}
	alloc[1].new[0] = 1;
	alloc[2].new[4] = 1ULL << 63;
	must(alloc_batch, self->fd, &batch);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i == 1 || i == 2 ? E2BIG : 0, alloc[i].old.out_error);
		free[i].old = CMD(free, .handle = alloc[i].old.out_handle);
		free[i].old.size = sizeof(free[0]);
	}
	EXPECT_EQ(1, alloc[1].new[0]);
	EXPECT_EQ(1ULL << 63, alloc[2].new[4]);
	EXPECT_EQ(2, fm_stats(self->fd).out_client_handles);

	free[0].new[2] = 1;
	batch = CMD(batch, .entry_size = sizeof(free[0]), .count = 4,
		    .entries = (uintptr_t)free);
	must(free_batch, self->fd, &batch);
	EXPECT_EQ(E2BIG, free[0].old.out_error);
	EXPECT_EQ(ENOENT, free[1].old.out_error);
	EXPECT_EQ(0, free[3].old.out_error);
	EXPECT_EQ(1, fm_stats(self->fd).out_client_handles);
}

/* From some entry on, results lie in a read-only page. */
TEST_F(batch, unwritable_alloc_results_undo_all)
{
	static const unsigned int on_first_page[] = { 0, 1, N / 2, N - 1 };
	char *pages = fm_two_pages(PROT_READ | PROT_WRITE);
	struct flexmem_alloc *e;
	unsigned int i;

	ASSERT_NE(NULL, pages);
	for (i = 0; i < ARRAY_SIZE(on_first_page); i++) {
		char *second = pages + getpagesize();
		struct flexmem_batch batch;

		ASSERT_EQ(0, mprotect(second, getpagesize(),
				      PROT_READ | PROT_WRITE));
		e = (void *)second;
		e -= on_first_page[i];
		memcpy(e, self->alloc, N * sizeof(*e));
		ASSERT_EQ(0, mprotect(second, getpagesize(), PROT_READ));
		batch = ALLOCS(e, N);
		ASSERT_EQ(EFAULT, raw_alloc_batch(self->fd, &batch));
		EXPECT_UNDONE(self->fd, &self->before);
	}
}

TEST_F(batch, unreadable_alloc_entries_undo_all)
{
	char *pages = fm_two_pages(-1);
	struct flexmem_batch batch;
	struct flexmem_alloc *e;

	ASSERT_NE(NULL, pages);
	e = (void *)(pages + getpagesize());
	e -= N / 2;
	memcpy(e, self->alloc, N / 2 * sizeof(*e));
	batch = ALLOCS(e, N);
	must_fail(EFAULT, alloc_batch, self->fd, &batch);
	EXPECT_UNDONE(self->fd, &self->before);
}

TEST_F(batch, failed_free_batch_leaves_every_handle_live)
{
	static const int protections[] = { PROT_READ, PROT_NONE };
	char *pages = fm_two_pages(PROT_READ | PROT_WRITE);
	char *second = pages + getpagesize();
	struct flexmem_batch batch;
	struct flexmem_lookup lookup;
	struct flexmem_free *e;
	unsigned int i, p;

	ASSERT_NE(NULL, pages);
	ASSERT_EQ(0, alloc_all(self));
	SNAP(self->fd, &self->before);
	for (p = 0; p < ARRAY_SIZE(protections); p++) {
		ASSERT_EQ(0, mprotect(second, getpagesize(),
				      PROT_READ | PROT_WRITE));
		e = (void *)second;
		e -= N / 2;
		memcpy(e, self->free, sizeof(self->free));
		ASSERT_EQ(0, mprotect(second, getpagesize(), protections[p]));
		batch = FREES(e, N);
		must_fail(EFAULT, free_batch, self->fd, &batch);
		EXPECT_UNDONE(self->fd, &self->before);
		for (i = 0; i < N; i++) {
			lookup = CMD(lookup, .handle = self->free[i].handle);
			must(lookup, self->fd, &lookup);
			EXPECT_EQ(self->alloc[i].out_address.offset,
				  lookup.out_address.offset);
		}
	}
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, fm_free(self->fd, self->free[i].handle));
}

/* After EFAULT the addresses in a FREE_BATCH are still valid. */
TEST_F(batch, failed_free_batch_by_address_leaves_all_live)
{
	struct flexmem_batch batch;
	struct flexmem_free *e;
	int i;

	ASSERT_EQ(0, alloc_all(self));
	e = mmap(NULL, sizeof(self->free), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, e);
	for (i = 0; i < N; i++)
		e[i] = CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS,
			   .address = self->alloc[i].out_address);
	SNAP(self->fd, &self->before);
	ASSERT_EQ(0, mprotect(e, sizeof(self->free), PROT_READ));
	batch = FREES(e, N);
	must_fail(EFAULT, free_batch, self->fd, &batch);
	EXPECT_UNDONE(self->fd, &self->before);
	ASSERT_EQ(0, mprotect(e, sizeof(self->free), PROT_READ | PROT_WRITE));
	must(free_batch, self->fd, &batch);
	for (i = 0; i < N; i++)
		EXPECT_EQ(0, e[i].out_error);
	EXPECT_EQ(0, fm_stats(self->fd).out_client_handles);
}

TEST_F(batch, the_second_of_two_equal_frees_is_enoent)
{
	struct flexmem_batch batch = FREES(self->free, 6);
	static const int errors[] = { 0, ENOENT, 0, 0, ENOENT, ENOENT };
	unsigned int i;

	ASSERT_EQ(0, alloc_all(self));
	self->free[1] = self->free[0];
	/*
	 * entry 3 frees by address, 4 by handle, and 5 by the address of 3
	 * again
	 */
	self->free[4] = self->free[3];
	self->free[3] = CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS,
			    .address = self->alloc[3].out_address);
	self->free[5] = self->free[3];
	must(free_batch, self->fd, &batch);
	for (i = 0; i < ARRAY_SIZE(errors); i++)
		EXPECT_EQ(errors[i], self->free[i].out_error)
			TH_LOG("entry %u", i);
	EXPECT_EQ(N - 3, fm_stats(self->fd).out_client_handles);
}

TEST_F(batch, handles_that_never_were_are_enoent)
{
	struct flexmem_batch batch = FREES(self->free, N);
	int i;

	for (i = 0; i < N; i++)
		self->free[i] = CMD(free, .handle = 0x10000 + i);
	must(free_batch, self->fd, &batch);
	for (i = 0; i < N; i++)
		EXPECT_EQ(ENOENT, self->free[i].out_error);
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/*
 * A killed caller ends its batch early, and out_done counts the entries that
 * were carried out. The parent can read out_done, because it maps the struct
 * too. No memory may be lost. The child only makes batches. It is killed when it has
 * allocated a certain amount, so nearly always in the middle of a batch.
 */
TEST_F(batch, killed_in_a_batch_returns_everything)
{
	const __u32 max = fm_info(self->fd).out_max_batch, none = ~0U;
	struct flexmem_alloc *alloc;
	struct flexmem_batch *batch;
	__u32 i, early = 0;
	int n, fd;
	pid_t pid;

	alloc = mmap(NULL, max * sizeof(*alloc) + sizeof(*batch),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)alloc);
	batch = (struct flexmem_batch *)(alloc + max);
	*batch = ALLOCS(alloc, max);
	for (i = 0; i < max; i++)
		alloc[i] = CMD(alloc, .length = 1);
	for (n = 0; n < 20 || (!early && n < 1000); n++) {
		batch->out_done = none;
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			fd = fm_open(variant->mode);
			for (;;) {
				batch->out_done = none;
				raw_alloc_batch(fd, batch);
			}
		}
		while (fm_stats(self->fd).out_allocated <= max / 256 * (n % 20))
			usleep(500);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		/*
		 * If the worker acquires a region for the killed caller, that
		 * region contains a block for a moment.
		 */
		while (fm_stats(self->fd).out_used)
			usleep(500);
		early += batch->out_done < max;
	}
	EXPECT_LT(0, early);
	munmap(alloc, max * sizeof(*alloc) + sizeof(*batch));
}

TEST_HARNESS_MAIN
