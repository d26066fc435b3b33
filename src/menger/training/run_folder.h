#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/files.h"

namespace menger {

// Everything that a run leaves behind:
//
//     experiment.toml             resolved configuration: `menger train` on it gives the same run
//     build.txt                   the program that made it
//     progress.csv                one row a report: steps, seconds, episode_return_mean, ...
//     events.out.tfevents.0       the same for TensorBoard
//     checkpoints/<steps>/        archives, the newest few
//     checkpoints/best/           the archive with the best evaluation
//     summary.json                the outcome, once the run has ended or was interrupted
//     lock                        held by the process that trains it
//
// Archives appear whole or not at all, so a process killed at any moment leaves the last one
// usable. One process at a time works in a folder. Errors name the path.
class RunFolder {
 public:
  // Makes the folder, or takes an empty one; throws FailedPrecondition if it holds a run already.
  static RunFolder Create(const std::string& path);

  // Throws what is known to be wrong with a folder for Create before anything is done for the run:
  // it holds one already, there is a file in the way, it must not be written. Makes nothing.
  static void CheckPlace(const std::string& path);

  // An existing run; throws NotFound if the folder holds none. Removes what a killed writer left.
  static RunFolder Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string checkpoint(const std::string& name) const { return path_ + "/checkpoints/" + name; }
  std::string checkpoint(std::int64_t steps) const { return checkpoint(std::to_string(steps)); }
  bool Contains(const std::string& name) const;

  // Whether an archive can be read as checkpoint(name): it is there, or a writer killed while it
  // replaced the archive left the older one as `<name>.previous`, which ArchiveReader takes then.
  bool ContainsCheckpoint(const std::string& name) const;

  // While what it gives lives, no other process trains in the folder: throws FailedPrecondition if
  // one does.
  FileDescriptor Lock() const;

  // Steps of the checkpoints that can be read, ascending.
  std::vector<std::int64_t> Checkpoints() const;

  // What a checkpoint has beside its archive's entries: throws DataLoss if that is damaged.
  using Check = std::function<void(const ArchiveReader&)>;

  // The newest checkpoint whose every byte is as written, and that passes `check`; where there is
  // none by steps, the best. Damaged newer ones are logged as warnings that name the file; throws
  // NotFound if there is no checkpoint, DataLoss if all are damaged.
  ArchiveReader NewestWholeCheckpoint(const Check& check = {}) const;

  // Of the checkpoints up to `newest` steps, removes all but the `keep` last. Later ones stay: they
  // are what a run left that now goes on from before them.
  void Prune(std::int64_t keep, std::int64_t newest) const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Whether some process trains in the run folder.
bool IsTrainedNow(const std::string& path);

// Throws InvalidArgument where a file is in the way of the folder, FailedPrecondition or what the
// system says where it must not be made or written. Makes nothing.
void CheckCanKeepRuns(const std::string& folder);

// Makes <parent>/<name>-1, or the next number that is free, and returns its path. Two processes get
// two folders.
std::string MakeNumberedFolder(const std::string& parent, const std::string& name);

}  // namespace menger
