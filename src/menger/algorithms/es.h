#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/episode_algorithm.h"
#include "menger/algorithms/es_model.h"
#include "menger/algorithms/es_worker.h"
#include "menger/algorithms/transforms.h"
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

  int history() const override { return model_.encoder->history(); }
  const PolicySpec& policy_spec() const override { return policy_spec_; }
  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) override;
  PolicyDescription DescribePolicy() const override;
  Publication& publication() override { return *publication_; }
  void Publish() override;
  std::int64_t parameter_count() const override { return model_.network->manifest().size(); }

  std::unique_ptr<LearningCycle> MakeCycle(const WorkerPlan& plan) override;

  // What its workers are made from.
  EsWorkerSpec WorkerSpec(const WorkerPlan& plan) const;

  // One update from what the pairs of an iteration gave, as drawn from `stream`. `progress` as for
  // LearningCycle::Learn.
  Metrics Learn(std::span<const PairOutcome> outcomes, const PairStream& stream,
                std::span<const float> noise, UpdateRule& update, double progress);

  const EsConfig& config() const { return config_; }
  std::int64_t iteration() const { return iteration_; }
  const std::vector<float>& published() const { return blob_; }

  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  void LoadParameters(ArchiveReader& archive) override;

 private:
  void LoadModel(const ArchiveReader& archive);
  void UpdateStatistics(std::span<const PairOutcome> outcomes);

  const EsConfig config_;
  const AlgorithmContext context_;
  EsModel model_;
  PolicySpec policy_spec_;
  std::optional<ObservationNormaliser> normaliser_;
  std::shared_ptr<Publication> publication_;
  std::vector<float> blob_;  // Parameters, then scales and shifts: what was published last.
  std::int64_t iteration_ = 0;
};

}  // namespace menger
