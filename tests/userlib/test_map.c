// SPDX-License-Identifier: GPL-2.0
/*
 * The bytes of allocations: mappings and copies, lost allocations, and the
 * pattern that the flexmem command writes.
 */
#include "test.h"

#include <sys/mman.h>

#include "pattern.h"

static uint32_t get(struct flexmem_device *device, uint64_t length,
		    uint32_t flags)
{
	struct flexmem_allocated a;

	assert_int_equal(flexmem_device_alloc(device, length, 0, flags, &a,
					      sizeof(a)), 0);
	assert_int_equal(a.flags, flags);
	return a.handle;
}

static int map_part(struct flexmem_device *device, uint32_t handle,
		    uint64_t offset, size_t length, unsigned char **bytes)
{
	void *address = NULL;
	int err;

	err = flexmem_device_map(device, handle, offset, length, 0, &address,
				 NULL);
	*bytes = address;
	return err;
}

static void flags_of_an_allocation(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	get(device, 1, 0);
	assert_int_equal(flexmem_device_alloc(device, 5000, 0,
					      FLEXMEM_MAPPABLE | FLEXMEM_ZEROED,
					      &a, sizeof(a)), 0);
	assert_int_equal(a.size, 8192);
	assert_int_equal(a.address.offset, 4096);
	assert_int_equal(a.flags, FLEXMEM_MAPPABLE | FLEXMEM_ZEROED);
	memset(&a, 0xff, sizeof(a));
	assert_int_equal(flexmem_device_lookup(device, 2, &a, sizeof(a)), 0);
	assert_int_equal(a.flags, FLEXMEM_MAPPABLE | FLEXMEM_ZEROED);
	flexmem_device_close(device);
}

static void flags_without_the_capability(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;
	char byte;

	(void)state;
	fake.capabilities = 0;
	device = open_device();
	assert_int_equal(flexmem_device_alloc(device, 1, 0, FLEXMEM_MAPPABLE,
					      &a, sizeof(a)), -EOPNOTSUPP);
	assert_int_equal(flexmem_device_alloc(device, 1, 0, FLEXMEM_ZEROED, &a,
					      sizeof(a)), -EOPNOTSUPP);
	assert_int_equal(flexmem_device_read(device, get(device, 1, 0), 0,
					     &byte, 1, NULL), -EOPNOTSUPP);
	flexmem_device_close(device);
}

/*
 * A mapping and a copy access the same bytes, and only those of the allocation.
 */
static void map_whole(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 3 * 4096, FLEXMEM_MAPPABLE);
	uint32_t next = get(device, 4096, FLEXMEM_MAPPABLE | FLEXMEM_ZEROED);
	unsigned char other[4096];
	unsigned char *bytes;
	char text[6] = "";
	size_t mapped = 0;
	void *address;
	int i;

	(void)state;
	assert_int_equal(flexmem_device_map(device, handle, 0, 0, 0, &address,
					    &mapped), 0);
	assert_int_equal(mapped, 3 * 4096);
	assert_int_equal(fake.map_protection, PROT_READ | PROT_WRITE);
	bytes = address;
	memset(bytes, 0xee, mapped);
	memcpy(bytes + 4090, "hello", 6);
	assert_int_equal(flexmem_device_read(device, handle, 4090, text, 6,
					     NULL), 0);
	assert_string_equal(text, "hello");
	assert_int_equal(flexmem_device_write(device, handle, 8192, "bye", 4,
					      NULL), 0);
	assert_string_equal((char *)bytes + 8192, "bye");
	assert_int_equal(flexmem_device_read(device, next, 0, other, 4096,
					     NULL), 0);
	for (i = 0; i < 4096; i++)
		assert_int_equal(other[i], 0);
	assert_int_equal(flexmem_device_unmap(device, address, mapped), 0);
	flexmem_device_close(device);
}

static void map_parts(void **state)
{
	struct flexmem_device *device = open_device();
	unsigned char *second;
	unsigned char *rest;
	size_t mapped = 7;
	void *address;
	uint32_t handle;

	(void)state;
	get(device, 100, 0);
	handle = get(device, 3 * 4096, FLEXMEM_MAPPABLE);
	assert_int_equal(map_part(device, handle, 4096, 4096, &second), 0);
	assert_int_equal(map_part(device, handle, 4096, 100, &rest), 0);
	assert_int_equal(flexmem_device_write(device, handle, 4096, "x", 1,
					      NULL), 0);
	assert_int_equal(second[0], 'x');
	second[4095] = 'y';
	assert_int_equal(rest[4095], 'y');
	assert_int_equal(flexmem_device_unmap(device, second, 4096), 0);
	assert_int_equal(flexmem_device_unmap(NULL, rest, 100), 0);

	assert_int_equal(flexmem_device_map(device, handle, 8192, 0, 0,
					    &address, &mapped), 0);
	assert_int_equal(mapped, 4096);
	assert_int_equal(flexmem_device_unmap(device, address, mapped), 0);
	flexmem_device_close(device);
}

