/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For device drivers that run programs in memory of flexmem: how to find the
 * client of a file of /dev/flexmemN and the memory of a handle, and how to keep
 * the memory while the device uses it.
 *
 * A dispatch names handles of one client, or of several: those of all memory
 * that the job reaches by physical addresses or by slots, also through
 * addresses in a program's binary. The driver
 *
 * 1. gets the client (flexmem_client_from_fd()) and each allocation
 *    (flexmem_client_allocation()),
 * 2. adds the job's fence to each allocation (flexmem_allocation_add_fence()),
 *    before the device can see the job,
 * 3. takes the lock that its @quiesce operation takes too, checks each
 *    allocation with flexmem_allocation_error(), reads their addresses
 *    (flexmem_allocation_part()), and queues the job, or signals its fence with
 *    an error,
 * 4. puts its references. From here on the fence keeps the memory.
 *
 * If the owner frees memory (by FREE, by close(), or by the end of its
 * process), the memory is *leaving* until the last fence of the memory has
 * signalled. Leaving memory is still charged. It is not scrubbed, and serves no
 * allocation. So a fence must not signal before the device has stopped reading
 * and writing the memory of the job. Fences of one context must signal in
 * order, including fences of jobs that fail or are dropped, because flexmem
 * knows only the latest fence of each context. A driver signals all fences of a
 * function, with an error, before @quiesce or @reset returns 0. A driver puts
 * all references to allocations before it calls flexmem_device_unregister().
 *
 * Some firmware reads the segment table when a job begins, and some programs
 * contain numbers of slots. The fences keep this safe too: a region with an
 * allocation that a job uses is not empty, and only an empty region leaves its
 * slot.
 *
 * A driver whose jobs name no memory at all cannot add fences. It keeps the
 * regions of the client in their slots with flexmem_client_hold(), from before
 * it queues the job until the job has ended (flexmem_regions_unhold()). During
 * the hold only a reset or the removal of the function empties these slots.
 * TRIM leaves held regions out. A hold keeps slots only: flexmem does not know
 * which bytes the job uses, and reuses what the client frees, also for other
 * clients. So such a driver is only for functions whose clients trust each
 * other.
 *
 * On a device with page tables a program uses addresses of its client's space
 * (flexmem_client_space()).
 *
 * Every fence signals in finite time, whatever the program does: flexmem waits
 * for a fence without end, and freed memory stays charged as long. So a driver
 * has a watchdog. When a job has run too long, the watchdog ends it, and its
 * fence signals with -ETIMEDOUT. If the device cannot end a single job, the
 * watchdog calls flexmem_device_reset(), which costs all clients of the function
 * their memory.
 */
#ifndef _FLEXMEM_DISPATCH_H
#define _FLEXMEM_DISPATCH_H

#include <linux/types.h>
#include <flexmem/device_ops.h>

struct dma_fence;
struct flexmem_allocation;
struct flexmem_client;
struct flexmem_dev;

/**
 * struct flexmem_part - address of a part of an allocation
 * @mem: the device memory that contains the part
 * @slot: the entry of the firmware's table that points at @mem; VF only
 * @offset: offset of the part in @mem
 * @size: bytes
 */
struct flexmem_part {
	struct flexmem_memory mem;
	unsigned int slot;
	u64 offset;
	u64 size;
};

/**
 * struct flexmem_hold - regions that keep their slots
 * @slots: bit mask of the slots
 * @generation: generation of the segment table at the time of the hold. A
 *	region that got a slot later is not held
 */
struct flexmem_hold {
	u64 slots;
	u64 generation;
};

struct flexmem_client *flexmem_client_from_fd(struct flexmem_dev *fdev, int fd);
void flexmem_client_get(struct flexmem_client *client);
void flexmem_client_put(struct flexmem_client *client);
struct flexmem_allocation *
flexmem_client_allocation(struct flexmem_client *client, u32 handle);
void flexmem_allocation_put(struct flexmem_allocation *allocation);
bool flexmem_allocation_part(const struct flexmem_allocation *allocation,
			     unsigned int index, struct flexmem_part *part);
int flexmem_allocation_error(const struct flexmem_allocation *allocation);
u64 flexmem_client_space(struct flexmem_client *client);
struct flexmem_hold flexmem_client_hold(struct flexmem_client *client);
void flexmem_regions_unhold(struct flexmem_dev *fdev,
			    const struct flexmem_hold *hold);
int flexmem_allocation_add_fence(struct flexmem_allocation *allocation,
				 struct dma_fence *fence);

#endif /* _FLEXMEM_DISPATCH_H */
