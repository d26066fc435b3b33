// A replay server, its writers and its readers, to be killed, for kill_server.py and
// come_and_go.py.
//
//     menger_server_crash serve FOLDER SOCKET
//         recovers FOLDER, journals to it, and serves until it is killed
//     menger_server_crash write SOCKET STREAM TOLD
//         inserts into both tables until it is killed, wherever the server is
//     menger_server_crash read SOCKET SEED
//         draws, looks at every row, keeps samples and looks again, changes priorities, deletes
//         from the first table, until it is killed; or fails
//     menger_server_crash visit SOCKET SECONDS SEED
//         comes and goes in all sorts of ways
//     menger_server_crash check FOLDER
//         recovers and looks at every row of every item
//
// `write` appends three numbers (int64) to the file TOLD, of each step whose items were
// acknowledged: its number, and when the call began and returned (nanoseconds of the monotonic
// clock); and now and then -STEPS, a time before the last of these was acknowledged, and when a
// checkpoint had brought to the disk what the server then had. `check` prints "inserts FIRST
// SECOND", the counts of both tables, and "stream STREAM FIRST LAST MISSING..." for each of which
// the second table has items, with those between that are not there; or fails.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
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
#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/server/replay_server.h"

namespace menger {
namespace {

using namespace crash;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kItemsMax = 20'000;
constexpr int kBatchMax = 8;
// A machine that does much else may need long to bring a server back.
constexpr std::chrono::minutes kPatience(10);

[[noreturn]] void Serve(const std::string& folder, const std::string& socket) {
  ReplayServer::PrepareProcess();
  ReplayStoreOptions options = Options(kItemsMax, /*compressed=*/false, /*once=*/false);
  options.shared = true;
  ReplayStore store(options);
  ReplayKeeper keeper(store, Kept(folder));
  const ReplayServer server(store, &keeper, {.socket = socket});
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// ---- Writers

std::int64_t AppendStep(ReplayWriter& writer, std::int64_t stream) {
  std::int64_t words[kRowWords];
  for (int i = 0; i < kRowWords; ++i) words[i] = WordOf(stream, writer.steps(0), i);
  const auto* const leaf = reinterpret_cast<const std::byte*>(words);
  const std::int64_t number = writer.Append(0, {&leaf, 1}, 0);
  const StepRange range = RangeOf(number);
  for (int table = 0; table < 2; ++table) {
    writer.Add(0, table, PriorityOf(number), {&range, 1});
  }
  return number;
}

std::unique_ptr<ReplayWriter> NewWriter(ReplayClient& client) {
  return client.NewWriter(Items().steps, {.chunk_steps = kChunkSteps, .history = 4}, 1);
}

// Where the journal is behind, the server says that it is late: all is kept, and flushed again.
void FlushAll(ReplayWriter& writer) {
  for (const Deadline deadline = Deadline::After(kPatience);;) {
    try {
      writer.Flush(0, Deadline::After(std::chrono::seconds(20)));
      writer.Await(Deadline::After(std::chrono::seconds(20)));
      if (writer.pending(0) == 0) return;
    } catch (const Error&) {
      if (deadline.expired()) throw;
    }
  }
}

[[noreturn]] void Write(const std::string& socket, std::int64_t stream, const std::string& path) {
  Random random = Random::FromSeed(static_cast<std::uint64_t>(stream));
  ServedReplay client({.socket = socket, .patience = kPatience});
  const auto writer = NewWriter(client);
  const FileDescriptor told = CreateFile(path);
  const auto tell = [&](std::vector<std::int64_t> numbers) {
    WriteAll(told, std::as_bytes(std::span(numbers)), path);
  };
  for (;;) {
    const std::int64_t begin = MonotonicNanoseconds();
    std::int64_t number = writer->steps(0);
    for (auto left = random.Integers(1, kBatchMax + 1); left > 0; --left) {
      AppendStep(*writer, stream);
    }
    FlushAll(*writer);
    const std::int64_t end = MonotonicNanoseconds();
    for (; number < writer->steps(0); ++number) tell({number, begin, end});
    if (random.Integers(0, 300) > 0) continue;
    client.Checkpoint(Deadline::After(kPatience));
    tell({-number, begin, MonotonicNanoseconds()});
  }
}

// ---- Readers

void LookAt(SliceReader& rows, const Sample& sample) {
  for (int item = 0; item < sample.size(); ++item) CheckItem(rows, sample, item);
}

[[noreturn]] void Read(const std::string& socket, std::uint64_t seed) {
  Random random = Random::FromSeed(seed);
  ServedReplay client({.socket = socket, .patience = kPatience});
  const auto sampler = client.NewSampler(0);
  SliceReader rows(Items());
  std::vector<Sample> kept(4);
  for (std::size_t i = 0;; ++i) {
    Sample& sample = kept[i % kept.size()];
    LookAt(rows, sample);  // That was drawn some time ago, from another server perhaps.
    sampler->SampleInto({.count = 32, .deadline = Deadline::After(kPatience)}, sample);
    LookAt(rows, sample);
    if (random.Integers(0, 10) > 0) continue;
    client.UpdatePriorities(0, UpdatesOf(sample));
    const ItemKey key = sample.items()[0].key;
    if (random.Integers(0, 4) == 0 && client.info(0).items > 100) client.Delete(0, {&key, 1});
  }
}

// ---- Visitors

void Greet(const FileDescriptor& socket) {
  const Greeting greeting{.wants_memory = 1, .ring_bytes = 1 << 20};
  try {
    TrySendDescriptors(socket, std::as_bytes(std::span(&greeting, 1)), {});
  } catch (const Error&) {  // It was refused.
  }
}

void Visit(const std::string& socket, double seconds, std::uint64_t seed) {
  Random random = Random::FromSeed(seed);
  std::int64_t visits = 0;
  for (const Stopwatch watch; watch.seconds() < seconds; ++visits) {
    const std::int64_t way = random.Integers(0, 8);
    if (way < 3) {  // Says nothing, half a greeting, or goes when it is welcomed.
      const FileDescriptor raw = ConnectUnixSocket(socket, Soon());
      if (way == 1) SayTheEnd(raw);
      if (way == 2) Greet(raw);
      continue;
    }
    ServedReplay client({.socket = socket, .patience = kPatience});
    const auto writer = NewWriter(client);
    for (auto left = random.Integers(1, 50); left > 0; --left) {
      AppendStep(*writer, static_cast<std::int64_t>(seed));
    }
    if (way == 3) continue;  // Nothing was flushed.
    if (way == 4) writer->Flush(0, Soon());
    if (way > 4) FlushAll(*writer);
    const auto sampler = client.NewSampler(0);
    Sample sample;
    sampler->SampleInto({.count = 16, .deadline = Soon()}, sample);
    if (way == 5) client.UpdatePriorities(0, UpdatesOf(sample));
    if (way == 6) sample.Release();
    if (way == 7) static_cast<void>(client.server());
  }
  fmt::print("visits {}\n", visits);
}

// ---- What is recovered

void Check(const std::string& folder) {
  ReplayStore store(Options(kItemsMax, /*compressed=*/false, /*once=*/true));
  { const ReplayKeeper keeper(store, Kept(folder)); }
  CheckCount(store.table(1));
  fmt::print("inserts {} {}\n", store.table(0).info().inserts, store.table(1).info().inserts);
  const auto first = CheckTable(store.table(0));
  for (const auto& [stream, steps] : CheckTable(store.table(1))) {
    fmt::print("stream {} {} {} {}\n", stream, steps.first, steps.last,
               fmt::join(steps.missing, " "));
    // A batch goes into the second table after the first one, and both are of one moment.
    const auto found = first.find(stream);
    Expect(found == first.end() || found->second.last <= steps.last + kBatchMax,
           fmt::format("step {} is in one table, and only {} in the other", steps.last,
                       found == first.end() ? 0 : found->second.last));
  }
}

bool Run(const std::vector<std::string>& arguments) {
  const std::string mode = arguments.empty() ? "" : arguments[0];
  if (mode == "serve" && arguments.size() == 3) Serve(arguments[1], arguments[2]);
  if (mode == "write" && arguments.size() == 4) {
    Write(arguments[1], std::stoll(arguments[2]), arguments[3]);
  }
  if (mode == "read" && arguments.size() == 3) Read(arguments[1], std::stoull(arguments[2]));
  if (mode == "visit" && arguments.size() == 4) {
    Visit(arguments[1], std::stod(arguments[2]), std::stoull(arguments[3]));
    return true;
  }
  if (mode != "check" || arguments.size() != 2) return false;
  Check(arguments[1]);
  return true;
}

}  // namespace
}  // namespace menger

int main(int argc, char** argv) {
  const char* const usage =
      "menger_server_crash serve FOLDER SOCKET | write SOCKET STREAM TOLD | read SOCKET SEED | "
      "visit SOCKET SECONDS SEED | check FOLDER";
  return menger::RunCrashProgram(usage, [&] { return menger::Run({argv + 1, argv + argc}); });
}
