// The way of one operation's tensors from the card to the host and back, without copying.
#pragma once

#include <unordered_map>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

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

// Holds which host tensor stands for which tensor of the card during one operation. Tensors that share memory on the card
// share it on the host, so views, in-place changes and overlaps come out as the host's kernels leave them.
class Crossing {
 public:
  at::Tensor to_host(const at::Tensor& card) {
    const auto known = hosts_.find(card.unsafeGetTensorImpl());
    if (known != hosts_.end()) {
      return known->second;
    }
    gather(card);
    auto host = tensor_over(host_storage(card.storage()), c10::DispatchKey::CPU, card);
    hosts_.emplace(card.unsafeGetTensorImpl(), host);
    cards_.emplace(host.unsafeGetTensorImpl(), card);
    return host;
  }

  at::Tensor to_card(const at::Tensor& host) {
    if (!host.defined() || !host.device().is_cpu() || host.layout() != at::kStrided) {
      TORCH_CHECK(!host.defined() || host.layout() == at::kStrided, "The emulated hpu device holds dense tensors alone; a ", host.layout(), " one came out.");
      return host;
    }
    const auto known = cards_.find(host.unsafeGetTensorImpl());
    if (known != cards_.end()) {
      return known->second;
    }
    auto* storage = host.storage().unsafeGetStorageImpl();
    auto place = card_storages_.find(storage);
    if (place == card_storages_.end()) {
      place = card_storages_.emplace(storage, card_storage(host.storage())).first;
    }
    return tensor_over(place->second, c10::DispatchKey::HPU, host);
  }

  // A kernel may have given an output another size, and with it other memory.
  void follow_resizing() {
    for (const auto& [host, card] : cards_) {
      auto* target = card.storage().unsafeGetStorageImpl();
      const auto& source = host->storage();
      if (source.data() != target->data() || source.nbytes() != target->nbytes()) {
        target->set_data_ptr_noswap(on_card(source));
        target->set_nbytes(source.nbytes());
      }
      if (host->sizes() != card.sizes() || host->strides() != card.strides()) {
        card.unsafeGetTensorImpl()->set_sizes_and_strides(host->sizes(), host->strides(), host->storage_offset());
      }
    }
  }

 private:
  c10::Storage host_storage(const c10::Storage& card) {
    const auto known = host_storages_.find(card.unsafeGetStorageImpl());
    if (known != host_storages_.end()) {
      return known->second;
    }
    c10::DataPtr memory(card.mutable_data(), new c10::Storage(card), &delete_storage, c10::Device(c10::DeviceType::CPU));
    c10::Storage host(c10::Storage::use_byte_size_t(), card.nbytes(), std::move(memory), c10::GetCPUAllocator(), true);
    host_storages_.emplace(card.unsafeGetStorageImpl(), host);
    card_storages_.emplace(host.unsafeGetStorageImpl(), card);
    return host;
  }

  std::unordered_map<c10::TensorImpl*, at::Tensor> hosts_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> cards_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> host_storages_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> card_storages_;
};

} // namespace emulation
