// SPDX-License-Identifier: GPL-2.0
/*
 * Bounds: what one tenant has costs another tenant nothing. Counts the steps of
 * calls while a tenant has very many allocations behind a fence, of an ALLOC that
 * fails with as many regions and holes as it may look at, and those with a spinlock
 * held while very many files are open. Prints TAP.
 *
 * usage: bounds [-f]
 *	-f	100,000 open files instead of 10,000
 */
#include "shim/internal.h"

#include <linux/dma-fence.h>

#include "block/spare.h"
#include "count.h"
#include "ioctl.h"
#include "world.h"

#define FEW 1			/* allocations behind one fence */
#define MANY 300000
#define MOST_IN_CALLBACK 16	/* list operations, each with a branch at most */
#define MOST_TIMES 10		/* of an ALLOC's steps without the others */

#define REGIONS 64
#define UNIT SZ_64K		/* alignment of the ALLOC that fails */
/* Of that ALLOC. Native code has a branch in each four or five instructions. */
#define MOST_STEPS (STEPS_OF_A_BRANCH > 1 ? 100000 : 22000)

#define FEW_FILES 100
#define MANY_FILES 10000
#define MOST_FILES 100000
#define TIMES 2			/* most growth of the steps with a spinlock held */

static unsigned int results, failures;

static void must(bool is, const char *what)
{
	if (is)
		return;
	printf("# not so: %s\n", what);
	failures++;
}

#define MUST(is) must(is, #is)

static void result(unsigned int before, const char *what)
{
	printf("%s %u - %s\n", failures > before ? "not ok" : "ok", ++results,
	       what);
}

/* ---- a device that has as much memory as anyone asks for ---- */

static u64 next_base;
static u64 capacity = 1ull << 50;

static int give(void *priv, u64 size, struct flexmem_memory *mem)
{
	*mem = (struct flexmem_memory) {
		.id = mem->id, .base = next_base, .size = size,
	};
	next_base += size;
	return 0;
}

static int take_back(void *priv, const struct flexmem_memory *mem)
{
	return 0;
}

static int slot_set(void *priv, unsigned int slot,
		    const struct flexmem_memory *mem)
{
	return 0;
}

static int slot_clear(void *priv, unsigned int slot)
{
	return 0;
}

static int quiesce(void *priv)
{
	return 0;
}

static int say_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	*bytes = capacity;
	return 0;
}

static int scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		 u64 size)
{
	return 0;
}

static const struct flexmem_device_ops ops = {
	.acquire = give,
	.release = take_back,
	.quiesce = quiesce,
	.slot_set = slot_set,
	.slot_clear = slot_clear,
	.capacity = say_capacity,
	.scrub = scrub,
};

static struct flexmem_dev *fdev;
static struct device parent;

static void begin(const char *sizes)
{
	static const struct flexmem_device_desc desc = {
		.name = "bounds",
		.mode = FLEXMEM_MODE_VF,
		.slots = REGIONS,
		.granule = SZ_2M,
		.ops = &ops,
	};

	next_base = SZ_2M;
	parent = (struct device) {};
	device_initialize(&parent);
	WARN_ON(dev_set_name(&parent, "parent"));
	if (native_param_set("fallback_sizes", sizes) || native_module_init())
		abort();
	fdev = flexmem_device_register(&parent, &desc);
	if (IS_ERR(fdev))
		abort();
}

static void end(void)
{
	flexmem_device_unregister(fdev);
	native_module_exit();
}

static struct file *open_node(void)
{
	struct file *file = native_open(MINOR(fdev->dev.devt), O_RDWR);

	if (IS_ERR(file))
		abort();
	return file;
}

static struct flexmem_client *client_of(struct file *file)
{
	return &((struct flexmem_file *)file->private_data)->client;
}

static u32 allocate(struct file *file, u64 length)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = length);

	native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &cmd);
	return cmd.out_handle;
}

static void release(struct file *file, u32 handle)
{
	MUST(!native_ioctl(file, FLEXMEM_IOCTL_FREE,
			   &CMD(free, .handle = handle)));
}

/* ---- many allocations behind one fence ---- */

