// How fast do the runtime's rings and doorbells carry messages between two threads and between two
// processes? Entries a second, published and released in batches, and the round trip of one entry:
// with both sides spinning over their rings; waiting at doorbells; and at doorbells after `--idle`
// microseconds of rest, when the other side sleeps and must be woken. Every byte of each entry is
// written and read.
//
//   bench_shared_rings [--seconds 1] [--bytes 64 256] [--batch 32] [--idle 100]

#include <fmt/format.h>
#include <immintrin.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/sharing/ring.h"
#include "menger/base/thread.h"
#include "menger/runtime/channel/doorbell.h"
#include "menger/tensor/memory.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr std::size_t kCapacity = 1 << 18;
constexpr int kRounds = 5;  // The median counts.
constexpr auto kPatience = std::chrono::seconds(20);

struct Settings {
  double seconds = 1;
  std::vector<std::size_t> bytes = {64, 256};
  int batch = 32;
  int idle_microseconds = 100;
};

// Two rings, a doorbell for each reader, and a word that ends the other side.
struct Channel {
  Channel() {
    for (auto& memory : rings) memory = AllocateSharedMemory("ring", RingBytes(kCapacity));
    words = AllocateSharedMemory("words", 4096);
    bells = new (words->data()) Doorbell[2];
    stop = new (words->data() + 2 * sizeof(Doorbell)) std::atomic<bool>(false);
  }
  std::span<std::byte> ring(int i) { return {rings[i]->data(), rings[i]->size()}; }

  std::unique_ptr<SharedMemory> rings[2];
  std::unique_ptr<SharedMemory> words;
  Doorbell* bells;
  std::atomic<bool>* stop;
};

// The main thread is never pinned: its CPUs are what tells a process whether spinning can pay off.
std::thread OnCpu(int cpu, const std::function<void()>& function) {
  return std::thread([cpu, &function] {
    PinThisThread(cpu);
    function();
  });
}

// Runs `other` in a thread or a process beside `mine`, each on a CPU of its own; `other` returns
// when told.
void Beside(bool process, Channel& channel, const std::function<void()>& other,
            const std::function<void()>& mine) {
  const std::vector<int> cpus = AvailableCpuList();
  std::thread thread;
  pid_t child = -1;
  if (process) {
    child = fork();
    if (child < 0) throw Unavailable("cannot fork");
    if (child == 0) {
      OnCpu(cpus.back(), other).join();
      _exit(0);
    }
  } else {
    thread = OnCpu(cpus.back(), other);
  }
  OnCpu(cpus.front(), mine).join();
  *channel.stop = true;
  channel.bells[1].Ring();
  if (process) {
    waitpid(child, nullptr, 0);
  } else {
    thread.join();
  }
}

std::uint64_t Sum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0, word = 0;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    std::memcpy(&word, &bytes[i], 8);
    sum += word;
  }
  return sum;
}

double EntriesPerSecond(bool process, std::size_t bytes, const Settings& settings) {
  Channel channel;
  std::uint64_t sent = 0;
  double seconds = 0;
  const auto read = [&] {
    RingReader reader(channel.ring(0));
    std::uint64_t sum = 0;
    int held = 0;
    while (!channel.stop->load(std::memory_order_relaxed)) {
      if (const RingEntry entry = reader.Next()) {
        sum += Sum(entry.bytes);
        if (++held < settings.batch) continue;
      } else {
        _mm_pause();
      }
      reader.Release();
      held = 0;
    }
    asm volatile("" : : "r"(sum));
  };
  const auto write = [&] {
    RingWriter writer(channel.ring(0));
    const Stopwatch watch;
    while (watch.seconds() < settings.seconds / kRounds) {
      for (int batch = 0; batch < 64; ++batch) {
        for (int i = 0; i < settings.batch; ++i) {
          std::span<std::byte> room = writer.Reserve(bytes);
          while (room.data() == nullptr) {
            writer.Publish();
            _mm_pause();
            room = writer.Reserve(bytes);
          }
          std::memset(room.data(), static_cast<int>(sent++), bytes);
        }
        writer.Publish();
      }
    }
    seconds = watch.seconds();
  };
  Beside(process, channel, read, write);
  return static_cast<double>(sent) / seconds;
}

