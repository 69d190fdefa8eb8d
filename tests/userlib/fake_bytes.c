// SPDX-License-Identifier: GPL-2.0
/*
 * The fake device's memory is a sparse file, which mappings and copies access.
 */
#define _GNU_SOURCE
#include "fake_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Large enough to notice an offset that is cut to 32 bits. */
#define FIRST_OFFSET (UINT64_C(1) << 40)
#define REGION_STRIDE (16 * GIB)
#define MAPS 16

/* A mapping, of which @left bytes are still mapped. */
static struct {
	const struct file *file;
	uint32_t handle;
	char *start;
	size_t length;
	size_t left;
} maps[MAPS];

void *__real_mmap64(void *address, size_t length, int protection, int flags,
		    int fd, off_t offset);
int __real_munmap(void *address, size_t length);
void *__wrap_mmap64(void *address, size_t length, int protection, int flags,
		    int fd, off_t offset);
int __wrap_munmap(void *address, size_t length);

static int memory(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	fd = memfd_create("fake", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, FAKE_REGIONS * REGION_STRIDE)) {
		perror("memory of the fake device");
		abort();
	}
	return fd;
}

static off_t place_of(uint32_t region, uint64_t offset)
{
	return (off_t)(region * REGION_STRIDE + offset);
}

uint64_t map_offset(uint32_t region, uint64_t offset)
{
	return FIRST_OFFSET + (uint64_t)place_of(region, offset);
}

void zero(uint32_t region, uint64_t start, uint64_t end)
{
	REQUIRE(!fallocate(memory(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			   place_of(region, start), (off_t)(end - start)));
}

void fake_lose(void)
{
	struct block *block;
	uint32_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < nr_regions; i++) {
		for (block = regions[i].blocks; block; block = block->next)
			block->lost = block->handle;
	}
	generation++;
	pthread_mutex_unlock(&lock);
}

static int find(const struct file *file, uint32_t handle, struct block **block,
		uint32_t *where)
{
	*block = handle ? find_block(file, handle, NULL, where) : NULL;
	if (!*block)
		return ENOENT;
	return (*block)->lost ? EIO : 0;
}

/* The number of bytes that a copy moves before it ends. */
static uint64_t most_of(uint64_t length, int injected)
{
	if (fake.copy_most && length > fake.copy_most)
		length = fake.copy_most;
	if (injected && length > fake.copied_before_error)
		length = fake.copied_before_error;
	return length;
}

int copy(const struct file *file, struct flexmem_rw *cmd, bool is_write,
	 int injected)
{
	void *data = (void *)(uintptr_t)cmd->data;
	struct block *block;
	ssize_t moved;
	uint32_t where;
	off_t place;
	size_t most;
	int err;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags && !cmd->__reserved);
	REQUIRE(cmd->length && !cmd->out_done);
	if (!(fake.capabilities & FLEXMEM_CAP_RW))
		return EOPNOTSUPP;
	err = find(file, cmd->handle, &block, &where);
	if (err)
		return err;
	if (cmd->offset > block->end - block->start ||
	    cmd->length > block->end - block->start - cmd->offset)
		return EINVAL;
	most = most_of(cmd->length, injected);
	if (fake.copied_nothing)
		return 0;
	place = place_of(where, block->start + cmd->offset);
	if (is_write)
		moved = pwrite(memory(), data, most, place);
	else
		moved = pread(memory(), data, most, place);
	if (moved < 0)
		return errno;
	cmd->out_done = (uint64_t)moved;
	return injected;
}

static bool is_within(const struct block *block, uint64_t offset,
		      uint64_t length)
{
	uint64_t size = block->end - block->start;

	return length <= size && offset <= size - length;
}

static bool is_range(const struct flexmem_copy *cmd,
		     const struct block *to, const struct block *from)
{
	if ((cmd->to_offset | cmd->from_offset | cmd->length) % 128 ||
	    !is_within(to, cmd->to_offset, cmd->length) ||
	    !is_within(from, cmd->from_offset, cmd->length))
		return false;
	return to != from || cmd->to_offset + cmd->length <= cmd->from_offset ||
	       cmd->from_offset + cmd->length <= cmd->to_offset;
}

