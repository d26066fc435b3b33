#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/counter_random.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/random.h"
#include "menger/environments/environment.h"
#include "menger/environments/row_check.h"
#include "menger/environments/simulator.h"
#include "menger/tensor/slab.h"

namespace menger {

// The adapter from a simulator to the hot interface: one simulator a column, no virtual call,
// allocation or lock per step. It adds what Gymnasium's wrappers add:
//
// - the time limit of the spec: `truncated` is set at the last step allowed, also beside
//   `terminated`;
// - reset in the same step, going on with the environment's random stream. kBetweenSlabs parks the
//   column instead: from the next row on its rows show the final observation, with valid = 0 and
//   is_first = 1 (nothing may be stacked onto them), and its actions are not looked at;
// - refusal of bad actions before any column is stepped, so the call can be repeated.
//
// A simulator that throws, or gives a reward or observation that is no number, starts a fresh
// episode while the error budget lasts. The row of the error
// then has valid = 0, truncated = 1 (with the row's own observation as the final one, so that
// returns are cut there) and episode_end = 0 (half an episode must not enter the statistics).
template <Simulator S>
class SimulatorGroup final : public EnvironmentGroup {
 public:
  using Config = typename ConfigOf<S>::Type;

  explicit SimulatorGroup(const GroupOptions& options, const Config& config = {})
      : spec_(SpecOf<S>(config)),
        options_(options),
        count_(options.columns.count),
        step_limit_(spec_.max_episode_steps > 0 ? spec_.max_episode_steps
                                                : std::numeric_limits<int>::max()),
        observation_size_(spec_.observation[0].elements()),
        actions_(kDiscrete ? spec_.action[0].counts[0] : 0),
        action_items_(kDiscrete ? 1 : static_cast<int>(spec_.action[0].elements())),
        elapsed_(count_, 0),
        parked_(count_, 0) {
    simulators_.reserve(count_);
    for (int i = 0; i < count_; ++i) {
      randoms_.push_back(Random::FromSeed(SeedOf(i)));
      if constexpr (std::is_constructible_v<S, const Config&>) {
        simulators_.emplace_back(config);
      } else {
        simulators_.emplace_back();
      }
    }
    if constexpr (!kDiscrete) {
      const LeafSpec& leaf = spec_.action[0];
      for (int k = 0; k < action_items_; ++k) {
        low_.push_back(static_cast<float>(leaf.low[leaf.low.size() == 1 ? 0 : k]));
        high_.push_back(static_cast<float>(leaf.high[leaf.high.size() == 1 ? 0 : k]));
      }
      clipped_.resize(action_items_);
    }
  }

  const EnvironmentSpec& spec() const override { return spec_; }

  void Reset(Slab& slab, int row) override {
    CheckRow(slab, row, slab.horizon());
    for (int i = 0; i < count_; ++i) ResetInto(slab, row, i);
    started_ = true;
  }

  void Step(Slab& slab, int row) override {
    CheckStarted("Step");
    CheckRow(slab, row, slab.horizon() - 1);
    const Rows rows = Bind(slab, row);
    CheckActions(rows);
    Clear(rows);
    int i = 0;
    while (i < count_) {
      try {
        for (; i < count_; ++i) StepColumn(rows, i);
      } catch (...) {
        Restart(rows, i);
        ++i;
      }
    }
    if (!AllSound(rows)) [[unlikely]]
      RefuseValues(rows);
  }

  void ResetParked(Slab& slab, int row) override {
    CheckStarted("ResetParked");
    CheckRow(slab, row, slab.horizon());
    for (int i = 0; i < count_; ++i) {
      if (parked_[i] != 0) ResetInto(slab, row, i);
    }
  }

  // Goes on from the episodes that `Reset` has written into the same row; the steps count towards
  // the time limit. is_first is set even in the middle of an episode: the slab shows nothing of
  // what was before.
  void StepRandomly(Slab& slab, int row, std::span<const int> steps, std::uint64_t seed) override {
    CheckStarted("StepRandomly");
    CheckRow(slab, row, slab.horizon());
    if (static_cast<int>(steps.size()) != count_) {
      throw InvalidArgument("StepRandomly got {} step counts for {} environments of {}",
                            steps.size(), count_, spec_.name);
    }
    const CounterRandom random(seed, kRandomStepsStream);
    for (int i = 0; i < count_; ++i) {
      for (int k = 0; k < steps[i]; ++k) {
        try {
          StepAtRandom(slab, row, i, random, k);
        } catch (...) {
          TakeRestart(i, fmt::format("random step {}", k));
          ResetInto(slab, row, i);
        }
      }
    }
  }

  Image Render(int index) override {
    if constexpr (requires(S simulator) { simulator.Render(); }) {
      return simulators_.at(static_cast<std::size_t>(index)).Render();
    } else {
      return EnvironmentGroup::Render(index);
    }
  }

