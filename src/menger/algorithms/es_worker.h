#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/es_policy.h"
#include "menger/algorithms/noise_table.h"
#include "menger/base/options.h"
#include "menger/environments/worker_environments.h"
#include "menger/runtime/runtime.h"
#include "menger/tensor/slab.h"
#include "menger/tensor/tensor_view.h"

namespace menger {

// Sums over observations, element by element; empty where none were kept.
struct ObservationSums {
  double count = 0;
  std::vector<double> sum;
  std::vector<double> squares;

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(count, sum, squares);
  }
};

// What two mirrored episodes gave: with the noise added to the parameters, and subtracted.
struct PairOutcome {
  std::array<double, 2> returns = {0, 0};  // Sums of raw rewards.
  std::array<std::int64_t, 2> lengths = {0, 0};
  ObservationSums observed;

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(returns, lengths, observed);
  }
};

// What a worker is made from: everything that another process cannot know.
struct EsWorkerSpec {
  EnvironmentRequest environment;
  OptionTexts network;
  OptionTexts transforms;
  std::string precision;
  std::uint64_t seed = 0;
  double deviation = 0;
  double action_noise = 0;
  double observe_probability = 0;

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(environment, network, transforms, precision, seed, deviation, action_noise,
            observe_probability);
  }
};

// Pairs [first, first + count) of an iteration.
struct PairRange {
  std::int64_t iteration = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// An actor that plays episodes with perturbed parameters. What it gives depends on its arguments
// and the spec alone, so that any worker can play any pair, and play it again.
class EsWorker {
 public:
  EsWorker(Runtime& runtime, const EsWorkerSpec& spec, const ObjectRef<TensorView>& noise);

  // `parameters`: a publication's values. One outcome a pair, in order. Throws what environments
  // throw, FailedPrecondition if an episode does not end.
  std::vector<PairOutcome> Play(const PairRange& range, std::span<const float> parameters);

 private:
  PairOutcome PlayPair(const PairDraws& draws, std::span<const float> parameters);
  void PlayEpisode(const PairDraws& draws, int sign, PairOutcome& outcome);
  void Observe(int row, ObservationSums& sums);

  const Pinned<TensorView> noise_;
  const EsWorkerSpec spec_;
  const EnvironmentEntry environment_;
  const EsPolicies policies_;
  const std::unique_ptr<EsPolicy> policy_;
  const PairStream pairs_;
  bool clip_actions_ = false;
  Slab slab_;                   // Of one environment.
  std::vector<float> version_;  // What the episode is played with.
  std::vector<float> observation_;
};

}  // namespace menger
