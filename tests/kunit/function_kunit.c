// SPDX-License-Identifier: GPL-2.0
/* Device drivers that break the contract, or describe their device wrongly. */

#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "fake_device.h"
#include "function.h"

/* A device whose answers a test chooses, right or wrong. */
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

static int liar_acquire(void *priv, u64 size, struct flexmem_memory *mem)
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
static int inherit(struct liar *liar, const struct flexmem_memory *mem)
{
	struct flexmem_memory unused;

	liar->mem = *mem;
	return flexmem_function_acquire(&liar->function, 0, mem->size,
					&unused);
}

/* If there is an heir, the device gives it the memory before this returns. */
static int liar_release(void *priv, const struct flexmem_memory *mem)
{
	struct liar *liar = priv;

	liar->released++;
	if (liar->heir)
		liar->heir->rc = inherit(liar->heir, mem);
	return liar->rc;
}

static int liar_slot_set(void *priv, unsigned int slot,
			 const struct flexmem_memory *mem)
{
	return ((struct liar *)priv)->rc;
}

static int liar_slot_clear(void *priv, unsigned int slot)
{
	return ((struct liar *)priv)->rc;
}

static int liar_quiesce(void *priv)
{
	return ((struct liar *)priv)->rc;
}

static int liar_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	struct liar *liar = priv;

	*bytes = liar->capacity;
	return liar->rc;
}

static int liar_scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		      u64 size)
{
	return ((struct liar *)priv)->rc;
}

static int liar_read(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size, void *to)
{
	return ((struct liar *)priv)->rc;
}

static int liar_write(void *priv, const struct flexmem_memory *mem, u64 offset,
		      u64 size, const void *from)
{
	return ((struct liar *)priv)->rc;
}

static int liar_copy(void *priv, const struct flexmem_memory *to, u64 to_offset,
		     const struct flexmem_memory *from, u64 from_offset,
		     u64 size)
{
	return ((struct liar *)priv)->rc;
}

static int liar_vm_map(void *priv, const struct flexmem_vm_range *range,
		       const struct flexmem_memory *mem, u64 offset,
		       unsigned int access)
{
	struct liar *liar = priv;

	liar->mapped++;
	return liar->rc;
}

static int liar_vm_unmap(void *priv, const struct flexmem_vm_range *range)
{
	struct liar *liar = priv;

	liar->mapped++;
	liar->unmapped = range->address;
	return liar->rc;
}

static int liar_fault(void *priv, const struct flexmem_memory *mem, u64 offset,
		      struct flexmem_frames *frames)
{
	struct liar *liar = priv;

	if (liar->frames)
		*frames = *liar->frames;
	else
		frames->pfn = 42;
	return liar->rc;
}

static int liar_reset(void *priv)
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

static struct flexmem_device_desc good_desc(void *priv)
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

static int function_test_init(struct kunit *test)
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
static int acquire(struct kunit *test, u64 size, u64 base, u64 given)
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

static bool is_distrusted(struct kunit *test)
{
	struct liar *liar = test->priv;

	return atomic_read(&liar->function.distrusted);
}

static int release(struct kunit *test, u64 base, u64 size)
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

static void correct_grants_are_accepted(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), 0);
	KUNIT_EXPECT_EQ(test, acquire(test, SZ_2M, 4 * GIB, SZ_2M), 0);
	KUNIT_EXPECT_EQ(test, acquire(test, SZ_4M, 4 * GIB + SZ_2M, SZ_4M), 0);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, U64_MAX - 2 * GIB + 1, GIB),
			0);
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
}

static void refuses_another_size(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB - SZ_2M), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB + SZ_2M), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 0), -EIO);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
}

static void refuses_another_id(struct kunit *test)
{
	struct liar *liar = test->priv;

	liar->wrong_id = 1;
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), -EIO);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
}

