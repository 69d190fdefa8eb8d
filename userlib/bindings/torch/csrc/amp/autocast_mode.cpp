// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// The operators that run in lower precision under torch.autocast("flexmem"): PyTorch's lists for accelerators.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {
namespace {

// Refuses binary_cross_entropy, whose gradient overflows in half precision.
Tensor refuseBinaryCrossEntropy(const Tensor& /*self*/, const Tensor& /*target*/,
                                const std::optional<Tensor>& /*weight*/,
                                int64_t /*reduction*/) {
  TORCH_CHECK(false,
              "binary_cross_entropy and BCELoss are unsafe under autocast: use "
              "binary_cross_entropy_with_logits or BCEWithLogitsLoss");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER_PRECISION(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)

#define FULL_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(FULL_PRECISION)

#define OPTIONAL_DTYPE(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(OPTIONAL_DTYPE)

  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(
      KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)

#define PROMOTED(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(PROMOTED)

  m.impl("binary_cross_entropy", &refuseBinaryCrossEntropy);
}

} // namespace
} // namespace at::autocast
