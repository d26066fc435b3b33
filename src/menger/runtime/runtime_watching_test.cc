// A job, seen by those who look at it while it runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "menger/base/file_testing.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/watching/job_socket.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

constexpr std::chrono::seconds kPatience{60};

int Square(int x) { return x * x; }
int Sleep(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return milliseconds;
}
int Crash(int x) {
  std::signal(SIGSEGV, SIG_DFL);  // Sanitizers have handlers of their own.
  kill(getpid(), SIGSEGV);
  return x;
}
int Print(int x) {
  printf("x is %d\n", x);
  fflush(stdout);
  return x;
}

// Memory that is really used, for a while.
std::size_t Use(std::size_t mebibytes) {
  std::vector<char> memory(mebibytes << 20, 'x');
  for (int i = 0; i < 600; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    memory[static_cast<std::size_t>(i)] = 'y';
  }
  return memory.size();
}

class Machine {
 public:
  int Say(int x) { return Print(x); }
};

class Tally {
 public:
  int Add() { return ++count_; }
  int Process() { return getpid(); }

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(count_);
  }

 private:
  int count_ = 0;
};

class RuntimeWatchingTest : public testing::Test {
 protected:
  RuntimeWatchingTest() { setenv("XDG_RUNTIME_DIR", folder.path().c_str(), /*overwrite=*/1); }
  ~RuntimeWatchingTest() override { unsetenv("XDG_RUNTIME_DIR"); }

  static std::string Ask(const std::string& question) {
    std::string answer;
    AskJob(
        FindJob(""), question, [&](std::string_view piece) { answer += piece; },
        Deadline::After(kPatience));
    return answer;
  }
  static nlohmann::json Status() { return nlohmann::json::parse(Ask("status")); }

  // Asks until `holds`; the last status.
  template <typename Holds>
  static nlohmann::json Await(Holds holds) {
    const Deadline deadline = Deadline::After(kPatience);
    nlohmann::json status = Status();
    for (; !holds(status) && !deadline.expired(); status = Status()) usleep(1000);
    EXPECT_TRUE(holds(status)) << status.dump(1);
    return status;
  }

  const testing_files::Folder folder;
};

class RuntimeStatusTest : public RuntimeWatchingTest,
                          public testing::WithParamInterface<Isolation> {};
INSTANTIATE_TEST_SUITE_P(Isolations, RuntimeStatusTest,
                         testing::Values(Isolation::kThread, Isolation::kProcess),
                         [](const auto& info) {
                           return info.param == Isolation::kThread ? "threads" : "processes";
                         });

TEST_P(RuntimeStatusTest, SaysWhatRunsAndWhatIsWaitedFor) {
  Runtime runtime({.workers = 1, .isolation = GetParam(), .job = 42});
  std::vector<ObjectRef<int>> calls;
  calls.push_back(runtime.Call<Sleep>(300));
  calls.push_back(runtime.Call<Square>(calls[0]));
  calls.push_back(runtime.Call<Square>(7));
  const nlohmann::json status = Await([](const nlohmann::json& now) {
    return !now["workers"].empty() && now["workers"][0]["running"] != "" &&
           now["tasks"]["submitted"] == 3;
  });
  EXPECT_EQ(status["job"], 42);
  EXPECT_EQ(status["process"], getpid());
  EXPECT_THAT(status["workers"][0]["running"].get<std::string>(), HasSubstr("Sleep"));
  EXPECT_EQ(status["workers"][0]["process"] == getpid(), GetParam() == Isolation::kThread);
  EXPECT_EQ(status["workers"][0]["memory_bytes"] == 0, GetParam() == Isolation::kThread);
  EXPECT_EQ(status["tasks"]["submitted"], 3);
  EXPECT_EQ(status["tasks"]["waiting"], 1);
  EXPECT_EQ(status["tasks"]["ready"].get<int>() + status["tasks"]["given"].get<int>(), 2);
  EXPECT_EQ(status["resources"][0]["name"], "cpu");
  runtime.Get(calls);
  EXPECT_EQ(Status()["tasks"]["finished"], 3);
  EXPECT_THAT(Ask("metrics"), HasSubstr("menger_tasks_total{what=\"finished\"} 3\n"));
  EXPECT_THAT(Ask("metrics"), HasSubstr("menger_node_events_total{event=\"task_ended\"} 3\n"));
}

