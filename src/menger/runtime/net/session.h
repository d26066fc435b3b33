#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/runtime/net/frame_buffer.h"
#include "menger/runtime/net/frame_queue.h"
#include "menger/runtime/net/peer_stream.h"
#include "menger/runtime/net/transport.h"

namespace menger {

// One connection from its first byte to its last: TLS where there is some, the greeting, then
// frames. All but the functions of PeerStream is called by the thread of the io_context.
//
// Shared: by whoever has the stream, by the service, and by each operation that is under way.
class Session final : public PeerStream, public std::enable_shared_from_this<Session> {
 public:
  // What a session is made of.
  struct Parts {
    // Shared: a stream that its owner still holds may outlive the service.
    std::shared_ptr<asio::io_context> loop;
    std::unique_ptr<Transport> transport;
    Handshake::Side side = Handshake::Side::kConnector;
    PeerLane lane = PeerLane::kControl;
    std::string address;
    PeerStreamOwner* owner = nullptr;
    // It is greeted, or nothing became of it; and it is over, which is the last that it says.
    std::function<void()> on_greeted;
    std::function<void(const Session& session)> on_over;
  };
  Session(const PeerStreamOptions& options, Parts parts);

  void Start();
  // The service goes.
  void Abandon();

  // ---- As PeerStream.
  const OtherEnd& peer() const override { return peer_; }
  bool TrySend(std::span<const std::byte> head, const SharedBytes& tail) override;
  void Close() override;

 private:
  enum class Phase : std::uint8_t { kOpening, kGreeting, kLeaving, kOpen, kOver };
  using Done = Transport::Done;

  // `function(error, bytes)` when it is done; the session lives until then.
  template <typename Function>
  Done Then(Function function) {
    return [self = shared_from_this(), function](std::error_code error, std::size_t bytes) {
      function(*self, error, bytes);
    };
  }
  template <typename Function>
  void Post(Function function);
  void Await(std::chrono::milliseconds time, void (Session::*then)());

  // ---- The greeting.
  void Greet();
  void GoOnGreeting();
  void ReadGreeting();
  void TakeGreeting(std::error_code error, std::size_t bytes);
  Error GoneEarly(std::error_code error) const;
  Error TlsFailure(std::error_code error) const;
  void GiveUp();
  void Fail(const Error& why);
  void Leave(const Error& why);
  void Discard();
  void EndGreeting();

  // ---- Frames.
  void Open();
  void ReadFrames();
  void TakeFrames(std::size_t bytes);
  void WriteFrames();
  void Write(const std::vector<std::span<const std::byte>>& pieces);
  bool IsQuiet();
  void WriteAtOnce();
  void Beat();
  void Tell(FrameQueue::Added added);
  void End(const Error& why);
  void Finish();

  const PeerStreamOptions options_;
  Parts parts_;
  OtherEnd peer_;
  asio::steady_timer timer_;
  Phase phase_ = Phase::kOpening;
  bool greeting_ = true;  // on_greeted was not called.

  std::unique_ptr<Handshake> handshake_;
  std::vector<std::byte> said_;  // Of the greeting, while it is written.
  std::vector<std::byte> heard_;
  std::size_t heard_bytes_ = 0;
  bool heard_anything_ = false;
  std::size_t discarded_ = 0;
  bool reading_ = false;
  bool writing_ = false;  // Of the greeting.

  FrameBuffer arrived_;
  FrameQueue queue_;
  std::atomic<std::int64_t> sent_at_{0};  // The last frame.
  int silent_beats_ = 0;                  // Since something came.
  // Held by who writes without being the thread: that one takes it away from him.
  Mutex direct_mutex_;
  bool is_open_ MENGER_GUARDED_BY(direct_mutex_) = false;
};

}  // namespace menger
