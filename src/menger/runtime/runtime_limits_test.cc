#include <gtest/gtest.h>

#include <thread>

#include "menger/runtime/testing/isolations.h"

// Calls and values at the edges of what travels in one message (2 MiB), and options that make no
// sense.
namespace menger {
namespace {

using Bytes = std::vector<std::uint8_t>;
using References = std::vector<ObjectRef<int>>;

class LimitsTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, LimitsTest, BothIsolations(), IsolationName);

template <typename... Values>
std::size_t TotalSize(const Values&... values) {
  return (values.size() + ...);
}
template <std::size_t>
using BytesAt = Bytes;
template <std::size_t... kIndex>
constexpr auto TotalSizeOf(std::index_sequence<kIndex...>) {
  return &TotalSize<BytesAt<kIndex>...>;
}

// 40 arguments of 60 KiB each travel inline, but not in one message.
TEST_P(LimitsTest, ManySmallArgumentsByReference) {
  constexpr auto kArguments = std::make_index_sequence<40>();
  const ObjectRef<Bytes> value = runtime.Put(Bytes(60 * 1024));
  const auto total = [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return runtime.Call<TotalSizeOf(std::index_sequence<kIndex...>())>(
        (static_cast<void>(kIndex), value)...);
  }
  (kArguments);
  EXPECT_EQ(runtime.Get(total), 40U * 60 * 1024);
}

Bytes Grow(const Bytes& bytes) {
  Bytes grown = bytes;
  grown.push_back(1);
  return grown;
}

// Around the length from which on values lie in shared memory, as arguments and as results.
TEST_P(LimitsTest, SizesAroundTheInlineLimit) {
  for (std::size_t bytes = kInlineBytesMax - 20; bytes < kInlineBytesMax + 20; ++bytes) {
    const ObjectRef<Bytes> once = runtime.Call<Grow>(Bytes(bytes));
    ASSERT_EQ(runtime.Get(runtime.Call<Grow>(once)).size(), bytes + 2);
  }
}

References Repeat(const ObjectRef<int>& reference, int count) {
  return References(static_cast<std::size_t>(count), reference);
}
int Count(const References& references) { return static_cast<int>(references.size()); }
int Last(Runtime& runtime, const References& references) { return runtime.Get(references.back()); }
int PutAndPass(Runtime& runtime, int count) {
  const References references(static_cast<std::size_t>(count), runtime.Put(5));
  return runtime.Get(runtime.Call<Count>(runtime.Put(references))) +
         runtime.Get(runtime.Call<Count>(references));
}

// 16 bytes a reference: 200,000 are more than a message holds.
TEST_P(LimitsTest, ResultsOfManyReferences) {
  for (const int count : {100'000, 200'000}) {
    const ObjectRef<References> many = runtime.CallWith<Repeat>({}, runtime.Put(7), count);
    EXPECT_EQ(runtime.Get(runtime.Call<Last>(many)), 7);
    EXPECT_EQ(runtime.Get(runtime.Get(many)[12]), 7);
  }
}

TEST_P(LimitsTest, ArgumentsOfManyReferences) {
  const References many(200'000, runtime.Put(7));
  EXPECT_EQ(runtime.Get(runtime.Call<Count>(many)), 200'000);
  EXPECT_EQ(runtime.Get(runtime.Call<PutAndPass>(200'000)), 400'000);
}

int ThrowText(int bytes) {
  throw std::runtime_error(std::string(static_cast<std::size_t>(bytes), 'x'));
}

TEST_P(LimitsTest, LongTextsOfExceptionsAreCut) {
  try {
    runtime.Get(runtime.Call<ThrowText>(3'000'000));
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.failure().type, "std::runtime_error");
    EXPECT_GT(error.failure().text.size(), 60'000U);
    EXPECT_LT(error.failure().text.size(), 70'000U);
  }
}

int Same(int x) { return x; }
class Idle {
 public:
  int Nothing() { return 0; }
};

template <typename Action>
std::string Refusal(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "accepted";
}

Resources Granting(const std::string& name, double amount) {
  Resources granted(1, 0);
  granted.Set(name, amount);
  return granted;
}

TEST_P(LimitsTest, OptionsThatMakeNoSense) {
  const auto call = [&](const CallOptions& options) {
    return Refusal([&] { runtime.Get(runtime.CallWith<Same>(options, 1)); });
  };
  EXPECT_NE(call({.cpus = -1}).find("'cpu' is -1"), std::string::npos);
  EXPECT_NE(call({.resources = {{"a b", 1}}}).find("'a b' is no name"), std::string::npos);
  EXPECT_NE(call({.resources = {{"unicorn", 1}}}).find("unicorn"), std::string::npos);
  EXPECT_NE(call({.resources = {{std::string(70'000, 'r'), 1}}}).find("too long for the name"),
            std::string::npos);
  EXPECT_NE(call({.resources = {{std::string(40'000, 'r'), 1}, {std::string(40'000, 's'), 1}}})
                .find("to name"),
            std::string::npos);
  EXPECT_NE(call({.retries = -1}).find("retries is -1"), std::string::npos);
  EXPECT_NE(call({.time_limit = std::chrono::nanoseconds(-5)}).find("-5"), std::string::npos);
  EXPECT_NE(call({.priority = 128}).find("128"), std::string::npos);
  EXPECT_NE(call({.name = std::string(2000, 'n')}).find("2000 bytes"), std::string::npos);
  const auto actor = [&](const ActorOptions& options) {
    return Refusal([&] { runtime.CreateActor<Idle>(options); });
  };
  EXPECT_NE(actor({.restarts = -1}).find("restarts"), std::string::npos);
  EXPECT_NE(actor({.name = std::string(2000, 'n')}).find("2000 bytes"), std::string::npos);
}

// What is told of a name that is too long, or unknown, is no longer than a line.
TEST_P(LimitsTest, LongNamesOfResources) {
  const std::string name(60'000, 'r');
  Runtime granted({.workers = 1, .isolation = GetParam(), .resources = Granting(name, 2)});
  const std::vector<std::pair<std::string, double>> one = {{name, 1}};
  EXPECT_EQ(granted.Get(granted.CallWith<Same>({.resources = one}, 3)), 3);
  const auto actor = granted.CreateActor<Idle>({.resources = one});
  EXPECT_EQ(granted.Get(actor.Call<&Idle::Nothing>()), 0);
  const PlacementGroup group = granted.CreatePlacementGroup({{.cpus = 1, .resources = one}});
  const CallOptions inside{.resources = one, .group = group, .bundle = 0};
  EXPECT_EQ(granted.Get(granted.CallWith<Same>(inside, 4)), 4);

  const std::vector<Bundle> many(100, {.resources = one});
  EXPECT_NE(Refusal([&] { granted.CreatePlacementGroup(many); }).find("its first 70 take"),
            std::string::npos);
  const std::string unknown = Refusal([&] {
    granted.Get(granted.CallWith<Same>({.resources = {{name + "x", 1}}}, 1));
  });
  EXPECT_NE(unknown.find("r... (60001 bytes): needs 1, there is 0"), std::string::npos);
  EXPECT_LT(unknown.size(), 1000U);
  EXPECT_NE(Refusal([&] { Runtime({.resources = Granting(name + name, 1)}); }).find("too long"),
            std::string::npos);
}

TEST_P(LimitsTest, ReferencesToNothing) {
  const ObjectRef<int> none;
  const auto refused = [](const auto& action) {
    const std::string text = Refusal(action);
    EXPECT_NE(text.find("refers to nothing"), std::string::npos) << text;
  };
  refused([&] { runtime.Get(none); });
  refused([&] { runtime.Pin(none); });
  refused([&] { runtime.Wait(std::vector{none}); });
  refused([&] { runtime.Call<Same>(none); });
  refused([&] { runtime.Cancel(none); });
  refused([&] { ActorRef<Idle>().Call<&Idle::Nothing>(); });
  refused([&] { runtime.Kill(ActorRef<Idle>()); });
  EXPECT_NE(Refusal([&] {
              runtime.Wait(std::vector{runtime.Put(1)}, {.count = 2});
            }).find("count is 2, of 1 references"),
            std::string::npos);
  EXPECT_THROW(runtime.GetActor<Idle>("nobody"), Error);
}

int Sleep(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return milliseconds;
}

TEST_P(LimitsTest, ATimeoutInThePastIsNow) {
  const ObjectRef<int> slow = runtime.Call<Sleep>(200);
  EXPECT_THROW(runtime.Get(slow, std::chrono::seconds(-1)), Error);
  EXPECT_TRUE(runtime.Wait(std::vector{slow}, {.timeout = std::chrono::seconds(-1)}).ready.empty());
  EXPECT_EQ(runtime.Get(runtime.Put(3), std::chrono::seconds(-1)), 3);
}

TEST(RuntimeOptionsTest, ThatMakeNoSense) {
  const auto refused = [](const RuntimeOptions& options) {
    return Refusal([&] { Runtime runtime(options); });
  };
  EXPECT_NE(refused({.workers = -1}).find("-1"), std::string::npos);
  EXPECT_NE(refused({.workers = 1'000'000}).find("1000000"), std::string::npos);
}

}  // namespace
}  // namespace menger
