// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The createRuntime hook of flexmem's CDI files. A container runtime starts it as
 * root, before the first process of a container, with the container's state on
 * stdin. The hook sets the limits of the container's cgroup. If it fails, the
 * container does not start.
 *
 * The function and the limits come from the arguments, which are in the CDI file
 * of root. From the state the hook takes only the number of the container's
 * process. The tenant can choose neither.
 */
#include "hook.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "cgroup_mount.h"
#include "escape.h"
#include "functions.h"

/* A longer state is refused. */
#define STATE_MAX (64 << 10)
#define TEXT_MAX 2048

static void escape(const char *text, char *to, size_t room)
{
	size_t left = strlen(text);
	size_t size;

	for (; left && room > FMLIB_ESCAPED_MAX; text += size, left -= size) {
		size = fmlib_escape(text, left, to);
		room -= strlen(to);
		to += strlen(to);
	}
	*to = '\0';
}

bool hook_fail(const char *format, ...)
{
	char text[TEXT_MAX / 4], escaped[TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	escape(text, escaped, sizeof(escaped));
	fprintf(stderr, "flexmem-cdi-hook: %s\n", escaped);
	/* Container runtimes drop what a hook prints. */
	syslog(LOG_ERR, "%s", escaped);
	return false;
}

static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	if (!*text || strspn(text, "0123456789") != strlen(text))
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool read_arguments(struct hook *hook, int argc, char **argv)
{
	static const struct option options[] = {
		{ "share", required_argument, NULL, 's' },
		{ "function", required_argument, NULL, 'f' },
		{ "node", required_argument, NULL, 'n' },
		{ "pod", no_argument, NULL, 'p' },
		{ "unlimited", no_argument, NULL, 'u' },
		{ "bytes", required_argument, NULL, FLEXMEM_CHARGE_BYTES },
		{ "regions", required_argument, NULL, FLEXMEM_CHARGE_REGIONS },
		{ "handles", required_argument, NULL, FLEXMEM_CHARGE_HANDLES },
		{ NULL, 0, NULL, 0 }
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			hook->share = optarg;
		else if (option == 'f')
			hook->function = optarg;
		else if (option == 'n')
			hook->node = optarg;
		else if (option == 'p')
			hook->pod = true;
		else if (option == 'u')
			hook->unlimited = true;
		else if (option == '?' ||
			 !read_number(optarg, &hook->limit[option]))
			return hook_fail("wrong argument '%s'",
					 argv[optind - 1]);
		else
			hook->sets[option] = true;
	}
	if (optind < argc)
		return hook_fail("wrong argument '%s'", argv[optind]);
	if (!hook->share || !hook->function || !hook->node ||
	    hook->unlimited == hook->sets[FLEXMEM_CHARGE_BYTES] ||
	    strchr(hook->share, '/') || hook->share[0] == '.')
		return hook_fail("the arguments are not those of a flexmem CDI file: write it again with 'flexmem cdi'");
	return true;
}

/* Reads the state from stdin. Takes nothing but the process from it. */
static bool read_state(struct hook *hook)
{
	static char text[STATE_MAX + 1];
	json_error_t error;
	size_t length;
	json_t *state;
	json_int_t pid;

	length = fread(text, 1, sizeof(text), stdin);
	if (ferror(stdin))
		return hook_fail("the state of the container cannot be read");
	if (length > STATE_MAX)
		return hook_fail("the state of the container is longer than %d bytes",
				 STATE_MAX);
	state = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	pid = json_integer_value(json_object_get(state, "pid"));
	json_decref(state);
	if (pid <= 0 || pid > INT32_MAX)
		return hook_fail("the state of the container has no process");
	hook->pid = (pid_t)pid;
	return true;
}

/*
 * Finds the function by its id. A node's number is handed out again after a
 * rebind, so the node of the CDI file may be that of another tenant by now.
 */
static bool find_function(struct hook *hook)
{
	struct fmlib_functions functions;
	struct stat named, found;
	const char *path = NULL;
	bool good;
	size_t i;
	int err = fmlib_functions_list(&functions, false);

	if (err)
		return hook_fail("the functions cannot be listed: %s",
				 strerror(-err));
	for (i = 0; i < functions.count && !path; i++)
		if (!strcmp(functions.list[i].id, hook->function))
			path = functions.list[i].path;
	good = path && !stat(path, &found) && !stat(hook->node, &named) &&
	       S_ISCHR(named.st_mode) && named.st_rdev == found.st_rdev;
	if (good) {
		err = flexmem_device_open(&hook->device, path);
		if (err)
			good = hook_fail("%s cannot be opened: %s", path,
					 strerror(-err));
	} else if (path) {
		hook_fail("%s is not the function %s, which is %s: the CDI file is out of date, 'flexmem cdi --refresh' mends it",
			  hook->node, hook->function, path);
	} else {
		hook_fail("there is no function %s", hook->function);
	}
	free(functions.list);
	return good;
}

static bool set_limits(struct hook *hook)
{
	uint32_t i;
	int err;

	for (i = 0; i < FLEXMEM_CHARGES; i++) {
		if (!hook->sets[i])
			continue;
		err = flexmem_device_set_limit(hook->device, FLEXMEM_FOR_CGROUP,
					       hook->cgroup, i, hook->limit[i],
					       NULL, 0);
		if (err == -EPERM)
			return hook_fail("only root of the host may set a limit: run podman as root, or limit the slice of the user, user-UID.slice");
		if (err)
			return hook_fail("no limit was set on %s: %s",
					 hook->path, strerror(-err));
	}
	return true;
}

static bool read_back(struct hook *hook)
{
	const struct flexmem_account_state *account = NULL;
	struct flexmem_account_state *accounts;
	struct flexmem_usage usage;
	bool same = true;
	uint32_t i;
	int err;

	err = flexmem_device_usage(hook->device, &usage, sizeof(usage), NULL, 0,
				   &accounts, sizeof(*accounts));
	if (err)
		return hook_fail("the limits of %s cannot be read: %s",
				 hook->path, strerror(-err));
	for (i = 0; i < usage.accounts; i++)
		if (accounts[i].kind == FLEXMEM_ACCOUNT_CGROUP &&
		    accounts[i].id == hook->cgroup)
			account = &accounts[i];
	for (i = 0; i < FLEXMEM_CHARGES; i++)
		if (hook->sets[i] &&
		    (!account || account->limit[i] != hook->limit[i]))
			same = false;
	flexmem_accounts_free(accounts);
	return same || hook_fail("the driver does not have the limits that were set on %s",
				 hook->path);
}

int main(int argc, char **argv)
{
	struct hook hook = { .pidfd = -1 };
	bool good;

	openlog("flexmem-cdi-hook", LOG_PID, LOG_DAEMON);
	good = read_arguments(&hook, argc, argv) && read_state(&hook) &&
	       hook_find_cgroup(&hook) && find_function(&hook) &&
	       hook_take_share(&hook) && set_limits(&hook) &&
	       hook_check_process(&hook) && read_back(&hook) &&
	       hook_keep_share(&hook);
	flexmem_device_close(hook.device);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
