#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/archive.h"
#include "menger/networks/update_rule.h"
#include "menger/tensor/slab.h"

namespace menger {

class Experiment;

// What a loop does with each slab: whatever shape of data the algorithm learns from, the loop stays
// the same. Borrows the algorithm. The loop's thread.
class SlabConsumer {
 public:
  virtual ~SlabConsumer() = default;

  // `progress` as for SlabAlgorithm::Learn. Reports metric_names(), in that order.
  virtual Metrics Consume(Slab& slab, UpdateRule& update, double progress) = 0;
  virtual std::vector<std::string> metric_names() const = 0;
  virtual bool updated() const { return true; }  // As LearningCycle's.

  // What is neither the algorithm's nor the update rule's.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

// Learns from slabs, or from what replay keeps of them, as the algorithm's data rule says. Once
// `given_up`, which any thread may ask, nobody waits for a replay server that has gone.
std::unique_ptr<SlabConsumer> MakeSlabConsumer(const Experiment& experiment, Algorithm& algorithm,
                                               const std::function<bool()>& given_up);

}  // namespace menger
