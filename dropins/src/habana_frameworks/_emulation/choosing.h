// Operations for which torch selects a kernel by device type: they use the selection of the computing device.
#pragma once

#include <ATen/SDPBackend.h>
#include <ATen/native/Normalization.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_batch_norm_impl_index_native.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/cudnn_batch_norm.h>

#include "memory.h"

namespace emulation {

inline std::vector<int64_t> as_numbers(c10::SymIntArrayRef sizes) {
  std::vector<int64_t> numbers;
  for (const auto& size : sizes) {
    numbers.push_back(size.guard_int(__FILE__, __LINE__));
  }
  return numbers;
}

// A tensor of the computing device with the metadata of a tensor on the card, but without memory: during a capture there is none either.
inline at::Tensor looking_like(const at::Tensor& card) {
  c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, underneath()), allocator_underneath(), false);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(nothing), c10::DispatchKeySet(key_underneath()), card.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(as_numbers(card.sym_sizes()), as_numbers(card.sym_strides()));
  tensor.set_requires_grad(card.requires_grad());
  return tensor;
}

inline std::optional<at::Tensor> looking_like(const std::optional<at::Tensor>& card) {
  return card && card->defined() ? std::optional<at::Tensor>(looking_like(*card)) : std::nullopt;
}

// Disables flash attention within a scope.
class WithoutFlash {
 public:
  WithoutFlash() : was_offered_(at::globalContext().userEnabledFlashSDP()) {
    at::globalContext().setSDPUseFlash(false);
  }
  ~WithoutFlash() {
    at::globalContext().setSDPUseFlash(was_offered_);
  }
  WithoutFlash(const WithoutFlash&) = delete;
  WithoutFlash& operator=(const WithoutFlash&) = delete;

 private:
  bool was_offered_;
};

// Selects the attention kernel that the computing device would use.
inline int64_t choose_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double dropout, bool is_causal, std::optional<double> scale, bool shares_keys) {
  const Standing here;
  // A capture must not record this query.
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  const auto choose = [&] {
    return at::_fused_sdp_choice(
        looking_like(query), looking_like(key), looking_like(value), looking_like(mask), dropout, is_causal, scale, shares_keys);
  };
  const auto chosen = choose();
  if (is_on_cuda() && chosen == static_cast<int64_t>(at::SDPBackend::flash_attention)) {
    // For device types other than CUDA, torch selects the CPU's flash kernel, which does not exist for CUDA.
    const WithoutFlash second_choice;
    return choose();
  }
  return chosen;
}

using Normalized = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, int64_t>;

// Batch norm with cuDNN wherever CUDA would use it: with few channels, torch's own kernel leaves most of a GPU idle.
inline Normalized normalize_batch(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& mean, const std::optional<at::Tensor>& variance, bool training, double momentum,
    double epsilon, bool may_take_cudnn) {
  const auto beneath = [](const std::optional<at::Tensor>& card) { return looking_like(card).value_or(at::Tensor()); };
  const auto contiguous = [](const std::optional<at::Tensor>& card) {
    return card && card->defined() ? std::optional<at::Tensor>(card->contiguous()) : std::nullopt;
  };
  // The query reads the type of the weight, which is optional.
  const bool has_weights = weight && weight->defined() && bias && bias->defined();
  if (may_take_cudnn && has_weights &&
      at::native::_select_batch_norm_backend(
          looking_like(input), beneath(weight), beneath(bias), beneath(mean), beneath(variance), training, epsilon) ==
          at::native::BatchNormBackend::Cudnn) {
    auto [output, saved_mean, saved_variance, reserve] = at::cudnn_batch_norm(
        input.contiguous(input.suggest_memory_format()), weight->contiguous(), bias->contiguous(), contiguous(mean),
        contiguous(variance), training, momentum, epsilon);
    constexpr int64_t kCudnn = 1;
    return {output, saved_mean, saved_variance, reserve, kCudnn};
  }
  return at::native::_batch_norm_impl_index(input, weight, bias, mean, variance, training, momentum, epsilon, may_take_cudnn);
}

} // namespace emulation

namespace at::native {
REGISTER_HPU_DISPATCH(_fused_sdp_choice_stub, &emulation::choose_attention)
} // namespace at::native
