// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of a tenant in the torture test. Each answer must be one that the
 * ABI lists for the call. EINTR is allowed only after a kill, and EFAULT only
 * after a wrong address. A file has notes of its handles. Only the task that
 * removes a handle from the notes frees the handle, so the handle must then be
 * valid. Other tasks may use the handle at the same time.
 */
#include "shim/internal.h"

#include "torture.h"

void tenant_answer(struct tenant *t, const char *what, long rc,
		   const int *allowed)
{
	int error = -rc;

	if (rc > 0 || error >= ARRAY_SIZE(torture_results))
		error = rc > 0 ? 0 : 139;
	atomic64_inc(&torture_results[error]);
	if (!error || error == ENODEV)
		return;
	if (error == EINTR && fatal_signal_pending(current))
		return;
	if (error == EFAULT && t->bad)
		return;
	for (; *allowed >= 0; allowed++)
		if (*allowed == error)
			return;
	shim_bug("tenant %u: %s answers %d, which it may not", t->number, what,
		 error);
}

/*
 * Makes a call. In one call of a hundred the struct extends beyond the task's
 * memory.
 */
long tenant_call(struct tenant *t, unsigned int cmd, void *arg, size_t size)
{
	void *end = native_user() + NATIVE_USER_SIZE - PAGE_SIZE;
	long rc;

	t->bad = chance(t, 100);
	if (!t->bad)
		return native_ioctl(t->file, cmd, arg);
	/*
	 * The part of the struct before the end of the memory is valid, so that
	 * the driver does not refuse it early.
	 */
	end -= min_t(size_t, draw(t, size), size - 1) & ~7UL;
	memcpy(end, arg, native_user() + NATIVE_USER_SIZE - PAGE_SIZE - end);
	rc = native_ioctl(t->file, cmd, end);
	if (!rc)
		shim_bug("a command succeeds without its struct");
	return rc;
}

bool torture_close;

static unsigned int nr_notes(void)
{
	return torture_close ? 3 : ARRAY_SIZE(((struct file *)NULL)->note);
}

/*
 * Removes a random handle from the file's notes. The notes are accessed without
 * ordering, so that they hide no race.
 */
static u32 take_note(struct tenant *t)
{
	unsigned int i = draw(t, nr_notes());

	return __atomic_exchange_n(&t->file->note[i], 0, RELAXED);
}

u32 tenant_read_note(struct tenant *t)
{
	unsigned int tries;
	u32 handle = 0;

	for (tries = 0; !handle && tries < 10; tries++)
		handle = READ_ONCE(t->file->note[draw(t, nr_notes())]);
	return handle;
}

static bool put_note(struct tenant *t, u32 handle)
{
	unsigned int i;
	u32 none;

	for (i = 0; i < nr_notes(); i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&t->file->note[i], &none,
						handle, false, RELAXED,
						RELAXED))
			return true;
	}
	return false;
}

/*
 * Returns an error that a call by handle may return in addition, for ANSWER():
 * ENOENT after a reset, otherwise 0. After a reset a new region may have the
 * number of a lost region. So a new allocation can have the address of a lost
 * one. Another task's FREE by that address then frees the new allocation, and
 * ends its handle.
 */
int tenant_gone_by_address(struct tenant *t)
{
	struct flexmem_file *private = t->file->private_data;

	return READ_ONCE(private->fdev->table.resets) ? ENOENT : 0;
}

/*
 * Frees a handle. If the device was removed, close() frees the allocation
 * instead.
 */
static void free_handle(struct tenant *t, u32 handle)
{
	struct flexmem_free cmd = CMD(free, .handle = handle);
	long rc;

	while (true) {
		rc = CALL(t, FREE, &cmd);
		ANSWER(t, "FREE", rc, EBUSY, tenant_gone_by_address(t));
		if ((rc != -EBUSY && rc != -EFAULT) || put_note(t, handle))
			break;
		/* Another task may be using the handle, so time must pass. */
		msleep(1);
	}
}

