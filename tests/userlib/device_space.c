// SPDX-License-Identifier: GPL-2.0
/*
 * The allocators of KernBench's ADR-0048 (K5 to K9 in Documentation/proof.rst),
 * as a runtime makes them with flexmem. Runs on the driver in a virtual
 * machine, on the PF or VF that FLEX_DEVICE names.
 *
 * The device has SIPs with cubes with PEs. Each PE has a slice of its cube's
 * HBM, and a TCM of which the scheduler uses a part. Each slice and each TCM is
 * a domain, and the spaces have 64 GiB from 0x1_0000_0000 on
 * (tests/vm/cache.sh).
 */
#include "test.h"

#define SIPS 2
#define CUBES 2
#define PES 2
#define ALL_PES (SIPS * CUBES * PES)

#define HBM_PER_CUBE (256 * MIB)
#define SLICES_PER_CUBE PES
#define SLICE (HBM_PER_CUBE / SLICES_PER_CUBE)
#define TCM_PER_PE (16 * MIB)
#define SCHEDULER MIB
#define TCM (TCM_PER_PE - SCHEDULER)

#define SPACE_START (4 * GIB)
#define SPACE_LENGTH (64 * GIB)

#define ACCESS (FLEXMEM_SPACE_READ | FLEXMEM_SPACE_WRITE)

/* The pages of tensors that are spread over the slices of all PEs. */
static const uint64_t spread_pages[] = { 1, 13, 3 * ALL_PES };
#define SPREAD (sizeof(spread_pages) / sizeof(spread_pages[0]))
/* Each PE has a tensor in its TCM. */
#define TCM_PAGES 4
#define TENSORS (SPREAD + ALL_PES)

/* The addresses of a tensor. All bytes are initialised, for memcmp(). */
struct place {
	uint64_t address;
	uint64_t length;
	size_t chunks;
	struct flexmem_chunk_info chunk[ALL_PES];
};

static struct flexmem_device *device;
static uint64_t page;
static uint32_t handles[TENSORS];

static uint32_t slice_of(unsigned int sip, unsigned int cube, unsigned int pe)
{
	return (sip * CUBES + cube) * PES + pe;
}

static uint32_t tcm_of(unsigned int sip, unsigned int cube, unsigned int pe)
{
	return ALL_PES + slice_of(sip, cube, pe);
}

static struct flexmem_domain_state domain(uint32_t id)
{
	struct flexmem_domain_state state;

	assert_int_equal(flexmem_device_domain(device, id, &state,
					       sizeof(state)), 0);
	return state;
}

static void expect_range(uint64_t length, uint64_t address)
{
	struct flexmem_space_range range;

	assert_int_equal(flexmem_device_space_reserve(device, length, &range,
						      sizeof(range)), 0);
	assert_int_equal(range.address, address);
	assert_int_equal(range.length, length);
}

/* Begins a context. */
static int begin(void **state)
{
	struct flexmem_properties properties;

	(void)state;
	assert_int_equal(flexmem_device_open(&device, NULL), 0);
	assert_int_equal(flexmem_device_properties(device, &properties,
						   sizeof(properties)), 0);
	assert_true(properties.capabilities & FLEXMEM_CAN_PAGE_TABLES);
	page = properties.space_page;
	assert_int_equal(properties.space_start, SPACE_START);
	assert_int_equal(properties.space_length, SPACE_LENGTH);
	return 0;
}

static int end(void **state)
{
	(void)state;
	flexmem_device_close(device);
	return 0;
}

static uint32_t allocate(uint64_t length, uint32_t placement, uint32_t domains)
{
	struct flexmem_alloc_request request = {
		.length = length,
		.alignment = page,
		.placement = placement,
		.domains = domains,
	};
	struct flexmem_allocated allocation;

	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request),
						      &allocation,
						      sizeof(allocation)), 0);
	assert_int_equal(allocation.size, length);
	return allocation.handle;
}

static void map_tensor(uint32_t handle, uint64_t length, struct place *place)
{
	struct flexmem_space_range range;

	memset(place, 0, sizeof(*place));
	assert_int_equal(flexmem_device_chunks(device, handle, place->chunk,
					       sizeof(place->chunk[0]), ALL_PES,
					       &place->chunks), 0);
	assert_int_equal(flexmem_device_space_reserve(device, length, &range,
						      sizeof(range)), 0);
	assert_int_equal(range.length, length);
	assert_in_range(range.address, SPACE_START,
			SPACE_START + SPACE_LENGTH - length);
	assert_int_equal(flexmem_device_space_bind(device, range.address,
						   handle, 0, length, ACCESS),
			 0);
	place->address = range.address;
	place->length = length;
}

