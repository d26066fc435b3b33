#include "menger/training/learning/loop_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "menger/base/error.h"

namespace menger {
namespace {

double MeanOf(const std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void RecentEpisodes::Add(std::span<const EpisodeResult> episodes) {
  for (const EpisodeResult& episode : episodes) {
    if (returns_.size() < kEpisodesMax) {
      returns_.push_back(episode.episode_return);
      lengths_.push_back(static_cast<double>(episode.length));
      continue;
    }
    returns_[next_] = episode.episode_return;
    lengths_[next_] = static_cast<double>(episode.length);
    next_ = (next_ + 1) % kEpisodesMax;
  }
}

double RecentEpisodes::return_mean() const { return MeanOf(returns_); }
double RecentEpisodes::length_mean() const { return MeanOf(lengths_); }

void RecentEpisodes::Save(ArchiveWriter archive) const {
  archive.Write("returns", returns_);
  archive.Write("lengths", lengths_);
  archive.Write("next", next_);
}

void RecentEpisodes::Load(const ArchiveReader& archive) {
  archive.Read("returns", returns_);
  archive.Read("lengths", lengths_);
  archive.Read("next", next_);
}

void MetricMeans::Add(const Metrics& metrics) {
  if (names_.empty()) {
    for (const auto& [name, value] : metrics) names_.push_back(name);
    sums_.assign(names_.size(), 0.0);
    counts_.assign(names_.size(), 0);
  }
  if (metrics.size() != names_.size()) {
    throw Internal("an algorithm reported {} metrics after {} before; they must be the same",
                   metrics.size(), names_.size());
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (std::isnan(metrics[i].second)) continue;
    sums_[i] += metrics[i].second;
    ++counts_[i];
  }
  added_ = true;
}

Metrics MetricMeans::TakeMeans() {
  Metrics means;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    means.emplace_back(names_[i], counts_[i] == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                  : sums_[i] / static_cast<double>(counts_[i]));
  }
  sums_.assign(names_.size(), 0.0);
  counts_.assign(names_.size(), 0);
  added_ = false;
  return means;
}

Metrics MetricMeans::TakeIfAny() { return added_ ? TakeMeans() : Metrics{}; }

void MetricMeans::Save(ArchiveWriter archive) const {
  archive.Write("names", fmt::format("{}", fmt::join(names_, "\n")));
  archive.Write("sums", sums_);
  archive.Write("counts", counts_);
}

void MetricMeans::Load(const ArchiveReader& archive) {
  std::istringstream names(archive.Read<std::string>("names"));
  names_.clear();
  for (std::string name; std::getline(names, name);) names_.push_back(name);
  archive.Read("sums", sums_);
  archive.Read("counts", counts_);
}

}  // namespace menger
