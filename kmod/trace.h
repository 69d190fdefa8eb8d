/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events: an event for each change of state. Documentation/tracing.rst
 * shows a trace. An event costs a patched jump while no tracer enables it.
 *
 * checkpatch in this file: OPEN_ENDED_LINE - trace events have their own style
 * checkpatch in this file: PARENTHESIS_ALIGNMENT - the same
 *
 * Field "minor" is N of /dev/flexmemN; -1 before the node exists.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM flexmem

#if !defined(_FLEXMEM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _FLEXMEM_TRACE_H

#include <linux/tracepoint.h>

#include "gate/function.h"

/* Only main.c, which defines the events, needs more of these. */
struct dma_fence;
struct flexmem_account;
struct flexmem_allocation;
struct flexmem_region;

/* Room for the longest name of an operation, and a NUL. */
#define FLEXMEM_OPERATION_NAME 16

/* checkpatch: COMPLEX_MACRO - a list for __print_symbolic() */
#define FLEXMEM_STATE_NAMES			\
	{ FLEXMEM_STATE_UP, "up" },			\
	{ FLEXMEM_STATE_UNRESPONSIVE, "unresponsive" }, \
	{ FLEXMEM_STATE_SUSPENDED, "suspended" },	\
	{ FLEXMEM_STATE_WEDGED, "wedged" },		\
	{ FLEXMEM_STATE_GONE, "gone" }

/*
 * The state of a PF or VF has changed. The state decides whether flexmem calls
 * the device's driver.
 */
TRACE_EVENT(flexmem_state,
	TP_PROTO(const struct flexmem_function *function,
		 enum flexmem_state state),
	TP_ARGS(function, state),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(unsigned int, state)
	),
	TP_fast_assign(
		__entry->minor = function->minor;
		__entry->state = state;
	),
	TP_printk("minor=%d state=%s", __entry->minor,
		  __print_symbolic(__entry->state, FLEXMEM_STATE_NAMES))
);

/* The driver has answered a command. */
TRACE_EVENT(flexmem_command,
	TP_PROTO(const struct flexmem_function *function, const char *operation,
		 int rc),
	TP_ARGS(function, operation, rc),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(int, rc)
		__array(char, operation, FLEXMEM_OPERATION_NAME)
	),
	TP_fast_assign(
		__entry->minor = function->minor;
		__entry->rc = rc;
		strscpy(__entry->operation, operation, FLEXMEM_OPERATION_NAME);
	),
	TP_printk("minor=%d operation=%s rc=%d", __entry->minor,
		  __entry->operation, __entry->rc)
);

DECLARE_EVENT_CLASS(flexmem_region,
	TP_PROTO(const struct flexmem_region *region),
	TP_ARGS(region),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(unsigned int, slot)
		__field(unsigned int, domain)
		__field(u64, id)
		__field(u64, size)
	),
	TP_fast_assign(
		__entry->minor = region->table->function.minor;
		__entry->slot = region->slot;
		__entry->domain = region->mem.domain;
		__entry->id = region->id;
		__entry->size = region->mem.size;
	),
	TP_printk("minor=%d slot=%u region=%#llx domain=%u size=%llu",
		  __entry->minor, __entry->slot, __entry->id, __entry->domain,
		  __entry->size)
);

/* Allocations can use a region. */
DEFINE_EVENT(flexmem_region, flexmem_region_add,
	TP_PROTO(const struct flexmem_region *region),
	TP_ARGS(region)
);

/* Allocations cannot use the region any more. */
DEFINE_EVENT(flexmem_region, flexmem_region_remove,
	TP_PROTO(const struct flexmem_region *region),
	TP_ARGS(region)
);

DECLARE_EVENT_CLASS(flexmem_allocation,
	TP_PROTO(const struct flexmem_allocation *allocation),
	TP_ARGS(allocation),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(unsigned int, handle)
		__field(unsigned int, flags)
		__field(unsigned int, slot)
		__field(unsigned int, chunks)
		__field(u64, client)
		__field(u64, offset)
		__field(u64, size)
	),
	TP_fast_assign(
		const struct flexmem_block *chunk = allocation->chunks[0];

		__entry->minor = chunk->region->table->function.minor;
		__entry->handle = allocation->handle;
		__entry->flags = allocation->flags;
		__entry->slot = chunk->region->slot;
		__entry->chunks = allocation->nr_chunks;
		__entry->client = allocation->owner->id;
		__entry->offset = chunk->start;
		__entry->size = allocation->size;
	),
	TP_printk("minor=%d client=%llu handle=%u flags=%#x slot=%u offset=%#llx size=%llu chunks=%u",
		  __entry->minor, __entry->client, __entry->handle,
		  __entry->flags, __entry->slot, __entry->offset,
		  __entry->size, __entry->chunks)
);

