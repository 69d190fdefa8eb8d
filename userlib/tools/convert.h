/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Makes a trace of a file that others have written: parts of flexmem convert. */
#ifndef CONVERT_H
#define CONVERT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONVERT_ERROR_MAX 512

/* Writes the error of a conversion, and returns false. */
bool convert_fail(char error[CONVERT_ERROR_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The values of a file. VALUE_NUMBER is an integer from 0 to 2^64 - 1, and
 * VALUE_LIST also a tuple. All that no trace needs, such as a fraction, is
 * VALUE_OTHER.
 */
enum value_kind {
	VALUE_OTHER,
	VALUE_NUMBER,
	VALUE_TEXT,
	VALUE_LIST,
	VALUE_DICT,
};

/*
 * @count: the bytes of a text, without a NUL; the items of a list; keys and
 * values of a dictionary. The items are linked from @first to @last.
 */
struct value {
	uint8_t kind;
	uint8_t depth;
	uint32_t count;
	union {
		uint64_t number;
		const char *text;
		struct {
			uint32_t first;
			uint32_t last;
		};
	};
};

/* A place in a list. Several places may have the same value. */
struct item {
	uint32_t value;
	uint32_t next;
};

/* Lists nested deeper are refused. Snapshots nest 7 deep. */
#define VALUE_DEPTH 64
/* A larger file is refused, so that 32 bits count its values. */
#define CONVERT_FILE_MAX UINT32_MAX

/*
 * All values of a file. Numbers name values and items, so neither reading nor
 * freeing them recurses. The number 0 is no item. The texts lie in the file.
 */
struct values {
	struct value *values;
	struct item *items;
	size_t count;
	size_t room;
	size_t item_count;
	size_t item_room;
};

/* pickle.c: these return the number of a new value. */
uint32_t value_add(struct values *values, enum value_kind kind, uint64_t number);
uint32_t value_add_text(struct values *values, const char *text, size_t length);
/* Appends to a list or a dictionary. Returns false if it is nested too deep. */
bool value_append(struct values *values, uint32_t list, uint32_t value);
/* Walks through a list: begins with an @item of 0, and returns NULL at the end. */
const struct value *value_next(const struct values *values,
			       const struct value *list, uint32_t *item);
/*
 * The value of a key; or NULL if @dict has no such key, is no dictionary, or has
 * more keys than those of a snapshot.
 */
const struct value *value_get(const struct values *values,
			      const struct value *dict, const char *key);
void values_free(struct values *values);

/*
 * Reads a pickle, of the protocols 2 to 5, into @values. Runs nothing and loads
 * no class: a pickle that wants that is refused. Returns false and writes to
 * @error if the pickle is refused. @root: its value.
 */
bool pickle_read(struct values *values, const char *data, size_t length,
		 uint32_t *root, char error[CONVERT_ERROR_MAX]);

/*
 * An event of the trace. Those of one @time are in the order of @order, which no
 * two events share.
 */
struct converted_event {
	uint64_t time;
	uint64_t order;
	uint64_t bytes;
	uint64_t stream;
	uint32_t allocation;
	bool is_free;
};

/*
 * A trace that is being made. @sources: events of a history, or requests.
 * @before: allocations from before the history. @lost: frees that the history
 * lacks. @left_out: frees and blocks that the history does not explain.
 */
struct conversion {
	struct converted_event *events;
	size_t count;
	size_t room;
	uint32_t allocations;
	uint64_t sources;
	uint64_t before;
	uint64_t lost;
	uint64_t left_out;
	char *error;
};

/* Returns the number of the allocation, from 0 on. */
uint32_t convert_alloc(struct conversion *conversion, uint64_t time,
		       uint64_t order, uint64_t bytes, uint64_t stream);
void convert_free(struct conversion *conversion, uint64_t time, uint64_t order,
		  uint32_t allocation);

/* @index: the device, or -1 for the only one with memory. */
bool convert_snapshot(struct conversion *conversion, const char *data,
		      size_t length, int64_t index);
/* The same for a snapshot that is JSON. */
bool convert_snapshot_json(struct conversion *conversion, const json_t *json,
			   int64_t index);

/*
 * How a server handles requests. @columns: the names of arrival, input and
 * output tokens, or NULL for the usual ones. @ticks: units of the arrival in a
 * second. @prefill and @decode: tokens in a second. @block: tokens of a block.
 */
struct serving {
	uint64_t bytes_per_token;
	uint64_t block;
	uint64_t prefill;
	uint64_t decode;
	uint64_t ticks;
	const char *columns;
};

/* Reads JSON lines if @data begins with '{', otherwise CSV. */
bool convert_requests(struct conversion *conversion,
		      const struct serving *serving, char *data, size_t length);

#endif /* CONVERT_H */