TEST_P(RuntimeStatusTest, TheTimelineHasEveryRunOnceAndNoneOverlap) {
  Runtime runtime({.workers = 2, .isolation = GetParam()});
  std::vector<ObjectRef<int>> calls;
  for (int i = 0; i < 500; ++i) calls.push_back(runtime.Call<Square>(i));
  runtime.Get(calls);
  const auto events = nlohmann::json::parse(Ask("timeline"))["traceEvents"];
  std::map<int, double> until;  // By worker.
  int runs = 0;
  for (const auto& event : events) {
    if (event["ph"] != "X") continue;
    ++runs;
    EXPECT_THAT(event["name"].get<std::string>(), HasSubstr("Square"));
    double& before = until[event["tid"].get<int>()];
    const double begin = event["ts"].get<double>();
    EXPECT_GE(begin, before - 0.002);  // Microseconds, rounded to nanoseconds.
    before = begin + event["dur"].get<double>();
  }
  EXPECT_EQ(runs, 500);
}

TEST_P(RuntimeStatusTest, ActorsAreListed) {
  Runtime runtime({.workers = 1, .isolation = GetParam()});
  const auto actor = runtime.CreateActor<Machine>({.name = "press", .restarts = 3});
  runtime.Get(actor.Call<&Machine::Say>(1));
  const nlohmann::json status = Status();
  ASSERT_EQ(status["actors"].size(), 1u);
  EXPECT_EQ(status["actors"][0]["name"], "press");
  EXPECT_EQ(status["actors"][0]["state"], "alive");
  EXPECT_EQ(status["actors"][0]["restarts_left"], 3);
}

TEST_F(RuntimeWatchingTest, WhatAnActorThatIsMadeAgainCostIsCounted) {
  Runtime runtime({.workers = 1});
  const auto tally = runtime.CreateActor<Tally>({.restarts = 1, .checkpoint_every = 2});
  const int process = runtime.Get(tally.Call<&Tally::Process>());
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(runtime.Get(tally.Call<&Tally::Add>()), i);
  kill(process, SIGKILL);
  EXPECT_EQ(runtime.Get(tally.Call<&Tally::Add>(), kPatience), 5);
  const nlohmann::json status = Status();
  EXPECT_EQ(status["actor_count"], 1);
  EXPECT_EQ(status["actors_restarted"], 1);
  EXPECT_GE(status["checkpoints"], 2);
  EXPECT_GE(status["replayed"], 1);
  EXPECT_LE(status["replayed"], 3);
  EXPECT_THAT(Ask("metrics"), HasSubstr("menger_actors_total{what=\"restarted\"} 1\n"));
}

TEST_F(RuntimeWatchingTest, LossesAreTheirCauses) {
  Runtime runtime({.workers = 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(runtime.Get(runtime.CallWith<Crash>({.retries = 0}, i)), TaskError);
  }
  const auto losses = Status()["losses"];
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0]["times"], 3);
  EXPECT_THAT(losses[0]["text"].get<std::string>(),
              MatchesRegex("worker [0-9]+, process [0-9]+ was killed by SIGSEGV.*, while it ran "
                           ".*Crash.*"));
}

