/* SPDX-License-Identifier: GPL-2.0 */
/* The device-virtual address space of a client. */
#ifndef _FLEXMEM_SPACE_H
#define _FLEXMEM_SPACE_H

#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/flexmem.h>

#include "block/block.h"
#include "gate/function.h"
#include "region/job.h"

struct flexmem_client;

/**
 * struct flexmem_space - the device-virtual address space of a client
 * @refs: one for the client, and one for each job
 * @table: region table of the function
 * @vm: the space, as the device knows it
 * @closing: work that unmaps everything when the client ends the space
 * @lock: protects the members below; a leaf
 * @blocks: the addresses, counted from the first one that can be mapped. A
 *	reserved range is an occupied block
 * @ranges: the occupied blocks, by start
 * @by_address: &flexmem_binding.addresses
 * @by_bytes: &flexmem_binding.bytes, by allocation and offset
 * @nr_bindings: number of bindings whose memory is not freed yet
 */
struct flexmem_space {
	refcount_t refs;
	struct flexmem_table *table;
	struct flexmem_vm vm;
	struct work_struct closing;
	spinlock_t lock; /* protects the members below */
	struct flexmem_blocks blocks;
	struct rb_root ranges;
	struct rb_root by_address;
	struct rb_root by_bytes;
	u64 nr_bindings;
};

/**
 * struct flexmem_span - adjacent addresses of a space, or bytes of an allocation
 * @node: in a tree of spans that do not overlap
 * @of: the space or the allocation
 * @start: first address or byte
 * @size: number of addresses or bytes
 */
struct flexmem_span {
	struct rb_node node;
	const void *of;
	u64 start;
	u64 size;
};

/**
 * enum flexmem_binding_state - what is known about a binding
 * @FLEXMEM_BINDING_BUSY: a job maps or unmaps the bytes
 * @FLEXMEM_BINDING_BOUND: all bytes are mapped
 * @FLEXMEM_BINDING_UNKNOWN: some bytes may be mapped
 */
enum flexmem_binding_state {
	FLEXMEM_BINDING_BUSY,
	FLEXMEM_BINDING_BOUND,
	FLEXMEM_BINDING_UNKNOWN,
};

/**
 * struct flexmem_binding - bytes of an allocation at addresses of a space
 * @space: space
 * @allocation: allocation; a reference is held
 * @addresses: in &flexmem_space.by_address
 * @bytes: in &flexmem_space.by_bytes
 * @access: of enum flexmem_va_access
 * @state: under the lock of the space
 * @mapped: how many bytes may be mapped, from the first on; only @job changes it
 * @job: for the command under way
 */
struct flexmem_binding {
	struct flexmem_space *space;
	struct flexmem_allocation *allocation;
	struct flexmem_span addresses;
	struct flexmem_span bytes;
	u32 access;
	enum flexmem_binding_state state;
	u64 mapped;
	struct flexmem_job job;
};

struct flexmem_space *flexmem_client_make_space(struct flexmem_client *client);
struct flexmem_space *flexmem_space_open(struct flexmem_table *table);
void flexmem_space_put(struct flexmem_space *space);
void flexmem_space_close(struct flexmem_space *space);
int flexmem_space_reserve(struct flexmem_space *space,
			  struct flexmem_va_reserve *cmd);
int flexmem_space_free(struct flexmem_space *space, u64 address);
int flexmem_space_bind(struct flexmem_space *space,
		       struct flexmem_allocation *allocation,
		       const struct flexmem_va_bind *cmd);
int flexmem_space_unbind(struct flexmem_space *space, u64 address);
struct flexmem_allocation *
flexmem_space_lookup(struct flexmem_space *space,
		     const struct flexmem_allocation *allocation,
		     struct flexmem_va_lookup *cmd);

#endif /* _FLEXMEM_SPACE_H */
