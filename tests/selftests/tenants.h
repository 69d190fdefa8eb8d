/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the tests of tenants that do not trust each other: files opened by
 * different users, bytes on the device, mappings that may become invalid, sums
 * over accounts, and the simulator's knobs.
 */
#ifndef FLEXMEM_TENANTS_H
#define FLEXMEM_TENANTS_H

#include "flexmem_test.h"

#include <setjmp.h>

#define FM_KNOBS "/sys/kernel/debug/flexmem_sim/"
#define FM_DRIVER "/sys/bus/platform/drivers/flexmem_sim/"

/* Writes a text to a file. Returns 0 or an errno. */
fm_fn int fm_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		error = errno;
	close(fd);
	return error;
}

/* ---- cgroups ---- */

#define FM_CGROUPS "/sys/fs/cgroup/"

/*
 * Enters a cgroup, and makes it if it does not exist; "" is the root. Returns 0
 * or an errno
 */
fm_fn int fm_enter(const char *cgroup)
{
	char path[128];

	snprintf(path, sizeof(path), FM_CGROUPS "%s", cgroup);
	if (mkdir(path, 0755) && errno != EEXIST)
		return errno;
	strcat(path, "/cgroup.procs");
	return fm_put(path, "0");
}

#define ENTER(cgroup) ASSERT_EQ(0, fm_enter(cgroup))

/* Removes a cgroup. Returns 0 or an errno. */
fm_fn int fm_remove_cgroup(const char *cgroup)
{
	char path[128];

	snprintf(path, sizeof(path), FM_CGROUPS "%s", cgroup);
	return rmdir(path) ? errno : 0;
}

/*
 * Returns the id of a cgroup, which is also the id of its account; 0 if there
 * is none
 */
fm_fn __u64 fm_cgroup_id(const char *cgroup)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), FM_CGROUPS "%s", cgroup);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* ---- users; each has its own cgroup ---- */

#define ALICE 10001
#define BOB 10002
#define CAROL 10003

/*
 * Makes the process run as user @uid, without root's rights, until
 * fm_become(0). The saved user id stays 0. Only for programs with one thread.
 */
fm_fn int fm_become(uid_t uid)
{
	return setresuid(uid, uid, 0) ? errno : 0;
}

fm_fn const char *fm_cgroup_of(uid_t uid)
{
	static char name[32];

	snprintf(name, sizeof(name), "uid%u", uid);
	return name;
}

/* Returns the id of the cgroup that a user's files are opened in. */
fm_fn __u64 fm_account_id(uid_t uid)
{
	return fm_cgroup_id(uid ? fm_cgroup_of(uid) : "");
}

#define BECOME(uid) ASSERT_EQ(0, fm_become(uid))

/* Parameter for a fixture in which users without rights open the PF. */
#define FM_PF_FOR_ALL " pf_open=mode "

/*
 * Opens the nth node of a mode as a user in a cgroup. Makes another node with
 * the same number, so that the permissions of the original node do not matter.
 */
fm_fn int fm_open_nth_in(int mode, int nth, uid_t uid, const char *cgroup)
{
	int probe = fm_open_nth(mode, nth, NULL), fd = -1, error = 0;
	char path[64];
	struct stat st;

	if (probe < 0)
		return -1;
	snprintf(path, sizeof(path), "/dev/flexmem-as-%d.%d", uid, getpid());
	unlink(path);
	if (!fstat(probe, &st) && !mknod(path, S_IFCHR, st.st_rdev) &&
	    !chmod(path, 0666) && !fm_enter(cgroup)) {
		if (!fm_become(uid))
			fd = open(path, O_RDWR | O_CLOEXEC);
		error = errno;
		fm_become(0);
		fm_enter("");
	}
	unlink(path);
	close(probe);
	errno = error;
	return fd;
}

fm_fn int fm_open_nth_as(int mode, int nth, uid_t uid)
{
	return fm_open_nth_in(mode, nth, uid, fm_cgroup_of(uid));
}

fm_fn int fm_open_as(int mode, uid_t uid)
{
	return fm_open_nth_as(mode, 0, uid);
}

/* ---- knobs ---- */

/*
 * Writes to a knob of the simulator. The name of a PF's or VF's knob begins
 * with a directory: "vf0/reset".
 */
fm_fn int fm_knob(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), FM_KNOBS "%s", name);
	return fm_put(path, value);
}

#define KNOB(name, value) ASSERT_EQ(0, fm_knob(name, value))

/* Returns the number in a knob, or -1. */
fm_fn long long fm_knob_value(const char *name)
{
	long long value;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), FM_KNOBS "%s", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

