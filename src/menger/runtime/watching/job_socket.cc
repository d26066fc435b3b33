#include "menger/runtime/watching/job_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/temporary_folder.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kQuestionTime{2};
constexpr std::chrono::seconds kAnswerTime{60};
constexpr std::chrono::milliseconds kAtOnce{100};
constexpr std::chrono::seconds kPieceTime{5};  // A reader that takes nothing for so long has gone.
constexpr std::size_t kQuestionBytesMax = 256;
constexpr std::uint32_t kRefused = UINT32_MAX;
constexpr std::string_view kSuffix = ".socket";
constexpr int kNodesMax = 1000;  // Of one job, in one process.
constexpr std::size_t kTalksMax = 16;
constexpr std::size_t kPieceBytesMax = std::size_t{1} << 20;

std::string FolderOfJobs() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return fmt::format("{}/menger", runtime);
  return fmt::format("{}/menger-{}", FolderOfTemporaryFiles(), getuid());
}

// False if there is none.
bool CheckPrivateFolder(const std::string& folder) {
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0) {
    if (errno == ENOENT) return false;
    throw FromErrno(fmt::format("cannot look at {}", folder), errno);
  }
  if (S_ISDIR(found.st_mode) && found.st_uid == getuid() && (found.st_mode & 077) == 0) return true;
  throw FailedPrecondition("{} is not a folder that only its user may enter (mode 0700)", folder);
}

// Others can write in a temporary folder, too.
void MakePrivateFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw FromErrno(fmt::format("cannot make the folder {}", folder), errno);
  }
  CheckPrivateFolder(folder);
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    throw FailedPrecondition("{} is too long for the name of a socket: at most {} bytes", path,
                             sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

FileDescriptor NewSocket() {
  FileDescriptor descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!descriptor.valid()) throw FromErrno("cannot make a socket", errno);
  return descriptor;
}

// None if nobody listens there.
FileDescriptor Connect(const std::string& path) {
  FileDescriptor descriptor = NewSocket();
  const sockaddr_un address = AddressOf(path);
  const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
  if (connect(descriptor.get(), raw, sizeof(address)) != 0) descriptor.Close();
  return descriptor;
}

// The process in "JOB-PROCESS" or "JOB-PROCESS-NUMBER"; 0 if that is no such name.
pid_t ProcessOf(std::string_view name) {
  const std::size_t begin = name.find('-');
  if (begin == std::string_view::npos) return 0;
  pid_t process = 0;
  std::from_chars(name.data() + begin + 1, name.data() + name.size(), process);
  return process;
}

bool Lives(pid_t process) { return kill(process, 0) == 0 || errno == EPERM; }

