#include "menger/base/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "menger/base/files.h"

namespace menger {
namespace {

constexpr int kFormatVersion = 1;
constexpr const char* kManifestName = "/manifest.json";
constexpr const char* kDataName = "/data.bin";

struct Entry {
  uint64_t offset = 0;
  uint64_t size = 0;
  std::string checksum;  // XXH3 of the bytes, 16 hexadecimal digits.
};
using Entries = std::map<std::string, Entry, std::less<>>;

std::string Checksum(const void* bytes, size_t size) {
  return fmt::format("{:016x}", XXH3_64bits(bytes, size));
}

// One text for one list of entries: a reader rejects every other spelling, so that no altered byte
// goes unnoticed.
std::string ManifestText(const Entries& entries, uint64_t data_size, int version) {
  nlohmann::json list = nlohmann::json::object();
  for (const auto& [name, entry] : entries) {
    list[name] = {{"offset", entry.offset}, {"size", entry.size}, {"xxh3", entry.checksum}};
  }
  const nlohmann::json archive = {
      {"data_size", data_size}, {"entries", list}, {"format_version", version}};
  const std::string body = archive.dump(1);
  return fmt::format("{{\"archive\": {},\n\"xxh3\": \"{}\"}}\n", body,
                     Checksum(body.data(), body.size()));
}

bool IsValidName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '/';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
}

// "/folder.consumer.replay" for the folder "replay" of the scope "consumer".
std::string FolderName(std::string_view prefix, std::string_view name) {
  std::string folder = fmt::format("/folder.{}{}", prefix, name);
  std::replace(folder.begin() + 1, folder.end(), '/', '.');
  return folder;
}

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

void RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) throw FromErrno(fmt::format("cannot remove '{}'", path), error.value());
}

void Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    throw FromErrno(fmt::format("cannot rename '{}' to '{}'", from, to), errno);
  }
}

// Puts the folder `fresh` where `target` is, in one step if the file system can exchange names.
// Where it cannot, the old archive is called `previous` for a moment, and readers know to look
// there.
void Replace(const std::string& fresh, const std::string& target, const std::string& previous) {
  if (!Exists(target)) {
    Rename(fresh, target);
    SyncFolder(ParentFolder(target));
    if (Exists(previous)) RemoveFolder(previous);  // Left by a writer killed between two renames.
    return;
  }
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    SyncFolder(ParentFolder(target));
    RemoveFolder(fresh);
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    throw FromErrno(fmt::format("cannot replace '{}'", target), errno);
  }
  if (Exists(previous)) RemoveFolder(previous);
  Rename(target, previous);
  Rename(fresh, target);
  SyncFolder(ParentFolder(target));
  RemoveFolder(previous);
}

}  // namespace

struct ArchiveWriter::State {
  std::string path;
  std::string partial;  // Where it grows.
  FileDescriptor data;
  uint64_t data_size = 0;
  Entries entries;
  bool committed = false;
  bool failed = false;  // data.bin may hold part of an entry: no Commit any more.
  bool keeps = true;    // Else a rehearsal: there is neither a folder nor data.

  ~State() {
    std::error_code ignored;
    if (keeps && !committed) std::filesystem::remove_all(partial, ignored);
  }
};

ArchiveWriter::ArchiveWriter(const std::string& path) : state_(std::make_shared<State>()) {
  state_->path = WithoutTrailingSlash(path);
  if (path.empty()) throw InvalidArgument("the path of an archive is empty");
  if (Exists(state_->path) && !Exists(state_->path + kManifestName)) {
    throw FailedPrecondition("'{}' exists and is not an archive; choose another path or remove it",
                             state_->path);
  }
  CreateFolders(ParentFolder(state_->path));
  const std::string partial = state_->path + ".partial";
  if (Exists(partial)) RemoveFolder(partial);
  CreateFolders(partial);
  state_->partial = partial;
  state_->data = CreateFile(partial + kDataName);
}

ArchiveWriter ArchiveWriter::Rehearsal(std::string path) {
  auto state = std::make_shared<State>();
  state->path = std::move(path);
  state->keeps = false;
  return ArchiveWriter(std::move(state), "");
}

ArchiveWriter::ArchiveWriter(std::shared_ptr<State> state, std::string prefix)
    : state_(std::move(state)), prefix_(std::move(prefix)) {}

