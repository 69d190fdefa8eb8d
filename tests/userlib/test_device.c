// SPDX-License-Identifier: GPL-2.0
/* Opening a device, its properties, statistics, trim. */
#include "test.h"

#include <fcntl.h>

static void expect_open(const char *path, int error, const char *node)
{
	struct flexmem_device *device = NULL;

	assert_int_equal(flexmem_device_open(&device, path), error);
	if (error) {
		assert_null(device);
		assert_true(fake_all_closed());
		return;
	}
	assert_string_equal(flexmem_device_path(device), node);
	flexmem_device_close(device);
}

/* flexmem0 is a PF, 2 and 10 are VFs. /dev lists them in descending order. */
static void three_nodes(void)
{
	fake_node(0, 0, FLEXMEM_MODE_PF);
	fake_node(1, 2, FLEXMEM_MODE_VF);
	fake_node(2, 10, FLEXMEM_MODE_VF);
}

static void open_path(void **state)
{
	(void)state;
	three_nodes();
	expect_open("/dev/flexmem10", 0, "/dev/flexmem10");
	expect_open("/dev/flexmem5", -ENODEV, NULL);
	assert_int_equal(fake.open_flags, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static void open_null_out_pointer(void **state)
{
	(void)state;
	assert_int_equal(flexmem_device_open(NULL, NULL), -EINVAL);
	assert_int_equal(fake.opens, 0);
}

static void open_first_vf_by_number(void **state)
{
	(void)state;
	three_nodes();
	expect_open("VF", 0, "/dev/flexmem2");
	expect_open("vf", 0, "/dev/flexmem2");
	expect_open("Vf", 0, "/dev/flexmem2");
}

static void open_first_pf(void **state)
{
	(void)state;
	three_nodes();
	expect_open("PF", 0, "/dev/flexmem0");
	expect_open("pf", 0, "/dev/flexmem0");
}

static void flex_device_chooses(void **state)
{
	(void)state;
	three_nodes();
	setenv("FLEX_DEVICE", "pf", 1);
	expect_open(NULL, 0, "/dev/flexmem0");
	setenv("FLEX_DEVICE", "VF", 1);
	expect_open(NULL, 0, "/dev/flexmem2");
	setenv("FLEX_DEVICE", "/dev/flexmem10", 1);
	expect_open(NULL, 0, "/dev/flexmem10");
}

static void path_beats_flex_device(void **state)
{
	(void)state;
	three_nodes();
	setenv("FLEX_DEVICE", "PF", 1);
	expect_open("VF", 0, "/dev/flexmem2");
}

static void flex_device_is_nonsense(void **state)
{
	(void)state;
	setenv("FLEX_DEVICE", "flexmem0", 1);
	expect_open(NULL, -EINVAL, NULL);
	setenv("FLEX_DEVICE", "VF0", 1);
	expect_open(NULL, -EINVAL, NULL);
	assert_int_equal(fake.opens, 0);
}

static void unset_prefers_vf(void **state)
{
	(void)state;
	three_nodes();
	expect_open(NULL, 0, "/dev/flexmem2");
	setenv("FLEX_DEVICE", "", 1);
	expect_open(NULL, 0, "/dev/flexmem2");
}

static void unset_falls_back_to_pf(void **state)
{
	(void)state;
	three_nodes();
	fake.nodes[1].open_error = EACCES;
	fake.nodes[2].exists = false;
	expect_open(NULL, 0, "/dev/flexmem0");
}

static void no_nodes_at_all(void **state)
{
	(void)state;
	fake.nodes[0].exists = false;
	expect_open(NULL, -ENODEV, NULL);
	expect_open("VF", -ENODEV, NULL);
	fake.opendir_error = ENOENT;
	expect_open("VF", -ENODEV, NULL);
	fake.opendir_error = EACCES;
	expect_open("VF", -EACCES, NULL);
}

static void none_of_that_kind(void **state)
{
	(void)state;
	expect_open("PF", -ENODEV, NULL);
	assert_int_equal(fake.opens, 1);
	fake.nodes[0].mode = FLEXMEM_MODE_PF;
	expect_open("VF", -ENODEV, NULL);
}

static void denied_nodes_are_skipped(void **state)
{
	(void)state;
	three_nodes();
	fake.nodes[1].open_error = EACCES;
	expect_open("VF", 0, "/dev/flexmem10");
	fake.nodes[2].open_error = EPERM;
	expect_open("VF", -EACCES, NULL);
	fake.nodes[0].open_error = EACCES;
	expect_open(NULL, -EACCES, NULL);
	/*
	 * If one node fails with EPERM and another with EACCES, the caller gets
	 * EACCES.
	 */
	fake.nodes[1].open_error = EPERM;
	fake.nodes[2].open_error = EACCES;
	expect_open("VF", -EACCES, NULL);
	fake.nodes[0].open_error = EPERM;
	fake.nodes[2].open_error = EPERM;
	expect_open("PF", -EPERM, NULL);
}

static void permissions_before_other_errors(void **state)
{
	(void)state;
	three_nodes();
	fake.nodes[1].open_error = EIO;
	fake.nodes[2].open_error = EACCES;
	expect_open("VF", -EACCES, NULL);
	fake.nodes[2].open_error = ENODEV;
	expect_open("VF", -EIO, NULL);
	fake.nodes[1].open_error = ENXIO;
	expect_open("VF", -ENODEV, NULL);
}

static void own_limits_end_the_search(void **state)
{
	(void)state;
	three_nodes();
	fake.nodes[1].open_error = EMFILE;
	expect_open("VF", -EMFILE, NULL);
	expect_open(NULL, -EMFILE, NULL);
}

static void other_drivers_are_not_ours(void **state)
{
	(void)state;
	three_nodes();
	fake.nodes[1].info_error = ENOTTY;
	expect_open("VF", 0, "/dev/flexmem10");
	expect_open("/dev/flexmem2", -ENOTTY, NULL);
	expect_open("/dev/null", -ENOTTY, NULL);
}

static void stray_names(void **state)
{
	(void)state;
	fake.nodes[0].number = 3;
	fake.stray_names[0] = "flexmem";
	fake.stray_names[1] = "flexmem01";
	fake.stray_names[2] = "flexmem1a";
	fake.stray_names[3] = "flexmem99999999999999999999";
	expect_open("VF", 0, "/dev/flexmem3");
	assert_int_equal(fake.opens, 1);
}

static void close_null(void **state)
{
	(void)state;
	flexmem_device_close(NULL);
	assert_null(flexmem_device_path(NULL));
	assert_int_equal(flexmem_device_fd(NULL), -EINVAL);
}

static void properties(void **state)
{
	struct flexmem_device *device;
	struct flexmem_properties p;

	(void)state;
	fake.order = FLEXMEM_ORDER_FILL_FIRST;
	fake.fit = FLEXMEM_FIT_BEST;
	fake.program_slots = 2;
	device = open_device();
	fake.capacity = 5 * GIB;
	fake.state = FLEXMEM_STATE_WEDGED;
	memset(&p, 0xaa, sizeof(p));
	assert_int_equal(flexmem_device_properties(device, &p, sizeof(p)), 0);
	assert_int_equal(p.function, FLEXMEM_VF);
	assert_int_equal(p.strategy, FLEXMEM_BEST_FIT);
	assert_int_equal(p.order, FLEXMEM_FILL_FIRST);
	assert_int_equal(p.acquisition, FLEXMEM_LAZY);
	assert_int_equal(p.slots, 8);
	assert_int_equal(p.max_regions, 8);
	assert_int_equal(p.program_slots, 2);
	assert_int_equal(p.max_handles, 1000000);
	assert_int_equal(p.max_batch, 64);
	assert_int_equal(p.condition, FLEXMEM_WEDGED);
	assert_int_equal(p.alignment, 128);
	assert_int_equal(p.max_alignment, GIB);
	assert_int_equal(p.granule, MIB);
	assert_int_equal(p.capacity, 5 * GIB);
	assert_int_equal(p.max_region, 12 * GIB);
	assert_int_equal(p.capabilities, FLEXMEM_CAN_SCRUB | FLEXMEM_CAN_MAP |
			 FLEXMEM_CAN_RW | FLEXMEM_CAN_COPY |
			 FLEXMEM_CAN_PAGE_TABLES);
	assert_int_equal(p.fallback_count, 3);
	assert_int_equal(p.fallback_sizes[2], 4 * GIB);
	assert_int_equal(p.fallback_sizes[3], 0);
	assert_string_equal(p.name, "fake");
	flexmem_device_close(device);
}

static void too_many_fallback_sizes(void **state)
{
	struct flexmem_device *device;
	struct flexmem_properties p;

	(void)state;
	fake.nr_fallback = 1000;
	device = open_device();
	assert_int_equal(flexmem_device_properties(device, &p, sizeof(p)), 0);
	assert_int_equal(p.fallback_count, FLEXMEM_FALLBACK_SIZES);
	flexmem_device_close(device);
}

/*
 * If the struct of a newer caller is longer, the part that the library does not
 * know is zeroed.
 */
static void struct_sizes(void **state)
{
	struct {
		struct flexmem_statistics now;
		unsigned char later[16];
		unsigned char beyond;
	} s;
	struct flexmem_device *device = open_device();
	size_t i;

	(void)state;
	memset(&s, 0xaa, sizeof(s));
	assert_int_equal(flexmem_device_statistics(device, &s.now,
						   sizeof(s.now) + 16), 0);
	for (i = 0; i < 16; i++)
		assert_int_equal(s.later[i], 0);
	assert_int_equal(s.beyond, 0xaa);

	memset(&s, 0xaa, sizeof(s));
	assert_int_equal(flexmem_device_statistics(device, &s.now,
						   sizeof(s.now) - 1), -EINVAL);
	assert_int_equal(((unsigned char *)&s)[0], 0xaa);
	flexmem_device_close(device);
}

static void statistics(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other = open_device();
	struct flexmem_allocated a;
	struct flexmem_statistics s;

	(void)state;
	fake.used_program = 256;
	flexmem_device_alloc(device, 1000, 0, 0, &a, sizeof(a));
	flexmem_device_alloc(other, 128, 0, 0, &a, sizeof(a));
	flexmem_device_free(other, a.handle);
	flexmem_device_alloc(other, 13 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(flexmem_device_statistics(device, &s, sizeof(s)), 0);
	assert_int_equal(s.flags, 0);
	assert_int_equal(s.regions, 1);
	assert_int_equal(s.total, 12 * GIB);
	assert_int_equal(s.used, 1024);
	assert_int_equal(s.used_program, 256);
	assert_int_equal(s.free, 12 * GIB - 1024);
	assert_int_equal(s.allocated, 1);
	assert_int_equal(s.allocs, 2);
	assert_int_equal(s.frees, 1);
	assert_int_equal(s.failures, 1);
	assert_int_equal(s.generation, 2);
	assert_int_equal(s.own_used, 1024);
	assert_int_equal(s.own_peak, 1024);
	assert_int_equal(s.own_handles, 1);
	flexmem_device_close(other);
	flexmem_device_close(device);
}

/* Only an administrator sees how many calls others have made. */
static void counts_are_hidden(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;
	struct flexmem_statistics s;

	(void)state;
	fake.admin = false;
	flexmem_device_alloc(device, 1000, 0, 0, &a, sizeof(a));
	assert_int_equal(flexmem_device_statistics(device, &s, sizeof(s)), 0);
	assert_int_equal(s.flags, FLEXMEM_HIDDEN);
	assert_int_equal(s.used, 1024);
	assert_int_equal(s.own_used, 1024);
	assert_int_equal(s.own_handles, 1);
	assert_int_equal(s.allocated, 0);
	assert_int_equal(s.allocs, 0);
	assert_int_equal(s.failures, 0);
	flexmem_device_close(device);
}

static void locked_is_told(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;
	struct flexmem_statistics s;

	(void)state;
	fake.capacity = 12 * GIB;
	device = open_device();
	flexmem_device_alloc(device, 12 * GIB, 0, 0, &a, sizeof(a));
	flexmem_device_alloc(device, 12 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(flexmem_device_statistics(device, &s, sizeof(s)), 0);
	assert_int_equal(s.flags, FLEXMEM_EXHAUSTED);
	flexmem_device_close(device);
}

static void trim(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;
	uint32_t regions = 99;
	uint64_t bytes = 99;

	(void)state;
	assert_int_equal(flexmem_device_trim(device, 0, &regions, &bytes), 0);
	assert_int_equal(regions, 0);
	flexmem_device_alloc(device, 128, 0, 0, &a, sizeof(a));
	flexmem_device_free(device, a.handle);
	assert_int_equal(flexmem_device_trim(device, 0, &regions, &bytes), 0);
	assert_int_equal(regions, 1);
	assert_int_equal(bytes, 12 * GIB);
	assert_int_equal(flexmem_device_trim(device, 0, NULL, NULL), 0);
	assert_int_equal(flexmem_device_trim(device, 1, NULL, NULL),
			 -EOPNOTSUPP);
	flexmem_device_close(device);
}

static void trim_fails_in_the_middle(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a[2];
	uint32_t regions = 99;
	uint64_t bytes = 99;

	(void)state;
	flexmem_device_alloc(device, 12 * GIB, 0, 0, &a[0], sizeof(a[0]));
	flexmem_device_alloc(device, 12 * GIB, 0, 0, &a[1], sizeof(a[1]));
	flexmem_device_free(device, a[0].handle);
	flexmem_device_free(device, a[1].handle);
	fake.trim_fails_after = 1;
	inject(FLEXMEM_CMD_TRIM, 1, EIO);
	assert_int_equal(flexmem_device_trim(device, 0, &regions, &bytes), -EIO);
	assert_int_equal(regions, 1);
	assert_int_equal(bytes, 12 * GIB);
	flexmem_device_close(device);
}

/* The caller gets every errno of the ABI from every command, unchanged. */
static void errors_come_through(void **state)
{
	static const int errors[] = {
		ENOTTY, EFAULT, EINVAL, E2BIG, EOPNOTSUPP, EBUSY, EPERM,
		ENODEV, ETIMEDOUT, EIO, EINTR, ENOMEM,
	};
	struct flexmem_device *device = open_device();
	struct flexmem_properties p;
	struct flexmem_statistics s;
	struct flexmem_allocated a;
	struct flexmem_segment *segments;
	struct flexmem_region_state *regions;
	size_t count;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		inject(FLEXMEM_CMD_INFO, 1, errors[i]);
		assert_int_equal(flexmem_device_properties(device, &p,
							   sizeof(p)),
				 -errors[i]);
		inject(FLEXMEM_CMD_SNAPSHOT, 1, errors[i]);
		assert_int_equal(flexmem_device_statistics(device, &s,
							   sizeof(s)),
				 -errors[i]);
		inject(FLEXMEM_CMD_ALLOC, 1, errors[i]);
		assert_int_equal(flexmem_device_alloc(device, 1, 0, 0, &a,
						      sizeof(a)), -errors[i]);
		assert_int_equal(a.error, -errors[i]);
		assert_int_equal(a.handle, 0);
		inject(FLEXMEM_CMD_FREE, 1, errors[i]);
		assert_int_equal(flexmem_device_free(device, 1), -errors[i]);
		inject(FLEXMEM_CMD_LOOKUP, 1, errors[i]);
		assert_int_equal(flexmem_device_lookup(device, 1, &a,
						       sizeof(a)), -errors[i]);
		inject(FLEXMEM_CMD_SNAPSHOT, 1, errors[i]);
		assert_int_equal(flexmem_device_regions(device, &regions,
							sizeof(*regions),
							&count), -errors[i]);
		inject(FLEXMEM_CMD_SEGMENTS, 1, errors[i]);
		assert_int_equal(flexmem_device_segments(device, &segments,
							 sizeof(*segments),
							 &count, NULL),
				 -errors[i]);
		inject(FLEXMEM_CMD_TRIM, 1, errors[i]);
		assert_int_equal(flexmem_device_trim(device, 0, NULL, NULL),
				 -errors[i]);
	}
	/* The library does not repeat a failed call. */
	assert_int_equal(fake.calls[FLEXMEM_CMD_FREE],
			 sizeof(errors) / sizeof(errors[0]));
	flexmem_device_close(device);
}

/*
 * A device with two domains: device memory, which has all regions, and on-chip
 * memory.
 */
static void domains(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;
	struct flexmem_domain_state d;

	(void)state;
	fake.nr_domains = 2;
	fake.nr_domain_sizes = 2;
	device = open_device();
	flexmem_device_alloc(device, 1000, 0, 0, &a, sizeof(a));
	assert_int_equal(flexmem_device_domain(device, 0, &d, sizeof(d)), 0);
	assert_int_equal(d.id, 0);
	assert_int_equal(d.count, 2);
	assert_int_equal(d.memory, FLEXMEM_MEMORY_DEVICE);
	assert_int_equal(d.flags, 0);
	assert_int_equal(d.regions, 1);
	assert_int_equal(d.capacity, 64 * GIB);
	assert_int_equal(d.set_aside, 0);
	assert_int_equal(d.total, 12 * GIB);
	assert_int_equal(d.free, 12 * GIB - 1024);
	assert_int_equal(d.largest_free, 12 * GIB - 1024);
	assert_int_equal(d.program_total, 0);
	assert_int_equal(d.tensor_largest, 12 * GIB - 1024);

	fake.region_domain = 1;
	flexmem_device_alloc(device, 12 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(flexmem_device_domain(device, 1, &d, sizeof(d)), 0);
	assert_int_equal(d.id, 1);
	assert_int_equal(d.memory, FLEXMEM_MEMORY_ON_CHIP);
	assert_int_equal(d.regions, 1);
	assert_int_equal(d.granule, 1 << 16);
	assert_int_equal(d.capacity, 15 << 20);
	assert_int_equal(d.set_aside, 1 << 20);
	assert_int_equal(d.max_region, 15 << 20);
	assert_int_equal(d.free, 0);
	assert_int_equal(d.size_count, 2);
	assert_int_equal(d.sizes[1], 15 << 19);
	assert_int_equal(d.sizes[2], 0);

	assert_int_equal(flexmem_device_domain(device, FLEXMEM_WHOLE_DEVICE, &d,
					       sizeof(d)), 0);
	assert_int_equal(d.count, 2);
	assert_int_equal(d.regions, 2);
	assert_int_equal(d.total, 24 * GIB);
	assert_int_equal(d.free, 12 * GIB - 1024);
	assert_int_equal(d.largest_free, 12 * GIB - 1024);
	assert_int_equal(d.size_count, 0);
	flexmem_device_close(device);
}

static void domain_refused(void **state)
{
	const size_t first = offsetof(struct flexmem_domain_state,
				      program_total);
	struct flexmem_device *device = open_device();
	struct flexmem_domain_state d = { .id = 77, .program_total = 77 };

	(void)state;
	assert_int_equal(flexmem_device_domain(device, 1, &d, sizeof(d)),
			 -EINVAL);
	assert_int_equal(flexmem_device_domain(NULL, 0, &d, sizeof(d)),
			 -EINVAL);
	assert_int_equal(flexmem_device_domain(device, 0, NULL, sizeof(d)),
			 -EINVAL);
	assert_int_equal(flexmem_device_domain(device, 0, &d, first - 1),
			 -EINVAL);
	assert_int_equal(d.id, 77);
	/* A program that was compiled before there were figures of programs. */
	assert_int_equal(flexmem_device_domain(device, 0, &d, first), 0);
	assert_int_equal(d.id, 0);
	assert_int_equal(d.program_total, 77);
	flexmem_device_close(device);
}

static void domain_of_programs(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;
	struct flexmem_domain_state d;

	(void)state;
	assert_int_equal(flexmem_device_alloc(device, 12 * GIB, 0, 0, &a,
					      sizeof(a)), 0);
	fake.region_flags = FLEXMEM_REGION_PROGRAM;
	assert_int_equal(flexmem_device_alloc(device, GIB, 0, FLEXMEM_PROGRAM,
					      &a, sizeof(a)), 0);
	assert_int_equal(flexmem_device_domain(device, 0, &d, sizeof(d)), 0);
	assert_int_equal(d.total, 24 * GIB);
	assert_int_equal(d.free, 11 * GIB);
	assert_int_equal(d.program_total, 12 * GIB);
	assert_int_equal(d.program_free, 11 * GIB);
	assert_int_equal(d.program_largest, 11 * GIB);
	assert_int_equal(d.tensor_largest, 0);
	flexmem_device_close(device);
}

static void must_have(const struct flexmem_device *device,
			  uint64_t free_bytes, uint64_t total)
{
	uint64_t is_free;
	uint64_t is_total;

	assert_int_equal(flexmem_device_memory_info(device, &is_free,
						    &is_total), 0);
	assert_int_equal(is_total, total);
	assert_int_equal(is_free, free_bytes);
}

/* A process can have what its limit and the reservations of others leave. */
static void memory_of_a_process(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;
	uint64_t bytes;

	(void)state;
	fake.capacity = 40 * GIB;
	must_have(device, 40 * GIB, 40 * GIB);
	assert_int_equal(flexmem_device_alloc(device, GIB, 0, 0, &a, sizeof(a)),
			 0);
	must_have(device, 39 * GIB, 40 * GIB);
	fake.region_reserved = true;
	assert_int_equal(flexmem_device_alloc(device, 12 * GIB, 0, 0, &a,
					      sizeof(a)), 0);
	must_have(device, 27 * GIB, 28 * GIB);
	assert_int_equal(flexmem_device_memory_info(device, NULL, &bytes),
			 -EINVAL);
	assert_int_equal(flexmem_device_memory_info(device, &bytes, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_memory_info(NULL, &bytes, &bytes),
			 -EINVAL);
	flexmem_device_close(device);
}

static uint64_t largest(const struct flexmem_device *device)
{
	struct flexmem_available found;

	assert_int_equal(flexmem_device_available(device, &found,
						  sizeof(found)), 0);
	must_have(device, found.free, found.total);
	return found.largest;
}

/* What one allocation can have is a free block, or a further region. */
static void the_largest_allocation(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_available found;
	struct flexmem_allocated a;

	(void)state;
	fake.capacity = 30 * GIB;
	assert_int_equal(largest(device), 12 * GIB);
	assert_int_equal(flexmem_device_alloc(device, GIB, 0, 0, &a, sizeof(a)),
			 0);
	assert_int_equal(largest(device), 12 * GIB);
	/* The slots that are left take no more. */
	fake.memory = 17 * GIB;
	assert_int_equal(largest(device), 11 * GIB);
	fake.memory = 24 * GIB;
	assert_int_equal(largest(device), 12 * GIB);
	fake.memory = 0;
	/* The device has refused larger regions. An older driver does not say so. */
	fake.next_region = 4 * GIB;
	fake.freed = 0;
	assert_int_equal(largest(device), 12 * GIB);
	fake.freed = 1;
	assert_int_equal(largest(device), 11 * GIB);
	fake.next_region = 12 * GIB - MIB;
	assert_int_equal(largest(device), 12 * GIB - MIB);
	fake.next_region = UINT64_MAX;
	/* What others have reserved is not for this process. */
	fake.region_reserved = true;
	assert_int_equal(flexmem_device_alloc(device, 12 * GIB, 0, 0, &a,
					      sizeof(a)), 0);
	assert_int_equal(largest(device), 11 * GIB);
	fake.capacity = 24 * GIB;
	assert_int_equal(flexmem_device_alloc(device, 10 * GIB, 0, 0, &a,
					      sizeof(a)), 0);
	assert_int_equal(largest(device), GIB);
	assert_int_equal(flexmem_device_available(device, NULL, sizeof(found)),
			 -EINVAL);
	assert_int_equal(flexmem_device_available(device, &found, 8), -EINVAL);
	assert_int_equal(flexmem_device_available(NULL, &found, sizeof(found)),
			 -EINVAL);
	flexmem_device_close(device);
}

/* An allocation is in one domain. */
static void the_largest_of_a_domain(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	fake.nr_domains = 2;
	fake.capacity = 13 * GIB;
	assert_int_equal(largest(device), 12 * GIB);
	/* No allocation gets on-chip memory without being asked for it. */
	must_have(device, 13 * GIB, 13 * GIB);
	/* 1 GiB in one domain and 15 MiB in the other one can be acquired. */
	assert_int_equal(flexmem_device_alloc(device, 12 * GIB - MIB, 0, 0, &a,
					      sizeof(a)), 0);
	assert_int_equal(largest(device), GIB);
	must_have(device, GIB + MIB, 13 * GIB);
	/* Two domains serve such requests, but each is served by one. */
	fake.all_by_default = true;
	assert_int_equal(largest(device), GIB);
	flexmem_device_close(device);
}

/* The on-chip memory may take the slots, so it counts with all of its bytes. */
static void the_slots_of_several_domains(void **state)
{
	struct flexmem_device *device = open_device();

	(void)state;
	fake.nr_domains = 2;
	fake.capacity = 13 * GIB;
	fake.memory = 12 * GIB;
	must_have(device, 12 * GIB - 15 * MIB, 12 * GIB - 15 * MIB);
	fake.memory = 4 * MIB;
	must_have(device, 0, 0);
	flexmem_device_close(device);
}

static void memory_below_a_limit(void **state)
{
	struct flexmem_device *device;
	struct flexmem_domain_state d;
	struct flexmem_allocated a;

	(void)state;
	fake.capacity = 4 * GIB;
	fake.limit = 8 * GIB;
	device = open_device();
	/* The device has less than the limit. */
	must_have(device, 4 * GIB, 4 * GIB);
	fake.capacity = 40 * GIB;
	must_have(device, 8 * GIB, 8 * GIB);
	assert_int_equal(largest(device), 8 * GIB);
	assert_int_equal(flexmem_device_alloc(device, 6 * GIB, 0, 0, &a,
					      sizeof(a)), 0);
	must_have(device, 2 * GIB, 8 * GIB);
	assert_int_equal(largest(device), 2 * GIB);
	assert_int_equal(flexmem_device_domain(device, FLEXMEM_WHOLE_DEVICE, &d,
					       sizeof(d)), 0);
	assert_int_equal(d.flags, FLEXMEM_LIMITED);
	assert_int_equal(d.limit, 8 * GIB);
	assert_int_equal(d.limit_left, 2 * GIB);
	flexmem_device_close(device);
}

/* The slots that are left cannot take the capacity. */
static void memory_without_slots(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;
	struct flexmem_domain_state d;

	(void)state;
	fake.capacity = 40 * GIB;
	fake.memory = 24 * GIB;
	must_have(device, 24 * GIB, 24 * GIB);
	assert_int_equal(flexmem_device_alloc(device, GIB, 0, 0, &a, sizeof(a)),
			 0);
	must_have(device, 23 * GIB, 24 * GIB);
	/* The regions are more than what the driver told a little earlier. */
	fake.memory = 6 * GIB;
	must_have(device, 11 * GIB, 12 * GIB);
	assert_int_equal(flexmem_device_domain(device, FLEXMEM_WHOLE_DEVICE, &d,
					       sizeof(d)), 0);
	assert_int_equal(d.memory_total, 6 * GIB);
	assert_int_equal(flexmem_device_domain(device, 0, &d, sizeof(d)), 0);
	assert_int_equal(d.memory_total, 0);
	flexmem_device_close(device);
}

/* Free bytes that others have reserved are not free, and not in use either. */
static void domain_of_others(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;
	struct flexmem_domain_state d;

	(void)state;
	fake.region_reserved = true;
	assert_int_equal(flexmem_device_alloc(device, GIB, 0, 0, &a, sizeof(a)),
			 0);
	assert_int_equal(flexmem_device_domain(device, 0, &d, sizeof(d)), 0);
	assert_int_equal(d.total, 12 * GIB);
	assert_int_equal(d.free, 0);
	assert_int_equal(d.tensor_largest, 0);
	assert_int_equal(d.reserved, 11 * GIB);
	flexmem_device_close(device);
}

/*
 * The driver reports more sizes than the library knows, and an exhausted
 * domain.
 */
static void domain_is_full(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;
	struct flexmem_domain_state d;

	(void)state;
	fake.nr_domain_sizes = 1000;
	fake.capacity = 12 * GIB;
	device = open_device();
	flexmem_device_alloc(device, 12 * GIB, 0, 0, &a, sizeof(a));
	flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a));
	assert_int_equal(flexmem_device_domain(device, 0, &d, sizeof(d)), 0);
	assert_int_equal(d.flags, FLEXMEM_EXHAUSTED);
	assert_int_equal(d.size_count, FLEXMEM_FALLBACK_SIZES);
	flexmem_device_close(device);
}

static void nulls(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_properties p;
	struct flexmem_statistics s;

	(void)state;
	assert_int_equal(flexmem_device_properties(NULL, &p, sizeof(p)),
			 -EINVAL);
	assert_int_equal(flexmem_device_properties(device, NULL, sizeof(p)),
			 -EINVAL);
	assert_int_equal(flexmem_device_properties(device, &p, 0), -EINVAL);
	assert_int_equal(flexmem_device_statistics(NULL, &s, sizeof(s)),
			 -EINVAL);
	assert_int_equal(flexmem_device_statistics(device, NULL, sizeof(s)),
			 -EINVAL);
	assert_int_equal(flexmem_device_trim(NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(flexmem_device_set_log(NULL, FLEXMEM_LOG_NONE, NULL,
						NULL), -EINVAL);
	assert_true(flexmem_device_fd(device) >= 0);
	flexmem_device_close(device);
}

static void version(void **state)
{
	(void)state;
	assert_string_equal(flexmem_library_version(), FLEXMEM_VERSION);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(open_path),
		TEST(open_null_out_pointer),
		TEST(open_first_vf_by_number),
		TEST(open_first_pf),
		TEST(flex_device_chooses),
		TEST(path_beats_flex_device),
		TEST(flex_device_is_nonsense),
		TEST(unset_prefers_vf),
		TEST(unset_falls_back_to_pf),
		TEST(no_nodes_at_all),
		TEST(none_of_that_kind),
		TEST(denied_nodes_are_skipped),
		TEST(permissions_before_other_errors),
		TEST(own_limits_end_the_search),
		TEST(other_drivers_are_not_ours),
		TEST(stray_names),
		TEST(close_null),
		TEST(properties),
		TEST(too_many_fallback_sizes),
		TEST(struct_sizes),
		TEST(statistics),
		TEST(counts_are_hidden),
		TEST(locked_is_told),
		TEST(trim),
		TEST(trim_fails_in_the_middle),
		TEST(errors_come_through),
		TEST(domains),
		TEST(domain_refused),
		TEST(domain_of_programs),
		TEST(domain_of_others),
		TEST(memory_of_a_process),
		TEST(the_largest_allocation),
		TEST(the_largest_of_a_domain),
		TEST(the_slots_of_several_domains),
		TEST(memory_below_a_limit),
		TEST(memory_without_slots),
		TEST(domain_is_full),
		TEST(nulls),
		TEST(version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
