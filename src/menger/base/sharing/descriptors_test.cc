#include "menger/base/sharing/descriptors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/base/sharing/descriptor_server.h"
#include "menger/base/sharing/unix_socket.h"

namespace menger {
namespace {

using namespace std::chrono_literals;

struct Sockets {
  Sockets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    left = FileDescriptor(ends[0]);
    right = FileDescriptor(ends[1]);
  }
  FileDescriptor left, right;
};

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

ErrorCode ReceiveCode(const FileDescriptor& socket, std::size_t bytes_max) {
  try {
    ReceiveDescriptors(socket, bytes_max, Deadline::After(1ms));
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(DescriptorsTest, AFileWrittenByOneProcessIsReadByAnotherThatWasSentIt) {
  Sockets sockets;
  const pid_t child = fork();
  if (child == 0) {
    const FileDescriptor file(memfd_create("descriptors_test", MFD_CLOEXEC));
    const FileDescriptor other(memfd_create("descriptors_test", MFD_CLOEXEC));
    const ssize_t written = write(file.get(), "hello", 5);
    const bool sent = TrySendDescriptors(sockets.right, BytesOf("two files"),
                                         std::array{file.get(), other.get()});
    _exit(written == 5 && sent ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  const DescriptorMessage message = ReceiveDescriptors(sockets.left, 100, Deadline::After(10s));
  EXPECT_EQ(message.bytes.size(), 9u);
  ASSERT_EQ(message.descriptors.size(), 2u);
  std::array<std::byte, 5> text{};
  ReadAllAt(message.descriptors[0], 0, text, "received");
  EXPECT_EQ(text[4], std::byte{'o'});
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(DescriptorsTest, MessagesStayApart) {
  Sockets sockets;
  EXPECT_TRUE(TrySendDescriptors(sockets.left, BytesOf("one"), std::array{0}));
  EXPECT_TRUE(TrySendDescriptors(sockets.left, BytesOf("three"), {}));
  EXPECT_EQ(ReceiveDescriptors(sockets.right, 100, Deadline::After(1s)).descriptors.size(), 1u);
  const DescriptorMessage second = ReceiveDescriptors(sockets.right, 100, Deadline::After(1s));
  EXPECT_EQ(second.bytes.size(), 5u);
  EXPECT_TRUE(second.descriptors.empty());
}

TEST(DescriptorsTest, ThePeerIsAProcess) {
  const Sockets sockets;
  EXPECT_EQ(NameOfPeer(sockets.left), fmt::format("process {}", getpid()));
  EXPECT_EQ(NameOfPeer(FileDescriptor()), "unknown");
}

TEST(DescriptorsTest, WaitsEndAtTheDeadline) {
  Sockets sockets;
  EXPECT_EQ(ReceiveCode(sockets.left, 100), ErrorCode::kDeadlineExceeded);
}

TEST(DescriptorsTest, WhoSendsDoesNotWaitForWhoDoesNotRead) {
  Sockets sockets;
  int sent = 0;
  while (sent < 100'000 && TrySendDescriptors(sockets.left, BytesOf("x"), std::array{0})) ++sent;
  ASSERT_LT(sent, 100'000) << "nobody reads, and the socket never fills";
  EXPECT_FALSE(TrySendDescriptors(sockets.left, BytesOf("x"), std::array{0}));
  ReceiveDescriptors(sockets.right, 1, Deadline::After(1s));
  EXPECT_TRUE(TrySendDescriptors(sockets.left, BytesOf("x"), std::array{0}));
}

TEST(DescriptorsTest, APeerThatHasGoneIsUnavailable) {
  Sockets sockets;
  sockets.right.Close();
  EXPECT_EQ(ReceiveCode(sockets.left, 100), ErrorCode::kUnavailable);
  try {
    TrySendDescriptors(sockets.left, BytesOf("x"), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  }
}

TEST(DescriptorsTest, WhatIsLongerThanAllowedIsDataLossAndLeaksNothing) {
  Sockets sockets;
  EXPECT_TRUE(TrySendDescriptors(sockets.left, BytesOf("too long"), std::array{0}));
  const int next = dup(0);  // Where the next descriptor would be.
  close(next);
  EXPECT_EQ(ReceiveCode(sockets.right, 3), ErrorCode::kDataLoss);
  const int after = dup(0);
  close(after);
  EXPECT_EQ(after, next);
  const std::vector<int> many(kMessageDescriptorsMax + 1, 0);
  EXPECT_THROW(TrySendDescriptors(sockets.left, BytesOf("x"), many), Error);
}

TEST(DescriptorServerTest, WhoeverConnectsSharesTheSameMemory) {
  const testing_files::Folder folder;
  const FileDescriptor memory(memfd_create("shared", MFD_CLOEXEC));
  ASSERT_EQ(pwrite(memory.get(), "here", 4, 0), 4);
  const DescriptorServer server(folder / "socket", {memory.get()});
  for (int i = 0; i < 3; ++i) {
    const std::vector<FileDescriptor> given =
        FetchDescriptors(folder / "socket", Deadline::After(60s));
    ASSERT_EQ(given.size(), 1U);
    char text[5] = {};
    EXPECT_EQ(pread(given[0].get(), text, 4, 0), 4);
    EXPECT_STREQ(text, "here");
  }
}

TEST(DescriptorServerTest, OneThatIsNotThereYetIsWaitedFor) {
  const testing_files::Folder folder;
  const FileDescriptor memory(memfd_create("shared", MFD_CLOEXEC));
  std::thread late([&] {
    std::this_thread::sleep_for(50ms);
    const DescriptorServer server(folder / "socket", {memory.get(), memory.get()});
    EXPECT_EQ(FetchDescriptors(folder / "socket", Deadline::After(60s)).size(), 2U);
    std::this_thread::sleep_for(1s);
  });
  EXPECT_EQ(FetchDescriptors(folder / "socket", Deadline::After(60s)).size(), 2U);
  late.join();
  EXPECT_THROW(FetchDescriptors(folder / "socket", Deadline::After(10ms)), Error);
}

}  // namespace
}  // namespace menger
