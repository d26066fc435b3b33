#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// The part of Peers that deals with calls and actors that no node can have: they wait for one that
// can, for a while, go where they do not get what they prefer, or fail.
namespace menger {
namespace {

constexpr std::int64_t kWarnAfter = 3'000'000'000;
// A node that has never been seen may be one that this one is about to meet.
constexpr std::int64_t kMayBeMet = 1'000'000'000;

// "node:" and its id: what it has alone, and no other node ever has.
bool NamesOneNode(const Resources::Named& amount) {
  constexpr std::string_view kPrefix = "node:";
  if (!amount.name.starts_with(kPrefix)) return false;
  const std::string_view id = std::string_view(amount.name).substr(kPrefix.size());
  return id.size() == ToString(Id()).size() &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The name of the one node that may do it; "" where there may be others.
std::string OnlyNode(const Resources& need) {
  const auto found = std::ranges::find_if(need.amounts(), NamesOneNode);
  return found != need.amounts().end() ? found->name : "";
}

}  // namespace

// Whether no node has this.
bool Peers::IsMissing(SchedulingClass& scheduling) {
  if (!scheduling.foreign || scheduling.group != nullptr) return false;
  if (node_.scheduler.IsElsewhere(scheduling.need)) {
    scheduling.missing_since = 0;
    scheduling.warned = false;
    return false;
  }
  if (scheduling.missing_since == 0) scheduling.missing_since = node_.now;
  return true;
}

// So long calls wait for what no node has. One that is gone never comes back, and none gets more.
std::int64_t Peers::PatienceFor(const SchedulingClass& scheduling) const {
  const std::string only = OnlyNode(scheduling.need);
  if (only.empty()) return node_.options.node_patience;
  const bool known = scheduling.was_elsewhere || FindWith(only) != nullptr;
  return known ? 0 : std::min(kMayBeMet, node_.options.node_patience);
}

const Peer* Peers::FindWith(std::string_view resource) const {
  for (const auto& [index, peer] : peers_) {
    if (peer->total.Get(resource) > 0) return peer.get();
  }
  return nullptr;
}

void Peers::SendElsewhere() {
  if (!node_.scheduler.HasPreferring()) return;
  const auto may_go = [this](SchedulingClass& scheduling) {
    if (scheduling.otherwise == nullptr || !IsMissing(scheduling)) return false;
    const std::int64_t patience = std::min(kMayBeMet, PatienceFor(scheduling));
    return scheduling.was_elsewhere || !cut_off_.empty() ||
           node_.now - scheduling.missing_since >= patience;
  };
  for (const auto& scheduling : node_.scheduler.classes()) {
    if (scheduling->ready_count > 0 && may_go(*scheduling)) {
      node_.scheduler.GoElsewhere(*scheduling);
    }
  }
  for (const Actor* const actor : node_.actors.waiting()) {
    SchedulingClass*& scheduling = actor->construction->scheduling;
    if (actor->worker == nullptr && may_go(*scheduling)) scheduling = scheduling->otherwise;
  }
}

// Whether calls or actors that wait for this, or begin to, are to do so no longer.
bool Peers::IsHopeless(SchedulingClass& scheduling) {
  if (scheduling.otherwise != nullptr || !IsMissing(scheduling)) return false;
  const std::int64_t patience = PatienceFor(scheduling);
  if (patience == 0 || !cut_off_.empty()) return true;
  const std::int64_t waited = node_.now - scheduling.missing_since;
  if (waited >= kWarnAfter && !std::exchange(scheduling.warned, true)) {
    node_.effects.Warn(
        fmt::format("calls wait for a node that has what they need: {}", WhyNobody(scheduling)));
  }
  return waited >= patience;
}

std::string Peers::WhyNobody(const SchedulingClass& scheduling) const {
  if (!cut_off_.empty()) return cut_off_;
  for (const auto& [index, peer] : peers_) {
    if (peer->cannot_serve.empty() || !peer->total.Contains(scheduling.need)) continue;
    return fmt::format("node {} cannot do this program's calls: {}", ToString(peer->node),
                       peer->cannot_serve);
  }
  if (const std::string only = OnlyNode(scheduling.need); !only.empty()) {
    return WhyNot(only, scheduling);
  }
  // Of each the most that one of them has.
  Resources most = node_.scheduler.total();
  for (const Resources::Named& amount : scheduling.need.amounts()) {
    for (const auto& [index, peer] : peers_) {
      most.Set(amount.name, std::max(most.Get(amount.name), peer->total.Get(amount.name)));
    }
  }
  const std::string missing = scheduling.need.MissingFrom(most);
  return fmt::format("{} {}",
                     scheduling.was_elsewhere ? "the node that had what it needs is gone:"
                                              : "no node has what it needs:",
                     missing.empty() ? "each is there, but nowhere all of it" : missing);
}

// Of what only one node may do.
std::string Peers::WhyNot(const std::string& only, const SchedulingClass& scheduling) const {
  const Peer* const node = FindWith(only);
  std::string why = scheduling.was_elsewhere ? "is gone" : "is not there";
  if (node != nullptr) {
    const std::string missing = scheduling.need.MissingFrom(node->total);
    why = missing.empty() ? "is about to leave" : "has not what it needs: " + missing;
  }
  return fmt::format("the only node that may do it, {}, {}", only, why);
}

// Calls that wait for what no node has any longer.
void Peers::FailForeign(SchedulingClass& scheduling) {
  while (Task* const task = Scheduler::Front(scheduling)) {
    node_.calls.End(*task,
                    node_.notes.Describe(FailureKind::kNodeDied, ErrorCode::kUnavailable, *task,
                                         WhyNobody(scheduling)),
                    /*force=*/false);
  }
}

void Peers::FailForeignActors() {
  std::vector<Actor*> hopeless;
  for (Actor* const actor : node_.actors.waiting()) {
    if (actor->worker == nullptr && IsHopeless(*actor->construction->scheduling)) {
      hopeless.push_back(actor);
    }
  }
  for (Actor* const actor : hopeless) {
    // The end of one may be that of others.
    const auto& left = node_.actors.waiting();
    if (std::ranges::find(left, actor) == left.end()) continue;
    const SchedulingClass& scheduling = *actor->construction->scheduling;
    node_.actors.Die(*actor, node_.notes.Describe(FailureKind::kActorDied, ErrorCode::kUnavailable,
                                                  *actor->construction, WhyNobody(scheduling)));
  }
}

}  // namespace menger
