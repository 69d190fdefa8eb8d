// SPDX-License-Identifier: GPL-2.0
/*
 * The sequences of calls. Each step is taken only if all steps before it
 * succeeded, and records the allocations that must exist now. A failed call
 * must not have changed anything.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sequences.h"

void wrong(struct run *r, const char *at, int error)
{
	if (r->at)
		return;
	r->at = at;
	r->error = error;
}

bool good(struct run *r, const char *at, int error, int expected)
{
	if (error < 64)
		r->seen |= 1ULL << error;
	if (error == expected)
		return true;
	if (error != ENOMEM && error != EFAULT && error != EIO)
		wrong(r, at, error);
	return false;
}

bool open_file(struct run *r, unsigned int f)
{
	r->fd[f] = open_node(vf_node(0));
	return r->fd[f] >= 0;
}

/* The node's path, found before faults are injected. */
static char node_path[32];

static bool open_failing(struct run *r, unsigned int f)
{
	r->fd[f] = open(node_path, O_RDWR | O_CLOEXEC);
	return good(r, "open", r->fd[f] < 0 ? errno : 0, 0);
}

void prepare_open(struct run *r)
{
	int node = vf_node(0);

	snprintf(node_path, sizeof(node_path), "/dev/flexmem%d", node);
	if (!open_file(r, 0))
		wrong(r, "open (not failed)", errno);
}

static void keep(struct run *r, unsigned int f, uint32_t handle)
{
	r->live[f].handle[r->live[f].nr++] = handle;
}

bool alloc(struct run *r, unsigned int f, struct flexmem_alloc a)
{
	bool done = CALL(r, f, ALLOC, &a);

	if (done && !a.out_handle)
		wrong(r, "ALLOC without a handle", 0);
	if (done)
		keep(r, f, a.out_handle);
	return done;
}

uint32_t last(const struct run *r, unsigned int f)
{
	return r->live[f].nr ? r->live[f].handle[r->live[f].nr - 1] : 0;
}

bool free_last(struct run *r, unsigned int f)
{
	struct flexmem_free a = CMD(free, .handle = last(r, f));
	bool done = CALL(r, f, FREE, &a);

	if (done)
		r->live[f].nr--;
	return done;
}

/* ---- open, ask ---- */

static void run_open(struct run *r)
{
	if (open_failing(r, 1)) {
		close(r->fd[1]);
		r->fd[1] = -1;
	}
}

static void run_info(struct run *r)
{
	struct flexmem_info info = CMD(info);

	CALL(r, 0, INFO, &info);
}

static void run_domain(struct run *r)
{
	struct flexmem_domain_info domain = CMD(domain_info);

	CALL(r, 0, DOMAIN, &domain);
}

static void run_regions(struct run *r)
{
	struct flexmem_region_entry entry[MAX_REGIONS];
	struct flexmem_snapshot regions = CMD(snapshot,
		.region_entry_size = sizeof(entry[0]),
		.region_count = MAX_REGIONS, .regions = (uintptr_t)entry,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));

	CALL(r, 0, SNAPSHOT, &regions);
}

static void run_segments(struct run *r)
{
	struct flexmem_segment_entry entry[MAX_REGIONS];
	struct flexmem_segments segments = CMD(segments,
		.entry_size = sizeof(entry[0]), .count = MAX_REGIONS,
		.entries = (uintptr_t)entry);

	CALL(r, 0, SEGMENTS, &segments);
}

static void run_snapshot(struct run *r)
{
	static struct accounts accounts;

	good(r, "SNAPSHOT", accounts_read(r->fd[0], &accounts), 0);
}

static void run_snapshot_short(struct run *r)
{
	struct flexmem_snapshot snapshot = CMD(snapshot,
		.region_entry_size = sizeof(struct flexmem_region_entry),
		.owner_entry_size = sizeof(struct flexmem_owner_entry));

	good(r, "SNAPSHOT without room",
	     fm_ioctl(r->fd[0], FLEXMEM_IOCTL_SNAPSHOT, &snapshot), EMSGSIZE);
}

static void run_fdinfo(struct run *r)
{
	char path[32], text[1024];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", r->fd[0]);
	good(r, "fdinfo", get_text(path, text, sizeof(text)), 0);
}

