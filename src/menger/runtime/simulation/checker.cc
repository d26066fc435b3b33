#include "menger/runtime/simulation/checker.h"

#include <algorithm>

#include "menger/base/error.h"

namespace menger::simulation {

void Checker::Called(const TaskSpec& spec) {
  std::uint64_t hash = 0;
  for (const SpecArgument& argument : spec.arguments()) hash = Mix(hash ^ argument.object.low);
  for (const std::byte byte : spec.value(spec.arguments()[0])) {
    hash = Mix(hash ^ static_cast<std::uint64_t>(byte));
  }
  const auto [known, first] = calls_.emplace(spec.task(), hash);
  if (!first && known->second != hash) {
    throw Internal("call {} is another call when it is made again", ToString(spec.task()));
  }
  if (first) call_order_.emplace(spec.task(), call_order_.size());
}

void Checker::WasPut(ObjectId id, std::uint64_t fold) {
  const auto [known, first] = puts_.emplace(id, fold);
  if (known->second != fold) throw Internal("object {} is put twice, differently", ToString(id));
}

void Checker::MethodDone(const SpecHeader& header, std::uint64_t state, std::uint64_t position) {
  Actor& actor = actors_[header.actor];
  const auto [known, first] = actor.positions.emplace(header.task, position);
  if (!first && known->second != position) {
    throw Internal("call {} of an actor is its number {} and its number {}", ToString(header.task),
                   known->second, position);
  }
  const auto [done, free] =
      actor.by_position.emplace(position, Done{header.task, header.parent, state});
  if (done->second.task != header.task || done->second.state != state) {
    throw Internal("call {} of an actor is its number {}, and so is call {}", ToString(header.task),
                   position, ToString(done->second.task));
  }
}

void Checker::CheckChains() const {
  for (const auto& [id, actor] : actors_) {
    std::uint64_t state = Mix(id.low);
    std::unordered_map<TaskId, std::uint64_t, IdHash> last;  // Of each caller, as it called.
    for (std::uint64_t position = 1; position <= actor.by_position.size(); ++position) {
      const auto found = actor.by_position.find(position);
      if (found == actor.by_position.end()) {
        throw Internal("actor {} did {} calls, but no number {}", ToString(id),
                       actor.by_position.size(), position);
      }
      const Done& done = found->second;
      state = Mix(state ^ done.task.low);
      if (state != done.state) {
        throw Internal("actor {} became something else with call {}", ToString(id), position);
      }
      const auto order = call_order_.find(done.task);
      std::uint64_t& before = last[done.parent];
      if (order == call_order_.end() || order->second + 1 <= before) {
        throw Internal("actor {} did calls of {} out of order", ToString(id),
                       ToString(done.parent));
      }
      before = order->second + 1;
    }
  }
}

}  // namespace menger::simulation
