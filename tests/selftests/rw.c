// SPDX-License-Identifier: GPL-2.0
/*
 * READ and WRITE with all lengths and offsets, with wrong arguments, and with a
 * buffer that reaches into unmapped memory.
 */
#include "tenants.h"

/* The most bytes that the driver copies in one piece. */
#define CHUNK (64 * KiB)
#define SIZE (3 * MiB + 640)

FIXTURE(rw) {
	int fd;
	struct flexmem_alloc at;	/* SIZE bytes */
	unsigned char *have;		/* bytes that @at must contain */
	unsigned char *buf;
};

FIXTURE_VARIANT(rw) {
	int mode;
	__u32 flags;
};

FIXTURE_VARIANT_ADD(rw, pf) { FM_PF, 0 };
FIXTURE_VARIANT_ADD(rw, vf) { FM_VF, 0 };
FIXTURE_VARIANT_ADD(rw, vf_mappable) { FM_VF, FLEXMEM_ALLOC_MAPPABLE };

FIXTURE_SETUP(rw)
{
	LOAD("max_regions=3 fallback_sizes=4G order=fill_first acquire=lazy",
	     "num_vfs=1");
	fm_mend();
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	/* the allocation does not begin where its region does */
	ASSERT_NE(0, fm_take(self->fd, 128));
	ASSERT_EQ(0, fm_alloc_flags(self->fd, SIZE, variant->flags |
				    FLEXMEM_ALLOC_ZEROED, &self->at));
	self->have = calloc(1, self->at.out_size);
	self->buf = malloc(self->at.out_size + 2);
	ASSERT_NE(NULL, self->have);
	ASSERT_NE(NULL, self->buf);
}

FIXTURE_TEARDOWN(rw)
{
	free(self->have);
	free(self->buf);
	fm_mend();
	close(self->fd);
	EXPECT_SETTLED(variant->mode);
}

static struct flexmem_rw range_of(FIXTURE_DATA(rw) *self, __u64 offset,
				   __u64 length)
{
	return CMD(rw, .handle = self->at.out_handle, .offset = offset,
		   .length = length, .data = (uintptr_t)self->buf,
		   .out_done = 77);
}

/* Expects that the allocation has the right bytes. */
#define EXPECT_ALL_RIGHT() do {						\
	struct flexmem_rw __all = range_of(self, 0, self->at.out_size); \
									\
	must(read, self->fd, &__all);					\
	EXPECT_EQ(self->at.out_size, __all.out_done);			\
	EXPECT_EQ(0, memcmp(self->have, self->buf, self->at.out_size));	\
} while (0)

TEST_F(rw, is_zero_at_first)
{
	EXPECT_ALL_RIGHT();
}

TEST_F(rw, lengths_and_offsets)
{
	static const __u32 offsets[] = {
		0, 1, 127, 128, 4095, 4096, 4097, CHUNK - 1, CHUNK, CHUNK + 1,
		2 * CHUNK - 3, MiB + 5, 2 * MiB
	};
	static const __u32 lengths[] = {
		1, 2, 3, 127, 128, 129, 4095, 4096, 4097, CHUNK - 1, CHUNK,
		CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 17, MiB
	};
	struct flexmem_rw c;
	unsigned int o, l;

	for (o = 0; o < ARRAY_SIZE(offsets); o++)
		for (l = 0; l < ARRAY_SIZE(lengths); l++) {
			/* tries long copies at only one offset of each kind */
			if (lengths[l] > 4097 && offsets[o] != 1 &&
			    offsets[o] != CHUNK - 1 && offsets[o] != CHUNK)
				continue;
			pattern(self->have + offsets[o], lengths[l], o * 31 + l);
			memcpy(self->buf, self->have + offsets[o], lengths[l]);
			c = range_of(self, offsets[o], lengths[l]);
			must(write, self->fd, &c);
			ASSERT_EQ(lengths[l], c.out_done);

			/* READ writes no byte beyond the buffer */
			memset(self->buf, 0xee, lengths[l] + 1);
			c = range_of(self, offsets[o], lengths[l]);
			must(read, self->fd, &c);
			ASSERT_EQ(lengths[l], c.out_done);
			ASSERT_EQ(0, memcmp(self->have + offsets[o], self->buf,
					    lengths[l]));
			ASSERT_EQ(0xee, self->buf[lengths[l]]);
		}
	EXPECT_ALL_RIGHT();
}

