// SPDX-License-Identifier: GPL-2.0
/*
 * The sequences of calls for the tests with faults and with interference. A
 * step is taken only if all steps before it succeeded. Each step notes the
 * allocations that must exist now. A failed call must not have changed accounts
 * or allocations.
 */
#include "shim/internal.h"

#include "faults.h"

static u8 data[100000], copy[100000];

/* Compares the charges and limits of owners, not the device's memory. */
static bool same_owner(const struct flexmem_owner_entry *a,
		       const struct flexmem_owner_entry *b)
{
	return a->kind == b->kind && a->id == b->id && a->bytes == b->bytes &&
	       a->orphaned == b->orphaned && a->handles == b->handles &&
	       a->slots == b->slots &&
	       !memcmp(a->limit, b->limit, sizeof(a->limit));
}

static bool same_picture(const struct picture *a, const struct picture *b)
{
	unsigned int i, nr = a->view.sum.out_owner_count;

	if (nr != b->view.sum.out_owner_count ||
	    a->view.sum.out_owned != b->view.sum.out_owned ||
	    a->view.sum.out_orphaned != b->view.sum.out_orphaned)
		return false;
	for (i = 0; i < nr; i++)
		if (!same_owner(&a->owner[i], &b->owner[i]))
			return false;
	return true;
}

/*
 * Whether a call of a killed caller may have had an effect, because it was
 * carried out in part, or by the worker.
 */
static bool may_be_done(unsigned int cmd, long rc)
{
	return rc == -EINTR && fatal_signal_pending(current) &&
	       (cmd == FLEXMEM_IOCTL_ALLOC_BATCH ||
		cmd == FLEXMEM_IOCTL_FREE_BATCH ||
		cmd == FLEXMEM_IOCTL_SET_LIMIT ||
		cmd == FLEXMEM_IOCTL_RESERVE);
}

/*
 * Values that no reply has. If they are still there after a call, the command
 * wrote no reply.
 */
#define NOT_TOLD (~0ULL)
#define NO_REASON (~0U)

static void prepare_reply(unsigned int cmd, void *arg)
{
	struct flexmem_reserve *reserve = arg;
	struct flexmem_trim *trim = arg;

	if (cmd == FLEXMEM_IOCTL_TRIM)
		trim->out_bytes = NOT_TOLD;
	else if (cmd == FLEXMEM_IOCTL_RESERVE)
		reserve->out_reason = NO_REASON;
}

/*
 * TRIM and RESERVE write two replies. If they cannot write the first reply, they
 * do nothing.
 */
static void check_told(struct run *r, const char *at, unsigned int cmd,
		       const void *arg, bool no_memory, long rc)
{
	const struct flexmem_reserve *reserve = arg;
	const struct flexmem_trim *trim = arg;
	bool told = (cmd == FLEXMEM_IOCTL_TRIM &&
		     trim->out_bytes != NOT_TOLD) ||
		    (cmd == FLEXMEM_IOCTL_RESERVE &&
		     reserve->out_reason != NO_REASON);

	if (no_memory && !rc && !told)
		run_wrong(r, "the call succeeded without the user's memory", at, rc);
	if (rc == -EFAULT && told)
		run_wrong(r, "EFAULT after a reply", at, rc);
}

/* Calls through a file. A call that fails must have changed nothing. */
long run_call(struct run *r, unsigned int f, const char *at, unsigned int cmd,
	      void *arg)
{
	static struct picture before, after;
	unsigned long fail_at = current->fail_at;
	int failed = current->failed;
	long rc;

	current->fail_at = 0;
	world_picture(r->file[f], &before);
	prepare_reply(cmd, arg);
	current->fail_at = fail_at;
	rc = native_ioctl(r->file[f], cmd, arg);
	fail_at = current->fail_at;
	current->fail_at = 0;
	/*
	 * If the caller was killed, the worker completes the caller's command.
	 */
	if (fatal_signal_pending(current))
		native_quiesce();
	world_picture(r->file[f], &after);
	current->fail_at = fail_at;
	check_told(r, at, cmd, arg,
		   !failed && current->failed == 1 + NATIVE_USER, rc);
	if (rc && !points_take_away() && !may_be_done(cmd, rc) &&
	    !same_picture(&before, &after))
		run_wrong(r, "the call failed, and changed something", at, rc);
	return rc;
}

