#include "menger/environments/hosted/hosted_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/environments/cart_pole.h"
#include "menger/environments/environment_testing.h"
#include "menger/environments/hosted/host_process.h"
#include "menger/environments/simulator_group.h"

namespace menger {
namespace {

using testing::HasSubstr;

HostProgram FakeHost() {
  return {.arguments = {FAKE_HOST}, .advice = "Ask the carter.", .step_deadline_seconds = 20};
}

EnvironmentEntry Open(const std::string& fault = "", int step = -1, double step_deadline = 20) {
  HostProgram program = FakeHost();
  program.step_deadline_seconds = step_deadline;
  return OpenHosted(program, fmt::format(R"({{"fault": "{}", "step": {}}})", fault, step));
}

struct Hosted : GroupUnderTest {
  using GroupUnderTest::GroupUnderTest;

  void Step(int row) {
    for (int i = 0; i < slab.positions(); ++i) {
      *slab.action<std::int64_t>(0, row, i) = (slab.first_step() + row + i) % 2;
    }
    group->Step(slab, row);
  }
  void Fill() {
    for (int row = 0; row < slab.horizon(); ++row) Step(row);
  }
};

template <typename Function>
std::string MessageOf(Function function, ErrorCode code) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(HostedGroupTest, StepsAsTheSameGroupDoesInThisProcess) {
  for (const ResetMode mode : {ResetMode::kSameStep, ResetMode::kBetweenSlabs}) {
    const GroupOptions options{.seed = 7, .reset_mode = mode};
    Hosted hosted(Open(), 5, 40, options);
    Hosted native(EntryOf<CartPole>(), 5, 40, options);
    const int steps[] = {0, 3, 50, 7, 1};
    for (Hosted* one : {&hosted, &native}) {
      one->group->Reset(one->slab, 0);
      one->group->StepRandomly(one->slab, 0, steps, 11);
    }
    for (int pass = 0; pass < 3; ++pass) {
      for (Hosted* one : {&hosted, &native}) {
        if (pass > 0) {
          one->slab.Carry(one->slab);
          one->group->ResetParked(one->slab, 0);
        }
        one->Fill();
      }
      EXPECT_EQ(Fingerprint(hosted.slab), Fingerprint(native.slab)) << "pass " << pass;
    }
  }
}

TEST(HostedGroupTest, ALoadedGroupGoesOnBitIdentically) {
  const std::string path = testing::TempDir() + "hosted_group_archive";
  Hosted first(Open(), 3, 30, {.seed = 1});
  first.group->Reset(first.slab, 0);
  first.Fill();
  {
    ArchiveWriter archive(path);
    first.group->Save(archive);
    archive.Commit();
  }
  first.slab.Carry(first.slab);
  Hosted second(Open(), 3, 30, {.seed = 1});
  ArchiveReader archive(path);
  second.group->Load(archive);
  // The rows before it are the collector's business.
  std::memcpy(second.slab.observation(0, 0), first.slab.observation(0, 0),
              3 * first.slab.observation_bytes(0));
  std::memcpy(second.slab.is_first(0), first.slab.is_first(0), 3);
  second.slab.set_first_step(first.slab.first_step());
  first.Fill();
  second.Fill();
  EXPECT_EQ(Fingerprint(first.slab), Fingerprint(second.slab));
  std::filesystem::remove_all(path);
}

TEST(HostedGroupTest, WhereTheHostIsDeadTheRestIsSavedAndALoadedGroupBeginsFreshEpisodes) {
  const std::string path = testing::TempDir() + "hosted_group_lost_archive";
  Hosted first(Open("kill when saved"), 3, 8, {.seed = 1});
  first.group->Reset(first.slab, 0);
  first.Fill();
  {
    ArchiveWriter archive(path);
    first.group->Save(archive);
    archive.Commit();
  }
  Hosted second(Open(), 3, 8, {.seed = 1});
  EXPECT_TRUE(second.group->resumable());
  ArchiveReader archive(path);
  second.group->Load(archive);
  EXPECT_FALSE(second.group->resumable());
  EXPECT_THAT(MessageOf([&] { second.Fill(); }, ErrorCode::kFailedPrecondition),
              HasSubstr("before Reset"));
  second.group->Reset(second.slab, 0);
  EXPECT_TRUE(second.group->resumable());
  second.Fill();
  EXPECT_NE(*first.slab.observation<float>(0, 0, 0), *second.slab.observation<float>(0, 0, 0));
  std::filesystem::remove_all(path);
}

TEST(HostedGroupTest, TheEntrySaysHowLongItsCallsMayTake) {
  EXPECT_GT(Open("", -1, /*step_deadline=*/100).longest_call_seconds, 45 + 2 * 100);
}

TEST(HostedGroupTest, AHostThatEndsIsAnErrorThatSaysHowItEnded) {
  for (const auto& [fault, cause] :
       {std::pair{"kill", "killed by SIGKILL"}, std::pair{"segfault", "killed by SIGSEGV"},
        std::pair{"exit", "ended with exit status 3"}}) {
    Hosted hosted(Open(fault, 4), 2, 8, {.seed = 5});
    hosted.group->Reset(hosted.slab, 0);
    const std::string message = MessageOf([&] { hosted.Fill(); }, ErrorCode::kUnavailable);
    EXPECT_THAT(message, HasSubstr("CartPole-v1 environments 0..1 (seeds 5..6), step 4"));
    EXPECT_THAT(message, HasSubstr(cause));
    EXPECT_THAT(message, HasSubstr(std::string("about to: ") + fault));
    EXPECT_THAT(message, HasSubstr("Ask the carter."));
    EXPECT_THAT(message, HasSubstr("on_environment_error"));
  }
}

TEST(HostedGroupTest, AHostThatHangsIsKilledAfterItsDeadline) {
  Hosted hosted(Open("hang", 2, /*step_deadline=*/0.5), 2, 8);
  hosted.group->Reset(hosted.slab, 0);
  EXPECT_THAT(MessageOf([&] { hosted.Fill(); }, ErrorCode::kUnavailable),
              HasSubstr("did not answer within 0.5 s and was killed"));
}

TEST(HostedGroupTest, AnErrorOfTheHostKeepsItsCodeAndText) {
  Hosted hosted(Open("throw", 2), 2, 8);
  hosted.group->Reset(hosted.slab, 0);
  EXPECT_EQ(MessageOf([&] { hosted.Fill(); }, ErrorCode::kFailedPrecondition), "the cart fell off");
}

TEST(HostedGroupTest, WithRestartsALostHostCostsOneInvalidRow) {
  for (const char* const fault : {"kill", "hang"}) {
    ErrorBudget errors(1);
    Hosted hosted(Open(fault, 4, /*step_deadline=*/1), 3, 8, {.seed = 5, .errors = &errors});
    hosted.group->Reset(hosted.slab, 0);
    hosted.Fill();
    EXPECT_EQ(errors.left(), 0);
    for (int row = 0; row < 8; ++row) {
      const bool lost = row == 4;
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(hosted.slab.valid(row)[i], lost ? 0 : 1) << row;
        EXPECT_EQ(hosted.slab.truncated(row)[i], lost ? 1 : 0);
        EXPECT_EQ(hosted.slab.terminated(row)[i] + hosted.slab.episode_end(row)[i], 0);
        EXPECT_EQ(hosted.slab.is_first(row + 1)[i], lost ? 1 : 0);
        ASSERT_EQ(hosted.slab.final_index(row)[i], lost ? hosted.slab.FinalSlot(row, i) : -1);
      }
    }
    // Cut at what the row itself showed; the new episodes begin otherwise than the first ones.
    for (int i = 0; i < 3; ++i) {
      const float* const final =
          hosted.slab.final_observation<float>(0, hosted.slab.FinalSlot(4, i));
      EXPECT_EQ(final[0], hosted.slab.observation<float>(0, 4, i)[0]);
      EXPECT_NE(hosted.slab.observation<float>(0, 5, i)[0],
                hosted.slab.observation<float>(0, 0, i)[0]);
    }
  }
}

TEST(HostedGroupTest, TheEpisodesOfANewHostAreNotParked) {
  ErrorBudget errors(1);
  Hosted hosted(Open("kill", 4), 3, 8,
                {.seed = 5, .reset_mode = ResetMode::kBetweenSlabs, .errors = &errors});
  hosted.group->Reset(hosted.slab, 0);
  hosted.Fill();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hosted.slab.valid(5)[i], 1);
  *hosted.slab.action<std::int64_t>(0, 5, 1) = 2;  // Would mean nothing where it is parked.
  EXPECT_EQ(MessageOf([&] { hosted.group->Step(hosted.slab, 5); }, ErrorCode::kInvalidArgument),
            "CartPole-v1 environment 1, step 5: action 2 is not one of 0..1");
}

