// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The hooks through which PyTorch asks a backend for its devices, generators and allocators.
#include "FlexmemDevices.h"
#include "FlexmemGenerator.h"
#include "FlexmemMemory.h"
#include "FlexmemProvider.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <c10/core/CPUAllocator.h>

namespace flexmem_torch {
namespace {

using c10::DeviceIndex;

struct FlexmemHooks final : at::PrivateUse1HooksInterface {
  // PyTorch calls it for a tensor of any device. The first allocation on a device opens it.
  void init() const override {}
  // PyTorch 2.6 calls neither isBuilt() nor isAvailable().
  bool isBuilt() const {
    return true;
  }
  bool isAvailable() const {
    return flexmem_torch::isAvailable();
  }
  bool hasPrimaryContext(DeviceIndex index) const override {
    return index >= 0 && index < deviceCount();
  }
  DeviceIndex deviceCount() const override {
    return countDevices();
  }
  void setCurrentDevice(DeviceIndex index) const override {
    exchangeDevice(index);
  }
  DeviceIndex getCurrentDevice() const override {
    return currentDevice();
  }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    return flexmem_torch::exchangeDevice(checkedDevice(index));
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    return defaultGenerator(checkedDevice(index));
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return newGenerator(checkedDevice(index));
  }

  // Kernels can access all memory, so there is no pinned memory except the CPU's own.
  bool isPinnedPtr(const void* /*data*/) const override {
    return false;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return c10::GetCPUAllocator();
  }
  c10::Device getDeviceFromPtr(void* data) const override {
    const DeviceIndex index = deviceOf(data);
    TORCH_CHECK(index >= 0, "flexmem: ", data, " is not in device memory");
    return deviceAt(index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage,
                              size_t bytes) const override {
    const DeviceScope scope(checkedDevice(storage.device().index()));
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), bytes);
  }
};

struct HooksRegistration {
  HooksRegistration() {
    c10::register_privateuse1_backend("flexmem");
    // PyTorch keeps the pointer until the process ends.
    at::RegisterPrivateUse1HooksInterface(new FlexmemHooks);
  }
} hooksRegistration;

} // namespace
} // namespace flexmem_torch