static void run_lookup(struct run *r)
{
	struct flexmem_lookup lookup = CMD(lookup, .handle = last(r, 0));

	CALL(r, 0, LOOKUP, &lookup);
}

/* ---- allocate, free ---- */

static void prepare_alloc(struct run *r)
{
	prepare_open(r);
	ALLOC(r, 0, .length = 5000, .flags = FLEXMEM_ALLOC_MAPPABLE);
	if (!last(r, 0))
		wrong(r, "ALLOC (not failed)", 0);
}

static void run_alloc(struct run *r)
{
	ALLOC(r, 0, .length = 1000);
}

static void run_alloc_zeroed(struct run *r)
{
	ALLOC(r, 0, .length = 64 * KiB, .flags = FLEXMEM_ALLOC_ZEROED);
}

static void run_alloc_mappable(struct run *r)
{
	ALLOC(r, 0, .length = 64 * KiB, .flags = FLEXMEM_ALLOC_MAPPABLE);
}

static void run_alloc_program(struct run *r)
{
	ALLOC(r, 0, .length = 1000, .flags = FLEXMEM_ALLOC_PROGRAM);
}

static void run_alloc_aligned(struct run *r)
{
	ALLOC(r, 0, .length = 1000, .alignment = MiB);
}

/* Each allocation needs a new region, until none is left. */
static void run_alloc_regions(struct run *r)
{
	while (r->live[0].nr < 3)
		if (!ALLOC(r, 0, .length = 6 * MiB))
			return;
}

static void run_alloc_refused(struct run *r)
{
	struct flexmem_alloc a = CMD(alloc, .length = 1ULL << 40);

	if (!good(r, "ALLOC of too much",
		  fm_ioctl(r->fd[0], FLEXMEM_IOCTL_ALLOC, &a), ENOMEM))
		return;
	if (a.out_handle)
		wrong(r, "ALLOC of too much has a handle", 0);
}

static void run_free(struct run *r)
{
	free_last(r, 0);
}

static void run_alloc_free(struct run *r)
{
	if (ALLOC(r, 0, .length = 1000) && ALLOC(r, 0, .length = 2000))
		free_last(r, 0);
}

static void run_free_by_address(struct run *r)
{
	struct flexmem_lookup lookup = CMD(lookup, .handle = last(r, 0));
	struct flexmem_free a = CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS);

	if (!CALL(r, 0, LOOKUP, &lookup))
		return;
	a.address = lookup.out_address;
	if (CALL(r, 0, FREE, &a))
		r->live[0].nr--;
}

static void run_free_wrong(struct run *r)
{
	struct flexmem_free a = CMD(free, .handle = 12345);

	good(r, "FREE of nothing",
	     fm_ioctl(r->fd[0], FLEXMEM_IOCTL_FREE, &a), ENOENT);
}

#define BATCH 6

/*
 * Each entry of a batch fails by itself. If the batch fails as a whole, nothing
 * was done.
 */
static bool alloc_batch(struct run *r)
{
	struct flexmem_alloc entry[BATCH];
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(entry[0]),
					 .count = BATCH,
					 .entries = (uintptr_t)entry);
	bool all = true;
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		entry[i] = CMD(alloc, .length = 1000 * (i + 1),
			       .flags = i % 2 ? FLEXMEM_ALLOC_MAPPABLE : 0);
	entry[3].length = 0;
	if (!CALL(r, 0, ALLOC_BATCH, &batch))
		return false;
	for (i = 0; i < BATCH; i++) {
		if (i == 3)
			good(r, "malformed entry", entry[i].out_error, EINVAL);
		else if (good(r, "ALLOC in a batch", entry[i].out_error, 0))
			keep(r, 0, entry[i].out_handle);
		else
			all = false;
	}
	return all;
}

static void run_alloc_batch(struct run *r)
{
	alloc_batch(r);
}

static void prepare_batch(struct run *r)
{
	prepare_open(r);
	if (!alloc_batch(r))
		wrong(r, "ALLOC_BATCH (not failed)", 0);
}

