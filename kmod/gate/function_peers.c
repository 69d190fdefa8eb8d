// SPDX-License-Identifier: GPL-2.0
/*
 * The functions of one device are peers: they share its memory. If the device
 * gives memory to two of them, tenants of one function reach the bytes of
 * tenants of the other. So new memory is compared with the pieces of all peers,
 * except peers that have failed: their memory may be lost, and the device may
 * give it out again before flexmem hears of a reset.
 *
 * Peers read the pieces of a function under the lock of this file. So each
 * change of the array of pieces takes this lock too.
 */

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "gate/function.h"

/* All functions between flexmem_function_join() and flexmem_function_leave(). */
static LIST_HEAD(functions);
static DEFINE_SPINLOCK(peers_lock);

/* From now on other functions compare new memory with that of @function. */
void flexmem_function_join(struct flexmem_function *function)
{
	spin_lock(&peers_lock);
	list_add(&function->link, &functions);
	spin_unlock(&peers_lock);
}

/*
 * From now on no function compares new memory with that of @function. The
 * device's driver recovers the memory that @function may still hold.
 */
void flexmem_function_leave(struct flexmem_function *function)
{
	spin_lock(&peers_lock);
	list_del(&function->link);
	spin_unlock(&peers_lock);
}

static bool has_some(const struct flexmem_function *function,
		     const struct flexmem_memory *mem)
{
	const struct flexmem_piece *piece = function->piece;
	const struct flexmem_piece *end = piece + function->nr_pieces;

	for (; piece < end; piece++)
		if (piece->exclusive && flexmem_overlap(&piece->mem, mem))
			return true;
	return false;
}

static bool peer_has_some(const struct flexmem_function *function,
			  const struct flexmem_memory *mem)
{
	const struct flexmem_function *peer;

	list_for_each_entry(peer, &functions, link)
		if (peer != function && peer->device &&
		    peer->device == function->device &&
		    !flexmem_function_has_failed(peer) && has_some(peer, mem))
			return true;
	return false;
}

/*
 * Adds a piece, unless a peer has some of its memory.
 * @function: function with fewer than FLEXMEM_MAX_PIECES pieces.
 * Return: true if the piece was added.
 */
bool flexmem_function_add_piece(struct flexmem_function *function,
				const struct flexmem_piece *piece)
{
	bool adds;

	spin_lock(&peers_lock);
	adds = !piece->exclusive || !peer_has_some(function, &piece->mem);
	if (adds)
		function->piece[function->nr_pieces++] = *piece;
	spin_unlock(&peers_lock);
	return adds;
}

/* Removes a released piece. The other pieces keep their order. */
void flexmem_function_forget_piece(struct flexmem_function *function,
				   struct flexmem_piece *piece)
{
	unsigned int behind;

	spin_lock(&peers_lock);
	behind = function->piece + --function->nr_pieces - piece;
	memmove(piece, piece + 1, behind * sizeof(*piece));
	spin_unlock(&peers_lock);
}

/* Removes all pieces after a reset. */
void flexmem_function_forget_pieces(struct flexmem_function *function)
{
	spin_lock(&peers_lock);
	function->nr_pieces = 0;
	spin_unlock(&peers_lock);
}

/* Notes whether a peer may get the memory of a piece. */
void flexmem_function_set_exclusive(struct flexmem_piece *piece, bool exclusive)
{
	spin_lock(&peers_lock);
	piece->exclusive = exclusive;
	spin_unlock(&peers_lock);
}
