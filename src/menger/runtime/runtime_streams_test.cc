#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "menger/runtime/testing/isolations.h"

namespace menger {
namespace {

using std::chrono::milliseconds;

class StreamsTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, StreamsTest, BothIsolations(), IsolationName);

// A file that says that something has happened, whatever process sees it.
class Mark {
 public:
  explicit Mark(const std::string& name)
      : path_(testing::TempDir() + "menger_mark_" + std::to_string(getpid()) + name) {
    std::filesystem::remove(path_);
  }
  ~Mark() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  bool Appears() const {
    for (int i = 0; i < 5000 && !std::filesystem::exists(path_); ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return std::filesystem::exists(path_);
  }

 private:
  std::string path_;
};
void Set(const std::string& path) { std::ofstream(path) << "x"; }

void Count(Emitter<int>& emit, int count) {
  for (int i = 0; i < count; ++i) emit(i);
}

TEST_P(StreamsTest, ItemsComeInOrder) {
  for (const int count : {0, 1, 1000}) {
    ObjectStream<int> stream = runtime.Stream<Count>(count);
    int expected = 0;
    for (const ObjectRef<int>& item : stream) ASSERT_EQ(runtime.Get(item), expected++);
    EXPECT_EQ(expected, count);
    EXPECT_FALSE(stream.Next().has_value());
  }
}

void CountThenThrow(Emitter<int>& emit, int count) {
  Count(emit, count);
  throw std::out_of_range("no more");
}

TEST_P(StreamsTest, AnErrorComesAfterTheItemsBefore) {
  ObjectStream<int> stream = runtime.Stream<CountThenThrow>(3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(runtime.Get(*stream.Next()), i);
  try {
    stream.Next();
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.failure().type, "std::out_of_range");
  }
  EXPECT_FALSE(stream.Next().has_value());
}

class Counter {
 public:
  int Add(int amount) { return value_ += amount; }
  void Squares(Emitter<int>& emit, int count) {
    for (int i = 0; i < count; ++i) emit(i * i + value_);
  }

