#include "menger/runtime/values/serialise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <complex>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "menger/base/error.h"
#include "menger/base/random.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::byte> Encoded(const auto& value, std::vector<ObjectHandle>* references = nullptr) {
  std::vector<std::byte> bytes(EncodedSize(value, references));
  Encode(value, bytes);
  return bytes;
}

template <typename T>
T ThereAndBack(const T& value) {
  return Decode<T>(Encoded(value));
}

std::vector<int> Numbers(const std::vector<std::byte>& bytes) {
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

std::string TextOfError(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(ErrorCodeName(error.code())) + ": " + error.what();
  }
  return "nothing was thrown";
}

enum class Colour : std::uint8_t { kRed = 3, kBlue = 7 };

struct Point {
  float x = 0;
  std::int32_t cells[2] = {};
  bool seen = false;
  bool operator==(const Point&) const = default;
};

struct Trajectory {
  std::vector<float> rewards;
  std::map<std::string, Point> marks;
  std::optional<Colour> colour;
  bool operator==(const Trajectory&) const = default;
};
template <class Archive>
void Serialize(Archive& archive, Trajectory& value) {
  archive(value.rewards, value.marks, value.colour);
}

// A list, with a private part: Serialize is a member.
class Node {
 public:
  Node() = default;
  Node(int number, std::unique_ptr<Node> next) : number_(number), next_(std::move(next)) {}

  template <class Archive>
  void Serialize(Archive& archive) {
    archive(number_, next_);
  }
  int Sum() const { return number_ + (next_ == nullptr ? 0 : next_->Sum()); }

 private:
  int number_ = 0;
  std::unique_ptr<Node> next_;
};

struct Frame {
  std::string name;
  TensorView pixels;
};
template <class Archive>
void Serialize(Archive& archive, Frame& value) {
  archive(value.name, value.pixels);
}

struct UndeclaredFrame : Frame {};
template <class Archive>
void Serialize(Archive& archive, UndeclaredFrame& value) {
  archive(static_cast<Frame&>(value));
}

}  // namespace

template <>
inline constexpr bool kBorrows<Frame> = true;

