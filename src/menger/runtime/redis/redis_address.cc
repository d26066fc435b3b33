#include "menger/runtime/redis/redis_address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::string_view kServer = "redis://";
constexpr std::string_view kSentinels = "redis-sentinel://";
constexpr int kServerPort = 6379;
constexpr int kSentinelPort = 26379;
constexpr int kDatabaseMax = 1 << 20;

// A password that is in it is nobody else's business.
Error Wrong(const std::string& why) {
  return InvalidArgument(
      "the address of a Redis {}; right are redis://HOST:PORT/DATABASE and "
      "redis-sentinel://HOST:PORT,HOST:PORT/DATABASE#NAME",
      why);
}

std::optional<int> Number(std::string_view text, int low, int high) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (!is_whole || number < low || number > high) return std::nullopt;
  return number;
}

std::string Decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) {
      throw Wrong("has a % that no two hexadecimal digits follow");
    }
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

// Cuts what follows the first `mark` off; none if there is no such mark.
std::optional<std::string_view> CutAfter(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view after = text.substr(at + 1);
  text = text.substr(0, at);
  return after;
}

RedisAddress::Host ReadHost(std::string_view text, int port) {
  std::string_view name = text;
  std::optional<std::string_view> number;
  if (text.starts_with('[')) {  // IPv6.
    number = CutAfter(name, ']');
    if (!number) throw Wrong(fmt::format("has a host '{}' without a ]", text));
    name.remove_prefix(1);
    if (number->empty()) {
      number = std::nullopt;
    } else if (number->starts_with(':')) {
      number->remove_prefix(1);
    } else {
      throw Wrong(fmt::format("has '{}' behind a host", *number));
    }
  } else {
    number = CutAfter(name, ':');
  }
  if (name.empty()) throw Wrong("names no host");
  const std::optional<int> read = number ? Number(*number, 1, 65'535) : port;
  if (!read) throw Wrong(fmt::format("has the port '{}'", *number));
  return {.name = std::string(name), .port = *read};
}

}  // namespace

RedisAddress RedisAddress::Parse(std::string_view text) {
  const bool sentinels = text.starts_with(kSentinels);
  if (text.starts_with("rediss://")) {
    throw Wrong("asks for TLS, which this program does not speak with it: put a tunnel before it");
  }
  if (!sentinels && !text.starts_with(kServer)) throw Wrong("does not begin with redis://");
  std::string_view rest = text.substr(sentinels ? kSentinels.size() : kServer.size());

  RedisAddress address;
  const std::optional<std::string_view> name = CutAfter(rest, '#');
  if (sentinels != (name && !name->empty())) {
    throw Wrong(sentinels ? "of sentinels lacks #NAME, what they call the primary"
                          : "of one server has a #NAME, which is for redis-sentinel://");
  }
  if (name) address.primary = Decode(*name);
  if (rest.find('?') != std::string_view::npos) throw Wrong("has options behind a ?, of none");

  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    std::string_view user = rest.substr(0, at);
    rest = rest.substr(at + 1);
    const std::optional<std::string_view> password = CutAfter(user, ':');
    address.password = Decode(password.value_or(user));
    if (password) address.user = Decode(user);
  }
  if (const std::optional<std::string_view> database = CutAfter(rest, '/');
      database && !database->empty()) {
    const std::optional<int> number = Number(*database, 0, kDatabaseMax);
    if (!number) throw Wrong(fmt::format("has the database '{}', not a number", *database));
    address.database = *number;
  }
  for (std::optional<std::string_view> more = rest; more;) {
    std::string_view host = *more;
    more = CutAfter(host, ',');
    address.hosts.push_back(ReadHost(host, sentinels ? kSentinelPort : kServerPort));
  }
  if (!sentinels && address.hosts.size() > 1) {
    throw Wrong("names several servers, of which only sentinels know the primary");
  }
  return address;
}

std::string RedisAddress::Host::Describe() const {
  const bool is_ipv6 = name.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", name, port) : fmt::format("{}:{}", name, port);
}

std::string RedisAddress::Describe() const {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.Describe());
  const std::string where = fmt::format("{}/{}", fmt::join(names, ","), database);
  return primary.empty() ? fmt::format("{}{}", kServer, where)
                         : fmt::format("{}{}#{}", kSentinels, where, primary);
}

}  // namespace menger
