// SPDX-License-Identifier: GPL-2.0
// A small model, and calls of the library, for the programs.
#pragma once

#include <torch/torch.h>

#include <string>

using torch::Tensor;

inline const torch::Device flexmem(torch::kPrivateUse1, 0);

// Calls one of the library's operators as users do.
template <class Result, class... Arguments>
Result ask(const char* name, Arguments... arguments) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Result(Arguments...)>()
      .call(arguments...);
}

// Stands for the current device in these calls.
constexpr int64_t kCurrent = -1;

// Returns a figure of torch.flexmem.memory_stats().
inline int64_t figure(const std::string& key, int64_t device = kCurrent) {
  using Figures = c10::Dict<std::string, int64_t>;
  return ask<Figures>("flexmem::memory_stats", device).at(key);
}

inline int64_t bytesInUse(int64_t device = kCurrent) {
  return figure("allocated_bytes.all.current", device);
}

// Returns the free and total bytes of a device.
inline std::tuple<int64_t, int64_t> memGetInfo(int64_t device = kCurrent) {
  return ask<std::tuple<int64_t, int64_t>>("flexmem::mem_get_info", device);
}

// Whether the numbers of two tensors have the same bits: -0.0 is not 0.0.
inline bool sameBits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() &&
      torch::equal(a.contiguous().view(torch::kInt), b.contiguous().view(torch::kInt));
}

struct Mlp : torch::nn::Module {
  Mlp() {
    first = register_module("first", torch::nn::Linear(64, 128));
    second = register_module("second", torch::nn::Linear(128, 10));
  }
  Tensor forward(const Tensor& x) {
    return second(torch::relu(first(x)));
  }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};
