// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The hooks through which PyTorch asks a backend for its devices, generators and allocators.
#include "FlexmemDeviceAllocator.h"
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
  void init() const override {
    cache();
  }
  // PyTorch 2.6 calls neither isBuilt() nor isAvailable().
  bool isBuilt() const {
    return true;
  }
  bool isAvailable() const {
    return flexmem_torch::isAvailable();
  }
  bool hasPrimaryContext(DeviceIndex /*index*/) const override {
    return isInitialized();
  }
  DeviceIndex deviceCount() const override {
    return isAvailable() ? 1 : 0;
  }
  void setCurrentDevice(DeviceIndex index) const override {
    TORCH_CHECK(index == 0, "flexmem: there is no device ", index);
  }
  DeviceIndex getCurrentDevice() const override {
    return 0;
  }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    setCurrentDevice(index);
    return 0;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    if (index >= 0) {
      setCurrentDevice(index);
    }
    return 0;
  }

  const at::Generator& getDefaultGenerator(DeviceIndex /*index*/) const override {
    return defaultGenerator();
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return newGenerator(index);
  }

  // Kernels can access all memory, so there is no pinned memory except the CPU's own.
  bool isPinnedPtr(const void* /*data*/) const override {
    return false;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return c10::GetCPUAllocator();
  }
  c10::Device getDeviceFromPtr(void* data) const override {
    TORCH_CHECK(isMapped(data), "flexmem: ", data, " is not in device memory");
    return {c10::DeviceType::PrivateUse1, 0};
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage,
                              size_t bytes) const override {
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
