// SPDX-License-Identifier: GPL-2.0
/*
 * The search for room while other tasks move the room.
 *
 * Two domains have a region each, with this layout in MiB:
 *
 *	0 free, 1 in use, 2 free, 3 in use, 4 to 7: the area
 *
 * The area is free in one of the regions. A file asks for 1.5 MiB, for which only an
 * area has room. The region whose area is in use has fewer free bytes, so it is
 * searched first. At that moment another task frees this area and takes the other
 * one, ahead of the search. So each search finds no room, although there is room at
 * each moment.
 */
#include "shim/internal.h"

#include "corners.h"

#define REGIONS 2
#define AREA SZ_4M
#define LENGTH (SZ_1M + SZ_512K)
/* One search without a lock, and the most searches under it, as in placement.c. */
#define MOST_SEARCHES 5

/**
 * struct mover - the task that moves the room
 * @run: its file is number 1
 * @area: handle of the area that is in use
 * @in: domain of that area
 * @at: it acts after the visit of this region: 0 or 1, in the order of the search
 * @act: what it does
 * @moves: how often it still acts
 * @visits: how often the other task has searched a region in vain
 * @go: it shall move the room now
 * @end: it shall end
 * @done: it has ended
 */
static struct mover {
	struct run *run;
	u32 area;
	unsigned int in;
	unsigned int at;
	void (*act)(void);
	unsigned int moves;
	unsigned int visits;
	bool go;
	bool end;
	struct completion done;
} mover;

static u32 alloc_in(struct run *r, unsigned int domain, u64 length)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = length,
				       .domains = BIT(domain),
				       .policy = FLEXMEM_POLICY_BIND);

	if (BY(r, 1, ALLOC, &cmd, 0))
		r->nr[1]++;
	return cmd.out_handle;
}

static void free_in(struct run *r, u32 handle)
{
	if (BY(r, 1, FREE, &CMD(free, .handle = handle), 0))
		r->nr[1]--;
}

static void move(void)
{
	u32 old = mover.area;

	free_in(mover.run, old);
	mover.in = 1 - mover.in;
	mover.area = alloc_in(mover.run, mover.in, AREA);
}

/* Takes the area of the other region, too, and makes the next search another one. */
static void take(void)
{
	alloc_in(mover.run, 1 - mover.in, AREA);
	free_in(mover.run, alloc_in(mover.run, mover.in, SZ_1M));
}

static int run_mover(void *unused)
{
	while (!READ_ONCE(mover.end)) {
		if (READ_ONCE(mover.go)) {
			mover.act();
			WRITE_ONCE(mover.go, false);
		}
		os_yield();
	}
	complete(&mover.done);
	return 0;
}

typeof(flexmem_pressure_tell) __real_flexmem_pressure_tell,
			      __wrap_flexmem_pressure_tell;

/*
 * The linker redirects calls of flexmem_pressure_tell() to this function. A search
 * calls it after each region, under RCU and without a spinlock. Each search visits
 * both regions.
 */
void __wrap_flexmem_pressure_tell(struct flexmem_accounts *accounts)
{
	__real_flexmem_pressure_tell(accounts);
	if (!mover.run || READ_ONCE(mover.go) || !rcu_read_lock_held())
		return;
	if (mover.visits++ % REGIONS != mover.at || !mover.moves)
		return;
	mover.moves--;
	WRITE_ONCE(mover.go, true);
	while (READ_ONCE(mover.go))
		os_yield();
}

/* Fills a region as above. Returns the handle of its area. */
static u32 lay_out(struct run *r, unsigned int domain)
{
	u32 handle[4], area;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(handle); i++)
		handle[i] = alloc_in(r, domain, SZ_1M);
	area = alloc_in(r, domain, AREA);
	free_in(r, handle[0]);
	free_in(r, handle[2]);
	return area;
}

/*
 * Asks while the mover acts @moves times. @searches: how many searches that takes,
 * each of all regions. Returns the reason of a failure.
 */
