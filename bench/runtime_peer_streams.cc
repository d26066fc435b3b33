// How fast are streams between two nodes on loopback, each node a process? An echo of 100 B, asked
// for by the thread of the streams and by another one; letters of 100 B a second, as many at a time
// as there is room for; bytes a second of frames of 1 MiB, which the receiver copies to one place.
// Beside it, in the same run and taking turns: blocking reads and writes of a bare socket.
//
//   bench_runtime_peer_streams [--seconds .4] [--turns 7]
//   [--certificate FILE --key FILE --authorities FILE]     over TLS

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/runtime/net/peer_streams.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr std::size_t kLetterBytes = 100;
constexpr std::size_t kFrameBytes = std::size_t{1} << 20;
constexpr std::size_t kLettersTogether = 64;
constexpr std::chrono::seconds kPatience{60};
// What a frame begins with.
constexpr std::byte kEcho{'E'};
constexpr std::byte kTaken{'T'};

using Bytes = std::vector<std::byte>;

struct Settings {
  double seconds = .4;
  int turns = 7;
  TlsFiles tls;
};

PeerStreamOptions OptionsOf(std::uint64_t node, const TlsFiles& tls) {
  PeerStreamOptions options;
  options.own.node.low = node;
  options.tls = tls;
  return options;
}

// Sends back what asks for that, and takes the rest.
class Echoer final : public PeerStreamOwner {
 public:
  void Opened(std::shared_ptr<PeerStream>) override {}
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    for (const auto frame : frames) {
      if (frame[0] == kEcho) {
        stream.TrySend(frame);
      } else {
        std::memcpy(taken_.data(), frame.data(), std::min(frame.size(), taken_.size()));
      }
    }
  }
  void Ended(PeerStream&, const Error&) override {}
  void Failed(const std::string&, const Error& why) override { throw why; }

 private:
  Bytes taken_ = Bytes(kFrameBytes);
};

// Asks, by its own thread or another.
class Asker final : public PeerStreamOwner {
 public:
  void Opened(std::shared_ptr<PeerStream> stream) override {
    Change([&] { stream_ = std::move(stream); });
  }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    const std::int64_t now = MonotonicNanoseconds();
    if (asks_until_ > now) {
      times.push_back(static_cast<double>(now - asked_) * 1e-3);
      asked_ = MonotonicNanoseconds();
      stream.TrySend(frames[0]);
      return;
    }
    asks_until_ = 0;
    Change([&] { ++answers_; });
  }
  void HasRoom(PeerStream&) override {
    Change([&] { ++rooms_; });
  }
  void Ended(PeerStream&, const Error&) override {}
  void Failed(const std::string&, const Error& why) override { throw why; }

  PeerStream& WaitStream() {
    Wait([&] { return stream_ != nullptr; });
    return *stream_;
  }
  // One question and its answer.
  void Ask(std::span<const std::byte> question) {
    const int before = answers_;
    Send(question, {});
    Wait([&] { return answers_ > before; });
  }
  // Questions that this object's thread asks as soon as it has the answer to the last.
  void AskFor(double seconds, std::span<const std::byte> question) {
    asks_until_ = MonotonicNanoseconds() + static_cast<std::int64_t>(seconds * 1e9);
    asked_ = MonotonicNanoseconds();
    Ask(question);
  }
  // Sends as soon as there is room.
  void Send(std::span<const std::byte> head, const Payload& tail) {
    for (;;) {
      const int before = rooms_;
      if (stream_->TrySend(head, tail)) return;
      Wait([&] { return rooms_ > before; });
    }
  }

  std::vector<double> times;  // Microseconds.

 private:
  template <typename Function>
  void Change(Function function) {
    const std::lock_guard lock(mutex_);
    function();
    changed_.notify_all();
  }
  template <typename Condition>
  void Wait(Condition condition) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, condition)) throw DeadlineExceeded("nothing came");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<PeerStream> stream_;
  std::atomic<int> answers_{0};
  std::atomic<int> rooms_{0};
  std::atomic<std::int64_t> asks_until_{0};
  std::int64_t asked_ = 0;
};

