#pragma once

#include <memory>
#include <utility>

#include "menger/parameters/parameter_source.h"

namespace menger {

// One version of another source for as long as it is wanted: an evaluation plays all its episodes
// with what was the newest when it began, while the learner goes on. One thread at a time.
class PinnedParameters final : public ParameterSource {
 public:
  explicit PinnedParameters(const ParameterSource& source)  // Outlives this.
      : source_(source), pinned_(source.Latest()) {}

  // A version of that source.
  void Pin(std::shared_ptr<const ParameterBlob> version) { pinned_ = std::move(version); }

  const ParameterManifest& manifest() const override { return source_.manifest(); }
  std::shared_ptr<const ParameterBlob> Latest() const override { return pinned_; }

 private:
  const ParameterSource& source_;
  std::shared_ptr<const ParameterBlob> pinned_;
};

}  // namespace menger
