#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/runtime/values/object_ref.h"
#include "menger/runtime/values/resources.h"

namespace menger {

// What calls may need together, on one node.
struct Bundle {
  double cpus = 0;
  double gpus = 0;
  std::vector<std::pair<std::string, double>> resources;  // Others, by name.
};

// How the bundles of a group lie on nodes. On one node the strict spread of several is an error,
// and all else the same.
enum class PlacementStrategy : std::uint8_t {
  kPack,         // On few,
  kSpread,       // on many,
  kStrictPack,   // on one,
  kStrictSpread  // on as many as there are bundles.
};

// What is left out is as said here.
struct PlacementGroupOptions {
  PlacementStrategy strategy = PlacementStrategy::kPack;
  std::string name = "placement group";  // What people see.
};

// Resources that are set aside, all bundles at once, for the calls and actors that name the group
// (CallOptions::group). It may be an argument and part of values. Its resources are free again when
// nobody refers to it, neither by such a call, or when it is removed.
class PlacementGroup {
 public:
  PlacementGroup() = default;  // None: what the node has.
  PlacementGroup(ObjectHandle reservation, std::uint32_t bundles)
      : reservation_(std::move(reservation)), bundles_(bundles) {}

  bool valid() const { return reservation_.valid(); }
  std::uint32_t bundles() const { return bundles_; }
  const ObjectHandle& reservation() const { return reservation_; }

  // Is there when the resources are; calls in the group wait for that by themselves. Its value,
  // none, is an error if no node ever has them.
  ObjectRef<void> Ready() const { return ObjectRef<void>(reservation_); }

  template <typename Archive>
  friend void Serialize(Archive& archive, PlacementGroup& group) {
    archive(group.reservation_, group.bundles_);
  }

 private:
  ObjectHandle reservation_;
  std::uint32_t bundles_ = 0;
};

// ---- As calls say it (TaskSpec::scheduling).

inline constexpr std::size_t kBundlesMax = 1000;
// What is asked for: the bundles in the order of their numbers, from 0.
struct Reservation {
  PlacementStrategy strategy = PlacementStrategy::kPack;
  std::vector<Resources> bundles;
};
// Both throw InvalidArgument for what is none.
std::string WriteReservation(std::span<const Bundle> bundles, PlacementStrategy strategy);
Reservation ReadReservation(std::string_view text);

// What a call in a group needs, and of which bundle; -1: of any.
struct BundleNeed {
  Resources need;
  int bundle = -1;
};
BundleNeed ReadBundleNeed(std::string_view text);

// "cpu=1 gpu=2 rocket=3", of what has cpus, gpus and resources. Throws InvalidArgument for an
// amount or a name that cannot be.
std::string WriteAmounts(double cpus, double gpus,
                         std::span<const std::pair<std::string, double>> others);
std::string WriteAmounts(std::span<const std::pair<std::string, double>> amounts);  // The same.

}  // namespace menger
