#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/replay/server/serving_testing.h"

// Clients that want more than there is: room, connections, descriptors, the disk. The others are
// served, and nobody reads rows that are not his.
namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

bool Reached(auto reached, std::chrono::nanoseconds within = seconds(60)) {
  const Deadline deadline = Deadline::After(within);
  while (!reached() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  return reached();
}

std::unique_ptr<ServerLink> LinkTo(const Served& served, bool wants_memory = false) {
  return std::make_unique<ServerLink>(served.socket(), wants_memory, 1 << 20, Soon());
}

std::string AnswerOf(ServerLink& link) {
  const std::optional<Error> error = ErrorIn(link.Answer(seconds(60)));
  link.Release();
  return error ? error->what() : "";
}

std::string BeginStream(ServerLink& link, const WriterOptions& options) {
  const std::string text = EncodeStreams(
      {.streams = {{.index = 0, .id = 1}}, .steps = SmallItems().steps, .options = options});
  std::memcpy(link.Begin(RequestKind::kStreams, text.size()).data(), text.data(), text.size());
  return AnswerOf(link);
}

void AppendStep(ServerLink& link, std::int64_t value) {
  std::memcpy(link.Begin(AppendRequest{}, sizeof value).data(), &value, sizeof value);
}

void AddItem(ServerLink& link, std::int64_t step, std::uint64_t sequence) {
  const std::array<StepRange, 2> ranges = {{{.first = step, .count = 1}, {step, 1}}};
  std::memcpy(link.Begin(AddRequest{.sequence = sequence}, sizeof ranges).data(), ranges.data(),
              sizeof ranges);
}

void Write(ReplayClient& client, std::int64_t first, std::int64_t count) {
  const auto writer = client.NewWriter(SmallItems().steps, {.chunk_steps = 4}, 1);
  for (std::int64_t i = 0; i < count; ++i) WriteValue(*writer, 0, first + i);
  writer->Flush(0, Soon());
  writer->Await(Soon());
}

void DeleteAll(Served& served, std::uint64_t items) {
  for (std::uint64_t i = 0; i < items; ++i) {
    served.table().Delete({{{.number = i + 1, .slot = static_cast<std::uint32_t>(i)}}});
  }
  EXPECT_EQ(served.table().info().items, 0);
}

// ---- Memory

TEST(CrowdedServerTest, AWriterThatWaitsForRoomIsGivenUpWhenItHasGone) {
  Served served;
  const ChunkLayout layout(SmallItems().steps, 1024);
  std::vector<ChunkId> held;
  try {
    for (;;) held.push_back(served.store().chunks().Allocate(layout));
  } catch (const Error&) {  // It is full.
  }
  auto link = LinkTo(served);
  EXPECT_EQ(BeginStream(*link, {.chunk_steps = 1024, .room_wait_max = seconds(3600)}), "");
  AppendStep(*link, 1);
  link->Send();
  ASSERT_TRUE(Reached([&] { return served.store().chunks().waiting() == 1; }));
  link.reset();
  EXPECT_TRUE(Reached([&] { return served.server().info().connections == 0; }, seconds(30)));
  for (const ChunkId chunk : held) served.store().chunks().Release(chunk);
}

TEST(CrowdedServerTest, ItemsThatAreNeverFlushedAreBounded) {
  Served served;
  const auto link = LinkTo(served);
  EXPECT_EQ(BeginStream(*link, {.pending_max = std::numeric_limits<int>::max()}), "");
  AppendStep(*link, 1);
  for (std::uint64_t i = 1; i <= 1'500'000; ++i) AddItem(*link, 0, i);
  link->Begin(FlushRequest{.wait = 60'000'000'000});
  EXPECT_THAT(AnswerOf(*link), HasSubstr("wait to be inserted"));
  EXPECT_EQ(BeginStream(*link, {}), "");  // It can go on.
  AppendStep(*link, 1);
  AddItem(*link, 0, 1);
  link->Begin(FlushRequest{.wait = 60'000'000'000});
  EXPECT_EQ(AnswerOf(*link), "");
}

// Rows are overwritten only when nobody can read them any longer.
TEST(CrowdedServerTest, RowsOfAClientThatIsDroppedStayUntilItHasGone) {
  Served served;
  ServedReplay client({.socket = served.socket()});
  Write(client, 0, 20);
  auto link = LinkTo(served, /*wants_memory=*/true);
  link->Begin(SampleCall{.count = 5, .wait = 60'000'000'000, .lease = 1});
  EXPECT_FALSE(link->Answer(seconds(60)).empty());
  link->Release();
  DeleteAll(served, 20);
  link->Begin(TableRequest{.table = 77});
  EXPECT_THROW(link->Answer(seconds(60)), ServerGone);
  EXPECT_GT(served.store().chunks().chunks(), 0U);
  link.reset();
  EXPECT_TRUE(Reached([&] { return served.store().chunks().chunks() == 0; }));
}

TEST(CrowdedServerTest, ASampleIsReadableAfterItsSamplerHasGone) {
  Served served;
  ServedReplay client({.socket = served.socket()});
  Write(client, 0, 20);
  Sample sample;
  client.NewSampler(0)->SampleInto({.count = 20, .deadline = Soon()}, sample);
  const std::vector<std::int64_t> drawn = LastValues(SmallItems(), sample);
  DeleteAll(served, 20);
  for (int i = 0; i < 20; ++i) Write(client, 1000, 100);
  EXPECT_EQ(LastValues(SmallItems(), sample), drawn);
  const int connections = served.server().info().connections;
  sample.Release();
  EXPECT_TRUE(Reached([&] { return served.server().info().connections < connections; }));
}

TEST(CrowdedServerTest, RowsStayWhileAServerStops) {
  Served served;
  ServedReplay client({.socket = served.socket()});
  Write(client, 0, 20);
  const auto sampler = client.NewSampler(0);
  Sample sample;
  sampler->SampleInto({.count = 20, .deadline = Soon()}, sample);
  DeleteAll(served, 20);
  served.server().Stop(Soon());
  EXPECT_GT(served.store().chunks().chunks(), 0U);
}

// Of all mappings whose line has `name`.
std::size_t ResidentKilobytes(const std::string& name) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t sum = 0;
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_here = line.find(name) != std::string::npos;
    if (is_here && line.starts_with("Rss:")) sum += std::stoul(line.substr(4));
  }
  return sum;
}

// Whoever waits for each answer writes into the same few pages, however long he goes on.
TEST(CrowdedServerTest, AWriterTakesNoMoreOfItsRingThanIsUnderWay) {
  TableOptions table = ServedTable();
  table.items = {.steps = Spec({LeafSpec::Box("data", DataType::kUint8, {100'000}, {0}, {255})}),
                 .columns = {{.name = "data", .leaf = "data"}}};
  table.bytes_max = std::size_t{16} << 20;
  Served served({table});
  ServedReplay client({.socket = served.socket()});
  const auto writer = client.NewWriter(table.items.steps, {.chunk_steps = 1, .history = 1}, 1);
  const std::vector<std::byte> data(100'000);
  const std::byte* const leaf = data.data();
  for (int i = 0; i < 100; ++i) {
    const StepRange range{.first = writer->Append(0, {&leaf, 1}, 0), .count = 1};
    writer->Add(0, 0, {}, {&range, 1});
    writer->Flush(0, Soon());
    writer->Await(Soon());
  }
  EXPECT_LT(ResidentKilobytes("menger-channel"), 2'000U);  // Its ring has 4 MiB, mapped twice.
}

// ---- Connections

TEST(CrowdedServerTest, WhoFindsAServerFullWaitsForAPlace) {
  Served served({ServedTable()}, {}, {}, {.connections_max = 1});
  auto first = LinkTo(served);
  std::thread second([&] {
    ServedReplay client({.socket = served.socket()});
    EXPECT_EQ(client.info(0).items, 0);
  });
  EXPECT_TRUE(Reached([&] { return served.server().info().refused > 0; }));
  first.reset();
  second.join();
}

TEST(CrowdedServerTest, AFullServerSaysWhichBoundItHas) {
  Served served({ServedTable()}, {}, {}, {.connections_max = 1});
  const auto link = LinkTo(served);
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { LinkTo(served); }),
              HasSubstr("connections_max"));
}

TEST(CrowdedServerTest, AFloodOfThoseWhoSayNothingKeepsNobodyOut) {
  Served served({ServedTable()}, {}, {}, {.greeting_time = std::chrono::hours(1)});
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 2'000; ++i) silent.push_back(ConnectUnixSocket(served.socket(), Soon()));
  ServedReplay client({.socket = served.socket()});
  Write(client, 0, 3);
  EXPECT_EQ(client.info(0).items, 3);
}

TEST(CrowdedServerTest, WhoGreetsAndIsGoneLeavesNothing) {
  Served served;
  for (int i = 0; i < 200; ++i) {
    const FileDescriptor gone = ConnectUnixSocket(served.socket(), Soon());
    const Greeting greeting{.wants_memory = 1, .ring_bytes = 1 << 20};
    EXPECT_TRUE(TrySendDescriptors(gone, std::as_bytes(std::span(&greeting, 1)), {}));
  }
  ServedReplay client({.socket = served.socket()});
  Write(client, 0, 3);
  EXPECT_TRUE(Reached([&] { return served.server().info().connections <= 1; }));
}

// Descriptors are one bound of a process more: its journal needs some.
TEST(CrowdedServerTest, AFloodOfConnectionsLeavesDescriptorsForFiles) {
  Served served;
  ServedReplay client({.socket = served.socket()});
  const auto writer = client.NewWriter(SmallItems().steps, {}, 1);
  const auto write = [&writer](std::int64_t value) {
    WriteValue(*writer, 0, value);
    writer->Flush(0, Soon());
    writer->Await(Soon());
  };
  write(1);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit limit = before;
  limit.rlim_cur = 1000;
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<FileDescriptor> flood;
  for (;;) {
    flood.push_back(ConnectUnixSocket(served.socket(), Soon()));
    const Greeting greeting{};
    try {
      TrySendDescriptors(flood.back(), std::as_bytes(std::span(&greeting, 1)), {});
    } catch (const Error&) {  // It was refused already.
    }
    if (flood.back().get() >= 940) break;
  }
  write(2);
  std::vector<FileDescriptor> files;
  for (int i = 0; i < 40; ++i) files.push_back(OpenForReading("/dev/null"));
  files.clear();
  flood.clear();
  ServedReplay late({.socket = served.socket()});
  Write(late, 20, 3);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(CrowdedServerTest, AServerThatIsStoppedByADebuggerIsUnavailable) {
  const testing_files::Folder folder;
  const ListeningSocket nobody_accepts(folder / "socket");
  const std::string why = ErrorText(ErrorCode::kUnavailable, [&] {
    ServedReplay({.socket = folder / "socket", .patience = milliseconds(20)});
  });
  EXPECT_THAT(why, HasSubstr("does not answer"));
}

// ---- The disk

// Files of this process cannot grow meanwhile.
class FullDisk {
 public:
  FullDisk() {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = 1;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(CrowdedServerTest, AFullDiskRefusesInsertsAndServesTheRest) {
  const testing_files::Folder folder;
  Served served(
      {ServedTable()}, {},
      {.kind = Durability::kJournal, .folder = folder / "kept", .loss_max = milliseconds(100)});
  ServedReplay client({.socket = served.socket()});
  Write(client, 0, 5);
  const auto writer = client.NewWriter(SmallItems().steps, {}, 1);
  const auto sampler = client.NewSampler(0);
  Sample sample;  // All connections are there: the bound of files is one of shared memory, too.
  sampler->SampleInto({.count = 1, .deadline = Soon()}, sample);
  EXPECT_EQ(client.info(0).items, 5);
  WriteValue(*writer, 0, 5);
  writer->Flush(0, Soon());
  writer->Await(Soon());
  std::string why;
  {
    const FullDisk disk;
    const Deadline deadline = Soon();
    for (std::int64_t i = 6; why.empty() && !deadline.expired(); ++i) {
      try {
        WriteValue(*writer, 0, i);
        writer->Flush(0, Soon());
        writer->Await(Soon());
      } catch (const Error& error) {
        why = error.what();
        EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      }
    }
    sampler->SampleInto({.count = 5, .deadline = Soon()}, sample);
    EXPECT_EQ(sample.size(), 5);
    const PriorityUpdate update{.key = sample.items()[0].key, .priority = 2};
    EXPECT_EQ(client.UpdatePriorities(0, {&update, 1}).found, 1);
    EXPECT_GE(client.info(0).items, 6);
  }
  EXPECT_THAT(why, HasSubstr("journal"));
}

}  // namespace
}  // namespace menger
