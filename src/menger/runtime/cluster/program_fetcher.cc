#include "menger/runtime/cluster/program_fetcher.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <optional>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/runtime/cluster/program_letters.h"

namespace menger {

// One stream, from before it is open, between who fetches and the streams' thread.
class ProgramFetcher::Conversation {
 public:
  explicit Conversation(std::string address) : address_(std::move(address)) {}

  const std::string& address() const { return address_; }

  // ---- By who fetches; all throw what has ended it, or DeadlineExceeded.
  void WaitOpen(const Deadline& deadline) {
    MutexLock lock(mutex_);
    while (stream_ == nullptr) AwaitChange(lock, deadline);
  }

  ProgramManifest AskManifest(const Deadline& deadline) {
    Ask({.kind = ProgramQuestion::Kind::kManifest});
    const ProgramAnswer answer = TakeAnswer(deadline);
    if (answer.kind != ProgramAnswer::Kind::kManifest) ThrowOther(answer);
    return DecodeManifest(answer.bytes);
  }

  void AskFile(const ProgramFile& file, const TakeBytes& take, const Deadline& deadline) {
    const std::uint64_t bytes = file.content.bytes;
    std::uint64_t asked = 0;
    for (std::uint64_t came = 0; came < bytes;) {
      for (; asked < bytes && asked - came < kProgramQuestionsMax * kProgramPartBytes;
           asked += kProgramPartBytes) {
        Ask({.kind = ProgramQuestion::Kind::kPart, .file = file.content.hash, .offset = asked});
      }
      const ProgramAnswer answer = TakeAnswer(deadline);
      const bool right = answer.kind == ProgramAnswer::Kind::kPart &&
                         answer.file == file.content.hash && answer.offset == came &&
                         answer.bytes.size() == std::min(kProgramPartBytes, bytes - came);
      if (!right) {
        if (answer.kind == ProgramAnswer::Kind::kRefusal) DropAnswers(deadline);
        ThrowOther(answer);
      }
      take(answer.bytes);
      came += answer.bytes.size();
    }
  }

  // Nobody waits any more: what comes yet is nobody's business.
  void Leave() {
    MutexLock lock(mutex_);
    left_ = true;
    answers_.clear();
    if (stream_ != nullptr) stream_->Close();
  }

  // ---- By the streams' thread.
  bool left() {
    const MutexLock lock(mutex_);
    return left_;
  }

  void Open(std::shared_ptr<PeerStream> stream) {
    const MutexLock lock(mutex_);
    stream_ = std::move(stream);
    if (left_) stream_->Close();
    changed_.notify_all();
  }

  void Take(std::span<const std::byte> frame) {
    ProgramAnswer answer = DecodeAnswer(frame);
    const MutexLock lock(mutex_);
    if (left_) return;
    if (unanswered_ == 0) throw InvalidArgument("the driver answers what it was not asked");
    --unanswered_;
    answers_.push_back(std::move(answer));
    changed_.notify_all();
  }

  void End(const Error& why) {
    const MutexLock lock(mutex_);
    end_ = why;
    stream_ = nullptr;
    changed_.notify_all();
  }

 private:
  void Ask(const ProgramQuestion& question) {
    const MutexLock lock(mutex_);
    // There is room for these few; where it is refused the stream has ended, as TakeAnswer finds.
    if (stream_ != nullptr && stream_->TrySend(EncodeQuestion(question))) ++unanswered_;
  }

