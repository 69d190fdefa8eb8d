// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Random numbers come from the CPU's generator, so that a seed gives the same
// numbers as on the CPU.
#pragma once

#include <ATen/core/Generator.h>

namespace flexmem_torch {

const at::Generator& defaultGenerator(c10::DeviceIndex index);
at::Generator newGenerator(c10::DeviceIndex index);

// Returns the CPU's generator inside a flexmem generator. Returns any other
// generator unchanged.
at::Generator cpuGenerator(const at::Generator& generator);

} // namespace flexmem_torch
