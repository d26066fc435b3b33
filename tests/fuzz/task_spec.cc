// Specifications of calls, as a worker sends them.

#include "menger/runtime/calls/task_spec.h"

#include <array>
#include <cstring>

#include "fuzz.h"

namespace menger::fuzz {
namespace {

unsigned Sum(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<unsigned>(byte);
  return sum;
}

}  // namespace

void Read(std::span<const std::byte> input) {
  const SpecPointer spec = TaskSpec::Copy(input);
  // All that a node or an executor reads of it.
  unsigned sum = Sum(std::as_bytes(std::span(spec->scheduling()))) +
                 Sum(std::as_bytes(std::span(spec->name()))) +
                 Sum(std::as_bytes(spec->contained())) + Sum(spec->bytes());
  for (const SpecArgument& argument : spec->arguments()) sum += Sum(spec->value(argument));
  asm volatile("" : : "r"(sum));
}

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  const std::array<ObjectId, 2> contained = {ResultOf(RootTask(1), 0), ResultOf(RootTask(2), 0)};
  for (const CallKind kind : {CallKind::kFunction, CallKind::kConstruct, CallKind::kMethod}) {
    const TaskId task = ChildTask(RootTask(1), 7);
    const SpecHeader header{.kind = kind, .task = task, .actor = ActorOf(task)};
    SpecBuilder builder(header, 3, contained, "cpu=1.000 gpu=2.000", "a call",
                        SpecBuilder::AlignedSize(5) + SpecBuilder::AlignedSize(40));
    builder.AddReference(contained[0]);
    for (const std::size_t size : {std::size_t{5}, std::size_t{40}}) {
      const std::span<std::byte> value = builder.AddValue(size);
      std::memset(value.data(), 3, value.size());
    }
    const SpecPointer spec = builder.Finish();
    seeds.emplace_back(spec->bytes().begin(), spec->bytes().end());
  }
  return seeds;
}

}  // namespace menger::fuzz
