#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "menger/base/counter_random.h"
#include "menger/environments/environment.h"
#include "menger/tensor/slab.h"

namespace menger {

// For tests: a group of an environment over a slab of its own, one block of columns.
struct GroupUnderTest {
  GroupUnderTest(const EnvironmentEntry& entry, int columns, int horizon, GroupOptions options = {})
      : slab(MakeSlab({.observation = entry.spec.observation,
                       .state = {},
                       .action = entry.spec.action,
                       .policy = {},
                       .horizon = horizon,
                       .columns = ColumnLayout::Single(columns)},
                      entry)) {
    options.columns = slab.columns().block(0, 0);
    group = entry.make_group(options);
  }

  // Takes uniform-random actions over the whole slab, which is carried into itself first if
  // `go_on`. The actions depend on `salt`, the step of the run and the column alone.
  void Fill(std::uint64_t salt, bool go_on);

  // One random action for every column of a row; continuous ones reach 20% beyond their bounds.
  void WriteRandomActions(int row, std::uint64_t salt);

  Slab slab;
  std::unique_ptr<EnvironmentGroup> group;
};

inline void GroupUnderTest::WriteRandomActions(int row, std::uint64_t salt) {
  const CounterRandom random(salt, /*stream=*/0);
  const LeafSpec& leaf = group->spec().action[0];
  const auto step = static_cast<std::uint64_t>(slab.first_step() + row);
  for (int column = 0; column < slab.columns().columns(); ++column) {
    const auto words = random.Draw(column, step);
    if (leaf.space == Space::kDiscrete) {
      *slab.action<std::int64_t>(0, row, column) =
          static_cast<std::int64_t>(words[0] % static_cast<std::uint64_t>(leaf.counts[0]));
      continue;
    }
    for (int k = 0; k < leaf.elements(); ++k) {
      slab.action<float>(0, row, column)[k] =
          static_cast<float>(1.2 * leaf.high[0]) * (2 * CounterRandom::Uniform01(words[k]) - 1);
    }
  }
}

inline void GroupUnderTest::Fill(std::uint64_t salt, bool go_on) {
  if (go_on) slab.Carry(slab);
  for (int row = 0; row < slab.horizon(); ++row) {
    WriteRandomActions(row, salt);
    group->Step(slab, row);
  }
}

// Everything that a group writes into a slab, as bytes: equal texts mean equal bits.
inline std::string Fingerprint(const Slab& slab) {
  std::string text;
  const auto add = [&text](const void* from, std::size_t bytes) {
    text.append(static_cast<const char*>(from), bytes);
  };
  const auto width = static_cast<std::size_t>(slab.positions());
  const std::size_t item = slab.observation_bytes(0);
  for (int row = 0; row <= slab.horizon(); ++row) {
    add(slab.observation(0, row), width * item);
    add(slab.is_first(row), width);
    if (row == slab.horizon()) break;
    add(slab.reward(row), width * sizeof(double));
    add(slab.terminated(row), width);
    add(slab.truncated(row), width);
    add(slab.episode_end(row), width);
    add(slab.valid(row), width);
    add(slab.final_index(row), width * sizeof(std::int32_t));
    for (std::size_t i = 0; i < width; ++i) {
      const std::int32_t slot = slab.final_index(row)[i];
      if (slot >= 0) add(slab.final_observation(0, slot), item);
    }
  }
  return text;
}

}  // namespace menger
