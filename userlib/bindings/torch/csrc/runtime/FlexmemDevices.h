// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Which devices the process has, and which of them a thread uses.
#pragma once

#include <flexmem_cache.h>

#include <c10/core/Device.h>

#include <string>
#include <utility>

namespace flexmem_torch {

// Further devices are left out.
constexpr int kMaxDevices = 64;

inline c10::Device deviceAt(c10::DeviceIndex index) {
  return {c10::DeviceType::PrivateUse1, index};
}

// The number of devices. With FLEX_DEVICE there is the one that it names. Without it
// these are the functions that the process sees and can open, in the
// order of flexmem_device_count(). FLEXMEM_TORCH=host[:MiB][,host[:MiB]]... makes
// devices of host memory (4096 MiB without a number), for tests and for machines
// without the driver. Once there is a device, the devices stay the same. Throws
// c10::Error if FLEXMEM_TORCH has another form. countDevices() returns 0 instead.
c10::DeviceIndex deviceCount();
c10::DeviceIndex countDevices() noexcept;

// Opens a device, and returns the provider of its segments. On failure throws
// c10::Error. @name: where to put the path of the device's node, or "host memory".
flexmem_cache_provider openDevice(c10::DeviceIndex index, std::string& name);

// The device of this thread, 0 in a new thread. exchangeDevice() returns the one before;
// -1 changes nothing.
c10::DeviceIndex currentDevice() noexcept;
c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) noexcept;

// Returns @index, or the current device if it is -1. Throws c10::Error if there is no
// such device.
c10::DeviceIndex checkedDevice(c10::DeviceIndex index);

// While a DeviceScope lives, its thread uses a device. Code of the user that runs
// meanwhile, such as a finalizer, needs the device that the thread had before:
// that of ownDevice().
class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex index)
      : before_(exchangeDevice(index)), own_(outermost < 0 ? std::exchange(outermost, before_) : outermost) {}
  ~DeviceScope() {
    exchangeDevice(before_);
    outermost = own_;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  static c10::DeviceIndex ownDevice() noexcept {
    return outermost < 0 ? currentDevice() : outermost;
  }

 private:
  // The device before the outermost DeviceScope of this thread; -1: there is none.
  static thread_local c10::DeviceIndex outermost;
  c10::DeviceIndex before_;
  c10::DeviceIndex own_;
};

} // namespace flexmem_torch
