#include "menger/runtime/cluster/shipped_paths.h"

#include <utility>

namespace menger {

ShippedPaths::ShippedPaths(const ProgramManifest& manifest, std::string copy)
    : folder_(manifest.folder), copy_(std::move(copy)) {
  for (const ProgramFile& file : manifest.files) {
    if (file.role != ProgramFile::Role::kFolderFile) continue;
    names_.insert(file.name);
    for (std::size_t slash = file.name.find('/'); slash != std::string::npos;
         slash = file.name.find('/', slash + 1)) {
      names_.insert(file.name.substr(0, slash));
    }
  }
}

std::string ShippedPaths::Here(std::string_view paths) const {
  std::string here;
  for (;;) {
    const std::size_t colon = paths.find(':');
    here += HereOne(paths.substr(0, colon));
    if (colon == std::string_view::npos) return here;
    here += ':';
    paths.remove_prefix(colon + 1);
  }
}

std::string ShippedPaths::HereOne(std::string_view path) const {
  if (!path.starts_with(folder_)) return std::string(path);
  std::string_view below = path.substr(folder_.size());
  if (!below.empty() && !below.starts_with('/')) return std::string(path);
  while (below.starts_with('/')) below.remove_prefix(1);
  while (below.ends_with('/')) below.remove_suffix(1);
  if (below.empty()) return copy_;
  return names_.contains(below) ? copy_ + "/" + std::string(below) : std::string(path);
}

}  // namespace menger
