#include "menger/training/slab_consumer.h"

#include <algorithm>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/training/experiment.h"
#include "menger/training/replay_learner.h"

namespace menger {
namespace {

// One update from each slab; nothing is kept.
class FreshSlabs final : public SlabConsumer {
 public:
  explicit FreshSlabs(SlabAlgorithm& algorithm) : algorithm_(algorithm) {}

  Metrics Consume(Slab& slab, UpdateRule& update, double progress) override {
    Slab* const slabs = &slab;
    return algorithm_.Learn({&slabs, 1}, update, progress);
  }
  std::vector<std::string> metric_names() const override { return algorithm_.metric_names(); }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  SlabAlgorithm& algorithm_;
};

}  // namespace

std::unique_ptr<SlabConsumer> MakeSlabConsumer(const Experiment& experiment, Algorithm& algorithm,
                                               const std::function<bool()>& given_up) {
  if (algorithm.data_rule() == DataRule::kSlabs) {
    return std::make_unique<FreshSlabs>(static_cast<SlabAlgorithm&>(algorithm));
  }
  const CollectorOptions& collector = experiment.collector;
  return std::make_unique<ReplayLearner>(
      experiment.replay,
      ReplayLearnerContext{.environments = static_cast<int>(collector.environments),
                           .threads = static_cast<int>(experiment.learner_threads.value),
                           .on_device = experiment.device != "cpu",
                           .seed = static_cast<std::uint64_t>(experiment.seed),
                           .given_up = given_up},
      static_cast<ReplayAlgorithm&>(algorithm));
}

}  // namespace menger
