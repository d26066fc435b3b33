#include "menger/runtime/cluster/remote_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/runtime/cluster/remote_store_testing.h"
#include "menger/runtime/control/store_testing.h"

namespace menger {
namespace {

using Operation = StoreOperation;
using testing_stores::Do;

constexpr StoreTable kTable = StoreTable::kActors;

TEST(RemoteStoreTest, WhatIsPutHereIsThere) {
  EmbeddedStore embedded;
  StoreHead head(embedded);
  StoreClient client(head.address());
  EXPECT_TRUE(Do(client.store(), Operation::Put(kTable, "a", "1")).done());
  EXPECT_EQ(testing_stores::ValueOf(embedded, kTable, "a"), "1");
}

}  // namespace
}  // namespace menger
