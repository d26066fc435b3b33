#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "menger/base/error.h"
#include "menger/runtime/net/handshake.h"
#include "menger/runtime/values/shared_bytes.h"

namespace menger {

// Who is at the other end of a stream: he knows the token.
struct OtherEnd {
  NodeLife node;
  PeerLane lane = PeerLane::kControl;
  std::string address;  // As it was asked for, or where he comes from.
  bool accepted = false;
};

// One end of a connection to another node: frames, each from 1 byte on, go both ways in order,
// until it ends, which may lose any of the last ones. It does not come back by itself: above it
// PeerLink sends again what was lost, over the stream that its owner opens next.
//
// All functions may be called on any thread.
class PeerStream {
 public:
  virtual ~PeerStream() = default;

  virtual const OtherEnd& peer() const = 0;

  // `head` is copied; `tail` follows it in the same frame, and is sent from where it lies. Never
  // waits: false where so much waits to be sent that there is no room (PeerStreamOwner::HasRoom
  // follows), or the stream has ended. After a pause a small one is written at once; of what
  // follows all that is sent before the stream's thread comes to it goes in one system call. Throws
  // InvalidArgument for an empty frame and one that is too long.
  virtual bool TrySend(std::span<const std::byte> head, const SharedBytes& tail = {}) = 0;

  // PeerStreamOwner::Ended follows, unless it has been called. What waits to be sent is dropped.
  virtual void Close() = 0;

 protected:
  PeerStream() = default;
  PeerStream(const PeerStream&) = default;
  PeerStream& operator=(const PeerStream&) = default;
};

// Who opens streams, or has others do so, and is told of them: everything by the one thread of the
// PeerStreams, which serves nobody else meanwhile. So nothing here waits, and a lock that it
// takes is not held by who waits for a stream. It lives until the service has ended.
class PeerStreamOwner {
 public:
  virtual ~PeerStreamOwner() = default;

  // It was greeted as the greeting wants it: each end has the token. Shared: the service drops it
  // when it has ended, and the owner when he likes.
  virtual void Opened(std::shared_ptr<PeerStream> stream) = 0;
  // All that had come when the thread looked. The bytes are valid until it returns. An Error ends
  // the stream as its cause.
  virtual void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) = 0;
  // TrySend had refused, and half of the room is free again.
  virtual void HasRoom(PeerStream& /*stream*/) {}
  // Once, and the last call for it: Unavailable where the other end has gone, DeadlineExceeded
  // where nothing came from it for too long, Cancelled where this end has closed it,
  // InvalidArgument for what came that is no frame.
  virtual void Ended(PeerStream& stream, const Error& why) = 0;
  // Nothing became of a connection, to `address` or from there; instead of Opened. NotFound: the
  // machine there says that nobody listens. Cancelled: this end has closed it, or the other has
  // left it without a word.
  virtual void Failed(const std::string& address, const Error& why) = 0;
};

}  // namespace menger
