/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device contract between the driver of an accelerator and flexmem.
 *
 * This is the only header of flexmem.ko that a device driver includes. One
 * &struct flexmem_dev stands for one function (PF or VF), and stays while files
 * of the function are open, even after the driver is gone. flexmem calls the
 * driver's operations only between the call of flexmem_device_register() and
 * the return of flexmem_device_unregister().
 */
#ifndef _FLEXMEM_DEVICE_OPS_H
#define _FLEXMEM_DEVICE_OPS_H

#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/flexmem.h>

struct device;
struct flexmem_client;
struct flexmem_dev;

/**
 * struct flexmem_memory - device memory acquired as one piece
 * @id: number that flexmem gives the memory: not 0, and never used again while
 *	flexmem.ko is loaded
 * @domain: number of the domain, from 0 on
 * @base: physical address of the first byte on the device, aligned to 1 GiB, or
 *	to the granule if @size is less than 1 GiB. Two domains have no address
 *	in common. Users of a PF see @base as region_id; users of a VF never see
 *	it.
 * @size: bytes, exactly as requested
 * @cookie: the driver's own value, not used by flexmem
 *
 * @base and @cookie are 0 until the driver has answered. If the acquisition was
 * not answered, @release gets only @id, @domain and @size.
 */
struct flexmem_memory {
	u64 id;
	unsigned int domain;
	u64 base;
	u64 size;
	u64 cookie;
};

/**
 * struct flexmem_frames - page frames through which the CPU reaches a part of
 *	&struct flexmem_memory
 * @offset: offset of the part in that memory, a multiple of 4096
 * @size: bytes, a multiple of 4096
 * @pfn: number of the frame of the first 4096 bytes; the following frames have
 *	the following numbers
 */
struct flexmem_frames {
	u64 offset;
	u64 size;
	unsigned long pfn;
};

/**
 * enum flexmem_vm_access - what programs may do with mapped memory
 * @FLEXMEM_VM_READ: read the memory
 * @FLEXMEM_VM_WRITE: write to the memory
 * @FLEXMEM_VM_EXECUTE: run the memory as code
 *
 * A device that cannot tell two accesses apart may allow both.
 */
enum flexmem_vm_access {
	FLEXMEM_VM_READ = 1 << 0,
	FLEXMEM_VM_WRITE = 1 << 1,
	FLEXMEM_VM_EXECUTE = 1 << 2,
};

/**
 * struct flexmem_vm_range - addresses of a device-virtual space
 * @space: number that flexmem gives the space, which belongs to one function:
 *	not 0, and never used for another space while flexmem.ko is loaded
 * @address: address of the first byte
 * @size: bytes, not 0
 *
 * @address and @size are multiples of &struct flexmem_device_desc.vm_page, and
 * the range lies between @vm_start and @vm_end of that struct.
 *
 * No operation creates or destroys a space. The device need not remember a
 * space without mappings; a program that runs in it faults on every address.
 * A dispatch is a request that starts a program on the device. It names the
 * space that the program runs in. Driver and users agree on the form of a
 * dispatch.
 * The driver must ensure that a user dispatches only into its own spaces.
 */
struct flexmem_vm_range {
	u64 space;
	u64 address;
	u64 size;
};

