#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/options.h"
#include "menger/base/random.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/parameters/manifest.h"
#include "menger/tensor/memory.h"
#include "menger/tensor/spec.h"

namespace menger {

// A named linear output of a network, for example "policy" (one logit an action) or "value" (one
// number).
struct HeadSpec {
  std::string name;
  int width = 1;
  double gain = 1.0;  // Of its orthogonal initialisation.
  bool constant =
      false;  // The same for every input, a bias alone: a state-independent log standard deviation.
  double bias = 0.0;  // Initial value of the bias.
};

// Options of section [network].
struct NetworkOptions {
  std::string kind = "mlp";  // mlp, nature_cnn, a3c_cnn, lstm, nature_cnn_lstm, a3c_cnn_lstm.
  std::vector<std::int64_t> hidden = {64, 64};
  std::string activation = "tanh";  // tanh or relu.
  bool shared_trunk = false;        // false: every head has hidden layers of its own; those of
                                    // a convolutional network share the convolutions all the same.
  bool layer_norm = false;  // Normalises hidden layers (Ba et al. 2016): of MlpNetwork alone.
  std::int64_t lstm_size = 64;

  // Whether it is convolutional: then it reads stacked frames, else vectors.
  bool reads_frames() const { return kind.find("cnn") != std::string::npos; }
  // Whether it has an LSTM layer: after the hidden layers of kind "lstm", after the convolutions
  // and the dense layer of the others.
  bool remembers() const { return kind.ends_with("lstm"); }
  // Of one that reads frames: those convolutions, with or without an LSTM layer after them.
  bool has_convolutions(std::string_view of_kind) const { return kind.starts_with(of_kind); }

  void Declare(Options& options);
};

// What a network is made from.
struct NetworkSpec {
  NetworkOptions options;
  LeafSpec
      observation;  // As given to Forward: [elements] float32, or uint8 [frames, height, width].
  // The second part: how many float32 numbers come beside each observation, such as what an
  // environment measures beside its camera. 0: there is none, and a batch that has one is refused.
  // A critic of numbers and actions has no need of it: it reads both side by side, as one
  // observation.
  //
  // After convolutions they are joined to the last image's pixels, whose [height x width x
  // channels] numbers come first: the dense layer "trunk/linear/weight" is [pixels + vector
  // elements, units]. Any other network reads [observation, vector] as if that were one vector:
  // first layers' weights are [observation + vector elements, units].
  int vector_elements = 0;
  std::vector<HeadSpec> heads;
  std::string device = "cpu";
  std::string precision = "fp32";

  // How many hidden layers stand side by side after convolutions: one, or one for each head that is
  // not constant. An LSTM layer reads one, whatever heads come after it.
  int streams() const {
    if (!options.reads_frames() || options.remembers() || options.shared_trunk) return 1;
    const auto read = std::ranges::count(heads, false, &HeadSpec::constant);
    return std::max(1, static_cast<int>(read));
  }
};

// A row-major float matrix that somebody else owns.
struct Matrix {
  float* data = nullptr;
  int rows = 0;
  int columns = 0;
  int stride = 0;  // Floats from one row to the next; >= columns.

  float* row(int index) const { return data + static_cast<std::ptrdiff_t>(index) * stride; }
};

// A batch for a network, in host memory, borrowed for the call; the observations and vectors given
// to Forward must stay as they are until its Backward.
//
// Feed-forward: `rows` independent rows. Recurrent: rows = steps x sequences, step-major; `state`
// is what each sequence carries into its first step, zeroed by the network where is_first says so,
// at every step.
struct NetworkInput {
  const void* observations = nullptr;  // [rows, observation elements] of the spec's dtype, dense.
  const float* vector = nullptr;       // [rows, vector elements], dense; null where there are none,
                                       // and only there.
  int rows = 0;
  int steps = 1;
  const float* state = nullptr;            // [rows / steps, state_width].
  const std::uint8_t* is_first = nullptr;  // [rows].

