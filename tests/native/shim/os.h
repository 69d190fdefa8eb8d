/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the C library and of TSan that the shim uses. */
#ifndef _NATIVE_OS_H
#define _NATIVE_OS_H

#include <stdbool.h>
#include <stddef.h>

void os_futex_wait(unsigned int *word, unsigned int value);
void os_futex_wake(unsigned int *word);
void os_yield(void);
void os_thread(void (*function)(void *data), void *data);
void os_one_processor(void);
void *os_reserve(size_t size);
unsigned long long os_nanoseconds(void);
void os_pause(void);
void os_trace(void);
void os_exit(int status) __attribute__((noreturn));

/*
 * Tells TSan that a lock was taken, because TSan does not see the shim itself.
 */
void os_locked(void *lock, bool read, bool tried);
void os_unlocking(void *lock, bool read);
void os_acquire(void *address);
void os_release(void *address);

#endif /* _NATIVE_OS_H */