std::vector<std::string> NamesOfSockets() {
  std::vector<std::string> names;
  const std::string folder = FolderOfJobs();
  if (!CheckPrivateFolder(folder)) return names;
  std::error_code none;  // It is gone by now.
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    if (ProcessOf(name) > 0) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string PathOf(const std::string& name) {
  return fmt::format("{}/{}{}", FolderOfJobs(), name, kSuffix);
}

// What processes have left that were killed.
void RemoveStaleSockets() {
  for (const std::string& name : NamesOfSockets()) {
    if (!Lives(ProcessOf(name)) && !Connect(PathOf(name)).valid()) unlink(PathOf(name).c_str());
  }
}

bool AwaitUntil(std::span<pollfd> sources, const Deadline& deadline) {
  for (;;) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    const int found = poll(sources.data(), sources.size(),
                           static_cast<int>(std::min<std::int64_t>(wait.count(), 60'000)));
    if (found > 0) return true;
    if (deadline.expired()) return false;
  }
}

}  // namespace

// ---- The job's end.

JobSocket::JobSocket(std::uint64_t job, Answer answer)
    : answer_(std::move(answer)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      listener_(NewSocket()) {
  MakePrivateFolder(FolderOfJobs());
  RemoveStaleSockets();
  for (int number = 1;; ++number) {
    name_ = fmt::format("{}-{}{}", job, getpid(), number > 1 ? fmt::format("-{}", number) : "");
    path_ = PathOf(name_);
    const sockaddr_un address = AddressOf(path_);
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
    if (bind(listener_.get(), raw, sizeof(address)) == 0) break;
    // Another node of this process, or a process of old that had the same number.
    if (errno == EADDRINUSE && number < kNodesMax) continue;
    throw FromErrno(fmt::format("cannot make the socket {}", path_), errno);
  }
  if (listen(listener_.get(), 16) != 0) throw FromErrno("cannot listen to a socket", errno);
  thread_ = Thread({.name = "job socket"}, [this] { Serve(); });
}

JobSocket::~JobSocket() {
  unlink(path_.c_str());
  eventfd_write(stop_.get(), 1);
  thread_.Join();
}

// False when the time is over or all ends.
bool JobSocket::Await(int descriptor, short events, const Deadline& deadline) const {
  std::array<pollfd, 2> sources = {pollfd{.fd = stop_.get(), .events = POLLIN},
                                   pollfd{.fd = descriptor, .events = events}};
  return AwaitUntil(sources, deadline) && sources[0].revents == 0;
}

void JobSocket::Serve() {
  constexpr std::chrono::hours kLong{1};
  while (true) {
    std::array<pollfd, 2> sources = {pollfd{.fd = stop_.get(), .events = POLLIN},
                                     pollfd{.fd = listener_.get(), .events = POLLIN}};
    AwaitUntil(sources, Deadline::After(kLong));
    if (sources[0].revents != 0) return talks_.clear();
    Accept();
  }
}

void JobSocket::Accept() {
  auto client = std::make_shared<FileDescriptor>(
      accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client->valid()) return;
  std::erase_if(talks_, [](const Thread& talk) { return talk.finished(); });
  const bool full = talks_.size() == kTalksMax;
  const auto talk = [this, client, full] {
    try {
      full ? TurnAway(*client) : Talk(*client);
    } catch (const Error& error) {
      LogDebug("a question to job {} was not answered: {}", name_, error.what());
    }
    client->Close();  // That is the end of an answer.
  };
  if (full) return talk();
  try {
    talks_.emplace_back(ThreadOptions{.name = "job answer"}, talk);
  } catch (const std::exception& error) {
    LogDebug("a question to job {} was not answered: {}", name_, error.what());
  }
}

// Who has asked and is not heard would not hear the answer, either.
void JobSocket::TurnAway(const FileDescriptor& client) const {
  const Deadline deadline = Deadline::After(kAtOnce);
  Hear(client, deadline);
  Refuse(client, "too many ask it already", deadline);
}

void JobSocket::Refuse(const FileDescriptor& client, std::string_view why,
                       const Deadline& end) const {
  Say(client, {reinterpret_cast<const char*>(&kRefused), sizeof(kRefused)}, end);
  Say(client, why, end);
}

void JobSocket::Talk(const FileDescriptor& client) const {
  const std::string question = Hear(client, Deadline::After(kQuestionTime));
  const Deadline end = Deadline::After(kAnswerTime);
  const auto say_number = [&](std::uint32_t number) {
    Say(client, {reinterpret_cast<const char*>(&number), sizeof(number)}, end);
  };
  bool cut = false;  // In the middle of a piece: nothing can be said any more.
  try {
    answer_(question, [&](std::string_view rest) {
      cut = true;
      while (!rest.empty()) {
        const std::string_view piece = rest.substr(0, kPieceBytesMax);
        rest.remove_prefix(piece.size());
        say_number(static_cast<std::uint32_t>(piece.size()));
        Say(client, piece, end);
      }
      cut = false;
    });
    cut = true;
    say_number(0);
  } catch (...) {
    const Error error = TranslateCurrentException();
    if (cut) throw error;
    Refuse(client, error.what(), end);
  }
}

std::string JobSocket::Hear(const FileDescriptor& client, const Deadline& deadline) const {
  std::string question;
  for (;;) {
    std::array<char, kQuestionBytesMax> part{};
    const ssize_t count = recv(client.get(), part.data(), part.size(), 0);
    if (count == 0) return question;
    if (count > 0) {
      question.append(part.data(), static_cast<std::size_t>(count));
      if (question.size() > kQuestionBytesMax) {
        throw InvalidArgument("a question has more than {} bytes", kQuestionBytesMax);
      }
    } else if (errno != EAGAIN && errno != EINTR) {
      throw FromErrno("cannot read a question", errno);
    } else if (!Await(client.get(), POLLIN, deadline)) {
      throw DeadlineExceeded("no question came");
    }
  }
}

void JobSocket::Say(const FileDescriptor& client, std::string_view text,
                    const Deadline& end) const {
  const Deadline deadline =
      Deadline::After(std::min<std::chrono::nanoseconds>(end.remaining(), kPieceTime));
  while (!text.empty()) {
    const ssize_t count = send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      throw FromErrno("cannot write an answer", errno);
    } else if (!Await(client.get(), POLLOUT, deadline)) {
      throw DeadlineExceeded("nobody reads the answer");
    }
  }
}

// ---- The other end.

namespace {

// Fills `bytes`; false at the end of what the job says.
bool Receive(const FileDescriptor& job, std::span<char> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t count = recv(job.get(), bytes.data(), bytes.size(), 0);
    if (count == 0) return false;
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) throw FromErrno("cannot read from a job", errno);
    pollfd source{.fd = job.get(), .events = POLLIN, .revents = 0};
    if (!AwaitUntil({&source, 1}, deadline)) throw DeadlineExceeded("the job does not answer");
  }
  return true;
}

[[noreturn]] void ThrowRefusal(const FileDescriptor& job, const Deadline& deadline) {
  std::string text;
  for (char one = 0; text.size() < 4096 && Receive(job, {&one, 1}, deadline);) text += one;
  throw InvalidArgument("the job says: {}", text);
}

}  // namespace

