#include "menger/runtime/cluster/ask_nodes.h"

#include <condition_variable>
#include <memory>
#include <utility>

#include "menger/base/mutex.h"
#include "menger/runtime/cluster/node_ids.h"
#include "menger/runtime/cluster/question_letters.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{256} << 20;

// One question to one node.
class Asking final : public PeerStreamOwner {
 public:
  Asking(const NodeRecord& node, const std::string& question)
      : node_(node.id), question_(question) {}

  // Waits for it.
  NodeAnswer Take(const Deadline& deadline) {
    MutexLock lock(mutex_);
    while (!over_ && !deadline.expired()) come_.wait_for(lock.native(), deadline.slice());
    if (!over_) answer_.failure.emplace(DeadlineExceeded("it has not answered in time"));
    over_ = true;
    if (stream_ != nullptr) stream_->Close();
    return std::move(answer_);
  }
  void Fail(const Error& why) {
    const MutexLock lock(mutex_);
    if (!over_) answer_.failure.emplace(why);
    End();
  }

  // ---- As PeerStreamOwner.
  void Opened(std::shared_ptr<PeerStream> stream) override {
    // Another process may have got the address of one that has ended.
    if (stream->peer().node.node != node_) {
      stream->Close();
      return Fail(NotFound("another node answers at its address"));
    }
    stream->TrySend(std::as_bytes(std::span(question_)));
    const MutexLock lock(mutex_);
    if (over_) stream->Close();
    stream_ = std::move(stream);
  }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    const MutexLock lock(mutex_);
    for (const std::span<const std::byte> frame : frames) {
      AnswerLetter letter = DecodeAnswerLetter(frame);
      if (over_) return;
      if (letter.kind == AnswerLetter::Kind::kPiece) {
        if (answer_.text.size() + letter.text.size() > kAnswerBytesMax) {
          throw InvalidArgument("its answer has more than {} bytes", kAnswerBytesMax);
        }
        answer_.text += letter.text;
        continue;
      }
      if (letter.kind == AnswerLetter::Kind::kRefusal) {
        answer_.failure.emplace(letter.code, std::move(letter.text));
      }
      End();
      stream.Close();
    }
  }
  void Ended(PeerStream&, const Error& why) override { Fail(why); }
  void Failed(const std::string&, const Error& why) override { Fail(why); }

 private:
  void End() MENGER_REQUIRES(mutex_) {
    over_ = true;
    come_.notify_all();
  }

  const NodeId node_;
  const std::string question_;
  Mutex mutex_;
  std::condition_variable come_;  // With mutex_.
  bool over_ MENGER_GUARDED_BY(mutex_) = false;
  NodeAnswer answer_ MENGER_GUARDED_BY(mutex_);
  std::shared_ptr<PeerStream> stream_ MENGER_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<NodeAnswer> AskNodes(const ClusterAccess& access, const std::vector<NodeRecord>& nodes,
                                 const std::string& question, const Deadline& deadline) {
  std::vector<std::unique_ptr<Asking>> asked;  // Outlive the streams.
  PeerStreams streams({.own = {.node = DrawNodeId()}, .token = access.token, .tls = access.tls});
  for (const NodeRecord& node : nodes) {
    Asking& asking = *asked.emplace_back(std::make_unique<Asking>(node, question));
    try {
      streams.Connect(node.address, PeerLane::kQuestions, asking);
    } catch (const Error& error) {
      asking.Fail(error);
    }
  }
  std::vector<NodeAnswer> answers;
  for (const auto& asking : asked) answers.push_back(asking->Take(deadline));
  return answers;
}

}  // namespace menger
