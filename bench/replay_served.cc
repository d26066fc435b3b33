// What does it cost to have replay in a process of its own? A server process and a client process
// on one host, and beside it, in the same run and taking turns, the same calls on tables of the
// client's own process.
//
// Throughput: items inserted a second by one writer that is flushed every 256, items sampled and
// gathered a second in batches of 256, from a uniform table; items a second through a queue, by one
// writer and one reader.
//
// Connections (--writers): how long an insert with its flush takes (the median, and what 1 in 100
// is above) where N writers are connected, at half the rate that 16 writers reach that insert as
// fast as they can. 16 threads, whatever N is, step through N / 16 connections each and pause
// between two inserts: so the scheduler of the client has the same to do, and what differs is what
// the server has. A time is that of the call, not of its place in a queue of calls.
//
//   bench_replay_served [--payloads 400B 40kB] [--seconds 0.5] [--writers 16 128 2048]
//                       [--transports memory] [--json]

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/random.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/local_replay.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/server/replay_server.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kBatch = 256;
constexpr int kRounds = 5;  // The median counts.
constexpr int kThreads = 16;
constexpr int kQueueItems = 1024;

struct Settings {
  std::vector<std::string> payloads = {"400B", "40kB"};
  std::vector<std::string> transports = {"memory"};
  std::vector<int> writers;
  double seconds = 0.5;
  bool json = false;
};

struct Payload {
  std::string name;
  std::int64_t bytes = 0;
  int chunk_steps = 1;
  std::int64_t items_max = 0;
};

