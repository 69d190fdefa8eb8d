// SPDX-License-Identifier: GPL-2.0
/*
 * The device is removed while files are open, by unbinding its driver or by
 * removing the driver's module. When it is bound again, it is a new device.
 */
#include "flexmem_test.h"

#define KNOBS "/sys/kernel/debug/flexmem_sim"
#define PARAMS "max_regions=3 fallback_sizes=4G order=load_balance acquire=lazy"

FIXTURE(unbind) {
	int fd;
	char node[32];
	char driver[PATH_MAX];	/* sysfs directory of the driver */
	char device[128];	/* name of the device on its bus */
};

FIXTURE_VARIANT(unbind) {
	int mode;
};

FIXTURE_VARIANT_ADD(unbind, pf) { .mode = FM_PF };
FIXTURE_VARIANT_ADD(unbind, vf) { .mode = FM_VF };

static int write_to(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX + 16];
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		error = errno;
	close(fd);
	return error;
}

#define UNBIND() ASSERT_EQ(0, write_to(self->driver, "unbind", self->device))
#define BIND() ASSERT_EQ(0, write_to(self->driver, "bind", self->device))

FIXTURE_SETUP(unbind)
{
	char path[64], device[PATH_MAX];
	struct stat st;

	RELOAD(PARAMS, NULL);
	self->fd = fm_open_nth(variant->mode, 0, self->node);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fstat(self->fd, &st));
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device",
		 major(st.st_rdev), minor(st.st_rdev));
	ASSERT_NE(NULL, realpath(path, device));
	ASSERT_GT(sizeof(self->device), strlen(strrchr(device, '/') + 1));
	strcpy(self->device, strrchr(device, '/') + 1);
	strcat(device, "/driver");
	ASSERT_NE(NULL, realpath(device, self->driver));
}

FIXTURE_TEARDOWN(unbind)
{
	close(self->fd);
	if (!fm_loaded("flexmem_sim"))
		return;
	/* binds the device again, so that the next test has a node */
	write_to(self->driver, "bind", self->device);
	EXPECT_EMPTY(variant->mode);
}

/* Calls each command with valid arguments. Each call must fail with ENODEV. */
static void expect_enodev(struct __test_metadata *_metadata, int fd)
{
	struct flexmem_alloc alloc = CMD(alloc, .length = 128);
	struct flexmem_free free = CMD(free, .handle = 1);
	struct flexmem_region_entry region[8];
	struct flexmem_segment_entry segment[8];
	struct flexmem_rw copy = CMD(rw, .handle = 1, .length = 1,
				       .data = (uintptr_t)segment);
	struct flexmem_batch allocs = CMD(batch, .entry_size = sizeof(alloc),
					  .count = 1,
					  .entries = (uintptr_t)&alloc);
	struct flexmem_batch frees = CMD(batch, .entry_size = sizeof(free),
					 .count = 1,
					 .entries = (uintptr_t)&free);

	must_fail(ENODEV, info, fd, &CMD(info));
	must_fail(ENODEV, alloc, fd, &alloc);
	must_fail(ENODEV, free, fd, &free);
	must_fail(ENODEV, alloc_batch, fd, &allocs);
	must_fail(ENODEV, free_batch, fd, &frees);
	must_fail(ENODEV, lookup, fd, &CMD(lookup, .handle = 1));
	must_fail(ENODEV, segments, fd,
		  &CMD(segments, .entry_size = sizeof(segment[0]), .count = 8,
		       .entries = (uintptr_t)segment));
	must_fail(ENODEV, trim, fd, &CMD(trim));
	must_fail(ENODEV, read, fd, &copy);
	must_fail(ENODEV, write, fd, &copy);
	must_fail(ENODEV, snapshot, fd,
		  &CMD(snapshot, .region_entry_size = sizeof(region[0]),
		       .region_count = 8, .regions = (uintptr_t)region,
		       .owner_entry_size = sizeof(struct flexmem_owner_entry)));
	must_fail(ENODEV, set_limit, fd, &CMD(resource_limit));
}

TEST_F(unbind, every_command_is_enodev)
{
	ASSERT_NE(0, fm_take(self->fd, KiB));
	UNBIND();
	expect_enodev(_metadata, self->fd);
	EXPECT_NE(0, access(self->node, F_OK));
	EXPECT_EQ(-1, fm_open(variant->mode));
}

TEST_F(unbind, the_other_function_lives_on)
{
	int fd = fm_open(!variant->mode);
	__u32 handle;

	ASSERT_LE(0, fd);
	handle = fm_take(fd, KiB);
	UNBIND();
	must(lookup, fd, &CMD(lookup, .handle = handle));
	EXPECT_NE(0, fm_take(fd, 4 * GiB));
	close(fd);
}

/*
 * A node in a container has an inode of its own. When the device comes back, it
 * gets another number. The inode leads nowhere then, even while a file of the
 * earlier device is open on it.
 */
