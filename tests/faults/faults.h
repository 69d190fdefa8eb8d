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
 * @fd: open files of the run; -1: not open
 * @live: handles and number of the allocations that each file must have now,
 *	according to the answers so far
 * @nr: number of handles in an entry of @live
 * @map: a mapping that the run has made
 * @map_size: bytes of the mapping; 0: there is none
 * @revoked: accesses to the mapping must cause SIGBUS. This is checked after
 *	the run, when no fault is injected any more, because a SIGBUS that
 *	cannot be delivered would end the process
 * @error: the first error that no fault explains; 0: none
 * @at: the call that returned @error
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
 * struct sequence - calls that are repeated, each time with another fault; a
 *	row of the table in sequences.c
 * @name: short description
 * @prepare: called before @run, without faults; may be NULL
 * @run: the calls in which operations fail
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

/* Accesses the mapping. Returns false after SIGBUS. */
bool touch(struct run *r, size_t offset);

void sequences_setup(void);

#endif /* FLEXMEM_FAULTS_H */
