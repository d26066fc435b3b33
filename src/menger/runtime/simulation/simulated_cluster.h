#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/simulation/simulated_node.h"

namespace menger::simulation {

// One node or some, each with workers and a driver, in one thread; between them a network that
// loses, delays and reorders what it likes; nodes that die at any moment and may begin anew; all of
// it from one seed. A run makes a random program for each driver, runs them on a random schedule,
// and checks that every value is that of Interpret or a permitted error, that what happens once
// happens once, that nothing waits for ever, and that in the end nothing is left.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(std::uint64_t seed);
  ~SimulatedCluster();

  // Throws Internal that says what is wrong.
  void Run();

  const SimulationCounts& counts() const { return counts_; }

 private:
  struct Flying {
    int from = 0;
    int to = 0;
    Lane lane = Lane::kControl;
    Link::Packet packet;
  };
  // What `observer` will learn sooner or later: that a node has died, or has come.
  struct Rumour {
    int observer = 0;
    std::uint64_t observer_epoch = 0;
    int node = 0;
    std::uint64_t epoch = 0;
    bool died = false;
  };

  void MakePlans();
  NodePlan MakeNodePlan(int number);
  void StartNode(int number);
  void KillNode(int number);
  bool DoSomething();  // False if nobody can do anything.
  void Deliver(std::size_t index);
  void Spread(std::size_t rumour);
  void Exchange();  // What the nodes have to send goes out.
  void Settle();
  void LetTimePass();
  [[noreturn]] void FailStuck() const;

  int Draw(int bound) { return static_cast<int>(random_.Integers(0, bound)); }
  bool OneIn(int count) { return Draw(count) == 0; }

  Random random_;
  CommonPlan common_;
  SimulationCounts counts_;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;  // By number; null for a dead one.
  std::vector<std::uint64_t> epochs_;
  std::vector<Flying> flying_;
  std::vector<Rumour> rumours_;
  bool poor_ = false;  // A node has no workers of its own.
  bool faithful_ = false;
  bool faults_ = false;  // Of the network.
  int node_deaths_ = 0;  // Still allowed,
  int births_ = 0;       // likewise.
  std::int64_t now_ = 0;
};

}  // namespace menger::simulation
