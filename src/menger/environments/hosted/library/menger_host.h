#pragma once

// A host's end of the control segment (hosted/protocol.h) for programs that are not C++: the C ABI
// of libmenger_host.so, which python/menger/control.py calls through ctypes. The library needs
// nothing of the program that loads it: no libpython, and its own C++ runtime.
//
// One host, one thread. Functions return -1 where they fail; menger_host_error says why.

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

// Of the commands of protocol.h, as menger_host_turn returns them: the command in the lowest 8
// bits, its row above. 0: nothing was asked within the timeout.
typedef int64_t menger_host_request;

const char* menger_host_error(void);

// For a process that has just forked `host`, which goes on as the host: waits for its end, or
// menger's, kills all that it has left behind, and ends as it did. Does not return.
void menger_host_supervise(int32_t host);

// Takes the descriptor of the control segment that the program was started with.
int menger_host_open(int descriptor);

// Waits for the first request.
menger_host_request menger_host_wait(double timeout_seconds);

// Answers the last request as done, with the text given to menger_host_say, and waits for the next:
// one call a step. 0 leaves menger_host_wait to be called on.
menger_host_request menger_host_turn(double timeout_seconds);

// Answers the last request as failed; then menger_host_wait.
int menger_host_fail(int32_t error_code, const char* text, uint64_t bytes);

// The text of the reply to come (nothing by default).
int menger_host_say(const char* text, uint64_t bytes);

// The request's text; good until the next say, fail or turn.
const char* menger_host_text(uint64_t* bytes);

int64_t menger_host_first_step(void);
int64_t menger_host_restarts_left(void);
uint64_t menger_host_seed(void);
// In the reply to come; one more than are left says that the error is for want of one.
int menger_host_use_restarts(int64_t count);
int menger_host_progress(void);  // A long request goes on.

// A check goes on, with what the text says: with a step (`playing`), or with making an environment.
// The request's text is gone.
int menger_host_doing(const char* text, uint64_t bytes, int32_t playing);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
