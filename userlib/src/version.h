/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef FMLIB_VERSION_H
#define FMLIB_VERSION_H

#include <stdbool.h>

#define FMLIB_VERSION_TEXT 128
#define FMLIB_MODULE_VERSION 32

/*
 * Reads the version of the module that is loaded. Returns false if there is none;
 * modules before 0.4 have none.
 */
bool fmlib_version_of_module(char version[FMLIB_MODULE_VERSION]);
/*
 * Whether the module that is loaded is of another version than this library, so
 * that it may have another ABI. Then @text has both, and what to do. False if no
 * module is loaded, or if there is no sysfs.
 */
bool fmlib_version_differs(char text[FMLIB_VERSION_TEXT]);

#endif /* FMLIB_VERSION_H */
