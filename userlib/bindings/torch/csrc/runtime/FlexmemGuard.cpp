// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// One device with one stream. Kernels run on the thread that calls them, so all work on the stream is always done, and
// every event has happened.
#include "FlexmemDeviceAllocator.h"
#include "FlexmemMemory.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>

namespace flexmem_torch {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

// An event is only the time at which it was recorded.
struct Event {
  std::chrono::steady_clock::time_point time;
  bool timed;
};

void checkIndex(Device device) {
  TORCH_CHECK(device.is_privateuseone() && device.index() <= 0,
              "flexmem: there is no device ", device, ", only ", kDevice);
}

struct FlexmemGuardImpl final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override {
    return DeviceType::PrivateUse1;
  }
  Device exchangeDevice(Device device) const override {
    checkIndex(device);
    return kDevice;
  }
  Device getDevice() const override {
    return kDevice;
  }
  void setDevice(Device device) const override {
    checkIndex(device);
  }
  void uncheckedSetDevice(Device /*device*/) const noexcept override {}
  DeviceIndex deviceCount() const noexcept override {
    return isAvailable() ? 1 : 0;
  }

  Stream getStream(Device /*device*/) const noexcept override {
    return Stream(Stream::DEFAULT, kDevice);
  }
  Stream getDefaultStream(Device /*device*/) const override {
    return Stream(Stream::DEFAULT, kDevice);
  }
  Stream getStreamFromGlobalPool(Device /*device*/, bool /*high*/) const override {
    return Stream(Stream::DEFAULT, kDevice);
  }
  Stream getNewStream(Device /*device*/, int /*priority*/) const override {
    return Stream(Stream::DEFAULT, kDevice);
  }
  Stream exchangeStream(Stream /*stream*/) const noexcept override {
    return Stream(Stream::DEFAULT, kDevice);
  }
  bool queryStream(const Stream& /*stream*/) const override {
    return true;
  }
  void synchronizeStream(const Stream& /*stream*/) const override {}
  void synchronizeDevice(DeviceIndex /*index*/) const override {}

  void record(void** event, const Stream& /*stream*/, DeviceIndex /*index*/,
              c10::EventFlag flag) const override {
    if (!*event) {
      *event = new Event;
    }
    *static_cast<Event*>(*event) = {std::chrono::steady_clock::now(),
                                    flag == c10::EventFlag::BACKEND_DEFAULT};
  }
  void destroyEvent(void* event, DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void* /*event*/, const Stream& /*stream*/) const override {}
  bool queryEvent(void* /*event*/) const override {
    return true;
  }
  void synchronizeEvent(void* /*event*/) const override {}
  double elapsedTime(void* first, void* second,
                     DeviceIndex /*index*/) const override {
    const auto* from = static_cast<Event*>(first);
    const auto* to = static_cast<Event*>(second);
    TORCH_CHECK(from->timed && to->timed,
                "flexmem: both events must be made with enable_timing=True");
    const std::chrono::duration<double, std::milli> elapsed = to->time - from->time;
    return elapsed.count();
  }
};

} // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, FlexmemGuardImpl)

} // namespace flexmem_torch
