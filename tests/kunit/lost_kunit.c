// SPDX-License-Identifier: GPL-2.0
/*
 * Commands without an answer. The device may or may not have carried them out.
 * If flexmem assumes the wrong case, the fake device reports a breach of the
 * contract.
 */

#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/string.h>

#include "fake_device.h"
#include "gate/function.h"

/*
 * How a reply is lost. @rc: the error for the caller; @done: whether the device
 * has carried the command out.
 */
struct loss {
	int rc;
	bool done;
};

static const struct loss losses[] = {
	{ -ETIMEDOUT, false },
	{ -ETIMEDOUT, true },
	{ -EINTR, false },
	{ -EINTR, true },
};

static void loss_name(const struct loss *loss, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "error %d, %s", loss->rc,
		 loss->done ? "done" : "not done");
}

KUNIT_ARRAY_PARAM(loss, losses, loss_name);

struct ctx {
	struct fake_device *fake;
	struct flexmem_function function;
	struct flexmem_memory mem;
};

/*
 * Lets the next @times calls of an operation get no reply, in the way that the
 * test's parameter says.
 */
static int lose(struct kunit *test, enum fake_op op, unsigned int times)
{
	const struct loss *loss = test->param_value;
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, op, 1, times, loss->rc);
	ctx->fake->replies_are_lost = loss->done;
	return loss->rc;
}

static int acquire(struct ctx *ctx)
{
	return flexmem_function_acquire(&ctx->function, 0, 4 * GIB, &ctx->mem);
}

static int set(struct ctx *ctx, unsigned int slot)
{
	return flexmem_function_slot_set(&ctx->function, slot, &ctx->mem);
}

static int clear(struct ctx *ctx, unsigned int slot)
{
	return flexmem_function_slot_clear(&ctx->function, slot);
}

static int release(struct ctx *ctx)
{
	return flexmem_function_release(&ctx->function, &ctx->mem);
}

static int lost_test_init(struct kunit *test)
{
	struct flexmem_device_desc desc;
	struct ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 8 * GIB);
	desc = fake_device_desc(ctx->fake);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_function_init(&ctx->function, NULL, &desc));
	test->priv = ctx;
	return 0;
}

/* Compares the calls since the last comparison, without the names of errors. */
static void expect_asked(struct kunit *test, const char *want)
{
	struct ctx *ctx = test->priv;
	const char *log = fake_device_log(ctx->fake), *name;
	char text[FAKE_LOG_SIZE] = "";

	while ((name = strstr(log, " E"))) {
		strncat(text, log, name - log);
		strcat(text, "?");
		log = name + 1 + strcspn(name + 1, ",");
	}
	strcat(text, log);
	KUNIT_EXPECT_STREQ(test, text, want);
	fake_device_forget(ctx->fake);
}

/*
 * Retries pending commands, as the worker does and as each caller does before
 * it acquires memory.
 */
static int retry(struct ctx *ctx)
{
	return flexmem_function_retry(&ctx->function, false);
}

static void lost_acquire_is_released(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, lose(test, FAKE_ACQUIRE, 1), acquire(ctx));
	KUNIT_EXPECT_EQ(test, ctx->mem.id, 0);
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->function), 0);
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	expect_asked(test, "acquire 4G?, release 4G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
	KUNIT_EXPECT_EQ(test, 0, acquire(ctx));
	expect_asked(test, "acquire 4G");
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
}

/*
 * If an acquisition is not answered, flexmem does not know the base of the
 * acquired memory. So it must not mistake other memory for that memory.
 */