/* Frees a handle, if no other task has removed it from the notes. */
static void free_noted(struct tenant *t, u32 handle)
{
	unsigned int i;
	u32 noted;

	for (i = 0; i < nr_notes(); i++) {
		noted = handle;
		if (__atomic_compare_exchange_n(&t->file->note[i], &noted, 0,
						false, RELAXED, RELAXED)) {
			free_handle(t, handle);
			return;
		}
	}
}

void tenant_note(struct tenant *t, u32 handle)
{
	if (!put_note(t, handle))
		free_handle(t, handle);
}

/* Each byte must be zero or the file's tag. */
void tenant_check_bytes(struct tenant *t, const u8 *data, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (data[i] && data[i] != t->file->tag)
			shim_bug("tenant %u reads %#x where only %#x may be",
				 t->number, data[i], t->file->tag);
}

static void copy_some(struct tenant *t, u32 handle, bool write)
{
	u8 *data = native_user();
	struct flexmem_rw cmd = CMD(rw, .handle = handle,
				      .offset = draw(t, 4) * 128,
				      .length = 1 + draw(t, chance(t, 20) ?
							 100000 : 2000),
				      .data = (uintptr_t)data);
	long rc;

	memset(data, write ? t->file->tag : 0xee, cmd.length);
	rc = write ? CALL(t, WRITE, &cmd) : CALL(t, READ, &cmd);
	ANSWER(t, write ? "WRITE" : "READ", rc, ENOENT, EBUSY, EINVAL, EIO,
	       ETIMEDOUT, ENOMEM);
	if (!write && !rc)
		tenant_check_bytes(t, data, cmd.out_done);
}

static void do_copy(struct tenant *t)
{
	copy_some(t, tenant_read_note(t), chance(t, 2));
}

static long copy_range(struct tenant *t, u32 to, u64 to_offset, u32 from,
		       u64 from_offset, u64 length)
{
	struct flexmem_copy cmd = CMD(copy, .to = to, .from = from,
					    .to_offset = to_offset,
					    .from_offset = from_offset,
					    .length = length);
	long rc = CALL(t, COPY, &cmd);

	ANSWER(t, "COPY", rc, ENOENT, EBUSY, EINVAL, EIO, ETIMEDOUT);
	if (!rc && cmd.out_done != length)
		shim_bug("COPY is short and succeeds");
	return rc;
}

/* Copies within the file's allocations, so all bytes keep the file's tag. */
static void do_copy_range(struct tenant *t)
{
	u32 to = tenant_read_note(t), from = chance(t, 4) ? to : tenant_read_note(t);

	copy_range(t, to, draw(t, 8) * (chance(t, 20) ? 64 : 128), from,
		   draw(t, 8) * 128, draw(t, 40) * 128);
	copy_some(t, to, false);
}

/*
 * Copies bytes to an allocation that no other task knows. The allocation must
 * then have these bytes.
 */
static void copy_own(struct tenant *t, u32 handle)
{
	u8 *data = native_user();
	struct flexmem_rw cmd = CMD(rw, .handle = handle, .length = 128,
				      .data = (uintptr_t)data);

	memset(data, t->file->tag, 128);
	if (CALL(t, WRITE, &cmd) || copy_range(t, handle, 128, handle, 0, 128))
		return;
	cmd.offset = 128;
	if (!CALL(t, READ, &cmd) && memchr_inv(data, t->file->tag, 128))
		shim_bug("tenant %u: COPY of other bytes", t->number);
}

/* Runs device programs. They write the file's tag only. */
static void do_run(struct tenant *t)
{
	struct sim_run run = {
		.program = chance(t, 3) ? SIM_PROGRAM_COPY : SIM_PROGRAM_FILL,
		.to = tenant_read_note(t),
		.from = tenant_read_note(t),
		.to_offset = draw(t, 8) * 128,
		.from_offset = draw(t, 8) * 128,
		.size = 1 + draw(t, chance(t, 10) ? 100000 : 2000),
		.value = chance(t, 2) ? t->file->tag : 0,
		.latency_ms = chance(t, 3) ? 0 : draw(t, 100),
	};
	struct dma_fence *fence;
	long rc;

	t->bad = false;
	run.fd = FILES + t->number;
	rc = world_run(t->file, &run, &fence);
	ANSWER(t, "run", rc, ENOENT, EBUSY, EINVAL, EIO);
	if (rc)
		return;
	if (chance(t, 2))
		free_noted(t, run.to);
	if (chance(t, 4))
		dma_fence_wait(fence, true);
	dma_fence_put(fence);
}

