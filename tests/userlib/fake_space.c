// SPDX-License-Identifier: GPL-2.0
/*
 * The fake kernel: device-virtual addresses. A freed allocation that is still
 * bound is only remembered as a binding with handle 0, because the tests do not
 * need its memory.
 */
#include "fake_state.h"

#include <errno.h>
#include <string.h>

#define RANGES 32
#define BINDINGS 32

/* Reserved addresses of a file. The array is sorted by file and start. */
struct range {
	int file;
	uint64_t start;
	uint64_t end;
};

struct binding {
	int file;
	uint32_t handle;
	uint32_t access;
	uint64_t start;
	uint64_t offset;
	uint64_t length;
};

static struct range ranges[RANGES];
static uint32_t nr_ranges;
static struct binding bindings[BINDINGS];
static uint32_t nr_bindings;

static int index_of(const struct file *file)
{
	return (int)(file - files);
}

void reset_spaces(void)
{
	nr_ranges = 0;
	nr_bindings = 0;
}

static void remove_range(uint32_t i)
{
	memmove(&ranges[i], &ranges[i + 1],
		(--nr_ranges - i) * sizeof(ranges[0]));
}

static void remove_binding(uint32_t i)
{
	bindings[i] = bindings[--nr_bindings];
}

void close_space(int file)
{
	uint32_t i;

	for (i = nr_bindings; i-- > 0;) {
		if (bindings[i].file == file)
			remove_binding(i);
	}
	for (i = nr_ranges; i-- > 0;) {
		if (ranges[i].file == file)
			remove_range(i);
	}
}

void forget_bound(int file, uint32_t handle)
{
	uint32_t i;

	for (i = 0; i < nr_bindings; i++) {
		if (bindings[i].file == file && bindings[i].handle == handle)
			bindings[i].handle = 0;
	}
}

/*
 * Finds the lowest @length free addresses, and where a range of them is in the
 * array. Returns false if there are too few.
 */
static bool find_free(int file, uint64_t length, uint64_t *start,
		      uint32_t *where)
{
	uint64_t end = fake.va_start + fake.va_length;

	*start = fake.va_start;
	*where = 0;
	while (*where < nr_ranges && ranges[*where].file < file)
		++*where;
	for (; *where < nr_ranges && ranges[*where].file == file; ++*where) {
		if (ranges[*where].start - *start >= length)
			return true;
		*start = ranges[*where].end;
	}
	return end - *start >= length;
}

static uint64_t largest_free(int file)
{
	uint64_t length = fake.va_length;
	uint64_t start;
	uint32_t where;

	while (length && !find_free(file, length, &start, &where))
		length -= fake.va_page;
	return length;
}

static int reserve(int file, struct flexmem_va_reserve *cmd)
{
	uint64_t mask = fake.va_page - 1;
	uint64_t length = (cmd->length + mask) & ~mask;
	uint64_t start;
	uint32_t where;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	REQUIRE(!cmd->out_address && !cmd->out_largest_free);
	if (!cmd->length)
		return EINVAL;
	if (length < cmd->length || !find_free(file, length, &start, &where)) {
		cmd->out_largest_free = largest_free(file);
		return ENOSPC;
	}
	REQUIRE(nr_ranges < RANGES);
	memmove(&ranges[where + 1], &ranges[where],
		(nr_ranges++ - where) * sizeof(ranges[0]));
	ranges[where] = (struct range){ file, start, start + length };
	cmd->out_address = start;
	cmd->out_largest_free = largest_free(file);
	return 0;
}

static bool is_bound(int file, uint64_t start, uint64_t end)
{
	uint32_t i;

	for (i = 0; i < nr_bindings; i++) {
		if (bindings[i].file == file && bindings[i].start < end &&
		    bindings[i].start + bindings[i].length > start)
			return true;
	}
	return false;
}

static int free_range(int file, const struct flexmem_va_free *cmd)
{
	uint32_t i;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	for (i = 0; i < nr_ranges; i++) {
		if (ranges[i].file != file || ranges[i].start != cmd->address)
			continue;
		if (is_bound(file, ranges[i].start, ranges[i].end))
			return EBUSY;
		remove_range(i);
		return 0;
	}
	return ENOENT;
}