/* Each chunk has a mapping of its own, and no mapping has bytes of two. */
static void map_chunks(void **state)
{
	struct flexmem_device *device = open_device();
	static const char bytes[] = "chunks";
	uint64_t offset = 0;
	unsigned char *map;
	uint32_t handle;
	uint64_t last;
	size_t mapped;
	void *address;
	char read[4];
	int i;

	(void)state;
	fake.chunks = 3;
	get(device, 100, 0);
	handle = get(device, 8 * 4096, FLEXMEM_MAPPABLE);
	for (i = 0; i < 3; i++, offset += mapped) {
		assert_int_equal(flexmem_device_map(device, handle, offset, 0,
						    0, &address, &mapped), 0);
		assert_int_equal(mapped, i < 2 ? 3 * 4096 : 2 * 4096);
		map = address;
		last = offset + mapped - 4096;
		memcpy(map + mapped - 4096, bytes + i, 4);
		assert_int_equal(flexmem_device_unmap(device, map, mapped), 0);
		assert_int_equal(flexmem_device_read(device, handle, last, read,
						     4, NULL), 0);
		assert_memory_equal(read, bytes + i, 4);
		assert_int_equal(map_part(device, handle, last, 4096, &map), 0);
		assert_memory_equal(map, bytes + i, 4);
		assert_int_equal(flexmem_device_unmap(device, map, 4096), 0);
		assert_int_equal(map_part(device, handle, last, 8192, &map),
				 -EINVAL);
	}
	assert_int_equal(map_part(device, handle, offset, 1, &map), -EINVAL);
	flexmem_device_close(device);
}

static void map_read_only(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 1, FLEXMEM_MAPPABLE);
	void *address;

	(void)state;
	assert_int_equal(flexmem_device_map(device, handle, 0, 0,
					    FLEXMEM_READ_ONLY, &address, NULL),
			 0);
	assert_int_equal(fake.map_protection, PROT_READ);
	assert_int_equal(flexmem_device_unmap(device, address, 4096), 0);
	flexmem_device_close(device);
}

/* A refused mapping does not change the caller's pointers. */
static void map_refused(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 8192, FLEXMEM_MAPPABLE);
	uint32_t plain = get(device, 8192, 0);
	static const struct {
		uint64_t offset;
		size_t length;
		uint32_t flags;
		int error;
	} cases[] = {
		{ 1, 1, 0, -EINVAL },
		{ 128, 0, 0, -EINVAL },
		{ 8192, 0, 0, -EINVAL },
		{ 8192, 1, 0, -EINVAL },
		{ 4096, 4097, 0, -EINVAL },
		{ 0, 8193, 0, -EINVAL },
		{ UINT64_MAX - 4095, 8192, 0, -EINVAL },
		{ 0, SIZE_MAX, 0, -EINVAL },
		{ 0, 0, 2, -EOPNOTSUPP },
	};
	void *address = device;
	size_t mapped = 7;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(flexmem_device_map(device, handle,
						    cases[i].offset,
						    cases[i].length,
						    cases[i].flags, &address,
						    &mapped), cases[i].error);
	assert_int_equal(flexmem_device_map(device, plain, 0, 0, 0, &address,
					    &mapped), -EINVAL);
	assert_int_equal(flexmem_device_map(device, 99, 0, 0, 0, &address,
					    &mapped), -ENOENT);
	fake.mmap_error = ENOMEM;
	assert_int_equal(flexmem_device_map(device, handle, 0, 0, 0, &address,
					    &mapped), -ENOMEM);
	/* Does not call mmap(): at offset 0 there may be another allocation. */
	assert_int_equal(flexmem_device_map(device, plain, 0, 0, 0, &address,
					    &mapped), -EINVAL);
	assert_ptr_equal(address, device);
	assert_int_equal(mapped, 7);
	flexmem_device_close(device);
}

