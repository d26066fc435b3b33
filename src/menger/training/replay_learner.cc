#include "menger/training/replay_learner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/training/learning/metric_watch.h"

namespace menger {
namespace {

constexpr double kMillion = 1e6;
constexpr const char* kUpdates = "updates";  // Metrics of the learner's own.
constexpr const char* kItems = "replay_items";
constexpr std::chrono::seconds kLook(1);  // How long a draw waits until it looks for what.

}  // namespace

ReplayLearner::ReplayLearner(const ReplayOptions& options, const ReplayLearnerContext& context,
                             ReplayAlgorithm& algorithm)
    : options_(options),
      algorithm_(algorithm),
      items_min_(ItemsOf(options.min_size, algorithm.item_steps())),
      owed_an_update_(options.batch_size * algorithm.item_steps().learned *
                      static_cast<std::int64_t>(kMillion)),
      replay_(options.address.empty() ? RunReplay(ReplayStoreFor(options, context, algorithm))
                                      : RunReplay(options, algorithm, context.given_up)),
      patience_(ReplayPatience(options)),
      writer_(algorithm.MakeWriter(
          {.replay = replay_.client(),
           .table = replay_.table(),
           .environments = context.environments,
           .chunk_steps = ReplayChunkSteps(options, context.environments),
           .compression =
               options.compression == "automatic" ? Compression::kAutomatic : Compression::kNone,
           .own_errors_by =
               options.initial_priority == "error" ? &algorithm.publication() : nullptr})),
      trainer_(options, context, replay_.client(), replay_.table(), algorithm) {}

Metrics ReplayLearner::Consume(Slab& slab, UpdateRule& update, double progress) {
  algorithm_.SetProgress(progress);
  writer_->Write(slab, Deadline::After(patience_));
  const TableInfo table = replay_.client().info(replay_.table());
  if (table.items >= items_min_) {
    const std::int64_t samples = ValidSteps(slab);
    counters_.samples += samples;
    counters_.owed_millionths += samples * std::llround(options_.training_intensity * kMillion);
  }
  RequireRoomToBegin(options_, algorithm_.item_steps(), table);

  const std::vector<std::string> names = algorithm_.metric_names();
  Metrics means;
  for (const std::string& name : names) means.emplace_back(name, 0.0);
  const std::int64_t due = counters_.owed_millionths / owed_an_update_;
  const std::int64_t updates = update.Agree(due);
  std::int64_t learned = 0;
  for (std::int64_t i = 0; i < updates; ++i) {
    const bool learns = i < due && learned == i && Draw();
    const Metrics metrics = learns ? trainer_.Learn(/*draw_next=*/i + 1 < due, update, progress)
                                   : algorithm_.Learn(/*batch=*/{}, update, progress);
    if (learns) ++learned;
    CheckMetrics(metrics, names);
    for (std::size_t k = 0; k < means.size(); ++k) means[k].second += metrics[k].second;
  }
  counters_.updates += learned;
  counters_.owed_millionths -= learned * owed_an_update_;
  trainer_.Release();  // Before the next slab is written: chunks that go are used again.
  BatchMoments moments = algorithm_.MomentsOf(slab);
  if (!moments.mean.empty()) BatchMoments::Reduce({&moments, 1}, update);
  algorithm_.ObserveMoments(moments);
  for (auto& [name, value] : means) {
    value = updates == 0 ? std::numeric_limits<double>::quiet_NaN()
                         : value / static_cast<double>(updates);
  }
  means.emplace_back(kUpdates, static_cast<double>(updates));
  means.emplace_back(kItems, static_cast<double>(table.items));
  updated_ = updates > 0;
  return means;
}

std::vector<std::string> ReplayLearner::metric_names() const {
  std::vector<std::string> names = algorithm_.metric_names();
  names.insert(names.end(), {kUpdates, kItems});
  return names;
}

// A server that came back may have lost items, and wait for more before it lets anybody draw: they
// come from slabs, so what is owed is learned later.
bool ReplayLearner::Draw() {
  const Deadline deadline = Deadline::After(patience_);
  while (!trainer_.Draw(Deadline::After(kLook))) {
    if (replay_.client().info(replay_.table()).items < items_min_) return false;
    if (deadline.expired()) {
      throw DeadlineExceeded("{}", trainer_.why_none());
    }
  }
  return true;
}

void ReplayLearner::Save(ArchiveWriter& archive) const {
  archive.Write("counters", counters_);
  replay_.Save(*writer_, archive);
}

void ReplayLearner::Load(ArchiveReader& archive) {
  archive.Read("counters", counters_);
  replay_.Load(*writer_, archive);
}

}  // namespace menger
