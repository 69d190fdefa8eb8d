// SPDX-License-Identifier: GPL-2.0
/*
 * The pieces of memory that a function holds, and the commands that are pending
 * for them.
 *
 * A command that was not answered may still have been carried out. Each piece
 * records which commands must follow to undo it, in this order: clear the slot
 * that may name it, drain the device, zero the bytes of owners, release the
 * memory. Each command can be repeated until the firmware answers. Memory is
 * not released while a slot may still name it, or before it is zeroed. Mapped
 * memory belongs to an allocation, so it is not released either
 * (function_vm.c). A caller that acquires memory first retries all
 * pending commands; without such a caller the worker retries them. If the
 * firmware refuses to take a piece back, that piece is stranded, but other
 * pieces are still released.
 *
 * Invariant: the pieces of a function do not overlap, except pieces that may
 * have been released.
 *
 * The callers hold &flexmem_table.acquire_lock, so the PF or VF runs no other
 * operation, except one that moves data.
 */

#include <linux/errno.h>

#include "gate/function.h"

/* Finds a piece by its id, or returns NULL. */
struct flexmem_piece *flexmem_function_piece(struct flexmem_function *function,
					     u64 id)
{
	unsigned int i;

	for (i = 0; i < function->nr_pieces; i++)
		if (function->piece[i].mem.id == id)
			return &function->piece[i];
	return NULL;
}

/*
 * Notes the bytes to zero before the release. Does nothing if the device clears
 * memory that it takes back.
 * @mem: memory that the function holds. @start: offset of the first byte that
 * an owner may have written. @end: offset of the end of such bytes.
 */
void flexmem_function_mark_dirty(struct flexmem_function *function,
				 const struct flexmem_memory *mem, u64 start,
				 u64 end)
{
	struct flexmem_piece *piece = flexmem_function_piece(function, mem->id);

	if (WARN_ON_ONCE(!piece) || function->clears)
		return;
	piece->dirty_start = start;
	piece->dirty_end = end;
}

/* Empties the slot of a piece. */
static int detach(struct flexmem_function *function,
		  struct flexmem_piece *piece)
{
	int rc;

	if (piece->slot == FLEXMEM_NO_SLOT)
		return 0;
	rc = function->ops.slot_clear(function->priv, piece->slot);
	rc = flexmem_function_outcome(function, "slot_clear", rc, false);
	if (!rc)
		piece->slot = FLEXMEM_NO_SLOT;
	return rc;
}

/*
 * Zeroes the bytes of owners in a piece that is in no slot. Drains a PF first:
 * no slot of a PF is cleared, so accesses may still be in flight.
 */
static int clear(struct flexmem_function *function, struct flexmem_piece *piece)
{
	int rc;

	if (function->ops.drain) {
		rc = function->ops.drain(function->priv);
		rc = flexmem_function_outcome(function, "drain", rc, false);
		if (rc)
			return rc;
	}
	/* After a failure the next try continues where this try stopped. */
	return flexmem_function_clear(function, &piece->mem,
				      &piece->dirty_start, piece->dirty_end);
}

/* Releases the memory of a piece. Forgets the piece on success. */
static int release(struct flexmem_function *function,
		   struct flexmem_piece *piece)
{
	int rc;

	/*
	 * The device may give the memory to a peer before flexmem gets the
	 * answer.
	 */
	flexmem_function_set_exclusive(piece, false);
	rc = function->ops.release(function->priv, &piece->mem);
	rc = flexmem_function_outcome(function, "release", rc, false);
	if (!rc)
		flexmem_function_forget_piece(function, piece);
	else if (flexmem_is_unanswered(rc) &&
		 piece->state == FLEXMEM_PIECE_STRANDED)
		piece->state = FLEXMEM_PIECE_LEAVING;
	else if (piece->state == FLEXMEM_PIECE_STRANDED)
		flexmem_function_set_exclusive(piece, true);
	return rc;
}

/*
 * Sends the commands that a piece has pending. Stops at the first command that
 * fails.
 * @piece: piece of the function. If this returns 0, the piece is removed,
 * unless its state is HELD.
 * Context: the caller runs no other operation of the function, and does not
 * hold data_lock. May sleep. Return: 0; -EIO if the device has failed; an error
 * of the firmware; or an error of flexmem_function_clear().
 */
int flexmem_function_undo(struct flexmem_function *function,
			  struct flexmem_piece *piece)
{
	int rc;

