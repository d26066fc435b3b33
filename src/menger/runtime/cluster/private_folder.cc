#include "menger/runtime/cluster/private_folder.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "menger/base/clock.h"
#include "menger/runtime/cluster/node_ids.h"

namespace menger {
namespace {

constexpr const char* kName = "kept-";
constexpr std::chrono::minutes kWaitMax{2};

// Unless others make some now.
void RemoveLeft(const CacheFolder& below) {
  const FileDescriptor lock = below.LockAlone();
  if (!lock.valid()) return;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(below.path(), none)) {
    const std::filesystem::path& path = entry.path();
    if (path.filename().string().starts_with(kName)) CacheFolder::RemoveUnlessLocked(path);
  }
}

FileDescriptor LockToMake(const CacheFolder& below) {
  RemoveLeft(below);
  return below.Lock(Deadline::After(kWaitMax));
}

}  // namespace

PrivateFolder::PrivateFolder(const CacheFolder& below)
    : making_(LockToMake(below)),
      folder_(below.path() + "/" + kName + ToString(DrawNodeId())),
      lock_(folder_.Lock(Deadline::After(kWaitMax))) {
  making_.Close();
}

PrivateFolder::~PrivateFolder() {
  lock_.Close();
  CacheFolder::RemoveUnlessLocked(folder_.path());
}

}  // namespace menger
