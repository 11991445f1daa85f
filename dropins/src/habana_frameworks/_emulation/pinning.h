// Pinned host memory: CUDA's if CUDA computes, otherwise ordinary memory that is remembered as pinned.
#pragma once

#include <map>
#include <mutex>

#include <c10/core/CPUAllocator.h>

#include "underneath.h"

namespace emulation {

inline std::mutex pinning;
inline std::map<const char*, size_t> pinned;

struct Pinned {
  c10::DataPtr memory;
};

inline void unpin(void* context) {
  auto* held = static_cast<Pinned*>(context);
  {
    const std::lock_guard<std::mutex> lock(pinning);
    pinned.erase(static_cast<const char*>(held->memory.get()));
  }
  delete held;
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    auto* held = new Pinned{c10::GetCPUAllocator()->allocate(bytes)};
    void* data = held->memory.get();
    if (data != nullptr) {
      const std::lock_guard<std::mutex> lock(pinning);
      pinned[static_cast<const char*>(data)] = bytes;
    }
    return {data, held, &unpin, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
};

inline const at::AcceleratorHooksInterface& cuda_hooks() {
  return at::globalContext().getAcceleratorHooksInterface(c10::DeviceType::CUDA);
}

inline c10::Allocator* pinned_allocator() {
  static auto* only = new PinnedAllocator();
  return is_on_cuda() ? cuda_hooks().getPinnedMemoryAllocator() : only;
}

inline bool is_pinned(const void* data) {
  if (is_on_cuda()) {
    return cuda_hooks().isPinnedPtr(data);
  }
  const std::lock_guard<std::mutex> lock(pinning);
  const auto* place = static_cast<const char*>(data);
  auto after = pinned.upper_bound(place);
  return after != pinned.begin() && place < std::prev(after)->first + std::prev(after)->second;
}

} // namespace emulation
