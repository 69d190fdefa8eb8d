// SPDX-License-Identifier: GPL-2.0
/*
 * Corner cases of the ABI: wrong calls, structs of other lengths, and other
 * tasks that run while a call accesses user memory. A user can delay such an
 * access for any time. No faults are injected.
 */
#include "corners.h"
#include "watch.h"

static u8 bytes[200000];

/* Unknown flags and reserved members that are not zero must be refused. */
static void run_flags(struct run *r)
{
	u32 handle = r->handle[0][0];

	FAILS(r, INFO, &CMD(info, .flags = 1), EOPNOTSUPP);
	FAILS(r, ALLOC, &CMD(alloc, .length = 1, .flags = 1u << 31), EOPNOTSUPP);
	/* FLEXMEM_ALLOC_WAIT had this value in an early ABI. */
	FAILS(r, ALLOC, &CMD(alloc, .length = 1, .flags = 1 << 4), EOPNOTSUPP);
	FAILS(r, ALLOC, &CMD(alloc, .length = 1,
			     .policy = FLEXMEM_POLICY_INTERLEAVE + 1), EOPNOTSUPP);
	FAILS(r, ALLOC, &CMD(alloc, .length = 1, .policy = U32_MAX), EOPNOTSUPP);
	FAILS(r, FREE, &CMD(free, .handle = handle, .flags = 4), EOPNOTSUPP);
	FAILS(r, ALLOC_BATCH, &CMD(batch, .flags = 1), EOPNOTSUPP);
	FAILS(r, LOOKUP, &CMD(lookup, .handle = handle, .flags = 1), EOPNOTSUPP);
	FAILS(r, LOOKUP, &CMD(lookup, .handle = handle, .__reserved = 1),
	      EOPNOTSUPP);
	FAILS(r, SEGMENTS, &CMD(segments, .flags = 1), EOPNOTSUPP);
	FAILS(r, TRIM, &CMD(trim, .flags = 1), EOPNOTSUPP);
	FAILS(r, READ, &CMD(rw, .handle = handle, .flags = 1), EOPNOTSUPP);
	FAILS(r, COPY, &CMD(copy, .to = handle, .flags = 1), EOPNOTSUPP);
	FAILS(r, SNAPSHOT, &CMD(snapshot, .flags = 2), EOPNOTSUPP);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .flags = 2), EOPNOTSUPP);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .flags = 1u << 31), EOPNOTSUPP);
	FAILS(r, RESERVE, &CMD(reserve, .flags = 1), EOPNOTSUPP);
	FAILS(r, RESIZE, &CMD(resize, .handle = handle, .flags = 1), EOPNOTSUPP);
}

static void run_arguments(struct run *r)
{
	struct flexmem_resize resize = CMD(resize, .handle = r->handle[0][0]);
	struct flexmem_event event;
	u32 handle = r->handle[0][0];

	FAILS(r, ALLOC, &CMD(alloc), EINVAL);
	FAILS(r, ALLOC, &CMD(alloc, .length = 1, .alignment = 3), EINVAL);
	FAILS(r, FREE, &CMD(free, .handle = handle, .address.offset = 128),
	      EINVAL);
	FAILS(r, SEGMENTS, &CMD(segments, .entry_size = 8), EINVAL);
	FAILS(r, SNAPSHOT, &CMD(snapshot, .region_entry_size = 8), EINVAL);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .scope = 3), EINVAL);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .scope = 1, .limit = SZ_1G,
				 .cgroup = cgroup_id(native_cgroup_root)),
	      EINVAL);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .scope = FLEXMEM_SCOPE_DEFAULT,
				 .cgroup = 1), EINVAL);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .cgroup = 1ull << 32), ENOENT);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .resource = 3,
				 .cgroup = cgroup_id(native_cgroup_root)),
	      EINVAL);
	FAILS(r, SET_LIMIT, &CMD(resource_limit, .cgroup = 0), ENOENT);
	FAILS(r, RESIZE, &resize, EINVAL);
	must(r, resize.out_size == 20480, "size of RESIZE that is refused");
	run_good(r, "read of too little",
		 native_read(r->file[0], &event, FLEXMEM_EVENT_MIN - 1), EINVAL);
}

