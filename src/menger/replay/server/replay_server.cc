#include "menger/replay/server/replay_server.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/ring_channel.h"
#include "menger/base/sharing/stream_channel.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kGreetingTime{5};
constexpr std::chrono::milliseconds kLook{200};
constexpr std::size_t kGuestsMax = 1024;

// As it comes over TCP.
struct FramedGreeting {
  StreamHeader header;
  Greeting greeting;
};
static_assert(sizeof(FramedGreeting) == sizeof(StreamHeader) + sizeof(Greeting));

// Not a draw of the run: it must differ between two lives of a server.
std::uint64_t NewIdentity() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

void ReplayServerOptions::Check() const {
  if (connections_max < 1) {
    throw InvalidArgument("connections_max is {}; it must be at least 1", connections_max);
  }
}

ReplayServer::ReplayServer(ReplayStore& store, ReplayKeeper* keeper,
                           const ReplayServerOptions& options)
    : store_(store),
      keeper_(keeper),
      options_((options.Check(), options)),
      identity_(NewIdentity()),
      calls_{.info = [this] { return info(); },
             .checkpoint =
                 [this](const Deadline& deadline) {
                   if (keeper_ == nullptr) {
                     throw FailedPrecondition(
                         "this replay server keeps nothing: it was started without durability");
                   }
                   keeper_->Checkpoint(deadline);
                 }},
      arena_(store.chunks().OpenArena()),
      records_(store.chunks().OpenRecords()),
      listener_(options.socket),
      tcp_listener_(options.listen.empty()
                        ? std::nullopt
                        : std::make_optional<ListeningTcpSocket>(options.listen)),
      listens_at_(tcp_listener_ ? tcp_listener_->address() : ""),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.valid()) throw FromErrno("cannot make an eventfd", errno);
  RaiseDescriptorLimit();  // Two a client.
  thread_ = Thread({.name = "replay server"}, [this] { Watch(); });
}

ReplayServer::~ReplayServer() { Stop(Deadline::After(std::chrono::seconds(0))); }

void ReplayServer::Stop(const Deadline& deadline) {
  stopping_ = true;
  eventfd_write(wake_.get(), 1);
  while (!drained_ && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ended_ = true;
  eventfd_write(wake_.get(), 1);
  thread_.Join();
}

ServerInfo ReplayServer::info() const {
  ServerInfo info{.process = getpid(),
                  .seconds = since_start_.seconds(),
                  .connections = connections_,
                  .bytes = store_.chunks().bytes_used(),
                  .bytes_max = store_.chunks().bytes_max(),
                  .durability = keeper_ == nullptr ? "none" : ToString(keeper_->kind())};
  for (int i = 0; i < store_.tables(); ++i) {
    const Table& table = store_.table(i);
    info.tables.push_back({.name = table.options().name,
                           .sampler = ToString(table.options().sampler),
                           .remover = ToString(table.options().remover),
                           .items_max = table.options().items_max,
                           .bytes_max = table.options().bytes_max,
                           .info = table.info()});
  }
  return info;
}

// Whom to listen to: first three that there always are, then guests, then clients.
void ReplayServer::Poll(std::vector<pollfd>& polled) {
  polled.clear();
  const auto add = [&polled](int descriptor, short events) {
    polled.push_back({.fd = descriptor, .events = events, .revents = 0});
  };
  const bool accepts = !stopping_ && guests_.size() < kGuestsMax;
  add(wake_.get(), POLLIN);
  add(accepts ? listener_.descriptor().get() : -1, POLLIN);
  add(accepts && tcp_listener_ ? tcp_listener_->descriptor().get() : -1, POLLIN);
  for (const Guest& guest : guests_) add(guest.socket.get(), POLLIN);
  for (const Client& client : clients_) add(client.watched, client.gone);
  if (poll(polled.data(), polled.size(), static_cast<int>(kLook.count())) < 0) polled.clear();
}

// Who comes, who says what he wants, and who has gone. It never waits for a client.
void ReplayServer::Watch() {
  std::vector<pollfd> polled;
  while (!ended_) {
    Poll(polled);
    if (polled.empty()) continue;
    std::size_t at = 3;
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const auto here = guest++;
      if (polled[at++].revents != 0) {
        Greet(*here);
        guests_.erase(here);
      } else if (here->deadline.expired()) {
        guests_.erase(here);
      }
    }
    for (Client& client : clients_) {
      if (at == polled.size()) break;  // Those who have come just now.
      if (polled[at++].revents != 0) client.connection->Abandon();
    }
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
    if (polled[1].revents != 0) AcceptAll(listener_, /*by_tcp=*/false);
    if (polled[2].revents != 0) AcceptAll(*tcp_listener_, /*by_tcp=*/true);
    const bool last = stopping_;  // Whoever comes later finds nobody.
    if (last) FinishAll();
    DropGone();
    if (last && clients_.empty()) drained_ = true;
  }
  guests_.clear();
  for (Client& client : clients_) client.connection->Abandon();
  clients_.clear();  // Joins.
  connections_ = 0;
}

