#include "menger/training/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "menger/base/log.h"
#include "menger/base/status_line.h"

namespace menger {
namespace {

constexpr int kBarCells = 24;
constexpr int kBarCellsMin = 8;
constexpr int kBarEnds = 3;  // Its brackets, and the space behind it.

std::string RateText(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f}M", rate / 1e6);
  if (rate >= 1e4) return fmt::format("{:.0f}k", rate / 1e3);
  if (rate >= 1e3) return fmt::format("{:.1f}k", rate / 1e3);
  return fmt::format("{:.0f}", rate);
}

double Share(const ProgressState& state) {
  if (state.steps_total <= 0) return 0;
  return std::min(1.0, static_cast<double>(state.steps) / static_cast<double>(state.steps_total));
}

// What may be left out.
struct Shown {
  bool roles = false;
  bool evaluation = false;
  bool rate = false;
  bool steps = false;
};

std::string TextWith(const ProgressState& state, const Shown& shown) {
  const double percent = std::floor(100 * Share(state));
  std::string text =
      shown.steps ? fmt::format("steps {}/{} ({:.0f}%)", state.steps, state.steps_total, percent)
                  : fmt::format("{:.0f}%", percent);
  if (shown.rate && !std::isnan(state.steps_per_second)) {
    text += fmt::format(", {} steps/s", RateText(state.steps_per_second));
  }
  if (!std::isnan(state.return_mean)) text += ", return " + NumberText(state.return_mean);
  if (shown.evaluation && !std::isnan(state.evaluation_mean)) {
    text += ", evaluation " + NumberText(state.evaluation_mean);
  }
  if (shown.roles && !state.roles.empty()) text += ", " + state.roles;
  if (!std::isnan(state.seconds_left)) {
    text += fmt::format(", {} left", DurationText(state.seconds_left));
  }
  return text;
}

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

std::string NumberText(double value, double scale) {
  const double size = std::abs(scale);
  const double before = size > 0 && std::isfinite(size) ? std::floor(std::log10(size)) : 3;
  return fmt::format("{:.{}f}", value, static_cast<int>(std::clamp(3 - before, 1.0, 9.0)));
}

std::string DurationText(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e9));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string ProgressText(const ProgressState& state) {
  return TextWith(state, {.roles = true, .evaluation = true, .rate = true, .steps = true});
}

std::string ProgressBar(const ProgressState& state, int width) {
  std::string text;
  for (const Shown& shown : {Shown{.roles = true, .evaluation = true, .rate = true, .steps = true},
                             Shown{.evaluation = true, .rate = true, .steps = true},
                             Shown{.rate = true, .steps = true}, Shown{.steps = true}, Shown{}}) {
    text = TextWith(state, shown);
    if (static_cast<int>(text.size()) + kBarCellsMin + kBarEnds <= width) break;
  }
  const int room = width - kBarEnds - static_cast<int>(text.size());
  const int cells = std::clamp(room, kBarCellsMin, kBarCells);
  const int full = static_cast<int>(Share(state) * cells);
  const std::string line =
      fmt::format("[{}{}] {}", std::string(full, '#'), std::string(cells - full, '.'), text);
  return line.substr(0, static_cast<std::size_t>(std::max(width, 0)));
}

ProgressReporter::ProgressReporter(bool terminal, double interval_seconds, bool silent)
    : terminal_(terminal),
      interval_seconds_(interval_seconds > 0 ? interval_seconds : (terminal ? 0.1 : 5.0)),
      silent_(silent) {}

ProgressReporter ProgressReporter::ForStandardError() {
  return ProgressReporter(isatty(STDERR_FILENO) == 1);
}

ProgressReporter ProgressReporter::Silent() {
  return ProgressReporter(/*terminal=*/false, /*interval_seconds=*/0, /*silent=*/true);
}

ProgressReporter::~ProgressReporter() {
  if (terminal_) EndStatusLine(/*keep=*/false);
}

bool ProgressReporter::IsTime() {
  if (since_last_.seconds() < interval_seconds_) return false;
  since_last_.Restart();
  return true;
}

void ProgressReporter::Draw(const ProgressState& state) {
  if (!terminal_) {
    LogInfo("{}", ProgressText(state));
    return;
  }
  // The last column stays free: some terminals wrap when it is written.
  DrawStatusLine(ProgressBar(state, TerminalWidth() - 1));
}

void ProgressReporter::Update(const ProgressState& state) {
  const std::lock_guard lock(mutex_);
  if (!silent_ && IsTime()) Draw(state);
}

void ProgressReporter::Say(const std::string& line) { LogInfo("{}", line); }

void ProgressReporter::Pass(const std::string& line) {
  const AboveStatusLine above;
  std::fprintf(stderr, "%s\n", line.c_str());
}

void ProgressReporter::Finish(const ProgressState& state) {
  const std::lock_guard lock(mutex_);
  if (silent_) return;
  Draw(state);
  if (terminal_) EndStatusLine(/*keep=*/true);
}

}  // namespace menger
