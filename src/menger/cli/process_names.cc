#include "menger/cli/process_names.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace menger {
namespace {

// In ticks since the machine began; "" for a process that is not there.
std::string BegunAt(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // It may have blanks.
  if (name_end == std::string::npos) return "";
  std::istringstream fields(text.substr(name_end + 1));
  constexpr int kFieldsBefore = 20;  // Of starttime, the 22nd of all.
  std::string field;
  for (int i = 0; i < kFieldsBefore && fields >> field; ++i) {
    if (i == 0 && (field == "Z" || field == "X")) return "";
  }
  return fields ? field : "";
}

std::string Machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  std::error_code none;
  const std::string numbers = std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
  return boot.empty() || numbers.empty() ? "" : fmt::format("{} {}", boot, numbers);
}

}  // namespace

std::string NameOfThisProcess() {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host);
  return fmt::format("process {} of {}, begun at {} ({})", getpid(), host, BegunAt(getpid()),
                     Machine());
}

bool HasEnded(std::string_view name) {
  constexpr std::string_view kBefore = "process ";
  const std::string machine = Machine();
  if (machine.empty() || !name.starts_with(kBefore)) return false;
  if (!name.ends_with(fmt::format(" ({})", machine))) return false;
  name.remove_prefix(kBefore.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc()) return false;
  const std::string begun = BegunAt(process);
  return begun.empty() ||
         name.find(fmt::format(", begun at {} (", begun)) == std::string_view::npos;
}

}  // namespace menger