void ReplayServer::FinishAll() {
  guests_.clear();
  for (Client& client : clients_) client.connection->Finish();
}

template <typename Listener>
void ReplayServer::AcceptAll(const Listener& listener, bool by_tcp) {
  try {
    while (guests_.size() < kGuestsMax) {
      std::optional<FileDescriptor> socket = listener.Accept();
      if (!socket) return;
      if (by_tcp) {  // Who says less than a greeting has said nothing.
        const int bytes = sizeof(FramedGreeting);
        setsockopt(socket->get(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
      }
      guests_.push_back({.socket = std::move(*socket),
                         .by_tcp = by_tcp,
                         .deadline = Deadline::After(kGreetingTime)});
    }
  } catch (const Error& error) {
    LogWarning("{}", error.what());
    std::this_thread::sleep_for(kLook);  // Until somebody has gone.
  }
}

Greeting ReplayServer::GreetingOf(const Guest& guest) {
  if (!guest.by_tcp) {
    const DescriptorMessage message =
        ReceiveDescriptors(guest.socket, sizeof(Greeting), Deadline::After({}));
    return PlainReader(message.bytes).Take<Greeting>();
  }
  FramedGreeting framed;
  const ssize_t came = recv(guest.socket.get(), &framed, sizeof framed, MSG_DONTWAIT);
  if (came != sizeof framed) throw DataLoss("it has gone without a greeting");
  framed.header.Check();
  return framed.greeting;
}

void ReplayServer::Greet(Guest& guest) {
  try {
    const Greeting greeting = GreetingOf(guest);
    if (greeting.magic != Greeting::kMagic) throw DataLoss("a stranger has connected");
    if (greeting.protocol != kReplayProtocol) {
      Refuse(guest, fmt::format("this replay server speaks version {}, its client {}",
                                kReplayProtocol, greeting.protocol));
    } else if (connections_ >= options_.connections_max) {
      Refuse(guest, fmt::format("this replay server has {} clients, which is all that "
                                "connections_max allows",
                                options_.connections_max));
    } else {
      Serve(guest.by_tcp ? WelcomeByStream(std::move(guest.socket), greeting)
                         : WelcomeByRings(std::move(guest.socket), greeting));
    }
  } catch (...) {
    LogWarning("a client of the replay server is turned away: {}",
               TranslateCurrentException().what());
  }
}

void ReplayServer::Refuse(const Guest& guest, std::string_view why) const {
  const Welcome welcome{.refused = 1, .server = identity_};
  std::vector<std::byte> bytes;
  if (guest.by_tcp) AppendPlain(StreamHeader::For(sizeof welcome + why.size()), bytes);
  AppendPlain(welcome, bytes);
  AppendArray(std::span(why.data(), why.size()), bytes);
  if (guest.by_tcp) {
    send(guest.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } else {
    TrySendDescriptors(guest.socket, bytes, {});
  }
}

ReplayServer::Client ReplayServer::WelcomeByRings(FileDescriptor socket, const Greeting& greeting) {
  auto channel = std::make_unique<RingChannel>(ChannelCapacity(greeting.ring_bytes));
  const Welcome welcome{.server = identity_, .arena_bytes = store_.chunks().bytes_max()};
  const std::array descriptors = {channel->descriptor(), arena_.get(), records_.get()};
  if (!TrySendDescriptors(socket, std::as_bytes(std::span(&welcome, 1)),
                          std::span(descriptors).first(greeting.wants_memory != 0 ? 3 : 1))) {
    throw Unavailable("the system has too many descriptors under way");
  }
  const int watched = socket.get();
  return {.socket = std::move(socket),
          .watched = watched,
          .gone = POLLIN,  // Nothing is to be said there any longer.
          .connection = std::make_unique<Connection>(store_, calls_, std::move(channel), nullptr)};
}

ReplayServer::Client ReplayServer::WelcomeByStream(FileDescriptor socket,
                                                   const Greeting& greeting) {
  const int bytes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
  auto channel =
      std::make_unique<StreamChannel>(std::move(socket), ChannelCapacity(greeting.ring_bytes));
  const Welcome welcome{.server = identity_};
  const Deadline now = Deadline::After({});
  std::memcpy(channel->Reserve(sizeof welcome, now).data(), &welcome, sizeof welcome);
  if (!channel->Drain(now)) throw Unavailable("it has no room for a welcome");
  const int watched = channel->socket().get();
  auto rows = std::make_unique<RowSender>(*channel);
  return {.watched = watched,
          .gone = POLLRDHUP,
          .connection =
              std::make_unique<Connection>(store_, calls_, std::move(channel), std::move(rows))};
}

void ReplayServer::Serve(Client client) {
  Connection& served = *client.connection;
  client.thread = Thread({.name = "replay client"}, [this, &served] {
    served.Serve();
    eventfd_write(wake_.get(), 1);
  });
  clients_.push_back(std::move(client));
  ++connections_;
}

void ReplayServer::DropGone() {
  std::erase_if(clients_, [this](const Client& client) {
    if (!client.connection->done()) return false;
    --connections_;
    return true;
  });
}

}  // namespace menger
