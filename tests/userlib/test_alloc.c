// SPDX-License-Identifier: GPL-2.0
/* Allocations: single ones, batches and failures. */
#include "test.h"

#define MANY 300

static struct flexmem_allocated alloc_ok(struct flexmem_device *device,
					 uint64_t length)
{
	struct flexmem_allocated a;

	memset(&a, 0xaa, sizeof(a));
	assert_int_equal(flexmem_device_alloc(device, length, 0, 0, &a,
					      sizeof(a)), 0);
	assert_int_equal(a.error, 0);
	assert_int_not_equal(a.handle, 0);
	return a;
}

static void alloc_reply(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	alloc_ok(device, 1);
	a = alloc_ok(device, 1000);
	assert_int_equal(a.address.region_id, 0);
	assert_int_equal(a.address.offset, 128);
	assert_int_equal(a.size, 1024);
	assert_int_equal(a.flags, 0);
	assert_int_equal(a.chunks, 1);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_NONE);
	assert_int_equal(a.failure.asked, 0);
	flexmem_device_close(device);
}

static void alloc_alignment_and_flags(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	alloc_ok(device, 1);
	assert_int_equal(flexmem_device_alloc(device, 1, MIB, FLEXMEM_PROGRAM,
					      &a, sizeof(a)), 0);
	assert_int_equal(a.address.offset, MIB);
	assert_int_equal(a.flags, FLEXMEM_PROGRAM);
	assert_int_equal(flexmem_device_alloc(device, 1, 3, 0, &a, sizeof(a)),
			 -EINVAL);
	assert_int_equal(flexmem_device_alloc(device, 1, 2 * GIB, 0, &a,
					      sizeof(a)), -EINVAL);
	assert_int_equal(flexmem_device_alloc(device, 0, 0, 0, &a, sizeof(a)),
			 -EINVAL);
	assert_int_equal(flexmem_device_alloc(device, 1, 0, 0x80, &a,
					      sizeof(a)), -EOPNOTSUPP);
	flexmem_device_close(device);
}

static void alloc_on_a_pf(void **state)
{
	struct flexmem_device *device;

	(void)state;
	fake.nodes[0].mode = FLEXMEM_MODE_PF;
	device = open_device();
	assert_int_equal(alloc_ok(device, 1).address.region_id,
			 UINT64_C(0x2000000000));
	flexmem_device_close(device);
}

static void free_by_handle(void **state)
{
	struct flexmem_device *device = open_device();
	uint32_t handle = alloc_ok(device, 1).handle;

	(void)state;
	assert_int_equal(flexmem_device_free(device, handle), 0);
	assert_int_equal(flexmem_device_free(device, handle), -ENOENT);
	flexmem_device_close(device);
}

static void free_nothing(void **state)
{
	struct flexmem_device *device = open_device();

	(void)state;
	assert_int_equal(flexmem_device_free(device, 0), 0);
	assert_int_equal(flexmem_device_free(NULL, 0), 0);
	assert_int_equal(flexmem_device_free(NULL, 1), -EINVAL);
	assert_int_equal(fake.calls[FLEXMEM_CMD_FREE], 0);
	flexmem_device_close(device);
}

static void free_by_address(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a = alloc_ok(device, 1024);
	struct flexmem_virtual_address inside = a.address;

	(void)state;
	inside.offset += 128;
	assert_int_equal(flexmem_device_free_address(device, inside), -ENOENT);
	assert_int_equal(flexmem_device_free_address(device, a.address), 0);
	assert_int_equal(flexmem_device_free_address(device, a.address),
			 -ENOENT);
	assert_int_equal(flexmem_device_free_address(NULL, a.address),
			 -EINVAL);
	flexmem_device_close(device);
}

