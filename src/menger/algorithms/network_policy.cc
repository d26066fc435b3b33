#include "menger/algorithms/network_policy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

int RowsOf(std::span<const ActSlice> slices) {
  int rows = 0;
  for (const ActSlice& slice : slices) rows += slice.positions.count;
  return rows;
}

}  // namespace

NetworkPolicy::NetworkPolicy(const PolicyModel& model, const PolicySpec& spec,
                             const ParameterSource* source)
    : model_(model),
      spec_(spec),
      source_(source),
      network_(model.network().Clone(/*threads=*/1)),
      encoded_(model.encoder()) {
  if (source != nullptr) {
    model.manifest().CheckEqual(source->manifest(), "the source of parameters");
  }
}

void NetworkPolicy::Refresh() {
  if (source_ == nullptr) return;
  auto latest = source_->Latest();
  if (latest == blob_) return;
  blob_ = std::move(latest);
  version_ = blob_->values();
  TakeParameters();
}

void NetworkPolicy::Use(std::span<const float> version) {
  used_.assign(version.begin(), version.end());
  version_ = used_;
  TakeParameters();
}

void NetworkPolicy::TakeParameters() {
  const std::span<const float> parameters = model_.ParametersIn(version_);
  std::copy(parameters.begin(), parameters.end(), network_->parameters().begin());
  network_->ParametersChanged();
}

const std::uint8_t* NetworkPolicy::MaskOf(const ActSlice& slice) const {
  const int leaf = model_.encoder().mask_leaf();
  if (leaf < 0) return nullptr;
  return slice.slab->observation<std::uint8_t>(leaf, slice.row, slice.positions.first);
}

void NetworkPolicy::Act(std::span<const ActSlice> slices) {
  if (sharing() == Sharing::kAll) return ActOn(slices);
  for (const ActSlice& slice : slices) {
    const auto [first, count] = slice.positions;
    const int step = sharing() == Sharing::kSlice ? count : 1;
    for (int i = 0; i < count; i += step) {
      const ActSlice part{
          .slab = slice.slab, .row = slice.row, .positions = {.first = first + i, .count = step}};
      ActOn({&part, 1});
    }
  }
}

void NetworkPolicy::FinalValues(const Slab& slab, std::span<const int> slots,
                                std::span<float> values) {
  if (slots.empty()) return;
  const ObservationEncoder& encoder = model_.encoder();
  encoded_.Reserve(*network_, static_cast<int>(slots.size()));
  const int width = network_->state_width();
  state_.clear();
  masks_.clear();
  is_first_.assign(slots.size(), 0);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    encoder.EncodeFinal(slab, slots[i], encoded_.At(static_cast<int>(i)));
    if (width > 0) {  // What the policy carried out of the row before.
      const int row = slots[i] / slab.positions();
      const float* const state = slab.state<float>(0, row + 1, slots[i] % slab.positions());
      state_.insert(state_.end(), state, state + width);
    }
    if (const int leaf = encoder.mask_leaf(); leaf >= 0) {
      const auto* const mask = slab.final_observation<std::uint8_t>(leaf, slots[i]);
      masks_.insert(masks_.end(), mask, mask + slab.spec().observation[leaf].elements());
    }
  }
  model_.Normalise(encoded_.numbers(), version_);
  NetworkInput input = encoded_.input();
  if (width > 0) {
    input.state = state_.data();
    input.is_first = is_first_.data();
  }
  ValuesOf(network_->Infer(input), masks_.empty() ? nullptr : masks_.data(), values);
}

void NetworkPolicy::ValuesOf(std::span<const Matrix> /*outputs*/, const std::uint8_t* /*masks*/,
                             std::span<float> /*values*/) {
  throw FailedPrecondition("the network of this policy gives actions, and no values");
}

void NetworkPolicy::ActOn(std::span<const ActSlice> slices) {
  std::span<const Matrix> outputs;
  if (NeedsOutputs()) {
    BeforeOutputs(slices.front());
    outputs = network_->Infer(InputOf(slices));
    if (network_->state_width() > 0) WriteState(slices);
  }
  const std::int64_t version = blob_ == nullptr ? 0 : blob_->version().packed();
  int first = 0;
  for (const ActSlice& slice : slices) {
    const int count = slice.positions.count;
    of_slice_.clear();
    for (const Matrix& output : outputs) {
      of_slice_.push_back({.data = output.row(first),
                           .rows = count,
                           .columns = output.columns,
                           .stride = output.stride});
    }
    Choose(slice, of_slice_);
    std::fill_n(slice.slab->version(slice.row) + slice.positions.first, count, version);
    first += count;
  }
}

NetworkInput NetworkPolicy::InputOf(std::span<const ActSlice> slices) {
  NetworkInput input = ObservationsOf(slices);
  const int width = network_->state_width();
  if (width == 0) return input;
  const ActSlice& only = slices.front();
  if (slices.size() == 1) {
    input.state = only.slab->state<float>(0, only.row, only.positions.first);
    input.is_first = only.slab->is_first(only.row) + only.positions.first;
    return input;
  }
  state_.clear();
  is_first_.clear();
  for (const auto& [slab, row, positions] : slices) {
    const float* const state = slab->state<float>(0, row, positions.first);
    const std::uint8_t* const is_first = slab->is_first(row) + positions.first;
    state_.insert(state_.end(), state,
                  state + static_cast<std::ptrdiff_t>(positions.count) * width);
    is_first_.insert(is_first_.end(), is_first, is_first + positions.count);
  }
  input.state = state_.data();
  input.is_first = is_first_.data();
  return input;
}

// One slice may be read where it lies.
NetworkInput NetworkPolicy::ObservationsOf(std::span<const ActSlice> slices) {
  const ObservationEncoder& encoder = model_.encoder();
  const int rows = RowsOf(slices);
  encoded_.Reserve(*network_, rows);
  EncodedRows parts = encoded_.At(0);
  const void* images = parts.image;
  const float* numbers = parts.numbers;
  if (slices.size() == 1) {
    const ActSlice& only = slices.front();
    if (const int leaf = encoder.image_in_place(); leaf >= 0) {
      images = only.slab->observation(leaf, only.row, only.positions.first);
      parts.image = nullptr;
    }
    if (const int leaf = encoder.numbers_in_place(); leaf >= 0 && !model_.normalises()) {
      numbers = only.slab->observation<float>(leaf, only.row, only.positions.first);
      parts.numbers = nullptr;
    }
  }
  int first = 0;
  for (const auto& [slab, row, positions] : slices) {
    EncodedRows to = encoded_.At(first);
    if (parts.image == nullptr) to.image = nullptr;
    if (parts.numbers == nullptr) to.numbers = nullptr;
    encoder.Encode(*slab, row, positions.first, positions.count, to);
    first += positions.count;
  }
  if (model_.normalises()) model_.Normalise(encoded_.numbers(), version_);
  return EncodedInput(encoder, images, numbers, rows);
}

void NetworkPolicy::WriteState(std::span<const ActSlice> slices) const {
  const float* next = network_->next_state();
  for (const auto& [slab, row, positions] : slices) {
    const std::size_t floats = static_cast<std::size_t>(positions.count) * network_->state_width();
    std::memcpy(slab->state<float>(0, row + 1, positions.first), next, sizeof(float) * floats);
    next += floats;
  }
}

}  // namespace menger
