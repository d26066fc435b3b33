// A process to be killed, for kill.py.
//
//     menger_replay_crash write FOLDER SEED    goes on from the newest checkpoint in FOLDER:
//     inserts,
//                                              draws, and makes checkpoints, until it is killed
//     menger_replay_crash check FOLDER         loads the newest checkpoint and looks at every item
//
// `write` prints "acknowledged N" when a checkpoint with N items inserted is on the disk; `check`
// prints "recovered N", or fails.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "crash_program.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kItemsMax = 2000;
constexpr int kRowWords = 64;
constexpr int kWriters = 3;

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

ItemSpec Items() {
  return {.steps = Spec({LeafSpec::Box("words", DataType::kInt64, {kRowWords}, {0}, {1e18})}),
          .columns = {{.name = "words", .leaf = "words", .rows = 4}}};
}

ReplayStoreOptions Options() {
  TableOptions first{.name = "first",
                     .items = Items(),
                     .sampler = {.kind = SelectorKind::kPrioritised},
                     .items_max = kItemsMax,
                     // As they are compressed: half of what the rows are.
                     .bytes_max = std::size_t{kItemsMax} * kRowWords * 8 / 2};
  TableOptions second = first;
  second.name = "second";
  second.sampler.kind = SelectorKind::kUniform;
  return {.tables = {first, second}, .writer_bytes = std::size_t{1} << 20};
}

// Numbers of the checkpoints in a folder, ascending.
std::vector<std::int64_t> Checkpoints(const std::string& folder) {
  std::vector<std::int64_t> numbers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

// A store, its writers, and the newest checkpoint in the folder, if there is one.
struct Replay {
  explicit Replay(const std::string& path) : folder(path), store(Options()) {
    for (std::unique_ptr<TrajectoryWriter>& writer : writers) {
      writer = store.NewWriter(
          Items().steps, {.chunk_steps = 32, .history = 4, .compression = Compression::kAutomatic});
    }
    const std::vector<std::int64_t> found = Checkpoints(folder);
    if (found.empty()) return;
    number = found.back();
    ReplayCheckpoint::Load(Path(number), store, Pointers());
  }
  std::array<TrajectoryWriter*, kWriters> Pointers() const {
    std::array<TrajectoryWriter*, kWriters> pointers{};
    for (int i = 0; i < kWriters; ++i) pointers[i] = writers[i].get();
    return pointers;
  }
  std::int64_t Steps() const {  // Of all writers.
    std::int64_t steps = 0;
    for (const std::unique_ptr<TrajectoryWriter>& writer : writers) steps += writer->steps();
    return steps;
  }
  std::string Path(std::int64_t checkpoint) const {
    return folder + "/" + std::to_string(checkpoint);
  }

  const std::string folder;
  ReplayStore store;
  std::array<std::unique_ptr<TrajectoryWriter>, kWriters> writers;
  std::int64_t number = 0;  // Of the newest checkpoint.
};

// Word `index` of a writer's step.
std::int64_t WordOf(std::int64_t writer, std::int64_t step, int index) {
  return index == 0 ? writer : step + index / 8;
}

// Writers take turns. An item has priority 1 + the count of those before it, and shows the four
// newest steps of its writer.
void Insert(Replay& replay) {
  const std::int64_t count = replay.Steps();
  TrajectoryWriter& writer = *replay.writers[count % kWriters];
  std::int64_t words[kRowWords];
  for (int i = 0; i < kRowWords; ++i) words[i] = WordOf(count % kWriters, writer.steps(), i);
  const auto* const leaf = reinterpret_cast<const std::byte*>(words);
  const std::int64_t step = writer.Append({&leaf, 1}, 0);
  const int rows = static_cast<int>(std::min<std::int64_t>(step + 1, 4));
  const StepRange range{.first = step + 1 - rows, .count = rows};
  for (int i = 0; i < replay.store.tables(); ++i) {
    writer.Add(replay.store.table(i), 1.0 + static_cast<double>(count), {&range, 1});
  }
  writer.Flush(Soon());
}

[[noreturn]] void Write(const std::string& folder, std::uint64_t seed) {
  Random random = Random::FromSeed(seed);
  Replay replay(folder);
  Sample sample;
  for (;;) {
    for (std::int64_t left = random.Integers(1, 2000); left > 0; --left) Insert(replay);
    replay.store.table(0).SampleInto({.count = 32, .deadline = Soon()}, sample);
    sample.Release();
    const std::string previous = replay.number == 0 ? "" : replay.Path(replay.number);
    ++replay.number;
    const auto writers = replay.Pointers();
    ReplayCheckpoint(replay.store, writers).Write(replay.Path(replay.number), previous);
    std::printf("acknowledged %lld\n",
                static_cast<long long>(replay.store.table(0).info().inserts));
    std::fflush(stdout);
    for (const std::int64_t old : Checkpoints(folder)) {
      if (old + 1 < replay.number) fs::remove_all(replay.Path(old));
    }
  }
}

void Expect(bool fact, const std::string& otherwise) {
  if (!fact) throw DataLoss("a corrupt recovery: {}", otherwise);
}

// Each row of an item that some writer's step ended.
void CheckItem(const ReplayStore& store, SliceReader& reader, const Sample& sample, int item) {
  const auto count = static_cast<std::int64_t>(sample.items()[item].key.number) - 1;
  const std::int64_t writer = count % kWriters;
  const std::int64_t last = count / kWriters;
  std::int64_t step = std::max<std::int64_t>(last - 3, 0);
  for (const Slice& slice : sample.slices(item, 0)) {
    const StridedView rows = reader.Find(store.chunks(), slice, 0);
    for (int row = 0; row < slice.length; ++row, ++step) {
      std::int64_t words[kRowWords];
      std::memcpy(words, rows.data + rows.stride * row, sizeof words);
      for (int i = 0; i < kRowWords; ++i) {
        if (words[i] == WordOf(writer, step, i)) continue;  // Ten million times.
        Expect(false,
               fmt::format("word {} of step {} of writer {} is {}", i, step, writer, words[i]));
      }
    }
  }
  Expect(step == last + 1, fmt::format("item {} ends with step {}", count + 1, step - 1));
}

void Check(const std::string& folder) {
  Replay replay(folder);
  const std::int64_t steps = replay.Steps();
  for (int i = 0; i < replay.store.tables(); ++i) {
    Table& table = replay.store.table(i);
    const TableInfo info = table.info();
    Expect(info.inserts == steps, fmt::format("{} inserts of {} steps", info.inserts, steps));
    Expect(info.items == std::min(steps, kItemsMax), fmt::format("{} items", info.items));
    if (steps == 0) continue;
    Sample sample;
    table.SampleInto({.count = 20'000, .deadline = Soon()}, sample);
    SliceReader reader(Items());
    for (int item = 0; item < sample.size(); ++item) {
      CheckItem(replay.store, reader, sample, item);
    }
  }
  Insert(replay);  // It goes on.
  std::printf("recovered %lld\n", static_cast<long long>(steps));
}

}  // namespace
}  // namespace menger

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const char* const usage = "menger_replay_crash write FOLDER SEED | check FOLDER";
  return menger::RunCrashProgram(usage, [&] {
    if (mode == "write" && argc == 4) menger::Write(argv[2], std::stoull(argv[3]));
    if (mode != "check" || argc != 3) return false;
    menger::Check(argv[2]);
    return true;
  });
}
