#pragma once

#include "menger/base/files.h"
#include "menger/runtime/cluster/cache_folder.h"

namespace menger {

// A folder for the files of a program that this process alone needs, as long as this lives. It
// lies in a CacheFolder of all; its owner has it locked, so that one that nobody has locked is left
// of a process that was killed: whoever makes the next removes it.
//
// Folders are made and locked with the lock of the folder in which they lie, and removed by who
// has that alone: nobody removes one that is not locked yet.
class PrivateFolder {
 public:
  // Throws DeadlineExceeded where others remove something from `below` for minutes.
  explicit PrivateFolder(const CacheFolder& below);
  ~PrivateFolder();  // Removes it.
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const CacheFolder& folder() const { return folder_; }

 private:
  FileDescriptor making_;  // Of `below`, until it is locked.
  const CacheFolder folder_;
  FileDescriptor lock_;
};

}  // namespace menger
