// SPDX-License-Identifier: GPL-2.0
// A small model trains on the CPU and in flexmem's memory: the losses and the weights must be equal bit for bit, no
// result may be copied, and all memory must be freed at the end. Prints TAP.
// usage: train [STEPS]
#include "model.h"
#include "tap.h"

#include <cstdlib>
#include <functional>
#include <vector>

namespace {

struct Outcome {
  std::vector<Tensor> losses;
  std::vector<Tensor> weights;
};

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(Mlp&)>;

Outcome train(const torch::Device& device, int steps, const MakeOptimizer& make) {
  torch::manual_seed(1);
  Mlp model;
  // The optimizer is made before the model moves to the device. The optimizer must use the moved parameters.
  const auto optimizer = make(model);
  const Tensor x = torch::randn({32, 64}).to(device);
  const Tensor y = torch::randint(10, {32}).to(device);
  model.to(device);
  Outcome outcome;
  for (int i = 0; i < steps; i++) {
    optimizer->zero_grad();
    const Tensor loss = torch::nn::functional::cross_entropy(model.forward(x), y);
    loss.backward();
    optimizer->step();
    outcome.losses.push_back(loss.detach().cpu());
  }
  for (const Tensor& weight : model.parameters()) {
    TORCH_CHECK(weight.device().type() == device.type());
    outcome.weights.push_back(weight.detach().cpu());
  }
  return outcome;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); i++) {
    same = sameBits(a[i], b[i]);
  }
  return same;
}

void compare(const std::string& name, int steps, const MakeOptimizer& make) {
  const int64_t before = bytesInUse();
  const Outcome cpu = train(torch::kCPU, steps, make);
  const Outcome ours = train(flexmem, steps, make);
  expect(equal(cpu.losses, ours.losses), name + ": losses equal the CPU's");
  expect(equal(cpu.weights, ours.weights), name + ": weights equal the CPU's");
  expect(ours.losses.front().item<float>() > ours.losses.back().item<float>(),
         name + ": it learns");
  expect(bytesInUse() == before, name + ": every byte is back");
}

} // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
  compare("SGD", steps, [](Mlp& model) {
    return std::make_unique<torch::optim::SGD>(
        model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  });
  compare("Adam", steps, [](Mlp& model) {
    return std::make_unique<torch::optim::Adam>(
        model.parameters(), torch::optim::AdamOptions(0.01));
  });
  const auto [kernels, copied] =
      ask<std::tuple<int64_t, int64_t>>("flexmem::kernel_counters");
  expect(kernels > 100 && copied == 0, "no result was copied");
  ask<void>("flexmem::empty_cache");
  const auto [free, total] = memGetInfo();
  expect(free == total && total > 0, "the device has all its memory back");
  return tapEnd();
}
