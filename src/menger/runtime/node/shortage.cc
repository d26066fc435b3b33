#include "menger/runtime/node/shortage.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

constexpr std::int64_t kLookEvery = 1'000'000'000;
constexpr std::int64_t kSayAfter = 10'000'000'000;

}  // namespace

void Shortage::Look() {
  if (node_.now < look_at_) return;
  look_at_ = node_.now + kLookEvery;
  std::unordered_map<const SchedulingClass*, const Task*> waiting;
  for (const Actor* const actor : node_.actors.waiting()) {
    const bool has_none = actor->worker == nullptr && actor->state != Actor::State::kDead;
    if (has_none) waiting.emplace(actor->construction->scheduling, actor->construction);
  }
  for (const auto& scheduling : node_.scheduler.classes()) {
    if (scheduling->ready_count > 0 && scheduling->workers.empty()) {
      waiting.emplace(scheduling.get(), Scheduler::Front(*scheduling));
    }
    const auto found = waiting.find(scheduling.get());
    if (found == waiting.end() || !ActorsHave(*scheduling)) {
      scheduling->short_since = 0;
      continue;
    }
    if (scheduling->short_since == 0) scheduling->short_since = node_.now;
    if (node_.now - scheduling->short_since < kSayAfter) continue;
    if (std::exchange(scheduling->told_short, true)) continue;
    node_.effects.Warn(fmt::format(
        "{} has waited {} s for {}: this program's actors have all that there is, and keep it for "
        "as long as they live",
        node_.notes.NameOf(*found->second), kSayAfter / 1'000'000'000,
        ToString(scheduling->group != nullptr ? scheduling->wish : scheduling->need)));
  }
}

// No node that could do it has so much beside them.
bool Shortage::ActorsHave(const SchedulingClass& scheduling) const {
  if (!node_.scheduler.total().Contains(scheduling.need) &&
      !node_.scheduler.IsElsewhere(scheduling.need)) {
    return false;  // Nobody has it: see Peers::IsHopeless.
  }
  if (LeftAt(0, node_.scheduler.total()).Contains(scheduling.need)) return false;
  return std::ranges::none_of(node_.peers.all(), [&](const auto& peer) {
    return LeftAt(peer.first, peer.second->total).Contains(scheduling.need);
  });
}

Resources Shortage::LeftAt(PeerIndex node, const Resources& total) const {
  Resources left = total;
  for (const auto& [index, worker] : node_.workers.all()) {
    const bool has = worker->dedicated && worker->lender == node && worker->serving != nullptr &&
                     worker->actor != nullptr && !worker->blocked();
    if (has) left.Subtract(worker->serving->need);
  }
  return left;
}

}  // namespace menger
