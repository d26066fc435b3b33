// The list of `ray microbenchmark`, row by row: calls, actors and objects a second, with the driver
// and its workers in processes of their own, by the default options.
//
//   bench_runtime_calls [--rows TEXT...] [--seconds S] [--list]
//
// Each row does what Ray's does (ray/_private/ray_perf.py), as often. `bench/runtime.py` shows
// both.

#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"
#include "menger/tensor/memory.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

using Small = std::array<char, 2>;  // Ray's small value: b"ok".
using Large = std::span<const std::int64_t>;

constexpr int kBatch = 1000;
constexpr int kClients = 4;             // That submit at the same time.
constexpr int kCallsOfClient = 10'000;  // Of each.
constexpr int kCallsOfActorClient = 5000;
constexpr std::size_t kLargeElements = std::size_t{100} << 20;  // 0.8 GB.
constexpr std::size_t kTaskElements = std::size_t{10} << 20;    // 80 MB.

Small SmallValue() { return {'o', 'k'}; }

class Server {
 public:
  Small SmallValue() { return {'o', 'k'}; }
  Small SmallValueOf(int) { return {'o', 'k'}; }
  void CallTasks(Runtime& runtime, int count) {
    std::vector<ObjectRef<Small>> results;
    for (int i = 0; i < count; ++i) results.push_back(runtime.Call<bench::SmallValue>());
    runtime.Get(results);
  }
};
using ServerRef = ActorRef<Server>;

void CallServers(Runtime& runtime, const std::vector<ServerRef>& servers, int count) {
  std::vector<ObjectRef<Small>> results;
  for (int i = 0; i < count; ++i) {
    const ServerRef& server = servers[static_cast<std::size_t>(i) % servers.size()];
    results.push_back(server.Call<&Server::SmallValue>());
  }
  runtime.Get(results);
}

class ServerClient {
 public:
  explicit ServerClient(const std::vector<ServerRef>& servers) : servers_(servers) {}

  void Call(Runtime& runtime, int count) {
    CallServers(runtime, servers_, count * static_cast<int>(servers_.size()));
  }
  void CallWithArgument(Runtime& runtime, int count) {
    const ObjectRef<int> argument = runtime.Put(0);
    std::vector<ObjectRef<Small>> results;
    for (const ServerRef& server : servers_) {
      for (int i = 0; i < count; ++i) {
        results.push_back(server.Call<&Server::SmallValueOf>(argument));
      }
    }
    runtime.Get(results);
  }

 private:
  std::vector<ServerRef> servers_;
};

void PutSmall(Runtime& runtime) {
  for (int i = 0; i < 100; ++i) runtime.Put(0);
}

// Like NumPy's zeros: never written, so all of its pages are one and the same, and what is measured
// is writing. bench_runtime_objects copies real memory.
class Zeros {
 public:
  explicit Zeros(std::size_t elements)
      : memory_(AllocatePlainMemory(elements * sizeof(std::int64_t))), elements_(elements) {
    // As numpy does for arrays of this size.
    madvise(memory_->data(), elements * sizeof(std::int64_t), MADV_HUGEPAGE);
  }

  Large values() const {
    return {reinterpret_cast<const std::int64_t*>(memory_->data()), elements_};
  }

 private:
  std::unique_ptr<Memory> memory_;
  std::size_t elements_;
};

void PutLarge(Runtime& runtime) {
  for (int i = 0; i < 10; ++i) runtime.Put(Zeros(kTaskElements).values());
}

std::vector<ObjectRef<int>> ManyReferences(Runtime& runtime) {
  std::vector<ObjectRef<int>> references;
  for (int i = 0; i < 10'000; ++i) references.push_back(runtime.Put(1));
  return references;
}

// Calls `make` so often and waits for all that it has started.
template <typename Make>
void GetAll(Runtime& runtime, int count, const Make& make) {
  std::vector<decltype(make())> results;
  results.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) results.push_back(make());
  runtime.Get(results);
}

// One row of the list, in the order of Ray's. `make` builds what it needs and returns what is
// timed.
struct Row {
  std::string name;
  double times;  // What one call counts for.
  std::function<std::function<void()>(Runtime&)> make;
  std::string note;
};

