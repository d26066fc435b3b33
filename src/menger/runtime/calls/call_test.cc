#include "menger/runtime/calls/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "menger/base/error.h"

namespace menger {

// The real one is runtime/runtime.h's; these tests need an address only.
class Runtime {
 public:
  int number = 7;
};

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Hands out references, and ends up with none.
struct Owner : ReferenceOwner {
  ObjectHandle Adopt(ObjectId id) override {
    references.emplace_back(new Reference{id, this});
    return ObjectHandle(references.back().get());
  }
  void Forget(Reference*) noexcept override {}

  std::vector<std::unique_ptr<Reference>> references;
};

struct Results : ResultSink {
  std::span<std::byte> Allocate(int index, std::size_t size,
                                std::span<const ObjectHandle> references) override {
    contained += references.size();
    return values[index].emplace(size);
  }

  template <typename T>
  T Get(int index) {
    return Decode<T>(values[index].value());
  }

  std::optional<std::vector<std::byte>> values[4];
  std::size_t contained = 0;
};

// A call as the runtime makes it, without one: the arguments are encoded, references replaced by
// the values that `objects` has, and the callable is found by its id and run.
struct Caller {
  template <typename Call, typename... Args>
  Results Run(const Args&... arguments) {
    std::deque<std::vector<std::byte>> values;
    WithArguments<Call>(
        [&](std::span<const Argument> arguments, std::span<const ObjectHandle> contained) {
          contained_count = contained.size();
          for (const Argument& argument : arguments) {
            if (argument.reference != nullptr) {
              values.push_back(objects.at(argument.reference->id()));
            } else {
              argument.EncodeTo(values.emplace_back(argument.size));
            }
          }
        },
        arguments...);
    const std::vector<EncodedValue> views(values.begin(), values.end());
    Results results;
    CallFrame frame{.runtime = &runtime,
                    .owner = &owner,
                    .arguments = views,
                    .results = &results,
                    .result_count = result_count,
                    .actor = actor};
    table.Find(FunctionOf<Call>().id()).Run(frame);
    actor = frame.actor;
    return results;
  }

  template <typename T>
  ObjectRef<T> Put(const T& value) {
    const ObjectId id = ResultOf(RootTask(1), static_cast<std::uint32_t>(objects.size()));
    objects[id].resize(EncodedSize(value));
    Encode(value, objects[id]);
    return ObjectRef<T>(owner.Adopt(id));
  }

  Runtime runtime;
  Owner owner;
  FunctionTable table;
  std::map<ObjectId, std::vector<std::byte>> objects;
  std::size_t contained_count = 0;
  int result_count = 1;
  void* actor = nullptr;
};

double Mean(const std::vector<float>& values, double offset) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size()) + offset;
}
std::size_t Length(std::string_view text) { return text.size(); }
float First(std::span<const float> values) { return values[0]; }
std::unique_ptr<int> Increment(std::unique_ptr<int> number) {
  ++*number;
  return number;
}
std::string Consume(std::string&& text) { return std::move(text) + "!"; }
void Nothing() {}
void Fails(int) { throw std::out_of_range("as asked"); }
std::tuple<int, std::string> Several(int number) { return {number, std::to_string(number)}; }
int FromRuntime(Runtime& runtime, int number) { return runtime.number + number; }
std::string Which(const ObjectRef<int>& reference) { return ToString(reference.id()); }
ObjectRef<int> Same(ObjectRef<int> reference) { return reference; }

TEST(CallTest, ArgumentsAreConvertedAsInAnyCall) {
  Caller caller;
  using Call = FunctionCall<&Mean>;
  EXPECT_EQ(caller.Run<Call>(std::vector<float>{1, 2, 6}, 10).Get<double>(0), 13);
  EXPECT_EQ(caller.Run<FunctionCall<&Length>>("text").Get<std::size_t>(0), 4U);
  EXPECT_EQ(caller.Run<FunctionCall<&Length>>(std::string("text")).Get<std::size_t>(0), 4U);
  const std::vector<float> values = {5, 6};
  EXPECT_EQ(caller.Run<FunctionCall<&First>>(values).Get<float>(0), 5);
  EXPECT_EQ(
      *caller.Run<FunctionCall<&Increment>>(std::make_unique<int>(1)).Get<std::unique_ptr<int>>(0),
      2);
  EXPECT_EQ(caller.Run<FunctionCall<&Consume>>("text").Get<std::string>(0), "text!");
  EXPECT_EQ(caller.Run<FunctionCall<[](int x) { return 2 * x; }>>(4).Get<int>(0), 8);
  EXPECT_TRUE(caller.Run<FunctionCall<&Nothing>>().values[0]->empty());
}

TEST(CallTest, AReferenceIsPassedInPlaceOfAValue) {
  Caller caller;
  const ObjectRef<std::vector<float>> values = caller.Put(std::vector<float>{3, 5});
  EXPECT_EQ(caller.Run<FunctionCall<&Mean>>(values, caller.Put(1.0)).Get<double>(0), 5);
  EXPECT_EQ(caller.contained_count, 0U);
  EXPECT_EQ(caller.Run<FunctionCall<&First>>(values).Get<float>(0), 3);  // Where it lies.
  EXPECT_EQ(caller.Run<FunctionCall<&Length>>(caller.Put(std::string("four"))).Get<std::size_t>(0),
            4U);
  EXPECT_THROW(caller.Run<FunctionCall<&First>>(ObjectRef<std::vector<float>>()), Error);
}

