// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Reads a file of limits, as /etc/flexmem/limits.conf. flexmem(1) describes its
 * form.
 */
#include "cgroup_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"
#define MISTAKE_MAX 512
/* The deepest cgroup that may have a limit. */
#define DEPTH_MAX 32

/* The line that is read. @mistake: what is wrong with it, or an empty text. */
struct reader {
	struct limits_file *file;
	struct limits_line line;
	char mistake[MISTAKE_MAX];
};

static bool wrong(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Keeps the mistake, and returns false. */
static bool wrong(struct reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->mistake, sizeof(reader->mistake), format, arguments);
	va_end(arguments);
	return false;
}

const char *limits_amount_name(uint32_t amount)
{
	return amount == LIMITS_RESERVE ? "reserve" : charge_name(amount);
}

bool limits_parse(uint32_t charge, const char *text, uint64_t *limit)
{
	if (!strcmp(text, "none")) {
		*limit = FLEXMEM_UNLIMITED;
		return true;
	}
	if (charge == FLEXMEM_CHARGE_BYTES)
		return parse_size(text, limit);
	return parse_number(text, UINT64_MAX, limit);
}

bool limits_same_owner(const struct limits_line *one,
		       const struct limits_line *other)
{
	if (one->whose != other->whose || one->each != other->each)
		return false;
	return !one->path || !strcmp(one->path, other->path);
}

char *limits_owner(const struct limits_line *line)
{
	const char *words = line->each ?
				    "each child of cgroup " : "cgroup ";
	char *text;
	size_t size;

	if (line->whose == FLEXMEM_FOR_DEFAULT)
		return copy_text("default");
	size = strlen(words) + strlen(line->path) + 1;
	text = grow(NULL, size, 1);
	snprintf(text, size, "%s%s", words, line->path);
	return text;
}