static void run_free_batch(struct run *r)
{
	struct flexmem_free entry[BATCH];
	struct flexmem_batch batch = CMD(batch, .entry_size = sizeof(entry[0]),
					 .count = r->live[0].nr,
					 .entries = (uintptr_t)entry);
	unsigned int i, n = r->live[0].nr;

	for (i = 0; i < n; i++)
		entry[i] = CMD(free, .handle = r->live[0].handle[i]);
	if (!CALL(r, 0, FREE_BATCH, &batch))
		return;
	r->live[0].nr = 0;
	for (i = 0; i < n; i++)
		if (!good(r, "FREE in a batch", entry[i].out_error, 0))
			keep(r, 0, entry[i].handle);
}

void run_close(struct run *r)
{
	close(r->fd[0]);
	r->fd[0] = -1;
	r->live[0].nr = 0;
}

static void run_trim(struct run *r)
{
	struct flexmem_trim trim = CMD(trim);

	if (free_last(r, 0))
		CALL(r, 0, TRIM, &trim);
}

/* ---- pressure ---- */

/*
 * Waits on a second file until the event has come. The event may come late,
 * because events are at least 100 ms apart.
 */
static void wait_until_critical(struct run *r)
{
	int fd = open(node_path, O_RDWR | O_CLOEXEC);
	struct flexmem_event event = {};

	while (event.level != FLEXMEM_PRESSURE_CRITICAL)
		if (read(fd, &event, sizeof(event)) != sizeof(event)) {
			wrong(r, "read (not failed)", errno);
			break;
		}
	close(fd);
}

static void prepare_full(struct run *r)
{
	struct flexmem_alloc a = CMD(alloc, .length = 4 * MiB);

	prepare_open(r);
	while (r->live[0].nr < MAX_LIVE &&
	       !fm_ioctl(r->fd[0], FLEXMEM_IOCTL_ALLOC, &a))
		keep(r, 0, a.out_handle);
	if (fcntl(r->fd[0], F_SETFL, O_NONBLOCK))
		wrong(r, "fcntl (not failed)", errno);
	wait_until_critical(r);
}

/* If a read of an event fails, the event can be read again. */
static void read_event(struct run *r, unsigned int f)
{
	struct flexmem_event event;
	ssize_t n;
	int tries;

	for (tries = 0; tries < 2; tries++) {
		n = read(r->fd[f], &event, sizeof(event));
		if (!good(r, "read", n < 0 ? errno : 0, 0))
			continue;
		if (event.level != FLEXMEM_PRESSURE_CRITICAL)
			wrong(r, "an event of another level", 0);
		break;
	}
}

/* A new file has an event at once. */
static void run_event(struct run *r)
{
	read_event(r, 0);
	if (open_failing(r, 1))
		read_event(r, 1);
}

static void run_again(struct run *r)
{
	if (free_last(r, 0))
		ALLOC(r, 0, .length = MiB);
}

/* ---- limits ---- */

static uint64_t root_cgroup;

/* Looks the root cgroup up before faults are injected. */
static void prepare_limit(struct run *r)
{
	root_cgroup = cgroup_number("");
	prepare_open(r);
}

static bool set_limit(struct run *r, const char *at, struct flexmem_resource_limit q,
		      int expected)
{
	q.cgroup = root_cgroup;
	return good(r, at, fm_ioctl(r->fd[0], FLEXMEM_IOCTL_SET_LIMIT, &q),
		    expected);
}

static void run_limit(struct run *r)
{
	struct flexmem_alloc a = CMD(alloc, .length = 2 * MiB);
	int error;

	if (!set_limit(r, "SET_LIMIT", CMD(resource_limit, .limit = MiB), 0))
		return;
	error = fm_ioctl(r->fd[0], FLEXMEM_IOCTL_ALLOC, &a);
	if (!error)
		keep(r, 0, a.out_handle);
	good(r, "ALLOC above the limit", error, ENOMEM);
}

/* ---- the device is reset or removed ---- */

static void run_reset(struct run *r)
{
	good(r, "reset", put_knob("vf0/reset", 1), 0);
}

static void run_reset_free(struct run *r)
{
	if (good(r, "reset", put_knob("vf0/reset", 1), 0))
		free_last(r, 0);
}

static void run_reset_mapped(struct run *r)
{
	if (map(r, 0) && touch(r, 0))
		r->revoked = good(r, "reset", put_knob("vf0/reset", 1), 0);
}

