#include "menger/tensor/slab.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

SlabSpec SmallSpec(ColumnLayout columns, int history = 0) {
  return {.observation = Spec({LeafSpec::Box("observation", DataType::kFloat32, {3}, {-1}, {1})}),
          .state = Spec({LeafSpec::Scalar("hidden", DataType::kFloat32)}),
          .action = Spec({LeafSpec::Discrete("action", 2)}),
          .policy = Spec({LeafSpec::Scalar("value", DataType::kFloat32)}),
          .horizon = 4,
          .history = history,
          .columns = std::move(columns)};
}

TEST(ColumnLayoutTest, BlocksAreGroupMajorContiguousAndPadded) {
  const ColumnLayout layout(10, 2, 2, 16);  // Blocks of 3, 3, 2 and 2 environments.
  EXPECT_EQ(layout.positions(), 64);
  EXPECT_EQ(layout.block(0, 1).first_environment, 3);
  EXPECT_EQ(layout.block(0, 1).first_position, 16);
  EXPECT_EQ(layout.block(1, 0).count, 2);
  EXPECT_EQ(layout.group(1).first, 32);
  EXPECT_EQ(layout.group(1).count, 18);
  for (int environment = 0; environment < 10; ++environment) {
    EXPECT_EQ(layout.EnvironmentAt(layout.PositionOf(environment)), environment);
  }
  EXPECT_EQ(layout.EnvironmentAt(3), -1);
}

TEST(ColumnLayoutTest, TooFewEnvironmentsAreRefused) {
  EXPECT_THROW(ColumnLayout(3, 2, 2, 1), Error);
}

TEST(SlabTest, LeavesDoNotOverlapAndRowsStartOnCacheLines) {
  Slab slab(SmallSpec(ColumnLayout(20, 1, 2, 16)));
  for (int row = 0; row < 4; ++row) {
    for (int position = 0; position < slab.positions(); ++position) {
      slab.observation<float>(0, row, position)[2] = 1.5F;
      slab.reward(row)[position] = 100 * row + position;
      slab.version(row)[position] = -1;
      slab.final_observation<float>(0, slab.FinalSlot(row, position))[0] = 7;
      slab.valid(row)[position] = 1;
    }
  }
  EXPECT_EQ(slab.reward(3)[20], 320);
  EXPECT_EQ(slab.observation<float>(0, 4, 0)[2], 0.0F);  // Row T was not written.
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.reward(0)) % 64, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.observation<float>(0, 0)) % 64, 0U);
}

TEST(SlabTest, CarryMovesTheLastRowAndItsHistoryToTheFront) {
  Slab slab(SmallSpec(ColumnLayout::Single(2), /*history=*/3));
  for (int row = -3; row <= 4; ++row) {
    slab.observation<float>(0, row, 1)[0] = static_cast<float>(row);
    slab.is_first(row)[1] = row == 2 ? 1 : 0;
  }
  *slab.state<float>(0, 4, 1) = 9.0F;
  slab.set_first_step(8);
  slab.Carry(slab);
  EXPECT_EQ(slab.first_step(), 12);
  for (int row = -3; row <= 0; ++row) {
    EXPECT_EQ(slab.observation<float>(0, row, 1)[0], static_cast<float>(row + 4));
  }
  EXPECT_EQ(slab.is_first(-2)[1], 1);
  EXPECT_EQ(*slab.state<float>(0, 0, 1), 9.0F);
}

TEST(SlabTest, TwoProcessesWithEqualSpecsShareOneSlab) {
  const SlabSpec spec = SmallSpec(ColumnLayout::Single(2));
  auto memory = AllocateSharedMemory("slab-test", Slab::BytesNeeded(spec));
  const int descriptor = memory->descriptor();
  Slab slab(spec, std::move(memory));
  const pid_t child = fork();
  if (child == 0) {
    Slab mapped(spec, MapSharedMemory(descriptor, Slab::BytesNeeded(spec)));
    mapped.reward(3)[1] = 42;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(slab.reward(3)[1], 42);
}

TEST(SlabTest, BadSpecsAndSmallMemoryAreRefused) {
  SlabSpec spec = SmallSpec(ColumnLayout::Single(1));
  spec.horizon = 0;
  EXPECT_THROW(Slab{spec}, Error);
  spec = SmallSpec(ColumnLayout::Single(1 << 11));
  spec.horizon = (1 << 20) - 1;
  EXPECT_NO_THROW(spec.Check());
  spec.horizon = 1 << 20;  // 2^31 slots of final observations, which final_index cannot number.
  EXPECT_THROW(spec.Check(), Error);
  EXPECT_THROW(Slab(SmallSpec(ColumnLayout::Single(1)), AllocatePlainMemory(10)), Error);
}

TEST(SpecTest, LeavesAreFoundByNameAndMistakesAreNamed) {
  const Spec spec({LeafSpec::Discrete("a", 3), LeafSpec::Mask("b", 2)});
  EXPECT_EQ(spec.Find("b"), 1);
  EXPECT_EQ(spec.Find("c"), -1);
  EXPECT_EQ(spec[0].bytes(), 8U);
  EXPECT_THROW(Spec({LeafSpec::Discrete("a", 3), LeafSpec::Mask("a", 2)}), Error);
  EXPECT_THROW(LeafSpec::Box("x", DataType::kFloat32, {3}, {0, 0}, {1}), Error);
  EXPECT_EQ(ToString(Shape{4}), "(4,)");
  EXPECT_EQ(ToString(Shape{84, 84}), "(84, 84)");
}

}  // namespace
}  // namespace menger
