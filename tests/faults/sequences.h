/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files with sequences of calls. */
#ifndef SEQUENCES_H
#define SEQUENCES_H

#include "faults.h"

/* Defined in sequences.c. */

/*
 * Checks an answer. It must be @expected, or an injected fault must explain it.
 */
bool good(struct run *r, const char *at, int error, int expected);

#define CALL(r, f, NAME, arg) \
	good(r, #NAME, fm_ioctl((r)->fd[f], FLEXMEM_IOCTL_##NAME, arg), 0)

bool open_file(struct run *r, unsigned int f);
bool alloc(struct run *r, unsigned int f, struct flexmem_alloc a);

#define ALLOC(r, f, ...) alloc(r, f, CMD(alloc, ##__VA_ARGS__))

/* Returns the handle of the newest allocation of a file. */
uint32_t last(const struct run *r, unsigned int f);
bool free_last(struct run *r, unsigned int f);
void prepare_open(struct run *r);
void run_close(struct run *r);

/* Defined in memory.c. */

bool map(struct run *r, unsigned int f);
void run_write_read(struct run *r);
void prepare_large(struct run *r);
void run_write_read_large(struct run *r);
void run_copy_range(struct run *r);
void prepare_scrub(struct run *r);
void run_scrub(struct run *r);
void run_scrub_twice(struct run *r);
void prepare_dirty(struct run *r);
void run_zeroed(struct run *r);
void run_quarantine_trim(struct run *r);
void run_resize(struct run *r);
void run_resize_scrub(struct run *r);
void run_resize_wrong(struct run *r);
void run_growable(struct run *r);
void run_map(struct run *r);
void run_map_part(struct run *r);
void run_map_free(struct run *r);
void run_map_close(struct run *r);
void run_map_trim(struct run *r);
void run_map_fork(struct run *r);
void run_map_wrong(struct run *r);

#endif /* SEQUENCES_H */
