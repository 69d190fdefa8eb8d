/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The torture: processes of several users, each with several threads, make all
 * calls of the driver. Meanwhile a controller (root) kills them, changes their
 * limits, breaks the firmware and removes the device.
 *
 * share.c	what all processes see: counters, failures
 * pattern.c	bytes that tell who has written them
 * file.c	open files, and calls with the errors that they may return
 * object.c	allocations: made, checked, mapped, freed
 * copy.c	copies between allocations
 * pass.c	fork, and files passed to other processes
 * wrong.c	wrong calls
 * worker.c	a process: its threads, and how they choose operations
 * watch.c	accounts, read all the time
 * events.c	what the controller does to all of them
 * main.c	start, end, results
 *
 * There are two kinds of files. On a proper file every call is right, and every
 * answer is checked. On a wild file threads make any calls, and the test checks
 * only that these calls do not harm other files.
 */
#ifndef FLEXMEM_TORTURE_H
#define FLEXMEM_TORTURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "common.h"

#define NR_VFS 2
#define NR_USERS 3
#define FIRST_UID 1001
uint64_t user_cgroup(unsigned int user);
#define NR_SLOTS 9		/* processes at a time */
#define NR_THREADS 3		/* threads of each process */
#define MAX_OBJECTS 20		/* allocations of each thread */
#define MAX_OWN_FILES 2
#define BUFFER_SIZE (4 * KiB)
#define MAX_FAILURES 16

/* Counters of things other than operations. */
enum count {
	COUNT_ENTRIES,		/* entries of batches */
	COUNT_NEW_WORDS,	/* words read in new memory */
	COUNT_OWN_WORDS,	/* words with the value that was written */
	COUNT_SIGBUS,
	COUNT_LOST,
	COUNT_GONE,		/* files that lost their device */
	COUNT_REFUSED,		/* ENOMEM because the device was full */
	COUNT_FIRMWARE,		/* EIO and ETIMEDOUT */
	COUNT_WRONG_REFUSED,
	COUNT_LIMITS,
	COUNT_FAULTS,
	COUNT_TRIMS,
	COUNT_SNAPSHOTS,
	/* Environment variables can set targets for the next three counts. */
	COUNT_KILLS,
	COUNT_UNBINDS,
	COUNT_DEATHS,
	NR_COUNTS,
};

/* Operations of threads. worker.c has a table of them. */
enum op {
	OP_ALLOC,
	OP_FREE,
	OP_VERIFY,
	OP_WRITE,
	OP_COPY,
	OP_MAP,
	OP_UNMAP,
	OP_ALLOC_BATCH,
	OP_FREE_BATCH,
	OP_LOOKUP,
	OP_RESIZE,
	OP_EVENT,
	OP_INFO,
	OP_REGIONS,
	OP_SEGMENTS,
	OP_SNAPSHOT,
	OP_ADMIN,
	OP_FDINFO,
	OP_OPEN,
	OP_CLOSE,
	OP_FORK,
	OP_SEND,
	OP_RECEIVE,
	OP_WRONG,
	NR_OPS,
};

extern const char * const count_names[NR_COUNTS];
extern const char * const op_names[NR_OPS];

/* Memory that all processes share. */
struct shared {
	atomic_ullong ops;
	atomic_ullong count[NR_COUNTS];
	atomic_ullong done[NR_OPS];	/* operations that succeeded */
	atomic_uint nonce;
	atomic_uint files;
	atomic_int node[NR_VFS];	/* -1: unbound */
	/* resets and removals, which come one at a time */
	atomic_uint begun;
	atomic_uint ended;
	atomic_bool stop;
	atomic_uint failures;
	char failure[MAX_FAILURES][256];
	uint64_t seed;
	/*
	 * sockets for descriptors that processes pass on; see pass.c
	 */
	int sockets[2];
};

extern struct shared *shared;

void shared_init(uint64_t seed);
static inline void count(enum count what, unsigned int n)
{
	atomic_fetch_add(&shared->count[what], n);
}
static inline uint64_t counted(enum count what)
{
	return atomic_load(&shared->count[what]);
}
/*
 * Whether each kind of call has succeeded and each kind of event has happened.
 */
bool everything_happened(void);
/* Reports an error and ends the run. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- pattern.c ---- */

/* The owner of bytes: an open file. */
uint64_t identity(unsigned int file);
uint64_t pattern_word(uint64_t identity, uint32_t nonce, uint64_t offset);
void pattern_fill(uint64_t *words, uint64_t identity, uint32_t nonce,
		  uint64_t offset, size_t size);
bool pattern_is(const uint64_t *words, uint64_t identity, uint32_t nonce,
		uint64_t offset, size_t size, const char *where);