/**
 * struct flexmem_device_ops - operations of a device
 *
 * Every operation may sleep. One that returns an errno may fail and may time
 * out. It waits killably (-EINTR), and no longer than a time that the driver
 * chooses (a second is plenty). flexmem calls one operation at a time for each
 * function, with two exceptions: one of @scrub, @read, @write, @copy and
 * @client_gone may run beside one of the others, and @fault beside any.
 *
 * Outcomes. 0: done. -ETIMEDOUT or -EINTR: unknown; the device may have carried
 * out the operation, or may still do so. Any other error: nothing was done, and
 * nothing will be done later (for @slot_set and @vm_map flexmem relies on that
 * only after -ENOSPC).
 *
 * -ENOTRECOVERABLE: the driver cannot stop the device, so bytes may still move:
 * in device memory, or in the buffer of @read or @write. The function has
 * failed, as after flexmem_device_failed(): flexmem begins no operation until
 * the driver calls flexmem_device_reset(). flexmem keeps the buffer until
 * @reset has succeeded. If the driver is removed without a reset, the buffer is
 * never freed.
 *
 * Repetition. The driver does not keep track of unknown outcomes, and undoes
 * nothing. Before an operation that depends on an unknown outcome, flexmem
 * releases the @id that it tried to acquire, clears the slot that it tried to
 * set or to clear, repeats a release or a quiesce, or resets the function.
 * Before flexmem acquires memory, it retries all such commands, and acquires
 * nothing while one of them is not answered. If no caller acquires memory,
 * flexmem retries the commands after a second, and then at growing intervals,
 * all commands of a function at the same time. Memory that the device refuses
 * to take back does not block other memory. If something may still be mapped in
 * a range after a failed @vm_map or @vm_unmap, flexmem unmaps the range. Only
 * after that does it map anything else there, or give the memory to another
 * owner. So every operation must be repeatable: it describes a state, and
 * succeeds if that state is reached already (except @slot_set and @vm_map, which
 * are undone instead). The device carries out the requests of one PF or VF in
 * the order in which they were sent, and may drop some. After the answer to a
 * request, no earlier request has an effect any more.
 *
 * Data is different. After a failed @scrub, @write or @copy the bytes in the
 * target range may have any value. But once the operation has returned, the
 * target range must not change any more, except after -ENOTRECOVERABLE. The
 * same holds for the buffer of a failed @read.
 *
 * Clearing. flexmem clears memory with @scrub in three cases. It clears newly
 * acquired memory before a slot makes it addressable, whatever the device has
 * done to that memory. It clears bytes before they get another owner. It clears
 * memory before @release, but after @slot_clear or @drain; this last step is
 * left out if the device clears memory that it takes back (&struct
 * flexmem_device_desc.clears). Memory that cannot be cleared is not released:
 * flexmem tries again, and a reset takes the memory back. On removal flexmem
 * clears nothing, because the firmware may be dead. After a removal the driver
 * of the PF clears released memory before another function can acquire it.
 *
 * Errors in addition to those named below: -ETIMEDOUT, -EIO, -EINTR, -ENODEV,
 * -ENOMEM (of the kernel, not of the device), -ENOTRECOVERABLE.
 *
 * flexmem checks every answer. Memory of another size or alignment, memory that
 * overlaps other memory of the function or of the device (&struct
 * flexmem_device_desc.device), and any other error become -EIO for the caller
 * and a message in the log. Wrong memory is neither used nor released; a reset
 * recovers it.
 */
struct flexmem_device_ops {
	/**
	 * @acquire: acquire @size bytes (a multiple of the granule) of the
	 * domain @mem->domain under the name @mem->id, and fill in the other
	 * members of @mem. If the function has memory of that id, return that
	 * memory. -ENOSPC: the domain has no contiguous free memory of that
	 * size, or the function's capacity is reached; flexmem may try a
	 * smaller size.
	 */
	int (*acquire)(void *priv, u64 size, struct flexmem_memory *mem);

	/**
	 * @release: release memory: afterwards the function has no memory of
	 * that id. No slot points at it, and it is mapped in no space. If this
	 * returns 0, no access to the memory is in flight. The paragraph
	 * "Clearing" above says which side clears the memory.
	 */
	int (*release)(void *priv, const struct flexmem_memory *mem);

	/**
	 * @slot_set: make memory addressable through an empty entry of the
	 * firmware's table. -ENOSPC: the firmware does not permit the use of
	 * this entry, which is still empty. After any other error flexmem calls
	 * @slot_clear for the entry before it releases @mem or uses the entry
	 * again. VF only, NULL on a PF.
	 */
	int (*slot_set)(void *priv, unsigned int slot,
			const struct flexmem_memory *mem);

	/**
	 * @slot_clear: make sure that an entry is empty. If this returns 0, no
	 * access through the entry is in flight: reads have ended, and writes
	 * have reached the memory. VF only, NULL on a PF.
	 */
	int (*slot_clear)(void *priv, unsigned int slot);

