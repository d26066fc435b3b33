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
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "crash_program.h"
#include "crash_tables.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/random.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"

namespace menger {
namespace {

using namespace crash;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kItemsMax = 2000;
constexpr int kWritersMax = 8;

int synced_log = -1;  // Where fsync, below, says what it did.

bool IsCompressed(const std::string& kind) {
  if (kind != "plain" && kind != "compressed") {
    throw InvalidArgument("KIND is '{}'; it must be plain or compressed", kind);
  }
  return kind == "compressed";
}

void Insert(ReplayStore& store, TrajectoryWriter& writer, std::int64_t stream) {
  std::int64_t words[kRowWords];
  for (int i = 0; i < kRowWords; ++i) words[i] = WordOf(stream, writer.steps(), i);
  const auto* const leaf = reinterpret_cast<const std::byte*>(words);
  const std::int64_t number = writer.Append({&leaf, 1}, 0);
  const StepRange range = RangeOf(number);
  for (int i = 0; i < store.tables(); ++i) {
    writer.Add(store.table(i), PriorityOf(number), {&range, 1});
  }
  writer.Flush(Soon());
}

void Disturb(Table& table, Random& random, Sample& sample) {
  table.SampleInto({.count = 8, .deadline = Soon()}, sample);
  table.UpdatePriorities(UpdatesOf(sample));
  const ItemKey key = sample.items()[0].key;
  if (random.Integers(0, 4) == 0 && table.info().items > 100) table.Delete({&key, 1});
  sample.Release();
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
  ReplayStore store(Options(kItemsMax, process.compressed, /*once=*/false));
  const ReplayKeeper keeper(store, Kept(process.folder));
  std::vector<std::jthread> threads;
  for (int i = 1; i < process.writers; ++i) {
    threads.emplace_back([&, i] { WriteStream(process, store, i); });
  }
  WriteStream(process, store, 0);
}

void Check(const std::string& folder, bool compressed) {
  ReplayStore store(Options(kItemsMax, compressed, /*once=*/true));
  { const ReplayKeeper keeper(store, Kept(folder)); }
  CheckCount(store.table(1));
  fmt::print("inserts {} {}\n", store.table(0).info().inserts, store.table(1).info().inserts);
  const auto first = CheckTable(store.table(0));
  const auto second = CheckTable(store.table(1));
  for (const auto& [stream, steps] : second) {
    Expect(steps.missing.empty(), fmt::format("{} items of steps {} to {} are missing",
                                              steps.missing.size(), steps.first, steps.last));
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
  std::this_thread::sleep_for(slow == 0 ? 2 * menger::crash::kLossMax
                                        : std::chrono::milliseconds(1));
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