static void deploy(struct place places[TENSORS])
{
	uint64_t length;
	uint32_t i;

	for (i = 0; i < SPREAD; i++) {
		length = spread_pages[i] * page;
		handles[i] = allocate(length, FLEXMEM_PLACE_INTERLEAVE,
				      (1 << ALL_PES) - 1);
		map_tensor(handles[i], length, &places[i]);
	}
	for (; i < TENSORS; i++) {
		length = TCM_PAGES * page;
		handles[i] = allocate(length, FLEXMEM_PLACE_BIND,
				      1U << (ALL_PES + i - SPREAD));
		map_tensor(handles[i], length, &places[i]);
	}
}

/* Unmaps each tensor, then frees its addresses, then its memory. */
static void clean_up(const struct place places[TENSORS])
{
	uint32_t i;

	for (i = 0; i < TENSORS; i++) {
		assert_int_equal(flexmem_device_space_unbind(device,
							     places[i].address),
				 0);
		assert_int_equal(flexmem_device_space_free(device,
							   places[i].address),
				 0);
		assert_int_equal(flexmem_device_free(device, handles[i]), 0);
	}
}

/* Translates an address to the byte of a tensor, and back. */
static void expect_byte(uint32_t handle, const struct place *place,
			uint64_t offset, uint32_t chunk)
{
	uint64_t address = place->address + offset;
	struct flexmem_space_bytes bytes;

	assert_int_equal(flexmem_device_space_lookup_address(device, address,
							     &bytes,
							     sizeof(bytes)),
			 0);
	assert_int_equal(bytes.handle, handle);
	assert_int_equal(bytes.chunk, chunk);
	assert_int_equal(bytes.access, ACCESS);
	assert_int_equal(bytes.offset, offset);
	assert_int_equal(bytes.length, place->length - offset);
	assert_int_equal(flexmem_device_space_lookup(device, handle, offset,
						     &bytes, sizeof(bytes)),
			 0);
	assert_int_equal(bytes.address, address);
	assert_int_equal(bytes.chunk, chunk);
}

/* Checks the first and the last byte of each chunk. */
static void expect_chunks(uint32_t handle, const struct place *place)
{
	uint64_t offset = 0;
	uint32_t i;

	for (i = 0; i < place->chunks; i++) {
		expect_byte(handle, place, offset, i);
		offset += place->chunk[i].size;
		expect_byte(handle, place, offset - 1, i);
	}
	assert_int_equal(offset, place->length);
}

static void expect_free_device(void)
{
	struct flexmem_domain_state state;
	uint32_t i;

	for (i = 0; i < 2 * ALL_PES; i++) {
		state = domain(i);
		assert_int_equal(state.free, state.total);
	}
}

/* K6: a domain for each slice and TCM, without the scheduler's part. */
static void hierarchy(void **state)
{
	struct flexmem_domain_state hbm;
	struct flexmem_domain_state tcm;
	unsigned int sip, cube, pe;

	(void)state;
	assert_int_equal(domain(0).count, 2 * ALL_PES);
	for (sip = 0; sip < SIPS; sip++) {
		for (cube = 0; cube < CUBES; cube++) {
			for (pe = 0; pe < PES; pe++) {
				hbm = domain(slice_of(sip, cube, pe));
				tcm = domain(tcm_of(sip, cube, pe));
				assert_int_equal(hbm.memory,
						 FLEXMEM_MEMORY_DEVICE);
				assert_int_equal(hbm.capacity, SLICE);
				assert_int_equal(hbm.max_region, SLICE);
				assert_int_equal(tcm.memory,
						 FLEXMEM_MEMORY_ON_CHIP);
				assert_int_equal(tcm.capacity, TCM);
				assert_int_equal(tcm.set_aside, SCHEDULER);
			}
		}
	}
}

/*
 * K7, K9: tensors have adjacent addresses, and each address can be traced back
 * to the slice that has its bytes.
 */