  void Save(ArchiveWriter& archive) const override {
    archive.Write("environment", spec_.name);
    archive.Write("started", started_);
    archive.Write("elapsed", elapsed_);
    archive.Write("parked", parked_);
    std::vector<RandomState> states;
    for (const Random& random : randoms_) states.push_back(random.Save());
    archive.Write("randoms", states);
    if constexpr (kPlain) {
      archive.Write("simulators", simulators_);
    } else {
      for (int i = 0; i < count_; ++i) {
        ArchiveWriter scope = archive.Scope("simulator_" + std::to_string(i));
        simulators_[i].Save(scope);
      }
    }
  }

  void Load(ArchiveReader& archive) override {
    const auto name = archive.Read<std::string>("environment");
    if (name != spec_.name) {
      throw FailedPrecondition("the archive holds {}; it cannot be loaded into {}", name,
                               spec_.name);
    }
    std::vector<RandomState> states(count_);
    archive.Read("randoms", std::span(states));
    archive.Read("started", started_);
    archive.Read("elapsed", std::span(elapsed_));
    archive.Read("parked", std::span(parked_));
    for (int i = 0; i < count_; ++i) randoms_[i].Restore(states[i]);
    parked_count_ = static_cast<int>(std::count(parked_.begin(), parked_.end(), 1));
    if constexpr (kPlain) {
      archive.Read("simulators", std::span(simulators_));
    } else {
      for (int i = 0; i < count_; ++i) {
        ArchiveReader scope = archive.Scope("simulator_" + std::to_string(i));
        simulators_[i].Load(scope);
      }
    }
  }

 private:
  static constexpr bool kDiscrete = DiscreteSimulator<S>;
  static constexpr bool kPlain = std::is_trivially_copyable_v<S>;
  static constexpr std::uint32_t kRandomStepsStream = 0x72616E64;  // "rand": StepRandomly's alone.
  using Number = typename NumberOf<S>::Type;
  using ActionItem = std::conditional_t<kDiscrete, std::int64_t, float>;

  // Sizes: constants where the simulator says them, so that loops over small ones unroll.
  std::size_t observation_size() const {
    if constexpr (requires { S::kObservationSize; }) {
      return S::kObservationSize;
    } else {
      return static_cast<std::size_t>(observation_size_);
    }
  }
  std::size_t observation_bytes() const { return observation_size() * sizeof(Number); }
  std::int64_t actions() const {
    if constexpr (requires { S::kActions; }) {
      return S::kActions;
    } else {
      return actions_;
    }
  }
  int action_items() const {
    if constexpr (kDiscrete) {
      return 1;
    } else if constexpr (requires { S::kActionSize; }) {
      return S::kActionSize;
    } else {
      return action_items_;
    }
  }

  // The block's part of one row (and of the observations of the next), bound once a Step. Arrays
  // begin at the block's first column.
  struct Rows {
    const ActionItem* action;
    const Number* observation;
    double* reward;
    std::uint8_t* terminated;
    std::uint8_t* truncated;
    std::uint8_t* episode_end;
    std::uint8_t* valid;
    std::int32_t* final_index;
    Number* final_observation;
    int final_slot;  // Of the first column; the others follow.
    Number* next_observation;
    std::uint8_t* next_is_first;
    std::int64_t step;  // Of the whole run, for messages.
  };

  Rows Bind(Slab& slab, int row) const {
    const int first = options_.columns.first_position;
    const int slot = slab.FinalSlot(row, first);
    return {.action = slab.action<ActionItem>(0, row, first),
            .observation = slab.observation<Number>(0, row, first),
            .reward = slab.reward(row) + first,
            .terminated = slab.terminated(row) + first,
            .truncated = slab.truncated(row) + first,
            .episode_end = slab.episode_end(row) + first,
            .valid = slab.valid(row) + first,
            .final_index = slab.final_index(row) + first,
            .final_observation = slab.final_observation<Number>(0, slot),
            .final_slot = slot,
            .next_observation = slab.observation<Number>(0, row + 1, first),
            .next_is_first = slab.is_first(row + 1) + first,
            .step = slab.first_step() + row};
  }

  // What a row is unless something happens in it; so StepColumn writes only the reward.
  void Clear(const Rows& rows) const {
    if (count_ < 8) {  // Six calls would cost as much as a step of a simple simulator.
      for (int i = 0; i < count_; ++i) {
        rows.terminated[i] = 0;
        rows.truncated[i] = 0;
        rows.episode_end[i] = 0;
        rows.valid[i] = 1;
        rows.next_is_first[i] = 0;
        rows.final_index[i] = -1;
      }
      return;
    }
    std::memset(rows.terminated, 0, count_);
    std::memset(rows.truncated, 0, count_);
    std::memset(rows.episode_end, 0, count_);
    std::memset(rows.valid, 1, count_);
    std::memset(rows.next_is_first, 0, count_);
    std::fill_n(rows.final_index, count_, -1);
  }

