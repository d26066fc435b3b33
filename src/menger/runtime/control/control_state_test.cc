#include "menger/runtime/control/control_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "menger/base/file_testing.h"
#include "menger/runtime/calls/runtime.h"
#include "menger/runtime/control/store_log.h"
#include "menger/runtime/control/store_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::Folder;
using testing_stores::Contents;
using testing_stores::ValueOf;

constexpr std::chrono::seconds kPatience{60};

class Press {
 public:
  int Push(int x) { return x + 1; }
};
std::vector<double> Many(int count) { return std::vector<double>(static_cast<std::size_t>(count)); }
int Crash(int x) {
  kill(getpid(), SIGSEGV);
  return x;
}

// The store of a job that still runs, as it would be found if that were killed now.
class Copy {
 public:
  explicit Copy(const std::string& folder) {
    std::filesystem::copy(folder, copy_ / "store");
    std::filesystem::remove(copy_ / "store/lock");
    store_.emplace(EmbeddedStoreOptions{.journal = KeepInLog({.folder = copy_ / "store"})});
  }
  EmbeddedStore& store() { return *store_; }

 private:
  Folder copy_;
  std::optional<EmbeddedStore> store_;
};

// Looks at copies until one `holds`.
template <typename Holds>
void Await(const std::string& folder, Holds holds) {
  const Deadline deadline = Deadline::After(kPatience);
  bool held = false;
  while (!held && !deadline.expired()) {
    usleep(50'000);
    Copy copy(folder);
    held = holds(copy.store());
  }
  EXPECT_TRUE(held);
}

TEST(ControlStateTest, WhatAJobConsistsOfIsWrittenDown) {
  const Folder folder;
  {
    Runtime runtime({.workers = 1, .job = 5, .control_folder = folder.path()});
    const auto press = runtime.CreateActor<Press>({.name = "press", .restarts = 2});
    runtime.Get(press.Call<&Press::Push>(1));
    const auto large = runtime.Call<Many>(1 << 20);
    runtime.Wait(std::vector{large}, {.count = 1});
    EXPECT_THROW(runtime.Get(runtime.CallWith<Crash>({.retries = 0}, 1)), TaskError);
    Await(folder.path(), [](ControlStore& store) {
      const auto objects = Contents(store, StoreTable::kObjects);
      const auto actors = Contents(store, StoreTable::kActors);
      std::string events;
      for (const auto& [key, value] : Contents(store, StoreTable::kEvents)) events += value;
      std::string functions;
      for (const auto& [key, value] : Contents(store, StoreTable::kFunctions)) functions += value;
      return ValueOf(store, StoreTable::kJobs, "5").find("running") != std::string::npos &&
             actors.size() == 1 && actors.begin()->second.find("alive") != std::string::npos &&
             "5/" + ValueOf(store, StoreTable::kNames, "5/press") == actors.begin()->first &&
             objects.size() == 1 && !Contents(store, StoreTable::kNodes).empty() &&
             events.find("worker_died") != std::string::npos &&
             functions.find("Many") != std::string::npos;
    });
  }
  EmbeddedStore store({.journal = KeepInLog({.folder = folder.path()})});
  EXPECT_THAT(ValueOf(store, StoreTable::kJobs, "5"), HasSubstr("ended"));
}

TEST(ControlStateTest, WhatIsGoneIsDeleted) {
  const Folder folder;
  Runtime runtime({.workers = 1, .job = 5, .control_folder = folder.path()});
  auto press = runtime.CreateActor<Press>({.name = "press"});
  runtime.Get(press.Call<&Press::Push>(1));
  auto large = runtime.Call<Many>(1 << 20);
  runtime.Wait(std::vector{large}, {.count = 1});
  Await(folder.path(), [](ControlStore& store) {
    return Contents(store, StoreTable::kObjects).size() == 1 &&
           Contents(store, StoreTable::kNames).size() == 1;
  });
  press = {};
  large = {};
  Await(folder.path(), [](ControlStore& store) {
    return Contents(store, StoreTable::kObjects).empty() &&
           Contents(store, StoreTable::kNames).empty() &&
           Contents(store, StoreTable::kActors).empty();
  });
}

TEST(ControlStateTest, AJobThatBeginsAgainDeletesWhatTheLastOneLeft) {
  const Folder folder;
  {
    EmbeddedStore store({.journal = KeepInLog({.folder = folder.path()})});
    testing_stores::Do(store, StoreOperation::Put(StoreTable::kActors, "5/left", "x"));
    testing_stores::Do(store, StoreOperation::Put(StoreTable::kActors, "6/other", "x"));
  }
  { const ControlState state(5, folder.path()); }
  EmbeddedStore store({.journal = KeepInLog({.folder = folder.path()})});
  const auto actors = Contents(store, StoreTable::kActors);
  EXPECT_EQ(actors.size(), 1u);
  EXPECT_TRUE(actors.contains("6/other"));
}

}  // namespace
}  // namespace menger
