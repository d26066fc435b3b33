#pragma once

#include <poll.h>

#include <atomic>
#include <list>
#include <memory>
#include <optional>
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

  void Check() const;  // Throws InvalidArgument that names the field.
};

// Serves a replay store to other processes of the host (ServedReplay is their end): requests come
// over rings in shared memory, rows of samples are read where they lie. Over TCP the same is said
// in a stream, and rows of samples are sent.
//
// Each client has a thread of its own, which waits in a table for it as a thread of this process
// would: so all that Table says of turns, deadlines and limits holds for all clients together, and
// one that is slow, silent or goes astray costs itself alone. A client that ends, however, loses
// what it had drawn and not yet inserted; items that it had flushed stay.
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
  // answered until the deadline, and lets them go: they look for another server.
  void Stop(const Deadline& deadline);

  ServerInfo info() const;
  // With the port that it has; empty where it does not listen for TCP.
  const std::string& listens_at() const { return listens_at_; }

 private:
  // Who has connected and has not yet said what he wants.
  struct Guest {
    FileDescriptor socket;
    bool by_tcp = false;
    Deadline deadline;
  };
  struct Client {
    FileDescriptor socket;  // Beside rings,
    int watched = -1;       // or the channel's own, which the connection closes:
    short gone = 0;         // events that say that the client has gone.
    std::unique_ptr<Connection> connection;
    Thread thread;
  };

  void Watch();
  void FinishAll();
  void Poll(std::vector<pollfd>& polled);
  template <typename Listener>
  void AcceptAll(const Listener& listener, bool by_tcp);
  void Greet(Guest& guest);
  static Greeting GreetingOf(const Guest& guest);
  void Refuse(const Guest& guest, std::string_view why) const;
  Client WelcomeByRings(FileDescriptor socket, const Greeting& greeting);
  Client WelcomeByStream(FileDescriptor socket, const Greeting& greeting);
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
  std::optional<ListeningTcpSocket> tcp_listener_;
  const std::string listens_at_;
  FileDescriptor wake_;  // An eventfd.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> drained_{false};  // Stopping, and no client is left.
  std::atomic<bool> ended_{false};
  std::atomic<int> connections_{0};

  // Of thread_ alone.
  std::list<Guest> guests_;
  std::list<Client> clients_;
  Thread thread_;
};

}  // namespace menger
