// SPDX-License-Identifier: GPL-2.0
/* A tenant's process: its threads, and how they choose operations. */
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

static const struct {
	bool (*run)(struct thread *t);
	unsigned int weight;
} ops[NR_OPS] = {
	[OP_ALLOC] = { op_alloc, 40 },
	[OP_FREE] = { op_free, 30 },
	[OP_VERIFY] = { op_verify, 40 },
	[OP_WRITE] = { op_write, 12 },
	[OP_COPY] = { op_copy, 24 },
	[OP_MAP] = { op_map, 24 },
	[OP_UNMAP] = { op_unmap, 24 },
	[OP_ALLOC_BATCH] = { op_alloc_batch, 5 },
	[OP_FREE_BATCH] = { op_free_batch, 5 },
	[OP_LOOKUP] = { op_lookup, 50 },
	[OP_RESIZE] = { op_resize, 20 },
	[OP_EVENT] = { op_event, 8 },
	[OP_INFO] = { op_info, 12 },
	[OP_REGIONS] = { op_regions, 10 },
	[OP_SEGMENTS] = { op_segments, 12 },
	[OP_SNAPSHOT] = { op_snapshot, 46 },
	[OP_ADMIN] = { op_admin, 10 },
	[OP_FDINFO] = { op_fdinfo, 5 },
	[OP_OPEN] = { op_open, 4 },
	[OP_CLOSE] = { op_close, 4 },
	[OP_FORK] = { op_fork, 1 },
	[OP_SEND] = { op_send, 4 },
	[OP_RECEIVE] = { op_receive, 12 },
	[OP_WRONG] = { op_wrong, 250 },
};

static enum op next_op(struct thread *t)
{
	unsigned int sum = 0, at, i;

	for (i = 0; i < NR_OPS; i++)
		sum += ops[i].weight;
	at = rng_below(&t->rng, sum);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	return i;
}

static void *thread_run(void *arg)
{
	struct thread *t = arg;
	struct worker *w = t->worker;
	unsigned int i, idle = 0;
	enum op op;

	while (!atomic_load(&shared->stop) &&
	       atomic_fetch_sub(&w->budget, 1) > 0) {
		op = next_op(t);
		if (ops[op].run(t)) {
			atomic_fetch_add(&shared->done[op], 1);
			idle = 0;
		} else if (++idle % 16 == 0) {
			/*
			 * No file can be opened: probably the devices are
			 * removed at the moment.
			 */
			sleep_ms(1);
		}
	}
	object_release_all(t);
	for (i = 0; i < MAX_OWN_FILES; i++)
		file_put(t->own[i]);
	file_put(t->wild);
	return NULL;
}

static const char *cgroup_name(unsigned int user)
{
	static char name[32];

	snprintf(name, sizeof(name), "flexmem-torture-%u", user);
	return name;
}

uint64_t user_cgroup(unsigned int user)
{
	return cgroup_number(cgroup_name(user));
}

static void become(unsigned int user)
{
	uid_t uid = FIRST_UID + user;

	if (cgroup_enter(cgroup_name(user)) || setgroups(0, NULL) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid)) {
		fail("no other user: %s", strerror(errno));
		_exit(1);
	}
	/*
	 * setresuid() has cleared these two settings. The process must be
	 * dumpable to read its own fdinfo.
	 */
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void worker_run(unsigned int slot, unsigned int incarnation)
{
	static struct worker worker;
	pthread_t id[NR_THREADS];
	unsigned int i;

	worker.slot = slot;
	worker.user = slot % NR_USERS;
	worker.seed = rng_mix(shared->seed, (uint64_t)incarnation << 8 | slot);
	atomic_store(&worker.budget, 500 + worker.seed % 20000);
	pthread_mutex_init(&worker.lock, NULL);
	become(worker.user);
	object_setup();
	for (i = 0; i < NR_THREADS; i++) {
		struct thread *t = &worker.thread[i];

		t->worker = &worker;
		t->rng.state = rng_mix(worker.seed, i);
		wrong_setup(t);
		if (pthread_create(&id[i], NULL, thread_run, t)) {
			fail("no thread");
			_exit(1);
		}
	}
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(id[i], NULL);
	file_put(worker.common);
	_exit(0);
}
