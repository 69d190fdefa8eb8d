/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fault sweep runs each sequence of calls many times. In the n-th run, the
 * n-th operation that can fail is made to fail.
 */
#ifndef _NATIVE_FAULTS_H
#define _NATIVE_FAULTS_H

#include "world.h"

#define RUN_FILES 3
#define RUN_HANDLES 40

/**
 * struct run - one run of a sequence
 * @file: open files of the run
 * @handle: handles that each file must have now, according to the answers so
 *	far
 * @nr: number of handles of each file
 * @vma: a mapping, or NULL
 * @wrong: text about the first violation, or NULL
 * @at: the call in which the violation happened
 * @rc: the result of that call
 */
struct run {
	struct file *file[RUN_FILES];
	u32 handle[RUN_FILES][RUN_HANDLES];
	unsigned int nr[RUN_FILES];
	struct vm_area_struct *vma;
	const char *wrong;
	const char *at;
	long rc;
};

/**
 * struct sequence - calls that are made with faults
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
/* The same for the policies, on the card that DOMAINS_TEXT describes. */
extern const struct sequence policy_sequences[];
extern struct cgroup *tenants;
/*
 * A sequence for the sweep of points: another task opens a file in the cgroup
 * of the sequence.
 */
extern const struct sequence open_below;
/* Tests of the ABI and of the card, without injected faults. */
extern const struct sequence corners[];
extern const struct sequence bare_corners[];
/* Tests of owners and of reservations. */
extern const struct sequence tenant_corners[];
extern const struct sequence card_corners[];
/* Tests of device programs that take too long. */
extern const struct sequence job_corners[];
/* Tests of programs that are loaded into device memory. */
extern const struct sequence program_corners[];
/* Tests of replies and events when an ALLOC fails. */
extern const struct sequence account_corners[];
/* Tests of what limits let an open file have. */
extern const struct sequence limit_corners[];
/* Tests of the background scrub. */
extern const struct sequence scrub_corners[];
/* Tests of the removal of a function whose programs run. */
extern const struct sequence removal_corners[];
extern const struct sequence sleep_corners[];
/*
 * Tests of a card whose memories DOMAINS_TEXT describes, with the parameters
 * DOMAINS_PARAMS.
 */
extern const struct sequence domain_corners[];
extern const struct sequence space_corners[];

#define DOMAINS_PARAMS "order=fill_first fallback_sizes=8M max_regions=6"
#define DOMAINS_TEXT "hbm*2:18M:reserved=2M,tcm:1M:reserved=128K,host:4M"

unsigned int params_wrong(void);
unsigned int sim_domains_wrong(void);
unsigned int rest_wrong(void);
unsigned int search_wrong(void);
void run_end(struct run *r);
void run_wrong(struct run *r, const char *wrong, const char *at, long rc);
bool run_good(struct run *r, const char *at, long rc, int expected);
long run_call(struct run *r, unsigned int f, const char *at, unsigned int cmd,
	      void *arg);

static inline void must(struct run *r, bool right, const char *what)
{
	if (!right)
		run_wrong(r, "not what it must be", what, 0);
}

/* Actions of another task at a chosen point of a sequence: see points.c. */
enum interference {
	NO_INTERFERENCE,
	KILL,
	DEATH,
	RESET,
	UNBIND,
	OPENING,
	NR_INTERFERENCES,
};

unsigned int points_sweep(const struct sequence *s, enum interference kind,
			  unsigned int stride, unsigned int *count);
void points_total(void);
bool points_explain(long rc);
bool points_take_away(void);

#endif /* _NATIVE_FAULTS_H */
