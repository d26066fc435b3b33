#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/files.h"
#include "menger/replay/durability/journal_recovery.h"
#include "menger/replay/replay_store.h"

namespace menger {

// A folder in which a replay store is kept:
//
//     checkpoint-<n>/    see ReplayCheckpoint
//     journal-<n>.bin    what happened after the cut of checkpoint n, up to that of the next number
//     lock               held while a process keeps a store there
//
// One thread.
class ReplayFolder {
 public:
  // Makes the folder, and removes what was unfinished. Throws FailedPrecondition if another
  // process has it.
  explicit ReplayFolder(std::string path);

  const std::string& path() const { return path_; }
  std::string CheckpointPath(std::uint64_t number) const;

  // Fills a store that nobody has used with the newest checkpoint that is whole and with what
  // journals tell after it; returns the checkpoint's number, or nothing if there is none. Journals
  // are ready for another to follow them. A damaged checkpoint is passed over, with a warning, for
  // the one before: with the journals since, which bring back the same, or without any, where none
  // were written. Throws as ReplayCheckpoint::Load if nothing whole is left, DataLoss if a journal
  // is damaged, or missing between two. `journaled`: that there is none after it is said, too.
  std::optional<std::uint64_t> Recover(ReplayStore& store, bool journaled) const;

  std::uint64_t NextNumber() const;  // Larger than all there are, from 1 on.

  // Removes checkpoints and journals of smaller numbers.
  void RemoveBefore(std::uint64_t number) const;

 private:
  std::vector<JournalFile> JournalsFrom(std::uint64_t checkpoint) const;

  const std::string path_;
  FileDescriptor lock_;
};

}  // namespace menger