static void unmap_refused(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 4096, FLEXMEM_MAPPABLE);
	unsigned char *bytes;

	(void)state;
	assert_int_equal(flexmem_device_unmap(device, NULL, 0), 0);
	assert_int_equal(map_part(device, handle, 0, 0, &bytes), 0);
	assert_int_equal(flexmem_device_unmap(device, bytes + 1, 4096),
			 -EINVAL);
	assert_int_equal(flexmem_device_unmap(device, bytes, 0), -EINVAL);
	assert_int_equal(flexmem_device_unmap(device, bytes, 4096), 0);
	flexmem_device_close(device);
}

/*
 * The driver may copy only a part. The library then copies the remaining bytes.
 */
static void copies_of_any_length(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, MIB, 0);
	unsigned char out[1000];
	unsigned char in[1000];
	size_t done = 7;

	(void)state;
	pattern_fill(out, 1, 0, sizeof(out));
	memset(in, 0, sizeof(in));
	fake.copy_most = 300;
	assert_int_equal(flexmem_device_write(device, handle, 77, out, 1000,
					      &done), 0);
	assert_int_equal(done, 1000);
	assert_int_equal(fake.calls[FLEXMEM_CMD_WRITE], 4);
	done = 7;
	assert_int_equal(flexmem_device_read(device, handle, 77, in, 1000,
					     &done), 0);
	assert_int_equal(done, 1000);
	assert_int_equal(fake.calls[FLEXMEM_CMD_READ], 4);
	assert_memory_equal(in, out, 1000);

	assert_int_equal(flexmem_device_read(device, handle, 0, NULL, 0,
					     &done), 0);
	assert_int_equal(done, 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_READ], 4);
	flexmem_device_close(device);
}

static void copies_that_fail(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 1024, 0);
	unsigned char bytes[1024] = "0123456789";
	size_t done = 7;

	(void)state;
	fake.copy_most = 400;
	fake.copied_before_error = 50;
	inject(FLEXMEM_CMD_WRITE, 2, ETIMEDOUT);
	assert_int_equal(flexmem_device_write(device, handle, 0, bytes, 1024,
					      &done), -ETIMEDOUT);
	assert_int_equal(done, 450);
	inject(FLEXMEM_CMD_READ, 1, EINTR);
	fake.copied_before_error = 0;
	assert_int_equal(flexmem_device_read(device, handle, 0, bytes, 1024,
					     &done), -EINTR);
	assert_int_equal(done, 0);
	assert_int_equal(flexmem_device_read(device, handle, 1000, bytes, 25,
					     &done), -EINVAL);
	assert_int_equal(flexmem_device_read(device, handle, UINT64_MAX, bytes,
					     2, NULL), -EINVAL);
	done = 7;
	assert_int_equal(flexmem_device_read(NULL, handle, 0, bytes, 2, &done),
			 -EINVAL);
	assert_int_equal(done, 0);
	assert_int_equal(flexmem_device_read(device, 99, 0, bytes, 1, NULL),
			 -ENOENT);
	flexmem_device_close(device);
}

/*
 * If the driver copies nothing but reports no error, the library does not
 * repeat the call forever.
 */
static void copy_makes_no_progress(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 1024, 0);
	char byte = 0;
	size_t done;

	(void)state;
	fake.copied_nothing = true;
	assert_int_equal(flexmem_device_read(device, handle, 0, &byte, 1,
					     &done), -EIO);
	assert_int_equal(done, 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_READ], 1);
	flexmem_device_close(device);
}

static void copies_within_the_device(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t from = get(device, 2048, 0);
	uint32_t to = get(device, 2048, 0);
	unsigned char out[2048];
	unsigned char in[2048];
	uint64_t done = 7;

	(void)state;
	pattern_fill(out, 1, 0, sizeof(out));
	assert_int_equal(flexmem_device_write(device, from, 0, out, 2048,
					      NULL), 0);
	assert_int_equal(flexmem_device_write(device, to, 0, out, 2048, NULL),
			 0);
	fake.copy_most = 384;
	assert_int_equal(flexmem_device_copy(device, to, 128, from, 1024, 1024,
					     &done), 0);
	assert_int_equal(done, 1024);
	assert_int_equal(fake.calls[FLEXMEM_CMD_COPY], 3);
	memmove(out + 128, out + 1024, 1024);
	fake.copy_most = 0;
	assert_int_equal(flexmem_device_copy(device, to, 0, to, 1024, 1024,
					     NULL), 0);
	memcpy(out, out + 1024, 1024);
	assert_int_equal(flexmem_device_read(device, to, 0, in, 2048, NULL), 0);
	assert_memory_equal(in, out, 2048);
	assert_int_equal(flexmem_device_copy(device, to, 0, from, 0, 0, &done),
			 0);
	assert_int_equal(done, 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_COPY], 4);
	flexmem_device_close(device);
}