static struct flexmem_alloc draw_alloc(struct tenant *t)
{
	static const u32 flags[] = {
		FLEXMEM_ALLOC_PROGRAM, FLEXMEM_ALLOC_MAPPABLE,
		FLEXMEM_ALLOC_ZEROED, FLEXMEM_ALLOC_GROWABLE,
	};
	static const u64 most[] = { 128, SZ_4K, SZ_64K, SZ_2M, 12 * SZ_1M };
	struct flexmem_alloc cmd = CMD(alloc);
	unsigned int i;

	cmd.length = 1 + draw(t, most[draw(t, ARRAY_SIZE(most))]);
	for (i = 0; i < ARRAY_SIZE(flags); i++)
		cmd.flags |= chance(t, 4) ? flags[i] : 0;
	if (chance(t, 4))
		cmd.alignment = 1ULL << draw(t, 22);
	tenant_draw_policy(t, &cmd);
	return cmd;
}

static void do_alloc(struct tenant *t)
{
	struct flexmem_alloc cmd = draw_alloc(t);
	long rc = CALL(t, ALLOC, &cmd);

	ANSWER(t, "ALLOC", rc, ENOMEM, EIO, ETIMEDOUT);
	if (rc)
		return;
	if (!cmd.out_handle)
		shim_bug("ALLOC without a handle");
	tenant_check_chunks(t, &cmd);
	/* No other task knows the handle yet, so the bytes can be checked. */
	if (chance(t, 3)) {
		copy_some(t, cmd.out_handle, false);
		copy_some(t, cmd.out_handle, true);
		if (cmd.out_size >= 256)
			copy_own(t, cmd.out_handle);
	}
	tenant_note(t, cmd.out_handle);
}

static void do_free(struct tenant *t)
{
	u32 handle = take_note(t);

	if (handle)
		free_handle(t, handle);
}

static void do_free_by_address(struct tenant *t)
{
	u32 handle = take_note(t);
	struct flexmem_lookup lookup = CMD(lookup, .handle = handle);
	struct flexmem_free cmd = CMD(free, .flags = FLEXMEM_FREE_BY_ADDRESS);
	long rc;

	if (!handle)
		return;
	rc = CALL(t, LOOKUP, &lookup);
	ANSWER(t, "LOOKUP", rc, tenant_gone_by_address(t));
	if (!rc) {
		cmd.address = lookup.out_address;
		rc = CALL(t, FREE, &cmd);
		/* After a reset the address may be unknown. */
		ANSWER(t, "FREE by address", rc, EBUSY, ENOENT);
	}
	if (rc && rc != -ENODEV)
		tenant_note(t, handle);
}

static void do_batch(struct tenant *t)
{
	struct flexmem_alloc entry[5];
	struct flexmem_batch cmd = CMD(batch, .entry_size = sizeof(entry[0]),
				       .count = 1 + draw(t, 5),
				       .entries = (uintptr_t)entry);
	unsigned int i;
	long rc;

	for (i = 0; i < cmd.count; i++)
		entry[i] = draw_alloc(t);
	rc = CALL(t, ALLOC_BATCH, &cmd);
	ANSWER(t, "ALLOC_BATCH", rc, ENOMEM);
	/* Entries that were carried out count, also after a signal. */
	if (rc && rc != -EINTR)
		return;
	for (i = 0; i < cmd.out_done; i++)
		if (!entry[i].out_error)
			tenant_note(t, entry[i].out_handle);
}

