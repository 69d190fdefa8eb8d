// SPDX-License-Identifier: GPL-2.0
/*
 * Runs each sequence once for each of the points at which tasks take turns. At
 * that point another task kills the caller, unbinds or resets the device, stops
 * the firmware, or opens a file in the caller's cgroup. Tasks run in scheduled
 * mode, and the number of the point is the seed, so a run can
 * be repeated.
 *
 * Within a timeout and a second after each run, no command may be pending, all
 * accounts must add up, and no slot may name memory that the PF or VF does not
 * have.
 */
#include "shim/internal.h"

#include "faults.h"

#define PRIORITY_CHANGES 3
#define POINTS_ABOUT 500

/*
 * The errors that each action may cause. -EFAULT also stands for a SIGBUS in an
 * access to mapped memory. After a reset a lost allocation cannot be found by
 * its address. If the reset acquires all regions at once,
 * RESERVE finds no free slot (-ENOSPC).
 */
static const struct {
	const char *name;
	int errors[5];
} kinds[NR_INTERFERENCES] = {
	[KILL] = { "kills", { -EINTR, -ECANCELED, -EFAULT } },
	[DEATH] = { "deaths of the firmware", { -ETIMEDOUT, -EIO } },
	[RESET] = { "resets", { -EIO, -ENOENT, -EINVAL, -EFAULT, -ENOSPC } },
	[UNBIND] = { "unbinds", { -ENODEV, -ENXIO, -ENOENT, -EINVAL, -EFAULT } },
	[OPENING] = { "opens" },
};

/**
 * struct interferer - the task that interferes
 * @kind: its action
 * @caller: the task that runs the sequence
 * @run: the run of the sequence
 * @done: the action is done
 */
struct interferer {
	enum interference kind;
	struct task_struct *caller;
	struct run *run;
	struct completion done;
};

static unsigned long nr_done[NR_INTERFERENCES];

/* The action of the interfering task in the current run. */
static enum interference now;

/* Whether the action of the interfering task can cause the result @rc. */
bool points_explain(long rc)
{
	unsigned int i;

	/*
	 * If the action of the interfering task has freed memory, a call that
	 * is expected to fail may succeed.
	 */
	if (!rc)
		return points_take_away();
	for (i = 0; i < ARRAY_SIZE(kinds[now].errors); i++)
		if (rc == kinds[now].errors[i])
			return true;
	return false;
}

/* Whether the action takes away memory that has owners. */
bool points_take_away(void)
{
	return now == RESET || now == UNBIND;
}

/* Opens a file in the cgroup of the sequence. run_end() closes the file. */
static void open_beside(struct run *r)
{
	struct file *file;

	if (!tenants)
		return;
	native_cgroup_move(tenants);
	file = native_open(world_minor(1), O_RDWR | O_NONBLOCK);
	if (!IS_ERR(file))
		r->file[1] = file;
}

static int interfere(void *data)
{
	struct interferer *who = data;

	switch (who->kind) {
	case KILL:
		send_sig(SIGKILL, who->caller, 1);
		break;
	case DEATH:
		sim_mailbox_set_dead(&world.card.mbox, true);
		break;
	case RESET:
		world_reset(1);
		break;
	case OPENING:
		open_beside(who->run);
		break;
	default:
		world_unbind(1);
		break;
	}
	complete(&who->done);
	return 0;
}

/*
 * Returns an error text if the outcome of a command is still unknown, else
 * NULL.
 */
static const char *unsettled(void)
{
	struct flexmem_dev *fdev = world_function(1)->fdev;
	const char *wrong = NULL;

	/* Lets pending work end before time advances. */
	native_quiesce();
	native_time_advance(20 * HZ);
	native_quiesce();
	if (!fdev)
		return NULL;
	mutex_lock(&fdev->table.acquire_lock);
	if (!flexmem_function_error(&fdev->table.function) &&
	    !flexmem_function_is_settled(&fdev->table.function))
		wrong = "something is not known";
	mutex_unlock(&fdev->table.acquire_lock);
	return wrong;
}

/*
 * Runs a sequence once, with an action at the n-th point. Returns false if the
 * run has fewer points.
 */
static bool run_point(const struct sequence *s, enum interference kind,
		      unsigned long n, struct run *r)
{
	struct interferer who = { .kind = kind, .caller = current, .run = r };
	struct task_struct *task;
	const char *wrong;
	bool came;

	*r = (struct run) {};
	current->failed = 0;
	init_completion(&who.done);
	if (s->prepare)
		s->prepare(r);
	task = native_kthread_create(interfere, &who, "interferer");
	native_start_schedule(n, PRIORITY_CHANGES, POINTS_ABOUT);
	now = kind;
	native_come_at(n, task);
	if (!r->wrong)
		s->run(r);
	came = native_came();
	if (!came)
		native_kthread_start(task);
	wait_for_completion(&who.done);
	native_revive();
	world_heal();
	wrong = unsettled();
	if (wrong)
		run_wrong(r, wrong, "a second later", 0);
	run_end(r);
	now = NO_INTERFERENCE;
	return came;
}

/**
 * points_sweep - run a sequence with an action at its points
 * @s: sequence
 * @kind: the action
 * @stride: distance between the points that are tried
 * @count: number of the test
 *
 * Return: 1 if a check failed, else 0.
 */
unsigned int points_sweep(const struct sequence *s, enum interference kind,
			  unsigned int stride, unsigned int *count)
{
	unsigned long n = 1 + *count % stride, times = 0;
	struct run r;

	while (run_point(s, kind, n, &r) && !r.wrong) {
		times++;
		n += stride;
	}
	nr_done[kind] += times;
	if (r.wrong)
		printf("# point %lu: %s: %s (%ld)\n", n, r.at, r.wrong, r.rc);
	printf("%s %u - %s, %lu %s\n", r.wrong ? "not ok" : "ok", ++*count,
	       s->name, times, kinds[kind].name);
	fflush(stdout);
	return !!r.wrong;
}

void points_total(void)
{
	unsigned int kind;

	for (kind = KILL; kind < NR_INTERFERENCES; kind++)
		printf("# %lu %s\n", nr_done[kind], kinds[kind].name);
}