static void lost_acquire_keeps_no_other(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_memory lost;

	KUNIT_EXPECT_EQ(test, lose(test, FAKE_ACQUIRE, 1), acquire(ctx));
	lost = ctx->function.piece[0].mem;
	KUNIT_EXPECT_EQ(test, 0, acquire(ctx));
	KUNIT_EXPECT_EQ(test, ctx->function.nr_pieces, 2);
	KUNIT_EXPECT_EQ(test, lost.base, 0);
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/*
 * Until the slot is cleared, its memory is not released, and the slot is not
 * used again.
 */
static void lost_set_is_cleared(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, acquire(ctx));
	KUNIT_EXPECT_EQ(test, lose(test, FAKE_SLOT_SET, 1), set(ctx, 3));
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
	KUNIT_EXPECT_FALSE(test,
			   flexmem_function_slot_is_known(&ctx->function, 3));
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, retry(ctx));
	KUNIT_EXPECT_FALSE(test,
			   flexmem_function_slot_is_known(&ctx->function, 3));
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	KUNIT_EXPECT_TRUE(test,
			  flexmem_function_slot_is_known(&ctx->function, 3));
	expect_asked(test, "acquire 4G, set 3?, clear 3?, clear 3, release 4G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void lost_clear_is_repeated(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, acquire(ctx));
	KUNIT_ASSERT_EQ(test, 0, set(ctx, 3));
	KUNIT_EXPECT_EQ(test, lose(test, FAKE_SLOT_CLEAR, 1), clear(ctx, 3));
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
	expect_asked(test, "acquire 4G, set 3, clear 3?");
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	expect_asked(test, "clear 3, release 4G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void lost_clear_can_be_repeated(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, acquire(ctx));
	KUNIT_ASSERT_EQ(test, 0, set(ctx, 3));
	KUNIT_EXPECT_EQ(test, lose(test, FAKE_SLOT_CLEAR, 1), clear(ctx, 3));
	fake_device_fail(ctx->fake, FAKE_SLOT_CLEAR, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, clear(ctx, 3));
	KUNIT_EXPECT_FALSE(test,
			   flexmem_function_slot_is_known(&ctx->function, 3));
	KUNIT_EXPECT_EQ(test, 0, clear(ctx, 3));
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
	expect_asked(test,
		     "acquire 4G, set 3, clear 3?, clear 3?, clear 3, release 4G");
}

/*
 * flexmem repeats a lost release. It cannot undo the release, because another
 * function may have the memory already.
 */
static void lost_release_is_repeated(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, acquire(ctx));
	KUNIT_EXPECT_EQ(test, lose(test, FAKE_RELEASE, 1), release(ctx));
	KUNIT_EXPECT_EQ(test, ctx->function.nr_pieces, 1);
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	KUNIT_EXPECT_EQ(test, ctx->function.nr_pieces, 0);
	expect_asked(test, "acquire 4G, release 4G?, release 4G");
}

/* If the device grants the memory again, the release did take place. */
static void lost_release_may_have_been_done(struct kunit *test)
{
	const struct loss *loss = test->param_value;
	struct ctx *ctx = test->priv;
	struct flexmem_memory first;

	KUNIT_ASSERT_EQ(test, acquire(ctx), 0);
	first = ctx->mem;
	KUNIT_EXPECT_EQ(test, lose(test, FAKE_RELEASE, 1), release(ctx));
	KUNIT_EXPECT_EQ(test, acquire(ctx), 0);
	KUNIT_EXPECT_EQ(test, ctx->mem.base == first.base, loss->done);
	KUNIT_EXPECT_EQ(test, ctx->function.nr_pieces, loss->done ? 1 : 2);
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	KUNIT_EXPECT_EQ(test, 0,
			flexmem_function_release(&ctx->function, &first));
	KUNIT_EXPECT_EQ(test, ctx->function.nr_pieces, 1);
	KUNIT_EXPECT_EQ(test, release(ctx), 0);
	KUNIT_EXPECT_EQ(test, ctx->function.nr_pieces, 0);
}

