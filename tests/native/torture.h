/* SPDX-License-Identifier: GPL-2.0 */
/* The torture test. torture.c describes it. */
#ifndef _NATIVE_TORTURE_H
#define _NATIVE_TORTURE_H

#include "world.h"

#define TENANTS 8
#define FILES 12
#define USERS 3
#define CGROUPS 3

/**
 * struct tenant - a task of the torture
 * @task: the task
 * @number: its number
 * @random: state of its random numbers
 * @operations: number of operations that it has yet to do
 * @fd: number of the file that it uses now
 * @file: that file
 * @bad: the task has passed a user address that is not its own
 * @done: completed when the task has done all its operations
 */
struct tenant {
	struct task_struct *task;
	unsigned int number;
	u64 random;
	unsigned int operations;
	unsigned int fd;
	struct file *file;
	bool bad;
	struct completion *done;
};

extern struct tenant tenants[TENANTS + 1];

/* Cgroup 0 is the root. Each other cgroup is a child of the cgroup before. */
extern struct cgroup *torture_cgroup[CGROUPS];

/*
 * If set, all tasks share a few files with few allocations, and free often. So
 * tasks often use the same allocation at the same time.
 */
extern bool torture_close;

/*
 * The memories of the card with the option -d: two of device memory, and one on
 * the chip.
 */
#define TORTURE_MEMORIES 3
#define TORTURE_CARD "hbm*2:48M,tcm:9M:reserved=1M"

/* If set, the card has these memories, and allocations have policies. */
extern bool torture_memories;

u64 draw(struct tenant *t, u64 below);
bool chance(struct tenant *t, unsigned int one_in);
void tenant_step(struct tenant *t);
void tenant_space(struct tenant *t);
void tenant_draw_policy(struct tenant *t, struct flexmem_alloc *cmd);
void tenant_check_chunks(struct tenant *t, const struct flexmem_alloc *cmd);
void tenant_check_bytes(struct tenant *t, const u8 *data, size_t size);
int tenant_gone_by_address(struct tenant *t);
void tenant_answer(struct tenant *t, const char *what, long rc,
		   const int *allowed);
long tenant_call(struct tenant *t, unsigned int cmd, void *arg, size_t size);
u32 tenant_read_note(struct tenant *t);
void tenant_note(struct tenant *t, u32 handle);
void operator_step(struct tenant *t);

#define CALL(t, NAME, cmd) \
	tenant_call(t, FLEXMEM_IOCTL_##NAME, cmd, sizeof(*(cmd)))

/* @errors: which errors the call may answer. */
#define ANSWER(t, what, rc, errors...) \
	tenant_answer(t, what, rc, (const int []) { 0, ##errors, -1 })

/* How often each event happened, for the summary. */
extern atomic64_t torture_results[140];

#endif /* _NATIVE_TORTURE_H */
