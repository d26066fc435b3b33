#include "menger/replay/server/replay_server.h"

#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/sharing/descriptors.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kLook{200};
constexpr std::size_t kRingBytesMin = std::size_t{64} << 10;
constexpr std::size_t kRingBytesMax = std::size_t{256} << 20;
constexpr std::size_t kGuestsMax = 1024;
constexpr int kDescriptorsKept = 128;  // For journals and checkpoints, and whoever has the store.
constexpr std::string_view kNoDescriptors = "this replay server has no descriptors left";

// Not a draw of the run: it must differ between two lives of a server.
std::uint64_t NewIdentity() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// The system gives the lowest that is free: one from here on tells that few are left.
int DescriptorsMax() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<int>::max();
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(limit.rlim_cur, kMost)) - kDescriptorsKept;
}

}  // namespace

void ReplayServerOptions::Check() const {
  if (connections_max < 1) {
    throw InvalidArgument("connections_max is {}; it must be at least 1", connections_max);
  }
  if (greeting_time.count() <= 0) {
    throw InvalidArgument("greeting_time is {} ns; it must be more than 0", greeting_time.count());
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
                  .refused = refused_,
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

void ReplayServer::PrepareProcess() { mallopt(M_ARENA_MAX, 1); }

std::vector<pollfd> ReplayServer::Polled() const {
  std::vector<pollfd> polled;
  polled.reserve(2 + clients_.size() + guests_.size());
  polled.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
  polled.push_back(
      {.fd = stopping_ ? -1 : listener_.descriptor().get(), .events = POLLIN, .revents = 0});
  // What was heard once is not listened to again, or it would be heard for ever.
  for (const Client& client : clients_) {
    polled.push_back({.fd = client.hung_up ? -1 : client.connection->socket().get(),
                      .events = static_cast<short>(client.silent ? 0 : POLLIN),
                      .revents = 0});
  }
  for (const Guest& guest : guests_) {
    polled.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
  }
  return polled;
}

// Who comes, who says what he wants, and who has gone. It never waits for a client.
void ReplayServer::Watch() {
  while (!ended_) {
    std::vector<pollfd> polled = Polled();
    if (poll(polled.data(), polled.size(), static_cast<int>(kLook.count())) < 0) {
      if (errno != EINTR) std::this_thread::sleep_for(kLook);  // No memory, for now.
      continue;
    }
    const std::span<const pollfd> heard = std::span(polled).subspan(2);
    const std::size_t clients = clients_.size();
    HearClients(heard.first(clients));  // Those who have gone make room.
    DropGone();
    HearGuests(heard.subspan(clients));
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
    if (polled[1].revents != 0) AcceptAll();
    const bool last = stopping_;  // Whoever comes later finds nobody.
    if (last) FinishAll();
    DropGone();
    if (last && std::ranges::all_of(clients_, IsDone)) drained_ = true;
  }
  guests_.clear();
  for (Client& client : clients_) client.connection->Abandon();
  for (Client& client : clients_) client.thread.Join();  // What they have drawn stays.
  connections_ = 0;
}

bool ReplayServer::IsDone(const Client& client) { return client.connection->done(); }

void ReplayServer::HearClients(std::span<const pollfd> polled) {
  for (Client& client : clients_) {
    const auto revents = polled.front().revents;
    polled = polled.subspan(1);
    if (revents == 0) continue;
    client.silent = true;
    client.hung_up = (revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    client.connection->Abandon();
  }
}

void ReplayServer::HearGuests(std::span<const pollfd> polled) {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const auto here = guest++;
    const bool speaks = polled.front().revents != 0;
    polled = polled.subspan(1);
    if (speaks) Greet(*here);
    if (speaks || here->deadline.expired()) guests_.erase(here);
  }
}

void ReplayServer::FinishAll() {
  guests_.clear();
  for (Client& client : clients_) client.connection->Finish();
}

// Where there are too many who say nothing, he goes who came first. At most half of them at once:
// they shall be heard.
void ReplayServer::AcceptAll() {
  try {
    for (std::size_t come = 0; come < kGuestsMax / 2; ++come) {
      std::optional<FileDescriptor> socket = listener_.Accept();
      if (!socket) return;
      if (socket->get() >= DescriptorsMax()) {
        Refuse(*socket, Refusal::kFull, kNoDescriptors);
        continue;
      }
      if (guests_.size() >= kGuestsMax) guests_.pop_front();
      guests_.push_back(
          {.socket = std::move(*socket), .deadline = Deadline::After(options_.greeting_time)});
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
      Refuse(guest.socket, Refusal::kForGood,
             fmt::format("this replay server speaks version {}, its client {}", kReplayProtocol,
                         greeting.protocol));
    } else if (connections_ >= options_.connections_max) {
      Refuse(guest.socket, Refusal::kFull,
             fmt::format("this replay server has {} clients, which is all that connections_max "
                         "allows",
                         options_.connections_max));
    } else {
      Welcome(std::move(guest.socket), greeting);
    }
  } catch (...) {
    LogWarning("a client of the replay server is turned away: {}",
               TranslateCurrentException().what());
  }
}

void ReplayServer::Refuse(const FileDescriptor& socket, Refusal refusal, std::string_view why) {
  ++refused_;
  const menger::Welcome welcome{.refused = static_cast<std::uint32_t>(refusal),
                                .server = identity_};
  std::vector<std::byte> bytes;
  AppendPlain(welcome, bytes);
  AppendArray(std::span(why.data(), why.size()), bytes);
  try {
    TrySendDescriptors(socket, bytes, {});
  } catch (const Error&) {  // He does not want to know.
  }
}

void ReplayServer::Welcome(FileDescriptor socket, const Greeting& greeting) {
  const std::size_t ring_bytes =
      std::bit_ceil(std::clamp<std::uint64_t>(greeting.ring_bytes, kRingBytesMin, kRingBytesMax));
  auto connection = std::make_unique<Connection>(store_, calls_, std::move(socket), ring_bytes);
  if (connection->channel_descriptor() >= DescriptorsMax()) {
    return Refuse(connection->socket(), Refusal::kFull, kNoDescriptors);
  }
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
    const Connection& connection = *client.connection;
    if (!connection.done() || (connection.has_leases() && !client.hung_up)) return false;
    --connections_;
    return true;
  });
}

}  // namespace menger
