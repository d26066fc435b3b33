#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/algorithms/es_worker.h"
#include "menger/runtime/runtime.h"

namespace menger {

// The workers of Evolution Strategies, and the noise table that they and the learner read in place.
//
// A worker that dies is replaced, and what it had not finished is played again with the same draws:
// outcomes depend neither on the number of workers nor on their deaths. One thread.
class EsPopulation {
 public:
  EsPopulation(const EsWorkerSpec& spec, const RuntimeOptions& options, std::int64_t noise_entries);

  std::span<const float> noise() const { return noise_->values<float>(); }

  // Makes a publication's values an object that workers can read.
  ObjectRef<std::vector<float>> Share(const std::vector<float>& parameters) {
    return runtime_.Put(parameters);
  }

  // Adds one outcome a pair of the range, in order. Throws what a worker threw; WorkerDied's error,
  // if the same pairs killed too many workers; DeadlineExceeded if no worker finishes anything for
  // ten minutes.
  void Play(const PairRange& range, const ObjectRef<std::vector<float>>& parameters,
            std::vector<PairOutcome>& outcomes);

  Runtime& runtime() { return runtime_; }  // For tests: to kill "es worker 0".
  std::int64_t workers_replaced() const { return workers_replaced_; }

 private:
  // Pairs that one worker plays in a row.
  struct Chunk {
    PairRange range;
    int losses = 0;  // Workers that died with it.
  };
  struct Call {
    std::size_t worker = 0;
    ActorId actor;  // Who had been that worker.
    Chunk chunk;
    ObjectRef<std::vector<PairOutcome>> result;
  };

  ActorRef<EsWorker> MakeWorker(std::size_t index);
  std::vector<Chunk> Cut(const PairRange& range) const;
  void Assign(std::vector<Chunk>& chunks, const ObjectRef<std::vector<float>>& parameters);
  Call TakeFinished();
  void Replace(const Call& call, const TaskError& cause);

  const EsWorkerSpec spec_;
  Runtime runtime_;
  const ObjectRef<TensorView> noise_object_;
  const Pinned<TensorView> noise_;
  std::vector<ActorRef<EsWorker>> workers_;
  std::vector<Call> calls_;  // Under way.
  std::int64_t workers_replaced_ = 0;
};

}  // namespace menger
