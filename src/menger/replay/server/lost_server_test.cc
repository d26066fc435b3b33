#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "menger/replay/client/local_replay.h"
#include "menger/replay/server/serving_testing.h"

// What calls say whose server has gone, and of what there is not.
namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;
using testing::HasSubstr;

Deadline Briefly() { return Deadline::After(milliseconds(30)); }

TEST(LostServerTest, ACallThatHasLessTimeThanPatienceEndsAtItsDeadline) {
  Served served;
  ServedReplay client({.socket = served.socket()});
  const auto writer = client.NewWriter(SmallItems().steps, {}, 1);
  const auto sampler = client.NewSampler(0);
  WriteValue(*writer, 0, 1);
  served.Stop();
  Sample sample;
  const auto draw = [&] { sampler->SampleInto({.count = 1, .deadline = Briefly()}, sample); };
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, draw), HasSubstr("nobody served at"));
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { writer->Flush(0, Briefly()); }),
              HasSubstr("nobody served at"));
  EXPECT_EQ(writer->pending(0), 1);
}

TEST(LostServerTest, ACallThatHasMoreTimeEndsWithPatience) {
  Served served;
  ServedReplay client({.socket = served.socket(), .patience = milliseconds(100)});
  const auto writer = client.NewWriter(SmallItems().steps, {}, 1);
  const auto sampler = client.NewSampler(0);
  WriteValue(*writer, 0, 1);
  served.Stop();
  Sample sample;
  EXPECT_THROW(sampler->SampleInto({.count = 1, .deadline = Soon()}, sample), ReplayLost);
  EXPECT_THROW(writer->Flush(0, Soon()), ReplayLost);
  EXPECT_THROW(client.info(0), ReplayLost);
}

TEST(LostServerTest, NobodyWaitsForAServerOnceItIsGivenUp) {
  Served served;
  std::atomic<bool> given_up = false;
  ServedReplay client({.socket = served.socket(),
                       .patience = std::chrono::hours(1),
                       .given_up = [&] { return given_up.load(); }});
  const auto writer = client.NewWriter(SmallItems().steps, {}, 1);
  WriteValue(*writer, 0, 1);
  served.Stop();
  std::thread waiting([&] { EXPECT_THROW(writer->Flush(0, Soon()), ReplayLost); });
  std::this_thread::sleep_for(milliseconds(30));
  given_up = true;
  waiting.join();
  EXPECT_EQ(writer->pending(0), 1);
  EXPECT_THAT(
      ErrorText(
          ErrorCode::kUnavailable,
          [&] { ServedReplay({.socket = served.socket(), .given_up = [] { return true; }}); }),
      HasSubstr(served.socket()));
}

void ExpectIndicesChecked(ReplayClient& client) {
  const auto writer = client.NewWriter(SmallItems().steps, {}, 2);
  const auto refused = [](const std::function<void()>& call) {
    return ErrorText(ErrorCode::kInvalidArgument, call);
  };
  EXPECT_THAT(refused([&] { client.NewSampler(9); }), HasSubstr("table 9 was named"));
  EXPECT_THAT(refused([&] { client.NewSampler(-1); }), HasSubstr("table -1 was named"));
  const std::int64_t value = 1;
  const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
  EXPECT_THAT(refused([&] { writer->Append(5, {{leaf}}, 0); }),
              HasSubstr("stream 5 was named, and there are 2"));
  writer->Append(1, {{leaf}}, 0);
  EXPECT_THAT(refused([&] {
                writer->Add(1, 7, {}, {{{0, 1}, {0, 1}}});
              }),
              HasSubstr("table 7 was named, and there is 1"));
  EXPECT_THAT(refused([&] { writer->Flush(-1, Soon()); }), HasSubstr("stream -1 was named"));
}

TEST(LostServerTest, WhatThereIsNotIsRefusedByName) {
  Served served;
  ServedReplay client({.socket = served.socket()});
  ExpectIndicesChecked(client);
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { client.info(3); }),
              HasSubstr("table 3 was named"));
  LocalReplay local(served.store());
  ExpectIndicesChecked(local);
}

}  // namespace
}  // namespace menger
