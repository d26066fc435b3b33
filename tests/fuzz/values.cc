// Encoded values of many types, and descriptions of failures: the first byte says which.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include "fuzz.h"
#include "menger/base/error.h"
#include "menger/runtime/values/serialise.h"
#include "menger/runtime/values/task_error.h"

namespace menger::fuzz {
namespace {

struct Nested {
  std::string name;
  std::vector<Nested> children;
};
template <typename Archive>
void Serialize(Archive& archive, Nested& nested) {
  archive(nested.name, nested.children);
}

class Owner final : public ReferenceOwner {
 public:
  ObjectHandle Adopt(ObjectId id) override {
    return ObjectHandle(new Reference{.id = id, .owner = this});
  }
  void Forget(Reference* reference) noexcept override { delete reference; }
};

using AllTypes =
    std::tuple<std::uint64_t, bool, std::string, std::vector<double>, std::vector<std::string>,
               std::map<std::string, std::vector<int>>, std::set<std::uint16_t>,
               std::variant<int, std::string, std::vector<bool>>,
               std::optional<std::unique_ptr<std::string>>, std::vector<ObjectRef<int>>,
               std::pair<std::array<std::string, 2>, std::tuple<char, double>>, Nested, TensorView,
               std::span<const float>, std::string_view>;

constexpr std::size_t kFailure = std::tuple_size_v<AllTypes>;
constexpr std::size_t kSkipped = 16;  // What is read begins there, so that it is aligned.

Owner& TheOwner() {
  static Owner owner;
  return owner;
}

// What is read can be written again and is the same then.
template <typename T>
void ReadAs(std::span<const std::byte> bytes) {
  const T value = Decode<T>(bytes, &TheOwner());
  std::vector<ObjectHandle> references;
  Bytes again(EncodedSize(value, &references));
  Encode(value, again);
}

template <std::size_t... kIndex>
void ReadAsType(std::size_t type, std::span<const std::byte> bytes,
                std::index_sequence<kIndex...>) {
  ((kIndex == type ? ReadAs<std::tuple_element_t<kIndex, AllTypes>>(bytes) : void()), ...);
}

template <typename T>
void AddSeed(std::size_t type, const T& value, std::vector<Bytes>& seeds) {
  std::vector<ObjectHandle> references;
  const std::size_t size = EncodedSize(value, &references);
  std::vector<std::byte> encoded(size);
  Encode(value, encoded);
  Bytes seed(kSkipped);
  seed[0] = static_cast<std::byte>(type);
  seed.insert(seed.end(), encoded.begin(), encoded.end());
  seeds.push_back(std::move(seed));
}

template <typename T>
T Example() {
  if constexpr (std::is_same_v<T, std::vector<double>>) {
    return {1, 2, 3};
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return {"a", "", "long enough for the heap, this one"};
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::vector<int>>>) {
    return {{"one", {1}}, {"two", {2, 2}}};
  } else if constexpr (std::is_same_v<T, Nested>) {
    return {"root", {{"leaf", {}}, {"branch", {{"leaf", {}}}}}};
  } else if constexpr (std::is_same_v<T, std::variant<int, std::string, std::vector<bool>>>) {
    return std::string("text");
  } else if constexpr (std::is_same_v<T, std::vector<ObjectRef<int>>>) {
    return {ObjectRef<int>(TheOwner().Adopt(ResultOf(RootTask(1), 0)))};
  } else if constexpr (std::is_same_v<T, std::span<const float>>) {
    static constexpr std::array<float, 3> kNumbers = {1, 2, 3};
    return kNumbers;
  } else {
    return T();
  }
}

}  // namespace

void Read(std::span<const std::byte> input) {
  if (input.size() < kSkipped) return;
  const auto type = static_cast<std::size_t>(input[0]);
  const std::span<const std::byte> bytes = input.subspan(kSkipped);
  if (type == kFailure) {
    static_cast<void>(DecodeFailure(Payload::Copy(bytes)).ToString());
  } else {
    ReadAsType(type, bytes, std::make_index_sequence<kFailure>());
  }
}

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    (AddSeed(kIndex, Example<std::tuple_element_t<kIndex, AllTypes>>(), seeds), ...);
  }
  (std::make_index_sequence<kFailure>());
  const Payload failure = Encode(TaskFailure{.kind = FailureKind::kException,
                                             .code = ErrorCode::kInternal,
                                             .type = "std::out_of_range",
                                             .text = "no 7",
                                             .worker = "worker 1"});
  Bytes seed(kSkipped);
  seed[0] = static_cast<std::byte>(kFailure);
  seed.insert(seed.end(), failure.bytes().begin(), failure.bytes().end());
  seeds.push_back(std::move(seed));
  return seeds;
}

}  // namespace menger::fuzz
