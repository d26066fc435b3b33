#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/testing/told_world.h"

// Actors that the programs of a cluster find by their names: what their owners ask of whoever keeps
// the names, and in which order answers may come.
namespace menger {
namespace {

using Kind = NameQuestion::Kind;
constexpr char kShared[] = "counter @training";

NodeId IdOf(std::uint64_t number) { return NodeId{Id{.high = 1, .low = 10 + number}}; }

class NamingWorld : public ToldWorld {
 public:
  explicit NamingWorld(bool shares_names = true)
      : ToldWorld({.resources = Resources(2, 0),
                   .workers = 2,
                   .node = IdOf(0),
                   .epoch = 1,
                   .wait_here_max = 1e15,
                   .shares_names = shares_names}) {
    machine.StartWorkers();
  }
  void AskName(const NameQuestion& question) override { questions.push_back(question); }
  void Named(const Watch& asker, const NameAnswer& answer) override {
    answers.emplace_back(asker.request, answer);
  }

  Call ConstructNamed(const std::string& name) {
    SpecHeader header{.kind = CallKind::kConstruct, .named = true, .retries = 0};
    header.results = 1;
    header.parent = RootTask(1);
    header.task = ChildTask(RunOf(header.parent, 0), ++calls);
    header.actor = ActorOf(header.task);
    SpecBuilder builder(header, 0, {}, "cpu=0", name, 0);
    machine.Submit(kDriver, builder.Finish());
    machine.Run();
    return {header.task, header.actor};
  }
  void Find(std::uint64_t request, const std::string& name) {
    machine.FindActor({kDriver, request}, name);
  }
  NameQuestion TakeQuestion() {
    if (questions.empty()) return {.name = "nothing was asked"};
    const NameQuestion question = questions.front();
    questions.erase(questions.begin());
    return question;
  }
  void Answer(const NameQuestion& question, const NameAnswer& answer) {
    machine.NameAnswered(question, answer);
    machine.Run();
  }
  // "1: none, 2: some, 3: unknown", in the order in which they were told.
  std::string Told() {
    std::string text;
    for (const auto& [request, answer] : std::exchange(answers, {})) {
      const char* const what = answer.error ? "unknown" : answer.holder ? "some" : "none";
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", request, what);
    }
    return text;
  }

