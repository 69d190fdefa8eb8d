// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * flexmem watch: a line for each event of a function.
 *
 * The driver wakes the command when the pressure changes and when a function is
 * removed. All else is found by asking the functions again, so changes that follow
 * each other quickly are one event.
 */
#include "tool.h"
#include "functions.h"
#include "host.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often the functions are asked. */
#define POLL_MS 500

#define EXHAUSTED (FLEXMEM_EXHAUSTED | FLEXMEM_PROGRAM_EXHAUSTED)

/*
 * What is known of a function. @device: NULL if it cannot be opened, because of
 * @error. @exhausted: bits of EXHAUSTED. @listed: its node is still there. @gone:
 * it was open, and was removed. A node may be there without a function, for
 * instance in a container.
 */
struct watched {
	struct flexmem_identity identity;
	struct flexmem_device *device;
	const char *state;
	int error;
	uint64_t resets;
	uint64_t capacity;
	uint32_t exhausted;
	bool listed;
	bool gone;
};

/* @number: of the last event. @most: of the last one to print; 0: no end. */
struct watch {
	struct tool *tool;
	struct watched *functions;
	size_t count;
	uint64_t number;
	uint64_t most;
	bool timed;
	uint64_t timeout;
	bool began;
};

static bool is_over(const struct watch *watch)
{
	return (watch->most && watch->number == watch->most) || ferror(stdout);
}

/*
 * Prints an event. @object: what it has besides its number, name and function;
 * this function frees it.
 */
