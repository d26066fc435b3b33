#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "menger/base/thread.h"
#include "menger/runtime/memory/spill_files.h"
#include "menger/runtime/memory/value_store.h"
#include "menger/runtime/node/node_machine.h"

namespace menger {

// Gives out room for values, and makes it: those in shared memory that nobody has read for longest
// go to the disk, and come back when they are wanted. One that came back is kept on the disk, too,
// so that it goes without being written once more.
//
// Reading and writing are done by a thread of its own, without the node's lock: such a value is
// pinned meanwhile. All else is called under the lock. What follows for the machine happens in
// Work, so that what is asked for may be asked from within the machine.
class Spiller {
 public:
  struct Options {
    std::string folder;         // "": the system's for temporary files.
    std::uint64_t bytes_max;    // On the disk; 0: half of what is free there.
    std::uint32_t segment = 0;  // Where values come back to.
    // Whether some that cannot go to the disk now will be able to soon; none: they will not.
    std::function<bool()> comes_free;
    // So many bytes are wanted, and nothing is left that could go to the disk now.
    std::function<void(std::uint64_t bytes)> need_room;
  };
  // `wake` is called by the thread when there is something to do for Work.
  Spiller(Options options, ValueStore& store, NodeMachine& machine, std::function<void()> wake);
  ~Spiller();

  // Room for `bytes` bytes in a segment, once there is some: `taken` is called by Work with it or
  // with the reason why there is none. That is said when no call runs that could make some, or none
  // did so for 10 s. `process` asks.
  using Taken = std::function<void(const SharedExtent* extent, const TaskFailure* refusal)>;
  std::uint64_t Request(ProcessIndex process, std::uint32_t segment, std::uint64_t bytes,
                        Taken taken);
  void Withdraw(std::uint64_t request);  // It need not be there.

  // The value shall come back into memory; the machine is told. Again changes nothing.
  void Restore(Object& object);

  // What the disk has of the value, if anything, is not needed any longer.
  void Forget(const ObjectValue& value);

  // Does what can be done. True if the machine was told something.
  bool Work();
  bool has_work() const {
    return !requests_.empty() || !wanted_.empty() || has_done_.load(std::memory_order_acquire);
  }

  struct Counts {
    std::uint64_t spilled_bytes = 0;   // Written so far,
    std::uint64_t restored_bytes = 0;  // and read;
    std::uint64_t lost = 0;            // values that were damaged then.
    std::uint64_t disk_bytes = 0;      // That files take now.
  };
  Counts counts() const;

 private:
  struct WaitingRequest {
    std::uint64_t number = 0;
    ProcessIndex process = kDriver;
    std::uint32_t segment = 0;
    std::uint64_t bytes = 0;
    std::int64_t since = 0;
    Taken taken;
  };
  // For the thread: to write or to read `bytes`, which lie at `extent`, or to free what lies on the
  // disk.
  struct Job {
    enum class Kind : std::uint8_t { kWrite, kRead, kFree } kind = Kind::kWrite;
    Object* object = nullptr;
    SharedExtent extent;
    std::span<std::byte> bytes;
    SpilledValue place;  // kWrite: where it went.
    std::string error;   // "" if it went well.
  };

  bool TakeDone();
  void Written(Job& job);
  void Read(Job& job);
  bool GiveRoom();
  bool MakeRoom(const WaitingRequest& request);
  bool RefuseHopeless();
  bool IsHopeless(const WaitingRequest& request) const;
  bool DropFromMemory();
  void Spill(Object& object);
  void MoveToDisk(Object& object, std::uint64_t number);
  void StartRestoring(Object& object);
  TaskFailure Full(const WaitingRequest& request) const;

  void Send(Job job);
  void Serve();  // The thread.
  void Do(Job& job);
  SpillFiles& files();

  const Options options_;
  ValueStore& store_;
  NodeMachine& machine_;
  const std::function<void()> wake_;

  std::deque<WaitingRequest> requests_;
  std::uint64_t last_request_ = 0;
  std::vector<Object*> wanted_;  // To be restored, and pinned; Work begins with it.
  std::unordered_set<const Object*> restoring_;
  std::unordered_map<std::uint64_t, SpilledValue> places_;  // By number.
  std::uint64_t last_place_ = 0;
  std::uint64_t coming_bytes_ = 0;  // Being written: room soon.
  std::size_t jobs_ = 0;            // Writes and reads under way.
  std::string disk_error_;          // Of the last write, if that failed.
  Counts counts_;

  std::mutex mutex_;
  std::condition_variable has_jobs_;
  std::deque<Job> todo_;               // Guarded by mutex_.
  std::vector<Job> done_;              // Guarded by mutex_.
  bool stop_ = false;                  // Guarded by mutex_.
  std::atomic<bool> has_done_{false};  // done_ is not empty.
  std::atomic<std::uint64_t> disk_bytes_{0};
  std::unique_ptr<SpillFiles> files_;  // Of the thread; made when it is needed.
  Thread thread_;                      // Likewise started.
};

}  // namespace menger