TEST(HostedGroupTest, ActionsThatAreNoneAreRefusedAndTheCallCanBeRepeated) {
  Hosted hosted(Open(), 2, 4);
  hosted.group->Reset(hosted.slab, 0);
  *hosted.slab.action<std::int64_t>(0, 0, 1) = 2;
  EXPECT_EQ(MessageOf([&] { hosted.group->Step(hosted.slab, 0); }, ErrorCode::kInvalidArgument),
            "CartPole-v1 environment 1, step 0: action 2 is not one of 0..1");
  hosted.Step(0);
}

TEST(HostedGroupTest, MetricsOfTheHostAreSummedUntilTheyAreTaken) {
  Hosted hosted(Open(), 1, 4);
  hosted.group->Reset(hosted.slab, 0);
  hosted.Step(0);
  const std::vector<EnvironmentMetric> metrics = hosted.group->TakeMetrics();
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].name, "wobble");
  EXPECT_EQ(metrics[0].sum, 1.0);
  EXPECT_EQ(metrics[0].count, 2);
  EXPECT_TRUE(hosted.group->TakeMetrics().empty());
}

TEST(HostedGroupTest, WhatTheHostWarnsOfReachesTheUser) {
  ErrorBudget errors(3);
  Hosted hosted(Open("restart", 2), 1, 4, {.errors = &errors});
  hosted.group->Reset(hosted.slab, 0);
  testing::internal::CaptureStderr();
  hosted.Fill();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the cart fell off"));
  EXPECT_EQ(errors.left(), 2);
}