static bool is_reserved(int file, uint64_t start, uint64_t length)
{
	uint32_t i;

	for (i = 0; i < nr_ranges; i++) {
		if (ranges[i].file == file && start >= ranges[i].start &&
		    start < ranges[i].end && length <= ranges[i].end - start)
			return true;
	}
	return false;
}

static bool is_aligned(const struct flexmem_va_bind *cmd,
		       const struct block *block)
{
	return !((cmd->address | cmd->offset | cmd->length | block->start |
		  block->end) & (fake.va_page - 1));
}

static int bind(struct file *file, const struct flexmem_va_bind *cmd)
{
	const struct block *block;
	uint64_t size;
	uint32_t where;
	uint32_t i;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	block = cmd->handle ? find_block(file, cmd->handle, NULL, &where) :
			      NULL;
	if (!block)
		return ENOENT;
	size = block->end - block->start;
	if (!cmd->access || cmd->access > 7 || !cmd->length ||
	    cmd->length > size || cmd->offset > size - cmd->length ||
	    !is_aligned(cmd, block))
		return EINVAL;
	if (!is_reserved(index_of(file), cmd->address, cmd->length))
		return ENXIO;
	if (is_bound(index_of(file), cmd->address, cmd->address + cmd->length))
		return EEXIST;
	for (i = 0; i < nr_bindings; i++) {
		if (bindings[i].file == index_of(file) &&
		    bindings[i].handle == cmd->handle &&
		    bindings[i].offset < cmd->offset + cmd->length &&
		    bindings[i].offset + bindings[i].length > cmd->offset)
			return EBUSY;
	}
	if (block->lost)
		return EIO;
	if (nr_bindings == BINDINGS)
		return ENOSPC;
	bindings[nr_bindings++] = (struct binding){
		.file = index_of(file),
		.handle = cmd->handle,
		.access = cmd->access,
		.start = cmd->address,
		.offset = cmd->offset,
		.length = cmd->length,
	};
	return 0;
}

static int unbind(int file, const struct flexmem_va_unbind *cmd)
{
	uint32_t i;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	for (i = 0; i < nr_bindings; i++) {
		if (bindings[i].file == file &&
		    bindings[i].start == cmd->address) {
			remove_binding(i);
			return 0;
		}
	}
	return ENOENT;
}

static uint32_t chunk_at(const struct file *file, uint32_t handle,
			 uint64_t offset)
{
	uint32_t where;

	return handle ? (uint32_t)(offset / chunk_size(find_block(
				   file, handle, NULL, &where))) : 0;
}

static int lookup(const struct file *file, struct flexmem_va_lookup *cmd)
{
	const struct binding *found;
	uint64_t at;
	uint32_t i;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	REQUIRE(!cmd->out_handle && !cmd->out_access && !cmd->out_length);
	REQUIRE(cmd->handle ? !cmd->address : !cmd->offset);
	for (i = 0; i < nr_bindings; i++) {
		found = &bindings[i];
		if (found->file != index_of(file) ||
		    (cmd->handle && found->handle != cmd->handle))
			continue;
		at = cmd->handle ? cmd->offset - found->offset :
				   cmd->address - found->start;
		if (at >= found->length)
			continue;
		cmd->out_handle = found->handle;
		cmd->out_access = found->access;
		cmd->out_address = found->start + at;
		cmd->out_offset = found->offset + at;
		cmd->out_length = found->length - at;
		cmd->out_chunk = chunk_at(file, found->handle,
					  cmd->out_offset);
		return 0;
	}
	return ENOENT;
}

int space_command(struct file *file, unsigned int number, void *arg)
{
	if (!(fake.capabilities & FLEXMEM_CAP_PAGE_TABLES))
		return EOPNOTSUPP;
	switch (number) {
	case FLEXMEM_CMD_VA_RESERVE:
		return reserve(index_of(file), arg);
	case FLEXMEM_CMD_VA_FREE:
		return free_range(index_of(file), arg);
	case FLEXMEM_CMD_VA_BIND:
		return bind(file, arg);
	case FLEXMEM_CMD_VA_UNBIND:
		return unbind(index_of(file), arg);
	}
	REQUIRE(number == FLEXMEM_CMD_VA_LOOKUP);
	return lookup(file, arg);
}