TEST(CallTest, AParameterThatIsAReferenceGetsTheReferenceItself) {
  Caller caller;
  const ObjectRef<int> number = caller.Put(1);
  EXPECT_EQ(caller.Run<FunctionCall<&Which>>(number).Get<std::string>(0), ToString(number.id()));
  EXPECT_EQ(caller.contained_count, 1U);
  EXPECT_EQ(caller.Run<FunctionCall<&Same>>(number).contained, 1U);
}

TEST(CallTest, TheRuntimeIsNotTheCallersToGive) {
  Caller caller;
  EXPECT_EQ(caller.Run<FunctionCall<&FromRuntime>>(1).Get<int>(0), 8);
}

TEST(CallTest, ATupleIsOneResultOrSeveral) {
  Caller caller;
  Results one = caller.Run<FunctionCall<&Several>>(5);
  EXPECT_EQ((one.Get<std::tuple<int, std::string>>(0)), std::tuple(5, std::string("5")));
  EXPECT_FALSE(one.values[1].has_value());
  caller.result_count = 2;
  Results two = caller.Run<FunctionCall<&Several>>(5);
  EXPECT_EQ(two.Get<int>(0), 5);
  EXPECT_EQ(two.Get<std::string>(1), "5");
  caller.result_count = 3;
  EXPECT_THROW(caller.Run<FunctionCall<&Several>>(5), Error);
  using Types = SeveralResults<std::tuple<int, std::string>>::Types;
  EXPECT_TRUE((std::is_same_v<Types, TypeList<int, std::string>>));
}

TEST(CallTest, ExceptionsPassAndWrongArgumentsAreNamed) {
  Caller caller;
  EXPECT_THROW(caller.Run<FunctionCall<&Fails>>(1), std::out_of_range);
  CallFrame frame;
  try {
    FunctionOf<FunctionCall<&Fails>>().Run(frame);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a call of 'Fails' arrived with 0 arguments; it takes 1");
  }
}

class Base {
 public:
  virtual ~Base() = default;
  int Double() const { return 2 * count_; }

 protected:
  int count_ = 0;
};

struct Tag {
  std::string tag = "a tag before the base";
};

class Counter : public Tag, public Base {
 public:
  Counter(const std::string& name, int start) : name_(name) { count_ = start; }
  ~Counter() override { ++destroyed; }

  int Add(int number) { return count_ += number; }
  std::string Name(Runtime& runtime) const { return name_ + std::to_string(runtime.number); }

  template <class Archive>
  void Serialize(Archive& archive) {
    archive(name_, count_);
  }

  static inline int destroyed = 0;

 private:
  std::string name_;
};

struct Plain {
  explicit Plain(Runtime& runtime, ObjectRef<int> reference)
      : number(runtime.number), id(reference.id()) {}
  int number;
  ObjectId id;
};

TEST(CallTest, AnActorIsMadeCalledSavedRestoredAndDestroyed) {
  Caller caller;
  using Make = ConstructorCallFor<Counter, const char(&)[5], ObjectRef<int>>;
  EXPECT_TRUE((std::is_same_v<Make, ConstructorCall<Counter, std::string, int>>));
  caller.Run<Make>("name", caller.Put(3));
  EXPECT_EQ((caller.Run<MethodCall<Counter, &Counter::Add>>(4).Get<int>(0)), 7);
  EXPECT_EQ((caller.Run<MethodCall<Counter, &Counter::Double>>().Get<int>(0)), 14);
  EXPECT_EQ((caller.Run<MethodCall<Counter, &Counter::Name>>().Get<std::string>(0)), "name7");

  const ActorType& type = *FunctionOf<Make>().actor();
  ASSERT_TRUE(type.checkpointable());
  std::vector<std::byte> state(type.state_size(caller.actor, nullptr));
  type.save(caller.actor, state);
  type.destroy(caller.actor);
  EXPECT_EQ(Counter::destroyed, 1);

  caller.Run<Make>("another", 1);
  type.load(caller.actor, state, nullptr);
  EXPECT_EQ((caller.Run<MethodCall<Counter, &Counter::Add>>(0).Get<int>(0)), 7);
  EXPECT_EQ((caller.Run<MethodCall<Counter, &Counter::Name>>().Get<std::string>(0)), "name7");
  type.destroy(caller.actor);
}

TEST(CallTest, AConstructorMayTakeTheRuntimeAndReferences) {
  Caller caller;
  const ObjectRef<int> number = caller.Put(3);
  using Make = ConstructorCallFor<Plain, ObjectRef<int>>;
  caller.Run<Make>(number);
  EXPECT_EQ(static_cast<Plain*>(caller.actor)->number, 7);
  EXPECT_EQ(static_cast<Plain*>(caller.actor)->id, number.id());
  const ActorType& type = *FunctionOf<Make>().actor();
  EXPECT_FALSE(type.checkpointable());
  type.destroy(caller.actor);
}

}  // namespace
}  // namespace menger
