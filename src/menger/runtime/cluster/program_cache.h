#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/runtime/calls/worker_program.h"
#include "menger/runtime/cluster/cache_folder.h"
#include "menger/runtime/cluster/program_manifest.h"

namespace menger {

struct ProgramCacheOptions {
  std::string folder;                                // "": DefaultProgramCacheFolder().
  std::uint64_t bytes_max = std::uint64_t{4} << 30;  // Beyond, what nobody uses goes.
  bool in_place = true;  // What this machine has at the driver's paths is used there.
};

// "menger/programs" in XDG_CACHE_HOME, or in ~/.cache. Throws FailedPrecondition where the
// environment has neither.
std::string DefaultProgramCacheFolder();
// The absolute path of that folder; "": the default's.
std::string ProgramCacheFolder(const std::string& folder);

// A program that this machine can run, for as long as `holds` are open.
struct ReadyProgram {
  WorkerProgram program;
  std::vector<FileDescriptor> holds;  // None where nothing of the cache is used.
};

// Makes drivers' programs run on this machine, and keeps what that took. A program is a folder:
// `program`, lib/ and folder/, of which the last is a copy, since workers may write there, and the
// others are links to files that are kept by their content.
//
// What lies at the driver's path with the same content is used there instead, if the options allow:
// nothing is copied where driver and node share a file system. It must stay as it is while the
// program runs; a program that is built anew at its old path is another for workers that start
// later.
//
// Workers find shipped libraries by LD_LIBRARY_PATH. A path that an argument or a variable names,
// alone or between colons, is that of the copy where it was shipped with the folder.
//
// Any thread may call, and any number of processes may use one cache at the same time. Contents are
// checked whenever they are about to be used: what workers or others have changed is made anew.
// When a program makes the cache larger than it may be, those used longest ago go.
class ProgramCache {
 public:
  explicit ProgramCache(ProgramCacheOptions options = {});  // Makes the folder.

  // `source` is asked, on this thread, for each file that is neither here nor in the cache; what it
  // throws comes out. The deadline is for other waits, of milliseconds.
  //
  // Throws FailedPrecondition where driver and node have different versions of menger, for a folder
  // that should be here, a program that is larger than the cache may be, is for another kind of
  // machine, or lacks libraries here, which are named; DataLoss, naming the file, where the source
  // gives another content than it should; Unavailable for a full disk. Of a folder, which may have
  // logs and results in it, files are left out, with a warning, for which the source throws
  // DataLoss or NotFound: they have changed since the driver told of them.
  ReadyProgram Prepare(const ProgramManifest& manifest, const ProgramSource& source,
                       const Deadline& deadline) const;

 private:
  using Files = std::vector<const ProgramFile*>;

  bool IsHere(const std::string& path, const ProgramFile& file) const;
  bool FolderIsHere(const ProgramManifest& manifest) const;
  void PrepareImage(const ProgramManifest& manifest, const ProgramSource& source,
                    const Deadline& deadline, ReadyProgram& ready) const;
  void PrepareFolder(const ProgramManifest& manifest, const ProgramSource& source,
                     const Deadline& deadline, ReadyProgram& ready) const;
  void CheckSize(const Files& files) const;
  std::string MakeOfUnchanged(Files files, const ProgramSource& source, const Deadline& deadline,
                              ReadyProgram& ready) const;
  std::string Make(const Files& files, const ProgramSource& source, const Deadline& deadline,
                   ReadyProgram& ready) const;
  FileDescriptor UseOrMake(const std::string& name, const Files& files, const ProgramSource& source,
                           const Deadline& deadline) const;
  void Trim() const;
  void Fill(const std::string& folder, const Files& files, const ProgramSource& source) const;

  const ProgramCacheOptions options_;
  const CacheFolder folder_;
};

}  // namespace menger
