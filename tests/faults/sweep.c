// SPDX-License-Identifier: GPL-2.0
/*
 * Runs each sequence of calls again and again: the first run fails at its first
 * operation that can fail, the second run at its second, and so on, until a run
 * has no fault. Checks the device after each run. Prints TAP.
 *
 * /proc/thread-self/fail-nth counts all operations of this thread that can
 * fail: slab and page allocations, user copies, and its own commands to the
 * simulator. Most commands are sent by the driver's worker; the knob
 * fail_mailbox counts the commands of all threads. The file and the knob show
 * afterwards whether the fault was reached.
 *
 * Environment: FLEXMEM_LONG: also with other settings of the driver, and with
 * larger copies;
 * FLEXMEM_SEQUENCE: only the sequence of that name; FLEXMEM_KO: folder of the
 * modules.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults.h"

#define MOST_POINTS 3000
#define FAIL_MAILBOX "/sys/kernel/debug/flexmem_sim/fail_mailbox"

static int fail_nth_fd;
static int watch_fd = -1;	/* reads the accounts; has no allocation */
static unsigned int tests, failed;

static void bail(const char *what, int error)
{
	printf("Bail out! %s: %s\n", what, strerror(error));
	exit(1);
}

static void result(bool good, const char *format, const char *name)
{
	printf("%s %u - ", good ? "ok" : "not ok", ++tests);
	printf(format, name);
	printf("\n");
	failed += !good;
}

/* ---- the injected fault ---- */

static void nth_of_thread(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(fail_nth_fd, text, len, 0) != len)
		bail("fail-nth", errno);
}

/* Ends the injection. Returns whether the fault was reached. */
static bool thread_failed(void)
{
	char text[16] = "";
	ssize_t n = pread(fail_nth_fd, text, sizeof(text) - 1, 0);
	bool came = n > 0 && atoi(text) == 0;

	/*
	 * A read or write of fail-nth copies to or from user space, so the
	 * fault can hit it too.
	 */
	while (pwrite(fail_nth_fd, "0", 1, 0) != 1)
		if (errno != EFAULT && errno != ENOMEM)
			bail("fail-nth", errno);
	return came;
}

static void mailbox_knob(const char *knob, unsigned int value)
{
	char path[96];
	int error;

	snprintf(path, sizeof(path), "%s/%s", FAIL_MAILBOX, knob);
	error = put_text(path, "%u", value);
	if (error)
		bail(path, error);
}

static void nth_command(unsigned int n)
{
	mailbox_knob("times", 1);
	mailbox_knob("space", n);
	mailbox_knob("probability", 100);
}

static bool command_failed(void)
{
	char text[16];
	int error = get_text(FAIL_MAILBOX "/times", text, sizeof(text));

	if (error)
		bail("fail_mailbox/times", error);
	mailbox_knob("probability", 0);
	return atoi(text) == 0;
}

/**
 * struct injector - a way to make an operation fail
 * @what: kind of operation
 * @arm: makes the n-th operation from now on fail
 * @came: ends the injection; returns whether the fault was reached
 */
struct injector {
	const char *what;
	void (*arm)(unsigned int n);
	bool (*came)(void);
};

static const struct injector thread_faults = {
	.what = "faults", .arm = nth_of_thread, .came = thread_failed,
};

static const struct injector command_faults = {
	.what = "commands", .arm = nth_command, .came = command_failed,
};

/*
 * Configures the kernel's fault injection: any call may fail, and no message is
 * logged.
 */
static void faults_setup(bool gfp_wait)
{
	static const struct {
		const char *file;
		const char *value;
	} table[] = {
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[96];
	unsigned int i;
	int error;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 table[i].file);
		error = put_text(path, "%s", table[i].value);
		if (error)
			bail(path, error);
	}
	error = put_text("/sys/kernel/debug/failslab/ignore-gfp-wait", "%s",
			 gfp_wait ? "N" : "Y");
	if (!error)
		error = put_text("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait",
				 "%s", gfp_wait ? "N" : "Y");
	if (error)
		bail("ignore-gfp-wait", error);
	mailbox_knob("verbose", 0);
}

/* ---- before and after a run ---- */