static void refuses_a_base_that_is_not_aligned(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, SZ_2M, GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, GIB + 128, GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, SZ_2M, SZ_1M, SZ_2M), -EIO);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
}

static void refuses_memory_that_wraps(struct kunit *test)
{
	const u64 top = U64_MAX - GIB + 1;

	KUNIT_EXPECT_EQ(test, acquire(test, 2 * GIB, top, 2 * GIB), -EIO);
	/* The end of this memory would overflow to 0. */
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, top, GIB), -EIO);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
}

static void grant_of_held_memory_is_eio(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, acquire(test, 4 * GIB, 8 * GIB, 4 * GIB), 0);
	KUNIT_ASSERT_EQ(test, acquire(test, 4 * GIB, 16 * GIB, 4 * GIB), 0);
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));

	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 8 * GIB, 4 * GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 5 * GIB, 4 * GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 19 * GIB, 4 * GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, 9 * GIB, GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, 32 * GIB, 0, 32 * GIB), -EIO);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
	/*
	 * The range between the two pieces is free, so the device may grant it.
	 */
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 12 * GIB, 4 * GIB), 0);
}

static void released_memory_may_be_granted_again(struct kunit *test)
{
	struct liar *liar = test->priv;

	KUNIT_ASSERT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), 0);
	KUNIT_ASSERT_EQ(test, acquire(test, 4 * GIB, 4 * GIB, 4 * GIB), 0);
	KUNIT_ASSERT_EQ(test, acquire(test, 4 * GIB, 8 * GIB, 4 * GIB), 0);
	liar->rc = -EIO;
	KUNIT_EXPECT_EQ(test, release(test, 0, 4 * GIB), -EIO);
	liar->rc = 0;
	/*
	 * The release failed, so the device must not grant this memory again
	 * yet.
	 */
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), -EIO);
	KUNIT_EXPECT_EQ(test, release(test, 0, 4 * GIB), 0);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 8 * GIB, 4 * GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), 0);
}

static void leave_peers(void *function)
{
	flexmem_function_leave(function);
}

/* Returns another function of the same device. */
static struct liar *add_peer(struct kunit *test)
{
	struct liar *liar = test->priv, *peer;
	struct flexmem_device_desc desc;

	peer = kunit_kzalloc(test, sizeof(*peer), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, peer);
	desc = good_desc(peer);
	desc.device = test;
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_init(&peer->function, NULL, &desc));
	flexmem_function_join(&peer->function);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, leave_peers,
						  &peer->function));
	liar->function.device = test;
	return peer;
}

static void grant_of_a_peers_memory_is_eio(struct kunit *test)
{
	struct liar *liar = test->priv, *peer = add_peer(test);
	struct flexmem_memory mem = { .base = 4 * GIB, .size = 4 * GIB };

	KUNIT_EXPECT_EQ(test, inherit(peer, &mem), 0);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), 0);
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 8 * GIB, 4 * GIB), 0);
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 4 * GIB, 4 * GIB), -EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, 7 * GIB, GIB), -EIO);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
	KUNIT_EXPECT_EQ(test, liar->function.nr_pieces, 2);

	/* The device does not take the memory back from the peer. */
	mem = peer->function.piece[0].mem;
	peer->rc = -EIO;
	KUNIT_EXPECT_EQ(test, flexmem_function_release(&peer->function, &mem),
			-EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, 7 * GIB, GIB), -EIO);
	/* Now it may have taken the memory back. */
	peer->rc = -ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, flexmem_function_retry(&peer->function, true),
			-ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, 7 * GIB, GIB), 0);
}

/*
 * A reset from outside takes the memory of all functions back. The device may
 * give it to one function before flexmem hears that its peer was reset.
 */
