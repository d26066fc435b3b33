#include "menger/runtime/node/node_machine.h"

#include <algorithm>

namespace menger {

void NodeMachine::Run() {
  parts_.scheduler.BeginRound();
  parts_.calls.CheckTimeLimits();
  const Group* const waiting = parts_.groups.Serve();
  parts_.workers.ForgetGone();
  std::vector<Task*> recalled;
  parts_.scheduler.Balance(recalled);
  parts_.actors.CallsReturned(recalled);
  parts_.demand.WantForDriver();
  parts_.peers.SendElsewhere();
  parts_.actors.ServeWaiting();
  do {
    parts_.scheduler.Run(waiting);
    parts_.waits.FailStranded();
  } while (parts_.values.ReconsiderFetching());
  parts_.workers.EndSpare();
  parts_.waits.LookForCircle();
  parts_.shortage.Look();
  parts_.peers.Serve();
  parts_.lineage.Bound(parts_.options.lineage_bytes_max);
}

std::optional<std::int64_t> NodeMachine::next_deadline() const {
  std::optional<std::int64_t> next;
  const auto at = [&next](std::optional<std::int64_t> time) {
    if (time) next = std::min(next.value_or(*time), *time);
  };
  at(parts_.calls.next_limit());
  at(parts_.scheduler.NextTurn());
  at(parts_.groups.PatienceEnds());
  at(parts_.peers.NextShare());
  at(parts_.peers.next_ask());
  at(parts_.peers.next_sharers());
  if (parts_.peers.HasBorrowed()) at(parts_.now + 1'000'000);  // To be given back when it is idle.
  return next;
}

}  // namespace menger
