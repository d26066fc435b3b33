#include "menger/runtime/redis/redis_tables.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::string_view kFormat = "1";
constexpr const char* kAbout = "menger:about";
constexpr const char* kHead = "menger:head";
constexpr const char* kScanCount = "256";
constexpr const char* kReplicaMilliseconds = "500";

// As StoreTable has them.
constexpr std::array<std::string_view, kStoreTables> kTables = {
    "menger:nodes", "menger:jobs", "menger:functions", "menger:actors",
    "menger:names", "menger:5",    "menger:objects",   "menger:events"};

// KEYS: about, head. ARGV: head, milliseconds, format.
constexpr std::string_view kClaim = R"(
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return {'held', holder, redis.call('PTTL', KEYS[2])} end
local format = redis.call('HGET', KEYS[1], 'format')
if format and format ~= ARGV[3] then return {'format', format} end
local fail_overs = 0
if format then fail_overs = redis.call('HINCRBY', KEYS[1], 'fail_overs', 1) end
redis.call('HSET', KEYS[1], 'format', ARGV[3], 'head', ARGV[1], 'fail_overs', fail_overs, 'changes', 0)
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {'done', tostring(fail_overs)}
)";

// Of two heads that have claimed the tables the later one has them; of two that could not know of
// each other either, but always the same one.
constexpr std::string_view kIsOther = R"(
local holder = redis.call('HGET', KEYS[1], 'head')
local function is_other()
  if not holder or holder == ARGV[1] then return false end
  local theirs = tonumber(redis.call('HGET', KEYS[1], 'fail_overs'))
  local own = tonumber(ARGV[3])
  return theirs > own or (theirs == own and holder > ARGV[1])
end
)";

// KEYS: about, head, tables. ARGV: head, milliseconds, fail-overs, number of the change before, of
// this, and of each key its table, itself and its value.
constexpr std::string_view kWrite = R"(
if is_other() then return 'other' end
local changes = holder == ARGV[1] and redis.call('HGET', KEYS[1], 'changes')
if changes ~= ARGV[4] and changes ~= ARGV[5] then return 'behind' end
if changes ~= ARGV[5] then
  for i = 6, #ARGV, 3 do
    local hash = KEYS[3 + ARGV[i]]
    if ARGV[i + 2] == '' then
      redis.call('HDEL', hash, ARGV[i + 1])
    else
      redis.call('HSET', hash, ARGV[i + 1], ARGV[i + 2])
    end
  end
  redis.call('HSET', KEYS[1], 'changes', ARGV[5])
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 'done'
)";

// KEYS: about, head, tables, what is to be these. ARGV: head, milliseconds, fail-overs, number of
// the change, format.
constexpr std::string_view kReplace = R"(
if is_other() then return 'other' end
local tables = (#KEYS - 2) / 2
for i = 3, 2 + tables do
  redis.call('DEL', KEYS[i])
  if redis.call('EXISTS', KEYS[i + tables]) == 1 then redis.call('RENAME', KEYS[i + tables], KEYS[i]) end
end
redis.call('HSET', KEYS[1], 'format', ARGV[5], 'head', ARGV[1], 'fail_overs', ARGV[3], 'changes', ARGV[4])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 'done'
)";

// KEYS: head. ARGV: head.
constexpr std::string_view kRelease = R"(
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 'done'
)";

std::string StagedName(std::string_view table) { return fmt::format("{}:next", table); }

std::vector<std::string> AllKeys() {
  std::vector<std::string> keys = {kAbout, kHead};
  for (const std::string_view table : kTables) keys.emplace_back(table);
  return keys;
}

// Of the text up to the next blank, which are cut off; nothing if there is none.
std::optional<std::uint64_t> TakeNumber(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || digits == text.size() || text[digits] != ' ') return std::nullopt;
  text.remove_prefix(digits + 1);
  return number;
}

}  // namespace

std::string QuoteBytes(std::string_view bytes) {
  constexpr std::size_t kQuotedMax = 200;
  const bool whole = bytes.size() <= kQuotedMax;
  return fmt::format("{:?}{}", bytes.substr(0, kQuotedMax), whole ? "" : "...");
}

RedisChange::RedisChange(const StoreChange& change) : table(change.table), key(change.key) {
  if (change.kind != StoreChange::Kind::kPut) return;
  value = fmt::format("{} {} ", change.version, change.lease);
  value += change.value;
}

RedisTables::RedisTables(const RedisAddress& address, RedisPatience patience)
    : connection_(ConnectToPrimary(address, patience)) {
  for (const std::string_view script : {kClaim, kWrite, kReplace, kRelease}) {
    const bool asks = script == kWrite || script == kReplace;
    const std::string text = fmt::format("{}{}", asks ? kIsOther : "", script);
    hashes_[script] = connection_.Ask({"SCRIPT", "LOAD", text}).text;
  }
}

RedisReply RedisTables::Run(std::string_view script, const std::vector<std::string>& keys,
                            const std::vector<std::string_view>& arguments) {
  const std::string count = std::to_string(keys.size());
  std::vector<std::string_view> words = {"EVALSHA", hashes_.at(script), count};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return AskFor(keys, words);
}

