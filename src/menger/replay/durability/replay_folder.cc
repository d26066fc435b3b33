#include "menger/replay/durability/replay_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/replay_journal.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint64_t> Checkpoints(const std::string& folder) {
  return NumberedFiles(folder, "checkpoint-", "");
}

std::vector<std::uint64_t> Journals(const std::string& folder) {
  return NumberedFiles(folder, "journal-", ".bin");
}

void Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw FromErrno(fmt::format("cannot remove '{}'", path), error.value());
}

}  // namespace

ReplayFolder::ReplayFolder(std::string path)
    : path_(std::move(path)), lock_(LockFolder(path_, "a replay store")) {
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() == ".partial") Remove(entry.path().string());
  }
}

std::string ReplayFolder::CheckpointPath(std::uint64_t number) const {
  return fmt::format("{}/checkpoint-{}", path_, number);
}

std::vector<JournalFile> ReplayFolder::JournalsFrom(std::uint64_t checkpoint) const {
  std::vector<JournalFile> journals;
  for (const std::uint64_t number : Journals(path_)) {
    if (number < checkpoint) continue;
    const std::uint64_t expected = checkpoint + journals.size();
    if (number != expected) {
      throw DataLoss("'{}' is missing, though '{}' follows it", JournalPath(path_, expected),
                     JournalPath(path_, number));
    }
    journals.push_back({.path = JournalPath(path_, number), .number = number});
  }
  return journals;
}

std::optional<std::uint64_t> ReplayFolder::Recover(ReplayStore& store, bool journaled) const {
  std::vector<std::uint64_t> checkpoints = Checkpoints(path_);
  if (checkpoints.empty()) {
    if (Journals(path_).empty()) return std::nullopt;
    throw DataLoss("'{}' has journals, but no checkpoint that they go on from", path_);
  }
  std::optional<Error> first_error;
  std::ranges::reverse(checkpoints);
  for (const std::uint64_t number : checkpoints) {
    try {
      const std::vector<JournalFile> journals = JournalsFrom(number);
      ReplayCheckpoint::Load(CheckpointPath(number), store, {}, journals);
      if (journals.empty() && journaled) {
        LogWarning("'{}' is not there: what happened after checkpoint {} is lost, if anything did",
                   JournalPath(path_, number), number);
      }
      if (journals.empty()) {  // Nothing happened after it: so that journals follow each other.
        FrameFileWriter(JournalPath(path_, number), number).End();
      } else {
        EndFrameFile(journals.back().path, journals.back().number);
      }
      return number;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataLoss) throw;
      LogWarning("the replay store cannot be recovered from checkpoint {} of '{}': {}", number,
                 path_, error.what());
      if (!first_error) first_error = error;
    }
  }
  throw Error(*first_error);
}

std::uint64_t ReplayFolder::NextNumber() const {
  std::uint64_t last = 0;
  for (const std::uint64_t number : Checkpoints(path_)) last = std::max(last, number);
  for (const std::uint64_t number : Journals(path_)) last = std::max(last, number);
  return last + 1;
}

void ReplayFolder::RemoveBefore(std::uint64_t number) const {
  for (const std::uint64_t old : Checkpoints(path_)) {
    if (old >= number) continue;
    // Never half a checkpoint that looks like one.
    const std::string partial = CheckpointPath(old) + ".partial";
    Remove(partial);
    if (rename(CheckpointPath(old).c_str(), partial.c_str()) != 0) {
      throw FromErrno(fmt::format("cannot rename '{}'", CheckpointPath(old)), errno);
    }
    Remove(partial);
  }
  for (const std::uint64_t old : Journals(path_)) {
    if (old < number) Remove(JournalPath(path_, old));
  }
}

}  // namespace menger
