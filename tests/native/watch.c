// SPDX-License-Identifier: GPL-2.0
/*
 * The operations of the world's PF and VFs (world.h). Each call checks what the
 * header device_ops.h promises to a driver: flexmem calls no operation of a
 * sleeping device, names no memory that the PF or VF does not have, and calls
 * only some operations of a quiesced PF or VF.
 *
 * The checks add no ordering between tasks, so they hide no race of the core.
 */
#include <linux/dma-fence-array.h>

#include "shim/internal.h"

#include "alloc/client.h"
#include "watch.h"
#include "world.h"

int world_device_error = -EIO;
bool world_device_done;
void (*watch_during_fault)(void);

/*
 * Memory that a PF or VF may have: from the request until a release is
 * confirmed. A reset sets @lost, even if it fails. flexmem may only release
 * lost memory.
 */
struct piece {
	u64 id;
	bool lost;
};

/*
 * If the driver of a failed device is removed before a reset, flexmem does not
 * free the buffer that the device may still use. Then @late_buffer is freed
 * here.
 */
static struct watch {
	bool asleep;
	bool quiet;
	const void *late_buffer;
	struct piece piece[4 * FLEXMEM_MAX_PIECES];
} watches[WORLD_FUNCTIONS];

static struct watch *watch_of(void *priv)
{
	return &watches[((struct sim_function *)priv)->index];
}

static struct piece *find_piece(struct watch *watch, u64 id)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(watch->piece); i++)
		if (READ_ONCE(watch->piece[i].id) == id)
			return &watch->piece[i];
	return NULL;
}

static void add_piece(struct watch *watch, u64 id)
{
	struct piece *piece = find_piece(watch, id) ?: find_piece(watch, 0);

	if (!piece)
		shim_bug("more is acquired than any function can have");
	WRITE_ONCE(piece->lost, false);
	WRITE_ONCE(piece->id, id);
}

static void remove_piece(struct watch *watch, u64 id)
{
	struct piece *piece = find_piece(watch, id);

	if (piece)
		WRITE_ONCE(piece->id, 0);
}

static void lose_pieces(struct watch *watch)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(watch->piece); i++)
		WRITE_ONCE(watch->piece[i].lost, true);
}

static void remove_pieces(struct watch *watch)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(watch->piece); i++)
		WRITE_ONCE(watch->piece[i].id, 0);
}

static void must_be_awake(struct watch *watch, const char *operation)
{
	if (READ_ONCE(watch->asleep))
		shim_bug("%s of a device that sleeps", operation);
}

static void must_run(struct watch *watch, const char *operation)
{
	if (READ_ONCE(watch->quiet))
		shim_bug("%s after quiesce", operation);
}

static void must_have(struct watch *watch, const char *operation,
		      const struct flexmem_memory *mem)
{
	struct piece *piece = find_piece(watch, mem->id);

	if (!piece || READ_ONCE(piece->lost))
		shim_bug("%s of memory that the function has not got",
			 operation);
}

/*
 * Carries out an operation, or fails. If world_device_done is set, a failure is
 * a lost reply: the simulator has carried out the operation.
 */
#define CARRY_OUT(call)						\
	(!native_should_fail(NATIVE_DEVICE) ? sim_vf_ops.call :	\
	 world_device_done ? (sim_vf_ops.call, world_device_error) : \
	 world_device_error)

static bool is_unknown(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR;
}

static int watch_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	struct watch *watch = watch_of(priv);
	u64 id = mem->id;
	int rc;

	must_be_awake(watch, "acquire");
	must_run(watch, "acquire");
	add_piece(watch, id);
	rc = CARRY_OUT(acquire(priv, size, mem));
	must_be_awake(watch, "acquire");
	if (rc && !is_unknown(rc))
		remove_piece(watch, id);
	return rc;
}