RedisReply RedisTables::AskFor(const std::vector<std::string>& keys,
                               const std::vector<std::string_view>& words) {
  try {
    return connection_.Ask(words);
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("WRONGTYPE") == std::string_view::npos) throw;
    throw Unavailable(
        "{}; it is that of {}: somebody else writes there; name another database, or delete the "
        "key",
        error.what(), keys.size() == 1 ? keys[0] : fmt::format("one of {}", fmt::join(keys, ", ")));
  }
}

// ---- Whose they are.

std::optional<RedisTables::Holder> RedisTables::Claim(RedisClaim& claim) {
  const std::string time = std::to_string(claim.time_max.count());
  const RedisReply reply = Run(kClaim, {kAbout, kHead}, {claim.head, time, kFormat});
  const std::string& said = reply.list.at(0).text;
  if (said == "held") {
    return Holder{.head = reply.list.at(1).text,
                  .time = std::chrono::milliseconds(reply.list.at(2).number)};
  }
  if (said == "format") {
    throw FailedPrecondition(
        "the Redis at {} has a control store of format {} (field 'format' of '{}'); this program "
        "has {}",
        server(), QuoteBytes(reply.list.at(1).text), kAbout, kFormat);
  }
  std::string_view fail_overs = reply.list.at(1).text;
  std::from_chars(fail_overs.data(), fail_overs.data() + fail_overs.size(), claim.fail_overs);
  AwaitReplica();
  return std::nullopt;
}

// Else the next primary could give the next head the number of this one.
void RedisTables::AwaitReplica() {
  const RedisReply role = connection_.Ask({"ROLE"});
  if (role.list.size() < 3 || role.list[2].list.empty()) return;
  connection_.Ask({"WAIT", "1", kReplicaMilliseconds});
}

void RedisTables::Release(const RedisClaim& claim) { Run(kRelease, {kHead}, {claim.head}); }

// ---- Their records.

void RedisTables::Visit(const StoreJournal::Visitor& visit) {
  for (int table = 0; table < kStoreTables; ++table) {
    const std::string_view name = kTables[static_cast<std::size_t>(table)];
    std::string cursor = "0";
    do {
      const RedisReply reply =
          AskFor({std::string(name)}, {"HSCAN", name, cursor, "COUNT", kScanCount});
      cursor = reply.list.at(0).text;
      const std::vector<RedisReply>& fields = reply.list.at(1).list;
      for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
        std::string_view value = fields[i + 1].text;
        StoreChange change{.table = static_cast<StoreTable>(table), .key = fields[i].text};
        const auto version = TakeNumber(value);
        const auto lease = TakeNumber(value);
        if (!version || !lease) {
          throw DataLoss(
              "field {} of '{}' in the Redis at {} is no record of a control store: {}; a head "
              "starts without it (HDEL)",
              QuoteBytes(fields[i].text), name, server(), QuoteBytes(fields[i + 1].text));
        }
        change.version = *version;
        change.lease = *lease;
        change.value = value;
        visit(change);
      }
    } while (cursor != "0");
  }
}

RedisTables::Outcome RedisTables::Write(const RedisClaim& claim, std::uint64_t before,
                                        std::span<const RedisChange> changes) {
  static const std::vector<std::string> keys = AllKeys();
  static constexpr std::array<std::string_view, kStoreTables> numbers = {"0", "1", "2", "3",
                                                                         "4", "5", "6", "7"};
  const std::string time = std::to_string(claim.time_max.count());
  const std::string fail_overs = std::to_string(claim.fail_overs);
  const std::string from = std::to_string(before);
  const std::string to = std::to_string(changes.empty() ? before : before + 1);
  std::vector<std::string_view> arguments = {claim.head, time, fail_overs, from, to};
  for (const RedisChange& change : changes) {
    arguments.push_back(numbers[static_cast<std::size_t>(change.table)]);
    arguments.push_back(change.key);
    arguments.push_back(change.value);
  }
  const std::string said = Run(kWrite, keys, arguments).text;
  if (said == "behind") return Outcome::kBehind;
  return said == "done" ? Outcome::kDone : Outcome::kOther;
}

void RedisTables::BeginStage() {
  std::vector<std::string> names;
  for (const std::string_view table : kTables) names.push_back(StagedName(table));
  std::vector<std::string_view> words = {"DEL"};
  words.insert(words.end(), names.begin(), names.end());
  connection_.Ask(words);
}

void RedisTables::Stage(std::span<const RedisChange> changes) {
  std::array<std::string, kStoreTables> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = StagedName(kTables[i]);
  std::vector<std::vector<std::string_view>> questions;
  for (const RedisChange& change : changes) {
    questions.push_back(
        {"HSET", names[static_cast<std::size_t>(change.table)], change.key, change.value});
  }
  connection_.Ask(questions);
}

bool RedisTables::Replace(const RedisClaim& claim, std::uint64_t number) {
  std::vector<std::string> keys = AllKeys();
  for (const std::string_view table : kTables) keys.push_back(StagedName(table));
  const std::string time = std::to_string(claim.time_max.count());
  const std::string fail_overs = std::to_string(claim.fail_overs);
  const std::string change = std::to_string(number);
  return Run(kReplace, keys, {claim.head, time, fail_overs, change, kFormat}).text == "done";
}

}  // namespace menger