	/**
	 * @drain: wait for the accesses to device memory that programs of this
	 * function have begun. The programs go on. Called before flexmem
	 * clears and releases memory in which no allocation is left. Not
	 * called on removal, after @quiesce. NULL on a VF, because @slot_clear
	 * drains there. NULL on a PF means that each program has a fence, and
	 * that no access of a program is in flight after its fence has
	 * signalled.
	 */
	int (*drain)(void *priv);

	/**
	 * @quiesce: make sure that no running or queued program of this
	 * function reaches device memory any more, and that none begins before
	 * @reset. If the function holds memory, flexmem calls this on removal
	 * and before @reset: after the removal of all CPU mappings, and before
	 * the release of memory. After @quiesce flexmem calls only
	 * @slot_clear, @vm_unmap, @release, @capacity and @reset. @quiesce is
	 * required, because released memory may soon belong to another tenant,
	 * and no program may still write to it then. @quiesce has nothing to
	 * do if the firmware runs no programs, or if @slot_clear and @release
	 * wait for the programs. If @quiesce fails, no memory is released
	 * before a reset.
	 */
	int (*quiesce)(void *priv);

	/**
	 * @capacity: get the bytes of a domain that this function may acquire
	 * in total. They include memory that the function has, but no bytes
	 * that the device keeps for itself. flexmem also calls this to probe a
	 * function that does not answer, so the driver must ask the firmware
	 * each time.
	 */
	int (*capacity)(void *priv, unsigned int domain, u64 *bytes);

	/**
	 * @scrub: zero @size bytes of @mem from @offset on, both multiples of
	 * 128. At most FLEXMEM_SCRUB_MAX at a time. No function can be
	 * registered without this operation.
	 */
	int (*scrub)(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size);

	/**
	 * @read: copy @size bytes, at most FLEXMEM_RW_MAX, out of the device to
	 * @to. That buffer is contiguous kernel memory, which dma_map_single()
	 * accepts. If this returns 0, the user gets the whole buffer as it is
	 * at that moment. NULL if and only if @write is NULL.
	 */
	int (*read)(void *priv, const struct flexmem_memory *mem, u64 offset,
		    u64 size, void *to);

	/**
	 * @write: copy into the device; @from is a buffer as in @read.
	 */
	int (*write)(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size, const void *from);

	/**
	 * @copy: copy @size bytes from @from to @to, without the CPU. @from may
	 * be @to. @to_offset, @from_offset and @size are multiples
	 * of 128, because every allocation begins and ends at such a multiple.
	 * So the device never has to write a part of a unit of 128 bytes that
	 * another allocation shares. The two ranges do not overlap, so the
	 * device may copy in any order. At most FLEXMEM_COPY_MAX at a time.
	 * NULL: the device cannot copy.
	 */
	int (*copy)(void *priv, const struct flexmem_memory *to, u64 to_offset,
		    const struct flexmem_memory *from, u64 from_offset,
		    u64 size);

	/**
	 * @fault: find the page frames for the 4096 bytes of @mem at @offset,
	 * and for their neighbours. @frames names the range that flexmem would
	 * map at once: bytes of one allocation, at most 2 MiB, between two
	 * multiples of 2 MiB. If the frames of the range are contiguous, the
	 * driver only sets the first frame. Otherwise the driver also narrows
	 * the range to a contiguous part that contains @offset. Called in a
	 * page fault, under the mmap_lock of the current task. May allocate.
	 * Must not wait for firmware, and must not take a lock that is ever
	 * held across a copy from or to user space. The frames stay valid until
	 * @release, @reset or flexmem_device_suspend(); flexmem removes every
	 * mapping before these. -ENOMEM, or -EIO for an offset without a frame.
	 * NULL: the CPU cannot map this memory.
	 */
	int (*fault)(void *priv, const struct flexmem_memory *mem, u64 offset,
		     struct flexmem_frames *frames);

