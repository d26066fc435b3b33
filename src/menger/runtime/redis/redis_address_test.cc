#include "menger/runtime/redis/redis_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/base/error.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Host = RedisAddress::Host;

TEST(RedisAddressTest, AServerIsAHostAndWhatElseIsSaid) {
  const RedisAddress plain = RedisAddress::Parse("redis://store");
  EXPECT_THAT(plain.hosts, ElementsAre(Host{"store", 6379}));
  EXPECT_EQ(plain.primary, "");
  EXPECT_EQ(plain.database, 0);
  const RedisAddress all = RedisAddress::Parse("redis://menger:p%40s%2Fs@[::1]:7000/3");
  EXPECT_THAT(all.hosts, ElementsAre(Host{"::1", 7000}));
  EXPECT_EQ(all.user, "menger");
  EXPECT_EQ(all.password, "p@s/s");
  EXPECT_EQ(all.database, 3);
  EXPECT_EQ(all.Describe(), "redis://[::1]:7000/3");
  EXPECT_EQ(RedisAddress::Parse("redis://secret@a/").password, "secret");
}

TEST(RedisAddressTest, SentinelsAreHostsAndANameOfThePrimary) {
  const RedisAddress address = RedisAddress::Parse("redis-sentinel://:secret@a,b:1/2#main");
  EXPECT_THAT(address.hosts, ElementsAre(Host{"a", 26379}, Host{"b", 1}));
  EXPECT_EQ(address.primary, "main");
  EXPECT_EQ(address.password, "secret");
  EXPECT_EQ(address.Describe(), "redis-sentinel://a:26379,b:1/2#main");
}

TEST(RedisAddressTest, WhatIsWrongIsSaidWithoutThePassword) {
  const auto why = [](const char* text) -> std::string {
    try {
      return RedisAddress::Parse(text).Describe();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
  };
  EXPECT_THAT(why(""), HasSubstr("does not begin with redis://"));
  EXPECT_THAT(why("localhost:6379"), HasSubstr("does not begin with redis://"));
  EXPECT_THAT(why("rediss://a"), HasSubstr("TLS"));
  EXPECT_THAT(why("redis://"), HasSubstr("names no host"));
  EXPECT_THAT(why("redis://a:0"), HasSubstr("port '0'"));
  EXPECT_THAT(why("redis://a:70000"), HasSubstr("port '70000'"));
  EXPECT_THAT(why("redis://a:6379x"), HasSubstr("port '6379x'"));
  EXPECT_THAT(why("redis://[::1"), HasSubstr("without a ]"));
  EXPECT_THAT(why("redis://[::1]7"), HasSubstr("behind a host"));
  EXPECT_THAT(why("redis://a/x"), HasSubstr("database 'x'"));
  EXPECT_THAT(why("redis://a/-1"), HasSubstr("database '-1'"));
  EXPECT_THAT(why("redis://a,b"), HasSubstr("several servers"));
  EXPECT_THAT(why("redis://a?x=1"), HasSubstr("options"));
  EXPECT_THAT(why("redis://a#b"), HasSubstr("#NAME"));
  EXPECT_THAT(why("redis-sentinel://a"), HasSubstr("lacks #NAME"));
  EXPECT_THAT(why("redis-sentinel://a#"), HasSubstr("lacks #NAME"));
  EXPECT_THAT(why("redis-sentinel://a,,b#c"), HasSubstr("names no host"));
  EXPECT_THAT(why("redis://u:top%4gsecret@a"), HasSubstr("hexadecimal"));
  EXPECT_THAT(why("redis://u:topsecret@a:x"), testing::Not(HasSubstr("topsecret")));
}

}  // namespace
}  // namespace menger
