#include "menger/runtime/control/embedded_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "menger/runtime/control/control_store_testing.h"
#include "menger/runtime/control/store_testing.h"

namespace menger::testing_stores {
namespace {

struct EmbeddedWorld {
  static constexpr int kRandomOperations = 20'000;
  static constexpr int kAdditions = 500;

  ControlStore& store() { return embedded; }

  std::atomic<std::int64_t> now{1000};
  EmbeddedStore embedded{{.now = [this] { return now.load(); }}};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Embedded, ControlStoreTest, EmbeddedWorld);

TEST(EmbeddedStoreTest, AWatchHintsAtChangesOfItsKeysUntilItGoes) {
  EmbeddedStore store;
  int hints = 0;
  auto watch = store.Watch(kTable, "a/", [&] { ++hints; });
  Do(store, StoreOperation::Put(kTable, "a/1", ""));
  EXPECT_EQ(hints, 1);
  Do(store, StoreOperation::Put(kTable, "b", ""));
  Do(store, StoreOperation::Put(kOther, "a/1", ""));
  Do(store, StoreOperation::PutIf(kTable, "a/1", 0, ""));
  EXPECT_EQ(hints, 1);
  Do(store, StoreOperation::Delete(kTable, "a/1"));
  EXPECT_EQ(hints, 2);
  watch.reset();
  Do(store, StoreOperation::Put(kTable, "a/1", ""));
  EXPECT_EQ(hints, 2);
}

}  // namespace
}  // namespace menger::testing_stores