  // Only so many of the first heads matter, 0: all. A network may leave the others out: then their
  // outputs have no data, and in Backward their gradients are taken for the zeros that they are.
  int heads = 0;
};

// Which gradients a Backward gives. Each that is not asked for saves its share of the work.
struct GradientRequest {
  bool parameters = true;   // Into gradients(), overwritten; else they stay as they are.
  float* inputs = nullptr;  // [rows, observation elements], overwritten; null: not asked for.
  float* vector = nullptr;  // [rows, vector elements], overwritten; null: not asked for.
};

// A function approximator with a flat parameter vector, known by its inputs, outputs and gradients
// alone.
//
// Losses give the gradient of the outputs; Backward turns it into the gradient of the parameters.
// So algorithms are plain mathematics, torch and devices stay inside the implementations, and small
// networks run on kernels of ours. Outputs and next_state stay valid until the next Forward or
// Infer of this object. One thread calls a network; it may use more inside (`threads` of its
// factory). Parameters and gradients are host memory; after writing parameters() call
// ParametersChanged(). Batches and gradients of the wrong shape are InvalidArgument, a Backward
// without a Forward of its own is FailedPrecondition.
class Network {
 public:
  virtual ~Network() = default;

  virtual const ParameterManifest& manifest() const = 0;
  virtual std::span<float> parameters() = 0;
  virtual std::span<float> gradients() = 0;
  virtual void ParametersChanged() = 0;

  // One matrix a head, [rows, head width], in the order of the spec. Keeps what Backward needs.
  virtual std::span<const Matrix> Forward(const NetworkInput& input) = 0;

  // The same outputs without keeping anything: for acting and for values that carry no gradient.
  virtual std::span<const Matrix> Infer(const NetworkInput& input) = 0;

  // Overwrites gradients() with d(loss)/d(parameters) of the last Forward, given
  // d(loss)/d(outputs), shaped as the outputs; or what else is asked for. At most once a Forward. A
  // device may still be at it when this returns: gradients() waits for it, so whatever else there
  // is to do is best done before. Gradients of inputs are there when it returns. Pixels have none,
  // a vector beside them has; a network that remembers gives neither. What is asked for and is
  // not there is InvalidArgument.
  virtual void Backward(std::span<const Matrix> output_gradients,
                        const GradientRequest& request) = 0;
  void Backward(std::span<const Matrix> output_gradients) { Backward(output_gradients, {}); }

  // Says what the next Forward will be given, so that a device fetches its observations while it
  // computes; they must stay as they are until that Forward has returned, or be announced again.
  // Nothing happens on the CPU.
  virtual void Prefetch(const NetworkInput& /*input*/) {}

  // Memory for batches given to this network: where it computes on a device, of the kind that the
  // device reads by itself (page-locked). Any other memory works, too. May outlive the network.
  virtual std::unique_ptr<Memory> AllocateBatch(std::size_t bytes) const {
    return AllocatePlainMemory(bytes);
  }

  // Recurrent state: floats a sequence (0: none), and what the last Forward or Infer left,
  // [sequences, state_width].
  virtual int state_width() const { return 0; }
  virtual const float* next_state() const { return nullptr; }

  // True when a row's outputs do not depend on the other rows of the batch, to the last bit.
  virtual bool batch_invariant() const = 0;

  // Another network of the same shape with its own copy of the parameters, that computes on
  // `threads`. Networks that share them take turns.
  virtual std::unique_ptr<Network> Clone(SharedWorkerPool threads) const = 0;
};

// Makes the network that the spec asks for; weights are initialised orthogonally from `random`
// (gain sqrt(2) hidden, the head's own gain at the end), biases 0. On the CPU, multi-layer
// perceptrons in fp32 and, where the processor has AVX512-BF16, convolutions in bf16 run on kernels
// of ours; everything else loads libmenger_torch.so, and throws FailedPrecondition saying how to
// get it where it is missing.
std::unique_ptr<Network> MakeNetwork(const NetworkSpec& spec, Random& random,
                                     SharedWorkerPool threads);

}  // namespace menger