static bool watch_open(void)
{
	int error;

	if (watch_fd >= 0 &&
	    !fm_ioctl(watch_fd, FLEXMEM_IOCTL_INFO, &CMD(info)))
		return true;
	if (watch_fd >= 0)
		close(watch_fd);
	if (vf_node(0) < 0) {
		error = put_text(SIM_DRIVER "bind", "flexmem_sim_vf.0");
		if (error)
			bail("bind, not failed", error);
	}
	watch_fd = open_node(vf_node(0));
	return watch_fd >= 0;
}

/* Checks that each file has the noted allocations, and frees them. */
static const char *check_file(struct run *r, unsigned int f)
{
	static struct accounts accounts;
	unsigned int i;
	int error;

	error = accounts_read_own(r->fd[f], &accounts);
	if (error == ENODEV)
		return NULL;
	if (error)
		return "SNAPSHOT afterwards fails";
	if (accounts.owner[1].handles != r->live[f].nr)
		return "another number of allocations than the answers say";
	for (i = 0; i < r->live[f].nr; i++) {
		struct flexmem_free a = CMD(free,
					    .handle = r->live[f].handle[i]);

		if (fm_ioctl(r->fd[f], FLEXMEM_IOCTL_FREE, &a))
			return "an allocation cannot be freed afterwards";
	}
	return NULL;
}

static void no_limits(void)
{
	unsigned int i;

	for (i = 0; i < FLEXMEM_RESOURCE_FILES; i++) {
		struct flexmem_resource_limit q = CMD(resource_limit,
			.resource = i,
			.cgroup = cgroup_number(""),
			.limit = FLEXMEM_NO_LIMIT);

		if (fm_ioctl(watch_fd, FLEXMEM_IOCTL_SET_LIMIT, &q))
			bail("SET_LIMIT, not failed", errno);
	}
}

/*
 * Compares the device with its state before the run. Returns a text about the
 * difference, or NULL.
 */
static const char *check_empty(void)
{
	static struct accounts accounts;
	struct flexmem_trim trim = CMD(trim);
	const char *wrong;
	char text[64];

	if (!watch_open())
		return "the node cannot be opened afterwards";
	no_limits();
	if (fm_ioctl(watch_fd, FLEXMEM_IOCTL_TRIM, &trim))
		return "TRIM afterwards fails";
	if (accounts_read(watch_fd, &accounts))
		return "SNAPSHOT afterwards fails";
	wrong = accounts_wrong(&accounts, true);
	if (!wrong)
		wrong = accounts_not_empty(&accounts);
	if (!wrong && accounts.head.out_total)
		wrong = "regions are left";
	if (!wrong && (get_text(SIM_KNOBS "vf0/memory", text, sizeof(text)) ||
		       *text))
		wrong = "the card says that memory is left";
	return wrong;
}

/* Runs the sequence once. Returns the error as a text, or NULL. */
static const char *run_once(const struct sequence *s,
			    const struct injector *injector, unsigned int n,
			    uint64_t *seen, bool *came)
{
	struct run r = { .fd = { -1, -1, -1 } };
	const char *wrong = NULL, *empty;
	unsigned int f;

	if (s->prepare)
		s->prepare(&r);
	if (r.at)
		return r.at;
	r.seen = 0;
	injector->arm(n);
	s->run(&r);
	*came = injector->came();
	*seen |= r.seen;
	if (r.at) {
		printf("# %s: %s\n", r.at, strerror(r.error));
		wrong = r.at;
	}
	if (r.revoked && touch(&r, 0))
		wrong = "a map outlives a reset";
	/* Memory that is freed but mapped is charged with its handle. */
	if (r.map_size)
		munmap(r.map, r.map_size);
	for (f = 0; f < MAX_FILES; f++) {
		if (r.fd[f] < 0)
			continue;
		if (!wrong)
			wrong = check_file(&r, f);
		close(r.fd[f]);
	}
	empty = check_empty();
	return wrong ?: empty;
}

/* Runs the sequence until no fault is reached. Returns the number of faults. */
static unsigned int sweep_with(const struct sequence *s,
			       const struct injector *injector, uint64_t *seen,
			       const char **wrong)
{
	bool came = true;
	unsigned int n;

	if (*wrong)
		return 0;
	for (n = 1; came && !*wrong && n < MOST_POINTS; n++)
		*wrong = run_once(s, injector, n, seen, &came);
	if (*wrong)
		printf("# %s, %s, %u: %s\n", s->name, injector->what, n - 1,
		       *wrong);
	else if (came)
		*wrong = "does not end";
	return n - 2;
}

