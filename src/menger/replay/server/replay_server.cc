#include "menger/replay/server/replay_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/sharing/descriptors.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kGreetingTime{5};
constexpr std::chrono::milliseconds kLook{200};
constexpr std::size_t kRingBytesMin = std::size_t{64} << 10;
constexpr std::size_t kRingBytesMax = std::size_t{256} << 20;
constexpr std::size_t kGuestsMax = 1024;

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

// Who comes, who says what he wants, and who has gone. It never waits for a client.
void ReplayServer::Watch() {
  std::vector<pollfd> polled;
  while (!ended_) {
    polled.clear();
    polled.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
    const bool accepts = !stopping_ && guests_.size() < kGuestsMax;
    polled.push_back(
        {.fd = accepts ? listener_.descriptor().get() : -1, .events = POLLIN, .revents = 0});
    for (const Guest& guest : guests_) {
      polled.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
    }
    for (const Client& client : clients_) {
      polled.push_back({.fd = client.connection->socket().get(), .events = POLLIN, .revents = 0});
    }
    if (poll(polled.data(), polled.size(), static_cast<int>(kLook.count())) < 0) continue;
    std::size_t at = 2;
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
    if (polled[1].revents != 0) AcceptAll();
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

void ReplayServer::AcceptAll() {
  try {
    while (std::optional<FileDescriptor> socket = listener_.Accept()) {
      guests_.push_back({.socket = std::move(*socket), .deadline = Deadline::After(kGreetingTime)});
      if (guests_.size() >= kGuestsMax) return;
    }
  } catch (const Error& error) {
    LogWarning("{}", error.what());
    std::this_thread::sleep_for(kLook);  // Until somebody has gone.
  }
}

void ReplayServer::Greet(Guest& guest) {
  try {
    const DescriptorMessage message =
        ReceiveDescriptors(guest.socket, sizeof(Greeting), Deadline::After({}));
    const auto greeting = PlainReader(message.bytes).Take<Greeting>();
    if (greeting.magic != Greeting::kMagic) throw DataLoss("a stranger has connected");
    if (greeting.protocol != kReplayProtocol) {
      Refuse(guest.socket, fmt::format("this replay server speaks version {}, its client {}",
                                       kReplayProtocol, greeting.protocol));
    } else if (connections_ >= options_.connections_max) {
      Refuse(guest.socket, fmt::format("this replay server has {} clients, which is all that "
                                       "connections_max allows",
                                       options_.connections_max));
    } else {
      Welcome(std::move(guest.socket), greeting);
    }
  } catch (...) {
    LogWarning("a client of the replay server is turned away: {}",
               TranslateCurrentException().what());
  }
}

void ReplayServer::Refuse(const FileDescriptor& socket, std::string_view why) const {
  const menger::Welcome welcome{.refused = 1, .server = identity_};
  std::vector<std::byte> bytes;
  AppendPlain(welcome, bytes);
  AppendArray(std::span(why.data(), why.size()), bytes);
  TrySendDescriptors(socket, bytes, {});
}

void ReplayServer::Welcome(FileDescriptor socket, const Greeting& greeting) {
  const std::size_t ring_bytes =
      std::bit_ceil(std::clamp<std::uint64_t>(greeting.ring_bytes, kRingBytesMin, kRingBytesMax));
  auto connection = std::make_unique<Connection>(store_, calls_, std::move(socket), ring_bytes);
  const menger::Welcome welcome{.server = identity_, .arena_bytes = store_.chunks().bytes_max()};
  const std::array descriptors = {connection->channel_descriptor(), arena_.get(), records_.get()};
  if (!TrySendDescriptors(connection->socket(), std::as_bytes(std::span(&welcome, 1)),
                          std::span(descriptors).first(greeting.wants_memory != 0 ? 3 : 1))) {
    throw Unavailable("the system has too many descriptors under way");
  }
  Connection& served = *connection;
  Thread thread({.name = "replay client"}, [this, &served] {
    served.Serve();
    eventfd_write(wake_.get(), 1);
  });
  clients_.push_back({.connection = std::move(connection), .thread = std::move(thread)});
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
