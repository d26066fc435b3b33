#include "menger/runtime/net/session.h"

#include <fmt/format.h>

#include <asio/error.hpp>
#include <asio/post.hpp>
#include <utility>

#include "menger/base/clock.h"

namespace menger {
namespace {

// Who is refused has so long to read why, and may say so much meanwhile.
constexpr std::chrono::milliseconds kLeaveMax{1'000};
constexpr std::size_t kDiscardedMax = std::size_t{64} << 10;

// Who sends one small frame after a pause writes it himself, which spares the thread's waking.
// Where more follow, it writes them together.
constexpr std::chrono::nanoseconds kQuiet = std::chrono::microseconds(50);
constexpr std::size_t kAtOnceMax = std::size_t{16} << 10;

void DropFront(std::vector<std::span<const std::byte>>& pieces, std::size_t bytes) {
  std::size_t whole = 0;
  while (whole < pieces.size() && bytes >= pieces[whole].size()) bytes -= pieces[whole++].size();
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(whole));
  if (bytes > 0) pieces.front() = pieces.front().subspan(bytes);
}

Error Gone(std::error_code error) {
  if (error == asio::error::eof) {
    return Unavailable("the other end has closed the stream, or its process has ended");
  }
  return Unavailable("the stream is broken: {}", error.message());
}

}  // namespace

Session::Session(const PeerStreamOptions& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      timer_(*parts_.loop),
      arrived_(options.frame_bytes_max),
      queue_(options.queue_bytes_max) {
  peer_.lane = parts_.lane;
  peer_.address = parts_.address;
  peer_.accepted = parts_.side == Handshake::Side::kAcceptor;
}

// Replaces what was awaited.
void Session::Await(std::chrono::milliseconds time, void (Session::*then)()) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this(), then](std::error_code error) {
    if (!error) ((*self).*then)();
  });
}

// ---- The greeting

void Session::Start() {
  Await(options_.greeting_max, &Session::GiveUp);
  parts_.transport->Open(Then([](Session& self, std::error_code error, std::size_t) {
    if (self.phase_ != Phase::kOpening) return;
    if (error) return self.Fail(self.TlsFailure(error));
    self.Greet();
  }));
}

void Session::Greet() {
  try {
    handshake_ =
        std::make_unique<Handshake>(Handshake::Options{.side = parts_.side,
                                                       .own = options_.own,
                                                       .lane = parts_.lane,
                                                       .token = options_.token,
                                                       .binding = parts_.transport->Binding()},
                                    DrawNonce());
  } catch (const Error& error) {
    Fail(error);
    return;
  }
  phase_ = Phase::kGreeting;
  GoOnGreeting();
}

void Session::GoOnGreeting() {
  said_ = handshake_->TakeOutgoing();
  if (!said_.empty()) {
    writing_ = true;
    parts_.transport->Write({said_}, Then([](Session& self, std::error_code error, std::size_t) {
                              self.writing_ = false;
                              if (self.phase_ != Phase::kGreeting) return;
                              if (error) {
                                self.Fail(self.GoneEarly(error));
                              } else {
                                self.GoOnGreeting();
                              }
                            }));
  } else if (handshake_->done()) {
    Open();
  } else {
    heard_.resize(handshake_->wanted());
    heard_bytes_ = 0;
    ReadGreeting();
  }
}

void Session::ReadGreeting() {
  reading_ = true;
  parts_.transport->Read(std::span(heard_).subspan(heard_bytes_),
                         Then([](Session& self, std::error_code error, std::size_t bytes) {
                           self.reading_ = false;
                           self.TakeGreeting(error, bytes);
                         }));
}

void Session::TakeGreeting(std::error_code error, std::size_t bytes) {
  if (phase_ == Phase::kLeaving) return Discard();
  if (phase_ != Phase::kGreeting) return;
  if (error) return Fail(GoneEarly(error));
  heard_anything_ = true;
  heard_bytes_ += bytes;
  if (heard_bytes_ < heard_.size()) return ReadGreeting();
  try {
    handshake_->Take(heard_);
  } catch (const Error& why) {
    return Leave(why);
  }
  GoOnGreeting();
}

