// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Gradients of LSTM, GRU and RNN over whole sequences. PyTorch composes these operators from others, but multiplies the
// inputs of all steps at once only on the CPU. Here the whole operator runs on CPU aliases, and the backward pass uses
// the CPU's graph. So losses and weights are the same as on the CPU.
#include "FlexmemAlias.h"

#include "../runtime/FlexmemDeviceAllocator.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

namespace flexmem_torch {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

// Returns the tensors among the arguments, in order, each of them once.
variable_list tensorsOf(const c10::OperatorHandle& op, const Stack& stack) {
  variable_list tensors;
  const auto add = [&tensors](const Tensor& tensor) {
    for (const Tensor& known : tensors) {
      if (known.is_same(tensor)) {
        return;
      }
    }
    tensors.push_back(tensor);
  };
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); i++) {
    if (stack[i].isTensor()) {
      add(stack[i].toTensor());
    } else if (stack[i].isTensorList()) {
      for (const Tensor& tensor : stack[i].toTensorVector()) {
        add(tensor);
      }
    }
  }
  return tensors;
}

// Makes both tensors share one counter of in-place changes. The CPU's graph has only one of the tensors, but must
// notice a change of either tensor.
void shareVersion(const Tensor& tensor, const Tensor& model) {
  tensor.unsafeGetTensorImpl()->set_version_counter(
      model.unsafeGetTensorImpl()->version_counter());
}

class OnCpu : public torch::autograd::Function<OnCpu> {
 public:
  // Replaces the arguments on top of @stack by the CPU's results.
  static variable_list forward(AutogradContext* ctx, const c10::OperatorHandle* op,
                               Stack* stack, at::TensorList inputs) {
    Aliases aliases;
    variable_list leaves;
    argumentsToCpu(aliases, *op, stack);
    for (const Tensor& input : inputs) {
      Tensor leaf = aliases.toCpu(input);
      if (input.is_privateuseone()) {
        shareVersion(leaf, input);
        leaf.set_requires_grad(input.requires_grad());
      }
      leaves.push_back(leaf);
    }
    {
      const KernelScope scope(aliases.device().index());
      at::AutoGradMode graph(true);
      op->callBoxed(stack);
    }
    variable_list results;
    variable_list ours;
    for (size_t i = stack->size() - op->schema().returns().size(); i < stack->size(); i++) {
      results.push_back((*stack)[i].toTensor());
      ours.push_back(aliases.toDevice(results.back()));
      shareVersion(ours.back(), results.back());
    }
    ctx->saved_data["leaves"] = leaves;
    ctx->saved_data["results"] = results;
    return ours;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "flexmem: no second derivatives of LSTM, GRU and RNN");
    // Throws an error if an earlier backward pass has freed the graph.
    ctx->get_saved_variables();
    const bool keep = torch::autograd::get_current_graph_task_keep_graph();
    const variable_list leaves = ctx->saved_data["leaves"].toTensorVector();
    const variable_list results = ctx->saved_data["results"].toTensorVector();
    Aliases aliases;
    variable_list from;
    variable_list with;
    for (size_t i = 0; i < results.size(); i++) {
      followOriginal(results[i]);
      if (gradients[i].defined() && results[i].requires_grad()) {
        from.push_back(results[i]);
        with.push_back(aliases.toCpu(gradients[i]));
      }
    }
    variable_list to;
    for (const Tensor& leaf : leaves) {
      followOriginal(leaf);
      if (leaf.requires_grad()) {
        to.push_back(leaf);
      }
    }
    variable_list found;
    {
      const KernelScope scope(aliases.device().index());
      // Runs an inner backward pass while this thread holds the lock of this node. An autograd thread does the work of
      // the inner pass first, so the thread does not wait for that lock.
      found = torch::autograd::grad(from, to, with, keep,
                                    /*create_graph=*/false, /*allow_unused=*/true);
    }
    if (!keep) {
      ctx->saved_data.clear();
    }
    // One gradient for each argument of forward(). The first two arguments are
    // not tensors.
    variable_list all(2);
    auto next = found.begin();
    for (const Tensor& leaf : leaves) {
      all.push_back(leaf.requires_grad() ? aliases.toDevice(*next++) : Tensor());
    }
    return all;
  }
};

// Whether the operator uses dropout. The random numbers must come from the device's generator. A dropout on CPU aliases
// would take them from the CPU's generator.
bool dropsOut(const c10::OperatorHandle& op, const Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const auto argument = [&](const char* name) {
    return stack[stack.size() - arguments.size() +
                 static_cast<size_t>(*op.schema().argumentIndexWithName(name))];
  };
  return argument("train").toBool() && argument("dropout").toDouble() > 0.0;
}

// Whether there are hooks for saved tensors. The hooks must see tensors of the device. For example, save_on_cpu() would
// not move a CPU tensor.
bool hasSavedTensorHooks() {
  return !at::SavedTensorDefaultHooks::get_tls_state().stack.empty();
}

void recurrentKernel(const c10::OperatorHandle& op, Stack* stack) {
  const variable_list tensors = tensorsOf(op, *stack);
  bool forward = false;
  bool graph = false;
  for (const Tensor& tensor : tensors) {
    forward |= tensor._fw_grad(/*level=*/0).defined();
    graph |= tensor.requires_grad();
  }
  graph &= at::GradMode::is_enabled();
  // Autocast casts the arguments of the composite's parts. The CPU's kernel would get weights without a cast, together
  // with inputs in lower precision.
  const bool casts = at::autocast::is_autocast_enabled(at::kPrivateUse1);
  if (forward || casts || dropsOut(op, *stack) || (graph && hasSavedTensorHooks())) {
    // Runs the composite operator; its parts run on the device.
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::AutogradCPU), stack);
  } else if (graph) {
    const variable_list ours = OnCpu::apply(&op, stack, at::TensorList(tensors));
    stack->resize(stack->size() - ours.size());
    stack->insert(stack->end(), ours.begin(), ours.end());
  } else {
    aliasKernel(op, stack);
  }
}

void registerRecurrent(torch::Library& m) {
  for (const char* name : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* overload : {".input", ".data"}) {
      m.impl((std::string(name) + overload).c_str(),
             torch::CppFunction::makeFromBoxedFunction<&recurrentKernel>());
    }
  }
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  registerRecurrent(m);
}

// For inference mode.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  registerRecurrent(m);
}

} // namespace
} // namespace flexmem_torch
