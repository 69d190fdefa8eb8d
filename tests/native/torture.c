// SPDX-License-Identifier: GPL-2.0
/*
 * Torture: tasks of several users make all calls at once to the PF and the VFs
 * of one card. An operator kills the tasks, resets and unbinds the PF and the
 * VFs, and lets the firmware fail. The test runs in rounds. After each round no
 * task is in a call, and all accounts must add up.
 *
 * Tasks run freely as threads. With -S or -P they are scheduled: one task at a
 * time, in an order that the seed decides, so that the same seed repeats the
 * run. With -c the tasks share a few files. With -d the card has several
 * memories, and allocations have policies.
 * usage: torture [-cd] [-s SEED] [-n OPERATIONS] [-r OPERATIONS-A-ROUND]
 *		[-S | -P CHANGES-OF-PRIORITY-A-ROUND] [PARAMETERS]
 */
#include "shim/internal.h"

#include <unistd.h>

#include "torture.h"

struct tenant tenants[TENANTS + 1];
atomic64_t torture_results[140];
bool torture_memories;

/* A random number below @below: splitmix64, with a state for each tenant. */
u64 draw(struct tenant *t, u64 below)
{
	u64 z = t->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % below;
}

bool chance(struct tenant *t, unsigned int one_in)
{
	return !draw(t, one_in);
}

static void let_fail(struct tenant *t)
{
	if (chance(t, 8))
		sim_mailbox_set_dead(&world.card.mbox, true);
	else if (chance(t, 8))
		WRITE_ONCE(world.card.mbox.latency_us, draw(t, 20000));
	else
		world_faults(draw(t, SIM_NR_FAULTS), 1 + draw(t, 3));
}

/**
 * operator_step - one action of the operator
 * @t: the operator, run by the current task
 */
void operator_step(struct tenant *t)
{
	unsigned int index = draw(t, WORLD_FUNCTIONS);

	native_time_advance(1 + draw(t, chance(t, 20) ? 20 * HZ : HZ / 10));
	switch (draw(t, 40)) {
	case 0 ... 9:
		send_sig(SIGKILL, tenants[1 + draw(t, TENANTS)].task, 1);
		break;
	case 10:
		world_reset(index);
		break;
	case 11:
		world_unbind(index);
		break;
	case 12:
		world_suspend(index);
		break;
	case 13:
		world_set_capacity(index, draw(t, 33) * SZ_2M);
		break;
	case 14 ... 15:
		let_fail(t);
		break;
	case 16:
		world_fail(index);
		break;
	case 17 ... 20:
		world_heal();
		world_bind(index);
		break;
	default:
		break;
	}
}

/*
 * The operator acts once each time the tenants have done this many operations.
 */
#define PACE 20

static wait_queue_head_t pace = { .head = LIST_HEAD_INIT(pace.head) };
static atomic64_t steps_done;

struct cgroup *torture_cgroup[CGROUPS];

static int run_tenant(void *data)
{
	struct tenant *t = data;

	current->cred.uid = KUIDT_INIT(1000 + t->number % USERS);
	current->cred.admin = torture_close || t->number % 4 == 0;
	native_cgroup_move(torture_cgroup[t->number / USERS % CGROUPS]);
	while (t->operations--) {
		tenant_step(t);
		if (atomic64_inc_return(&steps_done) % PACE == 0)
			wake_up(&pace);
	}
	complete(t->done);
	return 0;
}

/* The operator acts as long as tenants run. */
static int run_operator(void *data)
{
	s64 next = atomic64_read(&steps_done);
	struct tenant *t = data;

	while (!kthread_should_stop()) {
		operator_step(t);
		next += PACE;
		/* If all tasks sleep, time advances, and the wait ends. */
		wait_event_timeout(pace, kthread_should_stop() ||
				   atomic64_read(&steps_done) >= next, 1);
	}
	return 0;
}

/* How tasks take turns: freely; at random; or by priorities that change. */
static bool scheduled;
static unsigned int changes;

static unsigned long all_points;

static void start_schedule(u64 seed)
{
	static unsigned long points = 10000;

	if (!scheduled)
		return;
	points = native_schedule_steps() ?: points;
	all_points += native_schedule_steps();
	native_start_schedule(seed, changes, points);
}

static void run_round(unsigned int operations, u64 seed)
{
	struct task_struct *operator;
	struct completion done;
	unsigned int i;

	init_completion(&done);
	for (i = 1; i <= TENANTS; i++) {
		tenants[i].number = i;
		tenants[i].operations = operations / TENANTS + 1;
		tenants[i].done = &done;
	}
	start_schedule(seed);
	/*
	 * All tasks must exist before the first one starts, and until the last
	 * one ends.
	 */
	for (i = 1; i <= TENANTS; i++)
		tenants[i].task = native_kthread_create(run_tenant, &tenants[i],
							"tenant");
	for (i = 1; i <= TENANTS; i++)
		get_task_struct(tenants[i].task);
	for (i = 1; i <= TENANTS; i++)
		native_kthread_start(tenants[i].task);
	operator = kthread_run(run_operator, &tenants[0], "operator");
	for (i = 1; i <= TENANTS; i++)
		wait_for_completion(&done);
	kthread_stop(operator);
	for (i = 1; i <= TENANTS; i++)
		put_task_struct(tenants[i].task);
}

static unsigned int count_notes(const struct file *file)
{
	unsigned int i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(file->note); i++)
		nr += file->note[i] != 0;
	return nr;
}