static void addresses(void **state)
{
	struct place places[TENSORS];
	uint64_t next = SPACE_START;
	uint32_t i, j;

	(void)state;
	deploy(places);
	for (i = 0; i < TENSORS; i++) {
		assert_int_equal(places[i].address, next);
		next += places[i].length;
		expect_chunks(handles[i], &places[i]);
	}
	/* 13 pages over 8 slices are 6 chunks of 2 pages, and one page. */
	assert_int_equal(places[0].chunks, 1);
	assert_int_equal(places[1].chunks, 7);
	assert_int_equal(places[1].chunk[6].size, page);
	assert_int_equal(places[2].chunks, ALL_PES);
	for (j = 0; j < ALL_PES; j++) {
		assert_int_equal(places[2].chunk[j].domain, j);
		assert_int_equal(places[2].chunk[j].size, 3 * page);
		/* A slice is one region, so this is the offset in the slice. */
		assert_in_range(places[2].chunk[j].address.offset, 0,
				SLICE - 3 * page);
		assert_int_equal(places[SPREAD + j].chunks, 1);
		assert_int_equal(places[SPREAD + j].chunk[0].domain,
				 ALL_PES + j);
	}
	clean_up(places);
}

/* K8: a runtime that does the same again gets the same addresses. */
static void deploy_twice(void **state)
{
	struct place first[TENSORS];
	struct place again[TENSORS];

	(void)state;
	deploy(first);
	clean_up(first);
	expect_free_device();
	deploy(again);
	assert_memory_equal(again, first, sizeof(first));
	/* Another context begins, and this one has not cleaned up. */
	end(NULL);
	begin(NULL);
	expect_free_device();
	deploy(again);
	assert_memory_equal(again, first, sizeof(first));
	clean_up(again);
}

static void expect_overflow(uint32_t in, uint64_t length, uint64_t largest,
			    const char *words)
{
	struct flexmem_alloc_request request = {
		.length = length,
		.alignment = page,
		.placement = FLEXMEM_PLACE_BIND,
		.domains = 1U << in,
	};
	struct flexmem_allocated allocation;
	char text[256];

	assert_int_equal(flexmem_device_alloc_request(device, &request,
						      sizeof(request),
						      &allocation,
						      sizeof(allocation)),
			 -ENOMEM);
	assert_int_equal(allocation.failure.asked, length);
	assert_int_equal(allocation.failure.largest_free, largest);
	assert_int_equal(flexmem_error_text(-ENOMEM, &allocation.failure,
					    sizeof(allocation.failure), text,
					    sizeof(text)), 0);
	assert_non_null(strstr(text, words));
}

/* K5: a failure names the required size and the largest free block. */
static void overflow_of_memory(void **state)
{
	(void)state;
	allocate(MIB, FLEXMEM_PLACE_BIND, 1U << slice_of(1, 0, 1));
	expect_overflow(slice_of(1, 0, 1), SLICE, SLICE - MIB,
			"asked 128.0 MiB, free 127.0 MiB in ");
	expect_overflow(slice_of(1, 0, 1), SLICE, SLICE - MIB,
			", largest piece 127.0 MiB");
	allocate(SLICE - MIB, FLEXMEM_PLACE_BIND, 1U << slice_of(1, 0, 1));
	/* The scheduler's part of a TCM cannot be allocated. */
	allocate(TCM, FLEXMEM_PLACE_BIND, 1U << tcm_of(1, 0, 1));
	expect_overflow(tcm_of(1, 0, 1), MIB, 0,
			"asked 1.0 MiB, free 0 B in ");
}

static void overflow_of_addresses(void **state)
{
	struct flexmem_space_range range;
	struct place places[TENSORS];
	uint64_t used = 0;
	uint32_t i;

	(void)state;
	deploy(places);
	for (i = 0; i < TENSORS; i++)
		used += places[i].length;
	assert_int_equal(flexmem_device_space_reserve(device, SPACE_LENGTH - 1,
						      &range, sizeof(range)),
			 -ENOSPC);
	assert_int_equal(range.address, 0);
	assert_int_equal(range.length, SPACE_LENGTH);
	assert_int_equal(range.largest_free, SPACE_LENGTH - used);
	/* The failure has changed nothing. */
	expect_range(SPACE_LENGTH - used, SPACE_START + used);
	clean_up(places);
}

#define SPACE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SPACE_TEST(hierarchy),
		SPACE_TEST(addresses),
		SPACE_TEST(deploy_twice),
		SPACE_TEST(overflow_of_memory),
		SPACE_TEST(overflow_of_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
