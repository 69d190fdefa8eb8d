// SPDX-License-Identifier: GPL-2.0
/* Corner cases of accounts: who hears when memory is within reach again. */
#include "corners.h"

/* Frees the allocation of a reply. */
static void undo(struct run *r, const struct flexmem_alloc *reply)
{
	BY(r, 0, FREE, &CMD(free, .handle = reply->out_handle), 0);
}

/**
 * struct gate - a way to forbid an ALLOC and to permit it again
 * @name: short description
 * @reason: why the ALLOC fails
 * @close: forbids it
 * @open: permits it
 */
struct gate {
	const char *name;
	u32 reason;
	void (*close)(struct run *r);
	void (*open)(struct run *r);
};

/* The cgroup of the file that waits, and another one. */
static struct cgroup *waiter, *holder;

static void limit(struct run *r, u32 resource, u64 most)
{
	BY(r, 1, SET_LIMIT,
	   &CMD(resource_limit, .cgroup = cgroup_id(waiter),
		.resource = resource, .limit = most), 0);
}

static void close_bytes(struct run *r)
{
	limit(r, FLEXMEM_RESOURCE_BYTES, 127);
}

static void open_bytes(struct run *r)
{
	limit(r, FLEXMEM_RESOURCE_BYTES, 128);
}

static void remove_bytes(struct run *r)
{
	limit(r, FLEXMEM_RESOURCE_BYTES, FLEXMEM_NO_LIMIT);
}

static void close_regions(struct run *r)
{
	limit(r, FLEXMEM_RESOURCE_REGIONS, 0);
}

static void open_regions(struct run *r)
{
	limit(r, FLEXMEM_RESOURCE_REGIONS, 1);
}

static void close_handles(struct run *r)
{
	limit(r, FLEXMEM_RESOURCE_HANDLES, 0);
}

static void open_handles(struct run *r)
{
	limit(r, FLEXMEM_RESOURCE_HANDLES, 1);
}

static void default_limit(struct run *r, u64 most)
{
	BY(r, 1, SET_LIMIT,
	   &CMD(resource_limit, .scope = FLEXMEM_SCOPE_DEFAULT,
		.resource = FLEXMEM_RESOURCE_BYTES, .limit = most), 0);
}

static void close_default(struct run *r)
{
	default_limit(r, 127);
}

static void open_default(struct run *r)
{
	default_limit(r, FLEXMEM_NO_LIMIT);
}

/* Reserves @count regions of the first size for the other cgroup. */
static int reserve(struct run *r, u32 count)
{
	struct flexmem_info info = CMD(info);

	BY(r, 1, INFO, &info, 0);
	return native_ioctl(r->file[1], FLEXMEM_IOCTL_RESERVE,
			    &CMD(reserve, .cgroup = cgroup_id(holder),
				 .length = count ? info.out_fallback_sizes[0] : 0,
				 .count = count));
}

static u32 reserve_all(struct run *r)
{
	u32 count = 0;

	while (count < FLEXMEM_MAX_SLOTS && !reserve(r, count + 1))
		count++;
	must(r, count, "regions can be reserved");
	return count;
}

static void close_reservation(struct run *r)
{
	reserve_all(r);
}

static void open_reservation(struct run *r)
{
	run_good(r, "end of a reservation", reserve(r, 0), 0);
}

static void shorten_reservation(struct run *r)
{
	run_good(r, "shorter reservation", reserve(r, 1), 0);
}

static u64 capacity;
static u32 filler;

/* There is room for one region, which an allocation fills. */
static void close_capacity(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc);
	struct flexmem_info info = CMD(info);

	BY(r, 1, INFO, &info, 0);
	capacity = info.out_capacity;
	cmd.length = info.out_fallback_sizes[info.out_nr_fallback_sizes - 1];
	world_set_capacity(1, cmd.length);
	BY(r, 1, ALLOC, &cmd, 0);
	filler = cmd.out_handle;
}

static void open_capacity(struct run *r)
{
	world_set_capacity(1, capacity);
}

static void open_by_free(struct run *r)
{
	BY(r, 1, FREE, &CMD(free, .handle = filler), 0);
	filler = 0;
}

