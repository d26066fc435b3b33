#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/algorithms/encoded_batch.h"
#include "menger/algorithms/policy_model.h"
#include "menger/collectors/policy.h"
#include "menger/networks/network.h"
#include "menger/parameters/parameter_source.h"

namespace menger {

// A policy that acts with a copy of a published network: it follows a source of versions, encodes
// and normalises what it is shown, and computes the outputs of all slices as one batch. What action
// they mean is the subclass's to say, in Choose.
class NetworkPolicy : public Policy {
 public:
  const PolicySpec& spec() const final { return spec_; }
  void Refresh() final;
  void Act(std::span<const ActSlice> slices) final;
  using Policy::Act;
  void FinalValues(const Slab& slab, std::span<const int> slots, std::span<float> values) final;

 protected:
  // Borrows model, spec and source (null: acts with what Use gives it). Whoever makes one calls
  // Refresh.
  NetworkPolicy(const PolicyModel& model, const PolicySpec& spec, const ParameterSource* source);

  const PolicyModel& model() const { return model_; }
  Network& network() { return *network_; }
  float extra() const { return version_.back(); }

  // Takes a version's values by hand. Copies them.
  void Use(std::span<const float> version);
  void TakeParameters();  // Of version_.

  // What may share a batch: BeforeOutputs is told the one slice, or the one position, of each.
  enum class Sharing : std::uint8_t { kAll, kSlice, kNothing };

  // The action mask of a slice's positions; null without one.
  const std::uint8_t* MaskOf(const ActSlice& slice) const;

 private:
  // Writes actions and policy columns of a slice, given its rows of the outputs.
  virtual void Choose(const ActSlice& slice, std::span<const Matrix> outputs) = 0;

  // False where it chooses without a look at the network: then there are no outputs.
  virtual bool NeedsOutputs() const { return true; }

  virtual Sharing sharing() const { return Sharing::kAll; }
  virtual void BeforeOutputs(const ActSlice& /*slice*/) {}

  // The values of rows of outputs; `masks` has those rows' action masks, null without any. Throws
  // FailedPrecondition where there are none.
  virtual void ValuesOf(std::span<const Matrix> outputs, const std::uint8_t* masks,
                        std::span<float> values);

  void ActOn(std::span<const ActSlice> slices);
  NetworkInput InputOf(std::span<const ActSlice> slices);
  NetworkInput ObservationsOf(std::span<const ActSlice> slices);
  void WriteState(std::span<const ActSlice> slices) const;

  const PolicyModel& model_;
  const PolicySpec& spec_;
  const ParameterSource* const source_;
  const std::unique_ptr<Network> network_;
  std::shared_ptr<const ParameterBlob> blob_;  // The version in use; null: by Use.
  std::vector<float> used_;                    // What Use gave.
  std::span<const float> version_;             // The values in use, wherever they are.

  // Scratch; grows to the largest batch once.
  EncodedBatch encoded_;
  std::vector<float> state_;
  std::vector<std::uint8_t> is_first_;
  std::vector<std::uint8_t> masks_;
  std::vector<Matrix> of_slice_;
};

}  // namespace menger
