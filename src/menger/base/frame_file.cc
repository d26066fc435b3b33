#include "menger/base/frame_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kMagic = 0x314c4e4a52474e4d;  // "MNGRJNL1": the last is the version.
constexpr char kVersion = '1';
constexpr std::size_t kScanBytes = std::size_t{1} << 20;

}  // namespace

// Before each payload. Plain bytes.
struct FrameFileReader::Header {
  std::uint64_t magic = kMagic;
  std::uint64_t number = 0;  // Of the file,
  std::uint64_t offset = 0;  // and where in it this lies: a frame is valid nowhere else.
  std::uint64_t synced = 0;  // Bytes of the file that were on the disk before.
  std::uint64_t size = 0;    // Of the payload.
  FrameKind kind = kMarkFrame;
  std::uint32_t unused = 0;
  std::uint64_t checksum = 0;  // XXH3 of the payload, seeded with that of all above.

  std::uint64_t Checksum(std::span<const std::byte> payload) const {
    const std::uint64_t seed = XXH3_64bits(this, sizeof(Header) - sizeof checksum);
    return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
  }
};

// ---- FrameFileWriter

FrameFileWriter::FrameFileWriter(std::string path, std::uint64_t number, FileReaders readers)
    : path_(std::move(path)), number_(number) {
  const mode_t mode = readers == FileReaders::kItsUser ? 0600 : 0666;
  file_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file_.valid()) throw FromErrno(fmt::format("cannot make '{}'", path_), errno);
}

FrameFileWriter::FrameFileWriter(std::string path, std::uint64_t number, std::uint64_t bytes)
    : path_(std::move(path)), number_(number), bytes_(bytes), is_dirty_(true) {
  file_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file_.valid() || ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) {
    throw FromErrno(fmt::format("cannot go on with '{}'", path_), errno);
  }
}

void FrameFileWriter::Add(FrameKind kind, std::span<const std::byte> payload) {
  FrameFileReader::Header header{
      .number = number_, .offset = bytes_, .synced = synced_, .size = payload.size(), .kind = kind};
  header.checksum = header.Checksum(payload);
  WriteAll(file_, std::as_bytes(std::span(&header, 1)), path_);
  WriteAll(file_, payload, path_);
  bytes_ += sizeof header + payload.size();
  is_dirty_ |= kind != kMarkFrame;
}

void FrameFileWriter::Sync() {
  if (!is_dirty_) return;
  SyncFile(file_, path_);
  synced_ = bytes_;
  is_dirty_ = false;
  Add(kMarkFrame, {});
}

void FrameFileWriter::End() {
  Sync();
  Add(kEndFrame, {});
  SyncFile(file_, path_);
  file_.Close();
}

// ---- FrameFileReader

FrameFileReader::FrameFileReader(std::string path, std::uint64_t number)
    : path_(std::move(path)),
      number_(number),
      file_(OpenForReading(path_)),
      size_(FileSize(file_, path_)) {}

// Whether there is a whole frame; its payload is then in payload_.
bool FrameFileReader::ReadAt(std::uint64_t offset, Header& header) {
  if (size_ - offset < sizeof header) return false;
  ReadAllAt(file_, offset, std::as_writable_bytes(std::span(&header, 1)), path_);
  if (header.magic != kMagic || header.number != number_ || header.offset != offset ||
      header.size > size_ - offset - sizeof header) {
    return false;
  }
  payload_.resize(header.size);
  ReadAllAt(file_, offset + sizeof header, payload_, path_);
  return header.Checksum(payload_) == header.checksum;
}

std::optional<FrameFileReader::Frame> FrameFileReader::Next() {
  Header header;
  if (offset_ == size_) return std::nullopt;
  if (ended_ || !ReadAt(offset_, header)) {
    const std::uint64_t synced = SyncedByLaterFrames();
    if (ended_ || synced > offset_) {
      throw DataLoss("'{}' is damaged at byte {}: {}", path_, offset_,
                     ended_ ? "it had ended there"
                            : fmt::format("{} bytes of it had been on the disk", synced));
    }
    if (offset_ == 0) RefuseOtherVersions();
    return std::nullopt;
  }
  const std::uint64_t payload = offset_ + sizeof header;
  offset_ = payload + header.size;
  ended_ = header.kind == kEndFrame;
  return Frame{.kind = header.kind, .offset = payload, .payload = payload_};
}

// Of a file that has no whole frame of this version: it would seem empty.
void FrameFileReader::RefuseOtherVersions() {
  std::uint64_t magic = 0;
  if (size_ < sizeof magic) return;
  ReadAllAt(file_, 0, std::as_writable_bytes(std::span(&magic, 1)), path_);
  const auto version = static_cast<char>(magic >> 56);
  const bool is_ours = (magic ^ kMagic) << 8 == 0;
  if (!is_ours || version == kVersion || version < '0' || version > '9') return;
  throw FailedPrecondition("'{}' is a log of format {}; this program reads {}", path_, version,
                           kVersion);
}

// The most that a whole frame behind offset_ says; 0 if there is none.
std::uint64_t FrameFileReader::SyncedByLaterFrames() {
  std::uint64_t synced = 0;
  std::vector<std::byte> window;
  const auto magic = std::as_bytes(std::span(&kMagic, 1));
  std::uint64_t at = offset_ + 1;
  while (size_ - offset_ > sizeof(Header) && at < size_ - sizeof(Header) + 1) {
    window.resize(std::min<std::uint64_t>(kScanBytes, size_ - at));
    ReadAllAt(file_, at, window, path_);
    const auto found = std::search(window.begin(), window.end(), magic.begin(), magic.end());
    if (found == window.end()) {
      at += window.size() - (window.size() == size_ - at ? 0 : sizeof kMagic - 1);
      continue;
    }
    at += static_cast<std::uint64_t>(found - window.begin());
    Header header;
    const bool whole = ReadAt(at, header);
    if (whole) synced = std::max(synced, header.synced);
    at += whole ? sizeof header + header.size : 1;
  }
  return synced;
}

void EndFrameFile(const std::string& path, std::uint64_t number) {
  FrameFileReader reader(path, number);
  while (reader.Next()) continue;
  if (reader.ended()) return;
  FrameFileWriter(path, number, reader.end()).End();
}

}  // namespace menger
