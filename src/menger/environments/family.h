#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/options.h"
#include "menger/environments/environment.h"

namespace menger {

// What environments are made for. A recipe may help learning (end episodes at a lost life); a score
// is always that of the whole, unaided task. A recording is an evaluation to look at: groups can
// Render where the environment can be shown.
enum class EnvironmentUse : std::uint8_t { kTraining, kEvaluation, kRecording };

// What is wrong with an environment, each in one line.
struct EnvironmentReport {
  std::vector<std::string> faults;  // With these it cannot be trained on.
  std::vector<std::string> notes;   // With these it can.
  double steps_per_second = 0;      // Of one alone; 0: nobody knows.
};

// Environments that are made by name on demand and have options of their own: Atari games, MuJoCo
// tasks, everything that Python can make.
//
// The options are one section of the recipe, named after the family and bound to this object, so
// each experiment has its own. One thread at a time; the entries that Open returns are independent
// of it.
class EnvironmentFamily {
 public:
  virtual ~EnvironmentFamily() = default;

  virtual std::string name() const = 0;                   // Also of its section: "atari".
  virtual std::string description() const = 0;            // One line for `menger list`.
  virtual std::vector<std::string> examples() const = 0;  // Names, all of them where they are few.

  // Whether the name is one of this family's. Cheap: looks at the name alone.
  virtual bool Serves(std::string_view environment) const = 0;

  // How a name that nobody serves may have been meant: "'a:B' is the B of ...", else "".
  virtual std::string HintFor(std::string_view /*environment*/) const { return ""; }

  virtual void Declare(Options& options) = 0;

  // Where the recipe lies: what stands beside it can be named in it.
  virtual void SetRecipeFolder(const std::string& /*folder*/) {}

  // Writes into the options what they leave to the family, so that a run's record says it.
  virtual void ResolveDefaults() {}

  // Throws NotFound where the family knows that there is no such environment, FailedPrecondition,
  // saying how to get it, where something is not installed. May start a process and take a second.
  virtual EnvironmentEntry Open(const std::string& environment, EnvironmentUse use) const = 0;

  // Plays it for a few seconds to find out. Throws FailedPrecondition where that is not offered.
  virtual EnvironmentReport Check(const std::string& environment) const {
    throw FailedPrecondition("{} is the program's own: there is nothing of yours to check",
                             environment);
  }
};

}  // namespace menger
