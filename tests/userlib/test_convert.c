// SPDX-License-Identifier: GPL-2.0
/* Reading pickles, snapshots and requests for flexmem convert. */
#include "test.h"

#include <inttypes.h>

#include "convert.h"

#define PROTO "\x80\x04"

static char error[CONVERT_ERROR_MAX];

/* ---- pickles ---- */

/* Reads a pickle in a block of its own, so that ASan sees what is read behind it. */
static bool read_pickle(struct values *values, const char *bytes, size_t length, uint32_t *root)
{
	char *copy = malloc(length);
	bool good;

	memcpy(copy, bytes, length);
	memset(values, 0, sizeof(*values));
	error[0] = '\0';
	good = pickle_read(values, copy, length, root, error);
	free(copy);
	return good;
}

static void expect_refused(const char *bytes, size_t length, const char *expected)
{
	struct values values;
	uint32_t root;

	assert_false(read_pickle(&values, bytes, length, &root));
	assert_string_equal(error, expected);
	values_free(&values);
}

#define REFUSED(bytes, expected) expect_refused(PROTO bytes, sizeof(PROTO bytes) - 1, expected)

static void expect_number(const char *bytes, size_t length, enum value_kind kind, uint64_t number)
{
	struct values values;
	uint32_t root;

	assert_true(read_pickle(&values, bytes, length, &root));
	assert_int_equal(values.values[root].kind, kind);
	if (kind == VALUE_NUMBER)
		assert_true(values.values[root].number == number);
	values_free(&values);
}

#define NUMBER(bytes, number) \
	expect_number(PROTO bytes ".", sizeof(PROTO bytes), VALUE_NUMBER, number)
#define OTHER(bytes) expect_number(PROTO bytes ".", sizeof(PROTO bytes), VALUE_OTHER, 0)

static void numbers_of_pickles(void **state)
{
	(void)state;
	NUMBER("K\xff", 255);
	NUMBER("M\x34\x12", 0x1234);
	NUMBER("J\xff\xff\xff\x7f", INT32_MAX);
	NUMBER("\x8a\x00", 0);
	NUMBER("\x8a\x02\x34\x12", 0x1234);
	NUMBER("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", UINT64_MAX);
	NUMBER("\x8b\x02\x00\x00\x00\x34\x12", 0x1234);
	OTHER("J\xff\xff\xff\xff");
	OTHER("\x8a\x01\x80");
	OTHER("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01");
	OTHER("G\x3f\xf0\x00\x00\x00\x00\x00\x00");
	OTHER("N");
	OTHER("\x88");
}

static void values_of_pickles(void **state)
{
	/* {"a": [1, 2, (3,)], "b": the same list, "a": 4} with a memo. */
	static const char bytes[] = PROTO "}(\x8c\x01" "a](K\x01K\x02K\x03\x85" "eq\x05\x8c\x01"
				    "bh\x05X\x01\x00\x00\x00" "aK\x04u.";
	const struct value *list;
	struct values values;
	uint32_t item = 0;
	uint32_t root;

	(void)state;
	error[0] = '\0';
	memset(&values, 0, sizeof(values));
	assert_true(pickle_read(&values, bytes, sizeof(bytes) - 1, &root, error));
	list = value_get(&values, &values.values[root], "b");
	assert_non_null(list);
	assert_int_equal(list->count, 3);
	assert_int_equal(value_next(&values, list, &item)->number, 1);
	assert_int_equal(value_next(&values, list, &item)->number, 2);
	assert_int_equal(value_next(&values, list, &item)->kind, VALUE_LIST);
	assert_null(value_next(&values, list, &item));
	assert_int_equal(value_get(&values, &values.values[root], "a")->number, 4);
	assert_null(value_get(&values, &values.values[root], "c"));
	assert_null(value_get(&values, list, "a"));
	values_free(&values);
}

#define WHY ": refused, because it would load or run code; a snapshot has only numbers, texts, lists, tuples and dictionaries"

