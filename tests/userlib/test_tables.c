// SPDX-License-Identifier: GPL-2.0
/* The lists of regions and of segments. */
#include "test.h"

static void use(struct flexmem_device *device, uint64_t length)
{
	struct flexmem_allocated a;

	assert_int_equal(flexmem_device_alloc(device, length, 0, 0, &a,
					      sizeof(a)), 0);
}

static void no_regions(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *regions = (void *)1;
	struct flexmem_segment *segments = (void *)1;
	uint64_t generation = 0;
	size_t count = 9;

	(void)state;
	assert_int_equal(flexmem_device_regions(device, &regions,
						sizeof(*regions), &count), 0);
	assert_int_equal(count, 0);
	assert_null(regions);
	count = 9;
	assert_int_equal(flexmem_device_segments(device, &segments,
						 sizeof(*segments), &count,
						 &generation), 0);
	assert_int_equal(count, 0);
	assert_null(segments);
	assert_int_equal(generation, 1);
	flexmem_regions_free(NULL);
	flexmem_segments_free(NULL);
	flexmem_device_close(device);
}

static void regions(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *list;
	size_t count;

	(void)state;
	use(device, 12 * GIB);
	use(device, 1000);
	assert_int_equal(flexmem_device_regions(device, &list, sizeof(*list),
						&count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].free, 0);
	assert_int_equal(list[0].free_blocks, 0);
	assert_int_equal(list[1].region_id, 1);
	assert_int_equal(list[1].slot, 1);
	assert_int_equal(list[1].flags, 0);
	assert_int_equal(list[1].total, 12 * GIB);
	assert_int_equal(list[1].free, 12 * GIB - 1024);
	assert_int_equal(list[1].largest_free, 12 * GIB - 1024);
	assert_int_equal(list[1].allocated_blocks, 1);
	assert_int_equal(list[1].free_blocks, 1);
	assert_int_equal(list[1].sequence, 1);
	assert_int_equal(list[1].domain, 0);
	flexmem_regions_free(list);
	flexmem_device_close(device);
}

/*
 * Each region in the list has its domain, even for callers whose struct is
 * older than domains.
 */
static void domains(void **state)
{
	struct before {
		uint64_t words[8];
	} *before;
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *list;
	size_t count;

	(void)state;
	use(device, 12 * GIB);
	fake.region_domain = 3;
	use(device, 12 * GIB);
	assert_int_equal(flexmem_device_regions(device, &list, sizeof(*list),
						&count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].domain, 0);
	assert_int_equal(list[1].domain, 3);
	assert_int_equal(list[1].reserved, 0);
	flexmem_regions_free(list);
	assert_int_equal(flexmem_device_regions(device, &list, sizeof(*before),
						&count), 0);
	before = (struct before *)list;
	assert_int_equal(before[1].words[0], 1);
	assert_int_equal(before[1].words[2], 12 * GIB);
	flexmem_regions_free(list);
	flexmem_device_close(device);
}