std::vector<Row> ObjectRows() {
  return {
      {"single client get calls (Plasma Store)", 1,
       [](Runtime& runtime) { return [&runtime, value = runtime.Put(0)] { runtime.Get(value); }; }},
      {"single client put calls (Plasma Store)", 1,
       [](Runtime& runtime) { return [&runtime] { runtime.Put(0); }; }},
      {"multi client put calls (Plasma Store)", 1000,
       [](Runtime& runtime) {
         return [&runtime] { GetAll(runtime, 10, [&] { return runtime.Call<PutSmall>(); }); };
       }},
      {"single client put gigabytes", 0.8,
       [](Runtime& runtime) {
         return [&runtime, zeros = std::make_shared<Zeros>(kLargeElements)] {
           runtime.Put(zeros->values());
         };
       }},
      {"single client tasks and get batch", 1,
       [](Runtime& runtime) {
         return [&runtime] { GetAll(runtime, kBatch, [&] { return runtime.Call<SmallValue>(); }); };
       }},
      {"multi client put gigabytes", 8,
       [](Runtime& runtime) {
         return [&runtime] { GetAll(runtime, 10, [&] { return runtime.Call<PutLarge>(); }); };
       }},
      {"single client get object containing 10k refs", 1,
       [](Runtime& runtime) {
         return [&runtime, value = runtime.Call<ManyReferences>()] { runtime.Get(value); };
       }},
      {"single client wait 1k refs", 1,
       [](Runtime& runtime) {
         return [&runtime] {
           std::vector<ObjectRef<Small>> pending;
           for (int i = 0; i < kBatch; ++i) pending.push_back(runtime.Call<SmallValue>());
           while (!pending.empty()) pending = runtime.Wait(pending).pending;
         };
       }},
  };
}

std::vector<Row> TaskRows() {
  return {
      {"single client tasks sync", 1,
       [](Runtime& runtime) { return [&runtime] { runtime.Get(runtime.Call<SmallValue>()); }; }},
      {"single client tasks async", kBatch,
       [](Runtime& runtime) {
         return [&runtime] { GetAll(runtime, kBatch, [&] { return runtime.Call<SmallValue>(); }); };
       }},
      {"multi client tasks async", kCallsOfClient * kClients,
       [](Runtime& runtime) {
         std::vector<ServerRef> clients;
         for (int i = 0; i < kClients; ++i) clients.push_back(runtime.CreateActor<Server>({}));
         return [&runtime, clients] {
           int i = 0;
           GetAll(runtime, kClients, [&] {
             return clients[static_cast<std::size_t>(i++)].Call<&Server::CallTasks>(kCallsOfClient);
           });
         };
       }},
  };
}

std::function<void()> ActorSync(Runtime& runtime) {
  return [&runtime, server = runtime.CreateActor<Server>({})] {
    runtime.Get(server.Call<&Server::SmallValue>());
  };
}

std::function<void()> ActorAsync(Runtime& runtime) {
  return [&runtime, server = runtime.CreateActor<Server>({})] {
    GetAll(runtime, kBatch, [&] { return server.Call<&Server::SmallValue>(); });
  };
}

std::function<void()> ActorConcurrent(Runtime& runtime) {
  return [&runtime, server = runtime.CreateActor<Server>({.concurrency = 16})] {
    GetAll(runtime, kBatch, [&] { return server.Call<&Server::SmallValue>(); });
  };
}

std::function<void()> ActorAsyncWithArgument(Runtime& runtime) {
  return [&runtime, server = runtime.CreateActor<Server>({})] {
    int i = 0;
    GetAll(runtime, kBatch, [&] { return server.Call<&Server::SmallValueOf>(i++); });
  };
}

std::vector<ServerRef> HalfTheCpus(Runtime& runtime) {
  std::vector<ServerRef> servers(static_cast<std::size_t>(std::max(1, AvailableCpus() / 2)));
  for (ServerRef& server : servers) server = runtime.CreateActor<Server>({});
  return servers;
}

double Half() { return std::max(1, AvailableCpus() / 2); }

