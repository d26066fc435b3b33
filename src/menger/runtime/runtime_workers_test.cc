#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/runtime.h"

// What worker processes cost their node, and how it gets along with those that are slow.
namespace menger {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

constexpr std::chrono::seconds kPatience{120};

int OpenDescriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// While it exists this process may open only so many descriptors more than it has.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(OpenDescriptors() + more);
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

int Twice(int x) { return 2 * x; }

struct Server {
  int Twice(int x) { return 2 * x; }
  Bytes Make(int bytes) { return Bytes(static_cast<std::size_t>(bytes), 7); }
  int Sum(const Bytes& bytes) {
    int sum = 0;
    for (const std::uint8_t byte : bytes) sum += byte;
    return sum;
  }
  bool AwaitFile(const std::string& path) {
    const Deadline deadline = Deadline::After(kPatience);
    while (!std::filesystem::exists(path) && !deadline.expired()) usleep(1000);
    return !deadline.expired();
  }
};
using Servers = std::vector<ActorRef<Server>>;

Servers Serve(Runtime& runtime, int count) {
  Servers servers;
  for (int i = 0; i < count; ++i) servers.push_back(runtime.CreateActor<Server>({}));
  for (ActorRef<Server>& server : servers) {
    EXPECT_EQ(runtime.Get(server.Call<&Server::Twice>(4), kPatience), 8);
  }
  return servers;
}

// Its control socket, what it prints, and its end.
TEST(RuntimeWorkersTest, AWorkerCostsItsNodeThreeDescriptors) {
  Runtime runtime({.workers = 1});
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(1)), 2);
  const int before = OpenDescriptors();
  const Servers servers = Serve(runtime, 10);
  EXPECT_LE(OpenDescriptors() - before, 3 * 10 + 2);
}

TEST(RuntimeWorkersTest, TheSoftLimitOfDescriptorsBoundsNoWorkers) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 1024) GTEST_SKIP() << "the hard limit is " << limit.rlim_max;
  const FewDescriptors few(30);
  Runtime runtime({.workers = 1});
  Serve(runtime, 30);
}

// Each call may fail, and says why; when there are descriptors again all is as before.
TEST(RuntimeWorkersTest, WorkersThatCannotStartDoNotEndTheJob) {
  Runtime runtime({.workers = 1});
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(1)), 2);
  const Servers servers = Serve(runtime, 2);
  Servers more;
  std::vector<ObjectRef<int>> results;
  {
    const FewDescriptors few(5);
    for (int i = 0; i < 8; ++i) {
      more.push_back(runtime.CreateActor<Server>({}));
      results.push_back(more.back().Call<&Server::Twice>(3));
    }
    runtime.Wait(results, {.count = 8, .timeout = std::chrono::milliseconds(500)});
  }
  for (const ObjectRef<int>& result : results) {
    try {
      EXPECT_EQ(runtime.Get(result, kPatience), 6);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("Too many open files"));
    }
  }
  Serve(runtime, 10);
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(5), kPatience), 10);
}

// More segments than its socket has room for, all while it does something else.
TEST(RuntimeWorkersSlowTest, AReaderThatIsBusyIsOnlySlowAndKeepsNobodyElseWaiting) {
  constexpr int kWriters = 350;
  const std::filesystem::path flag =
      std::filesystem::temp_directory_path() / fmt::format("menger-workers-test-{}", getpid());
  std::filesystem::remove(flag);
  Runtime runtime({.workers = 1});
  ActorRef<Server> reader = runtime.CreateActor<Server>({});
  Servers writers = Serve(runtime, kWriters);
  std::vector<ObjectRef<Bytes>> values;
  for (ActorRef<Server>& writer : writers) values.push_back(writer.Call<&Server::Make>(100'000));
  runtime.Wait(values, {.count = kWriters, .timeout = kPatience});
  const ObjectRef<bool> busy = reader.Call<&Server::AwaitFile>(flag.string());
  std::vector<ObjectRef<int>> sums;
  for (const ObjectRef<Bytes>& value : values) sums.push_back(reader.Call<&Server::Sum>(value));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(runtime.Get(runtime.Call<Twice>(i), kPatience), 2 * i);
  std::ofstream(flag) << "go on";
  EXPECT_TRUE(runtime.Get(busy, kPatience));
  for (const ObjectRef<int>& sum : sums) ASSERT_EQ(runtime.Get(sum, kPatience), 700'000);
  std::filesystem::remove(flag);
}

}  // namespace
}  // namespace menger
