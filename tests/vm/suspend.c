// SPDX-License-Identifier: GPL-2.0
/*
 * The only process of a machine that tests/vm/suspend.sh boots. A VF of the
 * simulator has an open map while the system goes to sleep. The kernel's own
 * test (/sys/power/pm_test) suspends all devices, waits, and resumes them.
 *
 * The other self tests cannot do that, because the root file system of their
 * machine is on a device that loses its state in a suspend.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/flexmem.h>

#define SIZE (4u << 20)
#define PAGE 4096
#define NODE "/dev/flexmem64"

static unsigned int count, failures;

static void result(bool good, const char *state, const char *what)
{
	printf("%s %u - %s: %s\n", good ? "ok" : "not ok", ++count, state, what);
	failures += !good;
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (!good)
		printf("# %s: %s: %s\n", path, text, strerror(errno));
	if (fd >= 0)
		close(fd);
	return good;
}

/* Whether a file has this text. */
static bool has(const char *path, const char *text)
{
	char have[8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, have, sizeof(have) - 1);

	if (fd >= 0)
		close(fd);
	have[n > 0 ? n : 0] = 0;
	return strstr(have, text);
}

static bool load(const char *module)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && !syscall(SYS_finit_module, fd, "", 0);
}

static bool prepare(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
	    (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) && errno != EBUSY))
		return false;
	/* The first serial line has the kernel's messages. */
	if (!freopen("/dev/ttyS1", "w", stdout))
		return false;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("TAP version 13");
	return load("/flexmem.ko") && load("/flexmem_sim.ko");
}

/* An allocation of the VF, and its map. */
static char *map(int fd, uint32_t *handle)
{
	struct flexmem_alloc alloc = { .size = sizeof(alloc), .length = SIZE,
				       .flags = FLEXMEM_ALLOC_MAPPABLE };
	struct flexmem_lookup map = { .size = sizeof(map) };

	if (ioctl(fd, FLEXMEM_IOCTL_ALLOC, &alloc))
		return MAP_FAILED;
	*handle = map.handle = alloc.out_handle;
	if (ioctl(fd, FLEXMEM_IOCTL_LOOKUP, &map))
		return MAP_FAILED;
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    map.out_map_offset);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* Counts the pages of the map that do not begin with @byte. */
static unsigned int wrong(const char *p, char byte)
{
	unsigned int i, n = 0;

	for (i = 0; i < SIZE; i += PAGE)
		n += p[i] != byte;
	return n;
}

static void sleep_in(const char *state, int fd, uint32_t handle, char *p)
{
	struct flexmem_rw rw = { .size = sizeof(rw), .handle = handle,
				 .length = SIZE, .data = (uintptr_t)p };
	struct flexmem_info info = { .size = sizeof(info) };
	static char back[SIZE];
	long before;

	memset(p, state[0], SIZE);
	before = faults();
	result(!wrong(p, state[0]) && faults() == before, state,
	       "no fault while the system is awake");
	result(put("/sys/power/pm_test", "devices") &&
	       put("/sys/power/state", state), state,
	       "the devices sleep and wake up");
	before = faults();
	result(!wrong(p, state[0]), state, "the bytes of the map are the same");
	result(faults() > before, state, "the map was taken away");
	printf("# %ld faults\n", faults() - before);
	rw.data = (uintptr_t)back;
	result(!ioctl(fd, FLEXMEM_IOCTL_READ, &rw) && !wrong(back, state[0]),
	       state, "the device can be reached");
	result(!ioctl(fd, FLEXMEM_IOCTL_INFO, &info) &&
	       info.out_state == FLEXMEM_STATE_UP, state, "the VF is up");
}

int main(void)
{
	uint32_t handle;
	char *p;
	int fd;

	result(prepare(), "machine", "the modules load");
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	p = map(fd, &handle);
	result(p != MAP_FAILED, "machine", "a map");
	if (p != MAP_FAILED) {
		sleep_in("freeze", fd, handle, p);
		if (has("/sys/power/state", "mem"))
			sleep_in("mem", fd, handle, p);
	}
	printf("1..%u\n", count);
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	return failures;
}
