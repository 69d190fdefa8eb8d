// SPDX-License-Identifier: GPL-2.0
/*
 * A PF or VF is reset while users have allocations. The allocations are lost,
 * and calls report that. New allocations work, and no old handle or address
 * reaches them. The operator gets an event.
 */
#include "tenants.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#define PAGE 4096
#define PARAMS "max_regions=3 fallback_sizes=4G order=fill_first "	\
	"strategy=first_fit acquire=lazy program_slots=0"
#define SIM "num_vfs=1 memory=64G vf_capacity=16G"

FIXTURE(reset) {
	int fd;
	int other;
};

FIXTURE_VARIANT(reset) {
	int mode;
	const char *memory;	/* the name of the PF's or VF's knob */
};

FIXTURE_VARIANT_ADD(reset, pf) { FM_PF, "pf/memory" };
FIXTURE_VARIANT_ADD(reset, vf) { FM_VF, "vf0/memory" };

FIXTURE_SETUP(reset)
{
	LOAD(PARAMS, SIM);
	fm_mend();
	self->fd = fm_open(variant->mode);
	self->other = fm_open(variant->mode);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->other);
	ASSERT_EQ(0, fm_trim(self->fd));
}

FIXTURE_TEARDOWN(reset)
{
	fm_mend();
	close(self->fd);
	close(self->other);
	EXPECT_SETTLED(variant->mode);
}

static __u64 resets(int fd)
{
	struct account a;

	return fm_account(fd, &a) ? ~0ULL : a.s.out_resets;
}

static __u64 generation(int fd)
{
	return fm_stats(fd).out_generation;
}

/* The number of pieces of memory that the PF or VF has on the card. */
static int pieces(const char *memory)
{
	char path[128], line[128];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), FM_KNOBS "%s", memory);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		n++;
	if (f)
		fclose(f);
	return n;
}

TEST_F(reset, of_an_empty_device)
{
	const __u64 before = resets(self->fd), old = generation(self->fd);

	RESET(variant->mode);
	EXPECT_EQ(before + 1, resets(self->fd));
	EXPECT_LT(old, generation(self->fd));
	EXPECT_NE(0, fm_take(self->fd, GiB));
	RESET(variant->mode);
	RESET(variant->mode);
	EXPECT_EQ(before + 3, resets(self->fd));
}

TEST_F(reset, lost_handles_can_be_looked_up_and_freed)
{
	struct flexmem_alloc reply = CMD(alloc, .length = 1000,
					 .flags = FLEXMEM_ALLOC_MAPPABLE);
	struct flexmem_lookup lookup;
	char byte = 1;

	must(alloc, self->fd, &reply);
	RESET(variant->mode);
	lookup = CMD(lookup, .handle = reply.out_handle);
	must(lookup, self->fd, &lookup);
	EXPECT_EQ(FLEXMEM_ALLOC_MAPPABLE | FLEXMEM_LOOKUP_LOST, lookup.out_flags);
	EXPECT_EQ(PAGE, lookup.out_size);
	EXPECT_EQ(reply.out_address.region_id, lookup.out_address.region_id);
	EXPECT_EQ(reply.out_address.offset, lookup.out_address.offset);

	EXPECT_EQ(MAP_FAILED, fm_mmap(self->fd, reply.out_handle, 0, PAGE));
	EXPECT_EQ(EIO, fm_read(self->fd, reply.out_handle, 0, &byte, 1));
	EXPECT_EQ(EIO, fm_write(self->fd, reply.out_handle, 0, &byte, 1));
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, reply.out_address));
	/* another file cannot use the handle */
	must_fail(ENOENT, lookup, self->other, &lookup);
	EXPECT_EQ(ENOENT, fm_free(self->other, reply.out_handle));

	EXPECT_EQ(0, fm_free(self->fd, reply.out_handle));
	EXPECT_EQ(ENOENT, fm_free(self->fd, reply.out_handle));
	must_fail(ENOENT, lookup, self->fd, &lookup);
}

