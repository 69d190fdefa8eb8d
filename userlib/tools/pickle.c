// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Reader of pickles. It has the opcodes with which Python and PyTorch write
 * numbers, texts, lists, tuples and dictionaries, in the protocols 2 to 5. All
 * others are refused, above all those that load or call something. The length of a
 * pickle bounds its cost: each opcode makes at most one value, a memo has at most
 * one entry for each byte, and shared values are not copied.
 */
#include "convert.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/* More keys than any dictionary that value_get() has to search. */
#define MOST_KEYS 64

struct pickle {
	struct values *values;
	const unsigned char *data;
	size_t length;
	size_t at;
	size_t opcode_at;
	const struct opcode *opcode;

	uint32_t *stack;
	size_t depth;
	size_t room;
	size_t marks[VALUE_DEPTH];
	size_t mark_count;

	uint32_t *memo;
	size_t memo_count;
	size_t memo_room;
	char *error;
};

/* @run carries it out. @size: bytes of its argument, or number of its values. */
struct opcode {
	const char *name;
	bool (*run)(struct pickle *pickle, unsigned int size);
	unsigned int size;
};

#define NO_VALUE UINT32_MAX

uint32_t value_add(struct values *values, enum value_kind kind, uint64_t number)
{
	struct value *value;

	if (values->count == values->room) {
		values->room = values->room ? 2 * values->room : 4096;
		values->values = grow(values->values, values->room,
				      sizeof(*values->values));
	}
	value = &values->values[values->count];
	memset(value, 0, sizeof(*value));
	value->kind = (uint8_t)kind;
	value->number = number;
	return (uint32_t)values->count++;
}

uint32_t value_add_text(struct values *values, const char *text, size_t length)
{
	uint32_t value = value_add(values, VALUE_TEXT, 0);

	values->values[value].text = text;
	values->values[value].count = (uint32_t)length;
	return value;
}

bool value_append(struct values *values, uint32_t list, uint32_t value)
{
	struct value *to = &values->values[list];
	uint8_t depth = values->values[value].depth + 1;
	uint32_t item;

	if (depth > VALUE_DEPTH)
		return false;
	if (values->item_count + 1 >= values->item_room) {
		values->item_room = values->item_room ? 2 * values->item_room : 4096;
		values->items = grow(values->items, values->item_room,
				     sizeof(*values->items));
	}
	item = (uint32_t)++values->item_count;
	values->items[item].value = value;
	values->items[item].next = 0;
	if (to->count)
		values->items[to->last].next = item;
	else
		to->first = item;
	to->last = item;
	to->count++;
	if (to->depth < depth)
		to->depth = depth;
	return true;
}

const struct value *value_next(const struct values *values,
			       const struct value *list, uint32_t *item)
{
	if (*item)
		*item = values->items[*item].next;
	else if (list->count)
		*item = list->first;
	return *item ? &values->values[values->items[*item].value] : NULL;
}

const struct value *value_get(const struct values *values,
			      const struct value *dict, const char *key)
{
	const struct value *found = NULL;
	const struct value *value;
	const struct value *name;
	uint32_t item = 0;

	if (!dict || dict->kind != VALUE_DICT || dict->count > 2 * MOST_KEYS)
		return NULL;
	/* Of several values of one key the last counts, as in Python. */
	while ((name = value_next(values, dict, &item))) {
		value = value_next(values, dict, &item);
		if (name->kind == VALUE_TEXT && name->count == strlen(key) &&
		    !memcmp(name->text, key, name->count))
			found = value;
	}
	return found;
}

void values_free(struct values *values)
{
	free(values->values);
	free(values->items);
	memset(values, 0, sizeof(*values));
}

static bool broken(struct pickle *pickle, const char *what)
{
	return convert_fail(pickle->error, "offset %zu: %s: %s", pickle->opcode_at,
			    pickle->opcode->name, what);
}

