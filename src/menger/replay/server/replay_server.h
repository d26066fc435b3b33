#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/base/thread.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/server/connection.h"

namespace menger {

// Where a replay server is found, and its bounds.
struct ReplayServerOptions {
  std::string socket;  // Path of a Unix socket; only this user's processes may connect.
  // Where it listens for TCP besides (base/sharing/tcp_socket.h): any process of the machine may
  // connect. Empty: nowhere.
  std::string listen;
  int connections_max = 4096;  // Each is a thread, and takes as much memory as it has under way.
  // For who has connected to say what he wants; he goes sooner where many others come.
  std::chrono::nanoseconds greeting_time = std::chrono::seconds(5);

  void Check() const;  // Throws InvalidArgument that names the field.
};

// Serves a replay store to other processes of the host (ServedReplay is their end): requests come
// over rings in shared memory, rows of samples are read where they lie. Over TCP the same is said
// in a stream, and rows of samples are sent.
//
// Each client has a thread of its own, which waits in a table for it as a thread of this process
// would: so all that Table says of turns, deadlines and limits holds for all clients together, and
// one that is slow, silent or goes astray costs itself alone. A client that ends, however, loses
// what it had drawn and not yet inserted; items that it had flushed stay. Rows that it has drawn
// are not overwritten before it has released them, or is seen to have ended.
//
//     ReplayStore store({..., .shared = true});
//     ReplayKeeper keeper(store, durability);
//     ReplayServer server(store, &keeper, {.socket = "/run/replay.sock"});
class ReplayServer {
 public:
  // Serves from here on. The store, in shared memory, and the keeper (null: nothing is kept)
  // outlive it. Throws as ListeningSocket, and FailedPrecondition for a store that is not shared.
  ReplayServer(ReplayStore& store, ReplayKeeper* keeper, const ReplayServerOptions& options);
  // Stops at once.
  ~ReplayServer();
  ReplayServer(const ReplayServer&) = delete;
  ReplayServer& operator=(const ReplayServer&) = delete;

  // Takes no more clients, answers what has come from those there are, or as much of it as can be
  // answered until the deadline, and lets them go: they look for another server. What they have
  // drawn stays readable for as long as this object, or nobody writes into the store.
  void Stop(const Deadline& deadline);

  ServerInfo info() const;
  // With the port that it has; empty where it does not listen for TCP.
  const std::string& listens_at() const { return listens_at_; }

  // For a process that does nothing but serve, before its first thread: lets the threads of clients
  // that come and go share memory. With memory of their own, each of which kept what it once had,
  // 18,000 visits left 134 MB instead of 23.
  static void PrepareProcess();

 private:
  // Who has connected and has not yet said what he wants.
  struct Guest {
    FileDescriptor socket;
    bool by_tcp = false;
    Deadline deadline;
  };
  struct Client {
    int watched = -1;    // The connection's socket, and
    short says_end = 0;  // what tells that the client says no more.
    std::unique_ptr<Connection> connection;
    Thread thread;
    bool silent = false;   // It says nothing more, but may read rows still.
    bool hung_up = false;  // It has gone.
  };

  static bool IsDone(const Client& client);
  void Watch();
  std::vector<pollfd> Polled() const;
  void HearClients(std::span<const pollfd> polled);
  void HearGuests(std::span<const pollfd> polled);
  void FinishAll();
  template <typename Listener>
  void AcceptAll(const Listener& listener, bool by_tcp);
  void Greet(Guest& guest);
  static Greeting GreetingOf(const Guest& guest);
  void Refuse(const Guest& guest, Refusal refusal, std::string_view why);
  void WelcomeByRings(Guest& guest, const Greeting& greeting);
  void WelcomeByStream(Guest& guest, const Greeting& greeting);
  void Serve(Client client);
  void DropGone();

  ReplayStore& store_;
  ReplayKeeper* const keeper_;
  const ReplayServerOptions options_;
  const std::uint64_t identity_;
  const ServerCalls calls_;
  const FileDescriptor arena_;
  const FileDescriptor records_;
  Stopwatch since_start_;
  ListeningSocket listener_;
  const std::optional<ListeningTcpSocket> tcp_listener_;
  const std::string listens_at_;
  FileDescriptor wake_;  // An eventfd.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> drained_{false};  // Stopping, and no client is left.
  std::atomic<bool> ended_{false};
  std::atomic<int> connections_{0};
  std::atomic<std::int64_t> refused_{0};

  // Of thread_ alone.
  std::list<Guest> guests_;
  std::list<Client> clients_;
  Thread thread_;
};

}  // namespace menger
