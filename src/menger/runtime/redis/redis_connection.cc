#include "menger/runtime/redis/redis_connection.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

timeval TimeOf(std::chrono::milliseconds time) {
  return {.tv_sec = time.count() / 1000, .tv_usec = (time.count() % 1000) * 1000};
}

RedisReply Convert(const redisReply& reply) {
  using Kind = RedisReply::Kind;
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      return {.kind = Kind::kNumber, .number = reply.integer};
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      return {.kind = Kind::kText, .text = std::string(reply.str, reply.len)};
    case REDIS_REPLY_ERROR:
      return {.kind = Kind::kError, .text = std::string(reply.str, reply.len)};
    case REDIS_REPLY_ARRAY: {
      RedisReply list{.kind = Kind::kList};
      list.list.reserve(reply.elements);
      for (std::size_t i = 0; i < reply.elements; ++i) {
        list.list.push_back(Convert(*reply.element[i]));
      }
      return list;
    }
    default:
      return {};
  }
}

// These do not go by themselves.
Error ErrorOf(const std::string& server, const std::string& text) {
  for (const char* cause : {"WRONGPASS", "NOAUTH", "NOPERM", "ERR AUTH", "ERR invalid password",
                            "ERR DB index", "ERR Client sent AUTH", "ERR No such master"}) {
    if (text.starts_with(cause)) {
      return FailedPrecondition("the Redis at {} refuses: {}", server, text);
    }
  }
  return Unavailable("the Redis at {} answers: {}", server, text);
}

// The library writes to sockets as to files: where the other end has gone that is a signal, by
// which the process would end.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~WithoutPipeSignal() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    const timespec now{};
    if (sigismember(&before_, SIGPIPE) == 0) sigtimedwait(&pipe, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void RedisConnection::Closer::operator()(redisContext* context) const { redisFree(context); }

RedisConnection::RedisConnection(const RedisAddress::Host& host, RedisPatience patience)
    : server_(host.Describe()),
      context_(redisConnectWithTimeout(host.name.c_str(), host.port, TimeOf(patience.connect))) {
  if (context_ == nullptr) throw Unavailable("there is no memory for a connection to {}", server_);
  if (context_->err != 0) {
    throw Unavailable("the Redis at {} cannot be reached: {}", server_, context_->errstr);
  }
  redisSetTimeout(context_.get(), TimeOf(patience.answer));
}

RedisConnection::~RedisConnection() = default;
RedisConnection::RedisConnection(RedisConnection&&) noexcept = default;

RedisReply RedisConnection::Ask(const std::vector<std::string_view>& words) {
  const WithoutPipeSignal quiet;
  Send(words);
  return Receive();
}

std::vector<RedisReply> RedisConnection::Ask(
    const std::vector<std::vector<std::string_view>>& questions) {
  const WithoutPipeSignal quiet;
  for (const std::vector<std::string_view>& words : questions) Send(words);
  std::vector<RedisReply> replies;
  replies.reserve(questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) replies.push_back(Receive());
  return replies;
}

void RedisConnection::Send(const std::vector<std::string_view>& words) {
  std::vector<const char*> starts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), starts.data(),
                         sizes.data());
}

RedisReply RedisConnection::Receive() {
  void* received = nullptr;
  if (redisGetReply(context_.get(), &received) != REDIS_OK) {
    const bool late = context_->err == REDIS_ERR_IO && errno == EAGAIN;
    throw Unavailable("the Redis at {} does not answer{}", server_,
                      late ? " in time" : fmt::format(": {}", context_->errstr));
  }
  const std::unique_ptr<void, void (*)(void*)> owned(received, freeReplyObject);
  RedisReply reply = Convert(*static_cast<const redisReply*>(received));
  if (reply.kind == RedisReply::Kind::kError) throw ErrorOf(server_, reply.text);
  return reply;
}

// ----

namespace {

// The first sentinel that answers says.
RedisAddress::Host FindPrimary(const RedisAddress& address, RedisPatience patience) {
  std::optional<Error> why;
  for (const RedisAddress::Host& host : address.hosts) {
    try {
      RedisConnection sentinel(host, patience);
      const RedisReply reply =
          sentinel.Ask({"SENTINEL", "get-master-addr-by-name", address.primary});
      if (reply.list.size() == 2) {
        return {.name = reply.list[0].text, .port = std::atoi(reply.list[1].text.c_str())};
      }
      why = FailedPrecondition("the sentinel at {} knows no primary '{}'", sentinel.server(),
                               address.primary);
    } catch (const Error& error) {
      why = error;
    }
  }
  throw *why;
}

}  // namespace

RedisConnection ConnectToPrimary(const RedisAddress& address, RedisPatience patience) {
  RedisConnection made(
      address.primary.empty() ? address.hosts.front() : FindPrimary(address, patience), patience);
  if (!address.user.empty()) {
    made.Ask({"AUTH", address.user, address.password});
  } else if (!address.password.empty()) {
    made.Ask({"AUTH", address.password});
  }
  if (address.database != 0) made.Ask({"SELECT", std::to_string(address.database)});
  const RedisReply role = made.Ask({"ROLE"});
  if (role.list.empty() || role.list[0].text != "master") {
    throw Unavailable("the Redis at {} is a replica, not the primary", made.server());
  }
  return made;
}

}  // namespace menger
