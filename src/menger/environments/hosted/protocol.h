#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "menger/base/epoch_counter.h"
#include "menger/tensor/memory.h"

namespace menger {

// How menger and a host talk. A host is a process of its own (an interpreter, a simulator that may
// not be linked) that steps one block of columns of a slab for one EnvironmentGroup.
//
// Two segments without names (memfd) are inherited at the start, so nothing is left behind however
// a process dies: a HostControl, and the slab, where the host writes its rows in place. Menger
// fills in a request and advances `request`; the host does it, fills in the reply and advances
// `reply`. There is never more than one request on its way.
//
// The host is started with `--control N` (the descriptor of its HostControl) after its own
// arguments. It ends at kClose, and when menger is gone. kEndHostSignal ends it at any time: by the
// signal's default action, or because a supervisor (supervisor.h) sees to it.

inline constexpr int kEndHostSignal = SIGUSR1;
inline constexpr std::uint32_t kHostMagic = 0x484d4e47;
inline constexpr std::uint32_t kHostProtocolVersion = 2;
inline constexpr std::size_t kHostTextBytes = std::size_t{16} << 20;  // A picture of 2,300 x 2,300.

// `Text in` and `text out` are UTF-8 JSON objects unless said otherwise. Rows and flags are those
// of EnvironmentGroup; before kStep menger has cleared the block's flags (valid = 1, final_index =
// -1, the others and the next row's is_first 0), so a host need only write what differs.
enum class HostCommand : std::int32_t {
  kNone = 0,
  kDescribe = 1,      // Text in: what to make, as its owner has it. Text out: see spec_json.h.
  kAttach = 2,        // Text in: see HostAttachment. Makes the environments.
  kReset = 3,         // Into `row`.
  kStep = 4,          // The actions of `row`.
  kResetParked = 5,   // Into `row`.
  kStepRandomly = 6,  // Into `row`, with `seed`. Text in: {"steps": [...]}.
  kSave = 7,          // Text in: the path of the archive to write, as plain text.
  kLoad = 8,          // Text in: the path of the archive to read, as plain text.
  kClose = 9,         // Answered, then the host ends.
  kRender = 10,  // Column `row` of the block. Text out: width and height (4 bytes each), then RGB.
  // Something that a step of `row` has written, or (begins) what a reset has written into it,
  // cannot be taken: a fresh episode in that column, with `row` marked as the host marks those of
  // its own errors, or, without a restart left, the error. Text in: {"column", "why", "begins",
  // "place"}, the last as errors name it.
  kRefuse = 11,
  kCheck = 12,  // Text in: as of kDescribe. Text out: {"findings": [{"fault", "text"}], "speed"}.
};

// What a host may say besides having done it, as text out of any command that steps: metrics of
// episodes that ended ({"metrics": {name: [sum, count]}}) and what was restarted and why
// ({"restarts": ["..."]}), and what else a user should know, once for each topic
// ({"warnings": {topic: "..."}}). No text: nothing.
enum class HostStatus : std::int32_t {
  kDone = 0,
  kFailed = 1,  // Text out: the error, as plain text; `error_code` says its ErrorCode.
};

// How far kCheck has come, while the text says at what it is: who does not go on is told of by it.
enum class HostPhase : std::uint32_t {
  kNone = 0,
  kMaking = 1,   // Of the environment: it may take as long as a start.
  kPlaying = 2,  // As long as a step.
};

// The control segment. Zero bytes are valid. Whoever is asked to act (the host between `request`
// and `reply`, menger otherwise) may write; nobody else.
struct HostControl {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::int32_t menger_process = 0;

  EpochCounter request;
  EpochCounter reply;

  // Moves on while a long command does: a host that is slow is not one that hangs.
  alignas(64) std::atomic<std::uint32_t> progress{0};

  std::atomic<HostPhase> phase{HostPhase::kNone};

  // The request.
  alignas(64) HostCommand command = HostCommand::kNone;
  std::int32_t row = 0;
  std::int64_t first_step = 0;     // Slab::first_step.
  std::int64_t restarts_left = 0;  // Errors of environments that may become fresh episodes.
  std::uint64_t seed = 0;          // kStepRandomly.

  // The reply.
  alignas(64) HostStatus status = HostStatus::kDone;
  std::int32_t error_code = 0;
  std::int64_t restarts_used = 0;  // One more than were left, where the error is for want of one.

  // Both ways: what came in is overwritten by what goes out.
  alignas(64) std::uint64_t text_bytes = 0;
  char text[kHostTextBytes];  // Not written before it is used: its pages cost nothing until then.
};
static_assert(std::is_standard_layout_v<HostControl>);

// Text of either side; longer text is cut at the bound, with a note that says so.
void WriteHostText(HostControl& control, std::string_view text);
std::string ReadHostText(const HostControl& control);

// A host's end of the control segment. One thread.
class HostEnd {
 public:
  // Throws InvalidArgument where the descriptor is not a control segment, FailedPrecondition where
  // menger speaks another version. From here on this process is killed when menger is gone, also
  // where only the thread that started it is.
  explicit HostEnd(int descriptor);

  // Waits for the next request; false after `timeout`. kClose also stands for menger being gone.
  bool Wait(std::chrono::nanoseconds timeout);

  void ReportPhase(HostPhase phase, std::string_view doing);

  HostCommand command() const { return orphaned_ ? HostCommand::kClose : control().command; }
  HostControl& control() { return *control_; }
  const HostControl& control() const { return *control_; }
  void ReportProgress() { control_->progress.fetch_add(1, std::memory_order_relaxed); }

  // Answers the request that Wait has returned, once. Done without text leaves none.
  void Done(std::string_view text = {});
  void Failed(int error_code, std::string_view text);

 private:
  std::unique_ptr<SharedMemory> memory_;
  HostControl* control_ = nullptr;
  std::uint32_t seen_ = 0;  // Requests answered.
  bool orphaned_ = false;
};

}  // namespace menger
