#include "menger/replay/client/batch_source.h"

#include <chrono>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kWaitAtMost{1};  // No wait is endless: the thread looks again.

}  // namespace

BatchSource::BatchSource(std::unique_ptr<ReplaySampler> sampler, const BatchSourceOptions& options)
    : sampler_(std::move(sampler)),
      in_turn_(options.in_turn),
      sides_{
          {.gatherer = {sampler_->items(), options.items_max, options.threads, options.allocate}},
          {.gatherer = {sampler_->items(), options.items_max, options.threads, options.allocate}}} {
  if (!in_turn_) thread_.emplace(ThreadOptions{.name = "next batch"}, [this] { GatherLoop(); });
}

BatchSource::~BatchSource() {
  if (!thread_) return;
  stopping_ = true;
  asked_.Advance();
}

void BatchSource::Draw(const SampleRequest& request) {
  if (drawn_)
    throw FailedPrecondition("a batch was drawn that nobody took; Take comes before Draw");
  sampler_->SampleInto(request, sides_[next_].sample);
  drawn_ = true;
  if (!in_turn_) asked_.Advance();
}

ReplayBatch BatchSource::Take(const Deadline& deadline) {
  if (!drawn_) throw FailedPrecondition("there is no batch to take; Draw comes before Take");
  Side& side = sides_[next_];
  if (in_turn_) {
    Gather(side);
  } else {
    gathered_.WaitFor(asked_.value(), deadline.remaining());
  }
  drawn_ = false;
  next_ = 1 - next_;
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  return {.columns = side.columns, .items = side.sample.items()};
}

void BatchSource::GatherLoop() {
  for (std::uint32_t seen = 0;; ++seen) {
    while (!asked_.TryWaitFor(seen + 1, kWaitAtMost)) {
    }
    if (stopping_) return;
    Gather(sides_[seen % 2]);
    gathered_.Advance();
  }
}

void BatchSource::Gather(Side& side) {
  try {
    side.columns = side.gatherer.Gather(side.sample);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void BatchSource::Release() {
  for (int i = 0; i < 2; ++i) {
    if (!drawn_ || i != next_) sides_[i].sample.Release();
  }
}

}  // namespace menger
