// SPDX-License-Identifier: GPL-2.0
/*
 * No user may read bytes of another user, however memory passes from one owner
 * to another. Each test writes as one owner, frees the memory, and checks that
 * another owner gets the same memory without these bytes.
 */
#include "tenants.h"

#include <sys/socket.h>

#define SIZE (256 * KiB)
#define A 0xa1		/* the byte that Alice writes */
#define B 0xb2
#define REGION (4 * GiB)

FIXTURE(scrub) {
	int root;
	int alice;
	int alice2;		/* another file of the same user */
	int bob;
};

FIXTURE_VARIANT(scrub) {
	int mode;
	const char *memory;	/* the PF's or VF's file in debugfs */
};

FIXTURE_VARIANT_ADD(scrub, pf) { FM_PF, "pf/memory" };
FIXTURE_VARIANT_ADD(scrub, vf) { FM_VF, "vf0/memory" };

FIXTURE_SETUP(scrub)
{
	LOAD("max_regions=3 fallback_sizes=4G order=fill_first "
	     "strategy=first_fit acquire=lazy program_slots=0" FM_PF_FOR_ALL,
	     "num_vfs=2 memory=48G vf_capacity=16G");
	OPEN_TENANTS();
	self->alice2 = fm_open_as(variant->mode, ALICE);
	ASSERT_LE(0, self->alice2);
}

FIXTURE_TEARDOWN(scrub)
{
	fm_mend();
	close(self->alice);
	close(self->alice2);
	close(self->bob);
	EXPECT_EQ(0, fm_trim(self->root));
	close(self->root);
	EXPECT_SETTLED(variant->mode);
}

/* Allocates and fills. Returns 0 or an errno. */
static int take_and_fill(int fd, __u64 length, int byte,
			 struct flexmem_alloc *reply)
{
	int error = fm_alloc(fd, length, reply);

	return error ?: fm_fill(fd, reply->out_handle, 0, length, byte);
}

#define TAKE(fd, length, reply) ASSERT_EQ(0, fm_alloc(fd, length, reply))
#define FILL(fd, length, byte, reply)					\
	ASSERT_EQ(0, take_and_fill(fd, length, byte, reply))
#define FREE(fd, reply) ASSERT_EQ(0, fm_free(fd, (reply)->out_handle))
#define EXPECT_CLEAN(fd, reply) EXPECT_BYTES(fd, reply, 0)

static __u64 scrubbed(int fd)
{
	struct account a;

	return fm_account(fd, &a) ? ~0ULL : a.s.out_scrubbed;
}

static __u64 quarantined(int fd)
{
	struct account a;

	return fm_account(fd, &a) ? ~0ULL : a.s.out_quarantined;
}

TEST_F(scrub, after_free)
{
	struct flexmem_alloc a, b;
	__u64 before;

	FILL(self->alice, SIZE, A, &a);
	EXPECT_BYTES(self->alice, &a, A);
	FREE(self->alice, &a);
	before = scrubbed(self->root);
	TAKE(self->bob, SIZE, &b);
	EXPECT_TRUE(fm_same_place(&a, &b));
	EXPECT_CLEAN(self->bob, &b);
	EXPECT_LE(before + SIZE, scrubbed(self->root));
}

/* A file's own bytes are not scrubbed; another file of the user never gets them. */
TEST_F(scrub, the_same_file_gets_its_own_bytes_back)
{
	struct flexmem_alloc a, again;
	__u64 before;

	FILL(self->alice, SIZE, A, &a);
	before = scrubbed(self->root);
	FREE(self->alice, &a);
	TAKE(self->alice, SIZE, &again);
	EXPECT_TRUE(fm_same_place(&a, &again));
	EXPECT_BYTES(self->alice, &again, A);
	FREE(self->alice, &again);
	EXPECT_EQ(before, scrubbed(self->root));
	TAKE(self->alice2, SIZE, &again);
	EXPECT_TRUE(fm_same_place(&a, &again));
	EXPECT_CLEAN(self->alice2, &again);
}

TEST_F(scrub, zeroed_means_everyones_bytes)
{
	struct flexmem_alloc a, again;

	FILL(self->alice, SIZE, A, &a);
	FREE(self->alice, &a);
	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, FLEXMEM_ALLOC_ZEROED,
				    &again));
	EXPECT_TRUE(fm_same_place(&a, &again));
	EXPECT_CLEAN(self->alice, &again);
}

