#include "menger/algorithms/sequence_batch.h"

#include <algorithm>
#include <cstring>

#include "menger/algorithms/q_losses.h"

namespace menger {
namespace {

// Row r of item i, [items, column rows], to row r + shifts(i) of [rows, items]. Rows that an item
// lacks are zeros wherever they end up.
template <typename Shift>
void CopyStepMajor(const BatchColumn& from, int rows, const Shift& shift, std::byte* to) {
  const auto items = from.rows.size();
  std::size_t rows_max = 0;
  for (const std::int32_t count : from.rows) {
    rows_max = std::max(rows_max, static_cast<std::size_t>(count));
  }
  if (items == 0) return;
  const std::size_t bytes = from.item_bytes / static_cast<std::size_t>(rows);
  std::memset(to, 0, bytes * items * static_cast<std::size_t>(rows));
  for (std::size_t row = 0; row < rows_max; ++row) {
    for (std::size_t i = 0; i < items; ++i) {
      if (row >= static_cast<std::size_t>(from.rows[i])) continue;
      std::memcpy(to + ((row + shift(static_cast<int>(i))) * items + i) * bytes,
                  from.data + i * from.item_bytes + row * bytes, bytes);
    }
  }
}

int NoShift(int /*item*/) { return 0; }

}  // namespace

SequenceBatch::SequenceBatch(const SequenceFormat& format, const PublishedModel& model,
                             double discount, double importance_exponent)
    : format_(format), model_(model), discount_(discount), item_weights_(importance_exponent) {}

int SequenceBatch::Missing(int sequence) const {
  const std::int32_t shown = batch_.columns[SequenceFormat::kObservation].rows[sequence];
  const std::int32_t rewards = batch_.columns[SequenceFormat::kReward].rows[sequence];
  return format_.burn_in() - (shown - 1 - rewards);
}

void SequenceBatch::Take(const ReplayBatch& batch, double progress, UpdateRule& update) {
  batch_ = batch;
  double counts[2] = {static_cast<double>(sequences()), 0};
  for (int i = 0; i < sequences(); ++i) counts[1] += decisions(i);
  update.Sum(counts);
  sequences_of_all_ = counts[0];
  rows_of_all_ = counts[1];
  const std::span<const float> item_weights = item_weights_.Of(batch.items, progress, update);
  if (sequences() == 0) return;

  const ObservationEncoder& frame = format_.format().frame();
  Show(SequenceFormat::kObservation, !frame.has_image(), observations_);
  if (format_.has_vector()) Show(format_.vector_column(), true, vectors_);
  MarkBegins();
  const BatchColumn& action = batch_.columns[SequenceFormat::kAction];
  actions_.resize(action.item_bytes * static_cast<std::size_t>(sequences()));
  CopyStepMajor(action, format_.length(), NoShift, actions_.data());
  if (format_.has_mask()) {
    const BatchColumn& mask = batch_.columns[format_.mask_column()];
    masks_.resize(mask.item_bytes * static_cast<std::size_t>(sequences()));
    CopyStepMajor(mask, format_.steps() + 1, NoShift, reinterpret_cast<std::byte*>(masks_.data()));
  }
  MakeReturns();
  weights_.resize(static_cast<std::size_t>(rows()));
  for (int row = 0; row < rows(); ++row) {
    const int sequence = row % sequences();
    const bool counts_here = row / sequences() < decisions(sequence);
    weights_[row] = counts_here ? item_weights[sequence] / static_cast<float>(rows_of_all_) : 0.0F;
  }
}

void SequenceBatch::Show(int column, bool numbers, Shown& shown) const {
  const BatchColumn& from = batch_.columns[column];
  const int rows = format_.burn_in() + format_.steps() + 1;
  const std::size_t bytes = from.item_bytes * static_cast<std::size_t>(sequences());
  std::byte* const to = shown.memory.Reserve(model_.network(), bytes);
  CopyStepMajor(
      from, rows, [this](int sequence) { return Missing(sequence); }, to);
  if (numbers) model_.NormaliseRows({reinterpret_cast<float*>(to), bytes / sizeof(float)});
  shown.before = to;
  shown.window =
      to + bytes / static_cast<std::size_t>(rows) * static_cast<std::size_t>(format_.burn_in());
}

void SequenceBatch::MarkBegins() {
  is_first_.assign(static_cast<std::size_t>(before_rows()) + window_rows(), 0);
  for (int i = 0; i < sequences(); ++i) {
    if (Missing(i) > 0) is_first_[static_cast<std::size_t>(Missing(i)) * sequences() + i] = 1;
  }
}

void SequenceBatch::MakeReturns() {
  const auto size = static_cast<std::size_t>(rows());
  const int n = format_.n_step();
  rewards_.assign(size * n, 0.0F);
  counts_.assign(size, 1);  // Of padding: nothing of it counts, but indices must be good.
  terminated_.assign(size, 1);
  next_rows_.assign(size, 0);
  for (int i = 0; i < sequences(); ++i) {
    const int steps = batch_.columns[SequenceFormat::kReward].rows[i];
    const float* const rewards =
        batch_.column<float>(SequenceFormat::kReward) + std::ptrdiff_t{i} * format_.steps();
    const bool ends = batch_.column<std::uint8_t>(SequenceFormat::kTerminated)[i] != 0;
    for (int step = 0; step < decisions(i); ++step) {
      const std::size_t row = static_cast<std::size_t>(step) * sequences() + i;
      const int count = std::min(n, steps - step);
      std::copy_n(rewards + step, count, rewards_.begin() + row * n);
      counts_[row] = count;
      terminated_[row] = ends && step + count == steps ? 1 : 0;
      next_rows_[row] = (step + count) * sequences() + i;
    }
  }
  returns_.resize(size);
  bootstraps_.resize(size);
  NStepReturns(rewards_, n, counts_, terminated_, discount_, returns_, bootstraps_);
}

NetworkInput SequenceBatch::Input(const std::byte* observations, const std::byte* vector,
                                  int first_row, int rows) const {
  return {.observations = observations,
          .vector = format_.has_vector() ? reinterpret_cast<const float*>(vector) : nullptr,
          .rows = rows,
          .steps = rows / sequences(),
          .is_first = is_first_.data() + first_row};
}

NetworkInput SequenceBatch::before() const {
  if (!format_.has_state() || before_rows() == 0) return {};
  NetworkInput input = Input(observations_.before, vectors_.before, 0, before_rows());
  input.state = batch_.column<float>(format_.state_column());
  return input;
}

NetworkInput SequenceBatch::window(const float* state) const {
  NetworkInput input = Input(observations_.window, vectors_.window, before_rows(), window_rows());
  if (!format_.has_state()) return input;
  input.state = state == nullptr ? batch_.column<float>(format_.state_column()) : state;
  return input;
}

}  // namespace menger
