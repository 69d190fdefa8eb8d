// SPDX-License-Identifier: GPL-2.0
/*
 * COPY: it must change the right bytes and no others, and refuse every wrong
 * argument. Also tests what happens if the firmware fails, the device is reset
 * or the caller is killed.
 */
#include "tenants.h"

/* The most bytes that the driver copies with one command of the device. */
#define PIECE (16 * MiB)
#define SIZE (512 * KiB)

FIXTURE(copy) {
	int fd;
	struct flexmem_alloc to, from;	/* SIZE bytes each */
	/* the bytes that each allocation must hold */
	unsigned char *to_have, *from_have;
	unsigned char *buf;
};

FIXTURE_VARIANT(copy) {
	int mode;
	__u32 flags;
};

FIXTURE_VARIANT_ADD(copy, pf) { FM_PF, 0 };
FIXTURE_VARIANT_ADD(copy, vf) { FM_VF, 0 };
FIXTURE_VARIANT_ADD(copy, vf_mappable) { FM_VF, FLEXMEM_ALLOC_MAPPABLE };

/*
 * Makes two allocations in different regions. Neither begins at the start of
 * its region.
 */
FIXTURE_SETUP(copy)
{
	LOAD("max_regions=3 fallback_sizes=4G order=load_balance acquire=lazy",
	     "num_vfs=1");
	fm_mend();
	self->fd = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	/*
	 * The driver scrubs the bytes of closed files in the background. After
	 * this there are none, so each request to the firmware is the test's.
	 */
	ASSERT_EQ(0, fm_trim(self->fd));
	ASSERT_NE(0, fm_take(self->fd, 128));
	ASSERT_EQ(0, fm_alloc_flags(self->fd, SIZE, variant->flags, &self->to));
	ASSERT_NE(0, fm_take(self->fd, 128));
	ASSERT_EQ(0, fm_alloc_flags(self->fd, SIZE, variant->flags,
				    &self->from));
	ASSERT_NE(self->to.out_address.region_id,
		  self->from.out_address.region_id);
	self->to_have = malloc(SIZE);
	self->from_have = malloc(SIZE);
	self->buf = malloc(SIZE);
	ASSERT_NE(NULL, self->to_have);
	ASSERT_NE(NULL, self->from_have);
	ASSERT_NE(NULL, self->buf);
	pattern(self->to_have, SIZE, 1);
	pattern(self->from_have, SIZE, 2);
	ASSERT_EQ(0, fm_write(self->fd, self->to.out_handle, 0, self->to_have,
			      SIZE));
	ASSERT_EQ(0, fm_write(self->fd, self->from.out_handle, 0,
			      self->from_have, SIZE));
}

FIXTURE_TEARDOWN(copy)
{
	free(self->to_have);
	free(self->from_have);
	free(self->buf);
	fm_mend();
	close(self->fd);
	EXPECT_SETTLED(variant->mode);
}

static struct flexmem_copy range(FIXTURE_DATA(copy) *self,
				       __u64 to_offset, __u64 from_offset,
				       __u64 length)
{
	return CMD(copy, .to = self->to.out_handle,
		   .from = self->from.out_handle, .to_offset = to_offset,
		   .from_offset = from_offset, .length = length,
		   .out_done = 77);
}

/* Compares all bytes of both allocations with the expected bytes. */
#define EXPECT_ALL_RIGHT() do {						\
	ASSERT_EQ(0, fm_read(self->fd, self->to.out_handle, 0, self->buf, \
			     SIZE));					\
	EXPECT_EQ(0, memcmp(self->to_have, self->buf, SIZE));		\
	ASSERT_EQ(0, fm_read(self->fd, self->from.out_handle, 0, self->buf, \
			     SIZE));					\
	EXPECT_EQ(0, memcmp(self->from_have, self->buf, SIZE));		\
} while (0)

TEST_F(copy, lengths_and_offsets)
{
	static const __u32 offsets[] = { 0, 128, 3968, 4096, 4224, 65408 };
	static const __u32 lengths[] = { 128, 256, 4096, 4224, 3 * 65536 };
	struct flexmem_copy c;
	unsigned int t, f, l;

	for (t = 0; t < ARRAY_SIZE(offsets); t++)
		for (f = 0; f < ARRAY_SIZE(offsets); f++)
			for (l = 0; l < ARRAY_SIZE(lengths); l++) {
				c = range(self, offsets[t], offsets[f],
					  lengths[l]);
				must(copy, self->fd, &c);
				ASSERT_EQ(lengths[l], c.out_done);
				memcpy(self->to_have + offsets[t],
				       self->from_have + offsets[f],
				       lengths[l]);
			}
	EXPECT_ALL_RIGHT();
}

