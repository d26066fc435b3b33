#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstddef>

#include "menger/base/error.h"
#include "menger/networks/torch/layers.h"

namespace menger {
namespace {

// The order of the four parts of `gates`. What is squashed by a sigmoid lies together, and so does
// what takes its gradient from the cell.
enum Part { kCandidate, kInputGate, kForgetGate, kOutputGate };

// The steps at which some sequence forgets, and which do: bool [steps, sequences, 1].
struct Resets {
  at::Tensor first;                 // Undefined if there are none.
  std::vector<std::int64_t> steps;  // Ascending.
};

// All that the gradient needs, [steps, sequences, ...].
struct Tape {
  at::Tensor gates;   // [..., 4, size], after sigmoid and tanh.
  at::Tensor hidden;  // [..., size], after each step.
  at::Tensor cells;   // [..., size], after each step.
};

// One part of each step's gates.
Tensors PartOfSteps(const at::Tensor& gates, Part part) { return gates.select(2, part).unbind(0); }

// `from_inputs` [steps, sequences, 4, size]. No autograd inside: a graph of the single operations
// of every step would cost several times what they do.
Tape RunSteps(const at::Tensor& from_inputs, const at::Tensor& hidden_weight,
              const at::Tensor& state, const Resets& resets) {
  const std::int64_t size = from_inputs.size(3);
  Tape tape;
  tape.gates = from_inputs.clone();
  tape.hidden = at::empty({from_inputs.size(0), from_inputs.size(1), size}, from_inputs.options());
  tape.cells = at::empty_like(tape.hidden);
  const Tensors sums = tape.gates.flatten(2).unbind(0);
  const Tensors candidate = PartOfSteps(tape.gates, kCandidate);
  const Tensors input_gate = PartOfSteps(tape.gates, kInputGate);
  const Tensors forget_gate = PartOfSteps(tape.gates, kForgetGate);
  const Tensors output_gate = PartOfSteps(tape.gates, kOutputGate);
  const Tensors sigmoids = tape.gates.narrow(2, kInputGate, 3).unbind(0);
  const Tensors hiddens = tape.hidden.unbind(0);
  const Tensors cells = tape.cells.unbind(0);

  at::Tensor hidden = state.narrow(1, 0, size);
  at::Tensor cell = state.narrow(1, size, size);
  auto reset = resets.steps.begin();
  for (std::size_t t = 0; t < sums.size(); ++t) {
    if (reset != resets.steps.end() && *reset == static_cast<std::int64_t>(t)) {
      // A fill, not a product: what is forgotten may be anything, not-a-number included.
      hidden = hidden.masked_fill(resets.first[*reset], 0.0);
      cell = cell.masked_fill(resets.first[*reset], 0.0);
      ++reset;
    }
    sums[t].addmm_(hidden, hidden_weight);
    sigmoids[t].sigmoid_();
    candidate[t].tanh_();
    hidden = hiddens[t];
    at::Tensor next_cell = cells[t];
    at::mul_out(next_cell, forget_gate[t], cell).addcmul_(input_gate[t], candidate[t]);
    cell = next_cell;
    at::tanh_out(hidden, cell).mul_(output_gate[t]);
  }
  return tape;
}

// What each step started from: the values after the step before, forgotten where asked.
at::Tensor Before(const at::Tensor& start, const at::Tensor& after, const at::Tensor& first) {
  const at::Tensor before = at::cat({start.unsqueeze(0), after.narrow(0, 0, after.size(0) - 1)});
  return first.defined() ? before.masked_fill(first, 0.0) : before;
}

// The gradient of the sums in the gates, shaped as `gates`, from that of the hidden values.
at::Tensor SumGradients(const Tape& tape, const at::Tensor& cells_before,
                        const at::Tensor& hidden_weight, const Resets& resets,
                        const at::Tensor& hidden_gradient) {
  const Tensors parts = tape.gates.unbind(2);
  const at::Tensor squashed = at::tanh(tape.cells);
  const auto sigmoid_slope = [](const at::Tensor& y) { return y.mul(y.neg().add_(1.0)); };
  const auto tanh_slope = [](const at::Tensor& y) { return y.square().neg_().add_(1.0); };
  // For all steps at once, what does not depend on the gradient: d(hidden)/d(cell), and d/d(sum)
  // of the cell (the first three) and of the hidden value (the last).
  const Tensors cell_slope = parts[kOutputGate].mul(tanh_slope(squashed)).unbind(0);
  const at::Tensor slopes = at::stack({parts[kInputGate].mul(tanh_slope(parts[kCandidate])),
                                       parts[kCandidate].mul(sigmoid_slope(parts[kInputGate])),
                                       cells_before.mul(sigmoid_slope(parts[kForgetGate])),
                                       squashed.mul(sigmoid_slope(parts[kOutputGate]))},
                                      2);
  const Tensors from_cell = slopes.narrow(2, 0, 3).unbind(0);
  const Tensors from_hidden = slopes.select(2, kOutputGate).unbind(0);
  const Tensors forget_gate = PartOfSteps(tape.gates, kForgetGate);

  const at::Tensor gradients = at::empty_like(slopes);
  const Tensors rows = gradients.flatten(2).unbind(0);
  Tensors to_cell = gradients.narrow(2, 0, 3).unbind(0);
  Tensors to_hidden = PartOfSteps(gradients, kOutputGate);
  const Tensors given = hidden_gradient.unbind(0);
  const at::Tensor back = hidden_weight.t();

  at::Tensor hidden = given.back();
  at::Tensor cell;  // Undefined: nothing yet.
  auto reset = resets.steps.rbegin();
  for (std::size_t t = rows.size(); t-- > 0;) {
    cell = cell.defined() ? cell.addcmul_(hidden, cell_slope[t]) : hidden.mul(cell_slope[t]);
    at::mul_out(to_cell[t], from_cell[t], cell.unsqueeze(1));
    at::mul_out(to_hidden[t], from_hidden[t], hidden);
    if (t == 0) break;
    cell.mul_(forget_gate[t]);
    if (reset != resets.steps.rend() && *reset == static_cast<std::int64_t>(t)) {
      cell.masked_fill_(resets.first[*reset], 0.0);
      hidden = at::mm(rows[t], back).masked_fill_(resets.first[*reset], 0.0).add_(given[t - 1]);
      ++reset;
    } else {
      hidden = at::addmm(given[t - 1], rows[t], back);
    }
  }
  return gradients;
}

// RunSteps as one node of the graph. The state is data: it gets no gradient.
struct StepsFunction : public torch::autograd::Function<StepsFunction> {
  using Context = torch::autograd::AutogradContext;

