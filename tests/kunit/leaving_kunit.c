// SPDX-License-Identifier: GPL-2.0
/*
 * Fences of device programs: memory that its owner frees gets no other owner
 * before the last of its fences has signalled.
 */

#include <linux/delay.h>
#include <linux/dma-fence.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <flexmem/dispatch.h>

#include "clients.h"
#include "parts/resize.h"

/* The fake device has regions of this size. */
#define REGION (12 * GIB)

static DEFINE_SPINLOCK(fence_lock);

static const char *fence_name(struct dma_fence *fence)
{
	return "test";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

/*
 * Makes a job's fence in a new fence context. If @after is set, makes the next
 * fence in the context of @after.
 */
static struct dma_fence *make_fence(struct kunit *test,
				    const struct dma_fence *after)
{
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fence);
	dma_fence_init(fence, &fence_ops, &fence_lock,
		       after ? after->context : dma_fence_context_alloc(1),
		       after ? after->seqno + 1 : 1);
	return fence;
}

static unsigned int fence_users(const struct dma_fence *fence)
{
	return kref_read(&fence->refcount);
}

static void signal_and_put(struct dma_fence *fence)
{
	dma_fence_signal(fence);
	dma_fence_put(fence);
}

static struct flexmem_allocation *make_public(struct kunit *test,
					      struct flexmem_client *client,
					      u64 size)
{
	struct flexmem_allocation *allocation = prepare(test, client, size);

	flexmem_client_publish(client, allocation);
	return allocation;
}

static void add_fence(struct kunit *test, struct flexmem_allocation *allocation,
		      struct dma_fence *fence)
{
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_allocation_add_fence(allocation, fence));
}

static struct flexmem_allocation *alloc_in_flight(struct kunit *test, u64 size,
						  struct dma_fence *fence)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = make_public(test, ctx->client, size);
	add_fence(test, allocation, fence);
	return allocation;
}

static void free_it(struct kunit *test, struct flexmem_allocation *allocation)
{
	struct ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fake_client_free(ctx->client,
						  allocation->handle));
}

/* Lets the worker handle all signals, then expects @bytes to be leaving. */
static void expect_leaving(struct kunit *test, u64 bytes)
{
	struct ctx *ctx = test->priv;
	const char *wrong;

	flush_work(&ctx->table->leaving.work);
	flexmem_table_snapshot(ctx->table, NULL, &ctx->snapshot);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_orphaned, bytes);
	wrong = fake_table_check(ctx->table);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
}

static void freed_memory_waits_for_its_fence(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);
	struct dma_fence *fence = make_fence(test, NULL);
	struct flexmem_allocation *next;
	struct flexmem_request request;
	u64 scrubbed;

	free_it(test, alloc_in_flight(test, REGION, fence));
	expect_leaving(test, REGION);
	/* It is charged as before, so limits bound what waits. */
	KUNIT_EXPECT_EQ(test, nr_handles(ctx->client), 1);
	KUNIT_EXPECT_EQ(test, ctx->client->account->used[FLEXMEM_RESOURCE_BYTES],
			REGION);
	KUNIT_EXPECT_EQ(test, flexmem_client_used(ctx->client), 0);
	/* An ALLOC that finds no room says how much is leaving. */
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR(fake_client_prepare(other, 2 * REGION, 0, 0,
						    &request)));
	KUNIT_EXPECT_EQ(test, request.leaving, REGION);
	scrubbed = ctx->fake->scrubbed;
	/* An ALLOC does not wait for the fence: it gets another region. */
	next = make_public(test, other, REGION);
	KUNIT_EXPECT_EQ(test, flexmem_allocation_address(next).region_id, 1);
	signal_and_put(fence);
	expect_leaving(test, 0);
	KUNIT_EXPECT_EQ(test, ctx->client->account->used[FLEXMEM_RESOURCE_BYTES],
			0);
	next = make_public(test, other, REGION);
	KUNIT_EXPECT_EQ(test, flexmem_allocation_address(next).region_id, 0);
	/* The worker has scrubbed nothing: the ALLOC has scrubbed the bytes. */
	KUNIT_EXPECT_EQ(test, ctx->fake->scrubbed, scrubbed + 2 * REGION);
}

/* ALLOC finds the freed memory, whether the worker has run or not. */
static void alloc_after_the_signal_gets_the_memory(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *next;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		free_it(test, alloc_in_flight(test, GIB, fence));
		dma_fence_signal(fence);
		next = make_public(test, ctx->client, GIB);
		KUNIT_EXPECT_EQ(test, flexmem_allocation_address(next).offset, 0);
		free_it(test, next);
		dma_fence_put(fence);
		fence = make_fence(test, NULL);
	}
	signal_and_put(fence);
}

/**
 * struct linked_fence - a fence whose end makes another fence signal
 * @base: the fence
 * @next: fence that signals when this one is freed, with a reference
 */
