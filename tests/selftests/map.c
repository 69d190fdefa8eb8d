// SPDX-License-Identifier: GPL-2.0
/*
 * mmap(): which bytes a mapping shows, and which processes may have
 * one. Also frees the allocation, or removes the device, before or after the
 * mapping ends.
 */
#include "tenants.h"

#include <sys/resource.h>
#include <sys/uio.h>

#define PAGE 4096
#define PARAMS "max_regions=3 fallback_sizes=12G,4G order=fill_first "	\
	"strategy=first_fit acquire=lazy program_slots=0"
#define SIM "num_vfs=1 memory=64G vf_capacity=32G"

FIXTURE(map) {
	int fd;
	int other;		/* a second open file of the same node */
	char path[32];
};

FIXTURE_VARIANT(map) {
	int mode;
};

FIXTURE_VARIANT_ADD(map, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(map, vf) { .mode = FM_VF };

FIXTURE_SETUP(map)
{
	LOAD(PARAMS, SIM);
	fm_mend();
	self->fd = fm_open_nth(variant->mode, 0, self->path);
	self->other = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->other);
}

FIXTURE_TEARDOWN(map)
{
	close(self->fd);
	close(self->other);
	EXPECT_SETTLED(variant->mode);
}

/* Makes a mappable allocation. A failure ends the test. */
#define TAKE(fd, length, reply)						\
	ASSERT_EQ(0, fm_alloc_flags(fd, length, FLEXMEM_ALLOC_MAPPABLE, reply))

/* Returns the mmap() offset of an allocation, or ~0. */
static __u64 offset_of(int fd, __u32 handle)
{
	struct flexmem_lookup map = CMD(lookup, .handle = handle);

	return raw_lookup(fd, &map) ? ~0ULL : map.out_map_offset;
}

/* Maps and unmaps. Returns 0 or an errno. */
static int try_mmap(int fd, __u64 offset, size_t length, int prot, int flags)
{
	void *p = mmap64(NULL, length, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, length);
	return 0;
}

#define RW (PROT_READ | PROT_WRITE)

TEST_F(map, length_and_start_are_rounded_to_pages)
{
	static const struct { __u64 length, size; } cases[] = {
		{ 1, PAGE }, { 128, PAGE }, { PAGE, PAGE },
		{ PAGE + 1, 2 * PAGE }, { 3 * PAGE - 1, 3 * PAGE },
	};
	struct flexmem_alloc reply, small;
	struct flexmem_lookup lookup;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		/*
		 * makes a small allocation first, so that the next one is not
		 * aligned merely by chance
		 */
		ASSERT_EQ(0, fm_alloc(self->other, 128, &small));
		TAKE(self->fd, cases[i].length, &reply);
		EXPECT_EQ(cases[i].size, reply.out_size);
		EXPECT_EQ(0, reply.out_address.offset % PAGE);
		lookup = CMD(lookup, .handle = reply.out_handle);
		must(lookup, self->fd, &lookup);
		EXPECT_EQ(FLEXMEM_ALLOC_MAPPABLE, lookup.out_flags);
		EXPECT_EQ(cases[i].size, lookup.out_size);
		EXPECT_EQ(0, lookup.out_map_offset % PAGE);
		EXPECT_GT(1ULL << 44, lookup.out_map_offset);
	}
	reply = CMD(alloc, .length = 1, .alignment = 64 * KiB,
		    .flags = FLEXMEM_ALLOC_MAPPABLE);
	must(alloc, self->fd, &reply);
	EXPECT_EQ(0, reply.out_address.offset % (64 * KiB));
	EXPECT_STREQ("", fm_sums(self->fd, false));
}

