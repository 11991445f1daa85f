// What the card's lazy mode would have gathered: operations between two cuts, with fingerprints of their names and shapes.
#pragma once

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

inline void gather(const c10::OperatorHandle& operation) {
  const std::lock_guard<std::mutex> lock(gathering);
  gathered.operations += 1;
  // An operator's schema stays where it is for the life of the process.
  gathered.structure = c10::hash_combine(gathered.structure, reinterpret_cast<uintptr_t>(&operation.schema()));
}

inline void gather(const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(gathering);
  auto fingerprint = c10::hash_combine(gathered.shapes, static_cast<size_t>(tensor.scalar_type()));
  for (const auto size : tensor.sizes()) {
    fingerprint = c10::hash_combine(fingerprint, static_cast<size_t>(size));
  }
  gathered.shapes = fingerprint;
}

inline void end_graph(bool by_reading) {
  const std::lock_guard<std::mutex> lock(gathering);
  // Reading without work before it starts nothing on the card; a mark is kept, so that idle ones can be counted.
  if (gathered.operations > 0 || !by_reading) {
    gathered.cut_by_reading = by_reading;
    cut.push_back(gathered);
  }
  gathered = Graph{};
}

} // namespace emulation
