// The card before CUDA: torch has one accelerator, and a build with CUDA takes a second one for an error.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include <ATen/detail/CUDAHooksInterface.h>

namespace emulation {

inline bool is_not_built(const at::AcceleratorHooksInterface*) {
  return false;
}

// Where a pointer to a virtual function says that the function stands in the table of its class (the C++ ABI of Linux).
inline size_t place_in_table(bool (at::AcceleratorHooksInterface::*function)() const) {
  std::ptrdiff_t offset = 0;
  std::memcpy(&offset, &function, sizeof(offset));
#if !defined(__aarch64__)
  offset -= 1;
#endif
  return static_cast<size_t>(offset) / sizeof(void*);
}

// Lets the hooks of CUDA answer that CUDA is not built in, and leaves all else of them as it is: CUDA can be used as before,
// it is only no longer what torch calls the accelerator. The object gets a table of virtual functions with that one changed.
inline bool stand_before_cuda() {
  auto& cuda = const_cast<at::CUDAHooksInterface&>(at::detail::getCUDAHooks());
  if (!cuda.isBuilt()) {
    return false;
  }
  constexpr size_t kBefore = 2; // the offset to the top and the type, which stand before the first function
  static std::array<void*, 128> table;
  auto**& present = reinterpret_cast<void**&>(cuda);
  std::copy_n(present - kBefore, table.size(), table.begin());
  table[kBefore + place_in_table(&at::AcceleratorHooksInterface::isBuilt)] = reinterpret_cast<void*>(&is_not_built);
  present = table.data() + kBefore;
  TORCH_CHECK(!at::detail::getCUDAHooks().isBuilt(), "The emulated Gaudi device cannot stand beside CUDA in this build of torch.");
  return true;
}

} // namespace emulation
