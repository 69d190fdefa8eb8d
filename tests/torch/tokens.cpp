// SPDX-License-Identifier: GPL-2.0
// Tests the example for authors of a back end, with an address space that has no memory. Prints TAP.
#include "tap.h"

#include <TokenAllocator.h>

#include <ATen/EmptyTensor.h>
#include <ATen/ATen.h>

namespace {

uint64_t bytesInUse(flexmem_cache* cache) {
  struct flexmem_cache_statistics s{};
  TORCH_CHECK(!flexmem_cache_statistics(cache, &s, sizeof(s)));
  return s.allocated_bytes[FLEXMEM_CACHE_ALL].current;
}

at::Tensor empty(TokenAllocator& allocator, int64_t bytes) {
  return at::detail::empty_generic(
      {bytes}, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      at::kByte, std::nullopt);
}

} // namespace

int main() {
  flexmem_cache_flat* flat = nullptr;
  flexmem_cache_provider provider{};
  flexmem_cache_options options{};
  flexmem_cache* cache = nullptr;
  options.provider = &provider;
  options.provider_size = sizeof(provider);
  TORCH_CHECK(!flexmem_cache_flat_create(&flat, 64 << 20, &provider,
                                         sizeof(provider)));
  TORCH_CHECK(!flexmem_cache_create(&cache, &options, sizeof(options)));
  TokenAllocator allocator(cache, 0);

  at::Tensor first = empty(allocator, 1000);
  at::Tensor second = empty(allocator, 1000);
  expect(first.device() == c10::Device(c10::DeviceType::PrivateUse1, 0),
         "a tensor is on the device");
  const auto from = allocator.address(first.data_ptr());
  const auto inside = allocator.address(static_cast<char*>(first.data_ptr()) + 999);
  const auto other = allocator.address(second.data_ptr());
  expect(inside.region_id == from.region_id && inside.offset == from.offset + 999,
         "each byte of it has an address");
  expect(other.offset >= from.offset + 1000 || from.offset >= other.offset + 1000,
         "two tensors do not overlap");

  {
    // Both tensors share one storage, as a tensor and its view do.
    at::Storage storage = first.storage();
    first.reset();
    expect(bytesInUse(cache) == 2048, "it lives as long as its storage");
  }
  expect(bytesInUse(cache) == 1024, "the last reference frees it");
  expect(!empty(allocator, 0).data_ptr() && bytesInUse(cache) == 1024,
         "no bytes are no allocation");

  bool refused = false;
  try {
    empty(allocator, 100 << 20);
  } catch (const c10::OutOfMemoryError& error) {
    refused = std::string(error.what()).find("100.0 MiB") != std::string::npos;
  }
  expect(refused, "out of memory says how much was asked for");
  second.reset();
  expect(bytesInUse(cache) == 0, "every byte is back");
  flexmem_cache_destroy(cache);
  flexmem_cache_flat_destroy(flat);
  return tapEnd();
}