#define CALL(r, f, NAME, cmd) \
	run_good(r, #NAME, run_call(r, f, #NAME, FLEXMEM_IOCTL_##NAME, cmd), 0)
#define FAILS(r, f, NAME, cmd, error) \
	run_good(r, #NAME, run_call(r, f, #NAME, FLEXMEM_IOCTL_##NAME, cmd), \
		 error)

static bool open_file(struct run *r, unsigned int f)
{
	int minor = world_minor(1);
	struct file *file;

	if (minor < 0)
		return false;
	file = native_open(minor, O_RDWR | O_NONBLOCK);
	if (!run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		return false;
	r->file[f] = file;
	return true;
}

static void prepare_open(struct run *r)
{
	open_file(r, 0);
}

static void keep(struct run *r, unsigned int f, u32 handle)
{
	r->handle[f][r->nr[f]++] = handle;
}

static u32 last(struct run *r, unsigned int f)
{
	return r->nr[f] ? r->handle[f][r->nr[f] - 1] : 0;
}

static bool alloc_cmd(struct run *r, unsigned int f, struct flexmem_alloc cmd)
{
	bool done = CALL(r, f, ALLOC, &cmd);

	if (done)
		keep(r, f, cmd.out_handle);
	return done;
}

#define ALLOC(r, f, ...) alloc_cmd(r, f, CMD(alloc, ##__VA_ARGS__))

/* The memory is full, so ALLOC fails unless another task frees memory. */
static void refuse(struct run *r, struct flexmem_alloc cmd)
{
	if (!FAILS(r, 0, ALLOC, &cmd, ENOMEM) && cmd.out_handle)
		keep(r, 0, cmd.out_handle);
}

static bool free_last(struct run *r, unsigned int f)
{
	struct flexmem_free cmd = CMD(free, .handle = last(r, f));
	bool done = CALL(r, f, FREE, &cmd);

	if (done)
		r->nr[f]--;
	return done;
}

static void prepare_alloc(struct run *r)
{
	prepare_open(r);
	ALLOC(r, 0, .length = 20000, .flags = FLEXMEM_ALLOC_MAPPABLE);
}

static void run_open(struct run *r)
{
	open_file(r, 1);
}

static void run_ask(struct run *r)
{
	struct flexmem_region_entry region[16];
	struct flexmem_segment_entry segment[16];
	struct flexmem_owner_entry owner[16];
	struct flexmem_info info = CMD(info);
	struct flexmem_domain_info domain = CMD(domain_info);
	struct flexmem_lookup lookup = CMD(lookup, .handle = last(r, 0));
	struct flexmem_segments segments = CMD(segments,
		.entry_size = sizeof(segment[0]), .count = 16,
		.entries = (uintptr_t)segment);
	struct flexmem_snapshot snapshot = CMD(snapshot,
		.region_entry_size = sizeof(region[0]), .region_count = 16,
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(owner[0]), .owner_count = 16,
		.owners = (uintptr_t)owner);

	CALL(r, 0, INFO, &info);
	CALL(r, 0, DOMAIN, &domain);
	CALL(r, 0, LOOKUP, &lookup);
	CALL(r, 0, SEGMENTS, &segments);
	CALL(r, 0, SNAPSHOT, &snapshot);
	snapshot.flags = FLEXMEM_SNAPSHOT_OWN;
	CALL(r, 0, SNAPSHOT, &snapshot);
	snapshot.owner_count = 0;
	CALL(r, 0, SNAPSHOT, &snapshot);
	snapshot.region_count = 0;
	FAILS(r, 0, SNAPSHOT, &snapshot, EMSGSIZE);
}

static void run_alloc(struct run *r)
{
	if (ALLOC(r, 0, .length = 1000) && ALLOC(r, 0, .length = 2000) &&
	    free_last(r, 0))
		ALLOC(r, 0, .length = 3000, .flags = FLEXMEM_ALLOC_ZEROED);
}

static void run_alloc_kinds(struct run *r)
{
	ALLOC(r, 0, .length = 100, .flags = FLEXMEM_ALLOC_PROGRAM);
	ALLOC(r, 0, .length = 5000, .flags = FLEXMEM_ALLOC_MAPPABLE);
	ALLOC(r, 0, .length = 5000, .alignment = SZ_1M);
	ALLOC(r, 0, .length = 5000, .flags = FLEXMEM_ALLOC_GROWABLE);
}

static void run_alloc_all(struct run *r)
{
	while (r->nr[0] < 3 && ALLOC(r, 0, .length = 4 * SZ_1M))
		;
	refuse(r, CMD(alloc, .length = 1ULL << 40));
}

static void run_free_by_address(struct run *r)
{
	struct flexmem_lookup lookup = CMD(lookup, .handle = last(r, 0));
	struct flexmem_free cmd = CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS);

	if (!CALL(r, 0, LOOKUP, &lookup))
		return;
	cmd.address = lookup.out_address;
	if (CALL(r, 0, FREE, &cmd))
		r->nr[0]--;
	else
		FAILS(r, 0, FREE, &CMD(free, .handle = 4711), ENOENT);
}

/*
 * If an entry of a batch fails, the other entries are still carried out. The
 * batch fails only if nothing was done.
 */
static void run_batch(struct run *r)
{
	struct flexmem_alloc entry[5];
	struct flexmem_free gone[5];
	struct flexmem_batch cmd = CMD(batch, .entry_size = sizeof(entry[0]),
				       .count = 5, .entries = (uintptr_t)entry);
	unsigned int i, nr = 0;

	for (i = 0; i < 5; i++)
		entry[i] = CMD(alloc, .length = 1000 * i);
	if (!CALL(r, 0, ALLOC_BATCH, &cmd) && !fatal_signal_pending(current))
		return;
	if (cmd.out_done)
		run_good(r, "empty entry", -entry[0].out_error, EINVAL);
	for (i = 1; i < cmd.out_done; i++)
		if (run_good(r, "entry", -entry[i].out_error, 0))
			gone[nr++] = CMD(free, .handle = entry[i].out_handle);
	for (i = 0; i < nr; i++)
		keep(r, 0, gone[i].handle);
	cmd = CMD(batch, .entry_size = sizeof(gone[0]), .count = nr,
		  .entries = (uintptr_t)gone);
	if (!nr || (!CALL(r, 0, FREE_BATCH, &cmd) &&
		    !fatal_signal_pending(current)))
		return;
	/* If the caller was killed, only the first entries were freed. */
	r->nr[0] -= nr;
	for (i = cmd.out_done; i < nr; i++)
		keep(r, 0, gone[i].handle);
}

/*
 * The entry is longer than this kernel's, with a value in the part that the
 * kernel does not know.
 */
static void run_batch_long(struct run *r)
{
	struct {
		struct flexmem_alloc cmd;
		u64 more[2];
	} entry = { CMD(alloc, .length = 1), { 0, 1 } };
	struct flexmem_batch cmd = CMD(batch, .count = 1,
				       .entry_size = sizeof(entry),
				       .entries = (uintptr_t)&entry);

	entry.cmd.size = sizeof(entry);
	if (CALL(r, 0, ALLOC_BATCH, &cmd))
		run_good(r, "longer entry", -entry.cmd.out_error, E2BIG);
}

static void run_trim(struct run *r)
{
	struct flexmem_trim trim = CMD(trim);

	if (free_last(r, 0))
		CALL(r, 0, TRIM, &trim);
}

/* Reads or writes the newest allocation. */
static bool copy_bytes(struct run *r, unsigned int f, bool write, void *bytes)
{
	struct flexmem_rw cmd = CMD(rw, .handle = last(r, f),
				      .length = sizeof(data),
				      .data = (uintptr_t)bytes);

	return write ? CALL(r, f, WRITE, &cmd) : CALL(r, f, READ, &cmd);
}

static void run_copy(struct run *r)
{
	memset(data, 7, sizeof(data));
	if (ALLOC(r, 0, .length = sizeof(data)) &&
	    copy_bytes(r, 0, true, data) && copy_bytes(r, 0, false, copy) &&
	    memcmp(data, copy, sizeof(data)))
		run_wrong(r, "READ of other bytes than WRITE", "READ", 0);
}

static bool copy_range(struct run *r, u32 to, u64 to_offset, u32 from,
		       u64 length, int expected)
{
	struct flexmem_copy cmd = CMD(copy, .to = to, .from = from,
					    .to_offset = to_offset,
					    .length = length);

	return FAILS(r, 0, COPY, &cmd, expected);
}

/*
 * Copies half of one allocation to the first half of another one, and this
 * first half to the second half.
 */
static void run_copy_range(struct run *r)
{
	const u64 length = round_down(sizeof(data), 256);
	u32 from;

	memset(data, 7, sizeof(data));
	if (!ALLOC(r, 0, .length = sizeof(data)) ||
	    !copy_bytes(r, 0, true, data))
		return;
	from = last(r, 0);
	if (!ALLOC(r, 0, .length = sizeof(data)) ||
	    !copy_range(r, last(r, 0), 0, from, length / 2, 0) ||
	    !copy_range(r, last(r, 0), length / 2, last(r, 0), length / 2, 0))
		return;
	copy_range(r, last(r, 0), 128, last(r, 0), 256, EINVAL);
	copy_range(r, last(r, 0), 0, 4711, 128, ENOENT);
	copy_range(r, 4711, 0, last(r, 0), 128, ENOENT);
	if (copy_bytes(r, 0, false, copy) && memcmp(data, copy, length))
		run_wrong(r, "COPY of other bytes than WRITE", "COPY", 0);
}

/*
 * Waits until a fence has signalled and its callbacks have run. The callbacks run after the fence counts as signalled,
 * but under the lock of the fence.
 */
static void wait_for(struct dma_fence *fence)
{
	dma_fence_wait(fence, false);
	spin_lock_irq(fence->lock);
	spin_unlock_irq(fence->lock);
	native_settle_work();
}

/*
 * Frees both allocations while the device copies, and allocates the same memory
 * again.
 */
static void run_dispatch(struct run *r)
{
	struct sim_run job = {
		.program = SIM_PROGRAM_COPY,
		.fd = WORLD_FD,
		.size = sizeof(data),
		.latency_ms = 20,
	};
	struct dma_fence *fence;

	memset(data, 7, sizeof(data));
	if (!ALLOC(r, 0, .length = sizeof(data)) ||
	    !copy_bytes(r, 0, true, data))
		return;
	job.from = last(r, 0);
	if (!ALLOC(r, 0, .length = sizeof(data)))
		return;
	job.to = last(r, 0);
	if (!run_good(r, "run", world_run(r->file[0], &job, &fence), 0))
		return;
	if (free_last(r, 0))
		free_last(r, 0);
	wait_for(fence);
	dma_fence_put(fence);
	if (ALLOC(r, 0, .length = sizeof(data), .flags = FLEXMEM_ALLOC_ZEROED) &&
	    copy_bytes(r, 0, false, copy) && memchr_inv(copy, 0, sizeof(data)))
		run_wrong(r, "ZEROED memory that a program writes", "run", 0);
}

static void expect_clean(struct run *r)
{
	if (copy_bytes(r, 0, false, copy) && memchr_inv(copy, 0, sizeof(copy)))
		run_wrong(r, "bytes of another owner", "READ", 0);
}

/* Lets a file leave bytes behind that no other file may see. */
static void prepare_dirty(struct run *r)
{
	memset(data, 9, sizeof(data));
	prepare_open(r);
	if (open_file(r, 1) && ALLOC(r, 1, .length = sizeof(data)) &&
	    copy_bytes(r, 1, true, data))
		free_last(r, 1);
}

static void run_scrub(struct run *r)
{
	struct flexmem_trim trim = CMD(trim);

	/* If the first scrub failed, its range is in quarantine. */
	if (ALLOC(r, 0, .length = sizeof(data)))
		expect_clean(r);
	if (ALLOC(r, 0, .length = sizeof(data)))
		expect_clean(r);
	CALL(r, 0, TRIM, &trim);
}

static void run_background(struct run *r)
{
	native_close(r->file[1]);
	r->file[1] = NULL;
	/* This is long enough for the background scrub of the free blocks. */
	native_time_advance(20 * HZ);
	msleep(10);
	if (ALLOC(r, 0, .length = sizeof(data)))
		expect_clean(r);
}

static bool resize(struct run *r, u64 length, int expected)
{
	struct flexmem_resize cmd = CMD(resize, .handle = last(r, 0),
					.length = length);

	return FAILS(r, 0, RESIZE, &cmd, expected);
}

static void run_resize(struct run *r)
{
	if (resize(r, 64000, 0) && resize(r, 4096, 0) && resize(r, 4096, 0))
		resize(r, 12288, 0);
	resize(r, 1ULL << 40, EAGAIN);
}

/* Device-virtual addresses: reserve, bind, look up, unbind, free. */
static void run_spaces(struct run *r)
{
	struct flexmem_va_reserve range = CMD(va_reserve, .length = SZ_64K);
	struct flexmem_va_bind bind = CMD(va_bind, .access = FLEXMEM_VA_READ,
					  .length = SZ_64K);
	struct flexmem_va_lookup lookup = CMD(va_lookup);
	struct flexmem_va_unbind unbind = CMD(va_unbind);
	struct flexmem_va_free free = CMD(va_free);

	if (!ALLOC(r, 0, .length = SZ_64K, .alignment = SZ_64K) ||
	    !CALL(r, 0, VA_RESERVE, &range))
		return;
	bind.handle = last(r, 0);
	bind.address = range.out_address;
	if (!CALL(r, 0, VA_BIND, &bind))
		return;
	lookup.handle = bind.handle;
	CALL(r, 0, VA_LOOKUP, &lookup);
	unbind.address = range.out_address;
	if (!CALL(r, 0, VA_UNBIND, &unbind) || !CALL(r, 0, VA_BIND, &bind) ||
	    !CALL(r, 0, VA_UNBIND, &unbind))
		return;
	free.address = range.out_address;
	if (CALL(r, 0, VA_FREE, &free) && CALL(r, 0, VA_RESERVE, &range)) {
		/* close() unmaps this binding. */
		bind.address = range.out_address;
		CALL(r, 0, VA_BIND, &bind);
	}
}

static void run_resize_clean(struct run *r)
{
	if (ALLOC(r, 0, .length = 128) && resize(r, sizeof(data), 0))
		expect_clean(r);
}

/* ---- limits ---- */

static void run_limits(struct run *r)
{
	struct flexmem_resource_limit set = CMD(resource_limit,
				       .cgroup = cgroup_id(native_cgroup_root),
				       .resource = FLEXMEM_RESOURCE_BYTES,
				       .limit = SZ_1M);

	if (CALL(r, 0, SET_LIMIT, &set))
		refuse(r, CMD(alloc, .length = 2 * SZ_1M));
}

/*
 * A limit with FLEXMEM_LIMIT_ALL_FUNCTIONS still holds after a function was
 * unbound and bound again.
 */
static void run_limits_of_all(struct run *r)
{
	struct world_own own;
	struct flexmem_resource_limit set = CMD(resource_limit,
				       .flags = FLEXMEM_LIMIT_ALL_FUNCTIONS,
				       .cgroup = cgroup_id(native_cgroup_root),
				       .limit = SZ_1M);
	bool done = CALL(r, 0, SET_LIMIT, &set);

	if (done)
		refuse(r, CMD(alloc, .length = 2 * SZ_1M));
	world_unbind(1);
	r->nr[0] = 0;
	if (!run_good(r, "bind", world_bind(1), 0) || !open_file(r, 1))
		return;
	/* A command that has failed has set no limit. */
	world_own(&own);
	if (CALL(r, 1, SNAPSHOT, &own.cmd) &&
	    own.owner[0].limit[FLEXMEM_RESOURCE_BYTES] !=
	    (done ? SZ_1M : FLEXMEM_NO_LIMIT))
		run_wrong(r, "another limit", "SNAPSHOT",
			  own.owner[0].limit[FLEXMEM_RESOURCE_BYTES]);
}

/* The cgroup of the sequences about tenants, or NULL. */
struct cgroup *tenants;

static void run_open_below(struct run *r)
{
	struct cgroup *parent = native_cgroup_make(native_cgroup_root);
	struct file *file;

	tenants = native_cgroup_make(parent);
	native_cgroup_move(tenants);
	file = native_open(world_minor(1), O_RDWR | O_NONBLOCK);
	native_cgroup_move(native_cgroup_root);
	if (run_good(r, "open", PTR_ERR_OR_ZERO(file), 0) && !IS_ERR(file))
		native_close(file);
	native_cgroup_remove(tenants);
	tenants = NULL;
	native_cgroup_remove(parent);
}

static bool reserve(struct run *r, u32 count)
{
	struct flexmem_info info = CMD(info);
	struct flexmem_reserve cmd = CMD(reserve, .cgroup = cgroup_id(tenants),
					 .count = count);

	if (!CALL(r, 0, INFO, &info))
		return false;
	cmd.length = count ? info.out_fallback_sizes[0] : 0;
	return CALL(r, 0, RESERVE, &cmd);
}

/* Makes a reservation, shrinks it, and ends it. */
static void run_reserve(struct run *r)
{
	struct flexmem_trim trim = CMD(trim);

	tenants = native_cgroup_make(native_cgroup_root);
	if (reserve(r, 2) && ALLOC(r, 0, .length = 128)) {
		reserve(r, 1);
		CALL(r, 0, TRIM, &trim);
	}
	reserve(r, 0);
	native_cgroup_remove(tenants);
	tenants = NULL;
}

/* ---- memory pressure ---- */

static void prepare_full(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 4 * SZ_1M);

	prepare_open(r);
	while (r->nr[0] < RUN_HANDLES - 2 &&
	       !native_ioctl(r->file[0], FLEXMEM_IOCTL_ALLOC, &cmd))
		keep(r, 0, cmd.out_handle);
	/* Lets the worker deliver the event. */
	native_time_advance(msecs_to_jiffies(FLEXMEM_EVENT_MS));
	native_settle_work();
}

