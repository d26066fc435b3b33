#include "menger/algorithms/published_model.h"

#include <algorithm>
#include <string>

namespace menger {

PublishedModel::PublishedModel(const PolicyModel& model, SharedWorkerPool threads, float extra)
    : model_(model),
      network_(model.network().Clone(std::move(threads))),
      publication_(std::make_unique<Publication>(model.manifest())),
      blob_(static_cast<std::size_t>(model.manifest().size())) {
  if (model.normalises()) normaliser_.emplace(model.encoder().numbers());
  Publish(extra);
}

void PublishedModel::Publish(float extra) {
  const std::span<float> version = blob_;
  version.back() = extra;  // Overwritten where a version ends with something else.
  const std::span<const float> parameters = network_->parameters();
  std::copy(parameters.begin(), parameters.end(), model_.ParametersIn(version).begin());
  if (normaliser_) normaliser_->WriteTo(model_.StatisticsIn(version));
  publication_->Publish(version);
}

void PublishedModel::Observe(std::span<const float> raw_rows, std::span<const float> weights,
                             UpdateRule& update) {
  if (normaliser_) normaliser_->Update(raw_rows, weights, update);
}

BatchMoments PublishedModel::MomentsOf(const Slab& slab) const {
  if (!normaliser_) return {};
  const ObservationEncoder& encoder = model_.encoder();
  const auto positions = static_cast<std::size_t>(slab.positions());
  std::vector<float> rows(positions * slab.horizon() * encoder.numbers());
  std::vector<float> weights;
  for (int row = 0; row < slab.horizon(); ++row) {
    float* const to = rows.data() + row * positions * encoder.numbers();
    encoder.Encode(slab, row, /*position=*/0, slab.positions(), {.numbers = to});
    weights.insert(weights.end(), slab.valid(row), slab.valid(row) + positions);
  }
  return BatchMoments::Of(rows, weights, encoder.numbers());
}

void PublishedModel::ObserveMoments(const BatchMoments& moments) {
  if (normaliser_) normaliser_->Merge(moments);
}

void PublishedModel::Observe(std::span<const double> sums, std::span<const double> squares,
                             double count) {
  if (normaliser_) normaliser_->Merge(sums, squares, count);
}

void PublishedModel::Save(ArchiveWriter archive) const {
  archive.Write("manifest", model_.manifest().ToText());
  // Field by field: the struct has padding, and a checkpoint has no random bytes.
  const ParameterVersion version = publication_->Latest()->version();
  archive.Write("incarnation", version.incarnation);
  archive.Write("version", version.number);
  archive.Write("parameters", std::span<const float>(network_->parameters()));
  archive.Write("published", blob_);
  if (normaliser_) normaliser_->Save(archive.Scope("observation_statistics"));
}

void PublishedModel::LoadParameters(ArchiveReader archive) {
  std::string manifest;
  archive.Read("manifest", manifest);
  model_.manifest().CheckEqual(ParameterManifest::FromText(manifest),
                               "checkpoint '" + archive.path() + "'");
  archive.Read("parameters", network_->parameters());
  network_->ParametersChanged();
  if (normaliser_) normaliser_->Load(archive.Scope("observation_statistics"));
}

void PublishedModel::Load(ArchiveReader archive) {
  LoadParameters(archive);
  ParameterVersion version;
  archive.Read("incarnation", version.incarnation);
  archive.Read("version", version.number);
  archive.Read("published", std::span<float>(blob_));
  publication_->Restore(version, blob_);
}

}  // namespace menger
