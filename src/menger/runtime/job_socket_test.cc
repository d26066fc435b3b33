#include "menger/runtime/job_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

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

  // Connects and asks, but does not read.
  static FileDescriptor AskOnly(const std::string& path, const std::string& question) {
    FileDescriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
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

TEST_F(JobSocketTest, AClientThatDoesNotReadIsGivenUpSlow) {
  const std::string much(std::size_t{4} << 20, 'x');
  std::promise<void> answering;
  auto socket =
      std::make_unique<JobSocket>(7, [&](std::string_view question, JobSocket::Write write) {
        if (question == "little") return write("little");
        answering.set_value();
        write(much);
      });
  const FileDescriptor client =
      AskOnly(folder / "menger/" + socket->name() + ".socket", "everything");
  answering.get_future().wait();
  EXPECT_EQ(Ask(socket->name(), "little"), "little");  // Once the other is given up.
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
