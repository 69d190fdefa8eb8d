// SPDX-License-Identifier: GPL-2.0
/*
 * The card's firmware owns the map of physical memory, and the table and the
 * capacity of each function. The firmware runs in a thread of its own, knows
 * only messages, and checks each message, as real firmware does.
 *
 * A list holds the pieces of memory that functions have, ordered by base,
 * without overlap. The memory between the pieces is free. A new piece goes to
 * the lowest place that fits.
 *
 * Lost replies. The host cannot know the outcome of a command without a reply.
 * Therefore a command describes a state, and succeeds if that state is reached
 * already; and the host, not the firmware, names the memory that it acquires.
 * So the host can repeat or undo a command until it gets a reply, and the
 * firmware need not remember commands. Commands of a function are carried out
 * in order, each at most once, because the numbers of commands only grow.
 *
 * A reset releases all memory of the function and empties its tables.
 *
 * A command that moves data (scrub, read, write, copy) ends early if its caller
 * gives up (mailbox.c).
 *
 * Released memory keeps its bytes. The next function that acquires the memory
 * gets them.
 *
 * After a quiesce a function can only release memory until it is reset. Programs
 * (queue.c) are stopped by the driver, and run between two messages.
 */

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <flexmem/device_ops.h>

#include "firmware_state.h"
#include "mailbox.h"
#include "memory.h"

/*
 * Addresses and lengths of a scrub, and of a copy by the card, are multiples of
 * this.
 */
#define FW_UNIT 128

/* The firmware checks after this many bytes whether the caller still waits. */
#define FW_DATA_STEP SZ_16M

struct fw_piece *fw_find(struct sim_firmware *fw, unsigned int owner, u64 name)
{
	struct fw_piece *piece;

	list_for_each_entry(piece, &fw->pieces, node) {
		if (piece->name == name && piece->owner == owner)
			return piece;
	}
	return NULL;
}

/* Places a piece at the lowest address of its domain where it fits. */
static bool fw_place(struct sim_firmware *fw, struct fw_piece *piece)
{
	const struct fw_domain *domain = &fw->domains[piece->domain];
	u64 align = piece->size >= SZ_1G ? SZ_1G : domain->granule;
	struct list_head *before = &fw->pieces;
	u64 end = domain->base + domain->size;
	u64 base = domain->base;
	struct fw_piece *next;

	list_for_each_entry(next, &fw->pieces, node) {
		if (next->domain < piece->domain)
			continue;
		if (base + piece->size <= next->base) {
			before = &next->node;
			end = min(end, next->base);
			break;
		}
		base = ALIGN(next->base + next->size, align);
	}
	if (base > end || end - base < piece->size)
		return false;

	piece->base = base;
	list_add_tail(&piece->node, before);
	return true;
}

static void fw_free(struct sim_firmware *fw, struct fw_piece *piece)
{
	fw->functions[piece->owner].used[piece->domain] -= piece->size;
	list_del(&piece->node);
	kfree(piece);
}

static void fw_point(struct fw_function *f, unsigned int slot,
		     struct fw_piece *piece)
{
	f->table[slot] = piece;
	piece->slot = slot;
	piece->last_slot = slot;
}

static void fw_unpoint(struct fw_function *f, struct fw_piece *piece)
{
	f->table[piece->slot] = NULL;
	piece->slot = SIM_NO_SLOT;
}

static enum sim_status fw_acquire(struct sim_firmware *fw, unsigned int function,
				  const struct sim_request *req,
				  struct sim_reply *reply)
{
	struct fw_function *f = &fw->functions[function];
	struct fw_piece *piece;
	u64 capacity, used;

	piece = fw_find(fw, function, req->memory);
	if (piece) {
		if (piece->size != req->bytes || piece->domain != req->domain)
			return SIM_BAD_MEMORY;
		sim_mailbox_count(fw->mbox, SIM_REPEATS);
		reply->base = piece->base;
		return SIM_OK;
	}
	if (req->domain >= fw->nr_domains)
		return SIM_BAD_DOMAIN;
	if (!req->bytes ||
	    !IS_ALIGNED(req->bytes, fw->domains[req->domain].granule))
		return SIM_BAD_SIZE;
	capacity = f->capacity[req->domain];
	used = f->used[req->domain];
	/* The capacity may have shrunk below the used bytes. */
	if (used > capacity || req->bytes > capacity - used)
		return SIM_OVER_CAPACITY;

