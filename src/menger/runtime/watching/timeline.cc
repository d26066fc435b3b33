#include "menger/runtime/watching/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "menger/runtime/values/ids.h"

namespace menger {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 16;

class TimelineWriter {
 public:
  TimelineWriter(std::span<const std::string> names, const WorkerPlaces& places,
                 FunctionRef<void(std::string_view)> write)
      : write_(write) {
    for (const std::string& name : names) quoted_.push_back(Quote(name));
    for (const auto& [worker, place] : places) processes_.try_emplace(place, 0);
    int process = kOwnProcess;
    for (auto& [place, number] : processes_) number = ++process;
    for (const auto& [worker, place] : places) elsewhere_[worker] = processes_.at(place);
  }

  void Write(std::span<const NodeEvent> events) {
    for (const NodeEvent& event : events) {
      origin_ = std::min(origin_, event.time - event.duration);
      if (EndsTask(event.kind)) ended_.insert(Run(event));
    }
    Add("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    Add(R"({{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{{"name":"menger node"}}}})");
    for (const auto& [place, number] : processes_) {
      Add(",\n"
          R"({{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":{}}}}})",
          number, Quote(place));
    }
    WriteWorkers(events);
    for (const NodeEvent& event : events) WriteEvent(event);
    Add("\n]}}\n");
    write_({text_.data(), text_.size()});
  }

 private:
  static constexpr int kOwnProcess = 1;

  static std::string Quote(const std::string& text) {
    using Json = nlohmann::json;
    return Json(text).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  }

  int ProcessOf(std::uint32_t worker) const {
    const auto found = elsewhere_.find(worker);
    return found != elsewhere_.end() ? found->second : kOwnProcess;
  }

  // One run of a task.
  static std::uint64_t Run(const NodeEvent& event) { return event.subject ^ event.attempt; }

  template <typename... Arguments>
  void Add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    if (text_.size() < kPieceBytes) return;
    write_({text_.data(), text_.size()});
    text_.clear();
  }

  void WriteWorkers(std::span<const NodeEvent> events) {
    std::set<std::uint32_t> workers;
    for (const NodeEvent& event : events) workers.insert(event.worker);
    for (const std::uint32_t worker : workers) {
      const std::string name = worker == 0 ? "node" : fmt::format("worker {}", worker);
      Add(",\n"
          R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
          ProcessOf(worker), worker, name);
    }
  }

  void WriteEvent(const NodeEvent& event) {
    const std::string_view kind = NodeEventKindName(event.kind);
    std::string_view name = R"("")";
    if (event.name < quoted_.size()) name = quoted_[event.name];
    if (EndsTask(event.kind)) {
      WriteHead(event, 'X', name, event.time - event.duration);
      Add(R"(,"dur":{:.3f},"args":{{)", Microseconds(event.duration));
    } else if (event.kind == NodeEventKind::kTaskStarted) {
      if (ended_.contains(Run(event))) return;
      WriteHead(event, 'B', name, event.time);
      Add(R"(,"args":{{)");
    } else {
      WriteHead(event, 'i', fmt::format(R"("{}")", kind), event.time);
      Add(R"(,"s":"t","args":{{"name":{},)", name);
    }
    Add(R"("id":"{}","attempt":{}}}}})", ToString(Id{event.subject_high, event.subject}),
        event.attempt);
  }

  void WriteHead(const NodeEvent& event, char phase, std::string_view title, std::int64_t time) {
    Add(",\n"
        R"({{"name":{},"ph":"{}","pid":{},"tid":{},"ts":{:.3f},"cat":"{}")",
        title, phase, ProcessOf(event.worker), event.worker, Microseconds(time - origin_),
        NodeEventKindName(event.kind));
  }

  static double Microseconds(std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-3;
  }

  FunctionRef<void(std::string_view)> write_;
  std::vector<std::string> quoted_;                   // Names as JSON.
  std::map<std::string, int> processes_;              // Numbers of other nodes in the trace,
  std::unordered_map<std::uint32_t, int> elsewhere_;  // and that of each of their workers.
  std::int64_t origin_ = INT64_MAX;
  std::unordered_set<std::uint64_t> ended_;  // Runs of which the start need not be shown.
  fmt::memory_buffer text_;
};

}  // namespace

void WriteTimeline(std::span<const NodeEvent> events, std::span<const std::string> names,
                   const WorkerPlaces& places, FunctionRef<void(std::string_view)> write) {
  TimelineWriter(names, places, write).Write(events);
}

}  // namespace menger