static int watch_release(void *priv, const struct flexmem_memory *mem)
{
	struct watch *watch = watch_of(priv);
	u64 id = mem->id;
	int rc;

	must_be_awake(watch, "release");
	if (!find_piece(watch, id))
		shim_bug("release of what was released before");
	rc = CARRY_OUT(release(priv, mem));
	must_be_awake(watch, "release");
	if (!rc)
		remove_piece(watch, id);
	return rc;
}

static int watch_slot_set(void *priv, unsigned int slot,
			  const struct flexmem_memory *mem)
{
	struct watch *watch = watch_of(priv);
	int rc;

	must_be_awake(watch, "slot_set");
	must_run(watch, "slot_set");
	must_have(watch, "slot_set", mem);
	rc = CARRY_OUT(slot_set(priv, slot, mem));
	must_be_awake(watch, "slot_set");
	return rc;
}

static int watch_slot_clear(void *priv, unsigned int slot)
{
	struct watch *watch = watch_of(priv);
	int rc;

	must_be_awake(watch, "slot_clear");
	rc = CARRY_OUT(slot_clear(priv, slot));
	must_be_awake(watch, "slot_clear");
	return rc;
}

static int watch_vm_map(void *priv, const struct flexmem_vm_range *range,
			const struct flexmem_memory *mem, u64 offset,
			unsigned int access)
{
	struct watch *watch = watch_of(priv);

	must_be_awake(watch, "vm_map");
	must_run(watch, "vm_map");
	must_have(watch, "vm_map", mem);
	return CARRY_OUT(vm_map(priv, range, mem, offset, access));
}

static int watch_vm_unmap(void *priv, const struct flexmem_vm_range *range)
{
	must_be_awake(watch_of(priv), "vm_unmap");
	return CARRY_OUT(vm_unmap(priv, range));
}

static int watch_drain(void *priv)
{
	struct watch *watch = watch_of(priv);
	int rc;

	must_be_awake(watch, "drain");
	must_run(watch, "drain");
	rc = sim_pf_ops.drain(priv);
	must_be_awake(watch, "drain");
	return rc;
}

static int watch_quiesce(void *priv)
{
	struct watch *watch = watch_of(priv);
	int rc;

	must_be_awake(watch, "quiesce");
	rc = CARRY_OUT(quiesce(priv));
	if (!rc)
		WRITE_ONCE(watch->quiet, true);
	return rc;
}

static int watch_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	struct watch *watch = watch_of(priv);
	int rc;

	must_be_awake(watch, "capacity");
	rc = CARRY_OUT(capacity(priv, domain, bytes));
	must_be_awake(watch, "capacity");
	return rc;
}

/*
 * Called before and after an operation that moves data. Both times the PF or VF
 * must be awake and not quiesced, and must have the memory.
 */
static int data_done(struct watch *watch, const char *operation,
		     const struct flexmem_memory *mem, int rc)
{
	must_be_awake(watch, operation);
	must_run(watch, operation);
	must_have(watch, operation, mem);
	return rc;
}

