// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Reader of traces. The first line is "# flexmem-trace 1". Other lines that
 * begin with '#' are comments. Every other line is "TIME a ID BYTES STREAM" or
 * "TIME f ID", with decimal numbers and single spaces. The reader refuses any
 * damaged trace, because figures of such a trace would be wrong.
 *
 * A recorded trace is version 2. Its lines are
 *   TIME a ID BYTES STREAM PROCESS NUMBER REGION OFFSET SIZE TAG
 *   TIME f ID PROCESS NUMBER
 *   TIME x BYTES STREAM PROCESS NUMBER TAG      an allocation that failed
 *   TIME g PROCESS NUMBER REGION OFFSET SIZE    memory that the driver gave
 *   TIME r PROCESS NUMBER REGION OFFSET SIZE    memory that was returned to it
 *   # setting PROCESS KEY:VALUE
 *   # tag NUMBER TEXT
 */
#include "trace.h"
#include "render.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "escape.h"

#define MAGIC "# flexmem-trace "
#define VERSION "1"
#define RECORDED "2"
#define NONE UINT32_MAX

/* A live allocation, linked to others with the same hash. */
struct live {
	uint64_t id;
	uint64_t bytes;
	uint32_t next;
	uint32_t process;
};

/*
 * A file that is being read. @live has an entry for each allocation so far.
 * @err is what trace_read() returns on failure.
 */
struct reader {
	gzFile file;
	struct progress progress;
	char *error;
	int err;
	struct trace *trace;
	bool recorded;
	size_t room;
	size_t memory_room;

	struct live *live;
	size_t live_room;
	uint32_t *chains;
	uint32_t chain_mask;
	uint64_t live_bytes;

	uint64_t line_number;
	char line[256];
	size_t length;
	bool whole;

	unsigned char buffer[65536];
	size_t filled;
	size_t taken;
};

static bool fail(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct reader *reader, const char *format, ...)
{
	va_list arguments;
	int length = 0;

	if (reader->line_number)
		length = snprintf(reader->error, TRACE_ERROR_MAX, "line %llu: ",
				  (unsigned long long)reader->line_number);
	va_start(arguments, format);
	vsnprintf(reader->error + length, TRACE_ERROR_MAX - (size_t)length,
		  format, arguments);
	va_end(arguments);
	return false;
}

const char *trace_failure(gzFile file, int *error)
{
	int saved = errno;
	const char *text;
	int err;

	*error = 0;
	text = gzerror(file, &err);
	if (err == Z_ERRNO) {
		*error = -saved;
		return strerror(saved);
	}
	return err == Z_OK ? NULL :
	       err == Z_BUF_ERROR ? "compressed data ends too early" : text;
}

/* Refills the buffer. Returns false at the end of the file and after errors. */
static bool fill(struct reader *reader, bool *failed)
{
	const char *text;
	int count;
	int err;

	progress_update(&reader->progress, (uint64_t)gzoffset(reader->file));
	count = gzread(reader->file, reader->buffer, sizeof(reader->buffer));
	if (count > 0) {
		reader->filled = (size_t)count;
		reader->taken = 0;
		return true;
	}
	text = trace_failure(reader->file, &err);
	if (text) {
		if (err)
			reader->err = err;
		*failed = !fail(reader, "%s", text);
	}
	return false;
}

/*
 * Reads a line, without its newline, into reader->line. If the line does not
 * fit, drops the end of the line and sets reader->whole to false. Returns false
 * at the end of the file.
 */
static bool next_line(struct reader *reader, bool *failed)
{
	char c = '\0';

	reader->length = 0;
	reader->whole = true;
	*failed = false;
	if (reader->taken == reader->filled && !fill(reader, failed))
		return false;
	reader->line_number++;
	for (;;) {
		if (reader->taken == reader->filled && !fill(reader, failed)) {
			if (!*failed)
				fail(reader, "the file ends in the middle of a line");
			*failed = true;
			return false;
		}
		c = (char)reader->buffer[reader->taken++];
		if (c == '\n')
			break;
		if (reader->length + 1 < sizeof(reader->line))
			reader->line[reader->length++] = c;
		else
			reader->whole = false;
	}
	reader->line[reader->length] = '\0';
	if (reader->length &&
	    reader->line[reader->length - 1] == '\r') {
		fail(reader, "the line ends in CRLF, as on Windows; a trace's end in LF");
		*failed = true;
		return false;
	}
	return true;
}

