// SPDX-License-Identifier: GPL-2.0
/* Runs the example that uses the bytes of a cache's allocations. */
#include "test.h"

#include <unistd.h>

#define main example
#include "../../userlib/examples/cache_bytes.c"
#undef main

static char said[1000];

/* Runs the example, and keeps its output. */
static int run_example(void)
{
	FILE *file = tmpfile();
	int saved = dup(1);
	size_t length;
	int result;

	assert_non_null(file);
	fflush(stdout);
	assert_int_equal(dup2(fileno(file), 1), 1);
	result = example();
	fflush(stdout);
	assert_int_equal(dup2(saved, 1), 1);
	close(saved);
	rewind(file);
	length = fread(said, 1, sizeof(said) - 1, file);
	said[length] = '\0';
	fclose(file);
	return result;
}

static void with_maps(void **state)
{
	(void)state;
	assert_int_equal(run_example(), 0);
	assert_string_equal(said,
			    "at 1024 of its segment: a tensor's bytes\n"
			    "mapped: a tensor's bytes\n"
			    "success\n");
	assert_int_equal(fake.maps, 1);
}

static void without_maps(void **state)
{
	(void)state;
	fake.capabilities &= ~(uint64_t)FLEXMEM_CAN_MAP;
	assert_int_equal(run_example(), 0);
	assert_string_equal(said, "at 1024 of its segment: a tensor's bytes\n"
				  "success\n");
}

/* EBUSY: a segment is being resized. The library repeats the copy or map. */
static void while_it_is_resized(void **state)
{
	(void)state;
	fake.copied_before_error = 3;
	inject(FLEXMEM_CMD_WRITE, 1, EBUSY);
	inject(FLEXMEM_CMD_READ, 1, EBUSY);
	inject(FLEXMEM_CMD_LOOKUP, 1, EBUSY);
	assert_int_equal(run_example(), 0);
	assert_int_equal(fake.calls[FLEXMEM_CMD_WRITE], 2);
	assert_int_equal(fake.calls[FLEXMEM_CMD_READ], 2);
	assert_int_equal(fake.calls[FLEXMEM_CMD_LOOKUP], 2);
	assert_string_equal(said,
			    "at 1024 of its segment: a tensor's bytes\n"
			    "mapped: a tensor's bytes\n"
			    "success\n");
}

static void without_a_device(void **state)
{
	(void)state;
	fake.nodes[0].exists = false;
	assert_int_equal(run_example(), 1);
	assert_non_null(strstr(said, "no such device"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(with_maps),
		TEST(without_maps),
		TEST(while_it_is_resized),
		TEST(without_a_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