// p50 and p99 of an echo by the streams' thread, p50 by another one; letters a second; GB/s.
using Figures = std::array<double, 5>;

double Quantile(std::vector<double>& times, double part) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(static_cast<double>(times.size() - 1) * part)];
}

Figures MeasureStreams(const std::string& address, const Settings& settings) {
  Asker asker;
  PeerStreams streams(OptionsOf(2, settings.tls));
  streams.Connect(address, PeerLane::kControl, asker);
  asker.WaitStream();
  Figures figures{};
  const Bytes question(kLetterBytes, kEcho);
  asker.AskFor(settings.seconds, question);
  figures[0] = Quantile(asker.times, .5);
  figures[1] = Quantile(asker.times, .99);
  std::vector<double> times;
  for (Stopwatch all; all.seconds() < settings.seconds;) {
    const Stopwatch one;
    asker.Ask(question);
    times.push_back(one.seconds() * 1e6);
  }
  figures[2] = Quantile(times, .5);

  const Bytes letter(kLetterBytes, kTaken);
  Stopwatch watch;
  double count = 0;
  for (; watch.seconds() < settings.seconds; count += kLettersTogether) {
    for (std::size_t i = 0; i < kLettersTogether; ++i) asker.Send(letter, {});
  }
  asker.Ask(question);
  figures[3] = count / watch.seconds();

  const Payload frame = Payload::Copy(Bytes(kFrameBytes, kTaken));
  watch.Restart();
  for (count = 0; watch.seconds() < settings.seconds; count += kFrameBytes) asker.Send({}, frame);
  asker.Ask(question);
  figures[4] = count / watch.seconds() * 1e-9;
  return figures;
}

// ---- A bare socket: blocking, and nothing knows where a frame ends but by the turn that it is.

void SetBlocking(const FileDescriptor& socket) {
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
}
void WriteBare(const FileDescriptor& socket, std::span<const std::byte> bytes) {
  WriteAll(socket, bytes, "a bare socket");
}
bool ReadBare(const FileDescriptor& socket, std::span<std::byte> bytes) {
  return recv(socket.get(), bytes.data(), bytes.size(), MSG_WAITALL) ==
         static_cast<ssize_t>(bytes.size());
}

// A byte says what comes: a letter to send back, letters together, or a frame.
void EchoBare(const FileDescriptor& socket) {
  Bytes room(kFrameBytes);
  const std::span all(room);
  std::byte kind{};
  while (ReadBare(socket, {&kind, 1})) {
    const std::size_t bytes = kind == std::byte{'F'}   ? kFrameBytes
                              : kind == std::byte{'L'} ? kLettersTogether * kLetterBytes
                                                       : kLetterBytes;
    if (!ReadBare(socket, all.first(bytes))) return;
    if (kind == kEcho) WriteBare(socket, all.first(bytes));
  }
}

Figures MeasureBare(const std::string& address, const Settings& settings) {
  const FileDescriptor socket = ConnectTcpSocket(address, Deadline::After(kPatience));
  SetBlocking(socket);
  const Bytes question(1 + kLetterBytes, kEcho);
  Bytes answer(kLetterBytes);
  const auto ask = [&] {
    WriteBare(socket, question);
    if (!ReadBare(socket, answer)) throw Unavailable("the other end has gone");
  };
  std::vector<double> times;
  for (Stopwatch all; all.seconds() < settings.seconds;) {
    const Stopwatch one;
    ask();
    times.push_back(one.seconds() * 1e6);
  }
  Figures figures{Quantile(times, .5), Quantile(times, .99), Quantile(times, .5)};
  for (const auto& [kind, bytes, place, unit] :
       {std::tuple(std::byte{'L'}, kLettersTogether * kLetterBytes, 3U, 1. / kLetterBytes),
        std::tuple(std::byte{'F'}, kFrameBytes, 4U, 1e-9)}) {
    Bytes frame(1 + bytes);
    frame[0] = kind;
    const Stopwatch watch;
    double count = 0;
    for (; watch.seconds() < settings.seconds; count += static_cast<double>(bytes)) {
      WriteBare(socket, frame);
    }
    ask();
    figures[place] = count * unit / watch.seconds();
  }
  return figures;
}

