// SPDX-License-Identifier: GPL-2.0
// A small model trains on the CPU and on each device of flexmem: the losses and the weights must be equal bit for bit,
// no result may be copied, and all memory must be freed at the end. Tensors are copied from each device to the next.
// Prints TAP.
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

void compare(const std::string& name, int steps, const torch::Device& device, const MakeOptimizer& make) {
  const std::string prefix = name + " on " + device.str() + ": ";
  const int64_t before = bytesInUse(device.index());
  const Outcome cpu = train(torch::kCPU, steps, make);
  const Outcome ours = train(device, steps, make);
  expect(equal(cpu.losses, ours.losses), prefix + "losses equal the CPU's");
  expect(equal(cpu.weights, ours.weights), prefix + "weights equal the CPU's");
  expect(ours.losses.front().item<float>() > ours.losses.back().item<float>(),
         prefix + "it learns");
  expect(bytesInUse(device.index()) == before, prefix + "every byte is back");
}

// Sends a tensor over all devices and back.
void copy(c10::DeviceIndex count) {
  const Tensor first = torch::randn({300, 500});
  Tensor last = first;
  for (c10::DeviceIndex i = 0; i < count; i++) {
    last = last.to(torch::Device(torch::kPrivateUse1, i));
  }
  expect(last.device().index() == count - 1 && sameBits(last.cpu(), first),
         "copies over " + std::to_string(count) + " devices are equal");
}

} // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
  const auto count = static_cast<c10::DeviceIndex>(ask<int64_t>("flexmem::device_count"));
  for (c10::DeviceIndex i = 0; i < count; i++) {
    const torch::Device device(torch::kPrivateUse1, i);
    compare("SGD", steps, device, [](Mlp& model) {
      return std::make_unique<torch::optim::SGD>(
          model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    });
    compare("Adam", steps, device, [](Mlp& model) {
      return std::make_unique<torch::optim::Adam>(
          model.parameters(), torch::optim::AdamOptions(0.01));
    });
  }
  copy(count);
  const auto [kernels, copied] =
      ask<std::tuple<int64_t, int64_t>>("flexmem::kernel_counters");
  expect(kernels > 100 && copied == 0, "no result was copied");
  ask<void>("flexmem::empty_cache");
  for (int64_t i = 0; i < count; i++) {
    const auto [free, total] = memGetInfo(i);
    expect(free == total && total > 0, "device " + std::to_string(i) + " has all its memory back");
  }
  return tapEnd();
}
