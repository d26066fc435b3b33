#pragma once

#include <span>
#include <string>
#include <vector>

#include "menger/base/random.h"
#include "menger/parameters/manifest.h"

namespace menger {

// The arrays of a network while it is laid out: their places in the flat vector, how each starts,
// and which of them may be read in reduced precision. Layers add theirs and remember the indices
// they get. Plain data, no torch.
class ParameterPlan {
 public:
  // A weight matrix (or convolution) that starts orthogonal. `rows` x `columns` is its shape as a
  // matrix, row-major.
  int AddOrthogonal(std::string name, Shape shape, int rows, int columns, double gain);

  // An array that starts with the same value everywhere.
  int AddConstant(std::string name, Shape shape, double value);

  // Marks the arrays from index `first` on as safe to round to bfloat16 in the forward pass.
  void MarkReducible(int first);

  // Fills `parameters`, which has manifest().size() floats. Draws in the order of the manifest.
  void Initialise(std::span<float> parameters, Random& random) const;

  const ParameterManifest& manifest() const { return manifest_; }
  int size() const { return static_cast<int>(starts_.size()); }
  bool reducible(int index) const { return starts_[index].reducible; }

 private:
  struct Start {
    int rows = 0;  // 0: every element is `value`.
    int columns = 0;
    double gain = 0.0;
    double value = 0.0;
    bool reducible = false;
  };

  ParameterManifest manifest_;
  std::vector<Start> starts_;  // One an entry of the manifest.
};

}  // namespace menger
