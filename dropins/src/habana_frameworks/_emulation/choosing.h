// Where torch chooses among kernels by the type of the device: the choice that it makes underneath.
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

// A tensor of the device underneath that looks like one of the card and has no memory: while a graph is captured, nor has that one.
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

// For a while nobody is offered flash attention.
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

// The choice among attention kernels that is made underneath.
inline int64_t choose_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double dropout, bool is_causal, std::optional<double> scale, bool shares_keys) {
  const Standing here;
  // Who captures the graph must not see this question.
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  const auto choose = [&] {
    return at::_fused_sdp_choice(
        looking_like(query), looking_like(key), looking_like(value), looking_like(mask), dropout, is_causal, scale, shares_keys);
  };
  const auto chosen = choose();
  if (is_on_cuda() && chosen == static_cast<int64_t>(at::SDPBackend::flash_attention)) {
    // For a device that is not called CUDA, torch takes the processor's flash kernel, which no CUDA card has.
    const WithoutFlash second_choice;
    return choose();
  }
  return chosen;
}

using Normalized = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, int64_t>;

// Batch norm with cuDNN where CUDA would take that: its own kernel leaves most of a card idle where channels are few.
inline Normalized normalize_batch(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& mean, const std::optional<at::Tensor>& variance, bool training, double momentum,
    double epsilon, bool may_take_cudnn) {
  const auto beneath = [](const std::optional<at::Tensor>& card) { return looking_like(card).value_or(at::Tensor()); };
  const auto contiguous = [](const std::optional<at::Tensor>& card) {
    return card && card->defined() ? std::optional<at::Tensor>(card->contiguous()) : std::nullopt;
  };
  // The question reads the type of a weight that need not be there.
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
