// SPDX-License-Identifier: GPL-2.0
// Measures operations on tiny tensors and training steps, on the device and on the CPU.
// usage: bench times    prints the ns of one run of each operation: the least of several rounds
//        bench count    runs each operation a few times in counted(), for callgrind; prints how often
// Each line of the output: OPERATION, cpu or flexmem, and the number.
#include "model.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace {

using torch::Device;
using Run = std::function<void()>;

struct Operation {
  const char* name;
  // Number of runs in a round.
  int count;
  // Prepares the operation on a device. The result runs it once.
  std::function<Run(const Device&)> prepare;
};

struct ResidualBlock : torch::nn::Module {
  explicit ResidualBlock(int64_t width) {
    const auto options =
        torch::nn::Conv2dOptions(width, width, 3).padding(1).bias(false);
    layers = register_module(
        "layers",
        torch::nn::Sequential(
            torch::nn::Conv2d(options), torch::nn::BatchNorm2d(width),
            torch::nn::ReLU(), torch::nn::Conv2d(options),
            torch::nn::BatchNorm2d(width)));
  }
  Tensor forward(const Tensor& x) {
    return torch::relu(x + layers->forward(x));
  }
  torch::nn::Sequential layers;
};

struct ResNet : torch::nn::Module {
  ResNet() {
    layers = register_module(
        "layers",
        torch::nn::Sequential(
            torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).padding(1)),
            ResidualBlock(16), torch::nn::MaxPool2d(2), ResidualBlock(16),
            torch::nn::AdaptiveAvgPool2d(1), torch::nn::Flatten(),
            torch::nn::Linear(16, 10)));
  }
  Tensor forward(const Tensor& x) {
    return layers->forward(x);
  }
  torch::nn::Sequential layers;
};

// One training step with SGD.
template <class Model>
Run step(const Device& device, at::IntArrayRef size) {
  torch::manual_seed(1);
  auto model = std::make_shared<Model>();
  model->to(device);
  auto optimizer = std::make_shared<torch::optim::SGD>(
      model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const Tensor x = torch::randn(size).to(device);
  const Tensor y = torch::randint(10, {size[0]}).to(device);
  return [=] {
    optimizer->zero_grad();
    torch::nn::functional::cross_entropy(model->forward(x), y).backward();
    optimizer->step();
  };
}

Run add(const Device& device, int64_t size) {
  const Tensor a = torch::ones({size}, device);
  return [a] { a + a; };
}

const std::vector<Operation> operations = {
    {"empty", 1000,
     [](const Device& device) -> Run {
       return [device] { torch::empty({4}, device); };
     }},
    {"a + a", 1000, [](const Device& device) { return add(device, 4); }},
    {"a.add_(a)", 1000,
     [](const Device& device) -> Run {
       const Tensor a = torch::zeros({4}, device);
       return [a] { a.add_(a); };
     }},
    {"a.item()", 1000,
     [](const Device& device) -> Run {
       const Tensor a = torch::ones({}, device);
       return [a] { a.item<float>(); };
     }},
    {"a + a, 65536 floats", 100,
     [](const Device& device) { return add(device, 65536); }},
    {"step of an MLP", 10,
     [](const Device& device) { return step<Mlp>(device, {32, 64}); }},
    {"step of a ResNet", 1,
     [](const Device& device) { return step<ResNet>(device, {8, 3, 32, 32}); }},
};

void repeat(const Run& run, int count) {
  for (int i = 0; i < count; i++) {
    run();
  }
}

double nanoseconds(const Run& run, int count) {
  const auto begin = std::chrono::steady_clock::now();
  repeat(run, count);
  const std::chrono::duration<double, std::nano> taken =
      std::chrono::steady_clock::now() - begin;
  return taken.count() / count;
}

// The devices take turns, so that other load of the machine hits both.
void time(const Operation& operation) {
  const std::vector<Device> devices = {torch::kCPU, flexmem};
  double least[2] = {std::numeric_limits<double>::max(),
                     std::numeric_limits<double>::max()};
  const Run runs[2] = {operation.prepare(devices[0]), operation.prepare(devices[1])};
  for (int round = 0; round < 40; round++) {
    for (int i = 0; i < 2; i++) {
      least[i] = std::min(least[i], nanoseconds(runs[i], operation.count));
    }
  }
  std::printf("%s\tcpu\t%.0f\n%s\tflexmem\t%.0f\n", operation.name, least[0],
              operation.name, least[1]);
}

} // namespace

// callgrind counts only what the C function with this name does.
extern "C" __attribute__((noinline)) void counted(const Run* run, int count) {
  repeat(*run, count);
}

int main(int argc, char** argv) {
  TORCH_CHECK(argc == 2, "usage: bench times|count");
  torch::set_num_threads(1);
  // Keeps a tensor alive while operations are measured, as a program that trains does.
  const Tensor alive = torch::ones({1}, flexmem);
  for (const Operation& operation : operations) {
    if (!std::strcmp(argv[1], "times")) {
      time(operation);
      continue;
    }
    for (const Device& device : {Device(torch::kCPU), flexmem}) {
      const Run run = operation.prepare(device);
      const int count = std::max(1, operation.count / 100);
      repeat(run, 3);
      counted(&run, count);
      std::printf("%s\t%s\t%d\n", operation.name,
                  device.is_cpu() ? "cpu" : "flexmem", count);
    }
  }
  return 0;
}
