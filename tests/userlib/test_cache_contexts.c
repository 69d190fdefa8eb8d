// SPDX-License-Identifier: GPL-2.0
/* Contexts of requests, and how a snapshot shows them. */
#include "cache_mock.h"
#include "cache_viewer.h"

/* A context. @users: number of references that the cache holds. */
struct note {
	const char *text;
	int users;
	int holds;
};

static struct flexmem_cache *cache;
/* Runs when the cache prints a context. */
static void (*on_print)(void);
static unsigned int prints;

static size_t print(void *user, void *context, char *text, size_t length)
{
	const struct note *note = context;

	assert_ptr_equal(user, &mock);
	assert_true(note->users > 0);
	prints++;
	if (on_print)
		on_print();
	return (size_t)snprintf(text, length, "%s", note->text);
}

static void hold(void *user, void *context)
{
	struct note *note = context;

	assert_ptr_equal(user, &mock);
	note->holds++;
	note->users++;
}

/* The cache calls this without a lock, so the function may use the cache. */
static void release(void *user, void *context)
{
	struct note *note = context;

	assert_ptr_equal(user, &mock);
	if (cache)
		figures(cache);
	note->users--;
}

static const struct flexmem_cache_contexts contexts = {
	.print = print, .hold = hold, .release = release, .user = &mock,
};

static void start(const char *configuration)
{
	struct flexmem_cache_options options = mock_options(configuration);

	on_print = NULL;
	prints = 0;
	cache = NULL;
	options.events = &mock_events;
	options.events_size = sizeof(mock_events);
	options.contexts = &contexts;
	options.contexts_size = sizeof(contexts);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
}

static void end(void)
{
	struct flexmem_cache *last = cache;

	cache = NULL;
	flexmem_cache_destroy(last);
}

static struct flexmem_cache_allocation
request(uint64_t bytes, struct note *note, const char *tag, uint64_t pool,
	int expected)
{
	struct flexmem_cache_request wanted = {
		.bytes = bytes, .context = note, .tag = tag, .pool = pool,
	};
	struct flexmem_cache_allocation a;

	assert_int_equal(flexmem_cache_alloc_request(cache, &wanted,
						     sizeof(wanted), &a,
						     sizeof(a)), expected);
	return a;
}

static json_t *snapshot(uint64_t pool)
{
	const char *refused;
	json_t *json;
	char *text;

	assert_int_equal(flexmem_cache_snapshot(cache, pool, &text, NULL), 0);
	json = json_loads(text, 0, NULL);
	flexmem_cache_text_free(text);
	assert_non_null(json);
	refused = viewer_refuses(json);
	if (refused)
		fail_msg("%s", refused);
	return json;
}

static json_t *events(const json_t *json)
{
	return json_array_get(json_object_get(json, "device_traces"), 0);
}

static json_t *first_block(const json_t *json)
{
	json_t *segment = json_array_get(json_object_get(json, "segments"), 0);

	return json_array_get(json_object_get(segment, "blocks"), 0);
}

static void expect_frame(const json_t *of, size_t i, const char *name,
			 const char *file, int line)
{
	const json_t *frame = json_array_get(json_object_get(of, "frames"), i);

	assert_non_null(frame);
	assert_string_equal(json_string_value(json_object_get(frame, "name")),
			    name);
	assert_string_equal(json_string_value(json_object_get(frame,
							      "filename")),
			    file);
	assert_int_equal(json_integer_value(json_object_get(frame, "line")),
			 line);
}

static size_t count_frames(const json_t *of)
{
	return json_array_size(json_object_get(of, "frames"));
}