TEST_F(scrub, after_close)
{
	struct flexmem_alloc a, b;

	FILL(self->alice, SIZE, A, &a);
	close(self->alice);
	TAKE(self->bob, SIZE, &b);
	EXPECT_TRUE(fm_same_place(&a, &b));
	EXPECT_CLEAN(self->bob, &b);
	self->alice = fm_open_as(variant->mode, ALICE);
}

TEST_F(scrub, after_a_kill)
{
	struct flexmem_alloc b[4];
	struct child c;
	unsigned int i;

	if (child_start(&c)) {
		int fd = fm_open_as(variant->mode, ALICE), bad = 0;

		for (i = 0; i < ARRAY_SIZE(b); i++)
			bad |= take_and_fill(fd, SIZE, A, &b[i]);
		child_ready(&c, !!bad);
	}
	ASSERT_EQ(0, child_wait_ready(&c));
	EXPECT_EQ(4 * SIZE, fm_stats(self->root).out_used);
	EXPECT_EQ(SIGKILL, child_kill(&c));
	for (i = 0; i < ARRAY_SIZE(b); i++) {
		TAKE(self->bob, SIZE, &b[i]);
		EXPECT_EQ(i * SIZE, b[i].out_address.offset);
		EXPECT_CLEAN(self->bob, &b[i]);
	}
}

/*
 * Another user gets a part of a free block. The remaining part still has
 * Alice's bytes.
 */
TEST_F(scrub, after_a_split)
{
	struct flexmem_alloc a, b[3], again;
	unsigned int i;

	FILL(self->alice, SIZE, A, &a);
	FREE(self->alice, &a);
	for (i = 0; i < ARRAY_SIZE(b); i++) {
		TAKE(self->bob, SIZE / 8, &b[i]);
		EXPECT_EQ(a.out_address.offset + i * SIZE / 8,
			  b[i].out_address.offset);
		EXPECT_CLEAN(self->bob, &b[i]);
		ASSERT_EQ(0, fm_fill(self->bob, b[i].out_handle, 0, SIZE / 8, B));
	}
	TAKE(self->alice, SIZE / 2, &again);
	EXPECT_EQ(a.out_address.offset + 3 * SIZE / 8, again.out_address.offset);
	EXPECT_EQ(0, fm_others(self->alice, again.out_handle, 0, SIZE / 2, A));
	TAKE(self->bob, SIZE, &b[0]);
	EXPECT_CLEAN(self->bob, &b[0]);
}

/* Free neighbours of several owners merge into a mixed block. */
TEST_F(scrub, after_a_merge)
{
	static const int orders[][3] = {
		{ 0, 1, 2 }, { 2, 1, 0 }, { 0, 2, 1 }, { 1, 0, 2 }
	};
	struct flexmem_alloc part[3], all;
	const int fds[] = { self->alice, self->bob, self->alice };
	unsigned int o, i;

	for (o = 0; o < ARRAY_SIZE(orders); o++) {
		for (i = 0; i < 3; i++)
			FILL(fds[i], SIZE, i == 1 ? B : A, &part[i]);
		for (i = 0; i < 3; i++)
			FREE(fds[orders[o][i]], &part[orders[o][i]]);
		/* even Alice, the owner of most bytes, gets a scrubbed block */
		TAKE(self->alice, 3 * SIZE, &all);
		EXPECT_TRUE(fm_same_place(&part[0], &all));
		EXPECT_EQ(0, fm_others(self->alice, all.out_handle, SIZE, SIZE, 0));
		ASSERT_EQ(0, fm_fill(self->alice, all.out_handle, 0, 3 * SIZE, A));
		FREE(self->alice, &all);
		TAKE(self->bob, 3 * SIZE, &all);
		EXPECT_TRUE(fm_same_place(&part[0], &all));
		EXPECT_CLEAN(self->bob, &all);
		FREE(self->bob, &all);
	}
}

/*
 * Sizes just below and above a page, and above what one scrub command zeroes.
 */
