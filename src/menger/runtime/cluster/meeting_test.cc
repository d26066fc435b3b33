#include "menger/runtime/cluster/meeting.h"

#include <gtest/gtest.h>

#include "menger/base/error.h"

namespace menger {
namespace {

using Verdict = Meeting::Verdict;

// What each end of a stream makes of what the other says.
struct Verdicts {
  Verdict of_first;
  Verdict of_second;

  bool operator==(const Verdicts&) const = default;
};
Verdicts Greet(Meeting& first, Meeting& second) {
  const MeetingGreeting of_first = first.greeting();
  const MeetingGreeting of_second = second.greeting();
  return {first.Hear(of_second), second.Hear(of_first)};
}
constexpr Verdicts kBothSame{Verdict::kSame, Verdict::kSame};

TEST(MeetingTest, EachStreamBelongsToIt) {
  Meeting first(1);
  Meeting second(1);
  EXPECT_EQ(Greet(first, second), kBothSame);
  EXPECT_EQ(Greet(first, second), kBothSame);
  EXPECT_EQ(first.greeting(), (MeetingGreeting{1, 1}));
}

TEST(MeetingTest, WhoWasTakenForDeadHearsSoAndTheOtherDoesNot) {
  Meeting first(1);
  Meeting second(1);
  Greet(first, second);
  first = Meeting(2);
  EXPECT_EQ(Greet(first, second), (Verdicts{Verdict::kOthersIs, Verdict::kOver}));
  second = Meeting(2);
  EXPECT_EQ(Greet(first, second), kBothSame);
  EXPECT_EQ(Greet(first, second), kBothSame);
}

TEST(MeetingTest, BothMayHaveTakenTheOtherForDead) {
  Meeting first(1);
  Meeting second(1);
  Greet(first, second);
  first = Meeting(2);
  second = Meeting(2);
  EXPECT_EQ(Greet(first, second), kBothSame);
}

// A stream breaks when one end has heard the greeting, and the other has not.
TEST(MeetingTest, AGreetingMayBeLost) {
  Meeting first(1);
  Meeting second(1);
  EXPECT_EQ(first.Hear(second.greeting()), Verdict::kSame);
  EXPECT_EQ(Greet(first, second), kBothSame);
  // The first has met it anew, of which the second has heard, but not that it has been heard.
  first = Meeting(2);
  second = Meeting(2);
  EXPECT_EQ(second.Hear(first.greeting()), Verdict::kSame);
  EXPECT_EQ(Greet(first, second), kBothSame);
  // Of one that had met it and took it for dead before it had heard anything.
  first = Meeting(3);
  EXPECT_EQ(Greet(first, second), (Verdicts{Verdict::kOthersIs, Verdict::kOver}));
}

TEST(MeetingTest, GreetingsAreReadAsTheyWereWritten) {
  const MeetingGreeting greeting{.own = 7, .other = ~std::uint64_t{0}};
  EXPECT_EQ(DecodeMeetingGreeting(Encode(greeting)), greeting);
  std::vector<std::byte> bytes = Encode(greeting);
  bytes.pop_back();
  EXPECT_THROW(DecodeMeetingGreeting(bytes), Error);
  bytes.resize(17);
  EXPECT_THROW(DecodeMeetingGreeting(bytes), Error);
  EXPECT_THROW(DecodeMeetingGreeting({}), Error);
  EXPECT_THROW(DecodeMeetingGreeting(Encode(MeetingGreeting{})), Error);
}

}  // namespace
}  // namespace menger
