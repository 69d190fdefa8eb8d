// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The cache's figures under the keys of torch.cuda.memory_stats().
#pragma once

#include <ATen/core/Dict.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/version.h>

#include <cstdint>
#include <string>

// torch.accelerator asks a device's allocator since PyTorch 2.9.
#define FLEXMEM_TORCH_ACCELERATOR \
  (TORCH_VERSION_MAJOR > 2 || \
   (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9))

namespace flexmem_torch {

using Figures = c10::Dict<std::string, int64_t>;

// Before the first allocation, and in a child forked after an allocation, the figures are those of an empty cache.
Figures memoryStats(c10::DeviceIndex index);

#if FLEXMEM_TORCH_ACCELERATOR
// The figures in the form of torch.accelerator.
c10::CachingDeviceAllocator::DeviceStats deviceStats(c10::DeviceIndex index);
#endif

} // namespace flexmem_torch