/* A context is printed with its allocation, and with each of its events. */
static void travels_into_snapshots(void **state)
{
	struct note note = { .text = "model.py:12:forward\n\nmain" };
	struct flexmem_cache_allocation a;
	json_t *json;
	size_t i;

	(void)state;
	start("");
	assert_int_equal(flexmem_cache_set_history(cache, 100), 0);
	a = request(1000, &note, "weights", 0, 0);
	assert_ptr_equal(a.context, &note);
	assert_ptr_equal(lookup(cache, a.token).context, &note);
	json = snapshot(0);
	assert_int_equal(count_frames(first_block(json)), 3);
	expect_frame(first_block(json), 0, "weights", "", 0);
	expect_frame(first_block(json), 1, "forward", "model.py", 12);
	expect_frame(first_block(json), 2, "main", "", 0);
	json_decref(json);
	give(cache, a.token);
	json = snapshot(0);
	/* The free block shows no context. */
	assert_int_equal(count_frames(first_block(json)), 0);
	assert_int_equal(json_array_size(events(json)), 4);
	assert_int_equal(count_frames(json_array_get(events(json), 0)), 0);
	for (i = 1; i < 4; i++)
		expect_frame(json_array_get(events(json), i), 1, "forward",
			     "model.py", 12);
	json_decref(json);
	end();
	assert_int_equal(note.users, 0);
	assert_int_equal(note.holds, 1);
}

/* A line is FILE:LINE:NAME or a name. Invalid UTF-8 is replaced. */
static void lines_are_frames(void **state)
{
	static const struct {
		const char *line;
		const char *name;
		const char *file;
		int number;
	} lines[] = {
		{ "a:b", "a:b", "", 0 },
		{ "a:12", "a:12", "", 0 },
		{ "a::b", "a::b", "", 0 },
		{ "std::f", "std::f", "", 0 },
		{ "c:/x.py:3:std::f", "std::f", "c:/x.py", 3 },
		{ "a:3x:7:b", "b", "a:3x", 7 },
		{ "a:99999999999:b", "a:99999999999:b", "", 0 },
		{ "x:1:\"q\"\t\\", "\"q\"\\x09\\\\", "x", 1 },
		{ "\\x09", "\\\\x09", "", 0 },
		{ "\xc3\xa4.py:1:\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4.py", 1 },
		/*
		 * Invalid UTF-8: a stray byte, an overlong form, half a
		 * surrogate pair, too large a number, a truncated character.
		 */
		{ "<\xa4\xc0\xaf>", "<\\xa4\\xc0\\xaf>", "", 0 },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "", 0 },
		{ "\xe0\x80\xaf", "\\xe0\\x80\\xaf", "", 0 },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "", 0 },
		{ "\xe2\x82", "\\xe2\\x82", "", 0 },
	};
	struct note note = { 0 };
	struct flexmem_cache_allocation a;
	json_t *json;
	size_t i;

	(void)state;
	start("");
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		note.text = lines[i].line;
		a = request(1000, &note, NULL, 0, 0);
		json = snapshot(0);
		expect_frame(first_block(json), 0, lines[i].name,
			     lines[i].file, lines[i].number);
		json_decref(json);
		give(cache, a.token);
	}
	end();
	assert_int_equal(note.users, 0);
}

/* A context longer than the buffer that the cache tries first. */
static void long_contexts(void **state)
{
	struct note note = { 0 };
	char text[20001];
	json_t *json;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(text); i++)
		text[i] = i % 100 == 99 ? '\n' : 'x';
	text[sizeof(text) - 1] = '\0';
	note.text = text;
	start("");
	request(1000, &note, NULL, 0, 0);
	json = snapshot(0);
	assert_int_equal(count_frames(first_block(json)), 200);
	json_decref(json);
	end();
	assert_int_equal(note.users, 0);
}

/* The cache holds a context while an allocation or an event may show it. */
static void held_as_long_as_shown(void **state)
{
	struct note notes[4] = { 0 };
	struct flexmem_cache_allocation a[4];
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		notes[i].text = "note";
	start("expandable_segments:True");
	a[0] = request(1000, &notes[0], "tag", 0, 0);
	assert_int_equal(notes[0].users, 1);
	give(cache, a[0].token);
	assert_int_equal(notes[0].users, 0);

	/* A block that waits for an event still shows its context. */
	a[1] = request(1000, &notes[1], NULL, 0, 0);
	assert_int_equal(flexmem_cache_record_stream(cache, a[1].token, 7), 0);
	give(cache, a[1].token);
	assert_int_equal(notes[1].users, 1);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(notes[1].users, 0);

	/*
	 * An event in the history still shows its context, until the history
	 * drops that event.
	 */
	assert_int_equal(flexmem_cache_set_history(cache, 3), 0);
	a[2] = request(1000, &notes[2], NULL, 0, 0);
	give(cache, a[2].token);
	assert_int_equal(notes[2].users, 1);
	a[3] = request(1000, &notes[3], NULL, 0, 0);
	assert_int_equal(notes[2].users, 1);
	give(cache, a[3].token);
	assert_int_equal(notes[2].users, 0);
	assert_int_equal(notes[3].users, 1);
	assert_int_equal(flexmem_cache_set_history(cache, 3), 0);
	assert_int_equal(notes[3].users, 0);

	/* Destroying the cache releases the remaining contexts. */
	a[0] = request(1000, &notes[0], NULL, 0, 0);
	a[1] = request(1000, &notes[1], NULL, 0, 0);
	give(cache, a[1].token);
	end();
	for (i = 0; i < 4; i++) {
		assert_int_equal(notes[i].users, 0);
		assert_true(notes[i].holds > 0);
	}
}

