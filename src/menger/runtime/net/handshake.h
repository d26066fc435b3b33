#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/net/token_proof.h"
#include "menger/runtime/values/ids.h"

namespace menger {

// What a stream is for. Two nodes have two (peer_link.h): values never delay what they tell each
// other.
enum class PeerLane : std::uint8_t {
  kControl,
  kBulk,
  kStore,  // Questions to the control store of the acceptor, also of who is no node yet (epoch 0).
  kFiles,  // Of the program whose calls the acceptor makes.
  kQuestions,  // What the acceptor says of itself (question_server.h), also to who is no node.
};
inline constexpr PeerLane kLastPeerLane = PeerLane::kQuestions;
const char* PeerLaneName(PeerLane lane);

// A node in one of its lives.
struct NodeLife {
  NodeId node;
  std::uint64_t epoch = 0;

  bool operator==(const NodeLife&) const = default;
};

// What the two ends of a stream say before its first frame. Who connects is the connector.
//
//   connector: magic, version | lane, node, epoch, nonce       what it is
//   acceptor:  magic, version, verdict | node, epoch, nonce    likewise, or why it refuses
//   connector: proof                                           that it knows the token
//   acceptor:  verdict | proof                                 likewise, or why it refuses
//
// All of it has a fixed length and is looked at in these pieces, the first of which are the same in
// all versions. The proofs sign everything that was said before, and `binding`, which only the two
// ends of one TLS connection know: nobody in between can pass them on. The connector proves first,
// so that an acceptor gives nothing away that a token could be guessed by.
//
// No I/O, no clock. Neither side needs a token, but both need the same.
class Handshake {
 public:
  static constexpr std::uint32_t kVersion = 3;

  enum class Side : std::uint8_t { kConnector, kAcceptor };
  struct Options {
    Side side = Side::kConnector;
    NodeLife own;
    PeerLane lane = PeerLane::kControl;  // The connector's; the acceptor is told.
    std::string token;
    std::vector<std::byte> binding;
    std::uint32_t version = kVersion;  // Tests have another.
  };
  Handshake(Options options, const Nonce& nonce);

  // So many bytes are to be read next; 0: it is over.
  std::size_t wanted() const { return wanted_; }
  // To be written before anything is read, also where Take has thrown: what the other end is told.
  std::vector<std::byte> TakeOutgoing() { return std::exchange(outgoing_, {}); }
  // wanted() bytes have come. Throws what is wrong with them, or why the other end refuses:
  // InvalidArgument where no later attempt will do better, FailedPrecondition for a wrong token. It
  // is over then.
  void Take(std::span<const std::byte> bytes);
  // Nothing has come for too long, or not all: the other end shall know.
  void GiveUp();

  bool done() const { return step_ == Step::kDone; }
  // Once it is done.
  const NodeLife& peer() const { return peer_; }
  PeerLane lane() const { return options_.lane; }

 private:
  enum class Step : std::uint8_t { kPrologue, kIdentity, kProof, kWelcome, kDone, kFailed };
  enum class Verdict : std::uint8_t {
    kWelcome,
    kNoHello,
    kWrongVersion,
    kWrongIdentity,
    kWrongToken,
    kTooLate,
  };

  void Await(Step step);
  void Say(std::span<const std::byte> bytes);
  void Refuse(Verdict verdict);
  [[noreturn]] void Fail(Verdict verdict, const Error& error);
  [[noreturn]] void FailRefused(Verdict verdict);
  void TakePrologue(std::span<const std::byte> bytes);
  void TakeIdentity(std::span<const std::byte> bytes);
  void TakeProof(std::span<const std::byte> bytes);
  void TakeWelcome(std::span<const std::byte> bytes);
  void SayIdentity();
  TokenProof ProofOf(Side side) const;
  bool accepts() const { return options_.side == Side::kAcceptor; }

  Options options_;
  const Nonce nonce_;
  Step step_ = Step::kPrologue;
  std::size_t wanted_ = 0;
  std::uint32_t peer_version_ = 0;
  NodeLife peer_;
  std::vector<std::byte> outgoing_;
  // What was said, by the connector and then by the acceptor.
  std::vector<std::byte> of_connector_;
  std::vector<std::byte> of_acceptor_;
};

}  // namespace menger
