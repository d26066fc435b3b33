#pragma once

#include <memory>
#include <utility>

#include "menger/algorithms/learning_cycle.h"
#include "menger/collectors/collector.h"
#include "menger/training/slab_consumer.h"

namespace menger {

// A collector fills a slab, a consumer learns from it.
class SlabCycle final : public LearningCycle {
 public:
  SlabCycle(std::unique_ptr<Collector> collector, std::unique_ptr<SlabConsumer> consumer)
      : consumer_(std::move(consumer)), collector_(std::move(collector)) {}

  void Collect() override { slab_ = &collector_->Collect(); }
  Metrics Learn(UpdateRule& update, double progress) override {
    return consumer_->Consume(*slab_, update, progress);
  }

  std::int64_t steps() const override { return ValidSteps(*slab_); }
  std::span<const EpisodeResult> episodes() const override { return collector_->episodes(); }
  std::vector<EnvironmentMetric> TakeMetrics() override { return collector_->TakeMetrics(); }
  CollectorTimes times() const override { return collector_->times(); }

  void SaveCollection(ArchiveWriter& archive) const override { collector_->Save(archive); }
  void LoadCollection(ArchiveReader& archive) override { collector_->Load(archive); }
  void SaveLearning(ArchiveWriter& archive) const override { consumer_->Save(archive); }
  void LoadLearning(ArchiveReader& archive) override { consumer_->Load(archive); }

 private:
  const std::unique_ptr<SlabConsumer> consumer_;
  const std::unique_ptr<Collector> collector_;  // Last: its threads end first.
  Slab* slab_ = nullptr;                        // What was collected last.
};

}  // namespace menger
