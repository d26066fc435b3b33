// Runs graphs of calls whose results are known, while their workers are killed: by themselves, in
// the middle of a call, and by whoever likes (kill_workers.py).
//
//   menger_runtime_chaos SEED SECONDS STRIKES   of 1000 calls, so many kill their own process
//
// Says how many calls it made and what died meanwhile, or what was wrong. Every call may be run
// again and again. Mixers lose what they know with their worker, so they know nothing; Chains are
// checkpointed: what each gives follows from all calls that it was given before.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/watching/job_socket.h"
#include "menger/runtime/worker_main.h"

namespace menger {
namespace {

constexpr int kLayers = 12;
constexpr std::size_t kWidth = 24;
constexpr int kActors = 2;
constexpr int kCheckpointEvery = 5;
constexpr int kNested = 3;
constexpr int kRuns = 10'000;  // That a call may need.
constexpr std::chrono::seconds kPatience{100};
constexpr std::size_t kDescriptorsMax = 200;  // However many workers have died.

// A number, and bytes that follow from it.
struct Value {
  std::uint64_t sum = 0;
  std::vector<std::uint64_t> bulk;
};
template <typename Archive>
void Serialize(Archive& archive, Value& value) {
  archive(value.sum, value.bulk);
}

// What a call is: a seed, and how often of 1000 it kills its process.
struct Order {
  std::uint64_t seed = 0;
  std::uint64_t strikes = 0;
};

// The finaliser of splitmix64 (Steele, Lea and Flood 2014).
std::uint64_t MixBits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t Mixed(std::uint64_t a, std::uint64_t b) { return MixBits(MixBits(a) + b); }

Value ValueOf(std::uint64_t sum) {
  // 0 to 4 MB; most go inline, some through shared memory.
  constexpr std::size_t kSizes[] = {0, 1, 2, 10, 100, 1000, 7000, 9000, 20'000, 500'000};
  Value value{sum, std::vector<std::uint64_t>(kSizes[sum % std::size(kSizes)])};
  for (std::size_t i = 0; i < value.bulk.size(); ++i) value.bulk[i] = sum + i;
  return value;
}

void Check(const Value& value) {
  if (value.bulk != ValueOf(value.sum).bulk) throw DataLoss("the bytes of {} differ", value.sum);
}

// Another process may be luckier, so this depends on which it is. Never the driver's: see Main.
void Strike(const Order& order) {
  if (Mixed(order.seed, static_cast<std::uint64_t>(getpid())) % 1000 < order.strikes) {
    kill(getpid(), SIGKILL);
  }
}

Value Combine(const Order& order, const Value& a, const Value& b) {
  Check(a);
  Check(b);
  Strike(order);
  return ValueOf(Mixed(Mixed(order.seed, a.sum), b.sum));
}

std::uint64_t NestedSum(const Order& order, std::uint64_t a) {
  std::uint64_t sum = order.seed;
  for (std::uint64_t i = 0; i < kNested; ++i) sum = Mixed(sum, Mixed(Mixed(order.seed + i, a), a));
  return sum;
}

const CallOptions& Persistent() {
  static const CallOptions options{.retries = kRuns};
  return options;
}

Value Nest(Runtime& runtime, const Order& order, const Value& a) {
  std::vector<ObjectRef<Value>> results;
  const ObjectRef<Value> put = runtime.Put(a);
  for (std::uint64_t i = 0; i < kNested; ++i) {
    const Order nested{order.seed + i, order.strikes};
    results.push_back(runtime.CallWith<Combine>(Persistent(), nested, put, put));
  }
  Strike(order);
  std::uint64_t sum = order.seed;
  for (const Value& value : runtime.Get(results, kPatience)) sum = Mixed(sum, value.sum);
  return ValueOf(sum);
}

class Mixer {
 public:
  Value Mix(const Order& order, const Value& a) {
    Check(a);
    Strike(order);
    return ValueOf(Mixed(order.seed, a.sum));
  }
};

class Chain {
 public:
  Value Add(Runtime& runtime, const Order& order, const Value& a) {
    const ObjectRef<Value> nested = runtime.CallWith<Combine>(Persistent(), order, a, a);
    Strike(order);
    sum_ = Next(sum_, order.seed, a.sum);
    return ValueOf(Mixed(sum_, runtime.Get(nested, kPatience).sum));
  }
  static std::uint64_t Next(std::uint64_t sum, std::uint64_t seed, std::uint64_t a) {
    return Mixed(Mixed(sum, seed), a);
  }

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(sum_);
  }

 private:
  std::uint64_t sum_ = 0;
};

struct Node {
  ObjectRef<Value> value;
  std::uint64_t expected = 0;
};
using Layer = std::vector<Node>;

class Chaos {
 public:
  Chaos(std::uint64_t seed, std::uint64_t strikes) : random_(seed), strikes_(strikes) {
    for (ActorRef<Mixer>& actor : actors_) {
      actor = runtime_.CreateActor<Mixer>({.restarts = kRuns, .call_retries = kRuns});
    }
    for (ActorRef<Chain>& chain : chains_) {
      chain = runtime_.CreateActor<Chain>(
          {.call_retries = kRuns, .checkpoint_every = kCheckpointEvery});
    }
  }