static DEFINE_SPINLOCK(fence_lock);

static const char *name(struct dma_fence *fence)
{
	return "bounds";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = name,
	.get_timeline_name = name,
};

static struct dma_fence *make_fence(void)
{
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		abort();
	dma_fence_init(fence, &fence_ops, &fence_lock,
		       dma_fence_context_alloc(1), 1);
	return fence;
}

static void add_fence(struct file *file, u32 handle, struct dma_fence *fence)
{
	struct flexmem_allocation *allocation =
		flexmem_client_allocation(client_of(file), handle);

	MUST(!IS_ERR(allocation));
	MUST(!flexmem_allocation_add_fence(allocation, fence));
	flexmem_allocation_put(allocation);
}

/* The number of steps of a FREE that could fail. */
static unsigned long points_of_free(struct file *file, u32 handle)
{
	unsigned long before = current->points;

	release(file, handle);
	return current->points - before;
}

/* The same for a close(). */
static unsigned long points_of_close(struct file *file)
{
	unsigned long before = current->points;

	native_close(file);
	return current->points - before;
}

/* FREE and close() allocate nothing for memory that waits for a fence. */
static void nothing_is_allocated_for_a_wait(void)
{
	unsigned int before = failures;
	struct dma_fence *fence;
	unsigned long points;
	struct file *file;
	u32 handle;

	begin("64M");
	fence = make_fence();
	file = open_node();
	points = points_of_free(file, allocate(file, 128));
	handle = allocate(file, 128);
	add_fence(file, handle, fence);
	MUST(points_of_free(file, handle) == points);
	allocate(file, 128);
	points = points_of_close(file);
	file = open_node();
	add_fence(file, allocate(file, 128), fence);
	MUST(points_of_close(file) == points);
	dma_fence_signal(fence);
	dma_fence_put(fence);
	native_settle_work();
	end();
	result(before, "FREE and close() allocate nothing for a wait");
}

/**
 * struct holder - a task that keeps the worker from a file
 * @turn: of the file
 * @held: it has the turn
 * @go: it shall end
 * @done: it has ended
 */
static struct holder {
	struct mutex *turn;
	struct completion held;
	struct completion go;
	struct completion done;
} holder;

static int hold(void *unused)
{
	mutex_lock(holder.turn);
	complete(&holder.held);
	wait_for_completion(&holder.go);
	mutex_unlock(holder.turn);
	complete(&holder.done);
	return 0;
}

static void begin_hold(struct file *file)
{
	holder.turn = &client_of(file)->account->turn;
	init_completion(&holder.held);
	init_completion(&holder.go);
	init_completion(&holder.done);
	native_kthread_run(hold, NULL, "holder");
	wait_for_completion(&holder.held);
}

static void end_hold(void)
{
	complete(&holder.go);
	wait_for_completion(&holder.done);
}

/* @signal: steps of the signal. @other: steps of another file's ALLOC then. */
static void count_behind(unsigned int nr, unsigned long *signal,
			 unsigned long *other)
{
	struct file *file, *neighbour;
	struct dma_fence *fence;
	unsigned int i;
	u32 handle;

	begin("64M");
	file = open_node();
	neighbour = open_node();
	/* So that the ALLOC that is counted needs no region. */
	handle = allocate(neighbour, 128);
	fence = make_fence();
	for (i = 0; i < nr; i++) {
		u32 behind = allocate(file, 128);

		add_fence(file, behind, fence);
		release(file, behind);
	}
	native_settle_work();
	MUST(client_of(file)->account->leaving_bytes == 128ull * nr);
	/* The worker waits, so that all is still to be done. */
	begin_hold(file);
	*signal = 0;
	COUNT(*signal, dma_fence_signal(fence));
	MUST(!list_empty(&client_of(file)->account->ready));
	*other = 0;
	for (i = 0; i < 3; i++) {
		u32 more;

		COUNT(*other, more = allocate(neighbour, 128));
		release(neighbour, more);
	}
	MUST(!list_empty(&client_of(file)->account->ready));
	end_hold();
	native_settle_work();
	MUST(!client_of(file)->account->leaving_bytes);
	dma_fence_put(fence);
	release(neighbour, handle);
	native_close(neighbour);
	native_close(file);
	end();
}

