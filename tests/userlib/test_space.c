// SPDX-License-Identifier: GPL-2.0
/* Device-virtual addresses: ranges, bindings, look-ups. */
#include "test.h"

#define PAGE (2 * MIB)
#define START (4 * GIB)
#define LENGTH (64 * GIB)
#define ALL (FLEXMEM_SPACE_READ | FLEXMEM_SPACE_WRITE | FLEXMEM_SPACE_EXECUTE)

static struct flexmem_device *device;

static int reserve(uint64_t length, struct flexmem_space_range *range)
{
	memset(range, 0xaa, sizeof(*range));
	return flexmem_device_space_reserve(device, length, range,
					    sizeof(*range));
}

static uint64_t take(uint64_t length)
{
	struct flexmem_space_range range;

	assert_int_equal(reserve(length, &range), 0);
	return range.address;
}

static uint32_t make(uint64_t length, uint32_t flags)
{
	struct flexmem_allocated a;

	assert_int_equal(flexmem_device_alloc(device, length, PAGE, flags, &a,
					      sizeof(a)), 0);
	return a.handle;
}

static int lookup(uint32_t handle, uint64_t offset,
		  struct flexmem_space_bytes *bytes)
{
	memset(bytes, 0xaa, sizeof(*bytes));
	return flexmem_device_space_lookup(device, handle, offset, bytes,
					   sizeof(*bytes));
}

static int lookup_address(uint64_t address, struct flexmem_space_bytes *bytes)
{
	memset(bytes, 0xaa, sizeof(*bytes));
	return flexmem_device_space_lookup_address(device, address, bytes,
						   sizeof(*bytes));
}

static void space_is_described(void **state)
{
	size_t old = offsetof(struct flexmem_properties, space_page);
	struct flexmem_properties p;

	(void)state;
	device = open_device();
	assert_int_equal(flexmem_device_properties(device, &p, sizeof(p)), 0);
	assert_int_equal(p.space_page, PAGE);
	assert_int_equal(p.space_start, START);
	assert_int_equal(p.space_length, LENGTH);
	/* An older program has a shorter struct. */
	memset(&p, 0xaa, sizeof(p));
	assert_int_equal(flexmem_device_properties(device, &p, old), 0);
	assert_string_equal(p.name, "fake");
	assert_int_equal(p.space_page, UINT64_C(0xaaaaaaaaaaaaaaaa));
	flexmem_device_close(device);
}

static void ranges_are_reserved(void **state)
{
	struct flexmem_space_range first;
	struct flexmem_space_range second;

	(void)state;
	device = open_device();
	assert_int_equal(reserve(1, &first), 0);
	assert_int_equal(first.address, START);
	assert_int_equal(first.length, PAGE);
	assert_int_equal(first.largest_free, LENGTH - PAGE);
	assert_int_equal(reserve(PAGE + 1, &second), 0);
	assert_int_equal(second.address, START + PAGE);
	assert_int_equal(second.length, 2 * PAGE);
	assert_int_equal(second.largest_free, LENGTH - 3 * PAGE);
	/* The lowest free addresses come first, and free neighbours merge. */
	assert_int_equal(flexmem_device_space_free(device, first.address), 0);
	assert_int_equal(take(PAGE), START);
	assert_int_equal(flexmem_device_space_free(device, second.address), 0);
	assert_int_equal(take(LENGTH - PAGE), START + PAGE);
	flexmem_device_close(device);
}

static void overflow_names_the_figures(void **state)
{
	struct flexmem_space_range range;

	(void)state;
	device = open_device();
	assert_int_equal(reserve(LENGTH + 1, &range), -ENOSPC);
	assert_int_equal(range.address, 0);
	assert_int_equal(range.length, LENGTH + PAGE);
	assert_int_equal(range.largest_free, LENGTH);
	take(LENGTH - PAGE);
	assert_int_equal(reserve(PAGE + 1, &range), -ENOSPC);
	assert_int_equal(range.length, 2 * PAGE);
	assert_int_equal(range.largest_free, PAGE);
	assert_int_equal(reserve(UINT64_MAX, &range), -ENOSPC);
	assert_int_equal(range.length, UINT64_MAX);
	assert_int_equal(range.largest_free, PAGE);
	assert_int_equal(reserve(0, &range), -EINVAL);
	assert_int_equal(range.address, 0);
	flexmem_device_close(device);
}