static void do_free_batch(struct tenant *t)
{
	struct flexmem_free entry[5];
	struct flexmem_batch cmd = CMD(batch, .entry_size = sizeof(entry[0]),
				       .entries = (uintptr_t)entry);
	unsigned int i;
	u32 handle;
	long rc;

	while (cmd.count < ARRAY_SIZE(entry) && (handle = take_note(t)))
		entry[cmd.count++] = CMD(free, .handle = handle);
	if (!cmd.count)
		return;
	rc = CALL(t, FREE_BATCH, &cmd);
	ANSWER(t, "FREE_BATCH", rc, ENOMEM);
	if (rc && rc != -EINTR)
		cmd.out_done = 0;
	for (i = 0; i < cmd.count && rc != -ENODEV; i++)
		if (i >= cmd.out_done || entry[i].out_error)
			tenant_note(t, entry[i].handle);
}

static void do_resize(struct tenant *t)
{
	struct flexmem_resize cmd = CMD(resize, .handle = tenant_read_note(t),
					.length = 1 + draw(t, chance(t, 4) ?
							   SZ_2M : SZ_64K));

	/* Only an allocation of one chunk can be resized. */
	ANSWER(t, "RESIZE", CALL(t, RESIZE, &cmd), ENOENT, EAGAIN, EBUSY,
	       ENOMEM, EIO, ETIMEDOUT, torture_memories ? EOPNOTSUPP : 0);
}

static void touch_some(struct tenant *t, struct vm_area_struct *vma)
{
	size_t size = vma->vm_end - vma->vm_start;
	unsigned int i;
	u8 byte = 0;

	for (i = 0; i < 4; i++) {
		/*
		 * Half of the accesses go to a few bytes that other tasks
		 * access too.
		 */
		size_t offset = draw(t, chance(t, 2) ? 16 : size);

		if (!native_touch(vma, offset, &byte, false))
			tenant_check_bytes(t, &byte, 1);
		byte = t->file->tag;
		native_touch(vma, offset, &byte, true);
	}
}

static void do_map(struct tenant *t)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = tenant_read_note(t));
	struct vm_area_struct *vma, *copy;
	long rc = CALL(t, LOOKUP, &cmd);

	ANSWER(t, "LOOKUP", rc, ENOENT);
	if (rc || !(cmd.out_flags & FLEXMEM_ALLOC_MAPPABLE))
		return;
	t->bad = false;
	vma = native_mmap(t->file, cmd.out_map_offset, cmd.out_size,
			  VM_SHARED | VM_READ | VM_WRITE |
			  (chance(t, 20) ? VM_EXEC : 0));
	rc = PTR_ERR_OR_ZERO(vma);
	ANSWER(t, "mmap", rc, ENOENT, EBUSY, EIO, EINVAL, EPERM);
	if (rc)
		return;
	touch_some(t, vma);
	if (chance(t, 3))
		do_free(t);
	if (chance(t, 3)) {
		copy = native_fork_map(vma);
		touch_some(t, copy);
		native_munmap(copy);
	}
	touch_some(t, vma);
	native_munmap(vma);
}

static void do_ask(struct tenant *t)
{
	struct flexmem_segment_entry segment[16];
	struct flexmem_segments segments = CMD(segments,
		.entry_size = sizeof(segment[0]), .count = draw(t, 17),
		.entries = (uintptr_t)segment);
	struct flexmem_info info = CMD(info);
	struct flexmem_domain_info domain = CMD(domain_info);
	struct seq_file m;
	long rc;

	ANSWER(t, "INFO", CALL(t, INFO, &info));
	rc = CALL(t, DOMAIN, &domain);
	ANSWER(t, "DOMAIN", rc, ENOMEM);
	if (!rc && (domain.out_free > domain.out_total ||
		    domain.out_largest_free > domain.out_free))
		shim_bug("more is free in a domain than it has");
	ANSWER(t, "SEGMENTS", CALL(t, SEGMENTS, &segments), EMSGSIZE, ENOMEM,
	       EOPNOTSUPP);
	native_fdinfo(t->file, &m);
}

/* The snapshot must have an owner entry for each open file. */
static bool has_clients(const struct flexmem_snapshot *cmd,
			const struct flexmem_owner_entry *owner)
{
	unsigned int i, nr = 0;

	for (i = 0; i < cmd->out_owner_count; i++)
		nr += owner[i].kind == FLEXMEM_OWNER_CLIENT;
	return nr == cmd->out_clients;
}

