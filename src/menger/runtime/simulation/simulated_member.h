#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "menger/base/random.h"
#include "menger/runtime/control/membership.h"
#include "menger/runtime/simulation/simulated_store.h"

namespace menger::simulation {

inline constexpr double kClockDrift = 0.04;  // Clocks are faster or slower by so much.

// One life of a node, as a member: the real Membership, a way to a simulated store, and a clock
// that goes at a rate of its own. Times are the simulation's.
class SimulatedMember {
 public:
  // `noted` is called whenever it has done something. All is borrowed.
  SimulatedMember(const NodeRecord& self, const MembershipOptions& options, SimulatedStore& store,
                  int client, Random& random, std::function<void(SimulatedMember&)> noted);

  // What it has to do now.
  void Go();
  // It will have something to do.
  std::int64_t WakeAt() const;

  void Drain();
  void Leave();
  void Suspect();                                            // It may be that another is dead.
  void Pause(std::int64_t until) { paused_until_ = until; }  // What comes meanwhile is lost.
  void End();                                                // Its process is no more.

  int client() const { return client_; }
  bool runs() const { return connection_ != nullptr; }
  bool Lives() const { return runs() && membership_.own().Lives(Local()); }
  bool over() const { return own().state() == NodeLease::State::kOver; }
  const NodeLease& own() const { return membership_.own(); }
  const NodeRecord& self() const { return own().self(); }
  const NodeRoll& others() const { return membership_.others(); }
  std::vector<NodeChange> TakeChanges() { return membership_.TakeChanges(); }
  std::uint64_t leases_again() const { return leases_again_; }  // Taken as a member.

 private:
  std::int64_t Local() const;
  void Ask(StoreAsk ask);

  SimulatedStore& store_;
  Random& random_;
  Membership membership_;
  const std::function<void(SimulatedMember&)> noted_;
  const int client_;
  const double rate_;
  const std::int64_t offset_;
  const std::int64_t late_max_;  // It is, when it wakes.
  std::int64_t late_ = 0;
  std::int64_t paused_until_ = 0;
  std::uint64_t leases_again_ = 0;
  std::unique_ptr<ControlStore> connection_;  // Null: it is no more.
  std::unique_ptr<StoreWatch> watch_;
};

}  // namespace menger::simulation
