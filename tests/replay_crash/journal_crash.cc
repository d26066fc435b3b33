// A process that journals a replay store, to be killed, for kill_journal.py.
//
//     menger_journal_crash write FOLDER KIND LIFE WRITERS ACKNOWLEDGED [SYNCED]
//         recovers FOLDER, then inserts from as many threads as there are WRITERS, draws, changes
//         priorities and deletes until killed
//     menger_journal_crash check FOLDER KIND
//         recovers and looks at every row of every item
//
// KIND is "plain", or "compressed": the tables then have room only for what is compressed. Each
// writer's stream has the number LIFE * 8 + its own, and no two processes the same LIFE. `write`
// appends to the file ACKNOWLEDGED.<writer>, for each insert that returned, its number in the
// stream and when the call began and returned (int64, nanoseconds of the monotonic clock). With
// SYNCED no fsync reaches the disk: it is written there instead what each would have brought to it,
// and some take long. `check` prints "inserts FIRST SECOND", the counts of both tables, and
// "stream STREAM FIRST LAST" for each of which the second table has items; or fails.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
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
constexpr int kRowWords = 64;
constexpr int kRowBytes = 8 * kRowWords;
constexpr int kChunkSteps = 16;
constexpr int kWritersMax = 8;
constexpr std::chrono::milliseconds kLossMax(40);  // As kill_journal.py has it.

int synced_log = -1;  // Where fsync, below, says what it did.

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

void Expect(bool fact, const std::string& otherwise) {
  if (!fact) throw DataLoss("a corrupt recovery: {}", otherwise);
}

ItemSpec Items() {
  return {.steps = Spec({LeafSpec::Box("words", DataType::kInt64, {kRowWords}, {0}, {1e18})}),
          .columns = {{.name = "words", .leaf = "words", .rows = 4}}};
}

bool IsCompressed(const std::string& kind) {
  if (kind != "plain" && kind != "compressed") {
    throw InvalidArgument("KIND is '{}'; it must be plain or compressed", kind);
  }
  return kind == "compressed";
}

// `once`: each item can be drawn once, newest first.
ReplayStoreOptions Options(bool compressed, bool once) {
  TableOptions first{.name = "first",
                     .items = Items(),
                     .items_max = kItemsMax,
                     .bytes_max = std::size_t{kItemsMax} * kRowBytes * (compressed ? 1 : 8) / 2};
  if (once) {
    first.sampler.kind = SelectorKind::kLifo;
    first.times_sampled_max = 1;
  }
  TableOptions second = first;
  second.name = "second";
  return {.tables = {first, second}, .writer_bytes = std::size_t{1} << 20};
}

DurabilityOptions Kept(const std::string& folder) {
  return {.kind = Durability::kJournal,
          .folder = folder,
          .checkpoint_every = std::chrono::milliseconds(100),
          .loss_max = kLossMax};
}

// Word `index` of step `number` of a stream.
std::int64_t WordOf(std::int64_t stream, std::int64_t number, int index) {
  return index == 0 ? stream : number + index / 8;
}

// An item of both tables: step `number` of the stream, and up to three before it. Its priority is
// odd until it is updated, and twice as much from then on.
double PriorityOf(std::int64_t number) { return 1.0 + 2.0 * static_cast<double>(number); }

void Insert(ReplayStore& store, TrajectoryWriter& writer, std::int64_t stream) {
  std::int64_t words[kRowWords];
  for (int i = 0; i < kRowWords; ++i) words[i] = WordOf(stream, writer.steps(), i);
  const auto* const leaf = reinterpret_cast<const std::byte*>(words);
  const std::int64_t number = writer.Append({&leaf, 1}, 0);
  const int count = static_cast<int>(std::min<std::int64_t>(number + 1, 4));
  const StepRange range{.first = number + 1 - count, .count = count};
  for (int i = 0; i < store.tables(); ++i) {
    writer.Add(store.table(i), PriorityOf(number), {&range, 1});
  }
  writer.Flush(Soon());
}

void Disturb(Table& table, Random& random, Sample& sample) {
  table.SampleInto({.count = 8, .deadline = Soon()}, sample);
  std::vector<PriorityUpdate> updates;
  for (const SampledItem& item : sample.items()) {
    const bool was_updated = std::fmod(item.priority, 2) == 0;
    if (!was_updated) updates.push_back({.key = item.key, .priority = 2 * item.priority});
  }
  table.UpdatePriorities(updates);
  const ItemKey key = sample.items()[0].key;
  if (random.Integers(0, 4) == 0 && table.info().items > 100) table.Delete({&key, 1});
  sample.Release();
}

// Nothing is deleted from the second table, and it never removes anything to save bytes.
void CheckCount(Table& second) {
  const TableInfo info = second.info();
  Expect(info.items == std::min(info.inserts, kItemsMax),
         fmt::format("the second table has {} items after {} inserts", info.items, info.inserts));
}

struct Process {
  std::string folder;
  bool compressed = false;
  std::int64_t life = 0;
  int writers = 0;
  std::string acknowledged;
};

