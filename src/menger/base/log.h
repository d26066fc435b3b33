#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace menger {

// Plain lines with the time of day on standard error; any thread. Standard output stays free for
// results.
enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// What is below `level` is not written. Before the first call the level is kInfo.
void SetUpLogging(LogLevel level);

// "debug", "info", "warning", "error", "off"; throws InvalidArgument for another name.
LogLevel LogLevelFromName(const std::string& name);

bool IsLogged(LogLevel level);
void LogLine(LogLevel level, std::string_view text);

template <typename... Arguments>
void Log(LogLevel level, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (IsLogged(level)) LogLine(level, fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
void LogDebug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Log(LogLevel::kDebug, format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void LogInfo(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Log(LogLevel::kInfo, format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void LogWarning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Log(LogLevel::kWarning, format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void LogError(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Log(LogLevel::kError, format, std::forward<Arguments>(arguments)...);
}

}  // namespace menger
