// Converts the tensors of one operation from the card to the computing device and back, without copying.
#pragma once

#include <unordered_map>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>

#include "device.h"
#include "graphs.h"

namespace emulation {

inline void delete_storage(void* context) {
  delete static_cast<c10::Storage*>(context);
}

inline at::Tensor tensor_over(const c10::Storage& storage, c10::DispatchKey key, const at::Tensor& like) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  auto* made = tensor.unsafeGetTensorImpl();
  made->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) {
    made->_set_conj(true);
  }
  if (like.is_neg()) {
    made->_set_neg(true);
  }
  return tensor;
}

// Maps tensors of the card to tensors of the computing device during one operation. Tensors that share memory on the
// card share it there too, so views, in-place writes and overlaps behave as in the kernels.
class Crossing {
 public:
  at::Tensor down(const at::Tensor& card) {
    const auto known = beneath_.find(card.unsafeGetTensorImpl());
    if (known != beneath_.end()) {
      return known->second;
    }
    gather(card);
    auto made = tensor_over(storage_beneath(card), key_underneath(), card);
    beneath_.emplace(card.unsafeGetTensorImpl(), made);
    cards_.emplace(made.unsafeGetTensorImpl(), card);
    return made;
  }

  at::Tensor up(const at::Tensor& beneath) {
    if (!beneath.defined() || beneath.device().type() != underneath().type()) {
      return beneath;
    }
    TORCH_CHECK(beneath.layout() == at::kStrided, "The emulated hpu device supports only dense tensors, not the layout ", beneath.layout(), ".");
    const auto known = cards_.find(beneath.unsafeGetTensorImpl());
    if (known != cards_.end()) {
      return known->second;
    }
    auto* storage = beneath.storage().unsafeGetStorageImpl();
    auto place = card_storages_.find(storage);
    if (place == card_storages_.end()) {
      place = card_storages_.emplace(storage, Owned{card_storage(beneath.storage()), c10::InferenceMode::is_enabled()}).first;
    }
    // A view of an ordinary tensor is an ordinary one in inference mode too.
    const c10::InferenceMode mode(place->second.is_inference);
    return tensor_over(place->second.storage, c10::DispatchKey::HPU, beneath);
  }

  // A kernel may have resized an output, and thereby reallocated it.
  void follow_resizing() {
    for (const auto& [beneath, card] : cards_) {
      auto* target = card.storage().unsafeGetStorageImpl();
      const auto& source = beneath->storage();
      if (source.data() != target->data() || source.nbytes() != target->nbytes()) {
        target->set_data_ptr_noswap(on_card(source));
        target->set_nbytes(source.nbytes());
      }
      if (beneath->sizes() != card.sizes() || beneath->strides() != card.strides()) {
        card.unsafeGetTensorImpl()->set_sizes_and_strides(beneath->sizes(), beneath->strides(), beneath->storage_offset());
      }
    }
  }

 private:
  // Memory of the card, and whether the tensor that has it was made in inference mode.
  struct Owned {
    c10::Storage storage;
    bool is_inference;
  };

  c10::Storage storage_beneath(const at::Tensor& tensor) {
    const auto& card = tensor.storage();
    const auto known = storages_beneath_.find(card.unsafeGetStorageImpl());
    if (known != storages_beneath_.end()) {
      return known->second;
    }
    c10::DataPtr memory(card.mutable_data(), new c10::Storage(card), &delete_storage, underneath());
    c10::Storage made(c10::Storage::use_byte_size_t(), card.nbytes(), std::move(memory), allocator_underneath(), true);
    storages_beneath_.emplace(card.unsafeGetStorageImpl(), made);
    card_storages_.emplace(made.unsafeGetStorageImpl(), Owned{card, tensor.is_inference()});
    return made;
  }

  std::unordered_map<c10::TensorImpl*, at::Tensor> beneath_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> cards_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> storages_beneath_;
  std::unordered_map<c10::StorageImpl*, Owned> card_storages_;
};

} // namespace emulation
