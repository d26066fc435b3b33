// What comes over a stream from another node: frames, and in them packets with messages. The input
// is the stream, read in pieces whose lengths its own bytes give.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fuzz.h"
#include "menger/base/error.h"
#include "menger/runtime/net/frame_buffer.h"
#include "menger/runtime/net/frame_queue.h"
#include "menger/runtime/net/peer_codec.h"

namespace menger::fuzz {
namespace {

using Packet = PeerLink<PeerMessage>::Packet;
constexpr std::size_t kFrameBytesMax = std::size_t{1} << 20;

void Append(Bytes& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

Bytes StreamOf(std::byte pace, const std::vector<Packet>& packets) {
  Bytes bytes = {pace};
  for (const Packet& packet : packets) {
    const Bytes frame = EncodePacket<PeerMessage>(packet);
    const FrameHead head = FrameHead::For(frame.size());
    Append(bytes, std::as_bytes(std::span(&head, 1)));
    Append(bytes, frame);
  }
  return bytes;
}

// What was read is written as it came.
void ReadPacket(std::span<const std::byte> frame) {
  try {
    const Packet packet = DecodePacket<PeerMessage>(frame);
    const Bytes again = EncodePacket<PeerMessage>(packet);
    if (!std::ranges::equal(again, frame)) throw Internal("a packet came back as another");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) std::abort();
  }
}

}  // namespace

void Read(std::span<const std::byte> input) {
  if (input.empty()) return;
  const auto pace = std::to_integer<std::size_t>(input[0]);
  input = input.subspan(1);
  if (pace == 0) return ReadPacket(input);  // Without a head, which needs a right check.
  FrameBuffer buffer(kFrameBytesMax);
  while (!input.empty()) {
    const std::span<std::byte> room = buffer.Room();
    const std::size_t came = std::min({pace, room.size(), input.size()});
    std::memcpy(room.data(), input.data(), came);
    input = input.subspan(came);
    for (const std::span<const std::byte> frame : buffer.Came(came)) ReadPacket(frame);
  }
}

std::vector<Bytes> Seeds() {
  const PeerMessage lend{.kind = PeerMessage::Kind::kLend, .count = 1, .scheduling = "cpu=1"};
  PeerMessage lost{.kind = PeerMessage::Kind::kLost, .loan = 7, .begun = {1, 2, 3}};
  lost.cause = {.kind = FailureKind::kWorkerDied, .text = "it died", .worker = "worker 3"};
  const PeerMessage pull{.kind = PeerMessage::Kind::kPull, .kept = 5, .bytes = 1 << 20};
  const Bytes alone = EncodePacket<PeerMessage>({1, 2, 3, 4, 5, lost});
  Bytes bare = {std::byte{0}};
  Append(bare, alone);
  return {StreamOf(std::byte{255}, {{1, 2, 1, 0, 0, lend}, {1, 2, 0, 1}, {1, 2, 2, 1, 9, pull}}),
          StreamOf(std::byte{3}, {{1, 2, 7, 9, 0, lost}}), bare};
}

}  // namespace menger::fuzz
