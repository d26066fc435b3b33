#include "menger/replay/client/served_replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "menger/base/log.h"
#include "menger/base/plain_bytes.h"
#include "menger/replay/client/served_rows.h"
#include "menger/replay/client/served_sampler.h"
#include "menger/replay/client/served_writer.h"

namespace menger {
namespace {

constexpr std::size_t kCallRingBytes = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kRetry{20};
// Calls that are answered at once, and end with patience where there is no server.
constexpr std::nullopt_t kPrompt = std::nullopt;
// How long a client looks for a server at a time, before it says that it waits, or gives up.
constexpr std::chrono::seconds kLook{1};

std::string_view TextIn(std::span<const std::byte> answer) {
  PlainReader reader(answer);
  if (reader.Take<ReplyKind>() != ReplyKind::kText) {
    const std::optional<Error> error = ErrorIn(answer);
    if (error) throw *error;
    throw DataLoss("a replay server gave another answer");
  }
  const std::span<const std::byte> text = answer.subspan(sizeof(TextReply));
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

template <typename Reply>
Reply PlainIn(std::span<const std::byte> answer) {
  PlainReader kinds(answer);
  if (kinds.Take<ReplyKind>() != Reply{}.kind) {
    const std::optional<Error> error = ErrorIn(answer);
    if (error) throw *error;
    throw DataLoss("a replay server gave another answer");
  }
  return PlainReader(answer).Take<Reply>();
}

}  // namespace

// ---- Connections

ServerFinder::ServerFinder(ServedReplayOptions options) : options_(std::move(options)) {
  const Deadline end = Deadline::After(options_.start_patience.value_or(options_.patience));
  for (bool said = false;; said = true) {
    try {
      const auto look = std::min<std::chrono::nanoseconds>(end.remaining(), kLook);
      ServerLink link(options_.socket, /*wants_memory=*/false, kCallRingBytes,
                      Deadline::After(look));
      tables_ = AskTables(link);
      return;
    } catch (const Error& error) {  // It may have no place for us, or have just ended.
      if (error.code() != ErrorCode::kUnavailable || end.expired() || options_.given_up()) throw;
      if (!said) {
        LogWarning("{}; waiting for it at '{}' (menger replay serve starts one)", error.what(),
                   options_.socket);
      }
    }
    std::this_thread::sleep_for(kRetry);
  }
}

std::vector<TableOptions> ServerFinder::AskTables(ServerLink& link) {
  link.Begin(RequestKind::kTables);
  link.Send();
  std::vector<TableOptions> tables = DecodeTables(TextIn(link.Answer({})));
  link.Release();
  return tables;
}

std::unique_ptr<ServerLink> ServerFinder::Connect(bool wants_memory, std::size_t ring_bytes,
                                                  const Deadline& deadline) const {
  auto link = std::make_unique<ServerLink>(options_.socket, wants_memory, ring_bytes, deadline);
  const std::vector<TableOptions> found = AskTables(*link);
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const bool same = i < found.size() && found[i].name == tables_[i].name &&
                      found[i].items.columns == tables_[i].items.columns &&
                      found[i].items.open == tables_[i].items.open &&
                      StepsId(found[i].items.steps) == StepsId(tables_[i].items.steps);
    if (same) continue;
    throw FailedPrecondition(
        "the replay server at '{}' has come back without table '{}', or with other items in it",
        options_.socket, tables_[i].name);
  }
  return link;
}

void ServerFinder::With(std::unique_ptr<ServerLink>& link, bool wants_memory,
                        std::size_t ring_bytes, const Deadline& deadline,
                        const std::function<void(ServerLink& link)>& work) const {
  // From when it is first known to be gone: it may be since the last call.
  std::optional<Deadline> end;
  if (link == nullptr) end = Deadline::After(options_.patience);
  for (bool said = false;; said = true) {
    std::string why;
    const bool looked = link == nullptr;
    try {
      if (link == nullptr) {
        const auto wait =
            std::min<std::chrono::nanoseconds>({end->remaining(), deadline.remaining(), kLook});
        link = Connect(wants_memory, ring_bytes, Deadline::After(wait));
      }
      return work(*link);
    } catch (const ServerGone& gone) {
      why = gone.what();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kDataLoss) link.reset();  // Who knows what comes next on it.
      // Of a connection: the server has ended once more.
      if (link != nullptr || error.code() != ErrorCode::kUnavailable) throw;
      why = error.what();
    }
    link.reset();
    if (!end) end = Deadline::After(options_.patience);
    // Who gives up looks once more: it may be back already.
    if (end->expired() || (looked && options_.given_up())) {
      throw ReplayLost(fmt::format("{}, and nobody serves at '{}' again", why, options_.socket));
    }
    if (deadline.expired()) {
      throw DeadlineExceeded("{}, and nobody served at '{}' again in time", why, options_.socket);
    }
    if (!said) LogWarning("{}; waiting for it at '{}'", why, options_.socket);
    std::this_thread::sleep_for(kRetry);
  }
}