struct linked_fence {
	struct dma_fence base;
	struct dma_fence *next;
};

static void end_linked(struct dma_fence *fence)
{
	struct linked_fence *linked =
		container_of(fence, struct linked_fence, base);

	signal_and_put(linked->next);
	dma_fence_free(fence);
}

static const struct dma_fence_ops linked_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
	.release = end_linked,
};

static struct dma_fence *make_linked(struct kunit *test, struct dma_fence *next)
{
	struct linked_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fence);
	fence->next = next;
	dma_fence_init(&fence->base, &linked_ops, &fence_lock,
		       dma_fence_context_alloc(1), 1);
	return &fence->base;
}

static u64 leaving_of(struct kunit *test, struct flexmem_client *client)
{
	struct ctx *ctx = test->priv;
	u64 waits_ms;

	return flexmem_leaving_of(&ctx->table->leaving, client->account,
				  &waits_ms);
}

static unsigned int count_nodes(const struct list_head *list)
{
	const struct list_head *link;
	unsigned int nr = 0;

	list_for_each(link, list)
		nr++;
	return nr;
}

static unsigned int nr_queued(struct flexmem_leaving *leaving)
{
	unsigned int nr;

	spin_lock_irq(&leaving->lock);
	nr = count_nodes(&leaving->queue);
	spin_unlock_irq(&leaving->lock);
	return nr;
}

/*
 * Keeps the worker busy with 1 GiB of another file, until the caller unlocks the
 * turn of that file. @user: of the file. @bytes: how many leave with that.
 */
static struct flexmem_client *keep_worker_busy(struct kunit *test,
					       unsigned int user, u64 bytes)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, user);
	struct flexmem_allocation *allocation = make_public(test, other, GIB);
	struct dma_fence *fence = make_fence(test, NULL);

	add_fence(test, allocation, fence);
	KUNIT_ASSERT_EQ(test, 0, fake_client_free(other, allocation->handle));
	expect_leaving(test, bytes);
	/* The caller's ALLOCs take the turn of their file, as no other code does. */
	mutex_lock_nested(&other->account->turn, SINGLE_DEPTH_NESTING);
	signal_and_put(fence);
	/* The worker takes the file from the queue, and waits for its turn. */
	while (nr_queued(&ctx->table->leaving))
		msleep(20);
	return other;
}

/*
 * The end of the first allocation makes the second one ready. An ALLOC ends only
 * what is ready when it begins, and nothing of another file. So neither other
 * threads nor other files keep it.
 */
static void alloc_ends_what_its_file_has_ready(struct kunit *test)
{
	struct dma_fence *second = make_fence(test, NULL);
	struct dma_fence *first = make_linked(test, second);
	struct ctx *ctx = test->priv;
	struct flexmem_client *other;

	free_it(test, alloc_in_flight(test, GIB, first));
	free_it(test, alloc_in_flight(test, GIB, second));
	expect_leaving(test, 2 * GIB);
	other = keep_worker_busy(test, 2, 3 * GIB);
	signal_and_put(first);
	prepare(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, leaving_of(test, ctx->client), GIB);
	KUNIT_EXPECT_EQ(test, leaving_of(test, other), GIB);
	prepare(test, ctx->client, 128);
	KUNIT_EXPECT_EQ(test, leaving_of(test, ctx->client), 0);
	KUNIT_EXPECT_EQ(test, leaving_of(test, other), GIB);
	mutex_unlock(&other->account->turn);
	expect_leaving(test, 0);
}

/* An ALLOC ends the whole group that waited for a fence, without the worker. */
static void alloc_after_the_signal_gets_all(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct flexmem_allocation *allocation[6], *next;
	struct ctx *ctx = test->priv;
	struct flexmem_client *other;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(allocation); i++)
		allocation[i] = alloc_in_flight(test, 2 * GIB, fence);
	for (i = 0; i < ARRAY_SIZE(allocation); i++)
		free_it(test, allocation[i]);
	expect_leaving(test, REGION);
	other = keep_worker_busy(test, 2, REGION + GIB);
	signal_and_put(fence);
	next = make_public(test, ctx->client, REGION);
	KUNIT_EXPECT_EQ(test, flexmem_allocation_address(next).region_id, 0);
	mutex_unlock(&other->account->turn);
	expect_leaving(test, 0);
}

