#include "menger/runtime/watching/node_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "menger/base/file_testing.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeEvent At(std::int64_t time) { return {.time = time}; }

std::vector<std::int64_t> Times(const std::vector<NodeEvent>& events) {
  std::vector<std::int64_t> times;
  for (const NodeEvent& event : events) times.push_back(event.time);
  return times;
}

TEST(NodeEventsTest, TheLastOnesAreKeptAndCopiedPartByPart) {
  EventRing events(/*capacity=*/4);
  for (int i = 0; i < 3; ++i) events.Add(At(i));
  std::vector<NodeEvent> copied;
  std::uint64_t next = events.Copy(0, 2, copied);
  EXPECT_THAT(Times(copied), ElementsAre(0, 1));
  for (int i = 3; i < 8; ++i) events.Add(At(i));
  next = events.Copy(next, 100, copied);  // 2 and 3 are gone.
  EXPECT_THAT(Times(copied), ElementsAre(0, 1, 4, 5, 6, 7));
  EXPECT_EQ(next, events.written());
  EXPECT_EQ(events.Copy(next, 100, copied), next);
}

TEST(NodeEventsTest, ANameHasOneNumberAndThereIsABound) {
  NodeEvents events;
  EXPECT_EQ(events.Intern(""), 0);
  const std::uint16_t a = events.Intern("a");
  EXPECT_EQ(events.Intern("a"), a);
  EXPECT_EQ(events.names()[a], "a");
  EXPECT_EQ(events.names()[events.Intern(std::string(300, 'x'))].size(), 200u);
  for (int i = 0; i < 70'000; ++i) events.Intern(std::to_string(i));
  const std::uint16_t late = events.Intern("late");
  EXPECT_EQ(events.names().at(late), "(other)");
  EXPECT_EQ(events.Intern("later"), late);
  EXPECT_EQ(events.Intern("a"), a);
}

TEST(NodeEventsTest, CountsAreOfAllEventsThatThereWere) {
  NodeEvents events(/*tasks_kept=*/2, /*others_kept=*/1);
  for (int i = 0; i < 10; ++i) {
    events.Add({.duration = 1'000'000, .kind = NodeEventKind::kTaskEnded});
  }
  events.Add({.kind = NodeEventKind::kWorkerDied});
  EXPECT_EQ(events.tasks().written(), 10u);
  EXPECT_EQ(events.others().written(), 1u);
  MetricsText text;
  AddMetrics(events, text);
  EXPECT_THAT(text.text(), HasSubstr("menger_node_events_total{event=\"task_ended\"} 10\n"));
  EXPECT_THAT(text.text(), HasSubstr("menger_node_events_total{event=\"worker_died\"} 1\n"));
  EXPECT_THAT(text.text(), HasSubstr("menger_node_events_total{event=\"actor_checkpointed\"} 0\n"));
  EXPECT_THAT(text.text(), HasSubstr("menger_task_seconds_count 10\n"));
}

TEST(NodeEventsTest, ACapacityThatIsNoPowerOfTwoIsRefused) {
  EXPECT_THAT(testing_files::ErrorText(ErrorCode::kInvalidArgument, [] { EventRing events(3); }),
              HasSubstr("3 events"));
}

}  // namespace
}  // namespace menger
