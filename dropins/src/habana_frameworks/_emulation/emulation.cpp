// The device type "hpu" without the card: registered with torch when this library is loaded.
#include <new>

#include "autocast.h"
#include "choosing.h"
#include "device.h"
#include "operations.h"
#include "precedence.h"

namespace {

using torch::CppFunction;

c10::impl::DeviceGuardImplRegistrar guard(c10::DeviceType::HPU, new emulation::Guard());

const bool memory_is_known = [] {
  c10::SetAllocator(c10::DeviceType::HPU, emulation::allocator());
  return true;
}();

// A composite kernel would split an operation for which the computing device has its own kernel, and round differently.
std::vector<c10::OperatorName> with_a_kernel_underneath_and_a_composite_one() {
  std::vector<c10::OperatorName> names;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) {
      continue;
    }
    const auto operation = dispatcher.findOp(name);
    const bool has_kernel = operation && operation->hasKernelForDispatchKey(emulation::key_underneath());
    const bool has_composite = has_kernel &&
        (operation->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         operation->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         operation->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional));
    if (has_composite && !operation->hasKernelForDispatchKey(c10::DispatchKey::HPU)) {
      names.push_back(name);
    }
  }
  return names;
}

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

} // namespace

namespace at {
using emulation::Hooks;
C10_REGISTER_CLASS(HPUHooksRegistry, HPUHooks, Hooks)
} // namespace at

namespace {

// Torch looks up the hooks once and caches them. If it did so before this library was loaded, it has cached an empty object,
// which has no members and can be replaced in place by ours.
const bool torch_had_asked = [] {
  static_assert(sizeof(emulation::Hooks) == sizeof(at::HPUHooksInterface));
  const auto& known = at::detail::getHPUHooks();
  if (known.hasHPU()) {
    return false;
  }
  new (const_cast<at::HPUHooksInterface*>(&known)) emulation::Hooks();
  return true;
}();

const bool stands_before_cuda = emulation::stand_before_cuda();

} // namespace

TORCH_LIBRARY_IMPL(_, HPU, library) {
  library.fallback(CppFunction::makeFromBoxedFunction<&emulation::run_beneath>());
}

TORCH_LIBRARY_IMPL(aten, HPU, library) {
  library.impl("_copy_from", &emulation::copy_from);
  library.impl("_copy_from_and_resize", &emulation::copy_from_and_resize);
  library.impl("_local_scalar_dense", &emulation::read_number);
  library.impl("resize_", &emulation::resize);
  library.impl("set_", &emulation::set_empty);
  library.impl("set_.source_Storage", &emulation::set_storage);
  library.impl("set_.source_Storage_storage_offset", &emulation::set_view);
  library.impl("set_.source_Tensor", &emulation::set_tensor);
  library.impl("_efficientzerotensor", &emulation::zeros_for_gradients);
  library.impl("record_stream", &emulation::record_stream);
  // These choose among kernels by the type of the device.
  for (const char* name : {"convolution", "convolution_backward", "_convolution", "linalg_lstsq"}) {
    library.impl(name, CppFunction::makeFromBoxedFunction<&emulation::run_beneath>());
  }
  if (emulation::is_on_cuda()) {
    library.impl("_batch_norm_impl_index", &emulation::normalize_batch);
  }
  for (const auto& name : with_a_kernel_underneath_and_a_composite_one()) {
    library.impl(full_name(name).c_str(), CppFunction::makeFromBoxedFunction<&emulation::run_beneath>());
  }
}

TORCH_LIBRARY_IMPL(aten, AutogradHPU, library) {
  if (emulation::is_on_cuda()) {
    library.impl("_batch_norm_impl_index", &emulation::normalize_batch);
  }
}

// Copying resolves lazy conjugate and negative bits, so it must receive such tensors unchanged.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(_, AutocastHPU, library) {
  library.fallback(CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastHPU, library) {
  emulation::register_autocast(library);
}

extern "C" {

bool came_late() {
  return torch_had_asked;
}

int64_t memory_allocated() {
  return emulation::allocated.load();
}

int64_t memory_peak() {
  return emulation::peak.load();
}

void reset_memory_peak() {
  emulation::peak.store(emulation::allocated.load());
}

// Allocations, releases, and the largest allocation in bytes.
void memory_counts(int64_t* place) {
  place[0] = emulation::allocations.load();
  place[1] = emulation::releases.load();
  place[2] = emulation::largest.load();
}

// Allocations that are still in use stay counted.
void reset_memory_counts() {
  emulation::allocations.fetch_sub(emulation::releases.exchange(0));
  emulation::largest.store(0);
}

// Start lazy mode, or end it without reporting.
void gather_graphs(void (*tell_of_reading)()) {
  emulation::tell_of_reading.store(tell_of_reading);
}

void mark() {
  emulation::cut_graph(/*by_reading=*/false);
}

// Returns the number of finished graphs, copies as many as fit, and drops those.
int64_t take_graphs(emulation::Graph* place, int64_t room) {
  const std::lock_guard<std::mutex> lock(emulation::gathering);
  const auto taken = std::min<int64_t>(room, static_cast<int64_t>(emulation::cut.size()));
  std::copy_n(emulation::cut.begin(), taken, place);
  emulation::cut.erase(emulation::cut.begin(), emulation::cut.begin() + taken);
  return taken;
}
}
