// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Makes a trace of the requests to a server of a language model. The keys and
 * values of a prompt are one allocation, which is made when the request arrives.
 * Each block of output tokens is another one, made before the first of them. The
 * last token frees all. A request does not wait for others.
 */
#define _GNU_SOURCE
#include "convert.h"
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Limits that keep all sums below 2^64 microseconds, and a trace on a disk. */
#define MOST_TOKENS UINT64_C(100000000)
#define MOST_EVENTS 100000000
#define LAST_ARRIVAL 1e17
#define SECOND UINT64_C(1000000)

enum {
	ARRIVAL,
	INPUT,
	OUTPUT,
	FIELDS,
};

/* A request. @numbers: its arrival, in microseconds, and its tokens. */
struct request {
	uint64_t numbers[FIELDS];
	uint64_t line;
};

#define MOST_COLUMNS 64

/*
 * @names: what --columns calls the fields, or NULL. @columns: where a line of CSV
 * has them. @order: that of the next event.
 */
struct reader {
	struct conversion *conversion;
	const struct serving *serving;
	struct request *requests;
	size_t count;
	size_t room;
	uint64_t line;
	size_t columns[FIELDS];
	const char *names[FIELDS];
	uint64_t order;
};

/* The names that public traces have, without their case and punctuation. */
static const char *const usual[FIELDS] = {
	[ARRIVAL] = " arrival arrivaltime arrivedat timestamp time ",
	[INPUT] = " input inputtokens inputlength inputlen prompttokens promptlen contexttokens requesttokens numprefilltokens ",
	[OUTPUT] = " output outputtokens outputlength outputlen generatedtokens responsetokens completiontokens numdecodetokens ",
};

static const char *const titles[FIELDS] = { "arrival", "input tokens", "output tokens" };

static bool bad_field(const struct reader *reader, int field, const char *what,
		      const char *text)
{
	if (!text)
		return convert_fail(reader->conversion->error,
				    "line %" PRIu64 ": %s %s; --columns names the right ones",
				    reader->line, what, titles[field]);
	return convert_fail(reader->conversion->error, "line %" PRIu64 ": %s %s: '%.60s'",
			    reader->line, what, titles[field], text);
}

/* Whether a column or key is the one for @field. */
static bool is_column(const struct reader *reader, int field, const char *name)
{
	char plain[40] = " ";
	size_t length = 1;

	if (reader->names[field])
		return !strcmp(reader->names[field], name);
	for (; *name && length + 2 < sizeof(plain); name++) {
		if (isalnum((unsigned char)*name))
			plain[length++] = (char)tolower((unsigned char)*name);
	}
	plain[length] = ' ';
	return !*name && length > 1 && strstr(usual[field], plain);
}

/* "2023-11-16 18:15:46.680590": of a time zone only UTC is read. */
static bool parse_date(const char *text, double *seconds)
{
	struct tm date = { 0 };
	char *end = strptime(text, "%Y-%m-%d", &date);
	char *after;

	if (!end || (*end != ' ' && *end != 'T'))
		return false;
	end = strptime(end + 1, "%H:%M:%S", &date);
	if (!end)
		return false;
	*seconds = 0;
	if (*end == '.') {
		*seconds = strtod(end, &after);
		end = after;
	}
	*seconds += (double)timegm(&date);
	return !*end || !strcmp(end, "Z") || !strcmp(end, "+00:00");
}

/* The microseconds of an arrival. */
static bool parse_arrival(const struct reader *reader, const char *text,
			  uint64_t *arrival)
{
	double scale = (double)SECOND / (double)reader->serving->ticks;
	double number;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	if (parse_date(text, &number)) {
		scale = (double)SECOND;
	} else {
		number = strtod(text, &end);
		if (*end)
			return false;
	}
	if (!(number * scale < LAST_ARRIVAL))
		return false;
	*arrival = (uint64_t)(number * scale + 0.5);
	return true;
}