static const struct gate gates[] = {
	{ "limit of bytes", FLEXMEM_REASON_CGROUP_LIMIT, close_bytes,
	  open_bytes },
	{ "limit of bytes that ends", FLEXMEM_REASON_CGROUP_LIMIT, close_bytes,
	  remove_bytes },
	{ "limit of regions", FLEXMEM_REASON_REGION_LIMIT, close_regions,
	  open_regions },
	{ "limit of handles", FLEXMEM_REASON_CGROUP_LIMIT, close_handles,
	  open_handles },
	{ "default limit", FLEXMEM_REASON_CGROUP_LIMIT, close_default,
	  open_default },
	{ "reservation", FLEXMEM_REASON_RESERVED, close_reservation,
	  open_reservation },
	{ "shorter reservation", FLEXMEM_REASON_RESERVED, close_reservation,
	  shorten_reservation },
	{ "capacity", FLEXMEM_REASON_CAPACITY, close_capacity, open_capacity },
	{ "free", FLEXMEM_REASON_CAPACITY, close_capacity, open_by_free },
};

/* Whether the file has an event, which this reads. */
static bool has_event(struct run *r)
{
	struct flexmem_event event;
	bool some = false;

	native_time_advance(msecs_to_jiffies(FLEXMEM_EVENT_MS));
	native_settle_work();
	while (native_read(r->file[0], &event, sizeof(event)) > 0)
		some = true;
	return some;
}

/* Whether one more ALLOC by a file that waits is told when it may succeed. */
static void pass(struct run *r, const struct gate *gate)
{
	struct flexmem_alloc reply = CMD(alloc, .length = 1);

	CALL(r, TRIM, &CMD(trim));
	gate->close(r);
	if (FAILS(r, ALLOC, &reply, ENOMEM))
		run_good(r, gate->name, -(long)reply.out_reason, gate->reason);
	has_event(r);
	must(r, !has_event(r), "no event while nothing changes");
	gate->open(r);
	must(r, has_event(r), gate->name);
	reply = CMD(alloc, .length = 1);
	CALL(r, ALLOC, &reply);
	undo(r, &reply);
	limit(r, FLEXMEM_RESOURCE_BYTES, FLEXMEM_NO_LIMIT);
	limit(r, FLEXMEM_RESOURCE_REGIONS, FLEXMEM_NO_LIMIT);
	limit(r, FLEXMEM_RESOURCE_HANDLES, FLEXMEM_NO_LIMIT);
	run_good(r, "no reservation", reserve(r, 0), 0);
	if (filler)
		open_by_free(r);
	if (capacity)
		world_set_capacity(1, capacity);
}

/*
 * Opens file 0 in a cgroup whose parent is a child of the root, so that the
 * default limit applies to it, and file 1 in the root.
 */
static struct cgroup *begin_gates(struct run *r)
{
	struct cgroup *parent = native_cgroup_make(native_cgroup_root);

	waiter = native_cgroup_make(parent);
	holder = native_cgroup_make(native_cgroup_root);
	native_cgroup_move(waiter);
	open_file(r, 0);
	native_cgroup_move(native_cgroup_root);
	open_file(r, 1);
	return parent;
}

static void end_gates(struct cgroup *parent)
{
	native_cgroup_remove(holder);
	native_cgroup_remove(waiter);
	native_cgroup_remove(parent);
	/*
	 * Unbinding forgets the accounts, which would otherwise look like
	 * leaks.
	 */
	WARN_ON(world_unbind(1));
}

static void run_events(struct run *r)
{
	struct cgroup *parent = begin_gates(r);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gates) && !r->wrong; i++)
		pass(r, &gates[i]);
	end_gates(parent);
}

/* ---- a cgroup that has gone ---- */

/*
 * All regions are reserved for a cgroup. After its removal they can be reserved
 * for another one at once, without an ALLOC or a TRIM in between.
 */
static void run_reserve_again(struct run *r)
{
	struct cgroup *parent = begin_gates(r);
	struct cgroup *gone = holder;
	u32 count;

	CALL(r, TRIM, &CMD(trim));
	count = reserve_all(r);
	holder = native_cgroup_make(native_cgroup_root);
	native_cgroup_remove(gone);
	run_good(r, "RESERVE of what a removed cgroup had", reserve(r, count),
		 0);
	end_gates(parent);
}

/* ---- the list of owners ---- */