static void do_snapshot(struct tenant *t)
{
	struct flexmem_region_entry region[16];
	struct flexmem_owner_entry owner[64];
	struct flexmem_snapshot cmd = CMD(snapshot,
		.region_entry_size = sizeof(region[0]),
		.region_count = draw(t, 17), .regions = (uintptr_t)region,
		.owner_entry_size = sizeof(owner[0]),
		.owner_count = draw(t, 4) ? 64 : 0, .owners = (uintptr_t)owner,
		.flags = chance(t, 2) ? FLEXMEM_SNAPSHOT_OWN : 0);
	long rc = CALL(t, SNAPSHOT, &cmd);

	ANSWER(t, "SNAPSHOT", rc, EMSGSIZE, ENOMEM);
	if (!rc && cmd.out_free + cmd.out_owned + cmd.out_orphaned +
		   cmd.out_reserved + cmd.out_quarantined != cmd.out_total)
		shim_bug("SNAPSHOT does not add up");
	if (!rc && cmd.out_allocs - cmd.out_frees != cmd.out_allocated)
		shim_bug("SNAPSHOT has lost an allocation");
	if (!rc && cmd.owner_count && current->cred.admin && !cmd.flags &&
	    !has_clients(&cmd, owner))
		shim_bug("SNAPSHOT has other owners than open files");
}

/*
 * Checks that a command for administrators has succeeded only for an
 * administrator.
 */
static void for_admin(long rc)
{
	if (!rc && !current->cred.admin)
		shim_bug("a command for administrators works for another user");
}

static void do_limit(struct tenant *t)
{
	static const u64 values[] = { 0, 1, 4, SZ_1M, 16 * SZ_1M,
				      FLEXMEM_NO_LIMIT };
	struct flexmem_resource_limit set = CMD(resource_limit,
		.scope = draw(t, 3), .resource = draw(t, FLEXMEM_NR_RESOURCES),
		.flags = chance(t, 8) ? FLEXMEM_LIMIT_ALL_FUNCTIONS : 0);
	long rc;

	set.limit = chance(t, 2) ? FLEXMEM_NO_LIMIT :
				   values[draw(t, ARRAY_SIZE(values))];
	if (set.scope != FLEXMEM_SCOPE_DEFAULT)
		set.cgroup = cgroup_id(torture_cgroup[draw(t, CGROUPS)]);
	rc = CALL(t, SET_LIMIT, &set);
	ANSWER(t, "SET_LIMIT", rc, EPERM, ENOMEM, EINVAL);
	for_admin(rc);
}

/* Reserves a region for a cgroup, or ends its reservation. */
static void do_reserve(struct tenant *t)
{
	struct flexmem_info info = CMD(info);
	struct flexmem_reserve cmd = CMD(reserve,
		.cgroup = cgroup_id(torture_cgroup[draw(t, CGROUPS)]),
		.count = chance(t, 2));
	long rc;

	if (CALL(t, INFO, &info))
		return;
	if (cmd.count)
		cmd.length = info.out_fallback_sizes[draw(t, info.out_nr_fallback_sizes)];
	rc = CALL(t, RESERVE, &cmd);
	ANSWER(t, "RESERVE", rc, EPERM, EINVAL, ENOENT, EIO, ETIMEDOUT, ENOMEM);
	for_admin(rc);
}

static void do_trim(struct tenant *t)
{
	struct flexmem_trim cmd = CMD(trim);
	long rc = CALL(t, TRIM, &cmd);

	ANSWER(t, "TRIM", rc, EPERM, EIO, ETIMEDOUT, ENOMEM);
	for_admin(rc);
}

static void do_event(struct tenant *t)
{
	struct flexmem_event event;

	t->bad = false;
	native_poll(t->file);
	ANSWER(t, "read", native_read(t->file, &event, sizeof(event)), EAGAIN);
}