TEST_F(scrub, odd_sizes)
{
	static const __u64 sizes[] = { 128, 384, 4096 - 128, 4096 + 128, 65536 + 128 };
	struct flexmem_alloc a[3], b;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		FILL(self->alice, 128, A, &a[0]);
		FILL(self->alice, sizes[i], A, &a[1]);
		FILL(self->alice, 128, A, &a[2]);
		FREE(self->alice, &a[1]);
		TAKE(self->bob, sizes[i], &b);
		EXPECT_TRUE(fm_same_place(&a[1], &b));
		EXPECT_CLEAN(self->bob, &b);
		/* the scrub has not changed the neighbours */
		EXPECT_BYTES(self->alice, &a[0], A);
		EXPECT_BYTES(self->alice, &a[2], A);
		FREE(self->bob, &b);
		FREE(self->alice, &a[0]);
		FREE(self->alice, &a[2]);
	}
}

/*
 * The bytes are clean in a map too, and after the FREE of a mapped allocation.
 */
TEST_F(scrub, through_a_map_and_after_the_free)
{
	struct flexmem_alloc a, b;
	size_t i, bad = 0;
	char *p;

	ASSERT_EQ(0, fm_alloc_flags(self->alice, SIZE, FLEXMEM_ALLOC_MAPPABLE, &a));
	p = fm_mmap(self->alice, a.out_handle, 0, SIZE);
	ASSERT_NE(MAP_FAILED, p);
	FREE(self->alice, &a);
	memset(p, A, SIZE);
	munmap(p, SIZE);
	ASSERT_EQ(0, fm_alloc_flags(self->bob, SIZE, FLEXMEM_ALLOC_MAPPABLE, &b));
	EXPECT_TRUE(fm_same_place(&a, &b));
	p = fm_mmap(self->bob, b.out_handle, 0, SIZE);
	ASSERT_NE(MAP_FAILED, p);
	for (i = 0; i < SIZE; i++)
		bad += p[i] != 0;
	EXPECT_EQ(0, bad);
	munmap(p, SIZE);
}

TEST_F(scrub, after_release_and_reacquisition)
{
	const int fds[] = { self->bob, self->alice };
	struct flexmem_alloc a, again;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		FILL(self->alice, SIZE, A, &a);
		FREE(self->alice, &a);
		ASSERT_EQ(0, fm_trim(self->root));
		EXPECT_EQ(0, fm_stats(self->root).out_regions);
		TAKE(fds[i], SIZE, &again);
		EXPECT_TRUE(fm_same_place(&a, &again));
		/*
		 * Alice does not get her old bytes either, because the driver
		 * has forgotten her as an owner
		 */
		EXPECT_CLEAN(fds[i], &again);
		FREE(fds[i], &again);
	}
}

TEST_F(scrub, after_a_reset)
{
	struct flexmem_alloc a, b;

	FILL(self->alice, SIZE, A, &a);
	RESET(variant->mode);
	TAKE(self->bob, SIZE, &b);
	EXPECT_TRUE(fm_same_place(&a, &b));
	EXPECT_CLEAN(self->bob, &b);
	ASSERT_EQ(0, fm_fill(self->bob, b.out_handle, 0, SIZE, B));
	/* the lost handle does not reach Bob's new allocation */
	EXPECT_EQ(-EIO, fm_others(self->alice, a.out_handle, 0, 1, B));
	FREE(self->alice, &a);
	EXPECT_BYTES(self->bob, &b, B);
}

/*
 * The physical address of the first piece of memory that the PF or VF has on
 * the card, or ~0.
 */
static __u64 first_piece(const char *memory)
{
	unsigned long long address = ~0ULL;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), FM_KNOBS "%s", memory);
	f = fopen(path, "r");
	if (f && fscanf(f, "%lli", (long long *)&address) != 1)
		address = ~0ULL;
	if (f)
		fclose(f);
	return address;
}

TEST_F(scrub, after_unbind_and_bind)
{
	/* The node of the first VF then comes after that of the second one. */
	const int nth = variant->mode == FM_VF;
	struct flexmem_alloc a, b;

	FILL(self->alice, SIZE, A, &a);
	UNBIND(variant->mode);
	BIND(variant->mode);
	close(self->bob);
	close(self->root);
	self->root = fm_open_nth(variant->mode, nth, NULL);
	self->bob = fm_open_nth_as(variant->mode, nth, BOB);
	TAKE(self->bob, SIZE, &b);
	/* It is the first function that has taken memory. */
	EXPECT_NE(~0ULL, first_piece(variant->memory));
	EXPECT_TRUE(fm_same_place(&a, &b));
	EXPECT_CLEAN(self->bob, &b);
}

