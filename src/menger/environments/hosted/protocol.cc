#include "menger/environments/hosted/protocol.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::string_view kCut = "\n[cut here: the text was longer than the control segment]";
constexpr std::chrono::milliseconds kLookForMenger{500};

bool IsGone(std::int32_t process) { return kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

void WriteHostText(HostControl& control, std::string_view text) {
  std::size_t size = std::min(text.size(), kHostTextBytes);
  if (size < text.size()) size -= kCut.size();
  std::memcpy(control.text, text.data(), size);
  if (size < text.size()) {
    std::memcpy(control.text + size, kCut.data(), kCut.size());
    size += kCut.size();
  }
  control.text_bytes = size;
}

std::string ReadHostText(const HostControl& control) {
  // The other side may have been killed while it wrote, or be mad.
  return std::string(control.text, std::min<std::size_t>(control.text_bytes, kHostTextBytes));
}

HostEnd::HostEnd(int descriptor) : memory_(MapSharedMemory(descriptor, sizeof(HostControl))) {
  control_ = reinterpret_cast<HostControl*>(memory_->data());
  if (control_->magic != kHostMagic) {
    throw InvalidArgument("descriptor {} is not a control segment of menger", descriptor);
  }
  if (control_->version != kHostProtocolVersion) {
    throw FailedPrecondition(
        "menger speaks version {} of the host protocol, this host version {}: build both from the "
        "same sources",
        control_->version, kHostProtocolVersion);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  orphaned_ = IsGone(control_->menger_process);
}

void HostEnd::ReportPhase(HostPhase phase, std::string_view doing) {
  WriteHostText(*control_, doing);
  control_->phase = phase;
  ReportProgress();
}

bool HostEnd::Wait(std::chrono::nanoseconds timeout) {
  const Deadline deadline = Deadline::After(timeout);
  while (!orphaned_) {
    const auto slice = std::min<std::chrono::nanoseconds>(deadline.remaining(), kLookForMenger);
    if (control_->request.TryWaitFor(seen_ + 1, slice, SpinKind::kYielding)) return true;
    // Only where the kernel's own signal does not come: a wrapper stands between the two.
    orphaned_ = IsGone(control_->menger_process);
    if (!orphaned_ && deadline.expired()) return false;
  }
  return true;
}

void HostEnd::Done(std::string_view text) {
  if (orphaned_) return;
  control_->status = HostStatus::kDone;
  WriteHostText(*control_, text);
  ++seen_;
  control_->reply.Advance();
}

void HostEnd::Failed(int error_code, std::string_view text) {
  if (orphaned_) return;
  control_->status = HostStatus::kFailed;
  control_->error_code = error_code;
  WriteHostText(*control_, text);
  ++seen_;
  control_->reply.Advance();
}

}  // namespace menger
