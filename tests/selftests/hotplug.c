// SPDX-License-Identifier: GPL-2.0
/*
 * PFs and VFs appear and vanish while they are used, the whole card vanishes,
 * and PFs and VFs are suspended. A program must always be able to release
 * everything that it holds, and nothing may leak.
 */
#include <sys/wait.h>

#include "tenants.h"

#define PAGE 4096
#define PARAMS "max_regions=3 fallback_sizes=4G order=fill_first "	\
	"strategy=first_fit acquire=lazy program_slots=0"
#define SIM "num_vfs=2 memory=64G vf_capacity=16G"
#define NUM_VFS "/sys/module/flexmem_sim/parameters/num_vfs"

FIXTURE(hotplug) {
	int pf;
	int vf[2];
};

FIXTURE_SETUP(hotplug)
{
	RELOAD(PARAMS, SIM);
	self->pf = fm_open(FM_PF);
	self->vf[0] = fm_open_nth(FM_VF, 0, NULL);
	self->vf[1] = fm_open_nth(FM_VF, 1, NULL);
	ASSERT_LE(0, self->pf);
	ASSERT_LE(0, self->vf[0]);
	ASSERT_LE(0, self->vf[1]);
}

FIXTURE_TEARDOWN(hotplug)
{
	close(self->pf);
	close(self->vf[0]);
	close(self->vf[1]);
	if (fm_loaded("flexmem_sim"))
		EXPECT_SETTLED(FM_PF);
	/* after each test the module can be unloaded */
	EXPECT_EQ(0, fm_unload());
}

#define SET_NUM_VFS(n) ASSERT_EQ(0, fm_put(NUM_VFS, n))

/* Counts the nodes of PFs or of VFs. */
static int nodes(int mode)
{
	int n, fd;

	for (n = 0; (fd = fm_open_nth(mode, n, NULL)) >= 0; n++)
		close(fd);
	return n;
}

/* Returns the name of the device behind a node. */
static const char *device_of(const char *node)
{
	static char target[PATH_MAX];
	char path[64];
	struct stat st;

	if (stat(node, &st))
		return "no node";
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device",
		 major(st.st_rdev), minor(st.st_rdev));
	if (!realpath(path, target))
		return "no device";
	return strrchr(target, '/') + 1;
}

#define DRIVER(what, name) ASSERT_EQ(0, fm_put(FM_DRIVER what, name))

/*
 * The PF and the VFs come back in another order, and get numbers that no function
 * had before. So an old node leads to no other function.
 */
TEST_F(hotplug, an_old_node_leads_to_no_other_function)
{
	char path[2][32], now[32];
	int i, fd;

	for (i = 0; i < 2; i++) {
		fd = fm_open_nth(FM_VF, i, path[i]);
		ASSERT_LE(0, fd);
		close(fd);
	}
	EXPECT_STREQ("flexmem_sim_vf.0", device_of(path[0]));
	DRIVER("unbind", "flexmem_sim_vf.0");
	DRIVER("unbind", "flexmem_sim_vf.1");
	DRIVER("unbind", "flexmem_sim_pf.0");
	SET_NUM_VFS("3");
	DRIVER("bind", "flexmem_sim_vf.1");
	DRIVER("bind", "flexmem_sim_pf.0");
	DRIVER("bind", "flexmem_sim_vf.0");
	for (i = 0; i < 2; i++)
		EXPECT_STREQ("no node", device_of(path[i]));
	for (i = 0; i < 3; i++) {
		static const char * const order[] = {
			"flexmem_sim_vf.2", "flexmem_sim_vf.1", "flexmem_sim_vf.0",
		};

		fd = fm_open_nth(FM_VF, i, now);
		ASSERT_LE(0, fd);
		close(fd);
		EXPECT_STREQ(order[i], device_of(now));
	}
}

/*
 * The objects of a PF or VF that a program can hold: an allocation, freed but
 * mapped memory, and their mappings.
 */
struct held {
	struct flexmem_alloc reply, orphan;
	char *p, *q;
};

