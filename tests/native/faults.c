// SPDX-License-Identifier: GPL-2.0
/*
 * Runs each sequence of calls again and again: the first run fails at its first
 * operation that can fail, the second run at its second, and so on, until a run
 * has no fault. A fault comes alone, or together with the next operation of the
 * same kind. The driver is checked after each run. Before that, the program
 * tests wrong calls and parameters, which need no fault. Prints TAP.
 *
 * usage: faults [-p STRIDE] [NAME]
 *	NAME	only the sequences whose name contains it
 *	-p	instead of faults, actions of another task at each STRIDE-th
 *		point: see points.c
 */
#include "shim/internal.h"

#include <unistd.h>

#include "faults.h"

#define MOST_POINTS 5000

static unsigned int count, failures;
static unsigned long points;
static struct file *watch;

void run_wrong(struct run *r, const char *wrong, const char *at, long rc)
{
	if (r->wrong)
		return;
	r->wrong = wrong;
	r->at = at;
	r->rc = rc;
}

/*
 * Whether a call ended as expected, or with an error that an injected fault
 * explains.
 */
bool run_good(struct run *r, const char *at, long rc, int expected)
{
	static const int errors[] = { ENOMEM, EFAULT };

	if (rc == -expected)
		return true;
	if (points_explain(rc))
		return false;
	if (!current->failed)
		run_wrong(r, "not what is expected, without a fault", at, rc);
	else if (current->failed == 1 + NATIVE_DEVICE ?
		 rc != world_device_error && rc != -EIO :
		 rc != -errors[current->failed - 1] && rc != -EIO)
		run_wrong(r, "not what the fault explains", at, rc);
	return false;
}

static const char *check_file(struct run *r, unsigned int f)
{
	struct flexmem_file *private = r->file[f]->private_data;
	const char *wrong = world_file_wrong(r->file[f]) ?:
			    world_charges_wrong(r->file[f]);
	unsigned int i;

	if (wrong)
		return wrong;
	if (flexmem_function_is_gone(&private->fdev->table.function))
		return NULL;
	if (private->client.account->used[FLEXMEM_RESOURCE_HANDLES] != r->nr[f])
		return "another number of allocations than the answers say";
	for (i = 0; i < r->nr[f]; i++) {
		struct flexmem_free cmd = CMD(free, .handle = r->handle[f][i]);

		if (native_ioctl(r->file[f], FLEXMEM_IOCTL_FREE, &cmd))
			return "an allocation cannot be freed afterwards";
	}
	return NULL;
}

static bool watch_open(void)
{
	int minor = world_minor(1);

	if (minor < 0) {
		if (world_bind(1))
			return false;
		minor = world_minor(1);
	}
	watch = native_open(minor, O_RDWR | O_NONBLOCK);
	return !IS_ERR(watch);
}

static void no_limits(void)
{
	struct flexmem_resource_limit cmd;
	long rc;
	u32 i;

	for (i = 0; i < FLEXMEM_RESOURCE_FILES; i++) {
		cmd = CMD(resource_limit, .resource = i,
			  .flags = FLEXMEM_LIMIT_ALL_FUNCTIONS,
			  .cgroup = cgroup_id(native_cgroup_root),
			  .limit = FLEXMEM_NO_LIMIT);
		rc = native_ioctl(watch, FLEXMEM_IOCTL_SET_LIMIT, &cmd);
		WARN(rc, "SET_LIMIT afterwards: %ld", rc);
	}
}

/*
 * Checks that after a run no file has an allocation, and that the device works.
 */