TEST_F(scrub, through_another_function)
{
	int second = fm_open_nth_as(FM_VF, 1, BOB);
	struct flexmem_alloc a, b;
	__u64 place;

	ASSERT_LE(0, second);
	FILL(self->alice, SIZE, A, &a);
	place = first_piece(variant->memory);
	EXPECT_NE(~0ULL, place);
	FREE(self->alice, &a);
	ASSERT_EQ(0, fm_trim(self->root));
	TAKE(second, SIZE, &b);
	EXPECT_EQ(place, first_piece("vf1/memory"));
	EXPECT_CLEAN(second, &b);
	close(second);
	second = fm_open_nth(FM_VF, 1, NULL);
	EXPECT_EQ(0, fm_trim(second));
	close(second);
}

TEST_F(scrub, files_of_one_user_are_kept_apart)
{
	struct flexmem_alloc a, again;

	FILL(self->alice, SIZE, A, &a);
	FREE(self->alice, &a);
	TAKE(self->alice2, SIZE, &again);
	EXPECT_TRUE(fm_same_place(&a, &again));
	EXPECT_CLEAN(self->alice2, &again);
	/* the first file gets zeroes instead of the other file's bytes */
	ASSERT_EQ(0, fm_fill(self->alice2, again.out_handle, 0, SIZE, B));
	FREE(self->alice2, &again);
	TAKE(self->alice, SIZE, &a);
	EXPECT_TRUE(fm_same_place(&a, &again));
	EXPECT_CLEAN(self->alice, &a);
	/* a new file of the user is not the same owner as the closed one */
	ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, SIZE, A));
	close(self->alice);
	self->alice = fm_open_as(variant->mode, ALICE);
	TAKE(self->alice, SIZE, &a);
	EXPECT_TRUE(fm_same_place(&a, &again));
	EXPECT_CLEAN(self->alice, &a);
}

/*
 * A process of another user and cgroup that has a descriptor of Alice's file.
 */
struct stranger {
	int fd;
	/* passes the descriptor to a child; -1: the child inherits it */
	int socket;
};

static int receive(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))] = { };
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(socket, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static int send_to(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { };
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : errno;
}

static int write_as_stranger(void *arg)
{
	struct stranger *s = arg;
	struct flexmem_alloc a;

	if (s->socket >= 0) {
		close(s->fd);
		s->fd = receive(s->socket);
	}
	if (fm_enter("flexmem") || setresuid(BOB, BOB, BOB))
		return 250;
	return take_and_fill(s->fd, SIZE, B, &a) ?: fm_free(s->fd, a.out_handle);
}

/* The file owns the bytes, and the opener's cgroup is charged. */
TEST_F(scrub, a_descriptor_is_its_openers)
{
	struct stranger s = { .fd = self->alice };
	const struct flexmem_owner_entry *owner;
	struct flexmem_alloc a;
	struct account account;
	int passed, pair[2];

	for (passed = 0; passed < 2; passed++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		s.socket = passed ? pair[0] : -1;
		ASSERT_EQ(0, send_to(pair[1], self->alice));
		EXPECT_EQ(0, fm_child(write_as_stranger, &s));
		close(pair[0]);
		close(pair[1]);
		TAKE(self->alice, SIZE, &a);
		EXPECT_BYTES(self->alice, &a, B);
		ASSERT_EQ(0, fm_fill(self->alice, a.out_handle, 0, SIZE, A));
		FREE(self->alice, &a);
	}
	ACCOUNT(self->root, &account);
	owner = fm_owner(&account, FLEXMEM_OWNER_CGROUP,
			 fm_account_id(ALICE));
	ASSERT_NE(NULL, owner);
	EXPECT_EQ(SIZE, owner->peak);
	owner = fm_owner(&account, FLEXMEM_OWNER_CGROUP, fm_account_id(BOB));
	ASSERT_NE(NULL, owner);
	EXPECT_EQ(0, owner->peak);
	TAKE(self->bob, SIZE, &a);
	EXPECT_CLEAN(self->bob, &a);
	EXPECT_EQ(0, fm_remove_cgroup("flexmem"));
}

/* How the firmware fails to scrub. */
static const struct {
	const char *fault;
	int error;
} losses[] = {
	{ "fail_commands", EIO },
	{ "drop_requests", ETIMEDOUT },
	{ "drop_replies", ETIMEDOUT },
};

/* Reads until the firmware answers. Each READ waits for a probe. */
static void await_answer(int fd, __u32 handle)
{
	char byte;

	while (fm_read(fd, handle, 0, &byte, 1) == ETIMEDOUT)
		;
}

#define BREAK(loss) do {						\
	KNOB("fault_command", "scrub");					\
	KNOB((loss).fault, "1000");					\
} while (0)