static void code_is_refused(void **state)
{
	(void)state;
	REFUSED("cos\nsystem\n.", "offset 2: GLOBAL" WHY);
	REFUSED("\x8c\x02os\x8c\x06system\x93.", "offset 14: STACK_GLOBAL" WHY);
	REFUSED("N)R.", "offset 4: REDUCE" WHY);
	REFUSED("N}b.", "offset 4: BUILD" WHY);
	REFUSED("(ios\nsystem\n.", "offset 3: INST" WHY);
	REFUSED("(No.", "offset 4: OBJ" WHY);
	REFUSED("N)\x81.", "offset 4: NEWOBJ" WHY);
	REFUSED("N)}\x92.", "offset 5: NEWOBJ_EX" WHY);
	REFUSED("\x82\x01.", "offset 2: EXT1" WHY);
	REFUSED("\x83\x01\x01.", "offset 2: EXT2" WHY);
	REFUSED("\x84\x01\x01\x01\x01.", "offset 2: EXT4" WHY);
	REFUSED("P1\n.", "offset 2: PERSID" WHY);
	REFUSED("NQ.", "offset 3: BINPERSID" WHY);
	REFUSED("\x97.", "offset 2: opcode 0x97 is in no snapshot");
	REFUSED("S'a'\n.", "offset 2: opcode 0x53 is in no snapshot");
}

static void broken_pickles(void **state)
{
	(void)state;
	expect_refused("\x80\x01N.", 4, "offset 0: PROTO: only the protocols 2 to 5 are known");
	expect_refused("\x80\x06N.", 4, "offset 0: PROTO: only the protocols 2 to 5 are known");
	REFUSED("N", "offset 3: the file ends too early");
	REFUSED("M\x01", "offset 2: BININT2: the file ends too early");
	REFUSED("X\x05\x00\x00\x00" "abcd", "offset 2: BINUNICODE: the file ends too early");
	REFUSED("\x8d\xff\xff\xff\xff\xff\xff\xff\xff" "a.", "offset 2: BINUNICODE8: the file ends too early");
	REFUSED("\x95\x03\x00\x00\x00\x00\x00\x00\x00N.", "offset 2: FRAME: the file ends too early");
	REFUSED(".", "offset 2: STOP: there is not one value, but 0");
	REFUSED("NN.", "offset 4: STOP: there is not one value, but 2");
	REFUSED("N(.", "offset 4: STOP: there is not one value, but 1");
	REFUSED("N.N", "offset 4: 1 bytes follow the end of the pickle");
	REFUSED("Na.", "offset 3: APPEND: values are missing");
	REFUSED("](a.", "offset 4: APPEND: values are missing");
	REFUSED("(e.", "offset 3: APPENDS: values are missing");
	REFUSED("]e.", "offset 3: APPENDS: there is no mark");
	REFUSED("}Na.", "offset 4: APPEND: the value below is of another kind");
	REFUSED("]NNs.", "offset 5: SETITEM: the value below is of another kind");
	REFUSED("}(Nu.", "offset 5: SETITEMS: a key has no value");
	REFUSED("N(N\x86.", "offset 5: TUPLE2: values are missing");
	REFUSED("\x94.", "offset 2: MEMOIZE: values are missing");
	REFUSED("h\x00.", "offset 2: BINGET: the memo has no such number");
	REFUSED("Nq\x02h\x01.", "offset 5: BINGET: the memo has no such number");
}

/* A list that has itself; and tuples of ten of the tuple before, 10^40 values. */
static void bombs_are_small(void **state)
{
	struct values values;
	char bytes[4096];
	size_t at = 0;
	uint32_t root;
	int level;
	int i;

	(void)state;
	REFUSED("Nr\xff\xff\xff\xff.", "offset 3: LONG_BINPUT: its number is larger than the memo can be");
	REFUSED("Nq\x04.", "offset 3: BINPUT: its number is larger than the memo can be");
	assert_true(read_pickle(&values, PROTO "]\x94h\x00" "a.", 8, &root));
	assert_int_equal(values.count, 1);
	values_free(&values);
	at = (size_t)sprintf(bytes, PROTO "()\x94");
	for (level = 0; level < 40; level++) {
		bytes[at++] = '(';
		for (i = 0; i < 10; i++) {
			bytes[at++] = 'h';
			bytes[at++] = (char)level;
		}
		at += (size_t)sprintf(bytes + at, "t\x94");
	}
	at += (size_t)sprintf(bytes + at, "t.");
	assert_true(read_pickle(&values, bytes, at, &root));
	assert_int_equal(values.values[root].count, 41);
	assert_true(values.count < at && values.item_count < at);
	values_free(&values);
}

