#include "menger/training/thread_roles.h"

#include <algorithm>
#include <thread>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::chrono::minutes kBetween{10};  // For an update that is under way to end.

}  // namespace

PipelineNews ThreadRoles::Look(std::chrono::nanoseconds time) {
  if (!threads_) threads_.emplace(learner(), collectors(), inference());
  std::this_thread::sleep_for(time);
  PipelineNews news = News();
  news.learner = threads_->learner.status();
  for (const auto& thread : threads_->collectors) news.collectors.push_back(thread->status());
  if (threads_->inference) news.others.push_back(threads_->inference->status());
  // A learner that ended has failed, too, where it was not done; Stop tells.
  const auto ended = [](const RoleStatus& role) { return role.ended; };
  news.failed = std::ranges::any_of(news.others, ended) ||
                (news.steps < experiment().steps && std::ranges::any_of(news.collectors, ended));
  return news;
}

std::shared_ptr<const ParameterBlob> ThreadRoles::Save(ArchiveWriter& archive, bool with_replay) {
  std::shared_ptr<const ParameterBlob> saved;
  const auto save = [&] {
    learner().Publish();
    saved = SaveNow(archive, with_replay);
  };
  if (threads_) {
    threads_->learner.Between(save, Deadline::After(kBetween));
  } else {
    save();
  }
  return saved;
}

void ThreadRoles::Stop() {
  if (!threads_ || std::exchange(stopped_, true)) return;
  threads_->learner.Stop();
  for (const auto& collector : threads_->collectors) collector->Stop();
  try {
    threads_->learner.Join();
  } catch (const Error& error) {
    throw RoleFailed(error, /*learner=*/true);
  }
  std::optional<RoleFailed> failed = JoinCollectors();
  if (threads_->inference) {
    threads_->inference->Stop();
    try {
      threads_->inference->Join();
    } catch (const Error& error) {  // Which is why those who ask it have failed, too.
      failed.emplace(error, /*learner=*/false);
    }
  }
  if (failed) throw RoleFailed(*failed);
}

std::optional<RoleFailed> ThreadRoles::JoinCollectors() {
  std::optional<RoleFailed> failed;
  for (std::size_t i = 0; i < collectors().size(); ++i) {
    try {
      threads_->collectors[i]->Join();
    } catch (const Error& error) {
      // A worker that hangs cannot be joined: until the process ends nobody destroys it.
      if (error.code() == ErrorCode::kDeadlineExceeded) (void)collectors()[i].release();
      if (!failed) failed.emplace(error, /*learner=*/false);
    }
  }
  return failed;
}

}  // namespace menger