static void copies_within_the_device_that_fail(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 1024, 0);
	uint32_t other = get(device, 2048, 0);
	uint64_t done = 7;

	(void)state;
	fake.copy_most = 256;
	fake.copied_before_error = 128;
	inject(FLEXMEM_CMD_COPY, 2, ETIMEDOUT);
	assert_int_equal(flexmem_device_copy(device, other, 0, handle, 0, 1024,
					     &done), -ETIMEDOUT);
	assert_int_equal(done, 384);
	assert_int_equal(flexmem_device_copy(device, handle, 0, handle, 128,
					     256, &done), -EINVAL);
	assert_int_equal(done, 0);
	assert_int_equal(flexmem_device_copy(device, handle, 0, other, 0, 1152,
					     NULL), -EINVAL);
	assert_int_equal(flexmem_device_copy(device, handle, 0, other, 64, 128,
					     NULL), -EINVAL);
	assert_int_equal(flexmem_device_copy(device, handle, 0, 99, 0, 128,
					     NULL), -ENOENT);
	done = 7;
	assert_int_equal(flexmem_device_copy(NULL, handle, 0, other, 0, 128,
					     &done), -EINVAL);
	assert_int_equal(done, 0);
	fake.copied_nothing = true;
	assert_int_equal(flexmem_device_copy(device, handle, 0, other, 0, 128,
					     &done), -EIO);
	assert_int_equal(done, 0);
	flexmem_device_close(device);
}

/* If the device cannot copy, the library reads and writes. */
static void copies_by_the_host(void **state)
{
	const size_t size = 200 * KIB;
	unsigned char *out = malloc(size);
	unsigned char *in = malloc(size);
	struct flexmem_device *device;
	uint64_t done = 7;
	uint32_t from;
	uint32_t to;

	(void)state;
	fake.capabilities &= ~(uint64_t)FLEXMEM_CAP_COPY;
	device = open_device();
	from = get(device, size, 0);
	to = get(device, size, 0);
	pattern_fill(out, 1, 0, size);
	assert_int_equal(flexmem_device_write(device, from, 0, out, size,
					      NULL), 0);
	assert_int_equal(flexmem_device_copy(device, to, 128, from, 256,
					     size - 256, &done), 0);
	assert_int_equal(done, size - 256);
	assert_int_equal(flexmem_device_read(device, to, 128, in, size - 256,
					     NULL), 0);
	assert_memory_equal(in, out + 256, size - 256);
	assert_int_equal(fake.calls[FLEXMEM_CMD_COPY], 0);

	/*
	 * The rules of COPY hold here too: a call that breaks them copies
	 * nothing.
	 */
	assert_int_equal(flexmem_device_copy(device, to, 0, to, 128, 256,
					     &done), -EINVAL);
	assert_int_equal(flexmem_device_copy(device, to, 64, from, 0, 128,
					     NULL), -EINVAL);
	assert_int_equal(flexmem_device_copy(device, to, 128, from, 0, size,
					     NULL), -EINVAL);
	assert_int_equal(flexmem_device_copy(device, to, 0, from, size, 128,
					     NULL), -EINVAL);
	assert_int_equal(flexmem_device_copy(device, to, 0, 99, 0, 128, NULL),
			 -ENOENT);
	assert_int_equal(flexmem_device_copy(device, to, 0, from, 0, 0, NULL),
			 0);
	assert_int_equal(done, 0);

	/* Bytes that were written before an error count as done. */
	fake.copied_before_error = 128;
	inject(FLEXMEM_CMD_WRITE, 2, EIO);
	assert_int_equal(flexmem_device_copy(device, to, 0, from, 0, size,
					     &done), -EIO);
	assert_int_equal(done, 64 * KIB + 128);
	flexmem_device_close(device);

	fake.capabilities &= ~(uint64_t)FLEXMEM_CAP_RW;
	device = open_device();
	from = get(device, 128, 0);
	to = get(device, 128, 0);
	assert_int_equal(flexmem_device_copy(device, to, 0, from, 0, 128,
					     &done), -EOPNOTSUPP);
	flexmem_device_close(device);
	free(out);
	free(in);
}

static void zeroed(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 128, 0);
	char bytes[128];
	int i;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(flexmem_device_write(device, handle, 0, bytes, 128,
					      NULL), 0);
	assert_int_equal(flexmem_device_free(device, handle), 0);
	handle = get(device, 128, FLEXMEM_ZEROED);
	assert_int_equal(flexmem_device_read(device, handle, 0, bytes, 128,
					     NULL), 0);
	for (i = 0; i < 128; i++)
		assert_int_equal(bytes[i], 0);
	flexmem_device_close(device);
}