static void lookup(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other = open_device();
	struct flexmem_allocated a;
	struct flexmem_allocated b;

	(void)state;
	assert_int_equal(flexmem_device_alloc(device, 5, 4096, FLEXMEM_PROGRAM,
					      &a, sizeof(a)), 0);
	memset(&b, 0xaa, sizeof(b));
	assert_int_equal(flexmem_device_lookup(device, a.handle, &b,
					       sizeof(b)), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(flexmem_device_lookup(other, a.handle, &b, sizeof(b)),
			 -ENOENT);
	assert_int_equal(flexmem_device_lookup(device, 0, &b, sizeof(b)),
			 -ENOENT);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(flexmem_device_lookup(NULL, 1, &b, sizeof(b)),
			 -EINVAL);
	assert_int_equal(flexmem_device_lookup(device, 1, NULL, sizeof(b)),
			 -EINVAL);
	assert_int_equal(flexmem_device_lookup(device, 1, &b, 8), -EINVAL);
	flexmem_device_close(other);
	flexmem_device_close(device);
}

static void close_gives_back(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_device *other = open_device();
	struct flexmem_statistics s;

	(void)state;
	alloc_ok(device, MIB);
	alloc_ok(other, MIB);
	flexmem_device_close(device);
	flexmem_device_statistics(other, &s, sizeof(s));
	assert_int_equal(s.used, MIB);
	flexmem_device_close(other);
}

static void failure_details(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;

	(void)state;
	fake.slots = 2;
	fake.max_regions = 2;
	fake.program_slots = 1;
	fake.max_handles = 77;
	fake.orphaned = 3 * GIB;
	device = open_device();
	alloc_ok(device, 11 * GIB);
	alloc_ok(device, 11 * GIB);
	memset(&a, 0xaa, sizeof(a));
	assert_int_equal(flexmem_device_alloc(device, 8 * GIB + 1, 0, 0, &a,
					      sizeof(a)), -ENOMEM);
	assert_int_equal(a.error, -ENOMEM);
	assert_int_equal(a.handle, 0);
	assert_int_equal(a.size, 0);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_SLOTS);
	assert_int_equal(a.failure.regions, 2);
	assert_int_equal(a.failure.slots, 2);
	assert_int_equal(a.failure.program_slots, 1);
	assert_int_equal(a.failure.max_regions, 2);
	assert_int_equal(a.failure.max_handles, 77);
	assert_int_equal(a.failure.flags, 0);
	assert_int_equal(a.failure.asked, 8 * GIB + 128);
	assert_int_equal(a.failure.total_free, 2 * GIB);
	assert_int_equal(a.failure.largest_free, GIB);
	assert_int_equal(a.failure.max_region, 12 * GIB);
	assert_int_equal(a.failure.leaving, 3 * GIB);
	flexmem_device_close(device);
}

static void each_limit(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;

	(void)state;
	fake.capacity = 24 * GIB;
	fake.max_regions = 1;
	fake.slots = 3;
	fake.max_handles = 2;
	device = open_device();
	flexmem_device_alloc(device, 12 * GIB + 1, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_REGION_SIZE);
	alloc_ok(device, 8 * GIB);
	flexmem_device_alloc(device, 8 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_MAX_REGIONS);
	fake.max_regions = 3;
	alloc_ok(device, 12 * GIB);
	flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_HANDLES);
	fake.max_handles = 100;
	flexmem_device_alloc(device, 8 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CAPACITY);
	flexmem_device_close(device);
}

static void host_memory_is_no_limit(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	inject(FLEXMEM_CMD_ALLOC, 1, ENOMEM);
	assert_int_equal(flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a)),
			 -ENOMEM);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_NONE);
	assert_int_equal(a.failure.slots, 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 0);
	flexmem_device_close(device);
}

/*
 * The figures of a failure cost no further call: the kernel returns them with
 * the failure.
 */
static void a_failure_is_one_call(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	alloc_ok(device, 1);
	inject(FLEXMEM_CMD_SNAPSHOT, 1, EIO);
	assert_int_equal(flexmem_device_alloc(device, 13 * GIB, 0, 0, &a,
					      sizeof(a)), -ENOMEM);
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_REGION_SIZE);
	assert_int_equal(a.failure.regions, 1);
	assert_int_equal(a.failure.own_used, 128);
	assert_int_equal(a.failure.region_limit, FLEXMEM_LIMIT_NONE);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 0);
	flexmem_device_close(device);
}

/*
 * If memory is fragmented and no further region can be acquired either, the
 * text says both.
 */
