#include "menger/runtime/driver/worker_process.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/calls/worker_identity.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr std::chrono::seconds kPatience{60};

bool EndsSoon(pid_t process) {
  const Deadline deadline = Deadline::After(kPatience);
  for (; !deadline.expired(); usleep(1000)) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string stat;
    std::getline(file, stat);
    // A zombie where init does not reap.
    if (stat.empty() || stat.at(stat.rfind(')') + 2) == 'Z') return true;
  }
  return false;
}

int OpenDescriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// A node with one worker, number 7, which it speaks to through the control socket alone.
class Node {
 public:
  explicit Node(const WorkerProgram& program = {.arguments = {FAKE_WORKER}},
                std::chrono::nanoseconds deadline = kPatience)
      : workers_({.on_line =
                      [this](int worker, pid_t process, std::string_view line) {
                        lines_.push_back(fmt::format("{} {} {}", worker, process, line));
                      },
                  .on_end =
                      [this](int worker, pid_t, const ChildEnd& end) {
                        end_.set_value(fmt::format("worker {} {}", worker, end.cause));
                      }},
                 deadline),
        control_(workers_.Start(7, program)) {}

  void Connect() {
    int worker = 0;
    int driver = 0;
    ASSERT_EQ(std::sscanf(Hear().c_str(), "%d %d %d", &worker, &process_, &driver), 3);
    EXPECT_EQ(worker, 7);
    EXPECT_EQ(driver, getpid());
    workers_.Connected(7);
  }

  void Say(const std::string& command) {
    send(control_.get(), command.data(), command.size(), MSG_NOSIGNAL);
  }

  std::string Ask(const std::string& command) {
    Say(command);
    return Hear();
  }

