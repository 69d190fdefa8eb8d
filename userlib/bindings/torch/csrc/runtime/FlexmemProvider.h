// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Providers of segments in a device or in host memory. Both note which
// addresses are mapped.
#pragma once

#include <flexmem_cache.h>

#include <c10/core/Device.h>

namespace flexmem_torch {

// Returns a provider that keeps the device open. On failure closes the device
// and throws c10::Error. @index: of the device among those of the process; called
// once for each.
flexmem_cache_provider deviceProvider(flexmem_device* device, c10::DeviceIndex index);

// Returns a provider of @bytes bytes of anonymous memory. Throws c10::Error if
// the process cannot have so many addresses.
flexmem_cache_provider hostProvider(uint64_t bytes, c10::DeviceIndex index);

// The device in which a pointer is mapped, or -1. Async-signal-safe.
c10::DeviceIndex deviceOf(const void* pointer) noexcept;

} // namespace flexmem_torch