static void run_event(struct run *r)
{
	struct flexmem_event event;
	unsigned int tries;
	ssize_t n;

	for (tries = 0; tries < 2; tries++) {
		n = native_read(r->file[0], &event, sizeof(event));
		if (!run_good(r, "read", n < 0 ? n : 0, 0))
			continue;
		if (event.level != FLEXMEM_PRESSURE_CRITICAL &&
		    !points_take_away())
			run_wrong(r, "an event of another level", "read", n);
		break;
	}
}

static void run_again(struct run *r)
{
	refuse(r, CMD(alloc, .length = 4 * SZ_1M));
	if (free_last(r, 0))
		ALLOC(r, 0, .length = SZ_1M);
}

/*
 * Maps the first chunk of the newest allocation. An mmap() of one page too much
 * must fail.
 */
static bool map(struct run *r)
{
	struct flexmem_chunk_entry chunk[4];
	struct flexmem_lookup cmd = CMD(lookup, .handle = last(r, 0),
		.entry_size = sizeof(*chunk), .count = ARRAY_SIZE(chunk),
		.entries = (uintptr_t)chunk);
	struct vm_area_struct *vma;

	if (!CALL(r, 0, LOOKUP, &cmd))
		return false;
	if (cmd.out_map_offset != chunk->map_offset)
		run_wrong(r, "another offset in the list", "LOOKUP", 0);
	vma = native_mmap(r->file[0], chunk->map_offset,
			  chunk->length + PAGE_SIZE, VM_SHARED);
	if (!run_good(r, "mmap of too much", PTR_ERR_OR_ZERO(vma), EINVAL))
		return false;
	vma = native_mmap(r->file[0], chunk->map_offset, chunk->length,
			  VM_SHARED);
	if (!run_good(r, "mmap", PTR_ERR_OR_ZERO(vma), 0))
		return false;
	r->vma = vma;
	return true;
}