/* Enough files for three batches. */
static struct file *crowd[2 * FLEXMEM_VIEW_OWNERS + 10];
static struct flexmem_owner_entry list[ARRAY_SIZE(crowd) + 20];

static struct flexmem_snapshot ask_for(u32 room)
{
	static struct flexmem_region_entry region[FLEXMEM_MAX_SLOTS];

	memset(list, 0xee, sizeof(list));
	return CMD(snapshot,
		   .region_entry_size = sizeof(region[0]),
		   .region_count = FLEXMEM_MAX_SLOTS,
		   .regions = (uintptr_t)region,
		   .owner_entry_size = sizeof(list[0]), .owner_count = room,
		   .owners = (uintptr_t)list);
}

/* The list has @nr owners in order, and nothing is written behind it. */
static void must_be_list(struct run *r, u32 nr)
{
	u32 i;

	for (i = 1; i < nr && !r->wrong; i++)
		must(r, list[i].kind < list[i - 1].kind ||
		     (list[i].kind == list[i - 1].kind &&
		      list[i].id > list[i - 1].id), "order of the owners");
	must(r, !memchr_inv(list + nr, 0xee, sizeof(list) - nr * sizeof(*list)),
	     "bytes behind the list");
}

static void open_another(void)
{
	crowd[ARRAY_SIZE(crowd) - 1] = native_open(world_minor(1), O_RDWR);
}

static void close_crowd(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(crowd); i++)
		if (crowd[i])
			native_close(crowd[i]);
	memset(crowd, 0, sizeof(crowd));
}

/* Takes a snapshot. Calls @meanwhile while its first batch is written. */
static struct flexmem_snapshot ask_during(struct run *r, u32 room,
					  void (*meanwhile)(void), int error)
{
	struct flexmem_snapshot cmd = ask_for(room);

	current->meanwhile = meanwhile;
	current->meanwhile_at = FLEXMEM_VIEW_OWNERS;
	FAILS(r, SNAPSHOT, &cmd, error);
	must(r, !current->meanwhile, "a call while the list is written");
	return cmd;
}

/* A list with several batches. In between, files are opened and closed. */
static void run_many_owners(struct run *r)
{
	struct flexmem_snapshot cmd = ask_for(ARRAY_SIZE(list));
	unsigned int i;
	u32 nr;

	for (i = 0; i < ARRAY_SIZE(crowd) - 1; i++)
		crowd[i] = native_open(world_minor(1), O_RDWR);
	CALL(r, SNAPSHOT, &cmd);
	nr = cmd.out_owner_count;
	must(r, nr == cmd.out_clients + 1, "number of owners");
	must_be_list(r, nr);
	cmd = ask_for(nr);
	CALL(r, SNAPSHOT, &cmd);
	must_be_list(r, nr);
	cmd = ask_for(nr - 1);
	FAILS(r, SNAPSHOT, &cmd, EMSGSIZE);
	must(r, cmd.out_owner_count == nr, "number without room");
	must_be_list(r, 0);

	cmd = ask_during(r, nr, open_another, EMSGSIZE);
	must(r, cmd.out_owner_count == nr + 1, "number with the new file");
	must_be_list(r, nr / FLEXMEM_VIEW_OWNERS * FLEXMEM_VIEW_OWNERS);
	native_close(crowd[ARRAY_SIZE(crowd) - 1]);
	cmd = ask_during(r, nr + 1, open_another, 0);
	must(r, cmd.out_owner_count == nr + 1 && cmd.out_clients == nr - 1,
	     "list with the new file");
	must_be_list(r, nr + 1);
	cmd = ask_during(r, nr + 1, close_crowd, 0);
	must(r, cmd.out_owner_count == FLEXMEM_VIEW_OWNERS,
	     "list without the files that were closed");
	must_be_list(r, FLEXMEM_VIEW_OWNERS);
}

/* Writes all accounts to the list. The root's is the first. */
static void list_all(struct run *r)
{
	struct flexmem_snapshot cmd = ask_for(ARRAY_SIZE(list));

	CALL(r, SNAPSHOT, &cmd);
}

/* Writes the accounts of file 0's cgroup and of file 0 to the list. */
static void list_own(struct run *r)
{
	struct flexmem_snapshot cmd = ask_for(2);

	cmd.flags = FLEXMEM_SNAPSHOT_OWN;
	CALL(r, SNAPSHOT, &cmd);
}

