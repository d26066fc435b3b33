#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that deals with calls that wait for others, and with those that
// cannot go on.
namespace menger {
namespace {

constexpr std::size_t kNamesMax = 8;  // Of a chain of waits.

}  // namespace

void NodeMachine::Block(Worker& worker, std::span<Object* const> objects, bool timed) {
  Task* const call = worker.outstanding.front();
  if (call == nullptr) return;
  if (!worker.blocked()) BeginBlock(worker, *call);
  worker.timed |= timed;
  for (const Object* const object : objects) worker.awaited.push_back(object->id);
  circles_.WaitBegins();
  for (const Object* const object : objects) {
    if (object->state == Object::State::kPending && object->producer != nullptr) {
      demand_.Want(*object->producer, worker.waits_as);
    }
  }
}

void NodeMachine::BeginBlock(Worker& worker, Task& call) {
  worker.waits_as = demand_.NumberOf(call);
  worker.timed = false;
  worker.awaited.clear();
  if (worker.lender != 0) {
    Tell(worker.lender, {.kind = PeerMessage::Kind::kBlocked, .loan = worker.loan});
  }
  std::vector<Task*> recalled;
  scheduler_.Block(worker, recalled);
  CallsReturned(recalled);
}

void NodeMachine::Unblock(Worker& worker) {
  if (worker.lender != 0 && worker.blocked()) {
    Tell(worker.lender, {.kind = PeerMessage::Kind::kUnblocked, .loan = worker.loan});
  }
  worker.awaited.clear();
  scheduler_.Unblock(worker);
}

// Those first whose calls somebody waits for.
void NodeMachine::SortWaitingActors() {
  const auto wanted = [this](const Actor* actor) {
    return scheduler_.waits().contains(actor->wanted) ? actor->wanted : 0;
  };
  if (waiting_actors_.size() < 2 || scheduler_.waits().empty()) return;
  std::stable_sort(waiting_actors_.begin(), waiting_actors_.end(),
                   [&](const Actor* a, const Actor* b) { return wanted(a) > wanted(b); });
}

// ---- What cannot go on.

// "outer waits for middle waits for inner".
std::string NodeMachine::WaitersOf(const Task& task) const {
  std::vector<std::string_view> names;
  for (const Task* const call : demand_.WaitersOf(task)) names.push_back(NameOf(*call));
  std::string text;
  for (std::size_t i = names.size(); i-- > 0;) {
    const std::size_t from_root = names.size() - 1 - i;
    if (from_root >= kNamesMax / 2 && i >= kNamesMax / 2) {
      if (i == kNamesMax / 2) {
        text += fmt::format("... ({} more) waits for ", names.size() - kNamesMax);
      }
      continue;
    }
    text += names[i];
    if (i > 0) text += " waits for ";
  }
  return text;
}

// Some worker has a call that does not wait, or waits only until the driver has read more of its
// stream.
bool NodeMachine::SomeCallGoesOn() const {
  const auto goes_on = [](const Worker& worker) {
    return !worker.gone() && !worker.blocked() && !worker.outstanding.empty();
  };
  if (std::any_of(workers_.begin(), workers_.end(),
                  [&](const auto& entry) { return goes_on(*entry.second); })) {
    return true;
  }
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    const Stream& stream = entry.second;
    return stream.reader == kDriver && stream.gate->state == Object::State::kPending;
  });
}

// A call that others wait for and no worker can be had for: all that there may be wait.
void NodeMachine::FailStranded() {
  Task* const task = scheduler_.Stranded();
  if (task == nullptr || SomeCallGoesOn()) return;
  End(*task,
      Describe(FailureKind::kException, ErrorCode::kUnavailable, *task,
               fmt::format("all {} workers wait, and there may be no more "
                           "(RuntimeOptions::workers_max): {}",
                           scheduler_.pool_size(), WaitersOf(*task))),
      /*force=*/false);
  SpreadNews();
}

void NodeMachine::StartFailed(std::string_view cause) {
  scheduler_.StartFailed();
  if (cause.empty()) return;
  const auto text = [cause] { return fmt::format("no worker could be started for it: {}", cause); };
  const auto homeless =
      std::find_if(waiting_actors_.begin(), waiting_actors_.end(), [](const Actor* actor) {
        return actor->worker == nullptr && actor->state != Actor::State::kDead;
      });
  if (homeless != waiting_actors_.end()) {
    const Task& construction = *(*homeless)->construction;
    ActorDead(**homeless,
              Describe(FailureKind::kActorDied, ErrorCode::kUnavailable, construction, text()));
  } else if (Task* const task = scheduler_.WithoutWorker()) {
    End(*task, Describe(FailureKind::kWorkerDied, ErrorCode::kUnavailable, *task, text()),
        /*force=*/false);
  }
  SpreadNews();
}

// Once there was a need for it.
void NodeMachine::EndSpare() {
  if (options_.threads) return;
  Worker* const spare = scheduler_.Spare();
  if (spare == nullptr) return;
  constexpr std::string_view kWhy = "it was not needed any longer";
  effects_->EndWorker(*spare, kWhy);
  Retire(*spare, kWhy);
  CloseStreamsOf(spare->index);
}

// Said once, so that somebody can find it.
void NodeMachine::LookForCircle() {
  if (!waiting_actors_.empty()) return;
  const std::vector<const Task*> calls = circles_.Look(now_);
  if (calls.empty()) return;
  std::string text;
  for (const Task* const call : calls) text += fmt::format("{} waits for ", NameOf(*call));
  effects_->Warn(fmt::format("calls wait for one another in a circle and never end: {}{}", text,
                             NameOf(*calls.front())));
}

}  // namespace menger