/* The allocations of a file that wait for the same fence share a callback. */
static void a_file_has_one_callback_on_a_fence(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);
	struct dma_fence *first = make_fence(test, NULL);
	struct dma_fence *second = make_fence(test, NULL);
	struct flexmem_allocation *allocation[5];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(allocation); i++) {
		allocation[i] = alloc_in_flight(test, GIB, first);
		if (i % 2)
			add_fence(test, allocation[i], second);
	}
	for (i = 0; i < ARRAY_SIZE(allocation); i++)
		free_it(test, allocation[i]);
	expect_leaving(test, 5 * GIB);
	KUNIT_EXPECT_LE(test, count_nodes(&first->cb_list) +
			count_nodes(&second->cb_list), 2);
	allocation[0] = make_public(test, other, GIB);
	add_fence(test, allocation[0], second);
	KUNIT_ASSERT_EQ(test, 0,
			fake_client_free(other, allocation[0]->handle));
	expect_leaving(test, 6 * GIB);
	/* The group of the first fence comes apart. */
	signal_and_put(first);
	expect_leaving(test, 3 * GIB);
	KUNIT_EXPECT_EQ(test, count_nodes(&second->cb_list), 2);
	signal_and_put(second);
	expect_leaving(test, 0);
}

struct killed {
	struct flexmem_client *client;
	struct completion ready;
	struct completion done;
	unsigned int regions;
	u64 event;
	int rc;
};

static int alloc_until_killed(void *data)
{
	struct killed *killed = data;
	struct flexmem_request request;

	allow_signal(SIGKILL);
	complete(&killed->ready);
	killed->rc = PTR_ERR_OR_ZERO(fake_client_prepare(killed->client, GIB,
							 0, 0, &request));
	killed->regions = request.regions;
	killed->event = request.event;
	complete(&killed->done);
	return 0;
}

/* Another task frees the ready allocations. The ALLOC waits for it. */
static void killed_caller_does_not_wait_for_its_turn(struct kunit *test)
{
	struct killed *killed = kunit_kzalloc(test, sizeof(*killed), GFP_KERNEL);
	struct dma_fence *fence = make_fence(test, NULL);
	struct ctx *ctx = test->priv;
	struct task_struct *task;

	KUNIT_ASSERT_NOT_NULL(test, killed);
	killed->client = ctx->client;
	init_completion(&killed->ready);
	init_completion(&killed->done);
	free_it(test, alloc_in_flight(test, GIB, fence));
	expect_leaving(test, GIB);
	mutex_lock(&ctx->client->account->turn);
	signal_and_put(fence);
	task = kthread_run(alloc_until_killed, killed, "flexmem_kunit");
	if (IS_ERR(task))
		mutex_unlock(&ctx->client->account->turn);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	wait_for_completion(&killed->ready);
	send_sig(SIGKILL, task, 1);
	/* The wait lasts this long only if the test fails. */
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&killed->done, 10 * HZ),
			0);
	mutex_unlock(&ctx->client->account->turn);
	KUNIT_EXPECT_EQ(test, killed->rc, -EINTR);
	expect_leaving(test, 0);
}

/*
 * Starts an ALLOC that a limit refuses until another file of the cgroup has left
 * its memory. Returns when the ALLOC waits or has ended.
 */
static struct task_struct *start_alloc(struct kunit *test, struct killed *alloc,
				       u64 limit)
{
	struct ctx *ctx = test->priv;
	struct flexmem_leaving *leaving = &ctx->table->leaving;
	struct task_struct *task;

	alloc->client = ctx->client;
	init_completion(&alloc->ready);
	init_completion(&alloc->done);
	fake_client_limit(ctx->client, FLEXMEM_RESOURCE_BYTES, limit);
	task = kthread_run(alloc_until_killed, alloc, "flexmem_kunit");
	if (!IS_ERR(task))
		while (!nr_queued(leaving) && !completion_done(&alloc->done))
			msleep(20);
	return task;
}

/* Before an ALLOC fails, the worker ends what has signalled of all files. */
static void alloc_waits_before_it_fails(struct kunit *test)
{
	struct killed *alloc = kunit_kzalloc(test, sizeof(*alloc), GFP_KERNEL);
	struct flexmem_client *other;
	struct task_struct *task;

	KUNIT_ASSERT_NOT_NULL(test, alloc);
	other = keep_worker_busy(test, 1, GIB);
	task = start_alloc(test, alloc, GIB);
	KUNIT_EXPECT_FALSE(test, completion_done(&alloc->done));
	mutex_unlock(&other->account->turn);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	wait_for_completion(&alloc->done);
	KUNIT_EXPECT_EQ(test, alloc->rc, 0);
	expect_leaving(test, 0);
}

struct lets_leave {
	struct flexmem_leaving *leaving;
	struct dma_fence *fence;
};

/* A fence signals, and the worker ends what it has kept. */
static void let_leave(void *arg)
{
	const struct lets_leave *lets = arg;

	dma_fence_signal(lets->fence);
	flush_work(&lets->leaving->work);
}

/*
 * The worker may end what an ALLOC needs after the ALLOC has searched, and be done
 * before it would wait.
 */
