#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "menger/parameters/manifest.h"
#include "menger/parameters/parameter_source.h"
#include "menger/tensor/memory.h"

namespace menger {

// Parameter versions in shared memory, from one learner to any number of other processes of the
// host. Neither side ever waits for the other: there is room for three versions, the oldest of
// which is written next, so that a reader must begin anew only if two are published while it
// copies.
//
//     SharedPublication shared(algorithm.policies().manifest());      // Beside the learner:
//     shared.Publish(*algorithm.publication().Latest());              // after each of its Publish.
//
//     const SharedParameters source(descriptor);                      // Where somebody acts.
//     const auto policy = policies->Make(source, PolicyMode::kSample, seed);
class SharedPublication {
 public:
  explicit SharedPublication(const ParameterManifest& manifest);
  // Publishes into what another one made, which may have died while it did: for whoever takes its
  // place. One at a time. Throws DataLoss where it is something else.
  explicit SharedPublication(int descriptor);

  // For those who follow: give it to a child, or send it.
  int descriptor() const { return memory_->descriptor(); }

  // Copies the values. Throws InvalidArgument if they are not as many as the manifest says. One
  // thread.
  void Publish(const ParameterBlob& version);

 private:
  const std::unique_ptr<SharedMemory> memory_;
  const ParameterManifest manifest_;
};

class SharedParameters final : public ParameterSource {
 public:
  // Maps what a SharedPublication made. Throws DataLoss if it is something else.
  explicit SharedParameters(int descriptor);

  const ParameterManifest& manifest() const override { return manifest_; }

  // Throws Unavailable if the learner publishes faster than this process can copy.
  std::shared_ptr<const ParameterBlob> Latest() const override;

 private:
  const std::unique_ptr<SharedMemory> memory_;
  const ParameterManifest manifest_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const ParameterBlob> latest_;  // Guarded by mutex_.
};

}  // namespace menger
