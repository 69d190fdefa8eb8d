// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// scaled_dot_product_attention() does not use the dispatcher to choose its kernel. sdpChoice() makes the CPU's choice.
#include <ATen/NativeFunctions.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

namespace flexmem_torch {

int64_t sdpChoice(const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value,
                  const std::optional<at::Tensor>& mask, double dropout,
                  bool isCausal, std::optional<double> scale, bool enableGqa) {
  return at::native::_fused_sdp_choice_cpp(query, key, value, mask, dropout,
                                           isCausal, scale, enableGqa);
}

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", &sdpChoice);
}

} // namespace
} // namespace flexmem_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &flexmem_torch::sdpChoice)
} // namespace at::native