/*
 * A request that is too large for each device counts for the file and for its cgroup.
 * The file's opener sees only what failed in the file.
 */
static void run_failures(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 1ULL << 50);
	u64 most = FLEXMEM_REASON_REGION_SIZE, old;

	list_own(r);
	must(r, !list[1].failures[most], "failures of a new file");
	list_all(r);
	old = list[0].failures[most];
	FAILS(r, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_reason == most, "reason");
	list_all(r);
	must(r, list[0].failures[most] == old + 1, "failures of the cgroup");
	list_own(r);
	must(r, list[1].failures[most] == 1, "failures of the file");
	must(r, !list[0].failures[most], "failures of others");
}

#define WAITERS 3

/**
 * struct waiting - files whose events tasks wait for
 * @file: the files; NULL: closed
 * @entry: stands for a task that waits for events of the file
 * @woken: how often it was woken
 */
static struct waiting {
	struct file *file[WAITERS];
	struct wait_queue_entry entry[WAITERS];
	unsigned int woken[WAITERS];
} waiting;

static struct flexmem_listener *listener_of(unsigned int i)
{
	struct flexmem_file *file = waiting.file[i]->private_data;

	return &file->client.listener;
}

static int note_wakeup(struct wait_queue_entry *entry, unsigned int mode,
		       int flags, void *key)
{
	waiting.woken[entry - waiting.entry]++;
	return 0;
}

static void wait_no_more(unsigned int i)
{
	remove_wait_queue(&listener_of(i)->readers, &waiting.entry[i]);
	native_close(waiting.file[i]);
	waiting.file[i] = NULL;
}

/*
 * Wakes the readers of all files. @meanwhile is called in the first pause, when those
 * of the oldest file were woken.
 */
static void wake_while(struct run *r, void (*meanwhile)(void))
{
	struct flexmem_file *file;
	unsigned int i;

	memset(&waiting, 0, sizeof(waiting));
	for (i = 0; i < WAITERS; i++) {
		waiting.file[i] = native_open(world_minor(1), O_RDWR);
		init_waitqueue_func_entry(&waiting.entry[i], note_wakeup);
		add_wait_queue(&listener_of(i)->readers, &waiting.entry[i]);
	}
	file = waiting.file[0]->private_data;
	native_settle_work();
	__atomic_store_n(&during_pause, meanwhile, __ATOMIC_RELEASE);
	flexmem_pressure_wake(&file->fdev->table.accounts);
	must(r, !__atomic_load_n(&during_pause, __ATOMIC_ACQUIRE),
	     "pause between two files");
	for (i = 0; i < WAITERS; i++)
		if (waiting.file[i])
			wait_no_more(i);
}

static void close_first(void)
{
	wait_no_more(0);
}

static void unbind_function(void)
{
	world_unbind(1);
}

/* Between two files other tasks may close files, and remove the device. */
static void run_pauses_of_wakeups(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 4 * SZ_1M);

	/* No file has an event. The removal is news for each of them. */
	wake_while(r, unbind_function);
	must(r, waiting.woken[0] && waiting.woken[1] && waiting.woken[2],
	     "files of a device that was removed");
	world_bind(1);
	open_file(r, 1);
	while (r->nr[1] < RUN_HANDLES &&
	       !native_ioctl(r->file[1], FLEXMEM_IOCTL_ALLOC, &cmd))
		r->handle[1][r->nr[1]++] = cmd.out_handle;
	native_time_advance(msecs_to_jiffies(FLEXMEM_EVENT_MS));
	native_settle_work();
	/* Each new file has the level as its event. File 1 is woken before them. */
	wake_while(r, close_first);
	must(r, !waiting.woken[0] && waiting.woken[1] == 1 &&
	     waiting.woken[2] == 1, "files of which one was closed");
}

const struct sequence account_corners[] = {
	{ "files of which some are being woken", NULL, run_pauses_of_wakeups },
	{ "event when an ALLOC may succeed", NULL, run_events },
	{ "reservation of a removed cgroup", NULL, run_reserve_again },
	{ "many owners", prepare, run_many_owners },
	{ "failures by reason", prepare, run_failures },
	{}
};