ArchiveWriter ArchiveWriter::Scope(std::string_view prefix) const {
  if (!IsValidName(prefix)) {
    throw InvalidArgument("archive '{}': the scope '{}' must be made of [A-Za-z0-9_.-/]",
                          state_->path, prefix);
  }
  return ArchiveWriter(state_, fmt::format("{}{}/", prefix_, prefix));
}

void ArchiveWriter::WriteBlob(std::string_view name, std::span<const std::byte> bytes) {
  State& state = *state_;
  const std::string full_name = prefix_ + std::string(name);
  if (!IsValidName(name)) {
    throw InvalidArgument("archive '{}': the name '{}' must be made of [A-Za-z0-9_.-/]", state.path,
                          full_name);
  }
  if (state.committed || state.failed) {
    throw FailedPrecondition("archive '{}' {}; '{}' cannot be added", state.path,
                             state.committed ? "is committed" : "has failed", full_name);
  }
  if (state.entries.contains(full_name)) {
    throw InvalidArgument("archive '{}' already has an entry '{}'", state.path, full_name);
  }
  if (!state.keeps) {
    state.entries[full_name] = {.size = bytes.size(), .checksum = ""};
    return;
  }
  state.failed = true;
  WriteAll(state.data, bytes, state.partial + kDataName);
  state.failed = false;
  state.entries[full_name] = {.offset = state.data_size,
                              .size = bytes.size(),
                              .checksum = Checksum(bytes.data(), bytes.size())};
  state.data_size += bytes.size();
}

ArchiveFolder ArchiveWriter::Folder(std::string_view name) const {
  if (!IsValidName(name)) {
    throw InvalidArgument("archive '{}': the folder '{}' must be made of [A-Za-z0-9_.-/]",
                          state_->path, name);
  }
  const std::string folder = FolderName(prefix_, name);
  return {.path = state_->partial + folder, .committed_path = state_->path + folder};
}

void ArchiveWriter::Commit() {
  State& state = *state_;
  if (state.committed || state.failed || !state.keeps) {
    throw FailedPrecondition("archive '{}' {} and cannot be committed", state.path,
                             state.committed ? "is committed already"
                             : state.failed  ? "has failed"
                                             : "is a rehearsal");
  }
  state.failed = true;
  SyncFile(state.data, state.partial + kDataName);
  state.data.Close();
  const std::string manifest_path = state.partial + kManifestName;
  const std::string text = ManifestText(state.entries, state.data_size, kFormatVersion);
  {
    const FileDescriptor manifest = CreateFile(manifest_path);
    WriteAll(manifest, std::as_bytes(std::span<const char>(text)), manifest_path);
    SyncFile(manifest, manifest_path);
  }
  SyncFolder(state.partial);
  Replace(state.partial, state.path, state.path + ".previous");
  state.failed = false;
  state.committed = true;
}

struct ArchiveReader::State {
  std::string path;
  std::string data_path;
  FileDescriptor data;
  Entries entries;
  mutable std::mutex mutex;
  mutable std::set<std::string, std::less<>> read;  // Guarded by mutex.

  const Entry& Find(const std::string& name) const {
    const auto found = entries.find(name);
    if (found != entries.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, entry] : entries) names.push_back(known);
    throw NotFound("archive '{}' has no entry '{}'{}", path, name, DidYouMean(name, names));
  }

  void ReadEntry(const std::string& name, const Entry& entry, std::span<std::byte> bytes) const {
    ReadAllAt(data, entry.offset, bytes, data_path);
    if (Checksum(bytes.data(), bytes.size()) != entry.checksum) {
      throw DataLoss("'{}' is damaged: the checksum of entry '{}' is wrong", data_path, name);
    }
  }
};

