#include "menger/runtime/driver/line_printer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace menger {
namespace {

using testing::ElementsAre;

constexpr std::chrono::seconds kPatience(60);
const NodeId kNode{Id{.high = std::uint64_t{0x12345678} << 32, .low = 1}};

std::string NameOf(const NodeId& node) { return node == kNode ? "one" : ShortName(node); }

// Of what is shown.
struct Shown {
  std::vector<std::string> lines;
  RuntimeOptions Options() {
    return {.on_line = [this](const WorkerLine& line) {
      lines.push_back(fmt::format("{}|{}|{}|{}", line.node, line.name, line.process, line.text));
    }};
  }
};

TEST(LinePrinterTest, LinesAreShownWithTheirNodesInOrder) {
  Shown shown;
  {
    LinePrinter printer(shown.Options(), NameOf);
    printer.Add({{.node = kNode, .name = "worker 1", .worker = 1, .process = 7, .text = "a"},
                 {.node = NodeId{Id{.low = 5}}, .name = "press", .process = 8, .text = "b"}});
    printer.Add({{.node = kNode, .left_out = 3}});
  }
  EXPECT_THAT(shown.lines,
              ElementsAre("one|worker 1|7|a", "00000000|press|8|b",
                          "one|worker|0|3 lines of workers were left out: more is printed than "
                          "can be shown"));
  EXPECT_EQ(ShortName(kNode), ToString(kNode).substr(0, 8));
}

TEST(LinePrinterTest, WhoDoesNotReadIsNotWaitedForAndGetsANumber) {
  std::promise<void> reads;
  std::promise<void> came;
  const std::shared_future<void> begun = reads.get_future().share();
  Shown shown;
  RuntimeOptions options = shown.Options();
  options.on_line = [&, tell = options.on_line](const WorkerLine& line) {
    if (shown.lines.empty()) {
      came.set_value();
      EXPECT_EQ(begun.wait_for(kPatience), std::future_status::ready);
    }
    tell(line);
  };
  constexpr std::uint64_t kLines = 5'000;
  {
    LinePrinter printer(options, NameOf);
    printer.Add({{.node = kNode, .text = "first"}});
    EXPECT_EQ(came.get_future().wait_for(kPatience), std::future_status::ready);
    const std::string text(1000, 'x');
    for (std::uint64_t i = 0; i < kLines; ++i) printer.Add({{.node = kNode, .text = text}});
    reads.set_value();
  }
  const std::uint64_t shown_lines = shown.lines.size() - 2;  // The first, and the number's.
  EXPECT_LT(shown_lines, kLines / 2);
  EXPECT_EQ(shown.lines.back(),
            fmt::format("|worker|0|{} lines of workers were left out: more is printed than can be "
                        "shown",
                        kLines - shown_lines));
}

}  // namespace
}  // namespace menger
