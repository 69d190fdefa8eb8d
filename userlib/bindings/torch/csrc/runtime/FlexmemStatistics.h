// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The figures of the cache under the keys of torch.cuda.memory_stats().
#pragma once

#include <ATen/core/Dict.h>

#include <cstdint>
#include <string>

namespace flexmem_torch {

using Figures = c10::Dict<std::string, int64_t>;

// All are 0 before the first allocation, and in a child that was forked after it.
Figures memoryStats();

} // namespace flexmem_torch
