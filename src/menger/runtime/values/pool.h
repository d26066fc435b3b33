#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace menger {

// Records that come and go by the million: their memory is used again, never given back before the
// pool goes, and their addresses do not change. Not thread-safe.
template <typename Record>
class Pool {
 public:
  // A new record, the pool's own until it is returned.
  Record* Make() {
    if (free_.empty()) return &records_.emplace_back();
    Record* const record = free_.back();
    free_.pop_back();
    return record;
  }

  // The record becomes as new.
  void Return(Record* record) {
    *record = Record();
    free_.push_back(record);
  }

  std::size_t in_use() const { return records_.size() - free_.size(); }

  // All that were ever made, for whoever knows those in use from those that are as new.
  std::size_t size() const { return records_.size(); }
  const Record& at(std::size_t index) const { return records_[index]; }

 private:
  std::deque<Record> records_;
  std::vector<Record*> free_;
};

// A queue of records through their own `previous` and `next`: a record is in one list at most.
template <typename Record>
class IntrusiveList {
 public:
  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  Record* front() const { return first_; }
  Record* back() const { return last_; }

  void PushBack(Record* record) {
    record->previous = last_;
    record->next = nullptr;
    (last_ != nullptr ? last_->next : first_) = record;
    last_ = record;
    ++size_;
  }

  void PushFront(Record* record) {
    record->next = first_;
    record->previous = nullptr;
    (first_ != nullptr ? first_->previous : last_) = record;
    first_ = record;
    ++size_;
  }

  void Remove(Record* record) {
    (record->previous != nullptr ? record->previous->next : first_) = record->next;
    (record->next != nullptr ? record->next->previous : last_) = record->previous;
    record->previous = record->next = nullptr;
    --size_;
  }

  Record* PopFront() {
    Record* const record = first_;
    if (record != nullptr) Remove(record);
    return record;
  }

 private:
  Record* first_ = nullptr;
  Record* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace menger