static void alloc_searches_again_for_what_has_left(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct lets_leave lets = {
		.leaving = &ctx->table->leaving,
		.fence = make_fence(test, NULL),
	};
	struct flexmem_allocation *next;

	free_it(test, alloc_in_flight(test, REGION, lets.fence));
	fake_device_fail(ctx->fake, FAKE_ACQUIRE, 1, 100, -ENOSPC);
	ctx->fake->during_acquire_arg = &lets;
	ctx->fake->during_acquire = let_leave;
	next = make_public(test, ctx->client, REGION);
	ctx->fake->during_acquire = NULL;
	KUNIT_EXPECT_EQ(test, flexmem_allocation_address(next).offset, 0);
	expect_leaving(test, 0);
	dma_fence_put(lets.fence);
}

/* The figures of an ALLOC that has waited in vain are those of its last try. */
static void alloc_that_waits_in_vain_says_why(struct kunit *test)
{
	struct killed *alloc = kunit_kzalloc(test, sizeof(*alloc), GFP_KERNEL);
	struct flexmem_client *other;
	struct task_struct *task;

	KUNIT_ASSERT_NOT_NULL(test, alloc);
	other = keep_worker_busy(test, 1, GIB);
	task = start_alloc(test, alloc, 128);
	KUNIT_EXPECT_FALSE(test, completion_done(&alloc->done));
	mutex_unlock(&other->account->turn);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	wait_for_completion(&alloc->done);
	KUNIT_EXPECT_EQ(test, alloc->rc, -ENOMEM);
	KUNIT_EXPECT_EQ(test, alloc->regions, 1);
	expect_leaving(test, 0);
}

static void killed_caller_does_not_wait_for_others(struct kunit *test)
{
	struct killed *alloc = kunit_kzalloc(test, sizeof(*alloc), GFP_KERNEL);
	struct ctx *ctx = test->priv;
	struct flexmem_client *other;
	struct task_struct *task;
	unsigned long left;

	KUNIT_ASSERT_NOT_NULL(test, alloc);
	other = keep_worker_busy(test, 1, GIB);
	task = start_alloc(test, alloc, GIB);
	if (!IS_ERR(task))
		send_sig(SIGKILL, task, 1);
	/* The wait lasts this long only if the test fails. */
	left = wait_for_completion_timeout(&alloc->done, 10 * HZ);
	KUNIT_EXPECT_NE(test, left, 0);
	KUNIT_EXPECT_EQ(test, nr_queued(&ctx->table->leaving), 0);
	mutex_unlock(&other->account->turn);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	if (!left)
		wait_for_completion(&alloc->done);
	KUNIT_EXPECT_EQ(test, alloc->rc, -EINTR);
	/* No file is told of a failure that the caller does not see. */
	KUNIT_EXPECT_EQ(test, alloc->event, 0);
	expect_leaving(test, 0);
}

#define MANY_ALLOCATIONS 40
#define MANY_FENCES 6

/*
 * Allocations that wait for any of several fences, which signal in some order.
 * An allocation ends with the last of its fences.
 */
static void groups_come_apart_in_any_order(struct kunit *test)
{
	struct dma_fence *fence[MANY_FENCES];
	unsigned int i, f, wanted[MANY_ALLOCATIONS], left, turn = 0;
	struct flexmem_allocation *allocation;
	u64 bytes;

	for (f = 0; f < MANY_FENCES; f++)
		fence[f] = make_fence(test, NULL);
	for (i = 0; i < MANY_ALLOCATIONS; i++) {
		wanted[i] = 1 + i * 37 % (BIT(MANY_FENCES) - 1);
		allocation = make_public(test,
					 ((struct ctx *)test->priv)->client,
					 128 * (i + 1));
		for (f = 0; f < MANY_FENCES; f++)
			if (wanted[i] & BIT(f))
				add_fence(test, allocation, fence[f]);
		free_it(test, allocation);
	}
	for (left = BIT(MANY_FENCES) - 1; left; left &= ~BIT(f)) {
		bytes = 0;
		for (i = 0; i < MANY_ALLOCATIONS; i++)
			if (wanted[i] & left)
				bytes += 128 * (i + 1);
		expect_leaving(test, bytes);
		f = (turn++ * 5 + 3) % MANY_FENCES;
		signal_and_put(fence[f]);
	}
	expect_leaving(test, 0);
}

static void fence_that_has_signalled_delays_nothing(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = alloc_in_flight(test, GIB, fence);
	KUNIT_EXPECT_TRUE(test, flexmem_allocation_is_in_flight(allocation));
	signal_and_put(fence);
	KUNIT_EXPECT_FALSE(test, flexmem_allocation_is_in_flight(allocation));
	free_it(test, allocation);
	flexmem_table_snapshot(ctx->table, NULL, &ctx->snapshot);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_orphaned, 0);
	KUNIT_EXPECT_EQ(test, ctx->snapshot.sum.out_free, REGION);
}

