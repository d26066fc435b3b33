#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/control/membership.h"
#include "menger/runtime/simulation/simulated_member.h"
#include "menger/runtime/simulation/simulated_store.h"

namespace menger::simulation {

// For those who doubt that anything happens.
struct MembershipCounts {
  std::uint64_t lives = 0;
  std::uint64_t members = 0;
  std::uint64_t met = 0;
  std::uint64_t draining = 0;
  std::uint64_t died = 0;  // That others have said of one.

  std::uint64_t left = 0;
  std::uint64_t fenced = 0;
  std::uint64_t names_taken = 0;    // Of doubled names.
  std::uint64_t doubled_names = 0;  // Moments.
  std::uint64_t fail_overs = 0;
  std::uint64_t leases_again = 0;  // That a life took because the store had forgotten.
};

// Nodes that join, leave, are killed, paused and cut off, around a store that does what its
// contract allows, fail-overs among it; clocks that go at rates of their own. All of it in one
// thread and from one seed. At every step it checks that
// - no two lives have one id or one epoch;
// - who is said to be dead does not live by its own clock, and is never met again;
// - who lives by its own clock has a record whose lease is not over, but for a while after a
//   fail-over;
// - two lives have one name only for as long as a lease after a fail-over, and the younger keeps
// it;
// - who is over says nothing, and, in a calm schedule, nobody ends who could reach the store;
// and in the end, when nothing happens any more, that all know each other and nobody else, that
// every name has a holder, that the dead have left nothing, and that nothing changes.
class MembershipWorld {
 public:
  explicit MembershipWorld(std::uint64_t seed);
  ~MembershipWorld();

  // Throws Internal that says what is wrong.
  void Run();

  const MembershipCounts& counts() const { return counts_; }

 private:
  struct Life;

  void Start(int host);
  void Note(Life& life);
  void NoteEnd(Life& life);
  void CheckChange(Life& observer, const NodeChange& change);
  void CheckNames();
  void CheckLeases() const;
  void CheckRest() const;

  void StepTo(std::int64_t time);
  std::int64_t NextAt(std::int64_t most) const;
  void LivesGo();
  void StartDue();
  void Disturb();
  void DisturbLife(Life& life);
  void FailOver();
  void HealAll();

  int Draw(int bound) { return static_cast<int>(random_.Integers(0, bound)); }
  std::int64_t DrawTime(std::int64_t most) { return random_.Integers(0, most + 1); }
  Life* FindLife(const NodeId& id) const;

  Random random_;
  SimulatedStore store_;
  MembershipCounts counts_;
  bool calm_ = false;
  bool suspicious_ = false;  // Nodes read often.
  int hosts_ = 0;
  int names_ = 0;
  int fail_overs_ = 0;  // One disturbance in so many; 0: none.
  std::int64_t now_ = 0;
  std::int64_t fail_over_at_;
  std::int64_t fails_over_at_;  // The next time; far away if none is near.
  std::int64_t changed_at_ = 0;
  std::vector<std::unique_ptr<Life>> lives_;  // Also those that are over.
  std::set<std::uint64_t> epochs_;            // Of members.
  std::map<int, std::int64_t> starts_;        // Of hosts whose life is over: when the next begins.
};

}  // namespace menger::simulation