TEST_F(scrub, memory_that_cannot_be_scrubbed_is_quarantined)
{
	struct flexmem_alloc stay, a, b, rest, next;
	struct account account;
	unsigned int i;

	FILL(self->alice, SIZE, A, &stay);
	for (i = 0; i < ARRAY_SIZE(losses); i++) {
		FILL(self->alice, SIZE, A, &a);
		/*
		 * Breaks it before the free, which may begin a background scrub:
		 * a block with bytes of both is scrubbed at once.
		 */
		BREAK(losses[i]);
		FREE(self->alice, &a);
		/* Until the function is up again, the ALLOC fails without a scrub. */
		do {
			ASSERT_EQ(losses[i].error,
				  fm_alloc(self->bob, SIZE, &b))
				TH_LOG("%s", losses[i].fault);
			EXPECT_EQ(0, b.out_handle);
			EXPECT_EQ(losses[i].error, b.out_error);
			EXPECT_EQ(FLEXMEM_REASON_NONE, b.out_reason);
		} while (!quarantined(self->root));
		fm_mend();
		await_answer(self->alice, stay.out_handle);
		ACCOUNT(self->root, &account);
		EXPECT_STREQ("", fm_wrong(&account));
		EXPECT_EQ(SIZE, account.s.out_quarantined);
		EXPECT_EQ(SIZE, account.s.out_owned);

		/* neither Bob nor Alice gets the quarantined block */
		TAKE(self->bob, SIZE, &b);
		EXPECT_FALSE(fm_same_place(&a, &b));
		EXPECT_CLEAN(self->bob, &b);
		TAKE(self->alice, SIZE, &next);
		EXPECT_FALSE(fm_same_place(&a, &next));
		/* all other memory of the region can still be allocated */
		TAKE(self->bob, REGION - 4 * SIZE, &rest);
		EXPECT_EQ(a.out_address.region_id, rest.out_address.region_id);
		ACCOUNT(self->root, &account);
		EXPECT_EQ(0, account.s.out_free);
		FREE(self->bob, &rest);
		FREE(self->bob, &b);
		FREE(self->alice, &next);

		/*
		 * TRIM repeats the scrub. Then the block can be allocated.
		 */
		ASSERT_EQ(0, fm_trim(self->root));
		EXPECT_EQ(0, quarantined(self->root));
		TAKE(self->bob, SIZE, &b);
		EXPECT_TRUE(fm_same_place(&a, &b));
		EXPECT_CLEAN(self->bob, &b);
		FREE(self->bob, &b);
	}
}

/*
 * A region is released with quarantined memory, and with bytes of a past owner.
 */
TEST_F(scrub, quarantined_memory_leaks_through_no_release)
{
	struct flexmem_alloc a, b;

	FILL(self->alice, SIZE, A, &a);
	BREAK(losses[0]);
	FREE(self->alice, &a);
	EXPECT_EQ(EIO, fm_alloc(self->bob, SIZE, &b));
	/* TRIM may fail, and must lose no memory */
	fm_trim(self->root);
	fm_mend();
	ASSERT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(0, quarantined(self->root));
	EXPECT_EQ(0, fm_stats(self->root).out_regions);
	TAKE(self->bob, SIZE, &b);
	EXPECT_TRUE(fm_same_place(&a, &b));
	EXPECT_CLEAN(self->bob, &b);
}

