#include "menger/runtime/net/metrics_page.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/net/peer_stream_testing.h"

// The page of metrics, as a scraper sees it and as those who mean it ill do.
namespace menger {
namespace {

constexpr std::size_t kAnswerMost = std::size_t{64} << 20;
constexpr std::string_view kGet = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

// All that the page says until it leaves.
std::string Visit(const MetricsPage& page, std::string_view request) {
  RawEnd visitor(page.address());
  visitor.Say(BytesOf(request));
  return TextOf(visitor.Hear(kAnswerMost));
}

bool Begins(const std::string& answer, std::string_view line) { return answer.starts_with(line); }

TEST(MetricsPageTest, TheOnePageIsWhatItIsGiven) {
  int asked = 0;
  const MetricsPage page("127.0.0.1:0", [&asked] { return "answer " + std::to_string(++asked); });
  for (const std::string_view request :
       {kGet, std::string_view("GET /metrics?x=1 HTTP/1.0\r\n\r\nand what follows")}) {
    const std::string answer = Visit(page, request);
    EXPECT_TRUE(Begins(answer, "HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_NE(answer.find("\r\nContent-Type: text/plain; version=0.0.4"), std::string::npos);
    EXPECT_NE(answer.find("\r\nContent-Length: 8\r\n"), std::string::npos);
    EXPECT_TRUE(answer.ends_with("\r\n\r\nanswer " + std::to_string(asked))) << answer;
  }
  EXPECT_EQ(asked, 2);
}

TEST(MetricsPageTest, ALongPageComesWholeWhileOthersAreServed) {
  const std::string text(std::size_t{20} << 20, 'x');
  const MetricsPage page("127.0.0.1:0", [&text] { return text; });
  RawEnd unread(page.address());
  unread.Say(BytesOf(kGet));
  const std::string answer = Visit(page, kGet);
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), text);
  EXPECT_TRUE(TextOf(unread.Hear(kAnswerMost)).ends_with("xxxx"));
}

TEST(MetricsPageTest, NothingElseIsServed) {
  int asked = 0;
  const MetricsPage page("127.0.0.1:0", [&asked] { return std::to_string(++asked); });
  EXPECT_TRUE(Begins(Visit(page, "GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "));
  EXPECT_TRUE(Begins(Visit(page, "GET /metrics/.. HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "));
  EXPECT_TRUE(Begins(Visit(page, "POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 "));
  EXPECT_TRUE(Begins(Visit(page, "HEAD /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 "));
  EXPECT_TRUE(Begins(Visit(page, "GET /metrics\r\n\r\n"), "HTTP/1.1 400 "));
  EXPECT_TRUE(Begins(Visit(page, "GET /metrics SPDY/3\r\n\r\n"), "HTTP/1.1 400 "));
  EXPECT_TRUE(Begins(Visit(page, "\r\n\r\n"), "HTTP/1.1 400 "));
  EXPECT_TRUE(Begins(Visit(page, std::string(100, '\0') + "\r\n\r\n"), "HTTP/1.1 400 "));
  EXPECT_EQ(asked, 0);
}

TEST(MetricsPageTest, HeadersWithoutEndAreCutOff) {
  const MetricsPage page("127.0.0.1:0", [] { return "text"; });
  const std::string head = "GET /metrics HTTP/1.1\r\nX: ";
  const std::string long_one(std::size_t{1} << 20, 'y');
  EXPECT_TRUE(Begins(Visit(page, head + long_one), "HTTP/1.1 431 "));
  // With an end, too; and what is just short enough is read.
  EXPECT_TRUE(Begins(Visit(page, head + std::string(8192, 'y') + "\r\n\r\n"), "HTTP/1.1 431 "));
  EXPECT_TRUE(Begins(Visit(page, head + std::string(8000, 'y') + "\r\n\r\n"), "HTTP/1.1 200 "));
}

TEST(MetricsPageTest, WhoSaysNothingOrTooSlowlyIsSentAwayAndOthersGetIn) {
  const MetricsPage page("127.0.0.1:0", [] { return "text"; },
                         {.visits_max = 4, .request_max = std::chrono::milliseconds(100)});
  std::vector<std::unique_ptr<RawEnd>> slow;
  for (int i = 0; i < 12; ++i) slow.push_back(std::make_unique<RawEnd>(page.address()));
  std::thread drip([&slow] {
    for (int i = 0; i < 50; ++i) {
      slow[0]->Say(BytesOf("G"));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  EXPECT_TRUE(Begins(Visit(page, kGet), "HTTP/1.1 200 "));
  for (const auto& one : slow) EXPECT_EQ(TextOf(one->Hear(1)), "");
  drip.join();
}

TEST(MetricsPageTest, WhoDoesNotReadIsSentAway) {
  const std::string text(std::size_t{32} << 20, 'x');
  const MetricsPage page("127.0.0.1:0", [&text] { return text; },
                         {.visits_max = 1, .visit_max = std::chrono::milliseconds(100)});
  RawEnd unread(page.address());
  unread.Say(BytesOf(kGet));
  EXPECT_TRUE(Begins(Visit(page, "GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "));
  EXPECT_LT(unread.Hear(kAnswerMost).size(), text.size());
}

TEST(MetricsPageTest, AFailureIsToldAndThePageGoesOn) {
  bool fails = true;
  const MetricsPage page("127.0.0.1:0", [&fails]() -> std::string {
    if (fails) throw Unavailable("not now");
    return "text";
  });
  const std::string answer = Visit(page, kGet);
  EXPECT_TRUE(Begins(answer, "HTTP/1.1 500 "));
  EXPECT_TRUE(answer.ends_with("not now\n"));
  fails = false;
  EXPECT_TRUE(Begins(Visit(page, kGet), "HTTP/1.1 200 "));
}

TEST(MetricsPageTest, AddressesThatAreNoneAreRefused) {
  const auto text = [] { return std::string(); };
  for (const char* const address : {"", "9100", "127.0.0.1", "127.0.0.1:99999", "/metrics"}) {
    EXPECT_THROW(MetricsPage(address, text), Error) << address;
  }
  const MetricsPage page("127.0.0.1:0", text);
  EXPECT_THROW(MetricsPage(page.address(), text), Error);
}

TEST(MetricsPageTest, ItEndsWhileVisitorsAreThere) {
  auto page = std::make_unique<MetricsPage>("127.0.0.1:0", [] { return "text"; });
  RawEnd one(page->address());
  RawEnd other(page->address());
  other.Say(BytesOf("GET "));
  page.reset();
  EXPECT_EQ(TextOf(one.Hear(1)) + TextOf(other.Hear(1)), "");
}

}  // namespace
}  // namespace menger
