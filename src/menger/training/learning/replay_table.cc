#include "menger/training/learning/replay_table.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/chunk_store.h"

namespace menger {
namespace {

constexpr std::uint64_t kDrawStream = 3;  // Spawned from the run's seed: which items are drawn.

// Nobody chose this bound, so a machine that has less is no error.
std::size_t AtMost(std::size_t bytes, std::size_t available) {
  if (bytes <= available) return bytes;
  LogWarning(
      "replay.capacity may need {} of memory, and gets {}, three quarters of what this process can "
      "have: once that is full, older steps go (replay.bytes_max sets another bound)",
      MemoryText(static_cast<double>(bytes)), MemoryText(static_cast<double>(available)));
  return available;
}

// What is left for steps, of three quarters: the rest is for all else. Throws Unavailable where
// what was chosen cannot be.
std::size_t MemoryForSteps(const ReplayOptions& options, const TableOptions& table) {
  const double items =
      static_cast<double>(table.items_max) * static_cast<double>(table.ItemBytes());
  RequireMemory(items,
                fmt::format("replay (replay.capacity = {}, without its steps)", options.capacity));
  RequireMemory(items + static_cast<double>(options.bytes_max),
                fmt::format("replay (replay.capacity = {}, replay.bytes_max = {})",
                            options.capacity, options.bytes_max));
  return static_cast<std::size_t>((static_cast<double>(MemoryLimit()) - items) / 4 * 3);
}

// More steps than an item reaches back.
int Reach(const ItemSpec& items) {
  int rows = 0;
  for (const ItemColumn& column : items.columns) rows += column.rows;
  return std::max(64, rows);
}

}  // namespace

std::uint64_t ReplayDrawSeed(std::uint64_t run_seed) {
  return SeedSequence(run_seed).Spawn(kDrawStream).GenerateState64(1)[0];
}

// A chunk is freed when all its steps are too old. Where many environments share a small capacity,
// chunks shrink: so what is kept in vain stays small beside it.
int ReplayChunkSteps(const ReplayOptions& options, int environments) {
  const std::int64_t share = options.capacity / environments;
  return static_cast<int>(std::clamp<std::int64_t>(
      share / 4, std::min<std::int64_t>(8, options.chunk_steps), options.chunk_steps));
}

std::int64_t ItemsOf(std::int64_t steps, const ItemSteps& item) {
  return (steps + item.added - 1) / item.added;
}

void RequireRoomToBegin(const ReplayOptions& options, const ItemSteps& item,
                        const TableInfo& table) {
  if (table.items >= ItemsOf(options.min_size, item) || table.evicted == 0) return;
  const std::string bound = options.address.empty()
                                ? fmt::format("replay.bytes_max = {}", options.bytes_max)
                                : fmt::format("table '{}' of the server at replay.address = {}",
                                              options.table, options.address);
  throw FailedPrecondition(
      "{} has room for {} steps, fewer than replay.min_size = {}: learning would never start",
      bound, table.items * item.added, options.min_size);
}

ReplayStoreOptions ReplayStoreFor(const ReplayOptions& options, const ReplayLearnerContext& context,
                                  const ReplayAlgorithm& algorithm) {
  options.Check();
  const ItemSteps item = algorithm.item_steps();
  TableOptions table{.name = "replay",
                     .items = algorithm.items(),
                     .rate_limiter = RateLimiterOptions::MinSize(ItemsOf(options.min_size, item)),
                     .items_max = ItemsOf(options.capacity, item),
                     .bytes_max = static_cast<std::size_t>(options.bytes_max),
                     .seed = ReplayDrawSeed(context.seed)};
  if (options.sampler == "prioritised") {
    table.sampler = {.kind = SelectorKind::kPrioritised,
                     .exponent = options.priority_exponent,
                     .stratified = options.stratified};
  }
  const std::size_t available = MemoryForSteps(options, table);
  const int steps = ReplayChunkSteps(options, context.environments);
  const std::size_t chunk = ChunkLayout(table.items.steps, steps).bytes();
  const std::int64_t writers =
      (4 + (64 + Reach(table.items)) / steps) * std::int64_t{context.environments};
  if (options.bytes_max == 0) {
    // Every episode adds a step, its final observation: twice as many steps as decisions is the
    // worst case, episodes of one step. Memory is taken as it is used.
    table.bytes_max =
        AtMost(chunk * static_cast<std::size_t>(2 * options.capacity / steps + writers), available);
  }
  return {.tables = {std::move(table)}, .writer_bytes = chunk * static_cast<std::size_t>(writers)};
}

}  // namespace menger
