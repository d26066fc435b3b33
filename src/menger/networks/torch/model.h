#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/networks/network.h"
#include "menger/networks/torch/layers.h"
#include "menger/networks/torch/parameter_plan.h"

namespace menger {

// A network without its weights: which arrays it has, and its outputs as a pure function of them.
//
// Trunk, then an LSTM layer for the kinds that remember, then heads. Every head of kind "mlp" has a
// trunk of its own unless `shared_trunk`; all other kinds share theirs, "trunk", and of
// convolutional ones without an LSTM layer its last layer has a part for each head then. Names,
// shapes and initial values of kind "mlp" are those of MlpNetwork: parameters trained on one load
// into the other. Heads and the LSTM layer stay in fp32 whatever the precision: bfloat16 has too
// few digits for values and for what accumulates over steps. Immutable, safe from any thread.
class Model {
 public:
  // Throws InvalidArgument for an unknown kind, for observations that the kind cannot read, for a
  // vector beside what is none itself (JoinedNetwork makes one of two), and without a head.
  explicit Model(const NetworkSpec& spec);

  const ParameterPlan& plan() const { return plan_; }
  std::span<const HeadSpec> heads() const { return head_specs_; }
  int state_width() const { return lstm_ ? static_cast<int>(2 * lstm_->size()) : 0; }

  // One float32 tensor a head, [rows, width]. `state` and `is_first` as LstmLayer's; `next_state`
  // is set for recurrent models.
  Tensors Run(const Tensors& weights, const ModelInput& input, const at::Tensor& state,
              std::span<const std::uint8_t> is_first, at::Tensor* next_state) const;

 private:
  struct Head {
    int trunk = 0;                // Of trunks_,
    std::int64_t feature = 0;     // and the first feature that the head reads.
    std::optional<Dense> output;  // None for a constant head, which has only `bias`.
    int bias = -1;
  };

  ParameterPlan plan_;
  std::vector<HeadSpec> head_specs_;
  std::vector<std::unique_ptr<Trunk>> trunks_;
  std::optional<LstmLayer> lstm_;
  std::vector<Head> heads_;
};

}  // namespace menger
