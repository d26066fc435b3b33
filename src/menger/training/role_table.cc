#include "menger/training/role_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "menger/base/files.h"

namespace menger {
namespace {

constexpr const char* kHeader =
    "steps,seconds,role,process,done,done_per_second,working,waiting,waits_for,restarts\n";

// What it has waited for most since then.
std::string MostWaitedFor(const RoleStatus& now, const RoleStatus& before) {
  std::string most;
  double longest = 0;
  for (const auto& [what, waited] : now.waiting_seconds) {
    const auto found = before.waiting_seconds.find(what);
    const double since = waited - (found == before.waiting_seconds.end() ? 0 : found->second);
    if (since <= longest) continue;
    longest = since;
    most = what;
  }
  return most;
}

double Share(double seconds, double of) { return of > 0 ? std::clamp(seconds / of, 0.0, 1.0) : 0; }

}  // namespace

RoleTable::RoleTable(const std::string& path) : file_(path) {
  if (file_.size() == 0) file_.Append(kHeader);
}

void RoleTable::DropAfter(std::int64_t steps, double seconds) {
  const std::string text = ReadFile(file_.path());
  std::size_t begin = text.find('\n') + 1;
  while (begin < text.size()) {
    if (std::strtoll(text.c_str() + begin, nullptr, 10) > steps) break;
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  file_.TruncateTo(begin);
  began_ = seconds;
}

void RoleTable::Write(std::int64_t steps, double seconds, const PipelineNews& news) {
  WriteLine(steps, seconds, news.learner);
  for (const RoleStatus& status : news.collectors) WriteLine(steps, seconds, status);
  for (const RoleStatus& status : news.others) WriteLine(steps, seconds, status);
}

void RoleTable::WriteLine(std::int64_t steps, double seconds, const RoleStatus& status) {
  Seen& seen = seen_.try_emplace(status.name, Seen{.seconds = began_}).first->second;
  // One made anew began to count from nothing.
  if (status.restarts != seen.status.restarts || status.done < seen.status.done) seen.status = {};
  const double since = seconds - seen.seconds;
  const double done = static_cast<double>(status.done - seen.status.done);
  file_.Append(fmt::format("{},{:.3f},{},{},{},{:.1f},{:.3f},{:.3f},{},{}\n", steps, seconds,
                           status.name, status.process, status.done, since > 0 ? done / since : 0,
                           Share(status.working_seconds - seen.status.working_seconds, since),
                           Share(status.waited() - seen.status.waited(), since),
                           MostWaitedFor(status, seen.status), status.restarts));
  seen = {.seconds = seconds, .status = status};
}

const std::string& BusyText::Of(double seconds, const PipelineNews& news) {
  const double since = seconds - seconds_;
  if (since < 1) return text_;
  double collectors = 0;
  for (const RoleStatus& status : news.collectors) collectors += status.working_seconds;
  const auto share = [&](double& before, double now, std::size_t roles) {
    const double busy = Share(now - before, since * static_cast<double>(roles));
    before = now;
    return 100 * busy;
  };
  text_ = fmt::format("busy: learner {:.0f}%", share(learner_, news.learner.working_seconds, 1));
  text_ += fmt::format(", collector{} {:.0f}%", news.collectors.size() == 1 ? "" : "s",
                       share(collectors_, collectors, news.collectors.size()));
  for (const RoleStatus& status : news.others) {
    if (status.name != "inference") continue;
    text_ += fmt::format(", inference {:.0f}%", share(inference_, status.working_seconds, 1));
  }
  seconds_ = seconds;
  return text_;
}

}  // namespace menger