static void fragmentation_tells_of_regions(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;
	uint32_t handle;

	(void)state;
	fake.capacity = 12 * GIB;
	handle = alloc_ok(device, 4 * GIB).handle;
	alloc_ok(device, 4 * GIB);
	assert_int_equal(flexmem_device_free(device, handle), 0);
	flexmem_device_alloc(device, 8 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_FRAGMENTATION);
	assert_int_equal(a.failure.region_limit, FLEXMEM_LIMIT_CAPACITY);
	flexmem_device_alloc(device, 9 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.limit, FLEXMEM_LIMIT_CAPACITY);
	assert_int_equal(a.failure.region_limit, FLEXMEM_LIMIT_NONE);
	flexmem_device_close(device);
}

/* The driver says so with each reason. It is not the answer of a limit. */
static void nobody_can_help(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	fake.capacity = 12 * GIB;
	flexmem_device_alloc(device, 13 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.quota_flags, 0);
	fake.alone = true;
	flexmem_device_alloc(device, 13 * GIB, 0, 0, &a, sizeof(a));
	assert_int_equal(a.failure.quota_flags, FLEXMEM_QUOTA_ALONE);
	assert_true(a.failure.quota == FLEXMEM_UNLIMITED);
	assert_true(a.failure.quota_left == FLEXMEM_UNLIMITED);
	flexmem_device_close(device);
}

static void alloc_nulls(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a;

	(void)state;
	assert_int_equal(flexmem_device_alloc(NULL, 1, 0, 0, &a, sizeof(a)),
			 -EINVAL);
	assert_int_equal(flexmem_device_alloc(device, 1, 0, 0, NULL,
					      sizeof(a)), -EINVAL);
	assert_int_equal(flexmem_device_alloc(device, 1, 0, 0, &a,
					      offsetof(struct flexmem_allocated,
						       failure.max_region)),
			 -EINVAL);
	assert_int_equal(fake.calls[FLEXMEM_CMD_ALLOC], 0);
	flexmem_device_close(device);
}

/*
 * After EINVAL the failure names the wrong value, for a single allocation and
 * in a batch.
 */
static void invalid_values(void **state)
{
	static const struct {
		uint64_t length;
		uint64_t alignment;
		uint32_t limit;
		uint64_t asked;
	} cases[] = {
		{ 0, 128, FLEXMEM_LIMIT_NO_LENGTH, 0 },
		{ 1, 3 * GIB, FLEXMEM_LIMIT_ALIGNMENT_POWER, 3 * GIB },
		{ 1, 2 * GIB, FLEXMEM_LIMIT_ALIGNMENT_MAX, 2 * GIB },
	};
	struct flexmem_alloc_request requests[3] = { { 0 } };
	struct flexmem_device *device = open_device();
	struct flexmem_allocated results[3];
	struct flexmem_allocated a;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(flexmem_device_alloc(device, cases[i].length,
						      cases[i].alignment, 0,
						      &a, sizeof(a)), -EINVAL);
		assert_int_equal(a.failure.limit, cases[i].limit);
		assert_int_equal(a.failure.asked, cases[i].asked);
		requests[i].length = cases[i].length;
		requests[i].alignment = cases[i].alignment;
	}
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results,
						    sizeof(results[0]), 3), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(results[i].error, -EINVAL);
		assert_int_equal(results[i].failure.limit, cases[i].limit);
	}
	flexmem_device_close(device);
}

static void bind(void **state)
{
	struct flexmem_alloc_request request = {
		.length = 1000,
		.alignment = 4096,
		.flags = FLEXMEM_PROGRAM,
		.placement = FLEXMEM_PLACE_BIND,
		.domains = 6,
	};
	struct flexmem_device *device;
	struct flexmem_allocated a;

	(void)state;
	fake.nr_domains = 3;
	device = open_device();
	alloc_ok(device, 1000);
	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request), &a,
						      sizeof(a)), 0);
	assert_int_equal(fake.policy, FLEXMEM_POLICY_BIND);
	assert_int_equal(fake.bound_to, 6);
	assert_int_equal(a.address.offset, 4096);
	assert_int_equal(a.flags, FLEXMEM_PROGRAM);
	assert_int_equal(a.size, 1024);
	request.placement = FLEXMEM_PLACE_PREFERRED;
	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request), &a,
						      sizeof(a)), 0);
	assert_int_equal(fake.policy, FLEXMEM_POLICY_PREFERRED);
	assert_int_equal(fake.bound_to, 6);
	/* A caller that does not know of domains leaves the placement at 0. */
	request.placement = 0;
	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request) - 8, &a,
						      sizeof(a)), 0);
	assert_int_equal(fake.bound_to, 0);
	flexmem_device_close(device);
}

