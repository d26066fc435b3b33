#include "menger/environments/hosted/hosted_group.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "menger/base/archive.h"
#include "menger/base/counter_random.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/temporary_folder.h"
#include "menger/environments/hosted/action_check.h"
#include "menger/environments/hosted/bounds_watch.h"
#include "menger/environments/hosted/host_process.h"
#include "menger/environments/hosted/spec_json.h"
#include "menger/environments/row_check.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kGenerationStream = 0x67656e72;  // "genr"
constexpr double kSaveSeconds = 60;
constexpr double kMarginSeconds = 20;         // To kill a host that hangs, and to start another.
constexpr std::size_t kShownBytes = 200;      // Of a text that is not understood.
constexpr double kSecondsARandomStep = 0.05;  // Where a host reports no progress among them.
constexpr const char* kRestartAdvice =
    " collector.on_environment_error = restart would go on with fresh episodes.";

// Where a host writes its state.
struct StateFolder : TemporaryFolder {
  StateFolder() : TemporaryFolder("host") {}
  std::string archive() const { return *this / "state"; }
};

// What all groups of an entry share.
struct HostedKind {
  HostProgram program;
  std::string request;
  HostedSpec hosted;
  std::unique_ptr<BoundsWatch> bounds;  // Null where what is said of it has been said before.
};

class HostedGroup final : public EnvironmentGroup {
 public:
  HostedGroup(std::shared_ptr<const HostedKind> kind, const GroupOptions& options)
      : kind_(std::move(kind)),
        options_(options),
        columns_(options.columns),
        check_(kind_->hosted.spec),
        parked_(options.columns.count, 0) {}

  const EnvironmentSpec& spec() const override { return kind_->hosted.spec; }

  void Reset(Slab& slab, int row) override {
    CheckRow(slab, row, slab.horizon());
    Settle(slab, row, HostCommand::kReset, /*text=*/{}, StepDeadline());
    started_ = true;
    lost_ = false;
  }

  void ResetParked(Slab& slab, int row) override {
    CheckStarted("ResetParked");
    CheckRow(slab, row, slab.horizon());
    Settle(slab, row, HostCommand::kResetParked, /*text=*/{}, StepDeadline());
    std::fill(parked_.begin(), parked_.end(), 0);
  }

  void StepRandomly(Slab& slab, int row, std::span<const int> steps, std::uint64_t seed) override {
    CheckStarted("StepRandomly");
    CheckRow(slab, row, slab.horizon());
    if (static_cast<int>(steps.size()) != columns_.count) {
      throw InvalidArgument("StepRandomly got {} step counts for {} environments of {}",
                            steps.size(), columns_.count, spec().name);
    }
    std::int64_t total = 0;
    for (const int count : steps) total += count;
    random_seed_ = seed;
    const nlohmann::json text = {{"steps", std::vector<int>(steps.begin(), steps.end())}};
    Settle(slab, row, HostCommand::kStepRandomly, text.dump(),
           StepDeadline() + kSecondsARandomStep * static_cast<double>(total));
  }

  void Step(Slab& slab, int row) override {
    CheckStarted("Step");
    CheckRow(slab, row, slab.horizon() - 1);
    CheckActions(spec(), slab, row, columns_, parked_);
    Clear(slab, row);
    try {
      Do(slab, row, HostCommand::kStep, /*text=*/{}, StepDeadline());
      while (const auto fault = check_.OfStep(slab, row, columns_)) {
        Refuse(slab, row, *fault, /*begins=*/false);
      }
      if (kind_->bounds) kind_->bounds->LookAtStep(slab, row, columns_);
    } catch (const HostLost& lost) {
      TakeRestart(lost, slab, row);
      MarkLost(slab, row);
      StartAgain(slab, row + 1);
      cut_ = false;  // The row is not valid anyway.
      return;        // What it says of ends is not about the new host's episodes: none is parked.
    }
    AfterStep(slab, row);
  }

  bool resumable() const override { return kind_->hosted.resumable && !lost_; }

  void Save(ArchiveWriter& archive) const override {
    archive.Write("environment", spec().name);
    archive.Write("generation", generation_);
    archive.Write("started", started_);
    if (!resumable() || !started_) {
      archive.Write("lost", lost_);
      return;
    }
    const StateFolder folder;
    const bool lost = !loaded_ && !SaveHost(folder);
    archive.Write("lost", lost);
    if (lost) return;
    archive.Write("parked", parked_);
    ArchiveWriter scope = archive.Scope("host");
    CopyEntries(ArchiveReader((loaded_ ? *loaded_ : folder).archive()), scope);
  }