static u32 ask(struct run *r, unsigned int moves, int error,
	       unsigned int searches)
{
	struct flexmem_alloc reply;

	mover.end = false;
	mover.visits = 0;
	mover.moves = moves;
	init_completion(&mover.done);
	mover.run = r;
	native_kthread_run(run_mover, NULL, "mover");
	alloc_by(r, CMD(alloc, .length = LENGTH), error, &reply);
	mover.run = NULL;
	WRITE_ONCE(mover.end, true);
	wait_for_completion(&mover.done);
	must(r, !mover.moves, "moves of the room");
	must(r, mover.visits == REGIONS * searches, "visits of regions");
	if (!error && !r->wrong)
		CALL(r, FREE, &CMD(free, .handle = r->handle[0][--r->nr[0]]));
	return reply.out_reason;
}

/*
 * @exhausted: an ALLOC has found that there is no third region. Otherwise the
 * worker searches, and finds it out.
 */
static void run_moves(struct run *r, bool exhausted)
{
	unsigned int moves;
	struct flexmem_alloc reply;

	open_file(r, 0);
	open_file(r, 1);
	if (r->wrong)
		return;
	mover.in = 0;
	mover.at = 0;
	mover.act = move;
	mover.area = lay_out(r, 0);
	free_in(r, lay_out(r, 1));
	if (exhausted)
		alloc_by(r, CMD(alloc, .length = SZ_8M), ENOMEM, &reply);
	for (moves = 0; moves < MOST_SEARCHES && !r->wrong; moves++)
		ask(r, moves, 0, moves + 1);
	/* The search ends although the room goes on moving. */
	if (!r->wrong)
		ask(r, MOST_SEARCHES, ENOMEM, MOST_SEARCHES);
}

/*
 * A file may enter one region only. Its first search meets the area of the other
 * region, which its limit refuses. Then that area is taken. The reason of the
 * failure is that of the last search.
 */
static void run_refused(struct run *r, bool exhausted)
{
	struct cgroup *cgroup = native_cgroup_make(native_cgroup_root);
	struct flexmem_alloc reply;
	u32 reason;

	open_file(r, 1);
	native_cgroup_move(cgroup);
	open_file(r, 0);
	native_cgroup_move(native_cgroup_root);
	if (r->wrong)
		return;
	mover.in = 0;
	mover.at = 1;
	mover.act = take;
	mover.area = lay_out(r, 0);
	free_in(r, lay_out(r, 1));
	alloc_by(r, CMD(alloc, .length = SZ_64K, .domains = BIT(0),
			.policy = FLEXMEM_POLICY_BIND), 0, &reply);
	if (exhausted)
		alloc_by(r, CMD(alloc, .length = SZ_8M), ENOMEM, &reply);
	BY(r, 1, SET_LIMIT,
	   &CMD(resource_limit, .cgroup = cgroup_id(cgroup),
		.resource = FLEXMEM_RESOURCE_REGIONS, .limit = 1), 0);
	reason = ask(r, 0, ENOMEM, 1);
	must(r, reason == FLEXMEM_REASON_REGION_LIMIT, "reason before");
	reason = ask(r, 1, ENOMEM, 2);
	must(r, reason == FLEXMEM_REASON_FRAGMENTATION, "reason after");
	native_cgroup_remove(cgroup);
}

static unsigned int check(void (*run)(struct run *r, bool exhausted),
			  bool exhausted)
{
	struct run r = {};
	unsigned int f;

	world_begin_domains("order=fill_first fallback_sizes=8M max_regions=6",
			    "hbm*2:8M");
	current->failed = 0;
	run(&r, exhausted);
	if (r.wrong)
		printf("# %s: %s (%ld)\n", r.at, r.wrong, r.rc);
	for (f = 0; f < RUN_FILES; f++)
		if (r.file[f])
			native_close(r.file[f]);
	world_end();
	return !!r.wrong;
}

/**
 * search_wrong - ask for memory while another task moves it
 *
 * Return: number of wrong outcomes.
 */
unsigned int search_wrong(void)
{
	return check(run_moves, true) + check(run_moves, false) +
	       check(run_refused, true);
}
