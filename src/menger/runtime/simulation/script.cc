#include "menger/runtime/simulation/script.h"

#include <algorithm>

namespace menger::simulation {
namespace {

// Draws from a seed; small and fast, for millions of scripts.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  int Below(int bound) {
    state_ += 0x9e3779b97f4a7c15ULL;
    return static_cast<int>(Mix(state_) % static_cast<std::uint64_t>(bound));
  }
  bool OneIn(int count) { return Below(count) == 0; }
  std::uint64_t Seed() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return Mix(state_ ^ 0xd1b54a32d192ed03ULL);
  }

 private:
  std::uint64_t state_;
};

class Writer {
 public:
  Writer(std::uint64_t seed, int depth, const std::vector<SlotKind>& given, bool method)
      : draws_(seed), depth_(depth), method_(method), may_wait_(given.size()) {
    script_.slots = given;
    for (std::size_t i = 0; i < given.size(); ++i) {
      may_wait_[i] = !method || given[i] == SlotKind::kPlain;
    }
  }

  Script Write() {
    const int operations = depth_ > 0 ? draws_.Below(5) : draws_.Below(2);
    for (int i = 0; i < operations; ++i) Add();
    const int last = Pick([&](int slot) { return script_.slots[slot] == SlotKind::kPlain; });
    if (draws_.OneIn(3)) script_.result_reference = last;
    script_.throws = draws_.OneIn(40);
    if (draws_.OneIn(8)) script_.flaky = 1 + static_cast<std::uint32_t>(draws_.Below(2));
    return std::move(script_);
  }

 private:
  void Add() {
    const int kind = draws_.Below(13);
    if (depth_ > 0 && kind < 4) {
      AddCall(Operation::Kind::kCall, -1);
    } else if (depth_ > 0 && kind == 4) {
      AddSlot({.kind = Operation::Kind::kCreate, .seed = draws_.Seed()}, SlotKind::kActor, true);
    } else if (depth_ > 0 && kind < 7) {
      const int actor = Pick([&](int slot) { return IsActor(slot); });
      if (actor >= 0) AddCall(Operation::Kind::kMethod, actor);
    } else if (kind == 7) {
      Operation put{.kind = Operation::Kind::kPut, .seed = draws_.Seed()};
      if (draws_.OneIn(2)) PickInto(put.references, [&](int slot) { return !IsActor(slot); });
      const SlotKind plain = put.references.empty() ? SlotKind::kPlain : SlotKind::kValue;
      AddSlot(std::move(put), plain, true);
    } else if (kind < 10) {
      const int target = Pick([&](int slot) { return !IsActor(slot) && may_wait_[slot]; });
      if (target < 0) return;
      script_.operations.push_back({.kind = Operation::Kind::kGet, .target = target});
    } else if (kind == 12 && depth_ > 0) {
      FanOut(2 + draws_.Below(4));
    } else if (kind == 10 && depth_ > 0) {
      Operation wait{.kind = Operation::Kind::kWait, .seed = draws_.Seed()};
      for (int i = 0; i < 2; ++i) {
        PickInto(wait.values, [&](int slot) { return !IsActor(slot) && may_wait_[slot]; });
      }
      if (!wait.values.empty()) script_.operations.push_back(std::move(wait));
    }
  }

  // Calls side by side, and then waits for each.
  void FanOut(int calls) {
    const auto first = static_cast<int>(script_.slots.size());
    for (int i = 0; i < calls; ++i) AddCall(Operation::Kind::kCall, -1);
    for (int i = 0; i < calls; ++i) {
      script_.operations.push_back({.kind = Operation::Kind::kGet, .target = first + i});
    }
  }