// Waits until two others do so too, and ends its process.
class Crowd {
 public:
  void Join() {
    for (++joined_; joined_ < 3;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::raise(SIGKILL);
  }

 private:
  std::atomic<int> joined_{0};
};

TEST_F(RuntimeWatchingTest, LossesNameOneOfSeveralCalls) {
  Runtime runtime({.workers = 1});
  const auto crowd = runtime.CreateActor<Crowd>({.concurrency = 3});
  std::vector<ObjectRef<void>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(crowd.Call<&Crowd::Join>());
  for (const ObjectRef<void>& call : calls) EXPECT_THROW(runtime.Get(call, kPatience), TaskError);
  const auto losses = Status()["losses"];
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_THAT(losses[0]["text"].get<std::string>(),
              MatchesRegex(".* killed by SIGKILL.*, while it ran .*Join.* and 2 other calls; its "
                           "actor Crowd is dead"));
}

TEST_F(RuntimeWatchingTest, AnErrorNamesTheFunction) {
  Runtime runtime({.workers = 1});
  try {
    runtime.Get(runtime.CallWith<Crash>({.retries = 0}, 1));
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_THAT(error.failure().task, HasSubstr("Crash"));
  }
}

TEST_F(RuntimeWatchingTest, AWorkerOverItsBudgetIsKilledAndNamed) {
  Runtime runtime({.workers = 2, .worker_program = {.memory_bytes_max = std::uint64_t{100} << 20}});
  const auto modest = runtime.Call<Square>(3);
  try {
    runtime.Get(runtime.Call<Use>(std::size_t{200}), kPatience);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kOutOfMemory);
    EXPECT_THAT(error.failure().text,
                HasSubstr("MiB of memory, more than the 100.0 MiB of its budget"));
    EXPECT_THAT(error.failure().text,
                testing::EndsWith("begun 1 time"));  // In spite of its retries.
    EXPECT_THAT(error.failure().worker, MatchesRegex("worker [0-9]+, process [0-9]+"));
  }
  EXPECT_EQ(runtime.Get(modest), 9);
  EXPECT_EQ(runtime.Get(runtime.Call<Square>(4)), 16);
}

TEST_F(RuntimeWatchingTest, ACallOverItsBudgetIsRunAgainWhereErrorsAreRetriedSlow) {
  Runtime runtime({.workers = 1, .worker_program = {.memory_bytes_max = std::uint64_t{100} << 20}});
  try {
    runtime.Get(runtime.CallWith<Use>({.retries = 1, .retry_errors = true}, std::size_t{200}),
                kPatience);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kOutOfMemory);
    EXPECT_THAT(error.failure().text, HasSubstr("begun 2 times"));
  }
}

TEST_F(RuntimeWatchingTest, LinesOfWorkersAreToldWithWhoPrintedThem) {
  std::mutex mutex;
  std::vector<std::string> lines;
  {
    Runtime runtime({.workers = 1, .on_line = [&](const WorkerLine& line) {
                       const std::lock_guard lock(mutex);
                       lines.push_back(fmt::format("{}|{}", line.name, line.text));
                       EXPECT_GT(line.process, 0);
                     }});
    runtime.Get(runtime.Call<Print>(5));
    const auto actor = runtime.CreateActor<Machine>({.name = "press"});
    runtime.Get(actor.Call<&Machine::Say>(6));
  }
  // The first may be read when the actor has come to live there.
  EXPECT_THAT(lines,
              testing::IsSupersetOf({MatchesRegex(".+\\|x is 5"), MatchesRegex("press\\|x is 6")}));
}

TEST_F(RuntimeWatchingTest, LinesHaveAPrefixUnlessItIsNotWished) {
  const auto printed = [](bool prefix) {
    testing::internal::CaptureStderr();
    {
      Runtime runtime({.workers = 1, .line_prefix = prefix});
      runtime.Get(runtime.Call<Print>(5));
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(printed(true), MatchesRegex("\\(worker [0-9]+ pid=[0-9]+\\) x is 5\n"));
  EXPECT_THAT(printed(false), "x is 5\n");
}

}  // namespace
}  // namespace menger
