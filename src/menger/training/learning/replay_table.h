#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/replay/replay_store.h"
#include "menger/training/learning/replay_options.h"

namespace menger {

// What a learner is made for, beside the recipe's options.
struct ReplayLearnerContext {
  int environments = 1;    // Columns of the slabs to come.
  int threads = 1;         // That learn, and gather a batch together.
  bool on_device = false;  // Learning is not the work of these threads.
  std::uint64_t seed = 0;
  // Items that were made more versions ago are dropped instead of learned from.
  std::optional<std::uint64_t> staleness_max;
  std::function<bool()> given_up = [] { return false; };  // As ServedReplayOptions's.
};

// What a run of this seed draws its batches by: a table with it draws the same, wherever it is.
std::uint64_t ReplayDrawSeed(std::uint64_t run_seed);

// Of the streams of so many environments.
int ReplayChunkSteps(const ReplayOptions& options, int environments);

// Items that so many steps are, where each adds as many as it can.
std::int64_t ItemsOf(std::int64_t steps, const ItemSteps& item);

// Throws FailedPrecondition, naming the bound, where the table has fewer items than learning begins
// with and lets go of some already: it would never begin.
void RequireRoomToBegin(const ReplayOptions& options, const ItemSteps& item,
                        const TableInfo& table);

// The store of one table, "replay", that a recipe's options ask for. Throws as
// ReplayOptions::Check; Unavailable where memory that was chosen cannot be had.
ReplayStoreOptions ReplayStoreFor(const ReplayOptions& options, const ReplayLearnerContext& context,
                                  const ReplayAlgorithm& algorithm);

}  // namespace menger
