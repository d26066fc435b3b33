#include "menger/runtime/cluster/question_server.h"

#include <algorithm>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/runtime/cluster/question_letters.h"

namespace menger {

QuestionServer::QuestionServer(Answer answer, QuestionServerOptions options)
    : answer_(std::move(answer)),
      options_(options),
      thread_({.name = "questions"}, [this] { Run(); }) {}

QuestionServer::~QuestionServer() { Stop(); }

void QuestionServer::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  thread_.Join();
}

// ---- The streams.

std::shared_ptr<QuestionServer::Asker> QuestionServer::Find(const PeerStream& stream) {
  const auto found = askers_.find(&stream);
  return found != askers_.end() ? found->second : nullptr;
}

void QuestionServer::End(Asker& asker) {
  asker.over = true;
  for (const std::vector<std::byte>& frame : asker.waiting) waiting_bytes_ -= frame.size();
  asker.waiting.clear();
}

void QuestionServer::MakeRoom(std::int64_t now) {
  for (auto asker = askers_.begin(); asker != askers_.end();) {
    if (now - asker->second->since < options_.answer_max.count()) {
      ++asker;
      continue;
    }
    End(*asker->second);
    asker->second->stream->Close();
    asker = askers_.erase(asker);
  }
}

void QuestionServer::Opened(std::shared_ptr<PeerStream> stream) {
  const std::int64_t now = MonotonicNanoseconds();
  const MutexLock lock(mutex_);
  if (askers_.size() >= options_.streams_max) MakeRoom(now);
  if (askers_.size() >= options_.streams_max || stopping_) return stream->Close();
  const PeerStream* const key = stream.get();
  askers_.emplace(key, std::make_shared<Asker>(Asker{.stream = std::move(stream), .since = now}));
}

void QuestionServer::Arrived(PeerStream& stream,
                             std::span<const std::span<const std::byte>> frames) {
  const MutexLock lock(mutex_);
  const std::shared_ptr<Asker> asker = Find(stream);
  if (asker == nullptr) return;
  for (const std::span<const std::byte> frame : frames) {
    if (std::exchange(asker->asked, true)) {
      throw InvalidArgument("a stream of the lane 'questions' has more than one");
    }
    questions_.emplace_back(asker, DecodeQuestionText(frame));
  }
  asked_.notify_all();
}

void QuestionServer::HasRoom(PeerStream& stream) {
  const MutexLock lock(mutex_);
  const std::shared_ptr<Asker> asker = Find(stream);
  if (asker == nullptr) return;
  while (!asker->waiting.empty() && stream.TrySend(asker->waiting.front())) {
    waiting_bytes_ -= asker->waiting.front().size();
    asker->waiting.pop_front();
  }
}

void QuestionServer::Ended(PeerStream& stream) {
  const MutexLock lock(mutex_);
  if (const std::shared_ptr<Asker> asker = Find(stream)) End(*asker);
  askers_.erase(&stream);
}

// ---- The thread that answers.

void QuestionServer::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (questions_.empty()) {
      asked_.wait(lock.native());
      continue;
    }
    const auto [asker, question] = std::move(questions_.front());
    questions_.pop_front();
    if (asker->over) continue;
    lock.Unlock();
    AnswerTo(*asker, question);
    lock.Lock();
  }
}

void QuestionServer::AnswerTo(Asker& asker, std::string_view question) {
  AnswerLetter last{.kind = AnswerLetter::Kind::kEnd};
  try {
    answer_(question, [&](std::string_view rest) {
      while (!rest.empty()) {
        const std::string_view piece = rest.substr(0, kAnswerPieceMax);
        rest.remove_prefix(piece.size());
        Say(asker, Encode({.kind = AnswerLetter::Kind::kPiece, .text = std::string(piece)}));
      }
    });
  } catch (...) {
    const Error error = TranslateCurrentException();
    last = {.kind = AnswerLetter::Kind::kRefusal,
            .code = error.code(),
            .text = std::string(std::string_view(error.what()).substr(0, kAnswerPieceMax))};
  }
  try {
    Say(asker, Encode(last));
  } catch (...) {
    asker.stream->Close();  // By which he learns that no more comes.
  }
}

// Throws Unavailable where there is no more room, or nobody to read it.
void QuestionServer::Say(Asker& asker, std::vector<std::byte> frame) {
  const MutexLock lock(mutex_);
  if (asker.over || stopping_) throw Unavailable("who asked is gone");
  if (asker.waiting.empty() && asker.stream->TrySend(frame)) return;
  if (waiting_bytes_ + frame.size() > options_.waiting_bytes_max) {
    throw Unavailable("too many answers wait to be read");
  }
  waiting_bytes_ += frame.size();
  asker.waiting.push_back(std::move(frame));
}

}  // namespace menger
