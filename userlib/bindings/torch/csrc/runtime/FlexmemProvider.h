// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Providers of segments in a device or in host memory. Both note which
// addresses are mapped.
#pragma once

#include <flexmem_cache.h>

namespace flexmem_torch {

// Returns a provider that keeps the device open. On failure closes the device
// and throws c10::Error.
flexmem_cache_provider deviceProvider(flexmem_device* device);

// Returns a provider of @bytes bytes of anonymous memory. Throws c10::Error if
// the process cannot have so many addresses.
flexmem_cache_provider hostProvider(uint64_t bytes);

// Whether a pointer lies in a mapped segment. Async-signal-safe.
bool isMapped(const void* pointer) noexcept;

} // namespace flexmem_torch
