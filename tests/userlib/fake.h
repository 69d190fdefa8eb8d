/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel for the tests of libflexmem: open(), ioctl(), close() and the
 * listing of /dev are intercepted with -Wl,--wrap, and a small driver answers.
 * It ends the program when something reaches it that the ABI forbids.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/flexmem.h>

#define FAKE_NODES 8
#define FAKE_REGIONS 16
#define FAKE_COMMANDS 16

/* A node /dev/flexmem<number>. */
struct fake_node {
	bool exists;
	unsigned int number;
	uint32_t mode;
	int open_error;
	int info_error;
};

/*
 * How the device is set up, to be changed between fake_reset() and the first
 * open, and what is to go wrong.
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

	/* Call number @at (from 1) of a command fails with @error. */
	struct {
		int error;
		unsigned int at;
	} inject[FAKE_COMMANDS];
	/* Entries of a batch that are carried out before an injected EINTR. */
	uint32_t done_before_eintr;
	/* So many times a region appears after a count has been told. */
	unsigned int grow;
	/* Regions that a trim gives back before an injected error. */
	unsigned int trim_fails_after;

	/* What happened. */
	unsigned int calls[FAKE_COMMANDS];
	unsigned int opens;
	unsigned int closes;
	int open_flags;
	char opened[64];
	int opendir_error;
};

extern struct fake fake;

/* One VF, /dev/flexmem0, of 8 slots, 12/8/4 GiB, 64 GiB, fill_first. */
void fake_reset(void);
void fake_node(unsigned int index, unsigned int number, uint32_t mode);
/* Everything that was opened has been closed. */
bool fake_all_closed(void);
/* Settings from FAKE_* variables, for the command. */
void fake_from_environment(void);

#endif /* FAKE_H */