static void undoing_goes_on_until_it_is_answered(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	int rc;

	rc = lose(test, FAKE_ACQUIRE, 1);
	lose(test, FAKE_RELEASE, 1);
	KUNIT_EXPECT_EQ(test, rc, acquire(ctx));
	KUNIT_EXPECT_EQ(test, rc, retry(ctx));
	flexmem_function_note(&ctx->function, 0);
	/* flexmem repeats even a release that the firmware has refused. */
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, retry(ctx));
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	expect_asked(test, "acquire 4G?, release 4G?, release 4G?, release 4G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void refused_piece_keeps_no_other(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, lose(test, FAKE_ACQUIRE, 1), acquire(ctx));
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 99, -EIO);
	for (i = 0; i < FLEXMEM_RELEASE_TRIES; i++) {
		KUNIT_EXPECT_FALSE(test,
				   flexmem_function_is_settled(&ctx->function));
		KUNIT_EXPECT_EQ(test, -EIO, retry(ctx));
	}
	KUNIT_EXPECT_TRUE(test, flexmem_function_is_settled(&ctx->function));
	fake_device_forget(ctx->fake);
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	KUNIT_EXPECT_EQ(test, 0, acquire(ctx));
	KUNIT_EXPECT_EQ(test, 0, set(ctx, 3));
	expect_asked(test, "acquire 4G, set 3");
	/* TRIM retries a command even after FLEXMEM_RELEASE_TRIES tries. */
	KUNIT_EXPECT_EQ(test, -EIO,
			flexmem_function_retry(&ctx->function, true));
	fake_device_fail(ctx->fake, FAKE_RELEASE, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_retry(&ctx->function, true));
	KUNIT_EXPECT_EQ(test, 0, clear(ctx, 3));
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/*
 * Memory is released in the order in which it was acquired. A release that the
 * firmware refuses does not stop the later releases.
 */
static void memory_is_released_in_order(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0,
				flexmem_function_acquire(&ctx->function, 0, GIB,
							 &ctx->mem));
		KUNIT_ASSERT_EQ(test, 0, set(ctx, i));
	}
	fake_device_forget(ctx->fake);
	fake_device_fail(ctx->fake, FAKE_RELEASE, 2, 1, -EIO);
	flexmem_function_release_all(&ctx->function);
	expect_asked(test,
		     "clear 0, release 1G, clear 1, release 1G?, clear 2, release 1G");
	KUNIT_EXPECT_EQ(test, flexmem_function_held(&ctx->function), GIB);
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/* Suspend, reset and removal end the retries after the running command. */
static void retries_stop_between_two_commands(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, lose(test, FAKE_ACQUIRE, 1), acquire(ctx));
	fake_device_forget(ctx->fake);
	flexmem_function_suspend(&ctx->function);
	KUNIT_EXPECT_EQ(test, -EAGAIN, retry(ctx));
	flexmem_function_resume(&ctx->function);
	flexmem_function_enter(&ctx->function, FLEXMEM_STATE_WEDGED);
	KUNIT_EXPECT_EQ(test, -EIO, retry(ctx));
	expect_asked(test, "");
	flexmem_function_enter(&ctx->function, FLEXMEM_STATE_UP);
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
}

/*
 * If a command gets no answer, flexmem does not try the other pending commands,
 * because each would time out.
 */
