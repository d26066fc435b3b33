#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "menger/tensor/column_layout.h"
#include "menger/tensor/memory.h"
#include "menger/tensor/spec.h"

namespace menger {

// Everything that decides the memory layout of a slab. Two processes with equal SlabSpecs agree on
// every address offset.
struct SlabSpec {
  Spec observation;  // What the environment shows before each action.
  Spec state;        // The policy's recurrent state carried into each step; empty without one.
  Spec action;       // What the policy does; stored before clipping.
  Spec policy;       // What the policy says about its action: log_probability, value, ...
  int horizon = 1;   // T: steps of one collection pass.
  int history = 0;   // Frames kept before row 0: frame stack - 1.
  ColumnLayout columns = ColumnLayout::Single(1);

  // Throws InvalidArgument that names the field; so do horizon x columns beyond 2^31 - 1.
  void Check() const;
};

// Where one array of a slab lies, for those who do not use this class.
struct SlabArray {
  std::string part;  // "observation", "final_observation", "reward", ...
  int leaf = 0;
  std::size_t offset = 0;  // From the start of memory to row 0 (slot 0), position 0.
  std::size_t item = 0;    // Bytes of one position.
  std::size_t row = 0;     // Bytes of one row.
};

// What one collection pass fills: rows (steps) by columns (environments), one array a leaf,
// time-major.
//
// T is the horizon; a pass may have fewer rows (set_horizon), and those are all that counts then.
// Row t in [0, T) holds, before the action: observation, is_first, state; the action with the
// policy's columns and the parameter version that acted; then what the action caused: reward,
// terminated, truncated, valid. Row T holds only observation, is_first and state; `Carry` takes it
// (and the history rows before it) to the next slab's row 0. Rows -history .. -1 hold the frames
// before row 0 (observation and is_first only).
//
// Conventions, the same for every writer and reader:
// - is_first[t] = 1: the observation of row t starts an episode. A stack never reaches back across
// it.
// - state[t] is what the policy wrote when it acted on row t-1. Readers zero it where is_first[t]
// is set.
// - Resets happen in the same step: when an episode ends at row t, row t+1 already shows the next
// one, and the last
//   observation of the old one is in the side buffer, at the slot that final_index[t] names (-1:
//   none).
// - terminated is the learning signal, truncated means cut short: bootstrap from the final
// observation unless terminated.
//   episode_end drives statistics; it differs from the two where a recipe ends episodes early for
//   learning (life loss).
// - valid[t] = 0: nothing was learned from this row (padding, a parked or failed environment): keep
// it out of every mean.
// - Values are raw: transforms (clip, normalise, stack) are applied by those who read.
//
// Memory is one run of bytes, plain or shared; every leaf's array starts on a cache line. Rows of a
// leaf are `positions()` columns wide (environments plus padding). The slab does no locking: a
// writer owns its columns, and hands them over by an EpochCounter or a join. Pointers stay good for
// the slab's life.
class Slab {
 public:
  explicit Slab(SlabSpec spec);                         // In plain memory.
  Slab(SlabSpec spec, std::unique_ptr<Memory> memory);  // In memory of at least BytesNeeded(spec).
  static Slab Shared(SlabSpec spec);                    // In shared memory of its own.
  static std::size_t BytesNeeded(const SlabSpec& spec);

  const SlabSpec& spec() const { return spec_; }
  const ColumnLayout& columns() const { return spec_.columns; }
  // T of the present pass: the spec's, unless a pass has been made shorter. Throws InvalidArgument
  // outside 1 .. the spec's.
  int horizon() const { return horizon_; }
  void set_horizon(int horizon);
  int positions() const { return spec_.columns.positions(); }

  // Steps that each environment had taken before row 0. (environment, first_step + row) names a
  // step of the whole run, whatever the batching: it is the counter of every random draw made while
  // acting.
  std::int64_t first_step() const { return first_step_; }
  void set_first_step(std::int64_t step) { first_step_ = step; }

  // Leaf arrays: pointer to the given row (-history <= row <= T) and position. `leaf` counts within
  // the part's spec.
  template <typename T = std::byte>
  T* observation(int leaf, int row, int position = 0) {
    return At<T>(observation_[leaf], row, position);
  }
  template <typename T = std::byte>
  const T* observation(int leaf, int row, int position = 0) const {
    return At<T>(observation_[leaf], row, position);
  }
  template <typename T = std::byte>
  T* state(int leaf, int row, int position = 0) {
    return At<T>(state_[leaf], row, position);
  }
  template <typename T = std::byte>
  const T* state(int leaf, int row, int position = 0) const {
    return At<T>(state_[leaf], row, position);
  }
  template <typename T = std::byte>
  T* action(int leaf, int row, int position = 0) {
    return At<T>(action_[leaf], row, position);
  }
  template <typename T = std::byte>
  const T* action(int leaf, int row, int position = 0) const {
    return At<T>(action_[leaf], row, position);
  }
  template <typename T = std::byte>
  T* policy(int leaf, int row, int position = 0) {
    return At<T>(policy_[leaf], row, position);
  }
  template <typename T = std::byte>
  const T* policy(int leaf, int row, int position = 0) const {
    return At<T>(policy_[leaf], row, position);
  }