static void memory_of_a_failed_peer_may_be_granted(struct kunit *test)
{
	struct flexmem_memory mem = { .base = 4 * GIB, .size = 4 * GIB };
	struct liar *peer = add_peer(test);

	KUNIT_ASSERT_EQ(test, inherit(peer, &mem), 0);
	flexmem_function_suspend(&peer->function);
	flexmem_function_fail(&peer->function);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, 4 * GIB, GIB), 0);
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
	/* The next memory of the peer is compared again. */
	KUNIT_ASSERT_EQ(test, flexmem_function_reset(&peer->function), 0);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_recover(&peer->function,
						 peer->function.failures));
	mem.base = 8 * GIB;
	KUNIT_ASSERT_EQ(test, inherit(peer, &mem), 0);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, 8 * GIB, GIB), -EIO);
}

/* A wrong answer does not show that the device has carried out a release. */
static void wrong_grant_ends_no_release(struct kunit *test)
{
	struct liar *liar = test->priv, *peer = add_peer(test);
	struct flexmem_memory mem = { .size = 4 * GIB };

	KUNIT_ASSERT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), 0);
	liar->rc = -ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, release(test, 0, 4 * GIB), -ETIMEDOUT);
	KUNIT_ASSERT_EQ(test, inherit(peer, &mem), 0);
	liar->rc = 0;
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), -EIO);
	KUNIT_EXPECT_EQ(test, liar->function.nr_pieces, 1);
	KUNIT_EXPECT_FALSE(test, flexmem_function_is_settled(&liar->function));
}

/* A function may get memory before its peer has the answer to a release. */
static void memory_passes_from_peer_to_peer(struct kunit *test)
{
	struct liar *liar = test->priv, *peer = add_peer(test);
	struct flexmem_memory mem = { .base = 4 * GIB, .size = 4 * GIB };

	KUNIT_ASSERT_EQ(test, inherit(peer, &mem), 0);
	mem = peer->function.piece[0].mem;
	peer->heir = liar;
	liar->rc = 0;
	KUNIT_EXPECT_EQ(test, flexmem_function_release(&peer->function, &mem),
			0);
	KUNIT_EXPECT_EQ(test, liar->rc, 0);
	KUNIT_EXPECT_EQ(test, liar->function.nr_pieces, 1);
	KUNIT_EXPECT_EQ(test, peer->function.nr_pieces, 0);

	mem.base = 8 * GIB;
	KUNIT_ASSERT_EQ(test, inherit(peer, &mem), 0);
	KUNIT_EXPECT_EQ(test, flexmem_function_reset(&peer->function), 0);
	KUNIT_EXPECT_EQ(test, liar->rc, 0);
	KUNIT_EXPECT_EQ(test, liar->function.nr_pieces, 2);
}

/* Functions of other devices, or of unknown ones, are no peers. */
static void other_devices_have_the_same_addresses(struct kunit *test)
{
	struct liar *liar = test->priv, *peer = add_peer(test);
	struct flexmem_memory mem = { .base = 4 * GIB, .size = 4 * GIB };

	KUNIT_ASSERT_EQ(test, inherit(peer, &mem), 0);
	liar->function.device = liar;
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 4 * GIB, 4 * GIB), 0);
	liar->function.nr_pieces = 0;
	liar->function.device = NULL;
	peer->function.device = NULL;
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 4 * GIB, 4 * GIB), 0);
}

static void holds_nothing_after_a_reset(struct kunit *test)
{
	struct liar *liar = test->priv;

	KUNIT_ASSERT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), 0);
	liar->rc = -ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, flexmem_function_reset(&liar->function),
			-ETIMEDOUT);
	liar->rc = 0;
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), -EIO);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
	KUNIT_EXPECT_EQ(test, flexmem_function_reset(&liar->function), 0);
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
	KUNIT_EXPECT_EQ(test, acquire(test, 4 * GIB, 0, 4 * GIB), 0);
}

/* call() numbers the operations. Only the first three may return -ENOSPC. */
#define NR_OPERATIONS 14
#define NR_THAT_FILL_UP 3
#define OPERATION_READ 6
#define OPERATION_WRITE 7
#define OPERATION_FAULT 9

