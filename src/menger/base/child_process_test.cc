#include "menger/base/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

// What a child has done, put down by the watching thread.
struct Story {
  pid_t process = 0;
  std::vector<std::string> lines;
  ChildEnd end;
  int ends = 0;

  ChildEvents Events() {
    return {.on_start = [this](pid_t started) { process = started; },
            .on_line = [this](std::string_view line) { lines.emplace_back(line); },
            .on_end =
                [this](const ChildEnd& ended) {
                  end = ended;
                  ++ends;
                }};
  }
};

ChildProgram Shell(const std::string& script) { return {.arguments = {"/bin/sh", "-c", script}}; }

Story StoryOf(const ChildProgram& program) {
  Story story;
  ChildProcesses processes;
  const ChildId child = processes.Start(program, story.Events());
  EXPECT_TRUE(processes.WaitForEnd(child, kPatience));
  EXPECT_EQ(story.ends, 1);
  return story;
}

bool Lives(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  std::getline(file, stat);
  // A zombie where init does not reap.
  return !stat.empty() && stat.at(stat.rfind(')') + 2) != 'Z';
}

bool EndsSoon(pid_t process) {
  const Deadline deadline = Deadline::After(kPatience);
  while (Lives(process) && !deadline.expired()) usleep(1000);
  return !Lives(process);
}

int OpenDescriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(ChildProcessTest, WhatItPrintsIsToldLineByLine) {
  const Story story = StoryOf(Shell("echo one; echo two >&2; echo; printf three"));
  EXPECT_THAT(story.lines, ElementsAre("one", "two", "three"));
  EXPECT_EQ(story.end.cause, "ended with exit status 0");
}

TEST(ChildProcessTest, ALongLineComesInPieces) {
  const Story story = StoryOf(Shell("head -c 10000 /dev/zero | tr '\\0' x"));
  ASSERT_EQ(story.lines.size(), 3u);
  EXPECT_EQ(story.lines[0], std::string(4096, 'x'));
  EXPECT_EQ(story.lines[2], std::string(10000 - 2 * 4096, 'x'));
}

TEST(ChildProcessTest, NoLineIsLostWhereItEndsAtOnce) {
  const Story story = StoryOf(Shell("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done"));
  ASSERT_EQ(story.lines.size(), 5000u);
  EXPECT_EQ(story.lines.back(), "4999");
}

TEST(ChildProcessTest, ItsEndIsInWords) {
  EXPECT_EQ(StoryOf(Shell("exit 3")).end.cause, "ended with exit status 3");
  EXPECT_THAT(StoryOf(Shell("kill -SEGV $$")).end.cause, HasSubstr("was killed by SIGSEGV"));
  EXPECT_THAT(StoryOf(Shell("kill -ABRT $$")).end.cause, HasSubstr("was killed by SIGABRT"));
  EXPECT_THAT(StoryOf(Shell("kill -KILL $$")).end.cause, HasSubstr("somebody did that"));
}

TEST(ChildProcessTest, WhatCannotBeStartedSaysWhy) {
  const Story missing = StoryOf({.arguments = {"no-such-program"}});
  EXPECT_FALSE(missing.end.started);
  EXPECT_EQ(missing.process, 0);
  EXPECT_EQ(missing.end.cause, "cannot start 'no-such-program': No such file or directory");

  ChildProgram elsewhere = Shell("true");
  elsewhere.folder = "/no/such/folder";
  EXPECT_EQ(StoryOf(elsewhere).end.cause,
            "cannot start '/bin/sh' in the folder '/no/such/folder': No such file or directory");

  const std::string script = testing::TempDir() + "child_process_script";
  WriteFileAtomically(script, "#!/no/such/interpreter\n");
  EXPECT_THAT(StoryOf({.arguments = {script}}).end.cause, HasSubstr("Permission denied"));
  chmod(script.c_str(), 0755);
  EXPECT_THAT(StoryOf({.arguments = {script}}).end.cause, HasSubstr("the interpreter or loader"));
  std::filesystem::remove(script);
}

TEST(ChildProcessTest, VariablesFolderInputAndGroupAreAsAsked) {
  setenv("CHILD_KEPT", "kept", 1);
  setenv("CHILD_REPLACED", "old", 1);
  ChildProgram program = Shell(
      "echo $CHILD_KEPT $CHILD_REPLACED $CHILD_ADDED; pwd; cat; echo input is empty;"
      "[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && echo leads its group");
  program.variables = {{"CHILD_REPLACED", "new"}, {"CHILD_ADDED", "a=b"}};
  program.folder = "/";
  EXPECT_THAT(StoryOf(program).lines,
              ElementsAre("kept new a=b", "/", "input is empty", "leads its group"));
}

TEST(ChildProcessTest, TheFileMayBeCalledOtherwise) {
  ChildProgram program{.arguments = {"another-name", "-c", "echo $0"}, .file = "/bin/sh"};
  EXPECT_THAT(StoryOf(program).lines, ElementsAre("another-name"));
}

TEST(ChildProcessTest, ItInheritsTheDescriptorsThatItIsGivenAndNoOthers) {
  const FileDescriptor given(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const FileDescriptor forgotten(open("/dev/null", O_RDONLY));  // By a library, say.
  ChildProgram program = Shell(fmt::format(
      "for n in {} {}; do [ -e /proc/$$/fd/$n ] && echo $n; done", given.get(), forgotten.get()));
  program.inherited = {given.get()};
  EXPECT_THAT(StoryOf(program).lines, ElementsAre(std::to_string(given.get())));
}

TEST(ChildProcessTest, SignalsOfABatchSystemDoNotEndItAndAKillDoes) {
  Story story;
  ChildProcesses processes;
  std::promise<void> ready;
  ChildEvents events = story.Events();
  events.on_line = [&](std::string_view) { ready.set_value(); };
  const ChildId child = processes.Start(Shell("echo ready; exec sleep 1000"), events);
  ASSERT_EQ(ready.get_future().wait_for(kPatience), std::future_status::ready);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) processes.Signal(child, number);
  EXPECT_FALSE(processes.WaitForEnd(child, std::chrono::milliseconds(50)));
  processes.KillAfter(child, std::chrono::milliseconds(10), "it was a test");
  EXPECT_TRUE(processes.WaitForEnd(child, kPatience));
  EXPECT_EQ(story.end.cause, "was killed: it was a test");
  EXPECT_NE(kill(story.process, 0), 0);
}

