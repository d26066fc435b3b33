#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "menger/base/thread.h"
#include "menger/runtime/calls/runtime_options.h"
#include "menger/runtime/driver/line_queue.h"
#include "menger/runtime/values/ids.h"

namespace menger {

// What a node is called that has no name: how its id begins.
std::string ShortName(const NodeId& node);

// What a worker of another node has printed; as PrintedLine.
struct DistantLine {
  NodeId node;
  std::string name;  // As WorkerLine's.
  int worker = -1;
  pid_t process = 0;
  std::uint64_t left_out = 0;
  std::string text;
};

// Shows what workers of other nodes print, on a thread of its own: whoever reads it may be slow,
// and nobody else waits for him. What he does not come to read is left out, and counted.
class LinePrinter {
 public:
  // `name_of`: what people call a node; on that thread.
  LinePrinter(const RuntimeOptions& options, std::function<std::string(const NodeId&)> name_of);
  // Shows what waits, for half a second at most, and for as long as one line or so is read.
  ~LinePrinter();
  LinePrinter(const LinePrinter&) = delete;
  LinePrinter& operator=(const LinePrinter&) = delete;

  void Add(std::vector<DistantLine> lines);  // Any thread; waits for nobody.

 private:
  void Run();
  void Show(const DistantLine& line);

  const RuntimeOptions options_;
  const std::function<std::string(const NodeId&)> name_of_;
  NodeId node_;            // The thread's: of the last line,
  std::string node_name_;  // and what it is called.
  std::mutex mutex_;
  std::condition_variable changed_;
  LineQueue<DistantLine> lines_;  // Guarded by mutex_.
  std::int64_t closes_at_ = 0;    // Likewise: what is not shown by then is not; 0: it goes on.
  Thread thread_;                 // The last member: it uses those above.
};

}  // namespace menger
