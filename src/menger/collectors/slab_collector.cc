#include "menger/collectors/slab_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "menger/base/counter_random.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"

namespace menger {
namespace {

constexpr std::uint32_t kDecorrelationStream = 0x6465636f;  // "deco"

// Blocks that start 16 positions apart keep float32 and wider scalars of two workers in different
// cache lines. Where one column fills pages there is nothing to win, and gaps would cost memory.
constexpr int kBlockAlignment = 16;
constexpr std::size_t kWideColumn = 4096;
constexpr double kPatienceMaxSeconds = 1e6;

std::vector<std::unique_ptr<Policy>> MakePolicies(const PolicyFactory& factory, int count) {
  if (!factory) throw InvalidArgument("a collector needs a policy factory; none was given");
  std::vector<std::unique_ptr<Policy>> policies;
  for (int i = 0; i < count; ++i) {
    policies.push_back(factory());
    if (policies.back() == nullptr) throw InvalidArgument("the policy factory returned no policy");
  }
  return policies;
}

Slab MakePlannedSlab(const CollectorPlan& plan, const EnvironmentEntry& environment,
                     const SlabSpec& spec) {
  const auto purpose = [&plan] {
    return fmt::format("a slab of collector.environments = {} x collector.horizon = {} steps",
                       plan.environments, plan.horizon);
  };
  // Of final observations few are ever written.
  double bytes = static_cast<double>(Slab::BytesNeeded(spec));
  for (const LeafSpec& leaf : spec.observation.leaves()) {
    bytes -= static_cast<double>(leaf.bytes()) * plan.horizon * spec.columns.positions();
  }
  RequireMemory(bytes, purpose());
  return WithMemoryFor(
      purpose, [&] { return plan.shared_slab ? Slab::Shared(spec) : MakeSlab(spec, environment); });
}

std::vector<int> DrawRandomSteps(const CollectorPlan& plan) {
  const CounterRandom random(plan.seed, kDecorrelationStream);
  std::vector<int> steps(plan.environments, 0);
  for (int i = 0; i < plan.environments; ++i) {
    const auto environment =
        static_cast<std::uint64_t>(plan.first_environment) + static_cast<std::uint64_t>(i);
    const std::uint64_t word = random.Draw(environment, 0)[0];
    steps[i] =
        static_cast<int>((word * (static_cast<std::uint64_t>(plan.decorrelation_steps) + 1)) >> 32);
  }
  return steps;
}

// A host that is slow but within its own deadlines must not be taken for a worker that hangs.
double PatienceOf(const CollectorPlan& plan, const EnvironmentEntry& environment,
                  const ColumnLayout& columns) {
  int most = 0;
  for (const ColumnBlock& block : columns.blocks()) most = std::max(most, block.count);
  const double seconds = std::max(plan.patience_seconds, environment.longest_call_seconds * most);
  return std::min(seconds, kPatienceMaxSeconds);
}

// Visits every array that goes from one slab to the next, with its name, the bytes of a column and
// the array's row: `row` and the history before it.
template <typename SlabType, typename Visitor>
void VisitCarried(SlabType& slab, int row, Visitor visit) {
  for (int back = slab.spec().history; back >= 0; --back) {
    for (int leaf = 0; leaf < slab.spec().observation.size(); ++leaf) {
      visit(fmt::format("row_{}/observation_{}", back, leaf), slab.observation_bytes(leaf),
            slab.template observation<std::byte>(leaf, row - back));
    }
    visit(fmt::format("row_{}/is_first", back), std::size_t{1}, slab.is_first(row - back));
  }
  for (int leaf = 0; leaf < slab.spec().state.size(); ++leaf) {
    visit(fmt::format("row_0/state_{}", leaf), slab.spec().state[leaf].bytes(),
          slab.template state<std::byte>(leaf, row));
  }
}

// The columns of one row, without padding: `to` or `from` holds them in order.
void Pack(const ColumnLayout& columns, std::size_t item, const void* row, std::byte* to) {
  for (const ColumnBlock& block : columns.blocks()) {
    std::memcpy(
        to + item * static_cast<std::size_t>(block.first_column),
        static_cast<const std::byte*>(row) + item * static_cast<std::size_t>(block.first_position),
        item * static_cast<std::size_t>(block.count));
  }
}

void Unpack(const ColumnLayout& columns, std::size_t item, const std::byte* from, void* row) {
  for (const ColumnBlock& block : columns.blocks()) {
    std::memcpy(
        static_cast<std::byte*>(row) + item * static_cast<std::size_t>(block.first_position),
        from + item * static_cast<std::size_t>(block.first_column),
        item * static_cast<std::size_t>(block.count));
  }
}

}  // namespace

SlabSpec SlabSpecOf(const CollectorPlan& plan, const EnvironmentSpec& environment,
                    const PolicySpec& policy) {
  std::size_t column_bytes = 0;
  for (const LeafSpec& leaf : environment.observation.leaves()) column_bytes += leaf.bytes();
  const bool gaps = plan.groups * plan.workers > 1 && column_bytes < kWideColumn;
  return {.observation = environment.observation,
          .state = policy.state,
          .action = environment.action,
          .policy = policy.columns,
          .horizon = plan.horizon,
          .history = plan.history,
          .columns = ColumnLayout(plan.environments, plan.groups, plan.workers,
                                  gaps ? kBlockAlignment : 1, plan.first_environment)};
}

SlabCollector::SlabCollector(const CollectorPlan& plan, const EnvironmentEntry& environment,
                             const PolicyFactory& factory, int policies)
    : plan_(plan),
      policies_(MakePolicies(factory, policies)),
      slab_(MakePlannedSlab(plan, environment,
                            SlabSpecOf(plan, environment.spec, policies_.front()->spec()))),
      random_steps_(DrawRandomSteps(plan)),
      tracker_(plan.environments),
      clocks_(plan.workers),
      patience_seconds_(PatienceOf(plan, environment, slab_.columns())) {
  if (plan.restart_budget > 0) errors_.emplace(plan.restart_budget);
  for (const ColumnBlock& block : slab_.columns().blocks()) {
    groups_.push_back(environment.make_group({.columns = block,
                                              .seed = plan.seed,
                                              .reset_mode = plan.reset_mode,
                                              .clip_actions = plan.clip_actions,
                                              .errors = errors_ ? &*errors_ : nullptr}));
    fresh_.push_back(1);
  }
}

WorkerTeamOptions SlabCollector::TeamOptions(int first_worker) const {
  return {.first_worker = first_worker,
          .workers = plan_.workers - first_worker,
          .pin = plan_.pin,
          .cpus = plan_.cpus,
          .patience = std::chrono::nanoseconds(static_cast<std::int64_t>(patience_seconds_ * 1e9))};
}

Slab& SlabCollector::Collect(int rows_max) {
  if (failed_) {
    throw FailedPrecondition(
        "this collector stopped at an error before; make a new one and load the last checkpoint");
  }
  try {
    if (carried_row_ != 0) slab_.Carry(slab_);
    slab_.set_horizon(std::clamp(rows_max, 1, plan_.horizon));
    rows_under_way_.store(0, std::memory_order_relaxed);
    const std::int64_t begin = MonotonicNanoseconds();
    Fill();
    wall_nanoseconds_ += MonotonicNanoseconds() - begin;
  } catch (...) {
    failed_ = true;
    if (!errors_ || !errors_->exceeded()) throw;
    const Error error = TranslateCurrentException();
    throw Error(error.code(),
                WithSentence(error.what(), fmt::format("collector.restart_budget = {} is used up.",
                                                       plan_.restart_budget)));
  }
  for (std::size_t block = 0; block < groups_.size(); ++block) {
    if (fresh_[block] == 0) continue;
    const ColumnBlock& columns = slab_.columns().blocks()[block];
    for (int i = 0; i < columns.count; ++i) {
      const int column = columns.first_column + i;
      if (random_steps_[column] > 0) tracker_.MarkPartial(column);
    }
    fresh_[block] = 0;
  }
  started_ = true;
  carried_row_ = slab_.horizon();
  tracker_.Scan(slab_);
  return slab_;
}

void SlabCollector::BeginBlock(int group, int worker) {
  const ColumnBlock& block = slab_.columns().block(group, worker);
  EnvironmentGroup& environments = this->group(group, worker);
  const Stopwatch watch;
  if (fresh_[group * plan_.workers + worker] != 0) {
    environments.Reset(slab_, /*row=*/0);
    if (plan_.decorrelation_steps > 0) {
      const std::span<const int> steps(random_steps_.data() + block.first_column,
                                       static_cast<std::size_t>(block.count));
      environments.StepRandomly(slab_, /*row=*/0, steps, plan_.seed);
    }
  } else if (plan_.reset_mode == ResetMode::kBetweenSlabs) {
    environments.ResetParked(slab_, /*row=*/0);
  }
  clock(worker).Add(PhaseClock::kSimulation, watch.nanoseconds());
}

void SlabCollector::StepBetweenWaits(int group, int worker, int row) {
  PhaseClock& time = clock(worker);
  time.Lap(PhaseClock::kWaiting);
  StepBlock(group, worker, row);
  time.Lap(PhaseClock::kSimulation);
  time.Begin();
}

void SlabCollector::CountRowsOfAllThreads(std::int64_t nanoseconds) {
  for (OwnClock& own : clocks_) own.clock.AddRows(nanoseconds);
}

CollectorTimes SlabCollector::times() const {
  CollectorTimes times;
  for (const OwnClock& own : clocks_) {
    times.simulation += own.clock.seconds(PhaseClock::kSimulation);
    times.inference += own.clock.seconds(PhaseClock::kInference);
  }
  // What is neither is a wait, for others or for nothing (signals, resets of a slab's start): by
  // difference, so that nothing is left out.
  const double wall =
      static_cast<double>(wall_nanoseconds_) * 1e-9 * static_cast<double>(clocks_.size());
  times.waiting = std::max(0.0, wall - times.simulation - times.inference);
  return times;
}

std::vector<std::int64_t> SlabCollector::SavedShape() const {
  return {plan_.environments, plan_.workers, plan_.groups, plan_.history};
}

void SlabCollector::Save(ArchiveWriter& archive) const {
  if (failed_) throw FailedPrecondition("a collector that stopped at an error cannot be saved");
  archive.Write("shape", SavedShape());
  archive.Write("started", static_cast<std::uint8_t>(started_));
  if (!started_) return;
  archive.Write("first_step", slab_.first_step() + carried_row_);
  archive.Write("restarts_left", errors_ ? errors_->left() : std::int64_t{0});
  std::vector<std::byte> packed;  // Without the padding.
  VisitCarried(slab_, carried_row_,
               [&](const std::string& name, std::size_t item, const void* row) {
                 packed.resize(item * static_cast<std::size_t>(plan_.environments));
                 Pack(slab_.columns(), item, row, packed.data());
                 archive.Write(name, packed);
               });
  ArchiveWriter tracker = archive.Scope("episodes");
  tracker_.Save(tracker);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    ArchiveWriter scope = archive.Scope(fmt::format("group_{}", i));
    groups_[i]->Save(scope);
  }
}