Payload PayloadOf(const std::string& name) {
  if (name == "400B") return {name, 400, 64, 100'000};
  if (name == "16kB") return {name, 16'000, 4, 20'000};
  if (name == "40kB") return {name, 40'000, 16, 20'000};
  if (name == "1MB") return {name, 1'000'000, 1, 500};
  throw InvalidArgument("there is no payload '{}'; there are 400B, 16kB, 40kB and 1MB", name);
}

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

Spec StepsOf(const Payload& payload) {
  return Spec({LeafSpec::Box("data", DataType::kUint8, {payload.bytes}, {0}, {255})});
}

// Table 0 is drawn from uniformly, 1 is a queue.
ReplayStoreOptions StoreOf(const Payload& payload, int writers, bool shared) {
  const TableOptions uniform{
      .name = "items",
      .items = {.steps = StepsOf(payload), .columns = {{.name = "data", .leaf = "data"}}},
      .rate_limiter = RateLimiterOptions::MinSize(1),
      .items_max = payload.items_max,
      .bytes_max = static_cast<std::size_t>((payload.items_max + 64) * (payload.bytes + 64))};
  TableOptions queue = uniform;
  queue.name = "queue";
  queue.sampler = {.kind = SelectorKind::kFifo};
  queue.rate_limiter = RateLimiterOptions::Queue(kQueueItems);
  queue.items_max = 2 * kQueueItems;
  queue.times_sampled_max = 1;
  const auto chunk = static_cast<std::size_t>(payload.chunk_steps * (payload.bytes + 64));
  return {.tables = {uniform, queue},
          .writer_bytes = chunk * static_cast<std::size_t>(3 * writers + kBatch),
          .shared = shared};
}

WriterOptions WriterOf(const Payload& payload) {
  return {.chunk_steps = payload.chunk_steps, .history = 1};
}

// A server in a process of its own, at a path of its own.
class ServerProcess {
 public:
  ServerProcess(const Payload& payload, int writers)
      : folder_(std::filesystem::temp_directory_path() / fmt::format("menger-bench-{}", getpid())) {
    std::filesystem::create_directories(folder_);
    process_ = fork();
    if (process_ < 0) throw FromErrno("cannot make a process", errno);
    if (process_ == 0) Serve(payload, writers);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  std::string socket() const { return folder_ / "socket"; }

 private:
  [[noreturn]] void Serve(const Payload& payload, int writers) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ReplayServer::PrepareProcess();
    ReplayStore store(StoreOf(payload, writers, /*shared=*/true));
    const ReplayServer server(store, nullptr, {.socket = socket()});
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  const std::filesystem::path folder_;
  pid_t process_ = -1;
};

std::vector<std::byte> RowOf(const Payload& payload) {
  std::vector<std::byte> row(static_cast<std::size_t>(payload.bytes));
  Random random = Random::FromSeed(1);
  for (std::byte& byte : row) byte = static_cast<std::byte>(random.Integers(0, 256));
  return row;
}

// One stream of one table. `row` is what all insert, as the peer's writers do: it outlives them.
class Writer {
 public:
  Writer(ReplayClient& client, const Payload& payload, const std::vector<std::byte>& row, int table)
      : writer_(client.NewWriter(StepsOf(payload), WriterOf(payload), 1)),
        row_(row),
        table_(table) {}

  void Flush(int items) {
    const std::byte* const leaf = row_.data();
    for (int i = 0; i < items; ++i) {
      const StepRange range{.first = writer_->Append(0, {&leaf, 1}, 0), .count = 1};
      writer_->Add(0, table_, 1.0, {&range, 1});
    }
    writer_->Flush(0, Soon());
  }
  std::int64_t Insert(int items) {
    Flush(items);
    writer_->Await(Soon());
    return items;
  }

 private:
  const std::unique_ptr<ReplayWriter> writer_;
  const std::vector<std::byte>& row_;
  const int table_;
};

// Draws and gathers.
class Reader {
 public:
  Reader(ReplayClient& client, int table)
      : sampler_(client.NewSampler(table)), gatherer_(client.table(table).items, kBatch, 1) {}

  std::int64_t Read(const Deadline& deadline = Soon()) {
    sampler_->SampleInto({.count = kBatch, .deadline = deadline}, sample_);
    gatherer_.Gather(sample_);
    const int items = sample_.size();
    sample_.Release();  // Otherwise old chunks stay while others insert.
    return items;
  }

 private:
  const std::unique_ptr<ReplaySampler> sampler_;
  BatchGatherer gatherer_;
  Sample sample_;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double Rate(double seconds, const std::function<std::int64_t()>& function) {
  function();
  std::int64_t items = 0;
  const Stopwatch watch;
  while (watch.seconds() < seconds) items += function();
  return static_cast<double>(items) / watch.seconds();
}

// ---- Throughput

// One way to the tables, and what was measured on it.
struct Way {
  std::string name;
  std::unique_ptr<ReplayClient> client;
  std::vector<double> inserts;
  std::vector<double> samples;
  std::vector<double> queued;
};

double QueueRate(double seconds, ReplayClient& client, const Payload& payload) {
  std::atomic<bool> stop = false;
  std::atomic<bool> done = false;
  const std::vector<std::byte> row = RowOf(payload);
  std::thread writing([&] {
    Writer writer(client, payload, row, 1);
    while (!stop) writer.Insert(kBatch);
    done = true;
  });
  Reader reader(client, 1);
  const double rate = Rate(seconds, [&] { return reader.Read(); });
  stop = true;
  while (!done || client.info(1).items > 0) {  // What the writer had begun.
    if (client.info(1).items > 0) reader.Read(Deadline::After({}));
  }
  writing.join();
  return rate;
}

void MeasureWay(Way& way, const Payload& payload, double seconds) {
  const std::vector<std::byte> row = RowOf(payload);
  {
    Writer writer(*way.client, payload, row, 0);
    if (way.inserts.empty()) {
      for (std::int64_t i = 0; i < payload.items_max; i += kBatch) writer.Insert(kBatch);
    }
    way.inserts.push_back(Rate(seconds, [&] { return writer.Insert(kBatch); }));
  }
  Reader reader(*way.client, 0);
  way.samples.push_back(Rate(seconds, [&] { return reader.Read(); }));
  way.queued.push_back(QueueRate(seconds, *way.client, payload));
}

void MeasureThroughput(const Settings& settings, const std::string& name) {
  const Payload payload = PayloadOf(name);
  const ServerProcess server(payload, 4);  // Forked before this process has threads.
  ReplayStore store(StoreOf(payload, 4, /*shared=*/false));
  std::vector<Way> ways(2);
  ways[0] = {.name = "in process", .client = std::make_unique<LocalReplay>(store)};
  ways[1] = {
      .name = "shared memory",
      .client = std::make_unique<ServedReplay>(ServedReplayOptions{.socket = server.socket()})};
  for (int round = 0; round < kRounds; ++round) {
    for (Way& way : ways) MeasureWay(way, payload, settings.seconds);
  }
  for (const Way& way : ways) {
    const double inserts = Median(way.inserts);
    const double samples = Median(way.samples);
    const double queued = Median(way.queued);
    fmt::print("{:<8}{:<16}{:>14.1f}{:>14.1f}{:>14.1f}\n", name, way.name, inserts * 1e-3,
               samples * 1e-3, queued * 1e-3);
    if (!settings.json) continue;
    fmt::print(
        "RESULT {{\"part\": \"throughput\", \"payload\": \"{}\", \"transport\": \"{}\", "
        "\"inserts_per_second\": {:.0f}, \"samples_per_second\": {:.0f}, \"queued_per_second\": "
        "{:.0f}}}\n",
        name, way.name, inserts, samples, queued);
  }
  std::fflush(stdout);
}

// ---- Connections

// Inserts of all threads, each through connections of its own; how long each took, in seconds.
// `rate` of all together; 0: as fast as they can.
std::vector<double> InsertTimes(std::vector<std::unique_ptr<Writer>>& writers, double rate,
                                double seconds) {
  std::vector<std::vector<double>> times(kThreads);
  std::vector<std::thread> threads;
  const Stopwatch watch;
  for (std::size_t index = 0; index < kThreads; ++index) {
    threads.emplace_back([&, index] {
      std::size_t at = index;
      const double pause = rate > 0 ? kThreads / rate : 0;
      double next = pause * static_cast<double>(index) / kThreads;
      while (watch.seconds() < seconds) {
        const double wait = next - watch.seconds();
        if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
        const Stopwatch call;
        writers[at]->Insert(1);
        times[index].push_back(call.seconds());
        at = (at + kThreads) % writers.size();
        next += pause;
        if (rate == 0) next = 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& each : times) all.insert(all.end(), each.begin(), each.end());
  std::ranges::sort(all);
  return all;
}

void MeasureConnections(const Settings& settings, const std::string& name) {
  const Payload payload = PayloadOf(name);
  const int most = *std::ranges::max_element(settings.writers);
  const ServerProcess server(payload, most);
  ServedReplay client({.socket = server.socket()});
  const std::vector<std::byte> row = RowOf(payload);
  std::vector<std::unique_ptr<Writer>> writers;
  const auto connect = [&](int count) {
    while (static_cast<int>(writers.size()) < count) {
      writers.push_back(std::make_unique<Writer>(client, payload, row, 0));
      writers.back()->Insert(1);
    }
  };
  connect(kThreads);
  InsertTimes(writers, 0, settings.seconds);
  const std::size_t inserted = InsertTimes(writers, 0, 2 * settings.seconds).size();
  const double rate = static_cast<double>(inserted) / (2 * settings.seconds) / 2;
  for (const int count : settings.writers) {
    connect(count);
    InsertTimes(writers, rate, settings.seconds);
    const std::vector<double> times = InsertTimes(writers, rate, 4 * settings.seconds);
    const double median = times[times.size() / 2];
    const double late = times[times.size() * 99 / 100];
    const double reached = static_cast<double>(times.size()) / (4 * settings.seconds);
    fmt::print("{:<8}{:>10}{:>14.0f}{:>14.0f}{:>12.1f}{:>12.1f}\n", name, count, rate, reached,
               median * 1e6, late * 1e6);
    if (settings.json) {
      fmt::print(
          "RESULT {{\"part\": \"connections\", \"payload\": \"{}\", \"transport\": \"shared "
          "memory\", \"writers\": {}, \"rate\": {:.0f}, \"reached\": {:.0f}, \"p50_us\": {:.1f}, "
          "\"p99_us\": {:.1f}}}\n",
          name, count, rate, reached, median * 1e6, late * 1e6);
    }
    std::fflush(stdout);
  }
}

int Run(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures replay that another process serves, beside that of the own process.");
  app.add_option("--payloads", settings.payloads, "400B, 16kB, 40kB, 1MB");
  app.add_option("--seconds", settings.seconds, "of each measurement")->check(CLI::Range(.05, 60.));
  app.add_option("--writers", settings.writers, "connected ones: how long an insert takes")
      ->check(CLI::Range(kThreads, 16'384));
  app.add_option("--transports", settings.transports, "memory")->check(CLI::IsMember({"memory"}));
  app.add_flag("--json", settings.json, "a line \"RESULT \" and a JSON object after each row");
  CLI11_PARSE(app, argc, argv);
  if (settings.writers.empty()) {
    fmt::print("Thousand items/s\n{:<8}{:<16}{:>14}{:>14}{:>14}\n", "payload", "", "inserted",
               "sampled", "queued");
    for (const std::string& payload : settings.payloads) MeasureThroughput(settings, payload);
    return 0;
  }
  RaiseDescriptorLimit();
  fmt::print("{:<8}{:>10}{:>14}{:>14}{:>12}{:>12}\n", "payload", "writers", "inserts/s", "reached",
             "p50 us", "p99 us");
  for (const std::string& payload : settings.payloads) MeasureConnections(settings, payload);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_replay_served", menger::bench::Run, argc, argv);
}
