#include "menger/runtime/driver/shown_values.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "menger/runtime/driver/two_nodes_testing.h"
#include "menger/runtime/runtime.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kPatience(60);
constexpr int kCount = 100'000;
constexpr std::uint64_t kBytes = kCount * sizeof(double);

std::vector<double> FilledWith(int value) {
  return std::vector<double>(kCount, static_cast<double>(value));
}
std::vector<double> Ones(int count) {
  return std::vector<double>(static_cast<std::size_t>(count), 1.);
}
double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.);
}

CallOptions Far() { return {.resources = {{"far", 1}}}; }

bool ComesTrue(const std::function<bool()>& condition) {
  for (int i = 0; i < 60'000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

// Of values: not what workers have to write some.
std::uint64_t BytesAt(LocalNode& node) {
  const LocalNode::StoreUse use = node.Store();
  return use.used_bytes - use.granted_bytes;
}

using Ref = ObjectRef<std::vector<double>>;

// Made on the far node, and read here.
std::vector<Ref> MakeAndRead(Runtime& runtime, int count) {
  std::vector<Ref> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(runtime.CallWith<FilledWith>(Far(), i));
    EXPECT_EQ(runtime.Get(made.back(), kPatience), FilledWith(i));
  }
  return made;
}

TEST(ShownValuesTest, AValueIsReadWhereItLies) {
  TwoNodes nodes({.workers = 1}, {.beside = true});
  Runtime runtime(nodes.near());
  const Ref there = runtime.CallWith<FilledWith>(Far(), 3);
  EXPECT_EQ(runtime.Get(there, kPatience), FilledWith(3));
  // By workers of this node, too, and by those of the other one what lies here.
  EXPECT_EQ(runtime.Get(runtime.Call<Sum>(there), kPatience), 3. * kCount);
  EXPECT_EQ(BytesAt(nodes.near()), 0U);
  const Ref here = runtime.Put(FilledWith(4));
  EXPECT_EQ(runtime.Get(runtime.CallWith<Sum>(Far(), here), kPatience), 4. * kCount);
  EXPECT_GE(BytesAt(nodes.near()), kBytes);
  EXPECT_LT(BytesAt(nodes.far()), 2 * kBytes);
}

TEST(ShownValuesTest, ItsRoomIsFreeOnceNobodyNeedsIt) {
  TwoNodes nodes({.workers = 1}, {.beside = true});
  Runtime runtime(nodes.near());
  MakeAndRead(runtime, 3);
  const Ref here = runtime.Put(FilledWith(4));
  runtime.Get(runtime.CallWith<Sum>(Far(), here), kPatience);
  EXPECT_TRUE(ComesTrue([&] { return BytesAt(nodes.far()) == 0; }));
}

TEST(ShownValuesTest, SoIsThatOfWhatThisNodeOwnsAndOthersHaveSeen) {
  TwoNodes nodes({.workers = 1}, {.beside = true});
  Runtime runtime(nodes.near());
  for (int i = 0; i < 5; ++i) {
    const Ref here = runtime.Put(FilledWith(i));
    EXPECT_EQ(runtime.Get(runtime.CallWith<Sum>(Far(), here), kPatience), double(i) * kCount);
  }
  EXPECT_TRUE(ComesTrue([&] { return BytesAt(nodes.near()) == 0; }));
}

TEST(ShownValuesTest, WhatIsShownIsHalfOfTheStoreAtMost) {
  TwoNodes nodes({.workers = 1}, {.beside = true, .far_store_bytes = 8 * kBytes});
  Runtime runtime(nodes.near());
  const std::vector<Ref> made = MakeAndRead(runtime, 7);
  EXPECT_GE(BytesAt(nodes.near()), 3 * kBytes);
  EXPECT_LT(BytesAt(nodes.near()), 4 * kBytes);
}

TEST(ShownValuesTest, WhoNeedsRoomGetsBackWhatHeShows) {
  TwoNodes nodes({.workers = 1}, {.beside = true, .far_store_bytes = 8 * kBytes});
  Runtime runtime(nodes.near());
  const std::vector<Ref> made = MakeAndRead(runtime, 3);
  EXPECT_EQ(BytesAt(nodes.near()), 0U);
  EXPECT_EQ(runtime.Get(runtime.CallWith<Sum>(Far(), runtime.CallWith<Ones>(Far(), 7 * kCount)),
                        kPatience),
            7. * kCount);
  EXPECT_GE(BytesAt(nodes.near()), kBytes);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(runtime.Get(made[i], kPatience), FilledWith(i));
}

TEST(ShownValuesTest, ItOutlivesItsNode) {
  TwoNodes nodes({.workers = 1}, {.beside = true});
  Runtime runtime(nodes.near());
  const std::vector<Ref> made = MakeAndRead(runtime, 3);
  nodes.near().HearOfEnd(LifeOf(1), "its plug was pulled");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(runtime.Get(made[i], kPatience), FilledWith(i));
  // And is taken to this node's own memory.
  EXPECT_TRUE(ComesTrue([&] { return BytesAt(nodes.near()) >= 3 * kBytes; }));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(runtime.Get(made[i], kPatience), FilledWith(i));
}

TEST(ShownValuesTest, WhoIsGivenUpReadsOnWhatHeWasShown) {
  TwoNodes nodes({.workers = 1}, {.beside = true});
  Runtime runtime(nodes.near());
  const std::vector<Ref> made = MakeAndRead(runtime, 3);
  const std::uint64_t used = BytesAt(nodes.far());
  nodes.far().HearOfEnd(LifeOf(0), "it was not reached");
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  EXPECT_EQ(BytesAt(nodes.far()), used);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(runtime.Get(made[i], kPatience), FilledWith(i));
}

TEST(ShownValuesTest, WhoCannotSeeItHasItBrought) {
  int shown = 0;
  TwoNodes nodes({.workers = 1}, {.beside = true, .on_way = [&shown](NodeLetter& letter) {
                                    if (letter.kind != NodeLetter::Kind::kShown) return;
                                    ++shown;
                                    ++letter.shown.inode;  // As in another container.
                                  }});
  Runtime runtime(nodes.near());
  const std::vector<Ref> made = MakeAndRead(runtime, 3);
  EXPECT_GE(BytesAt(nodes.near()), 3 * kBytes);
  EXPECT_EQ(shown, 1);
}

TEST(ShownValuesTest, WhatLiesOutsideOfTheSegmentEndsWhoShowsIt) {
  TwoNodes nodes({.workers = 1}, {.beside = true, .on_way = [](NodeLetter& letter) {
                                    if (letter.kind == NodeLetter::Kind::kShown)
                                      letter.offset = ~std::uint64_t{4095};
                                  }});
  Runtime runtime(nodes.near());
  const Ref there = runtime.CallWith<FilledWith>(Far(), 3);
  EXPECT_THROW(runtime.Get(there, std::chrono::seconds(2)), Error);
  EXPECT_FALSE(nodes.near().HasMet(LifeOf(1)));
}

}  // namespace
}  // namespace menger