static bool touch(struct run *r, size_t offset)
{
	u8 byte = 1;
	long rc = native_touch(r->vma, offset, &byte, true);

	/* An access to mapped memory can report a failure only as SIGBUS. */
	return !rc || (current->failed || points_explain(rc) ? false :
				run_good(r, "access to a map", rc, 0));
}

static void unmap(struct run *r)
{
	if (r->vma)
		native_munmap(r->vma);
	r->vma = NULL;
}

static void run_map(struct run *r)
{
	struct vm_area_struct *child;

	if (!map(r) || !touch(r, 0))
		return;
	child = native_fork_map(r->vma);
	native_munmap(child);
	touch(r, 5000);
	resize(r, 128, EBUSY);
	if (free_last(r, 0))
		touch(r, 10000);
	unmap(r);
}

static void run_map_reset(struct run *r)
{
	u8 byte;

	if (!map(r) || !touch(r, 0))
		return;
	if (!run_good(r, "reset", world_reset(1), 0))
		return;
	if (!native_touch(r->vma, 0, &byte, false))
		run_wrong(r, "a map outlives a reset", "access", 0);
	free_last(r, 0);
	unmap(r);
}

/*
 * Makes an allocation of several chunks. @second receives the offset of the
 * second chunk.
 */
static bool alloc_chunks(struct run *r, u64 *second)
{
	struct flexmem_request request = {
		.size = 21 * SZ_1M,
		.alignment = PAGE_SIZE,
		.domains = 1,
		.first = 1,
		.flags = FLEXMEM_ALLOC_MAPPABLE,
		.chunks = 3,
	};
	struct flexmem_file *file = r->file[0]->private_data;
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_prepare(&file->client, &request);
	if (!run_good(r, "chunks", PTR_ERR_OR_ZERO(allocation), 0))
		return false;
	*second = flexmem_chunk_map_offset(allocation->chunks[1]);
	keep(r, 0, allocation->handle);
	flexmem_client_publish(&file->client, allocation);
	return true;
}