/* Returns the next bytes of the pickle, or NULL if it ends before. */
static const unsigned char *take_bytes(struct pickle *pickle, uint64_t count)
{
	const unsigned char *bytes = pickle->data + pickle->at;

	if (count > pickle->length - pickle->at) {
		broken(pickle, "the file ends too early");
		return NULL;
	}
	pickle->at += (size_t)count;
	return bytes;
}

/* Takes a number of up to 8 bytes, the lowest first. */
static bool take_argument(struct pickle *pickle, unsigned int size,
			  uint64_t *number)
{
	const unsigned char *bytes = take_bytes(pickle, size);

	*number = 0;
	while (bytes && size)
		*number = *number << 8 | bytes[--size];
	return bytes;
}

static bool push(struct pickle *pickle, uint32_t value)
{
	if (pickle->depth == pickle->room) {
		pickle->room = pickle->room ? 2 * pickle->room : 256;
		pickle->stack = grow(pickle->stack, pickle->room,
				     sizeof(*pickle->stack));
	}
	pickle->stack[pickle->depth++] = value;
	return true;
}

/* How many values lie above the last mark. */
static size_t above_mark(const struct pickle *pickle)
{
	return pickle->depth - (pickle->mark_count ?
				pickle->marks[pickle->mark_count - 1] : 0);
}

static bool push_number(struct pickle *pickle, unsigned int size)
{
	uint64_t number;

	return take_argument(pickle, size, &number) &&
	       push(pickle, value_add(pickle->values, VALUE_NUMBER, number));
}

/* An integer in two's complement. A trace needs no negative one. */
static bool push_signed(struct pickle *pickle, uint64_t size)
{
	const unsigned char *bytes = take_bytes(pickle, size);
	enum value_kind kind = VALUE_NUMBER;
	uint64_t number = 0;

	if (!bytes)
		return false;
	if (size && bytes[size - 1] & 0x80)
		kind = VALUE_OTHER;
	while (size && !bytes[size - 1])
		size--;
	if (size > sizeof(number))
		kind = VALUE_OTHER;
	while (size && kind == VALUE_NUMBER)
		number = number << 8 | bytes[--size];
	return push(pickle, value_add(pickle->values, kind, number));
}

static bool push_int(struct pickle *pickle, unsigned int size)
{
	return push_signed(pickle, size);
}

static bool push_long(struct pickle *pickle, unsigned int size)
{
	uint64_t length;

	return take_argument(pickle, size, &length) && push_signed(pickle, length);
}

/* None, a truth value, or a fraction. */
static bool push_other(struct pickle *pickle, unsigned int size)
{
	return take_bytes(pickle, size) &&
	       push(pickle, value_add(pickle->values, VALUE_OTHER, 0));
}

static bool push_text(struct pickle *pickle, unsigned int size)
{
	const unsigned char *bytes;
	uint64_t length;

	if (!take_argument(pickle, size, &length))
		return false;
	bytes = take_bytes(pickle, length);
	return bytes && push(pickle, value_add_text(pickle->values,
						    (const char *)bytes,
						    (size_t)length));
}

static bool push_list(struct pickle *pickle, unsigned int size)
{
	(void)size;
	return push(pickle, value_add(pickle->values, VALUE_LIST, 0));
}

static bool push_dict(struct pickle *pickle, unsigned int size)
{
	(void)size;
	return push(pickle, value_add(pickle->values, VALUE_DICT, 0));
}

static bool push_mark(struct pickle *pickle, unsigned int size)
{
	(void)size;
	if (pickle->mark_count == VALUE_DEPTH)
		return broken(pickle, "nested too deep");
	pickle->marks[pickle->mark_count++] = pickle->depth;
	return true;
}

/*
 * Takes values from the stack: @size, or if it is 0 those above the last mark.
 * They stay readable in @pickle->stack, from @pickle->depth on. Returns their
 * number in @count.
 */
