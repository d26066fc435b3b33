#include "menger/training/topology_options.h"

#include "menger/training/roles/run_counts.h"

namespace menger {

void TopologyOptions::Declare(Options& options) {
  options.Add(
      "kind", &kind,
      {.choices = {"synchronous", "turns", "threads", "processes"},
       .consequence =
           "synchronous collects a slab and learns from it, with the same bits for the same seed; "
           "threads collects and learns at the same time; processes, too, with a process for each "
           "part, where others go on when one dies; turns does what they do in one thread, in an "
           "order that the seed draws, with the same bits again: to look into it"});
  options.Add("collectors", &collectors,
              {.minimum = 1,
               .maximum = RunCounts::kCollectorsMax,
               .consequence = "of a pipeline: how many collect, each with an equal share "
                              "of collector.environments and collector.workers threads; auto: as "
                              "many as keep the learner busy, measured at the start, or 1 in "
                              "turns. What is learned depends on it by chance alone"});
  options.Add("inference", &inference,
              {.choices = {"local", "apart"},
               .consequence = "of a pipeline: local: each collector acts by a network of "
                              "its own; apart: one inference role acts for all of them, on all "
                              "groups of environments that are ready, as one batch: for large "
                              "networks, devices, and many collectors"});
  options.Add("inference_batch", &inference_batch,
              {.minimum = 0,
               .unit = "environments",
               .consequence = "inference apart: as many at most are acted on at once; 0: all that "
                              "are ready"});
  options.Add("inference_wait", &inference_wait,
              {.minimum = 0,
               .maximum = 10,
               .unit = "seconds",
               .consequence = "inference apart: how long a batch waits for more once one is ready; "
                              "0 acts at once, and what comes meanwhile is the next batch"});
  options.Add("staleness_max", &staleness_max,
              {.minimum = 0,
               .consequence = "of a pipeline: steps that were taken by parameters of "
                              "more versions ago are dropped instead of learned from, and where "
                              "fewer than replay.min_size are left learning waits; 0 keeps all "
                              "that replay has room for"});
}

}  // namespace menger
