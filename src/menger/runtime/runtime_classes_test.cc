#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "menger/base/error.h"
#include "menger/runtime/testing/isolations.h"

// What an actor is: nobody can call it as something else.
namespace menger {

int FileOfNamesake(Runtime& runtime, const std::string& name);  // other_file_test.cc

namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

struct Doubler {
  std::string text = "a text that is none of Tripler's";
  int Times(int x) { return 2 * x; }
};
struct Tripler {
  long number = 3;
  int Times(int x) { return static_cast<int>(number) * x; }
};
struct Labelled {
  std::string label;
};
struct LabelledDoubler : Labelled, Doubler {};
template <typename T>
struct Adder {
  T sum = 0;
  T Add(T x) { return sum += x; }
};
class Namesake {  // Of one in other_file_test.cc.
 public:
  int File() { return 1; }
};

// What the error says that `ask` meets, which must be InvalidArgument.
template <typename Ask>
std::string Refusal(const Ask& ask) {
  try {
    ask();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "it was not refused";
}

class ClassesTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, ClassesTest, BothIsolations(), IsolationName);

TEST_P(ClassesTest, AnActorOfAnotherClassIsNotFoundByItsName) {
  const auto actor = runtime.CreateActor<Doubler>({.name = "doubler"});
  EXPECT_THAT(Refusal([&] { runtime.GetActor<Tripler>("doubler"); }),
              AllOf(HasSubstr("'doubler'"), HasSubstr("Tripler"), HasSubstr("Doubler")));
  EXPECT_EQ(runtime.Get(runtime.GetActor<Doubler>("doubler").Call<&Doubler::Times>(4)), 8);
}

int AskTripler(Runtime& runtime, const std::string& name) {
  return runtime.Get(runtime.GetActor<Tripler>(name).Call<&Tripler::Times>(4));
}

TEST_P(ClassesTest, NorByACall) {
  const auto doubler = runtime.CreateActor<Doubler>({.name = "doubler"});
  const auto tripler = runtime.CreateActor<Tripler>({.name = "tripler"});
  EXPECT_THAT(Refusal([&] { runtime.Get(runtime.Call<AskTripler>(std::string("doubler")), 20s); }),
              AllOf(HasSubstr("'doubler'"), HasSubstr("Tripler"), HasSubstr("Doubler")));
  EXPECT_EQ(runtime.Get(runtime.Call<AskTripler>(std::string("tripler")), 20s), 12);
}

TEST_P(ClassesTest, ClassesOfTheSameNameInTwoFilesAreTwo) {
  const auto actor = runtime.CreateActor<Namesake>({.name = "namesake"});
  EXPECT_THAT(Refusal([&] { FileOfNamesake(runtime, "namesake"); }), HasSubstr("Namesake"));
  EXPECT_EQ(runtime.Get(runtime.GetActor<Namesake>("namesake").Call<&Namesake::File>()), 1);
}

TEST_P(ClassesTest, ClassesOfATemplateAndBasesAreOthers) {
  const auto adder = runtime.CreateActor<Adder<int>>({.name = "adder"});
  const auto derived = runtime.CreateActor<LabelledDoubler>({.name = "derived"});
  EXPECT_THAT(Refusal([&] { runtime.GetActor<Adder<long>>("adder"); }), HasSubstr("Adder"));
  EXPECT_THAT(Refusal([&] { runtime.GetActor<Doubler>("derived"); }), HasSubstr("Labelled"));
  const auto found = runtime.GetActor<LabelledDoubler>("derived");
  EXPECT_EQ(runtime.Get(found.Call<&LabelledDoubler::Times>(4)), 8);
}

// What is told in some other way that it is of another class than it is.
template <typename Other>
ActorRef<Other> As(Runtime& runtime, const ActorRef<Doubler>& actor) {
  const ObjectRef<ActorRef<Doubler>> put = runtime.Put(actor);
  return runtime.Get(ObjectRef<ActorRef<Other>>(put.handle()));
}

TEST_P(ClassesTest, AMethodOfAnotherClassIsNotRun) {
  const auto actor = runtime.CreateActor<Doubler>({});
  const auto wrong = As<Tripler>(runtime, actor);
  EXPECT_THAT(Refusal([&] { runtime.Get(wrong.Call<&Tripler::Times>(4), 20s); }),
              AllOf(HasSubstr("Tripler"), HasSubstr("Doubler")));
  const auto base = As<LabelledDoubler>(runtime, actor);
  EXPECT_THAT(Refusal([&] { runtime.Get(base.Call<&LabelledDoubler::Times>(4), 20s); }),
              AllOf(HasSubstr("LabelledDoubler"), HasSubstr("Doubler")));
  EXPECT_EQ(runtime.Get(actor.Call<&Doubler::Times>(4)), 8);
}

}  // namespace
}  // namespace menger
