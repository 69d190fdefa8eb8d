/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Reports of flexmem replay, as text and as JSON. */
#ifndef REPLAY_REPORT_H
#define REPLAY_REPORT_H

#include "replay.h"
#include "tool.h"

/*
 * The replay of one file. If it failed, @error is a negative errno and @text
 * describes it. @properties are valid unless @provider is a flat address space.
 * @exact is valid if @is_exact is true; otherwise @cache if @cached is true,
 * otherwise @device. With @is_exact neither @replay nor @properties are valid.
 */
struct report {
	const char *file;
	const char *name;
	int error;
	char text[TOOL_TEXT_MAX];
	bool cached;
	bool is_exact;
	struct replay_provider provider;
	struct flexmem_properties properties;
	struct replay replay;
	struct replay_device device;
	struct replay_cache cache;
	struct replay_exact exact;
};

void report_print(const struct report *report);
void report_failure_text(const struct report *report,
			 char text[TOOL_TEXT_MAX]);
void report_print_peak(const struct report *report);
/* Prints the first failure on stderr, if there is one. */
void report_print_failure(struct tool *tool, const struct report *report);
void report_print_summary(const struct report *reports, size_t count,
			  bool cached);
json_t *report_json(const struct report *report, bool show_peak);

#endif /* REPLAY_REPORT_H */