static void bind_refused(void **state)
{
	struct flexmem_alloc_request request = {
		.length = 1,
		.placement = FLEXMEM_PLACE_BIND,
	};
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a[2];
	const uint32_t wrong[] = { 0, 2, 3 };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		request.domains = wrong[i];
		assert_int_equal(flexmem_device_alloc_request(device, &request,
							      sizeof(request),
							      a, sizeof(*a)),
				 -EINVAL);
		assert_int_equal(a->failure.limit, FLEXMEM_LIMIT_DOMAINS);
		assert_int_equal(a->failure.asked, wrong[i]);
	}
	request.placement = FLEXMEM_PLACE_INTERLEAVE + 1;
	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request), a,
						      sizeof(*a)), -EOPNOTSUPP);
	a->handle = 77;
	assert_int_equal(flexmem_device_alloc_request(device, NULL,
						      sizeof(request), a,
						      sizeof(*a)), -EINVAL);
	assert_int_equal(flexmem_device_alloc_request(device, &request, 8, a,
						      sizeof(*a)), -EINVAL);
	assert_int_equal(a->handle, 77);
	flexmem_device_close(device);
}

/* The number of chunks is in the reply. */
static void several_chunks(void **state)
{
	struct flexmem_alloc_request request = {
		.length = 1,
		.placement = FLEXMEM_PLACE_INTERLEAVE,
		.domains = 3,
	};
	struct flexmem_device *device;
	struct flexmem_allocated a;

	(void)state;
	fake.nr_domains = 2;
	fake.chunks = 2;
	device = open_device();
	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request), &a,
						      sizeof(a)), 0);
	assert_int_equal(a.chunks, 2);
	flexmem_device_close(device);
}

static void chunks(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated a, found;
	struct flexmem_chunk_info list[2];
	size_t count = 9;

	(void)state;
	assert_int_equal(flexmem_device_alloc(device, 256, 0, 0, &a,
					      sizeof(a)), 0);
	assert_int_equal(flexmem_device_lookup(device, a.handle, &found,
					       sizeof(found)), 0);
	assert_int_equal(found.chunks, 1);
	memset(list, 9, sizeof(list));
	assert_int_equal(flexmem_device_chunks(device, a.handle, list,
					       sizeof(list[0]), 2, &count), 0);
	assert_int_equal(count, 1);
	assert_memory_equal(&list[0].address, &a.address, sizeof(a.address));
	assert_int_equal(list[0].size, 256);
	assert_int_equal(list[0].domain, 0);
	assert_int_equal(list[0].reserved, 0);
	assert_int_equal(list[1].size, 0x0909090909090909);
	count = 9;
	assert_int_equal(flexmem_device_chunks(device, a.handle, NULL,
					       sizeof(list[0]), 0, &count),
			 -EMSGSIZE);
	assert_int_equal(count, 1);
	assert_int_equal(flexmem_device_chunks(device, a.handle + 1, list,
					       sizeof(list[0]), 2, &count),
			 -ENOENT);
	assert_int_equal(flexmem_device_chunks(NULL, a.handle, list,
					       sizeof(list[0]), 2, &count),
			 -EINVAL);
	assert_int_equal(flexmem_device_chunks(device, a.handle, NULL,
					       sizeof(list[0]), 1, &count),
			 -EINVAL);
	assert_int_equal(flexmem_device_chunks(device, a.handle, list, 8, 2,
					       &count), -EINVAL);
	assert_int_equal(flexmem_device_chunks(device, a.handle, list,
					       sizeof(list[0]), 2, NULL),
			 -EINVAL);
	flexmem_device_close(device);
}

