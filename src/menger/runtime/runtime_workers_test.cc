#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/runtime/runtime.h"

// What worker processes cost their node, and how it gets along with those that are slow.
namespace menger {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

constexpr std::chrono::seconds kPatience{120};

int OpenDescriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// While it exists this process may open only so many descriptors more than it has.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    MeetErrors();
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(OpenDescriptors() + more);
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  // UBSan opens a pipe to check the first virtual call on a type, and takes its failure for an
  // object of another type.
  static void MeetErrors() {
    try {
      throw FromErrno("", EMFILE);
    } catch (...) {
      static_cast<void>(TranslateCurrentException().what());
    }
  }

  rlimit before_{};
};

int Twice(int x) { return 2 * x; }

struct Server {
  int Twice(int x) { return 2 * x; }
  Bytes Make(int bytes) { return Bytes(static_cast<std::size_t>(bytes), 7); }
  int Sum(const Bytes& bytes) {
    int sum = 0;
    for (const std::uint8_t byte : bytes) sum += byte;
    return sum;
  }
  bool AwaitFile(const std::string& path) {
    const Deadline deadline = Deadline::After(kPatience);
    while (!std::filesystem::exists(path) && !deadline.expired()) usleep(1000);
    return !deadline.expired();
  }
};
using Servers = std::vector<ActorRef<Server>>;

Servers Serve(Runtime& runtime, int count) {
  Servers servers;
  for (int i = 0; i < count; ++i) servers.push_back(runtime.CreateActor<Server>({}));
  for (ActorRef<Server>& server : servers) {
    EXPECT_EQ(runtime.Get(server.Call<&Server::Twice>(4), kPatience), 8);
  }
  return servers;
}

// Its control socket, what it prints, and its end.
TEST(RuntimeWorkersTest, AWorkerCostsItsNodeThreeDescriptors) {
  Runtime runtime({.workers = 1});
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(1)), 2);
  const int before = OpenDescriptors();
  const Servers servers = Serve(runtime, 10);
  EXPECT_LE(OpenDescriptors() - before, 3 * 10 + 2);
}

TEST(RuntimeWorkersTest, TheSoftLimitOfDescriptorsBoundsNoWorkers) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 1024) GTEST_SKIP() << "the hard limit is " << limit.rlim_max;
  const FewDescriptors few(30);
  Runtime runtime({.workers = 1});
  Serve(runtime, 30);
}

// Each call may fail, and says why; when there are descriptors again all is as before.
TEST(RuntimeWorkersTest, WorkersThatCannotStartDoNotEndTheJob) {
  Runtime runtime({.workers = 1});
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(1)), 2);
  const Servers servers = Serve(runtime, 2);
  Servers more;
  std::vector<ObjectRef<int>> results;
  {
    const FewDescriptors few(5);
    for (int i = 0; i < 8; ++i) {
      more.push_back(runtime.CreateActor<Server>({}));
      results.push_back(more.back().Call<&Server::Twice>(3));
    }
    runtime.Wait(results, {.count = 8, .timeout = std::chrono::milliseconds(500)});
  }
  for (const ObjectRef<int>& result : results) {
    try {
      EXPECT_EQ(runtime.Get(result, kPatience), 6);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("Too many open files"));
    }
  }
  Serve(runtime, 10);
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(5), kPatience), 10);
}

// Processes that this one has started.
std::vector<std::string> Children() {
  std::vector<std::string> children;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (std::string child; file >> child;) children.push_back(child);
  }
  return children;
}

// The number behind a word of one of the files of /proc that have a word a line.
long NumberOf(const std::filesystem::path& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string word; lines >> word;) {
    long number = 0;
    if (word == name && lines >> number) return number;
  }
  return 0;
}

// How often the driver's caretaker and the workers' main threads have slept.
long Sleeps() {
  long sleeps = 0;
  const auto count = [&](const std::filesystem::path& status) {
    sleeps += NumberOf(status, "voluntary_ctxt_switches:");
  };
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(thread.path() / "comm") >> name;
    if (name == "node") count(thread.path() / "status");
  }
  for (const std::string& child : Children()) count(fmt::format("/proc/{}/status", child));
  return sleeps;
}

