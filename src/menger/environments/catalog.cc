#include "menger/environments/catalog.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/edit_distance.h"
#include "menger/base/error.h"
#include "menger/environments/acrobot.h"
#include "menger/environments/cart_pole.h"
#include "menger/environments/lunar_lander.h"
#include "menger/environments/masked_cart_pole.h"
#include "menger/environments/mountain_car.h"
#include "menger/environments/mountain_car_continuous.h"
#include "menger/environments/pendulum.h"
#include "menger/environments/simulator_group.h"

namespace menger {
namespace {

// Of a name: so many characters wrong are a slip, in one of so many.
constexpr std::size_t kSlipMax = 2;
constexpr std::size_t kSlipSizeMin = 5;

}  // namespace

void EnvironmentCatalog::Add(EnvironmentEntry entry) {
  if (Contains(entry.spec.name)) {
    throw InvalidArgument("environment '{}' is in the catalog already", entry.spec.name);
  }
  entries_.push_back(std::move(entry));
}

void EnvironmentCatalog::AddFamily(FamilyFactory factory) {
  families_.push_back(std::move(factory));
}

bool EnvironmentCatalog::Contains(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [name](const EnvironmentEntry& entry) { return entry.spec.name == name; });
}

std::unique_ptr<EnvironmentFamily> EnvironmentCatalog::FamilyOf(std::string_view name) const {
  if (Contains(name)) return nullptr;
  for (auto& family : Families()) {
    if (family->Serves(name)) return std::move(family);
  }
  return nullptr;
}

EnvironmentEntry EnvironmentCatalog::Open(const std::string& name, EnvironmentUse use) const {
  return Open(name, use, FamilyOf(name).get());
}

EnvironmentEntry EnvironmentCatalog::Open(const std::string& name, EnvironmentUse use,
                                          const EnvironmentFamily* family) const {
  if (family == nullptr) return Find(name);
  RefuseMisspelt(name);
  try {
    return family->Open(name, use);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(error.code(), error.what() + DidYouMean(name, KnownNames()));
  }
}

// Before an interpreter is started, which may not even be there. Another version of a known name is
// no slip: Gymnasium may have it.
void EnvironmentCatalog::RefuseMisspelt(const std::string& name) const {
  if (name.find_first_of(":/") != std::string::npos) return;
  const auto without_version = [](const std::string& full) {
    return full.substr(0, full.rfind("-v"));
  };
  const std::string wrong = without_version(name);
  std::string right;
  for (const std::string& known : KnownNames()) {
    const std::string candidate = without_version(known);
    if (candidate == wrong) return;
    if (wrong.size() >= kSlipSizeMin && EditDistance(wrong, candidate) <= kSlipMax) right = known;
  }
  if (right.empty()) return;
  throw NotFound(
      "there is no environment '{}' (did you mean '{}'?); `menger list` shows all, and 'host:{}' "
      "asks Gymnasium for one of that name",
      name, right, name);
}

std::vector<std::string> EnvironmentCatalog::KnownNames() const {
  std::vector<std::string> names;
  for (const EnvironmentEntry& entry : entries_) names.push_back(entry.spec.name);
  for (const auto& family : Families()) {
    for (std::string& example : family->examples()) names.push_back(std::move(example));
  }
  return names;
}

std::vector<std::unique_ptr<EnvironmentFamily>> EnvironmentCatalog::Families() const {
  std::vector<std::unique_ptr<EnvironmentFamily>> families;
  for (const FamilyFactory& factory : families_) families.push_back(factory());
  return families;
}

const EnvironmentEntry& EnvironmentCatalog::Find(std::string_view name) const {
  for (const EnvironmentEntry& entry : entries_) {
    if (entry.spec.name == name) return entry;
  }
  std::string hint = DidYouMean(name, KnownNames()) + "; `menger list` shows all";
  for (const auto& family : Families()) {
    const std::string meant = family->HintFor(name);
    if (!meant.empty()) hint += ", and " + meant;
  }
  throw NotFound("there is no environment '{}'{}", name, hint);
}

EnvironmentCatalog NativeEnvironments() {
  EnvironmentCatalog catalog;
  catalog.Add(EntryOf<CartPole>());
  catalog.Add(EntryOf<MaskedCartPole>());
  catalog.Add(EntryOf<Acrobot>());
  catalog.Add(EntryOf<MountainCar>());
  catalog.Add(EntryOf<MountainCarContinuous>());
  catalog.Add(EntryOf<Pendulum>());
  catalog.Add(EntryOf<DiscreteLunarLander>());
  catalog.Add(EntryOf<ContinuousLunarLander>());
  return catalog;
}

}  // namespace menger