static bool take_top(struct pickle *pickle, unsigned int size, size_t *count)
{
	if (!size && !pickle->mark_count)
		return broken(pickle, "there is no mark");
	*count = size ? size : above_mark(pickle);
	if (above_mark(pickle) < *count)
		return broken(pickle, "values are missing");
	if (!size)
		pickle->mark_count--;
	pickle->depth -= *count;
	return true;
}

static bool append_all(struct pickle *pickle, uint32_t list, size_t count)
{
	const uint32_t *top = pickle->stack + pickle->depth;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!value_append(pickle->values, list, top[i]))
			return broken(pickle, "nested too deep");
	}
	return true;
}

static bool push_tuple(struct pickle *pickle, unsigned int size)
{
	uint32_t tuple = value_add(pickle->values, VALUE_LIST, 0);
	size_t count;

	return take_top(pickle, size, &count) &&
	       append_all(pickle, tuple, count) && push(pickle, tuple);
}

static bool extend_below(struct pickle *pickle, unsigned int size, enum value_kind kind)
{
	uint32_t list;
	size_t count;

	if (!take_top(pickle, size, &count))
		return false;
	if (!above_mark(pickle))
		return broken(pickle, "values are missing");
	list = pickle->stack[pickle->depth - 1];
	if (pickle->values->values[list].kind != kind)
		return broken(pickle, "the value below is of another kind");
	if (kind == VALUE_DICT && count % 2)
		return broken(pickle, "a key has no value");
	return append_all(pickle, list, count);
}

static bool append_items(struct pickle *pickle, unsigned int size)
{
	return extend_below(pickle, size, VALUE_LIST);
}

static bool set_items(struct pickle *pickle, unsigned int size)
{
	return extend_below(pickle, size, VALUE_DICT);
}

/* An @index of the memo. Picklers count from 0, so it is small. */
static bool put_memo(struct pickle *pickle, unsigned int size)
{
	uint64_t index = pickle->memo_count;

	if (size && !take_argument(pickle, size, &index))
		return false;
	if (index > pickle->opcode_at)
		return broken(pickle, "its number is larger than the memo can be");
	if (!above_mark(pickle))
		return broken(pickle, "values are missing");
	if (index >= pickle->memo_room) {
		pickle->memo_room = 2 * (size_t)index + 256;
		pickle->memo = grow(pickle->memo, pickle->memo_room,
				    sizeof(*pickle->memo));
	}
	while (pickle->memo_count <= index)
		pickle->memo[pickle->memo_count++] = NO_VALUE;
	pickle->memo[index] = pickle->stack[pickle->depth - 1];
	return true;
}

static bool get_memo(struct pickle *pickle, unsigned int size)
{
	uint64_t index;

	if (!take_argument(pickle, size, &index))
		return false;
	if (index >= pickle->memo_count || pickle->memo[index] == NO_VALUE)
		return broken(pickle, "the memo has no such number");
	return push(pickle, pickle->memo[index]);
}

static bool check_protocol(struct pickle *pickle, unsigned int size)
{
	uint64_t protocol;

	if (!take_argument(pickle, size, &protocol))
		return false;
	if (protocol < 2 || protocol > 5)
		return broken(pickle, "only the protocols 2 to 5 are known");
	return true;
}

static bool check_frame(struct pickle *pickle, unsigned int size)
{
	uint64_t length;

	if (!take_argument(pickle, size, &length))
		return false;
	if (length > pickle->length - pickle->at)
		return broken(pickle, "the file ends too early");
	return true;
}

static bool refuse_code(struct pickle *pickle, unsigned int size)
{
	(void)size;
	return broken(pickle, "refused, because it would load or run code; "
		      "a snapshot has only numbers, texts, lists, tuples and dictionaries");
}

