#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/simulation/simulated_member.h"
#include "menger/runtime/simulation/simulated_store.h"

namespace menger::simulation {

// How the nodes of a SimulatedCluster learn of each other: the real Membership of each, around a
// simulated store. It has a time of its own, of which leases are the measure, since it is not the
// calls' business how many of them there are in a lease.
class SimulatedMembership {
 public:
  // What a node has learned of a life of another.
  struct News {
    int observer = 0;
    int node = 0;
    std::uint64_t life = 0;
    bool died = false;
  };

  explicit SimulatedMembership(Random& random);
  ~SimulatedMembership();

  // Lives are numbered by whoever starts them.
  void Start(int node, std::uint64_t life);
  void Kill(int node);
  // For so many hundredths of a lease it does not reach the store.
  void Cut(int node, int hundredths);
  void FailOver();

  // Time passes. Throws Internal if a life is said to be dead and is not.
  void Advance(int hundredths);
  // What they have learned since; of nodes that live.
  std::vector<News> TakeNews();
  // Those whose lives are over, by their own clocks: they must be killed.
  std::vector<int> TakeOver();
  // All know all, and nobody else, and nobody is cut off.
  bool settled() const { return settled_; }

 private:
  struct Life {
    int node = 0;
    std::uint64_t life = 0;
    std::unique_ptr<SimulatedMember> member;
    std::int64_t cut_until = 0;
  };

  void Note(const Life& life);
  void StepTo(std::int64_t time);
  bool AllKnowAll() const;
  Life* Find(const NodeId& id);

  Random& random_;
  SimulatedStore store_;
  std::int64_t now_ = 0;
  std::vector<std::unique_ptr<Life>> lives_;  // Also those that are over.
  std::map<int, Life*> present_;              // By nodes: those that are not.
  std::vector<News> news_;
  std::vector<int> over_;
  bool settled_ = true;
};

}  // namespace menger::simulation
