// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem doctor: what is wrong with this host, and how to mend it. */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>

void doctor_find(struct doctor *doctor, enum severity severity,
		 const char *name, const char *about, const char *remedy,
		 const char *format, ...)
{
	const char *word = severity == DOCTOR_ERROR ? "error" : "warning";
	char text[TOOL_TEXT_MAX];
	va_list arguments;
	json_t *object;
	char *escaped;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	doctor->count[severity]++;
	if (!doctor->tool->json) {
		escaped = escaped_text(text);
		printf("%s: %s%s%s\n  %s\n", word, about ? about : "",
		       about ? ": " : "", escaped, remedy);
		free(escaped);
		return;
	}
	object = json_checked(json_object());
	json_add(object, "severity", json_string(word));
	json_add(object, "name", json_string(name));
	json_add(object, "about", about ? json_text(about) : json_null());
	json_add(object, "text", json_text(text));
	json_add(object, "remedy", json_text(remedy));
	if (json_array_append_new(doctor->findings, object))
		json_checked(NULL);
}

static enum tool_status report(struct doctor *doctor)
{
	const size_t errors = doctor->count[DOCTOR_ERROR];
	const size_t warnings = doctor->count[DOCTOR_WARNING];
	const bool good = !errors;
	json_t *object;

	if (doctor->tool->json) {
		object = json_checked(json_object());
		json_add(object, "healthy", json_boolean(good));
		json_add(object, "checked_functions",
			 json_number(doctor->functions));
		json_add(object, "findings", doctor->findings);
		json_print(doctor->tool, object);
	} else if (errors || warnings) {
		printf("%zu error%s, %zu warning%s\n",
		       errors, errors == 1 ? "" : "s",
		       warnings, warnings == 1 ? "" : "s");
	} else {
		printf("nothing is wrong; %zu function%s\n", doctor->functions,
		       doctor->functions == 1 ? "" : "s");
	}
	return good ? TOOL_OK : TOOL_FAILED;
}

enum tool_status cmd_doctor(struct tool *tool, int argc, char **argv)
{
	struct doctor doctor = { .tool = tool };
	enum tool_status status;

	if (!only_common_options(tool, argc, argv, &status))
		return status;
	if (tool->path)
		return usage_error(tool, "'doctor' looks at all functions, not one");
	if (tool->json)
		doctor.findings = json_checked(json_array());
	doctor_host(&doctor);
	doctor_functions(&doctor);
	return report(&doctor);
}