/* Whether each word is zero or was written by this owner. */
bool pattern_is_new(const uint64_t *words, uint64_t identity, bool zeroed,
		    size_t size, const char *where);

/* ---- file.c ---- */

struct file {
	/* -1: closed, but a mapping may keep the file open */
	int fd;
	unsigned int vf;
	uint64_t identity;
	atomic_int refs;
	atomic_bool gone;	/* a call on it has returned ENODEV */
};

struct object {
	struct file *file;
	struct flexmem_address address;
	uint64_t size;
	uint32_t handle;
	uint32_t flags;
	unsigned int chunks;
	uint32_t nonce;
	/* number of resets and removals before the allocation was made */
	unsigned int upheavals;
	bool written;
	bool lost;
	/* the handle was freed, and only the mapping is left */
	bool freed;
	char *map;
	uint64_t map_offset;	/* offset of @map in the allocation */
	size_t map_size;
};

struct worker;

struct thread {
	struct worker *worker;
	struct rng rng;
	struct file *own[MAX_OWN_FILES];
	struct file *wild;
	struct object object[MAX_OBJECTS];
	unsigned int nr_objects;
	/* the only memory to which wild calls let the kernel write */
	char *arena;
	uint64_t buffer[BUFFER_SIZE / 8];
};

struct worker {
	unsigned int slot;
	unsigned int user;
	uint64_t seed;
	atomic_int budget;	/* operations until the process ends */
	struct file *common;	/* a file that all threads use */
	pthread_mutex_t lock;	/* protects @common */
	struct thread thread[NR_THREADS];
};

/* Errors that a call may return. Any call may return ENODEV. */
enum may {
	MAY_FIRMWARE = 1 << 0,	/* EIO, ETIMEDOUT */
	MAY_NOMEM = 1 << 1,
	MAY_EINVAL = 1 << 2,
	MAY_EIO = 1 << 3,
	MAY_EAGAIN = 1 << 4,
	MAY_EBUSY = 1 << 5,
};

struct file *file_open(unsigned int vf);
struct file *file_adopt(int fd, unsigned int vf, uint64_t identity);
struct file *file_get(struct file *file);
void file_put(struct file *file);
/* Returns a file of the thread or the file that all threads use, or NULL. */
struct file *file_pick(struct thread *t);
int call(struct file *file, const char *what, unsigned long cmd, void *arg,
	 unsigned int may);
bool judge(struct file *file, const char *what, int error, unsigned int may);

bool op_open(struct thread *t);
bool op_close(struct thread *t);

/* ---- object.c ---- */

/* Installs a signal handler, so that copies from and to mappings survive SIGBUS. */
void object_setup(void);
/*
 * Compares the object's bytes with the bytes that were written. Returns false
 * if there is nothing to compare.
 */
bool object_verify(struct thread *t, struct object *o);
/* Asks the driver whether the object is lost, or its device removed. */
bool object_lost(struct object *o);
void object_forget(struct thread *t, struct object *o);
struct object *object_pick(struct thread *t);
struct object *object_new(struct thread *t, struct file *file,
			  const struct flexmem_alloc *reply);
void object_release_all(struct thread *t);

bool op_alloc(struct thread *t);
bool op_free(struct thread *t);
bool op_verify(struct thread *t);
bool op_write(struct thread *t);
bool op_map(struct thread *t);
bool op_unmap(struct thread *t);
bool op_alloc_batch(struct thread *t);
bool op_free_batch(struct thread *t);
bool op_lookup(struct thread *t);
bool op_resize(struct thread *t);

/* ---- copy.c, pass.c, wrong.c, worker.c ---- */

bool op_copy(struct thread *t);
bool op_fork(struct thread *t);
bool op_send(struct thread *t);
bool op_receive(struct thread *t);
bool op_wrong(struct thread *t);
void pass_drain(void);
void wrong_setup(struct thread *t);

void worker_run(unsigned int slot, unsigned int incarnation)
	__attribute__((noreturn));

/* ---- watch.c ---- */

bool op_info(struct thread *t);
bool op_regions(struct thread *t);
bool op_segments(struct thread *t);
bool op_snapshot(struct thread *t);
bool op_admin(struct thread *t);
bool op_fdinfo(struct thread *t);
bool op_event(struct thread *t);
void *watch(void *unused);

/* ---- events.c ---- */

/* How often the controller must do each of its actions. */
struct targets {
	uint64_t ops;
	uint64_t kills;
	uint64_t unbinds;
	uint64_t deaths;
};

bool events_load(uint64_t seed);
void events_run(const struct targets *targets);
void events_quiet(void);
uint64_t events_longest_death(void);

#endif /* FLEXMEM_TORTURE_H */
