#include "menger/runtime/process_team.h"

#include <utility>

#include "menger/base/log.h"
#include "menger/runtime/descriptors.h"

namespace menger {
namespace {

constexpr int kFailedStartsMax = 3;
constexpr std::chrono::seconds kSendDeadline{10};

void PrintLine(int worker, pid_t process, std::string_view line) {
  fmt::print(stderr, "(worker {}, process {}) {}\n", worker, process, line);
}

}  // namespace

ProcessTeam::ProcessTeam(const RuntimeOptions& options, NodeMachine& machine, ValueStore& store,
                         int bell_descriptor, std::function<void()> wake)
    : options_(options),
      machine_(machine),
      store_(store),
      bell_descriptor_(bell_descriptor),
      wake_(std::move(wake)),
      processes_(
          WorkerEvents{.on_line = options.on_line ? options.on_line : PrintLine,
                       .on_end = [this](int worker, pid_t process, const std::string& cause) {
                         {
                           const std::lock_guard lock(deaths_mutex_);
                           deaths_.push_back({static_cast<WorkerIndex>(worker), process, cause});
                         }
                         wake_();
                       }}) {
  if (options.workers_ahead > 0) {
    processes_->StartAhead(options.workers_ahead, options.worker_program);
  }
}

void ProcessTeam::Stop() {
  processes_.reset();
  members_.clear();
}

void ProcessTeam::StartWorker() {
  if (!broken_.empty()) return;
  const WorkerIndex index = machine_.NewWorkerIndex();
  Member& member = members_[index];
  if (free_segments_.empty()) free_segments_.push_back(store_.AddSegment());
  member.segment = free_segments_.back();
  free_segments_.pop_back();
  member.host = std::make_unique<ProcessWorker>(
      static_cast<WorkerOwner&>(*this), machine_, index,
      processes_->Start(static_cast<int>(index), options_.worker_program));
  const WorkerStart start{.index = index, .segment = member.segment};
  const int descriptors[] = {member.host->channel_descriptor(), bell_descriptor_,
                             store_.segment(member.segment).descriptor()};
  SendDescriptors(member.host->control(), std::as_bytes(std::span(&start, 1)), descriptors,
                  Deadline::After(kSendDeadline));
}

void ProcessTeam::Drain() {
  for (auto& [index, member] : members_) DrainMember(index, member);
  std::vector<Death> deaths;
  {
    const std::lock_guard lock(deaths_mutex_);
    deaths.swap(deaths_);
  }
  for (const Death& death : deaths) Bury(death);
}

void ProcessTeam::DrainMember(WorkerIndex index, Member& member) {
  try {
    member.host->Drain(machine_);
  } catch (const Error& error) {
    KillWorker(index, fmt::format("it broke the protocol: {}", error.what()));
  }
}

void ProcessTeam::Bury(const Death& death) {
  const auto found = members_.find(death.index);
  if (found == members_.end()) return;
  Member& member = found->second;
  DrainMember(death.index, member);  // Its last words count.
  if (member.host->worker() == nullptr) {
    machine_.StartFailed();
    if (++failed_starts_ >= kFailedStartsMax) {
      broken_ = fmt::format("workers cannot be started: worker {} {}", death.index, death.cause);
    }
  } else if (Worker* const worker = machine_.FindWorker(death.index)) {
    if (!member.host->ended())
      LogWarning("worker {} (process {}) {}", death.index, death.process, death.cause);
    machine_.WorkerDied(
        *worker, {.kind = member.reason,
                  .code = ErrorCode::kUnavailable,
                  .text = fmt::format("its worker {}", death.cause),
                  .worker = fmt::format("worker {}, process {}", death.index, death.process)});
  }
  store_.DropGrants(member.segment);
  free_segments_.push_back(member.segment);
  members_.erase(found);
}

// ---- What the members ask.

void ProcessTeam::Connected(WorkerIndex index) {
  failed_starts_ = 0;
  Member& member = members_.at(index);
  processes_->Connected(static_cast<int>(index));
  Worker& worker = machine_.AddWorker(index);
  worker.host = member.host.get();
  member.host->set_worker(&worker);
}

void ProcessTeam::KillWorker(WorkerIndex index, std::string_view why) {
  processes_->KillAfter(static_cast<int>(index), std::chrono::nanoseconds(0), std::string(why));
}

Payload ProcessTeam::RefuseExtent(WorkerIndex index, std::uint64_t bytes, SharedExtent& extent) {
  if (!store_.Allocate(members_.at(index).segment, bytes, extent))
    return Encode(store_.Full(bytes));
  store_.Grant(extent);
  return {};
}

bool ProcessTeam::PublishExtent(WorkerIndex index, const SharedExtent& extent) {
  return extent.segment == members_.at(index).segment && store_.Publish(extent);
}

void ProcessTeam::SendSegment(WorkerIndex index, std::uint32_t segment) {
  Member& member = members_.at(index);
  if (segment == member.segment) return;
  if (member.has_segment.size() <= segment) member.has_segment.resize(segment + 1);
  if (member.has_segment[segment]) return;
  member.has_segment[segment] = true;
  const FileDescriptor descriptor = store_.segment(segment).OpenReadOnly();
  const int descriptors[] = {descriptor.get()};
  SendDescriptors(member.host->control(), std::as_bytes(std::span(&segment, 1)), descriptors,
                  Deadline::After(kSendDeadline));
}

}  // namespace menger
