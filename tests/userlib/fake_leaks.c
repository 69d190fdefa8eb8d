// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the search for leaks at the end of a program short. LeakSanitizer looks for pointers in
 * the variables of all libraries. The sanitizers themselves have most of them, 12 MB, in which
 * there is no pointer of the program. Reading these took half of the time of a command. So it
 * reads the variables of the program and of the other libraries only.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/lsan_interface.h>

const char *__lsan_default_options(void);

const char *__lsan_default_options(void)
{
	return "use_globals=0";
}

static int add(struct dl_phdr_info *info, size_t size, void *found)
{
	const ElfW(Phdr) *header = info->dlpi_phdr;
	int i;

	(void)size;
	if (strstr(info->dlpi_name, "/libasan.so"))
		*(bool *)found = true;
	if (strstr(info->dlpi_name, "/libasan.so") || strstr(info->dlpi_name, "/libubsan.so"))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (header[i].p_type == PT_LOAD && header[i].p_flags & PF_W)
			__lsan_register_root_region((void *)(info->dlpi_addr + header[i].p_vaddr),
						    header[i].p_memsz);
	}
	return 0;
}

/* A sanitizer that is part of the program has its variables there, which would hide leaks. */
static void add_all(void)
{
	bool found = false;

	dl_iterate_phdr(add, &found);
	if (!found)
		abort();
}

static char *volatile kept;

/*
 * At the end, before the search, all libraries are loaded. FAKE_LEAK is for a test of the search:
 * one block is lost, and a larger one is not.
 */
__attribute__((constructor)) static void begin(void)
{
	if (atexit(add_all))
		abort();
	if (getenv("FAKE_LEAK")) {
		kept = malloc(33);
		kept = malloc(77);
	}
}
