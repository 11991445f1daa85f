// The device that computes for the emulated card: the CPU, or a CUDA card with PILOTAGE_HPU_ON=cuda.
#pragma once

#include <cstdlib>
#include <cstring>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace emulation {

inline bool is_set(const char* variable, const char* value) {
  const char* found = std::getenv(variable);
  return found != nullptr && std::strcmp(found, value) == 0;
}

inline bool is_on_cuda() {
  static const bool answer = is_set("PILOTAGE_HPU_ON", "cuda");
  return answer;
}

// Whether the CPU draws the random numbers of a CUDA card.
inline bool draws_on_host() {
  static const bool answer = is_on_cuda() && is_set("PILOTAGE_HPU_RANDOM", "cpu");
  return answer;
}

inline c10::DispatchKey key_underneath() {
  return is_on_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
}

// Read late: a script may set LOCAL_RANK or ID after the import and before its first tensor.
inline c10::Device underneath() {
  static const c10::Device device = [] {
    if (!is_on_cuda()) {
      return c10::Device(c10::DeviceType::CPU);
    }
    const char* place = std::getenv("LOCAL_RANK") != nullptr ? std::getenv("LOCAL_RANK") : std::getenv("ID");
    const int cards = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
    TORCH_CHECK(cards > 0, "PILOTAGE_HPU_ON is cuda, but no CUDA card is available.");
    return c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(place == nullptr ? 0 : std::atoi(place) % cards));
  }();
  return device;
}

// Creates CUDA's context in a thread. Torch does this with its first kernel, and cuBLAS warns in a thread without one, such as that
// of backward(), if the first gradient is a matrix product.
inline void wake_thread() {
  [[maybe_unused]] thread_local const bool is_awake = [] {
    const c10::impl::VirtualGuardImpl cuda(c10::DeviceType::CUDA);
    cuda.queryStream(cuda.getStream(underneath()));
    return true;
  }();
}

// Makes the CUDA card current in this thread within a scope; does nothing on the CPU.
class Standing {
 public:
  Standing() {
    if (is_on_cuda()) {
      guard_.reset_device(underneath());
      wake_thread();
    }
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

inline c10::Allocator* allocator_underneath() {
  return c10::GetAllocator(underneath().type());
}

inline const at::Generator& default_generator_underneath() {
  return at::globalContext().defaultGenerator(draws_on_host() ? c10::Device(c10::DeviceType::CPU) : underneath());
}

inline at::Generator new_generator_underneath() {
  if (!is_on_cuda() || draws_on_host()) {
    return at::detail::createCPUGenerator();
  }
  return at::globalContext().getAcceleratorHooksInterface(c10::DeviceType::CUDA).getNewGenerator(underneath().index());
}

inline void wait_underneath() {
  if (is_on_cuda()) {
    c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).synchronizeDevice(underneath().index());
  }
}

} // namespace emulation
