#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/child_process.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/runtime/redis/redis_connection.h"

// Redis servers of a test's own.

namespace menger::testing_redis {

inline constexpr const char* kServerProgram = "/usr/bin/redis-server";

// Nobody listens there; somebody else might soon.
inline int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket);
  return ntohs(address.sin_port);
}

// A server of its own, at a port of its own, that keeps nothing on a disk.
class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> options = {}) : options_(std::move(options)) {
    Start();
  }

  int port() const { return port_; }
  RedisAddress address() const { return {.hosts = {{"127.0.0.1", port_}}}; }

  void Kill() {
    children_.KillAfter(child_, {});
    children_.WaitForEnd(child_, std::chrono::seconds(20));
  }
  void Signal(int number) { children_.Signal(child_, number); }

  // Again, at the same port: it knows nothing.
  void Start() {
    ChildProgram program{
        .arguments = {"redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1",
                      "--save", "", "--repl-diskless-sync-delay", "0", "--dir", folder_.path()},
        .file = kServerProgram};
    program.arguments.insert(program.arguments.end(), options_.begin(), options_.end());
    Run(std::move(program));
  }

  RedisReply Ask(const std::vector<std::string_view>& words) const {
    return RedisConnection({"127.0.0.1", port_}, {}).Ask(words);
  }

 private:
  void Run(ChildProgram program) {
    std::atomic<bool> ready{false};
    auto told = std::make_shared<std::atomic<bool>>(false);
    child_ = children_.Start(std::move(program), {.on_line = [told](std::string_view line) {
                               if (line.find("eady to accept") != std::string_view::npos)
                                 *told = true;
                             }});
    const Deadline deadline = Deadline::After(std::chrono::seconds(20));
    while (!*told && !deadline.expired()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(*told) << "no Redis server is ready";
  }

  const testing_files::Folder folder_;
  const std::vector<std::string> options_;
  const int port_ = FreePort();
  ChildProcesses children_;
  ChildId child_ = 0;
};

// One that watches a primary, which it calls "cluster", and makes its replica one.
class RedisSentinel {
 public:
  explicit RedisSentinel(const RedisServer& primary) {
    std::ofstream(folder_ / "sentinel.conf")
        << "port " << port_ << "\nbind 127.0.0.1\ndir " << folder_.path()
        << "\nsentinel monitor cluster 127.0.0.1 " << primary.port() << " 1\n"
        << "sentinel down-after-milliseconds cluster 500\n"
        << "sentinel failover-timeout cluster 5000\n";
    children_.Start({.arguments = {"redis-server", folder_ / "sentinel.conf", "--sentinel"},
                     .file = kServerProgram},
                    {});
  }

  RedisAddress address() const { return {.hosts = {{"127.0.0.1", port_}}, .primary = "cluster"}; }
  // That it knows.
  std::size_t replicas() const {
    try {
      RedisConnection sentinel({"127.0.0.1", port_}, {});
      return sentinel.Ask({"SENTINEL", "replicas", "cluster"}).list.size();
    } catch (const Error&) {  // It is not there yet.
      return 0;
    }
  }

 private:
  const testing_files::Folder folder_;
  const int port_ = FreePort();
  ChildProcesses children_;
};

// Until `is_so`; false: not soon.
template <typename Condition>
bool Eventually(Condition is_so) {
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  for (; !deadline.expired(); std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    if (is_so()) return true;
  }
  return false;
}

}  // namespace menger::testing_redis
