// SPDX-License-Identifier: GPL-2.0
/* Memory that all processes share. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "torture.h"

struct shared *shared;

const char * const count_names[NR_COUNTS] = {
	[COUNT_ENTRIES] = "entries of batches",
	[COUNT_NEW_WORDS] = "words of new memory read",
	[COUNT_OWN_WORDS] = "words found as written",
	[COUNT_SIGBUS] = "SIGBUS in a revoked map",
	[COUNT_LOST] = "allocations lost in a reset",
	[COUNT_GONE] = "files whose device went",
	[COUNT_REFUSED] = "out of device memory",
	[COUNT_FIRMWARE] = "EIO or ETIMEDOUT",
	[COUNT_WRONG_REFUSED] = "wrong calls refused",
	[COUNT_KILLS] = "processes killed",
	[COUNT_UNBINDS] = "functions taken away",
	[COUNT_DEATHS] = "firmware deaths",
	[COUNT_LIMITS] = "changes of limits",
	[COUNT_FAULTS] = "changes of firmware faults",
	[COUNT_TRIMS] = "trims",
	[COUNT_SNAPSHOTS] = "snapshots of all accounts",
};

const char * const op_names[NR_OPS] = {
	[OP_ALLOC] = "ALLOC",
	[OP_FREE] = "FREE",
	[OP_VERIFY] = "READ or map, and compare",
	[OP_WRITE] = "WRITE",
	[OP_COPY] = "COPY",
	[OP_MAP] = "LOOKUP and mmap()",
	[OP_UNMAP] = "munmap()",
	[OP_ALLOC_BATCH] = "ALLOC_BATCH",
	[OP_FREE_BATCH] = "FREE_BATCH",
	[OP_LOOKUP] = "LOOKUP",
	[OP_RESIZE] = "RESIZE",
	[OP_EVENT] = "poll() and read()",
	[OP_INFO] = "INFO",
	[OP_REGIONS] = "SNAPSHOT of the regions",
	[OP_SEGMENTS] = "SEGMENTS",
	[OP_SNAPSHOT] = "SNAPSHOT",
	[OP_ADMIN] = "refused TRIM and SET_LIMIT",
	[OP_FDINFO] = "fdinfo",
	[OP_OPEN] = "open()",
	[OP_CLOSE] = "close()",
	[OP_FORK] = "fork()",
	[OP_SEND] = "file sent",
	[OP_RECEIVE] = "file received",
	[OP_WRONG] = "wrong calls",
};

void shared_init(uint64_t seed)
{
	unsigned int i;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0, shared->sockets)) {
		perror("Bail out! shared memory");
		exit(1);
	}
	shared->seed = seed;
	for (i = 0; i < NR_VFS; i++)
		atomic_store(&shared->node[i], -1);
}

bool everything_happened(void)
{
	unsigned int i;

	for (i = 0; i < NR_OPS; i++)
		if (!atomic_load(&shared->done[i]))
			return false;
	for (i = 0; i < COUNT_KILLS; i++)
		if (!counted(i))
			return false;
	return true;
}

void fail(const char *format, ...)
{
	unsigned int at = atomic_fetch_add(&shared->failures, 1);
	va_list args;

	if (at < MAX_FAILURES) {
		va_start(args, format);
		vsnprintf(shared->failure[at], sizeof(shared->failure[at]),
			  format, args);
		va_end(args);
	}
	atomic_store(&shared->stop, true);
}
