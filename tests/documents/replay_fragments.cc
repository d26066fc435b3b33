// The fragments of docs/replay.md, each in a function with what its page takes for granted.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "expect.h"
#include "menger/base/error.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/server/replay_server.h"
#include "menger/replay/trajectory_writer.h"

using namespace menger;
using namespace std::chrono_literals;

namespace {

ReplayStoreOptions SmallStore() {
  return {.tables = {{.name = "small",
                      .items = {.steps = Spec({LeafSpec::Discrete("value", 1000)}),
                                .columns = {{.name = "value", .leaf = "value"}}},
                      .items_max = 100}}};
}

void Insert(ReplayStore& store, TrajectoryWriter& writer, std::int64_t value) {
  const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
  const std::int64_t step = writer.Append({&leaf, 1}, 0);
  writer.Add(store.table(0), 1.0, {{{step, 1}}});
  writer.Flush(Deadline::After(1s));
}

void RunInOneScreen() {
  const std::vector<std::byte> frame(84 * 84);
  const std::int64_t action = 3;
  const float reward = 1;
  const std::array<const std::byte*, 3> leaves = {frame.data(),
                                                  reinterpret_cast<const std::byte*>(&action),
                                                  reinterpret_cast<const std::byte*>(&reward)};
  const std::uint64_t version = 1;
  const double priority = 1;
  const std::vector<PriorityUpdate> updates;
#include "blocks/replay/in_one_screen_1.statements.inc"
  Expect(columns.size() == 4, "a batch has a column for each of the items'");
}

void RunCheckpoints() {
  ReplayStore store(SmallStore());
  ReplayStore new_store(SmallStore());
  const auto writer = store.NewWriter(store.table(0).options().items.steps, {});
  const auto new_writer = new_store.NewWriter(store.table(0).options().items.steps, {});
  const std::vector<TrajectoryWriter*> writers = {writer.get()};
  const std::vector<TrajectoryWriter*> new_writers = {new_writer.get()};
  Insert(store, *writer, 7);
  std::filesystem::create_directories("checkpoints/2");
#include "blocks/replay/checkpoints_1.statements.inc"
  Expect(new_store.table(0).info().items == 1, "what was loaded has the item");
}

void RunDurability() {
  const ReplayStoreOptions options = SmallStore();
  for (const int items : {0, 1}) {
#include "blocks/replay/durability_1.statements.inc"
    Expect(store.table(0).info().items == items, "what was kept is there again");
    Insert(store, *store.NewWriter(options.tables[0].items.steps, {}), 7);
  }
}

void RunAsAServer() {
  const Spec steps({LeafSpec::Scalar("observation", DataType::kFloat32),
                    LeafSpec::Scalar("action", DataType::kInt64)});
  ItemSpec items{.steps = steps};
  for (const char* const name : {"observation", "action", "reward", "terminated", "next"}) {
    items.columns.push_back({.name = name, .leaf = "action"});
  }
  ReplayStore store(
      {.tables = {{.name = "replay", .items = items, .items_max = 100}}, .shared = true});
  const ReplayServer server(store, nullptr, {.socket = "replay.sock"});
  const float observation = 1;
  const std::int64_t action = 3;
  const std::array<const std::byte*, 2> leaves = {reinterpret_cast<const std::byte*>(&observation),
                                                  reinterpret_cast<const std::byte*>(&action)};
#include "blocks/replay/as_a_server_2.statements.inc"
  Expect(sample.size() == 1 && sample.items()[0].key.number == 1, "what was written is drawn");
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("menger_documented_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::current_path(folder);
  // All of it compiles; what runs ends where the first step has none before it to be shown.
  bool refused = false;
  try {
    RunInOneScreen();
  } catch (const Error& error) {
    refused = error.code() == ErrorCode::kInvalidArgument;
  }
  Expect(refused, "an item that begins before its stream is refused");
  RunCheckpoints();
  RunDurability();
  RunAsAServer();
  std::filesystem::remove_all(folder);
}