static u32 nr_regions(struct run *r)
{
	struct flexmem_region_entry region[16];
	struct flexmem_snapshot cmd = CMD(snapshot, .region_count = 16,
		.region_entry_size = sizeof(region[0]),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));

	CALL(r, SNAPSHOT, &cmd);
	return cmd.out_region_count;
}

/* ALLOC refuses lengths that would overflow when they are rounded up. */
static void run_lengths(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = U64_MAX);

	FAILS(r, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_reason == FLEXMEM_REASON_REGION_SIZE &&
	     cmd.out_size == U64_MAX - 127, "answer for the longest ALLOC");
	must(r, cmd.out_regions && cmd.out_regions == nr_regions(r),
	     "number of regions");
	cmd = CMD(alloc, .length = U64_MAX, .flags = FLEXMEM_ALLOC_MAPPABLE);
	FAILS(r, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_size == U64_MAX - 4095, "the longest that is mappable");
}

static bool copy(struct run *r, u64 offset, u64 length, int error)
{
	struct flexmem_rw cmd = CMD(rw, .handle = r->handle[0][0],
				      .offset = offset, .length = length,
				      .data = (uintptr_t)bytes);

	return FAILS(r, READ, &cmd, error);
}

static void run_bounds(struct run *r)
{
	copy(r, 0, 20480, 0);
	copy(r, 20479, 1, 0);
	copy(r, 0, 20481, EINVAL);
	copy(r, 20479, 2, EINVAL);
	copy(r, 20480, 1, EINVAL);
	copy(r, U64_MAX, 1, EINVAL);
	copy(r, 1, U64_MAX, EINVAL);
	copy(r, 0, 0, EINVAL);
}

static void copy_range(struct run *r, u32 to, u64 to_offset, u32 from,
		       u64 length, int error)
{
	struct flexmem_copy cmd = CMD(copy, .to = to, .from = from,
					    .to_offset = to_offset,
					    .length = length, .out_done = 7);

	FAILS(r, COPY, &cmd, error);
	must(r, cmd.out_done == (error ? 0 : length), "bytes copied");
}

static void run_range_bounds(struct run *r)
{
	u32 large = r->handle[0][0], small = alloc(r, 0, 1000, 0);

	copy_range(r, small, 0, large, 1024, 0);
	copy_range(r, small, 128, large, 1024, EINVAL);
	copy_range(r, small, 0, large, 1152, EINVAL);
	copy_range(r, large, 0, small, 1152, EINVAL);
	copy_range(r, small, 0, large, 1000, EINVAL);
	copy_range(r, small, 0, large, 0, EINVAL);
	copy_range(r, small, U64_MAX - 127, large, 256, EINVAL);
	copy_range(r, large, 1024, large, 1024, 0);
	copy_range(r, large, 1024, large, 1152, EINVAL);
	copy_range(r, large, 0, large, 128, EINVAL);
}

/* A copy from or to a lost allocation fails. */
static void run_range_lost(struct run *r)
{
	u32 lost = r->handle[0][0], new;

	run_good(r, "reset", world_reset(1), 0);
	new = alloc(r, 0, 20000, 0);
	copy_range(r, new, 0, lost, 128, EIO);
	copy_range(r, lost, 0, new, 128, EIO);
	copy_range(r, new, 128, new, 128, 0);
}

