#include "menger/base/status_line.h"

#include <cstdio>

namespace menger {
namespace {

// The process has one standard error, so one such line; it is never destroyed, because threads may
// write until the end.
struct StatusLine {
  std::mutex mutex;
  std::string drawn;  // Empty: nothing.
};

StatusLine& Line() {
  static auto* const line = new StatusLine;
  return *line;
}

void Put(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

constexpr const char* kErase = "\r\033[K";

}  // namespace

void DrawStatusLine(const std::string& text) {
  const std::lock_guard lock(Line().mutex);
  Line().drawn = text;
  Put("\r" + text + "\033[K");
}

void EndStatusLine(bool keep) {
  const std::lock_guard lock(Line().mutex);
  if (Line().drawn.empty()) return;
  Line().drawn.clear();
  Put(keep ? "\n" : kErase);
}

AboveStatusLine::AboveStatusLine() : lock_(Line().mutex) {
  if (!Line().drawn.empty()) Put(kErase);
}

AboveStatusLine::~AboveStatusLine() {
  if (!Line().drawn.empty()) Put(Line().drawn);
}

}  // namespace menger