TEST_F(unbind, an_old_inode_leads_nowhere)
{
	const char *path = "/dev/flexmem-selftest";
	struct stat st;
	int old, fd;

	ASSERT_EQ(0, fstat(self->fd, &st));
	unlink(path);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, st.st_rdev));
	old = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, old);
	UNBIND();
	EXPECT_EQ(-1, open(path, O_RDWR | O_CLOEXEC));
	EXPECT_EQ(ENXIO, errno);
	BIND();
	EXPECT_EQ(-1, open(path, O_RDWR | O_CLOEXEC));
	EXPECT_EQ(ENXIO, errno);
	unlink(path);
	fd = fm_open(variant->mode);
	ASSERT_LE(0, fd);
	EXPECT_NE(0, fm_take(fd, KiB));
	must_fail(ENODEV, info, old, &CMD(info));
	close(fd);
	close(old);
}

/* The old file stays unusable, and holds no memory of the new device. */
TEST_F(unbind, bind_gives_a_fresh_device)
{
	int round, i, fd;

	for (round = 0; round < 3; round++) {
		ASSERT_NE(0, fm_take(self->fd, 4 * GiB));
		UNBIND();
		BIND();
		fd = fm_open(variant->mode);
		ASSERT_LE(0, fd);
		expect_enodev(_metadata, self->fd);
		EXPECT_STREQ("", fm_sums(fd, true));
		EXPECT_EQ(0, fm_stats(fd).out_regions);
		EXPECT_EQ(0, fm_stats(fd).out_allocs);
		for (i = 0; i < 3; i++)
			EXPECT_NE(0, fm_take(fd, 4 * GiB));
		close(self->fd);
		close(fd);
		self->fd = fm_open(variant->mode);
		EXPECT_STREQ("", fm_sums(self->fd, true));
	}
}

struct worker {
	pthread_t thread;
	int fd;
	int error;
};

static void *until_error(void *arg)
{
	struct worker *w = arg;
	struct flexmem_alloc reply;
	unsigned int n = 0;

	do {
		w->error = fm_alloc(w->fd, 4096, &reply);
		if (!w->error && n++ % 4)
			w->error = fm_free(w->fd, reply.out_handle);
	} while (!w->error);
	return NULL;
}

TEST_F(unbind, while_others_call)
{
	struct worker w[4];
	int round, i;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < 4; i++) {
			w[i].fd = i ? fm_open(variant->mode) : self->fd;
			ASSERT_EQ(0, pthread_create(&w[i].thread, NULL,
						    until_error, &w[i]));
		}
		usleep(30000);
		UNBIND();
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
			EXPECT_EQ(ENODEV, w[i].error);
			close(w[i].fd);
		}
		BIND();
		self->fd = fm_open(variant->mode);
		ASSERT_LE(0, self->fd);
		EXPECT_STREQ("", fm_sums(self->fd, true));
	}
}

TEST_F(unbind, open_during_unbind)
{
	int round, fd;
	pid_t pid;

	for (round = 0; round < 10; round++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			int i;

			for (i = 0; i < 200; i++) {
				fd = open(self->node, O_RDWR | O_CLOEXEC);
				if (fd >= 0) {
					fm_take(fd, KiB);
					close(fd);
				}
			}
			_exit(0);
		}
		usleep(5000);
		UNBIND();
		BIND();
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		/* The device has another node now. */
		fd = fm_open_nth(variant->mode, 0, self->node);
		ASSERT_LE(0, fd);
		close(fd);
	}
}

/*
 * Memory that could not be released is recovered by the reset at the end of the
 * unbinding.
 */
TEST_F(unbind, a_dead_firmware_keeps_nothing)
{
	const char *memory = variant->mode == FM_PF ?
		KNOBS "/pf/memory" : KNOBS "/vf0/memory";
	char line[128];
	FILE *f;

	ASSERT_NE(0, fm_take(self->fd, KiB));
	ASSERT_NE(0, fm_take(self->fd, KiB));
	ASSERT_EQ(0, write_to(KNOBS, "timeout_ms", "200"));
	ASSERT_EQ(0, write_to(KNOBS, "dead", "1"));
	UNBIND();
	ASSERT_EQ(0, write_to(KNOBS, "dead", "0"));
	ASSERT_EQ(0, write_to(KNOBS, "timeout_ms", FM_CALM_MS));
	BIND();
	f = fopen(memory, "r");
	ASSERT_NE(NULL, f);
	EXPECT_EQ(NULL, fgets(line, sizeof(line), f));
	fclose(f);
}

/*
 * Files are closed before, during and after the removal. Nothing is freed
 * twice.
 */
TEST_F(unbind, module_of_the_device_can_be_removed_under_open_files)
{
	int second = fm_open(variant->mode);

	ASSERT_LE(0, second);
	ASSERT_NE(0, fm_take(self->fd, KiB));
	ASSERT_NE(0, fm_take(second, KiB));
	close(second);
	ASSERT_EQ(0, fm_rmmod("flexmem_sim"));
	expect_enodev(_metadata, self->fd);
}

TEST_F(unbind, flexmem_itself_stays_while_a_file_is_open)
{
	ASSERT_EQ(0, fm_rmmod("flexmem_sim"));
	EXPECT_EQ(-1, syscall(SYS_delete_module, "flexmem", O_NONBLOCK));
	EXPECT_TRUE(errno == EWOULDBLOCK || errno == EBUSY);
	expect_enodev(_metadata, self->fd);
	close(self->fd);
	EXPECT_EQ(0, fm_rmmod("flexmem"));
	self->fd = -1;
}

TEST_HARNESS_MAIN
