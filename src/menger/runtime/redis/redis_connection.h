#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/redis/redis_address.h"

struct redisContext;

namespace menger {

// What a Redis has answered.
struct RedisReply {
  enum class Kind : std::uint8_t { kNothing, kNumber, kText, kList, kError };
  Kind kind = Kind::kNothing;
  std::int64_t number = 0;
  std::string text;  // Any bytes; of an error its words.
  std::vector<RedisReply> list;
};

struct RedisPatience {
  std::chrono::milliseconds connect{500};
  std::chrono::milliseconds answer{1'000};
};

// A connection to a Redis, or to a sentinel. One thread at a time.
class RedisConnection {
 public:
  // Throws Unavailable where nobody is reached.
  RedisConnection(const RedisAddress::Host& host, RedisPatience patience);
  ~RedisConnection();
  RedisConnection(RedisConnection&&) noexcept;

  // Asks and waits. Throws Unavailable where no answer comes, as of a server that has ended: it may
  // have been done. An answer that is an error is thrown, too: FailedPrecondition where the
  // password, the user or the database is refused, else Unavailable. After any of them make another
  // connection.
  RedisReply Ask(const std::vector<std::string_view>& words);
  // Several, at once: one answer each.
  std::vector<RedisReply> Ask(const std::vector<std::vector<std::string_view>>& questions);

  // HOST:PORT of the server.
  const std::string& server() const { return server_; }

 private:
  struct Closer {
    void operator()(redisContext* context) const;
  };

  void Send(const std::vector<std::string_view>& words);
  RedisReply Receive();

  std::string server_;
  std::unique_ptr<redisContext, Closer> context_;
};

// To the primary: the sentinels are asked for it if there are any, and whoever is to be one whether
// it is. Throws as above, Unavailable where none is a primary now, and FailedPrecondition where the
// sentinels know none of that name.
RedisConnection ConnectToPrimary(const RedisAddress& address, RedisPatience patience);

}  // namespace menger
