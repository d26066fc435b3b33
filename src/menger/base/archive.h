#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "menger/base/error.h"

namespace menger {

// Archives hold the state of a run: named entries in a folder of two files, `manifest.json` (names,
// sizes, XXH3 checksums, its own checksum, the format version) and `data.bin` (all entries, one
// after the other).
//
// An archive is there whole or not at all: it grows in a sibling folder `<path>.partial`, is
// flushed to disk, and takes its name at Commit in one step that also replaces an older archive of
// that name. Reading checks every byte that it returns.
//
// A component takes part by
//     void Save(ArchiveWriter& archive) const;
//     void Load(ArchiveReader& archive);
// and is given its own names by its owner: `ArchiveWriter scope = archive.Scope("optimiser");
// optimiser.Save(scope);`

// What is saved as its bytes. Spans and views are trivially copyable too, but theirs are an
// address: they are refused, but for a span of constants, whose elements are written.
template <typename T>
inline constexpr bool kIsView = false;
template <typename T, std::size_t kExtent>
inline constexpr bool kIsView<std::span<T, kExtent>> = true;
template <typename T>
inline constexpr bool kIsView<std::basic_string_view<T>> = true;

template <typename T>
concept ArchiveItem = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !kIsView<T>;

// A folder inside an archive's, for content that its owner writes and checks himself (too large for
// one file, or shared with the archive before).
struct ArchiveFolder {
  std::string path;            // Where it is to be made before Commit, with all of it on the disk,
  std::string committed_path;  // and where it is afterwards: it appears and goes with the archive.
};

// A handle on an archive that is being written; copies and scopes share it. The last handle to go
// without Commit removes what was written. One thread at a time; one writer a path at a time.
class ArchiveWriter {
 public:
  // Makes `<path>.partial`, in place of one that a killed writer left. Throws FailedPrecondition or
  // Unavailable, naming the path, if the folder cannot be written.
  explicit ArchiveWriter(const std::string& path);

  // One that keeps nothing and touches no file, but refuses names as another does: whether an
  // archive can be written is known before there is anything worth writing. `path` is for errors.
  // It has no Commit and no folders.
  static ArchiveWriter Rehearsal(std::string path);

  // The same archive, with "<prefix>/" put before each name.
  ArchiveWriter Scope(std::string_view prefix) const;

  // Appends an entry. Throws InvalidArgument if the name is taken or has characters other than
  // [A-Za-z0-9_.-/], Unavailable if the disk is full, FailedPrecondition after Commit.
  void WriteBlob(std::string_view name, std::span<const std::byte> bytes);

  template <ArchiveItem T>
  void Write(std::string_view name, const T& value) {
    WriteBlob(name, std::as_bytes(std::span<const T>(&value, 1)));
  }
  template <ArchiveItem T>
  void Write(std::string_view name, std::span<const T> values) {
    WriteBlob(name, std::as_bytes(values));
  }
  template <ArchiveItem T>
  void Write(std::string_view name, const std::vector<T>& values) {
    WriteBlob(name, std::as_bytes(std::span<const T>(values)));
  }
  void Write(std::string_view name, const std::string& text) {
    WriteBlob(name, std::as_bytes(std::span<const char>(text)));
  }

  // Makes nothing: says where. Throws InvalidArgument for a name with other characters.
  ArchiveFolder Folder(std::string_view name) const;

  // Makes the archive appear at its path; when it returns, it is on the disk. Called once, by
  // whoever made the archive.
  void Commit();

 private:
  struct State;
  ArchiveWriter(std::shared_ptr<State> state, std::string prefix);

  std::shared_ptr<State>
      state_;  // Shared among the scopes of one archive: the file belongs to all of them.
  std::string prefix_;
};

// A handle on a committed archive; copies and scopes share it. Any thread may read. It remembers
// what was read.
//
// A name that is absent is NotFound; a value of another size than the reader expects is
// FailedPrecondition (the archive is whole but belongs to something else); altered or truncated
// files are DataLoss. All name the file and the entry.
class ArchiveReader {
 public:
  // Reads and checks the manifest. Throws NotFound if there is no such archive.
  explicit ArchiveReader(const std::string& path);

  ArchiveReader Scope(std::string_view prefix) const;

  bool Contains(std::string_view name) const;
  std::vector<std::string> Names() const;        // Of this scope, without its prefix, sorted.
  std::vector<std::string> Unread() const;       // Those of them that nobody has read so far.
  uint64_t SizeOf(std::string_view name) const;  // In bytes.

  std::vector<std::byte> ReadBlob(std::string_view name) const;
  void ReadBlob(std::string_view name,
                std::span<std::byte> bytes) const;  // The size must be exact.

  template <ArchiveItem T>
  void Read(std::string_view name, T& value) const {
    ReadBlob(name, std::as_writable_bytes(std::span<T>(&value, 1)));
  }
  template <ArchiveItem T>
  void Read(std::string_view name, std::span<T> values) const {
    ReadBlob(name, std::as_writable_bytes(values));
  }
  template <ArchiveItem T>
  void Read(std::string_view name, std::vector<T>& values) const {
    values.resize(CountOf(name, sizeof(T)));
    ReadBlob(name, std::as_writable_bytes(std::span<T>(values)));
  }
  void Read(std::string_view name, std::string& text) const {
    text.resize(CountOf(name, 1));
    ReadBlob(name, std::as_writable_bytes(std::span<char>(text)));
  }
  template <typename T>
  T Read(std::string_view name) const {
    T value{};
    Read(name, value);
    return value;
  }

  // Where the folder is that ArchiveWriter::Folder(name) gave; it may not be there.
  std::string FolderPath(std::string_view name) const;

  // Reads every entry of the archive, whatever the scope, and throws DataLoss for the first that is
  // not as written.
  void Verify() const;

  const std::string& path() const;

 private:
  struct State;
  ArchiveReader(std::shared_ptr<const State> state, std::string prefix);
  uint64_t CountOf(std::string_view name, size_t item_size) const;

  std::shared_ptr<const State> state_;  // Shared among the scopes of one archive.
  std::string prefix_;
};

// Writes all entries of one scope to another.
void CopyEntries(const ArchiveReader& from, ArchiveWriter& to);

}  // namespace menger
