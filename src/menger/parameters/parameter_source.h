#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "menger/base/version_distance.h"
#include "menger/parameters/manifest.h"

namespace menger {

// Names one set of parameter values: how many publications were completed before it by this life of
// the learner. Versions never go backwards: see Publication::Restore.
struct ParameterVersion {
  std::uint16_t incarnation = 0;
  std::int64_t number = 0;

  // One integer that orders as the version does; this is what slabs and items carry.
  std::int64_t packed() const {
    return (static_cast<std::int64_t>(incarnation) << kVersionNumberBits) | number;
  }
};

// One set of values with its version, immutable once others see it.
class ParameterBlob {
 public:
  ParameterBlob(ParameterVersion version, std::vector<float> values)
      : version_(version), values_(std::move(values)) {}

  ParameterVersion version() const { return version_; }
  std::span<const float> values() const { return values_; }

  // For who fills it.
  void set_version(ParameterVersion version) { version_ = version; }
  std::span<float> mutable_values() { return values_; }

 private:
  ParameterVersion version_;
  std::vector<float> values_;
};

// Where policies and other readers take parameters from, whole versions at a time: a learner of the
// same process (Publication), or of another one (SharedParameters). Any thread.
class ParameterSource {
 public:
  virtual ~ParameterSource() = default;

  // What a version's values are, in order.
  virtual const ParameterManifest& manifest() const = 0;

  // The newest version that is here, which stays whole for as long as it is held. Never null:
  // before the first one there are zeros with version number 0.
  virtual std::shared_ptr<const ParameterBlob> Latest() const = 0;
};

}  // namespace menger
