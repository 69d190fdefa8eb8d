// SPDX-License-Identifier: GPL-2.0
/*
 * Runs batches of calls. After each batch the device must be in the same state
 * as before. Prints TAP.
 *
 * Environment: FLEXMEM_BATCHES: number of batches (default 20); FLEXMEM_SEED:
 * seed of the first; FLEXMEM_BATCH: only this batch; FLEXMEM_KO: folder of the
 * modules.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define TENANT 1001

static struct file files[NR_FILES];
static struct thread threads[NR_THREADS];
static atomic_ullong done[FLEXMEM_CMD_VA_LOOKUP + 1];
static uint64_t calls;
static unsigned int tests, failed;

static void result(bool good, const char *what)
{
	printf("%s %u - %s\n", good ? "ok" : "not ok", ++tests, what);
	failed += !good;
}

static void bail(const char *what, int error)
{
	printf("Bail out! %s: %s\n", what, strerror(error));
	exit(1);
}

/*
 * Runs a thread. Every second thread becomes a tenant without rights, by a raw
 * system call, because setresuid() of the C library would change all threads.
 */
static void *thread_run(void *arg)
{
	struct thread *t = arg;
	unsigned int i;

	if (t->number % 2 &&
	    syscall(SYS_setresuid, TENANT, TENANT, TENANT))
		snprintf(t->wrong, sizeof(t->wrong), "no other user");
	for (i = 0; i < NR_CALLS && !*t->wrong; i++)
		thread_call(t);
	thread_unmap_all(t);
	return NULL;
}

/* ---- before and after a batch ---- */

/*
 * Binds the first of four pages, so that random calls find bound and free
 * pages. The batch before may have left a limit, and these calls may fail.
 */
static void bind_page(struct file *file)
{
	struct flexmem_alloc pages = CMD(alloc, .length = 4 * VA_PAGE,
					 .alignment = VA_PAGE);
	struct flexmem_va_reserve range = CMD(va_reserve,
					      .length = 4 * VA_PAGE);

	if (fm_ioctl(file->fd, FLEXMEM_IOCTL_ALLOC, &pages) ||
	    fm_ioctl(file->fd, FLEXMEM_IOCTL_VA_RESERVE, &range))
		return;
	fm_ioctl(file->fd, FLEXMEM_IOCTL_VA_BIND,
		 &CMD(va_bind, .handle = pages.out_handle,
		      .access = FLEXMEM_VA_READ, .address = range.out_address,
		      .length = VA_PAGE));
	file->known[file->nr_known++] = (struct known) {
		.handle = pages.out_handle, .size = pages.length,
	};
}

static void files_open(void)
{
	unsigned int i;

	for (i = 0; i < NR_FILES; i++) {
		files[i].vf = i % NR_VFS;
		files[i].nr_known = 0;
		/* The tenant opens half of the files. */
		if (i >= NR_FILES / 2)
			syscall(SYS_setresuid, -1, TENANT, -1);
		files[i].fd = open_node(vf_node(files[i].vf));
		syscall(SYS_setresuid, -1, 0, -1);
		if (files[i].fd < 0)
			bail("open", errno);
		bind_page(&files[i]);
	}
}

#define HOLDER "flexmem-fuzz"

uint64_t holder;

/*
 * Removes the limits of all owners. Those of a removed cgroup, whose id is no
 * longer found, go with its files.
 */
static void no_limits(int fd, const struct accounts *a)
{
	unsigned int i, resource;

	for (i = 0; i < a->head.out_owner_count &&
		    a->owner[i].kind == FLEXMEM_OWNER_CGROUP; i++)
		for (resource = 0; resource < FLEXMEM_NR_RESOURCES;
		     resource++) {
			struct flexmem_resource_limit q = CMD(resource_limit,
				.flags = FLEXMEM_LIMIT_ALL_FUNCTIONS,
				.cgroup = a->owner[i].id, .resource = resource,
				.limit = FLEXMEM_NO_LIMIT);

			fm_ioctl(fd, FLEXMEM_IOCTL_SET_LIMIT, &q);
		}
}

/* Checks a VF while files are open. Returns what is wrong, or NULL. */
static const char *check_open(int fd)
{
	static struct accounts accounts;
	const char *wrong;

	if (accounts_read(fd, &accounts))
		return "no SNAPSHOT";
	wrong = accounts_wrong(&accounts, true);
	no_limits(fd, &accounts);
	if (fm_ioctl(fd, FLEXMEM_IOCTL_RESERVE,
		     &CMD(reserve, .cgroup = holder)))
		return "the reservation does not end";
	return wrong;
}

/*
 * Checks a VF after all files were closed. Returns a text about what is left,
 * or NULL.
 */
static const char *check_closed(int fd)
{
	static struct accounts accounts;
	struct flexmem_trim trim = CMD(trim);
	const char *wrong;

	if (fm_ioctl(fd, FLEXMEM_IOCTL_TRIM, &trim))
		return "TRIM fails";
	if (accounts_read(fd, &accounts))
		return "no SNAPSHOT";
	wrong = accounts_wrong(&accounts, true);
	if (!wrong)
		wrong = accounts_not_empty(&accounts);
	if (!wrong && accounts.head.out_total)
		wrong = "regions are left";
	return wrong;
}