#define BEFORE_BORDER 70000

/* Writes across the border of two chunks. */
static bool write_border(struct run *r)
{
	struct flexmem_rw cmd = CMD(rw, .handle = last(r, 0),
				      .offset = 7 * SZ_1M - BEFORE_BORDER,
				      .length = sizeof(data),
				      .data = (uintptr_t)data);

	return CALL(r, 0, WRITE, &cmd);
}

/* Reads back what write_border() wrote, from byte @from on. */
static bool read_border(struct run *r, u64 from)
{
	u64 length = sizeof(data) - from;
	struct flexmem_rw cmd = CMD(rw, .handle = last(r, 0),
				      .offset = 7 * SZ_1M - BEFORE_BORDER + from,
				      .length = length, .data = (uintptr_t)copy);

	memset(copy, 0, sizeof(copy));
	if (!CALL(r, 0, READ, &cmd))
		return false;
	if (memcmp(data + from, copy, length))
		run_wrong(r, "READ of other bytes than WRITE", "READ", from);
	return true;
}

/* Maps bytes of the second chunk only. */
static void map_second(struct run *r, u64 offset)
{
	struct vm_area_struct *vma;
	u8 bytes[3];

	vma = native_mmap(r->file[0], offset + 6 * SZ_1M, 2 * SZ_1M, VM_SHARED);
	run_good(r, "mmap over the border", PTR_ERR_OR_ZERO(vma), EINVAL);
	vma = native_mmap(r->file[0], offset, 7 * SZ_1M, VM_SHARED);
	if (!run_good(r, "mmap", PTR_ERR_OR_ZERO(vma), 0))
		return;
	r->vma = vma;
	if (native_touch(r->vma, 0, bytes, false))
		touch(r, 0);
	else if (bytes[0] != data[BEFORE_BORDER])
		run_wrong(r, "a map of another chunk", "access", bytes[0]);
	if (free_last(r, 0))
		touch(r, 10000);
	unmap(r);
}