TEST_F(copy, all_at_once)
{
	struct flexmem_copy c = range(self, 0, 0, SIZE);

	must(copy, self->fd, &c);
	EXPECT_EQ(SIZE, c.out_done);
	memcpy(self->to_have, self->from_have, SIZE);
	EXPECT_ALL_RIGHT();
}

TEST_F(copy, within_one_allocation)
{
	struct flexmem_copy c = range(self, SIZE / 2, 0, SIZE / 2);

	c.from = c.to;
	must(copy, self->fd, &c);
	memcpy(self->to_have + SIZE / 2, self->to_have, SIZE / 2);
	EXPECT_ALL_RIGHT();
	/* copies back, up to the end of the allocation */
	c.to_offset = 128;
	c.from_offset = SIZE / 2 + 128;
	c.length = SIZE / 2 - 128;
	must(copy, self->fd, &c);
	EXPECT_ALL_RIGHT();
}

TEST_F(copy, ranges_that_overlap_are_einval)
{
	static const __u64 to[] = { 0, 128, 3968, 4096, 4224, 8064 };
	struct flexmem_copy c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(to); i++) {
		c = range(self, to[i], 4096, 4096 + 128);
		c.from = c.to;
		must_fail(EINVAL, copy, self->fd, &c)
			TH_LOG("to %llu", to[i]);
		EXPECT_EQ(0, c.out_done);
	}
	EXPECT_ALL_RIGHT();
}

TEST_F(copy, ranges_outside_or_unaligned_are_einval)
{
	static const __u64 top = ~0ULL - 127;
	static const struct { __u64 to, from, length; } bad[] = {
		{ 0, 0, 0 }, { SIZE, 0, 0 }, { 0, 0, SIZE + 128 },
		{ 128, 0, SIZE }, { 0, 128, SIZE }, { SIZE, 0, 128 },
		{ 0, SIZE, 128 }, { 0, 0, 1 }, { 0, 0, 64 }, { 0, 0, 129 },
		{ 1, 0, 128 }, { 64, 0, 128 }, { 0, 1, 128 }, { 0, 64, 128 },
		{ 0, 0, top }, { top, 0, 128 }, { 0, top, 128 },
		{ top, 0, 256 }, { 0, top, 256 }, { 128, 0, top },
		{ 0, 128, top }, { 1ULL << 32, 0, 128 },
		{ 0, 0, (1ULL << 32) + 128 },
	};
	struct flexmem_copy c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		c = range(self, bad[i].to, bad[i].from, bad[i].length);
		must_fail(EINVAL, copy, self->fd, &c)
			TH_LOG("%llu bytes from %llu to %llu", bad[i].length,
			       bad[i].from, bad[i].to);
		EXPECT_EQ(0, c.out_done);
	}
	EXPECT_ALL_RIGHT();
}

TEST_F(copy, unknown_handles_are_enoent)
{
	const __u32 bad[] = { 0, ~0U, self->to.out_handle ^ 0x40000000 };
	int other = fm_open(variant->mode);
	struct flexmem_copy c;
	unsigned int i;

	ASSERT_LE(0, other);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		c = range(self, 0, 0, 128);
		c.to = bad[i];
		must_fail(ENOENT, copy, self->fd, &c);
		c = range(self, 0, 0, 128);
		c.from = bad[i];
		must_fail(ENOENT, copy, self->fd, &c);
	}
	/* a handle of another file works neither as source nor as target */
	c = range(self, 0, 0, 128);
	must_fail(ENOENT, copy, other, &c);
	close(other);
	ASSERT_EQ(0, fm_free(self->fd, self->from.out_handle));
	must_fail(ENOENT, copy, self->fd, &c);
	EXPECT_EQ(0, c.out_done);
}

/*
 * The driver splits this copy. Bytes that were never written must be zero in
 * the copy too.
 */