/* After a reset an allocation can only be looked up and freed. */
static void lost(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 4096, FLEXMEM_MAPPABLE);
	struct flexmem_allocated a;
	unsigned char *bytes;
	char byte;

	(void)state;
	fake_lose();
	assert_int_equal(flexmem_device_lookup(device, handle, &a, sizeof(a)),
			 0);
	assert_int_equal(a.flags, FLEXMEM_MAPPABLE | FLEXMEM_LOST);
	assert_int_equal(map_part(device, handle, 0, 0, &bytes), -EIO);
	assert_int_equal(flexmem_device_read(device, handle, 0, &byte, 1, NULL),
			 -EIO);
	assert_int_equal(flexmem_device_free_address(device, a.address),
			 -ENOENT);
	assert_int_equal(flexmem_device_free(device, handle), 0);
	handle = get(device, 4096, 0);
	assert_int_equal(flexmem_device_lookup(device, handle, &a, sizeof(a)),
			 0);
	assert_int_equal(a.flags, 0);
	flexmem_device_close(device);
}

static void nulls(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = get(device, 4096, FLEXMEM_MAPPABLE);
	void *address;
	char byte;

	(void)state;
	assert_int_equal(flexmem_device_map(NULL, handle, 0, 0, 0, &address,
					    NULL), -EINVAL);
	assert_int_equal(flexmem_device_map(device, handle, 0, 0, 0, NULL,
					    NULL), -EINVAL);
	assert_int_equal(flexmem_device_read(NULL, handle, 0, &byte, 1, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_read(device, handle, 0, NULL, 1, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_write(NULL, handle, 0, &byte, 1, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_write(device, handle, 0, NULL, 1, NULL),
			 -EINVAL);
	flexmem_device_close(device);
}

/* The pattern is the same whether it is made at once or in parts. */
static void pattern_of_parts(void **state)
{
	unsigned char whole[2000];
	unsigned char parts[2000];
	uint64_t first = 7;
	size_t at;
	size_t i;

	(void)state;
	pattern_fill(whole, 5, 123456789, sizeof(whole));
	for (at = 0, i = 1; at < sizeof(parts); at += i, i = i % 23 + 1) {
		if (i > sizeof(parts) - at)
			i = sizeof(parts) - at;
		pattern_fill(parts + at, 5, 123456789 + at, i);
	}
	assert_memory_equal(whole, parts, sizeof(whole));
	assert_int_equal(pattern_check(whole, 5, 123456789, 2000, &first), 0);
	assert_int_equal(pattern_check(whole + 3, 5, 123456792, 1990, &first),
			 0);
	assert_int_equal(first, 7);
}

static void pattern_finds_bytes(void **state)
{
	unsigned char bytes[4096];
	uint64_t first;
	size_t i;

	(void)state;
	pattern_fill(bytes, 5, 64, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i += 511) {
		bytes[i] ^= 0x10;
		assert_int_equal(pattern_check(bytes, 5, 64, 4096, &first), 1);
		assert_int_equal(first, 64 + i);
		bytes[i] ^= 0x10;
	}
	bytes[600] ^= 1;
	bytes[3000] ^= 1;
	assert_int_equal(pattern_check(bytes, 5, 64, 4096, &first), 2);
	assert_int_equal(first, 664);

	/* The check notices a wrong seed, a wrong offset, and zeroes. */
	assert_true(pattern_check(bytes, 6, 64, 4096, &first) > 4000);
	assert_true(pattern_check(bytes, 5, 72, 4096, &first) > 4000);
	memset(bytes, 0, sizeof(bytes));
	assert_true(pattern_check(bytes, 0, 0, 4096, &first) > 4000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(flags_of_an_allocation),
		TEST(flags_without_the_capability),
		TEST(map_whole),
		TEST(map_parts),
		TEST(map_chunks),
		TEST(map_read_only),
		TEST(map_refused),
		TEST(unmap_refused),
		TEST(copies_of_any_length),
		TEST(copies_that_fail),
		TEST(copy_makes_no_progress),
		TEST(copies_within_the_device),
		TEST(copies_within_the_device_that_fail),
		TEST(copies_by_the_host),
		TEST(zeroed),
		TEST(lost),
		TEST(nulls),
		TEST(pattern_of_parts),
		TEST(pattern_finds_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