	piece = kzalloc(sizeof(*piece), GFP_KERNEL);
	if (!piece)
		return SIM_FAILED;
	piece->domain = req->domain;
	piece->size = req->bytes;
	piece->name = req->memory;
	piece->owner = function;
	piece->slot = SIM_NO_SLOT;
	piece->last_slot = SIM_NO_SLOT;
	if (!fw_place(fw, piece)) {
		kfree(piece);
		return SIM_NO_SPACE;
	}
	f->used[piece->domain] += piece->size;
	reply->base = piece->base;
	return SIM_OK;
}

static enum sim_status fw_release(struct sim_firmware *fw, unsigned int function,
				  const struct sim_request *req)
{
	struct fw_piece *piece = fw_find(fw, function, req->memory);

	if (!piece) {
		sim_mailbox_count(fw->mbox, SIM_REPEATS);
		return SIM_OK;
	}
	if (piece->slot != SIM_NO_SLOT ||
	    fw_is_mapped(&fw->functions[function], piece))
		return SIM_IN_USE;
	fw_free(fw, piece);
	return SIM_OK;
}

static enum sim_status fw_slot_set(struct sim_firmware *fw,
				   unsigned int function,
				   const struct sim_request *req)
{
	struct fw_function *f = &fw->functions[function];
	struct fw_piece *piece = fw_find(fw, function, req->memory);

	if (req->slot >= f->slots)
		return SIM_BAD_COMMAND;
	if (!piece)
		return SIM_BAD_MEMORY;
	if (f->table[req->slot] == piece) {
		sim_mailbox_count(fw->mbox, SIM_REPEATS);
		return SIM_OK;
	}
	if (f->table[req->slot])
		return SIM_SLOT_FILLED;
	if (piece->slot != SIM_NO_SLOT)
		return SIM_IN_USE;
	/*
	 * A piece may return to its last slot even if the slot is not usable
	 * any more, because the driver undoes a clear in this way.
	 */
	if (req->slot >= f->usable_slots && req->slot != piece->last_slot)
		return SIM_SLOT_REFUSED;
	fw_point(f, req->slot, piece);
	return SIM_OK;
}

static enum sim_status fw_slot_clear(struct sim_firmware *fw,
				     unsigned int function,
				     const struct sim_request *req)
{
	struct fw_function *f = &fw->functions[function];
	struct fw_piece *piece;

	if (req->slot >= f->slots)
		return SIM_BAD_COMMAND;
	piece = f->table[req->slot];
	if (piece)
		fw_unpoint(f, piece);
	else
		sim_mailbox_count(fw->mbox, SIM_REPEATS);
	return SIM_OK;
}

/*
 * Moves one part of @size bytes at @address; @done bytes of the request were
 * moved before.
 */
static int fw_move(struct sim_firmware *fw, const struct sim_request *req,
		   u64 address, u64 from, u64 done, u64 size)
{
	switch (req->command) {
	case SIM_SCRUB:
		sim_memory_zero(fw->chips, address, size);
		return 0;
	case SIM_READ:
		sim_memory_read(fw->chips, address, size, req->buffer + done);
		return 0;
	case SIM_COPY:
		return sim_memory_copy(fw->chips, address, from + done, size);
	default:
		return sim_memory_write(fw->chips, address, size,
					req->buffer + done);
	}
}

/* @from is the source of a copy, or NULL. */
static enum sim_status fw_check_data(const struct sim_request *req,
				     const struct fw_piece *piece,
				     const struct fw_piece *from)
{
	u64 unaligned = req->offset | req->bytes;

	if (!req->bytes || !fw_is_within(piece, req->offset, req->bytes))
		return SIM_BAD_RANGE;
	if (from) {
		if (!fw_is_within(from, req->from_offset, req->bytes))
			return SIM_BAD_RANGE;
		if (from == piece &&
		    req->offset < req->from_offset + req->bytes &&
		    req->from_offset < req->offset + req->bytes)
			return SIM_BAD_RANGE;
		unaligned |= req->from_offset;
	}
	if ((from || req->command == SIM_SCRUB) &&
	    !IS_ALIGNED(unaligned, FW_UNIT))
		return SIM_BAD_RANGE;
	return SIM_OK;
}