Error Session::TlsFailure(std::error_code error) const {
  const std::string refusal = parts_.transport->Refusal(error);
  if (!refusal.empty()) return FailedPrecondition("TLS came to nothing: {}", refusal);
  return Unavailable("TLS came to nothing: {} (does the other end use TLS?)", error.message());
}

Error Session::GoneEarly(std::error_code error) const {
  // Certificates of connectors are looked at when these have done with TLS.
  if (!parts_.transport->Refusal(error).empty()) return TlsFailure(error);
  // A process that has ended, or somebody who looks who listens.
  if (peer_.accepted && !heard_anything_) {
    return Cancelled("the other end left without having said anything");
  }
  if (error != asio::error::eof) return Gone(error);
  // A connector that has TLS begins with it.
  const bool may_want_tls = !peer_.accepted && !options_.tls.given();
  return Unavailable("the other end left before it had said who it is{}",
                     may_want_tls ? "; perhaps because it wants TLS" : "");
}

void Session::GiveUp() {
  const auto why = DeadlineExceeded("the other end did not say who it is within {} ms",
                                    options_.greeting_max.count());
  if (phase_ == Phase::kOpening) return Fail(why);
  if (phase_ != Phase::kGreeting) return;
  handshake_->GiveUp();
  Leave(why);
}

// Nobody is left to be told why.
void Session::Fail(const Error& why) {
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  phase_ = Phase::kLeaving;
  parts_.owner->Failed(peer_.address, why);
  Finish();
}

// Tells the other end, too. It is read on until it leaves: a connection that is closed with bytes
// that nobody has read takes those with it that are on their way to the other end.
void Session::Leave(const Error& why) {
  phase_ = Phase::kLeaving;
  parts_.owner->Failed(peer_.address, why);
  Await(kLeaveMax, &Session::Finish);
  if (writing_) return Finish();
  said_ = handshake_->TakeOutgoing();
  if (said_.empty()) return Finish();
  parts_.transport->Write({said_}, Then([](Session& self, std::error_code error, std::size_t) {
                            if (error || self.phase_ == Phase::kOver) return self.Finish();
                            self.parts_.transport->EndWriting();
                            if (!self.reading_) self.Discard();
                          }));
}

void Session::Discard() {
  if (phase_ == Phase::kOver || reading_) return;
  heard_.resize(kDiscardedMax);
  reading_ = true;
  parts_.transport->Read(heard_, Then([](Session& self, std::error_code error, std::size_t bytes) {
                           self.reading_ = false;
                           self.discarded_ += bytes;
                           if (error || self.discarded_ > kDiscardedMax) {
                             self.Finish();
                           } else {
                             self.Discard();
                           }
                         }));
}

void Session::EndGreeting() {
  if (std::exchange(greeting_, false)) parts_.on_greeted();
}

// ---- Frames

void Session::Open() {
  phase_ = Phase::kOpen;
  peer_.node = handshake_->peer();
  peer_.lane = handshake_->lane();
  handshake_.reset();
  EndGreeting();
  {
    const MutexLock lock(direct_mutex_);
    is_open_ = true;
  }
  Await(options_.heartbeat_every, &Session::Beat);
  parts_.owner->Opened(shared_from_this());
  ReadFrames();
}

void Session::ReadFrames() {
  if (phase_ != Phase::kOpen) return;
  parts_.transport->Read(arrived_.Room(),
                         Then([](Session& self, std::error_code error, std::size_t bytes) {
                           if (self.phase_ != Phase::kOpen) return;
                           if (error) {
                             self.End(Gone(error));
                           } else {
                             self.TakeFrames(bytes);
                           }
                         }));
}

void Session::TakeFrames(std::size_t bytes) {
  silent_beats_ = 0;
  try {
    const auto frames = arrived_.Came(bytes);
    if (!frames.empty()) parts_.owner->Arrived(*this, frames);
  } catch (...) {
    return End(TranslateCurrentException());
  }
  ReadFrames();
}

void Session::WriteFrames() {
  if (phase_ != Phase::kOpen) return;
  const std::vector<std::span<const std::byte>> pieces = queue_.Next();
  if (!pieces.empty()) Write(pieces);
}

