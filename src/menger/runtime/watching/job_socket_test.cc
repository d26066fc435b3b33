#include "menger/runtime/watching/job_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <vector>

#include "menger/base/file_testing.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_files::ErrorText;

constexpr std::chrono::seconds kPatience{60};

class JobSocketTest : public testing::Test {
 protected:
  JobSocketTest() { setenv("XDG_RUNTIME_DIR", folder.path().c_str(), /*overwrite=*/1); }
  ~JobSocketTest() override { unsetenv("XDG_RUNTIME_DIR"); }

  static std::string Ask(const std::string& job, const std::string& question) {
    std::string answer;
    AskJob(
        job, question, [&](std::string_view piece) { answer += piece; },
        Deadline::After(kPatience));
    return answer;
  }

  static sockaddr_un AddressOf(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    return address;
  }
  static FileDescriptor ConnectTo(const std::string& path) {
    FileDescriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = AddressOf(path);
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(connect(client.get(), raw, sizeof(address)), 0);
    return client;
  }

  // Connects and asks, but does not read.
  static FileDescriptor AskOnly(const std::string& path, const std::string& question) {
    FileDescriptor client = ConnectTo(path);
    send(client.get(), question.data(), question.size(), MSG_NOSIGNAL);
    shutdown(client.get(), SHUT_WR);
    return client;
  }

  const testing_files::Folder folder;
  const JobSocket::Answer echo = [](std::string_view question, JobSocket::Write write) {
    if (question == "bad") throw NotFound("there is no such question");
    write("you said ");
    write("");  // Not the end.
    write(question);
  };
};

TEST_F(JobSocketTest, AJobIsFoundAndAnswers) {
  const JobSocket socket(7, echo);
  EXPECT_EQ(socket.name(), fmt::format("7-{}", getpid()));
  EXPECT_THAT(RunningJobs(), ElementsAre(socket.name()));
  EXPECT_EQ(FindJob(""), socket.name());
  EXPECT_EQ(FindJob(std::to_string(getpid())), socket.name());
  EXPECT_EQ(Ask(socket.name(), "status"), "you said status");
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { Ask(socket.name(), "bad"); }),
              HasSubstr("there is no such question"));
  EXPECT_EQ(Ask(socket.name(), "more"), "you said more");
}

TEST_F(JobSocketTest, OfSeveralOneMustBeNamed) {
  const JobSocket one(7, echo);
  const JobSocket two(7, echo);
  EXPECT_NE(one.name(), two.name());
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [] { FindJob(""); }), HasSubstr(two.name()));
  EXPECT_EQ(FindJob(two.name()), two.name());
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [] { FindJob("9-9"); }), HasSubstr(one.name()));
}

TEST_F(JobSocketTest, NothingStaysAndWhatIsStaleIsNoJob) {
  { const JobSocket gone(7, echo); }
  EXPECT_THAT(RunningJobs(), IsEmpty());
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [] { FindJob(""); }), HasSubstr("no job"));
  // As a process leaves it that is killed: a socket that nobody listens to, of no process.
  const std::string stale = folder / "menger/1-2147483000.socket";
  {
    const FileDescriptor left(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, stale.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(left.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  EXPECT_THAT(RunningJobs(), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(stale));
  const JobSocket next(7, echo);
  EXPECT_FALSE(std::filesystem::exists(stale));
}

TEST_F(JobSocketTest, WhoDoesNotAskOrReadKeepsNobodyWaiting) {
  const std::string much(std::size_t{4} << 20, 'x');
  std::promise<void> answering;
  std::promise<void> asked;
  std::atomic<bool> given_up = false;
  const JobSocket socket(7, [&](std::string_view question, JobSocket::Write write) {
    if (question == "little") return write("little");
    answering.set_value();
    try {
      write(much);
    } catch (const Error&) {
      given_up = true;
      asked.set_value();
      throw;
    }
  });
  const std::string path = folder / "menger/" + socket.name() + ".socket";
  const FileDescriptor reads_nothing = AskOnly(path, "everything");
  const FileDescriptor says_nothing = ConnectTo(path);
  answering.get_future().wait();
  EXPECT_EQ(Ask(socket.name(), "little"), "little");
  EXPECT_FALSE(given_up);
  EXPECT_EQ(asked.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(JobSocketTest, TooManyWhoDoNotReadAreRefusedByName) {
  const std::string much(std::size_t{4} << 20, 'x');
  const JobSocket socket(7, [&](std::string_view, JobSocket::Write write) { write(much); });
  const std::string path = folder / "menger/" + socket.name() + ".socket";
  std::vector<FileDescriptor> idle;
  for (int i = 0; i < 16; ++i) idle.push_back(AskOnly(path, "everything"));
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { Ask(socket.name(), "x"); }),
              HasSubstr("too many"));
}

TEST_F(JobSocketTest, LongAnswersComeWhole) {
  const std::string much(std::size_t{5} << 20, 'y');
  const JobSocket socket(7, [&](std::string_view, JobSocket::Write write) { write(much); });
  EXPECT_EQ(Ask(socket.name(), "x"), much);
}

TEST_F(JobSocketTest, APieceThatIsTooLongIsRefused) {
  std::filesystem::create_directory(folder / "menger");
  ASSERT_EQ(chmod((folder / "menger").c_str(), 0700), 0);
  const std::string path = folder / "menger/5-1.socket";
  const FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(path);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  std::thread liar([&] {
    const FileDescriptor client(accept(listener.get(), nullptr, nullptr));
    const std::uint32_t length = 3'000'000'000;
    send(client.get(), &length, sizeof(length), MSG_NOSIGNAL);
  });
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { Ask("5-1", "status"); }),
              HasSubstr("3000000000"));
  liar.join();
}

TEST_F(JobSocketTest, NobodyIsAskedInAFolderThatOthersMayEnter) {
  const JobSocket socket(7, echo);
  ASSERT_EQ(chmod((folder / "menger").c_str(), 0770), 0);
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { Ask(socket.name(), "x"); }),
              HasSubstr("0700"));
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [] { RunningJobs(); }), HasSubstr("0700"));
  ASSERT_EQ(chmod((folder / "menger").c_str(), 0700), 0);
}

TEST_F(JobSocketTest, TheEndDoesNotWaitForAReader) {
  const std::string much(std::size_t{4} << 20, 'x');
  std::promise<void> answering;
  auto socket = std::make_unique<JobSocket>(7, [&](std::string_view, JobSocket::Write write) {
    answering.set_value();
    write(much);
  });
  const FileDescriptor client = AskOnly(folder / "menger/" + socket->name() + ".socket", "x");
  answering.get_future().wait();
  const Stopwatch watch;
  socket.reset();
  EXPECT_LT(watch.seconds(), 4);  // It would have waited for five.
}

TEST_F(JobSocketTest, AFolderThatOthersMayEnterIsRefused) {
  std::filesystem::create_directory(folder / "menger");
  ASSERT_EQ(chmod((folder / "menger").c_str(), 0755), 0);
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { const JobSocket socket(7, echo); }),
              HasSubstr("0700"));
}

}  // namespace
}  // namespace menger
