// Mixed precision on the card: operations that run in bfloat16 (or the requested type), in float32, or in their widest input type.
#pragma once

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "underneath.h"

namespace emulation {

// Casts are not cached: each use of a weight has its own, as on the card.
inline at::Tensor cast(const at::Tensor& tensor, at::ScalarType type) {
  const bool is_cast = tensor.defined() && tensor.is_hpu() && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
  return is_cast ? tensor.to(type) : tensor;
}

inline void cast(c10::IValue& value, at::ScalarType type) {
  if (value.isTensor()) {
    value = cast(value.toTensor(), type);
  } else if (value.isTensorList()) {
    auto tensors = value.toTensorVector();
    for (auto& tensor : tensors) {
      tensor = cast(tensor, type);
    }
    value = c10::IValue(tensors);
  }
}

inline void cast_arguments(const c10::OperatorHandle& operation, at::ScalarType type, torch::jit::Stack* stack) {
  for (const auto& value : torch::jit::last(*stack, operation.schema().arguments().size())) {
    cast(const_cast<c10::IValue&>(value), type);
  }
}

// Excludes autocast within a scope, so that an operation is cast once.
struct Once {
  const c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet(c10::DispatchKey::AutocastHPU)};
};

inline at::ScalarType lower_type() {
  return at::autocast::get_autocast_dtype(c10::DeviceType::HPU);
}

inline void run_in(const c10::OperatorHandle& operation, at::ScalarType type, torch::jit::Stack* stack) {
  const Once once;
  cast_arguments(operation, type, stack);
  operation.callBoxed(stack);
}

inline void in_lower_precision(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  run_in(operation, lower_type(), stack);
}

// Norms: the input in the lower type, weights and statistics as they are.
inline void in_lower_precision_first(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const Once once;
  cast(torch::jit::peek(*stack, 0, operation.schema().arguments().size()), lower_type());
  if (is_on_cuda() && operation.schema().name() != "aten::batch_norm") {
    // CUDA's kernels want one type for all: compute in float32, then round.
    cast_arguments(operation, at::kFloat, stack);
    operation.callBoxed(stack);
    cast(torch::jit::peek(*stack, 0, 1), lower_type());
    return;
  }
  operation.callBoxed(stack);
}

inline void in_single_precision(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  run_in(operation, at::kFloat, stack);
}

inline at::ScalarType wider(at::ScalarType type, const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_hpu() && tensor.is_floating_point() ? at::promote_types(type, tensor.scalar_type()) : type;
}

inline void in_widest_precision(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  auto type = lower_type();
  for (const auto& value : torch::jit::last(*stack, operation.schema().arguments().size())) {
    if (value.isTensor()) {
      type = wider(type, value.toTensor());
    } else if (value.isTensorList()) {
      for (const auto& tensor : value.toTensorVector()) {
        type = wider(type, tensor);
      }
    }
  }
  run_in(operation, type, stack);
}

using Names = std::set<std::string>;

inline const Names kNorms = {"batch_norm", "group_norm", "instance_norm", "layer_norm"};

inline const Names kLowerPrecision = {
    "addmm", "addbmm", "batch_norm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "dot", "dropout", "feature_dropout", "group_norm", "instance_norm", "layer_norm", "leaky_relu", "linear", "matmul",
    "mean", "mm", "mul", "mv", "softmax", "log_softmax", "scaled_dot_product_attention",
};

inline const Names kSinglePrecision = {
    "acos", "addcdiv", "asin", "atan2", "bilinear", "cdist", "cosh", "cosine_similarity", "dist", "div", "divide", "true_divide",
    "embedding", "embedding_bag", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "logsumexp", "pdist", "pow", "reciprocal",
    "renorm", "rsqrt", "sinh", "softplus", "tan", "topk",
    // the losses
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy_loss", "ctc_loss",
    "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nll_loss", "nll_loss2d", "nll_loss_nd", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss",
};

// Used for operations that are in neither of the other lists.
inline const Names kWidestPrecision = {"add", "addcmul", "addcdiv", "cat", "div", "exp", "mul", "pow", "sub", "true_divide", "stack"};

// The names in a file, one on each line; the given ones if there is no such file.
inline Names listed(const char* variable, const Names& otherwise) {
  const char* path = std::getenv(variable);
  std::ifstream file(path == nullptr ? "" : path);
  if (!file) {
    return otherwise;
  }
  Names names;
  for (std::string line; std::getline(file, line);) {
    const auto begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
    if (begin != std::string::npos) {
      const auto name = line.substr(begin, end - begin + 1);
      names.insert(name == "truediv" ? "true_divide" : name);
    }
  }
  return names;
}

// The kernel of an operation under autocast; null for operations that autocast leaves alone.
inline torch::CppFunction (*autocast_kernel(const std::string& name))() {
  static const Names lower = listed("PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST", kLowerPrecision);
  static const Names single = listed("PT_HPU_AUTOCAST_FP32_OPS_LIST", kSinglePrecision);
  if (lower.count(name) > 0 && kNorms.count(name) > 0) {
    return [] { return torch::CppFunction::makeFromBoxedFunction<&in_lower_precision_first>(); };
  }
  if (lower.count(name) > 0) {
    return [] { return torch::CppFunction::makeFromBoxedFunction<&in_lower_precision>(); };
  }
  if (single.count(name) > 0) {
    return [] { return torch::CppFunction::makeFromBoxedFunction<&in_single_precision>(); };
  }
  if (kWidestPrecision.count(name) > 0) {
    return [] { return torch::CppFunction::makeFromBoxedFunction<&in_widest_precision>(); };
  }
  return nullptr;
}

inline bool writes_to_an_argument(const c10::FunctionSchema& schema) {
  for (const auto& argument : schema.arguments()) {
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      return true;
    }
  }
  return false;
}

// Casts every overload of the listed operations; variants that write to an argument keep its type.
inline void register_autocast(torch::Library& library) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) {
      continue;
    }
    const auto kernel = autocast_kernel(name.name.substr(6));
    const auto operation = kernel == nullptr ? std::nullopt : dispatcher.findSchema(name);
    if (operation && !writes_to_an_argument(operation->schema())) {
      library.impl((name.overload_name.empty() ? name.name : name.name + "." + name.overload_name).c_str(), kernel());
    }
  }
}

} // namespace emulation
