// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemGenerator.h"

#include "FlexmemDevices.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <torch/version.h>

#include <array>
#include <mutex>

namespace flexmem_torch {
namespace {

class FlexmemGeneratorImpl final : public c10::GeneratorImpl {
 public:
  FlexmemGeneratorImpl(c10::DeviceIndex index, at::Generator inner)
      : GeneratorImpl(deviceAt(index),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        inner_(std::move(inner)) {}

  const at::Generator& inner() const {
    return inner_;
  }
  // Kernels draw from the inner generator and hold its mutex.
  void set_current_seed(uint64_t seed) override {
    const auto held = lock();
    inner_.set_current_seed(seed);
  }
  void set_offset(uint64_t offset) override {
    const auto held = lock();
    inner_.set_offset(offset);
  }
  uint64_t get_offset() const override {
    const auto held = lock();
    return inner_.get_offset();
  }
  uint64_t current_seed() const override {
    const auto held = lock();
    return inner_.current_seed();
  }
  uint64_t seed() override {
    const auto held = lock();
    return inner_.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    const auto held = lock();
    inner_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const auto held = lock();
    return inner_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  std::unique_lock<std::mutex> lock() const {
    return std::unique_lock(inner_.unsafeGetGeneratorImpl()->mutex_);
  }
  FlexmemGeneratorImpl* clone_impl() const override {
    const auto held = lock();
    return new FlexmemGeneratorImpl(device().index(), inner_.clone());
  }

  at::Generator inner_;
};

} // namespace

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 9
// From version 2.9 on PyTorch asks the hooks for a generator, and warns if this function is registered.
static at::Generator makeGenerator(c10::DeviceIndex index) {
  return newGenerator(checkedDevice(index));
}
REGISTER_GENERATOR_PRIVATEUSE1(makeGenerator)
#endif

at::Generator newGenerator(c10::DeviceIndex index) {
  return at::make_generator<FlexmemGeneratorImpl>(
      index, at::detail::createCPUGenerator());
}

const at::Generator& defaultGenerator(c10::DeviceIndex index) {
  // Never destroyed, because other threads may draw while the process ends.
  static const auto& generators = *[] {
    auto* made = new std::array<at::Generator, kMaxDevices>;
    for (c10::DeviceIndex i = 0; i < kMaxDevices; i++) {
      (*made)[static_cast<size_t>(i)] = newGenerator(i);
    }
    return made;
  }();
  return generators.at(static_cast<size_t>(index));
}

at::Generator cpuGenerator(const at::Generator& generator) {
  if (!generator.defined() || !generator.device().is_privateuseone()) {
    return generator;
  }
  return static_cast<FlexmemGeneratorImpl*>(generator.unsafeGetGeneratorImpl())
      ->inner();
}

} // namespace flexmem_torch
