#include "menger/runtime/cluster/node_streams.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "menger/base/clock.h"
#include "menger/runtime/net/peer_stream_testing.h"

namespace menger {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What lies between a node and those who connect to it: passes on what comes, unless it is cut.
class Relay {
 public:
  explicit Relay(std::string to) : to_(std::move(to)), thread_([this] { Run(); }) {}
  ~Relay() { stopping_ = true; }

  const std::string& address() const { return listening_.address(); }
  // Ends what goes through it, and whatever comes, until it is whole again.
  void Cut(bool cut) { cut_ = cut; }

 private:
  struct Pair {
    FileDescriptor from;
    FileDescriptor to;
  };

  void Run() {
    while (!stopping_) {
      if (std::optional<FileDescriptor> came = listening_.Accept(); came && !cut_) {
        pairs_.push_back({std::move(*came), ConnectTcpSocket(to_, Deadline::After(seconds(10)))});
      }
      if (cut_) pairs_.clear();
      pairs_.remove_if(
          [](Pair& pair) { return !Pass(pair.from, pair.to) || !Pass(pair.to, pair.from); });
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  // False: it has ended.
  static bool Pass(const FileDescriptor& from, const FileDescriptor& to) {
    char bytes[4096];
    const ssize_t came = recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (came < 0) return errno == EAGAIN || errno == EINTR;
    return came > 0 && send(to.get(), bytes, static_cast<std::size_t>(came), MSG_NOSIGNAL) == came;
  }

  const std::string to_;
  const ListeningTcpSocket listening_{"127.0.0.1:0"};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> cut_{false};
  std::list<Pair> pairs_;
  std::jthread thread_;
};

// A node that has streams, and nothing else; what it was told, in words.
class StreamNode final : public PeerStreamOwner {
 public:
  StreamNode(std::uint64_t number, std::chrono::nanoseconds unreachable_after)
      : life_(OptionsOfNode(number).own),
        nodes_(streams_, life_, HooksOf(),
               {.pause = milliseconds(5),
                .pause_max = milliseconds(20),
                .pause_max_of_lost = milliseconds(20),
                .unreachable_after = unreachable_after}),
        streams_(OptionsOfNode(number)),
        relay_(streams_.Listen("127.0.0.1:0", *this)),
        tending_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            nodes_.Tend(MonotonicNanoseconds());
            std::this_thread::sleep_for(milliseconds(2));
          }
        }) {}

  Relay& relay() { return relay_; }
  void Meet(const StreamNode& other) {
    nodes_.Meet(other.life_, other.relay_.address(), MonotonicNanoseconds());
  }
  void Say(const StreamNode& to, std::uint64_t loan) {
    nodes_.Send({{.node = to.life_,
                  .packet = {.number = 1,
                             .letter = std::make_shared<NodeLetter>(
                                 NodeLetter{.kind = NodeLetter::Kind::kRecall, .loan = loan})}}});
  }

  // Whether it is told that so often, from then on when it was asked last.
  bool Hears(const std::string& what, std::size_t count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kStreamPatience, [&] {
      return static_cast<std::size_t>(std::ranges::count(told_, what)) >= count;
    });
  }
  std::size_t Count(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(told_, what));
  }

  void Opened(std::shared_ptr<PeerStream> stream) override {
    IsOfNodes(*stream) ? nodes_.Opened(std::move(stream)) : stream->Close();
  }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    if (IsOfNodes(stream)) nodes_.Arrived(stream, frames);
  }
  void Ended(PeerStream& stream, const Error& why) override {
    if (IsOfNodes(stream)) nodes_.Ended(stream, why);
  }
  void Failed(const std::string&, const Error&) override {}

 private:
  static bool IsOfNodes(const PeerStream& stream) { return stream.peer().lane <= PeerLane::kBulk; }

  NodeStreams::Hooks HooksOf() {
    return {.on_packets =
                [this](std::vector<Neighbours::Flying> packets) {
                  for (const auto& flying : packets) {
                    Note(fmt::format("loan {}", flying.packet.letter->loan));
                  }
                },
            .on_opened = [this](const NodeLife&, PeerLane lane) { Note(PeerLaneName(lane)); },
            .on_doubt = [] {},
            .on_unreachable = [this](const NodeLife&,
                                     const std::string& why) { Note("unreachable"), Note(why); },
            .on_found =
                [this](const NodeLife&) {
                  Note("found");
                  return true;
                }};
  }
  void Note(std::string what) {
    const std::lock_guard lock(mutex_);
    told_.push_back(std::move(what));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> told_;
  const NodeLife life_;
  NodeStreams nodes_;
  PeerStreams streams_;  // Ends before what it tells.
  Relay relay_;
  std::jthread tending_;
};

