/* SPDX-License-Identifier: GPL-2.0 */
/* How the card carries out a job. See program.c. */
#ifndef _FLEXMEM_SIM_PROGRAM_H
#define _FLEXMEM_SIM_PROGRAM_H

#include <linux/types.h>

#include "run.h"

struct sim_function;

/**
 * struct sim_operation - a program and its operands
 * @fn: the function that runs it
 * @program: of enum sim_program
 * @binary: LOADED: address of the first record
 * @to: address of the first byte that is written
 * @from: address of the first byte that is read
 * @size: bytes; LOADED: of the binary
 * @is_virtual: @to and @from are addresses in @space, not physical addresses
 * @space: number of the client's device-virtual space; 0: the client had none
 * @value: byte for a fill
 * @cancelled: the card moves no further bytes
 * @buffer: holds bytes between read and write, like registers of the card
 */
struct sim_operation {
	struct sim_function *fn;
	enum sim_program program;
	struct flexmem_address binary;
	u64 to;
	u64 from;
	u64 size;
	bool is_virtual;
	u64 space;
	u8 value;
	bool cancelled;
	u8 buffer[2][512];
};

int sim_program_run(void *program);

#endif /* _FLEXMEM_SIM_PROGRAM_H */