/* The fences may signal in any order. */
static void freed_memory_waits_for_all_contexts(struct kunit *test)
{
	struct dma_fence *fence[5];
	struct flexmem_allocation *allocation;
	unsigned int first, i;

	for (first = 0; first < ARRAY_SIZE(fence); first++) {
		for (i = 0; i < ARRAY_SIZE(fence); i++)
			fence[i] = make_fence(test, NULL);
		allocation = alloc_in_flight(test, GIB, fence[0]);
		for (i = 1; i < ARRAY_SIZE(fence); i++)
			add_fence(test, allocation, fence[i]);
		free_it(test, allocation);
		for (i = 0; i < ARRAY_SIZE(fence); i++) {
			expect_leaving(test, GIB);
			signal_and_put(fence[(first + i) % ARRAY_SIZE(fence)]);
		}
		expect_leaving(test, 0);
	}
}

static void later_job_of_a_context_replaces_the_earlier(struct kunit *test)
{
	struct dma_fence *early = make_fence(test, NULL);
	struct dma_fence *late = make_fence(test, early);
	struct flexmem_allocation *allocation;

	allocation = alloc_in_flight(test, GIB, early);
	add_fence(test, allocation, late);
	KUNIT_EXPECT_EQ(test, fence_users(early), 1);
	free_it(test, allocation);
	signal_and_put(early);
	expect_leaving(test, GIB);
	signal_and_put(late);
	expect_leaving(test, 0);
}

static void memory_needs_neither_user_nor_fence(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	allocation = alloc_in_flight(test, GIB, fence);
	KUNIT_ASSERT_PTR_EQ(test, allocation,
			    flexmem_client_allocation(ctx->client,
						      allocation->handle));
	free_it(test, allocation);
	expect_leaving(test, GIB);
	flexmem_allocation_put(allocation);
	expect_leaving(test, GIB);
	signal_and_put(fence);
	expect_leaving(test, 0);

	fence = make_fence(test, NULL);
	allocation = alloc_in_flight(test, GIB, fence);
	KUNIT_ASSERT_PTR_EQ(test, allocation,
			    flexmem_client_allocation(ctx->client,
						      allocation->handle));
	free_it(test, allocation);
	signal_and_put(fence);
	expect_leaving(test, GIB);
	flexmem_allocation_put(allocation);
	expect_leaving(test, 0);
}

static bool signal_now(struct dma_fence *fence)
{
	return false;
}

static const struct dma_fence_ops eager_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
	.enable_signaling = signal_now,
};

/*
 * The fence signals after flexmem has checked it, but before flexmem adds the
 * callback.
 */
static void fence_may_signal_when_it_is_waited_for(struct kunit *test)
{
	struct dma_fence *eager = make_fence(test, NULL);
	struct dma_fence *fence = make_fence(test, NULL);
	struct flexmem_allocation *allocation;

	eager->ops = &eager_ops;
	allocation = alloc_in_flight(test, GIB, eager);
	add_fence(test, allocation, fence);
	free_it(test, allocation);
	expect_leaving(test, GIB);
	KUNIT_EXPECT_TRUE(test, dma_fence_is_signaled(eager));
	dma_fence_put(eager);
	signal_and_put(fence);
	expect_leaving(test, 0);

	eager = make_fence(test, NULL);
	eager->ops = &eager_ops;
	free_it(test, alloc_in_flight(test, GIB, eager));
	expect_leaving(test, 0);
	dma_fence_put(eager);
}

struct signaller {
	struct irq_work irq;
	struct dma_fence *fence;
};

static void signal_in_interrupt(struct irq_work *irq)
{
	signal_and_put(container_of(irq, struct signaller, irq)->fence);
}

static void fences_signal_in_interrupts(struct kunit *test)
{
	struct signaller signaller = {};
	unsigned int i;

	init_irq_work(&signaller.irq, signal_in_interrupt);
	for (i = 0; i < 20; i++) {
		struct flexmem_allocation *allocation;

		signaller.fence = make_fence(test, NULL);
		allocation = alloc_in_flight(test, GIB, signaller.fence);
		/* The interrupt comes while the memory is being freed. */
		irq_work_queue(&signaller.irq);
		free_it(test, allocation);
		irq_work_sync(&signaller.irq);
		expect_leaving(test, 0);
	}
}

static struct flexmem_client *open_client(struct kunit *test)
{
	struct flexmem_client *client;
	struct ctx *ctx = test->priv;

	client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, client);
	KUNIT_ASSERT_EQ(test, 0, flexmem_client_init(client, ctx->table,
						     fake_uid(7),
						     fake_cgroup(7), NULL));
	return client;
}

static void memory_of_a_closed_file_waits_too(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct flexmem_client *client = open_client(test);
	struct flexmem_allocation *allocation;

	allocation = make_public(test, client, GIB);
	make_public(test, client, GIB);
	add_fence(test, allocation, fence);
	flexmem_client_fini(client);
	expect_leaving(test, GIB);
	signal_and_put(fence);
	expect_leaving(test, 0);
}

