#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "menger/runtime/testing/told_world.h"

namespace menger {

inline NodeId OwnerId(std::size_t number) { return NodeId{Id{.high = 1, .low = 10 + number}}; }

// One of several nodes, with a driver whose objects it owns.
class OwnerWorld : public ToldWorld {
 public:
  explicit OwnerWorld(std::size_t number)
      : ToldWorld({.resources = Resources(2, 0),
                   .workers = 2,
                   .job = 1 + number,
                   .node = OwnerId(number),
                   .epoch = 1,
                   .wait_here_max = 1e15}),
        root(RootTask(1 + number)) {
    machine.StartWorkers();
  }
  void Pull(const PullOrder& order) override { pulls.push_back(order); }
  void Interrupt(Worker&, const Task& task) override { interrupted.push_back(task.header().task); }
  // What lies elsewhere is asked for again, as whoever reads it does.
  void Ready(const Watch& watch, Object& object) override {
    if (machine.IsThere(object, watch.process)) return ToldWorld::Ready(watch, object);
    elsewhere.emplace_back(watch, object.id);
  }
  void AskAgain() {
    for (const auto& [watch, id] : std::exchange(elsewhere, {})) {
      Object& object = *machine.objects().Find(id);
      if (machine.WatchObject(watch, object, /*with_value=*/true)) ready.push_back(watch.request);
    }
  }

  World::Call CallOf(const std::vector<ObjectId>& arguments, SpecHeader header = {}) {
    return Submit(header, arguments, {.parent = root});
  }
  ObjectId Put(ObjectValue value, const std::vector<ObjectId>& contained = {}) {
    const ObjectId id = PutBy(root, ++puts);
    machine.Put(kDriver, id, std::move(value), contained);
    return id;
  }
  void Get(ObjectId id) {
    if (machine.WatchObject({kDriver, ++gets}, *machine.objects().Find(id), /*with_value=*/true)) {
      ready.push_back(gets);
    }
    machine.Run();
  }
  ForeignName Name(ObjectId id) { return machine.NameOf(*machine.objects().Find(id)); }

  const TaskId root;
  std::vector<PullOrder> pulls;
  std::vector<TaskId> interrupted;
  std::vector<std::pair<Watch, ObjectId>> elsewhere;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
};

// Three nodes, each with a driver; what they tell each other arrives when it is let.
class ThreeOwners : public testing::Test {
 protected:
  ThreeOwners() {
    for (std::size_t i = 0; i < 3; ++i) worlds[i] = std::make_unique<OwnerWorld>(i);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        if (i != j) peers[i][j] = &worlds[i]->machine.AddPeer(OwnerId(j), 1, Resources(2, 0));
      }
    }
  }

  // What one has told another so far; of `only` that kind.
  int Deliver(std::size_t from, std::size_t to) {
    std::vector<ToldWorld::Told>& told = worlds[from]->told;
    std::vector<PeerMessage> messages;
    std::erase_if(told, [&](const ToldWorld::Told& one) {
      if (one.to != peers[from][to]->index) return false;
      messages.push_back(one.message);
      return true;
    });
    for (const PeerMessage& message : messages) worlds[to]->Receive(*peers[to][from], message);
    worlds[to]->AskAgain();
    return static_cast<int>(messages.size());
  }
  void DeliverAll() {
    for (int delivered = 1; delivered > 0;) {
      delivered = 0;
      for (std::size_t from = 0; from < 3; ++from) {
        for (std::size_t to = 0; to < 3; ++to) {
          if (from != to && worlds[from] && worlds[to]) delivered += Deliver(from, to);
        }
      }
    }
  }
  void Refer(std::size_t holder, const ForeignName& name) {
    worlds[holder]->machine.Refer(kDriver, name);
    worlds[holder]->machine.Run();
  }
  void End(std::size_t number) {
    for (std::size_t other = 0; other < 3; ++other) {
      if (other == number) continue;
      worlds[other]->machine.PeerDied(*peers[other][number],
                                      {.kind = FailureKind::kNodeDied, .text = "it is gone"});
      worlds[other]->machine.Run();
    }
  }
  void ExpectNothingLeft() {
    DeliverAll();
    for (const auto& world : worlds) world->ExpectNothingLeft();
  }

  std::array<std::unique_ptr<OwnerWorld>, 3> worlds;
  std::array<std::array<Peer*, 3>, 3> peers = {};
  OwnerWorld& a() { return *worlds[0]; }
  OwnerWorld& b() { return *worlds[1]; }
  OwnerWorld& c() { return *worlds[2]; }
};

}  // namespace menger
