// The graphs that lazy mode would have built: the operations between two cuts, with hashes of their names and shapes.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/hash.h>

namespace emulation {

struct Graph {
  int64_t operations = 0;
  uint64_t structure = 0;
  uint64_t shapes = 0;
  int64_t cut_by_reading = 0;
};

inline std::mutex gathering;
inline Graph gathered;
inline std::vector<Graph> cut;

// Called when reading a value ends a graph, while the reading line is still running. Set only in lazy mode:
// without it nothing is recorded, and operations are not slowed down.
inline std::atomic<void (*)()> tell_of_reading{nullptr};

inline bool is_gathering() {
  return tell_of_reading.load(std::memory_order_relaxed) != nullptr;
}

inline void gather(const c10::OperatorHandle& operation) {
  if (!is_gathering()) {
    return;
  }
  const std::lock_guard<std::mutex> lock(gathering);
  gathered.operations += 1;
  // The address of an operator's schema is stable while the process runs.
  gathered.structure = c10::hash_combine(gathered.structure, reinterpret_cast<uintptr_t>(&operation.schema()));
}

inline void gather(const at::Tensor& tensor) {
  if (!is_gathering()) {
    return;
  }
  const std::lock_guard<std::mutex> lock(gathering);
  auto fingerprint = c10::hash_combine(gathered.shapes, static_cast<size_t>(tensor.scalar_type()));
  for (const auto size : tensor.sizes()) {
    fingerprint = c10::hash_combine(fingerprint, static_cast<size_t>(size));
  }
  gathered.shapes = fingerprint;
}

// Reading a value without pending work starts nothing on the card; a mark is recorded anyway, to count idle ones.
inline bool cut_graph(bool by_reading) {
  const std::lock_guard<std::mutex> lock(gathering);
  const bool is_kept = gathered.operations > 0 || !by_reading;
  if (is_kept) {
    gathered.cut_by_reading = by_reading;
    cut.push_back(gathered);
  }
  gathered = Graph{};
  return is_kept;
}

inline void end_graph_by_reading() {
  const auto tell = tell_of_reading.load();
  if (tell != nullptr && cut_graph(/*by_reading=*/true)) {
    tell();
  }
}

} // namespace emulation
