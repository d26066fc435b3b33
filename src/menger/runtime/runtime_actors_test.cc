#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>

#include <atomic>
#include <thread>

#include "menger/runtime/testing/isolations.h"

// Where actors live, how long, and how they wait for one another.
namespace menger {
namespace {

using std::chrono::milliseconds;

class ActorsTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, ActorsTest, BothIsolations(), IsolationName);

class Cell {
 public:
  explicit Cell(int value) : value_(value) {}
  ~Cell() { ++destroyed; }
  int Add(int amount) { return value_ += amount; }
  std::size_t LengthOf(Runtime& runtime, const std::string& text) {
    return runtime.Get(runtime.Call<[](std::size_t length) { return length; }>(text.size()));
  }
  int Process() { return getpid(); }
  int Die() { return std::raise(SIGKILL); }
  // Asks another actor, which may live here, too.
  // Through a chain of actors, the last of which only adds.

  static std::atomic<int> destroyed;

 private:
  int value_;
};
std::atomic<int> Cell::destroyed{0};

template <typename Condition>
bool BecomesTrue(const Condition& condition) {
  for (int i = 0; i < 5000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(1));
  return condition();
}

struct Named {
  explicit Named(const std::string& given) : name(given) {}
  std::string Name() const { return name; }
  std::string name;
};

TEST_P(ActorsTest, AConstructorTakesALiteralForAString) {
  const ActorRef<Named> named = runtime.CreateActor<Named>({}, "a literal");
  EXPECT_EQ(runtime.Get(named.Call<&Named::Name>()), "a literal");
}

// ---- How long they live.

TEST_P(ActorsTest, TheLastHandleEndsAnActor) {
  const int before = Cell::destroyed;
  int process = 0;
  {
    ActorRef<Cell> cell = runtime.CreateActor<Cell>({}, 1);
    process = runtime.Get(cell.Call<&Cell::Process>());
    const ActorRef<Cell> copy = cell;
    cell = ActorRef<Cell>();
    EXPECT_EQ(runtime.Get(copy.Call<&Cell::Add>(1)), 2);
  }
  if (GetParam() == Isolation::kThread) {
    EXPECT_TRUE(BecomesTrue([&] { return Cell::destroyed == before + 1; }));
  } else {
    EXPECT_TRUE(BecomesTrue([&] { return kill(process, 0) != 0; }));
  }
}

TEST_P(ActorsTest, CallsOutliveTheirHandles) {
  const ObjectRef<int> sum = runtime.CreateActor<Cell>({}, 1).Call<&Cell::Add>(2);
  EXPECT_EQ(runtime.Get(sum), 3);
}

int AddToAll(Runtime& runtime, const std::vector<ActorRef<Cell>>& cells) {
  int sum = 0;
  for (const ActorRef<Cell>& cell : cells) sum += runtime.Get(cell.Call<&Cell::Add>(1));
  return sum;
}
ActorRef<Cell> MakeCell(Runtime& runtime, int value) {
  return runtime.CreateActor<Cell>({}, value);
}

class Keeper {
 public:
  void Keep(const ActorRef<Cell>& cell) { kept_ = cell; }
  int Add(Runtime& runtime, int amount) { return runtime.Get(kept_.Call<&Cell::Add>(amount)); }
  void Drop() { kept_ = ActorRef<Cell>(); }

 private:
  ActorRef<Cell> kept_;
};

TEST_P(ActorsTest, HandlesTravelInValues) {
  const std::vector cells = {runtime.CreateActor<Cell>({}, 1), runtime.CreateActor<Cell>({}, 2)};
  EXPECT_EQ(runtime.Get(runtime.Call<AddToAll>(cells)), 5);
  EXPECT_EQ(runtime.Get(runtime.Call<AddToAll>(runtime.Put(cells))), 7);
  const ActorRef<Cell> made = runtime.Get(runtime.Call<MakeCell>(5));
  EXPECT_EQ(runtime.Get(made.Call<&Cell::Add>(1)), 6);
}

TEST_P(ActorsTest, AnActorKeepsAnother) {
  const int before = Cell::destroyed;
  const ActorRef<Keeper> keeper = runtime.CreateActor<Keeper>({});
  int process = 0;
  {
    const ActorRef<Cell> cell = runtime.CreateActor<Cell>({}, 1);
    process = runtime.Get(cell.Call<&Cell::Process>());
    runtime.Get(keeper.Call<&Keeper::Keep>(cell));
  }
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(runtime.Get(keeper.Call<&Keeper::Add>(1)), 2);
  runtime.Get(keeper.Call<&Keeper::Drop>());
  EXPECT_TRUE(BecomesTrue([&] {
    return GetParam() == Isolation::kThread ? Cell::destroyed > before : kill(process, 0) != 0;
  }));
}

// More than fits its queue, and every one waits for an answer that must find room there.
TEST(ActorProcessTest, AnswersReachAnActorWhoseQueueIsFull) {
  Runtime runtime({.workers = 1});
  const std::string text(40'000, 'x');
  for (const int concurrency : {1, 4}) {
    const ActorRef<Cell> cell = runtime.CreateActor<Cell>({.concurrency = concurrency}, 1);
    std::vector<ObjectRef<std::size_t>> lengths;
    for (int i = 0; i < 1000; ++i) lengths.push_back(cell.Call<&Cell::LengthOf>(text));
    for (const std::size_t length : runtime.Get(lengths, std::chrono::seconds(60))) {
      ASSERT_EQ(length, text.size());
    }
  }
}

}  // namespace
}  // namespace menger
