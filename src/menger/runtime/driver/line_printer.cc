#include "menger/runtime/driver/line_printer.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "menger/base/clock.h"
#include "menger/runtime/driver/show_line.h"

namespace menger {
namespace {

constexpr std::size_t kWaitingBytesMax = std::size_t{1} << 20;
constexpr std::size_t kBytesAtOnce = std::size_t{64} << 10;
constexpr std::chrono::nanoseconds kLastWords = std::chrono::milliseconds(500);

}  // namespace

std::string ShortName(const NodeId& node) {
  constexpr std::size_t kDigits = 8;
  return ToString(node).substr(0, kDigits);
}

LinePrinter::LinePrinter(const RuntimeOptions& options,
                         std::function<std::string(const NodeId&)> name_of)
    : options_(options),
      name_of_(std::move(name_of)),
      lines_(kWaitingBytesMax),
      thread_({.name = "workers' lines"}, [this] { Run(); }) {}

LinePrinter::~LinePrinter() {
  {
    const std::lock_guard lock(mutex_);
    closes_at_ = MonotonicNanoseconds() + kLastWords.count();
  }
  changed_.notify_all();
}

void LinePrinter::Add(std::vector<DistantLine> lines) {
  {
    const std::lock_guard lock(mutex_);
    for (DistantLine& line : lines) lines_.Add(std::move(line));
  }
  changed_.notify_all();
}

void LinePrinter::Run() {
  for (;;) {
    std::vector<DistantLine> lines;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closes_at_ != 0 || !lines_.empty(); });
      const bool late = closes_at_ != 0 && MonotonicNanoseconds() > closes_at_;
      if (lines_.empty() || late) return;
      lines = lines_.Take(kBytesAtOnce);
    }
    node_ = {};  // It may be called otherwise by now.
    for (const DistantLine& line : lines) Show(line);
  }
}

void LinePrinter::Show(const DistantLine& line) {
  if (node_ == NodeId() || node_ != line.node) {
    node_ = line.node;
    node_name_ = node_ == NodeId() ? "" : name_of_(node_);
  }
  if (line.left_out == 0) {
    return ShowLine(options_, {.worker = line.worker,
                               .name = line.name,
                               .process = line.process,
                               .node = node_name_,
                               .text = line.text});
  }
  const std::string text = fmt::format(
      "{} lines of workers were left out: more is printed than can be shown", line.left_out);
  ShowLine(options_, {.name = "worker", .node = node_name_, .text = text});
}

}  // namespace menger
