#pragma once

#include <toml++/toml.h>
#include <string>
#include <string_view>

#include "menger/base/error.h"
#include "menger/base/options.h"

namespace menger {

// Between TOML and the values of options: for files that people write.

// Throws InvalidArgument that names the file and the line.
toml::table ParseToml(std::string_view text, const std::string& origin);

// "file:line" of what a node says.
std::string PlaceOf(const std::string& origin, const toml::node& node);

// Throws InvalidArgument, naming the place and the key, for what no option takes.
OptionValue ToValue(const toml::node& node, const std::string& place, const std::string& key);

// As it is written to a file.
std::string TomlOf(const OptionValue& value);

// Calls the function; puts the place of a line in front of what is wrong with it.
template <typename Function>
void WithPlace(const std::string& place, Function function) {
  try {
    function();
  } catch (const Error& error) {
    throw WithContext(error, place);
  }
}

}  // namespace menger