static int hold(int fd, struct held *h)
{
	if (fm_alloc_flags(fd, 2 * PAGE, FLEXMEM_ALLOC_MAPPABLE, &h->reply) ||
	    fm_alloc_flags(fd, PAGE, FLEXMEM_ALLOC_MAPPABLE, &h->orphan))
		return 1;
	h->p = fm_mmap(fd, h->reply.out_handle, 0, 2 * PAGE);
	h->q = fm_mmap(fd, h->orphan.out_handle, 0, PAGE);
	if (h->p == MAP_FAILED || h->q == MAP_FAILED)
		return 2;
	if (fm_touch(h->p, true) || fm_touch(h->q, true))
		return 3;
	if (fm_free(fd, h->orphan.out_handle))
		return 4;
	return 0;
}

static void let_go(struct held *h)
{
	munmap(h->p, 2 * PAGE);
	munmap(h->q, PAGE);
}

/*
 * Makes calls on a removed PF or VF. Returns 0 if all of them fail as they
 * must.
 */
static int all_gone(int fd, const struct held *h)
{
	const __u32 handle = h->reply.out_handle;
	struct flexmem_alloc reply;
	struct account a;
	char byte = 0;

	if (fm_alloc(fd, 128, &reply) != ENODEV || fm_free(fd, handle) != ENODEV)
		return 1;
	if (raw_lookup(fd, &CMD(lookup, .handle = handle)) != ENODEV)
		return 2;
	if (fm_read(fd, handle, 0, &byte, 1) != ENODEV ||
	    fm_write(fd, handle, 0, &byte, 1) != ENODEV)
		return 3;
	if (fm_account(fd, &a) != ENODEV)
		return 4;
	if (raw_set_limit(fd, &CMD(resource_limit)) != ENODEV)
		return 5;
	if (fm_touch(h->p, false) != SIGBUS || fm_touch(h->p + PAGE, true) != SIGBUS)
		return 7;
	return fm_touch(h->q, false) == SIGBUS ? 0 : 8;
}

TEST_F(hotplug, functions_come_and_go)
{
	EXPECT_EQ(2, nodes(FM_VF));
	SET_NUM_VFS("5");
	EXPECT_EQ(5, nodes(FM_VF));
	SET_NUM_VFS("0");
	EXPECT_EQ(0, nodes(FM_VF));
	EXPECT_EQ(1, nodes(FM_PF));
	SET_NUM_VFS("8");
	EXPECT_EQ(8, nodes(FM_VF));
	EXPECT_EQ(EINVAL, fm_put(NUM_VFS, "9"));
	EXPECT_EQ(EINVAL, fm_put(NUM_VFS, "-1"));
	EXPECT_EQ(8, nodes(FM_VF));
}

TEST_F(hotplug, a_function_goes_under_its_users)
{
	struct held pf, vf[2];
	int fd;

	ASSERT_EQ(0, hold(self->pf, &pf));
	ASSERT_EQ(0, hold(self->vf[0], &vf[0]));
	ASSERT_EQ(0, hold(self->vf[1], &vf[1]));
	SET_NUM_VFS("1");
	EXPECT_EQ(0, all_gone(self->vf[1], &vf[1]));
	/* the PF and the other VF are unharmed */
	EXPECT_EQ(0, fm_touch(vf[0].p, true));
	EXPECT_EQ(0, fm_touch(pf.q, true));
	must(lookup, self->vf[0], &CMD(lookup, .handle = vf[0].reply.out_handle));
	SET_NUM_VFS("0");
	EXPECT_EQ(0, all_gone(self->vf[0], &vf[0]));
	EXPECT_EQ(0, fm_touch(pf.p, true));
	must(lookup, self->pf, &CMD(lookup, .handle = pf.reply.out_handle));

	/*
	 * the VFs come back as new ones; open files and mappings of the old
	 * ones stay unusable
	 */
	SET_NUM_VFS("2");
	EXPECT_EQ(0, all_gone(self->vf[0], &vf[0]));
	EXPECT_EQ(0, all_gone(self->vf[1], &vf[1]));
	fd = fm_open(FM_VF);
	EXPECT_EQ(0, fm_stats(fd).out_regions);
	EXPECT_NE(0, fm_take(fd, 4 * GiB));
	close(fd);
	let_go(&vf[0]);
	let_go(&vf[1]);
	let_go(&pf);
	close(self->vf[0]);
	self->vf[0] = -1;
	EXPECT_SETTLED(FM_VF);
}

