#include "menger/environments/hosted/hosted_environments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/environments/cart_pole.h"
#include "menger/environments/environment_testing.h"
#include "menger/environments/pendulum.h"
#include "menger/environments/simulator_group.h"

namespace menger {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Hosted : GroupUnderTest {
  using GroupUnderTest::GroupUnderTest;

  void Fill(const GroupUnderTest* like = nullptr) {
    for (int row = 0; row < slab.horizon(); ++row) {
      if (like != nullptr) {
        std::memcpy(slab.action(0, row), like->slab.action(0, row),
                    slab.spec().action[0].bytes() * static_cast<std::size_t>(slab.positions()));
      }
      group->Step(slab, row);
    }
  }
};

class HostedEnvironmentsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string ask =
        std::string(MENGER_TEST_PYTHON) + " -c 'import gymnasium, numpy' 2>/dev/null";
    if (std::system(ask.c_str()) != 0) GTEST_SKIP() << "no gymnasium in " << MENGER_TEST_PYTHON;
    Options options("host");
    family_.Declare(options);
    options.Set("python", std::string(MENGER_TEST_PYTHON));
    options.Set("path", std::vector<std::string>{std::string(MENGER_SOURCE_FOLDER) +
                                                 "/src/menger/environments/hosted/testing"});
    options.Set("metrics", std::vector<std::string>{"luck", "success"});
  }

  EnvironmentEntry Open(const std::string& name, const std::string& arguments = "",
                        double step_deadline = 30, bool vector = false) {
    Options options("host");
    family_.Declare(options);
    options.Set("arguments", arguments);
    options.Set("step_deadline", step_deadline);
    options.Set("vector", vector);
    return family_.Open(name, EnvironmentUse::kTraining);
  }
  EnvironmentEntry OpenTrouble(const std::string& trouble, double step_deadline = 30) {
    return Open("host_examples:Trouble", fmt::format(R"({{"trouble": "{}"}})", trouble),
                step_deadline);
  }

  HostedEnvironments family_;
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

TEST(HostedEnvironmentsNamesTest, NamesThatLookLikePythonAreServed) {
  const HostedEnvironments family;
  for (const char* const name :
       {"host:CartPole-v1", "host:ALE/Pong-v5", "Taxi-v3", "ALE/Pong-v5", "phys2d/CartPole-v0",
        "my_package.module:MyEnv-v0", "module:Class"}) {
    EXPECT_TRUE(family.Serves(name)) << name;
  }
  for (const char* const name : {"cartpole", "host:", "CartPole-v", "-v1", "3d:Env", "a b-v1",
                                 "module:", ".x:Env", "x.:E"}) {
    EXPECT_FALSE(family.Serves(name)) << name;
  }
}

TEST_F(HostedEnvironmentsTest, CartPoleEqualsTheNativeOneStepForStep) {
  GroupUnderTest native(EntryOf<CartPole>(), 4, 400, {.seed = 17});
  Hosted hosted(Open("host:CartPole-v1"), 4, 400, {.seed = 17});
  EXPECT_EQ(hosted.group->spec().max_episode_steps, 500);
  EXPECT_EQ(hosted.group->spec().reward_threshold, 475.0);
  native.group->Reset(native.slab, 0);
  hosted.group->Reset(hosted.slab, 0);
  native.Fill(/*salt=*/3, /*go_on=*/false);
  hosted.Fill(&native);
  EXPECT_EQ(Fingerprint(native.slab), Fingerprint(hosted.slab));
}

TEST_F(HostedEnvironmentsTest, PendulumWithClippedActionsEqualsTheNativeOneStepForStep) {
  const GroupOptions options{
      .seed = 5, .reset_mode = ResetMode::kBetweenSlabs, .clip_actions = true};
  GroupUnderTest native(EntryOf<Pendulum>(), 3, 230, options);
  Hosted hosted(Open("host:Pendulum-v1"), 3, 230, options);
  native.group->Reset(native.slab, 0);
  hosted.group->Reset(hosted.slab, 0);
  for (int pass = 0; pass < 2; ++pass) {
    if (pass > 0) {
      hosted.slab.Carry(hosted.slab);
      hosted.group->ResetParked(hosted.slab, 0);
      native.slab.Carry(native.slab);
      native.group->ResetParked(native.slab, 0);
    }
    native.Fill(/*salt=*/4, /*go_on=*/false);
    hosted.Fill(&native);
    EXPECT_EQ(Fingerprint(native.slab), Fingerprint(hosted.slab)) << pass;
  }
}