 private:
  int value_ = 0;
};

void CountAndTell(Runtime& runtime, Emitter<int>& emit, const ActorRef<Counter>& counter,
                  int count) {
  for (int i = 0; i < count; ++i) {
    emit(i);
    runtime.Get(counter.Call<&Counter::Add>(1));
  }
}

TEST_P(StreamsTest, AWriterWaitsForASlowReader) {
  const ActorRef<Counter> counter = runtime.CreateActor<Counter>({});
  ObjectStream<int> stream = runtime.StreamWith<CountAndTell>({.stream_ahead = 4}, counter, 50);
  EXPECT_EQ(runtime.Get(*stream.Next()), 0);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LE(runtime.Get(counter.Call<&Counter::Add>(0)), 5);
  int expected = 1;
  for (const ObjectRef<int>& item : stream) ASSERT_EQ(runtime.Get(item), expected++);
  EXPECT_EQ(expected, 50);
}

TEST_P(StreamsTest, AWriterGoesOnWithEachItemThatIsReadOfAFewAhead) {
  const ActorRef<Counter> counter = runtime.CreateActor<Counter>({});
  ObjectStream<int> stream = runtime.StreamWith<CountAndTell>({.stream_ahead = 4}, counter, 50);
  const auto told = [&] { return runtime.Get(counter.Call<&Counter::Add>(0)); };
  const auto reaches = [&](int count) {
    for (const Deadline deadline = Deadline::After(milliseconds(60'000)); told() < count;) {
      if (deadline.expired()) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  };
  // The writer waits inside of the emit of the last of them.
  EXPECT_TRUE(reaches(3));
  for (int read = 1; read <= 4; ++read) {
    EXPECT_EQ(runtime.Get(*stream.Next()), read - 1);
    EXPECT_TRUE(reaches(3 + read));
  }
}

struct WhenGone {
  std::string path;
  ~WhenGone() { Set(path); }
};
void CountForever(Emitter<int>& emit, const std::string& path) {
  const WhenGone gone{path};
  for (int i = 0;; ++i) emit(i);
}

// Far more than there are workers, each of which waits for its reader.
TEST_P(StreamsTest, ManyAreReadInAnyOrder) {
  constexpr int kStreams = 40;
  std::vector<ObjectStream<int>> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(runtime.Stream<Count>(200));
  for (int i = kStreams - 1; i >= 0; --i) {
    // Far less than what it takes until so many were let in one by one.
    int expected = 0;
    while (const auto item = streams[static_cast<std::size_t>(i)].Next(milliseconds(10'000))) {
      ASSERT_EQ(runtime.Get(*item), expected++);
    }
    EXPECT_EQ(expected, 200);
  }
}

TEST_P(StreamsTest, ADroppedStreamEndsItsCall) {
  const Mark mark("dropped");
  {
    ObjectStream<int> stream = runtime.Stream<CountForever>(mark.path());
    EXPECT_EQ(runtime.Get(*stream.Next()), 0);
    EXPECT_EQ(runtime.Get(*stream.Next()), 1);
  }
  EXPECT_TRUE(mark.Appears());
  EXPECT_EQ(runtime.Get(*runtime.Stream<Count>(1).Next()), 0);
}

void Slowly(Emitter<int>& emit, int pause) {
  std::this_thread::sleep_for(milliseconds(pause));
  emit(7);
}

TEST_P(StreamsTest, AReaderMayStopWaitingAndGoOn) {
  ObjectStream<int> stream = runtime.Stream<Slowly>(100);
  EXPECT_THROW(stream.Next(milliseconds(5)), Error);
  EXPECT_EQ(runtime.Get(*stream.Next()), 7);
  EXPECT_FALSE(stream.Next().has_value());
}

int SumOfStream(Runtime& runtime, int count) {
  int sum = 0;
  for (const ObjectRef<int>& item : runtime.Stream<Count>(count)) sum += runtime.Get(item);
  return sum;
}

TEST_P(StreamsTest, CallsReadStreams) {
  EXPECT_EQ(runtime.Get(runtime.Call<SumOfStream>(300)), 300 * 299 / 2);
}

TEST_P(StreamsTest, MethodsAreStreams) {
  const ActorRef<Counter> counter = runtime.CreateActor<Counter>({});
  counter.Call<&Counter::Add>(5);
  int expected = 0;
  ObjectStream<int> stream = counter.Stream<&Counter::Squares>(100);
  for (const ObjectRef<int>& item : stream) {
    ASSERT_EQ(runtime.Get(item), expected * expected + 5);
    ++expected;
  }
  EXPECT_EQ(expected, 100);
}

void Blocks(Emitter<std::vector<double>>& emit, int count) {
  for (int i = 0; i < count; ++i) emit(std::vector<double>(100'000, i));
}
int Negate(int x) { return -x; }
void ReferencesTo(Runtime& runtime, Emitter<std::vector<ObjectRef<int>>>& emit, int count) {
  for (int i = 0; i < count; ++i) emit({runtime.Put(i), runtime.Call<Negate>(i)});
}

TEST_P(StreamsTest, ItemsHoldReferences) {
  int expected = 0;
  ObjectStream<std::vector<ObjectRef<int>>> stream = runtime.Stream<ReferencesTo>(40);
  for (const auto& item : stream) {
    const std::vector<ObjectRef<int>> pair = runtime.Get(item);
    EXPECT_EQ(runtime.Get(pair), (std::vector<int>{expected, -expected}));
    ++expected;
  }
  EXPECT_EQ(expected, 40);
}

// 800 KB an item: the store has room for ten.
TEST(StreamStoreTest, ItemsThatWereTakenAreFreed) {
  Runtime runtime({.workers = 1, .store_bytes_max = 8'000'000});
  int expected = 0;
  ObjectStream<std::vector<double>> stream = runtime.StreamWith<Blocks>({.stream_ahead = 3}, 60);
  for (const auto& item : stream) ASSERT_EQ(runtime.Get(item)[99'999], expected++);
  EXPECT_EQ(expected, 60);
}

void CountAndDie(Emitter<int>& emit, int count, const std::string& mark) {
  for (int i = 0; i < count; ++i) {
    if (i == count / 2 && !std::filesystem::exists(mark)) {
      Set(mark);
      std::raise(SIGKILL);
    }
    emit(i);
  }
}
int SumAndDie(Runtime& runtime, int count, const std::string& mark) {
  int sum = 0;
  for (const ObjectRef<int>& item : runtime.Stream<Count>(count)) {
    sum += runtime.Get(item);
    if (sum > count && !std::filesystem::exists(mark)) {
      Set(mark);
      std::raise(SIGKILL);
    }
  }
  return sum;
}

class StreamDeathsTest : public testing::Test {
 protected:
  Runtime runtime{RuntimeOptions{.workers = 2}};
};

TEST_F(StreamDeathsTest, AWriterDies) {
  const Mark mark("writer");
  ObjectStream<int> stream =
      runtime.StreamWith<CountAndDie>({.stream_ahead = 16}, 200, mark.path());
  int expected = 0;
  for (const ObjectRef<int>& item : stream) ASSERT_EQ(runtime.Get(item), expected++);
  EXPECT_EQ(expected, 200);
  EXPECT_TRUE(mark.Appears());
}

TEST_F(StreamDeathsTest, AWriterDiesTooOften) {
  const Mark mark("often");
  ObjectStream<int> stream = runtime.StreamWith<CountAndDie>({.retries = 0}, 10, mark.path());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(runtime.Get(*stream.Next()), i);
  try {
    stream.Next();
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kWorkerDied);
  }
}

TEST_F(StreamDeathsTest, AReaderDiesAndReadsAgain) {
  const Mark mark("reader");
  EXPECT_EQ(runtime.Get(runtime.Call<SumAndDie>(300, mark.path())), 300 * 299 / 2);
  EXPECT_TRUE(mark.Appears());
}

// Has a stream until its process ends, without a word.
class Reader {
 public:
  int Begin(Runtime& runtime, const std::string& mark) {
    static auto* const streams = new std::vector<ObjectStream<int>>();
    streams->push_back(runtime.Stream<CountForever>(mark));
    return runtime.Get(*streams->back().Next());
  }
};

TEST_F(StreamDeathsTest, AReaderThatNobodyNeedsEndsWhatItReads) {
  const Mark mark("unneeded");
  {
    const ActorRef<Reader> reader = runtime.CreateActor<Reader>({});
    EXPECT_EQ(runtime.Get(reader.Call<&Reader::Begin>(mark.path())), 0);
  }
  EXPECT_TRUE(mark.Appears());
}

}  // namespace
}  // namespace menger
