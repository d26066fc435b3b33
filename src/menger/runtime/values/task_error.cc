#include "menger/runtime/values/task_error.h"

#include <array>
#include <cstring>

namespace menger {
namespace {

void Append(std::string& out, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&size), sizeof(size));
  out += text;
}

std::string Take(std::span<const std::byte>& bytes) {
  std::uint32_t size = 0;
  if (bytes.size() < sizeof(size)) throw DataLoss("the description of a failed call is cut short");
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes = bytes.subspan(sizeof(size));
  if (bytes.size() < size) {
    throw DataLoss("the description of a failed call has {} bytes left where a text has {}",
                   bytes.size(), size);
  }
  std::string text(reinterpret_cast<const char*>(bytes.data()), size);
  bytes = bytes.subspan(size);
  return text;
}

}  // namespace

const char* FailureKindName(FailureKind kind) {
  constexpr std::array kNames = {"exception",         "worker died", "node died", "actor died",
                                 "actor unavailable", "object lost", "deadline",  "cancelled",
                                 "out of memory",     "owner died"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string TaskFailure::ToString() const {
  std::string result = task.empty() ? "a value" : fmt::format("task '{}'", task);
  if (kind == FailureKind::kException) {
    result += fmt::format(" threw {}", type.empty() ? ErrorCodeName(code) : type);
  } else {
    result += fmt::format(" failed ({})", FailureKindName(kind));
  }
  if (!worker.empty()) result += fmt::format(" on {}", worker);
  return result + ": " + text;
}

Payload Encode(const TaskFailure& failure) {
  std::string bytes = {static_cast<char>(failure.kind), static_cast<char>(failure.code),
                       static_cast<char>(failure.final)};
  for (const std::string* text :
       {&failure.type, &failure.text, &failure.task, &failure.worker, &failure.value}) {
    Append(bytes, *text);
  }
  return Payload::Copy(std::as_bytes(std::span(bytes)));
}

TaskFailure DecodeFailure(const Payload& payload) {
  std::span<const std::byte> bytes = payload.bytes();
  if (bytes.size() < 3 || bytes[2] > std::byte{1} ||
      bytes[0] > std::byte{static_cast<int>(FailureKind::kOwnerDied)} ||
      bytes[1] > std::byte{static_cast<int>(ErrorCode::kInternal)}) {
    throw DataLoss("{} bytes do not describe a failed call", bytes.size());
  }
  TaskFailure failure{.kind = static_cast<FailureKind>(bytes[0]),
                      .code = static_cast<ErrorCode>(bytes[1])};
  failure.final = bytes[2] == std::byte{1};
  bytes = bytes.subspan(3);
  failure.type = Take(bytes);
  failure.text = Take(bytes);
  failure.task = Take(bytes);
  failure.worker = Take(bytes);
  failure.value = Take(bytes);
  return failure;
}

}  // namespace menger