  void StepColumn(const Rows& rows, int i) {
    Number* const next = rows.next_observation + i * observation_size();
    if (parked_count_ > 0 && parked_[i] != 0) {
      std::memcpy(next, rows.observation + i * observation_size(), observation_bytes());
      rows.reward[i] = 0;
      rows.valid[i] = 0;
      rows.next_is_first[i] = 1;
      return;
    }
    const StepResult result = Apply(i, rows.action + i * action_items(), next);
    rows.reward[i] = result.reward;
    const bool truncated = ++elapsed_[i] >= step_limit_;
    if (result.terminated || truncated) [[unlikely]] {
      rows.terminated[i] = result.terminated ? 1 : 0;
      rows.truncated[i] = truncated ? 1 : 0;
      if (!result.goes_on || truncated) {
        rows.episode_end[i] = 1;
        elapsed_[i] = 0;
      }
      EndEpisode(rows, i, next, /*may_park=*/rows.episode_end[i] != 0);
    }
  }

  StepResult Apply(int i, const ActionItem* action, Number* observation) {
    if constexpr (kDiscrete) {
      return simulators_[i].Step(static_cast<int>(*action), randoms_[i], observation);
    } else {
      if (!options_.clip_actions) return simulators_[i].Step(action, randoms_[i], observation);
      for (int k = 0; k < action_items(); ++k) {
        clipped_[k] = std::clamp(action[k], low_[k], high_[k]);
      }
      return simulators_[i].Step(clipped_.data(), randoms_[i], observation);
    }
  }

  // Whether what a step has written can be learned from; final observations are looked at as they
  // are kept.
  bool AllSound(const Rows& rows) const {
    const auto count = static_cast<std::size_t>(count_);
    return !bad_final_ && AllFinite(rows.reward, count) &&
           AllFinite(rows.next_observation, count * observation_size());
  }

  [[gnu::cold, gnu::noinline]] void RefuseValues(const Rows& rows) {
    bad_final_ = false;
    for (int i = 0; i < count_; ++i) {
      try {
        if (!AllFinite(rows.reward + i, 1)) RefuseFault(RowFault{i, RewardFault(rows.reward[i])});
        if (rows.final_index[i] >= 0) Check(rows.final_observation + i * observation_size());
        Check(rows.next_observation + i * observation_size());
      } catch (...) {
        Restart(rows, i);
      }
    }
  }

  void Check(const Number* observation) const {
    if (AllFinite(observation, observation_size())) [[likely]]
      return;
    RefuseFault(FaultOf(spec_.observation[0], reinterpret_cast<const std::byte*>(observation), 1));
  }

  // Keeps `final_observation` and starts, or parks for, the next episode.
  void EndEpisode(const Rows& rows, int i, const Number* final_observation, bool may_park) {
    Number* const next = rows.next_observation + i * observation_size();
    std::memcpy(rows.final_observation + i * observation_size(), final_observation,
                observation_bytes());
    bad_final_ |= !AllFinite(final_observation, observation_size());
    rows.final_index[i] = rows.final_slot + i;
    rows.next_is_first[i] = 1;
    if (options_.reset_mode == ResetMode::kSameStep || !may_park) {
      StartEpisode(i, next);
      return;
    }
    if (next != final_observation) std::memcpy(next, final_observation, observation_bytes());
    parked_[i] = 1;
    ++parked_count_;
  }

  void StartEpisode(int i, Number* observation) {
    simulators_[i].Reset(randoms_[i], observation);
    Check(observation);
  }

  void ResetInto(Slab& slab, int row, int i) {
    const int position = options_.columns.first_position + i;
    if (parked_[i] != 0) --parked_count_;
    parked_[i] = 0;
    elapsed_[i] = 0;
    StartEpisode(i, slab.observation<Number>(0, row, position));
    slab.is_first(row)[position] = 1;
  }

  // Called in a catch block.
  [[gnu::cold, gnu::noinline]] void Restart(const Rows& rows, int i) {
    const std::string step = fmt::format("step {}", rows.step);
    TakeRestart(i, step);
    elapsed_[i] = 0;
    rows.reward[i] = 0;
    rows.terminated[i] = 0;
    rows.truncated[i] = 1;
    rows.episode_end[i] = 0;
    rows.valid[i] = 0;
    try {
      EndEpisode(rows, i, rows.observation + i * observation_size(), /*may_park=*/true);
    } catch (...) {
      throw WithContext(TranslateCurrentException(), Describe(i, step));
    }
  }

