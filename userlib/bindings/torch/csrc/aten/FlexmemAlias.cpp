// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemAlias.h"

#include "../runtime/FlexmemDeviceAllocator.h"
#include "../runtime/FlexmemDevices.h"
#include "../runtime/FlexmemGenerator.h"
#include "../runtime/FlexmemHistory.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

namespace flexmem_torch {
namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::StorageImpl;

std::atomic<int64_t> calls{0};
std::atomic<int64_t> copied{0};

// A tensor with the sizes and strides of @model, over another storage.
Tensor tensorOver(c10::Storage storage, DispatchKey key, const Tensor& model) {
  DispatchKeySet keys(key);
  if (model._is_zerotensor()) {
    keys = keys.add(DispatchKey::ZeroTensor);
  }
  Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys,
                                                         model.dtype());
  c10::TensorImpl* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(model.sizes(), model.strides(),
                              model.storage_offset());
  if (model.is_conj()) {
    impl->_set_conj(true);
  }
  if (model.is_neg()) {
    impl->_set_neg(true);
  }
  if (model.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return made;
}

void releaseStorage(void* device) {
  c10::raw::intrusive_ptr::decref(static_cast<StorageImpl*>(device));
}

// Returns the bytes of a device storage as those of a CPU storage, its alias. The alias keeps the device storage alive,
// because the graph of a CPU function can keep the alias for its backward pass.
c10::DataPtr borrow(const c10::Storage& device) {
  StorageImpl* impl = device.unsafeGetStorageImpl();
  c10::raw::intrusive_ptr::incref(impl);
  return {impl->mutable_data(), impl, &releaseStorage, kCpu};
}

// Moves the bytes of a CPU storage to the device. If the bytes are in the device's memory already, only their owner
// changes. Otherwise they are copied. The zeros of forward derivatives have no bytes.
c10::DataPtr deviceData(StorageImpl* cpu, c10::Device device) {
  if (!cpu->data()) {
    return {nullptr, device};
  }
  if (isOurs(cpu->data_ptr())) {
    c10::DataPtr data = cpu->set_data_ptr(c10::DataPtr(nullptr, kCpu));
    data.unsafe_set_device(device);
    return data;
  }
  const DeviceScope scope(device.index());
  c10::DataPtr data = deviceAllocator()->allocate(cpu->nbytes());
  if (cpu->nbytes()) {
    std::memcpy(data.get(), cpu->data(), cpu->nbytes());
    ++copied;
  }
  return data;
}

bool isWritten(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

// Whether an argument may be on the CPU while others are on the device.
bool mayBeOnCpu(const std::string& name, const std::string& argument) {
  static constexpr const char* both[][2] = {
      {"aten::copy_", "self"},
      {"aten::copy_", "src"},
      {"aten::index", "indices"},
      {"aten::_unsafe_index", "indices"},
      {"aten::_index_put_impl_", "indices"},
      {"aten::_pack_padded_sequence", "lengths"},
      {"aten::lstm", "batch_sizes"},
      {"aten::gru", "batch_sizes"},
      {"aten::rnn_tanh", "batch_sizes"},
      {"aten::rnn_relu", "batch_sizes"}};
  return std::any_of(std::begin(both), std::end(both), [&](const auto& entry) {
    return name == entry[0] && argument == entry[1];
  });
}

// Whether an operator may have arguments on several devices.
bool copiesBetweenDevices(const std::string& name) {
  return name == "aten::copy_" || name == "aten::_foreach_copy_";
}

} // namespace

at::Generator Aliases::toCpu(const at::Generator& generator) {
  draws_ = true;
  return cpuGenerator(generator);
}

c10::Storage Aliases::aliasStorage(const c10::Storage& device) {
  for (const StoragePair& pair : storages_) {
    if (pair.device.is_alias_of(device)) {
      return pair.cpu;
    }
  }
  const size_t bytes = device.nbytes();
  // A storage that is copied on write gets its own bytes now.
  const DeviceScope scope(device.device().index());
  c10::Storage cpu(c10::make_intrusive<StorageImpl>(
      StorageImpl::use_byte_size_t(), bytes, borrow(device),
      c10::GetCPUAllocator(), /*resizable=*/true));
  storages_.push_back({device, cpu, cpu.data(), bytes});
  return cpu;
}

Tensor Aliases::toCpu(const Tensor& tensor, const c10::Argument* argument) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (!tensor.device().is_privateuseone()) {
    if (tensor.is_cpu()) {
      cpuTensors_.push_back(tensor);
      if (argument && (tensor.dim() > 0 || isWritten(*argument))) {
        onCpu_.push_back(argument);
      }
    }
    return tensor;
  }
  for (const TensorPair& pair : tensors_) {
    if (pair.original.is_same(tensor)) {
      return pair.alias;
    }
  }
  if (!elsewhere_ && !tensors_.empty() && tensor.device() != device()) {
    elsewhere_ = argument;
    other_ = tensor.device();
  }
  Tensor alias = tensorOver(aliasStorage(tensor.storage()), DispatchKey::CPU,
                            tensor);
  tensors_.push_back({tensor, alias});
  return alias;
}

