// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Every operator with a kernel for the CPU gets one for the device, when the library is loaded. With only a fallback
// PyTorch would decompose many of them first, and their results would differ from the CPU's in the last bits.
#include "FlexmemAlias.h"

#include <torch/library.h>

#include <set>
#include <string>

namespace flexmem_torch {
namespace {

// These operators return tensors of a layout that the device does not have.
const std::set<std::string> leftOut = {
    "aten::to_mkldnn", "aten::_nested_tensor_from_tensor_list"};

// Operators, with their overload, that have no kernel for the CPU, but look for one of the device, or refuse devices
// that they do not know.
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

// Operators that other files register by hand must be registered first, so these files are linked before this one.
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
