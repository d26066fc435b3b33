#include "menger/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/log_listener.h"
#include "menger/base/status_line.h"

namespace menger {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// The process has one standard error, so one logger; it is never destroyed, because threads may log
// until the end.
spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("menger", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S %L %v");
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *logger;
}

LogListener& Listener() {
  static auto* const listener = new LogListener;  // As the logger: never destroyed.
  return *listener;
}

}  // namespace

void SetUpLogging(LogLevel level) { Logger().set_level(SpdlogLevel(level)); }

void SetLogListener(LogListener listener) { Listener() = std::move(listener); }

LogLevel LogLevelFromName(const std::string& name) {
  static const std::vector<std::string> names = {"debug", "info", "warning", "error", "off"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<LogLevel>(i);
  }
  throw InvalidArgument("unknown log level '{}'{}; it must be one of {}", name,
                        DidYouMean(name, names), fmt::join(names, ", "));
}

bool IsLogged(LogLevel level) {
  return level != LogLevel::kOff && Logger().should_log(SpdlogLevel(level));
}

void LogLine(LogLevel level, std::string_view text) {
  if (!IsLogged(level)) return;
  {
    const AboveStatusLine above;
    Logger().log(SpdlogLevel(level), "{}", text);
  }
  if (Listener()) Listener()(level, text);
}

}  // namespace menger
