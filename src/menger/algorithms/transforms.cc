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
  options.Add("scale_actions", &scale_actions,
              {.consequence = "real actions of ppo, a2c and es run from -1 to 1 between their "
                              "bounds, as those of sac and td3 do anyway: noise and first actions "
                              "then fit bounds that are wide, narrow or far from 0"});
}

bool TransformOptions::Has(const std::string& name) const {
  return std::find(apply.begin(), apply.end(), name) != apply.end();
}

RunningMoments::RunningMoments(int elements)
    : all_{.mean = std::vector(static_cast<std::size_t>(elements), 0.0),
           .squared = std::vector(static_cast<std::size_t>(elements), 0.0)} {}

BatchMoments BatchMoments::Of(std::span<const float> rows, std::span<const float> weights,
                              int elements) {
  const auto width = static_cast<std::size_t>(elements);
  BatchMoments batch{.mean = std::vector(width, 0.0), .squared = std::vector(width, 0.0)};
  for (std::size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] == 0.0F) continue;
    ++batch.count;
    for (std::size_t i = 0; i < width; ++i) batch.mean[i] += rows[row * width + i];
  }
  for (double& value : batch.mean) value /= std::max(1.0, batch.count);
  for (std::size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] == 0.0F) continue;
    for (std::size_t i = 0; i < width; ++i) {
      const double deviation = rows[row * width + i] - batch.mean[i];
      batch.squared[i] += deviation * deviation;
    }
  }
  return batch;
}

void BatchMoments::Add(const BatchMoments& other) {
  if (other.count <= 0) return;
  if (count <= 0) {
    *this = other;
    return;
  }
  const double total = count + other.count;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double delta = other.mean[i] - mean[i];
    mean[i] += delta * other.count / total;
    squared[i] += other.squared[i] + delta * delta * count * other.count / total;
  }
  count = total;
}

// Counts and means first: deviations are from the common mean.
void BatchMoments::Reduce(std::span<BatchMoments> batches, UpdateRule& update) {
  if (update.learners() == 1) return;
  std::vector<double> sums;
  for (const BatchMoments& batch : batches) {
    for (const double mean : batch.mean) sums.push_back(batch.count * mean);
    sums.push_back(batch.count);
  }
  update.Sum(sums);
  std::vector<double> deviations;
  const double* sum = sums.data();
  for (BatchMoments& batch : batches) {
    const double all = sum[batch.mean.size()];
    for (std::size_t i = 0; i < batch.mean.size(); ++i) {
      const double common = all > 0 ? sum[i] / all : 0;
      const double delta = batch.mean[i] - common;
      deviations.push_back(batch.squared[i] + batch.count * delta * delta);
      batch.mean[i] = common;
    }
    batch.count = all;
    sum += batch.mean.size() + 1;
  }
  update.Sum(deviations);
  const double* deviation = deviations.data();
  for (BatchMoments& batch : batches) {
    std::copy_n(deviation, batch.squared.size(), batch.squared.begin());
    deviation += batch.squared.size();
  }
}

void RunningMoments::Save(ArchiveWriter archive) const {
  archive.Write("count", all_.count);
  archive.Write("mean", all_.mean);
  archive.Write("squared", all_.squared);
}

void RunningMoments::Load(ArchiveReader archive) {
  archive.Read("count", all_.count);
  archive.Read("mean", std::span<double>(all_.mean));
  archive.Read("squared", std::span<double>(all_.squared));
}

void ObservationNormaliser::Update(std::span<const float> observations,
                                   std::span<const float> weights, UpdateRule& update) {
  BatchMoments batch = BatchMoments::Of(observations, weights, moments_.elements());
  BatchMoments::Reduce({&batch, 1}, update);
  moments_.Merge(batch);
}

void ObservationNormaliser::Merge(std::span<const double> sums, std::span<const double> squares,
                                  double count) {
  BatchMoments batch{.count = count,
                     .mean = {sums.begin(), sums.end()},
                     .squared = {squares.begin(), squares.end()}};
  for (std::size_t i = 0; i < batch.mean.size(); ++i) {
    batch.mean[i] /= count;
    // Rounding may go below.
    batch.squared[i] = std::max(0.0, batch.squared[i] - sums[i] * batch.mean[i]);
  }
  moments_.Merge(batch);
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

BatchMoments RewardNormaliser::Step(const Slab& slab, int row, std::size_t first) {
  const ColumnLayout& columns = slab.columns();
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (int environment = 0; environment < columns.columns(); ++environment) {
    const int position = columns.PositionOf(environment);
    double& running = returns_[first + environment];
    if (slab.is_first(row)[position] != 0) running = 0;  // The old episode may be lost.
    if (slab.valid(row)[position] == 0) {
      running = 0;  // The episode was cut, or is over: what follows is another one.
      continue;
    }
    running = running * discount_ + slab.reward(row)[position];
    sum += running;
    squares += running * running;
    ++count;
    if (slab.terminated(row)[position] != 0 || slab.truncated(row)[position] != 0) running = 0;
  }
  const double mean = sum / std::max(1.0, count);
  return {.count = count, .mean = {mean}, .squared = {std::max(0.0, squares - sum * mean)}};
}

void RewardNormaliser::Update(std::span<Slab* const> slabs, UpdateRule& update) {
  std::size_t first = 0;  // Of the slab's environments among all.
  for (const Slab* const slab : slabs) {
    const auto columns = static_cast<std::size_t>(slab->columns().columns());
    if (first + columns > returns_.size()) {
      throw InvalidArgument("reward statistics were made for {} environments; slabs have more",
                            returns_.size());
    }
    std::vector<BatchMoments> rows;
    for (int row = 0; row < slab->horizon(); ++row) rows.push_back(Step(*slab, row, first));
    BatchMoments::Reduce(rows, update);
    for (const BatchMoments& row : rows) moments_.Merge(row);
    first += columns;
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
