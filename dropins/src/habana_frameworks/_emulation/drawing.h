// Random numbers from the CPU's generator while a CUDA card computes: a script draws the same numbers as without a card.
#pragma once

#include <unordered_map>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "underneath.h"

namespace emulation {

// Operations without a CPU kernel, such as fused attention with dropout, still draw on the card.
inline bool is_drawn_on_host(const c10::OperatorHandle& operation) {
  return draws_on_host() && operation.hasTag(at::Tag::nondeterministic_seeded) &&
      operation.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Runs an operation on copies of its tensors, and copies back what it wrote and returned.
inline void draw_on_host(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& schema = operation.schema();
  const auto count = schema.arguments().size();
  std::unordered_map<c10::TensorImpl*, at::Tensor> originals;
  std::vector<std::pair<at::Tensor, at::Tensor>> written;
  for (size_t number = 0; number < count; ++number) {
    auto& value = torch::jit::peek(*stack, number, count);
    if (value.isDevice()) {
      value = c10::Device(c10::DeviceType::CPU);
    } else if (value.isTensor() && value.toTensor().defined()) {
      const auto original = value.toTensor();
      const auto copy = original.cpu();
      originals.emplace(copy.unsafeGetTensorImpl(), original);
      const auto* alias = schema.arguments()[number].alias_info();
      if (alias != nullptr && alias->isWrite()) {
        written.emplace_back(original, copy);
      }
      value = copy;
    }
  }
  operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  for (const auto& [original, copy] : written) {
    if (original.sizes() != copy.sizes()) {
      original.resize_(copy.sizes());
    }
    original.copy_(copy);
  }
  const auto returned = schema.returns().size();
  for (size_t number = 0; number < returned; ++number) {
    auto& value = torch::jit::peek(*stack, number, returned);
    if (value.isTensor() && value.toTensor().defined()) {
      const auto made = value.toTensor();
      const auto known = originals.find(made.unsafeGetTensorImpl());
      value = known == originals.end() ? made.to(underneath()) : known->second;
    }
  }
}

} // namespace emulation
