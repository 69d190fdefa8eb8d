/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A dispatch to the simulated card, for tests: ioctl(SIM_IOCTL_RUN) on the file
 * "queue" of a function in debugfs. This is no ABI.
 */
#ifndef _FLEXMEM_SIM_RUN_H
#define _FLEXMEM_SIM_RUN_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/flexmem.h>

/**
 * enum sim_program - what the card does with @size bytes
 * @SIM_PROGRAM_FILL: each byte becomes @value
 * @SIM_PROGRAM_COPY: the bytes of @from are copied to @to
 * @SIM_PROGRAM_ADD: each byte of @from is added to the byte at the same offset
 *	of @to
 * @SIM_PROGRAM_LOADED: the card reads a binary of @size bytes at @from, and
 *	carries out its records (struct sim_record)
 * @SIM_NR_PROGRAMS: number of programs
 */
enum sim_program {
	SIM_PROGRAM_FILL,
	SIM_PROGRAM_COPY,
	SIM_PROGRAM_ADD,
	SIM_PROGRAM_LOADED,
	SIM_NR_PROGRAMS,
};

/**
 * struct sim_record - an operation of a binary in device memory
 * @program: SIM_PROGRAM_FILL, SIM_PROGRAM_COPY or SIM_PROGRAM_ADD
 * @value: byte for FILL, at most 255
 * @to: address of the first byte that is written, in a region of the function
 * @from: address of the first byte that is read, in a region of the function;
 *	unused with FILL
 * @size: bytes, not 0; all in the region of @to, and in that of @from
 *
 * A binary is an array of records, which the card carries out in order. It
 * finds each address by the function's table at that time. An offset need not
 * be a multiple of 128.
 *
 * At the first record that is not valid the job ends: with -EFAULT if bytes are
 * not all in one region of the function, or otherwise with -EINVAL. This record
 * and those behind it change nothing.
 */
struct sim_record {
	__u32 program;
	__u32 value;
	struct flexmem_address to;
	struct flexmem_address from;
	__aligned_u64 size;
};

/* In &sim_run.flags: only a reset ends the program. */
#define SIM_RUN_HANGS 1

/*
 * In &sim_run.flags: flexmem does not learn of the job's fence, as if the driver
 * had a bug.
 */
#define SIM_RUN_STRAY 2

/*
 * In &sim_run.flags: the driver holds the regions in which @fd has memory until
 * the job ends, also those whose memory the job does not name.
 */
#define SIM_RUN_HOLDS 4

/*
 * In &sim_run.flags: the job runs in the device-virtual space of @fd. @to and
 * @from are 0; @to_offset and @from_offset are addresses. The job ends with
 * -EFAULT at the first address that is not mapped for the access.
 */
#define SIM_RUN_VIRTUAL 8

/* Most handles in &sim_run.handles. */
#define SIM_MAX_HANDLES 32

/**
 * struct sim_run - a job
 * @program: of enum sim_program
 * @fd: open file of the function's node, to which the handles belong
 * @to: handle of the memory that is written; 0 with LOADED
 * @from: handle of the memory that is read; 0 with FILL
 * @to_offset: first byte in @to; unused with LOADED
 * @from_offset: first byte in @from
 * @size: bytes, not 0. LOADED: a multiple of sizeof(struct sim_record)
 * @value: byte for FILL
 * @latency_ms: the program does nothing for this long after it has begun, and
 *	then everything at once; at most SIM_MAX_RUN_MS
 * @out_fence: descriptor of a sync_file that signals when the job has ended
 * @flags: one of SIM_RUN_HANGS, SIM_RUN_STRAY, SIM_RUN_HOLDS,
 *	SIM_RUN_VIRTUAL; or 0. SIM_RUN_VIRTUAL is not for LOADED
 * @handles: LOADED: address of an array of __u32, the handles of all other
 *	memory whose addresses are in the binary
 * @nr_handles: number of @handles, at most SIM_MAX_HANDLES; 0 if not LOADED
 *
 * No memory that the job names is freed before the job has ended, even if the
 * process is killed.
 *
 * The regions that a LOADED job reaches must keep their slots while it runs:
 * either the job names memory in each of them, or it has SIM_RUN_HOLDS.
 *
 * Jobs of a function run one by one, in order.
 *
 * Errors: EINVAL if a member is not valid; EFAULT if @handles cannot be read;
 * ENOENT if a handle names nothing; EIO if memory is lost, or if the function
 * must be reset; EBADF or EINVAL for @fd; EBUSY if the function is suspended;
 * ENODEV if no driver is bound to it; ENOMEM; EINTR.
 */
struct sim_run {
	__u32 program;
	__s32 fd;
	__u32 to;
	__u32 from;
	__u64 to_offset;
	__u64 from_offset;
	__u64 size;
	__u32 value;
	__u32 latency_ms;
	__s32 out_fence;
	__u32 flags;
	__u64 handles;
	__u64 nr_handles;
};

#define SIM_MAX_RUN_MS 60000

#define SIM_IOCTL_RUN _IOWR('S', 0, struct sim_run)

#endif /* _FLEXMEM_SIM_RUN_H */
