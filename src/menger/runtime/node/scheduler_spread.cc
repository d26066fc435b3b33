#include <algorithm>
#include <tuple>

#include "menger/runtime/node/scheduler.h"

// The part of the scheduler that spreads calls, and actors, over nodes: those that have room do
// them in turn. Whose turn was the longest ago is next; he is waited for, also where another has a
// worker to spare, for as long as he may lend one: until he does, or says that he has no more room.
// Then he has a turn whenever he lends one all the same. A node's own workers wait for nobody.
namespace menger {
namespace {

// Who neither lends nor says why is waited for no longer, until he is asked anew.
constexpr std::int64_t kTurnPatience = 10'000'000'000;  // Nanoseconds.

std::uint64_t LastTurnOf(const SchedulingClass& scheduling, PeerIndex node) {
  const auto found = scheduling.turn_of.find(node);
  return found != scheduling.turn_of.end() ? found->second.last : 0;
}

void TakeTurn(SchedulingClass& scheduling, PeerIndex node) {
  if (!scheduling.spread) return;
  NodeTurn& turn = scheduling.turn_of[node];
  turn.last = ++scheduling.turns;
  turn.awaited_since = 0;
}

}  // namespace

void Scheduler::SetFull(SchedulingClass& scheduling, PeerIndex node, bool full) {
  if (!scheduling.spread) return;
  NodeTurn& turn = scheduling.turn_of[node];
  turn.full = full;
  turn.awaited_since = 0;
}

bool Scheduler::IsTurnOf(PeerIndex node, SchedulingClass& scheduling) const {
  if (!scheduling.spread) return true;
  const std::uint64_t last = LastTurnOf(scheduling, node);
  bool is = true;
  for (const Elsewhere& other : elsewhere_) {
    NodeTurn& turn = scheduling.turn_of[other.node];
    if (turn.full || turn.last >= last || !other.total.Contains(scheduling.need)) continue;
    if (turn.awaited_since == 0) turn.awaited_since = now_;
    turn.full = now_ - turn.awaited_since >= kTurnPatience;
    is &= turn.full;
  }
  return is;
}

// The least busy worker of the node whose turn it is, of those that have an idle one; null if
// another may lend one whose turn is earlier.
Worker* Scheduler::InTurn(SchedulingClass& scheduling, const Task* next) const {
  Worker* best = nullptr;
  std::tuple<bool, std::uint64_t, double> least;
  for (Worker* const worker : scheduling.workers) {
    if (!HasRoom(*worker)) continue;
    if (worker->awaits != nullptr) return worker;  // A turn that it has already.
    const std::tuple rank(!worker->outstanding.empty(), LastTurnOf(scheduling, worker->lender),
                          CostOf(*worker, next));
    if (best != nullptr && rank >= least) continue;
    best = worker;
    least = rank;
  }
  if (best == nullptr || best->lender == 0) return best;
  if (!IsTurnOf(best->lender, scheduling)) return nullptr;
  TakeTurn(scheduling, best->lender);
  return best;
}

Worker* Scheduler::FreeBorrowed(SchedulingClass& need) const {
  Worker* best = nullptr;
  for (Worker* const worker : need.workers) {
    const bool free = worker->lender != 0 && worker->outstanding.empty() && !worker->blocked() &&
                      worker->awaits == nullptr && !worker->asked_back;
    if (!free) continue;
    if (best == nullptr || LastTurnOf(need, worker->lender) < LastTurnOf(need, best->lender)) {
      best = worker;
    }
  }
  if (best == nullptr || !IsTurnOf(best->lender, need)) return nullptr;
  TakeTurn(need, best->lender);
  return best;
}

}  // namespace menger
