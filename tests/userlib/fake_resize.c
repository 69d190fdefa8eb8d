// SPDX-License-Identifier: GPL-2.0
/* The fake kernel: RESIZE, and events. */
#include "fake.h"
#include "fake_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

ssize_t __real_read(int fd, void *buffer, size_t length);
ssize_t __wrap_read(int fd, void *buffer, size_t length);

/*
 * Places a growable allocation at the start of an empty region, or in the
 * middle of the largest free block. Returns its block, or NULL.
 */
struct block *place_growable(struct region *region, uint64_t size,
			     uint64_t align)
{
	struct block *largest = NULL;
	struct block *block;
	uint64_t start;

	for (block = region->blocks; block; block = block->next) {
		if (!block->handle &&
		    (!largest || block->end - block->start >
				 largest->end - largest->start))
			largest = block;
	}
	if (!largest)
		return NULL;
	start = largest->start;
	if (largest->end - largest->start < region->total)
		start += (largest->end - largest->start) / 2;
	start = (start + align - 1) & ~(align - 1);
	if (start + size > largest->end)
		start = (largest->start + align - 1) & ~(align - 1);
	if (start + size > largest->end)
		return NULL;
	if (start > largest->start)
		largest = split(largest, start);
	if (start + size < largest->end)
		split(largest, start + size);
	region->sequence++;
	return largest;
}

/* The number of free bytes directly behind a block. */
static uint64_t room_behind(const struct block *block)
{
	const struct block *next = block->next;

	return next && !next->handle ? next->end - next->start : 0;
}

static void move_end(struct block *block, uint64_t end)
{
	struct block *next = block->next;
	struct block *rest;

	if (end < block->end) {
		rest = split(block, end);
		rest->handle = 0;
		return;
	}
	block->end = end;
	next->start = end;
	if (next->start < next->end)
		return;
	block->next = next->next;
	free(next);
}

int resize(struct file *file, struct flexmem_resize *cmd)
{
	struct block *block;
	uint64_t old;
	uint64_t unit;
	uint64_t size;
	uint32_t where;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	REQUIRE(!cmd->out_reason && !cmd->out_size && !cmd->out_max);
	if (!cmd->length)
		return EINVAL;
	block = cmd->handle ? find_block(file, cmd->handle, NULL, &where) :
			      NULL;
	if (!block)
		return ENOENT;
	if (is_mapped(file, block->handle))
		return EBUSY;
	if (block->lost)
		return EIO;
	old = block->end - block->start;
	unit = block->flags & FLEXMEM_ALLOC_MAPPABLE ? 4096 : 128;
	size = (cmd->length + unit - 1) & ~(unit - 1);
	cmd->out_size = old;
	if (size > old) {
		cmd->out_reason = limit_reached(file, size - old,
						&cmd->out_refusal);
		if (cmd->out_reason != FLEXMEM_REASON_NONE)
			return ENOMEM;
		if (size - old > room_behind(block)) {
			cmd->out_max = old + room_behind(block);
			return EAGAIN;
		}
	}
	if (size != old) {
		move_end(block, block->start + size);
		regions[where].sequence++;
		merge(&regions[where]);
	}
	file->used += size - old;
	if (file->used > file->peak)
		file->peak = file->used;
	note_peak(file);
	cmd->out_size = size;
	return 0;
}

static uint64_t memory_used(void)
{
	struct flexmem_region_entry entry;
	uint64_t used = 0;
	uint32_t i;

	for (i = 0; i < nr_regions; i++) {
		measure(&regions[i], &entry);
		used += entry.total - entry.free;
	}
	return used;
}

ssize_t __wrap_read(int fd, void *buffer, size_t length)
{
	struct flexmem_event event = { .size = sizeof(event) };
	struct file *file;
	ssize_t told = -1;

	if (fd < FIRST_FD || fd >= FIRST_FD + FDS)
		return __real_read(fd, buffer, length);
	pthread_mutex_lock(&lock);
	file = &files[fd - FIRST_FD];
	/*
	 * The library must open with O_NONBLOCK: without it a read could wait
	 * for ever.
	 */
	REQUIRE(file->open && fake.open_flags & O_NONBLOCK);
	REQUIRE(length >= FLEXMEM_EVENT_MIN);
	if (file->events == fake.events) {
		errno = EAGAIN;
	} else {
		file->events = fake.events;
		event.level = fake.level;
		event.in_use = memory_used();
		event.memory = fake.capacity;
		event.sequence = fake.events;
		event.flags = fake.event_flags;
		event.wanted = fake.wanted;
		if (length > sizeof(event))
			length = sizeof(event);
		if (fake.event_bytes && length > fake.event_bytes)
			length = fake.event_bytes;
		memcpy(buffer, &event, length);
		told = (ssize_t)length;
	}
	pthread_mutex_unlock(&lock);
	return told;
}
