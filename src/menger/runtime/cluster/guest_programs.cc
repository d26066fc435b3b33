#include "menger/runtime/cluster/guest_programs.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "menger/base/log.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kFetchMax{300};
constexpr std::chrono::milliseconds kPause{200};  // At first, and twice as long each time,
constexpr std::chrono::milliseconds kPauseMax{10'000};
constexpr std::chrono::milliseconds kWantedLook{20};  // Meanwhile, whether it is still wanted.
// He whose program it is waits for it for so long without a word of why.
constexpr std::chrono::seconds kToldAfter{3};

bool PassesByItself(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kNotFound ||
         error.code() == ErrorCode::kDeadlineExceeded;
}

}  // namespace

GuestPrograms::GuestPrograms(PeerStreams& streams, std::string cache_folder, Hooks hooks)
    : streams_(streams),
      cache_folder_(std::move(cache_folder)),
      hooks_(std::move(hooks)),
      fetcher_(std::make_shared<ProgramFetcher>()) {}

GuestPrograms::~GuestPrograms() {
  for (Guest& guest : guests_) guest.unwanted = true;
}

void GuestPrograms::Bring(const NodeLife& driver, std::string address, std::uint64_t job) {
  ForgetUnwanted();
  Guest& guest = guests_.emplace_back();
  guest.driver = driver;
  guest.thread = Thread({.name = "program"}, [this, &guest, address = std::move(address), job] {
    Fetch(guest, address, job);
  });
}

void GuestPrograms::Drop(const NodeLife& driver) {
  for (Guest& guest : guests_) {
    if (guest.driver.node == driver.node && guest.driver.epoch == driver.epoch) {
      guest.unwanted = true;
    }
  }
  ForgetUnwanted();
}

void GuestPrograms::ForgetUnwanted() {
  std::erase_if(guests_,
                [](const Guest& guest) { return guest.unwanted && guest.thread.finished(); });
}

void GuestPrograms::Fetch(Guest& guest, const std::string& address, std::uint64_t job) {
  try {
    ReadyProgram ready = FetchPatiently(guest, address);
    guest.holds = std::move(ready.holds);
    if (guest.unwanted) return;
    hooks_.on_ready(guest.driver, {.program = std::move(ready.program), .job = job});
  } catch (const Error& error) {
    if (guest.unwanted) return;
    LogWarning("the program of the driver at {} cannot run here: {}", address, error.what());
    hooks_.on_failed(guest.driver, error.what());
  }
}

ReadyProgram GuestPrograms::FetchPatiently(const Guest& guest, const std::string& address) {
  const Deadline deadline = Deadline::After(kFetchMax).OrWhen(guest.unwanted);
  const Deadline untold = Deadline::After(kToldAfter);
  const ProgramCache cache({.folder = cache_folder_});
  bool told = false;
  for (std::chrono::milliseconds pause = kPause;; pause = std::min(2 * pause, kPauseMax)) {
    try {
      return fetcher_->Fetch(streams_, address, cache, deadline);
    } catch (const Error& error) {
      if (!PassesByItself(error) || deadline.expired()) throw;
      if (untold.expired() && !std::exchange(told, true)) {
        LogWarning("the program of the driver at {} is not here yet, and is tried again: {}",
                   address, error.what());
        hooks_.on_failed(guest.driver, fmt::format("it is tried again: {}", error.what()));
      }
    }
    const Deadline over = Deadline::After(pause).OrWhen(guest.unwanted);
    while (!over.expired()) std::this_thread::sleep_for(kWantedLook);
  }
}

}  // namespace menger
