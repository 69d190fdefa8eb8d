/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client: one open file of /dev/flexmemN, the handles it has been given, and
 * what its close gives back.
 */
#ifndef _FLEXMEM_CLIENT_H
#define _FLEXMEM_CLIENT_H

#include <linux/align.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>
#include <linux/flexmem.h>

#include "account.h"
#include "block.h"
#include "placement.h"
#include "slot.h"

struct flexmem_table;

/**
 * struct flexmem_allocation - what one ALLOC made
 * @refs: its handle, each CPU map, and each copy under way. Who drops the last
 *	one gives the block back
 * @client: whose it is: an open file, which a map or a copy keeps open
 * @orphaned: the handle was freed while there were other references
 * @handle: its name
 * @flags: of enum flexmem_alloc_flags
 * @size: bytes; changes under the lock of the handles, and only while nobody has
 *	another reference
 * @resizing: its size is about to change: nobody gets another reference. Under
 *	that lock, too
 * @region: region of @block; stays as long as the block is occupied
 * @block: block
 * @by_address: in &flexmem_client.by_address while it is published
 *
 * Nothing but @refs, @orphaned, @size, @resizing and @by_address changes after it
 * has been made.
 */
struct flexmem_allocation {
	refcount_t refs;
	struct flexmem_client *client;
	bool orphaned;
	u32 handle;
	u32 flags;
	u64 size;
	bool resizing;
	struct flexmem_region *region;
	struct flexmem_block *block;
	struct rb_node by_address;
};

/**
 * struct flexmem_client - an open file
 * @table: region table of the function
 * @account: what it is charged; a reference is held
 * @lease: its lease on the segment table
 * @handles: allocations by handle. Its xa_lock protects what follows; it is a
 *	leaf, never held together with any other lock. A handle that is being
 *	made or being freed is reserved: an entry that look-ups do not find.
 * @strict: its bytes are its own, and not its user's
 * @by_address: allocations by serial number of the region, and offset: those in
 *	a region that was lost cannot be mistaken for others
 * @next_handle: where the search for a handle begins: they are given out
 *	cyclically, so that one that was freed is not soon another's
 * @nr_handles: handles given out or reserved
 * @nr_published: allocations in @handles
 * @used: bytes in them, those that were lost included
 * @peak: the most that @used ever was
 */
struct flexmem_client {
	struct flexmem_table *table;
	struct flexmem_account *account;
	struct flexmem_lease_hold lease;
	struct xarray handles;
	bool strict;
	struct rb_root by_address;
	u32 next_handle;
	u32 nr_handles;
	u32 nr_published;
	u64 used;
	u64 peak;
};

/* What starts and lengths are rounded to: no page is shared if it is mapped. */
static inline u64 flexmem_granule_of(u32 flags)
{
	return flags & FLEXMEM_ALLOC_MAPPABLE ? PAGE_SIZE : FLEXMEM_ALIGN;
}

/* Rounded up; what is beyond all rounding is beyond all regions, too. */
static inline u64 flexmem_round_length(u32 flags, u64 length)
{
	u64 granule = flexmem_granule_of(flags);

	return length > ALIGN_DOWN(U64_MAX, granule) ?
		ALIGN_DOWN(U64_MAX, granule) : ALIGN(length, granule);
}

int flexmem_client_init_caches(void);
void flexmem_client_exit_caches(void);

int flexmem_client_init(struct flexmem_client *client,
			struct flexmem_table *table, kuid_t uid,
			struct pid *pid);
void flexmem_client_fini(struct flexmem_client *client);

struct flexmem_allocation *
flexmem_client_prepare(struct flexmem_client *client, u64 size, u64 alignment,
		       u32 flags, struct flexmem_place *place);
int flexmem_client_clean(struct flexmem_client *client,
			 struct flexmem_region *region,
			 struct flexmem_block *block, u32 flags);
void flexmem_client_publish(struct flexmem_client *client,
			    struct flexmem_allocation *allocation);
void flexmem_client_abort(struct flexmem_client *client,
			  struct flexmem_allocation *allocation);

struct flexmem_allocation *
flexmem_client_detach(struct flexmem_client *client, u32 handle);
struct flexmem_allocation *
flexmem_client_detach_address(struct flexmem_client *client,
			      const struct flexmem_address *address);

struct flexmem_allocation *flexmem_client_get(struct flexmem_client *client,
					      u32 handle);
struct flexmem_allocation *
flexmem_client_get_mapped(struct flexmem_client *client, u64 map_offset);
void flexmem_allocation_get(struct flexmem_allocation *allocation);
void flexmem_allocation_put(struct flexmem_allocation *allocation);
u64 flexmem_allocation_map_offset(const struct flexmem_allocation *allocation);
int flexmem_client_set_strict(struct flexmem_client *client);

int flexmem_client_lookup(struct flexmem_client *client, u32 handle,
			  struct flexmem_lookup *out);
void flexmem_client_usage(struct flexmem_client *client,
			  struct flexmem_stats *out);
struct flexmem_address
flexmem_allocation_address(const struct flexmem_allocation *allocation);
const char *flexmem_client_check(struct flexmem_client *client);

#endif /* _FLEXMEM_CLIENT_H */