/* A VF leaves bytes behind in the card. No other VF and no PF may read them. */
TEST_F(hotplug, a_new_function_finds_no_bytes_of_an_old_one)
{
	struct flexmem_alloc reply;
	int fd;

	ASSERT_EQ(0, fm_alloc(self->vf[0], MiB, &reply));
	ASSERT_EQ(0, fm_fill(self->vf[0], reply.out_handle, 0, MiB, 'x'));
	SET_NUM_VFS("0");
	SET_NUM_VFS("1");
	fd = fm_open(FM_VF);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fm_alloc(fd, MiB, &reply));
	EXPECT_BYTES(fd, &reply, 0);
	close(fd);
}

/* Reads how many handles the test's cgroup may have on a PF or VF. */
static __u64 limit_of_handles(int fd)
{
	struct flexmem_resource_limit q = CMD(resource_limit,
					      .resource = FLEXMEM_RESOURCE_HANDLES);

	return fm_get_limit(fd, &q) ? 0 : q.out_limit;
}

/* A limit for each PF and VF holds from the first open() of a new VF on. */
TEST_F(hotplug, a_new_function_has_the_limits_of_all)
{
	struct flexmem_resource_limit q = CMD(resource_limit,
		.flags = FLEXMEM_LIMIT_ALL_FUNCTIONS,
		.resource = FLEXMEM_RESOURCE_HANDLES, .limit = 2);
	struct flexmem_alloc reply;
	int fd, i;

	ENTER("functions");
	q.cgroup = fm_cgroup_id("functions");
	must(set_limit, self->pf, &q);
	for (i = 0; i < 2; i++) {
		fd = fm_open(i ? FM_VF : FM_PF);
		EXPECT_EQ(2, limit_of_handles(fd));
		/* each function counts for itself */
		EXPECT_EQ(0, fm_alloc(fd, 128, &reply));
		EXPECT_EQ(0, fm_alloc(fd, 128, &reply));
		EXPECT_EQ(ENOMEM, fm_alloc(fd, 128, &reply));
		close(fd);
	}
	SET_NUM_VFS("0");
	SET_NUM_VFS("1");
	fd = fm_open(FM_VF);
	EXPECT_EQ(2, limit_of_handles(fd));
	q.flags = 0;
	q.limit = 7;
	must(set_limit, fd, &q);
	EXPECT_EQ(7, limit_of_handles(fd));
	close(fd);
	SET_NUM_VFS("0");
	SET_NUM_VFS("1");
	fd = fm_open(FM_VF);
	EXPECT_EQ(2, limit_of_handles(fd));
	q.flags = FLEXMEM_LIMIT_ALL_FUNCTIONS;
	q.limit = FLEXMEM_NO_LIMIT;
	must(set_limit, self->pf, &q);
	EXPECT_EQ(FLEXMEM_NO_LIMIT, limit_of_handles(fd));
	close(fd);
	ENTER("");
	EXPECT_EQ(0, fm_remove_cgroup("functions"));
}

struct worker {
	pthread_t thread;
	int fd;
	unsigned int done;
	int error;
};

static void *until_gone(void *arg)
{
	struct worker *w = arg;
	struct flexmem_alloc reply;
	char byte = 1;

	do {
		w->error = fm_alloc(w->fd, 10000, &reply);
		if (!w->error)
			w->error = fm_write(w->fd, reply.out_handle, 5, &byte, 1);
		if (!w->error && w->done % 4)
			w->error = fm_free(w->fd, reply.out_handle);
		w->done++;
	} while (!w->error);
	return NULL;
}

TEST_F(hotplug, functions_go_while_others_call)
{
	struct worker w[4];
	int round, i;

	for (round = 0; round < 5; round++) {
		memset(w, 0, sizeof(w));
		for (i = 0; i < 4; i++) {
			w[i].fd = fm_open_nth(FM_VF, i % 2, NULL);
			ASSERT_LE(0, w[i].fd);
			ASSERT_EQ(0, pthread_create(&w[i].thread, NULL,
						    until_gone, &w[i]));
		}
		usleep(20000);
		SET_NUM_VFS("0");
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
			EXPECT_EQ(ENODEV, w[i].error);
			close(w[i].fd);
		}
		SET_NUM_VFS("2");
	}
}

