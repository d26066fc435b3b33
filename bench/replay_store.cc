// How fast is the replay store in one process? Items inserted a second, and items sampled and
// gathered into a learner's batch a second, for payloads of 400 B, 40 kB and 1 MB and for 84 x 84
// frames in stacks of 4 (observation and next observation both delivered, each frame stored once);
// uniform and prioritised, by batch and by threads that insert or sample at the same time. Beside
// it, in the same run and taking turns: memcpy of the same bytes from random places of an array of
// the same size. `frames` are constant; `moving` ones look as an Atari game does (a few sprites
// that move over a flat background), or are a recording, and `moving-compressed` the same,
// compressed: also what an item takes in memory.
//
//   bench_replay_store [--seconds 0.2] [--payloads 400B 40kB 1MB frames moving moving-compressed]
//   [--recording FILE of uint8 84 x 84 frames] [--samplers uniform prioritised] [--batches 1 32
//   256] [--threads 1 2 4 8 16] [--gather-threads 1] [--shared]
//   [--json]

#include <fmt/format.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
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
#include "menger/replay/table.h"
#include "menger/replay/trajectory_writer.h"
#include "menger/tensor/memory.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kRounds = 3;  // The median counts.

struct Settings {
  double seconds = 0.2;
  std::vector<std::string> payloads = {"400B",   "40kB",   "1MB",
                                       "frames", "moving", "moving-compressed"};
  std::string recording;
  std::vector<std::string> samplers = {"uniform", "prioritised"};
  std::vector<int> batches = {1, 32, 256};
  std::vector<int> threads = {1, 2, 4, 8, 16};
  int gather_threads = 1;
  bool shared = false;
  bool json = false;
};

// What is stored and what is delivered. `ranges` are those of the item that ends with step 0.
struct Payload {
  ItemSpec items;
  std::vector<StepRange> ranges;
  WriterOptions writer;
  std::int64_t items_max = 0;
  std::vector<std::byte> rows;  // Of the first leaf, one after the other, again and again.
};

Payload Plain(std::int64_t bytes, int chunk_steps, std::int64_t items_max) {
  return {.items = {.steps = Spec({LeafSpec::Box("data", DataType::kUint8, {bytes}, {0}, {255})}),
                    .columns = {{.name = "data", .leaf = "data"}}},
          .ranges = {{0, 1}},
          .writer = {.chunk_steps = chunk_steps, .history = 1},
          .items_max = items_max};
}