// ---- Both in turn.

// Runs `serve` in a process of its own, which tells its address, and `measure` in another.
template <typename Serve, typename Measure>
Figures InTwoProcesses(Serve serve, Measure measure) {
  std::array<int, 2> pipes{};
  if (pipe(pipes.data()) != 0) throw FromErrno("cannot make a pipe", errno);
  const FileDescriptor in(pipes[0]);
  const FileDescriptor out(pipes[1]);
  const auto start = [](auto work) {
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    _exit(0);
  };
  const pid_t server = start([&] { serve(out); });
  std::array<char, 64> address{};
  if (read(in.get(), address.data(), address.size()) <= 0) throw Unavailable("no server");
  const pid_t client = start([&] {
    const Figures figures = measure(std::string(address.data()));
    WriteAll(out, std::as_bytes(std::span(figures)), "a pipe");
  });
  int status = 0;
  waitpid(client, &status, 0);
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  if (status != 0) throw Unavailable("the measuring process ended with status {}", status);
  Figures figures{};
  if (read(in.get(), figures.data(), sizeof figures) != sizeof figures) {
    throw Unavailable("no figures");
  }
  return figures;
}

void Tell(const FileDescriptor& out, const std::string& address) {
  WriteAll(out, std::as_bytes(std::span(address.c_str(), address.size() + 1)), "a pipe");
}

Figures RunStreams(const Settings& settings) {
  return InTwoProcesses(
      [&](const FileDescriptor& out) {
        Echoer echoer;
        PeerStreams streams(OptionsOf(1, settings.tls));
        Tell(out, streams.Listen("127.0.0.1:0", echoer));
        for (;;) pause();
      },
      [&](const std::string& address) { return MeasureStreams(address, settings); });
}

Figures RunBare(const Settings& settings) {
  return InTwoProcesses(
      [](const FileDescriptor& out) {
        const ListeningTcpSocket listening("127.0.0.1:0");
        SetBlocking(listening.descriptor());
        Tell(out, listening.address());
        const std::optional<FileDescriptor> come = listening.Accept();
        SetBlocking(*come);
        EchoBare(*come);
        for (;;) pause();
      },
      [&](const std::string& address) { return MeasureBare(address, settings); });
}

std::string Spread(const std::vector<Figures>& runs, std::size_t column, double unit) {
  std::vector<double> values;
  for (const Figures& run : runs) values.push_back(run[column] * unit);
  std::sort(values.begin(), values.end());
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", values[values.size() / 2], values.front(),
                     values.back());
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Streams between two nodes on loopback.");
  app.add_option("--seconds", settings.seconds, "of each figure and turn");
  app.add_option("--turns", settings.turns, "of which medians are shown");
  app.add_option("--certificate", settings.tls.certificate, "for TLS");
  app.add_option("--key", settings.tls.key, "for TLS");
  app.add_option("--authorities", settings.tls.authorities, "for TLS");
  CLI11_PARSE(app, argc, argv);
  std::vector<Figures> streams;
  std::vector<Figures> bare;
  for (int turn = 0; turn < settings.turns; ++turn) {
    bare.push_back(RunBare(settings));
    streams.push_back(RunStreams(settings));
  }
  fmt::print(
      "| stream | echo p50, us | p99, us | p50 by another thread | M letters/s | GB/s |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const auto& [name, runs] : {std::pair("bare socket", bare), {"between nodes", streams}}) {
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", name, Spread(runs, 0, 1), Spread(runs, 1, 1),
               Spread(runs, 2, 1), Spread(runs, 3, 1e-6), Spread(runs, 4, 1));
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_runtime_peer_streams", menger::bench::Main, argc, argv);
}
