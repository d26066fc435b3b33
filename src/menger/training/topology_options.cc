#include "menger/training/topology_options.h"

#include "menger/training/roles/run_counts.h"

namespace menger {

void TopologyOptions::Declare(Options& options) {
  options.Add(
      "kind", &kind,
      {.choices = {"synchronous", "threads", "processes"},
       .consequence =
           "synchronous collects and learns in turns, with the same bits for the "
           "same seed; threads collects and learns at the same time; processes, too, with a "
           "process for each part, where others go on when one dies"});
  options.Add(
      "collectors", &collectors,
      {.minimum = 1,
       .maximum = RunCounts::kCollectorsMax,
       .consequence = "of threads and processes: how many collect, each with an equal share "
                      "of collector.environments and collector.workers threads; auto: as "
                      "many as keep the learner busy, measured at the start. What is "
                      "learned does not depend on it but by chance"});
  options.Add("staleness_max", &staleness_max,
              {.minimum = 0,
               .consequence = "of threads and processes: steps that were taken by parameters of "
                              "more versions ago are dropped instead of learned from; 0 keeps all "
                              "that replay has room for"});
}

}  // namespace menger
