// SPDX-License-Identifier: GPL-2.0
/*
 * The controller kills tenants, changes their limits, breaks the firmware, and
 * resets and removes VFs.
 *
 * Events come after a number of operations, so that their number does not
 * depend on the speed of the machine.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

/* if no operation ends for this long, something hangs */
#define STALL_MS 600000
#define SLOW_MS 300000		/* time limit for what must end by itself */
/* an event that has not happened after this many operations never will */
#define ENDLESS_OPS 1000000
/* time limit for the firmware to carry out a command */
#define LATE_MS 60000

static struct rng rng;
static pid_t pids[NR_SLOTS];
static unsigned int incarnations[NR_SLOTS];
static uint64_t longest_death;
static char sim_params[128];

/* ---- VFs are removed and added ---- */

/*
 * Waits for the node of a VF. If the firmware made the bind fail, binds the VF
 * again.
 */
static bool node_appears(unsigned int vf)
{
	uint64_t until = now_ms() + SLOW_MS;
	int fd, node;

	while ((fd = open_vf(vf)) < 0) {
		if (now_ms() > until) {
			fail("no node for VF %u: %s", vf, strerror(errno));
			return false;
		}
		sleep_ms(5);
		if (vf_node(vf) < 0)
			put_text(SIM_DRIVER "bind", "flexmem_sim_vf.%u", vf);
	}
	node = vf_node(vf);
	close(fd);
	atomic_store(&shared->node[vf], node);
	return true;
}

static void must_put(const char *path, const char *text)
{
	uint64_t begin = now_ms();
	int error = put_text(path, "%s", text);

	if (error)
		fail("'%s' into %s: %s", text, path, strerror(error));
	if (now_ms() - begin > SLOW_MS)
		fail("'%s' into %s took %llu ms", text, path,
		     (unsigned long long)(now_ms() - begin));
}

/*
 * Checks that the card keeps nothing of a removed VF. On a busy machine the
 * firmware may handle the reset late, but it does nothing else for the VF
 * before the reset.
 */
static void card_has_nothing(unsigned int vf)
{
	uint64_t until = now_ms() + LATE_MS;
	char path[128], text[1024];

	snprintf(path, sizeof(path), SIM_KNOBS "vf%u/memory", vf);
	for (;;) {
		if (get_text(path, text, sizeof(text))) {
			fail("%s cannot be read", path);
			return;
		}
		if (!*text)
			return;
		if (now_ms() > until)
			break;
		sleep_ms(10);
	}
	fail("VF %u is unbound and has memory: %.80s", vf, text);
}

static void unbind(unsigned int vf)
{
	char name[32];

	snprintf(name, sizeof(name), "flexmem_sim_vf.%u", vf);
	must_put(SIM_DRIVER "unbind", name);
	card_has_nothing(vf);
	usleep(rng_below(&rng, 20000));
}

static void reload(void)
{
	int error = module_unload("flexmem_sim");

	if (error)
		fail("flexmem_sim does not unload: %s", strerror(error));
	usleep(rng_below(&rng, 20000));
	if (!error)
		error = module_load("flexmem_sim", sim_params);
	if (error)
		fail("flexmem_sim does not load again: %s", strerror(error));
}

static void event_unbind(void)
{
	unsigned int vf = rng_below(&rng, NR_VFS), i;
	unsigned int how = rng_below(&rng, 8);

	/* Reduces the number of VFs, which removes the second VF. */
	if (how == 1)
		vf = 1;
	for (i = 0; i < NR_VFS; i++)
		if (!how || i == vf)
			atomic_store(&shared->node[i], -1);
	atomic_fetch_add(&shared->begun, 1);
	switch (how) {
	case 0:
		reload();
		break;
	case 1:
		must_put(SIM_PARAMS "num_vfs", "1");
		usleep(rng_below(&rng, 20000));
		must_put(SIM_PARAMS "num_vfs", "2");
		break;
	default:
		unbind(vf);
	}
	for (i = 0; i < NR_VFS; i++)
		if (atomic_load(&shared->node[i]) < 0)
			node_appears(i);
	atomic_fetch_add(&shared->ended, 1);
	count(COUNT_UNBINDS, 1);
}

/* The firmware dies while requests are under way. Then the VF is reset. */
static void event_death(void)
{
	unsigned int vf = rng_below(&rng, NR_VFS);
	bool reset_dead = rng_one_in(&rng, 4);
	char knob[32];
	int error;

	snprintf(knob, sizeof(knob), "vf%u/reset", vf);
	atomic_fetch_add(&shared->begun, 1);
	put_knob("dead", 1);
	usleep(rng_below(&rng, 30000));
	/* The reset may fail as long as the firmware does not answer. */
	if (reset_dead)
		put_knob(knob, 1);
	put_knob("dead", 0);
	error = put_knob(knob, 1);
	if (error)
		fail("reset: %s", strerror(error));
	atomic_fetch_add(&shared->ended, 1);
	count(COUNT_DEATHS, 1);
}