static void memory_is_bound(void **state)
{
	struct flexmem_space_bytes bytes;
	uint64_t address;
	uint32_t handle;

	(void)state;
	device = open_device();
	handle = make(4 * PAGE, 0);
	address = take(8 * PAGE);
	assert_int_equal(flexmem_device_space_bind(device, address + 3 * PAGE,
						   handle, PAGE, 2 * PAGE,
						   FLEXMEM_SPACE_READ |
						   FLEXMEM_SPACE_EXECUTE), 0);
	assert_int_equal(lookup_address(address + 4 * PAGE + 5, &bytes), 0);
	assert_int_equal(bytes.handle, handle);
	assert_int_equal(bytes.chunk, 0);
	assert_int_equal(bytes.access,
			 FLEXMEM_SPACE_READ | FLEXMEM_SPACE_EXECUTE);
	assert_int_equal(bytes.reserved, 0);
	assert_int_equal(bytes.address, address + 4 * PAGE + 5);
	assert_int_equal(bytes.offset, 2 * PAGE + 5);
	assert_int_equal(bytes.length, PAGE - 5);
	assert_int_equal(lookup(handle, 2 * PAGE + 5, &bytes), 0);
	assert_int_equal(bytes.handle, handle);
	assert_int_equal(bytes.address, address + 4 * PAGE + 5);
	assert_int_equal(bytes.offset, 2 * PAGE + 5);
	assert_int_equal(bytes.length, PAGE - 5);
	/* Other addresses and bytes are not bound. */
	assert_int_equal(lookup_address(address + 3 * PAGE - 1, &bytes),
			 -ENOENT);
	assert_int_equal(lookup_address(address + 5 * PAGE, &bytes), -ENOENT);
	assert_int_equal(lookup(handle, PAGE - 1, &bytes), -ENOENT);
	assert_int_equal(lookup(handle, 3 * PAGE, &bytes), -ENOENT);
	/* A failed look-up writes nothing. */
	assert_int_equal(bytes.handle, 0xaaaaaaaa);
	assert_int_equal(flexmem_device_space_free(device, address), -EBUSY);
	assert_int_equal(flexmem_device_space_unbind(device,
						     address + 3 * PAGE), 0);
	assert_int_equal(lookup(handle, PAGE, &bytes), -ENOENT);
	assert_int_equal(flexmem_device_space_free(device, address), 0);
	flexmem_device_close(device);
}

static void chunks_are_adjacent(void **state)
{
	struct flexmem_space_bytes bytes;
	uint64_t address;
	uint32_t handle;

	(void)state;
	fake.chunks = 2;
	device = open_device();
	handle = make(2 * PAGE, FLEXMEM_MAPPABLE);
	address = take(2 * PAGE);
	assert_int_equal(flexmem_device_space_bind(device, address, handle, 0,
						   2 * PAGE, ALL), 0);
	assert_int_equal(lookup(handle, 0, &bytes), 0);
	assert_int_equal(bytes.chunk, 0);
	assert_int_equal(bytes.length, 2 * PAGE);
	assert_int_equal(lookup_address(address + PAGE, &bytes), 0);
	assert_int_equal(bytes.chunk, 1);
	assert_int_equal(bytes.offset, PAGE);
	flexmem_device_close(device);
}

static void freed_memory_stays_bound(void **state)
{
	struct flexmem_space_bytes bytes;
	uint64_t address;
	uint32_t handle;

	(void)state;
	device = open_device();
	handle = make(PAGE, 0);
	address = take(PAGE);
	assert_int_equal(flexmem_device_space_bind(device, address, handle, 0,
						   PAGE, ALL), 0);
	assert_int_equal(flexmem_device_free(device, handle), 0);
	assert_int_equal(lookup(handle, 0, &bytes), -ENOENT);
	assert_int_equal(lookup_address(address, &bytes), 0);
	assert_int_equal(bytes.handle, 0);
	assert_int_equal(bytes.length, PAGE);
	assert_int_equal(flexmem_device_space_unbind(device, address), 0);
	assert_int_equal(lookup_address(address, &bytes), -ENOENT);
	flexmem_device_close(device);
}

static int bind(uint64_t address, uint32_t handle, uint64_t offset,
		uint64_t length, uint32_t access)
{
	return flexmem_device_space_bind(device, address, handle, offset,
					 length, access);
}

