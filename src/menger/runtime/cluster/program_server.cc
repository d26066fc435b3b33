#include "menger/runtime/cluster/program_server.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {

struct ProgramServer::ServedFile {
  // By which one sees that a file was changed, or is another.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    std::int64_t bytes = -1;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;

    static Stamp Of(const struct stat& status) {
      return {.device = status.st_dev,
              .number = status.st_ino,
              .bytes = status.st_size,
              .seconds = status.st_mtim.tv_sec,
              .nanoseconds = status.st_mtim.tv_nsec};
    }
    bool operator==(const Stamp&) const = default;
  };

  std::string path;
  std::uint64_t bytes = 0;
  Stamp stamp;  // When the server was made.
};

ProgramServer::ProgramServer(const ProgramManifest& manifest, const Source& source)
    : manifest_(Payload::Copy(EncodeManifest(manifest))) {
  for (const ProgramFile& file : manifest.files) {
    ServedFile served{.path = source(file), .bytes = file.content.bytes};
    struct stat status {};
    // Where it is not there, whoever asks for it is told.
    if (stat(served.path.c_str(), &status) == 0) served.stamp = ServedFile::Stamp::Of(status);
    files_.emplace(file.content.hash, std::move(served));
  }
}

ProgramServer::ProgramServer(CacheFolder folder) : folder_(std::move(folder)) {}

ProgramServer::~ProgramServer() = default;

void ProgramServer::Opened(PeerStream& stream) { waiting_[&stream]; }

void ProgramServer::Arrived(PeerStream& stream,
                            std::span<const std::span<const std::byte>> frames) {
  Questions& questions = waiting_[&stream];
  for (const std::span<const std::byte> frame : frames) {
    questions.push_back(DecodeQuestion(frame));
    AnswerAll(stream, questions);
    if (questions.size() > kProgramQuestionsMax) {
      throw InvalidArgument("a node asks more than {} questions about a program at a time",
                            kProgramQuestionsMax);
    }
  }
}

void ProgramServer::HasRoom(PeerStream& stream) { AnswerAll(stream, waiting_[&stream]); }

void ProgramServer::Ended(PeerStream& stream) { waiting_.erase(&stream); }

void ProgramServer::AnswerAll(PeerStream& stream, Questions& questions) {
  while (!questions.empty() && Answer(stream, questions.front())) questions.pop_front();
}

bool ProgramServer::Answer(PeerStream& stream, const ProgramQuestion& question) const {
  ProgramAnswer answer;
  Payload bytes;
  try {
    if (question.kind == ProgramQuestion::Kind::kManifest) {
      if (folder_) throw NotFound("a node has no program of its own");
      answer.kind = ProgramAnswer::Kind::kManifest;
      bytes = manifest_;
    } else {
      bytes = ReadPart(question);
      answer = {
          .kind = ProgramAnswer::Kind::kPart, .file = question.file, .offset = question.offset};
    }
  } catch (const Error& error) {
    answer = {.kind = ProgramAnswer::Kind::kRefusal, .code = error.code(), .text = error.what()};
  }
  return stream.TrySend(EncodeAnswerHead(answer), bytes);
}

ProgramServer::ServedFile ProgramServer::Find(const ContentHash& content) const {
  if (folder_) {
    ServedFile file{.path = folder_->FilePath(content)};
    struct stat status {};
    if (stat(file.path.c_str(), &status) != 0) {
      throw NotFound("the node keeps no file whose content is {}", ToHex(content));
    }
    file.bytes = static_cast<std::uint64_t>(status.st_size);
    file.stamp = ServedFile::Stamp::Of(status);
    return file;
  }
  const auto found = files_.find(content);
  if (found == files_.end()) {
    throw NotFound("the program has no file whose content is {}", ToHex(content));
  }
  return found->second;
}

Payload ProgramServer::ReadPart(const ProgramQuestion& question) const {
  const auto [path, bytes, stamp] = Find(question.file);
  if (question.offset >= bytes) {
    throw InvalidArgument("'{}' has {} bytes; no part of it begins at {}", path, bytes,
                          question.offset);
  }
  // What has come to be a pipe must not keep the thread.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) throw FromErrno(fmt::format("cannot read '{}'", path), errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || ServedFile::Stamp::Of(status) != stamp) {
    throw DataLoss("'{}' was changed since the driver told of it", path);
  }
  Payload part = Payload::Allocate(std::min(kProgramPartBytes, bytes - question.offset));
  ReadAllAt(file, question.offset, part.fill(), path);
  return part;
}

}  // namespace menger