static void nesting_is_bounded(void **state)
{
	char bytes[2 * VALUE_DEPTH + 16] = PROTO;
	struct values values;
	uint32_t root;

	(void)state;
	memset(bytes + 2, ']', VALUE_DEPTH + 1);
	memset(bytes + VALUE_DEPTH + 3, 'a', VALUE_DEPTH);
	bytes[2 * VALUE_DEPTH + 3] = '.';
	assert_true(read_pickle(&values, bytes, 2 * VALUE_DEPTH + 4, &root));
	values_free(&values);
	memset(bytes + 2, ']', VALUE_DEPTH + 2);
	memset(bytes + VALUE_DEPTH + 4, 'a', VALUE_DEPTH + 1);
	bytes[2 * VALUE_DEPTH + 5] = '.';
	expect_refused(bytes, 2 * VALUE_DEPTH + 6, "offset 132: APPEND: nested too deep");
	memset(bytes + 2, '(', VALUE_DEPTH + 1);
	expect_refused(bytes, VALUE_DEPTH + 3, "offset 66: MARK: nested too deep");
}

/* ---- snapshots ---- */

static struct conversion conversion;
static char made[4096];

static int by_order(const void *a, const void *b)
{
	const struct converted_event *first = a;
	const struct converted_event *second = b;

	if (first->time != second->time)
		return first->time < second->time ? -1 : 1;
	assert_true(first->order != second->order);
	return first->order < second->order ? -1 : 1;
}

/* The events as text: "TIME+ALLOCATION:BYTES/STREAM" or "TIME-ALLOCATION". */
static const char *made_events(void)
{
	const struct converted_event *event = conversion.events;
	size_t at = 0;
	size_t i;

	made[0] = '\0';
	if (conversion.count)
		qsort(conversion.events, conversion.count, sizeof(*event), by_order);
	for (i = 0; i < conversion.count; i++, event++) {
		if (event->is_free)
			at += (size_t)sprintf(made + at, "%s%" PRIu64 "-%u", at ? " " : "",
					      event->time, event->allocation);
		else
			at += (size_t)sprintf(made + at, "%s%" PRIu64 "+%u:%" PRIu64 "/%" PRIu64,
					      at ? " " : "", event->time, event->allocation,
					      event->bytes, event->stream);
	}
	free(conversion.events);
	conversion.events = NULL;
	return made;
}

static json_t *event(const char *action, int address, int size, int time)
{
	return json_pack("{s:s,s:i,s:i,s:i,s:i}", "action", action, "addr", address, "size", size,
			 "stream", 7, "time_us", time);
}

static json_t *block(int size, int requested, const char *state)
{
	return json_pack("{s:i,s:i,s:s}", "size", size, "requested_size", requested, "state", state);
}

static json_t *segment(int device, int address, json_t *blocks)
{
	return json_pack("{s:i,s:i,s:i,s:o}", "device", device, "address", address, "stream", 9,
			 "blocks", blocks);
}

/* Converts histories and segments, each a JSON array. */
static bool convert(json_t *traces, json_t *segments, int64_t index)
{
	json_t *json = json_pack("{s:o,s:o}", "device_traces", traces, "segments", segments);
	bool good;

	assert_non_null(json);
	error[0] = '\0';
	memset(&conversion, 0, sizeof(conversion));
	conversion.error = error;
	good = convert_snapshot_json(&conversion, json, index);
	json_decref(json);
	return good;
}

