#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace menger {

// Where a Redis is, as people write it:
//
//   redis://[[USER:]PASSWORD@]HOST[:PORT][/DATABASE]                              one server
//   redis-sentinel://[[USER:]PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/DATABASE]#NAME
//                                        the primary that these sentinels know by that name
//
// What a URL has to write otherwise ("%40" for "@") is decoded. Ports are 6379, of sentinels 26379.
struct RedisAddress {
  struct Host {
    std::string name;
    int port = 0;
    std::string Describe() const;  // HOST:PORT
    bool operator==(const Host&) const = default;
  };
  std::vector<Host> hosts;  // The server; or sentinels.
  std::string primary;      // What sentinels call it; "": `hosts` is the server.
  std::string user;
  std::string password;
  int database = 0;

  // Without the password.
  std::string Describe() const;

  // Throws InvalidArgument that says what is wrong.
  static RedisAddress Parse(std::string_view text);
};

}  // namespace menger
