#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/mutex.h"
#include "menger/runtime/cluster/program_cache.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {

// All of a driver's program but the program: what it is, and where its files lie, by their content.
struct KeptProgram {
  ProgramManifest manifest;
  std::map<ContentHash, std::string> paths;
};

// A node's end of the lane kFiles: has the programs of drivers brought here, where they are not
// here already. Like every owner of streams it lives until their service has ended, and then no
// Fetch may be under way.
class ProgramFetcher final : public PeerStreamOwner {
 public:
  ProgramFetcher();
  ~ProgramFetcher() override;

  // Asks the driver at the address what its program is, and for those of its files that are neither
  // here nor in the cache; returns when the program can be started. Each call has a stream of its
  // own, and holds kProgramQuestionsMax parts of a file at most. Any thread but that of the streams
  // may call, several at the same time.
  //
  // Who wants to stop it gives a deadline with a flag (Deadline::OrWhen), which is looked at once a
  // second.
  //
  // Throws Unavailable where the driver cannot be reached or goes meanwhile, DeadlineExceeded,
  // InvalidArgument for answers that are none, what the driver refuses with, and as
  // ProgramCache::Prepare. What had come whole by then is kept for the next attempt.
  ReadyProgram Fetch(PeerStreams& streams, const std::string& address, const ProgramCache& cache,
                     const Deadline& deadline);
  // The same without Prepare: for who passes it on to others, from `folder`, when the driver is
  // gone (ProgramManifest::copied). As Prepare it leaves out what has changed meanwhile.
  KeptProgram FetchFiles(PeerStreams& streams, const std::string& address,
                         const CacheFolder& folder, const Deadline& deadline);
  // The same, from what the nodes at these addresses keep, which are asked one after the other, of
  // a program whose driver is gone. It leaves out what none of them has of the working folder.
  // Throws NotFound with another file that none has, or that who was not reached may have.
  KeptProgram FetchFiles(PeerStreams& streams, const std::vector<std::string>& addresses,
                         const ProgramManifest& manifest, const CacheFolder& folder,
                         const Deadline& deadline);

 private:
  class Conversation;

  // ---- As PeerStreamOwner.
  void Opened(std::shared_ptr<PeerStream> stream) override;
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override;
  void Ended(PeerStream& stream, const Error& why) override;
  void Failed(const std::string& address, const Error& why) override;

  // Nothing; or why the other end does not have it, or not as it was.
  static std::optional<Error> FetchFile(Conversation& from, const ProgramFile& file,
                                        const CacheFolder& folder, const Deadline& deadline,
                                        KeptProgram& kept);
  // Asks over a stream of its own, and closes it.
  void Converse(PeerStreams& streams, const std::string& address, const Deadline& deadline,
                const std::function<void(Conversation&)>& ask);
  std::shared_ptr<Conversation> Connect(PeerStreams& streams, const std::string& address);
  std::shared_ptr<Conversation> Find(PeerStream& stream);

  Mutex mutex_;
  // Whose stream is not open yet, oldest first, those that nobody waits for any more among them.
  std::list<std::shared_ptr<Conversation>> connecting_ MENGER_GUARDED_BY(mutex_);
  std::map<PeerStream*, std::shared_ptr<Conversation>> open_ MENGER_GUARDED_BY(mutex_);
};

}  // namespace menger