TEST_F(HostedEnvironmentsTest, EverySpaceHasItsLeaves) {
  const EnvironmentEntry entry = Open("host_examples:Spaces", R"({"episode": 3})");
  const Spec& spec = entry.spec.observation;
  ASSERT_EQ(spec.size(), 6);
  EXPECT_EQ(spec[0].name, kActionMask);
  EXPECT_EQ(spec[0].space, Space::kMask);
  EXPECT_EQ(spec[1].name, "observation/level");
  EXPECT_EQ(spec[1].counts, std::vector<std::int64_t>{4});
  EXPECT_EQ(spec[2].name, "observation/pair/0");
  EXPECT_EQ(spec[2].counts, (std::vector<std::int64_t>{3, 9}));
  EXPECT_EQ(spec[3].name, "observation/pair/1");
  EXPECT_EQ(spec[3].dtype, DataType::kUint8);
  EXPECT_EQ(spec[4].name, "observation/position");
  EXPECT_EQ(spec[4].low, std::vector<double>{-1});
  EXPECT_TRUE(std::isinf(spec[4].high[0]));
  EXPECT_EQ(spec[5].shape, (Shape{2, 2}));
  EXPECT_EQ(entry.spec.action[0].counts, std::vector<std::int64_t>{3});

  Hosted hosted(entry, 2, 4, {.seed = 100});
  hosted.group->Reset(hosted.slab, 0);
  for (int row = 0; row < 4; ++row) {
    hosted.slab.action<std::int64_t>(0, row)[0] = 0;
    hosted.slab.action<std::int64_t>(0, row)[1] = 2;
  }
  hosted.Fill();
  const Slab& slab = hosted.slab;
  for (int row = 0; row < 5; ++row) {
    const int t = row % 3;
    EXPECT_EQ(slab.observation<std::uint8_t>(0, row, 1)[1], t % 2);
    EXPECT_EQ(*slab.observation<std::int64_t>(1, row, 1), t % 4);
    EXPECT_EQ(slab.observation<std::int64_t>(2, row, 1)[1], t % 9);
    EXPECT_EQ(slab.observation<std::uint8_t>(3, row, 1)[3], t);
    EXPECT_EQ(slab.observation<double>(4, row, 1)[0], t + 0.5);
    EXPECT_EQ(slab.observation<std::uint8_t>(5, row, 1)[2], 1);
    if (row < 3) {
      EXPECT_EQ(slab.observation<double>(4, row, 1)[1], 101.0);  // Its seed.
    }
    EXPECT_EQ(slab.is_first(row)[1], t == 0 ? 1 : 0);
    if (row == 4) continue;
    EXPECT_EQ(slab.reward(row)[0], -10.0);  // Action 0 is the space's start, -1.
    EXPECT_EQ(slab.reward(row)[1], 10.0);
    EXPECT_EQ(slab.terminated(row)[0], row == 2 ? 1 : 0);
  }
  ASSERT_EQ(slab.final_index(2)[1], slab.FinalSlot(2, 1));
  EXPECT_EQ(slab.final_observation<double>(4, slab.FinalSlot(2, 1))[0], 3.5);

  const std::vector<EnvironmentMetric> metrics = hosted.group->TakeMetrics();
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].name, "luck");
  EXPECT_EQ(metrics[0].sum, 1.5);  // 0.75 at the end of each of two episodes.
  EXPECT_EQ(metrics[0].count, 2);
  EXPECT_EQ(metrics[1].sum, 2.0);
}

TEST_F(HostedEnvironmentsTest, AParkedColumnAllowsEveryActionWhenItsGameAllowsNoMore) {
  Hosted hosted(Open("host_examples:Spaces", R"({"episode": 3})"), 1, 5,
                {.seed = 1, .reset_mode = ResetMode::kBetweenSlabs});
  hosted.group->Reset(hosted.slab, 0);
  hosted.Fill();
  EXPECT_EQ(hosted.slab.final_observation<std::uint8_t>(0, hosted.slab.FinalSlot(2, 0))[0], 0);
  for (int row = 3; row <= 5; ++row) {
    for (int action = 0; action < 3; ++action) {
      EXPECT_EQ(hosted.slab.observation<std::uint8_t>(0, row)[action], 1) << row;
    }
  }
}