/*
 * The client that client_gone() was called for, and the bytes that were charged
 * to it at that time.
 */
static u64 owned_when_gone;
static struct flexmem_client *gone;

static void note_gone(void *priv, struct flexmem_client *client)
{
	gone = client;
	owned_when_gone = client->account->used[FLEXMEM_RESOURCE_BYTES];
}

static bool freed;

static void note_free(struct flexmem_client *client)
{
	freed = true;
}

static void driver_hears_of_close_before_memory_is_freed(struct kunit *test)
{
	struct flexmem_client *known = open_client(test);
	struct flexmem_client *unknown = open_client(test);
	struct ctx *ctx = test->priv;
	u32 handle;

	ctx->table->function.ops.client_gone = note_gone;
	gone = NULL;
	freed = false;
	known->free = note_free;
	make_public(test, unknown, GIB);
	flexmem_client_fini(unknown);
	flexmem_client_put(unknown);
	KUNIT_EXPECT_NULL(test, gone);

	handle = make_public(test, known, GIB)->handle;
	flexmem_client_get(known);
	flexmem_client_fini(known);
	flexmem_client_put(known);
	KUNIT_EXPECT_PTR_EQ(test, gone, known);
	KUNIT_EXPECT_EQ(test, owned_when_gone, GIB);
	/* The driver's reference keeps the client, but not its memory. */
	KUNIT_EXPECT_FALSE(test, freed);
	KUNIT_EXPECT_EQ(test, -ENOENT,
			PTR_ERR(flexmem_client_allocation(known, handle)));
	flexmem_client_put(known);
	KUNIT_EXPECT_TRUE(test, freed);
}

static void driver_that_is_removed_hears_nothing(struct kunit *test)
{
	struct flexmem_client *known = open_client(test);
	struct ctx *ctx = test->priv;

	ctx->table->function.ops.client_gone = note_gone;
	gone = NULL;
	flexmem_client_get(known);
	fake_table_remove(ctx->table);
	flexmem_client_fini(known);
	KUNIT_EXPECT_NULL(test, gone);
}

/* A reset takes the memory, and the driver's fences may never signal. */
static void reset_ends_leaving_allocations(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation;

	free_it(test, alloc_in_flight(test, GIB, fence));
	allocation = alloc_in_flight(test, GIB, fence);
	expect_leaving(test, GIB);
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_reset(ctx->table));
	KUNIT_EXPECT_EQ(test, -EIO, flexmem_allocation_error(allocation));
	KUNIT_EXPECT_EQ(test, fence_users(fence), 2);
	/* Memory that is freed after the reset does not wait for the fence. */
	free_it(test, allocation);
	expect_leaving(test, 0);
	KUNIT_EXPECT_EQ(test, fence_users(fence), 1);
	signal_and_put(fence);
	expect_leaving(test, 0);
}

/**
 * struct busy_fence - a fence whose end keeps the worker busy
 * @base: the fence
 * @test: the test
 * @reader: the end expects that this task was woken up; NULL: it does not
 * @client: file of @handle; NULL: the end waits for @returned
 * @handle: freed by the end of the fence, once a task waits for the worker
 * @returned: the call that is tested has returned
 */
struct busy_fence {
	struct dma_fence base;
	struct kunit *test;
	struct fake_reader *reader;
	struct flexmem_client *client;
	u32 handle;
	struct completion *returned;
};

static bool somebody_waits(struct flexmem_leaving *leaving)
{
	struct flexmem_queued *queued;
	bool waits = false;

	spin_lock_irq(&leaving->lock);
	list_for_each_entry(queued, &leaving->queue, link)
		waits |= !!queued->passed;
	spin_unlock_irq(&leaving->lock);
	return waits;
}

/* Only a faulty call makes one of these waits end by its bound of ten seconds. */
static void end_busy(struct dma_fence *fence)
{
	struct busy_fence *busy = container_of(fence, struct busy_fence, base);
	struct ctx *ctx = busy->test->priv;
	unsigned int tries = 0;

	if (busy->reader) {
		KUNIT_EXPECT_EQ(busy->test, 1,
				atomic_read(&busy->reader->wakeups));
	} else if (busy->client) {
		while (!somebody_waits(&ctx->table->leaving) && tries++ < 500)
			msleep(20);
		KUNIT_EXPECT_LT(busy->test, tries, 500);
		KUNIT_EXPECT_EQ(busy->test, 0, fake_client_free(busy->client,
								busy->handle));
	} else {
		KUNIT_EXPECT_NE(busy->test, 0,
				wait_for_completion_timeout(busy->returned,
							    10 * HZ));
	}
	dma_fence_free(fence);
}

static const struct dma_fence_ops busy_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
	.release = end_busy,
};

