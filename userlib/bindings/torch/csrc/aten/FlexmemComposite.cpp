// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The cells of LSTM and GRU, and dropout, call fused kernels on every device but the CPU. Here they are plain
// arithmetic, in the order of the CPU's own functions. Autograd follows the arithmetic, so no kernel for the backward
// pass is needed.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace flexmem_torch {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor addBias(const Tensor& gates, const OptionalTensor& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

std::tuple<Tensor, Tensor, Tensor> lstmCell(
    const Tensor& inputGates, const Tensor& hiddenGates, const Tensor& cell,
    const OptionalTensor& inputBias, const OptionalTensor& hiddenBias) {
  const auto gates = (addBias(hiddenGates, hiddenBias) +
                      addBias(inputGates, inputBias)).unsafe_chunk(4, 1);
  const Tensor in = gates[0].sigmoid();
  const Tensor forget = gates[1].sigmoid();
  const Tensor candidate = gates[2].tanh();
  const Tensor out = gates[3].sigmoid();
  const Tensor newCell = (forget * cell) + (in * candidate);
  // The third result is for a backward kernel. This device has none.
  return {out * newCell.tanh(), newCell, at::empty({0}, cell.options())};
}

std::tuple<Tensor, Tensor> gruCell(
    const Tensor& inputGates, const Tensor& hiddenGates, const Tensor& hidden,
    const OptionalTensor& inputBias, const OptionalTensor& hiddenBias) {
  const auto in = addBias(inputGates, inputBias).unsafe_chunk(3, 1);
  // The operations work in place, like those of the CPU, because a loop over parts of a row rounds differently from a
  // loop over a whole tensor. hiddenGates itself is not changed.
  const Tensor sum = addBias(hiddenGates, hiddenBias);
  const auto old = (sum.is_same(hiddenGates) ? sum.clone() : sum).unsafe_chunk(3, 1);
  const Tensor reset = old[0].add_(in[0]).sigmoid_();
  const Tensor update = old[1].add_(in[1]).sigmoid_();
  const Tensor candidate = in[2].add(old[2].mul_(reset)).tanh_();
  return {(hidden - candidate).mul_(update).add_(candidate),
          at::empty({0}, hidden.options())};
}

Tensor dropout(const Tensor& input, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1,
              "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || !input.numel()) {
    return input;
  }
  if (p == 1) {
    return input * at::zeros({}, input.options());
  }
  return input * at::empty_like(input).bernoulli_(1 - p).div_(1 - p);
}

// The CPU's own kernel would draw random numbers from the CPU's generator.
std::tuple<Tensor, Tensor> nativeDropout(const Tensor& input, double p,
                                         std::optional<bool> train) {
  if (train && !*train) {
    return {input.clone(), at::ones_like(input, at::kBool)};
  }
  const double scale = p == 1 ? 0. : 1. / (1 - p);
  const Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p);
  return {input.mul(mask).mul_(scale), mask};
}

void registerComposite(torch::Library& m) {
  m.impl("dropout", &dropout);
  m.impl("native_dropout", &nativeDropout);
  m.impl("_thnn_fused_lstm_cell", &lstmCell);
  m.impl("_thnn_fused_gru_cell", &gruCell);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  registerComposite(m);
}

// For inference mode.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  registerComposite(m);
}

} // namespace
} // namespace flexmem_torch