TEST_F(HostedEnvironmentsTest, ImagesAreStoredWithTheirChannelsFirst) {
  Hosted hosted(Open("host_examples:Pictures"), 2, 3);
  EXPECT_EQ(hosted.group->spec().observation[0].shape, (Shape{3, 6, 5}));
  hosted.group->Reset(hosted.slab, 0);
  hosted.Fill();
  const Slab& slab = hosted.slab;
  const auto check = [](const std::uint8_t* image, int time) {
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 6; ++y) {
        for (int x = 0; x < 5; ++x) {
          const int expected = c + y + x == 0 ? 100 + time : (y * 5 + x) * 3 + c;
          ASSERT_EQ(image[(c * 6 + y) * 5 + x], expected) << c << ' ' << y << ' ' << x;
        }
      }
    }
  };
  for (int row = 0; row < 4; ++row) check(slab.observation<std::uint8_t>(0, row, 1), row % 2);
  check(slab.final_observation<std::uint8_t>(0, slab.FinalSlot(1, 1)), 2);
}

TEST_F(HostedEnvironmentsTest, OnlyWhatLooksLikeAnImageIsOne) {
  const auto shape = [this](const char* arguments) {
    return Open("host_examples:Pictures", arguments).spec.observation[0].shape;
  };
  EXPECT_EQ(shape(R"({"shape": [20, 16]})"), (Shape{1, 20, 16}));
  EXPECT_EQ(shape(R"({"shape": [20, 15]})"), (Shape{20, 15}));
  EXPECT_EQ(shape(R"({"shape": [4, 84, 84]})"), (Shape{4, 84, 84}));
  EXPECT_EQ(shape(R"({"shape": [4, 84, 4]})"), (Shape{4, 84, 4}));

  Hosted gray(Open("host_examples:Pictures", R"({"shape": [16, 16]})"), 2, 3);
  gray.group->Reset(gray.slab, 0);
  gray.Fill();
  EXPECT_EQ(gray.slab.observation<std::uint8_t>(0, 3, 1)[0], 101);
  EXPECT_EQ(gray.slab.observation<std::uint8_t>(0, 3, 1)[255], 255);
}

TEST_F(HostedEnvironmentsTest, OnlyNumbersThatWereToldAreMetrics) {
  for (const bool vector : {false, true}) {
    Hosted hosted(Open(vector ? "host_examples:many_lucky" : "host_examples:Lucky", "", 30, vector),
                  4, 3);
    hosted.group->Reset(hosted.slab, 0);
    hosted.Fill();
    for (const EnvironmentMetric& metric : hosted.group->TakeMetrics()) {
      const bool luck = metric.name == "luck";
      EXPECT_EQ(metric.count, luck ? 6 : 3) << metric.name;  // Of two environments; of one.
      EXPECT_EQ(metric.sum, 3.0) << metric.name;
    }
  }
}

TEST_F(HostedEnvironmentsTest, ManySlowResetsInAStepAfterFastOnesAreNoHang) {
  const EnvironmentEntry entry = Open(
      "host_examples:Lucky", R"({"episode": 3, "reset_seconds": 0.25})", /*step_deadline=*/1.5);
  Hosted hosted(entry, 8, 3);
  hosted.group->Reset(hosted.slab, 0);
  EXPECT_NO_THROW(hosted.Fill());
}

TEST_F(HostedEnvironmentsTest, AHostOutlivesSignalsButItsChildrenDoNot) {
  Hosted hosted(OpenTrouble("signals"), 3, 8);
  hosted.group->Reset(hosted.slab, 0);
  EXPECT_NO_THROW(hosted.Fill());
}

TEST_F(HostedEnvironmentsTest, IdsWithoutANamespaceMayBeThoseOfAPackageThatIsNotImportedYet) {
  const std::string folder = testing::TempDir() + "hosted_environments_package";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/ale_py.py") << "import gymnasium\n"
                                          "gymnasium.register('PongNoFrameskip-v4', entry_point="
                                          "'host_examples:Pictures')\n";
  Options options("host");
  family_.Declare(options);
  options.Set("path", std::vector<std::string>{folder, std::string(MENGER_SOURCE_FOLDER) +
                                                           "/src/menger/environments/hosted/"
                                                           "testing"});
  EXPECT_EQ(Open("PongNoFrameskip-v4").spec.observation[0].shape, (Shape{3, 6, 5}));
  std::filesystem::remove_all(folder);
}

