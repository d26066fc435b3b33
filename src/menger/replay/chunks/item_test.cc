#include "menger/replay/chunks/item.h"

#include <gtest/gtest.h>

#include <string>

#include "menger/base/error.h"

namespace menger {
namespace {

ItemSpec SomeItems() {
  return {.steps = Spec({LeafSpec::Box("frame", DataType::kUint8, {84, 84}, {0}, {255}),
                         LeafSpec::Scalar("reward", DataType::kFloat32)}),
          .columns = {{.name = "observation", .leaf = "frame", .rows = 4},
                      {.name = "reward", .leaf = "reward"},
                      {.name = "next_observation", .leaf = "frame", .rows = 4}}};
}

std::string ErrorOf(const ItemSpec& items) {
  try {
    items.Check();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(ItemSpecTest, SeveralColumnsMayShowOneLeaf) {
  const ItemSpec items = SomeItems();
  EXPECT_NO_THROW(items.Check());
  EXPECT_EQ(items.Find("next_observation"), 2);
  EXPECT_EQ(items.Find("frame"), -1);
  EXPECT_EQ(items.LeafOf(items.columns[2]).bytes(), 84U * 84U);
}

TEST(ItemSpecTest, WhatIsWrongIsNamed) {
  ItemSpec items = SomeItems();
  items.columns[2].name = "observation";
  EXPECT_EQ(ErrorOf(items), "an item has two columns named 'observation'");
  items.columns[2].name = "";
  EXPECT_EQ(ErrorOf(items), "item column 2 has no name");
  items = SomeItems();
  items.columns[1].leaf = "rewards";
  EXPECT_EQ(ErrorOf(items),
            "item column 'reward' shows leaf 'rewards', which steps do not have (did you mean "
            "'reward'?)");
  for (const int rows : {0, 65536}) {
    items = SomeItems();
    items.columns[0].rows = rows;
    EXPECT_EQ(ErrorOf(items), "item column 'observation' has " + std::to_string(rows) +
                                  " rows; it must be 1 to 65535");
  }
  items.columns.clear();
  EXPECT_EQ(ErrorOf(items), "an item without columns; it needs at least one");
}

TEST(ItemSpecTest, AnOpenTableHasNeitherStepsNorColumnsOfItsOwn) {
  ItemSpec items = ItemSpec::Open("anything");
  EXPECT_NO_THROW(items.Check());
  EXPECT_THROW(items.CheckHasLeaves(), Error);
  items.columns.push_back({.name = "another"});
  EXPECT_EQ(ErrorOf(items), "an open table has steps or columns of its own; it must have neither");
  items = SomeItems();
  EXPECT_NO_THROW(items.CheckHasLeaves());
}

TEST(ItemKeyTest, AKeyOf64BitsIsTheSameKeyAgain) {
  for (const std::uint64_t number : {1ULL, (1ULL << 34) - 1}) {
    for (const std::uint32_t slot : {0U, (1U << 24) - 1}) {
      for (const std::uint32_t life : {0U, 63U}) {
        const ItemKey key{.number = number, .slot = slot, .life = life};
        EXPECT_EQ(UnpackKey(PackKey(key)), key);
      }
    }
  }
  EXPECT_EQ(PackKey({.number = 5, .slot = 3, .life = 1}), 5 + (3ULL << 34) + (1ULL << 58));
}

TEST(ItemKeyTest, WhatHasNoRoomIn64BitsIsRefusedByName) {
  const auto error_of = [](const ItemKey& key) {
    try {
      PackKey(key);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
      return std::string(error.what()).substr(0, 30);
    }
    return std::string();
  };
  EXPECT_EQ(error_of({.number = 1ULL << 34}), "the number 17179869184 of an i");
  EXPECT_EQ(error_of({.number = 1, .slot = 1U << 24}), "the slot 16777216 of an item h");
  EXPECT_EQ(error_of({.number = 1, .life = 64}), "the life 64 of an item has mor");
  EXPECT_EQ(error_of({.number = 1, .shard = 1}), "the shard 1 of an item has mor");
}

}  // namespace
}  // namespace menger