/* An ALLOC has succeeded: the allocation has its address and its handle. */
DEFINE_EVENT(flexmem_allocation, flexmem_alloc,
	TP_PROTO(const struct flexmem_allocation *allocation),
	TP_ARGS(allocation)
);

/* The handle is free: FREE, close(), or an ALLOC that is undone. */
DEFINE_EVENT(flexmem_allocation, flexmem_free,
	TP_PROTO(const struct flexmem_allocation *allocation),
	TP_ARGS(allocation)
);

/* The memory waits for fences of device programs. */
DEFINE_EVENT(flexmem_allocation, flexmem_leaving,
	TP_PROTO(const struct flexmem_allocation *allocation),
	TP_ARGS(allocation)
);

/* The memory is free. */
DEFINE_EVENT(flexmem_allocation, flexmem_end,
	TP_PROTO(const struct flexmem_allocation *allocation),
	TP_ARGS(allocation)
);

/*
 * A device program uses the memory until the fence signals; then comes
 * dma_fence_signaled with the same context and seqno.
 */
TRACE_EVENT(flexmem_fence_add,
	TP_PROTO(const struct flexmem_allocation *allocation,
		 const struct dma_fence *fence),
	TP_ARGS(allocation, fence),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u64, client)
		__field(u64, offset)
		__field(u64, context)
		__field(u64, seqno)
	),
	TP_fast_assign(
		const struct flexmem_block *chunk = allocation->chunks[0];

		__entry->minor = chunk->region->table->function.minor;
		__entry->client = allocation->owner->id;
		__entry->offset = chunk->start;
		__entry->context = fence->context;
		__entry->seqno = fence->seqno;
	),
	TP_printk("minor=%d client=%llu offset=%#llx context=%llu seqno=%llu",
		  __entry->minor, __entry->client, __entry->offset,
		  __entry->context, __entry->seqno)
);

/* The device has zeroed a part of its memory, or has failed to. */
TRACE_EVENT(flexmem_scrub,
	TP_PROTO(const struct flexmem_function *function,
		 const struct flexmem_memory *mem, u64 offset, u64 size, int rc),
	TP_ARGS(function, mem, offset, size, rc),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(int, rc)
		__field(u64, id)
		__field(u64, offset)
		__field(u64, size)
	),
	TP_fast_assign(
		__entry->minor = function->minor;
		__entry->rc = rc;
		__entry->id = mem->id;
		__entry->offset = offset;
		__entry->size = size;
	),
	TP_printk("minor=%d memory=%llu offset=%#llx size=%llu rc=%d",
		  __entry->minor, __entry->id, __entry->offset, __entry->size,
		  __entry->rc)
);

/*
 * A client and the cgroups above it are charged, or a limit forbids that:
 * reason is one of enum flexmem_reason. flexmem_end says that handle and bytes are
 * not charged any more.
 */
TRACE_EVENT(flexmem_charge,
	TP_PROTO(const struct flexmem_account *account, u64 size,
		 unsigned int handles, unsigned int reason),
	TP_ARGS(account, size, handles, reason),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u64, client)
		__field(u64, size)
		__field(unsigned int, handles)
		__field(unsigned int, reason)
	),
	TP_fast_assign(
		const struct flexmem_function *function =
			account->accounts->function;

		__entry->minor = function ? function->minor : -1;
		__entry->client = account->id;
		__entry->size = size;
		__entry->handles = handles;
		__entry->reason = reason;
	),
	TP_printk("minor=%d client=%llu size=%llu handles=%u reason=%u",
		  __entry->minor, __entry->client, __entry->size,
		  __entry->handles, __entry->reason)
);

#endif /* _FLEXMEM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
