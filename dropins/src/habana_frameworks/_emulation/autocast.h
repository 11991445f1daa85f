// Mixed precision on the card: operations that run in bfloat16 (or the requested type), in float32, or in their widest input type.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace emulation {

inline at::Tensor cast(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.defined() ? at::autocast::cached_cast(type, tensor, c10::DeviceType::HPU) : tensor;
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

inline void run_in(const c10::OperatorHandle& operation, at::ScalarType type, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(c10::DispatchKeySet(c10::DispatchKey::AutocastHPU));
  for (const auto& value : torch::jit::last(*stack, operation.schema().arguments().size())) {
    cast(const_cast<c10::IValue&>(value), type);
  }
  operation.callBoxed(stack);
}

inline void in_lower_precision(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  run_in(operation, at::autocast::get_autocast_dtype(c10::DeviceType::HPU), stack);
}

inline void in_single_precision(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  run_in(operation, at::kFloat, stack);
}

inline at::ScalarType wider(at::ScalarType type, const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_hpu() && tensor.is_floating_point() ? at::promote_types(type, tensor.scalar_type()) : type;
}

inline void in_widest_precision(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  auto type = at::autocast::get_autocast_dtype(c10::DeviceType::HPU);
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

inline constexpr const char* kLowerPrecision[] = {
    "_convolution", "conv1d", "conv1d.padding", "conv2d", "conv2d.padding", "conv3d", "conv3d.padding", "conv_transpose1d",
    "conv_transpose2d.input", "conv_transpose3d.input", "conv_tbc", "mm", "mv", "matmul", "addmm", "addmv", "addr", "addbmm", "baddbmm",
    "bmm", "linear", "linalg_vecdot", "linalg_multi_dot", "chain_matmul", "scaled_dot_product_attention", "_native_multi_head_attention",
    "prelu", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
};

inline constexpr const char* kSinglePrecision[] = {
    "acos", "asin", "cosh", "sinh", "tan", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt",
    "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "softmax.int", "softmax.Dimname", "log_softmax.int",
    "log_softmax.Dimname", "cumsum", "cumprod", "prod", "prod.dim_int", "sum", "sum.dim_IntList", "logsumexp",
    "layer_norm", "native_layer_norm", "group_norm", "rms_norm", "frobenius_norm.dim", "nuclear_norm", "cosine_similarity",
    "cosine_embedding_loss", "nll_loss", "nll_loss2d", "nll_loss_nd", "cross_entropy_loss", "hinge_embedding_loss", "kl_div", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss",
    "triplet_margin_loss", "multi_margin_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "poisson_nll_loss",
    "ctc_loss.IntList", "ctc_loss.Tensor", "dist", "pdist", "cdist", "renorm",
};

inline constexpr const char* kWidestPrecision[] = {
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put", "tensordot", "scatter_add", "cat", "stack",
};

} // namespace emulation