TEST_F(map, bytes_go_both_ways)
{
	const size_t size = 5 * PAGE;
	unsigned char *p, *copy = malloc(size);
	struct flexmem_alloc reply;
	size_t i;

	ASSERT_EQ(0, fm_alloc_flags(self->fd, size, FLEXMEM_ALLOC_MAPPABLE |
				    FLEXMEM_ALLOC_ZEROED, &reply));
	p = fm_mmap(self->fd, reply.out_handle, 0, size);
	ASSERT_NE(MAP_FAILED, p);
	for (i = 0; i < size; i++)
		ASSERT_EQ(0, p[i]);

	for (i = 0; i < size; i++)
		p[i] = i * 7 + i / PAGE;
	ASSERT_EQ(0, fm_read(self->fd, reply.out_handle, 0, copy, size));
	EXPECT_EQ(0, memcmp(p, copy, size));

	for (i = 0; i < size; i++)
		copy[i] = ~(i * 3 + i / PAGE);
	ASSERT_EQ(0, fm_write(self->fd, reply.out_handle, 0, copy, size));
	EXPECT_EQ(0, memcmp(p, copy, size));
	munmap(p, size);
	free(copy);
}

TEST_F(map, any_part_can_be_mapped)
{
	struct flexmem_alloc reply;
	char *all, *part;
	int from, n, i;

	TAKE(self->fd, 8 * PAGE, &reply);
	all = fm_mmap(self->fd, reply.out_handle, 0, 8 * PAGE);
	ASSERT_NE(MAP_FAILED, all);
	for (i = 0; i < 8; i++)
		memset(all + i * PAGE, 'a' + i, PAGE);
	for (from = 0; from < 8; from++)
		for (n = 1; n <= 8 - from; n++) {
			part = fm_mmap(self->fd, reply.out_handle, from * PAGE,
				       n * PAGE);
			ASSERT_NE(MAP_FAILED, part);
			for (i = 0; i < n; i++)
				ASSERT_EQ('a' + from + i, part[i * PAGE]);
			part[n * PAGE - 1] = '!';
			ASSERT_EQ('!', all[(from + n) * PAGE - 1]);
			munmap(part, n * PAGE);
		}
	/*
	 * the length need not be a multiple of a page if the last page lies
	 * inside the allocation
	 */
	part = fm_mmap(self->fd, reply.out_handle, 6 * PAGE, PAGE + 1);
	ASSERT_NE(MAP_FAILED, part);
	EXPECT_EQ('h', part[2 * PAGE - 2]);
	munmap(part, PAGE + 1);
	munmap(all, 8 * PAGE);
}

TEST_F(map, nothing_beyond_the_end)
{
	struct flexmem_alloc first, reply, next;
	__u64 offset;

	/*
	 * the allocation has neighbours, so that a wrong mapping would show
	 * other bytes
	 */
	TAKE(self->fd, PAGE, &first);
	TAKE(self->fd, 3 * PAGE - 100, &reply);
	TAKE(self->fd, 4 * PAGE, &next);
	offset = offset_of(self->fd, reply.out_handle);
	ASSERT_NE(~0ULL, offset);
	EXPECT_EQ(0, try_mmap(self->fd, offset, 3 * PAGE, RW, MAP_SHARED));
	EXPECT_EQ(EINVAL, try_mmap(self->fd, offset, 3 * PAGE + 1, RW, MAP_SHARED));
	EXPECT_EQ(EINVAL, try_mmap(self->fd, offset, 8 * PAGE, RW, MAP_SHARED));
	EXPECT_EQ(EINVAL, try_mmap(self->fd, offset + PAGE, 3 * PAGE, RW,
				   MAP_SHARED));
	EXPECT_EQ(EINVAL, try_mmap(self->fd, offset + 2 * PAGE, GiB, RW,
				   MAP_SHARED));
}

