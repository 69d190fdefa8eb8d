// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Random numbers of the CPU's generator, so that a seed gives the same numbers.
#pragma once

#include <ATen/core/Generator.h>

namespace flexmem_torch {

const at::Generator& defaultGenerator();
at::Generator newGenerator(c10::DeviceIndex index);

// Returns the CPU's generator inside one of ours. Returns any other generator
// unchanged.
at::Generator cpuGenerator(const at::Generator& generator);

} // namespace flexmem_torch