static const struct opcode opcodes[256] = {
	[0x80] = { "PROTO", check_protocol, 1 },
	[0x95] = { "FRAME", check_frame, 8 },
	['('] = { "MARK", push_mark, 0 },
	['K'] = { "BININT1", push_number, 1 },
	['M'] = { "BININT2", push_number, 2 },
	['J'] = { "BININT", push_int, 4 },
	[0x8a] = { "LONG1", push_long, 1 },
	[0x8b] = { "LONG4", push_long, 4 },
	['G'] = { "BINFLOAT", push_other, 8 },
	['N'] = { "NONE", push_other, 0 },
	[0x88] = { "NEWTRUE", push_other, 0 },
	[0x89] = { "NEWFALSE", push_other, 0 },
	[0x8c] = { "SHORT_BINUNICODE", push_text, 1 },
	['X'] = { "BINUNICODE", push_text, 4 },
	[0x8d] = { "BINUNICODE8", push_text, 8 },
	[']'] = { "EMPTY_LIST", push_list, 0 },
	['a'] = { "APPEND", append_items, 1 },
	['e'] = { "APPENDS", append_items, 0 },
	['}'] = { "EMPTY_DICT", push_dict, 0 },
	['s'] = { "SETITEM", set_items, 2 },
	['u'] = { "SETITEMS", set_items, 0 },
	[')'] = { "EMPTY_TUPLE", push_list, 0 },
	[0x85] = { "TUPLE1", push_tuple, 1 },
	[0x86] = { "TUPLE2", push_tuple, 2 },
	[0x87] = { "TUPLE3", push_tuple, 3 },
	['t'] = { "TUPLE", push_tuple, 0 },
	['q'] = { "BINPUT", put_memo, 1 },
	['r'] = { "LONG_BINPUT", put_memo, 4 },
	[0x94] = { "MEMOIZE", put_memo, 0 },
	['h'] = { "BINGET", get_memo, 1 },
	['j'] = { "LONG_BINGET", get_memo, 4 },
	['c'] = { "GLOBAL", refuse_code, 0 },
	[0x93] = { "STACK_GLOBAL", refuse_code, 0 },
	['R'] = { "REDUCE", refuse_code, 0 },
	['b'] = { "BUILD", refuse_code, 0 },
	['i'] = { "INST", refuse_code, 0 },
	['o'] = { "OBJ", refuse_code, 0 },
	[0x81] = { "NEWOBJ", refuse_code, 0 },
	[0x92] = { "NEWOBJ_EX", refuse_code, 0 },
	[0x82] = { "EXT1", refuse_code, 0 },
	[0x83] = { "EXT2", refuse_code, 0 },
	[0x84] = { "EXT4", refuse_code, 0 },
	['P'] = { "PERSID", refuse_code, 0 },
	['Q'] = { "BINPERSID", refuse_code, 0 },
};

/* Carries out all opcodes before STOP. */
static bool run_opcodes(struct pickle *pickle)
{
	unsigned char code;

	while (pickle->at < pickle->length) {
		pickle->opcode_at = pickle->at;
		code = pickle->data[pickle->at++];
		if (code == '.')
			return true;
		pickle->opcode = &opcodes[code];
		if (!pickle->opcode->run)
			return convert_fail(pickle->error,
					    "offset %zu: opcode 0x%02x is in no snapshot",
					    pickle->opcode_at, code);
		if (!pickle->opcode->run(pickle, pickle->opcode->size))
			return false;
	}
	return convert_fail(pickle->error, "offset %zu: the file ends too early",
			    pickle->length);
}

bool pickle_read(struct values *values, const char *data, size_t length,
		 uint32_t *root, char error[CONVERT_ERROR_MAX])
{
	struct pickle pickle = {
		.values = values,
		.data = (const unsigned char *)data,
		.length = length,
		.error = error,
	};
	bool good = run_opcodes(&pickle);

	if (good && (pickle.depth != 1 || pickle.mark_count))
		good = convert_fail(error, "offset %zu: STOP: there is not one value, but %zu",
				    pickle.opcode_at, pickle.depth);
	else if (good && pickle.at != length)
		good = convert_fail(error, "offset %zu: %zu bytes follow the end of the pickle",
				    pickle.at, length - pickle.at);
	if (good)
		*root = pickle.stack[0];
	free(pickle.stack);
	free(pickle.memo);
	return good;
}
