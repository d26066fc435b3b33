#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "menger/base/clock.h"
#include "menger/training/roles/role.h"

namespace menger {

// How a role has fared since it began.
struct RoleStatus {
  std::string name;
  std::int64_t done = 0;
  int process = 0;                                // That it goes on in; 0: this one.
  std::int64_t restarts = 0;                      // Processes that it had before.
  bool ended = false;                             // It is done, was stopped, or has failed.
  double working_seconds = 0;                     // In calls of Advance that did something.
  std::map<std::string, double> waiting_seconds;  // In those that did not, by what for.
  // At present; empty: for nothing, or it has not come to the end of what it does for long.
  std::string waits_for;
  double idle_seconds = 0;  // Since it did something last.

  double waited() const {
    double seconds = 0;
    for (const auto& [what, waited] : waiting_seconds) seconds += waited;
    return seconds;
  }

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(name, done, process, restarts, ended, working_seconds, waiting_seconds, waits_for,
            idle_seconds);
  }
};

// Keeps a role's status, by whoever advances it. One thread at a time.
class RoleMeter {
 public:
  explicit RoleMeter(std::string name) { status_.name = std::move(name); }

  // What one call of Advance did, which took so long.
  void Count(const Advanced& advanced, double seconds) {
    status_.waits_for = advanced.waits_for;
    if (advanced.state == Advanced::State::kWaiting) {
      status_.waiting_seconds[status_.waits_for] += seconds;
    } else {
      status_.working_seconds += seconds;
      since_work_.Restart();
    }
  }

  RoleStatus StatusOf(const Role& role) const {
    RoleStatus status = status_;
    status.done = role.done();
    status.idle_seconds = since_work_.seconds();
    return status;
  }

 private:
  RoleStatus status_;
  Stopwatch since_work_;
};

}  // namespace menger