TEST(ChildProcessTest, ACancelledKillIsNone) {
  Story story;
  ChildProcesses processes;
  const ChildId child = processes.Start(Shell("sleep 0.3; exit 7"), story.Events());
  processes.KillAfter(child, std::chrono::milliseconds(100), "it was late");
  processes.CancelKill(child);
  EXPECT_TRUE(processes.WaitForEnd(child, kPatience));
  EXPECT_EQ(story.end.cause, "ended with exit status 7");
}

TEST(ChildProcessTest, WhatItLeavesInItsGroupIsKilled) {
  const Story story = StoryOf(Shell("sleep 1000 & echo $!; kill -SEGV $$"));
  ASSERT_EQ(story.lines.size(), 1u);
  EXPECT_TRUE(EndsSoon(std::stoi(story.lines[0])));
}

TEST(ChildProcessTest, OverItsMemoryBudgetItIsKilledAndTheCauseNamesUseAndBudget) {
  Story story;
  ChildProcesses processes;
  const ChildId child = processes.Start(
      Shell("x=$(head -c 50000000 /dev/zero | tr '\\0' x); sleep 1000"), story.Events());
  processes.LimitMemory(child, std::uint64_t{20} << 20);
  EXPECT_TRUE(processes.WaitForEnd(child, kPatience));
  EXPECT_THAT(story.end.cause,
              testing::MatchesRegex("was killed: it held [0-9.]+ MiB of memory, more than the "
                                    "20.0 MiB of its budget"));
  EXPECT_TRUE(story.end.over_memory);
}

TEST(ChildProcessTest, ItEndsWithItsOwner) {
  Story story;
  {
    ChildProcesses processes;
    std::promise<void> ready;
    ChildEvents events = story.Events();
    events.on_line = [&](std::string_view) { ready.set_value(); };
    processes.Start(Shell("echo ready; sleep 1000"), events);
    ready.get_future().wait_for(kPatience);
  }
  EXPECT_EQ(story.ends, 1);
  EXPECT_NE(kill(story.process, 0), 0);
}

TEST(ChildProcessTest, TheEndOfOneMayStartAnother) {
  ChildProcesses processes;
  std::promise<std::string> line;
  processes.Start(Shell("exit 1"), {.on_end = [&](const ChildEnd&) {
                    processes.Start(Shell("echo another"), {.on_line = [&](std::string_view text) {
                                      line.set_value(std::string(text));
                                    }});
                  }});
  EXPECT_EQ(line.get_future().get(), "another");
}

TEST(ChildProcessTest, AnEndWhoseStatusIsLostIsNoticed) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  EXPECT_THAT(StoryOf(Shell("echo hello")).end.cause, HasSubstr("took its exit status"));
  signal(SIGCHLD, before);
}

TEST(ChildProcessTest, AHundredStartsAndEndsLeaveNeitherDescriptorsNorZombies) {
  const int before = OpenDescriptors();
  {
    ChildProcesses processes;
    int ends = 0;
    ChildId last = 0;
    for (int i = 0; i < 100; ++i) {
      const ChildProgram program =
          i % 3 == 0 ? ChildProgram{.arguments = {"no-such-program"}} : Shell("exit 3");
      last = processes.Start(program, {.on_end = [&](const ChildEnd&) { ++ends; }});
    }
    EXPECT_TRUE(processes.WaitForEnd(last, kPatience));
    for (ChildId child = 1; child <= last; ++child) processes.WaitForEnd(child, kPatience);
    EXPECT_EQ(ends, 100);
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(ChildProcessTest, ExitCausesAreInWords) {
  EXPECT_EQ(ExitCause(3 << 8), "ended with exit status 3");
  EXPECT_THAT(ExitCause(SIGSEGV), HasSubstr("SIGSEGV"));
  EXPECT_THAT(ExitCause(SIGKILL), HasSubstr("memory"));
}

TEST(ChildProcessesTest, WhatWasPrintedBeforeIsToldBeforeAfterReadingIs) {
  const std::string folder = testing::TempDir();
  std::atomic<int> lines{0};
  ChildProcesses processes;
  const ChildEvents events{.on_line = [&lines](std::string_view) { ++lines; }};
  // Each has printed once there is its file.
  constexpr int kChildren = 5;
  std::vector<std::string> files;
  for (int i = 0; i < kChildren; ++i) {
    files.push_back(fmt::format("{}/menger-printed-{}-{}", folder, getpid(), i));
    processes.Start(Shell(fmt::format("echo a; echo b; touch {}; sleep 1000", files.back())),
                    events);
  }
  const Deadline deadline = Deadline::After(kPatience);
  for (const std::string& file : files) {
    while (!std::filesystem::exists(file) && !deadline.expired()) usleep(1000);
    std::filesystem::remove(file);
  }
  std::promise<int> seen;
  processes.AfterReading([&] { seen.set_value(lines); });
  std::future<int> result = seen.get_future();
  ASSERT_EQ(result.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(result.get(), 2 * kChildren);
}

}  // namespace
}  // namespace menger
