#include "menger/runtime/net/node_letter.h"

#include "menger/runtime/net/peer_codec.h"

namespace menger {

void WriteLetter(WireWriter& writer, const NodeLetter& letter) {
  const auto& [kind, loan, lease, owner, epoch, pull, name, total, message, bytes, part] = letter;
  writer.Add(static_cast<std::uint8_t>(kind));
  switch (kind) {
    case NodeLetter::Kind::kMessage:
      return WriteLetter(writer, message);
    case NodeLetter::Kind::kToWorker:
    case NodeLetter::Kind::kFromWorker:
      writer.Add(loan);
      return writer.AddBytes(bytes);
    case NodeLetter::Kind::kRecall:
    case NodeLetter::Kind::kInterrupt:
    case NodeLetter::Kind::kReturned:
      writer.Add(loan);
      return writer.Add(lease);
    case NodeLetter::Kind::kSend:
    case NodeLetter::Kind::kPart:
    case NodeLetter::Kind::kNone:
      writer.Add(owner);
      writer.Add(epoch);
      writer.Add(pull);
      writer.Add(name);
      return writer.Add(total);
    case NodeLetter::Kind::kLeave:
      return;
  }
}

void ReadLetter(WireReader& reader, NodeLetter& letter) {
  letter.kind = reader.TakeEnumerator(NodeLetter::Kind::kLeave, "letter");
  switch (letter.kind) {
    case NodeLetter::Kind::kMessage:
      return ReadLetter(reader, letter.message);
    case NodeLetter::Kind::kToWorker:
    case NodeLetter::Kind::kFromWorker:
      letter.loan = reader.Take<std::uint64_t>("loan");
      letter.bytes = reader.TakeRestCopy();
      return;
    case NodeLetter::Kind::kRecall:
    case NodeLetter::Kind::kInterrupt:
    case NodeLetter::Kind::kReturned:
      letter.loan = reader.Take<std::uint64_t>("loan");
      letter.lease = reader.Take<std::uint64_t>("lease");
      return;
    case NodeLetter::Kind::kSend:
    case NodeLetter::Kind::kPart:
    case NodeLetter::Kind::kNone:
      static_cast<Id&>(letter.owner) = reader.TakeId("owner");
      letter.epoch = reader.Take<std::uint64_t>("epoch");
      letter.pull = reader.Take<std::uint64_t>("pull");
      letter.name = reader.Take<std::uint64_t>("name");
      letter.total = reader.Take<std::uint64_t>("total");
      letter.part.bytes = reader.TakeRest();
      return;
    case NodeLetter::Kind::kLeave:
      return;
  }
}

}  // namespace menger
