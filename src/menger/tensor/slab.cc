#include "menger/tensor/slab.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kCacheLine = 64;

std::size_t RoundUp(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

void CheckEqual(const Spec& from, const Spec& to, const char* part) {
  for (int i = 0; i < std::max(from.size(), to.size()); ++i) {
    if (i >= from.size() || i >= to.size() || from[i].name != to[i].name ||
        from[i].dtype != to[i].dtype || from[i].shape != to[i].shape) {
      throw InvalidArgument(
          "slabs differ in leaf {} of their {} spec; carry only between equal slabs", i, part);
    }
  }
}

}  // namespace

void SlabSpec::Check() const {
  if (horizon < 1) throw InvalidArgument("slab horizon is {}; it must be at least 1", horizon);
  if (history < 0) throw InvalidArgument("slab history is {}; it must be at least 0", history);
  if (observation.size() == 0) throw InvalidArgument("a slab needs at least one observation leaf");
  if (action.size() == 0) throw InvalidArgument("a slab needs at least one action leaf");
  // final_index and the row numbers of learners are 32 bits.
  const std::int64_t rows = static_cast<std::int64_t>(horizon) * columns.positions();
  if (rows > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        "a slab of horizon {} and {} columns (padding included) has {} rows; it must have less "
        "than 2^31",
        horizon, columns.positions(), rows);
  }
}

void Slab::set_horizon(int horizon) {
  if (horizon < 1 || horizon > spec_.horizon) {
    throw InvalidArgument("a pass of {} rows is not one of 1 to {}, the slab's horizon", horizon,
                          spec_.horizon);
  }
  horizon_ = horizon;
}

std::size_t Slab::LayOut() {
  std::size_t end = 0;
  const auto width = static_cast<std::size_t>(positions());
  // `before` rows precede row 0 in memory, so that a history row is a negative row number.
  const auto add = [&](std::size_t item, int before, int rows) {
    Array array{.item = item, .row = item * width};
    array.offset = end + array.row * static_cast<std::size_t>(before);
    end = RoundUp(end + array.row * static_cast<std::size_t>(before + rows));
    return array;
  };
  const auto add_part = [&](const Spec& part, int before, int rows) {
    std::vector<Array> arrays;
    for (const LeafSpec& leaf : part.leaves()) arrays.push_back(add(leaf.bytes(), before, rows));
    return arrays;
  };
  const int steps = horizon_ = spec_.horizon;
  observation_ = add_part(spec_.observation, spec_.history, steps + 1);
  state_ = add_part(spec_.state, 0, steps + 1);
  action_ = add_part(spec_.action, 0, steps);
  policy_ = add_part(spec_.policy, 0, steps);
  is_first_ = add(1, spec_.history, steps + 1);
  reward_ = add(sizeof(double), 0, steps);
  terminated_ = add(1, 0, steps);
  truncated_ = add(1, 0, steps);
  episode_end_ = add(1, 0, steps);
  valid_ = add(1, 0, steps);
  version_ = add(sizeof(std::int64_t), 0, steps);
  final_index_ = add(sizeof(std::int32_t), 0, steps);
  final_observation_ = add_part(spec_.observation, 0, steps);
  return end;
}

Slab::Slab(SlabSpec spec) : spec_(std::move(spec)) {
  spec_.Check();
  memory_ = AllocatePlainMemory(LayOut());
  data_ = memory_->data();
}

Slab::Slab(SlabSpec spec, std::unique_ptr<Memory> memory)
    : spec_(std::move(spec)), memory_(std::move(memory)) {
  spec_.Check();
  const std::size_t needed = LayOut();
  if (memory_ == nullptr || memory_->size() < needed) {
    throw InvalidArgument("slab memory has {} bytes; this spec needs {}",
                          memory_ == nullptr ? 0 : memory_->size(), needed);
  }
  data_ = memory_->data();
}

Slab Slab::Shared(SlabSpec spec) {
  auto memory = AllocateSharedMemory("menger-slab", BytesNeeded(spec));
  const int descriptor = memory->descriptor();
  Slab slab(std::move(spec), std::move(memory));
  slab.descriptor_ = descriptor;
  return slab;
}

std::size_t Slab::BytesNeeded(const SlabSpec& spec) {
  spec.Check();
  Slab layout;
  layout.spec_ = spec;
  return layout.LayOut();
}

std::vector<SlabArray> Slab::arrays() const {
  std::vector<SlabArray> arrays;
  const auto add = [&arrays](const char* part, int leaf, const Array& array) {
    arrays.push_back(
        {.part = part, .leaf = leaf, .offset = array.offset, .item = array.item, .row = array.row});
  };
  const auto add_part = [&add](const char* part, const std::vector<Array>& leaves) {
    for (std::size_t i = 0; i < leaves.size(); ++i) add(part, static_cast<int>(i), leaves[i]);
  };
  add_part("observation", observation_);
  add_part("final_observation", final_observation_);
  add_part("state", state_);
  add_part("action", action_);
  add_part("policy", policy_);
  add("is_first", 0, is_first_);
  add("reward", 0, reward_);
  add("terminated", 0, terminated_);
  add("truncated", 0, truncated_);
  add("episode_end", 0, episode_end_);
  add("valid", 0, valid_);
  add("version", 0, version_);
  add("final_index", 0, final_index_);
  return arrays;
}

void Slab::Carry(Slab& next) const {
  if (next.positions() != positions() || next.spec_.history != spec_.history) {
    throw InvalidArgument("cannot carry a slab of {} columns and history {} into one of {} and {}",
                          positions(), spec_.history, next.positions(), next.spec_.history);
  }
  CheckEqual(spec_.observation, next.spec_.observation, "observation");
  CheckEqual(spec_.state, next.spec_.state, "state");
  const auto copy = [this, &next](const Array& from, const Array& to, int row) {
    std::memmove(next.At<std::byte>(to, row, 0), At<std::byte>(from, horizon_ + row, 0), from.row);
  };
  // Oldest first: with one slab as source and target, a row is read before it is overwritten.
  for (int row = -spec_.history; row <= 0; ++row) {
    for (std::size_t i = 0; i < observation_.size(); ++i) {
      copy(observation_[i], next.observation_[i], row);
    }
    copy(is_first_, next.is_first_, row);
  }
  for (std::size_t i = 0; i < state_.size(); ++i) copy(state_[i], next.state_[i], 0);
  next.first_step_ = first_step_ + horizon_;
}

std::int64_t ValidSteps(const Slab& slab) {
  std::int64_t steps = 0;
  for (int row = 0; row < slab.horizon(); ++row) {
    const std::uint8_t* const valid = slab.valid(row);
    steps += std::count(valid, valid + slab.positions(), std::uint8_t{1});
  }
  return steps;
}

}  // namespace menger