static void wrong_bindings(void **state)
{
	uint64_t address;
	uint32_t handle;

	(void)state;
	device = open_device();
	handle = make(2 * PAGE, 0);
	address = take(2 * PAGE);
	take(PAGE);
	assert_int_equal(bind(address, handle, 0, PAGE, 0), -EINVAL);
	assert_int_equal(bind(address, handle, 0, PAGE, 8), -EINVAL);
	assert_int_equal(bind(address, handle, 0, 0, ALL), -EINVAL);
	assert_int_equal(bind(address, handle, 0, 1, ALL), -EINVAL);
	assert_int_equal(bind(address, handle, 1, PAGE, ALL), -EINVAL);
	assert_int_equal(bind(address + 1, handle, 0, PAGE, ALL), -EINVAL);
	assert_int_equal(bind(address, handle, PAGE, 2 * PAGE, ALL), -EINVAL);
	assert_int_equal(bind(address, 0, 0, PAGE, ALL), -ENOENT);
	assert_int_equal(bind(address, handle + 1, 0, PAGE, ALL), -ENOENT);
	/* The last page is in another range. */
	assert_int_equal(bind(address + PAGE, handle, 0, 2 * PAGE, ALL),
			 -ENXIO);
	assert_int_equal(bind(address, handle, 0, PAGE, FLEXMEM_SPACE_READ), 0);
	assert_int_equal(bind(address, handle, PAGE, PAGE, ALL), -EEXIST);
	assert_int_equal(bind(address + PAGE, handle, 0, PAGE, ALL), -EBUSY);
	assert_int_equal(flexmem_device_space_unbind(device, address + PAGE),
			 -ENOENT);
	assert_int_equal(flexmem_device_space_free(device, address + PAGE),
			 -ENOENT);
	fake_lose();
	assert_int_equal(bind(address + PAGE, handle, PAGE, PAGE, ALL), -EIO);
	flexmem_device_close(device);
}

static void each_device_object_has_a_space(void **state)
{
	struct flexmem_device *first = open_device();
	struct flexmem_space_bytes bytes;
	struct flexmem_space_range mine;
	struct flexmem_space_range other;
	uint32_t handle;

	(void)state;
	device = first;
	assert_int_equal(reserve(PAGE, &mine), 0);
	handle = make(PAGE, 0);
	assert_int_equal(bind(mine.address, handle, 0, PAGE, ALL), 0);
	device = open_device();
	assert_int_equal(lookup_address(mine.address, &bytes), -ENOENT);
	assert_int_equal(flexmem_device_space_unbind(device, mine.address),
			 -ENOENT);
	assert_int_equal(flexmem_device_space_free(device, mine.address),
			 -ENOENT);
	assert_int_equal(reserve(PAGE, &other), 0);
	assert_int_equal(other.address, mine.address);
	flexmem_device_close(device);
	/* Closing a device ends its ranges and bindings. */
	flexmem_device_close(first);
	device = open_device();
	assert_int_equal(take(LENGTH), START);
	flexmem_device_close(device);
}

static void without_page_tables(void **state)
{
	struct flexmem_space_bytes bytes;
	struct flexmem_space_range range;
	struct flexmem_properties p;

	(void)state;
	fake.capabilities &= ~(uint64_t)FLEXMEM_CAP_PAGE_TABLES;
	device = open_device();
	assert_int_equal(flexmem_device_properties(device, &p, sizeof(p)), 0);
	assert_false(p.capabilities & FLEXMEM_CAN_PAGE_TABLES);
	assert_int_equal(p.space_page, 0);
	assert_int_equal(p.space_start, 0);
	assert_int_equal(p.space_length, 0);
	assert_int_equal(reserve(5, &range), -EOPNOTSUPP);
	assert_int_equal(range.address, 0);
	assert_int_equal(range.length, 5);
	assert_int_equal(flexmem_device_space_free(device, START), -EOPNOTSUPP);
	assert_int_equal(bind(START, 1, 0, PAGE, ALL), -EOPNOTSUPP);
	assert_int_equal(flexmem_device_space_unbind(device, START),
			 -EOPNOTSUPP);
	assert_int_equal(lookup(1, 0, &bytes), -EOPNOTSUPP);
	assert_int_equal(lookup(0, 0, &bytes), -EOPNOTSUPP);
	assert_int_equal(lookup_address(START, &bytes), -EOPNOTSUPP);
	flexmem_device_close(device);
}

/* A driver from before VA_RESERVE sets the capability, and has no page size. */
static void driver_without_the_calls(void **state)
{
	struct flexmem_properties p;

	(void)state;
	fake.va_page = 0;
	device = open_device();
	assert_int_equal(flexmem_device_properties(device, &p, sizeof(p)), 0);
	assert_false(p.capabilities & FLEXMEM_CAN_PAGE_TABLES);
	flexmem_device_close(device);
}

