// A process that journals a replay store, to be killed, for kill_journal.py.
//
//     menger_journal_crash write FOLDER SEED ACKNOWLEDGED [SYNCED]    recovers FOLDER, then
//     inserts,
//                                              draws, changes priorities and deletes until killed
//     menger_journal_crash check FOLDER        recovers and looks at every item
//
// `write` appends to the file ACKNOWLEDGED, for each insert that returned, its number and when the
// call began and returned (int64, nanoseconds of the monotonic clock). With SYNCED no fsync reaches
// the disk: it is written there instead what each would have brought to it, and some take long.
// `check` prints "recovered N", or fails.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "crash_program.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"

namespace menger {
namespace {

constexpr std::int64_t kItemsMax = 2000;
constexpr int kRowWords = 16;
constexpr std::chrono::milliseconds kLossMax(40);  // As kill_journal.py has it.

int synced_log = -1;  // Where fsync, below, says what it did.

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

ItemSpec Items() {
  return {.steps = Spec({LeafSpec::Box("words", DataType::kInt64, {kRowWords}, {0}, {1e18})}),
          .columns = {{.name = "words", .leaf = "words", .rows = 4}}};
}

// `once`: each item can be drawn once, newest first.
ReplayStoreOptions Options(bool once) {
  TableOptions first{.name = "first", .items = Items(), .items_max = kItemsMax};
  if (once) {
    first.sampler.kind = SelectorKind::kLifo;
    first.times_sampled_max = 1;
  }
  TableOptions second = first;
  second.name = "second";
  return {.tables = {first, second}, .bytes_max = std::size_t{1} << 26};
}

DurabilityOptions Kept(const std::string& folder) {
  return {.kind = Durability::kJournal,
          .folder = folder,
          .checkpoint_every = std::chrono::milliseconds(50),
          .loss_max = kLossMax};
}

// The item of the first table with number n + 1 ends with a step that holds n, n + 1, ...; its
// priority is 1 + n, or twice that once it was updated.
void Insert(ReplayStore& store, TrajectoryWriter& writer, std::int64_t value, int first_table = 0) {
  std::int64_t words[kRowWords];
  for (int i = 0; i < kRowWords; ++i) words[i] = value + i;
  const auto* const leaf = reinterpret_cast<const std::byte*>(words);
  const std::int64_t step = writer.Append({&leaf, 1}, 0);
  const int count = static_cast<int>(std::min<std::int64_t>(step + 1, 4));
  const StepRange range{.first = step + 1 - count, .count = count};
  for (int i = first_table; i < store.tables(); ++i) {
    writer.Add(store.table(i), 1.0 + static_cast<double>(value), {&range, 1});
  }
  writer.Flush(Soon());
}

void Disturb(Table& table, Random& random, Sample& sample) {
  table.SampleInto({.count = 8, .deadline = Soon()}, sample);
  std::vector<PriorityUpdate> updates;
  for (const SampledItem& item : sample.items()) {
    updates.push_back({.key = item.key, .priority = 2.0 * static_cast<double>(item.key.number)});
  }
  table.UpdatePriorities(updates);
  const ItemKey key = sample.items()[0].key;
  if (random.Integers(0, 4) == 0 && table.info().items > 100) table.Delete({&key, 1});
  sample.Release();
}

[[noreturn]] void Write(const std::string& folder, std::uint64_t seed, const std::string& path) {
  Random random = Random::FromSeed(seed);
  const FileDescriptor acknowledged = CreateFile(path);
  ReplayStore store(Options(/*once=*/false));
  const ReplayKeeper keeper(store, Kept(folder));
  const auto writer = store.NewWriter(Items().steps, {.chunk_steps = 32, .history = 4});
  Sample sample;
  const std::int64_t recovered = store.table(0).info().inserts;
  if (store.table(1).info().inserts < recovered) {
    // Killed between the two tables; a second such end would leave the second two steps behind.
    Insert(store, *store.NewWriter(Items().steps, {.history = 4}), recovered - 1, 1);
  }
  for (std::int64_t value = recovered;; ++value) {
    std::int64_t record[3] = {value + 1, MonotonicNanoseconds(), 0};
    Insert(store, *writer, value);
    record[2] = MonotonicNanoseconds();
    WriteAll(acknowledged, std::as_bytes(std::span(record)), path);
    if (random.Integers(0, 10) == 0) Disturb(store.table(0), random, sample);
  }
}

void Expect(bool fact, const std::string& otherwise) {
  if (!fact) throw DataLoss("a corrupt recovery: {}", otherwise);
}

// The step that an item ends with.
std::int64_t CheckItem(const ReplayStore& store, SliceReader& reader, const Sample& sample,
                       int item) {
  std::optional<std::int64_t> step;
  for (const Slice& slice : sample.slices(item, 0)) {
    const StridedView rows = reader.Find(store.chunks(), slice, 0);
    for (int row = 0; row < slice.length; ++row) {
      std::int64_t words[kRowWords];
      std::memcpy(words, rows.data + rows.stride * row, sizeof words);
      if (step) Expect(words[0] == *step + 1, fmt::format("{} after {}", words[0], *step));
      step = words[0];
      for (int i = 0; i < kRowWords; ++i) {
        Expect(words[i] == *step + i, fmt::format("step {} is {}", *step + i, words[i]));
      }
    }
  }
  const double whole = 1.0 + static_cast<double>(*step);
  const double priority = sample.items()[item].priority;
  Expect(priority == whole || priority == 2 * whole,
         fmt::format("step {} has priority {}", *step, priority));
  return *step;
}

// Draws every item; the steps that they end with, newest first.
std::vector<std::int64_t> CheckTable(ReplayStore& store, Table& table) {
  const TableInfo info = table.info();
  std::vector<std::int64_t> steps;
  if (info.items == 0) return steps;
  Sample sample;
  table.SampleInto({.count = static_cast<int>(info.items), .deadline = Soon()}, sample);
  SliceReader reader(Items());
  for (int item = 0; item < sample.size(); ++item) {
    steps.push_back(CheckItem(store, reader, sample, item));
    const auto number = static_cast<std::int64_t>(sample.items()[item].key.number);
    Expect(&table != &store.table(0) || number == steps.back() + 1,
           fmt::format("item {} ends with step {}", number, steps.back()));
    Expect(item == 0 || steps[item] < steps[item - 1], "items are out of order");
  }
  return steps;
}

void Check(const std::string& folder) {
  ReplayStore store(Options(/*once=*/true));
  { const ReplayKeeper keeper(store, Kept(folder)); }
  const std::int64_t inserts = store.table(0).info().inserts;
  const std::int64_t items = store.table(1).info().items;
  CheckTable(store, store.table(0));
  const std::vector<std::int64_t> steps = CheckTable(store, store.table(1));
  // Nothing is deleted from the second table, into which a step goes after the first one.
  Expect(items >= std::min(inserts - 1, kItemsMax) || inserts == 0,
         fmt::format("{} items of {}", items, inserts));
  if (!steps.empty()) {
    Expect(steps[0] == inserts - 1 || steps[0] == inserts - 2,
           fmt::format("{} inserts, but the second table ends with {}", inserts, steps[0]));
  }
  std::printf("recovered %lld\n", static_cast<long long>(inserts));
}

// "file INODE SIZE", or "folder INODE NAME...".
std::string Describe(int descriptor) {
  struct stat status {};
  fstat(descriptor, &status);
  if (!S_ISDIR(status.st_mode)) return fmt::format("file {} {}", status.st_ino, status.st_size);
  std::string text = fmt::format("folder {}", status.st_ino);
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  for (const auto& entry : std::filesystem::directory_iterator(link)) {
    text += " " + entry.path().filename().string();
  }
  return text;
}

}  // namespace
}  // namespace menger

// In place of the system's.
extern "C" int fsync(int descriptor) {
  if (menger::synced_log < 0) return static_cast<int>(syscall(SYS_fsync, descriptor));
  static std::atomic<int> count = 0;
  const std::string line = menger::Describe(descriptor) + "\n";
  // Sometimes longer than inserts may go on meanwhile.
  const int slow = ++count % 11;
  std::this_thread::sleep_for(slow == 0 ? 2 * menger::kLossMax : std::chrono::milliseconds(1));
  return write(menger::synced_log, line.data(), line.size()) < 0 ? -1 : 0;
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const char* const usage =
      "menger_journal_crash write FOLDER SEED ACKNOWLEDGED [SYNCED] | check FOLDER";
  return menger::RunCrashProgram(usage, [&] {
    if (mode == "write" && (argc == 5 || argc == 6)) {
      if (argc == 6) menger::synced_log = open(argv[5], O_WRONLY | O_CREAT | O_APPEND, 0666);
      menger::Write(argv[2], std::stoull(argv[3]), argv[4]);
    }
    if (mode != "check" || argc != 3) return false;
    menger::Check(argv[2]);
    return true;
  });
}
