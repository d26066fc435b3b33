#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/base/function_ref.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/networks/aligned_floats.h"
#include "menger/networks/kernels/kernels.h"
#include "menger/networks/layer_norm.h"
#include "menger/networks/network.h"

namespace menger {

// A multi-layer perceptron on the CPU, in float32, on vector kernels of ours: for networks so small
// that a general library spends its time between the operations.
//
// Every head that is not constant has hidden layers of its own ("policy/0/weight" [inputs,
// outputs], "policy/0/bias", "policy/1/weight", ...), or all heads read the last layer of one trunk
// ("trunk/0/weight", ..., "policy/0/weight"). A constant head is a bias alone ("log_std/bias").
// With network.layer_norm every hidden layer is normalised ("policy/0/norm/gain",
// "policy/0/norm/bias") before its activation function.
//
// Every number is one chain of fused multiply-adds in a fixed order. So outputs depend neither on
// the batch nor on the threads, Forward and Infer agree, and gradients do not depend on the
// threads, all to the last bit and on every processor. Nothing is allocated after the first call of
// a given number of rows.
class MlpNetwork : public Network {
 public:
  // The spec must have passed MakeNetwork's checks. Throws InvalidArgument if the observation is
  // not float32.
  MlpNetwork(const NetworkSpec& spec, Random& random, SharedWorkerPool threads,
             const Kernels& kernels = BestKernels());

  const ParameterManifest& manifest() const override { return manifest_; }
  std::span<float> parameters() override { return parameters_.span(); }
  std::span<float> gradients() override { return gradients_.span(); }
  void ParametersChanged() override;

  // Throw InvalidArgument if input.rows < 1, or for a vector beside the observations.
  std::span<const Matrix> Forward(const NetworkInput& input) override;
  std::span<const Matrix> Infer(const NetworkInput& input) override;

  // Throws FailedPrecondition if there was no Forward since the last one, InvalidArgument if the
  // gradients are not shaped as its outputs or that of a vector is asked for. The observations of
  // that Forward must still be there.
  void Backward(std::span<const Matrix> output_gradients, const GradientRequest& request) override;
  using Network::Backward;

  bool batch_invariant() const override { return true; }
  std::unique_ptr<Network> Clone(SharedWorkerPool threads) const override;

 private:
  static constexpr int kTileRows = 64;  // Two tiles of 64 columns stay in the first-level cache.
  static constexpr int kAllBranches = -1;

  // A dense layer. Layers are in an order in which each comes after the one that it reads.
  struct Layer {
    int source = -1;  // The layer that it reads; -1: the observation.
    int inputs = 0;
    int outputs = 0;
    bool hidden = false;          // Followed by the activation function,
    int norm = -1;                // and by this one of norms_ before it; -1: none.
    int head = -1;                // The head whose output it is.
    int branch = 0;               // Layers of different branches have nothing in common.
    int depth = 0;                // Layers between it and the observation.
    bool adds_to_source = false;  // Another layer gives what it reads a gradient before it does.
    std::int64_t weight = 0;      // Offsets into the parameters,
    std::int64_t bias = 0;
    std::ptrdiff_t packed = 0;      // and into packed_: weight [inputs, padded outputs], then bias,
                                    // where there is something to pad;
    std::ptrdiff_t transposed = 0;  // weight [outputs, padded inputs].
    bool padded() const { return Padded(outputs) != outputs; }
  };

  // A piece of the gradient of a layer's weights: input rows [begin, end).
  struct GradientTask {
    int layer = 0;
    int begin = 0;
    int end = 0;
  };

  // Rows [begin, end) of a batch.
  struct Rows {
    int begin = 0;
    int end = 0;
    int count() const { return end - begin; }
  };

  struct Unset {};  // Selects the constructor that leaves the parameters zero.
  MlpNetwork(const NetworkSpec& spec, SharedWorkerPool threads, const Kernels& kernels, Unset);

  std::ptrdiff_t AddLayers();  // Returns the numbers that packed_ needs.
  void Allocate(std::ptrdiff_t packed);
  int AddLayer(const std::string& name, int source, int outputs, bool hidden);
  void AddGradientTasks();
  void Initialise(Random& random);

  void Pack();
  const float* WeightOf(const Layer& layer) const;  // In rows of padded outputs; then the bias.
  void PackTransposed(bool inputs);
  void FillConstantHeads(int rows);
  bool WorthThreads(int rows) const;
  bool SplitsByBranch(int rows, int branches) const;
  int BranchesFor(const NetworkInput& input) const;
  bool Skips(const Layer& layer, int branch) const;
  void RunTiles(int rows, FunctionRef<void(int thread, Rows rows)> function);
  void ForwardTile(int branch, Rows rows);
  void Multiply(const Layer& layer, const float* input, std::ptrdiff_t stride, float* output,
                int rows) const;
  void Activate(const Layer& layer, float* output, int rows) const;
  float* OutputGradient(int layer, int row);
  void InferTile(const float* observations, float* scratch, Rows rows);
  void BackwardTile(std::span<const Matrix> output_gradients, int branch, Rows rows);
  void InputGradientTile(float* gradient, Rows rows);
  void ParameterGradient(std::span<const Matrix> output_gradients);
  void ConstantGradient(std::span<const Matrix> output_gradients);
  void WeightGradient(const GradientTask& task);
  void CheckInput(const NetworkInput& input) const;
  void CheckShapes(std::span<const Matrix> output_gradients) const;

  NetworkSpec spec_;
  const Kernels& kernels_;
  int observation_size_;
  ParameterManifest manifest_;
  std::vector<Layer> layers_;
  std::vector<LayerNorm> norms_;
  int branches_ = 1;
  std::vector<std::int64_t> constant_bias_;  // One a head: where a constant one's bias lies, or -1.
  std::vector<GradientTask> gradient_tasks_;
  int widest_ = 0;  // The largest padded number of outputs.

  AlignedFloats parameters_;
  AlignedFloats gradients_;
  AlignedFloats packed_;
  double work_ = 0;  // Of a row: about two multiply-adds a weight.
  bool packed_valid_ = false;
  bool transposed_valid_ = false;
  bool input_transposed_valid_ = false;  // Of the layers that read the observation.

  // What Forward keeps: the output of each layer; beside it, the gradient of what the layer gives
  // before its normalisation and its activation function.
  const float* observations_ = nullptr;
  int forward_rows_ = 0;
  bool forward_is_kept_ = false;            // Until its Backward.
  int forward_branches_ = 0;                // The first so many were computed.
  std::vector<AlignedFloats> activations_;  // One a layer, [rows, padded outputs].
  std::vector<AlignedFloats> deltas_;

  std::vector<AlignedFloats> constants_;  // One a head.
  int constant_rows_ = 0;                 // How many rows of them hold the bias.
  std::vector<AlignedFloats> inferred_;   // One a layer that is a head's output.
  std::vector<AlignedFloats> scratch_;    // One a thread, for Infer: two tiles.
  std::vector<Matrix> forward_outputs_;   // One a head.
  std::vector<Matrix> infer_outputs_;

  SharedWorkerPool pool_;
};

}  // namespace menger
