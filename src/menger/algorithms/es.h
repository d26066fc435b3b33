#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/episode_algorithm.h"
#include "menger/algorithms/es_policy.h"
#include "menger/algorithms/es_worker.h"
#include "menger/algorithms/published_model.h"
#include "menger/algorithms/schedule.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [es]. Defaults are those of Salimans et al. 2017 for MuJoCo, with a smaller
// population and table.
struct EsConfig {
  std::int64_t pairs = 128;
  std::int64_t steps_min = 0;
  double deviation = 0.02;
  double learning_rate = 0.01;
  std::string learning_rate_schedule = "constant";
  double weight_decay = 0.005;
  double action_noise = 0.01;
  double observe_probability = 0.01;
  std::int64_t noise_entries = 4'000'000;

  void Declare(Options& options);
};

// Evolution Strategies (Salimans et al. 2017): the parameters move towards those random neighbours
// that earned more. No gradient of the network is needed, and what a worker tells is a few numbers
// an episode, because everybody knows the noise.
class Es final : public EpisodeAlgorithm {
 public:
  Es(const EsConfig& config, const AlgorithmContext& context);

  const PolicyMaker& policies() const override { return policies_; }
  Publication& publication() override { return published_.publication(); }
  void Publish() override { published_.Publish(); }
  std::int64_t parameter_count() const override { return published_.network().manifest().size(); }

  std::unique_ptr<LearningCycle> MakeCycle(const WorkerPlan& plan) override;

  // What its workers are made from.
  EsWorkerSpec WorkerSpec(const WorkerPlan& plan) const;

  // One update from what the pairs of an iteration gave, as drawn from `stream`: of several
  // learners, each has the pairs that come after those of the learners before. `progress` as for
  // LearningCycle::Learn.
  Metrics Learn(std::span<const PairOutcome> outcomes, const PairStream& stream,
                std::span<const float> noise, UpdateRule& update, double progress);

  const EsConfig& config() const { return config_; }
  std::int64_t iteration() const { return iteration_; }
  const std::vector<float>& published() const { return published_.published(); }

  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  void LoadParameters(ArchiveReader& archive) override;

 private:
  void UpdateStatistics(std::span<const PairOutcome> outcomes, UpdateRule& update);

  const EsConfig config_;
  const Schedule learning_rate_schedule_;
  const AlgorithmContext context_;
  const EsPolicies policies_;
  PublishedModel published_;
  std::int64_t iteration_ = 0;
};

}  // namespace menger