TEST_F(rw, all_at_once)
{
	struct flexmem_rw c = range_of(self, 0, self->at.out_size);

	pattern(self->have, self->at.out_size, 1);
	memcpy(self->buf, self->have, self->at.out_size);
	must(write, self->fd, &c);
	EXPECT_EQ(self->at.out_size, c.out_done);
	EXPECT_ALL_RIGHT();
}

TEST_F(rw, odd_addresses_of_the_caller)
{
	struct flexmem_rw c;
	unsigned int shift;

	for (shift = 0; shift < 2; shift++) {
		pattern(self->have, 2 * CHUNK, shift);
		memcpy(self->buf + 1, self->have, 2 * CHUNK);
		c = range_of(self, 0, 2 * CHUNK);
		c.data++;
		must(write, self->fd, &c);
		memset(self->buf, 0, 2 * CHUNK + 2);
		c = range_of(self, shift, 2 * CHUNK - shift);
		c.data++;
		must(read, self->fd, &c);
		EXPECT_EQ(0, memcmp(self->have + shift, self->buf + 1,
				    2 * CHUNK - shift));
	}
}

TEST_F(rw, ranges_beyond_the_allocation_are_einval)
{
	const __u64 size = self->at.out_size;
	const struct { __u64 offset, length; } bad[] = {
		{ 0, 0 }, { size, 0 }, { size, 1 }, { size - 1, 2 },
		{ 0, size + 1 }, { 1, size }, { size + 1, 1 }, { ~0ULL, 1 },
		{ ~0ULL, 2 }, { 1, ~0ULL }, { 128, ~0ULL - 127 }, { 0, ~0ULL },
		{ 1ULL << 63, 1ULL << 63 }, { 1ULL << 32, 1 },
		{ 0, (1ULL << 32) + 1 },
	};
	struct flexmem_rw c;
	unsigned int i;

	pattern(self->buf, size, 3);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		c = range_of(self, bad[i].offset, bad[i].length);
		must_fail(EINVAL, write, self->fd, &c)
			TH_LOG("%llu bytes from %llu", bad[i].length,
			       bad[i].offset);
		EXPECT_EQ(0, c.out_done);
		c = range_of(self, bad[i].offset, bad[i].length);
		must_fail(EINVAL, read, self->fd, &c);
		EXPECT_EQ(0, c.out_done);
	}
	EXPECT_ALL_RIGHT();
}

TEST_F(rw, unknown_handles_are_enoent)
{
	const __u32 bad[] = { 0, ~0U, self->at.out_handle ^ 0x40000000 };
	struct flexmem_rw c;
	int other = fm_open(variant->mode);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		c = range_of(self, 0, 1);
		c.handle = bad[i];
		must_fail(ENOENT, read, self->fd, &c);
		must_fail(ENOENT, write, self->fd, &c);
	}
	c = range_of(self, 0, 1);
	must_fail(ENOENT, read, other, &c);
	must_fail(ENOENT, write, other, &c);
	close(other);
	ASSERT_EQ(0, fm_free(self->fd, self->at.out_handle));
	must_fail(ENOENT, read, self->fd, &c);
	must_fail(ENOENT, write, self->fd, &c);
}