static void no_map(struct run *r, u64 offset, size_t length, u64 flags,
		   int error)
{
	struct vm_area_struct *vma;

	vma = native_mmap(r->file[0], offset, length, flags);
	if (run_good(r, "mmap", PTR_ERR_OR_ZERO(vma), error) && !error) {
		r->vma = vma;
		must(r, !(vma->vm_flags & VM_MAYEXEC), "map that may be run");
		must(r, vma->vm_flags & VM_DONTEXPAND, "map that may grow");
	}
}

static unsigned int map_shift(struct run *r)
{
	struct flexmem_file *file = r->file[0]->private_data;

	return file->fdev->table.map_shift;
}

static void run_mmap(struct run *r)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = r->handle[0][0]);
	u64 offset;

	if (!CALL(r, LOOKUP, &cmd))
		return;
	offset = cmd.out_map_offset;
	no_map(r, offset, 4096, 0, EINVAL);
	no_map(r, offset, 4096, VM_SHARED | VM_EXEC, EPERM);
	no_map(r, offset + 20480, 4096, VM_SHARED, ENOENT);
	/* These offsets lie in slots that this VF does not have. */
	no_map(r, 63ull << map_shift(r), 4096, VM_SHARED, ENOENT);
	no_map(r, ~4095ull, 4096, VM_SHARED, ENOENT);
	no_map(r, offset, 24576, VM_SHARED, EINVAL);
	no_map(r, offset + 16384, 8192, VM_SHARED, EINVAL);
	no_map(r, offset + 4096, 16384, VM_SHARED, 0);
}

/*
 * Touches @page. The fault must map @nr pages from @first on, and no other
 * pages.
 */
static void touch_around(struct run *r, size_t page, size_t first, size_t nr)
{
	const unsigned long *pfn = r->vma->pfn;
	size_t i, total = (r->vma->vm_end - r->vma->vm_start) >> PAGE_SHIFT;
	size_t before = 0, after = 0;
	u8 byte;

	for (i = 0; i < total; i++)
		before += !!pfn[i];
	must(r, !native_touch(r->vma, page << PAGE_SHIFT, &byte, false),
	     "page that can be touched");
	for (i = 0; i < total; i++)
		after += !!pfn[i];
	must(r, after - before == nr, "number of pages of a fault");
	for (i = 0; i < nr; i++)
		must(r, pfn[first + i] == pfn[first] + i, "frames of a fault");
}

/*
 * One page fault maps the 2 MiB around its page, if the mapping covers the
 * whole 2 MiB.
 */
static void run_mmap_around(struct run *r)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = alloc(r, 0, 5 * SZ_1M,
						FLEXMEM_ALLOC_MAPPABLE));
	const size_t length = SZ_2M + 4 * PAGE_SIZE;
	unsigned long frame;
	u64 offset;

	if (!CALL(r, LOOKUP, &cmd))
		return;
	/* The mapping begins two pages before a multiple of 2 MiB. */
	offset = round_up(cmd.out_map_offset + 2 * PAGE_SIZE, SZ_2M) - 2 * PAGE_SIZE;
	no_map(r, offset, length, VM_SHARED, 0);
	touch_around(r, 1, 1, 1);
	touch_around(r, 2 + 7, 2, 512);
	touch_around(r, 514, 514, 1);
	frame = r->vma->pfn[2];
	must(r, r->vma->nr_huge == 1, "huge page");
	native_munmap(r->vma);
	/*
	 * Maps the same range at an address in user space that rules out a huge
	 * page.
	 */
	no_map(r, offset, length, VM_SHARED, 0);
	r->vma->vm_start += PAGE_SIZE;
	r->vma->vm_end += PAGE_SIZE;
	touch_around(r, 2 + 7, 2, 512);
	must(r, r->vma->pfn[2] == frame, "frame of another map");
	must(r, !r->vma->nr_huge, "huge page at a wrong address");
	touch_around(r, 0, 0, 1);
	native_munmap(r->vma);
	/* Maps a part of the allocation that contains no aligned 2 MiB. */
	no_map(r, offset + 3 * PAGE_SIZE, SZ_2M, VM_SHARED, 0);
	touch_around(r, 0, 0, 1);
}

