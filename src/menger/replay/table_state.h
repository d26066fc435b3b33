#pragma once

// The inside of a Table: table.cc is what it does, table_streams.cc what it passes over,
// table_content.cc how it is saved.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/base/turn_queue.h"
#include "menger/base/version_distance.h"
#include "menger/replay/draft_checker.h"
#include "menger/replay/insert_streams.h"
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

  bool InsertOne(const ItemDraft& draft, ItemKey& key) MENGER_REQUIRES(mutex);
  std::size_t InsertWhatFits(std::span<const ItemDraft> drafts, std::uint64_t stream,
                             std::vector<ItemKey>* keys) MENGER_REQUIRES(mutex);
  std::size_t PassOver(std::span<const ItemDraft> drafts, std::uint64_t stream,
                       std::vector<ItemKey>* keys) MENGER_REQUIRES(mutex);
  bool Evict() MENGER_REQUIRES(mutex);
  void Remove(std::uint32_t slot) MENGER_REQUIRES(mutex);
  void Changed(std::uint32_t slot) MENGER_REQUIRES(mutex) {
    if (changes != nullptr) changes->Add(slot);
  }
  bool JournalFailed() const MENGER_REQUIRES(mutex) {
    return changes != nullptr && changes->gate().failed();
  }

  std::int64_t Update(std::span<const PriorityUpdate> updates) MENGER_REQUIRES(mutex);
  double SamplesLeft(const Item& item) const;
  void RestoreLimiter(const TableContent& content) MENGER_REQUIRES(mutex);

  bool CanSample(std::int64_t count) const MENGER_REQUIRES(mutex) {
    return limiter.CanSample(count) && sampler->CanSelect();
  }
  static bool TooOld(const Item& item, const SampleRequest& request) {
    return request.staleness_max &&
           VersionDistance(item.versions.first, request.version) > *request.staleness_max;
  }
  bool Has(const ItemKey& key) const MENGER_REQUIRES(mutex) {
    return key.shard == options.shard && items.Has(key);
  }

  void DrawWhatIsAllowed(const SampleRequest& request, Sample& sample) MENGER_REQUIRES(mutex);
  void DrawMany(const SampleRequest& request, int count, Sample& sample) MENGER_REQUIRES(mutex);
  void DrawOneByOne(const SampleRequest& request, int count, Sample& sample) MENGER_REQUIRES(mutex);
  std::span<const Selection> DropStale(const SampleRequest& request,
                                       std::span<Selection> selections) MENGER_REQUIRES(mutex);
  void Give(const Selection& selection, Sample& sample) MENGER_REQUIRES(mutex);

  void CheckOpen() const MENGER_REQUIRES(mutex);
  void Wake() MENGER_REQUIRES(mutex);

  std::string WhyNoInsert() const MENGER_REQUIRES(mutex);
  std::string WhyNoSample() const MENGER_REQUIRES(mutex);
  TableCounts Counts() const MENGER_REQUIRES(mutex);

  const TableOptions options;
  const bool keeps_unsampled;
  ChunkStore& chunks;
  const DraftChecker checker;

  mutable Mutex mutex;
  TurnQueue inserters MENGER_GUARDED_BY(mutex);
  TurnQueue samplers MENGER_GUARDED_BY(mutex);
  std::int64_t samples_wanted MENGER_GUARDED_BY(mutex) =
      0;  // By the first of the samplers that wait.
  bool insert_refused MENGER_GUARDED_BY(mutex) =
      false;                                      // By the limiter, since anything was sampled.
  bool changed MENGER_GUARDED_BY(mutex) = false;  // Since waiting calls were last woken.
  bool closed MENGER_GUARDED_BY(mutex) = false;

  ItemPool items MENGER_GUARDED_BY(mutex);
  std::unique_ptr<Selector> sampler MENGER_GUARDED_BY(mutex);
  std::unique_ptr<Selector> remover MENGER_GUARDED_BY(mutex);
  RateLimiter limiter MENGER_GUARDED_BY(mutex);
  Random sampler_random MENGER_GUARDED_BY(mutex);
  Random remover_random MENGER_GUARDED_BY(mutex);
  std::int64_t evicted MENGER_GUARDED_BY(mutex) = 0;
  std::int64_t dropped_stale MENGER_GUARDED_BY(mutex) = 0;
  std::int64_t stale_keys MENGER_GUARDED_BY(mutex) = 0;
  std::int64_t repeated MENGER_GUARDED_BY(mutex) = 0;
  std::int64_t items_sampled MENGER_GUARDED_BY(mutex) = 0;
  InsertStreams streams MENGER_GUARDED_BY(mutex);
  double priority_max MENGER_GUARDED_BY(mutex) = 1;
  std::uint32_t life MENGER_GUARDED_BY(mutex) = 0;
  TableChanges* changes MENGER_GUARDED_BY(mutex) = nullptr;  // A journal's, if there is one.

  // Kept for their memory.
  std::vector<Selection> selections MENGER_GUARDED_BY(mutex);
  std::vector<std::uint32_t> slots MENGER_GUARDED_BY(mutex);
  std::vector<double> priorities MENGER_GUARDED_BY(mutex);
};

}  // namespace menger