static void a_history(void **state)
{
	(void)state;
	assert_true(convert(json_pack("[[ooooo]]", event("alloc", 4096, 100, 50),
				      event("alloc", 8192, 200, 53),
				      event("free_requested", 4096, 100, 60),
				      event("free_completed", 4096, 100, 61),
				      event("alloc", 4096, 300, 59)), json_array(), -1));
	assert_int_equal(conversion.sources, 5);
	assert_int_equal(conversion.before + conversion.lost + conversion.left_out, 0);
	/* The clock went back before the last event. */
	assert_string_equal(made_events(), "0+0:100/7 3+2:200/7 11-0 11+1:300/7");
}

static void what_was_before(void **state)
{
	json_t *segments = json_pack("[oo]",
		segment(0, 4096, json_pack("[ooo]", block(512, 500, "active_allocated"),
					   block(512, 0, "inactive"),
					   block(1024, 1000, "active_pending_free"))),
		segment(0, 65536, json_pack("[o]", block(2048, 2000, "active_allocated"))));

	(void)state;
	/* 4096 and 5120 are in no event; 4608 is only freed; 65536 is allocated. */
	assert_true(convert(json_pack("[[oo]]", event("free_completed", 4608, 80, 10),
				      event("alloc", 65536, 2000, 12)), segments, -1));
	assert_int_equal(conversion.before, 3);
	assert_int_equal(conversion.lost + conversion.left_out, 0);
	assert_string_equal(made_events(), "0+0:500/9 0+1:80/7 0+2:1000/9 0-1 2+3:2000/7");
}

static void gaps_in_a_history(void **state)
{
	json_t *segments = json_pack("[o]", segment(0, 8192, json_pack("[o]",
						     block(512, 500, "active_allocated"))));

	(void)state;
	/* 4096 is allocated twice. 8192 is freed twice, and is then allocated. */
	assert_true(convert(json_pack("[[oooooo]]", event("alloc", 4096, 100, 1),
				      event("alloc", 4096, 200, 2),
				      event("free_completed", 4096, 200, 3),
				      event("alloc", 8192, 300, 4),
				      event("free_completed", 8192, 300, 5),
				      event("free_completed", 8192, 300, 6)), segments, -1));
	assert_int_equal(conversion.lost, 1);
	assert_int_equal(conversion.left_out, 2);
	assert_int_equal(conversion.before, 0);
	assert_string_equal(made_events(), "0+0:100/7 1-0 1+1:200/7 2-1 3+2:300/7 4-2");
}

static void several_devices(void **state)
{
	int64_t index;

	(void)state;
	for (index = -1; index < 4; index++) {
		bool good = convert(json_pack("[[][o]]", event("alloc", 4096, 100, 5)),
				    json_pack("[o]", segment(3, 4096, json_pack("[o]",
							      block(64, 50, "active_allocated")))),
				    index);

		assert_int_equal(good, index == 1 || index == 3);
		if (index < 0)
			assert_string_equal(error, "devices 1 and 3 have memory: choose one with --index");
		else if (!good)
			assert_string_equal(error, "the snapshot has no allocations");
		made_events();
		if (good)
			assert_string_equal(made, index == 1 ? "0+0:100/7" : "0+0:50/9");
	}
}

static void bad_snapshots(void **state)
{
	json_t *blocks = json_array();
	json_t *segments = json_array();
	int i;

	(void)state;
	assert_false(convert(json_pack("[[{s:i}]]", "action", 1), json_array(), -1));
	assert_string_equal(error, "device_traces[0][0] has no 'action'");
	assert_false(convert(json_pack("[[i]]", 1), json_array(), -1));
	assert_string_equal(error, "device_traces[0][0] has no 'action'");
	assert_false(convert(json_pack("[[o]]", event("alloc", 1, -1, 1)), json_array(), -1));
	assert_string_equal(error, "device_traces[0][0] has no 'size' that is a number from 0 on");
	assert_false(convert(json_array(), json_pack("[o]", segment(0, 1, json_object())), -1));
	assert_string_equal(error, "segments[0] has no list 'blocks'");
	assert_false(convert(json_array(), json_pack("[o]", segment(0, 1, json_pack("[i]", 1))), -1));
	assert_string_equal(error, "segments[0]['blocks'][0] has no 'size' that is a number from 0 on");
	assert_false(convert(json_object(), json_array(), -1));
	assert_string_equal(error, "not a memory snapshot: it has no lists 'device_traces' and 'segments'");
	assert_false(convert(json_array(), json_array(), -1));
	assert_string_equal(error, "the snapshot has no allocations");
	/* Nesting that jansson reads. */
	for (i = 0; i < VALUE_DEPTH; i++)
		blocks = json_pack("[o]", blocks);
	json_array_append_new(segments, blocks);
	assert_false(convert(json_array(), segments, -1));
	assert_string_equal(error, "the JSON nests too deep");
}

