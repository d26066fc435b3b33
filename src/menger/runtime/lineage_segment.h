#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "menger/runtime/ids.h"

namespace menger {

// The record of the control store that holds many specifications: a head with the program's build
// and a checksum, then of each its id, its size and its bytes.
class LineageSegmentWriter {
 public:
  explicit LineageSegmentWriter(std::uint64_t build);

  void Add(const Id& id, std::span<const std::byte> specification);
  std::size_t size() const { return value_.size(); }
  std::string Finish() &&;

  static constexpr std::size_t kHeadBytes = 32;
  static constexpr std::size_t kItemBytes = 24;  // Before each specification.

 private:
  std::string value_;
};

// Throws FailedPrecondition if it is another build's, and DataLoss for what Finish did not return.
void ReadLineageSegment(
    std::string_view value, std::uint64_t build,
    const std::function<void(const Id& id, std::span<const std::byte> specification)>& visit);

}  // namespace menger
