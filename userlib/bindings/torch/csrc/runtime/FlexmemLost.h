// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The message for a process whose tensors were lost by a reset or a removal.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace flexmem_torch {

// Installs a handler of SIGBUS, which writes to stderr that a device was reset or removed. @name: of the device.
// Called once for each device.
// A reset or removal unmaps the bytes of each tensor, and the next kernel that accesses the bytes gets SIGBUS.
// After the message the signal goes to the former handler or, if there is none, to the kernel, which ends the process.
// Throws c10::Error if the handler cannot be installed.
void explainLostMemory(c10::DeviceIndex index, const std::string& name);

} // namespace flexmem_torch