/* Returns a counter of the card, or -1. */
fm_fn long long fm_counter(const char *name)
{
	FILE *f = fopen(FM_KNOBS "stats", "r");
	long long value = -1, v;
	char key[32];

	while (f && fscanf(f, "%31s %lld", key, &v) == 2) {
		if (!strcmp(key, name))
			value = v;
	}
	if (f)
		fclose(f);
	return value;
}

/* Waits until the counter is not @before. */
fm_fn void fm_await_counter(const char *name, long long before)
{
	while (fm_counter(name) == before)
		usleep(1000);
}

/*
 * Ends all faults. From now on the driver does not wait for a reply that a
 * fault removed, and waits long for all other replies. So no result depends on
 * the clock.
 */
fm_fn void fm_mend(void)
{
	static const char * const faults[] = {
		"fail_commands", "drop_requests", "drop_replies",
		"duplicate_replies", "stale_replies", "hang_commands",
		"latency_us", "dead"
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		fm_knob(faults[i], "0");
	fm_knob("fault_command", "any");
	fm_knob("give_up", "1");
	fm_knob("timeout_ms", FM_CALM_MS);
}

/*
 * Resets the nth PF or the nth VF, as a driver does after its firmware has
 * died.
 */
fm_fn int fm_reset_nth(int mode, int nth)
{
	char name[32] = "pf/reset";

	if (mode == FM_VF)
		snprintf(name, sizeof(name), "vf%d/reset", nth);
	return fm_knob(name, "1");
}

fm_fn int fm_reset(int mode)
{
	return fm_reset_nth(mode, 0);
}

#define RESET(mode) ASSERT_EQ(0, fm_reset(mode))

/* The bus name of the first PF or the first VF. */
#define FM_FUNCTION(mode)						\
	((mode) == FM_PF ? "flexmem_sim_pf.0" : "flexmem_sim_vf.0")

/*
 * When the function is bound again its node has another number, and may come
 * after those of other functions. So the next LOAD() loads the modules again.
 */
fm_fn int fm_unbind(int mode)
{
	unlink(FM_STAMP);
	return fm_put(FM_DRIVER "unbind", FM_FUNCTION(mode));
}

#define UNBIND(mode) ASSERT_EQ(0, fm_unbind(mode))
#define BIND(mode) ASSERT_EQ(0, fm_put(FM_DRIVER "bind", FM_FUNCTION(mode)))

/* ---- allocations and their bytes; each returns 0 or an errno ---- */

fm_fn int fm_alloc_flags(int fd, __u64 length, __u32 flags,
			 struct flexmem_alloc *reply)
{
	*reply = CMD(alloc, .length = length, .flags = flags);
	return raw_alloc(fd, reply);
}

fm_fn bool fm_same_place(const struct flexmem_alloc *a,
			 const struct flexmem_alloc *b)
{
	return a->out_address.region_id == b->out_address.region_id &&
	       a->out_address.offset == b->out_address.offset;
}

fm_fn int fm_read(int fd, __u32 handle, __u64 offset, void *data, __u64 length)
{
	return raw_read(fd, &CMD(rw, .handle = handle, .offset = offset,
				 .length = length, .data = (uintptr_t)data));
}

fm_fn int fm_write(int fd, __u32 handle, __u64 offset, const void *data,
		   __u64 length)
{
	return raw_write(fd, &CMD(rw, .handle = handle, .offset = offset,
				  .length = length, .data = (uintptr_t)data));
}

#define FM_PIECE (256 * KiB)

/* Fills the range with @byte. */
fm_fn int fm_fill(int fd, __u32 handle, __u64 offset, __u64 length, int byte)
{
	static char piece[FM_PIECE];
	__u64 n;
	int error = 0;

	memset(piece, byte, sizeof(piece));
	for (; length && !error; offset += n, length -= n) {
		n = length < FM_PIECE ? length : FM_PIECE;
		error = fm_write(fd, handle, offset, piece, n);
	}
	return error;
}

/* Returns how many bytes of the range are not @byte, or a negative errno. */
fm_fn long long fm_others(int fd, __u32 handle, __u64 offset, __u64 length,
			  int byte)
{
	static unsigned char piece[FM_PIECE];
	long long others = 0;
	__u64 n, i;
	int error;

	for (; length; offset += n, length -= n) {
		n = length < FM_PIECE ? length : FM_PIECE;
		memset(piece, ~byte, n);
		error = fm_read(fd, handle, offset, piece, n);
		if (error)
			return -error;
		for (i = 0; i < n; i++)
			others += piece[i] != (unsigned char)byte;
	}
	return others;
}

#define EXPECT_BYTES(fd, reply, byte)					\
	EXPECT_EQ(0, fm_others(fd, (reply)->out_handle, 0,		\
			       (reply)->out_size, byte))

/* ---- maps ---- */

/*
 * Maps @length bytes of an allocation from byte @from on. Returns MAP_FAILED
 * and sets errno if LOOKUP or mmap() fails.
 */
fm_fn void *fm_mmap_flags(int fd, __u32 handle, __u64 from, size_t length,
			  int prot, int flags)
{
	struct flexmem_lookup map = CMD(lookup, .handle = handle);

	errno = raw_lookup(fd, &map);
	if (errno)
		return MAP_FAILED;
	return mmap64(NULL, length, prot, flags, fd, map.out_map_offset + from);
}

fm_fn void *fm_mmap(int fd, __u32 handle, __u64 from, size_t length)
{
	return fm_mmap_flags(fd, handle, from, length, PROT_READ | PROT_WRITE,
			     MAP_SHARED);
}

static __thread sigjmp_buf fm_landing;

fm_fn void fm_land(int signal)
{
	siglongjmp(fm_landing, signal);
}

/* Reads or writes a byte. Returns 0 or the signal that the access caused. */
fm_fn int fm_touch(volatile char *p, bool write)
{
	struct sigaction sa = { .sa_handler = fm_land };
	int signal;

	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	signal = sigsetjmp(fm_landing, 1);
	if (signal)
		return signal;
	if (write)
		*p = 1;
	else
		(void)*p;
	return 0;
}

/* ---- accounts ---- */

#define FM_MAX_OWNERS 256

struct account {
	struct flexmem_snapshot s;
	struct flexmem_region_entry region[FM_MAX_REGIONS];
	struct flexmem_owner_entry owner[FM_MAX_OWNERS];
};

/* Takes a snapshot. Returns 0 or an errno. */
fm_fn int fm_account(int fd, struct account *a)
{
	memset(a, 0, sizeof(*a));
	a->s = CMD(snapshot,
		   .region_entry_size = sizeof(a->region[0]),
		   .region_count = FM_MAX_REGIONS,
		   .regions = (uintptr_t)a->region,
		   .owner_entry_size = sizeof(a->owner[0]),
		   .owner_count = FM_MAX_OWNERS,
		   .owners = (uintptr_t)a->owner);
	return raw_snapshot(fd, &a->s);
}

#define ACCOUNT(fd, a) ASSERT_EQ(0, fm_account(fd, a))

/* The owner's entry in a snapshot, or NULL. */
fm_fn const struct flexmem_owner_entry *fm_owner(const struct account *a,
						 __u32 kind, __u64 id)
{
	unsigned int i;

	for (i = 0; i < a->s.out_owner_count; i++) {
		if (a->owner[i].kind == kind && a->owner[i].id == id)
			return &a->owner[i];
	}
	return NULL;
}

/*
 * Returns the id of an open file, or 0. The id comes from a snapshot that is
 * taken through that file.
 */
fm_fn __u64 fm_client_id(int fd)
{
	struct account a;
	unsigned int i;
	int error;

	if (fm_become(ALICE))
		return 0;
	error = fm_account(fd, &a);
	if (fm_become(0) || error)
		return 0;
	for (i = 0; i < a.s.out_owner_count; i++) {
		if (a.owner[i].kind == FLEXMEM_OWNER_CLIENT)
			return a.owner[i].id;
	}
	return 0;
}

/*
 * Checks a snapshot that an administrator has taken. Returns the rule that the
 * snapshot breaks, or "".
 */
fm_fn const char *fm_wrong(const struct account *a)
{
	__u64 bytes[2] = { }, orphaned[2] = { }, handles[2] = { };
	const struct flexmem_owner_entry *o, *last = NULL;
	__u64 total = 0, free = 0;
	unsigned int i, clients = 0;
	/* Of a longer list only the first 64 owners are of the sums' moment. */
	bool whole = a->s.out_owner_count <= 64;

	if (a->s.out_free + a->s.out_owned + a->s.out_orphaned +
	    a->s.out_reserved + a->s.out_quarantined != a->s.out_total)
		return "the parts are not the total";
	for (i = 0; i < a->s.out_region_count; i++) {
		total += a->region[i].total;
		free += a->region[i].free;
	}
	if (total != a->s.out_total ||
	    free != a->s.out_free + a->s.out_reserved)
		return "sum of the regions";
	for (i = 0; i < a->s.out_owner_count; i++, last = o) {
		o = &a->owner[i];
		if (o->kind > FLEXMEM_OWNER_CGROUP)
			return "kind of owner";
		if (last && (o->kind == last->kind ? o->id <= last->id :
			     o->kind == FLEXMEM_OWNER_CGROUP))
			return "order of the owners";
		if (o->kind == FLEXMEM_OWNER_CLIENT) {
			clients++;
			bytes[0] += o->bytes;
			orphaned[0] += o->orphaned;
			handles[0] += o->handles;
		} else if (o->id == fm_account_id(0)) {
			/* everything is charged to the root cgroup too */
			bytes[1] = o->bytes;
			orphaned[1] = o->orphaned;
			handles[1] = o->handles;
		}
		if (o->slots > a->s.out_region_count)
			return "more slots than regions";
		/*
		 * With reserved regions a cgroup can be charged for slots in
		 * which it has no bytes.
		 */
		if (!a->s.out_reserved &&
		    !o->slots != !(o->bytes + o->orphaned))
			return "slots without bytes, or bytes without slots";
		if (o->peak < o->bytes + o->orphaned)
			return "less at the peak than now";
	}
	if (whole && clients != a->s.out_clients)
		return "number of clients";
	for (i = !whole; i < 2; i++) {
		if (bytes[i] != a->s.out_owned)
			return "bytes of the owners";
		if (orphaned[i] != a->s.out_orphaned)
			return "orphaned bytes of the owners";
	}
	if (whole && handles[0] != handles[1])
		return "handles of the owners";
	return "";
}

/* Expects that no byte is allocated and no owner is charged. */
#define EXPECT_SETTLED(mode) do {					\
	struct account __a;						\
	int __fd = fm_open(mode);					\
									\
	ASSERT_LE(0, __fd);						\
	ACCOUNT(__fd, &__a);						\
	EXPECT_STREQ("", fm_wrong(&__a));				\
	EXPECT_EQ(__a.s.out_total, __a.s.out_free);			\
	EXPECT_EQ(1, __a.s.out_clients);				\
	EXPECT_STREQ("", fm_sums(__fd, true));				\
	close(__fd);							\
} while (0)

