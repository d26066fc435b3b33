#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace menger {

// A table knows so many streams. Of more, those that inserted longest ago are forgotten.
inline constexpr std::size_t kInsertStreamsMax = 65'536;

// Up to which sequence number the items of a stream were taken. Plain bytes.
struct InsertStreamEnd {
  std::uint64_t stream = 0;
  std::uint64_t last = 0;

  bool operator==(const InsertStreamEnd&) const = default;
};

// Where the streams stand that insert into a table, in the order in which they last did.
//
// A stream that is forgotten and inserts again begins anew: what it sends again is then taken
// twice. So `streams_max` is to be more than there are writers at once, with those whose items may
// still be on their way.
//
// One thread at a time: the table's mutex guards it. Each call but the copies is O(1); a stream
// takes kStreamBytes.
class InsertStreams {
 public:
  // Entries of the list and of the map as they are allocated, and the map's buckets.
  static constexpr std::size_t kStreamBytes = 96;

  explicit InsertStreams(std::size_t streams_max = kInsertStreamsMax) : max_(streams_max) {}
  InsertStreams(const InsertStreams&) = delete;
  InsertStreams& operator=(const InsertStreams&) = delete;
  InsertStreams(InsertStreams&&) = default;
  InsertStreams& operator=(InsertStreams&&) = default;

  std::size_t size() const { return by_stream_.size(); }
  std::size_t bytes() const { return size() * kStreamBytes; }

  // The last sequence number that was taken; 0: the stream is not known.
  std::uint64_t LastOf(std::uint64_t stream) const;

  // Items up to `last` were taken; never back.
  void Advance(std::uint64_t stream, std::uint64_t last);
  void Forget(std::uint64_t stream);

  // All of them, in the order in which they last inserted; into empty ones.
  void CopyTo(std::vector<InsertStreamEnd>& ends) const;
  void Restore(std::span<const InsertStreamEnd> ends);

  // For a journal: from now on it is noted what changes, or no more.
  void Watch(bool on);
  // Appends what has changed since Watch or the last call: first streams that were forgotten, with
  // `last` 0, then those that have inserted. What was forgotten at the bound is not told: Apply is
  // told how many are left, and as here those go that inserted longest ago.
  void TakeChanges(std::vector<InsertStreamEnd>& ends);
  void Apply(std::span<const InsertStreamEnd> ends, std::size_t left);

 private:
  struct Entry {
    InsertStreamEnd end;
    bool is_changed = false;  // As are all that come after it.
  };

  void ForgetOldest(std::size_t left);

  std::size_t max_;
  bool watched_ = false;
  std::list<Entry> entries_;  // The last one inserted last.
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_stream_;
  std::vector<std::uint64_t> forgotten_;  // By Forget, while it is watched.
};

}  // namespace menger
