// Every operation on the card runs the computing device's kernel on the same memory.
#pragma once

#include <string>
#include <unordered_set>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "crossing.h"
#include "drawing.h"

namespace emulation {

// Like a real card, it accepts indices, lengths and scalars from the host, and nothing else.
inline bool takes_host_tensors(const c10::OperatorHandle& operation) {
  static const std::unordered_set<std::string> names = {
      "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index",
      "aten::_unsafe_index_put", "aten::_pack_padded_sequence", "aten::_pack_padded_sequence_backward",
      "aten::_pad_packed_sequence"};
  return names.count(operation.schema().name()) > 0;
}

inline at::Tensor argument(Crossing& crossing, const at::Tensor& given, const c10::OperatorHandle& operation) {
  if (!given.defined()) {
    return given;
  }
  if (given.device().is_hpu()) {
    return crossing.down(given);
  }
  TORCH_CHECK(
      given.device().is_cpu() && (given.dim() == 0 || takes_host_tensors(operation)),
      "Expected all tensors to be on the same device, but found at least two devices, hpu:0 and ", given.device(), "! (when running ",
      operation.schema().name(), ")");
  return given;
}

// The operands of some collectives: a list of tensors for each card.
inline bool is_list_of_lists(const c10::IValue& value) {
  return value.isList() && !value.toListRef().empty() && value.toListRef()[0].isTensorList();
}

inline void take_down(Crossing& crossing, c10::IValue& value, const c10::OperatorHandle& operation) {
  if (value.isTensor()) {
    value = argument(crossing, value.toTensor(), operation);
  } else if (value.isTensorList()) {
    auto tensors = value.toTensorVector();
    for (auto& tensor : tensors) {
      tensor = argument(crossing, tensor, operation);
    }
    value = c10::IValue(tensors);
  } else if (is_list_of_lists(value)) {
    auto lists = value.to<std::vector<std::vector<at::Tensor>>>();
    for (auto& tensors : lists) {
      for (auto& tensor : tensors) {
        tensor = argument(crossing, tensor, operation);
      }
    }
    value = c10::IValue(lists);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      tensors.push_back(tensor ? std::optional<at::Tensor>(argument(crossing, *tensor, operation)) : std::nullopt);
    }
    value = c10::IValue(tensors);
  } else if (value.isDevice() && value.toDevice().is_hpu()) {
    TORCH_CHECK(value.toDevice().index() <= 0, "There is one emulated Gaudi card, hpu:0, but ", value.toDevice(), " was requested.");
    value = underneath();
  } else if (value.isGenerator() && value.toGenerator().device().is_hpu()) {
    auto* generator = value.toGenerator().unsafeGetGeneratorImpl();
    value = c10::IValue(static_cast<Generator*>(generator)->beneath);
  }
}

inline void take_up(Crossing& crossing, c10::IValue& value) {
  if (value.isTensor()) {
    value = crossing.up(value.toTensor());
  } else if (value.isTensorList()) {
    auto tensors = value.toTensorVector();
    for (auto& tensor : tensors) {
      tensor = crossing.up(tensor);
    }
    value = c10::IValue(tensors);
  } else if (is_list_of_lists(value)) {
    auto lists = value.to<std::vector<std::vector<at::Tensor>>>();
    for (auto& tensors : lists) {
      for (auto& tensor : tensors) {
        tensor = crossing.up(tensor);
      }
    }
    value = c10::IValue(lists);
  }
}

inline void run_beneath(const c10::OperatorHandle& operation, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const Standing here;
  Crossing crossing;
  gather(operation);
  const auto& schema = operation.schema();
  for (auto& value : torch::jit::last(*stack, schema.arguments().size())) {
    // Values on the stack belong to this call, so they can be changed in place.
    take_down(crossing, const_cast<c10::IValue&>(value), operation);
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    if (is_drawn_on_host(operation)) {
      draw_on_host(operation, stack);
    } else {
      operation.redispatchBoxed(c10::DispatchKeySet(key_underneath()), stack);
    }
  }
  crossing.follow_resizing();
  for (auto& value : torch::jit::last(*stack, schema.returns().size())) {
    take_up(crossing, const_cast<c10::IValue&>(value));
  }
}

inline at::Tensor beneath(Crossing& crossing, const at::Tensor& tensor) {
  return tensor.device().is_hpu() ? crossing.down(tensor) : tensor;
}

inline at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  {
    const Standing here;
    Crossing crossing;
    const at::AutoDispatchBelowADInplaceOrView below;
    // Results that the host reads must be complete when this returns.
    beneath(crossing, target).copy_(beneath(crossing, source), non_blocking && target.device().is_hpu());
  }
  // Reading a value makes lazy mode run the recorded graph.
  if (!target.device().is_hpu()) {
    end_graph_by_reading();
  }
  return target;
}

inline at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

inline at::Scalar read_number(const at::Tensor& tensor) {
  const Standing here;
  Crossing crossing;
  const auto number = at::_local_scalar_dense(crossing.down(tensor));
  end_graph_by_reading();
  return number;
}

inline const at::Tensor& resize(
    const at::Tensor& tensor, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  const Standing here;
  Crossing crossing;
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    crossing.down(tensor).resize_(size, format);
  }
  crossing.follow_resizing();
  return tensor;
}

inline at::Tensor& set_empty(at::Tensor& tensor) {
  const c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, allocator(), true);
  return at::native::set_storage_cpu_(tensor, nothing, 0, {0}, {});
}

inline at::Tensor& set_storage(at::Tensor& tensor, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / tensor.dtype().itemsize());
  return at::native::set_storage_cpu_(tensor, std::move(source), 0, {count}, {});
}

inline at::Tensor& set_view(
    at::Tensor& tensor, at::Storage source, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(tensor, std::move(source), offset, size, stride);
}

inline at::Tensor& set_tensor(at::Tensor& tensor, const at::Tensor& source) {
  return at::native::set_storage_cpu_(
      tensor, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

// Autograd uses these for gradients that are zero everywhere; plain zeros are equally correct and have memory.
inline at::Tensor zeros_for_gradients(
    at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>, std::optional<at::Device>,
    std::optional<bool>) {
  return at::zeros(size, at::TensorOptions().dtype(type).device(kCard));
}

inline void record_stream(at::Tensor&, at::Stream) {}

} // namespace emulation