static bool take_number(const char **text, uint64_t *number)
{
	const char *at = *text;

	*number = 0;
	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, *at - '0', number))
			return false;
	}
	*text = at;
	return true;
}

static bool take(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

static uint32_t *chain_of(const struct reader *reader, uint64_t id)
{
	/*
	 * The multiplication spreads identifiers that are multiples of a power
	 * of two.
	 */
	uint64_t hash = id * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return &reader->chains[hash & reader->chain_mask];
}

/* Returns the link to the allocation @id, or the empty last link. */
static uint32_t *find_live(const struct reader *reader, uint64_t id)
{
	uint32_t *link = chain_of(reader, id);

	while (*link != NONE && reader->live[*link].id != id)
		link = &reader->live[*link].next;
	return link;
}

/* Doubles the number of chains, and distributes the live allocations again. */
static void more_chains(struct reader *reader)
{
	uint32_t *old = reader->chains;
	uint32_t old_count = old ? reader->chain_mask + 1 : 0;
	uint32_t count = old ? 2 * old_count : 1024;
	uint32_t *link;
	uint32_t next;
	uint32_t at;
	uint32_t i;

	reader->chains = grow(NULL, count, sizeof(*reader->chains));
	memset(reader->chains, 0xff, count * sizeof(*reader->chains));
	reader->chain_mask = count - 1;
	for (i = 0; i < old_count; i++) {
		for (at = old[i]; at != NONE; at = next) {
			next = reader->live[at].next;
			link = chain_of(reader, reader->live[at].id);
			reader->live[at].next = *link;
			*link = at;
		}
	}
	free(old);
}

static struct trace_event *add_event(struct reader *reader)
{
	struct trace *trace = reader->trace;
	struct trace_event *event;

	if (trace->count == reader->room) {
		reader->room = reader->room ? 2 * reader->room : 4096;
		trace->events = grow(trace->events, reader->room,
				     sizeof(*trace->events));
		if (reader->recorded)
			trace->exact = grow(trace->exact, reader->room,
					    sizeof(*trace->exact));
	}
	event = &trace->events[trace->count++];
	memset(event, 0, sizeof(*event));
	event->line = reader->line_number;
	return event;
}

static bool add_alloc(struct reader *reader, uint64_t id, uint64_t bytes,
		      uint64_t stream)
{
	struct trace *trace = reader->trace;
	struct trace_event *event;
	uint32_t *link;

	if (trace->allocations == NONE / 2)
		return fail(reader, "too many allocations");
	if (trace->allocations == reader->live_room) {
		reader->live_room = reader->live_room ?
				    2 * reader->live_room : 4096;
		reader->live = grow(reader->live, reader->live_room,
				    sizeof(*reader->live));
	}
	if (!reader->chains || trace->allocations > reader->chain_mask)
		more_chains(reader);
	link = find_live(reader, id);
	if (*link != NONE)
		return fail(reader, "%llu is allocated already",
			    (unsigned long long)id);
	if (__builtin_add_overflow(reader->live_bytes, bytes,
				   &reader->live_bytes))
		return fail(reader, "more than 2^64 bytes are live");

	reader->live[trace->allocations].id = id;
	reader->live[trace->allocations].bytes = bytes;
	reader->live[trace->allocations].next = NONE;
	*link = trace->allocations;
	event = add_event(reader);
	event->bytes = bytes;
	event->stream = stream;
	event->allocation = trace->allocations++;
	if (reader->live_bytes > trace->peak_bytes) {
		trace->peak_bytes = reader->live_bytes;
		trace->peak_event = trace->count - 1;
	}
	return true;
}

static bool add_free(struct reader *reader, uint64_t id)
{
	struct trace_event *event;
	uint32_t *link = NULL;
	uint32_t at;

	if (reader->chains)
		link = find_live(reader, id);
	if (!link || *link == NONE)
		return fail(reader, "%llu is not allocated",
			    (unsigned long long)id);
	at = *link;
	*link = reader->live[at].next;
	reader->live_bytes -= reader->live[at].bytes;
	event = add_event(reader);
	event->bytes = reader->live[at].bytes;
	event->allocation = at;
	event->is_free = true;
	return true;
}

/* Makes room for a process, which is numbered from 1 on in the file. */
static bool need_process(struct reader *reader, uint64_t process)
{
	struct trace *trace = reader->trace;

	if (!process || process > TRACE_PROCESSES_MAX)
		return fail(reader, "processes are numbered from 1 to %d",
			    TRACE_PROCESSES_MAX);
	if (process <= trace->processes)
		return true;
	trace->settings = grow(trace->settings, process,
			       sizeof(*trace->settings));
	while (trace->processes < process)
		trace->settings[trace->processes++] = NULL;
	return true;
}

/* Notes the process, the number, and @more of the event that was added last. */
static bool note_exact(struct reader *reader, const uint64_t *numbers,
		       const struct trace_exact *more)
{
	struct trace *trace = reader->trace;
	struct trace_exact *exact;

	if (!need_process(reader, numbers[0]))
		return false;
	if (more->tag > trace->tag_count)
		return fail(reader, "no line before has the text of tag %" PRIu32,
			    more->tag);
	exact = &trace->exact[trace->count - 1];
	*exact = *more;
	exact->process = (uint32_t)numbers[0] - 1;
	exact->number = numbers[1];
	return true;
}

/* What is no number of 32 bits is the number of no tag. */
static uint32_t tag_number(uint64_t number)
{
	return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static bool note_alloc(struct reader *reader, const uint64_t *numbers)
{
	const struct trace_exact more = {
		.region_id = numbers[2],
		.offset = numbers[3],
		.size = numbers[4],
		.tag = tag_number(numbers[5]),
	};

	if (more.offset + more.size < more.offset)
		return fail(reader, "the allocation ends beyond 2^64");
	if (!note_exact(reader, numbers, &more))
		return false;
	reader->live[reader->trace->allocations - 1].process =
		(uint32_t)numbers[0];
	return true;
}

static bool note_free(struct reader *reader, const uint64_t *numbers)
{
	const struct trace_exact more = { 0 };
	const struct trace *trace = reader->trace;
	uint32_t at = trace->events[trace->count - 1].allocation;

	if (reader->live[at].process != numbers[0])
		return fail(reader, "another process has allocated this");
	return note_exact(reader, numbers, &more);
}

/* An allocation that failed is live at no time. */
static bool add_failed(struct reader *reader, const uint64_t *numbers)
{
	const struct trace_exact more = {
		.tag = tag_number(numbers[4]),
		.fails = true,
	};
	struct trace_event *event = add_event(reader);

	event->bytes = numbers[0];
	event->stream = numbers[1];
	event->allocation = NONE;
	return note_exact(reader, numbers + 2, &more);
}

static bool add_memory(struct reader *reader, const uint64_t *numbers,
		       bool returned)
{
	struct trace *trace = reader->trace;

	if (!need_process(reader, numbers[0]))
		return false;
	if (numbers[3] + numbers[4] < numbers[3])
		return fail(reader, "the memory ends beyond 2^64");
	if (trace->memory_count == reader->memory_room) {
		reader->memory_room = reader->memory_room ?
				      2 * reader->memory_room : 1024;
		trace->memory = grow(trace->memory, reader->memory_room,
				     sizeof(*trace->memory));
	}
	trace->memory[trace->memory_count++] = (struct trace_memory){
		.line = reader->line_number,
		.process = (uint32_t)numbers[0] - 1,
		.number = numbers[1],
		.region_id = numbers[2],
		.offset = numbers[3],
		.size = numbers[4],
		.returned = returned,
	};
	return true;
}

/* Takes @count numbers, each after a space, and the end of the line. */
static bool take_numbers(const struct reader *reader, const char *at,
			 uint64_t *numbers, unsigned int count)
{
	for (; count; count--) {
		if (!take(&at, ' ') || !take_number(&at, numbers++))
			return false;
	}
	return at == reader->line + reader->length;
}

static bool malformed(struct reader *reader)
{
	char *at;

	/* Replaces control characters, because a terminal may show the text. */
	for (at = reader->line; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return fail(reader, "%s: '%.40s'", reader->recorded ?
		    "no line of a recorded trace" :
		    "neither 'TIME a ID BYTES STREAM' nor 'TIME f ID'",
		    reader->line);
}

static bool parse_event(struct reader *reader)
{
	const char *at = reader->line;
	bool recorded = reader->recorded;
	uint64_t n[9];
	uint64_t time;
	char kind;

	if (!reader->whole || !take_number(&at, &time) || !take(&at, ' ') || !*at)
		return malformed(reader);
	kind = *at++;
	if (kind == 'a' && take_numbers(reader, at, n, recorded ? 9 : 3))
		return add_alloc(reader, n[0], n[1], n[2]) &&
		       (!recorded || note_alloc(reader, n + 3));
	if (kind == 'f' && take_numbers(reader, at, n, recorded ? 3 : 1))
		return add_free(reader, n[0]) &&
		       (!recorded || note_free(reader, n + 1));
	if (kind == 'x' && recorded && take_numbers(reader, at, n, 5))
		return add_failed(reader, n);
	if ((kind == 'g' || kind == 'r') && recorded &&
	    take_numbers(reader, at, n, 5))
		return add_memory(reader, n, kind == 'r');
	return malformed(reader);
}

/* Whether @text is as fmlib_escape() writes it. */
static bool is_escaped(const char *text)
{
	char escaped[FMLIB_ESCAPED_MAX];
	size_t left = strlen(text);
	size_t size;

	for (; left; text += size, left -= size) {
		size = fmlib_escape(text, left, escaped);
		if (*text != '\\' && strncmp(escaped, text, size))
			return false;
	}
	return true;
}

static bool parse_tag(struct reader *reader)
{
	const char *at = reader->line + strlen(TRACE_TAG);
	struct trace *trace = reader->trace;
	uint64_t number;

	if (!reader->whole || !take_number(&at, &number) || !take(&at, ' ') ||
	    !*at || !is_escaped(at))
		return malformed(reader);
	if (number != (uint64_t)trace->tag_count + 1)
		return fail(reader, "tag %" PRIu64 " where %" PRIu64 " is the next",
			    number, (uint64_t)trace->tag_count + 1);
	trace->tags = grow(trace->tags, number, sizeof(*trace->tags));
	trace->tags[trace->tag_count++] = strcpy(grow(NULL, strlen(at) + 1, 1), at);
	return true;
}

/* The settings of a process have at most this many bytes. */
#define SETTINGS_MAX 65536

static bool parse_setting(struct reader *reader)
{
	const char *at = reader->line + strlen(TRACE_SETTING);
	uint64_t process;
	char **all;
	size_t length;

	/* An error of the cache tells of the setting, on a terminal maybe. */
	if (!reader->whole || !take_number(&at, &process) || !take(&at, ' ') ||
	    !is_escaped(at))
		return malformed(reader);
	if (!need_process(reader, process))
		return false;
	all = &reader->trace->settings[process - 1];
	length = *all ? strlen(*all) : 0;
	if (length + strlen(at) > SETTINGS_MAX)
		return fail(reader, "the settings of process %" PRIu64
			    " have more than %d bytes", process, SETTINGS_MAX);
	*all = grow(*all, length + strlen(at) + 2, 1);
	sprintf(*all + length, "%s%s", length ? "," : "", at);
	return true;
}

/* Of comments only settings and tags of a recorded trace count. */
static bool parse_comment(struct reader *reader)
{
	if (!reader->recorded)
		return true;
	if (!strncmp(reader->line, TRACE_SETTING, strlen(TRACE_SETTING)))
		return parse_setting(reader);
	if (!strncmp(reader->line, TRACE_TAG, strlen(TRACE_TAG)))
		return parse_tag(reader);
	return true;
}

static bool parse_header(struct reader *reader)
{
	bool failed;

	if (!next_line(reader, &failed))
		return failed ? false : fail(reader, "the file is empty");
	if (strncmp(reader->line, MAGIC, strlen(MAGIC)))
		return fail(reader, "not a trace: it does not begin with '"
			    MAGIC VERSION "'");
	reader->recorded = !strcmp(reader->line + strlen(MAGIC), RECORDED);
	if (!reader->recorded && strcmp(reader->line + strlen(MAGIC), VERSION))
		return fail(reader,
			    "version '%.20s' of traces is not known, only "
			    VERSION " and " RECORDED,
			    reader->line + strlen(MAGIC));
	return true;
}

static bool parse(struct reader *reader)
{
	bool failed;

	if (!parse_header(reader))
		return false;
	while (next_line(reader, &failed)) {
		if (reader->line[0] == '#' ? !parse_comment(reader) :
					     !parse_event(reader))
			return false;
	}
	return !failed;
}

gzFile trace_open(const char *path, uint64_t *size)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	off_t begin;
	off_t end;
	gzFile file;

	*size = 0;
	if (fd < 0)
		return NULL;
	begin = lseek(fd, 0, SEEK_CUR);
	end = begin < 0 ? begin : lseek(fd, 0, SEEK_END);
	if (end > 0) {
		*size = (uint64_t)end;
		lseek(fd, begin, SEEK_SET);
	}
	file = gzdopen(fd, "r");
	if (!file)
		close(fd);
	return file;
}

int trace_read(struct trace *trace, const char *path,
	       char error[TRACE_ERROR_MAX])
{
	struct reader *reader;
	uint64_t size;
	int err = 0;

	memset(trace, 0, sizeof(*trace));
	reader = grow(NULL, 1, sizeof(*reader));
	memset(reader, 0, sizeof(*reader));
	reader->error = error;
	reader->trace = trace;

	errno = 0;
	reader->file = trace_open(path, &size);
	if (!reader->file) {
		err = errno ? -errno : -ENOMEM;
		fail(reader, "%s", strerror(-err));
		free(reader);
		return err;
	}
	reader->err = -EINVAL;
	progress_begin(&reader->progress, stderr, "reading", size);
	if (!parse(reader))
		err = reader->err;
	progress_end(&reader->progress);
	gzclose(reader->file);
	free(reader->live);
	free(reader->chains);
	free(reader);
	if (err)
		trace_free(trace);
	return err;
}

void trace_free(struct trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->processes; i++)
		free(trace->settings[i]);
	free(trace->settings);
	for (i = 0; i < trace->tag_count; i++)
		free(trace->tags[i]);
	free(trace->tags);
	free(trace->exact);
	free(trace->memory);
	free(trace->events);
	memset(trace, 0, sizeof(*trace));
}

int trace_create(struct trace_output *output, const char *path)
{
	const char *end = path ? strrchr(path, '.') : NULL;
	int fd;

	output->is_stdout = !path;
	fd = path ? aside_begin_own(&output->aside, path) : dup(STDOUT_FILENO);
	if (fd < 0)
		return path ? fd : -errno;
	output->file = gzdopen(fd, end && !strcmp(end, ".gz") ? "wb" : "wT");
	if (output->file)
		return 0;
	close(fd);
	return path ? aside_end(&output->aside, -ENOMEM) : -ENOMEM;
}

/* gzclose() succeeds after a write that failed, if it can write the rest. */
int trace_close(struct trace_output *output)
{
	int failed = Z_OK;
	int err = 0;

	gzerror(output->file, &failed);
	errno = 0;
	if (gzclose(output->file) != Z_OK || failed != Z_OK)
		err = errno ? -errno : -EIO;
	return output->is_stdout ? err : aside_end(&output->aside, err);
}
