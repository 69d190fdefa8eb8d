/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel for the tests of libflexmem: open(), ioctl(), read(), mmap(),
 * munmap(), close() and the listing of /dev are intercepted with -Wl,--wrap,
 * and a small driver answers. It ends the program on a call that the ABI
 * forbids.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/flexmem.h>

#define FAKE_NODES 8
#define FAKE_REGIONS 16
#define FAKE_COMMANDS 32
#define FAKE_USERS 8

/* A node /dev/flexmem<number>. */
struct fake_node {
	bool exists;
	unsigned int number;
	uint32_t mode;
	int open_error;
	int info_error;
};

/*
 * Settings of the device, to be changed between fake_reset() and the first
 * open, and planned faults.
 */
struct fake {
	struct fake_node nodes[FAKE_NODES];
	const char *stray_names[4];
	uint32_t slots;
	uint32_t max_regions;
	uint32_t program_slots;
	uint32_t max_handles;
	uint32_t max_batch;
	uint32_t order;
	uint32_t fit;
	uint32_t nr_fallback;
	uint64_t fallback[FLEXMEM_MAX_FALLBACK_SIZES];
	uint64_t capacity;
	uint64_t capabilities;

	/* Flags of regions that are acquired from now on. */
	uint32_t region_flags;
	/* New maps have no memory behind them. */
	bool map_is_gone;
	/* The opener of files from now on. */
	uint32_t uid;
	/* The process of the opener in all reports; UINT32_MAX: this one. */
	uint32_t opener;
	/* Whether callers are administrators. */
	bool admin;
	/* Limits of bytes that openers have. */
	uint64_t limit;
	/* The limits last set for each child, and by default. */
	uint64_t other_limit[2];
	/* The cgroup that was removed; 0: none. */
	uint32_t removed;
	/* Of the free bytes, what a snapshot shows as something else. */
	uint64_t orphaned;
	uint64_t quarantined;
	uint64_t scrubbed;

	/* Call number @at (from 1) of a command fails with @error. */
	struct {
		int error;
		unsigned int at;
	} inject[FAKE_COMMANDS];
	/* Entries of a batch that are carried out before an injected EINTR. */
	uint32_t done_before_eintr;
	/* Number of times that a region appears after a count was returned. */
	unsigned int grow;
	/* Number of times that a user appears after a count was returned. */
	unsigned int grow_users;
	/* How full it is; each change of the number is a new event. */
	uint32_t level;
	unsigned int events;
	/* A read of an event returns so many bytes; 0: all. */
	size_t event_bytes;
	/*
	 * Most bytes of one copy, 0: all; and bytes copied before an injected
	 * error.
	 */
	uint64_t copy_most;
	uint64_t copied_before_error;
	bool copied_nothing;
	/* Snapshots always lack room. */
	bool always_too_small;
	int mmap_error;
	/* Another process takes a lease all the time. */
	bool other_leases;
	/* Regions that a trim gives back before an injected error. */
	unsigned int trim_fails_after;

	/* Counters. */
	unsigned int calls[FAKE_COMMANDS];
	unsigned int opens;
	unsigned int closes;
	unsigned int maps;
	unsigned int unmaps;
	int map_protection;
	int open_flags;
	char opened[64];
	int opendir_error;

	/* The state of a node, and of the loaded module. */
	unsigned int node_access;
	unsigned int node_group;
	bool no_module;
};

extern struct fake fake;

/* One VF, /dev/flexmem0, of 8 slots, 12/8/4 GiB, 64 GiB, fill_first. */
void fake_reset(void);
void fake_node(unsigned int index, unsigned int number, uint32_t mode);
/* Everything that was opened has been closed. */
bool fake_all_closed(void);
/* The device is reset: all live allocations are lost. */
void fake_lose(void);
/* Settings from FAKE_* variables, for the command. */
void fake_from_environment(void);

#endif /* FAKE_H */
