// SPDX-License-Identifier: GPL-2.0
/* Descriptions of devices, right or wrong. */

#include <linux/pgtable.h>

#include "liar.h"

static void pf_needs_no_slots(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_device_desc desc = good_desc(liar);
	struct flexmem_device_ops ops = liar_ops;
	const struct flexmem_memory mem = { .size = SZ_2M };

	ops.slot_set = NULL;
	ops.slot_clear = NULL;
	desc.ops = &ops;
	desc.mode = FLEXMEM_MODE_PF;
	desc.slots = 0;
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_init(&liar->function, NULL, &desc));
	liar->rc = -EIO;
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_function_slot_set(&liar->function, 0, &mem));
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_function_slot_clear(&liar->function, 0));
}

/* A description with one mistake. */
struct bad_desc {
	const char *what;
	void (*spoil)(struct flexmem_device_desc *desc,
		      struct flexmem_device_ops *ops);
};

#define BAD_DESC(_name, _statement)					\
	static void bad_##_name(struct flexmem_device_desc *desc,	\
				struct flexmem_device_ops *ops)		\
	{								\
		_statement;						\
	}

BAD_DESC(mode, desc->mode = 99)
BAD_DESC(no_name, desc->name = NULL)
BAD_DESC(empty_name, desc->name = "")
BAD_DESC(long_name, desc->name = "12345678901234567890123456789012")
BAD_DESC(no_slots, desc->slots = 0)
BAD_DESC(many_slots, desc->slots = FLEXMEM_MAX_SLOTS + 1)
BAD_DESC(pf_with_slots, ops->slot_set = NULL; ops->slot_clear = NULL;
	 desc->mode = FLEXMEM_MODE_PF)
BAD_DESC(pf_with_slot_ops, desc->slots = 0; desc->mode = FLEXMEM_MODE_PF)
BAD_DESC(vf_with_drain, ops->drain = ops->quiesce)
BAD_DESC(odd_granule, desc->granule = SZ_2M + SZ_4K)
BAD_DESC(no_granule, desc->granule = 0)
BAD_DESC(small_granule, desc->granule = SZ_2K)
BAD_DESC(large_granule, desc->granule = 2 * GIB)
BAD_DESC(no_ops, desc->ops = NULL)
BAD_DESC(no_acquire, ops->acquire = NULL)
BAD_DESC(no_release, ops->release = NULL)
BAD_DESC(no_quiesce, ops->quiesce = NULL)
BAD_DESC(no_capacity, ops->capacity = NULL)
BAD_DESC(no_scrub, ops->scrub = NULL)
BAD_DESC(no_slot_set, ops->slot_set = NULL)
BAD_DESC(no_slot_clear, ops->slot_clear = NULL)
BAD_DESC(unknown_caching, desc->caching = FLEXMEM_CACHED + 1)
BAD_DESC(unknown_order, desc->order = FLEXMEM_ORDER_FILL_FIRST + 1)
BAD_DESC(many_sizes, desc->nr_sizes = FLEXMEM_MAX_FALLBACK_SIZES + 1)
BAD_DESC(no_size, desc->nr_sizes = 1)
BAD_DESC(odd_size, desc->nr_sizes = 1; desc->sizes[0] = SZ_2M + SZ_4K)
BAD_DESC(read_alone, ops->write = NULL)
BAD_DESC(write_alone, ops->read = NULL)
BAD_DESC(vm_map_alone, ops->vm_unmap = NULL)
BAD_DESC(vm_unmap_alone, ops->vm_map = NULL; desc->vm_page = 0)
BAD_DESC(no_vm_page, desc->vm_page = 0)
BAD_DESC(odd_vm_page, desc->vm_page = SZ_64K + SZ_4K)
BAD_DESC(small_vm_page, desc->vm_page = SZ_2K)
BAD_DESC(large_vm_page, desc->vm_page = SZ_4M)
BAD_DESC(vm_page_alone, ops->vm_map = NULL; ops->vm_unmap = NULL;
	 desc->vm_start = 0; desc->vm_end = 0)
BAD_DESC(vm_bounds_alone, ops->vm_map = NULL; ops->vm_unmap = NULL;
	 desc->vm_page = 0)
