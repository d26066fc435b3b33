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

}  // namespace
}  // namespace menger