  ProgramAnswer TakeAnswer(const Deadline& deadline) {
    if (deadline.expired()) ThrowTooLate();  // However fast they come.
    MutexLock lock(mutex_);
    while (answers_.empty()) AwaitChange(lock, deadline);
    ProgramAnswer answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  // Those that are still to come, so that the next is that of the next question.
  void DropAnswers(const Deadline& deadline) {
    const auto more = [this] {
      const MutexLock lock(mutex_);
      return unanswered_ > 0 || !answers_.empty();
    };
    while (more()) TakeAnswer(deadline);
  }

  void AwaitChange(MutexLock& lock, const Deadline& deadline) MENGER_REQUIRES(mutex_) {
    if (end_) throw WithContext(*end_, "the driver's program did not come");
    if (deadline.expired()) ThrowTooLate();
    changed_.wait_for(lock.native(), deadline.slice());
  }

  [[noreturn]] void ThrowTooLate() const {
    throw DeadlineExceeded("the program of the driver at {} did not come in time", address_);
  }

  [[noreturn]] void ThrowOther(const ProgramAnswer& answer) const {
    if (answer.kind == ProgramAnswer::Kind::kRefusal) {
      throw Error(answer.code, fmt::format("the driver at {} does not give its program: {}",
                                           address_, answer.text));
    }
    throw InvalidArgument("the driver at {} answers another question than it was asked", address_);
  }

  const std::string address_;

  Mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<PeerStream> stream_ MENGER_GUARDED_BY(mutex_);  // While it is open.
  std::deque<ProgramAnswer> answers_ MENGER_GUARDED_BY(mutex_);
  std::size_t unanswered_ MENGER_GUARDED_BY(mutex_) = 0;
  std::optional<Error> end_ MENGER_GUARDED_BY(mutex_);
  bool left_ MENGER_GUARDED_BY(mutex_) = false;
};

ProgramFetcher::ProgramFetcher() = default;
ProgramFetcher::~ProgramFetcher() = default;

ReadyProgram ProgramFetcher::Fetch(PeerStreams& streams, const std::string& address,
                                   const ProgramCache& cache, const Deadline& deadline) {
  ReadyProgram ready;
  Converse(streams, address, deadline, [&](Conversation& driver) {
    ready = cache.Prepare(
        driver.AskManifest(deadline),
        [&](const ProgramFile& file, const TakeBytes& take) {
          driver.AskFile(file, take, deadline);
        },
        deadline);
  });
  return ready;
}

namespace {

// Of the working folder the actors may never need it.
void DoWithout(const ProgramFile& file, const Error& why) {
  if (file.role != ProgramFile::Role::kFolderFile) throw Error(why);
  LogWarning("detached actors of the program do without a file of its folder: {}", why.what());
}

}  // namespace

KeptProgram ProgramFetcher::FetchFiles(PeerStreams& streams, const std::string& address,
                                       const CacheFolder& folder, const Deadline& deadline) {
  KeptProgram kept;
  Converse(streams, address, deadline, [&](Conversation& driver) {
    kept.manifest = driver.AskManifest(deadline);
    kept.manifest.copied = true;
    const FileDescriptor lock = folder.Lock(deadline);
    for (const ProgramFile& file : std::exchange(kept.manifest.files, {})) {
      const std::optional<Error> why = FetchFile(driver, file, folder, deadline, kept);
      why ? DoWithout(file, *why) : kept.manifest.files.push_back(file);
    }
  });
  return kept;
}

KeptProgram ProgramFetcher::FetchFiles(PeerStreams& streams,
                                       const std::vector<std::string>& addresses,
                                       const ProgramManifest& manifest, const CacheFolder& folder,
                                       const Deadline& deadline) {
  KeptProgram kept{.manifest = manifest};
  const FileDescriptor lock = folder.Lock(deadline);
  std::optional<Error> unreached;
  const auto is_missing = [&kept](const ProgramFile& file) {
    return !kept.paths.contains(file.content.hash);
  };
  for (const std::string& address : addresses) {
    if (std::ranges::none_of(manifest.files, is_missing)) break;
    try {
      Converse(streams, address, deadline, [&](Conversation& node) {
        for (const ProgramFile& file : manifest.files) {
          if (is_missing(file)) FetchFile(node, file, folder, deadline, kept);
        }
      });
    } catch (const Error& error) {
      if (deadline.expired()) throw;
      unreached = error;  // It may be gone: another may have what it had.
    }
  }
  std::erase_if(kept.manifest.files, [&](const ProgramFile& file) {
    if (!is_missing(file)) return false;
    if (unreached) {
      throw NotFound("no node that was reached has the program's file '{}' ({})", file.path,
                     unreached->what());
    }
    DoWithout(file, NotFound("none of {} nodes has '{}' any longer", addresses.size(), file.path));
    return true;
  });
  return kept;
}

std::optional<Error> ProgramFetcher::FetchFile(Conversation& from, const ProgramFile& file,
                                               const CacheFolder& folder, const Deadline& deadline,
                                               KeptProgram& kept) {
  try {
    kept.paths[file.content.hash] =
        folder.Store(file, [&](const ProgramFile& wanted, const TakeBytes& take) {
          from.AskFile(wanted, take, deadline);
        });
    return std::nullopt;
  } catch (const Error& error) {
    const bool is_other =
        error.code() == ErrorCode::kDataLoss || error.code() == ErrorCode::kNotFound;
    if (!is_other) throw;
    return error;
  }
}

void ProgramFetcher::Converse(PeerStreams& streams, const std::string& address,
                              const Deadline& deadline,
                              const std::function<void(Conversation&)>& ask) {
  const std::shared_ptr<Conversation> conversation = Connect(streams, address);
  try {
    conversation->WaitOpen(deadline);
    ask(*conversation);
    conversation->Leave();
  } catch (...) {
    conversation->Leave();
    throw;
  }
}

std::shared_ptr<ProgramFetcher::Conversation> ProgramFetcher::Connect(PeerStreams& streams,
                                                                      const std::string& address) {
  auto conversation = std::make_shared<Conversation>(address);
  {
    const MutexLock lock(mutex_);
    connecting_.push_back(conversation);
  }
  try {
    streams.Connect(address, PeerLane::kFiles, *this);
  } catch (...) {
    const MutexLock lock(mutex_);
    connecting_.remove(conversation);
    throw;
  }
  return conversation;
}

// Streams to one address are the same to those who wait for them; who still waits comes first.
void ProgramFetcher::Opened(std::shared_ptr<PeerStream> stream) {
  const MutexLock lock(mutex_);
  const std::string& address = stream->peer().address;
  auto found = connecting_.end();
  for (auto each = connecting_.begin(); each != connecting_.end(); ++each) {
    if ((*each)->address() != address) continue;
    if (found == connecting_.end() || ((*found)->left() && !(*each)->left())) found = each;
  }
  if (found == connecting_.end()) return stream->Close();
  open_[stream.get()] = *found;
  (*found)->Open(std::move(stream));
  connecting_.erase(found);
}

void ProgramFetcher::Arrived(PeerStream& stream,
                             std::span<const std::span<const std::byte>> frames) {
  const std::shared_ptr<Conversation> conversation = Find(stream);
  if (conversation == nullptr) return;
  for (const std::span<const std::byte> frame : frames) conversation->Take(frame);
}

void ProgramFetcher::Ended(PeerStream& stream, const Error& why) {
  const std::shared_ptr<Conversation> conversation = Find(stream);
  if (conversation != nullptr) conversation->End(why);
  const MutexLock lock(mutex_);
  open_.erase(&stream);
}

void ProgramFetcher::Failed(const std::string& address, const Error& why) {
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(
      connecting_, [&](const auto& conversation) { return conversation->address() == address; });
  if (found == connecting_.end()) return;
  (*found)->End(why);
  connecting_.erase(found);
}

std::shared_ptr<ProgramFetcher::Conversation> ProgramFetcher::Find(PeerStream& stream) {
  const MutexLock lock(mutex_);
  const auto found = open_.find(&stream);
  return found != open_.end() ? found->second : nullptr;
}

}  // namespace menger