static void sweep(const struct sequence *s)
{
	uint64_t seen = 0, begin = now_ms();
	unsigned int faults, commands;
	const char *wrong = NULL;

	faults = sweep_with(s, &thread_faults, &seen, &wrong);
	commands = sweep_with(s, &command_faults, &seen, &wrong);
	printf("# %s: %u faults, %u commands%s%s%s, %llu ms\n", s->name,
	       faults, commands, seen & 1ULL << ENOMEM ? " ENOMEM" : "",
	       seen & 1ULL << EFAULT ? " EFAULT" : "",
	       seen & 1ULL << EIO ? " EIO" : "",
	       (unsigned long long)(now_ms() - begin));
	/* A sequence with fewer than two faults proves nothing. */
	result(!wrong && faults > 1, "%s", s->name);
}

/* ---- checks that the faults are injected ---- */

static const struct sequence *find(const char *name)
{
	unsigned int i;

	for (i = 0; i < nr_sequences; i++)
		if (!strcmp(sequences[i].name, name))
			return &sequences[i];
	bail(name, ENOENT);
	return NULL;
}

/* Returns the set of errors that a sequence returns in all its runs. */
static uint64_t errors_of(const char *name, const struct injector *injector)
{
	const struct sequence *s = find(name);
	uint64_t seen = 0;
	bool came = true;
	unsigned int n;

	for (n = 1; came && n < MOST_POINTS; n++)
		if (run_once(s, injector, n, &seen, &came))
			return 0;
	return seen;
}

static void prove_faults(void)
{
	uint64_t seen;

	/* By default faults do not hit allocations that may wait. */
	faults_setup(false);
	seen = errors_of("ALLOC, the first", &thread_faults);
	result(seen && !(seen & 1ULL << ENOMEM), "%s",
	       "ignore-gfp-wait hides failed GFP_KERNEL allocations");
	faults_setup(true);
	seen = errors_of("ALLOC, the first", &thread_faults);
	result(seen & 1ULL << ENOMEM, "%s", "GFP_KERNEL allocations do fail");
	result(seen & 1ULL << EFAULT, "%s", "copies from and to user space do fail");
	seen = errors_of("ALLOC, the first", &command_faults);
	result(seen & 1ULL << EIO, "%s", "commands to the firmware do fail");
}

/* ---- the program ---- */

static void load(const char *params)
{
	int error = module_load("flexmem", params);
	char sim[64];

	snprintf(sim, sizeof(sim), "memory=64M num_vfs=1 slots=8 timeout_ms=%u",
		 CALM_MS);
	if (!error)
		error = module_load("flexmem_sim", sim);
	if (error)
		bail("the modules do not load", error);
	if (!watch_open())
		bail("no node", errno);
}

static void unload(void)
{
	int error;

	close(watch_fd);
	watch_fd = -1;
	error = module_unload("flexmem_sim");
	if (!error)
		error = module_unload("flexmem");
	if (error)
		printf("# %s\n", strerror(error));
	result(!error, "%s", "the modules unload");
}

static void sweep_all(const char *params, const char *only)
{
	unsigned int i;

	printf("# flexmem %s\n", params);
	load(params);
	prove_faults();
	for (i = 0; i < nr_sequences; i++)
		if (!only || !strcmp(only, sequences[i].name))
			sweep(&sequences[i]);
	unload();
}

int main(void)
{
	static const char * const settings[] = {
		"order=fill_first fallback_sizes=16M,8M max_regions=4",
		"order=load_balance strategy=best_fit fallback_sizes=8M max_regions=4",
		"order=fill_first strategy=best_fit fallback_sizes=16M,8M max_regions=4 program_slots=1",
		"acquire=prealloc fallback_sizes=8M max_regions=3",
	};
	const char *only = getenv("FLEXMEM_SEQUENCE");
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	fail_nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_nth_fd < 0)
		bail("fail-nth", errno);
	sequences_setup();
	/*
	 * Locks the pages of this program, so that no page fault happens during
	 * a sequence.
	 */
	if (mlockall(MCL_CURRENT))
		bail("mlockall", errno);
	for (i = 0; i < (getenv("FLEXMEM_LONG") ? ARRAY_SIZE(settings) : 1);
	     i++)
		sweep_all(settings[i], only);
	printf("1..%u\n", tests);
	return failed ? 1 : 0;
}
