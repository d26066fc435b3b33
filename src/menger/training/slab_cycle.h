#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/learning_cycle.h"
#include "menger/collectors/collector.h"
#include "menger/training/slab_consumer.h"

namespace menger {

// A collector fills a slab, a consumer learns from it.
class SlabCycle final : public LearningCycle {
 public:
  // `environments`: of the collector.
  SlabCycle(std::unique_ptr<Collector> collector, int environments,
            std::unique_ptr<SlabConsumer> consumer)
      : environments_(environments),
        consumer_(std::move(consumer)),
        collector_(std::move(collector)) {}

  void Collect(std::int64_t steps_max) override {
    const std::int64_t rows = (steps_max + environments_ - 1) / environments_;
    slab_ = &collector_->Collect(static_cast<int>(std::min<std::int64_t>(rows, kRowsMax)));
  }
  Metrics Learn(UpdateRule& update, double progress) override {
    return consumer_->Consume(*slab_, update, progress);
  }
  std::vector<std::string> metric_names() const override { return consumer_->metric_names(); }
  bool updated() const override { return consumer_->updated(); }

  std::int64_t steps() const override { return ValidSteps(*slab_); }
  std::span<const EpisodeResult> episodes() const override { return collector_->episodes(); }
  std::vector<EnvironmentMetric> TakeMetrics() override { return collector_->TakeMetrics(); }
  std::int64_t steps_under_way() const override { return collector_->steps_under_way(); }
  CollectorTimes times() const override { return collector_->times(); }

  void SaveCollection(ArchiveWriter& archive) const override { collector_->Save(archive); }
  void LoadCollection(ArchiveReader& archive) override { collector_->Load(archive); }
  void SaveLearning(ArchiveWriter& archive) const override { consumer_->Save(archive); }
  void LoadLearning(ArchiveReader& archive) override { consumer_->Load(archive); }

 private:
  static constexpr std::int64_t kRowsMax = std::numeric_limits<int>::max();

  const int environments_;
  const std::unique_ptr<SlabConsumer> consumer_;
  const std::unique_ptr<Collector> collector_;  // Last: its threads end first.
  Slab* slab_ = nullptr;                        // What was collected last.
};

}  // namespace menger