static void run_chunks(struct run *r)
{
	struct flexmem_lookup lookup = CMD(lookup);
	unsigned int i;
	u64 second;

	for (i = 0; i < sizeof(data); i++)
		data[i] = 1 + i % 251;
	if (!alloc_chunks(r, &second) || !write_border(r) ||
	    !read_border(r, 0) || !read_border(r, BEFORE_BORDER))
		return;
	resize(r, 128, EOPNOTSUPP);
	lookup.handle = last(r, 0);
	if (CALL(r, 0, LOOKUP, &lookup) && lookup.out_size != 21 * SZ_1M)
		run_wrong(r, "another size", "LOOKUP", lookup.out_size);
	if (!map(r))
		return;
	if (r->vma->vm_end - r->vma->vm_start != 7 * SZ_1M)
		run_wrong(r, "a map of more than a chunk", "mmap", 0);
	touch(r, 5000);
	unmap(r);
	map_second(r, second);
}

/* ---- the device ---- */

static void run_reset(struct run *r)
{
	run_good(r, "reset", world_reset(1), 0);
	ALLOC(r, 0, .length = 1000);
}

static void run_unbind(struct run *r)
{
	if (map(r))
		touch(r, 0);
	world_unbind(1);
	r->nr[0] = 0;
	if (run_good(r, "bind", world_bind(1), 0))
		open_file(r, 1);
}

