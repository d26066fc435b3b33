#include "menger/training/learning/replay_options.h"

#include "menger/base/error.h"
#include "menger/replay/chunks/chunk_store.h"

namespace menger {

void ReplayOptions::Declare(Options& options) {
  options.Add("capacity", &capacity,
              {.minimum = 1,
               .maximum = 1e9,
               .unit = "steps",
               .consequence = "newest steps that are kept, of all environments together; more "
                              "forgets less, and takes memory"});
  options.Add("bytes_max", &bytes_max,
              {.minimum = 0,
               .unit = "bytes",
               .consequence = "memory that kept steps may take: older ones go where it is full; 0: "
                              "as much as the capacity needs"});
  options.Add("min_size", &min_size,
              {.minimum = 1,
               .maximum = 1e9,
               .unit = "steps",
               .consequence = "steps that must be kept before learning starts"});
  options.Add("batch_size", &batch_size,
              {.minimum = 1,
               .maximum = 1e6,
               .unit = "steps",
               .consequence = "drawn for each update (r2d2: sequences of steps): larger is less "
                              "noisy, with fewer updates at the same training_intensity"});
  options.Add("training_intensity", &training_intensity,
              {.minimum = 1e-6,
               .maximum = 1e6,
               .consequence = "how often each collected step is learned from on average: updates x "
                              "batch_size (x sequence_length) / steps, held exactly"});
  DeclareDraws(options);
  DeclareMemory(options);
}

void ReplayOptions::DeclareDraws(Options& options) {
  options.Add("sampler", &sampler,
              {.choices = {"uniform", "prioritised"},
               .consequence = "prioritised: steps with large errors are drawn more often"});
  options.Add(
      "priority_exponent", &priority_exponent,
      {.minimum = 0, .maximum = 10, .consequence = "prioritised: how much more; 0 is uniform"});
  options.Add(
      "initial_priority", &initial_priority,
      {.choices = {"highest", "error"},
       .consequence = "prioritised: a new step has the highest priority that there was, so "
                      "that it is drawn soon; or that of its error by the values which the "
                      "policy had when it acted: with many environments most of what is new "
                      "is not worth a draw. The DQN family and r2d2 alone"});
  options.Add("stratified", &stratified,
              {.consequence = "prioritised: the draws of a batch are spread over the sum of "
                              "priorities, one from each of as many equal shares"});
  options.Add("prefetch", &prefetch,
              {.choices = {"auto", "on", "off"},
               .consequence = "copy the next batch together while this one is learned from; a "
                              "prioritised one is then drawn before this one's errors are known. "
                              "auto: where it changes no draw and a CPU is free"});
}

void ReplayOptions::DeclareMemory(Options& options) {
  options.Add("chunk_steps", &chunk_steps,
              {.minimum = 1,
               .maximum = kChunkRowsMax,
               .unit = "steps",
               .consequence = "steps of one environment that are freed together; fewer waste less "
                              "of a small capacity, more cost less bookkeeping"});
  options.Add(
      "compression", &compression,
      {.choices = {"none", "automatic"},
       .consequence = "automatic: kept steps are compressed where that halves them, without "
                      "loss; frames take a fiftieth, and a little longer to draw"});
  options.Add("address", &address,
              {.consequence = "path of the socket of a replay server (`menger replay serve`), or "
                              "127.0.0.1:PORT where it listens for TCP: its table is used instead "
                              "of memory of this process; other processes may write and draw "
                              "there, too"});
  options.Add("table", &table, {.consequence = "with address: the name of that table"});
  options.Add("patience", &patience,
              {.minimum = 0,
               .maximum = 1e6,
               .unit = "seconds",
               .consequence = "with address: how long to wait for a server that is not there, "
                              "before the run ends"});
}

void ReplayOptions::Check() const {
  if (initial_priority == "error" && sampler != "prioritised") {
    throw InvalidArgument(
        "replay.initial_priority = error with replay.sampler = {}: priorities are those of "
        "prioritised draws",
        sampler);
  }
  if (min_size <= capacity) return;
  throw InvalidArgument(
      "replay.min_size = {} is beyond replay.capacity = {}: learning would never start", min_size,
      capacity);
}

}  // namespace menger
