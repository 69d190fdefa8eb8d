// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Stack traces of allocations, as contexts of the cache's requests.
#pragma once

#include <flexmem_cache.h>

#include <memory>

namespace flexmem_torch {

// From now on each request carries the Python stack, and, if wished, the C++
// stack that it comes from. Costs microseconds for each.
void recordStacks(bool enabled, bool cpp);

// The stack of this moment for a request, if they are recorded: valid until it
// is destroyed, and as long as the cache holds it.
class Stack {
 public:
  Stack();
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  void* context() const {
    return context_;
  }

 private:
  void* context_;
};

// How the cache holds, releases and prints a stack trace.
extern const flexmem_cache_contexts stackContexts;

} // namespace flexmem_torch
