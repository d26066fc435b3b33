#include "menger/runtime/net/handshake.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

constexpr std::string_view kMagic = "MENGERnt";
constexpr std::size_t kPrologueBytes = kMagic.size() + sizeof(std::uint32_t);
constexpr std::size_t kIdentityBytes = 3 * sizeof(std::uint64_t) + kNonceBytes;

// What a TLS end says first where it gets something else, or greets.
bool LooksLikeTls(std::span<const std::byte> bytes) {
  return (bytes[0] == std::byte{0x15} || bytes[0] == std::byte{0x16}) && bytes[1] == std::byte{3};
}

}  // namespace

const char* PeerLaneName(PeerLane lane) {
  constexpr std::array<const char*, 5> kNames = {"control", "bulk", "store", "files", "questions"};
  return kNames.at(static_cast<std::size_t>(lane));
}

Handshake::Handshake(Options options, const Nonce& nonce)
    : options_(std::move(options)), nonce_(nonce) {
  Await(Step::kPrologue);
  if (!accepts()) SayIdentity();
}

void Handshake::Await(Step step) {
  step_ = step;
  switch (step) {
    case Step::kPrologue:  // Of the acceptor a verdict, of the connector a lane.
      wanted_ = kPrologueBytes + 1;
      break;
    case Step::kIdentity:
      wanted_ = kIdentityBytes;
      break;
    case Step::kProof:
      wanted_ = kProofBytes;
      break;
    case Step::kWelcome:
      wanted_ = 1 + kProofBytes;
      break;
    case Step::kDone:
    case Step::kFailed:
      wanted_ = 0;
      break;
  }
}

void Handshake::Say(std::span<const std::byte> bytes) {
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
}

void Handshake::SayIdentity() {
  WireWriter writer;
  writer.AddBytes(std::as_bytes(std::span(kMagic)));
  writer.Add(options_.version);
  writer.Add(static_cast<std::uint8_t>(accepts() ? static_cast<std::uint8_t>(Verdict::kWelcome)
                                                 : static_cast<std::uint8_t>(options_.lane)));
  writer.Add(options_.own.node);
  writer.Add(options_.own.epoch);
  writer.AddBytes(nonce_);
  (accepts() ? of_acceptor_ : of_connector_) = writer.Take();
  Say(accepts() ? of_acceptor_ : of_connector_);
}

// As long as what the connector awaits, so that it need not know what goes wrong here.
void Handshake::Refuse(Verdict verdict) {
  if (!accepts()) return;
  WireWriter writer;
  if (step_ == Step::kPrologue || step_ == Step::kIdentity) {
    writer.AddBytes(std::as_bytes(std::span(kMagic)));
    writer.Add(options_.version);
  }
  writer.Add(static_cast<std::uint8_t>(verdict));
  if (step_ == Step::kProof) writer.AddBytes(TokenProof{});
  Say(writer.bytes());
}

void Handshake::Fail(Verdict verdict, const Error& error) {
  Refuse(verdict);
  Await(Step::kFailed);
  throw error;
}

void Handshake::GiveUp() {
  if (step_ == Step::kDone || step_ == Step::kFailed) return;
  Refuse(Verdict::kTooLate);
  Await(Step::kFailed);
}

void Handshake::FailRefused(Verdict verdict) {
  Await(Step::kFailed);
  switch (verdict) {
    case Verdict::kWelcome:
      break;
    case Verdict::kNoHello:
      throw InvalidArgument("it took what this node said for no greeting of a node");
    case Verdict::kWrongVersion:
      throw InvalidArgument("it speaks version {} of the streams between nodes, this node {}",
                            peer_version_, options_.version);
    case Verdict::kWrongIdentity:
      throw InvalidArgument("it refused this node's name or lane");
    case Verdict::kWrongToken:
      throw FailedPrecondition(
          "it has another cluster token than this process{}; nodes and programs must be given the "
          "same",
          options_.token.empty() ? ", which was given none" : "");
    case Verdict::kTooLate:
      throw DeadlineExceeded("it has waited for too long for what this node had to say");
  }
  throw InvalidArgument("it refused this node for a reason that this version does not know ({})",
                        static_cast<int>(verdict));
}

