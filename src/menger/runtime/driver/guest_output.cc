#include "menger/runtime/driver/guest_output.h"

#include <algorithm>

namespace menger {

void GuestOutput::Begin(WorkerIndex worker, ProgramIndex program) {
  const std::lock_guard lock(mutex_);
  programs_[worker] = program;
  Of(program);
}

void GuestOutput::End(WorkerIndex worker) {
  const std::lock_guard lock(mutex_);
  programs_.erase(worker);
}

void GuestOutput::Drop(ProgramIndex program) {
  const std::lock_guard lock(mutex_);
  output_.erase(program);
  LookWhetherAnyWaits();
}

GuestOutput::Waiting& GuestOutput::Of(ProgramIndex program) {
  const auto all = static_cast<double>(options_.waiting_bytes_max);
  return output_
      .try_emplace(program, Waiting{.lines = LineQueue<PrintedLine>(options_.waiting_bytes_max),
                                    .allowance = all})
      .first->second;
}

void GuestOutput::LookWhetherAnyWaits() {
  waiting_.store(std::ranges::any_of(output_,
                                     [](const auto& entry) {
                                       return entry.second.marked || !entry.second.lines.empty();
                                     }),
                 std::memory_order_relaxed);
}

// What comes once its program has been dropped is nobody's.
GuestOutput::Added GuestOutput::Add(WorkerIndex worker, pid_t process, std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto program = programs_.find(worker);
  if (program == programs_.end()) return Added::kNoGuest;
  const auto output = output_.find(program->second);
  if (output == output_.end()) return Added::kKept;
  LineQueue<PrintedLine>& lines = output->second.lines;
  const bool first = lines.empty();
  lines.Add({.worker = worker,
             .process = static_cast<std::uint32_t>(process),
             .text = std::string(text.substr(0, PrintedLine::kTextBytesMax))});
  waiting_.store(true, std::memory_order_relaxed);
  return first ? Added::kFirst : Added::kKept;
}

void GuestOutput::Mark(ProgramIndex program) {
  const std::lock_guard lock(mutex_);
  const auto output = output_.find(program);
  if (output == output_.end()) return;
  output->second.marked = true;
  waiting_.store(true, std::memory_order_relaxed);
}

GuestOutput::Batch GuestOutput::Take(ProgramIndex program, std::int64_t now) {
  const std::lock_guard lock(mutex_);
  const auto found = output_.find(program);
  if (found == output_.end()) return {};
  auto& [lines, marked, allowance, at, next_at] = found->second;
  if (!marked && (lines.empty() || now < next_at)) return {};
  const double earned =
      static_cast<double>(now - at) * 1e-9 * static_cast<double>(options_.second_bytes_max);
  allowance = std::min(allowance + earned, static_cast<double>(options_.waiting_bytes_max));
  at = now;
  Batch batch;
  // A few more bytes may go than may; they are missing afterwards.
  if (allowance > 0) batch.lines = lines.Take(options_.letter_bytes_max);
  for (const PrintedLine& line : batch.lines) {
    allowance -= static_cast<double>(LineQueue<PrintedLine>::BytesOf(line));
  }
  next_at = now + options_.pause;
  batch.last = marked && lines.empty();
  if (batch.last) marked = false;
  LookWhetherAnyWaits();
  return batch;
}

}  // namespace menger
