// SPDX-License-Identifier: GPL-2.0
/* Maps, copies and events. */
#include "shim/internal.h"

#include "fuzz.h"
#include "world.h"

/* Returns the chunk that a mapping shows. */
static struct fuzz_allocation *mapped(struct fuzz *f,
				      const struct fuzz_map *map)
{
	struct fuzz_allocation *a = f->allocation;

	while (a->serial != map->serial)
		a++;
	return a;
}

/* Returns the mappable chunk at an mmap() offset. */
static struct fuzz_allocation *find_offset(struct fuzz *f, u64 offset)
{
	u64 start = offset & (BIT_ULL(MAP_SHIFT) - 1);
	struct fuzz_allocation *a;

	for (a = f->allocation; a < f->allocation + f->nr; a++)
		if (a->file == f->who && a->handle && !a->lost &&
		    a->flags & FLEXMEM_ALLOC_MAPPABLE &&
		    a->slot == offset >> MAP_SHIFT && start >= a->offset &&
		    start - a->offset < a->size)
			return a;
	return NULL;
}

static int predict_mmap(struct fuzz *f, unsigned long flags,
			const struct fuzz_allocation *a, u64 offset, u64 size)
{
	if (f->gone)
		return -ENODEV;
	if (!(flags & VM_SHARED))
		return -EINVAL;
	if (flags & VM_EXEC)
		return -EPERM;
	if (!a)
		return -ENOENT;
	offset &= BIT_ULL(MAP_SHIFT) - 1;
	return size > a->size - (offset - a->offset) ? -EINVAL : 0;
}

static struct fuzz_map *free_map(struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < FUZZ_MAPS; i++)
		if (!f->map[i].vma)
			return &f->map[i];
	return NULL;
}

void fuzz_mmap(struct fuzz *f)
{
	struct fuzz_allocation *a = fuzz_find(f, fuzz_draw_handle(f));
	unsigned long flags = VM_SHARED | VM_READ | VM_WRITE;
	u8 kind = fuzz_take(f), pages = fuzz_take(f);
	struct fuzz_map *map = free_map(f);
	struct vm_area_struct *vma;
	u64 offset = 0, size;

	if (!map)
		return;
	if (a)
		offset = (u64)a->slot << MAP_SHIFT |
			 round_down(a->offset, PAGE_SIZE);
	if (kind >= 128)
		offset += (kind & 31) * PAGE_SIZE;
	size = (1 + pages % 40) * PAGE_SIZE;
	if (a && kind & 1)
		size = min_t(u64, a->size, SZ_2M) + (kind & 8 ? PAGE_SIZE : 0);
	if (kind == 2)
		flags &= ~VM_SHARED;
	if (kind == 4)
		flags |= VM_EXEC;
	if (kind == 6)
		offset = ~0ULL << PAGE_SHIFT;
	a = find_offset(f, offset);
	vma = native_mmap(f->files[f->who].file, offset, size, flags);
	SAME(f, PTR_ERR_OR_ZERO(vma), predict_mmap(f, flags, a, offset, size));
	if (IS_ERR(vma))
		return;
	a->maps++;
	*map = (struct fuzz_map) {
		.vma = vma,
		.serial = a->serial,
		.offset = offset & (BIT_ULL(MAP_SHIFT) - 1),
	};
}

static void touch(struct fuzz *f, const struct fuzz_map *map)
{
	struct vm_area_struct *vma = map->vma;
	const struct fuzz_allocation *a = mapped(f, map);
	size_t size = vma->vm_end - vma->vm_start;
	size_t offset = fuzz_take(f) * 4097ul % size;
	u8 byte = fuzz_take(f);
	bool there = vma->pfn[offset / PAGE_SIZE];
	u64 base;
	int rc;

	rc = native_touch(vma, offset, &byte, byte & 1);
	/* A failed device keeps its maps, but gets no new ones. */
	SAME(f, rc, a->lost || (f->model->broken && !there) ? -EFAULT : 0);
	if (rc)
		return;
	base = f->fake->piece[f->model->region[a->slot].piece].base;
	SAME(f, vma->pfn[offset / PAGE_SIZE],
	     (base + map->offset + offset) / PAGE_SIZE);
}

static void unmap(struct fuzz *f, struct fuzz_map *map)
{
	struct fuzz_allocation *a = mapped(f, map);

	native_munmap(map->vma);
	map->vma = NULL;
	a->maps--;
	fuzz_end_unused(f, a);
}

/* Touches, duplicates or ends a mapping. */
void fuzz_use_map(struct fuzz *f)
{
	u8 kind = fuzz_take(f);
	struct fuzz_map *map = &f->map[kind % FUZZ_MAPS], *copy = free_map(f);

	if (!map->vma)
		return;
	if (kind < 100) {
		touch(f, map);
	} else if (kind < 140 && copy) {
		*copy = *map;
		copy->vma = native_fork_map(map->vma);
		mapped(f, map)->maps++;
	} else {
		unmap(f, map);
	}
}