  // Standard columns: pointer to `positions()` values of one row.
  std::uint8_t* is_first(int row) { return At<std::uint8_t>(is_first_, row, 0); }
  const std::uint8_t* is_first(int row) const { return At<std::uint8_t>(is_first_, row, 0); }
  double* reward(int row) { return At<double>(reward_, row, 0); }
  const double* reward(int row) const { return At<double>(reward_, row, 0); }
  std::uint8_t* terminated(int row) { return At<std::uint8_t>(terminated_, row, 0); }
  const std::uint8_t* terminated(int row) const { return At<std::uint8_t>(terminated_, row, 0); }
  std::uint8_t* truncated(int row) { return At<std::uint8_t>(truncated_, row, 0); }
  const std::uint8_t* truncated(int row) const { return At<std::uint8_t>(truncated_, row, 0); }
  std::uint8_t* episode_end(int row) { return At<std::uint8_t>(episode_end_, row, 0); }
  const std::uint8_t* episode_end(int row) const { return At<std::uint8_t>(episode_end_, row, 0); }
  std::uint8_t* valid(int row) { return At<std::uint8_t>(valid_, row, 0); }
  const std::uint8_t* valid(int row) const { return At<std::uint8_t>(valid_, row, 0); }
  std::int64_t* version(int row) { return At<std::int64_t>(version_, row, 0); }
  const std::int64_t* version(int row) const { return At<std::int64_t>(version_, row, 0); }
  std::int32_t* final_index(int row) { return At<std::int32_t>(final_index_, row, 0); }
  const std::int32_t* final_index(int row) const { return At<std::int32_t>(final_index_, row, 0); }

  // The side buffer of final observations: T x positions slots, touched only where an episode ends.
  int FinalSlot(int row, int position) const { return row * positions() + position; }
  template <typename T = std::byte>
  T* final_observation(int leaf, int slot) {
    return reinterpret_cast<T*>(data_ + final_observation_[leaf].offset +
                                static_cast<std::size_t>(slot) * final_observation_[leaf].item);
  }
  template <typename T = std::byte>
  const T* final_observation(int leaf, int slot) const {
    return const_cast<Slab*>(this)->final_observation<T>(leaf, slot);
  }

  // Writes row T of this pass (observation, is_first, state) and the `history` rows before it into
  // rows <= 0 of `next`, and sets next.first_step. `next` may be this slab itself. Specs must be
  // equal.
  void Carry(Slab& next) const;

  // Bytes of one element of a row: for copying whole columns.
  std::size_t observation_bytes(int leaf) const { return observation_[leaf].item; }

  // For other processes: the memory they map (-1: it is not shared), and where each array lies.
  int descriptor() const { return descriptor_; }
  std::vector<SlabArray> arrays() const;

 private:
  struct Array {
    std::size_t offset = 0;  // From the start of memory to row 0, position 0.
    std::size_t item = 0;    // Bytes of one position.
    std::size_t row = 0;     // Bytes of one row.
  };

  template <typename T>
  T* At(const Array& array, int row, int position) {
    return reinterpret_cast<T*>(data_ + array.offset +
                                static_cast<std::ptrdiff_t>(array.row) * row +
                                array.item * static_cast<std::size_t>(position));
  }
  template <typename T>
  const T* At(const Array& array, int row, int position) const {
    return const_cast<Slab*>(this)->At<T>(array, row, position);
  }
  Slab() = default;      // For BytesNeeded: a layout without memory.
  std::size_t LayOut();  // Fills the arrays from spec_; returns the bytes needed.

  SlabSpec spec_;
  int horizon_ = 1;
  std::int64_t first_step_ = 0;
  std::vector<Array> observation_, final_observation_, state_, action_, policy_;
  Array is_first_, reward_, terminated_, truncated_, episode_end_, valid_, version_, final_index_;
  std::unique_ptr<Memory> memory_;
  std::byte* data_ = nullptr;  // memory_->data(), without the virtual call.
  int descriptor_ = -1;
};

// Rows of all environments that count.
std::int64_t ValidSteps(const Slab& slab);

}  // namespace menger