static void bind_batch(void **state)
{
	struct flexmem_alloc_request requests[] = {
		{ .length = 1, .placement = FLEXMEM_PLACE_BIND, .domains = 2 },
		{ .length = 1, .placement = 9 },
		{ .length = 1, .placement = FLEXMEM_PLACE_BIND, .domains = 1 },
	};
	struct flexmem_allocated results[3];
	struct flexmem_device *device = open_device();

	(void)state;
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results,
						    sizeof(results[0]), 3), 0);
	assert_int_equal(results[0].error, -EINVAL);
	assert_int_equal(results[0].failure.limit, FLEXMEM_LIMIT_DOMAINS);
	assert_int_equal(results[1].error, -EOPNOTSUPP);
	assert_int_equal(results[2].error, 0);
	assert_int_equal(fake.bound_to, 1);
	flexmem_device_close(device);
}

/* ---- batches ---- */

static void fill_requests(struct flexmem_alloc_request *requests, size_t count)
{
	size_t i;

	memset(requests, 0, count * sizeof(*requests));
	for (i = 0; i < count; i++)
		requests[i].length = 128 * (i + 1);
}

static void batch_in_pieces(void **state)
{
	static struct flexmem_alloc_request requests[MANY];
	static struct flexmem_allocated results[MANY];
	struct flexmem_device *device = open_device();
	uint32_t handles[MANY];
	int errors[MANY];
	size_t i;

	(void)state;
	fill_requests(requests, MANY);
	memset(results, 0xaa, sizeof(results));
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results,
						    sizeof(results[0]), MANY),
			 0);
	/* The library sends 64 requests at a time. */
	assert_int_equal(fake.calls[FLEXMEM_CMD_ALLOC_BATCH], 5);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(results[i].error, 0);
		assert_int_equal(results[i].handle, i + 1);
		assert_int_equal(results[i].size, 128 * (i + 1));
		handles[i] = results[i].handle;
		errors[i] = 1;
	}
	assert_int_equal(flexmem_device_free_batch(device, handles, errors,
						   MANY), 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_FREE_BATCH], 5);
	for (i = 0; i < MANY; i++)
		assert_int_equal(errors[i], 0);
	assert_int_equal(flexmem_device_free_batch(device, handles, errors, 2),
			 0);
	assert_int_equal(errors[0], -ENOENT);
	flexmem_device_close(device);
}

static void batch_of_addresses(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_virtual_address addresses[3];
	int errors[3] = { 1, 1, 1 };

	(void)state;
	addresses[0] = alloc_ok(device, 1).address;
	addresses[1] = (struct flexmem_virtual_address){ 7, 7 };
	addresses[2] = alloc_ok(device, 1).address;
	assert_int_equal(flexmem_device_free_address_batch(device, addresses,
							   errors, 3), 0);
	assert_int_equal(errors[0], 0);
	assert_int_equal(errors[1], -ENOENT);
	assert_int_equal(errors[2], 0);
	flexmem_device_close(device);
}

static void batch_results_are_each_own(void **state)
{
	struct flexmem_device *device = open_device();
	struct flexmem_allocated results[5];
	struct flexmem_alloc_request requests[5];

	(void)state;
	fill_requests(requests, 5);
	requests[1].length = 0;
	requests[2].flags = 0x80;
	requests[3].length = 13 * GIB;
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results,
						    sizeof(results[0]), 5), 0);
	assert_int_equal(results[0].error, 0);
	assert_int_equal(results[1].error, -EINVAL);
	assert_int_equal(results[2].error, -EOPNOTSUPP);
	assert_int_equal(results[3].error, -ENOMEM);
	assert_int_equal(results[3].failure.limit, FLEXMEM_LIMIT_REGION_SIZE);
	assert_int_equal(results[3].failure.regions, 1);
	assert_int_equal(results[4].error, 0);
	assert_int_equal(results[4].failure.regions, 0);
	flexmem_device_close(device);
}

static void batch_asks_no_second_time(void **state)
{
	static struct flexmem_allocated results[MANY];
	static struct flexmem_alloc_request requests[MANY];
	struct flexmem_device *device = open_device();
	size_t i;

	(void)state;
	alloc_ok(device, 1);
	fill_requests(requests, MANY);
	for (i = 0; i < MANY; i++)
		requests[i].length = 13 * GIB;
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results,
						    sizeof(results[0]), MANY),
			 0);
	assert_int_equal(results[MANY - 1].failure.regions, 1);
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 0);
	flexmem_device_close(device);
}

