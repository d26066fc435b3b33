#include "menger/base/process_mark.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace menger {
namespace {

// What `check` says in a fork of this process.
template <typename Check>
bool InChild(const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 1 : 0);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST(ProcessMarkTest, AForkIsNotTheProcessThatMadeIt) {
  const ProcessMark mark;
  EXPECT_FALSE(mark.InFork());
  EXPECT_TRUE(InChild([&] { return mark.InFork(); }));
  EXPECT_FALSE(mark.InFork());
}

TEST(ProcessMarkTest, AForkOfAForkIsNotEitherButHasMarksOfItsOwn) {
  const ProcessMark mark;
  EXPECT_TRUE(InChild([&] {
    const ProcessMark own;
    return !own.InFork() && InChild([&] { return own.InFork() && mark.InFork(); });
  }));
}

}  // namespace
}  // namespace menger
