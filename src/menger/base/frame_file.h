#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/base/files.h"

namespace menger {

// What a frame holds. Whoever writes the file chooses all but these two.
using FrameKind = std::uint32_t;
inline constexpr FrameKind kMarkFrame = 4;  // Nothing: what is before it had been synced.
inline constexpr FrameKind kEndFrame = 5;   // Nothing: the file was finished.

// Writes a log: a file of frames, each with its length and a checksum. One thread.
class FrameFileWriter {
 public:
  // Throws FailedPrecondition if there is such a file. `number` tells the files of one log apart.
  FrameFileWriter(std::string path, std::uint64_t number, FileReaders readers = FileReaders::kAll);
  // Goes on with a file of which only the first `bytes` are kept.
  FrameFileWriter(std::string path, std::uint64_t number, std::uint64_t bytes);

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

// Reads a file of frames from its begin. One thread.
//
// A process that was killed, or a machine that lost its power, leaves a tail of which anything may
// be missing or wrong. Every frame tells how much of the file had been synced before it was
// written, so such a tail, which is no more than an end, is told from damage to what was safe,
// unless nothing whole follows that.
class FrameFileReader {
 public:
  FrameFileReader(std::string path, std::uint64_t number);

  struct Frame {
    FrameKind kind;
    std::uint64_t offset;                // Of the payload, in the file.
    std::span<const std::byte> payload;  // Until the next call.
  };
  // Nothing at the end of the whole frames. Throws DataLoss that names the file and the byte if
  // what cannot be read had been synced, FailedPrecondition for a file of another version.
  std::optional<Frame> Next();

  bool ended() const { return ended_; }          // The last frame was kEnd.
  std::uint64_t end() const { return offset_; }  // Of the frames so far.
  const std::string& path() const { return path_; }

 private:
  struct Header;
  bool ReadAt(std::uint64_t offset, Header& header);
  std::uint64_t SyncedByLaterFrames();
  void RefuseOtherVersions();

  const std::string path_;
  const std::uint64_t number_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
  std::vector<std::byte> payload_;

  friend class FrameFileWriter;
};

// Cuts the tail off that a killed process left, and ends the file, so that another may follow it.
// Does nothing to one that has ended. Throws as FrameFileReader::Next.
void EndFrameFile(const std::string& path, std::uint64_t number);

}  // namespace menger