	/**
	 * @vm_map: map @range->size bytes of @mem, from @offset (a multiple of
	 * the page size) on, at the addresses of @range. Programs of this
	 * function may make the accesses in @access (enum flexmem_vm_access).
	 * Before the call nothing is mapped in @range. The same memory may be
	 * mapped at other addresses too, in this space or in others. After a
	 * success programs reach the memory at these addresses, even if the
	 * device has cached older mappings. The memory stays mapped while the
	 * device is suspended. -ENOSPC: there is no room for the page table,
	 * and no part of @range is mapped. After any other error a part may be
	 * mapped, and flexmem calls @vm_unmap for @range. Before that succeeds
	 * or @reset is called, flexmem maps nothing else in @range, and neither
	 * releases @mem nor gives its bytes to another owner.
	 *
	 * The commands VA_BIND and VA_UNBIND call these two operations. Both
	 * are NULL for a device without page tables.
	 */
	int (*vm_map)(void *priv, const struct flexmem_vm_range *range,
		      const struct flexmem_memory *mem, u64 offset,
		      unsigned int access);

	/**
	 * @vm_unmap: make sure that nothing is mapped in @range. Each mapping
	 * that flexmem has made lies wholly inside the range or wholly outside,
	 * so a device need not split mappings. If the range cuts a mapping
	 * nevertheless, the device unmaps the whole mapping, and does not
	 * refuse. After a success no program reaches the memory at these
	 * addresses any more, whatever the device has cached, and no access to
	 * it through them is in flight: reads have ended, and writes have
	 * reached the memory. An access by a program that still runs faults.
	 * Called before @release of mapped memory, even after @quiesce. When a
	 * file is closed, @range is the whole space. A @reset leaves nothing
	 * mapped. If @vm_unmap fails, the user repeats it; for a closed file
	 * flexmem repeats it, at growing intervals, until it succeeds.
	 */
	int (*vm_unmap)(void *priv, const struct flexmem_vm_range *range);

	/**
	 * @client_gone: a client whose file the driver has looked up
	 * (flexmem_client_from_fd()) has closed the file, by close() or because
	 * its process ended. Called once, before any memory of the client is
	 * freed, in any state of the function. The driver sends no command
	 * here. It drops the jobs of the client that the device has not begun,
	 * and ends the others if the device can do that. Otherwise the driver's
	 * watchdog ends jobs that do not end by themselves. The client's memory
	 * stays charged until the fences of its jobs have signalled. NULL: the
	 * driver need not know.
	 */
	void (*client_gone)(void *priv, struct flexmem_client *client);

	/**
	 * @reset: bring the function back to the state after power-on: no
	 * memory, an empty table, nothing mapped, and no program. @reset also
	 * ends the programs that a failed @quiesce did not end.
	 * flexmem_device_register() calls @reset before any other operation,
	 * because an earlier driver or kernel may have left the device in any
	 * state. flexmem_device_reset() calls @reset too. NULL: the function
	 * cannot be reset, and is in the state after power-on when the driver
	 * registers it.
	 */
	int (*reset)(void *priv);
};

/*
 * Limits of @scrub, of @read and @write, and of @copy. A copy of
 * FLEXMEM_COPY_MAX is long enough to hide the cost of the command, and short
 * enough for other tasks that wait to move data.
 */
#define FLEXMEM_SCRUB_MAX ((u64)SZ_1G)
#define FLEXMEM_RW_MAX SZ_64K
#define FLEXMEM_COPY_MAX ((u64)SZ_16M)

/**
 * enum flexmem_caching - how the CPU reaches memory that it can map
 * @FLEXMEM_UNCACHED: each access goes to the device
 * @FLEXMEM_WRITE_COMBINED: writes may be gathered, and nothing is cached: a
 *	prefetchable BAR
 * @FLEXMEM_CACHED: like the CPU's own memory: the device takes part in cache
 *	coherence
 *
 * x86 keeps one memory type for each physical range, which overrides the type
 * of a mapping. For write-combining the driver reserves the range
 * (devm_arch_io_reserve_memtype_wc()).
 */
enum flexmem_caching {
	FLEXMEM_UNCACHED,
	FLEXMEM_WRITE_COMBINED,
	FLEXMEM_CACHED,
};