static const struct flexmem_vm_range some_range = {
	.space = 1,
	.address = SZ_1M,
	.size = SZ_64K,
};

static int call(struct liar *liar, unsigned int nth)
{
	struct flexmem_function *function = &liar->function;
	struct flexmem_memory mem = { .id = 1, .size = SZ_2M };
	struct flexmem_frames frames = { .size = SZ_2M };
	u64 bytes = 77;
	void *buffer = &bytes;
	int rc;

	/*
	 * Gives the function a piece that it holds. Lost replies are tested in
	 * lost_kunit.c.
	 */
	function->piece[0] = (struct flexmem_piece) {
		.mem = mem,
		.slot = FLEXMEM_NO_SLOT,
	};
	function->nr_pieces = 1;
	switch (nth) {
	case 0:
		function->nr_pieces = 0;
		liar->mem = mem;
		return flexmem_function_acquire(function, 0, SZ_2M, &mem);
	case 1:
		return flexmem_function_slot_set(function, 0, &mem);
	case 2:
		return flexmem_function_vm_map(function, &some_range, &mem, 0,
					       FLEXMEM_VM_READ);
	case 3:
		return flexmem_function_release(function, &mem);
	case 4:
		liar->capacity = GIB;
		rc = flexmem_function_capacity(function, 0, &bytes);
		return bytes == (rc ? 77 : GIB) ? rc : -E2BIG;
	case 5:
		mutex_lock(&function->data_lock);
		rc = flexmem_function_scrub(function, &mem, 0, 128);
		mutex_unlock(&function->data_lock);
		return rc;
	case OPERATION_READ:
		return flexmem_function_read(function, &mem, 0, 128, &buffer);
	case OPERATION_WRITE:
		return flexmem_function_write(function, &mem, 0, 128, &buffer);
	case 8:
		return flexmem_function_quiesce(function);
	case OPERATION_FAULT:
		rc = flexmem_function_fault(function, &mem, 0, &frames);
		return rc || frames.pfn == 42 ? rc : -E2BIG;
	case 10:
		return flexmem_function_copy(function, &mem, 0, &mem, 128, 128);
	case 11:
		return flexmem_function_vm_unmap(function, &some_range);
	case 12:
		return flexmem_function_slot_clear(function, 0);
	default:
		return flexmem_function_reset(function);
	}
}

static void passes_documented_errors_on(struct kunit *test)
{
	static const int errors[] = { 0, -ETIMEDOUT, -EIO, -EINTR, -ENODEV,
				      -ENOMEM };
	struct liar *liar = test->priv;
	unsigned int nth, i;

	for (nth = 0; nth < NR_OPERATIONS; nth++) {
		for (i = 0; i < ARRAY_SIZE(errors); i++) {
			liar->rc = errors[i];
			KUNIT_EXPECT_EQ_MSG(test, call(liar, nth), errors[i],
					    "operation %u", nth);
		}
		liar->rc = -ENOSPC;
		if (nth < NR_THAT_FILL_UP)
			KUNIT_EXPECT_EQ(test, call(liar, nth), -ENOSPC);
	}
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
}

static void undocumented_errors_become_eio(struct kunit *test)
{
	static const int errors[] = { -EAGAIN, -EFAULT, -ERESTARTSYS, 1,
				      -EBUSY, INT_MIN, -ENOSPC };
	struct liar *liar = test->priv;
	unsigned int nth, i;

	for (nth = 0; nth < NR_OPERATIONS; nth++) {
		for (i = 0; i < ARRAY_SIZE(errors); i++) {
			if (errors[i] == -ENOSPC && nth < NR_THAT_FILL_UP)
				continue;
			atomic_set(&liar->function.distrusted, 0);
			liar->rc = errors[i];
			KUNIT_EXPECT_EQ_MSG(test, call(liar, nth), -EIO,
					    "operation %u", nth);
			KUNIT_EXPECT_TRUE(test, is_distrusted(test));
		}
	}
}

