#pragma once

// The inside of a Table: table.cc is what it does, table_content.cc how it is saved.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "menger/base/turn_queue.h"
#include "menger/base/version_distance.h"
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
        keeps_unsampled(options.KeepsUnsampled()),
        chunks(chunk_store),
        checker(options.items, options.bytes_max, chunks),
        items(options.items.columns.size(), static_cast<std::size_t>(options.items_max), chunks),
        sampler(MakeSelector(options.sampler)),
        remover(MakeSelector(options.remover)),
        limiter(options.rate_limiter),
        sampler_random(SeedSequence(options.seed).Spawn(0)),
        remover_random(SeedSequence(options.seed).Spawn(1)) {}

  bool InsertOne(const ItemDraft& draft, ItemKey& key);
  std::size_t InsertWhatFits(std::span<const ItemDraft> drafts, std::vector<ItemKey>* keys);
  bool Evict();
  void Remove(std::uint32_t slot);
  void Changed(std::uint32_t slot) {
    if (changes != nullptr) changes->Add(slot);
  }
  bool JournalFailed() const { return changes != nullptr && changes->gate().failed(); }

  std::int64_t Update(std::span<const PriorityUpdate> updates);
  double SamplesLeft(const Item& item) const;
  void RestoreLimiter(const TableContent& content);

  bool CanSample(std::int64_t count) const {
    return limiter.CanSample(count) && sampler->CanSelect();
  }
  static bool TooOld(const Item& item, const SampleRequest& request) {
    return request.staleness_max &&
           VersionDistance(item.versions.first, request.version) > *request.staleness_max;
  }
  bool Has(const ItemKey& key) const { return key.shard == options.shard && items.Has(key); }

  void DrawWhatIsAllowed(const SampleRequest& request, Sample& sample);
  void DrawMany(const SampleRequest& request, int count, Sample& sample);
  void DrawOneByOne(const SampleRequest& request, int count, Sample& sample);
  std::span<const Selection> DropStale(const SampleRequest& request,
                                       std::span<Selection> selections);
  void Give(const Selection& selection, Sample& sample);

  void CheckOpen() const;
  void Wake();

  std::string WhyNoInsert() const;
  std::string WhyNoSample() const;
  TableCounts Counts() const;

  const TableOptions options;
  const bool keeps_unsampled;
  ChunkStore& chunks;
  const DraftChecker checker;

  mutable std::mutex mutex;
  TurnQueue inserters;
  TurnQueue samplers;
  std::int64_t samples_wanted = 0;  // By the first of the samplers that wait.
  bool insert_refused = false;      // By the limiter, since anything was sampled.
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
  double priority_max = 1;
  std::uint32_t life = 0;
  TableChanges* changes = nullptr;  // A journal's, if there is one.

  // Kept for their memory.
  std::vector<Selection> selections;
  std::vector<std::uint32_t> slots;
  std::vector<double> priorities;
};

}  // namespace menger