  // Called in a catch block: throws the error on, with its place, unless a restart is left.
  void TakeRestart(int i, std::string_view step) const {
    const Error error = WithContext(TranslateCurrentException(), Describe(i, step));
    if (options_.errors == nullptr || !options_.errors->Take()) throw error;
    LogWarning("{}; a fresh episode begins ({} restarts left)", error.what(),
               options_.errors->left());
  }

  void StepAtRandom(Slab& slab, int row, int i, const CounterRandom& random, int step) {
    const int environment = options_.columns.first_environment + i;
    std::vector<ActionItem> action(action_items());
    for (int k = 0; k < action_items(); ++k) {
      const std::uint32_t word = random.Draw(environment, step, k / 4)[k % 4];
      if constexpr (kDiscrete) {
        action[k] = static_cast<std::int64_t>(
            (std::uint64_t{word} * static_cast<std::uint64_t>(actions())) >> 32);
      } else {
        action[k] = low_[k] + (high_[k] - low_[k]) * CounterRandom::Uniform01(word);
      }
    }
    const int position = options_.columns.first_position + i;
    const StepResult result = Apply(i, action.data(), slab.observation<Number>(0, row, position));
    slab.is_first(row)[position] = 1;
    const bool truncated = ++elapsed_[i] >= step_limit_;
    if (!result.terminated && !truncated) return;
    const int elapsed = result.goes_on && !truncated ? elapsed_[i] : 0;
    ResetInto(slab, row, i);
    elapsed_[i] = elapsed;
  }

  bool IsGood(ActionItem value) const {
    if constexpr (kDiscrete) {
      return static_cast<std::uint64_t>(value) < static_cast<std::uint64_t>(actions());
    } else {
      return std::abs(value) <= std::numeric_limits<float>::max();  // False for NaN.
    }
  }

  void CheckActions(const Rows& rows) const {
    bool good = true;
    for (int k = 0; k < count_ * action_items(); ++k) good &= IsGood(rows.action[k]);
    if (!good) [[unlikely]]
      RefuseActions(rows);
  }

  [[gnu::cold, gnu::noinline]] void RefuseActions(const Rows& rows) const {
    for (int k = 0; k < count_ * action_items(); ++k) {
      const int i = k / action_items();
      if (IsGood(rows.action[k]) || parked_[i] != 0) continue;
      const std::string where = fmt::format("{} environment {}, step {}", spec_.name,
                                            options_.columns.first_environment + i, rows.step);
      if constexpr (kDiscrete) {
        throw InvalidArgument("{}: action {} is not one of 0..{}", where, rows.action[k],
                              actions() - 1);
      } else {
        throw InvalidArgument("{}: action {} is {}; it must be a finite number", where,
                              k % action_items(), rows.action[k]);
      }
    }
  }

  std::string Describe(int i, std::string_view step) const {
    return fmt::format("{} environment {} (seed {}), {}", spec_.name,
                       options_.columns.first_environment + i, SeedOf(i), step);
  }

  std::uint64_t SeedOf(int i) const {
    return options_.seed + static_cast<std::uint64_t>(options_.columns.first_environment + i);
  }

  void CheckStarted(const char* what) const {
    if (!started_) {
      throw FailedPrecondition("{} of {} was called before Reset", what, spec_.name);
    }
  }

  void CheckRow(const Slab& slab, int row, int last) const {
    if (row < 0 || row > last) {
      throw InvalidArgument("row {} of {} is not one of 0..{}", row, spec_.name, last);
    }
    if (slab.observation_bytes(0) != observation_bytes()) {
      throw InvalidArgument("the slab's observation has {} bytes; {} writes {}",
                            slab.observation_bytes(0), spec_.name, observation_bytes());
    }
  }

  const EnvironmentSpec spec_;
  const GroupOptions options_;
  const int count_;
  const int step_limit_;
  const std::int64_t observation_size_;
  const std::int64_t actions_;
  const int action_items_;
  std::vector<float> low_, high_, clipped_;  // Bounds of continuous actions; scratch.

  std::vector<S> simulators_;
  std::vector<Random> randoms_;
  std::vector<std::int32_t> elapsed_;  // Steps of the current episode.
  std::vector<std::uint8_t> parked_;
  int parked_count_ = 0;
  bool bad_final_ = false;  // A final observation of this step is no number.
  bool started_ = false;
};

// The catalog's line for a simulator.
template <Simulator S>
EnvironmentEntry EntryOf(const typename ConfigOf<S>::Type& config = {}) {
  return {.spec = SpecOf<S>(config), .make_group = [config](const GroupOptions& options) {
            return std::make_unique<SimulatorGroup<S>>(options, config);
          }};
}

}  // namespace menger
