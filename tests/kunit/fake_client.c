// SPDX-License-Identifier: GPL-2.0
/* Clients without a struct file. */
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "alloc/client.h"
#include "compat.h"
#include "fake_device.h"

static void fini_client(void *data)
{
	flexmem_client_fini(data);
}

/**
 * fake_client_open - open a client, which is closed at the end of the test
 * @test: test
 * @table: table of the fake device
 * @uid: number of the client's user
 *
 * Return: the client.
 */
struct flexmem_client *fake_client_open(struct kunit *test,
					struct flexmem_table *table,
					unsigned int uid)
{
	struct flexmem_client *client;

	client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, client);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_client_init(client, table, fake_uid(uid),
					    fake_cgroup(uid), NULL));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, fini_client, client));
	return client;
}

/**
 * fake_events_deliver - deliver pending events now
 * @accounts: accounts
 */
void fake_events_deliver(struct flexmem_accounts *accounts)
{
	spin_lock(&accounts->lock);
	WRITE_ONCE(accounts->gauge.next, jiffies);
	spin_unlock(&accounts->lock);
	flush_delayed_work(&accounts->gauge.deliver);
}

/**
 * fake_events_hold - deliver no event before fake_events_deliver()
 * @accounts: accounts
 *
 * The worker is queued, so it is queued no earlier, even on a slow machine.
 */
void fake_events_hold(struct flexmem_accounts *accounts)
{
	mod_delayed_work(system_dfl_wq, &accounts->gauge.deliver, 3600 * HZ);
}

static int count_wakeup(struct wait_queue_entry *entry, unsigned int mode,
			int flags, void *key)
{
	atomic_inc(&container_of(entry, struct fake_reader, entry)->wakeups);
	return 0;
}

/**
 * fake_reader_add - wait for events of a file
 * @reader: the task that waits
 * @listener: of the file
 */
void fake_reader_add(struct fake_reader *reader,
		     struct flexmem_listener *listener)
{
	atomic_set(&reader->wakeups, 0);
	init_waitqueue_func_entry(&reader->entry, count_wakeup);
	add_wait_queue(&listener->readers, &reader->entry);
}

/**
 * fake_reader_remove - wait no longer
 * @reader: the task that waits
 * @listener: of the file
 *
 * Return: how often the task was woken up.
 */
int fake_reader_remove(struct fake_reader *reader,
		       struct flexmem_listener *listener)
{
	remove_wait_queue(&listener->readers, &reader->entry);
	return atomic_read(&reader->wakeups);
}

/**
 * fake_client_limit - limit the cgroup of a client
 * @client: client
 * @resource: what is limited
 * @limit: the limit
 */
void fake_client_limit(struct flexmem_client *client,
		       enum flexmem_resource resource, u64 limit)
{
	const struct flexmem_resource_limit cmd = {
		.resource = resource,
		.limit = limit,
	};

	flexmem_limit_set(&client->table->accounts, client->account->parent,
			  &cmd);
}

/**
 * fake_client_prepare - begin an ALLOC of one chunk
 * @client: client
 * @size: bytes
 * @alignment: of the offset
 * @flags: of enum flexmem_alloc_flags
 * @request: receives the address, or the reason on failure
 *
 * Return: what flexmem_client_prepare() returned.
 */
struct flexmem_allocation *fake_client_prepare(struct flexmem_client *client,
					       u64 size, u64 alignment,
					       u32 flags,
					       struct flexmem_request *request)
{
	*request = (struct flexmem_request) {
		.size = size,
		.alignment = alignment,
		.domains = client->table->default_domains,
		.first = client->table->default_domains,
		.flags = flags,
		.chunks = 1,
	};

	return flexmem_client_prepare(client, request);
}

/**
 * fake_client_free - free by handle, as FREE does
 * @client: client
 * @handle: handle of the allocation
 *
 * Return: 0, -ENOENT or -EBUSY.
 */
int fake_client_free(struct flexmem_client *client, u32 handle)
{
	struct flexmem_allocation *allocation;

	allocation = flexmem_client_detach(client, handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	flexmem_client_release(client, allocation);
	return 0;
}
