#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/base/function_ref.h"
#include "menger/base/thread.h"

namespace menger {

// How one asks a running job: a Unix socket in a folder of the user's that nobody else may enter,
// $XDG_RUNTIME_DIR/menger or else menger-UID in the temporary one. Its name is
// "JOB-PROCESS.socket", with a number where a process has several nodes of one job.

// A question is one connection: its text until the client has no more to say, then pieces of the
// answer, each after its length (uint32, of this machine, a MiB at the most); length 0 is the end.
// kRefused instead of a length: the rest is the text of an error.
class JobSocket {
 public:
  // Writes the answer piece by piece. What it throws is told to who asked.
  using Write = FunctionRef<void(std::string_view piece)>;
  using Answer = std::function<void(std::string_view question, Write write)>;

  // `answer` is called on threads of the socket, for up to 16 questions at a time. Who does not ask
  // or read his answer is left after a few seconds, and keeps nobody else waiting meanwhile. Throws
  // FailedPrecondition where the folder is not this user's alone, and as files do.
  JobSocket(std::uint64_t job, Answer answer);
  ~JobSocket();  // Removes the socket; does not wait for whoever reads.
  JobSocket(const JobSocket&) = delete;
  JobSocket& operator=(const JobSocket&) = delete;

  const std::string& name() const { return name_; }

 private:
  void Serve();
  void Accept();
  void Talk(const FileDescriptor& client) const;
  void Refuse(const FileDescriptor& client, std::string_view why, const Deadline& end) const;
  void TurnAway(const FileDescriptor& client) const;
  std::string Hear(const FileDescriptor& client, const Deadline& deadline) const;
  void Say(const FileDescriptor& client, std::string_view text, const Deadline& end) const;
  bool Await(int descriptor, short events, const Deadline& deadline) const;

  const Answer answer_;
  FileDescriptor stop_;  // An eventfd.
  FileDescriptor listener_;
  std::string name_;
  std::string path_;
  std::list<Thread> talks_;  // Of thread_: one a client.
  Thread thread_;
};

// The names of this user's jobs that can be asked now, without ".socket". This and what follows
// throws FailedPrecondition where the folder is not this user's alone: somebody else's sockets may
// lie there.
std::vector<std::string> RunningJobs();

// The one that `wish` means: its name, the number of its process, or "" for the only one that runs.
// Throws NotFound, InvalidArgument where several would do; both list what there is.
std::string FindJob(const std::string& wish);

// Asks a job; `take` gets the answer piece by piece. Throws NotFound if there is no such job,
// Unavailable if it ends meanwhile, DeadlineExceeded, and what the job refuses as InvalidArgument.
void AskJob(const std::string& name, std::string_view question,
            FunctionRef<void(std::string_view piece)> take, const Deadline& deadline);

}  // namespace menger
