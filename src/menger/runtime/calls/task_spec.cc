#include "menger/runtime/calls/task_spec.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kSpecBytesMax = std::size_t{1} << 30;

static_assert(std::is_trivially_copyable_v<SpecHeader> && sizeof(SpecHeader) % 8 == 0);
static_assert(sizeof(SpecArgument) % 8 == 0);

bool Inside(std::uint64_t at, std::uint64_t size, std::uint64_t bytes) {
  return at <= bytes && size <= bytes - at;
}

SpecPointer Allocate(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw Unavailable("no memory for a call of {} bytes", bytes);
  return SpecPointer(static_cast<TaskSpec*>(memory));
}

}  // namespace

void SpecDeleter::operator()(TaskSpec* spec) const { std::free(spec); }

std::span<const SpecArgument> TaskSpec::arguments() const {
  return {reinterpret_cast<const SpecArgument*>(base() + sizeof(SpecHeader)), header_.arguments};
}

std::span<const ObjectId> TaskSpec::contained() const {
  const std::size_t at = sizeof(SpecHeader) + header_.arguments * sizeof(SpecArgument);
  return {reinterpret_cast<const ObjectId*>(base() + at), header_.contained};
}

std::span<const std::byte> TaskSpec::value(const SpecArgument& argument) const {
  return {base() + argument.at, argument.bytes};
}

std::span<const std::byte> TaskSpec::bytes() const { return {base(), header_.bytes}; }

