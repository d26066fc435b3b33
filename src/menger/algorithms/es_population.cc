#include "menger/algorithms/es_population.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"

namespace menger {
namespace {

constexpr std::size_t kCallsAhead = 2;        // Of each worker: it never waits for the next one.
constexpr std::int64_t kChunksPerWorker = 8;  // Of a range, so that all end at about the same time.
constexpr std::int64_t kChunkMax = 64;        // Pairs.
constexpr int kLossesMax = 10;
constexpr std::chrono::minutes kPatience{10};

ObjectRef<TensorView> PutNoise(Runtime& runtime, std::int64_t entries, std::uint64_t seed) {
  const std::vector<float> table = MakeNoiseTable(entries, seed);
  return runtime.Put(ViewOf<float>({entries}, table));
}

// Whether the call would succeed elsewhere.
bool IsLoss(const TaskError& error) {
  switch (error.kind()) {
    case FailureKind::kWorkerDied:
    case FailureKind::kNodeDied:
    case FailureKind::kActorDied:
    case FailureKind::kActorUnavailable:
      return true;
    default:
      return false;
  }
}

}  // namespace

EsPopulation::EsPopulation(const EsWorkerSpec& spec, const RuntimeOptions& options,
                           std::int64_t noise_entries)
    : spec_(spec),
      runtime_(options),
      noise_object_(PutNoise(runtime_, noise_entries, spec.seed)),
      noise_(runtime_.Pin(noise_object_)) {
  for (int i = 0; i < options.workers; ++i) workers_.push_back(MakeWorker(workers_.size()));
}

ActorRef<EsWorker> EsPopulation::MakeWorker(std::size_t index) {
  return runtime_.CreateActor<EsWorker>({.name = fmt::format("es worker {}", index)}, spec_,
                                        noise_object_);
}

void EsPopulation::Play(const PairRange& range, const ObjectRef<std::vector<float>>& parameters,
                        std::vector<PairOutcome>& outcomes) {
  const std::size_t before = outcomes.size();
  outcomes.resize(before + static_cast<std::size_t>(range.count));
  std::vector<Chunk> chunks = Cut(range);
  calls_.clear();
  while (true) {
    Assign(chunks, parameters);
    if (calls_.empty()) return;
    Call call = TakeFinished();
    try {
      std::vector<PairOutcome> played = runtime_.Get(call.result);
      std::ranges::move(played, outcomes.begin() + static_cast<std::ptrdiff_t>(before) +
                                    (call.chunk.range.first - range.first));
    } catch (const TaskError& error) {
      if (!IsLoss(error) || ++call.chunk.losses > kLossesMax) throw;
      Replace(call, error);
      chunks.push_back(call.chunk);
    }
  }
}

// The last comes first.
std::vector<EsPopulation::Chunk> EsPopulation::Cut(const PairRange& range) const {
  const auto pieces = static_cast<std::int64_t>(workers_.size()) * kChunksPerWorker;
  const std::int64_t size = std::clamp<std::int64_t>(range.count / pieces, 1, kChunkMax);
  std::vector<Chunk> chunks;
  for (std::int64_t done = 0; done < range.count; done += size) {
    chunks.push_back({.range = {.iteration = range.iteration,
                                .first = range.first + done,
                                .count = std::min(size, range.count - done)}});
  }
  std::ranges::reverse(chunks);
  return chunks;
}

void EsPopulation::Assign(std::vector<Chunk>& chunks,
                          const ObjectRef<std::vector<float>>& parameters) {
  std::vector<std::size_t> under_way(workers_.size());
  for (const Call& call : calls_) ++under_way[call.worker];
  while (!chunks.empty()) {
    const auto least = std::ranges::min_element(under_way);
    if (*least == kCallsAhead) return;
    ++*least;
    const auto index = static_cast<std::size_t>(least - under_way.begin());
    const ActorRef<EsWorker>& worker = workers_[index];
    const Chunk chunk = chunks.back();
    chunks.pop_back();
    calls_.push_back({.worker = index,
                      .actor = worker.id(),
                      .chunk = chunk,
                      .result = worker.Call<&EsWorker::Play>(chunk.range, parameters)});
  }
}

EsPopulation::Call EsPopulation::TakeFinished() {
  std::vector<ObjectRef<std::vector<PairOutcome>>> results;
  for (const Call& call : calls_) results.push_back(call.result);
  const auto ready = runtime_.Wait(results, {.count = 1, .timeout = kPatience}).ready;
  if (ready.empty()) {
    throw DeadlineExceeded("none of {} es workers has finished an episode for {} minutes",
                           workers_.size(), kPatience.count());
  }
  const auto found =
      std::ranges::find(calls_, ready[0].id(), [](const Call& call) { return call.result.id(); });
  Call call = std::move(*found);
  calls_.erase(found);
  return call;
}

// Once, however many of its calls were lost.
void EsPopulation::Replace(const Call& call, const TaskError& cause) {
  if (workers_[call.worker].id() != call.actor) return;
  LogWarning("{}; another worker takes its place and plays its episodes again", cause.what());
  workers_[call.worker] = MakeWorker(call.worker);
  ++workers_replaced_;
}

}  // namespace menger
