// SPDX-License-Identifier: GPL-2.0
// A small model, and calls of the library, for the programs.
#pragma once

#include <torch/torch.h>

#include <string>

using torch::Tensor;

inline const torch::Device flexmem(torch::kPrivateUse1, 0);

// Calls one of the library's operators as users do.
template <class Result>
Result ask(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Result()>()
      .call();
}

// Returns a figure of torch.flexmem.memory_stats().
inline int64_t figure(const std::string& key) {
  using Figures = c10::Dict<std::string, int64_t>;
  return ask<Figures>("flexmem::memory_stats").at(key);
}

inline int64_t bytesInUse() {
  return figure("allocated_bytes.all.current");
}

// Returns the free and total bytes of the device.
inline std::tuple<int64_t, int64_t> memGetInfo() {
  return ask<std::tuple<int64_t, int64_t>>("flexmem::mem_get_info");
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