void TaskSpec::Validate(std::span<const std::byte> bytes, CallKind last) {
  SpecHeader header;
  if (bytes.size() < sizeof(header)) {
    throw DataLoss("a call of {} bytes; its header alone has {}", bytes.size(), sizeof(header));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::uint64_t fixed = sizeof(header) + header.arguments * sizeof(SpecArgument) +
                              std::uint64_t{header.contained} * sizeof(ObjectId);
  if (header.bytes != bytes.size() || fixed > bytes.size()) {
    throw DataLoss("a call of {} bytes says that it has {}, {} of them before its values",
                   bytes.size(), header.bytes, fixed);
  }
  if (header.kind > last || !header.task.valid()) {
    throw DataLoss("a call of kind {} with id {}", static_cast<int>(header.kind),
                   ToString(header.task));
  }
  if (header.kind == CallKind::kConstruct &&
      (header.results != 1 || header.actor != ActorOf(header.task))) {
    throw DataLoss("call {} makes actor {} with {} results; it can make {} with 1",
                   ToString(header.task), ToString(header.actor), header.results,
                   ToString(ActorOf(header.task)));
  }
  if (header.kind == CallKind::kReserve && (header.results != 1 || header.home.valid())) {
    throw DataLoss("call {} reserves resources and has {} results; it can have 1",
                   ToString(header.task), header.results);
  }
  const bool streams = header.kind == CallKind::kFunction || header.kind == CallKind::kMethod;
  if (header.stream_ahead > 0 && (header.results != 1 || !streams)) {
    throw DataLoss("call {} is a stream with {} results", ToString(header.task), header.results);
  }
  for (const std::size_t flag : {offsetof(SpecHeader, retry_errors), offsetof(SpecHeader, named),
                                 offsetof(SpecHeader, detached)}) {
    if (bytes[flag] > std::byte{1}) {
      throw DataLoss("a flag of call {} is {}", ToString(header.task),
                     static_cast<int>(bytes[flag]));
    }
  }
  if (!Inside(header.scheduling_at, header.scheduling, bytes.size()) ||
      !Inside(header.name_at, header.name, bytes.size())) {
    throw DataLoss("the texts of call {} lie outside it", ToString(header.task));
  }
  for (std::size_t i = 0; i < header.arguments; ++i) {
    SpecArgument argument;
    std::memcpy(&argument, bytes.data() + sizeof(header) + i * sizeof(argument), sizeof(argument));
    if (!Inside(argument.at, argument.bytes, bytes.size()) || argument.at % 16 != 0) {
      throw DataLoss("argument {} of call {} lies at {} with {} bytes; the call has {}", i,
                     ToString(header.task), argument.at, argument.bytes, bytes.size());
    }
  }
}

SpecPointer TaskSpec::Copy(std::span<const std::byte> bytes) {
  // Another process may write to them still: what was checked must be what is used.
  SpecPointer copy = Allocate(std::max(bytes.size(), sizeof(SpecHeader)));
  if (!bytes.empty()) {
    std::memcpy(static_cast<void*>(copy.get()), bytes.data(), bytes.size());
  }
  Validate({copy->base(), bytes.size()});
  return copy;
}

SpecPointer TaskSpec::Named(std::string_view name) const {
  if (!this->name().empty()) name = {};
  const std::size_t bytes = SpecBuilder::AlignedSize(header_.bytes + name.size());
  SpecPointer copy = Allocate(bytes);
  std::byte* const to = const_cast<std::byte*>(copy->base());
  std::ranges::copy(this->bytes(), to);
  std::fill(std::ranges::copy(std::as_bytes(std::span(name)), to + header_.bytes).out, to + bytes,
            std::byte{0});
  if (name.empty()) return copy;
  copy->header_.bytes = static_cast<std::uint32_t>(bytes);
  copy->header_.name_at = header_.bytes;
  copy->header_.name = static_cast<std::uint32_t>(name.size());
  return copy;
}

SpecBuilder::SpecBuilder(const SpecHeader& header, std::uint16_t arguments,
                         std::span<const ObjectId> contained, std::string_view scheduling,
                         std::string_view name, std::size_t value_bytes) {
  const std::size_t contained_at = sizeof(header) + arguments * sizeof(SpecArgument);
  const std::size_t scheduling_at = contained_at + contained.size_bytes();
  const std::size_t name_at = scheduling_at + scheduling.size();
  const std::size_t value_at = AlignedSize(name_at + name.size());
  const std::size_t bytes = value_at + value_bytes;
  if (bytes > kSpecBytesMax) {
    throw InvalidArgument(
        "the arguments of a call have {} bytes together; at most {} go with a "
        "call: Put what is large and pass the reference",
        bytes, kSpecBytesMax);
  }
  spec_ = Allocate(bytes);
  auto* const base = reinterpret_cast<std::byte*>(spec_.get());
  SpecHeader& out = spec_->header_;
  out = header;
  out.bytes = static_cast<std::uint32_t>(bytes);
  out.arguments = arguments;
  out.contained = static_cast<std::uint32_t>(contained.size());
  out.scheduling = static_cast<std::uint32_t>(scheduling.size());
  out.scheduling_at = static_cast<std::uint32_t>(scheduling_at);
  out.name = static_cast<std::uint32_t>(name.size());
  out.name_at = static_cast<std::uint32_t>(name_at);
  if (!contained.empty())
    std::memcpy(base + contained_at, contained.data(), contained.size_bytes());
  if (!scheduling.empty()) std::memcpy(base + scheduling_at, scheduling.data(), scheduling.size());
  if (!name.empty()) std::memcpy(base + name_at, name.data(), name.size());
  next_ = reinterpret_cast<SpecArgument*>(base + sizeof(header));
  value_at_ = static_cast<std::uint32_t>(value_at);
}

void SpecBuilder::AddReference(ObjectId object) { *next_++ = {object}; }

std::span<std::byte> SpecBuilder::AddValue(std::size_t bytes) {
  *next_++ = {ObjectId{}, value_at_, static_cast<std::uint32_t>(bytes)};
  auto* const place = reinterpret_cast<std::byte*>(spec_.get()) + value_at_;
  value_at_ += static_cast<std::uint32_t>(AlignedSize(bytes));
  return {place, bytes};
}

}  // namespace menger