TEST_F(copy, more_than_a_piece)
{
	const __u64 length = PIECE + 4224;
	struct flexmem_copy c;
	struct flexmem_alloc long_one;

	ASSERT_EQ(0, fm_alloc_flags(self->fd, 2 * length, FLEXMEM_ALLOC_ZEROED,
				    &long_one));
	ASSERT_EQ(0, fm_write(self->fd, long_one.out_handle, PIECE - 128,
			      self->from_have, 4352));
	ASSERT_EQ(0, fm_fill(self->fd, long_one.out_handle, length, 4096, 'x'));
	c = range(self, length, 0, length);
	c.to = long_one.out_handle;
	c.from = long_one.out_handle;
	must(copy, self->fd, &c);
	EXPECT_EQ(length, c.out_done);
	EXPECT_EQ(0, fm_others(self->fd, long_one.out_handle, length,
			       PIECE - 128, 0));
	ASSERT_EQ(0, fm_read(self->fd, long_one.out_handle,
			     length + PIECE - 128, self->buf, 4352));
	EXPECT_EQ(0, memcmp(self->buf, self->from_have, 4352));
}

TEST_F(copy, failures_of_the_firmware_are_reported)
{
	struct flexmem_copy c = range(self, 0, 0, SIZE);

	KNOB("fault_command", "copy");
	KNOB("fail_commands", "1");
	must_fail(EIO, copy, self->fd, &c);
	EXPECT_EQ(0, c.out_done);
	must(copy, self->fd, &c);
	memcpy(self->to_have, self->from_have, SIZE);
	EXPECT_ALL_RIGHT();
	KNOB("drop_replies", "1");
	must_fail(ETIMEDOUT, copy, self->fd, &c);
	EXPECT_EQ(0, c.out_done);
	fm_mend();
	/* after one lost reply the next command succeeds */
	must(copy, self->fd, &c);
}

TEST_F(copy, lost_allocation_is_eio)
{
	struct flexmem_alloc fresh;
	struct flexmem_copy c;

	RESET(variant->mode);
	ASSERT_EQ(0, fm_alloc(self->fd, SIZE, &fresh));
	c = range(self, 0, 0, 128);
	must_fail(EIO, copy, self->fd, &c);
	EXPECT_EQ(0, c.out_done);
	c.to = fresh.out_handle;
	must_fail(EIO, copy, self->fd, &c);
	c.from = fresh.out_handle;
	c.to = self->to.out_handle;
	must_fail(EIO, copy, self->fd, &c);
	c.to = fresh.out_handle;
	c.to_offset = 128;
	must(copy, self->fd, &c);
}

TEST_F(copy, a_waiting_caller_can_be_killed)
{
	struct flexmem_copy c = range(self, 0, 0, SIZE);
	long long requests = fm_counter("requests");
	long long killed = fm_counter("killed");
	pid_t pid;

	KNOB("dead", "1");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		raw_copy(self->fd, &c);
		_exit(1);
	}
	fm_await_counter("requests", requests);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(killed + 1, fm_counter("killed"));
	fm_mend();
	/* the failed copy has released its references */
	ASSERT_EQ(0, fm_free(self->fd, self->to.out_handle));
	ASSERT_EQ(0, fm_free(self->fd, self->from.out_handle));
}

/*
 * During a COPY the allocation is freed, and another file allocates. COPY must
 * either succeed or return ENOENT.
 */
struct race {
	pthread_t thread;
	int fd;
	__u32 to, from;
	_Atomic int freed;
	unsigned int bad;
};

static void *copy_until_freed(void *arg)
{
	struct race *r = arg;
	int error, freed;

	do {
		struct flexmem_copy c = CMD(copy, .to = r->to,
						  .from = r->from,
						  .length = SIZE);

		freed = r->freed;
		error = raw_copy(r->fd, &c);
		r->bad += error && error != ENOENT;
		r->bad += freed && error != ENOENT;
	} while (!error);
	return NULL;
}

TEST_F(copy, freed_while_it_is_copied)
{
	int round, other = fm_open(variant->mode);
	struct race r = { .fd = self->fd, .from = self->from.out_handle };
	struct flexmem_alloc reply;

	ASSERT_LE(0, other);
	/* the other file never gets bytes of the racing thread's file */
	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, fm_alloc(self->fd, SIZE, &reply));
		r.to = reply.out_handle;
		r.freed = 0;
		ASSERT_EQ(0, pthread_create(&r.thread, NULL, copy_until_freed,
					    &r));
		usleep(3000);
		ASSERT_EQ(0, fm_free(self->fd, reply.out_handle));
		r.freed = 1;
		ASSERT_EQ(0, fm_alloc(other, SIZE, &reply));
		EXPECT_BYTES(other, &reply, 0);
		ASSERT_EQ(0, pthread_join(r.thread, NULL));
		EXPECT_EQ(0, r.bad);
		EXPECT_BYTES(other, &reply, 0);
		ASSERT_EQ(0, fm_free(other, reply.out_handle));
	}
	close(other);
}

TEST_HARNESS_MAIN
