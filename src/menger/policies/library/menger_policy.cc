#include "menger/policies/library/menger_policy.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "menger/policies/bundle_player.h"
#include "menger/policies/bundle_reader.h"

struct menger_policy {
  menger::PolicyBundle bundle;
};

struct menger_player {
  explicit menger_player(const menger::PolicyBundle& bundle)
      : player(bundle), leaves(bundle.observation.size()) {}
  menger::BundlePlayer player;
  const std::size_t leaves;
};

namespace {

using Result = menger::BundlePlayer::Result;
static_assert(static_cast<int>(Result::kActed) == MENGER_ACTED);
static_assert(static_cast<int>(Result::kNoSuchChoice) == MENGER_NO_SUCH_CHOICE);
static_assert(static_cast<int>(Result::kNothingAllowed) == MENGER_NOTHING_ALLOWED);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::vector<std::uint8_t> ReadAll(const char* path) {
  if (path == nullptr) throw std::runtime_error("no path was given");
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "rb"));
  if (file == nullptr) throw std::runtime_error(std::strerror(errno));
  std::vector<std::uint8_t> bytes;
  std::uint8_t piece[65536];
  while (true) {
    const std::size_t count = std::fread(piece, 1, sizeof(piece), file.get());
    bytes.insert(bytes.end(), piece, piece + count);
    if (count < sizeof(piece)) break;
  }
  if (std::ferror(file.get()) != 0) throw std::runtime_error("it cannot be read to its end");
  return bytes;
}

menger_array Describe(const menger::BundleLeaf& leaf) {
  return {leaf.name.c_str(), static_cast<std::int32_t>(leaf.dtype),
          static_cast<std::int32_t>(leaf.shape.size()), leaf.shape.data(), leaf.elements};
}

}  // namespace

menger_policy* menger_policy_open(const char* path, char* error, std::size_t error_size) {
  try {
    const std::vector<std::uint8_t> bytes = ReadAll(path);
    return new menger_policy{menger::ReadBundle(bytes.data(), bytes.size())};
  } catch (const std::exception& caught) {
    if (error != nullptr) {
      std::snprintf(error, error_size, "'%s': %s", path == nullptr ? "" : path, caught.what());
    }
    return nullptr;
  }
}

void menger_policy_close(menger_policy* policy) { delete policy; }

const char* menger_policy_about(const menger_policy* policy) {
  return policy->bundle.about.c_str();
}

std::int32_t menger_policy_observations(const menger_policy* policy) {
  return static_cast<std::int32_t>(policy->bundle.observation.size());
}

menger_array menger_policy_observation(const menger_policy* policy, std::int32_t index) {
  if (index < 0 || index >= menger_policy_observations(policy)) return {};
  return Describe(policy->bundle.observation[index]);
}

menger_array menger_policy_action(const menger_policy* policy) {
  return Describe(policy->bundle.action);
}

menger_player* menger_player_new(const menger_policy* policy) {
  try {
    return policy == nullptr ? nullptr : new menger_player(policy->bundle);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void menger_player_delete(menger_player* player) { delete player; }

void menger_player_reset(menger_player* player) {
  if (player != nullptr) player->player.Reset();
}

std::int32_t menger_player_act(menger_player* player, const void* const* observations,
                               void* action) {
  if (player == nullptr || observations == nullptr || action == nullptr) return MENGER_NO_PLAYER;
  for (std::size_t i = 0; i < player->leaves; ++i) {
    if (observations[i] == nullptr) return MENGER_NO_PLAYER;
  }
  return static_cast<std::int32_t>(player->player.Act(observations, action));
}

const float* menger_player_outputs(const menger_player* player, std::int32_t* count) {
  const auto outputs = player->player.outputs();
  if (count != nullptr) *count = static_cast<std::int32_t>(outputs.size());
  return outputs.data();
}
