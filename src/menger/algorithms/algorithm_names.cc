#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "menger/algorithms/algorithm.h"
#include "menger/base/error.h"

namespace menger {
namespace {

// What a recipe has at its top level beside an algorithm's section (a test keeps this complete).
constexpr std::string_view kTaken[] = {
    "environment",     "algorithm",  "steps",      "seed",     "device",   "precision",
    "learner_threads", "collector",  "runtime",    "network",  "replay",   "optimiser",
    "transforms",      "evaluation", "checkpoint", "progress", "topology", "experiment",
    "atari",           "mujoco",     "host"};

bool IsName(std::string_view text) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto allowed = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && letter(text.front()) && std::ranges::all_of(text, allowed);
}

}  // namespace

std::vector<std::unique_ptr<AlgorithmEntry>> WithCheckedNames(
    std::vector<std::unique_ptr<AlgorithmEntry>> entries) {
  std::set<std::string> names;
  for (const auto& entry : entries) {
    const std::string name = entry->name();
    if (!IsName(name)) {
      throw Internal(
          "an algorithm is called '{}'; its name must be made of [a-z0-9_] and begin with a "
          "letter, "
          "for example 'soft_q': it is that of a section of recipes",
          name);
    }
    if (std::ranges::find(kTaken, name) != std::end(kTaken)) {
      throw Internal(
          "an algorithm is called '{}', as something else in a recipe is; give it "
          "another name",
          name);
    }
    if (!names.insert(name).second) {
      throw Internal("two algorithms are called '{}'; each must have a name of its own", name);
    }
  }
  return entries;
}

}  // namespace menger