/*
 * EFAULT in the third part of the batch: the first two parts stay, and the
 * third is undone.
 */
static void batch_ends_early(void **state)
{
	static struct flexmem_allocated results[MANY];
	static struct flexmem_alloc_request requests[MANY];
	struct flexmem_device *device = open_device();
	size_t i;

	(void)state;
	fill_requests(requests, MANY);
	inject(FLEXMEM_CMD_ALLOC_BATCH, 3, EFAULT);
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results,
						    sizeof(results[0]), MANY),
			 -EFAULT);
	assert_int_equal(fake.calls[FLEXMEM_CMD_ALLOC_BATCH], 3);
	for (i = 0; i < MANY; i++)
		assert_int_equal(results[i].error, i < 128 ? 0 : -ECANCELED);
	assert_int_equal(results[128].handle, 0);
	flexmem_device_close(device);
}

/*
 * The caller is killed after 10 entries of the second part. These 10 entries
 * were carried out.
 */
static void batch_is_interrupted(void **state)
{
	struct flexmem_allocated results[100];
	struct flexmem_alloc_request requests[100];
	struct flexmem_device *device = open_device();
	uint32_t handles[100];
	int errors[100];
	size_t i;

	(void)state;
	fill_requests(requests, 100);
	fake.done_before_eintr = 10;
	inject(FLEXMEM_CMD_ALLOC_BATCH, 2, EINTR);
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results,
						    sizeof(results[0]), 100),
			 -EINTR);
	for (i = 0; i < 100; i++) {
		assert_int_equal(results[i].error, i < 74 ? 0 : -ECANCELED);
		handles[i] = (uint32_t)i + 1;
	}
	inject(FLEXMEM_CMD_FREE_BATCH, 1, EINTR);
	assert_int_equal(flexmem_device_free_batch(device, handles, errors,
						   74), -EINTR);
	assert_int_equal(errors[9], 0);
	assert_int_equal(errors[10], -ECANCELED);
	flexmem_device_close(device);
}

static void batch_of_later_structs(void **state)
{
	struct {
		struct flexmem_alloc_request now;
		uint64_t later;
	} requests[3];
	struct {
		struct flexmem_allocated now;
		uint64_t later;
	} results[3];
	struct flexmem_device *device = open_device();
	size_t i;

	(void)state;
	memset(requests, 0, sizeof(requests));
	memset(results, 0xaa, sizeof(results));
	for (i = 0; i < 3; i++)
		requests[i].now.length = 1 + i * 1000;
	assert_int_equal(flexmem_device_alloc_batch(device, &requests[0].now,
						    sizeof(requests[0]),
						    &results[0].now,
						    sizeof(results[0]), 3), 0);
	assert_int_equal(results[2].now.size, 2048);
	assert_int_equal(results[2].later, 0);

	requests[2].later = 1;
	assert_int_equal(flexmem_device_alloc_batch(device, &requests[0].now,
						    sizeof(requests[0]),
						    &results[0].now,
						    sizeof(results[0]), 3),
			 -E2BIG);
	requests[2].later = 0;
	assert_int_equal(results[1].now.error, -ECANCELED);
	assert_int_equal(fake.calls[FLEXMEM_CMD_ALLOC_BATCH], 1);
	flexmem_device_close(device);
}

/*
 * The bytes that a caller could free include bytes that the same batch has
 * allocated.
 */
static void batch_counts_its_own(void **state)
{
	enum { COUNT = 7, PIECE = 3 };
	struct flexmem_alloc_request requests[COUNT] = { 0 };
	struct flexmem_allocated results[COUNT];
	struct flexmem_device *device;
	int i;

	(void)state;
	fake.max_batch = PIECE;
	device = open_device();
	alloc_ok(device, 4 * GIB);
	for (i = 0; i < COUNT; i++)
		requests[i].length = 12 * GIB;
	/*
	 * The third and the last two requests are too large. The other requests
	 * are not.
	 */
	requests[2].length = 13 * GIB;
	assert_int_equal(flexmem_device_alloc_batch(device, requests,
						    sizeof(requests[0]),
						    results, sizeof(results[0]),
						    COUNT), 0);
	assert_int_equal(results[2].failure.limit, FLEXMEM_LIMIT_REGION_SIZE);
	assert_true(results[2].failure.own_used == 28 * GIB);
	assert_int_equal(results[4].error, 0);
	assert_int_equal(results[5].failure.limit, FLEXMEM_LIMIT_CAPACITY);
	assert_true(results[5].failure.own_used == 52 * GIB);
	assert_true(results[6].failure.own_used == 52 * GIB);
	flexmem_device_close(device);
}

