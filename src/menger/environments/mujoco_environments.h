#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "menger/environments/family.h"

namespace menger {

// Gymnasium's MuJoCo environments, version 5, natively: rewards, ends, observations and start
// states are the same to the last bit.
//
// They are made by libmenger_mujoco.so, which $MENGER_MUJOCO_LIBRARY names or which lies beside the
// program: MuJoCo is a package of its own that only those need who use them. Where the library is
// missing, Open throws FailedPrecondition that says how to get it.
class MujocoEnvironments final : public EnvironmentFamily {
 public:
  std::string name() const override { return "mujoco"; }
  std::string description() const override;
  std::vector<std::string> examples() const override;
  bool Serves(std::string_view environment) const override;
  void Declare(Options& options) override;
  EnvironmentEntry Open(const std::string& environment, EnvironmentUse use) const override;

 private:
  std::string models_;
};

}  // namespace menger
