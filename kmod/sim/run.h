/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A dispatch to the simulated card, for tests: ioctl(SIM_IOCTL_RUN) on the file
 * "queue" of a function in debugfs. This is no ABI.
 */
#ifndef _FLEXMEM_SIM_RUN_H
#define _FLEXMEM_SIM_RUN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * enum sim_program - what the card does with @size bytes
 * @SIM_PROGRAM_FILL: each byte becomes @value
 * @SIM_PROGRAM_COPY: the bytes of @from are copied to @to
 * @SIM_PROGRAM_ADD: each byte of @from is added to the byte at the same offset
 *	of @to
 * @SIM_NR_PROGRAMS: number of programs
 */
enum sim_program {
	SIM_PROGRAM_FILL,
	SIM_PROGRAM_COPY,
	SIM_PROGRAM_ADD,
	SIM_NR_PROGRAMS,
};

/* In &sim_run.flags: only a reset ends the program, a cancel does not. */
#define SIM_RUN_HANGS 1

/*
 * In &sim_run.flags: flexmem does not learn of the job's fence, as if the driver
 * had a bug.
 */
#define SIM_RUN_STRAY 2

/* In &sim_run.flags: the driver holds the segment table until the job ends. */
#define SIM_RUN_HOLDS 4

/*
 * In &sim_run.flags: the job runs in the device-virtual space of @fd. @to and
 * @from are 0; @to_offset and @from_offset are addresses. The job ends with
 * -EFAULT at the first address that is not mapped for the access.
 */
#define SIM_RUN_VIRTUAL 8

/**
 * struct sim_run - a job
 * @program: of enum sim_program
 * @fd: open file of the function's node; @to and @from are its handles
 * @to: handle of the memory that is written
 * @from: handle of the memory that is read; 0 with FILL
 * @to_offset: first byte in @to
 * @from_offset: first byte in @from
 * @size: bytes, not 0
 * @value: byte for FILL
 * @latency_ms: the program does nothing for this long after it has begun, and
 *	then everything at once; at most SIM_MAX_RUN_MS
 * @out_fence: descriptor of a sync_file that signals when the job has ended
 * @flags: one of SIM_RUN_HANGS, SIM_RUN_STRAY, SIM_RUN_HOLDS,
 *	SIM_RUN_VIRTUAL; or 0
 *
 * Jobs of a function run one by one, in order.
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
};

#define SIM_MAX_RUN_MS 60000

#define SIM_IOCTL_RUN _IOWR('S', 0, struct sim_run)

#endif /* _FLEXMEM_SIM_RUN_H */
