#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "menger/environments/atari/atari_settings.h"
#include "menger/environments/family.h"

namespace menger {

// The family `atari`: "ALE/Pong-v5" and a hundred other games of the Arcade Learning Environment.
//
// The emulator's licence (GPL-2.0-only) keeps it out of this program: each group starts
// menger-atari-host, which `make atari` builds, and shares its slab with it. Observations are
// single frames, uint8 [1, height, width].
class AtariEnvironments final : public EnvironmentFamily {
 public:
  // `host` is the path of menger-atari-host; empty: the one beside this program.
  explicit AtariEnvironments(std::string host = "") : host_(std::move(host)) {}

  std::string name() const override { return "atari"; }
  std::string description() const override;
  std::vector<std::string> examples() const override;
  bool Serves(std::string_view environment) const override;
  void Declare(Options& options) override { options_.Declare(options); }
  void ResolveDefaults() override { options_.ResolveDefaults(); }
  EnvironmentEntry Open(const std::string& environment, EnvironmentUse use) const override;

 private:
  std::string host_;
  AtariOptions options_;
};

}  // namespace menger
