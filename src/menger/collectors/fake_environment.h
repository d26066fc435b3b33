#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/counter_random.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/environments/environment.h"

// For tests only.
namespace menger {

// What a fake environment does wrong.
struct FakeFaults {
  int environment = -1;            // Only this one misbehaves ...
  std::int64_t step = 0;           // ... in its step of this number (from 0) ...
  std::int64_t every = 1LL << 40;  // ... and in every so many-th after it.
  double hang_seconds = 0;         // 0: it throws.
};

// Environments for tests of collectors: every standard column, an action mask, and random episodes
// of 1 to 25 steps, all a function of seed, environment and actions. Shares no code with the real
// groups.
class FakeGroup : public EnvironmentGroup {
 public:
  static constexpr std::int64_t kActions = 3;

  static EnvironmentSpec MakeSpec() {
    return {
        .name = "Fake-v0",
        .observation = Spec({LeafSpec::Box("observation", DataType::kFloat32, {3}, {-1e9}, {1e9}),
                             LeafSpec::Mask("action_mask", kActions)}),
        .action = Spec({LeafSpec::Discrete("action", kActions)}),
        .max_episode_steps = 25,
        .description = "for tests"};
  }

  FakeGroup(const GroupOptions& options, const FakeFaults& faults)
      : options_(options), faults_(faults) {
    for (int i = 0; i < options.columns.count; ++i) {
      const int environment = options.columns.first_environment + i;
      members_.push_back({.random = Random::FromSeed(options.seed + environment).Save()});
    }
  }

  const EnvironmentSpec& spec() const override { return spec_; }

  void Reset(Slab& slab, int row) override {
    for (std::size_t i = 0; i < members_.size(); ++i) Begin(slab, row, i);
  }

  void Step(Slab& slab, int row) override {
    for (std::size_t i = 0; i < members_.size(); ++i) StepOne(slab, row, i);
  }

  void ResetParked(Slab& slab, int row) override {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].parked != 0) Begin(slab, row, i);
    }
  }

  void StepRandomly(Slab& slab, int row, std::span<const int> steps, std::uint64_t seed) override {
    const CounterRandom actions(seed, /*stream=*/77);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      for (int step = 0; step < steps[i]; ++step) {
        const auto environment = static_cast<std::uint64_t>(EnvironmentOf(i));
        if (Advance(i, actions.Draw(environment, static_cast<std::uint64_t>(step))[0] % kActions)
                .ended) {
          members_[i].episode_step = 0;
        }
      }
      Show(slab, row, i);
      slab.is_first(row)[PositionOf(i)] = 1;
    }
  }

  void Save(ArchiveWriter& archive) const override { archive.Write("members", members_); }
  void Load(ArchiveReader& archive) override {
    archive.Read("members", std::span<Member>(members_));
  }

 private:
  struct Member {
    RandomState random;
    std::int64_t steps = 0;  // Of its life.
    std::int64_t episode_step = 0;
    std::int64_t last_action = 0;
    std::int64_t parked = 0;
    float noise = 0;
    float unused = 0;
  };
  struct Outcome {
    double reward = 0;
    bool terminated = false;
    bool truncated = false;
    bool ended = false;
  };

  int PositionOf(std::size_t i) const {
    return options_.columns.first_position + static_cast<int>(i);
  }
  int EnvironmentOf(std::size_t i) const {
    return options_.columns.first_environment + static_cast<int>(i);
  }

  void Write(std::byte* observation, std::byte* mask, const Member& member) const {
    const float values[3] = {member.noise, static_cast<float>(member.episode_step),
                             static_cast<float>(member.last_action)};
    std::memcpy(observation, values, sizeof(values));
    for (std::int64_t a = 0; a < kActions; ++a) {
      mask[a] = static_cast<std::byte>(a != member.steps % kActions);
    }
  }

  void Show(Slab& slab, int row, std::size_t i) {
    const int position = PositionOf(i);
    Write(slab.observation(0, row, position), slab.observation(1, row, position), members_[i]);
    slab.is_first(row)[position] = members_[i].episode_step == 0;
  }

  void Begin(Slab& slab, int row, std::size_t i) {
    members_[i].episode_step = 0;
    members_[i].last_action = -1;
    members_[i].parked = 0;
    Show(slab, row, i);
  }

  Outcome Advance(std::size_t i, std::int64_t action) {
    Member& member = members_[i];
    const std::int64_t step = member.steps++;
    if (EnvironmentOf(i) == faults_.environment && step >= faults_.step &&
        (step - faults_.step) % faults_.every == 0) {
      if (faults_.hang_seconds == 0) {
        throw Internal("environment {} (seed {}) failed in step {}: it was told to",
                       EnvironmentOf(i),
                       options_.seed + static_cast<std::uint64_t>(EnvironmentOf(i)), step);
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(faults_.hang_seconds));
    }
    Random random(member.random);
    member.noise = static_cast<float>(random.Normal());
    Outcome outcome{.reward = random.Double() + static_cast<double>(action)};
    outcome.terminated = random.Double() < 0.1;
    member.random = random.Save();
    member.last_action = action;
    ++member.episode_step;
    outcome.truncated = !outcome.terminated && member.episode_step == 25;
    outcome.ended = outcome.terminated || outcome.truncated;
    return outcome;
  }

  void StepOne(Slab& slab, int row, std::size_t i) {
    const int position = PositionOf(i);
    Outcome outcome;
    bool valid = members_[i].parked == 0;
    bool failed = false;
    if (valid) {
      try {
        outcome = Advance(i, *slab.action<std::int64_t>(0, row, position));
      } catch (const Error&) {
        if (options_.errors == nullptr || !options_.errors->Take()) throw;
        valid = false;
        failed = true;
      }
    }
    slab.reward(row)[position] = outcome.reward;
    slab.terminated(row)[position] = outcome.terminated;
    slab.truncated(row)[position] = outcome.truncated;
    slab.episode_end(row)[position] = outcome.ended;
    slab.valid(row)[position] = valid;
    slab.final_index(row)[position] = -1;
    if (outcome.ended) {
      const int slot = slab.FinalSlot(row, position);
      slab.final_index(row)[position] = slot;
      Write(slab.final_observation(0, slot), slab.final_observation(1, slot), members_[i]);
    }
    if (outcome.ended && options_.reset_mode == ResetMode::kBetweenSlabs) {
      members_[i].parked = 1;
      members_[i].episode_step = 0;
    }
    if (failed || (outcome.ended && members_[i].parked == 0)) {
      Begin(slab, row + 1, i);
    } else {
      Show(slab, row + 1, i);
    }
  }

  const EnvironmentSpec spec_ = MakeSpec();
  const GroupOptions options_;
  const FakeFaults faults_;
  std::vector<Member> members_;
};

inline EnvironmentEntry FakeEnvironment(FakeFaults faults = {}) {
  return {.spec = FakeGroup::MakeSpec(), .make_group = [faults](const GroupOptions& options) {
            return std::make_unique<FakeGroup>(options, faults);
          }};
}

}  // namespace menger