// One writer, until the process is killed. The first one disturbs.
void WriteStream(const Process& process, ReplayStore& store, int index) {
  const std::int64_t stream = process.life * kWritersMax + index;
  Random random = Random::FromSeed(static_cast<std::uint64_t>(stream));
  const std::string path = fmt::format("{}.{}", process.acknowledged, index);
  const FileDescriptor acknowledged = CreateFile(path);
  const auto writer = store.NewWriter(
      Items().steps,
      {.chunk_steps = kChunkSteps,
       .history = 4,
       .compression = process.compressed ? Compression::kAutomatic : Compression::kNone});
  Sample sample;
  for (;;) {
    std::int64_t record[3] = {writer->steps(), MonotonicNanoseconds(), 0};
    Insert(store, *writer, stream);
    record[2] = MonotonicNanoseconds();
    WriteAll(acknowledged, std::as_bytes(std::span(record)), path);
    // So slowly that most chunks are journaled before they are full.
    if (process.compressed) std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (index > 0 || random.Integers(0, 10) > 0) continue;
    Disturb(store.table(0), random, sample);
    CheckCount(store.table(1));
  }
}

void Write(const Process& process) {
  ReplayStore store(Options(process.compressed, /*once=*/false));
  const ReplayKeeper keeper(store, Kept(process.folder));
  std::vector<std::jthread> threads;
  for (int i = 1; i < process.writers; ++i) {
    threads.emplace_back([&, i] { WriteStream(process, store, i); });
  }
  WriteStream(process, store, 0);
}

// Stream and number of the step that an item ends with.
std::pair<std::int64_t, std::int64_t> CheckItem(const ReplayStore& store, SliceReader& reader,
                                                const Sample& sample, int item) {
  std::int64_t stream = -1;
  std::int64_t number = -1;
  int rows = 0;
  for (const Slice& slice : sample.slices(item, 0)) {
    const StridedView view = reader.Find(store.chunks(), slice, 0);
    for (int row = 0; row < slice.length; ++row, ++rows) {
      std::int64_t words[kRowWords];
      std::memcpy(words, view.data + view.stride * row, sizeof words);
      Expect(rows == 0 || (words[0] == stream && words[1] == number + 1),
             fmt::format("{} of {} after {} of {}", words[1], words[0], number, stream));
      stream = words[0];
      number = words[1];
      for (int i = 0; i < kRowWords; ++i) {
        if (words[i] == WordOf(stream, number, i)) continue;  // Millions of times.
        Expect(false, fmt::format("word {} of step {} of {} is {}", i, number, stream, words[i]));
      }
    }
  }
  Expect(rows == std::min<std::int64_t>(number + 1, 4),
         fmt::format("step {} of {} has {} rows", number, stream, rows));
  const double priority = sample.items()[item].priority;
  Expect(priority == PriorityOf(number) || priority == 2 * PriorityOf(number),
         fmt::format("step {} of {} has priority {}", number, stream, priority));
  return {stream, number};
}

struct Steps {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t count = 0;
};

// Draws every item, newest first; the steps that they end with, by stream.
std::map<std::int64_t, Steps> CheckTable(ReplayStore& store, Table& table) {
  const std::int64_t items = table.info().items;
  std::map<std::int64_t, Steps> streams;
  if (items == 0) return streams;
  Sample sample;
  table.SampleInto({.count = static_cast<int>(items), .deadline = Soon()}, sample);
  Expect(sample.size() == items, fmt::format("{} of {} items", sample.size(), items));
  SliceReader reader(Items());
  for (int item = 0; item < sample.size(); ++item) {
    const auto [stream, number] = CheckItem(store, reader, sample, item);
    const auto [found, is_new] = streams.try_emplace(stream, Steps{.last = number});
    Expect(is_new || number < found->second.first, "items are out of order");
    found->second.first = number;
    ++found->second.count;
  }
  return streams;
}

void Check(const std::string& folder, bool compressed) {
  ReplayStore store(Options(compressed, /*once=*/true));
  { const ReplayKeeper keeper(store, Kept(folder)); }
  CheckCount(store.table(1));
  fmt::print("inserts {} {}\n", store.table(0).info().inserts, store.table(1).info().inserts);
  const auto first = CheckTable(store, store.table(0));
  const auto second = CheckTable(store, store.table(1));
  for (const auto& [stream, steps] : second) {
    Expect(steps.count == steps.last - steps.first + 1,
           fmt::format("{} items of steps {} to {}", steps.count, steps.first, steps.last));
    fmt::print("stream {} {} {}\n", stream, steps.first, steps.last);
    // A step goes into the second table after the first one, and both are of one moment.
    const auto found = first.find(stream);
    Expect(found == first.end() || found->second.last <= steps.last + 1,
           fmt::format("step {} is in one table, and only {} in the other", steps.last,
                       found == first.end() ? 0 : found->second.last));
  }
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
      "menger_journal_crash write FOLDER KIND LIFE WRITERS ACKNOWLEDGED [SYNCED] | check FOLDER "
      "KIND";
  return menger::RunCrashProgram(usage, [&] {
    if (mode == "write" && (argc == 7 || argc == 8)) {
      if (argc == 8) menger::synced_log = open(argv[7], O_WRONLY | O_CREAT | O_APPEND, 0666);
      menger::Write({.folder = argv[2],
                     .compressed = menger::IsCompressed(argv[3]),
                     .life = std::stoll(argv[4]),
                     .writers = std::stoi(argv[5]),
                     .acknowledged = argv[6]});
    }
    if (mode != "check" || argc != 4) return false;
    menger::Check(argv[2], menger::IsCompressed(argv[3]));
    return true;
  });
}
