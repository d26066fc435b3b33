#include "menger/parameters/shared_parameters.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

ParameterManifest Manifest() {
  ParameterManifest manifest;
  manifest.Add("a/weight", {31, 7});
  manifest.Add("a/bias", {7});
  return manifest;
}

ParameterBlob Version(std::int64_t number) {
  return {
      {.incarnation = 2, .number = number},
      std::vector<float>(static_cast<std::size_t>(Manifest().size()), static_cast<float>(number))};
}

TEST(SharedParametersTest, WhatIsPublishedIsReadWhole) {
  SharedPublication shared(Manifest());
  const SharedParameters source(shared.descriptor());
  EXPECT_EQ(source.manifest().ToText(), Manifest().ToText());
  EXPECT_EQ(source.Latest()->version().packed(), 0);
  EXPECT_EQ(source.Latest()->values()[3], 0);
  for (const std::int64_t number : {1, 2, 3, 4, 9}) {
    shared.Publish(Version(number));
    const auto latest = source.Latest();
    EXPECT_EQ(latest->version().packed(), Version(number).version().packed());
    for (const float value : latest->values()) ASSERT_EQ(value, static_cast<float>(number));
    EXPECT_EQ(source.Latest(), latest);  // Nothing new is not copied again.
  }
}

TEST(SharedParametersTest, AVersionThatIsHeldStaysAsItWas) {
  SharedPublication shared(Manifest());
  const SharedParameters source(shared.descriptor());
  shared.Publish(Version(1));
  const auto held = source.Latest();
  for (std::int64_t number = 2; number < 10; ++number) shared.Publish(Version(number));
  EXPECT_EQ(held->values()[0], 1);
  EXPECT_EQ(source.Latest()->values()[0], 9);
}

TEST(SharedParametersTest, ReadersNeverSeeHalfAVersionNorAnOlderOne) {
  SharedPublication shared(Manifest());
  std::atomic<bool> stop = false;
  std::atomic<int> reading = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      const SharedParameters source(shared.descriptor());
      std::int64_t last = 0;
      ++reading;
      while (!stop) {
        const auto latest = source.Latest();
        const std::int64_t number = latest->version().number;
        EXPECT_GE(number, last);
        last = number;
        for (const float value : latest->values()) {
          ASSERT_EQ(value, static_cast<float>(number));
        }
      }
    });
  }
  while (reading < 2) std::this_thread::yield();
  for (std::int64_t number = 1; number <= 20'000; ++number) shared.Publish(Version(number));
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(SharedParametersTest, APublisherThatIsKilledIsReplacedAndNothingHalfIsRead) {
  SharedPublication shared(Manifest());
  shared.Publish(Version(1));
  const SharedParameters source(shared.descriptor());
  std::int64_t last = 1;
  for (int life = 0; life < 100; ++life) {
    const pid_t child = fork();
    if (child == 0) {
      SharedPublication own(shared.descriptor());
      for (std::int64_t number = last + 1;; ++number) own.Publish(Version(number));
    }
    while (source.Latest()->version().number < last + 10) std::this_thread::yield();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    last = source.Latest()->version().number + 1;
    SharedPublication next(shared.descriptor());
    next.Publish(Version(last));
    const auto latest = source.Latest();
    ASSERT_EQ(latest->version().number, last);
    for (const float value : latest->values()) ASSERT_EQ(value, static_cast<float>(last));
  }
}

TEST(SharedParametersTest, WhatDoesNotFitIsRefused) {
  SharedPublication shared(Manifest());
  EXPECT_THROW(shared.Publish({{.number = 1}, std::vector<float>(3)}), Error);
  const auto other = AllocateSharedMemory("no-parameters", 4096);
  EXPECT_THROW(SharedParameters{other->descriptor()}, Error);
  EXPECT_THROW(SharedParameters{-1}, Error);
  EXPECT_THROW(SharedPublication{other->descriptor()}, Error);
}

}  // namespace
}  // namespace menger
