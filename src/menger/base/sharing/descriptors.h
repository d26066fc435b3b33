#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"

namespace menger {

// File descriptors sent from process to process, with a few bytes that say what they are.
//
// `socket` is one end of a Unix socket that keeps messages apart (SOCK_SEQPACKET). A message
// arrives whole or not at all. Throws Unavailable when the other end has gone. Any thread; messages
// of several threads do not mix.

inline constexpr std::size_t kMessageDescriptorsMax = 64;

// The receiver gets duplicates; the sender's stay open. `bytes` has at least one byte. Never waits:
// false if it cannot be sent now, because the other end has not read what was sent before or the
// system has too many descriptors under way. Throws InvalidArgument for too many descriptors.
bool TrySendDescriptors(const FileDescriptor& socket, std::span<const std::byte> bytes,
                        std::span<const int> descriptors);

struct DescriptorMessage {
  std::vector<std::byte> bytes;
  std::vector<FileDescriptor> descriptors;  // Closed on exec.
};

// The next message, of at most `bytes_max` bytes; DeadlineExceeded if none has come. A longer one,
// or one with more descriptors than are allowed (or than this process may open), is DataLoss; what
// came with it is closed.
DescriptorMessage ReceiveDescriptors(const FileDescriptor& socket, std::size_t bytes_max,
                                     const Deadline& deadline);

}  // namespace menger
