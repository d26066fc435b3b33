#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace menger {

// Files whose failures are Errors that name the path: a missing one is NotFound, a forbidden one
// FailedPrecondition, a full disk Unavailable. Paths are UTF-8 text as the user wrote them.

// Owns a file descriptor and closes it.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { Close(); }

  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }
  int Release();
  void Close();

 private:
  int descriptor_ = -1;
};

FileDescriptor OpenForReading(const std::string& path);
FileDescriptor CreateFile(const std::string& path);  // Truncates an existing file.

// Writes all of `bytes` at the descriptor's position, whatever the system splits it into.
void WriteAll(const FileDescriptor& file, std::span<const std::byte> bytes,
              const std::string& path);

// Fills `bytes` from `offset`; throws DataLoss if the file ends before.
void ReadAllAt(const FileDescriptor& file, uint64_t offset, std::span<std::byte> bytes,
               const std::string& path);

uint64_t FileSize(const FileDescriptor& file, const std::string& path);

// Lets this process have as many descriptors open as it may (its hard limit), but no more than
// 131,072: there are programs that close every number up to the limit when they start another. What
// it starts from now on inherits that; one that uses select(), which knows the numbers below 1,024
// alone, lowers its own soft limit again.
void RaiseDescriptorLimit();

// Returns when the content is on the disk. A folder's content is its list of names.
void SyncFile(const FileDescriptor& file, const std::string& path);
void SyncFolder(const std::string& path);

std::string ReadFile(const std::string& path);

// Whoever reads `path` sees the old text or the new one, also after a crash at any moment. A
// device, a pipe or a link, which a new file must not take the place of, is written where it is
// instead.
void WriteFileAtomically(const std::string& path, std::string_view text);

// Who may read what is made.
enum class FileReaders : std::uint8_t { kAll, kItsUser };

// Makes the folder and those above it; it may exist already.
void CreateFolders(const std::string& path, FileReaders readers = FileReaders::kAll);

// Makes the folder for this process alone while the descriptor, of its file `lock`, is open: throws
// FailedPrecondition if another keeps `what`, for example "a replay store", in it.
FileDescriptor LockFolder(const std::string& path, std::string_view what);

// Numbers of the files of a folder whose names are `before`<number>`after`, ascending.
std::vector<std::uint64_t> NumberedFiles(const std::string& folder, std::string_view before,
                                         std::string_view after);

std::string ParentFolder(
    const std::string& path);  // "." for a bare name; a trailing '/' is ignored.

}  // namespace menger