/* The WRITE makes only the first page, so a fault maps no other page. */
static void run_mmap_alone(struct run *r)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = alloc(r, 0, 5 * SZ_1M,
						FLEXMEM_ALLOC_MAPPABLE));
	u8 bytes[128] = {};
	u64 offset;

	if (!CALL(r, LOOKUP, &cmd))
		return;
	offset = round_up(cmd.out_map_offset, SZ_2M);
	CALL(r, WRITE, &CMD(rw, .handle = cmd.handle,
			    .offset = offset - cmd.out_map_offset,
			    .length = sizeof(bytes),
			    .data = (uintptr_t)bytes));
	no_map(r, offset, SZ_2M, VM_SHARED, 0);
	touch_around(r, 0, 0, 1);
	must(r, !r->vma->nr_huge, "huge page of a piece with one frame");
}

/*
 * Structs and entries that are longer than this kernel's, and lists that are
 * too short.
 */
struct long_region {
	struct flexmem_region_entry entry;
	u64 more[2];
};

static void run_long_regions(struct run *r)
{
	struct long_region region[16];
	struct flexmem_snapshot cmd = CMD(snapshot, .region_count = 16,
		.region_entry_size = sizeof(region[0]),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));
	unsigned int i;

	memset(region, 0xff, sizeof(region));
	if (!CALL(r, SNAPSHOT, &cmd))
		return;
	must(r, cmd.out_region_count, "number of regions");
	for (i = 0; i < cmd.out_region_count; i++)
		must(r, region[i].entry.total && !region[i].more[0] &&
		     !region[i].more[1], "end of a longer entry");
	must(r, region[i].more[1] == ~0ull, "bytes behind the last entry");
	memset(region, 0xff, sizeof(region));
	cmd.region_count = cmd.out_region_count - 1;
	FAILS(r, SNAPSHOT, &cmd, EMSGSIZE);
	must(r, cmd.out_region_count == i, "number of regions without room");
	must(r, !memchr_inv(region, 0xff, sizeof(region)), "list without room");
}

struct long_alloc {
	struct flexmem_alloc cmd;
	u64 more[2];
};

static void run_long_batch(struct run *r)
{
	struct long_alloc entry[3] = {};
	struct flexmem_batch cmd = CMD(batch, .count = 3,
				       .entry_size = sizeof(entry[0]),
				       .entries = (uintptr_t)entry);
	unsigned int i;

	for (i = 0; i < 3; i++)
		entry[i].cmd = CMD(alloc, .length = 1000 * (i + 1));
	for (i = 0; i < 3; i++)
		entry[i].cmd.size = sizeof(entry[0]);
	entry[1].more[1] = 1;
	if (!CALL(r, ALLOC_BATCH, &cmd))
		return;
	must(r, entry[0].cmd.out_size == 1024 && !entry[0].cmd.out_error &&
	     entry[1].cmd.out_error == E2BIG && entry[1].more[1] == 1 &&
	     entry[2].cmd.out_size == 3072 && !entry[2].cmd.out_error,
	     "entries that are longer");
	r->handle[0][r->nr[0]++] = entry[0].cmd.out_handle;
	r->handle[0][r->nr[0]++] = entry[2].cmd.out_handle;
	cmd.entry_size = offsetof(struct flexmem_alloc, out_leaving) - 8;
	FAILS(r, ALLOC_BATCH, &cmd, EINVAL);
}

