// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The last token at each address: a table of two levels. A leaf has the tokens
 * of 64 MiB of device memory. Only the pages of a leaf that hold a token use
 * host memory: a page for each 256 KiB of device memory in which an allocation
 * began. A token stays here when its allocation is freed. The caller asks the
 * cache whether the token is still valid, and where its allocation begins.
 */
#include "cuda.h"

#include <errno.h>
#include <sys/mman.h>

#define ADDRESS_BITS 48
#define LEAF_BITS 26
#define GRANULE_BITS 9
#define LEAVES (UINT64_C(1) << (ADDRESS_BITS - LEAF_BITS))
#define TOKENS (UINT64_C(1) << (LEAF_BITS - GRANULE_BITS))

_Static_assert(FMCUDA_GRANULE == 1 << GRANULE_BITS, "one granule, one token");

typedef void *_Atomic token;

static token *_Atomic leaves[LEAVES];

/* Makes the leaf of an address. Another thread may make it at the same time. */
static token *make(token *_Atomic *leaf)
{
	token *expected = NULL;
	token *made = mmap(NULL, TOKENS * sizeof(token), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(leaf, &expected, made))
		return made;
	munmap(made, TOKENS * sizeof(token));
	return expected;
}

/* Returns NULL if no allocation can begin there, or none ever did nearby. */
static token *find(uint64_t address)
{
	token *leaf;

	if (address >> ADDRESS_BITS || address % FMCUDA_GRANULE)
		return NULL;
	leaf = atomic_load_explicit(&leaves[address >> LEAF_BITS],
				    memory_order_acquire);
	return leaf ? leaf + address / FMCUDA_GRANULE % TOKENS : NULL;
}

static token *find_or_make(uint64_t address)
{
	token *found = find(address);

	if (found || address >> ADDRESS_BITS || address % FMCUDA_GRANULE ||
	    !make(&leaves[address >> LEAF_BITS]))
		return found;
	return find(address);
}

int fmcuda_pointer_put(uint64_t address, void *value)
{
	token *found = find_or_make(address);

	if (!found)
		return fmcuda_fail(-ENOMEM,
				   "no host memory for the address %#llx",
				   (unsigned long long)address);
	atomic_store_explicit(found, value, memory_order_relaxed);
	return 0;
}

void *fmcuda_pointer_get(uint64_t address)
{
	token *found = find(address);

	return found ? atomic_load_explicit(found, memory_order_relaxed) : NULL;
}
