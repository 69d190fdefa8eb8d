/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of corner cases: calls that compare the result with an
 * expected one.
 */
#ifndef _CORNERS_H
#define _CORNERS_H

#include "faults.h"

#define BY(r, f, NAME, cmd, error)					\
	run_good(r, #NAME,						\
		 native_ioctl((r)->file[f], FLEXMEM_IOCTL_##NAME, cmd),	\
		 error)
#define FAILS(r, NAME, cmd, error) BY(r, 0, NAME, cmd, error)
#define CALL(r, NAME, cmd) FAILS(r, NAME, cmd, 0)

static inline u32 alloc(struct run *r, unsigned int f, u64 length, u32 flags)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = length, .flags = flags);

	if (BY(r, f, ALLOC, &cmd, 0))
		r->handle[f][r->nr[f]++] = cmd.out_handle;
	return cmd.out_handle;
}

/* Carries out @cmd on file 0, expects @error, and notes the handle. */
static inline void alloc_by(struct run *r, struct flexmem_alloc cmd, int error,
			    struct flexmem_alloc *reply)
{
	*reply = cmd;
	if (FAILS(r, ALLOC, reply, error) && !error)
		r->handle[0][r->nr[0]++] = reply->out_handle;
}

#define MOST_CHUNKS 4

/* Reads the chunks of the last allocation. Returns their number. */
static inline u32 chunks(struct run *r,
			 struct flexmem_chunk_entry entry[MOST_CHUNKS])
{
	struct flexmem_lookup cmd = CMD(lookup,
		.handle = r->handle[0][r->nr[0] - 1],
		.entry_size = sizeof(*entry), .count = MOST_CHUNKS,
		.entries = (uintptr_t)entry);

	if (!CALL(r, LOOKUP, &cmd))
		return 0;
	must(r, cmd.out_address.region_id == entry[0].address.region_id &&
	     cmd.out_address.offset == entry[0].address.offset,
	     "address of the first chunk");
	return cmd.out_count;
}

static inline void open_file(struct run *r, unsigned int f)
{
	struct file *file = native_open(world_minor(1), O_RDWR | O_NONBLOCK);

	if (run_good(r, "open", PTR_ERR_OR_ZERO(file), 0))
		r->file[f] = file;
}

static inline void prepare(struct run *r)
{
	open_file(r, 0);
	if (r->file[0])
		alloc(r, 0, 20000, FLEXMEM_ALLOC_MAPPABLE);
}

/* corners.c: if set, the next pause of any task calls this once. */
extern void (*during_pause)(void);

/* tenant_corners.c */
void run_after_free(struct run *r, void (*call)(struct run *r));
bool ran_after_free(void);

#endif /* _CORNERS_H */