static void run_bad_entries(struct run *r)
{
	struct flexmem_free entry[2] = {
		CMD(free, .handle = r->handle[0][0]), CMD(free),
	};
	struct flexmem_alloc alloc = CMD(alloc, .length = 1,
					 .flags = 1 << 4);
	struct flexmem_batch cmd = CMD(batch, .count = 2,
				       .entry_size = sizeof(entry[0]),
				       .entries = (uintptr_t)entry);

	entry[1].size--;
	if (CALL(r, FREE_BATCH, &cmd))
		r->nr[0]--;
	must(r, !entry[0].out_error && entry[1].out_error == EINVAL,
	     "entry of another size than the batch says");
	cmd = CMD(batch, .count = 1, .entry_size = sizeof(alloc),
		  .entries = (uintptr_t)&alloc);
	CALL(r, ALLOC_BATCH, &cmd);
	must(r, alloc.out_error == EOPNOTSUPP, "entry with an unknown flag");
	cmd.count = 0;
	FAILS(r, ALLOC_BATCH, &cmd, EINVAL);
}

static unsigned int pauses;
void (*during_pause)(void);

typeof(native_cond_resched) __real_native_cond_resched,
			    __wrap_native_cond_resched;

/* The linker redirects calls of native_cond_resched() to this function. */
void __wrap_native_cond_resched(void)
{
	void (*call)(void) = __atomic_exchange_n(&during_pause, NULL,
						 __ATOMIC_ACQ_REL);

	__atomic_fetch_add(&pauses, 1, __ATOMIC_RELAXED);
	if (call)
		call();
	__real_native_cond_resched();
}

/* How often a batch lets other tasks run if all its @nr entries fail. */
static unsigned int pauses_of(struct run *r, u32 nr)
{
	struct flexmem_free entry[16];
	unsigned int i, before;

	for (i = 0; i < nr; i++)
		entry[i] = CMD(free);
	before = __atomic_load_n(&pauses, __ATOMIC_RELAXED);
	CALL(r, FREE_BATCH, &CMD(batch, .count = nr,
				 .entry_size = sizeof(entry[0]),
				 .entries = (uintptr_t)entry));
	return __atomic_load_n(&pauses, __ATOMIC_RELAXED) - before;
}

/*
 * A batch lets other tasks run after it has begun an entry, and again after it
 * has committed 16 entries.
 */
static void run_pauses(struct run *r)
{
	native_settle_work();
	must(r, pauses_of(r, 16) == pauses_of(r, 15) + 2,
	     "pauses of a batch");
}

/* Calls @function when a command touches user memory for the @nth time. */
static void during(unsigned int nth, void (*function)(void))
{
	current->meanwhile = function;
	current->meanwhile_at = nth;
}

static struct flexmem_info info;
static struct run *running;

static void change_size(void)
{
	info.size = 7;
}

static void reset_now(void)
{
	WARN_ON(world_reset(1));
}

/*
 * Resets the device. Then another file allocates the memory that the reset has
 * freed.
 */
static void reset_and_take(void)
{
	reset_now();
	alloc(running, 1, sizeof(bytes), 0);
}

static void unbind_now(void)
{
	WARN_ON(world_unbind(1));
}

static void run_double_fetch(struct run *r)
{
	info = CMD(info);
	during(2, change_size);
	CALL(r, INFO, &info);
	must(r, info.size == sizeof(info), "size that changes meanwhile");
}

static struct flexmem_resource_limit set_limit(struct run *r, u64 cgroup,
					       u64 limit, int error)
{
	struct flexmem_resource_limit cmd = CMD(resource_limit,
		.resource = FLEXMEM_RESOURCE_HANDLES, .cgroup = cgroup,
		.limit = limit, .out_limit = 7);

	FAILS(r, SET_LIMIT, &cmd, error);
	return cmd;
}

static void set_another(void)
{
	set_limit(running, cgroup_id(native_cgroup_root), 5, 0);
}

/*
 * The reply of SET_LIMIT contains the new limit. A refused SET_LIMIT writes no
 * reply.
 */