/* A thousand segments that share one list of a thousand blocks, in 6 KiB. */
static void shared_blocks(void **state)
{
	static const char begin[] = PROTO "}(\x8c\x0d" "device_traces]\x8c\x08segments](";
	static const char first[] = "}(\x8c\x06" "deviceK\x00\x8c\x07" "addressK\x01\x8c\x06streamK\x02\x8c\x06" "blocks](";
	static const char shared[] = "}\x8c\x04sizeK\x01s\x94";
	char bytes[8192];
	size_t at = 0;
	int i;

	(void)state;
#define ADD(text) (memcpy(bytes + at, text, sizeof(text) - 1), at += sizeof(text) - 1)
	ADD(begin);
	ADD(first);
	ADD(shared);
	for (i = 0; i < 1000; i++)
		ADD("h\x00");
	ADD("eu\x94");
	for (i = 0; i < 1000; i++)
		ADD("h\x01");
	ADD("eu.");
	memset(&conversion, 0, sizeof(conversion));
	conversion.error = error;
	assert_false(convert_snapshot(&conversion, bytes, at, -1));
	assert_string_equal(error, "segments[0]['blocks'][17] is in several segments");
}

/* ---- requests ---- */

static const struct serving serving = {
	.bytes_per_token = 10, .block = 16, .prefill = 1000, .decode = 100, .ticks = 1,
};

static bool serve(const struct serving *how, const char *text)
{
	char *copy = strdup(text);
	bool good;

	error[0] = '\0';
	memset(&conversion, 0, sizeof(conversion));
	conversion.error = error;
	good = convert_requests(&conversion, how, copy, strlen(copy));
	free(copy);
	return good;
}

static void expect_served(const struct serving *how, const char *text, const char *events)
{
	bool good = serve(how, text);

	assert_string_equal(error, "");
	assert_true(good);
	assert_string_equal(made_events(), events);
}

static void expect_bad_line(const char *text, const char *expected)
{
	assert_false(serve(&serving, text));
	free(conversion.events);
	assert_string_equal(error, expected);
}

/* 20 tokens of input take 20 ms, and 17 of output 170 ms: two blocks of 16. */
#define ONE "0+0:200/0 20000+1:160/0 180000+2:160/0 190000-0 190000-1 190000-2"

static void requests_as_csv(void **state)
{
	(void)state;
	expect_served(&serving, "arrival,input,output\n5.5,20,17\n", ONE);
	expect_served(&serving, "arrival,input,output\r\n5.5,20,17\r\n", ONE);
	expect_served(&serving, "\"Request tokens\",x,TIMESTAMP,Generated_Tokens\r\n20,\"1,5\"\"\",5.5,17", ONE);
	expect_served(&serving, "arrival,input,output\n2023-11-16 18:15:46.68,20,17\n", ONE);
	expect_served(&serving, "arrival,input,output\n\n2024-05-10T00:00:00+00:00,20,17\n\n", ONE);
	/* By arrival, and then by line. A request without tokens has no events. */
	expect_served(&serving, "arrival,input,output\n3,10,0\n1,0,16\n2,0,0\n1,5,0\n3,1,0\n",
		      "0+0:160/0 0+1:50/0 5000-1 160000-0 2000000+2:100/0 2000000+3:10/0 "
		      "2001000-3 2010000-2");
}

