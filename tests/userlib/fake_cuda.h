/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A stand-in for CUDA's driver, as a shared library. Device memory is host
 * memory. Work waits in the queue of its stream until the test or a call that
 * waits lets it run. A call that would be wrong on a GPU ends the program.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_CUDA_DEVICES 2
#define FAKE_CUDA_API __attribute__((visibility("default")))

/* Forgets everything except memory and contexts; no failures are planned. */
FAKE_CUDA_API void fake_cuda_reset(uint64_t total);

/* A stream of a device. NULL is the default stream of device 0. */
FAKE_CUDA_API void *fake_cuda_stream(int device);
/*
 * Queues work that fills @bytes with @value. The memory must stay until the work
 * has run.
 */
FAKE_CUDA_API void fake_cuda_fill(void *stream, void *address, uint64_t bytes,
				  unsigned char value);
/* Runs all work of a stream. */
FAKE_CUDA_API void fake_cuda_run(void *stream);

/*
 * The call of the driver with this number, counted from 1 on from now, fails
 * with @result. 0: no call fails. Calls that begin or end a section count, too.
 */
FAKE_CUDA_API void fake_cuda_fail(unsigned int at, int result);
/* Calls since fake_cuda_fail(). */
FAKE_CUDA_API unsigned int fake_cuda_calls(void);
/* The name of the call that failed in that way, or NULL. */
FAKE_CUDA_API const char *fake_cuda_failed(void);
/* From now on all calls on a device fail, as after the crash of a kernel. */
FAKE_CUDA_API void fake_cuda_crash(int device, int result);
/*
 * All devices work again, without the memory and the events that they had. This
 * thread has no context.
 */
FAKE_CUDA_API void fake_cuda_revive(void);
/* A stream captures a graph: calls that would break the capture are wrong. */
FAKE_CUDA_API void fake_cuda_capture(bool captures);

/* Bytes of a device that are in use, now and at most. */
FAKE_CUDA_API uint64_t fake_cuda_used(int device);
FAKE_CUDA_API uint64_t fake_cuda_peak(int device);
/* Events that exist, and waits for the whole device. */
FAKE_CUDA_API unsigned int fake_cuda_events(void);
FAKE_CUDA_API unsigned int fake_cuda_waits(void);
/* The contexts that this thread has pushed and not popped. */
FAKE_CUDA_API unsigned int fake_cuda_contexts(void);
/* This thread has popped each context, and its mode is as before. */
FAKE_CUDA_API bool fake_cuda_balanced(void);

#endif /* FAKE_CUDA_H */
