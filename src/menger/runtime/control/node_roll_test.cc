#include "menger/runtime/control/node_roll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace menger {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kLease = 10'000;  // So a time is a ten-thousandth of one.
constexpr std::uint64_t kEpoch = 1;
const NodeId kOther = NodeId{Id{.high = 1, .low = 2}};

// Reads what a test says, when it says.
class NodeRollTest : public testing::Test {
 protected:
  std::vector<NodeChange::Kind> Read(std::int64_t now, bool there, std::uint64_t fail_overs = 0) {
    roll_.ReadSoon(now);
    const std::optional<StoreAsk> ask = roll_.Next(now);
    if (!ask) throw std::logic_error("it does not read");
    StorePage page;
    page.newest = fail_overs << kFailOverShift;
    if (there) {
      page.records.push_back({.key = KeyOf(kOther),
                              .value = Encode({.id = kOther, .epoch = 3}),
                              .version = ++version_});
    }
    roll_.Read(ask->number, std::move(page), now, kEpoch);
    std::vector<NodeChange::Kind> kinds;
    for (const NodeChange& change : roll_.TakeChanges()) kinds.push_back(change.kind);
    return kinds;
  }

  NodeRoll roll_{NodeId{Id{.high = 1, .low = 1}}, kLease, /*page_records=*/10};
  StoreVersion version_ = 0;
};

TEST_F(NodeRollTest, TwoReadingsHalfALeaseApartFindTheDead) {
  EXPECT_THAT(Read(0, true), ElementsAre(NodeChange::Kind::kMet));
  EXPECT_THAT(Read(20'000, false), IsEmpty());
  EXPECT_THAT(Read(24'999, false), IsEmpty());
  EXPECT_THAT(Read(25'200, false), ElementsAre(NodeChange::Kind::kDied));
}

TEST_F(NodeRollTest, WhoIsThereInBetweenIsNotMissing) {
  Read(0, true);
  EXPECT_THAT(Read(20'000, false), IsEmpty());
  EXPECT_THAT(Read(22'000, true), IsEmpty());
  EXPECT_THAT(Read(25'000, false), IsEmpty());
  EXPECT_THAT(Read(29'999, false), IsEmpty());
}

TEST_F(NodeRollTest, WhatIsMissingAfterAFailOverProvesNothingForALeaseAndAHalf) {
  Read(0, true);
  EXPECT_THAT(Read(20'000, false), IsEmpty());
  EXPECT_THAT(Read(26'000, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(40'999, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(41'200, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(46'199, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(46'400, false, /*fail_overs=*/1), ElementsAre(NodeChange::Kind::kDied));
}

TEST_F(NodeRollTest, WhoIsSoughtAndNotThereIsOver) {
  roll_.Seek(kOther, 3, 0);
  EXPECT_THAT(Read(0, false), IsEmpty());
  roll_.Seek(kOther, 3, 1'000);
  EXPECT_THAT(Read(4'999, false), IsEmpty());
  EXPECT_THAT(Read(5'200, false), ElementsAre(NodeChange::Kind::kDied));
  EXPECT_THAT(Read(11'000, false), IsEmpty());
  // Once more, by somebody else: it is known.
  roll_.Seek(kOther, 3, 12'000);
  EXPECT_THAT(Read(12'000, false), ElementsAre(NodeChange::Kind::kDied));
}

TEST_F(NodeRollTest, WhoIsSoughtAndThereIsMetAndDiesLater) {
  roll_.Seek(kOther, 3, 0);
  EXPECT_THAT(Read(0, false), IsEmpty());
  EXPECT_THAT(Read(4'000, true), ElementsAre(NodeChange::Kind::kMet));
  roll_.Seek(kOther, 3, 5'000);
  EXPECT_THAT(Read(6'000, false), IsEmpty());
  EXPECT_THAT(Read(12'000, false), ElementsAre(NodeChange::Kind::kDied));
}

TEST_F(NodeRollTest, AStoreThatFailedOverProvesNothingOfTheSoughtEither) {
  roll_.Seek(kOther, 3, 0);
  EXPECT_THAT(Read(0, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(14'999, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(15'200, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(20'199, false, /*fail_overs=*/1), IsEmpty());
  EXPECT_THAT(Read(20'400, false, /*fail_overs=*/1), ElementsAre(NodeChange::Kind::kDied));
}

TEST_F(NodeRollTest, TheDeadAreNotMetAgain) {
  Read(0, true);
  Read(20'000, false);
  EXPECT_THAT(Read(25'000, false), ElementsAre(NodeChange::Kind::kDied));
  // A store that failed over shows what it had forgotten.
  EXPECT_THAT(Read(26'000, true, /*fail_overs=*/1), IsEmpty());
}

}  // namespace
}  // namespace menger