/*
 * An operation after which bytes may still move makes the function fail. The
 * function keeps the buffer that the device may still use.
 */
static void late_bytes_need_a_reset(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	unsigned int nth;

	liar->rc = -ENOTRECOVERABLE;
	for (nth = 0; nth < NR_OPERATIONS; nth++) {
		KUNIT_EXPECT_EQ_MSG(test, -EIO, call(liar, nth),
				    "operation %u", nth);
		KUNIT_EXPECT_EQ_MSG(test, -EIO, flexmem_function_error(function),
				    "operation %u", nth);
		KUNIT_EXPECT_EQ_MSG(test, !!function->late_buffer,
				    nth == OPERATION_READ ||
				    nth == OPERATION_WRITE, "operation %u",
				    nth);
		/* A reset would free this buffer, which call() had. */
		function->late_buffer = NULL;
		KUNIT_EXPECT_EQ(test, 0,
				flexmem_function_recover(function,
							 function->failures));
	}
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
}

static void refuses_wrong_addresses(struct kunit *test)
{
	static const struct {
		u64 space, address, size, offset;
		unsigned int access;
	} bad[] = {
		{ 0, SZ_1M, SZ_64K, 0, 1 }, { 1, SZ_1M, 0, 0, 1 },
		{ 1, SZ_1M + SZ_4K, SZ_64K, 0, 1 }, { 1, SZ_1M, SZ_4K, 0, 1 },
		{ 1, SZ_1M, SZ_64K, SZ_4K, 1 }, { 1, SZ_1M, SZ_64K, SZ_2M, 1 },
		{ 1, SZ_1M, SZ_2M, SZ_64K, 1 }, { 1, SZ_1M, SZ_4M, 0, 1 },
		{ 1, SZ_1M, SZ_64K, 0, 0 }, { 1, SZ_1M, SZ_64K, 0, 8 },
		{ 1, SZ_1M - SZ_64K, SZ_64K, 0, 1 }, { 1, 0, SZ_64K, 0, 1 },
		{ 1, SZ_4M + SZ_1M, SZ_64K, 0, 1 },
		{ 1, SZ_4M + SZ_1M - SZ_64K, SZ_128K, 0, 1 },
		{ 1, -(u64)SZ_64K, SZ_64K, 0, 1 },
		{ 1, SZ_1M, -(u64)SZ_64K, 0, 1 },
	};
	static const struct flexmem_vm_range last = {
		.space = 1,
		.address = SZ_4M + SZ_1M - SZ_64K,
		.size = SZ_64K,
	};
	struct flexmem_memory mem = { .size = SZ_2M };
	struct liar *liar = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct flexmem_vm_range range = {
			.space = bad[i].space,
			.address = bad[i].address,
			.size = bad[i].size,
		};

		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    flexmem_function_vm_map(&liar->function,
							    &range, &mem,
							    bad[i].offset,
							    bad[i].access),
				    "%u", i);
		/*
		 * These checks are only about the addresses, so they hold for
		 * vm_unmap too.
		 */
		if ((bad[i].size <= mem.size || bad[i].size > U64_MAX / 2) &&
		    !bad[i].offset && bad[i].access == 1)
			KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
					    flexmem_function_vm_unmap(&liar->function,
								      &range),
					    "%u", i);
	}
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_function_vm_map(&liar->function, &last, &mem, 0,
						7));
	KUNIT_EXPECT_EQ(test, liar->mapped, 0);
	KUNIT_ASSERT_EQ(test, acquire(test, SZ_2M, 0, SZ_2M), 0);
	mem = liar->function.piece[0].mem;
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_function_vm_map(&liar->function, &last, &mem,
						SZ_2M - SZ_64K, 7));
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_function_vm_unmap(&liar->function, &last));
}

