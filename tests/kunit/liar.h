/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A function of a device that answers as a test says, right or wrong, for the
 * tests of the calls to a driver.
 */
#ifndef _FLEXMEM_TEST_LIAR_H
#define _FLEXMEM_TEST_LIAR_H

#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "fake_device.h"
#include "gate/function.h"

/* A test chooses the answers of this device, right or wrong. */
struct liar {
	struct flexmem_function function;
	struct flexmem_memory mem;
	u64 capacity;
	u64 wrong_id;
	const struct flexmem_frames *frames;
	unsigned int mapped;
	unsigned int released;
	u64 unmapped;
	struct liar *heir;
	int rc;
};

static inline int liar_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	struct liar *liar = priv;

	/*
	 * Fills in @mem after a failure, too: the caller must not read @mem
	 * then.
	 */
	liar->mem.id = mem->id + liar->wrong_id;
	*mem = liar->mem;
	return liar->rc;
}

/* Lets the device give the memory to @liar. */
static inline int inherit(struct liar *liar, const struct flexmem_memory *mem)
{
	struct flexmem_memory unused;

	liar->mem = *mem;
	return flexmem_function_acquire(&liar->function, 0, mem->size,
					&unused);
}

/*
 * If @liar has an heir, the device gives the memory to the heir before it
 * answers the release.
 */
static inline int liar_release(void *priv, const struct flexmem_memory *mem)
{
	struct liar *liar = priv;

	liar->released++;
	if (liar->heir)
		liar->heir->rc = inherit(liar->heir, mem);
	return liar->rc;
}

static inline int liar_slot_set(void *priv, unsigned int slot,
				const struct flexmem_memory *mem)
{
	return ((struct liar *)priv)->rc;
}

static inline int liar_slot_clear(void *priv, unsigned int slot)
{
	return ((struct liar *)priv)->rc;
}

static inline int liar_quiesce(void *priv)
{
	return ((struct liar *)priv)->rc;
}

static inline int liar_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	struct liar *liar = priv;

	*bytes = liar->capacity;
	return liar->rc;
}

static inline int liar_scrub(void *priv, const struct flexmem_memory *mem,
			     u64 offset, u64 size)
{
	return ((struct liar *)priv)->rc;
}

static inline int liar_read(void *priv, const struct flexmem_memory *mem,
			    u64 offset, u64 size, void *to)
{
	return ((struct liar *)priv)->rc;
}

static inline int liar_write(void *priv, const struct flexmem_memory *mem,
			     u64 offset, u64 size, const void *from)
{
	return ((struct liar *)priv)->rc;
}

static inline int liar_copy(void *priv, const struct flexmem_memory *to,
			    u64 to_offset, const struct flexmem_memory *from,
			    u64 from_offset, u64 size)
{
	return ((struct liar *)priv)->rc;
}

static inline int liar_vm_map(void *priv, const struct flexmem_vm_range *range,
			      const struct flexmem_memory *mem, u64 offset,
			      unsigned int access)
{
	struct liar *liar = priv;

	liar->mapped++;
	return liar->rc;
}

static inline int liar_vm_unmap(void *priv,
				const struct flexmem_vm_range *range)
{
	struct liar *liar = priv;

	liar->mapped++;
	liar->unmapped = range->address;
	return liar->rc;
}

static inline int liar_fault(void *priv, const struct flexmem_memory *mem,
			     u64 offset, struct flexmem_frames *frames)
{
	struct liar *liar = priv;

	if (liar->frames)
		*frames = *liar->frames;
	else
		frames->pfn = 42;
	return liar->rc;
}

static inline int liar_reset(void *priv)
{
	struct liar *liar = priv;

	if (liar->heir)
		liar->heir->rc = inherit(liar->heir,
					 &liar->function.piece[0].mem);
	return liar->rc;
}

static const struct flexmem_device_ops liar_ops = {
	.acquire = liar_acquire,
	.release = liar_release,
	.slot_set = liar_slot_set,
	.slot_clear = liar_slot_clear,
	.quiesce = liar_quiesce,
	.capacity = liar_capacity,
	.scrub = liar_scrub,
	.read = liar_read,
	.write = liar_write,
	.copy = liar_copy,
	.vm_map = liar_vm_map,
	.vm_unmap = liar_vm_unmap,
	.fault = liar_fault,
	.reset = liar_reset,
};

static inline struct flexmem_device_desc good_desc(void *priv)
{
	return (struct flexmem_device_desc) {
		.name = "liar",
		.mode = FLEXMEM_MODE_VF,
		.slots = 8,
		.granule = SZ_2M,
		.vm_page = SZ_64K,
		.vm_start = SZ_1M,
		.vm_end = SZ_1M + SZ_4M,
		.ops = &liar_ops,
		.priv = priv,
	};
}

static inline int function_test_init(struct kunit *test)
{
	struct flexmem_device_desc desc;
	struct liar *liar;

	liar = kunit_kzalloc(test, sizeof(*liar), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, liar);
	desc = good_desc(liar);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_init(&liar->function, NULL, &desc));
	test->priv = liar;
	return 0;
}

/* Asks for @size bytes. The device answers with @given bytes at @base. */
static inline int acquire(struct kunit *test, u64 size, u64 base, u64 given)
{
	struct liar *liar = test->priv;
	struct flexmem_memory mem = { .cookie = 1 };
	int rc;

	liar->mem = (struct flexmem_memory) { .base = base, .size = given };
	rc = flexmem_function_acquire(&liar->function, 0, size, &mem);
	/* The caller must not get any part of a wrong answer. */
	KUNIT_EXPECT_EQ(test, mem.cookie, rc ? 1 : 0);
	KUNIT_EXPECT_EQ(test, mem.base, rc ? 0 : base);
	KUNIT_EXPECT_EQ(test, mem.size, rc ? 0 : size);
	return rc;
}

static inline bool is_distrusted(struct kunit *test)
{
	struct liar *liar = test->priv;

	return atomic_read(&liar->function.distrusted);
}

static inline int release(struct kunit *test, u64 base, u64 size)
{
	struct liar *liar = test->priv;
	struct flexmem_memory mem = {};
	unsigned int i;

	for (i = 0; i < liar->function.nr_pieces; i++)
		if (liar->function.piece[i].mem.base == base)
			mem = liar->function.piece[i].mem;
	KUNIT_ASSERT_EQ(test, mem.size, size);
	return flexmem_function_release(&liar->function, &mem);
}

#endif /* _FLEXMEM_TEST_LIAR_H */
