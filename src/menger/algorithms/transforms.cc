#include "menger/algorithms/transforms.h"

#include <algorithm>
#include <cmath>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr double kEpsilon = 1e-8;  // Keeps a constant observation or return from dividing by 0.

}  // namespace

void TransformOptions::Declare(Options& options) {
  options.Add(
      "apply", &apply,
      {.choices = {"normalise_observation", "normalise_reward", "clip_reward"},
       .consequence = "what is done to raw observations and rewards before learning, in order"});
  options.Add("observation_clip", &observation_clip,
              {.minimum = 0,
               .above_minimum = true,
               .unit = "standard deviations",
               .consequence = "normalised observations beyond this are clipped"});
  options.Add("reward_clip", &reward_clip,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "normalised or clipped rewards never exceed this"});
  options.Add("frame_stack", &frame_stack,
              {.minimum = 1,
               .maximum = 16,
               .unit = "observations",
               .consequence = "how many the network sees at once, so that it sees motion; frames "
                              "before an episode's start are zeros"});
  options.Add(
      "actions", &actions,
      {.choices = {"clip", "none"},
       .consequence = "clip: bounded actions are clipped to their bounds before the environment"});
}

bool TransformOptions::Has(const std::string& name) const {
  return std::find(apply.begin(), apply.end(), name) != apply.end();
}

RunningMoments::RunningMoments(int elements) : mean_(elements, 0.0), squared_(elements, 0.0) {}

void RunningMoments::Merge(std::span<const double> mean, std::span<const double> squared_deviations,
                           double count) {
  if (count <= 0) return;
  const double total = count_ + count;
  for (int i = 0; i < elements(); ++i) {
    const double delta = mean[i] - mean_[i];
    mean_[i] += delta * count / total;
    squared_[i] += squared_deviations[i] + delta * delta * count_ * count / total;
  }
  count_ = total;
}

void RunningMoments::Save(ArchiveWriter archive) const {
  archive.Write("count", count_);
  archive.Write("mean", mean_);
  archive.Write("squared", squared_);
}

void RunningMoments::Load(ArchiveReader archive) {
  archive.Read("count", count_);
  archive.Read("mean", std::span<double>(mean_));
  archive.Read("squared", std::span<double>(squared_));
}

void ObservationNormaliser::Update(std::span<const float> observations,
                                   std::span<const float> weights) {
  const std::size_t elements = moments_.elements();
  std::vector<double> mean(elements, 0.0);
  std::vector<double> squared(elements, 0.0);
  double count = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] == 0.0F) continue;
    ++count;
    for (std::size_t i = 0; i < elements; ++i) mean[i] += observations[row * elements + i];
  }
  if (count == 0) return;
  for (double& value : mean) value /= count;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] == 0.0F) continue;
    for (std::size_t i = 0; i < elements; ++i) {
      const double deviation = observations[row * elements + i] - mean[i];
      squared[i] += deviation * deviation;
    }
  }
  moments_.Merge(mean, squared, count);
}

void ObservationNormaliser::Merge(std::span<const double> sums, std::span<const double> squares,
                                  double count) {
  std::vector<double> mean(sums.begin(), sums.end());
  std::vector<double> deviations(squares.begin(), squares.end());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] /= count;
    deviations[i] = std::max(0.0, deviations[i] - sums[i] * mean[i]);  // Rounding may go below.
  }
  moments_.Merge(mean, deviations, count);
}

void ObservationNormaliser::WriteTo(std::span<float> scale_and_shift) const {
  const int elements = moments_.elements();
  for (int i = 0; i < elements; ++i) {
    const double scale = 1.0 / std::sqrt(moments_.variance(i) + kEpsilon);
    scale_and_shift[i] = static_cast<float>(scale);
    scale_and_shift[elements + i] = static_cast<float>(-moments_.mean(i) * scale);
  }
}

RewardNormaliser::RewardNormaliser(int environments, double discount)
    : discount_(discount), returns_(environments, 0.0), moments_(1) {}

void RewardNormaliser::Update(std::span<Slab* const> slabs) {
  std::size_t first = 0;  // Of the slab's environments among all.
  for (const Slab* const slab : slabs) {
    const ColumnLayout& columns = slab->columns();
    if (first + columns.columns() > returns_.size()) {
      throw InvalidArgument("reward statistics were made for {} environments; slabs have more",
                            returns_.size());
    }
    for (int row = 0; row < slab->horizon(); ++row) {
      double sum = 0;
      double squares = 0;
      double count = 0;
      for (int environment = 0; environment < columns.columns(); ++environment) {
        const int position = columns.PositionOf(environment);
        double& running = returns_[first + environment];
        if (slab->is_first(row)[position] != 0) running = 0;  // The old episode may be lost.
        if (slab->valid(row)[position] == 0) {
          running = 0;  // The episode was cut, or is over: what follows is another one.
          continue;
        }
        running = running * discount_ + slab->reward(row)[position];
        sum += running;
        squares += running * running;
        ++count;
        if (slab->terminated(row)[position] != 0 || slab->truncated(row)[position] != 0)
          running = 0;
      }
      if (count == 0) continue;
      const double mean = sum / count;
      const double deviations = std::max(0.0, squares - sum * mean);
      moments_.Merge({&mean, 1}, {&deviations, 1}, count);
    }
    first += columns.columns();
  }
}

double RewardNormaliser::scale() const { return 1.0 / std::sqrt(moments_.variance(0) + kEpsilon); }

void RewardNormaliser::Save(ArchiveWriter archive) const {
  archive.Write("returns", returns_);
  moments_.Save(archive.Scope("moments"));
}

void RewardNormaliser::LoadScale(ArchiveReader archive) { moments_.Load(archive.Scope("moments")); }

void RewardNormaliser::Load(ArchiveReader archive) {
  archive.Read("returns", std::span<double>(returns_));
  moments_.Load(archive.Scope("moments"));
}

}  // namespace menger