void Handshake::Take(std::span<const std::byte> bytes) {
  if (bytes.size() != wanted_) {
    throw Internal("a handshake was given {} bytes instead of {}", bytes.size(), wanted_);
  }
  switch (step_) {
    case Step::kPrologue:
      return TakePrologue(bytes);
    case Step::kIdentity:
      return TakeIdentity(bytes);
    case Step::kProof:
      return TakeProof(bytes);
    case Step::kWelcome:
      return TakeWelcome(bytes);
    case Step::kDone:
    case Step::kFailed:
      break;
  }
}

void Handshake::TakePrologue(std::span<const std::byte> bytes) {
  WireReader reader("a greeting", bytes);
  const std::span<const std::byte> magic = reader.TakeBytes(kMagic.size(), "magic");
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kMagic)))) {
    Fail(Verdict::kNoHello,
         LooksLikeTls(bytes)
             ? InvalidArgument("it speaks TLS, and this node was given no certificate")
             : InvalidArgument("what it said first is no greeting of a node"));
  }
  peer_version_ = reader.Take<std::uint32_t>("version");
  const auto verdict_or_lane = reader.Take<std::uint8_t>("verdict");
  if (!accepts() && verdict_or_lane != static_cast<std::uint8_t>(Verdict::kWelcome)) {
    FailRefused(static_cast<Verdict>(verdict_or_lane));
  }
  if (peer_version_ != options_.version) {
    Fail(Verdict::kWrongVersion,
         InvalidArgument("it speaks version {} of the streams between nodes, this node {}",
                         peer_version_, options_.version));
  }
  if (accepts()) {
    if (verdict_or_lane > static_cast<std::uint8_t>(kLastPeerLane)) {
      Fail(Verdict::kWrongIdentity,
           InvalidArgument("it wants lane {}; there are 0 to {}", verdict_or_lane,
                           static_cast<int>(kLastPeerLane)));
    }
    options_.lane = static_cast<PeerLane>(verdict_or_lane);
  }
  (accepts() ? of_connector_ : of_acceptor_).assign(bytes.begin(), bytes.end());
  Await(Step::kIdentity);
}

void Handshake::TakeIdentity(std::span<const std::byte> bytes) {
  WireReader reader("a greeting", bytes);
  static_cast<Id&>(peer_.node) = reader.TakeId("node");
  peer_.epoch = reader.Take<std::uint64_t>("epoch");
  if (!peer_.node.valid()) {
    Fail(Verdict::kWrongIdentity, InvalidArgument("it does not say which node it is"));
  }
  std::vector<std::byte>& said = accepts() ? of_connector_ : of_acceptor_;
  said.insert(said.end(), bytes.begin(), bytes.end());
  if (accepts()) {
    SayIdentity();
    Await(Step::kProof);
  } else {
    Say(ProofOf(Side::kConnector));
    Await(Step::kWelcome);
  }
}

TokenProof Handshake::ProofOf(Side side) const {
  const std::array<std::span<const std::byte>, 3> said = {of_connector_, of_acceptor_,
                                                          options_.binding};
  return ProveToken(options_.token, side == Side::kConnector ? "connector" : "acceptor", said);
}

void Handshake::TakeProof(std::span<const std::byte> bytes) {
  if (!SameProof(bytes, ProofOf(Side::kConnector))) {
    Fail(Verdict::kWrongToken,
         FailedPrecondition("it has another cluster token than this process; nodes and programs "
                            "must be given the same"));
  }
  WireWriter writer;
  writer.Add(static_cast<std::uint8_t>(Verdict::kWelcome));
  writer.AddBytes(ProofOf(Side::kAcceptor));
  Say(writer.bytes());
  Await(Step::kDone);
}

void Handshake::TakeWelcome(std::span<const std::byte> bytes) {
  const auto verdict = std::to_integer<std::uint8_t>(bytes[0]);
  if (verdict != static_cast<std::uint8_t>(Verdict::kWelcome)) {
    FailRefused(static_cast<Verdict>(verdict));
  }
  if (!SameProof(bytes.subspan(1), ProofOf(Side::kAcceptor))) {
    Fail(Verdict::kWrongToken,
         FailedPrecondition("it does not know the cluster token, and took this node's for right"));
  }
  Await(Step::kDone);
}

}  // namespace menger