static void requests_as_json(void **state)
{
	struct serving how = serving;

	(void)state;
	expect_served(&serving, "{\"arrival\": 5.5, \"input_length\": 20, \"output_length\": \"17\"}\n", ONE);
	how.ticks = 1000;
	expect_served(&how, "{\"a\": [], \"timestamp\": 5, \"prompt_tokens\": 20, \"completion_tokens\": 17}", ONE);
	how.columns = "t,in,input";
	expect_served(&how, "{\"t\": 5, \"arrival\": 6, \"in\": 20, \"input\": 17}", ONE);
}

static void bad_requests(void **state)
{
	(void)state;
	expect_bad_line("a,b\n", "line 1: no column for the arrival; --columns names the right ones");
	expect_bad_line("arrival,input,x\n", "line 1: no column for the output tokens; --columns names the right ones");
	expect_bad_line("ime,input,output\n", "line 1: no column for the arrival; --columns names the right ones");
	expect_bad_line("time,input,output,arrival\n", "line 1: a second column for the arrival: 'arrival'");
	expect_bad_line("time,input,output\n1,2\n", "line 2: no output tokens: ''");
	expect_bad_line("time,input,output\n1,2,3\n\n1,-2,3\n", "line 4: no input tokens: '-2'");
	expect_bad_line("time,input,output\n1,2,100000001\n", "line 2: no output tokens: '100000001'");
	expect_bad_line("time,input,output\n-1,2,3\n", "line 2: no arrival: '-1'");
	expect_bad_line("time,input,output\n1e12,2,3\n", "line 2: no arrival: '1e12'");
	expect_bad_line("time,input,output\n2023-11-16,2,3\n", "line 2: no arrival: '2023-11-16'");
	expect_bad_line("time,input,output\n2023-11-16 18:15:46+02:00,2,3\n",
			"line 2: no arrival: '2023-11-16 18:15:46+02:00'");
	expect_bad_line("time,input,output\n", "the file has no requests");
	expect_bad_line("{\"time\": 1, \"input\": 2, \"output\": 3}\n{\"time\": 1\n", "line 2: no JSON: '}' expected near end of file");
	expect_bad_line("{\"time\": 1, \"input\": 2, \"output\": 3}\n[1]\n", "line 2: no JSON object");
	expect_bad_line("{\"time\": 1, \"input\": 2}\n", "line 1: no key for the output tokens; --columns names the right ones");
	expect_bad_line("{\"time\": 1, \"input\": 2, \"Input\": 3}\n", "line 1: a second key for the input tokens: 'Input'");
	expect_bad_line("{\"time\": 1, \"input\": 2.5, \"output\": 3}\n", "line 1: no input tokens: '2.5'");
	expect_bad_line("{\"time\": null, \"input\": 2, \"output\": 3}\n", "line 1: no arrival: ''");
}

static void a_zero_byte(void **state)
{
	char text[] = "time,input,output\n1,2,3\0\n";

	(void)state;
	memset(&conversion, 0, sizeof(conversion));
	conversion.error = error;
	assert_false(convert_requests(&conversion, &serving, text, sizeof(text) - 1));
	assert_string_equal(error, "line 2: a byte is 0");
}

static void a_trace_too_long(void **state)
{
	struct serving how = serving;

	(void)state;
	how.block = 1;
	assert_false(serve(&how, "time,input,output\n1,2,3\n2,1,100000000\n"));
	free(conversion.events);
	assert_string_equal(error, "line 3: the trace would have more than 100000000 events");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(numbers_of_pickles),
		TEST(values_of_pickles),
		TEST(code_is_refused),
		TEST(broken_pickles),
		TEST(bombs_are_small),
		TEST(nesting_is_bounded),
		TEST(a_history),
		TEST(what_was_before),
		TEST(gaps_in_a_history),
		TEST(several_devices),
		TEST(bad_snapshots),
		TEST(shared_blocks),
		TEST(requests_as_csv),
		TEST(requests_as_json),
		TEST(bad_requests),
		TEST(a_zero_byte),
		TEST(a_trace_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
