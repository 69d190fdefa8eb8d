// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The figures of the cache under the keys of torch.cuda.memory_stats().
#pragma once

#include <ATen/core/Dict.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/version.h>

#include <cstdint>
#include <string>

// From PyTorch 2.9 on torch.accelerator asks the allocator of a device.
#define FLEXMEM_TORCH_ACCELERATOR \
  (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9)

namespace flexmem_torch {

using Figures = c10::Dict<std::string, int64_t>;

// All are 0 before the first allocation, and in a child that was forked after it.
Figures memoryStats();

#if FLEXMEM_TORCH_ACCELERATOR
// The same, as torch.accelerator has them.
c10::CachingDeviceAllocator::DeviceStats deviceStats();
#endif

} // namespace flexmem_torch
