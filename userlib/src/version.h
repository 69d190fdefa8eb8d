/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef FMLIB_VERSION_H
#define FMLIB_VERSION_H

#include <stdbool.h>

#define FMLIB_VERSION_TEXT 128

/*
 * Whether the module that is loaded is of another version than this library, so
 * that it may have another ABI. Then @text has both, and what to do. False if no
 * module is loaded, or if there is no sysfs.
 */
bool fmlib_version_differs(char text[FMLIB_VERSION_TEXT]);

#endif /* FMLIB_VERSION_H */
