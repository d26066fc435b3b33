#include "menger/training/run_replay.h"

#include <chrono>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/replay/client/local_replay.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/replay_content.h"
#include "menger/training/replay_learner.h"

namespace menger {
namespace {

constexpr const char* kServedEntry = "served";  // In an archive whose content is elsewhere.

void CheckServed(const ReplayOptions& options, const TableOptions& served,
                 const ReplayAlgorithm& algorithm) {
  const std::string difference =
      DifferenceOf(SignatureOf(served.items), SignatureOf(algorithm.items()));
  if (!difference.empty()) {
    throw FailedPrecondition(
        "table '{}' at replay.address = {} keeps other items than this recipe's: {}", served.name,
        options.address, difference);
  }
  const bool prioritised = served.sampler.kind == SelectorKind::kPrioritised;
  if (prioritised != (options.sampler == "prioritised")) {
    throw FailedPrecondition(
        "table '{}' at replay.address = {} draws {}, and replay.sampler is {}; set one to what the "
        "other is",
        served.name, options.address, prioritised ? "by priorities" : "without priorities",
        options.sampler);
  }
  const ItemSteps item = algorithm.item_steps();
  if (served.rate_limiter.min_size > ItemsOf(options.min_size, item)) {
    throw FailedPrecondition(
        "replay.min_size = {}, but table '{}' at replay.address = {} lets nobody draw before it "
        "has {} items; set one to what the other is",
        options.min_size, served.name, options.address, served.rate_limiter.min_size);
  }
  if (served.items_max != ItemsOf(options.capacity, item)) {
    LogWarning("replay.capacity = {} is not used: the served table '{}' keeps {} items",
               options.capacity, served.name, served.items_max);
  }
}

}  // namespace

RunReplay::RunReplay(const ReplayStoreOptions& own)
    : store_(std::make_unique<ReplayStore>(own)), client_(std::make_unique<LocalReplay>(*store_)) {}

RunReplay::RunReplay(const ReplayOptions& options, const ReplayAlgorithm& algorithm,
                     const std::function<bool()>& given_up)
    : client_(std::make_unique<ServedReplay>(ServedReplayOptions{
          .socket = options.address,
          .patience = std::chrono::nanoseconds(static_cast<std::int64_t>(options.patience * 1e9)),
          .given_up = given_up})),
      table_(client_->Find(options.table)) {
  CheckServed(options, client_->table(table_), algorithm);
}

void RunReplay::Save(SlabWriter& writer, ArchiveWriter& archive) {
  if (store_ == nullptr) return archive.Write(kServedEntry, std::int64_t{1});
  writer.Save(archive.Scope("writer"));
  const ArchiveFolder folder = archive.Folder(ReplayLearner::kContent);
  ReplayCheckpoint(*store_, LocalReplay::StreamsOf(writer.writer())).Write(folder.path, saved_);
  saved_ = folder.committed_path;
}

void RunReplay::SaveContent(ArchiveWriter& archive) {
  const ArchiveFolder folder = archive.Folder(ReplayLearner::kContent);
  ReplayCheckpoint(*store_).Write(folder.path, saved_);
  saved_ = folder.committed_path;
}

void RunReplay::LoadContent(ArchiveReader& archive) {
  saved_ = archive.FolderPath(ReplayLearner::kContent);
  ReplayCheckpoint::Load(saved_, *store_);
}

void RunReplay::Load(SlabWriter& writer, ArchiveReader& archive) {
  const bool served = archive.Contains(kServedEntry);
  if (served != (store_ == nullptr)) {
    throw FailedPrecondition(
        "the run was saved {} a replay server and cannot go on {} one: replay.address must be as "
        "it was",
        served ? "with" : "without", served ? "without" : "with");
  }
  if (store_ == nullptr) return;
  writer.Load(archive.Scope("writer"));
  saved_ = archive.FolderPath(ReplayLearner::kContent);
  ReplayCheckpoint::Load(saved_, *store_, LocalReplay::StreamsOf(writer.writer()));
}

}  // namespace menger
