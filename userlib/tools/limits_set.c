// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sets the limits of a file on the functions, and reads them back.
 *
 * A line for all functions is one command, which the driver also carries out on
 * functions that appear later. But if another line sets the same amount of the
 * same cgroup for one function, each function gets its own command: the command
 * for all would for a moment replace the limit of that one.
 */
#include "cgroup_limits.h"
#include "functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A function. @error: why it could not be opened, or 0. */
struct function {
	const struct flexmem_identity *identity;
	struct flexmem_device *device;
	int error;
};

struct setter {
	const struct limits_file *file;
	struct limits_outcome *outcomes;
	struct fmlib_functions list;
	struct function *functions;
};

const char *limits_state_name(enum limits_state state)
{
	static const char *const names[] = {
		[LIMITS_LEFT] = "left",
		[LIMITS_SET] = "set",
		[LIMITS_NO_CGROUP] = "no cgroup",
		[LIMITS_NO_FUNCTION] = "no function",
		[LIMITS_FAILED] = "failed",
	};

	return names[state];
}

static void fail(struct limits_outcome *outcome, int error, const char *format,
		 ...) __attribute__((format(printf, 3, 4)));

/* Keeps the first failure of a line. */
static void fail(struct limits_outcome *outcome, int error, const char *format,
		 ...)
{
	char text[TOOL_TEXT_MAX];
	va_list arguments;

	outcome->state = LIMITS_FAILED;
	if (outcome->error)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	outcome->error = error;
	outcome->text = copy_text(text);
}

static void fail_on(struct limits_outcome *outcome, int error,
		    const struct function *function, uint32_t amount)
{
	char reason[TOOL_TEXT_MAX / 2];

	flexmem_error_text(error, NULL, 0, reason, sizeof(reason));
	fail(outcome, error, "%s on %s: %s", limits_amount_name(amount),
	     function->identity->id, reason);
}

/* Whether @name names the function with this index. */
static bool is_named(const struct function *function, size_t index,
		     const char *name)
{
	const struct flexmem_identity *identity = function->identity;
	uint64_t number;

	if (!strcmp(identity->id, name) ||
	    (!strcmp(identity->bus, "pci") && !strcmp(identity->address, name)))
		return true;
	return parse_number(name, SIZE_MAX, &number) && number == index;
}

/*
 * Whether @other comes before @line, which is for the same cgroup: a line of the
 * cgroup before one for each child, then a line for one function before one for
 * all.
 */
static bool comes_before(const struct limits_line *other,
			 const struct limits_line *line)
{
	if (other->is_child != line->is_child)
		return line->is_child;
	return other->function && !line->function;
}

/*
 * Whether a line that comes before this one sets the amount for the same cgroup.
 * @at: the function that it must be for; SIZE_MAX: any.
 */
static bool is_overridden(const struct setter *setter,
			  const struct limits_line *line, uint32_t amount,
			  size_t at)
{
	const struct limits_line *other;
	size_t i;

	for (i = 0; i < setter->file->count; i++) {
		other = &setter->file->lines[i];
		if (!other->sets[amount] || !limits_same_owner(line, other) ||
		    !comes_before(other, line))
			continue;
		if (at == SIZE_MAX || !other->function ||
		    is_named(&setter->functions[at], at, other->function))
			return true;
	}
	return false;
}

/* Whether the line sets this amount on the function. */
static bool is_meant(const struct setter *setter,
		     const struct limits_line *line, uint32_t amount, size_t at)
{
	if (!line->sets[amount])
		return false;
	if (line->function &&
	    !is_named(&setter->functions[at], at, line->function))
		return false;
	return !is_overridden(setter, line, amount, at);
}

static int reserve(const struct function *function, uint64_t cgroup,
		   const struct limits_line *line)
{
	struct flexmem_properties properties;
	uint64_t regions = line->amount[LIMITS_RESERVE];
	uint64_t size = line->size;
	uint32_t limit;
	int err;

	if (regions && !size) {
		err = flexmem_device_properties(function->device, &properties,
						sizeof(properties));
		if (err)
			return err;
		size = properties.fallback_sizes[0];
	}
	return flexmem_device_reserve(function->device, cgroup, size,
				      (uint32_t)regions, &limit);
}

static void set_on(const struct setter *setter, const struct limits_line *line,
		   struct limits_outcome *outcome, uint32_t amount, size_t at)
{
	const struct function *function = &setter->functions[at];
	int err = function->error;

	if (!err && amount == LIMITS_RESERVE)
		err = reserve(function, outcome->cgroup, line);
	else if (!err)
		err = flexmem_device_set_limit(function->device, line->whose,
					       outcome->cgroup, amount,
					       line->amount[amount], NULL, 0);
	/* A function that is gone needs no limit. */
	if (err && err != -ENODEV)
		fail_on(outcome, err, function, amount);
}

/* Sets a limit on all functions, through any of them that is not gone. */
static void set_for_all(const struct setter *setter,
			const struct limits_line *line,
			struct limits_outcome *outcome, uint32_t charge)
{
	const struct function *function = setter->functions;
	int err = -ENODEV;
	size_t i;

	for (i = 0; i < setter->list.count && err == -ENODEV; i++) {
		function = &setter->functions[i];
		err = function->error;
		if (!err)
			err = flexmem_device_set_limit(
				function->device,
				line->whose | FLEXMEM_FOR_ALL_FUNCTIONS,
				outcome->cgroup, charge, line->amount[charge],
				NULL, 0);
	}
	if (err == -ENODEV)
		outcome->state = LIMITS_NO_FUNCTION;
	else if (err)
		fail_on(outcome, err, function, charge);
}