// Waits for one entry and takes it; false if the other side has ended.
bool Take(Channel& channel, int side, RingReader& reader, bool sleep) {
  for (;;) {
    const std::uint32_t seen = channel.bells[side].value();
    if (reader.Next()) break;
    if (channel.stop->load(std::memory_order_relaxed)) return false;
    if (!sleep) {
      _mm_pause();
    } else if (!channel.bells[side].Wait(DoorbellRole::kNode, seen, Deadline::After(kPatience))) {
      throw DeadlineExceeded("nobody rang for {} s", kPatience.count());
    }
  }
  reader.Release();
  return true;
}

void Send(Channel& channel, int side, RingWriter& writer, std::size_t bytes, bool ring) {
  std::memset(writer.Reserve(bytes).data(), side, bytes);
  writer.Publish();
  if (ring) channel.bells[1 - side].Ring();
}

// Of a round trip, in microseconds. `idle`: that long before each.
struct Latency {
  double median = 0;
  double tail = 0;
};
Latency RoundTrip(bool process, std::size_t bytes, bool bells, std::chrono::microseconds idle,
                  double seconds) {
  Channel channel;
  std::vector<double> times;
  const auto echo = [&] {
    RingReader reader(channel.ring(0));
    RingWriter writer(channel.ring(1));
    while (Take(channel, 1, reader, bells)) Send(channel, 1, writer, bytes, bells);
  };
  const auto ask = [&] {
    RingWriter writer(channel.ring(0));
    RingReader reader(channel.ring(1));
    const Stopwatch whole;
    while (whole.seconds() < seconds) {
      if (idle.count() > 0) std::this_thread::sleep_for(idle);
      const Stopwatch watch;
      Send(channel, 0, writer, bytes, bells);
      Take(channel, 0, reader, bells);
      times.push_back(static_cast<double>(watch.nanoseconds()) * 1e-3);
    }
  };
  Beside(process, channel, echo, ask);
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100]};
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("How fast do rings and doorbells carry messages?");
  app.add_option("--seconds", settings.seconds, "for each figure");
  app.add_option("--bytes", settings.bytes, "of an entry");
  app.add_option("--batch", settings.batch, "entries published at once");
  app.add_option("--idle", settings.idle_microseconds, "before each ring that must wake a sleeper");
  CLI11_PARSE(app, argc, argv);

  const std::chrono::microseconds idle(settings.idle_microseconds);
  const std::chrono::microseconds none(0);
  fmt::print(
      "| between | bytes | M entries/s | round trip: spinning, us (p99) | bells (p99) | "
      "bells after {} us of rest (p99) |\n|---|---|---|---|---|---|\n",
      idle.count());
  for (const bool process : {false, true}) {
    for (const std::size_t bytes : settings.bytes) {
      std::vector<double> rates;
      for (int round = 0; round < kRounds; ++round) {
        rates.push_back(EntriesPerSecond(process, bytes, settings));
      }
      std::sort(rates.begin(), rates.end());
      const Latency spin = RoundTrip(process, bytes, false, none, settings.seconds);
      const Latency bell = RoundTrip(process, bytes, true, none, settings.seconds);
      const Latency sleep = RoundTrip(process, bytes, true, idle, settings.seconds);
      fmt::print("| {} | {} | {:.1f} | {:.2f} ({:.2f}) | {:.2f} ({:.2f}) | {:.1f} ({:.1f}) |\n",
                 process ? "processes" : "threads", bytes, rates[kRounds / 2] * 1e-6, spin.median,
                 spin.tail, bell.median, bell.tail, sleep.median, sleep.tail);
    }
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_shared_rings", menger::bench::Main, argc, argv);
}