TEST_F(reset, lost_bytes_have_no_owner)
{
	const __u64 id = fm_client_id(self->fd);
	struct account a;
	__u32 handle;

	handle = fm_take(self->fd, GiB);
	ASSERT_NE(0, handle);
	ASSERT_NE(0, fm_take(self->other, GiB));
	EXPECT_EQ(1, pieces(variant->memory));
	RESET(variant->mode);
	EXPECT_EQ(0, pieces(variant->memory));
	ACCOUNT(self->fd, &a);
	EXPECT_STREQ("", fm_wrong(&a));
	EXPECT_EQ(0, a.s.out_total);
	EXPECT_EQ(0, a.s.out_region_count);
	EXPECT_EQ(0, fm_owner(&a, FLEXMEM_OWNER_CLIENT, id)->bytes);
	EXPECT_EQ(0, fm_owner(&a, FLEXMEM_OWNER_CLIENT, id)->slots);
	EXPECT_EQ(0, fm_stats(self->fd).out_used);
	EXPECT_EQ(0, fm_stats(self->fd).out_client_used);
	ASSERT_EQ(0, fm_free(self->fd, handle));
	ACCOUNT(self->fd, &a);
	EXPECT_STREQ("", fm_wrong(&a));
	EXPECT_EQ(0, fm_owner(&a, FLEXMEM_OWNER_CLIENT, id)->handles);
}

/*
 * New memory may have the address of lost memory. Old handles must not reach
 * the new memory.
 */
TEST_F(reset, the_same_address_again_is_the_new_one)
{
	struct flexmem_alloc old[4], new[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, fm_alloc(self->fd, MiB, &old[i]));
	RESET(variant->mode);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, fm_alloc(i & 1 ? self->fd : self->other, MiB, &new[i]));
		EXPECT_TRUE(fm_same_place(&old[i], &new[i]));
		EXPECT_NE(old[i].out_handle, new[1].out_handle);
		ASSERT_EQ(0, fm_fill(i & 1 ? self->fd : self->other,
				     new[i].out_handle, 0, MiB, 'n'));
	}
	/* another file's new allocation has this address */
	EXPECT_EQ(ENOENT, fm_free_address(self->fd, old[0].out_address));
	/*
	 * this file's new allocation has this address: FREE by address frees
	 * the new allocation, and the lost one keeps its handle
	 */
	EXPECT_EQ(0, fm_free_address(self->fd, old[1].out_address));
	EXPECT_EQ(ENOENT, fm_free(self->fd, new[1].out_handle));
	must(lookup, self->fd, &CMD(lookup, .handle = old[1].out_handle));
	/*
	 * freeing the lost allocations in any order leaves the new ones alone
	 */
	for (i = 4; i--;)
		EXPECT_EQ(0, fm_free(self->fd, old[i].out_handle));
	EXPECT_BYTES(self->other, &new[0], 'n');
	EXPECT_BYTES(self->fd, &new[3], 'n');
	EXPECT_EQ(3 * MiB, fm_stats(self->fd).out_used);
	EXPECT_STREQ("", fm_sums(self->fd, false));
}

TEST_F(reset, handles_outlive_several_resets)
{
	struct flexmem_alloc old[3];
	struct flexmem_lookup lookup;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, fm_alloc(self->fd, MiB, &old[i]));
		RESET(variant->mode);
	}
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(fm_same_place(&old[0], &old[i]));
		lookup = CMD(lookup, .handle = old[i].out_handle);
		must(lookup, self->fd, &lookup);
		EXPECT_EQ(FLEXMEM_LOOKUP_LOST, lookup.out_flags);
	}
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, fm_free(self->fd, old[i].out_handle));
	EXPECT_EQ(0, fm_stats(self->fd).out_client_handles);
}