std::function<void()> OneToMany(Runtime& runtime) {
  const auto client = runtime.CreateActor<ServerClient>({}, HalfTheCpus(runtime));
  return [&runtime, client] { runtime.Get(client.Call<&ServerClient::Call>(kCallsOfActorClient)); };
}

std::function<void()> ManyToMany(Runtime& runtime) {
  return [&runtime, servers = HalfTheCpus(runtime)] {
    GetAll(runtime, kClients,
           [&] { return runtime.Call<CallServers>(servers, kCallsOfActorClient); });
  };
}

std::function<void()> ManyToManyWithArgument(Runtime& runtime) {
  std::vector<ActorRef<ServerClient>> clients;
  for (const ServerRef& server : HalfTheCpus(runtime)) {
    clients.push_back(runtime.CreateActor<ServerClient>({}, std::vector{server}));
  }
  return [&runtime, clients] {
    std::size_t i = 0;
    GetAll(runtime, static_cast<int>(clients.size()),
           [&] { return clients[i++].Call<&ServerClient::CallWithArgument>(kBatch); });
  };
}

std::vector<Row> ActorRows() {
  const char* const kPlain = "ours: an actor that does one call after the other";
  return {
      {"1:1 actor calls sync", 1, ActorSync},
      {"1:1 actor calls async", kBatch, ActorAsync},
      {"1:1 actor calls concurrent", kBatch, ActorConcurrent},
      {"1:n actor calls async", kCallsOfActorClient * Half(), OneToMany},
      {"n:n actor calls async", kCallsOfActorClient * kClients, ManyToMany},
      {"n:n actor calls with arg async", kBatch * Half(), ManyToManyWithArgument},
      {"1:1 async-actor calls sync", 1, ActorSync, kPlain},
      {"1:1 async-actor calls async", kBatch, ActorAsync, kPlain},
      {"1:1 async-actor calls with args async", kBatch, ActorAsyncWithArgument, kPlain},
      {"1:n async-actor calls async", kCallsOfActorClient * Half(), OneToMany, kPlain},
      {"n:n async-actor calls async", kCallsOfActorClient * kClients, ManyToMany, kPlain},
  };
}

constexpr int kGroups = 100;

std::vector<Row> GroupRows() {
  return {{"placement group create/removal", kGroups, [](Runtime& runtime) {
             return [&runtime] {
               std::vector<PlacementGroup> groups(kGroups);
               for (PlacementGroup& group : groups) {
                 group = runtime.CreatePlacementGroup({{.cpus = 0.001}});
               }
               for (const PlacementGroup& group : groups) runtime.Get(group.Ready());
               for (const PlacementGroup& group : groups) runtime.RemovePlacementGroup(group);
             };
           }}};
}

bool Asked(const std::string& name, const std::vector<std::string>& texts) {
  return texts.empty() || std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
           return name.find(text) != std::string::npos;
         });
}

int Main(int argc, char** argv) {
  std::vector<std::string> texts;
  double seconds = 2;
  bool list = false;
  CLI::App app("Measures calls, actors and objects a second as `ray microbenchmark` does.");
  app.add_option("--rows", texts, "only rows whose name contains one of these");
  app.add_option("--seconds", seconds, "of each of the four windows of a row");
  app.add_flag("--list", list, "print the names of the rows alone");
  CLI11_PARSE(app, argc, argv);
  std::vector<Row> rows = ObjectRows();
  for (auto& more : {TaskRows(), ActorRows(), GroupRows()})
    rows.insert(rows.end(), more.begin(), more.end());
  for (const Row& row : rows) {
    if (!Asked(row.name, texts)) continue;
    if (list) {
      fmt::print("{}\n", row.name);
      continue;
    }
    Runtime runtime;
    const auto timed = row.make(runtime);
    const Rate rate = MeasureRate(seconds, row.times, timed);
    PrintResult(
        fmt::format(R"("name": "{}", "per_second": {:.6g}, "deviation": {:.3g}, "note": "{}")",
                    row.name, rate.mean, rate.deviation, row.note));
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_calls", menger::bench::Main, argc, argv);
}
