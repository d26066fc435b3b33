#include "menger/cli/process_names.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace menger {
namespace {

TEST(ProcessNamesTest, AProcessThatIsThereHasNotEnded) {
  EXPECT_FALSE(HasEnded(NameOfThisProcess()));
  EXPECT_EQ(NameOfThisProcess(), NameOfThisProcess());
}

TEST(ProcessNamesTest, OneThatHasEndedIsKnownByItsName) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string name = NameOfThisProcess();
    _exit(write(ends[1], name.data(), name.size()) > 0 ? 0 : 1);
  }
  std::string name(1000, ' ');
  name.resize(static_cast<std::size_t>(read(ends[0], name.data(), name.size())));
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(HasEnded(name)) << name;
}

TEST(ProcessNamesTest, ItsNumberMayBeAnothersMeanwhile) {
  std::string name = NameOfThisProcess();
  name.insert(name.find("begun at ") + 9, "1");
  EXPECT_TRUE(HasEnded(name));
}

TEST(ProcessNamesTest, NothingIsKnownOfOtherMachines) {
  std::string name = NameOfThisProcess();
  name[name.size() - 2] = 'x';
  EXPECT_FALSE(HasEnded(name));
  EXPECT_FALSE(HasEnded(""));
  EXPECT_FALSE(HasEnded("process 1"));
  EXPECT_FALSE(HasEnded("the first"));
}

}  // namespace
}  // namespace menger
