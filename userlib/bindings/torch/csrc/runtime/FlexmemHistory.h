// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Stack traces of allocations, as contexts of the cache's requests.
#pragma once

#include <flexmem_cache.h>

#include <memory>

namespace flexmem_torch {

// Switches the recording of each request's Python stack, and with @cpp also of
// its C++ stack. Recording costs microseconds for each request.
void recordStacks(bool enabled, bool cpp);

// The current stack, for a request, if stacks are recorded. The stack is freed
// when this object is destroyed and the cache no longer holds the stack.
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

// Prints only the frame that made the request, for texts of errors. Python's
// frames come first. Has the type of flexmem_cache_failure.print.
size_t printRequester(void* user, void* context, char* text, size_t length);

// A kernel that draws random numbers holds its generator's mutex, and a thread
// of Python's may wait for that mutex with the GIL. So the kernel must not wait
// for the GIL. While a WithoutPython lives, the requests of its thread do not
// call Python. Each request gets the stack at which the object was made.
class WithoutPython {
 public:
  WithoutPython() : before_(current) {
    current = this;
  }
  ~WithoutPython() {
    current = before_;
  }
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

  const Stack stack;
  // The innermost object of this thread, or nullptr.
  static thread_local const WithoutPython* current;

 private:
  const WithoutPython* before_;
};

// How the cache holds, releases and prints a stack trace.
extern const flexmem_cache_contexts stackContexts;

} // namespace flexmem_torch
