/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device contract: what the driver of an accelerator gives to flexmem.
 *
 * The only header of flexmem.ko that a device driver includes. One
 * &struct flexmem_dev stands for one function (PF or VF); it outlives its
 * driver for as long as files are open on it, but calls the driver's operations
 * only between flexmem_device_register() and the return of
 * flexmem_device_unregister().
 */
#ifndef _FLEXMEM_DEVICE_OPS_H
#define _FLEXMEM_DEVICE_OPS_H

#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/flexmem.h>

struct device;
struct flexmem_dev;

/**
 * struct flexmem_memory - device memory acquired as one piece
 * @id: what flexmem calls it: not 0, and never used again while flexmem.ko is
 *	loaded
 * @base: physical address of its first byte on the device, aligned to 1 GiB
 *	or, for pieces smaller than that, to the granule. A PF names the region
 *	by it; of a VF it is never shown to anyone.
 * @size: bytes, exactly as asked for
 * @cookie: the driver's own, not looked at by flexmem
 *
 * @base and @cookie are 0 until the driver has answered: a driver that is asked to
 * @release what it never knew to be acquired has @id and @size only.
 */
struct flexmem_memory {
	u64 id;
	u64 base;
	u64 size;
	u64 cookie;
};

/**
 * enum flexmem_vm_access - what programs may do with what is mapped
 * @FLEXMEM_VM_READ: read it
 * @FLEXMEM_VM_WRITE: write it
 * @FLEXMEM_VM_EXECUTE: run it
 *
 * What a device cannot tell apart it may allow, too.
 */
enum flexmem_vm_access {
	FLEXMEM_VM_READ = 1 << 0,
	FLEXMEM_VM_WRITE = 1 << 1,
	FLEXMEM_VM_EXECUTE = 1 << 2,
};

/**
 * struct flexmem_vm_range - addresses of a device-virtual space
 * @space: what flexmem calls the space, which is one function's: not 0, and never
 *	used for another space while flexmem.ko is loaded
 * @address: of the first byte
 * @size: bytes, not 0
 *
 * @address and @size are multiples of &struct flexmem_device_desc.vm_page, and
 * all of it lies between @vm_start and @vm_end of that.
 *
 * Nothing makes a space, nor ends one: one in which nothing is mapped, yet or any
 * more, need not be remembered, and a program that runs in it faults on every
 * address. Who dispatches a program says by that name where it runs; how, is
 * between the driver and those who dispatch, and so is that nobody does it in a
 * space that is not theirs.
 */
struct flexmem_vm_range {
	u64 space;
	u64 address;
	u64 size;
};

/**
 * struct flexmem_device_ops - what a device can do
 *
 * Every operation may sleep, may fail and may time out; each waits for its
 * device no longer than a bound that the driver chooses (a second is plenty), and
 * killably (-EINTR). flexmem calls one operation at a time for each function,
 * except that one of @scrub, @read, @write and @copy may run beside one of the
 * others, and @page beside anything.
 *
 * Outcomes. 0: done. -ETIMEDOUT or -EINTR: unknown, the device may have done it,
 * or may still do it. Any other error: nothing was done, and nothing will be (of
 * @slot_set and @vm_map that is relied upon after -ENOSPC only). The driver
 * remembers nothing and undoes nothing; flexmem does, before it calls anything
 * that depends on it: it releases the @id of what it tried to acquire, clears the
 * slot that it tried to set or to clear, unmaps what it tried to map, releases
 * again, stops again, or resets the function. A call that acquires memory has all
 * of that done first; without one it is done after a second, and then less and less
 * often. Memory that cannot be given back so keeps no other memory. For that the
 * operations can be repeated: each says what is to be so afterwards, and succeeds
 * if it is so already (but @slot_set and @vm_map, which are undone). The device
 * carries the requests of one function out in the order in which they were sent, or
 * never: what was sent before one that was answered has no effect any more after
 * that.
 *
 * Data is different: what a failed @scrub, @write or @copy leaves in its range
 * (of a @copy, in that it copies to) does not matter, but no byte of it, nor of
 * the buffer of a failed @read, may change after the operation has returned.
 *
 * Who clears memory: flexmem, by @scrub: before a slot makes memory addressable
 * that was just acquired, whatever the device has done to it; before bytes get
 * another owner; and before @release, unless the device clears by itself what it
 * takes back (&struct flexmem_device_desc.clears). On removal flexmem clears
 * nothing, as the firmware may be dead: then, and without @scrub, the driver of the
 * PF clears what goes back before another function can have it.
 *
 * Errors besides the ones named below: -ETIMEDOUT, -EIO, -EINTR, -ENODEV,
 * -ENOMEM (of the kernel, not of the device).
 *
 * No answer is trusted: memory of another size or alignment, or that overlaps
 * what the function holds already, and any other error, are -EIO for who asked
 * and a message in the log. What was given wrongly is not used and not given
 * back; it comes back with a reset.
 */