TEST_F(reset, batches_free_what_was_lost)
{
	struct flexmem_free e[50];
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(e[0]),
					 .count = ARRAY_SIZE(e),
					 .entries = (uintptr_t)e);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(e); i++) {
		e[i] = CMD(free, .handle = fm_take(self->fd, 1 + i * 1000));
		ASSERT_NE(0, e[i].handle);
		if (i == 20)
			RESET(variant->mode);
	}
	must(free_batch, self->fd, &batch);
	for (i = 0; i < ARRAY_SIZE(e); i++)
		EXPECT_EQ(0, e[i].out_error);
	EXPECT_EQ(0, fm_stats(self->fd).out_used);
}

TEST_F(reset, close_frees_what_was_lost)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		ASSERT_NE(0, fm_take(self->other, 10000));
	RESET(variant->mode);
	for (i = 0; i < 100; i++)
		ASSERT_NE(0, fm_take(self->other, 10000));
	close(self->other);
	EXPECT_EQ(0, fm_stats(self->fd).out_used);
	EXPECT_STREQ("", fm_sums(self->fd, true));
	self->other = fm_open(variant->mode);
}

TEST_F(reset, counts_a_generation)
{
	__u64 old;

	ASSERT_NE(0, fm_take(self->fd, MiB));
	old = fm_stats(self->fd).out_generation;
	RESET(variant->mode);
	EXPECT_LT(old, fm_stats(self->fd).out_generation);
	EXPECT_EQ(0, fm_trim(self->fd));
}

TEST_F(reset, limits_and_owners_stay)
{
	const __u64 root = fm_cgroup_id("");
	struct flexmem_alloc a, b;

	must(set_limit, self->fd, &CMD(resource_limit, .cgroup = root, .limit = MiB));
	ASSERT_NE(0, fm_take(self->other, MiB));
	RESET(variant->mode);
	ASSERT_EQ(0, fm_alloc(self->other, MiB, &a));
	EXPECT_EQ(0, fm_take(self->other, 128));
	ASSERT_EQ(0, fm_fill(self->other, a.out_handle, 0, MiB, 's'));
	ASSERT_EQ(0, fm_free(self->other, a.out_handle));
	ASSERT_EQ(0, fm_alloc(self->fd, MiB, &b));
	EXPECT_TRUE(fm_same_place(&a, &b));
	EXPECT_BYTES(self->fd, &b, 0);
	must(set_limit, self->fd, &CMD(resource_limit, .cgroup = root,
				       .limit = FLEXMEM_NO_LIMIT));
}

/* The firmware does not answer, which is the usual cause of a reset. */
TEST_F(reset, with_a_dead_firmware)
{
	struct flexmem_alloc reply;
	__u32 handle;

	handle = fm_take(self->fd, MiB);
	ASSERT_NE(0, handle);
	KNOB("timeout_ms", "200");
	KNOB("dead", "1");
	EXPECT_EQ(ETIMEDOUT, fm_alloc(self->other, 4 * GiB, &reply));
	fm_reset(variant->mode);
	fm_mend();
	RESET(variant->mode);
	EXPECT_EQ(0, pieces(variant->memory));
	EXPECT_EQ(0, fm_free(self->fd, handle));
	ASSERT_EQ(0, fm_alloc(self->fd, MiB, &reply));
	EXPECT_BYTES(self->fd, &reply, 0);
	EXPECT_EQ(1, pieces(variant->memory));
}

/* The firmware cannot stop a copy. Until the reset it gets no command. */
TEST_F(reset, after_bytes_that_may_still_move)
{
	struct flexmem_alloc reply;
	__u32 handle;
	char byte;

	handle = fm_take(self->fd, MiB);
	ASSERT_NE(0, handle);
	KNOB("fault_command", "read");
	KNOB("hang_commands", "1");
	EXPECT_EQ(EIO, fm_read(self->fd, handle, 0, &byte, 1));
	EXPECT_EQ(EIO, fm_read(self->fd, handle, 0, &byte, 1));
	EXPECT_EQ(EIO, fm_trim(self->other));
	RESET(variant->mode);
	EXPECT_EQ(0, fm_free(self->fd, handle));
	ASSERT_EQ(0, fm_alloc(self->fd, MiB, &reply));
	EXPECT_BYTES(self->fd, &reply, 0);
}