TEST_F(HostedEnvironmentsTest, SpacesThatNoSlabHoldsAreRefusedByName) {
  const auto refusal = [this](const char* arguments) {
    return MessageOf([&] { Open("host_examples:Unseen", arguments); },
                     ErrorCode::kFailedPrecondition);
  };
  EXPECT_THAT(refusal("{}"), HasSubstr("nothing but Text, of which nothing is learned"));
  EXPECT_THAT(refusal(R"({"observation": "graph"})"), HasSubstr("Sequence"));
  EXPECT_THAT(refusal(R"({"observation": "box", "action": "dict"})"),
              HasSubstr("the action space Dict is not supported"));
  EXPECT_THAT(refusal(R"({"observation": "box", "action": "text"})"),
              AllOf(HasSubstr("Text"), HasSubstr("actions may be Box")));
}

TEST_F(HostedEnvironmentsTest, AnErrorWhileItIsMadeIsTheUsersAlone) {
  EXPECT_THAT(MessageOf([this] { Open("host_examples:Trouble", R"({"wheels": 3})"); },
                        ErrorCode::kFailedPrecondition),
              AllOf(HasSubstr("host_examples:Trouble, when it was made: TypeError"),
                    HasSubstr("wheels"), Not(HasSubstr("host.py"))));
}

TEST_F(HostedEnvironmentsTest, NamesThatLeadNowhereAreNotFound) {
  const auto missing = [this](const char* name) {
    return MessageOf([&] { Open(name); }, ErrorCode::kNotFound);
  };
  EXPECT_THAT(missing("NoSuchThing-v3"), HasSubstr("NoSuchThing"));
  EXPECT_THAT(missing("no_such_module:Env"), HasSubstr("no Python module 'no_such_module'"));
  EXPECT_THAT(missing("host_examples:number"), HasSubstr("nor has a class or function"));
}

TEST_F(HostedEnvironmentsTest, ARegisteredIdOfAModuleHasItsTimeLimit) {
  const EnvironmentEntry entry = Open("host_examples:HostExample-v0");
  EXPECT_EQ(entry.spec.max_episode_steps, 7);
  EXPECT_EQ(entry.spec.reward_threshold, 4.5);
  Hosted hosted(entry, 1, 8);
  hosted.group->Reset(hosted.slab, 0);
  hosted.Fill();
  EXPECT_EQ(hosted.slab.truncated(6)[0], 1);
  EXPECT_EQ(hosted.slab.terminated(6)[0], 0);
  EXPECT_EQ(hosted.slab.episode_end(6)[0], 1);
}

TEST_F(HostedEnvironmentsTest, AnExceptionReachesTheUserWithItsTracebackAndPlace) {
  for (const auto& [trouble, text] :
       {std::pair{"raise", "ValueError: the wheel came off"}, std::pair{"exit", "SystemExit"}}) {
    Hosted hosted(OpenTrouble(trouble), 3, 8);
    hosted.group->Reset(hosted.slab, 0);
    const std::string message = MessageOf([&] { hosted.Fill(); }, ErrorCode::kFailedPrecondition);
    EXPECT_THAT(message, HasSubstr("host_examples:Trouble environment 1 (seed 1), step 3: "));
    EXPECT_THAT(message, AllOf(HasSubstr(text), HasSubstr("host_examples.py\", line"),
                               HasSubstr("in happen"), Not(HasSubstr("blocks.py"))));
  }
}

TEST_F(HostedEnvironmentsTest, WithRestartsAnExceptionCostsOneRowOfOneColumn) {
  ErrorBudget errors(2);
  Hosted hosted(OpenTrouble("raise"), 3, 8, {.errors = &errors});
  hosted.group->Reset(hosted.slab, 0);
  hosted.Fill();
  EXPECT_EQ(errors.left(), 1);
  const Slab& slab = hosted.slab;
  for (int row = 0; row < 8; ++row) {
    for (int i = 0; i < 3; ++i) {
      const bool lost = row == 3 && i == 1;
      EXPECT_EQ(slab.valid(row)[i], lost ? 0 : 1);
      EXPECT_EQ(slab.truncated(row)[i], lost ? 1 : 0);
      EXPECT_EQ(slab.episode_end(row)[i], 0);
      EXPECT_EQ(slab.is_first(row + 1)[i], lost ? 1 : 0);
      EXPECT_EQ(slab.reward(row)[i], lost ? 0.0 : 1.0);
    }
  }
  EXPECT_FLOAT_EQ(*slab.final_observation<float>(0, slab.FinalSlot(3, 1)), 0.03f);
  EXPECT_FLOAT_EQ(*slab.observation<float>(0, 5, 1), 0.01f);
}

