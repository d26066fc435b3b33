#include "menger/runtime/net/peer_stream_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "menger/base/error.h"

namespace menger {
namespace {

using testing::HasSubstr;

PeerStreamOptions Options() {
  PeerStreamOptions options;
  options.own.node.low = 1;
  return options;
}

std::string Refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(PeerStreamOptionsTest, EachOptionIsCheckedByName) {
  EXPECT_EQ(Refusal([] { CheckPeerStreamOptions(Options()); }), "");
  const auto refused = [](const std::function<void(PeerStreamOptions&)>& change) {
    PeerStreamOptions options = Options();
    change(options);
    return Refusal([&] { CheckPeerStreamOptions(options); });
  };
  EXPECT_THAT(refused([](auto& options) { options.own.node = {}; }), HasSubstr("name"));
  EXPECT_THAT(refused([](auto& options) { options.tls.key = "k"; }), HasSubstr("tls.certificate"));
  EXPECT_THAT(refused([](auto& options) { options.connect_max = {}; }), HasSubstr("connect_max"));
  EXPECT_THAT(refused([](auto& options) { options.greeting_max = {}; }), HasSubstr("greeting_max"));
  EXPECT_THAT(refused([](auto& options) { options.silence_max = options.heartbeat_every; }),
              HasSubstr("silence_max"));
  EXPECT_THAT(refused([](auto& options) { options.frame_bytes_max = 1; }),
              HasSubstr("frame_bytes_max"));
  EXPECT_THAT(refused([](auto& options) { options.queue_bytes_max = 1; }),
              HasSubstr("queue_bytes_max"));
  EXPECT_THAT(refused([](auto& options) { options.greetings_max = 0; }),
              HasSubstr("greetings_max"));
}

TEST(PeerStreamOptionsTest, LoopbackNeedsNeitherTokenNorTls) {
  for (const char* address : {"127.0.0.1:7000", "localhost:0", "[::1]:65535", "127.9.9.9:1"}) {
    EXPECT_TRUE(ParseNodeAddress(address, Options()).loopback) << address;
  }
  EXPECT_EQ(ParseNodeAddress("[::1]:65535", Options()).host, "::1");
  EXPECT_EQ(ParseNodeAddress("[::1]:65535", Options()).port, 65535);
}

TEST(PeerStreamOptionsTest, WhatIsNotLoopbackNeedsBoth) {
  PeerStreamOptions with_token = Options();
  with_token.token = "secret";
  PeerStreamOptions with_tls = Options();
  with_tls.tls = {"certificate", "key", "authorities"};
  PeerStreamOptions with_both = with_tls;
  with_both.token = "secret";
  for (const char* address : {"10.0.0.7:7000", "0.0.0.0:7000", "node7:7000", "[::]:1",
                              "128.0.0.1:1", "127.0.0.1.evil:1", "[::ffff:10.0.0.1]:1"}) {
    for (const PeerStreamOptions& options : {Options(), with_token, with_tls}) {
      const std::string why = Refusal([&] { (void)ParseNodeAddress(address, options); });
      EXPECT_THAT(why, HasSubstr(address));
      EXPECT_THAT(why, HasSubstr(options.token.empty() ? "token, which is missing"
                                                       : "token, which is given"));
      EXPECT_EQ(why.find("secret"), std::string::npos);
    }
    EXPECT_FALSE(ParseNodeAddress(address, with_both).loopback);
  }
}

TEST(PeerStreamOptionsTest, WhatIsNoAddressIsRefused) {
  for (const char* address : {"", ":", "7000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", ":7000",
                              "127.0.0.1:65536", "127.0.0.1:-1", "::1:7000", "[127.0.0.1]:1",
                              "[::1:7000", "a b:1", "unix:/a:1", "127.0.0.1:7000 "}) {
    EXPECT_THAT(Refusal([&] { (void)ParseNodeAddress(address, Options()); }),
                HasSubstr("is no address of a node"))
        << address;
  }
}

}  // namespace
}  // namespace menger
