#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// The part of Peers that asks other nodes for workers: at first no more of them than could do twice
// what waits. First come those where workers that this node has given back rest, which go on at
// once, then those where the arguments lie, then the others in turn. The longer calls wait, the
// more are asked: what a node has free, only it knows.
//
// Calls that need no GPU leave nodes that have some to those that do, as far as others will do:
// such a node is asked after the others. In a placement group, which cannot get more, it is asked
// for no more than the others have no room for: else the CPU beside the only GPU could be taken,
// for good by an actor, while there is one elsewhere.
namespace menger {
namespace {

constexpr std::int64_t kWiden = 1'000'000;  // Nanoseconds: after each of these twice as many,
constexpr std::int64_t kWidenedMost = 16;   // and after so many of them all.
constexpr int kLookedAt = 16;               // Calls, for where their arguments lie.
// For so long, nanoseconds, GPUs of a placement group are left to others.
constexpr std::int64_t kGpusLeft = 10'000'000'000;

// So many times the amounts are there; not more than a thousand.
double TimesIn(const Resources& amounts, const Resources& need) {
  double times = 1000;
  for (const Resources::Named& amount : need.amounts()) {
    times = std::min(times, amounts.Get(amount.name) / need.Get(amount.name));
  }
  return times;
}

// So many calls of the class it could do at once, if it did nothing else; at least one.
std::size_t PlacesFor(const SchedulingClass& scheduling, const Peer& peer) {
  return static_cast<std::size_t>(std::max(TimesIn(peer.total, scheduling.need), 1.0));
}

bool HasGpus(const Resources& amounts) { return amounts.Get("gpu") > 0; }

// What bundles of the placement group that lie on the node have.
Resources PartOf(const Group& group, const Peer& peer) {
  Resources part;
  for (std::size_t i = 0; i < group.places.size(); ++i) {
    if (group.places[i] == peer.index) part.Add(group.bundles[i]);
  }
  return part;
}

// Calls of any bundle that need none find GPUs there.
bool HasGpusToLeave(const SchedulingClass& scheduling, const Peer& peer) {
  const Group* const group = scheduling.group;
  return group != nullptr && scheduling.bundle < 0 && !scheduling.gpus && HasGpus(group->all) &&
         HasGpus(PartOf(*group, peer));
}

// So many more calls of the class could be done there, beside all others in the placement group.
std::size_t PlacesLeft(const SchedulingClass& scheduling, const Peer& peer) {
  Resources left = PartOf(*scheduling.group, peer);
  for (const auto& [loan, worker] : peer.borrowed) {
    const SchedulingClass* const served = worker->serving;
    if (served != nullptr && served->group == scheduling.group) left.Subtract(served->wish);
  }
  return static_cast<std::size_t>(std::max(TimesIn(left, scheduling.wish), 0.0));
}

std::size_t Resting(const Peer& peer) {
  return static_cast<std::size_t>(
      std::ranges::count_if(peer.borrowed, [](const auto& loan) { return loan.second->rests; }));
}

// Borrowed for calls of the class, and waiting for one that may go to that node.
std::size_t IdleFrom(const Peer& peer, const SchedulingClass& scheduling) {
  return static_cast<std::size_t>(std::ranges::count_if(peer.borrowed, [&](const auto& loan) {
    const Worker& worker = *loan.second;
    return worker.serving == &scheduling && worker.outstanding.empty() && !worker.dedicated &&
           !worker.blocked() && !worker.rests;
  }));
}

}  // namespace

// Actors that there is no room for here.
void Peers::CountHomeless() {
  homeless_.clear();
  for (const Actor* const actor : node_.actors.waiting()) {
    const SchedulingClass& scheduling = *actor->construction->scheduling;
    const bool homeless = actor->worker == nullptr && actor->state != Actor::State::kDead &&
                          !node_.scheduler.HasRoomFor(scheduling);
    if (homeless) ++homeless_[&scheduling];
  }
}

std::size_t Peers::WaitingElsewhere(const SchedulingClass& scheduling) const {
  const double here = Scheduler::BegunHereWithin(node_.options.wait_here_max, scheduling);
  const double calls = static_cast<double>(scheduling.ready_count) - here;
  const auto homeless = homeless_.find(&scheduling);
  return static_cast<std::size_t>(std::max(std::ceil(calls), 0.0)) +
         (homeless != homeless_.end() ? homeless->second : 0);
}

void Peers::AskForWorkers() {
  next_ask_.reset();
  for (const auto& scheduling : node_.scheduler.classes()) {
    if (scheduling->ready_count == 0 && homeless_.empty() && asking_.empty()) continue;
    const std::size_t waiting = WaitingElsewhere(*scheduling);
    if (waiting > 0) {
      Ask(*scheduling, waiting);
    } else if (asking_.erase(scheduling.get()) > 0) {
      for (const auto& [index, peer] : peers_) StopAsking(*peer, *scheduling);
    }
  }
}

void Peers::Ask(SchedulingClass& scheduling, std::size_t waiting) {
  const auto [asking, is_new] = asking_.emplace(&scheduling, node_.now);
  if (is_new) ++askings_;
  std::vector<Peer*> others;
  for (const auto& [index, peer] : peers_) {
    if (!MayServe(*peer, scheduling)) {
      StopAsking(*peer, scheduling);
    } else if (peer->asked.contains(scheduling.text)) {
      AskFor(*peer, scheduling, WantedFrom(*peer, scheduling, waiting));
    } else {
      others.push_back(peer.get());
    }
  }
  if (!others.empty()) AskOthers(scheduling, waiting, asking->second, std::move(others));
}

void Peers::AskOthers(const SchedulingClass& scheduling, std::size_t waiting, std::int64_t since,
                      std::vector<Peer*> others) {
  const std::int64_t widened = std::min((node_.now - since) / kWiden, kWidenedMost);
  const bool all = scheduling.spread || scheduling.group != nullptr || widened == kWidenedMost;
  const std::size_t wanted = 2 * waiting << widened;
  const auto places_of = [&](const Peer& peer) {
    return PlacesFor(scheduling, peer) + Resting(peer);
  };
  std::size_t places = 0;
  for (const auto& [index, peer] : peers_) {
    if (peer->asked.contains(scheduling.text)) places += places_of(*peer);
  }
  SortForAsking(scheduling, others);
  for (Peer* const peer : others) {
    if (!all && places >= wanted) {
      const std::int64_t next = since + (widened + 1) * kWiden;
      next_ask_ = std::min(next_ask_.value_or(next), next);
      return;
    }
    AskFor(*peer, scheduling, WantedFrom(*peer, scheduling, waiting));
    places += places_of(*peer);
  }
}

// Of calls that wait, those that the peer is to be asked for.
std::size_t Peers::WantedFrom(const Peer& peer, const SchedulingClass& scheduling,
                              std::size_t waiting) {
  if (!HasGpusToLeave(scheduling, peer)) return waiting;
  const std::int64_t until = asking_.at(&scheduling) + kGpusLeft;
  if (node_.now >= until) return waiting;
  next_ask_ = std::min(next_ask_.value_or(until), until);
  std::size_t elsewhere = 0;
  for (const auto& [index, other] : peers_) {
    if (!MayServe(*other, scheduling) || HasGpusToLeave(scheduling, *other)) continue;
    elsewhere += PlacesLeft(scheduling, *other) + IdleFrom(*other, scheduling);
  }
  return waiting - std::min(waiting, elsewhere);
}

void Peers::SortForAsking(const SchedulingClass& scheduling, std::vector<Peer*>& peers) const {
  std::vector<const Object*> arguments;
  int looked_at = 0;
  for (const auto& [turn, tasks] : scheduling.ready) {
    for (const Task* task = tasks.front(); task != nullptr; task = task->next) {
      if (++looked_at > kLookedAt) break;
      for (std::uint32_t i = 0; i < task->references; ++i) arguments.push_back(task->arguments[i]);
    }
  }
  const auto rank = [&](const Peer* peer) {
    const bool has_any = std::ranges::any_of(arguments, [&](const Object* argument) {
      return node_.copies.NameAt(*argument, peer->index) != 0;
    });
    const std::uint64_t turn = (peer->index + askings_) % (last_peer_ + 1);
    const bool spared = !scheduling.gpus && HasGpus(peer->total);
    return std::tuple(Resting(*peer) == 0, !has_any, spared, turn);
  };
  std::ranges::sort(peers, {}, rank);
}

void Peers::AskFor(Peer& peer, const SchedulingClass& scheduling, std::size_t waiting) {
  std::uint32_t& asked = peer.asked[scheduling.text];
  const std::size_t coming = asked + IdleFrom(peer, scheduling);
  if (coming >= waiting || asked == kWantedMax) return;
  // In powers of two, and not less before there is nothing: what changes all the time is not told.
  const std::size_t needed = std::min<std::size_t>(waiting - coming + asked, kWantedMax);
  asked =
      static_cast<std::uint32_t>(HasGpusToLeave(scheduling, peer) ? needed : std::bit_ceil(needed));
  TellWanted(peer, scheduling, asked);
}

void Peers::StopAsking(Peer& peer, SchedulingClass& scheduling) {
  const auto asked = peer.asked.find(scheduling.text);
  if (asked == peer.asked.end()) return;
  const bool is_open = asked->second > 0;
  peer.asked.erase(asked);
  Scheduler::SetFull(scheduling, peer.index, false);
  if (is_open) TellWanted(peer, scheduling, 0);
}

void Peers::TellWanted(const Peer& peer, const SchedulingClass& scheduling, std::uint32_t count) {
  Tell(peer.index, {.kind = PeerMessage::Kind::kWant,
                    .count = count,
                    .scheduling = scheduling.group != nullptr ? Groups::NameFor(scheduling, peer)
                                                              : scheduling.text});
}

bool Peers::MayServe(const Peer& peer, const SchedulingClass& scheduling) {
  if (!peer.lends || !peer.cannot_serve.empty()) return false;
  return scheduling.group != nullptr ? Groups::IsAt(scheduling, peer)
                                     : !peer.leaves && peer.total.Contains(scheduling.need);
}

}  // namespace menger
