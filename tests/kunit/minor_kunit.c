// SPDX-License-Identifier: GPL-2.0
/*
 * Minor numbers of nodes: PFs and VFs have separate ranges, and a device
 * function keeps its number.
 */

#include <kunit/test.h>

#include "minor.h"

#define PF FLEXMEM_MODE_PF
#define VF FLEXMEM_MODE_VF

static int minor_test_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct flexmem_minors),
				   GFP_KERNEL);
	if (!test->priv)
		return -ENOMEM;
	flexmem_minors_init(test->priv);
	return 0;
}

static void minor_test_exit(struct kunit *test)
{
	struct flexmem_minors *minors = test->priv;

	if (!minors)
		return;
	memset(minors->function, 0, sizeof(minors->function));
	flexmem_minors_fini(minors);
}

/* Takes a number for a dummy, because no test looks up the function. */
static int get(struct flexmem_minors *minors, enum flexmem_mode mode,
	       const char *name)
{
	static char function;

	return flexmem_minor_get(minors, mode, name, (void *)&function);
}

static void pfs_and_vfs_have_ranges_of_their_own(struct kunit *test)
{
	struct flexmem_minors *minors = test->priv;

	KUNIT_EXPECT_EQ(test, 64, get(minors, VF, "card.1"));
	KUNIT_EXPECT_EQ(test, 0, get(minors, PF, "card.0"));
	KUNIT_EXPECT_EQ(test, 65, get(minors, VF, "card.2"));
	KUNIT_EXPECT_EQ(test, 1, get(minors, PF, "other.0"));
	/*
	 * If a device turns from a PF into a VF, it counts as another function
	 * and gets another number.
	 */
	flexmem_minor_put(minors, 0);
	KUNIT_EXPECT_EQ(test, 66, get(minors, VF, "card.0"));
}

static void a_function_keeps_its_number(struct kunit *test)
{
	struct flexmem_minors *minors = test->priv;

	KUNIT_EXPECT_EQ(test, 64, get(minors, VF, "a"));
	KUNIT_EXPECT_EQ(test, 65, get(minors, VF, "b"));
	flexmem_minor_put(minors, 64);
	flexmem_minor_put(minors, 65);
	/*
	 * The devices return in another order, and each gets its old number,
	 * because a freed number is kept for its device.
	 */
	KUNIT_EXPECT_EQ(test, 65, get(minors, VF, "b"));
	KUNIT_EXPECT_EQ(test, 66, get(minors, VF, "c"));
	KUNIT_EXPECT_EQ(test, 64, get(minors, VF, "a"));
}

static void two_functions_of_one_name_have_two_numbers(struct kunit *test)
{
	struct flexmem_minors *minors = test->priv;

	KUNIT_EXPECT_EQ(test, 0, get(minors, PF, "a"));
	KUNIT_EXPECT_EQ(test, 1, get(minors, PF, "a"));
	flexmem_minor_put(minors, 1);
	flexmem_minor_put(minors, 0);
	KUNIT_EXPECT_EQ(test, 0, get(minors, PF, "a"));
}

static void a_full_range_takes_back_what_is_idle(struct kunit *test)
{
	struct flexmem_minors *minors = test->priv;
	char name[16];
	int i;

	for (i = 0; i < FLEXMEM_MAX_PFS; i++) {
		snprintf(name, sizeof(name), "pf.%d", i);
		KUNIT_ASSERT_EQ(test, i, get(minors, PF, name));
	}
	KUNIT_EXPECT_EQ(test, -ENOSPC, get(minors, PF, "more"));
	flexmem_minor_put(minors, 7);
	KUNIT_EXPECT_EQ(test, 7, get(minors, PF, "more"));
	KUNIT_EXPECT_EQ(test, -ENOSPC, get(minors, PF, "pf.7"));
	/* VFs still get numbers when all numbers of PFs are taken. */
	for (i = FLEXMEM_MAX_PFS; i < FLEXMEM_MAX_DEVICES; i++) {
		snprintf(name, sizeof(name), "vf.%d", i);
		KUNIT_ASSERT_EQ(test, i, get(minors, VF, name));
	}
	KUNIT_EXPECT_EQ(test, -ENOSPC, get(minors, VF, "more"));
}

static struct kunit_case minor_cases[] = {
	KUNIT_CASE(pfs_and_vfs_have_ranges_of_their_own),
	KUNIT_CASE(a_function_keeps_its_number),
	KUNIT_CASE(two_functions_of_one_name_have_two_numbers),
	KUNIT_CASE(a_full_range_takes_back_what_is_idle),
	{}
};

static struct kunit_suite minor_suite = {
	.name = "flexmem_minor",
	.init = minor_test_init,
	.exit = minor_test_exit,
	.test_cases = minor_cases,
};

kunit_test_suite(minor_suite);