/* Carries out a scrub, read, write or copy, until the caller gives up. */
static enum sim_status fw_data(struct sim_firmware *fw, unsigned int function,
			       const struct sim_request *req)
{
	struct fw_piece *piece = fw_find(fw, function, req->memory);
	struct fw_piece *from = NULL;
	enum sim_status status;
	u64 done, step, source;
	int ret;

	if (req->command == SIM_COPY)
		from = fw_find(fw, function, req->from_memory);
	if (!piece || (req->command == SIM_COPY && !from))
		return SIM_BAD_MEMORY;
	status = fw_check_data(req, piece, from);
	if (status != SIM_OK)
		return status;

	source = from ? from->base + req->from_offset : 0;
	for (done = 0; done < req->bytes; done += step) {
		u64 address = piece->base + req->offset + done;

		/*
		 * Ends each part at a multiple of FW_DATA_STEP, so that no page
		 * is split between two parts.
		 */
		step = min(req->bytes - done,
			   FW_DATA_STEP - address % FW_DATA_STEP);
		if (!sim_mailbox_data_begin(fw->mbox, function, req->seq))
			return SIM_OUT_OF_ORDER;
		ret = fw_move(fw, req, address, source, done, step);
		sim_mailbox_data_end(fw->mbox, function);
		if (ret)
			return SIM_FAILED;
		cond_resched();
	}
	return SIM_OK;
}

static void fw_reset(struct sim_firmware *fw, unsigned int function)
{
	struct fw_function *f = &fw->functions[function];
	struct fw_piece *piece, *next;

	f->quiet = false;
	memset(f->mappings, 0, sizeof(f->mappings));
	list_for_each_entry_safe(piece, next, &fw->pieces, node) {
		if (piece->owner != function)
			continue;
		if (piece->slot != SIM_NO_SLOT)
			fw_unpoint(f, piece);
		fw_free(fw, piece);
	}
	sim_mailbox_count(fw->mbox, SIM_RESETS);
}

/*
 * Whether a PF or VF may still send this command after its programs were
 * stopped.
 */
static bool fw_gives_back(enum sim_command command)
{
	return command == SIM_QUIESCE || command == SIM_SLOT_CLEAR ||
	       command == SIM_VM_UNMAP || command == SIM_RELEASE ||
	       command == SIM_CAPACITY;
}

static enum sim_status fw_carry_out(struct sim_firmware *fw,
				    unsigned int function,
				    const struct sim_request *req,
				    struct sim_reply *reply)
{
	struct fw_function *f = &fw->functions[function];

	/*
	 * A message without a number is a hint (sim_mailbox_post()), which is
	 * harmless at any time.
	 */
	if (req->seq && req->seq <= f->seq)
		return SIM_OUT_OF_ORDER;
	f->seq = max(f->seq, req->seq);
	if (f->quiet && !fw_gives_back(req->command))
		return SIM_QUIET;

	switch (req->command) {
	case SIM_ACQUIRE:
		return fw_acquire(fw, function, req, reply);
	case SIM_RELEASE:
		return fw_release(fw, function, req);
	case SIM_SLOT_SET:
		return fw_slot_set(fw, function, req);
	case SIM_SLOT_CLEAR:
		return fw_slot_clear(fw, function, req);
	case SIM_QUIESCE:
		f->quiet = true;
		return SIM_OK;
	case SIM_CAPACITY:
		if (req->domain >= fw->nr_domains)
			return SIM_BAD_DOMAIN;
		reply->bytes = f->capacity[req->domain];
		return SIM_OK;
	case SIM_SCRUB:
	case SIM_READ:
	case SIM_WRITE:
	case SIM_COPY:
		return fw_data(fw, function, req);
	case SIM_VM_MAP:
		return fw_vm_map(fw, function, req);
	case SIM_VM_UNMAP:
		return fw_vm_unmap(fw, function, req);
	default:
		return SIM_BAD_COMMAND;
	}
}

static void fw_handle(struct sim_firmware *fw, unsigned int function,
		      const struct sim_request *req)
{
	struct sim_reply reply = { .seq = req->seq };

	if (req->command == SIM_RESET) {
		fw_reset(fw, function);
		sim_mailbox_reset_done(fw->mbox, function);
		return;
	}
	/* A hint gets no reply, so no fault is injected. */
	if (!req->seq) {
		fw_carry_out(fw, function, req, &reply);
		return;
	}
	if (sim_mailbox_fault(fw->mbox, SIM_FAIL_COMMANDS, req->command))
		reply.status = SIM_FAILED;
	else if (sim_mailbox_fault(fw->mbox, SIM_HANG_COMMANDS, req->command))
		reply.status = SIM_HUNG;
	else
		reply.status = fw_carry_out(fw, function, req, &reply);
	sim_mailbox_answer(fw->mbox, function, req->command, &reply);
}