TEST_F(HostedEnvironmentsTest, ASegmentationFaultIsNamedWithThePlaceInPython) {
  // What the dying host prints is seen as it comes; where it is not, the error has it.
  for (const LogLevel level : {LogLevel::kInfo, LogLevel::kWarning}) {
    SetUpLogging(level);
    Hosted hosted(OpenTrouble("segfault"), 3, 8);
    hosted.group->Reset(hosted.slab, 0);
    testing::internal::CaptureStderr();
    const std::string error = MessageOf([&] { hosted.Fill(); }, ErrorCode::kUnavailable);
    const std::string seen = testing::internal::GetCapturedStderr();
    EXPECT_THAT(error, HasSubstr("SIGSEGV"));
    EXPECT_EQ(seen.find("in happen") != std::string::npos, level == LogLevel::kInfo) << seen;
    EXPECT_EQ(error.find("in happen") != std::string::npos, level == LogLevel::kWarning) << error;
  }
  SetUpLogging(LogLevel::kInfo);
}

TEST_F(HostedEnvironmentsTest, AHostThatHangsOrDiesIsReplacedWhileRestartsLast) {
  for (const char* const trouble : {"hang", "kill", "vanish"}) {
    ErrorBudget errors(1);
    // The deadline leaves time to import what is needed on a busy machine.
    Hosted hosted(OpenTrouble(trouble, /*step_deadline=*/3), 3, 8, {.errors = &errors});
    hosted.group->Reset(hosted.slab, 0);
    hosted.Fill();
    EXPECT_EQ(errors.left(), 0);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(hosted.slab.valid(3)[i], 0);
      EXPECT_EQ(hosted.slab.truncated(3)[i], 1);
      EXPECT_EQ(hosted.slab.valid(4)[i], 1);
      EXPECT_EQ(hosted.slab.is_first(4)[i], 1);
    }
  }
}

TEST_F(HostedEnvironmentsTest, AVectorEnvironmentStepsAsOneBatchEqualToTheNativeOne) {
  GroupUnderTest native(EntryOf<CartPole>(), 4, 200, {.seed = 17});
  Hosted hosted(Open("host_examples:many", "", 30, /*vector=*/true), 4, 200, {.seed = 17});
  native.group->Reset(native.slab, 0);
  hosted.group->Reset(hosted.slab, 0);
  native.Fill(/*salt=*/3, /*go_on=*/false);
  hosted.Fill(&native);
  EXPECT_EQ(Fingerprint(native.slab), Fingerprint(hosted.slab));
}

TEST_F(HostedEnvironmentsTest, VectorEnvironmentsOfAnotherKindAreRefused) {
  EXPECT_THAT(MessageOf([&] { Open("host_examples:next_step_only", "", 30, true); },
                        ErrorCode::kFailedPrecondition),
              AllOf(HasSubstr("NEXT_STEP"), HasSubstr("SAME_STEP is needed")));
  EXPECT_THAT(MessageOf([&] { Open("host_examples:next_step_only", R"({"num_envs": 2})"); },
                        ErrorCode::kFailedPrecondition),
              HasSubstr("host.vector = true"));
}

TEST_F(HostedEnvironmentsTest, ALoadedGroupBeginsOtherEpisodesThanTheSavedOne) {
  const std::string path = testing::TempDir() + "hosted_environments_archive";
  const EnvironmentEntry entry = Open("host:CartPole-v1");
  Hosted first(entry, 2, 3, {.seed = 9});
  EXPECT_FALSE(first.group->resumable());
  first.group->Reset(first.slab, 0);
  {
    ArchiveWriter archive(path);
    first.group->Save(archive);
    archive.Commit();
  }
  Hosted second(entry, 2, 3, {.seed = 9});
  ArchiveReader archive(path);
  second.group->Load(archive);
  EXPECT_THAT(
      MessageOf([&] { second.group->Step(second.slab, 0); }, ErrorCode::kFailedPrecondition),
      HasSubstr("before Reset"));
  second.group->Reset(second.slab, 0);
  EXPECT_NE(*first.slab.observation<float>(0, 0, 0), *second.slab.observation<float>(0, 0, 0));
}

TEST_F(HostedEnvironmentsTest, AnInterpreterThatIsNotThereIsNamed) {
  Options options("host");
  family_.Declare(options);
  options.Set("python", std::string("no-such-python"));
  EXPECT_THAT(MessageOf([&] { family_.Open("Taxi-v3", EnvironmentUse::kTraining); },
                        ErrorCode::kFailedPrecondition),
              AllOf(HasSubstr("no-such-python"), HasSubstr("host.python")));
}

}  // namespace
}  // namespace menger
