#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/policies/bundle_reader.h"

namespace menger {

// Plays one episode after another with what a bundle holds: the memory of the episode (frames,
// recurrent state) and scratch. The bundle is borrowed. Allocates in its constructor alone; one
// thread at a time. For perceptrons its numbers are those of networks/mlp.h to the last bit.
class BundlePlayer {
 public:
  enum class Result : std::uint8_t { kActed, kNoSuchChoice, kNothingAllowed };

  explicit BundlePlayer(const PolicyBundle& bundle);

  // What comes is the start of an episode. So it is after the constructor.
  void Reset();

  // Reads one array for each leaf, in the bundle's order, and writes the action: int64 or float32
  // elements. kNoSuchChoice: a Discrete observation is out of range, nothing is remembered of it.
  // kNothingAllowed: the mask allows no choice of some element, which is 0 then.
  Result Act(const void* const* leaves, void* action);

  // Of the last Act: logits, expected returns of the actions, or the action before it was clipped.
  std::span<const float> outputs() const { return outputs_; }

 private:
  bool CodesAreInRange(const void* const* leaves) const;
  void Encode(const void* const* leaves);
  const float* NetworkInput();
  void Run(const BundleLayer& layer, const float* input, float* output);
  void RunJoin(const BundleLayer& layer, const float* network_input, const float* input,
               float* output) const;
  void RunConvolution(const BundleLayer& layer, const float* input, float* output);
  void RunLstm(const BundleLayer& layer, const float* input, float* state, float* output);
  void MakeOutputs();
  void MakeValues();
  float MeanReturn(const float* atoms) const;
  Result Choose(const std::uint8_t* mask, std::int64_t* action) const;

  const PolicyBundle& bundle_;
  // Encodings, the newest last: images, then the numbers beside them.
  std::vector<float> stack_;
  std::vector<float> normalised_;            // Of the stack, if it is.
  std::vector<std::vector<float>> results_;  // By layer, padded.
  std::vector<float> state_;                 // Of the LSTM layers in turn.
  std::vector<float> scratch_;               // Patches of an image, or the gates of an LSTM.
  std::vector<float> values_;                // Atoms of all actions, combined.
  std::vector<float> outputs_;
};

}  // namespace menger
