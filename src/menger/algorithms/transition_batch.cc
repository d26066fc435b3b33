#include "menger/algorithms/transition_batch.h"

#include <cstring>

#include "menger/algorithms/q_losses.h"

namespace menger {

TransitionBatch::TransitionBatch(const TransitionFormat& format, const PublishedModel& model,
                                 double discount, double importance_exponent)
    : format_(format), model_(model), discount_(discount), item_weights_(importance_exponent) {}

void TransitionBatch::Take(const ReplayBatch& batch, double progress, UpdateRule& update) {
  batch_ = batch;
  const auto rows = static_cast<std::size_t>(batch.size());
  rows_before_ = static_cast<std::int64_t>(update.Before(static_cast<double>(rows)));
  rows_of_all_ = update.Total(static_cast<double>(rows));
  const std::span<const float> weights = item_weights_.Of(batch.items, progress, update);
  weights_.assign(weights.begin(), weights.end());
  for (auto* const column : {&returns_, &bootstraps_}) column->resize(rows);
  if (rows == 0) return;

  const int steps = format_.options().n_step;
  NStepReturns({batch.column<float>(TransitionFormat::kReward), rows * steps}, steps,
               batch.columns[TransitionFormat::kReward].rows,
               {batch.column<std::uint8_t>(TransitionFormat::kTerminated), rows}, discount_,
               returns_, bootstraps_);
  for (float& weight : weights_) weight /= static_cast<float>(rows_of_all_);
  Show(TransitionFormat::kObservation, format_.vector_column(), shown_);
  Show(TransitionFormat::kNextObservation, format_.next_vector_column(), shown_next_);
}

void TransitionBatch::Show(int observations, int vector, Shown& shown) const {
  if (!format_.frame().has_image()) {
    shown.observations = Normalised(observations, shown.normalised);
    return;
  }
  shown.observations = batch_.columns[observations].data;
  if (format_.has_vector()) {
    shown.vector = static_cast<const float*>(Normalised(vector, shown.normalised));
  }
}

const std::uint8_t* TransitionBatch::next_mask() const {
  return format_.has_mask() ? batch_.column<std::uint8_t>(TransitionFormat::kNextMask) : nullptr;
}

const void* TransitionBatch::Normalised(int column, BatchMemory& memory) const {
  const BatchColumn& from = batch_.columns[column];
  if (!model_.normalises()) return from.data;
  const std::size_t bytes = from.item_bytes * static_cast<std::size_t>(rows());
  std::byte* const to = memory.Reserve(model_.network(), bytes);
  std::memcpy(to, from.data, bytes);
  model_.NormaliseRows({reinterpret_cast<float*>(to), bytes / sizeof(float)});
  return to;
}

}  // namespace menger
