#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/runtime/cluster/program_fetcher.h"
#include "menger/runtime/driver/worker_team.h"
#include "menger/runtime/net/handshake.h"

namespace menger {

// Has the programs of drivers brought to this node while the drivers live, each on a thread of its
// own. All functions are called by one thread.
class GuestPrograms {
 public:
  // On those threads.
  struct Hooks {
    std::function<void(const NodeLife& driver, const GuestProgram& program)> on_ready;
    // It cannot be had, or does not run here: for good, or until on_ready.
    std::function<void(const NodeLife& driver, const std::string& why)> on_failed;
  };
  GuestPrograms(PeerStreams& streams, std::string cache_folder, Hooks hooks);
  // Stops what is under way. The service of the streams must not have ended.
  ~GuestPrograms();
  GuestPrograms(const GuestPrograms&) = delete;
  GuestPrograms& operator=(const GuestPrograms&) = delete;

  void Bring(const NodeLife& driver, std::string address, std::uint64_t job);
  // He is gone: the cache may drop what it has of his.
  void Drop(const NodeLife& driver);

  // Who is told of the streams, until their service has ended.
  std::shared_ptr<PeerStreamOwner> owner() const { return fetcher_; }

 private:
  struct Guest {
    NodeLife driver;
    std::atomic<bool> unwanted{false};
    std::vector<FileDescriptor> holds;  // Keep it in the cache.
    Thread thread;
  };
  void Fetch(Guest& guest, const std::string& address, std::uint64_t job);
  ReadyProgram FetchPatiently(const Guest& guest, const std::string& address);
  void ForgetUnwanted();

  PeerStreams& streams_;
  const std::string cache_folder_;
  const Hooks hooks_;
  const std::shared_ptr<ProgramFetcher> fetcher_;
  std::list<Guest> guests_;
};

}  // namespace menger