static int fw_run(void *data)
{
	struct sim_firmware *fw = data;
	struct sim_request req;
	unsigned int function;

	while (sim_mailbox_take(fw->mbox, &function, &req)) {
		u32 latency = READ_ONCE(fw->mbox->latency_us);

		if (latency)
			usleep_range_state(latency, latency + latency / 8 + 1,
					   TASK_IDLE);
		mutex_lock(&fw->lock);
		fw_handle(fw, function, &req);
		mutex_unlock(&fw->lock);
	}
	return 0;
}

/*
 * Lays the memories out one behind the other. The bytes that the card keeps for
 * itself are at the end of each memory.
 */
static void fw_build(struct sim_firmware *fw,
		     const struct sim_geometry *geometry)
{
	const struct sim_domains *domains = geometry->domains;
	unsigned int i, function;
	u64 base = 0;

	fw->space = geometry->space;
	fw->nr_domains = domains->nr;
	for (i = 0; i < domains->nr; i++) {
		fw->domains[i] = (struct fw_domain) {
			.base = base,
			.size = domains->size[i],
			.granule = domains->desc[i].granule,
		};
		base = ALIGN(base + domains->size[i] +
			     domains->desc[i].set_aside, SZ_1G);
	}
	for (function = 0; function < SIM_MAX_FUNCTIONS; function++) {
		struct fw_function *f = &fw->functions[function];

		memcpy(f->capacity, domains->size, sizeof(f->capacity));
		f->capacity[0] = function ? geometry->vf_capacity :
					    geometry->pf_capacity;
	}
}

/**
 * sim_firmware_start - switch the card on
 * @mbox: mailbox of the card
 * @chips: the card's memory
 * @geometry: how the card is built; the caller has checked it
 *
 * Return: the running firmware, or an ERR_PTR.
 */
struct sim_firmware *sim_firmware_start(struct sim_mailbox *mbox,
					struct sim_memory *chips,
					const struct sim_geometry *geometry)
{
	struct sim_firmware *fw;
	unsigned int i;
	int ret;

	fw = kzalloc(sizeof(*fw), GFP_KERNEL);
	if (!fw)
		return ERR_PTR(-ENOMEM);

	fw->mbox = mbox;
	fw->chips = chips;
	mutex_init(&fw->lock);
	INIT_LIST_HEAD(&fw->pieces);
	fw_build(fw, geometry);
	for (i = 1; i < SIM_MAX_FUNCTIONS; i++) {
		fw->functions[i].slots = geometry->slots;
		fw->functions[i].usable_slots = geometry->slots;
	}

	fw->thread = kthread_run(fw_run, fw, "flexmem_sim_fw");
	if (IS_ERR(fw->thread)) {
		ret = PTR_ERR(fw->thread);
		goto err_free;
	}
	return fw;

err_free:
	mutex_destroy(&fw->lock);
	kfree(fw);
	return ERR_PTR(ret);
}

/**
 * sim_firmware_stop - switch the card off
 * @fw: the firmware, to which no more messages are sent
 */
void sim_firmware_stop(struct sim_firmware *fw)
{
	struct fw_piece *piece, *next;

	kthread_stop(fw->thread);
	list_for_each_entry_safe(piece, next, &fw->pieces, node)
		kfree(piece);
	mutex_destroy(&fw->lock);
	kfree(fw);
}

/**
 * sim_firmware_run - run a program between two messages
 * @fw: the firmware
 * @program: function that moves bytes of the card
 * @data: argument of @program
 *
 * Context: may sleep. Waits while the firmware handles a message or another
 * program runs.
 *
 * Return: what @program returned.
 */
int sim_firmware_run(struct sim_firmware *fw, int (*program)(void *data),
		     void *data)
{
	int ret;

	mutex_lock(&fw->lock);
	ret = program(data);
	mutex_unlock(&fw->lock);
	return ret;
}

