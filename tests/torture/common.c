// SPDX-License-Identifier: GPL-2.0
/* Random numbers, the simulator's knobs, the modules, sums of a snapshot. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

/* The generator is splitmix64, which takes any seed. */
uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint32_t rng_below(struct rng *rng, uint32_t limit)
{
	return (rng_next(rng) >> 32) * limit >> 32;
}

uint64_t rng_mix(uint64_t a, uint64_t b)
{
	struct rng rng = { .state = a ^ (b + 1) * 0xd1342543de82ef95ULL };

	return rng_next(&rng);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

void sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

int put_text(const char *path, const char *format, ...)
{
	char text[256];
	va_list args;
	int fd, len, error = 0;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (write(fd, text, len) != len)
		error = errno ?: EIO;
	close(fd);
	return error;
}

int get_text(const char *path, char *text, size_t size)
{
	size_t at = 0;
	ssize_t n;
	int fd, error = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	while (at < size - 1 && (n = read(fd, text + at, size - 1 - at))) {
		if (n < 0) {
			error = errno;
			break;
		}
		at += n;
	}
	text[at] = '\0';
	close(fd);
	return error;
}

int put_knob(const char *knob, uint64_t value)
{
	char path[128];

	snprintf(path, sizeof(path), SIM_KNOBS "%s", knob);
	return put_text(path, "%llu", (unsigned long long)value);
}

#define CGROUPS "/sys/fs/cgroup/"

int cgroup_enter(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), CGROUPS "%s", name);
	if (mkdir(path, 0755) && errno != EEXIST)
		return errno;
	snprintf(path, sizeof(path), CGROUPS "%s/cgroup.procs", name);
	return put_text(path, "0");
}

uint64_t cgroup_number(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), CGROUPS "%s", name);
	return stat(path, &st) ? 0 : st.st_ino;
}

bool module_loaded(const char *module)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/module/%s", module);
	return !access(path, F_OK);
}

int module_load(const char *module, const char *params)
{
	char path[PATH_MAX];
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s/%s.ko", getenv("FLEXMEM_KO") ?: "",
		 module);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (syscall(SYS_finit_module, fd, params, 0))
		error = errno;
	close(fd);
	return error;
}

int module_unload(const char *module)
{
	int tries, error = 0;

	for (tries = 0; module_loaded(module) && tries < 600; tries++) {
		if (!syscall(SYS_delete_module, module, O_NONBLOCK))
			return 0;
		error = errno;
		sleep_ms(100);
	}
	return module_loaded(module) ? error : 0;
}

int vf_node(unsigned int vf)
{
	char path[96];
	struct dirent *entry;
	int node = -1;
	DIR *dir;

	snprintf(path, sizeof(path),
		 "/sys/bus/platform/devices/flexmem_sim_vf.%u/flexmem", vf);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (sscanf(entry->d_name, "flexmem%d", &node) == 1)
			break;
	closedir(dir);
	return node;
}

int open_node(int node)
{
	char path[32];

	if (node < 0) {
		errno = ENODEV;
		return -1;
	}
	snprintf(path, sizeof(path), "/dev/flexmem%d", node);
	return open(path, O_RDWR | O_CLOEXEC);
}

int open_vf(unsigned int vf)
{
	int node = vf_node(vf);
	char path[32];

	if (node >= 0) {
		snprintf(path, sizeof(path), "/dev/flexmem%d", node);
		if (chmod(path, 0666))
			return -1;
	}
	return open_node(node);
}

static int read_snapshot(int fd, struct accounts *a, uint32_t flags)
{
	a->head = CMD(snapshot,
		      .flags = flags,
		      .region_entry_size = sizeof(a->region[0]),
		      .region_count = MAX_REGIONS,
		      .regions = (uintptr_t)a->region,
		      .owner_entry_size = sizeof(a->owner[0]),
		      .owner_count = MAX_OWNERS,
		      .owners = (uintptr_t)a->owner);
	return fm_ioctl(fd, FLEXMEM_IOCTL_SNAPSHOT, &a->head);
}

int accounts_read(int fd, struct accounts *a)
{
	return read_snapshot(fd, a, 0);
}

int accounts_read_own(int fd, struct accounts *a)
{
	return read_snapshot(fd, a, FLEXMEM_SNAPSHOT_OWN);
}

static const char *owner_wrong(const struct flexmem_owner_entry *o,
			       const struct flexmem_owner_entry *before)
{
	if (o->kind > FLEXMEM_OWNER_CGROUP || o->flags)
		return "an owner of no known kind";
	if (o->peak < o->bytes + o->orphaned)
		return "an owner has more than its peak";
	if (o->bytes && !o->slots)
		return "an owner has bytes in no slot";
	/* Entries are sorted: cgroups, then clients, each by id. */
	if (before && (before->kind < o->kind ||
		       (before->kind == o->kind && before->id >= o->id)))
		return "owners are not in order";
	return NULL;
}

