/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel for the tests of libflexmem: open(), ioctl(), read(), mmap(),
 * munmap(), close() and the listing of /dev are intercepted with -Wl,--wrap,
 * and a small driver answers. The driver ends the program on a call that
 * the ABI forbids.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/flexmem.h>

#define FAKE_NODES 8
#define FAKE_LINKS 32
#define FAKE_REGIONS 16
#define FAKE_COMMANDS 32
#define FAKE_USERS 8
#define FAKE_GUEST_ID 77

/* A symbolic link in sysfs. */
struct fake_link {
	char path[96];
	char target[96];
};

/* The node /dev/flexmemN. */
struct fake_node {
	bool exists;
	unsigned int number;
	uint32_t mode;
	int open_error;
	int info_error;
	/* It goes away when it is opened. */
	bool leaves;
};

/*
 * Planned faults, and settings of the device. Tests change settings between
 * fake_reset() and the first open.
 */
struct fake {
	struct fake_node nodes[FAKE_NODES];
	struct fake_link links[FAKE_LINKS];
	const char *stray_names[4];
	/* The text of /proc/devices; "": there is no such file. */
	const char *devices;
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
	uint32_t state;
	uint64_t capabilities;
	uint64_t va_page;
	uint64_t va_start;
	uint64_t va_length;
	bool all_by_default;	/* no domain needs to be asked for */
	uint32_t nr_domains;
	uint32_t nr_domain_sizes;
	/* The policy of the last ALLOC, and the domains that it named. */
	uint32_t policy;
	uint64_t bound_to;
	/*
	 * Chunks of each allocation; 0: one. LOOKUP shows them only for
	 * allocations that can be mapped.
	 */
	uint32_t chunks;
	/*
	 * The policy and domains that each ALLOC must have: policy << 32 |
	 * domains. ~0: any.
	 */
	uint64_t must_ask;

	/* The flags and the domain of regions that are acquired later. */
	uint32_t region_flags;
	uint32_t region_domain;
	/* DOMAIN says that these regions are reserved for other cgroups. */
	bool region_reserved;
	/* An access to a new mapping causes SIGBUS. */
	bool map_is_gone;
	/* The user that opens files from now on. */
	uint32_t uid;
	/*
	 * The process that reports show as the opener; UINT32_MAX: the test's
	 * own process.
	 */
	uint32_t opener;
	/* Whether callers are administrators. */
	bool admin;
	/* The byte limit of each opener. */
	uint64_t limit;
	/* Replies hide the limit that was reached, or do not tell it. */
	bool hides_limit;
	bool tells_no_limit;
	/* The default limit that was set last. */
	uint64_t default_limit;
	/*
	 * Whether each SET_LIMIT must be for all functions, or for one; 2: either.
	 */
	unsigned int limit_for_all;
	/* SET_LIMIT changes nothing, although it succeeds. */
	bool keeps_limits;
	/* In the first @held_for snapshots this cgroup has an allocation and a file. */
	uint64_t held;
	unsigned int held_for;
	/* After each list the first open file fails to allocate, once at its limit and twice for lack of capacity. */
	bool fails;
	/* An open file that only the list of owners after this number of lists has. */
	unsigned int guest;
	/* Each list has another one, whose cgroup has no account. */
	bool guests;
	/* In so many lists a cgroup with one above it has 1 GiB less than that one knows. */
	unsigned int torn;
	/* In later lists of regions than this one, each slot has another region. */
	unsigned int moved;
	/* The name of a file to which SET_LIMIT and RESERVE are appended. */
	const char *log;
	/* How often the device was reset, and has not answered. */
	uint64_t resets, timeouts;
	/* The number of a cgroup that was removed, or 0. */
	uint64_t removed;
	/* The number of a cgroup above all others, or 0. */
	uint64_t parent;
	/*
	 * The fake treats these bytes as free. Only a snapshot reports them as
	 * orphaned, quarantined or scrubbed.
	 */
	uint64_t orphaned;
	/* What a snapshot says that the first open file has, beside its own. */
	uint64_t opened_bytes;
	/* Regions that the first cgroup should have reserved, and has not. */
	uint32_t broken;
	/* Freed memory of the first open file that waits, and how long. */
	uint64_t leaving;
	uint64_t waits_ms;
	uint64_t quarantined;
	uint64_t scrubbed;
	/* By how much the first open file grows after each snapshot with owners, and by how much it has. */
	uint64_t grows;
	uint64_t grown;
	/* The part of the used bytes that is told as programs'. */
	uint64_t used_program;

	/* Call @at of a command, counted from 1, fails with @error. */
	struct {
		int error;
		unsigned int at;
	} inject[FAKE_COMMANDS];
	/*
	 * The entries of a batch that are carried out before an injected EINTR.
	 */
	uint32_t done_before_eintr;
	/* How often a region appears between two calls for a list. */
	unsigned int grow;
	/* How often a user appears between two calls for a list. */
	unsigned int grow_users;
	/*
	 * The level of memory pressure. There is a new event whenever @events
	 * changes.
	 */
	uint32_t level;
	unsigned int events;
	/* A read of an event returns this number of bytes; 0: all. */
	size_t event_bytes;
	uint32_t event_flags;
	uint64_t wanted;
	/* The latest event, and the latest one that tells of freed memory. */
	uint64_t sequence;
	uint64_t freed;
	/* What the driver tells that the device has or could have. */
	uint64_t memory;
	/* The largest further region; UINT64_MAX: as the capacity says. */
	uint64_t next_region;
	/* The driver tells of each failed ALLOC that no other file can help. */
	bool alone;
	/*
	 * The most bytes that one copy moves (0: all), and the bytes that are
	 * copied before an injected error.
	 */
	uint64_t copy_most;
	uint64_t copied_before_error;
	bool copied_nothing;
	/* Snapshots never have enough room. */
	bool always_too_small;
	int mmap_error;
	/* The regions that TRIM releases before an injected error. */
	unsigned int trim_fails_after;

	/* How often each command was called. */
	unsigned int calls[FAKE_COMMANDS];
	unsigned int opens;
	unsigned int closes;
	unsigned int maps;
	unsigned int unmaps;
	int map_protection;
	int open_flags;
	char opened[64];
	int opendir_error;

	/*
	 * The result of access() on the node, and whether the module is loaded.
	 */
	unsigned int node_access;
	unsigned int node_group;
	bool no_module;
	/* Its version; NULL: that of the library; "": it has none. */
	const char *version;
};

extern struct fake fake;

/*
 * Sets the default: one VF with 8 slots, region sizes of 12, 8 and 4 GiB, a
 * capacity of 64 GiB, the order fill_first, and 64 GiB of device-virtual
 * addresses from 4 GiB on, in pages of 2 MiB.
 */
void fake_reset(void);
void fake_node(unsigned int index, unsigned int number, uint32_t mode);
/* Whether every file that was opened has been closed. */
bool fake_all_closed(void);
/* There is a new event, before which memory was freed. */
void fake_tells_of_a_free(void);
/* There is a new event of a level of memory pressure. */
void fake_press(uint32_t level);
/* Removes a function: its node, and what its open files can do. */
void fake_remove(unsigned int index);
/* Simulates a reset of the device: all live allocations are lost. */
void fake_lose(void);
/* Reads settings from FAKE_* variables, for tests of the command. */
void fake_from_environment(void);

#endif /* FAKE_H */
