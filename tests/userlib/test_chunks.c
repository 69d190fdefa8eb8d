// SPDX-License-Identifier: GPL-2.0
/* Lists of chunks: total, contiguity, the chunk of a byte, equality, text. */
#include "test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The second chunk follows the first. The third is in another domain. */
static const struct flexmem_chunk_info example[] = {
	{ .address = { 1, 0x80 }, .size = 256, .domain = 0 },
	{ .address = { 1, 0x180 }, .size = 128, .domain = 0 },
	{ .address = { 2, 0 }, .size = 384, .domain = 3 },
};

#define LIST example, sizeof(example[0]), COUNT(example)

/* An entry of a program that was compiled with a later library. */
struct later {
	struct flexmem_chunk_info chunk;
	uint64_t more;
};

static void fill_later(struct later list[COUNT(example)])
{
	size_t i;

	for (i = 0; i < COUNT(example); i++)
		list[i] = (struct later){ example[i], UINT64_MAX };
}

static void total(void **state)
{
	struct flexmem_chunk_info huge[] = {
		{ .size = UINT64_MAX - 127 }, { .size = 127 }, { .size = 1 },
	};
	struct later list[COUNT(example)];
	uint64_t bytes = 9;

	(void)state;
	assert_int_equal(flexmem_chunks_total(LIST, &bytes), 0);
	assert_int_equal(bytes, 768);
	fill_later(list);
	assert_int_equal(flexmem_chunks_total(&list->chunk, sizeof(*list), 2,
					      &bytes), 0);
	assert_int_equal(bytes, 384);
	assert_int_equal(flexmem_chunks_total(huge, sizeof(*huge), 2, &bytes),
			 0);
	assert_true(bytes == UINT64_MAX);
	assert_int_equal(flexmem_chunks_total(huge, sizeof(*huge), 3, &bytes),
			 -EOVERFLOW);
	assert_true(bytes == UINT64_MAX);
	assert_int_equal(flexmem_chunks_total(NULL, sizeof(*huge), 0, &bytes),
			 0);
	assert_int_equal(bytes, 0);
}

static int contiguous(const struct flexmem_chunk_info *first,
		      const struct flexmem_chunk_info *second)
{
	const struct flexmem_chunk_info pair[] = { *first, *second };

	return flexmem_chunks_contiguous(pair, sizeof(pair[0]), 2);
}

static void contiguity(void **state)
{
	struct flexmem_chunk_info next = example[1];
	struct later list[COUNT(example)];

	(void)state;
	assert_int_equal(flexmem_chunks_contiguous(NULL, sizeof(next), 0), 1);
	assert_int_equal(flexmem_chunks_contiguous(example, sizeof(next), 1),
			 1);
	assert_int_equal(flexmem_chunks_contiguous(example, sizeof(next), 2),
			 1);
	assert_int_equal(flexmem_chunks_contiguous(LIST), 0);
	fill_later(list);
	assert_int_equal(flexmem_chunks_contiguous(&list->chunk, sizeof(*list),
						   2), 1);
	assert_int_equal(flexmem_chunks_contiguous(&list->chunk, sizeof(*list),
						   3), 0);

	assert_int_equal(contiguous(&example[1], &example[0]), 0);
	next.address.offset += 128;
	assert_int_equal(contiguous(&example[0], &next), 0);
	next = example[1];
	next.address.region_id = 2;
	assert_int_equal(contiguous(&example[0], &next), 0);
}

static void each_byte(void **state)
{
	struct flexmem_chunk_info rest;
	uint64_t byte, before = 0;
	size_t i = 0, index;

	(void)state;
	for (byte = 0; byte < 768; byte++) {
		if (byte == before + example[i].size)
			before += example[i++].size;
		assert_int_equal(flexmem_chunks_find(LIST, byte, &rest, &index),
				 0);
		assert_int_equal(index, i);
		assert_int_equal(rest.address.region_id,
				 example[i].address.region_id);
		assert_int_equal(rest.address.offset,
				 example[i].address.offset + byte - before);
		assert_int_equal(rest.size, before + example[i].size - byte);
		assert_int_equal(rest.domain, example[i].domain);
		assert_int_equal(rest.reserved, 0);
	}
	assert_int_equal(i, COUNT(example) - 1);
	index = 9;
	assert_int_equal(flexmem_chunks_find(LIST, 768, &rest, &index),
			 -ERANGE);
	assert_int_equal(flexmem_chunks_find(LIST, UINT64_MAX, &rest, &index),
			 -ERANGE);
	assert_int_equal(flexmem_chunks_find(NULL, sizeof(rest), 0, 0, &rest,
					     &index), -ERANGE);
	assert_int_equal(index, 9);
	assert_int_equal(rest.size, 1);
	assert_int_equal(flexmem_chunks_find(LIST, 256, &rest, NULL), 0);
	assert_memory_equal(&rest, &example[1], sizeof(rest));
}

