#include "menger/runtime/node/workers.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {

Worker& Workers::Add(WorkerIndex index, ProgramIndex program) {
  auto worker = std::make_unique<Worker>();
  worker->index = index;
  worker->program = program;
  worker->thread = node_.options.threads;
  worker->progress_at = node_.now;
  worker->ended_at = node_.now;
  Worker& result = *worker;
  all_.emplace(result.index, std::move(worker));
  if (program == kOwnProgram) {
    node_.scheduler.AddWorker(result);
  } else {
    result.dedicated = true;
  }
  node_.notes.NoteWorker(NodeEventKind::kWorkerStarted, result);
  return result;
}

Worker* Workers::Find(WorkerIndex index) {
  const auto found = all_.find(index);
  return found != all_.end() && !found->second->gone() ? found->second.get() : nullptr;
}

std::vector<WorkerIndex> Workers::Indices() const {
  std::vector<WorkerIndex> indices;
  for (const auto& [index, worker] : all_) {
    if (!worker->gone()) indices.push_back(index);
  }
  return indices;
}

bool Workers::Speaks(ProcessIndex process) {
  return process == kDriver || Find(process) != nullptr ||
         node_.peers.OfProcess(process) != nullptr;
}

// What a lent one does is its borrower's to know.
bool Workers::IsBusy(ProcessIndex besides) const {
  return std::any_of(all_.begin(), all_.end(), [besides](const auto& entry) {
    const Worker& worker = *entry.second;
    return entry.first != besides && !worker.gone() && !worker.blocked() &&
           ((worker.borrower != 0 && !worker.rests) || !worker.outstanding.empty());
  });
}

void Workers::TakeBackCalls(Worker& worker) {
  std::vector<Task*> recalled;
  node_.scheduler.Empty(worker, recalled);
  node_.actors.CallsReturned(recalled);
}

void Workers::HasRoomAgain(Worker& worker) {
  worker.full = false;
  if (worker.actor != nullptr) node_.actors.ServeLater(*worker.actor);
}

// ---- Ends.

void Workers::Died(Worker& worker, const TaskFailure& cause,
                   const std::vector<LeaseNumber>* begun_there) {
  if (worker.gone()) return;
  if (worker.loan != 0) node_.peers.EndLoan(worker, cause);
  Retire(worker, cause.text);
  // What it had not begun is not to blame. Its queue is asked backwards: it began from the front.
  std::vector<std::pair<Task*, bool>> lost;
  while (Task* const task = worker.outstanding.back()) {
    const bool begun = HadBegun(worker, *task, begun_there);
    if (begun) {
      const std::int64_t ran = node_.now - task->offered_at;
      node_.notes.NoteTask(NodeEventKind::kTaskLost, worker, *task, static_cast<double>(ran),
                           node_.now);
    }
    node_.scheduler.Done(worker, *task, -1);
    lost.emplace_back(task, begun);
  }
  const auto ran = std::find_if(lost.rbegin(), lost.rend(), [](auto& call) { return call.second; });
  const auto begun = std::ranges::count_if(lost, [](const auto& call) { return call.second; });
  node_.effects.WorkerLost(worker, ran != lost.rend() ? ran->first : nullptr,
                           static_cast<std::size_t>(begun), cause);
  // The last call of an actor may be what still held it.
  Object* const stands_for = worker.actor != nullptr ? worker.actor->object : nullptr;
  if (stands_for != nullptr) node_.objects.Hold(*stands_for);
  for (const auto& [task, begun] : lost) node_.calls.RunAgain(*task, begun, cause);
  if (stands_for != nullptr) {
    node_.actors.WorkerLost(*worker.actor, cause);
    node_.objects.Release(*stands_for);
  }
  node_.values.SpreadNews();
}

bool Workers::HadBegun(Worker& worker, const Task& task,
                       const std::vector<LeaseNumber>* begun_there) {
  if (worker.lender == 0) return !node_.effects.Recall(worker, task);
  return begun_there == nullptr ||
         std::ranges::find(*begun_there, task.lease) != begun_there->end();
}

void Workers::Retire(Worker& worker, std::string_view cause) {
  node_.notes.NoteWorker(NodeEventKind::kWorkerDied, worker, cause);
  if (worker.loan != 0) {
    node_.peers.EndLoan(worker, {.kind = FailureKind::kWorkerDied,
                                 .code = ErrorCode::kUnavailable,
                                 .text = std::string(cause)});
  }
  if (worker.program != kOwnProgram) node_.guests.Forget(worker);
  node_.scheduler.RemoveWorker(worker);
  node_.states.Enter(worker.state, Worker::State::kGone);
  retired_.push_back(worker.index);
}

void Workers::End(Worker& worker, std::string_view why, bool gently) {
  if (worker.lender != 0) {
    node_.peers.Tell(worker.lender, {.kind = PeerMessage::Kind::kEnd,
                                     .clean = gently,
                                     .loan = worker.loan,
                                     .text = std::string(why)});
  } else if (gently) {
    node_.effects.DismissWorker(worker, why);
  } else {
    node_.effects.EndWorker(worker, why);
  }
}

void Workers::EndAsDied(Worker& worker, std::string_view why, std::string_view cause,
                        const std::vector<LeaseNumber>* begun_there) {
  End(worker, why);
  Died(worker,
       {.kind = FailureKind::kWorkerDied,
        .code = ErrorCode::kUnavailable,
        .text = std::string(cause)},
       begun_there);
}

// It has told of all that it began, and begins nothing more.
void Workers::Leave(Worker& worker) {
  const std::vector<LeaseNumber> begun;
  EndAsDied(worker, "it has done as many calls as it may", "the worker had done all its calls",
            &begun);
}

void Workers::EndSpare() {
  if (node_.options.threads) return;
  const auto end = [this](Worker& worker, std::string_view why) {
    node_.effects.EndWorker(worker, why);
    Retire(worker, why);
  };
  node_.guests.EndSpare();
  while (Worker* const spent = node_.scheduler.TakeSpent()) {
    end(*spent, "calls with other GPUs need another process");
  }
  Worker* const spare = node_.scheduler.Spare();
  if (spare != nullptr) end(*spare, "it was not needed any longer");
}

void Workers::ForgetGone() {
  if (retired_.empty()) return;
  for (const WorkerIndex index : std::exchange(retired_, {})) {
    node_.streams.CloseOf(index);
    node_.foreign.CloseStreamsOf(index);
    node_.objects.DropProcess(index);
    all_.erase(index);
  }
  node_.values.SpreadNews();
}

void Workers::StartFailed(std::string_view cause) {
  node_.scheduler.StartFailed();
  if (cause.empty()) return;
  const auto text = [cause] { return fmt::format("no worker could be started for it: {}", cause); };
  if (Actor* const homeless = node_.actors.Homeless()) {
    node_.actors.Die(*homeless,
                     node_.notes.Describe(FailureKind::kActorDied, ErrorCode::kUnavailable,
                                          *homeless->construction, text()));
  } else if (Task* const task = node_.scheduler.WithoutWorker()) {
    node_.calls.End(
        *task,
        node_.notes.Describe(FailureKind::kWorkerDied, ErrorCode::kUnavailable, *task, text()),
        /*force=*/false);
  }
  node_.values.SpreadNews();
}

}  // namespace menger