static void has_no_page_tables_without_operations(struct kunit *test)
{
	const struct flexmem_memory mem = { .size = SZ_2M };
	struct liar *liar = test->priv;

	liar->function.ops.vm_map = NULL;
	liar->function.ops.vm_unmap = NULL;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			flexmem_function_vm_map(&liar->function, &some_range,
						&mem, 0, FLEXMEM_VM_READ));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			flexmem_function_vm_unmap(&liar->function,
						  &some_range));
}

/*
 * A vm_map that failed may have mapped the range, so flexmem unmaps the range
 * before it releases the memory.
 */
static void failed_map_is_unmapped(struct kunit *test)
{
	static const int errors[] = { -ETIMEDOUT, -EINTR, -EIO, -ENODEV,
				      -ENOMEM, -EBUSY };
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	struct flexmem_memory mem;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, acquire(test, SZ_2M, 0, SZ_2M), 0);
	mem = function->piece[0].mem;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		liar->unmapped = 0;
		liar->rc = errors[i];
		KUNIT_EXPECT_GT(test, 0,
				flexmem_function_vm_map(function, &some_range,
							&mem, 0,
							FLEXMEM_VM_WRITE));
		liar->rc = -EIO;
		KUNIT_EXPECT_EQ(test, -EIO,
				flexmem_function_retry(function, false));
		KUNIT_EXPECT_EQ(test, liar->unmapped, some_range.address);
		KUNIT_EXPECT_FALSE(test, flexmem_function_is_settled(function));
		/*
		 * flexmem maps nothing else until the range is known to be
		 * unmapped.
		 */
		KUNIT_EXPECT_EQ(test, -EIO,
				flexmem_function_vm_map(function, &some_range,
							&mem, 0,
							FLEXMEM_VM_WRITE));
		liar->rc = 0;
		KUNIT_EXPECT_EQ(test, 0,
				flexmem_function_retry(function, false));
		KUNIT_EXPECT_TRUE(test, flexmem_function_is_settled(function));
	}
	/*
	 * After -ENOSPC flexmem unmaps nothing, because the device has mapped
	 * nothing.
	 */
	liar->rc = -ENOSPC;
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			flexmem_function_vm_map(function, &some_range, &mem, 0,
						FLEXMEM_VM_WRITE));
	KUNIT_EXPECT_TRUE(test, flexmem_function_is_settled(function));
	/*
	 * flexmem does not remember a range whose unmap has failed: the caller
	 * must unmap it again.
	 */
	liar->rc = -EINTR;
	KUNIT_EXPECT_EQ(test, -EINTR,
			flexmem_function_vm_unmap(function, &some_range));
	KUNIT_EXPECT_TRUE(test, flexmem_function_is_settled(function));
	/* flexmem does not release memory that may be mapped. */
	KUNIT_EXPECT_EQ(test, -EINTR,
			flexmem_function_vm_map(function, &some_range, &mem, 0,
						FLEXMEM_VM_WRITE));
	liar->rc = -EIO;
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_release(function, &mem));
	KUNIT_EXPECT_EQ(test, liar->released, 0);
	/* flexmem does not map memory that it is releasing. */
	KUNIT_EXPECT_EQ(test, -EINVAL,
			flexmem_function_vm_map(function, &some_range, &mem, 0,
						FLEXMEM_VM_WRITE));
	liar->rc = 0;
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_retry(function, false));
	KUNIT_EXPECT_EQ(test, liar->released, 1);
	KUNIT_EXPECT_EQ(test, function->nr_pieces, 0);
}

/*
 * Makes a page fault at 32 KiB. The driver may answer with the frames of [16
 * KiB, 80 KiB).
 */
static int fault_with(struct kunit *test, const struct flexmem_frames *answer)
{
	struct flexmem_frames frames = { .offset = SZ_16K, .size = SZ_64K };
	const struct flexmem_memory mem = { .size = SZ_2M };
	struct liar *liar = test->priv;

	liar->frames = answer;
	return flexmem_function_fault(&liar->function, &mem, SZ_32K, &frames);
}