static void segments(void **state)
{
	struct flexmem_device *device;
	struct flexmem_segment *list;
	size_t count;

	(void)state;
	fake.nodes[0].mode = FLEXMEM_MODE_PF;
	device = open_device();
	use(device, 12 * GIB);
	use(device, 1);
	assert_int_equal(flexmem_device_segments(device, &list, sizeof(*list),
						 &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[1].slot, 1);
	assert_int_equal(list[1].flags, 0);
	assert_int_equal(list[1].region_id, UINT64_C(0x2400000000));
	assert_int_equal(list[1].length, 12 * GIB);
	flexmem_segments_free(list);
	flexmem_device_close(device);
}

/* Only an administrator sees how full a region is. */
static void hidden(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *list;
	struct flexmem_domain_state domain;
	size_t count;

	(void)state;
	use(device, 1024);
	fake.admin = false;
	assert_int_equal(flexmem_device_regions(device, &list, sizeof(*list),
						&count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(list[0].flags, FLEXMEM_HIDDEN);
	assert_int_equal(list[0].total, 12 * GIB);
	assert_int_equal(list[0].free, 0);
	flexmem_regions_free(list);
	assert_int_equal(flexmem_device_domain(device, 0, &domain,
					       sizeof(domain)), 0);
	assert_int_equal(domain.free, 12 * GIB - 1024);
	flexmem_device_close(device);
}

static void flags(void **state)
{
	static const struct {
		uint32_t driver;
		uint32_t library;
	} cases[] = {
		{ FLEXMEM_REGION_PROGRAM, FLEXMEM_PROGRAM },
		{ FLEXMEM_REGION_HIDDEN, FLEXMEM_HIDDEN },
		{ UINT32_MAX, FLEXMEM_PROGRAM | FLEXMEM_HIDDEN },
	};
	struct flexmem_device *device = open_device();
	struct flexmem_segment *segment;
	struct flexmem_account_state *accounts;
	struct flexmem_region_state *region;
	struct flexmem_usage usage;
	size_t count;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.region_flags = cases[i].driver;
		use(device, 12 * GIB);
		assert_int_equal(flexmem_device_regions(device, &region,
							sizeof(*region),
							&count), 0);
		assert_int_equal(count, i + 1);
		assert_int_equal(region[i].flags, cases[i].library);
		flexmem_regions_free(region);
		assert_int_equal(flexmem_device_usage(device, &usage,
						      sizeof(usage), &region,
						      sizeof(*region),
						      &accounts,
						      sizeof(*accounts)), 0);
		assert_int_equal(region[i].flags, cases[i].library);
		flexmem_regions_free(region);
		flexmem_accounts_free(accounts);
		assert_int_equal(flexmem_device_segments(device, &segment,
							 sizeof(*segment),
							 &count, NULL), 0);
		assert_int_equal(segment[i].flags, cases[i].library);
		flexmem_segments_free(segment);
	}
	flexmem_device_close(device);
}

/* Regions that appear while the library reads the list are listed too. */
static void growth(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_segment *segment;
	struct flexmem_region_state *region;
	uint64_t generation;
	size_t count;

	(void)state;
	use(device, 1);
	fake.grow = 3;
	assert_int_equal(flexmem_device_regions(device, &region,
						sizeof(*region), &count), 0);
	assert_int_equal(count, 4);
	assert_int_equal(region[3].total, 4 * GIB);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 5);
	flexmem_regions_free(region);

	fake.grow = 2;
	assert_int_equal(flexmem_device_segments(device, &segment,
						 sizeof(*segment), &count,
						 &generation), 0);
	assert_int_equal(count, 6);
	assert_int_equal(generation, 7);
	flexmem_segments_free(segment);
	flexmem_device_close(device);
}

static void endless_growth(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *region = (void *)1;
	size_t count = 9;

	(void)state;
	use(device, 1);
	fake.grow = 1000;
	assert_int_equal(flexmem_device_regions(device, &region,
						sizeof(*region), &count),
			 -EAGAIN);
	assert_ptr_equal(region, (void *)1);
	assert_int_equal(count, 9);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 8);
	flexmem_device_close(device);
}

/* If the second call fails, nothing leaks and the outputs stay unchanged. */
static void second_call_fails(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *region = (void *)1;
	size_t count = 9;

	(void)state;
	use(device, 1);
	inject(FLEXMEM_CMD_SNAPSHOT, 2, ENODEV);
	assert_int_equal(flexmem_device_regions(device, &region,
						sizeof(*region), &count),
			 -ENODEV);
	assert_ptr_equal(region, (void *)1);
	assert_int_equal(count, 9);
	flexmem_device_close(device);
}

static void later_structs(void **state)
{
	struct later {
		struct flexmem_region_state now;
		uint64_t later;
	} *list;
	struct flexmem_device *device = open_device();
	struct flexmem_region_state *region;
	size_t count;

	(void)state;
	use(device, 12 * GIB);
	use(device, 1);
	assert_int_equal(flexmem_device_regions(device, &region,
						sizeof(struct later), &count),
			 0);
	list = (struct later *)region;
	assert_int_equal(list[1].now.slot, 1);
	assert_int_equal(list[0].later, 0);
	assert_int_equal(list[1].later, 0);
	flexmem_regions_free(region);
	flexmem_device_close(device);
}

static void nulls(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_segment *s;
	struct flexmem_region_state *r;
	size_t n;

	(void)state;
	assert_int_equal(flexmem_device_regions(NULL, &r, sizeof(*r), &n),
			 -EINVAL);
	assert_int_equal(flexmem_device_regions(device, NULL, sizeof(*r), &n),
			 -EINVAL);
	assert_int_equal(flexmem_device_regions(device, &r, 8, &n), -EINVAL);
	assert_int_equal(flexmem_device_regions(device, &r, sizeof(*r), NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_segments(NULL, &s, sizeof(*s), &n,
						 NULL), -EINVAL);
	assert_int_equal(flexmem_device_segments(device, NULL, sizeof(*s), &n,
						 NULL), -EINVAL);
	assert_int_equal(flexmem_device_segments(device, &s, 8, &n, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_segments(device, &s, sizeof(*s), NULL,
						 NULL), -EINVAL);
	flexmem_device_close(device);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(no_regions),
		TEST(regions),
		TEST(domains),
		TEST(segments),
		TEST(hidden),
		TEST(flags),
		TEST(growth),
		TEST(endless_growth),
		TEST(second_call_fails),
		TEST(later_structs),
		TEST(nulls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
