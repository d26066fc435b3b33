#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "menger/environments/family.h"
#include "menger/environments/hosted/hosted_group.h"

namespace menger {

// Everything that Python can make, stepped by `python -m menger.host` processes, one a group:
//
//   host:CartPole-v1      any Gymnasium id, also where there is a native environment of that name
//   FrozenLake-v1         the same, for ids that look like Gymnasium's
//   package.module:Name   imports the module, then makes the id that it registers, or calls its
//                         class or function
//
// The interpreter is the user's (CPython 3.9 or later with NumPy and Gymnasium); nothing here links
// it. See OpenHosted for failures and resuming.
class HostedEnvironments : public EnvironmentFamily {
 public:
  std::string name() const override { return "host"; }
  std::string description() const override;
  std::vector<std::string> examples() const override;
  bool Serves(std::string_view environment) const override;
  void Declare(Options& options) override;
  std::string HintFor(std::string_view environment) const override;
  void SetRecipeFolder(const std::string& folder) override { recipe_folder_ = folder; }
  void ResolveDefaults() override;
  EnvironmentEntry Open(const std::string& environment, EnvironmentUse use) const override;
  EnvironmentReport Check(const std::string& environment) const override;

 private:
  std::string RequestFor(const std::string& environment, EnvironmentUse use) const;
  HostProgram Program(const std::string& environment) const;

  // Where modules are looked for, absolute: beside the recipe, in the current folder, host.path.
  std::vector<std::string> SearchPath() const;

  std::string recipe_folder_ = ".";
  std::string python_ = "auto";
  std::string python_found_;
  std::string arguments_;  // JSON.
  double step_deadline_ = 30;
  double start_deadline_ = 45;
  std::vector<std::string> metrics_;
  std::vector<std::string> path_;
  bool vector_ = false;
  std::shared_ptr<HostVoice> voice_ = std::make_shared<HostVoice>();
};

}  // namespace menger
