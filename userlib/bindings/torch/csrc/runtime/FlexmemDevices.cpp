// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemDevices.h"

#include "FlexmemProvider.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace flexmem_torch {

thread_local c10::DeviceIndex DeviceScope::outermost = -1;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kHostMiB = 4096;

// A device of host memory has a size. Any other device has the path of its node, or nothing if FLEX_DEVICE names it.
struct Place {
  uint64_t hostBytes = 0;
  std::string node;
};

// Returns the bytes of one word of FLEXMEM_TORCH, or 0 if it is no device.
uint64_t hostBytes(const std::string& word) {
  if (word == "host") {
    return kHostMiB * kMiB;
  }
  char* end = nullptr;
  uint64_t mib = 0;
  if (!word.compare(0, 5, "host:")) {
    mib = std::strtoull(word.c_str() + 5, &end, 10);
  }
  return mib && mib <= (1 << 23) && !*end ? mib * kMiB : 0;
}

std::vector<Place> hostPlaces(const std::string& value) {
  std::vector<Place> found;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find(',', begin), value.size());
    const uint64_t bytes = hostBytes(value.substr(begin, end - begin));
    TORCH_CHECK(bytes, "FLEXMEM_TORCH is '", value,
                "', but can only be a list of 'host' or 'host:MEBIBYTES', with commas");
    found.push_back({bytes, {}});
    begin = end + 1;
  }
  return found;
}

// Whether the library opens a node; nullptr: the one that FLEX_DEVICE names. It is closed again.
bool canOpen(const char* node) {
  flexmem_device* device = nullptr;
  if (flexmem_device_open(&device, node)) {
    return false;
  }
  flexmem_device_close(device);
  return true;
}

// Only an attempt tells what a container or another user may open.
std::vector<Place> nodePlaces() {
  std::vector<Place> found;
  flexmem_identity identity{};
  for (unsigned int i = 0; !flexmem_device_identity(i, &identity, sizeof(identity)); i++) {
    // The list is read anew each time, so a node may come twice.
    const auto same = [&](const Place& place) { return place.node == identity.path; };
    if (std::none_of(found.begin(), found.end(), same) && canOpen(identity.path)) {
      found.push_back({0, identity.path});
    }
  }
  return found;
}

std::vector<Place> findPlaces() {
  const char* torch = std::getenv("FLEXMEM_TORCH");
  if (torch && *torch) {
    return hostPlaces(torch);
  }
  const char* named = secure_getenv("FLEX_DEVICE");
  if (!named || !*named) {
    return nodePlaces();
  }
  return std::vector<Place>(canOpen(nullptr) ? 1 : 0);
}

// The devices. A driver may be loaded later, so they are looked for until there is one. They are never destroyed,
// because other threads may allocate while the process ends.
const std::vector<Place>& places() {
  static std::atomic<const std::vector<Place>*> known{nullptr};
  static const auto* const none = new std::vector<Place>;
  if (const auto* found = known.load()) {
    return *found;
  }
  // Several threads may look, but all take what the first one has found. A mutex would stay locked in a forked child.
  auto found = std::make_unique<std::vector<Place>>(findPlaces());
  if (found->empty()) {
    return *none;
  }
  found->resize(std::min<size_t>(found->size(), kMaxDevices));
  const std::vector<Place>* first = nullptr;
  if (known.compare_exchange_strong(first, found.get())) {
    first = found.release();
  }
  return *first;
}

thread_local c10::DeviceIndex current = 0;

} // namespace

c10::DeviceIndex deviceCount() {
  return static_cast<c10::DeviceIndex>(places().size());
}

c10::DeviceIndex countDevices() noexcept {
  try {
    return deviceCount();
  } catch (...) {
    return 0;
  }
}

flexmem_cache_provider openDevice(c10::DeviceIndex index, std::string& name) {
  const std::vector<Place>& all = places();
  // Without a device the library says why there is none.
  const Place place = all.empty() ? Place{} : all.at(static_cast<size_t>(index));
  if (place.hostBytes) {
    name = "host memory";
    return hostProvider(place.hostBytes, index);
  }
  flexmem_device* device = nullptr;
  const int error = flexmem_device_open(&device, place.node.empty() ? nullptr : place.node.c_str());
  if (error) {
    char text[1024];
    flexmem_cache_error_text(error, nullptr, 0, text, sizeof(text));
    TORCH_CHECK(false, "flexmem: cannot open a device: ", text,
                ". FLEXMEM_TORCH=host uses host memory instead");
  }
  name = flexmem_device_path(device);
  return deviceProvider(device, index);
}

c10::DeviceIndex currentDevice() noexcept {
  return current;
}

c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) noexcept {
  return index < 0 ? current : std::exchange(current, index);
}

c10::DeviceIndex checkedDevice(c10::DeviceIndex index) {
  if (index == -1) {
    return current;
  }
  TORCH_CHECK(index >= 0 && (index == 0 || index < deviceCount()),
              "flexmem: there is no device ", static_cast<int>(index));
  return index;
}

} // namespace flexmem_torch