static const char *check_batch(const int watch[NR_VFS])
{
	static const char * const knobs[] = { "fail_commands", "drop_replies" };
	const char *wrong = NULL;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		put_knob(knobs[i], 0);
	for (i = 0; i < NR_THREADS && !wrong; i++)
		if (*threads[i].wrong)
			wrong = threads[i].wrong;
	for (i = 0; i < NR_VFS && !wrong; i++)
		wrong = check_open(watch[i]);
	for (i = 0; i < NR_FILES; i++)
		close(files[i].fd);
	for (i = 0; i < NR_VFS && !wrong; i++)
		wrong = check_closed(watch[i]);
	return wrong;
}

/* ---- a batch ---- */

/*
 * Prints the batch before it runs, because the machine may die during the
 * batch.
 */
static void announce(uint64_t seed, uint64_t batch)
{
	put_text("/dev/kmsg", "flexmem-fuzz: FLEXMEM_SEED=%" PRIu64
		 " FLEXMEM_BATCH=%" PRIu64 "\n", seed, batch);
}

static bool run_batch(uint64_t seed, uint64_t batch, const int watch[NR_VFS])
{
	const char *wrong;
	unsigned int i;

	announce(seed, batch);
	files_open();
	for (i = 0; i < NR_THREADS; i++) {
		struct thread *t = &threads[i];

		t->rng.state = rng_mix(rng_mix(seed, batch), i);
		if (pthread_create(&t->id, NULL, thread_run, t))
			bail("pthread_create", EAGAIN);
	}
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i].id, NULL);
	wrong = check_batch(watch);
	if (wrong)
		printf("# batch %" PRIu64 ": %s\n# repeat with FLEXMEM_SEED=%" PRIu64
		       " FLEXMEM_BATCH=%" PRIu64 "\n", batch, wrong, seed,
		       batch);
	return !wrong;
}

/* With half of the seeds the card has several memories. */
static const struct {
	const char *params;
	unsigned int memories;
} cards[] = {
	{ "memory=128M vf_capacity=64M", 1 },
	{ "domains=hbm*2:64M,tcm:9M:reserved=1M", 3 },
};

unsigned int nr_memories;

static void setup(uint64_t seed, int watch[NR_VFS])
{
	unsigned int card = seed % ARRAY_SIZE(cards);
	char sim[96];
	unsigned int i;
	int error;

	if (cgroup_enter(HOLDER) || cgroup_enter(""))
		bail("no cgroups", errno);
	holder = cgroup_number(HOLDER);
	nr_memories = cards[card].memories;
	snprintf(sim, sizeof(sim), "%s num_vfs=2 slots=8 timeout_ms=%u",
		 cards[card].params, CALM_MS);
	printf("# flexmem_sim %s\n", sim);

	error = module_load("flexmem",
			    "order=fill_first fallback_sizes=16M,8M max_regions=6");
	if (!error)
		error = module_load("flexmem_sim", sim);
	/*
	 * If a fault has removed a message, the driver does not wait for its
	 * reply.
	 */
	if (!error)
		error = put_knob("give_up", 1);
	if (error)
		bail("the modules do not load", error);
	for (i = 0; i < NR_VFS; i++) {
		watch[i] = open_vf(i);
		if (watch[i] < 0)
			bail("no node", errno);
	}
	for (i = 0; i < NR_FILES; i++)
		pthread_mutex_init(&files[i].lock, NULL);
	for (i = 0; i < NR_THREADS; i++) {
		threads[i].number = i;
		threads[i].files = files;
		threads[i].done = done;
		thread_setup(&threads[i]);
	}
	expect_sigbus();
}

static bool every_command_worked(void)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < nr_commands; i++) {
		printf("# %s: %llu succeeded\n", commands[i].name,
		       (unsigned long long)atomic_load(&done[commands[i].nr]));
		all = all && atomic_load(&done[commands[i].nr]);
	}
	return all;
}

int main(void)
{
	uint64_t seed = env_number("FLEXMEM_SEED", time(NULL) * 1000003ULL +
						   getpid());
	uint64_t batches = env_number("FLEXMEM_BATCHES", 20);
	const char *one = getenv("FLEXMEM_BATCH");
	uint64_t batch = one ? strtoull(one, NULL, 0) : 0, first = batch;
	int watch[NR_VFS], error;
	unsigned int i;
	bool good = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n# seed %" PRIu64 "\n", seed);
	setup(seed, watch);
	do {
		good = run_batch(seed, batch++, watch);
	} while (good && !one && batch < batches);
	for (i = 0; i < NR_THREADS; i++)
		calls += threads[i].calls;
	printf("# %" PRIu64 " batches, %" PRIu64 " calls by %d threads\n",
	       batch - first, calls, NR_THREADS);
	result(good, "the device is as it was after each batch");
	/* A single batch may lack some commands. */
	if (!one)
		result(every_command_worked(), "every command worked");
	for (i = 0; i < NR_VFS; i++)
		close(watch[i]);
	error = module_unload("flexmem_sim");
	if (!error)
		error = module_unload("flexmem");
	if (error)
		printf("# %s\n", strerror(error));
	result(!error, "the modules unload");
	printf("1..%u\n", tests);
	return failed ? 1 : 0;
}