static void wrong_arguments(void **state)
{
	struct flexmem_space_bytes bytes;
	struct flexmem_space_range range;
	uint32_t handle;

	(void)state;
	device = open_device();
	handle = make(PAGE, 0);
	assert_int_equal(flexmem_device_space_reserve(NULL, PAGE, &range,
						      sizeof(range)), -EINVAL);
	assert_int_equal(flexmem_device_space_reserve(device, PAGE, NULL,
						      sizeof(range)), -EINVAL);
	assert_int_equal(flexmem_device_space_reserve(device, PAGE, &range,
						      sizeof(range) - 1),
			 -EINVAL);
	assert_int_equal(flexmem_device_space_free(NULL, START), -EINVAL);
	assert_int_equal(flexmem_device_space_bind(NULL, START, handle, 0,
						   PAGE, ALL), -EINVAL);
	assert_int_equal(flexmem_device_space_unbind(NULL, START), -EINVAL);
	assert_int_equal(flexmem_device_space_lookup(NULL, handle, 0, &bytes,
						     sizeof(bytes)), -EINVAL);
	assert_int_equal(flexmem_device_space_lookup(device, handle, 0, NULL,
						     sizeof(bytes)), -EINVAL);
	assert_int_equal(flexmem_device_space_lookup(device, handle, 0, &bytes,
						     sizeof(bytes) - 1),
			 -EINVAL);
	assert_int_equal(flexmem_device_space_lookup_address(device, START,
							     NULL,
							     sizeof(bytes)),
			 -EINVAL);
	/* Nothing was reserved, and handle 0 is not a look-up by address. */
	assert_int_equal(take(PAGE), START);
	assert_int_equal(lookup(0, 0, &bytes), -ENOENT);
	assert_int_equal(lookup(0, 5, &bytes), -ENOENT);
	assert_int_equal(fake.calls[FLEXMEM_CMD_VA_LOOKUP], 0);
	flexmem_device_close(device);
}

static void longer_structs_are_zeroed(void **state)
{
	struct {
		struct flexmem_space_range known;
		char more[8];
	} range;
	struct {
		struct flexmem_space_bytes known;
		char more[8];
	} bytes;

	(void)state;
	device = open_device();
	memset(&range, 0xaa, sizeof(range));
	assert_int_equal(flexmem_device_space_reserve(device, PAGE,
						      &range.known,
						      sizeof(range)), 0);
	assert_int_equal(range.more[0], 0);
	assert_int_equal(bind(range.known.address, make(PAGE, 0), 0, PAGE, ALL),
			 0);
	memset(&bytes, 0xaa, sizeof(bytes));
	assert_int_equal(flexmem_device_space_lookup_address(device,
							     range.known.address,
							     &bytes.known,
							     sizeof(bytes)),
			 0);
	assert_int_equal(bytes.more[0], 0);
	flexmem_device_close(device);
}

static void errors_of_the_driver(void **state)
{
	struct flexmem_space_bytes bytes;
	struct flexmem_space_range range;
	uint64_t address;
	uint32_t handle;

	(void)state;
	device = open_device();
	handle = make(PAGE, 0);
	address = take(PAGE);
	/* The driver is older than the library. */
	inject(FLEXMEM_CMD_VA_RESERVE, 1, ENOTTY);
	assert_int_equal(reserve(PAGE, &range), -ENOTTY);
	inject(FLEXMEM_CMD_VA_BIND, 1, ETIMEDOUT);
	assert_int_equal(bind(address, handle, 0, PAGE, ALL), -ETIMEDOUT);
	assert_int_equal(bind(address, handle, 0, PAGE, ALL), 0);
	inject(FLEXMEM_CMD_VA_UNBIND, 1, EBUSY);
	assert_int_equal(flexmem_device_space_unbind(device, address), -EBUSY);
	inject(FLEXMEM_CMD_VA_LOOKUP, 1, EBUSY);
	assert_int_equal(lookup(handle, 0, &bytes), -EBUSY);
	assert_int_equal(flexmem_device_space_unbind(device, address), 0);
	inject(FLEXMEM_CMD_VA_FREE, 1, EBUSY);
	assert_int_equal(flexmem_device_space_free(device, address), -EBUSY);
	assert_int_equal(flexmem_device_space_free(device, address), 0);
	flexmem_device_close(device);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(space_is_described),
		TEST(ranges_are_reserved),
		TEST(overflow_names_the_figures),
		TEST(memory_is_bound),
		TEST(chunks_are_adjacent),
		TEST(freed_memory_stays_bound),
		TEST(wrong_bindings),
		TEST(each_device_object_has_a_space),
		TEST(without_page_tables),
		TEST(driver_without_the_calls),
		TEST(wrong_arguments),
		TEST(longer_structs_are_zeroed),
		TEST(errors_of_the_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
