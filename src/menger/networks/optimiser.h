#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "menger/base/archive.h"
#include "menger/networks/update_rule.h"

namespace menger {

// How a gradient moves parameters, element by element, and what it remembers to do so. Owns its
// state, one or two floats a parameter. Allocates nothing after construction; Save and Load keep
// the state to the last bit.
class Optimiser {
 public:
  virtual ~Optimiser() = default;

  // Begins a step: every parameter moves once before the next.
  virtual void Begin(double learning_rate) = 0;

  // Moves the parameters from number `first` on against `gradient_scale` * gradients; both spans
  // begin there and are equally long. Several threads may move different parameters.
  virtual void Move(std::size_t first, std::span<float> parameters,
                    std::span<const float> gradients, float gradient_scale) = 0;

  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

// "adam": Kingma and Ba 2015 with bias correction, as torch.optim.Adam.
// "rmsprop": as TensorFlow's, without momentum: epsilon inside the root, accumulator starts at 1.
// "torch_rmsprop": as torch.optim.RMSprop: epsilon outside the root, accumulator starts at 0.
// Throws InvalidArgument for another kind or fewer than one parameter.
std::unique_ptr<Optimiser> MakeOptimiser(const OptimiserOptions& options, std::int64_t parameters);

}  // namespace menger
