// What the card's lazy mode would have gathered: operations between two cuts, with fingerprints of their names and shapes.
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

// Told of a graph that reading a value has ended, while the line that reads is still running. Set in lazy mode alone:
// without it nothing is gathered, and operations are not held up.
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
  // An operator's schema stays where it is for the life of the process.
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

// Reading without work before it starts nothing on the card; a mark is kept, so that idle ones can be counted.
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