/*
 * Wrong frames are refused, because a task would see memory of another
 * allocation.
 */
static void wrong_frames_are_eio(struct kunit *test)
{
	static const struct flexmem_frames right[] = {
		{ SZ_16K, SZ_64K, 42 }, { SZ_32K, SZ_4K, 42 },
		{ SZ_16K, SZ_16K + SZ_4K, 42 }, { SZ_32K, SZ_32K + SZ_16K, 42 },
	}, wrong[] = {
		{ SZ_16K, SZ_64K, ULONG_MAX }, { SZ_16K - SZ_4K, SZ_64K, 42 },
		{ SZ_32K + SZ_4K, SZ_4K, 42 }, { SZ_16K, SZ_16K, 42 },
		{ SZ_16K, SZ_64K + SZ_4K, 42 }, { SZ_32K, SZ_64K, 42 },
		{ SZ_32K, 0, 42 }, { SZ_32K, SZ_4K + 128, 42 },
		{ SZ_32K - 128, SZ_4K, 42 }, { SZ_32K, -(u64)SZ_4K, 42 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(right); i++)
		KUNIT_EXPECT_EQ_MSG(test, 0, fault_with(test, &right[i]),
				    "answer %u", i);
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ_MSG(test, -EIO, fault_with(test, &wrong[i]),
				    "wrong answer %u", i);
	KUNIT_EXPECT_TRUE(test, is_distrusted(test));
}

/*
 * Every operation shows whether the firmware is dead, even one that moves data.
 * The only exception is the operation for page faults.
 */
static void each_command_notices_a_dead_firmware(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	unsigned int nth;

	for (nth = 0; nth < NR_OPERATIONS; nth++) {
		/*
		 * The operation for page faults sends no command, so it shows
		 * nothing.
		 */
		if (nth == OPERATION_FAULT)
			continue;
		liar->rc = -ETIMEDOUT;
		call(liar, nth);
		KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
		/*
		 * An operation that failed with -EIO does not show that the
		 * firmware lives.
		 */
		liar->rc = -EIO;
		call(liar, nth);
		liar->rc = -ETIMEDOUT;
		call(liar, nth);
		KUNIT_EXPECT_EQ_MSG(test, -EAGAIN,
				    flexmem_function_error(function),
				    "operation %u", nth);
		liar->rc = -EIO;
		call(liar, nth);
		KUNIT_EXPECT_EQ(test, -EAGAIN, flexmem_function_error(function));
		liar->rc = 0;
		call(liar, nth);
		KUNIT_EXPECT_EQ_MSG(test, 0, flexmem_function_error(function),
				    "operation %u", nth);
	}
}

/*
 * A device that reports -ENOSPC has answered, so callers need not wait for a
 * probe.
 */
static void firmware_without_room_is_not_dead(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	unsigned int nth;

	for (nth = 0; nth < NR_THAT_FILL_UP; nth++) {
		liar->rc = -ETIMEDOUT;
		call(liar, nth);
		call(liar, nth);
		KUNIT_EXPECT_TRUE(test,
				  flexmem_function_is_unresponsive(function));
		liar->rc = -ENOSPC;
		call(liar, nth);
		KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
	}
}

/*
 * Neither a timeout nor an answer changes the state of a PF or VF that is not
 * in use, such as a suspended one.
 */
static void only_a_function_in_use_is_unresponsive(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;

	flexmem_function_enter(function, FLEXMEM_WEDGED);
	liar->rc = -ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, flexmem_function_reset(function));
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, flexmem_function_reset(function));
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	liar->rc = 0;
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_reset(function));
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	/* A resume restores the state from before the suspend. */
	flexmem_function_enter(function, FLEXMEM_UNRESPONSIVE);
	flexmem_function_suspend(function);
	flexmem_function_resume(function);
	KUNIT_EXPECT_TRUE(test, flexmem_function_is_unresponsive(function));
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_fatal(function));
}