TEST_F(map, a_neighbour_is_never_reached)
{
	struct flexmem_alloc a, b, c;
	char *p;

	TAKE(self->other, 100, &a);
	TAKE(self->fd, PAGE + 100, &b);
	TAKE(self->other, 100, &c);
	ASSERT_EQ(a.out_address.offset + PAGE, b.out_address.offset);
	ASSERT_EQ(b.out_address.offset + 2 * PAGE, c.out_address.offset);
	ASSERT_EQ(0, fm_fill(self->other, a.out_handle, 0, PAGE, 'a'));
	ASSERT_EQ(0, fm_fill(self->other, c.out_handle, 0, PAGE, 'c'));
	p = fm_mmap(self->fd, b.out_handle, 0, 2 * PAGE);
	ASSERT_NE(MAP_FAILED, p);
	memset(p, 0xff, 2 * PAGE);
	EXPECT_BYTES(self->other, &a, 'a');
	EXPECT_BYTES(self->other, &c, 'c');
	ASSERT_EQ(0, fm_fill(self->other, a.out_handle, 0, PAGE, 'A'));
	ASSERT_EQ(0, fm_fill(self->other, c.out_handle, 0, PAGE, 'C'));
	EXPECT_BYTES(self->fd, &b, 0xff);
	munmap(p, 2 * PAGE);
}

TEST_F(map, private_and_executable_maps_are_refused)
{
	struct flexmem_alloc reply;
	__u64 offset;
	char *p;

	TAKE(self->fd, PAGE, &reply);
	offset = offset_of(self->fd, reply.out_handle);
	EXPECT_EQ(EINVAL, try_mmap(self->fd, offset, PAGE, RW, MAP_PRIVATE));
	EXPECT_EQ(EINVAL, try_mmap(self->fd, offset, PAGE, PROT_READ, MAP_PRIVATE));
	EXPECT_EQ(EPERM, try_mmap(self->fd, offset, PAGE, PROT_READ | PROT_EXEC,
				  MAP_SHARED));
	EXPECT_EQ(EPERM, try_mmap(self->fd, offset, PAGE, PROT_EXEC, MAP_SHARED));
	/* mprotect() must not make the mapping executable */
	p = fm_mmap(self->fd, reply.out_handle, 0, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(0, fm_touch(p, true));
	munmap(p, PAGE);
}

TEST_F(map, unknown_handles_cannot_be_mapped)
{
	struct flexmem_alloc reply, plain;
	__u64 offset;

	TAKE(self->fd, PAGE, &reply);
	ASSERT_EQ(0, fm_alloc(self->fd, PAGE, &plain));
	EXPECT_EQ(0, offset_of(self->fd, plain.out_handle));
	EXPECT_EQ(~0ULL, offset_of(self->fd, 0));
	EXPECT_EQ(~0ULL, offset_of(self->fd, ~0U));
	EXPECT_EQ(~0ULL, offset_of(self->other, reply.out_handle));

	offset = offset_of(self->fd, reply.out_handle);
	EXPECT_EQ(ENOENT, try_mmap(self->other, offset, PAGE, RW, MAP_SHARED));
	EXPECT_EQ(ENOENT, try_mmap(self->fd, offset + (1ULL << 36), PAGE, RW,
				   MAP_SHARED));
	EXPECT_EQ(ENOENT, try_mmap(self->fd, (1ULL << 44) - PAGE, PAGE, RW,
				   MAP_SHARED));
	ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
	EXPECT_EQ(~0ULL, offset_of(self->fd, reply.out_handle));
	EXPECT_EQ(ENOENT, try_mmap(self->fd, offset, PAGE, RW, MAP_SHARED));
}

/*
 * An allocation without FLEXMEM_ALLOC_MAPPABLE cannot be mapped at any offset.
 */
TEST_F(map, no_offset_maps_other_allocations)
{
	struct flexmem_alloc a, plain;
	__u64 offset;
	int i;

	TAKE(self->fd, PAGE, &a);
	ASSERT_EQ(0, fm_alloc(self->fd, 4 * PAGE, &plain));
	ASSERT_EQ(a.out_address.offset + PAGE, plain.out_address.offset);
	offset = offset_of(self->fd, a.out_handle);
	for (i = 1; i <= 4; i++)
		EXPECT_NE(0, try_mmap(self->fd, offset + i * PAGE, PAGE, RW,
				      MAP_SHARED));
}

#define MANY 40

TEST_F(map, offsets_are_unique_on_the_device)
{
	struct { __u64 from, to; } of[MANY];
	struct flexmem_alloc reply;
	int i, j;

	for (i = 0; i < MANY; i++) {
		int fd = i & 1 ? self->fd : self->other;

		TAKE(fd, (1 + i % 5) * PAGE, &reply);
		of[i].from = offset_of(fd, reply.out_handle);
		of[i].to = of[i].from + reply.out_size;
		ASSERT_NE(~0ULL, of[i].from);
		/* LOOKUP returns the same offset each time */
		ASSERT_EQ(of[i].from, offset_of(fd, reply.out_handle));
		for (j = 0; j < i; j++)
			ASSERT_TRUE(of[i].to <= of[j].from ||
				    of[j].to <= of[i].from);
	}
}

TEST_F(map, a_batch_makes_mappable_memory_too)
{
	struct flexmem_alloc e[3];
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(e[0]),
					 .count = ARRAY_SIZE(e),
					 .entries = (uintptr_t)e);
	unsigned int i;
	char *p;

	for (i = 0; i < ARRAY_SIZE(e); i++)
		e[i] = CMD(alloc, .length = 100, .flags = FLEXMEM_ALLOC_MAPPABLE);
	must(alloc_batch, self->fd, &batch);
	for (i = 0; i < ARRAY_SIZE(e); i++) {
		ASSERT_EQ(0, e[i].out_error);
		EXPECT_EQ(PAGE, e[i].out_size);
		p = fm_mmap(self->fd, e[i].out_handle, 0, PAGE);
		ASSERT_NE(MAP_FAILED, p);
		memset(p, '0' + i, PAGE);
		munmap(p, PAGE);
	}
	for (i = 0; i < ARRAY_SIZE(e); i++)
		EXPECT_BYTES(self->fd, &e[i], '0' + i);
}