/* A thread that allocates, frees, maps and copies until the test ends. */
struct worker {
	pthread_t thread;
	int fd;
	_Atomic int *stop;
	unsigned int done, lost, bad;
};

static void *live_with_resets(void *arg)
{
	struct worker *w = arg;
	struct flexmem_alloc reply;
	char byte = 'w', *p;
	int error;

	while (!*w->stop || !w->done) {
		w->done++;
		error = fm_alloc_flags(w->fd, 3 * PAGE, FLEXMEM_ALLOC_MAPPABLE,
				       &reply);
		/* the reset may come during the call */
		if (error) {
			w->lost += error == EIO;
			w->bad += error != EIO;
			continue;
		}
		error = fm_write(w->fd, reply.out_handle, PAGE, &byte, 1);
		w->lost += error == EIO;
		w->bad += error && error != EIO;
		p = fm_mmap(w->fd, reply.out_handle, 0, 3 * PAGE);
		if (p != MAP_FAILED) {
			error = fm_touch(p + PAGE, w->done % 2);
			w->bad += error && error != SIGBUS;
		} else {
			w->bad += errno != EIO && errno != ENOENT;
		}
		if (w->done % 3)
			w->bad += fm_free(w->fd, reply.out_handle) != 0;
		if (p != MAP_FAILED)
			munmap(p, 3 * PAGE);
	}
	return NULL;
}

#define WORKERS 4

TEST_F(reset, under_load)
{
	const __u64 before = resets(self->fd);
	struct worker w[WORKERS] = { };
	_Atomic int stop = 0;
	struct account a;
	unsigned int lost = 0, done = 0;
	int i;

	for (i = 0; i < WORKERS; i++) {
		w[i].fd = i & 1 ? self->fd : self->other;
		w[i].stop = &stop;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL,
					    live_with_resets, &w[i]));
	}
	for (i = 0; i < 20; i++) {
		usleep(10000);
		RESET(variant->mode);
		ACCOUNT(self->fd, &a);
		EXPECT_STREQ("", fm_wrong(&a));
	}
	stop = 1;
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].bad);
		EXPECT_NE(0, w[i].done);
		lost += w[i].lost;
		done += w[i].done;
	}
	TH_LOG("%u allocations, %u of them met a reset", done, lost);
	EXPECT_EQ(before + 20, resets(self->fd));
}

/* ---- messages to the operator ---- */

static int uevent_socket(void)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	struct timeval timeout = { .tv_sec = 60 };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
			NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && (bind(fd, (struct sockaddr *)&to, sizeof(to)) ||
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout,
				   sizeof(timeout)))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whether a uevent, which is a sequence of strings, contains @string. */
static bool has(const char *message, ssize_t n, const char *string)
{
	const char *p;

	for (p = message; p < message + n; p += strlen(p) + 1)
		if (!strcmp(p, string))
			return true;
	return false;
}

TEST_F(reset, a_uevent_is_sent)
{
	char message[4096] = "", devname[64], path[32];
	int nl = uevent_socket(), fd;
	bool seen = false;
	ssize_t n;

	ASSERT_LE(0, nl);
	fd = fm_open_nth(variant->mode, 0, path);
	close(fd);
	snprintf(devname, sizeof(devname), "DEVNAME=%s", path + strlen("/dev/"));
	RESET(variant->mode);
	while (!seen) {
		n = recv(nl, message, sizeof(message) - 1, 0);
		ASSERT_LT(0, n);
		message[n] = '\0';
		seen = has(message, n, "FLEXMEM_EVENT=reset");
	}
	EXPECT_TRUE(has(message, n, "ACTION=change"));
	EXPECT_TRUE(has(message, n, devname));
	EXPECT_TRUE(has(message, n, "WEDGED=none"));
	close(nl);
}

TEST_HARNESS_MAIN
