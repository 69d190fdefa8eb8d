/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzer: batches of calls that are mostly right, made by several threads
 * on the same files. The seed and the number of a batch determine its calls. A
 * batch begins and ends with an empty device, so it can be repeated by itself.
 *
 * table.c	the commands, and what kind of value each member takes
 * calls.c	makes one call out of a row of the table
 * fuzz.c	batches, threads, invariants, results
 */
#ifndef FLEXMEM_FUZZ_H
#define FLEXMEM_FUZZ_H

#include <pthread.h>
#include <stdatomic.h>

#include "../torture/common.h"

#define NR_VFS 2
/* open files of a batch; all threads use them */
#define NR_FILES 4
#define NR_THREADS 4
#define NR_CALLS 200		/* calls of each thread */
/* allocations that are remembered for each file */
#define MAX_KNOWN 32
#define MAX_MAPS 4		/* mappings of each thread */
#define MAX_FIELDS 13
#define MAX_STRUCT 256
#define VA_PAGE (64 * KiB)	/* of the simulator, and its lowest address */

/* The meaning of a member, which decides which values are tried. */
enum kind {
	NO_FIELD,
	SIZE,
	FLAGS,		/* .most: bit mask of the known flags */
	/*
	 * .most: not 0 for the second handle of a struct, which is drawn
	 * separately
	 */
	HANDLE,
	LENGTH,
	ALIGNMENT,
	ADDRESS,	/* region_id and offset, 16 bytes */
	OFFSET,
	/* an offset or length, a multiple of 128; .most: least value / 128 */
	UNITS,
	ENTRIES,	/* pointer to an array; .most: bytes of one entry */
	DATA,		/* pointer to bytes; another member has the length */
	ENTRY_SIZE,	/* .most: the valid size */
	COUNT,
	VA,		/* a low page of a device-virtual space */
	VA_PAGES,	/* pages of such a space; .most: the least number */
	CHOICE,		/* 0 to .most */
	DOMAIN,		/* a memory of the card, or the number after the last */
	DOMAINS,	/* a bit mask of the card's memories */
	ID,
	CGROUP,		/* the cgroup of RESERVE, or another id */
	REGION_SIZE,	/* REGION or 0 */
	LIMIT,
	RESERVED,
};

struct field {
	uint16_t offset;
	uint16_t bytes;
	enum kind kind;
	uint32_t most;
};

enum entry {
	NO_ENTRIES,
	ALLOC_ENTRIES,
	FREE_ENTRIES,
};

struct command {
	const char *name;
	unsigned int nr;
	unsigned int size;
	unsigned int weight;
	enum entry entries;
	struct field field[MAX_FIELDS];
};

extern const struct command commands[];
extern const unsigned int nr_commands;
/*
 * Returns the row of the table that describes an entry of this kind of batch.
 */
const struct command *entry_command(enum entry entries);

struct known {
	uint32_t handle;
	struct flexmem_address address;
	uint64_t size;
};

struct file {
	pthread_mutex_t lock;	/* protects the members below */
	int fd;
	unsigned int vf;
	struct known known[MAX_KNOWN];
	unsigned int nr_known;
};

struct mapping {
	char *at;
	size_t size;
};

struct thread {
	pthread_t id;
	unsigned int number;
	struct rng rng;
	struct file *files;
	char *arena;
	struct mapping mapping[MAX_MAPS];
	atomic_ullong *done;	/* for each command, how many calls succeeded */
	uint64_t calls;
	char wrong[160];	/* describes the first error, or "" */
};

#define ARENA (512 * KiB)
#define GUARD (128 * MiB)

/* The size of regions that flexmem.ko tries first. */
#define REGION (16 * MiB)

/*
 * The id of the cgroup for which RESERVE reserves regions. The cgroup has no
 * process.
 */
extern uint64_t holder;

extern unsigned int nr_memories;	/* of the card */

void thread_setup(struct thread *t);
void thread_call(struct thread *t);
void thread_unmap_all(struct thread *t);
void expect_sigbus(void);

#endif /* FLEXMEM_FUZZ_H */