/* ---- smaller disturbances ---- */

static void event_fault(void)
{
	static const char * const faults[] = {
		"fail_commands", "drop_requests", "drop_replies",
		"duplicate_replies", "stale_replies",
	};
	static const char * const commands[] = {
		"any", "any", "acquire", "release", "slot_set", "slot_clear",
		"capacity", "cancel",
	};

	put_text(SIM_KNOBS "fault_command", "%s",
		 commands[rng_below(&rng, ARRAY_SIZE(commands))]);
	put_knob(faults[rng_below(&rng, ARRAY_SIZE(faults))],
		 rng_below(&rng, 3));
	put_knob("latency_us", rng_one_in(&rng, 4) ? rng_below(&rng, 300) : 0);
	count(COUNT_FAULTS, 1);
}

static uint64_t random_limit(unsigned int resource)
{
	if (rng_one_in(&rng, 3))
		return FLEXMEM_NO_LIMIT;
	switch (resource) {
	case FLEXMEM_RESOURCE_BYTES:
		return rng_below(&rng, 24) * MiB;
	case FLEXMEM_RESOURCE_REGIONS:
		return rng_below(&rng, 6);
	default:
		return rng_below(&rng, 200);
	}
}

/*
 * Sets a limit of a user's cgroup, or of a cgroup that has or had an account.
 */
static void event_limit(int fd)
{
	static struct accounts accounts;
	struct flexmem_resource_limit limit = CMD(resource_limit,
		.resource = rng_below(&rng, FLEXMEM_RESOURCE_FILES),
		.cgroup = user_cgroup(rng_below(&rng, NR_USERS)));
	unsigned int i;
	int error;

	if (rng_one_in(&rng, 3) && !accounts_read(fd, &accounts) &&
	    accounts.head.out_owner_count) {
		i = rng_below(&rng, accounts.head.out_owner_count);
		if (accounts.owner[i].kind == FLEXMEM_OWNER_CGROUP)
			limit.cgroup = accounts.owner[i].id;
	}
	limit.limit = random_limit(limit.resource);
	error = fm_ioctl(fd, FLEXMEM_IOCTL_SET_LIMIT, &limit);
	if (error && error != ENOENT && error != ENODEV)
		fail("SET_LIMIT: %s", strerror(error));
	if (!error)
		count(COUNT_LIMITS, 1);
}

static void event_trim(int fd)
{
	struct flexmem_trim trim = CMD(trim);
	int error = fm_ioctl(fd, FLEXMEM_IOCTL_TRIM, &trim);

	if (error && error != EBUSY && error != EIO && error != ETIMEDOUT &&
	    error != ENODEV)
		fail("TRIM: %s", strerror(error));
	if (!error)
		count(COUNT_TRIMS, 1);
}

static void with_device(void (*event)(int fd))
{
	int fd = open_node(atomic_load(&shared->node[rng_below(&rng, NR_VFS)]));

	if (fd < 0) {
		fail("the controller cannot open a node: %s", strerror(errno));
		return;
	}
	event(fd);
	close(fd);
}

/* ---- processes ---- */

static void start(unsigned int slot)
{
	pid_t pid = fork();

	if (pid < 0) {
		fail("fork: %s", strerror(errno));
		return;
	}
	if (!pid)
		worker_run(slot, incarnations[slot]);
	pids[slot] = pid;
	incarnations[slot]++;
}

/*
 * Handles the end of a process. Ignores a process that the test has not
 * started.
 */
static void ended(pid_t pid, int status, bool restart)
{
	unsigned int i;

	for (i = 0; i < NR_SLOTS && pids[i] != pid; i++)
		;
	if (i == NR_SLOTS)
		return;
	pids[i] = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		fail("a process ended with signal %d", WTERMSIG(status));
	if (restart && !atomic_load(&shared->stop))
		start(i);
}

static void reap(bool restart)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		ended(pid, status, restart);
}

static bool wait_dead(pid_t pid, int *status)
{
	uint64_t begin = now_ms();

	while (waitpid(pid, status, WNOHANG) != pid) {
		if (now_ms() - begin > SLOW_MS) {
			put_text("/proc/sysrq-trigger", "w");
			fail("a killed process is still there");
			return false;
		}
		usleep(500);
	}
	if (now_ms() - begin > longest_death)
		longest_death = now_ms() - begin;
	return true;
}

static void event_kill(void)
{
	unsigned int slot = rng_below(&rng, NR_SLOTS);
	int status;

	if (!pids[slot])
		return;
	kill(pids[slot], SIGKILL);
	if (!wait_dead(pids[slot], &status))
		return;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		count(COUNT_KILLS, 1);
	ended(pids[slot], status, true);
}