namespace {

// Written down by hand; this machine is little-endian.
TEST(SerialiseTest, TheBytesAreThoseOfTheFormat) {
  EXPECT_THAT(Numbers(Encoded(std::int32_t{0x01020304})), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Numbers(Encoded(Colour::kBlue)), ElementsAre(7));
  EXPECT_THAT(Numbers(Encoded(std::string("ab"))), ElementsAre(2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'));
  EXPECT_THAT(Numbers(Encoded(std::tuple(std::uint8_t{5}, true, std::optional<int>()))),
              ElementsAre(5, 1, 0));
  EXPECT_THAT(Numbers(Encoded(std::variant<bool, std::string>("x"))),
              ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 'x'));
  EXPECT_THAT(Numbers(Encoded(std::vector<bool>{true, false})),
              ElementsAre(2, 0, 0, 0, 0, 0, 0, 0, 1, 0));
  // The elements of a vector lie where they may be used in place.
  EXPECT_THAT(Numbers(Encoded(std::pair(std::uint8_t{9}, std::vector<std::int16_t>{1}))),
              ElementsAre(9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0));
}

TEST(SerialiseTest, EveryKindOfValueArrivesAsItWasSent) {
  const auto check = [](const auto& value) { EXPECT_EQ(ThereAndBack(value), value); };
  check(true);
  check(-3.5);
  check(Colour::kRed);
  check(std::chrono::milliseconds(12));
  check(std::chrono::steady_clock::now());
  check(Point{1.5, {2, 3}, true});
  check(std::string("text"));
  check(std::wstring(L"text"));
  check(std::vector<Point>{{1}, {2}});
  check(std::vector<std::vector<std::string>>{{"a"}, {}, {"b", "c"}});
  check(std::vector<bool>{true, false, true});
  check(std::deque<int>{1, 2});
  check(std::list<std::string>{"a", "b"});
  check(std::array<std::string, 2>{"a", "b"});
  check(std::array<float, 3>{1, 2, 3});
  check(std::pair(1, std::string("one")));
  check(std::tuple(1, std::string("one"), 1.0));
  check(std::optional<std::string>("there"));
  check(std::optional<std::string>());
  check(std::variant<std::monostate, int, std::string>("three"));
  check(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  check(std::multimap<int, int>{{1, 1}, {1, 2}});
  check(std::unordered_map<int, std::vector<int>>{{1, {1, 2}}, {2, {}}});
  check(std::set<std::string>{"a", "b"});
  check(std::unordered_set<int>{1, 2, 3});
  check(Trajectory{{1, 2}, {{"goal", Point{1}}}, Colour::kBlue});
  check(std::vector<Trajectory>(3, Trajectory{{1, 2}, {}, {}}));
}

TEST(SerialiseTest, AListOfOwnedNodesArrivesWhole) {
  auto list =
      std::make_unique<Node>(1, std::make_unique<Node>(2, std::make_unique<Node>(4, nullptr)));
  EXPECT_EQ(Decode<std::unique_ptr<Node>>(Encoded(list))->Sum(), 7);
  EXPECT_EQ(Decode<std::unique_ptr<Node>>(Encoded(std::unique_ptr<Node>())), nullptr);

  for (int i = 0; i < kNestingMax; ++i) list = std::make_unique<Node>(1, std::move(list));
  EXPECT_THAT(TextOfError([&] { Encoded(list); }), HasSubstr("more than 500 values"));
}

TEST(SerialiseTest, DecodingReplacesWhatTheValueHeld) {
  Trajectory value{{5, 6, 7}, {{"old", Point{}}}, Colour::kRed};
  DecodeInto(value, Encoded(Trajectory{{1}, {{"new", Point{}}}, {}}));
  EXPECT_EQ(value, (Trajectory{{1}, {{"new", Point{}}}, {}}));
}

struct HoldsPointer {
  int number;
  const char* text;
};
struct HoldsView {
  Point point;
  std::string_view text;
};
struct HoldsHolder {
  HoldsPointer inner[2];
};
struct HoldsFunction {
  void (*function)(int);
};
struct HoldsMember {
  int Point::*member;
};
struct HoldsReference {
  std::reference_wrapper<int> reference;
};
struct HoldsNumbers {
  Point points[2];
  std::array<float, 100> values;
  ObjectId id;
  std::chrono::seconds time;
};

TEST(SerialiseTest, OnlyStructsWithoutAddressesAreCopiedByteByByte) {
  EXPECT_TRUE(kSentAsBytes<Point>);
  EXPECT_TRUE(kSentAsBytes<HoldsNumbers>);
  EXPECT_TRUE((kSentAsBytes<std::array<std::array<Point, 3>, 3>>));
  EXPECT_FALSE(kSentAsBytes<int*>);
  EXPECT_FALSE(kSentAsBytes<HoldsPointer>);
  EXPECT_FALSE(kSentAsBytes<HoldsView>);
  EXPECT_FALSE(kSentAsBytes<HoldsHolder>);
  EXPECT_FALSE(kSentAsBytes<HoldsFunction>);
  EXPECT_FALSE(kSentAsBytes<HoldsMember>);
  EXPECT_FALSE(kSentAsBytes<HoldsReference>);
  EXPECT_FALSE((kSentAsBytes<std::array<std::string_view, 2>>));
  EXPECT_FALSE(kSentAsBytes<std::complex<float>>);  // May be declared to be.
  EXPECT_EQ(kFormOf<HoldsPointer>, ValueForm::kUnsendable);
  EXPECT_EQ(kFormOf<std::shared_ptr<int>>, ValueForm::kUnsendable);
  EXPECT_EQ(kFormOf<std::unique_ptr<std::exception>>, ValueForm::kUnsendable);
  EXPECT_EQ(kFormOf<std::function<void()>>, ValueForm::kUnsendable);
  const auto closure = [number = 1] { return number; };
  EXPECT_EQ(kFormOf<decltype(closure)>, ValueForm::kUnsendable);
}

TEST(SerialiseTest, ATensorIsReadWhereItLies) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Frame frame{"a name that moves the tensor", ViewOf({2, 3}, std::span(values))};
  const std::vector<std::byte> bytes = Encoded(frame);
  const auto read = Decode<Frame>(bytes);
  EXPECT_EQ(read.pixels.shape, (Shape{2, 3}));
  EXPECT_THAT(read.pixels.values<float>(), testing::ElementsAreArray(values));
  const std::ptrdiff_t offset = read.pixels.data - bytes.data();
  EXPECT_EQ(offset % 64, 0);
  EXPECT_EQ(offset + 24, static_cast<std::ptrdiff_t>(bytes.size()));
}

TEST(SerialiseTest, ViewsReadWhatOwnersWrote) {
  const auto text = Encoded(std::string("text"));
  EXPECT_EQ(Decode<std::string_view>(text), "text");
  const std::vector<double> values = {1, 2};
  const auto numbers = Encoded(values);
  const auto view = Decode<std::span<const double>>(numbers);
  EXPECT_EQ(static_cast<const void*>(view.data()), numbers.data() + 8);
  EXPECT_THAT(view, ElementsAre(1, 2));
  EXPECT_EQ(Encoded(std::string_view("text")), text);
  EXPECT_EQ(Encoded(std::span(values)), numbers);
}

TEST(SerialiseTest, ATypeSaysWhetherItMayPointIntoItsEncoding) {
  EXPECT_TRUE(kBorrows<TensorView>);
  EXPECT_TRUE((kBorrows<std::map<std::string, std::vector<std::string_view>>>));
  EXPECT_TRUE((kBorrows<std::array<TensorView, 2>>));
  EXPECT_TRUE(kBorrows<std::optional<std::span<const int>>>);
  EXPECT_FALSE(kBorrows<std::vector<std::string>>);
  EXPECT_FALSE(kBorrows<ObjectRef<TensorView>>);

  UndeclaredFrame frame;
  EXPECT_THAT(TextOfError([&] { ThereAndBack(frame); }),
              HasSubstr("FailedPrecondition: a value of type 'UndeclaredFrame' has views in it"));
}

// Keeps what was adopted, and counts what was forgotten.
struct Owner : ReferenceOwner {
  ObjectHandle Adopt(ObjectId id) override {
    for (const auto& reference : references) {
      if (reference->id == id) return ObjectHandle(reference.get());
    }
    references.emplace_back(new Reference{id, this});
    return ObjectHandle(references.back().get());
  }
  void Forget(Reference* reference) noexcept override { forgotten.push_back(reference->id); }

  std::vector<std::unique_ptr<Reference>> references;
  std::vector<ObjectId> forgotten;
};

TEST(SerialiseTest, ReferencesInAValueAreCollectedAndAdopted) {
  const ObjectId first = ResultOf(RootTask(1), 0), second = ResultOf(RootTask(1), 1);
  Owner here, there;
  std::vector<std::byte> bytes;
  {
    const std::map<std::string, ObjectRef<int>> value = {
        {"a", ObjectRef<int>(here.Adopt(first))},
        {"b", ObjectRef<int>(here.Adopt(second))},
        {"c", ObjectRef<int>()},
    };
    std::vector<ObjectHandle> references;
    bytes = Encoded(value, &references);
    ASSERT_EQ(references.size(), 2U);
    EXPECT_EQ(references[0].id(), first);
    EXPECT_EQ(references[1].id(), second);
    EXPECT_THAT(TextOfError([&] { Encoded(value); }), HasSubstr("FailedPrecondition"));
  }
  EXPECT_THAT(here.forgotten, testing::UnorderedElementsAre(first, second));
  {
    const auto read = Decode<std::map<std::string, ObjectRef<int>>>(bytes, &there);
    EXPECT_EQ(read.at("a").id(), first);
    EXPECT_EQ(read.at("b").id(), second);
    EXPECT_FALSE(read.at("c").valid());
    EXPECT_TRUE(there.forgotten.empty());
  }
  EXPECT_EQ(there.forgotten.size(), 2U);
  EXPECT_THAT(TextOfError([&] { Decode<std::map<std::string, ObjectRef<int>>>(bytes); }),
              HasSubstr("FailedPrecondition"));
}

TEST(SerialiseTest, DamagedBytesAreNamed) {
  const std::vector<std::byte> number(5);
  EXPECT_EQ(
      TextOfError([&] { Decode<std::int32_t>(number); }),
      "DataLoss: 5 bytes are not a value of type 'int': it ends before its bytes do (at byte 4)");
  EXPECT_EQ(
      TextOfError([&] { Decode<double>(number); }),
      "DataLoss: 5 bytes are not a value of type 'double': 8 are wanted at byte 0, 5 are left");
  auto floats = Encoded(std::vector<float>{1, 2});
  floats[7] = std::byte{0x7f};
  EXPECT_THAT(TextOfError([&] { Decode<std::vector<float>>(floats); }),
              HasSubstr("of at least 4 bytes are announced at byte 8, 8 bytes are left"));
  EXPECT_THAT(TextOfError([&] { Decode<std::vector<std::string>>(floats); }),
              HasSubstr("DataLoss"));
  const std::vector<std::byte> nine = {std::byte{9}};
  EXPECT_THAT(TextOfError([&] { Decode<bool>(nine); }), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(TextOfError([&] { Decode<std::variant<bool, int>>(nine); }),
              HasSubstr("no type of this index"));
}

struct Fickle {
  int* calls;
};
template <class Archive>
void Serialize(Archive& archive, Fickle& value) {
  archive(std::string(static_cast<std::size_t>(++*value.calls), 'x'));
}

TEST(SerialiseTest, AValueThatChangesWhileItIsWrittenIsNotWrittenOutOfBounds) {
  int calls = 0;
  EXPECT_THAT(TextOfError([&] { Encoded(Fickle{&calls}); }), HasSubstr("Internal"));
}

// Bits of an encoding are turned, bytes replaced, cut off and added; whatever comes, reading gives
// a value or throws DataLoss, and AddressSanitizer sees nothing.
template <typename T>
void Mutate(const T& value, Random& random) {
  const std::vector<std::byte> original = Encoded(value);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes = original;
    for (std::int64_t count = random.Integers(0, 4); count > 0 && !bytes.empty(); --count) {
      const std::size_t at = random.Integers(0, bytes.size());
      switch (random.Integers(0, 4)) {
        case 0:
          bytes[at] ^= std::byte{1} << random.Integers(0, 8);
          break;
        case 1:
          bytes[at] = static_cast<std::byte>(random.Integers(0, 256));
          break;
        case 2:
          bytes.resize(at);
          break;
        default:
          bytes.insert(bytes.begin() + at, static_cast<std::byte>(random.Integers(0, 256)));
      }
    }
    const auto exact = std::make_unique<std::byte[]>(bytes.size());  // So that overruns are seen.
    std::copy(bytes.begin(), bytes.end(), exact.get());
    try {
      const T read = Decode<T>({exact.get(), bytes.size()});
      EXPECT_LE(EncodedSize(read), bytes.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
    }
  }
}

TEST(SerialiseTest, MutatedBytesNeverCrash) {
  Random random = Random::FromSeed(20261122);
  const std::vector<float> values = {1, 2, 3, 4};
  Mutate(Trajectory{{1, 2}, {{"goal", Point{1}}, {"start", Point{2}}}, Colour::kBlue}, random);
  Mutate(Frame{"name", ViewOf({2, 2}, std::span(values))}, random);
  Mutate(std::vector<std::string>{"a", "bc", "def"}, random);
  Mutate(std::vector<std::vector<std::vector<double>>>{{{1}, {2, 3}}, {}}, random);
  Mutate(std::variant<int, std::string, std::vector<bool>>(std::vector<bool>{true, false}), random);
  Mutate(std::pair(std::make_optional(std::string("x")), std::set<std::int16_t>{1, 2}), random);
  Mutate(std::unordered_map<std::string, std::deque<int>>{{"a", {1, 2}}, {"b", {}}}, random);
  Mutate(std::tuple(std::string_view("view"), std::span<const float>(values)), random);
}

}  // namespace
}  // namespace menger
