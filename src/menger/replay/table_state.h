#pragma once

// The inside of a Table: table.cc is what it does, table_content.cc how it is saved.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "menger/replay/draft_checker.h"
#include "menger/replay/item_pool.h"
#include "menger/replay/selectors/rate_limiter.h"
#include "menger/replay/selectors/selector.h"
#include "menger/replay/table.h"
#include "menger/replay/table_changes.h"
#include "menger/replay/table_content.h"

namespace menger {

class Sample;

// All but the constants is guarded by `mutex`.
struct Table::State {
  State(const TableOptions& table_options, ChunkStore& chunk_store)
      : options(table_options),
        chunks(chunk_store),
        checker(options.items, options.bytes_max, chunks),
        items(options.items.columns.size(), static_cast<std::size_t>(options.items_max), chunks),
        sampler(MakeSelector(options.sampler)),
        remover(MakeSelector(options.remover)),
        limiter(options.rate_limiter),
        sampler_random(SeedSequence(options.seed).Spawn(0)),
        remover_random(SeedSequence(options.seed).Spawn(1)) {}

  bool TryInsert(const ItemDraft& draft, ItemKey& key);
  bool Evict();
  void Remove(std::uint32_t slot);
  void Changed(std::uint32_t slot) {
    if (changes != nullptr) changes->Add(slot);
  }
  bool JournalFailed() const { return changes != nullptr && changes->gate().failed(); }

  bool CanSample(std::int64_t count) const {
    return limiter.CanSample(count) && sampler->CanSelect();
  }
  bool TooOld(const Item& item, const SampleRequest& request) const {
    const std::uint64_t first = item.versions.first;
    return request.staleness_max && request.version > first &&
           request.version - first > *request.staleness_max;
  }
  void Draw(const SampleRequest& request, int count, Sample& sample);
  void DrawOneByOne(const SampleRequest& request, int count, Sample& sample);
  void Give(const Selection& selection, Sample& sample);

  template <typename Ready>
  bool Await(std::unique_lock<std::mutex>& lock, std::condition_variable& event, int& waiting,
             const Deadline& deadline, Ready ready);
  void Wake();

  std::string WhyNoInsert() const;
  std::string WhyNoSample(std::int64_t count) const;
  TableCounts Counts() const;

  const TableOptions options;
  ChunkStore& chunks;
  const DraftChecker checker;

  mutable std::mutex mutex;
  std::condition_variable may_insert;
  std::condition_variable may_sample;
  int inserters_waiting = 0;
  int samplers_waiting = 0;
  std::int64_t samples_wanted = 0;  // No more than any of the waiting calls wants.
  bool changed = false;             // Since waiting calls were last woken.
  bool closed = false;

  ItemPool items;
  std::unique_ptr<Selector> sampler;
  std::unique_ptr<Selector> remover;
  RateLimiter limiter;
  Random sampler_random;
  Random remover_random;
  std::int64_t evicted = 0;
  std::int64_t dropped_stale = 0;
  std::int64_t stale_keys = 0;
  TableChanges* changes = nullptr;  // A journal's, if there is one.

  // Kept for their memory.
  std::vector<Selection> selections;
  std::vector<std::uint32_t> slots;
  std::vector<double> priorities;
};

}  // namespace menger
