#include "menger/cli/job_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "menger/base/memory_need.h"

namespace menger {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kShortId = 8;

std::string Bytes(std::uint64_t bytes) { return MemoryText(static_cast<double>(bytes)); }

template <typename T = std::string>
T Field(const Json& object, const char* name) {
  return object.at(name).get<T>();
}

void PrintHead(const Json& status) {
  fmt::print("job {} of {}, process {}, for {:.1f} s\n", Field<std::uint64_t>(status, "job"),
             Field(status, "program"), Field<int>(status, "process"),
             Field<double>(status, "seconds"));
  const Json& tasks = status.at("tasks");
  fmt::print("tasks      {} waiting for arguments, {} ready, {} given to workers, {} kept\n",
             Field<std::uint64_t>(tasks, "waiting"), Field<std::uint64_t>(tasks, "ready"),
             Field<std::uint64_t>(tasks, "given"), Field<std::uint64_t>(tasks, "kept"));
  fmt::print("           {} finished ({:.0f} a second), {} failed, {} run again, {} rebuilt\n",
             Field<std::uint64_t>(tasks, "finished"), Field<double>(tasks, "finished_per_second"),
             Field<std::uint64_t>(tasks, "failed"), Field<std::uint64_t>(tasks, "retried"),
             Field<std::uint64_t>(tasks, "rebuilt"));
  fmt::print("actors     {}; {} made again, {} checkpoints, {} of their calls replayed\n",
             Field<std::uint64_t>(status, "actor_count"),
             Field<std::uint64_t>(status, "actors_restarted"),
             Field<std::uint64_t>(status, "checkpoints"), Field<std::uint64_t>(status, "replayed"));
  fmt::print("objects    {}; {} of {} in shared memory; {} on the disk; {} of lineage\n",
             Field<std::uint64_t>(status, "objects"),
             Bytes(Field<std::uint64_t>(status, "store_bytes")),
             Bytes(Field<std::uint64_t>(status, "store_bytes_max")),
             Bytes(Field<std::uint64_t>(status, "disk_bytes")),
             Bytes(Field<std::uint64_t>(status, "lineage_bytes")));
  fmt::print("resources ");
  for (const Json& resource : status.at("resources")) {
    fmt::print(" {}: {:g} of {:g} free", Field(resource, "name"), Field<double>(resource, "free"),
               Field<double>(resource, "total"));
  }
  fmt::print("\n");
  if (const auto groups = Field<std::uint64_t>(status, "placement_groups"); groups > 0) {
    fmt::print("           placement groups: {}, of which {} wait\n", groups,
               Field<std::uint64_t>(status, "placement_groups_waiting"));
  }
}

// What a worker does, and for whom.
std::string WorkText(const Json& worker) {
  std::vector<std::string> words;
  const std::string runs = Field(worker, "running");
  words.push_back(runs.empty() ? "-" : runs);
  if (!runs.empty()) {
    words.push_back(fmt::format("{:.3f} s{}", Field<double>(worker, "running_seconds"),
                                Field<bool>(worker, "blocked") ? ", waits for objects" : ""));
  }
  const auto add = [&](const char* field, const char* before, std::size_t letters) {
    const std::string text = Field(worker, field).substr(0, letters);
    if (!text.empty()) words.push_back(fmt::format("({}{})", before, text));
  };
  add("actor", "home of ", std::string::npos);
  add("node", "at node ", kShortId);
  add("lent_to", "lent to ", kShortId);
  return fmt::format("{}", fmt::join(words, "  "));
}

void PrintWorkers(const Json& workers) {
  fmt::print("\nworker  process  memory      queued  runs\n");
  for (const Json& worker : workers) {
    const auto memory = Field<std::uint64_t>(worker, "memory_bytes");
    const auto process = Field<int>(worker, "process");  // 0: of another node.
    fmt::print("{:<6}  {:<7}  {:<10}  {:<6}  {}\n", Field<int>(worker, "index"),
               process == 0 ? "-" : std::to_string(process), memory == 0 ? "-" : Bytes(memory),
               Field<std::uint64_t>(worker, "queued"), WorkText(worker));
  }
}

void PrintActors(const Json& status) {
  const Json& actors = status.at("actors");
  if (actors.empty()) return;
  fmt::print("\nactor                             state       worker  waiting  restarts  name\n");
  for (const Json& actor : actors) {
    const int worker = Field<int>(actor, "worker");
    fmt::print("{}  {:<10}  {:<6}  {:<7}  {:<8}  {}\n", Field(actor, "id"), Field(actor, "state"),
               worker == 0 ? "-" : std::to_string(worker), Field<std::uint64_t>(actor, "waiting"),
               fmt::format("{}, {} left", Field<int>(actor, "restarts"),
                           Field<int>(actor, "restarts_left")),
               Field(actor, "name"));
  }
  const auto count = Field<std::size_t>(status, "actor_count");
  if (count > actors.size()) fmt::print("... and {} more\n", count - actors.size());
}

void PrintLosses(const Json& losses) {
  if (losses.empty()) return;
  fmt::print("\nlost\n");
  for (const Json& loss : losses) {
    const auto times = Field<std::uint64_t>(loss, "times");
    fmt::print("  {:.1f} s ago{}: {}\n", Field<double>(loss, "seconds_ago"),
               times > 1 ? fmt::format(", the last of {}", times) : "", Field(loss, "text"));
  }
}

}  // namespace

std::string ShortId(const std::string& id) { return id.substr(0, kShortId); }

void PrintJob(const Json& status) {
  PrintHead(status);
  PrintWorkers(status.at("workers"));
  PrintActors(status);
  PrintLosses(status.at("losses"));
}

}  // namespace menger
