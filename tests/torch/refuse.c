// SPDX-License-Identifier: GPL-2.0
/*
 * Loaded before the C library: while @refuse is set, PyTorch's binding gets no
 * memory for a large struct, such as a cache. Nobody else is refused, because
 * PyTorch would not survive it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 65536

extern void *__libc_calloc(size_t count, size_t size);
int refuse;

void *calloc(size_t count, size_t size)
{
	Dl_info caller;

	if (refuse && count * size >= LARGE &&
	    dladdr(__builtin_return_address(0), &caller) &&
	    strstr(caller.dli_fname, "/libflexmem_torch.so"))
		return NULL;
	return __libc_calloc(count, size);
}