static void run_limit(struct run *r)
{
	struct world_own own;
	const u64 root = cgroup_id(native_cgroup_root);
	struct flexmem_resource_limit set;

	running = r;
	during(3, set_another);
	set = set_limit(r, root, 100, 0);
	must(r, set.out_limit == 100 && set.out_used == 1,
	     "answer of SET_LIMIT");
	world_own(&own);
	CALL(r, SNAPSHOT, &own.cmd);
	must(r, own.owner[0].limit[FLEXMEM_RESOURCE_HANDLES] == 100,
	     "limit that was set last");
	set = set_limit(r, ~0ULL, 100, ENOENT);
	must(r, set.out_limit == 7, "no answer of SET_LIMIT that is refused");
	set_limit(r, root, FLEXMEM_NO_LIMIT, 0);
}

/* A WRITE copies in pieces. After a reset the WRITE copies no further piece. */
static void run_reset_in_write(struct run *r)
{
	struct flexmem_rw cmd = CMD(rw, .length = sizeof(bytes),
				      .data = (uintptr_t)bytes);

	open_file(r, 1);
	cmd.handle = alloc(r, 0, sizeof(bytes), 0);
	running = r;
	during(4, reset_and_take);
	FAILS(r, WRITE, &cmd, EIO);
	must(r, cmd.out_done == FLEXMEM_RW_MAX, "bytes before the reset");
}

/* Another task resets the device in the middle of a page fault. */
static struct completion reset_done;

static int reset_task(void *unused)
{
	reset_now();
	complete(&reset_done);
	return 0;
}

static void reset_beside(void)
{
	kthread_run(reset_task, NULL, "reset");
	/* Lets the reset run until it must wait for the page fault. */
	msleep(10);
}

static void run_reset_in_fault(struct run *r)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = r->handle[0][0]);
	u8 byte = 0;

	if (!CALL(r, LOOKUP, &cmd))
		return;
	no_map(r, cmd.out_map_offset, cmd.out_size, VM_SHARED, 0);
	if (!r->vma)
		return;
	init_completion(&reset_done);
	watch_during_fault = reset_beside;
	/*
	 * The page fault may begin before the reset or after it. A page fault
	 * after the reset fails.
	 */
	native_touch(r->vma, 0, &byte, false);
	wait_for_completion(&reset_done);
	must(r, native_touch(r->vma, 0, &byte, false), "map after a reset");
}

static void run_reset_in_resize(struct run *r)
{
	struct flexmem_resize cmd = CMD(resize, .handle = r->handle[0][0],
					.length = 8192);

	during(2, reset_now);
	FAILS(r, RESIZE, &cmd, EIO);
}

static void run_unbind_in_read(struct run *r)
{
	u8 byte;

	during(1, unbind_now);
	FAILS(r, READ, &CMD(rw, .handle = r->handle[0][0], .length = 1,
			    .data = (uintptr_t)&byte), ENODEV);
}

static void run_unbind_in_batch(struct run *r)
{
	struct flexmem_alloc entry = CMD(alloc, .length = 1);

	during(3, unbind_now);
	CALL(r, ALLOC_BATCH, &CMD(batch, .count = 1,
				  .entry_size = sizeof(entry),
				  .entries = (uintptr_t)&entry));
	must(r, entry.out_error == ENODEV, "entry after the device has gone");
}

static void run_gone(struct run *r)
{
	struct flexmem_event event;

	must(r, !(native_poll(r->file[0]) & (EPOLLERR | EPOLLHUP)), "poll");
	unbind_now();
	must(r, (native_poll(r->file[0]) & (EPOLLERR | EPOLLHUP)) ==
	     (EPOLLERR | EPOLLHUP), "poll of a device that was removed");
	run_good(r, "read", native_read(r->file[0], &event, sizeof(event)),
		 ENODEV);
	no_map(r, 0, 4096, VM_SHARED, ENODEV);
	FAILS(r, INFO, &CMD(info), ENODEV);
}

