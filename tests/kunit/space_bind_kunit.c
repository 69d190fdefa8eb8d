// SPDX-License-Identifier: GPL-2.0
/* Device-virtual address spaces: VA_BIND and VA_UNBIND that fail. */

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>

#include "spaces.h"

/* Each command of a VA_BIND fails in turn. Nothing stays behind. */
static void rolls_back(struct kunit *test)
{
	static const int errors[] = { -ENOSPC, -EIO, -ETIMEDOUT };
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);
	unsigned int i, good;

	reserve(test, client, 3);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		for (good = 0; good < 3; good++) {
			fail(good, 1, errors[i]);
			KUNIT_EXPECT_EQ(test, errors[i],
					bind_pages(test, client, handle, 0, 0, 3));
			KUNIT_EXPECT_EQ(test, nr_entries(), 0);
			KUNIT_EXPECT_EQ(test, unbind(test, client, 0), -ENOENT);
			KUNIT_EXPECT_EQ(test, 0,
					bind_pages(test, client, handle, 0, 0, 3));
			check_pages(test, client, 3);
			KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
		}
	}
	/* After -ENOSPC nothing is mapped, so no unmap command is sent. */
	pages.unmaps = 0;
	fail(0, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			bind_pages(test, client, handle, 0, 0, 3));
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), 0);
}

/*
 * If a failed VA_BIND cannot be undone, its addresses and its bytes stay taken
 * until VA_UNBIND has succeeded.
 */
static void keeps_what_may_be_mapped(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 2, 2);
	u32 other = alloc_pages_in(test, client, 2, 1);

	reserve(test, client, 4);
	fail(1, 2, -EIO);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 2), -EIO);
	KUNIT_EXPECT_EQ(test, nr_entries(), 1);
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), -EBUSY);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, other, 0, 0, 1), -EEXIST);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 2, 0, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, other, 2, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(client, handle), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 4 * page_of(test));
	fail(0, 1, -EIO);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), -EIO);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 4 * page_of(test));
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 2 * page_of(test));
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, other, 0, 1, 1), 0);
	check_pages(test, client, 2);
}

/*
 * There is no room for the second chunk, and the first one cannot be unmapped.
 * The contract forbids -ENOSPC from vm_unmap, so flexmem takes it for -EIO.
 */
static void no_room_and_no_way_back(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);

	reserve(test, client, 3);
	fail(1, 2, -ENOSPC);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), -EIO);
	KUNIT_EXPECT_EQ(test, nr_entries(), 1);
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), -EBUSY);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), 0);
}

/* After a failed VA_UNBIND the bytes may still be mapped. */
static void a_failed_unbind_is_repeated(struct kunit *test)
{
	static const int errors[] = { -EIO, -ETIMEDOUT };
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);
	unsigned int i;

	reserve(test, client, 3);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		KUNIT_EXPECT_EQ(test, 0,
				bind_pages(test, client, handle, 0, 0, 3));
		fail(0, 1, errors[i]);
		KUNIT_EXPECT_EQ(test, unbind(test, client, 0), errors[i]);
		KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
		KUNIT_EXPECT_EQ(test, free_at(test, client, START), -EBUSY);
		KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
		KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	}
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), 0);
}

/* A caller that is killed during its command. */
static struct {
	struct task_struct *task;
	struct completion ready, started, done;
	u32 handle;
	int rc;
} victim;

static int binds(void *data)
{
	struct kunit *test = data;
	struct ctx *ctx = test->priv;

	allow_signal(SIGKILL);
	complete(&victim.ready);
	wait_for_completion(&victim.started);
	victim.rc = victim.handle ?
		bind_pages(test, ctx->client, victim.handle, 0, 0, 3) :
		unbind(test, ctx->client, 0);
	complete_all(&victim.done);
	return 0;
}

static void kill_it(struct kunit *test)
{
	send_sig(SIGKILL, victim.task, 1);
	wait_for_completion(&victim.done);
}

/* Binds @handle, or unbinds if @handle is 0, and kills the caller. */
static void killed(struct kunit *test, u32 handle)
{
	struct ctx *ctx = test->priv;

	init_completion(&victim.ready);
	init_completion(&victim.started);
	init_completion(&victim.done);
	victim.handle = handle;
	pages.during = kill_it;
	victim.task = kthread_run(binds, test, "flexmem_kunit");
	wait_for_completion(&victim.ready);
	complete(&victim.started);
	wait_for_completion(&victim.done);
	KUNIT_EXPECT_EQ(test, victim.rc, -EINTR);
	flush_workqueue(ctx->table->function.worker);
}

static void the_worker_ends_the_command_of_a_killed_caller(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 3, 3);

	reserve(test, client, 3);
	/* The command under way ends, and is undone. */
	pages.maps = 0;
	killed(test, handle);
	KUNIT_EXPECT_EQ(test, pages.maps, 1);
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 3), 0);
	killed(test, 0);
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	/* The command that undoes it fails: VA_UNBIND repeats it. */
	fail(1, 1, -EIO);
	killed(test, handle);
	KUNIT_EXPECT_EQ(test, nr_entries(), 1);
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), -EBUSY);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	/* The last command is under way: then all bytes are bound. */
	killed(test, alloc_pages_in(test, client, 3, 1));
	KUNIT_EXPECT_TRUE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, nr_entries(), 1);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), 0);
}

static struct kunit_case space_bind_cases[] = {
	KUNIT_CASE(rolls_back),
	KUNIT_CASE(keeps_what_may_be_mapped),
	KUNIT_CASE(no_room_and_no_way_back),
	KUNIT_CASE(a_failed_unbind_is_repeated),
	KUNIT_CASE(the_worker_ends_the_command_of_a_killed_caller),
	{}
};

static struct kunit_suite space_bind_suite = {
	.name = "flexmem_space_bind",
	.init = large_pages,
	.test_cases = space_bind_cases,
};

kunit_test_suite(space_bind_suite);