/* Gives @allocation a fence that only its end takes away. */
static void keep_busy(struct kunit *test, struct flexmem_allocation *allocation,
		      struct busy_fence end)
{
	struct busy_fence *busy = kzalloc(sizeof(*busy), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, busy);
	*busy = end;
	busy->test = test;
	dma_fence_init(&busy->base, &busy_ops, &fence_lock,
		       dma_fence_context_alloc(1), 1);
	add_fence(test, allocation, &busy->base);
	dma_fence_put(&busy->base);
}

/*
 * While the worker ends the memory that waited at the reset, another file frees
 * memory. The reset does not wait for that.
 */
static void reset_waits_for_nothing_that_is_freed_later(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(returned);
	struct flexmem_client *other = open_client(test);
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *early, *late;
	struct busy_fence end = {};

	late = make_public(test, other, GIB);
	end.returned = &returned;
	keep_busy(test, late, end);
	early = make_public(test, ctx->client, GIB);
	end = (struct busy_fence){ .client = other, .handle = late->handle };
	keep_busy(test, early, end);
	free_it(test, early);
	expect_leaving(test, GIB);
	KUNIT_ASSERT_EQ(test, 0, flexmem_table_reset(ctx->table));
	complete(&returned);
	expect_leaving(test, 0);
	flexmem_client_fini(other);
	flexmem_client_put(other);
}

static void removal_ends_leaving_allocations(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct ctx *ctx = test->priv;

	free_it(test, alloc_in_flight(test, GIB, fence));
	expect_leaving(test, GIB);
	fake_table_remove(ctx->table);
	KUNIT_EXPECT_EQ(test, fence_users(fence), 1);
	signal_and_put(fence);
}

/* A reader of events need not wait until all memory in flight has ended. */
static void removal_wakes_readers_first(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct fake_reader reader;
	struct busy_fence end = { .reader = &reader };
	struct flexmem_allocation *allocation;

	allocation = make_public(test, ctx->client, GIB);
	keep_busy(test, allocation, end);
	free_it(test, allocation);
	/* Otherwise the worker, not the removal, may end the memory. */
	expect_leaving(test, GIB);
	fake_reader_add(&reader, &ctx->client->listener);
	fake_table_remove(ctx->table);
	fake_reader_remove(&reader, &ctx->client->listener);
	expect_leaving(test, 0);
}

/* Expects these bytes of a file, and returns how long the oldest has waited. */
static u64 expect_figures(struct kunit *test, struct flexmem_account *file,
			  u64 bytes, u64 least_ms)
{
	struct ctx *ctx = test->priv;
	u64 waits_ms = 0;

	KUNIT_EXPECT_EQ(test, bytes, flexmem_leaving_of(&ctx->table->leaving,
							file, &waits_ms));
	KUNIT_EXPECT_GE(test, waits_ms, least_ms);
	if (!bytes)
		KUNIT_EXPECT_EQ(test, waits_ms, 0);
	return waits_ms;
}

/* The figures are those of one file, also if it is closed. */
static void figures_say_who_waits(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = open_client(test);
	struct flexmem_account *file = other->account;
	struct dma_fence *first = make_fence(test, NULL);
	struct dma_fence *second = make_fence(test, NULL);
	struct flexmem_allocation *allocation;
	u64 waits_ms;

	allocation = make_public(test, other, GIB);
	add_fence(test, allocation, first);
	add_fence(test, allocation, second);
	add_fence(test, make_public(test, other, 2 * GIB), second);
	expect_figures(test, file, 0, 0);
	KUNIT_ASSERT_EQ(test, 0, fake_client_free(other, allocation->handle));
	expect_leaving(test, GIB);
	msleep(100);
	flexmem_client_fini(other);
	expect_leaving(test, 3 * GIB);
	expect_figures(test, file, 3 * GIB, 90);
	expect_figures(test, ctx->client->account, 0, 0);
	/* The wait for the second fence is part of the wait. */
	signal_and_put(first);
	expect_leaving(test, 3 * GIB);
	expect_figures(test, file, 3 * GIB, 90);
	free_it(test, alloc_in_flight(test, GIB, second));
	expect_leaving(test, 4 * GIB);
	/* Asked first, so that a test that is slow here finds the same. */
	waits_ms = expect_figures(test, ctx->client->account, GIB, 0);
	KUNIT_EXPECT_LT(test, waits_ms,
			expect_figures(test, file, 3 * GIB, 90));
	signal_and_put(second);
	expect_leaving(test, 0);
	expect_figures(test, ctx->client->account, 0, 0);
}

static int resize(struct kunit *test, struct flexmem_allocation *allocation,
		  u64 size)
{
	struct flexmem_resize cmd = {
		.handle = allocation->handle,
		.length = size,
	};
	struct flexmem_resizing resizing;
	struct ctx *ctx = test->priv;
	int rc;

	rc = flexmem_resize_prepare(ctx->client, &cmd, &resizing);
	if (!rc)
		flexmem_resize_commit(&resizing);
	return rc;
}

