#include "menger/runtime/node/waits.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/node/node_parts.h"

namespace menger {

Waits::Waits(NodeParts& node)
    : node_(node), circles_(node.scheduler, node.objects, node.workers.all()) {}

void Waits::Block(Worker& worker, std::span<Object* const> objects, bool timed) {
  Task* const call = worker.outstanding.front();
  if (call == nullptr) return;
  if (!worker.blocked()) BeginBlock(worker, *call);
  worker.timed |= timed;
  for (const Object* const object : objects) worker.awaited.push_back(object->id);
  NoteFetches(worker, *call, objects);
  circles_.WaitBegins();
  for (const Object* const object : objects) {
    if (object->state == Object::State::kPending && object->producer != nullptr) {
      node_.demand.Want(*object->producer, worker.waits_as);
    }
  }
}

// Where it needs nothing but them it goes on.
void Waits::NoteFetches(const Worker& worker, const Task& call, std::span<Object* const> objects) {
  const bool all_are_ready = std::ranges::all_of(
      objects, [](const Object* object) { return object->state == Object::State::kReady; });
  ReadingRooms& rooms = node_.scheduler.reading_rooms();
  all_are_ready ? rooms.Fetch(worker.lender, call, objects) : rooms.StopFetching(call);
}

void Waits::BeginBlock(Worker& worker, Task& call) {
  worker.waits_as = node_.demand.NumberOf(call);
  worker.timed = false;
  worker.awaited.clear();
  if (worker.lender != 0) {
    node_.peers.Tell(worker.lender, {.kind = PeerMessage::Kind::kBlocked, .loan = worker.loan});
  }
  std::vector<Task*> recalled;
  node_.scheduler.Block(worker, recalled);
  node_.actors.CallsReturned(recalled);
}

void Waits::Unblock(Worker& worker) {
  if (worker.lender != 0 && worker.blocked()) {
    node_.peers.Tell(worker.lender, {.kind = PeerMessage::Kind::kUnblocked, .loan = worker.loan});
  }
  worker.awaited.clear();
  node_.scheduler.Unblock(worker);
}

// ---- What cannot go on.

// "outer waits for middle waits for inner".
std::string Waits::WaitersOf(const Task& task) const {
  constexpr std::size_t kNamesMax = 8;
  std::vector<std::string_view> names;
  for (const Task* const call : node_.demand.WaitersOf(task))
    names.push_back(node_.notes.NameOf(*call));
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

void Waits::FailStranded() {
  Task* const task = node_.scheduler.Stranded();
  if (task == nullptr || node_.workers.IsBusy(kDriver) || node_.streams.AwaitsReader()) return;
  node_.calls.End(*task,
                  node_.notes.Describe(FailureKind::kException, ErrorCode::kUnavailable, *task,
                                       fmt::format("all {} workers wait, and there may be no more "
                                                   "(RuntimeOptions::workers_max): {}",
                                                   node_.scheduler.pool_size(), WaitersOf(*task))),
                  /*force=*/false);
  node_.values.SpreadNews();
}

void Waits::LookForCircle() {
  if (!node_.actors.waiting().empty()) return;
  const std::vector<const Task*> calls = circles_.Look(node_.now);
  if (calls.empty()) return;
  std::string text;
  for (const Task* const call : calls)
    text += fmt::format("{} waits for ", node_.notes.NameOf(*call));
  node_.effects.Warn(fmt::format("calls wait for one another in a circle and never end: {}{}", text,
                                 node_.notes.NameOf(*calls.front())));
}

}  // namespace menger
