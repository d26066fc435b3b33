#pragma once

// For tests: policies of all kinds with random parameters, and what they do on random observations.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/archive.h"
#include "menger/base/file_testing.h"
#include "menger/base/random.h"
#include "menger/collectors/policy.h"
#include "menger/policies/bundle.h"
#include "menger/policies/bundle_player.h"

namespace menger {

// What a policy is made from.
struct PolicyCase {
  std::string algorithm = "ppo";
  std::vector<std::pair<std::string, std::string>> options = {};  // Of the algorithm's section.
  Spec observation = Spec({LeafSpec::Box("observation", DataType::kFloat32, {4}, {-5}, {5})});
  LeafSpec action = LeafSpec::Discrete("action", 3);
  NetworkOptions network = {};
  TransformOptions transforms = {};
  std::string precision = "fp32";
};

// Numbers that are neither tiny nor huge instead of a new network's: weights, and statistics.
inline void CopyRandomised(const ArchiveReader& from, ArchiveWriter& to, Random& random) {
  for (const std::string& name : from.Names()) {
    if (name.ends_with("parameters")) {
      std::vector<float> values;
      from.Read(name, values);
      for (float& value : values) value += static_cast<float>(random.Uniform(-0.2, 0.2));
      to.Write(name, values);
    } else if (name.ends_with("/count")) {
      to.Write(name, 1000.0);
    } else if (name.ends_with("/mean") || name.ends_with("/squared")) {
      std::vector<double> values;
      from.Read(name, values);
      const bool mean = name.ends_with("/mean");
      for (double& value : values) value = mean ? random.Uniform(-1, 1) : random.Uniform(100, 9000);
      to.Write(name, values);
    } else {
      to.WriteBlob(name, from.ReadBlob(name));
    }
  }
}

inline std::unique_ptr<Algorithm> MakeTestAlgorithm(const PolicyCase& setup) {
  AlgorithmContext context{.environment = {.name = "test",
                                           .observation = setup.observation,
                                           .action = Spec({setup.action})},
                           .network = setup.network,
                           .transforms = setup.transforms,
                           .precision = setup.precision};
  std::unique_ptr<Algorithm> algorithm;
  for (auto& entry : AllAlgorithms()) {
    if (entry->name() != setup.algorithm) continue;
    Options options(setup.algorithm);
    entry->Declare(options);
    for (const auto& [name, text] : setup.options) options.SetFromText(name, text);
    if (setup.algorithm == "dqn") options.SetFromText("evaluation_epsilon", "0");
    algorithm = entry->Make(context);
  }
  const testing_files::Folder folder;
  ArchiveWriter made(folder / "made");
  algorithm->Save(made);
  made.Commit();
  ArchiveWriter randomised(folder / "randomised");
  Random random = Random::FromSeed(11);
  CopyRandomised(ArchiveReader(folder / "made"), randomised, random);
  randomised.Commit();
  ArchiveReader archive(folder / "randomised");
  algorithm->LoadParameters(archive);
  return algorithm;
}

// A random value of a leaf.
inline void FillRandomly(const LeafSpec& leaf, Random& random, std::byte* out) {
  for (std::int64_t i = 0; i < leaf.elements(); ++i) {
    const auto put = [&](auto value) {
      std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(value),
                  out + i * static_cast<std::int64_t>(sizeof(value)));
    };
    if (!leaf.counts.empty()) {
      put(std::int64_t{random.Integers(0, leaf.counts[i])});
    } else if (leaf.space == Space::kMask) {
      put(static_cast<std::uint8_t>(i == 0 || random.Integers(0, 2) == 1));
    } else if (leaf.dtype == DataType::kUint8) {
      put(static_cast<std::uint8_t>(random.Integers(0, 256)));
    } else if (leaf.dtype == DataType::kInt32) {
      put(static_cast<std::int32_t>(random.Integers(-9, 9)));
    } else if (leaf.dtype == DataType::kFloat64) {
      put(random.Uniform(-3, 3));
    } else {
      put(static_cast<float>(random.Uniform(-3, 3)));
    }
  }
}

// `rows` steps of `columns` episodes of random observations, with the policy's greedy actions as
// the program itself takes them. An episode begins in about one row of ten.
inline Slab PlayedByThePolicy(const PolicyCase& setup, Algorithm& algorithm, int rows,
                              int columns) {
  Slab slab({.observation = setup.observation,
             .state = algorithm.policies().spec().state,
             .action = Spec({setup.action}),
             .policy = algorithm.policies().spec().columns,
             .horizon = rows,
             .history = algorithm.policies().history(),
             .columns = ColumnLayout::Single(columns)});
  Random random = Random::FromSeed(7);
  const auto policy = algorithm.MakePolicy(PolicyMode::kGreedy, 0);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      slab.is_first(row)[column] = row == 0 || random.Integers(0, 10) == 0 ? 1 : 0;
      for (int leaf = 0; leaf < setup.observation.size(); ++leaf) {
        FillRandomly(setup.observation[leaf], random, slab.observation(leaf, row, column));
      }
    }
    policy->Act(slab, row, {.first = 0, .count = columns});
  }
  return slab;
}

}  // namespace menger