static void tell(struct watch *watch, const struct watched *function,
		 const char *event, json_t *object, const char *text)
{
	json_t *line;

	if (!is_over(watch) && watch->tool->json) {
		line = json_checked(json_object());
		json_add(line, "number", json_number(++watch->number));
		json_add(line, "event", json_string(event));
		json_add(line, "function", json_text(function->identity.id));
		json_add(line, "node", json_text(function->identity.path));
		if (json_object_update(line, object))
			json_checked(NULL);
		json_dumpf(line, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(line);
		watch->tool->reported = true;
	} else if (!is_over(watch)) {
		printf("%" PRIu64 "  %s  %s: %s\n", ++watch->number,
		       function->identity.id, event, text);
	}
	fflush(stdout);
	json_decref(object);
}

static void tell_state(struct watch *watch, const struct watched *function)
{
	json_t *object = json_checked(json_object());
	char text[TOOL_TEXT_MAX];

	snprintf(text, sizeof(text), "%s", function->state);
	json_add(object, "state", json_string(function->state));
	json_add(object, "error",
		 function->device ? json_null() :
				    json_error(function->error, NULL, NULL));
	if (!function->device)
		flexmem_error_text(function->error, NULL, 0, text,
				   sizeof(text));
	tell(watch, function, "state", object, text);
}

static void tell_number(struct watch *watch, const struct watched *function,
			const char *event, const char *key, uint64_t number,
			const char *text)
{
	json_t *object = json_checked(json_object());

	json_add(object, key, json_number(number));
	tell(watch, function, event, object, text);
}

static void tell_exhausted(struct watch *watch, const struct watched *function)
{
	const bool tensors = function->exhausted & FLEXMEM_EXHAUSTED;
	const bool programs = function->exhausted & FLEXMEM_PROGRAM_EXHAUSTED;
	json_t *object = json_checked(json_object());

	json_add(object, "tensors", json_boolean(tensors));
	json_add(object, "programs", json_boolean(programs));
	tell(watch, function, "exhausted", object,
	     tensors && programs ? "no further region" :
	     tensors ? "no further region for tensors" :
	     programs ? "no further region for programs" : "no longer");
}

static void tell_pressure(struct watch *watch, const struct watched *function,
			  const struct flexmem_pressure_event *event)
{
	static const char *const levels[] = { "none", "moderate", "critical" };
	const char *level = event->level < 3 ? levels[event->level] : "unknown";
	char text[TOOL_TEXT_MAX], used[FMLIB_HUMAN_MAX], all[FMLIB_HUMAN_MAX];
	json_t *object = json_checked(json_object());

	json_add(object, "level", json_string(level));
	json_add(object, "in_use", json_number(event->in_use));
	json_add(object, "memory", json_number(event->memory));
	snprintf(text, sizeof(text), "%s, %s of %s in use", level,
		 fmlib_human(event->in_use, used),
		 fmlib_human(event->memory, all));
	tell(watch, function, "pressure", object, text);
}

static void tell_removed(struct watch *watch, struct watched *function)
{
	flexmem_device_close(function->device);
	tell(watch, function, "removed", json_checked(json_object()),
	     "the function is gone");
}

/* Asks an open function for its figures. Returns 0 or a negative errno. */
static int ask(struct watched *function)
{
	struct flexmem_statistics statistics;
	struct flexmem_properties properties;
	struct flexmem_usage usage;
	int err;

	err = flexmem_device_usage(function->device, &usage, sizeof(usage),
				   NULL, 0, NULL, 0);
	if (!err)
		err = flexmem_device_statistics(function->device, &statistics,
						sizeof(statistics));
	if (!err)
		err = flexmem_device_properties(function->device, &properties,
						sizeof(properties));
	if (err)
		return err;
	function->state = condition_name(properties.condition);
	function->resets = usage.resets;
	function->capacity = usage.capacity;
	function->exhausted = statistics.flags & EXHAUSTED;
	return 0;
}

/*
 * Opens the function if it is not open, and asks it. One that was removed stays
 * open until then, and is closed.
 */
static void look(struct watched *function)
{
	const bool was_open = function->device;

	function->error = 0;
	if (!function->device)
		function->error = flexmem_device_open(&function->device,
						      function->identity.path);
	if (!function->error)
		function->error = ask(function);
	if (function->error) {
		flexmem_device_close(function->device);
		function->device = NULL;
		function->state = "unusable";
		function->gone = was_open && function->error == -ENODEV;
	}
}

/* Asks the function again, and prints what has changed. */
static void look_again(struct watch *watch, struct watched *function)
{
	const struct watched before = *function;
	struct flexmem_pressure_event event;
	char text[FMLIB_HUMAN_MAX];

	look(function);
	if (function->gone)
		return;
	if (strcmp(function->state, before.state) ||
	    function->error != before.error)
		tell_state(watch, function);
	if (!function->device || !before.device)
		return;
	if (function->resets != before.resets) {
		snprintf(text, sizeof(text), "%" PRIu64 " so far",
			 function->resets);
		tell_number(watch, function, "reset", "resets",
			    function->resets, text);
	}
	if (function->capacity != before.capacity)
		tell_number(watch, function, "capacity", "capacity",
			    function->capacity,
			    fmlib_human(function->capacity, text));
	if (function->exhausted != before.exhausted)
		tell_exhausted(watch, function);
	if (!flexmem_device_pressure(function->device, &event, sizeof(event)))
		tell_pressure(watch, function, &event);
}

static struct watched *find(struct watch *watch,
			    const struct flexmem_identity *identity)
{
	size_t i;

	for (i = 0; i < watch->count; i++)
		if (!strcmp(watch->functions[i].identity.id, identity->id) &&
		    !strcmp(watch->functions[i].identity.path, identity->path))
			return &watch->functions[i];
	return NULL;
}

/* Adds a function. Those that are there at the beginning cause no event. */
static void add(struct watch *watch, const struct flexmem_identity *identity)
{
	struct watched *function;

	watch->functions = grow(watch->functions, watch->count + 1,
				sizeof(*watch->functions));
	function = &watch->functions[watch->count++];
	*function = (struct watched){
		.identity = *identity,
		.listed = true,
	};
	look(function);
	if (watch->began)
		tell_state(watch, function);
}

/* A function whose node has another driver by now is removed, and then added. */
static void remove_gone(struct watch *watch)
{
	struct watched *function;
	size_t i, kept = 0;

	for (i = 0; i < watch->count; i++) {
		function = &watch->functions[i];
		if (function->listed && !function->gone)
			watch->functions[kept++] = *function;
		else
			tell_removed(watch, function);
	}
	watch->count = kept;
}

/* Looks at all functions once. Returns 0 or a negative errno. */
static int scan(struct watch *watch)
{
	struct fmlib_functions functions;
	struct watched *function;
	size_t i;
	int err = fmlib_functions_list(&functions, true);

	if (err)
		return err;
	for (i = 0; i < watch->count; i++)
		watch->functions[i].listed = false;
	for (i = 0; i < functions.count; i++) {
		function = find(watch, &functions.list[i]);
		if (!function)
			continue;
		function->listed = true;
		look_again(watch, function);
	}
	remove_gone(watch);
	for (i = 0; i < functions.count; i++)
		if (!find(watch, &functions.list[i]))
			add(watch, &functions.list[i]);
	watch->began = true;
	free(functions.list);
	return 0;
}

/* Waits for an event of the driver, but not for long. */
static void pause_for(const struct watch *watch, int milliseconds)
{
	struct pollfd *files = grow(NULL, watch->count + 1, sizeof(*files));
	nfds_t count = 0;
	size_t i;

	for (i = 0; i < watch->count; i++)
		if (watch->functions[i].device)
			files[count++] = (struct pollfd){
				.fd = flexmem_device_fd(watch->functions[i].device),
				.events = POLLIN,
			};
	poll(files, count, milliseconds);
	free(files);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static enum tool_status run(struct watch *watch)
{
	const int64_t begin = now_ms();
	int64_t left = POLL_MS;
	size_t i;
	int err;

	for (;;) {
		err = scan(watch);
		if (watch->timed)
			left = (int64_t)watch->timeout * 1000 + begin -
			       now_ms();
		if (err || is_over(watch) || left <= 0)
			break;
		pause_for(watch, left < POLL_MS ? (int)left : POLL_MS);
	}
	for (i = 0; i < watch->count; i++)
		flexmem_device_close(watch->functions[i].device);
	free(watch->functions);
	return err ? tool_error(watch->tool, err, NULL, "watch") : TOOL_OK;
}

static bool watch_option(struct watch *watch, int option)
{
	switch (option) {
	case 'n':
		if (parse_number(optarg, INT64_MAX, &watch->most) &&
		    watch->most)
			return true;
		usage_error(watch->tool, "'%s' is no number of events", optarg);
		return false;
	case 't':
		watch->timed = true;
		if (parse_number(optarg, UINT32_MAX, &watch->timeout))
			return true;
		usage_error(watch->tool, "'%s' is no number of seconds",
			    optarg);
		return false;
	default:
		return false;
	}
}

enum tool_status cmd_watch(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "timeout", required_argument, NULL, 't' },
		COMMON_OPTIONS
	};
	struct watch watch = { .tool = tool };
	int option;

	while ((option = next_option(tool, argc, argv, options)) != OPTION_END)
		if (!watch_option(&watch, option))
			return option_status(option);
	if (optind < argc)
		return usage_error(tool, "unexpected argument '%s'",
				   argv[optind]);
	if (tool->path)
		return usage_error(tool, "'watch' watches all functions, not one");
	return run(&watch);
}