static void run_interrupted(struct run *r)
{
	struct flexmem_event event;

	while (native_read(r->file[0], &event, sizeof(event)) > 0)
		;
	r->file[0]->f_flags = O_RDWR;
	current->interrupted = true;
	run_good(r, "read", native_read(r->file[0], &event, sizeof(event)),
		 ERESTARTSYS);
	native_revive();
	r->file[0]->f_flags = O_RDWR | O_NONBLOCK;
}

static unsigned int wakeups;

static int count_wakeup(struct wait_queue_entry *entry, unsigned int mode,
			int flags, void *key)
{
	__atomic_fetch_add(&wakeups, 1, __ATOMIC_RELAXED);
	return 0;
}

/* A failed read() must not wake up other readers. */
static void run_failed_reads(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 4 * SZ_1M);
	struct wait_queue_entry entry;
	struct flexmem_event event;
	struct flexmem_file *file;
	wait_queue_head_t *readers;
	unsigned int i;

	open_file(r, 0);
	file = r->file[0]->private_data;
	readers = &file->client.listener.readers;
	while (r->nr[0] < RUN_HANDLES &&
	       !native_ioctl(r->file[0], FLEXMEM_IOCTL_ALLOC, &cmd))
		r->handle[0][r->nr[0]++] = cmd.out_handle;
	native_time_advance(msecs_to_jiffies(FLEXMEM_EVENT_MS));
	native_settle_work();
	init_waitqueue_func_entry(&entry, count_wakeup);
	add_wait_queue(readers, &entry);
	wakeups = 0;
	for (i = 0; i < 100; i++)
		run_good(r, "read", native_read(r->file[0], NULL,
						sizeof(event)), EFAULT);
	native_settle_work();
	remove_wait_queue(readers, &entry);
	must(r, !wakeups, "wake-ups by reads that fail");
	open_file(r, 1);
	must(r, native_read(r->file[1], &event, FLEXMEM_EVENT_MIN + 8) ==
	     FLEXMEM_EVENT_MIN + 8 && event.size == FLEXMEM_EVENT_MIN + 8,
	     "size of an event in a shorter buffer");
	must(r, native_read(r->file[0], &event, sizeof(event)) == sizeof(event) &&
	     event.size == sizeof(event) &&
	     event.level == FLEXMEM_PRESSURE_CRITICAL,
	     "event that could not be read");
}

