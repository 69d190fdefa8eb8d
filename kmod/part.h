/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of parts. A part is a capability that the core can do without. The
 * core calls the functions of a part through its row, or by one of the few names
 * that have a stub in the part's header.
 * The core has the first row, for its own commands.
 */
#ifndef _FLEXMEM_PART_H
#define _FLEXMEM_PART_H

#include <linux/build_bug.h>
#include <linux/fs.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <linux/flexmem.h>

struct flexmem_allocation;
struct flexmem_call;
struct flexmem_client;
struct flexmem_device_ops;
struct flexmem_stock;
struct flexmem_table;

/**
 * struct flexmem_command - a command of a part
 * @number: of enum flexmem_cmd
 * @size: size of its struct
 * @min_size: size of its struct in the first version
 * @mode: how the file must be open: for writing if the command changes something,
 *	for reading if it returns bytes of allocations
 * @has_flags: the handler looks at the flags; otherwise they must be 0
 * @needs: what the device must be able to do, of enum flexmem_capabilities
 * @carry_out: the handler. Returns 0 or an errno that the ABI header lists
 */
struct flexmem_command {
	u32 number;
	u32 size;
	u32 min_size;
	fmode_t mode;
	bool has_flags;
	u32 needs;
	int (*carry_out)(struct flexmem_call *call);
};

enum { LOOKS = 0, CHANGES = 1, HAS_FLAGS = 2, READS = 4 };

/* No command has a number from this on. */
#define FLEXMEM_MAX_COMMANDS 64

/* Room on the stack for the struct of any command. */
#define LONGEST_STRUCT sizeof(struct flexmem_domain_info)

/* @last: the last member of the struct's first version */
/* checkpatch: MACRO_ARG_REUSE - they are constants and names */
#define COMMAND(id, type, last, kind, need, function) {          \
		.number = id,                                    \
		.size = sizeof(struct type) + BUILD_BUG_ON_ZERO( \
			(id) >= FLEXMEM_MAX_COMMANDS ||          \
			sizeof(struct type) > LONGEST_STRUCT ||  \
			offsetof(struct type, flags) != 4),      \
		.min_size = offsetofend(struct type, last),      \
		.mode = ((kind) & CHANGES ? FMODE_WRITE : 0) |   \
			((kind) & READS ? FMODE_READ : 0),       \
		.has_flags = (kind) & HAS_FLAGS,                 \
		.needs = need,                                   \
		.carry_out = function,                           \
	}

/**
 * struct flexmem_part_ops - a row of the table
 * @commands: its commands; the last entry is empty. NULL: it has none
 * @capabilities: of enum flexmem_capabilities: what a device can do thanks to it
 * @start: a function begins. It has no regions yet, and no file is open on it
 * @work: the function's worker runs, or a reset is over: the part gets back what
 *	it lacks. The function takes commands. Under acquire_lock
 * @trim: regions are wanted: the part gives up those to which nobody has a right
 *	any more. Under acquire_lock
 * @leave: an allocation that a device program has used lost its last reference:
 *	the part ends it, at once or when no program uses it any more. One row has
 *	it: it may free the allocation
 * @close: a file was closed, and the device's driver knows. Its allocations are
 *	freed next
 * @loss: a reset or the removal of the function has ended, and nobody can use the
 *	regions that there were before. No lock of the table is held
 * @end: a removed function ends. No file is open on it any more
 *
 * Each of them may sleep, or be NULL.
 */
struct flexmem_part_ops {
	const struct flexmem_command *commands;
	u32 capabilities;
	void (*start)(struct flexmem_table *table);
	void (*work)(struct flexmem_table *table);
	void (*trim)(struct flexmem_table *table);
	void (*leave)(struct flexmem_allocation *allocation,
		      struct flexmem_stock *stock);
	void (*close)(struct flexmem_client *client);
	void (*loss)(struct flexmem_table *table);
	void (*end)(struct flexmem_table *table);
};

extern const struct flexmem_part_ops flexmem_part_core;
extern const struct flexmem_part_ops flexmem_part_resize;
extern const struct flexmem_part_ops flexmem_part_reports;
extern const struct flexmem_part_ops flexmem_part_pressure;
extern const struct flexmem_part_ops flexmem_part_reservations;
extern const struct flexmem_part_ops flexmem_part_programs;
extern const struct flexmem_part_ops flexmem_part_bytes;
extern const struct flexmem_part_ops flexmem_part_spaces;

/* The rows, and their commands by number. Nothing changes after the first call. */
extern const struct flexmem_part_ops *const *flexmem_parts;
extern unsigned int flexmem_nr_parts;
extern const struct flexmem_command *flexmem_commands[FLEXMEM_MAX_COMMANDS];

void flexmem_parts_init(const struct flexmem_part_ops *const *rows,
			unsigned int nr);
u32 flexmem_parts_capabilities(const struct flexmem_device_ops *ops);

/* Calls a member of each row, in their order; @close, @loss and @end in reverse. */
/* checkpatch: MACRO_ARG_REUSE - they are a name and an expression without effect */
/* checkpatch: MACRO_ARG_PRECEDENCE - the same */
#define flexmem_parts_each(at, member, ...) do {			\
	for (unsigned int i_ = 0; i_ < flexmem_nr_parts; i_++)		\
		if (flexmem_parts[at]->member)				\
			flexmem_parts[at]->member(__VA_ARGS__);		\
} while (0)
#define flexmem_parts_call(member, ...) \
	flexmem_parts_each(i_, member, __VA_ARGS__)
#define flexmem_parts_undo(member, ...) \
	flexmem_parts_each(flexmem_nr_parts - 1 - i_, member, __VA_ARGS__)

#endif /* _FLEXMEM_PART_H */
