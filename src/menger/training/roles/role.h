#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "menger/base/clock.h"

namespace menger {

// What came of one Advance.
struct Advanced {
  enum class State : std::uint8_t {
    kWorked,   // Something was done.
    kWaiting,  // The time went into waiting for `waits_for`, which may have come since.
    kDone,     // Nothing will be left to do, ever.
  };
  State state = State::kWorked;
  std::string_view waits_for;  // Of kWaiting: static text, as "room in replay".

  static Advanced Worked() { return {}; }
  static Advanced WaitingFor(std::string_view what) {
    return {.state = State::kWaiting, .waits_for = what};
  }
  static Advanced Done() { return {.state = State::kDone}; }
};

// A part of training that goes on by itself: it collects, learns, infers or evaluates, and meets
// the others only where data lies (replay, parameters). It knows nothing of threads or processes:
// whoever runs it calls Advance again and again, in one thread at a time. Between two calls it can
// be looked at, saved, stopped or left alone for good.
class Role {
 public:
  virtual ~Role() = default;

  virtual const std::string& name() const = 0;  // "learner", "collector 0"

  // One bounded piece of work. It waits for what it needs no longer than until the deadline; what
  // was begun then is gone on with by the next call. What it throws ends the role.
  virtual Advanced Advance(const Deadline& deadline) = 0;

  // How much has been done, in units of its own: environment steps, updates, episodes. Any thread.
  virtual std::int64_t done() const = 0;
};

}  // namespace menger