/* Calls on a file that was opened read-only change nothing. */
static void run_read_only(struct run *r)
{
	static const unsigned int looks = BIT(FLEXMEM_CMD_INFO) |
		BIT(FLEXMEM_CMD_LOOKUP) | BIT(FLEXMEM_CMD_SEGMENTS) |
		BIT(FLEXMEM_CMD_READ) |
		BIT(FLEXMEM_CMD_SNAPSHOT) | BIT(FLEXMEM_CMD_DOMAIN);
	static const unsigned int removed = BIT(0x06) | BIT(0x08) |
		BIT(0x09) | BIT(0x0b) | BIT(0x0f) | BIT(0x11);
	struct file *file = native_open(world_minor(1), O_RDONLY);
	u32 size = 0;
	int cmd;

	if (!run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		return;
	/*
	 * A command that changes something must return EBADF, because the file
	 * is read-only. Any other command must return EINVAL, because the size
	 * of its struct is 0. A number whose command was removed is ENOTTY.
	 */
	for (cmd = 0; cmd <= FLEXMEM_CMD_RESERVE; cmd++)
		run_good(r, "a command that changes nothing, or is refused",
			 native_ioctl(file, _IO(FLEXMEM_TYPE, cmd), &size),
			 removed & BIT(cmd) ? ENOTTY :
			 looks & BIT(cmd) ? EINVAL : EBADF);
	run_good(r, "INFO", native_ioctl(file, FLEXMEM_IOCTL_INFO, &CMD(info)),
		 0);
	run_good(r, "a map to write to",
		 PTR_ERR(native_mmap(file, 0, PAGE_SIZE, VM_SHARED | VM_WRITE)),
		 EACCES);
	run_good(r, "a map to read from",
		 PTR_ERR(native_mmap(file, 0, PAGE_SIZE, VM_SHARED | VM_READ)),
		 EINVAL);
	native_close(file);
}

/* A file that was opened write-only shows no byte of an allocation. */
static void run_write_only(struct run *r)
{
	struct flexmem_alloc made = CMD(alloc, .length = 128);
	u8 byte = 1;
	struct flexmem_rw copy = CMD(rw, .length = 1, .data = (uintptr_t)&byte);
	struct file *file = native_open(world_minor(1), O_WRONLY);

	if (!run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		return;
	r->file[1] = file;
	if (BY(r, 1, ALLOC, &made, 0)) {
		copy.handle = made.out_handle;
		r->handle[1][r->nr[1]++] = made.out_handle;
		BY(r, 1, WRITE, &copy, 0);
		BY(r, 1, READ, &copy, EBADF);
	}
	BY(r, 1, INFO, &CMD(info), 0);
}

/*
 * An alignment above a page is charged: no other allocation gets the rest of such
 * a unit in a suitable place. A RESIZE does not get around it.
 */
static void run_aligned(struct run *r)
{
	struct flexmem_resize shorter = CMD(resize, .length = 1);
	struct flexmem_alloc page, unit, wrong;

	alloc_by(r, CMD(alloc, .length = 128, .alignment = PAGE_SIZE), 0, &page);
	alloc_by(r, CMD(alloc, .length = 129, .alignment = SZ_64K), 0, &unit);
	alloc_by(r, CMD(alloc, .length = 129, .alignment = 3 * PAGE_SIZE), EINVAL,
		 &wrong);
	must(r, wrong.out_size == 256, "an alignment that cannot be is no unit");
	if (r->wrong || !page.out_handle || !unit.out_handle)
		return;
	must(r, page.out_size == 128, "alignment of a page");
	must(r, unit.out_size == SZ_64K, "alignment above a page");
	shorter.handle = unit.out_handle;
	if (CALL(r, RESIZE, &shorter))
		must(r, shorter.out_size == SZ_64K, "size after a RESIZE");
}

const struct sequence corners[] = {
	{ "file that is open for reading only", prepare, run_read_only },
	{ "file that is open for writing only", prepare, run_write_only },
	{ "alignment that is charged", prepare, run_aligned },
	{ "unknown flags", prepare, run_flags },
	{ "wrong arguments", prepare, run_arguments },
	{ "the longest lengths", prepare, run_lengths },
	{ "bounds of a copy", prepare, run_bounds },
	{ "bounds of a copy within the device", prepare, run_range_bounds },
	{ "copy of lost allocations", prepare, run_range_lost },
	{ "bounds of a map", prepare, run_mmap },
	{ "neighbours in a map", prepare, run_mmap_around },
	{ "frame without neighbours in a map", prepare, run_mmap_alone },
	{ "longer regions", prepare, run_long_regions },
	{ "longer batch", prepare, run_long_batch },
	{ "bad entries", prepare, run_bad_entries },
	{ "pauses of a batch", prepare, run_pauses },
	{ "size that changes meanwhile", prepare, run_double_fetch },
	{ "SET_LIMIT", prepare, run_limit },
	{ "reset in the middle of a write", prepare, run_reset_in_write },
	{ "reset in the middle of a page fault", prepare, run_reset_in_fault },
	{ "reset at the beginning of a resize", prepare, run_reset_in_resize },
	{ "unbind at the beginning of a read", prepare, run_unbind_in_read },
	{ "unbind at the beginning of a batch", prepare, run_unbind_in_batch },
	{ "device that was removed", prepare, run_gone },
	{ "interrupted", prepare, run_interrupted },
	{ "reads that fail", NULL, run_failed_reads },
	{}
};
