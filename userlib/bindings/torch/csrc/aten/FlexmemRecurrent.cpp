// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
// Gradients of LSTM, GRU and RNN over whole sequences. PyTorch composes these of
// other operators, and for the CPU alone it multiplies the inputs of all steps at
// once. So that losses and weights are the CPU's, the whole runs on CPU aliases
// here, and keeps the CPU's graph for the backward pass.
#include "FlexmemAlias.h"

#include "../runtime/FlexmemDeviceAllocator.h"

#include <torch/autograd.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

namespace flexmem_torch {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

// The tensors among the arguments, in order, each of them once.
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
      if (input.is_privateuseone() && input.requires_grad()) {
        leaf.requires_grad_();
      }
      leaves.push_back(leaf);
    }
    {
      KernelScope scope;
      at::AutoGradMode graph(true);
      op->callBoxed(stack);
    }
    variable_list results;
    variable_list ours;
    for (size_t i = stack->size() - op->schema().returns().size(); i < stack->size(); i++) {
      results.push_back((*stack)[i].toTensor());
      ours.push_back(deviceView(results.back()));
    }
    // PyTorch reports an input that was changed before the backward pass.
    ctx->save_for_backward(variable_list(inputs.begin(), inputs.end()));
    ctx->saved_data["leaves"] = leaves;
    ctx->saved_data["results"] = results;
    return ours;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "flexmem: no second derivatives of LSTM, GRU and RNN");
    ctx->get_saved_variables();
    const variable_list leaves = ctx->saved_data["leaves"].toTensorVector();
    const variable_list results = ctx->saved_data["results"].toTensorVector();
    Aliases aliases;
    variable_list from;
    variable_list with;
    for (size_t i = 0; i < results.size(); i++) {
      if (gradients[i].defined() && results[i].requires_grad()) {
        from.push_back(results[i]);
        with.push_back(aliases.toCpu(gradients[i]));
      }
    }
    variable_list to;
    for (const Tensor& leaf : leaves) {
      if (leaf.requires_grad()) {
        to.push_back(leaf);
      }
    }
    variable_list found;
    {
      KernelScope scope;
      found = torch::autograd::grad(
          from, to, with, torch::autograd::get_current_graph_task_keep_graph(),
          /*create_graph=*/false, /*allow_unused=*/true);
    }
    // One gradient for each argument of forward(). The first two are no tensors.
    variable_list all(2);
    auto next = found.begin();
    for (const Tensor& leaf : leaves) {
      all.push_back(leaf.requires_grad() ? aliases.toDevice(*next++) : Tensor());
    }
    return all;
  }
};

// Random numbers come from the device's generator, which dropout inside of the
// composite would not know.
bool dropsOut(const c10::OperatorHandle& op, const Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const auto argument = [&](const char* name) {
    return stack[stack.size() - arguments.size() +
                 static_cast<size_t>(*op.schema().argumentIndexWithName(name))];
  };
  return argument("train").toBool() && argument("dropout").toDouble() > 0.0;
}

void recurrentKernel(const c10::OperatorHandle& op, Stack* stack) {
  const variable_list tensors = tensorsOf(op, *stack);
  bool wanted = false;
  for (const Tensor& tensor : tensors) {
    wanted |= tensor.requires_grad();
  }
  if (dropsOut(op, *stack)) {
    // Runs the composite operator; its parts run on the device.
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::AutogradCPU), stack);
  } else if (wanted && at::GradMode::is_enabled()) {
    const variable_list ours = OnCpu::apply(&op, stack, at::TensorList(tensors));
    stack->resize(stack->size() - ours.size());
    stack->insert(stack->end(), ours.begin(), ours.end());
  } else {
    aliasKernel(op, stack);
  }
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  for (const char* name : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* overload : {".input", ".data"}) {
      m.impl((std::string(name) + overload).c_str(),
             torch::CppFunction::makeFromBoxedFunction<&recurrentKernel>());
    }
  }
}

} // namespace
} // namespace flexmem_torch