Payload Frames() {
  return {.items = {.steps = Spec({LeafSpec::Box("frame", DataType::kUint8, {84, 84}, {0}, {255}),
                                   LeafSpec::Scalar("action", DataType::kInt64),
                                   LeafSpec::Scalar("reward", DataType::kFloat32),
                                   LeafSpec::Scalar("terminated", DataType::kUint8)}),
                    .columns = {{.name = "observation",
                                 .leaf = "frame",
                                 .rows = 4,
                                 .padding = Padding::kFront},
                                {.name = "action", .leaf = "action"},
                                {.name = "reward", .leaf = "reward"},
                                {.name = "terminated", .leaf = "terminated"},
                                {.name = "next_observation",
                                 .leaf = "frame",
                                 .rows = 4,
                                 .padding = Padding::kFront}}},
          .ranges = {{-4, 4}, {-1, 1}, {-1, 1}, {-1, 1}, {-3, 4}},
          .writer = {.chunk_steps = 64, .history = 5},
          .items_max = 200'000};
}

// Paddles, a ball and a score that change from frame to frame, as Pong's do.
std::vector<std::byte> MovingSprites() {
  constexpr int kSide = 84;
  constexpr int kFrames = 4096;
  std::vector<std::byte> frames(std::size_t{kFrames} * kSide * kSide, std::byte{87});
  Random random = Random::FromSeed(7);
  int paddle = 40;
  for (int i = 0; i < kFrames; ++i) {
    std::byte* const frame = frames.data() + std::size_t{kSide} * kSide * i;
    const auto draw = [frame](int left, int top, int width, int height, int value) {
      for (int y = top; y < top + height; ++y) {
        std::memset(frame + kSide * y + left, value, static_cast<std::size_t>(width));
      }
    };
    paddle = std::clamp(paddle + static_cast<int>(random.Integers(-2, 3)), 14, 66);
    draw(0, 12, kSide, 2, 236);
    draw(0, 78, kSide, 6, 236);
    draw(8, 14 + i / 3 % 50, 2, 8, 148);
    draw(74, paddle, 2, 8, 147);
    draw(2 * i % 80, 15 + i * 3 / 2 % 60, 1, 2, 236);
    for (int digit = 0; digit < 2; ++digit) draw(20 + 40 * digit, 2, 1 + (i >> 8) % 5, 8, 180);
  }
  return frames;
}

Payload Moving(const std::string& recording, Compression compression) {
  Payload payload = Frames();
  payload.writer.compression = compression;
  if (recording.empty()) {
    payload.rows = MovingSprites();
  } else {
    const std::string bytes = ReadFile(recording);
    const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
    payload.rows.assign(begin, begin + bytes.size() / (84 * 84) * (84 * 84));
    if (payload.rows.empty()) throw InvalidArgument("'{}' has not even one frame", recording);
  }
  return payload;
}

Payload PayloadOf(const Settings& settings, const std::string& name) {
  if (name == "400B") return Plain(400, 64, 1'000'000);
  if (name == "40kB") return Plain(40'000, 16, 30'000);
  if (name == "1MB") return Plain(1'000'000, 2, 1'200);
  if (name == "frames") return Frames();
  if (name == "moving") return Moving(settings.recording, Compression::kNone);
  if (name == "moving-compressed") return Moving(settings.recording, Compression::kAutomatic);
  throw InvalidArgument(
      "there is no payload '{}'; there are 400B, 40kB, 1MB, frames, moving and moving-compressed",
      name);
}

std::size_t DeliveredBytes(const ItemSpec& items) {
  std::size_t bytes = 0;
  for (const ItemColumn& column : items.columns) {
    bytes += items.LeafOf(column).bytes() * static_cast<std::size_t>(column.rows);
  }
  return bytes;
}

// Writes steps of one stream, an item each.
class Stream {
 public:
  Stream(const Payload& payload, ChunkStore& chunks, Table& table, int seed)
      : payload_(payload),
        table_(table),
        writer_(payload.items.steps, payload.writer, chunks),
        random_(Random::FromSeed(static_cast<std::uint64_t>(seed))),
        ranges_(payload.ranges) {
    for (const LeafSpec& leaf : payload.items.steps.leaves()) {
      sources_.emplace_back(leaf.bytes(), static_cast<std::byte>(seed + 1));
    }
    for (const auto& source : sources_) leaves_.push_back(source.data());
  }

  // Returns the items inserted.
  std::int64_t Insert(int batch) {
    std::int64_t items = 0;
    for (int i = 0; i < batch; ++i) {
      if (!payload_.rows.empty()) {
        leaves_[0] = payload_.rows.data() + sources_[0].size() * row_;
        row_ = (row_ + 1) % (payload_.rows.size() / sources_[0].size());
      }
      const std::int64_t step = writer_.Append(leaves_, 0);
      for (std::size_t c = 0; c < ranges_.size(); ++c) {
        ranges_[c].first = step + payload_.ranges[c].first;
      }
      if (ranges_[0].first < 0) continue;
      writer_.Add(table_, random_.Double(), ranges_);
      ++items;
    }
    writer_.Flush(Deadline::After(std::chrono::seconds(10)));
    return items;
  }

 private:
  const Payload& payload_;
  Table& table_;
  TrajectoryWriter writer_;
  Random random_;
  std::vector<StepRange> ranges_;
  std::vector<std::vector<std::byte>> sources_;
  std::vector<const std::byte*> leaves_;
  std::size_t row_ = 0;
};

// Draws and gathers.
class Reader {
 public:
  Reader(const Payload& payload, Table& table, int batch, int gather_threads)
      : table_(table), batch_(batch), gatherer_(payload.items, batch, gather_threads) {}

  std::int64_t Read() {
    table_.SampleInto({.count = batch_, .deadline = Deadline::After(std::chrono::seconds(10))},
                      sample_);
    gatherer_.Gather(sample_);
    sample_.Release();  // Otherwise old chunks stay while others insert.
    return batch_;
  }

 private:
  Table& table_;
  const int batch_;
  BatchGatherer gatherer_;
  Sample sample_;
};

// The same bytes from a plain array of the same rows.
class Copier {
 public:
  Copier(const Payload& payload, const std::byte* data, int batch, int seed)
      : payload_(payload), data_(data), batch_(batch) {
    Random random = Random::FromSeed(static_cast<std::uint64_t>(seed));
    for (int i = 0; i < (1 << 16); ++i) places_.push_back(random.Integers(4, payload.items_max));
    std::size_t offset = 0;
    std::size_t out = 0;
    for (const LeafSpec& leaf : payload.items.steps.leaves()) {
      leaf_begins_.push_back(offset);
      offset += leaf.bytes() * static_cast<std::size_t>(payload.items_max);
    }
    for (std::size_t c = 0; c < payload.items.columns.size(); ++c) {
      const int leaf = payload.items.steps.Find(payload.items.columns[c].leaf);
      const std::size_t row_bytes = payload.items.steps[leaf].bytes();
      const std::size_t bytes = row_bytes * static_cast<std::size_t>(payload.ranges[c].count);
      parts_.push_back({.begin = leaf_begins_[leaf],
                        .row_bytes = row_bytes,
                        .first = payload.ranges[c].first,
                        .bytes = bytes,
                        .out = out});
      out += bytes * static_cast<std::size_t>(batch);
    }
    out_ = AllocatePlainMemory(out);
  }

  std::int64_t Copy() {
    for (int i = 0; i < batch_; ++i) {
      const std::int64_t place = places_[next_++ % places_.size()];
      for (const Part& part : parts_) {
        std::memcpy(
            out_->data() + part.out + part.bytes * static_cast<std::size_t>(i),
            data_ + part.begin + part.row_bytes * static_cast<std::size_t>(place + part.first),
            part.bytes);
      }
    }
    return batch_;
  }

 private:
  struct Part {
    std::size_t begin;
    std::size_t row_bytes;
    std::int64_t first;
    std::size_t bytes;
    std::size_t out;
  };

  const Payload& payload_;
  const std::byte* data_;
  const int batch_;
  std::vector<std::int64_t> places_;
  std::vector<std::size_t> leaf_begins_;
  std::vector<Part> parts_;
  std::unique_ptr<Memory> out_;
  std::size_t next_ = 0;
};

// Items a second of all threads together, each calling its function again and again.
double Rate(double seconds, const std::vector<std::function<std::int64_t()>>& functions) {
  std::atomic<bool> stop = false;
  std::atomic<int> ready = 0;
  std::atomic<std::int64_t> total = 0;
  std::vector<std::thread> threads;
  for (const auto& function : functions) {
    threads.emplace_back([&] {
      function();  // Memory that was never touched is touched now.
      ++ready;
      while (ready < static_cast<int>(functions.size())) std::this_thread::yield();
      std::int64_t items = 0;
      while (!stop.load(std::memory_order_relaxed)) items += function();
      total += items;
    });
  }
  while (ready < static_cast<int>(functions.size())) std::this_thread::yield();
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(total) / watch.seconds();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void MeasureOne(const Settings& settings, const std::string& name, const std::string& sampler,
                const Payload& payload, ChunkStore& chunks, Table& table, Memory& array, int batch,
                int threads) {
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Reader>> readers;
  std::vector<std::unique_ptr<Copier>> copiers;
  std::vector<std::function<std::int64_t()>> insert, read, copy;
  for (int i = 0; i < threads; ++i) {
    streams.push_back(std::make_unique<Stream>(payload, chunks, table, i));
    readers.push_back(std::make_unique<Reader>(payload, table, batch, settings.gather_threads));
    copiers.push_back(std::make_unique<Copier>(payload, array.data(), batch, i));
    insert.emplace_back([&, i] { return streams[i]->Insert(batch); });
    read.emplace_back([&, i] { return readers[i]->Read(); });
    copy.emplace_back([&, i] { return copiers[i]->Copy(); });
  }
  std::vector<double> inserts, samples, copies, ratios;
  for (int round = 0; round < kRounds; ++round) {
    inserts.push_back(Rate(settings.seconds, insert));
    samples.push_back(Rate(settings.seconds, read));
    copies.push_back(Rate(settings.seconds, copy));
    ratios.push_back(samples.back() / copies.back());
  }
  const double bytes = static_cast<double>(DeliveredBytes(payload.items));
  const TableInfo info = table.info();
  const double item_bytes = static_cast<double>(info.bytes) / static_cast<double>(info.items);
  fmt::print("{:<18}{:<12}{:>6}{:>8}{:>12.1f}{:>12.1f}{:>10.2f}{:>12.1f}{:>8.2f}{:>10.0f}\n", name,
             sampler, batch, threads, Median(inserts) * 1e-3, Median(samples) * 1e-3,
             Median(samples) * bytes * 1e-9, Median(copies) * 1e-3, Median(ratios), item_bytes);
  if (settings.json) {
    fmt::print(
        "RESULT {{\"peer\": \"menger\", \"payload\": \"{}\", \"sampler\": \"{}\", \"batch\": {}, "
        "\"threads\": {}, \"inserts_per_second\": {:.0f}, \"samples_per_second\": {:.0f}, "
        "\"memcpy_per_second\": {:.0f}, \"bytes_per_item\": {:.0f}}}\n",
        name, sampler, batch, threads, Median(inserts), Median(samples), Median(copies),
        item_bytes);
  }
  std::fflush(stdout);
}

void Measure(const Settings& settings, const std::string& name, const std::string& sampler) {
  const Payload payload = PayloadOf(settings, name);
  const ChunkLayout layout(payload.items.steps, payload.writer.chunk_steps);
  const std::size_t chunks_needed =
      static_cast<std::size_t>(payload.items_max / payload.writer.chunk_steps) + 256;
  ChunkStore chunks(
      {.bytes_max = chunks_needed * layout.bytes() / 4 * 5, .shared = settings.shared});
  Table table({.name = name,
               .items = payload.items,
               .sampler = {.kind = sampler == "uniform" ? SelectorKind::kUniform
                                                        : SelectorKind::kPrioritised,
                           .exponent = 0.6},
               .rate_limiter = RateLimiterOptions::MinSize(1),
               .items_max = payload.items_max,
               .bytes_max = std::size_t{1} << 40},
              chunks);
  {
    Stream stream(payload, chunks, table, 0);
    while (table.info().items < payload.items_max) stream.Insert(64);
  }
  std::size_t row_bytes = 0;
  for (const LeafSpec& leaf : payload.items.steps.leaves()) row_bytes += leaf.bytes();
  const auto array = AllocatePlainMemory(row_bytes * static_cast<std::size_t>(payload.items_max));
  madvise(array->data(), array->size(), MADV_HUGEPAGE);
  std::memset(array->data(), 1, array->size());
  for (const int batch : settings.batches) {
    for (const int threads : settings.threads) {
      MeasureOne(settings, name, sampler, payload, chunks, table, *array, batch, threads);
    }
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures the replay store in one process, beside memcpy.");
  app.add_option("--seconds", settings.seconds, "of each measurement");
  app.add_option("--payloads", settings.payloads,
                 "400B, 40kB, 1MB, frames, moving, moving-compressed");
  app.add_option("--recording", settings.recording, "uint8 84 x 84 frames, for the moving ones")
      ->check(CLI::ExistingFile);
  app.add_option("--samplers", settings.samplers, "uniform, prioritised")
      ->check(CLI::IsMember({"uniform", "prioritised"}));
  app.add_option("--batches", settings.batches, "items a call, inserted or sampled");
  app.add_option("--threads", settings.threads, "that insert, or sample, at the same time");
  app.add_option("--gather-threads", settings.gather_threads, "that copy one batch together");
  app.add_flag("--shared", settings.shared, "in memory that other processes could map");
  app.add_flag("--json", settings.json, "a line \"RESULT \" and a JSON object after each row");
  CLI11_PARSE(app, argc, argv);
  fmt::print(
      "Thousand items/s of all threads together; GB/s delivered into batches; ratio: sampling and "
      "gathering / memcpy\nof the same bytes from random places\n");
  fmt::print("{:<18}{:<12}{:>6}{:>8}{:>12}{:>12}{:>10}{:>12}{:>8}{:>10}\n", "payload", "sampler",
             "batch", "threads", "inserted", "sampled", "GB/s", "memcpy", "ratio", "B/item");
  for (const std::string& payload : settings.payloads) {
    for (const std::string& sampler : settings.samplers) Measure(settings, payload, sampler);
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_replay_store", menger::bench::Main, argc, argv);
}
