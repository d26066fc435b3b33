#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/runtime/cluster/program_manifest.h"

namespace menger {

// Gives the bytes of a file, in order, to `take`.
using TakeBytes = std::function<void(std::span<const std::byte> bytes)>;
using ProgramSource = std::function<void(const ProgramFile& file, const TakeBytes& take)>;

// The folder of a ProgramCache on the disk: its files by content, its programs, and who may remove
// what. Other processes may use it at the same time; everything that has a name in it is whole.
//
//   lock                shared by who makes or looks for programs, alone who removes something
//   files/HASH
//   programs/NAME/hold  shared by who uses the program
//   .../.new-XXXXXX     being made
class CacheFolder {
 public:
  // Makes it for this user alone.
  explicit CacheFolder(std::string path);

  // While it is open nothing is removed. Throws DeadlineExceeded; others have it for milliseconds.
  FileDescriptor Lock(const Deadline& deadline) const;
  // While it is open nobody else makes, looks for or removes anything; invalid where others do.
  FileDescriptor LockAlone() const;

  // ---- With that lock.
  // The path of the file's content, which `source` gives if it is not here. Throws DataLoss where
  // it gives another.
  std::string Store(const ProgramFile& file, const ProgramSource& source) const;
  // Keeps a program, which this notes as used now; invalid where there is none of that name.
  FileDescriptor Hold(const std::string& program) const;
  // Lets `fill` fill a folder, which then is the program, unless another has made it meanwhile.
  void Make(const std::string& program, const std::function<void(const std::string&)>& fill) const;

  // ---- Without.
  // False where somebody uses it, or the folder.
  bool RemoveUnlessHeld(const std::string& program) const;
  // Removes such a folder, which is one process's alone, unless that has it locked.
  static void RemoveUnlessLocked(const std::string& path);
  // Removes what was used longest ago and nobody holds, until all together has no more than this,
  // and what was left behind half made. Does nothing while others use the folder: they do it then.
  void Trim(std::uint64_t bytes_max) const;

  const std::string& path() const { return path_; }
  // Where what has that content lies, if it is here.
  std::string FilePath(const ContentHash& content) const { return files_ + "/" + ToHex(content); }
  std::string ProgramPath(const std::string& program) const { return programs_ + "/" + program; }

 private:
  static FileDescriptor LockAlone(const std::string& path);
  void DropFiles(std::uint64_t bytes_max) const;
  std::uint64_t Bytes() const;

  const std::string path_;
  const std::string files_;
  const std::string programs_;
};

}  // namespace menger