	/* Bytes may still move in the memory. A reset recovers the memory. */
	if (flexmem_function_has_failed(function))
		return -EIO;
	piece->tries++;
	rc = detach(function, piece);
	if (rc)
		return rc;
	rc = clear(function, piece);
	return rc ?: release(function, piece);
}

static bool is_pending(const struct flexmem_piece *piece)
{
	return piece->state != FLEXMEM_PIECE_HELD;
}

/*
 * Whether no command is pending, or every pending command was retried too
 * often.
 */
bool flexmem_function_is_settled(const struct flexmem_function *function)
{
	const struct flexmem_piece *piece = function->piece;
	const struct flexmem_piece *end = piece + function->nr_pieces;

	for (; piece < end; piece++)
		if (is_pending(piece) && piece->tries < FLEXMEM_RELEASE_TRIES)
			return false;
	return true;
}

/* Whether a slot is certainly empty: no piece is in it or may be in it. */
bool flexmem_function_slot_is_known(const struct flexmem_function *function,
				    unsigned int slot)
{
	unsigned int i;

	for (i = 0; i < function->nr_pieces; i++)
		if (function->piece[i].slot == slot)
			return false;
	return true;
}

/*
 * Bytes of a domain that are acquired and not yet released. @pending: only those
 * whose release has failed so far.
 */
u64 flexmem_function_held_in(const struct flexmem_function *function,
			     unsigned int domain, bool pending)
{
	const struct flexmem_piece *piece = function->piece;
	const struct flexmem_piece *end = piece + function->nr_pieces;
	u64 bytes = 0;

	for (; piece < end; piece++)
		if (piece->mem.domain == domain &&
		    piece->state != FLEXMEM_PIECE_ASKED_FOR &&
		    (!pending || is_pending(piece)))
			bytes += piece->mem.size;
	return bytes;
}

/* Number of acquired bytes, over all domains. */
u64 flexmem_function_held(const struct flexmem_function *function)
{
	unsigned int domain;
	u64 bytes = 0;

	for (domain = 0; domain < function->nr_domains; domain++)
		bytes += flexmem_function_held_in(function, domain, false);
	return bytes;
}

/*
 * Retries all pending commands. A piece that the firmware refuses does not
 * block the other pieces.
 * @all: also those commands that were retried too often.
 * May sleep. Return: 0; -ETIMEDOUT, -EINTR or -ENODEV as soon as a command
 * returns one of these; the first error with which a piece was refused; or an
 * error of flexmem_function_error().
 */
int flexmem_function_retry(struct flexmem_function *function, bool all)
{
	unsigned int i = 0, nr;
	int rc = 0, one;

	while (i < function->nr_pieces) {
		struct flexmem_piece *piece = &function->piece[i];

		if (!is_pending(piece) ||
		    (!all && piece->tries >= FLEXMEM_RELEASE_TRIES)) {
			i++;
			continue;
		}
		nr = function->nr_pieces;
		one = flexmem_function_error(function);
		if (one)
			return one;
		one = flexmem_function_undo(function, piece);
		if (flexmem_is_unanswered(one) || one == -ENODEV)
			return one;
		rc = rc ?: one;
		i += nr == function->nr_pieces;
	}
	return rc;
}

/*
 * Releases everything on removal. After a timeout, or if bytes may still move,
 * the firmware gets no further command. Nothing is released while something may
 * be mapped.
 * @function: function that is being removed, and whose programs have stopped.
 * May sleep.
 */
void flexmem_function_release_all(struct flexmem_function *function)
{
	unsigned int i = 0, nr;
	int rc;

	if (!function->nr_pieces)
		return;
	rc = flexmem_function_vm_unmap_all(function);
	if (rc)
		return;
	while (i < function->nr_pieces && !flexmem_is_unanswered(rc) &&
	       !flexmem_function_has_failed(function)) {
		struct flexmem_piece *piece = &function->piece[i];

		if (piece->state == FLEXMEM_PIECE_HELD)
			piece->state = FLEXMEM_PIECE_STRANDED;
		nr = function->nr_pieces;
		rc = detach(function, piece);
		/*
		 * Nothing is zeroed here: no program runs any more, and the
		 * driver of the PF clears the memory later.
		 */
		rc = rc ?: release(function, piece);
		i += nr == function->nr_pieces;
	}
}