TEST_F(scrub, a_batch_goes_on_after_a_failed_scrub)
{
	struct flexmem_alloc a, e[3];
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(e[0]),
					 .count = ARRAY_SIZE(e),
					 .entries = (uintptr_t)e);
	unsigned int i;

	/* only the first entry gets memory that needs a scrub */
	FILL(self->alice, SIZE, A, &a);
	KNOB("fault_command", "scrub");
	KNOB("fail_commands", "1000");
	FREE(self->alice, &a);
	for (i = 0; i < ARRAY_SIZE(e); i++)
		e[i] = CMD(alloc, .length = SIZE);
	must(alloc_batch, self->bob, &batch);
	EXPECT_EQ(3, batch.out_done);
	EXPECT_EQ(EIO, e[0].out_error);
	EXPECT_EQ(0, e[0].out_handle);
	for (i = 1; i < ARRAY_SIZE(e); i++) {
		EXPECT_EQ(0, e[i].out_error);
		EXPECT_EQ(i * SIZE, e[i].out_address.offset);
		EXPECT_CLEAN(self->bob, &e[i]);
	}
	EXPECT_EQ(SIZE, quarantined(self->root));
}

/* A caller that waits for a scrub can be killed. No memory is lost. */
TEST_F(scrub, a_waiting_caller_can_be_killed)
{
	struct flexmem_alloc a, b;
	long long requests, killed;
	struct account account;
	pid_t pid;

	FILL(self->alice, SIZE, A, &a);
	FREE(self->alice, &a);
	requests = fm_counter("requests");
	killed = fm_counter("killed");
	KNOB("dead", "1");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		fm_alloc(self->bob, SIZE, &b);
		_exit(1);
	}
	fm_await_counter("requests", requests);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(killed + 1, fm_counter("killed"));
	fm_mend();
	ACCOUNT(self->root, &account);
	EXPECT_STREQ("", fm_wrong(&account));
	EXPECT_EQ(0, account.s.out_owned);
	ASSERT_EQ(0, fm_trim(self->root));
	EXPECT_EQ(0, quarantined(self->root));
	TAKE(self->bob, SIZE, &b);
	EXPECT_CLEAN(self->bob, &b);
}

/* Random calls: an owner must get only zeroes and its own bytes. */
#define OWNERS 4
#define LIVE 24
#define STEPS 200

struct live {
	struct flexmem_alloc at;
	int owner;
};

/*
 * Returns the number of bytes that are not zero and not the owner's, or a
 * negative errno
 */
static long long foreign(int fd, const struct flexmem_alloc *at, int own)
{
	static unsigned char bytes[64 * KiB];
	long long n = 0;
	__u64 i;
	int error = fm_read(fd, at->out_handle, 0, bytes, at->out_size);

	if (error)
		return -error;
	for (i = 0; i < at->out_size; i++)
		n += bytes[i] && bytes[i] != own;
	return n;
}

TEST_F(scrub, random_calls_leak_no_bytes)
{
	unsigned int seed = atoi(fm_env("FLEXMEM_SEED")) ?: (int)time(NULL);
	int fds[OWNERS] = { self->alice, self->bob, self->alice2, -1 };
	struct live live[LIVE];
	unsigned int nr = 0, i, step, flags;

	TH_LOG("FLEXMEM_SEED=%u", seed);
	srandom(seed);
	fds[3] = fm_open_as(variant->mode, CAROL);
	for (step = 0; step < STEPS; step++) {
		if (nr == LIVE || (nr && random() % 5 < 2)) {
			i = random() % nr;
			/* no other owner has written to the memory */
			ASSERT_EQ(0, fm_others(fds[live[i].owner],
					       live[i].at.out_handle, 0,
					       live[i].at.out_size,
					       0x11 * (1 + live[i].owner)));
			FREE(fds[live[i].owner], &live[i].at);
			live[i] = live[--nr];
		} else if (random() % 40 == 0) {
			ASSERT_EQ(0, fm_trim(self->root));
		} else {
			i = random() % OWNERS;
			flags = random() % 8 ? 0 : FLEXMEM_ALLOC_ZEROED;
			if (random() % 4 == 0)
				flags |= FLEXMEM_ALLOC_MAPPABLE;
			live[nr].owner = i;
			ASSERT_EQ(0, fm_alloc_flags(fds[i], 1 + random() %
						    (60 * KiB), flags,
						    &live[nr].at));
			ASSERT_EQ(0, foreign(fds[i], &live[nr].at,
					     flags & FLEXMEM_ALLOC_ZEROED ? 0 :
					     0x11 * (1 + i)))
				TH_LOG("step %u", step);
			ASSERT_EQ(0, fm_fill(fds[i], live[nr].at.out_handle, 0,
					     live[nr].at.out_size, 0x11 * (1 + i)));
			nr++;
		}
	}
	close(fds[3]);
}

TEST_HARNESS_MAIN
