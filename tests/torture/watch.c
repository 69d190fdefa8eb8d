// SPDX-License-Identifier: GPL-2.0
/*
 * Reads accounts and tables: tenants now and then, the controller all the time.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"

bool op_info(struct thread *t)
{
	struct file *file = file_pick(t);
	struct flexmem_info info = CMD(info);
	bool done;

	if (!file)
		return false;
	done = !call(file, "INFO", FLEXMEM_IOCTL_INFO, &info, 0);
	if (done && info.out_mode != FLEXMEM_MODE_VF)
		fail("INFO: mode %u", info.out_mode);
	file_put(file);
	return done;
}

bool op_regions(struct thread *t)
{
	struct flexmem_region_entry entry[MAX_REGIONS];
	struct flexmem_snapshot regions = CMD(snapshot,
		.region_entry_size = sizeof(entry[0]),
		.region_count = MAX_REGIONS, .regions = (uintptr_t)entry,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));
	struct file *file = file_pick(t);
	unsigned int i;
	bool done;

	if (!file)
		return false;
	done = !call(file, "SNAPSHOT of the regions", FLEXMEM_IOCTL_SNAPSHOT,
		     &regions, 0);
	for (i = 0; done && i < regions.out_region_count; i++)
		if (entry[i].free > entry[i].total ||
		    entry[i].largest_free > entry[i].free ||
		    entry[i].region_id != entry[i].slot)
			fail("SNAPSHOT: region %u is impossible", i);
	file_put(file);
	return done;
}

bool op_segments(struct thread *t)
{
	struct flexmem_segment_entry entry[MAX_REGIONS];
	struct flexmem_segments segments = CMD(segments,
		.entry_size = sizeof(entry[0]), .count = MAX_REGIONS,
		.entries = (uintptr_t)entry);
	struct file *file = file_pick(t);
	bool done;

	if (!file)
		return false;
	done = !call(file, "SEGMENTS", FLEXMEM_IOCTL_SEGMENTS, &segments, 0);
	file_put(file);
	return done;
}

bool op_snapshot(struct thread *t)
{
	struct file *file = file_pick(t);
	struct accounts accounts;
	const char *wrong;
	int error;

	if (!file)
		return false;
	error = accounts_read(file->fd, &accounts);
	atomic_fetch_add(&shared->ops, 1);
	judge(file, "SNAPSHOT", error, 0);
	if (!error) {
		wrong = accounts_wrong(&accounts, false);
		if (wrong)
			fail("a tenant's SNAPSHOT: %s", wrong);
	}
	file_put(file);
	return !error;
}

/* Calls a command for administrators, which must fail for other users. */
bool op_admin(struct thread *t)
{
	struct flexmem_resource_limit limit = CMD(resource_limit,
		.scope = FLEXMEM_SCOPE_CGROUP,
		.resource = rng_below(&t->rng, FLEXMEM_NR_RESOURCES),
		.cgroup = user_cgroup(t->worker->user),
		.limit = FLEXMEM_NO_LIMIT);
	struct flexmem_trim trim = CMD(trim);
	struct file *file = file_pick(t);
	int error;

	if (!file)
		return false;
	if (rng_one_in(&t->rng, 2))
		error = fm_ioctl(file->fd, FLEXMEM_IOCTL_TRIM, &trim);
	else
		error = fm_ioctl(file->fd, FLEXMEM_IOCTL_SET_LIMIT, &limit);
	atomic_fetch_add(&shared->ops, 1);
	if (error != EPERM && error != ENODEV)
		fail("a tenant's TRIM or SET_LIMIT: %s", strerror(error));
	file_put(file);
	return error == EPERM;
}

bool op_fdinfo(struct thread *t)
{
	struct file *file = file_pick(t);
	char path[64], text[2048];
	int error;

	if (!file)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file->fd);
	error = get_text(path, text, sizeof(text));
	if (error)
		fail("fdinfo: %s", strerror(error));
	else if (!strstr(text, "flexmem-") && !atomic_load(&file->gone) &&
		 fm_ioctl(file->fd, FLEXMEM_IOCTL_INFO, &CMD(info)) != ENODEV)
		fail("fdinfo: has nothing of flexmem");
	atomic_fetch_add(&shared->ops, 1);
	file_put(file);
	return !error;
}

/*
 * Reads all accounts as administrator. Returns false if the device was removed.
 */
static bool watch_one(int fd)
{
	static struct accounts accounts;
	const char *wrong;
	int error;

	error = accounts_read(fd, &accounts);
	if (error == ENODEV)
		return false;
	wrong = error ? strerror(error) : accounts_wrong(&accounts, true);
	if (wrong)
		fail("SNAPSHOT of all: %s (free %llu owned %llu orphaned %llu reserved %llu quarantined %llu total %llu)",
		     wrong, (unsigned long long)accounts.head.out_free,
		     (unsigned long long)accounts.head.out_owned,
		     (unsigned long long)accounts.head.out_orphaned,
		     (unsigned long long)accounts.head.out_reserved,
		     (unsigned long long)accounts.head.out_quarantined,
		     (unsigned long long)accounts.head.out_total);
	else
		count(COUNT_SNAPSHOTS, 1);
	return true;
}

/*
 * Reads an event. Another process with the same file may read the event first.
 */
bool op_event(struct thread *t)
{
	struct file *file = t->own[rng_below(&t->rng, MAX_OWN_FILES)];
	struct pollfd p = { .events = POLLIN };
	struct flexmem_event event;
	ssize_t n;

	if (!file || atomic_load(&file->gone))
		return false;
	p.fd = file->fd;
	if (fcntl(file->fd, F_SETFL, O_NONBLOCK) || poll(&p, 1, 0) < 0)
		fail("poll: %s", strerror(errno));
	atomic_fetch_add(&shared->ops, 1);
	n = read(file->fd, &event, sizeof(event));
	if (n < 0) {
		judge(file, "read of an event", errno, MAY_EAGAIN);
		return p.revents;
	}
	if (n != sizeof(event) || event.size != sizeof(event) ||
	    event.level > FLEXMEM_PRESSURE_CRITICAL ||
	    event.in_use > event.memory)
		fail("event of %zd bytes: level %u, %llu of %llu bytes in use",
		     n, event.level, (unsigned long long)event.in_use,
		     (unsigned long long)event.memory);
	return true;
}

/* A thread of the controller that runs until the end. */
void *watch(void *unused)
{
	int fd[NR_VFS] = { -1, -1 };
	unsigned int i;

	(void)unused;
	while (!atomic_load(&shared->stop)) {
		for (i = 0; i < NR_VFS; i++) {
			if (fd[i] < 0)
				fd[i] = open_node(atomic_load(&shared->node[i]));
			if (fd[i] >= 0 && !watch_one(fd[i])) {
				close(fd[i]);
				fd[i] = -1;
			}
		}
		sleep_ms(2);
	}
	for (i = 0; i < NR_VFS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return NULL;
}