  void Load(ArchiveReader& archive) override {
    const auto name = archive.Read<std::string>("environment");
    if (name != spec().name) {
      throw FailedPrecondition("the archive holds {}; it cannot be loaded into {}", name,
                               spec().name);
    }
    archive.Read("generation", generation_);
    archive.Read("started", started_);
    lost_ = archive.Contains("lost") && archive.Read<bool>("lost");
    if (!started_) return;
    if (!resumable()) {
      ++generation_;  // Other episodes than those the saved run began with.
      started_ = false;
      cut_ = false;
      loaded_.reset();
      process_.reset();
      std::fill(parked_.begin(), parked_.end(), 0);
      return;
    }
    archive.Read("parked", std::span(parked_));
    loaded_ = std::make_unique<StateFolder>();
    ArchiveWriter copy(loaded_->archive());
    CopyEntries(archive.Scope("host"), copy);
    copy.Commit();
    if (process_ != nullptr) TellLoaded();
  }

  Image Render(int index) override {
    CheckStarted("Render");
    process_->control().row = index;
    const std::string text = process_->Call(HostCommand::kRender, StepDeadline(), {});
    std::int32_t size[2] = {0, 0};
    if (text.size() >= sizeof(size)) std::memcpy(size, text.data(), sizeof(size));
    const auto bytes = std::int64_t{3} * size[0] * size[1];
    if (bytes <= 0 || text.size() != sizeof(size) + static_cast<std::size_t>(bytes)) {
      throw FailedPrecondition(
          "{} shows a picture of {} x {} pixels, which does not fit into {} bytes", spec().name,
          size[0], size[1], kHostTextBytes);
    }
    return {.width = size[0], .height = size[1], .rgb = {text.begin() + sizeof(size), text.end()}};
  }

  std::vector<EnvironmentMetric> TakeMetrics() override { return std::exchange(metrics_, {}); }

 private:
  // False where the host is dead: everything else shall be saved all the same.
  bool SaveHost(const StateFolder& folder) const {
    if (process_ == nullptr) return false;
    try {
      Tell(HostCommand::kSave, folder.archive());
      return true;
    } catch (const HostLost& lost) {
      const std::string text = fmt::format(
          "{} cannot save environments {}..{}: {}", spec().name, columns_.first_environment,
          columns_.first_environment + columns_.count - 1, lost.what());
      LogWarning("{}", WithSentence(text, "Resumed, they begin fresh episodes."));
      return false;
    }
  }

  double StepDeadline() const { return kind_->program.step_deadline_seconds; }

  // The host is there and knows the slab.
  void Attach(Slab& slab) {
    if (process_ != nullptr) {
      if (slab.descriptor() == descriptor_) return;
      throw FailedPrecondition("a group of {} steps one slab for as long as it lives", spec().name);
    }
    if (slab.descriptor() < 0) {
      throw FailedPrecondition(
          "{} runs in a process of its own: its slab must lie in shared memory", spec().name);
    }
    descriptor_ = slab.descriptor();
    process_ = std::make_unique<HostProcess>(kind_->program, std::span(&descriptor_, 1));
    HostAttachment attachment{.request = kind_->request,
                              .descriptor = descriptor_,
                              .slab = slab.spec(),
                              .group = options_};
    attachment.group.seed = Seed();
    process_->Call(HostCommand::kAttach, kind_->program.start_deadline_seconds,
                   ToJson(attachment, slab));
    if (loaded_) TellLoaded();
  }

  // One request; errors carry the place. A lost host is gone afterwards.
  void Do(Slab& slab, int row, HostCommand command, const std::string& text, double deadline) {
    try {
      Attach(slab);
      HostControl& control = process_->control();
      control.row = row;
      control.first_step = slab.first_step();
      control.restarts_left = options_.errors == nullptr ? 0 : options_.errors->left();
      control.seed = random_seed_;
      const std::string said = process_->Call(command, deadline, text);
      TakeUsedRestarts();
      if (!said.empty()) Hear(said);
    } catch (const HostLost&) {
      process_.reset();
      throw;
    } catch (...) {
      TakeUsedRestarts();
      throw TranslateCurrentException();
    }
  }

  void TakeUsedRestarts() {  // Hosts of one run may share the last one: a bound all the same.
    if (process_ == nullptr || options_.errors == nullptr) return;
    options_.errors->Take(std::exchange(process_->control().restarts_used, 0));
  }

  void CheckBeginning(Slab& slab, int row) {
    while (const auto fault = check_.OfObservations(slab, row, columns_)) {
      Refuse(slab, row, *fault, /*begins=*/true);
    }
    if (kind_->bounds) kind_->bounds->LookAtReset(slab, row, columns_);
  }

  // What the host has written cannot be taken: it begins a fresh episode there, or throws.
  void Refuse(Slab& slab, int row, const RowFault& fault, bool begins) {
    const nlohmann::json text = {
        {"column", fault.column},
        {"why", fault.why},
        {"begins", begins},
        {"place", fmt::format("{} environment {}, step {}", spec().name,
                              columns_.first_environment + fault.column, slab.first_step() + row)}};
    Do(slab, row, HostCommand::kRefuse, text.dump(), StepDeadline());
  }

