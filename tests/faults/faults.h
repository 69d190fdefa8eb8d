/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fault sweep: each sequence of calls runs again and again. In the n-th run
 * the n-th operation that can fail does fail: an allocation of memory, a copy
 * from or to user space, or a command to the firmware.
 */
#ifndef FLEXMEM_FAULTS_H
#define FLEXMEM_FAULTS_H

#include "../torture/common.h"

#define MAX_LIVE 16
#define MAX_FILES 3

/**
 * struct run - one run of a sequence
 * @fd: its files; -1: not open
 * @live: number of allocations that each of them must have, according to the
 *	answers so far
 * @nr: how many
 * @map: a map it has made
 * @map_size: its bytes; 0: none
 * @revoked: the map must be revoked. This is checked when nothing fails any
 *	more, because a signal that cannot be delivered ends the process
 * @error: the first error that no fault explains; 0: none
 * @at: the call that returned it
 * @seen: bit mask of the errors so far
 */
struct run {
	int fd[MAX_FILES];
	struct {
		uint32_t handle[MAX_LIVE];
		unsigned int nr;
	} live[MAX_FILES];
	char *map;
	size_t map_size;
	bool revoked;
	int error;
	const char *at;
	uint64_t seen;
};

/**
 * struct sequence - a row of the table
 * @name: short description
 * @prepare: called before it, and must not fail; may be NULL
 * @run: the calls that are failed
 */
struct sequence {
	const char *name;
	void (*prepare)(struct run *r);
	void (*run)(struct run *r);
};

extern const struct sequence sequences[];
extern const unsigned int nr_sequences;

/* Records a violation. */
void wrong(struct run *r, const char *at, int error);

/* Touches the map. False: SIGBUS. */
bool touch(struct run *r, size_t offset);

void sequences_setup(void);

#endif /* FLEXMEM_FAULTS_H */