static void run_unbind(struct run *r)
{
	if (good(r, "unbind", put_text(SIM_DRIVER "unbind",
				       "flexmem_sim_vf.0"), 0))
		r->live[0].nr = 0;
}

static void prepare_unbound(struct run *r)
{
	if (put_text(SIM_DRIVER "unbind", "flexmem_sim_vf.0"))
		wrong(r, "unbind (not failed)", errno);
}

static void run_bind(struct run *r)
{
	good(r, "bind", put_text(SIM_DRIVER "bind", "flexmem_sim_vf.0"), 0);
}

const struct sequence sequences[] = {
	{ "open and close", prepare_open, run_open },
	{ "INFO", prepare_open, run_info },
	{ "DOMAIN", prepare_open, run_domain },
	{ "ALLOC, the first", prepare_open, run_alloc },
	{ "ALLOC, a further one", prepare_alloc, run_alloc },
	{ "ALLOC zeroed", prepare_open, run_alloc_zeroed },
	{ "ALLOC mappable", prepare_alloc, run_alloc_mappable },
	{ "ALLOC for a program", prepare_open, run_alloc_program },
	{ "ALLOC aligned", prepare_alloc, run_alloc_aligned },
	{ "ALLOC in three regions", prepare_open, run_alloc_regions },
	{ "ALLOC of too much", prepare_open, run_alloc_refused },
	{ "ALLOC, ALLOC, FREE", prepare_open, run_alloc_free },
	{ "FREE", prepare_alloc, run_free },
	{ "FREE by address", prepare_alloc, run_free_by_address },
	{ "FREE of nothing", prepare_alloc, run_free_wrong },
	{ "ALLOC_BATCH", prepare_open, run_alloc_batch },
	{ "FREE_BATCH", prepare_batch, run_free_batch },
	{ "LOOKUP", prepare_alloc, run_lookup },
	{ "SNAPSHOT of the regions", prepare_alloc, run_regions },
	{ "SEGMENTS", prepare_alloc, run_segments },
	{ "SNAPSHOT", prepare_batch, run_snapshot },
	{ "SNAPSHOT without room", prepare_alloc, run_snapshot_short },
	{ "fdinfo", prepare_alloc, run_fdinfo },
	{ "TRIM", prepare_alloc, run_trim },
	{ "WRITE, READ", prepare_alloc, run_write_read },
	{ "WRITE, READ, large", prepare_large, run_write_read_large },
	{ "COPY", prepare_large, run_copy_range },
	{ "ALLOC of another owner's bytes", prepare_scrub, run_scrub },
	{ "ALLOC, again after quarantine", prepare_scrub, run_scrub_twice },
	{ "RESIZE", prepare_alloc, run_resize },
	{ "RESIZE to another owner's bytes", prepare_scrub, run_resize_scrub },
	{ "RESIZE to too much", prepare_alloc, run_resize_wrong },
	{ "ALLOC growable, RESIZE", prepare_alloc, run_growable },
	{ "read of an event", prepare_full, run_event },
	{ "ALLOC that is tried again", prepare_full, run_again },
	{ "ALLOC zeroed of own bytes", prepare_dirty, run_zeroed },
	{ "quarantine and TRIM", prepare_scrub, run_quarantine_trim },
	{ "map, fault, unmap", prepare_alloc, run_map },
	{ "map, unmap in parts", prepare_alloc, run_map_part },
	{ "map, FREE, unmap", prepare_alloc, run_map_free },
	{ "map, close, unmap", prepare_alloc, run_map_close },
	{ "map, FREE, TRIM", prepare_alloc, run_map_trim },
	{ "map, fork", prepare_alloc, run_map_fork },
	{ "map, privately", prepare_alloc, run_map_wrong },
	{ "SET_LIMIT", prepare_limit, run_limit },
	{ "reset", prepare_alloc, run_reset },
	{ "reset, FREE", prepare_alloc, run_reset_free },
	{ "reset with a map", prepare_alloc, run_reset_mapped },
	{ "unbind", prepare_alloc, run_unbind },
	{ "bind", prepare_unbound, run_bind },
};

const unsigned int nr_sequences = ARRAY_SIZE(sequences);