static void run_suspend(struct run *r)
{
	world_suspend(1);
	world_resume(1);
	ALLOC(r, 0, .length = 1000);
}

static void run_capacity(struct run *r)
{
	world_set_capacity(1, 8 * SZ_1M);
	ALLOC(r, 0, .length = 2 * SZ_1M);
	world_set_capacity(1, 64 * SZ_1M);
	ALLOC(r, 0, .length = 4 * SZ_1M);
}

/*
 * Not part of the fault sweep: the driver keeps the owner of the new cgroup for
 * a while, which would look like a leak.
 */
const struct sequence open_below = {
	"open in a new cgroup", NULL, run_open_below,
};

const struct sequence sequences[] = {
	{ "open", prepare_open, run_open },
	{ "ask", prepare_alloc, run_ask },
	{ "alloc, the first", prepare_open, run_alloc },
	{ "alloc", prepare_alloc, run_alloc },
	{ "alloc, all kinds", prepare_open, run_alloc_kinds },
	{ "alloc until all is used", prepare_open, run_alloc_all },
	{ "free by address", prepare_alloc, run_free_by_address },
	{ "batch", prepare_open, run_batch },
	{ "batch, with a region there", prepare_alloc, run_batch },
	{ "batch of a longer entry", prepare_open, run_batch_long },
	{ "trim", prepare_alloc, run_trim },
	{ "copy", prepare_open, run_copy },
	{ "copy within the device", prepare_open, run_copy_range },
	{ "dispatch", prepare_open, run_dispatch },
	{ "scrub", prepare_dirty, run_scrub },
	{ "scrub in the background", prepare_dirty, run_background },
	{ "resize", prepare_alloc, run_resize },
	{ "resize into another's bytes", prepare_dirty, run_resize_clean },
	{ "addresses", prepare_alloc, run_spaces },
	{ "limits", prepare_alloc, run_limits },
	{ "limits of all functions", prepare_open, run_limits_of_all },
	{ "reserve", prepare_open, run_reserve },
	{ "event", prepare_full, run_event },
	{ "ALLOC that is tried again", prepare_full, run_again },
	{ "map", prepare_alloc, run_map },
	{ "map and reset", prepare_alloc, run_map_reset },
	{ "chunks", prepare_open, run_chunks },
	{ "chunks, with a region there", prepare_alloc, run_chunks },
	{ "reset", prepare_alloc, run_reset },
	{ "unbind", prepare_alloc, run_unbind },
	{ "suspend", prepare_alloc, run_suspend },
	{ "capacity", prepare_open, run_capacity },
	{}
};
