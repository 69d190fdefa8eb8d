/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The steps of an operation. A step is a branch: the compiler adds a call of a
 * C function to each branch of the driver. Unlike a time, the count is the same
 * in each run. With COUNT_INSTRUCTIONS a step is an instruction: the processor
 * traps after each one.
 */
#ifndef _NATIVE_COUNT_H
#define _NATIVE_COUNT_H

static __thread unsigned long steps;
/* If set, steps are not counted, to save time. */
static bool count_nothing;

#ifdef COUNT_INSTRUCTIONS
#include <signal.h>

#define STEP_NAME "instructions"
#define STEPS_OF_A_BRANCH 5
/* A call that starts a task cannot be counted: the new task would trap too. */
#define COUNT_UNLESS_STARTING(most, call) do { call; (most) = 1; } while (0)
/* A trap takes some 10 us, so of many equal operations only some are counted. */
#define COUNT_ONE_IN(n, i) (count_nothing = (i) % (n))
/*
 * Sets or clears the processor's trap flag. First skips the 128 bytes below the
 * stack pointer, which the compiler may use.
 */
#define SET_TRAP(operation, mask)					\
	asm volatile("sub $128, %%rsp; pushfq\n\t"			\
		     operation " %0, (%%rsp)\n\t"			\
		     "popfq; add $128, %%rsp" : : "i" (mask) : "memory", "cc")

static void count_step(int signal)
{
	steps++;
}

static inline void count_begin(void)
{
	steps = 0;
	if (count_nothing)
		return;
	signal(SIGTRAP, count_step);
	SET_TRAP("orq", 0x100);
}

static inline void count_end(void)
{
	if (!count_nothing)
		SET_TRAP("andq", ~0x100);
}
#else
#define STEP_NAME "steps"
#define STEPS_OF_A_BRANCH 1
#define COUNT_UNLESS_STARTING(most, call) COUNT(most, call)
#define COUNT_ONE_IN(n, i) ((void)0)

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	steps += !count_nothing;
}

static inline void count_begin(void)
{
	steps = 0;
}

static inline void count_end(void)
{
}
#endif

/* Makes a call. @most keeps the largest number of steps. */
#define COUNT(most, call) do { \
	count_begin(); \
	call; \
	count_end(); \
	(most) = max(most, steps); \
} while (0)

#endif /* _NATIVE_COUNT_H */
