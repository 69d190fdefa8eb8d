/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Reports of flexmem replay, as text and as JSON. */
#ifndef REPLAY_REPORT_H
#define REPLAY_REPORT_H

#include "replay.h"
#include "tool.h"

/*
 * One file: its replay, or why there is none: @error is a negative errno then,
 * and @text says it. @properties mean something unless
 * @provider is a flat address space; @cache if @cached, and otherwise @device.
 */
struct report {
	const char *file;
	const char *name;
	int error;
	char text[TOOL_TEXT_MAX];
	bool cached;
	struct replay_provider provider;
	struct flexmem_properties properties;
	struct replay replay;
	struct replay_device device;
	struct replay_cache cache;
};

void report_print(const struct report *report);
/* Why its first event that failed did, in words. */
void report_failure_text(const struct report *report,
			 char text[TOOL_TEXT_MAX]);
/* The regions when they were looked at. */
void report_print_peak(const struct report *report);
/* The first failure, on stderr; nothing if there is none. */
void report_print_failure(struct tool *tool, const struct report *report);
/* A table with one line for each file. */
void report_print_summary(const struct report *reports, size_t count,
			  bool cached);
json_t *report_json(const struct report *report, bool show_peak);

#endif /* REPLAY_REPORT_H */