/* ---- children that report when they are ready, and then wait ---- */

struct child {
	pid_t pid;
	int pipe[2];	/* [0]: end of the parent, [1]: end of the child */
};

/* Forks. The child must call child_ready() or be killed. */
fm_fn bool child_start(struct child *c)
{
	fflush(NULL);
	if (pipe(c->pipe)) {
		c->pid = -1;
		return false;
	}
	c->pid = fork();
	if (!c->pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(c->pipe[!c->pid ? 0 : 1]);
	return !c->pid;
}

/* In the child: sends @status to the parent, and waits to be killed. */
fm_fn void child_ready(struct child *c, int status)
{
	unsigned char byte = status;

	if (write(c->pipe[1], &byte, 1) == 1 && !status)
		pause();
	_exit(status);
}

/*
 * In the parent: returns the child's status, or -1 if the child ended without a
 * report.
 */
fm_fn int child_wait_ready(struct child *c)
{
	unsigned char byte;

	if (c->pid < 0 || read(c->pipe[0], &byte, 1) != 1)
		return -1;
	return byte;
}

/* Kills the child. When this returns, its files are closed. */
fm_fn int child_kill(struct child *c)
{
	int status = -1;

	close(c->pipe[0]);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, &status, 0);
	return status;
}

/* Fills a buffer with a pattern in which a wrong offset shows. */
static inline void pattern(unsigned char *p, size_t n, unsigned int seed)
{
	size_t i;

	for (i = 0; i < n; i++) {
		seed = seed * 1103515245 + 12345;
		p[i] = seed >> 16;
	}
}

/*
 * Setup of a fixture with the mode of the variant. Afterwards root, Alice and
 * Bob have the node open, the firmware has no faults, and there is no region.
 */
#define OPEN_TENANTS() do {						\
	fm_mend();							\
	self->root = fm_open(variant->mode);				\
	self->alice = fm_open_as(variant->mode, ALICE);			\
	self->bob = fm_open_as(variant->mode, BOB);			\
	ASSERT_LE(0, self->root);					\
	ASSERT_LE(0, self->alice);					\
	ASSERT_LE(0, self->bob);					\
	ASSERT_EQ(0, fm_trim(self->root));				\
} while (0)

#endif /* FLEXMEM_TENANTS_H */
