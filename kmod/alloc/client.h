/* SPDX-License-Identifier: GPL-2.0 */
/* A client: one open file of /dev/flexmemN with its handles. */
#ifndef _FLEXMEM_CLIENT_H
#define _FLEXMEM_CLIENT_H

#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/flexmem.h>
#include <flexmem/dispatch.h>

#include "alloc/allocation.h"
#include "alloc/handle.h"
#include "block/spare.h"
#include "tenant/account.h"

struct flexmem_space;

/* Number of trees in @by_address, a power of two. */
#define FLEXMEM_ADDRESS_TREES 128

/**
 * struct flexmem_client - an open file
 * @refs: one for the file, and one for each reference of the device's driver,
 *	which may keep it after close()
 * @is_known: the device's driver has had a reference, so it is told of close()
 * @free: frees the struct after the last reference; NULL: the caller frees it
 * @table: region table of the function; outlives the client
 * @account: the client's account; a reference is held. NULL after close()
 * @handles: allocations by handle. Its lock also protects the trees below
 * @by_address: chunks by serial number of their region and offset in it. There
 *	are many small trees, chosen by a hash, so that a look-up takes few steps
 * @mappable: mappable chunks, in one tree because mmap() finds a chunk by any
 *	of its pages; these are not in @by_address
 * @listener: which pressure events the client has read
 * @stock: freed objects that are kept for the client's next allocations
 * @space: the client's device-virtual space; NULL if it has none yet, or after
 *	close(), which takes it away under the lock of @handles
 */
struct flexmem_client {
	refcount_t refs;
	bool is_known;
	void (*free)(struct flexmem_client *client);
	struct flexmem_table *table;
	struct flexmem_account *account;
	struct flexmem_handles handles;
	struct rb_root by_address[FLEXMEM_ADDRESS_TREES];
	struct rb_root mappable;
	struct flexmem_listener listener;
	struct flexmem_stock stock;
	struct flexmem_space *space;
};

int flexmem_client_init(struct flexmem_client *client,
			struct flexmem_table *table, kuid_t uid,
			struct cgroup *cgroup, struct pid *pid);
void flexmem_client_fini(struct flexmem_client *client);

struct flexmem_allocation *
flexmem_client_prepare(struct flexmem_client *client,
		       struct flexmem_request *request);
void flexmem_client_publish(struct flexmem_client *client,
			    struct flexmem_allocation *allocation);
void flexmem_client_release(struct flexmem_client *client,
			    struct flexmem_allocation *allocation);

struct flexmem_allocation *flexmem_client_find(struct flexmem_client *client,
					       u32 handle);
struct flexmem_allocation *
flexmem_client_detach(struct flexmem_client *client, u32 handle);
struct flexmem_allocation *
flexmem_client_detach_address(struct flexmem_client *client,
			      const struct flexmem_address *address);

struct flexmem_block *
flexmem_client_get_mapped(struct flexmem_client *client, u64 map_offset);

int flexmem_client_lookup(struct flexmem_client *client, u32 handle,
			  struct flexmem_lookup *out);
u32 flexmem_client_handle(struct flexmem_client *client,
			  const struct flexmem_allocation *allocation);

u64 flexmem_client_used(struct flexmem_client *client);

#endif /* _FLEXMEM_CLIENT_H */