void SlabCollector::Load(ArchiveReader& archive) {
  std::vector<std::int64_t> saved;
  archive.Read("shape", saved);
  if (saved != SavedShape()) {
    throw FailedPrecondition(
        "the saved collector has (environments, workers, groups, history) = ({}), this one ({}); "
        "resume with the resolved "
        "configuration of the run",
        fmt::join(saved, ", "), fmt::join(SavedShape(), ", "));
  }
  if (archive.Read<std::uint8_t>("started") == 0) {
    if (started_)
      throw FailedPrecondition("a collector that has run cannot be loaded with a fresh one");
    return;
  }
  failed_ = true;  // Until everything is in place.
  carried_row_ = 0;
  slab_.set_first_step(archive.Read<std::int64_t>("first_step"));
  if (errors_) errors_.emplace(archive.Read<std::int64_t>("restarts_left"));
  std::vector<std::byte> packed;
  VisitCarried(slab_, /*row=*/0, [&](const std::string& name, std::size_t item, void* row) {
    packed.resize(item * static_cast<std::size_t>(plan_.environments));
    archive.Read(name, std::span<std::byte>(packed));
    Unpack(slab_.columns(), item, packed.data(), row);
  });
  ArchiveReader tracker = archive.Scope("episodes");
  tracker_.Load(tracker);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    ArchiveReader scope = archive.Scope(fmt::format("group_{}", i));
    groups_[i]->Load(scope);
    fresh_[i] = groups_[i]->resumable() ? 0 : 1;
    if (fresh_[i] != 0) PlanFreshEpisodes(i);
  }
  const auto fresh = std::count(fresh_.begin(), fresh_.end(), 1);
  if (fresh > 0) {
    LogInfo("{} keeps no state that could be saved: its episodes begin anew",
            groups_.front()->spec().name);
  }
  started_ = true;
  failed_ = false;
}

// The episodes that were running when the state was saved are nowhere: they are not reported.
void SlabCollector::PlanFreshEpisodes(std::size_t block) {
  const ColumnBlock& columns = slab_.columns().blocks()[block];
  for (int i = 0; i < columns.count; ++i) {
    tracker_.Drop(columns.first_column + i, slab_.first_step());
  }
}

std::vector<EnvironmentMetric> SlabCollector::TakeMetrics() {
  std::vector<EnvironmentMetric> all;
  for (const auto& group : groups_) AddUp(all, group->TakeMetrics());
  return all;
}

}  // namespace menger
