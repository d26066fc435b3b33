#include "menger/training/process_roles.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/training/replay_learner.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kSlice{100};
constexpr std::chrono::seconds kLongSlice{1};     // While nobody needs its end soon.
constexpr std::chrono::seconds kRestTime{5};      // For a slice to end where nobody needs its end.
constexpr std::chrono::minutes kPatience{10};     // For one that somebody does, or for saving.
constexpr double kLongWait = 10;                  // Seconds, after which it is said.
constexpr int kDeathsMax = 10;                    // In a row, without anything done.
constexpr std::chrono::milliseconds kPause{500};  // Between such deaths.

// Whether another process could do what this one could not. One whose construction threw has died,
// too, of an exception.
bool IsLoss(const TaskError& error) {
  if (!error.failure().type.empty()) return false;
  return error.kind() == FailureKind::kWorkerDied || error.kind() == FailureKind::kActorDied ||
         error.kind() == FailureKind::kActorUnavailable;
}

// Throws where sockets in it would have longer paths than sockets can.
const std::string& CheckPath(const TemporaryFolder& folder) {
  constexpr std::size_t kPathMax = 107 - 24;  // The longest name of a socket there has fewer.
  if (folder.path().size() <= kPathMax) return folder.path();
  throw InvalidArgument(
      "TMPDIR names a folder whose path is too long for the sockets of topology.kind = processes: "
      "'{}' may have {} characters at most; name another",
      folder.path(), kPathMax);
}

}  // namespace

ProcessRoles::ProcessRoles(const Experiment& experiment, ReplayAlgorithm& algorithm,
                           UpdateRule& update)
    : experiment_(experiment),
      algorithm_(algorithm),
      update_(update),
      folder_("roles"),
      publication_(algorithm.policies().manifest()),
      parameters_(std::make_unique<SharedParameters>(publication_.descriptor())),
      memory_(AllocateSharedMemory("menger-run", sizeof(RunMemory))),
      run_(*new (memory_->data()) RunMemory),
      shared_(MemorySocketIn(CheckPath(folder_)),
              {publication_.descriptor(), memory_->descriptor()}),
      shares_(SharesOf(experiment)),
      collectors_(shares_.size()) {
  replay_seat_ = {.name = "replay",
                  .make = [this] { MakeReplay(); },
                  .advance =
                      [this](std::chrono::nanoseconds slice) {
                        return replay_.Call<&ReplayActor::Advance>(slice);
                      }};
  learner_seat_ = {.name = "learner",
                   .make = [this] { MakeLearner(); },
                   .advance =
                       [this](std::chrono::nanoseconds slice) {
                         return learner_.Call<&LearnerActor::Advance>(slice,
                                                                      std::exchange(observed_, {}));
                       }};
  for (std::size_t i = 0; i < shares_.size(); ++i) collector_seats_.push_back(CollectorSeat(i));
  if (!experiment.topology.infers_apart()) return;
  inference_seat_ = {.name = "inference",
                     .make = [this] { MakeInference(); },
                     .advance =
                         [this](std::chrono::nanoseconds slice) {
                           return inference_.Call<&InferenceActor::Advance>(slice);
                         }};
}

bool ProcessRoles::IsCollector(const Seat& seat) const {
  return &seat >= collector_seats_.data() &&
         &seat < collector_seats_.data() + collector_seats_.size();
}

ProcessRoles::Seat ProcessRoles::CollectorSeat(std::size_t index) {
  return {.name = shares_[index].name,
          .make = [this, index] { MakeCollector(index); },
          .advance =
              [this, index](std::chrono::nanoseconds slice) {
                return collectors_[index].Call<&CollectorActor::Advance>(slice);
              }};
}

std::vector<ProcessRoles::Seat*> ProcessRoles::Seats() {
  std::vector<Seat*> seats = {&replay_seat_, &learner_seat_};
  if (inference_seat_) seats.push_back(&*inference_seat_);
  for (Seat& seat : collector_seats_) seats.push_back(&seat);
  return seats;
}

// ---- Making them

void ProcessRoles::Begin(const PipelineStart& start) {
  run_.counts.steps = start.steps;
  attempt_ = start.attempt;
  incarnation_ = algorithm_.publication().Latest()->version().incarnation;
  if (start.checkpoint != nullptr) {
    replay_saved_ = start.checkpoint->Scope("consumer").FolderPath(ReplayLearner::kContent);
  }
  {
    ArchiveWriter archive(folder_ / "learned");
    SaveLearningParts(algorithm_, update_, archive);
    archive.Commit();
  }
  publication_.Publish(*algorithm_.publication().Latest());  // The learner's first, too.
  // Roles are actors: no worker is needed for anything else.
  runtime_ = std::make_unique<Runtime>(RuntimeOptions{.workers = 1});
  for (Seat* seat : Seats()) seat->make();
}