/**
 * struct flexmem_domain_desc - description of a domain
 * @type: type of the memory
 * @granule: granule of the domain; 0: the granule of &struct
 *	flexmem_device_desc
 * @set_aside: bytes that the device keeps for itself: @acquire never gives them
 *	out, and @capacity does not count them. For information only
 * @nr_sizes: number of @sizes; 0: the sizes of &struct flexmem_device_desc
 * @sizes: sizes of new regions in bytes, in the order they are tried; multiples
 *	of the granule. The administrator cannot change them
 *
 * A capacity that is no sum of these sizes is used up, too: if no size that a
 * request needs fits, one more, shorter region takes the rest, in granules. So
 * @acquire is called with any multiple of the granule below the largest size.
 */
struct flexmem_domain_desc {
	enum flexmem_domain_type type;
	u64 granule;
	u64 set_aside;
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
};

/**
 * struct flexmem_device_desc - description of a function
 * @name: name of the device, shown to users; 1 to 31 characters
 * @mode: PF or VF
 * @slots: entries of the firmware's table, 1 to 64. VF only; 0 for a PF.
 * @granule: acquired sizes are multiples of this; a power of two, 4 KiB to 1
 *	GiB
 * @vm_page: page size of device-virtual spaces; a power of two, 4 KiB to the
 *	granule; 0 without @vm_map
 * @vm_start: first address that can be mapped in these spaces; a multiple of
 *	@vm_page, not 0; 0 without @vm_map
 * @vm_end: end of the addresses that can be mapped, exclusive; a multiple of
 *	@vm_page above @vm_start; 0 without @vm_map. If the addresses have a
 *	hole in the middle, @vm_start and @vm_end lie on one side of the hole.
 *	The last page of a 64-bit space cannot be mapped
 * @caching: how CPU mappings of the function's memory are cached
 * @clears: the device, or the driver of the PF, clears memory before another
 *	function gets it
 * @device: the same for all functions of a device, and for no function of
 *	another device; pci_physfn() of a PCI driver. flexmem then refuses
 *	memory that another function of the device holds, so the addresses of
 *	all these functions must be of one address space. If the device loses
 *	the memory of several functions at once, the driver calls
 *	flexmem_device_failed() for all of them before it resets any of them.
 *	NULL: flexmem compares nothing with other functions
 * @order: in which order allocations try the regions; 0:
 *	FLEXMEM_ORDER_FILL_FIRST on a VF and FLEXMEM_ORDER_LOAD_BALANCE on a PF
 * @nr_sizes: number of @sizes; 0: 12 GiB, 8 GiB and 4 GiB
 * @sizes: sizes of new regions in bytes, in the order they are tried; multiples
 *	of @granule
 * @nr_domains: number of @domains, up to FLEXMEM_MAX_DOMAINS; 0: all of the
 *	function's memory is one domain of type FLEXMEM_DOMAIN_DEVICE
 * @domains: descriptions of the domains, which flexmem copies. The first one
 *	has type FLEXMEM_DOMAIN_DEVICE
 * @ops: operations; must stay valid until flexmem_device_unregister() returns
 * @priv: passed to each operation
 *
 * The module parameters order and fallback_sizes, if the administrator sets
 * them, take the place of @order and @sizes.
 */
struct flexmem_device_desc {
	const char *name;
	enum flexmem_mode mode;
	unsigned int slots;
	u64 granule;
	u64 vm_page;
	u64 vm_start;
	u64 vm_end;
	enum flexmem_caching caching;
	bool clears;
	const void *device;
	enum flexmem_order order;
	unsigned int nr_sizes;
	u64 sizes[FLEXMEM_MAX_FALLBACK_SIZES];
	unsigned int nr_domains;
	const struct flexmem_domain_desc *domains;
	const struct flexmem_device_ops *ops;
	void *priv;
};

struct flexmem_dev *
flexmem_device_register(struct device *parent,
			const struct flexmem_device_desc *desc);
void flexmem_device_unregister(struct flexmem_dev *fdev);
void flexmem_device_capacity_changed(struct flexmem_dev *fdev);
void flexmem_device_failed(struct flexmem_dev *fdev);
int flexmem_device_reset(struct flexmem_dev *fdev);
void flexmem_device_suspend(struct flexmem_dev *fdev);
void flexmem_device_resume(struct flexmem_dev *fdev);

#endif /* _FLEXMEM_DEVICE_OPS_H */