static void end_in_flight_is_not_cut_off(struct kunit *test)
{
	struct dma_fence *fence = make_fence(test, NULL);
	struct flexmem_allocation *allocation;

	allocation = alloc_in_flight(test, GIB, fence);
	KUNIT_EXPECT_EQ(test, 0, resize(test, allocation, 2 * GIB));
	KUNIT_EXPECT_EQ(test, -EBUSY, resize(test, allocation, GIB));
	KUNIT_EXPECT_EQ(test, allocation->size, 2 * GIB);
	signal_and_put(fence);
	KUNIT_EXPECT_EQ(test, 0, resize(test, allocation, GIB));
}

static void part_says_where_memory_is(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *second;
	struct flexmem_part part;

	make_public(test, ctx->client, REGION);
	make_public(test, ctx->client, GIB);
	second = make_public(test, ctx->client, 4096);
	KUNIT_ASSERT_TRUE(test, flexmem_allocation_part(second, 0, &part));
	KUNIT_EXPECT_EQ(test, part.slot, 1);
	KUNIT_EXPECT_EQ(test, part.offset, GIB);
	KUNIT_EXPECT_EQ(test, part.size, 4096);
	KUNIT_EXPECT_EQ(test, part.mem.id,
			second->chunks[0]->region->mem.id);
	KUNIT_EXPECT_EQ(test, part.mem.size, REGION);
	KUNIT_EXPECT_FALSE(test, flexmem_allocation_part(second, 1, &part));
}

/*
 * The order of &struct flexmem_table. Lockdep learns it here, so that it notices
 * any other order in a debug kernel, also one that only rare calls have.
 */
static void locks_have_an_order(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_table *table = ctx->table;
	struct flexmem_account *file = ctx->client->account;
	struct flexmem_allocation *allocation = make_public(test, ctx->client,
							    GIB);
	struct flexmem_region *region = allocation->chunks[0]->region;

	mutex_lock(&table->acquire_lock);
	mutex_lock(&table->function.data_lock);
	mutex_lock(&table->snapshot_lock);
	mutex_lock(&file->turn);
	spin_lock(&region->lock);
	spin_lock(&table->accounts.lock);
	spin_lock_irq(&table->leaving.lock);
	spin_unlock_irq(&table->leaving.lock);
	spin_unlock(&table->accounts.lock);
	spin_unlock(&region->lock);
	mutex_unlock(&file->turn);
	mutex_unlock(&table->snapshot_lock);
	mutex_unlock(&table->function.data_lock);
	mutex_unlock(&table->acquire_lock);
	KUNIT_EXPECT_EQ(test, leaving_of(test, ctx->client), 0);
}

static struct kunit_case leaving_cases[] = {
	KUNIT_CASE(freed_memory_waits_for_its_fence),
	KUNIT_CASE(alloc_after_the_signal_gets_the_memory),
	KUNIT_CASE(alloc_ends_what_its_file_has_ready),
	KUNIT_CASE(alloc_after_the_signal_gets_all),
	KUNIT_CASE(a_file_has_one_callback_on_a_fence),
	KUNIT_CASE(killed_caller_does_not_wait_for_its_turn),
	KUNIT_CASE(alloc_waits_before_it_fails),
	KUNIT_CASE(alloc_searches_again_for_what_has_left),
	KUNIT_CASE(alloc_that_waits_in_vain_says_why),
	KUNIT_CASE(killed_caller_does_not_wait_for_others),
	KUNIT_CASE(groups_come_apart_in_any_order),
	KUNIT_CASE(fence_that_has_signalled_delays_nothing),
	KUNIT_CASE(freed_memory_waits_for_all_contexts),
	KUNIT_CASE(later_job_of_a_context_replaces_the_earlier),
	KUNIT_CASE(memory_needs_neither_user_nor_fence),
	KUNIT_CASE(fence_may_signal_when_it_is_waited_for),
	KUNIT_CASE(fences_signal_in_interrupts),
	KUNIT_CASE(memory_of_a_closed_file_waits_too),
	KUNIT_CASE(driver_hears_of_close_before_memory_is_freed),
	KUNIT_CASE(driver_that_is_removed_hears_nothing),
	KUNIT_CASE(reset_ends_leaving_allocations),
	KUNIT_CASE(reset_waits_for_nothing_that_is_freed_later),
	KUNIT_CASE(removal_ends_leaving_allocations),
	KUNIT_CASE(removal_wakes_readers_first),
	KUNIT_CASE(figures_say_who_waits),
	KUNIT_CASE(end_in_flight_is_not_cut_off),
	KUNIT_CASE(part_says_where_memory_is),
	KUNIT_CASE(locks_have_an_order),
	{}
};

static struct kunit_suite leaving_suite = {
	.name = "flexmem_leaving",
	.init = client_test_init,
	.test_cases = leaving_cases,
};

kunit_test_suite(leaving_suite);
