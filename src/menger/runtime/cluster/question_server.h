#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/function_ref.h"
#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/runtime/net/peer_stream.h"

namespace menger {

struct QuestionServerOptions {
  std::size_t streams_max = 16;  // Who comes when so many ask is turned away.
  // Of all answers that are not read yet. Whose answer would need more is refused.
  std::size_t waiting_bytes_max = std::size_t{256} << 20;
  // Who has not read his answer by then makes room for others.
  std::chrono::nanoseconds answer_max = std::chrono::minutes(1);
};

// A process's end of the lane kQuestions: says of itself what others want to know, one question a
// stream. So looking at a cluster costs its control store one reading of who is there, and nothing
// while nobody looks.
//
// One thread makes all answers; they are kept until they are read, so who reads slowly keeps nobody
// waiting. What is asked and answered is in question_letters.h.
//
// It is no PeerStreamOwner but part of one, who passes on what concerns its lane.
class QuestionServer {
 public:
  // Writes the answer piece by piece; what it throws is told to who asked.
  using Answer = std::function<void(std::string_view question,
                                    FunctionRef<void(std::string_view piece)> write)>;

  explicit QuestionServer(Answer answer, QuestionServerOptions options = {});
  ~QuestionServer();  // Stops.
  QuestionServer(const QuestionServer&) = delete;
  QuestionServer& operator=(const QuestionServer&) = delete;

  // Nothing is answered any longer, and `answer` does not run.
  void Stop();

  // ---- As PeerStreamOwner's, by the thread of the streams.
  void Opened(std::shared_ptr<PeerStream> stream);
  // Throws InvalidArgument for more than one question.
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames);
  void HasRoom(PeerStream& stream);
  void Ended(PeerStream& stream);

 private:
  struct Asker {
    std::shared_ptr<PeerStream> stream;
    std::int64_t since = 0;
    bool asked = false;
    bool over = false;
    std::deque<std::vector<std::byte>> waiting;  // What the stream had no room for.
  };

  void Run();
  void AnswerTo(Asker& asker, std::string_view question);
  void Say(Asker& asker, std::vector<std::byte> frame);
  void End(Asker& asker) MENGER_REQUIRES(mutex_);
  void MakeRoom(std::int64_t now) MENGER_REQUIRES(mutex_);
  std::shared_ptr<Asker> Find(const PeerStream& stream) MENGER_REQUIRES(mutex_);

  const Answer answer_;
  const QuestionServerOptions options_;
  Mutex mutex_;
  std::condition_variable asked_;  // With mutex_.
  bool stopping_ MENGER_GUARDED_BY(mutex_) = false;
  std::map<const PeerStream*, std::shared_ptr<Asker>> askers_ MENGER_GUARDED_BY(mutex_);
  std::deque<std::pair<std::shared_ptr<Asker>, std::string>> questions_ MENGER_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ MENGER_GUARDED_BY(mutex_) = 0;
  Thread thread_;
};

}  // namespace menger
