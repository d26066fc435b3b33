#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/frame_file.h"
#include "menger/base/thread.h"
#include "menger/runtime/control/store_journal.h"

namespace menger {

struct StoreLogOptions {
  std::string folder;
  // What has changed is on the disk at the latest so long after it was acknowledged, and before
  // that survives the process, but not the machine's power. 0: it is acknowledged once it is on the
  // disk; all that came meanwhile shares one flush.
  std::chrono::nanoseconds sync_every = std::chrono::milliseconds(100);
  // The file is begun anew once it has so many bytes and is four times as long as what is alive.
  std::uint64_t file_bytes_min = std::uint64_t{4} << 20;
  // Of changes that wait to be written; see `full`.
  std::uint64_t waiting_bytes_max = std::uint64_t{64} << 20;
};

// Keeps a store's changes in `folder`, in a file that begins with all that was alive when it was
// begun: "control-<number>.log". A thread of its own writes whatever has come since its last write
// as one frame.
//
// Recovery takes the newest file that is whole up to the end of that begin. It cuts a tail that was
// not on the disk yet and refuses other damage with DataLoss, see base/frame_file.h. What is left
// are all changes up to some moment, in the order of Append, and none after it.
//
// After an error of the disk nothing is written any more: every later completion gets that error.
class StoreLog final : public StoreJournal {
 public:
  // Replays what the folder holds. Then `snapshot` may be used, on any thread, until the end.
  // Throws DataLoss, FailedPrecondition if the folder is another process's, and as files do.
  StoreLog(StoreLogOptions options, const Visitor& replay, Snapshot snapshot);
  StoreLog(const StoreLog&) = delete;
  StoreLog& operator=(const StoreLog&) = delete;
  ~StoreLog() override;  // Writes and syncs all, and calls the completions.

  bool full() const override;
  void Append(const StoreChange& change) override;
  void WhenSafe(Completion completion) override;

 private:
  void Recover(const Visitor& replay);
  bool IsWhole(std::uint64_t number) const;
  void Replay(std::uint64_t number, const Visitor& replay) const;
  void BeginFile();
  std::string PathOf(std::uint64_t number) const;

  void Run();
  void Write(std::vector<std::byte>& changes);
  std::chrono::nanoseconds UntilSync() const;

  const StoreLogOptions options_;
  const Snapshot snapshot_;
  const FileDescriptor lock_;

  // Of the constructor, then of the thread.
  std::uint64_t number_ = 0;
  std::optional<FrameFileWriter> file_;
  std::uint64_t begin_bytes_ = 0;    // Of the file's begin.
  std::int64_t unsynced_since_ = 0;  // In MonotonicNanoseconds; 0: nothing is unsynced.

  mutable std::mutex mutex_;
  std::condition_variable has_work_;
  std::vector<std::byte> waiting_;       // Guarded by mutex_, as are those below.
  std::vector<Completion> completions_;  // Of all that waits or was written before.
  std::optional<Error> error_;
  bool stopping_ = false;

  Thread thread_;
};

OpenStoreJournal KeepInLog(StoreLogOptions options);

}  // namespace menger
