/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The version of flexmem: of the modules, the library and the command. The
 * Makefile of the library reads it from here.
 */
#ifndef FLEXMEM_VERSION_H
#define FLEXMEM_VERSION_H

#define FLEXMEM_VERSION "0.3.0"

#endif /* FLEXMEM_VERSION_H */
