#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "menger/base/files.h"

namespace menger {

// A file that grows at its end, and that a resumed run cuts back to what its checkpoint knew. Every
// Append reaches the system at once, so a killed process loses nothing; Sync puts it on the disk.
// Both throw NotFound once somebody has removed the file: what is written then is nowhere. One
// thread at a time; errors name the path.
class AppendFile {
 public:
  explicit AppendFile(std::string path);  // Opens, or makes, the file; keeps what is there.

  void Append(std::string_view bytes);
  void Sync();

  // Drops everything after `size` bytes. Throws DataLoss if the file is shorter than that.
  void TruncateTo(std::uint64_t size);

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  void CheckThere() const;

  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace menger
