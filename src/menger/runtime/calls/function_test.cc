#include "menger/runtime/calls/function.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/calls/call.h"

namespace menger {

const Function& SameNameInAnotherFile();  // other_file_test.cc

namespace {

int Overloaded(int number) { return number; }
double Overloaded(double number) { return number; }
static int SameName(int number) { return number; }
int Same(int number) { return number; }
int SameCode(int number) { return number; }
int Quiet(int number) noexcept { return number; }
template <typename T>
T Twice(T number) {
  return number + number;
}

struct Counter {
  explicit Counter(int start) : count(start) {}
  int Add(int number) { return count += number; }
  int Get() const { return count; }
  int Peek() const& noexcept { return count; }
  static int Zero() { return 0; }
  int count;
};
struct Named {
  std::string name;
};
// Counter is not at its beginning.
struct NamedCounter : Named, Counter {
  explicit NamedCounter(int start) : Counter(start) {}
};

std::vector<const Function*> AllFunctions() {
  return {
      &FunctionOf<FunctionCall<static_cast<int (*)(int)>(&Overloaded)>>(),
      &FunctionOf<FunctionCall<static_cast<double (*)(double)>(&Overloaded)>>(),
      &FunctionOf<FunctionCall<&SameName>>(),
      &SameNameInAnotherFile(),
      &FunctionOf<FunctionCall<&Same>>(),
      &FunctionOf<FunctionCall<&SameCode>>(),
      &FunctionOf<FunctionCall<&Quiet>>(),
      &FunctionOf<FunctionCall<&Twice<int>>>(),
      &FunctionOf<FunctionCall<&Twice<double>>>(),
      &FunctionOf<FunctionCall<[](int x) { return x; }>>(),
      &FunctionOf<FunctionCall<[](int x) { return x; }>>(),
      &FunctionOf<FunctionCall<&Counter::Zero>>(),
      &FunctionOf<MethodCall<Counter, &Counter::Add>>(),
      &FunctionOf<MethodCall<NamedCounter, &NamedCounter::Add>>(),
      &FunctionOf<MethodCall<Counter, &Counter::Get>>(),
      &FunctionOf<MethodCall<Counter, &Counter::Peek>>(),
      &FunctionOf<ConstructorCall<Counter, int>>(),
      &FunctionOf<ConstructorCall<NamedCounter, int>>(),
  };
}

std::string Text(FunctionId id) {
  char text[40];
  std::snprintf(text, sizeof(text), "%016lx:%lx", id.module, id.offset);
  return text;
}

TEST(FunctionTest, WhateverLooksAlikeHasAnIdOfItsOwn) {
  FunctionTable table;
  std::set<std::string> ids;
  for (const Function* const function : AllFunctions()) {
    EXPECT_TRUE(ids.insert(Text(function->id())).second) << function->name();
    EXPECT_EQ(&table.Find(function->id()), function);
  }
  EXPECT_EQ(&FunctionOf<FunctionCall<&Same>>(), AllFunctions()[4]);
}

TEST(FunctionTest, AnotherProcessOfTheSameProgramAgrees) {
  std::string here;
  for (const Function* const function : AllFunctions()) {
    here += "id " + Text(function->id()) + " of " + function->name() + "\n";
  }
  if (std::getenv("MENGER_PRINT_IDS") != nullptr) {  // This is the other process.
    std::fputs(here.c_str(), stdout);
    return;
  }
  const std::string command = "MENGER_PRINT_IDS=1 exec /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_filter='*AnotherProcessOfTheSameProgramAgrees'";
  const std::unique_ptr<FILE, int (*)(FILE*)> other(popen(command.c_str(), "r"), &pclose);
  ASSERT_NE(other, nullptr);
  std::string there;
  char line[1000];
  while (std::fgets(line, sizeof(line), other.get()) != nullptr) {
    if (std::string_view(line).starts_with("id ")) there += line;
  }
  EXPECT_EQ(there, here);
}

TEST(FunctionTest, OnlyIdsOfCallablesAreFound) {
  FunctionTable table;
  const FunctionId id = FunctionOf<FunctionCall<&Same>>().id();
  EXPECT_THROW(table.Find({id.module, id.offset + 1}), Error);
  EXPECT_THROW(table.Find({id.module + 1, id.offset}), Error);
  EXPECT_THROW(table.Find(FunctionId{}), Error);
}

TEST(FunctionTest, NamesAreForPeople) {
  std::vector<std::string> names;
  for (const Function* const function : AllFunctions()) names.push_back(function->name());
  EXPECT_EQ(names[0], "Overloaded");
#ifndef __clang__  // Which tells less of these.
  EXPECT_EQ(names[7], "Twice<int>");
  EXPECT_EQ(names[9], "AllFunctions()::<lambda(int)>");
#endif
  EXPECT_EQ(names[12], "Counter::Add");
  EXPECT_EQ(names[16], "Counter");
}

TEST(FunctionTest, AnOpenedLibraryAddsItsCallables) {
  FunctionTable table;
  void* const library = dlopen(MENGER_OPENED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto opened = reinterpret_cast<const Function* (*)()>(dlsym(library, "OpenedFunction"));
  ASSERT_NE(opened, nullptr);
  const Function& half = *opened();
  EXPECT_EQ(half.name(), "Half");
  EXPECT_NE(half.id().module, FunctionOf<FunctionCall<&Same>>().id().module);
  EXPECT_EQ(&table.Find(half.id()), &half);  // A table that is older than the library.
  dlclose(library);
  EXPECT_EQ(FunctionTable().Find(half.id()).name(), "Half");
}

}  // namespace
}  // namespace menger