static void a_fence_of_many_allocations(void)
{
	unsigned long signal[2], other[2];
	unsigned int before = failures;
	char what[200];

	count_behind(FEW, &signal[0], &other[0]);
	count_behind(MANY, &signal[1], &other[1]);
	result(before, "freed memory waits for a fence");
	before = failures;
	MUST(signal[1] <= signal[0] + MOST_IN_CALLBACK * STEPS_OF_A_BRANCH);
	snprintf(what, sizeof(what),
		 "a fence signals: %lu " STEP_NAME " with %u allocations behind it, %lu with %u",
		 signal[0], FEW, signal[1], MANY);
	result(before, what);
	before = failures;
	MUST(other[1] <= MOST_TIMES * other[0]);
	snprintf(what, sizeof(what),
		 "another file's ALLOC then: %lu " STEP_NAME " with %u, %lu with %u",
		 other[0], FEW, other[1], MANY);
	result(before, what);
}

/* ---- an ALLOC that fails after a long search ---- */

/*
 * Fills each region with holes that are longer than @UNIT, but have no place for
 * it at a multiple of it.
 */
static void fill(struct file *file)
{
	static u32 hole[REGIONS * 600];
	unsigned int i, r, nr = 0;

	for (r = 0; r < REGIONS; r++) {
		MUST(allocate(file, 128));
		for (i = 0; i < SZ_64M / (2 * UNIT) - 1; i++) {
			hole[nr++] = allocate(file, 2 * UNIT - 256);
			MUST(allocate(file, 256));
		}
		MUST(allocate(file, 2 * UNIT - 128));
	}
	MUST(!allocate(file, 128));
	for (i = 0; i < nr; i++)
		release(file, hole[i]);
}

static void a_search_that_fails(void)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = UNIT,
				       .alignment = UNIT);
	unsigned int before = failures;
	unsigned long most = 0;
	struct file *file;
	char what[200];

	begin("64M");
	file = open_node();
	fill(file);
	COUNT(most, native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &cmd));
	MUST(cmd.out_error == ENOMEM);
	MUST(cmd.out_reason == FLEXMEM_REASON_ALIGNMENT);
	MUST(cmd.out_regions == REGIONS);
	MUST(most <= MOST_STEPS);
	native_close(file);
	end();
	snprintf(what, sizeof(what),
		 "an aligned ALLOC fails in %u regions: %lu " STEP_NAME,
		 REGIONS, most);
	result(before, what);
}

/* ---- many open files ---- */

/*
 * What @task does with a spinlock held: the most steps at one time, and the most
 * readers that it wakes.
 */
static struct held {
	struct task_struct *task;
	unsigned long since;
	unsigned long steps;
	unsigned int now;
	unsigned int woken;
} held;

static void note_spinlocks(bool is_held)
{
	if (current != held.task)
		return;
	if (is_held) {
		held.since = steps;
		held.now = 0;
		return;
	}
	held.steps = max(held.steps, steps - held.since);
	held.woken = max(held.woken, held.now);
}

static int count_wakeup(struct wait_queue_entry *entry, unsigned int mode,
			int flags, void *key)
{
	held.now++;
	return 0;
}

/**
 * struct crowd - the most at one time with a spinlock held, while files are open
 * @count: steps of the shrinker's count
 * @shrink: steps of the shrinker
 * @snapshot: steps of an administrator's SNAPSHOT
 * @wake: steps when an event wakes the readers of all files
 * @woken: readers that this wakes
 */
struct crowd {
	unsigned long count;
	unsigned long shrink;
	unsigned long snapshot;
	unsigned long wake;
	unsigned long woken;
};

#define COUNT_HELD(call) ({						\
	held = (struct held) { .task = current };			\
	native_note_spinlocks = note_spinlocks;				\
	call;								\
	native_note_spinlocks = NULL;					\
	held.steps;							\
})

