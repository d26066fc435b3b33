#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/runtime/cluster/cache_folder.h"
#include "menger/runtime/cluster/describe_program.h"
#include "menger/runtime/cluster/program_letters.h"
#include "menger/runtime/net/peer_stream.h"

namespace menger {

// A driver's end of the lane kFiles: gives nodes that have connected its program's manifest, and
// parts of the files that this names, by their content. No question leads to any other file. A
// node's gives what it keeps of drivers' programs, to whoever knows its content: a program whose
// driver is gone is found there.
//
// Each question is answered by one part, so that no stream has more than kProgramQuestionsMax of
// them under way, here or in its queue; who asks for more is cut off. A file that is no longer as
// it was when the server was made is refused with DataLoss.
//
// It is no PeerStreamOwner but part of one, who passes on what concerns lane kFiles: all functions
// are called by the one thread of PeerStreams, which so reads the files. That is 0.1 to 0.3 ms for
// a part of a file that was lately read or run, as these were; of a slow disk all streams feel it.
class ProgramServer {
 public:
  // Where the file of a manifest lies on this machine.
  using Source = std::function<std::string(const ProgramFile& file)>;

  // Throws InvalidArgument as EncodeManifest.
  explicit ProgramServer(const ProgramManifest& manifest, const Source& source = SourceOf);
  // A node's, of the files in that folder.
  explicit ProgramServer(CacheFolder folder);
  ~ProgramServer();
  ProgramServer(const ProgramServer&) = delete;
  ProgramServer& operator=(const ProgramServer&) = delete;

  void Opened(PeerStream& stream);
  // Throws InvalidArgument for what is no question, and for more of them than may wait.
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames);
  void HasRoom(PeerStream& stream);
  void Ended(PeerStream& stream);

 private:
  struct ServedFile;
  using Questions = std::deque<ProgramQuestion>;

  void AnswerAll(PeerStream& stream, Questions& questions);
  bool Answer(PeerStream& stream, const ProgramQuestion& question) const;
  Payload ReadPart(const ProgramQuestion& question) const;
  ServedFile Find(const ContentHash& content) const;

  std::optional<CacheFolder> folder_;  // A node's, which has neither of these:
  Payload manifest_;
  std::map<ContentHash, ServedFile> files_;
  std::map<PeerStream*, Questions> waiting_;  // For room, of each stream.
};

}  // namespace menger