static int hex_digit(char digit)
{
	const char *digits = "0123456789abcdef";
	const char *found = digit ? strchr(digits, digit) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Replaces the escapes of a path, which are those of all reports. */
static bool unescape(struct reader *reader, char *path)
{
	char *to = path;
	int high, low;

	for (; *path; path++) {
		if (*path != '\\') {
			*to++ = *path;
		} else if (path[1] == '\\') {
			*to++ = *path++;
		} else {
			high = path[1] == 'x' ? hex_digit(path[2]) : -1;
			low = high < 0 ? -1 : hex_digit(path[3]);
			if (low < 0 || high + low == 0)
				return wrong(reader,
					     "after a backslash comes a second one, or xNN with two digits of 0-9 and a-f");
			*to++ = (char)(high * 16 + low);
			path += 3;
		}
	}
	*to = '\0';
	return true;
}

/* Checks that a path is written as the kernel writes it. */
static bool check_path(struct reader *reader, const char *path)
{
	unsigned int most = reader->line.each ? DEPTH_MAX - 1 : DEPTH_MAX;
	unsigned int depth = 0;
	size_t length;

	if (*path != '/')
		return wrong(reader,
			     "'%.300s' is no full path: it must begin with '/'",
			     path);
	if (strlen(path) >= PATH_MAX)
		return wrong(reader, "the path is too long");
	for (; path[0] == '/' && path[1]; path += length) {
		path++;
		length = strcspn(path, "/");
		if (!length || (length == 1 && *path == '.') ||
		    (length == 2 && !strncmp(path, "..", 2)))
			return wrong(reader,
				     "the path has an empty part, or one of '.' and '..'");
		if (length > NAME_MAX)
			return wrong(reader,
				     "a name in the path is longer than %d bytes",
				     NAME_MAX);
		if (++depth > most)
			return wrong(reader,
				     "a cgroup deeper than %d levels below the root has no limit",
				     DEPTH_MAX);
	}
	if (*path && depth)
		return wrong(reader, "the path ends with '/'");
	return true;
}

/* Reads the first word: whose limit it is. */
static bool read_owner(struct reader *reader, char *word)
{
	struct limits_line *line = &reader->line;
	size_t length = strlen(word);

	if (!strcmp(word, "default")) {
		line->whose = FLEXMEM_FOR_DEFAULT;
		return true;
	}
	if (length >= 2 && !strcmp(word + length - 2, "/*")) {
		line->each = true;
		word[length == 2 ? 1 : length - 2] = '\0';
	}
	if (strchr(word, '*'))
		return wrong(reader,
			     "a '*' may only be the last part of a path");
	if (!unescape(reader, word) || !check_path(reader, word))
		return false;
	line->path = copy_text(word);
	return true;
}

static bool read_function(struct reader *reader, const char *word)
{
	if (!word)
		return wrong(reader, "no function: 'all', or one as 'flexmem list' shows it");
	if (strchr(word, '='))
		return wrong(reader, "'%.300s' stands where the function must: 'all', or one as 'flexmem list' shows it",
			     word);
	if (strcmp(word, "all"))
		reader->line.function = copy_text(word);
	return true;
}

/* Reads the value of reserve: a number of regions, or NUMBERxSIZE. */
static bool read_reservation(struct reader *reader, char *value)
{
	struct limits_line *line = &reader->line;
	char *size = strchr(value, 'x');

	if (line->whose != FLEXMEM_FOR_CGROUP || line->each ||
	    !strcmp(line->path, "/"))
		return wrong(reader,
			     "a reservation is for one cgroup, which is not the root");
	if (size)
		*size++ = '\0';
	if (!parse_number(value, UINT32_MAX, &line->amount[LIMITS_RESERVE]) ||
	    (size && (!parse_size(size, &line->size) || !line->size)))
		return wrong(reader,
			     "reserve is a number of regions, or NUMBERxSIZE");
	if (size && !line->amount[LIMITS_RESERVE])
		return wrong(reader, "a size goes with one region or more");
	return true;
}

static bool read_amount(struct reader *reader, char *word)
{
	struct limits_line *line = &reader->line;
	char *value = strchr(word, '=');
	uint32_t i;

	if (value)
		*value++ = '\0';
	for (i = 0; i < LIMITS_AMOUNTS; i++)
		if (value && !strcmp(word, limits_amount_name(i)))
			break;
	if (i == LIMITS_AMOUNTS)
		return wrong(reader,
			     "'%.300s' is none of bytes=, regions=, handles=, files= and reserve=",
			     word);
	if (line->sets[i])
		return wrong(reader, "%s= is there twice", word);
	line->sets[i] = true;
	if (i == LIMITS_RESERVE)
		return read_reservation(reader, value);
	if (!limits_parse(i, value, &line->amount[i]))
		return wrong(reader, "%s=%.300s is neither a number nor none",
			     word, value);
	if (i == FLEXMEM_CHARGE_FILES && !line->whose && !line->each &&
	    !strcmp(line->path, "/"))
		return wrong(reader,
			     "the root cgroup cannot have a limit of open files");
	return true;
}

static bool same_function(const struct limits_line *one,
			  const struct limits_line *other)
{
	if (!one->function || !other->function)
		return !one->function && !other->function;
	return !strcmp(one->function, other->function);
}

/* Two lines must not set the same amount for the same cgroup and function. */
static bool check_earlier(struct reader *reader)
{
	const struct limits_line *line = &reader->line;
	const struct limits_line *other;
	uint32_t i;
	size_t at;

	for (at = 0; at < reader->file->count; at++) {
		other = &reader->file->lines[at];
		if (!limits_same_owner(line, other) ||
		    !same_function(line, other))
			continue;
		for (i = 0; i < LIMITS_AMOUNTS; i++)
			if (line->sets[i] && other->sets[i])
				return wrong(reader, "line %u sets %s already",
					     other->number,
					     limits_amount_name(i));
	}
	return true;
}

/* Returns the next word of the line, or NULL. A word that begins with # ends it. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, BLANKS);
	size_t length = strcspn(word, BLANKS);

	if (!length || *word == '#')
		return NULL;
	*rest = word + length;
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

static bool read_words(struct reader *reader, char *owner, char *rest)
{
	unsigned int amounts = 0;
	char *word;

	if (!read_owner(reader, owner) ||
	    !read_function(reader, next_word(&rest)))
		return false;
	while ((word = next_word(&rest))) {
		if (!read_amount(reader, word))
			return false;
		amounts++;
	}
	if (!amounts)
		return wrong(reader,
			     "nothing is set: bytes=, regions=, handles=, files= or reserve= is needed");
	return check_earlier(reader);
}

static void clear_line(struct limits_line *line)
{
	free(line->path);
	free(line->function);
}

static void keep_mistake(struct reader *reader)
{
	struct limits_file *file = reader->file;

	file->mistakes = grow(file->mistakes, file->nr_mistakes + 1,
			      sizeof(*file->mistakes));
	file->mistakes[file->nr_mistakes++] = (struct limits_mistake){
		.number = reader->line.number,
		.text = copy_text(reader->mistake),
	};
	clear_line(&reader->line);
}

static void read_line(struct limits_file *file, unsigned int number, char *text,
		      size_t length)
{
	struct reader reader = { .file = file, .line.number = number };
	char *rest = text;
	char *owner;
	bool good;

	if (length && text[length - 1] == '\n')
		text[--length] = '\0';
	good = strlen(text) == length;
	if (good) {
		owner = next_word(&rest);
		if (!owner)
			return;
		good = read_words(&reader, owner, rest);
	} else {
		wrong(&reader, "a byte is zero");
	}
	if (!good) {
		keep_mistake(&reader);
		return;
	}
	file->lines = grow(file->lines, file->count + 1, sizeof(*file->lines));
	file->lines[file->count++] = reader.line;
}

int limits_file_read(struct limits_file *file, const char *name)
{
	FILE *stream = fopen(name, "re");
	unsigned int number = 0;
	char *text = NULL;
	size_t room = 0;
	ssize_t length;
	int err;

	*file = (struct limits_file){ 0 };
	if (!stream)
		return -errno;
	errno = 0;
	while ((length = getline(&text, &room, stream)) >= 0)
		read_line(file, ++number, text, (size_t)length);
	err = feof(stream) ? 0 : -(errno ? errno : EIO);
	fclose(stream);
	free(text);
	return err;
}

void limits_file_clear(struct limits_file *file)
{
	size_t i;

	for (i = 0; i < file->count; i++)
		clear_line(&file->lines[i]);
	for (i = 0; i < file->nr_mistakes; i++)
		free(file->mistakes[i].text);
	free(file->lines);
	free(file->mistakes);
}
