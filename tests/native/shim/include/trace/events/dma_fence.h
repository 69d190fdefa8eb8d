/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's tracepoints of fences, which do nothing here. */
#define trace_dma_fence_emit(fence) ((void)(fence))
#define trace_dma_fence_init(fence) ((void)(fence))
#define trace_dma_fence_destroy(fence) ((void)(fence))
#define trace_dma_fence_enable_signal(fence) ((void)(fence))
#define trace_dma_fence_signaled(fence) ((void)(fence))
#define trace_dma_fence_wait_start(fence) ((void)(fence))
#define trace_dma_fence_wait_end(fence) ((void)(fence))
#define EXPORT_TRACEPOINT_SYMBOL(name)
