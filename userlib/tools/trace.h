/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Traces of allocations, plain or compressed by gzip. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "aside.h"

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
 * What a recorded trace, of version 2, also has of an event. @process counts from
 * 0. @number: that of the event in the process's history. @tag: 0, or from 1 on the
 * number of an allocation's tag. @fails: an allocation that failed, for which
 * @region_id, @offset and @size are 0, as for a free.
 */
struct trace_exact {
	uint64_t number;
	uint64_t region_id;
	uint64_t offset;
	uint64_t size;
	uint32_t process;
	uint32_t tag;
	bool fails;
};

/*
 * Memory that the cache of a process has got from the driver or has @returned, in
 * a recorded trace: a segment, or the end of one. The rest as in struct trace_exact.
 */
struct trace_memory {
	uint64_t line;
	uint64_t number;
	uint64_t region_id;
	uint64_t offset;
	uint64_t size;
	uint32_t process;
	bool returned;
};

/*
 * A trace in memory. @exact is NULL, or has an entry for each event; then
 * @settings has the settings of each process's cache, as KEY:VALUE,... and @tags the
 * tags in the order of their numbers, escaped as with fmlib_escape(). @memory is no
 * event, and in the order of the file.
 * @peak_bytes is the largest sum of requested bytes that are
 * live, and @peak_event the first event that leads to it. Both are not valid if
 * @allocations is 0.
 */
struct trace {
	struct trace_event *events;
	struct trace_exact *exact;
	size_t count;
	struct trace_memory *memory;
	size_t memory_count;
	char **settings;
	char **tags;
	uint32_t processes;
	uint32_t tag_count;
	uint32_t allocations;
	uint64_t peak_bytes;
	size_t peak_event;
};

#define TRACE_ERROR_MAX 512

/* The most processes in a trace. */
#define TRACE_PROCESSES_MAX 1024
/* Begins a line with a process, from 1 on, and one of its settings. */
#define TRACE_SETTING "# setting "
/* Begins a line with the number of a tag, and its text, of at most TRACE_TAG_MAX bytes. */
#define TRACE_TAG "# tag "
#define TRACE_TAG_MAX 200

/*
 * Reads a trace; the path "-" is standard input. Returns 0; or a negative
 * errno, with the error and its line in @error: -EINVAL if the file is wrong.
 * After an error there is nothing to free.
 */
int trace_read(struct trace *trace, const char *path,
		char error[TRACE_ERROR_MAX]);
void trace_free(struct trace *trace);

/*
 * Opens a file, or standard input for "-", plain or compressed; NULL with errno if
 * that fails. @size: its bytes in the file, or 0 if that is not known, as of a pipe.
 */
gzFile trace_open(const char *path, uint64_t *size);

/* Why a read of @file has failed, or NULL; @error is a negative errno, or 0. */
const char *trace_failure(gzFile file, int *error);

/* A trace that is being written to @file. */
struct trace_output {
	gzFile file;
	bool is_stdout;
	struct aside aside;
};

/*
 * Begins a trace with the name @path, compressed if it ends in ".gz"; NULL is
 * standard output. trace_close() writes the end, and then the file has its name.
 * Both return 0, or a negative errno; after that a file at @path is as before.
 */
int trace_create(struct trace_output *output, const char *path);
int trace_close(struct trace_output *output);

#endif /* TRACE_H */
