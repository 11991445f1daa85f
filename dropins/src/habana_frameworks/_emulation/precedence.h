// Makes torch prefer the card to CUDA: torch supports one accelerator, and a build with CUDA raises if there is a second one.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include <ATen/detail/CUDAHooksInterface.h>

namespace emulation {

inline bool is_not_built(const at::AcceleratorHooksInterface*) {
  return false;
}

// The index of a virtual function in the table of its class, taken from a member pointer (Itanium C++ ABI, used on Linux).
inline size_t place_in_table(bool (at::AcceleratorHooksInterface::*function)() const) {
  std::ptrdiff_t offset = 0;
  std::memcpy(&offset, &function, sizeof(offset));
#if !defined(__aarch64__)
  offset -= 1;
#endif
  return static_cast<size_t>(offset) / sizeof(void*);
}

// Makes the CUDA hooks report that CUDA is not built in, and changes nothing else: CUDA can be used as before,
// but torch no longer considers it the accelerator. The object gets a copied virtual table with this one entry replaced.
inline bool stand_before_cuda() {
  auto& cuda = const_cast<at::CUDAHooksInterface&>(at::detail::getCUDAHooks());
  if (!cuda.isBuilt()) {
    return false;
  }
  constexpr size_t kBefore = 2; // the offset to the top and the type information, which precede the first function
  static std::array<void*, 128> table;
  auto**& present = reinterpret_cast<void**&>(cuda);
  std::copy_n(present - kBefore, table.size(), table.begin());
  table[kBefore + place_in_table(&at::AcceleratorHooksInterface::isBuilt)] = reinterpret_cast<void*>(&is_not_built);
  present = table.data() + kBefore;
  TORCH_CHECK(!at::detail::getCUDAHooks().isBuilt(), "The emulated Gaudi device cannot be used beside CUDA in this build of torch.");
  return true;
}

} // namespace emulation
