/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Shared by the files of `flexmem doctor`. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "tool.h"

enum severity {
	/* Works, but not as well as it could, or not for long. */
	DOCTOR_WARNING,
	DOCTOR_ERROR,
};

/* @functions: how many were looked at. */
struct doctor {
	struct tool *tool;
	json_t *findings;
	size_t count[DOCTOR_ERROR + 1];
	size_t functions;
};

/*
 * Adds a finding. @name: stays the same, for programs. @about: what has it, or NULL.
 * @remedy: what to do. The text follows as for printf().
 */
void doctor_find(struct doctor *doctor, enum severity severity,
		 const char *name, const char *about, const char *remedy,
		 const char *format, ...) __attribute__((format(printf, 6, 7)));

/* doctor_host.c: looks at modules, kernels, the group, cgroups and CDI files. */
void doctor_host(struct doctor *doctor);
/* doctor_function.c: looks at all functions. */
void doctor_functions(struct doctor *doctor);

#endif /* DOCTOR_H */