/* A failed request's context is in the text and in the history. */
static void out_of_memory(void **state)
{
	struct note note = { .text = "model.py:7:grow\nmain" };
	struct flexmem_cache_allocation a;
	struct note other = { 0 };
	char text[1024];
	json_t *json;

	(void)state;
	start("");
	a = request(2 * GIB, &note, NULL, 0, -ENOMEM);
	assert_int_equal(note.users, 0);
	assert_int_equal(note.holds, 1);
	assert_ptr_equal(a.failure.context, &note);
	note.users++;
	assert_int_equal(flexmem_cache_error_text(-ENOMEM, &a.failure,
						  sizeof(a.failure), text,
						  sizeof(text)), 0);
	assert_non_null(strstr(text, "requested by model.py:7:grow"));
	assert_null(strstr(text, "main"));
	note.users--;
	assert_int_equal(flexmem_cache_set_history(cache, 10), 0);
	request(2 * GIB, &note, NULL, 0, -ENOMEM);
	assert_int_equal(note.users, 1);
	json = snapshot(0);
	expect_frame(json_array_get(events(json), 0), 0, "grow", "model.py",
		     7);
	json_decref(json);

	/* Other failures release the context too. */
	request(1000, &other, NULL, 77, -ENOENT);
	request(UINT64_C(1) << 60, &other, NULL, 0, -ENOMEM);
	assert_int_equal(other.users, 0);
	end();
	assert_int_equal(note.users, 0);
}

static void use_cache(void)
{
	give(cache, take(cache, 5000, 3));
}

/* The callback that prints a context may use the cache: no lock is held. */
static void printed_without_the_lock(void **state)
{
	struct note note = { .text = "note" };
	struct flexmem_cache_allocation a;

	(void)state;
	start("");
	assert_int_equal(flexmem_cache_set_history(cache, 10), 0);
	a = request(1000, &note, NULL, 0, 0);
	on_print = use_cache;
	json_decref(snapshot(0));
	assert_int_equal(prints, 2);
	give(cache, a.token);
	end();
	assert_int_equal(note.users, 0);
}

static struct note short_lived = { .text = "note" };
static void *short_lived_token;

static void free_it(void)
{
	if (!short_lived_token)
		return;
	give(cache, short_lived_token);
	short_lived_token = NULL;
	/* The snapshot that is being written holds the context. */
	assert_int_equal(short_lived.users, 1);
}

static void freed_while_it_is_printed(void **state)
{
	(void)state;
	start("");
	short_lived_token = request(1000, &short_lived, NULL, 0, 0).token;
	on_print = free_it;
	json_decref(snapshot(0));
	assert_null(short_lived_token);
	assert_int_equal(short_lived.users, 0);
	end();
}

/* Without functions for contexts, the cache accepts contexts but shows none. */
static void without_functions(void **state)
{
	struct note note = { .text = "note" };
	struct flexmem_cache_allocation a;
	json_t *json;

	(void)state;
	cache = mock_cache("");
	a = request(1000, &note, NULL, 0, 0);
	assert_ptr_equal(a.context, &note);
	json = snapshot(0);
	assert_int_equal(count_frames(first_block(json)), 0);
	json_decref(json);
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(travels_into_snapshots),
		CACHE_TEST(lines_are_frames),
		CACHE_TEST(long_contexts),
		CACHE_TEST(held_as_long_as_shown),
		CACHE_TEST(out_of_memory),
		CACHE_TEST(printed_without_the_lock),
		CACHE_TEST(freed_while_it_is_printed),
		CACHE_TEST(without_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