static void no_answer_ends_retries(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	int rc;

	lose(test, FAKE_ACQUIRE, 1);
	acquire(ctx);
	rc = lose(test, FAKE_ACQUIRE, 1);
	KUNIT_EXPECT_EQ(test, rc, acquire(ctx));
	flexmem_function_note(&ctx->function, 0);
	fake_device_forget(ctx->fake);
	lose(test, FAKE_RELEASE, 1);
	KUNIT_EXPECT_EQ(test, rc, retry(ctx));
	expect_asked(test, "release 4G?");
	KUNIT_EXPECT_EQ(test, 0, retry(ctx));
	expect_asked(test, "release 4G, release 4G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

static void too_many_stranded_pieces_are_eio(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	ctx->function.nr_pieces = FLEXMEM_MAX_PIECES;
	KUNIT_EXPECT_EQ(test, -EIO, acquire(ctx));
	expect_asked(test, "");
	ctx->function.nr_pieces = 0;
}

static void reset_settles_everything(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	int rc;

	KUNIT_EXPECT_EQ(test, lose(test, FAKE_ACQUIRE, 1), acquire(ctx));
	rc = lose(test, FAKE_RESET, 1);
	KUNIT_EXPECT_EQ(test, rc, flexmem_function_reset(&ctx->function));
	KUNIT_EXPECT_FALSE(test, flexmem_function_is_settled(&ctx->function));
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_reset(&ctx->function));
	KUNIT_EXPECT_EQ(test, 0, acquire(ctx));
	expect_asked(test, "acquire 4G?, reset?, reset, acquire 4G");
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
}

/*
 * flexmem calls quiesce() even if the function has only memory whose
 * acquisition was not answered.
 */
static void what_may_be_there_is_made_quiet(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, lose(test, FAKE_ACQUIRE, 1), acquire(ctx));
	ctx->fake->leaving = true;
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_quiesce(&ctx->function));
	flexmem_function_release_all(&ctx->function);
	expect_asked(test, "acquire 4G?, quiesce, release 4G");
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(ctx->fake));
}

/*
 * A command that failed with -EIO had no effect. The exception is slot_set:
 * after -EIO the contents of the slot are unknown.
 */
static void refused_command_is_not_undone(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, acquire(ctx));
	KUNIT_EXPECT_EQ(test, ctx->function.nr_pieces, 0);
	KUNIT_EXPECT_EQ(test, 0, acquire(ctx));
	fake_device_fail(ctx->fake, FAKE_SLOT_SET, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, set(ctx, 3));
	KUNIT_EXPECT_FALSE(test,
			   flexmem_function_slot_is_known(&ctx->function, 3));
	KUNIT_EXPECT_EQ(test, 0, clear(ctx, 3));
	KUNIT_EXPECT_TRUE(test,
			  flexmem_function_slot_is_known(&ctx->function, 3));
	ctx->fake->refused_slots = BIT(3);
	KUNIT_EXPECT_EQ(test, -ENOSPC, set(ctx, 3));
	KUNIT_EXPECT_TRUE(test,
			  flexmem_function_slot_is_known(&ctx->function, 3));
	KUNIT_EXPECT_EQ(test, 0, release(ctx));
}

static void ids_are_never_used_again(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	u64 last = 0;
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0, acquire(ctx));
		KUNIT_EXPECT_GT(test, ctx->mem.id, last);
		last = ctx->mem.id;
		if (i == 1)
			flexmem_function_reset(&ctx->function);
		else
			KUNIT_EXPECT_EQ(test, 0, release(ctx));
	}
}

#define LOSS_CASE(name) KUNIT_CASE_PARAM(name, loss_gen_params)

static struct kunit_case lost_test_cases[] = {
	LOSS_CASE(lost_acquire_is_released),
	LOSS_CASE(lost_acquire_keeps_no_other),
	LOSS_CASE(lost_set_is_cleared),
	LOSS_CASE(lost_clear_is_repeated),
	LOSS_CASE(lost_clear_can_be_repeated),
	LOSS_CASE(lost_release_is_repeated),
	LOSS_CASE(lost_release_may_have_been_done),
	LOSS_CASE(undoing_goes_on_until_it_is_answered),
	LOSS_CASE(refused_piece_keeps_no_other),
	KUNIT_CASE(memory_is_released_in_order),
	LOSS_CASE(retries_stop_between_two_commands),
	LOSS_CASE(no_answer_ends_retries),
	KUNIT_CASE(too_many_stranded_pieces_are_eio),
	LOSS_CASE(reset_settles_everything),
	LOSS_CASE(what_may_be_there_is_made_quiet),
	KUNIT_CASE(refused_command_is_not_undone),
	KUNIT_CASE(ids_are_never_used_again),
	{}
};

static struct kunit_suite lost_suite = {
	.name = "flexmem_lost",
	.init = lost_test_init,
	.test_cases = lost_test_cases,
};

kunit_test_suite(lost_suite);