static void set_amount(const struct setter *setter,
		       const struct limits_line *line,
		       struct limits_outcome *outcome, uint32_t amount)
{
	size_t i;

	if (!line->function && amount != LIMITS_RESERVE &&
	    !is_overridden(setter, line, amount, SIZE_MAX)) {
		set_for_all(setter, line, outcome, amount);
		return;
	}
	for (i = 0; i < setter->list.count; i++)
		if (is_meant(setter, line, amount, i))
			set_on(setter, line, outcome, amount, i);
}

static void set_line(const struct setter *setter,
		     const struct limits_line *line,
		     struct limits_outcome *outcome)
{
	uint32_t amount;
	size_t i;

	/* A line for each child that was not replaced has no child. */
	if (line->each ||
	    (line->path && fmlib_cgroup_at(line->path, &outcome->cgroup))) {
		outcome->state = LIMITS_NO_CGROUP;
		return;
	}
	for (i = 0; i < setter->list.count; i++)
		outcome->functions += !line->function ||
				      is_named(&setter->functions[i], i,
					       line->function);
	if (!outcome->functions) {
		outcome->state = LIMITS_NO_FUNCTION;
		return;
	}
	outcome->state = LIMITS_SET;
	for (amount = 0; amount < LIMITS_AMOUNTS; amount++)
		if (line->sets[amount])
			set_amount(setter, line, outcome, amount);
}

/* Compares what the driver shows with one line. */
static void check_account(const struct setter *setter, size_t at,
			  const struct limits_line *line,
			  struct limits_outcome *outcome,
			  const struct flexmem_account_state *account)
{
	uint64_t shown;
	uint32_t i;

	for (i = 0; i < LIMITS_AMOUNTS; i++) {
		if (!is_meant(setter, line, i, at))
			continue;
		/* Without a limit of its own a cgroup has another one. */
		if (i != LIMITS_RESERVE && line->amount[i] == FLEXMEM_UNLIMITED)
			continue;
		if (!account)
			shown = i == LIMITS_RESERVE ? 0 : FLEXMEM_UNLIMITED;
		else if (i == LIMITS_RESERVE)
			shown = account->reservation;
		else
			shown = account->limit[i];
		if (shown != line->amount[i])
			fail(outcome, -EIO,
			     "%s on %s: %" PRIu64 " was set, but the driver has %" PRIu64,
			     limits_amount_name(i),
			     setter->functions[at].identity->id,
			     line->amount[i], shown);
	}
}

static const struct flexmem_account_state *
find_account(const struct flexmem_account_state *accounts, size_t count,
	     uint64_t cgroup)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (accounts[i].kind == FLEXMEM_ACCOUNT_CGROUP &&
		    accounts[i].id == cgroup)
			return &accounts[i];
	return NULL;
}

/* Reads the limits of one function back. The driver does not show a default. */
static void read_back(const struct setter *setter, size_t at)
{
	struct flexmem_account_state *accounts = NULL;
	struct flexmem_usage usage = { 0 };
	struct limits_outcome *outcome;
	const struct limits_line *line;
	size_t i;
	int err;

	if (setter->functions[at].error)
		return;
	err = flexmem_device_usage(setter->functions[at].device, &usage,
				   sizeof(usage), NULL, 0, &accounts,
				   sizeof(*accounts));
	for (i = 0; i < setter->file->count; i++) {
		line = &setter->file->lines[i];
		outcome = &setter->outcomes[i];
		if (outcome->state != LIMITS_SET ||
		    line->whose != FLEXMEM_FOR_CGROUP)
			continue;
		if (!err)
			check_account(setter, at, line, outcome,
				      find_account(accounts, usage.accounts,
						   outcome->cgroup));
		else if (err != -ENODEV)
			fail(outcome, err, "the limits on %s cannot be read",
			     setter->functions[at].identity->id);
	}
	flexmem_accounts_free(accounts);
}

static int open_functions(struct setter *setter)
{
	struct function *function;
	size_t i;
	int err = fmlib_functions_list(&setter->list, false);

	if (err)
		return err;
	setter->functions = grow(NULL, setter->list.count + 1,
				 sizeof(*setter->functions));
	for (i = 0; i < setter->list.count; i++) {
		function = &setter->functions[i];
		function->identity = &setter->list.list[i];
		function->device = NULL;
		function->error = flexmem_device_open(&function->device,
						      function->identity->path);
	}
	return 0;
}

int limits_set(const struct limits_file *file, const bool *wanted,
	       struct limits_outcome *outcomes)
{
	struct setter setter = { .file = file, .outcomes = outcomes };
	size_t i;
	int err;

	memset(outcomes, 0, file->count * sizeof(*outcomes));
	err = open_functions(&setter);
	if (err)
		return err;
	for (i = 0; i < file->count; i++)
		if (!wanted || wanted[i])
			set_line(&setter, &file->lines[i], &outcomes[i]);
	for (i = 0; i < setter.list.count; i++)
		read_back(&setter, i);
	for (i = 0; i < setter.list.count; i++)
		flexmem_device_close(setter.functions[i].device);
	free(setter.functions);
	free(setter.list.list);
	return 0;
}

void limits_outcomes_clear(struct limits_outcome *outcomes, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		free(outcomes[i].text);
	free(outcomes);
}
