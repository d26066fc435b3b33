#include "menger/runtime/lineage_log.h"

#include <fmt/format.h>

#include <mutex>
#include <unordered_set>
#include <utility>

#include "menger/runtime/lineage_segment.h"

namespace menger {
namespace {

constexpr std::ptrdiff_t kFlushesMax = 4;
constexpr int kPageSegments = 4;

std::uint64_t BytesOf(std::size_t specification) {
  return LineageSegmentWriter::kItemBytes + specification;
}

}  // namespace

struct LineageLog::Answers {
  struct Answer {
    std::uint32_t segment = 0;
    std::optional<Error> error;
  };
  std::mutex mutex;
  std::vector<Answer> answers;  // Guarded by mutex.
};

LineageLog::LineageLog(ControlStore& store, LineageLogOptions options)
    : store_(store), options_(std::move(options)), answers_(std::make_shared<Answers>()) {}

// ---- Specifications

LineageEntry LineageLog::Append(const Id& id, std::span<const std::byte> specification) {
  if (specification.size() > kLineageBytesMax) {
    throw InvalidArgument("the specification of task {} has {} bytes; it may have {}", ToString(id),
                          specification.size(), kLineageBytesMax);
  }
  std::uint32_t index = free_slot_;
  if (index != kNone) {
    free_slot_ = slots_[index].next;
  } else {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  Slot& slot = slots_[index];
  slot.id = id;
  slot.data = specification.data();
  slot.bytes = static_cast<std::uint32_t>(specification.size());
  slot.segment = kNone;
  Link(index, unwritten_);
  ++appended_;
  ++counts_.alive;
  ++counts_.unwritten;
  return index;
}

void LineageLog::Forget(LineageEntry entry) {
  Slot& slot = slots_[entry];
  if (slot.segment == kNone) {
    Unlink(slot, unwritten_);
    --counts_.unwritten;
  } else {
    Segment& segment = segments_[slot.segment];
    Unlink(slot, segment.first);
    segment.alive_bytes -= BytesOf(slot.bytes);
    if (!segment.is_sparse && 2 * segment.alive_bytes < segment.bytes) {
      segment.is_sparse = true;
      sparse_.push_back(slot.segment);
    }
  }
  slot.next = free_slot_;
  free_slot_ = entry;
  --counts_.alive;
}

void LineageLog::Link(std::uint32_t slot, std::uint32_t& first) {
  slots_[slot].previous = kNone;
  slots_[slot].next = first;
  if (first != kNone) slots_[first].previous = slot;
  first = slot;
}

void LineageLog::Unlink(const Slot& slot, std::uint32_t& first) {
  (slot.previous != kNone ? slots_[slot.previous].next : first) = slot.next;
  if (slot.next != kNone) slots_[slot.next].previous = slot.previous;
}

// ---- Segments

void LineageLog::Flush() {
  TakeAnswers();
  if (std::ssize(flushes_) < kFlushesMax) {
    MoveSparse();
    BeginFlush();
  }
  Send();
  TakeAnswers();
}

void LineageLog::Poll() {
  TakeAnswers();
  Send();
  TakeAnswers();
}

// What is alive in sparse segments is to be written with the flush that is about to begin.
void LineageLog::MoveSparse() {
  std::vector<std::uint32_t> still_writing;
  for (const std::uint32_t index : sparse_) {
    Segment& segment = segments_[index];
    if (segment.state == Segment::State::kWriting) {
      still_writing.push_back(index);
      continue;
    }
    if (segment.first == kNone) {
      Delete(index);
      continue;
    }
    while (segment.first != kNone) {
      const std::uint32_t slot = segment.first;
      Unlink(slots_[slot], segment.first);
      slots_[slot].segment = kNone;
      Link(slot, unwritten_);
      ++counts_.unwritten;
    }
    segment.state = Segment::State::kMoved;
    segment.flush = ended_ + flushes_.size() + 1;
    moved_.push_back(index);
  }
  sparse_ = std::move(still_writing);
}

void LineageLog::BeginFlush() {
  flushes_.push_back({.appended = appended_});
  const std::uint64_t flush = ended_ + flushes_.size();
  while (unwritten_ != kNone) WriteSegment(flush);
}

// Takes the next of what is unwritten.
void LineageLog::WriteSegment(std::uint64_t flush) {
  const std::uint32_t index = NewSegment();
  Segment& segment = segments_[index];
  LineageSegmentWriter writer(options_.build);
  while (unwritten_ != kNone && writer.size() < options_.segment_bytes) {
    const std::uint32_t slot = unwritten_;
    writer.Add(slots_[slot].id, {slots_[slot].data, slots_[slot].bytes});
    segment.alive_bytes += BytesOf(slots_[slot].bytes);
    Unlink(slots_[slot], unwritten_);
    slots_[slot].segment = index;
    Link(slot, segment.first);
    --counts_.unwritten;
  }
  segment.state = Segment::State::kWriting;
  segment.flush = flush;
  segment.number = ++segment_number_;
  segment.bytes = writer.size();
  segment.value = std::move(writer).Finish();
  ++counts_.segments;
  counts_.stored_bytes += segment.bytes;
  counts_.written_bytes += segment.bytes;
  ++flushes_.back().segments;
  to_send_.push_back(index);
}

std::uint32_t LineageLog::NewSegment() {
  std::uint32_t index = static_cast<std::uint32_t>(segments_.size());
  if (free_segments_.empty()) {
    segments_.emplace_back();
  } else {
    index = free_segments_.back();
    free_segments_.pop_back();
  }
  segments_[index] = {.first = kNone};
  return index;
}

void LineageLog::Delete(std::uint32_t segment) {
  segments_[segment].state = Segment::State::kDeleting;
  to_send_.push_back(segment);
}

// ---- The store

void LineageLog::Send() {
  if (to_send_.empty()) return;
  std::vector<StoreOperation> batch;
  for (const std::uint32_t index : to_send_) {
    const Segment& segment = segments_[index];
    std::string key = fmt::format("{}{:016x}", options_.prefix, segment.number);
    batch.push_back(segment.state == Segment::State::kWriting
                        ? StoreOperation::Put(StoreTable::kLineage, std::move(key), segment.value)
                        : StoreOperation::Delete(StoreTable::kLineage, std::move(key)));
  }
  store_.Submit(
      std::move(batch), Deadline::After(options_.deadline),
      [answers = answers_, sent = std::exchange(to_send_, {})](std::vector<StoreResult> results) {
        const std::lock_guard lock(answers->mutex);
        for (std::size_t i = 0; i < sent.size(); ++i) {
          answers->answers.push_back({.segment = sent[i], .error = std::move(results[i].error)});
        }
      });
}

void LineageLog::TakeAnswers() {
  std::vector<Answers::Answer> answers;
  {
    const std::lock_guard lock(answers_->mutex);
    answers.swap(answers_->answers);
  }
  for (Answers::Answer& answer : answers) {
    Segment& segment = segments_[answer.segment];
    if (answer.error) {  // Neither a put nor a delete does harm when it is done twice.
      last_error_ = std::move(answer.error);
      to_send_.push_back(answer.segment);
    } else if (segment.state == Segment::State::kWriting) {
      segment.state = Segment::State::kStored;
      segment.value = std::string();
      --flushes_[segment.flush - ended_ - 1].segments;
    } else {
      --counts_.segments;
      counts_.stored_bytes -= segment.bytes;
      segment.state = Segment::State::kFree;
      free_segments_.push_back(answer.segment);
    }
  }
  EndFlushes();
}

void LineageLog::EndFlushes() {
  while (!flushes_.empty() && flushes_.front().segments == 0) {
    durable_ = flushes_.front().appended;
    flushes_.pop_front();
    ++ended_;
  }
  while (!moved_.empty() && segments_[moved_.front()].flush <= ended_) {
    Delete(moved_.front());
    moved_.pop_front();
  }
}

std::vector<std::string> LoadLineage(ControlStore& store, const std::string& prefix,
                                     std::uint64_t build, Deadline deadline,
                                     const LineageVisitor& visit) {
  std::vector<std::string> keys;
  std::unordered_set<Id, IdHash> seen;  // Of a segment that was moved there may be two copies.
  std::string after;
  do {
    StorePage page = RunScan(store, StoreTable::kLineage, prefix, after, kPageSegments, deadline);
    for (StoreRecord& record : page.records) {
      try {
        ReadLineageSegment(record.value, build,
                           [&](const Id& id, std::span<const std::byte> specification) {
                             if (seen.insert(id).second) visit(id, specification);
                           });
      } catch (const Error& error) {
        throw WithContext(error, fmt::format("lineage '{}'", record.key));
      }
      keys.push_back(std::move(record.key));
    }
    after = std::move(page.next);
  } while (!after.empty());
  return keys;
}

}  // namespace menger
