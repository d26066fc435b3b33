#include "menger/runtime/driver/process_team.h"

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include "menger/base/files.h"
#include "menger/base/sharing/descriptors.h"
#include "menger/runtime/driver/show_line.h"

namespace menger {
namespace {

// One after the other, after which no more are tried. What somebody kills says little about the
// program: it counts for less.
constexpr double kFailedStartsMax = 3;
constexpr double kKilledStart = 0.1;

bool WasKilled(const ChildEnd& end) {
  return WIFSIGNALED(end.wait_status) && WTERMSIG(end.wait_status) == SIGKILL;
}

// A start that follows failed ones waits: the first, and at most.
constexpr std::chrono::milliseconds kStartPause{10};
constexpr std::chrono::milliseconds kStartPauseMax{1000};

// What a worker gets ahead is not more than one such part of what is free.
constexpr std::uint64_t kAheadShare = 16;
constexpr std::uint64_t kAheadBytesMin = std::uint64_t{256} << 10;

}  // namespace

ProcessTeam::ProcessTeam(const RuntimeOptions& options, TaskId node, NodeMachine& machine,
                         ValueStore& store, Spiller& spiller, GuestOutput& guest_output,
                         WorkerFlags& flags, int bell_descriptor, std::function<void()> wake)
    : options_(options),
      node_(node),
      machine_(machine),
      store_(store),
      spiller_(spiller),
      guest_output_(guest_output),
      flags_(flags),
      bell_descriptor_(bell_descriptor),
      wake_(std::move(wake)),
      processes_(WorkerEvents{
          .on_line = [this](int worker, pid_t process,
                            std::string_view line) { TellLine(worker, process, line); },
          .on_end =
              [this](int worker, pid_t process, const ChildEnd& end) {
                {
                  const std::lock_guard lock(deaths_mutex_);
                  deaths_.push_back({static_cast<WorkerIndex>(worker), process, end});
                }
                wake_();
              }}) {
  RaiseDescriptorLimit();
  if (options.workers_ahead > 0) {
    processes_->StartAhead(options.workers_ahead, options.worker_program);
  }
}

void ProcessTeam::Stop() {
  processes_.reset();
  members_.clear();
}

// Where starts fail, they would go on failing as fast as they are asked for.
void ProcessTeam::StartWorker() {
  if (!broken_.empty()) return;
  ++delayed_starts_;
  StartDelayed();
}

void ProcessTeam::StartDelayed() {
  while (delayed_starts_ > 0 && (failed_starts_ == 0 || next_start_.expired())) {
    --delayed_starts_;
    next_start_ = Deadline::After(kStartPause);
    Start(kOwnProgram, RootTask(options_.job), options_.worker_program);
  }
}

void ProcessTeam::SetProgram(ProgramIndex program, const GuestProgram& what) {
  guests_.insert_or_assign(program, Guest{.program = what});
}

void ProcessTeam::DropProgram(ProgramIndex program) {
  guests_.erase(program);
  guest_output_.Drop(program);
}

void ProcessTeam::StartGuest(ProgramIndex program) {
  const auto found = guests_.find(program);
  if (found == guests_.end()) return;
  const GuestProgram& guest = found->second.program;
  Start(program, RootTask(guest.job), guest.program);
}

void ProcessTeam::Start(ProgramIndex program, TaskId job, const WorkerProgram& runs) {
  const WorkerIndex index = machine_.NewWorkerIndex();
  try {
    Member& member = members_[index];
    member.program = program;
    member.job = job;
    member.place = NewPlace();
    places_[*member.place] = {index, &member};
    WorkerChannel channel(
        AllocateSharedMemory(fmt::format("menger-worker-{}", index), WorkerChannel::kBytes));
    if (program != kOwnProgram) guest_output_.Begin(index, program);
    FileDescriptor control = processes_->Start(static_cast<int>(index), runs);
    member.host = std::make_unique<ProcessWorker>(static_cast<WorkerOwner&>(*this), machine_, index,
                                                  std::move(channel), std::move(control));
    Hand(member, {.kind = Handing::Kind::kChannel});
  } catch (...) {
    const std::string cause = TranslateCurrentException().what();
    const std::lock_guard lock(deaths_mutex_);
    deaths_.push_back({index, 0, {.cause = fmt::format("could not begin: {}", cause)}});
  }
}

// Those of the dead are used again, so that there are few flags to look at.
std::uint32_t ProcessTeam::NewPlace() {
  if (free_places_.empty()) {
    if (places_.size() >= WorkerFlags::kWorkersMax) {
      throw Unavailable("a node has {} worker processes at most", WorkerFlags::kWorkersMax);
    }
    free_places_.push_back(static_cast<std::uint32_t>(places_.size()));
    places_.emplace_back();
  }
  const std::uint32_t place = free_places_.back();
  free_places_.pop_back();
  return place;
}

bool ProcessTeam::Drain(bool all) {
  bool any = false;
  if (all) {
    for (auto& [index, member] : members_) {
      any |= DrainMember(index, member);
      if (member.host != nullptr) member.host->Rest();
    }
  } else {
    flags_.TakeDown(places_.size(), [&](std::size_t place) {
      const auto [index, member] = places_[place];
      if (member != nullptr) any |= DrainMember(index, *member);
    });
    // What one has said may add others.
    for (std::size_t i = 0; i < attended_.size(); ++i) {
      const auto found = members_.find(attended_[i]);
      if (found != members_.end()) any |= DrainMember(found->first, found->second);
    }
  }
  std::vector<Death> deaths;
  {
    const std::lock_guard lock(deaths_mutex_);
    deaths.swap(deaths_);
  }
  for (const Death& death : deaths) Bury(death);
  if (delayed_starts_ > 0) StartDelayed();
  return any || !deaths.empty();
}

void ProcessTeam::Announce() {
  std::erase_if(attended_, [this](WorkerIndex index) {
    const auto found = members_.find(index);
    if (found == members_.end()) return true;
    const Member& member = found->second;
    return !member.host->Settle(!member.unsent.empty());
  });
}

bool ProcessTeam::DrainMember(WorkerIndex index, Member& member) {
  if (member.host == nullptr) return false;
  if (!member.unsent.empty()) SendWaiting(member);
  try {
    return member.host->Drain(machine_);
  } catch (const Error& error) {
    KillWorker(index, fmt::format("it broke the protocol: {}", error.what()), {});
    return true;
  }
}

void ProcessTeam::Bury(const Death& death) {
  const auto found = members_.find(death.index);
  if (found == members_.end()) return;
  Member& member = found->second;
  DrainMember(death.index, member);  // Its last words count.
  if (member.host == nullptr || member.host->worker() == nullptr) {
    if (member.program != kOwnProgram) {
      GuestFailed(member.program, death.end);
    } else {
      CountFailedStart(fmt::format("worker {} {}", death.index, death.end.cause), death.end);
      // What somebody has killed says nothing of the next: it is simply started again.
      machine_.StartFailed(WasKilled(death.end) ? "" : death.end.cause);
    }
  } else if (Worker* const worker = machine_.FindWorker(death.index)) {
    machine_.WorkerDied(
        *worker,
        {.kind = death.end.over_memory ? FailureKind::kOutOfMemory : FailureKind::kWorkerDied,
         .code = ErrorCode::kUnavailable,
         .text = fmt::format("its worker {}", death.end.cause),
         .worker = fmt::format("worker {}, process {}", death.index, death.process)});
  }
  guest_output_.End(death.index);
  {
    const std::lock_guard lock(names_mutex_);
    names_.erase(death.index);
  }
  if (member.segment) {
    store_.DropGrants(*member.segment);
    free_segments_.push_back(*member.segment);
  }
  if (member.place) {
    places_[*member.place] = {};
    free_places_.push_back(*member.place);
  }
  members_.erase(found);
}

// Where others live, the program can be a worker, and what this one lacked may come free.
void ProcessTeam::CountFailedStart(const std::string& cause, const ChildEnd& end) {
  failed_starts_ += WasKilled(end) ? kKilledStart : 1;
  next_start_ = Deadline::After(std::min<std::chrono::nanoseconds>(
      kStartPause * static_cast<int>(std::exp2(std::min(failed_starts_, 10.0))), kStartPauseMax));
  if (machine_.workers() == 0 && failed_starts_ >= kFailedStartsMax) {
    broken_ = fmt::format("workers cannot be started: {}", cause);
  }
}

void ProcessTeam::GuestFailed(ProgramIndex program, const ChildEnd& end) {
  const auto found = guests_.find(program);
  if (found == guests_.end()) return;
  found->second.failed_starts += WasKilled(end) ? kKilledStart : 1;
  const bool hopeless = found->second.failed_starts >= kFailedStartsMax;
  machine_.GuestFailed(program, hopeless ? end.cause : "");
}

// By the watching thread. What guests print is for the program that they run.
void ProcessTeam::TellLine(int worker, pid_t process, std::string_view text) {
  if (worker >= 0) {
    const auto added = guest_output_.Add(static_cast<WorkerIndex>(worker), process, text);
    if (added == GuestOutput::Added::kFirst) wake_();
    if (added != GuestOutput::Added::kNoGuest) return;
  }
  std::string name = worker < 0 ? "worker" : fmt::format("worker {}", worker);
  {
    const std::lock_guard lock(names_mutex_);
    const auto found = names_.find(static_cast<WorkerIndex>(worker));
    if (found != names_.end()) name = found->second;
  }
  ShowLine(options_, {.worker = worker, .name = name, .process = process, .text = text});
}

// ---- What the members ask.

void ProcessTeam::NameWorker(WorkerIndex index, std::string_view name) {
  const std::lock_guard lock(names_mutex_);
  names_.insert_or_assign(index, std::string(name));
}

void ProcessTeam::Connected(WorkerIndex index) {
  Member& member = members_.at(index);
  processes_->Connected(static_cast<int>(index));
  Worker* worker = nullptr;
  if (member.program == kOwnProgram) {
    failed_starts_ = 0;  // Those that waited begin with the next Drain.
    worker = &machine_.AddWorker(index);
  } else {
    if (const auto guest = guests_.find(member.program); guest != guests_.end()) {
      guest->second.failed_starts = 0;
    }
    worker = machine_.AddGuest(index, member.program);
    if (worker == nullptr) return KillWorker(index, "the node whose program it runs is gone", {});
  }
  worker->host = member.host.get();
  member.host->set_worker(worker);
}

void ProcessTeam::KillWorker(WorkerIndex index, std::string_view why,
                             std::chrono::nanoseconds after) {
  processes_->KillAfter(static_cast<int>(index), after, std::string(why));
}

void ProcessTeam::RequestExtent(WorkerIndex index, std::uint64_t request, std::uint64_t bytes) {
  Member& member = members_.at(index);
  const bool ahead = request == kAheadRequest;
  if (ahead) {
    const std::uint64_t share = (store_.bytes_max() - store_.bytes_used()) / kAheadShare;
    bytes = std::min(bytes, share / ExtentAllocator::kPage * ExtentAllocator::kPage);
  }
  std::uint32_t segment = 0;
  try {
    segment = SegmentOf(member);
  } catch (const Error& error) {
    const TaskFailure failure{
        .kind = FailureKind::kOutOfMemory,
        .code = ErrorCode::kUnavailable,
        .text = fmt::format("no room for a value of {} bytes: {}", bytes, error.what())};
    return member.host->Grant(request, nullptr, &failure);
  }
  SharedExtent extent;
  if (!(ahead && bytes < kAheadBytesMin) && store_.Allocate(segment, bytes, extent)) {
    store_.Grant(extent);
    return member.host->Grant(request, &extent, nullptr);
  }
  if (ahead) {
    const TaskFailure scarcity = store_.Full(bytes);
    return member.host->Grant(request, nullptr, &scarcity);
  }
  spiller_.Request(index, segment, bytes,
                   [this, index, request](const SharedExtent* room, const TaskFailure* refusal) {
                     const auto found = members_.find(index);
                     if (found == members_.end()) {
                       if (room != nullptr) store_.Free(*room);
                       return;
                     }
                     if (room != nullptr) store_.Grant(*room);
                     found->second.host->Grant(request, room, refusal);
                   });
}

bool ProcessTeam::ReturnExtent(WorkerIndex index, const SharedExtent& extent) {
  return extent.segment == members_.at(index).segment && store_.Return(extent);
}

bool ProcessTeam::PublishExtent(WorkerIndex index, const SharedExtent& extent) {
  return extent.segment == members_.at(index).segment && store_.Publish(extent);
}

// ---- Descriptors.

// The segment that it writes. Most workers never have a value that needs one.
std::uint32_t ProcessTeam::SegmentOf(Member& member) {
  if (!member.segment) {
    if (free_segments_.empty()) free_segments_.push_back(store_.AddSegment());
    member.segment = free_segments_.back();
    free_segments_.pop_back();
    Hand(member, {.kind = Handing::Kind::kOwnSegment, .segment = *member.segment});
  }
  return *member.segment;
}

void ProcessTeam::SendSegment(WorkerIndex index, std::uint32_t segment) {
  Member& member = members_.at(index);
  if (segment == member.segment) return;
  if (!member.has_segment.insert(segment).second) return;
  Hand(member, {.kind = Handing::Kind::kSegment, .segment = segment});
}

void ProcessTeam::Hand(Member& member, const Handing& handing) {
  member.unsent.push_back(handing);
  SendWaiting(member);
}

void ProcessTeam::SendWaiting(Member& member) {
  try {
    while (!member.unsent.empty() && TrySend(member, member.unsent.front())) {
      member.unsent.pop_front();
    }
  } catch (const Error&) {
    member.unsent.clear();  // It has died, which is told soon.
  }
  if (!member.unsent.empty()) member.host->Attend();
}

bool ProcessTeam::TrySend(Member& member, const Handing& handing) {
  const FileDescriptor& control = member.host->control();
  if (handing.kind == Handing::Kind::kChannel) {
    const WorkerIndex index = member.host->index();
    const TaskId run = member.program == kOwnProgram ? member.job : node_;
    const WorkerStart start{.job = member.job,
                            .process = RunOf(run, index + 1),
                            .index = index,
                            .place = *member.place};
    WorkerChannel& channel = member.host->channel();
    const int descriptors[] = {channel.descriptor(), bell_descriptor_};
    if (!TrySendDescriptors(control, std::as_bytes(std::span(&start, 1)), descriptors)) {
      return false;
    }
    channel.CloseDescriptor();
    return true;
  }
  if (!store_.HasSegment(handing.segment)) return true;  // Nothing is there to be read any longer.
  const bool own = handing.kind == Handing::Kind::kOwnSegment;
  FileDescriptor readable;
  if (!own) {
    try {
      readable = store_.OpenReadOnly(handing.segment);
    } catch (const Error&) {
      return false;  // There may be no descriptor now.
    }
  }
  const SegmentHanding message{.segment = handing.segment, .own = own ? 1U : 0U};
  const int descriptors[] = {own ? store_.descriptor(handing.segment) : readable.get()};
  return TrySendDescriptors(control, std::as_bytes(std::span(&message, 1)), descriptors);
}

}  // namespace menger
