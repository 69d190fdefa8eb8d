// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// An allocator for a back end with kernels on the device. A tensor's data pointer
// is a token. The back end turns the token into an address when it launches work,
// and the CPU never dereferences the token.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <flexmem_cache.h>

// The RFC of torch-spyre calls this SpyreAllocator.
class TokenAllocator final : public c10::Allocator {
 public:
  TokenAllocator(flexmem_cache* cache, c10::DeviceIndex device)
      : cache_(cache), device_(c10::DeviceType::PrivateUse1, device) {}

  c10::DataPtr allocate(size_t bytes) override {
    flexmem_cache_request request{};
    flexmem_cache_allocation made{};
    request.bytes = bytes;
    const int error = flexmem_cache_alloc_request(
        cache_, &request, sizeof(request), &made, sizeof(made));
    if (error) {
      char text[1024];
      flexmem_cache_error_text(error, &made.failure, sizeof(made.failure), text,
                               sizeof(text));
      TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    }
    if (!made.token) {
      return {nullptr, device_};
    }
    return {made.token, new Owner{cache_, made.token}, &freeToken, device_};
  }

  // Always throws: a token is no address. The back end has its own copy_().
  void copy_data(void* /*dest*/, const void* /*src*/, size_t /*count*/) const override {
    TORCH_CHECK(false, "a token cannot be followed");
  }

  // Returns the device address of any byte of a tensor, for launches.
  flexmem_virtual_address address(const void* token) const {
    flexmem_cache_allocation found{};
    uint64_t offset = 0;
    TORCH_CHECK(!flexmem_cache_lookup(cache_, token, &found, sizeof(found), &offset),
                "not a tensor of this device");
    return {found.address.region_id, found.address.offset + offset};
  }

 private:
  // The context of the deleter, which the RFC calls SharedOwnerCtx. Any thread
  // may call the deleter.
  struct Owner {
    flexmem_cache* cache;
    void* token;
  };
  // The RFC calls this ReportAndDelete.
  static void freeToken(void* context) {
    auto* owner = static_cast<Owner*>(context);
    flexmem_cache_free(owner->cache, owner->token);
    delete owner;
  }

  flexmem_cache* cache_;
  c10::Device device_;
};