#define DATA(name, buffer, call, types...)				\
static int watch_##name types						\
{									\
	struct watch *watch = watch_of(priv);				\
	int rc;								\
									\
	data_done(watch, #name, mem, 0);				\
	rc = CARRY_OUT(call);						\
	if (rc == -ENOTRECOVERABLE)					\
		watch->late_buffer = buffer;				\
	return data_done(watch, #name, mem, rc);			\
}

DATA(scrub, NULL, scrub(priv, mem, offset, size),
     (void *priv, const struct flexmem_memory *mem, u64 offset, u64 size))
DATA(read, to, read(priv, mem, offset, size, to),
     (void *priv, const struct flexmem_memory *mem, u64 offset, u64 size,
      void *to))
DATA(write, from, write(priv, mem, offset, size, from),
     (void *priv, const struct flexmem_memory *mem, u64 offset, u64 size,
      const void *from))

static int watch_copy(void *priv, const struct flexmem_memory *to,
		      u64 to_offset, const struct flexmem_memory *from,
		      u64 from_offset, u64 size)
{
	struct watch *watch = watch_of(priv);
	int rc;

	data_done(watch, "copy", to, 0);
	data_done(watch, "copy", from, 0);
	rc = CARRY_OUT(copy(priv, to, to_offset, from, from_offset, size));
	data_done(watch, "copy", to, rc);
	return data_done(watch, "copy", from, rc);
}

/* The contract allows this call even if the device is suspended or quiesced. */
static void watch_client_gone(void *priv, struct flexmem_client *client)
{
	if (refcount_read(&client->refs) < 1 || !client->is_known)
		shim_bug("the driver hears of a client that it does not know");
	sim_vf_ops.client_gone(priv, client);
}

static int watch_fault(void *priv, const struct flexmem_memory *mem, u64 offset,
		       struct flexmem_frames *frames)
{
	struct watch *watch = watch_of(priv);
	void (*during)(void);
	int rc;

	must_be_awake(watch, "fault");
	must_run(watch, "fault");
	must_have(watch, "fault", mem);
	if (offset < frames->offset || offset - frames->offset >= frames->size ||
	    (frames->offset ^ (frames->offset + frames->size - 1)) >= SZ_2M ||
	    frames->offset + frames->size > mem->size)
		shim_bug("fault around a page that is not between them");
	during = READ_ONCE(watch_during_fault);
	if (during) {
		WRITE_ONCE(watch_during_fault, NULL);
		during();
	}
	rc = CARRY_OUT(fault(priv, mem, offset, frames));
	must_be_awake(watch, "fault");
	must_run(watch, "fault");
	must_have(watch, "fault", mem);
	return rc;
}

/* A reset is allowed at any time, even while the device resumes. */
static int watch_reset(void *priv)
{
	struct watch *watch = watch_of(priv);
	int rc;

	lose_pieces(watch);
	rc = CARRY_OUT(reset(priv));
	if (!rc) {
		remove_pieces(watch);
		WRITE_ONCE(watch->quiet, false);
		watch->late_buffer = NULL;
	}
	return rc;
}

#define COMMON_OPS			\
	.acquire = watch_acquire,	\
	.release = watch_release,	\
	.quiesce = watch_quiesce,	\
	.capacity = watch_capacity,	\
	.scrub = watch_scrub,		\
	.read = watch_read,		\
	.write = watch_write,		\
	.copy = watch_copy,		\
	.vm_map = watch_vm_map,		\
	.vm_unmap = watch_vm_unmap,	\
	.fault = watch_fault,		\
	.client_gone = watch_client_gone, \
	.reset = watch_reset

/**
 * watch_ops - operations of a PF or VF
 * @index: number of the function
 *
 * Return: the operations, which stay valid.
 */
const struct flexmem_device_ops *watch_ops(unsigned int index)
{
	static const struct flexmem_device_ops pf_ops = {
		COMMON_OPS,
		.drain = watch_drain,
	};
	static const struct flexmem_device_ops vf_ops = {
		COMMON_OPS,
		.slot_set = watch_slot_set,
		.slot_clear = watch_slot_clear,
	};

	return index ? &vf_ops : &pf_ops;
}

/**
 * watch_asleep - note that a PF or VF is suspended now, or is about to be
 * resumed
 * @index: number of the function
 * @asleep: whether it is suspended
 */
void watch_asleep(unsigned int index, bool asleep)
{
	WRITE_ONCE(watches[index].asleep, asleep);
}

/**
 * watch_gone - note that a PF or VF is not bound any more
 * @index: number of the function
 */
void watch_gone(unsigned int index)
{
	WRITE_ONCE(watches[index].asleep, false);
	WRITE_ONCE(watches[index].quiet, false);
	remove_pieces(&watches[index]);
	kfree(watches[index].late_buffer);
	watches[index].late_buffer = NULL;
}
