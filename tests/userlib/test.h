/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the unit tests of libflexmem. */
#ifndef TEST_H
#define TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"
#include "flexmem.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* PROGRAM TEST runs one test only. */
__attribute__((constructor)) static void choose_test(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
}

/* Each test begins with a new fake kernel and an empty environment. */
static inline int setup(void **state)
{
	(void)state;
	fake_reset();
	unsetenv("FLEX_DEVICE");
	unsetenv("FLEXMEM_VISIBLE_DEVICES");
	unsetenv("FLEXMEM_DEBUG");
	unsetenv("TORCH_SPYRE_ALLOC_DEBUG");
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	assert_true(fake_all_closed());
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static inline struct flexmem_device *open_device(void)
{
	struct flexmem_device *device;

	assert_int_equal(flexmem_device_open(&device, "/dev/flexmem0"), 0);
	return device;
}

static inline void inject(unsigned int command, unsigned int at, int error)
{
	fake.inject[command].at = fake.calls[command] + at;
	fake.inject[command].error = error;
}

#endif /* TEST_H */