  // A request that fills one row with what the next step starts from.
  void Settle(Slab& slab, int row, HostCommand command, const std::string& text, double deadline) {
    try {
      Do(slab, row, command, text, deadline);
      CheckBeginning(slab, row);
    } catch (const HostLost& lost) {
      TakeRestart(lost, slab, row);
      StartAgain(slab, row);
      // Episodes that were running must not be joined to the new ones in the statistics.
      cut_ = command == HostCommand::kResetParked;
    }
  }

  // Fresh episodes by a new host, while restarts last.
  void StartAgain(Slab& slab, int row) {
    while (true) {
      try {
        ++generation_;
        loaded_.reset();
        Do(slab, row, HostCommand::kReset, /*text=*/{}, StepDeadline());
        CheckBeginning(slab, row);
        std::fill(parked_.begin(), parked_.end(), 0);
        return;
      } catch (const HostLost& lost) {
        TakeRestart(lost, slab, row);
      }
    }
  }

  // Throws the error on, with its place and advice, unless a restart is left.
  void TakeRestart(const HostLost& lost, const Slab& slab, int row) const {
    const std::string place = fmt::format(
        "{} environments {}..{} (seeds {}..{}), step {}", spec().name, columns_.first_environment,
        columns_.first_environment + columns_.count - 1, Seed() + First(),
        Seed() + First() + static_cast<std::uint64_t>(columns_.count) - 1, slab.first_step() + row);
    const std::string text = fmt::format("{}: {}", place, lost.what());
    if (options_.errors != nullptr && options_.errors->Take()) {
      LogWarning("{}", WithSentence(text, fmt::format("A new one begins fresh episodes ({} "
                                                      "restarts left).",
                                                      options_.errors->left())));
      return;
    }
    throw Unavailable("{}{}", WithSentence(text, kind_->program.advice),
                      options_.errors != nullptr ? "" : kRestartAdvice);
  }

  void Clear(Slab& slab, int row) const {
    const auto first = static_cast<std::size_t>(columns_.first_position);
    const auto count = static_cast<std::size_t>(columns_.count);
    std::memset(slab.terminated(row) + first, 0, count);
    std::memset(slab.truncated(row) + first, 0, count);
    std::memset(slab.episode_end(row) + first, 0, count);
    std::memset(slab.valid(row) + first, 1, count);
    std::memset(slab.is_first(row + 1) + first, 0, count);
    std::fill_n(slab.final_index(row) + first, count, -1);
  }

  // A row whose steps were lost: cut there, with the row's own observation as the final one.
  void MarkLost(Slab& slab, int row) const {
    Clear(slab, row);
    for (int i = 0; i < columns_.count; ++i) {
      const int position = columns_.first_position + i;
      slab.reward(row)[position] = 0;
      slab.valid(row)[position] = 0;
      if (parked_[i] != 0) continue;
      slab.truncated(row)[position] = 1;
      const int slot = slab.FinalSlot(row, position);
      slab.final_index(row)[position] = slot;
      for (int leaf = 0; leaf < slab.spec().observation.size(); ++leaf) {
        std::memcpy(slab.final_observation(leaf, slot), slab.observation(leaf, row, position),
                    slab.observation_bytes(leaf));
      }
    }
  }

  void AfterStep(Slab& slab, int row) {
    if (cut_) {
      std::memset(slab.valid(row) + columns_.first_position, 0,
                  static_cast<std::size_t>(columns_.count));
      cut_ = false;
    }
    if (options_.reset_mode == ResetMode::kSameStep) return;
    for (int i = 0; i < columns_.count; ++i) {
      const int position = columns_.first_position + i;
      const bool failed = slab.truncated(row)[position] != 0 && slab.valid(row)[position] == 0;
      if (slab.episode_end(row)[position] != 0 || failed) parked_[i] = 1;
      if (parked_[i] != 0) AllowAll(slab, row + 1, position);
    }
  }

  // A finished game may allow nothing, which no policy could answer.
  void AllowAll(Slab& slab, int row, int position) const {
    const int leaf = spec().observation.Find(kActionMask);
    if (leaf < 0) return;
    std::memset(slab.observation(leaf, row, position), 1, slab.spec().observation[leaf].bytes());
  }