TEST(HostedGroupTest, WhatTheHostDoesNotKnowIsNotFound) {
  EXPECT_EQ(MessageOf([] { Open("describe"); }, ErrorCode::kNotFound), "there is no such cart");
}

TEST(HostedGroupTest, AProgramThatIsNotThereIsNamed) {
  EXPECT_THAT(MessageOf([] { OpenHosted({.arguments = {"no-such-program"}}, "{}"); },
                        ErrorCode::kFailedPrecondition),
              HasSubstr("cannot start 'no-such-program': No such file or directory"));
}

TEST(HostedGroupTest, ASlabInPlainMemoryIsRefused) {
  EnvironmentEntry entry = Open();
  entry.shares_memory = false;
  Hosted hosted(entry, 1, 4);
  EXPECT_THAT(
      MessageOf([&] { hosted.group->Reset(hosted.slab, 0); }, ErrorCode::kFailedPrecondition),
      HasSubstr("shared memory"));
}

TEST(HostProcessTest, IsGoneWithoutAZombieWhenItsOwnerGoes) {
  std::int32_t process = 0;
  {
    HostProcess host(FakeHost(), {});
    host.Call(HostCommand::kDescribe, 20, "{}");
    process = host.process();
    EXPECT_EQ(kill(process, 0), 0);
  }
  EXPECT_NE(kill(process, 0), 0);
  EXPECT_EQ(waitpid(process, nullptr, WNOHANG), -1);
}

TEST(HostProcessTest, OutlivesTheSignalsThatABatchSystemSendsToEveryProcess) {
  HostProcess host(FakeHost(), {});
  host.Call(HostCommand::kDescribe, 20, "{}");
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) kill(host.process(), number);
  EXPECT_NO_THROW(host.Call(HostCommand::kDescribe, 20, "{}"));
}

TEST(HostProcessTest, IsKilledByTheKernelWhenItsOwnerIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    HostProcess host(FakeHost(), {});
    host.Call(HostCommand::kDescribe, 20, "{}");
    const std::int32_t process = host.process();
    [[maybe_unused]] const auto written = write(ends[1], &process, sizeof(process));
    pause();
  }
  std::int32_t process = 0;
  ASSERT_EQ(read(ends[0], &process, sizeof(process)), static_cast<ssize_t>(sizeof(process)));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  // Where init does not reap it is a zombie: dead all the same.
  std::string state = "R";
  const Deadline deadline = Deadline::After(std::chrono::seconds(20));
  while ((state == "R" || state == "S") && !deadline.expired()) {
    usleep(1000);
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    state = text.empty() ? "gone" : text.substr(text.rfind(')') + 2, 1);
  }
  EXPECT_THAT(state, testing::AnyOf("gone", "Z", "X"));
}

}  // namespace
}  // namespace menger