/* Ends the mappings of a file, before the file is closed. */
void fuzz_unmap_all(struct fuzz *f, unsigned int file)
{
	unsigned int i;

	for (i = 0; i < FUZZ_MAPS; i++)
		if (f->map[i].vma && mapped(f, &f->map[i])->file == file)
			unmap(f, &f->map[i]);
}

/* ---- copies ---- */

/* READ and WRITE use the part of the user-memory window from this offset on. */
#define COPY_OFFSET SZ_256K
#define COPY_MOST (NATIVE_USER_READ_ONLY - COPY_OFFSET)

static void draw_copy(struct fuzz *f, struct flexmem_rw *cmd)
{
	const struct fuzz_allocation *a;
	u8 kind = fuzz_take(f), n = fuzz_take(f);
	u64 size;

	*cmd = CMD(rw, .handle = fuzz_draw_handle(f), .length = 1 + n);
	cmd->data = (uintptr_t)native_user() + COPY_OFFSET;
	a = fuzz_find(f, cmd->handle);
	size = a ? a->whole : 1000;
	if (kind & 1)
		cmd->length = min_t(u64, size, COPY_MOST) - n % size % 128;
	if (kind & 2)
		cmd->offset = size - min(cmd->length, size);
	if (kind & 4)
		cmd->offset /= 2;
	if (kind >> 3 == 0)
		cmd->offset += n & 1 ? n : ~0ULL;
	if (kind >> 3 == 1)
		cmd->length = n & 1 ? 0 : ~0ULL;
	if (kind >> 3 == 2)
		cmd->data = n;
	if (kind >> 3 == 3)
		cmd->length += size;
}

/*
 * Predicts a READ or WRITE. The first part of the copy fails if a fault is set,
 * or if the user memory cannot be accessed.
 */
static int predict_copy(struct fuzz *f, const struct flexmem_rw *cmd,
			bool write)
{
	const struct fuzz_allocation *a = fuzz_find(f, cmd->handle);
	int rc;

	if (f->bare)
		return -EOPNOTSUPP;
	if (!a)
		return -ENOENT;
	if (a->lost)
		return -EIO;
	if (!cmd->length || cmd->length > a->whole ||
	    cmd->offset > a->whole - cmd->length)
		return -EINVAL;
	if (write && cmd->data < SZ_64K)
		return -EFAULT;
	rc = model_wait(f->model);
	if (rc)
		return rc;
	rc = model_call(f->model, write ? &f->write_error : &f->read_error);
	return rc ?: cmd->data < SZ_64K ? -EFAULT : 0;
}

static void copy(struct fuzz *f, bool write)
{
	u8 *data = (u8 *)native_user() + COPY_OFFSET;
	struct flexmem_rw cmd, given;
	int want;
	long rc;

	draw_copy(f, &cmd);
	given = cmd;
	memset(data, write ? fuzz_tag(f) : 0xee,
	       min_t(u64, cmd.length, COPY_MOST));
	if (!fuzz_call(f, write ? FLEXMEM_CMD_WRITE : FLEXMEM_CMD_READ, &cmd,
		       sizeof(cmd), &rc))
		return;
	want = predict_copy(f, &given, write);
	SAME(f, rc, want ?: f->late ? -EFAULT : 0);
	if (!f->late)
		SAME(f, cmd.out_done, want ? 0 : given.length);
	/* The owner has written the whole allocation before this READ. */
	if (!want && memchr_inv(data, fuzz_tag(f), given.length))
		fuzz_wrong(f, "bytes that are not the owner's");
}

void fuzz_read(struct fuzz *f)
{
	copy(f, false);
}

void fuzz_write(struct fuzz *f)
{
	copy(f, true);
}

/* Draws a copy between two allocations, or within one. */
static void draw_range(struct fuzz *f, struct flexmem_copy *cmd)
{
	u8 kind = fuzz_take(f), n = fuzz_take(f);
	const struct fuzz_allocation *to, *from;
	u64 to_size, from_size, size;

	*cmd = CMD(copy, .to = fuzz_draw_handle(f), .length = 128);
	cmd->from = kind & 1 ? cmd->to : fuzz_draw_handle(f);
	to = fuzz_find(f, cmd->to);
	from = fuzz_find(f, cmd->from);
	to_size = to ? to->whole : SZ_1K;
	from_size = from ? from->whole : SZ_1K;
	size = min(to_size, from_size);
	if (n & 1)
		cmd->length = round_down(size >> (n >> 1 & 3), 128);
	else
		cmd->length *= 1 + n;
	if (kind & 2)
		cmd->to_offset = to_size - min(cmd->length, to_size);
	if (kind & 4)
		cmd->from_offset = from_size - min(cmd->length, from_size);
	if (kind >> 3 == 0)
		cmd->to_offset += n & 2 ? n : ~0ULL - 127;
	if (kind >> 3 == 1)
		cmd->from_offset += n & 2 ? n : ~0ULL - 127;
	if (kind >> 3 == 2)
		cmd->length = n & 2 ? n : ~0ULL - 127;
	if (kind >> 3 == 3)
		cmd->from_offset = cmd->to_offset + 128 * (n >> 2);
}