TEST_F(map, fork_shares_the_map)
{
	struct flexmem_alloc reply;
	int status;
	pid_t pid;
	char *p;

	TAKE(self->fd, 2 * PAGE, &reply);
	p = fm_mmap(self->fd, reply.out_handle, 0, 2 * PAGE);
	ASSERT_NE(MAP_FAILED, p);
	p[0] = 'p';
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/*
		 * the child touches a page that the parent has touched, and a
		 * new page
		 */
		status = p[0] != 'p';
		p[0] = 'c';
		p[PAGE] = 'd';
		munmap(p, 2 * PAGE);
		_exit(status);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ('c', p[0]);
	EXPECT_EQ('d', p[PAGE]);
	munmap(p, 2 * PAGE);
}

/*
 * Memory that is freed while it is mapped becomes an orphan: it stays charged,
 * no other owner gets it, and it becomes free when the mapping ends.
 */
TEST_F(map, memory_freed_while_mapped_keeps_its_bytes)
{
	const size_t size = 4 * PAGE;
	struct flexmem_alloc reply, next;
	struct account a;
	__u64 id = fm_client_id(self->fd), offset;
	size_t i;
	char *p;

	TAKE(self->fd, size, &reply);
	offset = offset_of(self->fd, reply.out_handle);
	p = fm_mmap(self->fd, reply.out_handle, 0, size);
	ASSERT_NE(MAP_FAILED, p);
	memset(p, 'x', size / 2);
	ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));

	ACCOUNT(self->fd, &a);
	EXPECT_STREQ("", fm_wrong(&a));
	EXPECT_EQ(size, a.s.out_orphaned);
	EXPECT_EQ(0, a.s.out_owned);
	ASSERT_NE(NULL, fm_owner(&a, FLEXMEM_OWNER_CLIENT, id));
	EXPECT_EQ(size, fm_owner(&a, FLEXMEM_OWNER_CLIENT, id)->orphaned);
	EXPECT_EQ(1, fm_owner(&a, FLEXMEM_OWNER_CLIENT, id)->handles);
	EXPECT_EQ(ENOENT, fm_free(self->fd, reply.out_handle));
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, reply.out_address));
	EXPECT_EQ(ENOENT, try_mmap(self->fd, offset, PAGE, RW, MAP_SHARED));

	/* first fit would choose the memory at @p if that memory were free */
	TAKE(self->other, size, &next);
	EXPECT_FALSE(fm_same_place(&reply, &next));
	ASSERT_EQ(0, fm_fill(self->other, next.out_handle, 0, size, 'y'));
	memset(p + size / 2, 'x', size / 2);
	for (i = 0; i < size; i++)
		ASSERT_EQ('x', p[i]);
	EXPECT_BYTES(self->other, &next, 'y');

	munmap(p, size);
	ACCOUNT(self->fd, &a);
	EXPECT_STREQ("", fm_wrong(&a));
	EXPECT_EQ(0, a.s.out_orphaned);
	EXPECT_EQ(size, a.s.out_owned);
	/*
	 * requests no alignment, because an aligned request would go to a
	 * larger hole, which fits wherever it starts
	 */
	ASSERT_EQ(0, fm_alloc(self->other, size, &next));
	EXPECT_TRUE(fm_same_place(&reply, &next));
}

