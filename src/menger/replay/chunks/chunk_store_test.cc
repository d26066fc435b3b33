#include "menger/replay/chunks/chunk_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/bounded_queue.h"
#include "menger/base/error.h"

namespace menger {
namespace {

Spec Bytes(std::int64_t count) {
  return Spec({LeafSpec::Box("bytes", DataType::kUint8, {count}, {0}, {255})});
}

ErrorCode CodeOf(auto function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

// A second that waits for less room does not overtake the first.
TEST(ChunkStoreTest, WhoWaitsForRoomGetsItInTurn) {
  const Spec steps({LeafSpec::Discrete("value", 1'000'000)});
  const ChunkLayout small(steps, 8);  // 64 bytes.
  const ChunkLayout large(steps, 16);
  ChunkStore store({.bytes_max = 256});
  std::vector<ChunkId> chunks;
  for (int i = 0; i < 4; ++i) chunks.push_back(store.Allocate(small));
  const Deadline soon = Deadline::After(std::chrono::seconds(60));
  std::atomic<int> served = 0;
  std::thread first([&] {
    store.AllocateWithin(large, soon);
    ++served;
  });
  while (store.waiting() < 1) std::this_thread::yield();
  std::thread second([&] {
    store.AllocateWithin(small, soon);
    ++served;
  });
  while (store.waiting() < 2) std::this_thread::yield();
  EXPECT_THROW(store.AllocateWithin(small, Deadline::After(std::chrono::seconds(0))), Error);
  store.Release(chunks[0]);
  store.Release(chunks[2]);  // Two gaps, and neither is large enough for the first.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(served, 0);  // The second would fit.
  store.Release(chunks[1]);
  first.join();
  second.join();
  EXPECT_EQ(served, 2);
  EXPECT_EQ(store.waiting(), 0);
}

TEST(ChunkLayoutTest, LeavesAreDenseArraysThatBeginOnCacheLines) {
  const ChunkLayout layout(Spec({LeafSpec::Box("frame", DataType::kUint8, {10}, {0}, {255}),
                                 LeafSpec::Scalar("terminated", DataType::kUint8),
                                 LeafSpec::Scalar("reward", DataType::kFloat64)}),
                           /*capacity=*/7);
  EXPECT_EQ(layout.row_bytes(0), 10U);
  EXPECT_EQ(layout.offset(0), 0U);
  EXPECT_EQ(layout.offset(1), 128U);  // 70 bytes of frames, to the next line.
  EXPECT_EQ(layout.offset(2), 192U);
  EXPECT_EQ(layout.bytes(), 256U);
}

TEST(ChunkLayoutTest, CapacitiesThatSlicesCannotCountAreRefused) {
  EXPECT_NO_THROW(ChunkLayout(Bytes(1), 65535));
  EXPECT_EQ(CodeOf([] { ChunkLayout(Bytes(1), 65536); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([] { ChunkLayout(Bytes(1), 0); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([] { ChunkLayout(Spec(), 1); }), ErrorCode::kInvalidArgument);
}

TEST(ChunkLayoutTest, StepsAreKnownByNamesTypesAndShapes) {
  const auto id = [](const char* name, DataType dtype, Shape shape) {
    return StepsId(Spec({LeafSpec::Box(name, dtype, std::move(shape), {0}, {1})}));
  };
  const std::uint64_t same = id("a", DataType::kInt32, {2, 3});
  EXPECT_EQ(
      ChunkLayout(Spec({LeafSpec::Box("a", DataType::kInt32, {2, 3}, {-7}, {7})}), 9).steps_id(),
      same);
  EXPECT_NE(id("b", DataType::kInt32, {2, 3}), same);
  EXPECT_NE(id("a", DataType::kFloat32, {2, 3}), same);
  EXPECT_NE(id("a", DataType::kInt32, {3, 2}), same);
  EXPECT_NE(id("a", DataType::kInt32, {6}), same);
}

TEST(ChunkStoreTest, ChunksTakeWhatTheyNeedToTheNextCacheLine) {
  ChunkStore store({.bytes_max = 1 << 20});
  const ChunkId raw = store.Allocate(ChunkLayout(Bytes(65), 1));
  EXPECT_EQ(store.bytes(raw), 128U);
  EXPECT_FALSE(store.is_compressed(raw));
  const ChunkId compressed = store.Allocate(ChunkLayout(Bytes(1000), 8), 300);
  EXPECT_EQ(store.bytes(compressed), 320U);
  EXPECT_EQ(store.compressed_bytes(compressed), 300U);
  EXPECT_EQ(store.bytes_used(), 448U);
}

TEST(ChunkStoreTest, BlocksDoNotOverlapAndNamesAreUsedAgainLastFreedFirst) {
  ChunkStore store({.bytes_max = 10 * 128});
  const ChunkLayout layout(Bytes(128), 1);
  std::vector<ChunkId> chunks;
  for (int i = 0; i < 10; ++i) {
    chunks.push_back(store.Allocate(layout));
    std::memset(store.Data(chunks.back(), 0), i, 128);
  }
  for (int i = 0; i < 10; ++i) {
    for (int byte = 0; byte < 128; ++byte) {
      ASSERT_EQ(std::to_integer<int>(*store.Data(chunks[i], byte)), i);
    }
  }
  store.Release(chunks[3]);
  store.Release(chunks[7]);
  EXPECT_EQ(store.chunks(), 8U);
  EXPECT_EQ(store.Allocate(layout), chunks[7]);
  EXPECT_EQ(store.Allocate(layout), chunks[3]);
  EXPECT_EQ(store.chunks_end(), 10U);
}

TEST(ChunkStoreTest, AFullStoreSaysWhatIsInUseAndServesAgainAfterARelease) {
  ChunkStore store({.bytes_max = 1000});
  const ChunkLayout layout(Bytes(300), 1);  // 320 bytes as cut.
  std::vector<ChunkId> chunks;
  for (int i = 0; i < 3; ++i) chunks.push_back(store.Allocate(layout));
  try {
    store.Allocate(layout);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(std::string(error.what()).find("960 of 1000 are in use by 3 chunks"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(store.bytes_used(), 960U);
  store.Release(chunks[1]);
  EXPECT_EQ(store.Allocate(layout), chunks[1]);
}

// As where frames come to compress less well: many small gaps become a few large ones.
TEST(ChunkStoreTest, WhatSmallChunksLeftServesLargerOnes) {
  ChunkStore store({.bytes_max = 640});
  std::vector<ChunkId> small;
  for (int i = 0; i < 10; ++i) small.push_back(store.Allocate(ChunkLayout(Bytes(64), 1)));
  for (int i = 0; i < 10; i += 2) store.Release(small[i]);
  const std::string text = [&] {
    try {
      store.Allocate(ChunkLayout(Bytes(128), 1));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  }();
  EXPECT_NE(text.find("320 of 640 are in use by 5 chunks, and the largest gap has 64"),
            std::string::npos)
      << text;
  store.Release(small[5]);
  EXPECT_EQ(store.bytes(store.Allocate(ChunkLayout(Bytes(192), 1))), 192U);
}

TEST(ChunkStoreTest, AChunkLargerThanTheStoreIsTheCallersMistake) {
  ChunkStore store({.bytes_max = 640});
  EXPECT_EQ(CodeOf([&] { store.Allocate(ChunkLayout(Bytes(641), 1)); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([] { ChunkStore({.bytes_max = 0}); }), ErrorCode::kInvalidArgument);
}

TEST(ChunkStoreTest, AChunkIsFreedWithItsLastReference) {
  ChunkStore store({.bytes_max = 128});
  const ChunkLayout layout(Bytes(128), 1);
  const ChunkId chunk = store.Allocate(layout);
  store.AddReference(chunk, 3);
  store.Release(chunk);
  store.Release(chunk, 2);
  EXPECT_EQ(store.chunks(), 1U);
  EXPECT_EQ(CodeOf([&] { store.Allocate(layout); }), ErrorCode::kUnavailable);
  store.Release(chunk);
  EXPECT_EQ(store.chunks(), 0U);
  EXPECT_EQ(store.Allocate(layout), chunk);
  EXPECT_EQ(store.rows(chunk), 0);
}

// A process that has the memory in an address space of its own.
TEST(ChunkStoreTest, SharedMemoryIsSeenByAnotherProcess) {
  for (const bool shared : {true, false}) {
    ChunkStore store({.bytes_max = std::size_t{1} << 34, .shared = shared});
    const ChunkId chunk = store.Allocate(ChunkLayout(Bytes(1000), 8));
    std::memset(store.Data(chunk, 0), 7, 8000);
    const pid_t other = fork();
    ASSERT_GE(other, 0);
    if (other == 0) {
      const bool sees = std::to_integer<int>(*store.Data(chunk, 7999)) == 7;
      std::memset(store.Data(chunk, 0), 9, 8000);
      store.Publish(chunk, 3);
      _exit(sees ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(other, &status, 0), other);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(std::to_integer<int>(*store.Data(chunk, 7999)), shared ? 9 : 7);
    EXPECT_EQ(store.rows(chunk), shared ? 3 : 0);
  }
}

// Writers fill chunks row by row while readers, told of the chunk at once, follow the published
// rows; whoever is last frees it. TSan sees what the counts alone could hide.
TEST(ChunkStoreTest, ReadersFollowWritersWithoutALock) {
  constexpr int kWriters = 2;
  constexpr int kReaders = 2;
  constexpr int kChunks = 300;  // A writer.
  constexpr int kRows = 16;
  const ChunkLayout layout(Spec({LeafSpec::Box("numbers", DataType::kInt64, {4}, {0}, {1})}),
                           kRows);
  ChunkStore store({.bytes_max = 24 * layout.bytes()});
  BoundedQueue<ChunkId> queue(8);
  constexpr std::chrono::seconds kLong{60};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> writers, readers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kChunks; ++i) {
        const ChunkId chunk = store.Allocate(layout);
        store.AddReference(chunk);  // The reader's.
        queue.Push(chunk, kLong);
        for (int row = 0; row < kRows; ++row) {
          const std::int64_t numbers[4] = {writer, i, row, writer + i + row};
          std::memcpy(store.Data(chunk, layout.row_bytes(0) * row), numbers, sizeof(numbers));
          store.Publish(chunk, row + 1);
        }
        store.Release(chunk);
      }
    });
  }
  for (int reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&] {
      while (const std::optional<ChunkId> chunk = queue.Pop(kLong)) {
        for (int seen = 0; seen < kRows;) {
          const int rows = store.rows(*chunk);
          for (; seen < rows; ++seen) {
            std::int64_t numbers[4];
            std::memcpy(numbers, store.Data(*chunk, layout.row_bytes(0) * seen), sizeof(numbers));
            if (numbers[2] != seen || numbers[3] != numbers[0] + numbers[1] + seen) ++wrong;
          }
        }
        store.Release(*chunk);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  queue.Close();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.chunks(), 0U);
  EXPECT_EQ(store.bytes_used(), 0U);
}

}  // namespace
}  // namespace menger