// A look a millisecond by the caretaker and ten a second by each worker would be 6,000.
TEST(RuntimeWorkersSlowTest, ActorsThatDoNothingLetEverybodySleep) {
  Runtime runtime({.workers = 1});
  const Servers servers = Serve(runtime, 100);
  sleep(1);
  const long before = Sleeps();
  sleep(3);
  EXPECT_LT(Sleeps() - before, 600);
}

// The rings of an actor may hold 16 MiB; their pages are this process's, too.
TEST(RuntimeWorkersSlowTest, WhatABurstOfCallsTookIsGivenBack) {
  constexpr int kCalls = 60'000;
  constexpr long kKilobytesMax = 8 * 1024;
  const auto shared = [] { return NumberOf("/proc/self/status", "RssShmem:"); };
  Runtime runtime({.workers = 1});
  Servers servers = Serve(runtime, 4);
  const long before = shared();
  for (ActorRef<Server>& server : servers) {
    std::vector<ObjectRef<int>> results;
    for (int i = 0; i < kCalls; ++i) results.push_back(server.Call<&Server::Twice>(i));
    EXPECT_EQ(runtime.Get(results, kPatience).back(), 2 * (kCalls - 1));
  }
  const Deadline deadline = Deadline::After(kPatience);
  while (shared() - before > kKilobytesMax && !deadline.expired()) usleep(10'000);
  EXPECT_LE(shared() - before, kKilobytesMax);
}

int EndProcess(int status) { _exit(status); }

// A pipe that is full, in the place of standard error, until it is drained or goes.
class BlockedLog {
 public:
  BlockedLog() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_), 0);
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string text(4096, 'x');
    while (write(ends_[1], text.data(), text.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~BlockedLog() {
    dup2(before_, STDERR_FILENO);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    char text[4096];
    while (read(ends_[0], text, sizeof(text)) > 0) {
    }
    for (const int end : {ends_[1], before_})
      close(end);  // Who waits to write still needs a reader.
  }
  BlockedLog(const BlockedLog&) = delete;
  BlockedLog& operator=(const BlockedLog&) = delete;

 private:
  int before_;
  int ends_[2];
};

// The end of a worker is written to the log.
TEST(RuntimeWorkersTest, ALogThatNobodyReadsKeepsNoCallWaiting) {
  Runtime runtime({.workers = 2});
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(1)), 2);
  auto log = std::make_unique<BlockedLog>();
  std::promise<void> done;
  std::future<void> is_done = done.get_future();
  bool in_time = false;
  std::thread impatient([&] {
    in_time = is_done.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    log.reset();
  });
  const ObjectRef<int> lost = runtime.CallWith<EndProcess>({.retries = 0}, 3);
  EXPECT_THROW(runtime.Get(lost, kPatience), TaskError);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(runtime.Get(runtime.Call<Twice>(i), kPatience), 2 * i);
  done.set_value();
  impatient.join();
  EXPECT_TRUE(in_time);
}

// More segments than its socket has room for, all while it does something else.
TEST(RuntimeWorkersSlowTest, AReaderThatIsBusyIsOnlySlowAndKeepsNobodyElseWaiting) {
  constexpr int kWriters = 350;
  const std::filesystem::path flag =
      std::filesystem::temp_directory_path() / fmt::format("menger-workers-test-{}", getpid());
  std::filesystem::remove(flag);
  Runtime runtime({.workers = 1});
  ActorRef<Server> reader = runtime.CreateActor<Server>({});
  Servers writers = Serve(runtime, kWriters);
  std::vector<ObjectRef<Bytes>> values;
  for (ActorRef<Server>& writer : writers) values.push_back(writer.Call<&Server::Make>(100'000));
  runtime.Wait(values, {.count = kWriters, .timeout = kPatience});
  const ObjectRef<bool> busy = reader.Call<&Server::AwaitFile>(flag.string());
  std::vector<ObjectRef<int>> sums;
  for (const ObjectRef<Bytes>& value : values) sums.push_back(reader.Call<&Server::Sum>(value));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(runtime.Get(runtime.Call<Twice>(i), kPatience), 2 * i);
  std::ofstream(flag) << "go on";
  EXPECT_TRUE(runtime.Get(busy, kPatience));
  for (const ObjectRef<int>& sum : sums) ASSERT_EQ(runtime.Get(sum, kPatience), 700'000);
  std::filesystem::remove(flag);
}

}  // namespace
}  // namespace menger