RoleSpec ProcessRoles::Spec() const {
  return {.experiment = experiment_.ToToml(), .folder = folder_.path()};
}

void ProcessRoles::MakeReplay() {
  RoleSpec spec = Spec();
  spec.checkpoint = replay_saved_;
  replay_ = runtime_->CreateActor<ReplayActor>({.name = "replay"}, spec);
}

void ProcessRoles::MakeLearner() {
  RoleSpec spec = Spec();
  spec.checkpoint = folder_ / "learned";
  spec.incarnation = incarnation_;
  learner_ = runtime_->CreateActor<LearnerActor>({.name = "learner"}, spec);
}

void ProcessRoles::MakeCollector(std::size_t index) {
  RoleSpec spec = Spec();
  spec.attempt = attempt_;
  spec.collector = static_cast<int>(index);
  collectors_[index] = runtime_->CreateActor<CollectorActor>({.name = shares_[index].name}, spec);
}

void ProcessRoles::MakeInference() {
  inference_ = runtime_->CreateActor<InferenceActor>({.name = "inference"}, Spec());
}

// ---- Looking after them

PipelineNews ProcessRoles::Look(std::chrono::nanoseconds time) {
  Tend(Deadline::After(time), kSlice);
  const TableInfo table = news_.table;
  PipelineNews news = std::exchange(news_, {.table = table});
  news.metrics = metrics_.TakeIfAny();
  news.steps = run_.counts.steps;
  news.updates = learner_seat_.done_before + learner_seat_.status.done;
  news.learner = StatusOf(learner_seat_);
  for (const Seat& seat : collector_seats_) news.collectors.push_back(StatusOf(seat));
  news.others = {StatusOf(replay_seat_)};
  if (inference_seat_) news.others.push_back(StatusOf(*inference_seat_));
  news.attempt = attempt_;
  news.failed = failed_ != nullptr;
  return news;
}

void ProcessRoles::GoOn() { Tend(Deadline::After({}), kLongSlice); }

void ProcessRoles::Tend(const Deadline& end, std::chrono::nanoseconds slice) {
  do {
    std::vector<ObjectRef<RoleReport>> calls;
    for (Seat* seat : Seats()) {
      if (!seat->call && !seat->resting && !seat->done) seat->call = seat->advance(slice);
      if (seat->call) calls.push_back(*seat->call);
    }
    if (calls.empty()) return std::this_thread::sleep_for(end.remaining());
    const auto ready = runtime_->Wait(calls, {.timeout = end.remaining()}).ready;
    for (Seat* seat : Seats()) {
      const auto is_its = [&](const auto& call) {
        return seat->call && call.id() == seat->call->id();
      };
      if (std::ranges::any_of(ready, is_its)) Hear(*seat);
    }
  } while (!end.expired());
}

void ProcessRoles::Hear(Seat& seat) {
  const ObjectRef<RoleReport> call = *std::exchange(seat.call, std::nullopt);
  RoleReport report;
  try {
    report = runtime_->Get(call);
  } catch (const TaskError& error) {
    return IsLoss(error) ? Replace(seat, error) : Fail(seat, error);
  }
  if (report.status.done > 0) seat.deaths = 0;
  if (!report.metrics.empty()) metrics_.Add(report.metrics);
  seat.status = std::move(report.status);
  seat.since_told.Restart();
  seat.done = report.done;
  seat.saved = report.saved;
  if (&seat == &replay_seat_) news_.table = report.table;
  news_.episodes.Add(report.episodes);
  observed_.Add(report.moments);
  news_.lag.Add(report.lag);
}

void ProcessRoles::Fail(Seat& seat, const Error& error) {
  const auto* of_call = dynamic_cast<const TaskError*>(&error);
  const std::string text = of_call != nullptr ? of_call->failure().text : error.what();
  seat.error = Error(error.code(), fmt::format("{}: {}", seat.name, text));
  if (seat.resting) return;  // It was to save, and can go on.
  seat.done = true;
  seat.status.ended = true;
  // Where inference fails, those who ask it fail, too.
  const bool is_cause = inference_seat_ && &seat == &*inference_seat_;
  if (failed_ == nullptr || (is_cause && failed_ != &learner_seat_)) failed_ = &seat;
}

