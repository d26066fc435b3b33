#pragma once

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// The workers that a node knows, until they are gone: its own, and those that it has borrowed.
class Workers {
 public:
  explicit Workers(NodeParts& node) : node_(node) {}

  // Those, too, that are gone since the last Run.
  const WorkersByIndex& all() const { return all_; }

  // ---- As NodeMachine's.
  WorkerIndex NewIndex() { return ++last_; }
  Worker& Add(WorkerIndex index, ProgramIndex program = kOwnProgram);
  Worker* Find(WorkerIndex index);
  std::vector<WorkerIndex> Indices() const;
  bool IsBusy(ProcessIndex besides) const;
  void TakeBackCalls(Worker& worker);
  void HasRoomAgain(Worker& worker);
  void StartFailed(std::string_view cause);
  // `begun`: of another node's worker, which calls it had begun; null: nobody knows, so all.
  void Died(Worker& worker, const TaskFailure& cause,
            const std::vector<LeaseNumber>* begun = nullptr);
  void Leave(Worker& worker);

  void AddBorrowed(std::unique_ptr<Worker> worker) {
    const WorkerIndex index = worker->index;
    all_.emplace(index, std::move(worker));
  }
  bool Speaks(ProcessIndex process);  // The driver, or a worker that is not gone.
  // Its process is to end, wherever that is; `gently`: it may do so of itself first. Retire or Died
  // follows.
  void End(Worker& worker, std::string_view why, bool gently = false);
  // Ends a worker that others' calls may have been given to: these are given to others.
  // `begun` as for Died.
  void EndAsDied(Worker& worker, std::string_view why, std::string_view cause,
                 const std::vector<LeaseNumber>* begun = nullptr);
  void Retire(Worker& worker, std::string_view cause);  // It is gone, and has no calls.
  void EndSpare();                                      // Once there was a need for it.
  void ForgetGone();

 private:
  bool HadBegun(Worker& worker, const Task& task, const std::vector<LeaseNumber>* begun_there);

  NodeParts& node_;
  WorkersByIndex all_;
  WorkerIndex last_ = 0;
  std::vector<WorkerIndex> retired_;  // Gone; forgotten by the next Run.
};

}  // namespace menger
