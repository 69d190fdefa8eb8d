/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Traces of allocations, plain or compressed by gzip. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One event. The file may reuse an identifier after a free. @allocation counts
 * from 0 and is never reused. @stream is 0 for a free.
 */
struct trace_event {
	uint64_t bytes;
	uint64_t line;
	uint64_t stream;
	uint32_t allocation;
	bool is_free;
};

/*
 * A trace in memory. @peak_bytes is the largest sum of requested bytes that are
 * live, and @peak_event the first event that leads to it. Both are not valid if
 * @allocations is 0.
 */
struct trace {
	struct trace_event *events;
	size_t count;
	uint32_t allocations;
	uint64_t peak_bytes;
	size_t peak_event;
};

#define TRACE_ERROR_MAX 512

/*
 * Reads a trace; the path "-" is standard input. Returns 0; or a negative
 * errno, with the error and its line in @error: -EINVAL if the file is wrong.
 * After an error there is nothing to free.
 */
int trace_read(struct trace *trace, const char *path,
		char error[TRACE_ERROR_MAX]);
void trace_free(struct trace *trace);

#endif /* TRACE_H */