BAD_DESC(no_vm_bounds, desc->vm_start = 0; desc->vm_end = 0)
BAD_DESC(vm_start_0, desc->vm_start = 0)
BAD_DESC(vm_bounds_crossed, desc->vm_end = desc->vm_start)
BAD_DESC(odd_vm_start, desc->vm_start += SZ_4K)
BAD_DESC(odd_vm_end, desc->vm_end += SZ_4K)

#define BAD(_name) { #_name, bad_##_name }
static const struct bad_desc bad_descs[] = {
	BAD(mode),
	BAD(no_name),
	BAD(empty_name),
	BAD(long_name),
	BAD(no_slots),
	BAD(many_slots),
	BAD(pf_with_slots),
	BAD(pf_with_slot_ops),
	BAD(vf_with_drain),
	BAD(odd_granule),
	BAD(no_granule),
	BAD(small_granule),
	BAD(large_granule),
	BAD(no_ops),
	BAD(no_acquire),
	BAD(no_release),
	BAD(no_quiesce),
	BAD(no_capacity),
	BAD(no_scrub),
	BAD(no_slot_set),
	BAD(no_slot_clear),
	BAD(unknown_caching),
	BAD(unknown_order),
	BAD(many_sizes),
	BAD(no_size),
	BAD(odd_size),
	BAD(read_alone),
	BAD(write_alone),
	BAD(vm_map_alone),
	BAD(vm_unmap_alone),
	BAD(no_vm_page),
	BAD(odd_vm_page),
	BAD(small_vm_page),
	BAD(large_vm_page),
	BAD(vm_page_alone),
	BAD(vm_bounds_alone),
	BAD(no_vm_bounds),
	BAD(vm_start_0),
	BAD(vm_bounds_crossed),
	BAD(odd_vm_start),
	BAD(odd_vm_end),
};

static void bad_desc_name(const struct bad_desc *bad, char *name)
{
	strscpy(name, bad->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_desc, bad_descs, bad_desc_name);

static void refuses_a_bad_description(struct kunit *test)
{
	const struct bad_desc *bad = test->param_value;
	struct liar *liar = test->priv;
	struct flexmem_device_desc desc = good_desc(liar);
	struct flexmem_device_ops ops = liar_ops;

	desc.ops = &ops;
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_init(&liar->function, NULL, &desc));
	bad->spoil(&desc, &ops);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_function_init(&liar->function, NULL, &desc));
}

static void takes_the_longest_name(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_device_desc desc = good_desc(liar);

	desc.name = "1234567890123456789012345678901";
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_function_init(&liar->function, NULL, &desc));
}

static void expect_protection(struct kunit *test, enum flexmem_caching caching,
			      pgprot_t want)
{
	struct liar *liar = test->priv;
	struct flexmem_device_desc desc = good_desc(liar);
	pgprot_t is;

	desc.caching = caching;
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_init(&liar->function, NULL, &desc));
	is = flexmem_function_protection(&liar->function, __pgprot(0));
	KUNIT_EXPECT_EQ(test, pgprot_val(is), pgprot_val(want));
}

static void maps_are_cached_as_the_driver_says(struct kunit *test)
{
	const pgprot_t plain = __pgprot(0);

	expect_protection(test, FLEXMEM_CACHED, plain);
	expect_protection(test, FLEXMEM_WRITE_COMBINED,
			  pgprot_decrypted(pgprot_writecombine(plain)));
	expect_protection(test, FLEXMEM_UNCACHED,
			  pgprot_decrypted(pgprot_noncached(plain)));
}

static struct kunit_case function_desc_test_cases[] = {
	KUNIT_CASE(pf_needs_no_slots),
	KUNIT_CASE_PARAM(refuses_a_bad_description, bad_desc_gen_params),
	KUNIT_CASE(takes_the_longest_name),
	KUNIT_CASE(maps_are_cached_as_the_driver_says),
	{}
};

static struct kunit_suite function_desc_suite = {
	.name = "flexmem_function_desc",
	.init = function_test_init,
	.test_cases = function_desc_test_cases,
};

kunit_test_suite(function_desc_suite);
