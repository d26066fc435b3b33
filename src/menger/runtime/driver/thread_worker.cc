#include "menger/runtime/driver/thread_worker.h"

#include <utility>

#include "menger/runtime/driver/local_node.h"
#include "menger/runtime/worker/look_around.h"

namespace menger {
namespace {

// A call that takes longer must not keep the results of others waiting.
constexpr double kBriefNanoseconds = 20'000;
constexpr std::size_t kReportsMax = 64;

class InlineStore final : public ResultStore {
 public:
  std::span<std::byte> Allocate(std::size_t bytes, ObjectValue& value) override {
    value = ObjectValue::Inline(Payload::Allocate(bytes));
    return value.payload.fill();
  }
  void Discard(const ObjectValue&) noexcept override {}
};

}  // namespace

ThreadWorker::ThreadWorker(LocalNode& node, Worker& worker)
    : node_(node),
      worker_(worker),
      thread_({.name = fmt::format("worker {}", worker.index)}, [this] { Serve(); }) {}

ThreadWorker::~ThreadWorker() {
  bell_.Advance();
  thread_.Join();
}

bool ThreadWorker::Offer(const Task& task) { return queue_.Offer(task.lease, task); }

void ThreadWorker::Interrupt(const Task& task) {
  if (running_.load(std::memory_order_acquire) == task.lease) {
    interrupted_.store(true, std::memory_order_relaxed);
  }
}

void ThreadWorker::Serve() {
  LookAround idle;
  while (!node_.stopping()) {
    const std::uint32_t seen = bell_.value();
    if (const Task* const task = queue_.Claim()) {
      Do(*task);
      idle.Reset();
      continue;
    }
    has_reports_ = false;
    // Whatever it has not told yet; that may bring new calls at once.
    node_.Work();
    if (queue_.HasMore()) continue;
    bell_.TryWaitFor(seen + 1, idle.Next());
  }
}

void ThreadWorker::Do(const Task& task) {
  if (!task.brief && has_reports_) node_.Work();
  InlineStore store;
  std::vector<std::span<const std::byte>> by_reference;
  for (const Object* const argument : std::span(task.arguments).first(task.references)) {
    by_reference.push_back(argument->value.payload.bytes());
  }
  interrupted_.store(false, std::memory_order_relaxed);
  running_.store(task.lease, std::memory_order_release);
  const LeaseNumber lease = task.lease;
  const std::int64_t began_at = MonotonicNanoseconds();
  CallOutcome outcome =
      Execute(*task.spec, task.run, by_reference, node_, this, nullptr, node_.actors(), store);
  const std::int64_t ended_at = MonotonicNanoseconds();
  const auto nanoseconds = static_cast<double>(ended_at - began_at);
  if (outcome.failed) outcome.failure.worker = thread_.name();
  std::size_t reports;
  {
    const std::lock_guard lock(reports_mutex_);
    reports_.push_back({lease, nanoseconds, ended_at, std::move(outcome)});
    reports = reports_.size();
  }
  has_reports_ = true;
  if (reports >= kReportsMax || nanoseconds > kBriefNanoseconds) node_.Work();
}

bool ThreadWorker::Drain(NodeMachine& machine) {
  {
    const std::lock_guard lock(reports_mutex_);
    if (reports_.empty()) return false;
    std::swap(reports_, delivering_);
  }
  for (Report& report : delivering_) {
    if (report.outcome.failed) {
      machine.Failed(worker_, report.lease, std::move(report.outcome.failure), report.nanoseconds,
                     report.ended_at);
    } else {
      machine.Finished(worker_, report.lease, report.outcome.results, report.nanoseconds,
                       report.ended_at);
    }
  }
  delivering_.clear();
  return true;
}

}  // namespace menger
