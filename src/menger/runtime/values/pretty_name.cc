#include "menger/runtime/values/pretty_name.h"

#include <utility>

namespace menger {
namespace {

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string PrettyName(std::string_view compiler_name) {
  // "constexpr const char* menger::CompilerName() [with T = float]"; kValue likewise.
  std::string name(compiler_name);
  if (const std::size_t begin = name.find(" = "), end = name.rfind(']');
      begin != std::string::npos && end != std::string::npos) {
    name = name.substr(begin + 3, end - begin - 3);
  }
  constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
      {"std::__cxx11::basic_string<char>", "std::string"},
      {"std::basic_string_view<char>", "std::string_view"},
      {"<lambda closure object>", ""},
      {"{anonymous}::", ""},
      {"(anonymous namespace)::", ""},  // Clang's word.
      {"menger::", ""},
      {" >", ">"},
  };
  for (const auto& [from, to] : kReplacements) ReplaceAll(name, from, to);
  if (name.starts_with('&')) name.erase(0, 1);              // A method.
  if (name.ends_with(">()")) name.resize(name.size() - 2);  // A lambda: an object of its type.
  return name;
}

}  // namespace menger
