#include "menger/environments/catalog.h"

#include <string>
#include <utility>
#include <vector>

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

void EnvironmentCatalog::Add(EnvironmentEntry entry) {
  for (const EnvironmentEntry& known : entries_) {
    if (known.spec.name == entry.spec.name) {
      throw InvalidArgument("environment '{}' is in the catalog already", entry.spec.name);
    }
  }
  entries_.push_back(std::move(entry));
}

const EnvironmentEntry& EnvironmentCatalog::Find(std::string_view name) const {
  std::vector<std::string> names;
  for (const EnvironmentEntry& entry : entries_) {
    if (entry.spec.name == name) return entry;
    names.push_back(entry.spec.name);
  }
  throw NotFound("there is no environment '{}'{}; `menger list` shows all", name,
                 DidYouMean(name, names));
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
