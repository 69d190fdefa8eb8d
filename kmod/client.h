/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client: one open file of /dev/flexmemN, the handles it has been given, and
 * what its close gives back.
 */
#ifndef _FLEXMEM_CLIENT_H
#define _FLEXMEM_CLIENT_H

#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <linux/flexmem.h>

#include "placement.h"
#include "slot.h"

struct flexmem_table;

/**
 * struct flexmem_allocation - what one ALLOC made
 * @handle: its name
 * @flags: of enum flexmem_alloc_flags
 * @region: region of @block; stays as long as the block is occupied
 * @block: block
 * @by_address: in &flexmem_client.by_address while it is published
 *
 * Nothing but @by_address changes after it has been made.
 */
struct flexmem_allocation {
	u32 handle;
	u32 flags;
	struct flexmem_region *region;
	struct flexmem_block *block;
	struct rb_node by_address;
};

/**
 * struct flexmem_client - an open file
 * @table: region table of the function
 * @lease: its lease on the segment table
 * @handles: allocations by handle. Its xa_lock protects what follows; it is a
 *	leaf, never held together with any other lock. A handle that is being
 *	made or being freed is reserved: an entry that look-ups do not find.
 * @by_address: allocations by region_id and offset
 * @next_handle: where the search for a handle begins: they are given out
 *	cyclically, so that one that was freed is not soon another's
 * @nr_handles: handles given out or reserved
 * @nr_published: allocations in @handles
 * @used: bytes in them
 * @peak: the most that @used ever was
 */
struct flexmem_client {
	struct flexmem_table *table;
	struct flexmem_lease_hold lease;
	struct xarray handles;
	struct rb_root by_address;
	u32 next_handle;
	u32 nr_handles;
	u32 nr_published;
	u64 used;
	u64 peak;
};

int flexmem_client_init_caches(void);
void flexmem_client_exit_caches(void);

void flexmem_client_init(struct flexmem_client *client,
			 struct flexmem_table *table);
void flexmem_client_fini(struct flexmem_client *client);

struct flexmem_allocation *
flexmem_client_prepare(struct flexmem_client *client, u64 size, u64 alignment,
		       u32 flags, struct flexmem_place *place);
void flexmem_client_publish(struct flexmem_client *client,
			    struct flexmem_allocation *allocation);
void flexmem_client_abort(struct flexmem_client *client,
			  struct flexmem_allocation *allocation);

struct flexmem_allocation *
flexmem_client_detach(struct flexmem_client *client, u32 handle);
struct flexmem_allocation *
flexmem_client_detach_address(struct flexmem_client *client,
			      const struct flexmem_address *address);

int flexmem_client_lookup(struct flexmem_client *client, u32 handle,
			  struct flexmem_lookup *out);
void flexmem_client_usage(struct flexmem_client *client,
			  struct flexmem_stats *out);
struct flexmem_address
flexmem_allocation_address(const struct flexmem_allocation *allocation);
const char *flexmem_client_check(struct flexmem_client *client);

#endif /* _FLEXMEM_CLIENT_H */
