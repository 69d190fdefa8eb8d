// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Every operator with a CPU kernel gets a device kernel when the library is loaded. With only a fallback PyTorch would
// first decompose many operators, and the results would differ from the CPU's in the last bits.
#include "FlexmemAlias.h"

#include <torch/library.h>

#include <set>
#include <string>

namespace flexmem_torch {
namespace {

// These operators return tensors of a layout that the device does not have.
const std::set<std::string> leftOut = {
    "aten::to_mkldnn", "aten::_nested_tensor_from_tensor_list"};

// These operators have no CPU kernel, but need a kernel of the device: they look for that kernel, or refuse devices
// that they do not know. Some names include the overload.
const std::set<std::string> added = {
    "aten::convolution", "aten::convolution_backward", "aten::mode.values",
    "aten::nanmean.out"};

bool wants(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  if (name.compare(0, 6, "aten::") != 0 || leftOut.count(name) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
    return false;
  }
  return added.count(c10::toString(op.operator_name())) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

struct Registration {
  Registration()
      : library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1,
                __FILE__, __LINE__) {
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findSchema(name);
      if (op && wants(*op)) {
        library.impl(c10::toString(name).c_str(),
                     torch::CppFunction::makeFromBoxedFunction<&aliasKernel>());
      }
    }
  }
  torch::Library library;
};

// Runs after other files have registered their operators by hand, because those files are linked before this one.
Registration registration;

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&aliasKernel>());
}

// A composite operator with a kernel here needs no autograd kernel.
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

} // namespace
} // namespace flexmem_torch
