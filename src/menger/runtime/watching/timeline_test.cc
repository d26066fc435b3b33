#include "menger/runtime/watching/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace menger {
namespace {

std::string Timeline(const std::vector<NodeEvent>& events, const std::vector<std::string>& names,
                     const WorkerPlaces& places = {}) {
  std::string text;
  WriteTimeline(events, names, places, [&](std::string_view piece) { text += piece; });
  return text;
}

// Shown right by Perfetto's rules: "X" with ts and dur in microseconds, "B" without an end, "i".
TEST(TimelineTest, TasksAreBarsAndTheRestAreMarks) {
  const std::vector<std::string> names = {"", "Say(\"hi\")", "killed\n"};
  const std::vector<NodeEvent> events = {
      {.time = 1'000'000, .subject = 0xa, .worker = 1, .name = 1},
      {.time = 1'002'500,
       .duration = 2'500,
       .subject = 0xa,
       .worker = 1,
       .name = 1,
       .kind = NodeEventKind::kTaskEnded},
      {.time = 1'003'000, .subject = 0xb, .worker = 1, .name = 1, .attempt = 2},
      {.time = 1'004'000, .worker = 2, .name = 2, .kind = NodeEventKind::kWorkerDied},
      {.time = 1'005'001, .subject = 0xc, .kind = NodeEventKind::kObjectSpilled}};
  const std::string text = Timeline(events, names);
  EXPECT_EQ(text, R"json({"displayTimeUnit":"ns","traceEvents":[
{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"menger node"}},
{"name":"thread_name","ph":"M","pid":1,"tid":0,"args":{"name":"node"}},
{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"worker 1"}},
{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"worker 2"}},
{"name":"Say(\"hi\")","ph":"X","pid":1,"tid":1,"ts":0.000,"cat":"task_ended","dur":2.500,"args":{"id":"00000000000000000a00000000000000","attempt":0}},
{"name":"Say(\"hi\")","ph":"B","pid":1,"tid":1,"ts":3.000,"cat":"task_started","args":{"id":"00000000000000000b00000000000000","attempt":2}},
{"name":"worker_died","ph":"i","pid":1,"tid":2,"ts":4.000,"cat":"worker_died","s":"t","args":{"name":"killed\n","id":"00000000000000000000000000000000","attempt":0}},
{"name":"object_spilled","ph":"i","pid":1,"tid":0,"ts":5.001,"cat":"object_spilled","s":"t","args":{"name":"","id":"00000000000000000c00000000000000","attempt":0}}
]}
)json");
  EXPECT_EQ(nlohmann::json::parse(text)["traceEvents"].size(), 8u);
}

TEST(TimelineTest, ManyEventsComeInPiecesAndAreOneText) {
  std::vector<NodeEvent> events;
  for (int i = 0; i < 10'000; ++i) {
    events.push_back({.time = i * 1000,
                      .duration = 500,
                      .subject = static_cast<std::uint64_t>(i),
                      .name = 9,  // Unknown.
                      .kind = NodeEventKind::kTaskFailed});
  }
  std::string text;
  std::size_t longest = 0;
  int pieces = 0;
  WriteTimeline(events, std::vector<std::string>{"\xff not UTF-8"}, {},
                [&](std::string_view piece) {
                  text += piece;
                  longest = std::max(longest, piece.size());
                  ++pieces;
                });
  EXPECT_GT(pieces, 10);
  EXPECT_LT(longest, 80'000u);
  EXPECT_EQ(nlohmann::json::parse(text)["traceEvents"].size(), 10'002u);
}

TEST(TimelineTest, WorkersOfOtherNodesAreUnderTheirs) {
  const std::vector<NodeEvent> events = {
      {.time = 10, .worker = 1, .kind = NodeEventKind::kTaskEnded},
      {.time = 20, .worker = 2, .kind = NodeEventKind::kTaskEnded},
      {.time = 30, .worker = 3, .kind = NodeEventKind::kTaskEnded},
      {.time = 40, .worker = 4, .kind = NodeEventKind::kTaskEnded}};
  const auto trace = nlohmann::json::parse(
      Timeline(events, {""}, {{2, "node b"}, {3, "node \"a\""}, {4, "node b"}, {9, "node c"}}));
  std::map<int, std::string> processes;
  std::map<int, std::string> ran;
  std::map<int, int> threads;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") processes[event.at("pid")] = event["args"].at("name");
    if (event.at("name") == "thread_name") threads[event.at("tid")] = event.at("pid");
    if (event.at("ph") == "X") ran[event.at("tid")] = processes.at(event.at("pid"));
  }
  EXPECT_EQ(processes.size(), 4U);
  EXPECT_EQ(ran, (std::map<int, std::string>{
                     {1, "menger node"}, {2, "node b"}, {3, "node \"a\""}, {4, "node b"}}));
  EXPECT_EQ(threads.at(2), threads.at(4));
  EXPECT_NE(threads.at(2), threads.at(3));
}

TEST(TimelineTest, NoEventsAreAWholeText) {
  EXPECT_EQ(nlohmann::json::parse(Timeline({}, {}))["traceEvents"].size(), 1u);
}

}  // namespace
}  // namespace menger
