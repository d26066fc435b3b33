#include "menger/runtime/driver/show_line.h"

#include <fmt/format.h>

#include <cstdio>

#include "menger/base/status_line.h"

namespace menger {

void ShowLine(const RuntimeOptions& options, const WorkerLine& line) {
  if (options.on_line) return options.on_line(line);
  const AboveStatusLine above;
  if (!options.line_prefix) {
    fmt::print(stderr, "{}\n", line.text);
  } else if (line.process == 0 && !line.node.empty()) {
    fmt::print(stderr, "(node={}) {}\n", line.node, line.text);
  } else if (line.process == 0) {
    fmt::print(stderr, "({}) {}\n", line.name, line.text);
  } else if (line.node.empty()) {
    fmt::print(stderr, "({} pid={}) {}\n", line.name, line.process, line.text);
  } else {
    fmt::print(stderr, "({} pid={}, node={}) {}\n", line.name, line.process, line.node, line.text);
  }
}

}  // namespace menger