void Cut(StreamNode& one, StreamNode& other, bool cut) {
  one.relay().Cut(cut);
  other.relay().Cut(cut);
}

void ExpectThatTheyTalk(StreamNode& one, StreamNode& other, std::uint64_t loan,
                        std::size_t opened) {
  for (StreamNode* const node : {&one, &other}) {
    for (const char* const lane : {"control", "bulk"}) EXPECT_TRUE(node->Hears(lane, opened));
  }
  one.Say(other, loan);
  EXPECT_TRUE(other.Hears(fmt::format("loan {}", loan)));
  other.Say(one, loan);
  EXPECT_TRUE(one.Hears(fmt::format("loan {}", loan)));
}

TEST(NodeStreamsTest, AShortCutEndsNothing) {
  StreamNode one(1, kStreamPatience);
  StreamNode other(2, kStreamPatience);
  one.Meet(other);
  other.Meet(one);
  ExpectThatTheyTalk(one, other, 1, 1);
  Cut(one, other, true);
  std::this_thread::sleep_for(milliseconds(100));
  Cut(one, other, false);
  ExpectThatTheyTalk(one, other, 2, 2);
  EXPECT_EQ(one.Count("unreachable") + other.Count("unreachable"), 0U);
}

TEST(NodeStreamsTest, NodesThatGaveEachOtherUpMeetAgain) {
  StreamNode one(1, milliseconds(200));
  StreamNode other(2, milliseconds(300));
  one.Meet(other);
  other.Meet(one);
  ExpectThatTheyTalk(one, other, 1, 1);
  for (const std::size_t round : {1, 2}) {
    Cut(one, other, true);
    EXPECT_TRUE(one.Hears("unreachable", round));
    EXPECT_TRUE(other.Hears("unreachable", round));
    Cut(one, other, false);
    EXPECT_TRUE(one.Hears("found", round));
    EXPECT_TRUE(other.Hears("found", round));
    ExpectThatTheyTalk(one, other, 1 + round, 1 + round);
  }
}

// From either end, since one connects and the other is connected to.
class OneSidedTest : public testing::TestWithParam<int> {};

TEST_P(OneSidedTest, WhoWasGivenUpHearsSoAndIsMetAgain) {
  StreamNode one(1, GetParam() == 1 ? milliseconds(200) : kStreamPatience);
  StreamNode other(2, GetParam() == 2 ? milliseconds(200) : kStreamPatience);
  one.Meet(other);
  other.Meet(one);
  ExpectThatTheyTalk(one, other, 1, 1);
  StreamNode& impatient = GetParam() == 1 ? one : other;
  StreamNode& patient = GetParam() == 1 ? other : one;
  Cut(one, other, true);
  EXPECT_TRUE(impatient.Hears("unreachable"));
  EXPECT_EQ(patient.Count("unreachable"), 0U);
  Cut(one, other, false);
  EXPECT_TRUE(patient.Hears("it could not reach this node for too long, and gave it up"));
  EXPECT_TRUE(impatient.Hears("found"));
  EXPECT_TRUE(patient.Hears("found"));
  ExpectThatTheyTalk(one, other, 2, 2);
  EXPECT_EQ(one.Count("unreachable") + other.Count("unreachable"), 2U);
}

INSTANTIATE_TEST_SUITE_P(Ends, OneSidedTest, testing::Values(1, 2));

}  // namespace
}  // namespace menger