TEST_F(hotplug, the_card_goes_under_its_users)
{
	struct held pf, vf;

	ASSERT_EQ(0, hold(self->pf, &pf));
	ASSERT_EQ(0, hold(self->vf[0], &vf));
	ASSERT_EQ(0, fm_rmmod("flexmem_sim"));
	EXPECT_EQ(0, all_gone(self->pf, &pf));
	EXPECT_EQ(0, all_gone(self->vf[0], &vf));
	/* open files keep flexmem.ko loaded */
	EXPECT_TRUE(fm_loaded("flexmem"));
	EXPECT_EQ(-1, syscall(SYS_delete_module, "flexmem", O_NONBLOCK));
	let_go(&pf);
	/* a mapping alone keeps the file open */
	close(self->pf);
	close(self->vf[0]);
	close(self->vf[1]);
	self->pf = self->vf[0] = self->vf[1] = -1;
	EXPECT_EQ(-1, syscall(SYS_delete_module, "flexmem", O_NONBLOCK));
	EXPECT_EQ(SIGBUS, fm_touch(vf.p, false));
	let_go(&vf);
	EXPECT_EQ(0, fm_rmmod("flexmem"));
}

/* Starts a child that reads from the device, and exits with 0 on success. */
static pid_t start_reading(int fd, __u32 handle)
{
	char bytes[PAGE];
	pid_t pid = fork();

	if (!pid)
		_exit(fm_read(fd, handle, 0, bytes, sizeof(bytes)));
	return pid;
}

/* Starts a child that touches a mapping, and exits with 0 on success. */
static pid_t start_touching(volatile char *p)
{
	pid_t pid = fork();

	if (!pid)
		_exit(fm_touch(p, false));
	return pid;
}

/*
 * Uses the simulator's knob, which suspends a VF as a suspend of the system
 * would. A real suspend would make the virtual machine lose its root file
 * system, which is on 9p; tests/vm/suspend.sh has a machine without it.
 */
TEST_F(hotplug, a_function_sleeps)
{
	struct held h;
	pid_t waiter, victim, toucher, killed;
	char before[2 * PAGE], after[2 * PAGE];
	int status;

	ASSERT_EQ(0, hold(self->vf[0], &h));
	memset(h.p, 'z', 2 * PAGE);
	memcpy(before, h.p, sizeof(before));
	KNOB("vf0/suspended", "1");
	waiter = start_reading(self->vf[0], h.reply.out_handle);
	victim = start_reading(self->vf[0], h.reply.out_handle);
	ASSERT_LT(0, waiter);
	ASSERT_LT(0, victim);
	toucher = start_touching(h.p);
	killed = start_touching(h.p);
	ASSERT_LT(0, toucher);
	ASSERT_LT(0, killed);
	usleep(300000);
	/* two callers wait for the suspended VF */
	EXPECT_EQ(0, waitpid(waiter, &status, WNOHANG));
	EXPECT_EQ(0, waitpid(victim, &status, WNOHANG));
	/* a task that touches a mapping waits too */
	EXPECT_EQ(0, waitpid(toucher, &status, WNOHANG));
	EXPECT_EQ(0, waitpid(killed, &status, WNOHANG));
	/* the other VF works, and so does a look-up on this one */
	EXPECT_NE(0, fm_take(self->vf[1], 4 * GiB));
	must(lookup, self->vf[0], &CMD(lookup, .handle = h.reply.out_handle));
	/* a caller that waits can be killed */
	ASSERT_EQ(0, kill(victim, SIGKILL));
	EXPECT_EQ(victim, waitpid(victim, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(0, kill(killed, SIGKILL));
	EXPECT_EQ(killed, waitpid(killed, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	KNOB("vf0/suspended", "0");
	EXPECT_EQ(toucher, waitpid(toucher, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(waiter, waitpid(waiter, &status, 0));
	EXPECT_EQ(0, status);

	/* the suspend has lost nothing */
	EXPECT_EQ(0, fm_touch(h.p, false));
	EXPECT_EQ(0, memcmp(before, h.p, sizeof(before)));
	EXPECT_EQ(0, fm_read(self->vf[0], h.reply.out_handle, 0, after,
			     sizeof(after)));
	EXPECT_EQ(0, memcmp(before, after, sizeof(after)));
	EXPECT_NE(0, fm_take(self->vf[0], 4 * GiB));
	EXPECT_NE(0, fm_take(self->pf, 4 * GiB));
	let_go(&h);
}

TEST_HARNESS_MAIN
