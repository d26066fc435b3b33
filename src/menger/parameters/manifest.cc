#include "menger/parameters/manifest.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "menger/base/error.h"

namespace menger {

std::int64_t ParameterManifest::Add(std::string name, Shape shape) {
  if (name.empty() || name.find_first_of(" \n") != std::string::npos) {
    throw InvalidArgument("parameter name '{}' must be one word", name);
  }
  if (Find(name) != nullptr) throw InvalidArgument("two parameters are named '{}'", name);
  const std::int64_t offset = size_;
  size_ += ElementCount(shape);
  entries_.push_back({.name = std::move(name), .shape = std::move(shape), .offset = offset});
  return offset;
}

const ParameterEntry* ParameterManifest::Find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const ParameterEntry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

void ParameterManifest::CheckEqual(const ParameterManifest& other, const std::string& what) const {
  const auto describe = [](const ParameterManifest& manifest, std::size_t index) {
    return index < manifest.entries_.size()
               ? fmt::format("'{}' of shape {}", manifest.entries_[index].name,
                             ToString(manifest.entries_[index].shape))
               : std::string("nothing");
  };
  for (std::size_t i = 0; i < std::max(entries_.size(), other.entries_.size()); ++i) {
    const std::string mine = describe(*this, i);
    const std::string theirs = describe(other, i);
    if (mine != theirs) {
      throw FailedPrecondition("{} is of another architecture: it has {} where {} is expected",
                               what, theirs, mine);
    }
  }
}

std::string ParameterManifest::ToText() const {
  std::string text;
  for (const ParameterEntry& entry : entries_) {
    text += entry.name;
    for (const std::int64_t size : entry.shape) text += " " + std::to_string(size);
    text += "\n";
  }
  return text;
}

ParameterManifest ParameterManifest::FromText(const std::string& text) {
  ParameterManifest manifest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    Shape shape;
    for (std::int64_t size = 0; words >> size;) shape.push_back(size);
    if (!words.eof()) throw DataLoss("parameter manifest line '{}' is not a name and sizes", line);
    manifest.Add(name, std::move(shape));
  }
  return manifest;
}

}  // namespace menger
