#include "menger/environments/hosted/host_process.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "menger/base/log.h"

namespace menger {
namespace {

constexpr std::size_t kLinesKept = 40;
constexpr std::size_t kLineBytesMax = 2000;
constexpr double kCloseSeconds = 2;
constexpr double kEndSeconds = 1;  // For a supervisor, to end what the host has started.
constexpr double kKillSeconds = 10;
constexpr std::chrono::milliseconds kSlice{50};  // Between two looks at whether the host lives.

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9));
}

}  // namespace

HostProcess::HostProcess(const HostProgram& program, std::span<const int> inherited)
    : memory_(AllocateSharedMemory("menger-control", sizeof(HostControl))),
      step_deadline_seconds_(program.step_deadline_seconds),
      speaker_(program.speaker),
      voice_(program.voice) {
  control_ = reinterpret_cast<HostControl*>(memory_->data());
  control_->magic = kHostMagic;
  control_->version = kHostProtocolVersion;
  control_->menger_process = getpid();
  ChildProgram child{.arguments = program.arguments,
                     .variables = program.variables,
                     .inherited = {inherited.begin(), inherited.end()}};
  const int control = memory_->descriptor();
  child.arguments.insert(child.arguments.end(), {"--control", std::to_string(control)});
  child.inherited.push_back(control);
  child_ = processes_.Start(std::move(child),
                            {.on_start = [this](pid_t process) { KeepStart(process); },
                             .on_line = [this](std::string_view line) { KeepLine(line); },
                             .on_end = [this](const ChildEnd& end) { KeepEnd(end); }});
  std::unique_lock lock(mutex_);
  started_.wait_for(lock, Seconds(program.start_deadline_seconds),
                    [this] { return process_ != 0 || ended_; });
  if (process_ == 0 && ended_) {
    throw FailedPrecondition("{}", WithSentence(cause_, program.advice));
  }
}

HostProcess::~HostProcess() {
  if (!ended_ && idle_) {
    control_->command = HostCommand::kClose;
    control_->text_bytes = 0;
    control_->request.Advance();
    WaitForEnd(kCloseSeconds);
  }
  Kill();
}

std::string HostProcess::Call(HostCommand command, double deadline_seconds, std::string_view text) {
  control_->command = command;
  if (text.empty()) {
    control_->text_bytes = 0;
  } else {
    if (text.size() > kHostTextBytes) {
      throw InvalidArgument("a request of {} bytes does not fit a host's {}", text.size(),
                            kHostTextBytes);
    }
    WriteHostText(*control_, text);
  }
  control_->restarts_used = 0;
  control_->phase = HostPhase::kNone;
  idle_ = false;
  ++sent_;
  control_->request.Advance();
  AwaitReply(command, deadline_seconds);
  idle_ = true;
  if (control_->status == HostStatus::kFailed) {
    throw Error(static_cast<ErrorCode>(control_->error_code), ReadHostText(*control_));
  }
  return control_->text_bytes == 0 ? std::string() : ReadHostText(*control_);
}

void HostProcess::AwaitReply(HostCommand command, double deadline_seconds) {
  // Time is counted in slices that were waited: while this process is stopped (Ctrl-Z, a debugger)
  // the clock goes on, and the host is stopped too.
  std::chrono::nanoseconds waited(0);
  std::uint32_t progress = control_->progress.load(std::memory_order_relaxed);
  while (!control_->reply.TryWaitFor(sent_, kSlice, SpinKind::kYielding)) {
    if (ended_) {
      if (control_->reply.TryWaitFor(sent_, std::chrono::nanoseconds(0))) return;
      std::string cause;
      {
        const std::lock_guard lock(mutex_);
        cause = cause_;
      }
      throw HostLost(fmt::format("its host process {}{}", cause, LastWords()));
    }
    const std::uint32_t now = control_->progress.load(std::memory_order_relaxed);
    waited = now == progress ? waited + kSlice : std::chrono::nanoseconds(0);
    progress = now;
    const bool playing = control_->phase == HostPhase::kPlaying;
    if (playing) deadline_seconds = step_deadline_seconds_;
    if (waited < Seconds(deadline_seconds)) continue;
    Kill();
    const bool starting = command == HostCommand::kAttach || command == HostCommand::kDescribe ||
                          (command == HostCommand::kCheck && !playing);
    throw HostLost(fmt::format(
        "its host process did not {} within {} s and was killed ({} is how long it may take){}",
        starting ? "start" : "answer", deadline_seconds,
        starting ? "start_deadline" : "step_deadline", LastWords()));
  }
}

std::string HostProcess::LastDoing() const {
  return control_->phase == HostPhase::kNone ? "" : ReadHostText(*control_);
}

std::string HostProcess::LastWords() {
  const std::lock_guard lock(mutex_);
  std::string text;
  const bool all_seen = std::ranges::all_of(lines_, &Line::seen);
  for (const Line& line : lines_) text += "\n    " + line.text;
  return all_seen ? "" : "; the last it printed:" + text;
}

bool HostProcess::WaitForEnd(double seconds) {
  return processes_.WaitForEnd(child_, Seconds(seconds));
}

void HostProcess::Kill() {
  processes_.Signal(child_, kEndHostSignal);
  processes_.KillAfter(child_, Seconds(kEndSeconds));
  WaitForEnd(kEndSeconds + kKillSeconds);
}

void HostProcess::KeepStart(std::int32_t process) {
  const std::lock_guard lock(mutex_);
  process_ = process;
  started_.notify_all();
}

void HostProcess::KeepLine(std::string_view line) {
  LogDebug("host {}: {}", process_.load(), line);
  const bool seen =
      voice_ != nullptr && (IsLogged(LogLevel::kDebug) || voice_->Say(speaker_, line));
  const std::lock_guard lock(mutex_);
  lines_.push_back({std::string(line.substr(0, kLineBytesMax)), seen});
  if (lines_.size() > kLinesKept) lines_.pop_front();
}

void HostProcess::KeepEnd(const ChildEnd& end) {
  const std::lock_guard lock(mutex_);
  cause_ = end.cause;
  ended_ = true;
  started_.notify_all();
}

}  // namespace menger
