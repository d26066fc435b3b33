#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "menger/runtime/runtime.h"

namespace menger {
namespace {

// Actors whose processes are really killed.

void AppendLine(const std::string& path, int value) {
  std::ofstream(path, std::ios::app) << value << '\n';
}

int Lines(const std::string& path) {
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

class Journal {
 public:
  explicit Journal(std::string folder) : folder_(std::move(folder)) {}

  int Add(int amount) { return sum_ += amount; }

  // Is killed in its first run, after its call.
  int AddAndDie(Runtime& runtime, int amount, const std::string& mark) {
    const auto before = runtime.Now();
    const std::uint64_t draw = runtime.Random().NextUint64();
    runtime.Get(runtime.Call<AppendLine>(folder_ + "/calls", amount));
    times_.push_back(before.count());
    draws_.push_back(draw);
    if (!std::filesystem::exists(folder_ + "/" + mark)) {
      std::ofstream(folder_ + "/" + mark) << before.count();
      raise(SIGKILL);
    }
    return sum_ += amount;
  }
  std::vector<std::int64_t> Times() { return times_; }
  std::vector<std::uint64_t> Draws() { return draws_; }

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(folder_, sum_, times_, draws_);
  }

 private:
  std::string folder_;
  int sum_ = 0;
  std::vector<std::int64_t> times_;
  std::vector<std::uint64_t> draws_;
};

class Plain {
 public:
  int Give() { return 1; }
};

class RuntimeCheckpointTest : public testing::Test {
 protected:
  RuntimeCheckpointTest()
      : folder(std::filesystem::path(testing::TempDir()) /
               fmt::format("menger_journal_{}",
                           testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~RuntimeCheckpointTest() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
  Runtime runtime{RuntimeOptions{.workers = 2}};
};

TEST_F(RuntimeCheckpointTest, AnActorThatIsKilledGoesOnAsItWas) {
  const auto journal = runtime.CreateActor<Journal>({.checkpoint_every = 4}, folder.string());
  std::vector<ObjectRef<int>> sums;
  for (int i = 0; i < 30; ++i) {
    if (i % 7 == 3) {
      sums.push_back(journal.Call<&Journal::AddAndDie>(1, "mark" + std::to_string(i)));
    } else {
      sums.push_back(journal.Call<&Journal::Add>(1));
    }
  }
  const std::vector<int> got = runtime.Get(sums);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i + 1);
  // Each call that it made was made once, and each was told the same time in all runs.
  EXPECT_EQ(Lines(folder / "calls"), 4);
  const std::vector<std::int64_t> times = runtime.Get(journal.Call<&Journal::Times>());
  ASSERT_EQ(times.size(), 4);
  for (int i = 0; i < 4; ++i) {
    std::int64_t first = 0;
    std::ifstream(folder / ("mark" + std::to_string(3 + 7 * i))) >> first;
    EXPECT_EQ(times[static_cast<std::size_t>(i)], first);
  }
  EXPECT_EQ(runtime.Get(journal.Call<&Journal::Draws>()).size(), 4);
}

TEST_F(RuntimeCheckpointTest, AnActorMayBeKilledByItsUser) {
  const auto journal = runtime.CreateActor<Journal>({.checkpoint_every = 2}, folder.string());
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(runtime.Get(journal.Call<&Journal::Add>(i)), sum += i);
    runtime.Kill(journal, /*may_restart=*/true);
  }
}

TEST_F(RuntimeCheckpointTest, AClassThatCannotBeSavedIsRefused) {
  EXPECT_THROW(runtime.CreateActor<Plain>({.checkpoint_every = 1}), Error);
}

}  // namespace
}  // namespace menger