void Aliases::chooseDevice(c10::Device device) {
  chosen_ = deviceAt(checkedDevice(device.index()));
}

c10::Device Aliases::device() const {
  if (!tensors_.empty()) {
    return tensors_.front().original.device();
  }
  return chosen_ ? *chosen_ : deviceAt(currentDevice());
}

void Aliases::checkDevices(const c10::FunctionSchema& schema) const {
  if (tensors_.empty()) {
    return;
  }
  TORCH_CHECK(!elsewhere_ || copiesBetweenDevices(schema.name()),
              "Expected all tensors to be on the same device, but found at "
              "least two devices, ", device(), " and ", *other_, "! (argument ",
              elsewhere_->name(), " of ", schema.name(), ")");
  for (const c10::Argument* argument : onCpu_) {
    TORCH_CHECK(mayBeOnCpu(schema.name(), argument->name()),
                "Expected all tensors to be on the same device, but found at "
                "least two devices, ", device(), " and cpu! (argument ",
                argument->name(), " of ", schema.name(), ")");
  }
}

void Aliases::writeBack() {
  for (StoragePair& pair : storages_) {
    StorageImpl* cpu = pair.cpu.unsafeGetStorageImpl();
    StorageImpl* device = pair.device.unsafeGetStorageImpl();
    if (cpu->data() == pair.data && cpu->nbytes() == pair.bytes) {
      continue;
    }
    if (cpu->data() != pair.data) {
      device->set_data_ptr_noswap(deviceData(cpu, pair.device.device()));
    }
    device->set_nbytes(cpu->nbytes());
  }
  for (TensorPair& pair : tensors_) {
    if (pair.alias.storage_offset() != pair.original.storage_offset() ||
        pair.alias.sizes() != pair.original.sizes() ||
        pair.alias.strides() != pair.original.strides()) {
      pair.original.unsafeGetTensorImpl()->set_sizes_and_strides(
          pair.alias.sizes(), pair.alias.strides(),
          pair.alias.storage_offset());
    }
  }
}

const c10::Storage* Aliases::findDevice(const StorageImpl* cpu) const {
  for (const StoragePair& pair : storages_) {
    if (pair.cpu.unsafeGetStorageImpl() == cpu) {
      return &pair.device;
    }
  }
  return nullptr;
}

// Turns a CPU storage into one of the device. Keeps the pair of storages, because several results may share a storage.
c10::Storage Aliases::takeOver(const c10::Storage& cpu) {
  StorageImpl* impl = cpu.unsafeGetStorageImpl();
  const size_t bytes = impl->nbytes();
  const bool moved = isOurs(impl->data_ptr());
  c10::Storage device(c10::make_intrusive<StorageImpl>(
      StorageImpl::use_byte_size_t(), bytes, deviceData(impl, this->device()),
      deviceAllocator(), /*resizable=*/true));
  if (moved) {
    impl->set_data_ptr_noswap(borrow(device));
  }
  storages_.push_back({device, cpu, impl->data(), bytes});
  return device;
}