int copy_range(const struct file *file, struct flexmem_copy *cmd,
	       int injected)
{
	struct block *to;
	struct block *from;
	uint32_t to_where;
	uint32_t from_where;
	char unit[128];
	off_t at;
	uint64_t most = most_of(cmd->length, injected);
	int err;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	REQUIRE(cmd->length && !cmd->out_done);
	if (!(fake.capabilities & FLEXMEM_CAP_COPY))
		return EOPNOTSUPP;
	err = find(file, cmd->to, &to, &to_where);
	if (!err)
		err = find(file, cmd->from, &from, &from_where);
	if (err)
		return err;
	if (!is_range(cmd, to, from))
		return EINVAL;
	if (fake.copied_nothing)
		return 0;
	for (; cmd->out_done + sizeof(unit) <= most;
	     cmd->out_done += sizeof(unit)) {
		at = place_of(from_where,
			      from->start + cmd->from_offset + cmd->out_done);
		if (pread(memory(), unit, sizeof(unit), at) < 0)
			return errno;
		at = place_of(to_where,
			      to->start + cmd->to_offset + cmd->out_done);
		if (pwrite(memory(), unit, sizeof(unit), at) < 0)
			return errno;
	}
	return injected;
}

/* Whether the bytes are all in one chunk. */
static bool is_in_chunk(const struct block *block, uint64_t offset,
			size_t length)
{
	uint64_t size = chunk_size(block);
	uint64_t left = block->end - block->start - offset / size * size;

	return offset % size + length <= (left < size ? left : size);
}

/* Returns the allocation of @file that an mmap() at @offset maps. */
static const struct block *mapped_block(const struct file *file,
					uint64_t offset, size_t length)
{
	const struct block *block;
	uint64_t start;
	uint32_t i;

	for (i = 0; i < nr_regions; i++) {
		for (block = regions[i].blocks; block; block = block->next) {
			start = map_offset(i, block->start);
			if (block->handle && block->file == file - files &&
			    !block->lost && offset >= start &&
			    offset < start + block->end - block->start &&
			    is_in_chunk(block, offset - start, length))
				return block;
		}
	}
	return NULL;
}

bool is_mapped(const struct file *file, uint32_t handle)
{
	size_t i;

	for (i = 0; i < MAPS; i++) {
		if (maps[i].left && maps[i].file == file &&
		    maps[i].handle == handle)
			return true;
	}
	return false;
}

static void note_map(const struct file *file, uint32_t handle, void *start,
		     size_t length)
{
	size_t i = 0;

	while (i < MAPS && maps[i].left)
		i++;
	REQUIRE(i < MAPS);
	maps[i].file = file;
	maps[i].handle = handle;
	maps[i].start = start;
	maps[i].length = length;
	maps[i].left = length;
}

/* Checks that no byte is unmapped twice. */
static void note_unmap(const char *start, size_t length)
{
	const char *from;
	const char *to;
	size_t i;

	length = (length + 4095) & ~(size_t)4095;
	for (i = 0; i < MAPS; i++) {
		from = start > maps[i].start ? start : maps[i].start;
		to = maps[i].start + maps[i].length;
		if (to > start + length)
			to = start + length;
		if (maps[i].left && from < to)
			maps[i].left -= (size_t)(to - from);
	}
}

static void *map_block(const struct file *file, size_t length, int protection,
		       int flags, off_t offset)
{
	const struct block *block;
	void *start;

	REQUIRE(file->open && flags == MAP_SHARED && !(protection & PROT_EXEC));
	length = (length + 4095) & ~(size_t)4095;
	block = mapped_block(file, (uint64_t)offset, length);
	errno = fake.mmap_error ? fake.mmap_error : EINVAL;
	if (fake.mmap_error || !block ||
	    !(block->flags & FLEXMEM_ALLOC_MAPPABLE))
		return MAP_FAILED;
	fake.maps++;
	fake.map_protection = protection;
	/*
	 * The mapping begins beyond the end of the file, so that each access
	 * causes SIGBUS.
	 */
	if (fake.map_is_gone)
		offset += (off_t)(FAKE_REGIONS * REGION_STRIDE);
	start = __real_mmap64(NULL, length, protection, MAP_SHARED, memory(),
			      offset - (off_t)FIRST_OFFSET);
	if (start != MAP_FAILED)
		note_map(file, block->handle, start, length);
	return start;
}

void *__wrap_mmap64(void *address, size_t length, int protection, int flags,
		    int fd, off_t offset)
{
	void *start;

	if (fd < FIRST_FD || fd >= FIRST_FD + FDS)
		return __real_mmap64(address, length, protection, flags, fd,
				     offset);
	pthread_mutex_lock(&lock);
	start = map_block(&files[fd - FIRST_FD], length, protection, flags,
			  offset);
	pthread_mutex_unlock(&lock);
	return start;
}

int __wrap_munmap(void *address, size_t length)
{
	int result = __real_munmap(address, length);

	if (!result) {
		pthread_mutex_lock(&lock);
		fake.unmaps++;
		note_unmap(address, length);
		pthread_mutex_unlock(&lock);
	}
	return result;
}