  void AddCall(Operation::Kind kind, int actor) {
    Operation call{.kind = kind, .seed = draws_.Seed(), .actor = actor};
    const bool of_actor = kind == Operation::Kind::kMethod;
    for (int i = draws_.Below(3); i > 0; --i) {
      PickInto(call.values, [&](int slot) { return !IsActor(slot) && may_wait_[slot]; });
    }
    for (int i = draws_.Below(3); i > 0; --i) {
      PickInto(call.references, [&](int slot) {
        return of_actor || method_ ? script_.slots[slot] == SlotKind::kPlain : true;
      });
    }
    AddSlot(std::move(call), SlotKind::kValue, true);
  }

  void AddSlot(Operation operation, SlotKind kind, bool may_wait) {
    script_.operations.push_back(std::move(operation));
    script_.slots.push_back(kind);
    may_wait_.push_back(may_wait);
  }

  bool IsActor(int slot) const { return script_.slots[slot] == SlotKind::kActor; }

  template <typename Accept>
  int Pick(const Accept& accept) {
    if (script_.slots.empty()) return -1;
    const int slot = draws_.Below(static_cast<int>(script_.slots.size()));
    return accept(slot) ? slot : -1;
  }
  template <typename Accept>
  void PickInto(std::vector<int>& slots, const Accept& accept) {
    const int slot = Pick(accept);
    if (slot >= 0) slots.push_back(slot);
  }

  Draws draws_;
  int depth_;
  bool method_;
  Script script_;
  std::vector<bool> may_wait_;
};

}  // namespace

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t Mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

Script MakeScript(std::uint64_t seed, int depth, const std::vector<SlotKind>& given, bool method) {
  return Writer(seed, depth, given, method).Write();
}

std::uint64_t SeedAfterWait(std::uint64_t seed, std::uint64_t ready) { return Mix(seed ^ ready); }

KnownPointer InterpretPut(std::uint64_t seed, const std::vector<KnownPointer>& references) {
  auto known = std::make_shared<Known>();
  known->fold = Mix(seed);
  known->kind = references.empty() ? SlotKind::kPlain : SlotKind::kValue;
  if (!references.empty()) known->inner = references.front();
  return known;
}

KnownPointer Interpret(std::uint64_t seed, int depth, const std::vector<KnownPointer>& values,
                       const std::vector<KnownPointer>& given, bool method) {
  auto result = std::make_shared<Known>();
  const auto fail = [&result] {
    result->failed = true;
    return result;
  };
  std::vector<SlotKind> kinds;
  for (const KnownPointer& slot : given) kinds.push_back(slot->kind);
  const Script script = MakeScript(seed, depth, kinds, method);
  std::uint64_t fold = Mix(seed);
  for (const KnownPointer& value : values) {
    if (value->failed) return fail();
    fold = Mix(fold ^ value->fold);
  }
  std::vector<KnownPointer> slots = given;
  const auto all = [&slots](const std::vector<int>& indices) {
    std::vector<KnownPointer> chosen;
    for (const int index : indices) chosen.push_back(slots[index]);
    return chosen;
  };
  for (const Operation& operation : script.operations) {
    switch (operation.kind) {
      case Operation::Kind::kCall:
      case Operation::Kind::kMethod:
        slots.push_back(Interpret(operation.seed, depth - 1, all(operation.values),
                                  all(operation.references),
                                  operation.kind == Operation::Kind::kMethod));
        break;
      case Operation::Kind::kCreate: {
        auto actor = std::make_shared<Known>();
        actor->kind = SlotKind::kActor;
        slots.push_back(actor);
        break;
      }
      case Operation::Kind::kPut:
        slots.push_back(InterpretPut(operation.seed, all(operation.references)));
        break;
      case Operation::Kind::kGet: {
        const Known& got = *slots[operation.target];
        if (got.failed || (got.inner != nullptr && got.inner->failed)) return fail();
        fold = Mix(fold ^ got.fold);
        if (got.inner != nullptr) fold = Mix(fold ^ got.inner->fold);
        break;
      }
      case Operation::Kind::kWait:
        break;
    }
  }
  if (script.throws) return fail();
  result->fold = Mix(fold);
  if (script.result_reference >= 0) result->inner = slots[script.result_reference];
  return result;
}

}  // namespace menger::simulation