static bool add_request(struct reader *reader, const char *const texts[FIELDS])
{
	struct request request = { .line = reader->line };
	int i;

	for (i = 0; i < FIELDS; i++) {
		if (i == ARRIVAL ?
		    parse_arrival(reader, texts[i], &request.numbers[i]) :
		    parse_number(texts[i], MOST_TOKENS, &request.numbers[i]))
			continue;
		return bad_field(reader, i, "no", texts[i]);
	}
	if (reader->count == reader->room) {
		reader->room = reader->room ? 2 * reader->room : 4096;
		reader->requests = grow(reader->requests, reader->room,
					sizeof(*reader->requests));
	}
	reader->requests[reader->count++] = request;
	return true;
}

/*
 * Splits a line of CSV at its commas, in place. A field in double quotes may have
 * commas, and two quotes for one. Returns the number of fields, and at most
 * MOST_COLUMNS.
 */
static size_t split_csv(char *line, char *fields[MOST_COLUMNS])
{
	size_t count = 0;
	bool quoted;
	char *to;

	while (count < MOST_COLUMNS) {
		fields[count++] = to = line;
		for (quoted = false; *line && (quoted || *line != ','); line++) {
			if (*line != '"')
				*to++ = *line;
			else if (quoted && line[1] == '"')
				*to++ = *++line;
			else
				quoted = !quoted;
		}
		if (!*line) {
			*to = '\0';
			return count;
		}
		line++;
		*to = '\0';
	}
	return count;
}

static bool read_header(struct reader *reader, char *line)
{
	char *fields[MOST_COLUMNS];
	size_t count = split_csv(line, fields);
	size_t column;
	int i;

	for (i = 0; i < FIELDS; i++) {
		reader->columns[i] = MOST_COLUMNS;
		for (column = 0; column < count; column++) {
			if (!is_column(reader, i, fields[column]))
				continue;
			if (reader->columns[i] != MOST_COLUMNS)
				return bad_field(reader, i, "a second column for the", fields[column]);
			reader->columns[i] = column;
		}
		if (reader->columns[i] == MOST_COLUMNS)
			return bad_field(reader, i, "no column for the", NULL);
	}
	return true;
}

static bool read_csv(struct reader *reader, char *line)
{
	const char *texts[FIELDS];
	char *fields[MOST_COLUMNS];
	size_t count = split_csv(line, fields);
	int i;

	for (i = 0; i < FIELDS; i++)
		texts[i] = reader->columns[i] < count ? fields[reader->columns[i]] : "";
	return add_request(reader, texts);
}

/* A number as text; "", which is neither time nor number, for other values. */
static const char *text_of(const json_t *value, char *buffer, size_t size)
{
	if (json_is_string(value))
		return json_string_value(value);
	buffer[0] = '\0';
	if (json_is_integer(value))
		snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		snprintf(buffer, size, "%.17g", json_real_value(value));
	return buffer;
}

static bool read_object(struct reader *reader, json_t *object)
{
	const char *texts[FIELDS] = { NULL };
	char buffers[FIELDS][32];
	const char *key;
	json_t *value;
	int i;

	for (i = 0; i < FIELDS; i++) {
		json_object_foreach(object, key, value) {
			if (!is_column(reader, i, key))
				continue;
			if (texts[i])
				return bad_field(reader, i, "a second key for the", key);
			texts[i] = text_of(value, buffers[i], sizeof(buffers[i]));
		}
		if (!texts[i])
			return bad_field(reader, i, "no key for the", NULL);
	}
	return add_request(reader, texts);
}

static bool read_json(struct reader *reader, const char *line)
{
	json_error_t error;
	json_t *json = json_loads(line, 0, &error);
	bool good;

	if (!json)
		return convert_fail(reader->conversion->error, "line %" PRIu64 ": no JSON: %s",
				    reader->line, error.text);
	good = json_is_object(json) ? read_object(reader, json) :
	       convert_fail(reader->conversion->error, "line %" PRIu64 ": no JSON object",
			    reader->line);
	json_decref(json);
	return good;
}

