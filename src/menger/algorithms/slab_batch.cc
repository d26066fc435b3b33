#include "menger/algorithms/slab_batch.h"

#include <algorithm>
#include <cstring>

#include "menger/base/error.h"

namespace menger {
namespace {

template <typename T>
void GatherItems(std::span<const T> from, std::span<const std::int32_t> rows, std::size_t item,
                 T* target) {
  if (item == 1) {
    for (const std::int32_t row : rows) *target++ = from[row];
    return;
  }
  for (const std::int32_t row : rows) {
    std::memcpy(target, from.data() + row * item, item * sizeof(T));
    target += item;
  }
}

template <typename T>
void GatherItems(std::span<const T> from, std::span<const std::int32_t> rows, std::size_t item,
                 std::vector<T>& out) {
  out.resize(rows.size() * item);
  GatherItems(from, rows, item, out.data());
}

}  // namespace

void SlabBatch::CopyRow(const Slab& slab, int row, int position, int index) {
  const std::ptrdiff_t first_number = std::ptrdiff_t{index} * model_.encoder().numbers();
  model_.encoder().Encode(slab, row, position, 1, {.numbers = numbers_.data() + first_number});
  const std::size_t action_bytes = slab.spec().action[0].bytes();
  std::memcpy(actions_.data() + index * action_bytes, slab.action(0, row, position), action_bytes);
  const int mask_leaf = model_.encoder().mask_leaf();
  if (mask_leaf >= 0) {
    const std::size_t mask_bytes = slab.spec().observation[mask_leaf].bytes();
    std::memcpy(masks_.data() + index * mask_bytes, slab.observation(mask_leaf, row, position),
                mask_bytes);
  }
  log_probabilities_[index] =
      *slab.policy<float>(ActorCriticPolicies::kLogProbability, row, position);
  values_[index] = *slab.policy<float>(ActorCriticPolicies::kValue, row, position);
  rewards_[index] = model_.TransformReward(slab.reward(row)[position]);
  valid_[index] = slab.valid(row)[position];
  cut_[index] = slab.terminated(row)[position] | slab.truncated(row)[position];
  is_first_[index] = slab.is_first(row)[position];
}

void SlabBatch::CopyColumns(const Slab& slab, int first_column) {
  const ColumnLayout& layout = slab.columns();
  const int state_width = model_.network().state_width();
  for (int environment = 0; environment < layout.columns(); ++environment) {
    if (state_width == 0) break;
    std::memcpy(
        first_state_.data() + static_cast<std::size_t>(first_column + environment) * state_width,
        slab.state(0, 0, layout.PositionOf(environment)), sizeof(float) * state_width);
  }
  for (int row = 0; row < steps_; ++row) {
    for (int environment = 0; environment < layout.columns(); ++environment) {
      CopyRow(slab, row, layout.PositionOf(environment),
              row * columns_ + first_column + environment);
    }
  }
}

// V of the final observation of every truncated episode, in place of the next episode's first
// value.
void SlabBatch::AddFinalValues(const Slab& slab, int first_column) {
  const ColumnLayout& layout = slab.columns();
  scratch_rows_.clear();
  for (int row = 0; row < steps_; ++row) {
    for (int environment = 0; environment < layout.columns(); ++environment) {
      const int position = layout.PositionOf(environment);
      if (slab.valid(row)[position] == 0) continue;
      const int index = row * columns_ + first_column + environment;
      if (slab.terminated(row)[position] != 0) {
        next_values_[index] = 0.0F;
      } else if (slab.truncated(row)[position] != 0) {
        scratch_rows_.push_back(index);
      }
    }
  }
  if (scratch_rows_.empty()) return;
  const int state_width = model_.network().state_width();
  const int count = static_cast<int>(scratch_rows_.size());
  scratch_.Reserve(model_.network(), count);
  scratch_state_.resize(static_cast<std::size_t>(state_width) * count);
  scratch_is_first_.assign(count, 0);
  for (int i = 0; i < count; ++i) {
    const int row = scratch_rows_[i] / columns_;
    const int position = layout.PositionOf(scratch_rows_[i] % columns_ - first_column);
    model_.encoder().EncodeFinal(slab, slab.final_index(row)[position], scratch_.At(i));
    if (state_width > 0) {
      std::memcpy(scratch_state_.data() + static_cast<std::size_t>(i) * state_width,
                  slab.state(0, row + 1, position), sizeof(float) * state_width);
    }
  }
  model_.published().NormaliseRows(scratch_.numbers());
  NetworkInput input = scratch_.input();
  input.state = scratch_state_.data();
  input.is_first = scratch_is_first_.data();
  const auto outputs = model_.network().Infer(input);
  for (int i = 0; i < count; ++i) next_values_[scratch_rows_[i]] = *outputs.back().row(i);
}

void SlabBatch::ComputeNextValues(std::span<Slab* const> slabs) {
  std::copy(values_.begin() + columns_, values_.end(), next_values_.begin());
  int first_column = 0;
  for (const Slab* const slab : slabs) {
    const ColumnLayout& layout = slab->columns();
    // Row T: what the last action of each column led to.
    const int positions = slab->positions();
    scratch_.Reserve(model_.network(), positions);
    model_.encoder().Encode(*slab, steps_, 0, positions, scratch_.At(0));
    model_.published().NormaliseRows(scratch_.numbers());
    NetworkInput input = scratch_.input();
    if (model_.network().state_width() > 0) {
      input.state = slab->state<float>(0, steps_);
      input.is_first = slab->is_first(steps_);
    }
    const auto outputs = model_.network().Infer(input);
    for (int environment = 0; environment < layout.columns(); ++environment) {
      next_values_[(steps_ - 1) * columns_ + first_column + environment] =
          *outputs.back().row(layout.PositionOf(environment));
    }
    AddFinalValues(*slab, first_column);
    first_column += layout.columns();
  }
}

void SlabBatch::Prepare(std::span<Slab* const> slabs, UpdateRule& update) {
  steps_ = slabs[0]->horizon();
  columns_ = 0;
  sources_.clear();
  for (const Slab* const slab : slabs) {
    if (slab->horizon() != steps_) {
      throw InvalidArgument("slabs of one update have horizons {} and {}; they must be equal",
                            steps_, slab->horizon());
    }
    const ColumnLayout& layout = slab->columns();
    for (int environment = 0; environment < layout.columns(); ++environment) {
      sources_.push_back({.slab = slab, .position = layout.PositionOf(environment)});
    }
    columns_ += layout.columns();
  }
  const auto size = static_cast<std::size_t>(rows());
  const Spec& observation = slabs[0]->spec().observation;
  numbers_.resize(size * model_.encoder().numbers());
  actions_.resize(size * slabs[0]->spec().action[0].bytes());
  const int mask_leaf = model_.encoder().mask_leaf();
  masks_.resize(mask_leaf < 0 ? 0 : size * observation[mask_leaf].bytes());
  for (auto* const column : {&log_probabilities_, &values_, &next_values_, &rewards_, &advantages_,
                             &returns_, &weights_}) {
    column->resize(size);
  }
  for (auto* const column : {&cut_, &valid_, &is_first_}) column->resize(size);
  first_state_.resize(static_cast<std::size_t>(columns_) * model_.network().state_width());

  model_.UpdateRewardStatistics(slabs, update);
  int first_column = 0;
  for (const Slab* const slab : slabs) {
    CopyColumns(*slab, first_column);
    first_column += slab->columns().columns();
  }
  if (model_.normalises_observations()) {
    raw_numbers_ = numbers_;
    model_.published().NormaliseRows(numbers_);
  }
  ComputeNextValues(slabs);
  valid_rows_.clear();
  for (int i = 0; i < rows(); ++i) {
    weights_[i] = valid_[i] != 0 ? 1.0F : 0.0F;
    if (valid_[i] != 0) valid_rows_.push_back(i);
  }
}

Trajectories SlabBatch::trajectories() const {
  return {.steps = steps_,
          .columns = columns_,
          .rewards = rewards_,
          .values = values_,
          .next_values = next_values_,
          .cut = cut_,
          .valid = valid_};
}

void SlabBatch::EstimateAdvantages(double discount, double lambda) {
  GeneralisedAdvantages(trajectories(), discount, lambda, advantages_);
  for (int i = 0; i < rows(); ++i) returns_[i] = advantages_[i] + values_[i];
}

void SlabBatch::SetAdvantages(std::span<const float> advantages) {
  std::copy(advantages.begin(), advantages.end(), advantages_.begin());
  for (int i = 0; i < rows(); ++i) returns_[i] = advantages_[i] + values_[i];
}

void Minibatch::Weigh(UpdateRule& update) const {
  double count = 0;
  for (const float weight : weights) count += weight;
  count = update.Total(count);
  for (float& weight : weights) weight = count > 0 ? weight / static_cast<float>(count) : 0.0F;
}

void SlabBatch::GatherObservations(std::span<const std::int32_t> rows) {
  const ObservationEncoder& encoder = model_.encoder();
  batch_observations_.Reserve(model_.network(), static_cast<int>(rows.size()));
  const EncodedRows target = batch_observations_.At(0);
  if (encoder.numbers() > 0) {
    GatherItems<float>(numbers_, rows, encoder.numbers(), target.numbers);
  }
  if (!encoder.has_image()) return;
  std::byte* image = target.image;
  for (const std::int32_t row : rows) {
    const Column& source = sources_[row % columns_];
    encoder.Encode(*source.slab, row / columns_, source.position, 1, {.image = image});
    image += encoder.image_bytes();
  }
}

void SlabBatch::Collect(std::span<const std::int32_t> rows) {
  const auto size = static_cast<std::size_t>(this->rows());
  GatherObservations(rows);
  GatherItems<std::byte>(actions_, rows, actions_.size() / size, batch_actions_);
  if (!masks_.empty()) GatherItems<std::uint8_t>(masks_, rows, masks_.size() / size, batch_masks_);
  GatherItems<float>(log_probabilities_, rows, 1, batch_log_probabilities_);
  GatherItems<float>(values_, rows, 1, batch_values_);
  GatherItems<float>(advantages_, rows, 1, batch_advantages_);
  GatherItems<float>(returns_, rows, 1, batch_returns_);
  GatherItems<float>(weights_, rows, 1, batch_weights_);
}

Minibatch SlabBatch::View(int rows) {
  return {.input = batch_observations_.input(),
          .actions = batch_actions_.data(),
          .mask = masks_.empty() ? nullptr : batch_masks_.data(),
          .log_probabilities = batch_log_probabilities_,
          .values = batch_values_,
          .advantages = batch_advantages_,
          .returns = batch_returns_,
          .weights = batch_weights_,
          .rows = rows};
}

Minibatch SlabBatch::GatherRows(std::span<const std::int32_t> rows) {
  Collect(rows);
  return View(static_cast<int>(rows.size()));
}

Minibatch SlabBatch::GatherSequences(std::span<const std::int32_t> columns) {
  sequence_rows_.clear();
  for (int step = 0; step < steps_; ++step) {
    for (const std::int32_t column : columns) sequence_rows_.push_back(step * columns_ + column);
  }
  Collect(sequence_rows_);
  GatherItems<std::uint8_t>(is_first_, sequence_rows_, 1, batch_is_first_);
  GatherItems<float>(first_state_, columns, model_.network().state_width(), batch_state_);
  Minibatch minibatch = View(static_cast<int>(sequence_rows_.size()));
  minibatch.input.steps = steps_;
  minibatch.input.state = batch_state_.data();
  minibatch.input.is_first = batch_is_first_.data();
  return minibatch;
}

void SlabBatch::UpdateObservationStatistics(UpdateRule& update) {
  model_.published().Observe(raw_numbers_, weights_, update);
}

double SlabBatch::mean_value() const {
  double sum = 0;
  for (const std::int32_t row : valid_rows_) sum += values_[row];
  return valid_rows_.empty() ? 0.0 : sum / static_cast<double>(valid_rows_.size());
}

double SlabBatch::explained_variance() const {
  double sum = 0;
  double squares = 0;
  double error_sum = 0;
  double error_squares = 0;
  for (const std::int32_t row : valid_rows_) {
    const double error = returns_[row] - values_[row];
    sum += returns_[row];
    squares += static_cast<double>(returns_[row]) * returns_[row];
    error_sum += error;
    error_squares += error * error;
  }
  const auto count = static_cast<double>(valid_rows_.size());
  const double variance = squares - sum * sum / count;
  return variance > 0 ? 1.0 - (error_squares - error_sum * error_sum / count) / variance : 0.0;
}

}  // namespace menger
