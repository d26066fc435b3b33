// The log of the control store. The input is a list of frames (kind, length, payload) that are
// written with right checksums; one whose first byte is 255 is the file itself.

#include "menger/runtime/control/store_log.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "fuzz.h"
#include "menger/base/frame_file.h"
#include "menger/runtime/control/embedded_store.h"

namespace menger::fuzz {
namespace {

constexpr std::byte kRaw{255};
constexpr std::uint64_t kNumber = 1;

struct FrameHead {
  std::uint8_t kind = 0;
  std::uint8_t unused = 0;
  std::uint16_t bytes = 0;
};

class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "menger_fuzz_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw FromErrno("cannot make " + path_, errno);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string log() const { return path_ + "/control-1.log"; }

 private:
  std::string path_;
};

void WriteFrames(const std::string& path, std::span<const std::byte> input) {
  FrameFileWriter writer(path, kNumber);
  while (input.size() >= sizeof(FrameHead)) {
    FrameHead head;
    std::memcpy(&head, input.data(), sizeof(head));
    input = input.subspan(sizeof(head));
    const std::size_t bytes = std::min<std::size_t>(head.bytes, input.size());
    writer.Add(head.kind, input.first(bytes));
    input = input.subspan(bytes);
  }
}

Bytes FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// The frames of a file, as an input.
Bytes FramesOf(const std::string& path) {
  Bytes input;
  FrameFileReader reader(path, kNumber);
  while (const auto frame = reader.Next()) {
    const FrameHead head{.kind = static_cast<std::uint8_t>(frame->kind),
                         .bytes = static_cast<std::uint16_t>(frame->payload.size())};
    const auto bytes = std::as_bytes(std::span(&head, 1));
    input.insert(input.end(), bytes.begin(), bytes.end());
    input.insert(input.end(), frame->payload.begin(), frame->payload.end());
  }
  return input;
}

}  // namespace

void Read(std::span<const std::byte> input) {
  if (input.empty()) return;
  const Folder folder;
  if (input[0] == kRaw) {
    std::ofstream file(folder.log(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(input.data()) + 1,
               static_cast<std::streamsize>(input.size() - 1));
  } else {
    WriteFrames(folder.log(), input);
  }
  const EmbeddedStore store({.journal = KeepInLog({.folder = folder.path()})});
}

std::vector<Bytes> Seeds() {
  const Folder folder;
  {
    EmbeddedStore store({.journal = KeepInLog({.folder = folder.path()})});
    std::vector<StoreOperation> batch;
    for (int i = 0; i < 5; ++i) {
      batch.push_back(StoreOperation::Put(StoreTable::kActors, "key" + std::to_string(i % 3),
                                          std::string(static_cast<std::size_t>(i) * 20, 'v')));
    }
    batch.push_back(StoreOperation::Delete(StoreTable::kActors, "key1"));
    store.Submit(std::move(batch), Deadline::After(std::chrono::seconds(10)), [](auto&&...) {});
  }
  Bytes raw = FileBytes(folder.log());
  raw.insert(raw.begin(), kRaw);
  return {FramesOf(folder.log()), std::move(raw)};
}

}  // namespace menger::fuzz
