// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The message for a process whose tensors were lost by a reset or a removal.
#pragma once

#include <string>

namespace flexmem_torch {

// Installs a handler of SIGBUS. A reset or removal of the device unmaps the
// bytes of every tensor, and the next kernel that accesses them gets SIGBUS.
// The handler then writes to stderr what has happened. After that the signal
// goes to the handler that was installed before, or to the kernel, which ends
// the process. @device names the device. Throws c10::Error if the handler
// cannot be installed.
void explainLostMemory(const std::string& device);

} // namespace flexmem_torch
