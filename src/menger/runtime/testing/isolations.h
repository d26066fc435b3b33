#pragma once

#include <gtest/gtest.h>

#include "menger/runtime/runtime.h"

namespace menger {

// A runtime of two workers, threads or processes: instantiate by INSTANTIATE_TEST_SUITE_P with
// BothIsolations() and IsolationName.
class IsolationTest : public testing::TestWithParam<Isolation> {
 protected:
  Runtime runtime{RuntimeOptions{.workers = 2, .isolation = GetParam()}};
};

inline auto BothIsolations() { return testing::Values(Isolation::kThread, Isolation::kProcess); }

inline std::string IsolationName(const testing::TestParamInfo<Isolation>& info) {
  return info.param == Isolation::kThread ? "threads" : "processes";
}

}  // namespace menger
