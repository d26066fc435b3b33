#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "menger/replay/client/served_replay.h"

namespace menger {

// Draws from one table of a replay server.
class ServedSampler final : public ReplaySampler {
 public:
  ServedSampler(std::shared_ptr<const ServerFinder> finder, int table);
  ~ServedSampler() override;

  const ItemSpec& items() const override;
  void SampleInto(const SampleRequest& request, Sample& sample) override;

 private:
  struct State;
  class Lease;

  const std::shared_ptr<State> state_;  // Leases have it, too.
};

}  // namespace menger
