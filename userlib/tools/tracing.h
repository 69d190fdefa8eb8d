/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The driver's trace events, from an instance of the kernel's tracing. */
#ifndef TRACING_H
#define TRACING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Begins to trace one function. @number: that of its node. Returns a descriptor from
 * which the events can be read as text, or a negative errno; -EBUSY: another process
 * reads them. There is no event's task and time in the text: a task chooses its name.
 */
int tracing_begin(uint32_t number);
/* From here on no event is added. */
void tracing_stop(void);
/* Closes the descriptor, and removes the instance. */
void tracing_end(int fd);

#endif /* TRACING_H */
