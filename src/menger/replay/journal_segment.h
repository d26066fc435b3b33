#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/base/files.h"

namespace menger {

// What a frame of a journal holds.
enum class FrameKind : std::uint32_t {
  kHead = 1,   // The first of a segment: names of the tables, see EncodeHead.
  kRows = 2,   // Rows of chunks, see JournalRows.
  kGroup = 3,  // What changed in all tables, see JournalGroup: it counts whole or not at all.
  kMark = 4,   // Nothing: it tells that what is before it had been synced.
  kEnd = 5,    // Nothing: the segment was finished.
};

// Writes a segment of a journal: a file of frames, each with its length and a checksum. One thread.
class SegmentWriter {
 public:
  // Throws FailedPrecondition if there is such a file. `number` is of the segment.
  SegmentWriter(std::string path, std::uint64_t number);
  // Goes on with a file of which only the first `bytes` are kept.
  SegmentWriter(std::string path, std::uint64_t number, std::uint64_t bytes);

  // When it returns, the frame outlives the process, though not the machine's power.
  void Add(FrameKind kind, std::span<const std::byte> payload);

  // When they return, everything added outlives the power too. Nothing can be added after End.
  void Sync();
  void End();

  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::string path_;
  const std::uint64_t number_;
  FileDescriptor file_;
  std::uint64_t bytes_ = 0;
  std::uint64_t synced_ = 0;  // Of bytes_.
  bool is_dirty_ = false;     // Something but marks was added since.
};

// Reads a segment from its begin. One thread.
//
// A process that was killed, or a machine that lost its power, leaves a tail of which anything may
// be missing or wrong. Every frame tells how much of the file had been synced before it was
// written, so such a tail, which is no more than an end, is told from damage to what was safe,
// unless nothing whole follows that.
class SegmentReader {
 public:
  SegmentReader(std::string path, std::uint64_t number);

  struct Frame {
    FrameKind kind;
    std::uint64_t offset;                // Of the payload, in the file.
    std::span<const std::byte> payload;  // Until the next call.
  };
  // Nothing at the end of the whole frames. Throws DataLoss that names the file and the byte if
  // what cannot be read had been synced.
  std::optional<Frame> Next();

  bool ended() const { return ended_; }          // The last frame was kEnd.
  std::uint64_t end() const { return offset_; }  // Of the frames so far.
  const std::string& path() const { return path_; }

 private:
  struct Header;
  bool ReadAt(std::uint64_t offset, Header& header);
  std::uint64_t SyncedByLaterFrames();

  const std::string path_;
  const std::uint64_t number_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
  std::vector<std::byte> payload_;

  friend class SegmentWriter;
};

// Cuts the tail off that a killed process left, and ends the segment, so that another may follow
// it. Does nothing to one that has ended. Throws as SegmentReader::Next.
void EndSegment(const std::string& path, std::uint64_t number);

}  // namespace menger
