#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/options.h"
#include "menger/networks/update_rule.h"
#include "menger/tensor/slab.h"

namespace menger {

// Options of section [transforms]: what is done to raw observations, rewards and actions, in the
// listed order.
struct TransformOptions {
  std::vector<std::string> apply;  // normalise_observation, normalise_reward, clip_reward
  double observation_clip = 10;    // Normalised observations are clipped to +- this.
  double reward_clip = 10;         // Normalised or clipped rewards are clipped to +- this.
  std::int64_t frame_stack = 1;    // Observations that a network sees at once, the newest last.
  std::string actions = "clip";    // How bounded actions reach the environment: clip or none.
  bool scale_actions = false;      // Policies act from -1 to 1 between the bounds.

  void Declare(Options& options);
  bool Has(const std::string& name) const;
};

// Of one batch, element by element: its mean and sum of squared deviations. Plain data, which
// learners and collectors send to each other.
struct BatchMoments {
  double count = 0;
  std::vector<double> mean;
  std::vector<double> squared;

  // Of rows [rows, elements]; those of weight 0 are left out.
  static BatchMoments Of(std::span<const float> rows, std::span<const float> weights, int elements);

  // Those of both together (Chan et al. 1979). One without elements is of nothing.
  void Add(const BatchMoments& other);

  // Makes each of them that of the batches of all learners together.
  static void Reduce(std::span<BatchMoments> batches, UpdateRule& update);

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(count, mean, squared);
  }
};

// Running mean and variance of each element over everything seen (Chan et al. 1979, parallel
// update), in float64.
class RunningMoments {
 public:
  explicit RunningMoments(int elements);

  // Merges one batch into the running ones.
  void Merge(const BatchMoments& batch) { all_.Add(batch); }

  int elements() const { return static_cast<int>(all_.mean.size()); }
  double count() const { return all_.count; }
  double mean(int element) const { return all_.mean[element]; }
  double variance(int element) const {
    return all_.count > 0 ? all_.squared[element] / all_.count : 1.0;
  }

  void Save(ArchiveWriter archive) const;
  void Load(ArchiveReader archive);

 private:
  BatchMoments all_;
};

// (x - mean) / sqrt(variance + 1e-8), clipped. Statistics change once a slab, after learning from
// it, in column order: so the learner normalises as the policy that acted did. They belong to the
// parameter version: `scale` and `shift` are published with the network's parameters.
class ObservationNormaliser {
 public:
  explicit ObservationNormaliser(int elements) : moments_(elements) {}

  // Merges rows of raw observations, [rows, elements], of all learners; rows with weight 0 are left
  // out.
  void Update(std::span<const float> observations, std::span<const float> weights,
              UpdateRule& update);

  // Merges observations by their moments.
  void Merge(const BatchMoments& batch) { moments_.Merge(batch); }

  // Merges `count` observations by their sums and the sums of their squares, element by element.
  void Merge(std::span<const double> sums, std::span<const double> squares, double count);

  // 2 x elements floats, scales then shifts: x * scale + shift is the normalised value before
  // clipping.
  void WriteTo(std::span<float> scale_and_shift) const;

  void Save(ArchiveWriter archive) const { moments_.Save(archive); }
  void Load(ArchiveReader archive) { moments_.Load(archive); }

 private:
  RunningMoments moments_;
};

// Rewards divided by the standard deviation of the running discounted return (Engstrom et al. 2020;
// as Stable-Baselines3's VecNormalize, whose returns start anew with each episode; Gymnasium's
// NormalizeReward goes on across truncations), clipped. The running return of each environment is
// kept across slabs; an invalid row ends it, and so does a first row, with which the slab of a
// collector starts that was made anew after an error. One thread.
class RewardNormaliser {
 public:
  RewardNormaliser(int environments, double discount);

  // Merges one step after another of all environments of the slabs, in column order, and of all
  // learners. Throws InvalidArgument if the slabs have more environments than it was made for.
  void Update(std::span<Slab* const> slabs, UpdateRule& update);
  double scale() const;  // 1 / sqrt(variance + 1e-8)

  void Save(ArchiveWriter archive) const;
  void Load(ArchiveReader archive);
  void LoadScale(ArchiveReader archive);  // Without running returns: for other environments.

 private:
  // Moments of the running returns of a slab's environments after one of its rows.
  BatchMoments Step(const Slab& slab, int row, std::size_t first);

  double discount_;
  std::vector<double> returns_;  // By environment.
  RunningMoments moments_;
};

}  // namespace menger
