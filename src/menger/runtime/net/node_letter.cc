#include "menger/runtime/net/node_letter.h"

#include "menger/runtime/net/peer_codec.h"

namespace menger {
namespace {

// One without text: numbers, and the text's length.
constexpr std::size_t kLineBytesMin = 3 * sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t);

void WriteLine(WireWriter& writer, const PrintedLine& line) {
  const auto& [loan, worker, process, left_out, text] = line;
  writer.Add(loan);
  writer.Add(worker);
  writer.Add(process);
  writer.Add(left_out);
  writer.AddText(text);
}

PrintedLine ReadLine(WireReader& reader) {
  PrintedLine line;
  line.loan = reader.Take<std::uint64_t>("line.loan");
  line.worker = reader.Take<std::uint64_t>("line.worker");
  line.process = reader.Take<std::uint32_t>("line.process");
  line.left_out = reader.Take<std::uint64_t>("line.left_out");
  line.text = reader.TakeText("line.text");
  if (line.text.size() > PrintedLine::kTextBytesMax) {
    throw InvalidArgument("a packet of a peer has a line of {} bytes; {} are the most",
                          line.text.size(), PrintedLine::kTextBytesMax);
  }
  return line;
}

// Which value it is about.
void WriteWhich(WireWriter& writer, const NodeLetter& letter) {
  writer.Add(letter.owner);
  writer.Add(letter.epoch);
  writer.Add(letter.pull);
  writer.Add(letter.name);
}

void ReadWhich(WireReader& reader, NodeLetter& letter) {
  static_cast<Id&>(letter.owner) = reader.TakeId("owner");
  letter.epoch = reader.Take<std::uint64_t>("epoch");
  letter.pull = reader.Take<std::uint64_t>("pull");
  letter.name = reader.Take<std::uint64_t>("name");
}

void Write(WireWriter& writer, const NodeLetter& letter) {
  const auto& [kind, loan, lease, owner, epoch, pull, name, total, last, process, shown, offset,
               message, bytes, part, lines] = letter;
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
      WriteWhich(writer, letter);
      return writer.Add(process);
    case NodeLetter::Kind::kPart:
    case NodeLetter::Kind::kNone:
      WriteWhich(writer, letter);
      return writer.Add(total);
    case NodeLetter::Kind::kShown:
      WriteWhich(writer, letter);
      writer.Add(total);
      writer.Add(shown.process);
      writer.Add(shown.descriptor);
      writer.Add(shown.device);
      writer.Add(shown.inode);
      return writer.Add(offset);
    case NodeLetter::Kind::kSeen:
    case NodeLetter::Kind::kShowLess:
      return writer.Add(name);
    case NodeLetter::Kind::kLines:
      writer.AddFlag(last);
      writer.Add(static_cast<std::uint32_t>(lines.size()));
      for (const PrintedLine& line : lines) WriteLine(writer, line);
      return;
    case NodeLetter::Kind::kLeave:
    case NodeLetter::Kind::kLinesWanted:
      return;
  }
}

void Read(WireReader& reader, NodeLetter& letter) {
  letter.kind = reader.TakeEnumerator(NodeLetter::Kind::kShowLess, "letter");
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
      ReadWhich(reader, letter);
      letter.process = reader.Take<std::uint32_t>("process");
      return;
    case NodeLetter::Kind::kPart:
    case NodeLetter::Kind::kNone:
      ReadWhich(reader, letter);
      letter.total = reader.Take<std::uint64_t>("total");
      letter.part.bytes = reader.TakeRest();
      return;
    case NodeLetter::Kind::kShown:
      ReadWhich(reader, letter);
      letter.total = reader.Take<std::uint64_t>("total");
      letter.shown.process = reader.Take<std::uint32_t>("shown.process");
      letter.shown.descriptor = reader.Take<std::uint32_t>("shown.descriptor");
      letter.shown.device = reader.Take<std::uint64_t>("shown.device");
      letter.shown.inode = reader.Take<std::uint64_t>("shown.inode");
      letter.offset = reader.Take<std::uint64_t>("offset");
      return;
    case NodeLetter::Kind::kSeen:
    case NodeLetter::Kind::kShowLess:
      letter.name = reader.Take<std::uint64_t>("name");
      return;
    case NodeLetter::Kind::kLines:
      letter.last = reader.TakeFlag("last");
      letter.lines.resize(reader.TakeCount(kLineBytesMin, "lines"));
      for (PrintedLine& line : letter.lines) line = ReadLine(reader);
      return;
    case NodeLetter::Kind::kLeave:
    case NodeLetter::Kind::kLinesWanted:
      return;
  }
}

}  // namespace

void WriteLetter(WireWriter& writer, const SharedLetter& letter) { Write(writer, *letter); }

void ReadLetter(WireReader& reader, SharedLetter& letter) {
  letter = std::make_shared<NodeLetter>();
  Read(reader, *letter);
}

}  // namespace menger
