#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "menger/parameters/manifest.h"
#include "menger/parameters/parameter_source.h"

namespace menger {

// Hands parameter versions from one learner to any number of readers in the process.
//
// Publish copies the values once into a blob that no reader holds (blobs are recycled) and makes it
// the latest; a reader that asked before keeps the older one whole for as long as it likes. The
// lock is held for a pointer copy only. shared_ptr because the last of several readers, whoever
// that is, gives a blob back. Readers: any thread; one publisher.
class Publication final : public ParameterSource {
 public:
  explicit Publication(ParameterManifest manifest, std::uint16_t incarnation = 0);

  const ParameterManifest& manifest() const override { return manifest_; }

  // Throws InvalidArgument unless `values` has manifest().size() floats.
  ParameterVersion Publish(std::span<const float> values);

  std::shared_ptr<const ParameterBlob> Latest() const override;

  // Publishes the values of a checkpoint under their own version, and counts on from there.
  //
  // A run that resumes keeps its incarnation: nothing that carried a later version outlived the
  // process, so it is the same life, and the same run bit for bit. Where readers, slabs or stored
  // items do outlive the learner, whoever restores gives `version` a higher incarnation. Throws
  // FailedPrecondition if `version` is below the latest: readers of this publication would take two
  // sets of values for one.
  void Restore(ParameterVersion version, std::span<const float> values);

 private:
  // Blobs that no reader holds any more. Outlives the publication while readers do.
  struct Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<ParameterBlob>> free;  // Guarded by mutex.
  };
  std::shared_ptr<ParameterBlob> FreeBlob();

  const ParameterManifest manifest_;
  const std::shared_ptr<Pool> pool_;
  mutable std::mutex mutex_;                     // Taken before a pool's, never after.
  ParameterVersion version_;                     // Guarded by mutex_.
  std::shared_ptr<const ParameterBlob> latest_;  // Guarded by mutex_.
};

}  // namespace menger