struct flexmem_device_ops {
	/**
	 * @acquire: take @size bytes (a multiple of the granule) of device
	 * memory, call it @mem->id and fill in the rest of @mem. If the
	 * function has memory of that id it is this one. -ENOSPC: the device
	 * has not got that much in one piece, or the function's capacity is
	 * reached; a smaller size may be tried.
	 */
	int (*acquire)(void *priv, u64 size, struct flexmem_memory *mem);

	/**
	 * @release: give memory back: the function has none of that id
	 * afterwards. No slot points at it, and it is mapped in no space.
	 * Who has cleared it, see above.
	 */
	int (*release)(void *priv, const struct flexmem_memory *mem);

	/**
	 * @slot_set: make memory addressable through an entry of the firmware's
	 * table, which is empty. -ENOSPC: the firmware does not let this entry
	 * be used, and it is empty. After any other error @slot_clear is called
	 * for it before @mem is released and before the entry is used again. VF
	 * only, NULL on a PF.
	 */
	int (*slot_set)(void *priv, unsigned int slot,
			const struct flexmem_memory *mem);

	/**
	 * @slot_clear: see to it that an entry is empty. VF only, NULL on a PF.
	 */
	int (*slot_clear)(void *priv, unsigned int slot);

	/**
	 * @quiesce: see to it that no program of this function, begun or
	 * queued, reaches memory of the device any more, and that none begins
	 * before @reset. Called once the CPU's maps are gone and before
	 * anything is given back, on removal and before @reset, if the function
	 * holds memory; then nothing but @slot_clear, @vm_unmap, @release,
	 * @capacity and @reset is. Required, also if there is nothing to do (a
	 * firmware that runs no programs; a @slot_clear and a @release that
	 * wait for them): memory that goes back while a program still writes
	 * to it is another tenant's. If it fails nothing is given back before a
	 * reset.
	 */
	int (*quiesce)(void *priv);

	/**
	 * @capacity: bytes this function may acquire in all, taken memory
	 * included. Also the probe of a function that does not answer: it asks
	 * the firmware each time.
	 */
	int (*capacity)(void *priv, u64 *bytes);

	/**
	 * @scrub: zero @size bytes of @mem from @offset on, both multiples of
	 * 128. No longer than FLEXMEM_SCRUB_MAX at a time. Without it (NULL)
	 * tenants of one function can read what others left behind.
	 */
	int (*scrub)(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size);

	/**
	 * @read: copy @size bytes, at most FLEXMEM_COPY_MAX, out of the device
	 * to @to. That buffer is contiguous kernel memory, which
	 * dma_map_single() accepts. Users get its bytes as they are when this
	 * returns 0. NULL together with @write.
	 */
	int (*read)(void *priv, const struct flexmem_memory *mem, u64 offset,
		    u64 size, void *to);

	/**
	 * @write: copy into the device; @from is such a buffer, too.
	 */
	int (*write)(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size, const void *from);

	/**
	 * @copy: copy @size bytes from @from to @to, without the CPU; both may
	 * be the same memory. @to_offset, @from_offset and @size are multiples
	 * of 128, as those of @scrub: all that flexmem gives out begins and
	 * ends there, and what is less than a burst would be read and written
	 * back by the device, with neighbours' bytes in it. The two ranges do
	 * not overlap: the device may copy in any order. No longer than
	 * FLEXMEM_COPY_DEVICE_MAX at a time. NULL: it cannot.
	 */
	int (*copy)(void *priv, const struct flexmem_memory *to, u64 to_offset,
		    const struct flexmem_memory *from, u64 from_offset,
		    u64 size);

	/**
	 * @page: which page frame the CPU sees the 4096 bytes of @mem at
	 * @offset in. Called in a page fault, in its task and under its
	 * mmap_lock: it may allocate, but asks no firmware and holds no lock
	 * that anybody holds across a copy from or to user space. What it
	 * returned stays valid until @release or @reset, before which flexmem
	 * takes every map away. It may be called while the device is
	 * suspended. -ENOMEM, or -EIO for what has no frame.
	 * NULL: the CPU cannot map this memory.
	 */
	int (*page)(void *priv, const struct flexmem_memory *mem, u64 offset,
		    unsigned long *pfn);