// Those that meet it notice, and go on when it is back.
void ProcessRoles::Replace(Seat& seat, const TaskError& cause) {
  if (++seat.deaths > kDeathsMax) {
    seat.resting = false;
    return Fail(seat, Error(cause.code(), fmt::format("its process died {} times in a row before "
                                                      "it had done anything; the last time: {}",
                                                      seat.deaths, cause.what())));
  }
  if (seat.deaths > 1) std::this_thread::sleep_for(kPause);
  LogWarning("the {} process has died; another takes its place ({})", seat.name,
             cause.failure().text);
  ++seat.restarts;
  seat.done_before += seat.status.done;
  seat.status = {.name = seat.name};
  seat.since_told.Restart();
  if (IsCollector(seat)) ++attempt_;
  if (&seat == &learner_seat_) {
    incarnation_ = parameters_->Latest()->version().incarnation + 1;
  }
  seat.make();
}

RoleStatus ProcessRoles::StatusOf(const Seat& seat) const {
  RoleStatus status = seat.status;
  status.name = seat.name;
  status.restarts = seat.restarts;
  const double since = seat.since_told.seconds();
  status.idle_seconds += since;
  // A slice that only waits would have ended.
  if (since > std::chrono::duration<double>(5 * kSlice).count()) status.waits_for.clear();
  return status;
}

// ---- Saving, and the end

void ProcessRoles::SaveBy(Seat& seat, const std::function<ObjectRef<RoleReport>()>& save) {
  const Deadline end = Deadline::After(kPatience);
  const bool rested = std::exchange(seat.resting, true);
  seat.saved = false;
  const Stopwatch waited;
  bool told = false;
  while (!seat.saved && !seat.error && !end.expired()) {
    if (!seat.call) seat.call = save();  // After the slice that was under way.
    Tend(Deadline::After(kSlice), kSlice);
    if (told || waited.seconds() < kLongWait) continue;
    told = true;
    LogWarning(
        "saving waits for the {} process ({}), which has not come to the end of what it does "
        "for {:.0f} s",
        seat.name, seat.status.process, waited.seconds());
  }
  seat.resting = rested;
  if (seat.error) throw *seat.error;
  if (!seat.saved) {
    throw DeadlineExceeded("the {} process does not come to the end of what it does", seat.name);
  }
}

std::shared_ptr<const ParameterBlob> ProcessRoles::Save(ArchiveWriter& archive, bool with_replay) {
  if (failed_ == &learner_seat_) return nullptr;
  // With what collectors have seen since the learner was told, or its last publication is too
  // early.
  SaveBy(learner_seat_,
         [&] { return learner_.Call<&LearnerActor::Save>(std::exchange(observed_, {})); });
  // It has not been advanced since, so this is the version that was saved.
  std::shared_ptr<const ParameterBlob> version = parameters_->Latest();
  CopyEntries(ArchiveReader(folder_ / "learned"), archive);
  if (with_replay) {
    const ArchiveFolder content = archive.Scope("consumer").Folder(ReplayLearner::kContent);
    SaveBy(replay_seat_,
           [&] { return replay_.Call<&ReplayActor::Save>(content.path, replay_saved_); });
    replay_saved_ = content.committed_path;
  }
  return version;
}

void ProcessRoles::Stop() {
  for (Seat* seat : Seats()) seat->resting = true;
  if (inference_seat_) inference_seat_->resting = false;  // Until nobody asks it any more.
  // A collector that hangs is left alone.
  const Deadline soon = Deadline::After(kRestTime);
  const Deadline end = Deadline::After(kPatience);
  while (learner_seat_.call && !end.expired()) Tend(Deadline::After(kSlice), kSlice);
  const auto is_called = [](const Seat& seat) { return seat.call.has_value(); };
  while (std::ranges::any_of(collector_seats_, is_called) && !soon.expired()) {
    Tend(Deadline::After(kSlice), kSlice);
  }
  if (inference_seat_) inference_seat_->resting = true;
  // What replay holds now, as nobody writes or draws any more.
  while (replay_seat_.call && !soon.expired()) Tend(Deadline::After(kSlice), kSlice);
  if (!replay_seat_.call && !replay_seat_.done) replay_seat_.call = replay_seat_.advance({});
  while (replay_seat_.call && !soon.expired()) Tend(Deadline::After(kSlice), kSlice);
  if (failed_ != nullptr) throw RoleFailed(*failed_->error, failed_ == &learner_seat_);
}

}  // namespace menger
