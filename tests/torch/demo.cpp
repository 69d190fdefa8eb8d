// SPDX-License-Identifier: GPL-2.0
// A small model trains in flexmem's memory and, for comparison, in the CPU's. `make demo` shows this if PyTorch is
// there. In the middle of a step it prints "@regions" and waits for a line, so that tests/vm/demo-torch.sh can show the
// map.
#include "model.h"

#include <cstdio>
#include <iostream>
#include <memory>

namespace {

constexpr int kSteps = 6;
constexpr double kKiB = 1 << 10;

// A model on a device, with data and optimizer.
struct Training {
  explicit Training(const torch::Device& device) {
    x = torch::randn({32, 64}).to(device);
    y = torch::randint(10, {32}).to(device);
    model.to(device);
    optimizer = std::make_unique<torch::optim::Adam>(
        model.parameters(), torch::optim::AdamOptions(0.01));
  }
  Tensor loss() {
    return torch::nn::functional::cross_entropy(model.forward(x), y);
  }
  void step(const Tensor& loss) {
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
  }
  Mlp model;
  Tensor x;
  Tensor y;
  std::unique_ptr<torch::optim::Adam> optimizer;
};

void printMemory() {
  std::printf("\nMemory               now     at most\n");
  for (const auto& [name, key] :
       {std::pair{"in tensors", "allocated_bytes.all."},
        std::pair{"reserved", "reserved_bytes.all."}}) {
    std::printf("%-12s %7.0f KiB %7.0f KiB\n", name,
                figure(std::string(key) + "current") / kKiB,
                figure(std::string(key) + "peak") / kKiB);
  }
  std::printf("%lld tensors were made, with %lld allocations of the device.\n",
              static_cast<long long>(figure("allocation.all.allocated")),
              static_cast<long long>(figure("num_device_alloc")));
}

bool train() {
  torch::manual_seed(1);
  Training cpu(torch::kCPU);
  torch::manual_seed(1);
  Training ours(flexmem);
  bool same = true;
  std::printf("step    loss on the CPU   in flexmem's memory\n");
  for (int i = 0; i < kSteps; i++) {
    const Tensor a = cpu.loss();
    const Tensor b = ours.loss();
    const bool equal = sameBits(a.detach(), b.detach().cpu());
    same = same && equal;
    std::printf("%4d %18.9f %21.9f   %s\n", i, a.item<float>(), b.item<float>(),
                equal ? "equal" : "not equal");
    if (i == kSteps - 1) {
      std::printf("\nThe regions during this step:\n@regions\n");
      std::fflush(stdout);
      std::string line;
      std::getline(std::cin, line);
    }
    cpu.step(a);
    ours.step(b);
  }
  const auto weights = ours.model.parameters();
  for (size_t i = 0; i < weights.size(); i++) {
    same = same && sameBits(cpu.model.parameters()[i].detach(), weights[i].detach().cpu());
  }
  std::printf("\nThe weights are %s after %d steps.\n",
              same ? "equal, bit for bit," : "not equal", kSteps);
  printMemory();
  return same;
}

// A tensor that does not fit causes an error, after which the program can continue.
bool runOut() {
  const auto [free, total] = memGetInfo();
  std::printf("\nA tensor of twice the device's memory:\n");
  try {
    torch::empty({2 * total}, torch::dtype(torch::kByte).device(flexmem));
  } catch (const c10::OutOfMemoryError& error) {
    std::printf("OutOfMemoryError: %s\n", error.what_without_backtrace());
    return torch::ones({3}, flexmem).sum().item<float>() == 3.0;
  }
  return false;
}

} // namespace

int main() {
  const bool same = train();
  const bool refused = runOut();
  ask<void>("flexmem::empty_cache");
  const auto [free, total] = memGetInfo();
  std::printf("\nAt the end %lld bytes are in use, and %lld of the device's.\n",
              static_cast<long long>(bytesInUse()),
              static_cast<long long>(total - free));
  return !(same && refused && !bytesInUse() && free == total);
}