  static Tensors forward(Context* context, const at::Tensor& from_inputs,
                         const at::Tensor& hidden_weight, const at::Tensor& state,
                         const Resets* resets) {
    const Tape tape = RunSteps(from_inputs, hidden_weight, state, *resets);
    context->save_for_backward(
        {tape.gates, tape.hidden, tape.cells, hidden_weight, state, resets->first});
    context->saved_data["reset_steps"] = resets->steps;
    context->mark_non_differentiable({tape.cells});
    return {tape.hidden, tape.cells};
  }

  static Tensors backward(Context* context, Tensors gradients) {
    const Tensors saved = context->get_saved_variables();
    const Tape tape{saved[0], saved[1], saved[2]};
    const at::Tensor& hidden_weight = saved[3];
    const at::Tensor& state = saved[4];
    const Resets resets{saved[5], context->saved_data["reset_steps"].toIntVector()};
    const std::int64_t size = hidden_weight.size(0);

    const at::Tensor cells_before = Before(state.narrow(1, size, size), tape.cells, resets.first);
    const at::Tensor hidden_before = Before(state.narrow(1, 0, size), tape.hidden, resets.first);
    const at::Tensor sums =
        SumGradients(tape, cells_before, hidden_weight, resets, gradients[0].contiguous());
    const at::Tensor weight = at::mm(hidden_before.flatten(0, 1).t(), sums.view({-1, 4 * size}));
    return {sums, weight, at::Tensor(), at::Tensor()};
  }
};

Resets ResetsOf(std::span<const std::uint8_t> is_first, std::int64_t sequences,
                const at::Device& device) {
  Resets resets;
  for (std::size_t i = 0; i < is_first.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) / sequences;
    if (is_first[i] != 0 && (resets.steps.empty() || resets.steps.back() != step)) {
      resets.steps.push_back(step);
    }
  }
  if (!resets.steps.empty()) {
    const auto steps = static_cast<std::int64_t>(is_first.size()) / sequences;
    resets.first = at::from_blob(const_cast<std::uint8_t*>(is_first.data()), {steps, sequences, 1},
                                 at::TensorOptions(at::kByte))
                       .to(device, /*non_blocking=*/true)
                       .to(at::kBool);
  }
  return resets;
}

}  // namespace

LstmLayer::LstmLayer(ParameterPlan& plan, const std::string& name, std::int64_t inputs,
                     std::int64_t size)
    : size_(size) {
  if (size < 1) throw InvalidArgument("network.lstm_size is {}; it must be at least 1", size);
  const auto add = [&](const char* part, std::int64_t rows) {
    return plan.AddOrthogonal(name + part, {rows, 4 * size}, static_cast<int>(rows),
                              static_cast<int>(4 * size), /*gain=*/1.0);
  };
  input_weight_ = add("/input_weight", inputs);
  hidden_weight_ = add("/hidden_weight", size);
  bias_ = plan.AddConstant(name + "/bias", {4 * size}, 0.0);
}

std::pair<at::Tensor, at::Tensor> LstmLayer::Run(const Tensors& weights, const at::Tensor& rows,
                                                 const at::Tensor& state,
                                                 std::span<const std::uint8_t> is_first) const {
  const std::int64_t sequences = state.size(0);
  const at::Tensor from_inputs =
      at::addmm(weights[bias_], rows, weights[input_weight_]).view({-1, sequences, 4, size_});
  const Resets resets = ResetsOf(is_first, sequences, rows.device());
  const Tensors results =
      StepsFunction::apply(from_inputs, weights[hidden_weight_], state, &resets);
  const at::Tensor next_state = at::cat({results[0].detach()[-1], results[1][-1]}, 1);
  return {results[0].flatten(0, 1), next_state};
}

}  // namespace menger
