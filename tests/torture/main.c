// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the torture and prints the results as TAP.
 *
 * Environment: FLEXMEM_OPS, FLEXMEM_KILLS, FLEXMEM_UNBINDS, FLEXMEM_DEATHS: the
 * least number of operations, killed processes, unbound VFs, and deaths of the
 * firmware; FLEXMEM_SEED; FLEXMEM_KO: folder of the modules.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "torture.h"

static unsigned int tests, failed;

static void result(bool good, const char *what)
{
	printf("%s %u - %s\n", good ? "ok" : "not ok", ++tests, what);
	failed += !good;
}

static void show_counts(uint64_t ms)
{
	unsigned int i;

	printf("# %llu operations in %" PRIu64 ".%03" PRIu64 " s\n",
	       (unsigned long long)atomic_load(&shared->ops), ms / 1000,
	       ms % 1000);
	for (i = 0; i < NR_COUNTS; i++)
		printf("# %s: %" PRIu64 "\n", count_names[i], counted(i));
	printf("# longest wait from SIGKILL to the end: %" PRIu64 " ms\n",
	       events_longest_death());
}

/*
 * Prints the operations and events that never happened, and therefore were not
 * tested.
 */
static void show_missing(void)
{
	unsigned int i;

	for (i = 0; i < NR_OPS; i++)
		if (!atomic_load(&shared->done[i]))
			printf("# never: %s\n", op_names[i]);
	for (i = 0; i < COUNT_KILLS; i++)
		if (!counted(i))
			printf("# never: %s\n", count_names[i]);
}

static void show_owners(const struct accounts *a)
{
	unsigned int i;

	for (i = 0; i < a->head.out_owner_count; i++) {
		const struct flexmem_owner_entry *o = &a->owner[i];

		printf("# %s %llu, uid %u, pid %u: %llu bytes, %llu orphaned, %llu slots, %llu handles\n",
		       o->kind == FLEXMEM_OWNER_CGROUP ? "cgroup" : "client",
		       (unsigned long long)o->id, o->uid, o->pid,
		       (unsigned long long)o->bytes,
		       (unsigned long long)o->orphaned,
		       (unsigned long long)o->slots,
		       (unsigned long long)o->handles);
	}
}

/* Returns what is left on a VF after all tenants have ended, or NULL. */
static const char *left_over(unsigned int vf)
{
	static struct accounts accounts;
	struct flexmem_trim trim = CMD(trim);
	const char *wrong = NULL;
	char path[64], text[64];
	int fd = open_vf(vf);

	if (fd < 0)
		return "no node";
	/* Waits until failed scrubs were repeated. */
	sleep_ms(300);
	if (fm_ioctl(fd, FLEXMEM_IOCTL_TRIM, &trim))
		wrong = "TRIM fails";
	else if (accounts_read(fd, &accounts))
		wrong = "no SNAPSHOT";
	if (!wrong)
		wrong = accounts_wrong(&accounts, true);
	if (!wrong)
		wrong = accounts_not_empty(&accounts);
	if (wrong)
		show_owners(&accounts);
	if (!wrong && (accounts.head.out_total ||
		       accounts.head.out_region_count))
		wrong = "regions are left";
	close(fd);

	snprintf(path, sizeof(path), SIM_KNOBS "vf%u/memory", vf);
	if (!wrong && (get_text(path, text, sizeof(text)) || *text))
		wrong = "the card says that it still has memory";
	snprintf(path, sizeof(path), SIM_KNOBS "vf%u/table", vf);
	if (!wrong && (get_text(path, text, sizeof(text)) || *text))
		wrong = "the card says that its table is not empty";
	return wrong;
}

static void check_end(void)
{
	const char *wrong;
	char what[96];
	unsigned int vf;
	int error;

	for (vf = 0; vf < NR_VFS; vf++) {
		wrong = left_over(vf);
		if (wrong)
			printf("# %s\n", wrong);
		snprintf(what, sizeof(what), "nothing is left on VF %u", vf);
		result(!wrong, what);
	}
	error = module_unload("flexmem_sim");
	if (!error)
		error = module_unload("flexmem");
	if (error)
		printf("# %s\n", strerror(error));
	result(!error, "the modules unload");
}

static void check_run(const struct targets *t, uint64_t ms)
{
	unsigned int i, failures = atomic_load(&shared->failures);
	char what[160];

	show_counts(ms);
	for (i = 0; i < failures && i < MAX_FAILURES; i++)
		printf("# %s\n", shared->failure[i]);
	snprintf(what, sizeof(what),
		 "%d processes of %d users, %d threads each, found nothing wrong",
		 NR_SLOTS, NR_USERS, NR_THREADS);
	result(!failures, what);
	snprintf(what, sizeof(what),
		 "%" PRIu64 " operations, %" PRIu64 " kills, %" PRIu64
		 " removals, %" PRIu64 " firmware deaths", t->ops, t->kills,
		 t->unbinds, t->deaths);
	result(atomic_load(&shared->ops) >= t->ops &&
	       counted(COUNT_KILLS) >= t->kills &&
	       counted(COUNT_UNBINDS) >= t->unbinds &&
	       counted(COUNT_DEATHS) >= t->deaths, what);
	if (!everything_happened())
		show_missing();
	result(everything_happened(), "every call was made and every event came");
}

static uint64_t at_least(uint64_t least, uint64_t number)
{
	return number < least ? least : number;
}

int main(void)
{
	uint64_t seed = env_number("FLEXMEM_SEED", time(NULL) * 1000003ULL +
						   getpid());
	struct targets targets = { .ops = env_number("FLEXMEM_OPS", 200000) };
	pthread_t watcher;
	uint64_t begin;

	setvbuf(stdout, NULL, _IOLBF, 0);
	targets.kills = env_number("FLEXMEM_KILLS",
				   at_least(2, targets.ops / 1000));
	targets.unbinds = env_number("FLEXMEM_UNBINDS",
				     at_least(2, targets.ops / 2500));
	targets.deaths = env_number("FLEXMEM_DEATHS",
				    at_least(2, targets.ops / 2500));
	printf("TAP version 13\n# seed %" PRIu64
	       ": repeat with FLEXMEM_SEED=%" PRIu64 "\n", seed, seed);
	shared_init(seed);
	if (!events_load(seed)) {
		printf("Bail out! %s\n", shared->failure[0]);
		return 1;
	}
	begin = now_ms();
	if (pthread_create(&watcher, NULL, watch, NULL))
		fail("no thread");
	events_run(&targets);
	pthread_join(watcher, NULL);
	events_quiet();
	check_run(&targets, now_ms() - begin);
	check_end();
	printf("1..%u\n", tests);
	return failed ? 1 : 0;
}
