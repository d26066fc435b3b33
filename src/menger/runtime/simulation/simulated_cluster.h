#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/simulation/simulated_membership.h"
#include "menger/runtime/simulation/simulated_node.h"

namespace menger::simulation {

// One node or some, each with workers and a driver, in one thread; between them a network that
// loses, delays and reorders what it likes, and between two for a while everything; nodes that die
// at any moment, or because they are cut off from the control store, and may begin anew; all of it
// from one seed. A run makes a random program for each driver, runs them on a random schedule, and
// checks that every value is that of Interpret or a permitted error, that what happens once happens
// once, that nothing waits for ever, and that in the end nothing is left.
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
  // Two nodes that do not reach each other.
  struct Parting {
    int one = 0;
    int other = 0;
    std::int64_t until = 0;
  };
  // Two nodes that have not reached each other for so long that one, and later the other, takes the
  // other one for dead; then they meet again.
  struct Rift {
    std::array<int, 2> nodes{};
    std::array<std::uint64_t, 2> epochs{};
    bool both_told = false;
  };

  void MakePlans();
  NodePlan MakeNodePlan(int number);
  void StartNode(int number);
  void KillNode(int number);
  void LetLeave();         // Nodes that drain, and may.
  bool Drain(int number);  // False if that node does already, or no other would be left.
  bool DoSomething();      // False if nobody can do anything.
  void RunUntilQuiet();
  void CheckNothingLeft();
  void Deliver(std::size_t index);
  void Disturb();  // Perhaps: the network, and what the nodes know each other by.
  bool Parted(int one, int other) const;
  void BeginRift(int one, int other);  // Unless they have not met.
  bool HealRifts();                    // By a step; false if there are none.
  bool Learn(int hundredths);  // Of other nodes, while time passes; false if there was nothing.
  void Exchange();             // What the nodes have to send goes out.
  void Settle();
  bool LetTimePass();  // False if nothing came of it.
  void TellWhoIsOver();
  [[noreturn]] void FailStuck() const;

  int Draw(int bound) { return static_cast<int>(random_.Integers(0, bound)); }
  bool OneIn(int count) { return Draw(count) == 0; }

  Random random_;
  CommonPlan common_;
  SimulationCounts counts_;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;  // By number; null for a dead one.
  std::vector<std::uint64_t> epochs_;
  std::vector<Flying> flying_;
  std::vector<Parting> partings_;
  std::vector<Rift> rifts_;
  std::unique_ptr<SimulatedMembership> membership_;  // Of several nodes.
  bool poor_ = false;                                // A node has no workers of its own.
  bool faithful_ = false;
  bool faults_ = false;  // Of the network.
  int haste_ = 1;        // Hundredths of a lease that pass while something happens, if it matters.
  int fail_overs_ = 0;   // Of the store, still allowed.
  int node_deaths_ = 0;  // Still allowed,
  int drains_ = 0;       // likewise,
  int births_ = 0;       // likewise.
  std::uint64_t told_deaths_ = 0;  // Of which all know, whether or not they ever met who died.
  std::int64_t now_ = 0;
};

}  // namespace menger::simulation
