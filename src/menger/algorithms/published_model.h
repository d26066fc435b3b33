#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/algorithms/policy_model.h"
#include "menger/algorithms/transforms.h"
#include "menger/base/archive.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/networks/network.h"
#include "menger/networks/update_rule.h"
#include "menger/parameters/publication.h"

namespace menger {

// The learner's side of a PolicyModel: the network that learns, the statistics that normalise what
// it sees, and the versions in which policies get to know both. The learner's thread; policies use
// the publication.
class PublishedModel {
 public:
  // Publishes the first parameters, with `extra` for the extra number if there is one. `threads`
  // for learning. Borrows `model`.
  PublishedModel(const PolicyModel& model, SharedWorkerPool threads, float extra = 0);

  Network& network() const { return *network_; }
  Publication& publication() const { return *publication_; }

  // The values of the version that was published last.
  const std::vector<float>& published() const { return blob_; }
  float published_extra() const { return blob_.back(); }

  // Makes parameters, statistics and the extra number visible to policies.
  void Publish(float extra = 0);

  bool normalises() const { return model_.normalises(); }
  // Normalises encoded rows in place with the statistics as last published.
  void NormaliseRows(std::span<float> rows) const { model_.Normalise(rows, blob_); }

  // Merge observations that learners saw into the statistics, if there are any: raw encoded rows
  // [rows, elements], of which those of weight 0 are left out; moments; or sums.
  void Observe(std::span<const float> raw_rows, std::span<const float> weights, UpdateRule& update);
  void ObserveMoments(const BatchMoments& moments);
  void Observe(std::span<const double> sums, std::span<const double> squares, double count);
  // Of the valid rows of a slab; of nothing without statistics.
  BatchMoments MomentsOf(const Slab& slab) const;

  void Save(ArchiveWriter archive) const;
  void Load(ArchiveReader archive);
  // Parameters and statistics of another run, without publishing them.
  void LoadParameters(ArchiveReader archive);

 private:
  const PolicyModel& model_;
  const std::unique_ptr<Network> network_;
  const std::unique_ptr<Publication> publication_;
  std::optional<ObservationNormaliser> normaliser_;
  std::vector<float> blob_;
};

}  // namespace menger