  std::vector<NameQuestion> questions;
  std::vector<std::pair<std::uint64_t, NameAnswer>> answers;
};

// Another program's actor of that name.
NamedActor Another(std::uint64_t number = 1) {
  return {.object = {.object = ObjectId{Id{7, number}}, .node = IdOf(number), .epoch = 1},
          .actor = ActorId{Id{8, number}}};
}

TEST(NodeSharedNamesTest, AConstructionWaitsForItsName) {
  NamingWorld world;
  const World::Call actor = world.ConstructNamed(kShared);
  const NameQuestion claim = world.TakeQuestion();
  EXPECT_EQ(claim.kind, Kind::kClaim);
  EXPECT_EQ(claim.name, kShared);
  EXPECT_EQ(claim.actor.object.object, actor.result());
  const World::Call called = world.Method(actor, {});
  EXPECT_EQ(world.Begin().lease, 0u);
  world.Find(1, kShared);
  EXPECT_EQ(world.Told(), "");

  world.Answer(claim, {.holder = claim.actor});
  EXPECT_EQ(world.Told(), "1: some");
  world.Finish(world.Begin());
  world.Finish(world.Begin());
  EXPECT_EQ(world.State(called.result()), "value");

  world.machine.KillActor(*world.machine.FindActor(actor.actor), /*may_restart=*/false);
  const NameQuestion release = world.TakeQuestion();
  EXPECT_EQ(release.kind, Kind::kRelease);
  EXPECT_EQ(release.actor.actor, actor.actor);
}

TEST(NodeSharedNamesTest, OneWhoseNameAnotherHasIsNeverBegun) {
  NamingWorld world;
  const World::Call actor = world.ConstructNamed(kShared);
  const NameQuestion claim = world.TakeQuestion();
  const World::Call called = world.Method(actor, {});
  world.Find(1, kShared);
  world.Answer(claim, {.holder = Another()});
  EXPECT_EQ(world.Begin().lease, 0u);
  EXPECT_EQ(world.State(actor.result()), "exception");
  EXPECT_EQ(world.State(called.result()), "exception");
  // Who has looked for the name is told of that other one.
  EXPECT_EQ(world.TakeQuestion().kind, Kind::kRelease);
  const NameQuestion look_up = world.TakeQuestion();
  EXPECT_EQ(look_up.kind, Kind::kLookUp);
  world.Answer(look_up, {.holder = Another()});
  ASSERT_EQ(world.answers.size(), 1u);
  EXPECT_EQ(world.answers[0].second.holder->actor, Another().actor);
}

TEST(NodeSharedNamesTest, OneThatEndsBeforeItsClaimIsAnsweredGivesTheNameBack) {
  NamingWorld world;
  const World::Call actor = world.ConstructNamed(kShared);
  const NameQuestion claim = world.TakeQuestion();
  world.machine.KillActor(*world.machine.FindActor(actor.actor), /*may_restart=*/false);
  EXPECT_EQ(world.TakeQuestion().kind, Kind::kRelease);
  world.Answer(claim, {.holder = claim.actor});
  EXPECT_EQ(world.Begin().lease, 0u);
  // The name is free: the next one asks for it, and the answer to the first is not its own.
  const World::Call next = world.ConstructNamed(kShared);
  const NameQuestion second = world.TakeQuestion();
  world.Answer(claim, {.holder = claim.actor});
  EXPECT_EQ(world.Begin().lease, 0u);
  world.Answer(second, {.holder = second.actor});
  EXPECT_EQ(world.Begin().task, next.task);
}

TEST(NodeSharedNamesTest, ANameThatNobodyCanSayIsAnErrorOfWhoNeedsIt) {
  NamingWorld world;
  const World::Call actor = world.ConstructNamed(kShared);
  world.Find(1, "other @training");
  const NameQuestion claim = world.TakeQuestion();
  const NameQuestion look_up = world.TakeQuestion();
  const NameAnswer unknown{.error = Unavailable("the store is away")};
  world.Answer(claim, unknown);
  world.Answer(look_up, unknown);
  EXPECT_EQ(world.State(actor.result()), "exception");
  EXPECT_EQ(world.Told(), "1: unknown");
}

TEST(NodeSharedNamesTest, WhoLookForOneNameAskOnceAndReferToItsActor) {
  NamingWorld world;
  world.Find(1, kShared);
  world.Find(2, kShared);
  world.Find(3, kShared);
  world.machine.StopFinding({kDriver, 3});
  const NameQuestion question = world.TakeQuestion();
  EXPECT_TRUE(world.questions.empty());
  world.Answer(question, {.holder = Another()});
  EXPECT_EQ(world.Told(), "1: some, 2: some");
  const Object* const object = world.machine.objects().Find(Another().object.object);
  ASSERT_NE(object, nullptr);
  EXPECT_TRUE(object->foreign);
  world.Forget(object->id);
  EXPECT_NE(world.machine.objects().Find(Another().object.object), nullptr);
  world.Find(4, kShared);
  world.Answer(world.TakeQuestion(), {});
  EXPECT_EQ(world.Told(), "4: none");
}

TEST(NodeSharedNamesTest, ALifeThatIsOverHasNoActors) {
  NamingWorld world;
  Peer& peer = world.machine.AddPeer(IdOf(1), 1, Resources(2, 0));
  world.machine.PeerDied(peer, {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  world.Find(1, kShared);
  world.Answer(world.TakeQuestion(), {.holder = Another()});
  EXPECT_EQ(world.Told(), "1: none");
}

TEST(NodeSharedNamesTest, OnesOwnNamesAskNobody) {
  NamingWorld world;
  const World::Call actor = world.ConstructNamed("counter");
  world.Finish(world.Begin());
  world.Find(1, "counter");
  world.Find(2, "other");
  EXPECT_EQ(world.Told(), "1: some, 2: none");
  EXPECT_EQ(world.State(actor.result()), "value");

  NamingWorld alone(/*shares_names=*/false);
  alone.ConstructNamed(kShared);
  alone.Find(1, kShared);
  EXPECT_EQ(alone.Told(), "1: some");
  EXPECT_TRUE(world.questions.empty() && alone.questions.empty());
}

}  // namespace
}  // namespace menger