	/**
	 * @vm_map: let programs of this function reach @range->size bytes of
	 * @mem, from @offset (a multiple of the page size) on, at the addresses
	 * of @range, to do what @access says, of enum flexmem_vm_access.
	 * Nothing is mapped there. The same memory may be mapped elsewhere,
	 * too, in this space or in others. When it has succeeded programs reach
	 * it, whatever the device has cached, and it stays mapped while the
	 * device is suspended. -ENOSPC: there is no room for the page table,
	 * and of @range nothing is mapped, a part neither. After any other
	 * error a part may be: @vm_unmap is called for @range before another
	 * operation is, but for @quiesce, @reset, @page and those that move
	 * data. (Were something mapped there, against this, that would be gone.)
	 *
	 * flexmem calls neither this nor @vm_unmap yet: it will, for
	 * allocations in several pieces. So far it tells users that the device
	 * can (FLEXMEM_CAP_PAGE_TABLES). One without page tables of its own has
	 * neither (NULL).
	 */
	int (*vm_map)(void *priv, const struct flexmem_vm_range *range,
		      const struct flexmem_memory *mem, u64 offset,
		      unsigned int access);

	/**
	 * @vm_unmap: see to it that nothing is mapped in @range, nothing of
	 * which is a part only of what was mapped at once: a device need not
	 * cut that in two, but does not refuse it either, and may unmap all of
	 * it. When it has succeeded no program reaches by @range what was
	 * mapped there, whatever the device has cached. It is called before
	 * @release of what is mapped, after @quiesce, too; a @reset leaves
	 * nothing mapped. If it fails who asked tries again.
	 */
	int (*vm_unmap)(void *priv, const struct flexmem_vm_range *range);

	/**
	 * @reset: bring the function back to the state after power-on: no
	 * memory, an empty table, nothing mapped, and no program. It ends the
	 * programs that a @quiesce that failed did not end. Called first of all
	 * by flexmem_device_register(), because a driver or a kernel before may
	 * have left the device in any state, and by flexmem_device_reset().
	 * NULL: the function cannot be reset, and the driver hands it over in
	 * the state after power-on.
	 */
	int (*reset)(void *priv);
};

/*
 * Longest pieces of memory that @scrub, @read and @write, and @copy are asked
 * for: the last so long that what a command costs does not count, and so short
 * that others who move data get their turn.
 */
#define FLEXMEM_SCRUB_MAX ((u64)SZ_1G)
#define FLEXMEM_COPY_MAX SZ_64K
#define FLEXMEM_COPY_DEVICE_MAX ((u64)SZ_16M)

/**
 * enum flexmem_caching - how the CPU reaches memory that it can map
 * @FLEXMEM_UNCACHED: each access goes to the device
 * @FLEXMEM_WRITE_COMBINED: writes may be gathered, and nothing is cached: a
 *	prefetchable BAR
 * @FLEXMEM_CACHED: as its own: the device takes part in the coherence of caches
 *
 * x86 keeps one type for each physical range, and that of a map gives way to it:
 * for write-combining the driver has it reserved
 * (devm_arch_io_reserve_memtype_wc()).
 */
enum flexmem_caching {
	FLEXMEM_UNCACHED,
	FLEXMEM_WRITE_COMBINED,
	FLEXMEM_CACHED,
};

/**
 * struct flexmem_device_desc - a function about to be registered
 * @name: name of the device, shown to users; 1 to 31 characters
 * @mode: PF or VF
 * @slots: entries of the firmware's table, 1 to 64. VF only; a PF says 0.
 * @granule: acquired sizes are multiples of this; a power of two, 4 KiB to
 *	1 GiB
 * @vm_page: size of a page of its device-virtual spaces; a power of two, 4 KiB
 *	to the granule; 0 without @vm_map
 * @vm_start: first address that can be mapped in any of them; a multiple of
 *	@vm_page
 * @vm_end: the one after the last, likewise, and above @vm_start; 0 without
 *	@vm_map, as @vm_start is. Of addresses with a hole it is one side, and the
 *	last page of 64 bits is left out
 * @caching: of every map of its memory: what @page says where, this says how
 * @clears: no function is given memory with bytes of another in it: the device, or
 *	the driver of the PF, clears it between the two
 * @ops: operations; must stay valid until flexmem_device_unregister() returns
 * @priv: passed to each operation
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