TEST_F(rw, unknown_flags_and_reserved_are_eopnotsupp)
{
	struct flexmem_rw c;
	int bit;

	for (bit = 0; bit < 32; bit++) {
		c = range_of(self, 0, 1);
		c.flags = 1U << bit;
		must_fail(EOPNOTSUPP, read, self->fd, &c);
		must_fail(EOPNOTSUPP, write, self->fd, &c);
		c = range_of(self, 0, 1);
		c.__reserved = 1U << bit;
		must_fail(EOPNOTSUPP, read, self->fd, &c);
		must_fail(EOPNOTSUPP, write, self->fd, &c);
	}
	EXPECT_ALL_RIGHT();
}

TEST_F(rw, no_memory_of_the_caller_is_efault)
{
	const __u64 where[] = {
		0, 4096, UINTPTR_MAX - 4095, ~0ULL - 4095, ~0ULL, 1ULL << 63,
		(uintptr_t)self->buf | 0x7fff000000000000ULL
	};
	struct flexmem_rw c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(where); i++) {
		c = range_of(self, 0, 128);
		c.data = where[i];
		must_fail(EFAULT, write, self->fd, &c)
			TH_LOG("at %#llx", where[i]);
		EXPECT_EQ(0, c.out_done);
		c = range_of(self, 0, 128);
		c.data = where[i];
		must_fail(EFAULT, read, self->fd, &c)
			TH_LOG("at %#llx", where[i]);
		EXPECT_EQ(0, c.out_done);
	}
	EXPECT_ALL_RIGHT();
}

/*
 * The buffer ends at an unmapped page. The driver copies the bytes before that
 * page, possibly without the last part of up to CHUNK bytes. out_done counts
 * the copied bytes. No other byte changes.
 */
static const __u32 ends[] = {
	1, 4095, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 4096, MiB + 3
};

/* Maps @n bytes in front of a page that is not mapped. */
static char *bytes_before_a_hole(size_t n)
{
	size_t page = getpagesize(), round = (n + page - 1) / page * page;
	char *p = mmap(NULL, round + page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	munmap(p + round, page);
	return p + round - n;
}

TEST_F(rw, a_hole_in_what_is_written)
{
	struct flexmem_rw c;
	unsigned int i;
	char *p;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		p = bytes_before_a_hole(ends[i]);
		ASSERT_NE(NULL, p);
		pattern((unsigned char *)p, ends[i], i + 100);
		c = range_of(self, 0, 2 * MiB);
		c.data = (uintptr_t)p;
		must_fail(EFAULT, write, self->fd, &c);
		EXPECT_GE(ends[i], c.out_done);
		EXPECT_LT(ends[i], c.out_done + CHUNK + 1);
		memcpy(self->have, p, c.out_done);
		EXPECT_ALL_RIGHT();
	}
}

TEST_F(rw, a_hole_in_where_it_is_read_to)
{
	struct flexmem_rw c;
	unsigned int i;
	char *p;

	pattern(self->have, 2 * MiB, 5);
	memcpy(self->buf, self->have, 2 * MiB);
	c = range_of(self, 0, 2 * MiB);
	must(write, self->fd, &c);
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		p = bytes_before_a_hole(ends[i]);
		ASSERT_NE(NULL, p);
		c = range_of(self, 0, 2 * MiB);
		c.data = (uintptr_t)p;
		must_fail(EFAULT, read, self->fd, &c);
		EXPECT_GE(ends[i], c.out_done);
		EXPECT_LT(ends[i], c.out_done + CHUNK + 1);
		EXPECT_EQ(0, memcmp(p, self->have, c.out_done));
	}
}

TEST_F(rw, read_only_memory_of_the_caller)
{
	struct flexmem_rw c = range_of(self, 0, 128);
	char *p = fm_two_pages(PROT_READ);

	ASSERT_NE(NULL, p);
	memset(p, 'w', getpagesize());
	c.data = (uintptr_t)p + getpagesize();
	must_fail(EFAULT, read, self->fd, &c);
	EXPECT_EQ(0, c.out_done);
	/* WRITE reads from the read-only buffer, which is allowed */
	c = range_of(self, 0, getpagesize() + 128);
	c.data = (uintptr_t)p;
	must(write, self->fd, &c);
	memset(self->have, 'w', getpagesize());
	EXPECT_ALL_RIGHT();
}

