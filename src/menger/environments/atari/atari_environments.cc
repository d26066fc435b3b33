#include "menger/environments/atari/atari_environments.h"

#include <filesystem>

#include "menger/base/error.h"
#include "menger/environments/atari/atari_request.h"
#include "menger/environments/hosted/hosted_group.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "ALE/";
constexpr std::string_view kEnd = "-v5";

std::string HostBesideProgram() {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (failure) throw FromErrno("cannot read '/proc/self/exe'", failure.value());
  return (program.parent_path() / "menger-atari-host").string();
}

}  // namespace

std::string AtariEnvironments::description() const {
  return "Atari 2600 games of the Arcade Learning Environment (make atari)";
}

std::vector<std::string> AtariEnvironments::examples() const {
  return {"ALE/Pong-v5",     "ALE/Breakout-v5", "ALE/BeamRider-v5",
          "ALE/Seaquest-v5", "ALE/Qbert-v5",    "ALE/SpaceInvaders-v5"};
}

bool AtariEnvironments::Serves(std::string_view environment) const {
  return environment.size() > kBegin.size() + kEnd.size() && environment.starts_with(kBegin) &&
         environment.ends_with(kEnd);
}

EnvironmentEntry AtariEnvironments::Open(const std::string& environment, EnvironmentUse use) const {
  const std::string host = host_.empty() ? HostBesideProgram() : host_;
  if (!fs::exists(host)) {
    throw FailedPrecondition(
        "{} needs the Atari emulator, which is not there ('{}'): run `make atari`, which fetches "
        "and builds it in about three minutes",
        environment, host);
  }
  const AtariRequest request = {.game = environment,
                                .preset = options_.preset(),
                                .rom_folder = options_.rom_folder(),
                                .settings = options_.Resolve(use)};
  EnvironmentEntry entry = OpenHosted(
      {.arguments = {host}, .variables = {}, .advice = "`make atari` builds the host anew."},
      ToJson(request));
  entry.renders = true;
  return entry;
}

}  // namespace menger
