// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem release: waits until a cgroup holds nothing. */
#include "tool.h"
#include "functions.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often the functions are asked. */
#define POLL_NS 100000000

struct release_options {
	bool chosen;
	uint64_t cgroup;
	bool timed;
	uint64_t timeout;
};

/* What the cgroup holds on one function. */
struct held {
	const struct flexmem_identity *identity;
	uint64_t bytes;
	uint64_t handles;
	uint64_t files;
};

static bool release_option(struct tool *tool, int option,
			   struct release_options *options)
{
	switch (option) {
	case 'g':
		options->chosen = true;
		return parse_cgroup(tool, optarg, &options->cgroup);
	case 't':
		options->timed = true;
		if (parse_number(optarg, UINT32_MAX, &options->timeout))
			return true;
		usage_error(tool, "'%s' is no number of seconds", optarg);
		return false;
	default:
		return false;
	}
}

static bool release_arguments(struct tool *tool, int argc, char **argv,
			      struct release_options *options,
			      enum tool_status *status)
{
	static const struct option known[] = {
		{ "cgroup", required_argument, NULL, 'g' },
		{ "timeout", required_argument, NULL, 't' },
		COMMON_OPTIONS
	};
	int option;

	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (!release_option(tool, option, options)) {
			*status = option_status(option);
			return false;
		}
	}
	*status = TOOL_USAGE;
	if (optind < argc)
		usage_error(tool, "unexpected argument '%s'", argv[optind]);
	else if (!options->chosen)
		usage_error(tool, "--cgroup PATH is needed");
	else if (tool->path)
		usage_error(tool, "'release' asks all functions, not one");
	else
		return true;
	return false;
}

/*
 * Asks one function. A cgroup's account has what the cgroups below it hold, too.
 * A function that is gone holds nothing.
 */
static int ask(const struct flexmem_identity *identity, uint64_t cgroup,
	       struct held *held)
{
	struct flexmem_account_state *accounts = NULL;
	struct flexmem_device *device;
	struct flexmem_usage usage;
	size_t i;
	int err;

	*held = (struct held){ .identity = identity };
	err = flexmem_device_open(&device, identity->path);
	if (err)
		return err == -ENODEV ? 0 : err;
	err = flexmem_device_usage(device, &usage, sizeof(usage), NULL, 0,
				   &accounts, sizeof(*accounts));
	flexmem_device_close(device);
	if (err)
		return err == -ENODEV ? 0 : err;
	for (i = 0; i < usage.accounts; i++) {
		if (accounts[i].kind != FLEXMEM_ACCOUNT_CGROUP ||
		    accounts[i].id != cgroup)
			continue;
		held->bytes = accounts[i].bytes + accounts[i].orphaned;
		held->handles = accounts[i].handles;
		held->files = accounts[i].files;
	}
	flexmem_accounts_free(accounts);
	return 0;
}

/* Asks all functions. Keeps those on which the cgroup holds something. */
static int ask_all(const struct fmlib_functions *functions, uint64_t cgroup,
		   struct held *held, size_t *count)
{
	struct held *one;
	size_t i;
	int err;

	*count = 0;
	for (i = 0; i < functions->count; i++) {
		one = &held[*count];
		err = ask(&functions->list[i], cgroup, one);
		if (err)
			return err;
		if (one->bytes || one->handles || one->files)
			(*count)++;
	}
	return 0;
}

static bool is_late(const struct release_options *options,
		    const struct timespec *begin)
{
	struct timespec now;

	if (!options->timed)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec - begin->tv_sec) >
		       options->timeout ||
	       ((uint64_t)(now.tv_sec - begin->tv_sec) == options->timeout &&
		now.tv_nsec >= begin->tv_nsec);
}

static json_t *json_held(const struct held *held, size_t count)
{
	json_t *array = json_checked(json_array());
	json_t *object;
	size_t i;

	for (i = 0; i < count; i++) {
		object = json_checked(json_object());
		json_add(object, "function", json_text(held[i].identity->id));
		json_add(object, "node", json_text(held[i].identity->path));
		json_add(object, "bytes", json_number(held[i].bytes));
		json_add(object, "handles", json_number(held[i].handles));
		json_add(object, "files", json_number(held[i].files));
		if (json_array_append_new(array, object))
			json_checked(NULL);
	}
	return array;
}

static enum tool_status report(struct tool *tool, uint64_t cgroup,
			       const struct held *held, size_t count)
{
	char text[FMLIB_HUMAN_MAX];
	char *path = cgroup_path(cgroup);
	char number[24];
	json_t *object;
	size_t i;

	snprintf(number, sizeof(number), "%" PRIu64, cgroup);
	if (tool->json) {
		object = json_checked(json_object());
		json_add(object, "cgroup", json_number(cgroup));
		json_add(object, "path", json_path(path));
		json_add(object, "released", json_boolean(!count));
		json_add(object, "functions", json_held(held, count));
		json_print(tool, object);
	}
	for (i = 0; i < count; i++)
		tool_fail(tool, -ETIMEDOUT,
			  "release: cgroup %s still holds %s, %" PRIu64 " allocations and %" PRIu64 " open files on %s",
			  path ? path : number,
			  fmlib_human(held[i].bytes, text), held[i].handles,
			  held[i].files, held[i].identity->id);
	free(path);
	return count ? TOOL_FAILED : TOOL_OK;
}

static enum tool_status wait_until_free(struct tool *tool,
					const struct release_options *options)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	struct fmlib_functions functions;
	enum tool_status status;
	struct timespec begin;
	struct held *held;
	size_t count;
	int err = fmlib_functions_list(&functions, false);

	if (err)
		return tool_error(tool, err, NULL, "release");
	held = grow(NULL, functions.count + 1, sizeof(*held));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (;;) {
		err = ask_all(&functions, options->cgroup, held, &count);
		if (err || !count || is_late(options, &begin))
			break;
		nanosleep(&pause, NULL);
	}
	status = err ? tool_error(tool, err, NULL, "release") :
		       report(tool, options->cgroup, held, count);
	free(held);
	free(functions.list);
	return status;
}

enum tool_status cmd_release(struct tool *tool, int argc, char **argv)
{
	struct release_options options = { .chosen = false };
	enum tool_status status;

	if (!release_arguments(tool, argc, argv, &options, &status))
		return status;
	return wait_until_free(tool, &options);
}