/*
 * The caller's buffer is mapped memory of the device, so copying to it causes
 * page faults.
 */
TEST_F(rw, from_and_to_a_map_of_the_same_allocation)
{
	struct flexmem_rw c;
	char *p;

	if (!(variant->flags & FLEXMEM_ALLOC_MAPPABLE))
		return;
	p = fm_mmap(self->fd, self->at.out_handle, 0, 2 * MiB);
	ASSERT_NE(MAP_FAILED, p);
	pattern(self->have, MiB, 9);
	memcpy(p, self->have, MiB);
	/* copies the first half to the second, by READ and by WRITE */
	c = range_of(self, MiB, MiB / 2);
	c.data = (uintptr_t)p;
	must(write, self->fd, &c);
	c = range_of(self, MiB / 2, MiB / 2);
	c.data = (uintptr_t)p + MiB + MiB / 2;
	must(read, self->fd, &c);
	munmap(p, 2 * MiB);
	memcpy(self->have + MiB, self->have, MiB);
	EXPECT_ALL_RIGHT();
}

TEST_F(rw, lost_allocation_is_eio)
{
	struct flexmem_rw c;

	RESET(variant->mode);
	c = range_of(self, 0, 128);
	must_fail(EIO, read, self->fd, &c);
	EXPECT_EQ(0, c.out_done);
	c = range_of(self, 0, 128);
	must_fail(EIO, write, self->fd, &c);
	EXPECT_EQ(0, c.out_done);
	/* a range beyond the end is refused and copies nothing */
	c = range_of(self, SIZE, SIZE);
	EXPECT_NE(0, raw_read(self->fd, &c));
}

/*
 * During a READ or WRITE the allocation is freed, and another file allocates.
 * The call must either succeed or return ENOENT.
 */
struct race {
	pthread_t thread;
	int fd;
	__u32 handle;
	unsigned char *buf;
	_Atomic int freed;
	unsigned int done, bad;
};

static void *rw_until_freed(void *arg)
{
	struct race *r = arg;
	int error, freed;

	do {
		freed = r->freed;
		error = r->done++ & 1 ?
			fm_read(r->fd, r->handle, 0, r->buf, MiB) :
			fm_write(r->fd, r->handle, 0, r->buf, MiB);
		r->bad += error && error != ENOENT;
		r->bad += freed && error != ENOENT;
	} while (!error);
	return NULL;
}

TEST_F(rw, freed_while_it_is_copied)
{
	struct race r[2] = { };
	struct flexmem_alloc reply;
	int round, i, other = fm_open(variant->mode);

	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, fm_alloc(self->fd, MiB, &reply));
		for (i = 0; i < 2; i++) {
			r[i] = (struct race) { .fd = self->fd, .buf = malloc(MiB),
					       .handle = reply.out_handle };
			memset(r[i].buf, 'r', MiB);
			ASSERT_EQ(0, pthread_create(&r[i].thread, NULL,
						    rw_until_freed, &r[i]));
		}
		usleep(3000);
		ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
		r[0].freed = r[1].freed = 1;
		/* the other file never gets bytes of the racing threads' file */
		ASSERT_EQ(0, fm_alloc(other, MiB, &reply));
		EXPECT_BYTES(other, &reply, 0);
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(0, pthread_join(r[i].thread, NULL));
			EXPECT_EQ(0, r[i].bad);
			free(r[i].buf);
		}
		EXPECT_BYTES(other, &reply, 0);
		ASSERT_EQ(0, fm_free(other, reply.out_handle));
	}
	close(other);
}

TEST_HARNESS_MAIN