/* Counts the allocations of an account that are freed but still in use. */
static unsigned int count_orphans(struct flexmem_table *table,
				  const struct flexmem_account *account)
{
	struct flexmem_region *region;
	const struct flexmem_block *block;
	unsigned int slot, nr = 0;

	mutex_lock(&table->acquire_lock);
	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++) {
		region = flexmem_region_at(table, slot);
		if (!region)
			continue;
		spin_lock(&region->lock);
		list_for_each_entry(block, &region->blocks.all, link)
			nr += block->use == FLEXMEM_USE_ORPHANED &&
			      block->account == account &&
			      block->allocation->chunks[0] == block;
		spin_unlock(&region->lock);
	}
	mutex_unlock(&table->acquire_lock);
	return nr;
}

/* The handles that an account is charged for, once the worker has nothing to do. */
static u64 settled_handles(struct flexmem_account *account)
{
	u64 handles;

	native_settle_work();
	spin_lock(&account->accounts->lock);
	handles = account->used[FLEXMEM_RESOURCE_HANDLES];
	spin_unlock(&account->accounts->lock);
	return handles;
}

/*
 * Checks that a file is charged for as many handles as the torture has noted, and
 * for those of freed allocations that are still in use. Skips a file whose PF or
 * VF was removed or reset, and a file that has lost a reply.
 */
static void check_notes(unsigned int fd, const struct file *file,
			const struct flexmem_file *private)
{
	struct flexmem_account *account = private->client.account;
	unsigned int notes = count_notes(file), orphans;
	u64 handles;

	if (flexmem_function_is_gone(&private->fdev->table.function) || private->fdev->table.resets)
		return;
	/* A job may end meanwhile. Then the worker ends what was freed, and the count is of no moment. */
	do {
		handles = settled_handles(account);
		orphans = count_orphans(&private->fdev->table, account);
	} while (settled_handles(account) != handles);
	WARN(handles != notes + orphans, "file %u: %llu handles, %u are known",
	     fd, handles, notes + orphans);
}

/* Between two rounds: checks every invariant and every noted handle. */
static void check_all(void)
{
	struct flexmem_file *private;
	const char *wrong;
	struct file *file;
	unsigned int i;

	world_heal();
	/* The worker ends the commands of killed callers. */
	if (torture_memories)
		native_settle_work();
	for (i = 0; i < WORLD_FUNCTIONS; i++) {
		wrong = world_wrong(i);
		WARN(wrong, "function %u: %s", i, wrong);
	}
	for (i = 0; i < FILES; i++) {
		file = native_fdget(i);
		if (!file)
			continue;
		wrong = world_file_wrong(file);
		WARN(wrong, "file %u: %s", i, wrong);
		wrong = torture_memories ? world_charges_wrong(file) : NULL;
		WARN(wrong, "file %u: %s", i, wrong);
		private = file->private_data;
		check_notes(i, file, private);
		native_close(file);
	}
}

static void show_results(unsigned long done)
{
	unsigned int error;

	printf("# %lu operations; answers:", done);
	for (error = 0; error < ARRAY_SIZE(torture_results); error++)
		if (atomic64_read(&torture_results[error]))
			printf(" %u: %lld", error,
			       atomic64_read(&torture_results[error]));
	printf("\n");
	if (scheduled)
		printf("# %lu points\n", all_points + native_schedule_steps());
}

int main(int argc, char **argv)
{
	unsigned long operations = 20000, a_round = 0, done;
	const char *params = "fallback_sizes=16M,8M,4M max_regions=6";
	struct file *file;
	unsigned int i;
	u64 seed = 1;
	int option;

	while ((option = getopt(argc, argv, "s:n:r:cdSP:")) != -1) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			operations = strtoul(optarg, NULL, 0);
		else if (option == 'r')
			a_round = strtoul(optarg, NULL, 0);
		else if (option == 'c')
			torture_close = true;
		else if (option == 'd')
			torture_memories = true;
		else if (option == 'S' || option == 'P')
			scheduled = true;
		else
			return 2;
		if (option == 'P')
			changes = strtoul(optarg, NULL, 0);
	}
	/*
	 * In scheduled mode a round is short, so that more schedules are tried.
	 */
	a_round = a_round ?: scheduled ? 400 : 2000;
	if (optind < argc)
		params = argv[optind];
	printf("# seed %llu, %s%s\n", seed, params,
	       torture_memories ? " domains=" TORTURE_CARD : "");
	if (scheduled)
		os_one_processor();
	native_shim_init();
	start_schedule(seed);
	if (torture_memories)
		world_begin_domains(params, TORTURE_CARD);
	else
		world_begin(params, 128ull * SZ_1M);
	torture_cgroup[0] = native_cgroup_root;
	for (i = 1; i < CGROUPS; i++)
		torture_cgroup[i] = native_cgroup_make(torture_cgroup[i - 1]);
	for (i = 0; i <= TENANTS; i++)
		tenants[i].random = seed * 1000 + i;
	for (done = 0; done < operations; done += a_round) {
		run_round(a_round, seed + done);
		check_all();
	}
	for (i = 0; i < FILES; i++) {
		file = native_uninstall(i);
		if (file)
			native_close(file);
	}
	for (i = CGROUPS - 1; i; i--)
		native_cgroup_remove(torture_cgroup[i]);
	world_end();
	show_results(done);
	printf("ok 1 - torture: seed %llu, %s\n1..1\n", seed, params);
	return 0;
}
