// SPDX-License-Identifier: GPL-2.0
/* Device drivers that break the contract in their answers. */

#include <linux/limits.h>

#include "liar.h"

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
		return flexmem_function_rw(function, &mem, 0, 128, &buffer,
					   false);
	case OPERATION_WRITE:
		return flexmem_function_rw(function, &mem, 0, 128, &buffer,
					   true);
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
		/*
		 * In place of a reset, which would free the buffer: the buffer
		 * belongs to call().
		 */
		function->late_buffer = NULL;
		KUNIT_EXPECT_EQ(test, 0,
				flexmem_function_recover(function,
							 function->failures));
	}
	KUNIT_EXPECT_FALSE(test, is_distrusted(test));
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
 * Wrong frames are refused, because through them a task would see memory of
 * another allocation.
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
	KUNIT_EXPECT_EQ(test, atomic64_read(&function->all_timeouts),
			2 * NR_THAT_FILL_UP);
}

/*
 * Neither a timeout nor an answer changes the state of a PF or VF that is not
 * in use, such as a suspended one.
 */
static void only_a_function_in_use_is_unresponsive(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;

	flexmem_function_enter(function, FLEXMEM_STATE_WEDGED);
	liar->rc = -ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, flexmem_function_reset(function));
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, flexmem_function_reset(function));
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	liar->rc = 0;
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_reset(function));
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	/* A resume restores the state from before the suspend. */
	flexmem_function_enter(function, FLEXMEM_STATE_UNRESPONSIVE);
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
	flexmem_function_enter(function, FLEXMEM_STATE_WEDGED);
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_fatal(function));
	flexmem_function_enter(function, FLEXMEM_STATE_UP);
	flexmem_function_suspend(function);
	KUNIT_EXPECT_EQ(test, -EAGAIN, flexmem_function_error(function));
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_fatal(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
	flexmem_function_enter(function, FLEXMEM_STATE_GONE);
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
	flexmem_function_enter(function, FLEXMEM_STATE_WEDGED);
	KUNIT_EXPECT_EQ(test, -EAGAIN, flexmem_function_error(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_function_error(function));
	flexmem_function_suspend(function);
	flexmem_function_enter(function, FLEXMEM_STATE_UP);
	KUNIT_EXPECT_EQ(test, -EAGAIN, flexmem_function_error(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_error(function));
}

static void removed_function_stays_gone(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;

	flexmem_function_suspend(function);
	flexmem_function_enter(function, FLEXMEM_STATE_GONE);
	flexmem_function_enter(function, FLEXMEM_STATE_UP);
	flexmem_function_suspend(function);
	KUNIT_EXPECT_EQ(test, -ENODEV, flexmem_function_error(function));
	flexmem_function_resume(function);
	KUNIT_EXPECT_EQ(test, -ENODEV, flexmem_function_error(function));
}

static struct kunit_case function_test_cases[] = {
	KUNIT_CASE(correct_grants_are_accepted),
	KUNIT_CASE(refuses_another_size),
	KUNIT_CASE(refuses_another_id),
	KUNIT_CASE(refuses_a_base_that_is_not_aligned),
	KUNIT_CASE(refuses_memory_that_wraps),
	KUNIT_CASE(grant_of_held_memory_is_eio),
	KUNIT_CASE(released_memory_may_be_granted_again),
	KUNIT_CASE(holds_nothing_after_a_reset),
	KUNIT_CASE(passes_documented_errors_on),
	KUNIT_CASE(undocumented_errors_become_eio),
	KUNIT_CASE(late_bytes_need_a_reset),
	KUNIT_CASE(wrong_frames_are_eio),
	KUNIT_CASE(each_command_notices_a_dead_firmware),
	KUNIT_CASE(firmware_without_room_is_not_dead),
	KUNIT_CASE(only_a_function_in_use_is_unresponsive),
	KUNIT_CASE(each_state_has_its_error),
	KUNIT_CASE(reset_does_not_end_a_suspend),
	KUNIT_CASE(removed_function_stays_gone),
	{}
};

static struct kunit_suite function_suite = {
	.name = "flexmem_function",
	.init = function_test_init,
	.test_cases = function_test_cases,
};

kunit_test_suite(function_suite);
