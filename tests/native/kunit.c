// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the suites of tests/kunit and prints TAP, a line for each case and
 * parameter.
 * usage: kunit [-s SEED] [-o PARAMETER=VALUE]... [-l] [GLOB]
 * PARAMETER is a parameter of the test module. GLOB selects the cases whose
 * name SUITE.CASE matches.
 */
#include "shim/internal.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <unistd.h>

#include <kunit/test.h>

struct kunit_action {
	struct kunit_action *next;
	void (*function)(void *data);
	void *data;
};

static struct kunit_suite *suites;
static struct kunit *running_test;
static jmp_buf aborted;
static unsigned int count, failures;

/* Appends the suite, so that suites run in the order of the files. */
void native_kunit_add(struct kunit_suite *suite)
{
	struct kunit_suite **end = &suites;

	while (*end)
		end = &(*end)->next;
	*end = suite;
}

struct kunit *kunit_get_current_test(void)
{
	return running_test;
}

void native_kunit_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("#   ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

void native_kunit_info(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# ");
	vprintf(format, args);
	if (!strchr(format, '\n'))
		printf("\n");
	va_end(args);
}

void native_kunit_fail(struct kunit *test, bool abort, const char *file,
		       int line, const char *what)
{
	test->failed = true;
	printf("# %s:%d: not so: %s\n", file, line, what);
}

void native_kunit_abort(struct kunit *test)
{
	longjmp(aborted, 1);
}

int kunit_add_action(struct kunit *test, void (*function)(void *data),
		     void *data)
{
	struct kunit_action *action = kmalloc(sizeof(*action), GFP_KERNEL);

	if (!action)
		return -ENOMEM;
	*action = (struct kunit_action) { test->actions, function, data };
	test->actions = action;
	return 0;
}

int kunit_add_action_or_reset(struct kunit *test, void (*function)(void *data),
			      void *data)
{
	int rc = kunit_add_action(test, function, data);

	if (rc)
		function(data);
	return rc;
}

/* Removes the action from the list and runs it. */
void kunit_release_action(struct kunit *test, void (*function)(void *data),
			  void *data)
{
	struct kunit_action **at, *action;

	for (at = &test->actions; (action = *at); at = &action->next) {
		if (action->function != function || action->data != data)
			continue;
		*at = action->next;
		function(data);
		kfree(action);
		return;
	}
}

static void free_object(void *object)
{
	kfree(object);
}

void *kunit_kmalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	void *object = kmalloc(size, gfp);

	if (object && kunit_add_action_or_reset(test, free_object, object))
		return NULL;
	return object;
}

void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	return kunit_kmalloc(test, size, gfp | __GFP_ZERO);
}

void *kunit_kcalloc(struct kunit *test, size_t n, size_t size, gfp_t gfp)
{
	size_t bytes;

	return check_mul_overflow(n, size, &bytes) ? NULL :
		kunit_kzalloc(test, bytes, gfp);
}

static void run_actions(struct kunit *test)
{
	struct kunit_action *action;

	while ((action = test->actions)) {
		test->actions = action->next;
		if (!setjmp(aborted))
			action->function(action->data);
		kfree(action);
	}
}

static void run_case(struct kunit_suite *suite, struct kunit_case *kcase,
		     const void *param, const char *text)
{
	struct kunit test = { .name = kcase->name, .param_value = param };
	long live = native_live();
	volatile int rc = 0;

	running_test = &test;
	if (!setjmp(aborted)) {
		if (suite->init)
			rc = suite->init(&test);
		if (!rc)
			kcase->run_case(&test);
	}
	if (rc)
		test.failed = true;
	if (suite->exit && !setjmp(aborted))
		suite->exit(&test);
	run_actions(&test);
	if (current->locks || current->atomic || current->rcu)
		shim_bug("%s ends with locks held", kcase->name);
	if (native_live() != live) {
		test.failed = true;
		printf("# %ld objects more than before\n",
		       native_live() - live);
	}
	running_test = NULL;
	failures += test.failed;
	printf("%s %u - %s.%s%s%s\n", test.failed ? "not ok" : "ok", ++count,
	       suite->name, kcase->name, *text ? ": " : "", text);
	fflush(stdout);
}

static void run_params(struct kunit_suite *suite, struct kunit_case *kcase)
{
	char text[KUNIT_PARAM_DESC_SIZE] = "";
	const void *param = NULL;

	if (!kcase->generate_params) {
		run_case(suite, kcase, NULL, "");
		return;
	}
	while ((param = kcase->generate_params(param, text)))
		run_case(suite, kcase, param, text);
}

static void run_suite(struct kunit_suite *suite, const char *glob, bool list)
{
	struct kunit_case *kcase;
	bool begun = false;
	char name[256];

	for (kcase = suite->test_cases; kcase->run_case; kcase++) {
		scnprintf(name, sizeof(name), "%s.%s", suite->name,
			  kcase->name);
		if (fnmatch(glob, name, 0))
			continue;
		if (list) {
			puts(name);
			continue;
		}
		if (!begun && suite->suite_init && suite->suite_init(suite))
			failures++;
		begun = true;
		run_params(suite, kcase);
	}
}

/* @text is NAME=VALUE. */
static int set_param(char *text)
{
	char *value = strchr(text, '=');

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	return native_param_set(text, value);
}

int main(int argc, char **argv)
{
	const char *glob = "*", *seed = "1";
	struct kunit_suite *suite;
	bool list = false;
	int option;

	native_shim_init();
	while ((option = getopt(argc, argv, "s:o:l")) != -1) {
		if (option == 's')
			seed = optarg;
		else if (option == 'o' && set_param(optarg))
			return 2;
		else if (option == 'o')
			continue;
		else if (option == 'l')
			list = true;
		else
			return 2;
	}
	if (optind < argc)
		glob = argv[optind];

	if (native_param_set("seed", seed) || native_module_init())
		return 2;
	for (suite = suites; suite; suite = suite->next)
		run_suite(suite, glob, list);
	native_module_exit();
	if (!list)
		printf("1..%u\n", count);
	return failures || (!list && !count);
}