void Session::Write(const std::vector<std::span<const std::byte>>& pieces) {
  if (phase_ != Phase::kOpen) return;
  parts_.transport->Write(pieces, Then([](Session& self, std::error_code error, std::size_t) {
                            const bool has_room = self.queue_.Written();
                            if (self.phase_ != Phase::kOpen) return;
                            if (error) return self.End(Gone(error));
                            if (has_room) self.parts_.owner->HasRoom(self);
                            self.WriteFrames();
                          }));
}

// Beats are counted and no time: a process that was stopped for a while finds what came meanwhile
// before it complains.
void Session::Beat() {
  if (phase_ != Phase::kOpen) return;
  if (++silent_beats_ > options_.silence_max / options_.heartbeat_every) {
    return End(
        DeadlineExceeded("nothing came over the stream for {} ms", options_.silence_max.count()));
  }
  Tell(queue_.AddBeat());
  Await(options_.heartbeat_every, &Session::Beat);
}

bool Session::TrySend(std::span<const std::byte> head, const SharedBytes& tail) {
  const std::size_t bytes = head.size() + tail.size();
  if (bytes == 0 || bytes > options_.frame_bytes_max) {
    throw InvalidArgument("a frame of {} bytes cannot be sent; it must have from 1 to {}", bytes,
                          options_.frame_bytes_max);
  }
  const bool at_once = IsQuiet() && bytes <= kAtOnceMax;
  const FrameQueue::Added added = queue_.Add(head, tail);
  if (at_once && added == FrameQueue::Added::kFirst) {
    WriteAtOnce();
  } else {
    Tell(added);
  }
  return added != FrameQueue::Added::kRefused;
}

bool Session::IsQuiet() {
  const std::int64_t now = MonotonicNanoseconds();
  return now - sent_at_.exchange(now, std::memory_order_relaxed) >= kQuiet.count();
}

// Any thread: it has found nothing under way, so until the queue has nothing left it is the one
// that writes. What does not go at once it leaves to the stream's thread.
void Session::WriteAtOnce() {
  std::vector<std::span<const std::byte>> pieces = queue_.Next();
  {
    const MutexLock lock(direct_mutex_);
    if (is_open_) DropFront(pieces, parts_.transport->WriteNow(pieces));
  }
  if (pieces.empty()) {
    if (queue_.Written()) Post([](Session& self) { self.parts_.owner->HasRoom(self); });
    pieces = queue_.Next();
  }
  if (!pieces.empty()) Post([pieces](Session& self) { self.Write(pieces); });
}

// Any thread. Weak: where the service has ended nobody comes to what is posted, and the session
// keeps the loop.
template <typename Function>
void Session::Post(Function function) {
  asio::post(*parts_.loop, [weak = weak_from_this(), function] {
    if (const std::shared_ptr<Session> self = weak.lock()) function(*self);
  });
}

// Also from its own thread not at once: what is sent by the same call goes with it.
void Session::Tell(FrameQueue::Added added) {
  if (added == FrameQueue::Added::kFirst) Post([](Session& self) { self.WriteFrames(); });
}

void Session::Close() {
  queue_.Close();
  Post([](Session& self) { self.End(Cancelled("this end has closed the stream")); });
}

void Session::Abandon() {
  if (phase_ == Phase::kOpen) return End(Cancelled("this end has closed all its streams"));
  if (phase_ != Phase::kLeaving && phase_ != Phase::kOver) {
    return Fail(Cancelled("this end has closed all its streams"));
  }
  Finish();
}

void Session::End(const Error& why) {
  if (phase_ != Phase::kOpen) return;
  phase_ = Phase::kLeaving;
  queue_.Close();
  parts_.owner->Ended(*this, why);
  Finish();
}

void Session::Finish() {
  if (phase_ == Phase::kOver) return;
  phase_ = Phase::kOver;
  timer_.cancel();
  {
    const MutexLock lock(direct_mutex_);
    is_open_ = false;
    parts_.transport->Close();
  }
  EndGreeting();
  parts_.on_over(*this);
}

}  // namespace menger