Tensor Aliases::toDevice(const Tensor& result) {
  if (!result.defined() || !result.is_cpu()) {
    return result;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(result.layout() == c10::kStrided, "flexmem: ",
                              device(), " has no tensors of layout ",
                              result.layout());
  for (const TensorPair& pair : tensors_) {
    if (pair.alias.is_same(result)) {
      return pair.original;
    }
  }
  for (const Tensor& tensor : cpuTensors_) {
    if (tensor.has_storage() && tensor.is_alias_of(result)) {
      return result;
    }
  }
  const c10::Storage& cpu = result.storage();
  const c10::Storage* device = findDevice(cpu.unsafeGetStorageImpl());
  return tensorOver(device ? *device : takeOver(cpu), DispatchKey::PrivateUse1,
                    result);
}

namespace {

bool isOptionalGenerator(const c10::Argument& argument) {
  const auto* type = argument.type()->castRaw<c10::OptionalType>();
  return type &&
      type->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

// Replaces an argument by its form on the CPU.
void argumentToCpu(Aliases& aliases, const c10::Argument& argument, IValue& value) {
  if (value.isTensor()) {
    value = aliases.toCpu(value.toTensor(), &argument);
  } else if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) {
      list.push_back(aliases.toCpu(tensor, &argument));
    }
    value = std::move(list);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional<Tensor>(aliases.toCpu(*tensor, &argument))
                            : std::nullopt);
    }
    value = std::move(list);
  } else if (value.isDevice()) {
    if (value.toDevice().is_privateuseone()) {
      aliases.chooseDevice(value.toDevice());
      value = kCpu;
    }
  } else if (value.isGenerator()) {
    value = aliases.toCpu(value.toGenerator());
  }
}

void resultToDevice(Aliases& aliases, IValue& value) {
  if (value.isTensor()) {
    value = aliases.toDevice(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) {
      list.push_back(aliases.toDevice(tensor));
    }
    value = std::move(list);
  }
}

} // namespace

void argumentsToCpu(Aliases& aliases, const c10::OperatorHandle& op,
                    torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  auto value = stack->end() - static_cast<ptrdiff_t>(schema.arguments().size());
  IValue* unseeded = nullptr;
  for (const c10::Argument& argument : schema.arguments()) {
    if (value->isNone() && isOptionalGenerator(argument)) {
      unseeded = &*value;
    }
    argumentToCpu(aliases, argument, *value++);
  }
  aliases.checkDevices(schema);
  if (unseeded) {
    // Random numbers come from the device's generator, even if none is passed. A later argument may name the device.
    *unseeded = aliases.toCpu(defaultGenerator(aliases.device().index()));
  }
  ++calls;
}

void followOriginal(const Tensor& alias) {
  StorageImpl* cpu = alias.storage().unsafeGetStorageImpl();
  auto* device = cpu->data_ptr().cast_context<StorageImpl>(&releaseStorage);
  if (!device) {
    return;
  }
  // Comparing the address is not enough: the remaining bytes may belong to another tensor now.
  TORCH_CHECK(device->nbytes() >= cpu->nbytes(),
              "flexmem: a tensor that the backward pass needs had ", cpu->nbytes(),
              " bytes, but its storage has been resized to ", device->nbytes());
  if (device->data() != cpu->data()) {
    cpu->set_data_ptr_noswap(borrow(c10::Storage(
        c10::intrusive_ptr<StorageImpl>::reclaim_copy(device))));
  }
}

void aliasKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Aliases aliases;
  argumentsToCpu(aliases, op, stack);
  {
    const DeviceScope current(aliases.device().index());
    const KernelScope scope(aliases.device().index());
    std::optional<WithoutPython> generatorIsLocked;
    if (aliases.draws()) {
      generatorIsLocked.emplace();
    }
    at::AutoDispatchBelowADInplaceOrView below;
    c10::impl::ExcludeDispatchKeyGuard plain(c10::autocast_dispatch_keyset);
    op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
  }
  aliases.writeBack();
  auto value = stack->end() - static_cast<ptrdiff_t>(op.schema().returns().size());
  while (value != stack->end()) {
    resultToDevice(aliases, *value++);
  }
}

AliasCounters aliasCounters() noexcept {
  return {calls, copied};
}

} // namespace flexmem_torch