  void Hear(const std::string& said) {
    const nlohmann::json object = nlohmann::json::parse(said, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      LogWarning("{}: what its host said besides its answer is no JSON object: {}", spec().name,
                 std::string_view(said).substr(0, kShownBytes));
      return;
    }
    for (const auto& text : object.value("restarts", std::vector<std::string>{})) {
      LogWarning("{}", text);
    }
    const auto warnings = object.value("warnings", nlohmann::json::object());
    for (const auto& [topic, text] : warnings.items()) {
      if (kind_->program.voice == nullptr) break;
      kind_->program.voice->Warn(spec().name, topic, text.get<std::string>());
    }
    const auto metrics = object.value("metrics", nlohmann::json::object());
    for (const auto& [name, value] : metrics.items()) {
      auto known =
          std::find_if(metrics_.begin(), metrics_.end(),
                       [&name = name](const EnvironmentMetric& m) { return m.name == name; });
      if (known == metrics_.end()) known = metrics_.insert(known, {.name = name});
      known->sum += value.at(0).get<double>();
      known->count += value.at(1).get<std::int64_t>();
    }
  }

  void Tell(HostCommand command, const std::string& text) const {
    process_->Call(command, kSaveSeconds, text);
  }
  void TellLoaded() {
    Tell(HostCommand::kLoad, loaded_->archive());
    loaded_.reset();
  }

  // Of environment 0. Each start of the columns has a seed of its own, so that a restarted host
  // does not play the same episodes again.
  std::uint64_t Seed() const {
    if (generation_ == 0) return options_.seed;
    const CounterRandom random(options_.seed, kGenerationStream);
    return random.Draw(0, static_cast<std::uint64_t>(generation_))[0] >> 1;
  }
  std::uint64_t First() const { return static_cast<std::uint64_t>(columns_.first_environment); }

  void CheckStarted(const char* what) const {
    if (started_) return;
    throw FailedPrecondition("{} of {} was called before Reset", what, spec().name);
  }
  void CheckRow(const Slab& slab, int row, int last) const {
    if (row >= 0 && row <= last) return;
    throw InvalidArgument("row {} of {} is not one of 0..{} (the slab's horizon is {})", row,
                          spec().name, last, slab.horizon());
  }

  const std::shared_ptr<const HostedKind> kind_;
  const GroupOptions options_;
  const ColumnBlock columns_;
  const RowCheck check_;
  int descriptor_ = -1;  // Of the slab that the host was attached to.
  std::vector<std::uint8_t> parked_;
  std::int64_t generation_ = 0;  // Starts of the columns with seeds of their own.
  std::uint64_t random_seed_ = 0;
  bool started_ = false;
  bool lost_ = false;                    // What was loaded has no host's state: Reset must follow.
  bool cut_ = false;                     // The next step's row is not valid.
  std::unique_ptr<StateFolder> loaded_;  // What the next host is to load.
  std::vector<EnvironmentMetric> metrics_;
  std::unique_ptr<HostProcess> process_;
};

}  // namespace

namespace {

// What kCheck would have answered, of a host that was lost.
std::string LostWhile(const std::string& doing, const HostLost& lost) {
  const nlohmann::json finding = {{"fault", true},
                                  {"text", fmt::format("{}: {}", doing, lost.what())}};
  const nlohmann::json report = {{"findings", nlohmann::json::array({finding})}, {"speed", 0}};
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Starts a host for one request.
std::string Ask(const HostProgram& program, HostCommand command, const std::string& request) {
  try {
    HostProcess process(program, {});
    try {
      return process.Call(command, program.start_deadline_seconds, request);
    } catch (const HostLost& lost) {
      const std::string doing = process.LastDoing();
      if (doing.empty()) throw;
      return LostWhile(doing, lost);
    }
  } catch (const HostLost& lost) {
    const std::string text =
        program.speaker.empty()
            ? fmt::format("'{}' cannot say what {} is: {}", program.arguments.front(), request,
                          lost.what())
            : fmt::format("{} cannot be looked at: {}", program.speaker, lost.what());
    throw FailedPrecondition("{}", WithSentence(text, program.advice));
  }
}

}  // namespace

std::string CheckHosted(const HostProgram& program, const std::string& request) {
  return Ask(program, HostCommand::kCheck, request);
}

EnvironmentEntry OpenHosted(const HostProgram& program, const std::string& request) {
  auto kind = std::make_shared<HostedKind>();
  kind->program = program;
  kind->request = request;
  kind->hosted = HostedSpecFromJson(Ask(program, HostCommand::kDescribe, request));
  if (!program.quiet) {
    kind->bounds = std::make_unique<BoundsWatch>(kind->hosted.spec);
    for (const std::string& notice : kind->hosted.notices) LogWarning("{}", notice);
  }
  const EnvironmentSpec spec = kind->hosted.spec;
  return {.spec = spec,
          .make_group =
              [kind](const GroupOptions& options) {
                return std::make_unique<HostedGroup>(kind, options);
              },
          .shares_memory = true,
          .longest_call_seconds =
              program.start_deadline_seconds + 2 * program.step_deadline_seconds + kMarginSeconds};
}

}  // namespace menger
