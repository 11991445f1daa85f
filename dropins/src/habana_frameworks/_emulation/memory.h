// The emulated card's memory: memory of the computing device under the device type "hpu", with statistics.
#pragma once

#include <atomic>

#include <ATen/ATen.h>

#include "underneath.h"

namespace emulation {

inline const c10::Device kCard{c10::DeviceType::HPU, 0};

inline std::atomic<int64_t> allocated{0};
inline std::atomic<int64_t> peak{0};

inline std::atomic<int64_t> allocations{0};
inline std::atomic<int64_t> releases{0};
inline std::atomic<int64_t> largest{0};

inline void raise(std::atomic<int64_t>& figure, int64_t now) {
  int64_t before = figure.load();
  while (now > before && !figure.compare_exchange_weak(before, now)) {
  }
}

inline void count(int64_t bytes) {
  allocations.fetch_add(1);
  raise(peak, allocated.fetch_add(bytes) + bytes);
  raise(largest, bytes);
}

// Keeps a storage alive while the card's storage for the same memory exists.
struct Held {
  c10::Storage beneath;
  int64_t bytes;
};

inline void release(void* context) {
  auto* held = static_cast<Held*>(context);
  allocated.fetch_sub(held->bytes);
  releases.fetch_add(1);
  delete held;
}

inline c10::DataPtr on_card(const c10::Storage& beneath) {
  const auto bytes = static_cast<int64_t>(beneath.nbytes());
  count(bytes);
  return {beneath.mutable_data(), new Held{beneath, bytes}, &release, kCard};
}

struct CardAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const Standing here;
    return on_card(c10::Storage(c10::Storage::use_byte_size_t(), bytes, allocator_underneath(), /*resizable=*/false));
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    allocator_underneath()->copy_data(target, source, bytes);
  }
};

inline CardAllocator* allocator() {
  static auto* only = new CardAllocator();
  return only;
}

inline c10::Storage card_storage(const c10::Storage& beneath) {
  return {c10::Storage::use_byte_size_t(), beneath.nbytes(), on_card(beneath), allocator(), /*resizable=*/true};
}

} // namespace emulation
