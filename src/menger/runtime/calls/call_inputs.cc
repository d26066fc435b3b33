#include "menger/runtime/calls/call_inputs.h"

#include "menger/base/error.h"

namespace menger {

std::vector<std::byte> CallInputs::Take() {
  std::uint32_t size = 0;
  if (known_.size() < sizeof(size)) FailSize(known_.size(), sizeof(size));
  std::memcpy(&size, known_.data(), sizeof(size));
  known_ = known_.subspan(sizeof(size));
  if (known_.size() < size) FailSize(known_.size(), size);
  std::vector<std::byte> answer(known_.begin(), known_.begin() + size);
  known_ = known_.subspan(size);
  return answer;
}

void CallInputs::Tell(std::span<const std::byte> answer) {
  const auto size = static_cast<std::uint32_t>(answer.size());
  std::vector<std::byte> record(sizeof(size) + answer.size());
  std::memcpy(record.data(), &size, sizeof(size));
  if (!answer.empty()) std::memcpy(record.data() + sizeof(size), answer.data(), answer.size());
  keep_(record);
}

void CallInputs::FailSize(std::size_t known, std::size_t wanted) {
  throw DataLoss(
      "a call that runs again asks for {} bytes where its first run was told {}: does it do "
      "something else than then?",
      wanted, known);
}

}  // namespace menger
