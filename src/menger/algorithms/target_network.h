#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "menger/base/archive.h"
#include "menger/networks/network.h"

namespace menger {

// The older copy of a network that gives the targets of learning: a copy every so often (Mnih et
// al. 2015), or one that follows slowly (Lillicrap et al. 2016). One thread.
class TargetNetwork {
 public:
  TargetNetwork(const Network& network, int threads) : copy_(network.Clone(threads)) {}

  Network& network() { return *copy_; }
  const Network& network() const { return *copy_; }

  void Copy(Network& network) { Follow(network, 1.0F); }

  // copy <- copy + rate * (network - copy).
  void Follow(Network& network, float rate) {
    const std::span<const float> from = network.parameters();
    const std::span<float> to = copy_->parameters();
    if (rate == 1.0F) {
      std::copy(from.begin(), from.end(), to.begin());
    } else {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += rate * (from[i] - to[i]);
    }
    copy_->ParametersChanged();
  }

  void Save(ArchiveWriter& archive, const std::string& name) const {
    archive.Write(name, std::span<const float>(copy_->parameters()));
  }
  void Load(const ArchiveReader& archive, const std::string& name) {
    archive.Read(name, copy_->parameters());
    copy_->ParametersChanged();
  }

 private:
  const std::unique_ptr<Network> copy_;
};

}  // namespace menger