/* Finds the memory that a number of a region means in a program, or NULL. */
static const struct fw_piece *fw_segment(const struct sim_firmware *fw,
					 unsigned int function, u64 region_id)
{
	const struct fw_function *f = &fw->functions[function];
	const struct fw_piece *piece;

	if (f->slots)
		return region_id < f->slots ? f->table[region_id] : NULL;
	list_for_each_entry(piece, &fw->pieces, node) {
		if (piece->base == region_id && piece->owner == function)
			return piece;
	}
	return NULL;
}

/**
 * sim_firmware_segment - find memory by an address in a program
 * @fw: the firmware
 * @function: the function that runs the program
 * @address: address of the first byte
 * @size: bytes
 * @physical: receives the physical address, which is valid until the program
 *	ends
 *
 * Context: in a program of sim_firmware_run().
 *
 * Return: false if the bytes are not all in one region of the function.
 */
bool sim_firmware_segment(const struct sim_firmware *fw, unsigned int function,
			  const struct flexmem_address *address, u64 size,
			  u64 *physical)
{
	const struct fw_piece *piece;

	lockdep_assert_held(&fw->lock);
	piece = fw_segment(fw, function, address->region_id);
	if (!piece || !fw_is_within(piece, address->offset, size))
		return false;
	*physical = piece->base + address->offset;
	return true;
}

/**
 * sim_firmware_capacity - read a function's capacity in the first memory
 * @fw: the firmware
 * @function: which function
 *
 * Return: the capacity in bytes.
 */
u64 sim_firmware_capacity(struct sim_firmware *fw, unsigned int function)
{
	u64 bytes;

	mutex_lock(&fw->lock);
	bytes = fw->functions[function].capacity[0];
	mutex_unlock(&fw->lock);
	return bytes;
}

/**
 * sim_firmware_set_capacity - change a function's capacity in the first memory
 * @fw: the firmware
 * @function: which function
 * @bytes: a multiple of the granule, at most the size of the first memory. A
 *	function that has more bytes already keeps them, but cannot acquire more
 *
 * Return: 0 or -EINVAL.
 */
int sim_firmware_set_capacity(struct sim_firmware *fw, unsigned int function,
			      u64 bytes)
{
	if (bytes > fw->domains[0].size || !IS_ALIGNED(bytes, SIM_GRANULE))
		return -EINVAL;

	mutex_lock(&fw->lock);
	fw->functions[function].capacity[0] = bytes;
	mutex_unlock(&fw->lock);
	return 0;
}

/**
 * sim_firmware_usable_slots - read how many entries a function may fill
 * @fw: the firmware
 * @function: which function
 *
 * Return: the number of entries.
 */
unsigned int sim_firmware_usable_slots(struct sim_firmware *fw,
				       unsigned int function)
{
	unsigned int slots;

	mutex_lock(&fw->lock);
	slots = fw->functions[function].usable_slots;
	mutex_unlock(&fw->lock);
	return slots;
}

/**
 * sim_firmware_set_usable_slots - change how many entries a function may fill
 * @fw: the firmware
 * @function: which function
 * @slots: number of entries that can be filled, from entry 0 on; filled entries
 *	above stay filled
 *
 * Return: 0 or -EINVAL.
 */
int sim_firmware_set_usable_slots(struct sim_firmware *fw,
				  unsigned int function, u64 slots)
{
	if (slots > fw->functions[function].slots)
		return -EINVAL;

	mutex_lock(&fw->lock);
	fw->functions[function].usable_slots = slots;
	mutex_unlock(&fw->lock);
	return 0;
}

/**
 * sim_firmware_next_piece - iterate over the memory of a function
 * @fw: the firmware
 * @function: which function
 * @piece: the previous piece, all zero at first; receives the next one, by base
 *
 * Return: false if there is none.
 */
bool sim_firmware_next_piece(struct sim_firmware *fw, unsigned int function,
			     struct sim_piece *piece)
{
	u64 from = piece->base + piece->size;
	struct fw_piece *next;
	bool found = false;

	mutex_lock(&fw->lock);
	list_for_each_entry(next, &fw->pieces, node) {
		if (next->owner != function || next->base < from)
			continue;
		*piece = (struct sim_piece) {
			.base = next->base,
			.size = next->size,
			.slot = next->slot,
		};
		found = true;
		break;
	}
	mutex_unlock(&fw->lock);
	return found;
}
