#include "menger/runtime/simulation/simulated_values.h"

#include <cstring>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

struct ValueHead {
  std::uint64_t fold, state, position, references;
};
struct ContentHead {
  std::uint64_t seed, depth, given;
};

template <typename Head>
void Write(const Head& head, const std::vector<Reference>& references, std::span<std::byte> out) {
  std::memcpy(out.data(), &head, sizeof(head));
  if (!references.empty()) {
    std::memcpy(out.data() + sizeof(head), references.data(),
                references.size() * sizeof(Reference));
  }
}

template <typename Head>
std::vector<Reference> Read(Head& head, const std::uint64_t& count,
                            std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(head)) throw Internal("a value of {} bytes", bytes.size());
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (bytes.size() != sizeof(head) + count * sizeof(Reference)) {
    throw Internal("a value of {} bytes with {} references", bytes.size(), count);
  }
  std::vector<Reference> references(count);
  if (count > 0) {
    std::memcpy(references.data(), bytes.data() + sizeof(head), count * sizeof(Reference));
  }
  return references;
}

}  // namespace

Payload Encode(const Value& value) {
  Payload payload =
      Payload::Allocate(sizeof(ValueHead) + value.references.size() * sizeof(Reference));
  Write(ValueHead{value.fold, value.state, value.position, value.references.size()},
        value.references, payload.fill());
  return payload;
}

Value DecodeValue(std::span<const std::byte> bytes) {
  ValueHead head;
  std::vector<Reference> references = Read(head, head.references, bytes);
  return {head.fold, head.state, head.position, std::move(references)};
}

SpecPointer MakeSpec(const SpecHeader& header, const std::vector<ObjectId>& values,
                     const CallContent& content, std::string_view scheduling) {
  const std::size_t bytes = sizeof(ContentHead) + content.given.size() * sizeof(Reference);
  std::vector<ObjectId> contained;
  for (const Reference& reference : content.given) contained.push_back(reference.object);
  SpecBuilder builder(header, static_cast<std::uint16_t>(1 + values.size()), contained, scheduling,
                      "call", SpecBuilder::AlignedSize(bytes));
  Write(ContentHead{content.seed, content.depth, content.given.size()}, content.given,
        builder.AddValue(bytes));
  for (const ObjectId id : values) builder.AddReference(id);
  return builder.Finish();
}

CallContent ContentOf(const TaskSpec& spec) {
  ContentHead head;
  std::vector<Reference> given = Read(head, head.given, spec.value(spec.arguments()[0]));
  return {head.seed, head.depth, std::move(given)};
}

}  // namespace menger::simulation
