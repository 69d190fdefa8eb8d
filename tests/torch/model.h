// SPDX-License-Identifier: GPL-2.0
// Shared by the programs: a small model, and calls of the library.
#pragma once

#include <torch/torch.h>

#include <string>

using torch::Tensor;

inline const torch::Device flexmem(torch::kPrivateUse1, 0);

// An operator of the library's own, as its users call it.
template <class Result>
Result ask(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Result()>()
      .call();
}

// One of the figures of torch.flexmem.memory_stats().
inline int64_t figure(const std::string& key) {
  using Figures = c10::Dict<std::string, int64_t>;
  return ask<Figures>("flexmem::memory_stats").at(key);
}

inline int64_t bytesInUse() {
  return figure("allocated_bytes.all.current");
}

// The device's free and total bytes.
inline std::tuple<int64_t, int64_t> memGetInfo() {
  return ask<std::tuple<int64_t, int64_t>>("flexmem::mem_get_info");
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
