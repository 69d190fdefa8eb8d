// SPDX-License-Identifier: GPL-2.0
/* Calls to a driver about its page tables, and spaces that are closed. */

#include <linux/workqueue.h>

#include "liar.h"

struct space {
	struct flexmem_vm vm;
	unsigned int unmapped;
};

static void count_unmapped(struct work_struct *work)
{
	container_of(work, struct space, vm.unmapped)->unmapped++;
}

static void do_nothing(struct work_struct *work)
{
}

static void start_worker(struct kunit *test)
{
	struct liar *liar = test->priv;

	liar->function.worker = alloc_ordered_workqueue("flexmem_kunit", 0);
	KUNIT_ASSERT_NOT_NULL(test, liar->function.worker);
	INIT_DELAYED_WORK(&liar->function.work, do_nothing);
	liar->function.work_ms = INT_MAX;
}

static void stop_worker(struct liar *liar)
{
	cancel_delayed_work_sync(&liar->function.work);
	destroy_workqueue(liar->function.worker);
	liar->function.worker = NULL;
}

/* Makes a space with two bindings. */
static void open_space(struct flexmem_function *function, struct space *space,
		       u64 number)
{
	*space = (struct space) {};
	INIT_LIST_HEAD(&space->vm.link);
	INIT_WORK(&space->vm.unmapped, count_unmapped);
	space->vm.space = number;
	flexmem_function_vm_begin(function, &space->vm);
	flexmem_function_vm_begin(function, &space->vm);
}

/* A space without mappings needs no command. */
static void closes_an_empty_space(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	struct space space;

	open_space(function, &space, 1);
	flexmem_function_vm_end(&space.vm);
	KUNIT_EXPECT_FALSE(test, list_empty(&function->vms));
	flexmem_function_vm_end(&space.vm);
	KUNIT_EXPECT_TRUE(test, list_empty(&function->vms));
	KUNIT_EXPECT_TRUE(test, flexmem_function_vm_close(function, &space.vm));
	KUNIT_EXPECT_EQ(test, liar->mapped, 0);
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_vm_unmap_all(function));
	KUNIT_EXPECT_EQ(test, liar->mapped, 0);
}

/* A closed space is unmapped with one command, which is repeated for ever. */
static void closes_a_space(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	struct space space;
	unsigned int i;

	start_worker(test);
	open_space(function, &space, 1);
	KUNIT_EXPECT_TRUE(test, flexmem_function_vm_close(function, &space.vm));
	KUNIT_EXPECT_EQ(test, liar->unmapped, function->vm_start);
	KUNIT_EXPECT_EQ(test, liar->mapped, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&function->vms));

	open_space(function, &space, 2);
	KUNIT_EXPECT_FALSE(test, flexmem_function_vm_is_pending(function));
	flexmem_function_vm_retry(function);
	KUNIT_EXPECT_EQ(test, liar->mapped, 1);
	liar->rc = -EIO;
	KUNIT_EXPECT_FALSE(test, flexmem_function_vm_close(function, &space.vm));
	for (i = 0; i < 2 * FLEXMEM_RELEASE_TRIES; i++) {
		KUNIT_EXPECT_TRUE(test, flexmem_function_vm_is_pending(function));
		flexmem_function_vm_retry(function);
	}
	KUNIT_EXPECT_EQ(test, liar->mapped, 2 + 2 * FLEXMEM_RELEASE_TRIES);
	KUNIT_EXPECT_TRUE(test, flexmem_function_is_settled(function));
	flush_workqueue(function->worker);
	KUNIT_EXPECT_EQ(test, space.unmapped, 0);
	liar->rc = 0;
	flexmem_function_vm_retry(function);
	KUNIT_EXPECT_FALSE(test, flexmem_function_vm_is_pending(function));
	flush_workqueue(function->worker);
	KUNIT_EXPECT_EQ(test, space.unmapped, 1);
	stop_worker(liar);
}

