// Do calls of a replay table keep their deadlines while another call has a million items to see
// to? A table of --items; one thread removes what is too old, updates, deletes, draws all of it,
// or takes a checkpoint's cut; three others meanwhile look at the table, insert an item, and ask
// for one with a deadline of 20 ms that is not there in time, or is. Milliseconds that these took,
// beyond the deadline where they waited for it; beside them the same on a table at rest.
//
//   bench_replay_deadlines [--items 1000000] [--rounds 3] [--seconds 1]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr std::chrono::milliseconds kDeadline{20};
constexpr std::int64_t kPiece = 1 << 16;

struct Settings {
  std::int64_t items = 1'000'000;
  int rounds = 3;
  double seconds = 1;
};

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

// A table of items of one step, prioritised: of all samplers the one with the most to do.
class Filled {
 public:
  // `open`: may be sampled; else it waits for more items than there will be.
  Filled(std::int64_t items, bool open)
      : items_(items),
        store_({.tables = {{.name = "busy",
                            .items = {.steps = steps_,
                                      .columns = {{.name = "value", .leaf = "value"}}},
                            .sampler = {.kind = SelectorKind::kPrioritised, .exponent = 0.6},
                            .rate_limiter = RateLimiterOptions::MinSize(open ? 1 : 2 * items),
                            .items_max = 2 * items,
                            .bytes_max = std::size_t{1} << 20}},
                .bytes_max = std::size_t{2} << 20}),
        chunk_(store_.chunks().Allocate(ChunkLayout(steps_, 8))) {
    store_.chunks().Publish(chunk_, 8);
    Fill();
  }
  ~Filled() { store_.chunks().Release(chunk_); }

  ReplayStore& store() { return store_; }
  Table& table() { return store_.table(0); }
  const std::vector<ItemKey>& keys() const { return keys_; }
  ItemDraft Draft() const {
    return {.priority = 1,
            .slices = {{.chunk = chunk_, .offset = 0, .length = 1}},
            .slice_counts = {1}};
  }

  // Up to so many items again.
  void Fill() {
    const std::vector<ItemDraft> drafts(kPiece, Draft());
    keys_.clear();
    for (std::int64_t left = items_ - table().info().items; left > 0; left -= kPiece) {
      table().Insert(std::span(drafts).first(std::min(left, kPiece)), Soon(), &keys_);
    }
  }

 private:
  const Spec steps_{{LeafSpec::Discrete("value", 1'000'000)}};
  const std::int64_t items_;
  ReplayStore store_;
  const ChunkId chunk_;
  std::vector<ItemKey> keys_;
};

// What the long call is; `open` as Filled's.
struct LongCall {
  std::string name;
  bool open;
  std::function<void(Filled&)> call;  // Null: nothing, for `seconds`.
};

std::vector<LongCall> LongCalls(std::int64_t items) {
  const auto draw = [items](Filled& filled, std::uint64_t version) {
    Sample sample;
    SampleRequest request{.count = static_cast<int>(std::min<std::int64_t>(items, kSampleItemsMax)),
                          .deadline = Deadline::After(kDeadline),
                          .version = version};
    if (version > 0) request.staleness_max = 0;
    try {
      filled.table().SampleInto(request, sample);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadlineExceeded) throw;  // All of them were too old.
    }
  };
  const auto update = [](Filled& filled) {
    std::vector<PriorityUpdate> updates;
    for (const ItemKey& key : filled.keys()) updates.push_back({.key = key, .priority = 2});
    filled.table().UpdatePriorities(updates);
  };
  return {
      {"at rest", true, nullptr},
      {"draw them all", true, [draw](Filled& filled) { draw(filled, 0); }},
      {"remove them, too old", true, [draw](Filled& filled) { draw(filled, 100); }},
      {"at rest, sampling waits", false, nullptr},
      {"update all priorities", false, update},
      {"delete them all", false, [](Filled& filled) { filled.table().Delete(filled.keys()); }},
      {"cut for a checkpoint", false, [](Filled& filled) { ReplayCheckpoint cut(filled.store()); }},
  };
}

// Milliseconds, sorted.
struct Times {
  std::vector<double> all;
  void Add(const Times& other) { all.insert(all.end(), other.all.begin(), other.all.end()); }
  double Quantile(double share) {
    if (all.empty()) return 0;
    std::ranges::sort(all);
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  }
};

// Calls `work` again and again; how long it took, beyond `allowed` where that is more.
Times Watch(const std::atomic<bool>& stop, std::chrono::nanoseconds allowed,
            const std::function<bool()>& work) {
  Times times;
  while (!stop) {
    const Stopwatch watch;
    const bool waited = work();
    const double beyond = waited ? static_cast<double>(allowed.count()) * 1e-6 : 0;
    times.all.push_back(watch.seconds() * 1e3 - beyond);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return times;
}

struct Waited {
  Times look;
  Times insert;
  Times sample;
  double call_ms = 0;
};

// True if the call ended at its deadline.
bool SampleOne(Table& table, Sample& sample) {
  try {
    table.SampleInto({.count = 1, .deadline = Deadline::After(kDeadline)}, sample);
    return false;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadlineExceeded) throw;
    return true;
  }
}

Waited Measure(const LongCall& call, Filled& filled, double seconds) {
  std::atomic<bool> stop{false};
  Waited waited;
  Table& table = filled.table();
  std::thread look([&] { waited.look = Watch(stop, {}, [&] { return table.info().items < 0; }); });
  std::thread insert([&] {
    const ItemDraft draft = filled.Draft();
    waited.insert = Watch(stop, {}, [&] {
      table.Insert({&draft, 1}, Soon());
      return false;
    });
  });
  std::thread sample([&] {
    Sample one;
    waited.sample = Watch(stop, kDeadline, [&] { return SampleOne(table, one); });
  });
  std::this_thread::sleep_for(kDeadline);
  const Stopwatch watch;
  if (call.call) {
    call.call(filled);
  } else {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  waited.call_ms = watch.seconds() * 1e3;
  stop = true;
  for (std::thread* const thread : {&look, &insert, &sample}) thread->join();
  return waited;
}

int Run(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures what calls of a replay table wait while another one has much to do.");
  app.add_option("--items", settings.items, "of the table")->check(CLI::Range(1000, 1 << 20));
  app.add_option("--rounds", settings.rounds, "of each long call")->check(CLI::Range(1, 100));
  app.add_option("--seconds", settings.seconds, "at rest")->check(CLI::Range(.1, 60.));
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<24} {:>9} {:>22} {:>22} {:>26}\n", "meanwhile", "it took", "look: median, most",
             "insert: median, most", "sample: median, most late");
  for (const LongCall& call : LongCalls(settings.items)) {
    Filled filled(settings.items, call.open);
    Waited all;
    for (int round = 0; round < settings.rounds; ++round) {
      const Waited waited = Measure(call, filled, settings.seconds);
      all.look.Add(waited.look);
      all.insert.Add(waited.insert);
      all.sample.Add(waited.sample);
      all.call_ms += waited.call_ms / settings.rounds;
      filled.Fill();
    }
    fmt::print(
        "{:<24} {:>6.0f} ms {:>10.2f} {:>8.2f} ms {:>10.2f} {:>8.2f} ms {:>14.2f} {:>8.2f} ms\n",
        call.name, all.call_ms, all.look.Quantile(.5), all.look.Quantile(1),
        all.insert.Quantile(.5), all.insert.Quantile(1), all.sample.Quantile(.5),
        all.sample.Quantile(1));
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_replay_deadlines", menger::bench::Run, argc, argv);
}