TEST_F(map, last_unmapped_part_frees_the_allocation)
{
	struct flexmem_alloc reply;
	struct account a;
	char *p, *q;

	TAKE(self->fd, 4 * PAGE, &reply);
	p = fm_mmap(self->fd, reply.out_handle, 0, 4 * PAGE);
	q = fm_mmap(self->fd, reply.out_handle, PAGE, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_NE(MAP_FAILED, q);
	memset(p, 'x', 4 * PAGE);
	/* unmaps the middle, so that two mappings remain */
	ASSERT_EQ(0, munmap(p + PAGE, 2 * PAGE));
	EXPECT_EQ(SIGSEGV, fm_touch(p + PAGE, false));
	EXPECT_EQ('x', p[0]);
	EXPECT_EQ('x', p[3 * PAGE]);
	ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
	ASSERT_EQ(0, munmap(p, PAGE));
	EXPECT_EQ('x', p[3 * PAGE]);
	ASSERT_EQ(0, munmap(p + 3 * PAGE, PAGE));
	ACCOUNT(self->other, &a);
	EXPECT_EQ(4 * PAGE, a.s.out_orphaned);
	EXPECT_EQ('x', q[0]);
	ASSERT_EQ(0, munmap(q, PAGE));
	ACCOUNT(self->other, &a);
	EXPECT_EQ(0, a.s.out_orphaned);
	EXPECT_EQ(a.s.out_total, a.s.out_free);
}

TEST_F(map, a_killed_process_leaves_no_orphans)
{
	struct flexmem_alloc reply;
	struct child c;
	struct account a;
	char *p;

	if (child_start(&c)) {
		int fd = fm_open(variant->mode), bad;

		bad = fm_alloc_flags(fd, 3 * PAGE, FLEXMEM_ALLOC_MAPPABLE, &reply);
		p = fm_mmap(fd, reply.out_handle, 0, 3 * PAGE);
		bad |= p == MAP_FAILED || fm_touch(p, true) ||
		       fm_free(fd, reply.out_handle);
		child_ready(&c, !!bad);
	}
	ASSERT_EQ(0, child_wait_ready(&c));
	ACCOUNT(self->fd, &a);
	EXPECT_EQ(3 * PAGE, a.s.out_orphaned);
	EXPECT_EQ(SIGKILL, child_kill(&c));
	ACCOUNT(self->fd, &a);
	EXPECT_EQ(0, a.s.out_orphaned);
	EXPECT_EQ(a.s.out_total, a.s.out_free);
}

/* A mapping keeps the file open. */
TEST_F(map, close_before_munmap)
{
	struct flexmem_alloc reply;
	struct account a;
	char *p;

	TAKE(self->fd, PAGE, &reply);
	p = fm_mmap(self->fd, reply.out_handle, 0, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	p[5] = 'x';
	close(self->fd);
	EXPECT_EQ('x', p[5]);
	ACCOUNT(self->other, &a);
	EXPECT_EQ(2, a.s.out_clients);
	EXPECT_EQ(PAGE, a.s.out_owned);
	munmap(p, PAGE);
	ACCOUNT(self->other, &a);
	EXPECT_EQ(1, a.s.out_clients);
	EXPECT_EQ(0, a.s.out_owned);
	self->fd = fm_open(variant->mode);
}

TEST_F(map, cannot_grow_nor_be_doubled)
{
	struct flexmem_alloc a, next;
	char *p, *q;

	TAKE(self->fd, 2 * PAGE, &a);
	TAKE(self->other, 2 * PAGE, &next);
	p = fm_mmap(self->fd, a.out_handle, 0, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(MAP_FAILED, mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(p, PAGE, 4 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(p, 0, PAGE, MREMAP_MAYMOVE));
	/*
	 * mremap() may move the mapping, which must still show the same bytes
	 */
	p[7] = 'x';
	q = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, q);
	ASSERT_EQ(q, mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q));
	EXPECT_EQ('x', q[7]);
	q[8] = 'y';
	EXPECT_EQ(1, fm_others(self->fd, a.out_handle, 7, 2, 'y'));
	munmap(q, PAGE);
}

/*
 * The kernel may copy from and to mapped memory, but no caller can pin the
 * mapped pages.
 */
TEST_F(map, cannot_be_pinned)
{
	char text[] = "bytes of the device", back[sizeof(text)] = "";
	struct flexmem_alloc reply;
	struct iovec local, remote;
	int fds[2];
	char *p;

	TAKE(self->fd, PAGE, &reply);
	p = fm_mmap(self->fd, reply.out_handle, 0, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	memcpy(p, text, sizeof(text));
	ASSERT_EQ(0, pipe(fds));

	remote = (struct iovec) { p, sizeof(text) };
	EXPECT_EQ(-1, vmsplice(fds[1], &remote, 1, 0));
	EXPECT_EQ(EFAULT, errno);
	local = (struct iovec) { back, sizeof(back) };
	EXPECT_EQ(-1, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_TRUE(errno == EFAULT || errno == ENOSYS)
		TH_LOG("%s", strerror(errno));
	EXPECT_EQ(0, back[0]);

	ASSERT_EQ(sizeof(text), write(fds[1], p, sizeof(text)));
	memset(p, 0, PAGE);
	ASSERT_EQ(sizeof(text), read(fds[0], p + 100, sizeof(text)));
	ASSERT_EQ(0, fm_read(self->fd, reply.out_handle, 100, back, sizeof(back)));
	EXPECT_STREQ(text, back);
	close(fds[0]);
	close(fds[1]);
	munmap(p, PAGE);
}

/* Only the touched pages of a large mapping need host memory. */
TEST_F(map, a_large_map_is_filled_lazily)
{
	/* all of it, or as much as a 32-bit process can map */
	const size_t span = sizeof(void *) == 8 ? 8 * GiB : GiB;
	const __u64 length = 8 * GiB;
	struct flexmem_alloc reply;
	long long pages;
	char *p;

	TAKE(self->fd, length, &reply);
	pages = fm_knob_value("pages");
	ASSERT_LE(0, pages);
	p = fm_mmap(self->fd, reply.out_handle, length - span, span);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(pages, fm_knob_value("pages"));
	/*
	 * touches a page in the middle, because earlier tests have touched the
	 * first page of the card
	 */
	p[span / 4] = 'a';
	p[span / 2] = 'b';
	p[span - 1] = 'c';
	/*
	 * each fault adds one page to the simulated card, or the 2 MiB around
	 * that page
	 */
	EXPECT_LE(pages + 3, fm_knob_value("pages"));
	EXPECT_GE(pages + 3 * 512, fm_knob_value("pages"));
	EXPECT_EQ(0, p[span / 2 - 1]);
	EXPECT_EQ(0, fm_others(self->fd, reply.out_handle, length - 1, 1, 'c'));
	EXPECT_EQ(0, fm_others(self->fd, reply.out_handle,
			       length - span + span / 4, 1, 'a'));
	munmap(p, span);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/*
 * One fault maps 2 MiB, by pages or by a huge page. The parts before the first
 * multiple of 2 MiB and after the last one need one fault for each page.
 */
TEST_F(map, few_faults_fill_a_large_map)
{
	const size_t size = getenv("FLEXMEM_LONG") ? GiB : 32 * MiB;
	struct flexmem_alloc pad, reply;
	size_t i, differ = 0;
	long taken;
	char *p, *q;

	/* The pad makes the allocation begin between two multiples of 2 MiB. */
	TAKE(self->fd, 5 * PAGE, &pad);
	TAKE(self->fd, size, &reply);
	p = fm_mmap(self->fd, reply.out_handle, 0, size);
	ASSERT_NE(MAP_FAILED, p);
	q = fm_mmap(self->fd, pad.out_handle, 0, 5 * PAGE);
	ASSERT_NE(MAP_FAILED, q);
	memset(q, 'q', 5 * PAGE);
	taken = faults();
	for (i = 0; i < size; i += PAGE)
		*(volatile size_t *)(p + i) = i;
	taken = faults() - taken;
	TH_LOG("%ld faults for %zu pages", taken, size / PAGE);
	EXPECT_GE(512 + (long)(size >> 21), taken);
	for (i = 0; i < size; i += PAGE)
		differ += *(size_t *)(p + i) != i;
	EXPECT_EQ(0, differ);
	/* the neighbouring allocation has not changed */
	EXPECT_EQ(0, fm_others(self->fd, pad.out_handle, 0, 5 * PAGE, 'q'));
	munmap(q, 5 * PAGE);
	munmap(p, size);
}

/*
 * By default each inode with the number of the node has an address space of its
 * own. The driver gives all these inodes one address space, so that a
 * revocation finds all mappings.
 */
TEST_F(map, revocation_reaches_other_inodes_of_the_node)
{
	const char *path = "/dev/flexmem-selftest";
	struct flexmem_alloc reply;
	struct stat st;
	int fd;
	char *p;

	ASSERT_EQ(0, fstat(self->fd, &st));
	unlink(path);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, st.st_rdev));
	fd = open(path, O_RDWR | O_CLOEXEC);
	unlink(path);
	ASSERT_LE(0, fd);
	TAKE(fd, PAGE, &reply);
	p = fm_mmap(fd, reply.out_handle, 0, PAGE);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, fm_touch(p, true));
	RESET(variant->mode);
	EXPECT_EQ(SIGBUS, fm_touch(p, false));
	munmap(p, PAGE);
	close(fd);
}

/*
 * Mappings of all kinds: touched, untouched, of a part of an allocation, of a
 * freed allocation.
 */
struct maps {
	char *p[5];
};

#define NR_MAPS 5

static int make_maps(int fd, struct maps *m, __u32 *handle)
{
	struct flexmem_alloc a, orphan;
	int i;

	if (fm_alloc_flags(fd, 4 * PAGE, FLEXMEM_ALLOC_MAPPABLE, &a) ||
	    fm_alloc_flags(fd, 4 * PAGE, FLEXMEM_ALLOC_MAPPABLE, &orphan))
		return 1;
	*handle = a.out_handle;
	m->p[0] = fm_mmap(fd, a.out_handle, 0, 4 * PAGE);
	m->p[1] = fm_mmap(fd, a.out_handle, PAGE, PAGE);
	m->p[2] = fm_mmap_flags(fd, a.out_handle, 0, PAGE, PROT_READ, MAP_SHARED);
	m->p[3] = fm_mmap(fd, a.out_handle, 3 * PAGE, PAGE);
	m->p[4] = fm_mmap(fd, orphan.out_handle, 0, PAGE);
	for (i = 0; i < NR_MAPS; i++)
		if (m->p[i] == MAP_FAILED || (i != 1 && fm_touch(m->p[i], i != 2)))
			return 2 + i;
	return fm_free(fd, orphan.out_handle);
}

static void drop_maps(struct maps *m)
{
	static const int pages[NR_MAPS] = { 4, 1, 1, 1, 1 };
	int i;

	for (i = 0; i < NR_MAPS; i++)
		munmap(m->p[i], pages[i] * PAGE);
}

TEST_F(map, sigbus_after_reset)
{
	struct flexmem_alloc reply;
	struct maps m;
	__u32 handle;
	int i, status;
	pid_t pid;
	char *p;

	ASSERT_EQ(0, make_maps(self->fd, &m, &handle));
	RESET(variant->mode);
	for (i = 0; i < NR_MAPS; i++) {
		EXPECT_EQ(SIGBUS, fm_touch(m.p[i], false))
			TH_LOG("map %d", i);
		EXPECT_EQ(i == 2 ? SIGSEGV : SIGBUS, fm_touch(m.p[i], true));
	}
	/* a child that inherits a mapping reaches no more than its parent */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(fm_touch(m.p[0], false));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(SIGBUS, WEXITSTATUS(status));
	EXPECT_EQ(ENOENT, try_mmap(self->fd, offset_of(self->fd, handle), PAGE,
				   RW, MAP_SHARED));

	/*
	 * the old mappings do not show the new memory at the same device
	 * address
	 */
	TAKE(self->fd, 4 * PAGE, &reply);
	p = fm_mmap(self->fd, reply.out_handle, 0, 4 * PAGE);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, fm_touch(p, true));
	EXPECT_EQ(SIGBUS, fm_touch(m.p[0], false));
	drop_maps(&m);
	EXPECT_EQ(1, p[0]);
	EXPECT_EQ(0, fm_free(self->fd, handle));
	munmap(p, 4 * PAGE);
}

TEST_F(map, sigbus_after_unbind)
{
	struct maps m;
	__u32 handle;
	int i;

	ASSERT_EQ(0, make_maps(self->fd, &m, &handle));
	UNBIND(variant->mode);
	for (i = 0; i < NR_MAPS; i++)
		EXPECT_EQ(SIGBUS, fm_touch(m.p[i], false));
	must_fail(ENODEV, lookup, self->fd, &CMD(lookup, .handle = handle));
	EXPECT_EQ(ENODEV, try_mmap(self->fd, 0, PAGE, RW, MAP_SHARED));
	BIND(variant->mode);
	EXPECT_EQ(SIGBUS, fm_touch(m.p[0], false));
	drop_maps(&m);
}

/* Faults, unmaps, frees and resets at the same time. */
struct toucher {
	pthread_t thread;
	char *p;
	_Atomic int stop;
	unsigned int nr, signals;
};

static void *touch_all_the_time(void *arg)
{
	struct toucher *t = arg;
	int signal;

	while (!t->stop || !t->nr) {
		signal = fm_touch(t->p + t->nr % 4 * PAGE, t->nr % 3);
		t->signals += signal != 0;
		t->nr++;
	}
	return NULL;
}

TEST_F(map, faults_race_with_reset_and_munmap)
{
	struct flexmem_alloc reply;
	struct toucher t[2];
	int round, i;

	for (round = 0; round < 15; round++) {
		memset(t, 0, sizeof(t));
		TAKE(self->fd, 4 * PAGE, &reply);
		for (i = 0; i < 2; i++) {
			t[i].p = fm_mmap(self->fd, reply.out_handle, 0, 4 * PAGE);
			ASSERT_NE(MAP_FAILED, t[i].p);
			ASSERT_EQ(0, pthread_create(&t[i].thread, NULL,
						    touch_all_the_time, &t[i]));
		}
		usleep(2000);
		ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
		ASSERT_EQ(0, round % 2 ? fm_reset(variant->mode) :
			  munmap(t[0].p, 4 * PAGE));
		t[0].stop = t[1].stop = 1;
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, pthread_join(t[i].thread, NULL));
		if (round % 2)
			munmap(t[0].p, 4 * PAGE);
		if (!(round % 2))
			EXPECT_EQ(0, t[1].signals);
		munmap(t[1].p, 4 * PAGE);
		EXPECT_EQ(0, fm_stats(self->fd).out_used);
	}
}

TEST_HARNESS_MAIN
