#pragma once

#include <memory>
#include <optional>
#include <string>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/base/archive.h"
#include "menger/replay/client/replay_client.h"
#include "menger/replay/replay_store.h"
#include "menger/training/learning/replay_options.h"

namespace menger {

// The replay that a run learns from: a store of its own, or a table of a server (replay.address),
// which other processes may write and read, too. One thread.
class RunReplay {
 public:
  // A store of one table with these options.
  explicit RunReplay(const ReplayStoreOptions& own);
  // The table replay.table of the server at replay.address. Throws as ServedReplay; NotFound for
  // another name; FailedPrecondition where its items are not the algorithm's, it draws by another
  // rule than replay.sampler, or only once it has more than the items of replay.min_size steps.
  RunReplay(const ReplayOptions& options, const ReplayAlgorithm& algorithm,
            const std::function<bool()>& given_up);

  ReplayClient& client() { return *client_; }
  int table() const { return table_; }

  // With the content of a store of its own: a writer that was loaded goes on with its streams. A
  // server keeps its content itself; a writer then begins its streams anew, so what of an episode
  // was not yet in replay when the run was saved never comes there.
  void Save(SlabWriter& writer, ArchiveWriter& archive);
  void Load(SlabWriter& writer, ArchiveReader& archive);
  // The content of a store of its own alone, while others write to it: their streams begin anew.
  void SaveContent(ArchiveWriter& archive);
  void LoadContent(ArchiveReader& archive);

 private:
  std::unique_ptr<ReplayStore> store_;  // Null: the table is a server's.
  std::unique_ptr<ReplayClient> client_;
  int table_ = 0;
  std::string saved_;  // Where the content was saved last; empty: nowhere.
};

}  // namespace menger