static void snapshot(struct file *file, unsigned int nr)
{
	static struct flexmem_region_entry region[FLEXMEM_MAX_SLOTS];
	static struct flexmem_owner_entry owner[MOST_FILES + 1];
	struct flexmem_snapshot cmd = CMD(snapshot,
		.region_entry_size = sizeof(region[0]),
		.region_count = ARRAY_SIZE(region),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(owner[0]),
		.owner_count = ARRAY_SIZE(owner),
		.owners = (uintptr_t)owner);

	MUST(!native_ioctl(file, FLEXMEM_IOCTL_SNAPSHOT, &cmd));
	MUST(cmd.out_owner_count == nr + 1);
}

/* Fills all memory. Each file gets an event. */
static void fill_all(struct file *file)
{
	MUST(allocate(file, SZ_64M));
	native_time_advance(msecs_to_jiffies(FLEXMEM_EVENT_MS));
	native_settle_work();
}

static struct crowd count_among(unsigned int nr)
{
	static struct wait_queue_entry reader[MOST_FILES];
	static struct file *file[MOST_FILES];
	struct flexmem_listener *listener;
	struct crowd most;
	unsigned int i;

	capacity = SZ_64M;
	begin("64M");
	for (i = 0; i < nr; i++) {
		file[i] = open_node();
		/* Leaves objects in its stock. */
		release(file[i], allocate(file[i], 128));
		listener = &client_of(file[i])->listener;
		init_waitqueue_func_entry(&reader[i], count_wakeup);
		add_wait_queue(&listener->readers, &reader[i]);
	}
	most.snapshot = COUNT_HELD(snapshot(file[0], nr));
	most.count = COUNT_HELD(MUST(flexmem_stock_count() >= nr));
	most.shrink = COUNT_HELD(MUST(flexmem_stock_shrink(ULONG_MAX) >= nr));
	MUST(!flexmem_stock_count());
	fill_all(file[0]);
	/* The worker has called this, too. No file has read the event yet. */
	most.wake = COUNT_HELD(flexmem_pressure_wake(&fdev->table.accounts));
	most.woken = held.woken;
	for (i = 0; i < nr; i++) {
		listener = &client_of(file[i])->listener;
		remove_wait_queue(&listener->readers, &reader[i]);
		native_close(file[i]);
	}
	end();
	return most;
}

static void must_not_grow(const char *name, unsigned long few,
			  unsigned long many, unsigned int nr)
{
	unsigned int before = failures;
	char what[200];

	MUST(many <= TIMES * few);
	snprintf(what, sizeof(what),
		 "%s: %lu with %u open files, %lu with %u", name, few,
		 FEW_FILES, many, nr);
	result(before, what);
}

static void many_open_files(unsigned int nr)
{
	unsigned int before = failures;
	struct crowd few = count_among(FEW_FILES), many = count_among(nr);

	MUST(few.snapshot && few.shrink && few.wake);
	result(before, "files are open");
	must_not_grow("most " STEP_NAME " with a spinlock held, SNAPSHOT",
		      few.snapshot, many.snapshot, nr);
	must_not_grow("most " STEP_NAME " with a spinlock held, count of the shrinker",
		      few.count, many.count, nr);
	must_not_grow("most " STEP_NAME " with a spinlock held, shrinker",
		      few.shrink, many.shrink, nr);
	must_not_grow("most " STEP_NAME " with a spinlock held, event",
		      few.wake, many.wake, nr);
	before = failures;
	MUST(few.woken == 1 && many.woken == 1);
	result(before, "an event wakes the readers of one file after the other");
}

int main(int argc, char **argv)
{
	bool most = argc > 1 && !strcmp(argv[1], "-f");

	native_shim_init();
	if (native_param_set("order", "fill_first") ||
	    native_param_set("strategy", "first_fit") ||
	    native_param_set("max_regions", "64"))
		return 2;
	nothing_is_allocated_for_a_wait();
	a_fence_of_many_allocations();
	a_search_that_fails();
	/* The steps with a lock held are not those of one call. */
	if (STEPS_OF_A_BRANCH == 1)
		many_open_files(most ? MOST_FILES : MANY_FILES);
	printf("1..%u\n", results);
	return failures ? 1 : 0;
}
