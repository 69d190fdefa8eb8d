/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Comes before everything else in files of the library that are built once more
 * for test_cache_between.c: there something can happen before each of their
 * loads of what threads change without a lock.
 */
#ifndef BETWEEN_H
#define BETWEEN_H

#include <stdatomic.h>

void between(void);

#undef atomic_load_explicit
#define atomic_load_explicit(from, order) \
	(between(), __atomic_load_n(from, order))

#endif /* BETWEEN_H */
