#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "menger/base/archive.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/networks/network.h"

namespace menger {

// The older copy of a network that gives the targets of learning: a copy every so often (Mnih et
// al. 2015), or one that follows slowly (Lillicrap et al. 2016). One thread.
class TargetNetwork {
 public:
  TargetNetwork(const Network& network, SharedWorkerPool threads)
      : copy_(network.Clone(threads)), threads_(std::move(threads)) {}

  Network& network() { return *copy_; }
  const Network& network() const { return *copy_; }

  void Copy(Network& network) { Follow(network, 1.0F); }

  // copy <- copy + rate * (network - copy).
  void Follow(Network& network, float rate);

  void Save(ArchiveWriter& archive, const std::string& name) const {
    archive.Write(name, std::span<const float>(copy_->parameters()));
  }
  void Load(const ArchiveReader& archive, const std::string& name) {
    archive.Read(name, copy_->parameters());
    copy_->ParametersChanged();
  }

 private:
  const std::unique_ptr<Network> copy_;
  const SharedWorkerPool threads_;
};

}  // namespace menger