static void batch_of_a_driver_without_limit(void **state)
{
	struct flexmem_alloc_request request = { .length = 1 };
	struct flexmem_allocated result;
	struct flexmem_device *device;

	(void)state;
	/*
	 * A driver without batches must cause no endless loop and no division
	 * by zero.
	 */
	fake.max_batch = 0;
	device = open_device();
	fake.max_batch = 1;
	assert_int_equal(flexmem_device_alloc_batch(device, &request,
						    sizeof(request), &result,
						    sizeof(result), 1), 0);
	flexmem_device_close(device);
}

static void batch_nulls(void **state)
{
	struct flexmem_virtual_address address = { 0, 0 };
	struct flexmem_device *device = open_device();
	struct flexmem_alloc_request request = { .length = 1 };
	struct flexmem_allocated a;
	uint32_t handle = 1;
	int error;

	(void)state;
	assert_int_equal(flexmem_device_alloc_batch(NULL, &request,
						    sizeof(request), &a,
						    sizeof(a), 1), -EINVAL);
	assert_int_equal(flexmem_device_alloc_batch(device, NULL,
						    sizeof(request), &a,
						    sizeof(a), 1), -EINVAL);
	assert_int_equal(flexmem_device_alloc_batch(device, &request,
						    sizeof(request), NULL,
						    sizeof(a), 1), -EINVAL);
	assert_int_equal(flexmem_device_alloc_batch(device, &request, 4, &a,
						    sizeof(a), 1), -EINVAL);
	assert_int_equal(flexmem_device_alloc_batch(device, &request,
						    sizeof(request), &a, 4,
						    1), -EINVAL);
	assert_int_equal(flexmem_device_alloc_batch(device, NULL,
						    sizeof(request), NULL,
						    sizeof(a), 0), 0);
	assert_int_equal(flexmem_device_free_batch(NULL, &handle, &error, 1),
			 -EINVAL);
	assert_int_equal(flexmem_device_free_batch(device, NULL, &error, 1),
			 -EINVAL);
	assert_int_equal(flexmem_device_free_batch(device, &handle, NULL, 1),
			 -EINVAL);
	assert_int_equal(flexmem_device_free_batch(device, NULL, NULL, 0), 0);
	assert_int_equal(flexmem_device_free_address_batch(NULL, &address,
							   &error, 1),
			 -EINVAL);
	assert_int_equal(flexmem_device_free_address_batch(device, NULL,
							   &error, 1),
			 -EINVAL);
	assert_int_equal(fake.calls[FLEXMEM_CMD_ALLOC_BATCH], 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_FREE_BATCH], 0);
	flexmem_device_close(device);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(alloc_reply),
		TEST(alloc_alignment_and_flags),
		TEST(alloc_on_a_pf),
		TEST(free_by_handle),
		TEST(free_nothing),
		TEST(free_by_address),
		TEST(lookup),
		TEST(close_gives_back),
		TEST(failure_details),
		TEST(each_limit),
		TEST(host_memory_is_no_limit),
		TEST(a_failure_is_one_call),
		TEST(fragmentation_tells_of_regions),
		TEST(nobody_can_help),
		TEST(alloc_nulls),
		TEST(invalid_values),
		TEST(bind),
		TEST(bind_refused),
		TEST(several_chunks),
		TEST(chunks),
		TEST(bind_batch),
		TEST(batch_in_pieces),
		TEST(batch_of_addresses),
		TEST(batch_results_are_each_own),
		TEST(batch_asks_no_second_time),
		TEST(batch_ends_early),
		TEST(batch_is_interrupted),
		TEST(batch_of_later_structs),
		TEST(batch_counts_its_own),
		TEST(batch_of_a_driver_without_limit),
		TEST(batch_nulls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
