// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Each device has one stream. Kernels run on the thread that calls them, so all work on the stream is always done, and
// every event has happened.
#include "FlexmemDevices.h"
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

DeviceIndex checkedIndex(Device device) {
  TORCH_CHECK(device.is_privateuseone(), "flexmem: ", device, " is another kind of device");
  return checkedDevice(device.index());
}

Stream theStream(Device device) {
  return Stream(Stream::DEFAULT, deviceAt(device.index() < 0 ? currentDevice() : device.index()));
}

struct FlexmemGuardImpl final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override {
    return DeviceType::PrivateUse1;
  }
  Device exchangeDevice(Device device) const override {
    return deviceAt(flexmem_torch::exchangeDevice(checkedIndex(device)));
  }
  Device getDevice() const override {
    return deviceAt(currentDevice());
  }
  void setDevice(Device device) const override {
    flexmem_torch::exchangeDevice(checkedIndex(device));
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    flexmem_torch::exchangeDevice(device.index());
  }
  DeviceIndex deviceCount() const noexcept override {
    return countDevices();
  }

  Stream getStream(Device device) const noexcept override {
    return theStream(device);
  }
  Stream getDefaultStream(Device device) const override {
    return theStream(deviceAt(checkedIndex(device)));
  }
  Stream getStreamFromGlobalPool(Device device, bool /*high*/) const override {
    return theStream(deviceAt(checkedIndex(device)));
  }
  Stream getNewStream(Device device, int /*priority*/) const override {
    return theStream(deviceAt(checkedIndex(device)));
  }
  Stream exchangeStream(Stream stream) const noexcept override {
    return theStream(stream.device());
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
