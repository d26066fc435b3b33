#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "menger/tensor/slab.h"

namespace menger {

// The leaves that a policy adds to a slab, and how it works.
struct PolicySpec {
  Spec state;    // Recurrent state; empty without one.
  Spec columns;  // What it says about each action, for example log_probability and value.
  bool waits_for_device = false;  // Act mostly waits, and leaves its core to others meanwhile.
  bool batch_invariant = true;    // See Policy.
};

// Where a policy is to act: some positions of one row of a slab.
struct ActSlice {
  Slab* slab = nullptr;
  int row = 0;
  PositionRange positions;

  // Steps that each environment had taken before.
  std::int64_t step() const { return slab->first_step() + row; }
  // Of each position; -1 for padding.
  std::span<const int> environments() const { return slab->columns().EnvironmentsAt(positions); }
};

// Chooses actions: observations, is_first, recurrent state and action masks in; actions, its
// declared columns and the next recurrent state out, all in place in the slab. Torch-free, so that
// collectors know nothing of networks.
//
// Random draws are a function of (run seed, environment index, step of the run) alone, taken from
// slab.columns().EnvironmentAt(position) and slab.first_step() + row: the same environment gets the
// same draw however columns are batched. A policy is *batch-invariant* when the rest of its
// arithmetic does not depend on the batch either. One thread at a time may call a policy; each
// worker that acts has its own.
class Policy {
 public:
  virtual ~Policy() = default;

  virtual const PolicySpec& spec() const = 0;

  // Takes the newest published parameters. Called between slabs (or between steps by asynchronous
  // collectors).
  virtual void Refresh() = 0;

  // Acts on all slices as one batch: they may be of different slabs and rows. Slabs of one call
  // have one spec. Padding among the positions is harmless: whatever is written there is invalid.
  // Writes action, policy columns and version of each slice's row, and state of the row after it.
  // Throws InvalidArgument where an action mask allows nothing.
  virtual void Act(std::span<const ActSlice> slices) = 0;

  // The same for one.
  void Act(Slab& slab, int row, PositionRange positions) {
    const ActSlice slice{.slab = &slab, .row = row, .positions = positions};
    Act({&slice, 1});
  }

  // V of final observations, by the parameters that act: `values[i]` of the one in slot slots[i] of
  // the slab's side buffer. They end episodes, so nobody acts on them and no column has them.
  // Throws FailedPrecondition where policies have no values.
  virtual void FinalValues(const Slab& slab, std::span<const int> slots, std::span<float> values);
};

using PolicyFactory = std::function<std::unique_ptr<Policy>()>;

}  // namespace menger
