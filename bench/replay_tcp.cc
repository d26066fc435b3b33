// How fast is a replay server over TCP on loopback? Items inserted a second by one writer that
// waits for each 256 of them, and items sampled and gathered into a learner's batch a second, the
// server in a process of its own; uniform. Beside it, in the same run and taking turns: a raw TCP
// stream of the same bytes, from an array as large as the table into one as large as the batch.
//
//   bench_replay_tcp [--seconds 1] [--payloads 400B 40kB] [--batch 256] [--samplers 1] [--rings]
//   [--json]
//
// --rings: over shared memory instead of TCP.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/random.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/server/replay_server.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kRounds = 5;  // The median counts.
constexpr int kFlushedTogether = 256;

struct Payload {
  std::string name;
  std::int64_t bytes = 0;
  int chunk_steps = 1;
  std::int64_t items_max = 0;  // As bench/peers/reverb_replay.py has them.
};

const std::vector<Payload> kPayloads = {
    {.name = "400B", .bytes = 400, .chunk_steps = 64, .items_max = 100'000},
    {.name = "40kB", .bytes = 40'000, .chunk_steps = 8, .items_max = 20'000},
    {.name = "1MB", .bytes = 1'000'000, .chunk_steps = 1, .items_max = 1'200}};

struct Settings {
  double seconds = 1;
  std::vector<std::string> payloads = {"400B", "40kB"};
  int batch = 256;
  int samplers = 1;  // That draw at once, each by a connection of its own.
  bool rings = false;
  bool json = false;
};

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

// A process that does `work` until it is killed, after it has said something.
class Helper {
 public:
  explicit Helper(const std::function<void(const std::function<void(const std::string&)>&)>& work) {
    int ends[2];
    if (pipe(ends) != 0) throw FromErrno("cannot make a pipe", errno);
    const FileDescriptor read_end(ends[0]);
    FileDescriptor write_end(ends[1]);
    child_ = fork();
    if (child_ < 0) throw FromErrno("cannot fork", errno);
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      work([&](const std::string& text) {
        WriteAll(write_end, std::as_bytes(std::span(text)), "pipe");
        write_end.Close();
      });
      _exit(0);
    }
    write_end.Close();
    char buffer[256];
    for (ssize_t got = 0; (got = read(read_end.get(), buffer, sizeof buffer)) > 0;) {
      said_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  const std::string& said() const { return said_; }

 private:
  pid_t child_ = -1;
  std::string said_;
};

TableOptions TableOf(const Payload& payload) {
  const auto bytes = static_cast<std::size_t>(payload.bytes);
  return {.name = "items",
          .items = {.steps = Spec(
                        {LeafSpec::Box("data", DataType::kUint8, {payload.bytes}, {0}, {255})}),
                    .columns = {{.name = "data", .leaf = "data"}}},
          .items_max = payload.items_max,
          .bytes_max = 2 * (bytes + 64) * static_cast<std::size_t>(payload.items_max)};
}

void ServeItems(const Payload& payload, const std::function<void(const std::string&)>& say) {
  ReplayStore store({.tables = {TableOf(payload)}, .shared = true});
  const std::string socket =
      std::filesystem::temp_directory_path() / fmt::format("menger_replay_tcp_{}", getpid());
  ReplayServer server(store, nullptr, {.socket = socket, .listen = "127.0.0.1:0"});
  say(socket + "\n" + server.listens_at());
  for (;;) pause();
}

// To each who connects, the bytes of random batches: as long as he reads where he says 's', or one
// for each byte that he sends.
void SendBytes(const Payload& payload, int batch,
               const std::function<void(const std::string&)>& say) {
  const std::size_t bytes = static_cast<std::size_t>(payload.bytes) * batch;
  std::vector<std::byte> all(
      std::max(bytes, static_cast<std::size_t>(payload.bytes * payload.items_max)), std::byte{1});
  const ListeningTcpSocket listener("127.0.0.1:0");
  say(listener.address());
  Random random = Random::FromSeed(1);
  for (;;) {
    std::optional<FileDescriptor> come = listener.Accept();
    if (!come) {
      usleep(1000);
      continue;
    }
    fcntl(come->get(), F_SETFL, 0);  // Blocks.
    char said = 0;
    while (said == 's' || recv(come->get(), &said, 1, 0) == 1) {
      const auto begin = static_cast<std::size_t>(
          random.Integers(0, static_cast<std::int64_t>(all.size() - bytes) + 1));
      if (send(come->get(), &all[begin], bytes, MSG_NOSIGNAL) <= 0) break;
    }
  }
}

// Items a second.
double Rate(const std::function<int()>& call, double seconds) {
  call();
  std::int64_t items = 0;
  const Stopwatch since;
  while (since.seconds() < seconds) items += call();
  return static_cast<double>(items) / since.seconds();
}

double RawRate(const std::string& address, const Payload& payload, int batch, bool asks,
               double seconds) {
  const FileDescriptor socket = ConnectTcpSocket(address, Soon());
  fcntl(socket.get(), F_SETFL, 0);
  std::vector<std::byte> to(static_cast<std::size_t>(payload.bytes) * batch);
  if (!asks) send(socket.get(), "s", 1, MSG_NOSIGNAL);
  return Rate(
      [&] {
        if (asks) send(socket.get(), "a", 1, MSG_NOSIGNAL);
        if (recv(socket.get(), to.data(), to.size(), MSG_WAITALL) <= 0) {
          throw Unavailable("the raw stream has ended");
        }
        return batch;
      },
      seconds);
}

class Client {
 public:
  Client(const std::string& address, const Payload& payload, int batch)
      : batch_(batch),
        client_({.socket = address}),
        items_(client_.table(0).items),
        writer_(
            client_.NewWriter(items_.steps, {.chunk_steps = payload.chunk_steps, .history = 1}, 1)),
        sampler_(client_.NewSampler(0)),
        gatherer_(items_, batch, /*threads=*/1) {
    Random random = Random::FromSeed(3);
    data_.resize(static_cast<std::size_t>(payload.bytes));
    for (std::byte& byte : data_) byte = static_cast<std::byte>(random.Integers(0, 256));
  }

  int Insert() {
    const std::byte* const leaf = data_.data();
    for (int i = 0; i < kFlushedTogether; ++i) {
      const std::int64_t step = writer_->Append(0, {&leaf, 1}, 1);
      const StepRange range{.first = step, .count = 1};
      writer_->Add(0, 0, {}, {&range, 1});
    }
    writer_->Flush(0, Soon());
    writer_->Await(Soon());
    return kFlushedTogether;
  }

  int SampleBatch() {
    sampler_->SampleInto({.count = batch_, .deadline = Soon()}, sample_);
    gatherer_.Gather(sample_);
    sample_.Release();
    return batch_;
  }

  std::int64_t items() { return client_.info(0).items; }

 private:
  const int batch_;
  ServedReplay client_;
  const ItemSpec items_;
  const std::unique_ptr<ReplayWriter> writer_;
  const std::unique_ptr<ReplaySampler> sampler_;
  Sample sample_;
  BatchGatherer gatherer_;
  std::vector<std::byte> data_;
};

// Of all clients at once, each in a thread.
double SampleRate(std::vector<std::unique_ptr<Client>>& clients, double seconds) {
  std::vector<double> rates(clients.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back(
        [&, i] { rates[i] = Rate([&] { return clients[i]->SampleBatch(); }, seconds); });
  }
  for (std::thread& thread : threads) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Measure(const Payload& payload, const Settings& settings) {
  const Helper server([&](const auto& say) { ServeItems(payload, say); });
  const Helper stream([&](const auto& say) { SendBytes(payload, settings.batch, say); });
  const std::size_t line = server.said().find('\n');
  const std::string socket = server.said().substr(0, line);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < settings.samplers; ++i) {
    clients.push_back(std::make_unique<Client>(
        settings.rings ? socket : server.said().substr(line + 1), payload, settings.batch));
  }
  Client& client = *clients[0];
  while (client.items() < payload.items_max) client.Insert();
  std::vector<double> inserts;
  std::vector<double> samples;
  std::vector<double> raw;
  std::vector<double> asked;
  std::vector<double> shares;
  std::vector<double> shares_asked;
  for (int round = 0; round < kRounds; ++round) {
    inserts.push_back(Rate([&] { return client.Insert(); }, settings.seconds));
    samples.push_back(SampleRate(clients, settings.seconds));
    raw.push_back(RawRate(stream.said(), payload, settings.batch, false, settings.seconds));
    asked.push_back(RawRate(stream.said(), payload, settings.batch, true, settings.seconds));
    shares.push_back(samples.back() / raw.back());
    shares_asked.push_back(samples.back() / asked.back());
  }
  unlink(socket.c_str());
  unlink((socket + ".lock").c_str());
  if (settings.json) {
    fmt::print(
        "RESULT {{\"payload\": \"{}\", \"batch\": {}, \"inserts_per_second\": {:.0f}, "
        "\"samples_per_second\": {:.0f}, \"raw_per_second\": {:.0f}, \"share_of_raw\": {:.3f}, "
        "\"share_of_asked\": {:.3f}}}\n",
        payload.name, settings.batch, Median(inserts), Median(samples), Median(raw), Median(shares),
        Median(shares_asked));
  } else {
    fmt::print(
        "{:>5}: {:>9.0f} inserts/s {:>9.0f} samples/s, {:.2f} ({:.2f} to {:.2f}) of a raw stream, "
        "{:.2f} of raw answers\n",
        payload.name, Median(inserts), Median(samples), Median(shares), std::ranges::min(shares),
        std::ranges::max(shares), Median(shares_asked));
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("How fast is a replay server over TCP?");
  app.add_option("--seconds", settings.seconds, "Of each measurement, five times");
  app.add_option("--payloads", settings.payloads, "400B, 40kB, 1MB");
  app.add_option("--batch", settings.batch, "Items sampled together");
  app.add_option("--samplers", settings.samplers,
                 "that draw at once, each by a connection of its own")
      ->check(CLI::Range(1, 64));
  app.add_flag("--rings", settings.rings, "Over shared memory");
  app.add_flag("--json", settings.json, "Lines of JSON");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& name : settings.payloads) {
    const auto payload = std::ranges::find(kPayloads, name, &Payload::name);
    if (payload == kPayloads.end()) throw InvalidArgument("there is no payload '{}'", name);
    Measure(*payload, settings);
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_replay_tcp", menger::bench::Main, argc, argv);
}
