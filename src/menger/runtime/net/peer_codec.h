#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "menger/runtime/net/wire_bytes.h"
#include "menger/runtime/node/peer_link.h"
#include "menger/runtime/node/peer_message.h"

namespace menger {

// What nodes tell each other, as bytes: a packet of a PeerLink is one frame of a stream.
//
// What is read may have been written by anybody: each length, flag and enumerator is checked, and
// InvalidArgument says which is wrong. What is read is no larger than what was there, but for the
// room that empty texts and the message itself take. Lanes whose letters are of another type
// declare WriteLetter and ReadLetter for it.

void WriteLetter(WireWriter& writer, const PeerMessage& message);
void ReadLetter(WireReader& reader, PeerMessage& message);

std::vector<std::byte> EncodePeerMessage(const PeerMessage& message);
PeerMessage DecodePeerMessage(std::span<const std::byte> bytes);

// Of a packet: numbers, then the letter where there is one.
inline constexpr std::size_t kPacketHeadBytes = 5 * sizeof(std::uint64_t);

template <typename Letter>
std::vector<std::byte> EncodePacket(const typename PeerLink<Letter>::Packet& packet) {
  WireWriter writer;
  for (const std::uint64_t number :
       {packet.from, packet.to, packet.number, packet.arrived, packet.bytes}) {
    writer.Add(number);
  }
  if (packet.number != 0) WriteLetter(writer, packet.letter);
  return writer.Take();
}

template <typename Letter>
typename PeerLink<Letter>::Packet DecodePacket(std::span<const std::byte> bytes) {
  WireReader reader("a packet of a peer", bytes);
  typename PeerLink<Letter>::Packet packet;
  packet.from = reader.Take<std::uint64_t>("from");
  packet.to = reader.Take<std::uint64_t>("to");
  packet.number = reader.Take<std::uint64_t>("number");
  packet.arrived = reader.Take<std::uint64_t>("arrived");
  packet.bytes = reader.Take<std::uint64_t>("bytes");
  if (packet.number != 0) ReadLetter(reader, packet.letter);
  reader.Finish();
  return packet;
}

}  // namespace menger
