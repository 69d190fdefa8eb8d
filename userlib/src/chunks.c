// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Lists of chunks: pure functions, which do not reach the device. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_MIN sizeof(struct flexmem_chunk_info)

static bool is_list(const struct flexmem_chunk_info *chunks, size_t size,
		    size_t count)
{
	return size >= CHUNK_MIN && (chunks || !count);
}

/* Returns entry @i of an array whose entries have @size bytes. */
static const struct flexmem_chunk_info *
entry(const struct flexmem_chunk_info *chunks, size_t size, size_t i)
{
	return (const void *)((const char *)chunks + i * size);
}

int flexmem_chunks_total(const struct flexmem_chunk_info *chunks, size_t size,
			 size_t count, uint64_t *total)
{
	uint64_t sum = 0;
	size_t i;

	if (!is_list(chunks, size, count) || !total)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		if (entry(chunks, size, i)->size > UINT64_MAX - sum)
			return -EOVERFLOW;
		sum += entry(chunks, size, i)->size;
	}
	*total = sum;
	return 0;
}

static bool follows(const struct flexmem_chunk_info *chunk,
		    const struct flexmem_chunk_info *before)
{
	return chunk->address.region_id == before->address.region_id &&
	       chunk->address.offset - before->address.offset == before->size;
}

int flexmem_chunks_contiguous(const struct flexmem_chunk_info *chunks,
			      size_t size, size_t count)
{
	size_t i;

	if (!is_list(chunks, size, count))
		return -EINVAL;
	for (i = 1; i < count; i++)
		if (!follows(entry(chunks, size, i),
			     entry(chunks, size, i - 1)))
			return 0;
	return 1;
}

int flexmem_chunks_find(const struct flexmem_chunk_info *chunks, size_t size,
			size_t count, uint64_t byte,
			struct flexmem_chunk_info *rest, size_t *index)
{
	struct flexmem_chunk_info found;
	size_t i;

	if (!is_list(chunks, size, count) || !rest)
		return -EINVAL;
	for (i = 0; i < count && byte >= entry(chunks, size, i)->size; i++)
		byte -= entry(chunks, size, i)->size;
	if (i == count)
		return -ERANGE;
	found = *entry(chunks, size, i);
	found.address.offset += byte;
	found.size -= byte;
	fmlib_copy_out(rest, size, CHUNK_MIN, &found, sizeof(found));
	if (index)
		*index = i;
	return 0;
}

static bool same(const struct flexmem_chunk_info *a,
		 const struct flexmem_chunk_info *b)
{
	return a->address.region_id == b->address.region_id &&
	       a->address.offset == b->address.offset && a->size == b->size &&
	       a->domain == b->domain;
}

int flexmem_chunks_equal(const struct flexmem_chunk_info *a, size_t a_count,
			 const struct flexmem_chunk_info *b, size_t b_count,
			 size_t size)
{
	size_t i;

	if (!is_list(a, size, a_count) || !is_list(b, size, b_count))
		return -EINVAL;
	if (a_count != b_count)
		return 0;
	for (i = 0; i < a_count; i++)
		if (!same(entry(a, size, i), entry(b, size, i)))
			return 0;
	return 1;
}

int flexmem_chunks_text(const struct flexmem_chunk_info *chunks, size_t size,
			size_t count, char *text, size_t length)
{
	size_t used = 0;
	size_t i;

	if (!is_list(chunks, size, count) || (!text && length))
		return -EINVAL;
	if (length)
		*text = '\0';
	for (i = 0; i < count && used < length; i++) {
		const struct flexmem_chunk_info *chunk = entry(chunks, size, i);

		used += (size_t)snprintf(text + used, length - used,
			"%sregion %#" PRIx64 " offset %#" PRIx64 " size %" PRIu64 " domain %" PRIu32,
			i ? "; " : "", chunk->address.region_id,
			chunk->address.offset, chunk->size, chunk->domain);
	}
	return used < length ? 0 : -EMSGSIZE;
}
