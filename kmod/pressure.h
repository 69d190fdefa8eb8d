/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pressure: how full a function is, who wants to know, and who waits for memory.
 */
#ifndef _FLEXMEM_PRESSURE_H
#define _FLEXMEM_PRESSURE_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/flexmem.h>

struct flexmem_accounts;

/**
 * struct flexmem_gauge - how full a function is
 * @memory: bytes it has, or could have
 * @up: with so many bytes in use the level rises
 * @down: with less in use it falls
 * @base: level of what is in use
 * @waiters: allocations that wait for memory
 * @wanted: bytes that they ask for
 * @sequence: number of the latest event
 * @news: who waits for events has not been told of the latest. Set under the lock
 * @supply: how often it may have become possible to acquire a region
 * @readers: where one waits for an event
 * @starved: where allocations wait for memory; not under the lock
 *
 * Protected by &flexmem_accounts.lock.
 */
struct flexmem_gauge {
	u64 memory;
	u64 up;
	u64 down;
	enum flexmem_pressure base;
	unsigned int waiters;
	u64 wanted;
	u64 sequence;
	bool news;
	atomic_t supply;
	wait_queue_head_t readers;
	wait_queue_head_t starved;
};

void flexmem_gauge_init(struct flexmem_gauge *gauge);
void flexmem_gauge_settle(struct flexmem_gauge *gauge, u64 in_use);
void flexmem_gauge_set_memory(struct flexmem_gauge *gauge, u64 memory,
			      u64 in_use);

/**
 * flexmem_gauge_move - other bytes than before are in use
 * @gauge: gauge
 * @in_use: how many
 *
 * Context: under &flexmem_accounts.lock.
 */
static inline void flexmem_gauge_move(struct flexmem_gauge *gauge, u64 in_use)
{
	if (unlikely(in_use >= gauge->up || in_use < gauge->down))
		flexmem_gauge_settle(gauge, in_use);
}

u64 flexmem_pressure_first(struct flexmem_accounts *accounts);
bool flexmem_pressure_is_new(struct flexmem_accounts *accounts,
			     const u64 *seen);
bool flexmem_pressure_take(struct flexmem_accounts *accounts, u64 *seen,
			   struct flexmem_event *event);
void flexmem_pressure_untake(struct flexmem_accounts *accounts, u64 *seen,
			     const struct flexmem_event *event);
void flexmem_pressure_wait_begin(struct flexmem_accounts *accounts, u64 size);
void flexmem_pressure_wait_end(struct flexmem_accounts *accounts, u64 size);
void flexmem_pressure_tell(struct flexmem_accounts *accounts);
void flexmem_pressure_supplied(struct flexmem_accounts *accounts);
void flexmem_pressure_freed(struct flexmem_accounts *accounts);
void flexmem_pressure_close(struct flexmem_accounts *accounts);

#endif /* _FLEXMEM_PRESSURE_H */