static const char *check_empty(void)
{
	static struct picture picture;
	struct flexmem_trim trim = CMD(trim);
	const char *wrong;
	struct sim_piece piece = {};
	unsigned int i;

	world_heal();
	/*
	 * If the VF is unresponsive, a reset takes less time than a wait for a
	 * probe.
	 */
	if (world_function(1)->fdev &&
	    flexmem_function_error(&world_function(1)->fdev->table.function) &&
	    world_reset(1))
		return "the function cannot be reset afterwards";
	if (!watch_open())
		return "the node cannot be opened afterwards";
	no_limits();
	/*
	 * TRIM leaves a region in place while the background scrub works on one
	 * of its blocks. Nothing fails any more, so this block is free once the
	 * worker has ended.
	 */
	for (i = 0; i < 2; i++) {
		if (native_ioctl(watch, FLEXMEM_IOCTL_TRIM, &trim))
			return "TRIM afterwards fails";
		native_settle_work();
	}
	wrong = world_wrong(1);
	world_picture(watch, &picture);
	native_close(watch);
	if (wrong)
		return wrong;
	if (picture.view.sum.out_total || picture.view.sum.out_owned)
		return picture.view.sum.out_owned ?
		       "an allocation is left" : "a region is left";
	/* The two accounts are those of the watching file and of its cgroup. */
	if (picture.view.sum.out_owner_count != 2)
		return "an account is left";
	return sim_firmware_next_piece(world.card.fw, 1, &piece) ?
		"the card says that memory is left" : NULL;
}

/*
 * Zeroes the card's memory, so that a run does not see bytes of an earlier run.
 */
static void wipe_card(void)
{
	sim_memory_destroy(&world.card.memory);
	sim_memory_init(&world.card.memory);
}

/**
 * run_end - check the state after a run, before and after its files are closed
 * @r: the run
 */
void run_end(struct run *r)
{
	const char *wrong;
	unsigned int f;

	for (f = 0; f < RUN_FILES; f++) {
		if (!r->file[f])
			continue;
		wrong = check_file(r, f);
		if (wrong)
			run_wrong(r, wrong, "afterwards", 0);
		native_close(r->file[f]);
	}
	if (r->vma)
		native_munmap(r->vma);
	wrong = check_empty();
	if (wrong)
		run_wrong(r, wrong, "at the end", 0);
	wipe_card();
}

/*
 * Runs a sequence in which the operation at point @n fails. Returns true if the
 * run reached that point.
 */
static bool run_once(const struct sequence *s, unsigned int n,
		     unsigned int again, struct run *r)
{
	int failed;

	*r = (struct run) {};
	current->failed = 0;
	if (s->prepare)
		s->prepare(r);
	current->fail_at = n;
	current->fail_again = again;
	if (!r->wrong)
		s->run(r);
	failed = current->failed;
	current->fail_at = 0;
	current->fail_again = 0;
	run_end(r);
	return failed;
}

/*
 * Runs a sequence twice without a fault. The first run makes objects that stay,
 * such as owners.
 */
static void walk(const struct sequence *s)
{
	struct run r;
	long live;

	run_once(s, MOST_POINTS, 0, &r);
	live = native_live();
	if (!r.wrong)
		run_once(s, MOST_POINTS, 0, &r);
	if (!r.wrong && native_live() != live)
		run_wrong(&r, "objects are left", "at the end",
			  native_live() - live);
	if (r.wrong)
		printf("# %s: %s (%ld)\n", r.at, r.wrong, r.rc);
	failures += !!r.wrong;
	printf("%s %u - %s\n", r.wrong ? "not ok" : "ok", ++count, s->name);
}

static void sweep(const struct sequence *s, int error, bool done,
		  unsigned int again)
{
	unsigned int n = 1;
	struct run r;
	long live;
	bool came;

	world_device_error = error;
	world_device_done = done;
	/*
	 * This run makes owners, which stay. They must not count as leaks in
	 * later runs.
	 */
	run_once(s, MOST_POINTS, 0, &r);
	live = native_live();
	do {
		came = run_once(s, n, again, &r);
		if (!r.wrong && native_live() != live)
			run_wrong(&r, "objects are left", "at the end",
				  native_live() - live);
	} while (came && !r.wrong && ++n < MOST_POINTS);
	if (r.wrong)
		printf("# fault %u: %s: %s (%ld)\n", n, r.at, r.wrong, r.rc);
	/* A sequence in which no operation can fail tests nothing. */
	if (r.wrong || n < 2)
		failures++;
	points += n - 1;
	printf("%s %u - %s, %u faults%s, device error %d%s\n",
	       r.wrong || n < 2 ? "not ok" : "ok", ++count, s->name, n - 1,
	       again ? " in pairs" : "", -error, done ? ", but done" : "");
	fflush(stdout);
}

static void report(unsigned int wrong, const char *name)
{
	failures += !!wrong;
	printf("%s %u - %s\n", wrong ? "not ok" : "ok", ++count, name);
}

