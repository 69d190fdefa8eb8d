// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Operators that need no alias: they make tensors or views, replace storages, or read
// one number.
#include "FlexmemAlias.h"

#include "../runtime/FlexmemDeviceAllocator.h"
#include "../runtime/FlexmemDevices.h"

#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

namespace flexmem_torch {
namespace {

using at::IntArrayRef;
using at::Tensor;
using std::optional;

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// Returns the device of a new tensor.
c10::DeviceIndex checkOptions(optional<c10::Layout> layout, optional<c10::Device> device,
                              optional<bool> pinned) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided,
              "flexmem: only strided tensors can be made");
  TORCH_CHECK(!c10::pinned_memory_or_default(pinned),
              "flexmem: only CPU tensors can be pinned");
  return checkedDevice(device ? device->index() : c10::DeviceIndex{-1});
}

// After torch.use_deterministic_algorithms() new tensors must have defined values, not what was in memory.
Tensor fillIfDeterministic(Tensor made) {
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() &&
      context.deterministicFillUninitializedMemory()) {
    at::native::fill_empty_deterministic_(made);
  }
  return made;
}

Tensor emptyMemoryFormat(IntArrayRef size, optional<at::ScalarType> dtype,
                         optional<c10::Layout> layout,
                         optional<c10::Device> device, optional<bool> pinned,
                         optional<c10::MemoryFormat> format) {
  const DeviceScope scope(checkOptions(layout, device, pinned));
  return fillIfDeterministic(at::detail::empty_generic(
      size, deviceAllocator(), kKeys, c10::dtype_or_default(dtype), format));
}

Tensor emptyStrided(IntArrayRef size, IntArrayRef stride,
                    optional<at::ScalarType> dtype,
                    optional<c10::Layout> layout, optional<c10::Device> device,
                    optional<bool> pinned) {
  const DeviceScope scope(checkOptions(layout, device, pinned));
  return fillIfDeterministic(at::detail::empty_strided_generic(
      size, stride, deviceAllocator(), kKeys, c10::dtype_or_default(dtype)));
}

// A storage gets new bytes from the current device.
const Tensor& resize(const Tensor& self, IntArrayRef size, optional<c10::MemoryFormat> format) {
  const DeviceScope scope(self.device().index());
  return at::native::resize_(self, size, format);
}

Tensor& setStorage(Tensor& self, at::Storage source, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  const DeviceScope scope(source.device().index());
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

// PyTorch's own copy_ would call _copy_from. For conjugated tensors _copy_from would call copy_ again, without end. So
// _copy_from calls the kernel directly, as copy_ does.
Tensor copyFrom(const Tensor& self, const Tensor& dst, bool nonBlocking) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  torch::jit::Stack stack{dst, self, nonBlocking};
  aliasKernel(op, &stack);
  return dst;
}

Tensor copyFromAndResize(const Tensor& self, const Tensor& dst) {
  dst.resize_(self.sizes());
  return copyFrom(self, dst, false);
}

// With this answer Module::to() keeps its parameters, so an optimizer that was made before the call still has them.
bool hasCompatibleShallowCopyType(const Tensor& self, const Tensor& from) {
  const auto plain = [](const Tensor& tensor) {
    return tensor.layout() == c10::kStrided &&
        (tensor.is_cpu() || tensor.is_privateuseone());
  };
  return plain(self) && plain(from);
}

// The only stream has no pending work, so nothing is recorded.
void recordStream(Tensor& /*self*/, c10::Stream /*stream*/) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &emptyMemoryFormat);
  m.impl("empty_strided", &emptyStrided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  // Needs no alias: item() calls this operator, and would spend most of its time on making the alias.
  m.impl("_local_scalar_dense", &at::native::_local_scalar_dense_cpu);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage",
         static_cast<Tensor& (*)(Tensor&, at::Storage)>(&at::native::set_));
  m.impl("set_.source_Storage_storage_offset", &setStorage);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&aliasKernel>());
  m.impl("record_stream", &recordStream);
  m.impl("_copy_from", &copyFrom);
  m.impl("_copy_from_and_resize", &copyFromAndResize);
  m.impl("_has_compatible_shallow_copy_type", &hasCompatibleShallowCopyType);
}

TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

} // namespace
} // namespace flexmem_torch