/* Counts of calls are for the administrator. */
static const char *counts_wrong(const struct accounts *a, bool admin)
{
	const struct flexmem_snapshot *h = &a->head;
	uint64_t allocated = 0;
	unsigned int i;

	for (i = 0; i < h->out_region_count; i++)
		allocated += a->region[i].nr_allocated;
	if (h->out_used_program > h->out_owned + h->out_orphaned)
		return "programs have more than all";
	if (!(h->out_flags & FLEXMEM_REPORT_HIDDEN) != admin ||
	    (!admin && (h->out_allocs || h->out_frees || h->out_failures)))
		return "counts that are hidden from the wrong caller";
	/*
	 * The bytes that a RESIZE is adding are in use already. There is nothing
	 * to subtract them from if no chunk was freed so far.
	 */
	if (h->out_allocated != allocated || h->out_allocs - h->out_frees > allocated ||
	    (h->out_frees && h->out_allocs - h->out_frees != allocated))
		return "number of allocations";
	return NULL;
}

const char *accounts_wrong(const struct accounts *a, bool admin)
{
	const struct flexmem_snapshot *h = &a->head;
	uint64_t bytes[2] = {}, handles[2] = {}, orphaned[2] = {};
	uint64_t total = 0, free = 0, clients = 0;
	const char *wrong;
	unsigned int i;

	if (h->out_free + h->out_owned + h->out_orphaned + h->out_reserved +
	    h->out_quarantined != h->out_total)
		return "free + owned + orphaned + reserved + quarantined is not total";
	for (i = 0; i < h->out_region_count; i++) {
		total += a->region[i].total;
		free += a->region[i].free;
		if (a->region[i].free > a->region[i].total ||
		    a->region[i].largest_free > a->region[i].free)
			return "free bytes of a region";
		/* No tenant of the torture test has a reservation. */
		if (!(a->region[i].flags & FLEXMEM_REGION_HIDDEN) != admin)
			return "figures of a region that are hidden from the wrong caller";
	}
	wrong = counts_wrong(a, admin);
	if (wrong)
		return wrong;
	if (total != h->out_total)
		return "the regions are not the total";
	if (free != (admin ? h->out_free + h->out_reserved : 0))
		return "the regions' free bytes are not the total";
	for (i = 0; i < h->out_owner_count; i++) {
		const struct flexmem_owner_entry *o = &a->owner[i];

		wrong = owner_wrong(o, i ? o - 1 : NULL);
		if (wrong)
			return wrong;
		if (o->kind == FLEXMEM_OWNER_CLIENT) {
			bytes[0] += o->bytes;
			handles[0] += o->handles;
			orphaned[0] += o->orphaned;
			clients++;
			continue;
		}
		/* Everything is charged to the root cgroup too. */
		if (o->bytes > bytes[1])
			bytes[1] = o->bytes;
		if (o->handles > handles[1])
			handles[1] = o->handles;
		if (o->orphaned > orphaned[1])
			orphaned[1] = o->orphaned;
	}
	if (bytes[1] > h->out_owned || orphaned[1] > h->out_orphaned)
		return "owners have more than all";
	if (!admin)
		return clients == 1 && bytes[0] <= h->out_owned &&
		       h->out_owner_count == 2 ? NULL :
			"a caller sees others than itself and its cgroup";
	if (bytes[1] != h->out_owned)
		return "the root's bytes are not the owned ones";
	/* Of a longer list only the first 64 owners are of the sums' moment. */
	if (h->out_owner_count > 64)
		return NULL;
	if (clients != h->out_clients)
		return "not as many clients as open files";
	if (bytes[0] != h->out_owned)
		return "the clients' bytes are not the owned ones";
	if (handles[0] != handles[1])
		return "clients and the root differ in handles";
	return NULL;
}

const char *accounts_not_empty(const struct accounts *a)
{
	const struct flexmem_snapshot *h = &a->head;
	unsigned int i;

	if (h->out_owned)
		return "bytes are owned";
	if (h->out_orphaned)
		return "bytes are orphaned";
	if (h->out_quarantined)
		return "bytes are quarantined";
	if (h->out_reserved)
		return "bytes are reserved";
	if (h->out_clients != 1)
		return "files are open besides this one";
	if (h->out_used_program || h->out_allocated)
		return "something is allocated";
	for (i = 0; i < h->out_region_count; i++)
		if (a->region[i].nr_allocated ||
		    a->region[i].largest_free != a->region[i].total)
			return "a region is not one free block";
	for (i = 0; i < h->out_owner_count; i++) {
		if (a->owner[i].bytes || a->owner[i].orphaned ||
		    a->owner[i].handles || a->owner[i].slots)
			return "something is charged";
	}
	return NULL;
}