// ---- The client

ServedReplay::ServedReplay(const ServedReplayOptions& options)
    : finder_(std::make_shared<ServerFinder>(options)) {}

std::unique_ptr<ReplayWriter> ServedReplay::NewWriter(const Spec& steps,
                                                      const WriterOptions& options, int streams) {
  if (streams < 1) throw InvalidArgument("a writer of {} streams; it has at least 1", streams);
  return std::make_unique<ServedWriter>(finder_, steps, options, streams);
}

std::unique_ptr<ReplaySampler> ServedReplay::NewSampler(int table) {
  CheckIndex("table", table, tables());
  return std::make_unique<ServedSampler>(finder_, table);
}

std::unique_ptr<ServedRows> ServedReplay::NewRows(const ServedRowsOptions& options) {
  return std::make_unique<ServedRows>(finder_, options);
}

void ServedReplay::Ask(std::optional<Deadline> by,
                       const std::function<void(ServerLink& link)>& send,
                       const std::function<void(std::span<const std::byte> answer)>& take) {
  const std::lock_guard lock(mutex_);
  const Deadline deadline = by.value_or(Deadline::After(std::chrono::nanoseconds::max()));
  finder_->With(link_, /*wants_memory=*/false, kCallRingBytes, deadline, [&](ServerLink& link) {
    send(link);
    link.Send();
    const std::span<const std::byte> answer =
        link.Answer(by ? by->remaining() : std::chrono::nanoseconds(0));
    try {
      take(answer);
    } catch (...) {
      link.Release();
      throw;
    }
    link.Release();
  });
}

template <typename Entry>
Found ServedReplay::Change(RequestKind kind, int table, std::span<const Entry> entries) {
  CheckIndex("table", table, tables());
  Found found;
  constexpr std::size_t kPart = kCallRingBytes / 8 / sizeof(Entry);
  while (!entries.empty()) {
    const std::span<const Entry> part = entries.first(std::min(kPart, entries.size()));
    entries = entries.subspan(part.size());
    Ask(
        kPrompt,
        [&](ServerLink& link) {
          const TableRequest request{
              .kind = kind, .table = static_cast<std::uint32_t>(table), .count = part.size()};
          const std::span<std::byte> room = link.Begin(request, part.size_bytes());
          std::memcpy(room.data(), part.data(), part.size_bytes());
        },
        [&](std::span<const std::byte> answer) {
          const Found more = PlainIn<FoundReply>(answer).found;
          found.found += more.found;
          found.stale += more.stale;
        });
  }
  return found;
}

// All of them are checked before the first is sent: nothing is changed where one is wrong.
Found ServedReplay::UpdatePriorities(int table, std::span<const PriorityUpdate> updates) {
  for (const PriorityUpdate& update : updates) {
    if (std::isfinite(update.priority) && update.priority >= 0) continue;
    throw InvalidArgument(
        "table '{}': update of item {}: priority {}; it must be finite and not negative",
        this->table(table).name, update.key.number, update.priority);
  }
  return Change(RequestKind::kUpdate, table, updates);
}

Found ServedReplay::Delete(int table, std::span<const ItemKey> keys) {
  return Change(RequestKind::kDelete, table, keys);
}

TableInfo ServedReplay::info(int table) {
  CheckIndex("table", table, tables());
  TableInfo info;
  Ask(
      kPrompt,
      [&](ServerLink& link) {
        link.Begin(
            TableRequest{.kind = RequestKind::kInfo, .table = static_cast<std::uint32_t>(table)});
      },
      [&](std::span<const std::byte> answer) { info = PlainIn<InfoReply>(answer).info; });
  return info;
}

void ServedReplay::Reset(int table) {
  CheckIndex("table", table, tables());
  Ask(
      kPrompt,
      [&](ServerLink& link) {
        link.Begin(
            TableRequest{.kind = RequestKind::kReset, .table = static_cast<std::uint32_t>(table)});
      },
      [](std::span<const std::byte> answer) {
        if (const std::optional<Error> error = ErrorIn(answer)) throw *error;
      });
}

ServerInfo ServedReplay::server() {
  ServerInfo info;
  Ask(
      kPrompt, [](ServerLink& link) { link.Begin(RequestKind::kServer); },
      [&](std::span<const std::byte> answer) { info = DecodeServer(TextIn(answer)); });
  return info;
}

void ServedReplay::Checkpoint(const Deadline& deadline) {
  Ask(
      deadline,
      [&](ServerLink& link) { link.Begin(WaitRequest{.wait = deadline.remaining().count()}); },
      [](std::span<const std::byte> answer) {
        if (const std::optional<Error> error = ErrorIn(answer)) throw *error;
      });
}

}  // namespace menger