/* A function that does not answer gets no second command. */
static void stops_to_unmap_after_a_timeout(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	struct space space, other, live;

	start_worker(test);
	open_space(function, &live, 3);
	open_space(function, &space, 1);
	open_space(function, &other, 2);
	liar->rc = -EIO;
	flexmem_function_vm_close(function, &space.vm);
	flexmem_function_vm_close(function, &other.vm);
	liar->rc = -ETIMEDOUT;
	liar->mapped = 0;
	flexmem_function_vm_retry(function);
	KUNIT_EXPECT_EQ(test, liar->mapped, 1);
	/* The next try begins with the other space. */
	KUNIT_EXPECT_PTR_EQ(test, function->vms.prev, &space.vm.link);
	/* A suspended function tries none, so the order stays. */
	liar->mapped = 1;
	flexmem_function_suspend(function);
	flexmem_function_vm_retry(function);
	KUNIT_EXPECT_EQ(test, liar->mapped, 1);
	KUNIT_EXPECT_PTR_EQ(test, function->vms.prev, &space.vm.link);
	flexmem_function_resume(function);
	liar->rc = -EIO;
	flexmem_function_vm_retry(function);
	KUNIT_EXPECT_EQ(test, liar->mapped, 3);
	/* A reset leaves nothing mapped. */
	liar->rc = 0;
	KUNIT_EXPECT_EQ(test, 0, flexmem_function_reset(function));
	flush_workqueue(function->worker);
	KUNIT_EXPECT_EQ(test, space.unmapped, 1);
	KUNIT_EXPECT_EQ(test, other.unmapped, 1);
	KUNIT_EXPECT_EQ(test, live.unmapped, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&function->vms));
	KUNIT_EXPECT_EQ(test, liar->mapped, 3);
	/*
	 * One of the bindings from before the reset ends. The new binding keeps
	 * the space in the list.
	 */
	flexmem_function_vm_begin(function, &live.vm);
	flexmem_function_vm_end(&live.vm);
	KUNIT_EXPECT_FALSE(test, list_empty(&function->vms));
	flexmem_function_vm_forget(function);
	stop_worker(liar);
}

/* Many closed spaces keep others from the lock for a few commands only. */
static void unmaps_few_spaces_at_once(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	unsigned int i, nr = 20, unmapped = 0;
	struct space *space;

	space = kunit_kcalloc(test, nr, sizeof(*space), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, space);
	start_worker(test);
	liar->rc = -EIO;
	for (i = 0; i < nr; i++) {
		open_space(function, &space[i], 1 + i);
		flexmem_function_vm_close(function, &space[i].vm);
	}
	/* If the firmware refuses all of them, the worker waits. */
	liar->mapped = 0;
	KUNIT_EXPECT_FALSE(test, flexmem_function_vm_retry(function));
	KUNIT_EXPECT_EQ(test, liar->mapped, 16);
	KUNIT_EXPECT_PTR_EQ(test, function->vms.next, &space[16].vm.link);
	liar->rc = 0;
	KUNIT_EXPECT_TRUE(test, flexmem_function_vm_retry(function));
	KUNIT_EXPECT_EQ(test, liar->mapped, 32);
	KUNIT_EXPECT_FALSE(test, flexmem_function_vm_retry(function));
	KUNIT_EXPECT_EQ(test, liar->mapped, 36);
	flush_workqueue(function->worker);
	for (i = 0; i < nr; i++)
		unmapped += space[i].unmapped;
	KUNIT_EXPECT_EQ(test, unmapped, nr);
	stop_worker(liar);
}

/* A suspended function gets no command. */
static void closes_a_space_after_the_resume(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	struct space space;

	start_worker(test);
	open_space(function, &space, 1);
	flexmem_function_suspend(function);
	KUNIT_EXPECT_FALSE(test, flexmem_function_vm_close(function, &space.vm));
	flexmem_function_vm_retry(function);
	KUNIT_EXPECT_EQ(test, liar->mapped, 0);
	flexmem_function_resume(function);
	flexmem_function_vm_retry(function);
	KUNIT_EXPECT_EQ(test, liar->mapped, 1);
	flush_workqueue(function->worker);
	KUNIT_EXPECT_EQ(test, space.unmapped, 1);
	stop_worker(liar);
}

/* On removal nothing is released while something may be mapped. */
static void releases_nothing_that_is_mapped(struct kunit *test)
{
	struct liar *liar = test->priv;
	struct flexmem_function *function = &liar->function;
	struct space space;

	KUNIT_ASSERT_EQ(test, acquire(test, SZ_2M, 0, SZ_2M), 0);
	open_space(function, &space, 1);
	liar->rc = -EIO;
	flexmem_function_release_all(function);
	KUNIT_EXPECT_EQ(test, liar->released, 0);
	KUNIT_EXPECT_EQ(test, liar->unmapped, function->vm_start);
	liar->rc = 0;
	flexmem_function_release_all(function);
	KUNIT_EXPECT_EQ(test, liar->released, 1);
	/* Without memory there is nothing to unmap. */
	liar->mapped = 0;
	flexmem_function_release_all(function);
	KUNIT_EXPECT_EQ(test, liar->mapped, 0);
	flexmem_function_vm_forget(function);
	KUNIT_EXPECT_TRUE(test, list_empty(&function->vms));
}

static struct kunit_case function_vm_test_cases[] = {
	KUNIT_CASE(closes_an_empty_space),
	KUNIT_CASE(closes_a_space),
	KUNIT_CASE(stops_to_unmap_after_a_timeout),
	KUNIT_CASE(unmaps_few_spaces_at_once),
	KUNIT_CASE(closes_a_space_after_the_resume),
	KUNIT_CASE(releases_nothing_that_is_mapped),
	{}
};

static struct kunit_suite function_vm_suite = {
	.name = "flexmem_function_vm",
	.init = function_test_init,
	.test_cases = function_vm_test_cases,
};

kunit_test_suite(function_vm_suite);
