#include "menger/training/roles/role_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/file_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::ErrorText;

class Scripted final : public Role {
 public:
  explicit Scripted(std::function<Advanced(std::int64_t calls)> script)
      : script_(std::move(script)) {}

  const std::string& name() const override { return name_; }
  Advanced Advance(const Deadline&) override { return script_(++calls_); }
  std::int64_t done() const override { return calls_; }

 private:
  const std::string name_ = "scripted";
  const std::function<Advanced(std::int64_t calls)> script_;
  std::atomic<std::int64_t> calls_{0};
};

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

TEST(RoleThreadTest, ARoleIsAdvancedUntilItIsDone) {
  Scripted role(
      [](std::int64_t calls) { return calls < 1'000 ? Advanced::Worked() : Advanced::Done(); });
  RoleThread thread(role);
  thread.Join();
  EXPECT_TRUE(thread.ended());
  EXPECT_EQ(thread.status().done, 1'000);
  EXPECT_EQ(thread.status().name, "scripted");
}

TEST(RoleThreadTest, AStopEndsAtTheSlicesEnd) {
  Scripted role([](std::int64_t) { return Advanced::Worked(); });
  RoleThread thread(role);
  thread.Stop();
  thread.Join();
  EXPECT_TRUE(thread.ended());
}

TEST(RoleThreadTest, WhatItWaitsForIsTold) {
  Scripted role([](std::int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Advanced::WaitingFor("rain");
  });
  RoleThread thread(role);
  while (role.done() < 5) std::this_thread::yield();
  const RoleStatus status = thread.status();
  EXPECT_EQ(status.waits_for, "rain");
  EXPECT_GT(status.waiting_seconds.at("rain"), 0);
  EXPECT_EQ(status.working_seconds, 0);
  EXPECT_GT(status.idle_seconds, 0);
}

TEST(RoleThreadTest, ItRestsWhileSomebodyIsBetweenTwoSlices) {
  Scripted role([](std::int64_t) { return Advanced::Worked(); });
  RoleThread thread(role);
  for (int i = 0; i < 100; ++i) {
    const bool called = thread.Between(
        [&] {
          const std::int64_t before = role.done();
          std::this_thread::yield();
          EXPECT_EQ(role.done(), before);
        },
        Soon());
    EXPECT_TRUE(called);
  }
  const std::int64_t before = role.done();
  while (role.done() == before) std::this_thread::yield();  // It goes on.
}

TEST(RoleThreadTest, WhoComesBetweenWaitsNoLongerThanHeSays) {
  std::atomic<bool> let_go = false;
  Scripted role([&](std::int64_t) {
    while (!let_go) std::this_thread::yield();
    return Advanced::Worked();
  });
  RoleThread thread(role);
  while (role.done() == 0) std::this_thread::yield();
  EXPECT_THAT(
      ErrorText(
          ErrorCode::kDeadlineExceeded,
          [&] { thread.Between([] { FAIL(); }, Deadline::After(std::chrono::milliseconds(10))); }),
      HasSubstr("scripted"));
  let_go = true;
}

TEST(RoleThreadTest, WhatItThrowsEndsItAndIsToldByItsName) {
  Scripted role([](std::int64_t calls) -> Advanced {
    if (calls == 3) throw Unavailable("no rain");
    return Advanced::Worked();
  });
  RoleThread thread(role);
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { thread.Join(); }),
              AllOf(HasSubstr("scripted"), HasSubstr("no rain")));
  EXPECT_FALSE(thread.Between([] { FAIL() << "what is left may be half of something"; }, Soon()));
}

}  // namespace
}  // namespace menger
