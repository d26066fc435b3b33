#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>

#include "menger/runtime/node/states.h"

namespace menger {

// The ways between states that were seen and are in no table; with `all`, also those that are in a
// table and were not seen. "" if there are none. States are told by their numbers.
template <typename State, std::size_t count>
std::string StateDifferences(const char* what, const States::Seen& seen,
                             const std::array<Transition<State>, count>& table, bool all) {
  States::Seen known;
  for (const Transition<State>& row : table) known.set(States::Place(row.from, row.to));
  std::string text;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == known[i] || (!seen[i] && !all)) continue;
    text += fmt::format("{} {} -> {} {}\n", what, i / States::kStatesMax, i % States::kStatesMax,
                        seen[i] ? "is in no table" : "did not happen");
  }
  return text;
}

inline std::string StateDifferences(const States& states, bool all) {
  return StateDifferences("object", states.objects(), kObjectTransitions, all) +
         StateDifferences("task", states.tasks(), kTaskTransitions, all) +
         StateDifferences("worker", states.workers(), kWorkerTransitions, all) +
         StateDifferences("actor", states.actors(), kActorTransitions, all);
}

}  // namespace menger