/* Asks all processes to end, and kills those that do not. */
static void stop_all(void)
{
	uint64_t until = now_ms() + SLOW_MS;
	unsigned int i;
	int status;

	atomic_store(&shared->stop, true);
	for (i = 0; i < NR_SLOTS; i++) {
		while (pids[i] && now_ms() < until) {
			reap(false);
			sleep_ms(5);
		}
		if (!pids[i])
			continue;
		fail("a process does not end when it is asked to");
		kill(pids[i], SIGKILL);
		wait_dead(pids[i], &status);
	}
	/* The children of killed processes are children of this process now. */
	while (waitpid(-1, &status, 0) > 0)
		;
}

/* ---- the controller ---- */

bool events_load(uint64_t seed)
{
	static const char * const fit[] = { "first_fit", "best_fit" };
	static const char * const order[] = { "load_balance", "fill_first" };
	char params[160];
	unsigned int vf;
	int error;

	rng.state = rng_mix(seed, 0xeeee);
	snprintf(params, sizeof(params),
		 "strategy=%s order=%s program_slots=%u max_regions=7 fallback_sizes=32M,16M,8M",
		 fit[rng_below(&rng, 2)], order[rng_below(&rng, 2)],
		 rng_below(&rng, 2));
	snprintf(sim_params, sizeof(sim_params),
		 "num_vfs=%u memory=256M vf_capacity=96M slots=8 timeout_ms=60",
		 NR_VFS);
	printf("# flexmem %s\n# flexmem_sim %s\n", params, sim_params);
	error = module_load("flexmem", params);
	if (!error)
		error = module_load("flexmem_sim", sim_params);
	if (error) {
		fail("the modules do not load: %s", strerror(error));
		return false;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (vf = 0; vf < NR_VFS; vf++)
		if (!node_appears(vf))
			return false;
	return true;
}

/*
 * Whether the next of @target events is due. Events are spread evenly over all
 * operations, including the additional operations that run because an event has
 * not happened yet.
 */
static bool due(uint64_t done, uint64_t target, const struct targets *t,
		uint64_t ops)
{
	return target && ops >= t->ops * (done + 1) / (target + 1);
}

static bool enough(const struct targets *t, uint64_t ops)
{
	return ops >= t->ops && counted(COUNT_KILLS) >= t->kills &&
	       counted(COUNT_UNBINDS) >= t->unbinds &&
	       counted(COUNT_DEATHS) >= t->deaths &&
	       (everything_happened() || ops >= ENDLESS_OPS);
}

static void step(const struct targets *t, uint64_t ops)
{
	uint64_t small = t->ops / 500 + 1;

	if (due(counted(COUNT_KILLS), t->kills, t, ops))
		event_kill();
	if (due(counted(COUNT_UNBINDS), t->unbinds, t, ops))
		event_unbind();
	if (due(counted(COUNT_DEATHS), t->deaths, t, ops))
		event_death();
	if (due(counted(COUNT_FAULTS), small, t, ops)) {
		event_fault();
		with_device(event_limit);
		with_device(event_trim);
	}
}

void events_run(const struct targets *t)
{
	uint64_t ops, last = 0, moved = now_ms();
	unsigned int slot;

	for (slot = 0; slot < NR_SLOTS; slot++)
		start(slot);
	while (!atomic_load(&shared->stop)) {
		ops = atomic_load(&shared->ops);
		if (enough(t, ops))
			break;
		if (ops != last) {
			last = ops;
			moved = now_ms();
		} else if (now_ms() - moved > STALL_MS) {
			put_text("/proc/sysrq-trigger", "w");
			fail("no operation for %d s", STALL_MS / 1000);
		}
		step(t, ops);
		reap(true);
		usleep(500);
	}
	stop_all();
	pass_drain();
}

/*
 * Ends all faults and limits, and sets a long timeout. From then on all calls
 * must succeed.
 */
void events_quiet(void)
{
	static const char * const knobs[] = {
		"dead", "fail_commands", "drop_requests", "drop_replies",
		"duplicate_replies", "stale_replies", "latency_us",
	};
	struct flexmem_resource_limit limit;
	unsigned int i, vf, user, resource;
	int fd;

	put_knob("timeout_ms", CALM_MS);
	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		put_knob(knobs[i], 0);
	for (vf = 0; vf < NR_VFS; vf++) {
		fd = open_node(atomic_load(&shared->node[vf]));
		/* The last user is root, whose files have owner entries too. */
		for (user = 0; fd >= 0 && user <= NR_USERS; user++) {
			for (resource = 0; resource < FLEXMEM_RESOURCE_FILES;
			     resource++) {
				limit = CMD(resource_limit,
					    .resource = resource,
					    .cgroup = user < NR_USERS ?
						  user_cgroup(user) :
						  cgroup_number(""),
					    .limit = FLEXMEM_NO_LIMIT);
				if (fm_ioctl(fd, FLEXMEM_IOCTL_SET_LIMIT,
					     &limit))
					fail("SET_LIMIT, back to nothing: %s",
					     strerror(errno));
			}
		}
		if (fd >= 0)
			close(fd);
	}
}

uint64_t events_longest_death(void)
{
	return longest_death;
}