/* Reads all lines. The first one of CSV has the names of the columns. */
static bool read_requests(struct reader *reader, char *data, size_t length)
{
	bool is_json = *data == '{';
	bool has_header = is_json;
	char *end = data + length;
	char *next;
	bool good;

	for (; data < end; data = next + 1) {
		reader->line++;
		next = memchr(data, '\n', (size_t)(end - data));
		if (!next)
			next = end;
		*next = '\0';
		if (strlen(data) != (size_t)(next - data))
			return convert_fail(reader->conversion->error,
					    "line %" PRIu64 ": a byte is 0", reader->line);
		if (next > data && next[-1] == '\r')
			next[-1] = '\0';
		if (!*data)
			continue;
		good = is_json ? read_json(reader, data) :
		       has_header ? read_csv(reader, data) : read_header(reader, data);
		if (!good)
			return false;
		has_header = true;
	}
	return reader->count || convert_fail(reader->conversion->error, "the file has no requests");
}

static int by_arrival(const void *a, const void *b)
{
	const struct request *first = a;
	const struct request *second = b;

	if (first->numbers[ARRIVAL] != second->numbers[ARRIVAL])
		return first->numbers[ARRIVAL] < second->numbers[ARRIVAL] ? -1 : 1;
	return first->line < second->line ? -1 : 1;
}

/* Events of one time stay in the order in which they are made here. */
static bool serve_request(struct reader *reader, const struct request *request, uint64_t time)
{
	const struct serving *serving = reader->serving;
	struct conversion *conversion = reader->conversion;
	uint64_t output = request->numbers[OUTPUT];
	uint64_t input = request->numbers[INPUT];
	uint32_t first = conversion->allocations;
	uint64_t prefilled = time + input * SECOND / serving->prefill;
	uint64_t token;

	if (conversion->count + 2 * (output / serving->block + 2) > MOST_EVENTS)
		return convert_fail(conversion->error, "line %" PRIu64 ": the trace would have more than %d events",
				    request->line, MOST_EVENTS);
	if (input)
		convert_alloc(conversion, time, reader->order++,
			      input * serving->bytes_per_token, 0);
	for (token = 0; token < output; token += serving->block)
		convert_alloc(conversion, prefilled + token * SECOND / serving->decode,
			      reader->order++, serving->block * serving->bytes_per_token, 0);
	for (; first < conversion->allocations; first++)
		convert_free(conversion, prefilled + output * SECOND / serving->decode,
			     reader->order++, first);
	return true;
}

/* Splits --columns. Returns false if it does not have three names. */
static bool split_names(struct reader *reader, char *names)
{
	char *fields[MOST_COLUMNS];
	int i;

	if (split_csv(names, fields) != FIELDS)
		return convert_fail(reader->conversion->error,
				    "--columns takes three names: ARRIVAL,INPUT,OUTPUT");
	for (i = 0; i < FIELDS; i++)
		reader->names[i] = fields[i];
	return true;
}

bool convert_requests(struct conversion *conversion,
		      const struct serving *serving, char *data, size_t length)
{
	struct reader reader = { .conversion = conversion, .serving = serving };
	char *names = serving->columns ? copy_text(serving->columns) : NULL;
	bool good = (!names || split_names(&reader, names)) &&
		    read_requests(&reader, data, length);
	size_t i;

	if (good)
		qsort(reader.requests, reader.count, sizeof(*reader.requests), by_arrival);
	for (i = 0; good && i < reader.count; i++)
		good = serve_request(&reader, &reader.requests[i],
			     reader.requests[i].numbers[ARRIVAL] - reader.requests[0].numbers[ARRIVAL]);
	conversion->sources = reader.count;
	free(reader.requests);
	free(names);
	return good;
}