namespace {

struct Manifest {
  Entries entries;
  uint64_t data_size = 0;
};

Manifest ReadManifest(const std::string& path) {
  std::string text;
  try {
    text = ReadFile(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw DataLoss("'{}' is missing", path);
  }
  Manifest manifest;
  int version = 0;
  try {
    const nlohmann::json archive = nlohmann::json::parse(text).at("archive");
    version = archive.at("format_version").get<int>();
    manifest.data_size = archive.at("data_size").get<uint64_t>();
    for (const auto& [name, item] : archive.at("entries").items()) {
      manifest.entries[name] = {.offset = item.at("offset").get<uint64_t>(),
                                .size = item.at("size").get<uint64_t>(),
                                .checksum = item.at("xxh3").get<std::string>()};
    }
    if (text != ManifestText(manifest.entries, manifest.data_size, version)) {
      throw DataLoss("'{}' is damaged: it is not as it was written", path);
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataLoss("'{}' is damaged: {}", path, error.what());
  }
  if (version != kFormatVersion) {
    throw FailedPrecondition("'{}' has format version {}; this program reads version {}", path,
                             version, kFormatVersion);
  }
  for (const auto& [name, entry] : manifest.entries) {
    if (entry.size > manifest.data_size || entry.offset > manifest.data_size - entry.size) {
      throw DataLoss("'{}' is damaged: entry '{}' lies outside the data", path, name);
    }
  }
  return manifest;
}

}  // namespace

ArchiveReader::ArchiveReader(const std::string& path) {
  auto state = std::make_shared<State>();
  state->path = WithoutTrailingSlash(path);
  if (!Exists(state->path)) {
    if (!Exists(state->path + ".previous")) throw NotFound("there is no archive '{}'", path);
    state->path += ".previous";
  }
  Manifest manifest = ReadManifest(state->path + kManifestName);
  state->entries = std::move(manifest.entries);
  state->data_path = state->path + kDataName;
  try {
    state->data = OpenForReading(state->data_path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw DataLoss("'{}' is missing", state->data_path);
  }
  const uint64_t size = FileSize(state->data, state->data_path);
  if (size != manifest.data_size) {
    throw DataLoss("'{}' has {} bytes; {} were written", state->data_path, size,
                   manifest.data_size);
  }
  state_ = std::move(state);
}

ArchiveReader::ArchiveReader(std::shared_ptr<const State> state, std::string prefix)
    : state_(std::move(state)), prefix_(std::move(prefix)) {}

ArchiveReader ArchiveReader::Scope(std::string_view prefix) const {
  return ArchiveReader(state_, fmt::format("{}{}/", prefix_, prefix));
}

bool ArchiveReader::Contains(std::string_view name) const {
  return state_->entries.contains(prefix_ + std::string(name));
}

std::vector<std::string> ArchiveReader::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : state_->entries) {
    if (name.starts_with(prefix_)) names.push_back(name.substr(prefix_.size()));
  }
  return names;
}

uint64_t ArchiveReader::SizeOf(std::string_view name) const {
  return state_->Find(prefix_ + std::string(name)).size;
}

uint64_t ArchiveReader::CountOf(std::string_view name, size_t item_size) const {
  const uint64_t size = SizeOf(name);
  if (size % item_size != 0) {
    throw FailedPrecondition("archive '{}': entry '{}{}' has {} bytes; a multiple of {} is needed",
                             state_->path, prefix_, name, size, item_size);
  }
  return size / item_size;
}

std::vector<std::byte> ArchiveReader::ReadBlob(std::string_view name) const {
  std::vector<std::byte> bytes(SizeOf(name));
  ReadBlob(name, bytes);
  return bytes;
}

void ArchiveReader::ReadBlob(std::string_view name, std::span<std::byte> bytes) const {
  const std::string full_name = prefix_ + std::string(name);
  const Entry& entry = state_->Find(full_name);
  if (entry.size != bytes.size()) {
    throw FailedPrecondition("archive '{}': entry '{}' has {} bytes; {} are expected", state_->path,
                             full_name, entry.size, bytes.size());
  }
  state_->ReadEntry(full_name, entry, bytes);
  const std::scoped_lock lock(state_->mutex);
  state_->read.insert(full_name);
}

std::vector<std::string> ArchiveReader::Unread() const {
  std::vector<std::string> names = Names();
  const std::scoped_lock lock(state_->mutex);
  std::erase_if(names,
                [&](const std::string& name) { return state_->read.contains(prefix_ + name); });
  return names;
}

void ArchiveReader::Verify() const {
  std::vector<std::byte> bytes;
  for (const auto& [name, entry] : state_->entries) {
    bytes.resize(entry.size);
    state_->ReadEntry(name, entry, bytes);
  }
}

const std::string& ArchiveReader::path() const { return state_->path; }

std::string ArchiveReader::FolderPath(std::string_view name) const {
  return state_->path + FolderName(prefix_, name);
}

void CopyEntries(const ArchiveReader& from, ArchiveWriter& to) {
  for (const std::string& name : from.Names()) to.WriteBlob(name, from.ReadBlob(name));
}

}  // namespace menger
