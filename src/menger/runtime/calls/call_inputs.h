#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace menger {

// What a call is told that a further run of it would be told otherwise: what the clock says, which
// objects were ready, which actor had a name. The node keeps each answer before anything that may
// follow from it (it travels ahead of results and nested calls, in the same ring), and a further
// run is given them again. So both do the same.
//
// Of one call; one thread at a time.
class CallInputs {
 public:
  // `known`: what the runs before were told, borrowed. `keep` brings bytes to the node.
  using Keep = std::function<void(std::span<const std::byte>)>;
  CallInputs(std::span<const std::byte> known, Keep keep) : known_(known), keep_(std::move(keep)) {}

  // Whether the next answer is known from a run before.
  bool knows() const { return !known_.empty(); }

  // The answer that the runs before got here, or else what `ask` says now. Throws DataLoss if what
  // is known is no answer.
  template <typename Ask>
  std::vector<std::byte> Bytes(const Ask& ask) {
    if (!known_.empty()) return Take();
    std::vector<std::byte> answer = ask();
    Tell(answer);
    return answer;
  }

  // The same for an answer of fixed size, a number for example.
  template <typename Ask>
  auto Plain(const Ask& ask) {
    using Answer = std::invoke_result_t<Ask>;
    static_assert(std::is_trivially_copyable_v<Answer>);
    const std::vector<std::byte> bytes = Bytes([&ask] {
      const Answer answer = ask();
      std::vector<std::byte> out(sizeof(answer));
      std::memcpy(out.data(), &answer, sizeof(answer));
      return out;
    });
    if (bytes.size() != sizeof(Answer)) FailSize(bytes.size(), sizeof(Answer));
    Answer answer;
    std::memcpy(&answer, bytes.data(), sizeof(answer));
    return answer;
  }

 private:
  std::vector<std::byte> Take();
  void Tell(std::span<const std::byte> answer);
  [[noreturn]] static void FailSize(std::size_t known, std::size_t wanted);

  std::span<const std::byte> known_;  // What is left: each answer with its size before it.
  Keep keep_;
};

}  // namespace menger