static void each_state_has_its_error(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;

	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
	flexmem_function_enter(function, FLEXMEM_WEDGED);
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_fatal(function));
	flexmem_function_enter(function, FLEXMEM_UP);
	flexmem_function_suspend(function);
	KUNIT_EXPECT_EQ(test, -EAGAIN, flexmem_function_error(function));
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_fatal(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
	flexmem_function_enter(function, FLEXMEM_GONE);
	KUNIT_EXPECT_EQ(test, -ENODEV, flexmem_function_error(function));
	KUNIT_EXPECT_EQ(test, -ENODEV, flexmem_function_fatal(function));
}

/* A driver may reset its device before it calls flexmem_device_resume(). */
static void reset_does_not_end_a_suspend(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;

	flexmem_function_suspend(function);
	flexmem_function_suspend(function);
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
	flexmem_function_suspend(function);
	flexmem_function_enter(function, FLEXMEM_WEDGED);
	KUNIT_EXPECT_EQ(test, -EAGAIN, flexmem_function_error(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	flexmem_function_suspend(function);
	flexmem_function_enter(function, FLEXMEM_UP);
	KUNIT_EXPECT_EQ(test, -EAGAIN, flexmem_function_error(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
}

static void removed_function_stays_gone(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;

	flexmem_function_suspend(function);
	flexmem_function_enter(function, FLEXMEM_GONE);
	flexmem_function_enter(function, FLEXMEM_UP);
	flexmem_function_suspend(function);
	KUNIT_EXPECT_EQ(test, -ENODEV, flexmem_function_error(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, -ENODEV, flexmem_function_error(function));
}

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

static struct kunit_case function_test_cases[] = {
	KUNIT_CASE(correct_grants_are_accepted),
	KUNIT_CASE(refuses_another_size),
	KUNIT_CASE(refuses_another_id),
	KUNIT_CASE(refuses_a_base_that_is_not_aligned),
	KUNIT_CASE(refuses_memory_that_wraps),
	KUNIT_CASE(grant_of_held_memory_is_eio),
	KUNIT_CASE(released_memory_may_be_granted_again),
	KUNIT_CASE(grant_of_a_peers_memory_is_eio),
	KUNIT_CASE(memory_of_a_failed_peer_may_be_granted),
	KUNIT_CASE(wrong_grant_ends_no_release),
	KUNIT_CASE(memory_passes_from_peer_to_peer),
	KUNIT_CASE(other_devices_have_the_same_addresses),
	KUNIT_CASE(holds_nothing_after_a_reset),
	KUNIT_CASE(passes_documented_errors_on),
	KUNIT_CASE(undocumented_errors_become_eio),
	KUNIT_CASE(late_bytes_need_a_reset),
	KUNIT_CASE(refuses_wrong_addresses),
	KUNIT_CASE(has_no_page_tables_without_operations),
	KUNIT_CASE(failed_map_is_unmapped),
	KUNIT_CASE(wrong_frames_are_eio),
	KUNIT_CASE(each_command_notices_a_dead_firmware),
	KUNIT_CASE(firmware_without_room_is_not_dead),
	KUNIT_CASE(only_a_function_in_use_is_unresponsive),
	KUNIT_CASE(each_state_has_its_error),
	KUNIT_CASE(reset_does_not_end_a_suspend),
	KUNIT_CASE(removed_function_stays_gone),
	KUNIT_CASE(pf_needs_no_slots),
	KUNIT_CASE_PARAM(refuses_a_bad_description, bad_desc_gen_params),
	KUNIT_CASE(takes_the_longest_name),
	KUNIT_CASE(maps_are_cached_as_the_driver_says),
	{}
};

static struct kunit_suite function_suite = {
	.name = "flexmem_function",
	.init = function_test_init,
	.test_cases = function_test_cases,
};

kunit_test_suite(function_suite);