/* Loads and unloads the module. A failed load must leave nothing behind. */
static void sweep_load(void)
{
	long live = native_live();
	unsigned int n;
	bool came = true;

	for (n = 1; came; n++) {
		current->failed = 0;
		current->fail_at = n;
		if (!native_module_init())
			native_module_exit();
		came = current->failed;
		current->fail_at = 0;
		if (native_live() != live)
			break;
	}
	failures += came;
	printf("%s %u - load and unload, %u faults\n", came ? "not ok" : "ok",
	       ++count, n - 2);
}

static const char * const params[] = {
	"order=fill_first fallback_sizes=16M,8M max_regions=4",
	"strategy=best_fit fallback_sizes=8M max_regions=4",
	"order=fill_first strategy=best_fit fallback_sizes=16M,8M max_regions=4 program_slots=1",
	"acquire=prealloc fallback_sizes=8M max_regions=3",
};

static const struct sequence * const all_corners[] = {
	corners, tenant_corners, bare_corners, card_corners,
	job_corners, program_corners, sleep_corners, account_corners,
	limit_corners, removal_corners, scrub_corners,
};

/* The ways in which an operation of the device fails. */
static const struct {
	int error;
	bool done;
	unsigned int again;
} ways[] = {
	{ -EIO }, { -ENOMEM }, { -ETIMEDOUT }, { -EINTR },
	{ -ETIMEDOUT, true }, { -EINTR, true },
	{ -EIO, false, 1 }, { -ETIMEDOUT, true, 1 },
	{ -ENOTRECOVERABLE },
};

static void walk_all(const struct sequence *s, const char *only)
{
	for (; s->run; s++)
		if (strstr(s->name, only))
			walk(s);
}

static void sweep_all(const struct sequence *s, const char *only)
{
	unsigned int w;

	for (; s->run; s++)
		for (w = 0; w < ARRAY_SIZE(ways); w++)
			if (strstr(s->name, only))
				sweep(s, ways[w].error, ways[w].done,
				      ways[w].again);
}

static void sweep_all_points(const struct sequence *s, unsigned int stride,
			     const char *only)
{
	unsigned int kind;

	for (; s->run; s++)
		for (kind = KILL; kind < NR_INTERFERENCES; kind++)
			if (strstr(s->name, only))
				failures += points_sweep(s, kind, stride,
							 &count);
}

static void begin_domains(void)
{
	printf("# %s domains=%s\n", DOMAINS_PARAMS, DOMAINS_TEXT);
	world_begin_domains(DOMAINS_PARAMS, DOMAINS_TEXT);
}

static int sweep_points(unsigned int stride, const char *only)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(params); i++) {
		printf("# %s\n", params[i]);
		world_begin(params[i], 128ull * SZ_1M);
		sweep_all_points(sequences, stride, only);
		if (strstr(open_below.name, only))
			failures += points_sweep(&open_below, OPENING, stride,
						 &count);
		world_end();
	}
	begin_domains();
	sweep_all_points(policy_sequences, stride, only);
	world_end();
	points_total();
	printf("1..%u\n", count);
	return failures;
}

int main(int argc, char **argv)
{
	const char *only;
	unsigned int i, w, stride = 0;
	int option;

	while ((option = getopt(argc, argv, "p:")) != -1) {
		if (option != 'p')
			return 2;
		stride = strtoul(optarg, NULL, 0);
	}
	only = optind < argc ? argv[optind] : "";
	os_one_processor();
	native_shim_init();
	if (stride)
		return sweep_points(stride, only);
	report(params_wrong(), "parameters of the module");
	report(sim_domains_wrong(), "memories of the card");
	report(rest_wrong(), "all memory of cards that no region sizes divide");
	report(search_wrong(), "search for room that moves");
	sweep_load();
	for (i = 0; i < ARRAY_SIZE(params); i++) {
		printf("# %s\n", params[i]);
		world_begin(params[i], 128ull * SZ_1M);
		for (w = 0; w < ARRAY_SIZE(all_corners); w++)
			walk_all(all_corners[w], only);
		sweep_all(sequences, only);
		world_end();
	}
	begin_domains();
	walk_all(domain_corners, only);
	walk_all(space_corners, only);
	sweep_all(policy_sequences, only);
	world_end();
	printf("# %lu faults\n1..%u\n", points, count);
	return failures;
}