  std::string Hear() {
    pollfd source{.fd = control_.get(), .events = POLLIN};
    char text[256];
    if (poll(&source, 1, 60'000) <= 0) return "";
    const ssize_t got = recv(control_.get(), text, sizeof(text), 0);
    return got <= 0 ? "" : std::string(text, static_cast<std::size_t>(got));
  }

  std::string End() {
    std::future<std::string> end = end_.get_future();
    return end.wait_for(kPatience) == std::future_status::ready ? end.get() : "goes on";
  }

  void HangUp() { control_.Close(); }
  WorkerProcesses& workers() { return workers_; }
  pid_t process() const { return process_; }                        // After Connect.
  const std::vector<std::string>& lines() const { return lines_; }  // After End.

 private:
  pid_t process_ = 0;
  std::vector<std::string> lines_;
  std::promise<std::string> end_;
  WorkerProcesses workers_;
  FileDescriptor control_;
};

TEST(WorkerProcessTest, HowAWorkerEndsIsInWords) {
  for (const auto& [command, cause] :
       {std::pair{"exit", "worker 7 ended with exit status 3"},
        std::pair{"segfault", "worker 7 was killed by SIGSEGV (Segmentation fault)"},
        std::pair{"abort", "worker 7 was killed by SIGABRT (Aborted)"}}) {
    Node node;
    node.Connect();
    node.Say(command);
    EXPECT_EQ(node.End(), cause);
  }
  Node node;
  node.Connect();
  kill(node.process(), SIGKILL);
  EXPECT_THAT(node.End(), HasSubstr("worker 7 was killed by SIGKILL: somebody did that"));
}

TEST(WorkerProcessTest, WhatCannotBeStartedSaysWhy) {
  EXPECT_EQ(Node({.arguments = {"no-such-python"}}).End(),
            "worker 7 cannot start 'no-such-python': No such file or directory");
}

TEST(WorkerProcessTest, LinesAreToldWithWorkerAndProcess) {
  Node node;
  node.Connect();
  EXPECT_EQ(node.Ask("print"), "done");
  node.Say("exit");
  node.End();
  EXPECT_THAT(node.lines(), ElementsAre(fmt::format("7 {} a line", node.process())));
}

TEST(WorkerProcessTest, WhatAWorkerHasStartedEndsWithIt) {
  for (const bool hang_up : {true, false}) {
    Node node;
    node.Connect();
    const pid_t started = std::stoi(node.Ask("start"));
    EXPECT_EQ(kill(started, 0), 0);
    if (hang_up) {
      node.HangUp();
    } else {
      kill(node.process(), SIGKILL);
    }
    EXPECT_THAT(node.End(), HasSubstr("was killed by SIGKILL"));
    EXPECT_TRUE(EndsSoon(started));
  }
}

TEST(WorkerProcessTest, WhatAWorkerForksCanBeTerminated) {
  if (std::string_view(MENGER_SANITIZER) == "thread")
    GTEST_SKIP() << "a fork gets no signals there";
  Node node;
  node.Connect();
  EXPECT_EQ(node.Ask("terminate"), "ended");
}

TEST(WorkerProcessTest, SignalsOfABatchSystemDoNotEndAWorkerAndAKillDoes) {
  Node node;
  node.Connect();
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) kill(node.process(), number);
  EXPECT_EQ(node.Ask("print"), "done");
  node.workers().KillAfter(7, {}, "it broke the protocol");
  EXPECT_EQ(node.End(), "worker 7 was killed: it broke the protocol");
}

TEST(WorkerProcessTest, OverItsBudgetAWorkerIsKilledWithUseAndBudgetNamed) {
  Node node({.arguments = {FAKE_WORKER}, .memory_bytes_max = std::uint64_t{32} << 20});
  node.Connect();
  node.Say("eat");
  EXPECT_THAT(node.End(), MatchesRegex("worker 7 was killed: it held [0-9]+\\.[0-9] MiB of "
                                       "memory, more than the 32\\.0 MiB of its budget"));
}

TEST(WorkerProcessTest, OneThatDoesNotConnectInTimeIsKilled) {
  Node node({.arguments = {"/bin/sh", "-c", "exec sleep 1000"}}, std::chrono::milliseconds(50));
  EXPECT_EQ(node.End(), "worker 7 was killed: 0.1 s were not enough before it connected");
}

TEST(WorkerProcessTest, VariablesAndFolderAreItsOwn) {
  Node node({.arguments = {"/bin/sh", "-c", "echo $COLOUR; pwd"},
             .variables = {{"COLOUR", "green"}},
             .folder = "/"});
  EXPECT_EQ(node.End(), "worker 7 ended with exit status 0 before it connected");
  ASSERT_EQ(node.lines().size(), 2u);
  EXPECT_THAT(node.lines()[0], HasSubstr(" green"));
  EXPECT_THAT(node.lines()[1], HasSubstr(" /"));
}

TEST(WorkerProcessTest, AShellMayStandBetweenNodeAndWorker) {
  Node node({.arguments = {"/bin/sh", "-c", std::string(FAKE_WORKER) + "; true"}});
  node.Connect();
  const pid_t worker = node.process();
  node.HangUp();
  EXPECT_THAT(node.End(), HasSubstr("was killed by SIGKILL"));
  EXPECT_TRUE(EndsSoon(worker));
}

TEST(WorkerProcessTest, AHundredStartsAndEndsLeaveNeitherDescriptorsNorZombies) {
  const int before = OpenDescriptors();
  {
    std::promise<void> done;
    int ends = 0;
    WorkerProcesses workers({.on_end = [&](int, pid_t, const ChildEnd&) {
      if (++ends == 100) done.set_value();
    }});
    for (int worker = 0; worker < 100; ++worker)
      workers.Start(worker, {.arguments = {FAKE_WORKER}});
    EXPECT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

// A driver in a process of its own: its workers are its own image. It prints three lines.
struct Driver {
  pid_t process = 0;
  std::vector<std::string> lines;
  std::promise<void> told;
  std::promise<void> ended;
  ChildProcesses processes;
  ChildId child = 0;

  Driver(std::vector<std::string> arguments, std::size_t line_count) {
    arguments.insert(arguments.begin(), FAKE_WORKER);
    child = processes.Start({.arguments = std::move(arguments)},
                            {.on_start = [this](pid_t started) { process = started; },
                             .on_line =
                                 [this, line_count](std::string_view line) {
                                   lines.emplace_back(line);
                                   if (lines.size() == line_count) told.set_value();
                                 },
                             .on_end = [this](const ChildEnd&) { ended.set_value(); }});
    EXPECT_EQ(told.get_future().wait_for(kPatience), std::future_status::ready);
  }
};

std::vector<pid_t> ChildrenOf(pid_t process) {
  std::vector<pid_t> children;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
    std::ifstream file(thread.path() / "children");
    children.insert(children.end(), std::istream_iterator<pid_t>(file), {});
  }
  return children;
}

TEST(WorkerProcessTest, AProgramIsItsOwnWorkerStartedAheadOrNot) {
  for (const char* const ahead : {"0", "2"}) {
    const Driver driver({"exit", ahead}, /*line_count=*/2);
    EXPECT_THAT(driver.lines[0], MatchesRegex("0 [0-9]+ [0-9]+; after .*"));
    EXPECT_EQ(driver.lines[1], "worker 0 ended with exit status 3");
  }
}

TEST(WorkerProcessTest, TheSystemsListOfProcessesShowsTheTask) {
  const Driver driver({"show"}, /*line_count=*/2);
  EXPECT_THAT(driver.lines[1], MatchesRegex("menger-worker: Rollout *"));
}

TEST(WorkerProcessTest, AMainThatForgetsToBeAWorkerIsNamedAndStartsNone) {
  setenv("FORGETFUL", "1", 1);
  const Driver driver({"exit"}, /*line_count=*/2);
  unsetenv("FORGETFUL");
  EXPECT_EQ(driver.lines[1],
            "worker 0 does not know that it is one: let main begin with: "
            "if (menger::IsWorker()) return menger::WorkerMain();");
}

TEST(WorkerProcessTest, NothingStaysWhereTheDriverIsKilled) {
  Driver driver({"start", "1"}, /*line_count=*/2);
  // The worker and the next, which is started ahead.
  const Deadline deadline = Deadline::After(kPatience);
  std::vector<pid_t> rest;
  while (rest.size() < 2 && !deadline.expired()) rest = ChildrenOf(driver.process);
  rest.push_back(std::stoi(driver.lines[1]));
  for (const pid_t process : rest) EXPECT_EQ(kill(process, 0), 0);
  driver.processes.Signal(driver.child, SIGKILL);
  EXPECT_EQ(driver.ended.get_future().wait_for(kPatience), std::future_status::ready);
  for (const pid_t process : rest) EXPECT_TRUE(EndsSoon(process));
}

}  // namespace
}  // namespace menger