/* flexmem.h recommends this loop over the chunks behind a byte. */
static void chunks_from_a_byte(void **state)
{
	struct flexmem_chunk_info rest;
	uint64_t sizes[4], byte;
	size_t count = 0;

	(void)state;
	for (byte = 100; !flexmem_chunks_find(LIST, byte, &rest, NULL);
	     byte += rest.size) {
		assert_true(count < COUNT(sizes));
		sizes[count++] = rest.size;
	}
	assert_int_equal(count, 3);
	assert_int_equal(sizes[0], 156);
	assert_int_equal(sizes[1], 128);
	assert_int_equal(sizes[2], 384);
}

static void later_entries(void **state)
{
	struct later list[COUNT(example)], rest;
	size_t index;

	(void)state;
	fill_later(list);
	memset(&rest, 9, sizeof(rest));
	assert_int_equal(flexmem_chunks_find(&list->chunk, sizeof(*list), 3,
					     400, &rest.chunk, &index), 0);
	assert_int_equal(index, 2);
	assert_int_equal(rest.chunk.address.offset, 16);
	assert_int_equal(rest.more, 0);
	assert_int_equal(flexmem_chunks_equal(&list[0].chunk, 1, &list[1].chunk,
					      1, sizeof(*list)), 0);
	assert_int_equal(flexmem_chunks_equal(&list->chunk, 3, &list->chunk, 3,
					      sizeof(*list)), 1);
}

static int equals_example(const struct flexmem_chunk_info *list, size_t count)
{
	return flexmem_chunks_equal(example, COUNT(example), list, count,
				    sizeof(*list));
}

static void equality(void **state)
{
	struct flexmem_chunk_info other[COUNT(example)];
	size_t i;

	(void)state;
	memcpy(other, example, sizeof(other));
	assert_int_equal(equals_example(other, 3), 1);
	assert_int_equal(equals_example(other, 2), 0);
	assert_int_equal(flexmem_chunks_equal(NULL, 0, NULL, 0, sizeof(*other)),
			 1);
	/* A difference in the last entry must be found. */
	for (i = 0; i < 4; i++) {
		memcpy(other, example, sizeof(other));
		other[2].address.region_id += i == 0;
		other[2].address.offset += i == 1 ? 128 : 0;
		other[2].size += i == 2 ? 128 : 0;
		other[2].domain += i == 3;
		assert_int_equal(equals_example(other, 3), 0);
	}
}

static void text(void **state)
{
	static const struct flexmem_chunk_info longest[] = {
		{ .address = { UINT64_MAX, UINT64_MAX }, .size = UINT64_MAX,
		  .domain = UINT32_MAX },
		{ .address = { UINT64_MAX, UINT64_MAX }, .size = UINT64_MAX,
		  .domain = UINT32_MAX },
	};
	static const char whole[] =
		"region 0x1 offset 0x80 size 256 domain 0; "
		"region 0x1 offset 0x180 size 128 domain 0; "
		"region 0x2 offset 0 size 384 domain 3";
	char line[256];
	size_t length;

	(void)state;
	/* Any room: the text is cut off, and nothing is written behind it. */
	for (length = 1; length <= sizeof(whole); length++) {
		memset(line, 'x', sizeof(line));
		assert_int_equal(flexmem_chunks_text(LIST, line, length),
				 length < sizeof(whole) ? -EMSGSIZE : 0);
		assert_int_equal(strlen(line), length - 1);
		assert_memory_equal(line, whole, length - 1);
		assert_int_equal(line[length], 'x');
	}
	assert_int_equal(flexmem_chunks_text(LIST, NULL, 0), -EMSGSIZE);
	assert_int_equal(flexmem_chunks_text(NULL, sizeof(*longest), 0, line,
					     1), 0);
	assert_string_equal(line, "");
	assert_int_equal(flexmem_chunks_text(longest, sizeof(*longest), 2, line,
					     2 * 128), 0);
}

static void wrong_arguments(void **state)
{
	const size_t size = sizeof(example[0]);
	struct flexmem_chunk_info rest;
	uint64_t bytes;
	char line[8];

	(void)state;
	assert_int_equal(flexmem_chunks_total(NULL, size, 1, &bytes), -EINVAL);
	assert_int_equal(flexmem_chunks_total(example, size - 1, 1, &bytes),
			 -EINVAL);
	assert_int_equal(flexmem_chunks_total(example, size, 1, NULL), -EINVAL);
	assert_int_equal(flexmem_chunks_contiguous(NULL, size, 1), -EINVAL);
	assert_int_equal(flexmem_chunks_find(NULL, size, 1, 0, &rest, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_chunks_find(example, size, 1, 0, NULL, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_chunks_equal(NULL, 1, example, 1, size),
			 -EINVAL);
	assert_int_equal(flexmem_chunks_equal(example, 1, NULL, 1, size),
			 -EINVAL);
	assert_int_equal(flexmem_chunks_text(NULL, size, 1, line, sizeof(line)),
			 -EINVAL);
	assert_int_equal(flexmem_chunks_text(example, size, 1, NULL, 1),
			 -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(total),
		TEST(contiguity),
		TEST(each_byte),
		TEST(chunks_from_a_byte),
		TEST(later_entries),
		TEST(equality),
		TEST(text),
		TEST(wrong_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
