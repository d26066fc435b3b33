#pragma once

// For tests: a small kind of steps and items, and what an item of a known stream must show.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/table.h"
#include "menger/replay/trajectory_writer.h"

namespace menger::testing_trajectories {

inline constexpr int kFrame = 5;

inline Spec Steps() {
  return Spec({LeafSpec::Scalar("number", DataType::kInt64),
               LeafSpec::Box("frame", DataType::kUint8, {kFrame}, {0}, {255})});
}

// Stacks with zeros in front, numbers with zeros behind, and the stack after.
inline ItemSpec Items() {
  return {
      .steps = Steps(),
      .columns = {{.name = "observation", .leaf = "frame", .rows = 4, .padding = Padding::kFront},
                  {.name = "numbers", .leaf = "number", .rows = 6, .padding = Padding::kBack},
                  {.name = "next", .leaf = "frame", .rows = 4, .padding = Padding::kFront}}};
}

inline TableOptions Options(std::int64_t items_max = 100) {
  return {.name = "experience",
          .items = Items(),
          .sampler = {.kind = SelectorKind::kUniform},
          .rate_limiter = RateLimiterOptions::MinSize(1),
          .items_max = items_max};
}

inline std::size_t ChunkBytes(int chunk_steps) { return ChunkLayout(Steps(), chunk_steps).bytes(); }

inline Deadline Briefly() { return Deadline::After(std::chrono::milliseconds(20)); }
inline Deadline Later() { return Deadline::After(std::chrono::seconds(60)); }

// What a step of a stream holds: a function of its number alone, never zero.
struct Step {
  explicit Step(std::int64_t value) : number(value) {
    for (int i = 0; i < kFrame; ++i) frame[i] = static_cast<std::uint8_t>(1 + (number + i) % 255);
  }
  std::int64_t number;
  std::uint8_t frame[kFrame];
};

inline std::int64_t Append(TrajectoryWriter& writer, std::int64_t number,
                           std::uint64_t version = 0) {
  const Step step(number);
  const std::byte* const leaves[] = {reinterpret_cast<const std::byte*>(&step.number),
                                     reinterpret_cast<const std::byte*>(step.frame)};
  return writer.Append(leaves, version);
}

// What the columns of an item must show, put together step by step: bytes a column. Step s of the
// stream has number `base` + s.
inline std::vector<std::vector<std::uint8_t>> Expected(std::int64_t base,
                                                       const std::vector<StepRange>& ranges) {
  const ItemSpec items = Items();
  std::vector<std::vector<std::uint8_t>> columns;
  for (std::size_t c = 0; c < ranges.size(); ++c) {
    std::vector<std::uint8_t> bytes;
    for (int i = 0; i < ranges[c].count; ++i) {
      const Step step(base + ranges[c].first + i);
      const auto* const number = reinterpret_cast<const std::uint8_t*>(&step.number);
      if (items.columns[c].leaf == "frame") bytes.insert(bytes.end(), step.frame, step.frame + 5);
      if (items.columns[c].leaf == "number") bytes.insert(bytes.end(), number, number + 8);
    }
    const std::size_t missing = items.LeafOf(items.columns[c]).bytes() *
                                static_cast<std::size_t>(items.columns[c].rows - ranges[c].count);
    bytes.insert(items.columns[c].padding == Padding::kFront ? bytes.begin() : bytes.end(), missing,
                 0);
    columns.push_back(std::move(bytes));
  }
  return columns;
}

inline std::vector<std::vector<std::uint8_t>> Gathered(std::span<const BatchColumn> batch,
                                                       int item) {
  std::vector<std::vector<std::uint8_t>> columns;
  for (const BatchColumn& column : batch) {
    columns.emplace_back(column.item_bytes);
    std::memcpy(columns.back().data(),
                column.data + column.item_bytes * static_cast<std::size_t>(item),
                column.item_bytes);
  }
  return columns;
}

}  // namespace menger::testing_trajectories
