#pragma once

#include <memory>
#include <vector>

#include "menger/replay/client/replay_client.h"
#include "menger/replay/replay_store.h"

namespace menger {

// The tables of a store of this process: direct calls.
class LocalReplay final : public ReplayClient {
 public:
  explicit LocalReplay(ReplayStore& store) : store_(store) {}  // Which outlives it.

  int tables() const override { return store_.tables(); }
  const TableOptions& table(int index) const override { return store_.table(index).options(); }

  std::unique_ptr<ReplayWriter> NewWriter(const Spec& steps, const WriterOptions& options,
                                          int streams) override;
  std::unique_ptr<ReplaySampler> NewSampler(int table) override;

  Found UpdatePriorities(int table, std::span<const PriorityUpdate> updates) override {
    return store_.table(table).UpdatePriorities(updates);
  }
  Found Delete(int table, std::span<const ItemKey> keys) override {
    return store_.table(table).Delete(keys);
  }
  TableInfo info(int table) override { return store_.table(table).info(); }

  // Of a table that may have no store.
  static std::unique_ptr<ReplaySampler> SamplerOf(Table& table);

  // The streams of one of its writers, in their order: they are saved with the store
  // (ReplayCheckpoint). The writer owns them.
  static std::vector<TrajectoryWriter*> StreamsOf(ReplayWriter& writer);

 private:
  ReplayStore& store_;
};

}  // namespace menger