std::vector<std::string> RunningJobs() {
  std::vector<std::string> jobs = NamesOfSockets();
  std::erase_if(jobs, [](const std::string& name) { return !Connect(PathOf(name)).valid(); });
  return jobs;
}

std::string FindJob(const std::string& wish) {
  const std::vector<std::string> jobs = RunningJobs();
  std::vector<std::string> found;
  for (const std::string& job : jobs) {
    if (job == wish) return job;
    if (wish.empty() || std::to_string(ProcessOf(job)) == wish) found.push_back(job);
  }
  if (jobs.empty()) throw NotFound("no job of this user runs here (looked in {})", FolderOfJobs());
  if (found.empty()) {
    throw NotFound("there is no job '{}'; these run (JOB-PROCESS): {}", wish,
                   fmt::join(jobs, ", "));
  }
  if (found.size() > 1) {
    throw InvalidArgument("several jobs run: name one of {}", fmt::join(found, ", "));
  }
  return found.front();
}

void AskJob(const std::string& name, std::string_view question,
            FunctionRef<void(std::string_view piece)> take, const Deadline& deadline) {
  CheckPrivateFolder(FolderOfJobs());
  const FileDescriptor job = Connect(PathOf(name));
  if (!job.valid()) throw NotFound("there is no job '{}' that could be asked", name);
  // So few bytes always have room.
  send(job.get(), question.data(), question.size(), MSG_NOSIGNAL);
  shutdown(job.get(), SHUT_WR);
  std::vector<char> piece;
  for (;;) {
    std::uint32_t length = 0;
    bool whole = Receive(job, {reinterpret_cast<char*>(&length), sizeof(length)}, deadline);
    if (whole && length == 0) return;
    if (whole && length == kRefused) ThrowRefusal(job, deadline);
    if (whole && length > kPieceBytesMax) {
      throw DataLoss("job {} says that {} bytes follow; at most {} do", name, length,
                     kPieceBytesMax);
    }
    if (whole) {
      piece.resize(length);
      whole = Receive(job, piece, deadline);
    }
    if (!whole) throw Unavailable("job {} ended in the middle of its answer", name);
    take({piece.data(), piece.size()});
  }
}

}  // namespace menger