  // Two layers are kept; what is before them lives on only as the lineage of what is not done yet.
  void RunGraph() {
    Layer before = FirstLayer();
    for (int i = 0; i < kLayers; ++i) {
      Layer layer;
      while (layer.size() < kWidth) layer.push_back(NextNode(before));
      before = std::move(layer);
    }
    for (const Node& node : before) {
      const Value value = runtime_.Get(node.value, kPatience);
      Check(value);
      if (value.sum != node.expected) {
        throw DataLoss("{} where {} is right", value.sum, node.expected);
      }
    }
  }

  std::int64_t calls() const { return calls_; }

 private:
  std::uint64_t Draw() { return random_ = MixBits(random_ + 1); }

  Layer FirstLayer() {
    Layer layer;
    while (layer.size() < kWidth) {
      const std::uint64_t sum = Draw();
      layer.push_back({runtime_.Put(ValueOf(sum)), sum});
    }
    return layer;
  }

  Node NextNode(const Layer& before) {
    const Node& a = before[Draw() % kWidth];
    const Node& b = before[Draw() % kWidth];
    const Order order{Draw(), strikes_};
    ++calls_;
    switch (Draw() % 8) {
      case 0:
        calls_ += kNested;
        return {runtime_.CallWith<Nest>(Persistent(), order, a.value),
                NestedSum(order, a.expected)};
      case 1: {
        const ActorRef<Mixer>& actor = actors_[Draw() % kActors];
        return {actor.Call<&Mixer::Mix>(order, a.value), Mixed(order.seed, a.expected)};
      }
      case 2: {
        ++calls_;
        const std::size_t which = Draw() % kActors;
        std::uint64_t& sum = sums_[which];
        sum = Chain::Next(sum, order.seed, a.expected);
        const std::uint64_t nested = Mixed(Mixed(order.seed, a.expected), a.expected);
        return {chains_[which].Call<&Chain::Add>(order, a.value), Mixed(sum, nested)};
      }
      default:
        return {runtime_.CallWith<Combine>(Persistent(), order, a.value, b.value),
                Mixed(Mixed(order.seed, a.expected), b.expected)};
    }
  }

  Runtime runtime_;
  std::array<ActorRef<Mixer>, kActors> actors_;
  std::array<ActorRef<Chain>, kActors> chains_;
  std::array<std::uint64_t, kActors> sums_{};  // What the chains have come to.
  std::uint64_t random_;
  const std::uint64_t strikes_;
  std::int64_t calls_ = 0;
};

// How many of this job's calls, actors and workers were lost.
std::string Losses() {
  std::string metrics;
  AskJob(
      FindJob(std::to_string(getpid())), "metrics",
      [&](std::string_view piece) { metrics += piece; }, Deadline::After(kPatience));
  const auto count = [&](std::string_view event) {
    const std::string sample = fmt::format("menger_node_events_total{{event=\"{}\"}} ", event);
    const std::size_t at = metrics.find(sample);
    if (at == std::string::npos) throw Internal("no count of {}", event);
    return std::strtoull(metrics.c_str() + at + sample.size(), nullptr, 10);
  };
  return fmt::format("{} workers died, {} calls were cut short, {} actors made again",
                     count("worker_died"), count("task_lost"), count("actor_restarted"));
}

std::size_t Descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

int Main(std::uint64_t seed, double seconds, std::uint64_t strikes) {
  const std::size_t before = Descriptors();
  int graphs = 0;
  std::size_t most = 0;
  std::int64_t calls = 0;
  std::string losses;
  {
    Chaos chaos(seed, strikes);
    fmt::print("started\n");
    std::fflush(stdout);
    for (const Stopwatch watch; watch.seconds() < seconds; ++graphs) {
      chaos.RunGraph();
      most = std::max(most, Descriptors());
    }
    calls = chaos.calls();
    losses = Losses();
  }
  if (most > before + kDescriptorsMax) throw Internal("{} descriptors were open", most);
  if (Descriptors() != before) throw Internal("{} descriptors remain of {}", Descriptors(), before);
  fmt::print("{} graphs, {} calls, {}, all right\n", graphs, calls, losses);
  return 0;
}

}  // namespace
}  // namespace menger

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  if (argc != 4) return 2;
  try {
    return menger::Main(std::strtoull(argv[1], nullptr, 10), std::strtod(argv[2], nullptr),
                        std::strtoull(argv[3], nullptr, 10));
  } catch (const std::exception& error) {
    fmt::print("wrong: {}\n", error.what());
    return 1;
  }
}