/* Calls a random command number with random bytes. */
static void do_nonsense(struct tenant *t)
{
	u8 *at = native_user();
	size_t i, size = 8 + 8 * draw(t, 20);
	long rc;

	for (i = 0; i < size; i++)
		at[i] = chance(t, 3) ? draw(t, 256) : 0;
	*(u32 *)at = chance(t, 4) ? draw(t, 5000) : size;
	t->bad = true;
	/*
	 * Makes ALLOC and FREE invalid, because the test would not note the
	 * handles that they make or free.
	 */
	i = draw(t, 40);
	if (i == FLEXMEM_CMD_ALLOC || i == FLEXMEM_CMD_ALLOC_BATCH ||
	    i == FLEXMEM_CMD_FREE || i == FLEXMEM_CMD_FREE_BATCH)
		*(u32 *)(at + 4) |= 1u << 31;
	current->wild = true;
	rc = native_ioctl(t->file, _IO(FLEXMEM_TYPE, i), at);
	current->wild = false;
	ANSWER(t, "nonsense", rc, ENOTTY, EINVAL, E2BIG, EOPNOTSUPP, EPERM,
	       ENOENT, EBUSY, EIO, ETIMEDOUT, ENOMEM, EMSGSIZE, EAGAIN, ENOSPC,
	       ENXIO, EEXIST, EMFILE);
}

/*
 * Only an administrator may have opened a PF, unless the parameter pf_open
 * allows others.
 */
static void check_open(struct tenant *t, struct file *file)
{
	struct flexmem_table *table;

	if (current->cred.admin) {
		if (PTR_ERR_OR_ZERO(file) == -EPERM)
			shim_bug("tenant %u: no node for the administrator",
				 t->number);
		return;
	}
	if (IS_ERR(file))
		return;
	table = &((struct flexmem_file *)file->private_data)->fdev->table;
	if (table->function.mode == FLEXMEM_MODE_PF &&
	    table->settings.pf_open == FLEXMEM_PF_OPEN_ADMIN)
		shim_bug("tenant %u: a PF opens for a user who is no administrator",
			 t->number);
}

static void open_fd(struct tenant *t)
{
	static unsigned int tags;
	int minor = world_minor(draw(t, WORLD_FUNCTIONS));
	struct file *file;

	t->bad = false;
	if (minor < 0)
		return;
	file = native_open(minor, O_RDWR | O_NONBLOCK);
	ANSWER(t, "open", PTR_ERR_OR_ZERO(file), ENXIO, ENOMEM, EPERM,
	       EMFILE);
	check_open(t, file);
	if (IS_ERR(file))
		return;
	file->tag = 1 + __atomic_fetch_add(&tags, 1, RELAXED) % 254;
	if (!native_install(t->fd, file))
		native_close(file);
}

static void close_fd(struct tenant *t)
{
	struct file *file = native_uninstall(t->fd);

	if (file)
		native_close(file);
}

static const struct {
	void (*step)(struct tenant *t);
	unsigned int weight;
} steps[] = {
	{ do_alloc, 30 }, { do_free, 22 }, { do_free_by_address, 5 },
	{ do_batch, 3 }, { do_free_batch, 4 }, { do_resize, 8 },
	{ do_copy, 10 }, { do_copy_range, 5 }, { do_run, 8 }, { do_map, 6 },
	{ tenant_space, 12 },
	{ do_ask, 3 },
	{ do_snapshot, 2 }, { do_limit, 2 }, { do_trim, 1 }, { do_reserve, 1 }, { do_event, 2 },
	{ do_nonsense, 3 },
};

static void random_step(struct tenant *t)
{
	unsigned int i, sum = 0;
	u64 n;

	if (torture_close && chance(t, 6)) {
		do_trim(t);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		sum += steps[i].weight;
	n = draw(t, sum);
	for (i = 0; n >= steps[i].weight; i++)
		n -= steps[i].weight;
	steps[i].step(t);
}

/**
 * tenant_step - one call of a tenant
 * @t: tenant, run by the current task
 */
void tenant_step(struct tenant *t)
{
	bool gone;

	native_revive();
	t->fd = draw(t, torture_close ? 2 : FILES);
	t->file = native_fdget(t->fd);
	if (!t->file) {
		open_fd(t);
		return;
	}
	random_step(t);
	gone = native_poll(t->file) & EPOLLHUP;
	native_close(t->file);
	if (chance(t, gone ? 5 : 100))
		close_fd(t);
}
