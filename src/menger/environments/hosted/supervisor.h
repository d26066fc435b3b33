#pragma once

#include <sys/types.h>

namespace menger {

// What a process does that has forked and left the work of a host to its child `host`: it waits,
// and sees to it that nothing which the host starts outlives it.
//
// When the host ends, when menger (this process's parent) is gone, killed or not, and at
// kEndHostSignal, it kills the host, then every descendant that the host has left, also those in
// sessions of their own: as their subreaper it inherits them. Before that they have 0.3 s to end by
// themselves, as those do that clean up after the host (multiprocessing's resource tracker). It
// then ends as the host did. All other signals wait for ever, but for SIGKILL, which it does not
// survive: then the kernel kills the host, and menger the rest of their process group.
//
// For a process with one thread, right after the fork.
[[noreturn]] void Supervise(pid_t host);

}  // namespace menger
