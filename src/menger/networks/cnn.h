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
#include "menger/networks/convolution.h"
#include "menger/networks/kernels/bf16.h"
#include "menger/networks/kernels/kernels.h"
#include "menger/networks/network.h"

namespace menger {

// The networks nature_cnn (Mnih et al. 2015) and a3c_cnn (Mnih et al. 2016) on the CPU in
// bfloat16, on vector kernels of ours: convolutions "trunk/conv0", ..., a dense layer
// "trunk/linear" (with a part for each head unless shared_trunk), relu after each, and a linear
// layer "NAME/0" for each head, over uint8 [frames, height, width] taken as 0 .. 1. Names, shapes
// and initial values are those of the same kinds on libtorch: parameters trained on one load into
// the other.
//
// Weights, activations and their gradients are rounded to bfloat16; sums, biases, heads and the
// gradients of parameters are float32. Only for processors where HasAvx512Bf16().
//
// Work is cut by images, columns and slices of the batch that depend on nothing but its rows. So
// outputs depend neither on the batch nor on the threads, and gradients do not depend on the
// threads, to the last bit. Nothing is allocated after the first call of a given number of rows.
class CnnNetwork : public Network {
 public:
  // The spec must have passed MakeNetwork's checks. Throws InvalidArgument if the observation is
  // not uint8 images or is too small for the kind.
  CnnNetwork(const NetworkSpec& spec, Random& random, SharedWorkerPool threads);

  const ParameterManifest& manifest() const override { return manifest_; }
  std::span<float> parameters() override { return parameters_.span(); }
  std::span<float> gradients() override { return gradients_.span(); }
  void ParametersChanged() override;

  // Throw InvalidArgument if input.rows < 1.
  std::span<const Matrix> Forward(const NetworkInput& input) override;
  std::span<const Matrix> Infer(const NetworkInput& input) override;

  // Throws FailedPrecondition without a Forward of its own before it, InvalidArgument if the
  // gradients are not shaped as its outputs. The observations of that Forward must still be there.
  void Backward(std::span<const Matrix> output_gradients, const GradientRequest& request) override;
  using Network::Backward;

  bool batch_invariant() const override { return true; }
  std::unique_ptr<Network> Clone(SharedWorkerPool threads) const override;

 private:
  struct Rows {
    int begin = 0;
    int end = 0;
    int count() const { return end - begin; }
  };

  // A convolution and where its parameters are.
  struct Layer {
    Convolution convolution;
    std::int64_t weight = 0;
    std::int64_t bias = 0;
    std::ptrdiff_t sums = 0;  // Its part of a slice's sums.
  };

  // A head and where its parameters are.
  struct Head {
    std::int64_t weight = -1;  // -1: constant, a bias alone.
    std::int64_t bias = 0;
    int feature = 0;  // The first of stream_features_ that it reads.
    int column = 0;   // Of the matrix that all heads with weights share.
  };

  // What one pass through the network leaves.
  struct Pass {
    const std::uint8_t* observations = nullptr;
    int rows = 0;
    std::vector<AlignedArray<Bf16>> images;  // What each convolution gives; Infer keeps the last.
    AlignedFloats features;                  // [rows][features_].
    AlignedFloats heads;                     // [rows][head_columns_].
    std::vector<AlignedFloats> constants;    // [rows][width] for constant heads.
    std::vector<Matrix> outputs;
  };

  static constexpr int kHeadRows = 32;  // Rows of one task of the heads. Even.

  // One thread's, for an image or a pair of them.
  struct Scratch {
    AlignedArray<Bf16> blocks;
    std::vector<AlignedArray<Bf16>> images;     // As Pass's.
    std::vector<AlignedArray<Bf16>> gradients;  // Two padded images for each convolution.
    AlignedArray<Bf16Pair> inputs;              // The linear layer's too.
    AlignedArray<Bf16Pair> output_gradients;
  };

  struct Unset {};
  CnnNetwork(const NetworkSpec& spec, SharedWorkerPool threads, Unset);
  void AddLayers();
  void AddHeads();
  void MakeScratch();
  void Initialise(Random& random);

  void Run(int tasks, FunctionRef<void(int task, Scratch& scratch)> function);
  void Pack();
  void PackBack();

  std::span<const Matrix> RunForward(const NetworkInput& input, bool keep, Pass& pass);
  void RunConvolutions(Pass& pass, bool keep, int image, Scratch& scratch) const;
  void RunLinear(Pass& pass, int begin, int end) const;  // Columns.
  void RunHeads(Pass& pass, Rows rows) const;
  void PublishOutputs(Pass& pass);

  void CheckShapes(std::span<const Matrix> output_gradients) const;
  void ReserveForBackward();
  void HeadsBackward(std::span<const Matrix> output_gradients, Rows rows);
  void HeadWeights(int begin);  // Of some features from `begin` on.
  void LinearInputGradient(int panel);
  void LinearWeightGradient(int begin, Scratch& scratch);  // Of some inputs from `begin` on.
  void SliceBackward(int slice, Scratch& scratch);
  void PairBackward(int row, bool accumulate, float* sums, Scratch& scratch);
  void AddUpSlices(const Layer& layer);
  void ScatterHeadGradients(std::span<const Matrix> output_gradients);
  int pairs() const { return (forward_.rows + 1) / 2; }
  int slice_rows() const;

  const NetworkSpec spec_;
  const Kernels& kernels_;
  ParameterManifest manifest_;
  std::vector<Layer> layers_;
  std::vector<Head> heads_;
  FrameBlocks blocks_;
  std::ptrdiff_t slice_sums_ = 0;  // Floats.
  int inputs_ = 0;                 // Of the linear layer,
  int features_ = 0;               // and its outputs,
  int stream_features_ = 0;        // of which a head reads so many.
  std::int64_t linear_weight_ = 0;
  std::int64_t linear_bias_ = 0;
  int head_columns_ = 0;  // Padded.

  AlignedFloats parameters_;
  AlignedFloats gradients_;
  AlignedArray<Bf16Pair> linear_;       // In panels,
  AlignedArray<Bf16Pair> linear_back_;  // and transposed.
  AlignedFloats head_weights_;          // [features_ + 1][head_columns_], the bias last,
  AlignedFloats head_back_;             // and the weights transposed.
  bool packed_ = false;
  bool packed_back_ = false;

  Pass forward_;
  Pass infer_;
  bool forward_is_kept_ = false;

  // Gradients on their way back; of the heads, the features, the linear layer's sums (rounded, then
  // in pairs of rows, in strips of kStrip columns) and its input (padded).
  AlignedFloats head_gradients_;
  AlignedFloats head_weight_gradients_;
  AlignedFloats feature_gradients_;
  AlignedArray<Bf16> linear_gradients_;
  AlignedArray<Bf16Pair> linear_pairs_;
  AlignedArray<Bf16> image_gradients_;
  AlignedFloats sums_;  // A part for each slice.

  std::vector<Scratch> scratch_;  // A thread each.
  SharedWorkerPool pool_;
};

}  // namespace menger
