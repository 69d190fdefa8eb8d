// SPDX-License-Identifier: GPL-2.0
/* Functions of one device to which the device gives the same memory. */

#include "liar.h"

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

	/*
	 * The device answers the peer's release with an error, so the peer
	 * keeps the memory.
	 */
	mem = peer->function.piece[0].mem;
	peer->rc = -EIO;
	KUNIT_EXPECT_EQ(test, flexmem_function_release(&peer->function, &mem),
			-EIO);
	KUNIT_EXPECT_EQ(test, acquire(test, GIB, 7 * GIB, GIB), -EIO);
	/* After a timeout the device may have taken the memory back. */
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

static struct kunit_case function_peers_test_cases[] = {
	KUNIT_CASE(grant_of_a_peers_memory_is_eio),
	KUNIT_CASE(memory_of_a_failed_peer_may_be_granted),
	KUNIT_CASE(wrong_grant_ends_no_release),
	KUNIT_CASE(memory_passes_from_peer_to_peer),
	KUNIT_CASE(other_devices_have_the_same_addresses),
	{}
};

static struct kunit_suite function_peers_suite = {
	.name = "flexmem_function_peers",
	.init = function_test_init,
	.test_cases = function_peers_test_cases,
};

kunit_test_suite(function_peers_suite);