static bool is_bad_range(const struct fuzz_allocation *a, u64 offset,
			 u64 length)
{
	return offset % 128 || length % 128 || !length || length > a->whole ||
	       offset > a->whole - length;
}

static int predict_copy_range(struct fuzz *f,
			      const struct flexmem_copy *cmd)
{
	const struct fuzz_allocation *to = fuzz_find(f, cmd->to);
	const struct fuzz_allocation *from = fuzz_find(f, cmd->from);

	if (f->bare)
		return -EOPNOTSUPP;
	if (!to || !from)
		return -ENOENT;
	if (to->lost || from->lost)
		return -EIO;
	if (is_bad_range(to, cmd->to_offset, cmd->length) ||
	    is_bad_range(from, cmd->from_offset, cmd->length))
		return -EINVAL;
	if (to == from && max(cmd->to_offset, cmd->from_offset) -
	    min(cmd->to_offset, cmd->from_offset) < cmd->length)
		return -EINVAL;
	return model_wait(f->model) ?: model_call(f->model, &f->copy_error);
}

void fuzz_copy_range(struct fuzz *f)
{
	struct flexmem_copy cmd, given;
	int want;
	long rc;

	draw_range(f, &cmd);
	given = cmd;
	if (!fuzz_call(f, FLEXMEM_CMD_COPY, &cmd, sizeof(cmd), &rc))
		return;
	want = predict_copy_range(f, &given);
	SAME(f, rc, want ?: f->late ? -EFAULT : 0);
	if (!f->late)
		SAME(f, cmd.out_done, want ? 0 : given.length);
}

/*
 * Checks what is in an event. The suites in tests/kunit check when an event is
 * due.
 */

static void check_event(struct fuzz *f, const struct flexmem_event *event,
			bool polled)
{
	u64 in_use = fuzz_in_use(f), memory = fuzz_memory(f);
	u64 percent = memory ? 100 * in_use / memory : 0;

	SAME(f, polled, true);
	SAME(f, event->size, sizeof(*event));
	SAME(f, event->in_use, in_use);
	SAME(f, event->memory, memory);
	SAME(f, !event->wanted, !(event->flags & FLEXMEM_EVENT_WANTED));
	SAME(f, !event->flags, false);
	/* Between two thresholds the level depends on the previous level. */
	if (event->level > FLEXMEM_PRESSURE_CRITICAL ||
	    (percent >= FLEXMEM_CRITICAL_ENTER &&
	     event->level != FLEXMEM_PRESSURE_CRITICAL) ||
	    (percent < FLEXMEM_CRITICAL_LEAVE - 1 && memory &&
	     event->level == FLEXMEM_PRESSURE_CRITICAL) ||
	    (percent >= FLEXMEM_MODERATE_ENTER &&
	     event->level == FLEXMEM_PRESSURE_NONE) ||
	    (percent < FLEXMEM_MODERATE_LEAVE - 1 && memory &&
	     event->level != FLEXMEM_PRESSURE_NONE))
		fuzz_wrong(f, "level %u at %llu percent", event->level,
			   percent);
}

void fuzz_event(struct fuzz *f)
{
	struct file *file = f->files[f->who].file;
	struct flexmem_event event = {};
	size_t size = f->spoil == SHORT ? FLEXMEM_EVENT_MIN - 1 : sizeof(event) + f->spoil;
	struct flexmem_accounts *accounts = &f->fdev->table.accounts;
	void *to = native_user();
	__poll_t polled;
	ssize_t rc;

	/* Pending events are delivered first. */
	accounts->gauge.next = jiffies;
	flush_delayed_work(&accounts->gauge.deliver);
	polled = native_poll(file);
	if (f->spoil == NOWHERE)
		to = NULL;
	rc = native_read(file, to, size);
	if (size < sizeof(event) || f->gone) {
		SAME(f, rc, size < sizeof(event) ? -EINVAL : -ENODEV);
		return;
	}
	if (rc == -EAGAIN) {
		SAME(f, polled, 0);
		return;
	}
	/* A read that failed with EFAULT leaves the event in the queue. */
	if (f->spoil == NOWHERE) {
		SAME(f, rc, -EFAULT);
		rc = native_read(file, native_user(), size);
	}
	SAME(f, rc, sizeof(event));
	memcpy(&event, native_user(), sizeof(event));
	check_event(f, &event, polled & EPOLLIN);
	SAME(f, native_poll(file), 0);
}
